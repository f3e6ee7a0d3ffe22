"""One outcome column of a table of trials, whichever way it is named."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import FrameError, UsageError, did_you_mean
from pytest_fairness.model import OutcomeKind
from pytest_fairness.running_test import check_reading_time, current_test
from pytest_fairness.scorers.decision import decision
from pytest_fairness.scorers.disclaimer import has_disclaimer
from pytest_fairness.scorers.letter import letter_scorers
from pytest_fairness.scorers.rating import rating
from pytest_fairness.scorers.refusal import is_refusal
from pytest_fairness.scorers.salary import salary
from pytest_fairness.scorers.scorer import SHORT_REPLY, Score, Scorer, name_of
from pytest_fairness.scorers.sentiment import sentiment
from pytest_fairness.scorers.text import (
    char_count,
    masked,
    names_of,
    signal_mask,
    signals_of,
    word_count,
)
from pytest_fairness.scorers.toxicity import toxicity
from pytest_fairness.scorers.triage import triage, triage_esi, triage_manchester

if TYPE_CHECKING:
    import pandas as pd

#: What names, and the words of the prompt, add to the tone of a reply is no tone.
_MASKED = {"masks_names": True, "masks_signals": True}
_TONE = {"kind": "narrative", "low": -1, "high": 1, **_MASKED}
_URGENCY = {"kind": "ordinal", "unit": "levels", "low": 1, "high": 5, "reply_tokens": SHORT_REPLY}
_DECLARED: tuple[tuple[str, Callable[..., Score], str, dict[str, Any]], ...] = (
    ("sentiment", sentiment, "3", _TONE),
    ("word_count", word_count, "1", {"kind": "numeric", "unit": "words", "low": 0}),
    ("char_count", char_count, "1", {"kind": "numeric", "unit": "characters", "low": 0}),
    (
        "rating",
        rating,
        "3",
        {"kind": "ordinal", "unit": "points", "low": 1, "high": 10, "reply_tokens": SHORT_REPLY},
    ),
    ("decision", decision, "3", {"kind": "binary", "reply_tokens": SHORT_REPLY}),
    (
        "salary",
        salary,
        "3",
        {"kind": "numeric", "unit": "dollars a year", "reply_tokens": SHORT_REPLY},
    ),
    ("refusal", is_refusal, "3", {"kind": "refusal", "lower_is_worse": False}),
    ("triage", triage, "2", _URGENCY),
    ("triage_esi", triage_esi, "1", _URGENCY),
    ("triage_manchester", triage_manchester, "1", _URGENCY),
    ("disclaimer", has_disclaimer, "1", {"kind": "binary", "lower_is_worse": False}),
    (
        "toxicity",
        toxicity,
        "1",
        {"kind": "numeric", "unit": "words", "low": 0, "lower_is_worse": False, **_MASKED},
    ),
)
BUILT_IN: Mapping[str, Scorer] = {
    name: Scorer(name=name, score=score, version=version, **declared)
    for name, score, version, declared in _DECLARED
} | {scorer.name: scorer for scorer in letter_scorers()}

# Scores of our own scorers by fingerprint and a digest of the text, so that a grid of long letters
# costs no memory.
_scores: dict[tuple[str, bytes], Score] = {}
_MOST_SCORES = 200_000
_BITS = 1000  # of a whole number that a float still holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An outcome and its values, on the table's own index.

    ``values`` is float for numbers and for yes/no (1 and 0), object for labels; NaN or ``None`` is
    no outcome. A column of the table is handed on as it stands. ``kind`` is ``None`` where the
    values have to decide it. ``low`` and ``high`` are the ends of its scale, ``None`` where it has
    none that is known.
    """

    name: str
    values: pd.Series[Any]
    kind: OutcomeKind | None
    unit: str
    lower_is_worse: bool
    scorer: Scorer | None
    low: float | None = None
    high: float | None = None


def outcome_of(
    frame: pd.DataFrame,
    outcome: str | Callable[[str], Score] | Scorer | Outcome,
    scorers: Mapping[str, Scorer] | None = None,
) -> Outcome:
    """The column *outcome* of *frame*; else the scorer of that name, or the callable, on each
    ``reply``.

    A row that was refused or has no reply has no outcome, but for scorers of kind refusal, where a
    refused row is a yes. *scorers* are looked up before the built-in ones; without any, those of
    the running test.

    Raises:
        UsageError: no such column or scorer, or a score that is no score; the message lists what
            there is.
        FrameError: the table has no column ``reply`` to score.
        EndpointError: the session's deadline passed meanwhile.
    """
    if isinstance(outcome, Outcome):
        return outcome  # read before
    if isinstance(outcome, str) and outcome in frame.columns:
        column = frame[outcome]
        if getattr(column, "ndim", 1) != 1:
            raise FrameError(f"the table has more than one column {outcome!r}; rename all but one")
        return Outcome(
            name=outcome, values=column, kind=None, unit="", lower_is_worse=True, scorer=None
        )
    scorer = _scorer_of(outcome, scorers, list(frame.columns))
    if "reply" not in frame.columns:
        raise FrameError(
            f"the scorer {scorer.name!r} reads the column 'reply', which the table does not have; "
            "its "
            f"columns are {_listed(frame.columns)}. Give outcome= one of these, or add the column "
            "'reply'"
        )
    replies = _replies(frame, scorer)
    if "refused" in frame.columns:
        refusals = frame["refused"].tolist()
    else:
        refusals = [False] * len(frame)
    fingerprint = None
    if scorer.built_in:
        fingerprint = scorer.fingerprint
    rows = zip(replies, _given(frame, scorer.columns), refusals, frame.index, strict=True)
    scores = [
        _score(scorer, fingerprint, reply, given, refused, row)
        for reply, given, refused, row in rows
    ]
    values, all_yes_no = _column(scores, scorer, frame.index)
    if scorer.kind is None and all_yes_no:
        scorer = replace(scorer, kind=OutcomeKind.BINARY)
    return Outcome(
        name=scorer.name,
        values=values,
        kind=None if scorer.kind is None else OutcomeKind(scorer.kind),
        unit=scorer.unit,
        lower_is_worse=scorer.lower_is_worse,
        scorer=scorer,
        low=scorer.low,
        high=scorer.high,
    )


def _scorer_of(
    outcome: str | Callable[[str], Score] | Scorer,
    scorers: Mapping[str, Scorer] | None,
    columns: list[Any],
) -> Scorer:
    if isinstance(outcome, Scorer):
        return outcome
    if callable(outcome):
        return Scorer(name=name_of(outcome), score=outcome)
    if not isinstance(outcome, str):
        raise UsageError(
            f"outcome= is {outcome!r}: give a column, the name of a scorer, or a function of the "
            "reply"
        )
    test = current_test()
    if scorers is None:
        scorers = {}
        if test is not None:
            scorers = test.scorers
    scorers_ = {**BUILT_IN, **scorers}
    if outcome not in scorers_:
        raise UsageError(unknown_outcome(outcome, columns, scorers_))
    if test is not None:
        test.scored_by.add(outcome)
    return scorers_[outcome]


def unknown_outcome(
    outcome: str, columns: Iterable[Any], scorers: Iterable[str], argument: str = "outcome"
) -> str:
    """That *outcome* is none of *columns* and *scorers*, with the one that is meant, or all where
    none is close.
    """
    columns = [str(column) for column in columns]
    scorers = list(scorers)
    mend = did_you_mean(outcome, [*scorers, *columns])
    if not mend:
        mend = (
            f". Columns: {_listed(columns)}. Scorers: {_listed(scorers)}. Give one of these, or a "
            "function that reads "
            "the reply"
        )
    return f"{argument}={outcome!r} is neither a column nor a scorer{mend}"


def _replies(frame: pd.DataFrame, scorer: Scorer) -> list[Any]:
    """The replies of *frame* as *scorer* is given them: without names, and without the words of the
    signal.
    """
    replies = frame["reply"].tolist()
    if scorer.masks_names:
        named = zip(replies, names_of(frame), strict=True)
        replies = [
            masked(reply, words) if isinstance(reply, str) else reply for reply, words in named
        ]
    signals = None
    if scorer.masks_signals:
        signals = signals_of(frame)
    if signals:
        mask = signal_mask(signals)
        replies = [mask(reply) if isinstance(reply, str) else reply for reply in replies]
    return replies


def _given(frame: pd.DataFrame, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """A row's values of *columns*; None for a column that *frame* lacks, and for what is missing in
    it.
    """
    if not columns:
        return [{}] * len(frame)
    values = [
        frame[name].tolist() if name in frame.columns else [None] * len(frame) for name in columns
    ]
    return [
        {name: None if value != value else value for name, value in zip(columns, row, strict=True)}  # noqa: PLR0124
        for row in zip(*values, strict=True)
    ]


def _score(
    scorer: Scorer,
    fingerprint: str | None,
    reply: Any,
    given: Mapping[str, Any],
    refused: Any,
    row: Any,
) -> Any:
    if refused is True or refused == 1:
        if scorer.kind is OutcomeKind.REFUSAL:
            return True
        return None
    if not isinstance(reply, str):
        return None
    check_reading_time(f"the scorer {scorer.name!r}")
    score: Any
    try:
        if fingerprint is None:
            score = scorer(reply, **given)
        else:
            score = _remembered(scorer, fingerprint, reply, given)
    except Exception as error:
        error.add_note(f"while the scorer {scorer.name!r} read the reply in row {row!r}")
        raise
    if hasattr(score, "item") and not hasattr(score, "__len__"):
        score = score.item()  # one of numpy's numbers
    if isinstance(score, float) and math.isnan(score):
        return None
    if why := _no_score(scorer, score, row):
        raise UsageError(f"the scorer {scorer.name!r} returned {why}")
    return score


def _no_score(scorer: Scorer, score: Any, row: Any) -> str:
    """Why *score* cannot be one of *scorer*; empty where it can."""
    if score is None or isinstance(score, str):
        return ""
    if not isinstance(score, (bool, int, float)):
        what = "a number, True or False, a label, or None where there is nothing to read"
        return f"a {type(score).__name__} for row {row!r}: a score is {what}"
    if isinstance(score, float) and math.isinf(score):
        return f"{score} for row {row!r}: a score is finite, or None"
    if isinstance(score, int) and score.bit_length() > _BITS:
        return (
            f"a whole number of {score.bit_length()} bits for row {row!r}: no statistic can hold "
            "it; return None"
        )
    ends = []
    outside = False
    if scorer.low is not None:
        ends.append(f"from {scorer.low:g}")
        outside = score < scorer.low
    if scorer.high is not None:
        ends.append(f"to {scorer.high:g}")
        outside = outside or score > scorer.high
    if outside:
        return f"{score} for row {row!r}: its scale goes {' '.join(ends)}"
    return ""


def _remembered(scorer: Scorer, fingerprint: str, reply: str, given: Mapping[str, Any]) -> Score:
    """The kept score of *reply*, or a new one, kept from now on; the oldest is forgotten first."""
    read = "\0".join((reply, *map(str, given.values())))
    key = (fingerprint, blake2b(read.encode("utf-8", "surrogatepass"), digest_size=16).digest())
    with contextlib.suppress(KeyError):
        return _scores[key]
    score = scorer(reply, **given)
    if len(_scores) >= _MOST_SCORES:
        _scores.pop(next(iter(_scores)), None)
    _scores[key] = score
    return score


def _column(scores: list[Score], scorer: Scorer, index: Any) -> tuple[pd.Series[Any], bool]:
    """The scores as one column, and whether they are all yes or no."""
    import pandas as pd

    present = [score for score in scores if score is not None]
    labels = {isinstance(score, str) for score in present}
    if len(labels) > 1:
        raise UsageError(
            f"the scorer {scorer.name!r} returned both labels and numbers: it has to return one "
            "kind"
        )
    if True in labels:
        return pd.Series(scores, index=index, name=scorer.name, dtype=object), False
    numbers = [math.nan if score is None else float(score) for score in scores]
    all_yes_no = bool(present) and all(isinstance(score, bool) for score in present)
    return pd.Series(numbers, index=index, name=scorer.name, dtype=float), all_yes_no


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names) or "none"
