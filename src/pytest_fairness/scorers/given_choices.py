"""Read a choice, or a ranking, that was asked for by a form or by a line.

Whom it names is read as in a reply that is nothing but a candidate: by name, label or number. An
answer that is none of those asked for is unread, whatever the prose beside it says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_fairness.model import CANDIDATES, JSON
from pytest_fairness.scorers.choice import (
    Choice,
    ChoiceStatus,
    bare_choice,
    ranks_of,
    read_choice,
    read_ranking,
)
from pytest_fairness.scorers.given_answers import GivenValue, given_value
from pytest_fairness.scorers.outcome import ReadBy

_UNPARSED = Choice(ChoiceStatus.UNPARSED)
_REFUSED = Choice(ChoiceStatus.REFUSED)
#: What a form may say in the place of a candidate, and what it comes to.
_BESIDE: Mapping[str, Choice] = {
    "neither": Choice(ChoiceStatus.NEITHER),
    "none": Choice(ChoiceStatus.NEITHER),
    "both": Choice(ChoiceStatus.BOTH),
    "tie": Choice(ChoiceStatus.BOTH),
}
_BETWEEN_RANKS = re.compile(r"\s*[,;>\n]\s*")


class AskedChoice(NamedTuple):
    """The key under which a design asks for a choice, and the words that it accepts in the place of
    a candidate.
    """

    key: str
    beside: Collection[str]

    @classmethod
    def of(cls, answer: Mapping[str, JSON] | None) -> AskedChoice | None:
        """Return what the design whose table carries *answer* asks for; None where that is no
        choice.
        """
        if answer is None:
            return None
        answers: Any = answer["answers"]
        if CANDIDATES not in answers:
            return None
        return cls(str(answer["key"]), frozenset(answers) - {CANDIDATES})


class ReadChoice(NamedTuple):
    """A choice, and what read it."""

    choice: Choice
    read_by: ReadBy


class ReadRanking(NamedTuple):
    """The rank of each candidate, None where none was read, and what read it."""

    ranks: tuple[int, ...] | None
    read_by: ReadBy


def read_asked_choice(
    reply: str, names: Sequence[str | None], asked: AskedChoice | None
) -> ReadChoice:
    """Return which of *names* the *reply* chooses: by form or line where it is *asked* for one and
    holds one, else by rules.
    """
    given = None
    if asked is not None:
        given = given_value(reply, asked.key)
    if asked is None or given is None:
        choice = read_choice(reply, names)
        return ReadChoice(choice, _reader(ReadBy.RULE, read=choice.is_parsed))
    choice = _choice_given(given, names, asked.beside)
    return ReadChoice(choice, _reader(_form_or_line(given), read=choice.is_parsed))


def read_asked_ranking(
    reply: str, names: Sequence[str | None], asked: AskedChoice | None
) -> ReadRanking:
    """Return the rank that *reply* gives each of *names*, 1 for the best, as
    :func:`read_asked_choice` reads a choice.
    """
    given = None
    if asked is not None:
        given = given_value(reply, asked.key)
    if given is None:
        ranks = read_ranking(reply, names)
        return ReadRanking(ranks, _reader(ReadBy.RULE, read=ranks is not None))
    ranks = _ranks_given(given, names)
    read = given.declined or ranks is not None
    return ReadRanking(ranks, _reader(_form_or_line(given), read=read))


def _reader(reader: ReadBy, *, read: bool) -> ReadBy:
    """Return the *reader* where it has *read* anything."""
    if read:
        return reader
    return ReadBy.UNREAD


def _form_or_line(given: GivenValue) -> ReadBy:
    """Return whether *given* stood in a form or on a line."""
    if given.form:
        return ReadBy.FORM
    return ReadBy.LINE


def _choice_given(
    given: GivenValue, names: Sequence[str | None], beside: Collection[str]
) -> Choice:
    """Return the choice that *given* is; UNPARSED where that was not among what was asked for."""
    if given.declined:
        return _REFUSED
    if type(given.value) not in (str, int):
        return _UNPARSED
    text = str(given.value).strip()
    word = text.casefold()
    if word in beside:
        return _BESIDE[word]
    choice = bare_choice(text, names)
    if choice.number or choice.status is ChoiceStatus.UNLISTED:
        return choice
    return _UNPARSED


def _ranks_given(given: GivenValue, names: Sequence[str | None]) -> tuple[int, ...] | None:
    """Return the ranks that *given* lists from best to worst; None unless every candidate stands
    there once.
    """
    items = given.value
    if given.declined:
        return None
    if isinstance(items, str):
        items = _BETWEEN_RANKS.split(items)
    if not isinstance(items, list):
        return None
    return ranks_of([bare_choice(str(item), names).number for item in items], len(names))
