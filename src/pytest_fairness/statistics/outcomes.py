"""What kind an outcome is, and its values as numbers; a value that does not fit is named by column and row."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.frames import Bools, Floats, row_name

LARGEST = 1e100
"""Larger values have squares that a float cannot hold."""
ORDINAL_LEVELS = 11
"""Whole numbers with at most this many distinct values are ranks of a scale, not quantities."""


_NUMBERS = (bool, int, float, Decimal, np.bool_, np.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """An outcome as numbers: ``values`` (NaN = no outcome), its ``kind`` and, if inferred, ``why``.

    A categorical outcome holds codes into ``categories``. A yes/no outcome of two labels holds 0 and 1 for the two
    ``categories``, the favourable one last; ``favourable`` is the value that is the favourable answer, None where that
    is not known.
    """

    values: Floats
    kind: OutcomeKind
    categories: tuple[str, ...] = field(default=())
    why: str | None = None
    favourable: float | None = None

    @property
    def present(self) -> Bools:
        return ~np.isnan(self.values)


def read_outcome(
    frame: pd.DataFrame, column: str, series: pd.Series[Any], kind: str | None, favourable: object = None
) -> Values:
    """The values of *series* (named *column* in messages) as numbers of *kind*; ``None`` or ``auto`` infers
    it.

    Two labels, of whatever spelling, are yes and no. *favourable* is the label that is the favourable answer; without
    it, it is known from words such as yes, approved, hired, pass.

    Raises FrameError for an unknown kind, for values that are neither numbers, yes/no nor labels, for
    numbers that are infinite or beyond ±1e100, and for values that contradict the kind; UsageError for a *favourable*
    that is none of two labels.
    """
    wanted = _kind(kind)
    if wanted is OutcomeKind.CATEGORICAL:
        return _two_or_more(column, _labels(series, why=None), favourable)
    # A pandas category holds labels, unless it is declared to hold numbers.
    named = wanted is not None and isinstance(series.dtype, pd.CategoricalDtype)
    numbers = _numbers(series.astype(object) if named else series)
    if numbers is None:
        if wanted not in (None, OutcomeKind.BINARY):
            _raise_not_a_number(frame, column, series, wanted)
        labels = _labels(_only_labels(frame, column, series), why="its values are labels")
        found = _two_or_more(column, labels, favourable)
        if wanted is OutcomeKind.BINARY and found.kind is not OutcomeKind.BINARY:
            raise FrameError(
                f"column {column!r} has {len(labels.categories)} labels ({_listed(labels.categories)}): a yes/no "
                "outcome has two"
            )
        return found
    outside = np.flatnonzero(np.abs(numbers) > LARGEST)
    if outside.size:
        _raise_too_large(frame, column, series, int(outside[0]))
    present = numbers[~np.isnan(numbers)]
    why = None
    if wanted is None:
        wanted, why = _infer(series, present)
    if favourable is not None and wanted is not OutcomeKind.BINARY:
        raise UsageError(f"favourable={favourable!r}: {column!r} is no yes/no outcome, but {wanted.value}")
    if wanted in (OutcomeKind.BINARY, OutcomeKind.REFUSAL):
        odd = np.flatnonzero(~np.isnan(numbers) & (numbers != 0) & (numbers != 1))
        if odd.size:
            where = row_name(frame, int(odd[0]))
            raise FrameError(
                f"column {column!r}, {where}: {series.iloc[int(odd[0])]!r} is not yes or no; "
                f"a {wanted.value} outcome is True, False, 1, 0 or missing"
            )
    return Values(values=numbers, kind=wanted, why=why, favourable=_favourable_number(column, wanted, favourable))


def _favourable_number(column: str, kind: OutcomeKind, favourable: object) -> float | None:
    """Of yes/no in numbers: yes, unless the caller names the other; of refusals always no."""
    if kind is OutcomeKind.REFUSAL:
        return 0.0
    if kind is not OutcomeKind.BINARY:
        return None
    if favourable is None:
        return 1.0
    if favourable not in (0, 1):
        raise UsageError(
            f"favourable={favourable!r} is no value of {column!r}, which holds yes and no: give True or False"
        )
    return float(bool(favourable))


_FAVOURABLE = frozenset(
    word
    for line in (
        "yes true y t 1 approve approved approval accept accepted acceptance hire hired offer offered",
        "pass passed passes grant granted favourable favorable positive select selected invite invited",
        "interview advance advanced admit admitted recommend recommended eligible qualified success",
        "successful shortlist shortlisted keep kept allow allowed",
    )
    for word in line.split()
)
_UNFAVOURABLE = frozenset(
    word
    for line in (
        "no false n f 0 deny denied denial reject rejected rejection refuse refused decline declined",
        "fail failed fails unfavourable unfavorable negative exclude excluded skip skipped ineligible",
        "unqualified failure unsuccessful withhold withheld dismiss dismissed disallow disallowed",
        "waitlist waitlisted remove removed forbid forbidden",
    )
    for word in line.split()
)


def _good(label: str) -> bool | None:
    """Whether *label* is a favourable answer by its words; None where they do not say."""
    words = label.strip().casefold().replace("_", " ").replace("-", " ")
    for prefix in ("not ", "no ", "non ", "un"):
        if words.startswith(prefix) and words.removeprefix(prefix).strip() in _FAVOURABLE:
            return False
    return True if words in _FAVOURABLE else False if words in _UNFAVOURABLE else None


def _two_or_more(column: str, labels: Values, favourable: object) -> Values:
    """Two labels as yes and no, the favourable one as yes; other numbers of labels as they are."""
    names = labels.categories
    if len(names) != 2:
        if favourable is not None:
            raise UsageError(
                f"favourable={favourable!r}: {column!r} has {len(names)} labels ({_listed(names)}); name the "
                "favourable one where there are two"
            )
        return labels
    if favourable is not None:
        if str(favourable) not in names:
            raise UsageError(f"favourable={favourable!r} is no label of {column!r}, which has {_listed(names)}")
        good: str | None = str(favourable)
    else:
        first, second = (_good(name) for name in names)
        known = first is not second and None not in (first, second)
        good = None if not known else names[0] if first else names[1]
    turned = good == names[0]
    return Values(
        values=1 - labels.values if turned else labels.values,
        kind=OutcomeKind.BINARY,
        categories=names[::-1] if turned else names,
        why=f"it has two labels, {_listed(names)}",
        favourable=None if good is None else 1.0,
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names[:8])) + (" …" if len(names) > 8 else "")


def _kind(kind: str | None) -> OutcomeKind | None:
    if kind is None or kind == "auto":
        return None
    try:
        return OutcomeKind(kind)
    except ValueError:
        known = ", ".join(member.value for member in OutcomeKind)
        raise FrameError(f"unknown outcome kind {kind!r}; it is one of {known}, or 'auto'") from None


def _infer(series: pd.Series[Any], present: Floats) -> tuple[OutcomeKind, str]:
    boolean = series.dtype == np.bool_ or str(series.dtype) == "boolean"
    if boolean or bool(np.all((present == 0) | (present == 1))):
        return OutcomeKind.BINARY, "its values are yes and no"
    if present.size <= 10_000 or bool(np.all(present[:1000] == np.round(present[:1000]))):
        levels = np.unique(present)
        if levels.size <= ORDINAL_LEVELS and bool(np.all(levels == np.round(levels))):
            return (
                OutcomeKind.ORDINAL,
                f"it has {levels.size} distinct whole numbers, at most {ORDINAL_LEVELS}",
            )
    return OutcomeKind.NUMERIC, "its values are numbers"


def _numbers(series: pd.Series[Any]) -> Floats | None:
    """The values as floats with NaN for missing ones, or ``None`` if they are not numbers."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return np.asarray(series.to_numpy(), dtype=np.float64)
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        values = series.to_numpy(dtype=object)
        missing = series.isna().to_numpy()
        if not all(isinstance(value, _NUMBERS) for value in values[~missing]):
            return None
        numbers = np.full(values.size, np.nan)
        try:
            numbers[~missing] = values[~missing].astype(np.float64)
        except OverflowError:  # a whole number beyond any float
            numbers[~missing] = [float(value) if abs(value) <= LARGEST else np.inf for value in values[~missing]]
        return numbers
    if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    return None


def _raise_too_large(frame: pd.DataFrame, column: str, series: pd.Series[Any], at: int) -> NoReturn:
    where, value = f"column {column!r}, {row_name(frame, at)}", series.iloc[at]
    if isinstance(value, (float, np.floating, Decimal)) and math.isinf(value):
        raise FrameError(f"{where}: an outcome cannot be infinite; use a missing value")
    size = "over" if value > 0 else "under minus"
    raise FrameError(f"{where}: the value is {size} {LARGEST:g}, too large to compute with; use another unit")


def _only_labels(frame: pd.DataFrame, column: str, series: pd.Series[Any]) -> pd.Series[Any]:
    """*series*, if all its values are text; numbers among labels are a mistake that a guess would hide."""
    if series.dtype == object:
        values, missing = series.to_numpy(dtype=object), series.isna().to_numpy()
        other = np.array([not isinstance(value, str) for value in values], dtype=np.bool_) & ~missing
        if other.any():
            # The odd one out is what a reader has to look at, be it a number among labels or a text among numbers.
            strays = other if 2 * other.sum() <= (~missing).sum() else ~other & ~missing
            position = int(np.argmax(strays if strays.any() else other))
            among = "labels" if other[position] else "numbers"
            raise FrameError(
                f"column {column!r}, {row_name(frame, position)}: {values[position]!r} is of type "
                f"{type(values[position]).__name__} among {among}; make the column one type, or pass kind='categorical'"
            )
    elif not (pd.api.types.is_string_dtype(series.dtype) or isinstance(series.dtype, pd.CategoricalDtype)):
        raise FrameError(f"column {column!r}: values of type {series.dtype} are not an outcome")
    return series


def _labels(series: pd.Series[Any], why: str | None) -> Values:
    text = series.map(str, na_action="ignore")
    codes, uniques = pd.factorize(text)
    names = [str(value) for value in uniques]
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names) + 1)
    rank[order] = np.arange(len(names))
    rank[-1] = np.nan
    return Values(
        values=rank[codes],
        kind=OutcomeKind.CATEGORICAL,
        categories=tuple(names[at] for at in order),
        why=why,
    )


def _raise_not_a_number(frame: pd.DataFrame, column: str, series: pd.Series[Any], kind: OutcomeKind) -> None:
    values = series.to_numpy(dtype=object)
    missing = series.isna().to_numpy()
    for position, value in enumerate(values):
        if not missing[position] and not isinstance(value, _NUMBERS):
            where = row_name(frame, position)
            raise FrameError(f"column {column!r}, {where}: {value!r} is not a number, but the kind is {kind.value}")
    raise FrameError(f"column {column!r}: values of type {series.dtype} are not numbers")
