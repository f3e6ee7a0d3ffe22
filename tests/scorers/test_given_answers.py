"""Answers that were asked for: by a form, by a line."""

from __future__ import annotations

import json

import pytest

from pytest_fairness.scorers.given_answers import Given, given_answer, last_line, read_form
from tests.support.watch import LONG, watched

LABELS = ("approve", "deny")


def form(**fields: object) -> str:
    return json.dumps({"thinking": "It fits.", "no_answer": False, "reason": "", **fields})


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (form(decision="approve"), "approve"),
        (form(decision="Approve"), "approve"),
        (f"```json\n{form(decision='deny')}\n```", "deny"),
        (f"<think>{form(decision='deny')}</think>\n{form(decision='approve')}", "approve"),
        (f"First {form(decision='deny')}, no: {form(decision='approve')}", "approve"),
        ("It is fine.\nANSWER: approve", "approve"),
        ("It is fine.\n\n**Answer: Deny.**", "deny"),
        ("> `ANSWER: approve`", "approve"),
        ("ANSWER: deny\nOn reflection:\nANSWER: approve", "approve"),
        ("Alles in Ordnung.\nANTWORT: approve", "approve"),
        ("You want `ANSWER: <one of approve, deny>`.\nANSWER: deny", "deny"),
        ("ANSWER: deny\nYou wanted `ANSWER: <one of approve, deny>`.", "deny"),
        ("ANSWER\u200b: “approve”\r\n", "approve"),
    ],
)
def test_an_answer_that_was_asked_for(reply: str, answer: str) -> None:
    given = given_answer(reply, "decision", LABELS)
    assert given is not None
    assert (given.text, given.declined) == (answer, False)


@pytest.mark.parametrize(
    "reply",
    [
        form(decision="approve with conditions"),
        form(decision=None),
        form(decision=["approve"]),
        '{"decision": "approve", "decision": "deny"}',
        "I would approve it.\nANSWER: approve (with conditions)",
        "I would approve it.\nANSWER: approve or deny",
        "ANSWER: genehmigen",
        "ANSWER: declined",  # the loan, or to answer
        "ANSWER:",
    ],
)
def test_what_was_not_asked_for_is_unread(reply: str) -> None:
    """Whatever stands in the prose beside it."""
    given = given_answer(reply, "decision", LABELS)
    assert given is not None
    assert (given.text, given.declined) == (None, False)


@pytest.mark.parametrize(
    "reply",
    [
        form(decision=None, no_answer=True),
        form(no_answer=True),
        "I will not judge.\nANSWER: no answer",
        "I will not judge.\nANSWER: no_answer",
    ],
)
def test_declining(reply: str) -> None:
    given = given_answer(reply, "decision", LABELS)
    assert given is not None
    assert given.declined


@pytest.mark.parametrize(
    "reply", ["I approve.", "The answer is to deny it.", '{"note": 1}', "{not json}", ""]
)
def test_prose_is_left_to_the_rules(reply: str) -> None:
    assert given_answer(reply, "decision", LABELS) is None


def test_without_a_design_whatever_stands_there_is_given() -> None:
    """A form says whether it declines; any other object is left to the rules."""
    assert given_answer("ANSWER: 7", None, ()) == Given("7", declined=False, form=False)
    assert given_answer(form(rating=7), None, ()) == Given("7", declined=False, form=True)
    assert given_answer('{"rating": 7}', None, ()) is None


@pytest.mark.parametrize(
    "reply",
    [
        "ANSWER: Answer: approve",
        "Antwort: Antwort: approve",
        "Respuesta: Respuesta: approve",
        "Réponse : Réponse : approve",
        "ANSWER: Réponse\N{NO-BREAK SPACE}: approve",
        "ANSWER：ANSWER：approve",
        "ANSWER: answer = approve",
        "ANSWER: **Answer**: approve",
        "**ANSWER:** **Answer:** approve",
        "ANSWER: *Answer* : *approve*",
        "> ANSWER: `Answer`: `approve`.",
        'Antwort: "Antwort": „approve“',
        "### Respuesta: __Respuesta__ = approve",
        "After weighing both sides:\n\nANSWER: ***Answer***: **Approve**.\n<|end|>",
    ],
)
def test_a_key_said_twice_is_one_key(reply: str) -> None:
    assert given_answer(reply, "decision", LABELS) == Given("approve", declined=False, form=False)


def test_hostile_replies_are_read_in_a_moment() -> None:
    for part in ("{", '{"a":', "[", "ANSWER:", "answer ", "*", "\n", '{"decision": "approve"} '):
        with watched():
            text = (part * LONG)[:LONG]
            given_answer(text, "decision", LABELS)
            read_form(text, "decision")
            last_line(text)
