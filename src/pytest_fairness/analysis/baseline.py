"""The baseline gate as a finding."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pytest_fairness import model
from pytest_fairness.analysis.policy import (
    MAX_REFUSAL_DIFFERENCE,
    MAX_UNSCORED,
    Conclusion,
    Decision,
    worst_spec,
)
from pytest_fairness.analysis.provenance import finding_of, with_provenance
from pytest_fairness.analysis.sentences import amount, effect_with_interval
from pytest_fairness.errors import UsageError
from pytest_fairness.scorers.letter import (
    LETTER_SCORE,
    LetterReader,
    category_scores,
    warnings_of_trials,
)
from pytest_fairness.scorers.lexicon import CATEGORIES
from pytest_fairness.statistics.clusters import MeanTest, one_sample_t
from pytest_fairness.statistics.persona_scores import (
    ScoreSummary,
    scale_of,
    summarise_scores,
    wider_scale,
)
from pytest_fairness.statistics.score_gate import (
    OVERALL,
    PASSES,
    GateResult,
    ScopeTest,
    baseline_gate,
)
from pytest_fairness.words import enumerated, p_equals, percent, points, signed

if TYPE_CHECKING:
    from pytest_fairness.scorers.outcome import Outcome

__all__ = ["ScoreSummary", "compare_baseline", "first_approval", "summarise_scores"]

NOW, APPROVED = "now", "approved"
#: Scopes that the sentence of a regression names.
_MOST_FALLEN = 5
CRITICAL = "critical"


def compare_baseline(
    approved: ScoreSummary,
    current: ScoreSummary,
    *,
    alpha: float = 0.005,
    margin_overall: float | None = None,
    margin_category: float | None = None,
    threshold: float | None = None,
    low: float | None = None,
    high: float | None = None,
    lower_is_worse: bool = True,
    outcome: str = "score",
    unit: str = "points",
    frame: pd.DataFrame | None = None,
) -> model.Finding:
    """Judge whether the scores of the same personas have dropped since they were approved.

    Two families, each corrected by Holm at *alpha*/2: the changes as they are (overall, categories
    of 8 personas and more, and passes where there is a *threshold*), and the changes with outliers
    clipped (overall, every category of 2 and more). FAIL where a scope is significant in either and
    has dropped by more than its margin; FLAG where it is significant within the margin.
    INCONCLUSIVE(PRECISION) for a category that holds more clipped falls, less clipped rises, than
    the others' share makes likely, INCONCLUSIVE(OVERLAP) where under 80 % of a scope's personas are
    in both, INCONCLUSIVE(UNSCORED) where over 5 % of either run's replies gave no score,
    INCONCLUSIVE(DIFFERENTIAL_REFUSAL) where refusals rose by over 5 points. A kind of warning that
    the baseline lacks is FAIL if it is critical, else FLAG. PASS otherwise.

    The margins are in the score's own unit. By default 1 point overall and 3 a category on 0–100, 2
    and 5 percentage points for yes/no, else .1 and .3 of the SD between the approved personas.
    *low* and *high* are the ends of the scale, where it is declared.

    One pair a tested scope: ``metric`` is ``overall``, ``passes`` or the category, ``group_1``
    ``now``, ``group_2`` ``approved``; ``effect`` is the mean change over its SD between personas.
    *frame*, if given, lends the finding its endpoint, tier and provenance. Raises UsageError for an
    alpha or a margin out of range, and for a margin that the scale cannot reach.
    """
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is {alpha}: a probability between 0 and 1 is needed")
    scale = Scale.of(approved, current, (margin_overall, margin_category), (low, high), unit)
    runs = {NOW: current, APPROVED: approved}
    passes_from = threshold
    if threshold is None and scale.name == "yes_no":
        passes_from = 0.5
    gate = baseline_gate(
        approved,
        current,
        alpha=alpha,
        margin_overall=scale.overall,
        margin_category=scale.category,
        lower_is_worse=lower_is_worse,
        threshold=passes_from,
    )
    pairs = tuple(_pair(scope, lower_is_worse, scale) for scope in gate.scopes)
    new_warnings = [name for name in current.warnings if name not in approved.warnings]
    verdict, reason = _verdict(pairs, approved, current, new_warnings)
    worst = model.deciding_pair([pair for pair in pairs if pair.reason is None])
    words = _sentence(gate, pairs, verdict, reason, (approved, current), scale, new_warnings)
    if frame is None:
        frame = pd.DataFrame()
    return finding_of(
        frame,
        assertion="baseline",
        conclusion=Conclusion(verdict, reason, worst),
        # The literal recipe fails whatever is lower than the baseline, overall or in any category.
        spec_verdict=worst_spec(pair.spec_verdict for pair in pairs if pair.metric != PASSES),
        sentence=f"{verdict}: {words}.",
        outcome=outcome,
        unit=unit,
        cluster="persona",
        pairs=pairs,
        groups=[_group(label, run) for label, run in runs.items()],
        tested=partial(_in_words, scale),
        family=_family(gate, alpha),
        details={
            "overlap": gate.overlap,
            "untested": list(gate.untested),
            "clipped": dict(gate.changes),
            "repetitions": {label: run.repetitions for label, run in runs.items()},
            "run_sd": {label: run.run_sd for label, run in runs.items()},
            "scale": scale.name,
            "margins": {"overall": scale.overall, "category": scale.category},
            "margins_declared": scale.declared,
            "new_warnings": list(new_warnings),
        },
        notes=tuple(_notes(gate, scale, new_warnings)),
    )


def _in_words(scale: Scale, pair: model.PairResult) -> tuple[str, str]:
    """Return the test of *pair*, and its change with its effect."""
    words = "t = {t:.4g}, df = {df}"
    if pair.metric == PASSES:
        words = "{passes_lost} passes lost, {passes_gained} gained"
    effect = effect_with_interval(pair.effect_name, pair.effect, pair.effect_low, pair.effect_high)
    return words.format(**pair.statistics), f"{scale.change(pair.difference or 0.0)}; {effect}"


def _family(gate: GateResult, alpha: float) -> dict[str, model.JSON]:
    """Return what was tested: a scope counts once in each of the two families that it is in."""
    tests: list[model.JSON] = [
        scope.label for scope in gate.scopes if scope.p.corrected is not None
    ]
    size = 0
    for scope in gate.scopes:
        size += (scope.p.raw is not None) + (scope.p.clipped is not None)
    return {"tests": tests, "size": size, "method": "holm, two families", "alpha": alpha}


def first_approval(
    finding: model.Finding, summary: ScoreSummary, frame: pd.DataFrame
) -> model.Finding:
    """The *finding* that a first baseline is approved, with what is known of its trials. Its
    verdict stays: approving has rules of its own.
    """
    approved = _group(NOW, summary)
    refusal_rates = {}
    if approved.refusal_rate is not None:
        refusal_rates[approved.group] = approved.refusal_rate
    approval = replace(
        finding,
        cluster="persona",
        n_per_group={approved.group: approved.n},
        group_results=(approved,),
        refusal_rates=refusal_rates,
    )
    kept = ("verdict", "reason", "sentence", "explanation")
    return replace(
        with_provenance(approval, frame), **{name: getattr(finding, name) for name in kept}
    )


def scores_of(frame: pd.DataFrame, outcome: Outcome, arguments: Mapping[str, Any]) -> ScoreSummary:
    """The persona scores that the assertion with *arguments* compares with its baseline."""
    from pytest_fairness.trials_frame import design_of

    design = design_of(frame)
    categories = arguments["categories"]
    if categories is None:
        categories = design.protected_classes
    letter = getattr(outcome.scorer, "score", None)
    if isinstance(letter, LetterReader) and letter.name == LETTER_SCORE:
        of_letters = _of_letters(frame, letter, arguments["warnings"])
    else:
        of_letters = {"frame": frame, "warnings": arguments["warnings"]}
    return summarise_scores(
        score_values=outcome.values,
        persona=arguments["persona"] or design.persona_column(frame),
        categories=list(categories),
        **of_letters,
    )


def _of_letters(frame: pd.DataFrame, letter: LetterReader, column: str | None) -> dict[str, Any]:
    """Return what a score of letters is made of: the score of each category of the lexicon, the
    patterns of the warnings that nobody accepted, and these warnings as a column where none is
    given.
    """
    warnings = warnings_of_trials(frame, letter.lexicon)
    scores = list(map(category_scores, warnings))
    patterns = []
    kinds = []
    for warnings_of_letter in warnings:
        opened = [warning for warning in warnings_of_letter if not warning.accepted]
        patterns.append([f"{warning.severity}: {warning.term}" for warning in opened])
        kinds.append([(warning.severity, warning.category) for warning in opened])
    if column is None:
        column = "lexicon_warnings"
        frame = frame.assign(**{column: pd.Series(kinds, index=frame.index, dtype=object)})
    parts = {name: [score[name] for score in scores] for name in CATEGORIES}
    return {"frame": frame, "warnings": column, "parts": parts, "patterns": patterns}


def comparison(
    approved: ScoreSummary,
    current: ScoreSummary,
    frame: pd.DataFrame,
    outcome: Outcome,
    arguments: Mapping[str, Any],
) -> model.Finding:
    """Return what the assertion with *arguments* makes of the scores *current* of *frame*, against
    those
    *approved*.
    """
    names = ("alpha", "margin_overall", "margin_category", "threshold")
    return compare_baseline(
        approved,
        current,
        **{name: arguments[name] for name in names},
        low=outcome.low,
        high=outcome.high,
        lower_is_worse=outcome.lower_is_worse,
        outcome=outcome.name,
        unit=outcome.unit or "points",
        frame=frame,
    )


def _pair(scope: ScopeTest, lower_is_worse: bool, scale: Scale) -> model.PairResult:
    passes = scope.label == PASSES
    test = scope.test
    worsening = test.mean
    if lower_is_worse or passes:
        worsening = -test.mean
    worse_off = None
    spec = model.Verdict.PASS
    if worsening > 0:
        worse_off = NOW
        spec = model.Verdict.FAIL
    elif worsening < 0:
        worse_off = APPROVED
    name = "one-sided paired t over personas"
    if passes:
        name = "exact McNemar over personas"
    decision = _decision(scope, scale, worsening)
    effect, low, high = _effect(test)
    statistics: dict[str, model.JSON] = {
        "t": test.t,
        "df": test.df,
        "sd": test.sd,
        "personas": scope.n,
        "missing": scope.missing,
        NOW: scope.now,
        APPROVED: scope.approved,
        "margin": scope.margin,
        "raw_corrected_p_value": scope.p.raw,
        "clipped_corrected_p_value": scope.p.clipped,
        "clipped_change": scope.clipped,
        "clipped_personas": list(scope.outliers),
        # one-sided: with 99 % confidence the change is at least as bad as this
        "bound_99": test.interval(0.98)[int(lower_is_worse)],
        "repetitions_needed": scope.repetitions_needed,
        "lower_than_baseline": worsening > 0,
    }
    if passes:
        statistics |= {"passes_lost": scope.lost, "passes_gained": scope.gained}
    return model.PairResult(
        group_1=NOW,
        group_2=APPROVED,
        metric=scope.label,
        verdict=decision.verdict,
        reason=decision.reason,
        spec_verdict=spec,
        p_row=scope.p.value,
        p_cluster=scope.p.value,
        p_value=scope.p.value,
        corrected_p_value=_corrected(scope),
        effect=effect,
        effect_name="mean change / SD of the changes",
        effect_low=low,
        effect_high=high,
        difference=test.mean,
        worse_off=worse_off,
        test=name,
        scope="personas",
        needs=decision.needs,
        statistics=statistics,
        notes=decision.notes,
    )


def _decision(scope: ScopeTest, scale: Scale, worsening: float) -> Decision:
    """Return what is decided of *scope*, whose mean is worse by *worsening*."""
    if scope.label == PASSES:
        margin = Scale(name="yes_no").margin(scope.margin)
    else:
        margin = scale.margin(scope.margin)
    needs = _needs(scope, scale)
    if scope.regression:
        return Decision(model.Verdict.FAIL, scope.reason, needs)
    if scope.reason is not None:
        return Decision(model.Verdict.INCONCLUSIVE, scope.reason, needs)
    if scope.slip:
        note = f"worse beyond chance, but by less than the margin of {margin}"
        return Decision(model.Verdict.FLAG, None, needs, (note,))
    if scope.crowded:
        far = enumerated(list(scope.outliers))
        note = f"more changes far from all others are among {scope.label} than elsewhere: {far}"
        return Decision(model.Verdict.INCONCLUSIVE, model.Reason.PRECISION, needs, (note,))
    if worsening > scope.margin > 0 and scope.p.corrected is not None:
        note = f"worse by more than the margin of {margin}, but not beyond chance"
        return Decision(model.Verdict.PASS, None, needs, (note,))
    return Decision(model.Verdict.PASS, None, needs)


def _effect(test: MeanTest) -> tuple[float, float | None, float | None]:
    """Return the mean change in SDs, endless where nothing varies, and its 90 % interval where that
    has ends and holds it.
    """
    if not test.sd:
        if test.mean:
            return math.copysign(math.inf, test.mean), None, None
        return 0.0, None, None
    effect = test.mean / test.sd
    low, high = (end / test.sd for end in test.interval(0.90))
    if math.isfinite(high - low) and low < effect < high:
        return effect, low, high
    return effect, None, None


def _corrected(scope: ScopeTest) -> float:
    """The better of the two families, twice over."""
    if scope.p.corrected is None:
        return 1.0
    return min(1.0, 2 * scope.p.corrected)


def _verdict(
    pairs: tuple[model.PairResult, ...],
    approved: ScoreSummary,
    current: ScoreSummary,
    new_warnings: list[str],
) -> tuple[model.Verdict, model.Reason | None]:
    verdict = model.Verdict.worst([pair.verdict for pair in pairs])
    if verdict is model.Verdict.FAIL or any(name.startswith(CRITICAL) for name in new_warnings):
        return model.Verdict.FAIL, None
    if max(share(current.unscored, current), share(approved.unscored, approved)) > MAX_UNSCORED:
        return model.Verdict.INCONCLUSIVE, model.Reason.UNSCORED
    if verdict is model.Verdict.FLAG or new_warnings:
        return model.Verdict.FLAG, None
    if verdict is model.Verdict.INCONCLUSIVE:
        reasons = [pair.reason for pair in pairs if pair.reason is not None]
        return verdict, min(
            reasons, key=lambda reason: (not reason.unusable, reason is model.Reason.PRECISION)
        )
    if share(current.refused, current) - share(approved.refused, approved) > MAX_REFUSAL_DIFFERENCE:
        return model.Verdict.INCONCLUSIVE, model.Reason.DIFFERENTIAL_REFUSAL
    return verdict, None


def _group(label: str, summary: ScoreSummary) -> model.GroupResult:
    spread = one_sample_t([score.mean for score in summary.personas.values()])
    group = model.GroupResult(
        group=label,
        n=sum(score.n for score in summary.personas.values()),
        clusters=len(summary.personas),
        refused=summary.refused,
        unscored=summary.unscored,
    )
    if summary.personas:
        group = replace(group, value=summary.overall)
    if spread.units > 1:
        low, high = spread.interval(0.95)
        group = replace(group, low=low, high=high, sd=spread.sd)
    if summary.trials:
        group = replace(group, refusal_rate=share(summary.refused, summary))
    return group


# ---------------------------------------------------------------- the scale, and words

_MARGINS = {"yes_no": (0.02, 0.05), "percent": (1.0, 3.0)}
_OF_SD = (0.1, 0.3)
_SPAN = {"yes_no": 1.0, "percent": 100.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The scale of the scores: its margins, and an amount of it in words."""

    name: str
    overall: float = 0.0
    category: float = 0.0
    unit: str = ""
    declared: bool = False

    @classmethod
    def of(
        cls,
        approved: ScoreSummary,
        current: ScoreSummary,
        margins: tuple[float | None, float | None],
        ends: tuple[float | None, float | None],
        unit: str,
    ) -> Scale:
        means = np.array([score.mean for score in approved.personas.values()])
        name = wider_scale(_scale(approved), _scale(current))
        span = math.inf
        if None not in ends:
            low, high = map(float, ends)  # type: ignore[arg-type]
            span = high - low
            if name != "yes_no":
                name = "other"
                if (low, high) == (0.0, 100.0):
                    name = "percent"
        span = _SPAN.get(name, span)
        sd = 0.0
        if means.size > 1:
            sd = float(means.std(ddof=1))
        overall, category = _MARGINS.get(name, (_OF_SD[0] * sd, _OF_SD[1] * sd))
        if margins[0] is not None:
            overall = margins[0]
            _check_margin("margin_overall", overall, name, span)
        if margins[1] is not None:
            category = margins[1]
            _check_margin("margin_category", category, name, span)
        declared = margins != (None, None)
        return cls(name=name, overall=overall, category=category, unit=unit, declared=declared)

    def value(self, value: float) -> str:
        """A score: ``55.8 %``, ``81.3``, ``0.412``."""
        if self.name == "percent":
            return signed(f"{value:.1f}")
        if self.name == "yes_no":
            return amount(value, model.OutcomeKind.BINARY)
        return amount(value, None)

    def change(self, value: float) -> str:
        """A change: ``−12.0 percentage points``, ``−2.7 points``, ``+0.021``."""
        if self.name == "yes_no":
            return f"{points(value)} percentage points"
        if self.name == "percent":
            return signed(f"{value:+.1f} {self.unit}")
        unit = self.unit
        if unit == "points":
            unit = ""
        text = amount(abs(value), None, unit)
        if value < 0:
            return f"−{text}"
        return f"+{text}"

    def margin(self, value: float) -> str:
        return self.change(value).removeprefix("+")


def _check_margin(what: str, margin: float, scale: str, span: float) -> None:
    """Raise UsageError for a margin that is none, or that a score spanning *span* cannot fall by."""
    if margin < 0 or not math.isfinite(margin):
        raise UsageError(
            f"{what} is {margin}: a margin is the drop that is allowed, in the score's unit, 0 or "
            "more"
        )
    if margin >= span:
        example = ""
        if scale == "yes_no":
            example = ", .02 for two percentage points"
        raise UsageError(
            f"{what} is {margin:g}, but the score only spans {span:g}: no drop could reach it. "
            f"Give the margin in the score's own unit{example}"
        )


def _scale(summary: ScoreSummary) -> str:
    """As it was recorded; by the persona means for a summary from before it was."""
    if summary.scale or not summary.personas:
        return summary.scale
    means = np.array([score.mean for score in summary.personas.values()])
    if scale_of(means) == "percent":
        return "percent"
    return ""


def _needs(scope: ScopeTest, scale: Scale) -> str | None:
    if scope.reason is not None:
        return "the same personas in the baseline and in the run"
    drop = f"a drop of {scale.margin(scope.margin)}"
    if scope.repetitions_needed is not None:
        return f"{scope.repetitions_needed} repetitions to show {drop} in 80 % of runs"
    if scope.label == PASSES:
        return None
    return f"more personas: no number of repetitions shows {drop} reliably"


def _sentence(
    gate: GateResult,
    pairs: tuple[model.PairResult, ...],
    verdict: model.Verdict,
    reason: model.Reason | None,
    runs: tuple[ScoreSummary, ScoreSummary],
    scale: Scale,
    new_warnings: list[str],
) -> str:
    approved, current = runs
    if verdict in model.ALARMS:
        judged = zip(gate.scopes, pairs, strict=True)
        alarming = [scope for scope, pair in judged if pair.verdict is verdict]
        within = verdict is model.Verdict.FLAG and not new_warnings
        return _alarm(alarming, scale, new_warnings, within_margin=within)
    if reason is model.Reason.UNSCORED:
        return (
            f"not comparable with the approved baseline: {current.unscored} of {current.trials} "
            f"replies now and {approved.unscored} of {approved.trials} then gave no score (5 % are "
            "allowed)"
        )
    if reason is model.Reason.DIFFERENTIAL_REFUSAL:
        before, now = (percent(share(run.refused, run), 0) for run in runs)
        return (
            f"the scores held, but refusals rose from {before} to {now} since the baseline was "
            "approved: what is no longer answered is no longer scored"
        )
    if reason is model.Reason.PRECISION:
        held = [pair.metric for pair in pairs if pair.reason is model.Reason.PRECISION]
        return (
            f"no regression shown, but {enumerated(held)} cannot be judged because of changes far "
            f"from all others ({enumerated(_far_changes(gate, scale))}). Look at their replies, or "
            "run again"
        )
    if verdict is model.Verdict.INCONCLUSIVE:
        return _incomparable(gate, reason)
    return _held(gate, scale)


def _far_changes(gate: GateResult, scale: Scale) -> list[str]:
    """Return the personas whose change was clipped, with that change."""
    return [f"{key} {scale.change(change)}" for key, change in gate.changes.items()]


def _alarm(
    scopes: list[ScopeTest], scale: Scale, new_warnings: list[str], *, within_margin: bool
) -> str:
    """Say what fell: the whole, then the worst categories; the table has them all."""
    scopes.sort(
        key=lambda scope: (scope.label != OVERALL, scope.label != PASSES, -abs(scope.test.mean))
    )
    worse = [_fall(scope, scale) for scope in scopes[:_MOST_FALLEN]]
    if len(scopes) > _MOST_FALLEN:
        worse.append(f"{len(scopes) - _MOST_FALLEN} further categories")
    if new_warnings:
        worse.append(f"warnings that the baseline has none of: {enumerated(new_warnings)}")
    within = ""
    if within_margin:
        within = " (within the margin)"
    return f"worse than the approved baseline{within}: {'; '.join(worse)}"


def _incomparable(gate: GateResult, reason: model.Reason | None) -> str:
    """Say of which scope too few personas have a score in both runs."""
    scope = next(scope for scope in gate.scopes if scope.reason is not None)
    needed = "80 %"
    if reason is model.Reason.N:
        needed = "at least two"
    return (
        f"not comparable with the approved baseline: {scope.n} of {scope.n + scope.missing} "
        f"personas ({scope.label}) have a score in both; {needed} are needed"
    )


def _held(gate: GateResult, scale: Scale) -> str:
    """Say that nothing fell."""
    overall = gate.scopes[0]
    sentence = (
        f"no regression against the approved baseline: {overall.label} "
        f"{scale.value(overall.approved)} → {scale.value(overall.now)} "
        f"({scale.change(overall.test.mean)}) over {overall.n} personas"
    )
    others = sum(scope.label not in (OVERALL, PASSES) for scope in gate.scopes)
    if others:
        sentence += f", and none of {others} categories beyond its margin and chance"
    return sentence


def _fall(scope: ScopeTest, scale: Scale) -> str:
    sure = f"corrected {p_equals(_corrected(scope))}"
    if scope.label == PASSES:
        before = round(scope.approved * scope.n)
        after = round(scope.now * scope.n)
        return (
            f"passes {before} → {after} of {scope.n} personas ({scope.lost} lost, {scope.gained} "
            f"gained, {sure})"
        )
    moved = f"{scale.change(scope.test.mean)} over {scope.n} personas"
    if scope.outliers:
        moved = (
            f"{scale.change(scope.clipped)} over {scope.n} personas with "
            f"{enumerated(list(scope.outliers))} clipped"
        )
    return (
        f"{scope.label} {scale.value(scope.approved)} → {scale.value(scope.now)} ({moved}, {sure}, "
        "margin "
        f"{scale.margin(scope.margin)})"
    )


def _notes(gate: GateResult, scale: Scale, new_warnings: list[str]) -> Iterator[str]:
    if gate.changes:
        far = enumerated(_far_changes(gate, scale), 6)
        yield f"changes far from all others, clipped in the second family: {far}"
    if gate.untested:
        yield f"not tested, one persona only: {', '.join(gate.untested)}"
    if not scale.declared:
        on = {"yes_no": "yes/no", "percent": "0 to 100"}.get(scale.name, "a scale of its own")
        yield (
            f"margins by the scale of the score ({on}): {scale.margin(scale.overall)} overall, "
            f"{scale.margin(scale.category)} a category"
        )
    if new_warnings:
        yield f"warnings that the baseline has none of: {enumerated(new_warnings, 10)}"


def share(count: int, summary: ScoreSummary) -> float:
    if summary.trials:
        return count / summary.trials
    return 0.0
