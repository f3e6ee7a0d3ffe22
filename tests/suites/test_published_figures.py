"""Published figures of a field experiment of selection, through the functions that the benchmark's
numbers come from.

Bertrand, M. & Mullainathan, S. (2004), Are Emily and Greg More Employable than Lakisha and Jamal? A
Field Experiment on Labor Market Discrimination, American Economic Review 94(4):991-1013. Counts are
those of its Tables 1, 2, 4 and 8; what the paper does not print (intervals, exact p, odds ratios)
was computed from the counts with R 4.2.2 and scipy 1.17.1.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM

from pytest_fairness import analyze_disparity, analyze_four_fifths
from pytest_fairness.model import Verdict
from pytest_fairness.statistics.bradley_terry import fit_binomial, likelihood_ratio
from pytest_fairness.statistics.proportions import cohens_h, impact_ratio, newcombe, pearson

from .choices_of import as_trials, results_of

COUNTS = Path(__file__).parents[2] / "examples" / "hiring_audit" / "callbacks_by_name.csv"

# Table 1, call-backs of résumés sent with White and with Black names. Then, from the counts: impact
# ratio with its 95 % Katz interval, z, Fisher's p, Newcombe's 95 % interval of the difference,
# Cohen's h.
TABLE_1 = {
    "all": (235, 2435, 157, 2435, 0.6680851063829787, 0.5502405093838053, 0.8111683922919336, 4.108412152434346,
            4.758747107909523e-05, 0.01678196874970448, 0.047382550272708546, 0.11830724271934467),
    "Chicago": (109, 1352, 73, 1352, 0.6697247706422018, 0.5027994349867397, 0.8920679642839674, 2.76310640323201,
                0.007079244711809622, 0.007739133652509646, 0.04572501656619424, 0.10677953212157182),
    "Boston": (126, 1083, 84, 1083, 0.6666666666666666, 0.5125371707711678, 0.8671457794480145, 3.0498918818209844,
               0.0028361092702251984, 0.013876123225514417, 0.06385159754461711, 0.1316916025300897),
    "women": (184, 1860, 125, 1886, 0.6699824795979529, 0.5387709225629989, 0.8331491254814961, 3.6314834789374992,
              0.00028555916423079, 0.015045204478208587, 0.050396436769947386, 0.11915434883608667),
    "women, administrative": (142, 1358, 89, 1359, 0.6262993709127466, 0.48577365497405883, 0.8074766879374078,
                              3.6514073365714075, 0.00026019386549454613, 0.018145823881579856, 0.06019818292874636,
                              0.1409933351694339),
    "women, sales": (42, 502, 36, 527, 0.8164814312821904, 0.5321640099374395, 1.2527001360106704, 0.9301497645246118,
                     0.4097116175885308, -0.017263430987623257, 0.04853060111986529, 0.05801537518477429),
    "men": (51, 575, 32, 549, 0.6571663273688346, 0.4290981471317817, 1.006454082158528, 1.948608720437155,
            0.05317269233567207, -0.0003429117652545763, 0.06135179299056298, 0.1171369772221193),
}  # fmt: skip

# Table 2, employers: call-backs of White and Black names alike, none, or more of one than of the
# other.
WHITES_FAVOURED, BLACKS_FAVOURED, TREATED_ALIKE = 111, 46, 1166

# Table 4, call-backs by quality of the résumé: (race, quality) → (call-backs, sent).
TABLE_4 = {
    ("white", "high"): (132, 1223),
    ("white", "low"): (103, 1212),
    ("black", "high"): (82, 1223),
    ("black", "low"): (75, 1212),
}

# Table 8, per cent of call-backs by first name, as printed.
TABLE_8 = {
    "Emily": 7.9, "Anne": 8.3, "Jill": 8.4, "Allison": 9.5, "Laurie": 9.7, "Sarah": 9.8, "Meredith": 10.2,
    "Carrie": 13.1, "Kristen": 13.1, "Aisha": 2.2, "Keisha": 3.8, "Tamika": 5.5, "Lakisha": 5.5, "Tanisha": 5.8,
    "Latoya": 8.4, "Kenya": 8.7, "Latonya": 9.1, "Ebony": 9.6, "Todd": 5.9, "Neil": 6.6, "Geoffrey": 6.8, "Brett": 6.8,
    "Brendan": 7.7, "Greg": 7.8, "Matthew": 9.0, "Jay": 13.4, "Brad": 15.9, "Rasheed": 3.0, "Tremayne": 4.3,
    "Kareem": 4.7, "Darnell": 4.8, "Tyrone": 5.3, "Hakim": 5.5, "Jamal": 6.6, "Leroy": 9.4, "Jermaine": 9.6,
}  # fmt: skip

# City × sex × kind of job: call-backs and none of White names, then of Black names, from the
# published data.
STRATA = [
    (73, 257, 44, 286), (22, 329, 22, 352), (31, 371, 18, 361), (69, 959, 45, 984), (20, 131, 14, 139), (2, 36, 4, 33),
    (18, 117, 10, 123),
]  # fmt: skip


@pytest.mark.parametrize("cell", TABLE_1)
def test_table_1(cell):
    """Every cell of the paper's main table: ratio, intervals, z and exact p to 1e-9."""
    x1, n1, x2, n2, ratio, low, high, z, fisher, diff_low, diff_high, h = TABLE_1[cell]
    found = impact_ratio(x1, n1, x2, n2)
    assert (found.counts.x_low, found.counts.x_high) == (x2, x1)
    assert found.ratio == pytest.approx(ratio, rel=1e-9)
    assert (found.ratio_low, found.ratio_high) == (
        pytest.approx(low, rel=1e-9),
        pytest.approx(high, rel=1e-9),
    )
    assert -found.z == pytest.approx(z, rel=1e-9)
    assert found.fisher == pytest.approx(fisher, rel=1e-9)
    assert found.below == (ratio < 0.8)
    counts = [np.array([float(value)]) for value in (x1, n1, x2, n2)]
    ends = newcombe(*counts)
    assert (ends[0][0], ends[1][0]) == (
        pytest.approx(diff_low, abs=1e-9),
        pytest.approx(diff_high, abs=1e-9),
    )
    assert cohens_h(counts[0] / counts[1], counts[2] / counts[3])[0] == pytest.approx(h, rel=1e-9)
    assert pearson(*counts)[0] == pytest.approx(z**2, rel=1e-9)


def test_men_are_the_borderline_case():
    """.657 is below four fifths and within chance: z 1.95. Without significance it is no FAIL."""
    x1, n1, x2, n2 = TABLE_1["men"][:4]
    decided = [("white", True)] * x1 + [("white", False)] * (n1 - x1)
    decided += [("black", True)] * x2 + [("black", False)] * (n2 - x2)
    frame = pd.DataFrame(decided, columns=["race", "called"])
    found = analyze_four_fifths(frame, "called", "race", cluster=None)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.pairs[0].p_value == pytest.approx(chi2.sf(3.7970759453637304, 1), rel=1e-9)


def test_table_2():
    """Each employer saw both kinds of names: a choice between two, 111 to 46, and 1,166 that did
    not choose.

    The exact sign test; with two groups (G−1)/G·Σ… is McNemar's χ², without the factor it is twice
    as large; 70.7 % is d .49, just below what FAILs.
    """
    chosen = ["white"] * WHITES_FAVOURED + ["black"] * BLACKS_FAVOURED + ["neither"] * TREATED_ALIKE
    orders = [("white", "black") if at % 2 else ("black", "white") for at in range(len(chosen))]
    frame = pd.DataFrame(orders, columns=["first", "second"]).assign(chosen=chosen)
    frame["name"] = [f"employer {at}" for at in frame.index]
    frame["choice"] = frame["chosen"].where(frame["chosen"] == "neither", "chosen")
    (arm,) = results_of(
        as_trials(frame), {"white": {"race": "white"}, "black": {"race": "black"}}
    ).arms
    (pair,) = arm.preference.pairs
    (outcome,) = arm.outcomes
    assert pair.binomial_p == pytest.approx(2.2159484076408504e-07, rel=1e-9)
    assert (pair.group_1, pair.share.n, pair.share.count) == ("black", 157, 46)
    assert arm.equal_shares.corrected == pytest.approx(26.910828025477706, rel=1e-9)
    assert arm.equal_shares.p_value == pytest.approx(2.1306185674941522e-07, rel=1e-9)
    assert arm.equal_shares.plain == pytest.approx(2 * 26.910828025477706, rel=1e-9)
    assert (outcome.counts["neither"], outcome.trials) == (TREATED_ALIKE, 1323)
    assert arm.preference.verdict is Verdict.FLAG
    assert "white is chosen over black in 70.7 %" in arm.preference.sentence
    strengths = {one.group: one.value for one in arm.strengths.groups}
    assert strengths["white"] == pytest.approx(np.log(111 / 46), abs=0.01)


class TestTable4:
    """Does quality pay less for Black names? The interaction of a logit, as the benchmark tests
    criteria × group.
    """

    @pytest.fixture
    def cells(self):
        race, quality = (
            np.array([float(key[at] == value) for key in TABLE_4])
            for at, value in ((0, "black"), (1, "high"))
        )
        x, n = (np.array([float(value[at]) for value in TABLE_4.values()]) for at in (0, 1))
        return race, quality, x, n

    @pytest.mark.parametrize(
        ("black", "chi_square", "p", "g", "p_g"),
        [
            (0.0, 3.6763791650406756, 0.05518857740342566, 3.685444563166854, 0.05488933713278527),
            (1.0, 0.2694391225949073, 0.6037082619061912, 0.2695369460501329, 0.6036425620014263),
        ],
    )
    def test_quality_within_each_race(self, cells, black, chi_square, p, g, p_g):
        """Pearson's χ², and the likelihood ratio of the logit with and without quality, which is
        the G statistic.
        """
        race, quality, x, n = cells
        here = race == black
        counts = [np.array([value]) for value in (x[here][0], n[here][0], x[here][1], n[here][1])]
        assert pearson(*counts)[0] == pytest.approx(chi_square, rel=1e-9)
        whole = np.stack([np.ones(2), quality[here]], axis=1)
        ratio = likelihood_ratio(
            fit_binomial(whole[:, :1], x[here], n[here]), fit_binomial(whole, x[here], n[here])
        )
        assert (ratio.statistic, ratio.df) == (pytest.approx(g, rel=1e-9), 1)
        assert ratio.p == pytest.approx(p_g, rel=1e-8)
        assert abs(ratio.p - p) < 0.001

    def test_the_interaction(self, cells):
        """With and without race × quality, against an independent fit; not significant, as the
        paper says.
        """
        race, quality, x, n = cells
        main = np.stack([np.ones(4), race, quality], axis=1)
        full = np.concatenate([main, (race * quality)[:, None]], axis=1)
        ratio = likelihood_ratio(fit_binomial(main, x, n), fit_binomial(full, x, n))
        independent = GLM(np.stack([x, n - x], axis=1), main, family=Binomial()).fit()
        assert ratio.statistic == pytest.approx(
            independent.deviance, abs=1e-6
        )  # the larger model is saturated
        assert ratio.df == 1
        assert 0.1 < ratio.p < 0.5

    def test_the_logit_of_race(self, cells):
        race, _, x, n = cells
        fit = fit_binomial(np.stack([np.ones(4), race], axis=1), x, n)
        assert fit.beta[1] == pytest.approx(-0.43818021345656744, rel=1e-8)
        assert fit.errors[1] == pytest.approx(0.10732321704947338, rel=1e-6)


class TestTable8:
    """The 36 names: the unit of evidence."""

    @pytest.fixture
    def names(self):
        return pd.read_csv(COUNTS)

    def test_every_name_as_printed(self, names):
        assert set(names["first_name"]) == set(TABLE_8)
        for name, n, callbacks in names[["first_name", "n", "callbacks"]].itertuples(index=False):
            assert round(100 * callbacks / n, 1) == pytest.approx(TABLE_8[name])

    def test_with_names_as_the_unit(self, names):
        """Mean rates of names .0944 and .0621; Student's t over 18 and 18 names, p .000648."""
        rows = names.loc[names.index.repeat(names["n"])].reset_index(drop=True)
        rows = rows.assign(called=rows.groupby("first_name").cumcount() < rows["callbacks"])
        (pair,) = analyze_disparity(rows, "called", "race", cluster="first_name", block=None).pairs
        assert pair.p_cluster == pytest.approx(0.0006483426110671402, rel=1e-6)
        assert pair.p_row == pytest.approx(chi2.sf(16.87905041427022 * 4869 / 4870, 1), rel=1e-9)
        assert pair.p_value == pair.p_cluster
        rates = (names["callbacks"] / names["n"]).groupby(names["race"]).mean()
        assert rates["white"] == pytest.approx(0.09436534393815905, rel=1e-9)
        assert rates["black"] == pytest.approx(0.06208751369080902, rel=1e-9)


def test_by_city_sex_and_kind_of_job():
    """Cochran–Mantel–Haenszel over seven strata: p .0000330, common odds ratio 1.565."""
    rows = []
    for at, (white, white_no, black, black_no) in enumerate(STRATA):
        for group, called, count in (
            ("white", True, white), ("white", False, white_no), ("black", True, black), ("black", False, black_no)
        ):  # fmt: skip
            rows += [(f"stratum {at}", group, called)] * count
    frame = pd.DataFrame(rows, columns=["stratum", "race", "called"])
    (pair,) = analyze_disparity(frame, "called", "race", cluster=None, block="stratum").pairs
    assert pair.p_row == pytest.approx(3.302870373262137e-05, rel=1e-6)
    odds = float(pair.statistics["odds_ratio"])
    assert max(odds, 1 / odds) == pytest.approx(1.5650867674699256, rel=1e-6)
    assert len(frame) == 4870
