"""Midranks of every pair of groups, without ranking every pair.

Within a block, the midrank of a row of group i among the rows of groups i and j together is ``P_i +
P_j + 1/2``, where ``P_g`` counts the rows of group g below it, and half of those equal to it. So
one sort of all rows gives the ranks of all pairs: a histogram and a running sum a group, nothing a
pair. Ties enter through Σt³ = Σ(h_i + h_j)³, which expands into the same sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from pytest_fairness.statistics.arrays import Floats, Ints, sums
from pytest_fairness.statistics.layout import Layout, Pairs


class RankSums(NamedTuple):
    """``below[j, s]``: Σ over the rows of segment s (a cell, or a group) of P_j − n_j/2, where n_j
    counts the rows of group j in the block. ``cubes[i, j, h]``: Σ over levels of h_i²·h_j in block
    h, from which the tie term of a pair follows; ``None`` if no two rows tie. ``levels``: rows of
    each distinct value."""

    below: Floats
    cubes: Floats | None
    levels: Floats

    def tie_cubes(self, first: Ints, second: Ints, count: Floats) -> Floats:
        """Σt³ of each pair and block (P × H) over both groups; *count* is G × H."""
        if self.cubes is None:
            return np.asarray(count[first] + count[second])
        c = self.cubes
        return np.asarray(
            c[first, first] + 3 * c[first, second] + 3 * c[second, first] + c[second, second]
        )


def ascending_within(order: Ints, codes: Ints) -> Ints:
    """*order*, an ascending order of rows, regrouped by the rows' *codes*; linear for codes under
    65,536.
    """
    regrouped = codes[order]
    if regrouped.size and int(regrouped.max()) < 2**16:
        return order[np.argsort(regrouped.astype(np.uint16), kind="stable")]
    return order[np.argsort(regrouped, kind="stable")]


def rank_sums(layout: Layout, order: Ints, *, blocked: bool) -> RankSums:
    """One pass over the rows for all pairs; ranks within blocks, or over all rows
    (``blocked=False``).

    *order* sorts the rows by value, ties anyhow. ``below`` is G × U (sums by cell) if blocked, else
    G × G (sums by group). Time O(G·n), memory O(G·U).
    """
    groups = layout.groups
    size = layout.values.size
    blocks = 1
    if blocked:
        blocks = layout.blocks
    count = layout.sizes[:, None]
    block_of_row = np.zeros(size, dtype=np.intp)
    if blocks > 1:
        count = layout.count
        block_of_row = layout.row_block
        order = ascending_within(order, block_of_row)
    level, block_of_level = _levels(layout.values[order], block_of_row[order], order)
    top = block_of_level.size
    # Of a group's rows in a block, counted from the first block.
    middle = np.cumsum(count, axis=1) - count / 2

    by_cell = layout.blocks == 1 or blocks > 1
    starts = layout.group_start
    if by_cell:
        starts = layout.cell_start
    below = np.empty((groups, starts.size))
    for g, whole in enumerate(_below_each_level(layout, level, top, order)):
        if blocks > 1:
            lower = whole - middle[g][block_of_level]
        else:
            lower = whole - middle[g, 0]
        if starts.size == size and layout.weight is None:
            np.take(lower, level, out=below[g], mode="clip")
        elif by_cell:
            below[g] = layout.by_cell(lower[level])
        else:
            below[g] = np.add.reduceat(layout.weighted(lower[level]), starts)
    cubes = None
    if top < layout.sizes.sum():
        cubes = _cubes(layout, level, top, blocks)
    return RankSums(below, cubes, sums(level, layout.weight, top))


def _below_each_level(layout: Layout, level: Ints, top: int, order: Ints) -> Iterator[Floats]:
    """Yield of each group how many of its rows are below each level, half of those equal to it."""
    if layout.weight is None:
        ladder = np.split(level[ascending_within(order, layout.row_group)], layout.group_start[1:])
        halves = np.arange(int(layout.sizes.max()) + 1) / 2
        for levels in ladder:
            yield _below(levels, top, halves)
        return
    by_group = (np.split(of_rows, layout.group_start[1:]) for of_rows in (level, layout.weight))
    for levels, alike in zip(*by_group, strict=True):
        held = sums(levels, alike, top)
        yield np.cumsum(held) - held / 2


def _levels(ordered: Floats, block: Ints, order: Ints) -> tuple[Ints, Ints]:
    """The level of each row, counted over the distinct values of the *ordered* rows within each
    *block* of theirs, and the block of each level."""
    new = (ordered[1:] != ordered[:-1]) | (block[1:] != block[:-1])
    level = np.empty(order.size, dtype=np.intp)
    level[order] = np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(new)])
    first_of_level = np.concatenate([np.zeros(1, dtype=np.intp), np.flatnonzero(new) + 1])
    return level, block[first_of_level]


def _below(levels: Ints, top: int, halves: Floats) -> Floats:
    """Return how many of the *levels* (ascending, under *top*) are below each level 0 … top−1, half
    of those equal to it.

    The mean of the count before a level and the count after it, written as runs of *halves* (0, ½,
    1, …): a running sum over a histogram would be several times slower.
    """
    runs = np.empty(levels.size + 1, dtype=np.intp)
    runs[0], runs[-1] = levels[0] + 1, top - levels[-1]
    np.subtract(levels[1:], levels[:-1], out=runs[1:-1])
    reached = np.repeat(halves[: runs.size], runs)
    return np.asarray(reached[:-1] + reached[1:])


def _cubes(layout: Layout, level: Ints, top: int, blocks: int) -> Floats:
    """Σ over levels of h_i²·h_j in each block (G × G × *blocks*; one block for all rows if 1)."""
    groups = layout.groups
    by_group = np.split(level, layout.group_start[1:])
    alike = np.split(layout.alike, layout.group_start[1:])
    histograms = [sums(*held, top) for held in zip(by_group, alike, strict=True)]
    cube = np.concatenate(
        [histogram[levels] for histogram, levels in zip(histograms, by_group, strict=True)]
    )
    place = layout.row_group * blocks
    if blocks > 1:
        place = place + layout.row_block
    cubes = np.empty((groups, groups, blocks))
    for g, histogram in enumerate(histograms):
        weights = layout.weighted(cube * histogram[level])
        cubes[:, g] = np.bincount(place, weights, minlength=groups * blocks).reshape(groups, blocks)
    return cubes


def kruskal_wallis(u: Floats, sizes: Floats, levels: Floats) -> tuple[float, int]:
    """H corrected for ties and its degrees of freedom, from pairwise ``U`` (G × G, row = partner).

    A group's rank sum over all rows is Σ_j U_j + n/2. H is 0 where all rows tie (scipy gives NaN).
    """
    n = float(sizes.sum())
    rank_sum = u.sum(axis=0) + sizes / 2
    statistic = 12 / (n * (n + 1)) * float(np.sum((rank_sum - sizes * (n + 1) / 2) ** 2 / sizes))
    correction = 1 - float(np.sum(levels**3 - levels)) / max(n**3 - n, 1.0)
    if correction > 1e-12:
        return statistic / correction, sizes.size - 1
    return 0.0, sizes.size - 1


def mann_whitney(
    u: Floats, first: Ints, second: Ints, sizes: Floats, sums: RankSums
) -> tuple[Floats, Floats]:
    """U of the first group and its two-sided asymptotic p with continuity correction, for each
    pair.

    ``u[j, i]`` = Σ over rows of group i of P_j. As
    ``scipy.stats.mannwhitneyu(method="asymptotic")``; p is 1 where all rows of a pair tie.
    """
    n1 = sizes[first]
    n2 = sizes[second]
    n = n1 + n2
    statistic = u[second, first]
    cubes = n
    if sums.cubes is not None:
        cubes = sums.tie_cubes(first, second, sizes[:, None])[:, 0]
    variance = n1 * n2 / (12 * n * np.maximum(n - 1, 1)) * (n**3 - cubes)
    spread = np.sqrt(np.where(variance > 1e-12 * n1 * n2 * n, variance, np.inf))
    z = (np.abs(statistic - n1 * n2 / 2) - 0.5) / spread
    return statistic, np.minimum(1.0, 2 * ndtr(-np.maximum(z, 0.0)))


EXACT_UP_TO = 2_000_000
"""Differences, over all pairs, that are enumerated; more are represented by order statistics."""
SKETCHED = 300_000


def hodges_lehmann(layout: Layout, pairs: Pairs, order: Ints) -> tuple[Floats, bool]:
    """Median of within-block differences of each pair, and whether it is exact; *order* sorts the
    rows by value.

    Exact up to ``EXACT_UP_TO`` differences over all pairs. Beyond, each group × block is
    represented by evenly spaced order statistics, as many as make ``SKETCHED`` differences; the
    error is small beside the standard error of the shift, which such numbers of rows make small.
    NaN for a pair without a common block.
    """
    i = pairs.first
    j = pairs.second
    h = layout.blocks
    exact = float(np.sum(layout.count[i] * layout.count[j])) <= EXACT_UP_TO
    cap = None
    if not exact:
        cap = max(int(np.sqrt(SKETCHED / max(i.size * h, 1))), 8)
    split = _order_statistics(layout, order, cap)
    if len({rows.size for rows in split}) == 1:
        samples = np.stack(split).reshape(*layout.count.shape, -1)
        differences = samples[i][:, :, :, None] - samples[j][:, :, None, :]
        return medians_in_place(differences.reshape(i.size, -1)), exact
    shifts = np.full(i.size, np.nan)
    for p, (first, two) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
        parts = [
            np.subtract.outer(split[first * h + b], split[two * h + b]).ravel() for b in range(h)
        ]
        if any(part.size for part in parts):
            shifts[p] = float(medians_in_place(np.concatenate(parts)[None, :])[0])
    return shifts, exact


def _order_statistics(layout: Layout, order: Ints, cap: int | None) -> list[Floats]:
    """Return the values of each group × block, ascending; of each that has any so many as *cap*,
    evenly spaced.
    """
    ascending = ascending_within(order, layout.row_group * layout.blocks + layout.row_block)
    ordered = layout.values[ascending]
    reached = np.cumsum(layout.alike[ascending])
    sizes = layout.count.astype(np.intp).ravel()
    values = []
    for start, rows in zip(np.cumsum(sizes) - sizes, sizes, strict=True):
        ranks = np.arange(rows)
        if cap is not None and rows:
            ranks = ((np.arange(cap) + 0.5) / cap * rows).astype(np.intp)
        values.append(ordered[np.searchsorted(reached, start + ranks, side="right")])
    return values


def medians_in_place(table: Floats) -> Floats:
    """The median of each row of *table* (P × m, m ≥ 1, no NaN), whose rows are left in another
    order.
    """
    # One selection of the middle: np.median also looks for NaN, and copies.
    middle, odd = divmod(table.shape[1], 2)
    if odd:
        table.partition(middle, axis=1)
        return table[:, middle].copy()
    table.partition((middle - 1, middle), axis=1)
    return np.asarray((table[:, middle - 1] + table[:, middle]) / 2)
