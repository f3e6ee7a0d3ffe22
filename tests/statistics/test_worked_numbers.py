"""Numbers worked out by hand or by other software, to six decimals: R1 to R26 of the statistics contract.

The intervals of R2, R4, R5, R6, R7 and R25 were once those of other formulas (normal, Woolf's, a bootstrap). Every
interval is now that of the jackknife over clusters, which ``by_hand`` computes again here.
"""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from pytest_fairness.analysis.arm_contrast import analyze_arms
from pytest_fairness.analysis.baseline import compare_baseline
from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.analysis.equivalence import analyze_equivalence
from pytest_fairness.analysis.four_fifths import analyze_four_fifths
from pytest_fairness.analysis.preference import analyze_preference
from pytest_fairness.model import OutcomeKind, Reason, Verdict
from pytest_fairness.statistics import proportions
from pytest_fairness.statistics.arrays import read_design
from pytest_fairness.statistics.categories import balanced_v, chi_square, d_of_v
from pytest_fairness.statistics.clusters import t_quantile
from pytest_fairness.statistics.compare import measure, worst_rank
from pytest_fairness.statistics.corrections import correct, minimum_detectable_effect
from pytest_fairness.statistics.persona_scores import PersonaScore, ScoreSummary, baseline_gate, clip
from pytest_fairness.statistics.proportions import nearly_equal

from . import by_hand
from .by_hand import Row
from .frames_of import decisions, names, scores, strata

A = [7, 8, 8, 9, 6, 8, 7, 9]
B = [6, 7, 7, 8, 5, 6, 7, 8]
C = [5, 6, 7, 7, 6, 8, 5, 7]


def six(value):
    return pytest.approx(value, abs=5e-7)


def shows(pair, **figures):
    """The statistics of a pair, to six decimals."""
    assert {name: pair.statistics[name] for name in figures} == {name: six(value) for name, value in figures.items()}


def array(*values):
    return np.array([float(value) for value in values])


def ends(pair, name=None):
    """The 90 % interval of the effect that the pair shows, or of the one named."""
    if name is None:
        return pair.effect_low, pair.effect_high
    return pair.statistics[f"{name}_low"], pair.statistics[f"{name}_high"]


def own_rows(**groups):
    """The same rows for ``by_hand``, each its own cluster."""
    return [
        Row(float(y), side, f"{side}-{at}") for side, held in enumerate(groups.values()) for at, y in enumerate(held)
    ]


def compare(frame, kind, cluster="name"):
    """The comparison behind a finding, with all that it computes."""
    design = read_design(frame, ("group",), cluster=cluster)
    y = frame["outcome"].to_numpy(float)
    return measure(design, y, np.ones(y.size, dtype=bool), kind).pairs


def test_r1_two_samples_each_row_its_own_cluster():
    """Mann-Whitney with and without continuity, δ, its d, Hodges-Lehmann, Cohen d, Hedges g, t on aligned ranks."""
    pair = analyze_disparity(scores(a=A, b=B), "outcome", "group", cluster=None, kind="numeric").pairs[0]
    shows(pair, spec_u=48, spec_p_value=0.092082, z=1.738857, cliffs_delta=0.5, d_from_cliffs_delta=0.953873)
    shows(pair, hodges_lehmann_shift=1, cohens_d=0.966092, hedges_g=0.913396, hedges_g_of_rows=0.913396)
    shows(pair, t=1.880031, df=14)
    assert (pair.effect, pair.p_row, pair.p_cluster) == (six(0.953873), six(0.082060), six(0.081075))
    assert pair.p_value == pair.p_row


def test_r1_three_samples_kruskal_wallis():
    """H over all groups is reported, and decides nothing."""
    finding = analyze_disparity(scores(a=A, b=B, c=C), "outcome", "group", cluster=None, kind="numeric")
    assert finding.details["omnibus"]["group"]["kruskal_wallis_h"] == six(5.737999)
    assert finding.details["omnibus"]["group"]["kruskal_wallis_p"] == six(0.056756)


TWO_TEMPLATES = {
    "a": {"a1": ([7, 8], [5, 6]), "a2": ([8, 9], [7, 7]), "a3": ([6, 8], [6, 5])},
    "b": {"b1": ([6, 6], [4, 5]), "b2": ([7, 8], [6, 5]), "b3": ([5, 6], [3, 4])},
}


def test_r2_three_names_a_group_two_templates():
    """What the plain recipe calls significant (p .023, d 1.07) is three names against three."""
    finding = analyze_disparity(names(TWO_TEMPLATES), "outcome", "group", kind="numeric")
    pair = finding.pairs[0]
    shows(pair, spec_p_value=0.023134, cohens_d=1.069742, z=2.868401, t=1.929747, df=4, hedges_g=1.357226)
    shows(pair, mean_aligned_rank_1=np.mean([0.086538, 0.355769, 0.028846]), icc_1=0.532286)
    shows(pair, mean_aligned_rank_2=np.mean([-0.211538, 0.086538, -0.346154]), icc_2=0.760112)
    assert pair.p_row == six(0.004126)
    assert pair.p_value == pair.p_cluster == six(0.125852)
    assert finding.verdict is Verdict.INCONCLUSIVE


def test_r3_van_elteren_over_two_blocks():
    """z and p of the blocked rank test."""
    frame = names({
        "a": {f"a{i}": ([x], [y]) for i, (x, y) in enumerate(zip([5, 6, 7], [8, 9, 9], strict=True))},
        "b": {f"b{i}": ([x], [y]) for i, (x, y) in enumerate(zip([4, 5, 6], [7, 7, 8], strict=True))},
    })  # fmt: skip
    pair = analyze_disparity(frame, "outcome", "group", cluster=None, kind="numeric").pairs[0]
    assert pair.statistics["z"] == six(2.081666)
    assert pair.p_row == six(0.037373)


def test_r4_one_two_by_two_table():
    """45/60 against 33/60: every statistic that is reported beside the verdict."""
    frame = decisions(a=(45, 60), b=(33, 60))
    pair = analyze_disparity(frame, "outcome", "group", cluster=None).pairs[0]
    s = pair.statistics
    shows(pair, spec_chi2=5.274725, spec_p_value=0.021637, yates_p_value=0.035266, fisher_p_value=0.034658)
    shows(pair, odds_ratio=2.454545, spec_effect=0.495061, cohens_h=0.423431, phi=0.209657)
    shows(pair, risk_difference_low=0.029300, risk_difference_high=0.355410)
    shows(pair, risk_ratio=1.363636, risk_ratio_low=1.039387, risk_ratio_high=1.789039)
    assert pair.effect == six(0.495061)
    low, high = proportions.newcombe(array(45), array(60), array(33), array(60), stats.norm.ppf(0.95))
    assert_allclose([low[0], high[0]], [0.056755, 0.332297], atol=5e-7)
    impact = analyze_four_fifths(frame, "outcome", "group", cluster=None).pairs[0]
    shows(impact, impact_ratio=0.733333, impact_ratio_low=0.558959, impact_ratio_high=0.962105)
    rows = own_rows(a=[1] * 45 + [0] * 15, b=[1] * 33 + [0] * 27)
    error = by_hand.jackknife(rows, lambda own: by_hand.log_odds(own, [0, 1]))
    reach = stats.t.ppf(0.975, 118) * error
    assert (s["odds_ratio_low"], s["odds_ratio_high"]) == (
        six(2.454545 * math.exp(-reach)),
        pytest.approx(27 / 11 * math.exp(reach)),
    )


def test_r5_a_zero_cell():
    """0/30 against 5/30: half added to all four cells for the odds ratio, Fisher's p, Newcombe, the adjusted ratio."""
    pair = analyze_disparity(decisions(a=(0, 30), b=(5, 30)), "outcome", "group", cluster=None).pairs[0]
    shows(pair, odds_ratio=0.076006, risk_difference_low=-0.335644, risk_difference_high=-0.019730)
    shows(pair, fisher_p_value=0.052186, risk_ratio_low=0.005252, risk_ratio_high=1.573538)
    assert (pair.effect, pair.p_row) == (six(-1.420743), six(0.052186))


def test_r6_cochran_mantel_haenszel_over_two_strata():
    """Chi-square, p, the common odds ratio and its d."""
    frame = strata([(18, 12), (10, 20)], [(25, 5), (19, 11)])
    pair = analyze_disparity(frame, "outcome", "group", cluster=None).pairs[0]
    s = pair.statistics
    assert s["z"] ** 2 == six(7.227500)
    assert pair.p_row == six(0.007180)
    assert s["odds_ratio"] == six(2.953488)
    assert pair.effect == six(0.597082)


def three_labels(*tables):
    """One row a count of a 2 × 3 table; a block a table."""
    rows = [
        (group, f"t{block}", label)
        for block, table in enumerate(tables)
        for group, counts in zip("ab", table, strict=True)
        for label, count in zip((1, 2, 3), counts, strict=True)
        for _ in range(count)
    ]
    return pd.DataFrame(rows, columns=["group", "template", "outcome"])


TABLE = [[30, 20, 10], [18, 22, 20]]


def test_r7_three_labels():
    """Chi-square, Cramér's V and its d of a 2×3 table."""
    table = np.array([TABLE], dtype=float)
    chi2, used = chi_square(table)
    assert chi2[0] == six(6.428571)
    assert used[0] == 3
    assert d_of_v(np.sqrt(chi2 / 120))[0] == six(0.475831)
    frame = three_labels(TABLE)
    frame["outcome"] = frame["outcome"].map({1: "x", 2: "y", 3: "z"})
    pair = analyze_disparity(frame, "outcome", "group", cluster=None).pairs[0]
    assert pair.p_row == six(0.040184)
    assert pair.statistics["cramers_v"] == six(0.231455)
    assert pair.effect == six(0.475831)


def test_r8_corrections():
    """Bonferroni, Holm and Benjamini-Hochberg on six p-values."""
    p = [0.004, 0.011, 0.02, 0.03, 0.2, 0.6]
    assert_allclose(correct(p, "bonferroni"), [0.024, 0.066, 0.12, 0.18, 1, 1], atol=1e-12)
    assert_allclose(correct(p, "holm"), [0.024, 0.055, 0.08, 0.09, 0.4, 0.6], atol=1e-12)
    assert_allclose(correct(p, "fdr_bh"), [0.024, 0.033, 0.04, 0.045, 0.24, 0.6], atol=1e-12)


@pytest.mark.parametrize(
    ("p", "method", "size", "corrected"),
    [
        # a comparison that could not be made counts as 1, or it would make the others look stronger
        ([0.01, np.nan], "bonferroni", None, [0.02, 1.0]),
        ([0.01, np.nan], "holm", None, [0.02, 1.0]),
        # 2 · .011 is below 3 · .01, which was rejected no sooner
        ([0.03, 0.011, 0.01], "holm", None, [0.03, 0.03, 0.03]),
        # absent tests count as if they had p = 1
        ([0.01, 0.02], "holm", 5, [0.05, 0.08]),
        ([0.01, 0.02], "bonferroni", 5, [0.05, 0.1]),
        ([0.01, 0.02], "fdr_bh", 5, [0.05, 0.05]),
    ],
)
def test_what_is_missing_stays_in_the_family(p, method, size, corrected):
    assert_allclose(correct(p, method, size), corrected)


def test_r9_two_one_sided_tests():
    """Equivalence within ±.2 and ±1."""
    close = scores(a=[7.1, 6.9, 7.3, 7.0, 7.2, 6.8, 7.1, 7.0], b=[7.0, 7.1, 6.9, 7.2, 7.0, 6.9, 7.1, 7.0])
    options = {"cluster": None, "kind": "numeric"}
    assert analyze_equivalence(close, "outcome", "group", margin=0.2, **options).p_value == six(0.010625)
    assert analyze_equivalence(scores(a=A, b=B), "outcome", "group", margin=1, **options).p_value == six(0.5)


def test_r10_small_numbers_of_the_federal_guidelines():
    """16 of 80 against 3 of 20 (EEOC Q&A 21): ratio .75, but one hire more would turn it round."""
    finding = analyze_four_fifths(decisions(a=(16, 80), b=(3, 20)), "outcome", "group", cluster=None)
    (pair,) = finding.pairs
    shows(pair, impact_ratio=0.75, impact_ratio_low=0.241891, impact_ratio_high=2.325427, shortfall=0.8)
    shows(pair, fisher_p_value=0.757062, flip_flop=True)
    assert abs(pair.statistics["z"]) == six(0.509813)
    assert math.erfc(abs(pair.statistics["z"]) / math.sqrt(2)) == six(0.610183)
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.SMALL_NUMBERS)


def choices(first_wins, n):
    """Each ordered pair *n* times, the first-listed winning as often as given."""
    rows = []
    for (first, second), wins in first_wins.items():
        rows += [(first, second, first)] * wins + [(first, second, second)] * (n - wins)
    return pd.DataFrame(rows, columns=["first", "second", "chosen"])


def test_r11_bradley_terry_with_a_first_position():
    """Strengths, the position, their likelihood ratios, and A against B by order."""
    wins = {("A", "B"): 14, ("B", "A"): 9, ("A", "C"): 16, ("C", "A"): 8, ("B", "C"): 13, ("C", "B"): 10}
    finding = analyze_preference(choices(wins, 20), cluster=None)
    strength, order = finding.details["bradley_terry"], finding.details["order_effect"]
    assert (order["log_odds"], order["error"]) == (six(0.368055), six(0.194549))
    assert order["likelihood_ratio"] == six(3.654964)
    assert strength["strength"] == {"A": 0, "B": six(-0.539023), "C": six(-0.862235)}
    assert strength["error"] == {"A": 0, "B": six(0.273250), "C": six(0.280680)}
    assert strength["deviance"] == six(0.170732)
    assert (strength["likelihood_ratio"], strength["p_value"]) == (six(10.315211), six(0.005755))
    assert (strength["df"], order["df"]) == (2, 1)
    pair = finding.pairs[0]
    shows(pair, wins_1=25, n=40, z=1.599233, binomial_p_value=0.153860)
    assert pair.p_value == six(0.109769)


def test_r12_round_robin():
    """Wins 55, 40, 45, 40 of 90 each: the plain statistic is a third too large for four groups."""
    wins = {("A", "B"): 20, ("A", "C"): 15, ("A", "D"): 20, ("B", "C"): 15, ("B", "D"): 15, ("C", "D"): 15}
    robin = analyze_preference(choices(wins, 30), cluster=None).details["round_robin"]
    assert robin["chi_square_uncorrected"] == six(6.666667)
    assert robin["chi_square"] == six(5)
    assert robin["p_value"] == six(0.171797)


def summary(changes, categories=None, start=0.0):
    """A run in which each persona's score is *start* plus its change."""
    return ScoreSummary(
        personas={key: PersonaScore(mean=start + change, n=1) for key, change in changes.items()},
        categories=categories or {},
        trials=len(changes),
    )


def test_r13_a_baseline_that_fell():
    """Mean change, t, one-sided p and the bound of the one-sided 99 % interval."""
    old = dict(enumerate([92, 85, 78, 88, 95, 70, 81, 90, 66, 84]))
    new = dict(enumerate([90, 80, 77, 85, 95, 66, 80, 84, 66, 79]))
    pair = compare_baseline(summary(old), summary(new)).pairs[0]
    shows(pair, t=-3.857143, bound_99=-0.724993)
    assert (pair.difference, pair.p_value) == (six(-2.7), six(0.001932))


def test_r14_arms():
    """Six blocks of 15 choices an arm: the change of A's share, paired over blocks."""
    rows = [
        (arm, f"block {block}", *(("A", "B") if at % 2 else ("B", "A")), "A" if at < won else "B")
        for arm, wins in (("raw", [11, 10, 12, 9, 10, 10]), ("scrubbed", [8, 7, 9, 8, 8, 8]))
        for block, won in enumerate(wins)
        for at in range(15)
    ]
    frame = pd.DataFrame(rows, columns=["arm", "template", "first", "second", "chosen"])
    (pair,) = analyze_arms(frame, treated="scrubbed", control="raw", cluster=None).pairs
    assert pair.difference == six(-0.155556)
    assert (pair.statistics["change_low"], pair.statistics["change_high"]) == (six(-0.212680), six(-0.098432))
    assert pair.p_value == six(0.000917)


@pytest.mark.parametrize(
    ("clusters", "rows", "family", "expected"),
    [(10, 20, 6, 0.507415), (20, 10, 6, 0.423870), (5, 20, 6, 0.819466), (10, 20, 1, 0.393082)],
)
def test_r15_minimum_detectable_effect(clusters, rows, family, expected):
    """At power .8 and an intraclass correlation of .04."""
    mde = minimum_detectable_effect(array(clusters), array(clusters), array(rows), array(0.04), family_size=family)
    assert mde[0] == six(expected)


def test_r16_refusals_as_the_worst_rank():
    """Half of B is refused: the answered scores do not differ, and the finding does not hide behind them."""
    frame = scores(a=[7, 8, 6, 9, 7, 8], b=[8, 7, np.nan, np.nan, 9, np.nan])
    frame["refused"] = frame.outcome.isna()
    finding = analyze_disparity(frame, "outcome", "group", cluster=None, kind="numeric")
    pair = finding.pairs[0]
    assert pair.statistics["spec_p_value"] == six(0.591320)
    y, refused = frame["outcome"].to_numpy(float), frame["refused"].to_numpy()
    ranked, kind, _ = worst_rank(y, OutcomeKind.NUMERIC, scored=~refused, refused=refused, lower_is_worse=True)
    worst = compare(frame.assign(outcome=ranked), kind, cluster=None)
    assert worst.beside["spec_p_value"][0] == six(0.325421)
    assert pair.p_value == pair.statistics["worst_rank_p_value"] == worst.p_value[0]
    assert pair.p_value < pair.statistics["complete_case_p_value"]
    refusal = next(p for p in finding.pairs if p.metric == "refusal")
    assert refusal.p_row == six(0.181818)
    assert finding.refusal_rates == {"a": 0.0, "b": 0.5}


def test_r17_the_cumulative_odds_ratio():
    """Liu and Agresti's estimate, its jackknife with the degrees of freedom of the test, and its least error."""
    options = {"cluster": None, "kind": "ordinal"}
    pair = analyze_disparity(three_labels(TABLE), "outcome", "group", **options).pairs[0]
    assert math.exp(pair.effect * math.pi / math.sqrt(3)) == six(0.415929)
    assert pair.effect == six(-0.483648)
    assert pair.statistics["df"] == 118
    assert ends(pair) == (six(-0.805543), six(-0.161753))
    assert (pair.effect_high - pair.effect) / stats.t.ppf(0.95, 118) == six(0.194162)
    both = analyze_disparity(three_labels(TABLE, [[12, 15, 13], [9, 11, 20]]), "outcome", "group", **options).pairs[0]
    assert math.exp(both.effect * math.pi / math.sqrt(3)) == six(0.470783)
    assert both.effect == six(-0.415348)
    rare = analyze_disparity(decisions(a=(0, 30), b=(5, 30)), "outcome", "group", cluster=None).pairs[0]
    assert (rare.effect_high - rare.effect) / stats.t.ppf(0.95, 58) == six(0.827695)
    rows = own_rows(a=[0] * 30, b=[1] * 5 + [0] * 25)
    assert by_hand.jackknife(rows, lambda own: by_hand.log_odds(own, [0, 1])) * by_hand.TO_D == six(0.266303)


def test_r18_the_jackknife_over_names():
    """R2's data: g and d of δ with their intervals, and the same rows as three personas in both groups."""
    pair = analyze_disparity(names(TWO_TEMPLATES), "outcome", "group", kind="numeric").pairs[0]
    s = pair.statistics
    assert (s["hedges_g"], s["d_from_cliffs_delta"]) == (six(1.357226), six(1.407991))
    assert ends(pair, "hedges_g") == (six(-0.421924), six(3.136376))
    assert ends(pair, "d_from_cliffs_delta") == (six(-0.498877), six(3.314859))
    quantile = stats.t.ppf(0.95, 4)
    assert (s["hedges_g_high"] - s["hedges_g"]) / quantile == six(0.834558)
    assert (s["d_from_cliffs_delta_high"] - s["d_from_cliffs_delta"]) / quantile == six(0.894468)
    frame = names(TWO_TEMPLATES)
    columns = zip(frame["outcome"], frame["group"], frame["name"], frame["template"], strict=True)
    rows = [Row(float(y), int(group == "b"), name, template) for y, group, name, template in columns]
    left = {
        name: by_hand.hedges_g([row for row in rows if row.name != name]) for name in sorted({r.name for r in rows})
    }
    assert list(left.values()) == [six(x) for x in (1.408712, 0.956002, 1.648592, 1.155197, 2.146169, 0.972825)]
    frame["name"] = frame["name"].str[1:]
    both = analyze_disparity(frame, "outcome", "group", kind="numeric").pairs[0]
    assert both.p_value == six(0.009949)
    assert both.statistics["df"] == 2
    assert ends(both, "hedges_g") == (six(0.029844), six(2.684608))
    assert ends(both, "d_from_cliffs_delta") == (six(0.188947), six(2.627036))


def test_r19_each_template_alone():
    """p and effect within a template, Holm over the templates, and the whole pair."""
    held = {
        "a": ((6, 7, 2), (7, 6, 3), (5, 8, 6), (8, 5, 1), (6, 7, 4)),
        "b": ((6, 8, 6), (7, 6, 8), (5, 7, 7), (7, 7, 5), (4, 6, 9)),
    }
    frame = names({
        group: {f"{group}{at}": [[x] for x in row] for at, row in enumerate(rows)} for group, rows in held.items()
    })  # fmt: skip
    finding = analyze_disparity(frame, "outcome", "group", kind="numeric")
    alone = finding.details["by_block"]
    assert [one["block"] for one in alone] == ["t0", "t1", "t2"]
    assert [one["p_value"] for one in alone] == [six(0.551146), six(0.841097), six(0.021177)]
    of_delta = compare(frame, OutcomeKind.NUMERIC).strata.effect[:, 1]
    assert of_delta.tolist() == [six(0.432015), six(-0.142035), six(-2.198782)]
    assert [one["effect"] for one in alone] == [six(0.442488), six(-0.180645), six(-2.198782)]  # the larger of d and g
    assert correct([one["p_value"] for one in alone], "holm")[2] == six(0.063530)
    third = compare(frame[frame.template == "t2"].drop(columns="template"), OutcomeKind.NUMERIC)
    assert third.beside["t"][0] == six(-3.394674)
    assert finding.pairs[0].p_value == six(0.265307)


def parts_frame(firsts, lasts, values):
    rows = [
        (group, f"{first} {last}", first, last, value)
        for group, first_names, last_names, own in zip("ab", firsts, lasts, values, strict=True)
        for first, last, value in zip(first_names, last_names, own, strict=True)
    ]
    return pd.DataFrame(rows, columns=["group", "name", "first_name", "last_name", "outcome"])


@pytest.mark.parametrize(
    ("firsts", "lasts", "variance", "least", "df", "t", "p"),
    [
        (("ppqqrr", "xxyyzz"), ("uvuvuv", "ststst"), 0.304444, 2, 2, -1.389481, 0.299158),
        (("abcdef", "ghijkl"), ("uuuvwx", "uuuvwx"), 0.137037, 3, 4, -2.071036, 0.107104),
    ],
    ids=["first and last names", "surnames that both groups have"],
)
def test_r20_names_made_of_parts(firsts, lasts, variance, least, df, t, p):
    """Names that share a first or last name are no independent evidence: variance, G*, df, t and p."""
    means = [5.1, 5.6, 4.8, 5.5, 5.9, 6.2], [6.0, 6.7, 5.2, 6.1, 6.4, 7.3]
    frame = parts_frame(firsts, lasts, means)
    found = compare(frame, OutcomeKind.NUMERIC)
    assert found.difference[0] == six(-0.766667)
    assert found.error[0] ** 2 == six(variance)
    assert (found.part_clusters[0], found.df[0]) == (least, df)
    assert found.difference[0] / found.error[0] == six(t)
    plain = frame.assign(name=[f"n{at}" for at in range(12)]).drop(columns=["first_name", "last_name"])
    for table, expected in ((frame, p), (plain, 0.057119)):
        (pair,) = analyze_equivalence(table, "outcome", "group", margin=1, kind="numeric").pairs
        assert pair.statistics["difference_p_value"] == six(expected)


def test_r21_both_groups_weigh_the_same():
    """20 % of 100 against 60 % of 10,000: the raw V is that of the smaller group's share."""
    table = np.array([[[20.0, 80], [6000, 4000]]])
    v = balanced_v(table)
    assert v[0] == six(0.408248)
    assert d_of_v(v)[0] == six(0.894427)
    chi2, _ = chi_square(table)
    assert d_of_v(np.sqrt(chi2 / table.sum()))[0] == pytest.approx(0.16, abs=0.005)
    frame = decisions(a=(20, 100), b=(6000, 10000))
    frame["outcome"] = frame["outcome"].map({True: "yes", False: "no"})
    finding = analyze_disparity(frame, "outcome", "group", cluster=None)
    assert finding.pairs[0].effect == pytest.approx(-0.99, abs=0.005)
    assert finding.verdict is Verdict.FAIL


CHANGES = {"A": [-4, -9, 1, -7, -6], "B": [1, -2, 3, 0], "C": [-1, 2, -1]}


def gate(changes):
    """The gate on R22's categories."""
    moved = {f"{label}{at}": float(x) for label, held in changes.items() for at, x in enumerate(held)}
    categories = {f"g={label}": tuple(f"{label}{at}" for at in range(len(held))) for label, held in changes.items()}
    found = baseline_gate(
        summary(dict.fromkeys(moved, 0.0), categories), summary(moved, categories),
        alpha=0.005, margin_overall=1, margin_category=3,
    )  # fmt: skip
    return found, next(scope for scope in found.scopes if scope.label == "g=A")


def test_r22_small_categories_on_the_spread_of_all():
    """The pooled SD and its df, t and p, the category's own t, and what clipping leaves of a wild change."""
    found, scope = gate(CHANGES)
    assert (found.changes, scope.outliers) == ({}, {})
    assert (scope.test.t, scope.test.p) == (six(-2.936101), six(0.021277))
    assert scope.p_value == six(0.002038)
    assert stats.t.cdf(-5 * math.sqrt(5) / 2.924988, 9) == six(0.002038)
    assert stats.t.ppf(scope.p_value, 9) == six(-3.822354)
    wild = {**CHANGES, "B": [1, -2, 300, 0]}
    assert max(clip(array(*(x for held in wild.values() for x in held)))) == six(13.826)
    assert min(clip(-2 - array(*(x for held in wild.values() for x in held)))) == six(-15.826)
    found, scope = gate(wild)
    assert found.changes == {"B2": 300.0}
    assert scope.p_value == six(0.024830)
    assert stats.t.ppf(scope.p_value, 9) == six(-2.266328)
    assert stats.t.cdf(-5 * math.sqrt(5) / 4.933240, 9) == six(0.024830)


@pytest.mark.parametrize(("lost", "gained", "p"), [(7, 1, 0.035156), (12, 1, 0.001709), (9, 0, 0.001953)])
def test_r22_passes_lost_against_gained(lost, gained, p):
    """McNemar's exact test, one-sided."""
    old = {f"p{at}": float(at < 20) for at in range(30)}
    new = {f"p{at}": float(lost <= at < 20 or at >= 30 - gained) for at in range(30)}
    found = baseline_gate(
        summary(old), summary(new), alpha=0.005, margin_overall=0.02, margin_category=0.05, threshold=0.5
    )
    passes = found.scopes[1]
    assert (passes.lost, passes.gained) == (lost, gained)
    assert passes.p_value == six(p)


def test_r23_a_preference_within_the_order():
    """Both effects and their intervals over six name pairs; the larger one is shown, and both must be inside."""
    rows = []
    for pair, (first, second) in enumerate(zip([4, 4, 3, 4, 3, 4], [1, 0, 2, 1, 1, 1], strict=True)):
        for trial in range(4):
            rows.append(("A", "B", "A" if trial < first else "B", f"pair {pair}"))
            rows.append(("B", "A", "A" if trial < second else "B", f"pair {pair}"))
    finding = analyze_preference(pd.DataFrame(rows, columns=["first", "second", "chosen", "name"]))
    (pair,) = finding.pairs
    s = pair.statistics
    assert pair.p_value == six(0.121335)
    assert s["win_rate_1"] == six(0.583333)
    assert (s["d_from_win_rate"], *ends(pair, "d_from_win_rate")) == (six(0.185507), six(-0.054137), six(0.425150))
    assert (pair.effect, *ends(pair)) == (six(0.358166), six(-0.128527), six(0.844860))
    assert finding.verdict is Verdict.INCONCLUSIVE


def near_one(a, b):
    """Ten names a group, so many of twenty approved; a block of repetitions."""
    rows = [
        (group, f"{group}{name}", at, at < count)
        for group, counts in (("a", a), ("b", b))
        for name, count in enumerate(counts)
        for at in range(20)
    ]
    return pd.DataFrame(rows, columns=["group", "name", "repetition", "outcome"])


def near_intervals(found):
    """The 90 % intervals of the difference and of the ratio of rates, on n/deff rows with the t of the names."""
    deff, z = found.beside["design_effect"], t_quantile(found.df, 0.95)
    n = found.rows / deff[:, None]
    x = [found.beside["rate_1"] * n[:, 0], found.beside["rate_2"] * n[:, 1]]
    low, high = proportions.newcombe(x[0], n[:, 0], x[1], n[:, 1], z=z)
    _, least, most = proportions.katz(x[0], n[:, 0], x[1], n[:, 1], z=z)
    return [float(end[0]) for end in (low, high, least, most)]


def test_r24_near_one_the_points_decide():
    """Approvals of 99 %: d is open, the difference of the rates is not.

    The jackknife puts the ends of d at ±1.133688; Woolf's variance, without a design effect, would say ±.960856. Either
    way the points decide.
    """
    a, b = [20, 20, 19, 20, 20, 20, 20, 20, 20, 19], [20, 19, 20, 20, 19, 20, 20, 20, 20, 20]
    frame = near_one(a, b)
    assert near_intervals(compare(frame, OutcomeKind.BINARY)) == [
        six(-0.022450), six(0.022450), six(0.982723), six(1.017581)
    ]  # fmt: skip
    finding = analyze_disparity(frame, "outcome", "group")
    assert ends(finding.pairs[0]) == (six(-1.133688), six(1.133688))
    assert finding.verdict is Verdict.PASS
    assert "less than 5 points" in finding.pairs[0].notes[0]


def test_r24_names_that_differ_leave_it_open():
    """One name of which a fifth is turned down inflates the variance more than three times."""
    frame = near_one([20] * 9 + [18], [20] * 4 + [16] + [20] * 5)
    found = compare(frame, OutcomeKind.BINARY)
    assert found.beside["design_effect"][0] == six(3.372881)
    assert near_intervals(found)[:2] == [six(-0.047921), six(0.072262)]
    finding = analyze_disparity(frame, "outcome", "group")
    assert finding.pairs[0].effect == six(0.387749)
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.PRECISION)


FIRST = {"a": [7, 8, 8, 9, 7, 8, 8, 9], "b": [6, 7, 7, 8, 5, 6, 7, 8]}


@pytest.mark.parametrize(("rates", "inside"), [((0.02, 0.005), False), ((0.0205, 0.02), True), ((0.98, 0.995), True)])
def test_points_alone_do_not_make_rates_equal(rates, inside):
    """2 % against .5 % are one and a half points, and four times as many; of a hundred thousand each."""
    one, two, n, sure = (array(x) for x in (*rates, 100_000.0, 1.0))
    near, close = nearly_equal(one, n, two, n, sure, array(1e6))
    assert (near.tolist(), close.tolist()) == ([inside], [inside])


@pytest.mark.parametrize(
    ("second", "p", "g"),
    [
        (None, 0.021216, 1.303964),
        ({"a": [8, 7, 9, 7, 8, 7, 8, 9], "b": [7, 6, 8, 6, 7, 6, 8, 5]}, 0.001394, 1.351790),
        ({"a": [7, 6, 8, 7, 7, 6, 8, 7], "b": [7, 8, 6, 7, 7, 8, 6, 7]}, 0.073248, None),
    ],
    ids=["first", "confirmed", "not confirmed"],
)
def test_r25_two_stages(second, p, g):
    """The first sample, and both together with other second samples: p, g, its interval and the alarm at each stage."""
    groups = FIRST if second is None else {group: FIRST[group] + second[group] for group in FIRST}
    alpha = 0.05 if second is None else 0.025
    finding = analyze_disparity(scores(**groups), "outcome", "group", cluster=None, kind="numeric", alpha=alpha)
    pair = finding.pairs[0]
    assert pair.p_value == six(p)
    # Eight or sixteen are too few for more than a FLAG.
    assert finding.verdict is (Verdict.FLAG if p < alpha else Verdict.INCONCLUSIVE)
    if g is not None:
        rows = own_rows(**groups)
        expected = by_hand.interval(rows, by_hand.hedges_g, yes_no=False)
        assert pair.statistics["hedges_g"] == six(g)
        assert ends(pair, "hedges_g") == pytest.approx(expected, abs=5e-7)


def test_r26_four_fifths_of_four_groups():
    """62, 84, 80 and 78 of 200: below four fifths, and within chance once six pairs are counted."""
    frame = decisions(a=(62, 200), b=(84, 200), c=(80, 200), d=(78, 200))
    finding = analyze_four_fifths(frame, "outcome", "group", cluster=None)
    pair = next(p for p in finding.pairs if p.group_1 == "a")
    assert pair.statistics["impact_ratio"] == six(0.738095)
    assert pair.statistics["z"] == six(-2.284859)
    assert pair.corrected_p_value == six(0.133927)
    assert (pair.verdict, pair.reason) == (Verdict.INCONCLUSIVE, Reason.SMALL_NUMBERS)
