"""From a ``fairness_grid`` marker to pytest items: one of the whole grid, or one a cell, each tier on its own."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_fairness.errors import UsageError
from pytest_fairness.guest import GRID, PULLS
from pytest_fairness.model import Cell

if TYPE_CHECKING:
    from pytest_fairness.design.grid import Grid
    from pytest_fairness.frame import Design
    from pytest_fairness.justifications import Justification
    from pytest_fairness.model import JSON

_NO_SYSTEM_PROMPT = "tier 1 needs a system prompt: give fairness_grid(system=...)"


@dataclass(frozen=True, slots=True)
class PlannedGrid:
    """One test's grid as the tiers send it."""

    grid: Grid

    @property
    def repetitions(self) -> int:
        return self.grid.repetitions

    @property
    def has_system_prompt(self) -> bool:
        return self.grid.system is not None

    def cells(self, tier: int, indices: Sequence[int] | None = None) -> list[Cell]:
        """The cells (those at *indices*, if given) as tier *tier* sends them: tier 2 has no system prompt."""
        chosen = iter(self.grid) if indices is None else (self.grid[index] for index in indices)
        if tier == 1:
            return [replace(cell, tier=1) for cell in chosen]
        return [replace(cell, tier=2, system=None) for cell in chosen]

    def design(self, endpoint: str, identity: Mapping[str, JSON], cells: Sequence[Cell]) -> Design:
        """What a baseline has to know of the grid, to name what changed since it was approved."""
        from pytest_fairness.frame import Design

        asked = [cell.id for cell in cells], self.repetitions, sorted(self.grid.parameters.items())
        return Design(
            endpoint=endpoint,
            identity=identity,
            protected_classes=tuple(dict.fromkeys(group for cell in cells for group in cell.groups)),
            templates={template.id: template.text for template in self.grid.templates},
            digest=hashlib.sha256(repr(asked).encode()).hexdigest()[:16],
        )


def key_of(node: Any, name: str) -> tuple[str, str]:
    """Identifies a test function across its parameters: the node id of its parent, and its name."""
    return node.parent.nodeid, name


def nodeid_of(item: pytest.Item) -> str:
    """The node id as it is without xdist, which adds ``@group`` to it under ``--dist loadgroup``."""
    return (
        item.nodeid.rpartition("@")[0]
        if item.get_closest_marker("xdist_group") and "@" in item.nodeid
        else item.nodeid
    )


def expand(metafunc: pytest.Metafunc, tier: str) -> PlannedGrid | None:
    """Parametrise a test from its ``fairness_grid`` marker; None where it has none.

    A grid that makes no sense is a collection error which names the test and the mend.
    """
    marker = metafunc.definition.get_closest_marker(GRID)
    wanted = PULLS.intersection(metafunc.fixturenames)
    if marker is None:
        if wanted:
            _refuse(metafunc, f"asks for {sorted(wanted)[0]!r} but has no @pytest.mark.{GRID}(...)")
        return None
    if not wanted:
        _refuse(
            metafunc,
            f"has a {GRID} but asks for neither 'trials' (the whole grid) nor 'cell' (one at a time)",
        )
    if wanted == PULLS:
        _refuse(metafunc, "asks for both 'trials' and 'cell'; write two tests: they share their replies")
    grid = _planned(metafunc, marker)
    tiers, ids = _tiers(grid, tier)
    metafunc.parametrize("tier", tiers, ids=ids, indirect=True)
    if "cell" in wanted:
        cells = [cell.id for cell in grid.grid]
        metafunc.parametrize("cell", range(len(cells)), ids=cells, indirect=True)
    return grid


def _planned(metafunc: pytest.Metafunc, marker: pytest.Mark) -> PlannedGrid:
    try:
        return PlannedGrid(_plan(marker, Path(metafunc.definition.path).parent, metafunc.config.rootpath))
    except UsageError as error:
        problem = str(error)
    _refuse(metafunc, problem)  # outside the except block: one error is told, not two


def _plan(marker: pytest.Mark, folder: Path, root: Path) -> Grid:
    from pytest_fairness.design.grid import expand_grid

    if marker.args:
        raise UsageError(f"{GRID} takes keyword arguments only, for example template=..., groups=...")
    arguments = {key: _located(value, folder, root) for key, value in marker.kwargs.items()}
    arguments.setdefault("personas_folder", own_personas(root))
    try:
        inspect.signature(expand_grid).bind(**arguments)
    except TypeError as error:
        raise UsageError(f"{GRID}: {error}") from None
    return expand_grid(**arguments)


def own_personas(root: Path) -> Path | None:
    """The project's own ``personas/`` folder, if it has one: it extends what ships."""
    from pytest_fairness.design.resources import shipped_folder

    folder = root / "personas"
    # In a checkout of this package the two are one and the same.
    return folder if folder.is_dir() and folder.resolve() != shipped_folder() else None


def _located(value: Any, folder: Path, root: Path) -> Any:
    """Relative paths are looked for beside the test, then at the root directory."""
    if isinstance(value, list):
        return [_located(item, folder, root) for item in value]
    if not isinstance(value, Path) or value.is_absolute():
        return value
    return next((place / value for place in (folder, root) if (place / value).exists()), folder / value)


def _tiers(grid: PlannedGrid, tier: str) -> tuple[list[Any], list[Any]]:
    """Parameters and ids of the ``tier`` axis; a single tier leaves the test's id as it is."""
    hidden = [pytest.HIDDEN_PARAM]
    if tier == "all" and grid.has_system_prompt:
        return [1, 2], ["tier1", "tier2"]
    if tier == "1" and not grid.has_system_prompt:
        return [pytest.param(1, marks=pytest.mark.skip(reason=_NO_SYSTEM_PROMPT))], hidden
    if tier in ("1", "auto") and grid.has_system_prompt:
        return [1], hidden
    return [2], hidden


def _refuse(metafunc: pytest.Metafunc, problem: str) -> NoReturn:
    pytest.fail(f"{metafunc.definition.nodeid}: {problem}", pytrace=False)


def selected_cells(items: Sequence[pytest.Item]) -> dict[tuple[tuple[str, str], int], tuple[int, ...]]:
    """Which cells of which grid (and tier) the selected per-cell items will ask for."""
    chosen: dict[tuple[tuple[str, str], int], set[int]] = {}
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if "cell" in parameters and item.get_closest_marker(GRID) is not None:
            key = key_of(item, getattr(item, "originalname", item.name)), parameters["tier"]
            chosen.setdefault(key, set()).add(parameters["cell"])
    return {key: tuple(sorted(indices)) for key, indices in chosen.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What the ``fairness`` marker says of a test, or what stands in for it."""

    id: str
    description: str
    justifications: tuple[Justification, ...]


def labels_of(item: pytest.Item) -> Labels:
    """Id, description and justifications of *item*; the nearest marker wins. Raises UsageError for unknown keys."""
    from pytest_fairness.justifications import parse

    keywords: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("fairness"))):
        keywords |= marker.kwargs
    unknown = set(keywords) - {"id", "description", "justification"}
    if unknown:
        raise UsageError(
            f"{item.nodeid}: @pytest.mark.fairness has no {sorted(unknown)[0]!r}; "
            "it takes id, description and justification"
        )
    function = getattr(item, "function", None)
    docstring = (inspect.getdoc(function) or "").strip().partition("\n")[0] if function else ""
    name = getattr(item, "originalname", item.name)
    given = keywords.get("justification")
    return Labels(
        id=str(keywords.get("id") or nodeid_of(item)),
        description=str(
            keywords.get("description") or docstring or name.removeprefix("test_").replace("_", " ")
        ),
        justifications=() if given is None else (parse(given, f"{item.nodeid}: justification"),),
    )
