"""What a baseline remembers of a run: one mean a persona, its noise, and the categories it stands in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from pytest_fairness.errors import FrameError
from pytest_fairness.model import JSON, to_json
from pytest_fairness.statistics.frames import flags, require_column, row_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaScore:
    """One persona's score: the ``mean`` of ``n`` scored trials, and the ``sd`` between its repetitions.

    ``sd`` is pooled within blocks (so that the difference between two templates is not noise), with ``df``
    degrees of freedom; 0 and 0 where nothing was repeated.
    """

    mean: float
    n: int
    sd: float = 0.0
    df: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSummary:
    """The scores of one run, as approved or as just measured.

    ``personas`` maps each persona that has a score to it; ``categories`` maps a label such as
    ``gender=female`` to the ids of its personas, unscored ones included; ``overall`` is the mean of the
    persona means (0 where there is none). ``repetitions`` is the median number of scored trials a persona
    and block, ``run_sd`` the SD between repetitions of the same cell, pooled, in the score's own unit (None
    where nothing was repeated). ``trials`` = scored + ``refused`` + ``unscored``. ``scale`` says what the scores were
    measured on: ``yes_no``, ``percent`` (0 to 100) or ``other``. ``warnings`` counts the warnings of each severity and
    kind (``critical: age``), where the trials carry any.
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

    def to_dict(self) -> dict[str, JSON]:
        """The summary as plain JSON; numbers unrounded."""
        data = to_json(self)
        return data if isinstance(data, dict) else {}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`. Raises KeyError, TypeError or ValueError for another shape."""
        personas = {str(key): PersonaScore(**value) for key, value in data["personas"].items()}
        for key, score in personas.items():
            if not math.isfinite(score.mean):
                raise ValueError(f"persona {key!r} has the score {score.mean!r}: a finite number is needed")
        categories = {str(key): tuple(map(str, ids)) for key, ids in data.get("categories", {}).items()}
        return cls(**{**data, "personas": personas, "categories": categories})


def summarise_scores(
    frame: pd.DataFrame,
    score_values: pd.Series[Any] | Sequence[float | None],
    *,
    persona: str | None = None,
    categories: Sequence[str] = (),
    block: str | Sequence[str] | None = None,
    warnings: str | None = None,
) -> ScoreSummary:
    """Summarise one score a trial into one a persona.

    ``score_values`` has one number a row of *frame* (NaN or None: no score). ``persona`` is the column that
    identifies the unit; by default ``persona`` where that column is filled, else ``name``. ``categories``
    are the columns whose values become categories. ``block`` are the columns that, with persona and
    repetition, tell two trials apart; by default ``template`` where the frame has it. Blocks weigh the same
    in a persona's mean.

    ``warnings`` is the column that holds each trial's warnings: a list of texts, of (severity, kind), or of mappings
    with ``severity`` and ``kind`` (or ``category``).

    A row that is ``refused`` or ``undetermined`` (boolean columns, optional) has no score whatever is given.

    Raises FrameError for a missing column, a row without persona, a score that is not a finite number, the
    same (persona, block, repetition) twice, or a persona that stands in two values of one category.
    """
    persona = persona or _persona_column(frame)
    blocks = [block] if isinstance(block, str) else list(block or [])
    if block is None and "template" in frame.columns:
        blocks = ["template"]
    for column in (persona, *blocks, *categories):
        require_column(frame, column, "baseline")
    missing = frame[persona].isna().to_numpy()
    if missing.any():
        where = row_name(frame, int(missing.argmax()))
        raise FrameError(f"column {persona!r}, {where}: the persona is missing; each score needs one")
    scores = _numbers(frame, score_values)
    refused = flags(frame, "refused")
    scores[refused | flags(frame, "undetermined")] = np.nan
    ids = frame[persona].astype(str).to_numpy(dtype=object)
    codes = np.zeros(len(frame), dtype=np.int64)
    if blocks:
        codes = frame.groupby(blocks, dropna=False, sort=False).ngroup().to_numpy().astype(np.int64)
    _refuse_duplicates(frame, ids, codes, [persona, *blocks])
    scored = ~np.isnan(scores)
    personas, counts = _per_persona(ids[scored], codes[scored], scores[scored])
    freedom = sum(score.df for score in personas.values())
    squares = sum(score.df * score.sd**2 for score in personas.values())
    return ScoreSummary(
        personas=personas,
        categories=_categories(frame, ids, categories),
        overall=math.fsum(score.mean for score in personas.values()) / len(personas) if personas else 0.0,
        repetitions=int(np.median(counts)) if len(counts) else 0,
        run_sd=math.sqrt(squares / freedom) if freedom else None,
        trials=len(frame),
        refused=int(refused.sum()),
        unscored=int((~scored & ~refused).sum()),
        scale=scale_of(scores[scored]),
        warnings=_warnings(frame, warnings),
    )


SCALES = ("yes_no", "percent", "other")
_PERCENT = 10.0
"""Scores from 0 to 100 reach beyond this, ratings of 1 to 10 do not."""


def scale_of(scores: npt.NDArray[np.float64]) -> str:
    """What *scores* (without NaN) are measured on, by their values; empty without any."""
    if not scores.size:
        return ""
    if bool(np.all((scores == 0) | (scores == 1))):
        return "yes_no"
    return "percent" if scores.min() >= 0 and _PERCENT < scores.max() <= 100 else "other"


def wider_scale(first: str, second: str) -> str:
    """The scale that holds the scores of both: only zeros are no yes/no of a score that was 80 before."""
    known = [scale for scale in (first, second) if scale]
    return max(known, key=SCALES.index, default="other")


def _warnings(frame: pd.DataFrame, column: str | None) -> dict[str, int]:
    if column is None:
        return {}
    found: dict[str, int] = {}
    for position, held in enumerate(require_column(frame, column, "warnings").tolist()):
        if held is None or (isinstance(held, float) and math.isnan(held)):
            continue
        if isinstance(held, (str, bytes)) or not isinstance(held, Sequence):
            raise FrameError(f"column {column!r}, {row_name(frame, position)}: {held!r} is no list of warnings")
        for one in held:
            name = _warning(one)
            found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))


def _warning(one: Any) -> str:
    """``severity: kind`` of one warning."""
    if isinstance(one, Mapping):
        one = (one.get("severity", ""), one.get("kind", one.get("category", "")))
    if isinstance(one, str):
        return one
    if isinstance(one, Sequence) and len(one) == 2:
        return ": ".join(str(part) for part in one if part)
    raise FrameError(f"{one!r} is no warning: give a text, (severity, kind), or a mapping with both")


def _persona_column(frame: pd.DataFrame) -> str:
    filled = "persona" in frame.columns and bool(frame["persona"].notna().any())
    return "persona" if filled or "name" not in frame.columns else "name"


def _numbers(frame: pd.DataFrame, score_values: pd.Series[Any] | Sequence[float | None]) -> npt.NDArray[np.float64]:
    if isinstance(score_values, pd.Series) and not score_values.index.equals(frame.index):
        raise FrameError("the scores have another index than the table: give one score a row, in the same order")
    if len(score_values) != len(frame):
        raise FrameError(f"{len(score_values)} scores for {len(frame)} rows: give one score a row")
    numbers = np.empty(len(frame))
    for position, value in enumerate(score_values):
        try:
            numbers[position] = np.nan if value is None or value is pd.NA else float(value)
        except (TypeError, ValueError):
            numbers[position] = np.inf
        if np.isinf(numbers[position]):
            row = frame.index[int(position)]
            raise FrameError(f"row {row!r}: the score is {value!r}; a finite number, or None for no score, is needed")
    return numbers


def _refuse_duplicates(
    frame: pd.DataFrame, ids: npt.NDArray[np.object_], codes: npt.NDArray[np.int64], keys: list[str]
) -> None:
    if "repetition" not in frame.columns:
        return
    table = pd.DataFrame({"persona": ids, "block": codes, "repetition": frame["repetition"].to_numpy()})
    twice = table.duplicated().to_numpy()
    if twice.any():
        where = int(twice.argmax())
        raise FrameError(
            f"{row_name(frame, where)} repeats the ({', '.join(keys)}, repetition) of an earlier row "
            f"(persona {ids[where]!r}): name the column that tells them apart with block=[…]"
        )


def _per_persona(
    ids: npt.NDArray[np.object_], blocks: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]
) -> tuple[dict[str, PersonaScore], npt.NDArray[np.int64]]:
    """The score of each persona, and how many trials each (persona, block) holds."""
    who, names = pd.factorize(ids, sort=True)
    cell, cells = pd.factorize(who * (int(blocks.max(initial=0)) + 1) + blocks)
    sizes = np.bincount(cell)
    means = np.bincount(cell, scores) / sizes
    squares = np.bincount(cell, (scores - means[cell]) ** 2)
    owner = np.asarray(cells) // (int(blocks.max(initial=0)) + 1)
    held, freedom = np.bincount(owner), np.bincount(owner, sizes - 1).astype(int)
    mean, square = np.bincount(owner, means) / held, np.bincount(owner, squares)
    n = np.bincount(owner, sizes).astype(int)
    personas = {
        str(name): PersonaScore(
            mean=float(mean[k]),
            n=int(n[k]),
            sd=math.sqrt(float(square[k]) / int(freedom[k])) if freedom[k] else 0.0,
            df=int(freedom[k]),
        )
        for k, name in enumerate(names)
    }
    return personas, sizes


def _categories(
    frame: pd.DataFrame, ids: npt.NDArray[np.object_], columns: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for column in columns:
        value_of: dict[str, Any] = {}
        values = frame[column]
        for position in np.flatnonzero(values.notna().to_numpy()):
            who, value = str(ids[position]), values.iloc[position]
            if value_of.setdefault(who, value) != value:
                raise FrameError(
                    f"{row_name(frame, int(position))}: persona {who!r} has {column!r} = {value!r} here "
                    f"and {value_of[who]!r} before; a category is fixed for a persona"
                )
        for value in sorted(set(value_of.values()), key=str):
            members = tuple(sorted(who for who, held in value_of.items() if held == value))
            found[f"{column}={value}"] = members
    return found
