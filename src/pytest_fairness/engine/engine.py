"""The engine: planned trials in, finished trials out, each asked once, all of it on disk before it is used.

It runs an event loop in a thread of its own, so that asking neither needs nor disturbs the loop of a test.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from types import FrameType
from typing import Any, Self, TypeVar

import msgspec

from pytest_fairness.endpoints.batch_api import batches_of
from pytest_fairness.endpoints.prices import provenance
from pytest_fairness.endpoints.protocol import Endpoint, limits_of
from pytest_fairness.engine.lane import Lane, Lanes
from pytest_fairness.engine.progress import Progress, Watch
from pytest_fairness.engine.queue import EngineContext, Queue
from pytest_fairness.engine.scripts import staged
from pytest_fairness.errors import EndpointError, UsageError
from pytest_fairness.model import Status, Trial, to_json
from pytest_fairness.runs.database import Database
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.runs.records import SIMULATED, trial_of
from pytest_fairness.runs.store import NEVER, Retry, RunStore

T = TypeVar("T")

#: Seconds that an endpoint has to close.
_CLOSING = 5.0


class EventLoop:
    """An event loop in a daemon thread, which cannot keep a process alive, until :meth:`close`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, name="pytest-fairness-asking", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            leftover = asyncio.all_tasks(self._loop)
            for task in leftover:
                task.cancel()
            if leftover:
                # A task that will not be cancelled must not hold up the end of the session.
                self._loop.run_until_complete(asyncio.wait(leftover, timeout=1.0))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def call(self, function: Any, *arguments: Any) -> None:
        """Have the loop call *function* soon."""
        self._loop.call_soon_threadsafe(function, *arguments)

    def close(self) -> None:
        """Cancel what is still running, and end the thread. May be called twice."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=5.0)


class Engine:
    """Asks one endpoint for trials, and shares them through *store*.

    *concurrency*: calls in flight at a time, unless the endpoint's ``limits`` have a number of their own.
    *seed* orders the trials. *max_cost*: US dollars for the whole run, of all engines and processes.
    *attempt_timeout*: seconds for one attempt, in total. *deadline*: seconds from the first call of
    :meth:`run`; what is not asked by then is NOT_RUN. *max_attempts*: at one turn, where an attempt cost
    nothing. *retry*: what of earlier sessions is asked again. *is_refusal* marks replies in words as REFUSED.
    *grace*: seconds that calls in flight have left after an interrupt. *loop*: to share with other engines; the
    engine starts one of its own otherwise.

    Raises UsageError for numbers out of range, BudgetError for a cap that is no amount.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        store: RunStore,
        *,
        concurrency: int = 8,
        seed: int = 0,
        max_cost: float | None = None,
        attempt_timeout: float = 120.0,
        deadline: float | None = None,
        max_attempts: int = 3,
        retry: Retry = NEVER,
        progress: Progress | None = None,
        is_refusal: Callable[[str], bool] | None = None,
        grace: float = 5.0,
        loop: EventLoop | None = None,
    ) -> None:
        for what, value in (("concurrency", concurrency), ("max_attempts", max_attempts)):
            if value < 1:
                raise UsageError(f"{what} must be 1 or more, not {value}")
        for what, seconds in (("attempt_timeout", attempt_timeout), ("deadline", deadline)):
            if seconds is not None and not seconds > 0:
                raise UsageError(f"{what} must be more than 0 seconds, not {seconds}")
        self.endpoint = endpoint
        self.store = store
        self._identity = endpoint.identity()
        concurrency = limits_of(endpoint).concurrency or concurrency
        budget = store.budget(max_cost)

        def lane(endpoint: Endpoint, digest: str, own: Lane | None = None) -> Lane:
            return Lane(endpoint, digest, store, budget, timeout=attempt_timeout, concurrency=concurrency, own=own)

        own = lane(endpoint, identity_hash(self._identity))
        self._context = EngineContext(
            lanes=Lanes(own, lambda other, digest: lane(other, digest, own)),
            store=store,
            budget=budget,
            progress=progress,
            is_refusal=is_refusal,
            source=SIMULATED if endpoint.simulated else "replay" if endpoint.type == "replay" else "live",
            seed=seed,
            concurrency=concurrency,
            max_attempts=max_attempts,
            retry=retry,
            attempt_timeout=attempt_timeout,
        )
        self._deadline = deadline
        self._grace = grace
        self._own_loop = loop is None
        self._loop = loop
        self._mutex = threading.Lock()
        self._stopped: EndpointError | None = None
        self._introduced: set[str] = set()
        self._queue: Queue | None = None
        self._used: set[tuple[str, str]] = set()

    def key_of(self, planned: PlannedTrial) -> str:
        """The content key under which *planned* is asked, logged and shared. Raises UsageError."""
        return planned.key(self.endpoint, self._identity)

    # ------------------------------------------------------------ run

    def run(self, planned: Sequence[PlannedTrial]) -> list[Trial]:
        """The trials of *planned*, in its order: those in the store, and the others asked now.

        Blocks until all are finished and on the disk. Raises BudgetError where the cap leaves no room,
        EndpointError where the endpoint refuses us altogether, StoreError where the log cannot be written or
        read; what was paid for by then is kept, and a later call continues from it. An interrupt stops the
        asking at once.
        """
        with self._mutex:
            keys = [self.key_of(one) for one in planned]
            self.store.changed()
            found: dict[str, tuple[Trial, str]] = {}
            missing: dict[str, PlannedTrial] = {}
            for key, one, record in zip(keys, planned, self.store.records(keys), strict=True):
                if key not in found and key not in missing:
                    if record is None or self._context.retry.wants(record):
                        missing[key] = staged(one, self.endpoint, self._context.is_refusal)
                    else:
                        found[key] = _recorded(record)
            if missing:
                found |= self._ask(missing)
            self._log_uses(keys, planned, found)
            self.store.flush()
            return [found[key][0] for key in keys]

    def _ask(self, missing: dict[str, PlannedTrial]) -> dict[str, tuple[Trial, str]]:
        """The trials of *missing*, each with the identifier of the cell that its record has."""
        if self._stopped is not None:
            raise EndpointError(str(self._stopped))
        lanes = self._lanes_of(missing)
        for lane in lanes:
            if not lane.endpoint.simulated:
                self._context.budget.check_price(lane.endpoint.name, lane.endpoint.price)
        if self._deadline is not None and self._context.until is None:
            self._context = replace(self._context, until=time.monotonic() + self._deadline)
        for lane in dict.fromkeys((self._context.lanes.own, *lanes)):
            self._introduce(lane)
        queue = self._queue = self._make_queue(missing)
        self._finish(queue)
        found = {key: (trial, missing[key].cell.id) for key, trial in queue.finished.items()}
        others = [key for key in missing if key not in found]
        for key, record in zip(others, self.store.records(others), strict=True):
            if record is not None:
                found[key] = _recorded(record)
                continue
            # What the deadline left is not logged, so that another session may ask it.
            why = queue.why.get(key, "the run's deadline passed before it was asked")
            repetition, source = missing[key].repetition, self._context.source
            left = Trial(key=key, repetition=repetition, status=Status.NOT_RUN, error=why, source=source)
            found[key] = left, missing[key].cell.id
        return found

    def _lanes_of(self, missing: Mapping[str, PlannedTrial]) -> list[Lane]:
        """The lanes of all systems that *missing* ask. Raises UsageError where one of them cannot be asked."""
        scripts = (one.script for one in missing.values())
        endpoints = (endpoint for script in scripts for endpoint in (script and script.endpoints) or (None,))
        lanes = list(dict.fromkeys(map(self._context.lanes.of, endpoints)))
        others = [lane.endpoint.name for lane in lanes if lane is not self._context.lanes.own]
        if others and batches_of(self.endpoint) is not None:
            raise UsageError(
                f"endpoint {self.endpoint.name!r} is asked in batches, and a step asks endpoint {others[0]!r}: one "
                "trial cannot do both; take `batch:` out of endpoints.yaml for it"
            )
        return lanes

    def _make_queue(self, missing: Mapping[str, PlannedTrial]) -> Queue:
        api = batches_of(self.endpoint)
        if api is None:
            return Queue(missing, self._context)
        if not isinstance(self.store.database, Database):
            raise UsageError(
                f"endpoint {self.endpoint.name!r} is asked in batches, which a worker on another machine cannot do: "
                "run without -n or --tx, or take `batch:` out of endpoints.yaml"
            )
        from pytest_fairness.engine.batches import BatchQueue

        return BatchQueue(missing, self._context, api=api)

    def _finish(self, queue: Queue) -> None:
        """Have the event loop work *queue* off."""
        loop = self._loop = self._loop or EventLoop()
        future: Future[None] | None = None
        try:
            with ended_as_by_ctrl_c():
                future = loop.submit(queue.run())
                future.result()
        except BaseException as error:
            if isinstance(error, EndpointError):
                self._stopped = error
            elif future is not None and not future.done():  # this thread was interrupted while it waited
                self._drain(loop, queue, future)
            self.store.flush()
            raise

    def _drain(self, loop: EventLoop, queue: Queue, future: Future[None]) -> None:
        """After an interrupt: send nothing more, let what is in flight end if it is quick, else log it as unknown."""
        loop.call(queue.stop)
        try:
            future.exception(self._grace)
        except (FutureTimeout, KeyboardInterrupt):  # a second interrupt: no more patience
            loop.call(queue.cancel)
            try:
                future.exception(2.0)
            except FutureTimeout:
                future.cancel()

    def halt(self, why: str) -> None:
        """Send nothing more, now or later: calls in flight may end, and :meth:`run` raises EndpointError saying *why*.

        May be called from another thread while :meth:`run` blocks.
        """
        self._stopped = self._stopped or EndpointError(why)
        if self._loop is not None and self._queue is not None:
            self._loop.call(self._queue.fail, self._stopped)

    # ------------------------------------------------------------ records

    def _introduce(self, lane: Lane) -> None:
        """Say in the log who is asked and how, before the first trial; it also shows that the log can be written."""
        endpoint, context = lane.endpoint, self._context
        if lane.digest in self._introduced:
            return
        api = batches_of(endpoint)
        self.store.append(
            {
                "type": "engine",
                "identity": lane.digest,
                "endpoint": {
                    "name": endpoint.name,
                    "type": endpoint.type,
                    "simulated": endpoint.simulated,
                    "supports_system_prompt": endpoint.supports_system_prompt,
                    "identity": to_json(endpoint.identity()),
                    "default_parameters": to_json(endpoint.default_parameters),
                    "price": to_json(endpoint.price),
                },
                "price_table": None if endpoint.simulated or endpoint.price is None else provenance(),
                "seed": context.seed,
                "concurrency": context.concurrency,
                "max_attempts": context.max_attempts,
                "attempt_timeout": context.attempt_timeout,
                "deadline": self._deadline,
                "limits": to_json(lane.limits),
                "batch": None if api is None else msgspec.to_builtins(api.options),
                "retry": to_json(context.retry),
            }
        )
        self.store.flush()
        self._introduced.add(lane.digest)

    def _log_uses(
        self, keys: Sequence[str], planned: Sequence[PlannedTrial], found: dict[str, tuple[Trial, str]]
    ) -> None:
        """Log which further cells share a trial, so that the table of every cell can be rebuilt from the log."""
        for key, one in zip(keys, planned, strict=True):
            use = (key, one.cell.id)
            if one.cell.id != found[key][1] and use not in self._used:
                self.store.append({"type": "use", "key": key, "cell": one.cell})
                self._used.add(use)

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """Close the endpoints and end the engine's thread. The store stays open. May be called twice.

        Raises EndpointError, or what the endpoint raises, where that does not close; the thread ends all the
        same.
        """
        with self._mutex:
            loop, self._loop = self._loop, None
            if loop is None:
                return
            closing = {loop.submit(lane.endpoint.aclose()): lane.endpoint.name for lane in self._context.lanes}
            done, late = wait(closing, timeout=_CLOSING)
            if self._own_loop:
                loop.close()
            if late:
                name = closing[late.pop()]
                raise EndpointError(
                    f"endpoint {name!r} did not close within {_CLOSING:g} s; its trials are on the disk"
                )
            for future in done:
                future.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _recorded(record: Mapping[str, Any]) -> tuple[Trial, str]:
    return trial_of(record), sys.intern(record["cell"]["id"])


# ------------------------------------------------------------ ways in which a process is made to end


@contextlib.contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Within the block SIGTERM and SIGHUP raise KeyboardInterrupt, where they would kill the process: what is in
    flight is then logged with its answer, not lost.

    Handlers that somebody else has set are left alone, and so is every thread but the main one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ours = [number for number in signals if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


class ParentWatch(Watch):
    """Calls *leave*, again and again, once this process is no longer a child of process *parent*, or *ended* says so.

    Systems that never change a process's parent (Windows) show its end by *ended* alone.
    """

    def __init__(
        self, parent: int, leave: Callable[[], None], *, ended: Callable[[], bool] = lambda: False, every: float = 0.1
    ) -> None:
        def look() -> None:
            if os.getppid() != parent or ended():
                with contextlib.suppress(RuntimeError):  # the loop of an engine that is closing
                    leave()

        super().__init__(look, every)
