"""Yes/no outcomes and refusals: Cochran–Mantel–Haenszel, t on cluster means of y − ȳ, and the odds ratio."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from pytest_fairness.statistics import proportions
from pytest_fairness.statistics.arrays import Bools, Floats
from pytest_fairness.statistics.clusters import Contrast, NameParts, contrast, intraclass, reach, recurrence, removals
from pytest_fairness.statistics.comparison import (
    Comparison,
    Strata,
    combine,
    combine_in_block,
    estimate,
    extremes,
    ragged_share,
)
from pytest_fairness.statistics.effects import FEW, LOGIT_TO_D, CumulativeOdds, cumulative_odds
from pytest_fairness.statistics.layout import Layout, PairCells, Pairs, pair_cells, sums
from pytest_fairness.statistics.scores import LEAST_ROWS, mean_known, stratified_z


@dataclass(frozen=True, slots=True)
class _Inner:
    """One pass over comparisons: of pairs of groups, or of pairs within a block."""

    z: Floats
    p_row: Floats
    rates: Contrast
    odds: CumulativeOdds
    aligned: Floats
    square: Floats


def compare_rates(layout: Layout, pairs: Pairs, parts: NameParts | None = None, *, alike: bool = False) -> Comparison:
    """Compare every pair of groups on a yes/no outcome (values 0 and 1). *alike*: the cells of the layout hold equal
    rows, each its own cluster."""
    cells = pair_cells(layout, pairs, alike=alike)
    whole = _compare(cells, parts)
    yes = cells.one_row(layout.by_cell(layout.values) + layout.cell_size * layout.reference)
    x = sums(2 * cells.comparison + cells.side, yes * cells.multiplicity, 2 * pairs.first.size).reshape(-1, 2)
    x1, x2 = x[:, 0], x[:, 1]
    n1, n2 = cells.side_rows[:, 0], cells.side_rows[:, 1]
    expected = proportions.smallest_expected(x1, n1, x2, n2)
    fisher = proportions.fisher_exact(x1, n1, x2, n2)
    exact = (layout.blocks == 1) & layout.own_rows & (expected < FEW)
    p_row = np.where(exact, fisher, whole.p_row)
    p_cluster = whole.rates.p_value

    least, most = extremes(layout)
    still = least == most
    constant = still[pairs.first] & still[pairs.second]
    split = constant & (least[pairs.first] != least[pairs.second])
    effect = whole.odds.effect
    value = np.where(split, np.copysign(np.inf, effect.value), np.where(constant, 0.0, effect.value))
    icc, per_cluster = intraclass(cells, whole.aligned, whole.square)
    icc_both = mean_known(icc)
    row_error, row_df = _row_error(cells, yes)
    df = np.where(np.isnan(whole.rates.error), row_df, whole.rates.df)
    half = reach(np.where(np.isnan(whole.rates.error), row_error, whole.rates.error), df)
    difference = whole.rates.difference
    inflation = design_effect(whole.rates, row_error)
    log_odds, log_error = whole.odds.log_odds, effect.error / LOGIT_TO_D
    ends = reach(log_error, df, 0.95)
    recurring = recurrence(cells, parts)
    strata = _each_block(cells, layout, parts)
    with np.errstate(over="ignore"):
        odds = {
            "odds_ratio": np.exp(log_odds),
            "odds_ratio_low": np.exp(log_odds - ends),
            "odds_ratio_high": np.exp(log_odds + ends),
        }
    return Comparison(
        pairs=pairs,
        test=_tests(exact, np.isnan(p_cluster), cells.paired, layout.blocks > 1),
        p_row=p_row,
        p_cluster=p_cluster,
        p_value=combine(p_row, p_cluster),
        df=df,
        effects=(estimate(effect.name, value, effect.error, df),),
        difference=difference,
        error=np.where(np.isnan(whole.rates.error), row_error, whole.rates.error),
        difference_df=df,
        difference_low=difference - half,
        difference_high=difference + half,
        rows=cells.side_rows,
        clusters=cells.units,
        labels=np.isnan(p_cluster),
        ragged=ragged_share(layout, pairs),
        constant=constant,
        part_clusters=recurring.least,
        part_constant=recurring.constant,
        icc=icc_both,
        per_cluster=per_cluster.mean(axis=1),
        statistic=("Cochran-Mantel-Haenszel z", whole.z),
        beside={
            "n_1": n1,
            "n_2": n2,
            "z": whole.z,
            "t": whole.rates.t,
            "df": df,
            "standardiser_sd": row_error / np.sqrt(1 / np.maximum(n1, 1.0) + 1 / np.maximum(n2, 1.0)),
            "standardiser_df": row_df,
            "fisher_p_value": fisher,
            "smallest_expected_count": expected,
            **odds,
            "icc_1": icc[:, 0],
            "icc_2": icc[:, 1],
            "icc": icc_both,
            "design_effect": inflation,
            **plain_rates(x1, n1, x2, n2),
            **_plain(layout, pairs),
        },
        omnibus=_omnibus(layout),
        strata=strata,
    )


def _compare(cells: PairCells, parts: NameParts | None) -> _Inner:
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
    odds = cumulative_odds(cells, removals(cells), levels, 2, parts)
    return _Inner(z, p_row, found, odds, aligned, square)


def _each_block(cells: PairCells, layout: Layout, parts: NameParts | None) -> Strata | None:
    if layout.blocks == 1:
        return None
    inner, kept = cells.each_stratum(LEAST_ROWS)
    if not kept.size:
        return None
    found = _compare(inner, parts)
    effect = found.odds.effect
    yes = inner.one_row(layout.by_cell(layout.values) + layout.cell_size * layout.reference)
    return Strata(
        pair=cells.stratum_comparison[kept],
        block=cells.stratum_block[kept],
        rows=inner.side_rows,
        means=inner.by_stratum_side(yes * inner.multiplicity) / inner.rows,
        p_value=combine_in_block(found.p_row, found.rates.p_value),
        effects=(estimate(effect.name, effect.value, effect.error, found.rates.df),),
    )


def _tests(exact: Bools, labels: Bools, paired: Bools, blocked: bool) -> tuple[str, ...]:
    names = []
    for is_exact, label, pair in zip(exact.tolist(), labels.tolist(), paired.tolist(), strict=True):
        stratified = "Cochran-Mantel-Haenszel" if blocked else "Mantel-Haenszel chi-square"
        row = "Fisher's exact" if is_exact else stratified
        names.append(row if label else f"{row}, and {'paired ' if pair else ''}t on cluster rates")
    return tuple(names)


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
    low, high = proportions.newcombe(x1, n1, x2, n2)
    ratio, ratio_low, ratio_high = proportions.katz(x1, m1, x2, m2)
    chi2 = proportions.pearson(x1, n1, x2, n2)
    return {
        "rate_1": p1,
        "rate_2": p2,
        "yates_p_value": chdtrc(1, proportions.pearson(x1, n1, x2, n2, yates=True)),
        "phi": np.sqrt(chi2 / np.maximum(n1 + n2, 1.0)) * np.sign(p1 - p2),
        "risk_difference": p1 - p2,
        "risk_difference_low": low,
        "risk_difference_high": high,
        "risk_ratio": ratio,
        "risk_ratio_low": ratio_low,
        "risk_ratio_high": ratio_high,
        "cohens_h": proportions.cohens_h(p1, p2),
    }


def _plain(layout: Layout, pairs: Pairs) -> dict[str, Floats]:
    """The literal specification's own: chi-square and |ln OR|·√3/π of all rows, without blocks or clusters."""
    x = np.add.reduceat(layout.values, layout.group_start) + layout.sizes * layout.reference
    x1, n1, x2, n2 = x[pairs.first], layout.sizes[pairs.first], x[pairs.second], layout.sizes[pairs.second]
    chi2 = proportions.pearson(x1, n1, x2, n2)
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
