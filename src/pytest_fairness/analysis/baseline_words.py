"""The comparison with a baseline in words: the scale of its scores, the sentence, the notes."""

from __future__ import annotations

import math

import numpy as np

from pytest_fairness.analysis.sentences import amount, listed, p_words, percent, signed
from pytest_fairness.errors import UsageError
from pytest_fairness.model import ALARMS, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.baseline_gate import (
    OVERALL,
    PASSES,
    GateResult,
    ScopeTest,
)
from pytest_fairness.statistics.score_summary import ScoreSummary, wider_scale

_RATE = OutcomeKind.BINARY


_MARGINS = {"yes_no": (0.02, 0.05), "percent": (1.0, 3.0)}


_OF_SD = (0.1, 0.3)


_SPAN = {"yes_no": 1.0, "percent": 100.0}


class Scale:
    """What the scores are measured on, the margins on it, and how an amount of it reads."""

    def __init__(self, name: str, overall: float, category: float, unit: str, *, declared: bool) -> None:
        self.name, self.overall, self.category, self.declared = name, overall, category, declared
        self.unit = unit

    @classmethod
    def of(
        cls,
        approved: ScoreSummary,
        current: ScoreSummary,
        margins: tuple[float | None, float | None],
        ends: tuple[float | None, float | None],
        unit: str,
    ) -> Scale:
        name = wider_scale(_scale(approved), _scale(current))
        low, high = ends
        if low is not None and high is not None and name != "yes_no":
            name = "percent" if (low, high) == (0.0, 100.0) else "other"
        defaults = _MARGINS.get(name)
        if defaults is None:
            means = np.array([score.mean for score in approved.personas.values()])
            sd = float(means.std(ddof=1)) if means.size > 1 else 0.0
            defaults = _OF_SD[0] * sd, _OF_SD[1] * sd
        span = _SPAN.get(name, high - low if low is not None and high is not None else math.inf)
        chosen = [default if given is None else given for given, default in zip(margins, defaults, strict=True)]
        for what, given in zip(("margin_overall", "margin_category"), margins, strict=True):
            if given is not None and (given < 0 or not math.isfinite(given)):
                raise UsageError(
                    f"{what} is {given}: a margin is the drop that is allowed, in the score's unit, 0 or more"
                )
            if given is not None and given >= span:
                raise UsageError(
                    f"{what} is {given:g}, but the score only spans {span:g}: no drop could reach it. Give the margin "
                    "in the score's own unit" + (", .02 for two percentage points" if name == "yes_no" else "")
                )
        declared = any(given is not None for given in margins)
        return cls(name, chosen[0], chosen[1], unit, declared=declared)

    def value(self, value: float) -> str:
        """A score: ``55.8 %``, ``81.3``, ``0.412``."""
        if self.name == "percent":
            return signed(f"{value:.1f}")
        return amount(value, _RATE if self.name == "yes_no" else None)

    def change(self, value: float) -> str:
        """A change: ``−12.0 percentage points``, ``−2.7 points``, ``+0.021``."""
        if self.name == "yes_no":
            return signed(f"{100 * value:+.1f} percentage points")
        if self.name == "percent":
            return signed(f"{value:+.1f} {self.unit}")
        text = amount(abs(value), None, "" if self.unit == "points" else self.unit)
        return ("−" if value < 0 else "+") + text

    def margin(self, value: float) -> str:
        return self.change(value).removeprefix("+")


def _scale(summary: ScoreSummary) -> str:
    """As it was recorded; by the persona means for a summary from before it was."""
    if summary.scale or not summary.personas:
        return summary.scale
    means = np.array([score.mean for score in summary.personas.values()])
    return "percent" if means.min() >= 0 and 10 < means.max() <= 100 else ""


def statistic(pair: PairResult) -> str:
    s = pair.statistics
    if pair.metric == PASSES:
        return f"{s['passes_lost']} passes lost, {s['passes_gained']} gained"
    return f"t = {float(str(s['t'])):.4g}, df = {s['df']}"


def needs(scope: ScopeTest, scale: Scale) -> str | None:
    if scope.reason is not None:
        return "the same personas in the baseline and in the run"
    if scope.label == PASSES:
        return None
    if scope.repetitions_needed is None:
        return f"more personas: no number of repetitions shows a drop of {scale.margin(scope.margin)} reliably"
    return f"{scope.repetitions_needed} repetitions to show a drop of {scale.margin(scope.margin)} in 80 % of runs"


def sentence(
    gate: GateResult,
    pairs: tuple[PairResult, ...],
    verdict: Verdict,
    reason: Reason | None,
    runs: tuple[ScoreSummary, ScoreSummary],
    scale: Scale,
    new_warnings: list[str],
) -> str:
    approved, current = runs
    if verdict in ALARMS:
        worse = [
            _fall(scope, scale)
            for scope, pair in zip(gate.scopes, pairs, strict=True)
            if pair.verdict is (Verdict.FAIL if verdict is Verdict.FAIL else Verdict.FLAG)
        ]
        if new_warnings:
            worse.append(f"warnings that the baseline has none of: {listed(new_warnings)}")
        within = " (within the margin)" if verdict is Verdict.FLAG and not new_warnings else ""
        return f"worse than the approved baseline{within}: " + "; ".join(worse) + "."
    if reason is Reason.UNSCORED:
        return (
            f"not comparable with the approved baseline: {current.unscored} of {current.trials} replies now "
            f"and {approved.unscored} of {approved.trials} then gave no score (5 % are allowed)."
        )
    if reason is Reason.DIFFERENTIAL_REFUSAL:
        return (
            f"the scores held, but refusals rose from {percent(share(approved.refused, approved))} to "
            f"{percent(share(current.refused, current))} since the baseline was approved: what is no longer "
            "answered is no longer scored."
        )
    if reason is Reason.PRECISION:
        held = [pair.metric for pair in pairs if pair.reason is Reason.PRECISION]
        named = [f"{key} {scale.change(change)}" for key, change in gate.changes.items()]
        return (
            f"no regression shown, but {listed(held)} cannot be judged because of changes far from all others "
            f"({listed(named)}). Look at their replies, or run again."
        )
    if verdict is Verdict.INCONCLUSIVE:
        scope = next(scope for scope in gate.scopes if scope.reason is not None)
        needed = "at least two" if reason is Reason.N else "80 %"
        return (
            f"not comparable with the approved baseline: {scope.n} of {scope.n + scope.missing} personas "
            f"({scope.label}) have a score in both; {needed} are needed."
        )
    overall, others = gate.scopes[0], sum(scope.label not in (OVERALL, PASSES) for scope in gate.scopes)
    return (
        f"no regression against the approved baseline: {overall.label} {scale.value(overall.approved)} → "
        f"{scale.value(overall.now)} ({scale.change(overall.test.mean)}) over {overall.n} personas"
        + (f", and none of {others} categories beyond its margin and chance." if others else ".")
    )


def _fall(scope: ScopeTest, scale: Scale) -> str:
    sure = f"corrected {p_words(min(1.0, 2 * (scope.corrected_p or 0.0)))}"
    if scope.label == PASSES:
        before, after = round(scope.approved * scope.n), round(scope.now * scope.n)
        return f"passes {before} → {after} of {scope.n} personas ({scope.lost} lost, {scope.gained} gained, {sure})"
    moved = f"{scale.change(scope.test.mean)} over {scope.n} personas"
    if scope.outliers:
        moved = f"{scale.change(scope.clipped)} over {scope.n} personas with {listed(list(scope.outliers))} clipped"
    return (
        f"{scope.label} {scale.value(scope.approved)} → {scale.value(scope.now)} ({moved}, {sure}, margin "
        f"{scale.margin(scope.margin)})"
    )


def notes(gate: GateResult, scale: Scale, new_warnings: list[str]) -> tuple[str, ...]:
    notes = []
    if gate.changes:
        named = [f"{key} {scale.change(change)}" for key, change in gate.changes.items()]
        notes.append(f"changes far from all others, clipped in the second family: {listed(named, 6)}")
    if gate.untested:
        notes.append(f"not tested, one persona only: {', '.join(gate.untested)}")
    if not scale.declared:
        on = {"yes_no": "yes/no", "percent": "0 to 100"}.get(scale.name, "a scale of its own")
        notes.append(
            f"margins by the scale of the score ({on}): {scale.margin(scale.overall)} overall, "
            f"{scale.margin(scale.category)} a category"
        )
    if new_warnings:
        notes.append(f"warnings that the baseline has none of: {listed(new_warnings, 10)}")
    return tuple(notes)


def share(count: int, summary: ScoreSummary) -> float:
    return count / summary.trials if summary.trials else 0.0
