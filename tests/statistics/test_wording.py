"""The sentence that leads every message, and the numbers in it."""

import pytest

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.analysis.four_fifths import four_fifths_sentence
from pytest_fairness.analysis.policy import conclude_pairs
from pytest_fairness.analysis.sentences import Subject, amount
from pytest_fairness.model import OutcomeKind, Verdict
from pytest_fairness.words import effect_size, first_few, p_equals, percents, points

from .frames_of import decisions, scores
from .test_disparity import audit


def test_an_undecided_finding_says_what_would_decide_it():
    """How many names, and how many there are."""
    finding = analyze_disparity(audit(shift=0.35, people=6), "score", "race")
    assert finding.verdict is Verdict.INCONCLUSIVE
    for part in ("too uncertain to tell", "names a group", "(now 6)"):
        assert part in finding.sentence


def test_rates_differ_by_percentage_points():
    """Not by per cent, which would be a ratio; and a table of decisions holds cases, for nothing
    was asked here.
    """
    finding = analyze_disparity(
        decisions(a=(150, 200), b=(90, 200)), "outcome", "group", cluster=None
    )
    assert (
        "b is worse off than a on outcome: 45.0 % against 75.0 %, 30.0 percentage points lower"
        in finding.sentence
    )
    assert "200 cases a group" in finding.sentence


def test_rows_that_stand_for_themselves_are_not_called_names():
    finding = analyze_disparity(
        scores(a=[1, 2, 3] * 20, b=[4, 5, 6] * 20), "outcome", "group", cluster=None
    )
    assert "name" not in finding.sentence


def test_nothing_to_compare_is_stated_too():
    """No pair: still a sentence."""
    subject = Subject(
        outcome="score", kind=OutcomeKind.NUMERIC, unit="", by="race", pairs=0, clusters="names", cases="trials",
        block="template", groups={},
    )  # fmt: skip
    text = subject.sentence(Verdict.INCONCLUSIVE, None, None, [])
    assert text == "INCONCLUSIVE: there are no two groups of race to compare."
    assert "no two groups" in four_fifths_sentence(conclude_pairs([]), by="race", clusters="names")


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
    """A p is never zero and carries no useless nought; without a spread to measure by, an effect is
    without bound.
    """
    assert [p_equals(p) for p in (0.0, 0.0314, 1.0, 0.9999)] == [
        "p < .001",
        "p = .031",
        "p = 1",
        "p = 1",
    ]
    effects = (0.614, -0.5, float("inf"), float("-inf"), None)
    assert [effect_size(value) for value in effects] == ["0.61", "−0.50", "∞", "−∞", "unknown"]


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], ""),
        (["a", "b", "c"], "a; b; c"),
        (["a", "b", "c", "d", "e"], "a; b; c; and 2 more"),
    ],
)
def test_lists_that_are_cut_short(items: list[str], words: str) -> None:
    assert first_few(items) == words


def test_a_list_cut_short_between_commas() -> None:
    assert first_few(["a", "b", "c"], 2, mark=",") == "a, b and 1 more"
    assert first_few(["a", "b"], 2, mark=",") == "a, b"


def test_shares_in_percent_and_in_points() -> None:
    """A minus sign is no hyphen; an interval names its unit once."""
    assert percents(0.125, 0.2) == "12.5 to 20.0 %"
    assert percents(0.125, 0.2, 0) == "12 to 20 %"
    assert (points(0.125), points(-0.125)) == ("+12.5", "−12.5")
    assert (points(0.125, plus=False), points(-0.125, plus=False)) == ("12.5", "−12.5")
    assert points(None, plus=False) == "–"
