"""Midranks of every pair of groups, without ranking every pair.

Within a block, the midrank of a row of group i among the rows of groups i and j together is
``P_i + P_j + 1/2``, where ``P_g`` counts the rows of group g below it, and half of those equal to it. So
one sort of all rows gives the ranks of all pairs: a histogram and a running sum a group, nothing a pair.
Ties enter through Σt³ = Σ(h_i + h_j)³, which expands into the same sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from pytest_fairness.statistics.frames import Floats, Ints
from pytest_fairness.statistics.layout import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSums:
    """``below[j, s]``: Σ over the rows of segment s (a cell, or a group) of P_j. ``cubes[i, j, h]``: Σ over
    levels of h_i²·h_j in block h, from which the tie term of a pair follows. ``ties`` is False if no two
    rows tie.
    """

    below: Floats
    cubes: Floats | None
    levels: Ints

    def tie_cubes(self, first: Ints, second: Ints, count: Floats) -> Floats:
        """Σt³ of each pair and block (P × H) over both groups; *count* is G × H."""
        if self.cubes is None:
            return np.asarray(count[first] + count[second])
        c = self.cubes
        return np.asarray(c[first, first] + 3 * c[first, second] + 3 * c[second, first] + c[second, second])


def rank_sums(layout: Layout, *, blocked: bool) -> RankSums:
    """One pass over the rows for all pairs; ranks within blocks, or over all rows (``blocked=False``).

    ``below`` is G × U (sums by cell) if blocked, else G × G (sums by group). Time O(n log n + G·n), memory
    O(G·U).
    """
    values, groups = layout.values, layout.groups
    blocked = blocked and layout.blocks > 1
    order = np.lexsort((values, layout.row_block)) if blocked else np.argsort(values, kind="stable")
    ordered = values[order]
    new = ordered[1:] != ordered[:-1]
    if blocked:
        in_order = layout.row_block[order]
        new |= in_order[1:] != in_order[:-1]
    level = np.empty(values.size, dtype=np.intp)
    level[order] = np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(new)])
    top = int(new.sum()) + 1
    tied = top < values.size
    blocks = layout.blocks if blocked else 1
    first_of_level = np.concatenate([np.zeros(1, dtype=np.intp), np.flatnonzero(new) + 1])
    block_of_level = in_order[first_of_level] if blocked else None
    count = layout.count if blocked else layout.sizes[:, None]
    before = np.cumsum(count, axis=1) - count  # rows of a group in earlier blocks

    by_cell = layout.blocks == 1 or blocked
    single = layout.cell_start.size == values.size
    below = np.empty((groups, layout.cell_start.size if by_cell else groups))
    cubes = np.empty((groups, groups, blocks)) if tied else None
    histograms = [np.bincount(level[layout.rows_of(g)], minlength=top) for g in range(groups)]
    if tied:
        own = np.empty(values.size)
        for g, histogram in enumerate(histograms):
            own[layout.rows_of(g)] = histogram[level[layout.rows_of(g)]]
        group_block = layout.row_group * blocks + (layout.row_block if blocked else 0)
    for g, histogram in enumerate(histograms):
        counts = histogram.astype(np.float64)
        lower = np.cumsum(counts) - counts / 2
        if block_of_level is not None:
            lower -= before[g][block_of_level]
        if by_cell and single:
            np.take(lower, level, out=below[g], mode="clip")
        else:
            rows = lower[level]
            below[g] = layout.by_cell(rows) if by_cell else np.add.reduceat(rows, layout.group_start)
        if cubes is not None:
            weights = own * counts[level]
            cubes[:, g] = np.bincount(group_block, weights, minlength=groups * blocks).reshape(groups, blocks)
    return RankSums(below=below, cubes=cubes, levels=np.bincount(level, minlength=top))


def kruskal_wallis(u: Floats, sizes: Floats, levels: Ints) -> tuple[float, int]:
    """H corrected for ties and its degrees of freedom, from pairwise ``U`` (G × G, row = partner).

    A group's rank sum over all rows is Σ_j U_j + n/2. H is 0 where all rows tie (scipy gives NaN).
    """
    n = float(sizes.sum())
    rank_sum = u.sum(axis=0) + sizes / 2
    statistic = 12 / (n * (n + 1)) * float(np.sum((rank_sum - sizes * (n + 1) / 2) ** 2 / sizes))
    t = levels.astype(np.float64)
    correction = 1 - float(np.sum(t**3 - t)) / max(n**3 - n, 1.0)
    return (statistic / correction if correction > 1e-12 else 0.0), sizes.size - 1


def mann_whitney(u: Floats, first: Ints, second: Ints, sizes: Floats, sums: RankSums) -> tuple[Floats, Floats]:
    """U of the first group and its two-sided asymptotic p with continuity correction, for each pair.

    ``u[j, i]`` = Σ over rows of group i of P_j. As ``scipy.stats.mannwhitneyu(method="asymptotic")``; p is
    1 where all rows of a pair tie.
    """
    n1, n2 = sizes[first], sizes[second]
    n = n1 + n2
    statistic = u[second, first]
    cubes = sums.tie_cubes(first, second, sizes[:, None])[:, 0] if sums.cubes is not None else n
    variance = n1 * n2 / (12 * n * np.maximum(n - 1, 1)) * (n**3 - cubes)
    spread = np.sqrt(np.where(variance > 1e-12 * n1 * n2 * n, variance, np.inf))
    z = (np.abs(statistic - n1 * n2 / 2) - 0.5) / spread
    return statistic, np.minimum(1.0, 2 * ndtr(-np.maximum(z, 0.0)))
