"""The store of a run whose folder is on the controller's disk: the same methods, each of them a message."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from pytest_fairness.endpoints.protocol import Limits
from pytest_fairness.errors import StoreError
from pytest_fairness.model import Trial, Usage
from pytest_fairness.runs.designs import Design
from pytest_fairness.runs.money import Account, Budget
from pytest_fairness.runs.rate_limits import FIRST_GUESS, Limiter
from pytest_fairness.runs.records import trial_of
from pytest_fairness.runs.remote.line import Line
from pytest_fairness.runs.shared_progress import Told, WorkerProgress
from pytest_fairness.runs.store import NEVER, Claimed, Retry, RunStore

#: Keys that one question asks for; their answer is cut where it grows too long.
_AT_ONCE = 512
#: Records of what has happened already: nothing is paid for because of them.
_AFTERWARDS = frozenset({"attempt", "trial", "use", "design"})


class RemoteStore(RunStore):
    """The run of the controller at the other end of *line*, written in this worker's name.

    What must be known before a request leaves waits for the controller: claims, money, and the record that the
    request is about to leave. All other records are on their way when :meth:`append` returns, in order, and on the
    controller's disk when :meth:`flush` returns.
    """

    def __init__(self, line: Line) -> None:  # nothing of a store's own state: there is no folder here
        self.line = line
        opened = line.ask("open", host=socket.gethostname(), pid=os.getpid())
        self.directory = Path(opened["directory"])
        self.writer = opened["writer"]
        self.notes = list(opened["notes"])
        self._closed = False

    @property
    def state(self) -> Path:  # type: ignore[override]
        """There is none here: what is asked of it is asked too far from the disk. Raises StoreError."""
        raise StoreError(
            f"the state of run {self.directory.name} is on the controller's disk, which this worker does not see, and "
            "batches at a provider are kept there: ask for them without workers elsewhere"
        )

    # ------------------------------------------------------------ reading

    def record(self, key: str) -> dict[str, Any] | None:
        return next(self.records([key]))

    def records(self, keys: Iterable[str]) -> Iterator[dict[str, Any] | None]:
        wanted = list(keys)
        while wanted:
            found = self.line.ask("records", keys=wanted[:_AT_ONCE])
            if not found:
                raise StoreError("pytest-xdist's controller answered nothing: nothing more is asked here")
            yield from found
            wanted = wanted[len(found) :]

    def trial(self, key: str) -> Trial | None:
        self.changed()
        record = self.record(key)
        return None if record is None else trial_of(record)

    def changed(self) -> bool:
        return bool(self.line.ask("changed"))

    def __len__(self) -> int:
        return int(self.line.ask("count"))

    # ------------------------------------------------------------ asking

    def claim(self, keys: Sequence[str], *, retry: Retry = NEVER) -> Claimed:
        answer = self.line.ask("claim", keys=list(keys), unknown=retry.unknown, errors=retry.errors)
        return Claimed(mine=answer["mine"], busy=answer["busy"])

    def release(self, keys: Iterable[str]) -> None:
        released = list(keys)
        if released:
            self.line.tell("release", keys=released)

    def designs(self) -> list[Design]:
        return [Design.from_record(record) for record in self.line.ask("designs")]

    def batch_records(self) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = self.line.ask("batch_records")
        return records

    def append(self, record: dict[str, Any]) -> None:
        # Had a request left before that is logged, a lost connection would hide that it may have been paid for.
        say = self.line.tell if record["type"] in _AFTERWARDS else self.line.ask
        say("append", record=record)

    def flush(self) -> None:
        self.line.ask("flush")

    def budget(self, cap: float | None) -> Budget:  # noqa: ARG002 - the controller keeps its own
        return RemoteBudget(self.line)

    def limiter(self, identity: str, limits: Limits) -> Limiter:
        return RemoteLimiter(self.line, identity, limits)

    def progress(self) -> WorkerProgress:
        return RemoteProgress(self.line)

    # ------------------------------------------------------------ the manifest

    def manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = self.line.ask("manifest")
        return manifest

    def update_manifest(self, **fields: Any) -> None:
        self.amend_manifest(lambda manifest: manifest.update(fields))

    def amend_manifest(self, change: Callable[[dict[str, Any]], None]) -> None:
        while True:  # until nobody else has written in between
            before = self.manifest()
            after = json.loads(json.dumps(before))
            change(after)
            if self.line.ask("replace_manifest", before=before, after=after):
                return

    def finish(self, **fields: Any) -> None:  # noqa: ARG002 - as every store has it
        raise StoreError(f"run {self.directory.name} is ended by the controller alone")

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            try:
                self.line.ask("close")
            finally:
                self.line.close()

    def __enter__(self) -> Self:
        return self


class RemoteBudget(Budget):
    """The run's account, kept by the controller under the controller's cap."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.cap = line.ask("cap")
        self.reserved = 0

    def reserve(self, amount: int) -> bool:
        if self.cap is None:
            self._line.tell("reserve", amount=amount)  # there is no cap that it could fail to fit
        elif not self._line.ask("reserve", amount=amount):
            return False
        self.reserved += amount
        return True

    def settle(self, reserved: int, cost: int) -> None:
        self._line.tell("settle", reserved=reserved, cost=cost)
        self.reserved -= reserved

    def leave(self, amount: int) -> None:
        self._line.tell("leave", amount=amount)
        self.reserved -= amount

    def adopt(self, amount: int) -> int:
        taken = int(self._line.ask("adopt", amount=amount))
        self.reserved += taken
        return taken

    def account(self) -> Account:
        return Account(**self._line.ask("account"))

    def close(self) -> None:
        """Nothing is held open here."""


class RemoteLimiter(Limiter):
    """The limits per minute of one system, kept by the controller, on its clock."""

    def __init__(self, line: Line, identity: str, limits: Limits) -> None:
        self._line = line
        self._identity = identity
        self._limits = limits
        self._typical = FIRST_GUESS
        line.ask("limiter", identity=identity, limits=asdict(limits))

    def take(self, tokens: int) -> float:
        return float(self._line.ask("take", identity=self._identity, tokens=tokens))

    def settle(self, tokens: int, usage: Usage | None) -> None:
        if usage is None or usage.output_tokens is None:
            return
        self._learn(usage.output_tokens)
        if self._limits.tokens_per_minute is not None:
            self._line.tell("settle_turn", identity=self._identity, tokens=tokens, usage=asdict(usage))

    def close(self) -> None:
        """Nothing is held open here."""


class RemoteProgress(WorkerProgress):
    """Says how far this worker is to the controller, whose folder the other workers write to."""

    def __init__(self, line: Line) -> None:
        super().__init__(Path(), "")
        self._line = line

    def leave(self, told: Told) -> None:
        self._line.tell("progress", told=asdict(told))
