"""Parity of the texts of the groups, and of the arms, in all but the group: length and agreement.

A longer prompt, or one whose grammar the swap broke, is a difference of its own. Nothing here is a
verdict: it is what a reader of a finding wants to know of the texts behind it. A swap that changed
nothing is an error.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean
from typing import NamedTuple

from pytest_fairness.design.templates import article
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Cell

_LENGTH_GAP = 0.05
_ARTICLE = re.compile(r"\b([Aa]n?)\s+([A-Za-z][\w'-]*)")
_AGREEMENT = (
    re.compile(r"\b(?:he|she)\s+(?:are|have|were|do|don't|work|apply)\b", re.IGNORECASE),
    re.compile(r"\bthey\s+(?:is|has|was|does|doesn't|works|applies)\b", re.IGNORECASE),
    re.compile(r"\b(?!(?:that|had)\b)([^\W\d_]+)\s+\1\b", re.IGNORECASE),
    re.compile(r"\s,|,\s*,|\(\s*\)|[^\S\n]{2,}(?=\w)"),
)


class TextParity(NamedTuple):
    """The texts of one group (or arm): their mean length in characters, and what reads wrong."""

    label: str
    characters: float
    slips: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parity:
    """The texts compared. ``gap`` is (longest − shortest) / shortest of the mean lengths in
    characters.
    """

    rows: tuple[TextParity, ...]

    @property
    def gap(self) -> float:
        """The length that the longest prompt has over the shortest, as a share of the shortest."""
        lengths = [row.characters for row in self.rows]
        if any(lengths):
            return (max(lengths) - min(lengths)) / min(lengths)
        return 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what deserves a second look, a sentence each; empty where nothing does."""
        notes = [f"{row.label}: {row.slips[0]!r} reads wrong" for row in self.rows if row.slips]
        if self.gap > _LENGTH_GAP:
            shortest, *_, longest = sorted(self.rows, key=lambda row: row.characters)
            unequal = (
                f"unequal length: the texts of {longest.label} have {longest.characters:.0f} "
                f"characters on average, those of {shortest.label} {shortest.characters:.0f}"
            )
            notes.insert(0, unequal)
        return tuple(notes)


def group_parity(cells: Iterable[Cell], by: str) -> Parity:
    """The texts of each group of *by*; for choices, the lines of each group's candidates.

    Raises UsageError where no cell has *by*, and where two groups have the same texts: the swap
    changed nothing.
    """
    texts = []
    for cell in cells:
        texts += [(group, text, text) for group, text in _texts(cell, by)]
    if not texts:
        raise UsageError(f"by={by!r}: no cell has this protected class")
    alike = "are the same, so the swap changes nothing; check the slots of the template"
    return _parity(texts, f"{by}: the texts of", alike)


def arm_parity(cells: Iterable[Cell]) -> Parity:
    """The texts of each arm. Raises UsageError where two arms ask the same with the same system
    prompt.
    """
    texts = [
        (cell.arm or "single", "\n".join(cell.turns), (cell.system, cell.turns)) for cell in cells
    ]
    return _parity(texts, "the arms", "ask the same: there is nothing to compare")


def _parity(entries: Iterable[tuple[str, str, Hashable]], what: str, alike: str) -> Parity:
    """The texts by label, of *texts*: labels, texts and what is sent. Raises UsageError where
    *what* are *alike*.
    """
    texts: dict[str, list[str]] = defaultdict(list)
    sent: dict[str, set[Hashable]] = defaultdict(set)
    for label, text, whole in entries:
        texts[label].append(text)
        sent[label].add(whole)
    seen: dict[frozenset[Hashable], str] = {}
    for label, wholes in sent.items():
        other = seen.setdefault(frozenset(wholes), label)
        if other != label:
            raise UsageError(f"{what} {other!r} and {label!r} {alike}")
    rows = []
    for label, members in texts.items():
        slips: dict[str, None] = {}
        for text in dict.fromkeys(members):
            slips |= dict.fromkeys(_slips(text))
        rows.append(TextParity(label, fmean(map(len, members)), tuple(slips)))
    return Parity(tuple(rows))


def _texts(cell: Cell, by: str) -> Iterator[tuple[str, str]]:
    """Yield each group of *by* in *cell* with its text: the prompt, or its line of a list."""
    if by in cell.groups:
        yield cell.groups[by], cell.prompt
    elif by == "group":
        yield from _lines_of_list(cell)


def _lines_of_list(cell: Cell) -> Iterator[tuple[str, str]]:
    """Yield the group of each candidate that *cell* lists, with the line of the list."""
    for place in range(1, 27):
        group = cell.attributes.get(f"group_{place}")
        if not isinstance(group, str):
            return
        yield group, _line_of(cell.turns[0], cell.attributes.get(f"name_{place}"))


def _line_of(text: str, name: object) -> str:
    """Return the first line of *text* that holds *name*, without its number; else all of it."""
    if isinstance(name, str):
        for line in text.splitlines():
            if name in line:
                return re.sub(r"^\s*\d+[.)]\s*", "", line)
    return text


def _slips(text: str) -> Iterator[str]:
    """Yield where a slot left the grammar broken: articles, agreement, doubled words, empty
    brackets, stray commas.
    """
    for match in _ARTICLE.finditer(text):
        if match[2][0].islower() and match[1].lower() != article(match[2]):
            yield match[0]
    for pattern in _AGREEMENT:
        yield from map(itemgetter(0), pattern.finditer(text))
