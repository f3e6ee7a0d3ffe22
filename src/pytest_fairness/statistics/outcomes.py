"""What kind an outcome is, and its values as numbers; a value that does not fit is named by column and row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pytest_fairness.errors import FrameError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.frames import Bools, Floats, row_name

ORDINAL_LEVELS = 11
"""Whole numbers with at most this many distinct values are ranks of a scale, not quantities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """An outcome as numbers: ``values`` (NaN = no outcome), its ``kind`` and, if inferred, ``why``.

    A categorical outcome holds codes into ``categories``.
    """

    values: Floats
    kind: OutcomeKind
    categories: tuple[str, ...] = field(default=())
    why: str | None = None

    @property
    def present(self) -> Bools:
        return ~np.isnan(self.values)


def read_outcome(frame: pd.DataFrame, column: str, series: pd.Series[Any], kind: str | None) -> Values:
    """The values of *series* (named *column* in messages) as numbers of *kind*; ``None`` or ``auto`` infers
    it.

    Raises FrameError for an unknown kind, for values that are neither numbers, yes/no nor labels, for
    infinities, and for values that contradict the kind.
    """
    wanted = _kind(kind)
    if wanted is OutcomeKind.CATEGORICAL:
        return _labels(series, why=None)
    numbers = _numbers(series)
    if numbers is None:
        if wanted is not None:
            _raise_not_a_number(frame, column, series, wanted)
        return _labels(_only_labels(frame, column, series), why="its values are labels")
    infinite = np.flatnonzero(np.isinf(numbers))
    if infinite.size:
        where = row_name(frame, int(infinite[0]))
        raise FrameError(f"column {column!r}, {where}: an outcome cannot be infinite; use a missing value")
    present = numbers[~np.isnan(numbers)]
    if wanted is None:
        wanted, why = _infer(series, present)
        return Values(values=numbers, kind=wanted, why=why)
    if wanted in (OutcomeKind.BINARY, OutcomeKind.REFUSAL):
        odd = np.flatnonzero(~np.isnan(numbers) & (numbers != 0) & (numbers != 1))
        if odd.size:
            where = row_name(frame, int(odd[0]))
            raise FrameError(
                f"column {column!r}, {where}: {series.iloc[int(odd[0])]!r} is not yes or no; "
                f"a {wanted.value} outcome is True, False, 1, 0 or missing"
            )
    return Values(values=numbers, kind=wanted)


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
        known = (bool, int, float, np.bool_, np.number)
        if not all(isinstance(value, known) for value in values[~missing]):
            return None
        numbers = np.full(values.size, np.nan)
        numbers[~missing] = values[~missing].astype(np.float64)
        return numbers
    if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    return None


def _only_labels(frame: pd.DataFrame, column: str, series: pd.Series[Any]) -> pd.Series[Any]:
    """*series*, if all its values are text; numbers among labels are a mistake that a guess would hide."""
    if series.dtype == object:
        missing = series.isna().to_numpy()
        for position, value in enumerate(series.to_numpy(dtype=object)):
            if not missing[position] and not isinstance(value, str):
                where = row_name(frame, position)
                raise FrameError(
                    f"column {column!r}, {where}: {value!r} is a {type(value).__name__} among labels; make the "
                    "column one type, or pass kind='categorical'"
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
        if not missing[position] and not isinstance(value, (bool, int, float, np.bool_, np.number)):
            where = row_name(frame, position)
            raise FrameError(f"column {column!r}, {where}: {value!r} is not a number, but the kind is {kind.value}")
    raise FrameError(f"column {column!r}: values of type {series.dtype} are not numbers")
