"""The smallest effect that a comparison of this size finds four times in five."""

from __future__ import annotations

import numpy as np

from pytest_fairness.statistics.clusters import t_quantile
from pytest_fairness.statistics.frames import Floats

POWER = 0.8


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

    With K₁ = K₂ = K this is √(2(ICC+(1−ICC)/m_c)/K). A negative or unknown ICC counts as 0. NaN where there
    are fewer than three clusters in all, which leaves no degree of freedom to speak of.
    """
    df = clusters_1 + clusters_2 - 2
    rho = np.maximum(np.nan_to_num(icc, nan=0.0), 0.0)
    spread = (rho + (1 - rho) / np.maximum(rows_per_cluster, 1.0)) * (
        1 / np.maximum(clusters_1, 1.0) + 1 / np.maximum(clusters_2, 1.0)
    )
    reach = t_quantile(df, 1 - alpha / (2 * max(family_size, 1))) + t_quantile(df, power)
    return np.where(df >= 1, reach, np.nan) * np.sqrt(spread)
