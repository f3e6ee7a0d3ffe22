"""Asking through a provider's batch API: in rounds of batches, each submitted once, polled, collected.

Takes the place of :class:`~.batch.Batch`, trial by trial with the same claims, records, money and endings. A trial that
needs several requests takes part in as many batches, one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence

from pytest_fairness.endpoints.batch_protocol import BatchApi, BatchState
from pytest_fairness.endpoints.protocol import AttemptError, Evidence
from pytest_fairness.engine import provider_batch_records as said
from pytest_fairness.engine.attempt import Asker, failed
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.engine.progress import ProgressSink
from pytest_fairness.engine.provider_batch_endings import Endings
from pytest_fairness.engine.provider_batch_money import take_lot
from pytest_fairness.engine.provider_batch_records import submissions
from pytest_fairness.engine.provider_batch_results import BATCHED, by_request, ended
from pytest_fairness.engine.provider_batch_submission import (
    Flying,
    InBatch,
    LostError,
    NeverMadeError,
    Submitter,
)
from pytest_fairness.engine.queue import Policy
from pytest_fairness.errors import EndpointError, FairnessError
from pytest_fairness.model import Trial
from pytest_fairness.runs.money import Budget
from pytest_fairness.runs.store import Claimed, RunStore

#: Looks at a batch in vain, one after the other, before the session stops waiting.
_PATIENCE = 20


class ProviderBatches:
    """The trials of one call of ``Engine.run`` that were not in the store, asked in batches. All methods run on the
    event loop; *keys* and *begin* are those of :class:`~.batch.Batch`.

    ``why`` says of trials that were not asked to the end why.
    """

    def __init__(
        self,
        keys: Sequence[str],
        *,
        begin: Callable[[str, int], Conversation],
        api: BatchApi,
        asker: Asker,
        store: RunStore,
        budget: Budget,
        policy: Policy,
        endings: Endings,
        progress: ProgressSink | None,
        label: str,
        of: str = "",
    ) -> None:
        self.why: dict[str, str] = {}
        self._keys = list(keys)
        self._begin = begin
        self._api = api
        self._asker = asker
        self._store = store
        self._budget = budget
        self._policy = policy
        self._endings = endings
        self._progress = progress
        self._label = label
        self._of = of
        self._taken = 0
        self._late = False
        self._claimed: set[str] = set()
        self._busy: list[str] = []
        self._ready = self._endings.ready
        self._waiting: list[Conversation] = []
        self._flying: list[Flying] = []
        self._most = api.options.max_requests
        self._full = 0
        self._error: FairnessError | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()
        self._submitter = Submitter(
            api,
            endpoint=label,
            store=store,
            asker=asker,
            timeout=policy.attempt_timeout,
            max_attempts=policy.max_attempts,
            sleep=self._sleep,
            stopped=self._over,
        )

    @property
    def asked(self) -> dict[str, Trial]:
        """The trials that this process asked."""
        return self._endings.asked

    # ------------------------------------------------------------ from outside

    async def run(self) -> None:
        """Ask until every trial is finished, here or in another process, or the time is over. Raises the first error.

        Batches under way are left at the provider, and the claims of what was not finished are given up.
        """
        self._task = asyncio.current_task()
        if self._progress is not None:
            self._progress.begin(len(self._keys), self._label, self._of)
        try:
            self._take(self._store.claim(self._keys, retry=self._policy.retry))
            while True:
                await self._ask()
                if self._over() or not self._busy:
                    break
                await self._await_others()
        except asyncio.CancelledError:
            if not self._stopped.is_set():
                raise
        finally:
            self._give_up_waiting()
            self._store.release(list(self._claimed - self.asked.keys()))
            if self._progress is not None:
                self._progress.note("")
                self._progress.end()
        if self._error is not None:
            raise self._error

    def fail(self, error: FairnessError) -> None:
        """Send nothing more, and wait for nothing; then *error* is raised by :meth:`run`."""
        self._error = self._error or error
        self.stop()

    def stop(self) -> None:
        """Send nothing more, and wait for nothing: what is at the provider stays there."""
        self._stopped.set()

    def cancel(self) -> None:
        """The same, without waiting for an answer of the provider."""
        self.stop()
        if self._task is not None:
            self._task.cancel()

    # ------------------------------------------------------------ rounds

    async def _ask(self) -> None:
        await self._take_over()
        while not self._over():
            await self._submit()
            if not self._flying and not self._ready:
                return
            self._tell()
            await self._sleep(self._api.options.poll_seconds)
            for flying in list(self._flying):
                if not self._stopped.is_set():
                    await self._look(flying)

    def _over(self) -> bool:
        until = self._policy.until
        if until is not None and time.monotonic() >= until:
            self._late = True
        return self._late or self._stopped.is_set()

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but neither through a stop nor beyond the end of the run."""
        until = self._policy.until
        left = seconds if until is None else min(seconds, max(0.0, until - time.monotonic()))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._stopped.wait()

    def _take(self, claimed: Claimed) -> None:
        self._busy += claimed.busy
        for key, records in claimed.mine.items():
            self._claimed.add(key)
            conversation = self._begin(key, self._taken)
            self._taken += 1
            conversation.resume(records)
            if conversation.waiting is not None:
                self._waiting.append(conversation)
                continue
            if conversation.was_lost:
                self._endings.lost_before(conversation)
            else:
                self._endings.on(conversation)

    async def _await_others(self) -> None:
        """Wait until the trials that other processes claimed are finished, or free because those are gone."""
        pause, looked = 0.01, time.monotonic()
        while self._busy and not self._ready and not self._waiting and not self._over():
            await self._sleep(pause)
            pause = min(pause * 1.5, 0.5)
            if self._store.changed() or time.monotonic() - looked >= 1.0:
                looked = time.monotonic()
                waiting, self._busy = self._busy, []
                self._take(self._store.claim(waiting, retry=self._policy.retry))

    # ------------------------------------------------------------ submitting

    async def _submit(self) -> None:
        """Send what is ready, as far as the money goes and the provider takes it."""
        while self._ready and not self._over() and not (self._full and self._flying):
            lot = await take_lot(
                self._ready,
                api=self._api,
                asker=self._asker,
                budget=self._budget,
                most=self._most,
                reject=self._endings.reject,
                wait=self._hold if not self._flying else None,
                patience=self._submitter.patience,
            )
            if not lot or self._over():  # making the bodies of a large batch takes its time
                self._asker.settle(sum(reserved for _, _, reserved in lot), 0)
                return
            flying, lines = self._submitter.intend(lot)
            self._flying.append(flying)
            try:
                await self._submitter.send(flying, lines)
            except (NeverMadeError, LostError) as error:
                self._unmade(flying, error)
                raise EndpointError(str(error)) from error
            if flying.submission.batch is not None and flying.state is not None and flying.state.ended:
                await self._look(flying)
                if self._full:
                    return

    async def _hold(self) -> bool:
        """Wait a little for the reservations of other processes; False where there is nothing to wait for."""
        await self._sleep(0.05)
        return not self._over()

    # ------------------------------------------------------------ going on from earlier processes

    async def _take_over(self) -> None:
        """Find the batches that earlier processes sent, or may have sent."""
        if not self._waiting:
            return
        known = submissions(self._store.batch_records())
        groups: dict[str, list[Conversation]] = {}
        for conversation in self._waiting:
            if conversation.waiting is not None:
                groups.setdefault(conversation.waiting.tag, []).append(conversation)
        self._waiting = []
        for tag, members in groups.items():
            if tag not in known:  # no log without its intent: the logs are not all there
                for conversation in members:
                    self._endings.lost_before(conversation)
                continue
            flying = Flying(submission=known[tag])
            for conversation in members:
                waiting = conversation.waiting
                if waiting is not None:
                    flying.members[waiting.custom_id] = InBatch(
                        conversation=conversation,
                        custom_id=waiting.custom_id,
                        number=conversation.attempts,
                        reserved=self._budget.adopt(waiting.reserved),
                    )
            self._flying.append(flying)
            if flying.submission.batch is None:
                await self._find(flying)

    def _unmade(self, flying: Flying, error: NeverMadeError | LostError) -> None:
        """What is logged of a batch that was never made, or of which nobody knows, and of its trials."""
        self._flying.remove(flying)
        lost = isinstance(error, LostError)
        self._submitter.note(flying, said.LOST if lost else said.VOID, why=str(error))
        (self._endings.lost if lost else self._endings.unmade)(flying, str(error))
        self._submitter.forget(flying)

    async def _find(self, flying: Flying) -> None:
        try:
            state = await self._submitter.look_up(flying)
        except LostError as error:
            self._unmade(flying, error)
            return
        if state is not None:
            self._submitter.made(flying, state)
        elif not self._over():
            self._unmade(flying, NeverMadeError("it is not in the provider's list of batches"))

    # ------------------------------------------------------------ polling and collecting

    async def _look(self, flying: Flying) -> None:
        """Ask the provider how a batch stands, and collect it when it has ended."""
        submission = flying.submission
        if submission.batch is None:
            return
        timeout = self._policy.attempt_timeout
        try:
            state = flying.state
            if state is None or not state.ended:
                state = await self._submitter.within(timeout, self._api.state(submission.batch))
            if state.status != submission.status:
                self._submitter.note(flying, said.STATUS, status=state.status)
            flying.state = state
            if state.ended:
                # Results are as many bytes as there are requests.
                patience = timeout + submission.requests / 10
                results = await self._submitter.within(patience, self._api.results(state)) if state.results else []
        except AttemptError as error:
            self._missed(flying, error)
            return
        flying.failures = 0
        if not state.ended:
            if time.time() - (submission.submitted or time.time()) > self._api.options.max_wait_hours * 3600:
                self._drop(flying, f"it was awaited for {self._api.options.max_wait_hours:g} hours")
            return
        self._submitter.note(flying, said.ENDED, status=state.status, wire=state.wire)
        if state.failed is not None:
            await self._failed(flying, state)
            return
        self._tell()
        lines = await self._submitter.lines_of(flying)
        found, strays = by_request(results, flying.members)
        for stray in strays:
            # Of requests that another process collects there are lines, too.
            if stray.custom_id is None or not stray.custom_id.startswith(submission.tag):
                self._submitter.note(flying, said.STRAY, line=stray.line)
        url = "" if state.wire is None else state.wire.url
        for custom_id, member in flying.members.items():
            self._endings.conclude(
                member, ended(found[custom_id], request=lines[custom_id], url=url, status=state.status)
            )
            await asyncio.sleep(0)
        self._landed(flying)
        if self._endings.error is not None:
            raise self._endings.error

    def _missed(self, flying: Flying, error: AttemptError) -> None:
        flying.failures += 1
        status = None if error.wire is None else error.wire.status_code
        batch = flying.submission.batch
        if status in (404, 410) and self._policy.retry.unknown:
            self._unmade(flying, LostError(str(error)))
        elif error.evidence in (Evidence.AUTH, Evidence.REJECTED) or flying.failures >= _PATIENCE:
            hint = " (--fairness-retry-unknown gives it up and asks again)" if status in (404, 410) else ""
            raise EndpointError(
                f"{error}; batch {batch} is not lost: mend the key or the address, and go on with "
                f"--fairness-resume{hint}"
            )

    async def _failed(self, flying: Flying, state: BatchState) -> None:
        """A batch that the provider did not begin: free. Lines at fault end, the others go out once more."""
        wrong = {error.line: error.message for error in state.lines}
        why = f"the provider did not begin the batch: {state.failed}"
        for custom_id, member in flying.members.items():
            line = int(custom_id.rpartition("-")[2])
            if line in wrong:
                self._endings.conclude(member, failed(Evidence.REJECTED, f"the provider refused it: {wrong[line]}"))
            else:
                evidence = Evidence.THROTTLED if state.full else Evidence.NOT_SENT
                self._endings.conclude(member, failed(evidence, why, flags=(BATCHED,)), blame=False)
        self._landed(flying)
        if state.full:
            self._full += 1
            if not self._flying:  # it is not ours that is in the way: less at a time
                self._most = max(1, min(self._most, flying.submission.requests) // 2)
        if not wrong and (not state.full or self._full > 4 * self._policy.max_attempts):
            raise EndpointError(f"{why}; nothing was spent")

    def _landed(self, flying: Flying) -> None:
        self._flying.remove(flying)
        self._submitter.note(flying, said.COLLECTED)
        self._submitter.forget(flying)
        if flying.state is not None and flying.state.failed is None:
            self._full = 0

    # ------------------------------------------------------------ not waiting any more

    def _drop(self, flying: Flying, because: str) -> None:
        """Wait for this batch no more."""
        self._flying.remove(flying)
        name = flying.submission.batch or flying.submission.tag
        for member in flying.members.values():
            self._budget.leave(member.reserved)
            self.why[member.conversation.key] = (
                f"batch {name} is in progress at the provider, and {because}: go on with --fairness-resume"
            )

    def _give_up_waiting(self) -> None:
        because = "the run's deadline passed" if self._late else "the session was stopped"
        for flying in list(self._flying):
            self._drop(flying, because)

    def _tell(self) -> None:
        if self._progress is None:
            return
        done = sum(one.state.done for one in self._flying if one.state is not None)
        total = sum(len(one.members) for one in self._flying)
        if len(self._flying) == 1:
            name, status = self._flying[0].submission.batch, self._flying[0].submission.status
            self._progress.note(f"batch {name} {status.replace('_', ' ')} {done}/{total}")
        else:
            self._progress.note(f"{len(self._flying)} batches in progress {done}/{total}")
