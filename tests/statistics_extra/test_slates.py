"""Choices among k and whole rankings."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pytest_fairness.analysis.preference import analyze_preference
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import Finding, Reason, Verdict
from pytest_fairness.statistics.win_rates import friedman, goodness_of_fit

from .choices import slates

R = json.loads((Path(__file__).parents[1] / "data" / "r_reference.json").read_text())
OPTIONS = {"trial": "trial", "cluster": None}


@pytest.mark.parametrize("case", R["gof"], ids=lambda case: case["id"])
def test_goodness_of_fit_agrees_with_r(case):
    """R's chisq.test for given probabilities."""
    ours = goodness_of_fit(np.array(case["observed"], float), np.array(case["p"], float))
    theirs = case["chisq"]
    assert ours.statistic == pytest.approx(theirs["statistic"], rel=1e-9, abs=1e-12)
    assert ours.df == theirs["parameter"]
    assert ours.p == pytest.approx(theirs["p_value"], rel=1e-9)


@pytest.mark.parametrize("case", R["friedman"], ids=lambda case: case["id"])
def test_friedman_agrees_with_r(case):
    """R's friedman.test, ties and two treatments included; R says NaN where everything ties."""
    ranks = stats.rankdata(np.array(case["blocks"], float), axis=1)
    ours, theirs = friedman(ranks), case["friedman"]
    if isinstance(theirs.get("statistic"), (int, float)):
        assert ours.statistic == pytest.approx(theirs["statistic"], rel=1e-9)
        assert ours.df == theirs["parameter"]
        assert ours.p == pytest.approx(theirs["p_value"], rel=1e-9)
    else:
        assert (ours.statistic, ours.p) == (0, 1)


def test_conditional_logit_agrees_with_statsmodels():
    """Strengths, position terms and the likelihood ratio of the same model."""
    from statsmodels.discrete.conditional_models import ConditionalLogit

    frame = slates(np.random.default_rng(5), [0.4, 0.0, -0.3], position=[0.8, 0.2, 0.0], trials=300)
    finding = analyze_preference(frame, position="position", **OPTIONS)
    design = np.column_stack([*(frame["group"] == g for g in "BC"), *(frame["position"] == p for p in (2, 3))]).astype(
        float
    )
    oracle = ConditionalLogit(frame["chosen"].astype(float), design, groups=frame["trial"])
    full = oracle.fit(method="newton", disp=0)
    params, errors = np.asarray(full.params), np.asarray(full.bse)
    told = finding.details["conditional_logit"]
    assert list(told["strength"].values())[1:] == pytest.approx(params[:2], rel=1e-6)
    assert finding.details["order_effect"]["log_odds_by_position"][1:] == pytest.approx(params[2:], rel=1e-6)
    pair = next(p for p in finding.pairs if (p.group_1, p.group_2) == ("A", "B"))
    assert pair.effect == pytest.approx(-params[0] * math.sqrt(3) / math.pi, rel=1e-6)
    assert pair.p_row == pytest.approx(2 * stats.norm.sf(abs(params[0] / errors[0])), rel=1e-5)
    bare = ConditionalLogit(frame["chosen"].astype(float), design[:, 2:], groups=frame["trial"])
    expected = 2 * (full.llf - bare.fit(method="newton", disp=0).llf)
    assert told["likelihood_ratio"] == pytest.approx(expected, rel=1e-6)


def test_without_positions_shares_decide():
    """Log odds of two groups are then the log ratio of their wins, with its textbook error."""
    frame = slates(np.random.default_rng(9), [0.5, 0.0, 0.0], trials=400)
    pair = analyze_preference(frame, **OPTIONS).pairs[0]
    wins = frame[frame["chosen"]].groupby("group").size()
    log_ratio = math.log(wins["A"] / wins["B"])
    error = math.sqrt(1 / wins["A"] + 1 / wins["B"])
    assert pair.effect == pytest.approx(log_ratio * math.sqrt(3) / math.pi, rel=1e-8)
    assert pair.p_value == pytest.approx(2 * stats.norm.sf(abs(log_ratio / error)), rel=1e-8)


def test_positions_uncover_what_shares_hide():
    """Strong position bias: the logit with position terms rejects more often than the shares do."""
    rng = np.random.default_rng(14)
    logit = shares = 0
    for _ in range(40):
        frame = slates(rng, [0.55, 0.0, 0.0], position=[2.0, 0.0, -2.0], trials=150)
        details = analyze_preference(frame, position="position", **OPTIONS).details
        logit += details["conditional_logit"]["p_value"] < 0.05
        shares += details["goodness_of_fit"]["p_value"] < 0.05
    assert shares < logit
    assert logit >= 20


def test_a_position_that_never_wins():
    """What stood in the last position was not really on offer: it drops out, and groups are still compared."""
    rng = np.random.default_rng(15)
    frame = slates(rng, [1.5, 0.0, 0.0], position=[1.0, 0.0, -60.0], trials=200)
    details = analyze_preference(frame, position="position", **OPTIONS).details
    assert details["conditional_logit"]["ridge"] is False
    assert details["conditional_logit"]["p_value"] < 1e-4
    assert details["order_effect"]["log_odds_by_position"][2] == -math.inf


def test_clusters_are_the_unit():
    """Six résumé sets of 50 copies each: errors come from the sets, and p is the larger of the two."""
    rng = np.random.default_rng(3)
    once = slates(rng, [0.6, 0.0, -0.2], trials=60)
    once["name"] = (once["trial"] // 10).map("set {}".format)
    copied = [once.assign(trial=once["trial"] + 1000 * r) for r in range(20)]
    import pandas as pd

    pair = analyze_preference(pd.concat(copied, ignore_index=True), trial="trial", cluster="name").pairs[0]
    assert pair.p_cluster is not None
    assert pair.p_value == max(pair.p_row, pair.p_cluster) == pair.p_cluster
    assert pair.statistics["clusters_1"] == 6


def test_a_group_that_always_wins():
    """Separation does not end in INCONCLUSIVE: the plain comparison of wins stands in, and FAILs."""
    frame = slates(np.random.default_rng(1), [60.0, 0.0, 0.0], trials=100)
    finding = analyze_preference(frame, position="position", **OPTIONS)
    assert finding.verdict is Verdict.FAIL
    assert finding.details["conditional_logit"]["ridge"] is True
    assert all(math.isfinite(pair.effect) for pair in finding.pairs)
    Finding.from_dict(json.loads(json.dumps(finding.to_dict())))


def test_rankings():
    """Friedman over trials, and each two groups by how often one is ranked above the other."""
    frame = slates(np.random.default_rng(2), [1.5, 0.0, 0.0], trials=150, rank=True)
    finding = analyze_preference(frame, rank="rank", position="position", **OPTIONS)
    wide = frame.pivot_table(index="trial", columns="group", values="rank")
    oracle = stats.friedmanchisquare(*(wide[g] for g in "ABC"))
    assert finding.details["friedman"]["chi_square"] == pytest.approx(oracle.statistic, rel=1e-9)
    pair = finding.pairs[0]
    assert pair.statistics["wins_1"] == int((wide["A"] < wide["B"]).sum())
    assert finding.verdict is Verdict.FAIL
    assert finding.details["mean_rank"]["A"] < finding.details["mean_rank"]["B"]


def test_no_preference_passes():
    """600 trials without any preference PASS, as choice and as ranking."""
    rng = np.random.default_rng(7)
    chosen = analyze_preference(slates(rng, [0, 0, 0], trials=600), position="position", **OPTIONS)
    ranked = analyze_preference(slates(rng, [0, 0, 0], trials=600, rank=True), rank="rank", **OPTIONS)
    assert (chosen.verdict, ranked.verdict) == (Verdict.PASS, Verdict.PASS)


@pytest.mark.parametrize("rank", [False, True])
def test_nothing_chosen(rank):
    """No winner or rank in any trial: INCONCLUSIVE, without raising."""
    frame = slates(np.random.default_rng(7), [0, 0, 0], trials=60, rank=rank)
    frame = frame.assign(**({"rank": None} if rank else {"chosen": False}))
    options = {"rank": "rank"} if rank else {}
    finding = analyze_preference(frame, **OPTIONS, **options)
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.UNSCORED)
    Finding.from_dict(json.loads(json.dumps(finding.to_dict())))


def test_refused_trials():
    """A refused trial is no choice, and is counted for every group that stood in it."""
    frame = slates(np.random.default_rng(7), [0, 0, 0], trials=100)
    finding = analyze_preference(frame.assign(refused=frame["trial"] < 10), **OPTIONS)
    assert {group.refused for group in finding.group_results} == {10}
    assert sum(group.n for group in finding.group_results) == 270


@pytest.mark.parametrize("rank", [True, False])
def test_trials_that_were_never_answered(rank):
    """Whatever their rows hold, they chose nobody: counted as unanswered, never as answered."""
    frame = slates(np.random.default_rng(6), [0.0, 0.5, 1.0], trials=120, rank=rank)
    lost = frame["trial"] < 12
    options = {**OPTIONS, **({"rank": "rank"} if rank else {})}
    marked = analyze_preference(frame.assign(undetermined=lost), by="group", **options)
    without = analyze_preference(frame[~lost], by="group", **options)
    assert {group.n for group in marked.group_results} == {108}
    assert {group.unscored for group in marked.group_results} == {12}
    assert [p.statistics["wins_1"] for p in marked.pairs] == [p.statistics["wins_1"] for p in without.pairs]
    # A tenth of the trials came to nothing. Ranks stand against the worst that those could have said.
    assert (marked.verdict, marked.reason) == (
        (Verdict.FLAG, None) if rank else (Verdict.INCONCLUSIVE, Reason.UNSCORED)
    )
    told = "friedman" if rank else "goodness_of_fit"
    assert marked.details[told] == without.details[told]


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        (lambda f: f.drop(index=4), {}, "trial '1' the group 'B' is missing"),
        (lambda f: f.assign(chosen=True), {}, "more than one candidate"),
        (lambda f: f.assign(position=1), {"position": "position"}, "in the same position"),
        (lambda f: f.assign(name=range(len(f))), {"cluster": "name"}, "differs between the candidates"),
        (lambda f: f.assign(group="A"), {}, "one group only"),
        (lambda f: f.assign(chosen="yes"), {}, "row 0: 'yes' is neither True nor False"),
        (lambda f: f.assign(rank="best"), {"rank": "rank"}, "'best' is no rank"),
    ],
    ids=range(7),
)
def test_malformed_tables_name_the_place(change, options, says):
    """Column, row or trial of what is wrong."""
    frame = change(slates(np.random.default_rng(7), [0, 0, 0], trials=20))
    with pytest.raises(FrameError, match=says):
        analyze_preference(frame, **{**OPTIONS, **options})


def test_two_cluster_columns_are_for_pairs():
    """A trial of k has one cluster."""
    with pytest.raises(UsageError, match="pairwise"):
        analyze_preference(slates(np.random.default_rng(7), [0, 0]), trial="trial", cluster=("a", "b"))
