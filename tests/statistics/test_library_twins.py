"""What is written out here equals what statsmodels or scipy.stats computes, to 1e-9.

``docs/decisions/0216-statsmodels-and-by-hand.md`` says of each why it is written out.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.discrete.conditional_models import ConditionalLogit
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.stats.contingency_tables import StratifiedTable, Table2x2, mcnemar
from statsmodels.stats.meta_analysis import effectsize_smd
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestIndPower
from statsmodels.stats.proportion import (
    confint_proportions_2indep,
    proportion_confint,
    proportion_effectsize,
)
from statsmodels.stats.weightstats import DescrStatsW

from pytest_fairness.analysis import false_alarms
from pytest_fairness.analysis.planning import ExpectedOutcome, PlannedDesign, detected
from pytest_fairness.statistics import proportions, win_rates
from pytest_fairness.statistics.bradley_terry import fit_binomial, fit_choice
from pytest_fairness.statistics.clusters import one_sample_t, t_quantile, two_sided_t
from pytest_fairness.statistics.corrections import METHODS, correct, minimum_detectable_effect
from pytest_fairness.statistics.effects import hedges_correction

NEAR = 1e-9
RNG = np.random.default_rng(20261125)
#: Tables: small and large ones, with empty cells among them.
N1, N2 = RNG.integers(5, 300, (2, 60)).astype(float)
X1, X2 = np.floor(N1 * RNG.uniform(0, 1, 60)), np.floor(N2 * RNG.uniform(0, 1, 60))
TABLES = [[[a, n - a], [b, m - b]] for a, n, b, m in zip(X1, N1, X2, N2, strict=True)]
#: Where no cell is empty: what one adds to an empty cell is a choice, which the libraries make otherwise.
FULL = np.array([np.min(table) > 0 for table in TABLES])


def same(ours: object, theirs: object) -> None:
    """Fail unless the two are equal to 1e-9."""
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1, 2, 7, 190])
def test_corrections(method: str, size: int) -> None:
    """Those of multipletests, ties and ones among them; that of Holm by the controller as well."""
    p = np.round(RNG.random(size) ** 2, 2)
    p[-1] = 1.0
    theirs = multipletests(p, method=method)[1]
    same(correct(p, method), theirs)
    if method == "holm":
        same(false_alarms.holm(p.tolist()), theirs)


def test_intervals_of_a_rate() -> None:
    """Wilson's and Clopper and Pearson's, at the ends too."""
    x, n = np.array([0.0, 1, 7, 19, 20]), np.full(5, 20.0)
    same(
        proportions.wilson(x, n, proportions.Z_95),
        [np.clip(end, 0, 1) for end in proportion_confint(x, n, alpha=0.05, method="wilson")],
    )
    for count in (0, 1, 7, 19, 20, 7.5):
        same(
            proportions.clopper_pearson(count, 20),
            proportion_confint(count, 20, alpha=0.05, method="beta"),
        )


def test_binomial_tails() -> None:
    """The exact test of a share against a limit; twice over that of McNemar and of a win rate."""
    for count, n, limit in ((0, 20, 0.1), (7, 20, 0.2), (20, 20, 0.9)):
        theirs = stats.binomtest(count, n, limit, alternative="greater").pvalue
        same(proportions.binomial_tail(count, n, limit), theirs)
    for lost, gained in ((7, 1), (12, 1), (9, 0)):
        both = 2 * proportions.binomial_tail(lost, lost + gained, 0.5)
        same(both, mcnemar([[0, lost], [gained, 0]], exact=True).pvalue)


def test_intervals_of_two_rates() -> None:
    """Newcombe's of the difference, Katz's of the ratio where no cell is empty."""
    rows = list(zip(X1, N1, X2, N2, strict=True))
    differences = [
        confint_proportions_2indep(*row, method="newcomb", compare="diff") for row in rows
    ]
    same(np.transpose(proportions.newcombe(X1, N1, X2, N2)), differences)
    ratios = [
        confint_proportions_2indep(*row, method="log", compare="ratio")
        for row, full in zip(rows, FULL, strict=True)
        if full
    ]
    same(np.transpose(proportions.katz(X1, N1, X2, N2)[1:])[FULL], ratios)
    same(proportions.cohens_h(X1 / N1, X2 / N2), proportion_effectsize(X1 / N1, X2 / N2))


def test_tables_of_two_rates() -> None:
    """Fisher's p, Pearson's statistic, the log odds ratio and its variance."""
    same(
        proportions.fisher_exact(X1, N1, X2, N2),
        [stats.fisher_exact(table)[1] for table in TABLES],
    )
    full = [table for table, is_full in zip(TABLES, FULL, strict=True) if is_full]
    for yates in (False, True):
        same(
            proportions.pearson(X1, N1, X2, N2, yates=yates)[FULL],
            [stats.chi2_contingency(table, correction=yates)[0] for table in full],
        )
    same(
        proportions.log_odds_ratio(X1, N1, X2, N2)[FULL],
        [Table2x2(table).log_oddsratio for table in full],
    )
    cells = np.stack([X1, N1 - X1, X2, N2 - X2])[:, FULL]
    same(
        np.sqrt(proportions.woolf_variance(cells)[0]),
        [Table2x2(table).log_oddsratio_se for table in full],
    )


def test_means() -> None:
    """Student's t of a mean and of a difference, its quantiles, and the correction of Hedges g."""
    values, others = RNG.normal(0.3, 1, 20), RNG.normal(0, 1, 25)
    ours = one_sample_t(values)
    t, p, df = DescrStatsW(values).ttest_mean(0.0)
    same((ours.t, ours.p, ours.df), (t, p, df))
    same(ours.interval(0.9), DescrStatsW(values).tconfint_mean(0.1))
    tested = stats.ttest_ind(values, others, equal_var=False)
    error = math.sqrt(values.var(ddof=1) / 20 + others.var(ddof=1) / 25)
    same(two_sided_t(values.mean() - others.mean(), error, tested.df), tested.pvalue)
    same(t_quantile(np.array([1.0, 7.5, 400]), 0.975), stats.t.ppf(0.975, [1.0, 7.5, 400]))
    pooled = math.sqrt((19 * values.var(ddof=1) + 24 * others.var(ddof=1)) / 43)
    g = hedges_correction(np.array([43.0]))[0] * (values.mean() - others.mean()) / pooled
    theirs = effectsize_smd(
        values.mean(), values.std(ddof=1), 20, others.mean(), others.std(ddof=1), 25
    )
    same(g, theirs[0])


def test_chi_squares() -> None:
    """Equal shares of wins, and Friedman's of ranks with ties."""
    wins = np.array([55.0, 40, 45, 40])
    same(
        (win_rates.goodness_of_fit(wins).statistic, win_rates.goodness_of_fit(wins).p),
        stats.chisquare(wins),
    )
    ranks = stats.rankdata(RNG.integers(0, 6, (40, 4)), axis=1)
    ours = win_rates.friedman(ranks)
    same((ours.statistic, ours.p), stats.friedmanchisquare(*ranks.T))


def test_the_odds_ratio_over_orders() -> None:
    """Half of Mantel and Haenszel's, with the error of Robins, Breslow & Greenland."""
    table = np.array([[18.0, 25], [12, 5], [10, 19], [20, 11]])
    strata = StratifiedTable([column.reshape(2, 2) for column in table.T])
    interval = win_rates._within_order(table, 1.0, 40.0, 0.9)
    same(interval.value / win_rates.LOGIT_TO_D, strata.logodds_pooled / 2)
    reach = float(t_quantile(40.0, 0.95)) * strata.logodds_pooled_se / 2
    same((interval.high - interval.value) / win_rates.LOGIT_TO_D, reach)


def test_a_binomial_logit() -> None:
    """Coefficients, errors and the likelihood ratio of GLM."""
    design = np.column_stack([np.ones(400), RNG.integers(-1, 2, (400, 3))]).astype(float)
    won = (RNG.random(400) < 1 / (1 + np.exp(-design @ [0.3, 0.5, -0.2, 0.1]))).astype(float)
    ours, none = fit_binomial(design, won), fit_binomial(design[:, :1], won)
    theirs = GLM(won, design, family=Binomial()).fit(tol=1e-14)
    same(ours.beta, theirs.params)
    same(ours.errors, theirs.bse)
    gained = theirs.llf - GLM(won, design[:, :1], family=Binomial()).fit(tol=1e-14).llf
    same(ours.log_likelihood - none.log_likelihood, gained)


def test_a_conditional_logit() -> None:
    """The score of ConditionalLogit is 0 at our maximum, and its information is ours."""
    k, trials = 4, 150
    groups = np.broadcast_to(np.eye(k)[:, 1:], (trials, k, k - 1))
    place = RNG.permuted(np.tile(np.arange(k), (trials, 1)), axis=1)
    design = np.concatenate([groups, place[:, :, None] / 3], axis=2)
    won = np.argmax(design @ [0.3, 0.1, -0.2, -0.8] + RNG.gumbel(size=(trials, k)), axis=1)
    ours = fit_choice(design, won)
    chosen = (np.arange(k) == won[:, None]).astype(float).ravel()
    model = ConditionalLogit(chosen, design.reshape(-1, 4), groups=np.repeat(np.arange(trials), k))
    same(model.loglike(ours.beta), ours.log_likelihood)
    np.testing.assert_allclose(model.score(ours.beta), 0.0, atol=1e-7)


def test_the_smallest_effect_that_is_found() -> None:
    """The sum of two central quantiles, which is within 1 % of what the noncentral t of
    TTestIndPower says."""
    ours = minimum_detectable_effect(
        np.array([10.0, 20, 40]), np.array([10.0, 20, 40]), np.full(3, 10.0), np.full(3, 0.04)
    )
    spread = math.sqrt(0.04 + 0.96 / 10)
    theirs = [
        spread * TTestIndPower().solve_power(nobs1=names, alpha=0.05, power=0.8)
        for names in (10, 20, 40)
    ]
    np.testing.assert_allclose(ours, theirs, rtol=0.01)


@pytest.mark.parametrize(("names", "effect"), [(20, 0.5), (40, 0.35), (12, 0.8)])
def test_power_where_one_test_decides(names: int, effect: float) -> None:
    """Of scores, one pair, names that hold most of the variance: the t test of the names decides,
    and what is drawn is within .05 of its power."""
    design = PlannedDesign.of(
        ExpectedOutcome.of("numeric", rate=None, levels=None, icc=0.3),
        alpha=0.05,
        family=1,
        names=names,
        templates=5,
        repetitions=2,
    )
    spread = math.sqrt(0.3 + 0.7 / 10)
    theirs = TTestIndPower().power(effect / spread, nobs1=names, alpha=0.05)
    assert detected(design, effect) == pytest.approx(theirs, abs=0.05)
