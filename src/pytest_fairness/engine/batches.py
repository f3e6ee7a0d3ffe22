"""Asking through a provider's batch API, in rounds of batches: each is made once, looked at,
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

    def apply(self, record: Mapping[str, Any]) -> None:
        """Take in a record of its tag."""
        for fact in {"endpoint", "requests", "file", "batch", "status", "cancel"} & record.keys():
            setattr(self, fact, record[fact])
        moment = {"intent": "since", "submitted": "submitted"}.get(record["event"])
        if moment is not None:
            setattr(self, moment, record["unix"])
        self.over = self.over or record["event"] in ("collected", "void", "lost")


def batch_record(tag: str, event: str, *, wire: Wire | None = None, **facts: Any) -> dict[str, Any]:
    """The record of one step of the batch *tag*: intent, uploaded, submitted, status, ended, stray,
    or one of the last: collected, void (never made), lost.
    """
    evidence = {} if wire is None else {"wire": wire}
    now = {"time": utc_now(), "unix": time.time(), "monotonic": time.monotonic()}
    return {"type": "batch", "tag": tag, "event": event, **facts, **evidence, **now}


def submissions(records: Iterable[Mapping[str, Any]]) -> dict[str, Submission]:
    """The batches that *records* speak of, by their tags."""
    found: dict[str, Submission] = {}
    # The records of one batch may stand in the logs of two writers: of one that made it and one
    # that took it over.
    for record in sorted(records, key=lambda one: bool(one["event"] != "intent")):
        if record["event"] == "intent":
            found[record["tag"]] = Submission(record["tag"])
        if record["tag"] in found:
            found[record["tag"]].apply(record)
    return found


def still_open(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence for each batch that goes on at its provider though nobody waits for it any more."""
    return [
        f"batch {printable(one.batch)[:300]} of {one.endpoint!r} ({one.requests} requests) goes on "
        "at the provider "
        "and will be billed; --fairness-resume last collects it; to cancel it: "
        f"{printable(one.cancel)[:300]}"
        for one in submissions(records).values()
        if one.batch is not None and not one.over
    ]


class UnmadeError(EndpointError):
    """The batch was not made; or, *lost*, it was sent, and whether it was made cannot be found out."""

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
        self._lane, self._budget = context.own_lane, context.budget
        self._flying: list[Submission] = []
        self._most = api.options.max_requests
        self._full = 0

    def _is_untried(self) -> bool:
        """A batch that is refused costs nothing, and there is one at a time."""
        return False

    async def _work(self, *, alone: bool = False) -> None:  # noqa: ARG002 - as a queue has it
        try:
            with self._first_error():
                self._claim(list(self._unclaimed))
                await self._take_over()
                while not self._over():
                    await self._submit()
                    if not self._flying and not self._ready:
                        return
                    self._report()
                    await self._sleep(self._api.options.poll_seconds)
                    for submission in list(self._flying):
                        if not self._stopped.is_set():
                            await self._look(submission)
        finally:
            because = "the run's deadline passed" if self._late else "the session was stopped"
            for submission in list(self._flying):
                self._leave(submission, because)
            if self._progress is not None:
                self._progress.note("")

    def _patience(self) -> float:
        waiting = any(not one.over for one in submissions(self._store.of_type("batch")).values())
        return self._api.options.max_wait_hours * 3600 if waiting else super()._patience()

    def _note(self, submission: Submission, event: str, **facts: Any) -> None:
        """Log a step of the batch. Raises StoreError."""
        record = batch_record(submission.tag, event, **facts)
        self._store.append(record)
        submission.apply(record)

    async def _within(self, seconds: float, answer: Awaitable[T]) -> T:
        """The *answer*, if it comes in time; else AttemptError."""
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
        if conversation.over():
            self._end(conversation)
        else:
            self._ready.append(conversation)

    def _unmade(self, submission: Submission, error: UnmadeError) -> None:
        """A batch was never made, and its trials are as free as before; or nobody knows, and they
        are charged.
        """
        self._flying.remove(submission)
        self._note(submission, "lost" if error.lost else "void", why=str(error))
        for conversation in submission.members.values():
            if error.lost and self._context.retry.unknown:
                self._budget.leave(conversation.reserved)
                conversation.lose(again=True)
                self._go_on(conversation)
                continue
            lost = Evidence.NO_RESPONSE, f"{LOST} (batch {submission.tag}: {error})"
            what, why = (
                lost if error.lost else (Evidence.NOT_SENT, f"the batch was not made: {error}")
            )
            self._conclude(conversation, failed(what, why, flags=(BATCHED,)), blame=error.lost)
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
        left = self._budget.adopt(sum(one.reserved for one in resumed))
        known = (
            submissions(self._store.of_type("batch")) if any(one.waiting for one in resumed) else {}
        )
        for conversation in resumed:
            waiting = conversation.waiting
            if waiting is not None and waiting.tag in known:
                waiting.reserved = min(waiting.reserved, left)
                left -= waiting.reserved
                known[waiting.tag].members[waiting.custom_id] = conversation
                continue
            if conversation.was_lost:  # no log without its intent: the logs are not all there
                conversation.lose(again=self._context.retry.unknown)
            self._go_on(conversation)
        self._flying += (submission for submission in known.values() if submission.members)
        for submission in [one for one in self._flying if one.batch is None]:
            try:
                state = await self._search(submission)
                if state is not None:
                    self._made(submission, state)
                elif not self._over():
                    raise UnmadeError("it is not in the provider's list of batches")
            except UnmadeError as error:
                self._unmade(submission, error)

    async def _search(self, submission: Submission) -> BatchState | None:
        """The batch that may have been made, None if it was not: twice not listed, one look at a
        batch apart.

        Raises UnmadeError where that cannot be found out, EndpointError where we may not ask, and
        returns None when all is stopped.
        """
        looks = failures = 0
        while not self._over():
            try:
                tag, file, requests, since = (
                    submission.tag,
                    submission.file,
                    submission.requests,
                    submission.since,
                )
                found = self._api.find(tag, file=file, requests=requests, since=since)
                state = await self._within(self._context.attempt_timeout, found)
            except NotSettledError:
                looks = 0
            except AttemptError as error:
                failures += 1
                if error.wire is not None and error.wire.status_code in (
                    400,
                    404,
                    405,
                    501,
                ):  # there is no list
                    raise UnmadeError(str(error), lost=True) from error
                if error.evidence is Evidence.AUTH or failures >= 2 * self._context.max_attempts:
                    raise EndpointError(
                        f"{error}; whether a batch of {submission.requests} requests was made "
                        "cannot be known yet: "
                        "continue with --fairness-resume last when the provider can be reached"
                    ) from error
            else:
                looks += 1
                if state is not None or looks == 2:
                    return state
            await self._sleep(self._api.options.poll_seconds)
        return None

    # ------------------------------------------------------------ submitting

    async def _submit(self) -> None:
        """Send what is ready, as far as the money goes and the provider takes it: first to the
        disk, then out.
        """
        while self._ready and not self._over() and not (self._full and self._flying):
            lot = await self._lot()
            total = sum(reserved for _, _, reserved in lot)
            if not lot or self._over():  # making the bodies of a large batch takes its time
                self._lane.settle(total, 0)
                return
            submission = Submission(uuid.uuid4().hex[:20])
            self._note(
                submission,
                "intent",
                endpoint=self._lane.endpoint.name,
                requests=len(lot),
                reserved=total,
            )
            self._flying.append(submission)
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
            try:
                await self._send(submission, lines)
            except UnmadeError as error:
                self._unmade(submission, error)
                raise
            if (
                submission.batch is not None
                and submission.state is not None
                and submission.state.ended
            ):
                await self._look(submission)
                if self._full:
                    return

    async def _lot(self) -> Lot:
        """What goes into the next batch, from the front of what is ready (so every part of a design
        that is cut has all its groups): as many requests as one batch may have and the cap bears,
        each with its worst case reserved. Requests that cannot be sent end.
        """
        lot: Lot = []
        room = MAX_BYTES
        while self._ready and len(lot) < self._most:
            conversation = self._ready[0]
            try:
                body = await self._api.endpoint.body(self._lane.request(conversation))
            except AttemptError as error:
                self._ready.popleft()
                conversation.attempts += 1
                self._conclude(conversation, failed(error.evidence, str(error), wire=error.wire))
                if self._error is not None:
                    raise self._error from error
                continue
            amount = self._lane.reservation(conversation)
            if lot and len(body) > room:
                break
            # What does not fit beside batches of ours waits for them: they will cost less than was
            # set aside. Alone, it waits for the reservations of other processes.
            alone = not lot and not self._flying
            try:
                fits = not amount or await (
                    self._await_room(amount) if alone else self._budget.reserve(amount)
                )
            except BudgetError:
                if alone:
                    raise
                fits = False
            if not fits:
                break
            room -= len(body)
            lot.append((self._ready.popleft(), body, amount))
            if not len(lot) % 32:
                await asyncio.sleep(0)  # a stop must be heard meanwhile
        return lot

    async def _send(self, submission: Submission, lines: Sequence[bytes]) -> None:
        """Have the provider begin; on return its name for the batch is on the disk.

        Repeats what was not made. Raises UnmadeError, or EndpointError where the provider's answer
        to the search says that we may not ask; returns without a name where all was stopped before
        anything was sent.
        """
        timeout, most = self._context.attempt_timeout, self._context.max_attempts
        limit = timeout + sum(map(len, lines)) / _SLOWEST
        for failures in range(1, most + 1):
            if self._over():
                return
            sent = False
            try:
                if submission.file is None:
                    file = await self._within(
                        limit + 4 * timeout, self._api.upload(lines, submission.tag)
                    )
                    if file is not None:
                        self._note(submission, "uploaded", file=file)
                sent = True
                submitted = self._api.submit(lines, submission.tag, submission.file)
                state: BatchState | None = await self._within(limit, submitted)
            except AttemptError as error:
                if error.evidence in (Evidence.AUTH, Evidence.REJECTED):
                    raise UnmadeError(
                        f"{error}; the batch was not made, and nothing was spent"
                    ) from error
                state = (
                    await self._search(submission)
                    if sent and error.evidence not in REPEATABLE
                    else None
                )
                if state is None and not self._over():
                    if failures == most:
                        raise UnmadeError(
                            f"{error}; the batch was not made (after {failures} attempts)"
                        ) from error
                    pause = error.retry_after or queue.FIRST_PAUSE * 2 ** (failures - 1)
                    await self._sleep(min(pause, queue.LONGEST_PAUSE))
            if state is not None:
                self._made(submission, state)
                return

    def _made(self, submission: Submission, state: BatchState) -> None:
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
        """Ask the provider how a batch stands, and collect it when it has ended."""
        if submission.batch is None:
            return
        timeout, state = self._context.attempt_timeout, submission.state
        try:
            if state is None or not state.ended:
                state = await self._within(timeout, self._api.state(submission.batch))
            if state.status != submission.status:
                self._note(submission, "status", status=state.status)
            submission.state = state
            # Results are as many bytes as there are requests.
            patience = timeout + submission.requests / 10
            results = (
                await self._within(patience, self._api.results(state))
                if state.ended and state.results
                else []
            )
        except AttemptError as error:
            submission.failures += 1
            absent = error.wire is not None and error.wire.status_code in (404, 410)
            if absent and self._context.retry.unknown:
                self._unmade(submission, UnmadeError(str(error), lost=True))
            elif (
                error.evidence in (Evidence.AUTH, Evidence.REJECTED)
                or submission.failures >= PATIENCE
            ):
                hint = " (--fairness-retry-unknown gives it up and asks again)" if absent else ""
                raise EndpointError(
                    f"{error}; batch {submission.batch} is not lost: mend the key or the address, "
                    "and continue with "
                    f"--fairness-resume last{hint}"
                ) from error
            return
        submission.failures = 0
        if not state.ended:
            hours = self._api.options.max_wait_hours
            if time.time() - submission.submitted > hours * 3600:
                self._leave(submission, f"it was awaited for {hours:g} hours")
            return
        self._note(submission, "ended", status=state.status, wire=state.wire)
        if state.failed is None:
            self._report()
        await self._collect(submission, state, results)
        if self._error is not None:
            raise self._error
        self._full = self._full + 1 if state.full else 0
        if state.full and not self._flying:  # it is not ours that is in the way: less at a time
            self._most = max(1, min(self._most, submission.requests) // 2)
        if (
            state.failed is not None
            and not state.faults
            and not 1 <= self._full <= 4 * self._context.max_attempts
        ):
            raise EndpointError(
                f"the provider did not begin the batch: {state.failed}; nothing was spent"
            )

    async def _collect(
        self, submission: Submission, state: BatchState, results: Sequence[BatchResult]
    ) -> None:
        """Note what became of the requests of a batch that has ended. Of one that was not begun,
        which is free, the lines at fault end, and the others go out once more.
        """
        found: dict[str, dict[str, BatchResult]] = {
            custom_id: {} for custom_id in submission.members
        }
        for result in results:
            if result.custom_id in found:
                found[result.custom_id].setdefault(
                    result.line, result
                )  # the same line twice is one
            elif not (result.custom_id or "").startswith(
                submission.tag
            ):  # else another process collects it
                self._note(submission, "stray", line=result.line)
        for custom_id, conversation in submission.members.items():
            fault = state.faults.get(int(custom_id.rpartition("-")[2]))
            if state.failed is None:
                ending = ending_of(list(found[custom_id].values()), conversation.waiting, state)
            elif fault is not None:
                ending = failed(Evidence.REJECTED, f"the provider refused it: {fault}")
            else:
                why = f"the provider did not begin the batch: {state.failed}"
                ending = failed(
                    Evidence.THROTTLED if state.full else Evidence.NOT_SENT, why, flags=(BATCHED,)
                )
            self._conclude(conversation, ending, blame=state.failed is None or fault is not None)
            await asyncio.sleep(0)
        self._flying.remove(submission)
        self._note(submission, "collected")

    def _report(self) -> None:
        if self._progress is None or not self._flying:
            return
        *others, one = self._flying
        done = sum(one.state.done for one in self._flying if one.state is not None)
        total = sum(len(one.members) for one in self._flying)
        single = f"batch {one.batch} {one.status.replace('_', ' ')}"
        self._progress.note(
            f"{f'{len(self._flying)} batches in progress' if others else single} {done}/{total}"
        )


def ending_of(
    results: Sequence[BatchResult], waiting: Waiting | None, state: BatchState
) -> Attempt:
    """How the attempt that is *waiting* ended, by its *results* in the batch that ended with
    *state*.
    """
    one = results[0] if len(results) == 1 else BatchResult(custom_id=None, line="")
    if one.error is not None:
        ending = failed(one.error.evidence, str(one.error))
    elif one.reply is not None:
        ending = replied(one.reply)
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
    wire = make_wire(
        url="" if state.wire is None else state.wire.url,
        request_body=b"" if waiting is None else waiting.line.encode("utf-8", "surrogateescape"),
        request_headers={},
        status_code=one.status_code,
        response_body="\n".join(result.line for result in results).encode(
            "utf-8", "surrogateescape"
        ),
    )
    flags = dict.fromkeys((*ending.flags, BATCHED, one.flag))
    return replace(ending, wire=wire, free=one.free, flags=tuple(filter(None, flags)))
