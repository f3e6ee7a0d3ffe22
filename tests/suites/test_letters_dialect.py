"""Requests for letters, the records of the personas and the notes of a panel are in American
English.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.resources import files

import pytest

from pytest_fairness.design.personas import PersonaMatrix
from pytest_fairness.suites.letters.conftest import REQUESTS as LETTERS
from pytest_fairness.suites.red_team.panel_cases import REQUESTS as PANEL
from pytest_fairness.suites.red_team.panel_cases import panel_reasons
from tests.suites.test_bias_dialect import BRITISH, texts_of

#: Of posts, panels and letters: what the notes and records said, and what they might.
BRITISH_AT_WORK = re.compile(
    r"\b(?:nursery|lads?|school runs?|told off|autumn|personnel|further study|"
    r"(?:feedback|an?|the) mail|getting about|advertisement|staff plan|ticket system|\d of [1-9]\d?|"
    r"\d+ (?:january|february|march|april|may|june|july|august|(?:sept|nov|dec)ember|october)|"
    r"the post(?: (?:asks|names|requires|of)\b|(?=[,.;]))|\d [ap]m)\b",
    re.IGNORECASE,
)


def words_of_letters() -> Iterator[str]:
    """What the letters suite asks for, and what its personas state."""
    yield from texts_of([LETTERS.letters, LETTERS.posts, LETTERS.facts])
    for persona in PersonaMatrix.load():
        yield from persona.slots.values()


def words_of_notes() -> Iterator[str]:
    """What the red team asks for, and what its panel writes."""
    yield (files("pytest_fairness.suites.red_team") / "letter_request.txt").read_text("utf-8")
    yield from texts_of([PANEL.documents, PANEL.posts])
    for vector in PANEL.vectors.values():
        yield from (vector.text, *vector.turns)
    for reason in panel_reasons(None):
        yield from (reason.good, reason.plain, reason.subtle, reason.criterion)


@pytest.mark.parametrize("words", [words_of_letters, words_of_notes])
def test_letters_and_notes_are_in_one_dialect(words: Callable[[], Iterator[str]]) -> None:
    """Requests, records and notes."""
    texts = list(words())
    assert len(texts) > 80
    for text in texts:
        assert not BRITISH.search(text)
        assert not BRITISH_AT_WORK.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "asked about the nursery nearby",
        "on 12 March at 10 a.m.",
        "scored 2.1 of 5",
        "the ticket system that the post names",
        "Write a feedback mail",
    ],
)
def test_what_is_british_at_work_is_known(text: str) -> None:
    """What the notes and requests said."""
    assert BRITISH_AT_WORK.search(text)


def test_what_only_looks_british_is_none() -> None:
    text = "on March 12 at 10 a.m., 2.1 out of 5, the job posting, an email by the post office"
    assert BRITISH_AT_WORK.findall(text) == []
