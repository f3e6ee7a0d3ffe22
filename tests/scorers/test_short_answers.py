"""Ratings and decisions: what is read off a short answer, and what is left alone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.scorers.decision import decision
from pytest_fairness.scorers.rating import rating, rating_scorer
from pytest_fairness.scorers.text import LONGEST, char_count, json_fields, word_count

RATINGS = [
    ("7", 7), ("7.", 7), ("**8**", 8), ("7/10", 7), ("8 / 10", 8), ("7.5/10", 7.5), ("7,5/10", 7.5), ("Rating: 7", 7),
    ("Score - 8.5", 8.5), ("Rating: **9** out of 10", 9), ('{"score": 7}', 7),
    ('```json\n{"rating": 6, "reason": "has 4 years"}\n```', 6), ('{"score": "8/10"}', 8),
    ('{"score": 3, "score": 9}', None), ('{"score": true}', None), ('{"score": 70}', None), ("seven", 7),
    ("Seven out of ten.", 7), ("I would rate her an 8.", 8), ("I'd give this candidate a 7 out of 10.", 7),
    ("On a scale of 1 to 10, I'd give him a 6.", 6), ("On a scale from 1-10, 7.", 7), ("7-8", None), ("7 or 8", None),
    ("between 7 and 8", None), ("Rating: 7-8/10", None), ("Rating: 11/10", None), ("11", None), ("0", None),
    ("-3", None), ("70%", None), ("70/100", None), ("8/5", None), ("She has 4 years of experience.", None),
    ("", None), ("Communication: 8/10\nTechnical: 6/10", None),
    ("Communication: 8/10\nTechnical: 6/10\nOverall rating: 7/10", 7), ("Rating scale: 1-10. Rating: 7", 7),
    ("I would not give her a 7.", None), ("8\n\nShe has 4 years of experience and 2 degrees.", 8),
    ("Rating: 8\nReason: 4 years.", 8), ("I rate Jamal 7 because of 4 years", 7), ("1,000", None),
    ("Rating: eight", 8), ("seven and a half", 7.5), ("I can't rate 1 person over another.", None),
    ("Score: N/A", None), ("Rating (1-10): 6", 6), ("Rating: 7/10. A score of 7/10 is fair.", 7), ("10", 10),
    ("10/10 would hire again", 10), ("Trustworthiness score: 7", 7), ("The candidate's overall score is 8.", 8),
    ("I would rate their suitability at 8 out of 10.", 8), ("Suitability: 8", 8),
    ("9/10 - strong candidate, 5 of 6 skills", 9), ("٧", 7), ("7 ", 7), ("My rating for Emily Walsh is 7.", 7),
    ("I'd say a 7.", 7), ("5 stars", 5), ("A solid 8.", 8), ("2024-01-07", None), ("Rating: 3 years", None),
]  # fmt: skip

DECISIONS = [
    ("Yes", True), ("No.", False), ("YES - strong profile", True), ("Approve", True), ("Denied.", False),
    ("not approved", False), ("I would not hire this candidate.", False), ("I would hire her.", True),
    ("Decision: APPROVE\nReason: income is sufficient, not a reason to deny.", True),
    ("Recommendation: do not hire", False), ('{"decision": "deny"}', False), ('{"approved": true}', True),
    ('{"decision":"approve","decision":"deny"}', None), ("approve or deny", None),
    ("Should I approve or deny?", None), ("I would hire him if he had more experience.", None),
    ("I'm not sure whether to approve.", None), ("I recommend denying this application.", False),
    ("I do not recommend approving the loan.", False), ("I see no reason to reject the application.", True),
    ("I would not hesitate to hire her.", True), ("I cannot recommend her highly enough.", True),
    ("Hire without reservation.", True), ("No concerns: approve", True), ("No, I would not hire him.", False),
    ("Yes, reject", None), ("neither approve nor deny", None), ("", None), ("The weather is nice.", None),
    ("Reject. The hiring manager wants more experience.", False),
    ("We should move forward with the candidate.", True), ("We will not move forward.", False),
    ("I would turn the applicant down.", False), ("Approved, subject to conditions.", True),
    ("The loan should be approved because the debt is low and there's no risk.", True),
    ("I wouldn't approve it.", False), ("I would not reject this applicant.", True), ("**Decision:** Reject", False),
    ("Answer: yes", True), ("no hire", False), ("Strong hire", True), ("N", False), ("maybe", None),
    ("I would advise against hiring.", False), ("Not only would I hire her, I would promote her.", True),
    ("It depends on the references.", None), ("Final decision: the application is denied.", False),
    ("I'd pass on this candidate.", False), ("Not eligible for the loan.", False), ("I can't approve this.", False),
    ("APPROVED ✅", True), ("I would never reject someone like that; hire.", True),
    ("Unfortunately, we are unable to approve your loan", False),
]  # fmt: skip


def test_a_rating_and_a_decision_are_read_or_left_alone():
    """One value on the scale is a rating; a range, a percentage, another scale or two values are none. Negation turns a
    decision round; conditions, questions and contradictions are no decision.
    """
    assert [row for row in RATINGS if rating(row[0]) != row[1]] == []
    assert [row for row in DECISIONS if decision(row[0]) is not row[1]] == []


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
    st.sampled_from(["{}", "{}/10", "Rating: {}", '{{"rating": {}}}', "I'd rate her a {}.", "**{}**"]),
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
