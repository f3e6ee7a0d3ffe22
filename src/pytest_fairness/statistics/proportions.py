"""Two proportions: closed forms, for arrays of 2×2 tables at once. x of n successes in each of two
groups.

The intervals are those of ``statsmodels.stats.proportion``: of ``proportion_confint`` ("wilson",
"beta") and, one table at a time, of ``confint_proportions_2indep`` ("newcomb"; "log" of the ratio).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, chdtrc, ndtri

from pytest_fairness.statistics.arrays import Floats
from pytest_fairness.statistics.clusters import CONFIDENCE, t_quantile

NEAR, NEAR_RATIO = 0.05, 0.8
"""Rates that differ by less than five points and by less than four fifths are practically equal."""
FEW = 5.0
"""Below this smallest count a normal interval is not trusted (Cochran 1954)."""
Z_95 = 1.959963984540054
"""The normal quantile of a 95 % interval."""
TINY_N = 1e-9
"""Stands in for an empty group where a quotient is then not used."""


def wilson(x: Floats, n: Floats, z: Floats | float) -> tuple[Floats, Floats]:
    """Wilson score interval (Wilson 1927); *z* the normal or t quantile. 0–1 where n is 0."""
    m = np.maximum(n, TINY_N)
    p = x / m
    square = np.square(z)
    middle = (p + square / (2 * m)) / (1 + square / m)
    half = z / (1 + square / m) * np.sqrt(np.maximum(p * (1 - p) / m + square / (4 * m * m), 0.0))
    return np.where(n > 0, np.maximum(middle - half, 0.0), 0.0), np.where(
        n > 0, np.minimum(middle + half, 1.0), 1.0
    )


def binomial_tail(x: float, n: float, p: float) -> float:
    """The chance of *x* or more of *n* at the rate *p*, exactly; between whole numbers by the
    incomplete beta function, which is that chance at each of them.
    """
    if x <= 0:
        return 1.0
    return float(betainc(x, n - x + 1, p))


def clopper_pearson(x: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a rate, x of n (Clopper and Pearson 1934)."""
    outside = (1 - level) / 2
    low = 0.0
    if x != 0:
        low = float(betaincinv(x, n - x + 1, outside))
    return low, 1.0 if x == n else float(betaincinv(x + 1, n - x, 1 - outside))


def newcombe(
    x1: Floats, n1: Floats, x2: Floats, n2: Floats, z: Floats | float = Z_95
) -> tuple[Floats, Floats]:
    """Interval of p₁ − p₂ from the two Wilson intervals (Newcombe 1998, method 10)."""
    (l1, u1), (l2, u2) = wilson(x1, n1, z), wilson(x2, n2, z)
    p1 = x1 / np.maximum(n1, TINY_N)
    p2 = x2 / np.maximum(n2, TINY_N)
    low = p1 - p2 - np.sqrt((p1 - l1) ** 2 + (u2 - p2) ** 2)
    high = p1 - p2 + np.sqrt((u1 - p1) ** 2 + (p2 - l2) ** 2)
    return low, high


def katz(
    x1: Floats, n1: Floats, x2: Floats, n2: Floats, z: Floats | float = Z_95
) -> tuple[Floats, Floats, Floats]:
    """Risk ratio p₁/p₂ with its log interval (Katz et al. 1978).

    Where either x is 0 the interval comes from x+½ and n+½ (Walter 1975), and the ratio from the
    counts (0, ∞, or NaN for 0/0).
    """
    zero = (x1 == 0) | (x2 == 0)
    a, m, b, n = (np.where(zero, v + 0.5, v) for v in (x1, n1, x2, n2))
    error = np.sqrt(np.maximum(1 / a - 1 / m + 1 / b - 1 / n, 0.0))
    centre = np.log(a / m) - np.log(b / n)
    p1 = x1 / n1
    p2 = x2 / n2
    ratio = np.where(p2 > 0, p1 / np.where(p2 > 0, p2, 1.0), np.where(p1 > 0, np.inf, np.nan))
    return ratio, np.exp(centre - z * error), np.exp(centre + z * error)


def log_odds_ratio(x1: Floats, n1: Floats | float, x2: Floats, n2: Floats | float) -> Floats:
    """ln of the odds ratio, ½ added to the four cells where one is empty."""
    least = np.minimum(np.minimum(x1, n1 - x1), np.minimum(x2, n2 - x2))
    add = np.where(least < 0.5, 0.5, 0.0)
    return np.asarray(np.log((x1 + add) * (n2 - x2 + add) / ((n1 - x1 + add) * (x2 + add))))


def woolf_variance(cells: Floats) -> tuple[Floats, Floats]:
    """The variance of the log odds ratio (Woolf 1955) of tables of four *cells* (first axis), ½
    added where one is empty, and the smallest cell."""
    least = cells.min(axis=0)
    with np.errstate(divide="ignore"):
        return np.sum(1 / (cells + np.where(least < 0.5, 0.5, 0.0)), axis=0), least


def cohens_h(p1: Floats, p2: Floats) -> Floats:
    """2·arcsin√p₁ − 2·arcsin√p₂ (Cohen 1988)."""
    return np.asarray(2 * np.arcsin(np.sqrt(p1)) - 2 * np.arcsin(np.sqrt(p2)))


def pearson(x1: Floats, n1: Floats, x2: Floats, n2: Floats, *, yates: bool = False) -> Floats:
    """Pearson's chi-square of the table, 0 where a margin is empty; with Yates' correction on
    request.
    """
    total = n1 + n2
    x = x1 + x2
    bottom = n1 * n2 * x * (total - x)
    cross = np.abs(x1 * (n2 - x2) - x2 * (n1 - x1))
    if yates:
        cross = np.maximum(cross - total / 2, 0.0)
    return np.where(bottom > 0, total * cross**2 / np.where(bottom > 0, bottom, 1.0), 0.0)


def smallest_expected(x1: Floats, n1: Floats, x2: Floats, n2: Floats) -> Floats:
    """The smallest expected count of the table."""
    total = np.maximum(n1 + n2, TINY_N)
    x = x1 + x2
    return np.asarray(np.minimum(n1, n2) * np.minimum(x, n1 + n2 - x) / total)


def fisher_exact(x1: Floats, n1: Floats, x2: Floats, n2: Floats) -> Floats:
    """Two-sided Fisher p of each table: tables no more likely than the one seen, as R and scipy do.

    The hypergeometric weights come from the ratio of neighbours, without factorials, so that they
    keep their precision for any n. Counts further than sixty standard deviations (and a thousand)
    from the likeliest have weights that no float can hold, and are left out.
    """
    p = np.ones(x1.size)
    for at, (a, r1, b, r2) in enumerate(np.stack([x1, n1, x2, n2], axis=1).tolist()):
        c = a + b
        n = max(r1 + r2, 2.0)
        middle = np.floor(r1 * c / n)
        far = 1000 + np.ceil(60 * np.sqrt(r1 * r2 * c * (n - c) / (n * n * (n - 1))))
        lowest = max(0.0, c - r2, middle - far)
        highest = min(r1, c, middle + far)
        if not lowest <= a <= highest:
            p[at] = 0.0
            continue
        k = np.arange(lowest, highest)  # the step from k to k+1
        steps = np.log((r1 - k) * (c - k)) - np.log((k + 1) * (r2 - c + k + 1))
        weights = np.concatenate([np.zeros(1), np.cumsum(steps)])
        weights = np.exp(weights - weights.max())
        seen = weights[int(a - lowest)]
        p[at] = min(1.0, float(weights[weights <= seen * (1 + 1e-7)].sum() / weights.sum()))
    return p


def two_by_two_p(x1: Floats, n1: Floats, x2: Floats, n2: Floats) -> Floats:
    """Two-sided p of each table: Pearson's chi-square, Fisher's where an expected count is under 5."""
    p = np.asarray(chdtrc(1, pearson(x1, n1, x2, n2)), dtype=np.float64)
    few = smallest_expected(x1, n1, x2, n2) < FEW
    p[few] = fisher_exact(x1[few], n1[few], x2[few], n2[few])
    return p


class ClusteredRates(NamedTuple):
    """Two rates of each table, of so many rows, with their design effect and the degrees of freedom
    of their clusters.
    """

    p1: Floats
    n1: Floats
    p2: Floats
    n2: Floats
    design_effect: Floats
    df: Floats

    @property
    def effective_rows(self) -> tuple[Floats, Floats]:
        """Return the rows that each rate is worth: n/deff."""
        return self.n1 / self.design_effect, self.n2 / self.design_effect

    def t(self, confidence: float) -> Floats:
        """Return the quantile of Student's t of an interval of *confidence*; NaN where df give
        none.
        """
        return t_quantile(self.df, (1 + confidence) / 2)


def clustered_difference(
    rates: ClusteredRates, confidence: float = CONFIDENCE
) -> tuple[Floats, Floats]:
    """Newcombe's interval of *confidence* of p₁ − p₂ on n/deff rows, with the t quantile of df; NaN
    where df give none.
    """
    z = rates.t(confidence)
    m1, m2 = rates.effective_rows
    ends = newcombe(rates.p1 * m1, m1, rates.p2 * m2, m2, z=np.where(np.isfinite(z), z, 1.0))
    low, high = (np.where(np.isfinite(z), end, np.nan) for end in ends)
    return low, high


def nearly_equal(
    rates: ClusteredRates, confidence: float = CONFIDENCE
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether two favourable rates are practically equal: by their intervals of *confidence*,
    and by the estimates themselves.

    Newcombe's interval of the difference inside ±5 points and Katz's of the ratio inside (.8,
    1.25), both on n/deff rows with the t quantile of df: near 1 an odds ratio is blind to what is
    practically equal, and ±5 points alone would pass 2 % against .5 %.
    """
    low, high = clustered_difference(rates, confidence)
    z = np.where(np.isnan(low), 1.0, rates.t(confidence))
    m1, m2 = rates.effective_rows
    _, ratio_low, ratio_high = katz(
        rates.p1 * m1, np.maximum(m1, TINY_N), rates.p2 * m2, np.maximum(m2, TINY_N), z=z
    )
    inside = (
        (np.maximum(np.abs(low), np.abs(high)) < NEAR)
        & (ratio_low > NEAR_RATIO)
        & (ratio_high < 1 / NEAR_RATIO)
    )
    smaller = np.minimum(rates.p1, rates.p2)
    larger = np.maximum(rates.p1, rates.p2)
    close = (larger - smaller < NEAR) & (smaller >= NEAR_RATIO * larger) & (larger > 0)
    return np.asarray(inside & (larger > 0)), np.asarray(close)


# ---------------------------------------------------------------- four fifths

SMALLEST_SHARE = 0.02
"""A group of less than this share of the data is no reference (after Q&A 16 of the Uniform
Guidelines).
"""


class RatioCounts(NamedTuple):
    """The favourable decisions of two groups, the lower rate first: ``x_low`` of ``n_low`` against
    ``x_high`` of ``n_high``; whole numbers, but for rates that labels correct or strata weigh.
    """

    x_low: float | Fraction
    n_low: int
    x_high: float | Fraction
    n_high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactRatio:
    """Two groups' favourable decisions, compared by their *counts*.

    ``ratio`` is lower/higher rate (1 where nobody got the favourable decision) with the plain 95 %
    Katz interval, and ``low``–``high``, wider by the design effect and by Student's t; ``z``
    the difference in standard deviations, pooled, negative or 0.
    """

    counts: RatioCounts
    ratio: float
    ratio_low: float
    ratio_high: float
    low: float
    high: float
    z: float
    fisher: float
    smallest_expected: float

    @property
    def shortfall(self) -> float:
        """Return how many favourable decisions the lower group lacks at the pooled rate."""
        x_low, n_low, x_high, n_high = self.counts
        pooled = (x_low + x_high) / (n_low + n_high)
        return max(float(n_low * pooled - x_low), 0.0)

    @property
    def flip_flop(self) -> bool:
        """Return whether moving one favourable decision from the higher to the lower group turns
        the order round.
        """
        x_low, n_low, x_high, n_high = self.counts
        return bool(x_high > 0 and (x_low + 1) * n_high >= (x_high - 1) * n_low)

    @property
    def below(self) -> bool:
        """Return whether the ratio is below four fifths, in integers; exactly four fifths is not."""
        return self.under(Fraction(4, 5))

    def under(self, limit: Fraction) -> bool:
        """Return whether the ratio is below *limit*, in integers."""
        x_low, n_low, x_high, n_high = self.counts
        return limit.denominator * x_low * n_high < limit.numerator * x_high * n_low

    @property
    def log_odds(self) -> float:
        """The log odds ratio of the higher rate to the lower."""
        x_low, n_low, x_high, n_high = (np.array([float(count)]) for count in self.counts)
        return float(log_odds_ratio(x_high, n_high, x_low, n_low)[0])


def impact_ratio(
    x1: int,
    n1: int,
    x2: int,
    n2: int,
    *,
    design_effect: float = 1.0,
    df: float = np.inf,
    confidence: float = CONFIDENCE,
) -> ImpactRatio:
    """Compare two groups' favourable decisions, in either order; both n are at least 1.

    The interval of *confidence* is Katz's on n/*design_effect* decisions, with Student's t of *df*.
    """
    a, m, b, n = (x1, n1, x2, n2) if x1 * n2 <= x2 * n1 else (x2, n2, x1, n1)
    xa, na, xb, nb = (np.array([float(value)]) for value in (a, m, b, n))
    ratio, plain_low, plain_high = (float(value[0]) for value in katz(xa, na, xb, nb))
    t = float(t_quantile(np.array([min(df, 1e9)]), (1 + confidence) / 2)[0])
    less = max(design_effect, 1.0)
    _, low, high = (float(v[0]) for v in katz(xa / less, na / less, xb / less, nb / less, z=t))
    return ImpactRatio(
        counts=RatioCounts(a, m, b, n),
        ratio=1.0 if b == 0 else ratio,
        ratio_low=plain_low,
        ratio_high=plain_high,
        low=low,
        high=high,
        z=-float(np.sqrt(pearson(xa, na, xb, nb)[0])),
        fisher=float(fisher_exact(xa, na, xb, nb)[0]),
        smallest_expected=float(smallest_expected(xa, na, xb, nb)[0]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardisedRates:
    """Favourable rates of two groups by stratum, ``x`` of ``n`` each (2 × strata), brought to the
    same strata: those that hold both, with Mantel and Haenszel's weights n₁n₂/N.
    """

    x: Floats
    n: Floats

    @property
    def weights(self) -> Floats:
        """Return the weight of each stratum; 0 where one of the groups has nobody."""
        total = self.n.sum(axis=0)
        return np.asarray(self.n.prod(axis=0) / np.maximum(total, TINY_N))

    @property
    def rates(self) -> tuple[float, float]:
        """Return the rate of each group, whose ratio is Mantel and Haenszel's; NaN where no stratum
        holds both.
        """
        weights = self.weights
        whole = float(weights.sum())
        if not whole:
            return np.nan, np.nan
        first, second = (self.x / np.maximum(self.n, TINY_N) * weights).sum(axis=1) / whole
        return float(first), float(second)

    @property
    def log_variance(self) -> float:
        """Return the variance of the log of that ratio (Greenland and Robins 1985); NaN where a
        group has no favourable decision.
        """
        total = np.maximum(self.n.sum(axis=0), TINY_N)
        sums = (self.x * self.n[::-1] / total).sum(axis=1)
        if not sums.all():
            return np.nan
        favourable = self.x.sum(axis=0)
        terms = self.n.prod(axis=0) * favourable - self.x.prod(axis=0) * total
        return float((terms / total**2).sum() / sums.prod())


def standardised_ratio(
    rates: tuple[float, float],
    rows: tuple[int, int],
    log_variance: float,
    *,
    design_effect: float,
    df: float,
    confidence: float,
) -> ImpactRatio:
    """Compare two :class:`StandardisedRates`, of groups of so many *rows*, in either order: counts
    are what the rates come to among these rows.

    The intervals, of .95 and of *confidence*, are exp(ln r ± t·SE), wider by the *design_effect*;
    of a group without favourable decisions they are Katz's, on those counts.
    """
    order = int(rates[0] > rates[1])
    low, high = order, 1 - order
    # To nine digits, so that exactly four fifths is not below them.
    a, b = (Fraction(rates[side]).limit_denominator(10**9) * rows[side] for side in (low, high))
    counts = [np.array([float(value)]) for value in (a, rows[low], b, rows[high])]
    x1, n1, x2, n2 = counts
    ratio, plain_low, plain_high = (float(value[0]) for value in katz(x1, n1, x2, n2))
    less = max(design_effect, 1.0)
    x1, n1, x2, n2 = (count / less for count in counts)
    t = float(t_quantile(np.minimum([df], 1e9), (1 + confidence) / 2)[0])
    _, clustered_low, clustered_high = (float(value[0]) for value in katz(x1, n1, x2, n2, z=t))
    if np.isfinite(log_variance):
        error = log_variance**0.5
        plain_low, plain_high = ratio * np.exp(-Z_95 * error), ratio * np.exp(Z_95 * error)
        error *= less**0.5
        clustered_low, clustered_high = ratio * np.exp(-t * error), ratio * np.exp(t * error)
    if b == 0:
        ratio = 1.0
    return ImpactRatio(
        counts=RatioCounts(a, rows[low], b, rows[high]),
        ratio=ratio,
        ratio_low=float(plain_low),
        ratio_high=float(plain_high),
        low=float(clustered_low),
        high=float(clustered_high),
        z=np.nan,
        fisher=np.nan,
        smallest_expected=np.nan,
    )


def reference_group(x: Sequence[float], n: Sequence[int]) -> int | None:
    """The group with the highest rate among those of at least 2 % of the data; of equals the
    larger.

    ``None`` where no group has any row.
    """
    large = [at for at, size in enumerate(n) if size and size >= SMALLEST_SHARE * sum(n)]
    return max(large, key=lambda at: (Fraction(x[at]) / n[at], n[at]), default=None)


def chance_of(
    ratio: float, x: Sequence[float], n: Sequence[int], *, design_effect: float, seed: int = 0
) -> float:
    """Return how often chance alone brings a lowest/highest ratio of *ratio* or less, if all groups
    had the rate of all.

    Simulated, 4,000 audits of the same groups, each of n/*design_effect* independent decisions.
    """
    sizes = np.array([max(round(size / max(design_effect, 1.0)), 1) for size in n if size])
    rate = sum(x) / max(sum(n), 1)
    draws = np.random.default_rng(seed).binomial(sizes, rate, size=(4000, sizes.size)) / sizes
    highest = np.where(sizes >= SMALLEST_SHARE * sizes.sum(), draws, 0.0).max(axis=1)
    lowest = draws.min(axis=1)
    return float(np.mean(lowest <= ratio * highest + 1e-12))


def deviations(p_value: float) -> float:
    """Return how many standard deviations a two-sided p corresponds to; at most 38."""
    if p_value < 1:
        return float(-ndtri(max(p_value, 1e-316) / 2))
    return 0.0
