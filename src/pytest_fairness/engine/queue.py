"""What is to be asked, in which order, and the workers that draw from it on the engine's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.endpoints.protocol import Evidence
from pytest_fairness.engine.attempt import CANCELLED, USAGE_ABSURD
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.engine.lane import Lane, Lanes
from pytest_fairness.engine.progress import Progress
from pytest_fairness.errors import EndpointError, FairnessError, StoreError, UsageError
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.keys import content_key
from pytest_fairness.runs.money import Budget
from pytest_fairness.runs.records import Attempt, trial_record
from pytest_fairness.runs.store import Claimed, Retry, RunStore

#: Seconds: the pause after a first failure for which the server asks for none, doubled at each further one; and the
#: longest that a server may ask for with Retry-After.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
#: So many attempts in a row without a connection, and one trial's last among them, end the asking.
UNREACHED = 12


def interleaved(strata: Sequence[Hashable], seed: int) -> list[int]:
    """A random permutation of ``range(len(strata))`` in which the strata alternate, the same for the same seed.

    A provider's load, limits and model versions change over hours; in this order a change falls on all groups alike.
    Item *i* of the *n* in a stratum, shuffled, is put at (i + u) / n with u uniform in [0, 1): at every point of the
    order each stratum has had its share, give or take one.
    """
    generator = random.Random(seed)
    members: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index, stratum in enumerate(strata):
        members[stratum].append(index)
    placed: list[tuple[float, int]] = []
    for indices in members.values():
        generator.shuffle(indices)
        placed += [((rank + generator.random()) / len(indices), index) for rank, index in enumerate(indices)]
    return [index for _, index in sorted(placed)]


class Deal:
    """All trials of a session dealt out to *whole* shards, of which this is number *part* (from 1).

    The shards differ by one trial at the most, over all and in each arm and group. A trial is dealt by what it asks
    and nothing else (not by the test that wants it first, nor by the endpoint, whose address may differ between
    machines): tests that share a trial share it in its shard, and no two shards pay for it.
    """

    def __init__(self, planned: Iterable[PlannedTrial], part: int, whole: int) -> None:
        if not 1 <= part <= whole:
            raise UsageError(f"there is no shard {part} of {whole}")
        strata: dict[str, str] = {}
        for one in planned:
            strata.setdefault(self._key(one), repr((one.cell.arm or "", sorted(one.cell.groups.items()))))
        ordered = sorted(strata, key=lambda key: (strata[key], key))
        self.part, self.whole = part, whole
        self._shard = {key: place % whole + 1 for place, key in enumerate(ordered)}

    @staticmethod
    def _key(planned: PlannedTrial) -> str:
        return content_key({}, planned.parameters, planned.cell, planned.repetition)

    def mine(self, planned: PlannedTrial) -> bool:
        """Whether this shard asks *planned*. A trial that was not dealt falls to a shard by its key alone."""
        key = self._key(planned)
        return self._shard.get(key, int(key[:8], 16) % self.whole + 1) == self.part

    def __len__(self) -> int:
        """How many trials this shard asks."""
        return sum(shard == self.part for shard in self._shard.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineContext:
    """What an engine hands to its queues: whom to ask, how, and where it is logged.

    Times in seconds; ``until`` is on the monotonic clock. ``source`` is that of the trials, where no step is simulated.
    """

    lanes: Lanes
    store: RunStore
    budget: Budget
    progress: Progress | None
    is_refusal: Callable[[str], bool] | None
    source: str
    seed: int
    concurrency: int
    max_attempts: int
    retry: Retry
    attempt_timeout: float
    until: float | None = None


class Queue:
    """The trials of one call of ``Engine.run`` that are not in the store. All methods run on the event loop.

    *missing* are these trials by their keys; *of* names all trials of that call. ``finished`` holds the trials that
    this process asked; ``why``, if more is known than that the time was over, why one was left.
    """

    def __init__(self, missing: Mapping[str, PlannedTrial], context: EngineContext) -> None:
        self.finished: dict[str, Trial] = {}
        self.why: dict[str, str] = {}
        self._missing = missing
        self._context = context
        self._lanes, self._store, self._budget = context.lanes, context.store, context.budget
        self._progress = context.progress
        self._endpoint = context.lanes.own.endpoint
        # A few more than may be in flight: their money is reserved, on the disk, before a place is free.
        self._workers_wanted = min(context.concurrency + 1 + context.concurrency // 8, len(missing))
        keys = list(missing)
        strata = [(one.cell.arm, *sorted(one.cell.groups.items())) for one in missing.values()]
        self._unclaimed = deque(keys[index] for index in interleaved(strata, context.seed))
        self._ready: deque[Conversation] = deque()
        self._busy: list[str] = []
        self._claimed: set[str] = set()
        self._chunk = 2 * context.concurrency
        self._last_claim = 0.0
        self._late = False
        self._workers: list[asyncio.Task[None]] = []
        self._error: BaseException | None = None
        self._stopped = asyncio.Event()
        self._reserving = asyncio.Lock()
        self._turns: defaultdict[Lane, asyncio.Lock] = defaultdict(asyncio.Lock)

    # ------------------------------------------------------------ from outside

    async def run(self) -> None:
        """Ask until every trial is finished, here or in another process. Raises the first error, once all
        that was in flight is logged, and gives up the claims of what was not asked.
        """
        if self._progress is not None:
            self._progress.begin(len(self._missing), self._endpoint.name)
        try:
            with self._first_error():
                await self._prepare()
            while not self._over():
                self._workers = [asyncio.create_task(self._work()) for _ in range(self._workers_wanted)]
                await asyncio.gather(*self._workers, return_exceptions=True)
                if not self._busy:
                    break
                await self._await_others()
        finally:
            with self._first_error():
                self._store.release(list(self._claimed - self.finished.keys()))
            if self._progress is not None:
                self._progress.end()
        if self._error is not None:
            raise self._error

    def fail(self, error: FairnessError) -> None:
        """Send nothing more; what is in flight may end, and then *error* is raised by :meth:`run`."""
        self._error = self._error or error
        self.stop()

    def stop(self) -> None:
        """Send nothing more; what is in flight may end."""
        self._stopped.set()

    def cancel(self) -> None:
        """Send nothing more, and give up what is in flight: it is logged as unknown."""
        self.stop()
        for worker in self._workers:
            worker.cancel()

    # ------------------------------------------------------------ workers

    async def _prepare(self) -> None:
        """Have every endpoint ready to send, if neither a stop nor the end of the run comes first."""
        preparing = asyncio.gather(*(lane.prepare() for lane in self._lanes))
        stopped = asyncio.ensure_future(self._stopped.wait())
        until = self._context.until
        left = None if until is None else max(0.0, until - time.monotonic())
        await asyncio.wait((preparing, stopped), timeout=left, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if preparing.done():
            preparing.result()
        else:
            preparing.cancel()
            self._late = not self._stopped.is_set()

    async def _work(self) -> None:
        while not self._stopped.is_set():
            with self._first_error():
                conversation = self._next()
                if conversation is None:
                    return
                await self._converse(conversation)
            # An endpoint that never waits must not keep the loop from hearing of an interrupt.
            await asyncio.sleep(0)

    @contextlib.contextmanager
    def _first_error(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised again by run(), when the other workers have ended
            self._error = self._error or error
            if isinstance(error, FairnessError) and not isinstance(error, StoreError):
                self.stop()
            else:
                self.cancel()  # nothing that still comes could be logged, or it cannot be known

    def _next(self) -> Conversation | None:
        """The next trial to ask; None if there is none that is free now, or the run's time is over."""
        while not self._ready and self._unclaimed:
            now = time.monotonic()
            if now - self._last_claim < 0.25:
                self._chunk = min(2 * self._chunk, 1024)  # so fast that claiming would be most of the work
            self._last_claim = now
            self._claim(self._chunk)
        return None if not self._ready or self._over() else self._ready.popleft()

    def _claim(self, most: int) -> None:
        keys = [self._unclaimed.popleft() for _ in range(min(most, len(self._unclaimed)))]
        self._take(self._store.claim(keys, retry=self._context.retry))

    def _take(self, claimed: Claimed) -> None:
        self._busy += claimed.busy
        for key, records in claimed.mine.items():
            planned = self._missing[key]
            parameters = planned.sent_parameters(self._endpoint)
            conversation = Conversation(key, planned, parameters, order=len(self._claimed))
            self._claimed.add(key)
            conversation.resume(records)
            self._ready.append(conversation)

    async def _await_others(self) -> None:
        """Wait until the trials that other processes claimed are finished, or free because those are dead."""
        pause, looked = 0.01, time.monotonic()
        while self._busy and not self._ready and not self._over():
            await self._sleep(pause)
            pause = min(pause * 1.5, 0.25)
            if self._store.changed() or time.monotonic() - looked >= 1.0:
                looked = time.monotonic()
                waiting, self._busy = self._busy, []
                self._take(self._store.claim(waiting, retry=self._context.retry))

    def _over(self) -> bool:
        """Whether nothing more is to be sent: all is stopped, or the run's time is over."""
        self._late = self._late or not self._left(0.0)
        return self._late or self._stopped.is_set()

    def _left(self, seconds: float) -> bool:
        """Whether the run has more than so many *seconds* left."""
        return self._context.until is None or time.monotonic() + seconds < self._context.until

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but not through a stop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()

    def _end(self, conversation: Conversation) -> None:
        """Log a trial that has come to its end."""
        context, planned, is_refusal = self._context, conversation.planned, self._context.is_refusal
        if is_refusal and conversation.status is Status.ANSWERED and is_refusal(conversation.replies[-1]):
            conversation.status = Status.REFUSED
        trial = conversation.to_trial(context.source)
        record = trial_record(
            trial,
            planned.cell,
            endpoint=self._endpoint.name,
            identity=self._lanes.own.digest,
            messages=conversation.messages,
            parameters={"requested": planned.parameters, "sent": conversation.parameters},
            order=conversation.order,
            seed=context.seed,
            flags=conversation.flags,
            script=None if planned.script is None else planned.script.identity(),
        )
        self._store.append(record)
        self.finished[conversation.key] = trial
        if self._progress is not None:
            self._progress.advance(trial)

    # ------------------------------------------------------------ one trial

    async def _converse(self, conversation: Conversation) -> None:
        """Ask one trial to its end; or leave it where a stop or the deadline found it, to be resumed later."""
        again = self._context.retry.unknown
        if conversation.waiting is not None and not again:
            raise EndpointError(
                f"endpoint {self._endpoint.name!r}: trials of this run were sent in a batch (tag "
                f"{conversation.waiting.tag}), whose results are still to be had: put `batch: true` back into "
                "endpoints.yaml and resume"
            )
        if conversation.was_lost:
            conversation.lose(again=again)
        while not conversation.over():
            lane = self._lanes.of(conversation.endpoint)
            ending = await self._attempt(conversation, lane)
            if ending is None or not self._take_in(conversation, lane, ending):
                return
            if conversation.failures and not conversation.over():
                await self._after_failure(conversation, lane, ending)
            if CANCELLED in ending.flags:
                if conversation.over():  # else nothing was spent, and it may be resumed another time
                    self._end(conversation)
                raise asyncio.CancelledError
        self._end(conversation)

    async def _attempt(self, conversation: Conversation, lane: Lane) -> Attempt | None:
        """One attempt, when there is money, room and time for it; None where nothing is to be sent any more."""
        reserved = lane.reservation(conversation)
        if reserved and not await self._await_room(reserved):
            return None
        number = None
        begun = throttled = False
        try:
            number = await lane.pace.enter()
            tokens = await self._await_turn(conversation, lane)
            if (pause := lane.paused_until - time.monotonic()) > 0:
                await self._sleep(pause)
            if tokens is None or self._over():
                return None
            begun = True
            ending = await lane.attempt(conversation, reserved, self._context.until)
            throttled = ending.evidence is Evidence.THROTTLED
            lane.unreached = lane.unreached + 1 if ending.evidence is Evidence.NOT_SENT else 0
            if lane.limiter is not None:
                lane.limiter.settle(tokens, ending.usage)
            return ending
        finally:
            if not begun:
                lane.settle(reserved, 0)
            if number is not None:
                lane.pace.leave(number, throttled=throttled)

    async def _await_turn(self, conversation: Conversation, lane: Lane) -> int | None:
        """Wait for a turn under the limits per minute: the tokens that were taken for it, None where none comes."""
        if lane.limiter is None:
            return 0
        tokens = lane.limiter.estimate(conversation.messages, lane.parameters(conversation))
        async with self._turns[lane]:  # one worker watches the schedule; the others wait behind it
            while not self._stopped.is_set() and (wait := await lane.limiter.take(tokens)) > 0:
                if not self._left(wait):
                    self._late = True
                    return None
                await self._sleep(min(wait, 1.0))
        return tokens

    async def _await_room(self, amount: int) -> bool:
        """Reserve *amount*, waiting for calls in flight where it does not fit beside them; False if all is stopped
        first. Raises BudgetError where it cannot fit, or nothing was given back for as long as a call may take.
        """
        if await self._budget.reserve(amount):
            return True
        async with self._reserving:  # one worker asks the account again; the others wait behind it
            since: float | None = None
            while not self._over():
                if await self._budget.reserve(amount):
                    return True
                since = since if since and not self._budget.reserved else time.monotonic()
                if time.monotonic() - since > self._patience():
                    raise self._budget.blocked(amount)  # held by processes that never settle
                await self._sleep(0.02)
        return False

    def _patience(self) -> float:
        """Seconds after which reservations of other processes should have been settled."""
        return self._context.attempt_timeout

    def _take_in(self, conversation: Conversation, lane: Lane, ending: Attempt) -> bool:
        """Count how an attempt ended; False where that is not the trial's fault, which may be asked another day."""
        if ending.evidence is Evidence.AUTH:
            self.fail(
                EndpointError(
                    f"{ending.error}; nothing more is sent to this endpoint: mend its address, key, quota or model name"
                )
            )
            return False
        if USAGE_ABSURD in ending.flags and not lane.tariff.free:
            self.fail(
                EndpointError(
                    f"endpoint {lane.endpoint.name!r} counts more tokens for one call than any model can take or write "
                    f"({ending.usage}): nothing more is sent to it; look at its bill, and mend or replace the server. "
                    "What was paid for is kept in the run's folder"
                )
            )
        conversation.count(ending.evidence, lane.limits.server_error_attempts)
        failures = conversation.failures
        if failures and not conversation.over() and failures >= self._context.max_attempts:
            if lane.unreached >= UNREACHED:
                # This trial has waited as long as any would; the others would wait for the same.
                raise EndpointError(
                    f"{ending.error}; {lane.unreached} attempts in a row got no connection, so nothing more is sent to "
                    "this endpoint. What was asked before is kept: when it can be reached, continue with "
                    "--fairness-resume last --fairness-retry-errors"
                )
            conversation.give_up(f"{ending.error} (after {failures} attempts)" if failures > 1 else ending.error or "")
        return True

    async def _after_failure(self, conversation: Conversation, lane: Lane, ending: Attempt) -> None:
        """After an attempt that may be repeated: pause before the next, or give up where it would be too long."""
        wished = ending.retry_after
        pause = FIRST_PAUSE * 2 ** (conversation.failures - 1) if wished is None else wished
        if pause > LONGEST_PAUSE:
            conversation.give_up(
                f"{ending.error} (asks for a pause of {pause:.0f} s; the longest allowed is {LONGEST_PAUSE:.0f} s)"
            )
        elif not self._left(pause):
            conversation.give_up(f"{ending.error} (the next attempt would come after the run's deadline)")
        else:
            if ending.evidence is Evidence.THROTTLED:
                # Whoever has to slow down speaks for all: the limit is the endpoint's, not the trial's.
                lane.paused_until = max(lane.paused_until, time.monotonic() + pause)
            await self._sleep(pause)
