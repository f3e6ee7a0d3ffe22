"""Counts of groups against declared shares: Pearson's chi-square, or its exact sampling where few
are expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtri

from pytest_fairness.statistics.proportions import FEW, wilson

#: Samples of the declared population, where a group is expected fewer than five times.
SAMPLES = 20_000


class GroupFit(NamedTuple):
    """The standardised *residual* of a group; the *ratio* of its share to the declared one, with
    the interval from *low* to *high*, all groups together at 95 % (Wilson, Bonferroni).
    """

    residual: float
    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodnessOfFit:
    """``w``: Cohen's effect size, √(χ²/n) (Cohen 1988, section 7.2.1; .1 small, .3 medium, .5
    large). ``groups``: each group, in the order given.
    """

    statistic: float
    df: int
    p_value: float
    w: float
    groups: tuple[GroupFit, ...]


def goodness_of_fit(
    counts: Sequence[int], shares: Sequence[float], *, seed: int = 0
) -> GoodnessOfFit:
    """Return how *counts* of two or more groups fit *shares*, which are positive and sum to 1; some
    are counted.
    """
    observed = np.asarray(counts, dtype=np.float64)
    declared = np.asarray(shares, dtype=np.float64)
    n = observed.sum()
    expected = observed.sum() * declared
    statistic = float(np.sum((observed - expected) ** 2 / expected))
    if expected.min() >= FEW:
        p = float(chdtrc(len(counts) - 1, statistic))
    else:
        drawn = np.random.default_rng(seed).multinomial(int(n), declared, size=SAMPLES)
        as_far = np.sum((drawn - expected) ** 2 / expected, axis=1) >= statistic * (1 - 1e-12)
        p = float((as_far.sum() + 1) / (SAMPLES + 1))
    low, high = wilson(observed, np.full_like(observed, n), float(ndtri(1 - 0.025 / len(counts))))
    residuals = (observed - expected) / np.sqrt(expected * (1 - declared))
    figures = (residuals, observed / expected, low / declared, high / declared)
    return GoodnessOfFit(
        statistic=statistic,
        df=len(counts) - 1,
        p_value=p,
        w=float(np.sqrt(statistic / n)),
        groups=tuple(GroupFit(*group) for group in np.stack(figures, axis=1).tolist()),
    )
