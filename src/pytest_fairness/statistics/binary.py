"""Yes/no outcomes and refusals: Cochran–Mantel–Haenszel, Mantel–Haenszel odds ratio, cluster means of y −
ȳ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtr

from pytest_fairness.statistics import proportions
from pytest_fairness.statistics.clusters import (
    Contrast,
    Pairs,
    cluster_means,
    contrast,
    partner_sizes,
    t_quantile,
)
from pytest_fairness.statistics.comparison import (
    Comparison,
    compared,
    extremes,
    interval,
    likeness,
    ratio_or_infinite,
)
from pytest_fairness.statistics.frames import Bools, Floats
from pytest_fairness.statistics.layout import Layout

LOGIT_TO_D = float(np.sqrt(3) / np.pi)
"""ln OR · √3/π is the d of two logistic distributions with that odds ratio (Hasselblad & Hedges 1995)."""
Z95 = 1.959963984540054
FEW = 5.0
"""Below this smallest expected count a chi-square is not trusted (Cochran 1954)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Successes and rows of each pair: by block (P × H, 0 in blocks that lack a group) and in all (P)."""

    x1h: Floats
    n1h: Floats
    x2h: Floats
    n2h: Floats

    @property
    def whole(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.x1h.sum(axis=1), self.n1h.sum(axis=1), self.x2h.sum(axis=1), self.n2h.sum(axis=1)


def count_pairs(layout: Layout, pairs: Pairs) -> tuple[Counts, Floats]:
    """Counts of each pair in its common blocks, and the successes of each group and block (G × H)."""
    groups, blocks = layout.count.shape
    at = layout.cell_group * blocks + layout.cell_block
    total = layout.by_cell(layout.values) + layout.cell_size * layout.reference
    x = np.bincount(at, total, minlength=groups * blocks).astype(np.float64).reshape(groups, blocks)
    i, j = pairs.first, pairs.second
    both = (layout.count[i] > 0) & (layout.count[j] > 0)
    n1h, n2h = np.where(both, layout.count[i], 0.0), np.where(both, layout.count[j], 0.0)
    return Counts(x1h=np.where(both, x[i], 0.0), n1h=n1h, x2h=np.where(both, x[j], 0.0), n2h=n2h), x


def compare_rates(layout: Layout, pairs: Pairs) -> Comparison:
    """Compare every pair of groups on a yes/no outcome (values 0 and 1)."""
    sizes = partner_sizes(layout)
    counts, x = count_pairs(layout, pairs)
    z, p_cmh = cochran_mantel_haenszel(counts)
    x1, n1, x2, n2 = counts.whole
    expected = proportions.smallest_expected(x1, n1, x2, n2)
    fisher = proportions.fisher_exact(x1, n1, x2, n2)
    exact = (layout.blocks == 1) & layout.own_rows & (expected < FEW)
    p_row = np.where(exact, fisher, p_cmh)

    cells, squares = _aligned(layout, x, sizes)
    by_cluster = contrast(layout, pairs, *cluster_means(layout, cells, sizes), 1.0)
    p_cluster = by_cluster.p_value()
    row_error, row_df = _row_error(counts)
    half = interval(by_cluster, row_error, row_df)
    inflation = design_effect(by_cluster, row_error)
    odds, log_variance = odds_ratio(counts)
    log_odds = np.log(odds)
    df = np.where(np.isnan(by_cluster.error), row_df, by_cluster.interval_df)
    reach = t_quantile(df, 0.95) * np.sqrt(log_variance * inflation)

    least, most = extremes(layout)
    still = least == most
    constant = still[pairs.first] & still[pairs.second]
    apart = (n1 == 0) | (n2 == 0)
    split = constant & (least[pairs.first] != least[pairs.second])
    effect = np.where(split, np.copysign(np.inf, log_odds), log_odds * LOGIT_TO_D)
    effect = np.where(apart | (constant & ~split), 0.0, effect)
    low = np.where(apart, -np.inf, np.where(constant, effect, (log_odds - reach) * LOGIT_TO_D))
    high = np.where(apart, np.inf, np.where(constant, effect, (log_odds + reach) * LOGIT_TO_D))

    alike = likeness(layout, squares, cells, sizes, pairs)
    t = ratio_or_infinite(by_cluster.difference, np.nan_to_num(by_cluster.error))
    return compared(
        layout,
        pairs,
        by_cluster,
        half,
        test=_tests(exact, np.isnan(p_cluster), by_cluster.paired, layout.blocks > 1),
        p_values=(p_row, p_cluster),
        effect_name="d from odds ratio",
        effect=(effect, low, high),
        constant=constant,
        alike=alike,
        statistic=("Cochran-Mantel-Haenszel z", z),
        beside={
            "n_1": n1,
            "n_2": n2,
            "z": z,
            "t": t,
            "df": by_cluster.df,
            "fisher_p_value": fisher,
            "smallest_expected_count": expected,
            "odds_ratio": odds,
            "odds_ratio_low": np.exp(log_odds - Z95 * np.sqrt(log_variance)),
            "odds_ratio_high": np.exp(log_odds + Z95 * np.sqrt(log_variance)),
            **alike.told,
            "design_effect": inflation,
            **plain_rates(x1, n1, x2, n2),
        },
        omnibus=_omnibus(x, layout.count),
    )


def _tests(exact: Bools, labels: Bools, paired: Bools, blocked: bool) -> tuple[str, ...]:
    names = []
    for is_exact, label, pair in zip(exact.tolist(), labels.tolist(), paired.tolist(), strict=True):
        stratified = "Cochran-Mantel-Haenszel" if blocked else "Mantel-Haenszel chi-square"
        row = "Fisher's exact" if is_exact else stratified
        names.append(row if label else f"{row}, and {'paired ' if pair else ''}t on cluster rates")
    return tuple(names)


def cochran_mantel_haenszel(counts: Counts) -> tuple[Floats, Floats]:
    """z and two-sided p of each pair, without continuity correction; z² is Mantel & Haenszel's chi-square
    (1959).
    """
    n = counts.n1h + counts.n2h
    x = counts.x1h + counts.x2h
    safe = np.maximum(n, 1.0)
    score = np.sum(counts.x1h - counts.n1h * x / safe, axis=1)
    variance = np.sum(counts.n1h * counts.n2h * x * (n - x) / (safe**2 * np.maximum(n - 1, 1.0)), axis=1)
    z = np.where(variance > 0, score / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)
    return z, np.where(variance > 0, np.minimum(2 * ndtr(-np.abs(z)), 1.0), 1.0)


def odds_ratio(counts: Counts) -> tuple[Floats, Floats]:
    """Mantel–Haenszel odds ratio of each pair and the variance of its logarithm.

    The variance is Robins, Breslow & Greenland's (1986), which is Woolf's where there is one block. Where the
    pooled table has a zero cell, or the estimate is 0 or infinite, ½ is added to all four cells of the pooled
    table and the variance is Woolf's (Haldane 1956, Anscombe 1956).
    """
    a, b = counts.x1h, counts.n1h - counts.x1h
    c, d = counts.x2h, counts.n2h - counts.x2h
    n = np.maximum(counts.n1h + counts.n2h, 1.0)
    r, s = a * d / n, b * c / n
    p, q = (a + d) / n, (b + c) / n
    sum_r, sum_s = r.sum(axis=1), s.sum(axis=1)
    pooled = [cell.sum(axis=1) for cell in (a, b, c, d)]
    smallest = np.minimum.reduce(pooled)
    poor = (smallest == 0) | (sum_r == 0) | (sum_s == 0)
    safe_r, safe_s = np.where(poor, 1.0, sum_r), np.where(poor, 1.0, sum_s)
    variance = (
        (p * r).sum(axis=1) / (2 * safe_r**2)
        + (p * s + q * r).sum(axis=1) / (2 * safe_r * safe_s)
        + (q * s).sum(axis=1) / (2 * safe_s**2)
    )
    pa, pb, pc, pd = (cell + 0.5 for cell in pooled)
    odds = np.where(poor, pa * pd / (pb * pc), safe_r / safe_s)
    return odds, np.where(poor, 1 / pa + 1 / pb + 1 / pc + 1 / pd, variance)


def design_effect(by_cluster: Contrast, row_error: Floats) -> Floats:
    """How much wider the difference of cluster means spreads than that of independent rows would; at least
    1.
    """
    square, plain = np.nan_to_num(by_cluster.error) ** 2, row_error**2
    return np.maximum(np.where(plain > 0, square / np.where(plain > 0, plain, 1.0), 1.0), 1.0)


def _row_error(counts: Counts) -> tuple[Floats, Floats]:
    """Standard error of the difference of independent rows, and its df, from the variance within group ×
    block.
    """
    _, n1, _, n2 = counts.whole
    within = np.zeros(n1.size)
    cells = np.zeros(n1.size)
    for x, n in ((counts.x1h, counts.n1h), (counts.x2h, counts.n2h)):
        within += np.sum(x * (n - x) / np.maximum(n, 1.0), axis=1)
        cells += np.sum(n > 0, axis=1)
    df = n1 + n2 - cells
    # Where blocks hold one row of each group, nothing varies within them; take the variance within groups.
    x1, _, x2, _ = counts.whole
    plain = x1 * (n1 - x1) / np.maximum(n1, 1.0) + x2 * (n2 - x2) / np.maximum(n2, 1.0)
    enough = df * 10 >= n1 + n2 - 2
    variance = np.where(enough, within / np.maximum(df, 1.0), plain / np.maximum(n1 + n2 - 2, 1.0))
    error = np.sqrt(variance * (1 / np.maximum(n1, 1.0) + 1 / np.maximum(n2, 1.0)))
    return error, np.maximum(n1 + n2 - 2, 0.0)


def _aligned(layout: Layout, x: Floats, sizes: Floats | None) -> tuple[Floats, Floats]:
    """Sums and sums of squares of y − ȳ_h over each cell towards each partner (G × U)."""
    group, at = layout.cell_group, layout.cell_block
    rate = (x[group, at] + x[:, at]) / (layout.count[group, at] + layout.count[:, at])
    yes = layout.by_cell(layout.values) + layout.cell_size * layout.reference
    n = layout.cell_size if sizes is None else sizes
    here = yes if sizes is None else np.where(sizes > 0, yes, 0.0)
    return here - n * rate, np.maximum(here * (1 - 2 * rate) + n * rate**2, 0.0)


def plain_rates(x1: Floats, n1: Floats, x2: Floats, n2: Floats) -> dict[str, Floats]:
    """The plain 2×2 statistics of each pair, 95 % intervals: rows as if independent."""
    m1, m2 = np.maximum(n1, 1.0), np.maximum(n2, 1.0)
    p1, p2 = x1 / m1, x2 / m2
    chi2 = proportions.pearson(x1, n1, x2, n2)
    low, high = proportions.newcombe(x1, n1, x2, n2)
    ratio, ratio_low, ratio_high = proportions.katz(x1, m1, x2, m2)
    return {
        "rate_1": p1,
        "rate_2": p2,
        "spec_chi2": chi2,
        "spec_p_value": chdtrc(1, chi2),
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


def _omnibus(x: Floats, count: Floats) -> dict[str, float]:
    """Pearson's chi-square of all groups; equal to Kruskal–Wallis H but for a factor (N−1)/N."""
    yes, n = x.sum(axis=1), count.sum(axis=1)
    rate = float(yes.sum() / n.sum())
    if rate in (0.0, 1.0):
        return {
            "chi2": 0.0,
            "chi2_df": float(n.size - 1),
            "chi2_p": 1.0,
            "kruskal_wallis_h": 0.0,
            "kruskal_wallis_p": 1.0,
        }
    chi2 = float(np.sum((yes - n * rate) ** 2 / n) / (rate * (1 - rate)))
    h = chi2 * (float(n.sum()) - 1) / float(n.sum())
    df = n.size - 1
    return {
        "chi2": chi2,
        "chi2_df": float(df),
        "chi2_p": float(chdtrc(df, chi2)),
        "kruskal_wallis_h": h,
        "kruskal_wallis_p": float(chdtrc(df, h)),
    }
