"""A damaged log, surveyed: which of its records verify and in which order they stood, and what is lost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_fairness.runs import files
from pytest_fairness.runs.lines import FIRST, BadLineError, check_line, decode_line, previous_of
from pytest_fairness.runs.scan import Anchor

_MARK = b"\xef\xbb\xbf"
_FOREIGN = "a copy, or of another log: nothing in this one leads to it"
_ANEW = "the log was made anew: its hash is not the one in manifest.json, so that any of it may be changed"


@dataclass(frozen=True, slots=True)
class Lost:
    """Lines of a log, from 1, and what is the matter with them. A ``first`` of 0 means the file as a whole."""

    file: str
    first: int
    last: int
    why: str

    def __str__(self) -> str:
        if self.first == 0:
            return f"{self.file}: {self.why}"
        lines = f"line {self.first}" if self.first == self.last else f"lines {self.first}-{self.last}"
        return f"{self.file}, {lines}: {self.why}"


@dataclass(slots=True)
class Segment:
    """Records that verify and follow each other: so many from line *first*, which begins at *offset*.

    *previous* is the hash that the first one follows, *end* that of the last. *after_debris*: what stands directly
    before does not verify, which explains a gap. *anchored*: one of them is the head of the manifest, or leads to it.
    """

    first: int
    offset: int
    previous: str
    end: str
    count: int = 1
    after_debris: bool = False
    anchored: bool = False

    @property
    def last(self) -> int:
        return self.first + self.count - 1


@dataclass(slots=True)
class Survey:
    """The segments that can be taken, in the order in which they were written, and what was lost or mended."""

    taken: list[Segment] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    mended: list[Lost] = field(default_factory=list)


def verified(data: bytes, *, first: bool) -> bytes | None:
    """The record on the line *data* if its own hash fits, else None.

    What editors and git do to a whole file is undone: a byte order mark, another line ending, none at the end.
    """
    line = (data.removeprefix(_MARK) if first else data).rstrip(b"\r\n") + b"\n"
    try:
        check_line(line, previous_of(line))
        decode_line(line)
    except BadLineError:
        return None
    return line


def survey(path: Path, anchor: Anchor | None) -> Survey:
    """Look through the log *path*, of which the manifest knows *anchor*. Raises StoreError where it cannot be read."""
    found = Survey()
    segments = _segments(path, anchor, found)
    total = sum(segment.count for segment in segments)
    if anchor is not None and not any(s.anchored for s in segments) and not found.lost and total >= anchor.records:
        found.lost.append(Lost(path.name, 1, total, _ANEW))
        return found
    _lead_to_anchor(segments)
    left = _take(segments, found, path.name)
    found.lost += [Lost(path.name, segment.first, segment.last, _FOREIGN) for segment in left]
    if anchor is not None and total < anchor.records and not any(segment.anchored for segment in segments):
        why = f"the log had {anchor.records} records when the run was closed: the end is missing"
        found.lost.append(Lost(path.name, total + len(found.lost) + 1, anchor.records, why))
    return found


def _segments(path: Path, anchor: Anchor | None, found: Survey) -> list[Segment]:
    segments: list[Segment] = []
    current: Segment | None = None
    debris = False
    offset = 0
    with os.fdopen(files.open_regular(path, os.O_RDONLY), "rb") as stream:
        for number, data in enumerate(stream, 1):
            line = verified(data, first=number == 1)
            if line is None:
                found.lost.append(Lost(path.name, number, number, _why(data)))
                current, debris = None, True
            else:
                if line != data:
                    _note_mended(found, path.name, number)
                previous, end = previous_of(line), line[-67:-3].decode("ascii")
                if current is not None and previous == current.end:
                    current.end, current.count = end, current.count + 1
                else:
                    current = Segment(number, offset, previous, end, after_debris=debris)
                    segments.append(current)
                current.anchored |= anchor is not None and end == anchor.head
                debris = False
            offset += len(data)
    return segments


def _note_mended(found: Survey, file: str, number: int) -> None:
    why = "line ending, or byte order mark, put right"
    if found.mended and found.mended[-1].last == number - 1:
        found.mended[-1] = Lost(file, found.mended[-1].first, number, why)
    else:
        found.mended.append(Lost(file, number, number, why))


def _why(data: bytes) -> str:
    if not data.endswith(b"\n"):
        return "cut short"
    try:
        check_line(data, previous_of(data))
        decode_line(data)
    except BadLineError as error:
        return str(error)
    return "not a record of this log"


def _lead_to_anchor(segments: Sequence[Segment]) -> None:
    """Mark what comes before the anchored segments: a hash that leads to the head is as good as the head."""
    wanted = {segment.previous for segment in segments if segment.anchored}
    ends = {segment.end: segment for segment in segments if not segment.anchored}
    while wanted:
        segment = ends.pop(wanted.pop(), None)
        if segment is not None:
            segment.anchored = True
            wanted.add(segment.previous)


def _take(segments: Sequence[Segment], found: Survey, file: str) -> list[Segment]:
    """Put the segments that have a place in order into *found*; those that are left over."""
    left = list(segments)
    head = FIRST
    while left:
        following = next((segment for segment in left if segment.previous == head), None)
        if following is None:  # over a gap: to what debris explains, or the manifest vouches for
            following = next((s for s in left if s.previous != FIRST and (s.after_debris or s.anchored)), None)
            if following is None:
                break
            if not following.after_debris:
                why = "records before this line are missing; how many cannot be told"
                found.lost.append(Lost(file, following.first, following.first, why))
        left.remove(following)
        found.taken.append(following)
        head = following.end
    return left
