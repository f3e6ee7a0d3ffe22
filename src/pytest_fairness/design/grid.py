"""The demographic grid: templates × context × groups and names, as cells.

A grid is checked when it is made and expanded when it is read: its size is known without making a
cell, and each cell is made when it is asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any

from pytest_fairness.design.axes import LazyCells, axes, check_counts, positions
from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.personas import Persona, PersonaMatrix
from pytest_fairness.design.signals import CONTROL, PRONOUN, Condition, Signals, conditions
from pytest_fairness.design.slugs import join
from pytest_fairness.design.structured_answers import structured_answer
from pytest_fairness.design.templates import (
    REQUEST,
    SLOTS,
    Template,
    TemplateLike,
    base_slot,
    spoken_turns,
    templates,
)
from pytest_fairness.design.units import LABEL_SLOT, Crossing, Unit, group_axis
from pytest_fairness.errors import UsageError, did_you_mean, refuse_twice
from pytest_fairness.model import JSON, Cell
from pytest_fairness.words import count

_FEW_NAMES = 10
_FEWEST_REPETITIONS = 2
_RECOMMENDED_TRIALS = 100  # a group, from which most comparisons can be judged
#: How a conversation without a system prompt begins, where the test has one: the role is agreed on,
#: not set.
ROLE = (
    "In this conversation, please take the following role, and keep to it:\n\n{system}\n\n"
    "A request follows. Is that clear?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid(LazyCells):
    """Every combination, as a sequence of cells: templates, then context, then units."""

    units: tuple[Unit, ...]
    system: Template | None
    name_slot: str
    turns: tuple[Template, ...] = ()
    answer: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def radices(self) -> tuple[int, ...]:
        return (len(self.templates), *map(len, self.axes), len(self.units))

    @property
    def fewest_names(self) -> int:
        """Return how many different names the group with the fewest has."""
        names: dict[tuple[tuple[str, str], ...], set[str | None]] = {}
        for unit in self.units:
            names.setdefault(tuple(sorted(unit.swapped.items())), set()).add(unit.cluster)
        return min(map(len, names.values()), default=0)

    def cell_at(self, position: int) -> Cell:
        template_at, *choices, unit_at = self.digits(position)
        template = self.templates[template_at]
        unit = self.units[unit_at]
        values, context, where = self.context(choices)
        prompt, signals = unit.render(template, values, self.name_slot)
        system = None
        if self.system is not None:
            system, in_system = unit.render(self.system, values, self.name_slot, needs_labels=False)
            signals = {**in_system, **signals}
        return Cell(
            id=join([template.id, *where, *unit.parts]),
            template=template.id,
            turns=(prompt,),
            groups=unit.groups,
            name=unit.cluster,
            persona=unit.persona,
            context=context,
            attributes={**unit.attributes, **self._signal_words(template, unit)},
            system=system,
            tier=2 if system is None else 1,
            signal=unit.signal,
            signals=signals,
        )

    def _signal_words(self, template: Template, unit: Unit) -> dict[str, JSON]:
        asked = (template,) if self.system is None else (template, self.system)
        words = unit.words_in(asked, self.name_slot)
        if words:
            return {"signal_words": words}
        return {}

    @property
    def asked_at(self) -> int:
        """The turn of a conversation, from 0, that makes the request."""
        if not self.turns:
            if self.system is None:
                return 0
            return 1
        return next(at for at, turn in enumerate(self.turns) if REQUEST in turn.slots)

    def conversation_at(self, position: int, cell: Cell | None = None) -> tuple[str, ...]:
        """The turns by which the cell at *position* is asked without a system prompt: those of the
        test, else the role and then the request, else the request alone. *cell* spares making it
        anew.
        """
        if cell is None:
            cell = self[position]
        if not self.turns:
            if cell.system:
                return (ROLE.replace("{system}", cell.system), cell.prompt)
            return (cell.prompt,)
        _, *choices, unit_at = self.digits(self.position(position))
        values, _, _ = self.context(choices)
        filled = {**values, REQUEST: cell.prompt}
        return tuple(
            self.units[unit_at].render(turn, filled, self.name_slot, needs_labels=False)[0]
            for turn in self.turns
        )

    def describe(self) -> str:
        """The size in words, a line each, with what deserves a second thought."""
        parts = [f"{count(len(self.templates), 'template')}"]
        parts += [f"{len(axis)} {axis.name}" for axis in self.axes]
        parts.append(f"{len(self.units)} combinations of group and name")
        lines = [f"{' × '.join(parts)} = {self.full_size:,} cells"]
        if self.positions is not None:
            lines.append(f"of which a balanced sample of {len(self):,} is asked")
        lines.append(f"× {self.repetitions} repetitions = {self.calls:,} calls")
        fewest = self.fewest_names
        if fewest < _FEW_NAMES:
            lines.append(
                f"only {count(fewest, 'name')} a group: with under {_FEW_NAMES}, what "
                "is found may be about "
                "the names; more names do more than more repetitions"
            )
        return "\n".join(lines)


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
    turns: Sequence[str] | None = None,
    answer: Mapping[str, object] | None = None,
    parameters: Mapping[str, JSON] | None = None,
    name_slot: str = "name",
    seed: int = 0,
    sample: int | None = None,
    personas_folder: Path | None = None,
    **axis: object,
) -> Grid:
    """The grid of *template* × context × *groups* and names, or personas.

    The arguments are those of the marker ``fairness_grid``, as docs/grids.md lists them; any
    keyword that is none is an axis, ``role=["nurse"]``. Raises UsageError, naming the template or
    axis and the mend, for anything that would make a grid other than it looks.
    """
    parsed = templates(template)
    system_template = None
    if system is not None:
        system_template = Template("system", system)
    spoken = spoken_turns(turns)
    everything = (*parsed, *((system_template,) if system_template else ()), *spoken)
    context_axes = axes(context, axis)
    check_counts(names=names, repetitions=repetitions, sample=sample)
    if not name_slot.isidentifier():
        raise UsageError(f"name_slot={name_slot!r}: a slot's name is made of letters, digits and _")
    if groups is not None and not isinstance(groups, Mapping):
        raise UsageError(_without_class(groups, personas_folder))
    if groups is not None and not groups:
        raise UsageError(
            "groups is empty; give at least one protected class, such as {'gender': ['female', "
            "'male']}"
        )
    people: object = persona
    if persona == "matrix":
        people = PersonaMatrix.load(personas_folder)
    if isinstance(people, Persona):
        personas = [people]
    elif isinstance(people, Iterable):
        personas = list(people or ())
    else:
        personas = []
    if persona is not None and not (
        personas and all(isinstance(item, Persona) for item in personas)
    ):
        raise UsageError(
            f"persona={persona!r:.60}: give 'matrix', a Persona, or a list of at least one Persona"
        )
    if groups is None and not personas:
        raise UsageError(
            "the grid has neither groups nor personas: give groups={...} or persona='matrix'"
        )
    crossing = Crossing(
        banks=NameBanks.load(personas_folder),
        signals=Signals.load(personas_folder),
        axes=[group_axis(name, value) for name, value in (groups or {}).items()],
        personas=personas,
        slots=frozenset().union(*(each.plain_slots for each in everything)),
        after_who=frozenset(
            slot for each in everything for slot in re.findall(r"\bwho \{(\w+)\}", each.text)
        ),
        name_slot=name_slot,
        names=names,
        seed=seed,
    )
    if groups:
        ways = conditions(signal)
    else:
        ways = (Condition("persona", by_name=False, kind=None),)
    units, group_size = crossing.units(ways)
    grid = Grid(
        templates=parsed,
        axes=context_axes,
        units=tuple(units),
        system=system_template,
        turns=spoken,
        answer=structured_answer(answer),
        name_slot=name_slot,
        repetitions=repetitions or _FEWEST_REPETITIONS,
        parameters=dict(parameters or {}),
    )
    _check(grid, everything)
    if sample is not None and sample < len(grid):
        grid = replace(
            grid, positions=positions(grid.radices[:-1], len(units), group_size, sample, seed)
        )
    # Personas without swapped groups differ in everything, and their groups are as large as the
    # matrix makes them.
    swapped = Counter(group for unit in units for group in unit.swapped.items())
    if repetitions is None and swapped:
        cells = min(swapped.values()) * len(grid) / len(units)
        enough = ceil(_RECOMMENDED_TRIALS / max(cells, 1))
        grid = replace(grid, repetitions=max(_FEWEST_REPETITIONS, enough))
    return grid


def _without_class(groups: object, folder: Path | None) -> str:
    """That *groups* are of no protected class, with the one in whose name bank they stand."""
    banks = NameBanks.load(folder)
    if isinstance(groups, str):
        given = [groups]
    elif isinstance(groups, Iterable):
        given = list(groups)
    else:
        given = []
    classes = [
        name for name in banks.protected_classes if set(map(str, given)) <= set(banks.groups(name))
    ]
    if given and classes:
        return (
            f"groups={groups!r:.80}: say of which protected class, groups={{{classes[0]!r}: "
            f"{given!r:.60}}}"
        )
    mend = "give groups by their protected class, such as {'gender': ['female', 'male']}"
    return f"groups is {type(groups).__name__}: {mend}"


# ---------------------------------------------------------------- what makes a grid other than it looks


def _check(grid: Grid, everything: Sequence[Template]) -> None:
    """Raises UsageError for the first fault; the order goes from what is easiest to mend."""
    filled = {slot for unit in grid.units for slot in (*unit.values, *unit.labels)} - SLOTS
    used = frozenset().union(*(template.plain_slots for template in everything))
    for axis in grid.axes:
        if axis.name in filled:
            raise UsageError(
                f"axis {axis.name!r}: the slot {{{axis.name}}} is filled by the name, the group or "
                "the persona "
                "already; rename the axis"
            )
        axis.check_used(used, did_you_mean(axis.name, expand_grid.__kwdefaults__ or ()))
    by_context = frozenset(slot for axis in grid.axes for slot in axis.values[0])
    # Which slots are filled is the same for all units that fill the same ones: the first of each
    # stands for them.
    alike = {
        (frozenset(unit.values), frozenset(unit.labels)): unit for unit in reversed(grid.units)
    }
    for template in everything:
        for unit in reversed(alike.values()):
            if template in grid.turns:
                request = {REQUEST}
            else:
                request = set()
            _check_slots(
                template, unit, by_context | unit.values.keys() | unit.labels.keys() | request
            )
    for template in grid.templates:
        for unit in grid.units:
            _check_places(template, unit, grid.name_slot)
    refuse_twice("two groups or names come to one id:", (join(unit.parts) for unit in grid.units))
    for template in grid.templates:
        _check_swap(grid, template)


def _check_slots(template: Template, unit: Unit, slots: frozenset[str]) -> None:
    """Every slot has a value."""
    slots |= {LABEL_SLOT} if unit.labels else set()
    slot = template.missing(slots)
    if slot is not None and base_slot(slot) in SLOTS:
        raise UsageError(
            f"template {template.id!r} uses {{{slot}}}, and the gender of {unit.cluster!r} is not "
            "known: "
            "add pronouns='they', or an axis pronouns=['she/her', 'he/him', 'they/them']"
        )
    template.check(slots)


def _check_places(template: Template, unit: Unit, name_slot: str) -> None:
    """What conveys a group has a place in the template."""
    slots = template.plain_slots
    loose = unit.loose(template)
    carried = {name for slot in slots for name in unit.conveys.get(slot, ())} | unit.labels.keys()
    lost = [
        name for name, group in unit.swapped.items() if name not in carried and group != CONTROL
    ]
    why = None
    mend = f": write {{{name_slot}}} where the name belongs"
    if loose and not {LABEL_SLOT, name_slot} & slots:
        missing = next(iter(loose))
        why = f"has no place for the words that convey {missing}"
        mend = f": write {{{missing}}}, {{{LABEL_SLOT}}} or {{{name_slot}}} in it"
    elif lost and unit.signal == PRONOUN:
        why = "has no pronoun"
        mend = ", such as {they} or {their}"
    elif lost:
        why = f"has no slot for the name, so nothing in it conveys {lost[0]}"
    elif not unit.swapped and not slots & (unit.values.keys() - SLOTS):
        why = "uses nothing of the personas, so all would be asked the same"
    if why is not None:
        raise UsageError(f"template {template.id!r} {why}{mend}")


def _check_swap(grid: Grid, template: Template) -> None:
    """No two units of a comparison may give the same text: the swap between them would change
    nothing.
    """
    context, *_ = grid.context([0] * len(grid.axes))
    seen: dict[tuple[str, str], Unit] = {}
    for unit in (unit for unit in grid.units if unit.swapped):
        text, _ = unit.render(template, context, grid.name_slot)
        other = seen.setdefault((unit.signal, text), unit)
        if other is unit:
            continue
        if other.swapped != unit.swapped:
            pair = " and ".join(
                f"{'/'.join(unit_.swapped.values())} ({unit_.cluster})" for unit_ in (other, unit)
            )
            why = (
                f"the swap changes nothing. {pair} give the same text; write the whole name, or a "
                "slot that differs"
            )
        elif unit.persona is not None and other.persona != unit.persona:
            why = (
                f"the personas {other.persona} and {unit.persona} give the same text, as personas "
                "share the names of "
                "a group: add a slot that tells them apart, such as {experience_years}, or leave "
                "groups= out"
            )
        else:
            why = (
                f"{other.cluster!r} and {unit.cluster!r} give the same text, so the second is no "
                "evidence of its own; "
                "write the whole name, or drop one"
            )
        raise UsageError(f"template {template.id!r}: {why}")


# ---------------------------------------------------------------- a second, independent sample


def other_names(grid: Grid, arguments: Mapping[str, Any]) -> Grid | None:
    """*grid*, made by ``expand_grid(**arguments)``, with as many other names, or as many as are
    left: the same number a group, at least ten (or all that *grid* has, if those are fewer).

    None where there are not so many, as with names of a test's own, and where names are not what
    varies.
    """
    if arguments.get("persona") is not None:
        return None
    used = {unit.cluster for unit in grid.units}
    sizes = _sizes(grid.units)
    size = min(sizes.values())
    for more in range(size, min(size, _FEW_NAMES) - 1, -1):
        try:
            # A smaller number of names is the beginning of a larger one, so the rest is new.
            wider = expand_grid(**{**arguments, "names": size + more, "sample": None})
        except UsageError:
            continue
        units = tuple(unit for unit in wider.units if unit.cluster not in used)
        left = _sizes(units)
        # With fewer names the positions of a sample would mean other cells.
        same = grid.positions is None or len(units) == len(grid.units)
        if same and left.keys() == sizes.keys() and len(set(left.values())) == 1:
            return replace(
                wider, units=units, positions=grid.positions, repetitions=grid.repetitions
            )
    return None


def somebody_else(grid: Grid, arguments: Mapping[str, Any]) -> Grid | None:
    """*grid*, made by ``expand_grid(**arguments)``, about one person more: of a neutral name that
    *grid* does not use, and of no group. None where the classes have no control, and for personas.
    """
    classes = arguments.get("groups")
    if arguments.get("persona") is not None or not classes:
        return None
    used = {unit.cluster for unit in grid.units}
    of_none = {**arguments, "groups": {name: [CONTROL] for name in classes}, "sample": None}
    for names in (1, len(used) + 1):
        try:
            controls = expand_grid(**{**of_none, "names": names})
        except UsageError:
            continue
        free = next(
            (unit for unit in controls.units if unit.cluster and unit.cluster not in used), None
        )
        if free is not None:
            return replace(controls, units=(free,))
    return None


def _sizes(units: Sequence[Unit]) -> Counter[tuple[tuple[str, str], ...]]:
    """Return how many units each combination of groups has, under each signal."""
    return Counter((*sorted(unit.swapped.items()), ("signal", unit.signal)) for unit in units)
