"""The Hodges–Lehmann shift: the median of all differences between a row of one group and a row of the
other.
"""

from __future__ import annotations

import numpy as np

from pytest_fairness.statistics.frames import Floats, Ints
from pytest_fairness.statistics.layout import Layout
from pytest_fairness.statistics.pair_cells import Pairs
from pytest_fairness.statistics.ranks import ascending_within

EXACT_UP_TO = 2_000_000
"""Differences, over all pairs, that are enumerated; more are represented by order statistics."""
SKETCHED = 300_000


def hodges_lehmann(layout: Layout, pairs: Pairs, order: Ints) -> tuple[Floats, bool]:
    """Median of within-block differences of each pair, and whether it is exact; *order* sorts the rows by value.

    Exact up to ``EXACT_UP_TO`` differences over all pairs. Beyond, each group × block is represented by
    evenly spaced order statistics, as many as make ``SKETCHED`` differences; the error is small beside the
    standard error of the shift, which such numbers of rows make small. NaN for a pair without a common
    block.
    """
    i, j = pairs.first, pairs.second
    total = float(np.sum(layout.count[i] * layout.count[j]))
    exact = total <= EXACT_UP_TO
    cap = None if exact else max(int(np.sqrt(SKETCHED / max(i.size * layout.blocks, 1))), 8)
    ordered = layout.values[ascending_within(order, _place(layout))]
    same = bool(np.all(layout.count == layout.count.flat[0]))
    if same or (cap is not None and layout.complete):
        samples = _samples(layout, ordered, cap if cap is not None else int(layout.count.flat[0]))
        differences = samples[i][:, :, :, None] - samples[j][:, :, None, :]
        return medians_in_place(differences.reshape(i.size, -1)), exact
    return _one_by_one(layout, ordered, pairs, cap), exact


def medians_in_place(table: Floats) -> Floats:
    """The median of each row of *table* (P × m, m ≥ 1, no NaN), whose rows are left in another order.

    One selection of the middle: ``np.median`` also looks for NaN, and copies.
    """
    middle, odd = divmod(table.shape[1], 2)
    if odd:
        table.partition(middle, axis=1)
        return table[:, middle].copy()
    table.partition((middle - 1, middle), axis=1)
    return np.asarray((table[:, middle - 1] + table[:, middle]) / 2)


def _place(layout: Layout) -> Ints:
    """Where each row stands: its group × block."""
    return layout.row_group if layout.blocks == 1 else layout.row_group * layout.blocks + layout.row_block


def _samples(layout: Layout, ordered: Floats, points: int) -> Floats:
    """G × H × points values: all rows of each group × block, or evenly spaced order statistics of them."""
    size = layout.count.astype(np.intp).ravel()
    start = np.cumsum(size) - size
    if bool(np.all(size == points)):
        return np.asarray(ordered.reshape(layout.groups, layout.blocks, points))
    middle = (np.arange(points) + 0.5) / points
    at = start[:, None] + np.minimum((middle[None, :] * size[:, None]).astype(np.intp), size[:, None] - 1)
    return np.asarray(ordered[at].reshape(layout.groups, layout.blocks, points))


def _one_by_one(layout: Layout, ordered: Floats, pairs: Pairs, cap: int | None) -> Floats:
    size = layout.count.astype(np.intp)
    split = np.split(ordered, np.cumsum(size.ravel())[:-1])
    if cap is not None:
        split = [rows if rows.size <= cap else rows[_spread(rows.size, cap)] for rows in split]
    h = layout.blocks
    shifts = np.full(pairs.first.size, np.nan)
    for p, (i, j) in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)):
        common = np.flatnonzero((size[i] > 0) & (size[j] > 0)).tolist()
        if common:
            parts = [(split[i * h + b][:, None] - split[j * h + b][None, :]).ravel() for b in common]
            shifts[p] = float(medians_in_place(np.concatenate(parts)[None, :])[0])
    return shifts


def _spread(size: int, points: int) -> Ints:
    return ((np.arange(points) + 0.5) / points * size).astype(np.intp)
