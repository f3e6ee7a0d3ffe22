"""Rows sorted by group, cluster and block, with the sums that every comparison starts from.

Because rows are contiguous by group, then cluster, then block, each sum over rows, cells, clusters or
groups is one ``reduceat``, for all partners of a group at once: arrays are *partner × cell* and *partner ×
cluster*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_fairness.statistics.frames import Bools, Floats, Ints


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
    def row_group(self) -> Ints:
        return np.repeat(np.arange(self.groups), self.sizes.astype(np.intp))

    def rows_of(self, group: int) -> slice:
        """The rows of a group."""
        stop = self.group_start[group + 1] if group + 1 < self.groups else self.values.size
        return slice(int(self.group_start[group]), int(stop))

    def cells_of(self, group: int) -> slice:
        """The cells of a group."""
        last = group + 1 == self.groups
        stop = self.cell_start.size if last else self.group_cell_start[group + 1]
        return slice(int(self.group_cell_start[group]), int(stop))

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
