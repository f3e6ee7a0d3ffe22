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
    intraclass,
    partner_sizes,
)
from pytest_fairness.statistics.comparison import (
    Comparison,
    combine,
    extremes,
    interval,
    ragged_share,
    ratio_or_infinite,
)
from pytest_fairness.statistics.frames import Bools, Floats, Ints
from pytest_fairness.statistics.layout import Layout
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
    moments = _moments(layout, scale)
    if layout.blocks == 1:
        # Whatever is taken from both groups alike cancels: nothing depends on the partner.
        cells, squares = layout.by_cell(layout.values)[None, :], layout.by_cell(layout.values**2)[None, :]
        raw = contrast(layout, pairs, *cluster_means(layout, cells, None), scale)
    else:
        cells, squares = _aligned(layout, moments, sizes)
        raw = contrast(layout, pairs, *cluster_means(layout, cells, sizes), scale)
    n1, n2, s, s_df = _standardiser(layout, pairs, moments, scale)
    row_df = n1 + n2 - 2
    row_error = s * np.sqrt(1 / np.maximum(n1, 1.0) + 1 / np.maximum(n2, 1.0))
    half = interval(raw, row_error, row_df)
    small_sample = hedges_correction(s_df)
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

    if layout.own_rows:
        icc_1 = icc_2 = np.full(n1.size, np.nan)
        per_1 = per_2 = np.ones(n1.size)
    else:
        icc_1, icc_2, per_1, per_2 = intraclass(layout, squares, cells, sizes, pairs)
    icc = _mean_icc(icc_1, icc_2)
    per = (per_1 + per_2) / 2
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
        "icc_1": icc_1,
        "icc_2": icc_2,
        "icc": icc,
        "design_effect": 1 + (per - 1) * np.maximum(np.nan_to_num(icc), 0.0),
    }
    labels = np.isnan(p_cluster)
    return Comparison(
        pairs=pairs,
        test=_tests(labels, ranked.contrast.paired, layout.blocks > 1),
        effect_name=name,
        p_row=ranked.p_row,
        p_cluster=p_cluster,
        p_value=combine(ranked.p_row, p_cluster),
        effect=effect,
        low=low,
        high=high,
        difference=raw.difference,
        difference_low=raw.difference - half,
        difference_high=raw.difference + half,
        clusters_1=raw.clusters_1,
        clusters_2=raw.clusters_2,
        labels=labels,
        ragged=ragged_share(layout, pairs),
        constant=constant,
        icc=icc,
        per_cluster=per,
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


@dataclass(frozen=True, slots=True)
class _Moments:
    """Means and sums of squares of each group × block (G × H) and of each group (G)."""

    mean: Floats
    squares: Floats
    group_mean: Floats
    group_squares: Floats


def _moments(layout: Layout, scale: float) -> _Moments:
    groups, blocks = layout.count.shape
    at = layout.row_group
    y = layout.values
    sizes = layout.sizes
    group_mean = np.add.reduceat(y, layout.group_start) / sizes
    group_squares = _clean(np.add.reduceat((y - group_mean[at]) ** 2, layout.group_start), sizes, scale)
    if blocks == 1:
        return _Moments(group_mean[:, None], group_squares[:, None], group_mean, group_squares)
    both = at * blocks + layout.row_block
    size = groups * blocks
    mean: Floats = np.bincount(both, y, minlength=size).astype(np.float64) / np.maximum(layout.count.ravel(), 1.0)
    squares: Floats = np.bincount(both, (y - mean[both]) ** 2, minlength=size).astype(np.float64)
    squares = _clean(squares, layout.count.ravel(), scale)
    return _Moments(mean.reshape(groups, blocks), squares.reshape(groups, blocks), group_mean, group_squares)


def _clean(squares: Floats, sizes: Floats, scale: float) -> Floats:
    """Sums of squares that are no more than rounding become 0."""
    return np.where(squares <= sizes * (TINY * scale) ** 2, 0.0, squares)


def _aligned(layout: Layout, moments: _Moments, sizes: Floats | None) -> tuple[Floats, Floats]:
    """Sums and sums of squares of y − mid over each cell towards each partner (G × U).

    ``mid`` is the middle of the two groups' means in the block, so that neither group's size pulls it.
    """
    at, group = layout.cell_block, layout.cell_group
    total = layout.by_cell(layout.values)
    mid = (moments.mean[group, at] + moments.mean[:, at]) / 2
    n = layout.cell_size if sizes is None else sizes
    here = total if sizes is None else np.where(sizes > 0, total, 0.0)
    cells = here - n * mid
    if layout.own_rows:
        return cells, cells
    squares = layout.by_cell(layout.values**2)
    squares = squares if sizes is None else np.where(sizes > 0, squares, 0.0)
    return cells, np.maximum(squares - 2 * mid * here + n * mid**2, 0.0)


def _standardiser(
    layout: Layout, pairs: Pairs, moments: _Moments, scale: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Rows of both groups in common blocks, and the SD pooled within group × block with its df.

    Where (nearly) every group × block holds a single row there is nothing to pool within, and the SD within
    groups takes its place (matched pairs).
    """
    i, j = pairs.first, pairs.second
    here = (layout.count > 0).astype(np.float64)
    rows = layout.count @ here.T
    squares = moments.squares @ here.T
    cells = here @ here.T
    n1, n2 = rows[i, j], rows[j, i]
    df = n1 + n2 - 2 * cells[i, j]
    pooled = (squares[i, j] + squares[j, i]) / np.maximum(df, 1.0)
    plain = _pooled_variance(layout, pairs, moments)
    enough = df * 10 >= n1 + n2 - 2
    s = np.sqrt(np.where(enough, pooled, plain))
    return n1, n2, np.where(s < TINY * scale, 0.0, s), np.where(enough, df, n1 + n2 - 2)


def _pooled_variance(layout: Layout, pairs: Pairs, moments: _Moments) -> Floats:
    i, j = pairs.first, pairs.second
    n = layout.sizes
    return np.asarray((moments.group_squares[i] + moments.group_squares[j]) / np.maximum(n[i] + n[j] - 2, 1.0))


def _d_of_delta(delta: Floats, n1: Floats, n2: Floats) -> Floats:
    """√2·Φ⁻¹((δ+1)/2): the d of two normal groups with that δ. Full separation counts as half a pair short
    of it.
    """
    most = 1 - 1 / np.maximum(n1 * n2, 2.0)
    return np.asarray(np.sqrt(2) * ndtri((np.clip(delta, -most, most) + 1) / 2))


def _mean_icc(first: Floats, second: Floats) -> Floats:
    known = (~np.isnan(first)).astype(np.float64) + ~np.isnan(second)
    total = np.nan_to_num(first) + np.nan_to_num(second)
    return np.where(known > 0, total / np.maximum(known, 1.0), np.nan)


def _plain(
    layout: Layout, pairs: Pairs, moments: _Moments, order: Ints, one_block: tuple[RankSums, Floats | None]
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
    cohen = ratio_or_infinite(difference, np.sqrt(_pooled_variance(layout, pairs, moments)))
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
