"""What makes a grid other than it looks, found before anything is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_fairness.design.pronouns import SLOTS
from pytest_fairness.design.rendering import LABEL_SLOT, bracketed, render
from pytest_fairness.design.slugs import join
from pytest_fairness.design.templates import Template, base_slot
from pytest_fairness.errors import UsageError, did_you_mean, listed

if TYPE_CHECKING:
    from pytest_fairness.design.grid import Grid
    from pytest_fairness.design.units import Unit

_PARAMETERS = ("template", "groups", "persona", "names", "context", "signal", "repetitions", "system",
               "parameters", "name_slot", "seed", "sample", "personas_folder")  # fmt: skip


def check_grid(grid: Grid) -> None:
    """Raises UsageError for the first fault; the order goes from what is easiest to mend."""
    _check_axes(grid)
    for template in grid.templates:
        _check_slots(grid, template)
        _check_places(grid, template)
    if grid.system is not None:
        _check_slots(grid, grid.system)
    _check_ids(grid)
    for template in grid.templates:
        _check_swap(grid, template)


def _everything(grid: Grid) -> tuple[Template, ...]:
    return (*grid.templates, *((grid.system,) if grid.system else ()))


def _check_axes(grid: Grid) -> None:
    used = frozenset(slot for template in _everything(grid) for slot in template.plain_slots)
    filled = {slot for unit in grid.units for slot in (*unit.values, *unit.labels)} - SLOTS
    for axis in grid.axes:
        if axis.name in filled:
            raise UsageError(
                f"axis {axis.name!r}: the slot {{{axis.name}}} is filled by the name, the group or the "
                "persona "
                "already; rename the axis"
            )
        if not used & axis.slots:
            hint = did_you_mean(axis.name, _PARAMETERS)
            raise UsageError(
                f"axis {axis.name!r} is given, but no template uses it: write {{{axis.name}}} in a template, "
                f"or leave the axis out{hint}"
            )


def _check_slots(grid: Grid, template: Template) -> None:
    """Every slot has a value in every unit."""
    by_context = frozenset(slot for axis in grid.axes for slot in axis.slots)
    for slot in template.slots:
        wanted = slot
        for unit in grid.units:
            known = by_context | unit.values.keys() | unit.labels.keys()
            if unit.labels and LABEL_SLOT in template.plain_slots:
                known |= {LABEL_SLOT}
            base = base_slot(slot)
            wanted = base if base is not None and slot not in known else slot
            if wanted in known:
                continue
            if wanted in SLOTS:
                raise UsageError(
                    f"template {template.id!r} uses {{{slot}}}, and the gender of {unit.cluster!r} is not "
                    "known: "
                    "add pronouns='they', or an axis pronouns=['she/her', 'he/him', 'they/them']"
                )
            known_slots = sorted(known - SLOTS)
            raise UsageError(
                f"template {template.id!r}: nothing fills the slot {{{slot}}} (slots that are filled: "
                f"{listed(known_slots)}, and pronouns such as {{they}}){did_you_mean(wanted, known)}; "
                f"give an axis {wanted}=[...], or take the slot out"
            )


def _check_places(grid: Grid, template: Template) -> None:
    """What conveys a group has a place in the template."""
    slots = template.plain_slots
    naming = {grid.name_slot, "first_name", "last_name"} & slots
    for unit in grid.units:
        if unit.labels and bracketed(template, unit) and grid.name_slot not in slots:
            missing = next(name for name in unit.labels if name not in slots)
            raise UsageError(
                f"template {template.id!r} has no place for the words that convey {missing}: write "
                f"{{{missing}}}, "
                f"{{{LABEL_SLOT}}} or {{{grid.name_slot}}} in it"
            )
        carried = {name for slot in slots for name in unit.conveys.get(slot, {})} | unit.labels.keys()
        lost = [name for name in unit.swapped if name not in carried and unit.swapped[name] != "control"]
        if lost:
            if unit.signal == "pronoun":
                raise UsageError(f"template {template.id!r} has no pronoun, such as {{they}} or {{their}}")
            raise UsageError(
                f"template {template.id!r} has no slot for the name, so nothing in it conveys {lost[0]}: "
                f"write {{{grid.name_slot}}} where the name belongs"
            )
        if not unit.swapped and not naming and not slots & (unit.values.keys() - SLOTS):
            raise UsageError(
                f"template {template.id!r} uses nothing of the personas, so all would be asked the same: "
                "write "
                f"{{{grid.name_slot}}} where the name belongs"
            )


def _check_ids(grid: Grid) -> None:
    twice = _first_twice(join(unit.parts) for unit in grid.units)
    if twice is not None:
        same = [unit for unit in grid.units if join(unit.parts) == twice]
        raise UsageError(
            f"two cells would have the id {grid.templates[0].id}-{twice} ({same[0].cluster!r} and "
            f"{same[1].cluster!r}); rename a group or a name"
        )


def _first_twice(items: Iterable[str]) -> str | None:
    return next((item for item, count in Counter(items).items() if count > 1), None)


def _check_swap(grid: Grid, template: Template) -> None:
    """No two units of a comparison may give the same text: the swap between them would change nothing."""
    context: dict[str, str] = {}
    for axis in grid.axes:
        context.update(axis.values(0))
    seen: dict[tuple[str | None, str], int] = {}
    for position, unit in enumerate(grid.units):
        if not unit.swapped:
            continue
        text, _ = render(template, unit, {**unit.values, **context}, grid.name_slot)
        key = unit.signal, text
        if key in seen:
            other = grid.units[seen[key]]
            if other.swapped != unit.swapped:
                raise UsageError(
                    f"template {template.id!r}: the swap changes nothing. {_said(other)} and "
                    f"{_said(unit)} give the "
                    "same text; write the whole name, or a slot that differs"
                )
            if unit.persona is not None and other.persona != unit.persona:
                raise UsageError(
                    f"template {template.id!r}: the personas {other.persona} and {unit.persona} give the same text, as "
                    "personas share the names of a group: add a slot that tells them apart, such as "
                    "{experience_years}, or leave groups= out"
                )
            raise UsageError(
                f"template {template.id!r}: {other.cluster!r} and {unit.cluster!r} give the same text, so the "
                "second is no evidence of its own; write the whole name, or drop one"
            )
        seen[key] = position


def _said(unit: Unit) -> str:
    return f"{'/'.join(unit.swapped.values())} ({unit.cluster})"
