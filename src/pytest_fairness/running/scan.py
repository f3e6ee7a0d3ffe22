"""Read a log line by line, checking each: nothing is skipped, and a fault is named by file and line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pytest_fairness.errors import StoreError
from pytest_fairness.running.lines import FIRST, BadLineError, check_line


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log: its number (from 1), where it begins, its bytes with the newline, its hash.

    ``torn`` marks bytes after the last newline: a record being written, or cut short by a crash. They are
    unchecked.
    """

    number: int
    offset: int
    data: bytes
    hash: str
    torn: bool = False

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


def scan(
    stream: BinaryIO, path: Path, *, offset: int = 0, number: int = 0, previous: str = FIRST
) -> Iterator[Line]:
    """The lines of the log *path*, open as *stream*, from *offset* on, where *number* lines went before.

    A torn tail comes last, if there is one. Raises StoreError for the first line that does not check.
    """
    stream.seek(offset)
    for data in stream:
        number += 1
        if not data.endswith(b"\n"):
            yield Line(number, offset, data, "", torn=True)
            return
        try:
            previous = check_line(data, previous)
        except BadLineError as error:
            raise StoreError(
                f"{path}, line {number}: {error}. Results cannot be taken from a damaged log: "
                "restore the file from a copy, or start a new run"
            ) from error
        yield Line(number, offset, data, previous)
        offset += len(data)
