"""From a template and a unit to the text that is sent, and the strings in it that convey a group."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.design.pronouns import with_article
from pytest_fairness.design.templates import Filled, Template, base_slot
from pytest_fairness.design.units import Unit

LABEL_SLOT = "label"
_AROUND = 20


def bracketed(template: Template, unit: Unit) -> str:
    """The words that this template has no slot for, as they stand behind the name: ``(Black, female)``."""
    loose = _loose(template, unit)
    return f"({', '.join(loose.values())})" if loose and LABEL_SLOT not in template.plain_slots else ""


def _loose(template: Template, unit: Unit) -> dict[str, str]:
    slots = template.plain_slots
    return {name: words for name, words in unit.labels.items() if name not in slots}


def render(
    template: Template,
    unit: Unit,
    values: Mapping[str, str],
    name_slot: str,
    *,
    needs_labels: bool = True,
) -> tuple[str, dict[str, Mapping[str, str]]]:
    """The text of *template* for *unit*, and its surface strings with the groups that each conveys.

    *values* are the unit's and the context's. With *needs_labels* off (a system prompt), words without a
    slot of their own are left out rather than put behind the name.
    """
    filled_values = {**values, **unit.labels}
    loose = _loose(template, unit)
    if LABEL_SLOT in template.plain_slots and loose:
        filled_values[LABEL_SLOT] = " ".join(loose.values())
    for slot in template.slots:
        base = base_slot(slot)
        if base is not None and slot not in filled_values and base in filled_values:
            filled_values[slot] = with_article(filled_values[base], capital=slot[0] == "A")
    bracket = bracketed(template, unit) if needs_labels else ""
    first = {name_slot: f"{filled_values[name_slot]} {bracket}"} if bracket and name_slot in filled_values else {}
    filled = template.fill(filled_values, first)
    surfaces = _surfaces(filled, unit, name_slot, values)
    if bracket and bracket in filled.text:
        surfaces[bracket] = {name: unit.groups[name] for name in loose}
    return filled.text, surfaces


def _surfaces(filled: Filled, unit: Unit, name_slot: str, values: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    names = {name_slot, "first_name", "last_name"}
    found: dict[str, Mapping[str, str]] = {}
    for slot, start, end in filled.spans:
        base = base_slot(slot) or slot
        if base in unit.labels:
            groups: Mapping[str, str] = {base: unit.groups[base]}
        elif base == LABEL_SLOT and unit.labels:
            groups = {name: unit.groups[name] for name in unit.labels}
        else:
            groups = unit.conveys.get(base, {})
        if not groups or start == end:
            continue
        if base in names:
            found.setdefault(values[base], groups)
        else:
            found.setdefault(_with_surroundings(filled.text, start, end), groups)
    return found


def _with_surroundings(text: str, start: int, end: int) -> str:
    """The value with the whole words around it on its line: "24" alone would be found anywhere."""
    left, right = max(0, start - _AROUND), min(len(text), end + _AROUND)
    while 0 < left < start and text[left - 1].isalnum():
        left += 1
    while end < right < len(text) and text[right].isalnum():
        right -= 1
    before = text[left:start].rpartition("\n")[2]
    after = text[end:right].partition("\n")[0]
    return f"{before}{text[start:end]}{after}".strip()
