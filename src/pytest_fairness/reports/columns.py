"""How wide a text is in a terminal, and cutting and wrapping by that: Chinese takes two columns a sign."""

from __future__ import annotations

import unicodedata


def columns_of(text: str) -> int:
    """How many columns of a terminal *text* takes: two for wide characters, none for combining ones."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def clipped(text: str, width: int) -> str:
    """*text* cut to a width in columns, ``…`` included."""
    if columns_of(text) <= width:
        return text
    kept = text
    while kept and columns_of(kept) > width - 1:
        kept = kept[: min(len(kept) - 1, width - 1)]
    return kept + "…"


def padded(text: str, width: int, *, left: bool) -> str:
    """*text* filled up with spaces to a width in columns, standing to the *left* or to the right."""
    space = " " * (width - columns_of(text))
    return text + space if left else space + text


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """The words of *text* on lines of at most *width* columns, with *first* and then *rest* before each line.

    A word that is wider than a line is broken.
    """
    lines: list[str] = []
    line, indent, empty = first, rest, True
    for word in text.split():
        gap = "" if empty else " "
        if not empty and columns_of(line) + 1 + columns_of(word) > width:
            lines.append(line)
            line, gap = indent, ""
        left = word
        while columns_of(line) + len(gap) + columns_of(left) > width:
            head = _head(left, width - columns_of(line))
            lines.append(line + head)
            left, line = left[len(head) :], indent
        line, empty = line + gap + left, False
    return [*lines, line] if line.strip() or not lines else lines


def _head(word: str, width: int) -> str:
    """As many characters of *word* as fit, but at least one."""
    kept = word[: max(width, 1)]
    while len(kept) > 1 and columns_of(kept) > width:
        kept = kept[:-1]
    return kept
