"""The written replies of the simulated endpoint: their words, their length, their tone."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from vaderSentiment.vaderSentiment import BOOSTER_DICT, NEGATE, SentimentIntensityAnalyzer

from pytest_fairness.endpoints.protocol import Request
from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.endpoints.simulated.bias import Draws
from pytest_fairness.endpoints.simulated.writing import (
    BANKS,
    LADDER,
    VALENCE,
    Bank,
    Phrase,
    expand,
    write,
)
from pytest_fairness.model import Message

ANALYSER = SentimentIntensityAnalyzer()
#: A name of one word, of several, of a word that VADER scores up, of one that it scores down, of
#: another script.
NAMES = (
    "Emily",
    "María del Carmen de la Cruz",
    "Grace Hope",
    "Mia Graves",
    "李伟",
    "D'Angelo O'Neil-Smith",
)


def every_phrase(bank: Bank) -> list[str]:
    phrases = [
        *bank.phrases.values(),
        *(lengths for pattern in bank.fillers for lengths in pattern.values()),
    ]
    return [*(phrase.text for some in phrases for phrase in some), *bank.qualities]


def words_of(text: str) -> list[str]:
    return [word.strip(".,:;!?") for word in re.sub(r"\{\w+\}", " ", text).lower().split()]


@pytest.mark.parametrize("bank", BANKS.values(), ids=BANKS)
def test_no_phrase_holds_a_word_that_vader_would_hear_otherwise_than_planned(bank: Bank) -> None:
    """Every scored word is in our table with VADER's own value; no negation, intensifier or "but"
    is in any phrase. No reply can show a slot that was never filled, two spaces, or a space before
    a comma.
    """
    disturbing = set(NEGATE) | set(BOOSTER_DICT) | {"but", "least", "no", "n't"}
    known = {"name", "role", "they", "their", "them", "They", "Their", "1", "2", "3"}
    for phrase in every_phrase(bank):
        for word in words_of(phrase):
            assert ANALYSER.lexicon.get(word, 0.0) == VALENCE.get(word, 0.0), (word, phrase)
            assert word not in disturbing, (word, phrase)
        assert set(re.findall(r"\{(\w+)\}", phrase)) <= known, phrase
        assert not re.search(r"  | [,.]|\s$|[\[\]]", phrase), phrase


def test_the_table_of_valences_is_vaders() -> None:
    """Each valence that we use, of ladder, phrases, roles and names, is the one in VADER's lexicon."""
    ours = {**VALENCE, **dict(LADDER)}
    assert {word: ANALYSER.lexicon.get(word, 0.0) for word in ours} == ours


def test_the_ladder_climbs_without_gaps() -> None:
    """Neighbouring adjectives differ by little, so that any strength can be met."""
    values = [value for _, value in LADDER]
    assert values == sorted(values)
    assert max(high - low for low, high in pairwise(values)) <= 0.6


def test_optional_parts_make_every_length_and_slots_are_counted() -> None:
    """A pattern with two optional parts stands for four sentences. Names and roles are counted
    apart, since they may be of several words."""
    assert expand("A[ b] c[ d].") == ["A c.", "A c d.", "A b c.", "A b c d."]
    assert expand("Plain.") == ["Plain."]
    phrase = Phrase("{name} is glad of the {role} role, {name}.")
    assert (phrase.words, phrase.names, phrase.roles, phrase.tone) == (8, 2, 1, 2.0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bank", BANKS.values(), ids=BANKS)
def test_the_name_changes_neither_length_nor_tone(bank: Bank, name: str) -> None:
    """A text has the number of words that was ordered, and nearly the tone, whatever the name in
    it.
    """
    for number in range(12):
        text = write(
            bank, Draws("length", number), name=name, role="data analyst", length=0.5, tone=0.3
        )
        assert len(text.split()) == round(bank.words[0] + 0.5 * bank.words[1]), text
        wanted = bank.tone[0] + 0.3 * bank.tone[1]
        assert ANALYSER.polarity_scores(text)["compound"] == pytest.approx(wanted, abs=0.08), text
        assert name in text


@pytest.mark.parametrize("bank", BANKS.values(), ids=BANKS)
def test_tone_follows_the_order_and_is_not_saturated(bank: Bank) -> None:
    """From a cold text to a warm one, VADER's score climbs all the way and stays clear of 1."""
    scores = []
    for level in (-2.0, -1.0, 0.0, 1.0, 2.0):
        texts = [
            write(bank, Draws(n), name="Ann", pronoun="she", role=None, tone=level)
            for n in range(15)
        ]
        found = [ANALYSER.polarity_scores(text)["compound"] for text in texts]
        scores.append(sum(found) / len(found))
    assert scores == sorted(scores)
    assert scores[-1] < 0.97
    assert scores[2] == pytest.approx(bank.tone[0], abs=0.03)


def reply(prompt: str, repetition: int = 1) -> str:
    request = Request(messages=(Message("user", prompt),), repetition=repetition)
    return simulated_endpoint().reply(request).text or ""


def test_texts_are_varied_and_keep_a_limit() -> None:
    """A hundred letters to one person are a hundred different letters. Under 80 words means under
    80 words.
    """
    letter = "Write a rejection letter to Emily Walsh, who applied for the post of nurse."
    assert len({reply(letter, n) for n in range(100)}) == 100
    limited = "Write a job reference for Ann Lee, a nurse, in under 80 words."
    assert max(len(reply(limited, n).split()) for n in range(60)) < 80


def test_pronouns_are_those_of_the_text() -> None:
    """Who is called she in the prompt is called she in the reply; without a pronoun the reply says
    they.
    """
    pronouns = re.compile(r"\b(?:she|her|he|his|him|they|their|them)\b", re.IGNORECASE)
    her = set(pronouns.findall(reply("Write a job reference for Ann Lee. She worked as a nurse.")))
    assert her
    assert her <= {"She", "she", "Her", "her"}
    them = set(pronouns.findall(reply("Write a job reference for Ann Lee, a nurse.")))
    assert them <= {"They", "they", "Their", "their", "them"}


def test_braces_in_a_name_stay_what_they_are() -> None:
    """A name is somebody else's text: it is never taken for a slot or a format."""
    assert "{role} {0.__class__}" in write(
        BANKS["employer"], Draws("b"), name="{role} {0.__class__}", role="nurse"
    )
