"""One trial as it comes about: turn by turn, attempt by attempt, live or resumed from the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_fairness.endpoints.protocol import Endpoint, Evidence
from pytest_fairness.endpoints.redaction import redact
from pytest_fairness.model import JSON, Message, Status, Thread, Trial, Usage
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.records import SIMULATED, Attempt, attempt_of, conversation
from pytest_fairness.trials_frame import CUT_SHORT

#: Nothing was spent, and another attempt may fare better.
REPEATABLE = frozenset({Evidence.NOT_SENT, Evidence.THROTTLED})
#: How the flag of a trial begins that is asked again after it came to nothing.
AGAIN = "asked_again"
#: Finish reasons of a reply that would end so again: at the limit on its length, or by calling a
#: tool in place of an answer.
_FINAL = CUT_SHORT.union(("tool_calls", "tool_use", "function_call"))
#: The flag of a trial whose answer was empty at first: such a turn is asked once more.
AGAIN_AFTER_EMPTY = f"{AGAIN}_after_{Status.EMPTY}"
LOST = (
    "the request was sent by a process that ended before it could log the answer: perhaps paid "
    "for, so not sent again; --fairness-retry-unknown asks again"
)
_UNCOUNTED = Usage()
#: The status of a trial by an attempt without a reply that is not repeated.
_OUTCOMES = {
    Evidence.SERVER: Status.ERROR,
    Evidence.REJECTED: Status.ERROR,
    Evidence.NO_RESPONSE: Status.UNKNOWN,
    Evidence.PARTIAL: Status.MALFORMED,
}


@dataclass(slots=True, kw_only=True)
class Waiting:
    """The place of a request that was sent in a batch: the batch's tag, the request's identifier
    and line in it, and what is reserved for it, in nano-dollars.
    """

    tag: str
    custom_id: str
    line: str
    reserved: int = 0


@dataclass(slots=True)
class Conversation:
    """The state of one trial. ``status`` is None until it is over.

    ``messages`` are those of the turn that is next; once it is over, of the turn that was last.
    ``failures`` counts this session's attempts in a row without a reply, ``server_failures`` those
    of them that may have been billed. ``was_lost``: a process sent a request, and died before it
    logged what came of it; ``waiting`` says in which batch it is. ``statuses`` has what each reply
    was, by its turn.
    """

    key: str
    planned: PlannedTrial
    parameters: Mapping[str, JSON]
    order: int = 0
    status: Status | None = None
    messages: tuple[Message, ...] = ()
    replies: list[str] = field(default_factory=list)
    error: str | None = None
    attempts: int = 0
    endings: list[Attempt] = field(default_factory=list)
    waiting: Waiting | None = None
    was_lost: bool = False
    failures: int = 0
    server_failures: int = 0
    statuses: dict[int, Status] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._proceed(Status.NOT_RUN)

    def over(self) -> bool:  # no property, whose value mypy takes for unchanged
        """Return whether nothing more is asked for the trial."""
        return self.status is not None

    @property
    def turn(self) -> int:
        """The place of the turn that is next, from 0."""
        return len(self.replies)

    @property
    def reserved(self) -> int:
        """Nano-dollars that are set aside for it in a batch."""
        if self.waiting is None:
            return 0
        return self.waiting.reserved

    @property
    def endpoint(self) -> Endpoint | None:
        """The endpoint that the next turn asks, if not the system under test."""
        script = self.planned.script
        if script is None or self.turn >= len(script.endpoints):
            return None
        return script.endpoints[self.turn]

    def _next_messages(self, status: Status) -> tuple[Message, ...] | None:
        """Return what the next turn sends after a reply of *status*, None where there is none."""
        cell = self.planned.cell
        script = self.planned.script
        if script is not None:
            return script.next(cell, self.replies, status)
        if self.turn < len(cell.turns):
            return conversation(cell.system, cell.turns, self.replies)
        return None

    def _proceed(self, status: Status) -> None:
        """Begin the next turn after a reply of *status*; where there is none, the trial is over."""
        following = None
        try:
            following = self._next_messages(status)
        except Exception as error:  # noqa: BLE001 - what a step raises is an outcome
            why = f"a step of the trial raised {type(error).__name__}: {error}"
            status = Status.ERROR
            self.error = redact(why)
        if following:
            self.messages = following
        else:
            self.status = status

    def apply(self, attempt: Attempt) -> None:
        """Take in how an attempt ended. A failure that may be repeated, and the first empty answer,
        leave the conversation where it was.
        """
        self.was_lost = False
        self.waiting = None
        self.attempts = max(self.attempts, attempt.number)
        self.endings.append(attempt)
        status = attempt.status
        if status is None:
            if attempt.evidence in _OUTCOMES:
                self.give_up(_OUTCOMES[attempt.evidence], attempt.error)
        elif not self._is_first_empty_answer():
            self._take_answer(status, attempt)

    def _take_answer(self, status: Status, attempt: Attempt) -> None:
        """Take in the complete answer of *attempt*, which has *status*."""
        self.error = attempt.error
        # A refusal is answered by the next turn: that is what escalation is about. A script decides
        # on silence, too.
        silent = attempt.text is None and self.planned.script is None
        if silent or status not in (Status.ANSWERED, Status.REFUSED, Status.EMPTY):
            self.status = status
        else:
            self.statuses[self.turn] = status
            self.replies.append(attempt.text or "")
            self._proceed(status)

    def _is_first_empty_answer(self) -> bool:
        """Return whether the last attempt brought the trial's first empty answer: its turn is asked
        once more. A reply that ended at the limit on its length, or called a tool, would do so
        again.
        """
        last = self.endings[-1]
        if last.status is not Status.EMPTY or self._statuses_of_attempts.count(Status.EMPTY) > 1:
            return False
        reason = last.finish_reason or ""
        return reason.lower() not in _FINAL

    @property
    def _statuses_of_attempts(self) -> list[Status | None]:
        """The status that each attempt brought, None for nothing."""
        return [attempt.status for attempt in self.endings]

    def give_up(self, status: Status, error: str | None) -> None:
        """End without a reply, for another reason than an attempt's ending."""
        self.status = status
        self.error = error

    def lose(self, *, again: bool) -> None:
        """Nobody knows what came of a request that was sent: end as UNKNOWN, or send it *again*."""
        self.was_lost = False
        self.waiting = None
        if not again:
            self.give_up(Status.UNKNOWN, LOST)

    def resume(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take up what previous processes logged; answered turns are not asked again."""
        for record in records:
            if record["type"] == "attempt":
                self.apply(attempt_of(record))
            elif record["type"] == "sent":
                self._resume_sent(record)
            else:
                self._resume_failed(record)

    def _resume_sent(self, record: Mapping[str, Any]) -> None:
        """Take up a request that left and has no answer in the log so far."""
        self.was_lost = True
        self.waiting = None
        if "batch" in record:
            self.waiting = Waiting(**record["batch"])
        self.attempts = max(self.attempts, record["attempt"])

    def _resume_failed(self, record: Mapping[str, Any]) -> None:
        """Take up a trial that failed, and is to be asked again."""
        self.attempts = record["attempts"]
        self.replies = list(record["replies"])
        flags = (*record["flags"], f"{AGAIN}_after_{record['status']}")
        self.endings = [Attempt(cost=record["cost"], seconds=record["seconds"], flags=flags)]
        self._restore_statuses(record.get("threads", ()))
        if self.replies:
            self._proceed(Status.ANSWERED)

    def _restore_statuses(self, threads: Iterable[Mapping[str, Any]]) -> None:
        """Take up the status of each conversation of *threads*: a refusal at first stays one."""
        turn = 0
        for thread in threads:
            turn += sum(message["role"] == "assistant" for message in thread["messages"])
            if thread["messages"][-1]["role"] == "assistant":
                self.statuses[turn - 1] = Status(thread["status"])

    @property
    def flags(self) -> list[str]:
        """The flags of all attempts, each once."""
        flags: list[str] = []
        for attempt in self.endings:
            flags += attempt.flags
        if self.was_empty_first:
            flags.append(AGAIN_AFTER_EMPTY)
        return list(dict.fromkeys(flags))

    @property
    def was_empty_first(self) -> bool:
        """Return whether an answer was empty, and its turn was asked once more."""
        for attempt in self.endings:
            if AGAIN_AFTER_EMPTY in attempt.flags:
                return True
        return Status.EMPTY in self._statuses_of_attempts[:-1]

    def to_trial(self, source: str) -> Trial:
        """Return the trial as it is logged; *source* is that of one without a simulated step."""
        answer = self._last_answer()
        if SIMULATED in self.flags:
            source = SIMULATED
        return Trial(
            key=self.key,
            repetition=self.planned.repetition,
            status=self.status or Status.NOT_RUN,
            replies=tuple(self.replies),
            finish_reason=answer.finish_reason,
            model=answer.model,
            usage=self._usage(),
            cost=_total(attempt.cost for attempt in self.endings),
            attempts=self.attempts,
            seconds=_total(attempt.seconds for attempt in self.endings),
            error=self.error,
            source=source,
            threads=self._threads(),
            empty_first=self.was_empty_first,
        )

    def _last_answer(self) -> Attempt:
        """Return the last attempt that brought an answer, an empty one where none did."""
        for attempt in reversed(self.endings):
            if attempt.status is not None:
                return attempt
        return Attempt()

    def _usage(self) -> Usage | None:
        """Return the tokens of all attempts together, None where nobody counted."""
        counts_in = []
        counts_out = []
        for attempt in self.endings:
            usage = attempt.usage or _UNCOUNTED
            counts_in.append(usage.input_tokens)
            counts_out.append(usage.output_tokens)
        total = Usage(input_tokens=_total(counts_in), output_tokens=_total(counts_out))
        if total == _UNCOUNTED:
            return None
        return total

    def _threads(self) -> tuple[Thread, ...]:
        """Return the conversations that a trial with a script consists of."""
        script = self.planned.script
        if script is None:
            return ()
        ended = self.status or Status.NOT_RUN
        return script.threads(self.planned.cell, self.replies, self.statuses, ended)

    def read_refusals(self, is_refusal: Callable[[str], bool]) -> None:
        """Mark the replies that decline in words, as *is_refusal* reads them, and the trial if its
        last one does.
        """
        if self.status is Status.ANSWERED and is_refusal(self.replies[-1]):
            self.status = Status.REFUSED
        if self.planned.script is None:
            return
        for turn, status in self.statuses.items():
            if status is Status.ANSWERED and is_refusal(self.replies[turn]):
                self.statuses[turn] = Status.REFUSED


def _total(values: Iterable[float | None]) -> Any:
    """Return the sum of the *values* that are there, None where none is."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    return sum(numbers)
