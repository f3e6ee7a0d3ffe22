"""Rows sorted by group, cluster and block, and the cells of all pairs of groups: each sum that a comparison starts
from is one ``reduceat`` or one ``bincount``, for all pairs at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pytest_fairness.statistics.arrays import Bools, Floats, Ints, sums


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The scored rows of a comparison, G groups (each with at least one row), H blocks, U cells, C clusters.

    A *cell* is one cluster of one group in one block. ``cell_*`` have length U, ``cluster_*`` length C (a cluster that
    stands in two groups counts twice; ``cluster_label`` is the same), ``*_start`` are offsets for reduceat. ``count``
    is G × H. ``reference`` was subtracted from ``values``, so that equal constants cancel exactly. ``own_rows``: each
    row is its own cluster; a cell then holds rows alike.
    """

    values: Floats
    reference: float
    row_group: Ints
    row_block: Ints
    cell_start: Ints
    cell_group: Ints
    cell_block: Ints
    cluster_start: Ints
    cluster_label: Ints
    cluster_group: Ints
    count: Floats
    own_rows: bool

    @property
    def groups(self) -> int:
        return int(self.count.shape[0])

    @property
    def blocks(self) -> int:
        return int(self.count.shape[1])

    @cached_property
    def clusters(self) -> Ints:
        """Clusters of each group (G)."""
        return np.bincount(self.cluster_group).astype(np.intp)

    @cached_property
    def sizes(self) -> Floats:
        """Rows of each group (G)."""
        return np.asarray(self.count.sum(axis=1))

    @cached_property
    def group_start(self) -> Ints:
        return _starts(self.row_group)

    @cached_property
    def cell_size(self) -> Floats:
        """Rows of each cell (U)."""
        return np.diff(self.cell_start, append=self.values.size).astype(np.float64)

    @cached_property
    def cell_cluster(self) -> Ints:
        """The place of each cell's cluster (U)."""
        return np.repeat(np.arange(self.cluster_start.size), np.diff(self.cluster_start, append=self.cell_start.size))

    @cached_property
    def shared(self) -> bool:
        """Whether some cluster stands in more than one group (one persona, swapped label)."""
        return not self.own_rows and int(np.bincount(self.cluster_label).max()) > 1

    def by_cell(self, rows: Floats) -> Floats:
        """Sums over the rows of each cell (last axis)."""
        return rows if self.cell_start.size == self.values.size else np.add.reduceat(rows, self.cell_start, axis=-1)

    def by_cluster(self, cells: Floats) -> Floats:
        """Sums over the cells of each cluster (last axis)."""
        same = self.cluster_start.size == self.cell_start.size
        return cells if same else np.add.reduceat(cells, self.cluster_start, axis=-1)

    def by_group(self, cells: Floats) -> Floats:
        """Sums over the cells of each group (last axis)."""
        return np.add.reduceat(cells, _starts(self.cell_group), axis=-1)

    def clusters_by_group(self, clusters: Floats) -> Floats:
        """Sums over the clusters of each group (last axis)."""
        return np.add.reduceat(clusters, _starts(self.cluster_group), axis=-1)


def lay_out(
    values: Floats, group: Ints, cluster: Ints, block: Ints, *, groups: int, blocks: int, own_rows: bool
) -> Layout:
    """Sort and count. *group* holds codes 0 … groups−1, all of which occur; *values* has no NaN, length n ≥ 1."""
    span = int(cluster.max()) + 1
    key = (group * span + cluster) * blocks + block
    if np.any(key[1:] < key[:-1]):
        order = np.argsort(key)  # the order of a cell's repetitions is left open: it does not matter
        key, group, cluster, block, values = key[order], group[order], cluster[order], block[order], values[order]
    cell_start = _starts(key)
    cell_group, cell_cluster = group[cell_start], cluster[cell_start]
    cluster_start = _starts(cell_group * span + cell_cluster)
    reference = float(values[0])
    return Layout(
        values=values - reference,
        reference=reference,
        row_group=group,
        row_block=block,
        cell_start=cell_start,
        cell_group=cell_group,
        cell_block=block[cell_start],
        cluster_start=cluster_start,
        cluster_label=cell_cluster[cluster_start],
        cluster_group=cell_group[cluster_start],
        count=sums(group * blocks + block, None, groups * blocks).reshape(groups, blocks),
        own_rows=own_rows,
    )


def _starts(*sorted_codes: Ints) -> Ints:
    """Where the runs of equal codes begin."""
    new = np.ones(sorted_codes[0].size, dtype=np.bool_)
    new[1:] = np.logical_or.reduce([codes[1:] != codes[:-1] for codes in sorted_codes])
    return np.flatnonzero(new)


# ---------------------------------------------------------------- pair cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """All pairs of G groups, ``first`` < ``second`` in the order of the labels."""

    first: Ints
    second: Ints


@dataclass(frozen=True, kw_only=True)
class PairCells:
    """E cells in Q comparisons of the groups ``first`` and ``second``, sorted by comparison, side and unit.

    ``comparison``, ``stratum``, ``side`` (0 or 1) and ``cell`` (of the layout) have length E, ``stratum_comparison``
    and ``stratum_block`` length S, what begins with ``unit`` length M: a unit is a cluster on a side of a comparison.
    Where rows stand for themselves, a cell stands for all its rows alike, each a unit of its own.
    """

    layout: Layout
    first: Ints
    second: Ints
    comparison: Ints
    side: Ints
    stratum: Ints
    cell: Ints
    stratum_comparison: Ints
    stratum_block: Ints

    @property
    def comparisons(self) -> int:
        return int(self.first.size)

    @cached_property
    def size(self) -> Floats:
        """Rows of each cell (E), 1 where a cell stands for rows alike."""
        return np.ones(self.cell.size) if self.layout.own_rows else self.layout.cell_size[self.cell]

    def _all_rows(self, values: Floats, cells: Ints | slice = slice(None)) -> Floats:
        """*values* of one row of each of the *cells*, times the rows alike that it stands for."""
        return values * self.layout.cell_size[self.cell[cells]] if self.layout.own_rows else values

    @cached_property
    def partner(self) -> Ints:
        """The other group (E)."""
        return np.where(self.side == 0, self.second[self.comparison], self.first[self.comparison])

    def one_row(self, values: Floats) -> Floats:
        """Sums over the cells of the layout (U, last axis) for each cell here (E), or for one of its rows alike."""
        here = values[..., self.cell]
        return here / self.layout.cell_size[self.cell] if self.layout.own_rows else here

    def by_stratum_side(self, values: Floats) -> Floats:
        """Sums over the rows of each stratum and side (S × 2)."""
        place = 2 * self.stratum + self.side
        return sums(place, self._all_rows(values), 2 * self.stratum_block.size).reshape(-1, 2)

    def by_side(self, values: Floats) -> Floats:
        """Sums over the rows of each comparison and side (Q × 2)."""
        place = 2 * self.comparison + self.side
        return sums(place, self._all_rows(values), 2 * self.comparisons).reshape(-1, 2)

    def strata_by_comparison(self, values: Floats) -> Floats:
        """Sums over the strata of each comparison (Q)."""
        return sums(self.stratum_comparison, values, self.comparisons)

    @cached_property
    def rows(self) -> Floats:
        """Rows of each stratum and side (S × 2)."""
        return self.by_stratum_side(self.size)

    @cached_property
    def live(self) -> Bools:
        """Strata with rows on both sides (S)."""
        return np.asarray(self.rows.min(axis=1) > 0)

    @cached_property
    def side_rows(self) -> Floats:
        """Rows of each comparison and side (Q × 2)."""
        return self.by_side(self.size)

    @cached_property
    def _unit_start(self) -> Ints:
        return _starts(self.layout.cell_cluster[self.cell], self.comparison, self.side)

    @cached_property
    def unit(self) -> Ints:
        """The unit of each cell (E)."""
        return np.repeat(np.arange(self._unit_start.size), np.diff(self._unit_start, append=self.cell.size))

    @cached_property
    def unit_comparison(self) -> Ints:
        return self.comparison[self._unit_start]

    @cached_property
    def unit_side(self) -> Ints:
        return self.side[self._unit_start]

    @cached_property
    def unit_cluster(self) -> Ints:
        """The cluster of the layout that each unit is (M)."""
        return self.layout.cell_cluster[self.cell[self._unit_start]]

    @cached_property
    def unit_place(self) -> Ints:
        """Which side of which comparison each unit stands on, as 2 × comparison + side (M)."""
        return 2 * self.unit_comparison + self.unit_side

    def by_unit(self, values: Floats) -> Floats:
        """Sums over the cells of each unit (M)."""
        units = self._unit_start.size
        return values if self.cell.size == units else sums(self.unit, values, units)

    def units_by_side(self, values: Floats) -> Floats:
        """Sums over the units of each side of each comparison, each as often as it stands there (Q × 2)."""
        return sums(self.unit_place, self._all_rows(values, self._unit_start), 2 * self.comparisons).reshape(-1, 2)

    @cached_property
    def units(self) -> Floats:
        """Units of each comparison and side (Q × 2)."""
        return self.units_by_side(np.ones(self._unit_start.size))

    @cached_property
    def mate(self) -> Ints:
        """The unit of the same cluster on the other side of the comparison, −1 where there is none (M)."""
        mates = np.full(self._unit_start.size, -1, dtype=np.intp)
        if self.layout.shared:
            label = self.layout.cluster_label[self.unit_cluster]
            key = self.unit_comparison * (int(label.max(initial=0)) + 1) + label
            order = np.argsort(key, kind="stable")
            same = np.flatnonzero(key[order][1:] == key[order][:-1])
            one, two = order[same], order[same + 1]
            mates[one], mates[two] = two, one
        return mates

    @cached_property
    def shared(self) -> Floats:
        """Clusters that stand on both sides of each comparison (Q)."""
        return sums(self.unit_comparison[(self.mate >= 0) & (self.unit_side == 0)], None, self.comparisons)

    @cached_property
    def paired(self) -> Bools:
        """Comparisons with the same clusters on both sides (Q)."""
        return np.asarray((self.shared > 0) & np.all(self.shared[:, None] == self.units, axis=1))

    def each_stratum(self, least_rows: int) -> tuple[PairCells, Ints]:
        """Every stratum with enough rows on both sides as a comparison of its own, and which strata these are."""
        kept = np.flatnonzero(self.rows.min(axis=1) >= least_rows)
        place = np.full(self.stratum_comparison.size, -1, dtype=np.intp)
        place[kept] = np.arange(kept.size)
        order = np.flatnonzero(place[self.stratum] >= 0)
        order = order[np.argsort(2 * place[self.stratum[order]] + self.side[order], kind="stable")]
        stratum, parent = place[self.stratum[order]], self.stratum_comparison[kept]
        return replace(
            self,
            first=self.first[parent],
            second=self.second[parent],
            comparison=stratum,
            side=self.side[order],
            stratum=stratum,
            cell=self.cell[order],
            stratum_comparison=np.arange(kept.size),
            stratum_block=self.stratum_block[kept],
        ), kept


def pair_cells(layout: Layout, pairs: Pairs) -> PairCells:
    """The cells of *pairs* of groups, without those in blocks that lack the partner."""
    count, blocks = pairs.first.size, layout.blocks
    groups = np.stack([pairs.first, pairs.second], axis=1).ravel()
    partners = np.stack([pairs.second, pairs.first], axis=1).ravel()
    start = _starts(layout.cell_group)
    lengths = np.diff(start, append=layout.cell_start.size)[groups]
    place = np.repeat(np.arange(2 * count), lengths)
    cell = np.arange(place.size) + np.repeat(start[groups] - np.cumsum(lengths) + lengths, lengths)
    if np.any(layout.count == 0):
        kept = layout.count[partners[place], layout.cell_block[cell]] > 0
        place, cell = place[kept], cell[kept]
    comparison = place // 2
    return PairCells(
        layout=layout,
        first=pairs.first,
        second=pairs.second,
        comparison=comparison,
        side=place % 2,
        stratum=comparison * blocks + layout.cell_block[cell],
        cell=cell,
        stratum_comparison=np.repeat(np.arange(count), blocks),
        stratum_block=np.tile(np.arange(blocks), count),
    )
