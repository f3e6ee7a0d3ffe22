"""The context of an engine, and a lane for each endpoint that it asks: attempts, pace and limits.

An attempt is logged before it leaves, has a deadline, is priced and logged with what came, and
settles what was reserved for it.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass

from pytest_fairness.endpoints.protocol import AttemptError, Endpoint, Evidence, Request, limits_of
from pytest_fairness.endpoints.redaction import remember_environment, remember_new_variables
from pytest_fairness.engine.attempt import CANCELLED, Tariff, cut_off, cut_secrets, failed, replied
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.engine.progress import Progress
from pytest_fairness.errors import StoreError, UsageError
from pytest_fairness.model import JSON, MODEL_DIFFERS, UNPRICED, USAGE_INVALID
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.runs.money import dollars, worst_case
from pytest_fairness.runs.records import SIMULATED, Attempt, attempt_record, sent_record
from pytest_fairness.runs.store import NEVER, Retry, RunStore

#: Seconds between two requests, on average, where many could leave at once, and how many leave
#: together: more at once would wait for one another when their answers come, time after time.
_APART, _TOGETHER = 0.0015, 8


@dataclass(eq=False, repr=False)
class EngineContext:
    """Endpoint, limits and log of an engine: what its queues and lanes see of it.

    Times in seconds; ``until``, the end of the run, is on the monotonic clock. ``source`` is that
    of the trials, where no step is simulated. ``shards`` share the limits per minute. ``lanes``
    holds that of the engine's own *endpoint*, and one for each other identity.
    """

    endpoint: Endpoint
    store: RunStore
    _: KW_ONLY
    concurrency: int = 8
    seed: int = 0
    max_cost: float | None = None
    attempt_timeout: float = 120.0
    deadline: float | None = None
    max_attempts: int = 3
    retry: Retry = NEVER
    progress: Progress | None = None
    is_refusal: Callable[[str], bool] | None = None
    shards: int = 1

    def __post_init__(self) -> None:
        """Refuse numbers out of range; open the account and the lane of the endpoint."""
        for what in ("concurrency", "max_attempts"):
            number = getattr(self, what)
            if number < 1:
                raise UsageError(f"{what} must be 1 or more, not {number}")
        for what in ("attempt_timeout", "deadline"):
            seconds = getattr(self, what)
            if seconds is not None and not seconds > 0:
                raise UsageError(f"{what} must be more than 0 seconds, not {seconds}")
        endpoint = self.endpoint
        self.concurrency = limits_of(endpoint).concurrency or self.concurrency
        self.source = "live"
        if endpoint.simulated:
            self.source = SIMULATED
        elif endpoint.type == "replay":
            self.source = "replay"
        self.budget = self.store.budget(self.max_cost)
        self.until: float | None = None
        self.lanes: dict[str, Lane] = {}
        # With the endpoint itself: what is alive keeps its id.
        self._by_id: dict[int, tuple[Endpoint | None, Lane]] = {}
        self.own_lane: Lane = self.lane(None)

    def lane(self, endpoint: Endpoint | None) -> Lane:
        """The lane of *endpoint*, which a step names; of None, the engine's own."""
        if id(endpoint) not in self._by_id:
            digest = ""
            if endpoint is not None:
                digest = identity_hash(endpoint.identity())
            if digest not in self.lanes:
                self.lanes[digest] = Lane(endpoint, self)
            self._by_id[id(endpoint)] = endpoint, self.lanes[digest]
        return self._by_id[id(endpoint)][1]

    def left(self) -> float | None:
        """Seconds until the end of the run, None where it has none."""
        if self.until is None:
            return None
        return max(0.0, self.until - time.monotonic())


class Pace:
    """The number of requests that may be in flight: *most*, halved whenever the server asks to slow
    down, and one more for each round that it does not (additive increase, multiplicative decrease).

    All methods run on the event loop.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._width = float(most)
        self._free = most
        self._made = most  # places, free or taken
        # Who waits: those ahead of time behind all others, else in the order of their coming.
        self._waiting: list[tuple[bool, int, asyncio.Future[None]]] = []
        self._came = itertools.count()
        self._begun = self._last_cut = 0
        self._apart = self._next = 0.0

    @property
    def width(self) -> int:
        """The number of requests that may be in flight now."""
        return int(self._width)

    async def enter(self, *, ahead: bool = False) -> int:
        """Wait until another may go; return its number, to be given back to :meth:`leave`. Who asks
        *ahead* of time lets all others go first.
        """
        if self._free:
            self._free -= 1
        else:
            place = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (ahead, next(self._came), place))
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self._give_on()
                raise
        await self._keep_apart()
        self._begun += 1
        return self._begun

    async def _keep_apart(self) -> None:
        """Wait for the turn of a request that has its place: at once where none went just before."""
        now = asyncio.get_running_loop().time()
        turn = max(now, self._next)
        self._next = turn + self._apart
        if turn == now or not self._apart:
            return
        try:
            await asyncio.sleep(turn - turn % (_TOGETHER * self._apart) - now)
        except asyncio.CancelledError:
            self._give_on()
            raise

    def took(self, seconds: float) -> None:
        """Keep requests apart as suits those that take so many *seconds*: by half of what is between
        them where they are spread out.
        """
        self._apart = min(_APART, seconds / self._most / 2)

    def _give_on(self) -> None:
        """Give a place to the next who waits for it, or free it."""
        while self._waiting:
            _, _, place = heapq.heappop(self._waiting)
            if not place.done():
                place.set_result(None)
                return
        self._free += 1

    def leave(self, number: int, *, throttled: bool) -> None:
        """Count request *number* as ended. Of many that were throttled together, one halves the
        width.
        """
        if not throttled:
            self._width = min(float(self._most), self._width + 1 / self._width)
        elif number > self._last_cut:
            self._width = max(1.0, self._width / 2)
            self._last_cut = self._begun
        self._made -= 1
        while self._made < self.width:
            self._give_on()
            self._made += 1


class Lane:
    """Asks one endpoint: that of *context*, or *step*, which a step of its trials names.

    A step's parameters are those of its own endpoint, and the log says with each attempt who was
    asked. ``paused_until`` is on the monotonic clock, ``unreached`` how many attempts in a row got
    no connection, ``tried`` whether a first trial, asked by itself, has ended.
    """

    def __init__(self, step: Endpoint | None, context: EngineContext) -> None:
        self.endpoint = step or context.endpoint
        self.digest = identity_hash(self.endpoint.identity())
        self.tariff = Tariff(self.endpoint)
        self.limits = limits_of(self.endpoint).of_a_shard(context.shards)
        self.paused_until = 0.0
        self.unreached = 0
        self.tried = False
        self.pace = Pace(self.limits.concurrency or context.concurrency)
        self.limiter = None
        if self.limits.by_the_minute:
            self.limiter = context.store.limiter(self.digest, self.limits)
        if step is not None and context.own_lane.digest == self.digest:
            self.pace = context.own_lane.pace
            self.limiter = context.own_lane.limiter
        self.turns = asyncio.Lock()
        self._is_step = step is not None
        self._flags: tuple[str, ...] = ()
        # One simulated step makes the trial simulated, whoever the other steps are.
        if self._is_step and self.endpoint.simulated:
            self._flags = (SIMULATED,)
        self._context = context
        self._store = context.store
        self._prepared = False
        self._announces = getattr(self.endpoint, "announces_leaving", False)

    async def prepare(self) -> None:
        """Have the endpoint ready to send, once. Raises AttemptError."""
        if not self._prepared:
            remember_environment()  # the system under test can read it, and repeat it
        prepare = getattr(self.endpoint, "prepare", None)
        if prepare is not None and not self._prepared:
            await prepare()
        self._prepared = True

    def check_price(self) -> None:
        """Raise BudgetError where calls cost money, and nobody says how much."""
        if not self.endpoint.simulated:
            self._context.budget.check_price(self.endpoint.name, self.endpoint.price)

    def parameters(self, conversation: Conversation) -> Mapping[str, JSON]:
        """Return the parameters of the next attempt."""
        if self._is_step:
            return self.endpoint.default_parameters
        return conversation.planned.parameters_at(conversation.turn, conversation.parameters)

    def reservation(self, conversation: Conversation) -> int:
        """Return the cost of the next attempt at worst, in nano-dollars."""
        price = self.tariff.price
        if self.tariff.free or price is None:
            return 0
        return worst_case(price, conversation.messages, self.parameters(conversation))

    def request(
        self, conversation: Conversation, leaving: Callable[[], Awaitable[None]] | None = None
    ) -> Request:
        """Return the next request; *leaving* is for endpoints that announce when it leaves."""
        return Request(
            messages=conversation.messages,
            parameters=self.parameters(conversation),
            repetition=conversation.planned.repetition,
            key=conversation.key,
            signals=conversation.planned.cell.signals,
            leaving=leaving,
        )

    async def attempt(self, conversation: Conversation, reserved: int) -> Attempt:
        """Ask for the next turn, once; *reserved* is set aside for it.

        Returns when the attempt is logged, also when it is cancelled; :meth:`written` waits until
        it is on the disk. Raises StoreError, with the reservation standing where something may
        have been spent.
        """
        conversation.attempts += 1
        started = time.monotonic()
        unlogged: StoreError | None = None

        async def leaving() -> None:
            nonlocal unlogged
            try:
                self.announce(conversation, reserved)
                await self._store.written()
            except StoreError as error:
                unlogged = error  # the endpoint may make something else of it
                raise

        if self._announces:
            request = self.request(conversation, leaving)
        else:
            request = self.request(conversation)
            # Where it is simulated, nothing is paid for, and asking again gives the same.
            if not self.endpoint.simulated:
                await leaving()
        ending = await self._ask(request, self._limit())
        seconds = time.monotonic() - started
        if unlogged is not None:
            raise unlogged
        self.pace.took(seconds)
        self.conclude(conversation, ending, reserved, seconds)
        return ending

    async def written(self) -> None:
        """Return once the disk holds what was logged so far, where that may have been paid for.
        Raises StoreError.
        """
        if not self.endpoint.simulated:
            await self._store.written()

    def _limit(self) -> float:
        """Return the seconds that an attempt may take from now."""
        left = self._context.left()
        if left is None:
            return self._context.attempt_timeout
        return min(self._context.attempt_timeout, left)

    def announce(self, conversation: Conversation, reserved: int) -> None:
        """Log that a request is about to leave: found without an answer, it is not sent again."""
        record = sent_record(
            conversation.key, conversation.turn, conversation.attempts, conversation.order
        )
        if conversation.waiting is not None:
            record["batch"] = asdict(conversation.waiting)
        try:
            self._store.append(record)
        except StoreError:
            self.settle(reserved, 0)
            raise

    def conclude(
        self,
        conversation: Conversation,
        ending: Attempt,
        reserved: int,
        seconds: float | None = None,
    ) -> None:
        """Log how its attempt ended, settle what was reserved for it, and let the conversation
        know.

        Here each attempt becomes a record, so that here it loses what is secret.
        """
        remember_new_variables()
        cut_secrets(ending)
        differs = self.tariff.answered_by(ending.model)
        cost, credible = self.tariff.cost(ending, reserved)
        flags = {MODEL_DIFFERS: differs, USAGE_INVALID: not credible, UNPRICED: cost is None}
        raised = (flag for flag, holds in flags.items() if holds)
        ending.flags = (*self._flags, *ending.flags, *raised)
        ending.turn = conversation.turn
        ending.number = conversation.attempts
        ending.seconds = seconds
        ending.cost = None
        if cost is not None:
            ending.cost = dollars(cost)
        record = attempt_record(conversation.key, ending)
        if self._is_step:
            record["endpoint"] = {"name": self.endpoint.name, "identity": self.digest}
        self._store.append(record)
        self.settle(reserved, cost or 0)
        conversation.apply(ending)

    def settle(self, reserved: int, cost: int) -> None:
        """Give *reserved* back and charge *cost*, both in nano-dollars."""
        if reserved or cost:
            self._context.budget.settle(reserved, cost)

    async def _ask(self, request: Request, limit: float) -> Attempt:
        """Return how the request ended, which may take *limit* seconds."""
        deadline = asyncio.timeout(limit)
        try:
            async with deadline:
                reply = await self.endpoint.ask(request)
        except AttemptError as error:
            return failed(
                error.evidence, str(error), wire=error.wire, retry_after=error.retry_after
            )
        except BaseException as error:  # noqa: BLE001 - sys.exit() must not end the session
            # A CutOff comes through the deadline as it is, or (since Python 3.12) as the cause of a
            # TimeoutError.
            if ran_out(deadline) and isinstance(error, (TimeoutError, asyncio.CancelledError)):
                return cut_off(error.__cause__ or error, f"within {limit:.3g} s", "deadline")
            if isinstance(error, asyncio.CancelledError):
                return cut_off(error, "before it was interrupted", CANCELLED)
            return failed(Evidence.SERVER, f"the endpoint raised {type(error).__name__}: {error}")
        return replied(reply)


def ran_out(deadline: asyncio.Timeout) -> bool:
    """Return whether *deadline* ended its block, and nobody else wants the running task to end."""
    task = asyncio.current_task()
    return deadline.expired() and not (task is not None and task.cancelling())
