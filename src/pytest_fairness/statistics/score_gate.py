"""The gate: have the scores of the same personas dropped since they were approved?

Paired by persona, so that what differs between personas is no noise; one-sided, because only a drop
is a regression; a strict level (Holm 1979), and a margin beside it, so that neither luck nor a drop
without consequence ends a build. Two families: the changes as they are (overall, larger categories,
passes), and the changes with outliers clipped (overall, every category), since one wild reply must
hide neither a fall of everyone nor that of five.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr

from pytest_fairness.model import Reason
from pytest_fairness.statistics.arrays import Floats
from pytest_fairness.statistics.clusters import TINY, MeanTest, one_sample_t, t_quantile
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.persona_scores import FULL, PersonaScore, ScoreSummary
from pytest_fairness.statistics.proportions import binomial_tail

OVERALL = "overall"
PASSES = "passes"
WARNINGS = "warnings"
LARGE = 8
"""Personas from which a category is tested as it is; smaller ones are tested on the spread of all
categories.
"""
SMALLEST = 2
CLIP = 4 * 1.4826
"""Changes beyond so many MADs of the median are clipped: four standard deviations, if the changes
are normal.
"""
OWN_LEVEL = 0.05
"""A category is tested on the spread of all only if its own one-sided t is below this, and holds too many clipped
changes if chance brings so many less often."""
SLACK = 1e-9  # what binary fractions may be off by
PASS_MARGIN = 0.02
"""Passes may fall by so large a share of the personas: the overall margin of a yes/no score."""


class ScopeP(NamedTuple):
    """The one-sided p-value of a scope: the smaller of those by ``raw`` and by ``clipped`` changes,
    and these two, corrected within their families; None where it does not belong to that family.
    """

    value: float
    raw: float | None
    clipped: float | None

    @property
    def corrected(self) -> float | None:
        """The smaller of the corrected p-values; None where nothing was tested."""
        return min((p for p in (self.raw, self.clipped) if p is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeTest:
    """The overall score, one category, or the passes, compared with the baseline over ``n``
    personas that both have.

    ``test`` is on new − old as it is (negative: worse), ``clipped`` the mean change with outliers
    clipped. ``regression``: significant in either family, and worse by the
    margin; ``slip``: significant, and within it. ``outliers`` are the personas whose change was
    clipped, with that change; ``crowded``: a category holds more of them than the others' share
    makes likely. ``repetitions_needed`` is the R with which a drop of the margin shows in 80 % of
    runs, None where no number of repetitions would do (more personas would). ``lost`` and
    ``gained`` count the passes.
    """

    label: str
    n: int
    missing: int
    now: float
    approved: float
    margin: float
    test: MeanTest
    clipped: float
    p: ScopeP
    regression: bool = False
    slip: bool = False
    reason: Reason | None = None
    outliers: Mapping[str, float] = field(default_factory=dict)
    crowded: bool = False
    repetitions_needed: int | None = None
    lost: int = 0
    gained: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """Every scope in the order overall, passes, then categories by label; ``untested`` are those of
    one persona; ``changes`` are new − old of each persona that was clipped."""

    scopes: tuple[ScopeTest, ...]
    overlap: float
    untested: tuple[str, ...]
    changes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """Personas that are judged together: the ``changes`` of those that both summaries have, of so
    many ``counted`` that either has. ``turn`` undoes the turning of :func:`_changes`, ``margin`` is
    what may be lost, ``reason`` why it is not tested; a *part* of the score is a kind of warning.
    """

    label: str
    changes: pd.DataFrame
    counted: int
    turn: float
    margin: float
    reason: Reason | None = None
    is_part: bool = False

    @property
    def shared(self) -> int:
        """Return how many personas both summaries have."""
        return len(self.changes)


class _PValues(NamedTuple):
    """One-sided p-values of the scopes that were tested, by raw and by clipped changes, and both
    corrected in their families (Holm).
    """

    raw: dict[str, float]
    clipped: dict[str, float]
    corrected_raw: dict[str, float]
    corrected_clipped: dict[str, float]


def baseline_gate(
    approved: ScoreSummary,
    current: ScoreSummary,
    *,
    alpha: float,
    margin_overall: float,
    margin_category: float,
    minimum_overlap: float = 0.8,
    lower_is_worse: bool = True,
    threshold: float | None = None,
) -> GateResult:
    """Compare *current* with *approved*; each of the two families is corrected at *alpha*/2.

    A scope is the overall score, or a category of either summary; its personas are those of the
    approved summary's category (of the current one's where the category is new). Under
    *minimum_overlap* (both / either) a scope is not tested but INCONCLUSIVE(OVERLAP); with one
    persona, INCONCLUSIVE(N). *threshold* is the score from which a persona passes: with it, passes
    lost are tested against passes gained by the exact test of McNemar (1947).
    """
    sign = -1.0
    if lower_is_worse:
        sign = 1.0
    data = _changes(approved, current, sign)
    either = set(approved.personas) | set(current.personas)
    margins = {OVERALL: margin_overall}
    scopes = {}
    untested = []
    for label, part in _labels(approved, current).items():
        margin = margins.get(label, margin_category)
        scope = _scope(label, approved, current, data, part, margin, sign)
        scopes[label] = replace(scope, reason=_why_untested(scope, minimum_overlap))
        if label != OVERALL and scope.counted < SMALLEST:
            untested.append(label)
    if threshold is not None and scopes[OVERALL].reason is None:
        passes = _passes(data, sign * threshold, scopes[OVERALL])
        scopes = {OVERALL: scopes[OVERALL], PASSES: passes, **scopes}
    p_values = _p_values(scopes)
    strict = alpha / 2 / max(len(p_values.raw), 1)
    tests = []
    for label, scope in scopes.items():
        if label in untested:
            continue
        needed = None
        if scope.reason is None and label != PASSES and not scope.is_part:
            needed = repetitions_needed(
                approved, current, scope.changes.index.tolist(), margin=scope.margin, alpha=strict
            )
        tests.append(_tested(scope, p_values, data, needed, alpha))
    overlap = 0.0
    if either:
        overlap = len(data) / len(either)
    return GateResult(
        scopes=tuple(tests),
        overlap=overlap,
        untested=tuple(untested),
        changes=_outliers(data, sign),
    )


def _labels(approved: ScoreSummary, current: ScoreSummary) -> dict[str, str | None]:
    """The scopes in their order, each with the part of the score that it is about.

    A part that nothing was taken off in either run cannot be worse: it costs the others nothing
    (Tarone 1990).
    """
    labels: dict[str, str | None] = {OVERALL: None}
    both_runs = [*approved.personas.values(), *current.personas.values()]
    for part in approved.parts:
        if part in current.parts and any(part in persona.parts for persona in both_runs):
            labels[f"{part} {WARNINGS}"] = part
    for category in sorted({*approved.categories, *current.categories}):
        labels[category] = None
    return labels


def _scope(
    label: str,
    approved: ScoreSummary,
    current: ScoreSummary,
    data: pd.DataFrame,
    part: str | None,
    margin: float,
    sign: float,
) -> _Scope:
    """The scope *label*, which is about the whole score, whose changes are *data*, or a *part* of
    it.
    """
    either = set(approved.personas) | set(current.personas)
    ids = sorted(either)
    if label != OVERALL and part is None:
        ids = list(approved.categories.get(label, current.categories.get(label, ())))
    turn = sign
    changes = data
    if part is not None:
        turn = 1.0
        changes = _changes(approved, current, turn, part)
    return _Scope(
        label=label,
        changes=changes.loc[[key for key in ids if key in changes.index]],
        counted=sum(key in either for key in ids),
        turn=turn,
        margin=margin,
        is_part=part is not None,
    )


def _why_untested(scope: _Scope, minimum_overlap: float) -> Reason | None:
    both = scope.shared
    counted = scope.counted
    if not both or both < minimum_overlap * counted - SLACK:
        return Reason.OVERLAP
    if both < SMALLEST:
        return Reason.N
    return None


def _passes(data: pd.DataFrame, threshold: float, overall: _Scope) -> _Scope:
    """The scope of passes: 1 for each persona from the *threshold* on, 0 for the others."""
    passed = (data[["old", "new"]] >= threshold - SLACK).astype(np.float64)
    change = passed.new - passed.old
    margin = overall.margin
    if margin >= 1:
        margin = PASS_MARGIN
    return _Scope(
        label=PASSES,
        changes=passed.assign(change=change, kept=change),
        counted=overall.counted,
        turn=1.0,
        margin=margin,
    )


def _p_values(scopes: Mapping[str, _Scope]) -> _PValues:
    shared = {label: scope.changes for label, scope in scopes.items() if label != PASSES}
    raw = {}
    clipped = {}
    for label, changes in shared.items():
        if scopes[label].reason is not None:
            continue
        clipped[label] = _clipped_p(label, shared)
        if label == OVERALL or len(changes) >= LARGE:
            raw[label] = one_sample_t(changes.change.to_numpy(), "less").p
    if PASSES in scopes:
        lost, gained = _lost_and_gained(scopes[PASSES])
        raw[PASSES] = binomial_tail(lost, lost + gained, 0.5)
    return _PValues(raw, clipped, _corrected(raw), _corrected(clipped))


def _corrected(family: Mapping[str, float]) -> dict[str, float]:
    return dict(zip(family, correct(list(family.values()), "holm").tolist(), strict=True))


def _lost_and_gained(passes: _Scope) -> tuple[int, int]:
    change = passes.changes.change
    return int((change < 0).sum()), int((change > 0).sum())


def _tested(
    scope: _Scope, p_values: _PValues, data: pd.DataFrame, needed: int | None, alpha: float
) -> ScopeTest:
    """The test of *scope*: a regression where a change that is significant in its family is a fall
    beyond the margin, a slip where it is one within.
    """
    label = scope.label
    both = scope.changes
    test = one_sample_t(both.change.to_numpy(), "less")
    mean = now = before = 0.0
    if scope.shared:
        mean = float(both.kept.mean())
        now = scope.turn * float(both.new.mean())
        before = scope.turn * float(both.old.mean())
    p = ScopeP(
        value=min(p_values.raw.get(label, 1.0), p_values.clipped.get(label, 1.0)),
        raw=p_values.corrected_raw.get(label),
        clipped=p_values.corrected_clipped.get(label),
    )
    tested = ((p.raw, test.mean), (p.clipped, mean))
    drops = [
        -change for corrected, change in tested if corrected is not None and corrected < alpha / 2
    ]
    regression = any(drop > scope.margin + SLACK for drop in drops)
    lost = gained = 0
    if label == PASSES:
        lost, gained = _lost_and_gained(scope)
    return ScopeTest(
        label=label,
        n=scope.shared,
        missing=scope.counted - scope.shared,
        now=now,
        approved=before,
        margin=scope.margin,
        test=replace(test, mean=scope.turn * test.mean),
        clipped=scope.turn * mean,
        p=p,
        regression=regression,
        slip=bool(drops) and not regression,
        reason=scope.reason,
        outliers=_outliers(both, scope.turn),
        crowded="=" in label and _crowded(both, data, scope.margin),
        repetitions_needed=needed,
        lost=lost,
        gained=gained,
    )


def _crowded(rows: pd.DataFrame, every: pd.DataFrame, margin: float) -> bool:
    """Return whether the changes *rows* to a category hold more clipped falls, less clipped rises,
    than the share of those in the rest of *every* change makes likely; a change within the *margin*
    counts for nothing.

    One is added to the others' clipped changes, and one to those that are not: that nobody there
    was clipped does not show that nobody could be (Laplace's rule of succession).
    """
    held = every[(every.kept != every.change) & (every.change.abs() > margin)]
    here = held[held.index.isin(rows.index)]
    net = int((here.change < 0).sum()) - int((here.change > 0).sum())
    others = len(every) - len(rows)
    return (
        net > 0
        and binomial_tail(net, len(rows), (len(held) - len(here) + 1) / (others + 2)) < OWN_LEVEL
    )


def _outliers(changes: pd.DataFrame, sign: float) -> dict[str, float]:
    """The changes that were clipped, by persona."""
    wild = changes.change[changes.kept != changes.change]
    return {str(key): sign * change for key, change in wild.items()}


def _changes(
    approved: ScoreSummary, current: ScoreSummary, sign: float, part: str | None = None
) -> pd.DataFrame:
    """Of each persona that both have: old, new and change, of the score or of a *part* of it,
    turned so that a fall is negative whichever way harm lies; the change clipped (``kept``), and
    its variance by the spread of the persona's own repetitions (``noise``), 0 for a part."""
    keys = sorted(set(approved.personas) & set(current.personas))

    def score(persona: PersonaScore) -> float:
        if part is None:
            return persona.mean
        return persona.parts.get(part, FULL)

    old, new = (
        np.array([score(run.personas[key]) for key in keys], dtype=np.float64)
        for run in (approved, current)
    )
    noise = [0.0] * len(keys)
    if part is None:
        noise = [_noise(approved.personas[key]) + _noise(current.personas[key]) for key in keys]
    change = sign * new - sign * old
    columns = {
        "old": sign * old,
        "new": sign * new,
        "change": change,
        "kept": clip(change),
        "noise": noise,
    }
    return pd.DataFrame(columns, index=pd.Index(keys, dtype=object), dtype=np.float64)


def _noise(score: PersonaScore) -> float:
    """Return the variance of a persona's mean by the spread of its repetitions; 0 without any."""
    if score.df:
        return score.sd**2 / score.n
    return 0.0


def _clipped_p(label: str, shared: Mapping[str, pd.DataFrame]) -> float:
    """p of the clipped changes of one scope: overall by t; a category on the spread of all about
    the means of the categories of its dimension, and only where its own t does not speak against
    it."""
    kept = shared[label].kept.to_numpy()
    test = one_sample_t(kept, "less")
    if label == OVERALL:
        return test.p
    dimension = label.partition("=")[0]
    parts = []
    for other, changes in shared.items():
        if other.partition("=")[0] == dimension and len(changes):
            parts.append(changes.kept)
    df = sum(part.size for part in parts) - len(parts)
    if test.p >= OWN_LEVEL or df < 1:
        return 1.0
    squares = [float(np.sum((part - part.mean()) ** 2)) for part in parts]
    spread = math.sqrt(sum(squares) / df)
    noise = math.sqrt(float(shared[label].noise.to_numpy().mean()))
    sd = max(spread, noise)
    mean = float(kept.mean())
    if sd <= TINY * max(float(np.abs(kept).max(initial=0.0)), 1e-300):
        if mean < 0:
            return 0.0
        return 1.0
    return float(stdtr(df, mean * math.sqrt(kept.size) / sd))


def clip(changes: Floats) -> Floats:
    """*changes* brought to within median ± 4·1.4826·MAD; as they are where the MAD is 0."""
    if not changes.size:
        return changes
    middle = float(np.median(changes))
    reach = CLIP * float(np.median(np.abs(changes - middle)))
    if reach > 0:
        return np.clip(changes, middle - reach, middle + reach)
    return changes


def repetitions_needed(
    approved: ScoreSummary,
    current: ScoreSummary,
    personas: list[str],
    *,
    margin: float,
    alpha: float,
) -> int | None:
    """The repetitions, in both runs, with which a drop of *margin* is found at *alpha* in 80 % of
    runs.

    The variance of a persona's change is split into what repetition explains (``run_sd``² over the
    trials of each run) and the rest, which stays: R solves (t₁₋α + t.₈)²·(rest + noise(R))/K =
    margin², with df = K −
    1. Where nothing was repeated, all of it counts as noise. None where no R does.
    """
    k = len(personas)
    if k < 2:
        return None
    changes = np.array(
        [current.personas[key].mean - approved.personas[key].mean for key in personas]
    )
    allowed = k * (margin / float(t_quantile(k - 1, 1 - alpha) + t_quantile(k - 1, 0.8))) ** 2
    observed = noise = float(changes.var(ddof=1))
    if approved.run_sd is not None and current.run_sd is not None:
        noise = sum(
            run_sd**2 * float(np.mean([1 / run.personas[key].n for key in personas]))
            for run, run_sd in ((approved, approved.run_sd), (current, current.run_sd))
        )
    rest = max(0.0, observed - noise)
    if allowed <= rest:
        return None
    repeated = max(1, min(approved.repetitions, current.repetitions))
    return max(1, math.ceil(repeated * noise / (allowed - rest) - SLACK))
