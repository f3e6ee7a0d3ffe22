"""Styles of short answers: terse, as today's chat models write, after thinking aloud, as JSON that
nobody asked for, hedged, in German. ``styles.yaml`` has the forms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from pytest_fairness import documents
from pytest_fairness.endpoints.simulated.bias import Draws, Style

_FORMS: Mapping[str, Mapping[str, list[str]]] = documents.parse(
    files(__package__).joinpath("styles.yaml").read_bytes(), "styles.yaml"
).convert(dict[str, dict[str, list[str]]])


def styled(style: Style, kind: str, draws: Draws, value: object, slots: Mapping[str, Any]) -> str:
    """Return the answer *value* to a task of that *kind* in a *style*; *slots* fill its form."""
    forms = _FORMS[style]
    form = draws.pick(forms.get(kind, forms["any"]))
    return form.format_map({**slots, "quoted": json.dumps(value)})
