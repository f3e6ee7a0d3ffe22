"""Scores and yes/no outcomes: the test on rows, t on cluster means, the effects with their
jackknifed intervals, and beside them what the plain recipe makes of the same rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import chdtrc, ndtr

from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.arrays import Bools, Floats, Ints, sums
from pytest_fairness.statistics.categories import chi_square
from pytest_fairness.statistics.clusters import (
    TINY,
    Contrast,
    NameParts,
    Removals,
    Terms,
    contrast,
    ratio,
    reach,
    two_sided_t,
)
from pytest_fairness.statistics.effects import (
    LOGIT_TO_D,
    Effect,
    Moments,
    RankEffect,
    Standardised,
    cumulative_odds,
    dominance_test,
    hedges_correction,
    moments_of,
    rank_effect,
    standardise,
)
from pytest_fairness.statistics.layout import Layout, PairCells, Pairs, Rows, pair_cells
from pytest_fairness.statistics.pair_table import (
    Comparison,
    PairTable,
    constant_pairs,
    each_block,
    intervals,
    pair_table,
)
from pytest_fairness.statistics.proportions import (
    FEW,
    cohens_h,
    fisher_exact,
    katz,
    log_odds_ratio,
    newcombe,
    pearson,
    smallest_expected,
)
from pytest_fairness.statistics.ranks import (
    RankSums,
    hodges_lehmann,
    kruskal_wallis,
    mann_whitney,
    rank_sums,
)


def compare_scores(
    layout: Layout,
    pairs: Pairs,
    kind: OutcomeKind,
    parts: NameParts | None,
    terms: Terms,
) -> PairTable:
    """Compare every pair of groups on a numeric, narrative or ordinal outcome: van Elteren and t on
    cluster means of aligned ranks.

    The effects are Hedges g and d of Cliff's δ; of an ordinal outcome the cumulative odds ratio
    alone.
    """
    confidence = terms.confidence
    cells = pair_cells(layout, pairs)
    order = np.argsort(
        layout.values
    )  # the order of ties is left open: it changes nothing, and a stable sort is slower
    ranks = rank_sums(layout, order, blocked=True)
    scale = max(float(np.max(np.abs(layout.values))), 1e-300)
    plain = moments_of(layout, scale, blocked=False)
    moments = plain
    if layout.blocks > 1:
        moments = moments_of(layout, scale, blocked=True)
    stratum_variance = _van_elteren_variance(layout, pairs, ranks).ravel()

    def compare(
        cells: PairCells, kept: Ints | slice
    ) -> tuple[Comparison, Standardised, RankEffect]:
        alike = layout.cell_size[cells.cell] / cells.size
        first, other = (
            ranks.below[groups, cells.cell] / alike
            for groups in (layout.cell_group[cells.cell], cells.partner)
        )
        aligned = (first + other) / (cells.rows.sum(axis=1)[cells.stratum] + 1)
        z, p_row = _stratified_z(cells, aligned, stratum_variance[kept])
        leaving = Removals(cells)
        raw = standardise(cells, leaving, moments, plain, scale, parts)
        ranked = rank_effect(cells, leaving, other, _against_itself(cells), parts)
        effects: tuple[Effect, ...] = raw.g, ranked.effect
        if kind is OutcomeKind.ORDINAL:
            levels, codes = np.unique(layout.values, return_inverse=True)
            effects = (cumulative_odds(cells, leaving, codes, levels.size, parts)[1],)
        groups = np.stack([cells.first, cells.second], axis=1)[cells.stratum_comparison]
        means = moments.mean[groups, cells.stratum_block[:, None]] + layout.reference
        contrast_ = contrast(cells, aligned, 1.0, parts)
        return (
            Comparison(z, p_row, contrast_, effects, means, raw.aligned, raw.aligned_square),
            raw,
            ranked,
        )

    comparison, raw, ranked = compare(cells, slice(None))
    p_delta, of_delta = dominance_test(cells, ranked, comparison.contrast.df, parts, confidence)
    constant, sure = constant_pairs(layout, pairs)
    apart = (
        np.fmax(np.maximum(comparison.p_row, p_delta), comparison.contrast.p_value) < 1 - confidence
    )
    effect, low, high = (
        np.where(constant[:, None], sure[:, None], ends)
        for ends in _without_zero(
            *intervals(comparison.effects, comparison.contrast.df, confidence), of_delta, apart
        )
    )
    literal, omnibus = _plain_scores(layout, pairs, plain, order, ranks)
    strata = None
    shift = {}
    if terms.by_block:
        strata = each_block(cells, lambda inner, kept: compare(inner, kept)[0], confidence)
        shift = _shift(layout, pairs, order)
    row_test = "Wilcoxon rank-sum (van Elteren, one block)"
    if layout.blocks > 1:
        row_test = "van Elteren"
    table = pair_table(
        cells,
        pairs,
        parts,
        comparison,
        row_test=row_test,
        cluster_test="means of aligned ranks",
        p_row=comparison.p_row,
        p_delta=p_delta,
        difference=raw.difference.difference,
        half=reach(raw.error, comparison.contrast.df, confidence),
        df=comparison.contrast.df,
        effect=effect,
        low=low,
        high=high,
        error=raw.difference.error,
        difference_df=raw.difference.df,
        statistic="van Elteren z" if layout.blocks > 1 else "Wilcoxon z",
        figures={
            "df": comparison.contrast.df,
            "mean_aligned_rank_1": comparison.contrast.mean[:, 0],
            "mean_aligned_rank_2": comparison.contrast.mean[:, 1],
            "hedges_g": raw.g.value,
            "cliffs_delta": ranked.delta,
            "d_from_cliffs_delta": ranked.effect.value,
            **shift,
            "standardiser_sd": raw.sd,
            "standardiser_df": raw.df,
            **_unlike_spread(layout, pairs, moments),
            **literal,
        },
        omnibus=omnibus,
        strata=strata,
    )
    inflation = 1 + (table.per_cluster - 1) * np.maximum(np.nan_to_num(table.icc), 0.0)
    return replace(table, figures={**table.figures, "design_effect": inflation})


def _shift(layout: Layout, pairs: Pairs, order: Ints) -> dict[str, Floats]:
    """Return the shift of Hodges and Lehmann of each pair, by the name that says how it was
    found."""
    shift, exact = hodges_lehmann(layout, pairs, order)
    if exact:
        return {"hodges_lehmann_shift": shift}
    return {"hodges_lehmann_shift_from_quantiles": shift}


def _without_zero(
    effect: Floats, low: Floats, high: Floats, of_delta: tuple[Floats, Floats], apart: Bools
) -> tuple[Floats, Floats, Floats]:
    """The *effect* with its ends; where the tests tell the groups *apart* at the level of the
    interval, and that of d of δ holds 0, its end towards 0 is that of δ itself: near ±1 the error
    on the d scale is as large as d."""
    if effect.shape[1] < 2:
        return effect, low, high
    delta_low, delta_high = of_delta
    held = apart & (low[:, 1] <= 0) & (high[:, 1] >= 0)
    d = effect[:, 1]
    low[:, 1] = np.where(held & (d > 0), np.maximum(delta_low, low[:, 1]), low[:, 1])
    high[:, 1] = np.where(held & (d < 0), np.minimum(delta_high, high[:, 1]), high[:, 1])
    return effect, low, high


def _unlike_spread(layout: Layout, pairs: Pairs, moments: Moments) -> dict[str, Floats]:
    """The SD of the clusters' means in both groups of each pair, and p of no difference between the
    two: t on their distances from the group's median (Brown & Forsythe 1974). NaN where a group has
    one cluster."""
    count = layout.by_cluster(layout.cell_size)
    mean = layout.by_cluster(moments.deviation) / count
    group = layout.cluster_group
    alike = layout.cluster_alike
    k = sums(group, alike, layout.groups)
    ascending = np.lexsort((mean, group))
    reached = np.cumsum(alike[ascending])
    start = np.cumsum(k) - k
    low, high = (
        mean[ascending[np.searchsorted(reached, start + np.floor((k - 1 + odd) / 2), side="right")]]
        for odd in (0, 1)
    )
    median = (low + high) / 2
    distance = np.abs(mean - median[group])
    centre, middle = (sums(group, alike * values, layout.groups) / k for values in (mean, distance))
    of_mean, of_distance = (
        sums(group, alike * (values - about[group]) ** 2, layout.groups)
        for values, about in ((mean, centre), (distance, middle))
    )
    i = pairs.first
    j = pairs.second
    df = k[i] + k[j] - 2.0
    error = np.sqrt((of_distance[i] + of_distance[j]) / np.maximum(df, 1.0) * (1 / k[i] + 1 / k[j]))
    if layout.own_rows:
        of_mean = of_mean + layout.squares_by_group()
    sound = np.minimum(k[i], k[j]) > 1
    sd = np.sqrt(of_mean / np.maximum(k - 1, 1.0))
    columns = {
        "spread_p_value": two_sided_t(middle[i] - middle[j], error, df),
        "spread_1": sd[i],
        "spread_2": sd[j],
    }
    return {name: np.where(sound, values, np.nan) for name, values in columns.items()}


def _against_itself(cells: PairCells) -> Floats | None:
    """Σ over the rows of each cell of P − n/2 in the rows of the cluster itself on the other side,
    where clusters are paired (E)."""
    if not bool(cells.paired.any()):
        return None
    layout = cells.layout
    held = np.diff(layout.cell_start, append=layout.values.size)
    label = np.repeat(layout.cluster_label[layout.cell_cluster], held)
    both, block = np.unique(label * layout.blocks + layout.row_block, return_inverse=True)
    inner = Layout(
        Rows(
            layout.values,
            layout.row_group,
            label,
            block.astype(np.intp),
            copy=None,
            weight=layout.weight,
        ),
        groups=layout.groups,
        blocks=both.size,
        own_rows=False,
    )
    # The cells of both layouts are the same, in the same order: group, cluster, block.
    return rank_sums(inner, np.argsort(inner.values), blocked=True).below[cells.partner, cells.cell]


def _stratified_z(
    cells: PairCells, aligned: Floats, stratum_variance: Floats
) -> tuple[Floats, Floats]:
    """z and two-sided p of the sum of aligned scores of side 0; p is 1 where the variance is 0."""
    score = cells.by_side(aligned)[:, 0]
    variance = cells.strata_by_comparison(np.where(cells.live, stratum_variance, 0.0))
    z = np.where(variance > 0, score / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)
    return z, np.where(variance > 0, np.minimum(2 * ndtr(-np.abs(z)), 1.0), 1.0)


def _van_elteren_variance(layout: Layout, pairs: Pairs, sums: RankSums) -> Floats:
    """n₁n₂/(N(N−1))·Σa² of each pair and block (P × H), a the midranks less their mean over N+1
    (van Elteren 1960).
    """
    n = layout.count
    n1 = n[pairs.first]
    n2 = n[pairs.second]
    total = n1 + n2
    spread = total**3 - sums.tie_cubes(pairs.first, pairs.second, n)
    spread = np.where(spread > 1e-12 * total**3, spread, 0.0) / 12
    return np.asarray(n1 * n2 / np.maximum(total * (total - 1), 1.0) / (total + 1) ** 2 * spread)


def _plain_scores(
    layout: Layout, pairs: Pairs, plain: Moments, order: Ints, blocked: RankSums
) -> tuple[dict[str, Floats], dict[str, float]]:
    """The plain recipe, for readers of the literal specification: no blocks, no clusters."""
    i = pairs.first
    j = pairs.second
    n = layout.sizes
    unblocked = blocked
    if layout.blocks != 1:
        unblocked = rank_sums(layout, order, blocked=False)
    u = (layout.by_group(blocked.below) if layout.blocks == 1 else unblocked.below) + n[
        :, None
    ] * n / 2
    statistic, p = mann_whitney(u, i, j, n, unblocked)
    h, df = kruskal_wallis(u, n, unblocked.levels)
    mean = plain.mean[:, 0]
    squares = plain.squares[:, 0]
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
    }, {
        "kruskal_wallis_h": h,
        "kruskal_wallis_df": float(df),
        "kruskal_wallis_p": float(chdtrc(df, h)),
    }


# ---------------------------------------------------------------- yes or no


def compare_rates(layout: Layout, pairs: Pairs, parts: NameParts | None, terms: Terms) -> PairTable:
    """Compare every pair of groups on a yes/no outcome (values 0 and 1): Cochran–Mantel–Haenszel, t
    on cluster means of y − ȳ, and the odds ratio."""
    confidence = terms.confidence
    cells = pair_cells(layout, pairs)
    yes_by_cell = layout.by_cell(layout.values) + layout.cell_size * layout.reference
    levels = np.rint(layout.values + layout.reference).astype(np.intp)

    def compare(cells: PairCells) -> tuple[Comparison, Floats]:
        yes = cells.one_unit(yes_by_cell)
        by_side = cells.by_stratum_side(yes)
        x, (n1, n2) = by_side.sum(axis=1), cells.rows.T
        n = np.maximum(n1 + n2, 1.0)
        rate = (x / n)[cells.stratum]
        aligned = yes - cells.size * rate
        square = np.maximum(yes * (1 - 2 * rate) + cells.size * rate**2, 0.0)
        # Without continuity correction; z² is Mantel & Haenszel's chi-square (1959).
        variance = n1 * n2 * x * (n - x) / (n**2 * np.maximum(n - 1, 1.0))
        z, p_row = _stratified_z(cells, aligned, variance)
        log_odds, effect = cumulative_odds(cells, Removals(cells), levels, 2, parts)
        means = by_side / np.maximum(cells.rows, 1.0)
        contrast_ = contrast(cells, aligned, 1.0, parts)
        return Comparison(z, p_row, contrast_, (effect,), means, aligned, square), log_odds

    comparison, log_odds = compare(cells)
    yes = cells.one_unit(yes_by_cell)
    (x1, x2), (n1, n2) = cells.by_side(yes).T, cells.side_rows.T
    expected = smallest_expected(x1, n1, x2, n2)
    fisher = fisher_exact(x1, n1, x2, n2)
    exact = (layout.blocks == 1) & layout.own_rows & (expected < FEW)
    constant, sure = constant_pairs(layout, pairs)
    effect = comparison.effects[0]
    row_error, row_df = _row_error(cells, yes)
    alone = np.isnan(comparison.contrast.error)
    df = np.where(alone, row_df, comparison.contrast.df)
    error = np.where(alone, row_error, comparison.contrast.error)
    split = constant & np.isinf(sure)
    value, low, high = intervals(
        [effect._replace(value=np.where(split, sure, effect.value))], df, confidence
    )
    log_reach = reach(effect.error / LOGIT_TO_D, df, 0.95)
    with np.errstate(over="ignore"):
        odds, odds_low, odds_high = np.exp(log_odds + np.stack([0 * df, -log_reach, log_reach]))
    strata = None
    if terms.by_block:
        strata = each_block(cells, lambda inner, _: compare(inner)[0], confidence)
    row_test = "Mantel-Haenszel chi-square"
    if layout.blocks > 1:
        row_test = "Cochran-Mantel-Haenszel"
    total = layout.rows_by_group(layout.values) + layout.sizes * layout.reference
    n = layout.sizes
    of_all = total[pairs.first], n[pairs.first], total[pairs.second], n[pairs.second]
    chi2 = pearson(*of_all)
    return pair_table(
        cells,
        pairs,
        parts,
        comparison,
        row_test=np.where(exact, "Fisher's exact", row_test).astype(object),
        cluster_test="rates",
        p_row=np.where(exact, fisher, comparison.p_row),
        difference=comparison.contrast.difference,
        half=reach(error, df, confidence),
        df=df,
        effect=value,
        low=low,
        high=high,
        error=error,
        difference_df=df,
        statistic="Cochran-Mantel-Haenszel z",
        figures={
            "df": df,
            "standardiser_sd": row_error
            / np.sqrt(1 / np.maximum(n1, 1.0) + 1 / np.maximum(n2, 1.0)),
            "standardiser_df": row_df,
            "fisher_p_value": fisher,
            "smallest_expected_count": expected,
            "odds_ratio": odds,
            "odds_ratio_low": odds_low,
            "odds_ratio_high": odds_high,
            "design_effect": _design_effect(comparison.contrast, row_error),
            **plain_rates(x1, n1, x2, n2),
            # The literal specification's own, without blocks or clusters.
            "spec_chi2": chi2,
            "spec_p_value": chdtrc(1, chi2),
            "spec_effect": np.abs(log_odds_ratio(*of_all)) * LOGIT_TO_D,
        },
        omnibus=_omnibus_rates(total, n),
        strata=strata,
    )


def _design_effect(by_cluster: Contrast, row_error: Floats) -> Floats:
    """Return how much wider the difference of cluster means spreads than that of independent rows
    would; at least 1.
    """
    square = np.nan_to_num(by_cluster.error) ** 2
    plain = row_error**2
    return np.maximum(np.where(plain > 0, square / np.where(plain > 0, plain, 1.0), 1.0), 1.0)


def _row_error(cells: PairCells, yes: Floats) -> tuple[Floats, Floats]:
    """Standard error of the difference of independent rows, and its df, from the variance within
    group × block; within groups where (nearly) every block holds a single row of each group."""
    n, (n1, n2) = cells.rows, cells.side_rows.T
    x = cells.by_stratum_side(yes)
    within = cells.strata_by_comparison(np.sum(x * (n - x) / np.maximum(n, 1.0), axis=1))
    df = n1 + n2 - 2 * cells.strata_by_comparison(cells.live.astype(np.float64))
    whole = cells.by_side(yes)
    rows = cells.side_rows
    plain = np.sum(whole * (rows - whole) / np.maximum(rows, 1.0), axis=1)
    enough = df * 10 >= n1 + n2 - 2
    variance = np.where(enough, within / np.maximum(df, 1.0), plain / np.maximum(n1 + n2 - 2, 1.0))
    error = np.sqrt(variance * (1 / np.maximum(n1, 1.0) + 1 / np.maximum(n2, 1.0)))
    return error, np.maximum(n1 + n2 - 2, 0.0)


def plain_rates(x1: Floats, n1: Floats, x2: Floats, n2: Floats) -> dict[str, Floats]:
    """The plain 2×2 statistics of each pair, 95 % intervals: rows as if independent."""
    m1 = np.maximum(n1, 1.0)
    m2 = np.maximum(n2, 1.0)
    p1 = x1 / m1
    p2 = x2 / m2
    low, high = newcombe(x1, n1, x2, n2)
    ratio, ratio_low, ratio_high = katz(x1, m1, x2, m2)
    return {
        "rate_1": p1,
        "rate_2": p2,
        "yates_p_value": chdtrc(1, pearson(x1, n1, x2, n2, yates=True)),
        "phi": np.sqrt(pearson(x1, n1, x2, n2) / np.maximum(n1 + n2, 1.0)) * np.sign(p1 - p2),
        "risk_difference": p1 - p2,
        "risk_difference_low": low,
        "risk_difference_high": high,
        "risk_ratio": ratio,
        "risk_ratio_low": ratio_low,
        "risk_ratio_high": ratio_high,
        "cohens_h": cohens_h(p1, p2),
    }


def _omnibus_rates(yes: Floats, n: Floats) -> dict[str, float]:
    """Pearson's chi-square of all groups; equal to Kruskal–Wallis H but for a factor (N−1)/N."""
    total = float(n.sum())
    df = n.size - 1
    chi2 = float(chi_square(np.stack([yes, n - yes])[None])[0][0])
    h = chi2 * (total - 1) / total
    return {
        "chi2": chi2,
        "chi2_df": float(df),
        "chi2_p": float(chdtrc(df, chi2)),
        "kruskal_wallis_h": h,
        "kruskal_wallis_p": float(chdtrc(df, h)),
    }
