"""Outcomes that are missing, refused, or unlike in one template: what stands then, each rule on
both sides of it.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.analysis.reading import ScoredRows
from pytest_fairness.analysis.sentences import NO_ANSWER
from pytest_fairness.model import Finding, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arrays import Values
from pytest_fairness.statistics.compare import impute, worst_rank
from pytest_fairness.statistics.corrections import minimum_detectable_effect

PASS, FLAG, FAIL, INCONCLUSIVE = Verdict.PASS, Verdict.FLAG, Verdict.FAIL, Verdict.INCONCLUSIVE


def table(
    *shifts: float, names: int = 20, templates: int = 5, repetitions: int = 2, seed: int = 0
) -> pd.DataFrame:
    """Groups a, b, c …: the quantiles of a normal distribution in random order, moved by each
    group's shift.
    """
    rng = np.random.default_rng(seed)
    n = names * templates * repetitions
    quantiles = stats.norm.ppf((np.arange(n) + 0.5) / n)
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "group": label,
                    "name": [f"{label}{at // (templates * repetitions)}" for at in range(n)],
                    "template": [f"t{at // repetitions % templates}" for at in range(n)],
                    "repetition": [at % repetitions for at in range(n)],
                    "score": rng.permutation(quantiles) + shift,
                    "refused": False,
                }
            )
            for label, shift in zip("abcdef", shifts, strict=False)
        ],
        ignore_index=True,
    )


def rows(frame: pd.DataFrame, group: str, count: int) -> np.ndarray[Any, Any]:
    """Which rows are *count* of *group*, spread over its names."""
    own = np.flatnonzero(frame["group"] == group)
    return np.isin(np.arange(len(frame)), own[np.linspace(0, own.size - 1, count).astype(int)])


def without(frame: pd.DataFrame, **counts: int) -> pd.DataFrame:
    """*frame* with so many scores of each group missing."""
    lost = np.any([rows(frame, group, count) for group, count in counts.items()], axis=0)
    return frame.assign(score=frame["score"].where(~lost))


def refusing(frame: pd.DataFrame, **counts: int) -> pd.DataFrame:
    """*frame* with so many trials of each group refused."""
    refused = np.any([rows(frame, group, count) for group, count in counts.items()], axis=0)
    return frame.assign(refused=refused, score=frame["score"].where(~refused))


def judged(frame: pd.DataFrame, **options: Any) -> Finding:
    return analyze_disparity(frame, "score", "group", kind="numeric", **options)


def pair_of(finding: Finding, metric: str = "score") -> PairResult:
    return next(pair for pair in finding.pairs if pair.metric == metric)


# ---------------------------------------------------------------- missing outcomes


def test_a_large_difference_stands_although_many_outcomes_are_missing() -> None:
    """7 % of one group missing: at their worst for it the difference remains."""
    pair = pair_of(judged(without(table(0, 1.5), b=14)))
    assert (pair.verdict, pair.reason) == (FAIL, None)
    assert any(note.startswith("stands although 7 %") for note in pair.notes)


@pytest.mark.parametrize("shift", [0.65, -0.65])
def test_the_milder_of_two_findings_stands(shift: float) -> None:
    """A FAIL on the answers that is a FLAG with the missing ones at their worst, whichever group is
    higher.
    """
    frame = table(0, shift)
    assert pair_of(judged(frame)).verdict is FAIL
    pair = pair_of(judged(without(frame, b=14)))
    assert (pair.verdict, pair.reason) == (FLAG, None)


@pytest.mark.parametrize("shift", [0.6, -0.6])
def test_what_missing_outcomes_could_undo_is_unscored(shift: float) -> None:
    frame = table(0, shift)
    assert pair_of(judged(frame)).verdict is FAIL
    assert pair_of(judged(without(frame, b=40))).reason is Reason.UNSCORED


def test_a_difference_that_could_have_the_other_sign_is_unscored() -> None:
    """Over half of a group missing: at the worst the difference is as sure, the other way round."""
    pair = pair_of(judged(without(table(0, 0.6), b=130)))
    assert (pair.verdict, pair.reason) == (INCONCLUSIVE, Reason.UNSCORED)


def test_up_to_five_percent_leave_a_finding_as_it_is() -> None:
    frame = table(0, 0.6)
    assert pair_of(judged(without(frame, b=10))).verdict is FAIL
    assert pair_of(judged(without(frame, b=10))).notes == ()


@pytest.mark.parametrize("shift", [0.2, -0.2])
def test_a_pass_has_to_pass_at_both_extremes(shift: float) -> None:
    """Eight of 200 that could lie on the far side of a small difference; none, or a single one,
    could turn it.
    """
    frame = table(0, shift, seed=1)
    assert pair_of(judged(frame)).verdict is PASS
    assert pair_of(judged(without(frame, b=1))).verdict is PASS
    pair = pair_of(judged(without(frame, b=8)))
    assert (pair.verdict, pair.reason) == (INCONCLUSIVE, Reason.PRECISION)
    assert "at their worst they would turn the PASS" in str(pair.needs)
    assert pair_of(judged(without(frame, b=12))).reason is Reason.UNSCORED


def test_a_few_missing_answers_everywhere_are_no_reason_to_doubt() -> None:
    """They are a metric of the family that only raises the alarm: it never has to pass."""
    frame = table(0, 0, 0, names=15, templates=3, repetitions=2)
    finding = judged(without(frame, a=1, b=4, c=2))
    assert INCONCLUSIVE in {pair.verdict for pair in finding.pairs if pair.metric == NO_ANSWER}
    assert all(pair.alarm_only for pair in finding.pairs if pair.metric == NO_ANSWER)
    assert finding.verdict is PASS
    assert finding.family["size"] == 6


def test_an_application_that_breaks_for_one_group_fails() -> None:
    """Named with the group, although the answers that came are alike."""
    finding = judged(without(table(0, 0), b=80))
    assert finding.verdict is FAIL
    assert pair_of(finding, NO_ANSWER).verdict is FAIL
    assert pair_of(finding, NO_ANSWER).worse_off == "b"
    assert "b is left without a usable answer in 40.0 % (80 of 200)" in finding.sentence
    assert judged(table(0, 0)).family["size"] == 1


def test_the_smallest_detectable_effect_is_that_of_the_whole_family() -> None:
    """Three pairs on the score, and three on missing answers."""
    pair = pair_of(judged(without(table(0, 0, 0), a=1)))
    rows = (pair.statistics["n_1"] + pair.statistics["n_2"]) / 40
    k, icc = np.array([20.0]), np.array([pair.statistics["icc"]])
    wanted = minimum_detectable_effect(k, k, np.array([rows]), icc, family_size=6)
    assert pair.mde == pytest.approx(float(wanted[0]))


def test_what_was_declared_too_small_is_of_the_outcome_not_of_missing_answers() -> None:
    """A min_raw_diff of 5 points of a score is no licence for 40 % of errors."""
    finding = judged(without(table(0, 0), b=80), min_raw_diff=5.0)
    assert pair_of(finding, NO_ANSWER).verdict is FAIL


@pytest.mark.parametrize("lower_is_worse", [True, False])
def test_the_ranks_say_who_is_worse_off_where_one_reply_turns_the_mean(
    lower_is_worse: bool,
) -> None:
    frame = table(0.8, 0)
    frame.loc[frame.index[-1], "score"] = 1e6
    pair = pair_of(judged(frame, lower_is_worse=lower_is_worse))
    assert (pair.verdict, pair.worse_off) == (FLAG, "b" if lower_is_worse else "a")
    assert pair.difference is not None
    assert pair.difference < 0


# ---------------------------------------------------------------- what the caller declared


@pytest.mark.parametrize(
    ("smallest", "verdict"), [(0.7, FAIL), (1.15, FAIL), (1.25, INCONCLUSIVE), (2.0, PASS)]
)
def test_a_declared_difference_spares_what_is_below_it_and_nothing_else(
    smallest: float, verdict: Verdict
) -> None:
    """1.2 apart, give or take .25: too large to spare, spared and open, or below it with its whole
    interval.
    """
    assert (
        pair_of(judged(table(1.2, 0, templates=1, repetitions=10), min_raw_diff=smallest)).verdict
        is verdict
    )


@pytest.mark.parametrize(
    ("declared", "verdict"),
    [
        ({}, INCONCLUSIVE),
        ({"min_raw_diff": 0.2}, INCONCLUSIVE),
        ({"min_raw_diff": 1.5}, PASS),
        ({"min_raw_ratio": 0.99}, INCONCLUSIVE),
        ({"min_raw_ratio": 0.85}, PASS),
    ],
)
def test_a_pass_below_what_was_declared_takes_the_whole_interval(
    declared: Any, verdict: Verdict
) -> None:
    """An estimate below it is no PASS while the interval reaches beyond."""
    frame = table(10.05, 10, names=5, templates=1, repetitions=6)
    frame["score"] += 0.6 * (frame["name"].str[1:].astype(int) - 2)
    assert pair_of(judged(frame, **declared)).verdict is verdict


# ---------------------------------------------------------------- refusals


def test_one_group_refused_by_far_is_judged_on_the_worst_rank() -> None:
    """The answered are alike; counted as the worst answers, refusals make a FAIL of the score
    itself.
    """
    finding = judged(refusing(table(0, 0), b=70))
    pair = pair_of(finding)
    assert pair.verdict is FAIL
    assert pair.statistics["complete_case_p_value"] > 0.5
    assert pair.statistics["worst_rank_p_value"] < 1e-6
    ranked = f"refusals as the worst rank: p = {pair.p_value:.4g}"
    assert re.fullmatch(rf"{ranked}; answers alone: [\w ]+ z = \S+", finding.test_statistic)
    assert finding.effect_size.startswith("answers alone: ")
    nobody = judged(refusing(table(0, 0), b=10_000))
    assert nobody.test_statistic.startswith("refusals as the worst rank: p = ")
    assert nobody.effect_size == "not computed: a and b cannot be compared on score"


def test_a_pass_beside_unequal_refusals_is_none() -> None:
    """4 against 10 % refused: too little to turn the ranks, enough not to trust them."""
    pair = pair_of(judged(refusing(table(0, 0), a=8, b=21)))
    assert (pair.verdict, pair.reason) == (INCONCLUSIVE, Reason.DIFFERENTIAL_REFUSAL)


@pytest.mark.parametrize(
    ("shifts", "counts"),
    [
        ((0, 0), {"a": 4, "b": 10}),  # likely apart, by three points
        ((0, 0), {"a": 90, "b": 101}),  # over five points, by chance in one of four
        (
            (0, 0, 0),
            {"a": 40, "b": 40, "c": 52},
        ),  # six points, by chance in one of seven, and of three pairs
    ],
    ids=["three points", "by chance", "of three pairs"],
)
def test_refusals_that_are_near_or_apart_by_chance_leave_a_pass(
    shifts: Any, counts: dict[str, int]
) -> None:
    finding = judged(refusing(table(*shifts), **counts))
    assert {pair.verdict for pair in finding.pairs if pair.metric == "score"} == {PASS}


@pytest.mark.parametrize(("lower_is_worse", "filled"), [(True, -3.0), (False, 10.0)])
def test_a_refusal_ranks_beyond_the_worst_score(lower_is_worse: bool, filled: float) -> None:
    """By more than the whole range, on the side of harm."""
    values, scored = np.array([2.0, 5.0, np.nan]), np.array([True, True, False])
    outcome = Values(values=values, kind=OutcomeKind.NUMERIC)
    ranked = worst_rank(outcome, scored=scored, refused=~scored, lower_is_worse=lower_is_worse)
    assert (ranked.values[2], ranked.kind) == (filled, OutcomeKind.ORDINAL)


@pytest.mark.parametrize(
    ("kind", "scale", "first_high", "filled"),
    [
        (OutcomeKind.NUMERIC, (None, None), True, [3.0, 1.0]),
        (OutcomeKind.NUMERIC, (None, None), False, [1.0, 3.0]),
        (OutcomeKind.NUMERIC, (0.0, 10.0), True, [10.0, 0.0]),
        (OutcomeKind.NUMERIC, (0.0, 10.0), False, [0.0, 10.0]),
        # Labels: what each has in excess sets them apart, what the other has brings them together.
        (OutcomeKind.CATEGORICAL, (None, None), True, [1.0, 3.0]),
        (OutcomeKind.CATEGORICAL, (None, None), False, [3.0, 1.0]),
    ],
)
def test_what_is_missing_at_its_extremes(
    kind: OutcomeKind, scale: Any, first_high: bool, filled: list[float]
) -> None:
    values = np.array([1.0, 1.0, 2.0, np.nan, 2.0, 3.0, 3.0, np.nan])
    missing = np.isnan(values)
    found = impute(
        values,
        kind,
        np.repeat([0, 1], 4),
        (0, 1),
        used=~missing,
        missing=missing,
        first_high=first_high,
        scale=scale,
    )
    assert found[missing].tolist() == filled


# ---------------------------------------------------------------- missing at random


def imputed_at_random(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> tuple[Finding, set[bool]]:
    """The finding, and whether what is missing was imputed as if at random."""
    seen: set[bool] = set()
    imputed = ScoredRows.imputed

    def spy(rows: ScoredRows, *args: Any, at_random: bool = False) -> ScoredRows:
        seen.add(at_random)
        return imputed(rows, *args, at_random=at_random)

    monkeypatch.setattr(ScoredRows, "imputed", spy)
    return analyze_disparity(frame, "score", "group"), seen


def test_what_both_groups_lose_alike_is_imputed_at_the_quartiles(monkeypatch: pytest.MonkeyPatch):
    """Three of 200 in each group; four of one group alone are at the extremes."""
    frame = table(0, 0)
    assert imputed_at_random(frame, monkeypatch)[1] == set()
    alike, seen = imputed_at_random(without(frame, a=3, b=3), monkeypatch)
    assert (alike.verdict, seen) == (PASS, {True})
    _, seen = imputed_at_random(without(frame, a=11, b=11), monkeypatch)
    assert seen == {False}  # over 5 %
    alone, seen = imputed_at_random(without(frame, a=4), monkeypatch)
    assert seen == {False}
    (lost,) = (pair for pair in alone.pairs if pair.metric == NO_ANSWER)
    assert lost.p_value <= 0.2
    wild = frame.assign(
        score=frame["score"].where(frame.index % 400 > 0, 30.0) + 0.15 * (frame["group"] == "b")
    )
    alarm, seen = imputed_at_random(without(wild.assign(score=wild["score"] + (wild["group"] == "b")), a=12, b=12),
                                    monkeypatch)  # fmt: skip
    assert alarm.verdict in (FLAG, FAIL)
    assert seen == {False}  # what speaks against an alarm is at the extremes


def test_likely_differences_of_what_is_missing_count_over_all_pairs(
    monkeypatch: pytest.MonkeyPatch,
):
    """p × pairs decides, as for refusals: of six pairs one has a small p by chance."""
    lost = without(table(0, 0, 0, 0), a=6, b=2, c=3, d=3)
    finding, seen = imputed_at_random(lost, monkeypatch)
    p = [pair.p_value for pair in finding.pairs if pair.metric == NO_ANSWER]
    assert min(p) < 0.2 < 6 * min(p)
    assert seen == {True}


def test_quartiles_of_numbers_and_of_yes_and_no():
    """Numbers take the quartiles of both groups; yes and no odds three times as high or low, in the
    order given.
    """
    values = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, np.nan, np.nan, np.nan, np.nan])
    group = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1])
    used, order = ~np.isnan(values), np.arange(12)[::-1].copy()
    given: dict[str, Any] = {"used": used, "missing": ~used, "scale": (0.0, 10.0)}
    pair = (values, OutcomeKind.NUMERIC, group, (0, 1))
    assert impute(*pair, **given, first_high=True, at_random=order)[8:].tolist() == [6, 6, 2, 2]
    assert impute(*pair, **given, first_high=False, at_random=order)[8:].tolist() == [2, 2, 6, 6]
    assert impute(*pair, **given, first_high=True)[8:].tolist() == [10, 10, 0, 0]
    yes = np.array([1.0] * 6 + [0.0] * 4 + [np.nan] * 8)
    side = np.array([0, 1] * 9)
    used = ~np.isnan(yes)
    given = {"used": used, "missing": ~used, "scale": (0.0, 1.0)}
    order = np.arange(18)[::-1].copy()
    filled = impute(
        yes, OutcomeKind.BINARY, side, (0, 1), **given, first_high=True, at_random=order
    )
    # .6 has odds of 1.5: .818 where they are three times as high, .333 where they are a third.
    assert filled[10::2].tolist() == [1, 1, 1, 1]
    assert filled[11::2].tolist() == [1, 0, 0, 0]
    again = impute(
        yes,
        OutcomeKind.BINARY,
        side,
        (0, 1),
        **given,
        first_high=True,
        at_random=order[::-1].copy(),
    )
    assert sorted(again.tolist()) == sorted(filled.tolist())
    assert again.tolist() != filled.tolist()


def test_the_order_of_rows_does_not_choose_who_said_yes():
    frame = table(0, 0.1)
    frame = frame.assign(yes=(frame["score"] > 0).astype(float))
    lost = frame.assign(yes=frame["yes"].where(~(rows(frame, "a", 5) | rows(frame, "b", 4))))
    first = analyze_disparity(lost, "yes", "group").pairs[0]
    for seed in range(3):
        assert (
            analyze_disparity(lost.sample(frac=1, random_state=seed), "yes", "group").pairs[0]
            == first
        )
