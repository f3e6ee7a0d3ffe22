"""The sentence that leads every message."""

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.analysis.four_fifths import four_fifths_sentence
from pytest_fairness.analysis.sentences import Subject
from pytest_fairness.model import OutcomeKind, Verdict

from .frames_of import decisions, scores
from .test_disparity import audit


def test_an_undecided_finding_says_what_would_decide_it():
    """How many names, and how many there are."""
    finding = analyze_disparity(audit(shift=0.35, people=6), "score", "race")
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "too uncertain to tell" in finding.sentence
    assert "names a group" in finding.sentence
    assert "(now 6)" in finding.sentence


def test_rates_differ_by_percentage_points():
    """Not by per cent, which would be a ratio."""
    finding = analyze_disparity(decisions(a=(150, 200), b=(90, 200)), "outcome", "group", cluster=None)
    assert "b is worse off than a on outcome: 45.0 % against 75.0 %, 30.0 percentage points lower" in finding.sentence
    assert "200 cases a group" in finding.sentence  # nothing was asked here: a table of decisions holds cases


def test_rows_that_stand_for_themselves_are_not_called_names():
    """cluster=None: no names are mentioned."""
    finding = analyze_disparity(scores(a=[1, 2, 3] * 20, b=[4, 5, 6] * 20), "outcome", "group", cluster=None)
    assert "name" not in finding.sentence


def test_nothing_to_compare_is_said_too():
    """No pair: still a sentence."""
    subject = Subject(
        outcome="score", kind=OutcomeKind.NUMERIC, unit="", by="race", pairs=0, clusters="names", cases="trials",
        block="template", groups={},
    )  # fmt: skip
    text = subject.sentence(Verdict.INCONCLUSIVE, None, None, [])
    assert text == "INCONCLUSIVE: there are no two groups of race to compare."
    assert "no two groups" in four_fifths_sentence(Verdict.INCONCLUSIVE, None, None, by="race", clusters="names")
