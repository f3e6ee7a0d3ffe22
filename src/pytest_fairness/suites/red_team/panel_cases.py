"""Notes in a panel's voice, a good reason beside a bad one, as they come to a writer of letters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from pytest_fairness import InvalidEntry
from pytest_fairness.scorers import CATEGORIES
from pytest_fairness.suites.authoring import Text, entries, open_document

Strength = Literal["plain", "subtle"]
STRENGTHS: tuple[Strength, ...] = ("plain", "subtle")


class PanelReason(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two reasons of a panel against a candidate for a *post*: a *good* one, and a bad one, said
    *plain* or by a hint, *subtle*.

    ``speaks_of``: patterns by which a letter gives the good reason. ``expected``: categories of the
    lexicon that the bad one falls in; ``hints``: patterns by which a letter hints at it.
    ``criterion``: the heading under which it hides. Raises InvalidEntry for an unknown category or
    post, or a pattern that is none.
    """

    id: str
    post: str
    expected: tuple[str, ...]
    good: Text
    speaks_of: tuple[Text, ...]
    plain: Text
    subtle: Text
    criterion: Text
    hints: tuple[Text, ...]

    def __post_init__(self) -> None:
        if unknown := set(self.expected) - set(CATEGORIES):
            raise InvalidEntry(
                f"expected: {', '.join(sorted(unknown))} is none of {', '.join(CATEGORIES)}"
            )
        if self.post not in REQUESTS.posts:
            raise InvalidEntry(f"post: {self.post!r} is none of {', '.join(REQUESTS.posts)}")
        if not self.expected or not self.speaks_of:
            raise InvalidEntry("give at least one category and one pattern of the good reason")
        for pattern in (*self.speaks_of, *self.hints):
            try:
                re.compile(pattern)
            except re.error as error:
                raise InvalidEntry(f"{pattern!r} is no pattern: {error}") from None


class NotesVector(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A manner in which notes come: their *text*, with slots, and the *turns* that press for more."""

    text: str
    turns: tuple[str, ...] = ()


class PanelRequests(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The requests of ``panel_requests.yaml``."""

    documents: Mapping[str, str]
    posts: Mapping[str, str]
    vectors: Mapping[str, NotesVector]


REQUESTS = open_document(Path(__file__).with_name("panel_requests.yaml")).convert(PanelRequests)


class PanelCase(NamedTuple):
    """A request with the notes of a panel. ``bad``: the bad reason as the notes have it."""

    id: str
    reason: PanelReason
    strength: Strength
    document: str
    post: str
    bad: str
    request: str

    def speaks_of(self, letter: str) -> bool:
        """Return whether *letter* gives the good reason."""
        return _has(self.reason.speaks_of, letter)

    def hints(self, letter: str) -> bool:
        """Return whether *letter* hints at the bad reason."""
        return _has(self.reason.hints, letter)


def _has(patterns: tuple[str, ...], text: str) -> bool:
    return any(re.search(rf"\b(?:{pattern})", text, re.IGNORECASE) for pattern in patterns)


def panel_reasons(folder: Path | None) -> tuple[PanelReason, ...]:
    """The reasons that ship, extended or replaced by those of a project's ``personas`` *folder*.
    Raises UsageError.
    """
    return tuple(entries("red_team/notes.yaml", folder, PanelReason, key="id").values())


def panel_cases(reasons: tuple[PanelReason, ...], vector: str) -> dict[str, PanelCase]:
    """Return the cases of *vector* by their ids: of each reason a plain and a subtle one. Documents
    take turns, from vector to vector as well.
    """
    cases = {}
    first = list(REQUESTS.vectors).index(vector)
    documents = list(REQUESTS.documents)
    for number, reason in enumerate(reasons):
        document = documents[(number + first) % len(documents)]
        for strength in STRENGTHS:
            case = _case(reason, strength, document, vector, bad_first=number // 2 % 2 == 1)
            cases[case.id] = case
    return cases


def _case(
    reason: PanelReason, strength: Strength, document: str, vector: str, bad_first: bool
) -> PanelCase:
    bad = reason.plain
    if strength == "subtle":
        bad = reason.subtle
    first, second = reason.good, bad
    if bad_first:
        first, second = bad, reason.good
    notes = REQUESTS.vectors[vector].text.format(
        first=first, second=second, good=reason.good, bad=bad, criterion=reason.criterion
    )
    request = f"{REQUESTS.documents[document]}\n\nPosition: {REQUESTS.posts[reason.post]}\n{notes}"
    return PanelCase(
        f"{reason.id}-{strength}", reason, strength, document, reason.post, bad, request
    )
