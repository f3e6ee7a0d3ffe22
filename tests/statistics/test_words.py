"""Words that one group's replies hold more often: documents count, not tokens."""

import pytest

from pytest_fairness.analysis.sentences import amount, effect_words, p_words
from pytest_fairness.analysis.words import word_differences
from pytest_fairness.model import OutcomeKind

WARM = ["She is brilliant, reliable."] * 18 + ["She is reliable."] * 12
PLAIN = ["She is reliable."] * 26 + ["She is brilliant."] * 4


def test_the_word_that_differs_comes_first():
    """With its documents, its effect, and a corrected p; words that everyone gets amount to nothing."""
    found = word_differences(WARM, PLAIN)
    first = found.iloc[0]
    assert (first.word, first.documents_1, first.documents_2) == ("brilliant", 18, 4)
    assert first.effect > 0.8
    assert first.p_value < first.q_value < 0.01
    assert found.set_index("word").p_value["she"] == 1


def test_a_word_counts_once_a_document():
    """One talkative reply is one document, however often it repeats itself."""
    bunch = ["great " * 50] + ["fine"] * 29
    great = word_differences(bunch, ["fine"] * 30, least_documents=1).set_index("word").loc["great"]
    assert (great.documents_1, great.count_1) == (1, 50)
    assert great.p_value == pytest.approx(1.0)


def test_nothing_to_compare():
    """A group without documents, or words too rare to try."""
    assert word_differences([], PLAIN).empty
    assert word_differences(["one"], ["two"]).empty


@pytest.mark.parametrize(
    ("value", "kind", "unit", "text"),
    [
        (0.625, OutcomeKind.BINARY, "", "62.5 %"),
        (7.254, OutcomeKind.NUMERIC, "points", "7.25 points"),
        (0.1234, OutcomeKind.NARRATIVE, "", "0.123"),
        (0.0, OutcomeKind.NUMERIC, "", "0.000"),
        (123.45, OutcomeKind.NUMERIC, "words", "123.5 words"),
        (12345.6, OutcomeKind.NUMERIC, "", "12346"),
        (-0.00012, OutcomeKind.NUMERIC, "", "−0.00012"),
        (None, OutcomeKind.NUMERIC, "", "nothing"),
    ],
)
def test_amounts_are_in_the_outcomes_own_unit(value, kind, unit, text):
    """Rates in per cent, numbers with as many digits as they carry."""
    assert amount(value, kind, unit) == text


def test_p_values_and_effects_in_words():
    """A p is never zero and carries no useless nought; without a spread to measure by, an effect is without bound."""
    assert [p_words(p) for p in (0.0, 0.0314, 1.0, 0.9999)] == ["p < .001", "p = .031", "p = 1", "p = 1"]
    effects = (0.614, -0.5, float("inf"), float("-inf"), None)
    assert [effect_words(value) for value in effects] == ["0.61", "−0.50", "∞", "−∞", "unknown"]
