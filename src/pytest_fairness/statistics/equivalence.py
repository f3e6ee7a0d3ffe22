"""Two one-sided tests on cluster means (Schuirmann 1987): is the difference smaller than a margin?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from pytest_fairness.statistics.clusters import (
    Pairs,
    cluster_means,
    contrast,
    partner_sizes,
    t_quantile,
    two_sided_t,
)
from pytest_fairness.statistics.frames import Bools, Floats
from pytest_fairness.statistics.layout import Layout
from pytest_fairness.statistics.moments import aligned_values, read_moments, standardiser


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """Arrays of length P, one entry a pair; ``difference``, ``error``, ``low``, ``high`` and ``margin`` in
    the outcome's own unit.

    ``p_tost`` is the larger of the two one-sided p-values, ``p_difference`` that of the two-sided test of no
    difference. ``low`` and ``high`` are the 1 − 2α interval that lies inside the margin iff ``p_tost`` < α.
    ``labels`` marks pairs in which a group has one cluster, compared on rows. ``d_unit`` is what one d is
    worth: s/J of Hedges g. Errors are infinite where there is nothing to tell them from.
    """

    difference: Floats
    error: Floats
    df: Floats
    low: Floats
    high: Floats
    margin: Floats
    p_lower: Floats
    p_upper: Floats
    p_tost: Floats
    p_difference: Floats
    labels: Bools
    d_unit: Floats


def two_one_sided(layout: Layout, pairs: Pairs, margin: float, *, on_d: bool, alpha: float) -> Equivalence:
    """Test every pair against ±*margin*, given in the outcome's unit or (*on_d*) in standard deviations.

    The standard error and df are those of cluster means within blocks: Student's for equal numbers of
    clusters, Welch's otherwise, one-sample for shared clusters. Zero variance: p is 0 inside the margin and
    1 elsewhere.
    """
    scale = max(float(np.max(np.abs(layout.values))), 1e-300)
    moments = read_moments(layout, scale)
    sizes = partner_sizes(layout)
    cells, _ = aligned_values(layout, moments, sizes)
    found = contrast(layout, pairs, *cluster_means(layout, cells, sizes), scale)
    spread = standardiser(layout, pairs, moments, scale)
    n1, n2, s = spread.n1, spread.n2, spread.sd
    # Where the SD is that within groups, all their rows stand behind it, those of other blocks too.
    s_df = np.where(spread.within, spread.df, layout.sizes[pairs.first] + layout.sizes[pairs.second] - 2)
    labels = np.isnan(found.error)
    row_error = np.where(s_df > 0, s * np.sqrt(1 / np.maximum(n1, 1) + 1 / np.maximum(n2, 1)), np.inf)
    error = np.where(labels, row_error, np.nan_to_num(found.error))
    df = np.where(labels, np.maximum(s_df, 1.0), found.df)
    apart = (n1 == 0) | (n2 == 0)
    error = np.where(apart, np.inf, error)
    d_unit = s / (1 - 3 / np.maximum(4 * s_df - 1, 4.0))
    bound = margin * d_unit if on_d else np.full(s.size, float(margin))
    difference = np.where(apart, 0.0, found.difference)
    p_lower = _one_sided(difference + bound, error, df)
    p_upper = _one_sided(bound - difference, error, df)
    reach = np.where(error > 0, t_quantile(df, 1 - alpha) * np.where(error > 0, error, 1.0), 0.0)
    return Equivalence(
        difference=difference,
        error=error,
        df=df,
        low=difference - reach,
        high=difference + reach,
        margin=bound,
        p_lower=p_lower,
        p_upper=p_upper,
        p_tost=np.maximum(p_lower, p_upper),
        p_difference=np.where(apart, 1.0, two_sided_t(difference, error, df)),
        labels=labels,
        d_unit=d_unit,
    )


def _one_sided(distance: Floats, error: Floats, df: Floats) -> Floats:
    """P(T > distance/error): small where the estimate lies well inside the bound."""
    zero = error == 0
    t = distance / np.where(zero, 1.0, error)
    return np.where(zero, np.where(distance > 0, 0.0, 1.0), stdtr(np.maximum(df, 1e-9), -t))
