"""Who asks what: before a trial is asked its key is claimed, so that no two processes ask the same.

A claim holds while its writer lives, which shows in the lock that each writer holds on a file of its own. A
writer's name can be taken up again after its death; the nonce tells its lives apart. This is coordination,
not evidence: what was asked and answered is in the logs alone.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pytest_fairness.errors import StoreError
from pytest_fairness.runs import files
from pytest_fairness.runs.locks import FileLock

#: Bytes of the claims that are read at once: those of a long run need not all be in memory.
_BLOCK = 1 << 20
#: Claims that are held in memory without looking whether some of them are settled.
_MANY = 4096


class Holder(NamedTuple):
    """One life of a writer."""

    writer: str
    nonce: str


class Claims:
    """The claims of a run, kept in its folder *state*; those of trials that are *settled* already are passed over.

    Raises StoreError if *writer* lives in another process.
    """

    def __init__(self, state: Path, writer: str, settled: Callable[[str], bool] = lambda _key: False) -> None:
        self._settled = settled
        self.state = state
        self.me = Holder(writer, uuid.uuid4().hex)
        self._holders: dict[str, Holder] = {}
        self._most = _MANY
        self._offset = 0
        self._path = state / "claims"
        self._lock = FileLock(state / "lock")
        self._own = FileLock(self._lock_path(writer))
        self._fd = files.open_regular(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            with self._lock.held():
                if not self._own.try_acquire():
                    raise StoreError(
                        f"{state.parent} is being written by {_described(self._own.read())} as {writer!r}: "
                        "wait for it to end, or start a run of your own"
                    )
                who = {"nonce": self.me.nonce, "pid": os.getpid(), "host": socket.gethostname()}
                self._own.write(json.dumps(who))
        except BaseException:
            self.close()
            raise

    def _lock_path(self, writer: str) -> Path:
        return self.state / f"writer-{writer}.lock"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else claims or begins to write during the block; claims are up to date in it."""
        with self._lock.held():
            self._read_new(exclusive=True)
            yield

    def refresh(self) -> bool:
        """Read what others have claimed and released since; whether there was anything."""
        return self._read_new(exclusive=False)

    def holder(self, key: str) -> Holder | None:
        return self._holders.get(key)

    def living(self, holders: Iterable[Holder]) -> set[Holder]:
        """Those of *holders* whose process lives. Call it under :meth:`held`."""
        return {holder for holder in set(holders) if holder == self.me or self._lives(holder)}

    def _lives(self, holder: Holder) -> bool:
        lock = FileLock(self._lock_path(holder.writer))
        try:
            if lock.try_acquire():
                return False
            return _nonce(lock.read()) == holder.nonce
        finally:
            lock.close()

    def claim(self, keys: list[str]) -> None:
        """Enter *keys* as this process's own. Call it under :meth:`held`. Raises StoreError."""
        self._enter("claim", keys)

    def release(self, keys: list[str]) -> None:
        """Give up *keys* that were not finished, so that others need not wait for them. Raises StoreError."""
        with self._lock.held():
            self._read_new(exclusive=True)
            self._enter("release", keys)

    def forget(self, keys: Iterable[str]) -> None:
        """Drop *keys* that are finished from memory: the logs answer for them now."""
        for key in keys:
            self._holders.pop(key, None)

    def _enter(self, verb: str, keys: list[str]) -> None:
        if keys:
            record = {"writer": self.me.writer, "nonce": self.me.nonce, verb: keys}
            data = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
            files.write_all(self._fd, data, self._path)
            self._apply(data)
            self._offset += len(data)

    def _read_new(self, *, exclusive: bool) -> bool:
        size = os.fstat(self._fd).st_size
        if size <= self._offset:
            return False
        begin = self._offset
        data = b""
        while more := files.read_at(self._fd, min(_BLOCK, size - self._offset - len(data)), self._offset + len(data)):
            data += more
            whole = data.rfind(b"\n") + 1
            for line in data[:whole].splitlines():
                self._apply(line)
            self._offset += whole
            data = data[whole:]
        if data and exclusive:
            # Nobody writes while we hold the lock: this is the claim of a process that died writing it, and
            # before asking. The next claim must not be glued to it.
            os.ftruncate(self._fd, self._offset)
        return self._offset > begin

    def _apply(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            holder = Holder(record["writer"], record["nonce"])
            claimed, released = record.get("claim", ()), record.get("release", ())
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{self._path} is damaged ({error}): nothing can be asked safely; start a new run"
            ) from error
        self._holders.update((key, holder) for key in claimed if not self._settled(key))
        if len(self._holders) > self._most:  # of what others have asked to the end meanwhile, the logs tell
            self._holders = {key: holder for key, holder in self._holders.items() if not self._settled(key)}
            self._most = max(_MANY, 2 * len(self._holders))
        for key in released:
            if self._holders.get(key) == holder:
                del self._holders[key]

    def close(self) -> None:
        """Let the writer's name go. May be called twice."""
        self._own.close()
        self._lock.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _nonce(text: str) -> str | None:
    try:
        return str(json.loads(text)["nonce"])
    except (ValueError, KeyError, TypeError):
        return None


def _described(text: str) -> str:
    try:
        who = json.loads(text)
        return f"process {who['pid']} on {who['host']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
