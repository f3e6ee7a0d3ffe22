"""The trials of a test, stage by stage: what of a larger stage corresponds to the table asserted on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pytest

from pytest_fairness.design.stages import Stages
from pytest_fairness.errors import StageUnfinished, UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.pytest_layer.staged_trials import StagedTrials, names_handed_out
from pytest_fairness.running_test import Assertion

Change = Callable[[pd.DataFrame], pd.DataFrame]
STAGES = Stages(size=8, base=4, per_name=20, declared=(2, 4, 8))


def table(names: int = 2, fewer: Mapping[tuple[str, str], int] | None = None) -> pd.DataFrame:
    """The trials of the first *names* of each group."""
    rows = [
        (f"{template}/{role}/{group}{name}", template, group, f"{group}{name}", role, name)
        for template in ("t1", "t2")
        for role in ("nurse", "cook")
        for group in ("a", "b")
        for name in range(1, (fewer or {}).get(("group", group), names) + 1)
    ]
    frame = pd.DataFrame(rows, columns=["key", "template", "group", "name", "role", "draw"])
    frame["reply"] = "reply " + frame["name"].str[1:]
    frame["status"] = "answered"
    frame.attrs["pytest_fairness"] = {"protected_classes": ("group",)}
    return frame


def asserted(frame: pd.DataFrame, outcome: str = "reply") -> Assertion:
    return Assertion(
        analysis="disparity", arguments={"frame": frame, "outcome": outcome, "by": "group"}
    )


class Asked:
    """Asks stages, and keeps which."""

    def __init__(self, status: str = "answered") -> None:
        self.stages: list[tuple[int, dict[tuple[str, str], int]]] = []
        self._status = status

    def __call__(self, names: int, fewer: Mapping[tuple[str, str], int]) -> pd.DataFrame:
        status = "answered"
        if self.stages:
            status = self._status
        self.stages.append((names, dict(fewer)))
        return table(names, fewer).assign(status=status)


def remake_by(change: Change) -> Callable[[Assertion, pd.DataFrame], Any]:
    """What a test that makes its table by *change* makes of other trials."""
    return lambda _assertion, trials: change(trials)


def staged(
    change: Change | None = lambda frame: frame, stages: Stages = STAGES, status: str = "answered"
) -> tuple[StagedTrials, Asked]:
    asked = Asked(status)
    remake = None
    if change is not None:
        remake = remake_by(change)
    names = names_handed_out(stages, remake)
    made = StagedTrials(stages, asked, handed_out=names, context=["role"], remake=remake)
    return made, asked


@pytest.mark.parametrize(
    ("change", "stages", "names"),
    [
        (lambda frame: frame, STAGES, 2),
        (None, STAGES, 4),
        (lambda frame: frame, Stages(size=4, base=4, per_name=20, declared=(4,)), 4),
    ],
    ids=["first", "cannot be run again", "one look"],
)
def test_a_test_is_handed_its_first_stage_or_the_base_design(
    change: Change | None, stages: Stages, names: int
) -> None:
    made, asked = staged(change, stages)
    assert asked.stages == [(names, {})]
    assert len(made.handed_out) == len(table(names))
    looks = made.looks(asserted(made.handed_out), OutcomeKind.NUMERIC, 30)
    assert looks == {2: (2, 4, 8), 4: (4,)}[names]


def test_a_stage_is_asked_once_and_handed_out_whole() -> None:
    made, asked = staged()
    part = made.handed_out.copy()
    assert made.table(asserted(part), 2, {}).equals(part)
    assert asked.stages == [(2, {})]
    part["passed"] = True
    for _ in range(2):
        assert len(made.table(asserted(part), 4, {})) == len(table(4))
    fewer = {("group", "b"): 4}
    assert made.table(asserted(part), 8, fewer).groupby("group").size().to_dict() == {
        "a": 32,
        "b": 16,
    }
    assert asked.stages == [(2, {}), (4, {}), (8, fewer)]


@pytest.mark.parametrize(
    ("pick", "rows"),
    [
        (lambda f: f[f.template == "t1"], 16),
        (lambda f: f[f.role == "cook"], 16),
        (lambda f: f[(f.role == "cook") & (f.group == "a")], 8),
        (lambda f: f.iloc[::-1], 32),
        (lambda f: f.assign(extra=1), 32),
        (lambda f: f[["name", "group"]], 32),
    ],
    ids=["template", "context", "context and group", "reversed", "with a column", "two columns"],
)
def test_a_part_picked_by_the_design_is_picked_again(pick: Change, rows: int) -> None:
    """By template, context, group; columns may be left out or added, and the test is not run again."""

    def refuse(_frame: pd.DataFrame) -> pd.DataFrame:
        raise UsageError("run again")

    made, _ = staged(refuse)
    part = pick(made.handed_out)
    sample = made.table(asserted(part), 4, {})
    assert len(sample) == rows
    for column in {"template", "role", "group"} & set(part.columns):
        assert set(sample[column]) == set(part[column])
    assert set(sample["draw"]) == {1, 2, 3, 4}


OTHERWISE: dict[str, tuple[Change, str]] = {
    "by reply": (lambda f: f[f.reply != "reply 2"], "picked rows by something other than the"),
    "by place": (lambda f: f.iloc[:5], "picked rows by something other than the design"),
    "changed": (lambda f: f.assign(reply="mended"), "the column 'reply' was changed"),
    "twice": (lambda f: pd.concat([f, f]), "put together in the test"),
    "another index": (
        lambda f: f.set_axis([f"r{place}" for place in range(len(f))]),
        "put together in the test",
    ),
    "a column of its own": (lambda f: f.assign(mine=1), "made the column 'mine' itself"),
}


@pytest.mark.parametrize("how", OTHERWISE)
def test_a_table_made_otherwise_is_made_again_or_not_at_all(how: str) -> None:
    """As the test makes it of the larger stage; without that, of the base design as it is."""
    change, why = OTHERWISE[how]
    outcome = "reply"
    if how == "a column of its own":
        outcome = "mine"
    made, asked = staged(change)
    assertion = asserted(change(made.handed_out), outcome)
    again = made.table(assertion, 4, {})
    assert again["name"].tolist() == change(table(4))["name"].tolist()
    assert set(again["name"]) - set(made.handed_out["name"])

    def fails(_frame: pd.DataFrame) -> pd.DataFrame:
        raise UsageError("it raised ValueError: only once")

    made, asked = staged(fails)
    with pytest.raises(UsageError, match=f"{why}.* and when the test was run again it raised"):
        made.table(assertion, 4, {})
    made, asked = staged(None)
    part = change(made.handed_out)
    assert made.base_table(asserted(part)) is part
    assert asked.stages == [(4, {})]


KEPT = table(2)
LACKS: dict[str, tuple[Change, str]] = {
    "nothing": (lambda _f: KEPT[:0], "has no rows"),
    "no column": (lambda f: f.drop(columns="reply"), "lacks the columns reply"),
    "other trials": (lambda f: f.assign(key="z" + f.key), "has rows of other trials"),
    "the first names": (lambda _f: KEPT, "has no row of a new name"),
}


@pytest.mark.parametrize("how", LACKS)
def test_a_table_that_is_not_of_the_larger_stage_is_refused(how: str) -> None:
    change, why = LACKS[how]
    made, _ = staged(change)
    part = made.handed_out.assign(reply="mended")
    for ask in (lambda: made.table(asserted(part), 4, {}), lambda: made.base_table(asserted(part))):
        with pytest.raises(UsageError, match=why):
            ask()


def test_a_table_of_no_names_is_judged_once_at_the_base_design() -> None:
    """Where a row does not say whose it is, it is not known what belongs to a look."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.groupby(["group", "template"], as_index=False)["reply"].first()

    made, asked = staged(change)
    assertion = asserted(change(made.handed_out))
    assert made.looks(assertion, OutcomeKind.NUMERIC, 30) == (4,)
    assert len(made.table(assertion, 4, {})) == 4
    assert asked.stages == [(2, {}), (4, {})]


def test_an_aggregated_table_says_the_place_of_each_name() -> None:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.groupby(["group", "name"], as_index=False)["reply"].first()

    made, _ = staged(change)
    assertion = asserted(change(made.handed_out))
    assert made.looks(assertion, OutcomeKind.NUMERIC, 30) == (2, 4, 8)
    for names in (2, 4):
        again = made.table(assertion, names, {})
        assert sorted(again["draw"]) == sorted([*range(1, names + 1)] * 2)


def test_a_stage_that_was_not_run_to_its_end_is_not_judged() -> None:
    made, _ = staged(status="not_run")
    with pytest.raises(StageUnfinished, match="32 trials of the stage were not run"):
        made.table(asserted(made.handed_out), 4, {})


def test_a_baseline_reads_the_base_design() -> None:
    """Whatever stage the test was handed, and whatever it made of it."""
    made, _ = staged(lambda frame: frame.assign(reply="mended"))
    assert set(made.of_base(asserted(made.handed_out))["draw"]) == {1, 2, 3, 4}
    changed = made.of_base(asserted(made.handed_out.assign(reply="mended")))
    assert (set(changed["draw"]), set(changed["reply"])) == ({1, 2, 3, 4}, {"mended"})


# ---------------------------------------------------------------- what the test changed


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
@pytest.mark.parametrize("names", [2, 4])
def test_the_columns_that_a_test_changed_are_known_row_by_row(
    change: Change, changed: tuple[str, ...], names: int
) -> None:
    """By the trial that a row says it is, whatever its place and stage; of rows of no trial nothing
    is said.
    """
    made, _ = staged()
    stage = made.table(asserted(made.handed_out), names, {})
    assert made.changed(change(stage)) == changed
