"""The records of the log: how nouns are written into it, and read back."""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pytest_fairness.endpoints.protocol import Evidence, Wire
from pytest_fairness.model import JSON, Cell, Message, Status, Trial, Usage
from pytest_fairness.runs.lines import fields_of

SCHEMA = 1
#: The source of a trial in which a simulated model had a part, and the flag of an attempt that says
#: so.
SIMULATED = "simulated"


def utc_now() -> str:
    """The wall time, ISO 8601 in UTC with microseconds. Durations are never taken from it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One numbered attempt at one turn, as it ended: with a reply (``status``) or without
    (``evidence``).

    ``turn`` counts from 0, ``number`` from 1 over the whole trial. ``cost`` is in US dollars,
    ``seconds`` is monotonic time. ``flags`` says what was odd: ``usage_invalid``, ``unpriced``,
    ``deadline``, ``cancelled``, ``writer_died``. ``retry_after`` is the pause (seconds) that the
    server wishes for. ``free``: it is not billed, whatever the evidence.
    """

    turn: int = 0
    number: int = 0
    status: Status | None = None
    text: str | None = None
    finish_reason: str | None = None
    model: str | None = None
    usage: Usage | None = None
    cost: float | None = None
    seconds: float | None = None
    evidence: Evidence | None = None
    error: str | None = None
    flags: tuple[str, ...] = ()
    retry_after: float | None = None
    wire: Wire | None = None
    free: bool = False


def sent_record(key: str, turn: int, number: int, order: int) -> dict[str, Any]:
    """Written before a request leaves: without a following attempt record it was perhaps paid for."""
    return {"type": "sent", "key": key, "turn": turn, "attempt": number, "order": order, **_now()}


def attempt_record(key: str, attempt: Attempt) -> dict[str, Any]:
    """Return what came of an attempt, with the bytes of request and response where there was a
    wire.
    """
    record = {
        "type": "attempt",
        "key": key,
        "turn": attempt.turn,
        "attempt": attempt.number,
        **fields_of(attempt),
    }
    del record["number"], record["free"]
    return record | _now()


def _now() -> dict[str, Any]:
    return {"time": utc_now(), "monotonic": time.monotonic()}


def attempt_of(record: Mapping[str, Any]) -> Attempt:
    """The attempt of a record of type ``attempt``."""
    return msgspec.convert({**record, "number": record["attempt"], "wire": None}, Attempt)


def trial_record(
    trial: Trial,
    cell: Cell,
    *,
    endpoint: str,
    identity: str,
    messages: Sequence[Message],
    parameters: Mapping[str, Mapping[str, JSON]],
    order: int = 0,
    seed: int = 0,
    flags: Sequence[str] = (),
    script: JSON = None,
) -> dict[str, Any]:
    """A finished trial with all that is needed to rebuild results without asking.

    *messages* is the conversation as it was sent; *parameters* are those ``requested`` by the test,
    and those ``sent`` with the endpoint's defaults. *endpoint* is its name, *identity* the hash
    under which the log's ``engine`` record spells it out. *order* is the trial's place in the order
    in which its process took the trials of its batch up.
    *script* is the identity of what decided between turns.
    """
    decided = {}
    if script is not None:
        decided["script"] = script
    return {
        "type": "trial",
        "key": trial.key,
        "status": trial.status,
        "cell": cell,
        "messages": messages,
        "parameters": parameters,
        "endpoint": {"name": endpoint, "identity": identity},
        **fields_of(trial),
        "order": order,
        "seed": seed,
        "flags": flags,
        **decided,
        **_now(),
    }


def unchained(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return *record*, perhaps of another run, without its place in the chain there."""
    alone = dict(record)
    for name in ("prev", "hash"):
        alone.pop(name, None)
    return alone


def cell_of(record: Mapping[str, Any]) -> Cell:
    """The cell as it stands in records."""
    return Cell(**{**record, "turns": tuple(record["turns"])})


def trial_of(record: Mapping[str, Any]) -> Trial:
    """The trial of a record of type ``trial``. Raises KeyError, TypeError or ValueError for another
    shape.
    """
    # One string for all trials that have it: many are held at once.
    shared = {
        name: sys.intern(record[name])
        for name in ("finish_reason", "model", "source")
        if record[name]
    }
    return msgspec.convert({**record, **shared}, Trial)


def conversation(
    system: str | None, turns: Sequence[str], replies: Sequence[str]
) -> tuple[Message, ...]:
    """The messages of the turn that comes after *replies*: all before it, with the replies between
    the turns.
    """
    messages = []
    if system is not None:
        messages = [Message("system", system)]
    for turn, reply in zip(turns, replies, strict=False):
        messages += [Message("user", turn), Message("assistant", reply)]
    return (*messages, Message("user", turns[len(replies)]))
