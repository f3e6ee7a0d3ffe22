"""Numbers worked out by hand or by other software, to six decimals: R1 to R26 of the statistics
contract.

The intervals of R2, R4, R5, R6, R7 and R25 were once those of other formulas (normal, Woolf's, a
bootstrap). Every interval is now that of the jackknife over clusters, which ``by_hand`` computes
again here.
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
from pytest_fairness.statistics.arrays import Values, read_design
from pytest_fairness.statistics.categories import balanced_v, chi_square, d_of_v
from pytest_fairness.statistics.clusters import t_quantile
from pytest_fairness.statistics.compare import measure, worst_rank
from pytest_fairness.statistics.corrections import correct, minimum_detectable_effect
from pytest_fairness.statistics.persona_scores import PersonaScore, ScoreSummary
from pytest_fairness.statistics.proportions import ClusteredRates, nearly_equal
from pytest_fairness.statistics.score_gate import baseline_gate, clip

from ..support.choice_tables import table as choices
from . import by_hand
from .by_hand import Row
from .frames_of import decisions, names, scores, strata

A = [7, 8, 8, 9, 6, 8, 7, 9]
B = [6, 7, 7, 8, 5, 6, 7, 8]
C = [5, 6, 7, 7, 6, 8, 5, 7]
ROWS = {"cluster": None, "kind": "numeric"}
TWO_TEMPLATES = {
    "a": {"a1": ([7, 8], [5, 6]), "a2": ([8, 9], [7, 7]), "a3": ([6, 8], [6, 5])},
    "b": {"b1": ([6, 6], [4, 5]), "b2": ([7, 8], [6, 5]), "b3": ([5, 6], [3, 4])},
}
OVER_TWO_BLOCKS = {
    "a": {f"a{i}": ([x], [y]) for i, (x, y) in enumerate(zip([5, 6, 7], [8, 9, 9], strict=True))},
    "b": {f"b{i}": ([x], [y]) for i, (x, y) in enumerate(zip([4, 5, 6], [7, 7, 8], strict=True))},
}
TABLE = [[30, 20, 10], [18, 22, 20]]


def six(value):
    return pytest.approx(value, abs=5e-7)


def shows(pair, **figures):
    """The fields of a pair, or its statistics, to six decimals."""
    held = {
        name: getattr(pair, name) if hasattr(pair, name) else pair.statistics[name]
        for name in figures
    }
    assert held == {name: six(value) for name, value in figures.items()}


def array(*values):
    return np.array([float(value) for value in values])


def own_rows(**groups):
    """The same rows for ``by_hand``, each its own cluster."""
    return [
        Row(float(y), side, f"{side}-{at}")
        for side, held in enumerate(groups.values())
        for at, y in enumerate(held)
    ]


def compare(frame, kind, cluster="name"):
    """The comparison behind a finding, with all that it computes."""
    design = read_design(frame, ("group",), cluster=cluster)
    y = frame["outcome"].to_numpy(float)
    return measure(design, Values(values=y, kind=kind), np.ones(y.size, dtype=bool)).pairs


def three_labels(*tables, labels=(1, 2, 3)):
    """One row a count of a 2 × 3 table; a block a table."""
    rows = [
        (group, f"t{block}", label)
        for block, table in enumerate(tables)
        for group, counts in zip("ab", table, strict=True)
        for label, count in zip(labels, counts, strict=True)
        for _ in range(count)
    ]
    return pd.DataFrame(rows, columns=["group", "template", "outcome"])


@pytest.mark.parametrize(
    ("analyze", "frame", "options", "figures", "verdict"),
    [
        # R1: Mann-Whitney with and without continuity, δ, its d, Hodges-Lehmann, Cohen d, Hedges g,
        # t on aligned ranks
        (analyze_disparity, scores(a=A, b=B), ROWS,
         {"spec_u": 48, "spec_p_value": 0.092082, "z": 1.738857, "cliffs_delta": 0.5, "d_from_cliffs_delta": 0.953873,
          "hodges_lehmann_shift": 1, "cohens_d": 0.966092, "hedges_g": 0.913396, "hedges_g_of_rows": 0.913396,
          "t": 1.880031, "df": 14, "effect": 0.953873, "p_row": 0.082060, "p_cluster": 0.081075, "p_value": 0.082060},
         None),
        # R2: what the plain recipe calls significant (p .023, d 1.07) is three names against three
        (analyze_disparity, names(TWO_TEMPLATES), {"kind": "numeric"},
         {"spec_p_value": 0.023134, "cohens_d": 1.069742, "z": 2.868401, "t": 1.929747, "df": 4, "hedges_g": 1.357226,
          "mean_aligned_rank_1": np.mean([0.086538, 0.355769, 0.028846]), "icc_1": 0.532286, "icc_2": 0.760112,
          "mean_aligned_rank_2": np.mean([-0.211538, 0.086538, -0.346154]), "p_row": 0.004126, "p_cluster": 0.125852,
          "p_value": 0.125852},
         Verdict.INCONCLUSIVE),
        # R3: van Elteren over two blocks
        (analyze_disparity, names(OVER_TWO_BLOCKS), ROWS, {"z": 2.081666, "p_row": 0.037373}, None),
        # R4: 45/60 against 33/60, every statistic that is reported beside the verdict
        (analyze_disparity, decisions(a=(45, 60), b=(33, 60)), {"cluster": None},
         {"spec_chi2": 5.274725, "spec_p_value": 0.021637, "yates_p_value": 0.035266, "fisher_p_value": 0.034658,
          "odds_ratio": 2.454545, "spec_effect": 0.495061, "cohens_h": 0.423431, "phi": 0.209657, "effect": 0.495061,
          "risk_difference_low": 0.029300, "risk_difference_high": 0.355410, "risk_ratio": 1.363636,
          "risk_ratio_low": 1.039387, "risk_ratio_high": 1.789039},
         None),
        (analyze_four_fifths, decisions(a=(45, 60), b=(33, 60)), {"cluster": None},
         {"impact_ratio": 0.733333, "impact_ratio_low": 0.558959, "impact_ratio_high": 0.962105}, None),
        # R5: a zero cell; half added to all four cells for the odds ratio, Fisher's p, Newcombe,
        # the adjusted ratio
        (analyze_disparity, decisions(a=(0, 30), b=(5, 30)), {"cluster": None},
         {"odds_ratio": 0.076006, "risk_difference_low": -0.335644, "risk_difference_high": -0.019730,
          "fisher_p_value": 0.052186, "risk_ratio_low": 0.005252, "risk_ratio_high": 1.573538, "effect": -1.420743,
          "p_row": 0.052186},
         None),
        # R6: Cochran-Mantel-Haenszel over two strata
        (analyze_disparity, strata([(18, 12), (10, 20)], [(25, 5), (19, 11)]), {"cluster": None},
         {"z": math.sqrt(7.227500), "p_row": 0.007180, "odds_ratio": 2.953488, "effect": 0.597082}, None),
        # R7: three labels
        (analyze_disparity, three_labels(TABLE, labels="xyz"), {"cluster": None},
         {"p_row": 0.040184, "cramers_v": 0.231455, "effect": 0.475831}, None),
        # R9: two one-sided tests
        (analyze_equivalence, scores(a=[7.1, 6.9, 7.3, 7, 7.2, 6.8, 7.1, 7], b=[7, 7.1, 6.9, 7.2, 7, 6.9, 7.1, 7]),
         {**ROWS, "margin": 0.2}, {"p_value": 0.010625}, None),
        (analyze_equivalence, scores(a=A, b=B), {**ROWS, "margin": 1}, {"p_value": 0.5}, None),
        # R10: 16 of 80 against 3 of 20 (EEOC Q&A 21), where one hire more would turn it round
        (analyze_four_fifths, decisions(a=(16, 80), b=(3, 20)), {"cluster": None},
         {"impact_ratio": 0.75, "impact_ratio_low": 0.241891, "impact_ratio_high": 2.325427, "shortfall": 0.8,
          "fisher_p_value": 0.757062, "flip_flop": True, "z": -0.509813},
         Verdict.INCONCLUSIVE),
        # R26: four groups, below four fifths, and within chance once six pairs are counted
        (analyze_four_fifths, decisions(a=(62, 200), b=(84, 200), c=(80, 200), d=(78, 200)), {"cluster": None},
         {"impact_ratio": 0.738095, "z": -2.284859, "corrected_p_value": 0.133927}, Verdict.INCONCLUSIVE),
    ],
    ids=["R1", "R2", "R3", "R4", "R4-ratio", "R5", "R6", "R7", "R9", "R9-half", "R10", "R26"],
)  # fmt: skip
def test_a_pair_shows_its_worked_numbers(analyze, frame, options, figures, verdict):
    finding = analyze(frame, "outcome", "group", **options)
    shows(finding.pairs[0], **figures)
    assert verdict in (None, finding.verdict)
    if analyze is analyze_four_fifths and verdict is not None:
        assert finding.reason is Reason.SMALL_NUMBERS


def test_r1_three_samples_kruskal_wallis():
    """H over all groups is reported, and decides nothing."""
    omnibus = analyze_disparity(scores(a=A, b=B, c=C), "outcome", "group", **ROWS).details[
        "omnibus"
    ]["group"]
    assert (omnibus["kruskal_wallis_h"], omnibus["kruskal_wallis_p"]) == (
        six(5.737999),
        six(0.056756),
    )


def test_r4_intervals():
    """Newcombe's of 90 %, and that of the odds ratio by the jackknife."""
    low, high = proportions.newcombe(
        array(45), array(60), array(33), array(60), stats.norm.ppf(0.95)
    )
    assert_allclose([low[0], high[0]], [0.056755, 0.332297], atol=5e-7)
    (pair,) = analyze_disparity(
        decisions(a=(45, 60), b=(33, 60)), "outcome", "group", cluster=None
    ).pairs
    rows = own_rows(a=[1] * 45 + [0] * 15, b=[1] * 33 + [0] * 27)
    reach = stats.t.ppf(0.975, 118) * by_hand.jackknife(
        rows, lambda own: by_hand.log_odds(own, [0, 1])
    )
    shows(pair, odds_ratio_low=27 / 11 * math.exp(-reach))
    assert pair.statistics["odds_ratio_high"] == pytest.approx(27 / 11 * math.exp(reach))


def test_r7_the_table():
    """Chi-square, its columns in use, and d of the raw V."""
    chi2, used = chi_square(np.array([TABLE], dtype=float))
    assert (chi2[0], used[0]) == (six(6.428571), 3)
    assert d_of_v(np.sqrt(chi2 / 120))[0] == six(0.475831)


SIX = [0.004, 0.011, 0.02, 0.03, 0.2, 0.6]


@pytest.mark.parametrize(
    ("p", "method", "size", "corrected"),
    [
        (SIX, "bonferroni", None, [0.024, 0.066, 0.12, 0.18, 1, 1]),  # R8
        (SIX, "holm", None, [0.024, 0.055, 0.08, 0.09, 0.4, 0.6]),
        (SIX, "fdr_bh", None, [0.024, 0.033, 0.04, 0.045, 0.24, 0.6]),
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
def test_r8_corrections(p, method, size, corrected):
    assert_allclose(correct(p, method, size), corrected, atol=1e-12)


def test_r11_bradley_terry_with_a_first_position():
    """Strengths, the position, their likelihood ratios, and A against B by order."""
    finding = analyze_preference(choices(), cluster=None)
    strength, order = finding.details["bradley_terry"], finding.details["order_effect"]
    assert (order["log_odds"], order["error"]) == (six(0.368055), six(0.194549))
    assert order["likelihood_ratio"] == six(3.654964)
    assert strength["strength"] == {"A": 0, "B": six(-0.539023), "C": six(-0.862235)}
    assert strength["error"] == {"A": 0, "B": six(0.273250), "C": six(0.280680)}
    assert strength["deviance"] == six(0.170732)
    assert (strength["likelihood_ratio"], strength["p_value"]) == (six(10.315211), six(0.005755))
    assert (strength["df"], order["df"]) == (2, 1)
    shows(
        finding.pairs[0], wins_1=25, n=40, z=1.599233, binomial_p_value=0.153860, p_value=0.109769
    )


def test_r12_round_robin():
    """Wins 55, 40, 45, 40 of 90 each: the plain statistic is a third too large for four groups."""
    wins = {
        ("A", "B"): 20,
        ("A", "C"): 15,
        ("A", "D"): 20,
        ("B", "C"): 15,
        ("B", "D"): 15,
        ("C", "D"): 15,
    }
    robin = analyze_preference(choices(wins, 30), cluster=None).details["round_robin"]
    assert (robin["chi_square_uncorrected"], robin["chi_square"]) == (six(6.666667), six(5))
    assert robin["p_value"] == six(0.171797)


def summary(changes, categories=None):
    """A run with the score of each persona."""
    personas = {key: PersonaScore(mean=change, n=1) for key, change in changes.items()}
    return ScoreSummary(personas=personas, categories=categories or {}, trials=len(changes))


def test_r13_a_baseline_that_fell():
    """Mean change, t, one-sided p and the bound of the one-sided 99 % interval."""
    old = dict(enumerate([92, 85, 78, 88, 95, 70, 81, 90, 66, 84]))
    new = dict(enumerate([90, 80, 77, 85, 95, 66, 80, 84, 66, 79]))
    pair = compare_baseline(summary(old), summary(new)).pairs[0]
    shows(pair, t=-3.857143, bound_99=-0.724993, difference=-2.7, p_value=0.001932)


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
    shows(pair, difference=-0.155556, change_low=-0.212680, change_high=-0.098432, p_value=0.000917)


@pytest.mark.parametrize(
    ("clusters", "rows", "family", "expected"),
    [(10, 20, 6, 0.507415), (20, 10, 6, 0.423870), (5, 20, 6, 0.819466), (10, 20, 1, 0.393082)],
)
def test_r15_minimum_detectable_effect(clusters, rows, family, expected):
    """At power .8 and an intraclass correlation of .04."""
    mde = minimum_detectable_effect(
        array(clusters), array(clusters), array(rows), array(0.04), family_size=family
    )
    assert mde[0] == six(expected)


def test_r16_refusals_as_the_worst_rank():
    """Half of B is refused: the answered scores do not differ, and the finding does not hide behind
    them.
    """
    frame = scores(a=[7, 8, 6, 9, 7, 8], b=[8, 7, np.nan, np.nan, 9, np.nan])
    frame["refused"] = frame.outcome.isna()
    finding = analyze_disparity(frame, "outcome", "group", cluster=None, kind="numeric")
    pair = finding.pairs[0]
    assert pair.statistics["spec_p_value"] == six(0.591320)
    y, refused = frame["outcome"].to_numpy(float), frame["refused"].to_numpy()
    outcome = Values(values=y, kind=OutcomeKind.NUMERIC)
    ranked = worst_rank(outcome, scored=~refused, refused=refused, lower_is_worse=True)
    worst = compare(frame.assign(outcome=ranked.values), ranked.kind, cluster=None)
    assert worst.figures["spec_p_value"][0] == six(0.325421)
    assert pair.p_value == pair.statistics["worst_rank_p_value"] == worst.p_value[0]
    assert pair.p_value < pair.statistics["complete_case_p_value"]
    refusal = next(p for p in finding.pairs if p.metric == "refusal")
    assert refusal.p_row == six(0.181818)
    assert finding.refusal_rates == {"a": 0.0, "b": 0.5}


def test_r17_the_cumulative_odds_ratio():
    """Liu and Agresti's estimate, its jackknife with the degrees of freedom of the test, and its
    least error.
    """
    options = {"cluster": None, "kind": "ordinal"}
    (pair,) = analyze_disparity(three_labels(TABLE), "outcome", "group", **options).pairs
    assert math.exp(pair.effect * math.pi / math.sqrt(3)) == six(0.415929)
    shows(pair, effect=-0.483648, df=118, effect_low=-0.805543, effect_high=-0.161753)
    assert (pair.effect_high - pair.effect) / stats.t.ppf(0.95, 118) == six(0.194162)
    (both,) = analyze_disparity(
        three_labels(TABLE, [[12, 15, 13], [9, 11, 20]]), "outcome", "group", **options
    ).pairs
    assert math.exp(both.effect * math.pi / math.sqrt(3)) == six(0.470783)
    assert both.effect == six(-0.415348)
    (rare,) = analyze_disparity(
        decisions(a=(0, 30), b=(5, 30)), "outcome", "group", cluster=None
    ).pairs
    assert (rare.effect_high - rare.effect) / stats.t.ppf(0.95, 58) == six(0.827695)
    rows = own_rows(a=[0] * 30, b=[1] * 5 + [0] * 25)
    assert by_hand.jackknife(rows, lambda own: by_hand.log_odds(own, [0, 1])) * by_hand.TO_D == six(
        0.266303
    )


def test_r18_the_jackknife_over_names():
    """R2's data: g and d of δ with their intervals, and the same rows as three personas in both
    groups.
    """
    frame = names(TWO_TEMPLATES)
    (pair,) = analyze_disparity(frame, "outcome", "group", kind="numeric").pairs
    shows(pair, hedges_g=1.357226, hedges_g_low=-0.421924, hedges_g_high=3.136376)
    shows(
        pair,
        d_from_cliffs_delta=1.407991,
        d_from_cliffs_delta_low=-0.498877,
        d_from_cliffs_delta_high=3.314859,
    )
    for name, error in (("hedges_g", 0.834558), ("d_from_cliffs_delta", 0.894468)):
        assert (pair.statistics[f"{name}_high"] - pair.statistics[name]) / stats.t.ppf(
            0.95, 4
        ) == six(error)
    columns = zip(frame["outcome"], frame["group"], frame["name"], frame["template"], strict=True)
    rows = [
        Row(float(y), int(group == "b"), name, template) for y, group, name, template in columns
    ]
    left = [
        by_hand.hedges_g([row for row in rows if row.name != name])
        for name in sorted({r.name for r in rows})
    ]
    assert left == [six(x) for x in (1.408712, 0.956002, 1.648592, 1.155197, 2.146169, 0.972825)]
    frame["name"] = frame["name"].str[1:]
    (both,) = analyze_disparity(frame, "outcome", "group", kind="numeric").pairs
    shows(
        both,
        p_value=0.027843,
        p_delta=0.027843,
        df=2,
        hedges_g_low=0.029844,
        hedges_g_high=2.684608,
    )
    shows(both, d_from_cliffs_delta_low=0.188947, d_from_cliffs_delta_high=2.627036)


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
    assert [one["effect"] for one in alone] == [
        six(0.442488),
        six(-0.180645),
        six(-2.198782),
    ]  # the larger of d and g
    assert correct([one["p_value"] for one in alone], "holm")[2] == six(0.063530)
    third = compare(frame[frame.template == "t2"].drop(columns="template"), OutcomeKind.NUMERIC)
    assert third.figures["t"][0] == six(-3.394674)
    assert finding.pairs[0].p_value == six(0.265307)


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
    rows = [
        (group, f"{first} {last}", first, last, value)
        for group, *columns in zip("ab", firsts, lasts, means, strict=True)
        for first, last, value in zip(*columns, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["group", "name", "first_name", "last_name", "outcome"])
    found = compare(frame, OutcomeKind.NUMERIC)
    assert found.difference[0] == six(-0.766667)
    assert found.error[0] ** 2 == six(variance)
    assert (found.part_clusters[0], found.df[0]) == (least, df)
    assert found.difference[0] / found.error[0] == six(t)
    plain = frame.assign(name=[f"n{at}" for at in range(12)]).drop(
        columns=["first_name", "last_name"]
    )
    for table, expected in ((frame, p), (plain, 0.057119)):
        (pair,) = analyze_equivalence(table, "outcome", "group", margin=1, kind="numeric").pairs
        shows(pair, difference_p_value=expected)


def test_r21_both_groups_weigh_the_same():
    """20 % of 100 against 60 % of 10,000: the raw V is that of the smaller group's share."""
    table = np.array([[[20.0, 80], [6000, 4000]]])
    v = balanced_v(table)
    assert (v[0], d_of_v(v)[0]) == (six(0.408248), six(0.894427))
    chi2, _ = chi_square(table)
    assert d_of_v(np.sqrt(chi2 / table.sum()))[0] == pytest.approx(0.16, abs=0.005)
    frame = decisions(a=(20, 100), b=(6000, 10000))
    frame["outcome"] = frame["outcome"].map({True: "yes", False: "no"})
    finding = analyze_disparity(frame, "outcome", "group", cluster=None)
    assert finding.pairs[0].effect == pytest.approx(-0.99, abs=0.005)
    assert finding.verdict is Verdict.FAIL


CHANGES = {"A": [-4, -9, 1, -7, -6], "B": [1, -2, 3, 0], "C": [-1, 2, -1]}


@pytest.mark.parametrize(
    ("third", "p", "t", "sd", "outliers"),
    [(3, 0.002038, -3.822354, 2.924988, {}), (300, 0.024830, -2.266328, 4.933240, {"B2": 300.0})],
    ids=["as it is", "clipped"],
)
def test_r22_small_categories_on_the_spread_of_all(third, p, t, sd, outliers):
    """The pooled SD and its df, t and p, the category's own t, and what clipping leaves of a wild
    change.
    """
    changes = {**CHANGES, "B": [1, -2, third, 0]}
    moved = {
        f"{label}{at}": float(x) for label, held in changes.items() for at, x in enumerate(held)
    }
    categories = {
        f"g={label}": tuple(f"{label}{at}" for at in range(len(held)))
        for label, held in changes.items()
    }
    runs = summary(dict.fromkeys(moved, 0.0), categories), summary(moved, categories)
    found = baseline_gate(*runs, alpha=0.005, margin_overall=1, margin_category=3)
    _, scope, *others = found.scopes
    # A category whose own t is no sign of a fall is not tested on the spread of all; Holm counts
    # it.
    assert [other.p.value for other in others] == [1.0, 1.0]
    assert scope.p.clipped == pytest.approx(4 * scope.p.value)
    for factor, regression in ((6, False), (10, True)):  # half of alpha is for each family
        again = baseline_gate(*runs, alpha=factor * p, margin_overall=1, margin_category=3).scopes[
            1
        ]
        assert again.regression is regression
    assert (found.changes, scope.outliers) == (outliers, {})
    assert (scope.test.t, scope.test.p) == (six(-2.936101), six(0.021277))
    assert (scope.p.value, stats.t.ppf(scope.p.value, 9)) == (six(p), six(t))
    assert stats.t.cdf(-5 * math.sqrt(5) / sd, 9) == six(p)
    if outliers:
        wild = array(*moved.values())
        assert (max(clip(wild)), min(clip(-2 - wild))) == (six(13.826), six(-15.826))


@pytest.mark.parametrize(
    ("lost", "gained", "p"), [(7, 1, 0.035156), (12, 1, 0.001709), (9, 0, 0.001953)]
)
def test_r22_passes_lost_against_gained(lost, gained, p):
    """McNemar's exact test, one-sided."""
    old = {f"p{at}": float(at < 20) for at in range(30)}
    new = {f"p{at}": float(lost <= at < 20 or at >= 30 - gained) for at in range(30)}
    margins = {"margin_overall": 0.02, "margin_category": 0.05, "threshold": 0.5}
    passes = baseline_gate(summary(old), summary(new), alpha=0.005, **margins).scopes[1]
    assert (passes.lost, passes.gained, passes.p.value) == (lost, gained, six(p))


def test_r23_a_preference_within_the_order():
    """Both effects and their intervals over six name pairs; the larger one is shown, and both must
    be inside.
    """
    rows = []
    for pair, (first, second) in enumerate(
        zip([4, 4, 3, 4, 3, 4], [1, 0, 2, 1, 1, 1], strict=True)
    ):
        for trial in range(4):
            rows.append(("A", "B", "A" if trial < first else "B", f"pair {pair}"))
            rows.append(("B", "A", "A" if trial < second else "B", f"pair {pair}"))
    finding = analyze_preference(pd.DataFrame(rows, columns=["first", "second", "chosen", "name"]))
    (pair,) = finding.pairs
    shows(
        pair,
        p_value=0.121335,
        win_rate_1=0.583333,
        d_from_win_rate=0.185507,
        d_from_win_rate_low=-0.054137,
    )
    shows(
        pair,
        d_from_win_rate_high=0.425150,
        effect=0.358166,
        effect_low=-0.128527,
        effect_high=0.844860,
    )
    assert finding.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("a", "b", "deff", "intervals", "figures", "verdict"),
    [
        # Approvals of 99 %: d is open, the difference of the rates is not. The jackknife puts the
        # ends of d at ±1.133688; Woolf's variance, without a design effect, would say ±.960856.
        # Either way the points decide.
        ([20, 20, 19, 20, 20, 20, 20, 20, 20, 19], [20, 19, 20, 20, 19, 20, 20, 20, 20, 20], None,
         (-0.022450, 0.022450, 0.982723, 1.017581), {"effect_low": -1.133688, "effect_high": 1.133688}, Verdict.PASS),
        # One name of which a fifth is turned down inflates the variance more than three times.
        ([20] * 9 + [18], [20] * 4 + [16] + [20] * 5, 3.372881, (-0.047921, 0.072262), {"effect": 0.387749},
         Verdict.INCONCLUSIVE),
    ],
    ids=["points decide", "names differ"],
)  # fmt: skip
def test_r24_near_one(a, b, deff, intervals, figures, verdict):
    """Ten names a group, so many of twenty approved: intervals on n/deff rows with the t of the
    names.
    """
    rows = [
        (group, f"{group}{name}", at, at < count)
        for group, counts in (("a", a), ("b", b))
        for name, count in enumerate(counts)
        for at in range(20)
    ]
    frame = pd.DataFrame(rows, columns=["group", "name", "repetition", "outcome"])
    found = compare(frame, OutcomeKind.BINARY)
    inflation, z = found.figures["design_effect"], t_quantile(found.df, 0.95)
    assert deff is None or inflation[0] == six(deff)
    n1, n2 = (found.rows / inflation[:, None]).T
    counts = found.figures["rate_1"] * n1, n1, found.figures["rate_2"] * n2, n2
    ends = [*proportions.newcombe(*counts, z=z), *proportions.katz(*counts, z=z)[1:]]
    assert [float(end[0]) for end in ends][: len(intervals)] == [six(end) for end in intervals]
    finding = analyze_disparity(frame, "outcome", "group")
    shows(finding.pairs[0], **figures)
    assert finding.verdict is verdict
    assert finding.reason is Reason.PRECISION or "less than 5 points" in finding.pairs[0].notes[0]


@pytest.mark.parametrize(
    ("rates", "inside"), [((0.02, 0.005), False), ((0.0205, 0.02), True), ((0.98, 0.995), True)]
)
def test_points_alone_do_not_make_rates_equal(rates, inside):
    """2 % against .5 % are one and a half points, and four times as many; of a hundred thousand
    each.
    """
    one, two, n, sure = (array(x) for x in (*rates, 100_000.0, 1.0))
    near, close = nearly_equal(ClusteredRates(one, n, two, n, sure, array(1e6)))
    assert (near.tolist(), close.tolist()) == ([inside], [inside])


FIRST = {"a": [7, 8, 8, 9, 7, 8, 8, 9], "b": [6, 7, 7, 8, 5, 6, 7, 8]}


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
    """The first sample, and both together with other second samples: p, g, its interval and the
    alarm at each stage.
    """
    groups = FIRST if second is None else {group: FIRST[group] + second[group] for group in FIRST}
    alpha = 0.05 if second is None else 0.025
    finding = analyze_disparity(scores(**groups), "outcome", "group", **ROWS, alpha=alpha)
    shows(finding.pairs[0], p_value=p)
    # Eight or sixteen are too few for more than a FLAG.
    assert finding.verdict is (Verdict.FLAG if p < alpha else Verdict.INCONCLUSIVE)
    if g is not None:
        low, high = by_hand.interval(own_rows(**groups), by_hand.hedges_g, yes_no=False)
        shows(finding.pairs[0], hedges_g=g, hedges_g_low=low, hedges_g_high=high)
