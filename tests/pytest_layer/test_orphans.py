"""Approved baselines that no test claims are reported by a whole, passing session, and never touched."""

from __future__ import annotations

import pytest

from .conftest import Run

SUITE = """
import pandas as pd, pytest
from pytest_fairness import assert_baseline

@pytest.mark.fairness
def test_scores():
    rows = [(f"p{person}", 80 + person % 5 + repetition) for person in range(20) for repetition in range(3)]
    assert_baseline(pd.DataFrame(rows, columns=["persona", "tone"]), score="tone")
"""
APPROVE = ("--fairness-approve", "--fairness-justification", "first")


def test_a_renamed_test_leaves_its_baseline_unclaimed(
    pytester: pytest.Pytester, run_in_mode: Run, mode: list[str]
) -> None:
    """The file stays where it is, and the summary names it."""
    pytester.makepyfile(test_it=SUITE)
    run_in_mode(*APPROVE).assert_outcomes(passed=1)
    (baseline,) = pytester.path.joinpath("baselines").iterdir()
    pytester.makepyfile(test_it=SUITE.replace("test_scores", "test_other"))
    result = run_in_mode(*APPROVE)
    result.assert_outcomes(passed=1)
    assert baseline.exists()
    told = [line for line in result.outlines if "unclaimed baseline" in line]
    # Workers collect for themselves: only a session in one process knows that it has seen everything.
    assert len(told) == (0 if "-n2" in mode else 1)
    assert all(baseline.name in line for line in told)


def test_a_test_that_fails_keeps_its_baseline(
    pytester: pytest.Pytester, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have failed before it asked: nothing is called unclaimed."""
    pytester.makepyfile(test_it=SUITE)
    run(*APPROVE).assert_outcomes(passed=1)
    monkeypatch.setenv("CI", "true")
    result = run(*APPROVE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Approval refused: this runs under CI*"])
    assert "unclaimed" not in result.stdout.str()
