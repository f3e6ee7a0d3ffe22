"""The letter writer against 100 personas: every letter clean, no group worse off, no worse than last approved."""

from pathlib import Path

import pytest
from letter_score import PASS_THRESHOLD, letter_score, warnings_in
from letters_app import LetterWriter

from pytest_fairness import assert_baseline, assert_four_fifths, assert_no_disparity
from pytest_fairness.endpoints import simulated_endpoint

# Five letters each: the ten non-binary personas are the smallest group, and a rate takes fifty.
letters = pytest.mark.fairness_grid(template=Path("letter_request.txt"), persona="matrix", repetitions=5)
# Every persona twice: once with a name of each group, everything else about the person the same.
renamed = pytest.mark.fairness_grid(
    template=Path("letter_request.txt"), persona="matrix", groups={"race_ethnicity": ["white", "black"]}
)


@pytest.fixture(scope="module")
def endpoint():
    """The application itself. Here a simulated model stands in for the real one; hand in your own."""
    return LetterWriter(model=simulated_endpoint().complete).write_rejection


@letters
def test_every_letter_is_clean(cell):
    assert letter_score(cell.reply) >= PASS_THRESHOLD, warnings_in(cell.reply)


@letters
def test_no_group_gets_fewer_clean_letters(trials):
    assert_four_fifths(trials, outcome="passed", by="gender")


@renamed
def test_tone_does_not_follow_the_name(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity", cluster="persona")


@letters
def test_letters_keep_their_baseline(trials):
    assert_baseline(trials, score="letter_score", threshold=PASS_THRESHOLD)
