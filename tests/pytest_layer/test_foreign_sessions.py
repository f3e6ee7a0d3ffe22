"""In a session without fairness tests the plugin shows nothing, loads nothing and leaves nothing
behind.
"""

from __future__ import annotations

import pytest

from tests.support.sessions import run_pytest

HEAVY = ("litellm", "scipy", "pandas", "statsmodels", "numpy", "aiohttp", "yaml", "vaderSentiment")
LIGHT = f"""
import sys

def test_nothing_heavy_came_with_the_plugin():
    ours = [name for name in sys.modules if name.startswith("pytest_fairness")]
    assert "pytest_fairness.plugin" in ours
    assert not set({HEAVY!r}) & set(sys.modules)
    assert "pytest_fairness.baselines.syrupy_extension" not in sys.modules
"""
#: Fixtures of a project that are called as ours are.
OWN = """
import pytest

@pytest.fixture
def trials():
    return [1, 2, 3]

@pytest.fixture(params=["a", "b"])
def cell(request):
    return request.param

@pytest.fixture
def endpoint():
    return "https://example.org"

@pytest.fixture
def tier(endpoint):
    return "gold"

def test_it(trials, cell, endpoint, tier):
    assert (len(trials), tier, endpoint) == (3, "gold", "https://example.org")
"""


def test_silent_and_light(pytester: pytest.Pytester, mode: list[str]) -> None:
    """Nor is a folder of that name a fairness test; fixtures that the project calls as ours are the
    project's.
    """
    pytester.makepyfile(test_light=LIGHT, test_own=OWN)
    pytester.mkpydir("fairness").joinpath("test_plain.py").write_text("def test_one(): pass")
    result = run_pytest(pytester.path, "-p", "no:cacheprovider", *mode, fresh=True)
    result.assert_outcomes(passed=4)
    shown = [
        line
        for line in result.outlines
        if not line.startswith(("plugins:", "fairness/test_plain.py"))
    ]
    assert not [line for line in shown if "fairness" in line]
    assert not pytester.path.joinpath(".fairness").exists()
    assert result.stderr.str() == ""


def test_the_output_is_that_of_a_session_without_it(pytester: pytest.Pytester) -> None:
    """Apart from the list of plugins and the time taken, not a character differs."""
    pytester.makepyfile("def test_one(): pass")

    def lines(*arguments: str) -> list[str]:
        result = pytester.runpytest_subprocess(
            "-p", "no:cacheprovider", "-p", "no:xdist", *arguments
        )
        return [line for line in result.outlines if not line.startswith(("plugins:", "=="))]

    assert lines() == lines("-p", "no:fairness")
