"""The body of a request as data with slots: what a slot stands for is put into parsed data, never into JSON text.

A slot is a known name in braces, ``{prompt}``, as a whole string or inside one; every other brace stays as it is. All
are filled in one pass, so that neither a prompt nor a reply is ever read for slots.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_fairness.endpoints.parameters import ALLOWED, unknown
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON

PROMPT, SYSTEM, MESSAGES, REPETITION = "prompt", "system", "messages", "repetition"
_OWN = frozenset((PROMPT, SYSTEM, MESSAGES, REPETITION))
_SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
# What str.format or a template language would have understood, and this does not.
_CLEVER = re.compile(r"\{\{[A-Za-z_]\w*\}\}|\{[A-Za-z_]\w*\s*(?:\.[A-Za-z_]|\[|![rsa]\b|:)[^{}\n]*\}")
_MISSING = object()

Place = tuple["str | int", ...]


class Misplaced(UsageError):
    """Something is wrong at ``place`` of a template, counted from its root."""

    def __init__(self, place: Place, why: str) -> None:
        super().__init__(why)
        self.place = place


class RequestTemplate:
    """*data* with slots: ``{prompt}``, ``{system}``, ``{messages}``, ``{repetition}`` and those of parameters.

    Raises :class:`Misplaced` for a slot that nothing fills, or that stands where it cannot.
    """

    def __init__(self, data: JSON) -> None:
        self.data = data
        found: set[str] = set()
        for place, text in _strings(data, ()):
            found |= _slots(place, text)
        self.slots = frozenset(found)
        if not found & {PROMPT, MESSAGES}:
            raise Misplaced((), 'nothing of the prompt would be sent: put "{prompt}" or "{messages}" where it belongs')

    @property
    def parameters(self) -> frozenset[str]:
        """The parameters that have a slot."""
        return self.slots - _OWN

    def fill(self, values: Mapping[str, JSON]) -> JSON:
        """The data with *values* in their slots. An entry that is a slot without a value is left out; inside a text it
        is empty.
        """
        filled: JSON = _filled(self.data, values)
        return filled


def _strings(data: JSON, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(data, str):
        yield place, data
    elif isinstance(data, list):
        for number, item in enumerate(data):
            yield from _strings(item, (*place, number))
    elif isinstance(data, dict):
        for key, item in data.items():
            if _SLOT.search(key):
                raise Misplaced((*place, key), f"slots stand in values, not in keys such as {key!r}")
            if item is None and key in _OWN and len(data) == 1:
                raise Misplaced(place, f'YAML reads {{{key}}} as a mapping: write "{{{key}}}", in quotes')
            yield from _strings(item, (*place, key))


def _slots(place: Place, text: str) -> set[str]:
    clever = _CLEVER.search(text)
    if clever is not None:
        raise Misplaced(place, f'{clever[0]!r}: a slot is a plain name in single braces, such as "{{prompt}}"')
    names = _SLOT.findall(text)
    known = _OWN | ALLOWED["http"]
    for name in names:
        if name not in known:
            raise Misplaced(place, unknown("slot", name, known))
    if MESSAGES in names and text != f"{{{MESSAGES}}}":
        raise Misplaced(place, 'the list of messages must be the whole of a value: "{messages}"')
    return set(names)


def _filled(data: JSON, values: Mapping[str, JSON]) -> Any:
    if isinstance(data, str):
        whole = _SLOT.fullmatch(data)
        if whole is not None:
            return values.get(whole[1], _MISSING)
        return _SLOT.sub(lambda match: _text(values.get(match[1])), data)
    if isinstance(data, list):
        items = (_filled(item, values) for item in data)
        return [item for item in items if item is not _MISSING]
    if isinstance(data, dict):
        entries = ((key, _filled(item, values)) for key, item in data.items())
        return {key: item for key, item in entries if item is not _MISSING}
    return data


def _text(value: JSON) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
