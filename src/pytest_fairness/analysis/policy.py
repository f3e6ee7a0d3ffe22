"""The thresholds of the policy, what a decision is, and which pair an assertion is about. Standard library only.

The policy itself, which judges all pairs of a table at once, is :mod:`pytest_fairness.analysis.policy`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

import numpy as np

from pytest_fairness.analysis.false_alarms import ALPHA
from pytest_fairness.analysis.sentences import percent
from pytest_fairness.model import ALARMS, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arrays import Bools, Floats, Ints
from pytest_fairness.statistics.comparison import Estimate

MINIMUM_N: Mapping[OutcomeKind, int] = {
    OutcomeKind.NUMERIC: 30,
    OutcomeKind.ORDINAL: 30,
    OutcomeKind.NARRATIVE: 30,
    OutcomeKind.REFUSAL: 30,
    OutcomeKind.BINARY: 50,
    OutcomeKind.CATEGORICAL: 50,
}
"""Fewest trials a group that may carry a verdict, by kind of outcome."""

RECOMMENDED_N: Mapping[OutcomeKind, int] = {
    OutcomeKind.NUMERIC: 100,
    OutcomeKind.ORDINAL: 100,
    OutcomeKind.NARRATIVE: 50,
    OutcomeKind.REFUSAL: 50,
    OutcomeKind.BINARY: 100,
    OutcomeKind.CATEGORICAL: 100,
}
"""Trials a group that the minimum detectable effect of the default design was worked out for."""

TRIVIAL = 0.2
"""Effects below this are trivial (Cohen 1988: small)."""
MARGIN = 0.5
"""Effects above this FAIL, and PASS needs the 90 % interval inside ± this (Cohen 1988: medium)."""
MAX_UNSCORED = 0.05
MAX_RAGGED = 0.20
MAX_REFUSAL_DIFFERENCE = 0.05
LIKELY_REFUSAL_DIFFERENCE = 0.2
"""p × pairs under which a difference in refusals of over 5 points bears on the scores."""
RECOMMENDED_CLUSTERS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A verdict with its reason, what would decide it, and remarks for the reader."""

    verdict: Verdict
    reason: Reason | None = None
    needs: str | None = None
    notes: tuple[str, ...] = ()


def milder(first: Decision, second: Decision) -> Decision:
    """The less severe of two decisions on the same pair; the first if they are equally severe."""
    return second if second.verdict.severity < first.verdict.severity else first


def worse(first: Decision, second: Decision) -> Decision:
    """The more severe of two decisions on the same pair; the first if they are equally severe."""
    return second if second.verdict.severity > first.verdict.severity else first


def deciding_pair(pairs: Sequence[PairResult]) -> PairResult | None:
    """The pair that an assertion's verdict, sentence and report fields are about; ``None`` without pairs.

    The most severe verdict; among equals the outcome asked for before refusals and missing answers, then the smallest
    p-value, then the largest effect. Among pairs that all PASS, the one whose interval reaches furthest. A pair that is
    there to raise the alarm decides nothing without one. Of pairs that only rounding tells apart, the first: the order
    of rows must not choose what a sentence is about.
    """
    gating = [pair for pair in pairs if not pair.alarm_only or pair.verdict in ALARMS]
    keys = [_urgency(pair) for pair in gating]
    least = min(keys, default=None)
    if least is None:
        return None
    return next(pair for pair, key in zip(gating, keys, strict=True) if _same(key, least))


def _same(key: tuple[float, ...], least: tuple[float, ...]) -> bool:
    return key[0] == least[0] and all(map(partial(math.isclose, rel_tol=1e-9), key, least))


def _urgency(pair: PairResult) -> tuple[float, ...]:
    if pair.verdict is Verdict.PASS:
        reach = max(abs(pair.effect_low or 0.0), abs(pair.effect_high or 0.0), abs(pair.effect))
        return (0.0, 0.0, -reach, pair.p_value)
    own = float(pair.alarm_only)
    return (-pair.verdict.severity, own, pair.corrected_p_value, pair.p_value, -abs(pair.effect))


def assertion_verdict(pairs: Iterable[PairResult]) -> tuple[Verdict, Reason | None]:
    """The worst verdict of *pairs* and, if that is INCONCLUSIVE, the reason of the pair that decides it."""
    return verdict_by(deciding_pair(list(pairs)))


def verdict_by(decider: PairResult | None) -> tuple[Verdict, Reason | None]:
    """As :func:`assertion_verdict`, from the pair that decides: none is more severe than it."""
    if decider is None:
        return Verdict.INCONCLUSIVE, None
    return decider.verdict, decider.reason if decider.verdict is Verdict.INCONCLUSIVE else None


def spec_verdict(p_value: float, tests: int, effect: float, n: int, minimum: int) -> Verdict | None:
    """The literal specification's verdict on one pair: Bonferroni over *tests*, then the size of its own *effect*.

    PASS if the corrected p is .05 or more or the effect under .2, FLAG to .5, FAIL above; None under its minimum N.
    """
    if n < minimum:
        return None
    if min(1.0, p_value * tests) >= ALPHA or abs(effect) < TRIVIAL:
        return Verdict.PASS
    return Verdict.FAIL if abs(effect) > MARGIN else Verdict.FLAG


def worst_spec(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    """The most severe of what the literal specification says of each pair; None where it says nothing of one."""
    known = list(verdicts)
    alarms = [one for one in known if one in ALARMS]
    if alarms:
        return Verdict.worst(alarms)
    return None if None in known or not known else Verdict.PASS


# ---------------------------------------------------------------- policy

_PASS, _FLAG, _FAIL = (Decision(verdict=verdict) for verdict in (Verdict.PASS, Verdict.FLAG, Verdict.FAIL))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """What the policy reads about P pairs of groups: columns of length P, ``trials`` and ``clusters`` P × 2.

    ``first`` and ``second`` are places in ``labels``. ``effects`` are on the d scale with their 90 % intervals;
    ``p_value`` and ``corrected`` stand before and after correction over ``family_size`` tests. ``ragged`` is the share
    of rows lost. ``trivial``: the difference in the outcome's own unit is below what the caller declared, and
    ``inside`` that its whole 90 % interval is. ``near``: the intervals of a difference of rates and of their ratio lie
    inside ±5 points and .8 to 1.25, and ``close`` that the estimates do. ``constant``: neither group varies at all.
    ``single``: a group has one cluster, so that the result is about labels; ``one_part``: all names of a group share a
    first or last name. ``own_rows``: every row stands for itself.
    """

    labels: tuple[str, ...]
    first: Ints
    second: Ints
    effects: tuple[Estimate, ...]
    p_value: Floats
    corrected: Floats
    trials: Floats
    clusters: Floats
    ragged: Floats
    trivial: Bools
    inside: Bools
    near: Bools
    close: Bools
    constant: Bools
    single: Bools
    one_part: Bools
    own_rows: bool
    minimum: int
    alpha: float = ALPHA
    margin: float = MARGIN
    family_size: int = 1
    cluster_noun: str = "names"
    case_noun: str = "trials"

    @property
    def size(self) -> Floats:
        """The larger of the effects of each pair, without its sign."""
        return np.asarray(np.maximum.reduce([np.abs(np.nan_to_num(effect.value)) for effect in self.effects]))

    @property
    def significant(self) -> Bools:
        return np.asarray((self.corrected < self.alpha) & ~self.trivial)

    @property
    def turned(self) -> Bools:
        """Pairs in which one effect says that the one group is higher, and the other effect the other."""
        if len(self.effects) < 2:
            return np.zeros(self.p_value.size, dtype=np.bool_)
        one, other = (np.sign(np.nan_to_num(effect.value)) for effect in self.effects)
        return np.asarray(one * other < 0)

    @property
    def equivalent(self) -> Bools:
        """Pairs whose intervals all lie inside the margin."""
        found = np.ones(self.p_value.size, dtype=np.bool_)
        for effect in self.effects:
            found &= (effect.low > -self.margin) & (effect.high < self.margin)
        return found


def judge(table: PairTable) -> list[Decision]:
    """The decision on every pair. Most are settled by columns; those that need words are looked at one by one."""
    size, significant = table.size, table.significant
    plain = (table.ragged <= MAX_RAGGED) & (table.trials.min(axis=1) >= max(table.minimum, 2)) & ~table.constant
    alarm = plain & significant & (size >= TRIVIAL)
    worded = table.turned | table.close | table.single | table.one_part
    fail = alarm & (size > table.margin) & ~worded
    flag = alarm & (size <= table.margin) & ~table.turned
    passed = plain & ~alarm & table.equivalent
    settled = np.select([passed, flag, fail], [0, 1, 2], -1).tolist()
    known = (_PASS, _FLAG, _FAIL)
    return [known[code] if code >= 0 else _judge_one(table, at) for at, code in enumerate(settled)]


def _judge_one(table: PairTable, at: int) -> Decision:
    if table.ragged[at] > MAX_RAGGED:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.RAGGED,
            needs=f"every group in every block: {percent(table.ragged[at])} of the rows are in blocks that lack "
            "a group",
        )
    significant, size = bool(table.significant[at]), float(table.size[at])
    if table.trials[at].min() < max(table.minimum, 2):
        return _too_few(table, at, significant=significant and size >= TRIVIAL)
    if table.constant[at]:
        return _constant(table, at, significant=significant)
    if significant and size >= TRIVIAL:
        return _alarm(table, at)
    if table.equivalent[at]:
        return _PASS
    if table.near[at]:
        return Decision(
            verdict=Verdict.PASS,
            notes=("the rates differ by less than 5 points, and their ratio is between .8 and 1.25 (90 % intervals)",),
        )
    if table.inside[at]:
        return Decision(
            verdict=Verdict.PASS, notes=("the whole 90 % interval of the difference is below the one declared",)
        )
    return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.PRECISION, needs=needed_size(table, at))


def _alarm(table: PairTable, at: int) -> Decision:
    """A significant difference that is no trifle: FAIL above the margin, unless something holds it back."""
    if table.turned[at]:
        return Decision(
            verdict=Verdict.FLAG,
            notes=("the means and the ranks differ in opposite directions: a few extreme values turn the mean",),
        )
    if table.size[at] <= table.margin:
        return _FLAG
    if table.close[at]:
        return Decision(
            verdict=Verdict.FLAG,
            notes=("beyond chance, but under 5 points and with a ratio of .8 or more, so FAIL is FLAG",),
        )
    if table.single[at] or table.one_part[at]:
        noun = table.cluster_noun
        alone = (
            f"one of the groups has a single one of its {noun}"
            if table.single[at]
            else f"all {noun} of a group share a first or a last name"
        )
        return Decision(
            verdict=Verdict.FLAG,
            needs=f"at least 2 {noun} a group, better 20" if table.single[at] else f"{noun} that share no part",
            notes=(f"{alone}: the result is about that one, not about the group, so FAIL is capped at FLAG",),
        )
    return _FAIL


def _too_few(table: PairTable, at: int, *, significant: bool) -> Decision:
    n = table.trials[at]
    small = int(np.argmin(n))
    group = table.labels[int((table.first, table.second)[small][at])]
    fewest = max(table.minimum, 2)
    needs = f"at least {fewest} {table.case_noun} a group ({group} has {n[small]:.0f})"
    if significant and n[small] >= 2:
        return Decision(
            verdict=Verdict.FLAG,
            needs=needs,
            notes=(f"significant, but {group} has {n[small]:.0f} of at least {fewest} {table.case_noun}",),
        )
    return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.N, needs=needs)


def _constant(table: PairTable, at: int, *, significant: bool) -> Decision:
    clusters = table.trials[at] if table.single[at] else table.clusters[at]
    fewest, noun = float(clusters.min()), "replies that differ" if table.single[at] else table.cluster_noun
    if table.size[at] == 0:
        if not table.own_rows and fewest < RECOMMENDED_CLUSTERS:
            return Decision(
                verdict=Verdict.INCONCLUSIVE,
                reason=Reason.PRECISION,
                needs=f"at least {RECOMMENDED_CLUSTERS} {noun} a group (now {fewest:.0f})",
                notes=("every outcome is the same, which so few cannot make more of",),
            )
        return Decision(verdict=Verdict.PASS, notes=(saturated(fewest, table.case_noun if table.own_rows else noun),))
    note = ("each group always has the same outcome, and the two differ",)
    if table.clusters[at].min() < 2:
        return Decision(
            verdict=Verdict.INCONCLUSIVE, reason=Reason.N, needs=f"at least 2 {table.cluster_noun} a group", notes=note
        )
    if significant:
        return Decision(verdict=Verdict.FAIL, notes=note)
    if table.trivial[at]:
        return Decision(verdict=Verdict.PASS, notes=(*note, "by less than the difference declared"))
    return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.PRECISION, needs=needed_size(table, at), notes=note)


def saturated(clusters: float, noun: str) -> str:
    """What equal constants support: a gap of 1 − .05^(1/K) of the names would show in 95 % of audits (Jovanovic & Levy
    1997)."""
    bound = 100 * (1 - 0.05 ** (1 / max(clusters, 1.0)))
    points = f"{bound:.0f}" if bound >= 1 else f"{bound:.1g}"
    return (
        f"saturated: every outcome is the same; with {clusters:.0f} {noun} a group, exceptions in up to {points} % of "
        "them could have gone unseen"
    )


def needed_size(table: PairTable, at: int) -> str | None:
    """The clusters (or cases, where rows are the unit) a group that would decide, if the estimate stays.

    The half-width of the interval and the standard error both shrink with 1/√K. The nearer of two ways out
    counts: the intervals fit inside the margin (PASS), or the difference becomes significant (FLAG, FAIL).
    """
    rows = bool(table.single[at]) or table.own_rows
    now = int((table.trials if rows else table.clusters)[at].min())
    noun = table.case_noun if rows else table.cluster_noun
    passing = [_to_pass(effect, at, table.margin) for effect in table.effects]
    ways = [] if None in passing else [now * max(way for way in passing if way is not None)]
    p, size = float(table.p_value[at]), float(table.size[at])
    if 0 < p < 1 and size >= TRIVIAL and not table.trivial[at]:
        normal = NormalDist()
        wanted = normal.inv_cdf(1 - table.alpha / (2 * max(table.family_size, 1)))
        seen = normal.inv_cdf(1 - max(p, 1e-15) / 2)
        if seen > 0:
            ways.append(now * (wanted / seen) ** 2)
    finite = [way for way in ways if math.isfinite(way) and way < 1e7]
    if not finite:
        return None
    needed = max(math.ceil(min(finite)), now + 1)
    return f"about {needed:,} {noun} a group if the difference stays as it is (now {now:,})"


def _to_pass(effect: Estimate, at: int, margin: float) -> float | None:
    """By what factor the sample has to grow for the interval to fit; None where it never does."""
    low, high, room = float(effect.low[at]), float(effect.high[at]), margin - abs(float(effect.value[at]))
    half = high - low if math.isfinite(low) and math.isfinite(high) else math.inf
    return (half / 2 / room) ** 2 if math.isfinite(half) and room > 0 else None
