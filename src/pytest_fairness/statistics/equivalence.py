"""Two one-sided tests on cluster means (Schuirmann 1987): is the difference smaller than a margin?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from pytest_fairness.statistics.clusters import (
    TINY,
    Pairs,
    cluster_means,
    contrast,
    partner_sizes,
    t_quantile,
    two_sided_t,
)
from pytest_fairness.statistics.frames import Bools, Floats
from pytest_fairness.statistics.layout import Layout


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
    groups, blocks = layout.count.shape
    group, block = layout.cell_group, layout.cell_block
    total = layout.by_cell(layout.values)
    sums = np.bincount(group * blocks + block, total, groups * blocks).reshape(groups, blocks)
    mean: Floats = np.asarray(sums / np.maximum(layout.count, 1.0), dtype=np.float64)
    sizes = partner_sizes(layout)
    n = layout.cell_size if sizes is None else sizes
    # The middle of the two groups' means in the block, so that neither group's size pulls it.
    cells = np.where(n > 0, total - n * (mean[group, block] + mean[:, block]) / 2, 0.0)
    scale = max(float(np.max(np.abs(layout.values))), 1e-300)
    found = contrast(layout, pairs, *cluster_means(layout, cells, sizes), scale)
    s, s_df, n1, n2 = _spread(layout, pairs, mean, scale)
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


def _spread(layout: Layout, pairs: Pairs, mean: Floats, scale: float) -> tuple[Floats, Floats, Floats, Floats]:
    """SD within group × block over the blocks of both groups, its df, and the rows of each group there.

    Within groups alone where (nearly) every group × block holds a single row.
    """
    groups, blocks = layout.count.shape
    i, j = pairs.first, pairs.second
    at = layout.row_group * blocks + layout.row_block
    within = np.bincount(at, (layout.values - mean.ravel()[at]) ** 2, groups * blocks).reshape(groups, blocks)
    here = (layout.count > 0).astype(np.float64)
    squares, rows, common = within @ here.T, layout.count @ here.T, here @ here.T
    n1, n2 = rows[i, j], rows[j, i]
    df = n1 + n2 - 2 * common[i, j]
    pooled = (squares[i, j] + squares[j, i]) / np.maximum(df, 1.0)
    centre = np.add.reduceat(layout.values, layout.group_start) / layout.sizes
    whole = np.add.reduceat((layout.values - centre[layout.row_group]) ** 2, layout.group_start)
    sizes = layout.sizes
    plain_df = sizes[i] + sizes[j] - 2
    plain = (whole[i] + whole[j]) / np.maximum(plain_df, 1.0)
    enough = df * 10 >= n1 + n2 - 2
    s = np.sqrt(np.where(enough, pooled, plain))
    return np.where(s < TINY * scale, 0.0, s), np.where(enough, df, plain_df), n1, n2
