"""``fairness_session_alpha``: what a session of many findings makes of each, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Run

SUITE = """
import pandas as pd, pytest
from pytest_fairness import assert_no_disparity

def table(share_a, share_b, n=400):
    rows = [("a", i < share_a * n) for i in range(n)] + [("b", i < share_b * n) for i in range(n)]
    return pd.DataFrame(rows, columns=["race", "hired"])

JUSTIFIED = {"reason": "one site", "approver": "Jane", "date": "2026-01-01", "expiry": "2999-01-01"}

@pytest.mark.fairness(justification=JUSTIFIED)
@pytest.mark.parametrize(("share", "n"), [(FLAGGED)])
def test_hired(share, n):
    assert_no_disparity(table(.60, share, n), outcome="hired", by="race", cluster=None)

@pytest.mark.fairness
@pytest.mark.parametrize("share", [.60, .61, .62])
def test_even(share):
    assert_no_disparity(table(.60, share), outcome="hired", by="race", cluster=None)
"""


def test_a_strong_justified_flag_fails_the_session_and_no_test(
    pytester: pytest.Pytester, run_in_mode: Run, findings: Callable[[], list[dict[str, Any]]]
) -> None:
    """p = .0007, .003 across four findings: the tests are green, the session is not, and says for which test."""
    pytester.makepyfile(SUITE.replace("FLAGGED", ".48, 400"))
    result = run_in_mode("-o", "fairness_session_alpha=.05")
    result.assert_outcomes(passed=4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*session fails at fairness_session_alpha 0.05: 1 finding*", "*test_hired?0.48-400?*"])
    told = {finding["verdict"]: finding["details"]["session"] for finding in findings()}
    assert told["FLAG"]["findings"] == 4
    assert told["FLAG"]["corrected_p_value"] == pytest.approx(4 * told["FLAG"]["p_value"])
    assert told["PASS"]["corrected_p_value"] == 1.0


def test_a_weak_one_is_said_to_be_within_chance_and_fails_nothing(pytester: pytest.Pytester, run: Run) -> None:
    """p = .02 by itself, .08 across four findings."""
    pytester.makepyfile(SUITE.replace("FLAGGED", ".49, 220"))
    result = run("-o", "fairness_session_alpha=.05")
    result.assert_outcomes(passed=4)
    assert result.ret == pytest.ExitCode.OK
    text = " ".join(result.stdout.str().split())
    assert "beyond chance by itself, but not across the findings of this session (Holm p .0" in text


def test_by_default_and_from_the_ini_file(pytester: pytest.Pytester, run: Run) -> None:
    """Off unless asked for; every finding's session p is told all the same. A level out of range is refused."""
    pytester.makepyfile(SUITE.replace("FLAGGED", ".48, 400"))
    result = run()
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*FLAG*justified, session p .*"])
    assert run("-o", "fairness_session_alpha=.05").ret == pytest.ExitCode.TESTS_FAILED
    refused = run("-o", "fairness_session_alpha=5")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*fairness_session_alpha='5': must be a level between 0 and 1*"])
