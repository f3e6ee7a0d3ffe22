"""Choices of two, of several, and rankings: worked numbers, orders and clusters, degenerate tables,
errors.
"""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_fairness.analysis.preference import analyze_preference
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import Finding, Reason, Verdict
from pytest_fairness.statistics.win_rates import friedman, goodness_of_fit, mean_over_units

from ..support.choice_tables import simulated, slates, table


def pair_of(finding, a="A", b="B"):
    return next(pair for pair in finding.pairs if (pair.group_1, pair.group_2) == (a, b))


def well_formed(finding):
    """No NaN in any field that a verdict or a report reads, and there and back through JSON."""
    for pair in finding.pairs:
        assert not np.isnan([pair.p_row, pair.p_value, pair.corrected_p_value, pair.effect]).any()
        # An interval holds its estimate strictly, or is not shown.
        assert (pair.effect_low is None) is (pair.effect_high is None)
        assert pair.effect_low is None or pair.effect_low < pair.effect < pair.effect_high
    assert (
        Finding.from_dict(json.loads(json.dumps(finding.to_dict()))).to_dict() == finding.to_dict()
    )
    assert finding.sentence.startswith(finding.verdict.value)
    return finding


def test_interaction_agrees_with_statsmodels():
    """The likelihood ratio of the logit with and without criteria × group, position by criteria in
    both.
    """
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM

    rng = np.random.default_rng(4)
    frames = [
        simulated(rng, preference=lean, position=0.4, clusters=20, per_order=3).assign(
            criteria=criteria
        )
        for criteria, lean in {"gentle": 0.9, "tough": -0.9, "skilled": 0.0}.items()
    ]
    frame = pd.concat(frames, ignore_index=True)
    finding = analyze_preference(frame, block="criteria")
    y = (frame["chosen"] == frame["first"]).astype(float).to_numpy()
    side = np.where(frame["first"] == "B", 1.0, -1.0)
    dummies = np.stack([frame["criteria"] == c for c in ("skilled", "tough")], axis=1).astype(float)
    main = np.column_stack([np.ones(len(frame)), side, dummies])
    both = np.column_stack([main, side[:, None] * dummies])
    expected = 2 * (
        GLM(y, both, family=Binomial()).fit().llf - GLM(y, main, family=Binomial()).fit().llf
    )
    details = finding.details["interaction"]["criteria"]
    assert details["likelihood_ratio"] == pytest.approx(expected, rel=1e-7)
    assert details["df"] == 2
    assert details["p_value"] < 0.001
    assert any("depends on criteria" in note for note in finding.notes)
    assert details["selection_rate"]["gentle"]["A"] > 0.6
    assert details["selection_rate"]["tough"]["A"] < 0.4


def test_blocks_are_strata():
    """Over several contexts the row test is Cochran–Mantel–Haenszel of order × first-listed-won."""
    from statsmodels.stats.contingency_tables import StratifiedTable

    rng = np.random.default_rng(3)
    parts = [
        simulated(rng, preference=0.3, position=bias, clusters=1, per_order=40).assign(
            role=f"role {at}"
        )
        for at, bias in enumerate((-1.0, 0.0, 2.0))
    ]
    pair = pair_of(
        analyze_preference(pd.concat(parts, ignore_index=True), cluster=None, block="role")
    )
    ahead = [(part["first"] == "A", part["chosen"] == part["first"]) for part in parts]
    tables = [[[sum(won & a), sum(~won & a)], [sum(won & ~a), sum(~won & ~a)]] for a, won in ahead]
    oracle = StratifiedTable([np.array(t) for t in tables])
    assert pair.p_row == pytest.approx(oracle.test_null_odds(correction=False).pvalue, rel=1e-9)
    d = math.log(oracle.oddsratio_pooled) / 2 * math.sqrt(3) / math.pi
    assert pair.statistics["d_within_order"] == pytest.approx(d, rel=1e-9)


def test_names_that_meet_several_others():
    """With both names given a spread between A's names counts once a name, not once a pair of
    names.
    """
    rng = np.random.default_rng(12)
    rows = []
    for a, lean in enumerate((2.0, 1.0, 0.2, -0.4)):
        for b in range(12):
            one = simulated(rng, preference=lean, clusters=1, per_order=3)
            names = (
                np.where(one["first"] == "A", f"a{a}", f"b{b}"),
                np.where(one["first"] == "A", f"b{b}", f"a{a}"),
            )
            rows.append(one.assign(one=names[0], two=names[1], name=f"a{a} and b{b}"))
    frame = pd.concat(rows, ignore_index=True)
    crossed = pair_of(analyze_preference(frame, cluster=("one", "two")))
    naive = pair_of(analyze_preference(frame))
    assert (crossed.statistics["clusters_1"], crossed.statistics["clusters_2"]) == (4, 12)
    assert naive.p_value < 0.01 < crossed.p_value
    by_a = (frame["chosen"] == "A").groupby(frame["name"].str.slice(0, 2)).mean()
    assert crossed.statistics["df"] == 3
    assert crossed.p_cluster >= 0.8 * stats.ttest_1samp(by_a - 0.5, 0).pvalue


def test_the_variance_over_names_is_that_of_both_sides_less_that_of_pairs():
    """Cameron, Gelbach & Miller (2011), on a full table of three names against four."""
    table = np.array([[0.9, 0.5, 0.7, 0.1], [0.6, 0.3, 0.2, 0.0], [0.4, 0.1, 0.3, -0.5]])
    of_a, of_b = (side.ravel() for side in np.indices(table.shape))
    mean, error, df = mean_over_units((of_a, of_b), table.ravel())
    own, other, pairs = (
        one.var(ddof=1) / one.size
        for one in (table.mean(axis=1), table.mean(axis=0), table.ravel())
    )
    assert own + other - pairs > max(own, other, pairs)
    assert (mean, error, df) == (
        pytest.approx(0.3),
        pytest.approx(math.sqrt(own + other - pairs)),
        2,
    )


def test_one_name_pair_caps_fail_at_flag():
    """A preference between two particular names is not yet one between two groups."""
    frame = simulated(np.random.default_rng(1), preference=2.5, clusters=1, per_order=100)
    pair = pair_of(well_formed(analyze_preference(frame)))
    assert (pair.scope, pair.verdict, pair.p_cluster) == ("labels", Verdict.FLAG, None)
    many = simulated(np.random.default_rng(1), preference=2.5, clusters=20, per_order=5)
    assert analyze_preference(many).verdict is Verdict.FAIL


def test_copies_of_one_reply_are_no_evidence():
    """Temperature 0: one name pair, one context, 100 copies of two replies are two trials."""
    frame = table({("A", "B"): 100, ("B", "A"): 0}, n=100)
    frame = frame.assign(name="Ann and Bob", repetition=frame.groupby(["first"]).cumcount())
    pair = pair_of(well_formed(analyze_preference(frame)))
    assert (pair.statistics["n"], pair.verdict, pair.reason) == (2, Verdict.INCONCLUSIVE, Reason.N)


def test_position_decides_everything():
    """Always the first-listed: what either order hides stays open, and note and sentence say what
    decided. In one order only, A's advantage may be the position's: nothing is concluded."""
    finding = well_formed(
        analyze_preference(table({("A", "B"): 100, ("B", "A"): 100}, n=100), cluster=None)
    )
    pair = pair_of(finding)
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.PRECISION)
    assert (pair.effect, pair.p_value) == (pytest.approx(0), 1)
    assert pair.statistics["d_from_win_rate_high"] < 0.5 < pair.statistics["d_within_order_high"]
    assert "chosen in 100 %, which leaves little room for a preference" in finding.sentence
    assert "the position decided every choice" in pair.notes
    assert finding.details["first_listed_share"] == 1
    once = well_formed(analyze_preference(table({("A", "B"): 90}, n=100), cluster=None))
    assert (once.verdict, once.reason) == (Verdict.INCONCLUSIVE, Reason.RAGGED)
    assert "both orders" in once.sentence


def test_strengths_where_there_is_no_maximum():
    """One group always wins (FAIL, with finite numbers), or two islands never meet: a ridge fit,
    without error or p.
    """
    always = well_formed(
        analyze_preference(table({("A", "B"): 60, ("B", "A"): 0}, n=60), cluster=None)
    )
    assert always.verdict is Verdict.FAIL
    assert math.isfinite(always.pairs[0].effect)
    details = always.details["bradley_terry"]
    assert (details["ridge"], details["error"], details["p_value"]) == (True, None, None)
    assert details["strength"]["B"] < -1
    wins = {("A", "B"): 30, ("B", "A"): 30, ("C", "D"): 30, ("D", "C"): 30}
    islands = well_formed(analyze_preference(table(wins, n=60), cluster=None))
    assert [(p.group_1, p.group_2) for p in islands.pairs] == [("A", "B"), ("C", "D")]
    assert islands.details["bradley_terry"]["ridge"] is True


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: f.assign(chosen=None), Reason.UNSCORED),
        (lambda f: f.assign(chosen=f["chosen"].where(f.index % 10 != 0)), Reason.UNSCORED),
        (lambda f: f.assign(chosen="neither"), Reason.N),
        (lambda f: f.assign(refused=True), Reason.N),
        (lambda f: f.head(1), Reason.RAGGED),
    ],
    ids=["all unparsed", "a tenth unparsed", "all neither", "all refused", "one row"],
)
def test_nothing_to_judge(change, reason):
    """Without choices there is no verdict, only its reason; nothing raises."""
    finding = well_formed(analyze_preference(change(table()), cluster=None))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert reason in {pair.reason for pair in finding.pairs}


def test_no_choice_is_reported_a_group():
    """Neither, unparsable and refused are counted for the groups that stood in those trials; a pair
    that is declined far more often than the others is noted."""
    frame = table(n=20).assign(refused=False)
    frame.loc[frame.index[:3], "chosen"] = "neither"
    frame.loc[frame.index[3:5], "refused"] = True
    frame.loc[frame.index[5], "chosen"] = None
    by = {group.group: group for group in analyze_preference(frame, cluster=None).group_results}
    assert (by["A"].undetermined, by["A"].refused, by["A"].unscored) == (3, 2, 1)
    assert (by["C"].undetermined, by["C"].refused, by["C"].unscored) == (0, 0, 0)
    assert by["A"].refusal_rate == pytest.approx(2 / 80)
    assert by["B"].n == 80 - 6
    frame = table(n=40)
    frame.loc[(frame["first"] == "A") & (frame["second"] == "B"), "chosen"] = "neither"
    finding = analyze_preference(frame, cluster=None)
    assert finding.details["no_choice"]["p_value"] < 1e-6
    assert any("without a choice" in note for note in finding.notes)


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        (lambda f: f.drop(columns="chosen"), {}, "no column 'chosen'"),
        (
            lambda f: f.assign(chosen=f["chosen"].where(f.index != 7, "Bob")),
            {},
            "column 'chosen', row 7: .*'Bob'",
        ),
        (
            lambda f: f.assign(second=f["second"].where(f.index != 3, "A")),
            {},
            "row 3: both candidates",
        ),
        (lambda f: f.assign(first=f["first"].where(f.index != 5)), {}, "column 'first', row 5"),
        (lambda f: f, {"cluster": "name"}, "no column 'name' for the cluster"),
        (lambda f: f, {"block": "role"}, "no column 'role'"),
        (lambda f: f.assign(name="x", repetition=0), {"cluster": "name"}, "row 1 repeats row 0"),
        (lambda f: f.iloc[:0], {}, "no rows"),
        (lambda f: [1, 2], {}, "DataFrame"),
    ],
    ids=range(9),
)
def test_malformed_tables_name_the_place(change, options, says):
    """Column and row of what is wrong."""
    with pytest.raises(FrameError, match=says):
        analyze_preference(change(table()), **{"cluster": None, **options})


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 2},
        {"correction": "sidak"},
        {"rank": "rank"},
        {"position": "position"},
        {"trial": "trial", "cluster": ("a", "b")},
    ],
    ids=range(5),
)
def test_options_out_of_range(options):
    """An option that means nothing is refused."""
    with pytest.raises(UsageError):
        analyze_preference(table(), **{"cluster": None, **options})


@st.composite
def tables(draw):
    """Any table of the right shape: few or many rows, one-sided, undecided."""
    listed = st.sampled_from([("A", "B"), ("B", "A"), ("A", "C"), ("C", "B")])
    outcome = st.sampled_from([0, 1, 1, "neither", None])
    trials = draw(
        st.lists(
            st.tuples(listed, outcome, st.sampled_from("xyz"), st.sampled_from("st")),
            min_size=1,
            max_size=40,
        )
    )
    rows = [
        (*pair, pair[which] if which in (0, 1) else which, name, role, at)
        for at, (pair, which, name, role) in enumerate(trials)
    ]
    return pd.DataFrame(rows, columns=["first", "second", "chosen", "name", "role", "repetition"])


@settings(max_examples=8, deadline=None)
@given(tables(), st.sampled_from([None, "name"]), st.sampled_from([None, "role"]), st.randoms())
def test_properties(frame, cluster, block, random):
    """No table raises; the order of rows changes nothing; renaming groups in reverse mirrors every
    pair.
    """
    finding = well_formed(analyze_preference(frame, cluster=cluster, block=block))
    rows = list(range(len(frame)))
    random.shuffle(rows)
    shuffled = analyze_preference(
        frame.iloc[rows].reset_index(drop=True), cluster=cluster, block=block
    )
    mapping = {"A": "Z", "B": "Y", "C": "X"}
    renamed = frame.assign(
        **{column: frame[column].replace(mapping) for column in ("first", "second", "chosen")}
    )
    mirrored = analyze_preference(renamed, cluster=cluster, block=block)
    assert shuffled.verdict is finding.verdict is mirrored.verdict
    for pair in finding.pairs:
        same = pair_of(shuffled, pair.group_1, pair.group_2)
        other = pair_of(mirrored, mapping[pair.group_2], mapping[pair.group_1])
        assert same.p_value == pytest.approx(pair.p_value, abs=1e-9)
        assert other.p_value == pytest.approx(pair.p_value, abs=1e-9)
        assert other.effect == pytest.approx(-pair.effect, abs=1e-9)
        assert (other.effect_low is None) is (pair.effect_low is None)
        assert pair.effect_low is None or other.effect_low == pytest.approx(
            -pair.effect_high, abs=1e-9
        )


def counted(won, lost, unread=0):
    """Choices between A and B, each kind half in one order and half in the other."""
    kinds = [
        (chosen, at)
        for chosen, count in (("A", won), ("B", lost), (None, unread))
        for at in range(count)
    ]
    rows = [(*("AB" if at % 2 else "BA"), chosen) for chosen, at in kinds]
    return pd.DataFrame(rows, columns=["first", "second", "chosen"])


@pytest.mark.parametrize(
    ("won", "lost", "unread", "verdict"),
    [
        (570, 430, 0, (Verdict.FLAG, None)),  # 57 against 43 is d = .16, and still no trifle
        (
            2180,
            1820,
            0,
            (Verdict.PASS, None),
        ),  # 54.5 against 45.5 is one however many choices there are
        (110, 70, 0, (Verdict.FLAG, None)),
        (
            110,
            70,
            20,
            (Verdict.INCONCLUSIVE, Reason.UNSCORED),
        ),  # with those for the other it would not be significant
        (150, 30, 20, (Verdict.FAIL, None)),
        # with those for the group that is ahead the ratio would be below .8, beyond chance,
        # whichever group that is
        (175, 205, 0, (Verdict.PASS, None)),
        (175, 205, 20, (Verdict.INCONCLUSIVE, Reason.PRECISION)),
        (205, 175, 20, (Verdict.INCONCLUSIVE, Reason.PRECISION)),
    ],
    ids=range(8),
)
def test_win_rates_and_what_is_unread_against_them(won, lost, unread, verdict):
    finding = analyze_preference(counted(won, lost, unread), cluster=None)
    assert (finding.verdict, finding.reason) == verdict
    below = "the ratio of the two win rates is below .8, beyond chance" in finding.pairs[0].notes
    assert below is (won == 570)


# ---------------------------------------------------------------- one of several, and rankings

R = json.loads((Path(__file__).parents[1] / "data" / "r_reference.json").read_text())
OPTIONS = {"trial": "trial", "cluster": None}


@pytest.mark.parametrize("case", R["gof"], ids=lambda case: case["id"])
def test_goodness_of_fit_agrees_with_r(case):
    """R's chisq.test for given probabilities."""
    ours, theirs = (
        goodness_of_fit(np.array(case["observed"], float), np.array(case["p"], float)),
        case["chisq"],
    )
    assert (ours.df, ours.p) == (theirs["parameter"], pytest.approx(theirs["p_value"], rel=1e-9))
    assert ours.statistic == pytest.approx(theirs["statistic"], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("case", R["friedman"], ids=lambda case: case["id"])
def test_friedman_agrees_with_r(case):
    """R's friedman.test, ties and two treatments included; R says NaN where everything ties."""
    ours, theirs = (
        friedman(stats.rankdata(np.array(case["blocks"], float), axis=1)),
        case["friedman"],
    )
    if isinstance(theirs.get("statistic"), (int, float)):
        assert ours.df == theirs["parameter"]
        assert (ours.statistic, ours.p) == pytest.approx(
            (theirs["statistic"], theirs["p_value"]), rel=1e-9
        )
    else:
        assert (ours.statistic, ours.p) == (0, 1)


def test_conditional_logit_agrees_with_statsmodels():
    """Strengths, position terms and the likelihood ratio of the same model."""
    from statsmodels.discrete.conditional_models import ConditionalLogit

    frame = slates(np.random.default_rng(5), [0.4, 0.0, -0.3], position=[0.8, 0.2, 0.0], trials=300)
    finding = analyze_preference(frame, position="position", **OPTIONS)
    terms = [*(frame["group"] == g for g in "BC"), *(frame["position"] == p for p in (2, 3))]
    design = np.column_stack(terms).astype(float)
    oracle = ConditionalLogit(frame["chosen"].astype(float), design, groups=frame["trial"])
    full = oracle.fit(method="newton", disp=0)
    params, errors = np.asarray(full.params), np.asarray(full.bse)
    details = finding.details["conditional_logit"]
    assert list(details["strength"].values())[1:] == pytest.approx(params[:2], rel=1e-6)
    assert finding.details["order_effect"]["log_odds_by_position"][1:] == pytest.approx(
        params[2:], rel=1e-6
    )
    pair = next(p for p in finding.pairs if (p.group_1, p.group_2) == ("A", "B"))
    assert pair.effect == pytest.approx(-params[0] * math.sqrt(3) / math.pi, rel=1e-6)
    assert pair.p_row == pytest.approx(2 * stats.norm.sf(abs(params[0] / errors[0])), rel=1e-5)
    bare = ConditionalLogit(frame["chosen"].astype(float), design[:, 2:], groups=frame["trial"])
    expected = 2 * (full.llf - bare.fit(method="newton", disp=0).llf)
    assert details["likelihood_ratio"] == pytest.approx(expected, rel=1e-6)


def test_a_position_that_never_wins():
    """What stood in the last position was not really on offer: it drops out, and groups are still
    compared.
    """
    frame = slates(
        np.random.default_rng(15), [1.5, 0.0, 0.0], position=[1.0, 0.0, -60.0], trials=200
    )
    details = analyze_preference(frame, position="position", **OPTIONS).details
    assert (
        details["conditional_logit"]["ridge"],
        details["conditional_logit"]["p_value"] < 1e-4,
    ) == (False, True)
    assert details["order_effect"]["log_odds_by_position"][2] == -math.inf


def test_clusters_are_the_unit():
    """Six résumé sets of 50 copies each: errors come from the sets, and p is the larger of the two."""
    rng = np.random.default_rng(3)
    once = slates(rng, [0.6, 0.0, -0.2], trials=60)
    once["name"] = (once["trial"] // 10).map("set {}".format)
    copied = [once.assign(trial=once["trial"] + 1000 * r) for r in range(20)]
    pair = analyze_preference(
        pd.concat(copied, ignore_index=True), trial="trial", cluster="name"
    ).pairs[0]
    assert pair.p_cluster is not None
    assert pair.p_value == max(pair.p_row, pair.p_cluster) == pair.p_cluster
    assert pair.statistics["clusters_1"] == 6


def test_a_group_that_always_wins():
    """Separation does not end in INCONCLUSIVE: the plain comparison of wins stands in, and FAILs."""
    frame = slates(np.random.default_rng(1), [60.0, 0.0, 0.0], trials=100)
    finding = well_formed(analyze_preference(frame, position="position", **OPTIONS))
    assert finding.verdict is Verdict.FAIL
    assert finding.details["conditional_logit"]["ridge"] is True


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
    ranked = analyze_preference(
        slates(rng, [0, 0, 0], trials=600, rank=True), rank="rank", **OPTIONS
    )
    assert (chosen.verdict, ranked.verdict) == (Verdict.PASS, Verdict.PASS)


@pytest.mark.parametrize("rank", [False, True])
def test_nothing_chosen(rank):
    """No winner or rank in any trial: INCONCLUSIVE, without raising."""
    frame = slates(np.random.default_rng(7), [0, 0, 0], trials=60, rank=rank)
    frame = frame.assign(**({"rank": None} if rank else {"chosen": False}))
    finding = well_formed(
        analyze_preference(frame, **OPTIONS, **({"rank": "rank"} if rank else {}))
    )
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.UNSCORED)


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
    assert [p.statistics["wins_1"] for p in marked.pairs] == [
        p.statistics["wins_1"] for p in without.pairs
    ]
    # A tenth of the trials came to nothing. Ranks stand against the worst that those could have
    # said.
    worst = (Verdict.FLAG, None) if rank else (Verdict.INCONCLUSIVE, Reason.UNSCORED)
    assert (marked.verdict, marked.reason) == worst
    test = "friedman" if rank else "goodness_of_fit"
    assert marked.details[test] == without.details[test]


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        (lambda f: f.drop(index=4), {}, "trial '1' the group 'B' is missing"),
        (lambda f: f.assign(chosen=True), {}, "more than one candidate"),
        (lambda f: f.assign(position=1), {"position": "position"}, "in the same position"),
        (
            lambda f: f.assign(name=range(len(f))),
            {"cluster": "name"},
            "differs between the candidates",
        ),
        (lambda f: f.assign(group="A"), {}, "one group only"),
        (lambda f: f.assign(chosen="yes"), {}, "row 0: 'yes' is neither True nor False"),
        (lambda f: f.assign(rank="best"), {"rank": "rank"}, "'best' is no rank"),
    ],
    ids=range(7),
)
def test_malformed_slates_tables_name_the_place(change, options, says):
    """Column, row or trial of what is wrong."""
    frame = change(slates(np.random.default_rng(7), [0, 0, 0], trials=20))
    with pytest.raises(FrameError, match=says):
        analyze_preference(frame, **{**OPTIONS, **options})
