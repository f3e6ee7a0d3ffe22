"""The text of a baseline: JSON that a person can compare line by line, and that is read back strictly.

JSON and not YAML: nothing in it is executed, expanded or guessed (``no`` stays a string), and a duplicate key
is an error. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from pytest_fairness.baselines.errors import BaselineError

SCHEMA = 1
_ONE_LINE_EACH = frozenset({"personas", "categories"})
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7}|\|{7})( |$)", re.MULTILINE)


def render(body: Mapping[str, Any]) -> str:
    """*body* as JSON text with sorted keys and one persona a line, its own digest included."""
    entries = []
    for key, value in sorted({**body, "digest": digest(body)}.items()):
        if key in _ONE_LINE_EACH and value:
            lines = [f"    {_dumps(name)}: {_dumps(row)}" for name, row in sorted(value.items())]
            text = "{\n" + ",\n".join(lines) + "\n  }"
        else:
            text = _dumps(value, indent=2).replace("\n", "\n  ")
        entries.append(f"  {_dumps(key)}: {text}")
    return _visible("{\n" + ",\n".join(entries) + "\n}\n")


def digest(body: Mapping[str, Any]) -> str:
    """``sha256:`` and the digest of *body* without its ``digest``.

    Taken over the values and not the bytes, so that line endings and indentation may change on the way
    through git. It notices an edit; whoever wants to forge one can compute it, and is stopped by the review
    of the file.
    """
    values = {key: value for key, value in body.items() if key != "digest"}
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def parse(content: bytes, where: str) -> dict[str, Any]:
    """The body of the baseline in *content*, its schema and digest checked.

    *where* names the file in the errors. Raises BaselineError for merge-conflict markers, a truncated or
    damaged file, another schema version, and a file edited by hand.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _damaged(where, f"it is not UTF-8 at byte {error.start}") from error
    if conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        raise BaselineError(
            f"{where}, line {line}: there are merge-conflict markers in this baseline. A baseline is one "
            "person's approval of one run and cannot be merged: take one side whole (git checkout --ours "
            "or --theirs), or remove the file and approve anew with --fairness-approve."
        )
    try:
        body = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _damaged(where, f"it is not whole JSON ({error})") from error
    if not isinstance(body, dict):
        raise _damaged(where, "it is not a JSON object")
    if body.get("schema") != SCHEMA or isinstance(body.get("schema"), bool):
        raise BaselineError(
            f"{where}: this baseline has schema {body.get('schema')!r}, and this version of pytest-fairness "
            f"reads schema {SCHEMA}. Use the version that wrote it, or remove the file and approve anew "
            "with --fairness-approve."
        )
    if body.get("digest") != digest(body):
        raise BaselineError(
            f"{where}: this baseline was changed after it was approved (its content does not match its "
            "digest). Restore it (git checkout), or remove the file and approve anew with "
            "--fairness-approve."
        )
    return body


def rounded(value: float) -> float:
    """Eight significant digits: more than any score has, fewer than make two machines disagree in a diff.

    Raises ValueError for what is not a finite number.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot stand in a baseline: a finite number is needed")
    return float(f"{value:.8g}")


def malformed(where: str, error: Exception) -> BaselineError:
    """The error for a document whose digest is right and whose shape is not."""
    return _damaged(where, f"a field is missing or has the wrong type ({type(error).__name__}: {error})")


def _damaged(where: str, what: str) -> BaselineError:
    return BaselineError(
        f"{where}: this baseline is truncated or damaged: {what}. Restore it (git checkout), or remove the "
        "file and approve anew with --fairness-approve."
    )


def _dumps(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key stands there twice")
    return result


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _visible(text: str) -> str:
    """Escape what a reviewer would not see: controls, bidirectional marks, zero-width characters."""
    return "".join(_escape(character) if _unseen(character) else character for character in text)


def _unseen(character: str) -> bool:
    return character != "\n" and unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{int.from_bytes(units[i : i + 2]):04x}" for i in range(0, len(units), 2))
