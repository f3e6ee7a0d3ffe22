"""What was asked of whom: the head of the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_fairness.statistics.selection_rates import units_of
from pytest_fairness.suites.selection.reading import Classes, read
from pytest_fairness.suites.selection.results import RunFacts

if TYPE_CHECKING:
    import pandas as pd


def facts_of(
    frame: pd.DataFrame,
    choosing: pd.DataFrame,
    groups: tuple[str, ...],
    classes: Classes,
    arms: tuple[str, ...],
    names_design: str | None,
) -> RunFacts:
    """The facts of the whole *frame*; ``choosing`` are the rows of arms that choose: names are read from those."""
    units = units_of(read(choosing[choosing["arm"] == choosing["arm"].iloc[0]]))
    names = _names(choosing, groups)
    if names_design is None:
        if units.count < 2:
            names_design = "one name a group: what is found is about these names as much as about the groups"
        elif units.sets is not None:
            names_design = f"{units.count} sets of names, which are independent of each other"
        else:
            names_design = f"{names} names a group, each of which meets several others"
    configuration = [name for name in ("arm", "first", "second", "template", "signal") if name in choosing.columns]
    return RunFacts(
        endpoint=", ".join(_values(frame, "endpoint")),
        models=_values(frame, "model"),
        simulated=_any(frame, "simulated"),
        replayed=_any(frame, "replayed"),
        groups=groups,
        classes=classes,
        criteria=_values(frame, "criteria"),
        roles=_values(frame, "role"),
        qualifications=_values(frame, "qualifications"),
        arms=arms,
        signals=_values(frame, "signal"),
        names_design=names_design,
        names=names,
        repetitions=int(choosing.groupby(configuration, dropna=False).size().max()),
        trials=len(frame),
        requests=requests_of(frame),
        cost=cost_of(frame),
    )


def _names(frame: pd.DataFrame, groups: Sequence[str]) -> int:
    if not {"first_name", "second_name"} <= set(frame.columns):
        return 0
    seats = (("first", "first_name"), ("second", "second_name"))
    return min(
        len({name for seat, named in seats for name in frame.loc[frame[seat] == group, named].dropna()})
        for group in groups
    )


def _values(frame: pd.DataFrame, column: str) -> tuple[str, ...]:
    return tuple(map(str, frame[column].dropna().unique())) if column in frame.columns else ()


def _any(frame: pd.DataFrame, column: str) -> bool:
    return column in frame.columns and bool(frame[column].fillna(False).astype(bool).any())


def requests_of(frame: pd.DataFrame) -> int:
    """The requests of all steps; a trial without a number of its own is one."""
    return int(frame["requests"].fillna(1).sum()) if "requests" in frame.columns else len(frame)


def cost_of(frame: pd.DataFrame) -> float | None:
    """None where any trial's cost is not known: a part of the sum would pass for the whole."""
    if "cost" not in frame.columns or frame["cost"].isna().any():
        return None
    return float(frame["cost"].astype(float).sum())
