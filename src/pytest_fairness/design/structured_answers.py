"""Answers that a test accepts, as a JSON schema that endpoints with structured output are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON

_LONGEST = 1000
_EXAMPLE = (
    "answer={'decision': ['approve', 'deny']}, or a range of whole numbers: answer={'rating': (1, "
    "10)}"
)


def structured_answer(given: object) -> dict[str, JSON]:
    """The parameter ``response_format`` for *given*, one key with its labels, two or more texts, or
    with the ends of a range of whole numbers; nothing for None. Raises UsageError.
    """
    if given is None:
        return {}
    key = None
    if isinstance(given, Mapping) and len(given) == 1:
        (key,) = given
    if not isinstance(given, Mapping) or not isinstance(key, str):
        raise UsageError(f"answer={given!r:.60}: give one key and what may stand there: {_EXAMPLE}")
    values: list[Any] = []
    if isinstance(given[key], Sequence) and not isinstance(given[key], str):
        values = list(given[key])
    schema: dict[str, JSON]
    if _is_range(values):
        # One by one: not every provider takes a minimum and a maximum.
        schema = {"type": "integer", "enum": list(range(values[0], values[1] + 1))}
    elif _are_labels(values):
        schema = {"type": "string", "enum": values}
    else:
        raise UsageError(
            f"answer={{{key!r}: {given[key]!r:.60}}}: give two or more different labels: {_EXAMPLE}"
        )
    whole: dict[str, JSON] = {
        "type": "object", "properties": {key: schema}, "required": [key], "additionalProperties": False,
    }  # fmt: skip
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": whole},
        }
    }


def _is_range(values: Sequence[Any]) -> bool:
    """Return whether *values* are the ends of a range of whole numbers that is not too long."""
    if len(values) != 2 or set(map(type, values)) != {int}:
        return False
    return 0 < int(values[1] - values[0]) <= _LONGEST


def _are_labels(values: Sequence[Any]) -> bool:
    """Return whether *values* are two or more different texts."""
    texts = {value for value in values if isinstance(value, str)}
    return 1 < len(texts) == len(values)
