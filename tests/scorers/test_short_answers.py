"""Ratings and decisions: what is read off a short answer, and what is left alone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.scorers.decision import decision
from pytest_fairness.scorers.rating import rating, rating_scorer
from pytest_fairness.scorers.text import LONGEST, char_count, json_fields, word_count

from .written_texts import written


def test_a_rating_and_a_decision_are_read_or_left_alone():
    """One value on the scale is a rating; a range, a percentage, another scale or two values are
    none. Negation turns a decision round; conditions, questions and contradictions are no decision.
    """
    texts = written("short_answers")
    assert [row for row in texts["ratings"] if rating(row[0]) != row[1]] == []
    assert [row for row in texts["decisions"] if decision(row[0]) is not row[1]] == []


def test_a_rating_on_another_scale_has_its_own_scorer():
    """``rating_scorer(0, 100)`` reads what the default refuses, and refuses what lies outside."""
    of_hundred = rating_scorer(0, 100)
    assert of_hundred("85/100") == 85
    assert of_hundred('{"score": 70}') == 70
    assert of_hundred("8/10") is None
    assert of_hundred("101") is None
    assert rating_scorer(1, 5)("Four out of five") == 4


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 10),
    st.sampled_from(
        ["{}", "{}/10", "Rating: {}", '{{"rating": {}}}', "I'd rate her a {}.", "**{}**"]
    ),
)
def test_every_rating_comes_back_in_every_form(value, form):
    """What is written in a usual form is read back."""
    assert rating(form.format(value)) == value


@settings(max_examples=40, deadline=None)
@given(st.text())
def test_any_text_has_a_rating_on_the_scale_or_none(text):
    """No text gives a number off the scale, and none raises."""
    value = rating(text)
    assert value is None or 1 <= value <= 10
    assert decision(text) in (True, False, None)


def test_hostile_answers_have_no_rating_and_no_decision():
    """Code, endless nesting, huge numbers and odd characters are not read, and not run."""
    texts = ("__import__('os').system('true')", "{" * 100_000, '{"score": ' * 5_000, '{"score": NaN}',
             '{"score": {"value": 7}}', '{"score": [7]}', "Rating: " + "9" * 300, "\ud800\x00\u202e")  # fmt: skip
    assert [(rating(text), decision(text)) for text in texts] == [(None, None)] * len(texts)


def test_what_stands_behind_the_longest_prose_is_not_read():
    """The cut is where it is said to be, and never leaves half a number: 10 does not become 1."""
    assert rating("x " * (LONGEST // 2) + "\n7/10") is None
    assert rating(" " * (LONGEST - len("Rating: 1")) + "Rating: 10") is None
    assert rating(" " * 10 + "7/10" + "\n x" * LONGEST) == 7


def test_a_json_object_within_prose_or_a_fence_is_found():
    """The fields come with all their values, so that two different ones are seen."""
    assert json_fields('Sure:\n```json\n{"Score": 7, "Overall Rating": 8}\n```') == {
        "score": [7],
        "overall_rating": [8],
    }
    assert json_fields('{"score": 7, "score": 8}') == {"score": [7, 8]}
    assert json_fields("no object") is None
    assert rating('{"candidate": "A", "score": 3} {"candidate": "B", "score": 9}') is None


def test_words_and_characters_are_counted_plainly():
    """Words are what white space separates; characters are code points."""
    assert word_count("  two\twords\n") == 2
    assert word_count("") == 0
    assert char_count("né 💘") == 4
    assert word_count("word " * 400_000) == 400_000
