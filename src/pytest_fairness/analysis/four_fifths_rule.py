"""The four-fifths rule: from a ratio, its chance and the numbers behind it to a verdict."""

from __future__ import annotations

from dataclasses import replace

from pytest_fairness.analysis.verdicts import (
    MINIMUM_N,
    Decision,
)
from pytest_fairness.model import OutcomeKind, Reason, Verdict
from pytest_fairness.statistics.comparison import Comparison
from pytest_fairness.statistics.four_fifths import (
    ImpactRatio,
)

LEAST_RATIO = 2 / 3
"""A PASS needs the lower end of the ratio's 90 % interval to reach this: four fifths of four fifths is .64."""


def decide(ratio: ImpactRatio, q: float, *, alpha: float, bare: bool, cases: str = "cases") -> Decision:
    """The rule: the ratio, significance after correction, and whether one decision more would turn it."""
    if bare:
        return Decision(verdict=Verdict.FAIL if ratio.below else Verdict.PASS)
    if ratio.x_high == 0:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.PRECISION,
            needs="favourable decisions in some group: without any there is no ratio",
        )
    if ratio.below:
        if q < alpha and not ratio.flip_flop:
            return Decision(verdict=Verdict.FAIL)
        why = "one decision more would turn it round" if ratio.flip_flop else "the difference is within chance"
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.SMALL_NUMBERS,
            needs=f"more {cases} in the smaller group",
            notes=(f"below four fifths, but {why}",),
        )
    if q < alpha:
        return Decision(verdict=Verdict.FLAG, notes=("at least four fifths, but the rates differ by more than chance",))
    fewest = min(ratio.n_low, ratio.n_high)
    if fewest < MINIMUM_N[OutcomeKind.BINARY]:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.PRECISION,
            needs=f"at least {MINIMUM_N[OutcomeKind.BINARY]} {cases} a group (now {fewest})",
        )
    if ratio.low_90 >= LEAST_RATIO:
        return Decision(verdict=Verdict.PASS)
    return Decision(
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.PRECISION,
        needs=f"more {cases}, until the interval of the ratio stays above two thirds",
        notes=("the interval reaches below two thirds",),
    )


def with_chance(decision: Decision, chance: float, cases: str) -> Decision:
    share = f"{100 * chance:.0f} %" if chance >= 0.005 else "under 1 %"
    note = f"equal treatment brings a ratio this low in {share} of audits with as many {cases}"
    return replace(decision, notes=(*decision.notes, note))


def capped(decision: Decision, comparison: Comparison | None, at: int) -> Decision:
    if decision.verdict is Verdict.FAIL and comparison is not None and comparison.labels[at]:
        note = "a group has a single name: the result is about that one, so FAIL is capped at FLAG"
        return replace(decision, verdict=Verdict.FLAG, notes=(*decision.notes, note))
    return decision
