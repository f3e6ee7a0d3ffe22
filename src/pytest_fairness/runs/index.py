"""Which trials the logs of a run hold, and where: kept up to date by reading only what is new in each
file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pytest_fairness.runs import files
from pytest_fairness.runs.lines import FIRST, decode_line, kind_and_key
from pytest_fairness.runs.log import read_line
from pytest_fairness.runs.manifest import LOGS
from pytest_fairness.runs.places import Places
from pytest_fairness.runs.scan import Anchor, Line, scan

PATTERN = LOGS
_STATUS = len('{"type":"trial","key":"') + 64 + len('",')
_PROVISIONAL = (b'"status":"unknown"', b'"status":"error"')
#: A place is offset × FILES + number of the file: one small integer a trial.
FILES = 1 << 12


def is_provisional(line: bytes) -> bool:
    """Whether the trial on this line came to nothing, and may be asked again on request: unknown, or an error."""
    return line.startswith(_PROVISIONAL, _STATUS)


@dataclass(slots=True)
class _Tail:
    """Another writer's log as far as it was read."""

    path: Path
    stream: BinaryIO
    offset: int = 0
    lines: int = 0
    flushed: int = 0
    head: str = FIRST


class Index:
    """The finished trials of all writers' logs, and the attempts at those that are not finished yet.

    Every line is checked as it is read. Raises StoreError for a damaged one, wherever it is.
    """

    def __init__(self, directory: Path, own: Path, anchors: Mapping[str, Anchor]) -> None:
        self.directory = directory
        self.own = own
        self._anchors = anchors
        self.finished = Places()
        self.provisional: set[str] = set()
        self._designs: list[int] = []
        self._batches: list[int] = []
        self._begun: dict[str, list[int]] = {}
        self._own_fd: int | None = None
        self._tails: list[_Tail] = []
        self._listed = -1

    # ------------------------------------------------------------ what is new

    def own_log(self, descriptor: int) -> None:
        """This process's own log is open for reading as *descriptor*."""
        self._own_fd = descriptor

    def note_own(self, offset: int, line: bytes) -> None:
        """Take in a line of this process's own log."""
        self._note(0, offset, line)

    def refresh(self) -> bool:
        """Take in what the other writers have written since; whether there was anything."""
        news = False
        try:
            listed = self.directory.stat().st_mtime_ns
        except FileNotFoundError:
            raise files.removed(self.directory) from None
        if listed != self._listed:
            self._open_new()
            self._listed = listed
        for number, tail in enumerate(self._tails, 1):
            if os.fstat(tail.stream.fileno()).st_size > tail.offset:
                for line in self._new_lines(tail):
                    self._note(number, line.offset, line.data)
                    news = True
        return news

    def _open_new(self) -> None:
        known = {self.own, *(tail.path for tail in self._tails)}
        for path in sorted(set(self.directory.glob(PATTERN)) - known):
            stream = os.fdopen(files.open_regular(path, os.O_RDONLY), "rb")
            self._tails.append(_Tail(path, stream))

    def _new_lines(self, tail: _Tail) -> Iterator[Line]:
        lines = scan(
            tail.stream,
            tail.path,
            offset=tail.offset,
            number=tail.lines,
            previous=tail.head,
            anchor=self._anchors.get(tail.path.name),
        )
        for line in lines:
            if line.torn:  # still being written, or its writer died: its owner or the reader deals with it
                return
            tail.offset, tail.lines, tail.head = line.end, line.number, line.hash
            yield line

    def _note(self, number: int, offset: int, line: bytes) -> None:
        kind, key = kind_and_key(line)
        place = offset * FILES + number
        if kind == "trial":
            self._begun.pop(key, None)
            # Asked again on request, a trial that came to nothing has two records: the one that came to something
            # counts, in whichever order the files are read.
            if key not in self.finished or key in self.provisional:
                self.finished[key] = place
                (self.provisional.add if is_provisional(line) else self.provisional.discard)(key)
        elif kind in ("sent", "attempt"):
            self._begun.setdefault(key, []).append(place)
        elif kind == "design":
            self._designs.append(place)
        elif kind == "batch":
            self._batches.append(place)

    # ------------------------------------------------------------ what is there

    def settled(self, key: str) -> bool:
        """Whether the trial *key* is finished for good: nobody will ask it again, not on request either."""
        return key in self.finished and key not in self.provisional

    def trial(self, key: str) -> dict[str, Any] | None:
        """The record of the finished trial *key*, if there is one."""
        place = self.finished.get(key)
        if place is None:
            return None
        return {**self._record(place), "key": key}  # the caller's own string: many trials are held at once

    def begun(self, key: str) -> list[dict[str, Any]]:
        """The ``sent`` and ``attempt`` records of a trial that is not finished, in the order of writing."""
        return [self._record(place) for place in self._begun.get(key, ())]

    def designs(self) -> list[dict[str, Any]]:
        """The ``design`` records of all writers."""
        return [self._record(place) for place in self._designs]

    def batches(self) -> list[dict[str, Any]]:
        """The ``batch`` records of all writers."""
        return [self._record(place) for place in self._batches]

    def _record(self, place: int) -> dict[str, Any]:
        offset, number = divmod(place, FILES)
        if number == 0 and self._own_fd is not None:
            return decode_line(read_line(self._own_fd, offset))
        return decode_line(read_line(self._tails[number - 1].stream.fileno(), offset))

    def heads(self) -> dict[str, dict[str, int | str]]:
        """How far each other writer's log was read: what the manifest keeps of it."""
        return {
            tail.path.name: {"records": tail.lines, "bytes": tail.offset, "head": tail.head} for tail in self._tails
        }

    def flush_others(self) -> None:
        """Have the disk hold what was read from other writers' logs."""
        for tail in self._tails:
            if tail.flushed < tail.offset:
                files.flush(tail.stream.fileno(), tail.path)
                tail.flushed = tail.offset

    def close(self) -> None:
        for tail in self._tails:
            tail.stream.close()
