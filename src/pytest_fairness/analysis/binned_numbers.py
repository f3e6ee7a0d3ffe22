"""Numbers of a table too large for memory, reduced to at most 1,000 quantile bins.

The engine that holds the table sorts each number into one of some thousand fine bins, by plain
arithmetic, and counts and adds up what is in them: one GROUP BY. Where a fine bin holds too much,
the arithmetic is fitted to what was counted, and the engine counts again. Neighbouring fine bins
then make the bins, of equally many rows, and ever fewer in the tails, where a few numbers decide
about the spread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytest_fairness.statistics.arrays import OFFSET, ROWS, WITHIN, Floats, Ints, sums

if TYPE_CHECKING:
    import pandas as pd

FINE = 4096
MOST_BINS = 1_000
#: Bins of equally many rows; the others halve what is beyond the first and the last of them.
_EVEN, _TAIL = 920, 40
_SEGMENTS = 48
_PASSES = 6
#: The share of all squares about the mean that may lie within fine bins.
_WITHIN = 1e-4
_BIN, _NUMBER, _SQUARE, _LEAST, _MOST = "_bin", "_number", "_square", "_least", "_most"


class FirstScale(NamedTuple):
    """A rising function of numbers of which mean and SD are known: fine about the mean, and without
    an end.
    """

    mean: float
    deviation: float

    def fine_bin(self, nw: Any, number: Any) -> Any:  # noqa: ARG002 - as of steps
        """Return the expression of the fine bin that holds a *number*."""
        distance = (number - self.mean) / self.deviation
        return ((distance / (distance.abs() + 1.0) + 1.0) * (FINE / 2)).floor()


class FittedScale(NamedTuple):
    """A rising function of numbers that were counted: as many steps as ``knots`` but one, each as
    high as the others, and straight in between.
    """

    knots: Floats

    def fine_bin(self, nw: Any, number: Any) -> Any:
        """Return the expression of the fine bin that holds a *number*: a search among the steps."""
        return self._risen(nw, number, 0, self.knots.size - 1).floor()

    def _risen(self, nw: Any, number: Any, first: int, last: int) -> Any:
        """Return how high a *number* between two knots is."""
        height = FINE / (self.knots.size - 1)
        if last - first == 1:
            low, high = self.knots[[first, last]].tolist()
            return (number - low) * (height / (high - low)) + first * height
        middle = (first + last) // 2
        below = self._risen(nw, number, first, middle)
        above = self._risen(nw, number, middle, last)
        return nw.when(number < float(self.knots[middle])).then(below).otherwise(above)


def binned_numbers(
    nw: Any,
    frame: Any,
    outcome: str,
    keys: Sequence[str],
    fetch: Callable[[Any], pd.DataFrame],
) -> pd.DataFrame | None:
    """Return the counts of *frame* (lazy, of narwhals *nw*) by the other *keys* and the bin of
    *outcome*; None where it holds nothing to be binned: an infinite number, or a single one.
    *fetch* gives a frame as pandas has it.

    The outcome of a bin is the mean of all its rows. Beside it stand how much higher the mean of
    those rows is that are counted, and the sum of their squares about that mean.
    """
    number = nw.col(outcome).cast(nw.Float64)
    is_number = ~(number.is_nan() | number.is_null())
    others = [key for key in keys if key != outcome]
    columns = frame.select(*others, **{_NUMBER: nw.when(is_number).then(number)})
    whole = fetch(columns.select(
        nw.col(_NUMBER).min().alias(_LEAST),
        nw.col(_NUMBER).max().alias(_MOST),
        nw.col(_NUMBER).mean().alias(_BIN),
        nw.col(_NUMBER).std().alias(_SQUARE),
    )).astype(float)  # fmt: skip
    least, most, mean, deviation = whole.iloc[0].to_numpy()
    if not np.isfinite(whole.to_numpy()).all() or not least < most:
        return None
    scale: FirstScale | FittedScale = FirstScale(mean, deviation)
    for _ in range(_PASSES):
        fine = fetch(_fine_bins(nw, columns, others, scale, mean))
        if _is_fine(fine):
            break
        scale = _fitted(fine)
    return _merged(fine, others, outcome, mean)


def _fine_bins(
    nw: Any, columns: Any, keys: list[str], scale: FirstScale | FittedScale, mean: float
) -> Any:
    """Return rows, sums and squares about the *mean*, and the ends, of each fine bin of each
    combination of *keys*; the bin is missing where the number is.
    """
    number = nw.col(_NUMBER)
    derived = columns.with_columns(
        nw.lit(1).alias(ROWS),
        scale.fine_bin(nw, number).alias(_BIN),
        (number - mean).alias(OFFSET),
        ((number - mean) * (number - mean)).alias(_SQUARE),
        number.alias(_LEAST),
    )
    aggregates = [nw.col(name).sum() for name in (ROWS, OFFSET, _SQUARE)]
    return derived.group_by(*keys, _BIN, drop_null_keys=False).agg(
        *aggregates, nw.col(_LEAST).min(), nw.col(_NUMBER).max().alias(_MOST)
    )


class _FineBins(NamedTuple):
    """The fine bins of all rows, ascending: how many rows each holds, its ends, and its squares
    about its mean."""

    rows: Floats
    least: Floats
    most: Floats
    within: Floats
    squares: Floats

    @classmethod
    def of(cls, fine: pd.DataFrame) -> _FineBins:
        whole = fine.dropna(subset=_BIN).groupby(_BIN, sort=True)
        added = whole[[ROWS, OFFSET, _SQUARE]].sum()
        rows = added[ROWS].to_numpy(dtype=np.float64)
        squares = added[_SQUARE].to_numpy(dtype=np.float64)
        within = squares - added[OFFSET].to_numpy(dtype=np.float64) ** 2 / rows
        least = whole[_LEAST].min().to_numpy(dtype=np.float64)
        most = whole[_MOST].max().to_numpy(dtype=np.float64)
        within = np.where(least < most, np.maximum(within, 0.0), 0.0)
        return cls(rows, least, most, within, squares)


def _is_fine(fine: pd.DataFrame) -> bool:
    """Return whether no bin of different numbers holds many rows, and few squares lie within."""
    bins = _FineBins.of(fine)
    several = bins.least < bins.most
    share = float(np.max(bins.rows * several)) / float(bins.rows.sum())
    return share <= 1 / MOST_BINS and bins.within.sum() <= _WITHIN * bins.squares.sum()


def _fitted(fine: pd.DataFrame) -> FittedScale:
    """Return the scale whose steps hold equally many of the rows that were counted, and in the
    tails ever fewer.
    """
    bins = _FineBins.of(fine)
    reached = np.cumsum(bins.rows) / bins.rows.sum()
    places = np.repeat(reached, 2)
    places[0::2] = np.concatenate([[0.0], reached[:-1]])
    values = np.stack([bins.least, bins.most], axis=1).ravel()
    halved = 0.5 ** np.arange(1, int(np.log2(bins.rows.sum())) + 1) / _SEGMENTS
    even = np.arange(1, _SEGMENTS) / _SEGMENTS
    shares = np.concatenate([[0.0], halved[::-1], even, 1 - halved, [1.0]])
    return FittedScale(np.unique(np.interp(shares, places, values)))


def _bins(rows: Floats) -> Ints:
    """Return the bin of each of ascending fine bins, which hold so many *rows*."""
    middle = (np.cumsum(rows) - rows / 2) / rows.sum()
    halved = 0.5 ** np.arange(1, _TAIL) / _EVEN
    edges = np.concatenate([halved[::-1], np.arange(1, _EVEN) / _EVEN, 1 - halved])
    return np.asarray(np.searchsorted(edges, middle), dtype=np.intp)


def _merged(fine: pd.DataFrame, keys: list[str], outcome: str, mean: float) -> pd.DataFrame:
    """Return the counts by *keys* and bin, of *fine* bins."""
    bins = _FineBins.of(fine)
    held = np.sort(fine[_BIN].dropna().unique())
    bin_of_fine = _bins(bins.rows)
    missing = fine[_BIN].isna().to_numpy()
    place = np.full(len(fine), -1, dtype=np.intp)
    place[~missing] = bin_of_fine[np.searchsorted(held, fine[_BIN].to_numpy()[~missing])]
    grouped = fine.assign(**{_BIN: place}).groupby([*keys, _BIN], dropna=False, sort=False)
    table: pd.DataFrame = grouped[[ROWS, OFFSET, _SQUARE]].sum().reset_index()
    rows = table[ROWS].to_numpy(dtype=np.float64)
    offset = table[OFFSET].to_numpy(dtype=np.float64)
    squares = table[_SQUARE].to_numpy(dtype=np.float64)
    place = table.pop(_BIN).to_numpy(dtype=np.intp)
    here = place >= 0
    size = int(place.max()) + 1
    middle = sums(place[here], offset[here], size) / np.maximum(
        sums(place[here], rows[here], size), 1
    )
    own = offset / rows
    table[outcome] = np.where(here, mean + middle[place], np.nan)
    table[OFFSET] = np.where(here, own - middle[place], 0.0)
    table[WITHIN] = np.where(here, np.maximum(squares - rows * own**2, 0.0), 0.0)
    return table.drop(columns=_SQUARE)
