"""Making one batch at a provider, so that it is made once: every step is in the log before and after it is taken.

What is sent lies in the run's folder before it leaves. A process that dies between sending and logging the provider's
answer leaves a tag, under which the batch is looked up before anything is sent again; where it cannot be looked up, its
trials are unknown and charged at their worst case.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pytest_fairness.endpoints.batch_protocol import Asked, BatchApi, BatchState, NotSettledError
from pytest_fairness.endpoints.protocol import AttemptError, Evidence
from pytest_fairness.engine import provider_batch_records as said
from pytest_fairness.engine.attempt import Asker
from pytest_fairness.engine.conversation import REPEATABLE, Conversation, Waiting
from pytest_fairness.engine.provider_batch_records import Submission, batch_record, submissions
from pytest_fairness.errors import EndpointError
from pytest_fairness.runs import files
from pytest_fairness.runs.store import RunStore

T = TypeVar("T")

#: Bytes a second that an upload is allowed to be as slow as.
_SLOWEST = 100_000
#: HTTP statuses by which a server says that it has no list of batches.
_NO_LIST = (400, 404, 405, 501)


@dataclass(slots=True, kw_only=True)
class InBatch:
    """A trial whose next reply is awaited from a batch; ``number`` is that of the attempt."""

    conversation: Conversation
    custom_id: str
    number: int
    reserved: int


@dataclass(slots=True, kw_only=True)
class Flying:
    """A batch that is awaited. ``members`` by the identifiers of their requests; ``state`` is the last that was seen,
    ``failures`` counts the looks in vain since.
    """

    submission: Submission
    members: dict[str, InBatch] = field(default_factory=dict)
    state: BatchState | None = None
    failures: int = 0


class NeverMadeError(EndpointError):
    """The batch was not made, nothing was spent, and trying again now is of no use."""


class LostError(Exception):
    """The batch was sent, and whether it was made cannot be found out."""


class Submitter:
    """Makes and finds the batches of one endpoint. *sleep* pauses for so many seconds, or until all is stopped;
    *stopped* says whether it is.
    """

    def __init__(
        self,
        api: BatchApi,
        *,
        endpoint: str,
        store: RunStore,
        asker: Asker,
        timeout: float,
        max_attempts: int,
        sleep: Callable[[float], Awaitable[None]],
        stopped: Callable[[], bool],
    ) -> None:
        self._api = api
        self._endpoint = endpoint
        self._store = store
        self._asker = asker
        self._timeout = timeout
        self._max_attempts = max_attempts
        self._sleep = sleep
        self._stopped = stopped

    # ------------------------------------------------------------ before

    def intend(self, lot: Sequence[tuple[Conversation, bytes, int]]) -> tuple[Flying, list[bytes]]:
        """Write down what is about to be sent: conversations with their bodies, and what was reserved for each.

        On return it is on the disk. Raises StoreError.
        """
        tag = uuid.uuid4().hex[:20]
        asked = [Asked(custom_id=f"{tag}-{number:05d}", body=body) for number, (_, body, _) in enumerate(lot)]
        lines = self._api.encode(asked)
        data = b"\n".join(lines) + b"\n"
        digest = hashlib.sha256(data).hexdigest()
        files.write_atomically(self.input_path(tag), data)
        self._log(
            tag,
            said.INTENT,
            endpoint=self._endpoint,
            requests=len(lot),
            sha256=digest,
            bytes=len(data),
            reserved=sum(reserved for _, _, reserved in lot),
        )
        flying = Flying(
            submission=Submission(tag=tag, endpoint=self._endpoint, requests=len(lot), since=time.time(), sha256=digest)
        )
        for one, (conversation, _, reserved) in zip(asked, lot, strict=True):
            member = InBatch(
                conversation=conversation,
                custom_id=one.custom_id,
                number=conversation.attempts + 1,
                reserved=reserved,
            )
            flying.members[one.custom_id] = member
            waiting = Waiting(tag=tag, custom_id=one.custom_id, reserved=reserved)
            self._asker.announce(conversation, member.number, reserved, time.monotonic(), waiting)
        self._store.flush()
        return flying, lines

    def patience(self) -> float:
        """Seconds that money which others hold is worth waiting for: as long as a batch takes, while there is one."""
        waiting = any(not one.over for one in submissions(self._store.batch_records()).values())
        return self._api.options.max_wait_hours * 3600 if waiting else self._timeout

    def input_path(self, tag: str) -> Path:
        """Where what was sent under *tag* lies until its results are in the log."""
        return self._store.state / f"batch-{tag}.jsonl"

    async def lines_of(self, flying: Flying) -> dict[str, bytes]:
        """The lines that were sent, by the identifiers of their requests; made anew where the file has gone."""
        try:
            data = self.input_path(flying.submission.tag).read_bytes()
        except OSError:
            data = b""
        if hashlib.sha256(data).hexdigest() != flying.submission.sha256:
            members = flying.members.values()
            asked = [
                Asked(custom_id=one.custom_id, body=await self._api.body(self._asker.request(one.conversation)))
                for one in members
            ]
            return dict(zip(flying.members, self._api.encode(asked), strict=True))
        lines = data.split(b"\n")
        numbers = {custom_id: int(custom_id.rpartition("-")[2]) for custom_id in flying.members}
        return {custom_id: lines[number] for custom_id, number in numbers.items()}

    def forget(self, flying: Flying) -> None:
        """Remove what was sent: the log holds it with its answers."""
        self._store.flush()
        self.input_path(flying.submission.tag).unlink(missing_ok=True)

    # ------------------------------------------------------------ sending

    async def send(self, flying: Flying, lines: Sequence[bytes]) -> None:
        """Have the provider begin; on return its name for the batch is on the disk.

        Repeats what was not made. Raises NeverMadeError, LostError, or EndpointError where the provider's answer to
        the look-up says that we may not ask; returns without a name where all was stopped before anything was sent.
        """
        submission, size = flying.submission, sum(len(line) + 1 for line in lines)
        limit = self._timeout + size / _SLOWEST
        for failures in range(1, self._max_attempts + 1):
            if self._stopped():
                return
            sent = False
            try:
                if submission.file is None:
                    file = await self.within(limit + 4 * self._timeout, self._api.upload(lines, submission.tag))
                    if file is not None:
                        self._note(submission, said.UPLOADED, file=file)
                sent = True
                state = await self.within(limit, self._api.submit(lines, submission.tag, submission.file))
            except AttemptError as error:
                if error.evidence in (Evidence.AUTH, Evidence.REJECTED):
                    raise NeverMadeError(f"{error}; the batch was not made, and nothing was spent") from error
                found = None
                if sent and error.evidence not in REPEATABLE:
                    found = await self.look_up(flying)
                if found is not None:
                    self.made(flying, found)
                    return
                if self._stopped():
                    return
                if failures == self._max_attempts:
                    raise NeverMadeError(f"{error}; the batch was not made (after {failures} attempts)") from error
                await self._sleep(min(60.0, error.retry_after or 0.5 * 2 ** (failures - 1)))
            else:
                self.made(flying, state)
                return

    def made(self, flying: Flying, state: BatchState) -> None:
        """Log the provider's name for the batch."""
        flying.state = state
        self._note(
            flying.submission,
            said.SUBMITTED,
            batch=state.id,
            status=state.status,
            cancel=self._api.how_to_cancel(state.id),
            wire=state.wire,
        )
        self._store.flush()

    async def look_up(self, flying: Flying) -> BatchState | None:
        """The batch that may have been made, None if it was not: twice not listed, one look at a batch apart.

        Raises LostError where that cannot be found out, EndpointError where we may not ask, and returns None when all
        is stopped.
        """
        submission, looks, failures = flying.submission, 0, 0
        while not self._stopped():
            try:
                state = await self.within(
                    self._timeout,
                    self._api.find(
                        submission.tag, file=submission.file, requests=submission.requests, since=submission.since
                    ),
                )
            except NotSettledError:
                looks = 0
            except AttemptError as error:
                failures += 1
                status = None if error.wire is None else error.wire.status_code
                if status in _NO_LIST:
                    raise LostError(str(error)) from error
                if error.evidence is Evidence.AUTH or failures >= 2 * self._max_attempts:
                    raise EndpointError(
                        f"{error}; whether a batch of {submission.requests} requests was made cannot be told yet: "
                        "go on with --fairness-resume when the provider can be asked"
                    ) from error
            else:
                looks += 1
                if state is not None or looks == 2:
                    return state
            await self._sleep(self._api.options.poll_seconds)
        return None

    async def within(self, seconds: float, asked: Awaitable[T]) -> T:
        """What is *asked*, if it comes in time; else AttemptError."""
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                return await asked
        except (TimeoutError, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if not deadline.expired() or (task is not None and task.cancelling()):
                raise
            raise AttemptError(
                f"endpoint {self._endpoint!r}: no answer of the batch API within {seconds:.3g} s",
                evidence=Evidence.NO_RESPONSE,
            ) from error

    # ------------------------------------------------------------ the log

    def note(self, flying: Flying, event: str, **facts: object) -> None:
        """Log a step of the batch. Raises StoreError."""
        self._note(flying.submission, event, **facts)

    def _note(self, submission: Submission, event: str, **facts: object) -> None:
        submission.apply(self._log(submission.tag, event, **facts))

    def _log(self, tag: str, event: str, **facts: object) -> dict[str, object]:
        record = batch_record(tag, event, **facts)  # type: ignore[arg-type]  # the wire is one of the facts
        self._store.append(record)
        return record
