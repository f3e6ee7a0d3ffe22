"""Rows sorted by group, cluster and block, with the sums that every comparison starts from.

Because rows are contiguous by group, then cluster, then block, each sum over rows, cells, clusters or
groups is one ``reduceat``, for all partners of a group at once: arrays are *partner × cell* and *partner ×
cluster*.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pytest_fairness.statistics.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The scored rows of a comparison, G groups (each with at least one row), H blocks, U cells, C clusters.

    A *cell* is one cluster of one group in one block. ``cell_*`` have length U, ``cluster_*`` length C (a
    cluster that stands in two groups counts twice; ``cluster_label`` is the same), ``*_start`` are offsets
    for reduceat. ``count`` is G × H. ``reference`` was subtracted from ``values``, so that equal constants
    cancel exactly.
    """

    values: Floats
    reference: float
    group_start: Ints
    cell_start: Ints
    cell_size: Floats
    cell_group: Ints
    cell_block: Ints
    cluster_start: Ints
    cluster_label: Ints
    cluster_group: Ints
    group_cell_start: Ints
    group_cluster_start: Ints
    count: Floats
    row_block: Ints
    own_rows: bool
    """Each row is its own cluster."""
    shared: bool
    """Some cluster stands in more than one group (one persona, swapped label)."""

    @property
    def groups(self) -> int:
        return int(self.count.shape[0])

    @property
    def blocks(self) -> int:
        return int(self.count.shape[1])

    @property
    def clusters(self) -> Ints:
        """Clusters of each group, length G."""
        return np.diff(self.group_cluster_start, append=self.cluster_start.size)

    @property
    def sizes(self) -> Floats:
        """Rows of each group, length G."""
        return np.asarray(self.count.sum(axis=1))

    @property
    def complete(self) -> bool:
        """Every group stands in every block."""
        return bool(np.all(self.count > 0))

    @property
    def cell_cluster(self) -> Ints:
        """The place of each cell's cluster, length U."""
        return np.repeat(np.arange(self.cluster_start.size), np.diff(self.cluster_start, append=self.cell_start.size))

    @property
    def cell_of_row(self) -> Ints:
        return np.repeat(np.arange(self.cell_start.size), self.cell_size.astype(np.intp))

    @property
    def row_group(self) -> Ints:
        return np.repeat(np.arange(self.groups), self.sizes.astype(np.intp))

    def rows_of(self, group: int) -> slice:
        """The rows of a group."""
        stop = self.group_start[group + 1] if group + 1 < self.groups else self.values.size
        return slice(int(self.group_start[group]), int(stop))

    def clusters_of(self, group: int) -> slice:
        """The clusters of a group."""
        last = group + 1 == self.groups
        stop = self.cluster_start.size if last else self.group_cluster_start[group + 1]
        return slice(int(self.group_cluster_start[group]), int(stop))

    def by_cell(self, rows: Floats) -> Floats:
        """Sums over the rows of each cell (last axis)."""
        return rows if self.cell_start.size == self.values.size else np.add.reduceat(rows, self.cell_start, axis=-1)

    def by_cluster(self, cells: Floats) -> Floats:
        """Sums over the cells of each cluster (last axis)."""
        same = self.cluster_start.size == self.cell_start.size
        return cells if same else np.add.reduceat(cells, self.cluster_start, axis=-1)

    def by_group(self, cells: Floats) -> Floats:
        """Sums over the cells of each group (last axis)."""
        return np.add.reduceat(cells, self.group_cell_start, axis=-1)

    def clusters_by_group(self, clusters: Floats) -> Floats:
        """Sums over the clusters of each group (last axis)."""
        return np.add.reduceat(clusters, self.group_cluster_start, axis=-1)


def lay_out(
    values: Floats, group: Ints, cluster: Ints, block: Ints, *, groups: int, blocks: int, own_rows: bool
) -> Layout:
    """Sort and count. *group* holds codes 0 … groups−1, all of which occur; *values* has no NaN, length n ≥
    1.
    """
    span = int(cluster.max()) + 1
    key = (group * span + cluster) * blocks + block
    if np.all(key[1:] >= key[:-1]):
        order: Ints | slice = slice(None)
    else:
        order = np.argsort(key)  # the order of a cell's repetitions is left open: it does not matter
    key, group, cluster, block, values = key[order], group[order], cluster[order], block[order], values[order]
    cell_start = _starts(key)
    cell_group, cell_block, cell_cluster = group[cell_start], block[cell_start], cluster[cell_start]
    cluster_start = _starts(cell_group * span + cell_cluster)
    cluster_group, cluster_label = cell_group[cluster_start], cell_cluster[cluster_start]
    reference = float(values[0])
    return Layout(
        values=values - reference,
        reference=reference,
        group_start=_starts(group),
        cell_start=cell_start,
        cell_size=np.diff(cell_start, append=values.size).astype(np.float64),
        cell_group=cell_group,
        cell_block=cell_block,
        cluster_start=cluster_start,
        cluster_label=cluster_label,
        cluster_group=cluster_group,
        group_cell_start=_starts(cell_group),
        group_cluster_start=_starts(cluster_group),
        count=np.bincount(group * blocks + block, minlength=groups * blocks).reshape(groups, blocks).astype(np.float64),
        row_block=block,
        own_rows=own_rows,
        shared=not own_rows and int(np.bincount(cluster_label).max()) > 1,
    )


def _starts(sorted_codes: Ints) -> Ints:
    changes = np.flatnonzero(sorted_codes[1:] != sorted_codes[:-1]) + 1
    return np.concatenate([np.zeros(1, dtype=np.intp), changes])


def identical_cells(layout: Layout) -> Bools:
    """Which cells hold one value only."""
    low = np.minimum.reduceat(layout.values, layout.cell_start)
    high = np.maximum.reduceat(layout.values, layout.cell_start)
    return np.asarray(low == high)


# ---------------------------------------------------------------- pair cells


def sums(at: Ints, values: Floats, size: int) -> Floats:
    """Sums of *values* by their codes *at*, one a code 0 … size−1."""
    return np.bincount(at, values, size).astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """All pairs of G groups, ``first`` < ``second`` in the order of the labels."""

    first: Ints
    second: Ints


@dataclass(frozen=True, kw_only=True)
class PairCells:
    """E cells in Q comparisons, sorted by comparison, side and unit; M units, S strata.

    ``comparison``, ``stratum``, ``side`` (0 or 1), ``unit``, ``cell`` (of the layout) and ``partner`` (the other
    group) have length E, as has ``size``, the rows of the cell. ``unit_comparison``, ``unit_side`` and ``unit_cluster``
    (of the layout) have length M, ``stratum_comparison`` and ``stratum_block`` length S, the groups ``first`` and
    ``second`` length Q. Where rows stand for themselves and few values occur, a cell stands for ``multiplicity`` rows
    alike, each a unit of its own.
    """

    layout: Layout
    first: Ints
    second: Ints
    comparison: Ints
    stratum: Ints
    side: Ints
    unit: Ints
    cell: Ints
    partner: Ints
    size: Floats
    multiplicity: Floats
    unit_comparison: Ints
    unit_side: Ints
    unit_cluster: Ints
    unit_multiplicity: Floats
    stratum_comparison: Ints
    stratum_block: Ints

    @property
    def comparisons(self) -> int:
        return int(self.first.size)

    # ---------------------------------------------------------------- sums

    def by_comparison(self, values: Floats) -> Floats:
        """Sums over the cells of each comparison (Q)."""
        return sums(self.comparison, values, self.comparisons)

    def by_stratum(self, values: Floats) -> Floats:
        """Sums over the cells of each stratum (S)."""
        return sums(self.stratum, values, self.stratum_comparison.size)

    def by_stratum_side(self, values: Floats) -> Floats:
        """Sums over the cells of each stratum and side (S × 2)."""
        strata = self.stratum_comparison.size
        return sums(2 * self.stratum + self.side, values, 2 * strata).reshape(strata, 2)

    def by_side(self, values: Floats) -> Floats:
        """Sums over the rows of each comparison and side, from one of each cell's rows that are alike (Q × 2)."""
        place = 2 * self.comparison + self.side
        return sums(place, values * self.multiplicity, 2 * self.comparisons).reshape(-1, 2)

    def by_unit(self, values: Floats) -> Floats:
        """Sums over the cells of each unit (M)."""
        if self.unit.size == self.unit_side.size:
            return values
        return sums(self.unit, values, self.unit_side.size)

    def strata_by_comparison(self, values: Floats) -> Floats:
        """Sums over the strata of each comparison (Q)."""
        return sums(self.stratum_comparison, values, self.comparisons)

    def units_by_side(self, values: Floats) -> Floats:
        """Sums over the units of each side of each comparison, each as often as it stands there (Q × 2)."""
        return sums(self.unit_place, values * self.unit_multiplicity, 2 * self.comparisons).reshape(-1, 2)

    @cached_property
    def unit_place(self) -> Ints:
        """Which side of which comparison each unit stands on, as 2 × comparison + side (M)."""
        return 2 * self.unit_comparison + self.unit_side

    # ---------------------------------------------------------------- counts

    @cached_property
    def rows(self) -> Floats:
        """Rows of each stratum and side (S × 2)."""
        return self.by_stratum_side(self.size * self.multiplicity)

    @cached_property
    def live(self) -> Bools:
        """Strata with rows on both sides (S)."""
        return np.asarray(self.rows.min(axis=1) > 0)

    def of_strata(self, table: Floats) -> Floats:
        """The sum over both sides of what *table* (G × H) holds of each live stratum (S)."""
        q, block = self.stratum_comparison, self.stratum_block
        return np.where(self.live, table[self.first[q], block] + table[self.second[q], block], 0.0)

    @cached_property
    def side_rows(self) -> Floats:
        """Rows of each comparison and side (Q × 2)."""
        return self.by_side(self.size)

    def one_row(self, values: Floats) -> Floats:
        """Sums over the cells of the layout (U) for each cell here (E); of one of its rows where they are alike."""
        here = values[self.cell]
        return here if not self.alike else here / self.layout.cell_size[self.cell]

    @property
    def alike(self) -> bool:
        """Whether cells stand for several rows, each a unit of its own."""
        return self.layout.own_rows and self.layout.cell_start.size < self.layout.values.size

    @cached_property
    def units(self) -> Floats:
        """Units of each comparison and side (Q × 2)."""
        return self.units_by_side(np.ones(self.unit_side.size))

    @cached_property
    def mate(self) -> Ints:
        """The unit of the same cluster on the other side of the comparison, −1 where there is none (M)."""
        mates = np.full(self.unit_side.size, -1, dtype=np.intp)
        if not self.layout.shared:
            return mates
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
        both = (self.mate >= 0) & (self.unit_side == 0)
        return np.bincount(self.unit_comparison[both], minlength=self.comparisons).astype(np.float64)

    @cached_property
    def paired(self) -> Bools:
        """Comparisons with the same clusters on both sides (Q)."""
        units = self.units
        return np.asarray((self.shared > 0) & (self.shared == units[:, 0]) & (self.shared == units[:, 1]))

    # ---------------------------------------------------------------- each stratum by itself

    def each_stratum(self, least_rows: int) -> tuple[PairCells, Ints]:
        """Every stratum as a comparison of its own, and which strata these are: those with enough rows on both
        sides."""
        kept = np.flatnonzero(self.rows.min(axis=1) >= least_rows)
        place = np.full(self.stratum_comparison.size, -1, dtype=np.intp)
        place[kept] = np.arange(kept.size)
        stratum = place[self.stratum]
        order = np.flatnonzero(stratum >= 0)
        order = order[np.argsort(2 * stratum[order] + self.side[order], kind="stable")]
        comparison = stratum[order]
        old = self.unit[order]
        return PairCells(
            layout=self.layout,
            first=self.first[self.stratum_comparison[kept]],
            second=self.second[self.stratum_comparison[kept]],
            comparison=comparison,
            stratum=comparison,
            side=self.side[order],
            unit=np.arange(order.size),
            cell=self.cell[order],
            partner=self.partner[order],
            size=self.size[order],
            multiplicity=self.multiplicity[order],
            unit_comparison=comparison,
            unit_side=self.side[order],
            unit_cluster=self.unit_cluster[old],
            unit_multiplicity=self.multiplicity[order],
            stratum_comparison=np.arange(kept.size),
            stratum_block=self.stratum_block[kept],
        ), kept


def pair_cells(layout: Layout, pairs: Pairs, *, alike: bool = False) -> PairCells:
    """The cells of *pairs* of groups. *alike*: a cell holds equal rows, each of which is a unit of its own."""
    count = pairs.first.size
    groups = np.stack([pairs.first, pairs.second], axis=1).ravel()
    others = np.stack([pairs.second, pairs.first], axis=1).ravel()
    lengths = np.diff(layout.group_cell_start, append=layout.cell_start.size)[groups]
    total = int(lengths.sum())
    place = np.repeat(np.arange(2 * count), lengths)
    offset = np.repeat(layout.group_cell_start[groups] - np.cumsum(lengths) + lengths, lengths)
    cell = np.arange(total) + offset
    block, partner = layout.cell_block[cell], others[place]
    if not layout.complete:
        kept = layout.count[partner, block] > 0
        place, cell, block, partner = place[kept], cell[kept], block[kept], partner[kept]
    blocks = layout.blocks
    comparison = place // 2
    cluster = layout.cell_cluster[cell]
    new = np.ones(cell.size, dtype=np.bool_)
    new[1:] = (cluster[1:] != cluster[:-1]) | (place[1:] != place[:-1])
    unit = np.cumsum(new) - 1
    size = layout.cell_size[cell]
    first = np.flatnonzero(new)
    multiplicity = size if alike else np.ones(size.size)
    return PairCells(
        layout=layout,
        first=pairs.first,
        second=pairs.second,
        comparison=comparison,
        stratum=comparison * blocks + block,
        side=place % 2,
        unit=unit,
        cell=cell,
        partner=partner,
        size=np.ones(size.size) if alike else size,
        multiplicity=multiplicity,
        unit_comparison=comparison[first],
        unit_side=(place % 2)[first],
        unit_cluster=cluster[first],
        unit_multiplicity=multiplicity[first],
        stratum_comparison=np.repeat(np.arange(count), blocks),
        stratum_block=np.tile(np.arange(blocks), count),
    )
