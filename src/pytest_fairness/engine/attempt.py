"""One attempt: log that it leaves, ask under a deadline, price and log what came, settle what was reserved."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, replace

from pytest_fairness.endpoints.prices import price_table
from pytest_fairness.endpoints.protocol import (
    AttemptError,
    CutOff,
    Endpoint,
    Evidence,
    Price,
    Reply,
    Request,
    Wire,
)
from pytest_fairness.engine.conversation import FREE, Conversation
from pytest_fairness.errors import StoreError
from pytest_fairness.model import JSON, MODEL_DIFFERS, UNPRICED, USAGE_INVALID, Status, Usage
from pytest_fairness.runs.money import Budget, absurd, dollars, used, worst_case
from pytest_fairness.runs.records import SIMULATED, Attempt, attempt_record, sent_record
from pytest_fairness.runs.store import RunStore

#: The flag of an attempt with token counts that no model reaches.
USAGE_ABSURD = "usage_absurd"
CANCELLED, PROVIDER_ERROR = "cancelled", "provider_error"
_LONGEST_COUNT = 1 << 62
_LONGEST_ERROR = 2000

_SNAPSHOT = re.compile(r"[-@:](?:latest|v?\d{3,8}(?:-\d{2}){0,2})")
_FREE = Price(input_per_million=0.0, output_per_million=0.0)


def same_model(requested: str, answered: str) -> bool:
    """Whether *answered* is *requested*, or a dated snapshot of it (``gpt-4o-mini-2024-07-18``, ``llama3:latest``).

    Providers' prefixes (``openai/``) and case do not matter.
    """
    one, two = (name.rpartition("/")[2].lower() for name in (requested, answered))
    one = one.removesuffix("-latest")
    return two == one or (two.startswith(one) and _SNAPSHOT.fullmatch(two[len(one) :]) is not None)


class Tariff:
    """The price of one endpoint's attempts: the dearer of that agreed on and that of whichever model answers.

    ``price`` is None where it is unknown; it never falls.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        model = endpoint.identity().get("model")
        # On Azure the name is that of a deployment, which says nothing of the model in it.
        self._model = model if isinstance(model, str) and endpoint.type != "azure" else None
        self._provider = self._model.partition("/")[0] if endpoint.type == "litellm" and self._model else endpoint.type
        self._differs: dict[str, bool] = {}
        self.free = endpoint.simulated or endpoint.price == _FREE
        self.price = self._agreed = endpoint.price

    def answered_by(self, model: str | None) -> bool:
        """Take note of who answered: whether that is another model than was asked for. From then on, its listed price
        counts if it is the dearer.
        """
        if model is None or self._model is None:
            return False
        if model not in self._differs:
            self._differs[model] = not same_model(self._model, model)
            # Snapshots have prices of their own in the list; a price that was agreed on covers them.
            by_list = self._agreed == self._listed(self._model)
            if self.price is not None and not self.free and (self._differs[model] or by_list):
                other = self._listed(model) or self.price
                self.price = Price(
                    input_per_million=max(self.price.input_per_million, other.input_per_million),
                    output_per_million=max(self.price.output_per_million, other.output_per_million),
                    per_call=max(self.price.per_call, other.per_call),
                )
        return self._differs[model]

    def _listed(self, model: str) -> Price | None:
        name = model.rpartition("/")[2]
        table = price_table()
        bare = next((known for known in table.prices.get(self._provider, {}) if same_model(known, name)), "")
        return table.find(self._provider, name) or table.find(self._provider, bare)

    def cost(self, ending: Attempt, reserved: int) -> tuple[int | None, bool]:
        """What an attempt costs, in nano-dollars (None: unknown), and whether its usage can be believed."""
        price = self.price
        if ending.free or ending.evidence in FREE or self.free:
            return 0, not absurd(ending.usage)
        stated = None if ending.cost is None else _per_call(ending.cost)
        if price is None:
            return stated, True
        if ending.status is None:
            return reserved, True
        if price.input_per_million == price.output_per_million == 0:
            counted: int | None = _per_call(price.per_call)  # tokens do not matter, whoever counts them
        else:
            counted = used(price, ending.usage, replied=bool(ending.text))
        if counted is None:
            return (reserved, False) if stated is None else (stated, True)
        return max(counted, stated or 0), True


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
) -> Attempt:
    """The end of an attempt without an answer."""
    sensible = isinstance(retry_after, (int, float)) and 0 <= retry_after < float("inf")
    return Attempt(
        evidence=evidence,
        error=error[:_LONGEST_ERROR],
        wire=wire,
        retry_after=retry_after if sensible else None,
        flags=flags,
        free=free,
    )


def replied(reply: Reply) -> Attempt:
    """The end of an attempt with a complete answer, of whatever kind."""
    status, text, error = reply.status, reply.text, reply.error
    if status is Status.ANSWERED and not isinstance(text, str):
        status, text, error = Status.MALFORMED, None, f"the reply is {type(text).__name__}, not text"
    flags = {
        SIMULATED: reply.simulated,
        USAGE_ABSURD: absurd(reply.usage),
        # An error that came as a success; one without a wire is what an application raised.
        PROVIDER_ERROR: status is Status.ERROR and reply.wire is not None,
    }
    return Attempt(
        status=status,
        text=text,
        finish_reason=reply.finish_reason,
        model=reply.model,
        usage=_loggable(reply.usage),
        flags=tuple(flag for flag, holds in flags.items() if holds),
        error=error,
        wire=reply.wire,
        cost=reply.cost,
    )


def _loggable(usage: Usage | None) -> Usage | None:
    """*usage* without what no counter can show."""
    if usage is None:
        return None
    given = (usage.input_tokens, usage.output_tokens)
    counts = (value if type(value) is int and abs(value) < _LONGEST_COUNT else None for value in given)
    return Usage(input_tokens=next(counts), output_tokens=next(counts))


class Asker:
    """Makes attempts at one endpoint.

    *step*: the hash of the endpoint's identity, where it is asked because a step names it. Its parameters are those of
    its own then, and the log says with each attempt who was asked.
    """

    def __init__(
        self, endpoint: Endpoint, store: RunStore, budget: Budget | None, timeout: float, *, step: str | None = None
    ) -> None:
        self.endpoint = endpoint
        self.tariff = Tariff(endpoint)
        self._step = step
        # One simulated step makes the trial simulated, whoever the other steps are.
        self._flags = (SIMULATED,) if step is not None and endpoint.simulated else ()
        self._store = store
        self._budget = budget
        self._timeout = timeout

    def parameters(self, conversation: Conversation) -> Mapping[str, JSON]:
        """What the next attempt is asked with."""
        return conversation.parameters if self._step is None else self.endpoint.default_parameters

    def reservation(self, conversation: Conversation) -> int:
        """What the next attempt costs at worst, in nano-dollars."""
        price = self.tariff.price
        if self.tariff.free or price is None:
            return 0
        return worst_case(price, conversation.messages, self.parameters(conversation))

    def request(self, conversation: Conversation) -> Request:
        """What is asked next."""
        return Request(
            messages=conversation.messages,
            parameters=self.parameters(conversation),
            repetition=conversation.planned.repetition,
            key=conversation.key,
            signals=conversation.planned.cell.signals,
        )

    async def attempt(self, conversation: Conversation, reserved: int, until: float | None) -> Attempt:
        """Ask for the next turn, once; *reserved* is set aside for it, *until* is the end of the run (monotonic).

        Returns when the attempt is logged, also when it is cancelled. Raises StoreError, with the reservation
        standing where something may have been spent.
        """
        number = conversation.attempts + 1
        request = self.request(conversation)
        started = time.monotonic()
        unlogged: StoreError | None = None

        async def leaving() -> None:
            nonlocal unlogged
            try:
                self.announce(conversation, number, reserved)
                await self._store.written()
            except StoreError as error:
                unlogged = error  # the endpoint may make something else of it
                raise

        if getattr(self.endpoint, "announces_leaving", False):
            request = replace(request, leaving=leaving)
        elif not self.endpoint.simulated:  # nothing is paid for there, and asking again gives the same
            await leaving()
        limit = self._timeout if until is None else min(self._timeout, max(0.0, until - started))
        ending = await self._ask(request, limit)
        if unlogged is not None:
            raise unlogged
        self.conclude(conversation, number, ending, reserved, time.monotonic() - started)
        if not self.endpoint.simulated:  # what was paid for is on the disk before anything comes of it
            await self._store.written()
        return ending

    def announce(self, conversation: Conversation, number: int, reserved: int) -> None:
        """Log that a request is about to leave: found without an answer, it is not sent again."""
        record = sent_record(conversation.key, conversation.turn, number, conversation.order)
        if conversation.waiting is not None:
            record["batch"] = asdict(conversation.waiting)
        try:
            self._store.append(record)
        except StoreError:
            self.settle(reserved, 0)
            raise

    def conclude(
        self, conversation: Conversation, number: int, ending: Attempt, reserved: int, seconds: float | None
    ) -> None:
        """Log how attempt *number* ended, settle what was reserved for it, and let the conversation know."""
        differs = self.tariff.answered_by(ending.model)
        cost, credible = self.tariff.cost(ending, reserved)
        flags = {MODEL_DIFFERS: differs, USAGE_INVALID: not credible, UNPRICED: cost is None}
        attempt = replace(
            ending,
            turn=conversation.turn,
            number=number,
            cost=None if cost is None else dollars(cost),
            seconds=seconds,
            flags=(*self._flags, *ending.flags, *(flag for flag, holds in flags.items() if holds)),
        )
        record = attempt_record(conversation.key, attempt)
        if self._step is not None:
            record["endpoint"] = {"name": self.endpoint.name, "identity": self._step}
        self._store.append(record)
        self.settle(reserved, cost or 0)
        conversation.apply(attempt)

    def settle(self, reserved: int, cost: int) -> None:
        if self._budget is not None and (reserved or cost):
            self._budget.settle(reserved, cost)

    async def _ask(self, request: Request, limit: float) -> Attempt:
        deadline = asyncio.timeout(limit)
        try:
            async with deadline:
                reply = await self.endpoint.ask(request)
        except AttemptError as error:
            return failed(error.evidence, str(error), wire=error.wire, retry_after=error.retry_after)
        except BaseException as error:  # noqa: BLE001 - an application that calls sys.exit() must not end the session
            # A CutOff comes through the deadline as it is, or (since Python 3.12) as the cause of a TimeoutError.
            if ran_out(deadline) and isinstance(error, (TimeoutError, asyncio.CancelledError)):
                return _cut_off(error.__cause__ or error, f"within {limit:.3g} s", "deadline")
            if isinstance(error, asyncio.CancelledError):
                return _cut_off(error, "before it was interrupted", CANCELLED)
            return failed(Evidence.SERVER, f"the endpoint raised {type(error).__name__}: {error}")
        return replied(reply)


def ran_out(deadline: asyncio.Timeout) -> bool:
    """Whether *deadline* ended its block, and nobody else wants the running task to end."""
    task = asyncio.current_task()
    return deadline.expired() and not (task is not None and task.cancelling())


def _cut_off(error: BaseException, when: str, flag: str) -> Attempt:
    """What there was of an attempt that was given up: bytes that had come are kept, and were paid for."""
    evidence, wire = (error.evidence, error.wire) if isinstance(error, CutOff) else (Evidence.NO_RESPONSE, None)
    texts = {
        Evidence.NOT_SENT: f"nothing could be sent {when}",
        Evidence.NO_RESPONSE: f"no answer {when} (the request was sent)",
    }
    text = texts.get(evidence, f"the answer began, and did not end {when}")
    return failed(evidence, text, wire=wire, flags=(flag,))
