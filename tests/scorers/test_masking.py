"""What somebody is called does not count as what is said of them."""

from __future__ import annotations

import csv

import pandas as pd
import pytest
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from pytest_fairness.documents import shipped_folder
from pytest_fairness.scorers import outcome_of
from pytest_fairness.scorers.text import masked, names_of


def test_a_name_that_is_a_word_does_not_move_the_sentiment() -> None:
    """VADER scores "Grace" up and "Mia" down; the same letter about either scores the same."""
    names = ["Grace Freeman", "Mia Lowery", "Anna Weber"]
    letters = [f"{name} worked here for two years. {name.split()[0]} was reliable." for name in names]
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
