"""The χ² tests of choices as a whole: equal shares, ranks, wins, and equally many without a choice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from pytest_fairness.statistics.arrays import Floats
from pytest_fairness.statistics.choices import Choices, cross


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A χ² statistic, its degrees of freedom, and p (1 where there is nothing to test)."""

    statistic: float
    df: int
    p: float


def _chi_square(statistic: float, df: int) -> ChiSquare:
    return ChiSquare(statistic, df, chi_square_p(statistic, df))


def chi_square_p(statistic: float, df: int) -> float:
    """The upper tail of χ² with *df*; 1 without any."""
    return float(chdtrc(df, statistic)) if df > 0 else 1.0


def goodness_of_fit(wins: Floats, shares: Floats | None = None) -> ChiSquare:
    """Pearson's χ² of *wins* against *shares* (equal ones by default), df k − 1."""
    k, total = wins.size, float(wins.sum())
    expected = total * (np.full(k, 1 / k) if shares is None else shares)
    return _chi_square(float(np.sum((wins - expected) ** 2 / expected)) if total else 0.0, k - 1)


def friedman(ranks: Floats) -> ChiSquare:
    """Friedman's χ² over trials × groups of midranks, corrected for ties (Conover 1999)."""
    n, k = ranks.shape
    middle = (k + 1) / 2
    spread = float(np.sum((ranks - middle) ** 2)) / (k - 1)
    between = float(np.sum((ranks.sum(axis=0) - n * middle) ** 2))
    return _chi_square(between / spread if spread > 0 else 0.0, k - 1)


def round_robin(choices: Choices) -> tuple[float, ChiSquare]:
    """Equal wins of all groups: Σ(W_g − N_g/2)²/(N_g/4), and that times (G−1)/G, which is χ²(G−1).

    The win of one group is the loss of another: without the factor the test rejects 12 % at 5 %.
    """
    wins, shown = choices.wins()
    wins, shown = wins[shown > 0], shown[shown > 0]
    groups = shown.size
    plain = float(np.sum((wins - shown / 2) ** 2 / (shown / 4)))
    return plain, _chi_square(plain * (groups - 1) / groups if groups else 0.0, max(groups - 1, 0))


def no_choice_by_pair(choices: Choices) -> ChiSquare:
    """Pearson's χ² of *no choice was read* (neither, unparsable, refused) against the pair offered."""
    low, high = np.minimum(choices.first, choices.second), np.maximum(choices.first, choices.second)
    pair = cross([low, high], low.size)
    asked = np.bincount(pair).astype(np.float64)
    without = np.bincount(pair, ~choices.decided)
    share = float(without.sum() / asked.sum())
    if share in {0.0, 1.0}:
        return _chi_square(0.0, asked.size - 1)
    return _chi_square(float(np.sum((without - asked * share) ** 2 / (asked * share * (1 - share)))), asked.size - 1)
