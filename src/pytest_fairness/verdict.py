"""The policy: from an effect, its interval and a corrected p-value to PASS, FLAG, FAIL or INCONCLUSIVE.

Standard library only, so that every comparison (disparity, preference, baseline …) is judged by the same
lines. A verdict is never read off a p-value alone: absence of significance is not evidence of fairness, so
PASS needs the 90 % interval of the effect inside the margin (two one-sided tests at 5 %; Schuirmann 1987).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist

from pytest_fairness.model import OutcomeKind, PairResult, Reason, Verdict

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

ALPHA = 0.05
TRIVIAL = 0.2
"""Effects below this are trivial (Cohen 1988: small)."""
MARGIN = 0.5
"""Effects above this FAIL, and PASS needs the 90 % interval inside ± this (Cohen 1988: medium)."""
MAX_UNSCORED = 0.05
MAX_RAGGED = 0.20
MAX_REFUSAL_DIFFERENCE = 0.05
RECOMMENDED_CLUSTERS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PairEvidence:
    """What the policy reads about two groups.

    ``effect`` on the d scale with its 90 % interval ``low``–``high``; ``corrected`` the corrected p-value and
    ``p_value`` the one before correction; ``n`` distinct trials and ``clusters`` of the two groups;
    ``minimum`` the fewest trials a group; ``family_size`` the number of tests corrected together.
    ``unscored`` and ``ragged`` are shares of rows lost. ``raw_trivial``: the difference in the outcome's own
    unit is below what the caller called worth minding, and ``raw_inside`` that its whole 90 % interval is.
    ``constant``: neither group varies at all. ``scope`` is ``labels`` where a group has one cluster only.
    """

    effect: float
    low: float
    high: float
    p_value: float
    corrected: float
    n: tuple[int, int]
    clusters: tuple[int, int]
    minimum: int
    scope: str = "names"
    alpha: float = ALPHA
    trivial: float = TRIVIAL
    margin: float = MARGIN
    family_size: int = 1
    unscored: float = 0.0
    ragged: float = 0.0
    raw_trivial: bool = False
    raw_inside: bool = False
    constant: bool = False
    groups: tuple[str, str] = ("group 1", "group 2")
    cluster_noun: str = "names"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A verdict with its reason, what would decide it, and remarks for the reader."""

    verdict: Verdict
    reason: Reason | None = None
    needs: str | None = None
    notes: tuple[str, ...] = ()


def judge_pair(evidence: PairEvidence) -> Decision:
    """The policy table, first match wins; see ``docs/verdicts.md``."""
    e = evidence
    if e.unscored > MAX_UNSCORED:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.UNSCORED,
            needs=f"score more replies: {e.unscored:.0%} of a group's have no outcome, at most 5 % may",
        )
    if e.ragged > MAX_RAGGED:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.RAGGED,
            needs=f"ask every group in every block: {e.ragged:.0%} of rows are in blocks that lack a group",
        )
    significant = e.corrected < e.alpha and not e.raw_trivial
    if min(e.n) < max(e.minimum, 2):
        return _too_few(e, significant)
    if e.constant:
        return _constant(e, significant)
    size = abs(e.effect)
    if significant and size > e.margin:
        return _capped(e)
    if significant and size >= e.trivial:
        return Decision(verdict=Verdict.FLAG)
    if -e.margin < e.low and e.high < e.margin:
        return Decision(verdict=Verdict.PASS)
    if e.raw_inside:
        return Decision(
            verdict=Verdict.PASS,
            notes=("the whole 90 % interval of the difference is below what was called worth minding",),
        )
    return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.PRECISION, needs=needed_size(e))


def _too_few(e: PairEvidence, significant: bool) -> Decision:
    small = min(range(2), key=lambda side: e.n[side])
    needs = f"at least {max(e.minimum, 2)} distinct trials a group ({e.groups[small]} has {e.n[small]})"
    if significant and min(e.n) >= 2 and abs(e.effect) >= e.trivial:
        return Decision(
            verdict=Verdict.FLAG,
            needs=needs,
            notes=(f"significant, but {e.groups[small]} has {e.n[small]} of at least {e.minimum} trials",),
        )
    return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.N, needs=needs)


def _constant(e: PairEvidence, significant: bool) -> Decision:
    if e.effect == 0:
        return Decision(verdict=Verdict.PASS, notes=("saturated: every trial has the same outcome",))
    note = ("each group always has the same outcome, and the two differ",)
    if min(e.clusters) < 2:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.N,
            needs=f"at least 2 {e.cluster_noun} a group",
            notes=note,
        )
    if significant:
        return Decision(verdict=Verdict.FAIL, notes=note)
    if e.raw_trivial:
        return Decision(verdict=Verdict.PASS, notes=(*note, "by less than what was called worth minding"))
    return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.PRECISION, needs=needed_size(e), notes=note)


def _capped(e: PairEvidence) -> Decision:
    if e.scope == "labels":
        return Decision(
            verdict=Verdict.FLAG,
            needs=f"at least 2 {e.cluster_noun} a group, better 20",
            notes=(
                f"one of the groups has a single one of its {e.cluster_noun}: the result is about that one, "
                "not about the group, so FAIL is capped at FLAG",
            ),
        )
    return Decision(verdict=Verdict.FAIL)


def needed_size(evidence: PairEvidence) -> str | None:
    """The clusters (or trials, where rows are the unit) a group that would decide, if the estimate stays.

    The half-width of the interval and the standard error both shrink with 1/√K. The nearer of two ways out
    counts: the interval fits inside the margin (PASS), or the difference becomes significant (FLAG, FAIL).
    """
    e = evidence
    rows = e.scope == "labels" or e.clusters == e.n
    size = min(e.n) if rows else min(e.clusters)
    noun = "trials" if rows else e.cluster_noun
    ways: list[float] = []
    half = (e.high - e.low) / 2
    room = e.margin - abs(e.effect)
    if math.isfinite(half) and room > 0:
        ways.append(size * (half / room) ** 2)
    if 0 < e.p_value < 1 and abs(e.effect) >= e.trivial and not e.raw_trivial:
        normal = NormalDist()
        wanted = normal.inv_cdf(1 - e.alpha / (2 * max(e.family_size, 1)))
        seen = normal.inv_cdf(1 - max(e.p_value, 1e-15) / 2)
        if seen > 0:
            ways.append(size * (wanted / seen) ** 2)
    finite = [way for way in ways if math.isfinite(way) and way < 1e7]
    if not finite:
        return None
    needed = max(math.ceil(min(finite)), size + 1)
    return f"about {needed} {noun} a group if the difference stays as it is (now {size})"


def as_spec(verdict: Verdict) -> Verdict:
    """The verdict for readers of the literal specification, which knows no INCONCLUSIVE: its PASS."""
    return Verdict.PASS if verdict is Verdict.INCONCLUSIVE else verdict


def worse(first: Decision, second: Decision) -> Decision:
    """The more severe of two decisions on the same pair; the first if they are equally severe."""
    return second if second.verdict.severity > first.verdict.severity else first


def after_refusals(scores: Decision, *, differential: bool) -> Decision:
    """A PASS on the scores of those who got an answer says nothing where one group is refused more often."""
    if differential and scores.verdict is Verdict.PASS:
        return replace(
            scores,
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.DIFFERENTIAL_REFUSAL,
            needs="find out why one group is refused more often; scores of answered trials cannot settle it",
        )
    return scores


def deciding_pair(pairs: Sequence[PairResult]) -> PairResult | None:
    """The pair that an assertion's verdict, sentence and report fields are about; ``None`` without pairs.

    The most severe verdict; among equals the smallest p-value, then the largest effect. Among pairs that
    all PASS, the one whose interval reaches furthest. Of pairs that only rounding tells apart, the first: the
    order of rows must not choose what a sentence is about.
    """
    keys = [_urgency(pair) for pair in pairs]
    least = min(keys, default=None)
    if least is None:
        return None
    return next(pair for pair, key in zip(pairs, keys, strict=True) if _same(key, least))


def _same(key: tuple[float, ...], least: tuple[float, ...]) -> bool:
    return key[0] == least[0] and all(map(partial(math.isclose, rel_tol=1e-9), key, least))


def _urgency(pair: PairResult) -> tuple[float, ...]:
    if pair.verdict is Verdict.PASS:
        reach = max(abs(pair.effect_low or 0.0), abs(pair.effect_high or 0.0))
        return (0.0, -reach, pair.p_value)
    return (-pair.verdict.severity, pair.corrected_p_value, pair.p_value, -abs(pair.effect))


def assertion_verdict(pairs: Iterable[PairResult]) -> tuple[Verdict, Reason | None]:
    """The worst verdict of *pairs* and, if that is INCONCLUSIVE, the reason of the pair that decides it."""
    return verdict_by(deciding_pair(list(pairs)))


def verdict_by(decider: PairResult | None) -> tuple[Verdict, Reason | None]:
    """As :func:`assertion_verdict`, from the pair that decides: none is more severe than it."""
    if decider is None:
        return Verdict.INCONCLUSIVE, None
    return decider.verdict, decider.reason if decider.verdict is Verdict.INCONCLUSIVE else None
