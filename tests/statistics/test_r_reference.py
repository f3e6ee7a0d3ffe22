"""Everything that R computes and we report, on the same data, to a relative 1e-9.

``tests/data/r_reference.json`` holds R 4.2.2's results, nasty cases included. Where R raises,
returns NaN, or means something else by the same name, the case is skipped by name and the reason
stands beside it.
"""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import chdtrc, stdtrit

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.statistics import proportions
from pytest_fairness.statistics.categories import chi_square
from pytest_fairness.statistics.corrections import correct

from .frames_of import decisions, scores, strata

R = json.loads((Path(__file__).parents[1] / "data" / "r_reference.json").read_text())
SAME = 1e-9


def cases(section):
    return [pytest.param(case, id=case["id"]) for case in R[section]]


def same(ours, theirs, rel=SAME):
    """Equal to R, or R has no number there."""
    if (
        isinstance(theirs, str)
        or theirs is None
        or (isinstance(theirs, float) and math.isnan(theirs))
    ):
        return True
    return ours == pytest.approx(theirs, rel=rel, abs=1e-12 if abs(theirs) < 1e-3 else 0)


def one(*values):
    return [np.array([float(value)]) for value in values]


@pytest.mark.parametrize("case", cases("two_sample"))
def test_two_samples(case):
    """Mann-Whitney, Kruskal-Wallis, Cohen d, Hedges g and Cliff's δ."""
    frame = scores(x=case["x"], y=case["y"])
    finding = analyze_disparity(frame, "outcome", "group", cluster=None, kind="numeric")
    pair = finding.pairs[0]
    s = pair.statistics
    assert s["spec_u"] == case["wilcox_asymp_cc"]["statistic"]
    assert same(s["spec_p_value"], case["wilcox_asymp_cc"].get("p_value"))
    assert same(pair.p_row, case["wilcox_asymp_nocc"].get("p_value"))
    omnibus = finding.details["omnibus"]["group"]
    assert same(omnibus["kruskal_wallis_h"], case["kruskal"].get("statistic"))
    assert same(omnibus["kruskal_wallis_p"], case["kruskal"].get("p_value"))
    effect = case["effect"]
    assert same(s["cliffs_delta"], effect["cliffs_delta"])
    assert same(s["mean_1"], case["mean_x"])
    assert same(s["mean_2"], case["mean_y"])
    spread = isinstance(effect["cohens_d"], float) and math.isfinite(effect["cohens_d"])
    if spread and len(case["x"]) + len(case["y"]) > 3:
        # R subtracts means near 1e9 and loses eight digits; we subtract a value of the data first
        # and do not
        rel = 1e-7 if case["id"] == "large_magnitude" else SAME
        assert same(s["cohens_d"], effect["cohens_d"], rel)
        assert same(s["hedges_g_of_rows"], effect["hedges_g_approx"], rel)


@pytest.mark.parametrize("case", cases("two_sample"))
def test_group_means_have_the_interval_of_student(case):
    """The 95 % interval of a group whose rows stand for themselves is R's one-sample t interval."""
    if len(case["x"]) < 2 or case["var_x"] == 0:
        pytest.skip("no spread to make an interval of")
    finding = analyze_disparity(
        scores(x=case["x"], y=case["y"]), "outcome", "group", cluster=None, kind="numeric"
    )
    group = finding.group_results[0]
    half = (group.high - group.low) / 2
    n = len(case["x"])
    rel = 1e-7 if case["id"] == "large_magnitude" else SAME  # the ends themselves are near 1e9
    assert half == pytest.approx(
        float(stdtrit(n - 1, 0.975)) * math.sqrt(case["var_x"] / n), rel=rel
    )
    assert same(group.median, case["median_x"])


@pytest.mark.parametrize("case", cases("k_sample"))
def test_k_samples(case):
    """Kruskal-Wallis over all groups; R gives NaN where all values tie, we give 0."""
    groups = {f"g{at}": values for at, values in enumerate(case["groups"])}
    finding = analyze_disparity(scores(**groups), "outcome", "group", cluster=None, kind="numeric")
    omnibus = finding.details["omnibus"]["group"]
    assert same(omnibus["kruskal_wallis_h"], case["kruskal"].get("statistic"))
    assert same(omnibus["kruskal_wallis_p"], case["kruskal"].get("p_value"))


@pytest.mark.parametrize("case", cases("tables_2x2"))
def test_two_by_two_tables(case):
    """Chi-square with and without Yates, Fisher, risk difference and ratio, odds ratio, h and φ."""
    (a, b), (c, d) = case["table"]
    if a + b == 0 or c + d == 0:
        pytest.skip("a group without rows is no group here: it cannot be given")
    table = one(a, a + b, c, c + d)
    empty_column = a + c == 0 or b + d == 0
    if not empty_column:
        assert same(proportions.pearson(*table)[0], case["chisq_plain"].get("statistic"))
        assert same(chdtrc(1, proportions.pearson(*table)[0]), case["chisq_plain"].get("p_value"))
        # R limits Yates' correction to |O − E|, so that it never overshoots: so do we
        assert same(
            proportions.pearson(*table, yates=True)[0], case["chisq_yates"].get("statistic")
        )
    assert same(proportions.fisher_exact(*table)[0], case["fisher"].get("p_value"))
    by_hand = case["by_hand"]
    x1, n1, x2, n2 = (float(value[0]) for value in table)
    assert same(x1 / n1 - x2 / n2, by_hand["risk_diff"])
    assert same(proportions.cohens_h(*one(x1 / n1, x2 / n2))[0], by_hand["cohens_h"])
    if min(a, c) > 0:
        ratio, low, high = (float(value[0]) for value in proportions.katz(*table))
        assert same(ratio, by_hand["risk_ratio_1_over_2"])
        assert same(low, by_hand["risk_ratio_ci_katz"][0])
        assert same(high, by_hand["risk_ratio_ci_katz"][1])
    if n1 + n2 > 100_000:
        return
    pair = analyze_disparity(
        decisions(a=(a, a + b), b=(c, c + d)), "outcome", "group", cluster=None
    ).pairs[0]
    odds = pair.statistics["odds_ratio"]
    if min(a, b, c, d) > 0:
        assert same(odds, by_hand["odds_ratio_sample"])
        if (
            min(a, b, c, d) < 5 and n1 + n2 > 3
        ):  # so few cannot show their own spread: Woolf's is the least that counts
            low, high = by_hand["or_ci_woolf"]
            woolf = math.log(high / low) / (2 * 1.959963984540054)
            reach = math.log(pair.statistics["odds_ratio_high"] / odds)
            assert reach >= float(stdtrit(n1 + n2 - 2, 0.975)) * woolf * (1 - SAME)
    elif not empty_column:
        assert same(odds, by_hand["or_haldane"])


@pytest.mark.parametrize("case", cases("tables_rxc"))
def test_larger_tables(case):
    """Pearson's chi-square; R gives NaN where a column or row is empty, we leave it out."""
    table = np.array(case["table"], dtype=float)
    if not (table.sum(axis=0).all() and table.sum(axis=1).all()):
        pytest.skip("R has no answer for an empty row or column")
    chi2, _ = chi_square(table[None])
    assert same(chi2[0], case["chisq"]["statistic"])
    df = (table.shape[0] - 1) * (table.shape[1] - 1)
    assert same(chdtrc(df, chi2[0]), case["chisq"]["p_value"])


@pytest.mark.parametrize("case", cases("p_adjust"))
def test_corrections(case):
    """Bonferroni, Holm and Benjamini-Hochberg, ties and ones included."""
    p = [np.nan if value is None or isinstance(value, str) else value for value in case["p"]]
    if any(np.isnan(p)):
        pytest.skip("R leaves a missing p out of the family; here it counts as 1")
    for ours, theirs in (("bonferroni", "bonferroni"), ("holm", "holm"), ("fdr_bh", "BH")):
        expected = case[theirs]["value"]
        np.testing.assert_allclose(correct(p, ours), expected, rtol=SAME)


def test_mantel_haenszel_on_the_berkeley_admissions():
    """Six departments: the association that the pooled table shows is gone within departments."""
    data = R["stratified"]["UCBAdmissions"]
    # R's tables are (admitted, rejected) × (male, female)
    frame = strata(
        *(
            [(man, not_man), (woman, not_woman)]
            for (man, woman), (not_man, not_woman) in data["tables"]
        )
    )
    pair = analyze_disparity(frame, "outcome", "group", cluster=None).pairs[0]
    assert same(pair.statistics["z"] ** 2, data["mantelhaen_nocc"]["statistic"])
    assert same(pair.p_row, data["mantelhaen_nocc"]["p_value"])
    assert same(pair.statistics["odds_ratio"], data["mantelhaen_nocc"]["estimate"])
    assert same(pair.statistics["spec_chi2"], data["marginal_chisq"]["statistic"])


def test_clustered_data_difference_of_name_means():
    """With every name in every template, the contrast of names is R's difference of the name means."""
    data = R["clustered"]
    frame = pd.DataFrame(data["data"]).assign(group=lambda d: d.group.map({0: "a", 1: "b"}))
    frame["template"] = frame.template.astype(str)
    pair = analyze_disparity(frame, "score", "group").pairs[0]
    estimate = data["name_means_welch"]["estimate"]
    assert same(pair.difference, estimate[0] - estimate[1])
    assert same(pair.difference, -data["lm_group_template"]["coef"])
