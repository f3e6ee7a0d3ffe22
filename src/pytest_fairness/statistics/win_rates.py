"""Is one of two equal candidates chosen more often? The order of listing is a stratum, the name
pair the unit.

Averaging over both orders hides a preference where the position decides most choices: within an
order it shows. So the comparison is whether the first-listed candidate wins more often when it is A
than when it is B. Beside it stand the χ² tests of all groups together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, chdtrc, ndtr

from pytest_fairness.statistics.arrays import Bools, Floats, Ints, cross, means_of, sums
from pytest_fairness.statistics.categories import chi_square
from pytest_fairness.statistics.choices import FIRST, Choices
from pytest_fairness.statistics.clusters import (
    CONFIDENCE,
    TwoUnits,
    one_sample_t,
    t_quantile,
    two_sided_t,
)
from pytest_fairness.statistics.effects import LOGIT_TO_D
from pytest_fairness.statistics.proportions import Z_95, wilson


class Interval(NamedTuple):
    """An effect on the d scale with its 90 % interval."""

    low: float
    value: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference(TwoUnits):
    """A against B over *n* decided trials.

    ``wins`` are A's; ``rate`` is A's win rate with both orders weighing the same; ``error`` its
    standard error, the larger of rows and clusters, with ``df``. Two effects: ``effect`` is
    logit(rate)·√3/π; ``within`` half the log odds ratio of *the first-listed won* between the two
    orders, which the position cannot hide (None where the order is not known; the two are equal
    where the position decides nothing). ``clusters`` are the name pairs, or the names of A and of B
    where those were given; with one of either, ``p_cluster`` is None, and ``copies`` of a cell that
    always repeats itself were dropped. ``lost`` is the share of trials in blocks that list the pair
    in one order only. ``first_share`` is how often the first-listed one was chosen.
    """

    n: int
    copies: int
    wins: int
    rate: float
    error: float
    df: float
    t: float | None
    binomial_p: float
    effect: Interval
    within: Interval | None
    clusters: tuple[int, int]
    lost: float
    first_share: float | None

    @property
    def one_cluster(self) -> bool:
        return min(self.clusters) < 2


def compare_pair(choices: Choices, a: int, b: int, confidence: float = CONFIDENCE) -> Preference:
    """A (code *a*) against B over the decided trials between them, with intervals of *confidence*.

    z = (W − n/2)/√(n·q(1−q)) with q the share won by the first-listed, for n/2 trials in each
    order; for other numbers the two-sample z on "the first-listed won", which is the same number
    there; over several blocks Cochran–Mantel–Haenszel. Where the order is not known q = ½.
    """
    met = choices.take(choices.between(a, b) & choices.decided)
    rows = met
    if choices.listed:
        rows = _in_both_orders(met, a)
    kept = rows.first.size
    counts = [np.unique(unit).size for unit in _units(rows, a)] or [kept]
    clusters = counts[0], counts[-1]
    is_clustered = min(clusters) >= 2
    if rows.clusters and not is_clustered:
        rows = _without_copies(rows, a)
    n = rows.first.size
    a_won = rows.winner == a
    table, at = _table(rows, a)
    z, rate, error, expected = _by_order(rows, a, table, at)
    over_units = _UnitTest(df=float(max(n - 1, 1)))
    if rows.clusters and n and is_clustered:
        over_units = _test_over_units(rows, a, a_won - expected)
    inflation = 1.0
    if error:
        inflation = max(1.0, (over_units.error / error) ** 2)
    error = max(error, over_units.error)
    within = None
    if choices.listed and n:
        within = _within_order(table, inflation, over_units.df, confidence)
    total = met.first.size
    lost = 0.0
    first_share = None
    if total:
        lost = 1 - kept / total
    if total and choices.listed:
        first_share = float(np.mean(met.outcome == FIRST))
    return Preference(
        n=n,
        copies=kept - n,
        wins=int(a_won.sum()),
        rate=rate,
        error=error,
        df=over_units.df,
        z=z,
        p_row=float(2 * ndtr(-abs(z))),
        p_cluster=over_units.p_value,
        t=over_units.t,
        binomial_p=_binomial_p(int((met.winner == a).sum()), total),
        effect=_log_odds(rate, n, error, over_units.df, confidence),
        within=within,
        clusters=clusters,
        lost=lost,
        first_share=first_share,
    )


def _in_both_orders(met: Choices, a: int) -> Choices:
    """Return the trials of blocks that list the pair in both orders: one order alone says nothing of
    a preference.
    """
    (won_first, lost_first, other_won, other_lost), at = _table(met, a)
    return met.take(((won_first + lost_first > 0) & (other_won + other_lost > 0))[at])


class _UnitTest(NamedTuple):
    """The test over names of what A won beyond what is expected; without one, an error of 0."""

    df: float
    error: float = 0.0
    p_value: float | None = None
    t: float | None = None


def _test_over_units(rows: Choices, a: int, surplus: Floats) -> _UnitTest:
    """Test the mean *surplus* of the units against 0."""
    mean, error, df = mean_over_units(_units(rows, a), surplus)
    t = None
    if error:
        t = mean / error
    return _UnitTest(df, error, float(two_sided_t(mean, error, df)), t)


def _log_odds(rate: float, n: int, error: float, df: float, confidence: float) -> Interval:
    """Return the log odds of *rate* with its interval; half a trial is added to both sides of a rate
    of 0 or 1.
    """
    if not n:
        return Interval(-np.inf, 0.0, np.inf)
    p = rate
    if not 0 < rate < 1:
        p = (rate * n + 0.5) / (n + 1)
    return _interval(math.log(p / (1 - p)), error / (p * (1 - p)), df, confidence)


def _binomial_p(won: int, total: int) -> float:
    """Two-sided p of *won* of *total* against one half, exactly; 1 of none."""
    if not total:
        return 1.0
    return min(1.0, 2 * float(bdtr(min(won, total - won), total, 0.5)))


def _without_copies(rows: Choices, a: int) -> Choices:
    """*rows*, of which copies of one reply count once, where every cell always repeats itself: they
    are no evidence, and without clusters nothing else would notice."""
    size = rows.first.size
    cell = cross([rows.block, (rows.first == a).astype(np.intp), *rows.clusters], size)
    share, _ = means_of(rows.winner == a, cell)
    if not np.all((share == 0) | (share == 1)):
        return rows
    keep = np.zeros(size, dtype=np.bool_)
    keep[np.unique(cell, return_index=True)[1]] = True
    return rows.take(keep)


def _units(rows: Choices, a: int) -> tuple[Ints, ...]:
    """The name pair of each trial, or the names of A and of B; none where each row stands for
    itself.
    """
    if len(rows.clusters) < 2:
        return rows.clusters
    first, two = rows.clusters
    return np.where(rows.first == a, first, two), np.where(rows.first == a, two, first)


def _table(rows: Choices, a: int) -> tuple[Floats, Ints]:
    """Of each block how often the first-listed won and lost, first where A is listed first, then
    where B is (4 × H); and the block of each row."""
    blocks, at = np.unique(rows.block, return_inverse=True)
    place = np.where(rows.first == a, 0, 2) + (rows.outcome != FIRST)
    return sums(place * blocks.size + at, None, 4 * blocks.size).reshape(4, blocks.size), at.astype(
        np.intp
    )


def _by_order(rows: Choices, a: int, table: Floats, at: Ints) -> tuple[float, float, float, Floats]:
    """z, A's win rate with the orders weighing the same, its error, and each row's expected outcome
    under H0.
    """
    n = at.size
    if not n:
        return 0.0, 0.5, np.inf, np.zeros(0)
    if not rows.listed:
        won = float((rows.winner == a).sum())
        smooth = (won + 0.5) / (n + 1)
        return (
            (won - n / 2) / math.sqrt(n / 4),
            won / n,
            math.sqrt(smooth / n * (1 - smooth)),
            np.full(n, 0.5),
        )
    n1 = table[0] + table[1]
    n2 = table[2] + table[3]
    f1 = table[0] / n1
    f2 = table[2] / n2
    both = n1 + n2
    q = (table[0] + table[2]) / both
    weight = n1 * n2 / both
    # With one block the variance of the contract's formula; over many small ones only n − 1 is
    # unbiased.
    shrink = 1.0
    if both.size > 1:
        shrink = both / (both - 1)
    variance = float(np.sum(weight * q * (1 - q) * shrink))
    gap = float(np.sum(weight * (f1 - f2)))
    total = float(weight.sum())
    s1 = np.where((f1 > 0) & (f1 < 1), f1, (table[0] + 0.5) / (n1 + 1))
    s2 = np.where((f2 > 0) & (f2 < 1), f2, (table[2] + 0.5) / (n2 + 1))
    spread = float(np.sum(weight**2 * (s1 * (1 - s1) / n1 + s2 * (1 - s2) / n2)))
    half = (f1 + f2)[at] / 2
    expected = np.where(rows.first == a, half, 1 - half)
    z = 0.0
    if variance > 0:
        z = gap / math.sqrt(variance)
    return z, 0.5 + gap / total / 2, math.sqrt(spread) / total / 2, expected


def _within_order(table: Floats, inflation: float, df: float, confidence: float) -> Interval:
    """Half the Mantel–Haenszel log odds ratio of *the first-listed won* between the two orders, on
    the d scale.

    SE ½·√(variance·deff), the variance that of Robins, Breslow & Greenland (1986), which is Woolf's
    where there is one block. Where a sum is 0 the blocks are pooled and ½ is added to all four
    cells.
    """
    a, b, c, d = table
    total = table.sum(axis=0)
    r = a * d / total
    s = b * c / total
    p = (a + d) / total
    q = (b + c) / total
    for_a = float(r.sum())
    for_b = float(s.sum())
    if for_a == 0 or for_b == 0:
        cells = table.sum(axis=1) + 0.5
        for_a = cells[0] * cells[3]
        for_b = cells[1] * cells[2]
        variance = float(np.sum(1 / cells))
    else:
        variance = float(
            (p * r).sum() / (2 * for_a**2)
            + (p * s + q * r).sum() / (2 * for_a * for_b)
            + (q * s).sum() / (2 * for_b**2)
        )
    effect = math.log(for_a / for_b) / 2
    return _interval(effect, math.sqrt(variance * inflation) / 2, df, confidence)


def _interval(log_odds: float, error: float, df: float, confidence: float) -> Interval:
    reach = float(t_quantile(df, (1 + confidence) / 2)) * error
    return Interval(*((log_odds + side * reach) * LOGIT_TO_D for side in (-1, 0, 1)))


def mean_over_units(units: Sequence[Ints], values: Floats) -> tuple[float, float, float]:
    """The mean of the unit means of *values*, its standard error, and df.

    *units* are the name pairs, or the names of A and of B, where a name meets several others: each
    name is then a unit, a pair is not. The variance is that of the two-way layout, names of A +
    names of B − pairs, at least the largest of the three (Cameron, Gelbach & Miller 2011, Journal
    of Business & Economic Statistics 29:238), df the smaller number of names − 1.
    """
    mean, square, count = _cluster_means(cross(units, values.size), values)
    if len(units) > 1:
        (_, square_a, count_a), (_, square_b, count_b) = (
            _cluster_means(side, values) for side in units
        )
        square = max(square_a, square_b, square, square_a + square_b - square)
        count = min(count_a, count_b)
    return mean, math.sqrt(square), float(count - 1)


def _cluster_means(codes: Ints, values: Floats) -> tuple[float, float, int]:
    """Mean of the cluster means, the variance of that mean, and the number of clusters."""
    means, _ = means_of(values, cross([codes], codes.size))
    mean = float(means.mean())
    square = 0.0
    if means.size > 1:
        square = float(means.var(ddof=1)) / means.size
    # What rounding leaves is nothing.
    if abs(mean) < 1e-12:
        mean = 0.0
    if square < 1e-24:
        square = 0.0
    return mean, square, means.size


def share_interval(won: Bools, cluster: Ints | None) -> tuple[float, float, int]:
    """The 95 % interval of the share of *won*, and the number of clusters: a t on the clusters'
    shares, and Wilson's where there are fewer than two."""
    if cluster is None:
        shares = won.astype(np.float64)
    else:
        shares = means_of(won, cross([cluster], won.size))[0]
    if cluster is not None and shares.size > 1:
        low, high = one_sample_t(shares).interval(0.95)
        return max(0.0, low), min(1.0, high), shares.size
    ends = wilson(np.array(float(won.sum())), np.array(float(won.size)), Z_95)
    return float(ends[0]), float(ends[1]), shares.size


# ---------------------------------------------------------------- all groups together


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A χ² statistic, its degrees of freedom, and p (1 where there is nothing to test)."""

    statistic: float
    df: int

    @property
    def p(self) -> float:
        if self.df > 0:
            return float(chdtrc(self.df, self.statistic))
        return 1.0


def goodness_of_fit(wins: Floats, shares: Floats | None = None) -> ChiSquare:
    """Pearson's χ² of *wins* against *shares* (equal ones by default), df k − 1."""
    k = wins.size
    total = float(wins.sum())
    if not total:
        return ChiSquare(0.0, k - 1)
    if shares is None:
        shares = np.full(k, 1 / k)
    expected = total * shares
    return ChiSquare(float(np.sum((wins - expected) ** 2 / expected)), k - 1)


def friedman(ranks: Floats) -> ChiSquare:
    """Friedman's χ² over trials × groups of midranks, corrected for ties (Conover 1999)."""
    n, k = ranks.shape
    middle = (k + 1) / 2
    spread = float(np.sum((ranks - middle) ** 2)) / (k - 1)
    between = float(np.sum((ranks.sum(axis=0) - n * middle) ** 2))
    if spread > 0:
        return ChiSquare(between / spread, k - 1)
    return ChiSquare(0.0, k - 1)


def round_robin(choices: Choices) -> tuple[ChiSquare, ChiSquare]:
    """Equal wins of all groups: Σ(W_g − N_g/2)²/(N_g/4) as it is, and times (G−1)/G, which is
    χ²(G−1).

    The win of one group is the loss of another: without the factor the test rejects 12 % at 5 %.
    """
    wins, shown = (counts[choices.wins()[1] > 0] for counts in choices.wins())
    groups = shown.size
    if not groups:
        return ChiSquare(0.0, 0), ChiSquare(0.0, 0)
    plain = float(np.sum((wins - shown / 2) ** 2 / (shown / 4)))
    df = groups - 1
    return ChiSquare(plain, df), ChiSquare(plain * (groups - 1) / groups, df)


def no_choice_by_pair(choices: Choices) -> ChiSquare:
    """Pearson's χ² of *no choice was read* (neither, unparsable, refused) against the pair offered."""
    low = np.minimum(choices.first, choices.second)
    high = np.maximum(choices.first, choices.second)
    pair = cross([low, high], low.size)
    table = np.stack(
        [
            np.bincount(pair[which], minlength=pair.max() + 1)
            for which in (choices.decided, ~choices.decided)
        ]
    )
    return ChiSquare(float(chi_square(table[None].astype(np.float64))[0][0]), table.shape[1] - 1)
