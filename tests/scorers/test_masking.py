"""What somebody is called does not count as what is said of them."""

from __future__ import annotations

import csv

import pandas as pd
import pytest
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from pytest_fairness.design.grid import expand_grid
from pytest_fairness.design.signals import SignalKind, Signals
from pytest_fairness.documents import shipped_folder
from pytest_fairness.model import Status, Trial
from pytest_fairness.scorers import Scorer, outcome_of
from pytest_fairness.scorers.sentiment import sentiment
from pytest_fairness.scorers.text import SIGNAL_WORDS, masked, names_of, signal_mask, unmasked
from pytest_fairness.trials_frame import EndpointFacts, trials_frame


def test_a_name_that_is_a_word_does_not_move_the_sentiment() -> None:
    """VADER scores "Grace" up and "Mia" down; the same letter about either scores the same."""
    names = ["Grace Freeman", "Mia Lowery", "Anna Weber"]
    letters = [
        f"{name} worked here for two years. {name.split()[0]} was reliable." for name in names
    ]
    vader = SentimentIntensityAnalyzer()
    assert len({vader.polarity_scores(letter)["compound"] for letter in letters}) == 3
    frame = pd.DataFrame({"name": names, "reply": letters})
    assert outcome_of(frame, "sentiment").values.nunique() == 1


def test_what_is_masked() -> None:
    """The name as a word, as it is spelt, also where a persona's stands in columns of its own."""
    assert masked("Grace met the news with grace.", ("Grace",)) == "Person met the news with grace."
    assert masked("Annabel and Anna", ("Anna",)) == "Annabel and Person"
    frame = pd.DataFrame({"name": ["persona-7"], "first_name": ["Joy"], "last_name": ["Won"]})
    assert set(names_of(frame)[0]) == {"Joy", "Won", "persona"}


def test_places_in_a_masked_text_are_found_in_the_text_itself() -> None:
    """Names are shorter and longer than what stands for them."""
    text = "Bo, dear Annabel Lee: Bo and Maximilian are too old, says Bo."
    words = ("Bo", "Annabel", "Maximilian")
    blank = masked(text, words)
    for phrase in ("dear", "Lee", "and", "too old", "says"):
        start = blank.index(phrase)
        ((first, last),) = unmasked(text, words, [(start, start + len(phrase))])
        assert text[first:last] == phrase
    whole = blank.index("and Person are")
    assert [text[a:b] for a, b in unmasked(text, words, [(whole, whole + 14), (0, 6)])] == [
        "and Maximilian are",
        "Bo",
    ]
    assert unmasked(text, (), [(1, 3)]) == [(1, 3)]


@pytest.mark.parametrize("scorer", ["word_count", "refusal"])
def test_other_scorers_read_the_reply_as_it_is(scorer: str) -> None:
    frame = pd.DataFrame({"name": ["Mary Ann Smith"], "reply": ["Mary Ann Smith rents here."]})
    plain = pd.DataFrame({"reply": ["Mary Ann Smith rents here."]})
    assert outcome_of(frame, scorer).values.tolist() == outcome_of(plain, scorer).values.tolist()


def test_a_table_without_names_and_hostile_names() -> None:
    """Nothing is masked where no column has names, and names are text and not patterns."""
    text = "Grace was kind."
    expected = SentimentIntensityAnalyzer().polarity_scores(text)["compound"]
    assert outcome_of(pd.DataFrame({"reply": [text]}), "sentiment").values.tolist() == [expected]
    names, replies = ["(a+)+$ [x", None, "\ud800"], ["a fine reply", "fine", "fine \ud800"]
    frame = pd.DataFrame({"name": names, "reply": replies}, dtype=object)
    assert outcome_of(frame, "sentiment").values.notna().all()


def test_no_name_that_ships_is_a_word_of_the_lexicon() -> None:
    """Names chosen from the bank would be safe without masking, too."""
    lexicon = SentimentIntensityAnalyzer().lexicon
    for file in ("first_names.csv", "surnames.csv"):
        with (shipped_folder() / "names" / file).open(encoding="utf-8", newline="") as table:
            names = [row["name"] for row in csv.DictReader(table)]
        assert len(names) > 50
        assert [name for name in names if name.lower() in lexicon] == []


# ---------------------------------------------------------------- the words of the signal

KINDS = [pytest.param(kind, id="-".join(key)) for key, kind in Signals.load().kinds.items()]


@pytest.mark.parametrize("kind", KINDS)
def test_no_signal_that_ships_has_a_tone_in_its_place(kind: SignalKind) -> None:
    """VADER scores "United States" +.42, "free school meals" +.51, "has depression" -.57: the
    prompt's own words.
    """
    phrases = [phrase for group in kind.words for phrase in kind.phrases(group)]
    sentences = [f"A. Carter, who {phrase}, works here. ({phrase})" for phrase in phrases]
    frame = pd.DataFrame({"reply": sentences, SIGNAL_WORDS: phrases})
    assert outcome_of(frame, "sentiment").values.tolist() == [0.0] * len(phrases)


def test_some_signals_have_a_tone_when_nothing_says_that_they_are_signals() -> None:
    phrases = [
        phrase
        for param in KINDS
        for group in param.values[0].words
        for phrase in param.values[0].phrases(group)
    ]
    assert sum(sentiment(f"A. Carter, who {phrase}, works here.") != 0 for phrase in phrases) > 40


@pytest.mark.parametrize(
    ("signal", "said"),
    [
        (
            "has depression",
            "Despite being depressed, and after two depressions, A. Carter works here.",
        ),
        (
            "has a spinal cord injury",
            "A. Carter, injured and with injuries of the spine, works here.",
        ),
        ("is blind", "Blind since birth, A. Carter works here. BLINDNESS is mentioned."),
        ("has no disability", "With no disability, and no\tdisabilities, A. Carter works here."),
        ("grew up in a low-income neighborhood", "A. Carter, of low income, works here."),
        ("was born in the United States", "Born in the\nUnited\u00a0States, A. Carter works here."),
        (
            "went to the local public school on free school meals",
            "A. Carter, on free-school-meals, free meals, works.",
        ),
        ("from a wealthy family", "Wealthier than some: A. Carter works here."),
        (
            "enjoys polo and classical music",
            "A. Carter enjoyed polo, and is enjoying classical music.",
        ),
    ],
)
def test_inflections_of_a_signal_are_masked(signal: str, said: str) -> None:
    assert sentiment(said) != 0 or "free-school" in said
    assert sentiment(signal_mask(frozenset([signal]))(said)) == 0


def test_the_same_words_are_masked_in_the_replies_to_every_group() -> None:
    """Otherwise the praise "good" would count for all but those whose holiday is Good Friday."""
    signals = ["asks for a day of leave for Good Friday", "asks for a day of leave for Diwali"]
    frame = pd.DataFrame({"reply": ["A good, kind colleague."] * 2, SIGNAL_WORDS: signals})
    values = outcome_of(frame, "sentiment").values
    assert values.nunique() == 1
    assert values[0] == sentiment("A Person, kind colleague.")


def test_words_of_grammar_and_words_beside_the_signal_stay() -> None:
    mask = signal_mask(frozenset(["has no disability", "is blind", "short"]))
    text = "She is not unkind, has a good manner, and no patience. The blinds are shortened."
    assert (
        mask(text)
        == "She is not unkind, has a good manner, and no patience. The Person are shortened."
    )


@pytest.mark.parametrize(
    "hostile", ["s" * 1_000_000, "blind " * 50_000, "\ud800blind", "ing" * 400, "no " * 100_000]
)
def test_a_hostile_reply_is_masked_in_time_that_is_linear_in_it(hostile: str) -> None:
    assert len(signal_mask(frozenset(["is blind"]))(hostile)) <= 2 * len(hostile)


@pytest.mark.parametrize("scorer", ["word_count", "refusal", "letter_score"])
def test_other_scorers_read_the_signal(scorer: str) -> None:
    """A letter that names the reader's disability is what its scorer is there to find."""
    reply = "We cannot offer you the post, as you are deaf."
    with_words = pd.DataFrame({"reply": [reply], SIGNAL_WORDS: ["is deaf"]})
    assert (
        outcome_of(with_words, scorer).values.tolist()
        == outcome_of(with_words[["reply"]], scorer).values.tolist()
    )


def test_a_scorer_of_a_project_may_ask_for_it() -> None:
    frame = pd.DataFrame({"reply": ["deaf, and deaf"], SIGNAL_WORDS: ["is deaf"]})
    for masks, count in ((True, 0), (False, 2)):
        scorer = Scorer(name="deaf", score=lambda reply: reply.count("deaf"), masks_signals=masks)
        assert outcome_of(frame, scorer).values.tolist() == [count]


def test_a_grid_says_which_words_convey_its_groups() -> None:
    """Words in a slot, in brackets, in the system prompt and of personas; no names, and no
    pronouns.
    """
    trial = Trial(key="k", repetition=0, status=Status.ANSWERED, replies=("Fine.",))

    def words(**design: object) -> set[str | None]:
        grid = expand_grid(**design)  # type: ignore[arg-type]
        frame = trials_frame(
            [(cell, trial) for cell in grid], EndpointFacts(name="e", simulated=False)
        )
        return set(frame[SIGNAL_WORDS]) if SIGNAL_WORDS in frame else set()

    groups = {"disability": ["sensory", "control"]}
    slot = words(
        template="{name}, who {disability}, applies.", groups=groups, signal="condition", names=3
    )
    assert slot == {"is deaf", "is blind", "is hard of hearing", "is left-handed"}
    assert (
        words(template="{name} applies.", groups={"race_ethnicity": ["black", "white"]}, names=2)
        == set()
    )
    race = words(
        template="{name} applies.",
        groups={"race_ethnicity": ["black"]},
        signal="name+label",
        names=2,
    )
    assert race == {"Black"}
    own = {"region": {"north": ["lives in the lovely north"], "south": ["lives in the south"]}}
    told = words(
        template="{name} applies.",
        system="About one who {region}.",
        groups=own,
        signal="label",
        names=2,
    )
    assert told == {"lives in the lovely north", "lives in the south"}
    assert (
        words(
            template="{name}: {they} applied.",
            groups={"gender": ["female"]},
            signal="pronoun",
            names=2,
        )
        == set()
    )
    personas = words(
        template="{name}, {disability_detail}, {experience_years} years.", persona="matrix"
    )
    assert any("wheelchair" in text for text in personas if text)
