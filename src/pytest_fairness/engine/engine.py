"""The engine: planned trials in, finished trials out, each asked once, all of it on disk before it is
used."""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING, Any, Self

from pytest_fairness.endpoints.batch_protocol import batches_of
from pytest_fairness.endpoints.prices import provenance
from pytest_fairness.endpoints.protocol import Endpoint, limits_of
from pytest_fairness.engine.attempt import Asker
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.engine.endings import ended_as_by_ctrl_c
from pytest_fairness.engine.lanes import Lane, Lanes
from pytest_fairness.engine.loop import LoopThread
from pytest_fairness.engine.order import interleaved
from pytest_fairness.engine.pace import Pace
from pytest_fairness.engine.progress import ProgressSink
from pytest_fairness.engine.provider_batch_choice import provider_batches
from pytest_fairness.engine.queue import Batch, Policy, not_run
from pytest_fairness.engine.relays import staged
from pytest_fairness.errors import EndpointError, UsageError
from pytest_fairness.model import Status, Trial, to_json
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.runs.records import TrialRecord, cell_record, trial_of
from pytest_fairness.runs.store import NEVER, Retry, RunStore

if TYPE_CHECKING:
    from pytest_fairness.engine.provider_batch import ProviderBatches

#: Seconds that an endpoint has to close.
_CLOSING = 5.0


class Engine:
    """Asks one endpoint for trials, and shares them through *store*.

    *concurrency*: calls under way at a time, unless the endpoint's ``limits`` have a number of their own.
    *seed* orders the trials. *max_cost*: US dollars for the whole run, of all engines and processes.
    *attempt_timeout*: seconds for one attempt, in total. *deadline*: seconds from the first call of
    :meth:`run`; what is not asked by then is NOT_RUN. *max_attempts*: at one turn, where an attempt cost
    nothing. *retry*: what of earlier sessions is asked again. *is_refusal* marks replies in words as REFUSED.
    *grace*: seconds that calls under way have left after an interrupt. *loop*: an event loop to share with
    other engines; the engine starts one of its own otherwise.

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
        progress: ProgressSink | None = None,
        is_refusal: Callable[[str], bool] | None = None,
        grace: float = 5.0,
        loop: LoopThread | None = None,
    ) -> None:
        for what, value in (("concurrency", concurrency), ("max_attempts", max_attempts)):
            if value < 1:
                raise UsageError(f"{what} must be 1 or more, not {value}")
        for what, seconds in (("attempt_timeout", attempt_timeout), ("deadline", deadline)):
            if seconds is not None and not seconds > 0:
                raise UsageError(f"{what} must be more than 0 seconds, not {seconds}")
        self.endpoint = endpoint
        self.store = store
        self.seed = seed
        self._attempt_timeout = attempt_timeout
        self._max_attempts = max_attempts
        self._retry = retry
        self._deadline = deadline
        self._until: float | None = None
        self._progress = progress
        self._is_refusal = is_refusal
        self._grace = grace
        self._identity = endpoint.identity()
        self._hash = identity_hash(self._identity)
        self._source = "simulated" if endpoint.simulated else "replay" if endpoint.type == "replay" else "live"
        self._budget = store.budget(max_cost)
        limits = limits_of(endpoint)
        self._concurrency = limits.concurrency or concurrency
        own = Lane(
            endpoint,
            Asker(endpoint, store, self._budget, attempt_timeout),
            Pace(self._concurrency),
            store.limiter(self._hash, limits) if limits.by_the_minute else None,
        )
        self._lanes = Lanes(own, self._lane)
        self._own_loop = loop is None
        self._loop = loop
        self._mutex = threading.Lock()
        self._stopped: EndpointError | None = None
        self._introduced: set[str] = set()
        self._of = ""
        self._batch: Batch | ProviderBatches | None = None
        self._used: set[tuple[str, str]] = set()

    def key_of(self, planned: PlannedTrial) -> str:
        """The content key under which *planned* is asked, logged and shared. Raises UsageError."""
        return planned.key(self.endpoint, self._identity)

    def _lane(self, endpoint: Endpoint, digest: str) -> Lane:
        """The lane of a system that a step names; where it is the engine's own too, they share its limits."""
        asker = Asker(endpoint, self.store, self._budget, self._attempt_timeout, step=digest)
        if digest == self._hash:
            return Lane(endpoint, asker, self._lanes.own.pace, self._lanes.own.limiter)
        limits = limits_of(endpoint)
        limiter = self.store.limiter(digest, limits) if limits.by_the_minute else None
        return Lane(endpoint, asker, Pace(limits.concurrency or self._concurrency), limiter)

    def _staged(self, planned: PlannedTrial) -> PlannedTrial:
        """*planned* as it is asked."""
        return staged(planned, self.endpoint, self._is_refusal)

    # ------------------------------------------------------------ run

    def run(self, planned: Sequence[PlannedTrial]) -> list[Trial]:
        """The trials of *planned*, in its order: those in the store, and the others asked now.

        Blocks until all are finished and on the disk. Raises BudgetError where the cap leaves no room,
        EndpointError where the endpoint refuses us altogether, StoreError where the log cannot be written or
        read; what was paid for by then is kept, and a later call goes on from it. An interrupt stops the
        asking at once.
        """
        with self._mutex:
            keys = [self.key_of(one) for one in planned]
            self.store.changed()
            found: dict[str, Trial] = {}
            cells: dict[str, str] = {}
            missing: dict[str, PlannedTrial] = {}
            for key, one, record in zip(keys, planned, self.store.records(keys), strict=True):
                if key not in found and key not in missing:
                    if record is None or self._retry.wants(record):
                        missing[key] = one
                    else:
                        found[key], cells[key] = trial_of(record), sys.intern(record["cell"]["id"])
            if missing:
                self._of = hashlib.sha256("".join(sorted(set(keys))).encode()).hexdigest()[:16]
                found |= self._ask(missing, cells)
            self._log_uses(keys, planned, cells)
            self.store.flush()
            return [found[key] for key in keys]

    def _ask(self, missing: dict[str, PlannedTrial], cells: dict[str, str]) -> dict[str, Trial]:
        if self._stopped is not None:
            raise EndpointError(str(self._stopped))
        lanes = self._asked(missing.values())
        for lane in lanes:
            if not lane.endpoint.simulated:
                self._budget.check_price(lane.endpoint.name, lane.endpoint.price)
        if self._deadline is not None and self._until is None:
            self._until = time.monotonic() + self._deadline
        for lane in (self._lanes.own, *lanes):
            self._introduce(lane.endpoint)
        batch = self._wait_for(missing)
        found = dict(batch.asked)
        cells |= {key: one.cell.id for key, one in missing.items()}
        elsewhere = [key for key in missing if key not in found]
        for key, record in zip(elsewhere, self.store.records(elsewhere), strict=True):
            if record is None:
                parameters = missing[key].sent_parameters(self.endpoint)
                found[key] = not_run(Conversation(key, missing[key], parameters), self._source, batch.why.get(key))
            else:
                found[key], cells[key] = trial_of(record), sys.intern(record["cell"]["id"])
        return found

    def _asked(self, planned: Iterable[PlannedTrial]) -> list[Lane]:
        """The lanes of all systems that *planned* ask. Raises UsageError where one of them cannot be asked."""
        lanes: dict[int, Lane] = {}
        for one in planned:
            script = self._staged(one).script
            for endpoint in (None,) if script is None or not script.endpoints else script.endpoints:
                lane = self._lanes.of(endpoint)
                lanes[id(lane)] = lane
        others = [lane.endpoint.name for lane in lanes.values() if lane is not self._lanes.own]
        if others and batches_of(self.endpoint) is not None:
            raise UsageError(
                f"endpoint {self.endpoint.name!r} is asked in batches, and a step asks endpoint {others[0]!r}: one "
                "trial cannot do both; take `batch:` out of endpoints.yaml for it"
            )
        return list(lanes.values())

    def _wait_for(self, missing: dict[str, PlannedTrial]) -> Batch | ProviderBatches:
        loop = self._loop = self._loop or LoopThread()
        batch_made: Future[Batch | ProviderBatches] = loop.submit(self._make_batch(missing))
        batch = self._batch = batch_made.result()
        future: Future[None] | None = None
        try:
            with ended_as_by_ctrl_c():
                future = loop.submit(batch.run())
                future.result()
        except EndpointError as error:
            self._stopped = error
            self.store.flush()
            raise
        except BaseException:
            # Either the batch failed, or this thread was interrupted while it waited.
            if future is not None and not future.done():
                self._drain(loop, batch, future)
            self.store.flush()
            raise
        return batch

    def halt(self, why: str) -> None:
        """Send nothing more, now or later: calls under way may end, and :meth:`run` raises EndpointError saying *why*.

        May be called from another thread while :meth:`run` blocks.
        """
        self._stopped = self._stopped or EndpointError(why)
        loop, batch = self._loop, self._batch
        if loop is not None and batch is not None:
            loop.call(batch.fail, self._stopped)

    def _drain(self, loop: LoopThread, batch: Batch | ProviderBatches, future: Future[None]) -> None:
        """After an interrupt: send nothing more, let what is under way end if it is quick, else log it as
        unknown."""
        loop.call(batch.stop)
        try:
            future.exception(self._grace)
        except (FutureTimeout, KeyboardInterrupt):  # a second interrupt: no more patience
            loop.call(batch.cancel)
            try:
                future.exception(2.0)
            except FutureTimeout:
                future.cancel()

    async def _make_batch(self, missing: dict[str, PlannedTrial]) -> Batch | ProviderBatches:
        keys = list(missing)
        strata = [(one.cell.arm, *sorted(one.cell.groups.items())) for one in missing.values()]

        def begin(key: str, order: int) -> Conversation:
            one = missing[key]
            return Conversation(key, self._staged(one), one.sent_parameters(self.endpoint), order)

        order = [keys[index] for index in interleaved(strata, self.seed)]
        policy = Policy(
            concurrency=self._concurrency,
            max_attempts=self._max_attempts,
            retry=self._retry,
            attempt_timeout=self._attempt_timeout,
            until=self._until,
        )
        batches = provider_batches(
            self.endpoint,
            order,
            begin=begin,
            asker=self._lanes.own.asker,
            store=self.store,
            budget=self._budget,
            policy=policy,
            finish=self._finish,
            progress=self._progress,
            of=self._of,
        )
        if batches is not None:
            return batches
        return Batch(
            order,
            begin=begin,
            lanes=self._lanes,
            store=self.store,
            budget=self._budget,
            policy=policy,
            finish=self._finish,
            progress=self._progress,
            label=self.endpoint.name,
            of=self._of,
        )

    # ------------------------------------------------------------ records

    def _finish(self, conversation: Conversation) -> Trial:
        """Log a trial that has come to its end."""
        reply = conversation.replies[-1] if conversation.status is Status.ANSWERED else None
        if reply is not None and self._is_refusal is not None and self._is_refusal(reply):
            conversation.status = Status.REFUSED
        trial = conversation.to_trial(self._source)
        record = TrialRecord(
            trial=trial,
            cell=conversation.planned.cell,
            endpoint=self.endpoint.name,
            identity=self._hash,
            messages=conversation.messages,
            parameters_asked=conversation.planned.parameters,
            parameters_sent=conversation.parameters,
            order=conversation.order,
            seed=self.seed,
            flags=tuple(conversation.flags),
            script=None if conversation.planned.script is None else conversation.planned.script.identity(),
        )
        self.store.append(record.to_record(time.monotonic()))
        return trial

    def _introduce(self, endpoint: Endpoint) -> None:
        """Say in the log who is asked and how, before the first trial; it also shows that the log can be
        written."""
        identity = endpoint.identity()
        digest = identity_hash(identity)
        if digest in self._introduced:
            return
        self.store.append(
            {
                "type": "engine",
                "identity": digest,
                "endpoint": {
                    "name": endpoint.name,
                    "type": endpoint.type,
                    "simulated": endpoint.simulated,
                    "supports_system_prompt": endpoint.supports_system_prompt,
                    "identity": to_json(identity),
                    "default_parameters": to_json(endpoint.default_parameters),
                    "price": to_json(endpoint.price),
                },
                "price_table": None if endpoint.simulated or endpoint.price is None else provenance(),
                "seed": self.seed,
                "concurrency": self._concurrency,
                "max_attempts": self._max_attempts,
                "attempt_timeout": self._attempt_timeout,
                "deadline": self._deadline,
                "limits": to_json(limits_of(endpoint)),
                "batch": None if (api := batches_of(endpoint)) is None else to_json(api.options),
                "retry": to_json(self._retry),
            }
        )
        self.store.flush()
        self._introduced.add(digest)

    def _log_uses(self, keys: Sequence[str], planned: Sequence[PlannedTrial], cells: dict[str, str]) -> None:
        """Log which further cells share a trial, so that the table of every cell can be rebuilt from the
        log."""
        for key, one in zip(keys, planned, strict=True):
            use = (key, one.cell.id)
            if one.cell.id != cells[key] and use not in self._used:
                self.store.append({"type": "use", "key": key, "cell": cell_record(one.cell)})
                self._used.add(use)

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """Close the endpoint and end the engine's thread. The store stays open. May be called twice.

        Raises EndpointError, or what the endpoint raises, where that does not close; the thread ends all the
        same.
        """
        with self._mutex:
            loop, self._loop = self._loop, None
            try:
                if loop is not None:
                    self._close_endpoints(loop)
            finally:
                if loop is not None and self._own_loop:
                    loop.close()
                self._budget.close()
                for lane in self._lanes:
                    if lane.limiter is not None:
                        lane.limiter.close()

    def _close_endpoints(self, loop: LoopThread) -> None:
        closing = [(lane.endpoint.name, loop.submit(lane.endpoint.aclose())) for lane in self._lanes]
        until = time.monotonic() + _CLOSING
        for name, future in closing:
            try:
                future.result(max(0.0, until - time.monotonic()))
            except FutureTimeout as error:
                raise EndpointError(
                    f"endpoint {name!r} did not close within {_CLOSING:g} s; its trials are on the disk"
                ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
