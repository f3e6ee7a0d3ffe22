"""The sentiment scores are VADER's, only sooner."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from pytest_fairness.scorers.sentiment import _vader, sentiment

_REFERENCE = SentimentIntensityAnalyzer()
_FILL = (
    "the", "a", "of", "so", "this", "never", "without", "doubt", "at", "least", "very", "but", "no", "or", "nor",
    "kind", "sort", "candidate", "she", "is", "team", "and", "BUT", "No", "KIND", "But", "don't", "can't", "isn't",
)  # fmt: skip


def _texts(count: int, seed: int) -> list[str]:
    """Texts that visit every rule: lexicon, boosters, negation, idioms, capitals, "but", emoji,
    marks.
    """
    rng = random.Random(seed)
    vader = _vader()
    pools = [
        list(vader.lexicon),
        list(vader.source.BOOSTER_DICT),
        sorted(vader.source.NEGATE),
        [word for phrase in vader.source.SPECIAL_CASES for word in phrase.split()],
        _FILL,
    ]
    emoji = list(vader.emoji)

    def word() -> str:
        chosen = rng.choice(rng.choices(pools, weights=[30, 10, 8, 8, 44])[0])
        chosen = rng.choices([chosen, chosen.upper(), chosen.title()], weights=[85, 10, 5])[0]
        chosen += rng.choices(["", *".,!?", "!!!", "..."], weights=[80, 5, 4, 4, 3, 2, 2])[0]
        return chosen + (rng.choice(emoji) if rng.random() < 0.02 else "")

    return [
        " ".join(word() for _ in range(rng.choice([1, 2, 3, 5, 10, 30, 120]))) for _ in range(count)
    ]


def test_every_score_equals_vaders_on_a_varied_sample():
    """Texts built to hit each rule: equal to the last digit, no tolerance."""
    for text in _texts(400, seed=20):
        assert sentiment(text) == _REFERENCE.polarity_scores(text)["compound"], text


@settings(max_examples=50, deadline=None)
@given(st.text())
def test_any_text_scores_as_vader_scores_it(text):
    """Whatever characters a model emits, the score is VADER's."""
    assert sentiment(text) == _REFERENCE.polarity_scores(text)["compound"]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.sampled_from([*_FILL, "good", "bad", "GREAT", "awful", "shit", "bomb", "die", "for"]),
        max_size=14,
    )
)
def test_any_order_of_rule_words_scores_as_vader_scores_it(words):
    """The words that rules look at, in every order."""
    text = " ".join(words)
    assert sentiment(text) == _REFERENCE.polarity_scores(text)["compound"]


def test_vaders_own_examples_and_the_corners():
    """The sentences that VADER's authors explain it with, and the ends of each rule."""
    for text in (
        "VADER is VERY SMART, uber handsome, and FRIGGIN FUNNY!!!",
        "At least it isn't a horrible book.",
        "Today only kinda sux! But I'll get by, lol",
        "Catch utf-8 emoji such as 💘 and 💋 and 😁",
        "good good but good bad good",
        "without doubt an excellent idea, never so good",
        "",
        "but",
        "\ud800 good \x00 bad",
    ):
        assert sentiment(text) == _REFERENCE.polarity_scores(text)["compound"], text


def test_a_reply_of_megabytes_is_scored():
    """A long hostile reply takes linear time: VADER itself would take hours on this "but"."""
    assert sentiment("good but bad " * 400_000) == -1.0
