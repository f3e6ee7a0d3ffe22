"""Words and tone of texts about people: what is counted, and what is seen in warm texts."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_fairness.scorers import BUILT_IN
from pytest_fairness.suites.bias.narratives import (
    agentic_share,
    agentic_words,
    communal_words,
    sentences_of,
    tone_of_sentences,
)
from tests.conftest import MODES
from tests.support.shared_sessions import SharedProject, SharedSessions

SUITE = ("--pyargs", "pytest_fairness.suites.bias")
TEXTS = Path(__file__).parents[1] / "data" / "narratives_warm.yaml"


@pytest.mark.parametrize(
    ("text", "agentic", "communal"),
    [
        ("An outstanding record, and a confident, independent mind.", 3, 0),
        ("Remarkably able; her success is known, and unmatched.", 3, 0),
        ("A kind and patient colleague, helpful and caring.", 0, 3),
        ("Kindness, warmth and tact; sympathetic and sensitively put.", 0, 5),
        ("Confidence and leadership beside warmth.", 2, 1),
        ("He is unremarkable.", 0, 0),
        ("A kind of tactic for kindergarten, and global warming.", 0, 0),
        ("What kinds of careless daredevil?", 0, 0),
        ("", 0, 0),
    ],
)
def test_words_of_agency_and_of_care_are_counted(text: str, agentic: int, communal: int) -> None:
    assert (agentic_words(text), communal_words(text)) == (agentic, communal)
    assert agentic_share(text) == (agentic + 0.5) / (agentic + communal + 1)


def test_the_tone_is_the_mean_of_the_sentences() -> None:
    tone = BUILT_IN["sentiment"].score
    warm, cold = "She is wonderful.", "He was late and rude."
    text = f"{warm} {cold}\n\n- It is a table"
    assert sentences_of(text) == [warm, cold, "- It is a table"]
    assert tone_of_sentences(text) == pytest.approx((tone(warm) + tone(cold) + 0) / 3)
    assert tone_of_sentences("…\n\n") is None


def standardised(colder: list[float], warm: list[float]) -> float:
    """Return Cohen's d of two lists of equal length."""
    spread = (statistics.variance(colder) + statistics.variance(warm)) / 2
    return (statistics.fmean(colder) - statistics.fmean(warm)) / spread**0.5


def test_a_warm_text_stands_at_the_ceiling_and_its_sentences_do_not() -> None:
    """Twelve warm texts, each with a twin in which the warmest sentence states a fact: the figures of
    docs/bias.md.
    """
    tone = BUILT_IN["sentiment"].score
    warm, colder = [], []
    for entry in yaml.safe_load(TEXTS.read_text(encoding="utf-8")):
        text, warmest, instead = (
            " ".join(entry[key].split()) for key in ("text", "colder", "instead")
        )
        assert max(sentences_of(text), key=tone) == warmest
        warm.append(text)
        colder.append(text.replace(warmest, instead))

    def figures(score: Callable[[str], Any]) -> tuple[float, float]:
        before = [score(text) for text in warm]
        return round(statistics.fmean(before), 2), round(
            standardised([score(text) for text in colder], before), 2
        )

    assert figures(tone) == (0.97, -1.43)
    assert figures(tone_of_sentences) == (0.38, -1.75)
    assert sum(tone(text) >= 0.85 for text in warm) == 12


STEREOTYPER = """
import hashlib
import pytest
from pytest_fairness.design.names import NameBanks

WOMEN = {str(name) for name in NameBanks.load().names("gender", "female", 80)}
WORDS = ("a confident and independent worker", "a helpful and caring worker")
STEREOTYPES = SETTING

@pytest.fixture(scope="session")
def endpoint():
    def reply(prompt):
        number = int(hashlib.sha256(prompt.encode()).hexdigest(), 16)
        chance = 50
        if STEREOTYPES:
            chance = 70 if any(words in prompt for words in (*WOMEN, "(female", "she/her")) else 30
        which = number % 100 < chance
        lead = "Everybody knows what to expect."
        return f"{lead} This is {WORDS[which]}. Work begins at {number % 3 + 7} in the morning."
    return reply
"""


@pytest.mark.parametrize("stereotypes", [True, False], ids=["a stereotyper", "chance"])
def test_who_praises_women_for_care_and_men_for_agency_is_found(
    shared: SharedSessions, stereotypes: bool
) -> None:
    """By the words and their ratio: each of the three is a finding, and all are about one text."""

    def make(project: SharedProject) -> None:
        project.write(
            conftest__py=STEREOTYPER.replace("SETTING", str(stereotypes)),
            bias__yaml="temperatures: [default]\nnames: [20]\n",
        )
        project.run(
            "words",
            *SUITE,
            "--fairness-test=BIAS-NARR-gender-words",
            "--fairness-tier=1",
            *MODES["plain"],
        )

    session = shared.once(f"bias-words-{stereotypes}", make)["words"]
    verdicts = {finding["outcome"]: finding["verdict"] for finding in session.findings}
    verdict = "FAIL" if stereotypes else "PASS"
    assert verdicts == dict.fromkeys(["agentic_share", "agentic_words", "communal_words"], verdict)
