"""Pilots of a run derived again from its log: what was asked and answered, what was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_fairness.analysis.pilots import chosen_by, record_of
from pytest_fairness.design.series import PILOT
from pytest_fairness.runs.reader import RunReader
from pytest_fairness.runs.records import cell_of, trial_of
from pytest_fairness.scorers import BUILT_IN
from pytest_fairness.trials_frame import EndpointFacts, GridFacts, trials_frame


def unlike_log(record: Mapping[str, Any], run: RunReader) -> Iterator[str]:
    """Yield where the *record* of a pilot is not what the log of *run* gives: its trials, the
    answers where the scorer is built in, and what follows from them.
    """
    keys = [key for key, _, _ in record["trials"]]
    asked = list(run.records(keys))
    for (key, text, _), cell in zip(record["trials"], _cells_of(keys, asked, run), strict=True):
        if not cell or cell["template"] != text or not _is_of_pilot(cell):
            yield f"trial {key[:12]}… is not in the log as one of {text} about a neutral name"
            return
    if not _answers_follow(record, asked):
        yield "its answers are not what the replies say"
    if record["chosen"] != chosen_by(record["series"], record["trials"]):
        yield "the texts that it chose do not follow from its answers"


def _cells_of(
    keys: Sequence[str], asked: Sequence[Mapping[str, Any] | None], run: RunReader
) -> list[Mapping[str, Any] | None]:
    """Return the cells of a pilot's trials by *keys*, None for one that was not *asked*. A test may
    have asked the same text about a control group before: the log then says of which pilot it is.
    """
    shared = {key: cell for (key, _), cell in run.shared_cells.items() if _is_of_pilot(cell)}
    return [
        shared.get(key, trial and trial["cell"]) for key, trial in zip(keys, asked, strict=True)
    ]


def _answers_follow(record: Mapping[str, Any], asked: Sequence[Mapping[str, Any] | None]) -> bool:
    """Return whether the replies of *asked* say what *record* says of them, as far as its scorer is
    built in.
    """
    scorer = BUILT_IN.get(record["scorer"])
    if scorer is None or scorer.fingerprint != record["fingerprint"]:
        return True
    rows = [(cell_of(trial["cell"]), trial_of(trial)) for trial in asked if trial is not None]
    table = trials_frame(
        rows, EndpointFacts(name="", simulated=False), GridFacts(answer=record["answer"])
    )
    again = record_of(table, scorer, record["series"], BUILT_IN)
    return [row[1:] for row in again["trials"]] == [row[1:] for row in record["trials"]]


def _is_of_pilot(cell: Mapping[str, Any]) -> bool:
    return cell["signal"] == PILOT and not cell["groups"]
