"""Pilots of a run derived again from its log: what was asked and answered, what was chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    asked = list(filter(None, run.records([key for key, _, _ in record["trials"]])))
    texts = _texts_of_pilots(asked, run)
    for key, text, _ in record["trials"]:
        if texts.get(key) != text:
            yield f"trial {key[:12]}… is not in the log as one of {text} about a neutral name"
            return
    if not _answers_follow(record, asked):
        yield "its answers are not what the replies say"
    if record["chosen"] != chosen_by(record["series"], record["trials"]):
        yield "the texts that it chose do not follow from its answers"


def _texts_of_pilots(asked: Iterable[Mapping[str, Any]], run: RunReader) -> dict[str, str]:
    """Return the text of each trial, of those *asked* and of those that share a reply in *run*, that
    a pilot asked about a neutral name, by the key of the trial.
    """
    cells = [(trial["key"], trial["cell"]) for trial in asked]
    # A test may have asked the same text about a control group before: the log then says of which
    # pilot it is.
    cells += [(key, cell) for (key, _), cell in run.shared_cells.items()]
    texts = {}
    for key, cell in cells:
        if cell["signal"] == PILOT and not cell["groups"]:
            texts[key] = cell["template"]
    return texts


def _answers_follow(record: Mapping[str, Any], asked: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the replies of *asked* say what *record* says of them, as far as its scorer is
    built in.
    """
    scorer = BUILT_IN.get(record["scorer"])
    if scorer is None or scorer.fingerprint != record["fingerprint"]:
        return True
    rows = [(cell_of(trial["cell"]), trial_of(trial)) for trial in asked]
    table = trials_frame(
        rows, EndpointFacts(name="", simulated=False), GridFacts(answer=record["answer"])
    )
    again = record_of(table, scorer, record["series"], BUILT_IN)
    return _without_keys(again["trials"]) == _without_keys(record["trials"])


def _without_keys(trials: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
    """Return the text and the answer of each of *trials*."""
    return [trial[1:] for trial in trials]
