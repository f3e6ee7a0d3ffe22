"""Numeric, narrative and ordinal outcomes: van Elteren and t on cluster means of aligned ranks; the effects with their
jackknifed intervals; and beside them what the plain recipe makes of the same rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import chdtrc, ndtr

from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.arrays import Floats, Ints
from pytest_fairness.statistics.clusters import TINY, NameParts, Removals, contrast, ratio, reach
from pytest_fairness.statistics.effects import (
    Effect,
    Moments,
    Standardised,
    cumulative_odds,
    hedges_correction,
    rank_effect,
    standardise,
)
from pytest_fairness.statistics.layout import Layout, PairCells, Pairs, lay_out, pair_cells
from pytest_fairness.statistics.pair_table import (
    Comparison,
    PairTable,
    constant_pairs,
    each_block,
    intervals,
    pair_table,
)
from pytest_fairness.statistics.ranks import (
    RankSums,
    hodges_lehmann,
    kruskal_wallis,
    mann_whitney,
    rank_sums,
)


def compare_scores(layout: Layout, pairs: Pairs, kind: OutcomeKind, parts: NameParts | None = None) -> PairTable:
    """Compare every pair of groups on a score.

    The effects are Hedges g and d of Cliff's δ; of an ordinal outcome the cumulative odds ratio alone.
    """
    cells = pair_cells(layout, pairs)
    order = np.argsort(layout.values)  # the order of ties is left open: it changes nothing, and a stable sort is slower
    ranks = rank_sums(layout, order, blocked=True)
    scale = max(float(np.max(np.abs(layout.values))), 1e-300)
    plain = Moments.of(layout, scale, blocked=False)
    moments = Moments.of(layout, scale, blocked=True) if layout.blocks > 1 else plain
    stratum_variance = _van_elteren_variance(layout, pairs, ranks).ravel()

    def compare(cells: PairCells, kept: Ints | slice) -> tuple[Comparison, Standardised, Floats, Floats]:
        alike = layout.cell_size[cells.cell] / cells.size
        own, other = (
            ranks.below[groups, cells.cell] / alike for groups in (layout.cell_group[cells.cell], cells.partner)
        )
        aligned = (own + other) / (cells.rows.sum(axis=1)[cells.stratum] + 1)
        z, p_row = stratified_z(cells, aligned, stratum_variance[kept])
        found = contrast(cells, aligned, 1.0, parts)
        leaving = Removals.of(cells)
        raw = standardise(cells, leaving, moments, plain, scale, parts)
        delta, d = rank_effect(cells, leaving, other, _against_itself(cells), parts)
        effects: tuple[Effect, ...] = raw.g, d
        if kind is OutcomeKind.ORDINAL:
            levels, codes = np.unique(layout.values, return_inverse=True)
            effects = (cumulative_odds(cells, leaving, codes, levels.size, parts)[1],)
        means = [moments.mean[group[cells.stratum_comparison], cells.stratum_block] for group in
                 (cells.first, cells.second)]  # fmt: skip
        return Comparison(z, p_row, found, effects, np.stack(means, axis=1) + layout.reference), raw, delta, d.value

    found, raw, delta, d = compare(cells, slice(None))
    constant, sure = constant_pairs(layout, pairs)
    effect, low, high = (
        np.where(constant[:, None], sure[:, None], ends) for ends in intervals(found.effects, found.contrast.df)
    )
    literal, omnibus = _plain(layout, pairs, plain, order, ranks)
    shift, exact = hodges_lehmann(layout, pairs, order)
    table = pair_table(
        cells,
        pairs,
        parts,
        found,
        row_test="van Elteren" if layout.blocks > 1 else "Wilcoxon rank-sum (van Elteren, one block)",
        cluster_test="means of aligned ranks",
        p_row=found.p_row,
        aligned=raw.aligned,
        aligned_square=raw.aligned_square,
        difference=raw.difference.difference,
        half=reach(raw.error, found.contrast.df),
        df=found.contrast.df,
        effect=effect,
        low=low,
        high=high,
        error=raw.difference.error,
        difference_df=raw.difference.df,
        statistic="van Elteren z" if layout.blocks > 1 else "Wilcoxon z",
        beside={
            "df": found.contrast.df,
            "mean_aligned_rank_1": found.contrast.mean[:, 0],
            "mean_aligned_rank_2": found.contrast.mean[:, 1],
            "hedges_g": raw.g.value,
            "cliffs_delta": delta,
            "d_from_cliffs_delta": d,
            "hodges_lehmann_shift" if exact else "hodges_lehmann_shift_from_quantiles": shift,
            "standardiser_sd": raw.sd,
            "standardiser_df": raw.df,
            **literal,
        },
        omnibus=omnibus,
        strata=each_block(cells, lambda inner, kept: compare(inner, kept)[0]),
    )
    inflation = 1 + (table.per_cluster - 1) * np.maximum(np.nan_to_num(table.icc), 0.0)
    return replace(table, beside={**table.beside, "design_effect": inflation})


def _against_itself(cells: PairCells) -> Floats | None:
    """Σ over the rows of each cell of P − n/2 in the rows of the cluster itself on the other side, where clusters are
    paired (E)."""
    if not bool(cells.paired.any()):
        return None
    layout = cells.layout
    label = np.repeat(layout.cluster_label[layout.cell_cluster], layout.cell_size.astype(np.intp))
    both, block = np.unique(label * layout.blocks + layout.row_block, return_inverse=True)
    inner = lay_out(
        layout.values,
        layout.row_group,
        label,
        block.astype(np.intp),
        groups=layout.groups,
        blocks=both.size,
        own_rows=False,
    )
    # The cells of both layouts are the same, in the same order: group, cluster, block.
    return rank_sums(inner, np.argsort(inner.values), blocked=True).below[cells.partner, cells.cell]


def stratified_z(cells: PairCells, aligned: Floats, stratum_variance: Floats) -> tuple[Floats, Floats]:
    """z and two-sided p of the sum of aligned scores of side 0; p is 1 where the variance is 0."""
    score = cells.by_side(aligned)[:, 0]
    variance = cells.strata_by_comparison(np.where(cells.live, stratum_variance, 0.0))
    z = np.where(variance > 0, score / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)
    return z, np.where(variance > 0, np.minimum(2 * ndtr(-np.abs(z)), 1.0), 1.0)


def _van_elteren_variance(layout: Layout, pairs: Pairs, sums: RankSums) -> Floats:
    """n₁n₂/(N(N−1))·Σa² of each pair and block (P × H), a the midranks less their mean over N+1 (van Elteren 1960)."""
    n = layout.count
    n1, n2 = n[pairs.first], n[pairs.second]
    total = n1 + n2
    spread = total**3 - sums.tie_cubes(pairs.first, pairs.second, n)
    spread = np.where(spread > 1e-12 * total**3, spread, 0.0) / 12
    return np.asarray(n1 * n2 / np.maximum(total * (total - 1), 1.0) / (total + 1) ** 2 * spread)


def _plain(
    layout: Layout, pairs: Pairs, plain: Moments, order: Ints, blocked: RankSums
) -> tuple[dict[str, Floats], dict[str, float]]:
    """The plain recipe, for readers of the literal specification: no blocks, no clusters."""
    i, j = pairs.first, pairs.second
    n = layout.sizes
    unblocked = blocked if layout.blocks == 1 else rank_sums(layout, order, blocked=False)
    u = (layout.by_group(blocked.below) if layout.blocks == 1 else unblocked.below) + n[:, None] * n / 2
    statistic, p = mann_whitney(u, i, j, n, unblocked)
    h, df = kruskal_wallis(u, n, unblocked.levels)
    mean, squares = plain.mean[:, 0], plain.squares[:, 0]
    difference = mean[i] - mean[j]
    difference = np.where(np.abs(difference) < TINY, 0.0, difference)
    rows = n[i] + n[j]
    cohen = ratio(difference, np.sqrt((squares[i] + squares[j]) / np.maximum(rows - 2, 1.0)))
    return {
        "spec_u": statistic,
        "spec_p_value": p,
        "spec_effect": np.abs(cohen),
        "cohens_d": cohen,
        "hedges_g_of_rows": cohen * hedges_correction(rows - 2),
        "mean_1": mean[i] + layout.reference,
        "mean_2": mean[j] + layout.reference,
    }, {"kruskal_wallis_h": h, "kruskal_wallis_df": float(df), "kruskal_wallis_p": float(chdtrc(df, h))}
