"""One mean a persona of a run: what a baseline keeps, and the gate compares."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from pytest_fairness.errors import FrameError
from pytest_fairness.model import JSON, to_json
from pytest_fairness.statistics.arrays import (
    Floats,
    column_names,
    finite_numbers,
    flags,
    refuse,
    refuse_text_numbers,
    require_column,
    row_name,
)


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
        scores = {}
        if self.personas:
            for part in self.parts:
                values = [persona.parts.get(part, FULL) for persona in self.personas.values()]
                scores[part] = math.fsum(values) / len(values)
        return scores

    @property
    def patterns(self) -> dict[str, int]:
        """``severity: term`` → on how many personas' trials it stands."""
        counts: Counter[str] = Counter()
        for score in self.personas.values():
            counts.update(set(score.warnings))
        return dict(sorted(counts.items()))

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
        personas = {}
        for key, value in data["personas"].items():
            warnings = tuple(map(str, value.get("warnings", ())))
            score = PersonaScore(**{**value, "warnings": warnings})
            personas[str(key)] = score
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
        persona = _unit_column(frame)
    blocks = _block_columns(frame, block)
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
    table["block"] = 0
    if blocks:
        table["block"] = frame.groupby(blocks, dropna=False, sort=False).ngroup().to_numpy()
    if "repetition" in frame.columns:
        _refuse_repeated(frame, table, [persona, *blocks])
    scored = table[table.score.notna()]
    personas, run_sd = _persona_scores(scored)
    personas = _with_parts(personas, table, parts or {}, patterns)
    overall = 0.0
    repetitions = 0
    if personas:
        overall = math.fsum(score.mean for score in personas.values()) / len(personas)
        repetitions = int(scored.groupby(["persona", "block"]).size().median())
    return ScoreSummary(
        personas=personas,
        parts=tuple(parts or ()),
        categories=_categories(frame, table.persona, categories),
        overall=overall,
        repetitions=repetitions,
        run_sd=run_sd,
        trials=len(frame),
        refused=int(refused.sum()),
        unscored=int((np.isnan(scores) & ~refused).sum()),
        scale=scale_of(scored.score.to_numpy()),
        warnings=_warnings(frame, warnings),
    )


def _unit_column(frame: pd.DataFrame) -> str:
    """Return the column that identifies the unit: ``persona`` where it is filled, else ``name``."""
    filled = "persona" in frame.columns and bool(frame["persona"].notna().any())
    if filled or "name" not in frame.columns:
        return "persona"
    return "name"


def _block_columns(frame: pd.DataFrame, block: str | Sequence[str] | None) -> list[str]:
    """Return the columns of the blocks; ``template`` where none is given and the frame has it."""
    if block is None and "template" in frame.columns:
        return ["template"]
    return list(column_names(block))


def _refuse_repeated(frame: pd.DataFrame, table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raise FrameError for two rows of one persona, block and repetition."""
    trials = table.assign(repetition=frame["repetition"].to_numpy()).drop(columns="score")
    repeated = trials.duplicated().to_numpy()
    if repeated.any():
        later = int(repeated.argmax())
        raise FrameError(
            f"{row_name(frame, later)} repeats the ({', '.join(columns)}, repetition) of an "
            f"earlier row (persona {table.persona[later]!r}): name the column that tells them "
            "apart with block=[…]"
        )


def _persona_scores(scored: pd.DataFrame) -> tuple[dict[str, PersonaScore], float | None]:
    """Return the score of each persona of *scored* rows, and the SD between repetitions of the same
    cell; None where nothing was repeated.
    """
    by_cell = scored.groupby(["persona", "block"]).score
    cells = by_cell.agg(["mean", "size"])
    squares = ((scored.score - by_cell.transform("mean")) ** 2).groupby(scored.persona).sum()
    by_persona = cells.groupby("persona").agg(
        mean=("mean", "mean"), n=("size", "sum"), blocks=("size", "size")
    )
    df = by_persona.n - by_persona.blocks
    run_sd = None
    if df.sum():
        run_sd = math.sqrt(float(squares.sum()) / int(df.sum()))
    by_persona = by_persona.assign(sd=np.sqrt(squares / df.where(df > 0, 1)), df=df)
    columns = [by_persona[name].tolist() for name in ("mean", "n", "sd", "df")]
    personas = {}
    for key, mean, n, sd, freedom in zip(by_persona.index, *columns, strict=True):
        personas[str(key)] = PersonaScore(mean=mean, n=n, sd=sd, df=freedom)
    return personas, run_sd


def _with_parts(
    personas: Mapping[str, PersonaScore],
    table: pd.DataFrame,
    parts: Mapping[str, Sequence[float]],
    patterns: Sequence[Sequence[str]] | None,
) -> dict[str, PersonaScore]:
    """*personas* with the means of the parts that are not full, and the warnings, of scored rows."""
    scored = table.score.notna().to_numpy()
    means = None
    if parts:
        means = pd.DataFrame(dict(parts)).groupby(table.persona.to_numpy()).mean()
    parts_of: dict[str, list[str]] = {}
    for who, patterns_of, counts in zip(table.persona, patterns or [], scored, strict=False):
        if counts:
            parts_of.setdefault(who, []).extend(patterns_of)
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


def scale_of(scores: Floats) -> str:
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
    if column is None:
        return {}
    for position, held in enumerate(require_column(frame, column, "warnings").tolist()):
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
    series = score_values
    if not isinstance(series, pd.Series):
        series = pd.Series(list(score_values), dtype="object")
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
    personas = ids.to_numpy()
    for column in columns:
        values = frame[column].to_numpy(dtype=object)
        value_of: dict[str, Any] = {}
        for row in np.flatnonzero(frame[column].notna()).tolist():
            before = value_of.setdefault(personas[row], values[row])
            if before != values[row]:
                raise FrameError(
                    f"{row_name(frame, row)}: persona {personas[row]!r} has {column!r} = "
                    f"{values[row]!r} here and {before!r} before; a category is fixed for a persona"
                )
        by_value: dict[Any, list[str]] = {}
        for who, value in value_of.items():
            by_value.setdefault(value, []).append(who)
        for value in sorted(by_value, key=str):
            parts[f"{column}={value!s}"] = tuple(sorted(by_value[value]))
    return parts
