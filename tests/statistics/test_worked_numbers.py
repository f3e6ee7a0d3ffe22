"""Numbers worked out by hand or by other software, to six decimals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.analysis.four_fifths import analyze_four_fifths
from pytest_fairness.model import Reason, Verdict
from pytest_fairness.statistics import proportions
from pytest_fairness.statistics.binary import cochran_mantel_haenszel, count_pairs, odds_ratio
from pytest_fairness.statistics.categorical import chi_square, d_of_v
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.frames import read_design
from pytest_fairness.statistics.layout import lay_out
from pytest_fairness.statistics.mde import minimum_detectable_effect

from .frames_of import decisions, names, scores, strata

A = [7, 8, 8, 9, 6, 8, 7, 9]
B = [6, 7, 7, 8, 5, 6, 7, 8]
C = [5, 6, 7, 7, 6, 8, 5, 7]


def six(value):
    return pytest.approx(value, abs=5e-7)


def array(*values):
    return np.array([float(value) for value in values])


def test_two_samples_each_row_its_own_cluster():
    """Mann-Whitney with and without continuity, δ, its d, Hodges-Lehmann, Cohen d, Hedges g, t on aligned ranks."""
    pair = analyze_disparity(scores(a=A, b=B), "outcome", "group", cluster=None, kind="numeric").pairs[0]
    s = pair.statistics
    assert s["spec_u"] == 48
    assert s["spec_p_value"] == six(0.092082)
    assert s["z"] == six(1.738857)
    assert pair.p_row == six(0.082060)
    assert s["cliffs_delta"] == six(0.5)
    assert s["d_from_cliffs_delta"] == six(0.953873)
    assert s["hodges_lehmann_shift"] == 1
    assert s["cohens_d"] == six(0.966092)
    assert pair.effect == s["hedges_g_of_rows"] == six(0.913396)
    assert s["t"] == six(1.880031)
    assert s["df"] == 14
    assert pair.p_cluster == six(0.081075)
    assert pair.p_value == six(0.082060)


def test_three_samples_kruskal_wallis():
    """H over all groups is reported, and decides nothing."""
    finding = analyze_disparity(scores(a=A, b=B, c=C), "outcome", "group", cluster=None, kind="numeric")
    assert finding.details["omnibus"]["group"]["kruskal_wallis_h"] == six(5.737999)
    assert finding.details["omnibus"]["group"]["kruskal_wallis_p"] == six(0.056756)


TWO_TEMPLATES = {
    "a": {"a1": ([7, 8], [5, 6]), "a2": ([8, 9], [7, 7]), "a3": ([6, 8], [6, 5])},
    "b": {"b1": ([6, 6], [4, 5]), "b2": ([7, 8], [6, 5]), "b3": ([5, 6], [3, 4])},
}


def test_three_names_a_group_two_templates():
    """What the plain recipe calls significant (p .023, d 1.07) is three names against three: undecided."""
    finding = analyze_disparity(names(TWO_TEMPLATES), "outcome", "group", kind="numeric")
    pair = finding.pairs[0]
    s = pair.statistics
    assert s["spec_p_value"] == six(0.023134)
    assert s["cohens_d"] == six(1.069742)
    assert s["z"] == six(2.868401)
    assert pair.p_row == six(0.004126)
    assert s["mean_aligned_rank_1"] == six(np.mean([0.086538, 0.355769, 0.028846]))
    assert s["mean_aligned_rank_2"] == six(np.mean([-0.211538, 0.086538, -0.346154]))
    assert s["t"] == six(1.929747)
    assert s["df"] == 4
    assert pair.p_value == pair.p_cluster == six(0.125852)
    assert pair.effect == six(1.357226)
    assert (pair.effect_low, pair.effect_high) == (six(-0.165088), six(2.879540))
    assert (s["icc_1"], s["icc_2"]) == (six(0.532286), six(0.760112))
    assert finding.verdict is Verdict.INCONCLUSIVE


def test_van_elteren_over_two_blocks():
    """z and p of the blocked rank test."""
    frame = names({
        "a": {f"a{i}": ([x], [y]) for i, (x, y) in enumerate(zip([5, 6, 7], [8, 9, 9], strict=True))},
        "b": {f"b{i}": ([x], [y]) for i, (x, y) in enumerate(zip([4, 5, 6], [7, 7, 8], strict=True))},
    })  # fmt: skip
    pair = analyze_disparity(frame, "outcome", "group", cluster=None, kind="numeric").pairs[0]
    assert pair.statistics["z"] == six(2.081666)
    assert pair.p_row == six(0.037373)


def test_one_two_by_two_table():
    """45/60 against 33/60: every statistic that is reported beside the verdict."""
    pair = analyze_disparity(decisions(a=(45, 60), b=(33, 60)), "outcome", "group", cluster=None).pairs[0]
    s = pair.statistics
    assert s["spec_chi2"] == six(5.274725)
    assert s["spec_p_value"] == six(0.021637)
    assert s["yates_p_value"] == six(0.035266)
    assert s["fisher_p_value"] == six(0.034658)
    assert (s["odds_ratio"], s["odds_ratio_low"], s["odds_ratio_high"]) == (six(2.454545), six(1.131167), six(5.326174))
    assert pair.effect == six(0.495061)
    assert s["cohens_h"] == six(0.423431)
    assert s["phi"] == six(0.209657)
    assert (s["risk_difference_low"], s["risk_difference_high"]) == (six(0.029300), six(0.355410))
    low, high = proportions.newcombe(array(45), array(60), array(33), array(60), 0.90)
    assert_allclose([low[0], high[0]], [0.056755, 0.332297], atol=5e-7)
    assert (s["risk_ratio"], s["risk_ratio_low"], s["risk_ratio_high"]) == (six(1.363636), six(1.039387), six(1.789039))
    impact = (
        analyze_four_fifths(decisions(a=(45, 60), b=(33, 60)), "outcome", "group", cluster=None).pairs[0].statistics
    )
    assert impact["impact_ratio"] == six(0.733333)
    assert (impact["impact_ratio_low"], impact["impact_ratio_high"]) == (six(0.558959), six(0.962105))


def test_a_zero_cell():
    """0/30 against 5/30: half added to all four cells for the odds ratio, Fisher's p, Newcombe, the adjusted ratio."""
    pair = analyze_disparity(decisions(a=(0, 30), b=(5, 30)), "outcome", "group", cluster=None).pairs[0]
    s = pair.statistics
    assert s["odds_ratio"] == six(0.076006)
    assert pair.effect == six(-1.420743)
    assert pair.p_row == s["fisher_p_value"] == six(0.052186)
    assert (s["risk_difference_low"], s["risk_difference_high"]) == (six(-0.335644), six(-0.019730))
    assert (s["risk_ratio_low"], s["risk_ratio_high"]) == (six(0.005252), six(1.573538))
    frame = decisions(a=(0, 30), b=(5, 30))
    counts, _ = count_pairs(_layout(frame), all_pairs(2))
    _, variance = odds_ratio(counts)
    assert np.sqrt(variance[0]) * np.sqrt(3) / np.pi == six(0.827695)


def _layout(frame):
    design = read_design(frame, ["group"], cluster=None)
    values = frame["outcome"].to_numpy(float)
    return lay_out(
        values, design.group.codes, design.cluster, design.block, groups=2, blocks=design.blocks, own_rows=True
    )


def test_cochran_mantel_haenszel_over_two_strata():
    """Chi-square, p, the common odds ratio with its interval, and its d."""
    frame = strata([(18, 12), (10, 20)], [(25, 5), (19, 11)])
    counts, _ = count_pairs(_layout(frame), all_pairs(2))
    z, p = cochran_mantel_haenszel(counts)
    assert z[0] ** 2 == six(7.227500)
    assert p[0] == six(0.007180)
    pair = analyze_disparity(frame, "outcome", "group", cluster=None).pairs[0]
    s = pair.statistics
    assert (s["odds_ratio"], s["odds_ratio_low"], s["odds_ratio_high"]) == (six(2.953488), six(1.332670), six(6.545577))
    assert pair.effect == six(0.597082)


def test_three_labels():
    """Chi-square, Cramér's V and its d of a 2×3 table."""
    table = np.array([[[30.0, 20, 10], [18, 22, 20]]])
    chi2, used = chi_square(table)
    assert chi2[0] == six(6.428571)
    assert used[0] == 3
    assert d_of_v(np.sqrt(chi2 / 120))[0] == six(0.475831)
    labels = [("a", "x")] * 30 + [("a", "y")] * 20 + [("a", "z")] * 10
    labels += [("b", "x")] * 18 + [("b", "y")] * 22 + [("b", "z")] * 20
    frame = scores(a=[1], b=[1]).iloc[:0].reindex(range(120))
    frame["group"], frame["outcome"] = zip(*labels, strict=True)
    pair = analyze_disparity(frame, "outcome", "group", cluster=None).pairs[0]
    assert pair.p_row == six(0.040184)
    assert pair.statistics["cramers_v"] == six(0.231455)
    assert pair.effect == six(0.475831)


def test_corrections():
    """Bonferroni, Holm and Benjamini-Hochberg on six p-values."""
    p = [0.004, 0.011, 0.02, 0.03, 0.2, 0.6]
    assert_allclose(correct(p, "bonferroni"), [0.024, 0.066, 0.12, 0.18, 1, 1], atol=1e-12)
    assert_allclose(correct(p, "holm"), [0.024, 0.055, 0.08, 0.09, 0.4, 0.6], atol=1e-12)
    assert_allclose(correct(p, "fdr_bh"), [0.024, 0.033, 0.04, 0.045, 0.24, 0.6], atol=1e-12)


def test_a_missing_p_value_counts_as_one_and_stays_in_the_family():
    """Otherwise a comparison that could not be made would make the others look stronger."""
    assert_allclose(correct([0.01, np.nan], "bonferroni"), [0.02, 1.0])
    assert_allclose(correct([0.01, np.nan], "holm"), [0.02, 1.0])


def test_small_numbers_of_the_federal_guidelines():
    """16 of 80 against 3 of 20 (EEOC Q&A 21): ratio .75, but one hire more would turn it round."""
    finding = analyze_four_fifths(decisions(a=(16, 80), b=(3, 20)), "outcome", "group", cluster=None)
    s = finding.pairs[0].statistics
    assert s["impact_ratio"] == six(0.75)
    assert abs(s["z"]) == six(0.509813)
    assert s["fisher_p_value"] == six(0.757062)
    assert s["shortfall"] == six(0.8)
    assert s["flip_flop"] is True
    assert (s["impact_ratio_low"], s["impact_ratio_high"]) == (six(0.241891), six(2.325427))
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.SMALL_NUMBERS)


@pytest.mark.parametrize(
    ("clusters", "rows", "family", "expected"),
    [(10, 20, 6, 0.507415), (20, 10, 6, 0.423870), (5, 20, 6, 0.819466), (10, 20, 1, 0.393082)],
)
def test_minimum_detectable_effect(clusters, rows, family, expected):
    """At power .8 and an intraclass correlation of .04."""
    mde = minimum_detectable_effect(array(clusters), array(clusters), array(rows), array(0.04), family_size=family)
    assert mde[0] == six(expected)


def test_refusals_as_the_worst_rank():
    """Half of B is refused: the answered scores do not differ, and the finding does not hide behind them."""
    frame = scores(a=[7, 8, 6, 9, 7, 8], b=[8, 7, np.nan, np.nan, 9, np.nan])
    frame["refused"] = frame.outcome.isna()
    finding = analyze_disparity(frame, "outcome", "group", cluster=None, kind="numeric")
    pair = finding.pairs[0]
    assert pair.statistics["spec_p_value"] == six(0.591320)
    assert pair.statistics["worst_rank_spec_p_value"] == six(0.325421)
    assert pair.p_value == pair.statistics["worst_rank_p_value"] < pair.statistics["complete_case_p_value"]
    refusal = next(p for p in finding.pairs if p.metric == "refusal")
    assert refusal.p_row == six(0.181818)
    assert finding.refusal_rates == {"a": 0.0, "b": 0.5}
