"""Yes/no outcomes and refusals: Cochran–Mantel–Haenszel, t on cluster means of y − ȳ, and the odds ratio."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from pytest_fairness.statistics.arrays import Floats
from pytest_fairness.statistics.clusters import Contrast, NameParts, contrast, intraclass, reach, removals
from pytest_fairness.statistics.effects import LOGIT_TO_D, Effect, cumulative_odds
from pytest_fairness.statistics.layout import Layout, PairCells, Pairs, pair_cells
from pytest_fairness.statistics.pair_table import PairTable, each_block, extremes, intervals, pair_table
from pytest_fairness.statistics.proportions import (
    FEW,
    cohens_h,
    fisher_exact,
    katz,
    newcombe,
    pearson,
    smallest_expected,
)
from pytest_fairness.statistics.scores import stratified_z


class _RatePass(NamedTuple):
    """One pass over comparisons: of pairs of groups, or of pairs within a block."""

    z: Floats
    p_row: Floats
    rates: Contrast
    log_odds: Floats
    effect: Effect
    yes: Floats
    aligned: Floats
    square: Floats


def compare_rates(layout: Layout, pairs: Pairs, parts: NameParts | None = None, *, alike: bool = False) -> PairTable:
    """Compare every pair of groups on a yes/no outcome (values 0 and 1). *alike*: the cells of the layout hold equal
    rows, each its own cluster."""
    cells = pair_cells(layout, pairs, alike=alike)
    whole = _compare(cells, parts)
    x1, x2 = cells.by_side(whole.yes).T
    n1, n2 = cells.side_rows.T
    expected = smallest_expected(x1, n1, x2, n2)
    fisher = fisher_exact(x1, n1, x2, n2)
    exact = (layout.blocks == 1) & layout.own_rows & (expected < FEW)

    least, most = extremes(layout)
    still = least == most
    constant = still[pairs.first] & still[pairs.second]
    split = constant & (least[pairs.first] != least[pairs.second])
    value = whole.effect.value
    value = np.where(split, np.copysign(np.inf, value), np.where(constant, 0.0, value))
    icc, per_cluster = intraclass(cells, whole.aligned, whole.square)
    row_error, row_df = _row_error(cells, whole.yes)
    alone = np.isnan(whole.rates.error)
    df = np.where(alone, row_df, whole.rates.df)
    error = np.where(alone, row_error, whole.rates.error)
    half, difference = reach(error, df), whole.rates.difference
    effect, low, high = intervals([replace(whole.effect, value=value)], df)
    log_reach = reach(whole.effect.error / LOGIT_TO_D, df, 0.95)
    with np.errstate(over="ignore"):
        odds = [np.exp(whole.log_odds + sign * log_reach) for sign in (-1, 1)]
        ratio = np.exp(whole.log_odds)
    rows = "Cochran-Mantel-Haenszel" if layout.blocks > 1 else "Mantel-Haenszel chi-square"
    return pair_table(
        cells,
        pairs,
        parts,
        whole.rates,
        np.where(exact, fisher, whole.p_row),
        row_test=np.where(exact, "Fisher's exact", rows).astype(object),
        cluster_test="rates",
        constant=constant,
        icc=icc,
        per_cluster=per_cluster,
        df=df,
        effect_names=(whole.effect.name,),
        effect=effect,
        low=low,
        high=high,
        difference=difference,
        error=error,
        difference_df=df,
        difference_low=difference - half,
        difference_high=difference + half,
        statistic="Cochran-Mantel-Haenszel z",
        value_of_test=whole.z,
        beside={
            "z": whole.z,
            "df": df,
            "standardiser_sd": row_error / np.sqrt(1 / np.maximum(n1, 1.0) + 1 / np.maximum(n2, 1.0)),
            "standardiser_df": row_df,
            "fisher_p_value": fisher,
            "smallest_expected_count": expected,
            "odds_ratio": ratio,
            "odds_ratio_low": odds[0],
            "odds_ratio_high": odds[1],
            "design_effect": design_effect(whole.rates, row_error),
            **plain_rates(x1, n1, x2, n2),
            **_plain(layout, pairs),
        },
        omnibus=_omnibus(layout),
        strata=each_block(cells, lambda inner, _: _of_block(inner, parts)),
    )


def _compare(cells: PairCells, parts: NameParts | None) -> _RatePass:
    layout = cells.layout
    yes = cells.one_row(layout.by_cell(layout.values) + layout.cell_size * layout.reference)
    x = cells.by_stratum(yes * cells.multiplicity)
    n1, n2 = cells.rows[:, 0], cells.rows[:, 1]
    n = np.maximum(n1 + n2, 1.0)
    rate = (x / n)[cells.stratum]
    aligned = yes - cells.size * rate
    square = np.maximum(yes * (1 - 2 * rate) + cells.size * rate**2, 0.0)
    # Without continuity correction; z² is Mantel & Haenszel's chi-square (1959).
    variance = n1 * n2 * x * (n - x) / (n**2 * np.maximum(n - 1, 1.0))
    z, p_row = stratified_z(cells, aligned, variance)
    found = contrast(cells, aligned, 1.0, parts)
    levels = np.rint(layout.values + layout.reference).astype(np.intp)
    return _RatePass(z, p_row, found, *cumulative_odds(cells, removals(cells), levels, 2, parts), yes, aligned, square)


def _of_block(cells: PairCells, parts: NameParts | None) -> tuple[Floats, Contrast, tuple[Effect], Floats]:
    found = _compare(cells, parts)
    means = cells.by_stratum_side(found.yes * cells.multiplicity) / cells.rows
    return found.p_row, found.rates, (found.effect,), means


def design_effect(by_cluster: Contrast, row_error: Floats) -> Floats:
    """How much wider the difference of cluster means spreads than that of independent rows would; at least 1."""
    square, plain = np.nan_to_num(by_cluster.error) ** 2, row_error**2
    return np.maximum(np.where(plain > 0, square / np.where(plain > 0, plain, 1.0), 1.0), 1.0)


def _row_error(cells: PairCells, yes: Floats) -> tuple[Floats, Floats]:
    """Standard error of the difference of independent rows, and its df, from the variance within group × block."""
    n, n1, n2 = cells.rows, cells.side_rows[:, 0], cells.side_rows[:, 1]
    x = cells.by_stratum_side(yes * cells.multiplicity)
    within = cells.strata_by_comparison(np.sum(x * (n - x) / np.maximum(n, 1.0), axis=1))
    df = n1 + n2 - 2 * cells.strata_by_comparison(cells.live.astype(np.float64))
    # Where blocks hold one row of each group, nothing varies within them; take the variance within groups.
    whole = np.stack([cells.strata_by_comparison(x[:, side]) for side in (0, 1)], axis=1)
    rows = cells.side_rows
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


def _plain(layout: Layout, pairs: Pairs) -> dict[str, Floats]:
    """The literal specification's own: chi-square and |ln OR|·√3/π of all rows, without blocks or clusters."""
    x = np.add.reduceat(layout.values, layout.group_start) + layout.sizes * layout.reference
    x1, n1, x2, n2 = x[pairs.first], layout.sizes[pairs.first], x[pairs.second], layout.sizes[pairs.second]
    chi2 = pearson(x1, n1, x2, n2)
    add = np.where(np.minimum.reduce([x1, n1 - x1, x2, n2 - x2]) < 0.5, 0.5, 0.0)
    log_odds = np.log((x1 + add) * (n2 - x2 + add) / ((n1 - x1 + add) * (x2 + add)))
    return {"spec_chi2": chi2, "spec_p_value": chdtrc(1, chi2), "spec_effect": np.abs(log_odds) * LOGIT_TO_D}


def _omnibus(layout: Layout) -> dict[str, float]:
    """Pearson's chi-square of all groups; equal to Kruskal–Wallis H but for a factor (N−1)/N."""
    yes, n = np.add.reduceat(layout.values, layout.group_start) + layout.sizes * layout.reference, layout.sizes
    rate = float(yes.sum() / n.sum())
    df = n.size - 1
    chi2 = 0.0 if rate in (0.0, 1.0) else float(np.sum((yes - n * rate) ** 2 / n) / (rate * (1 - rate)))
    h = chi2 * (float(n.sum()) - 1) / float(n.sum())
    return {
        "chi2": chi2,
        "chi2_df": float(df),
        "chi2_p": float(chdtrc(df, chi2)),
        "kruskal_wallis_h": h,
        "kruskal_wallis_p": float(chdtrc(df, h)),
    }
