"""Checks that compare no groups: the rules by worked numbers, by scipy's own test, by simulation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pytest_fairness.analysis.checks import checked, judge_checklist, judge_share
from pytest_fairness.model import Reason, Verdict


@pytest.mark.parametrize(
    ("count", "units", "limits", "verdict", "reason"),
    [
        # None of 28 is shown to be at most .1: 1 − .05^(1/28) = .1015; none of 29 is: .0981.
        (0, 28, {"at_most": 0.1}, Verdict.INCONCLUSIVE, Reason.PRECISION),
        (0, 29, {"at_most": 0.1}, Verdict.PASS, None),
        # Of 30 at .1 six or more have a chance of .073, seven of .026.
        (6, 30, {"at_most": 0.1}, Verdict.INCONCLUSIVE, Reason.PRECISION),
        (7, 30, {"at_most": 0.1}, Verdict.FAIL, None),
        # Of three tests each has .0167 to itself.
        (7, 30, {"at_most": 0.1, "tests": 3}, Verdict.INCONCLUSIVE, Reason.PRECISION),
        (30, 30, {"at_least": 0.9}, Verdict.PASS, None),
        (23, 30, {"at_least": 0.9}, Verdict.FAIL, None),
        (0, 9, {"at_most": 0.5, "fewest": 10}, Verdict.INCONCLUSIVE, Reason.N),
        (0, 0, {"at_most": 0.5}, Verdict.INCONCLUSIVE, Reason.N),
    ],
)
def test_a_share_against_its_limit(
    count: float, units: float, limits: dict[str, float], verdict: Verdict, reason: Reason | None
) -> None:
    judged = judge_share(count, units, **limits)  # type: ignore[arg-type]
    assert (judged.verdict, judged.reason) == (verdict, reason)


@pytest.mark.parametrize(("count", "units"), [(0, 12), (3, 40), (12, 12), (77, 400)])
def test_figures_are_those_of_scipy(count: int, units: int) -> None:
    """The chance and the interval, by scipy.stats.binomtest."""
    judged = judge_share(count, units, at_most=0.15)
    expected = stats.binomtest(count, units, 0.15, alternative="greater")
    assert judged.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    interval = stats.binomtest(count, units).proportion_ci(0.95, method="exact")
    assert (judged.low, judged.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_one_side_mirrors_the_other() -> None:
    """At least nine tenths with it is at most one tenth without it."""
    for count in range(31):
        least = judge_share(count, 30, at_least=0.9)
        most = judge_share(30 - count, 30, at_most=1 - 0.9)
        assert (least.verdict, least.reason) == (most.verdict, most.reason)
        assert least.p_value == pytest.approx(most.p_value)


@pytest.mark.parametrize("units", [12, 30, 200])
@pytest.mark.parametrize("limit", [0.05, 0.25])
def test_errors_are_as_rare_as_the_rule_says(units: int, limit: float) -> None:
    """At the limit itself at most .05 of the shares fail, and at most .05 of those just beyond it
    pass: by the binomial distribution, without a draw.
    """
    counts = np.arange(units + 1)
    verdicts = [judge_share(int(count), units, at_most=limit).verdict for count in counts]
    at_limit = stats.binom.pmf(counts, units, limit)
    beyond = stats.binom.pmf(counts, units, limit + 1e-9)
    failed = sum(
        p for p, verdict in zip(at_limit, verdicts, strict=True) if verdict is Verdict.FAIL
    )
    passed = sum(p for p, verdict in zip(beyond, verdicts, strict=True) if verdict is Verdict.PASS)
    assert failed <= 0.05
    assert passed <= 0.05
    assert verdicts == sorted(
        verdicts, key=[Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL].index
    )


def test_units_that_are_means_of_several_replies() -> None:
    """Between whole numbers the chance lies between theirs."""
    chances = [judge_share(count, 20, at_most=0.1).p_value for count in (3, 3.5, 4)]
    assert chances[0] > chances[1] > chances[2]


def test_one_limit_is_given() -> None:
    for limits in ({}, {"at_most": 0.1, "at_least": 0.2}):
        with pytest.raises(ValueError, match="give at_most or at_least"):
            judge_share(1, 10, **limits)  # type: ignore[arg-type]


def test_a_checklist_is_as_good_as_its_worst_step() -> None:
    assert judge_checklist([]) is Verdict.PASS
    assert judge_checklist([Verdict.PASS, Verdict.FLAG, Verdict.INCONCLUSIVE]) is Verdict.FLAG


def test_a_finding_of_a_check_has_the_provenance_of_its_table() -> None:
    """One simulated row makes it simulated, and a PASS on trials that were not run is withheld."""
    frame = pd.DataFrame({"simulated": [False, True], "endpoint": ["a", "a"]})
    finding = checked(frame, assertion="bait", verdict=Verdict.PASS, words="nothing was taken")
    assert finding.sentence == "PASS: nothing was taken."
    assert finding.simulated
    assert finding.model_endpoint == "a"
    unasked = frame.assign(status="not_run")
    withheld = checked(unasked, assertion="bait", verdict=Verdict.PASS, words="nothing was taken")
    assert withheld.verdict is Verdict.INCONCLUSIVE
