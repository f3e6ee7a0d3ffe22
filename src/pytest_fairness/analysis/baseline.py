"""The baseline gate as a finding."""

from __future__ import annotations

import pandas as pd

from pytest_fairness.analysis.provenance import stamp
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Finding, GroupResult, PairResult, Reason, Verdict
from pytest_fairness.statistics.baseline_gate import (
    GateResult,
    ScopeTest,
    ScoreSummary,
    baseline_gate,
    summarise_scores,
)
from pytest_fairness.statistics.one_sample import one_sample_t
from pytest_fairness.verdict import MAX_REFUSAL_DIFFERENCE, MAX_UNSCORED, as_spec, deciding_pair
from pytest_fairness.wording import p_words

__all__ = ["ScoreSummary", "compare_baseline", "summarise_scores"]

NOW, APPROVED = "now", "approved"


def compare_baseline(
    approved: ScoreSummary,
    current: ScoreSummary,
    *,
    alpha: float = 0.005,
    margin_overall: float = 1.0,
    margin_category: float = 3.0,
    minimum_personas: int = 8,
    lower_is_worse: bool = True,
    outcome: str = "score",
    unit: str = "points",
    frame: pd.DataFrame | None = None,
) -> Finding:
    """Judge whether the scores of the same personas have dropped since they were approved.

    FAIL where the overall score or a category with at least *minimum_personas* has dropped by its margin (in
    the score's own unit) or more with a Holm-corrected one-sided p below *alpha*. INCONCLUSIVE(OVERLAP)
    where under 80 % of a scope's personas are in both, INCONCLUSIVE(UNSCORED) where over 5 % of either run's
    replies gave no score, INCONCLUSIVE(DIFFERENTIAL_REFUSAL) where refusals rose by over 5 points. PASS
    otherwise.

    One pair a tested scope: ``metric`` is ``overall`` or the category, ``group_1`` ``now``, ``group_2``
    ``approved``; ``effect`` is the mean change over its SD between personas. *frame*, if given, lends the
    finding its endpoint, tier and provenance. Raises UsageError for an alpha or a margin out of range.
    """
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is {alpha}: a probability between 0 and 1 is needed")
    if margin_overall < 0 or margin_category < 0:
        raise UsageError("a margin is the drop that is allowed, in the score's unit: 0 or more")
    gate = baseline_gate(
        approved,
        current,
        alpha=alpha,
        margin_overall=margin_overall,
        margin_category=margin_category,
        minimum_personas=minimum_personas,
        lower_is_worse=lower_is_worse,
    )
    pairs = tuple(_pair(scope, alpha, lower_is_worse, unit) for scope in gate.scopes)
    verdict, reason = _verdict(pairs, approved, current)
    worst = deciding_pair([pair for pair in pairs if pair.reason is None])
    finding = Finding(
        assertion="baseline",
        verdict=verdict,
        reason=reason,
        spec_verdict=as_spec(verdict),
        sentence=f"{verdict}: " + _sentence(gate, verdict, reason, (approved, current), unit),
        outcome=outcome,
        unit=unit,
        cluster="persona",
        pairs=pairs,
        group_results=(_group(NOW, current), _group(APPROVED, approved)),
        n_per_group={NOW: _scored(current), APPROVED: _scored(approved)},
        refusal_rates={NOW: _share(current.refused, current), APPROVED: _share(approved.refused, approved)},
        test_statistic="" if worst is None else f"t = {worst.statistics['t']:.4g}, df = {worst.statistics['df']}",
        p_value=None if worst is None else worst.p_value,
        corrected_p_value=None if worst is None else worst.corrected_p_value,
        effect_size="" if worst is None else f"{worst.difference:+.3g} {unit}",
        family={
            "tests": [scope.label for scope in gate.scopes if scope.corrected_p is not None],
            "size": sum(scope.corrected_p is not None for scope in gate.scopes),
            "method": "holm",
            "alpha": alpha,
        },
        details={
            "overlap": gate.overlap,
            "untested": list(gate.untested),
            "repetitions": {NOW: current.repetitions, APPROVED: approved.repetitions},
            "run_sd": {NOW: current.run_sd, APPROVED: approved.run_sd},
            "margins": {"overall": margin_overall, "category": margin_category},
        },
        notes=_notes(gate, minimum_personas),
    )
    return stamp(finding, pd.DataFrame() if frame is None else frame)


def _pair(scope: ScopeTest, alpha: float, lower_is_worse: bool, unit: str) -> PairResult:
    verdict = Verdict.FAIL if scope.regression else Verdict.INCONCLUSIVE if scope.reason else Verdict.PASS
    worsening = -scope.test.mean if lower_is_worse else scope.test.mean
    low, high = scope.test.interval(0.90)
    notes = []
    if verdict is Verdict.PASS and scope.corrected_p is not None and worsening > 0:
        if scope.corrected_p < alpha:
            notes.append(f"worse beyond chance, but by less than the margin of {scope.margin:g} {unit}")
        elif worsening >= scope.margin:
            notes.append(f"worse by the margin of {scope.margin:g} {unit} or more, but not beyond chance")
    return PairResult(
        group_1=NOW,
        group_2=APPROVED,
        metric=scope.label,
        verdict=verdict,
        reason=scope.reason,
        spec_verdict=Verdict.FAIL if scope.regression else Verdict.PASS,
        p_row=scope.test.p,
        p_cluster=scope.test.p,
        p_value=scope.test.p,
        corrected_p_value=1.0 if scope.corrected_p is None else scope.corrected_p,
        effect=_standardised(scope.test.mean, scope.test.sd),
        effect_name="mean change / SD of the changes",
        effect_low=_standardised(low, scope.test.sd) if scope.n > 1 else None,
        effect_high=_standardised(high, scope.test.sd) if scope.n > 1 else None,
        difference=scope.test.mean,
        worse_off=NOW if worsening > 0 else APPROVED if worsening < 0 else None,
        test="one-sided paired t over personas",
        scope="personas",
        needs=_needs(scope, unit),
        statistics={
            "t": scope.test.t,
            "df": scope.test.df,
            "sd": scope.test.sd,
            "personas": scope.n,
            "missing": scope.missing,
            NOW: scope.now,
            APPROVED: scope.approved,
            "margin": scope.margin,
            # one-sided: with 99 % confidence the change is at least as bad as this
            "bound_99": scope.test.interval(0.98)[1 if lower_is_worse else 0],
            "repetitions_needed": scope.repetitions_needed,
            "lower_than_baseline": worsening > 0,
        },
        notes=tuple(notes),
    )


def _standardised(value: float, sd: float) -> float:
    if not value:
        return 0.0
    return value / sd if sd else float("inf") if value > 0 else float("-inf")


def _needs(scope: ScopeTest, unit: str) -> str | None:
    if scope.reason is not None:
        return "the same personas in the baseline and in the run"
    if scope.repetitions_needed is None:
        return f"more personas: no number of repetitions shows a drop of {scope.margin:g} {unit} reliably"
    return f"{scope.repetitions_needed} repetitions to show a drop of {scope.margin:g} {unit} in 80 % of runs"


def _verdict(
    pairs: tuple[PairResult, ...], approved: ScoreSummary, current: ScoreSummary
) -> tuple[Verdict, Reason | None]:
    verdict = Verdict.worst([pair.verdict for pair in pairs])
    if verdict is Verdict.FAIL:
        return verdict, None
    if max(_share(current.unscored, current), _share(approved.unscored, approved)) > MAX_UNSCORED:
        return Verdict.INCONCLUSIVE, Reason.UNSCORED
    if verdict is Verdict.INCONCLUSIVE:
        return verdict, next(pair.reason for pair in pairs if pair.reason is not None)
    if _share(current.refused, current) - _share(approved.refused, approved) > MAX_REFUSAL_DIFFERENCE:
        return Verdict.INCONCLUSIVE, Reason.DIFFERENTIAL_REFUSAL
    return verdict, None


def _sentence(
    gate: GateResult,
    verdict: Verdict,
    reason: Reason | None,
    runs: tuple[ScoreSummary, ScoreSummary],
    unit: str,
) -> str:
    approved, current = runs
    if verdict is Verdict.FAIL:
        told = [
            f"{scope.label} {scope.approved:.1f} → {scope.now:.1f} ({scope.test.mean:+.1f} {unit} over "
            f"{scope.n} personas, corrected {p_words(scope.corrected_p or 0.0)}, margin {scope.margin:g})"
            for scope in gate.scopes
            if scope.regression
        ]
        return "worse than the approved baseline: " + "; ".join(told) + "."
    if reason is Reason.UNSCORED:
        return (
            f"not comparable with the approved baseline: {current.unscored} of {current.trials} replies now "
            f"and {approved.unscored} of {approved.trials} then gave no score (5 % are allowed)."
        )
    if reason is Reason.DIFFERENTIAL_REFUSAL:
        return (
            f"the scores held, but refusals rose from {_share(approved.refused, approved):.0%} to "
            f"{_share(current.refused, current):.0%} since the baseline was approved: what is no longer "
            "answered is no longer scored."
        )
    if verdict is Verdict.INCONCLUSIVE:
        scope = next(scope for scope in gate.scopes if scope.reason is not None)
        needed = "at least two" if reason is Reason.N else "80 %"
        return (
            f"not comparable with the approved baseline: {scope.n} of {scope.n + scope.missing} personas "
            f"({scope.label}) have a score in both; {needed} are needed."
        )
    overall, others = gate.scopes[0], len(gate.scopes) - 1
    return (
        f"no regression against the approved baseline: {overall.label} {overall.approved:.1f} → "
        f"{overall.now:.1f} ({overall.test.mean:+.1f} {unit}) over {overall.n} personas"
        + (f", and none of {others} categories beyond its margin and chance." if others else ".")
    )


def _notes(gate: GateResult, minimum: int) -> tuple[str, ...]:
    if not gate.untested:
        return ()
    return (f"not tested, under {minimum} personas: {', '.join(gate.untested)}",)


def _group(label: str, summary: ScoreSummary) -> GroupResult:
    spread = one_sample_t([score.mean for score in summary.personas.values()])
    low, high = spread.interval(0.95)
    return GroupResult(
        group=label,
        n=_scored(summary),
        n_distinct=_scored(summary),
        clusters=len(summary.personas),
        value=summary.overall if summary.personas else None,
        low=low if spread.n > 1 else None,
        high=high if spread.n > 1 else None,
        sd=spread.sd if spread.n > 1 else None,
        refused=summary.refused,
        unscored=summary.unscored,
        refusal_rate=_share(summary.refused, summary) if summary.trials else None,
    )


def _scored(summary: ScoreSummary) -> int:
    return sum(score.n for score in summary.personas.values())


def _share(count: int, summary: ScoreSummary) -> float:
    return count / summary.trials if summary.trials else 0.0
