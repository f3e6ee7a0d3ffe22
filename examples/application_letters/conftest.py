"""Scores of the letter suite, by name: every test may write ``outcome="letter_score"``."""

from letter_score import PASS_THRESHOLD, letter_score

from pytest_fairness import Scorer


def pytest_fairness_scorers():
    return [
        Scorer(name="letter_score", score=letter_score, kind="numeric", unit="points"),
        Scorer(name="passed", score=lambda letter: letter_score(letter) >= PASS_THRESHOLD, kind="binary"),
    ]
