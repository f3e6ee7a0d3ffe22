"""Correction for many comparisons. One family an assertion: all its pairs and gating metrics together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_fairness.errors import UsageError
from pytest_fairness.statistics.frames import Floats

METHODS = ("bonferroni", "holm", "fdr_bh")


def correct(p_values: Sequence[float] | Floats, method: str = "bonferroni", size: int | None = None) -> Floats:
    """Adjusted p-values in the given order, at most 1.

    ``bonferroni``: m·p. ``holm`` (Holm 1979): step-down, never less powerful. ``fdr_bh`` (Benjamini &
    Hochberg 1995): step-up, controls the false discovery rate. NaN counts as 1 and stays in the family.
    *size* is the number of tests in the family where it is larger than the number of p-values given (the
    absent count as 1). Raises UsageError for another method.
    """
    if method not in METHODS:
        raise UsageError(f"unknown correction {method!r}; it is one of {', '.join(METHODS)}")
    p = np.clip(np.nan_to_num(np.asarray(p_values, dtype=np.float64), nan=1.0), 0.0, 1.0)
    if p.size == 0:
        return p
    m = max(p.size, size or 0)
    if method == "bonferroni":
        return np.minimum(p * m, 1.0)
    order = np.argsort(p, kind="stable")
    ranked = p[order]
    if method == "holm":
        steps = np.maximum.accumulate(ranked * (m - np.arange(p.size)))
    else:
        steps = np.minimum.accumulate((ranked * m / np.arange(1, p.size + 1))[::-1])[::-1]
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted
