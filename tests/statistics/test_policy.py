"""The policy, row by row: first match, every border, what caps a FAIL, and what would decide an
undecided pair.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from pytest_fairness.analysis.false_alarms import ALPHA, TEMPLATE_ALPHA
from pytest_fairness.analysis.policy import (
    LIKELY_REFUSAL_DIFFERENCE,
    MARGIN,
    MAX_RAGGED,
    MAX_REFUSAL_DIFFERENCE,
    MAX_UNSCORED,
    MINIMUM_N,
    RECOMMENDED_CLUSTERS,
    RECOMMENDED_N,
    TRIVIAL,
    Decision,
    Rule,
    conclude_pairs,
    judge,
    milder,
    needed_size,
    saturated,
    spec_verdict,
    worse,
    worst_spec,
)
from pytest_fairness.model import OutcomeKind, PairResult, Reason, Verdict, deciding_pair
from pytest_fairness.statistics.pair_table import PairTable

PASS, FLAG, FAIL, INCONCLUSIVE = Verdict.PASS, Verdict.FLAG, Verdict.FAIL, Verdict.INCONCLUSIVE
EDGE = float(np.nextafter(0.05, 0))
"""The largest corrected p below .05."""


def table(
    effect: float = 0.8,
    low: float = 0.5,
    high: float = 1.1,
    *,
    other: tuple[float, float, float] | None = None,
    p: float = 1e-4,
    q: float = 6e-4,
    n: tuple[float, float] = (200, 200),
    k: tuple[float, float] = (20, 20),
    ragged: float = 0.0,
    single: bool = False,
    own_rows: bool = False,
    **flags: bool,
) -> PairTable:
    """One pair of groups, a clear FAIL unless it is changed; ``other`` is a second effect with its
    interval.
    """
    effects = np.array([(effect, low, high), *([] if other is None else [other])]).T[:, None]
    return PairTable(
        labels=("a", "b"),
        first=np.array([0]),
        second=np.array([1]),
        effect=effects[0],
        low=effects[1],
        high=effects[2],
        p_value=np.array([p]),
        corrected=np.array([q]),
        trials=np.array([n], dtype=float),
        clusters=np.array([k], dtype=float),
        ragged=np.array([ragged]),
        alone=np.array([single]),
        own_rows=own_rows,
        **{name: np.array([flag]) for name, flag in flags.items()},
    )


def decide(*, minimum: int = 30, alpha: float = ALPHA, **changes: Any) -> Decision:
    (decision,) = judge(table(**changes), Rule(minimum=minimum, alpha=alpha))
    return decision


def needs(pair: PairTable, family_size: int = 1) -> str | None:
    return needed_size(pair, 0, Rule(family_size=family_size))


SMALL = {"effect": 0.1, "low": -0.2, "high": 0.4, "q": 1.0, "p": 0.4}
"""A pair that passes."""
WIDE = {"effect": 0.1, "low": -0.3, "high": 0.6, "q": 1.0, "p": 0.4}
"""A pair that is undecided."""
SAME = {"effect": 0.0, "low": 0.0, "high": 0.0, "q": 1.0, "p": 1.0, "constant": True}
"""Two groups that always have the same outcome."""
APART = {"effect": math.inf, "low": math.inf, "high": math.inf, "constant": True}
"""Two groups that each always have the same outcome, and not the same."""


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        # b. significant
        ({}, FAIL, None),
        ({"effect": -0.8, "low": -1.1, "high": -0.5}, FAIL, None),
        ({"q": EDGE}, FAIL, None),
        ({"q": 0.05}, INCONCLUSIVE, Reason.PRECISION),
        ({"q": 0.0249, "alpha": 0.025}, FAIL, None),
        ({"q": 0.025, "alpha": 0.025}, INCONCLUSIVE, Reason.PRECISION),
        ({"effect": 0.5, "low": 0.2}, FLAG, None),
        ({"effect": 0.51, "low": 0.2}, FAIL, None),
        ({"effect": 0.2, "low": 0.05, "high": 0.35}, FLAG, None),
        ({"effect": 0.2, "low": -0.3, "high": 0.7}, FLAG, None),
        ({"effect": 0.19, "low": 0.05, "high": 0.35}, PASS, None),
        ({"effect": 0.19, "low": -0.2, "high": 0.58}, INCONCLUSIVE, Reason.PRECISION),
        # c. every interval inside
        (SMALL, PASS, None),
        ({**SMALL, "high": 0.499}, PASS, None),
        ({**SMALL, "high": 0.5}, INCONCLUSIVE, Reason.PRECISION),
        ({**SMALL, "low": -0.499}, PASS, None),
        ({**SMALL, "low": -0.5}, INCONCLUSIVE, Reason.PRECISION),
        ({**SMALL, "low": -math.inf, "high": math.inf}, INCONCLUSIVE, Reason.PRECISION),
        (WIDE, INCONCLUSIVE, Reason.PRECISION),
        # two effects: the larger is read, and both have to be inside
        ({**SMALL, "other": (0.1, -0.2, 0.5)}, INCONCLUSIVE, Reason.PRECISION),
        ({**SMALL, "other": (0.1, -0.5, 0.4)}, INCONCLUSIVE, Reason.PRECISION),
        ({**SMALL, "other": (0.05, -0.3, 0.4)}, PASS, None),
        ({"effect": 0.3, "low": 0.1, "other": (0.6, 0.2, 1.0)}, FAIL, None),
        ({"effect": 0.6, "low": 0.1, "other": (0.3, 0.2, 1.0)}, FAIL, None),
        ({"effect": 0.3, "low": 0.1, "other": (0.4, 0.2, 1.0)}, FLAG, None),
        ({"effect": 0.1, "low": -0.6, "other": (0.2, 0.0, 0.4)}, FLAG, None),
        ({"other": (-0.9, -1.2, -0.6)}, FLAG, None),
        ({"effect": -0.3, "low": -0.5, "high": -0.1, "other": (0.9, 0.6, 1.2)}, FLAG, None),
        ({"other": (0.0, -0.3, 0.3)}, FAIL, None),
        ({"effect": math.inf, "low": math.inf, "high": math.inf, "other": (-0.9, -1.2, -0.6)}, FLAG, None),
        ({**SMALL, "other": (-0.1, -0.4, 0.2)}, PASS, None),
        # a. the minimum, which counts trials
        ({"n": (200, 30)}, FAIL, None),
        ({"n": (200, 29)}, FLAG, None),
        ({"n": (29, 200)}, FLAG, None),
        ({"n": (200, 29), "q": 0.05}, INCONCLUSIVE, Reason.N),
        ({**SMALL, "n": (200, 29)}, INCONCLUSIVE, Reason.N),
        ({**SMALL, "n": (200, 30)}, PASS, None),
        ({"n": (200, 49), "minimum": 50}, FLAG, None),
        ({"n": (200, 50), "minimum": 50}, FAIL, None),
        ({"n": (200, 0), "q": 1.0, "effect": 0.0}, INCONCLUSIVE, Reason.N),
        ({"n": (200, 1)}, INCONCLUSIVE, Reason.N),
        ({"n": (1, 1), "minimum": 1}, INCONCLUSIVE, Reason.N),
        ({"n": (2, 2), "minimum": 1}, FAIL, None),
        ({"n": (200, 2)}, FLAG, None),
        # blocks that lack a group come before everything
        ({"ragged": 0.20}, FAIL, None),
        ({"ragged": 0.21}, INCONCLUSIVE, Reason.RAGGED),
        ({"ragged": 0.21, "n": (200, 29)}, INCONCLUSIVE, Reason.RAGGED),
        ({**SAME, "ragged": 0.21}, INCONCLUSIVE, Reason.RAGGED),
        ({**SMALL, "ragged": 0.21}, INCONCLUSIVE, Reason.RAGGED),
        # one cluster, or one part that all names share: FAIL is FLAG
        ({"single": True}, FLAG, None),
        ({"one_part": True}, FLAG, None),
        ({**SMALL, "single": True}, PASS, None),
        # practically equal rates
        ({**WIDE, "near": True}, PASS, None),
        ({"near": True}, FAIL, None),
        ({"close": True}, FLAG, None),
        ({**WIDE, "close": True}, INCONCLUSIVE, Reason.PRECISION),
        # what the caller declared is an extra condition
        ({"trivial": True}, INCONCLUSIVE, Reason.PRECISION),
        ({"trivial": True, "inside": True}, PASS, None),
        ({"inside": True}, FAIL, None),
        ({**WIDE, "inside": True}, PASS, None),
        ({"trivial": True, "n": (200, 29)}, INCONCLUSIVE, Reason.N),
        # neither group varies
        (SAME, PASS, None),
        ({**SAME, "k": (20, 10)}, PASS, None),
        ({**SAME, "k": (20, 9)}, INCONCLUSIVE, Reason.PRECISION),
        ({**SAME, "k": (20, 9), "own_rows": True}, PASS, None),
        ({**SAME, "k": (1, 1), "single": True, "n": (100, 100)}, PASS, None),
        ({**SAME, "k": (1, 1), "single": True, "n": (5, 9), "minimum": 2}, INCONCLUSIVE, Reason.PRECISION),
        ({**SAME, "n": (200, 29)}, INCONCLUSIVE, Reason.N),
        (APART, FAIL, None),
        ({**APART, "k": (2, 2)}, FAIL, None),
        ({**APART, "k": (2, 1), "single": True}, INCONCLUSIVE, Reason.N),
        ({**APART, "trivial": True}, PASS, None),
        ({**APART, "q": 0.3}, INCONCLUSIVE, Reason.PRECISION),
        ({**APART, "n": (200, 29)}, FLAG, None),
    ],
)  # fmt: skip
def test_first_match_wins(changes: dict[str, Any], verdict: Verdict, reason: Reason | None) -> None:
    """Every row of the table, and the values on its borders."""
    decision = decide(**changes)
    assert (decision.verdict, decision.reason) == (verdict, reason)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"other": (-0.9, -1.2, -0.6)}, "opposite directions"),
        ({"close": True}, "under 5 points and with a ratio of .8 or more"),
        (
            {"single": True},
            "one of the groups has a single one of its names: the result is about that one",
        ),
        ({"one_part": True}, "all names of a group share a first or a last name"),
        ({"single": True, "one_part": True}, "a single one of its names"),
        ({**WIDE, "near": True}, "less than 5 points, and their ratio is between .8 and 1.25"),
        ({**WIDE, "inside": True}, "below the one declared"),
        ({"n": (200, 29)}, "b has 29 of at least 30 trials"),
        ({"n": (29, 200)}, "a has 29 of at least 30 trials"),
        (
            SAME,
            "saturated: every outcome is the same; with 20 names a group, exceptions in up to 14 %",
        ),
        ({**SAME, "k": (20, 9)}, "so few cannot make more of"),
        (APART, "each group always has the same outcome"),
        ({**APART, "trivial": True}, "by less than the difference declared"),
        # what would decide it: names, trials, blocks
        ({"ragged": 0.21}, "every group in every block: 21 %"),
        ({"single": True}, "at least 2 names a group, better 20"),
        ({"one_part": True}, "names that share no part"),
        ({"n": (200, 12), "q": 1.0}, "at least 30 trials a group (b has 12)"),
        ({**SAME, "k": (20, 9)}, "at least 10 names a group (now 9)"),
        ({**APART, "k": (1, 1), "single": True}, "at least 2 names a group"),
    ],
)
def test_what_holds_a_verdict_back_and_what_would_decide_it_is_stated(
    changes: dict[str, Any], words: str
) -> None:
    """A FLAG that could have been a FAIL, and a PASS by another road, state why."""
    decision = decide(**changes)
    assert words in " ".join([*decision.notes, str(decision.needs)])


def test_a_trifle_is_no_flag_with_too_few_trials_either() -> None:
    """Beyond chance, and too small to matter."""
    few = decide(effect=0.19, low=0.05, high=0.33, n=(200, 12))
    assert (few.verdict, few.reason) == (INCONCLUSIVE, Reason.N)
    assert decide(effect=0.2, low=0.05, high=0.35, n=(200, 12)).verdict is FLAG


def test_a_whole_table_is_judged_as_pair_by_pair() -> None:
    """A pair has the same decision among others as by itself."""
    rng = np.random.default_rng(1)
    alone = [
        table(
            *rng.choice(
                [
                    [0.8, 0.5, 1.1],
                    [0.1, -0.2, 0.4],
                    [0.3, -0.3, 0.9],
                    [0.0, 0.0, 0.0],
                    [0.0, -math.inf, math.inf],
                ]
            ),
            q=float(rng.choice([0.0, EDGE, 0.2, 1.0])),
            n=tuple(rng.choice([0.0, 2, 29, 30, 100, 100], size=2)),
            k=tuple(rng.choice([1.0, 2, 9, 20], size=2)),
            ragged=float(rng.choice([0.0, 0.0, 0.21])),
            **{
                name: bool(rng.random() < 0.2)
                for name in ("trivial", "inside", "near", "close", "constant", "single", "one_part")
            },
        )
        for _ in range(200)
    ]
    names = [column.name for column in fields(PairTable) if "missing" in column.metadata]
    together = PairTable(
        labels=("a", "b"),
        first=np.zeros(len(alone), dtype=np.intp),
        second=np.ones(len(alone), dtype=np.intp),
        **{name: np.concatenate([getattr(one, name) for one in alone]) for name in names},
    )
    found = judge(together, Rule())
    assert found == [judge(one, Rule())[0] for one in alone]
    assert {decision.verdict for decision in found} == set(Verdict)


@pytest.mark.parametrize(
    ("effect", "changes", "family_size", "size"),
    [
        # 20 names and a half-width of .45 about .1: the interval fits at 20·(.45/.4)² names, plus a
        # little
        ((0.1, -0.35, 0.55), {"p": 0.6}, 1, "26 names"),
        # an estimate of .4 on the verge: significance is nearer than an interval inside the margin
        (
            (0.4, -0.02, 0.82),
            {"p": 0.06, "q": 0.12},
            1,
            f"{math.ceil(20 * (1.959964 / 1.880794) ** 2)} names",
        ),
        ((0.4, -0.02, 0.82), {"p": 0.06, "q": 0.36}, 6, "40 names"),
        # of two effects both intervals have to fit
        ((0.1, -0.35, 0.55), {"p": 0.6, "other": (0.0, -1.0, 1.0)}, 1, "80 names"),
    ],
)
def test_needs_is_the_nearer_of_the_two_ways_out(
    effect: Any, changes: Any, family_size: int, size: str
) -> None:
    pair = table(*effect, **{"q": 1.0, **changes})
    assert (
        needs(pair, family_size)
        == f"about {size} a group if the difference stays as it is (now 20)"
    )


def test_needs_counts_rows_where_rows_stand_for_themselves() -> None:
    """Without clusters it is trials that are missing; so it is with one name a group."""
    for more in ({"own_rows": True}, {"single": True}):
        pair = table(0.0, -1.0, 1.0, p=1.0, q=1.0, n=(50, 60), k=(1, 1), **more)
        assert needs(pair) == "about 200 trials a group if the difference stays as it is (now 50)"


@pytest.mark.parametrize(
    "changes",
    [
        {"effect": 0.5, "low": -0.1, "high": 1.1, "p": 1.0, "q": 1.0},
        {"effect": 0.1, "low": -math.inf, "high": math.inf, "p": 1.0, "q": 1.0},
        {"effect": math.inf, "low": math.inf, "high": math.inf, "p": 0.0, "q": 1.0},
        {"effect": 0.6, "low": 0.1, "high": 1.1, "p": 0.01, "q": 0.03, "trivial": True},
    ],
)
def test_nothing_is_promised_where_no_size_decides(changes: dict[str, Any]) -> None:
    """An estimate that sits on the border, an interval without an end, a difference that the caller
    calls trivial.
    """
    assert needs(table(**changes)) is None


@pytest.mark.parametrize(
    ("clusters", "points"), [(1, "95"), (10, "26"), (20, "14"), (100, "3"), (1000, "0.3")]
)
def test_what_equal_constants_support(clusters: float, points: str) -> None:
    """A gap of 1 − .05^(1/K) of the names would have shown."""
    assert f"in up to {points} % of" in saturated(clusters, "names")


def test_the_thresholds_are_those_of_the_contract() -> None:
    """Nothing else in the tests would notice a threshold that moves a little."""
    score, rate = OutcomeKind.NUMERIC, OutcomeKind.BINARY
    assert {
        score: 30, OutcomeKind.ORDINAL: 30, OutcomeKind.NARRATIVE: 30, OutcomeKind.REFUSAL: 30,
        rate: 50, OutcomeKind.CATEGORICAL: 50,
    } == MINIMUM_N  # fmt: skip
    assert {
        score: 100, OutcomeKind.ORDINAL: 100, OutcomeKind.NARRATIVE: 50, OutcomeKind.REFUSAL: 50,
        rate: 100, OutcomeKind.CATEGORICAL: 100,
    } == RECOMMENDED_N  # fmt: skip
    assert (ALPHA, TRIVIAL, MARGIN) == (0.05, 0.2, 0.5)
    assert (MAX_UNSCORED, MAX_RAGGED, MAX_REFUSAL_DIFFERENCE, LIKELY_REFUSAL_DIFFERENCE) == (
        0.05,
        0.2,
        0.05,
        0.2,
    )
    assert (RECOMMENDED_CLUSTERS, TEMPLATE_ALPHA) == (10, 0.2)


# ---------------------------------------------------------------- the assertion


def pair(verdict: Verdict, **more: Any) -> PairResult:
    return PairResult(
        group_1="a", group_2="b", metric=more.pop("metric", "m"), verdict=verdict, **more
    )


def test_an_assertion_is_as_bad_as_its_worst_pair() -> None:
    """FAIL > FLAG > INCONCLUSIVE > PASS, and nothing judged is not PASS."""
    pairs = [pair(PASS), pair(INCONCLUSIVE, reason=Reason.N), pair(FLAG), pair(FAIL)]
    found = [conclude_pairs(pairs[:many])[:2] for many in range(5)]
    assert found == [
        (INCONCLUSIVE, None),
        (PASS, None),
        (INCONCLUSIVE, Reason.N),
        (FLAG, None),
        (FAIL, None),
    ]


def test_the_deciding_pair() -> None:
    """The most severe, then the most significant; among passes the one that may be furthest apart."""
    fails = [pair(FAIL, corrected_p_value=0.04), pair(FAIL, corrected_p_value=0.01)]
    assert deciding_pair([pair(FLAG, corrected_p_value=0.001), *fails]) is fails[1]
    raw = [
        pair(FAIL, corrected_p_value=0.04, p_value=0.02),
        pair(FAIL, corrected_p_value=0.04, p_value=0.01),
    ]
    assert deciding_pair(raw) is raw[1]
    large = [pair(FAIL, effect=0.6), pair(FAIL, effect=-0.9)]
    assert deciding_pair(large) is large[1]
    passes = [
        pair(PASS, effect_low=-0.1, effect_high=0.2),
        pair(PASS, effect_low=-0.4, effect_high=0.1),
    ]
    assert deciding_pair(passes) is passes[1]
    assert deciding_pair([]) is None


def test_the_requested_outcome_comes_before_refusals() -> None:
    """Beside an equally severe pair of the outcome, that of the refusals is not what the sentence
    is about.
    """
    refusal = pair(FAIL, corrected_p_value=1e-9, alarm_only=True, metric="refusal")
    own = pair(FAIL, corrected_p_value=0.01)
    assert deciding_pair([refusal, own]) is own
    assert deciding_pair([refusal, pair(FLAG)]) is refusal


@pytest.mark.parametrize("verdict", [INCONCLUSIVE, PASS])
def test_what_is_there_to_raise_the_alarm_decides_nothing_without_one(verdict: Verdict) -> None:
    """Refusals that leave it open, and refusals that are alike, are no reason to withhold a PASS,
    nor to give one.
    """
    beside = pair(
        verdict, reason=Reason.PRECISION if verdict is INCONCLUSIVE else None, alarm_only=True
    )
    assert conclude_pairs([pair(PASS), beside])[:2] == (PASS, None)
    assert conclude_pairs([pair(INCONCLUSIVE, reason=Reason.N), beside])[:2] == (
        INCONCLUSIVE,
        Reason.N,
    )
    assert conclude_pairs([beside]) == (INCONCLUSIVE, None, None)


def test_of_two_decisions() -> None:
    """The milder and the worse; the first where they are equally severe."""
    flag, fail, also = (
        Decision(verdict=FLAG),
        Decision(verdict=FAIL),
        Decision(verdict=FLAG, notes=("x",)),
    )
    assert milder(flag, fail) is milder(fail, flag) is flag
    assert worse(flag, fail) is worse(fail, flag) is fail
    assert milder(flag, also) is worse(flag, also) is flag


# ---------------------------------------------------------------- the literal specification


@pytest.mark.parametrize(
    ("p", "tests", "effect", "n", "verdict"),
    [
        (0.01, 4, 0.6, 30, FAIL),
        (0.01, 5, 0.6, 30, PASS),
        (0.01, 4, -0.6, 30, FAIL),
        (0.01, 4, 0.5, 30, FLAG),
        (0.01, 4, 0.2, 30, FLAG),
        (0.01, 4, 0.19, 30, PASS),
        (0.9, 4, 0.6, 30, PASS),
        (0.01, 4, 0.6, 29, None),
        (1e-9, 4, math.inf, 30, FAIL),
    ],
)
def test_the_literal_specification(
    p: float, tests: int, effect: float, n: int, verdict: Verdict | None
) -> None:
    """Bonferroni, then the size; it knows no INCONCLUSIVE, and says nothing under its minimum."""
    assert spec_verdict(p, tests, effect, n, 30) is verdict


def test_the_worst_of_the_literal_verdicts() -> None:
    """A pair of which it says nothing keeps the others from being a PASS."""
    held = ([PASS, FLAG, FAIL, None], [PASS, FLAG, None], [PASS, None], [PASS, PASS], [])
    assert [worst_spec(verdicts) for verdicts in held] == [FAIL, FLAG, None, PASS, None]


def test_a_fail_needs_an_interval_that_leaves_0_out():
    """Of two effects one is enough, and that is the one that is shown."""
    (alone,) = judge(table(0.8, -0.1, 1.7), Rule())
    assert (alone.verdict, alone.notes) == (
        FLAG,
        ("the interval of the difference holds 0, so FAIL is FLAG",),
    )
    (touching,) = judge(table(0.8, 0.0, 1.6), Rule())
    assert touching.verdict is FLAG
    both = replace(table(1.2, -0.3, 2.7, other=(0.7, 0.2, 1.2)), effect_names=("one", "two"))
    assert judge(both, Rule())[0].verdict is FAIL
    assert [float(column[0]) for column in both.largest(MARGIN)[1:]] == [0.7, 0.2, 1.2]
    small = replace(table(1.2, -0.3, 2.7, other=(0.4, 0.2, 0.6)), effect_names=("one", "two"))
    assert judge(small, Rule())[0].verdict is FLAG
    assert float(small.largest(MARGIN)[1][0]) == 1.2
    assert judge(table(-0.8, -1.5, -0.1), Rule())[0].verdict is FAIL
    (border,) = judge(table(MARGIN, 0.2, 0.8), Rule())
    assert (border.verdict, border.notes) == (FLAG, ())  # small enough by itself
