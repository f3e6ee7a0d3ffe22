"""A session of numbered tests over several classes says once what it found, not three times."""

from __future__ import annotations

import pytest

from .conftest import Project, Run

SUITE = """
import pandas as pd
import pytest
from pytest_fairness import assert_no_disparity

CLASSES = ("age", "gender", "religion")

def table(by, low, high, names):
    rows = [(group, f"{group} {name}", at + name % 3 + shift)
            for group, shift in ((f"a {by}", low), (f"b {by}", high)) for name in range(names) for at in range(5)]
    return pd.DataFrame(rows, columns=[by, "name", "score"])

def numbered(test, by, number):
    return pytest.param(by, marks=pytest.mark.fairness(id=f"{test}-{number:03}"), id=f"{by}-{number}")

EACH = [(by, 6 * place + n) for place, by in enumerate(CLASSES) for n in range(6)]

@pytest.mark.parametrize("by", [numbered("PAY-HIGH", *each) for each in EACH])
def test_pay(by):
    assert_no_disparity(table(by, 0, 3, 20), outcome="score", by=by, block=None)

@pytest.mark.parametrize("by", [numbered("PAY-OPEN", *each) for each in EACH])
def test_open(by):
    assert_no_disparity(table(by, 0, 0.3, 8), outcome="score", by=by, block=None)
"""
FAILING = """
def test_sum():
    assert 1 + 1 == 3
"""
BROKEN = """
@pytest.fixture
def key():
    raise KeyError("broken")

def test_key(key):
    pass
"""


def test_tables_and_warnings_are_left_to_the_report(project: Project, run_apart: Run) -> None:
    """The names of failed tests stay, one warning stands for all, and the counts are whole."""
    project.write(SUITE)
    result = run_apart()
    result.assert_outcomes(failed=18, passed=18, warnings=1)
    output = result.stdout.str()
    assert "= FAILURES =" not in output
    assert output.count("InconclusiveWarning") == 1
    result.stdout.fnmatch_lines(
        ["*InconclusiveWarning: 18 findings are INCONCLUSIVE; each is in the report*"]
    )
    result.stdout.fnmatch_lines(
        [
            "*fairness: 36 findings: 18 FAIL, 18 INCONCLUSIVE*",
            "  PAY-… *HIGH *OPEN*",
            "  age *FAIL *undecided*",
        ]
    )
    result.stdout.fnmatch_lines(["    PAY-HIGH-000 · *test_pay?age-0?"])
    result.stdout.fnmatch_lines(["FAILED *test_pay?age-0? - *"])


@pytest.mark.parametrize(
    ("other", "shown"), [(FAILING, "*assert (1 + 1) == 3*"), (BROKEN, "*KeyError: 'broken'*")]
)
def test_what_failed_otherwise_keeps_its_traceback(
    project: Project, other: str, shown: str
) -> None:
    project.write(SUITE + other)
    output = project.run().stdout
    output.fnmatch_lines([shown])
    output.fnmatch_lines(["*= FAILURES =*"])


@pytest.mark.parametrize("option", ["--tb=short", "-rP"])
def test_who_asks_for_tracebacks_gets_them(project: Project, option: str) -> None:
    project.write(SUITE)
    assert "= FAILURES =" in project.run(option).stdout.str()
