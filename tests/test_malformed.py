"""A malformed table is refused by every analysis, with the column, the row and the mend; never judged on a guess."""

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

Change = Callable[[pd.DataFrame], Any]


def scored() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 40)
    return pd.DataFrame(
        {
            "group": group,
            "name": [f"{label}{at % 10}" for at, label in enumerate(group)],
            "template": "t",
            "repetition": np.tile(np.arange(4).repeat(10), 2),
            "score": rng.normal(size=80),
            "hired": rng.random(80) < 0.5,
        }
    )


def in_arms() -> pd.DataFrame:
    return pd.concat([scored().assign(arm="x"), scored().assign(arm="y")], ignore_index=True)


def choices() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "first": ["A", "B"] * 40,
            "second": ["B", "A"] * 40,
            "chosen": ["A"] * 40 + ["B"] * 40,
            "name": [f"n{at % 10}" for at in range(80)],
            "template": "t",
            "repetition": range(80),
        }
    )


def slates() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "trial": np.repeat(range(20), 3),
            "group": ["a", "b", "c"] * 20,
            "chosen": [True, False, False] * 20,
            "rank": [1, 2, 3] * 20,
            "position": [1, 2, 3] * 20,
            "name": np.repeat([f"n{at % 5}" for at in range(20)], 3),
        }
    )


ANALYSES: dict[str, tuple[Callable[[], pd.DataFrame], Callable[[Any], Finding]]] = {
    "disparity": (scored, lambda frame: analyze_disparity(frame, "score", "group")),
    "four_fifths": (scored, lambda frame: analyze_four_fifths(frame, "hired", "group")),
    "equivalence": (scored, lambda frame: analyze_equivalence(frame, "score", "group", margin=0.5)),
    "arms": (in_arms, lambda frame: analyze_arms(frame, "score", treated="x", control="y")),
    "choices": (choices, analyze_preference),
    "slates": (slates, lambda frame: analyze_preference(frame, "group", trial="trial", position="position")),
    "rankings": (slates, lambda frame: analyze_preference(frame, "group", trial="trial", rank="rank")),
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
    make, run = ANALYSES[analysis]
    assert run(make()).pairs


@pytest.mark.parametrize("analysis", list(ANALYSES))
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda frame: frame.to_dict(), "got dict"),
        (lambda frame: frame.iloc[:0], "no rows"),
        (lambda frame: pd.concat([frame, frame.iloc[:, :1]], axis=1), "stands twice in the frame"),
        (lambda frame: frame.drop(columns="name"), "no column 'name' for the cluster"),
        (put("name", None), "column 'name', row 7: the cluster is missing"),
        (lambda frame: frame.assign(refused="no"), "column 'refused', row 0: 'no' is neither True nor False"),
    ],
    ids=["dict", "empty", "twice", "no cluster", "missing cluster", "refused"],
)
def test_what_no_analysis_can_do_without(analysis: str, change: Change, said: str) -> None:
    make, run = ANALYSES[analysis]
    with pytest.raises(FrameError, match=said):
        run(change(make()))


@pytest.mark.parametrize(
    ("analyses", "change", "said"),
    [
        (
            "disparity four_fifths equivalence arms slates rankings",
            put("group", None),
            "'group', row 7: the group is mis",
        ),
        (
            "disparity four_fifths equivalence arms choices",
            put("template", None),
            "'template', row 7: the block is mis",
        ),
        ("disparity four_fifths equivalence arms", lambda f: f.assign(group="a"), "'group' holds one group only"),
        (
            "disparity four_fifths equivalence",
            lambda f: pd.concat([f, f.iloc[[3]]]),
            r"row 80 \(index 3\) repeats row 3",
        ),
        (
            "disparity equivalence arms",
            put("score", "five"),
            "column 'score', row 7: 'five' is of type str among numbers",
        ),
        ("disparity equivalence arms", put("score", float("inf")), "column 'score', row 7"),
        ("four_fifths", put("hired", "maybe"), "column 'hired', row 7: 'maybe' is neither True nor False"),
        ("four_fifths", put("hired", 3), "column 'hired', row 7: 3 is neither True nor False"),
        ("arms", put("arm", None), "column 'arm', row 7: the arm is missing"),
        ("arms", lambda f: f.drop(columns="arm"), "no column 'arm' for the arm"),
        ("choices", put("first", None), "column 'first', row 7: the candidate is missing"),
        ("choices", put("chosen", "Z"), "column 'chosen', row 7: the choice is 'Z', but it was between 'B' or 'A'"),
        ("choices", lambda f: f.assign(first="A", second="A"), "row 0: both candidates are of the same group"),
        ("slates rankings", put("trial", None), "column 'trial', row 7: the trial is missing"),
        ("slates rankings", lambda f: f.drop(index=7), "row 6: in trial '2' the group 'b' is missing"),
        ("slates", put("chosen", 2.5), "column 'chosen', row 7: 2.5 is neither True nor False"),
        ("slates", put("position", None), "column 'position', row 7: the position is missing"),
        ("slates", lambda f: f.assign(position=1), "row 0: two candidates of this trial stand in the same position"),
        ("rankings", put("rank", "x"), "column 'rank', row 7: 'x' is no rank"),
    ],
)
def test_what_is_wrong_is_named_by_column_and_row(analyses: str, change: Change, said: str) -> None:
    for analysis in analyses.split():
        make, run = ANALYSES[analysis]
        with pytest.raises(FrameError, match=said):
            run(change(make()))


@pytest.mark.parametrize("analysis", ["disparity", "four_fifths", "equivalence", "arms"])
def test_an_outcome_that_there_is_not_is_met_with_those_that_there_are(analysis: str) -> None:
    make, run = ANALYSES[analysis]
    with pytest.raises(UsageError, match=r"neither a column nor a scorer. Columns: 'group', 'name'"):
        run(make().rename(columns={"score": "points", "hired": "employed"}))


def test_a_label_among_decisions_is_fine_once_the_favourable_one_is_named() -> None:
    frame = scored().assign(hired=lambda f: np.where(f.hired, "yes", "no"))
    frame.loc[7, "hired"] = "maybe"
    assert analyze_four_fifths(frame, "hired", "group", favourable="yes").pairs


def test_an_odd_number_among_labels_is_the_one_that_is_named() -> None:
    frame = scored().assign(label="x")
    with pytest.raises(FrameError, match="column 'label', row 7: 5 is of type int among labels"):
        analyze_disparity(put("label", 5)(frame), "label", "group")


@pytest.mark.parametrize("analysis", list(ANALYSES))
def test_an_index_of_any_kind_will_do(analysis: str) -> None:
    """Repeated labels, as concatenated tables have them: rows are told apart by position."""
    make, run = ANALYSES[analysis]
    frame = make()
    assert run(frame.set_index(pd.Index([0] * len(frame)))).verdict is run(frame).verdict
