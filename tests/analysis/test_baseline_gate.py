"""The baseline gate: worked number, rules, and how often it is wrong."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.power import TTestPower

from pytest_fairness.analysis.baseline import compare_baseline
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import Finding, Reason, Verdict
from pytest_fairness.statistics.persona_scores import (
    PersonaScore,
    ScoreSummary,
    summarise_scores,
)
from pytest_fairness.statistics.score_gate import baseline_gate, clip, repetitions_needed

OLD = [92, 85, 78, 88, 95, 70, 81, 90, 66, 84]
NEW = [90, 80, 77, 85, 95, 66, 80, 84, 66, 79]


def summary(scores, categories=None, **rest):
    """A summary of one score a persona, p0, p1, …"""
    personas = {f"p{i}": PersonaScore(mean=float(score), n=1) for i, score in enumerate(scores)}
    labels = {
        label: tuple(f"p{i}" for i in members if f"p{i}" in personas)
        for label, members in (categories or {}).items()
    }
    overall = float(np.mean(scores)) if len(scores) else 0.0
    return ScoreSummary(
        personas=personas, categories=labels, overall=overall, trials=len(scores), **rest
    )


@pytest.mark.parametrize(
    ("drop", "verdict"),
    [
        (-5, "PASS"),
        (0, "PASS"),
        (0.999, "FLAG"),
        (1.0, "FLAG"),
        (0.7 + 0.2 + 0.1, "FLAG"),
        (1.001, "FAIL"),
    ],
)
def test_constant_drop_and_margin(drop, verdict):
    """A drop without spread is certain; it fails where it exceeds the margin, which exactly the
    margin does not. The same scores again have p = 1."""
    finding = compare_baseline(summary(OLD), summary([score - drop for score in OLD]))
    assert finding.verdict == verdict
    if not drop:
        assert (finding.pairs[0].p_value, finding.pairs[0].effect) == (1, 0)


def test_the_better_of_two_families_counts_twice_and_the_margins_are_those_of_the_scale():
    """On a scale of its own a tenth and three tenths of the SD between the approved personas."""
    old, new = (summary(np.array(scores) / 20) for scores in (OLD, NEW))
    finding = compare_baseline(old, new)
    (pair,) = finding.pairs
    families = [pair.statistics[f"{family}_corrected_p_value"] for family in ("raw", "clipped")]
    assert pair.corrected_p_value == pytest.approx(2 * min(families))
    sd = np.std(np.array(OLD) / 20, ddof=1)
    assert finding.details["margins"] == pytest.approx({"overall": 0.1 * sd, "category": 0.3 * sd})


def test_category_margin_is_wider():
    """A category that drops by 2 or by 3 is within its 3 points, by 3.5 it is not; the sentence
    names it.
    """
    old = summary([90.0] * 40, {"gender=female": range(8)})

    def after(score):
        return compare_baseline(
            old, summary([score] * 8 + [90.0] * 32, {"gender=female": range(8)})
        )

    assert [after(score).verdict for score in (88.0, 87.0)] == [Verdict.FLAG, Verdict.FLAG]
    finding = after(86.5)
    assert [pair.verdict for pair in finding.pairs] == [Verdict.FLAG, Verdict.FAIL]
    assert "gender=female 90.0 → 86.5" in finding.sentence


def test_categories_of_one_are_not_tested_but_named():
    """Two personas are a category, on the spread of all; one is not, and the finding says which was
    left out.
    """
    categories = {"age=old": range(1), "age=middle": range(1, 3), "age=young": range(3, 20)}
    finding = compare_baseline(summary([90.0] * 20, categories), summary([90.0] * 20, categories))
    assert [pair.metric for pair in finding.pairs] == ["overall", "age=middle", "age=young"]
    assert "one persona only: age=old" in finding.notes[0]
    # Raw: overall and the one category of 8 or more. Clipped: overall and both.
    assert finding.family["size"] == 5


@pytest.mark.parametrize(("members", "raw"), [(7, False), (8, True)])
def test_a_category_of_eight_is_also_tested_as_it_is(members, raw):
    """Under eight only on the spread of all."""
    rng = np.random.default_rng(4)
    categories = {"a=1": range(members), "a=2": range(members, 30)}
    pair = compare_baseline(
        summary([90.0] * 30, categories), summary(rng.normal(90, 1, 30), categories)
    ).pairs[1]
    assert (pair.statistics["raw_corrected_p_value"] is not None) is raw
    assert pair.statistics["clipped_corrected_p_value"] is not None


def test_overlap():
    """Under 80 % common personas nothing is concluded, exactly 80 % is enough; a category that lost
    its personas is not hidden by the others, nor is what is known to be worse excused by what is
    not known."""
    assert compare_baseline(summary(OLD), summary(OLD[:8])).verdict is Verdict.PASS
    categories = {"a=1": range(10)}
    old = summary([90.0] * 100, categories)
    kept = {key: score for key, score in old.personas.items() if key not in {"p0", "p1", "p2"}}
    without = ScoreSummary(personas=kept, categories=old.categories, overall=90.0, trials=97)
    few, lost = compare_baseline(summary(OLD), summary(OLD[:7])), compare_baseline(old, without)
    for finding, named in ((few, "7 of 10 personas"), (lost, "a=1")):
        assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.OVERLAP)
        assert named in finding.sentence
    assert compare_baseline(old, summary([80.0] * 97, categories)).verdict is Verdict.FAIL


@pytest.mark.parametrize("scores", [[], [90.0]])
def test_too_few_personas(scores):
    """No persona or one: INCONCLUSIVE, with finite fields throughout."""
    finding = compare_baseline(summary(scores), summary(scores))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert all(math.isfinite(pair.p_value) and math.isfinite(pair.effect) for pair in finding.pairs)
    assert (
        Finding.from_dict(json.loads(json.dumps(finding.to_dict()))).verdict is Verdict.INCONCLUSIVE
    )


@pytest.mark.parametrize(
    ("lost", "reason"),
    [({"refused": 6}, Reason.DIFFERENTIAL_REFUSAL), ({"unscored": 6}, Reason.UNSCORED)],
)
def test_over_five_percent_refused_or_without_a_score_are_no_pass(lost, reason):
    """The mean of the rest is not the score; fewer refusals than before are no harm."""
    old = ScoreSummary(personas=summary(OLD).personas, overall=80.0, trials=100)
    finding = compare_baseline(old, replace(old, **lost))
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, reason)
    if "refused" in lost:
        assert "0 % to 6 %" in finding.sentence
        assert compare_baseline(replace(old, **lost), old).verdict is Verdict.PASS


def test_higher_may_be_worse():
    """For a toxicity score a rise is the regression, and a fall is not."""
    up = [score + 5 for score in OLD]
    assert compare_baseline(summary(OLD), summary(up), lower_is_worse=False).verdict is Verdict.FAIL
    assert compare_baseline(summary(up), summary(OLD), lower_is_worse=False).verdict is Verdict.PASS
    mirrored = compare_baseline(
        summary([-x for x in OLD]), summary([-x for x in NEW]), lower_is_worse=False
    ).pairs[0]
    assert round(mirrored.statistics["bound_99"], 6) == 0.724993


@pytest.mark.parametrize(("lost", "verdict"), [(10, Verdict.FLAG), (11, Verdict.FAIL)])
def test_passes_fail_beyond_two_percentage_points(lost, verdict):
    """Ten of 500 are exactly the margin, and significant."""
    old = summary([1.0] * 250 + [0.0] * 250, scale="yes_no")
    new = summary([0.0] * lost + [1.0] * (250 - lost) + [0.0] * 250, scale="yes_no")
    assert {pair.metric: pair.verdict for pair in compare_baseline(old, new).pairs} == {
        "overall": verdict,
        "passes": verdict,
    }


def test_repetitions_needed():
    """The R that it reports is the smallest with which a paired t finds a drop of the margin in 80
    % of runs.
    """
    k, sd, margin, alpha = 30, 6.0, 2.0, 0.0025
    personas = {f"p{i}": PersonaScore(mean=90.0, n=300, sd=sd, df=299) for i in range(k)}
    run = ScoreSummary(personas=personas, overall=90.0, repetitions=300, run_sd=sd)
    needed = repetitions_needed(run, run, list(personas), margin=margin, alpha=alpha)
    power = [
        TTestPower().power(margin / (sd * math.sqrt(2 / r)), k, alpha, alternative="larger")
        for r in (needed - 1, needed)
    ]
    assert power[0] < 0.8 <= power[1]


def test_no_repetitions_would_do():
    """Where personas themselves moved by much, more repetitions do not help, and the pair says so."""
    rng = np.random.default_rng(2)

    def run(spread):
        personas = {
            f"p{i}": PersonaScore(mean=90 + rng.normal(0, spread), n=5, sd=0.1, df=4)
            for i in range(10)
        }
        return ScoreSummary(personas=personas, overall=90, repetitions=5, run_sd=0.1)

    pair = compare_baseline(run(1), run(20)).pairs[0]
    assert pair.statistics["repetitions_needed"] is None
    assert "more personas" in pair.needs


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"alpha": 0}, "probability"),
        ({"alpha": 1}, "probability"),
        ({"margin_overall": -1}, "0 or more"),
        ({"margin_overall": 1}, "no drop could reach it"),
        ({"margin_category": 1.5}, "no drop could reach it"),
    ],
)
def test_options_out_of_range(options, says):
    """An alpha or a margin that means nothing is refused, not clipped; shares fall by one at most."""
    run = summary([1.0, 0.0] * 10, scale="yes_no")
    with pytest.raises(UsageError, match=says):
        compare_baseline(run, run, **options)


def trials():
    """A frame of trials, one row a persona, template and repetition."""
    rows = [
        (f"p{i}", t, r, "f" if i % 2 else "m", 80.0 + i)
        for i in range(12)
        for t in ("a", "b")
        for r in range(3)
    ]
    return pd.DataFrame(rows, columns=["persona", "template", "repetition", "gender", "score"])


def test_summary_of_a_frame():
    """Means a persona, noise within a template only, categories; in any order of rows, and back
    from JSON unchanged.
    """
    frame = trials()
    rng = np.random.default_rng(3)
    scores = (
        frame["score"]
        + np.where(frame["template"] == "a", 10.0, 0.0)
        + rng.normal(0, 2, len(frame))
    )
    found = summarise_scores(frame, scores, categories=["gender"])
    by_hand = scores.groupby(frame["persona"]).mean()
    assert found.personas["p7"].mean == pytest.approx(by_hand["p7"])
    assert found.personas["p7"].n == 6
    assert found.repetitions == 3
    residual = scores - scores.groupby([frame["persona"], frame["template"]]).transform("mean")
    assert found.run_sd == pytest.approx(math.sqrt((residual**2).sum() / (12 * 2 * 2)))
    assert found.categories["gender=f"] == ("p1", "p11", "p3", "p5", "p7", "p9")
    assert ScoreSummary.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    again = summarise_scores(frame[::-1], scores[::-1], categories=["gender"])
    assert again.categories == found.categories
    assert again.personas["p7"].mean == pytest.approx(by_hand["p7"])


def test_summary_counts_refused_and_unscored():
    """A refused trial has no score whatever is given for it; without personas the name is the unit."""
    frame = pd.DataFrame(
        {"persona": None, "name": ["Ann", "Ann", "Bob", "Bob"], "repetition": [0, 1, 0, 1]}
    )
    found = summarise_scores(
        frame.assign(refused=[True, False, False, False]), [0.0, 80.0, None, 70.0]
    )
    assert found.personas["Ann"] == PersonaScore(mean=80.0, n=1)
    assert (set(found.personas), found.trials, found.refused, found.unscored) == (
        {"Ann", "Bob"},
        4,
        1,
        1,
    )
    assert found.run_sd is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: (f.drop(columns="persona"), f["score"], {}), "no column 'persona'"),
        (lambda f: (f, f["score"], {"categories": ["age"]}), "no column 'age'"),
        (
            lambda f: (f, f["score"].astype(object).where(f.index != 4, "high"), {}),
            "row 4: the score is 'high'",
        ),
        (lambda f: (f, f["score"].where(f.index != 2, np.inf), {}), "row 2"),
        (
            lambda f: (f.assign(persona=f["persona"].where(f.index != 3)), f["score"], {}),
            "column 'persona', row 3: the persona is missing",
        ),
        (lambda f: (f.assign(repetition=0), f["score"], {}), "row 1 repeats"),
        (lambda f: (f, f["score"].tolist()[:-1], {}), "scores for"),
        (lambda f: (f, f["score"].iloc[::-1], {}), "another index"),
        (
            lambda f: (
                f.assign(gender=["f", *["m"] * (len(f) - 1)]),
                f["score"],
                {"categories": ["gender"]},
            ),
            "row 1: persona 'p0' has 'gender'",
        ),
    ],
)
def test_malformed_frames_name_the_place(change, says):
    """What is wrong with a table is said with its column and row."""
    frame, scores, options = change(trials())
    with pytest.raises(FrameError, match=says):
        summarise_scores(frame, scores, **options)


@pytest.mark.parametrize("mean", [None, "Infinity", float("nan")])
def test_a_stored_score_must_be_finite(mean):
    """A snapshot edited by hand into nonsense is refused when it is read."""
    data = summary(OLD).to_dict()
    data["personas"]["p3"]["mean"] = mean
    with pytest.raises((ValueError, TypeError)):
        ScoreSummary.from_dict(data)


def gate_of(changes, categories=None, **noise):
    """The gate on personas that moved by *changes* from 50."""
    old, new = (
        summary([50.0] * len(changes), categories),
        summary([50.0 + x for x in changes], categories),
    )
    if noise:
        old, new = (
            replace(run, personas={key: replace(one, **noise) for key, one in run.personas.items()})
            for run in (old, new)
        )
    return baseline_gate(old, new, alpha=0.005, margin_overall=1, margin_category=3).scopes


def test_either_family_finds_what_the_other_misses():
    """One wild reply hides a fall of everyone from the changes as they are; a sixth that falls is
    clipped away.
    """
    hidden = gate_of([1000.0, *np.linspace(-6, -4, 40)])[0]
    assert hidden.p.raw > 0.0025 > hidden.p.clipped
    clipped = gate_of([*([-10.0] * 10), *np.linspace(-0.2, 0.2, 50)])[0]
    assert clipped.p.raw < 0.0025
    assert clipped.clipped > -1
    assert (hidden.regression, clipped.regression) == (True, True)


def test_a_category_is_not_surer_than_its_own_repetitions():
    """Four personas that fell by exactly 5 each; where a persona's mean varies by as much anyway,
    that is chance.
    """
    changes, categories = [-5.0] * 4 + [0.0] * 4, {"g=a": range(4), "g=b": range(4, 8)}
    sure, noisy = (gate_of(changes, categories, n=3, sd=sd, df=2)[1] for sd in (0.0, 15.0))
    assert (sure.label, sure.p.clipped, sure.regression) == ("g=a", 0.0, True)
    assert noisy.p.clipped > 0.0025
    assert not noisy.regression


def test_nothing_is_clipped_where_most_changes_are_alike():
    """A MAD of 0 says nothing about what is far."""
    assert clip(np.array([0.0, 0.0, 0.0, -10.0])).tolist() == [0.0, 0.0, 0.0, -10.0]


def wild(*changes: float, spread: float = 5.0) -> Finding:
    """Ten personas with so many wild changes, and thirty that held."""
    rest = spread * np.resize([-1.0, 1.0, 0.6, -0.6, 0.2, -0.2], 40 - len(changes))
    categories = {"g=a": range(10), "g=b": range(10, 40)}
    return compare_baseline(
        summary([50.0] * 40, categories), summary([50.0 + x for x in (*changes, *rest)], categories)
    )


def test_a_category_that_holds_the_wild_falls_is_not_passed():
    """Two of ten fell by 500 points, and nobody elsewhere: more than others' tails make likely."""
    finding = wild(-500.0, -450.0)
    verdicts = {pair.metric: (pair.verdict, pair.reason) for pair in finding.pairs}
    assert verdicts["g=a"] == (Verdict.INCONCLUSIVE, Reason.PRECISION)
    assert verdicts["g=b"] == (Verdict.PASS, None)
    assert "p0" in finding.sentence
    assert "p1" in finding.sentence


@pytest.mark.parametrize(
    "changes", [(-500.0,), (500.0,), (500.0, 500.0), (-500.0, 450.0), (-500.0, -500.0, 500.0)]
)
def test_a_wild_change_that_tails_explain_is_named(changes):
    """One fall among ten, a rise, or falls that rises make up for: PASS, and every one of them
    named.
    """
    finding = wild(*changes)
    assert {pair.verdict for pair in finding.pairs} == {Verdict.PASS}
    assert set(finding.details["clipped"]) == {f"p{at}" for at in range(len(changes))}
    assert any("changes far from all others" in note and "p0" in note for note in finding.notes)


def test_wild_changes_within_the_margin_count_for_nothing():
    """Far from the others by their own spread, and yet of no consequence."""
    finding = wild(-2.9, -2.9, spread=0.3)
    assert set(finding.details["clipped"]) == {"p0", "p1"}
    assert {pair.verdict for pair in finding.pairs if pair.metric == "g=a"} == {Verdict.PASS}


def test_wild_falls_everywhere_are_nobodys_alone():
    """Two of ten, and six of thirty: the others' share makes two likely."""
    rest = np.resize([-5.0, 5.0, 3.0, -3.0, 1.0, -1.0], 38)
    rest[8:14] = -500.0
    categories = {"g=a": range(10), "g=b": range(10, 40)}
    finding = compare_baseline(
        summary([50.0] * 40, categories),
        summary([50.0 + x for x in (-500.0, -450.0, *rest)], categories),
        alpha=1e-9,
    )
    assert not [pair.metric for pair in finding.pairs if pair.verdict is Verdict.INCONCLUSIVE]


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [("critical: age", Verdict.FAIL), ("minor: tone", Verdict.FLAG), ("known", Verdict.PASS)],
)
def test_warnings_that_the_baseline_lacks_belong_to_the_gate(kind, verdict):
    """Critical ones fail, others need a justification; those that were there before are no news."""
    old, new = summary(OLD, warnings={"known": 3}), summary(OLD, warnings={"known": 9, kind: 1})
    assert compare_baseline(old, new).verdict is verdict
