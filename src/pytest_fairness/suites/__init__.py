"""Ready-made suites of tests: `pytest --pyargs pytest_fairness.suites.selection`."""
