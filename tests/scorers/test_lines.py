"""Answer lines of replies whose authors did not know the readers, 200, 100 and 100 of them: in the
wrong case, quoted, doubled, missing, after a change of mind, in German, French and Spanish.

At first sight of the earliest author's texts 123 of the 197 that a design could ask for were read,
36 unread and none wrong. Scales (``7/10``), a key in French or Spanish or said twice, an answer in
angle brackets and the tokens that end a reply were added then, so that what is read since is no
figure of fresh texts. Of each of the other two one line was read wrongly at first sight, of 100: it
stood in thoughts that never end.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_fairness.scorers.given_answers import given_answer
from pytest_fairness.scorers.given_choices import AskedChoice, read_asked_choice

DATA = Path(__file__).parents[1] / "data"
EARLIER, FIRST, SECOND = "replies_lines", "replies_lines_first", "replies_lines_second"
#: No design asks for a range of more numbers: three replies of the earliest author have one.
LONGEST_RANGE = 1001


@cache
def entries(author: str) -> list[dict[str, Any]]:
    whole = yaml.safe_load((DATA / f"{author}.yaml").read_text(encoding="utf-8"))
    return [entry for entry in whole if len(answers_of(entry)) <= LONGEST_RANGE]


def answers_of(entry: dict[str, Any]) -> list[str]:
    options = entry["options"]
    if isinstance(options, dict):
        low, high = options["range"]
        options = range(low, high + 1)
    return list(map(str, options))


def outcome(entry: dict[str, Any]) -> str:
    given = given_answer(entry["reply"], None, answers_of(entry))
    if given and given.text is None:  # these authors were offered this label, too
        given = given_answer(entry["reply"], None, ["declined"])
    answer = given and given.text
    if answer is None:
        return "none" if entry["label"] is None else "unread"
    return "right" if answer == str(entry["label"]) else "wrong"


@pytest.mark.parametrize(
    ("author", "counts"),
    [
        (EARLIER, {"right": 138, "none": 38, "unread": 21}),
        (FIRST, {"right": 77, "none": 12, "unread": 11}),
        (SECOND, {"right": 89, "none": 6, "unread": 5}),
    ],
)
def test_what_is_read_of_another_authors_lines(author: str, counts: dict[str, int]) -> None:
    assert Counter(map(outcome, entries(author))) == counts


@pytest.mark.parametrize(
    ("line", "answers", "expected"),
    [
        ("ANSWER: 7/10", range(1, 11), "7"),
        ("ANTWORT: 7 von 10", range(1, 11), "7"),
        ("Réponse : 6 sur 10.", range(1, 11), "6"),
        ("ANSWER: 7/20", range(1, 11), None),
        ("ANSWER: 4/5", range(1, 11), None),
        ("ANSWER: ANSWER: 4", range(1, 6), "4"),
        ("ANSWER: <4>", range(1, 6), "4"),
        ("ANSWER: <one of 1, 2, 3, 4, 5>", range(1, 6), None),
        ("ANSWER: <1/2/3>", range(1, 6), None),
        ("ANSWER: 3<|end|>", range(1, 6), "3"),
        ("<think>I think 3.\n\nANSWER: 3\n\nBut wait, let me check", range(1, 6), None),
        ("ANSWER: 4\n<think>\nOr was it 3?\nANSWER: 3", range(1, 6), "4"),
        ("<think>3?</think>\nIt wrote <think> first.\nANSWER: 4", range(1, 6), "4"),
    ],
)
def test_how_a_line_may_say_a_number(line: str, answers: range, expected: str | None) -> None:
    given = given_answer(line, None, list(map(str, answers)))
    assert (given and given.text) == expected


def test_no_candidate_is_named_for_another() -> None:
    """Of those who were offered, by a line; who declines in prose is read by the rules."""
    read = Counter[str]()
    for entry in entries(EARLIER):
        names = entry["options"]
        if isinstance(names, dict) or not all(name.istitle() for name in names):
            continue
        reply = entry["reply"].replace("ANSWER: declined", "ANSWER: no answer")
        choice, reader = read_asked_choice(reply, names, AskedChoice("choice", ()))
        if choice.number is None:
            read[choice.status.value] += 1
        else:
            assert names[choice.number - 1] == entry["label"], entry["reply"]
            read[reader.value] += 1
    assert read == {"line": 19, "unparsed": 3, "refused": 2}
