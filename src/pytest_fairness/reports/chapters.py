"""A page as chapters of pictures with their tables: what a suite's own report is put together from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pytest_fairness.model import Reason, Verdict
from pytest_fairness.reports.drawing import Picture


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict with its reason, shown as a badge."""

    verdict: Verdict
    reason: Reason | None = None


#: What stands in a table: words as they are (escaped where they are shown), or a verdict.
Entry: TypeAlias = "str | Judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a head; the first column names the row. Columns from *figures* on are figures, set to the right.

    ``words`` are the titles of later columns that hold words all the same; a verdict is never a figure.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    figures: int = 1
    words: frozenset[str] = frozenset({"verdict"})

    def is_figure(self, column: int) -> bool:
        return column >= self.figures and self.head[column] not in self.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One sentence of a conclusion, with its verdict and what it is about."""

    about: str
    sentence: str
    judged: Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A picture with the table that stands for it, under a heading of its own where there are several."""

    heading: str = ""
    text: Sequence[str] = ()
    judged: Judged | None = None
    picture: Picture | None = None
    tables: Sequence[Table] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A part of the page, with the sentences that open it."""

    id: str
    heading: str
    text: Sequence[str] = ()
    blocks: Sequence[Block] = ()


def without_verdict(sentence: str, verdict: Verdict) -> str:
    """The *sentence* without the verdict that it starts with: on a page a badge stands beside it."""
    sentence = sentence.removeprefix(f"{verdict}: ")
    first = sentence.split(" ", 1)[0]
    # A name like letter_score is written as it is spelt in code, also at the start of a sentence.
    return sentence[:1].upper() + sentence[1:] if first.isalpha() else sentence
