"""Is one of two equal candidates chosen more often? The order of listing is a stratum, the name pair the unit.

Averaging over both orders hides a preference where the position decides most choices: within an order it
shows. So the comparison is whether the first-listed candidate wins more often when it is A than when it is
B. Beside it stand the χ² tests of all groups together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, chdtrc, ndtr

from pytest_fairness.statistics.arrays import Bools, Floats, Ints
from pytest_fairness.statistics.choices import FIRST, Choices, cross
from pytest_fairness.statistics.clusters import t_quantile, two_sided_t
from pytest_fairness.statistics.effects import LOGIT_TO_D
from pytest_fairness.statistics.proportions import wilson

Z_95 = 1.959963984540054


class Interval(NamedTuple):
    """An effect on the d scale with its 90 % interval."""

    low: float
    value: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """A against B over *n* decided trials.

    ``wins`` are A's; ``rate`` is A's win rate with both orders weighing the same; ``error`` its standard
    error, the larger of rows and clusters, with ``df``. Two effects: ``effect`` is logit(rate)·√3/π; ``within`` half
    the log odds ratio of *the first-listed won* between the two orders, which the position cannot hide (None where the
    order is not known; the two are equal where the position decides nothing). ``clusters`` are the name pairs, or the
    names of A and of B where those were given; with one of either, ``p_cluster`` is None, and ``copies`` of a cell that
    always repeats itself were dropped. ``lost`` is the share of trials in blocks that list the pair in one order only.
    ``first_share`` is how often the first-listed one was chosen.
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
    effect: Interval
    within: Interval | None
    clusters: tuple[int, int]
    lost: float
    first_share: float | None

    @property
    def p_value(self) -> float:
        return self.p_row if self.p_cluster is None else max(self.p_row, self.p_cluster)

    @property
    def one_cluster(self) -> bool:
        return min(self.clusters) < 2


@dataclass(frozen=True, slots=True)
class _Met:
    """Decided trials of A against B."""

    rows: Choices
    a_first: Bools
    a_won: Bools

    def take(self, kept: Bools) -> _Met:
        return _Met(self.rows.take(kept), self.a_first[kept], self.a_won[kept])

    @property
    def units(self) -> tuple[Ints, ...]:
        """The name pair of each trial, or the names of A and of B; none where each row stands for itself."""
        if len(self.rows.clusters) < 2:
            return self.rows.clusters
        one, two = self.rows.clusters
        return np.where(self.a_first, one, two), np.where(self.a_first, two, one)

    @property
    def clusters(self) -> tuple[int, int]:
        counts = [np.unique(unit).size for unit in self.units] or [self.a_won.size]
        return counts[0], counts[-1]


def compare_pair(choices: Choices, a: int, b: int) -> Preference:
    """A (code *a*) against B over the decided trials between them.

    z = (W − n/2)/√(n·q(1−q)) with q the share won by the first-listed, for n/2 trials in each order; for
    other numbers the two-sample z on "the first-listed won", which is the same number there; over several
    blocks Cochran–Mantel–Haenszel. Where the order is not known q = ½.
    """
    rows = choices.take(choices.between(a, b) & choices.decided)
    met = _Met(rows, rows.first == a, rows.winner == a)
    total, won = met.a_won.size, int(met.a_won.sum())
    # The binomial test; importing scipy.stats for it would take a second.
    binomial = min(1.0, 2 * float(bdtr(min(won, total - won), total, 0.5))) if total else 1.0
    first_share = float(np.mean(rows.outcome == FIRST)) if total and choices.listed else None
    usable = _in_both_orders(met)
    lost = 1 - float(usable.mean()) if total else 0.0
    met = met.take(usable)
    clusters, known = met.clusters, met.a_won.size
    if rows.clusters and min(clusters) < 2:
        # Copies of one reply are no evidence, and without clusters nothing else would notice.
        met = met.take(_distinct(met))
    n = met.a_won.size
    z, rate, error, expected = _by_order(met)
    p_cluster, t, cluster_error, df = None, None, 0.0, float(max(n - 1, 1))
    if rows.clusters and n and min(clusters) >= 2:
        mean, cluster_error, df = mean_over_units(met.units, met.a_won - expected)
        p_cluster = float(two_sided_t(np.array(mean), np.array(cluster_error), np.array(df)))
        t = mean / cluster_error if cluster_error else None
    inflation = max(1.0, (cluster_error / error) ** 2) if error else 1.0
    error = max(error, cluster_error)
    return Preference(
        n=n,
        copies=known - n,
        wins=int(met.a_won.sum()),
        rate=rate,
        error=error,
        df=df,
        z=z,
        p_row=float(2 * ndtr(-abs(z))),
        p_cluster=p_cluster,
        t=t,
        binomial_p=binomial,
        effect=_on_d(rate, error, df, n),
        within=_within_order(met, inflation, df) if choices.listed and n else None,
        clusters=clusters,
        lost=lost,
        first_share=first_share,
    )


def _in_both_orders(met: _Met) -> Bools:
    """Rows in blocks that list the pair in both orders; all where the order is not known."""
    block, a_first = met.rows.block, met.a_first
    if not met.rows.listed or not a_first.size:
        return np.ones(a_first.size, dtype=np.bool_)
    size = int(block.max()) + 1
    ahead, behind = np.bincount(block[a_first], minlength=size), np.bincount(block[~a_first], minlength=size)
    return np.asarray(((ahead > 0) & (behind > 0))[block])


def _distinct(met: _Met) -> Bools:
    """One row a cell, if every cell repeats itself exactly; else all rows."""
    n = met.a_won.size
    cell = cross([met.rows.block, met.a_first.astype(np.intp), *met.rows.clusters], n)
    size, won = np.bincount(cell), np.bincount(cell, met.a_won)
    if not np.all((won == 0) | (won == size)):
        return np.ones(n, dtype=np.bool_)
    keep = np.zeros(n, dtype=np.bool_)
    keep[np.unique(cell, return_index=True)[1]] = True
    return keep


def _by_order(met: _Met) -> tuple[float, float, float, Floats]:
    """z, A's win rate with the orders weighing the same, its error, and each row's expected outcome under H0."""
    a_first, a_won = met.a_first, met.a_won
    n = a_won.size
    if not n:
        return 0.0, 0.5, np.inf, np.zeros(0)
    if not met.rows.listed:
        won = float(a_won.sum())
        smooth = (won + 0.5) / (n + 1)
        return (won - n / 2) / float(np.sqrt(n / 4)), won / n, _root(smooth / n * (1 - smooth)), np.full(n, 0.5)
    blocks, at = np.unique(met.rows.block, return_inverse=True)
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
    gap = float(np.sum(weight * (f1 - f2)))
    s1 = np.where((f1 > 0) & (f1 < 1), f1, (n1 * f1 + 0.5) / (n1 + 1))
    s2 = np.where((f2 > 0) & (f2 < 1), f2, (n2 * f2 + 0.5) / (n2 + 1))
    spread = float(np.sum(weight**2 * (s1 * (1 - s1) / n1 + s2 * (1 - s2) / n2)))
    total = float(weight.sum())
    half = (f1 + f2)[at] / 2
    expected = np.where(a_first, half, 1 - half)
    return gap / _root(variance) if variance > 0 else 0.0, 0.5 + gap / total / 2, _root(spread) / total / 2, expected


def _within_order(met: _Met, inflation: float, df: float) -> Interval:
    """Half the Mantel–Haenszel log odds ratio of *the first-listed won* between the two orders, on the d scale.

    SE ½·√(variance·deff), the variance that of Robins, Breslow & Greenland (1986), which is Woolf's where there is one
    block. Where a sum is 0 the blocks are pooled and ½ is added to all four cells.
    """
    a_first, first_won = met.a_first, met.a_won == met.a_first
    _, at = np.unique(met.rows.block, return_inverse=True)
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
    return Interval(effect - reach, effect, effect + reach)


def _on_d(rate: float, error: float, df: float, n: int) -> Interval:
    """The win rate on the d scale; ±½ where it is 0 or 1."""
    if not n:
        return Interval(-np.inf, 0.0, np.inf)
    p = rate if 0 < rate < 1 else (rate * n + 0.5) / (n + 1)
    logit = float(np.log(p / (1 - p)))
    reach = float(t_quantile(df, 0.95)) * error / (p * (1 - p))
    return Interval((logit - reach) * LOGIT_TO_D, logit * LOGIT_TO_D, (logit + reach) * LOGIT_TO_D)


def _root(value: float) -> float:
    return float(np.sqrt(max(value, 0.0)))


def mean_over_units(units: Sequence[Ints], values: Floats) -> tuple[float, float, float]:
    """The mean of the unit means of *values*, its standard error, and df.

    *units* are the name pairs, or the names of A and of B, where a name meets several others: each name is then a unit,
    a pair is not. The variance is that of the two-way layout, names of A + names of B − pairs, at least the largest of
    the three (Cameron, Gelbach & Miller 2011, Journal of Business & Economic Statistics 29:238), df the smaller number
    of names − 1.
    """
    mean, square, count = _cluster_means(cross(units, values.size), values)
    if len(units) > 1:
        (_, square_a, count_a), (_, square_b, count_b) = (_cluster_means(side, values) for side in units)
        square = max(square_a, square_b, square, square_a + square_b - square)
        count = min(count_a, count_b)
    return mean, float(np.sqrt(square)), float(count - 1)


def _cluster_means(codes: Ints, values: Floats) -> tuple[float, float, int]:
    """Mean of the cluster means, the variance of that mean, and the number of clusters."""
    _, at = np.unique(codes, return_inverse=True)
    means = np.bincount(at, values) / np.bincount(at)
    mean = float(means.mean())
    square = float(means.var(ddof=1)) / means.size if means.size > 1 else 0.0
    return (0.0 if abs(mean) < 1e-12 else mean), (0.0 if square < 1e-24 else square), means.size


def share_interval(won: Bools, cluster: Ints | None) -> tuple[float, float, int]:
    """The 95 % interval of the share of *won*, and the number of clusters: a t on the clusters' shares, and Wilson's
    where there are fewer than two."""
    clusters = won.size
    if cluster is not None:
        _, at = np.unique(cluster, return_inverse=True)
        shares = np.bincount(at, won) / np.bincount(at)
        clusters = shares.size
        if clusters > 1:
            reach = float(t_quantile(clusters - 1, 0.975)) * float(shares.std(ddof=1)) / float(np.sqrt(clusters))
            return max(0.0, float(shares.mean()) - reach), min(1.0, float(shares.mean()) + reach), clusters
    low, high = wilson(np.array([float(won.sum())]), np.array([float(won.size)]), Z_95)
    return float(low[0]), float(high[0]), clusters


# ---------------------------------------------------------------- all groups together


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A χ² statistic, its degrees of freedom, and p (1 where there is nothing to test)."""

    statistic: float
    df: int

    @property
    def p(self) -> float:
        return float(chdtrc(self.df, self.statistic)) if self.df > 0 else 1.0


def goodness_of_fit(wins: Floats, shares: Floats | None = None) -> ChiSquare:
    """Pearson's χ² of *wins* against *shares* (equal ones by default), df k − 1."""
    k, total = wins.size, float(wins.sum())
    expected = total * (np.full(k, 1 / k) if shares is None else shares)
    return ChiSquare(float(np.sum((wins - expected) ** 2 / expected)) if total else 0.0, k - 1)


def friedman(ranks: Floats) -> ChiSquare:
    """Friedman's χ² over trials × groups of midranks, corrected for ties (Conover 1999)."""
    n, k = ranks.shape
    middle = (k + 1) / 2
    spread = float(np.sum((ranks - middle) ** 2)) / (k - 1)
    between = float(np.sum((ranks.sum(axis=0) - n * middle) ** 2))
    return ChiSquare(between / spread if spread > 0 else 0.0, k - 1)


def round_robin(choices: Choices) -> tuple[ChiSquare, ChiSquare]:
    """Equal wins of all groups: Σ(W_g − N_g/2)²/(N_g/4) as it is, and times (G−1)/G, which is χ²(G−1).

    The win of one group is the loss of another: without the factor the test rejects 12 % at 5 %.
    """
    wins, shown = choices.wins()
    wins, shown = wins[shown > 0], shown[shown > 0]
    groups = shown.size
    plain, df = float(np.sum((wins - shown / 2) ** 2 / (shown / 4))), max(groups - 1, 0)
    return ChiSquare(plain, df), ChiSquare(plain * (groups - 1) / groups if groups else 0.0, df)


def no_choice_by_pair(choices: Choices) -> ChiSquare:
    """Pearson's χ² of *no choice was read* (neither, unparsable, refused) against the pair offered."""
    low, high = np.minimum(choices.first, choices.second), np.maximum(choices.first, choices.second)
    pair = cross([low, high], low.size)
    trials = np.bincount(pair).astype(np.float64)
    without = np.bincount(pair, ~choices.decided)
    share = float(without.sum() / trials.sum())
    if share in {0.0, 1.0}:
        return ChiSquare(0.0, trials.size - 1)
    return ChiSquare(float(np.sum((without - trials * share) ** 2 / (trials * share * (1 - share)))), trials.size - 1)
