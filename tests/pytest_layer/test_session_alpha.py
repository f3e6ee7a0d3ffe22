"""``fairness_session_alpha``: how often alarms may turn a session of fair systems red, shared among
the tests that ask.
"""

from __future__ import annotations

from typing import Any

import pytest

from pytest_fairness.analysis.looks import MOST_RED, budget

from .conftest import Project, shown

SUITE = """
import pytest
from pytest_fairness import assert_no_disparity

TEAMS = {"team": {group: [f"{group.upper()}{place}" for place in range(10)] for group in "ab"}}

@pytest.fixture
def endpoint():
    return lambda prompt: f"{4 + int(prompt[6:-1]) % 5}/10"

asked = pytest.mark.fairness_grid(template="Rate {name}.", groups=TEAMS, repetitions=3)

@asked
def test_rated(trials):
    for _ in range(3):
        assert_no_disparity(trials, outcome="rating", by="team")

@asked
def test_strict(trials):
    assert_no_disparity(trials, outcome="rating", by="team", alpha=.001)

@asked
def test_several(trials):
    assert_no_disparity(trials, outcome=["rating", "word_count"], by="team")

@asked
def test_of_its_own(trials):
    assert len(trials) == 60
"""


def budgets(project: Project) -> dict[str, list[float]]:
    """What each test's findings could spend on red about a fair system."""
    by_test: dict[str, list[float]] = {}
    for finding in project.findings:
        test = finding["nodeid"].partition("::")[2]
        by_test.setdefault(test, []).append(finding["details"]["looks"]["red_budget"])
    return by_test


def expected(whole: float) -> dict[str, Any]:
    """The same for a test's first assertion, which may spend *whole*, and those after it."""
    return {
        "test_rated": pytest.approx([whole, whole / 4, whole / 8]),
        "test_strict": pytest.approx([min(whole, 0.001)]),
        "test_several": pytest.approx([whole / 2, whole / 2]),
    }


@pytest.mark.parametrize(
    ("options", "whole"),
    [
        ((), 0.05 / (1.9 * 4)),
        (("-o", "fairness_session_alpha=.2"), MOST_RED),
        (("-o", "fairness_session_alpha=.01"), 0.01 / (1.9 * 4)),
        (("-o", "fairness_session_tests=10"), 0.05 / 19),
        (("-k", "not of_its_own"), 0.05 / (1.9 * 4)),
        (("-o", "fairness_session_tests=1"), MOST_RED),
    ],
    ids=["default", "large", "small", "told", "deselected", "one"],
)
def test_the_tests_that_ask_share_it(
    project: Project, options: tuple[str, ...], whole: float
) -> None:
    """Whatever they conclude, and before a keyword leaves some out; an assertion's own alpha holds
    where it is smaller, and several outcomes have equal parts of one share.
    """
    project.write(SUITE)
    project.run(*options)
    assert budgets(project) == expected(whole)
    for finding in project.findings:
        (look,) = finding["details"]["looks"]["made"]
        assert look["red"] == pytest.approx(finding["details"]["looks"]["red_budget"])
        assert finding["family"]["alpha"] == pytest.approx(look["red"])


def test_a_run_keeps_its_share_when_it_is_resumed(project: Project) -> None:
    """With fewer tests, or another level: what was fixed before the first call holds."""
    project.write(SUITE)
    project.run()
    whole = 0.05 / (1.9 * 4)
    for options in (
        ("-k", "rated"),
        ("-o", "fairness_session_alpha=.01"),
        ("-o", "fairness_session_tests=40"),
        ("test_suite.py::test_rated",),
    ):
        project.run("--fairness-resume=last", *options)
        assert budgets(project)["test_rated"] == expected(whole)["test_rated"], options
        assert project.manifest["looks"]["tests"] == 4
    project.run("--fairness-replay=last", "-k", "rated")
    assert budgets(project)["test_rated"] == expected(whole)["test_rated"]
    assert project.manifest["looks"]["tests"] == 4


@pytest.mark.parametrize(
    ("place", "alpha", "whole"),
    [(0, 0.05, 0.0025), (1, 0.05, 0.000625), (2, 0.05, 0.0003125), (0, 0.001, 0.001)],
)
def test_later_assertions_have_halves(place: int, alpha: float, whole: float) -> None:
    assert budget(0.095, 20, place, alpha) == pytest.approx(whole)
    assert budget(0.05, 0, 0, 1) == MOST_RED


@pytest.mark.parametrize("option", ["session_alpha=5", "session_tests=0", "session_tests=few"])
def test_what_is_out_of_range_is_refused(project: Project, option: str) -> None:
    refused = project.run("-o", f"fairness_{option}")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    name, _, value = option.partition("=")
    refused.stderr.fnmatch_lines([f"*fairness_{name}='{value}'*"])


def test_tables_are_judged_at_their_own_level(project: Project) -> None:
    """A table cannot be looked at again: its alpha stays, and the last lines say what that comes to."""
    project.write("""
import pandas as pd, pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness
@pytest.mark.parametrize("number", range(2))
def test_even(number):
    rows = [(group, place % 2) for group in "ab" for place in range(200)]
    table = pd.DataFrame(rows, columns=["race", "hired"])
    assert_no_disparity(table, outcome="hired", by="race", cluster=None)
""")
    result = project.run()
    result.assert_outcomes(passed=2)
    assert {finding["family"]["alpha"] for finding in project.findings} == {0.05}
    assert all("looks" not in finding["details"] for finding in project.findings)
    assert "red with a chance of about 9.0 %" in shown(result)
