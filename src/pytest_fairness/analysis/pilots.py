"""Pilots: the answers about neutral names, read; what they choose, as a record of the log; and that
record derived again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_fairness.design.series import PILOT, Answers, chosen_texts, counted
from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.runs.reader import RunReader, RunRecords
from pytest_fairness.runs.records import cell_of, trial_of
from pytest_fairness.scorers import BUILT_IN, Scorer, outcome_of
from pytest_fairness.trials_frame import EndpointFacts, GridFacts, design_of, trials_frame
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
    trials = [list(row) for row in zip(table["key"], table["template"], favourable, strict=True)]
    fingerprint = ""
    if outcome.scorer is not None:
        fingerprint = outcome.scorer.fingerprint
    return {
        "type": PILOT,
        "scorer": outcome.name,
        "fingerprint": fingerprint,
        "answer": design_of(table).answer,
        "series": {name: list(texts) for name, texts in series.items()},
        "trials": trials,
        "chosen": _chosen(series, trials),
    }


def _chosen(series: Mapping[str, Sequence[str]], trials: Iterable[Any]) -> dict[str, list[str]]:
    """Return the texts of each of *series* that the groups are asked, by the rows of *trials*."""
    return chosen_texts(series, counted((text, favourable) for _, text, favourable in trials))


def earlier_record(
    record: Mapping[str, Any], test: str, run: RunRecords | None
) -> dict[str, Any] | None:
    """Return the record that *run* has of the pilot of *test*, if it asked the trials of *record*;
    None without one. What was chosen stands, whoever reads the answers again.
    """
    if run is None:
        return None
    keys = [key for key, _, _ in record["trials"]]
    for earlier in run.of_type(PILOT):
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


def unlike_log(record: Mapping[str, Any], run: RunReader) -> Iterator[str]:
    """Yield where the *record* of a pilot is not what the log of *run* gives: its trials, the
    answers where the scorer is built in, and what follows from them.
    """
    keys = [key for key, _, _ in record["trials"]]
    asked = list(run.records(keys))
    # A test may have asked the same text about a control group before.
    of_pilots = {key: cell for (key, _), cell in run.shared_cells.items() if _is_of_pilot(cell)}
    for (key, text, _), trial in zip(record["trials"], asked, strict=True):
        cell = of_pilots.get(key, trial and trial["cell"])
        if not cell or cell["template"] != text or not _is_of_pilot(cell):
            yield f"trial {key[:12]}… is not in the log as one of {text} about a neutral name"
            return
    scorer = BUILT_IN.get(record["scorer"])
    if scorer is not None and scorer.fingerprint == record["fingerprint"]:
        rows = [(cell_of(trial["cell"]), trial_of(trial)) for trial in asked if trial is not None]
        table = trials_frame(
            rows,
            EndpointFacts(name="", simulated=False),
            GridFacts(answer=record["answer"]),
        )
        again = record_of(table, scorer, record["series"], BUILT_IN)
        if [row[1:] for row in again["trials"]] != [row[1:] for row in record["trials"]]:
            yield "its answers are not what the replies say"
    if record["chosen"] != _chosen(record["series"], record["trials"]):
        yield "the texts that it chose do not follow from its answers"


def _is_of_pilot(cell: Mapping[str, Any]) -> bool:
    return cell["signal"] == PILOT and not cell["groups"]


def texts_not_chosen(record: Mapping[str, Any], texts: Iterable[str]) -> list[str]:
    """Return those of *texts* that are of the series of the *record*, and that it did not choose."""
    left_out = set[str]()
    for name, of_series in record["series"].items():
        left_out.update(set(of_series) - set(record["chosen"][name]))
    return sorted(left_out.intersection(texts))
