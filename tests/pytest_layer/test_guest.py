"""In a session without fairness tests the plugin shows nothing, loads nothing and leaves nothing behind."""

from __future__ import annotations

import pytest

from .conftest import Run

HEAVY = ("litellm", "scipy", "pandas", "statsmodels", "numpy", "aiohttp", "yaml", "vaderSentiment")


def test_silent_and_light(pytester: pytest.Pytester, run_apart: Run) -> None:
    pytester.makepyfile(
        f"""
        import sys

        def test_nothing_heavy_came_with_the_plugin():
            ours = [name for name in sys.modules if name.startswith("pytest_fairness")]
            assert "pytest_fairness.plugin" in ours
            heavy = [name for name in {HEAVY!r} if name in sys.modules]
            assert not heavy
            assert "pytest_fairness.baselines.syrupy_extension" not in sys.modules
        """
    )
    result = run_apart()
    result.assert_outcomes(passed=1)
    assert not [line for line in result.outlines if "fairness" in line and not line.startswith("plugins:")]
    assert not pytester.path.joinpath(".fairness").exists()
    assert result.stderr.str() == ""


def test_the_output_is_that_of_a_session_without_it(pytester: pytest.Pytester) -> None:
    """Apart from the list of plugins and the time taken, not a character differs."""
    pytester.makepyfile("def test_one(): pass")

    def lines(*arguments: str) -> list[str]:
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist", *arguments)
        return [line for line in result.outlines if not line.startswith(("plugins:", "=="))]

    assert lines() == lines("-p", "no:fairness")


def test_a_folder_called_fairness_does_not_make_fairness_tests(pytester: pytest.Pytester, run_apart: Run) -> None:
    pytester.mkpydir("fairness").joinpath("test_plain.py").write_text("def test_one(): pass")
    result = run_apart()
    result.assert_outcomes(passed=1)
    assert not pytester.path.joinpath(".fairness").exists()
