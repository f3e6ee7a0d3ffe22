"""Yes/no outcomes and refusals: Cochran–Mantel–Haenszel, t on cluster means of y − ȳ, and the odds ratio."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from pytest_fairness.statistics.arrays import Floats
from pytest_fairness.statistics.clusters import Contrast, NameParts, Removals, contrast, reach
from pytest_fairness.statistics.effects import LOGIT_TO_D, cumulative_odds
from pytest_fairness.statistics.layout import Layout, PairCells, Pairs, pair_cells
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
from pytest_fairness.statistics.scores import stratified_z


class _YesRows(NamedTuple):
    """Sums over cells of yes, of y − ȳ and of its squares (E), and the log odds ratio (Q)."""

    yes: Floats
    aligned: Floats
    square: Floats
    log_odds: Floats


def compare_rates(layout: Layout, pairs: Pairs, parts: NameParts | None = None) -> PairTable:
    """Compare every pair of groups on a yes/no outcome (values 0 and 1)."""
    cells = pair_cells(layout, pairs)
    found, rows = _compare(cells, parts)
    (x1, x2), (n1, n2) = cells.by_side(rows.yes).T, cells.side_rows.T
    expected, fisher = smallest_expected(x1, n1, x2, n2), fisher_exact(x1, n1, x2, n2)
    exact = (layout.blocks == 1) & layout.own_rows & (expected < FEW)
    constant, sure = constant_pairs(layout, pairs)
    effect, split = found.effects[0], constant & np.isinf(sure)
    row_error, row_df = _row_error(cells, rows.yes)
    alone = np.isnan(found.contrast.error)
    df = np.where(alone, row_df, found.contrast.df)
    error = np.where(alone, row_error, found.contrast.error)
    value, low, high = intervals([replace(effect, value=np.where(split, sure, effect.value))], df)
    log_reach = reach(effect.error / LOGIT_TO_D, df, 0.95)
    with np.errstate(over="ignore"):
        odds, odds_low, odds_high = np.exp(rows.log_odds + np.stack([0 * df, -log_reach, log_reach]))
    row_test = "Cochran-Mantel-Haenszel" if layout.blocks > 1 else "Mantel-Haenszel chi-square"
    return pair_table(
        cells,
        pairs,
        parts,
        found,
        row_test=np.where(exact, "Fisher's exact", row_test).astype(object),
        cluster_test="rates",
        p_row=np.where(exact, fisher, found.p_row),
        aligned=rows.aligned,
        aligned_square=rows.square,
        difference=found.contrast.difference,
        half=reach(error, df),
        df=df,
        effect=value,
        low=low,
        high=high,
        error=error,
        difference_df=df,
        statistic="Cochran-Mantel-Haenszel z",
        beside={
            "df": df,
            "standardiser_sd": row_error / np.sqrt(1 / np.maximum(n1, 1.0) + 1 / np.maximum(n2, 1.0)),
            "standardiser_df": row_df,
            "fisher_p_value": fisher,
            "smallest_expected_count": expected,
            "odds_ratio": odds,
            "odds_ratio_low": odds_low,
            "odds_ratio_high": odds_high,
            "design_effect": design_effect(found.contrast, row_error),
            **plain_rates(x1, n1, x2, n2),
            **_literal(layout, pairs),
        },
        omnibus=_omnibus(layout),
        strata=each_block(cells, lambda inner, _: _compare(inner, parts)[0]),
    )


def _compare(cells: PairCells, parts: NameParts | None) -> tuple[Comparison, _YesRows]:
    layout = cells.layout
    yes = cells.one_row(layout.by_cell(layout.values) + layout.cell_size * layout.reference)
    by_side = cells.by_stratum_side(yes)
    x = by_side.sum(axis=1)
    n1, n2 = cells.rows.T
    n = np.maximum(n1 + n2, 1.0)
    rate = (x / n)[cells.stratum]
    aligned = yes - cells.size * rate
    square = np.maximum(yes * (1 - 2 * rate) + cells.size * rate**2, 0.0)
    # Without continuity correction; z² is Mantel & Haenszel's chi-square (1959).
    variance = n1 * n2 * x * (n - x) / (n**2 * np.maximum(n - 1, 1.0))
    z, p_row = stratified_z(cells, aligned, variance)
    levels = np.rint(layout.values + layout.reference).astype(np.intp)
    log_odds, effect = cumulative_odds(cells, Removals.of(cells), levels, 2, parts)
    means = by_side / np.maximum(cells.rows, 1.0)
    found = Comparison(z, p_row, contrast(cells, aligned, 1.0, parts), (effect,), means)
    return found, _YesRows(yes, aligned, square, log_odds)


def design_effect(by_cluster: Contrast, row_error: Floats) -> Floats:
    """How much wider the difference of cluster means spreads than that of independent rows would; at least 1."""
    square, plain = np.nan_to_num(by_cluster.error) ** 2, row_error**2
    return np.maximum(np.where(plain > 0, square / np.where(plain > 0, plain, 1.0), 1.0), 1.0)


def _row_error(cells: PairCells, yes: Floats) -> tuple[Floats, Floats]:
    """Standard error of the difference of independent rows, and its df, from the variance within group × block; within
    groups where (nearly) every block holds a single row of each group."""
    n, (n1, n2) = cells.rows, cells.side_rows.T
    x = cells.by_stratum_side(yes)
    within = cells.strata_by_comparison(np.sum(x * (n - x) / np.maximum(n, 1.0), axis=1))
    df = n1 + n2 - 2 * cells.strata_by_comparison(cells.live.astype(np.float64))
    whole, rows = cells.by_side(yes), cells.side_rows
    plain = np.sum(whole * (rows - whole) / np.maximum(rows, 1.0), axis=1)
    enough = df * 10 >= n1 + n2 - 2
    variance = np.where(enough, within / np.maximum(df, 1.0), plain / np.maximum(n1 + n2 - 2, 1.0))
    error = np.sqrt(variance * (1 / np.maximum(n1, 1.0) + 1 / np.maximum(n2, 1.0)))
    return error, np.maximum(n1 + n2 - 2, 0.0)


def plain_rates(x1: Floats, n1: Floats, x2: Floats, n2: Floats) -> dict[str, Floats]:
    """The plain 2×2 statistics of each pair, 95 % intervals: rows as if independent."""
    m1, m2 = np.maximum(n1, 1.0), np.maximum(n2, 1.0)
    p1, p2 = x1 / m1, x2 / m2
    low, high = newcombe(x1, n1, x2, n2)
    ratio, ratio_low, ratio_high = katz(x1, m1, x2, m2)
    chi2 = pearson(x1, n1, x2, n2)
    return {
        "rate_1": p1,
        "rate_2": p2,
        "yates_p_value": chdtrc(1, pearson(x1, n1, x2, n2, yates=True)),
        "phi": np.sqrt(chi2 / np.maximum(n1 + n2, 1.0)) * np.sign(p1 - p2),
        "risk_difference": p1 - p2,
        "risk_difference_low": low,
        "risk_difference_high": high,
        "risk_ratio": ratio,
        "risk_ratio_low": ratio_low,
        "risk_ratio_high": ratio_high,
        "cohens_h": cohens_h(p1, p2),
    }


def _literal(layout: Layout, pairs: Pairs) -> dict[str, Floats]:
    """The literal specification's own: chi-square and |ln OR|·√3/π of all rows, without blocks or clusters."""
    x, n = _yes(layout), layout.sizes
    x1, n1, x2, n2 = x[pairs.first], n[pairs.first], x[pairs.second], n[pairs.second]
    chi2 = pearson(x1, n1, x2, n2)
    effect = np.abs(log_odds_ratio(x1, n1, x2, n2)) * LOGIT_TO_D
    return {"spec_chi2": chi2, "spec_p_value": chdtrc(1, chi2), "spec_effect": effect}


def _omnibus(layout: Layout) -> dict[str, float]:
    """Pearson's chi-square of all groups; equal to Kruskal–Wallis H but for a factor (N−1)/N."""
    yes, n, total = _yes(layout), layout.sizes, float(layout.sizes.sum())
    rate, df = float(yes.sum() / total), n.size - 1
    chi2 = 0.0 if rate in (0.0, 1.0) else float(np.sum((yes - n * rate) ** 2 / n) / (rate * (1 - rate)))
    h = chi2 * (total - 1) / total
    return {
        "chi2": chi2,
        "chi2_df": float(df),
        "chi2_p": float(chdtrc(df, chi2)),
        "kruskal_wallis_h": h,
        "kruskal_wallis_p": float(chdtrc(df, h)),
    }


def _yes(layout: Layout) -> Floats:
    """How often each group's outcome is yes (G)."""
    return np.asarray(np.add.reduceat(layout.values, layout.group_start) + layout.sizes * layout.reference)
