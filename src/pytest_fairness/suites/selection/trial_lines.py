"""``selection.jsonl``: one line a trial with all that was asked, answered and read, made from the run's log.

The lines stand in the order of the design, whatever order the trials were asked in, so that two runs can be compared
line by line. Model output is written as JSON in ASCII: no line break, control character or half a surrogate pair of
it can end a line or reach a terminal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import StoreError
from pytest_fairness.model import JSON, to_json
from pytest_fairness.runs.reader import RunReader
from pytest_fairness.scorers.salary import Salary, SalaryStatus, read_salary

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
_HOLD = "{text}"
#: Columns of the table that a line has under the same name, where the table has them.
_FACTS = (
    "cell", "arm", "pair", "order", "first", "second", "first_name", "second_name", "group", "candidate", "role",
    "criteria", "qualifications", "signal", "temperature", "repetition", "status", "refused", "endpoint", "model",
    "simulated", "replayed", "cost", "seconds", "key",
)  # fmt: skip


def write_lines(path: Path, trials: pd.DataFrame, run: Path) -> None:
    """Write a line for each row of *trials* to *path*, with what the log of the *run* says of it.

    One trial is in memory at a time. The file appears whole or not at all. Raises StoreError where it cannot be
    written, or the log is damaged.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii", newline="\n") as file:
            for line in trial_lines(trials, run):
                file.write(json.dumps(line, ensure_ascii=True, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreError(
            f"{path}: cannot be written ({error.strerror or error}); make room, and resume the run"
        ) from None


def trial_lines(trials: pd.DataFrame, run: Path) -> Iterator[dict[str, JSON]]:
    """A mapping for each row of *trials*, in their order."""
    reader = RunReader.open(run)
    known = set(trials["key"]) - set(reader.missing(trials["key"]))
    logged = reader.raw(key for key in trials["key"] if key in known)
    facts = [column for column in _FACTS if column in trials.columns]
    read = [column for column in ("choice", "chosen", "salary", "read") if column in trials.columns]
    scrubbed = trials["candidates_text"].tolist() if "candidates_text" in trials.columns else [None] * len(trials)
    rows = zip(trials[facts + read].to_dict("records"), trials["prompt"], trials["reply"], scrubbed, strict=True)
    for row, prompt, reply, text in rows:
        record = next(logged) if row["key"] in known else None
        line: dict[str, Any] = {"schema": SCHEMA, **{column: _plain(row[column]) for column in facts}}
        line |= {
            "prompt": prompt if record is None else _asked(record),
            "response": _plain(reply),
            "scrubbed_text": _plain(text),
            **{column: _plain(row[column]) for column in read},
            "requests": [] if record is None else list(_requests(record)),
        }
        if record is not None:
            line |= {name: record.get(name) for name in ("finish_reason", "usage", "attempts", "error", "time")}
        yield line


def _plain(value: Any) -> JSON:
    """*value* for JSON: numpy's own numbers as Python's, what is missing as None."""
    if hasattr(value, "item"):
        value = value.item()
    return None if value is None or value != value else to_json(value)  # noqa: PLR0124 - NaN is not itself


def _asked(record: Mapping[str, Any]) -> str:
    """The last message that was sent: what the choice was made from."""
    sent = [message["content"] for message in record["messages"] if message["role"] == "user"]
    return sent[-1] if sent else ""


def _requests(record: Mapping[str, Any]) -> Iterator[dict[str, JSON]]:
    """Each request of a trial: its system prompt, its prompt and the response, verbatim."""
    script = record.get("script")
    systems = script.get("pipeline") if isinstance(script, Mapping) else None
    replies, turns = record["replies"], record["cell"]["turns"]
    asked = _asked(record)
    for at, turn in enumerate(turns):
        prompt = turn.replace(_HOLD, replies[at - 1], 1) if at else turn
        last = at == len(turns) - 1
        # Functions of an arm's own may stand between two steps: what was sent last is known word for word.
        prompt = asked if last and at <= len(replies) else prompt
        yield {
            "system": systems[at] if systems else record["cell"]["system"],
            "prompt": prompt,
            "response": replies[at] if at < len(replies) else None,
        }
        if at >= len(replies) or (at == len(replies) - 1 and prompt == asked):
            return


def with_salaries(trials: pd.DataFrame, hours_per_year: float) -> pd.DataFrame:
    """*trials* with ``salary`` (dollars a year, NaN where none was read) and ``read``, what the reply came to."""
    found = [
        Salary(SalaryStatus.REFUSED)
        if refused
        else read_salary(reply, hours_per_year)
        if isinstance(reply, str)
        else Salary(SalaryStatus.UNPARSED)
        for reply, refused in zip(trials["reply"], trials["refused"], strict=True)
    ]
    amounts = [float("nan") if one.amount is None else one.amount for one in found]
    return trials.assign(salary=amounts, read=[one.status.value for one in found])
