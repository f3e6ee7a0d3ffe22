"""Equivalence within a margin: worked numbers, R, scipy's interval, the policy and its edges."""

import json
import math
import re
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_fairness.analysis.equivalence import analyze_equivalence
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import Finding, Reason, Verdict

R = json.loads((Path(__file__).parents[1] / "data" / "r_reference.json").read_text())


def two(x, y):
    """One row a trial of two groups, A (x) and B (y)."""
    return pd.DataFrame({"y": [*x, *y], "group": ["A"] * len(x) + ["B"] * len(y)})


def design(rng, groups=("A", "B"), names=20, templates=5, repetitions=2, shift=0.0, name_sd=0.2):
    """The default design, every name in every template; the last group lower by *shift*."""
    level = {
        (g, n): rng.normal(0, name_sd) - shift * (g == groups[-1])
        for g in groups
        for n in range(names)
    }
    rows = [
        (g, f"{g}{n}", t, r, level[g, n] + t)
        for g, n in level
        for t in range(templates)
        for r in range(repetitions)
    ]
    frame = pd.DataFrame(rows, columns=["group", "name", "template", "repetition", "y"])
    return frame.assign(y=frame["y"] + rng.normal(size=len(frame)))


def analyse(frame, margin, **options):
    return analyze_equivalence(frame, "y", "group", margin=margin, kind="numeric", **options)


def r_cases():
    """R's Student TOST for equally large groups, its Welch TOST for unequal ones of at least five,
    where it has one.
    """
    for case, margin in product(R["two_sample"], (0.5, 5)):
        sizes = len(case["x"]), len(case["y"])
        test = "tost_student_margin" if sizes[0] == sizes[1] else "tost_margin"
        theirs = case.get(f"{test}_{margin}") or {}
        if "p_tost" in theirs and min(sizes) >= 5:
            yield pytest.param(case, margin, theirs, id=f"{case['id']}-{margin}")


@pytest.mark.parametrize(("case", "margin", "theirs"), list(r_cases()))
def test_agrees_with_r(case, margin, theirs):
    """p, df and the 90 % interval of R's two one-sided tests."""
    finding = analyse(two(case["x"], case["y"]), margin, cluster=None)
    pair = finding.pairs[0]
    assert pair.p_value == pytest.approx(theirs["p_tost"], rel=1e-9)
    t, df = re.fullmatch(r"TOST t = (\S+), df = (\S+)", finding.test_statistic).groups()
    assert stats.t.sf(float(t), float(df)) == pytest.approx(pair.p_value, rel=5e-3, abs=1e-12)
    assert pair.statistics["df"] == pytest.approx(theirs["df"], rel=1e-9)
    assert [pair.statistics["interval_low"], pair.statistics["interval_high"]] == pytest.approx(
        theirs["ci90"]
    )


def test_cluster_means_are_tested():
    """With names the test is ttost_ind on the names' means (statsmodels as the second opinion)."""
    from statsmodels.stats.weightstats import ttost_ind

    frame = design(np.random.default_rng(1), shift=0.1)
    pair = analyse(frame, 0.5).pairs[0]
    means = frame.groupby(["group", "name"])["y"].mean()
    p, *_ = ttost_ind(means["A"], means["B"], -0.5, 0.5)
    assert pair.p_value == pytest.approx(p, rel=1e-9)
    assert pair.difference == pytest.approx(means["A"].mean() - means["B"].mean())
    assert (pair.statistics["clusters_1"], pair.statistics["df"]) == (20, 38)


def test_the_same_personas_are_paired():
    """Where personas stand in both groups their differences are tested."""
    rng = np.random.default_rng(2)
    levels = rng.normal(0, 3, 40)
    rows = [
        (g, f"p{i}", level + rng.normal(0, 0.3)) for g in "AB" for i, level in enumerate(levels)
    ]
    frame = pd.DataFrame(rows, columns=["group", "name", "y"])
    pair = analyse(frame, 0.3).pairs[0]
    wide = frame.pivot_table(index="name", columns="group", values="y")
    gap = wide["A"] - wide["B"]
    error = gap.std(ddof=1) / math.sqrt(40)
    expected = max(
        stats.t.sf((gap.mean() + 0.3) / error, 39), stats.t.sf((0.3 - gap.mean()) / error, 39)
    )
    assert pair.p_value == pytest.approx(expected, rel=1e-9)


def test_margin_in_standard_deviations():
    """A margin on d is that many SDs within group and template, with the small-sample factor of
    Hedges g.
    """
    frame = design(np.random.default_rng(3))
    pair = analyse(frame, 0.5, unit="d").pairs[0]
    within = frame["y"] - frame.groupby(["group", "template"])["y"].transform("mean")
    df = len(frame) - 10
    d_unit = math.sqrt((within**2).sum() / df) / (1 - 3 / (4 * df - 1))
    assert pair.statistics["margin"] == pytest.approx(0.5 * d_unit, rel=1e-9)
    inside = pair.effect_low > -0.5 and pair.effect_high < 0.5
    assert (pair.p_value < 0.05) == inside


def test_verdicts():
    """Alike: PASS. Far apart: FAIL. Apart, perhaps beyond the margin: FLAG. Too few to tell:
    INCONCLUSIVE. All pairs have to show it, without any correction of the p-values of
    equivalence."""
    rng = np.random.default_rng(4)
    assert analyse(design(rng), 0.5).verdict is Verdict.PASS
    assert analyse(design(rng, shift=1.5), 0.5).verdict is Verdict.FAIL
    assert analyse(design(rng, shift=0.45), 0.5).verdict is Verdict.FLAG
    unsure = analyse(design(np.random.default_rng(1), names=4, name_sd=0.6), 0.3)
    assert (unsure.verdict, unsure.reason) == (Verdict.INCONCLUSIVE, Reason.PRECISION)
    assert "names a group" in unsure.pairs[0].needs
    three = analyse(design(np.random.default_rng(6), groups=("A", "B", "C"), shift=1.5), 0.5)
    assert [pair.verdict for pair in three.pairs] == [Verdict.PASS, Verdict.FAIL, Verdict.FAIL]
    assert three.verdict is Verdict.FAIL
    assert three.pairs[0].p_value == three.pairs[0].corrected_p_value


def test_a_trifle_that_is_significant_passes():
    """Significantly different, and surely by less than the margin: that is equivalence."""
    rng = np.random.default_rng(5)
    pair = analyse(design(rng, names=150, repetitions=4, shift=0.15, name_sd=0.05), 0.5).pairs[0]
    assert (pair.verdict, pair.statistics["difference_p_value"] < 0.01) == (Verdict.PASS, True)


@pytest.mark.parametrize(
    ("apart", "verdict", "p"),
    [
        (0, Verdict.PASS, 0),
        (0.4, Verdict.PASS, 0),
        (0.5, Verdict.INCONCLUSIVE, 1),
        (2, Verdict.FAIL, 1),
    ],
    ids=["equal", "inside", "on the margin", "beyond"],
)
def test_zero_variance(apart, verdict, p):
    """Without variance the difference is what it is: inside the margin or not; on it is not inside."""
    finding = analyse(two([5] * 40, [5 + apart] * 40), 0.5, cluster=None)
    assert finding.pairs[0].p_value == p
    assert finding.verdict in ({verdict} if apart != 0.5 else set(Verdict) - {Verdict.PASS})


def test_few_trials_and_single_names():
    """Equivalence shown on 8 trials a group is not believed; a single name is compared on rows, its
    FAIL capped.
    """
    few = analyse(two([5.0, 5.1] * 4, [5.0, 5.1] * 4), 1.0, cluster=None)
    assert (few.verdict, few.reason) == (Verdict.INCONCLUSIVE, Reason.N)
    assert "at least 30 cases a group (A has 8)" in few.sentence
    rng = np.random.default_rng(7)
    frame = two(rng.normal(0, 1, 60), rng.normal(3, 1, 60))
    pair = analyse(frame.assign(name=frame["group"]), 0.5).pairs[0]
    assert (pair.scope, pair.verdict, pair.p_cluster) == ("labels", Verdict.FLAG, None)


def test_yes_no_outcomes_have_a_margin_of_rates():
    """For a decision the margin is a difference of rates."""
    rng = np.random.default_rng(8)
    frame = two(rng.random(3000) < 0.5, rng.random(3000) < 0.5)
    finding = analyze_equivalence(frame, "y", "group", margin=0.05, cluster=None)
    assert finding.verdict is Verdict.PASS
    assert "±5.0 %" in finding.sentence


def test_refusals_unsettle_a_pass():
    """Equal scores of those who got an answer, while one group is refused more often: not
    equivalent.
    """
    frame = design(np.random.default_rng(9))
    refused = (frame["group"] == "A") & (frame["repetition"] == 0) & (frame["template"] == 0)
    finding = analyse(frame.assign(refused=refused), 0.5)
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.DIFFERENTIAL_REFUSAL)


def test_missing_outcomes():
    """Unscored trials, an empty group, and groups that were never asked the same thing."""
    frame = design(np.random.default_rng(10))
    lost = analyse(frame.assign(y=frame["y"].where(frame.index % 8 != 0)), 0.5)
    assert lost.reason is Reason.UNSCORED
    empty = analyse(frame.assign(y=frame["y"].where(frame["group"] == "A")), 0.5)
    assert (empty.verdict, empty.pairs[0].reason) == (Verdict.FAIL, Reason.UNSCORED)
    assert "B is left without an outcome in 100.0 % of trials" in empty.sentence
    apart = analyse(frame.assign(template=frame["group"]).drop(columns="repetition"), 0.5)
    assert apart.reason is Reason.RAGGED
    for finding in (lost, empty, apart):
        Finding.from_dict(json.loads(json.dumps(finding.to_dict())))


@pytest.mark.parametrize(
    ("options", "y", "says"),
    [
        ({"margin": 0}, [3, 4], "above 0"),
        ({"margin": math.inf}, [3, 4], "above 0"),
        ({"margin": 1, "unit": "sd"}, [3, 4], "'outcome'"),
        ({"margin": 1, "alpha": 0.6}, [3, 4], "alpha"),
        ({"margin": 1}, ["a", "c"], "categorical"),
        ({"margin": 1}, [], "one group only"),
    ],
    ids=range(6),
)
def test_what_cannot_be_tested_is_refused(options, y, says):
    """A margin, unit or level that means nothing; labels, which have no margin; one group."""
    with pytest.raises((UsageError, FrameError), match=says):
        analyze_equivalence(
            two(["a", "b"] if "a" in y else [1, 2], y), "y", "group", cluster=None, **options
        )


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.floats(-50, 50).map(lambda v: round(v, 1)), min_size=1, max_size=40),
    st.lists(st.floats(-50, 50).map(lambda v: round(v, 1)), min_size=1, max_size=40),
    st.floats(0.1, 20),
)
def test_properties(x, y, margin):
    """Swapping the groups mirrors the difference and nothing else; a wider margin never has a
    larger p; p < .05 iff the 90 % interval lies inside the margin.
    """
    one = analyse(two(x, y), margin, cluster=None).pairs[0]
    other = analyse(two(y, x), margin, cluster=None).pairs[0]
    wider = analyse(two(x, y), 2 * margin, cluster=None).pairs[0]
    assert other.verdict is one.verdict
    assert other.p_value == pytest.approx(one.p_value, abs=1e-9)
    assert (other.difference or 0) == pytest.approx(-(one.difference or 0), abs=1e-9)
    assert wider.p_value <= one.p_value + 1e-12
    if "interval_low" in one.statistics:
        inside = (
            -margin < one.statistics["interval_low"] and one.statistics["interval_high"] < margin
        )
        close = (
            min(
                abs(margin + one.statistics["interval_low"]),
                abs(margin - one.statistics["interval_high"]),
            )
            < 1e-6
        )
        assert close or (one.p_value < 0.05) == inside
