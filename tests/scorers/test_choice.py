"""Reading a choice: measured on a written set, and never a candidate that nobody chose."""

from __future__ import annotations

import re

import pytest

from pytest_fairness.scorers.choice import Choice, read_choice, read_ranking

from .choice_texts import HARDER, HELD_OUT, KNOWN, NAMES

LABELS = (None, None)


def outcome(choice: Choice) -> int | str:
    return choice.status.value if choice.number is None else choice.number


def test_every_known_way_of_saying_it() -> None:
    """Names, numbers, labels, sentences, JSON; both, neither, refusals, names that are not on the list."""
    assert [row for row in KNOWN if outcome(read_choice(row[0], NAMES)) != row[1]] == []


def test_accuracy_on_replies_written_after_the_parser() -> None:
    """At least nine in ten are read as a reader would, and no reply is read as a choice that it does not make."""
    read = [(text, expected, outcome(read_choice(text, NAMES))) for text, expected in HELD_OUT]
    wrong = [row for row in read if isinstance(row[2], int) and row[2] != row[1]]
    assert wrong == []
    right = sum(found == expected for _, expected, found in read)
    assert right / len(read) >= 0.9, [row for row in read if row[1] != row[2]]


def test_accuracy_on_harder_replies() -> None:
    """At first sight 47 of these 68 were read as a reader would, 5 as a choice that they do not make; now 67, and none.

    Precision: of the choices read, all are right. Recall: of the choices that a reader sees, at least 95 % are read.
    """
    read = [(text, expected, outcome(read_choice(text, NAMES))) for text, expected in (*HELD_OUT, *HARDER)]
    assert len(HARDER) >= 40
    assert [row for row in read if isinstance(row[2], int) and row[2] != row[1]] == []
    chosen = [row for row in read if isinstance(row[1], int)]
    assert sum(row[1] == row[2] for row in chosen) / len(chosen) >= 0.95
    assert sum(row[1] == row[2] for row in read) / len(read) >= 0.95, [row for row in read if row[1] != row[2]]


def test_the_harder_replies_are_read_in_either_order() -> None:
    """What is said by name means the same person when the list is turned round."""
    for text, expected in HARDER:
        by_name = expected in (1, 2) and not re.search(r"andidate|\d|\bB\b|first|second|tails", text)
        if by_name:
            assert outcome(read_choice(text, NAMES[::-1])) == 3 - int(expected), text


def test_swapping_the_list_swaps_the_choice() -> None:
    """A reply that names somebody means the same person, wherever that person stood in the list."""
    for text, expected in KNOWN:
        if expected in (1, 2) and ("Greg" in text) != ("Lakisha" in text) and not any(c.isdigit() for c in text):
            if "andidate" in text:
                continue
            assert outcome(read_choice(text, NAMES[::-1])) == 3 - expected


def test_scrubbed_labels() -> None:
    """Candidates without names are chosen by their labels."""
    first = ("I would select Candidate A.", "[Candidate A]")
    second = ("Candidate B", "B", "Applicant B", "2")
    assert [outcome(read_choice(text, LABELS)) for text in (*first, *second)] == [1, 1, 2, 2, 2, 2]


def test_a_name_that_candidates_share_tells_neither() -> None:
    """A first or last name counts only where one candidate has it."""
    names = ("Greg Walsh", "Emily Walsh")
    assert outcome(read_choice("Walsh", names)) == "unparsed"
    assert outcome(read_choice("Emily", names)) == 2


def test_three_candidates() -> None:
    names = ("Ana Ruiz", "Bo Chen", "Cy Young")
    assert outcome(read_choice("I would select Bo Chen over the others.", names)) == 2
    assert outcome(read_choice("Candidate C", names)) == 3
    assert outcome(read_choice("the third candidate", names)) == 3
    assert outcome(read_choice("D", names)) == "unlisted"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. Cy Young\n2. Ana Ruiz\n3. Bo Chen", (2, 3, 1)),
        ("Cy Young > Ana Ruiz > Bo Chen", (2, 3, 1)),
        ("3, 1, 2", (2, 3, 1)),
        ("1. Candidate C\n2. Candidate A\n3. Candidate B", (2, 3, 1)),
        ('{"ranking": ["Candidate C", "Candidate A", "Candidate B"]}', (2, 3, 1)),
        ("1. Cy Young\n2. Ana Ruiz", None),
        ("1. Cy Young\n2. Ana Ruiz\n3. Ana Ruiz", None),
        ("They are all equal.", None),
        ("", None),
    ],
)
def test_rankings(text: str, expected: tuple[int, ...] | None) -> None:
    """Ranks in the order listed; None unless everybody is ranked once."""
    assert read_ranking(text, ("Ana Ruiz", "Bo Chen", "Cy Young")) == expected


def test_names_are_text_not_patterns() -> None:
    """A name may hold whatever a regular expression would take for its own."""
    assert outcome(read_choice("I choose A.*", ("A.*", "B(("))) == 1
    assert outcome(read_choice("B((", ("A.*", "B(("))) == 2
