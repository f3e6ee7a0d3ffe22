"""The same grid with names that it has not used: what a second, independent sample is asked with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_fairness.design.grid import FEW_NAMES, Grid, expand_grid
from pytest_fairness.design.pairs import PairGrid, expand_pairs
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
            return replace(wider, units=units, repetitions=grid.repetitions)
        if len(units) == len(grid.units):  # else the positions of a sample would mean other cells
            return replace(wider, units=units, positions=grid.positions, repetitions=grid.repetitions)
    return None


def fewest_names(grid: Grid | PairGrid) -> int:
    """How many different names the group with the fewest has."""
    if isinstance(grid, PairGrid):
        return min(roster.distinct for roster in grid.rosters)
    names: dict[tuple[tuple[str, str], ...], set[str | None]] = {}
    for unit in grid.units:
        names.setdefault(tuple(sorted(unit.swapped.items())), set()).add(unit.cluster)
    return min(map(len, names.values()), default=0)


def other_candidates(grid: PairGrid, arguments: Mapping[str, Any]) -> PairGrid | None:
    """*grid*, made by ``expand_pairs(**arguments)``, with candidates that it has not used, as many of each group.

    None where the candidates were given in the test, or the banks have not as many names again; and where an arm draws
    its stand-ins from the same names.
    """
    if any(arm.placebo for arm in grid.arms):
        return None
    used = {
        (label, candidate.name)
        for roster in grid.rosters
        for label, candidates in roster.groups.items()
        for candidate in candidates[: grid.tuples]
    }
    try:
        wider = expand_pairs(**{**arguments, "names": 2 * grid.tuples, "repetitions": 2 * grid.tuples, "sample": None})
    except UsageError:
        return None
    rosters = []
    for roster in wider.rosters:
        left = {
            label: tuple(one for one in candidates if (label, one.name) not in used)[: grid.tuples]
            for label, candidates in roster.groups.items()
        }
        if any(
            len(candidates) < grid.tuples or any(one.name is None for one in candidates) for candidates in left.values()
        ):
            return None
        rosters.append(replace(roster, groups=left))
    return replace(grid, rosters=tuple(rosters))


def _sizes(units: Sequence[Unit]) -> Counter[tuple[tuple[str, str], ...]]:
    """How many units each combination of groups has, under each signal."""
    return Counter((*sorted(unit.swapped.items()), ("signal", unit.signal or "")) for unit in units)
