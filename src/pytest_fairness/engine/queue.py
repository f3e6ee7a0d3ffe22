"""Asking a batch of trials: workers that draw from a queue, on the engine's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pytest_fairness.endpoints.protocol import Evidence, limits_of
from pytest_fairness.engine.attempt import Ended
from pytest_fairness.engine.charges import USAGE_ABSURD
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.engine.lanes import Lane, Lanes
from pytest_fairness.engine.progress import ProgressSink
from pytest_fairness.errors import EndpointError, FairnessError, StoreError
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.money import Budget
from pytest_fairness.runs.store import Claimed, Retry, RunStore

LOST = (
    "the request was sent by a process that ended before it could log the answer: perhaps paid for, "
    "so not sent again; --fairness-retry-unknown asks again"
)
ABSURD = (
    "endpoint {endpoint!r} counts more tokens for one call than any model can take or write ({usage}): nothing more is "
    "sent to it; look at its bill, and mend or replace the server. What was paid for is kept in the run's folder"
)


UNREACHABLE = (
    "{error}; {attempts} attempts in a row got no connection, so nothing more is sent to this endpoint. What was asked "
    "before is kept: when it can be reached, go on with --fairness-resume --fairness-retry-errors"
)
#: So many attempts in a row without a connection, and one trial's last among them, end the asking.
UNREACHED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How an engine asks. Times in seconds; ``until`` is on the monotonic clock.

    ``longest_pause`` caps what a server may ask for with Retry-After, ``first_pause`` doubles at each failure
    for which it asked for nothing.
    """

    concurrency: int
    max_attempts: int
    retry: Retry
    attempt_timeout: float
    until: float | None = None
    longest_pause: float = 60.0
    first_pause: float = 0.5


class Batch:
    """The trials of one call of ``Engine.run`` that were not in the store. All methods run on the event loop.

    *keys* are in the order of asking; *begin* makes the conversation of a key when its turn comes, given its
    place among those that this process asks, and *finish* logs one that has ended.

    ``asked`` holds the trials that this process asked, ``late`` says that the deadline left some unasked; ``why``,
    if more is known, why a trial is among those.
    """

    def __init__(
        self,
        keys: Sequence[str],
        *,
        begin: Callable[[str, int], Conversation],
        lanes: Lanes,
        store: RunStore,
        budget: Budget | None,
        policy: Policy,
        finish: Callable[[Conversation], Trial],
        progress: ProgressSink | None,
        label: str,
        of: str = "",
    ) -> None:
        self.asked: dict[str, Trial] = {}
        self.late = False
        self.why: dict[str, str] = {}
        self._lanes = lanes
        self._store = store
        self._budget = budget
        self._policy = policy
        self._finish = finish
        self._progress = progress
        self._label = label
        self._of = of
        self._begin = begin
        self._planned = len(keys)
        self._taken = 0
        self._unclaimed = deque(keys)
        self._queue: deque[Conversation] = deque()
        self._busy: list[str] = []
        self._claimed: set[str] = set()
        self._chunk = 2 * policy.concurrency
        self._last_claim = 0.0
        self._workers: list[asyncio.Task[None]] = []
        self._error: BaseException | None = None
        self._stopped = asyncio.Event()
        self._reserving = asyncio.Lock()
        self._turns: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    # ------------------------------------------------------------ from outside

    async def run(self) -> None:
        """Ask until every trial is finished, here or in another process. Raises the first error, once all
        that was under way is logged, and gives up the claims of what was not asked.
        """
        if self._progress is not None:
            self._progress.begin(self._planned, self._label, self._of)
        try:
            while True:
                count = min(self._policy.concurrency, self._planned)
                self._workers = [asyncio.create_task(self._work()) for _ in range(count)]
                await asyncio.gather(*self._workers, return_exceptions=True)
                if self._stopped.is_set() or self.late or not self._busy:
                    break
                await self._await_others()
        finally:
            with self._first_error():
                self._store.release(list(self._claimed - self.asked.keys()))
            if self._progress is not None:
                self._progress.end()
        if self._error is not None:
            raise self._error

    def fail(self, error: FairnessError) -> None:
        """Send nothing more; what is under way may end, and then *error* is raised by :meth:`run`."""
        self._error = self._error or error
        self.stop()

    def stop(self) -> None:
        """Send nothing more; what is under way may end."""
        self._stopped.set()
        self._lanes.wake()

    def cancel(self) -> None:
        """Send nothing more, and give up what is under way: it is logged as unknown."""
        self.stop()
        for worker in self._workers:
            worker.cancel()

    # ------------------------------------------------------------ workers

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
        while not self._queue and self._unclaimed:
            now = time.monotonic()
            if now - self._last_claim < 0.25:
                self._chunk = min(2 * self._chunk, 1024)  # so fast that claiming would be most of the work
            self._last_claim = now
            keys = [self._unclaimed.popleft() for _ in range(min(self._chunk, len(self._unclaimed)))]
            self._take(self._store.claim(keys, retry=self._policy.retry))
        if not self._queue:
            return None
        if self._policy.until is not None and time.monotonic() >= self._policy.until:
            self.late = True
            return None
        return self._queue.popleft()

    def _take(self, claimed: Claimed) -> None:
        self._busy += claimed.busy
        for key, records in claimed.mine.items():
            self._claimed.add(key)
            conversation = self._begin(key, self._taken)
            self._taken += 1
            conversation.resume(records)
            self._queue.append(conversation)

    async def _await_others(self) -> None:
        """Wait until the trials that other processes claimed are finished, or free because those are dead."""
        pause, looked = 0.01, time.monotonic()
        while self._busy and not self._queue and not self._stopped.is_set():
            await self._sleep(pause)
            pause = min(pause * 1.5, 0.25)
            if self._policy.until is not None and time.monotonic() >= self._policy.until:
                self.late = True
                return
            if self._store.changed() or time.monotonic() - looked >= 1.0:
                looked = time.monotonic()
                waiting, self._busy = self._busy, []
                self._take(self._store.claim(waiting, retry=self._policy.retry))

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but not through a stop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()

    # ------------------------------------------------------------ one trial

    async def _converse(self, conversation: Conversation) -> None:
        """Ask one trial to its end; or leave it where a stop or the deadline found it, to be taken up
        later."""
        if conversation.waiting is not None and not self._policy.retry.unknown:
            raise EndpointError(
                f"endpoint {self._label!r}: trials of this run were sent in a batch (tag {conversation.waiting.tag}), "
                "whose results are still to be had: put `batch: true` back into endpoints.yaml and go on"
            )
        if conversation.was_lost and not self._policy.retry.unknown:
            conversation.lose(LOST)
        failures = failed = 0
        while not conversation.over():
            lane = self._lanes.of(conversation.endpoint)
            if (pause := lane.paused_until - time.monotonic()) > 0:
                await self._sleep(pause)
            ended = await self._attempt(conversation, lane)
            if ended is None:
                return
            evidence = ended.evidence
            if evidence is Evidence.AUTH:
                raise EndpointError(
                    f"{ended.error}; nothing more is sent to this endpoint: mend its address, key, quota or model name"
                )
            if USAGE_ABSURD in ended.flags and not lane.asker.free:
                self.fail(EndpointError(ABSURD.format(endpoint=lane.endpoint.name, usage=ended.usage)))
            failed += evidence is Evidence.SERVER
            if evidence is Evidence.SERVER and failed < limits_of(lane.endpoint).server_error_attempts:
                conversation.reopen()
            failures = failures + 1 if evidence is not None and not conversation.over() else 0
            if failures:
                await self._after_failure(conversation, lane, ended, failures)
            if ended.cancelled:
                if conversation.over():  # else nothing was spent, and it may be taken up another time
                    self._end(conversation)
                raise asyncio.CancelledError
        self._end(conversation)

    async def _attempt(self, conversation: Conversation, lane: Lane) -> Ended | None:
        """One attempt, when there is room, time and money for it; None where nothing is to be sent any more."""
        if not await self._prepared(lane):
            return None
        number = await lane.pace.enter(self._stopped)
        if number is None:
            return None
        throttled = False
        try:
            tokens = await self._await_turn(conversation, lane)
            reserved = None if tokens is None else await self._reserve(conversation, lane)
            if tokens is None or reserved is None:
                return None
            ended = await lane.asker.attempt(conversation, reserved, self._policy.until)
            throttled = ended.evidence is Evidence.THROTTLED
            lane.unreached = lane.unreached + 1 if ended.evidence is Evidence.NOT_SENT else 0
            if lane.limiter is not None:
                lane.limiter.settle(tokens, ended.usage)
            return ended
        finally:
            lane.pace.leave(number, throttled=throttled)

    async def _prepared(self, lane: Lane) -> bool:
        """Wait until the lane's endpoint is ready to send; False if a stop, or the end of the run, comes first."""
        ready = lane.preparing()
        if ready is None:
            return True
        if not ready.done():
            stopped = asyncio.ensure_future(self._stopped.wait())
            until = self._policy.until
            left = None if until is None else max(0.0, until - time.monotonic())
            try:
                await asyncio.wait((ready, stopped), timeout=left, return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopped.cancel()
            if not ready.done():
                self.late = self.late or not self._stopped.is_set()
                return False
        ready.result()
        return True

    async def _await_turn(self, conversation: Conversation, lane: Lane) -> int | None:
        """Wait for a turn under the limits per minute: the tokens that were taken for it, None where none comes."""
        limiter = lane.limiter
        if limiter is None:
            return 0
        tokens = limiter.estimate(conversation.messages, lane.asker.parameters(conversation))
        async with self._turns[id(lane)]:  # one worker watches the schedule; the others wait behind it
            while not self._stopped.is_set() and (wait := await limiter.take(tokens)) > 0:
                if self._policy.until is not None and time.monotonic() + wait >= self._policy.until:
                    self.late = True
                    return None
                await self._sleep(min(wait, 1.0))
        return None if self._stopped.is_set() else tokens

    def _end(self, conversation: Conversation) -> None:
        trial = self._finish(conversation)
        self.asked[conversation.key] = trial
        if self._progress is not None:
            self._progress.advance(trial)

    async def _reserve(self, conversation: Conversation, lane: Lane) -> int | None:
        """Set the next attempt's worst case aside, waiting for calls under way where it does not fit beside
        them.

        None if nothing is to be sent any more. Raises BudgetError where it cannot fit.
        """
        amount = lane.asker.reservation(conversation)
        if self._budget is not None and amount:
            if not await self._budget.reserve(amount):
                async with self._reserving:  # one worker asks the account again; the others wait behind it
                    since: float | None = None
                    while not await self._budget.reserve(amount):
                        since = since if since and not self._budget.reserved else time.monotonic()
                        if time.monotonic() - since > self._policy.attempt_timeout:
                            raise self._budget.blocked(amount)  # held by processes that never settle
                        await self._sleep(0.02)
                        if self._stopped.is_set():
                            return None
            if self._stopped.is_set():
                self._budget.settle(amount, 0)
        return None if self._stopped.is_set() else amount

    async def _after_failure(self, conversation: Conversation, lane: Lane, ended: Ended, failures: int) -> None:
        """After an attempt that cost nothing: pause before the next, or give up."""
        error, wished = ended.error or "", ended.retry_after
        pause = self._policy.first_pause * 2 ** (failures - 1) if wished is None else wished
        until = self._policy.until
        if failures >= self._policy.max_attempts and lane.unreached >= UNREACHED:
            # This trial has waited as long as any would; the others would wait for the same.
            raise EndpointError(UNREACHABLE.format(error=error, attempts=lane.unreached))
        if failures >= self._policy.max_attempts:
            conversation.give_up(f"{error} (after {failures} attempts)" if failures > 1 else error)
        elif pause > self._policy.longest_pause:
            longest = self._policy.longest_pause
            conversation.give_up(f"{error} (asks for a pause of {pause:.0f} s; the longest allowed is {longest:.0f} s)")
        elif until is not None and time.monotonic() + pause >= until:
            conversation.give_up(f"{error} (the next attempt would come after the run's deadline)")
        else:
            if ended.evidence is Evidence.THROTTLED:
                # Whoever is told to slow down speaks for all: the limit is the endpoint's, not the trial's.
                lane.paused_until = max(lane.paused_until, time.monotonic() + pause)
            await self._sleep(pause)


def not_run(conversation: Conversation, source: str, why: str | None = None) -> Trial:
    """The trial of what the run's deadline left unasked; it is not logged, so that another session may ask
    it."""
    conversation.status = Status.NOT_RUN
    conversation.error = why or "the run's deadline passed before it was asked"
    return conversation.to_trial(source)
