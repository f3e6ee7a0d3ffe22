"""Rows sorted by group, cluster and block, and the cells of all pairs of groups: each sum that a
comparison starts from is one ``reduceat`` or one ``bincount``, for all pairs at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pytest_fairness.statistics.arrays import Bins, Bools, Floats, Ints, sums, taken


class Rows(NamedTuple):
    """The rows of a comparison: one entry each, or one for the *weight* of rows alike. *copy* says
    which repeat the text of another, *bins* what is known of numbers that stand in bins, *alike*
    how many clusters that of a row stands for.
    """

    values: Floats
    group: Ints
    cluster: Ints
    block: Ints
    copy: Bools | None
    weight: Floats | None = None
    bins: Bins | None = None
    alike: Floats | None = None

    def where(self, which: Bools) -> Rows:
        """Return the rows where *which* is true."""
        if bool(which.all()):
            return self
        return self.take(which)

    def take(self, places: Bools | Ints) -> Rows:
        """Return the rows at *places*."""
        bins = self.bins
        if bins is not None:
            bins = bins.take(places)
        return Rows(
            self.values[places],
            self.group[places],
            self.cluster[places],
            self.block[places],
            taken(self.copy, places),
            taken(self.weight, places),
            bins,
            taken(self.alike, places),
        )


class Layout:
    """The scored rows of a comparison, G groups (each with at least one row), H blocks, U cells, C
    clusters.

    A *cell* is one cluster of one group in one block. ``cell_*`` have length U, ``cluster_*``
    length C (a cluster that stands in two groups counts twice; ``cluster_label`` is the same),
    ``*_start`` are offsets for reduceat. ``count`` is G × H, ``sizes`` and ``clusters`` are the
    rows and the clusters of each group. ``reference`` was subtracted from ``values``, so that equal
    constants cancel exactly. ``own_rows``: each row is its own cluster; a cell then holds rows
    alike. ``shared``: some cluster stands in more than one group (one persona, swapped label).
    ``weight`` says how many rows of a table of counts each of the ``values`` stands for, None where
    that is one; ``bins`` what is known beside them of numbers that stand in bins. ``cell_alike``
    (U) says how many units alike a cell stands for: its rows where these are their own clusters,
    clusters of a table that counts those *alike* together.
    """

    def __init__(self, rows: Rows, *, groups: int, blocks: int, own_rows: bool) -> None:
        """The groups of *rows* are codes 0 … groups−1, all of which occur; the values have no NaN,
        length n ≥ 1.
        """
        span = int(rows.cluster.max()) + 1
        key = (rows.group * span + rows.cluster) * blocks + rows.block
        if np.any(key[1:] < key[:-1]):
            order = np.argsort(
                key
            )  # the order of a cell's repetitions is left open: it does not matter
            key = key[order]
            rows = rows.take(order)
        values, group, cluster, block, _, weight, bins, alike = rows
        self.weight = weight
        self.bins = bins
        self.groups = groups
        self.blocks = blocks
        self.own_rows = own_rows
        self.reference = float(values[0])
        self.values = values - self.reference
        self.row_group = group
        self.row_block = block
        self.group_start = _starts(group)
        self.cell_start = _starts(key)
        self.cell_group = group[self.cell_start]
        self.cell_block = block[self.cell_start]
        if weight is None:
            self.cell_size = np.diff(self.cell_start, append=values.size).astype(np.float64)
        else:
            self.cell_size = np.add.reduceat(weight, self.cell_start)
        self.has_alike = own_rows or alike is not None
        self.cell_alike = np.ones(self.cell_start.size)
        if own_rows:
            self.cell_alike = self.cell_size
        elif alike is not None:
            self.cell_alike = alike[self.cell_start]
        label = cluster[self.cell_start]
        self.cluster_start = _starts(self.cell_group * span + label)
        self.cluster_label = label[self.cluster_start]
        self.cluster_group = self.cell_group[self.cluster_start]
        lengths = np.diff(self.cluster_start, append=self.cell_start.size)
        self.cell_cluster = np.repeat(np.arange(self.cluster_start.size), lengths)
        self.count = sums(group * blocks + block, weight, groups * blocks).reshape(groups, blocks)
        self.sizes = self.count.sum(axis=1)
        if own_rows:
            self.clusters = self.sizes.astype(np.intp)
        else:
            self.clusters = sums(self.cluster_group, self.cluster_alike, groups).astype(np.intp)
        self.shared = not own_rows and int(np.bincount(self.cluster_label).max()) > 1

    @property
    def alike(self) -> Floats:
        """Return how many rows alike each of the values stands for."""
        if self.weight is None:
            return np.ones(self.values.size)
        return self.weight

    @property
    def cluster_alike(self) -> Floats:
        """Return how many clusters alike each stands for."""
        if self.own_rows:
            return self.by_cluster(self.cell_size)
        return self.cell_alike[self.cluster_start]

    @property
    def numbers(self) -> Floats:
        """Return the values, those that stand in bins as the means of what they stand for."""
        if self.bins is None:
            return self.values
        return self.values + self.bins.mean

    def squares_by_cell(self) -> Floats | float:
        """Return the squares of each cell that lie within bins; 0 without any."""
        if self.bins is None:
            return 0.0
        return np.add.reduceat(self.bins.squares, self.cell_start)

    def squares_by_group(self) -> Floats | float:
        """Return the squares of each group that lie within bins; 0 without any."""
        if self.bins is None:
            return 0.0
        return np.add.reduceat(self.bins.squares, self.group_start)

    def by_cell(self, rows: Floats) -> Floats:
        """Sums over the rows of each cell (last axis)."""
        rows = self.weighted(rows)
        if self.cell_start.size == self.values.size:
            return rows
        return np.add.reduceat(rows, self.cell_start, axis=-1)

    def rows_by_group(self, rows: Floats) -> Floats:
        """Sums over the rows of each group (last axis)."""
        return np.add.reduceat(self.weighted(rows), self.group_start, axis=-1)

    def weighted(self, rows: Floats) -> Floats:
        """*rows*, each times the number of rows that it stands for."""
        if self.weight is None:
            return rows
        return rows * self.weight

    def by_cluster(self, cells: Floats) -> Floats:
        """Sums over the cells of each cluster (last axis)."""
        same = self.cluster_start.size == self.cell_start.size
        if same:
            return cells
        return np.add.reduceat(cells, self.cluster_start, axis=-1)

    def by_group(self, cells: Floats) -> Floats:
        """Sums over the cells of each group (last axis)."""
        return np.add.reduceat(cells, _starts(self.cell_group), axis=-1)

    def clusters_by_group(self, clusters: Floats) -> Floats:
        """Sums over the clusters of each group (last axis)."""
        return np.add.reduceat(clusters, _starts(self.cluster_group), axis=-1)


def _starts(*sorted_codes: Ints) -> Ints:
    """Return where the runs of equal codes begin."""
    new = np.ones(sorted_codes[0].size, dtype=np.bool_)
    new[1:] = np.logical_or.reduce([codes[1:] != codes[:-1] for codes in sorted_codes])
    return np.flatnonzero(new)


class Pairs(NamedTuple):
    """All pairs of G groups, ``first`` < ``second`` in the order of the labels."""

    first: Ints
    second: Ints


class PairCells:
    """E cells in S strata of Q comparisons of the groups ``first`` and ``second``, sorted by
    comparison, side and unit.

    ``comparison``, ``stratum``, ``side`` (0 or 1), ``cell`` (of the layout), ``partner`` (the other
    group), ``unit`` and ``size`` (rows) have length E; ``stratum_comparison``, ``stratum_block``
    and ``live`` (rows on both sides) length S, and ``rows`` S × 2; what begins with ``unit_``
    length M: a unit is a cluster on a side of a comparison, ``unit_place`` that side as 2 ×
    comparison + side, ``mate`` the unit of the same cluster on the other side, −1 where there is
    none. Of each comparison ``side_rows`` and ``units`` (Q × 2) count both sides, ``shared`` the
    clusters that stand on both; ``paired``: all do. A cell that stands for several units alike, as
    for rows that stand for themselves, has the ``size`` of one of them.
    """

    def __init__(
        self,
        layout: Layout,
        pairs: Pairs,
        comparison: Ints,
        side: Ints,
        stratum: Ints,
        cell: Ints,
        stratum_comparison: Ints,
        stratum_block: Ints,
    ) -> None:
        self.layout = layout
        self.comparisons = int(pairs.first.size)
        self.first, self.second = pairs
        self.comparison = comparison
        self.side = side
        self.stratum = stratum
        self.cell = cell
        self.stratum_comparison = stratum_comparison
        self.stratum_block = stratum_block
        self.partner = np.where(side == 0, self.second[comparison], self.first[comparison])
        self.size = layout.cell_size[cell] / layout.cell_alike[cell]
        self.rows = self.by_stratum_side(self.size)
        self.live = self.rows.min(axis=1) > 0
        self.side_rows = self.by_side(self.size)
        self._unit_start = _starts(layout.cell_cluster[cell], comparison, side)
        self.unit = np.repeat(
            np.arange(self._unit_start.size), np.diff(self._unit_start, append=cell.size)
        )
        self.unit_comparison = comparison[self._unit_start]
        self.unit_side = side[self._unit_start]
        self.unit_cluster = layout.cell_cluster[cell[self._unit_start]]
        self.unit_place = 2 * self.unit_comparison + self.unit_side
        self.units = self.units_by_side(np.ones(self._unit_start.size))
        self.mate = np.full(self._unit_start.size, -1, dtype=np.intp)
        if layout.shared:
            label = layout.cluster_label[self.unit_cluster]
            key = self.unit_comparison * (int(label.max(initial=0)) + 1) + label
            order = np.argsort(key, kind="stable")
            same = np.flatnonzero(key[order][1:] == key[order][:-1])
            first = order[same]
            two = order[same + 1]
            self.mate[first], self.mate[two] = two, first
        met = self.unit_comparison[(self.mate >= 0) & (self.unit_side == 0)]
        self.shared = sums(met, None, self.comparisons)
        self.paired: Bools = (self.shared > 0) & np.all(self.shared[:, None] == self.units, axis=1)

    def _all_units(self, values: Floats, cells: Ints | slice = slice(None)) -> Floats:
        """*values* of one unit of each of the *cells*, times the units alike that it stands for."""
        if self.layout.has_alike:
            return values * self.layout.cell_alike[self.cell[cells]]
        return values

    def one_unit(self, values: Floats) -> Floats:
        """Sums over the cells of the layout (U, last axis) for each cell here (E), or for one of
        its units alike.
        """
        here = values[..., self.cell]
        if self.layout.has_alike:
            return here / self.layout.cell_alike[self.cell]
        return here

    def by_stratum_side(self, values: Floats) -> Floats:
        """Sums over the rows of each stratum and side (S × 2)."""
        place = 2 * self.stratum + self.side
        return sums(place, self._all_units(values), 2 * self.stratum_block.size).reshape(-1, 2)

    def by_side(self, values: Floats) -> Floats:
        """Sums over the rows of each comparison and side (Q × 2)."""
        place = 2 * self.comparison + self.side
        return sums(place, self._all_units(values), 2 * self.comparisons).reshape(-1, 2)

    def strata_by_comparison(self, values: Floats) -> Floats:
        """Sums over the strata of each comparison (Q)."""
        return sums(self.stratum_comparison, values, self.comparisons)

    def by_unit(self, values: Floats) -> Floats:
        """Sums over the cells of each unit (M)."""
        units = self._unit_start.size
        if self.cell.size == units:
            return values
        return sums(self.unit, values, units)

    def units_by_side(self, values: Floats) -> Floats:
        """Sums over the units of each side of each comparison, each as often as it stands there (Q
        × 2).
        """
        return sums(
            self.unit_place, self._all_units(values, self._unit_start), 2 * self.comparisons
        ).reshape(-1, 2)

    def each_stratum(self, least_rows: int) -> tuple[PairCells, Ints]:
        """Every stratum with enough rows on both sides as a comparison of its own, and which strata
        these are.
        """
        kept = np.flatnonzero(self.rows.min(axis=1) >= least_rows)
        place = np.full(self.stratum_comparison.size, -1, dtype=np.intp)
        place[kept] = np.arange(kept.size)
        order = np.flatnonzero(place[self.stratum] >= 0)
        order = order[np.argsort(2 * place[self.stratum[order]] + self.side[order], kind="stable")]
        stratum = place[self.stratum[order]]
        parent = self.stratum_comparison[kept]
        pairs = Pairs(self.first[parent], self.second[parent])
        strata = (np.arange(kept.size), self.stratum_block[kept])
        return PairCells(
            self.layout, pairs, stratum, self.side[order], stratum, self.cell[order], *strata
        ), kept


def pair_cells(layout: Layout, pairs: Pairs) -> PairCells:
    """The cells of *pairs* of groups, without those in blocks that lack the partner."""
    count = pairs.first.size
    blocks = layout.blocks
    groups, partners = (np.stack(both, axis=1).ravel() for both in (pairs, pairs[::-1]))
    start = _starts(layout.cell_group)
    lengths = np.diff(start, append=layout.cell_start.size)[groups]
    place = np.repeat(np.arange(2 * count), lengths)
    cell = np.arange(place.size) + np.repeat(start[groups] - np.cumsum(lengths) + lengths, lengths)
    if np.any(layout.count == 0):
        kept = layout.count[partners[place], layout.cell_block[cell]] > 0
        place = place[kept]
        cell = cell[kept]
    stratum = (place // 2) * blocks + layout.cell_block[cell]
    strata = np.repeat(np.arange(count), blocks), np.tile(np.arange(blocks), count)
    return PairCells(layout, pairs, place // 2, place % 2, stratum, cell, *strata)
