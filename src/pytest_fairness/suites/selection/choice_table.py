"""Which columns of a table of choices the benchmark's numbers are made from, and the groups by one of their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_fairness.analysis.choice_columns import NEITHER
from pytest_fairness.design.candidates import candidate_groups
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.statistics.arrays import require_frame
from pytest_fairness.statistics.choices import Choices, read_choices

if TYPE_CHECKING:
    import pandas as pd

AXES = ("criteria", "role", "qualifications")
GROUP = "group"
_NEEDED = ("first", "second", "chosen")
_NAMES = ("first_name", "second_name")
_CONTEXT = ("template", "signal", "temperature")

Classes = Mapping[str, Mapping[str, str]]
"""Group → protected class → its value."""


def require_choices(frame: object) -> pd.DataFrame:
    """*frame* as a table of pairwise choices with its ``arm``; where it has none, all rows are of the arm ``all``.

    Raises FrameError for a table without rows, or without the columns of a choice.
    """
    table = require_frame(frame)
    missing = [name for name in _NEEDED if name not in table.columns]
    if missing:
        raise FrameError(
            f"the frame has no column {missing[0]!r}; the benchmark reads pairwise choices, with {', '.join(_NEEDED)} "
            "(the groups as listed, and the one chosen), as the trials of @pytest.mark.fairness_pairs have them"
        )
    if table.empty:
        raise FrameError("the frame has no rows: there is no trial to tell anything from")
    if "arm" not in table.columns or table["arm"].isna().all():
        return table.assign(arm="all")
    if table["arm"].isna().any():
        raise FrameError("column 'arm': some rows have no arm; name one for each, or drop the column")
    return table


def units_column(frame: pd.DataFrame) -> str | tuple[str, str] | None:
    """What the unit of evidence is read from: both candidates' names, else the pair of them, else rows."""
    if all(name in frame.columns and frame[name].notna().all() for name in _NAMES):
        return _NAMES
    return "name" if "name" in frame.columns else None


def context_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """The context that a comparison stays within: the template, and conditions of which there are several."""
    return tuple(
        name for at, name in enumerate(_CONTEXT) if name in frame.columns and (at == 0 or frame[name].nunique() > 1)
    )


def axes_of(frame: pd.DataFrame, axes: Sequence[str] = AXES) -> tuple[str, ...]:
    """Those of *axes* that the table has, with two levels at least."""
    return tuple(axis for axis in axes if axis in frame.columns and frame[axis].nunique() > 1)


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


def groups_of(frame: pd.DataFrame) -> tuple[str, ...]:
    """All groups, in the order in which they appear."""
    return tuple(map(str, dict.fromkeys([*frame["first"], *frame["second"]])))


def classes_of(groups: Sequence[str], given: Classes | None) -> dict[str, dict[str, str]]:
    """The protected classes of each group: as *given*, else those of the shipped sets that have groups of this name.

    Raises UsageError where *given* lacks a group, or groups differ in which classes they have.
    """
    if given is None:
        sets = (candidate_groups(name) for name in ("eight_groups", "four_groups"))
        given = {group.label: group.classes for groups_of_set in sets for group in groups_of_set}
        if any(group not in given for group in groups):
            return {}
    lost = [group for group in groups if group not in given]
    if lost:
        raise UsageError(
            f"classes: nothing is said of {lost[0]!r}; give its classes, {{'gender': …}}, as of the others"
        )
    classes = {group: {str(key): str(value) for key, value in given[group].items()} for group in groups}
    kinds = sorted({tuple(sorted(known)) for known in classes.values()})
    if len(kinds) > 1:
        raise UsageError(f"classes: some groups have {kinds[0]}, others {kinds[1]}; give the same of all")
    return classes


def crossed_classes(classes: Classes) -> tuple[str, ...]:
    """Classes that are crossed with another: those by which the groups can be pooled, and have two values at least."""
    names = list(dict.fromkeys(name for known in classes.values() for name in known))
    values = {name: {known[name] for known in classes.values()} for name in names}
    return tuple(name for name in names if 1 < len(values[name]) < len(classes))


def values_of(classes: Classes, by: str) -> dict[str, str]:
    """Group → its value in class *by*, or the group itself."""
    return {group: group if by == GROUP else known[by] for group, known in classes.items()}


def by_class(frame: pd.DataFrame, by: str, classes: Classes) -> pd.DataFrame:
    """The choices between candidates who differ in class *by*, with its values for groups."""
    value = values_of(classes, by)
    first, second = frame["first"].map(value), frame["second"].map(value)
    chosen = frame["chosen"].map({**value, NEITHER: NEITHER})
    table = frame.assign(first=first, second=second, chosen=chosen.astype(object).where(chosen.notna(), None))
    if "repetition" in table.columns:
        # Pairs of groups that are one pair of the class may be asked with the same names (by label alone all groups
        # have the same neutral ones, the placebo has stand-ins): trials of their own, although they look alike now.
        table = table.assign(repetition=[f"{at}" for at in range(len(table))])
    return table[first.ne(second).to_numpy()]
