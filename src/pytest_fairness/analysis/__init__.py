"""Comparing: each function takes a table of trials and gives a :class:`~pytest_fairness.model.Finding`.

They raise for tables of the wrong shape, never for a verdict; the assertions of the same names do that.
"""
