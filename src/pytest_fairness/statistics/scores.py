"""Numeric, narrative and ordinal outcomes: van Elteren and t on cluster means of aligned ranks; the effects with their
jackknifed intervals; and beside them what the plain recipe makes of the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtr

from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.arrays import Floats, Ints
from pytest_fairness.statistics.clusters import TINY, Contrast, NameParts, contrast, intraclass, reach, removals
from pytest_fairness.statistics.effects import (
    Effect,
    Moments,
    Standardised,
    cumulative_odds,
    hedges_correction,
    rank_effect,
    read_moments,
    standardise,
)
from pytest_fairness.statistics.layout import Layout, PairCells, Pairs, lay_out, pair_cells
from pytest_fairness.statistics.pair_table import PairTable, each_block, extremes, intervals, mean_known, pair_table
from pytest_fairness.statistics.ranks import (
    RankSums,
    ascending,
    hodges_lehmann,
    kruskal_wallis,
    mann_whitney,
    rank_sums,
    u_statistics,
)


class _ScorePass(NamedTuple):
    """One pass over comparisons: of pairs of groups, or of pairs within a block."""

    z: Floats
    p_row: Floats
    ranks: Contrast
    raw: Standardised
    delta: Floats
    d: Effect
    effects: tuple[Effect, ...]


def compare_scores(
    layout: Layout, pairs: Pairs, kind: OutcomeKind, parts: NameParts | None = None, *, alike: bool = False
) -> PairTable:
    """Compare every pair of groups on a score.

    The effects are Hedges g and d of Cliff's δ; of an ordinal outcome the cumulative odds ratio alone. *alike*: the
    cells of the layout hold equal rows, each its own cluster.
    """
    cells = pair_cells(layout, pairs, alike=alike)
    order = ascending(layout)
    blocked = rank_sums(layout, order, blocked=True)
    scale = max(float(np.max(np.abs(layout.values))), 1e-300)
    moments = read_moments(layout, scale)
    test = _Scores(layout, blocked, moments, kind, scale, parts)
    stratum_variance = _van_elteren_variance(layout, pairs, blocked).ravel()
    whole = test.compare(cells, stratum_variance)

    least, most = extremes(layout)
    still = least == most
    constant = still[pairs.first] & still[pairs.second]
    gap = np.sign(least[pairs.first] - least[pairs.second])
    # Where neither group varies: without bound if they differ, else 0.
    sure = np.where(gap == 0, 0.0, np.copysign(np.inf, gap))[:, None]
    effect, low, high = (np.where(constant[:, None], sure, ends) for ends in intervals(whole.effects, whole.ranks.df))
    icc, per_cluster = intraclass(cells, whole.raw.aligned, whole.raw.aligned_square)
    plain, omnibus = _plain(layout, pairs, moments, order, blocked)
    shift, exact = hodges_lehmann(layout, pairs, order)
    half = reach(whole.raw.error, whole.ranks.df)
    difference = whole.raw.difference.difference
    return pair_table(
        cells,
        pairs,
        parts,
        whole.ranks,
        whole.p_row,
        row_test="van Elteren" if layout.blocks > 1 else "Wilcoxon rank-sum (van Elteren, one block)",
        cluster_test="means of aligned ranks",
        constant=constant,
        icc=icc,
        per_cluster=per_cluster,
        df=whole.ranks.df,
        effect_names=tuple(one.name for one in whole.effects),
        effect=effect,
        low=low,
        high=high,
        difference=difference,
        error=whole.raw.difference.error,
        difference_df=whole.raw.difference.df,
        difference_low=difference - half,
        difference_high=difference + half,
        statistic="van Elteren z" if layout.blocks > 1 else "Wilcoxon z",
        value_of_test=whole.z,
        beside={
            "z": whole.z,
            "df": whole.ranks.df,
            "mean_aligned_rank_1": whole.ranks.mean[:, 0],
            "mean_aligned_rank_2": whole.ranks.mean[:, 1],
            "hedges_g": whole.raw.g.value,
            "cliffs_delta": whole.delta,
            "d_from_cliffs_delta": whole.d.value,
            "hodges_lehmann_shift" if exact else "hodges_lehmann_shift_from_quantiles": shift,
            "standardiser_sd": whole.raw.sd,
            "standardiser_df": whole.raw.df,
            **plain,
            "design_effect": 1 + (per_cluster.mean(axis=1) - 1) * np.maximum(np.nan_to_num(mean_known(icc)), 0.0),
        },
        omnibus=omnibus,
        strata=each_block(cells, lambda inner, kept: test.of_block(inner, stratum_variance[kept])),
    )


@dataclass(frozen=True, slots=True)
class _Scores:
    """What all comparisons of one score share."""

    layout: Layout
    ranks: RankSums
    moments: Moments
    kind: OutcomeKind
    scale: float
    parts: NameParts | None

    def compare(self, cells: PairCells, stratum_variance: Floats) -> _ScorePass:
        own, other = self._below(cells, cells.layout.cell_group[cells.cell]), self._below(cells, cells.partner)
        total = cells.rows.sum(axis=1)
        aligned = (own + other) / (total[cells.stratum] + 1)
        z, p_row = stratified_z(cells, aligned, stratum_variance)
        found = contrast(cells, aligned, 1.0, self.parts)
        leaving = removals(cells)
        raw = standardise(cells, leaving, self.moments, self.scale, self.parts)
        delta, d = rank_effect(cells, leaving, other, self._against_itself(cells), self.parts)
        chosen: tuple[Effect, ...]
        if self.kind is OutcomeKind.ORDINAL:
            levels, codes = np.unique(self.layout.values, return_inverse=True)
            chosen = (cumulative_odds(cells, leaving, codes, levels.size, self.parts)[1],)
        else:
            chosen = raw.g, d
        return _ScorePass(z, p_row, found, raw, delta, d, chosen)

    def of_block(
        self, cells: PairCells, stratum_variance: Floats
    ) -> tuple[Floats, Contrast, tuple[Effect, ...], Floats]:
        found = self.compare(cells, stratum_variance)
        means = [self.moments.mean[group, cells.stratum_block] for group in (cells.first, cells.second)]
        return found.p_row, found.ranks, found.effects, np.stack(means, axis=1) + self.layout.reference

    def _below(self, cells: PairCells, groups: Ints) -> Floats:
        """Σ over the rows of each cell of P − n/2 in the rows of *groups* (E)."""
        below = self.ranks.below[groups, cells.cell]
        return below if not cells.alike else below / cells.layout.cell_size[cells.cell]

    def _against_itself(self, cells: PairCells) -> Floats | None:
        """The same in the rows of the cluster itself on the other side, where clusters are paired (E)."""
        if not bool(cells.paired.any()):
            return None
        layout = self.layout
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
        sums = rank_sums(inner, ascending(inner), blocked=True)
        # The cells of both layouts are the same, in the same order: group, cluster, block.
        return sums.below[cells.partner, cells.cell]


def stratified_z(cells: PairCells, aligned: Floats, stratum_variance: Floats) -> tuple[Floats, Floats]:
    """z and two-sided p of the sum of aligned scores of side 0; p is 1 where the variance is 0."""
    score = cells.by_comparison(np.where(cells.side == 0, aligned * cells.multiplicity, 0.0))
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
    layout: Layout, pairs: Pairs, moments: Moments, order: Ints, blocked: RankSums
) -> tuple[dict[str, Floats], dict[str, float]]:
    """The plain recipe, for readers of the literal specification: no blocks, no clusters."""
    i, j = pairs.first, pairs.second
    n = layout.sizes
    if layout.blocks == 1:
        unblocked, u = blocked, u_statistics(layout.by_group(blocked.below), n)
    else:
        unblocked = rank_sums(layout, order, blocked=False)
        u = u_statistics(unblocked.below, n)
    statistic, p = mann_whitney(u, i, j, n, unblocked)
    h, df = kruskal_wallis(u, n, unblocked.levels)
    difference = moments.group_mean[i] - moments.group_mean[j]
    difference = np.where(np.abs(difference) < TINY, 0.0, difference)
    rows = n[i] + n[j]
    sd = np.sqrt((moments.group_squares[i] + moments.group_squares[j]) / np.maximum(rows - 2, 1.0))
    safe = np.where(sd > 0, sd, 1.0)
    cohen = np.where(sd > 0, difference / safe, np.where(difference == 0, 0.0, np.copysign(np.inf, difference)))
    return {
        "spec_u": statistic,
        "spec_p_value": p,
        "spec_effect": np.abs(cohen),
        "cohens_d": cohen,
        "hedges_g_of_rows": cohen * hedges_correction(rows - 2),
        "mean_1": moments.group_mean[i] + layout.reference,
        "mean_2": moments.group_mean[j] + layout.reference,
    }, {"kruskal_wallis_h": h, "kruskal_wallis_df": float(df), "kruskal_wallis_p": float(chdtrc(df, h))}
