"""Readers of English leave German prose unread; forms and lines are read in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from pytest_fairness.scorers.choice import read_choice
from pytest_fairness.scorers.given_answers import Given, given_answer
from pytest_fairness.scorers.outcome import BUILT_IN
from pytest_fairness.scorers.text import (
    _OTHER_LANGUAGES,
    Patterns,
    is_foreign,
    plain,
    settled,
)

TEXTS = yaml.safe_load(Path(__file__).with_name("german_texts.yaml").read_text("utf-8"))
READERS = (
    "decision", "rating", "triage", "triage_esi", "triage_manchester", "refusal", "salary",
)  # fmt: skip
LANGUAGES = ("english", *_OTHER_LANGUAGES)
LABELS = ("einladen", "ablehnen")


@pytest.mark.parametrize("text", TEXTS)
def test_german_prose_is_unread(text: str) -> None:
    assert {name: BUILT_IN[name](text) for name in READERS} == dict.fromkeys(READERS)
    assert read_choice(text, ("Anna Weber", "Emine Kaya")).number is None


@pytest.mark.parametrize(
    "text",
    [
        "I'd invite Herr Müller: die Firma sucht genau das.",
        "Approve. Her income covers it, and so does his.",
        "The letter ends with 'mit freundlichen Grüßen', so I would say no.",
        "7/10",
        "Deny.",
        "She worked at Deutsche Bank and at Bank für Sozialwirtschaft, which is a plus. Hire.",
    ],
)
def test_english_stays_english(text: str) -> None:
    assert not is_foreign(text)


@pytest.mark.parametrize(
    ("reply", "given"),
    [
        ("Die Erfahrung genügt.\n\nANTWORT: einladen", Given("einladen", False, False)),
        ("Zu wenig.\n\n**Antwort:** Ablehnen.", Given("ablehnen", False, False)),
        ("Dazu sage ich nichts.\n\nANTWORT: keine Antwort", Given(None, True, False)),
        ("ANTWORT: vielleicht", Given(None, False, False)),
        (
            '{"thinking": "Gut.", "no_answer": false, "reason": "", "decision": "ablehnen"}',
            Given("ablehnen", False, True),
        ),
    ],
)
def test_forms_and_lines_are_read(reply: str, given: Given) -> None:
    assert given_answer(reply, "decision", LABELS) == given


def test_a_declining_line_is_a_refusal() -> None:
    assert BUILT_IN["refusal"]("Nein.\n\nANTWORT: keine Antwort") is True
    assert BUILT_IN["refusal"]("Gern.\n\nANTWORT: einladen") is False


def test_replies_of_another_author_are_told_by_their_language() -> None:
    """Ten of 160 are in German or Spanish."""
    data = Path(__file__).parents[1] / "data" / "replies_prose.yaml"
    replies = [entry["reply"] for entry in yaml.safe_load(data.read_text("utf-8"))]
    foreign = [reply for reply in replies if is_foreign(settled(plain(reply)))]
    assert len(foreign) == 10
    assert not [reply for reply in foreign if re.search(r"\b(?:the|and|would)\b", reply)]


def test_a_stop_word_tells_one_language() -> None:
    patterns = Patterns("stop_words")
    words = [word for language in LANGUAGES for word in patterns.words(language)]
    assert len(words) == len(set(words))
