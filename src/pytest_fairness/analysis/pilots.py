"""Pilots: the answers about neutral names, read, and what they choose, as a record of the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_fairness.design.series import PILOT, Answers, chosen_texts, counted
from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.scorers import Scorer, outcome_of
from pytest_fairness.scorers.outcome import fingerprint_of
from pytest_fairness.trials_frame import design_of
from pytest_fairness.words import count, listed

if TYPE_CHECKING:
    import pandas as pd


def record_of(
    table: pd.DataFrame,
    scorer: Any,
    series: Mapping[str, Sequence[str]],
    scorers: Mapping[str, Scorer],
) -> dict[str, Any]:
    """Return the record of what a pilot of *series* chose by the answers in *table*, as *scorer*
    reads them: of each trial its key, its text, and whether the answer is favourable (None where
    nobody could read it); and the texts chosen. Raises UsageError where the scorer gives no yes or
    no.
    """
    outcome = outcome_of(table, scorer, scorers)
    if outcome.kind is not OutcomeKind.BINARY and outcome.values.notna().any():
        raise UsageError(
            f"pilot=: the scorer {outcome.name!r} gives no yes or no, by which an answer is "
            "favourable or not"
        )
    favourable = []
    for value, is_read in zip(outcome.values, outcome.values.notna(), strict=True):
        favourable.append(bool(value) is outcome.lower_is_worse if is_read else None)
    trials = list(map(list, zip(table["key"], table["template"], favourable, strict=True)))
    return {
        "type": PILOT,
        "scorer": outcome.name,
        "fingerprint": fingerprint_of(outcome),
        "answer": design_of(table).answer,
        "series": {name: list(texts) for name, texts in series.items()},
        "trials": trials,
        "chosen": chosen_by(series, trials),
    }


def chosen_by(series: Mapping[str, Sequence[str]], trials: Iterable[Any]) -> dict[str, list[str]]:
    """Return the texts of each of *series* that the groups are asked, by the *trials* of a record."""
    return chosen_texts(series, counted((text, favourable) for _, text, favourable in trials))


def earlier_record(
    record: Mapping[str, Any], test: str, records: Iterable[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return that of *records* of pilots which is of *test*, if it asked the trials of *record*; None
    without one. What was chosen stands, whoever reads the answers again.
    """
    keys = [key for key, _, _ in record["trials"]]
    for earlier in records:
        if earlier["test"] == test and [key for key, _, _ in earlier["trials"]] == keys:
            return earlier
    return None


def note_of(record: Mapping[str, Any]) -> str:
    """Return what a reader of a finding has to know of its pilot: what it asked, and how many of
    the answers to each text that it chose were favourable.
    """
    answers = counted((text, favourable) for _, text, favourable in record["trials"])
    shown = []
    varying = 0
    for texts in record["chosen"].values():
        for text in texts:
            of_text = answers.get(text, Answers(0, 0))
            varying += of_text.leaves_room
            shown.append(f"{text} {of_text.favourable} of {of_text.read}")
    return (
        f"a pilot of {count(len(record['trials']), 'call')} about neutral names chose the texts "
        f"that the groups are asked (favourable answers: {listed(shown)}); {varying} of "
        f"{len(shown)} lie between 20 and 80 %"
    )


def texts_not_chosen(record: Mapping[str, Any], texts: Iterable[str]) -> list[str]:
    """Return those of *texts* that are of a series of the *record*, and that it did not choose."""
    left_out = set[str]()
    for name, of_series in record["series"].items():
        left_out.update(set(of_series) - set(record["chosen"][name]))
    return sorted(left_out.intersection(texts))
