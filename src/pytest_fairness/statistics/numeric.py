"""Numeric, ordinal and narrative outcomes: van Elteren, cluster means of aligned ranks, Hedges g, d of
Cliff's δ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri

from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.clusters import (
    TINY,
    Contrast,
    Pairs,
    cluster_means,
    contrast,
    partner_sizes,
)
from pytest_fairness.statistics.comparison import (
    Comparison,
    compared,
    extremes,
    interval,
    likeness,
    ratio_or_infinite,
)
from pytest_fairness.statistics.frames import Bools, Floats, Ints
from pytest_fairness.statistics.layout import Layout
from pytest_fairness.statistics.moments import Moments, aligned_values, pooled_variance, read_moments, standardiser
from pytest_fairness.statistics.ranks import RankSums, ascending, kruskal_wallis, mann_whitney, rank_sums, u_statistics
from pytest_fairness.statistics.shift import hodges_lehmann


@dataclass(frozen=True, slots=True)
class _Ranked:
    z: Floats
    p_row: Floats
    delta: Floats
    contrast: Contrast


def compare_scores(layout: Layout, pairs: Pairs, kind: OutcomeKind) -> Comparison:
    """Compare every pair of groups on a score.

    The effect is Hedges g for a numeric outcome, and for ordinal and narrative ones d from Cliff's δ with the
    interval of g, widened where it would not hold d.
    """
    sizes = partner_sizes(layout)
    order = ascending(layout)
    blocked = rank_sums(layout, order, blocked=True)
    u = u_statistics(layout.by_group(blocked.below), layout.sizes) if layout.blocks == 1 else None
    ranked = _van_elteren(layout, pairs, blocked, sizes)
    scale = max(float(np.max(np.abs(layout.values))), 1e-300)
    moments = read_moments(layout, scale)
    if layout.blocks == 1:
        # Whatever is taken from both groups alike cancels: nothing depends on the partner.
        cells, squares = layout.by_cell(layout.values)[None, :], layout.by_cell(layout.values**2)[None, :]
        raw = contrast(layout, pairs, *cluster_means(layout, cells, None), scale)
    else:
        cells, squares = aligned_values(layout, moments, sizes)
        raw = contrast(layout, pairs, *cluster_means(layout, cells, sizes), scale)
    spread = standardiser(layout, pairs, moments, scale)
    n1, n2, s = spread.n1, spread.n2, spread.sd
    row_df = n1 + n2 - 2
    row_error = s * np.sqrt(1 / np.maximum(n1, 1.0) + 1 / np.maximum(n2, 1.0))
    half = interval(raw, row_error, row_df)
    small_sample = hedges_correction(spread.df)
    g = ratio_or_infinite(small_sample * raw.difference, s)
    low = ratio_or_infinite(small_sample * (raw.difference - half), s)
    high = ratio_or_infinite(small_sample * (raw.difference + half), s)

    least, most = extremes(layout)
    still = least == most
    constant = still[pairs.first] & still[pairs.second]
    effect, name = g, "Hedges g"
    if kind is not OutcomeKind.NUMERIC:
        effect, name = _d_of_delta(ranked.delta, n1, n2), "d from Cliff's δ"
        effect = np.where(constant & (raw.difference != 0), g, effect)
        low, high = np.minimum(low, effect), np.maximum(high, effect)
    apart = (n1 == 0) | (n2 == 0)
    effect = np.where(apart, 0.0, effect)
    low, high = np.where(apart, -np.inf, low), np.where(apart, np.inf, high)

    alike = likeness(layout, squares, cells, sizes, pairs)
    p_cluster = ranked.contrast.p_value()
    plain, omnibus = _plain(layout, pairs, moments, order, (blocked, u))
    shift, exact = hodges_lehmann(layout, pairs, order)
    beside = {
        "n_1": n1,
        "n_2": n2,
        "z": ranked.z,
        "t": ratio_or_infinite(ranked.contrast.difference, np.nan_to_num(ranked.contrast.error)),
        "df": ranked.contrast.df,
        "mean_aligned_rank_1": ranked.contrast.mean_1,
        "mean_aligned_rank_2": ranked.contrast.mean_2,
        "hedges_g": g,
        "cliffs_delta": ranked.delta,
        "d_from_cliffs_delta": _d_of_delta(ranked.delta, n1, n2),
        "hodges_lehmann_shift" if exact else "hodges_lehmann_shift_from_quantiles": shift,
        "standardiser_sd": s,
        **plain,
        **alike.told,
        "design_effect": 1 + (alike.per_cluster - 1) * np.maximum(np.nan_to_num(alike.icc), 0.0),
    }
    return compared(
        layout,
        pairs,
        raw,
        half,
        test=_tests(np.isnan(p_cluster), ranked.contrast.paired, layout.blocks > 1),
        p_values=(ranked.p_row, p_cluster),
        effect_name=name,
        effect=(effect, low, high),
        constant=constant,
        alike=alike,
        statistic=("van Elteren z" if layout.blocks > 1 else "Wilcoxon z", ranked.z),
        beside=beside,
        omnibus=omnibus,
    )


def hedges_correction(df: Floats) -> Floats:
    """J = 1 − 3/(4df − 1), the small-sample correction of d (Hedges 1981); that of df 2 for less."""
    return np.asarray(1 - 3 / (4 * np.maximum(df, 2.0) - 1))


def _tests(labels: Bools, paired: Bools, blocked: bool) -> tuple[str, ...]:
    rows = "van Elteren" if blocked else "Wilcoxon rank-sum (van Elteren, one block)"
    names = (
        f"{rows}, and t on cluster means of aligned ranks",
        f"{rows}, and paired t on cluster means of aligned ranks",
        rows,
    )
    return tuple(names[which] for which in np.where(labels, 2, paired).tolist())


def _van_elteren(layout: Layout, pairs: Pairs, sums: RankSums, sizes: Floats | None) -> _Ranked:
    """z of the aligned ranks with weights 1/(N_h+1) (van Elteren 1960), and the contrast of cluster means."""
    i, j = pairs.first, pairs.second
    n = layout.count
    aligned = _aligned_ranks(layout, sums)
    if sizes is not None:
        aligned[sizes == 0] = 0.0
    n1, n2 = n[i], n[j]
    total = n1 + n2
    common = (n1 > 0) & (n2 > 0)
    cubes = sums.tie_cubes(i, j, n)
    spread = np.where(total**3 - cubes > 1e-12 * total**3, total**3 - cubes, 0.0) / 12
    weights = np.where(common, n1 * n2 / np.maximum(total * (total - 1), 1.0) / (total + 1) ** 2, 0.0)
    variance = np.sum(weights * spread, axis=1)
    score = layout.by_group(aligned)[j, i]
    z = np.where(variance > 0, score / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)
    weight = np.sum(np.where(common, n1 * n2 / (total + 1), 0.0), axis=1)
    delta = np.clip(2 * score / np.where(weight > 0, weight, 1.0), -1.0, 1.0)
    delta = np.where(np.abs(delta) < TINY, 0.0, delta)
    means, rows = cluster_means(layout, aligned, sizes)
    return _Ranked(
        z=z,
        p_row=np.where(variance > 0, np.minimum(2 * ndtr(-np.abs(z)), 1.0), 1.0),
        delta=delta,
        contrast=contrast(layout, pairs, means, rows, 1.0),
    )


def _aligned_ranks(layout: Layout, sums: RankSums) -> Floats:
    """Σ (R − (N_h+1)/2)/(N_h+1) over each cell towards each partner (G × U), in the memory of
    ``sums.below``: R − (N_h+1)/2 is P_i − n_i/2 + P_j − n_j/2.
    """
    n = layout.count
    for g in range(layout.groups):
        here = layout.cells_of(g)
        block = sums.below[:, here]
        own = block[g].copy()
        block += own
        if layout.blocks == 1:
            block /= n[g] + n + 1
        else:
            at = layout.cell_block[here]
            block /= n[g, at] + n[:, at] + 1
    return sums.below


def _d_of_delta(delta: Floats, n1: Floats, n2: Floats) -> Floats:
    """√2·Φ⁻¹((δ+1)/2): the d of two normal groups with that δ. Full separation counts as half a pair short
    of it.
    """
    most = 1 - 1 / np.maximum(n1 * n2, 2.0)
    return np.asarray(np.sqrt(2) * ndtri((np.clip(delta, -most, most) + 1) / 2))


def _plain(
    layout: Layout, pairs: Pairs, moments: Moments, order: Ints, one_block: tuple[RankSums, Floats | None]
) -> tuple[dict[str, Floats], dict[str, float]]:
    """The plain recipe, for readers of the literal specification: no blocks, no clusters.

    *one_block* holds the ranks by block and, where there is one block only, the U that follow from them.
    """
    i, j = pairs.first, pairs.second
    n = layout.sizes
    unblocked, u = one_block
    if u is None:
        unblocked = rank_sums(layout, order, blocked=False)
        u = u_statistics(unblocked.below, n)
    statistic, p = mann_whitney(u, i, j, n, unblocked)
    h, df = kruskal_wallis(u, n, unblocked.levels)
    difference = moments.group_mean[i] - moments.group_mean[j]
    difference = np.where(np.abs(difference) < TINY, 0.0, difference)
    cohen = ratio_or_infinite(difference, np.sqrt(pooled_variance(layout, pairs, moments)))
    rows = n[i] + n[j]
    hedges = cohen * hedges_correction(rows - 2)
    return {
        "spec_u": statistic,
        "spec_p_value": p,
        "cohens_d": cohen,
        "hedges_g_of_rows": hedges,
        "mean_1": moments.group_mean[i] + layout.reference,
        "mean_2": moments.group_mean[j] + layout.reference,
    }, {"kruskal_wallis_h": h, "kruskal_wallis_df": float(df), "kruskal_wallis_p": float(chdtrc(df, h))}
