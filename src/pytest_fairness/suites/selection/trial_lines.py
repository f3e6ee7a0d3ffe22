"""``selection.jsonl``: one line a trial with all that was asked, answered and read, made from the
run's log.

The lines stand in the order of the design, whatever order the trials were asked in, so that two
runs can be compared line by line. Model output is written as JSON in ASCII: no line break, control
character or half a surrogate pair of it can end a line or reach a terminal.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.model import JSON, to_json
from pytest_fairness.runs.files import replacing
from pytest_fairness.runs.reader import reading
from pytest_fairness.scorers.salary import Salary, SalaryStatus, read_salary

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
_HOLD = "{text}"
#: Columns of the table that a line has under the same name, where the table has them.
_FACTS = (
    "cell", "arm", "pair", "order", "first", "second", "first_name", "second_name", "group",
    "candidate", "role", "criteria", "qualifications", "signal", "temperature", "repetition",
    "status", "refused", "endpoint", "model", "simulated", "replayed", "cost", "seconds", "key",
)  # fmt: skip
_READ = ("choice", "chosen", "salary", "read")
_LOGGED = ("finish_reason", "usage", "attempts", "error", "time")


def write_lines(path: Path, trials: pd.DataFrame, run: Path) -> None:
    """Write a line for each row of *trials*, in their order, to *path*, with what the log of the
    *run* says of it.

    The file appears whole or not at all. Raises StoreError where it cannot be written, or the log
    is damaged.
    """
    rows = trials.astype(object).where(trials.notna(), None).to_dict("records")
    with replacing(path) as stream, reading(run) as reader:
        for row, record in zip(rows, reader.records(trials["key"]), strict=True):
            line = json.dumps(to_json(_line(row, record)), ensure_ascii=True, allow_nan=False)
            stream.write(f"{line}\n".encode("ascii"))


def _line(row: Mapping[Hashable, Any], record: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what is known of the trial in *row*, with its *record* in the log, if there is one."""
    prompt = row["prompt"]
    requests: list[dict[str, JSON]] = []
    logged: dict[str, Any] = {}
    if record is not None:
        prompt = _prompt_of(record)
        requests = list(_requests(record))
        logged = {name: record.get(name) for name in _LOGGED}
    return {
        "schema": SCHEMA,
        **_columns_of(row, _FACTS),
        "prompt": prompt,
        "response": row["reply"],
        "scrubbed_text": row.get("candidates_text"),
        **_columns_of(row, _READ),
        "requests": requests,
        **logged,
    }


def _columns_of(row: Mapping[Hashable, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the columns *names* of a table that has them."""
    return {name: row[name] for name in names if name in row}


def _prompt_of(record: Mapping[str, Any]) -> str:
    """Return the last message that was sent, from which the choice was made."""
    for message in reversed(record["messages"]):
        if message["role"] == "user":
            return str(message["content"])
    return ""


def _requests(record: Mapping[str, Any]) -> Iterator[dict[str, JSON]]:
    """Each request of a trial: its system prompt, its prompt and the response, verbatim."""
    systems = (record.get("script") or {}).get("pipeline")
    replies = record["replies"]
    turns = record["cell"]["turns"]
    last_prompt = _prompt_of(record)
    for number, turn in enumerate(turns):
        prompt = turn
        if number:
            prompt = turn.replace(_HOLD, replies[number - 1], 1)
        # Functions of an arm's own may stand between two steps: what was sent last is known word
        # for word.
        if number == len(turns) - 1:
            prompt = last_prompt
        system = record["cell"]["system"]
        if systems:
            system = systems[number]
        unanswered = number >= len(replies)
        response = None
        if not unanswered:
            response = replies[number]
        yield {"system": system, "prompt": prompt, "response": response}
        if unanswered or (number == len(replies) - 1 and prompt == last_prompt):
            return


def with_salaries(trials: pd.DataFrame, hours_per_year: float) -> pd.DataFrame:
    """*trials* with ``salary`` (dollars a year, NaN where none was read) and ``read``, what the
    reply came to.
    """

    amounts: list[float | None] = []
    readings: list[str] = []
    for reply, refused in zip(trials["reply"], trials["refused"], strict=True):
        salary = _salary(reply, refused, hours_per_year)
        amounts.append(salary.amount)
        readings.append(salary.status.value)
    return trials.assign(salary=np.array(amounts, dtype=np.float64), read=readings)


def _salary(reply: object, refused: bool, hours_per_year: float) -> Salary:
    if refused:
        return Salary(SalaryStatus.REFUSED)
    if not isinstance(reply, str):
        return Salary(SalaryStatus.UNPARSED)
    return read_salary(reply, hours_per_year)
