"""What to know of a session's designs before it asks: that one is a sample, how alike its texts are, and what it can
never decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import UsageError
from pytest_fairness.pytest_layer import collection
from pytest_fairness.reports.escaping import line

if TYPE_CHECKING:
    import pytest

    from pytest_fairness.design.grid import Grid
    from pytest_fairness.design.pairs import PairGrid
    from pytest_fairness.model import Cell
    from pytest_fairness.pytest_layer.plans import Planned

_LOOKED_AT = 400
"""Cells of a design whose texts are compared: enough for means of length, and made in some milliseconds."""
_NAMED = 3
_ENOUGH_NAMES, _ENOUGH_TRIALS = 10, 50


def remarks(grids: Mapping[Any, Planned], items: Sequence[pytest.Item]) -> list[str]:
    """A line for each thing to know of the designs in *grids* that *items* pull from, with the tests it is true of."""
    asked = [item for item in items if not item.get_closest_marker("skip")]
    keys = dict.fromkeys(collection.grid_key(item) for item in asked)
    cellwise = {selection[0] for selection in collection.selected_cells(asked)}
    told: dict[str, list[str]] = {}
    for key in keys:
        if key in grids:
            undecided = () if key in cellwise else undecidable(grids[key].grid)
            for remark in (*remarks_of(grids[key].grid), *undecided):
                told.setdefault(remark, []).append(key[1].rpartition("::")[2])
    return [line(f"fairness: {_tests(tests)}: {remark}") for remark, tests in told.items()]


def _tests(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def remarks_of(grid: Grid | PairGrid) -> Iterator[str]:
    """A sample is always told; of the texts, what :mod:`pytest_fairness.design.parity` notes."""
    from pytest_fairness.design.grid import Grid

    if grid.positions is not None:
        yield f"a balanced sample is asked, {grid.size:,} of {grid.full_size:,} cells"
    if isinstance(grid, Grid):
        classes = dict.fromkeys(name for unit in grid.units for name in unit.swapped)
        cells = _of_grid(grid)
    else:
        classes = {"group": None}
        cells = _of_pairs(grid)
    for by in classes:
        yield from _parity(cells, by)


def undecidable(grid: Grid | PairGrid) -> Iterator[str]:
    """What a comparison of the groups of *grid* can never conclude, with what it takes: of scores, for which outcome a
    test asks is not known before it runs, and other outcomes need more."""
    from pytest_fairness.design.grid import Grid

    if not isinstance(grid, Grid):
        return
    for by, names, fewest, groups in _classes(grid):
        trials = fewest * grid.calls // len(grid.units)
        if groups < 2 or (names >= _ENOUGH_NAMES and trials >= _ENOUGH_TRIALS):
            continue  # a PASS and a FAIL are in reach: statistics are not imported to say so
        from pytest_fairness.analysis.planning import assess_design

        design = assess_design(
            groups=groups,
            names=names,
            trials=max(trials, 1),
            templates=len(grid.templates),
            repetitions=grid.repetitions,
            repeats=grid.parameters.get("temperature") == 0,
        )
        if not design.can_pass:
            verdicts = "PASS" if design.can_fail else "PASS or FAIL"
            takes = f"; a PASS is likely with {design.needs}" if design.needs else ""
            yield f"a comparison by {by} can never {verdicts}: {design.why}{takes}"
        elif not design.can_fail:
            yield f"a comparison by {by} can never FAIL: {design.why}"


def _classes(grid: Grid) -> Iterator[tuple[str, int, int, int]]:
    """Each protected class: names and units of the group with the fewest, and the number of groups."""
    found: dict[str, dict[str, list[str | None]]] = {}
    for unit in grid.units:
        for by, group in unit.swapped.items():
            found.setdefault(by, {}).setdefault(group, []).append(unit.cluster)
    for by, groups in found.items():
        names = min(len(set(clusters) - {None}) for clusters in groups.values())
        yield by, names, min(map(len, groups.values())), len(groups)


def _parity(cells: Sequence[Cell], by: str) -> Sequence[str]:
    from pytest_fairness.design.parity import group_parity

    try:
        return group_parity(cells, by).notes
    except UsageError:
        return ()  # texts that are meant to be the same: a placebo, or scrubbed before they are sent


def _of_grid(grid: Grid) -> list[Cell]:
    """Every group and name in the first context of each template; of a sample, its beginning."""
    if grid.positions is not None:
        return list(islice(grid, _LOOKED_AT))
    block = grid.full_size // len(grid.templates)
    chosen = (template * block + unit for template in range(len(grid.templates)) for unit in range(len(grid.units)))
    return [grid[index] for index in islice(chosen, _LOOKED_AT)]


def _of_pairs(grid: PairGrid) -> list[Cell]:
    """The beginning, of one signal condition and one arm."""
    first = grid[0]
    return [cell for cell in islice(grid, _LOOKED_AT) if (cell.arm, cell.signal) == (first.arm, first.signal)]
