"""The mean over pairs of names that meet several others: each name is a unit, a pair is not."""

from __future__ import annotations

import numpy as np

from pytest_fairness.statistics.arrays import Floats, Ints
from pytest_fairness.statistics.choices import cross


def two_way_mean(of_a: Ints, of_b: Ints, values: Floats) -> tuple[float, float, float]:
    """Mean over the pairs of *values*, its standard error, and df; *of_a* and *of_b* are the names of each row.

    The variance is that of the two-way layout, names of A + names of B − pairs, at least the largest of the
    three (Cameron, Gelbach & Miller 2011, Journal of Business & Economic Statistics 29:238), df the smaller number
    of names − 1.
    """
    _, square_a, count_a = cluster_means(of_a, values)
    _, square_b, count_b = cluster_means(of_b, values)
    mean, square_pair, _ = cluster_means(cross([of_a, of_b], values.size), values)
    square = max(square_a, square_b, square_pair, square_a + square_b - square_pair)
    return mean, float(np.sqrt(square)), float(min(count_a, count_b) - 1)


def cluster_means(codes: Ints, values: Floats) -> tuple[float, float, int]:
    """Mean of the cluster means, the variance of that mean, and the number of clusters."""
    _, at = np.unique(codes, return_inverse=True)
    means = np.bincount(at, values) / np.bincount(at)
    mean = float(means.mean())
    square = float(means.var(ddof=1)) / means.size if means.size > 1 else 0.0
    return (0.0 if abs(mean) < 1e-12 else mean), (0.0 if square < 1e-24 else square), means.size
