"""The same grid with names that it has not used: what a second, independent sample is asked with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_fairness.design.grid import FEW_NAMES, Grid, expand_grid
from pytest_fairness.design.units import Unit
from pytest_fairness.errors import UsageError


def other_names(grid: Grid, arguments: Mapping[str, Any]) -> Grid | None:
    """*grid*, made by ``expand_grid(**arguments)``, with as many other names, or as many as are left.

    Every group gets the same number: that of *grid*, or the most that the banks have left, at least ten (or all that
    *grid* has, if those are fewer). None where there are not so many, where names are not what varies (personas,
    words), and where the names were given in the test and are used up.
    """
    if arguments.get("persona") is not None:
        return None
    used = {unit.cluster for unit in grid.units}
    size = min(_sizes(grid.units).values())
    for more in range(size, min(size, FEW_NAMES) - 1, -1):
        try:
            # A smaller number of names is the beginning of a larger one, so the rest is new.
            wider = expand_grid(**{**arguments, "names": size + more, "sample": None})
        except UsageError:
            continue
        units = tuple(unit for unit in wider.units if unit.cluster not in used)
        if len(set(_sizes(units).values())) != 1 or _sizes(units).keys() != _sizes(grid.units).keys():
            continue
        if grid.positions is None:
            return replace(wider, units=units)
        if len(units) == len(grid.units):  # else the positions of a sample would mean other cells
            return replace(wider, units=units, positions=grid.positions)
    return None


def fewest_names(units: Sequence[Unit]) -> int:
    """How many different names the group with the fewest has."""
    names: dict[tuple[tuple[str, str], ...], set[str | None]] = {}
    for unit in units:
        names.setdefault(tuple(sorted(unit.swapped.items())), set()).add(unit.cluster)
    return min(map(len, names.values()), default=0)


def _sizes(units: Sequence[Unit]) -> Counter[tuple[tuple[str, str], ...]]:
    """How many units each combination of groups has, under each signal."""
    return Counter((*sorted(unit.swapped.items()), ("signal", unit.signal or "")) for unit in units)
