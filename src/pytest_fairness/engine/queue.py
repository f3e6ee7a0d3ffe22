"""The queue of trials to ask, and the workers that draw from it on the engine's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pytest_fairness.endpoints.protocol import Evidence
from pytest_fairness.engine.attempt import CANCELLED, USAGE_ABSURD
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.engine.lane import EngineContext, Lane
from pytest_fairness.errors import EndpointError, FairnessError, StoreError, UsageError
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.keys import content_key
from pytest_fairness.runs.records import Attempt, trial_record

#: Seconds: the pause after a first failure for which the server asks for none, doubled at each
#: further one; and the longest that a server may ask for with Retry-After.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
#: So many attempts in a row without a connection, and one trial's last among them, end the asking;
#: of an endpoint that was never reached those of the first trial do.
UNREACHED = 12


def interleaved(strata: Sequence[Hashable], seed: int) -> list[int]:
    """A random permutation of ``range(len(strata))`` in which the strata alternate, the same for
    the same seed.

    A provider's load, limits and model versions change over hours; in this order a change falls on
    all groups alike. Item *i* of the *n* in a stratum, shuffled, is put at (i + u) / n with u
    uniform in [0, 1): at every point of the order each stratum has had its share, give or take one.
    """
    generator = random.Random(seed)
    members: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index, stratum in enumerate(strata):
        members[stratum].append(index)
    placed: list[tuple[float, int]] = []
    for indices in members.values():
        generator.shuffle(indices)
        for rank, index in enumerate(indices):
            placed.append(((rank + generator.random()) / len(indices), index))
    return [index for _, index in sorted(placed)]


class Deal:
    """All trials of a session, *planned* in stages, dealt out to *whole* shards, of which this is
    number *part* (from 1).

    The shards differ by one trial at the most, over all and in each stage, arm and group. A trial
    is dealt by what it asks and nothing else (not by the test that wants it first, nor by the
    endpoint, whose address may differ between machines): tests that share a trial share it in its
    shard, and no two shards pay for it.
    """

    def __init__(self, planned: Iterable[Iterable[PlannedTrial]], part: int, whole: int) -> None:
        if not 1 <= part <= whole:
            raise UsageError(f"there is no shard {part} of {whole}")
        strata: dict[str, tuple[int, str]] = {}
        for stage, trials in enumerate(planned):
            for trial in trials:
                stratum = repr((trial.cell.arm or "", sorted(trial.cell.groups.items())))
                strata.setdefault(self._key(trial), (stage, stratum))
        ordered = sorted(strata, key=lambda key: (strata[key], key))
        self._part = part
        self._whole = whole
        self._shard = {key: place % whole + 1 for place, key in enumerate(ordered)}

    @staticmethod
    def _key(planned: PlannedTrial) -> str:
        """Return what *planned* asks, whichever endpoint it is asked of."""
        cell = planned.dealt_by or planned.cell
        return content_key({}, planned.parameters, cell, planned.repetition)

    def mine(self, planned: PlannedTrial) -> bool:
        """Return whether this shard asks *planned*. A trial that was not dealt falls to a shard by
        its key alone.
        """
        key = self._key(planned)
        return self._shard.get(key, int(key[:8], 16) % self._whole + 1) == self._part


class Queue:
    """The trials of one call of ``Engine.run`` that are not in the store. All methods run on the
    event loop.

    *missing* are these trials by their keys. ``finished`` holds the trials that this process asked;
    ``why``, if more is known than that the time was over, why a trial was left. ``ahead``: nobody
    waits for them yet, so that all others go first, and no progress is shown.
    """

    def __init__(
        self, missing: Mapping[str, PlannedTrial], context: EngineContext, *, ahead: bool = False
    ) -> None:
        self.ahead = ahead
        self.finished: dict[str, Trial] = {}
        self.why: dict[str, str] = {}
        self._missing = missing
        self._context = context
        self._store = context.store
        self._progress = None
        if not ahead:
            self._progress = context.progress
        # A few more than may be in flight: their money is reserved, on the disk, before a place is
        # free.
        self._workers_wanted = min(context.concurrency + 1 + context.concurrency // 8, len(missing))
        keys = list(missing)
        strata: list[Hashable] = []
        for trial in missing.values():
            strata.append((trial.cell.arm, *sorted(trial.cell.groups.items())))
        self._unclaimed: Iterator[str] = map(keys.__getitem__, interleaved(strata, context.seed))
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

    async def run(self) -> None:
        """Ask until every trial is finished, here or in another process. Raises the first error,
        once all that was in flight is logged, and gives up the claims of what was not asked.
        """
        if self._progress is not None:
            self._progress.begin(len(self._missing), self._context.endpoint.name)
        try:
            with self._first_error():
                await self._prepare()
            pause = 0.01
            looked = 0.0
            while not self._over():
                if self._is_untried():
                    await self._try_first()
                await self._let_work(self._workers_wanted)
                if not self._busy:
                    break
                # Other processes claimed these: they will be finished, or free where those die.
                await self._sleep(pause)
                pause = min(pause * 1.5, 0.25)
                if self._store.changed() or time.monotonic() - looked >= 1.0:
                    looked = time.monotonic()
                    self._unclaimed = iter(self._busy)
                    self._busy = []
        finally:
            with self._first_error():
                self._store.release(self._claimed - self.finished.keys())
            if self._progress is not None:
                self._progress.end()
        if self._error is not None:
            raise self._error

    def hurry(self) -> None:
        """Ask as one that is waited for from now on, and show its progress."""
        self.ahead = False
        if self._progress is None and self._context.progress is not None:
            self._progress = self._context.progress
            self._progress.begin(self.unfinished, self._context.endpoint.name)

    @property
    def unfinished(self) -> int:
        """Return how many of the trials are not finished."""
        return len(self._missing) - len(self.finished)

    def left(self, keys: Iterable[str]) -> set[str]:
        """Return those of *keys* that are of this queue and not finished. May be called from another
        thread.
        """
        return {key for key in keys if key in self._missing and key not in self.finished}

    async def _try_first(self) -> None:
        """Ask a first trial by itself: a wrong key, model or address ends the run after one
        request, not after one a place.
        """
        await self._let_work(1, alone=True)
        if self.finished:
            for lane in self._context.lanes.values():
                lane.tried = True

    def _is_untried(self) -> bool:
        """Return whether an endpoint that is not simulated has not ended a trial yet."""
        for lane in self._context.lanes.values():
            if not lane.tried and not lane.endpoint.simulated:
                return True
        return False

    async def _let_work(self, workers: int, *, alone: bool = False) -> None:
        """Have so many *workers* ask until nothing is left to be claimed; *alone*: one trial."""
        self._workers = [asyncio.create_task(self._work(alone=alone)) for _ in range(workers)]
        await asyncio.gather(*self._workers, return_exceptions=True)

    def stop(self, error: BaseException | None = None) -> None:
        """Send nothing more; what is in flight may end, and then :meth:`run` raises *error*."""
        self._error = self._error or error
        self._stopped.set()

    def cancel(self) -> None:
        """Send nothing more, and give up what is in flight: it is logged as unknown."""
        self.stop()
        for worker in self._workers:
            worker.cancel()

    async def _prepare(self) -> None:
        """Have every endpoint ready to send, unless a stop or the run's end comes first."""
        preparing = asyncio.gather(*(lane.prepare() for lane in self._context.lanes.values()))
        preparing.add_done_callback(_take_note)  # also where nobody waits for it any more
        stopped = asyncio.ensure_future(self._stopped.wait())
        await asyncio.wait(
            (preparing, stopped), timeout=self._context.left(), return_when=asyncio.FIRST_COMPLETED
        )
        stopped.cancel()
        if preparing.done():
            preparing.result()
        else:
            preparing.cancel()
            self._late = not self._stopped.is_set()

    async def _work(self, *, alone: bool = False) -> None:
        """Ask one trial after the other; *alone*, a single one."""
        while not self._stopped.is_set():
            with self._first_error():
                self._claim_more(alone=alone)
                if not self._ready or self._over():
                    return
                await self._converse(self._ready.popleft())
            if alone:
                return
            # An endpoint that never waits must not keep the loop from hearing of an interrupt.
            await asyncio.sleep(0)

    @contextlib.contextmanager
    def _first_error(self) -> Iterator[None]:
        """Stop the queue at an error of the block, and keep the first for its end."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised again by run()
            self.stop(error)
            if not isinstance(error, FairnessError) or isinstance(error, StoreError):
                self.cancel()  # nothing that still comes could be logged, or it cannot be known

    def _claim_more(self, *, alone: bool) -> None:
        """Claim until a trial is ready or nothing is left; *alone*, key by key."""
        while not self._ready:
            most = self._chunk
            if alone:
                most = 1
            keys = list(islice(self._unclaimed, most))
            if not keys:
                return
            now = time.monotonic()
            if not alone and now - self._last_claim < 0.25:
                # So fast that claiming would be most of the work.
                self._chunk = min(2 * self._chunk, 1024)
            self._last_claim = now
            self._claim(keys)

    def _claim(self, keys: Sequence[str]) -> None:
        """Claim *keys*. What is ours is ready, with what previous processes logged of it."""
        claimed = self._store.claim(keys, retry=self._context.retry)
        self._busy += claimed.busy
        for key, records in claimed.mine.items():
            planned = self._missing[key]
            parameters = planned.sent_parameters(self._context.endpoint)
            conversation = Conversation(key, planned, parameters, order=len(self._claimed))
            conversation.resume(records)
            self._claimed.add(key)
            self._ready.append(conversation)

    def _over(self) -> bool:
        """Return whether nothing more is to be sent: all is stopped, or the run's time is over."""
        self._late = self._late or self._context.left() == 0
        return self._late or self._stopped.is_set()

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but neither through a stop nor beyond the end of the run."""
        left = self._context.left()
        if left is not None:
            seconds = min(seconds, left)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()

    def _end(self, conversation: Conversation) -> None:
        """Log a trial that has come to its end."""
        context = self._context
        planned = conversation.planned
        is_refusal = self._context.is_refusal
        if is_refusal is not None:
            conversation.read_refusals(is_refusal)
        trial = conversation.to_trial(context.source)
        script = None
        if planned.script is not None:
            script = planned.script.identity()
        record = trial_record(
            trial,
            planned.cell,
            endpoint=context.endpoint.name,
            identity=context.own_lane.digest,
            messages=conversation.messages,
            parameters={"requested": planned.parameters, "sent": conversation.parameters},
            order=conversation.order,
            seed=context.seed,
            flags=conversation.flags,
            script=script,
        )
        self._store.append(record)
        self.finished[conversation.key] = trial
        if self._progress is not None:
            self._progress.advance(trial)

    async def _converse(self, conversation: Conversation) -> None:
        """Ask one trial to its end; or leave it where a stop or the deadline found it, to be
        resumed later.
        """
        self._take_up(conversation)
        while not conversation.over():
            lane = self._context.lane(conversation.endpoint)
            ending = await self._attempt(conversation, lane)
            if ending is None or not self._take_in(conversation, lane, ending):
                return
            if conversation.failures and not conversation.over():
                await self._after_failure(conversation, lane, ending)
            if CANCELLED in ending.flags:
                # Else nothing was spent, and it may be resumed another time.
                if conversation.over():
                    self._end(conversation)
                raise asyncio.CancelledError
        self._end(conversation)

    def _take_up(self, conversation: Conversation) -> None:
        """Take up a trial whose last request was lost. Raises EndpointError where it may still be
        answered in a batch.
        """
        again = self._context.retry.unknown
        if conversation.waiting is not None and not again:
            raise EndpointError(
                f"endpoint {self._context.endpoint.name!r}: trials of this run were sent in a "
                f"batch (tag {conversation.waiting.tag}), whose results are still to be had: put "
                "`batch: true` back into endpoints.yaml and resume"
            )
        if conversation.was_lost:
            conversation.lose(again=again)

    async def _attempt(self, conversation: Conversation, lane: Lane) -> Attempt | None:
        """Make an attempt, when there is money, room and time for it; return None where nothing is
        to be sent any more.
        """
        reserved = unused = lane.reservation(conversation)
        if reserved and not await self._await_room(reserved):
            return None
        number = ending = None
        try:
            number = await lane.pace.enter(ahead=self.ahead)
            tokens = await self._await_turn(conversation, lane)
            pause = lane.paused_until - time.monotonic()
            if pause > 0:
                await self._sleep(pause)
            if tokens is None or self._over():
                return None
            unused = 0
            ending = await lane.attempt(conversation, reserved)
        finally:
            lane.settle(unused, 0)
            if number is not None:
                throttled = ending is not None and ending.evidence is Evidence.THROTTLED
                lane.pace.leave(number, throttled=throttled)
        if ending.evidence is None:
            # What was paid for is on the disk before anything comes of it. Its place is another's
            # by now, whose record comes behind this one: after a kill no more are without an answer
            # than were in flight. A failure is heeded before anybody else leaves.
            await lane.written()
        if ending.evidence is Evidence.NOT_SENT:
            lane.unreached += 1
        else:
            lane.unreached = 0
        if lane.limiter is not None:
            lane.limiter.settle(tokens, ending.usage)
        return ending

    async def _await_turn(self, conversation: Conversation, lane: Lane) -> int | None:
        """Wait for a turn under the limits per minute; return the tokens that were taken for it,
        None where no turn comes.
        """
        if lane.limiter is None:
            return 0
        tokens = lane.limiter.estimate(conversation.messages, lane.parameters(conversation))
        async with lane.turns:  # one worker watches the schedule; the others wait behind it
            while not self._stopped.is_set() and (wait := await lane.limiter.take(tokens)) > 0:
                left = self._context.left()
                if left is not None and left <= wait:
                    self._late = True
                    return None
                await self._sleep(min(wait, 1.0))
        return tokens

    async def _await_room(self, amount: int) -> bool:
        """Reserve *amount*, waiting for calls in flight where it does not fit beside them; False if
        all is stopped first. Raises BudgetError where it cannot fit, or nothing was expected back
        for as long as a call of another process may take.
        """
        budget = self._context.budget
        if await budget.reserve(amount):
            return True
        async with self._reserving:  # one worker asks the account again; the others wait behind it
            since = time.monotonic()
            while not self._over():
                # Before the account is asked: what settles in between must be seen there.
                expected = self._expects_money()
                if await budget.reserve(amount):
                    return True
                if expected:
                    since = time.monotonic()
                elif time.monotonic() - since > self._context.attempt_timeout:
                    raise budget.blocked(amount)  # held by processes that never settle
                await self._sleep(0.02)
        return False

    def _expects_money(self) -> bool:
        """Return whether calls in flight here will give back what they do not use."""
        return self._context.budget.reserved > 0

    def _take_in(self, conversation: Conversation, lane: Lane, ending: Attempt) -> bool:
        """Count how an attempt ended; return False where that is not the trial's fault, which may
        be asked another day.
        """
        if ending.evidence is Evidence.AUTH:
            self.stop(
                EndpointError(
                    f"{ending.error}; nothing more is sent to this endpoint: mend its address, "
                    "key, quota or model name"
                )
            )
            return False
        if USAGE_ABSURD in ending.flags and not lane.tariff.free:
            self.stop(
                EndpointError(
                    f"endpoint {lane.endpoint.name!r} counts more tokens for one call than any "
                    f"model can take or write ({ending.usage}): nothing more is sent to it; look "
                    "at its bill, and mend or replace the server. What was paid for is kept in the "
                    "run's folder"
                )
            )
        if ending.evidence is None:
            conversation.failures = conversation.server_failures = 0
            return True
        conversation.failures += 1
        if ending.evidence is Evidence.SERVER:
            conversation.server_failures += 1
            if conversation.server_failures < lane.limits.server_error_attempts:
                conversation.status = conversation.error = None
        if conversation.failures >= self._context.max_attempts and not conversation.over():
            self._refuse_if_unreached(lane, ending)
            reason = str(ending.error)
            if conversation.failures > 1:
                reason += f" (after {conversation.failures} attempts)"
            conversation.give_up(Status.ERROR, reason)
        return True

    def _refuse_if_unreached(self, lane: Lane, ending: Attempt) -> None:
        """Raise EndpointError where no attempt reaches the endpoint: this trial has waited as long
        as any would, and the others would wait for the same.
        """
        most = self._context.max_attempts
        if lane.tried:
            most = UNREACHED
        if lane.unreached >= most:
            raise EndpointError(
                f"{ending.error}; {lane.unreached} attempts in a row got no connection, so nothing "
                "more is sent to this endpoint. What was asked before is kept: when it can be "
                "reached, continue with --fairness-resume last --fairness-retry-errors"
            )

    async def _after_failure(self, conversation: Conversation, lane: Lane, ending: Attempt) -> None:
        """Pause after an attempt that may be repeated, or give up where that would be too long."""
        pause = ending.retry_after
        left = self._context.left()
        if pause is None:
            pause = FIRST_PAUSE * 2 ** (conversation.failures - 1)
        if pause > LONGEST_PAUSE:
            why = f"asks for a pause of {pause:.0f} s; the longest allowed is {LONGEST_PAUSE:.0f} s"
            conversation.give_up(Status.ERROR, f"{ending.error} ({why})")
        elif left is not None and left <= pause:
            why = "the next attempt would come after the run's deadline"
            conversation.give_up(Status.ERROR, f"{ending.error} ({why})")
        else:
            if ending.evidence is Evidence.THROTTLED:
                # Whoever has to slow down speaks for all: the limit is the endpoint's, not the
                # trial's.
                lane.paused_until = max(lane.paused_until, time.monotonic() + pause)
            await self._sleep(pause)


def _take_note(future: asyncio.Future[Any]) -> None:
    """Read the error of *future*: asyncio prints those that nobody has read."""
    if not future.cancelled():
        future.exception()
