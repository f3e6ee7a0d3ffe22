"""The demographic grid: templates × context × groups and names, as cells.

A grid is checked when it is made and expanded when it is read: its size is known without making a cell, and
each cell is made when it is asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, prod
from pathlib import Path
from typing import overload

from pytest_fairness.design.axes import Axis, axes
from pytest_fairness.design.checks import check_grid
from pytest_fairness.design.conveyance import Sources, conditions, group_axes
from pytest_fairness.design.name_banks import NameBanks
from pytest_fairness.design.personas import Persona, PersonaMatrix
from pytest_fairness.design.rendering import render
from pytest_fairness.design.sampling import positions
from pytest_fairness.design.signals import Signals
from pytest_fairness.design.slugs import join
from pytest_fairness.design.templates import Template, TemplateLike, templates
from pytest_fairness.design.units import Unit, group_units, persona_units
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Cell

FEW_NAMES = 10
FEWEST_REPETITIONS = 2
RECOMMENDED_TRIALS = 100
"""Trials a group from which most comparisons can be judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid(Sequence[Cell]):
    """Every combination, as a sequence of cells that are made when they are read.

    The order is templates, then context, then units; the engine shuffles it. ``repetitions`` is how often
    each cell is asked, ``parameters`` what is sent with it.
    """

    templates: tuple[Template, ...]
    axes: tuple[Axis, ...]
    units: tuple[Unit, ...]
    system: Template | None
    name_slot: str
    repetitions: int
    parameters: Mapping[str, JSON]
    positions: tuple[int, ...] | None = None

    @property
    def cells(self) -> Sequence[Cell]:
        """The cells; the same as the grid itself."""
        return self

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.full_size if self.positions is None else len(self.positions)

    @property
    def full_size(self) -> int:
        """How many cells there are without sampling."""
        return len(self.templates) * prod(len(axis.texts) for axis in self.axes) * len(self.units)

    @property
    def calls(self) -> int:
        """How many trials: cells times repetitions."""
        return self.size * self.repetitions

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Cell]:
        return (self._cell(position) for position in range(self.size))

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> list[Cell]: ...
    def __getitem__(self, index: int | slice) -> Cell | list[Cell]:
        if isinstance(index, slice):
            return [self._cell(position) for position in range(*index.indices(self.size))]
        if not -self.size <= index < self.size:
            raise IndexError(index)
        return self._cell(index % self.size)

    def plan(self) -> Iterator[tuple[Cell, int]]:
        """Every trial: a cell and the number of its repetition, from 0."""
        return ((cell, repetition) for cell in self for repetition in range(self.repetitions))

    def _cell(self, index: int) -> Cell:
        position = index if self.positions is None else self.positions[index]
        position, unit = divmod(position, len(self.units))
        choices = []
        for axis in reversed(self.axes):
            position, choice = divmod(position, len(axis.texts))
            choices.append(choice)
        return make_cell(self, self.templates[position], tuple(reversed(choices)), self.units[unit])

    def describe(self) -> str:
        """The size in words, a line each, with what deserves a second thought."""
        clusters = len({unit.cluster for unit in self.units})
        parts = [f"{len(self.templates)} template{'s' * (len(self.templates) != 1)}"]
        parts += [f"{len(axis.texts)} {axis.name}" for axis in self.axes]
        parts.append(f"{len(self.units)} combinations of group and name")
        lines = [
            f"{' × '.join(parts)} = {self.full_size:,} cells",
            f"× {self.repetitions} repetitions = {self.calls:,} calls",
        ]
        if self.positions is not None:
            lines.insert(1, f"of which a balanced sample of {self.size:,} is asked")
        groups = {tuple(unit.swapped.items()) for unit in self.units if unit.swapped}
        fewest = min(
            (len({u.cluster for u in self.units if tuple(u.swapped.items()) == group}) for group in groups),
            default=clusters,
        )
        if fewest < FEW_NAMES:
            lines.append(
                f"only {fewest} name{'s' * (fewest != 1)} a group: with under {FEW_NAMES}, what is found "
                "may be about "
                "the names; more names do more than more repetitions"
            )
        return "\n".join(lines)


def make_cell(grid: Grid, template: Template, choices: Sequence[int], unit: Unit) -> Cell:
    """The cell of one template, one choice an axis, and one unit."""
    context = {axis.name: axis.labels[choice] for axis, choice in zip(grid.axes, choices, strict=True)}
    values: dict[str, str] = dict(unit.values)
    for axis, choice in zip(grid.axes, choices, strict=True):
        values.update(axis.values(choice))
    prompt, signals = render(template, unit, values, grid.name_slot)
    system = None
    if grid.system is not None:
        system, in_system = render(grid.system, unit, values, grid.name_slot, needs_labels=False)
        signals = {**in_system, **signals}
    id_parts = [axis.slugs[choice] for axis, choice in zip(grid.axes, choices, strict=True)]
    return Cell(
        id=join([template.id, *id_parts, *unit.parts]),
        template=template.id,
        turns=(prompt,),
        groups=unit.groups,
        name=unit.cluster,
        persona=unit.persona,
        context=context,
        attributes=unit.attributes,
        system=system,
        tier=2 if system is None else 1,
        signal=unit.signal,
        signals=signals,
    )


def expand_grid(
    *,
    template: TemplateLike | Iterable[TemplateLike] | Mapping[str, str | Path],
    groups: Mapping[str, object] | None = None,
    persona: str | Persona | Iterable[Persona] | None = None,
    names: int | None = None,
    context: Mapping[str, object] | None = None,
    signal: str | Sequence[str] = "name",
    repetitions: int | None = None,
    system: str | None = None,
    parameters: Mapping[str, JSON] | None = None,
    name_slot: str = "name",
    seed: int = 0,
    sample: int | None = None,
    personas_folder: Path | None = None,
    banks: NameBanks | None = None,
    signals: Signals | None = None,
    **axis: object,
) -> Grid:
    """The grid of *template* × context × *groups* and names, or personas.

    - ``template``: a text, a Path, a list of them (ids ``t1``, ``t2`` … or the file's stem), or ``{id:
      text}``.
    - ``groups``: ``{class: [group, …]}``, with names from the banks or words from the labels; or
      ``{class: {group: [value, …]}}`` with your own names (or, if the template has a slot of the class's
      name, your own words).
    - ``persona``: ``"matrix"``, a filtered matrix, or any personas. With ``groups`` as well, every persona
      appears in every group: the groups are swapped, everything else about the persona stays.
    - ``names``: how many a group, 20 if not given; of your own names, all if not given.
    - ``context``, or any other keyword: an axis, ``role=["nurse", "IT engineer"]``, for the slot
      ``{role}``. An axis called ``pronouns`` fills the pronoun slots.
    - ``signal``: ``name``, ``label``, ``name+label``, ``pronoun``, any kind that the signals know
      (``graduation_year``), or a list of them, which is one more axis. Words go into the slot of the class's
      name, else into ``{label}``, else behind the first ``{name}`` in brackets. A class that names do not
      signal is conveyed by its label wherever its slot is.
    - ``repetitions``: fresh conversations for each cell. If not given, as many as bring every group to 100 trials,
      at least 2.
    - ``sample``: ask a balanced part of at most so many cells (:mod:`pytest_fairness.design.sampling`).
    - ``seed``: chooses the names, and the sample.
    - ``system``: a system prompt, with the same slots; such a grid is of tier 1.

    Raises UsageError, naming the template or axis and the mend, for anything that would make a grid other
    than it looks: unknown slots, unused axes, empty or unknown groups, names that stand twice, groups of
    different sizes, a swap that changes nothing.
    """
    parsed = templates(template)
    system_template = Template("system", system) if system is not None else None
    everything = (*parsed, *((system_template,) if system_template else ()))
    context_axes = axes(_context(context, axis))
    _check_numbers(name_slot, names=names, repetitions=repetitions, sample=sample)
    sources = Sources(
        banks=banks or NameBanks.load(personas_folder),
        signals=signals or Signals.load(personas_folder),
        slots=frozenset(slot for each in everything for slot in each.plain_slots),
        after_who=frozenset(slot for each in everything for slot in re.findall(r"\bwho \{(\w+)\}", each.text)),
        name_slot=name_slot,
        names=names,
        seed=seed,
    )
    personas = _personas(persona, personas_folder)
    if groups is not None:
        units, group_size = group_units(group_axes(groups), conditions(signal), sources, personas)
    elif personas:
        units, group_size = persona_units(personas, sources), len(personas)
    else:
        raise UsageError("the grid has neither groups nor personas: give groups={...} or persona='matrix'")
    grid = Grid(
        templates=parsed,
        axes=context_axes,
        units=tuple(units),
        system=system_template,
        name_slot=name_slot,
        repetitions=repetitions or FEWEST_REPETITIONS,
        parameters=dict(parameters or {}),
    )
    check_grid(grid)
    if sample is not None and sample < grid.size:
        radices = [len(parsed), *(len(each.texts) for each in context_axes)]
        grid = replace(grid, positions=positions(radices, len(units), group_size, sample, seed))
    return grid if repetitions is not None else replace(grid, repetitions=enough_repetitions(grid))


def enough_repetitions(grid: Grid) -> int:
    """As many as bring every group that the grid swaps to the recommended number of trials, at least 2.

    Personas without swapped groups differ in everything, and their groups are as large as the matrix makes them.
    """
    units: Counter[tuple[str, str]] = Counter()
    for unit in grid.units:
        units.update(unit.swapped.items())
    if not units:
        return FEWEST_REPETITIONS
    cells = min(units.values()) * grid.size / len(grid.units)
    return max(FEWEST_REPETITIONS, ceil(RECOMMENDED_TRIALS / max(cells, 1)))


def _context(context: Mapping[str, object] | None, keywords: Mapping[str, object]) -> dict[str, object]:
    both = sorted((context or {}).keys() & keywords.keys())
    if both:
        raise UsageError(f"the axis {both[0]!r} is given twice, in context and as a keyword; keep one")
    return {**(context or {}), **keywords}


def _check_numbers(name_slot: str, **numbers: int | None) -> None:
    for what, number in numbers.items():
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise UsageError(f"{what}={number!r}: give a whole number from 1")
    if not name_slot.isidentifier():
        raise UsageError(f"name_slot={name_slot!r}: a slot's name is made of letters, digits and _")


def _personas(persona: str | Persona | Iterable[Persona] | None, folder: Path | None) -> tuple[Persona, ...]:
    if persona is None:
        return ()
    if persona == "matrix":
        return tuple(PersonaMatrix.load(folder))
    if isinstance(persona, Persona):
        return (persona,)
    if isinstance(persona, str) or not isinstance(persona, Iterable):
        raise UsageError(f"persona={persona!r}: give 'matrix', a Persona, or a list of Personas")
    given = tuple(islice(persona, 100_000))
    if not given:
        raise UsageError("persona is an empty list; give at least one persona, or leave it out")
    if not all(isinstance(item, Persona) for item in given):
        raise UsageError("persona: the list holds something other than a Persona")
    return tuple(PersonaMatrix(given))
