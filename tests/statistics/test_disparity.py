"""analyze_disparity as a user meets it: kinds, families, several classes, refusals, the audit
study.
"""

import json

import numpy as np
import pandas as pd
import pytest

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import Finding, OutcomeKind, Verdict
from pytest_fairness.running_test import TestContext, running_test

from .frames_of import scores


def audit(
    seed=0,
    people=20,
    templates=5,
    repetitions=2,
    shift=0.0,
    sd=0.2,
    groups=("asian", "black", "white"),
):
    """A full design: every name in every template, names differing by *sd*, black names lower by
    *shift*.
    """
    rng = np.random.default_rng(seed)
    g, n, t, r = (x.ravel() for x in np.indices((len(groups), people, templates, repetitions)))
    level = rng.normal(0, sd, (len(groups), people))
    score = (
        level[g, n] + 0.4 * t + rng.normal(size=g.size) - shift * (np.array(groups)[g] == "black")
    )
    return pd.DataFrame({
        "race": np.array(groups)[g],
        "name": [f"{groups[a]} {b}" for a, b in zip(g, n, strict=True)],
        "gender": np.where(n % 2, "woman", "man"),
        "template": [f"t{x}" for x in t],
        "repetition": r,
        "score": score,
    })  # fmt: skip


def test_a_planted_difference_is_found_and_stated():
    """The sentence names who is worse off, on what, by how much in its own unit, and how sure that
    is.
    """
    finding = analyze_disparity(audit(shift=1.0), "score", "race")
    assert finding.verdict is Verdict.FAIL
    worst = [p for p in finding.pairs if p.verdict is Verdict.FAIL]
    assert {p.worse_off for p in worst} == {"black"}
    assert finding.sentence.startswith("FAIL: black is worse off than ")
    for part in (
        " on score: ",
        " lower (d = ",
        "90 % interval",
        "corrected p < .001",
        "from 20 names a group",
    ):
        assert part in finding.sentence
    assert finding.test_statistic.startswith("van Elteren z = ")
    assert finding.effect_size.startswith(
        "d from Cliff's δ = −1.0"
    )  # the larger of that and Hedges g
    assert finding.family == {
        "size": 3,
        "method": "bonferroni",
        "alpha": 0.05,
        "metrics": ["score"],
    }


def test_no_difference_passes_where_the_interval_is_narrow():
    """And the finding survives its JSON unharmed."""
    finding = analyze_disparity(audit(seed=3, people=30), "score", "race")
    assert finding.verdict is Verdict.PASS
    assert finding.spec_verdict is Verdict.PASS
    assert finding.sentence.startswith(
        "PASS: no difference larger than small on score among 3 pairs of groups of race"
    )
    again = Finding.from_dict(json.loads(json.dumps(finding.to_dict(), allow_nan=False)))
    assert again == finding


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False] * 20, OutcomeKind.BINARY),
        ([0, 1] * 20, OutcomeKind.BINARY),
        ([0.0, 1.0] * 20, OutcomeKind.BINARY),
        ([1, 2, 3, 4, 5] * 8, OutcomeKind.ORDINAL),
        ([1.0, 2.0, 3.0, 4.0] * 10, OutcomeKind.ORDINAL),
        (list(range(40)), OutcomeKind.NUMERIC),
        ([0.5, 1.5] * 20, OutcomeKind.NUMERIC),
        (["yes", "no"] * 20, OutcomeKind.BINARY),
        (["red", "blue"] * 20, OutcomeKind.BINARY),
        (["red", "blue", "green", "red"] * 10, OutcomeKind.CATEGORICAL),
    ],
)
def test_the_kind_is_inferred_and_stated(values, kind):
    """What ``auto`` took the outcome to be stands in the finding."""
    frame = pd.DataFrame({"group": ["a"] * 20 + ["b"] * 20, "outcome": values})
    finding = analyze_disparity(frame, "outcome", "group", cluster=None)
    assert finding.kind is kind
    assert finding.details["kind_inferred"] is True
    assert any(f"taken to be {kind.value}" in note for note in finding.notes)


def test_a_given_kind_is_not_inferred():
    finding = analyze_disparity(
        scores(a=[1, 2] * 20, b=[2, 1] * 20), "outcome", "group", cluster=None, kind="numeric"
    )
    assert (finding.kind, finding.details["kind_inferred"]) == (OutcomeKind.NUMERIC, False)


def test_several_classes_are_one_family_with_their_intersections():
    """Race (3 pairs), gender (1) and race × gender (15) are corrected together."""
    finding = analyze_disparity(audit(shift=1.0), "score", ["race", "gender"])
    assert finding.family["size"] == 19
    by = [pair.statistics["by"] for pair in finding.pairs]
    assert [by.count(name) for name in ("race", "gender", "race × gender")] == [3, 1, 15]
    assert finding.protected_class == "race, gender"
    assert "black × woman" in finding.n_per_group
    pair = finding.pairs[0]
    assert pair.corrected_p_value == pytest.approx(min(1.0, 19 * pair.p_value))


def test_a_harm_that_only_an_intersection_shows():
    """Black women only are scored lower: the pairs of race × gender say so."""
    frame = audit(people=40)
    hit = (frame.race == "black") & (frame.gender == "woman")
    frame.loc[hit, "score"] -= 1.2
    finding = analyze_disparity(frame, "score", ["race", "gender"])
    fails = [
        p
        for p in finding.pairs
        if p.verdict is Verdict.FAIL and p.statistics["by"] == "race × gender"
    ]
    assert fails
    assert {p.worse_off for p in fails} == {"black × woman"}


def test_the_direction_of_harm_can_be_turned():
    """A higher risk score is the worse one, if the caller says so."""
    finding = analyze_disparity(audit(shift=-1.0), "score", "race", lower_is_worse=False)
    assert {p.worse_off for p in finding.pairs if p.verdict is Verdict.FAIL} == {"black"}
    assert "higher" in finding.sentence


@pytest.mark.parametrize("correction", ["bonferroni", "holm", "fdr_bh"])
def test_the_correction_is_the_callers(correction):
    """And stands in the family."""
    finding = analyze_disparity(audit(shift=0.3), "score", "race", correction=correction)
    assert finding.family["method"] == correction
    assert all(p.corrected_p_value >= p.p_value for p in finding.pairs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha=0"),
        ({"correction": "sidak"}, "bonferroni, holm, fdr_bh"),
        ({"min_raw_diff": -1}, "min_raw_diff=-1"),
        ({"min_raw_ratio": 2}, "min_raw_ratio=2"),
        ({"kind": "continuous"}, "numeric, ordinal"),
    ],
)
def test_arguments_out_of_range_are_named(options, message):
    """With what they may be."""
    with pytest.raises(UsageError, match=message):
        analyze_disparity(audit(), "score", "race", **options)


def test_refusals_are_judged_in_the_same_family():
    """One group refused far more often fails, whatever the answers say, and the scores cannot pass."""
    frame = audit(seed=3, people=30)
    rng = np.random.default_rng(1)
    frame["refused"] = rng.random(len(frame)) < np.where(frame.race == "black", 0.30, 0.02)
    finding = analyze_disparity(frame, "score", "race")
    assert finding.family["size"] == 6
    assert finding.verdict is Verdict.FAIL
    assert "refused" in finding.sentence
    touched = [
        p for p in finding.pairs if p.metric == "score" and "black" in (p.group_1, p.group_2)
    ]
    assert all(p.verdict is not Verdict.PASS for p in touched)
    assert finding.refusal_rates["black"] > 0.2
    assert sum(g.n + g.refused for g in finding.group_results) == len(frame)


def test_a_refused_trial_has_no_outcome():
    """Whatever stands in the column: a refusal is never a score."""
    frame = audit()
    frame["refused"] = frame.index < 10
    frame.loc[frame.refused, "score"] = -1e6
    finding = analyze_disparity(frame, "score", "race")
    assert finding.group_results[0].n == 190
    assert abs(finding.group_results[0].value) < 10


def test_refusing_can_be_the_outcome():
    """By the column's name; a higher rate is then the worse one."""
    frame = audit()
    frame["refused"] = (frame.race == "black") & (frame.repetition == 0) & (frame.template != "t0")
    finding = analyze_disparity(frame, "refused", "race")
    assert finding.kind is OutcomeKind.REFUSAL
    assert finding.family["size"] == 3
    assert {p.worse_off for p in finding.pairs if p.verdict is Verdict.FAIL} == {"black"}
    assert finding.refusal_rates["black"] == pytest.approx(0.4)


def test_labels_are_compared_with_their_names_as_clusters():
    """A share of labels that differs between groups is found, and the label that differs most is
    named.
    """
    frame = audit(shift=1.5, people=30)
    frame["tone"] = np.where(frame.score > 1, "warm", np.where(frame.score < 0, "cold", "plain"))
    finding = analyze_disparity(frame, "tone", "race")
    assert finding.kind is OutcomeKind.CATEGORICAL
    assert finding.verdict is Verdict.FAIL
    assert "differ most in how often tone is" in finding.sentence
    assert analyze_disparity(frame, "tone", "race") == finding


def test_the_interval_of_labels_is_that_of_names_drawn_again():
    """From the 5th to the 95th percentile, by another generator."""
    rng = np.random.default_rng(15)
    frame = pd.DataFrame(
        [(g, f"{g}{n}", r, rng.choice(list("xyz"), p=p)) for g, p in (("a", (0.5, 0.3, 0.2)), ("b", (0.2, 0.3, 0.5)))
         for n in range(20) for r in range(10)],
        columns=["group", "name", "repetition", "outcome"],
    )  # fmt: skip
    (pair,) = analyze_disparity(frame, "outcome", "group", block=None).pairs
    counts = pd.crosstab(frame["name"], frame["outcome"]).to_numpy().reshape(2, 20, 3)
    drawn = []
    for _ in range(1500):
        share = [own[rng.integers(20, size=20)].sum(axis=0) / 200 for own in counts]
        middle = np.mean(share, axis=0)
        v2 = sum(((one - middle) ** 2 / middle).sum() for one in share) / 2
        drawn.append(2 * np.sqrt(v2 / (1 - v2)))
    assert (pair.effect_low, pair.effect_high) == pytest.approx(
        np.quantile(drawn, [0.05, 0.95]), abs=0.03
    )


def test_the_finding_knows_its_test_and_its_endpoint():
    """Test id, tier, endpoint and simulation come from the context and the table's own columns."""
    frame = audit().assign(endpoint="gpt", model="gpt-1", tier=2, simulated=True, replayed=False)
    context = TestContext(
        test_id="BIAS-1", test_module="bias", description="tone", emit=lambda _: None
    )
    with running_test(context):
        finding = analyze_disparity(frame, "score", "race")
    assert (finding.test_id, finding.test_module, finding.description) == ("BIAS-1", "bias", "tone")
    assert (finding.tier, finding.model_endpoint, finding.simulated, finding.replayed) == (
        2,
        "gpt",
        True,
        False,
    )


def test_several_model_versions_are_stated():
    """A table that mixes model versions says so in its notes."""
    frame = audit().assign(model=lambda d: np.where(d.repetition == 0, "m-1", "m-2"))
    assert any("m-1, m-2" in note for note in analyze_disparity(frame, "score", "race").notes)


def test_the_row_is_named_by_its_label_too():
    """A table that was filtered keeps its own index: both are given. A column that there is not is
    named, too.
    """
    frame = audit().iloc[100:].copy()
    frame.loc[104, "race"] = None
    with pytest.raises(FrameError, match=r"row 4 \(index 104\)"):
        analyze_disparity(frame, "score", "race")
    with pytest.raises(FrameError, match=r"no column 'race' for the group"):
        analyze_disparity(frame.drop(columns="race"), "score", "race")


def test_every_missing_name_means_one_label_a_group():
    """A design that signals groups by label has no names: results are about the labels."""
    finding = analyze_disparity(
        audit(shift=1.0).assign(name=None, repetition=lambda d: range(len(d))), "score", "race"
    )
    assert {p.scope for p in finding.pairs} == {"labels"}
    assert finding.verdict is Verdict.FLAG


def test_call_backs_by_name_with_the_first_name_as_cluster():
    """Bertrand & Mullainathan (2004), Table 8 recounted: 36 first names, 235 and 157 call-backs of
    2,435 each.

    The difference survives the change from 4,870 résumés to 36 names; its rates and chi-square are
    the published ones.
    """
    finding = analyze_disparity(call_backs(), "called", "race", block=None)
    pair = finding.pairs[0]
    s = pair.statistics
    assert s["rate_1"] == pytest.approx(157 / 2435)
    assert s["rate_2"] == pytest.approx(235 / 2435)
    assert s["spec_chi2"] == pytest.approx(16.87905041427022, rel=1e-9)
    assert s["spec_p_value"] == pytest.approx(3.983886837585076e-05, rel=1e-9)
    assert s["cohens_h"] == pytest.approx(-0.11830724271934467, rel=1e-9)
    assert (pair.statistics["clusters_1"], pair.statistics["clusters_2"]) == (18, 18)
    assert pair.p_row < pair.p_cluster == pair.p_value < 0.05
    assert pair.worse_off == "black"
    assert finding.verdict is Verdict.FLAG


CALL_BACKS = {
    "white": "Allison 22 232, Anne 20 242, Carrie 22 168, Emily 18 227, Jill 17 203, Kristen 28 213, Laurie 19 195, "
    "Meredith 19 187, Sarah 19 193, Brad 10 63, Brendan 5 65, Brett 4 59, Geoffrey 4 59, Greg 4 "
    "51, Jay 9 67, "
    "Matthew 6 67, Neil 5 76, Todd 4 68",
    "black": "Aisha 4 180, Ebony 20 208, Keisha 7 183, Kenya 17 196, Lakisha 11 200, Latonya 21 230, Latoya 19 226, "
    "Tamika 14 256, Tanisha 12 207, Darnell 2 42, Hakim 3 55, Jamal 4 61, Jermaine 5 52, Kareem 3 "
    "64, Leroy 6 64, "
    "Rasheed 2 67, Tremayne 3 69, Tyrone 4 75",
}
"""First name, call-backs, résumés sent: counts from the data published with the paper."""


def call_backs():
    return pd.DataFrame(
        [
            (race, name, at < int(called))
            for race, people in CALL_BACKS.items()
            for name, called, sent in (person.split() for person in people.split(", "))
            for at in range(int(sent))
        ],
        columns=["race", "name", "called"],
    )
