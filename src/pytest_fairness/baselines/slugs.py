"""File names for baselines: readable, portable, and never shared by two tests. Standard library only.

syrupy makes names by leaving out the characters that a file system dislikes, so that the ids ``a/b`` and
``a:b`` meet in one file and the later approval overwrites the earlier. Here a readable slug is followed by a
hash of the exact identity.
"""

from __future__ import annotations

import hashlib
import json
import re

SUFFIX = ".json"
_FOREIGN = re.compile(r"[^a-z0-9_]+")
_MAX_SLUG = 140  # with score, hash and suffix well under the 255 bytes that file systems allow
_HASH_DIGITS = 12


def slug(text: str, limit: int = _MAX_SLUG) -> str:
    """*text* in ``[a-z0-9_.]``: runs of anything else become one dot. May be empty."""
    return _FOREIGN.sub(".", text.lower()).strip(".")[:limit].strip(".")


def baseline_name(test_id: str, score: str) -> str:
    """The file name of the baseline of *score* in the test *test_id*.

    Equal only for equal arguments (up to a 48-bit hash collision, which the reader notices because a document
    names its own test and score), on case-insensitive file systems too. Never hidden, never a reserved name.
    """
    identity = json.dumps([test_id, score]).encode()  # a list, so that ("a", "b.c") and ("a.b", "c") differ
    digest = hashlib.sha256(identity).hexdigest()[:_HASH_DIGITS]
    readable = ".".join(part for part in (slug(test_id.replace(".py::", "::")), slug(score, 60)) if part)
    return f"{readable or 'baseline'}-{digest}{SUFFIX}"
