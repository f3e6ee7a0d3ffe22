"""The table of choices that the benchmark's numbers are made from, by group or by a class that
groups share.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_fairness.analysis.choice_columns import NEITHER
from pytest_fairness.statistics.choices import Choices, read_choices

if TYPE_CHECKING:
    import pandas as pd

AXES = ("criteria", "role", "qualifications")
GROUP = "group"
_NAMES = ("first_name", "second_name")

Classes = Mapping[str, Mapping[str, str]]
"""Group → protected class → its value; no classes where they are not known."""


def units_column(frame: pd.DataFrame) -> str | tuple[str, str] | None:
    """Return what the unit of evidence is read from: both candidates' names, else the pair of them,
    else rows.
    """
    if all(name in frame.columns and frame[name].notna().all() for name in _NAMES):
        return _NAMES
    if "name" in frame.columns:
        return "name"
    return None


def context_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """The context that a comparison stays within: the template, and conditions of which there are
    several.
    """
    columns = []
    if "template" in frame.columns:
        columns.append("template")
    for name in ("signal", "temperature"):
        if name in frame.columns and frame[name].nunique() > 1:
            columns.append(name)
    return tuple(columns)


def choices_of(frame: pd.DataFrame) -> Choices:
    """The pairwise choices of *frame*. Raises FrameError."""
    return read_choices(
        frame,
        first="first",
        second="second",
        chosen="chosen",
        neither=NEITHER,
        cluster=units_column(frame),
        block=context_columns(frame),
    )


def crossed_classes(classes: Classes) -> tuple[str, ...]:
    """Classes that are crossed with another: those by which the groups can be pooled, and have two
    values at least.
    """
    values: dict[str, set[str]] = {}
    for classes_of_group in classes.values():
        for name, value in classes_of_group.items():
            values.setdefault(name, set()).add(value)
    return tuple(name for name, value in values.items() if 1 < len(value) < len(classes))


def values_of(classes: Classes, by: str) -> dict[str, str]:
    """Group → its value in class *by*, or the group itself."""
    if by == GROUP:
        return dict(zip(classes, classes, strict=True))
    return {group: classes_of_group[by] for group, classes_of_group in classes.items()}


def by_class(frame: pd.DataFrame, by: str, classes: Classes) -> pd.DataFrame:
    """The choices between candidates who differ in class *by*, with its values for groups."""
    value = values_of(classes, by)
    first = frame["first"].map(value)
    second = frame["second"].map(value)
    chosen = frame["chosen"].map({**value, NEITHER: NEITHER})
    table = frame.assign(
        first=first, second=second, chosen=chosen.astype(object).where(chosen.notna(), None)
    )
    if "repetition" in table.columns:
        # Pairs of groups that are one pair of the class may be asked with the same names (by label
        # alone all groups have the same neutral ones, the placebo has stand-ins): trials of their
        # own, although they look alike now.
        table = table.assign(repetition=list(map(str, range(len(table)))))
    return table[first.ne(second).to_numpy()]
