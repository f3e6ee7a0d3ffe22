"""One trial as it comes about: turn by turn, attempt by attempt, live or resumed from the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_fairness.endpoints.protocol import Endpoint, Evidence
from pytest_fairness.model import JSON, Message, Status, Trial, Usage
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.records import SIMULATED, Attempt, attempt_of, conversation

#: Nothing was spent, and another attempt may fare better.
REPEATABLE = frozenset({Evidence.NOT_SENT, Evidence.THROTTLED})
#: Nothing was spent.
FREE = REPEATABLE | {Evidence.AUTH, Evidence.REJECTED}
#: How the flag of a trial begins that is asked again on request, after it came to nothing.
AGAIN = "asked_again"
LOST = (
    "the request was sent by a process that ended before it could log the answer: perhaps paid for, "
    "so not sent again; --fairness-retry-unknown asks again"
)


@dataclass(slots=True, kw_only=True)
class Waiting:
    """Where the request of a trial is that was sent in a batch: the batch's tag, the request's identifier and line in
    it, and what is reserved for it, in nano-dollars.
    """

    tag: str
    custom_id: str
    line: str
    reserved: int = 0


@dataclass(slots=True)
class Conversation:
    """The state of one trial. ``status`` is None until it is over.

    ``cost`` (US dollars) includes the reservations of lost attempts. ``waiting`` says in which batch the next reply is
    awaited. ``failures`` counts this session's attempts in a row without a reply, ``server_failures`` those of them
    that may have been billed.
    """

    key: str
    planned: PlannedTrial
    parameters: Mapping[str, JSON]
    order: int = 0
    status: Status | None = None
    replies: list[str] = field(default_factory=list)
    attempts: int = 0
    finish_reason: str | None = None
    model: str | None = None
    cost: float | None = None
    seconds: float | None = None
    error: str | None = None
    flags: list[str] = field(default_factory=list)
    waiting: Waiting | None = None
    #: An earlier process sent a request, and died before it logged what came of it.
    was_lost: bool = False
    failures: int = 0
    server_failures: int = 0
    _input: int | None = None
    _output: int | None = None
    _messages: tuple[Message, ...] = ()
    _reply_status: Status = Status.NOT_RUN

    def over(self) -> bool:  # no property, whose value mypy takes for unchanged
        return self.status is not None

    @property
    def turn(self) -> int:
        return len(self.replies)

    @property
    def endpoint(self) -> Endpoint | None:
        """Whom the turn that is next asks, if not the system under test."""
        endpoints = () if self.planned.script is None else self.planned.script.endpoints
        return endpoints[self.turn] if self.turn < len(endpoints) else None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the turn that is next; once it is over, of the turn that was last."""
        if not self._messages:
            self._messages = self._following() or ()
        return self._messages

    def _following(self) -> tuple[Message, ...] | None:
        """What is sent next; None where the trial is complete, or its script cannot go on."""
        cell, script = self.planned.cell, self.planned.script
        if script is None:
            complete = self.turn == len(cell.turns)
            return None if complete else conversation(cell.system, cell.turns, self.replies)
        try:
            return script.next(cell, self.replies, self._reply_status)
        except Exception as error:  # noqa: BLE001 - a step is somebody's function; what it raises is an outcome
            self.status, self.error = Status.ERROR, f"a step of the trial raised {type(error).__name__}: {error}"
            return None

    def apply(self, attempt: Attempt) -> None:
        """Take in how an attempt ended. Failures that may be repeated leave the conversation where it was."""
        self.was_lost, self.waiting = False, None
        self.attempts = max(self.attempts, attempt.number)
        self.cost = _sum(self.cost, attempt.cost)
        self.seconds = _sum(self.seconds, attempt.seconds)
        self.flags += (flag for flag in attempt.flags if flag not in self.flags)
        if attempt.status is not None:
            self._take_reply(attempt, attempt.status)
        elif attempt.evidence is not None and attempt.evidence not in (*REPEATABLE, Evidence.AUTH):
            outcomes = {Evidence.NO_RESPONSE: Status.UNKNOWN, Evidence.PARTIAL: Status.MALFORMED}
            self.status = outcomes.get(attempt.evidence, Status.ERROR)
            self.error = attempt.error

    def _take_reply(self, attempt: Attempt, status: Status) -> None:
        self.finish_reason, self.model, self.error = attempt.finish_reason, attempt.model, attempt.error
        if attempt.usage is not None:
            self._input = _sum(self._input, attempt.usage.input_tokens)
            self._output = _sum(self._output, attempt.usage.output_tokens)
        # A refusal is answered by the next turn: that is what escalation is about. A script decides on silence, too.
        if self.planned.script is None:
            goes_on = attempt.text is not None and status in (Status.ANSWERED, Status.REFUSED)
        else:
            goes_on = status in (Status.ANSWERED, Status.REFUSED, Status.EMPTY)
        if not goes_on:
            self.status = status
            return
        last = self.messages
        self.replies.append(attempt.text or "")
        self._reply_status = status
        self._messages = self._following() or ()
        if not self._messages:
            self._messages = last
            self.status = self.status or status

    def count(self, evidence: Evidence | None, server_attempts: int) -> None:
        """Count an attempt of this session. What the server fails at may be asked *server_attempts* times."""
        if evidence is None:
            self.failures = self.server_failures = 0
            return
        self.failures += 1
        self.server_failures += evidence is Evidence.SERVER
        if evidence is Evidence.SERVER and self.server_failures < server_attempts:
            self.status = self.error = None

    def give_up(self, error: str) -> None:
        """End as ERROR: what could be repeated was, often enough."""
        self.status, self.error = Status.ERROR, error

    def lose(self, *, again: bool) -> None:
        """Nobody knows what came of a request that was sent: end as UNKNOWN, or send it *again*."""
        self.was_lost, self.waiting = False, None
        if not again:
            self.status, self.error = Status.UNKNOWN, LOST

    def resume(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take up what earlier processes logged of this trial: answered turns are not asked again."""
        for record in records:
            if record["type"] == "attempt":
                self.apply(attempt_of(record))
            elif record["type"] == "sent":
                self.was_lost = True
                self.waiting = Waiting(**record["batch"]) if "batch" in record else None
                self.attempts = max(self.attempts, record["attempt"])
            else:  # a trial that came to nothing, and is to be asked again
                self.attempts, self.cost, self.seconds = record["attempts"], record["cost"], record["seconds"]
                again = f"{AGAIN}_after_{record['status']}"
                self.replies, self.flags = list(record["replies"]), [*record["flags"], again]
                self._reply_status = Status.ANSWERED if self.replies else Status.NOT_RUN
                self._messages = ()

    def to_trial(self, source: str) -> Trial:
        counted = (self._input, self._output) != (None, None)
        return Trial(
            key=self.key,
            repetition=self.planned.repetition,
            status=self.status or Status.NOT_RUN,
            replies=tuple(self.replies),
            finish_reason=self.finish_reason,
            model=self.model,
            usage=Usage(input_tokens=self._input, output_tokens=self._output) if counted else None,
            cost=self.cost,
            attempts=self.attempts,
            seconds=self.seconds,
            error=self.error,
            source=SIMULATED if SIMULATED in self.flags else source,
        )


def _sum(total: Any, more: Any) -> Any:
    return total if more is None else more if total is None else total + more
