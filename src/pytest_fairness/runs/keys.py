"""The content key of a trial: what makes two trials the same one, on any machine and any Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Cell
from pytest_fairness.runs.lines import plain


def canonical_json(value: Any) -> bytes:
    """ASCII JSON with sorted keys and no spaces: equal values give equal bytes.

    Lone surrogates are written as ``\\udXXX`` escapes, so any ``str`` has a form. Numbers keep
    their type (``1`` and ``1.0`` differ), since a provider may treat them differently. Raises
    ValueError for NaN and infinities, TypeError for what is not JSON.
    """
    return json.dumps(
        value,
        ensure_ascii=True,
        allow_nan=False,
        sort_keys=True,
        separators=(",", ":"),
        default=plain,
    ).encode("ascii")


def content_key(
    endpoint_identity: Mapping[str, JSON],
    parameters: Mapping[str, JSON],
    cell: Cell,
    repetition: int,
    script: JSON = None,
) -> str:
    """SHA-256, in hex, of what is asked: endpoint identity, parameters, system prompt, turns, arm,
    repetition; and the identity of the *script* that decides between turns, if there is one.

    Nothing else of the cell enters it: tests that ask the same text share the reply. Raises
    UsageError where the identity or the parameters cannot be written as JSON.
    """
    content: dict[str, Any] = {
        "arm": cell.arm,
        "identity": endpoint_identity,
        "parameters": parameters,
        "repetition": repetition,
        "system": cell.system,
        "turns": list(cell.turns),
    }
    if script is not None:
        content["script"] = script
    return _digest(
        content,
        f"cell {cell.id!r} cannot be keyed, give parameters as plain JSON (no NaN, no objects)",
    )


def identity_hash(endpoint_identity: Mapping[str, JSON]) -> str:
    """SHA-256, in hex, of an endpoint's identity: how log records refer to it. Raises UsageError as
    above.
    """
    return _digest(endpoint_identity, "the endpoint's identity is not plain JSON")


def _digest(content: Mapping[str, Any], refusal: str) -> str:
    """Return the SHA-256 of *content* as JSON. Raises UsageError, which begins with *refusal*."""
    try:
        return hashlib.sha256(canonical_json(content)).hexdigest()
    except (TypeError, ValueError) as error:
        raise UsageError(f"{refusal}: {error}") from error
