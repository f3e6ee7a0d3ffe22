"""How long a reply is."""

from __future__ import annotations


def word_count(text: str) -> int:
    """The number of words of *text*, separated by white space."""
    return len(text.split())


def char_count(text: str) -> int:
    """The number of characters (code points) of *text*, white space included."""
    return len(text)
