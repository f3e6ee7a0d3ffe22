"""One mean a persona of a run, and the gate: have the scores of the same personas dropped since
they were approved?

Paired by persona, so that what differs between personas is no noise; one-sided, because only a drop
is a regression; a strict level (Holm 1979), and a margin beside it, so that neither luck nor a drop
without consequence ends a build. Two families: the changes as they are (overall, larger categories,
passes), and the changes with outliers clipped (overall, every category), since one wild reply must
hide neither a fall of everyone nor that of five.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.special import stdtr

from pytest_fairness.errors import FrameError
from pytest_fairness.model import JSON, Reason, to_json
from pytest_fairness.statistics.arrays import (
    Floats,
    finite_numbers,
    flags,
    refuse,
    refuse_text_numbers,
    require_column,
    row_name,
)
from pytest_fairness.statistics.clusters import TINY, MeanTest, one_sample_t, t_quantile
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.proportions import binomial_tail


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaScore:
    """One persona's score: the ``mean`` of ``n`` scored trials, and the ``sd`` between its
    repetitions, pooled within blocks (so that the difference between two templates is no noise),
    with its ``df``; 0 and 0 without any.

    ``parts``: the mean in each part of the score that is not full; ``warnings``: those on the
    persona's trials, as ``severity: term``."""

    mean: float
    n: int
    sd: float = 0.0
    df: int = 0
    parts: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSummary:
    """The scores of one run, as approved or as just measured.

    ``categories`` maps a label such as ``gender=female`` to the ids of its personas, unscored ones
    included; ``overall`` is the mean of the persona means (0 where there is none). ``repetitions``
    is the median number of scored trials a persona and block, ``run_sd`` the SD between repetitions
    of the same cell, pooled, in the score's own unit (None where nothing was repeated). ``trials``
    = scored + ``refused`` + ``unscored``. ``scale`` is ``yes_no``, ``percent`` (0 to 100) or
    ``other``. ``warnings`` counts those of each severity and kind (``critical: age``). ``parts``
    are the parts of a score that is made of several, each from 0 to :data:`FULL`, as a letter's has
    one for each category of the lexicon.
    """

    personas: Mapping[str, PersonaScore]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    overall: float = 0.0
    repetitions: int = 1
    run_sd: float | None = None
    trials: int = 0
    refused: int = 0
    unscored: int = 0
    scale: str = ""
    warnings: Mapping[str, int] = field(default_factory=dict)
    parts: tuple[str, ...] = ()

    @property
    def part_scores(self) -> dict[str, float]:
        """The mean of each part over the personas."""
        size = len(self.personas)
        return {
            part: math.fsum(persona.parts.get(part, FULL) for persona in self.personas.values())
            / size
            for part in (self.parts if size else ())
        }

    @property
    def patterns(self) -> dict[str, int]:
        """``severity: term`` → on how many personas' trials it stands."""
        return dict(
            sorted(
                Counter(
                    warning for score in self.personas.values() for warning in set(score.warnings)
                ).items()
            )
        )

    def to_dict(self) -> dict[str, JSON]:
        """The summary as plain JSON; numbers unrounded."""
        data = to_json(self)
        if isinstance(data, dict):
            return data
        return {}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`. Raises KeyError, TypeError or ValueError for another
        shape.
        """
        personas = {
            str(key): PersonaScore(
                **{**value, "warnings": tuple(map(str, value.get("warnings", ())))}
            )
            for key, value in data["personas"].items()
        }
        for key, score in personas.items():
            if not math.isfinite(score.mean):
                raise ValueError(
                    f"persona {key!r} has the score {score.mean!r}: a finite number is needed"
                )
        categories = {
            str(key): tuple(map(str, ids)) for key, ids in data.get("categories", {}).items()
        }
        parts = tuple(map(str, data.get("parts", ())))
        return cls(**{**data, "personas": personas, "categories": categories, "parts": parts})


def summarise_scores(
    frame: pd.DataFrame,
    score_values: pd.Series[Any] | Sequence[float | None],
    *,
    persona: str | None = None,
    categories: Sequence[str] = (),
    block: str | Sequence[str] | None = None,
    warnings: str | None = None,
    parts: Mapping[str, Sequence[float]] | None = None,
    patterns: Sequence[Sequence[str]] | None = None,
) -> ScoreSummary:
    """Summarise one score a trial into one a persona.

    ``score_values`` has one number a row of *frame* (NaN or None: no score). ``persona`` is the
    column that identifies the unit; by default ``persona`` where that column is filled, else
    ``name``. ``categories`` are the columns whose values become categories. ``block`` are the
    columns that, with persona and repetition, tell two trials apart; by default ``template`` where
    the frame has it. Blocks weigh the same in a persona's mean.

    ``warnings`` is the column that holds each trial's warnings: a list of texts, of (severity,
    kind), or of mappings with ``severity`` and ``kind`` (or ``category``). ``parts``: part of the
    score → its value a row, 0 to 100; ``patterns``: a row's warnings as ``severity: term``.

    A row that is ``refused`` or ``undetermined`` (boolean columns, optional) has no score whatever
    is given.

    Raises FrameError for a missing column, a row without persona, a score that is not a finite
    number, the same (persona, block, repetition) twice, or a persona that stands in two values of
    one category.
    """
    if persona is None:
        filled = "persona" in frame.columns and bool(frame["persona"].notna().any())
        persona = "persona" if filled or "name" not in frame.columns else "name"
    blocks = [block] if isinstance(block, str) else list(block or [])
    if block is None and "template" in frame.columns:
        blocks = ["template"]
    for column in (persona, *blocks, *categories):
        require_column(frame, column, "baseline")
    missing = frame[persona].isna().to_numpy()
    refuse(frame, persona, missing, lambda _: "the persona is missing; each score needs one")
    scores = _numbers(frame, score_values)
    refused = flags(frame, "refused")
    scores[refused | flags(frame, "undetermined")] = np.nan
    table = pd.DataFrame(
        {"persona": frame[persona].astype(str).to_numpy(dtype=object), "score": scores}
    )
    if blocks:
        table["block"] = frame.groupby(blocks, dropna=False, sort=False).ngroup().to_numpy()
    else:
        table["block"] = 0
    if "repetition" in frame.columns:
        twice = (
            table.assign(repetition=frame["repetition"].to_numpy())
            .drop(columns="score")
            .duplicated()
            .to_numpy()
        )
        if twice.any():
            later = int(twice.argmax())
            raise FrameError(
                f"{row_name(frame, later)} repeats the ({', '.join([persona, *blocks])}, "
                "repetition) of an earlier row "
                f"(persona {table.persona[later]!r}): name the column that tells them apart with "
                "block=[…]"
            )
    scored = table[table.score.notna()]
    cells = scored.groupby(["persona", "block"]).score.agg(["mean", "size"])
    rest = scored.score - scored.groupby(["persona", "block"]).score.transform("mean")
    squares = (rest**2).groupby(scored.persona).sum()
    by_persona = cells.groupby("persona").agg(
        mean=("mean", "mean"), n=("size", "sum"), blocks=("size", "size")
    )
    df = by_persona.n - by_persona.blocks
    run_sd = None
    if df.sum():
        run_sd = math.sqrt(float(squares.sum()) / int(df.sum()))
    columns = (
        by_persona.index,
        by_persona["mean"],
        by_persona.n,
        np.sqrt(squares / df.where(df > 0, 1)),
        df,
    )
    personas = {
        str(key): PersonaScore(mean=mean, n=n, sd=sd, df=freedom)
        for key, mean, n, sd, freedom in zip(*(column.tolist() for column in columns), strict=True)
    }
    personas = _with_parts(personas, table, parts or {}, patterns)
    return ScoreSummary(
        personas=personas,
        parts=tuple(parts or ()),
        categories=_categories(frame, table.persona, categories),
        overall=math.fsum(score.mean for score in personas.values()) / len(personas)
        if personas
        else 0.0,
        repetitions=int(cells["size"].median()) if len(cells) else 0,
        run_sd=run_sd,
        trials=len(frame),
        refused=int(refused.sum()),
        unscored=int((np.isnan(scores) & ~refused).sum()),
        scale=_scale_of(scored.score.to_numpy()),
        warnings=_warnings(frame, warnings),
    )


def _with_parts(
    personas: Mapping[str, PersonaScore],
    table: pd.DataFrame,
    parts: Mapping[str, Sequence[float]],
    patterns: Sequence[Sequence[str]] | None,
) -> dict[str, PersonaScore]:
    """*personas* with the means of the parts that are not full, and their warnings, of scored rows."""
    scored = table.score.notna().to_numpy()
    means = None
    if parts:
        means = pd.DataFrame(dict(parts)).groupby(table.persona.to_numpy()[:]).mean()
    parts_of: dict[str, list[str]] = {}
    for who, patterns_of, counts in zip(table.persona, patterns or [], scored, strict=False):
        parts_of.setdefault(who, []).extend(patterns_of if counts else ())
    made = {}
    for key, score in personas.items():
        row = {}
        if means is not None:
            row = means.loc[key].to_dict()
        low = {str(part): float(value) for part, value in row.items() if value < FULL}
        made[key] = replace(score, parts=low, warnings=tuple(sorted(set(parts_of.get(key, ())))))
    return made


SCALES = ("yes_no", "percent", "other")
#: A part of a score that nothing is taken off.
FULL = 100.0


def _scale_of(scores: Floats) -> str:
    """Return what *scores* (without NaN) are measured on, by their values; empty without any."""
    if not scores.size:
        return ""
    if bool(np.all((scores == 0) | (scores == 1))):
        return "yes_no"
    # Scores from 0 to 100 reach beyond 10, ratings of 1 to 10 do not.
    if scores.min() >= 0 and 10 < scores.max() <= 100:
        return "percent"
    return "other"


def wider_scale(first: str, second: str) -> str:
    """The scale that holds the scores of both: only zeros are no yes/no of a score that was 80
    before.
    """
    return max((scale for scale in (first, second) if scale), key=SCALES.index, default="other")


def _warnings(frame: pd.DataFrame, column: str | None) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for position, held in enumerate(
        [] if column is None else require_column(frame, column, "warnings").tolist()
    ):
        if held is None or (isinstance(held, float) and math.isnan(held)):
            continue
        if isinstance(held, (str, bytes)) or not isinstance(held, Sequence):
            raise FrameError(
                f"column {column!r}, {row_name(frame, position)}: {held!r} is no list of warnings"
            )
        counts.update(map(_warning, held))
    return dict(sorted(counts.items()))


def _warning(entry: Any) -> str:
    """``severity: kind`` of one warning."""
    if isinstance(entry, Mapping):
        entry = (entry.get("severity", ""), entry.get("kind", entry.get("category", "")))
    if isinstance(entry, str):
        return entry
    if isinstance(entry, Sequence) and len(entry) == 2:
        return ": ".join(str(part) for part in entry if part)
    raise FrameError(
        f"{entry!r} is no warning: give a text, (severity, kind), or a mapping with both"
    )


def _numbers(frame: pd.DataFrame, score_values: pd.Series[Any] | Sequence[float | None]) -> Floats:
    if isinstance(score_values, pd.Series) and not score_values.index.equals(frame.index):
        raise FrameError(
            "the scores have another index than the table: give one score a row, in the same order"
        )
    if len(score_values) != len(frame):
        raise FrameError(f"{len(score_values)} scores for {len(frame)} rows: give one score a row")
    series = (
        score_values
        if isinstance(score_values, pd.Series)
        else pd.Series(list(score_values), dtype="object")
    )
    refuse_text_numbers(str(series.name or "score"), series, labels=False)
    numbers, bad = finite_numbers(score_values)
    if bad.any():
        value = list(score_values)[int(bad.argmax())]
        row = frame.index[int(bad.argmax())]
        raise FrameError(
            f"row {row!r}: the score is {value!r}; a finite number, or None for no score, is needed"
        )
    return numbers


def _categories(
    frame: pd.DataFrame, ids: pd.Series[Any], columns: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    parts: dict[str, tuple[str, ...]] = {}
    for column in columns:
        table = (
            pd.DataFrame({"who": ids, "value": frame[column].to_numpy(dtype=object)})
            .dropna()
            .drop_duplicates()
        )
        for at in np.flatnonzero(table.who.duplicated())[:1].tolist():
            who = table.who.iloc[at]
            value = table.value.iloc[at]
            raise FrameError(
                f"{row_name(frame, int(table.index[at]))}: persona {who!r} has {column!r} = "
                f"{value!r} here "
                f"and {table.value[table.who == who].iloc[0]!r} before; a category is fixed for a "
                "persona"
            )
        for value, part in sorted(table.groupby("value").who, key=lambda item: str(item[0])):
            parts[f"{column}={value!s}"] = tuple(sorted(part))
    return parts


# ---------------------------------------------------------------- the gate

OVERALL = "overall"
PASSES = "passes"
WARNINGS = "warnings"
LARGE = 8
"""Personas from which a category is tested as it is; smaller ones are tested on the spread of all categories."""
SMALLEST = 2
CLIP = 4 * 1.4826
"""Changes beyond so many MADs of the median are clipped: four standard deviations, if the changes are normal."""
OWN_LEVEL = 0.05
"""A category is tested on the spread of all only if its own one-sided t is below this, and holds too many clipped
changes if chance brings so many less often."""
SLACK = 1e-9  # what binary fractions may be off by
PASS_MARGIN = 0.02
"""Passes may fall by so large a share of the personas: the overall margin of a yes/no score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeTest:
    """The overall score, one category, or the passes, compared with the baseline over ``n``
    personas that both have.

    ``test`` is on new − old as it is (negative: worse), ``clipped`` the mean change with outliers
    clipped. ``p_raw`` and ``p_clipped`` are corrected within their families, None where the scope
    does not belong to that family. ``regression``: significant in either family, and worse by the
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
    p_value: float
    p_raw: float | None = None
    p_clipped: float | None = None
    regression: bool = False
    slip: bool = False
    reason: Reason | None = None
    outliers: Mapping[str, float] = field(default_factory=dict)
    crowded: bool = False
    repetitions_needed: int | None = None
    lost: int = 0
    gained: int = 0

    @property
    def corrected_p(self) -> float | None:
        """The smaller of the corrected p-values; None where nothing was tested."""
        p_values = [p for p in (self.p_raw, self.p_clipped) if p is not None]
        if p_values:
            return min(p_values)
        return None


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
    scopes = {
        label: _scope(
            label, approved, current, data, part, margins.get(label, margin_category), sign
        )
        for label, part in _labels(approved, current).items()
    }
    for label, scope in scopes.items():
        scopes[label] = replace(scope, reason=_why_untested(scope, minimum_overlap))
    untested = tuple(
        label for label, scope in scopes.items() if label != OVERALL and scope.counted < SMALLEST
    )
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
        scopes=tuple(tests), overlap=overlap, untested=untested, changes=_outliers(data, sign)
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
    usable = [label for label in shared if scopes[label].reason is None]
    large = [label for label in usable if label == OVERALL or len(shared[label]) >= LARGE]
    raw = {label: one_sample_t(shared[label].change.to_numpy(), "less").p for label in large}
    clipped = {label: _clipped_p(label, shared) for label in usable}
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
    p_raw = p_values.corrected_raw.get(label)
    p_clipped = p_values.corrected_clipped.get(label)
    tested = ((p_raw, test.mean), (p_clipped, mean))
    drops = [-change for p, change in tested if p is not None and p < alpha / 2]
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
        p_value=min(p_values.raw.get(label, 1.0), p_values.clipped.get(label, 1.0)),
        p_raw=p_raw,
        p_clipped=p_clipped,
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
    spreads = ([run.personas[key] for run in (approved, current)] for key in keys)
    noise = [
        0.0 if part is not None else sum(label.sd**2 / label.n for label in own if label.df)
        for own in spreads
    ]
    change = sign * new - sign * old
    columns = {
        "old": sign * old,
        "new": sign * new,
        "change": change,
        "kept": clip(change),
        "noise": noise,
    }
    return pd.DataFrame(columns, index=pd.Index(keys, dtype=object), dtype=np.float64)


def _clipped_p(label: str, shared: Mapping[str, pd.DataFrame]) -> float:
    """p of the clipped changes of one scope: overall by t; a category on the spread of all about
    the means of the categories of its dimension, and only where its own t does not speak against
    it."""
    kept = shared[label].kept.to_numpy()
    test = one_sample_t(kept, "less")
    if label == OVERALL:
        return test.p
    dimension = label.partition("=")[0]
    parts = [
        part.kept
        for other, part in shared.items()
        if other.partition("=")[0] == dimension and len(part)
    ]
    df = sum(part.size for part in parts) - len(parts)
    if test.p >= OWN_LEVEL or df < 1:
        return 1.0
    spread = math.sqrt(sum(float(np.sum((part - part.mean()) ** 2)) for part in parts) / df)
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
