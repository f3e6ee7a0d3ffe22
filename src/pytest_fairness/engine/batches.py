"""Ask through a provider's batch API, in rounds of batches: each is made once, looked at,
collected.

The attempts, claims, records and money are those of single requests. Every step is in the log
before and after it is taken: what is sent lies on the disk before it leaves, and a process that
dies before it logs the provider's answer leaves a tag, under which the batch is looked up before
anything is sent again. Where it cannot be looked up, its trials are unknown and charged at their
worst case. A trial of several requests takes part in as many batches.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, TypeVar

from pytest_fairness.endpoints.batch_api import (
    MAX_BYTES,
    BatchApi,
    BatchResult,
    BatchState,
    NotSettledError,
)
from pytest_fairness.endpoints.http import make_wire
from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Wire
from pytest_fairness.endpoints.redaction import redact_values
from pytest_fairness.engine import queue
from pytest_fairness.engine.attempt import failed, replied
from pytest_fairness.engine.conversation import LOST, REPEATABLE, Conversation, Waiting
from pytest_fairness.engine.lane import EngineContext, ran_out
from pytest_fairness.engine.progress import printable
from pytest_fairness.errors import BudgetError, EndpointError
from pytest_fairness.model import Status
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.records import Attempt, utc_now

T = TypeVar("T")
#: Conversations with the bodies of their next requests, and what is reserved for each
#: (nano-dollars).
Lot = list[tuple[Conversation, bytes, int]]

BATCHED = "batched"
#: Looks at a batch in vain, one after the other, before the session stops waiting.
PATIENCE = 20
#: HTTP statuses of a server that has no list of batches.
_NO_LIST = (400, 404, 405, 501)
#: Bytes a second that an upload is allowed to be as slow as.
_SLOWEST = 100_000


@dataclass(slots=True)
class Submission:
    """One batch, as the log and the provider know it.

    ``tag`` is ours and stands in every request's identifier; ``batch`` is the provider's name, None
    until it has answered; ``file`` the provider's name of the input, where it wants one. ``since``
    and ``submitted`` are Unix time. ``over``: nothing more is expected of it. ``members`` are the
    trials that wait for it here, by the identifiers of their requests; ``failures`` counts the
    looks in vain since ``state`` was seen.
    """

    tag: str
    endpoint: str = ""
    requests: int = 0
    since: float = 0.0
    file: str | None = None
    batch: str | None = None
    submitted: float = 0.0
    status: str = ""
    cancel: str = ""
    over: bool = False
    members: dict[str, Conversation] = field(default_factory=dict)
    state: BatchState | None = None
    failures: int = 0

    @property
    def has_ended(self) -> bool:
        """Return whether the provider, when it was last asked, had worked it off."""
        return self.state is not None and self.state.ended

    def apply(self, record: Mapping[str, Any]) -> None:
        """Take in a record of its tag."""
        for fact in {"endpoint", "requests", "file", "batch", "status", "cancel"} & record.keys():
            setattr(self, fact, record[fact])
        if record["event"] == "intent":
            self.since = record["unix"]
        elif record["event"] == "submitted":
            self.submitted = record["unix"]
        elif record["event"] in ("collected", "void", "lost"):
            self.over = True


def batch_record(tag: str, event: str, *, wire: Wire | None = None, **facts: Any) -> dict[str, Any]:
    """Return the record of one step of the batch *tag*: intent, uploaded, submitted, status, ended,
    stray, or one of the last: collected, void (never made), lost.
    """
    record = {"type": "batch", "tag": tag, "event": event, **facts}
    if wire is not None:
        record["wire"] = wire
    now = {"time": utc_now(), "unix": time.time(), "monotonic": time.monotonic()}
    return record | now


def submissions(records: Iterable[Mapping[str, Any]]) -> dict[str, Submission]:
    """Return the batches that *records* speak of, by their tags."""
    by_tag: dict[str, Submission] = {}
    # The records of one batch may stand in the logs of two writers: of one that made it and one
    # that took it over.
    for record in sorted(records, key=lambda record: bool(record["event"] != "intent")):
        if record["event"] == "intent":
            by_tag[record["tag"]] = Submission(record["tag"])
        if record["tag"] in by_tag:
            by_tag[record["tag"]].apply(record)
    return by_tag


def still_open(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each batch that its provider still works on though nobody waits for it
    any more.
    """
    sentences = []
    for submission in submissions(records).values():
        if submission.batch is None or submission.over:
            continue
        sentences.append(
            f"batch {printable(submission.batch)[:300]} of {submission.endpoint!r} "
            f"({submission.requests} requests) goes on at the provider and will be billed; "
            "--fairness-resume last collects it; to cancel it: "
            f"{printable(submission.cancel)[:300]}"
        )
    return sentences


class UnmadeError(EndpointError):
    """The batch was not made; or, *lost*, it was sent, and nobody knows what came of it."""

    def __init__(self, why: str, *, lost: bool = False) -> None:
        super().__init__(why)
        self.lost = lost


class BatchQueue(queue.Queue):
    """A queue with one worker, which asks in batches. Stopped, it leaves at the provider what is
    there.
    """

    def __init__(
        self, missing: Mapping[str, PlannedTrial], context: EngineContext, *, api: BatchApi
    ) -> None:
        super().__init__(missing, context)
        self._workers_wanted = 1
        self._api = api
        self._lane = context.own_lane
        self._budget = context.budget
        self._flying: list[Submission] = []
        self._most = api.options.max_requests
        self._full = 0

    def _is_untried(self) -> bool:
        """A batch that is refused costs nothing, and there is one at a time."""
        return False

    async def _work(self, *, alone: bool = False) -> None:  # noqa: ARG002 - as a queue has it
        """Ask all that can be claimed in batches; what is at the provider when it ends stays there."""
        try:
            with self._first_error():
                self._claim(list(self._unclaimed))
                await self._take_over()
                await self._submit_and_collect()
        finally:
            because = "the session was stopped"
            if self._late:
                because = "the run's deadline passed"
            for submission in list(self._flying):
                self._leave(submission, because)
            if self._progress is not None:
                self._progress.note("")

    async def _submit_and_collect(self) -> None:
        """Submit what is ready and collect what has ended, until nothing is left of either."""
        while not self._over():
            await self._submit()
            if not self._flying and not self._ready:
                return
            self._report()
            await self._sleep(self._api.options.poll_seconds)
            for submission in list(self._flying):
                if not self._stopped.is_set():
                    await self._look(submission)

    def _expects_money(self) -> bool:
        """Return whether something in flight will give money back: here, or in a batch of any
        process that is not yet as old as a batch may get.
        """
        if super()._expects_money():
            return True
        oldest = time.time() - self._api.options.max_wait_hours * 3600
        batches = submissions(self._store.of_type("batch")).values()
        return any(not batch.over and batch.since > oldest for batch in batches)

    def _note(self, submission: Submission, event: str, **facts: Any) -> None:
        """Log a step of the batch. Raises StoreError."""
        record = batch_record(submission.tag, event, **facts)
        self._store.append(record)
        submission.apply(record)

    async def _within(self, seconds: float, answer: Awaitable[T]) -> T:
        """Return the *answer*, if it comes in time; else raise AttemptError."""
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                return await answer
        except (TimeoutError, asyncio.CancelledError) as error:
            if not ran_out(deadline):
                raise
            why = (
                f"endpoint {self._lane.endpoint.name!r}: no answer of the batch API within "
                f"{seconds:.3g} s"
            )
            raise AttemptError(why, evidence=Evidence.NO_RESPONSE) from error

    # ------------------------------------------------------------ what becomes of a trial

    def _conclude(self, conversation: Conversation, ending: Attempt, *, blame: bool = True) -> None:
        """Log how a request ended, and go on with its trial. *blame*: a failure counts against the
        trial.
        """
        self._lane.conclude(conversation, ending, conversation.reserved)
        if not blame or self._take_in(conversation, self._lane, ending):
            self._go_on(conversation)

    def _go_on(self, conversation: Conversation) -> None:
        """Have the next turn of a trial ready, or log its end."""
        if conversation.over():
            self._end(conversation)
        else:
            self._ready.append(conversation)

    def _unmade(self, submission: Submission, error: UnmadeError) -> None:
        """Conclude a batch that was never made, with its trials as free as before; or of which
        nobody knows, with its trials charged.
        """
        self._flying.remove(submission)
        event = "void"
        evidence = Evidence.NOT_SENT
        why = f"the batch was not made: {error}"
        if error.lost:
            event = "lost"
            evidence = Evidence.NO_RESPONSE
            why = f"{LOST} (batch {submission.tag}: {error})"
        self._note(submission, event, why=str(error))
        for conversation in submission.members.values():
            if error.lost and self._context.retry.unknown:
                self._budget.leave(conversation.reserved)
                conversation.lose(again=True)
                self._go_on(conversation)
            else:
                ending = failed(evidence, why, flags=(BATCHED,))
                self._conclude(conversation, ending, blame=error.lost)
        self._store.flush()

    def _leave(self, submission: Submission, because: str) -> None:
        """Wait for this batch no more."""
        self._flying.remove(submission)
        for conversation in submission.members.values():
            if conversation.waiting is not None:
                self._budget.leave(conversation.reserved)
                which = f"batch {submission.batch or submission.tag} is in progress at the provider"
                self.why[conversation.key] = (
                    f"{which}, and {because}: continue with --fairness-resume last"
                )

    # ------------------------------------------------------------ resuming

    async def _take_over(self) -> None:
        """Find the batches that previous processes sent, or may have sent."""
        resumed = list(self._ready)
        self._ready.clear()
        self._flying += self._members_of_batches(resumed)
        for submission in list(self._flying):
            if submission.batch is None:
                await self._find_again(submission)

    def _members_of_batches(self, resumed: Sequence[Conversation]) -> list[Submission]:
        """Return the batches that *resumed* trials wait for; the other trials are ready again."""
        left = self._budget.adopt(sum(conversation.reserved for conversation in resumed))
        logged: dict[str, Submission] = {}
        if any(conversation.waiting for conversation in resumed):
            logged = submissions(self._store.of_type("batch"))
        for conversation in resumed:
            waiting = conversation.waiting
            if waiting is None or waiting.tag not in logged:
                self._go_on_alone(conversation)
                continue
            waiting.reserved = min(waiting.reserved, left)
            left -= waiting.reserved
            logged[waiting.tag].members[waiting.custom_id] = conversation
        return [submission for submission in logged.values() if submission.members]

    def _go_on_alone(self, conversation: Conversation) -> None:
        """Go on with a resumed trial that waits for no batch."""
        if conversation.was_lost:  # no log without its intent: the logs are not all there
            conversation.lose(again=self._context.retry.unknown)
        self._go_on(conversation)

    async def _find_again(self, submission: Submission) -> None:
        """Find a batch whose name at the provider is not in the log, or conclude that it was not
        made.
        """
        try:
            state = await self._search(submission)
            if state is not None:
                self._made(submission, state)
            elif not self._over():
                raise UnmadeError("it is not in the provider's list of batches")
        except UnmadeError as error:
            self._unmade(submission, error)

    async def _search(self, submission: Submission) -> BatchState | None:
        """Return the batch that may have been made, None if it was not: twice not listed, one look
        at a batch apart.

        Raises UnmadeError where that cannot be found out, EndpointError where we may not ask, and
        returns None when all is stopped.
        """
        looks = 0
        failures = 0
        while not self._over():
            try:
                state = await self._find(submission)
            except NotSettledError:
                looks = 0
            except AttemptError as error:
                failures += 1
                self._refuse_unknown(submission, error, failures)
            else:
                looks += 1
                if state is not None or looks == 2:
                    return state
            await self._sleep(self._api.options.poll_seconds)
        return None

    async def _find(self, submission: Submission) -> BatchState | None:
        """Return the batch as the provider lists it, None where it does not."""
        listing = self._api.find(
            submission.tag,
            file=submission.file,
            requests=submission.requests,
            since=submission.since,
        )
        return await self._within(self._context.attempt_timeout, listing)

    def _refuse_unknown(self, submission: Submission, error: AttemptError, failures: int) -> None:
        """Raise where *error*, after so many *failures*, says that the list cannot be had."""
        if error.wire is not None and error.wire.status_code in _NO_LIST:
            raise UnmadeError(str(error), lost=True) from error
        if error.evidence is Evidence.AUTH or failures >= 2 * self._context.max_attempts:
            raise EndpointError(
                f"{error}; whether a batch of {submission.requests} requests was made cannot be "
                "known yet: continue with --fairness-resume last when the provider can be reached"
            ) from error

    # ------------------------------------------------------------ submitting

    async def _submit(self) -> None:
        """Send what is ready, as far as the money goes and the provider takes it: first to the
        disk, then out.
        """
        while self._ready and not self._over():
            if self._full and self._flying:
                return
            lot = await self._lot()
            total = sum(map(itemgetter(2), lot))
            if not lot or self._over():  # making the bodies of a large batch takes its time
                self._lane.settle(total, 0)
                return
            submission = await self._submit_lot(lot, total)
            if submission.batch is not None and submission.has_ended:
                await self._look(submission)
                if self._full:
                    return

    async def _submit_lot(self, lot: Lot, total: int) -> Submission:
        """Log that *lot* is meant to be a batch, for which *total* is reserved, and send it."""
        submission = Submission(uuid.uuid4().hex[:20])
        self._note(
            submission,
            "intent",
            endpoint=self._lane.endpoint.name,
            requests=len(lot),
            reserved=total,
        )
        self._flying.append(submission)
        lines = self._announce(submission, lot)
        try:
            await self._send(submission, lines)
        except UnmadeError as error:
            self._unmade(submission, error)
            raise
        return submission

    def _announce(self, submission: Submission, lot: Lot) -> list[bytes]:
        """Log that the requests of *lot* are about to leave as *submission*; return their lines."""
        lines = []
        for number, (conversation, body, amount) in enumerate(lot):
            custom_id = f"{submission.tag}-{number:05d}"
            lines.append(self._api.line(custom_id, body))
            line = redact_values(lines[-1].decode("utf-8", "surrogateescape"))
            conversation.waiting = Waiting(
                tag=submission.tag, custom_id=custom_id, line=line, reserved=amount
            )
            conversation.attempts += 1
            submission.members[custom_id] = conversation
            self._lane.announce(conversation, amount)
        self._store.flush()
        return lines

    async def _lot(self) -> Lot:
        """Return what goes into the next batch, from the front of what is ready (so every part of a
        design that is cut has all its groups): as many requests as one batch may have and the cap
        bears, each with its worst case reserved. Requests that cannot be sent end.
        """
        lot: Lot = []
        room = MAX_BYTES
        while self._ready and len(lot) < self._most:
            conversation = self._ready[0]
            body = await self._body(conversation)
            if body is None:
                continue
            amount = self._lane.reservation(conversation)
            if lot and len(body) > room:
                break
            if not await self._fits(amount, alone=not lot and not self._flying):
                break
            room -= len(body)
            lot.append((self._ready.popleft(), body, amount))
            if not len(lot) % 32:
                await asyncio.sleep(0)  # a stop must be heard meanwhile
        return lot

    async def _body(self, conversation: Conversation) -> bytes | None:
        """Return the request of *conversation*, the first that is ready; where it cannot be sent,
        conclude it and return None.
        """
        try:
            return await self._api.endpoint.body(self._lane.request(conversation))
        except AttemptError as error:
            self._ready.popleft()
            conversation.attempts += 1
            self._conclude(conversation, failed(error.evidence, str(error), wire=error.wire))
            if self._error is not None:
                raise self._error from error
            return None

    async def _fits(self, amount: int, *, alone: bool) -> bool:
        """Reserve *amount*; return whether there was room for it.

        What does not fit beside batches of ours waits for them: they will cost less than was set
        aside. *alone*, it waits for the reservations of other processes.
        """
        if not amount:
            return True
        if alone:
            return await self._await_room(amount)
        try:
            return await self._budget.reserve(amount)
        except BudgetError:
            return False

    async def _send(self, submission: Submission, lines: Sequence[bytes]) -> None:
        """Have the provider begin; on return its name for the batch is on the disk.

        Repeats what was not made. Raises UnmadeError, or EndpointError where the provider's answer
        to the search says that we may not ask; returns without a name where all was stopped before
        anything was sent.
        """
        limit = self._context.attempt_timeout + sum(map(len, lines)) / _SLOWEST
        for failures in range(1, self._context.max_attempts + 1):
            if self._over():
                return
            try:
                await self._upload(submission, lines, limit)
            except AttemptError as error:
                _refuse_if_rejected(error)
                await self._pause_after(error, failures)
                continue
            try:
                submitted = self._api.submit(lines, submission.tag, submission.file)
                state: BatchState | None = await self._within(limit, submitted)
            except AttemptError as error:
                _refuse_if_rejected(error)
                state = None
                if error.evidence not in REPEATABLE:
                    state = await self._search(submission)
                if state is None:
                    await self._pause_after(error, failures)
            if state is not None:
                self._made(submission, state)
                return

    async def _upload(self, submission: Submission, lines: Sequence[bytes], limit: float) -> None:
        """Upload *lines*, where the provider wants a file and has none; *limit* in seconds."""
        if submission.file is not None:
            return
        patience = limit + 4 * self._context.attempt_timeout
        file = await self._within(patience, self._api.upload(lines, submission.tag))
        if file is not None:
            self._note(submission, "uploaded", file=file)

    async def _pause_after(self, error: AttemptError, failures: int) -> None:
        """Wait before a batch is tried once more after *failures*. Raises UnmadeError after the
        last attempt.
        """
        if self._over():
            return
        if failures == self._context.max_attempts:
            raise UnmadeError(
                f"{error}; the batch was not made (after {failures} attempts)"
            ) from error
        pause = error.retry_after or queue.FIRST_PAUSE * 2 ** (failures - 1)
        await self._sleep(min(pause, queue.LONGEST_PAUSE))

    def _made(self, submission: Submission, state: BatchState) -> None:
        """Log the provider's name of the batch, and how to cancel it."""
        submission.state = state
        cancel = self._api.how_to_cancel(state.id)
        self._note(
            submission,
            "submitted",
            batch=state.id,
            status=state.status,
            cancel=cancel,
            wire=state.wire,
        )
        self._store.flush()

    # ------------------------------------------------------------ collecting

    async def _look(self, submission: Submission) -> None:
        """Ask the provider for the state of a batch, and collect it when it has ended."""
        if submission.batch is None:
            return
        try:
            state = await self._fetch_state(submission, submission.batch)
            results = await self._fetch_results(submission, state)
        except AttemptError as error:
            self._take_in_failed_look(submission, error)
            return
        submission.failures = 0
        if state.ended:
            await self._finish(submission, state, results)
            return
        hours = self._api.options.max_wait_hours
        if time.time() - submission.submitted > hours * 3600:
            self._leave(submission, f"it was awaited for {hours:g} hours")

    async def _fetch_state(self, submission: Submission, batch: str) -> BatchState:
        """Return the state of *batch*, and log a change of its status. Raises AttemptError."""
        state = submission.state
        if state is None or not state.ended:
            state = await self._within(self._context.attempt_timeout, self._api.state(batch))
        if state.status != submission.status:
            self._note(submission, "status", status=state.status)
        submission.state = state
        return state

    async def _fetch_results(
        self, submission: Submission, state: BatchState
    ) -> Sequence[BatchResult]:
        """Return the results of a batch that has ended. Raises AttemptError."""
        if not state.ended or not state.results:
            return []
        # Results are as many bytes as there are requests.
        patience = self._context.attempt_timeout + submission.requests / 10
        return await self._within(patience, self._api.results(state))

    def _take_in_failed_look(self, submission: Submission, error: AttemptError) -> None:
        """Count that the provider did not answer about a batch. Raises EndpointError where that
        will not change by itself.
        """
        submission.failures += 1
        absent = error.wire is not None and error.wire.status_code in (404, 410)
        if absent and self._context.retry.unknown:
            self._unmade(submission, UnmadeError(str(error), lost=True))
            return
        refused = error.evidence in (Evidence.AUTH, Evidence.REJECTED)
        if refused or submission.failures >= PATIENCE:
            hint = ""
            if absent:
                hint = " (--fairness-retry-unknown gives it up and asks again)"
            raise EndpointError(
                f"{error}; batch {submission.batch} is not lost: mend the key or the address, "
                f"and continue with --fairness-resume last{hint}"
            ) from error

    async def _finish(
        self, submission: Submission, state: BatchState, results: Sequence[BatchResult]
    ) -> None:
        """Collect a batch that has ended. Raises EndpointError where the provider did not begin it,
        and not because too much of ours was under way.
        """
        self._note(submission, "ended", status=state.status, wire=state.wire)
        if state.failed is None:
            self._report()
        await self._collect(submission, state, results)
        if self._error is not None:
            raise self._error
        if not state.full:
            self._full = 0
        else:
            self._full += 1
            if not self._flying:  # it is not ours that is in the way: less at a time
                self._most = max(1, min(self._most, submission.requests) // 2)
        may_wait = 1 <= self._full <= 4 * self._context.max_attempts
        if state.failed is not None and not state.faults and not may_wait:
            raise EndpointError(
                f"the provider did not begin the batch: {state.failed}; nothing was spent"
            )

    async def _collect(
        self, submission: Submission, state: BatchState, results: Sequence[BatchResult]
    ) -> None:
        """Conclude the requests of a batch that has ended. Of one that was not begun, which is
        free, the lines at fault end, and the others go out once more.
        """
        lines: dict[str, dict[str, BatchResult]] = {
            custom_id: {} for custom_id in submission.members
        }
        for result in results:
            if result.custom_id in lines:
                lines[result.custom_id].setdefault(result.line, result)  # a line twice is one
            elif not (result.custom_id or "").startswith(submission.tag):
                # What has our tag and is no member is collected by another process.
                self._note(submission, "stray", line=result.line)
        for custom_id, conversation in submission.members.items():
            fault = state.faults.get(int(custom_id.rpartition("-")[2]))
            if state.failed is None:
                ending = ending_of(list(lines[custom_id].values()), conversation.waiting, state)
            elif fault is not None:
                ending = failed(Evidence.REJECTED, f"the provider refused it: {fault}")
            else:
                ending = _not_begun(state)
            self._conclude(conversation, ending, blame=state.failed is None or fault is not None)
            await asyncio.sleep(0)
        self._flying.remove(submission)
        self._note(submission, "collected")

    def _report(self) -> None:
        """Show how the batches stand."""
        if self._progress is None or not self._flying:
            return
        done = total = 0
        for submission in self._flying:
            total += len(submission.members)
            if submission.state is not None:
                done += submission.state.done
        last = self._flying[-1]
        which = f"batch {last.batch} {last.status.replace('_', ' ')}"
        if len(self._flying) > 1:
            which = f"{len(self._flying)} batches in progress"
        self._progress.note(f"{which} {done}/{total}")


def _refuse_if_rejected(error: AttemptError) -> None:
    """Raise UnmadeError where the provider will not make the batch, however often it is asked."""
    if error.evidence in (Evidence.AUTH, Evidence.REJECTED):
        raise UnmadeError(f"{error}; the batch was not made, and nothing was spent") from error


def _not_begun(state: BatchState) -> Attempt:
    """Return the end of an attempt in a batch that the provider did not begin."""
    evidence = Evidence.NOT_SENT
    if state.full:
        evidence = Evidence.THROTTLED
    why = f"the provider did not begin the batch: {state.failed}"
    return failed(evidence, why, flags=(BATCHED,))


def ending_of(
    results: Sequence[BatchResult], waiting: Waiting | None, state: BatchState
) -> Attempt:
    """Return the end of the attempt that is *waiting*, by its *results* in the batch that ended
    with *state*.
    """
    result = BatchResult(custom_id=None, line="")
    if len(results) == 1:
        result = results[0]
    if result.error is not None:
        ending = failed(result.error.evidence, str(result.error))
    elif result.reply is not None:
        ending = replied(result.reply)
    elif results:
        why = (
            f"the provider gave {len(results)} different results for this request, and none is the "
            "right one"
        )
        ending = Attempt(status=Status.MALFORMED, error=why, flags=(BATCHED, "result_repeated"))
    else:
        why = (
            f"the batch ended ({state.status}) and its results say nothing of this request: "
            "perhaps paid for"
        )
        ending = failed(Evidence.NO_RESPONSE, why, flags=(BATCHED, "result_missing"))
    url = ""
    sent = ""
    if state.wire is not None:
        url = state.wire.url
    if waiting is not None:
        sent = waiting.line
    received = "\n".join(result.line for result in results)
    wire = make_wire(
        url=url,
        request_body=sent.encode("utf-8", "surrogateescape"),
        request_headers={},
        status_code=result.status_code,
        response_body=received.encode("utf-8", "surrogateescape"),
    )
    flags = dict.fromkeys((*ending.flags, BATCHED, result.flag))
    return replace(ending, wire=wire, free=result.free, flags=tuple(filter(None, flags)))
