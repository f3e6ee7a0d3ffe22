"""A second sample: other names where there are any, and of it what corresponds to the table
asserted on.
"""

from __future__ import annotations

import pandas as pd
import pytest

from pytest_fairness.design.grid import expand_grid, other_names
from pytest_fairness.errors import EndpointError, UsageError
from pytest_fairness.pytest_layer.plans import PlannedGrid
from pytest_fairness.pytest_layer.second_sample import Repeatable
from pytest_fairness.running_test import Assertion, FreshSample

TEMPLATE = "Write a reference for {name}."
RACE = {"race_ethnicity": ["white", "black", "hispanic", "asian"]}


def other(**arguments):
    arguments = {"template": TEMPLATE, "groups": RACE, **arguments}
    grid = expand_grid(**arguments)
    return grid, other_names(grid, arguments)


def names(grid):
    return {cell.name for cell in grid}


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"names": 7},
        {"names": 1},
        {"groups": {"gender": ["female", "male"]}},
        {"sample": 40, "template": [TEMPLATE, "Praise {name}."]},
    ],
    ids=["twenty", "seven", "one", "by gender", "sampled"],
)
def test_as_many_names_as_before_and_none_of_them_again(arguments):
    """In the same places, where the grid is a sample."""
    grid, fresh = other(**arguments)
    assert (len(fresh), fresh.repetitions, fresh.positions) == (
        len(grid),
        grid.repetitions,
        grid.positions,
    )
    assert not names(grid) & names(fresh)
    (varied,) = arguments.get("groups", RACE)
    assert [cell.groups[varied] for cell in fresh] == [cell.groups[varied] for cell in grid]
    assert [cell.template for cell in fresh] == [cell.template for cell in grid]
    assert len({cell.id for cell in [*grid, *fresh]}) == 2 * len(grid)


def test_where_fewer_names_are_left_every_group_gets_those():
    """Neutral names: 36 in all, twenty used; of one's own thirty the other fifteen."""
    grid, fresh = other(
        template="Write a reference for {name}, who is {religion}.",
        groups={"religion": ["muslim", "jewish"]},
    )
    assert (grid.fewest_names, fresh.fewest_names) == (20, 16)
    assert not names(grid) & names(fresh)
    own = {group: [f"{group} {at}" for at in range(30)] for group in ("white", "black")}
    grid, fresh = other(groups={"race_ethnicity": own}, names=15)
    assert names(grid) | names(fresh) == {name for items in own.values() for name in items}


@pytest.mark.parametrize(
    "arguments",
    [
        {"persona": "matrix", "groups": None},
        {"groups": {"race_ethnicity": {"white": ["Amy A", "Ann B"], "black": ["Bo C", "Bea D"]}}},
        {"groups": {"race_ethnicity": ["white", "middle_eastern"]}},
        {
            "template": "Write about a {religion} nurse.",
            "groups": {"religion": ["muslim", "jewish"]},
        },
    ],
    ids=["personas", "own names", "all used", "no names"],
)
def test_where_there_are_no_other_names_there_are_none(arguments):
    _, fresh = other(**arguments)
    assert fresh is None
    assert PlannedGrid(expand_grid(template=TEMPLATE, groups=RACE)).on_other_names is None


# ---------------------------------------------------------------- a part of a table


def table(suffix="", status="answered"):
    rows = [
        (template, group, f"{group}{name}{suffix}", role, f"reply {name}")
        for template in ("t1", "t2")
        for role in ("nurse", "cook")
        for group in ("a", "b")
        for name in range(3)
    ]
    frame = pd.DataFrame(rows, columns=["template", "group", "name", "role", "reply"]).assign(
        status=status
    )
    frame.attrs["pytest_fairness"] = {"protected_classes": ("group",)}
    return frame


def asserted(frame):
    return Assertion(
        analysis="disparity", arguments={"frame": frame, "outcome": "reply", "by": "group"}
    )


def repeatable(fresh=None):
    requests = []

    def ask():
        requests.append(True)
        return FreshSample(
            frame=table("-new") if fresh is None else fresh, about="3 other names a group"
        )

    made = Repeatable(table(), ["role"], ask)
    return made, requests


def test_the_whole_table_is_the_whole_second_sample_and_requested_once():
    """Whatever the test does to its own table."""
    made, requests = repeatable()
    frame = table()
    assert len(made.like(asserted(frame)).frame) == len(frame)
    frame["passed"] = True
    again = made.like(asserted(frame))
    assert (len(again.frame), again.about) == (len(frame), "3 other names a group")
    assert requests == [True]


@pytest.mark.parametrize(
    ("pick", "rows"),
    [
        (lambda f: f[f.template == "t1"], 12),
        (lambda f: f[f.role == "cook"], 12),
        (lambda f: f[(f.role == "cook") & (f.group == "a")], 6),
        (lambda f: f.iloc[::-1], 24),
        (lambda f: f.assign(extra=1), 24),
        (lambda f: f[["name", "group"]], 24),
    ],
    ids=["template", "context", "context and group", "reversed", "with a column", "two columns"],
)
def test_a_part_picked_by_the_design_is_picked_again(pick, rows):
    """By template, context, group; columns may be left out or added."""
    made, _ = repeatable()
    part = pick(table())
    sample = made.like(asserted(part))
    assert len(sample.frame) == rows
    for column in {"template", "role", "group"} & set(part.columns):
        assert set(sample.frame[column]) == set(part[column])
    assert all(name.endswith("-new") for name in sample.frame["name"])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda f: f[f.reply != "reply 2"], "picked rows by something other than the design"),
        (lambda f: f.iloc[:5], "picked rows by something other than the design"),
        (lambda f: f.assign(reply="mended"), "the column 'reply' was changed"),
        (lambda f: pd.concat([f, f]), "put together in the test"),
        (lambda f: f.set_axis([f"r{at}" for at in range(len(f))]), "put together in the test"),
    ],
    ids=["by reply", "by place", "changed", "twice", "another index"],
)
def test_a_part_that_another_sample_has_no_counterpart_of_is_refused_before_anything_is_requested(
    change, text
):
    made, requests = repeatable()
    with pytest.raises(UsageError, match=text):
        made.like(asserted(change(table())))
    assert requests == []


def test_a_second_sample_without_answers_is_no_evidence():
    made, _ = repeatable(table("-new", status="error"))
    with pytest.raises(
        EndpointError, match="100 % of the trials of the second sample were never answered"
    ):
        made.like(asserted(table()))


# ---------------------------------------------------------------- what the test changed


def keyed():
    """The table with a key for each row, as trials have it."""
    frame = table()
    frame.insert(0, "key", [f"k{at}" for at in range(len(frame))])
    return frame


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda f: f, ()),
        (lambda f: f.assign(extra=1), ()),
        (lambda f: f.iloc[::-1], ()),
        (lambda f: f[f.reply != "reply 2"].reset_index(drop=True), ()),
        (lambda f: f.replace({"group": {"a": "A"}}), ("group",)),
        (lambda f: f.assign(reply=None, name="x").sample(frac=1, random_state=1), ("name", "reply")),
        (lambda f: f.merge(pd.DataFrame({"group": ["a", "b"], "side": ["l", "r"]})), ()),
        (lambda f: pd.concat([f, f.assign(reply="another")]), ("reply",)),
        (lambda f: f.drop(columns="key").assign(reply="x"), ()),
        (lambda f: pd.concat([f, f[["group"]]], axis=1), ()),
        (lambda f: f.assign(key="foreign", group="z"), ()),
    ],
    ids=[
        "nothing", "a column added", "reversed", "picked and renumbered", "renamed", "two columns, in another order",
        "merged", "put together", "without keys", "a column twice", "other trials",
    ],
)  # fmt: skip
def test_the_columns_that_a_test_changed_are_known_row_by_row(change, changed):
    """By the trial that a row says it is, whatever its place; of rows of no trial nothing is said."""
    made = Repeatable(keyed(), ["role"], lambda: None)
    assert made.changed(change(keyed())) == changed
