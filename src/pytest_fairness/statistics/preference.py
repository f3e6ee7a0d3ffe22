"""Is one of two equal candidates chosen more often? The order of listing is a stratum, the name pair the
unit.

Averaging over both orders hides a preference where the position decides most choices: within an order it
shows. So the comparison is whether the first-listed candidate wins more often when it is A than when it is
B.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, ndtr

from pytest_fairness.statistics.arrays import Bools, Floats, Ints
from pytest_fairness.statistics.choices import FIRST, Choices, cross
from pytest_fairness.statistics.clusters import t_quantile, two_sided_t
from pytest_fairness.statistics.effects import LOGIT_TO_D
from pytest_fairness.statistics.two_way import cluster_means, two_way_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """A against B over *n* decided trials.

    ``wins`` are A's; ``rate`` is A's win rate with both orders weighing the same; ``error`` its standard
    error, the larger of rows and clusters, with ``df``. Two effects on the d scale, each with its 90 % interval:
    ``effect``, ``low``, ``high`` are logit(rate)·√3/π; ``within``, ``within_low``, ``within_high`` half the log odds
    ratio of *the first-listed won* between the two orders, which the position cannot hide (None where the order is not
    known; the two are equal where the position decides nothing). ``clusters`` are the name pairs, or the names of A and
    of B where those were given; with one of either, ``p_cluster`` is None, and ``copies`` of a cell that always repeats
    itself were dropped. ``lost`` is the share of trials in blocks that list the pair in one order only. ``first_share``
    is how often the first-listed one was chosen.
    """

    n: int
    copies: int
    wins: int
    rate: float
    error: float
    df: float
    z: float
    p_row: float
    p_cluster: float | None
    t: float | None
    binomial_p: float
    effect: float
    low: float
    high: float
    clusters: tuple[int, int]
    lost: float
    first_share: float | None
    within: float | None
    within_low: float | None
    within_high: float | None

    @property
    def p_value(self) -> float:
        return self.p_row if self.p_cluster is None else max(self.p_row, self.p_cluster)

    @property
    def one_cluster(self) -> bool:
        return min(self.clusters) < 2


def compare_pair(choices: Choices, a: int, b: int) -> Preference:
    """A (code *a*) against B over the decided trials between them.

    z = (W − n/2)/√(n·q(1−q)) with q the share won by the first-listed, for n/2 trials in each order; for
    other numbers the two-sample z on "the first-listed won", which is the same number there; over several
    blocks Cochran–Mantel–Haenszel. Where the order is not known q = ½.
    """
    between = ((choices.first == a) & (choices.second == b)) | ((choices.first == b) & (choices.second == a))
    rows = choices.take(between & choices.decided)
    a_first = rows.first == a
    a_won = (rows.outcome == FIRST) == a_first
    total = a_won.size
    usable = _usable(rows, a_first)
    lost = 1 - float(usable.mean()) if total else 0.0
    fewer = min(int(a_won.sum()), total - int(a_won.sum()))
    # The binomial test; importing scipy.stats for it would take a second.
    binomial = min(1.0, 2 * float(bdtr(fewer, total, 0.5))) if total else 1.0
    first_share = float(np.mean(rows.outcome == FIRST)) if total and choices.listed else None
    rows, a_first, a_won = rows.take(usable), a_first[usable], a_won[usable]
    clusters = _cluster_counts(rows, a_first)
    dropped = 0
    if rows.clusters and min(clusters) < 2:
        # Copies of one reply are no evidence, and without clusters nothing else would notice.
        kept = _without_copies(rows, a_first, a_won)
        dropped = int(np.sum(~kept))
        rows, a_first, a_won = rows.take(kept), a_first[kept], a_won[kept]
    n = a_won.size
    z, rate, error, expected = _by_order(rows, a_first, a_won)
    p_row = float(2 * ndtr(-abs(z)))
    p_cluster, t, cluster_error, df = None, None, 0.0, float(max(n - 1, 1))
    if rows.clusters and n:
        residual = a_won - expected
        mean, cluster_error, df = _cluster_mean(rows, a_first, residual)
        if min(clusters) >= 2:
            p_cluster = float(two_sided_t(np.array(mean), np.array(cluster_error), np.array(df)))
            t = mean / cluster_error if cluster_error else None
        else:
            cluster_error, df = 0.0, float(max(n - 1, 1))
    wins = int(a_won.sum())
    inflation = max(1.0, (cluster_error / error) ** 2) if error else 1.0
    error = max(error, cluster_error)
    low, effect, high = _on_d(rate, error, df, n)
    within = _within_order(rows, a_first, a_won, inflation, df) if rows.listed and n else (None, None, None)
    return Preference(
        n=n,
        copies=dropped,
        wins=wins,
        rate=rate,
        error=error,
        df=df,
        z=z,
        p_row=p_row,
        p_cluster=p_cluster,
        t=t,
        binomial_p=binomial,
        effect=effect,
        low=low,
        high=high,
        clusters=clusters,
        lost=lost,
        first_share=first_share,
        within=within[1],
        within_low=within[0],
        within_high=within[2],
    )


def _usable(rows: Choices, a_first: Bools) -> Bools:
    """Rows in blocks that list the pair in both orders; all where the order is not known."""
    if not rows.listed or not a_first.size:
        return np.ones(a_first.size, dtype=np.bool_)
    size = int(rows.block.max()) + 1
    ahead = np.bincount(rows.block[a_first], minlength=size)
    behind = np.bincount(rows.block[~a_first], minlength=size)
    return np.asarray(((ahead > 0) & (behind > 0))[rows.block])


def _by_order(rows: Choices, a_first: Bools, a_won: Bools) -> tuple[float, float, float, Floats]:
    """z, A's win rate with the orders weighing the same, its error, and each row's expected outcome under
    H0.
    """
    n = a_won.size
    if not n:
        return 0.0, 0.5, np.inf, np.zeros(0)
    if not rows.listed:
        rate = float(a_won.mean())
        smooth = (a_won.sum() + 0.5) / (n + 1)
        return (
            float((a_won.sum() - n / 2) / np.sqrt(n / 4)),
            rate,
            _root(smooth / n * (1 - smooth)),
            np.full(n, 0.5),
        )
    blocks, at = np.unique(rows.block, return_inverse=True)
    size = blocks.size
    n1 = np.bincount(at[a_first], minlength=size).astype(np.float64)
    n2 = np.bincount(at[~a_first], minlength=size).astype(np.float64)
    f1 = np.bincount(at[a_first & a_won], minlength=size) / n1
    f2 = np.bincount(at[~a_first & ~a_won], minlength=size) / n2
    q = (n1 * f1 + n2 * f2) / (n1 + n2)
    weight = n1 * n2 / (n1 + n2)
    # With one block the variance of the contract's formula; over many small ones only n − 1 is unbiased.
    shrink = np.ones(size) if size == 1 else (n1 + n2) / (n1 + n2 - 1)
    variance = float(np.sum(weight * q * (1 - q) * shrink))
    gap = f1 - f2
    z = float(np.sum(weight * gap)) / _root(variance) if variance > 0 else 0.0
    s1 = np.where((f1 > 0) & (f1 < 1), f1, (n1 * f1 + 0.5) / (n1 + 1))
    s2 = np.where((f2 > 0) & (f2 < 1), f2, (n2 * f2 + 0.5) / (n2 + 1))
    spread = weight**2 * (s1 * (1 - s1) / n1 + s2 * (1 - s2) / n2)
    total = float(weight.sum())
    half = (f1 + f2)[at] / 2
    expected = np.where(a_first, half, 1 - half)
    return z, 0.5 + float(np.sum(weight * gap)) / total / 2, _root(float(spread.sum())) / total / 2, expected


def _root(value: float) -> float:
    return float(np.sqrt(max(value, 0.0)))


def _within_order(
    rows: Choices, a_first: Bools, a_won: Bools, inflation: float, df: float
) -> tuple[float, float, float]:
    """Half the Mantel–Haenszel log odds ratio of *the first-listed won* between the two orders, on the d scale: lower
    bound, estimate and upper bound (90 %).

    SE ½·√(variance·deff), the variance that of Robins, Breslow & Greenland (1986), which is Woolf's where there is one
    block. Where a sum is 0 the blocks are pooled and ½ is added to all four cells.
    """
    first_won = a_won == a_first
    _, at = np.unique(rows.block, return_inverse=True)
    total = np.bincount(at).astype(np.float64)
    size = total.size
    a, b = np.bincount(at, a_first & first_won, size), np.bincount(at, a_first & ~first_won, size)
    c, d = np.bincount(at, ~a_first & first_won, size), np.bincount(at, ~a_first & ~first_won, size)
    r, s, p, q = a * d / total, b * c / total, (a + d) / total, (b + c) / total
    for_a, for_b = float(r.sum()), float(s.sum())
    if for_a == 0 or for_b == 0:
        cells = [float(cell.sum()) + 0.5 for cell in (a, b, c, d)]
        for_a, for_b = cells[0] * cells[3], cells[1] * cells[2]
        variance = sum(1 / cell for cell in cells)
    else:
        variance = float(
            (p * r).sum() / (2 * for_a**2)
            + (p * s + q * r).sum() / (2 * for_a * for_b)
            + (q * s).sum() / (2 * for_b**2)
        )
    effect = float(np.log(for_a / for_b)) / 2 * LOGIT_TO_D
    reach = float(t_quantile(df, 0.95)) * _root(variance * inflation) / 2 * LOGIT_TO_D
    return effect - reach, effect, effect + reach


def _cluster_counts(rows: Choices, a_first: Bools) -> tuple[int, int]:
    if not rows.clusters:
        return a_first.size, a_first.size
    if len(rows.clusters) == 1:
        count = np.unique(rows.clusters[0]).size
        return count, count
    of_a, of_b = _names(rows, a_first)
    return np.unique(of_a).size, np.unique(of_b).size


def _names(rows: Choices, a_first: Bools) -> tuple[Ints, Ints]:
    one, two = rows.clusters
    return np.where(a_first, one, two), np.where(a_first, two, one)


def _cluster_mean(rows: Choices, a_first: Bools, residual: Floats) -> tuple[float, float, float]:
    """Mean of cluster means of *residual*, its standard error, and df; with the names of both, by names."""
    if len(rows.clusters) == 1:
        mean, square, count = cluster_means(rows.clusters[0], residual)
        return mean, _root(square), float(count - 1)
    return two_way_mean(*_names(rows, a_first), residual)


def _without_copies(rows: Choices, a_first: Bools, a_won: Bools) -> Bools:
    """One row a cell, if every cell repeats itself exactly; else all rows."""
    n = a_won.size
    keep = np.ones(n, dtype=np.bool_)
    if not n:
        return keep
    cell = cross([rows.block, a_first.astype(np.intp), *rows.clusters], n)
    size, won = np.bincount(cell), np.bincount(cell, a_won)
    if np.all((won == 0) | (won == size)):
        keep[:] = False
        keep[np.unique(cell, return_index=True)[1]] = True
    return keep


def _on_d(rate: float, error: float, df: float, n: int) -> tuple[float, float, float]:
    """Lower bound, estimate and upper bound (90 %) of the win rate on the d scale; ±½ where it is 0 or 1."""
    if not n:
        return -np.inf, 0.0, np.inf
    p = rate if 0 < rate < 1 else (rate * n + 0.5) / (n + 1)
    logit = float(np.log(p / (1 - p)))
    reach = float(t_quantile(df, 0.95)) * error / (p * (1 - p))
    return (logit - reach) * LOGIT_TO_D, logit * LOGIT_TO_D, (logit + reach) * LOGIT_TO_D
