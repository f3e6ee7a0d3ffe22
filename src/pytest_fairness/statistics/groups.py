"""Each group as it was found: mean or rate with an interval that treats the cluster as the unit."""

from __future__ import annotations

import numpy as np

from pytest_fairness.model import GroupResult, OutcomeKind
from pytest_fairness.statistics.clusters import t_quantile
from pytest_fairness.statistics.frames import Floats, Ints
from pytest_fairness.statistics.layout import Layout
from pytest_fairness.statistics.proportions import wilson
from pytest_fairness.statistics.shift import medians_in_place

RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)


def describe_groups(
    labels: tuple[str, ...],
    layout: Layout | None,
    present: Ints,
    kind: OutcomeKind,
    categories: tuple[str, ...] = (),
    *,
    refused: Ints,
    undetermined: Ints,
    unscored: Ints,
    has_refusals: bool,
    refused_count: bool = False,
) -> tuple[GroupResult, ...]:
    """One result a label. *present* holds the labels' codes that have scored rows, in the layout's order; the
    counts have one entry a label. *refused_count*: what is refused is among the scored rows."""
    mean = low = high = spread = np.full(present.size, np.nan)
    clusters = [0] * present.size
    if layout is not None:
        mean, low, high, spread = summarise(layout, kind)
        clusters = layout.clusters.tolist()
    place = {int(code): at for at, code in enumerate(present)}
    results = []
    for code, label in enumerate(labels):
        at = place.get(code)
        rows = np.zeros(0)
        if layout is not None and at is not None:
            rows = layout.values[layout.rows_of(at)] + layout.reference
        n, gone, no = rows.size, int(refused[code]), int(unscored[code])
        answered = n - gone if kind is OutcomeKind.REFUSAL else n + no - gone * refused_count
        labelled = kind is OutcomeKind.CATEGORICAL
        scored = at is not None and not labelled
        results.append(
            GroupResult(
                group=label,
                n=n,
                clusters=0 if at is None else clusters[at],
                value=_finite(mean, at, scored),
                low=_finite(low, at, scored),
                high=_finite(high, at, scored),
                sd=_finite(spread, at, scored),
                median=float(medians_in_place(rows[None, :])[0]) if scored and kind not in RATES else None,
                refused=gone,
                undetermined=int(undetermined[code]),
                unscored=no,
                refusal_rate=gone / (gone + answered) if has_refusals and gone + answered else None,
                shares=_shares(rows, categories) if labelled and at is not None else {},
            )
        )
    return tuple(results)


def summarise(layout: Layout, kind: OutcomeKind) -> tuple[Floats, Floats, Floats, Floats]:
    """Mean, 95 % interval and SD of each group (length G); NaN where there is nothing to tell it from.

    Scores: t on cluster means, df K−1, centred on the mean of the rows; from the rows where there is one
    cluster. Rates: Wilson's interval on n/deff rows with that t (after Korn & Graubard 1998).
    """
    n, k = layout.sizes, layout.clusters.astype(np.float64)
    mean = np.add.reduceat(layout.values, layout.group_start) / n
    residual = layout.values - np.repeat(mean, n.astype(np.intp))
    variance = np.add.reduceat(residual**2, layout.group_start) / np.maximum(n - 1, 1.0)
    means = layout.by_cluster(layout.by_cell(layout.values)) / layout.by_cluster(layout.cell_size)
    centre = layout.clusters_by_group(means) / k
    between = layout.clusters_by_group((means - centre[layout.cluster_group]) ** 2) / np.maximum(k - 1, 1.0)
    square = np.where(k >= 2, between / k, variance / n)
    df = np.where(k >= 2, k - 1, n - 1)
    quantile = t_quantile(df, 0.975)
    value = mean + layout.reference
    known = df >= 1
    if kind in RATES:
        plain = value * (1 - value) / n
        inflation = np.maximum(np.where(plain > 0, square / np.where(plain > 0, plain, 1.0), 1.0), 1.0)
        size = n / inflation
        low, high = wilson(value * size, size, np.where(known, quantile, 2.0))
    else:
        reach = np.where(known, quantile, 0.0) * np.sqrt(square)
        low, high = value - reach, value + reach
    gone = np.where(known, 0.0, np.nan)
    return value, low + gone, high + gone, np.sqrt(variance) + np.where(n >= 2, 0.0, np.nan)


def _finite(values: Floats, at: int | None, scored: bool) -> float | None:
    return float(values[at]) if scored and at is not None and np.isfinite(values[at]) else None


def _shares(rows: Floats, categories: tuple[str, ...]) -> dict[str, float]:
    counts = np.bincount(rows.astype(np.intp), minlength=len(categories))
    return {name: float(count) / rows.size for name, count in zip(categories, counts.tolist(), strict=True)}
