"""What the scorers of short answers share: one plain form of a text, and the JSON object in a reply."""

from __future__ import annotations

import json
import re
from typing import Any

# A reply longer than this is not a rating or a decision with some prose; reading on costs time and finds
# accidents.
LONGEST = 20_000

_PLAIN = str.maketrans(
    {
        "’": "'",
        "‘": "'",
        "“": '"',
        "”": '"',
        "−": "-",
        "–": "-",
        "—": "-",
        "\u00a0": " ",
        "*": None,
        "`": None,
    }
    | dict.fromkeys(map(chr, (0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF)))
)
_OBJECT = re.compile(r"\{[^{}]*\}")


def plain(text: str) -> str:
    """*text* with plain quotes and dashes, without Markdown emphasis and zero-width characters, cut short."""
    if len(text) > LONGEST:
        text = text[:LONGEST].rpartition(" ")[0]  # a number cut in two is another number
    return text.translate(_PLAIN).strip()


def json_fields(text: str) -> dict[str, list[Any]] | None:
    """The fields of the JSON object that *text* is or holds, keys in lower case; ``None`` without one.

    Each key has the list of all its values, so that a key given twice is seen. Only a whole object or flat
    objects within prose are read; anything broken, too deep or too large is no object.
    """
    text = text[:LONGEST].strip()
    candidates = [text] if text.startswith("{") and text.endswith("}") else []
    candidates.extend(_OBJECT.findall(text))
    for number, candidate in enumerate(candidates):
        found = _object(candidate)
        if found is None:
            continue
        if number == 0 and candidate == text:
            return found
        # Several objects in one reply: their values stand side by side, for the caller to find them at odds.
        for other in candidates[number + 1 :]:
            for key, values in (_object(other) or {}).items():
                found.setdefault(key, []).extend(values)
        return found
    return None


def _object(text: str) -> dict[str, list[Any]] | None:
    try:
        pairs = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, _Pairs):
        return None
    found: dict[str, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(re.sub(r"[\s_-]+", "_", str(key).strip().lower()), []).append(value)
    return found


class _Pairs(list[tuple[str, Any]]):
    """The pairs of a JSON object, duplicates kept."""
