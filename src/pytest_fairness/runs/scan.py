"""Read a log line by line, checking each: nothing is skipped, and a fault is named by file and line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pytest_fairness.errors import StoreError
from pytest_fairness.runs.lines import FIRST, BadLineError, check_line


class Line(NamedTuple):
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


class Anchor(NamedTuple):
    """What the manifest knows of a log: after so many records, its head was this hash."""

    records: int
    head: str


def scan(
    stream: BinaryIO,
    path: Path,
    *,
    offset: int = 0,
    number: int = 0,
    previous: str = FIRST,
    anchor: Anchor | None = None,
) -> Iterator[Line]:
    """The lines of the log *path*, open as *stream*, from *offset* on, where *number* lines went before.

    A torn tail comes last, if there is one. Raises StoreError for the first line that does not check, and for
    a log that ends before its *anchor* or has another record there.
    """
    stream.seek(offset)
    for data in stream:
        if not data.endswith(b"\n"):
            _check_length(path, number, anchor)
            yield Line(number + 1, offset, data, "", torn=True)
            return
        number += 1
        try:
            previous = check_line(data, previous)
            if anchor is not None and number == anchor.records and previous != anchor.head:
                raise BadLineError("the log was made anew: its hash is not the one in manifest.json")
        except BadLineError as error:
            raise StoreError(
                f"{path}, line {number}: {error}. Results cannot be taken from a damaged log: "
                "restore the file from a copy, or start a new run"
            ) from error
        yield Line(number, offset, data, previous)
        offset += len(data)
    _check_length(path, number, anchor)


def _check_length(path: Path, number: int, anchor: Anchor | None) -> None:
    if anchor is not None and number < anchor.records:
        raise StoreError(
            f"{path} ends after {number} records, but had {anchor.records} when the run was closed: "
            "restore the file from a copy, or start a new run"
        )
