"""Reading: a scorer takes a reply and gives a number, a yes or no, a label, or ``None`` where there
is nothing to read.

An assertion names its outcome as a column of its table, as the name of a scorer, or as any callable
on the reply; :func:`outcome_of` turns all three into one column. The readers themselves live in the
module of their name.
"""

from __future__ import annotations

from pytest_fairness.scorers.choice import choice_among
from pytest_fairness.scorers.given_answers import answer_line
from pytest_fairness.scorers.letter import (
    PASS_THRESHOLD,
    category_scores,
    letter_score,
    lexicon_of,
    lexicon_warnings,
    score_of,
    warning_places,
    warnings_of_trials,
)
from pytest_fairness.scorers.lexicon import CATEGORIES, Lexicon, LexiconWarning
from pytest_fairness.scorers.outcome import BUILT_IN, Outcome, outcome_of
from pytest_fairness.scorers.refusal import is_refusal
from pytest_fairness.scorers.scorer import Scorer
from pytest_fairness.scorers.suspicions import decided_warnings
from pytest_fairness.scorers.text import plain

__all__ = [
    "BUILT_IN",
    "CATEGORIES",
    "PASS_THRESHOLD",
    "Lexicon",
    "LexiconWarning",
    "Outcome",
    "Scorer",
    "answer_line",
    "category_scores",
    "choice_among",
    "decided_warnings",
    "is_refusal",
    "letter_score",
    "lexicon_of",
    "lexicon_warnings",
    "outcome_of",
    "plain",
    "score_of",
    "warning_places",
    "warnings_of_trials",
]
