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
#: Finish reasons of a reply that calls a tool in place of an answer.
_TOOL_CALLS = frozenset(("tool_calls", "tool_use", "function_call"))
#: The flag of a trial whose answer was empty at first: such a turn is asked once more.
AGAIN_AFTER_EMPTY = f"{AGAIN}_after_{Status.EMPTY}"
LOST = (
    "the request was sent by a process that ended before it could log the answer: perhaps paid "
    "for, "
    "so not sent again; --fairness-retry-unknown asks again"
)
#: What a trial comes to by an attempt without a reply that is not repeated.
_OUTCOMES = {
    Evidence.SERVER: Status.ERROR,
    Evidence.REJECTED: Status.ERROR,
    Evidence.NO_RESPONSE: Status.UNKNOWN,
    Evidence.PARTIAL: Status.MALFORMED,
}


@dataclass(slots=True, kw_only=True)
class Waiting:
    """Where a request is that was sent in a batch: the batch's tag, the request's identifier and
    line in it, and what is reserved for it, in nano-dollars.
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
        return self.status is not None

    @property
    def turn(self) -> int:
        return len(self.replies)

    @property
    def reserved(self) -> int:
        """What is set aside for it in a batch, in nano-dollars."""
        return 0 if self.waiting is None else self.waiting.reserved

    @property
    def endpoint(self) -> Endpoint | None:
        """Whom the turn that is next asks, if not the system under test."""
        endpoints = () if self.planned.script is None else self.planned.script.endpoints
        return endpoints[self.turn] if self.turn < len(endpoints) else None

    def _proceed(self, status: Status) -> None:
        """Go on to the next turn after a reply of *status*; where there is none, the trial is over."""
        cell, script = self.planned.cell, self.planned.script
        following = None
        try:
            if script is not None:
                following = script.next(cell, self.replies, status)
            elif self.turn < len(cell.turns):
                following = conversation(cell.system, cell.turns, self.replies)
        except Exception as error:  # noqa: BLE001 - a step is somebody's function; what it raises is an outcome
            why = f"a step of the trial raised {type(error).__name__}: {error}"
            status, self.error = Status.ERROR, redact(why)
        if following:
            self.messages = following
        else:
            self.status = status

    def apply(self, attempt: Attempt) -> None:
        """Take in how an attempt ended. Failures that may be repeated leave the conversation where
        it was.
        """
        self.was_lost, self.waiting = False, None
        self.attempts = max(self.attempts, attempt.number)
        self.endings.append(attempt)
        status = attempt.status
        if status is None:
            if attempt.evidence in _OUTCOMES:
                self.status, self.error = _OUTCOMES[attempt.evidence], attempt.error
            return
        if self._is_first_empty_answer():
            return
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
        answers = [attempt for attempt in self.endings if attempt.status is Status.EMPTY]
        if len(answers) != 1 or self.endings[-1] is not answers[0]:
            return False
        reason = (answers[0].finish_reason or "").lower()
        return reason not in CUT_SHORT and reason not in _TOOL_CALLS

    def give_up(self, status: Status, error: str) -> None:
        """End without a reply, for another reason than an attempt's ending."""
        self.status, self.error = status, error

    def lose(self, *, again: bool) -> None:
        """Nobody knows what came of a request that was sent: end as UNKNOWN, or send it *again*."""
        self.was_lost, self.waiting = False, None
        if not again:
            self.give_up(Status.UNKNOWN, LOST)

    def resume(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take up what previous processes logged of this trial: answered turns are not asked again."""
        for record in records:
            if record["type"] == "attempt":
                self.apply(attempt_of(record))
            elif record["type"] == "sent":
                self.was_lost = True
                self.waiting = Waiting(**record["batch"]) if "batch" in record else None
                self.attempts = max(self.attempts, record["attempt"])
            else:  # a trial that came to nothing, and is to be asked again
                self.attempts, self.replies = record["attempts"], list(record["replies"])
                flags = (*record["flags"], f"{AGAIN}_after_{record['status']}")
                self.endings = [
                    Attempt(cost=record["cost"], seconds=record["seconds"], flags=flags)
                ]
                self._restore_statuses(record.get("threads", ()))
                if self.replies:
                    self._proceed(Status.ANSWERED)

    def _restore_statuses(self, threads: Iterable[Mapping[str, Any]]) -> None:
        """Take up what each conversation of *threads* came to: a refusal at first stays one."""
        turn = 0
        for thread in threads:
            turn += sum(message["role"] == "assistant" for message in thread["messages"])
            if thread["messages"][-1]["role"] == "assistant":
                self.statuses[turn - 1] = Status(thread["status"])

    @property
    def flags(self) -> list[str]:
        """Those of all attempts, each once."""
        flags = [flag for attempt in self.endings for flag in attempt.flags]
        if self.was_empty_first:
            flags.append(AGAIN_AFTER_EMPTY)
        return list(dict.fromkeys(flags))

    @property
    def was_empty_first(self) -> bool:
        """Whether an answer was empty, and its turn was asked once more."""
        if any(AGAIN_AFTER_EMPTY in attempt.flags for attempt in self.endings):
            return True
        statuses = [attempt.status for attempt in self.endings]
        return Status.EMPTY in statuses and statuses.index(Status.EMPTY) + 1 < len(statuses)

    def to_trial(self, source: str) -> Trial:
        last = (
            next((ending for ending in reversed(self.endings) if ending.status is not None), None)
            or Attempt()
        )
        usages = [ending.usage for ending in self.endings if ending.usage is not None]
        tokens_in, tokens_out = (
            _total(one.input_tokens for one in usages),
            _total(one.output_tokens for one in usages),
        )
        counted = (tokens_in, tokens_out) != (None, None)
        return Trial(
            key=self.key,
            repetition=self.planned.repetition,
            status=self.status or Status.NOT_RUN,
            replies=tuple(self.replies),
            finish_reason=last.finish_reason,
            model=last.model,
            usage=Usage(input_tokens=tokens_in, output_tokens=tokens_out) if counted else None,
            cost=_total(ending.cost for ending in self.endings),
            attempts=self.attempts,
            seconds=_total(ending.seconds for ending in self.endings),
            error=self.error,
            source=SIMULATED if SIMULATED in self.flags else source,
            threads=self._threads(),
            empty_first=self.was_empty_first,
        )

    def _threads(self) -> tuple[Thread, ...]:
        cell, script, ended = self.planned.cell, self.planned.script, self.status or Status.NOT_RUN
        return () if script is None else script.threads(cell, self.replies, self.statuses, ended)

    def read_refusals(self, is_refusal: Callable[[str], bool]) -> None:
        """Mark the replies that decline in words, as *is_refusal* reads them, and the trial if its
        last one does.
        """
        if self.status is Status.ANSWERED and is_refusal(self.replies[-1]):
            self.status = Status.REFUSED
        if self.planned.script is not None:
            for turn, status in self.statuses.items():
                if status is Status.ANSWERED and is_refusal(self.replies[turn]):
                    self.statuses[turn] = Status.REFUSED


def _total(values: Iterable[float | None]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
