"""What one metric says about every pair of groups: the shape that all kinds of outcome come in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pytest_fairness.statistics.clusters import Contrast, Pairs, intraclass, t_quantile
from pytest_fairness.statistics.frames import Bools, Floats
from pytest_fairness.statistics.layout import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Arrays of length P, one entry a pair.

    ``p_value`` is max(p_row, p_cluster), or p_row alone where ``labels`` (a group has one cluster,
    p_cluster NaN). ``effect`` with its 90 % interval ``low``–``high`` is on the d scale, positive where the
    first group is higher. ``difference`` with its 90 % interval is in the outcome's own unit. ``ragged`` is
    the share of a pair's rows in blocks that lack a group, ``constant`` whether neither group varies.
    ``icc`` and ``per_cluster`` feed the minimum detectable effect. ``beside`` holds what is reported and
    decides nothing, ``omnibus`` what is said of all groups together; ``statistic`` names and gives the row
    test's statistic.
    """

    pairs: Pairs
    test: tuple[str, ...]
    effect_name: str
    p_row: Floats
    p_cluster: Floats
    p_value: Floats
    effect: Floats
    low: Floats
    high: Floats
    difference: Floats
    difference_low: Floats
    difference_high: Floats
    clusters_1: Floats
    clusters_2: Floats
    labels: Bools
    ragged: Floats
    constant: Bools
    icc: Floats
    per_cluster: Floats
    statistic: tuple[str, Floats]
    beside: Mapping[str, Floats]
    omnibus: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike rows of one cluster are: the ICC in each group and on average, and rows a cluster; one entry a pair."""

    icc_1: Floats
    icc_2: Floats
    icc: Floats
    per_cluster: Floats

    @property
    def told(self) -> dict[str, Floats]:
        """What is reported of it."""
        return {"icc_1": self.icc_1, "icc_2": self.icc_2, "icc": self.icc}


def likeness(layout: Layout, squares: Floats, cells: Floats, sizes: Floats | None, pairs: Pairs) -> Likeness:
    """From the sums and sums of squares of each cell; NaN, and one row a cluster, where rows stand for themselves."""
    if layout.own_rows:
        nothing = np.full(pairs.first.size, np.nan)
        return Likeness(nothing, nothing, nothing, np.ones(nothing.size))
    first, second, per_1, per_2 = intraclass(layout, squares, cells, sizes, pairs)
    known = (~np.isnan(first)).astype(np.float64) + ~np.isnan(second)
    total = np.nan_to_num(first) + np.nan_to_num(second)
    return Likeness(first, second, np.where(known > 0, total / np.maximum(known, 1.0), np.nan), (per_1 + per_2) / 2)


def compared(
    layout: Layout,
    pairs: Pairs,
    contrast: Contrast,
    half: Floats,
    *,
    test: tuple[str, ...],
    p_values: tuple[Floats, Floats],
    effect_name: str,
    effect: tuple[Floats, Floats, Floats],
    constant: Bools,
    alike: Likeness,
    statistic: tuple[str, Floats],
    beside: Mapping[str, Floats],
    omnibus: Mapping[str, float],
) -> Comparison:
    """A comparison whose difference is *contrast* ± *half*, from p of rows and clusters, and effect, low and high."""
    p_row, p_cluster = p_values
    return Comparison(
        pairs=pairs,
        test=test,
        effect_name=effect_name,
        p_row=p_row,
        p_cluster=p_cluster,
        p_value=combine(p_row, p_cluster),
        effect=effect[0],
        low=effect[1],
        high=effect[2],
        difference=contrast.difference,
        difference_low=contrast.difference - half,
        difference_high=contrast.difference + half,
        clusters_1=contrast.clusters_1,
        clusters_2=contrast.clusters_2,
        labels=np.isnan(p_cluster),
        ragged=ragged_share(layout, pairs),
        constant=constant,
        icc=alike.icc,
        per_cluster=alike.per_cluster,
        statistic=statistic,
        beside=beside,
        omnibus=omnibus,
    )


def ragged_share(layout: Layout, pairs: Pairs) -> Floats:
    """Share of a pair's rows that stand in blocks which lack one of the two groups."""
    n1, n2 = layout.count[pairs.first], layout.count[pairs.second]
    total = (n1 + n2).sum(axis=1)
    kept = np.where((n1 > 0) & (n2 > 0), n1 + n2, 0.0).sum(axis=1)
    return np.asarray(1 - kept / np.maximum(total, 1.0))


def extremes(layout: Layout) -> tuple[Floats, Floats]:
    """Lowest and highest value of each group (shifted by the layout's reference)."""
    low = np.minimum.reduceat(layout.values, layout.group_start)
    return low, np.maximum.reduceat(layout.values, layout.group_start)


def combine(p_row: Floats, p_cluster: Floats) -> Floats:
    """max(p_row, p_cluster); p_row where there is no p_cluster."""
    return np.where(np.isnan(p_cluster), p_row, np.maximum(p_row, np.nan_to_num(p_cluster, nan=0.0)))


def interval(contrast: Contrast, row_error: Floats, row_df: Floats, confidence: float = 0.90) -> Floats:
    """Half-width of the interval of the contrast.

    From the clusters; where a group has only one, from the rows: such a result is about those labels.
    """
    rows = np.isnan(contrast.error)
    error = np.where(rows, row_error, np.nan_to_num(contrast.error))
    df = np.where(rows, row_df, contrast.interval_df)
    quantile = t_quantile(df, 0.5 + confidence / 2)
    return np.where(error > 0, quantile * np.where(error > 0, error, 1.0), 0.0)


def ratio_or_infinite(top: Floats, bottom: Floats) -> Floats:
    """top/bottom; where bottom is 0: 0 for top 0, else ±∞."""
    safe = np.where(bottom > 0, bottom, 1.0)
    return np.where(bottom > 0, top / safe, np.where(top == 0, 0.0, np.copysign(np.inf, top)))
