"""Each assertion is explained by its own method, after its own sources, and says what would change
its verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from pytest_fairness.testing import choices_frame, decisions_frame, scores_frame


def scored(shift: float = 0.0, groups: str = "ab", **options: Any) -> pd.DataFrame:
    """A full design, names × 4 templates × 2; group b lower by *shift*."""
    return scores_frame({group: -shift * (group == "b") for group in groups}, **options)


def one_name() -> pd.DataFrame:
    frame = pd.concat([scored(1.0, names=1)] * 5, ignore_index=True).assign(template="t")
    return frame.assign(repetition=frame.groupby("group").cumcount())


def refused() -> pd.DataFrame:
    frame = scored().assign(refused=lambda f: (f.index % 9 == 0) & (f.group == "b"))
    return frame.assign(score=frame.score.where(~frame.refused))


def in_arms(*more: tuple[str, float]) -> pd.DataFrame:
    shifts = (("raw", 1.0), ("scrubbed", 0.0), *more)
    return pd.concat(
        [
            scored(shift, seed=at).assign(arm=arm, name=scored().name)
            for at, (arm, shift) in enumerate(shifts)
        ],
        ignore_index=True,
    )


def remembered(drop: float) -> Finding:
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {"persona": [f"p{i}" for i in range(30)] * 2, "repetition": [0] * 30 + [1] * 30}
    )
    then = pd.Series(80 + rng.normal(size=60))
    old, new = (
        summarise_scores(people, scores, persona="persona")
        for scores in (then, then - drop + rng.normal(0, 0.1, 60))
    )
    return compare_baseline(old, new)


def method(finding: Finding) -> str:
    """The middle paragraph; there are always three."""
    sentence, how, _ = explain(finding).split("\n\n")
    assert sentence == finding.sentence
    return how


def disparity(frame: pd.DataFrame, outcome: str = "score", **options: Any) -> Finding:
    return analyze_disparity(frame, outcome, "group", **options)


def hired(a: int, b: int, **options: Any) -> Finding:
    return disparity(decisions_frame({"a": a, "b": b}), "hired", cluster=None, **options)


def four_fifths(**options: Any) -> Finding:
    frame = decisions_frame({"a": 60, "b": 20, "c": 50}, of=80)
    return analyze_four_fifths(frame, "hired", "group", cluster=None, **options)


def contrast(*more: tuple[str, float], **options: Any) -> Finding:
    return analyze_arms(in_arms(*more), "score", treated="scrubbed", control="raw", **options)


def labelled(column: str, of: Callable[[pd.DataFrame], Any]) -> Finding:
    return disparity(scored().assign(**{column: of}), column)


THREE = "3 tests were corrected together (Bonferroni; Dunn 1961)"
ONE = "This was 1 test, so there was nothing to correct for."
MARGINS = "margin of 1 points overall and 3 a category"


@pytest.mark.parametrize(
    ("find", "named", "unnamed"),
    [
        (
            lambda: disparity(scored(1.0, groups="abc")),
            [
                "van Elteren 1960",
                "Hedges 1981",
                "name means by Student's t",
                "90 % interval",
                "Schuirmann 1987",
                THREE,
            ],
            [],
        ),
        (
            lambda: disparity(scored()),
            [ONE, "The verdict is about these templates."],
            ["1 tests", "ranked worst", "without a usable answer", "recur"],
        ),
        (lambda: disparity(scored(), block=None), [], ["about these"]),
        (
            lambda: hired(120, 100),
            ["Mantel & Haenszel 1959", "Every row stands for itself"],
            ["van Elteren", "Student's t", "±5 points"],
        ),
        (
            lambda: labelled("label", lambda f: np.where(f.score > 0, "x", "y")),
            ["Mantel & Haenszel"],
            ["Cramér"],
        ),
        (
            lambda: labelled("label", lambda f: f.score.round().clip(-1, 1).map("tone {}".format)),
            ["Cramér's V"],
            ["van Elteren"],
        ),
        (
            lambda: labelled("stars", lambda f: f.score.round().clip(-2, 2)),
            ["Liu & Agresti 1996"],
            ["Cliff"],
        ),
        (lambda: disparity(one_name()), ["a single name", "FAIL is capped at FLAG"], []),
        (lambda: disparity(refused()), ["every refusal ranked worst"], []),
        (
            lambda: labelled(
                "score", lambda f: f.score.where((f.index % 40 > 0) | (f.group == "a"))
            ),
            ["without a usable answer"],
            [],
        ),
        (
            lambda: disparity(
                scored().assign(
                    first_name=lambda f: f.name.str[:2], last_name=lambda f: f.name.str[2:]
                )
            ),
            ["recur"],
            [],
        ),
        (lambda: hired(197, 197), ["±5 points"], []),
        (
            four_fifths,
            [
                "29 CFR 1607.4(D)",
                "all pairs of groups are tests",
                "3 tests were corrected together",
            ],
            [],
        ),
        (
            lambda: four_fifths(reference="a"),
            ["declared beforehand", "2 tests were corrected together"],
            [],
        ),
        (lambda: four_fifths(bare_ratio=True), ["whatever chance says"], ["corrected together"]),
        (
            lambda: remembered(5.0),
            ["one-sided paired t over personas", MARGINS, "at 0.005"],
            ["van Elteren", "Hedges", "±0.5"],
        ),
        (
            lambda: analyze_preference(choices_frame(60), cluster=None, block=None),
            ["within each order of listing", "Bradley & Terry (1952)", "decide nothing"],
            ["van Elteren", "Friedman"],
        ),
        (
            lambda: analyze_equivalence(scored(groups="abc"), "score", "group", margin=0.9),
            [
                "±0.9",
                "Schuirmann 1987",
                "90 % interval",
                "Berger 1982",
                "3 tests (Bonferroni; Dunn 1961)",
            ],
            [],
        ),
        (
            lambda: analyze_equivalence(scored(), "score", "group", margin=0.5, unit="d"),
            ["±0.5 standard deviations"],
            [],
        ),
        (
            contrast,
            ["in arm scrubbed is compared with that in arm raw", "paired t over the"],
            ["placebo"],
        ),
        (
            lambda: contrast(("nothing", 1.0), placebo="nothing"),
            ["the placebo arm nothing (Holm 1979)"],
            [],
        ),
    ],
    ids=range(21),
)
def test_a_finding_is_explained_by_what_it_computed(
    find: Callable[[], Finding], named: list[str], unnamed: list[str]
) -> None:
    how = method(find())
    assert [text for text in named if text not in how] == []
    assert [text for text in unnamed if text in how] == []


@pytest.mark.parametrize(
    ("assertion", "details", "text"),
    [
        ("no_preference", {"friedman": {}}, "Friedman (1937)"),
        ("no_preference", {"conditional_logit": {}}, "McFadden"),
        ("no_preference", {}, "order of listing"),
        ("no_disparity", {"looks": {"planned": [10, 20, 40]}}, "Lan & DeMets 1983"),
    ],
)
def test_rankings_choices_and_looks_have_methods_of_their_own(
    assertion: str, details: dict[str, Any], text: str
) -> None:
    finding = Finding(assertion=assertion, verdict=Verdict.FLAG, sentence="x", details=details)
    assert text in method(finding)
    once = Finding(
        assertion="no_disparity",
        verdict=Verdict.FLAG,
        sentence="x",
        details={"looks": {"planned": [20]}},
    )
    assert "Lan & DeMets 1983" not in explain(once)


ASSERTIONS = [
    "no_disparity",
    "four_fifths",
    "baseline",
    "no_preference",
    "equivalent",
    "arm_reduces_disparity",
]


@pytest.mark.parametrize("assertion", ASSERTIONS)
@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_of_every_assertion_says_what_would_change_it(
    assertion: str, verdict: Verdict
) -> None:
    """And says so even of a finding of which nothing else is known."""
    finding = Finding(
        assertion=assertion, verdict=verdict, sentence="x", kind=OutcomeKind.NUMERIC, cluster="name"
    )
    change = explain(finding).split("\n\n")[-1]
    assert change.startswith("What would change the verdict: ")
    words = {
        Verdict.PASS: "new run",
        Verdict.FLAG: "justification",
        Verdict.INCONCLUSIVE: "more names",
    }
    assert words.get(verdict, "change") in change


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (Reason.UNSCORED, "a scorer that reads them"),
        (Reason.RAGGED, "in every block"),
        (Reason.DIFFERENTIAL_REFUSAL, "why one group is refused"),
        (Reason.OVERLAP, "the same personas"),
        (Reason.INCOMPLETE, "running the trials"),
        (Reason.MIXED_MODELS, "one model version"),
        (Reason.SMALL_NUMBERS, "more decisions"),
        (Reason.UNRECORDED, "a record of what"),
        (Reason.PRECISION, "about 31 names a group."),
    ],
)
def test_the_way_out_fits_the_reason(reason: Reason, text: str) -> None:
    """Where there is no better one, it is what the pairs need."""
    pair = PairResult(
        group_1="a",
        group_2="b",
        metric="m",
        verdict=Verdict.INCONCLUSIVE,
        needs="about 31 names a group",
    )
    finding = Finding(
        assertion="no_disparity",
        verdict=Verdict.INCONCLUSIVE,
        sentence="x",
        reason=reason,
        pairs=(pair,),
    )
    assert text in explain(finding)


def test_the_way_out_of_an_alarm_names_its_pairs() -> None:
    """Many are counted; ``finding.explain()`` gives the same for what is read back from a file."""
    finding = disparity(scored(1.2, groups="abcdef"))
    assert "; and 2 more)" in explain(finding)
    assert finding.explain() == explain(finding) == Finding.from_dict(finding.to_dict()).explain()
    assert "or an approval of the lower ones with its justification (overall)" in explain(
        remembered(5.0)
    )
