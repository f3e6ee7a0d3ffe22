"""Labels as outcomes: Pearson's chi-square, its design-corrected F on clusters, Cramér's V on the d
scale.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, fdtrc, gammaincc

from pytest_fairness.statistics.arrays import Bools, Floats, Ints, sums
from pytest_fairness.statistics.clusters import Terms
from pytest_fairness.statistics.layout import Layout, Pairs
from pytest_fairness.statistics.pair_table import (
    LEAST_ROWS,
    PairTable,
    Strata,
    combine,
    combine_in_block,
    constant_pairs,
    ragged_share,
)
from pytest_fairness.statistics.proportions import FEW

RESAMPLES = 2000
PERMUTATIONS = 9999
#: Drawn first of a block by itself: where so large a share of them lies beyond, no more are drawn.
_FIRST_PERMUTATIONS = 999
_CLEARLY_CHANCE = 0.1
#: A tail that was fitted is taken to be so many times as heavy.
_CAUTION = 10.0


def compare_categories(layout: Layout, pairs: Pairs, categories: int, terms: Terms) -> PairTable:
    """Compare every pair of groups on an outcome coded 0 … *categories*−1.

    ``p_row``: chi-square of the 2×C table without its empty columns, or a permutation p of the same
    table where an expected count is under 5. ``p_cluster``: F on chi-square/(deff·(C−1)). The
    effect 2V/√(1−V²) is never negative, V that of the table in which both groups weigh the same;
    its interval is a percentile bootstrap over clusters. Both are seeded by the *terms*.
    """
    seed = terms.seed
    i = pairs.first
    j = pairs.second
    codes = np.rint(layout.values + layout.reference).astype(np.intp)
    width = max(categories, int(codes.max()) + 1)
    places = (
        np.repeat(np.arange(layout.cell_start.size), layout.cell_size.astype(np.intp)) * width
        + codes
    )
    by_cell = sums(places, None, layout.cell_start.size * width).reshape(-1, width)
    by_cluster = layout.by_cluster(by_cell.T).T
    counts = layout.clusters_by_group(by_cluster.T).T  # G × C
    comparison = _compare(by_cluster, layout.cluster_group, counts, i, j, seed)
    alone = np.isnan(comparison.p_cluster)
    v = balanced_v(comparison.tables)
    effect = d_of_v(v)
    low, high = _bootstrap(layout, by_cluster, counts, pairs, alone, seed, terms.confidence)
    constant, _ = constant_pairs(layout, pairs)
    endless = constant & (comparison.chi2 > 0)
    ends = (effect, np.minimum(low, effect), np.maximum(high, effect))
    effect, low, high = (np.where(endless, np.inf, end)[:, None] for end in ends)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    gap = shares[i] - shares[j]
    largest = np.argmax(np.abs(gap), axis=1)
    clusters = np.stack([layout.clusters[i], layout.clusters[j]], axis=1).astype(np.float64)
    rows = comparison.tables.sum(axis=2)
    raw_v = np.sqrt(comparison.chi2 / np.maximum(rows.sum(axis=1), 1.0))
    return PairTable(
        first=i,
        second=j,
        own_rows=layout.own_rows,
        test=np.where(comparison.poor, "Fisher by permutation", "chi-square").astype(object)
        + np.where(alone, "", ", and design-corrected F").astype(object),
        p_row=comparison.p_row,
        p_cluster=comparison.p_cluster,
        p_value=combine(comparison.p_row, comparison.p_cluster),
        df=clusters.sum(axis=1) - 2,
        effect_names=("d from Cramér's V",),
        effect=effect,
        low=low,
        high=high,
        difference=gap[np.arange(i.size), largest],
        rows=rows,
        units=clusters,
        alone=alone,
        ragged=ragged_share(layout, pairs),
        constant=constant,
        part_clusters=clusters.min(axis=1),
        per_cluster=(layout.sizes[i] / clusters[:, 0] + layout.sizes[j] / clusters[:, 1]) / 2,
        statistic="chi-square",
        value_of_test=comparison.chi2,
        figures={
            "n_1": rows[:, 0],
            "n_2": rows[:, 1],
            "spec_chi2": comparison.chi2,
            "spec_df": comparison.df,
            "spec_p_value": np.where(
                comparison.df > 0, chdtrc(np.maximum(comparison.df, 1.0), comparison.chi2), 1.0
            ),
            "spec_effect": d_of_v(raw_v),
            "cramers_v": raw_v,
            "cramers_v_balanced": v,
            "smallest_expected_count": comparison.expected,
            "design_effect": comparison.inflation,
            "largest_gap_category": largest.astype(np.float64),
        },
        omnibus=_omnibus(counts),
        strata=_each_block(layout, pairs, by_cell, seed),
    )


class _Compared(NamedTuple):
    """The tables of the pairs (P × 2 × C), chi-square, df, p on rows, the smallest expected count
    and whether it is too small, p on the clusters (NaN where a group has one), and what they
    inflate chi-square by."""

    tables: Floats
    chi2: Floats
    df: Floats
    p_row: Floats
    expected: Floats
    poor: Bools
    p_cluster: Floats
    inflation: Floats


def _compare(
    by_cluster: Floats,
    group: Ints,
    counts: Floats,
    i: Ints,
    j: Ints,
    seed: int,
    *,
    first: int = PERMUTATIONS,
) -> _Compared:
    tables = np.stack([counts[i], counts[j]], axis=1)
    chi2, used = chi_square(tables)
    df = np.maximum(used - 1, 0.0)
    freedom = np.maximum(df, 1.0)
    p_row = np.where(df > 0, chdtrc(freedom, chi2), 1.0)
    columns = tables.sum(axis=1)
    least = np.where(columns > 0, columns, np.inf).min(axis=1)
    expected = tables.sum(axis=2).min(axis=1) * least / np.maximum(tables.sum(axis=(1, 2)), 1.0)
    poor = (expected < FEW) & (df > 0)
    for at in np.flatnonzero(poor).tolist():
        p_row[at] = _permuted(tables[at], float(chi2[at]), seed + at, first=first)
    k = sums(group, None, len(counts))
    inflation = clustering(by_cluster, group, counts, i, j, used)
    p = fdtrc(freedom, np.maximum(df * (k[i] + k[j] - 2), 1.0), chi2 / (inflation * freedom))
    p_cluster = np.where(np.minimum(k[i], k[j]) >= 2, np.where(df > 0, p, 1.0), np.nan)
    return _Compared(tables, chi2, df, p_row, expected, poor, p_cluster, inflation)


def _each_block(layout: Layout, pairs: Pairs, by_cell: Floats, seed: int) -> Strata | None:
    """Each block by itself, where there are several: p and V; without an interval."""
    strata: list[Strata] = []
    for block in range(layout.blocks) if layout.blocks > 1 else ():
        here = layout.cell_block == block
        size = layout.count[:, block]
        place = np.flatnonzero(np.minimum(size[pairs.first], size[pairs.second]) >= LEAST_ROWS)
        if place.size:
            by_group = np.zeros((layout.groups, by_cell.shape[1]))
            np.add.at(by_group, layout.cell_group[here], by_cell[here])
            i = pairs.first[place]
            j = pairs.second[place]
            comparison = _compare(
                by_cell[here],
                layout.cell_group[here],
                by_group,
                i,
                j,
                seed + block,
                first=_FIRST_PERMUTATIONS,
            )
            unknown = np.full((place.size, 1), np.nan)
            strata.append(
                Strata(
                    pair=place,
                    block=np.full(place.size, block),
                    rows=comparison.tables.sum(axis=2),
                    means=np.repeat(unknown, 2, axis=1),
                    p_value=combine_in_block(comparison.p_row, comparison.p_cluster),
                    effect=d_of_v(balanced_v(comparison.tables))[:, None],
                    low=unknown,
                    high=unknown,
                )
            )
    if strata:
        return Strata(*map(np.concatenate, zip(*strata, strict=True)))
    return None


def chi_square(tables: Floats) -> tuple[Floats, Floats]:
    """Pearson's chi-square of each table (P × R × C) and its number of columns that are not empty."""
    columns = tables.sum(axis=1, keepdims=True)
    rows = tables.sum(axis=2, keepdims=True)
    total = np.maximum(tables.sum(axis=(1, 2), keepdims=True), 1.0)
    expected = rows * columns / total
    safe = np.where(expected > 0, expected, 1.0)
    return np.sum((tables - expected) ** 2 / safe, axis=(1, 2)), np.sum(
        columns[:, 0] > 0, axis=1
    ).astype(float)


def balanced_v(tables: Floats) -> Floats:
    """Cramér's V of each 2 × C table with both groups weighing the same.

    V² = ½ Σ_j [(p_1j − p̄_j)² + (p_2j − p̄_j)²]/p̄_j, p̄ the plain mean of the two. The raw V
    shrinks with the smaller group's share of the rows.
    """
    shares = tables / np.maximum(tables.sum(axis=2, keepdims=True), 1.0)
    middle = shares.mean(axis=1, keepdims=True)
    parts = np.sum((shares - middle) ** 2, axis=1) / np.where(middle[:, 0] > 0, middle[:, 0], 1.0)
    return np.asarray(np.sqrt(np.minimum(parts.sum(axis=1) / 2, 1.0)))


def d_of_v(v: Floats) -> Floats:
    """2V/√(1−V²), the d of two equal groups whose two-group table has that V; ∞ at V = 1."""
    rest = np.maximum(1 - np.square(v), 0.0)
    return np.where(rest > 1e-15, 2 * v / np.sqrt(np.where(rest > 1e-15, rest, 1.0)), np.inf)


def _permuted(table: Floats, seen: float, seed: int, *, first: int = PERMUTATIONS) -> float:
    """Share of tables with the same margins whose chi-square is at least as large, the one seen
    included; beyond all that are drawn, by the tail that they have. Of the *first* alone, where
    they leave no doubt that it is chance.

    For a 2×C table the other row follows from the first, which is a multivariate hypergeometric
    draw. Empty columns, as of labels that another block has, are not drawn: they add nothing.
    """
    columns = table.sum(axis=0)
    columns = columns[columns > 0]
    rng = np.random.default_rng(seed)
    drawn = np.empty(0)
    for size in (first, PERMUTATIONS - first):
        row = rng.multivariate_hypergeometric(
            columns.astype(np.int64), int(table[0].sum()), size=size, method="marginals"
        ).astype(np.float64)
        further, _ = chi_square(np.stack([row, columns - row], axis=1))
        drawn = np.concatenate([drawn, further])
        beyond = int(np.sum(drawn >= seen * (1 - 1e-9)))
        share = (1 + beyond) / (1 + drawn.size)
        if share >= _CLEARLY_CHANCE:
            return share
    if beyond:
        return share
    return min(share, _CAUTION * _tail(drawn, seen))


def _tail(drawn: Floats, seen: float) -> float:
    """Return the chance of a value from *seen* on, beyond all that were *drawn*: by the gamma
    distribution of their mean, variance and skewness (Pearson's type III). 1 where they have none.

    See ``docs/decisions/0223-beyond-the-permutations.md``.
    """
    mean = float(drawn.mean())
    deviation = float(drawn.std())
    if deviation <= 0:
        return 1.0
    skewness = float((((drawn - mean) / deviation) ** 3).mean())
    if skewness <= 0:
        return 1.0
    shape = 4 / skewness**2
    scale = deviation * skewness / 2
    return float(gammaincc(shape, max((seen - mean) / scale + shape, 0.0)))


def clustering(
    by_cluster: Floats, group: Ints, counts: Floats, i: Ints, j: Ints, used: Floats
) -> Floats:
    """max(1, mean_j (1−p_j)·var_j/(p_j(1−p_j)/n)·C/(C−1)), the mean over the C columns in use.

    *by_cluster* are the counts of each cluster (clusters × columns), *group* its group. var_j is
    the mean over the two groups of s²(cluster proportions)/K, n the harmonic mean of their rows; a
    first-order correction after Rao & Scott (1984).
    """
    k = np.maximum(np.bincount(group, minlength=len(counts)).astype(np.float64), 1.0)
    share = by_cluster / np.maximum(by_cluster.sum(axis=1, keepdims=True), 1.0)
    centre = np.zeros_like(counts)
    square = np.zeros_like(counts)
    np.add.at(centre, group, share)
    centre /= k[:, None]
    np.add.at(square, group, (share - centre[group]) ** 2)
    variance = square / np.maximum(k - 1, 1.0)[:, None] / k[:, None]
    n = np.maximum(counts.sum(axis=1), 1.0)
    harmonic = 2 / (1 / n[i] + 1 / n[j])
    p = (counts[i] + counts[j]) / (n[i] + n[j])[:, None]
    mean_variance = (variance[i] + variance[j]) / 2
    # (1−p)·var/(p(1−p)/n) = n·var/p
    terms = np.where(p > 0, mean_variance * harmonic[:, None] / np.where(p > 0, p, 1.0), 0.0)
    mean = terms.sum(axis=1) / np.maximum(used, 1.0)
    return np.asarray(np.maximum(mean * used / np.maximum(used - 1, 1.0), 1.0))


def _bootstrap(
    layout: Layout,
    by_cluster: Floats,
    counts: Floats,
    pairs: Pairs,
    labels: Floats,
    seed: int,
    confidence: float,
) -> tuple[Floats, Floats]:
    """The percentiles of *confidence* of the effect when clusters (or rows, where there is one) are drawn
    again.
    """
    rng = np.random.default_rng(seed)
    clusters = layout.clusters
    ends = [(1 - confidence) / 2, (1 + confidence) / 2]
    alone = bool(np.any(labels)) or layout.own_rows
    drawn = np.empty((layout.groups, RESAMPLES, counts.shape[1]))
    for g in range(layout.groups):
        if alone:
            total = counts[g].sum()
            drawn[g] = rng.multinomial(int(total), counts[g] / total, size=RESAMPLES)
        else:
            k = int(clusters[g])
            weights = rng.multinomial(k, np.full(k, 1 / k), size=RESAMPLES).astype(np.float64)
            drawn[g] = weights @ by_cluster[layout.cluster_group == g]
    low = np.empty(pairs.first.size)
    high = np.empty(pairs.first.size)
    for at, (i, j) in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)):
        tables = np.stack([drawn[i], drawn[j]], axis=1)
        effect = d_of_v(balanced_v(tables))
        low[at], high[at] = np.quantile(effect, ends, method="inverted_cdf")
    return low, high


def _omnibus(counts: Floats) -> dict[str, float]:
    """Chi-square and Cramér's V of all groups together."""
    chi2, used = chi_square(counts[None])
    rows = counts.shape[0]
    n = float(counts.sum())
    df = (rows - 1) * (float(used[0]) - 1)
    if df <= 0:
        return {"chi2": 0.0, "chi2_df": 0.0, "chi2_p": 1.0, "cramers_v": 0.0}
    smaller = min(rows, int(used[0])) - 1
    return {
        "chi2": float(chi2[0]),
        "chi2_df": df,
        "chi2_p": float(chdtrc(df, chi2[0])),
        "cramers_v": float(np.sqrt(chi2[0] / (n * smaller))),
    }
