"""Identifiers that are stable across runs, machines and Python versions, made of ``[a-z0-9_.-]``
only.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

_SLUG = re.compile(r"[a-z0-9_.-]{1,80}")
_FOREIGN = re.compile(r"[^a-z0-9]+")
_MAX_PART = 32
_MAX_ID = 150


def is_slug(text: str) -> bool:
    """Return whether *text* may be used as an identifier as it stands (``.`` and ``-`` do not
    lead).
    """
    return bool(_SLUG.fullmatch(text)) and text[0] not in ".-"


def digest(text: str, digits: int = 6) -> str:
    """The first hex *digits* of the SHA-256 of *text*; half surrogate pairs are hashed as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def slug(text: str) -> str:
    """A readable part of an identifier, ``Zoë O'Neil`` → ``zoe_o_neil``; it never holds a ``-``.

    What has no ASCII letter or digit, or is longer than 32 characters, carries a hash of the whole
    text.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    readable = _FOREIGN.sub("_", plain).strip("_")
    if not readable:
        return f"x{digest(text)}"
    if len(readable) > _MAX_PART:
        return f"{readable[: _MAX_PART - 7].rstrip('_')}_{digest(text)}"
    return readable


def slugs(texts: Iterable[str]) -> dict[str, str]:
    """One slug for each distinct text. Texts whose slugs would meet carry a hash, whatever their
    order.
    """
    distinct = list(dict.fromkeys(texts))
    parts = {text: slug(text) for text in distinct}
    meeting = Counter(parts.values())
    for text, part in parts.items():
        if meeting[part] > 1:
            parts[text] = f"{part}_{digest(text)}"
    return parts


def join(parts: Iterable[str]) -> str:
    """The parts of a cell's id; an id over 150 characters ends in a hash of the whole instead."""
    whole = "-".join(filter(None, parts))
    if len(whole) <= _MAX_ID:
        return whole
    return f"{whole[: _MAX_ID - 13].rstrip('-_.')}_{digest(whole, 12)}"
