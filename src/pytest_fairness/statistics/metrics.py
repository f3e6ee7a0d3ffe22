"""One metric of an assertion: its scored rows laid out, compared, and padded to all groups of the family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.binary import compare_rates
from pytest_fairness.statistics.categorical import compare_categories
from pytest_fairness.statistics.clusters import NameParts, all_pairs
from pytest_fairness.statistics.comparison import Comparison, with_labels
from pytest_fairness.statistics.frames import Bools, Design, Floats, Ints
from pytest_fairness.statistics.layout import Layout, identical_cells, lay_out
from pytest_fairness.statistics.numeric import compare_scores
from pytest_fairness.statistics.pair_cells import Pairs

RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A comparison over the groups that have any scored row.

    ``present`` holds their codes, ``trials`` and ``clusters`` (length G, all groups) what counts as evidence, ``index``
    the position of each pair (of all groups) in the comparison, −1 where a group is empty. ``repeats`` says that
    repetitions are there and every one of every cell agrees; ``copies_dropped`` that repetitions with the same text
    count once, for a group has one cluster only.
    """

    kind: OutcomeKind
    layout: Layout | None
    present: Ints
    comparison: Comparison | None
    index: Ints
    trials: Ints
    clusters: Ints
    repeats: bool
    copies_dropped: bool

    def column(self, values: Floats, missing: float) -> Floats:
        """A column of the comparison for all pairs, *missing* for those with an empty group."""
        if values.shape[0] == self.index.size:
            return values  # no group is empty
        padded = np.full((self.index.size, *values.shape[1:]), missing)
        known = self.index >= 0
        padded[known] = values[self.index[known]]
        return padded

    @property
    def p_values(self) -> Floats:
        """The p-value of every pair; 1 where a group is empty."""
        if self.comparison is None:
            return np.ones(self.index.size)
        return self.column(self.comparison.p_value, 1.0)


def measure(
    design: Design, values: Floats, used: Bools, kind: OutcomeKind, *, categories: int = 0, seed: int = 0
) -> Metric:
    """Compare all pairs of groups on *values* (one a row of the design) over the rows that are *used*."""
    groups = len(design.group.labels)
    pairs = all_pairs(groups)
    rows = _Rows.of(design, values, used)
    present = np.flatnonzero(np.bincount(rows.group, minlength=groups) > 0)
    trials, clusters = np.zeros(groups, dtype=np.intp), np.zeros(groups, dtype=np.intp)
    index = np.full(pairs.first.size, -1, dtype=np.intp)
    layout = comparison = None
    repeats = dropped = False
    if present.size:
        rows = rows.among(present, groups)
        layout = rows.lay_out(own_rows=design.cluster_name is None)
        trials[present] = layout.sizes.astype(np.intp)
        clusters[present] = layout.clusters
        repeats = layout.cell_start.size < layout.values.size and bool(np.all(identical_cells(layout)))
    if layout is not None and present.size >= 2:
        inner = all_pairs(present.size)
        parts = _parts(design, layout)
        comparison = _compare(rows, layout, inner, kind, categories, seed, parts)
        if bool(comparison.labels.any()) and not layout.own_rows:
            single = rows.without_copies(layout, repeats=repeats)
            dropped = single is not rows
            by_row = _compare(single, single.lay_out(own_rows=True), inner, kind, categories, seed, None)
            comparison = with_labels(comparison, by_row, comparison.labels)
        table = np.full((groups, groups), -1, dtype=np.intp)
        table[present[inner.first], present[inner.second]] = np.arange(inner.first.size)
        index = table[pairs.first, pairs.second]
    return Metric(
        kind=kind,
        layout=layout,
        present=present,
        comparison=comparison,
        index=index,
        trials=trials,
        clusters=clusters,
        repeats=repeats,
        copies_dropped=dropped,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows that count: one entry each."""

    values: Floats
    group: Ints
    cluster: Ints
    block: Ints
    copy: Bools | None
    groups: int
    blocks: int

    @classmethod
    def of(cls, design: Design, values: Floats, used: Bools) -> _Rows:
        which = slice(None) if bool(np.all(used)) else used
        return cls(
            values=values[which],
            group=design.group.codes[which],
            cluster=design.cluster[which],
            block=design.block[which],
            copy=None if design.copy is None else design.copy[which],
            groups=len(design.group.labels),
            blocks=design.blocks,
        )

    def among(self, present: Ints, groups: int) -> _Rows:
        """The same with the groups that are *present* numbered from 0."""
        if present.size == groups:
            return self
        place = np.full(groups, -1, dtype=np.intp)
        place[present] = np.arange(present.size)
        return _Rows(
            values=self.values,
            group=place[self.group],
            cluster=self.cluster,
            block=self.block,
            copy=self.copy,
            groups=present.size,
            blocks=self.blocks,
        )

    def lay_out(self, *, own_rows: bool) -> Layout:
        """The rows sorted and counted; with *own_rows* each is its own cluster."""
        return lay_out(
            self.values,
            self.group,
            np.arange(self.values.size) if own_rows else self.cluster,
            self.block,
            groups=self.groups,
            blocks=self.blocks,
            own_rows=own_rows,
        )

    def lay_out_alike(self) -> Layout:
        """Equal rows of a group and block as one cell: where rows stand for themselves and few values occur."""
        levels, code = np.unique(self.values, return_inverse=True)
        del levels
        return lay_out(
            self.values,
            self.group,
            code * self.blocks + self.block,
            self.block,
            groups=self.groups,
            blocks=self.blocks,
            own_rows=True,
        )

    def without_copies(self, layout: Layout, *, repeats: bool) -> _Rows:
        """Copies of one text count once (a model at temperature 0): without clusters nothing else sees to that.

        Where the texts are not known, repetitions count once if every cell repeats its value exactly.
        """
        if self.copy is not None:
            kept = ~self.copy
            if bool(np.all(kept)):
                return self
            return _Rows(
                values=self.values[kept],
                group=self.group[kept],
                cluster=self.cluster[kept],
                block=self.block[kept],
                copy=None,
                groups=self.groups,
                blocks=self.blocks,
            )
        if not repeats:
            return self
        return _Rows(
            values=layout.values[layout.cell_start] + layout.reference,
            group=layout.cell_group,
            cluster=layout.cluster_label[layout.cell_cluster],
            block=layout.cell_block,
            copy=None,
            groups=self.groups,
            blocks=self.blocks,
        )


def _compare(
    rows: _Rows,
    layout: Layout,
    pairs: Pairs,
    kind: OutcomeKind,
    categories: int,
    seed: int,
    parts: NameParts | None,
) -> Comparison:
    if kind is OutcomeKind.CATEGORICAL:
        return compare_categories(layout, pairs, categories, seed)
    alike = layout.own_rows and kind in (*RATES, OutcomeKind.ORDINAL)
    if alike:
        layout = rows.lay_out_alike()
    if kind in RATES:
        return compare_rates(layout, pairs, parts, alike=alike)
    return compare_scores(layout, pairs, kind, parts, alike=alike)


def _parts(design: Design, layout: Layout) -> NameParts | None:
    """The parts of the clusters' names, where any of them recurs within a group."""
    if not design.parts:
        return None
    codes = tuple(part.codes[layout.cluster_label] for part in design.parts)
    for own in codes:
        key = layout.cluster_group * (int(own.max()) + 1) + own
        if np.unique(key).size < key.size:
            return NameParts(codes=codes, labels=tuple(len(part.labels) for part in design.parts))
    return None
