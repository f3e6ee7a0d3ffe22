"""The four-fifths rule (29 CFR 1607.4(D)): rates of a favourable decision, their ratio, and what stands
behind it.

Counts are integers, and "below four fifths" is decided in integers: 3/5 against 6/8 is exactly .8 and
computes below it in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from pytest_fairness.statistics import proportions
from pytest_fairness.statistics.clusters import t_quantile

SMALLEST_SHARE = 0.02
"""A group of less than this share of the data is no reference (after Q&A 16 of the Uniform Guidelines)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactRatio:
    """Two groups' favourable decisions, the lower rate first: ``x_low`` of ``n_low`` against ``x_high`` of
    ``n_high``.

    ``ratio`` is lower/higher rate (1 where nobody got the favourable decision) with the plain 95 % Katz interval
    ``ratio_low``–``ratio_high``, and ``low_90``–``high_90`` at 90 %, wider by the design effect and by Student's t;
    ``z`` the difference in standard deviations, pooled, negative or 0; ``fisher`` the exact p. ``shortfall`` is how
    many favourable decisions the lower group lacks at the pooled rate. ``flip_flop``: moving one favourable decision
    from the higher to the lower group turns the order round.
    """

    x_low: int
    n_low: int
    x_high: int
    n_high: int
    ratio: float
    ratio_low: float
    ratio_high: float
    low_90: float
    high_90: float
    z: float
    fisher: float
    smallest_expected: float
    shortfall: float
    flip_flop: bool

    @property
    def below(self) -> bool:
        """Whether the ratio is below four fifths; exactly four fifths is not."""
        return below_four_fifths(self.x_low, self.n_low, self.x_high, self.n_high)


def below_four_fifths(x_low: int, n_low: int, x_high: int, n_high: int) -> bool:
    """x_low/n_low < 4/5 · x_high/n_high, in integers."""
    return 5 * x_low * n_high < 4 * x_high * n_low


def lower_first(x1: int, n1: int, x2: int, n2: int) -> bool:
    """Whether the first group has the lower rate, or the same (in integers)."""
    return x1 * n2 <= x2 * n1


def impact_ratio(x1: int, n1: int, x2: int, n2: int, *, design_effect: float = 1.0, df: float = np.inf) -> ImpactRatio:
    """Compare two groups' favourable decisions, in either order; both n are at least 1.

    The 90 % interval is Katz's on n/*design_effect* decisions, with Student's t of *df*.
    """
    a, m, b, n = (x1, n1, x2, n2) if lower_first(x1, n1, x2, n2) else (x2, n2, x1, n1)
    xa, na, xb, nb = (np.array([float(value)]) for value in (a, m, b, n))
    ratio, low, high = (float(value[0]) for value in proportions.katz(xa, na, xb, nb))
    t = float(t_quantile(np.array([min(df, 1e9)]), 0.95)[0])
    less = max(design_effect, 1.0)
    _, low_90, high_90 = (float(v[0]) for v in proportions.katz(xa / less, na / less, xb / less, nb / less, z=t))
    pooled = (a + b) / (m + n)
    return ImpactRatio(
        x_low=a,
        n_low=m,
        x_high=b,
        n_high=n,
        ratio=1.0 if b == 0 else ratio,
        ratio_low=low,
        ratio_high=high,
        low_90=low_90,
        high_90=high_90,
        z=-float(np.sqrt(proportions.pearson(xa, na, xb, nb)[0])),
        fisher=float(proportions.fisher_exact(xa, na, xb, nb)[0]),
        smallest_expected=float(proportions.smallest_expected(xa, na, xb, nb)[0]),
        shortfall=max(m * pooled - a, 0.0),
        flip_flop=b > 0 and (a + 1) * n >= (b - 1) * m,
    )


def reference_group(x: Sequence[int], n: Sequence[int]) -> int | None:
    """The group with the highest rate among those of at least 2 % of the data; of equals the larger.

    ``None`` where no group has any row.
    """
    total = sum(n)
    best: int | None = None
    for at, size in enumerate(n):
        if size == 0 or size < SMALLEST_SHARE * total:
            continue
        if best is None:
            best = at
            continue
        ours, theirs = x[at] * n[best], x[best] * size
        if ours > theirs or (ours == theirs and size > n[best]):
            best = at
    return best


def chance_of(ratio: float, x: Sequence[int], n: Sequence[int], *, design_effect: float, seed: int = 0) -> float:
    """How often chance alone brings a lowest/highest ratio of *ratio* or less, if all groups had the rate of all.

    Simulated, 4,000 audits of the same groups, each of n/*design_effect* independent decisions.
    """
    sizes = np.array([max(round(size / max(design_effect, 1.0)), 1) for size in n if size])
    rate = sum(x) / max(sum(n), 1)
    draws = np.random.default_rng(seed).binomial(sizes, rate, size=(4000, sizes.size)) / sizes
    highest = np.where(sizes >= SMALLEST_SHARE * sizes.sum(), draws, 0.0).max(axis=1)
    lowest = draws.min(axis=1)
    return float(np.mean(lowest <= ratio * highest + 1e-12))


def deviations(p_value: float) -> float:
    """How many standard deviations a two-sided p corresponds to; at most 38."""
    return float(-ndtri(max(p_value, 1e-316) / 2)) if p_value < 1 else 0.0
