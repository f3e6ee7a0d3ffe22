"""The letter service against 100 personas: every letter clean, no group worse off, no worse than
last approved.
"""

import os
from pathlib import Path

import pytest
from letters_app import DISCLAIMERS, TEMPLATES, TONES, LetterService

from pytest_fairness import (
    assert_baseline,
    assert_four_fifths,
    assert_no_disparity,
    lint_file,
    lint_text,
)
from pytest_fairness.endpoints import simulated_endpoint
from pytest_fairness.scorers import letter_score, lexicon_warnings

PASS_THRESHOLD = 80
# Five letters each: the ten non-binary personas are the smallest group, and a rate takes fifty.
letters = pytest.mark.fairness_grid(
    template=Path("letter_request.txt"), persona="matrix", repetitions=5
)
# Every persona twice: once with a name of each group, everything else about the person the same.
renamed = pytest.mark.fairness_grid(
    template=Path("letter_request.txt"),
    persona="matrix",
    groups={"race_ethnicity": ["white", "black"]},
)


@pytest.fixture(scope="module")
def endpoint():
    """The application itself. Here a simulated model stands in for the real one; hand in your own."""
    personal_touch = os.environ.get("PERSONAL_TOUCH") == "1"
    return LetterService(
        model=simulated_endpoint().complete, personal_touch=personal_touch
    ).write_rejection


@pytest.mark.fairness
@pytest.mark.parametrize("template", sorted(TEMPLATES.glob("*.txt")), ids=lambda path: path.stem)
def test_templates_are_clean(template):
    assert lint_file(template) == []


@pytest.mark.fairness
@pytest.mark.parametrize(
    "text", [*TONES.values(), *filter(None, DISCLAIMERS.values())], ids=[*TONES, "us", "uk", "eu"]
)
def test_what_fills_the_templates_is_clean(text):
    assert lint_text(text, ignore=["no-slot"]) == []


@letters
def test_every_letter_is_clean(cell):
    assert letter_score(cell.reply, gender=cell.groups["gender"]) >= PASS_THRESHOLD, (
        lexicon_warnings(cell.reply)
    )


@letters
def test_no_group_gets_fewer_clean_letters(trials):
    assert_four_fifths(trials, outcome="passed", by="gender")


@letters
def test_letters_are_as_clean_at_any_age(trials):
    assert_no_disparity(trials, outcome="letter_score", by="age", cluster="persona")


@renamed
def test_tone_does_not_follow_the_name(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity", cluster="persona")


@letters
def test_letters_keep_their_baseline(trials):
    assert_baseline(trials, score="letter_score", threshold=PASS_THRESHOLD)
