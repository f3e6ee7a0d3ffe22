"""Arms: worked number, what is paired, the policy, the placebo arm."""

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pytest_fairness.analysis.arm_contrast import analyze_arms
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import Finding, Reason, Verdict

from ..support.choice_tables import simulated

ARMS = {"treated": "scrubbed", "control": "raw"}
SIDES = ("first", "second")


def blocks(**arms):
    """Six blocks of 15 choices between A and B an arm; the numbers are A's wins."""
    rows = [
        (arm, f"block {block}", *("AB" if at % 2 else "BA"), "A" if at < won else "B")
        for arm, wins in arms.items()
        for block, won in enumerate(wins)
        for at in range(15)
    ]
    return pd.DataFrame(rows, columns=["arm", "template", "first", "second", "chosen"])


def in_arms(rng, preferences, **options):
    """Pairwise choices over the same ten name pairs in each arm, with that preference (logits)."""
    frames = [
        simulated(rng, preference=lean, **options).assign(arm=arm)
        for arm, lean in preferences.items()
    ]
    return pd.concat(frames, ignore_index=True)


def scored(rng, gaps, names=12, templates=3, shared=False):
    """Scores of two groups in arms; group B is lower by the arm's gap. Names keep their level
    across arms.
    """
    level = {(g, n): rng.normal(0, 1) for g in "AB" for n in range(names)}
    grid = product(gaps.items(), "AB", range(names), range(templates))
    rows = [
        (
            arm,
            g,
            f"p{n}" if shared else f"{g}{n}",
            t,
            level["A" if shared else g, n] - gap * (g == "B") + t,
        )
        for (arm, gap), g, n, t in grid
    ]
    frame = pd.DataFrame(rows, columns=["arm", "group", "name", "template", "score"])
    return frame.assign(score=frame.score + rng.normal(0, 0.5, len(frame)))


def test_name_pairs_are_paired():
    """With name pairs in both arms their win rates are paired."""
    frame = in_arms(np.random.default_rng(1), {"raw": 1.5, "scrubbed": 0.0}, name_sd=0.5)
    pair = analyze_arms(frame, **ARMS).pairs[0]
    rates = (frame["chosen"] == "A").groupby([frame["arm"], frame["name"]]).mean()
    oracle = stats.ttest_rel(rates["scrubbed"], rates["raw"])
    assert pair.p_value == pytest.approx(oracle.pvalue, rel=1e-9)
    assert pair.difference == pytest.approx((rates["scrubbed"] - rates["raw"]).mean())
    assert (pair.statistics["unit"], pair.statistics["units"]) == ("cluster", 10)


@pytest.mark.parametrize("shared", [False, True], ids=["names of one group", "personas in both"])
def test_scores_are_paired_by_what_both_arms_share(shared):
    """The change of each name, compared between the groups; of the same personas, the change of
    their difference.
    """
    frame = scored(np.random.default_rng(2), {"raw": 1.0, "scrubbed": 0.2}, shared=shared)
    pair = analyze_arms(frame, "score", **ARMS).pairs[0]
    means = frame.groupby(["arm", "group", "name"])["score"].mean()
    change = {group: means["scrubbed"][group] - means["raw"][group] for group in "AB"}
    oracle = (stats.ttest_rel if shared else stats.ttest_ind)(change["A"], change["B"])
    assert pair.p_value == pytest.approx(oracle.pvalue, rel=1e-9)
    assert pair.difference == pytest.approx(change["A"].mean() - change["B"].mean())
    assert pair.statistics["control"] == pytest.approx(
        means["raw"]["A"].mean() - means["raw"]["B"].mean()
    )


def test_blocks_where_there_is_one_name():
    """One name a group: contexts are paired, and the result is about those names."""
    frame = scored(np.random.default_rng(4), {"raw": 4.0, "scrubbed": 0.0}, names=1, templates=40)
    pair = analyze_arms(frame, "score", **ARMS).pairs[0]
    assert (pair.statistics["unit"], pair.statistics["units"], pair.scope) == (
        "block",
        40,
        "labels",
    )
    assert pair.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("raw", "scrubbed", "verdict"),
    [
        (2.0, 0.0, Verdict.PASS),
        (0.2, 2.0, Verdict.FAIL),
        (0.8, -3.0, Verdict.FAIL),
        (1.2, 1.0, Verdict.INCONCLUSIVE),
        (0.0, 0.0, Verdict.INCONCLUSIVE),
    ],
    ids=["shrinks", "grows", "turns round", "stays", "none to reduce"],
)
def test_verdicts(raw, scrubbed, verdict):
    """A disparity that shrinks passes; one that grows or turns round further than it was fails."""
    rng = np.random.default_rng(5)
    frame = in_arms(rng, {"raw": raw, "scrubbed": scrubbed}, clusters=20)
    finding = analyze_arms(frame, **ARMS)
    assert finding.verdict is verdict
    assert finding.sentence.startswith(verdict.value)
    assert (
        Finding.from_dict(json.loads(json.dumps(finding.to_dict()))).to_dict() == finding.to_dict()
    )


def test_pairs_without_disparity_do_not_stand_in_the_way():
    """Among several pairs those that were fair before need not improve."""
    rng = np.random.default_rng(7)
    fair = in_arms(rng, {"raw": 0.0, "scrubbed": 0.0}, clusters=20, groups=("C", "D"))
    unfair = in_arms(rng, {"raw": 2.0, "scrubbed": 0.0}, clusters=20)
    frame = pd.concat([fair, unfair.assign(name="other " + unfair["name"])], ignore_index=True)
    finding = analyze_arms(frame, **ARMS)
    assert finding.verdict is Verdict.PASS
    assert "A is chosen over B" in finding.sentence
    assert "Of 2 pairs of groups, 1 shrinks, 1 had nothing to reduce" in finding.sentence


RACE = {"wm": "white", "wf": "white", "bm": "black", "bf": "black"}
GENDER = {"wm": "male", "bm": "male", "wf": "female", "bf": "female"}
ACROSS = (("wm", "bm"), ("wm", "bf"), ("wf", "bf"), ("wf", "bm"))
#: A gap between races of 36 points, of which one pair alone shows 16; scrubbing takes it to 0.
CLEAR_BUT_FOR_ONE = {
    ("wm", "bm"): (44, 0),
    ("wm", "bf"): (44, 0),
    ("wf", "bf"): (40, 0),
    ("wf", "bm"): (16, 5),
}
OPEN = (Verdict.INCONCLUSIVE, Reason.PRECISION)


def four_groups(raw, scrubbed, choices=50):
    """White and Black women and men in two arms: 12 name pairs for each two groups, *choices* of
    each in each arm.

    The numbers are by how many points the first group of a pair is preferred, with what each name
    pair adds.
    """
    adds = np.array([-2, -1, 0, 1, 2, 1, -1, 0, 2, -2, 1, -1])
    pairs = ("wm", "wf"), ("bm", "bf"), ("wm", "bm"), ("wm", "bf"), ("wf", "bm"), ("wf", "bf")
    rows = []
    for (turn, (a, b)), (arm, gaps) in product(
        enumerate(pairs), (("raw", raw), ("scrubbed", scrubbed))
    ):
        points, spread = gaps.get((a, b), (0, 1))
        for at, add in enumerate(np.roll(adds, turn if arm == "raw" else -turn)):
            wins, name = round(choices * (0.5 + points / 100)) + spread * add, f"{a} {b} {at}"
            rows += [
                (arm, *((a, b) if k % 2 else (b, a)), a if k < wins else b, name, k)
                for k in range(choices)
            ]
    return pd.DataFrame(rows, columns=["arm", "first", "second", "chosen", "name", "repetition"])


@pytest.mark.parametrize(
    ("raw", "scrubbed", "options", "verdict", "says"),
    [
        (
            CLEAR_BUT_FOR_ONE,
            {("wf", "bm"): (0, 7)},
            {"by": "race", "classes": RACE},
            (Verdict.PASS, None),
            "white is chosen over black in 86.0 % in raw and in 50.0 % in scrubbed",
        ),
        (CLEAR_BUT_FOR_ONE, {("wf", "bm"): (0, 7)}, {}, (Verdict.PASS, None), "3 shrink"),
        (
            dict.fromkeys(ACROSS, (40, 0)),
            {},
            {"by": "gender", "classes": GENDER},
            OPEN,
            "there is no preference to reduce in raw",
        ),
        (
            dict.fromkeys(ACROSS, (30, 0)),
            {("wf", "bm"): (-40, 0)},
            {"by": "race", "classes": RACE},
            (Verdict.FAIL, None),
            "turns round instead of shrinking: wf is chosen over bm in 80.0 % in raw and in 10.0 % "
            "in scrubbed",
        ),
        (
            dict.fromkeys(ACROSS, (40, 0)) | {("wf", "bm"): (10, 5)},
            {("wf", "bm"): (28, 7)},
            {"by": "race", "classes": RACE},
            OPEN,
            "by itself the preference grows here, although it shrinks as a whole: wf is chosen",
        ),
        (
            {("wm", "bm"): (20, 5), ("wf", "bf"): (30, 5)},
            {("wm", "bm"): (15, 5), ("wf", "bf"): (25, 5)},
            {},
            OPEN,
            "wf is chosen over bf",
        ),
    ],
    ids=[
        "shrinks",
        "between groups",
        "none to reduce",
        "one pair turns round",
        "one pair grows",
        "largest first",
    ],
)
def test_classes_and_the_pairs_of_their_groups(raw, scrubbed, options, verdict, says):
    """The finding is about the class; pairs of groups are its detail, raise the alarm and never
    have to pass. What the correction over pairs would hide keeps a class from passing; of what is
    open, the largest disparity is named."""
    finding = analyze_arms(four_groups(raw, scrubbed), **options, **ARMS)
    assert (finding.verdict, finding.reason) == verdict
    assert says in finding.sentence
    assert "clusters" not in finding.sentence
    if says == "wf is chosen over bf":
        assert " name pairs if the change stays as it is" in finding.sentence
    if options.get("by") == "race":
        pair, *detail = finding.pairs
        assert ({pair.group_1, pair.group_2}, pair.verdict) == ({"black", "white"}, Verdict.PASS)
        assert all(one.alarm_only for one in detail)
        grown = next(one for one in detail if (one.group_1, one.group_2) == ("bm", "wf"))
        assert (grown.p_value < 0.05 < grown.corrected_p_value) is ("by itself" in finding.sentence)
    if says.startswith("white"):
        assert (pair.statistics["control"], pair.statistics["treated"]) == (
            pytest.approx(-0.36),
            pytest.approx(0),
        )
        assert "Of 4 pairs of groups, 3 shrink, 1 is not settled" in finding.sentence


def test_scores_by_class():
    """With an outcome, too: the classes are compared, the groups of different classes are their
    detail.
    """
    rng = np.random.default_rng(21)
    both = {sex: scored(rng, {"raw": 3.0, "scrubbed": 0.0}) for sex in "mf"}
    parts = [
        one.assign(group=one["group"].map({"A": f"w{sex}", "B": f"b{sex}"}), name=one["name"] + sex)
        for sex, one in both.items()
    ]
    finding = analyze_arms(
        pd.concat(parts, ignore_index=True), "score", by="race", classes=RACE, **ARMS
    )
    assert finding.verdict is Verdict.PASS
    assert [one.group for one in finding.group_results] == ["black", "white"]
    assert [one.alarm_only for one in finding.pairs] == [False, True, True, True, True]
    assert "white is ahead of black on score" in finding.sentence


def test_one_name_a_group_and_three_contexts_are_no_pass():
    """34 points at p = .105 are neither shown to shrink nor shown to be nothing."""
    wins = {"raw": (30, 48, 48), "scrubbed": (25, 25, 25)}
    rows = [
        (
            arm,
            f"context {at}",
            *(("white", "black")[:: 1 if k % 2 else -1]),
            "white" if k < won else "black",
            k,
        )
        for arm, of in wins.items()
        for at, won in enumerate(of)
        for k in range(50)
    ]
    frame = pd.DataFrame(
        rows, columns=["arm", "template", "first", "second", "chosen", "repetition"]
    )
    names = {
        f"name_{at}": frame[side].map({"white": "Greg", "black": "Darnell"})
        for at, side in enumerate(SIDES)
    }
    finding = analyze_arms(frame.assign(**names), cluster=tuple(names), **ARMS)
    [pair] = finding.pairs
    assert pair.difference == pytest.approx(0.34)  # of black against white
    assert round(pair.p_value, 3) == 0.105
    assert (finding.verdict, pair.verdict, pair.reason) == (Verdict.INCONCLUSIVE, *OPEN)
    assert "which may be chance" in finding.sentence


@pytest.mark.parametrize(
    ("lost", "verdict"),
    [
        (0, (Verdict.PASS, None)),
        (30, (Verdict.PASS, None)),
        (150, (Verdict.INCONCLUSIVE, Reason.UNSCORED)),
    ],
)
def test_choices_that_nobody_could_read_are_set_against_the_verdict(lost, verdict):
    """A fall that the worst of the missing answers cannot undo stands; one that they could is not
    concluded.
    """
    frame = blocks(raw=[13] * 5 + [14], scrubbed=[7] * 5 + [8]).sort_values(
        ["template", "first"], kind="stable"
    )
    frame = pd.concat([frame] * 4, ignore_index=True)
    frame.loc[frame.index[frame["arm"] == "raw"][:lost], "chosen"] = None
    finding = analyze_arms(frame, cluster=None, **ARMS)
    assert (finding.verdict, finding.reason) == verdict
    if lost:
        assert finding.pairs[0].statistics["without_outcome"] == pytest.approx(lost / 360)


def test_placebo_arm():
    """Which arms differ from the one that should do nothing."""
    rng = np.random.default_rng(8)
    frame = in_arms(rng, {"raw": 1.5, "placebo": 1.5, "scrubbed": 0.0}, clusters=20)
    finding = analyze_arms(frame, placebo="placebo", **ARMS)
    assert finding.notes == (
        "raw does not differ from the placebo arm",
        "the treated arm scrubbed differs from the placebo arm (A / B)",
    )
    assert finding.details["against_placebo"]["scrubbed"]["A / B"]["corrected_p_value"] < 0.001


def test_cells_of_one_arm_only():
    """Name pairs that stand in one arm only are no comparison."""
    frame = in_arms(np.random.default_rng(9), {"raw": 1.0, "scrubbed": 0.0})
    lacking = frame[(frame["arm"] == "raw") | frame["name"].isin(["pair 0", "pair 1", "pair 2"])]
    finding = analyze_arms(lacking, **ARMS)
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.RAGGED)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.assign(chosen=None),
        lambda f: f.assign(chosen="neither"),
        lambda f: f[f["name"] == "pair 0"],
        lambda f: f.iloc[[0, -1]],
        lambda f: f.assign(chosen="A"),
    ],
    ids=["unparsed", "neither", "one pair", "two rows", "always A"],
)
def test_degenerate_tables(change):
    """Nothing raises; no verdict without evidence."""
    frame = change(in_arms(np.random.default_rng(10), {"raw": 0.5, "scrubbed": 0.0}))
    finding = analyze_arms(frame, **ARMS)
    assert finding.verdict is Verdict.INCONCLUSIVE
    json.dumps(finding.to_dict(), allow_nan=False)


def test_a_column_of_another_name():
    """The arm column may be called anything; repeated cells in other arms are no duplicates."""
    frame = in_arms(np.random.default_rng(11), {"raw": 2.0, "scrubbed": 0.0}, clusters=20)
    finding = analyze_arms(frame.rename(columns={"arm": "variant"}), arm="variant", **ARMS)
    assert finding.verdict is Verdict.PASS
    scores = scored(np.random.default_rng(11), {"raw": 2.0, "scrubbed": 0.0}).assign(repetition=0)
    again = analyze_arms(scores.rename(columns={"arm": "variant"}), "score", arm="variant", **ARMS)
    assert again.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"treated": "raw", "control": "raw"}, "two arms"),
        ({"treated": "cleaned", "control": "raw"}, "no arm 'cleaned'; it has raw, scrubbed"),
        ({**ARMS, "alpha": 0}, "alpha"),
        ({**ARMS, "outcome": "place"}, "categorical"),
        ({**ARMS, "classes": {"A": "one"}}, "which class the group 'B' is of"),
    ],
    ids=range(5),
)
def test_options_out_of_range(options, says):
    """What cannot be contrasted is refused."""
    frame = blocks(raw=[5, 6], scrubbed=[5, 6]).assign(
        group=["A", "B"] * 30, place=["x", "y", "z"] * 20
    )
    with pytest.raises((UsageError, FrameError), match=says):
        analyze_arms(frame, cluster=None, **options)


def test_names_that_meet_several_others_are_the_unit_of_a_change() -> None:
    """With both names as the cluster, effects that names have in one arm alone do not count once a
    pair.

    30 pairs of 10 names a side, no preference of groups, an effect of each name (SD .35) in the
    control arm: pairs taken as independent alarm too often, names do not.
    """
    rng = np.random.default_rng(46)
    alarms = {"name": 0, ("first_name", "second_name"): 0}
    turn, a, arm, k = (axis.ravel() for axis in np.indices((3, 10, 2, 40)))
    b = (a + turn) % 10
    names = np.array([f"x{n}" for n in a]), np.array([f"y{n}" for n in b])
    seats = [
        np.where(k % 2 == 1, one, two) for one, two in (names, names[::-1], ("x", "y"), ("y", "x"))
    ]
    columns = dict(zip(("first_name", "second_name", "first", "second"), seats, strict=True))
    frame = pd.DataFrame(
        {
            **columns,
            "name": np.char.add(*names),
            "arm": np.where(arm, "scrubbed", "raw"),
            "repetition": k,
        }
    )
    for _ in range(30):
        of_a, of_b = rng.normal(0, 0.35, (2, 10))
        won = rng.random(k.size) < np.clip(0.5 + (of_a[a] - of_b[b]) / 2 * (arm == 0), 0.02, 0.98)
        for cluster in alarms:
            (pair,) = analyze_arms(
                frame.assign(chosen=np.where(won, "x", "y")), **ARMS, cluster=cluster, block=None
            ).pairs
            alarms[cluster] += pair.p_value < 0.05
    assert alarms["first_name", "second_name"] <= 3 < alarms["name"]


@pytest.mark.parametrize(("names", "verdict"), [(2, "INCONCLUSIVE"), (4, "FLAG")])
def test_an_alarm_without_spread_takes_names(names: int, verdict: str) -> None:
    """Names that all change by the same have no spread for t: four of them come out alike by their
    signs in one of eight audits, eight in one of 128.
    """
    rows = [
        {
            "arm": arm,
            "group": group,
            "name": f"{group}{place}",
            "template": f"t{template}",
            "score": 0.1 * place + 0.1 * template + 3 * (arm == "t" and group == "b"),
        }
        for arm in ("c", "t")
        for group in "ab"
        for place in range(names)
        for template in range(5)
    ]
    finding = analyze_arms(
        pd.DataFrame(rows), outcome="score", by="group", treated="t", control="c"
    )
    assert finding.verdict == verdict
