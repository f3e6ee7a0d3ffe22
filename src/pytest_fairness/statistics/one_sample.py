"""Student's t on one column of independent numbers, with a defined answer where the spread is zero.

Every comparison that has already been reduced to one number a cluster (a persona's change, a block's
difference between two arms, a pair's win rate less one half) ends here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

Alternative = Literal["two-sided", "less", "greater"]

DUST = 1e-12
"""Relative size under which a spread or a mean is rounding, not data: averages of equal scores differ by
less."""


@dataclass(frozen=True, slots=True)
class OneSampleT:
    """A one-sample t: ``mean`` and ``sd`` in the unit of the data, ``df`` = ``n`` − 1, ``t`` may be infinite.

    With fewer than two numbers there is no spread to judge by: ``se`` is infinite and ``p`` is 1.
    """

    n: int
    mean: float
    sd: float
    se: float
    t: float
    df: int
    p: float

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The two-sided interval of the mean; ``(mean, mean)`` where the spread is zero, infinite for n <
        2."""
        reach = t_quantile((1 + confidence) / 2, self.df) * self.se if self.se else 0.0
        return self.mean - reach, self.mean + reach


def t_quantile(probability: float, df: float) -> float:
    """The quantile of Student's t; the widest conceivable, infinity, where there are no degrees of
    freedom."""
    return float(stdtrit(df, probability)) if df > 0 else math.inf


def one_sample_t(
    values: Sequence[float] | npt.NDArray[np.float64], alternative: Alternative = "two-sided"
) -> OneSampleT:
    """Test that the mean of *values* (finite, one per independent unit) is 0.

    Zero spread: two-sided p is 1 if the mean is 0 and 0 otherwise; one-sided p is 0 where the mean lies on
    the side of *alternative* and 1 otherwise.
    """
    data = np.asarray(values, dtype=float)
    n = len(data)
    if n < 2:
        return OneSampleT(n, float(data[0]) if n else 0.0, 0.0, math.inf, 0.0, 0, 1.0)
    mean, sd = float(data.mean()), float(data.std(ddof=1))
    scale = float(np.abs(data).max())
    mean = 0.0 if abs(mean) <= DUST * scale else mean
    if sd <= DUST * scale:
        t = math.copysign(math.inf, mean) if mean else 0.0
        return OneSampleT(n, mean, 0.0, 0.0, t, n - 1, _p_without_spread(mean, alternative))
    se = sd / math.sqrt(n)
    return OneSampleT(n, mean, sd, se, mean / se, n - 1, _p(mean / se, n - 1, alternative))


def _p(t: float, df: int, alternative: Alternative) -> float:
    if alternative == "two-sided":
        return min(1.0, 2 * float(stdtr(df, -abs(t))))
    return float(stdtr(df, t if alternative == "less" else -t))


def _p_without_spread(mean: float, alternative: Alternative) -> float:
    found = {"two-sided": mean != 0, "less": mean < 0, "greater": mean > 0}[alternative]
    return 0.0 if found else 1.0
