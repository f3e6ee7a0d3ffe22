"""Two proportions: closed forms, for arrays of 2×2 tables at once. x of n successes in each of two groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pytest_fairness.statistics.clusters import t_quantile
from pytest_fairness.statistics.frames import Floats

NEAR, NEAR_RATIO = 0.05, 0.8
"""Rates that differ by less than five points and by less than four fifths are practically equal."""
TINY_N = 1e-9
"""Stands in for an empty group where a quotient is then not used."""


def wilson(x: Floats, n: Floats, z: Floats | float) -> tuple[Floats, Floats]:
    """Wilson score interval (Wilson 1927); *z* the normal or t quantile. 0–1 where n is 0."""
    m = np.maximum(n, TINY_N)
    p, square = x / m, np.square(z)
    middle = (p + square / (2 * m)) / (1 + square / m)
    half = z / (1 + square / m) * np.sqrt(np.maximum(p * (1 - p) / m + square / (4 * m * m), 0.0))
    return np.where(n > 0, np.maximum(middle - half, 0.0), 0.0), np.where(n > 0, np.minimum(middle + half, 1.0), 1.0)


def newcombe(
    x1: Floats, n1: Floats, x2: Floats, n2: Floats, confidence: float = 0.95, *, z: Floats | float | None = None
) -> tuple[Floats, Floats]:
    """Interval of p₁ − p₂ from the two Wilson intervals (Newcombe 1998, method 10); *z* in place of the normal
    quantile."""
    z = float(ndtri(0.5 + confidence / 2)) if z is None else z
    (l1, u1), (l2, u2) = wilson(x1, n1, z), wilson(x2, n2, z)
    p1, p2 = x1 / np.maximum(n1, TINY_N), x2 / np.maximum(n2, TINY_N)
    low = p1 - p2 - np.sqrt((p1 - l1) ** 2 + (u2 - p2) ** 2)
    high = p1 - p2 + np.sqrt((u1 - p1) ** 2 + (p2 - l2) ** 2)
    return low, high


def katz(
    x1: Floats, n1: Floats, x2: Floats, n2: Floats, confidence: float = 0.95, *, z: Floats | float | None = None
) -> tuple[Floats, Floats, Floats]:
    """Risk ratio p₁/p₂ with its log interval (Katz et al. 1978).

    Where either x is 0 the interval comes from x+½ and n+½ (Walter 1975), and the ratio from the counts (0,
    ∞, or NaN for 0/0).
    """
    z = float(ndtri(0.5 + confidence / 2)) if z is None else z
    zero = (x1 == 0) | (x2 == 0)
    a, m, b, n = (np.where(zero, v + 0.5, v) for v in (x1, n1, x2, n2))
    error = np.sqrt(np.maximum(1 / a - 1 / m + 1 / b - 1 / n, 0.0))
    centre = np.log(a / m) - np.log(b / n)
    p1, p2 = x1 / n1, x2 / n2
    ratio = np.where(p2 > 0, p1 / np.where(p2 > 0, p2, 1.0), np.where(p1 > 0, np.inf, np.nan))
    return ratio, np.exp(centre - z * error), np.exp(centre + z * error)


def cohens_h(p1: Floats, p2: Floats) -> Floats:
    """2·arcsin√p₁ − 2·arcsin√p₂ (Cohen 1988)."""
    return np.asarray(2 * np.arcsin(np.sqrt(p1)) - 2 * np.arcsin(np.sqrt(p2)))


def pearson(x1: Floats, n1: Floats, x2: Floats, n2: Floats, *, yates: bool = False) -> Floats:
    """Pearson's chi-square of the table, 0 where a margin is empty; with Yates' correction on request."""
    total, x = n1 + n2, x1 + x2
    bottom = n1 * n2 * x * (total - x)
    cross = np.abs(x1 * (n2 - x2) - x2 * (n1 - x1))
    if yates:
        cross = np.maximum(cross - total / 2, 0.0)
    return np.where(bottom > 0, total * cross**2 / np.where(bottom > 0, bottom, 1.0), 0.0)


def smallest_expected(x1: Floats, n1: Floats, x2: Floats, n2: Floats) -> Floats:
    """The smallest expected count of the table."""
    total, x = np.maximum(n1 + n2, TINY_N), x1 + x2
    return np.asarray(np.minimum(n1, n2) * np.minimum(x, n1 + n2 - x) / total)


def fisher_exact(x1: Floats, n1: Floats, x2: Floats, n2: Floats) -> Floats:
    """Two-sided Fisher p of each table: tables no more likely than the one seen, as R and scipy do.

    The hypergeometric weights come from the ratio of neighbours, without factorials, so that they keep their
    precision for any n.
    """
    p = np.ones(x1.size)
    for at in range(x1.size):
        a, r1, r2 = float(x1[at]), float(n1[at]), float(n2[at])
        c = a + float(x2[at])
        low, high = max(0.0, c - r2), min(r1, c)
        if high <= low:
            continue
        k = np.arange(low, high)  # the step from k to k+1
        steps = np.log((r1 - k) * (c - k)) - np.log((k + 1) * (r2 - c + k + 1))
        weights = np.concatenate([np.zeros(1), np.cumsum(steps)])
        weights = np.exp(weights - weights.max())
        seen = weights[int(a - low)]
        p[at] = min(1.0, float(weights[weights <= seen * (1 + 1e-7)].sum() / weights.sum()))
    return p


def clustered_difference(
    p1: Floats, n1: Floats, p2: Floats, n2: Floats, design_effect: Floats, df: Floats
) -> tuple[Floats, Floats]:
    """Newcombe's 90 % interval of p₁ − p₂ on n/deff rows, with the t quantile of *df*; NaN where df give none."""
    z = t_quantile(df, 0.95)
    usable = np.isfinite(z)
    m1, m2 = n1 / design_effect, n2 / design_effect
    low, high = newcombe(p1 * m1, m1, p2 * m2, m2, z=np.where(usable, z, 1.0))
    return np.where(usable, low, np.nan), np.where(usable, high, np.nan)


def nearly_equal(
    p1: Floats, n1: Floats, p2: Floats, n2: Floats, design_effect: Floats, df: Floats
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether two favourable rates are practically equal: by their 90 % intervals, and by the estimates themselves.

    Newcombe's interval of the difference inside ±5 points and Katz's of the ratio inside (.8, 1.25), both on n/deff
    rows with the t quantile of *df*: near 1 an odds ratio is blind to what is practically equal, and ±5 points alone
    would pass 2 % against .5 %.
    """
    low, high = clustered_difference(p1, n1, p2, n2, design_effect, df)
    usable = ~np.isnan(low)
    z = np.where(usable, t_quantile(df, 0.95), 1.0)
    m1, m2 = n1 / design_effect, n2 / design_effect
    _, ratio_low, ratio_high = katz(p1 * m1, np.maximum(m1, TINY_N), p2 * m2, np.maximum(m2, TINY_N), z=z)
    inside = (np.maximum(np.abs(low), np.abs(high)) < NEAR) & (ratio_low > NEAR_RATIO) & (ratio_high < 1 / NEAR_RATIO)
    smaller, larger = np.minimum(p1, p2), np.maximum(p1, p2)
    close = (larger - smaller < NEAR) & (smaller >= NEAR_RATIO * larger) & (larger > 0)
    return np.asarray(inside & (larger > 0)), np.asarray(close)
