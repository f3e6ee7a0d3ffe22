"""The pilot of a test: its answers read, what it chose as a record of the log, and that record again
where a run is resumed or replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_fairness.design.grid import Grid
from pytest_fairness.design.pairs import PairGrid
from pytest_fairness.design.pilots import PILOT, Answers, chosen_texts, counted
from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.pytest_layer.plans import Pilot
from pytest_fairness.scorers import Scorer, outcome_of
from pytest_fairness.words import count, listed

if TYPE_CHECKING:
    import pandas as pd

#: What the pilot of an item chose, in the stash of the item: the record.
CHOSEN = pytest.StashKey[Mapping[str, Any]]()


class Records(Protocol):
    """A run, or one that is being written, by the types of its records."""

    def of_type(self, kind: str) -> list[dict[str, Any]]: ...


def read(pilot: Pilot, table: pd.DataFrame, scorers: Mapping[str, Scorer]) -> dict[str, Any]:
    """Return the record of what *pilot* chose by the answers in *table*: of each trial its text and
    whether the answer is favourable, and the texts chosen. Raises UsageError where the scorer gives
    no yes or no.
    """
    outcome = outcome_of(table, pilot.scorer, scorers)
    if outcome.kind is not OutcomeKind.BINARY and outcome.values.notna().any():
        raise UsageError(
            f"pilot=: the scorer {outcome.name!r} gives no yes or no, which it takes to say whether "
            "an answer is favourable"
        )
    trials: list[list[Any]] = []
    rows = zip(table["key"], table["template"], outcome.values, outcome.values.notna(), strict=True)
    for key, text, value, is_read in rows:
        favourable = bool(value) is outcome.lower_is_worse if is_read else None
        trials.append([key, text, favourable])
    series = {name: list(texts) for name, texts in pilot.series.items()}
    answers = counted((text, favourable) for _, text, favourable in trials)
    return {
        "type": PILOT,
        "scorer": outcome.name,
        "fingerprint": outcome.scorer.fingerprint if outcome.scorer else "",
        "series": series,
        "trials": trials,
        "chosen": chosen_texts(series, answers),
    }


def recorded(
    record: Mapping[str, Any], test: str, runs: Iterable[Records | None]
) -> dict[str, Any] | None:
    """Return the first of *runs*' records of the pilot of *test* that asked the trials of *record*;
    None without one. What was chosen stands, whoever reads the answers again.
    """
    keys = [key for key, _, _ in record["trials"]]
    for run in runs:
        if run is None:
            continue
        for earlier in run.of_type(PILOT):
            if earlier["test"] == test and [key for key, _, _ in earlier["trials"]] == keys:
                return earlier
    return None


def texts_of(record: Mapping[str, Any], grid: Grid | PairGrid) -> frozenset[str]:
    """Return the texts of *grid* that the groups are asked: those of the *record*, and all that are
    of no series.
    """
    texts = {template.id for template in grid.templates if not template.series}
    for chosen in record["chosen"].values():
        texts.update(chosen)
    return frozenset(texts)


def note_of(record: Mapping[str, Any]) -> str:
    """Return what a reader of a finding has to know of the pilot: what it asked, and the share of
    favourable answers to each text that it chose.
    """
    answers = counted((text, favourable) for _, text, favourable in record["trials"])
    chosen = []
    varying = 0
    for texts in record["chosen"].values():
        for text in texts:
            of_text = answers.get(text, Answers(0, 0))
            varying += of_text.leaves_room
            chosen.append(f"{text} {of_text.favourable}/{of_text.read}")
    return (
        f"a pilot of {count(len(record['trials']), 'call')} about neutral names chose which texts "
        f"the groups are asked: {listed(chosen)} favourable; {varying} of {len(chosen)} lie between "
        "20 and 80 %"
    )
