"""The grid of a class that several signals convey: the texts, groups and names of each signal,
asked as one design.

A name that conveys a group stands in its signal alone; neutral names, which words stand beside, are
the same in every signal. See ``docs/decisions/0213-a-class-is-judged-over-its-signals.md``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple

from pytest_fairness.design.axes import Pair, check_counts
from pytest_fairness.design.grid import (
    Grid,
    GridDesign,
    banks_of,
    names_there_are,
    neutral_grid,
    refuse_no_pilot,
    somebody_else,
)
from pytest_fairness.design.series import without_groups
from pytest_fairness.design.slugs import slug
from pytest_fairness.design.stages import PlannedLooks, largest
from pytest_fairness.design.templates import Template
from pytest_fairness.design.units import Unit
from pytest_fairness.errors import UsageError, did_you_mean, refuse_twice
from pytest_fairness.words import listed

#: What each of ``signals=`` may say; all else is that of the grid.
OF_A_SIGNAL = ("template", "groups", "signal")
_SHAPE = "signals= is a mapping: {'stated_age': {'groups': {...}, 'signal': 'stated_age'}, ...}"
#: What goes with no signals: it is asked as a whole, or says what each of them does.
_NOT_POOLED = ("groups", "signal", "persona", "sample")


class _Place(NamedTuple):
    """The place of one signal in a pooled grid: its first text and unit, and how many it has; its
    ``cells`` begin at ``start``.
    """

    signal: str
    first_text: int
    texts: int
    first_unit: int
    units: int
    group_size: int
    start: int
    cells: int


@dataclass(frozen=True, kw_only=True)
class PooledGrid(Grid):
    """The cells of each signal, one signal after the other: its templates, then context, then its
    units. ``texts`` says of which signal each template is, ``sizes`` how many names a group of each
    signal has.
    """

    texts: Mapping[str, str]
    sizes: Mapping[str, int]

    @cached_property
    def _places(self) -> tuple[_Place, ...]:
        """Return the place of each signal, in their order."""
        places = []
        start = 0
        contexts = prod(map(len, self.axes))
        labels = [self.texts[template.id] for template in self.templates]
        of_units = list(map(attrgetter("signal"), self.units))
        for label in dict.fromkeys(labels):
            texts = labels.count(label)
            units = of_units.count(label)
            cells = texts * contexts * units
            places.append(
                _Place(
                    signal=label,
                    first_text=labels.index(label),
                    texts=texts,
                    first_unit=of_units.index(label),
                    units=units,
                    group_size=self.sizes[label],
                    start=start,
                    cells=cells,
                )
            )
            start += cells
        return tuple(places)

    @cached_property
    def _starts(self) -> list[int]:
        return list(map(attrgetter("start"), self._places))

    @cached_property
    def _place_of(self) -> Mapping[str, _Place]:
        return {place.signal: place for place in self._places}

    @cached_property
    def _size(self) -> int:
        return sum(map(attrgetter("cells"), self._places))

    def __len__(self) -> int:
        return self._size

    @property
    def full_size(self) -> int:
        """Return how many cells there are."""
        return len(self)

    def position(self, index: int) -> int:
        """Return where the cell at *index* stands among the combinations of all texts and units."""
        index = range(len(self))[index]
        place = self._places[bisect_right(self._starts, index) - 1]
        block, unit = divmod(index - place.start, place.units)
        first = place.first_text * prod(map(len, self.axes))
        return (first + block) * len(self.units) + place.first_unit + unit

    def stage(self, names: int, fewer: Mapping[Pair, int]) -> list[int]:
        units = self.units_of_stage(names, fewer)
        kept = []
        for place in self._places:
            of_signal = range(place.first_unit, place.first_unit + place.units)
            asked = [number for number, unit_at in enumerate(of_signal) if unit_at in units]
            for start in range(place.start, place.start + place.cells, place.units):
                kept += [start + number for number in asked]
        return kept

    def drawn(self, position: int) -> tuple[int, Set[Pair]]:
        unit_at = position % len(self.units)
        unit = self.units[unit_at]
        place = self._place_of[unit.signal]
        return (unit_at - place.first_unit) % place.group_size + 1, unit.swapped.items()

    def place(self, index: int) -> tuple[str, int]:
        """Return the signal of the cell at *index*, and in which combination of its texts and of
        contexts it stands.
        """
        place = self._places[bisect_right(self._starts, range(len(self))[index]) - 1]
        return place.signal, (index - place.start) // place.units

    def asked_of(self, unit_at: int) -> int:
        """Return how many cells ask about the unit in the place *unit_at*."""
        place = self._place_of[self.units[unit_at].signal]
        return place.cells // place.units

    def of_first_context(self) -> Iterator[int]:
        """Yield the cells of every group and name in the first context of each template."""
        contexts = prod(map(len, self.axes))
        for place in self._places:
            for text in range(place.texts):
                first = place.start + text * contexts * place.units
                yield from range(first, first + place.units)

    def chosen_texts(self, chosen: Iterable[str]) -> frozenset[str]:
        """Return the templates that are asked where a pilot has *chosen* these texts."""
        kept = set(chosen)
        asked = set()
        for template in self.templates:
            text = template.id.removeprefix(f"{slug(self.texts[template.id])}-")
            if not template.series or text in kept:
                asked.add(template.id)
        return frozenset(asked)

    def describe(self) -> str:
        """The size in words, a line each."""
        lines = [
            f"{place.signal}: {place.texts} templates × {place.units} combinations of group and "
            f"name = {place.cells:,} cells"
            for place in self._places
        ]
        lines.append(f"× {self.repetitions} repetitions = {self.calls:,} calls")
        return "\n".join(lines)


def signal_arguments(arguments: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the arguments of the grid of each signal, of those of a grid with ``signals=``. Raises
    UsageError, with the mend, for what makes no sense.
    """
    signals = arguments["signals"]
    if not isinstance(signals, Mapping) or not signals:
        raise UsageError(_SHAPE)
    for name in _NOT_POOLED:
        if arguments.get(name) is not None:
            raise UsageError(
                f"signals= and {name}= do not go together: each signal says its own groups, and "
                "all are asked as one design; leave one out"
            )
    refuse_twice("signals: the label", map(slug, map(str, signals)))
    common = {name: value for name, value in arguments.items() if name != "signals"}
    every = {}
    for label, entry in signals.items():
        _check_signal(label, entry)
        every[str(label)] = {**common, **entry}
    return every


def _check_signal(label: object, entry: object) -> None:
    """Raise UsageError where *entry* is not what a signal called *label* may say."""
    if not isinstance(entry, Mapping):
        raise UsageError(_SHAPE)
    for name in entry:
        if name not in OF_A_SIGNAL:
            raise UsageError(
                f"signals={{{label!r}: ...}} has {name!r}, and takes {listed(OF_A_SIGNAL)}"
                f"{did_you_mean(str(name), OF_A_SIGNAL)}: what else a grid says holds for all"
            )
    if not entry.get("groups"):
        raise UsageError(f"signals={{{label!r}: ...}} has no groups: give groups={{...}}")


def pooled_grid(looks: tuple[int, ...] | None = None, **arguments: Any) -> PooledGrid:
    """The grid of ``signals=``, with the names of its last look, and the stages that it can be
    asked in: a stage is the first names of each group in every signal, as far as that has them.

    The *arguments* are those of :func:`pytest_fairness.design.grid.staged_grid`, of which each
    signal has its own template, groups and signal. Raises UsageError as :func:`expand_grid`.
    """
    planned = PlannedLooks.of(arguments.get("names"), looks)
    grids = {
        label: _drawn(label, {**given, "names": None}, planned)
        for label, given in signal_arguments(arguments).items()
    }
    whole = _joined(grids)
    per_name = min(len(grid) / len(grid.units) * whole.repetitions for grid in grids.values())
    return replace(whole, stages=planned.stages(max(whole.sizes.values()), per_name))


def _drawn(label: str, arguments: Mapping[str, Any], planned: PlannedLooks) -> Grid:
    """Return the grid of the signal called *label*, with as many names as there are: at least those
    of the base design where its groups list as many, and at most those of the last look.
    """
    design = GridDesign.parse(**arguments)
    banks = banks_of(arguments)
    fewest, most = names_there_are(planned, design)
    drawn = largest(lambda number: replace(design, names=number).draw(banks), fewest, most)
    grid = replace(drawn, base=planned.base).check()
    return replace(
        grid,
        templates=tuple(_of_signal(template, label) for template in grid.templates),
        units=tuple(replace(unit, signal=label) for unit in grid.units),
    )


def _of_signal(template: Template, label: str) -> Template:
    """Return *template* as that of the signal called *label*: a block of its own."""
    series = template.series
    if series:
        series = f"{slug(label)}-{series}"
    return Template(f"{slug(label)}-{template.id}", template.text, series)


def _joined(grids: Mapping[str, Grid]) -> PooledGrid:
    """Return the grids of all signals as one."""
    first = next(iter(grids.values()))
    templates: list[Template] = []
    units: list[Unit] = []
    texts: dict[str, str] = {}
    for label, grid in grids.items():
        templates += grid.templates
        units += grid.units
        texts |= dict.fromkeys(map(attrgetter("id"), grid.templates), label)
    return PooledGrid(
        **{**first.asked, "templates": tuple(templates)},
        units=tuple(units),
        texts=texts,
        sizes={label: grid.group_size for label, grid in grids.items()},
        system=first.system,
        name_slot=first.name_slot,
        role=first.role,
        locale=first.locale,
        repetitions=max(grid.repetitions for grid in grids.values()),
        group_size=max(grid.group_size for grid in grids.values()),
    )


def pooled_pilot(calls: int, **arguments: Any) -> Grid:
    """The grid of a pilot of so many *calls* a series: as :func:`pilot_grid`, of the texts of all
    signals, each once.

    Raises UsageError where two signals ask unlike texts by one name, once the groups are out.
    """
    check_counts(pilot=calls)
    texts: dict[str, Template] = {}
    designs = {}
    for label, given in signal_arguments(arguments).items():
        design = GridDesign.parse(**{**given, "names": None, "repetitions": 1})
        designs[label] = design
        classes = [axis.name for axis in design.classes]
        for template in design.templates:
            if not template.series:
                continue
            bare = without_groups(template, classes)
            if texts.setdefault(bare.id, bare) != bare:
                raise UsageError(
                    f"template {bare.id!r}: two signals ask unlike texts of that name, so that no "
                    "pilot can choose it for both; give one of them another name"
                )
    refuse_no_pilot(arguments, texts.values())
    first = next(iter(designs.values()))
    return neutral_grid(calls, first, tuple(texts.values()), banks_of(arguments))


def others_beside(grid: Grid, arguments: Mapping[str, Any]) -> dict[str, Grid]:
    """Whom strategies that compare two people show beside each person of *grid*, by signal (``""``
    of a grid without): one of a neutral name and no group, where the classes have a control.
    """
    if not isinstance(grid, PooledGrid):
        other = somebody_else(grid.units, arguments)
        if other is None:
            return {}
        return {"": other}
    others = {}
    for label, given in signal_arguments(arguments).items():
        units = [unit for unit in grid.units if unit.signal == label]
        other = somebody_else(units, given)
        if other is not None:
            others[label] = other
    return others
