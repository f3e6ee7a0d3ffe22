"""Salvaging: what still verifies of a damaged run, in a new run; the damaged one is read, and never written.

A record is taken where its own hash fits and its place in the log can be told: it follows the beginning, it leads to
the head that the manifest keeps, or what stands directly before it is debris. All else is listed as lost, by file and
line. Of each log the database or the exported file is read, whichever holds more. See
``docs/decisions/0090-salvaging.md``.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import sqlite3
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pytest_fairness.errors import StoreError, UsageError
from pytest_fairness.runs import database, files
from pytest_fairness.runs.database import log_name, writer_of
from pytest_fairness.runs.export import export_records
from pytest_fairness.runs.folder import reserve_run
from pytest_fairness.runs.lines import (
    FIRST,
    BadLineError,
    check_line,
    columns_of,
    decode_line,
    encode_line,
    encode_record,
    previous_of,
)
from pytest_fairness.runs.manifest import LOGS, NAME, Anchor, anchors_of, read_manifest, write_manifest
from pytest_fairness.runs.reader import RunReader, charge, count_trials

_MARK = b"\xef\xbb\xbf"
_FOREIGN = "a copy, or of another log: nothing in this one leads to it"
_ANEW = "the log was made anew: its hash is not the one in manifest.json, so that any of it may be changed"
_UNREAD = "it cannot be read: whether the logs end too early cannot be told"
_KEPT = (
    "command", "settings", "versions", "git_commit", "seed", "started", "endpoints", "resumed", "shard", "replay_of",
    "merged_from",
)  # fmt: skip
#: Ids to pass over where a page of the database cannot be read, and no more of them can be counted.
_FURTHEST = 1 << 22
#: Lines of a log with their numbers; None where there is one that cannot be read.
NumberedLines: TypeAlias = Iterable[tuple[int, bytes | None]]


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
    """Records that verify and follow each other: so many from line *first*.

    *previous* is the hash that the first one follows, *end* that of the last. *after_debris*: what stands directly
    before does not verify, which explains a gap. *anchored*: one of them is the head of the manifest, or leads to it.
    """

    first: int
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
    """The segments of a log that can be taken, in the order in which they were written, and what was lost or mended."""

    taken: list[Segment] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    mended: list[Lost] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(segment.count for segment in self.taken)


@dataclass(slots=True)
class Salvage:
    """What came of it: the new run, how many records and finished trials it holds, and what was *lost* or *mended*
    (line endings, a byte order mark) on the way.
    """

    directory: Path
    records: int = 0
    trials: int = 0
    lost: list[Lost] = field(default_factory=list)
    mended: list[Lost] = field(default_factory=list)


def salvage(directory: Path, root: Path) -> Salvage:
    """A new run under *root* with every record of the run in *directory* that verifies.

    Raises UsageError where the run is whole, so that there is nothing to salvage, or where nothing of it verifies;
    StoreError where it cannot be read or the new one cannot be written.
    """
    if not directory.is_dir():
        raise UsageError(f"{directory} is not the folder of a run: give one of those under .fairness/runs")
    with contextlib.suppress(StoreError):
        RunReader.open(directory).connection.close()
        raise UsageError(
            f"{directory} is whole, there is nothing to salvage: go on with it (--fairness-resume) or judge it "
            "(--fairness-replay) as it is"
        )
    run = reserve_run(root, uuid.uuid4().hex)
    try:
        with _Remains(directory) as remains:
            return _fill(run, directory, remains)
    except BaseException:
        shutil.rmtree(run)
        raise


def _fill(run: Path, directory: Path, remains: _Remains) -> Salvage:
    done = Salvage(run)
    manifest: dict[str, Any] = {}
    anchors: dict[str, Anchor] = {}
    try:
        manifest = read_manifest(directory)
        anchors = anchors_of(directory, manifest)
    except StoreError:
        manifest = {}
        done.lost.append(Lost(NAME, 0, 0, _UNREAD))
    connection = database.connect(run / database.NAME)
    try:
        connection.execute("BEGIN IMMEDIATE")
        for name in sorted({*remains.logs, *anchors}):
            if name not in remains.logs:
                done.lost.append(Lost(name, 1, anchors[name].records, "the file is missing"))
                continue
            surveys = [(survey(name, lines, anchors.get(name)), lines) for lines in remains.of(name)]
            found, lines = max(surveys, key=lambda one: one[0].count)
            _write(connection, name, found, lines)
            done.mended += found.mended
            done.lost += found.lost
        (done.records,) = connection.execute("SELECT count(*) FROM records").fetchone()
        if not done.records:
            raise UsageError(f"nothing of {directory} verifies: there is nothing to salvage")
        done.trials = count_trials(connection)
        charge(connection, at_least=remains.account())
        connection.execute("COMMIT")
        done.lost.sort(key=lambda lost: (lost.file, lost.first))
        logs = export_records(connection, run)
    finally:
        connection.close()
    about = {
        "run": directory.name,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "records": done.records,
        "lost": [str(lost) for lost in done.lost],
        "mended": [str(mended) for mended in done.mended],
    }
    kept = {key: manifest[key] for key in _KEPT if key in manifest}
    write_manifest(run, {**kept, "id": run.name, "logs": logs, "salvaged_from": about})
    RunReader.open(run).connection.close()
    return done


def _write(connection: sqlite3.Connection, name: str, found: Survey, lines: _Lines) -> None:
    """Write the records of *found* anew, chained to each other, each with the hash that it had."""
    head, count, writer = FIRST, 0, writer_of(name)
    for segment in found.taken:
        for number, data in lines.between(segment.first, segment.last):
            line = None if data is None else verified(data, first=number == 1)
            if line is None:
                raise StoreError(f"{name}, line {number} changed while it was read: is the run still going on?")
            kind, key, status = columns_of(line.decode("ascii"))
            if kind == "trial" and status not in ("unknown", "error"):
                known = "SELECT 1 FROM records WHERE key = ? AND type = 'trial' AND status NOT IN ('unknown', 'error')"
                if connection.execute(known, (key,)).fetchone() is not None:
                    found.lost.append(Lost(name, number, number, "this trial is already in another record"))
                    continue
            record = decode_line(line)
            del record["prev"]
            record["salvaged"] = record.pop("hash")
            text, head = encode_line(encode_record(record), head)
            count += 1
            connection.execute(
                "INSERT INTO records (writer, number, type, key, status, record) VALUES (?, ?, ?, ?, ?, ?)",
                (writer, count, kind, key, status, text),
            )


# ---------------------------------------------------------------- what is left of the damaged run


class _Lines:
    """The lines of one log in one place, which can be read again and again."""

    def __init__(self, connection: sqlite3.Connection, table: str, name: str) -> None:
        self._connection, self._table, self._name = connection, table, name

    def __iter__(self) -> Iterator[tuple[int, bytes | None]]:
        return self.between(0, 1 << 62)

    def between(self, first: int, last: int) -> Iterator[tuple[int, bytes | None]]:
        query = f"SELECT number, line FROM {self._table} WHERE log = ? AND number BETWEEN ? AND ? ORDER BY number"
        yield from self._connection.execute(query, (self._name, first, last))


class _Remains:
    """Every line that can be read of a damaged run, of its database (a copy) and its exported files, as it stands."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._connection = sqlite3.connect("", isolation_level=None)
        for table in ("stored", "exported"):
            self._connection.execute(
                f"CREATE TABLE {table} (log TEXT, number INTEGER, line BLOB, PRIMARY KEY (log, number)) WITHOUT ROWID"
            )
        self._account = 0

    def __enter__(self) -> _Remains:
        self._connection.execute("BEGIN")
        for path in sorted(self._directory.glob(LOGS)):
            with os.fdopen(files.open_regular(path, os.O_RDONLY), "rb") as stream:
                rows = ((path.name, number, data) for number, data in enumerate(stream, 1))
                self._connection.executemany("INSERT INTO exported VALUES (?, ?, ?)", rows)
        with tempfile.TemporaryDirectory() as folder:
            copied = Path(folder) / database.NAME
            for path in self._directory.glob(f"{database.NAME}*"):
                shutil.copy(path, copied.with_name(path.name), follow_symlinks=False)
            if copied.exists():
                with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(copied)) as connection:
                    self._read(connection)
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _read(self, connection: sqlite3.Connection) -> None:
        connection.text_factory = bytes
        with contextlib.suppress(sqlite3.Error):
            self._account = sum(connection.execute("SELECT settled, reserved FROM account").fetchone())
        last, step, furthest = 0, 1, _FURTHEST
        with contextlib.suppress(sqlite3.Error):
            (furthest,) = connection.execute("SELECT ifnull(max(id), 0) FROM records").fetchone()
        while last <= furthest:
            try:
                query = "SELECT id, writer, number, record FROM records WHERE id > ? ORDER BY id"
                for at, writer, number, record in connection.execute(query, (last,)):
                    last, step = at, 1
                    name = log_name(bytes(writer).decode("ascii", "replace"))
                    row = (name, number, bytes(record) + b"\n")
                    self._connection.execute("INSERT OR IGNORE INTO stored VALUES (?, ?, ?)", row)
            except sqlite3.DatabaseError:  # a page that cannot be read: what stands on it is passed over, and missed
                last, step = last + step, 2 * step
            else:
                break
        self._mark_gaps()

    def _mark_gaps(self) -> None:
        """Where numbers are missing, there were records that cannot be read."""
        self._connection.execute(
            "INSERT OR IGNORE INTO stored SELECT log, number - 1, NULL FROM stored WHERE number > 1 AND NOT EXISTS "
            "(SELECT 1 FROM stored AS other WHERE other.log = stored.log AND other.number = stored.number - 1)"
        )

    @property
    def logs(self) -> set[str]:
        return {name for (name,) in self._connection.execute("SELECT log FROM stored UNION SELECT log FROM exported")}

    def of(self, name: str) -> list[_Lines]:
        """The lines of the log *name* in each place that has any."""
        return [_Lines(self._connection, table, name) for table in ("stored", "exported")]

    def account(self) -> int:
        """What was spent and reserved, in nano-dollars, as far as the database still says it."""
        return self._account


# ---------------------------------------------------------------- which lines can be taken


def verified(data: bytes, *, first: bool) -> bytes | None:
    """The record on the line *data* if its own hash fits, else None.

    What editors and git do to a whole file is undone: a byte order mark, another line ending, none at the end.
    """
    line = (data.removeprefix(_MARK) if first else data).rstrip(b"\r\n")
    return None if _fault(line) else line


def _fault(line: bytes) -> str:
    """Why *line* is no record; empty where it is one."""
    try:
        check_line(line, previous_of(line))
        decode_line(line)
    except BadLineError as error:
        return str(error)
    return ""


def survey(name: str, lines: NumberedLines, anchor: Anchor | None) -> Survey:
    """Look through the *lines* of the log *name*, of which the manifest knows *anchor*."""
    found = Survey()
    segments = _segments(name, lines, anchor, found)
    total = sum(segment.count for segment in segments)
    if anchor is not None and not any(s.anchored for s in segments) and not found.lost and total >= anchor.records:
        found.lost.append(Lost(name, 1, total, _ANEW))
        return found
    _lead_to_anchor(segments)
    left = _take(segments, found, name)
    found.lost += [Lost(name, segment.first, segment.last, _FOREIGN) for segment in left]
    if anchor is not None and total < anchor.records and not any(segment.anchored for segment in segments):
        why = f"the log had {anchor.records} records when the run was closed: the end is missing"
        found.lost.append(Lost(name, total + len(found.lost) + 1, anchor.records, why))
    return found


def _segments(name: str, lines: NumberedLines, anchor: Anchor | None, found: Survey) -> list[Segment]:
    segments: list[Segment] = []
    current: Segment | None = None
    debris = False
    for number, data in lines:
        line = None if data is None else verified(data, first=number == 1)
        if data is None or line is None:
            why = "cannot be read" if data is None else "cut short" if not data.endswith(b"\n") else ""
            found.lost.append(Lost(name, number, number, why or _fault((data or b"").rstrip(b"\r\n")) or "no record"))
            current, debris = None, True
            continue
        if line + b"\n" != data:
            _note_mended(found, name, number)
        previous, end = previous_of(line), line[-66:-2].decode("ascii")
        if current is not None and previous == current.end:
            current.end, current.count = end, current.count + 1
        else:
            current = Segment(number, previous, end, after_debris=debris)
            segments.append(current)
        current.anchored |= anchor is not None and end == anchor.head
        debris = False
    return segments


def _note_mended(found: Survey, file: str, number: int) -> None:
    why = "line ending, or byte order mark, put right"
    if found.mended and found.mended[-1].last == number - 1:
        found.mended[-1] = Lost(file, found.mended[-1].first, number, why)
    else:
        found.mended.append(Lost(file, number, number, why))


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
