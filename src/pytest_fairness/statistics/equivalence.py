"""Two one-sided tests on cluster means (Schuirmann 1987): is the difference smaller than a margin?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from pytest_fairness.statistics.clusters import t_quantile, two_sided_t
from pytest_fairness.statistics.comparison import Comparison
from pytest_fairness.statistics.frames import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """Arrays of length P, one entry a pair; ``error``, ``low``, ``high`` and ``margin`` in the outcome's own unit.

    ``p_tost`` is the larger of the two one-sided p-values, ``p_difference`` that of the two-sided test of no
    difference. ``low`` and ``high`` are the 1 − 2α interval that lies inside the margin iff ``p_tost`` < α. Errors are
    infinite where there is nothing to tell them from.
    """

    error: Floats
    df: Floats
    low: Floats
    high: Floats
    margin: Floats
    p_lower: Floats
    p_upper: Floats
    p_tost: Floats
    p_difference: Floats


def two_one_sided(comparison: Comparison, margin: float, *, on_d: bool, alpha: float) -> Equivalence:
    """Test every pair against ±*margin*, given in the outcome's unit or (*on_d*) in standard deviations.

    Zero variance: p is 0 inside the margin and 1 outside it.
    """
    difference, df = comparison.difference, np.maximum(comparison.difference_df, 1e-9)
    apart = comparison.rows.min(axis=1) == 0
    error = np.where(apart | np.isnan(comparison.error), np.inf, comparison.error)
    unit = comparison.beside["standardiser_sd"]
    # A difference of g standard deviations is g·s/J in the outcome's own unit.
    unit = unit / (1 - 3 / np.maximum(4 * comparison.beside["standardiser_df"] - 1, 4.0))
    bound = margin * unit if on_d else np.full(difference.size, float(margin))
    p_lower, p_upper = _one_sided(difference + bound, error, df), _one_sided(bound - difference, error, df)
    reach = np.where(error > 0, t_quantile(comparison.difference_df, 1 - alpha) * np.where(error > 0, error, 1.0), 0.0)
    return Equivalence(
        error=error,
        df=df,
        low=difference - reach,
        high=difference + reach,
        margin=bound,
        p_lower=p_lower,
        p_upper=p_upper,
        p_tost=np.maximum(p_lower, p_upper),
        p_difference=np.where(apart, 1.0, two_sided_t(difference, error, df)),
    )


def _one_sided(distance: Floats, error: Floats, df: Floats) -> Floats:
    """P(T > distance/error): small where the estimate lies well inside the bound."""
    zero = error == 0
    t = distance / np.where(zero, 1.0, error)
    return np.where(zero, np.where(distance > 0, 0.0, 1.0), stdtr(df, -t))
