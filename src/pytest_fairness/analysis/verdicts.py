"""The thresholds of the policy, what a decision is, and which pair an assertion is about. Standard library only.

The policy itself, which judges all pairs of a table at once, is :mod:`pytest_fairness.analysis.policy`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pytest_fairness.model import ALARMS, OutcomeKind, PairResult, Reason, Verdict

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
CONFIRMED = 0.5
"""Share of alpha at which a second look at both samples together raises the alarm (Pocock 1977)."""
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
TEMPLATE_ALPHA = 0.2
"""Share of alpha at which a template by itself raises the alarm: .01 of .05."""


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
