"""Each assertion is explained by its own method, after its own sources, and says what would change its verdict."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pytest_fairness import (
    analyze_arms,
    analyze_disparity,
    analyze_equivalence,
    analyze_four_fifths,
    analyze_preference,
    compare_baseline,
)
from pytest_fairness.analysis.baseline import summarise_scores
from pytest_fairness.analysis.explanations import explain
from pytest_fairness.model import Finding, OutcomeKind, PairResult, Reason, Verdict


def scored(shift: float = 0.0, people: int = 20, groups: str = "ab", seed: int = 0) -> pd.DataFrame:
    """A full design: names × 4 templates × 2; group b lower by *shift*."""
    rng = np.random.default_rng(seed)
    g, n, t, r = (x.ravel() for x in np.indices((len(groups), people, 4, 2)))
    return pd.DataFrame(
        {
            "group": np.array(list(groups))[g],
            "name": [f"{groups[a]}{b}" for a, b in zip(g, n, strict=True)],
            "template": [f"t{x}" for x in t],
            "repetition": r,
            "score": rng.normal(size=g.size) - shift * (g == 1),
        }
    )


def decided(**counts: tuple[int, int]) -> pd.DataFrame:
    rows = [(group, at < x) for group, (x, n) in counts.items() for at in range(n)]
    return pd.DataFrame(rows, columns=["group", "hired"])


def chosen(wins: int = 40, n: int = 100) -> pd.DataFrame:
    """Two groups in both orders; A wins *wins* of *n* in each."""
    rows = []
    for first, second in (("A", "B"), ("B", "A")):
        rows += [(first, second, "A" if at < wins else "B", at) for at in range(n)]
    return pd.DataFrame(rows, columns=["first", "second", "chosen", "repetition"])


def in_arms(shift: float = 1.0) -> pd.DataFrame:
    raw, mended = scored(shift, seed=1).assign(arm="raw"), scored(0.0, seed=2).assign(arm="scrubbed")
    return pd.concat([raw, mended], ignore_index=True)


def remembered(drop: float) -> Finding:
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"persona": [f"p{i}" for i in range(30)] * 2, "repetition": [0] * 30 + [1] * 30})
    then = pd.Series(80 + rng.normal(size=60))
    old = summarise_scores(people, then, persona="persona", categories=[])
    new = summarise_scores(people, then - drop + rng.normal(0, 0.1, 60), persona="persona", categories=[])
    return compare_baseline(old, new)


def method(finding: Finding) -> str:
    """The middle paragraph; there are always three."""
    sentence, how, _ = explain(finding).split("\n\n")
    assert sentence == finding.sentence
    return how


def test_a_disparity_is_explained_by_blocks_clusters_correction_and_interval() -> None:
    how = method(analyze_disparity(scored(1.0, groups="abc"), "score", "group"))
    for said in (
        "van Elteren 1960",
        "Hedges 1981",
        "name means by Student's t",
        "3 tests were corrected together (Bonferroni; Dunn 1961)",
        "90 % interval",
        "Schuirmann 1987",
    ):
        assert said in how


@pytest.mark.parametrize(
    ("frame", "outcome", "said", "unsaid"),
    [
        (decided(a=(60, 100), b=(50, 100)), "hired", "Mantel & Haenszel 1959", "van Elteren"),
        (scored().assign(label=lambda f: np.where(f.score > 0, "x", "y")), "label", "Mantel & Haenszel", "Cramér"),
        (scored().assign(label=lambda f: f.score.round().clip(-1, 1).map(str)), "label", "Cramér's V", "van Elteren"),
        (scored().assign(stars=lambda f: f.score.round().clip(-2, 2)), "stars", "Liu & Agresti 1996", "Cliff"),
    ],
)
def test_the_tests_named_are_those_of_the_kind_of_outcome(
    frame: pd.DataFrame, outcome: str, said: str, unsaid: str
) -> None:
    cluster = "name" if "name" in frame else None
    how = method(analyze_disparity(frame, outcome, "group", cluster=cluster))
    assert said in how
    assert unsaid not in how


def test_one_test_is_one_test() -> None:
    """Not "1 tests were corrected together"."""
    how = method(analyze_disparity(scored(), "score", "group"))
    assert "This was 1 test, so there was nothing to correct for." in how
    assert "1 tests" not in how


def test_rows_without_a_cluster_are_said_to_stand_for_themselves() -> None:
    how = method(analyze_disparity(decided(a=(60, 100), b=(50, 100)), "hired", "group", cluster=None))
    assert "Every row stands for itself" in how
    assert "Student's t" not in how


def test_a_single_name_a_group_is_said_to_be_about_that_name() -> None:
    frame = scored(1.0, people=1).assign(score=lambda f: f.score, template="t")
    frame["repetition"] = frame.groupby("group").cumcount()
    frame = pd.concat([frame.assign(repetition=frame.repetition + 8 * k) for k in range(5)], ignore_index=True)
    how = method(analyze_disparity(frame, "score", "group"))
    assert "a single name" in how
    assert "FAIL is capped at FLAG" in how


def test_refusals_in_the_family_are_explained() -> None:
    frame = scored().assign(refused=lambda f: (f.index % 9 == 0) & (f.group == "b"))
    frame.loc[frame.refused, "score"] = None
    assert "every refusal ranked worst" in method(analyze_disparity(frame, "score", "group"))
    assert "ranked worst" not in method(analyze_disparity(scored(), "score", "group"))


def test_missing_answers_in_the_family_are_explained() -> None:
    frame = scored()
    frame.loc[(frame.index % 40 == 0) & (frame.group == "b"), "score"] = None
    assert "without a usable answer" in method(analyze_disparity(frame, "score", "group"))
    assert "without a usable answer" not in method(analyze_disparity(scored(), "score", "group"))


def test_templates_and_recurring_name_parts_are_explained_where_there_are_any() -> None:
    frame = scored().assign(first_name=lambda f: f.name.str[:-1], last_name=lambda f: "x" + f.name.str[-1])
    whole, bare = (method(analyze_disparity(one, "score", "group")) for one in (frame, scored()))
    assert "The verdict is about these templates." in bare
    assert "recur" in whole
    assert "recur" not in bare
    assert "about these" not in method(analyze_disparity(scored(), "score", "group", block=None))


def test_practically_equal_rates_are_explained_where_they_decide() -> None:
    frame = decided(a=(197, 200), b=(197, 200))
    assert "±5 points" in method(analyze_disparity(frame, "hired", "group", cluster=None))
    assert "±5 points" not in method(
        analyze_disparity(decided(a=(60, 100), b=(50, 100)), "hired", "group", cluster=None)
    )


@pytest.mark.parametrize(("looked", "said"), [(True, True), (False, True), (None, False)])
def test_a_second_sample_is_explained_if_there_was_one(looked: bool | None, said: bool) -> None:
    finding = Finding(
        assertion="no_disparity",
        verdict=Verdict.FLAG,
        sentence="x",
        kind=OutcomeKind.NUMERIC,
        details={"confirmation": {"confirmed": looked}},
    )
    assert ("Pocock 1977" in explain(finding)) is said


def test_four_fifths_are_explained_by_the_regulation_and_by_who_chose_the_reference() -> None:
    frame = decided(a=(60, 80), b=(20, 80), c=(50, 80))
    how = method(analyze_four_fifths(frame, "hired", "group", cluster=None))
    assert "29 CFR 1607.4(D)" in how
    assert "all pairs of groups are tests" in how
    assert "3 tests were corrected together" in how
    declared = method(analyze_four_fifths(frame, "hired", "group", cluster=None, reference="a"))
    assert "declared beforehand" in declared
    assert "2 tests were corrected together" in declared
    bare = method(analyze_four_fifths(frame, "hired", "group", cluster=None, bare_ratio=True))
    assert "whatever chance says" in bare
    assert "corrected together" not in bare


def test_a_baseline_is_explained_by_pairs_of_personas_and_not_by_ranks() -> None:
    finding = remembered(5.0)
    how = method(finding)
    for said in ("one-sided paired t over personas", "margin of 1 points overall and 3 a category", "at 0.005"):
        assert said in how
    for unsaid in ("van Elteren", "Hedges", "±0.5"):
        assert unsaid not in how
    assert "or an approval of the lower ones with its justification (overall)" in explain(finding)


def test_a_preference_is_explained_by_orders_of_listing() -> None:
    how = method(analyze_preference(chosen(), cluster=None, block=None))
    for said in ("within each order of listing", "Bradley & Terry (1952)", "decide nothing"):
        assert said in how
    assert "van Elteren" not in how
    assert "Friedman" not in how


@pytest.mark.parametrize(
    ("details", "said"),
    [({"friedman": {}}, "Friedman (1937)"), ({"conditional_logit": {}}, "McFadden"), ({}, "order of listing")],
)
def test_choices_among_several_and_rankings_have_methods_of_their_own(details: dict[str, object], said: str) -> None:
    finding = Finding(assertion="no_preference", verdict=Verdict.PASS, sentence="x", details=details)
    assert said in method(finding)


def test_equivalence_is_explained_by_two_one_sided_tests_and_its_margin() -> None:
    finding = analyze_equivalence(scored(groups="abc"), "score", "group", margin=0.9)
    how = method(finding)
    for said in ("±0.9", "Schuirmann 1987", "90 % interval", "Berger 1982", "3 tests (Bonferroni; Dunn 1961)"):
        assert said in how
    on_d = method(analyze_equivalence(scored(), "score", "group", margin=0.5, unit="d"))
    assert "±0.5 standard deviations" in on_d


def test_arms_are_explained_by_the_contrast_and_the_placebo_by_name() -> None:
    finding = analyze_arms(in_arms(), "score", treated="scrubbed", control="raw")
    how = method(finding)
    assert "in arm scrubbed is compared with that in arm raw" in how
    assert "paired t over the" in how
    assert "placebo" not in how
    placebo = pd.concat([in_arms(), scored(1.0, seed=3).assign(arm="nothing")], ignore_index=True)
    with_placebo = analyze_arms(placebo, "score", treated="scrubbed", control="raw", placebo="nothing")
    assert "the placebo arm nothing (Holm 1979)" in method(with_placebo)


ASSERTIONS = ["no_disparity", "four_fifths", "baseline", "no_preference", "equivalent", "arm_reduces_disparity"]


@pytest.mark.parametrize("assertion", ASSERTIONS)
@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_of_every_assertion_says_what_would_change_it(assertion: str, verdict: Verdict) -> None:
    """And says so even of a finding of which nothing else is known."""
    finding = Finding(assertion=assertion, verdict=verdict, sentence="x", kind=OutcomeKind.NUMERIC, cluster="name")
    change = explain(finding).split("\n\n")[-1]
    assert change.startswith("What would change the verdict: ")
    words = {Verdict.PASS: "new run", Verdict.FLAG: "justification", Verdict.INCONCLUSIVE: "more names"}
    assert words.get(verdict, "change") in change


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (Reason.UNSCORED, "a scorer that reads them"),
        (Reason.RAGGED, "in every block"),
        (Reason.DIFFERENTIAL_REFUSAL, "why one group is refused"),
        (Reason.OVERLAP, "the same personas"),
        (Reason.INCOMPLETE, "running the trials"),
        (Reason.MIXED_MODELS, "one model version"),
        (Reason.SMALL_NUMBERS, "more decisions"),
    ],
)
def test_the_way_out_fits_the_reason(reason: Reason, said: str) -> None:
    finding = Finding(assertion="no_disparity", verdict=Verdict.INCONCLUSIVE, sentence="x", reason=reason)
    assert said in explain(finding)


def test_an_undecided_finding_says_what_would_decide_it() -> None:
    pair = PairResult(
        group_1="a", group_2="b", metric="m", verdict=Verdict.INCONCLUSIVE, needs="about 31 names a group"
    )
    finding = Finding(
        assertion="no_disparity", verdict=Verdict.INCONCLUSIVE, reason=Reason.PRECISION, sentence="x", pairs=(pair,)
    )
    assert explain(finding).endswith("What would change the verdict: about 31 names a group.")


def test_many_pairs_are_counted_not_listed() -> None:
    finding = analyze_disparity(scored(1.2, groups="abcdef"), "score", "group")
    assert "; and 2 more)" in explain(finding)


def test_every_finding_carries_its_explanation() -> None:
    """``finding.explain()`` works on what an analysis returns and on what is read back from a file."""
    finding = analyze_disparity(scored(), "score", "group")
    assert finding.explain() == explain(finding)
    assert Finding.from_dict(finding.to_dict()).explain() == explain(finding)
