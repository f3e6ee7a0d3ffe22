"""The verbatim log of one writer: append only, one system call a record, chained by hashes, flushed by a
thread.

A record is on its way to the disk when :meth:`Log.append` returns, so it survives the death of the process;
:meth:`Log.flush` returns when it would survive a loss of power too. The engine calls that before it hands any
reply on; meanwhile a thread flushes whatever is new, at once while calls are slow, in groups when they are
fast, so that no more than a moment's replies stand on the kernel's word alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_fairness.errors import StoreError
from pytest_fairness.runs import files
from pytest_fairness.runs.lines import FIRST, BadLineError, check_line, encode_line
from pytest_fairness.runs.scan import Anchor, Line, scan

#: More new records than this at one flush, and the next flush waits, so that flushing stays a small part of
#: the time.
_BUSY = 32
_PAUSE_BUSY = 0.1
_PAUSE_IDLE = 0.005


class Log:
    """The log file *path*, open for appending by this process alone (its owner holds the writer's lock).

    On opening, every record already there is checked and given to *seen*; a tail torn by a crash is completed
    or moved to a file beside, and told in ``notes``. Raises StoreError, naming file and line, for a damaged
    record.
    """

    def __init__(
        self,
        path: Path,
        *,
        seen: Callable[[Line], None] = lambda _line: None,
        anchor: Anchor | None = None,
    ) -> None:
        self.path = path
        self.notes: list[str] = []
        self.head = FIRST
        self.records = 0
        self.size = 0
        self._lock = threading.Lock()
        self._broken: StoreError | None = None
        self._flushed = 0
        self._fd = files.open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            self._reopen(seen, anchor)
        except BaseException:
            os.close(self._fd)
            raise
        self._dirty = threading.Event()
        self._closing = threading.Event()
        self._flusher = threading.Thread(target=self._keep_flushing, name="pytest-fairness-log", daemon=True)
        self._flusher.start()

    # ------------------------------------------------------------ writing

    def append(self, record: dict[str, Any]) -> tuple[int, bytes]:
        """Write *record*; its offset and its line. After any failure nothing more is written, as nothing more
        must be paid for that cannot be recorded. Raises StoreError.
        """
        with self._lock:
            if self._broken is not None:
                raise self._broken
            line, head = encode_line(record, self.head)
            try:
                files.write_all(self._fd, line, self.path)
            except StoreError as error:
                self._broken = error
                raise
            offset = self.size
            self.head, self.size, self.records = head, offset + len(line), self.records + 1
        if not self._dirty.is_set():
            self._dirty.set()
        return offset, line

    def flush(self) -> None:
        """Return once everything appended so far is on the disk. Raises StoreError if it is not."""
        with self._lock:
            if self._broken is not None:
                raise self._broken
            records = self.records
        if self._flushed < records:
            self._flush(records)

    def _flush(self, records: int) -> None:
        try:
            self._still_there()
            files.flush(self._fd, self.path)
        except StoreError as error:
            with self._lock:
                self._broken = self._broken or error
            raise
        self._flushed = max(self._flushed, records)

    def _still_there(self) -> None:
        try:
            same = os.path.samestat(self.path.lstat(), os.fstat(self._fd))
        except OSError:
            same = False
        if not self.path.parent.exists():
            raise files.removed(self.path.parent)
        if not same:
            raise StoreError(f"{self.path} was removed or replaced while it was being written: run again")

    def _keep_flushing(self) -> None:
        while True:
            self._dirty.wait()
            if self._closing.is_set():
                return
            self._dirty.clear()
            records = self.records
            new = records - self._flushed
            try:
                self._flush(records)
            except StoreError:
                return  # kept in _broken: the next append or flush raises it
            self._closing.wait(_PAUSE_BUSY if new > _BUSY else _PAUSE_IDLE)

    @property
    def descriptor(self) -> int:
        """The open file, for reading lines back by their offset."""
        return self._fd

    def summary(self) -> dict[str, int | str]:
        """What the manifest keeps of a log, so that a tail cut off later is missed."""
        return {"records": self.records, "bytes": self.size, "head": self.head}

    def close(self) -> None:
        """Flush and close. Raises StoreError where the log could not be written to its end. May be called
        twice."""
        if self._fd < 0:
            return
        self._closing.set()
        self._dirty.set()
        self._flusher.join()
        try:
            self.flush()
        finally:
            os.close(self._fd)
            self._fd = -1

    # ------------------------------------------------------------ opening again

    def _reopen(self, seen: Callable[[Line], None], anchor: Anchor | None) -> None:
        end = 0
        with self.path.open("rb") as stream:
            for line in scan(stream, self.path, anchor=anchor):
                if line.torn:
                    self._mend(line, seen)
                    break
                seen(line)
                self.head, self.records, end = line.hash, self.records + 1, line.end
        self.size = max(self.size, end)
        self._flushed = self.records

    def _mend(self, tail: Line, seen: Callable[[Line], None]) -> None:
        """A record cut short by a crash: finish it if only its newline is missing, else put it aside."""
        whole = tail.data + b"\n"
        try:
            self.head = check_line(whole, self.head)
        except BadLineError:
            side = self._put_aside(tail.data)
            os.ftruncate(self._fd, tail.offset)
            self.size = tail.offset
            self.notes.append(
                f"{self.path}, line {tail.number}: the last record was cut short by a crash; "
                f"its {len(tail.data)} bytes are in {side.name}"
            )
        else:
            files.write_all(self._fd, b"\n", self.path)
            seen(Line(tail.number, tail.offset, whole, self.head))
            self.records += 1
            self.size = tail.offset + len(whole)
            self.notes.append(f"{self.path}, line {tail.number}: the last record lacked its newline; completed")
        files.flush(self._fd, self.path)

    def _put_aside(self, data: bytes) -> Path:
        number = 1
        while (side := self.path.with_name(f"{self.path.name}.torn-{number}")).exists():
            number += 1
        descriptor = files.open_regular(side, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            files.write_all(descriptor, data, side)
            files.flush(descriptor, side)
        finally:
            os.close(descriptor)
        files.flush_directory(side.parent)
        return side


def read_line(descriptor: int, offset: int) -> bytes:
    """The line that begins at *offset* of an open log, with its newline."""
    data = files.read_at(descriptor, 8192, offset)
    while (end := data.find(b"\n")) < 0:
        more = files.read_at(descriptor, max(8192, len(data)), offset + len(data))
        if not more:
            raise StoreError(f"a record at byte {offset} ends before its line does: the log was cut while in use")
        data += more
    return data[: end + 1]
