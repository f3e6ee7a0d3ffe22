"""The records of the log: how nouns are written into it, and read back."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_fairness.endpoints.protocol import Evidence, Wire
from pytest_fairness.model import JSON, Cell, Message, Status, Trial, Usage

SCHEMA = 1
#: The source of a trial in which a simulated model had a part, and the flag of an attempt that says so.
SIMULATED = "simulated"


def utc_now() -> str:
    """The wall time, ISO 8601 in UTC with microseconds. Durations are never taken from it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One numbered attempt at one turn, as it ended: with a reply (``status``) or without (``evidence``).

    ``turn`` counts from 0, ``number`` from 1 over the whole trial. ``cost`` is in US dollars, ``seconds`` is
    monotonic time. ``flags`` says what was odd: ``usage_invalid``, ``unpriced``, ``deadline``, ``cancelled``,
    ``writer_died``. ``retry_after`` is the pause (seconds) that the server wishes for. ``free``: it is not billed,
    whatever the evidence.
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


def sent_record(key: str, turn: int, number: int, order: int, monotonic: float) -> dict[str, Any]:
    """Written before a request leaves: without a following attempt record it was perhaps paid for."""
    return {
        "type": "sent",
        "key": key,
        "turn": turn,
        "attempt": number,
        "order": order,
        "time": utc_now(),
        "monotonic": monotonic,
    }


def attempt_record(key: str, attempt: Attempt, monotonic: float) -> dict[str, Any]:
    """What came of an attempt, with the bytes of request and response where there was a wire."""
    return {
        "type": "attempt",
        "key": key,
        "turn": attempt.turn,
        "attempt": attempt.number,
        "status": attempt.status,
        "text": attempt.text,
        "finish_reason": attempt.finish_reason,
        "model": attempt.model,
        "usage": _usage(attempt.usage),
        "cost": attempt.cost,
        "seconds": attempt.seconds,
        "evidence": attempt.evidence,
        "error": attempt.error,
        "retry_after": attempt.retry_after,
        "flags": attempt.flags,
        "time": utc_now(),
        "monotonic": monotonic,
        "wire": None if attempt.wire is None else wire_record(attempt.wire),
    }


def attempt_of(record: Mapping[str, Any]) -> Attempt:
    """The attempt of a record of type ``attempt``."""
    status, evidence, usage = record["status"], record["evidence"], record["usage"]
    return Attempt(
        turn=record["turn"],
        number=record["attempt"],
        status=None if status is None else Status(status),
        text=record["text"],
        finish_reason=record["finish_reason"],
        model=record["model"],
        usage=None if usage is None else Usage(**usage),
        cost=record["cost"],
        seconds=record["seconds"],
        evidence=None if evidence is None else Evidence(evidence),
        error=record["error"],
        flags=tuple(record["flags"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """A finished trial with all that is needed to rebuild results without asking.

    ``messages`` is the conversation as it was sent. ``parameters_asked`` are those of the test,
    ``parameters_sent`` those with the endpoint's defaults. ``endpoint`` is its name, ``identity`` the hash
    under which the log's ``engine`` record spells it out. ``order`` is the trial's place in the order
    in which its process took the trials of its batch up. ``script`` is the identity of what decided between turns.
    """

    trial: Trial
    cell: Cell
    endpoint: str
    identity: str
    messages: tuple[Message, ...]
    parameters_asked: Mapping[str, JSON] = field(default_factory=dict)
    parameters_sent: Mapping[str, JSON] = field(default_factory=dict)
    order: int = 0
    seed: int = 0
    flags: tuple[str, ...] = ()
    script: JSON = None

    def to_record(self, monotonic: float) -> dict[str, Any]:
        """The record of type ``trial``."""
        trial = self.trial
        return {
            "type": "trial",
            "key": trial.key,
            "status": trial.status,
            "cell": cell_record(self.cell),
            "repetition": trial.repetition,
            "messages": [{"role": message.role, "content": message.content} for message in self.messages],
            "parameters": {"asked": dict(self.parameters_asked), "sent": dict(self.parameters_sent)},
            "endpoint": {"name": self.endpoint, "identity": self.identity},
            "replies": trial.replies,
            "finish_reason": trial.finish_reason,
            "model": trial.model,
            "usage": _usage(trial.usage),
            "cost": trial.cost,
            "attempts": trial.attempts,
            "seconds": trial.seconds,
            "error": trial.error,
            "source": trial.source,
            "order": self.order,
            "seed": self.seed,
            "flags": self.flags,
            **({} if self.script is None else {"script": self.script}),
            "time": utc_now(),
            "monotonic": monotonic,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TrialRecord:
        """The inverse of :meth:`to_record`. Raises KeyError, TypeError or ValueError for another shape."""
        return cls(
            trial=trial_of(record),
            cell=cell_of(record["cell"]),
            endpoint=record["endpoint"]["name"],
            identity=record["endpoint"]["identity"],
            messages=tuple(Message(**message) for message in record["messages"]),
            parameters_asked=record["parameters"]["asked"],
            parameters_sent=record["parameters"]["sent"],
            order=record["order"],
            seed=record["seed"],
            flags=tuple(record["flags"]),
            script=record.get("script"),
        )


def cell_record(cell: Cell) -> dict[str, Any]:
    """A cell as it stands in records."""
    return {
        "id": cell.id,
        "template": cell.template,
        "groups": dict(cell.groups),
        "name": cell.name,
        "persona": cell.persona,
        "context": dict(cell.context),
        "attributes": dict(cell.attributes),
        "tier": cell.tier,
        "arm": cell.arm,
        "signal": cell.signal,
        "signals": {text: dict(groups) for text, groups in cell.signals.items()},
        "system": cell.system,
        "turns": cell.turns,
    }


def cell_of(record: Mapping[str, Any]) -> Cell:
    """The inverse of :func:`cell_record`."""
    return Cell(**{**record, "turns": tuple(record["turns"])})


def trial_of(record: Mapping[str, Any]) -> Trial:
    """The trial of a record of type ``trial``. Raises KeyError, TypeError or ValueError for another shape."""
    usage = record["usage"]
    return Trial(
        key=record["key"],
        repetition=record["repetition"],
        status=Status(record["status"]),
        replies=tuple(record["replies"]),
        finish_reason=_shared(record["finish_reason"]),
        model=_shared(record["model"]),
        usage=None if usage is None else Usage(**usage),
        cost=record["cost"],
        attempts=record["attempts"],
        seconds=record["seconds"],
        error=record["error"],
        source=_shared(record["source"]) or "",
    )


def _shared(text: str | None) -> str | None:
    """*text* as one string for all trials that have it: many are held at once."""
    return sys.intern(text) if type(text) is str else text


def conversation(system: str | None, turns: Sequence[str], replies: Sequence[str]) -> tuple[Message, ...]:
    """The messages of the turn that comes after *replies*: all before it, with the replies between the
    turns."""
    messages = [] if system is None else [Message("system", system)]
    for turn, reply in zip(turns, replies, strict=False):
        messages += [Message("user", turn), Message("assistant", reply)]
    return (*messages, Message("user", turns[len(replies)]))


def wire_record(wire: Wire) -> dict[str, Any]:
    """An exchange as it stands in records."""
    return {
        "url": wire.url,
        "request_body": wire.request_body,
        "request_headers": dict(wire.request_headers),
        "status_code": wire.status_code,
        "response_headers": dict(wire.response_headers),
        "response_body": wire.response_body,
        "truncated": wire.truncated,
    }


def _usage(usage: Usage | None) -> dict[str, int | None] | None:
    return None if usage is None else {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
