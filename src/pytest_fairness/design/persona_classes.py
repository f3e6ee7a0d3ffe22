"""Find out which protected classes of the personas a request says something of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_fairness.design.names import GENDER, RACE
from pytest_fairness.design.personas import QUOTAS
from pytest_fairness.design.templates import SLOTS, TemplateLike, templates
from pytest_fairness.design.units import DETAILS


def persona_classes(
    template: TemplateLike | Iterable[TemplateLike] | Mapping[str, str | Path] | None = None,
) -> tuple[str, ...]:
    """Return the protected classes of the personas of which a request with *template*, as
    ``fairness_grid`` takes it, says something; all of them without one. Raises UsageError.
    """
    if template is None:
        return tuple(QUOTAS)
    slots = set[str]()
    for request in templates(template):
        slots.update(request.plain_slots)
    words = {name: {name, DETAILS.get(name, name)} for name in QUOTAS}
    words[RACE] |= {"name", "first_name", "last_name"}
    words[GENDER] |= {"name", "first_name", *SLOTS}
    return tuple(name for name in QUOTAS if slots & words[name])
