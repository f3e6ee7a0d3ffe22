"""One metric of an assertion: its scored rows laid out, compared, and padded to all groups of the family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.binary import compare_rates
from pytest_fairness.statistics.categorical import compare_categories
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.comparison import Comparison
from pytest_fairness.statistics.frames import Bools, Design, Floats, Ints
from pytest_fairness.statistics.layout import Layout, distinct_sizes, lay_out, without_copies
from pytest_fairness.statistics.numeric import compare_scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A comparison over the groups that have any scored row.

    ``present`` holds their codes, ``distinct`` and ``clusters`` (length G, all groups) what counts as
    evidence, ``index`` the position of each pair (of all groups) in the comparison, −1 where a group is
    empty.
    """

    kind: OutcomeKind
    layout: Layout | None
    present: Ints
    comparison: Comparison | None
    index: Ints
    distinct: Ints
    clusters: Ints
    copies_dropped: bool

    def column(self, values: Floats, missing: float) -> Floats:
        """A column of the comparison for all pairs, *missing* for those with an empty group."""
        if values.size == self.index.size:
            return values  # no group is empty
        padded = np.full(self.index.size, missing)
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
    codes = design.group.codes
    everything = bool(np.all(used))
    if not everything:
        codes = codes[used]
    present = np.flatnonzero(np.bincount(codes, minlength=groups) > 0)
    distinct, clusters = np.zeros(groups, dtype=np.intp), np.zeros(groups, dtype=np.intp)
    index = np.full(pairs.first.size, -1, dtype=np.intp)
    if present.size == 0:
        return Metric(
            kind=kind, layout=None, present=present, comparison=None, index=index,
            distinct=distinct, clusters=clusters, copies_dropped=False,
        )  # fmt: skip
    place = np.full(groups, -1, dtype=np.intp)
    place[present] = np.arange(present.size)
    layout = lay_out(
        values if everything else values[used],
        place[codes],
        design.cluster if everything else design.cluster[used],
        design.block if everything else design.block[used],
        groups=present.size,
        blocks=design.blocks,
        own_rows=design.cluster_name is None,
    )
    distinct[present] = distinct_sizes(layout)
    clusters[present] = layout.clusters
    single = without_copies(layout) if int(layout.clusters.min()) == 1 and not layout.own_rows else None
    comparison = None
    if present.size >= 2:
        compared = layout if single is None else single
        inner = all_pairs(present.size)
        if kind is OutcomeKind.CATEGORICAL:
            comparison = compare_categories(compared, inner, categories, seed)
        elif kind in (OutcomeKind.BINARY, OutcomeKind.REFUSAL):
            comparison = compare_rates(compared, inner)
        else:
            comparison = compare_scores(compared, inner, kind)
        table = np.full((groups, groups), -1, dtype=np.intp)
        table[present[inner.first], present[inner.second]] = np.arange(inner.first.size)
        index = table[pairs.first, pairs.second]
    return Metric(
        kind=kind, layout=layout, present=present, comparison=comparison, index=index,
        distinct=distinct, clusters=clusters, copies_dropped=single is not None,
    )  # fmt: skip
