"""The published schema of findings.json, as it stands and as strict as our own files have to hold
it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator


@cache
def published() -> dict[str, Any]:
    text = (files("pytest_fairness.reports") / "findings.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    Draft202012Validator.check_schema(schema)
    return schema


@cache
def validator() -> Draft202012Validator:
    """Of the schema as published: members that it does not know are allowed."""
    return Draft202012Validator(published())


@cache
def _strict() -> Draft202012Validator:
    """What is written is documented: no member but those of the schema, save in the facts of the
    run.
    """

    def closed(part: Any, place: str = "") -> Any:
        if isinstance(part, list):
            return [closed(one) for one in part]
        if not isinstance(part, dict):
            return part
        inner = {key: closed(value, key) for key, value in part.items()}
        shut = "required" in part and "properties" in part and place != "run"
        return {**inner, **({"additionalProperties": False} if shut else {})}

    return Draft202012Validator(closed(published()))


def conforming(data: dict[str, Any]) -> dict[str, Any]:
    """*data*, which is findings.json as the schema documents it."""
    errors = [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in _strict().iter_errors(data)
    ]
    assert not errors, "\n".join(errors[:10])
    return data
