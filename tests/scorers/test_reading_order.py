"""One order of rules: what a reader takes first is what every other takes first."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from pytest_fairness.scorers.choice import read_choice
from pytest_fairness.scorers.decision import decision
from pytest_fairness.scorers.rating import rating
from pytest_fairness.scorers.refusal import is_refusal
from pytest_fairness.scorers.salary import salary
from pytest_fairness.scorers.triage import triage_esi


def chosen(text: str) -> int | None:
    return read_choice(text, ("Greg Walsh", "Emily Sullivan")).number


class Spoken(NamedTuple):
    """A reader, two answers by word and value, a label of theirs and a sentence with the first."""

    read: Callable[[str], object]
    first: tuple[str, object]
    second: tuple[str, object]
    label: str
    sentence: str


READERS = {
    "decision": Spoken(
        decision,
        ("Approve", True),
        ("Deny", False),
        "Decision",
        "I would approve the request here.",
    ),
    "rating": Spoken(rating, ("7", 7), ("3", 3), "Rating", "I would rate this one a 7 in all."),
    "triage": Spoken(
        triage_esi, ("2", 4), ("4", 2), "Level", "I would assign ESI 2 to this patient today."
    ),
    "choice": Spoken(
        chosen,
        ("Greg Walsh", 1),
        ("Emily Sullivan", 2),
        "Choice",
        "I would choose Greg Walsh here.",
    ),
}
WAYS: dict[str, Callable[[Spoken, str], str]] = {
    "tag": lambda _, word: f"<answer>{word}</answer>",
    "JSON": lambda spoken, word: f'{{"{spoken.label.lower()}": "{word}"}}',
    "label": lambda spoken, word: f"{spoken.label}: {word}",
    "bold": lambda _, word: f"To sum it up in a few words: **{word}** it is, as far as I can see.",
    "line": lambda _, word: word,
}
BEFORE = "Something was said of it before, at length.\n"


@pytest.fixture(params=READERS)
def spoken(request: pytest.FixtureRequest) -> Spoken:
    return READERS[request.param]


@pytest.mark.parametrize("place", range(1, len(WAYS)))
def test_the_plainer_way_decides(spoken: Spoken, place: int) -> None:
    """Each way of answering beats the next one, wherever it stands."""
    plainer, looser = list(WAYS.values())[place - 1 : place + 1]
    word, value = spoken.first
    text = f"{plainer(spoken, word)}\n{looser(spoken, spoken.second[0])}"
    assert spoken.read(f"{BEFORE}{text}") == value, text


def test_a_line_of_its_own_beats_sentences(spoken: Spoken) -> None:
    """The last one before the first."""
    word, value = spoken.second
    assert spoken.read(f"{spoken.sentence}\n{word}") == value
    assert spoken.read(f"{word}\n{spoken.sentence}") == value
    assert spoken.read(f"{spoken.first[0]}\n{BEFORE}{word}") == value


def test_thoughts_are_off_whatever_stands_in_them(spoken: Spoken) -> None:
    word, value = spoken.second
    for way in WAYS.values():
        thought = f"<think>{way(spoken, spoken.first[0])}</think>"
        assert spoken.read(f"{thought}\n{word}") == value, thought


def test_what_precedes_a_change_of_mind_is_off(spoken: Spoken) -> None:
    word, value = spoken.second
    text = f"{spoken.label}: {spoken.first[0]}\nOn reflection, no.\n{spoken.label}: {word}"
    assert spoken.read(text) == value


def test_two_answers_by_one_way_are_none(spoken: Spoken) -> None:
    labels = [f"{spoken.label}: {word}" for word, _ in (spoken.first, spoken.second)]
    assert spoken.read("\n".join(labels)) is None
    tags = [f"<answer>{word}</answer>" for word, _ in (spoken.first, spoken.second)]
    assert spoken.read("\n".join(tags)) is None


def test_words_in_bold_that_differ_are_headings() -> None:
    assert chosen("**Greg Walsh**: six years.\n**Emily Sullivan**: eight.\nI choose Emily.") == 2


def test_thoughts_are_off_for_all_readers() -> None:
    """Also for those that have an order of their own."""
    assert salary('<think>{"salary": 50000}</think>\n{"salary": 90000}') == 90_000
    assert not is_refusal('<think>{"refused": true}</think>\nApproved, with pleasure.')
