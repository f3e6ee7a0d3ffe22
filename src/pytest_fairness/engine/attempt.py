"""One attempt: set its cost aside, log that it leaves, ask under a deadline, log what came, settle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pytest_fairness.endpoints.protocol import (
    AttemptError,
    CutOff,
    Endpoint,
    Evidence,
    Price,
    Reply,
    Request,
    Wire,
    announces_leaving,
)
from pytest_fairness.engine.charges import USAGE_ABSURD, Tariff
from pytest_fairness.engine.conversation import FREE, Conversation, Waiting
from pytest_fairness.errors import StoreError
from pytest_fairness.model import JSON, MODEL_DIFFERS, UNPRICED, USAGE_INVALID, Status, Usage
from pytest_fairness.runs.money import Budget, absurd, dollars, used, worst_case
from pytest_fairness.runs.records import SIMULATED, Attempt, attempt_record, sent_record
from pytest_fairness.runs.store import RunStore

CANCELLED, PROVIDER_ERROR = "cancelled", "provider_error"
_LONGEST_COUNT = 1 << 62
_LONGEST_ERROR = 2000


@dataclass(slots=True, kw_only=True)
class Ended:
    """How an attempt ended: what goes into the :class:`~.records.Attempt`, and beside it the wire and the
    pause (in seconds) that the server wishes for. ``free``: it is not billed, whatever the evidence.
    """

    status: Status | None = None
    text: str | None = None
    finish_reason: str | None = None
    model: str | None = None
    usage: Usage | None = None
    evidence: Evidence | None = None
    error: str | None = None
    flags: tuple[str, ...] = ()
    wire: Wire | None = None
    retry_after: float | None = None
    cost: float | None = None
    free: bool = False

    @property
    def cancelled(self) -> bool:
        return CANCELLED in self.flags


@dataclass(slots=True)
class _Leaving:
    """Calls *announce* when a request leaves; keeps the error by which it could not be logged."""

    announce: Callable[[], None]
    error: StoreError | None = None

    def __call__(self) -> None:
        try:
            self.announce()
        except StoreError as error:
            self.error = error
            raise


class Asker:
    """Makes attempts at one endpoint. *budget* is None where calls are free or their price is unknown.

    *step*: the hash of the endpoint's identity, where it is asked because a step names it. Its parameters are those of
    its own then, and the log says with each attempt who was asked.
    """

    def __init__(
        self, endpoint: Endpoint, store: RunStore, budget: Budget | None, timeout: float, *, step: str | None = None
    ) -> None:
        self._step = step
        # One simulated step makes the trial simulated, whoever the other steps are.
        self._made_up = (SIMULATED,) if step is not None and endpoint.simulated else ()
        self._endpoint = endpoint
        self._store = store
        self._budget = budget
        self._timeout = timeout
        self._tariff = Tariff(endpoint)

    @property
    def free(self) -> bool:
        """Whether nothing that is asked costs anything."""
        return self._tariff.free

    def parameters(self, conversation: Conversation) -> Mapping[str, JSON]:
        """What the next attempt is asked with."""
        return conversation.parameters if self._step is None else self._endpoint.default_parameters

    def reservation(self, conversation: Conversation) -> int:
        """What the next attempt costs at worst, in nano-dollars."""
        price = self._tariff.price
        if self._tariff.free or price is None:
            return 0
        return worst_case(price, conversation.messages, self.parameters(conversation))

    async def attempt(self, conversation: Conversation, reserved: int, until: float | None) -> Ended:
        """Ask for the next turn, once; *reserved* was set aside for it, *until* is the end of the run
        (monotonic).

        Returns when the attempt is logged, also when it was cancelled (``Ended.cancelled``). Raises
        StoreError, with the reservation standing where something may have been spent.
        """
        number = conversation.attempts + 1
        request = self.request(conversation)
        started = time.monotonic()
        left = _Leaving(lambda: self.announce(conversation, number, reserved, time.monotonic()))
        if announces_leaving(self._endpoint):
            request = replace(request, leaving=left)
        elif not self._endpoint.simulated:  # nothing is paid for there, and asking again gives the same
            left()
        limit = self._timeout if until is None else min(self._timeout, max(0.0, until - started))
        ended = await self._ask(request, limit)
        if left.error is not None:  # the endpoint has made something else of it
            raise left.error
        self.conclude(conversation, number, ended, reserved, time.monotonic() - started)
        return ended

    def request(self, conversation: Conversation) -> Request:
        """What is asked next."""
        return Request(
            messages=conversation.messages,
            parameters=self.parameters(conversation),
            repetition=conversation.planned.repetition,
            key=conversation.key,
            signals=conversation.planned.cell.signals,
        )

    def conclude(
        self, conversation: Conversation, number: int, ended: Ended, reserved: int, seconds: float | None
    ) -> None:
        """Log how attempt *number* ended, settle what was reserved for it, and let the conversation know."""
        finished = time.monotonic()
        if self._tariff.answered_by(ended.model):
            ended.flags = (*ended.flags, MODEL_DIFFERS)
        cost, credible = self._cost(ended, reserved)
        attempt = Attempt(
            turn=conversation.turn,
            number=number,
            status=ended.status,
            text=ended.text,
            finish_reason=ended.finish_reason,
            model=ended.model,
            usage=ended.usage,
            cost=None if cost is None else dollars(cost),
            seconds=seconds,
            evidence=ended.evidence,
            error=ended.error,
            flags=(
                *self._made_up,
                *ended.flags,
                *(() if credible else (USAGE_INVALID,)),
                *((UNPRICED,) if cost is None else ()),
            ),
        )
        record = attempt_record(conversation.key, attempt, ended.wire, ended.retry_after, finished)
        if self._step is not None:
            record["endpoint"] = {"name": self._endpoint.name, "identity": self._step}
        self._store.append(record)
        self.settle(reserved, cost or 0)
        conversation.apply(attempt)

    def announce(
        self, conversation: Conversation, number: int, reserved: int, now: float, waiting: Waiting | None = None
    ) -> None:
        """Log that a request is about to leave: found without an answer, it is not sent again."""
        record = sent_record(conversation.key, conversation.turn, number, conversation.order, now)
        if waiting is not None:
            record["batch"] = {"tag": waiting.tag, "custom_id": waiting.custom_id, "reserved": waiting.reserved}
        try:
            self._store.append(record)
        except StoreError:
            self.settle(reserved, 0)
            raise

    def settle(self, reserved: int, cost: int) -> None:
        if self._budget is not None and (reserved or cost):
            self._budget.settle(reserved, cost)

    async def _ask(self, request: Request, limit: float) -> Ended:
        deadline = asyncio.timeout(limit)
        try:
            async with deadline:
                reply = await self._endpoint.ask(request)
        except AttemptError as error:
            return failed(error.evidence, str(error), wire=error.wire, retry_after=error.retry_after)
        except BaseException as error:  # noqa: BLE001 - an application that calls sys.exit() must not end the session
            # A CutOff comes through the deadline as it is, or (since Python 3.12) as the cause of a TimeoutError.
            late = deadline.expired() and not _interrupted()
            if late and isinstance(error, (TimeoutError, asyncio.CancelledError)):
                return _cut_off(error.__cause__ or error, f"within {limit:.3g} s", "deadline")
            if isinstance(error, asyncio.CancelledError):
                return _cut_off(error, "before it was interrupted", CANCELLED)
            return failed(Evidence.SERVER, f"the endpoint raised {type(error).__name__}: {error}")
        return replied(reply)

    def _cost(self, ended: Ended, reserved: int) -> tuple[int | None, bool]:
        """What the attempt costs, in nano-dollars (None: unknown), and whether its usage can be believed."""
        price = self._tariff.price
        if ended.free or ended.evidence in FREE or self._tariff.free:
            return 0, not absurd(ended.usage)
        told = None if ended.cost is None else _per_call(ended.cost)
        if price is None:
            return told, True
        if ended.status is None:
            return reserved, True
        if price.input_per_million == price.output_per_million == 0:
            counted: int | None = _per_call(price.per_call)  # tokens do not matter, whoever counts them
        else:
            counted = used(price, ended.usage, replied=bool(ended.text))
        if counted is None:
            return (reserved, False) if told is None else (told, True)
        return max(counted, told or 0), True  # of what was agreed and what was told, the dearer


def _per_call(amount: float) -> int:
    return worst_case(Price(input_per_million=0.0, output_per_million=0.0, per_call=amount), (), {})


def failed(
    evidence: Evidence,
    error: str,
    *,
    wire: Wire | None = None,
    retry_after: float | None = None,
    flags: tuple[str, ...] = (),
    free: bool = False,
) -> Ended:
    """The end of an attempt without an answer."""
    return Ended(
        evidence=evidence,
        error=error[:_LONGEST_ERROR],
        wire=wire,
        retry_after=_seconds(retry_after),
        flags=flags,
        free=free,
    )


def _interrupted() -> bool:
    """Whether somebody else than a deadline of its own wants the running task to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _cut_off(error: BaseException, when: str, flag: str) -> Ended:
    """What there was of an attempt that was given up: bytes that had come are kept, and were paid for."""
    evidence, wire = (error.evidence, error.wire) if isinstance(error, CutOff) else (Evidence.NO_RESPONSE, None)
    came = {
        Evidence.NOT_SENT: f"nothing could be sent {when}",
        Evidence.NO_RESPONSE: f"no answer {when} (the request was sent)",
    }
    text = came.get(evidence, f"the answer began, and did not end {when}")
    return failed(evidence, text, wire=wire, flags=(flag,))


def replied(reply: Reply) -> Ended:
    """The end of an attempt with a complete answer, of whatever kind."""
    status, text, error = reply.status, reply.text, reply.error
    if status is Status.ANSWERED and not isinstance(text, str):
        status, text, error = Status.MALFORMED, None, f"the reply is {type(text).__name__}, not text"
    return Ended(
        status=status,
        text=text,
        finish_reason=reply.finish_reason,
        model=reply.model,
        usage=_plain_usage(reply.usage),
        flags=(SIMULATED,) * reply.simulated
        + (USAGE_ABSURD,) * absurd(reply.usage)
        # An error that came as a success; one without a wire is what an application raised.
        + (PROVIDER_ERROR,) * (status is Status.ERROR and reply.wire is not None),
        error=error,
        wire=reply.wire,
        cost=reply.cost,
    )


def _plain_usage(usage: Usage | None) -> Usage | None:
    """*usage* with what no counter can show taken out, so that it can always be logged."""
    if usage is None:
        return None
    counts = (
        value if type(value) is int and abs(value) < _LONGEST_COUNT else None
        for value in (usage.input_tokens, usage.output_tokens)
    )
    return Usage(input_tokens=next(counts), output_tokens=next(counts))


def _seconds(value: float | None) -> float | None:
    """A pause that makes sense: a number, not negative, not NaN, not infinite."""
    if isinstance(value, (int, float)) and 0 <= value < float("inf"):
        return float(value)
    return None
