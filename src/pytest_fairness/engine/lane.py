"""The lanes of an engine, one an endpoint: its attempts, how many are in flight, its limits, and its pauses.

An attempt is logged before it leaves, has a deadline, is priced and logged with what came, and settles what was
reserved for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace

from pytest_fairness.endpoints.protocol import (
    AttemptError,
    Endpoint,
    Evidence,
    Request,
    limits_of,
)
from pytest_fairness.engine.attempt import CANCELLED, Tariff, cut_off, failed, replied
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.errors import StoreError
from pytest_fairness.model import JSON, MODEL_DIFFERS, UNPRICED, USAGE_INVALID
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.runs.money import Budget, dollars, worst_case
from pytest_fairness.runs.records import SIMULATED, Attempt, attempt_record, sent_record
from pytest_fairness.runs.store import RunStore


class Pace:
    """How many requests may be in flight: *most*, halved whenever the server asks to slow down, and one more for
    each round that it does not (additive increase, multiplicative decrease).

    All methods run on the event loop.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._width = float(most)
        self._places = asyncio.Semaphore(most)
        self._made = most  # places, free or taken
        self._begun = self._last_cut = 0

    @property
    def width(self) -> int:
        """How many may be in flight now."""
        return int(self._width)

    async def enter(self) -> int:
        """Wait until another may go: its number, to be given back to :meth:`leave`."""
        await self._places.acquire()
        self._begun += 1
        return self._begun

    def leave(self, number: int, *, throttled: bool) -> None:
        """Request *number* has ended. Of many that were throttled together, one halves the width."""
        if not throttled:
            self._width = min(float(self._most), self._width + 1 / self._width)
        elif number > self._last_cut:
            self._width = max(1.0, self._width / 2)
            self._last_cut = self._begun
        self._made -= 1
        while self._made < self.width:
            self._places.release()
            self._made += 1


class Lane:
    """One endpoint.

    *digest* is the hash of its identity. *own* is the lane of the engine's endpoint, where this one is asked because
    a step names it: its parameters are those of its own then, and the log says with each attempt who was asked.
    ``paused_until`` is on the monotonic clock, ``unreached`` how many attempts in a row got no connection.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        digest: str,
        store: RunStore,
        budget: Budget,
        *,
        timeout: float,
        concurrency: int,
        own: Lane | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.digest = digest
        self.tariff = Tariff(endpoint)
        self.limits = limits_of(endpoint)
        self.paused_until = 0.0
        self.unreached = 0
        self.pace = Pace(self.limits.concurrency or concurrency)
        self.limiter = store.limiter(digest, self.limits) if self.limits.by_the_minute else None
        if own is not None and own.digest == digest:
            self.pace, self.limiter = own.pace, own.limiter
        self._is_step = own is not None
        # One simulated step makes the trial simulated, whoever the other steps are.
        self._flags = (SIMULATED,) if self._is_step and endpoint.simulated else ()
        self._store = store
        self._budget = budget
        self._timeout = timeout
        self._prepared = False

    async def prepare(self) -> None:
        """Have the endpoint ready to send, once. Raises AttemptError."""
        prepare = getattr(self.endpoint, "prepare", None)
        if prepare is not None and not self._prepared:
            await prepare()
        self._prepared = True

    def parameters(self, conversation: Conversation) -> Mapping[str, JSON]:
        """What the next attempt is asked with."""
        return self.endpoint.default_parameters if self._is_step else conversation.parameters

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
        if self._is_step:
            record["endpoint"] = {"name": self.endpoint.name, "identity": self.digest}
        self._store.append(record)
        self.settle(reserved, cost or 0)
        conversation.apply(attempt)

    def settle(self, reserved: int, cost: int) -> None:
        if reserved or cost:
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
                return cut_off(error.__cause__ or error, f"within {limit:.3g} s", "deadline")
            if isinstance(error, asyncio.CancelledError):
                return cut_off(error, "before it was interrupted", CANCELLED)
            return failed(Evidence.SERVER, f"the endpoint raised {type(error).__name__}: {error}")
        return replied(reply)


def ran_out(deadline: asyncio.Timeout) -> bool:
    """Whether *deadline* ended its block, and nobody else wants the running task to end."""
    task = asyncio.current_task()
    return deadline.expired() and not (task is not None and task.cancelling())


class Lanes:
    """The lane *own* of the engine's endpoint, and one for each other system, made by *make* when it is first needed.

    A lane stands for an identity, whatever objects have it.
    """

    def __init__(self, own: Lane, make: Callable[[Endpoint, str], Lane]) -> None:
        self.own = own
        self._make = make
        self._by_identity: dict[str, Lane] = {}
        # With the endpoint itself: what is alive keeps its id.
        self._by_id: dict[int, tuple[Endpoint, Lane]] = {}

    def of(self, endpoint: Endpoint | None) -> Lane:
        """The lane of *endpoint*, which a step names; of None, the engine's own."""
        if endpoint is None:
            return self.own
        if id(endpoint) not in self._by_id:
            digest = identity_hash(endpoint.identity())
            lane = self._by_identity.get(digest) or self._make(endpoint, digest)
            self._by_id[id(endpoint)] = endpoint, self._by_identity.setdefault(digest, lane)
        return self._by_id[id(endpoint)][1]

    def __iter__(self) -> Iterator[Lane]:
        yield self.own
        yield from self._by_identity.values()
