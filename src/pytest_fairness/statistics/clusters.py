"""The name is the unit of evidence: contrasts of cluster means, intraclass correlation, design effects.

Repeated calls for one name share whatever the model makes of that name, so they are not independent; a test
on calls finds differences between any two sets of names. Every contrast here weighs each cluster the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import stdtr, stdtrit

from pytest_fairness.statistics.frames import Bools, Floats, Ints
from pytest_fairness.statistics.layout import Layout

TINY = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """All pairs of G groups, ``first`` < ``second`` in the order of the labels."""

    first: Ints
    second: Ints


@lru_cache(maxsize=64)
def all_pairs(groups: int) -> Pairs:
    """Every pair of so many groups; read-only, for it is handed out again."""
    sides = [side.astype(np.intp) for side in np.triu_indices(groups, 1)]
    for side in sides:
        side.flags.writeable = False
    return Pairs(first=sides[0], second=sides[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Difference of the two groups' means of cluster means, for each pair (length P).

    ``mean_1``/``mean_2``, ``variance_1``/``variance_2`` (of the cluster means, ddof 1; 0 where there is
    one) and ``clusters_1``/``clusters_2`` describe the groups; ``error`` is the standard error, NaN where a
    group has one cluster; ``df`` the degrees of freedom of the test, ``interval_df`` those of intervals.
    ``paired`` marks pairs with the same clusters on both sides.
    """

    mean_1: Floats
    mean_2: Floats
    variance_1: Floats
    variance_2: Floats
    clusters_1: Floats
    clusters_2: Floats
    error: Floats
    df: Floats
    interval_df: Floats
    paired: Bools

    @property
    def difference(self) -> Floats:
        return self.mean_1 - self.mean_2

    @property
    def usable(self) -> Bools:
        """Both groups have at least two clusters."""
        return np.minimum(self.clusters_1, self.clusters_2) >= 2

    def p_value(self) -> Floats:
        """Two-sided p of each pair; 1 or 0 where the standard error is 0; NaN where a group has one
        cluster.
        """
        return two_sided_t(self.difference, self.error, self.df)


def two_sided_t(difference: Floats, error: Floats, df: Floats) -> Floats:
    """2·P(T > |difference/error|); where the error is 0: 1 for no difference, else 0. NaN errors stay NaN."""
    zero = error == 0
    t = np.abs(difference) / np.where(zero | np.isnan(error), 1.0, error)
    p = np.minimum(2 * stdtr(np.maximum(np.nan_to_num(df, nan=1.0), 1e-9), -t), 1.0)
    p = np.where(zero, np.where(difference == 0, 1.0, 0.0), p)
    return np.where(np.isnan(error), np.nan, p)


def t_quantile(df: Floats, q: float) -> Floats:
    """Quantile *q* of Student's t; infinite below one degree of freedom.

    Few degrees of freedom differ in a balanced design, and each quantile is a search: each is made once.
    """
    distinct, at = np.unique(df, return_inverse=True)
    quantile = np.where(distinct >= 1, stdtrit(np.maximum(distinct, 1.0), q), np.inf)
    return np.asarray(quantile[at].reshape(np.shape(df)))


def partner_sizes(layout: Layout) -> Floats | None:
    """Rows of each cell that count towards each partner (G × U): 0 in blocks that the partner lacks.

    ``None`` where every group stands in every block and the sizes are those of the cells.
    """
    if layout.complete:
        return None
    return np.asarray(layout.cell_size * (layout.count[:, layout.cell_block] > 0))


def cluster_means(layout: Layout, cells: Floats, sizes: Floats | None) -> tuple[Floats, Floats]:
    """Means over the rows of each cluster towards each partner (G × C), and the rows behind them.

    *cells* are sums over cells (G × U), 0 where *sizes* is 0; a cluster without rows has mean 0.
    """
    rows = layout.by_cluster(layout.cell_size[None, :] if sizes is None else sizes)
    if layout.cluster_start.size == layout.values.size:
        return cells, rows  # one row each: its value is its mean
    return layout.by_cluster(cells) / np.maximum(rows, 1.0), rows


def contrast(layout: Layout, pairs: Pairs, means: Floats, rows: Floats, scale: float) -> Contrast:
    """Contrast the cluster *means* of each pair (G × C, see :func:`cluster_means`; 1 × C if alike for all
    partners).

    Equal numbers of clusters: Student's t, df 2K−2. Unequal: SE² = s₁²/K₁ + s₂²/K₂, df of
    Welch–Satterthwaite if the smaller K ≥ 5, else min(K)−1. The same clusters on both sides: one-sample t
    on the differences, df K−1. Partly the same: the partially overlapping samples t-test (Derrick, Russ,
    Toher & White 2017, J. Mod. Appl. Stat. Methods 16(1)), of which both are limits. Differences under
    *scale* · 1e−12 are rounding and count as 0.
    """
    i, j = pairs.first, pairs.second
    k, mean, variance = _by_group(layout, means, rows)
    variance = np.where(variance < (TINY * scale) ** 2, 0.0, variance)
    k1, k2, v1, v2 = k[j, i], k[i, j], variance[j, i], variance[i, j]
    m1, m2 = mean[j, i], mean[i, j]
    m2 = np.where(np.abs(m1 - m2) < TINY * scale, m1, m2)
    a, b = v1 / np.maximum(k1, 1.0), v2 / np.maximum(k2, 1.0)
    square, df, interval_df = a + b, k1 + k2 - 2, k1 + k2 - 2
    unequal = k1 != k2
    if bool(np.any(unequal)):
        df = np.where(unequal, _unequal_df(a, b, k1, k2), df)
    paired = np.zeros(i.size, dtype=np.bool_)
    if layout.shared:
        for p in range(i.size):
            shared = _shared(layout, means, rows, int(i[p]), int(j[p]))
            if shared is None:
                continue
            x, y = shared
            n, na, nb = x.size, float(k1[p]) - x.size, float(k2[p]) - x.size
            if na == nb == 0:
                d = x - y
                square[p] = float(np.var(d, ddof=1)) / n if n > 1 else np.nan
                df[p] = interval_df[p] = n - 1
                paired[p] = True
            elif n >= 2:
                covariance = float(np.cov(x, y)[0, 1])
                square[p] = max(square[p] - 2 * n * covariance / (k1[p] * k2[p]), 0.0)
                welch = float(_welch(a[p : p + 1], b[p : p + 1], k1[p : p + 1], k2[p : p + 1])[0])
                df[p] = interval_df[p] = (n - 1) + (welch - n + 1) / (na + nb + 2 * n) * (na + nb)
        square = np.where(square < (TINY * scale) ** 2, 0.0, square)
    error = np.where(np.minimum(k1, k2) >= 2, np.sqrt(square), np.nan)
    return Contrast(
        mean_1=m1, mean_2=m2, variance_1=v1, variance_2=v2, clusters_1=k1, clusters_2=k2,
        error=error, df=df, interval_df=interval_df, paired=paired,
    )  # fmt: skip


def _by_group(layout: Layout, means: Floats, rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Number, mean and variance (ddof 1) of the cluster means of each group towards each partner (G × G)."""
    groups = layout.groups
    if bool(np.all(rows > 0)):
        k = np.broadcast_to(layout.clusters.astype(np.float64), (means.shape[0], groups))
        mean = layout.clusters_by_group(means) / k
        squares = _squared_deviations(layout, means, mean, None)
    else:
        present = np.broadcast_to(rows > 0, means.shape).astype(np.float64)
        k = layout.clusters_by_group(present)
        mean = layout.clusters_by_group(means * present) / np.maximum(k, 1.0)
        squares = _squared_deviations(layout, means, mean, present)
    variance = squares / np.maximum(k - 1, 1.0)
    whole = (groups, groups)
    return np.broadcast_to(k, whole), np.broadcast_to(mean, whole), np.broadcast_to(variance, whole)


def _squared_deviations(layout: Layout, means: Floats, centre: Floats, present: Floats | None) -> Floats:
    """Σ(mean − centre)² over the clusters of each group (as *centre*), those *present* only.

    Where there are partners, group by group: the clusters of a group lie together, and no temporary as large as
    *means* leaves the cache.
    """
    if means.shape[0] == 1:
        deviation = means - centre[:, layout.cluster_group]
        return layout.clusters_by_group(deviation**2 if present is None else deviation**2 * present)
    squares = np.empty(centre.shape)
    for g in range(layout.groups):
        here = layout.clusters_of(g)
        deviation = means[:, here] - centre[:, g, None]
        if present is not None:
            deviation *= present[:, here]
        np.einsum("pc,pc->p", deviation, deviation, out=squares[:, g])
    return squares


def _welch(a: Floats, b: Floats, k1: Floats, k2: Floats) -> Floats:
    """Welch–Satterthwaite; K₁+K₂−2 where neither side varies."""
    bottom = a**2 / np.maximum(k1 - 1, 1.0) + b**2 / np.maximum(k2 - 1, 1.0)
    return np.where(bottom > 0, (a + b) ** 2 / np.where(bottom > 0, bottom, 1.0), k1 + k2 - 2)


def _unequal_df(a: Floats, b: Floats, k1: Floats, k2: Floats) -> Floats:
    smaller = np.minimum(k1, k2)
    return np.where(smaller >= 5, _welch(a, b, k1, k2), smaller - 1)


def _shared(layout: Layout, means: Floats, rows: Floats, i: int, j: int) -> tuple[Floats, Floats] | None:
    """Means of the clusters that stand in both groups, in the same order; ``None`` if there are none."""
    at_i, at_j = layout.clusters_of(i), layout.clusters_of(j)
    rows_i, rows_j = (rows[0], rows[0]) if rows.shape[0] == 1 else (rows[j], rows[i])
    in_i, in_j = rows_i[at_i] > 0, rows_j[at_j] > 0
    label_i, label_j = layout.cluster_label[at_i][in_i], layout.cluster_label[at_j][in_j]
    _, x, y = np.intersect1d(label_i, label_j, assume_unique=True, return_indices=True)
    if x.size == 0:
        return None
    towards_j, towards_i = (means[0], means[0]) if means.shape[0] == 1 else (means[j], means[i])
    return towards_j[at_i][in_i][x], towards_i[at_j][in_j][y]


def intraclass(
    layout: Layout, cells_within: Floats, cells: Floats, sizes: Floats | None, pairs: Pairs
) -> tuple[Floats, Floats, Floats, Floats]:
    """ANOVA intraclass correlation of each group of each pair, and mean rows a cluster (each length P).

    *cells_within* are sums of squares of a cell's rows about 0 (G × U), *cells* sums of the same values (G
    × U). ICC = (MSB − MSW)/(MSB + (n₀−1)·MSW) with n₀ = (N − Σn_c²/N)/(K−1) (Donner 1986); NaN where a
    group has one cluster or no cluster has two rows.
    """
    means, rows = cluster_means(layout, cells, sizes)
    within = layout.clusters_by_group(layout.by_cluster(cells_within) - rows * means**2)
    total = layout.clusters_by_group(np.broadcast_to(rows, means.shape))
    squares = layout.clusters_by_group(np.broadcast_to(rows**2, means.shape))
    k = layout.clusters_by_group(np.broadcast_to((rows > 0).astype(np.float64), means.shape))
    grand = layout.clusters_by_group(rows * means) / np.maximum(total, 1.0)
    between = layout.clusters_by_group(rows * (means - grand[:, layout.cluster_group]) ** 2)
    known = (k >= 2) & (total > k)
    msb = between / np.maximum(k - 1, 1.0)
    msw = np.maximum(within, 0.0) / np.maximum(total - k, 1.0)
    n0 = (total - squares / np.maximum(total, 1.0)) / np.maximum(k - 1, 1.0)
    bottom = msb + (n0 - 1) * msw
    known &= bottom > 0
    icc = np.where(known, (msb - msw) / np.where(known, bottom, 1.0), np.nan)
    whole = (layout.groups, layout.groups)
    icc, per = np.broadcast_to(icc, whole), np.broadcast_to(total / np.maximum(k, 1.0), whole)
    i, j = pairs.first, pairs.second
    return icc[j, i], icc[i, j], per[j, i], per[i, j]
