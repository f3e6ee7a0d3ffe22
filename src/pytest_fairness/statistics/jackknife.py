"""The delete-one-cluster jackknife (Tukey 1958; Efron & Stein 1981): each estimate once more without each cluster.

One way to an interval for every effect: θ ± t·SE, SE² = Σ over sides (K−1)/K · Σ over clusters (θ₍₋c₎ − mean)². A
cluster that stands on both sides of a comparison, where all do, leaves both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pytest_fairness.statistics.clusters import NameParts, t_quantile, variance
from pytest_fairness.statistics.frames import Bools, Floats, Ints
from pytest_fairness.statistics.pair_cells import PairCells, sums


@dataclass(frozen=True)
class Removals:
    """What leaves with each unit: R rows, one a unit and stratum that it stands in.

    A removal has the number of its unit; in a paired comparison that of the unit on side 0, and the mate leaves with
    it. ``removal`` and ``stratum`` have length R, ``row`` says to which of them each cell belongs (E).
    """

    cells: PairCells
    removal: Ints
    stratum: Ints
    row: Ints | None

    def on(self, side: int, values: Floats) -> Floats:
        """Sums of *values* over the cells (E) of one side that leave (R)."""
        own = np.where(self.cells.side == side, values, 0.0)
        return own if self.row is None else sums(self.row, own, self.removal.size)

    def total(self, rows: Floats) -> Floats:
        """Sums over the rows of each removal (M)."""
        if rows.size == self.cells.unit_side.size and self.row is None:
            return rows
        return sums(self.removal, rows, self.cells.unit_side.size)

    @cached_property
    def left(self) -> tuple[Floats, Floats]:
        """Rows of each side that stay in the stratum (R each)."""
        size, rows = self.cells.size, self.cells.rows[self.stratum]
        return rows[:, 0] - self.on(0, size), rows[:, 1] - self.on(1, size)

    @cached_property
    def gone(self) -> Bools:
        """Whether the stratum lacks a side without what leaves (R): then it counts no more."""
        return np.asarray((self.left[0] == 0) | (self.left[1] == 0))

    def kept(self, side: int, values: Floats) -> Floats:
        """Sums of *values* over the cells (E) of one side that stay in the comparison, without strata that are gone
        (M)."""
        cells = self.cells
        whole, out = cells.by_stratum_side(values * cells.multiplicity)[:, side], self.on(side, values)
        lost = self.total(np.where(self.gone, whole[self.stratum], out))
        return cells.strata_by_comparison(whole)[cells.unit_comparison] - lost

    @cached_property
    def rows_left(self) -> tuple[Floats, Floats]:
        """Rows of each side that stay in the comparison, without strata that are gone (M each)."""
        return self.kept(0, self.cells.size), self.kept(1, self.cells.size)


def removals(cells: PairCells) -> Removals:
    """The removals of *cells*."""
    if not bool(cells.paired.any()):
        return Removals(cells, cells.unit, cells.stratum, None)
    unit = np.arange(cells.unit_side.size)
    second = cells.paired[cells.unit_comparison] & (cells.unit_side == 1)
    unit[second] = cells.mate[second]
    removal = unit[cells.unit]
    strata = cells.stratum_comparison.size
    key, row = np.unique(removal * strata + cells.stratum, return_inverse=True)
    return Removals(cells, key // strata, key % strata, row.astype(np.intp))


def jackknife_error(cells: PairCells, without: Floats, parts: NameParts | None = None) -> Floats:
    """Standard error of an estimate of each comparison (Q) from the estimates *without* each unit (M).

    Infinite where an estimate without a unit is not to be had; NaN where a side has one unit.
    """
    second = cells.paired[cells.unit_comparison] & (cells.unit_side == 1)
    lost = ~np.isfinite(without) & ~second
    without = np.where(second | lost, 0.0, without)
    units = cells.units
    mean = cells.units_by_side(without) / np.maximum(units, 1.0)
    influence = (units.ravel()[cells.unit_place] - 1) * (mean.ravel()[cells.unit_place] - without)
    influence[lost] = 0.0
    error = np.sqrt(variance(cells, influence, parts))
    broken = np.bincount(cells.unit_comparison, lost, cells.comparisons) > 0
    return np.where(broken & ~np.isnan(error), np.inf, error)


def reach(error: Floats, df: Floats, confidence: float = 0.90) -> Floats:
    """Half the width of the interval: t·SE; infinite without a degree of freedom, 0 where the error is 0."""
    quantile = t_quantile(df, 0.5 + confidence / 2)
    return np.where(error > 0, quantile * np.where(error > 0, error, 1.0), np.where(np.isnan(error), np.inf, 0.0))
