"""One trial as it comes about: turn by turn, attempt by attempt, live or taken up again from the log."""

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

_OUTCOME = {
    Evidence.NO_RESPONSE: Status.UNKNOWN,
    Evidence.PARTIAL: Status.MALFORMED,
}

#: How the flag of a trial begins that was asked again on request, after it had come to nothing.
AGAIN = "asked_again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Where the request of a trial is that was sent in a batch: the batch's tag, the request's identifier in it, and
    what was reserved for it, in nano-dollars.
    """

    tag: str
    custom_id: str
    reserved: int = 0


@dataclass(slots=True)
class Conversation:
    """The state of one trial. ``status`` is None until it is finished; ``turn`` counts from 0.

    ``usage`` adds up what the turns used, ``cost`` (US dollars) what they cost, reservations of lost ones
    included. ``waiting`` says in which batch the next reply is awaited.
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
    _input: int | None = None
    _output: int | None = None
    _unanswered: int | None = None
    _messages: tuple[int, tuple[Message, ...]] | None = None
    _reply_status: Status = Status.NOT_RUN

    def over(self) -> bool:
        """Whether it has come to its end, of whatever kind."""
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
        """The messages of the turn that is next, or was last."""
        cell = self.planned.cell
        if self.planned.script is not None:
            if self._messages is None or self._messages[0] != self.turn:
                scripted = self._scripted()
                if scripted is None:  # over: these are the messages that were last
                    return () if self._messages is None else self._messages[1]
                self._messages = self.turn, scripted
            return self._messages[1]
        turn = min(self.turn, len(cell.turns) - 1)
        if self._messages is None or self._messages[0] != turn:
            self._messages = turn, conversation(cell.system, cell.turns, self.replies[:turn])
        return self._messages[1]

    def _scripted(self) -> tuple[Message, ...] | None:
        """What the script sends next; None where it has ended, or could not go on."""
        script = self.planned.script
        try:
            return None if script is None else script.next(self.planned.cell, self.replies, self._reply_status)
        except Exception as error:  # noqa: BLE001 - a step is somebody's function; what it raises is an outcome
            self.status, self.error = Status.ERROR, f"a step of the trial raised {type(error).__name__}: {error}"
            return None

    def apply(self, attempt: Attempt) -> None:
        """Take in how an attempt ended. Failures that may be repeated leave the conversation where it was."""
        self._unanswered = self.waiting = None
        self.attempts = max(self.attempts, attempt.number)
        self.cost = _sum(self.cost, attempt.cost)
        self.seconds = _sum(self.seconds, attempt.seconds)
        self.flags += (flag for flag in attempt.flags if flag not in self.flags)
        if attempt.status is not None:
            self._answered(attempt, attempt.status)
        elif attempt.evidence is not None and attempt.evidence not in (*REPEATABLE, Evidence.AUTH):
            self.status = _OUTCOME.get(attempt.evidence, Status.ERROR)
            self.error = attempt.error

    def _answered(self, attempt: Attempt, status: Status) -> None:
        self.finish_reason, self.model, self.error = attempt.finish_reason, attempt.model, attempt.error
        if attempt.usage is not None:
            self._input = _sum(self._input, attempt.usage.input_tokens)
            self._output = _sum(self._output, attempt.usage.output_tokens)
        if self.planned.script is not None:
            self._continue(attempt, status)
            return
        last = self.turn == len(self.planned.cell.turns) - 1
        if attempt.text is not None and status in (Status.ANSWERED, Status.REFUSED):
            self.replies.append(attempt.text)
            if not last:  # also a refusal is answered by the next turn: that is what escalation is about
                return
        self.status = status

    def _continue(self, attempt: Attempt, status: Status) -> None:
        """Let the script decide what comes after a reply, also after one that refused or was empty."""
        if status not in (Status.ANSWERED, Status.REFUSED, Status.EMPTY):
            self.status = status
            return
        held = self.messages
        self.replies.append(attempt.text or "")
        self._reply_status = status
        following = self._scripted()
        if following is not None:
            self._messages = self.turn, following
            return
        self._messages = self.turn, held  # the log shows the request that was last
        self.status = self.status or status

    def reopen(self) -> None:
        """Take an end back: the failure that it came from may be asked again, by a policy that pays for it."""
        self.status = self.error = None

    def give_up(self, error: str) -> None:
        """End as ERROR: what could be repeated was, often enough."""
        self.status, self.error = Status.ERROR, error

    def lose(self, error: str) -> None:
        """End as UNKNOWN: sent, and nobody knows what came of it."""
        self.status, self.error = Status.UNKNOWN, error

    def ask_again(self) -> None:
        """Forget that a request was sent and lost: it is sent once more, as somebody wished."""
        self._unanswered = self.waiting = None

    # ------------------------------------------------------------ from the log

    def resume(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take up what earlier processes logged of this trial: answered turns are not asked again."""
        for record in records:
            if record["type"] == "attempt":
                self.apply(attempt_of(record))
            elif record["type"] == "sent":
                self._unanswered = record["attempt"]
                self.waiting = Waiting(**record["batch"]) if "batch" in record else None
                self.attempts = max(self.attempts, record["attempt"])
            else:  # a trial that came to nothing, and is to be asked again
                self.attempts, self.cost, self.seconds = record["attempts"], record["cost"], record["seconds"]
                again = f"{AGAIN}_after_{record['status']}"
                self.replies, self.flags = list(record["replies"]), [*record["flags"], again]
                self._reply_status = Status.ANSWERED if self.replies else Status.NOT_RUN

    @property
    def was_lost(self) -> bool:
        """Whether an earlier process sent a request, and died before it logged what came of it."""
        return self._unanswered is not None

    def to_trial(self, source: str) -> Trial:
        """The finished trial."""
        return Trial(
            key=self.key,
            repetition=self.planned.repetition,
            status=self.status or Status.NOT_RUN,
            replies=tuple(self.replies),
            finish_reason=self.finish_reason,
            model=self.model,
            usage=Usage(input_tokens=self._input, output_tokens=self._output)
            if (self._input, self._output) != (None, None)
            else None,
            cost=self.cost,
            attempts=self.attempts,
            seconds=self.seconds,
            error=self.error,
            source=SIMULATED if SIMULATED in self.flags else source,
        )


def _sum(total: Any, more: Any) -> Any:
    return total if more is None else more if total is None else total + more
