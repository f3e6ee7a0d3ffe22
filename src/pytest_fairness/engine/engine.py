"""The engine: planned trials in, finished trials out, each asked once, all of it on disk before it
is used.

It runs an event loop in a thread of its own, so that asking neither needs nor disturbs the loop of
a test.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import KW_ONLY, dataclass
from operator import methodcaller
from types import FrameType
from typing import Any, Self, TypeVar

import msgspec

from pytest_fairness.endpoints.batch_api import batches_of
from pytest_fairness.endpoints.prices import price_table
from pytest_fairness.endpoints.protocol import Endpoint, takes_conversation, takes_structured_output
from pytest_fairness.engine.lane import EngineContext, Lane
from pytest_fairness.engine.progress import Watch
from pytest_fairness.engine.queue import Queue
from pytest_fairness.engine.scripts import staged
from pytest_fairness.errors import EndpointError, UsageError
from pytest_fairness.model import Status, Trial, to_json
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.records import trial_of

T = TypeVar("T")

_ENDPOINT_FACTS = (
    "name",
    "type",
    "simulated",
    "supports_system_prompt",
    "default_parameters",
    "price",
)
#: Seconds after which an interrupt is heeded at the latest.
_HEEDED = 0.1
#: Seconds that an endpoint has to close.
_CLOSING = 5.0


class EventLoop:
    """An event loop in a daemon thread, which cannot keep a process alive, until :meth:`close`."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        #: Have the loop call a function soon.
        self.call = self.loop.call_soon_threadsafe
        self._thread = threading.Thread(
            target=self._main, name="pytest-fairness-asking", daemon=True
        )
        self._thread.start()

    def _main(self) -> None:
        """Run the loop until it is stopped, and end what is left in it."""
        self.loop.run_forever()
        leftover = asyncio.all_tasks(self.loop)
        for task in leftover:
            task.cancel()
        if leftover:
            # A task that will not be cancelled must not hold up the end of the session.
            self.loop.run_until_complete(asyncio.wait(leftover, timeout=1.0))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Have the loop run *coroutine*; return the future of its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def close(self) -> None:
        """Cancel what is still running, and end the thread. May be called twice."""
        if not self.loop.is_closed():
            self.call(self.loop.stop)
            self._thread.join(timeout=5.0)


#: How trials end that nobody asks again.
SETTLED = (Status.ANSWERED, Status.REFUSED, Status.EMPTY, Status.MALFORMED)
_MOST_SETTLED = 20_000


@dataclass(eq=False, repr=False)
class Engine(EngineContext):
    """Asks one endpoint for trials, and shares them through *store*.

    *concurrency*: calls in flight at a time, unless the endpoint's ``limits`` have a number of
    their own.
    *seed* orders the trials. *max_cost*: US dollars for the whole run, of all engines and
    processes.
    *attempt_timeout*: seconds for one attempt, in total. *deadline*: seconds from the first call of
    :meth:`run`; what is not asked by then is NOT_RUN. *max_attempts*: at one turn, where an attempt
    cost nothing. *retry*: what of previous sessions is asked again. *is_refusal* marks replies in
    words as REFUSED.
    *grace*: seconds that calls in flight have left after an interrupt. *loop*: to share with other
    engines; the engine starts one of its own otherwise.

    Raises UsageError for numbers out of range, BudgetError for a cap that is no amount.
    """

    _: KW_ONLY
    grace: float = 5.0
    loop: EventLoop | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._identity = self.endpoint.identity()
        self._own_loop = self.loop is None
        self._mutex = threading.RLock()  # meanwhile() may ask ahead
        self._stopped: EndpointError | None = None
        self._introduced: set[str] = set()
        # The queues that are asking: those that are waited for, and those ahead of time.
        self._asking: dict[Queue, Future[None]] = {}
        # Trials of the store that cannot change any more: tests that share cells, and the looks of
        # a test, read the same ones again.
        self._settled: dict[str, tuple[Trial, str]] = {}

    def key_of(self, planned: PlannedTrial) -> str:
        """The content key under which *planned* is asked, logged and shared. Raises UsageError."""
        return planned.key(self.endpoint, self._identity)

    # ------------------------------------------------------------ run

    def run(
        self, planned: Sequence[PlannedTrial], *, meanwhile: Callable[[], None] | None = None
    ) -> list[Trial]:
        """Return the trials of *planned*, in its order: those in the store, and the others asked
        now. *meanwhile* is called again and again while they are asked, once the endpoint has
        answered, and before it returns.

        Blocks until all are finished and on the disk. Raises BudgetError where the cap leaves no
        room, EndpointError where the endpoint refuses us altogether, StoreError where the log
        cannot be written or read; what was paid for by then is kept, and a later call continues
        from it. An interrupt stops the asking at once.
        """
        with self._mutex:
            keys = list(map(self.key_of, planned))
            self.store.changed()
            finished, missing = self._recorded(keys, planned)
            if missing:
                finished |= self._ask(missing, meanwhile)
            if meanwhile is not None:
                meanwhile()
            self.store.log_uses(keys, planned, finished)
            self.store.flush()
            return [finished[key][0] for key in keys]

    def ask_ahead(self, planned: Sequence[PlannedTrial]) -> None:
        """Have *planned* trials, which a later :meth:`run` will want, asked in the places that
        others leave free, and return at once.

        Nothing is begun before the endpoint has answered, nor where trials are asked in batches or
        under limits per minute, which leave no place free. What becomes of the trials, errors among
        them, the run that wants them says.
        """
        with self._mutex:
            lane = self.own_lane
            slow = lane.limiter is not None or batches_of(self.endpoint) is not None
            if slow or not self.answers or self._stopped is not None or self.loop is None:
                return
            keys = list(map(self.key_of, planned))
            _, missing = self._recorded(keys, planned)
            _, absent = self._divided(missing)
            if absent:
                self._begin(Queue(absent, self, ahead=True), self.loop)

    @property
    def answers(self) -> bool:
        """Return whether the endpoint has ended a first trial."""
        return self.own_lane.tried

    @property
    def ahead(self) -> int:
        """Return how many trials are to be asked ahead of time."""
        return sum(queue.unfinished for queue in self._under_way() if queue.ahead)

    def _recorded(
        self, keys: Sequence[str], planned: Sequence[PlannedTrial]
    ) -> tuple[dict[str, tuple[Trial, str]], dict[str, PlannedTrial]]:
        """Return the trials of *planned* that are in the store, each with the identifier of the
        cell that its record has, and those that are to be asked.
        """
        finished: dict[str, tuple[Trial, str]] = {}
        missing: dict[str, PlannedTrial] = {}
        plan: dict[str, PlannedTrial] = {}
        for key, trial in zip(keys, planned, strict=True):
            plan.setdefault(key, trial)  # cells that share a trial: the first is on its record
        for key in plan.keys() & self._settled.keys():
            finished[key] = self._settled[key]
        absent = [key for key in plan if key not in finished]
        for key, record in zip(absent, self.store.records(absent), strict=True):
            if record is None or self.retry.wants(record):
                missing[key] = staged(plan[key], self.endpoint, self.is_refusal)
            else:
                finished[key] = self._kept(key, record)
        return finished, missing

    def _kept(self, key: str, record: Mapping[str, Any]) -> tuple[Trial, str]:
        """Return the trial of *record* and the identifier of its cell, held where it is settled."""
        recorded = _recorded(record)
        if recorded[0].status in SETTLED and len(self._settled) < _MOST_SETTLED:
            self._settled[key] = recorded
        return recorded

    def _lanes_of(self, missing: Mapping[str, PlannedTrial]) -> list[Lane]:
        """Return the lanes of all endpoints that *missing* trials ask, each once."""
        lanes: dict[Lane, None] = {}
        for trial in missing.values():
            endpoints: tuple[Endpoint | None, ...] = (None,)
            if trial.script is not None and trial.script.endpoints:
                endpoints = tuple(trial.script.endpoints)
            for endpoint in endpoints:
                lanes[self.lane(endpoint)] = None
        return list(lanes)

    def _ask(
        self, missing: Mapping[str, PlannedTrial], meanwhile: Callable[[], None] | None
    ) -> dict[str, tuple[Trial, str]]:
        """Return the trials of *missing*, each with the identifier of its record's cell."""
        if self._stopped is not None:
            raise EndpointError(str(self._stopped))
        lanes = self._lanes_of(missing)
        for lane in lanes:
            lane.check_price()
        others = [lane.endpoint.name for lane in lanes if lane is not self.own_lane]
        queues, absent = self._divided(missing)
        if absent:
            queues.append(self._make_queue(absent, others))
        if self.deadline is not None and self.until is None:
            self.until = time.monotonic() + self.deadline
        for lane in (self.own_lane, *lanes):
            self._introduce(lane)
        self._finish(queues, meanwhile)
        return self._collected(missing, queues)

    def _collected(
        self, missing: Mapping[str, PlannedTrial], queues: Sequence[Queue]
    ) -> dict[str, tuple[Trial, str]]:
        """Return what became of *missing*, which *queues* have asked: each trial with the
        identifier of its record's cell.
        """
        asked: dict[str, Trial] = {}
        why: dict[str, str] = {}
        for queue in queues:
            asked |= queue.finished
            why |= queue.why
        finished: dict[str, tuple[Trial, str]] = {}
        left: dict[str, PlannedTrial] = {}
        for key, planned in missing.items():
            if key in asked:
                finished[key] = (asked[key], planned.cell.id)
            else:
                left[key] = planned
        return finished | self._left(left, why)

    def _divided(
        self, missing: Mapping[str, PlannedTrial]
    ) -> tuple[list[Queue], dict[str, PlannedTrial]]:
        """Return the queues that ask some of *missing* already, ahead of time, and the trials that
        none of them asks.
        """
        queues = []
        absent = dict(missing)
        for queue in self._under_way():
            left = queue.left(absent)
            if left:
                queues.append(queue)
            for key in left:
                del absent[key]
        return queues, absent

    def _left(
        self, left: Mapping[str, PlannedTrial], why: Mapping[str, str]
    ) -> dict[str, tuple[Trial, str]]:
        """Return what became of the trials that no queue of ours finished: another process did, or
        they were not run, and *why*.
        """
        trials: dict[str, tuple[Trial, str]] = {}
        keys = list(left)
        for key, record in zip(keys, self.store.records(keys), strict=True):
            if record is not None:
                trials[key] = _recorded(record)
                continue
            # What the deadline left is not logged, so that another session may ask it.
            trial = Trial(
                key=key,
                repetition=left[key].repetition,
                status=Status.NOT_RUN,
                error=why.get(key, "the run's deadline passed before it was asked"),
                source=self.source,
            )
            trials[key] = (trial, left[key].cell.id)
        return trials

    def _make_queue(self, missing: Mapping[str, PlannedTrial], others: Sequence[str]) -> Queue:
        """Return the queue of *missing*, whose steps ask the systems *others*, too."""
        api = batches_of(self.endpoint)
        if api is None:
            return Queue(missing, self)
        whose = f"endpoint {self.endpoint.name!r} is asked in batches"
        mend = "take `batch:` out of endpoints.yaml"
        if others:
            raise UsageError(
                f"{whose}, and a step asks endpoint {others[0]!r}: one trial cannot do both; "
                f"{mend} for it"
            )
        from pytest_fairness.engine.batches import BatchQueue

        return BatchQueue(missing, self, api=api)

    def _under_way(self) -> list[Queue]:
        """Return the queues that are asking."""
        self._asking = {
            queue: future for queue, future in self._asking.items() if not future.done()
        }
        return list(self._asking)

    def _begin(self, queue: Queue, loop: EventLoop) -> Future[None]:
        """Have *loop* work *queue* off."""
        self._asking[queue] = loop.submit(queue.run())
        return self._asking[queue]

    def _finish(self, queues: Sequence[Queue], meanwhile: Callable[[], None] | None) -> None:
        """Have the event loop work *queues* off, and call *meanwhile* while it does. After an
        interrupt nothing more is sent; what is in flight ends if it is quick, else it is logged as
        unknown.
        """
        loop = self.loop = self.loop or EventLoop()
        try:
            with ended_as_by_ctrl_c():
                futures = []
                for queue in queues:
                    if queue in self._asking:
                        loop.call(queue.hurry)
                        futures.append(self._asking[queue])
                    else:
                        futures.append(self._begin(queue, loop))
                while meanwhile is not None and not all(future.done() for future in futures):
                    if self.answers:
                        meanwhile()
                    wait(futures, timeout=_HEEDED)
                _wait(futures)
                for future in futures:
                    future.result()
        except BaseException as error:
            if isinstance(error, EndpointError):
                self._stopped = error
            self._interrupt()
            self.store.flush()
            raise

    def _interrupt(self) -> None:
        """End all queues that are asking: nobody waits for them any more."""
        endings = (methodcaller("stop"), self.grace), (methodcaller("cancel"), 2.0)
        for ending, seconds in endings:
            queues = self._under_way()
            if not queues or self.loop is None:
                return
            for queue in queues:
                self.loop.call(ending, queue)
            # A second interrupt: no more patience.
            with contextlib.suppress(KeyboardInterrupt):
                _wait(list(self._asking.values()), seconds)
        for future in self._asking.values():
            future.cancel()

    def halt(self, why: str) -> None:
        """Send nothing more, now or later: calls in flight may end, and :meth:`run` raises
        EndpointError saying *why*.

        May be called from another thread while :meth:`run` blocks.
        """
        self._stopped = self._stopped or EndpointError(why)
        if self.loop is not None:
            for queue in list(self._asking):
                self.loop.call(queue.stop, self._stopped)

    def _introduce(self, lane: Lane) -> None:
        """Say in the log who is asked and how, before the first trial; it also shows that the log
        can be written.
        """
        endpoint = lane.endpoint
        if lane.digest in self._introduced:
            return
        prices = batch = None
        if not endpoint.simulated and endpoint.price is not None:
            prices = price_table().provenance()
        api = batches_of(endpoint)
        if api is not None:
            batch = msgspec.to_builtins(api.options)
        self.store.append(
            {
                "type": "engine",
                "identity": lane.digest,
                "endpoint": _facts_of(endpoint),
                "price_table": prices,
                "limits": to_json(lane.limits),
                "batch": batch,
                "retry": to_json(self.retry),
                "seed": self.seed,
                "concurrency": self.concurrency,
                "max_attempts": self.max_attempts,
                "attempt_timeout": self.attempt_timeout,
                "deadline": self.deadline,
            }
        )
        self.store.flush()
        self._introduced.add(lane.digest)

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """Close the endpoints and end the engine's thread. The store stays open. May be called
        twice.

        Raises EndpointError, or what the endpoint raises, where that does not close; the thread
        ends all the same.
        """
        with self._mutex:
            self._interrupt()
            loop = self.loop
            self.loop = None
            if loop is None:
                return
            endpoints = [lane.endpoint for lane in self.lanes.values()]
            closing = {loop.submit(endpoint.aclose()): endpoint.name for endpoint in endpoints}
            done, late = wait(closing, timeout=_CLOSING)
            if self._own_loop:
                loop.close()
            if late:
                why = f"did not close within {_CLOSING:g} s; its trials are on the disk"
                raise EndpointError(f"endpoint {closing[late.pop()]!r} {why}")
            for future in done:
                future.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _wait(futures: Sequence[Future[None]], seconds: float = math.inf) -> None:
    """Wait until all *futures* are done, at most *seconds*.

    The waits are short: once Polars is imported, as statsmodels does where it is installed, an
    interrupt does not end a wait for a lock, and is heeded after it.
    """
    until = time.monotonic() + seconds
    undone: Sequence[Future[None]] = futures
    while undone and time.monotonic() < until:
        undone = list(wait(undone, timeout=_HEEDED).not_done)


def _facts_of(endpoint: Endpoint) -> dict[str, Any]:
    """Return what the log says of *endpoint*."""
    facts = {"identity": to_json(endpoint.identity())}
    for name in _ENDPOINT_FACTS:
        facts[name] = to_json(getattr(endpoint, name))
    if takes_structured_output(endpoint):
        facts["supports_structured_output"] = True
    if not takes_conversation(endpoint):
        facts["supports_conversation"] = False
    return facts


def _recorded(record: Mapping[str, Any]) -> tuple[Trial, str]:
    """Return the trial of *record* and the identifier of its cell."""
    return trial_of(record), sys.intern(record["cell"]["id"])


# ----------------------------------------------------------- ways in which a process is made to end


@contextlib.contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Within the block SIGTERM and SIGHUP raise KeyboardInterrupt, where they would kill the
    process: what is in flight is then logged with its answer, not lost.

    Handlers that somebody else has set are left alone, and so is every thread but the main one.
    """

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    ours = _unhandled_signals()
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _unhandled_signals() -> list[int]:
    """Return the signals that would kill the process; none in a thread that may not handle them."""
    numbers: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        return numbers
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            numbers.append(number)
    return numbers


class ParentWatch(Watch):
    """Calls *leave*, again and again, once this process is no longer a child of process *parent*,
    or *ended* says so.

    Systems that never change a process's parent (Windows) show its end by *ended* alone.
    """

    def __init__(
        self,
        parent: int,
        leave: Callable[[], None],
        *,
        ended: Callable[[], bool] = lambda: False,
        every: float = 0.1,
    ) -> None:
        def look() -> None:
            if os.getppid() != parent or ended():
                with contextlib.suppress(RuntimeError):  # the loop of an engine that is closing
                    leave()

        super().__init__(look, every)
