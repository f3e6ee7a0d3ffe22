"""One attempt: set its cost aside, log that it leaves, ask under a deadline, log what came, settle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pytest_fairness.endpoints.protocol import AttemptError, Endpoint, Evidence, Price, Reply, Request, Wire
from pytest_fairness.errors import StoreError
from pytest_fairness.model import JSON, Status, Usage
from pytest_fairness.running.budget import Budget, dollars, used, worst_case
from pytest_fairness.running.conversation import FREE, Conversation
from pytest_fairness.running.records import Attempt, attempt_record, sent_record
from pytest_fairness.running.store import RunStore

_LONGEST_COUNT = 1 << 62
_LONGEST_ERROR = 2000


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended, with what is not part of the trial: the wire, and the server's wish for a
    pause."""

    attempt: Attempt
    wire: Wire | None = None
    retry_after: float | None = None
    cancelled: bool = False


class Asker:
    """Makes attempts at one endpoint. *budget* is None where calls are free or their price is unknown."""

    def __init__(self, endpoint: Endpoint, store: RunStore, budget: Budget | None, timeout: float) -> None:
        self._endpoint = endpoint
        self._store = store
        self._budget = budget
        self._timeout = timeout
        self._free = endpoint.simulated or endpoint.price == Price(input_per_million=0, output_per_million=0)

    def reservation(self, conversation: Conversation) -> int:
        """What the next attempt costs at worst, in nano-dollars."""
        price = self._endpoint.price
        if self._free or price is None:
            return 0
        return worst_case(price, conversation.messages, conversation.parameters)

    async def attempt(self, conversation: Conversation, reserved: int, until: float | None) -> Ended:
        """Ask for the next turn, once; *reserved* was set aside for it, *until* is the end of the run
        (monotonic).

        Returns when the attempt is logged, also when it was cancelled (``Ended.cancelled``). Raises
        StoreError, with the reservation standing where something may have been spent.
        """
        number = conversation.attempts + 1
        request = Request(
            messages=conversation.messages,
            parameters=conversation.parameters,
            repetition=conversation.planned.repetition,
            key=conversation.key,
            signals=conversation.planned.cell.signals,
        )
        started = time.monotonic()
        try:
            self._store.append(
                sent_record(conversation.key, conversation.turn, number, conversation.order, started)
            )
        except StoreError:
            self.settle(reserved, 0)
            raise
        limit = self._timeout if until is None else min(self._timeout, max(0.0, until - started))
        ended = await self._ask(request, conversation.turn, number, limit)
        finished = time.monotonic()
        ended, cost = self._priced(
            replace(ended, attempt=replace(ended.attempt, seconds=finished - started)), reserved
        )
        self._store.append(
            attempt_record(conversation.key, ended.attempt, ended.wire, ended.retry_after, finished)
        )
        self.settle(reserved, cost)
        conversation.apply(ended.attempt)
        return ended

    def settle(self, reserved: int, cost: int) -> None:
        if self._budget is not None and (reserved or cost):
            self._budget.settle(reserved, cost)

    async def _ask(self, request: Request, turn: int, number: int, limit: float) -> Ended:
        def failed(evidence: Evidence, error: str, *flags: str) -> Attempt:
            return Attempt(
                turn=turn, number=number, evidence=evidence, error=error[:_LONGEST_ERROR], flags=flags
            )

        deadline = asyncio.timeout(limit)
        try:
            async with deadline:
                reply = await self._endpoint.ask(request)
        except AttemptError as error:
            return Ended(failed(error.evidence, str(error)), error.wire, _seconds(error.retry_after))
        except asyncio.CancelledError:
            text = "interrupted after the request was sent"
            return Ended(failed(Evidence.NO_RESPONSE, text, "cancelled"), cancelled=True)
        except TimeoutError as error:
            if deadline.expired():
                text = f"no answer within {limit:.3g} s of the request being sent"
                return Ended(failed(Evidence.NO_RESPONSE, text, "deadline"))
            return Ended(failed(Evidence.SERVER, f"the endpoint raised {type(error).__name__}: {error}"))
        except BaseException as error:  # noqa: BLE001 - an application that calls sys.exit() must not end the session
            return Ended(failed(Evidence.SERVER, f"the endpoint raised {type(error).__name__}: {error}"))
        return Ended(_replied(reply, turn, number), reply.wire)

    def _priced(self, ended: Ended, reserved: int) -> tuple[Ended, int]:
        """*ended* with its cost, and that cost in nano-dollars."""
        price, attempt = self._endpoint.price, ended.attempt
        if attempt.evidence in FREE or self._free:
            return replace(ended, attempt=replace(attempt, cost=0.0)), 0
        if price is None:
            return ended, 0
        cost, flags = reserved, attempt.flags
        if attempt.status is not None:
            counted = used(price, attempt.usage, replied=bool(attempt.text))
            if counted is None:
                flags = (*flags, "usage_invalid")
            else:
                cost = counted
        return replace(ended, attempt=replace(attempt, cost=dollars(cost), flags=flags)), cost


def _replied(reply: Reply, turn: int, number: int) -> Attempt:
    status, text, error = reply.status, reply.text, reply.error
    if status is Status.ANSWERED and not isinstance(text, str):
        status, text, error = Status.MALFORMED, None, f"the reply is {type(text).__name__}, not text"
    return Attempt(
        turn=turn,
        number=number,
        status=status,
        text=text,
        finish_reason=reply.finish_reason,
        model=reply.model,
        usage=_plain_usage(reply.usage),
        error=error,
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


def sent_parameters(endpoint: Endpoint, asked: Mapping[str, JSON]) -> dict[str, JSON]:
    """The test's parameters over the endpoint's defaults."""
    return {**endpoint.default_parameters, **asked}
