"""What counts as evidence of a difference: rows, names and δ together, never one against another."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pytest_fairness import Verdict, analyze_disparity, analyze_equivalence, analyze_four_fifths
from pytest_fairness.analysis.disparity import _check_intervals
from pytest_fairness.model import PairResult, Reason
from tests.statistics.frames_of import names, scores


def uneven(rng: np.random.Generator, *, busy: float, others: float, b: float = 0.0) -> pd.DataFrame:
    """Group a: one name of 500 rows about *busy*, 19 of 10 rows about *others*; group b: 20 names
    of 10 rows.
    """
    people = {"a": {"a busy": [list(rng.normal(busy, 1, 500))]}, "b": {}}
    people["a"] |= {f"a {at}": [list(rng.normal(others, 1, 10))] for at in range(19)}
    people["b"] = {f"b {at}": [list(rng.normal(b, 1, 10))] for at in range(20)}
    return names(people)


# ---------------------------------------------------------------- rows against names


def test_rows_and_names_that_contradict_each_other_are_no_evidence():
    """One name with many low rows, nineteen with few high ones: rows say lower, names say higher."""
    finding = analyze_disparity(
        uneven(np.random.default_rng(1), busy=-1.0, others=0.6), "outcome", "group"
    )
    (pair,) = finding.pairs
    assert pair.statistics["z"] < -5
    assert pair.statistics["t"] > 3
    assert max(pair.p_row, pair.p_cluster) < 0.01
    assert (pair.p_value, pair.corrected_p_value) == (1, 1)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert any("contradict each other" in note for note in pair.notes)
    assert any("contradict each other" in note and "a and b" in note for note in finding.notes)


def test_rows_and_names_that_contradict_each_other_within_chance_need_no_remark():
    """The pair says why its p is 1; the finding is not about that."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        finding = analyze_disparity(uneven(rng, busy=0.02, others=-0.02), "outcome", "group")
        (pair,) = finding.pairs
        if (
            any("contradict each other" in note for note in pair.notes)
            and min(pair.p_row, pair.p_cluster) >= 0.05
        ):
            assert not any("contradict each other" in note for note in finding.notes)
            break
    else:
        pytest.fail("no such audit was drawn")


def test_no_direction_is_claimed_where_the_means_of_rows_and_names_disagree():
    finding = analyze_disparity(
        uneven(np.random.default_rng(1), busy=-1.0, others=0.6), "outcome", "group"
    )
    assert finding.pairs[0].worse_off is None
    assert "worse off" not in finding.sentence
    plain = analyze_disparity(
        uneven(np.random.default_rng(1), busy=-1.0, others=-0.6), "outcome", "group"
    )
    assert plain.pairs[0].worse_off == "a"


def test_a_template_by_itself_raises_no_alarm_where_its_rows_and_names_contradict_each_other():
    rng = np.random.default_rng(1)
    frame = uneven(rng, busy=-1.0, others=0.6)
    rest = names({g: {f"{g} {n}": [list(rng.normal(0, 1, 20))] for n in range(20)} for g in "ab"})
    both = pd.concat([frame, rest.assign(template="t1")], ignore_index=True)
    blocks = analyze_disparity(both, "outcome", "group").details["by_block"]
    assert {one["block"]: one["p_value"] for one in blocks}["t0"] == 1


# ---------------------------------------------------------------- δ by itself


def test_unlike_spread_is_no_difference():
    """Aligned ranks take a tenfold spread of few names for a difference; δ over its own error does
    not.
    """
    rng, p, of_names = np.random.default_rng(4), [], []
    for _ in range(60):
        people = {"a": {f"a {n}": [list(rng.normal(0, 3, 10))] for n in range(6)}}
        people["b"] = {f"b {n}": [list(rng.normal(0, 0.3, 10))] for n in range(20)}
        (pair,) = analyze_disparity(names(people), "outcome", "group").pairs
        p.append(pair.p_value)
        of_names.append(max(pair.p_row, pair.p_cluster))
        assert pair.p_value == max(pair.p_row, pair.p_cluster, pair.statistics["p_delta"])
    assert any(one > other for one, other in zip(p, of_names, strict=True))


@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_strongest_differences_fail_with_an_interval_that_leaves_0_out(d):
    """Near δ = ±1 the error of d of δ is as large as d: δ is tested, and bounded there, on its own
    scale.
    """
    rng = np.random.default_rng(d)
    for _ in range(20):
        people = {
            g: {f"{g} {n}": [list(rng.normal(at, 1, 5))] for n in range(10)}
            for g, at in (("a", 0), ("b", d))
        }
        (pair,) = analyze_disparity(names(people), "outcome", "group").pairs
        assert pair.verdict is Verdict.FAIL
        assert (
            pair.effect_high is None or pair.effect_high < 0
        )  # None: the groups do not overlap at all
        assert pair.statistics["d_from_cliffs_delta_high"] < 0


def test_a_fail_that_contradicts_itself_is_an_error():
    fields = {"group_1": "a", "group_2": "b", "metric": "y", "verdict": Verdict.FAIL, "effect": 0.9}
    sound = PairResult(**fields, effect_low=0.1, effect_high=1.7)
    _check_intervals([sound])
    with pytest.raises(AssertionError, match="the interval of a FAIL holds 0: a and b on y"):
        _check_intervals([PairResult(**fields, effect_low=-0.1, effect_high=1.9)])


# ---------------------------------------------------------------- one name a group


def one_name(count_a: int = 1, count_b: int = 1, shift: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    people = {
        "x": {
            name: [list(rng.normal(0, 1, 400))] for name in ("Al", "Ann", "Abe", "Ada")[:count_a]
        },
        "y": {
            name: [list(rng.normal(shift, 1, 400))]
            for name in ("Bo", "Bea", "Ben", "Bob")[:count_b]
        },
    }
    return names(people)


def test_one_name_a_group_is_about_that_name():
    """Neither PASS nor FAIL: nothing tells Al from his group."""
    alike = analyze_disparity(one_name(), "outcome", "group")
    assert (alike.verdict, alike.reason) == (Verdict.INCONCLUSIVE, Reason.N)
    assert "about Al and Bo, not about their groups" in alike.pairs[0].notes
    assert "about Al and Bo, not about their groups" in alike.sentence
    apart = analyze_disparity(one_name(shift=3.0), "outcome", "group")
    assert apart.verdict is Verdict.FLAG
    several = analyze_disparity(one_name(count_b=4), "outcome", "group")
    assert several.reason is Reason.N
    assert "about Al, not about the group" in several.pairs[0].notes
    assert analyze_disparity(one_name(4, 4), "outcome", "group").reason is not Reason.N


def test_a_bare_label_is_what_the_result_is_about():
    """A design without names conveys the group by its label, and a result about labels may pass."""
    frame = one_name()
    assert analyze_disparity(frame.assign(name=None), "outcome", "group").verdict is Verdict.PASS
    assert analyze_disparity(frame, "outcome", "group", cluster="group").verdict is Verdict.PASS


def test_one_name_a_group_passes_no_other_comparison():
    frame = one_name()
    equal = analyze_equivalence(frame, "outcome", "group", margin=0.5)
    assert (equal.verdict, equal.reason) == (Verdict.INCONCLUSIVE, Reason.N)
    decided = analyze_four_fifths(frame.assign(outcome=frame["outcome"] > -1), "outcome", "group")
    assert (decided.verdict, decided.reason) == (Verdict.INCONCLUSIVE, Reason.N)
    assert "about Al and Bo" in decided.sentence
    constant = analyze_disparity(frame.assign(outcome=1.0), "outcome", "group", kind="numeric")
    assert (constant.verdict, constant.reason) == (Verdict.INCONCLUSIVE, Reason.N)


# ---------------------------------------------------------------- unlike spread


def test_unlike_spread_is_a_note_on_a_pass():
    """Brown and Forsythe's test on the means of the names, as scipy has it."""
    rng = np.random.default_rng(8)
    level = {group: rng.normal(0, sd, 30) for group, sd in (("a", 0.01), ("b", 0.3), ("c", 0.01))}
    people = {
        group: {
            f"{group} {n}": [list(x + rng.normal(0, 1, 60))]
            for n, x in enumerate(own - np.mean(own))
        }
        for group, own in level.items()
    }
    frame = names(people)
    finding = analyze_disparity(frame, "outcome", "group")
    means = {group: own.groupby("name")["outcome"].mean() for group, own in frame.groupby("group")}
    for pair in finding.pairs:
        expected = stats.levene(means[pair.group_1], means[pair.group_2], center="median").pvalue
        assert pair.statistics["spread_p_value"] == pytest.approx(expected, rel=1e-9)
        assert pair.statistics["spread_1"] == pytest.approx(means[pair.group_1].std(), rel=1e-9)
    assert finding.verdict is Verdict.PASS
    noted = [note for note in finding.notes if "spreads more than" in note]
    assert sorted(note.split(" on ")[0] for note in noted) == [
        "b spreads more than a",
        "b spreads more than c",
    ]


def test_rows_of_their_own_are_spread_as_scipy_has_it():
    rng = np.random.default_rng(9)
    a, b = rng.normal(0, 1, 80).round(1), rng.normal(0, 3, 71).round(1)
    (pair,) = analyze_disparity(scores(a=a, b=b), "outcome", "group", cluster=None).pairs
    assert pair.statistics["spread_p_value"] == pytest.approx(
        stats.levene(a, b, center="median").pvalue, rel=1e-9
    )
    stars = [list(rng.integers(1, 6, 60)), list(rng.integers(2, 5, 61))]
    (pair,) = analyze_disparity(
        scores(a=stars[0], b=stars[1]), "outcome", "group", cluster=None
    ).pairs
    assert pair.statistics["spread_p_value"] == pytest.approx(
        stats.levene(*stars, center="median").pvalue, rel=1e-9
    )
    assert not any("spreads" in note for note in analyze_disparity(
        scores(a=a, b=a[::-1]), "outcome", "group", cluster=None).notes)  # fmt: skip
