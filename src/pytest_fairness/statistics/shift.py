"""The Hodges–Lehmann shift: the median of all differences between a row of one group and a row of the
other.
"""

from __future__ import annotations

import numpy as np

from pytest_fairness.statistics.clusters import Pairs
from pytest_fairness.statistics.frames import Floats
from pytest_fairness.statistics.layout import Layout

EXACT_UP_TO = 2_000_000
"""Differences, over all pairs, that are enumerated; more are represented by order statistics."""
SKETCHED = 300_000


def hodges_lehmann(layout: Layout, pairs: Pairs) -> tuple[Floats, bool]:
    """Median of within-block differences of each pair, and whether it is exact.

    Exact up to ``EXACT_UP_TO`` differences over all pairs. Beyond, each group × block is represented by
    evenly spaced order statistics, as many as make ``SKETCHED`` differences; the error is small beside the
    standard error of the shift, which such numbers of rows make small. NaN for a pair without a common
    block.
    """
    i, j = pairs.first, pairs.second
    total = float(np.sum(layout.count[i] * layout.count[j]))
    exact = total <= EXACT_UP_TO
    cap = None if exact else max(int(np.sqrt(SKETCHED / max(i.size * layout.blocks, 1))), 8)
    same = bool(np.all(layout.count == layout.count.flat[0]))
    if same or (cap is not None and layout.complete):
        samples = _samples(layout, cap if cap is not None else int(layout.count.flat[0]))
        differences = samples[i][:, :, :, None] - samples[j][:, :, None, :]
        return np.median(differences.reshape(i.size, -1), axis=1), exact
    return _one_by_one(layout, pairs, cap), exact


def _samples(layout: Layout, points: int) -> Floats:
    """G × H × points values: all rows of each group × block, or evenly spaced order statistics of them."""
    ordered = _sorted(layout)
    size = layout.count.astype(np.intp).ravel()
    start = np.cumsum(size) - size
    if bool(np.all(size == points)):
        return np.asarray(ordered.reshape(layout.groups, layout.blocks, points))
    middle = (np.arange(points) + 0.5) / points
    at = start[:, None] + np.minimum((middle[None, :] * size[:, None]).astype(np.intp), size[:, None] - 1)
    return np.asarray(ordered[at].reshape(layout.groups, layout.blocks, points))


def _sorted(layout: Layout) -> Floats:
    """The values in ascending order within each group × block."""
    if layout.blocks == 1:
        return np.concatenate([np.sort(layout.values[layout.rows_of(g)]) for g in range(layout.groups)])
    return layout.values[np.lexsort((layout.values, layout.row_block, layout.row_group))]


def _one_by_one(layout: Layout, pairs: Pairs, cap: int | None) -> Floats:
    size = layout.count.astype(np.intp)
    split = np.split(_sorted(layout), np.cumsum(size.ravel())[:-1])
    if cap is not None:
        split = [rows if rows.size <= cap else rows[_spread(rows.size, cap)] for rows in split]
    h = layout.blocks
    shifts = np.full(pairs.first.size, np.nan)
    for p, (i, j) in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)):
        common = np.flatnonzero((size[i] > 0) & (size[j] > 0)).tolist()
        if common:
            parts = [(split[i * h + b][:, None] - split[j * h + b][None, :]).ravel() for b in common]
            shifts[p] = float(np.median(np.concatenate(parts)))
    return shifts


def _spread(size: int, points: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return ((np.arange(points) + 0.5) / points * size).astype(np.intp)
