"""Looks: their levels, when they end, what stays green, and whole audits by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pytest_fairness import (
    Finding,
    Reason,
    Verdict,
    analyze_arms,
    analyze_disparity,
    analyze_equivalence,
    analyze_four_fifths,
    analyze_preference,
)
from pytest_fairness.analysis.looks import Look, LookPlan, budget, is_final, key_of, with_looks
from pytest_fairness.analysis.policy import SETTLED
from pytest_fairness.design.stages import RATES, SCORES, Stages, declared_looks, ladder_of, reached
from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind
from tests.statistics import by_hand
from tests.support.benchmarks import benchmark

PLAN = LookPlan(names=SCORES, red=0.015)
PAIR = ("group", "y", "A", "B")


def people(
    names: int,
    outcome: Callable[[str, int, int, np.random.Generator], float],
    *,
    groups: str = "AB",
    templates: int = 5,
    repetitions: int = 2,
    seed: int = 0,
) -> pd.DataFrame:
    """A row a trial; *outcome* takes the group, the place of the name, the template and chance."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            (group, f"{group}{name}", template, repetition, outcome(group, name, template, rng))
            for name in range(1, names + 1)
            for group in groups
            for template in range(templates)
            for repetition in range(repetitions)
        ],
        columns=["group", "name", "template", "repetition", "y"],
    ).assign(draw=lambda frame: frame["name"].str[1:].astype(int))


def noise(group: str, name: int, template: int, rng: np.random.Generator) -> float:
    return float(rng.normal())


def apart(shift: float, *, names: int = 20, groups: str = "AB", seed: int = 0) -> pd.DataFrame:
    """Four trials a name; the means of the first 20 names are equal but for group A, lower by
    *shift*.
    """
    frame = people(names, noise, groups=groups, templates=2, repetitions=2, seed=seed)
    means = frame[frame["draw"] <= 20].groupby("group")["y"].mean()
    return frame.assign(y=frame["y"] - frame["group"].map(means) - shift * (frame["group"] == "A"))


def first_names(frame: pd.DataFrame, look: Look) -> pd.DataFrame:
    return frame[frame["draw"] <= look.names].drop(columns="draw")


def found(frame: pd.DataFrame, look: Look, **options: Any) -> Finding:
    return analyze_disparity(first_names(frame, look), "y", "group", _look=look, **options)


# ---------------------------------------------------------------- levels

TABLE = {
    (0.015, (20, 40)): [(0.009302, 0.031006), (0.007589, 0.029723)],
    (0.015, (10, 20, 40)): [(0.005361, 0.017869), (0.004990, 0.018914), (0.007149, 0.027861)],
    (0.015, (10, 20, 40, 60)): [
        (0.003777, 0.012592),
        (0.003725, 0.013904),
        (0.005706, 0.021776),
        (0.005609, 0.023195),
    ],
    (0.015, (10, 20, 40, 80)): [
        (0.002919, 0.009728),
        (0.002971, 0.010987),
        (0.004753, 0.017905),
        (0.007070, 0.027430),
    ],
    (0.005, (10, 20, 40)): [(0.001787, 0.017869), (0.001582, 0.018914), (0.002254, 0.027861)],
    (0.0005, (10, 20, 40, 80)): [
        (0.000097, 0.009728),
        (0.000090, 0.010987),
        (0.000143, 0.017905),
        (0.000209, 0.027430),
    ],
}
"""R27: budget and names → the levels of each look, for red (two-sided) and for green (one-sided)."""


@pytest.mark.parametrize(("red", "names"), TABLE)
def test_each_look_has_its_levels(red: float, names: tuple[int, ...]) -> None:
    plan = LookPlan(names=names, red=red)
    for number, (alarm, passed) in enumerate(TABLE[red, names], 1):
        look = plan.look(number)
        assert look.red == pytest.approx(alarm, abs=5e-7)
        assert look.green == pytest.approx(passed, abs=5e-7)
        assert look.confidence == pytest.approx(1 - 2 * passed, abs=1e-6)
        assert (look.number, look.of, look.names) == (number, len(names), names[number - 1])
        assert look.last == (number == len(names))


def test_levels_follow_the_information() -> None:
    """26 names are what there is: the first of two looks has 10/26 of the data, not a half."""
    plan = LookPlan(names=(10, 26), red=0.015)
    assert plan.information == (10 / 26, 1.0)
    assert plan.look(1).red == pytest.approx(0.015 * math.log(1 + (math.e - 1) * 10 / 26), abs=1e-9)


@pytest.mark.parametrize(
    ("place", "tests", "alpha", "most"),
    [
        (0, 1, 0.05, 0.015),
        (0, 3, 0.05, 0.05 / 5.7),
        (0, 100, 0.05, 0.05 / 190),
        (0, 0, 0.05, 0.015),
        (1, 1, 0.05, 0.015 / 4),
        (2, 1, 0.05, 0.015 / 8),
        (1, 100, 0.05, 0.05 / 190 / 4),
        (0, 1, 0.01, 0.01),
        (0, 1, 0.10, 0.015),
        (1, 1, 0.01, 0.015 / 4),
    ],
)
def test_budget_of_an_assertion(place: int, tests: int, alpha: float, most: float) -> None:
    """Of the session's level in so many tests; its own alpha where that is smaller."""
    assert budget(0.05, tests, place, alpha) == pytest.approx(most, rel=1e-12)


def test_a_test_spends_no_more_than_half_as_much_again() -> None:
    whole = sum(budget(0.05, 10, place, 0.05) for place in range(40))
    assert whole == pytest.approx(1.5 * 0.05 / 19, rel=1e-9)


# ---------------------------------------------------------------- stages


@pytest.mark.parametrize(
    ("ladder", "most", "fewest", "looks"),
    [
        (SCORES, 200, 1, (10, 20, 40)),
        (RATES, 200, 1, (10, 20, 40, 80)),
        (RATES, 60, 1, (10, 20, 40, 60)),
        (RATES, 53, 1, (10, 20, 53)),  # 40 is within a quarter of 53
        (SCORES, 27, 1, (10, 20, 27)),  # 20 is not of 27 …
        (SCORES, 26, 1, (10, 26)),  # … and is of 26
        (SCORES, 20, 1, (10, 20)),
        (SCORES, 19, 1, (19,)),  # under the base design: one look
        (SCORES, 3, 1, (3,)),
        (SCORES, 200, 11, (20, 40)),  # too few trials at 10 names: joined to the next
        (SCORES, 200, 10, (10, 20, 40)),
        (SCORES, 200, 30, (40,)),
        (SCORES, 200, 90, (40,)),
    ],
)
def test_looks_that_names_reach(
    ladder: tuple[int, ...], most: int, fewest: int, looks: tuple[int, ...]
) -> None:
    assert reached(ladder, most, fewest=fewest) == looks


def test_looks_of_a_design() -> None:
    stages = Stages(size=80, base=20, per_name=10)
    assert stages.looks(OutcomeKind.NUMERIC) == (10, 20, 40)
    assert stages.looks(OutcomeKind.REFUSAL) == (10, 20, 40, 80)
    assert stages.first == 10
    assert not stages.single
    # Two trials a name: 10 names have fewer than the 30 that a verdict takes.
    assert replace(stages, per_name=2).looks(OutcomeKind.NUMERIC) == (20, 40)
    assert replace(stages, per_name=2).looks(OutcomeKind.BINARY, 50) == (40, 80)
    assert replace(stages, size=14).single
    declared = replace(stages, declared=(6, 12, 24), per_name=3)
    assert declared.looks(OutcomeKind.BINARY) == (12, 24)
    assert replace(declared, declared=(6,)).looks(OutcomeKind.BINARY) == (6,)


def test_looks_of_a_kind() -> None:
    rates = {kind for kind in OutcomeKind if ladder_of(kind) == RATES}
    assert rates == {OutcomeKind.BINARY, OutcomeKind.REFUSAL}


def test_declared_looks() -> None:
    assert declared_looks(None) is None
    assert declared_looks(1) == (1,)
    assert declared_looks(9) == (9,)
    assert declared_looks(10) == (10, 20)
    assert declared_looks([10, 20, 40]) == (10, 20, 40)
    for wrong in ([], [20, 10], [10, 10], [0, 10], [True, 10], [10.0]):
        with pytest.raises(UsageError):
            declared_looks(wrong)  # type: ignore[arg-type]


# ---------------------------------------------------------------- when nothing more is asked


def ending(verdict: Verdict, reason: Reason | None = None, *, lost: int = 0) -> Finding:
    """A finding on two groups, of whose trials so many of 100 have no answer."""
    finding = found(people(10, noise), PLAN.look(1), kind="numeric")
    [pair] = finding.pairs
    groups = [replace(group, n=100 - lost, unscored=lost) for group in finding.group_results]
    return replace(
        finding,
        verdict=verdict,
        reason=reason,
        pairs=[replace(pair, verdict=verdict, reason=reason)],
        group_results=groups,
    )


@pytest.mark.parametrize(
    ("verdict", "reason", "lost", "final"),
    [
        (Verdict.PASS, None, 0, [True, True, True]),
        (Verdict.FLAG, None, 0, [True, True, True]),
        (Verdict.FAIL, None, 0, [True, True, True]),
        (Verdict.INCONCLUSIVE, Reason.PRECISION, 0, [False, False, True]),
        (Verdict.INCONCLUSIVE, Reason.TEMPLATE, 0, [False, False, True]),
        (Verdict.INCONCLUSIVE, Reason.N, 0, [False, False, True]),
        (Verdict.INCONCLUSIVE, Reason.RAGGED, 0, [False, False, True]),
        (Verdict.INCONCLUSIVE, Reason.UNSCORED, 20, [False, False, True]),
        (Verdict.INCONCLUSIVE, Reason.UNSCORED, 21, [True, True, True]),
        (Verdict.INCONCLUSIVE, Reason.MIXED_MODELS, 0, [True, True, True]),
        (Verdict.INCONCLUSIVE, Reason.NO_ROOM, 0, [False, True, True]),
    ],
)
def test_what_ends_the_looks(
    verdict: Verdict, reason: Reason | None, lost: int, final: list[bool]
) -> None:
    finding = ending(verdict, reason, lost=lost)
    assert [is_final(finding, PLAN.look(number)) for number in (1, 2, 3)] == final


def test_undetermined_replies_are_unanswered() -> None:
    finding = ending(Verdict.INCONCLUSIVE, Reason.PRECISION)
    groups = [replace(group, n=79, undetermined=21) for group in finding.group_results]
    assert is_final(replace(finding, group_results=groups), PLAN.look(1))
    # Who was refused did answer.
    groups = [replace(group, n=70, refused=20, unscored=20) for group in finding.group_results]
    assert not is_final(replace(finding, group_results=groups), PLAN.look(1))


# ---------------------------------------------------------------- green stays, red comes first


def test_what_passes_is_settled() -> None:
    frame = apart(0.3, groups="ABC")
    look = PLAN.look(2)
    finding = found(frame, look, kind="numeric")
    assert [pair.verdict for pair in finding.pairs] == [
        Verdict.INCONCLUSIVE,
        Verdict.INCONCLUSIVE,
        Verdict.PASS,
    ]
    assert key_of(finding.pairs[2]) == ("group", "y", "B", "C")
    earlier = frozenset({("group", "y", "A", "C")})
    assert replace(look, settled=earlier).after(finding) == {
        ("group", "y", "A", "C"),
        ("group", "y", "B", "C"),
    }
    alarm = [replace(pair, alarm_only=True) for pair in finding.pairs]
    assert look.after(replace(finding, pairs=alarm)) == frozenset()


@pytest.mark.parametrize(("settled", "verdict"), [(False, "INCONCLUSIVE"), (True, "PASS")])
def test_green_stays_where_precision_is_in_doubt(settled: bool, verdict: str) -> None:
    look = PLAN.look(2, frozenset({PAIR} if settled else ()))
    frame = apart(0.3)
    finding = found(frame, look, kind="numeric")
    assert finding.verdict == verdict
    assert finding.pairs[0].corrected_p_value > look.red
    assert (SETTLED in finding.pairs[0].notes) == settled


@pytest.mark.parametrize("settled", [False, True])
def test_no_pair_stays_green_that_one_template_puts_in_doubt(settled: bool) -> None:
    """One template of five, at .01 over templates, far above the level of red: the pair is asked
    further, and has to be green anew.
    """

    def outcome(group: str, name: int, template: int, rng: np.random.Generator) -> float:
        return noise(group, name, template, rng) - 0.75 * (group == "A" and template == 2)

    frame = people(20, outcome, groups="ABCD", seed=12)
    pairs = frozenset(("group", "y", "A", other) for other in "BCD")
    look = PLAN.look(2, pairs if settled else frozenset())
    finding = found(frame, look, kind="numeric")
    doubtful = [pair for pair in finding.pairs if pair.reason is Reason.TEMPLATE]
    assert doubtful
    of_template = [
        block["p_value"] for block in finding.details["by_block"] if block["block"] == "t2"
    ]
    assert of_template == [] or min(of_template) > look.red / 5 / 30
    assert not {key_of(pair) for pair in doubtful} & look.after(finding)


def test_an_alarm_outranks_green() -> None:
    frame = apart(0.9)
    finding = found(frame, PLAN.look(2, frozenset({PAIR})), kind="numeric")
    assert finding.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    "settled",
    [
        frozenset({("group", "y", "A", "C")}),
        frozenset({("gender", "y", "A", "B")}),
        frozenset({("group", "refusal", "A", "B")}),
    ],
)
def test_another_pair_settles_nothing(settled: Any) -> None:
    frame = apart(0.3)
    finding = found(frame, PLAN.look(2, settled), kind="numeric")
    assert finding.reason is Reason.PRECISION


def test_no_room_and_too_few_are_not_settled() -> None:
    """What was green before has no excuse where the data cannot show anything."""
    frame = people(20, lambda *_: 1.0)
    finding = found(frame, PLAN.look(2, frozenset({PAIR})), kind="binary", room=True)
    assert finding.reason is Reason.NO_ROOM
    few = people(20, noise, templates=1, repetitions=1)
    finding = found(few, PLAN.look(2, frozenset({PAIR})), kind="numeric")
    assert finding.reason is Reason.N


def test_nothing_sticks_in_four_fifths() -> None:
    """The data choose whom the others are compared with, anew at each look."""
    frame = people(20, lambda group, name, *_: float((name * 7) % 20 < (9 if group == "A" else 10)))
    look = PLAN.look(2)
    first_look = analyze_four_fifths(first_names(frame, look), "y", "group", _look=look)
    assert first_look.reason is Reason.PRECISION
    settled = replace(look, settled=frozenset({(p.statistics["by"], p.metric, p.group_1, p.group_2)
                                               for p in first_look.pairs}))  # fmt: skip
    again = analyze_four_fifths(first_names(frame, look), "y", "group", _look=settled)
    assert again.verdict is Verdict.INCONCLUSIVE


# ---------------------------------------------------------------- too early for green


def single(names: int) -> Look:
    """The only look, of so many names."""
    return LookPlan(names=(names,), red=0.015).look(1)


def never(*_: Any) -> float:
    return 1.0


def nearly(group: str, name: int, template: int, rng: np.random.Generator) -> float:
    """197 and 197 of 200 at 20 names a group, 98 of 100 at 10: near 1 by points, not by odds."""
    return float((name, template) not in {(2 + (group == "A"), 1), (5, 3), (14, 2)})


def test_saturated_answers_pass_from_20_names_on() -> None:
    frame = people(20, never)
    early = found(frame, PLAN.look(1), kind="binary")
    assert early.reason is Reason.PRECISION
    assert "more names a group (now 10)" in str(early.pairs[0].needs)
    assert found(frame, PLAN.look(2), kind="binary").verdict is Verdict.PASS
    # The last look has what there is.
    assert found(frame, single(10), kind="binary").verdict is Verdict.PASS


def test_rates_near_1_pass_by_points_from_20_names_on() -> None:
    frame = people(20, nearly, templates=20, repetitions=1)
    early = found(frame, PLAN.look(1), kind="binary", favourable=True)
    assert early.reason is Reason.PRECISION
    late = found(frame, single(10), kind="binary", favourable=True)
    assert late.verdict is Verdict.PASS
    assert any("less than 5 points" in note for note in late.pairs[0].notes)
    assert found(frame, PLAN.look(2), kind="binary", favourable=True).verdict is Verdict.PASS


def alike(group: str, name: int, template: int, rng: np.random.Generator) -> float:
    """The same in both groups, so that any interval is inside the margin."""
    return math.sin(7 * name + 3 * template)


@pytest.mark.parametrize("analyze", ["disparity", "equivalence", "four fifths"])
def test_no_pair_is_green_before_10_names(analyze: str) -> None:
    frame = people(40, alike, templates=20, repetitions=2)
    frame["hired"] = frame["y"] > -0.95

    def verdict(look: Look) -> tuple[Verdict, Reason | None]:
        table = first_names(frame, look)
        if analyze == "disparity":
            finding = analyze_disparity(table, "y", "group", kind="numeric", _look=look)
        elif analyze == "equivalence":
            finding = analyze_equivalence(table, "y", "group", margin=1.0, _look=look)
        else:
            finding = analyze_four_fifths(table, "hired", "group", _look=look)
        return finding.verdict, finding.reason

    plan = LookPlan(names=(9, 10, 40), red=0.015)
    assert verdict(plan.look(1)) == (Verdict.INCONCLUSIVE, Reason.PRECISION)
    assert verdict(plan.look(2)) == (Verdict.PASS, None)
    assert verdict(single(9)) == (Verdict.PASS, None)


def test_equal_constants_are_too_early_everywhere() -> None:
    frame = people(20, never)
    plan = LookPlan(names=(10, 20, 40), red=0.015)
    for analyze, options in (
        (analyze_equivalence, {"margin": 0.1}),
        (analyze_four_fifths, {"favourable": 1.0}),
    ):
        verdicts = [
            analyze(first_names(frame, look), "y", "group", _look=look, **options).verdict
            for look in (plan.look(1), plan.look(2), single(10))
        ]
        assert verdicts == [Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.PASS]


def test_an_early_alarm_stands() -> None:
    """Too few names for green are not too few for red."""
    frame = people(40, lambda group, *rest: noise(group, *rest) - 2 * (group == "A"))
    look = LookPlan(names=(8, 40), red=0.015).look(1)
    assert found(frame, look, kind="numeric").verdict is Verdict.FAIL


# ---------------------------------------------------------------- levels reach every analysis


def test_equivalence_reads_both_levels() -> None:
    """PASS by two one-sided tests at the level of green, red at that of the look."""
    frame = apart(0.1)
    look = PLAN.look(2)
    table = first_names(frame, look)
    sided = analyze_equivalence(table, "y", "group", margin=0.5, alpha=look.green)
    p = sided.pairs[0].p_value
    for green, verdict in ((p * 1.01, Verdict.PASS), (p * 0.99, Verdict.INCONCLUSIVE)):
        changed = replace(look, green=green)
        finding = analyze_equivalence(table, "y", "group", margin=0.5, _look=changed)
        assert finding.verdict is verdict
    shifted = table.assign(y=table["y"] - 0.8 * (table["group"] == "A"))
    [pair] = analyze_equivalence(shifted, "y", "group", margin=0.3).pairs
    p = float(str(pair.statistics["difference_corrected_p_value"]))
    for red, verdict in ((p * 1.01, Verdict.FAIL), (p * 0.99, Verdict.INCONCLUSIVE)):
        changed = replace(look, red=red)
        finding = analyze_equivalence(shifted, "y", "group", margin=0.3, _look=changed)
        assert finding.verdict is verdict


@pytest.mark.parametrize(("factor", "verdict"), [(1.01, "FAIL"), (0.99, "INCONCLUSIVE")])
def test_disparity_is_red_at_the_level_of_the_look(factor: float, verdict: str) -> None:
    frame = people(20, lambda group, *rest: noise(group, *rest) - 0.6 * (group == "A"), seed=5)
    look = PLAN.look(2)
    p = found(frame, look, kind="numeric").pairs[0].corrected_p_value
    assert 0 < p < 0.05
    assert found(frame, replace(look, red=p * factor), kind="numeric").verdict == verdict


@pytest.mark.parametrize(("factor", "verdict"), [(1.01, "FAIL"), (0.99, "INCONCLUSIVE")])
def test_four_fifths_is_red_at_the_level_of_the_look(factor: float, verdict: str) -> None:
    frame = people(
        20, lambda g, n, t, rng: float(rng.random() < (0.3 if g == "A" else 0.5)), seed=5
    )
    look = LookPlan(names=RATES, red=0.015).look(2)
    table = first_names(frame, look)

    def judged(red: float) -> Finding:
        return analyze_four_fifths(
            table, "y", "group", favourable=1.0, _look=replace(look, red=red)
        )

    p = judged(0.01).pairs[0].corrected_p_value
    assert 0 < p < 0.05
    assert judged(p * factor).verdict == verdict


@pytest.mark.parametrize(("factor", "verdict"), [(1.01, "FLAG"), (0.99, "INCONCLUSIVE")])
def test_preference_is_red_at_the_level_of_the_look(factor: float, verdict: str) -> None:
    rng = np.random.default_rng(7)
    table = pd.DataFrame(
        [
            (*sides, name, template, "A" if rng.random() < 0.34 else "B")
            for name in range(20)
            for template in range(3)
            for sides in ("AB", "BA")
        ],
        columns=["first", "second", "name", "template", "chosen"],
    )
    look = PLAN.look(2)
    p = analyze_preference(table, _look=look).pairs[0].corrected_p_value
    assert 0 < p < 0.05
    assert analyze_preference(table, _look=replace(look, red=p * factor)).verdict == verdict


def arms(change: float, *, groups: str = "AB", seed: int = 2) -> pd.DataFrame:
    """Group A lower by .6 in the control arm, by *change* less in the treated one."""
    control = people(20, noise, groups=groups, seed=seed)
    treated = people(20, noise, groups=groups, seed=seed + 100)
    control.loc[control["group"] == "A", "y"] -= 0.6
    treated.loc[treated["group"] == "A", "y"] -= 0.6 - change
    return pd.concat([control.assign(arm="raw"), treated.assign(arm="scrubbed")])


def test_arms_shrink_at_the_level_of_green_and_grow_at_that_of_red() -> None:
    look = PLAN.look(2)
    contrast = {"treated": "scrubbed", "control": "raw"}
    shrinks = arms(0.6).drop(columns="draw")
    p = analyze_arms(shrinks, "y", **contrast).pairs[0].corrected_p_value
    for green, verdict in ((p * 1.01, Verdict.PASS), (p * 0.99, Verdict.INCONCLUSIVE)):
        finding = analyze_arms(shrinks, "y", **contrast, _look=replace(look, green=green, red=0))
        assert finding.verdict is verdict
    grows = arms(-0.6).drop(columns="draw")
    p = analyze_arms(grows, "y", **contrast).pairs[0].corrected_p_value
    for red, verdict in ((p * 1.01, Verdict.FAIL), (p * 0.99, Verdict.INCONCLUSIVE)):
        finding = analyze_arms(grows, "y", **contrast, _look=replace(look, red=red))
        assert finding.verdict is verdict


def test_what_shrank_in_an_arm_stays_so() -> None:
    contrast = {"treated": "scrubbed", "control": "raw"}
    look = replace(PLAN.look(2), green=1e-9, red=1e-9)
    frame = arms(0.6).drop(columns="draw")
    finding = analyze_arms(frame, "y", **contrast, _look=look)
    assert finding.reason is Reason.PRECISION
    settled = frozenset({key_of(finding.pairs[0])})
    finding = analyze_arms(frame, "y", **contrast, _look=replace(look, settled=settled))
    assert finding.verdict is Verdict.PASS
    assert SETTLED in finding.pairs[0].notes
    grows = arms(-1.2).drop(columns="draw")
    finding = analyze_arms(grows, "y", **contrast, _look=PLAN.look(2, settled))
    assert finding.verdict is Verdict.FAIL


def test_nothing_to_reduce_is_not_taken_for_shrunk_later() -> None:
    frame = pd.concat(
        [people(20, alike, templates=20).assign(arm=arm) for arm in ("raw", "scrubbed")]
    ).drop(columns="draw")
    look = PLAN.look(2)
    finding = analyze_arms(frame, "y", treated="scrubbed", control="raw", _look=look)
    [pair] = finding.pairs
    assert pair.verdict is Verdict.PASS
    assert look.after(finding) == frozenset()
    assert finding.verdict is Verdict.INCONCLUSIVE


# ---------------------------------------------------------------- order, and a name that is lost


def test_shuffling_rows_changes_nothing() -> None:
    frame = people(20, noise, groups="ABC", seed=9)
    look = PLAN.look(2, frozenset({PAIR}))
    finding = found(frame, look, kind="numeric")
    shuffled = found(frame.sample(frac=1, random_state=1), look, kind="numeric")
    key = ("verdict", "reason", "sentence")
    assert [getattr(finding, k) for k in key] == [getattr(shuffled, k) for k in key]
    for pair, again in zip(finding.pairs, shuffled.pairs, strict=True):
        assert (pair.verdict, key_of(pair)) == (again.verdict, key_of(again))
        figures = ("corrected_p_value", "effect", "effect_low", "effect_high")
        for figure in figures:
            assert getattr(pair, figure) == pytest.approx(getattr(again, figure), rel=1e-9)


def test_renaming_names_changes_nothing() -> None:
    """Whatever their order within a stage is called."""
    frame = people(20, noise, seed=9)
    look = PLAN.look(2)
    called = frame.assign(name=frame["group"] + frame["draw"].map(lambda n: f"{(n * 7) % 23:02}"))
    assert [
        p.corrected_p_value for p in found(called, look, kind="numeric").pairs
    ] == pytest.approx(
        [p.corrected_p_value for p in found(frame, look, kind="numeric").pairs], rel=1e-9
    )


def test_one_name_lost() -> None:
    """Of a name without a reply the look is made without: the levels are those of the plan."""
    frame = people(10, noise, templates=2, seed=6)
    frame = frame[frame["name"] != "A3"]
    look = PLAN.look(1)
    finding = found(frame, look, kind="numeric")
    assert finding.n_per_group == {"A": 36, "B": 40}
    assert judged_by_hand(first_names(frame, look), look.green).agrees(finding)
    assert finding.family["alpha"] == look.red


# ---------------------------------------------------------------- audits by hand

SHOWN = {
    Verdict.PASS: "green",
    Verdict.FLAG: "red",
    Verdict.FAIL: "red",
    Verdict.INCONCLUSIVE: "open",
}


@dataclass(frozen=True)
class ByHand:
    """What loops over rows make of two groups: p, the effects, and their intervals at 1 − 2·green."""

    p: float
    effects: list[float]
    intervals: list[tuple[float, float]]

    def colour(self, red: float) -> str:
        """What the rule says at the level *red*."""
        if self.p < red and max(map(abs, self.effects)) >= 0.2:
            return "red"
        if all(low > -0.5 and high < 0.5 for low, high in self.intervals):
            return "green"
        return "open"

    def agrees(self, finding: Finding) -> bool:
        """Whether p and the interval of the larger effect are those of the finding's pair."""
        [pair] = finding.pairs
        larger = max(range(2), key=lambda effect: abs(self.effects[effect]))
        return pair.corrected_p_value == pytest.approx(self.p, rel=1e-9) and (
            pair.effect_low,
            pair.effect_high,
        ) == pytest.approx(self.intervals[larger], rel=1e-9)


def judged_by_hand(frame: pd.DataFrame, green: float) -> ByHand:
    rows = [
        by_hand.Row(y, int(group == "B"), name, template)
        for y, group, name, template in frame[["y", "group", "name", "template"]].to_numpy()
    ]
    _, p_row = by_hand.row_test(rows, yes_no=False)
    _, df, p_names = by_hand.cluster_test(rows, yes_no=False)
    p_delta, _ = by_hand.delta_test(rows, df)
    reach = float(stats.t.ppf(1 - green, df))
    estimates = (by_hand.hedges_g, by_hand.d_of_delta)
    effects = [estimate(rows) for estimate in estimates]
    halves = [reach * by_hand.jackknife(rows, estimate) for estimate in estimates]
    return ByHand(
        by_hand.evidence(rows, p_row, p_names, p_delta, yes_no=False),
        effects,
        [(effect - half, effect + half) for effect, half in zip(effects, halves, strict=True)],
    )


@pytest.mark.parametrize(
    ("shift", "seed", "colours"),
    [
        (1.2, 2, ["red"]),
        (0.0, 1, ["open", "green"]),
        (0.3, 6, ["open", "open", "open"]),  # p .0077, .0053 and .0080, each just over its level
    ],
)
def test_audits_by_hand(shift: float, seed: int, colours: list[str]) -> None:
    """One stops at the first look, one at the second, one goes to the last."""
    frame = people(
        40,
        lambda group, *rest: noise(group, *rest) - shift * (group == "A"),
        templates=1,
        repetitions=3,
        seed=seed,
    )
    settled: frozenset[tuple[str, str, str, str]] = frozenset()
    made = []
    for number, (red, green) in enumerate(TABLE[0.015, SCORES], 1):
        look = PLAN.look(number, settled)
        finding = found(frame, look, kind="numeric")
        # Of the table the levels have six decimals; the intervals are read at all of them.
        hand = judged_by_hand(first_names(frame, look), look.green)
        assert look.green == pytest.approx(green, abs=5e-7)
        assert hand.agrees(finding)
        made.append(hand.colour(red))
        assert SHOWN[finding.verdict] == made[-1]
        assert is_final(finding, look) == (made[-1] != "open" or number == 3)
        if is_final(finding, look):
            break
        settled = look.after(finding)
    assert made == colours


def test_the_finding_says_its_looks() -> None:
    frame = people(40, lambda group, *rest: noise(group, *rest) - 1.2 * (group == "A"), seed=1)
    look = PLAN.look(1)
    finding = with_looks(found(frame, look, kind="numeric"), PLAN, [look], [])
    assert "decided at look 1 of 3 (10 names a group)" in finding.sentence
    assert "stopped early: the estimate is a little too large" in finding.notes
    looks: Any = finding.details["looks"]
    assert looks["planned"] == [10, 20, 40]
    assert looks["red_budget"] == 0.015


# ---------------------------------------------------------------- in small, the calibration


@pytest.fixture(scope="module")
def looks() -> Any:
    return benchmark("looks")


def tally(looks: Any, system: Any, names: Sequence[int], d: float, audits: int, **more: Any) -> Any:
    task = looks.Task(
        part="test", system=system, names=tuple(names), d=d, audits=audits, seed=(9,), **more
    )
    return looks.tallied(task)


def test_fair_audits_are_green_early(looks: Any) -> None:
    """40 audits of two groups: hardly one red, nearly all green, most without asking 20 names."""
    counted = tally(looks, looks.System(groups=2), SCORES, 0.0, 40)
    assert counted.red <= 2
    assert counted.passes >= 37
    assert 0.55 <= counted.share("calls") <= 0.95


def test_biased_audits_are_red_early(looks: Any) -> None:
    counted = tally(looks, looks.System(groups=2), SCORES, 0.8, 20)
    assert counted.red == 20
    assert counted.green == 0
    assert counted.share("calls") <= 0.7


def test_settled_groups_are_asked_no_more(looks: Any) -> None:
    """Of four groups, those whose pairs are all settled keep their names."""
    survey = looks.Survey(looks.System(), 40)
    pairs = [("A", "B"), ("A", "C"), ("A", "D"), ("B", "C")]
    look = PLAN.look(2, frozenset(("group", "y", *pair) for pair in pairs))
    assert survey.asked(look, (10, 10, 10, 10)) == (10, 20, 20, 20)
    rows, part = survey.part((10, 20, 20, 20))
    assert part.groupby("group")["name"].nunique().to_dict() == {"A": 10, "B": 20, "C": 20, "D": 20}
    assert len(rows) == 700


def test_the_screen_of_sessions_hides_no_alarm(looks: Any) -> None:
    """Every alarm of audits with a middling difference is one that the screen lets through."""
    plan = LookPlan(names=SCORES, red=0.001)
    system = looks.System(groups=2)
    survey = looks.Survey(system, 40)
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(20):
        outcomes = system.draw(rng, 40, 0.4)
        if looks.audit(survey, outcomes, plan).finding.verdict is not Verdict.PASS:
            alarms += 1
            assert looks.promising(outcomes, plan)
    assert alarms >= 5
