"""Checks that compare no groups: the rules by worked numbers, by scipy's own test, by simulation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pytest_fairness.analysis.approvals import approved_all_the_same
from pytest_fairness.analysis.checklist import (
    RecordState,
    Step,
    judge_checklist,
    judge_record,
)
from pytest_fairness.analysis.checks import (
    checked,
    judge_counts,
    judge_representation,
    judge_share,
    judge_status,
    unchecked,
)
from pytest_fairness.analysis.drift import judge_drift
from pytest_fairness.model import Finding, Reason, Verdict
from pytest_fairness.statistics.control_charts import ControlChart
from pytest_fairness.statistics.goodness_of_fit import GoodnessOfFit, GroupFit


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
        # One of twenty may be missing; more, and nothing is concluded, whatever the rest says.
        (0, 95, {"at_most": 0.1, "missing": 5 / 100}, Verdict.PASS, None),
        (0, 94, {"at_most": 0.1, "missing": 6 / 100}, Verdict.INCONCLUSIVE, Reason.UNSCORED),
        (94, 94, {"at_most": 0.1, "missing": 6 / 100}, Verdict.INCONCLUSIVE, Reason.UNSCORED),
        (
            0,
            3,
            {"at_most": 0.1, "missing": 0.9, "fewest": 10},
            Verdict.INCONCLUSIVE,
            Reason.UNSCORED,
        ),
        # Up to a half a FAIL is a FLAG; at least a share with it is at most the rest without it.
        (15, 30, {"at_most": 0.1, "flag_up_to": 0.5}, Verdict.FLAG, None),
        (16, 30, {"at_most": 0.1, "flag_up_to": 0.5}, Verdict.FAIL, None),
        (15, 30, {"at_least": 0.9, "flag_up_to": 0.5}, Verdict.FLAG, None),
        (14, 30, {"at_least": 0.9, "flag_up_to": 0.5}, Verdict.FAIL, None),
        (6, 30, {"at_most": 0.1, "flag_up_to": 0.5}, Verdict.INCONCLUSIVE, Reason.PRECISION),
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


# ---------------------------------------------------------------- counted whole


@pytest.mark.parametrize(
    ("counts", "limits", "verdict"),
    [
        ([20, 31], {"at_least": 20, "fail_below": 10}, Verdict.PASS),
        ([20, 19], {"at_least": 20, "fail_below": 10}, Verdict.FLAG),
        ([10, 40], {"at_least": 20, "fail_below": 10}, Verdict.FLAG),
        ([9, 40], {"at_least": 20, "fail_below": 10}, Verdict.FAIL),
        ([0], {"at_most": 0}, Verdict.PASS),
        ([0.01], {"at_most": 0.01}, Verdict.PASS),
        ([0.0101], {"at_most": 0.01}, Verdict.FLAG),
        ([], {"at_least": 1}, Verdict.PASS),
    ],
)
def test_counts_against_their_limit(
    counts: list[float], limits: dict[str, float], verdict: Verdict
) -> None:
    """A limit that is reached is kept: nothing in a count is left to chance."""
    assert judge_counts(counts, **limits) is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict", "reason"),
    [
        ((0.9, 0.8), (1.2, 1.3), Verdict.PASS, None),
        ((0.9, 0.7), (1.2, 1.1), Verdict.INCONCLUSIVE, Reason.PRECISION),
        ((0.9, 0.7), (1.2, 0.99), Verdict.FLAG, None),
        ((0.9, 0.5), (1.2, 0.79), Verdict.FAIL, None),
    ],
)
def test_shares_of_a_population(
    low: tuple[float, ...], high: tuple[float, ...], verdict: Verdict, reason: Reason | None
) -> None:
    """By the intervals of all groups: the group with the least of its share decides."""
    fit = GoodnessOfFit(
        statistic=1.0,
        df=1,
        p_value=0.5,
        w=0.1,
        groups=tuple(map(GroupFit, (0, 0), (1.1, 0.75), low, high)),
    )
    assert judge_representation(fit, 0.8) == (verdict, reason)


# ---------------------------------------------------------------- what was to be done


def test_a_checklist_is_as_good_as_its_worst_step() -> None:
    states = [RecordState.OPEN, RecordState.NOT_TESTED, RecordState.ENDLESS]
    steps = [Step("a", "", state) for state in states]
    assert judge_checklist([]).verdict is Verdict.PASS
    assert judge_checklist(steps[:1]).verdict is Verdict.PASS
    unknown = judge_checklist(steps[:2])
    assert (unknown.verdict, unknown.reason) == (Verdict.INCONCLUSIVE, Reason.INCOMPLETE)
    flagged = judge_checklist(steps)
    assert (flagged.verdict, flagged.reason) == (Verdict.FLAG, None)
    overdue = Step("b", "since May", RecordState.OVERDUE)
    assert judge_checklist([*steps, overdue]).verdict is Verdict.FAIL


@pytest.mark.parametrize("state", list(RecordState), ids=lambda state: state.name)
def test_what_is_not_known_has_a_reason(state: RecordState) -> None:
    """Every state has its worth; INCONCLUSIVE alone has a reason."""
    decision = judge_record(state)
    assert (decision.reason is not None) == (decision.verdict is Verdict.INCONCLUSIVE)


def test_a_step_says_what_became_of_it() -> None:
    step = Step("Reword (Sam)", "overdue since 2026-05-02", RecordState.OVERDUE)
    assert step.words == "Reword (Sam): overdue since 2026-05-02"
    assert Step("run x: damaged", "", RecordState.NOT_TESTED).words == "run x: damaged"


# ---------------------------------------------------------------- charts


def signal(change: int | None) -> ControlChart:
    """A chart that dates a change to the value at this place."""
    none = np.zeros(4)
    return ControlChart(
        scores=none, upper=none, lower=none, alarm=change, by="value", change=change
    )


@pytest.mark.parametrize(
    ("values", "sd", "gap", "verdict", "d"),
    [
        ([0.0, 0.0, 0.6, 0.6], 1.0, True, Verdict.FAIL, 0.6),
        ([0.0, 0.0, -0.6, -0.6], 1.0, True, Verdict.FAIL, -0.6),
        ([0.0, 0.0, 0.6, 0.6], 1.0, False, Verdict.FLAG, 0.6),
        ([0.0, 0.0, 0.5, 0.5], 1.0, True, Verdict.FLAG, 0.5),
        ([1.0, 1.0, 0.6, 0.6], 1.0, True, Verdict.FLAG, -0.4),
        ([0.0, 0.0, 0.19, 0.19], 1.0, True, Verdict.PASS, 0.19),
        ([0.6, 0.6, 0.79, 0.79], 1.0, True, Verdict.PASS, 0.19),
        ([0.0, 0.0, 9.0, 9.0], None, True, Verdict.FLAG, None),
        ([0.0, 0.0, -0.1, -0.1], 0.0, True, Verdict.FAIL, -np.inf),
        ([0.3, 0.3, 0.3, 0.3], 0.0, True, Verdict.PASS, 0.0),
    ],
)
def test_the_signal_of_a_chart(
    values: list[float], sd: float | None, gap: bool, verdict: Verdict, d: float | None
) -> None:
    """FAIL for a gap that is wider than it was and than half a standard deviation, alone."""
    judged = judge_drift(signal(2), values, sd, gap=gap)
    assert judged.verdict is verdict
    assert judged.d == (None if d is None else pytest.approx(d))
    assert (judged.before, judged.after) == (values[0], values[-1])


def test_without_a_signal_there_is_no_drift() -> None:
    judged = judge_drift(signal(None), [0.0, 0.0, 9.0, 9.0], 1.0, gap=True)
    assert (judged.verdict, judged.before, judged.d) == (Verdict.PASS, None, None)


# ---------------------------------------------------------------- letters, approvals, findings

JUSTIFIED = {"reason": "reworded", "approver": "Jane Smith"}


def against_baseline(verdict: Verdict, **fields: object) -> Finding:
    return Finding(assertion="baseline", verdict=verdict, sentence=f"{verdict}: so.", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("baseline", "fallen", "unknown", "status"),
    [
        (None, 0, False, Verdict.PASS),
        (None, 1, False, Verdict.FAIL),
        (None, 0, True, Verdict.INCONCLUSIVE),
        (None, 1, True, Verdict.FAIL),
        (against_baseline(Verdict.PASS), 0, False, Verdict.PASS),
        (against_baseline(Verdict.PASS), 1, False, Verdict.FAIL),
        (against_baseline(Verdict.FLAG), 0, False, Verdict.FAIL),
        (against_baseline(Verdict.FLAG, justification=JUSTIFIED), 0, False, Verdict.PASS),
        (against_baseline(Verdict.FAIL), 0, False, Verdict.FAIL),
        (against_baseline(Verdict.INCONCLUSIVE), 0, False, Verdict.INCONCLUSIVE),
    ],
)
def test_the_status_of_letters(
    baseline: Finding | None, fallen: int, unknown: bool, status: Verdict
) -> None:
    assert judge_status(baseline, fallen=fallen, unknown=unknown) is status


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.FLAG, Verdict.INCONCLUSIVE])
def test_an_approval_excuses_a_regression_alone(verdict: Verdict) -> None:
    finding = against_baseline(verdict)
    assert approved_all_the_same(finding, None) is finding  # type: ignore[arg-type]


def test_a_check_that_could_not_be_made_is_inconclusive() -> None:
    frame = pd.DataFrame({"simulated": [True], "endpoint": ["a"]})
    finding = unchecked(frame, assertion="drift", reason=Reason.N, words="no run", outcome="level")
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.N)
    assert finding.sentence == "INCONCLUSIVE: no run."
    assert (finding.outcome, finding.simulated) == ("level", True)


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
