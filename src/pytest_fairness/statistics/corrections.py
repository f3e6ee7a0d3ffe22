"""Correction for many comparisons, one family an assertion; and the smallest effect that so many
find.

Benjamini & Hochberg is ``multipletests`` of statsmodels. Holm and Bonferroni, which nearly every
session needs, equal it without its import.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_fairness.errors import UsageError
from pytest_fairness.statistics.arrays import Floats, Ints
from pytest_fairness.statistics.clusters import t_quantile

METHODS = ("bonferroni", "holm", "fdr_bh")
POWER = 0.8


def correct(
    p_values: Sequence[float] | Floats, method: str = "bonferroni", size: int | None = None
) -> Floats:
    """Adjusted p-values in the given order, at most 1, by Bonferroni, Holm (1979) or Benjamini &
    Hochberg (1995).

    NaN counts as 1 and stays in the family. *size* is the number of tests in the family where it is
    larger than the number of p-values given (the absent count as 1). Raises UsageError for another
    method.
    """
    if method not in METHODS:
        raise UsageError(f"unknown correction {method!r}; it is one of {', '.join(METHODS)}")
    p = _usable(p_values)
    absent = max((size or 0) - p.size, 0)
    if method == "bonferroni" or p.size == 0:
        return np.minimum(p * (p.size + absent), 1.0)
    if method == "fdr_bh":
        # Half a second, which only who asks for it pays.
        from statsmodels.stats.multitest import multipletests

        family = np.concatenate([p, np.ones(absent)])
        return np.asarray(multipletests(family, method="fdr_bh")[1][: p.size])
    # For Holm multipletests collects garbage in each call, 50 ms in a session with pandas.
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(
        np.maximum.accumulate(p[order] * (p.size + absent - np.arange(p.size))), 1.0
    )
    return adjusted


def _usable(p_values: Sequence[float] | Floats) -> Floats:
    """Return the p-values within 0 and 1; NaN counts as 1."""
    return np.clip(np.nan_to_num(np.asarray(p_values, dtype=np.float64), nan=1.0), 0.0, 1.0)


def correct_parts(p_values: Floats, parts: Ints, number: int) -> Floats:
    """Adjusted p-values, at most 1, of tests that stand in *number* parts of a table: Benjamini &
    Hochberg (1995) over the parts, Bonferroni within each.

    *parts* is the code of each test's part. A part counts with the smallest p of its tests times
    how many these are; a further test in it as a part with that p would (Benjamini & Bogomolov
    2014, Selective inference on multiple families of hypotheses). NaN counts as 1, as does a part
    without a test.
    """
    p = _usable(p_values)
    within = np.minimum(p * np.bincount(parts, minlength=number)[parts], 1.0)
    smallest = np.ones(number)
    np.minimum.at(smallest, parts, within)
    ordered = np.sort(smallest)
    steps = ordered * number / np.arange(1, number + 1)
    further = np.append(np.minimum.accumulate(steps[::-1])[::-1], np.inf)
    rank = np.searchsorted(ordered, within, side="right")
    adjusted: Floats = np.minimum(np.minimum(within * number / rank, further[rank]), 1.0)
    return adjusted


def minimum_detectable_effect(
    clusters_1: Floats,
    clusters_2: Floats,
    rows_per_cluster: Floats,
    icc: Floats,
    *,
    family_size: int = 1,
    alpha: float = 0.05,
    power: float = POWER,
) -> Floats:
    """(t_{1−α/2m} + t_power)·√((ICC + (1−ICC)/m_c)·(1/K₁ + 1/K₂)), df K₁+K₂−2, on the d scale.

    A negative or unknown ICC counts as 0. NaN where there are fewer than three clusters in all.
    """
    df = clusters_1 + clusters_2 - 2
    rho = np.maximum(np.nan_to_num(icc, nan=0.0), 0.0)
    spread = (rho + (1 - rho) / np.maximum(rows_per_cluster, 1.0)) * (
        1 / np.maximum(clusters_1, 1.0) + 1 / np.maximum(clusters_2, 1.0)
    )
    reach = t_quantile(df, 1 - alpha / (2 * max(family_size, 1))) + t_quantile(df, power)
    return np.where(df >= 1, reach, np.nan) * np.sqrt(spread)
