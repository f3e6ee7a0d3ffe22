"""The policy of an equivalence: from the evidence on a pair to its verdict and sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_fairness.analysis.reading import (
    Reading,
)
from pytest_fairness.analysis.sentences import amount, p_words, percent
from pytest_fairness.analysis.verdicts import (
    MAX_RAGGED,
    Decision,
)
from pytest_fairness.model import PairResult, Reason, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the rule of :func:`analyze_equivalence` reads about two groups, in the outcome's own unit."""

    difference: float
    low: float
    high: float
    margin: float
    p_tost: float
    p_value: float
    corrected: float
    alpha: float
    alarm: float
    n: int
    units: int
    minimum: int
    single: bool
    ragged: float
    size: int
    noun: str
    cases: str


def judge(e: Evidence) -> Decision:
    """First match; see :func:`analyze_equivalence`."""
    if e.ragged > MAX_RAGGED:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.RAGGED,
            needs=f"every group in every block: {percent(e.ragged)} of the rows stand in blocks that lack a group",
        )
    significant = e.corrected < e.alarm
    beyond = abs(e.difference) > e.margin
    if e.n < e.minimum:
        verdict = Verdict.FLAG if significant and beyond and e.n >= 2 else Verdict.INCONCLUSIVE
        return Decision(
            verdict=verdict,
            reason=Reason.N if verdict is Verdict.INCONCLUSIVE else None,
            needs=f"at least {e.minimum} {e.cases} a group (now {e.n})",
        )
    if e.p_tost < e.alpha:
        return Decision(verdict=Verdict.PASS)
    if significant and beyond:
        note = ("a group has a single name: the result is about that one, so FAIL is capped at FLAG",)
        return Decision(verdict=Verdict.FLAG if e.single else Verdict.FAIL, notes=note if e.single else ())
    if significant:
        return Decision(verdict=Verdict.FLAG, notes=("the groups differ, perhaps by more than the margin",))
    return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.PRECISION, needs=_needed(e))


def _needed(e: Evidence) -> str | None:
    """The clusters a group with which the interval would fit, if the difference stays."""
    half, room = (e.high - e.low) / 2, e.margin - abs(e.difference)
    if not (math.isfinite(half) and room > 0):
        return None
    needed = max(math.ceil(e.units * (half / room) ** 2), e.units + 1)
    return (
        f"about {needed:,} {e.noun} a group if the difference stays as it is (now {e.units:,})"
        if needed < 1e7
        else None
    )


def sentence(
    verdict: Verdict,
    pair: PairResult | None,
    reading: Reading,
    margin: float,
    unit: str,
    pairs: int,
    missing: Mapping[str, str],
) -> str:
    if pair is None:
        return f"{verdict}: there are no two groups to compare."
    if pair.alarm_only:
        worse = pair.worse_off or pair.group_1
        why = f": {missing[worse]}" if worse in missing else ""
        sure = f"corrected {p_words(pair.corrected_p_value)}"
        return f"{verdict}: {worse} is left without an outcome more often than others{why} ({sure})."
    kind, own_unit = reading.values.kind, reading.unit
    if "margin" not in pair.statistics or pair.reason in (Reason.RAGGED, Reason.UNSCORED):
        return (
            f"{verdict}: {pair.group_1} and {pair.group_2} cannot be compared on {pair.metric}; it takes {pair.needs}."
        )
    low, high = (float(str(pair.statistics[name])) for name in ("interval_low", "interval_high"))
    allowed = f"{margin:g} d" if unit == "d" else amount(margin, kind, own_unit)
    confidence = f"{100 * float(str(pair.statistics['interval_confidence'])):.0f} %"
    first, second, apart = pair.group_1, pair.group_2, pair.difference or 0.0
    if apart > 0:
        first, second, apart, low, high = second, first, -apart, -high, -low
    gap = f"{first} is {amount(-apart, kind, own_unit)} lower than {second} on {pair.metric}"
    if apart == 0:
        gap = f"{first} and {second} are alike on {pair.metric}"
    ends = f"{amount(low, kind)} to {amount(high, kind)}"
    sure = f"{confidence} interval of the difference {ends}, TOST {p_words(pair.p_value)}"
    if verdict is Verdict.PASS:
        count = "the two groups" if pairs == 1 else f"all {pairs} pairs of groups"
        return f"PASS: {count} are equivalent within ±{allowed}; the widest apart: {gap} ({sure})."
    if verdict is Verdict.INCONCLUSIVE:
        if pair.reason is Reason.DIFFERENTIAL_REFUSAL:
            return f"INCONCLUSIVE: {gap}, within ±{allowed}, but are not refused equally often ({sure})."
        needs = f"; it would take {pair.needs}" if pair.needs else ""
        return f"INCONCLUSIVE: {gap}; equivalence within ±{allowed} is not shown ({sure}){needs}."
    return f"{verdict}: {gap}, where ±{allowed} would not matter ({sure})."
