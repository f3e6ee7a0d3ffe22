"""A malformed table is refused by every analysis, with the column, the row and the mend; never
judged on a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pytest_fairness import (
    Finding,
    analyze_arms,
    analyze_disparity,
    analyze_equivalence,
    analyze_four_fifths,
    analyze_preference,
)
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.testing import choices_frame, scores_frame

Change = Callable[[pd.DataFrame], Any]

SCORED = scores_frame({"a": 0, "b": 0}, names=10, templates=1, repetitions=4)
SCORED["hired"] = SCORED["score"] > 0
CHOICES = choices_frame(20, of=40, groups=("A", "B"))
CHOICES = CHOICES.assign(name=[f"n{at % 10}" for at in range(80)], template="t")
SLATES = pd.DataFrame(
    {
        "trial": np.repeat(range(20), 3),
        "group": ["a", "b", "c"] * 20,
        "chosen": [True, False, False] * 20,
        "rank": [1, 2, 3] * 20,
        "position": [1, 2, 3] * 20,
        "name": np.repeat([f"n{at % 5}" for at in range(20)], 3),
    }
)
ARMS = pd.concat([SCORED.assign(arm="x"), SCORED.assign(arm="y")], ignore_index=True)
ANALYSES: dict[str, tuple[pd.DataFrame, Callable[[Any], Finding]]] = {
    "disparity": (SCORED, lambda frame: analyze_disparity(frame, "score", "group")),
    "four_fifths": (SCORED, lambda frame: analyze_four_fifths(frame, "hired", "group")),
    "equivalence": (SCORED, lambda frame: analyze_equivalence(frame, "score", "group", margin=0.5)),
    "arms": (ARMS, lambda frame: analyze_arms(frame, "score", treated="x", control="y")),
    "choices": (CHOICES, analyze_preference),
    "slates": (
        SLATES,
        lambda frame: analyze_preference(frame, "group", trial="trial", position="position"),
    ),
    "rankings": (
        SLATES,
        lambda frame: analyze_preference(frame, "group", trial="trial", rank="rank"),
    ),
}


def put(column: str, value: object) -> Change:
    """*value* into row 7 of *column*."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.assign(**{column: frame[column].astype(object)})
        frame.iloc[7, frame.columns.get_loc(column)] = value
        return frame

    return change


@pytest.mark.parametrize("analysis", list(ANALYSES))
def test_the_table_is_fine_to_begin_with(analysis: str) -> None:
    """With an index of any kind, repeated labels included: rows are known by their position."""
    frame, run = ANALYSES[analysis]
    found = run(frame)
    assert found.pairs
    assert run(frame.set_index(pd.Index([0] * len(frame)))).verdict is found.verdict


@pytest.mark.parametrize(
    ("analyses", "change", "message"),
    [
        (" ".join(ANALYSES), lambda f: f.to_dict(), "got dict"),
        (" ".join(ANALYSES), lambda f: f.iloc[:0], "no rows"),
        (
            " ".join(ANALYSES),
            lambda f: pd.concat([f, f.iloc[:, :1]], axis=1),
            "stands twice in the frame",
        ),
        (" ".join(ANALYSES), lambda f: f.drop(columns="name"), "no column 'name' for the cluster"),
        (" ".join(ANALYSES), put("name", None), "column 'name', row 7: the cluster is missing"),
        (
            " ".join(ANALYSES),
            lambda f: f.assign(refused="no"),
            "'refused', row 0: 'no' is neither True nor False",
        ),
        (
            "disparity four_fifths equivalence arms slates rankings",
            put("group", None),
            "row 7: the group is missing",
        ),
        (
            "disparity four_fifths equivalence arms choices",
            put("template", None),
            "row 7: the block is missing",
        ),
        (
            "disparity four_fifths equivalence arms",
            lambda f: f.assign(group="a"),
            "'group' holds one group only",
        ),
        (
            "disparity four_fifths equivalence",
            lambda f: pd.concat([f, f.iloc[[3]]]),
            r"row 80 \(index 3\) repeats row 3",
        ),
        (
            "disparity equivalence arms",
            put("score", "five"),
            "row 7: 'five' is of type str among numbers",
        ),
        ("disparity equivalence arms", put("score", float("inf")), "column 'score', row 7"),
        (
            "four_fifths",
            put("hired", "maybe"),
            "column 'hired', row 7: 'maybe' is neither True nor False",
        ),
        ("four_fifths", put("hired", 3), "column 'hired', row 7: 3 is neither True nor False"),
        ("arms", put("arm", None), "column 'arm', row 7: the arm is missing"),
        ("arms", lambda f: f.drop(columns="arm"), "no column 'arm' for the arm"),
        ("choices", put("first", None), "column 'first', row 7: the candidate is missing"),
        (
            "choices",
            put("chosen", "Z"),
            "column 'chosen', row 7: the choice is 'Z', but it was between 'A' or 'B'",
        ),
        (
            "choices",
            lambda f: f.assign(first="A", second="A"),
            "row 0: both candidates are of the same group",
        ),
        ("slates rankings", put("trial", None), "column 'trial', row 7: the trial is missing"),
        (
            "slates rankings",
            lambda f: f.drop(index=7),
            "row 6: in trial '2' the group 'b' is missing",
        ),
        ("slates", put("chosen", 2.5), "column 'chosen', row 7: 2.5 is neither True nor False"),
        ("slates", put("position", None), "column 'position', row 7: the position is missing"),
        (
            "slates",
            lambda f: f.assign(position=1),
            "row 0: two candidates of this trial stand in the same position",
        ),
        ("rankings", put("rank", "x"), "column 'rank', row 7: 'x' is no rank"),
    ],
)
def test_what_is_wrong_is_named_by_column_and_row(
    analyses: str, change: Change, message: str
) -> None:
    for analysis in analyses.split():
        frame, run = ANALYSES[analysis]
        with pytest.raises(FrameError, match=message):
            run(change(frame))


@pytest.mark.parametrize("analysis", ["disparity", "four_fifths", "equivalence", "arms"])
def test_an_outcome_that_there_is_not_is_met_with_those_that_there_are(analysis: str) -> None:
    frame, run = ANALYSES[analysis]
    with pytest.raises(
        UsageError, match=r"neither a column nor a scorer. Columns: 'group', 'name'"
    ):
        run(frame.rename(columns={"score": "points", "hired": "employed"}))


def test_labels() -> None:
    """One more decision is fine once the favourable one is named; a number among labels is named
    itself.
    """
    frame = SCORED.assign(hired=np.where(SCORED["hired"], "yes", "no"), label="x")
    assert analyze_four_fifths(
        put("hired", "maybe")(frame), "hired", "group", favourable="yes"
    ).pairs
    with pytest.raises(FrameError, match="column 'label', row 7: 5 is of type int among labels"):
        analyze_disparity(put("label", 5)(frame), "label", "group")
