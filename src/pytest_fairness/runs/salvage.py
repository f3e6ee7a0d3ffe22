"""Salvaging: what still verifies of a damaged run, in a new run; the damaged one is read, and never written.

A record is taken where its own hash fits and its place in the log can be told: it follows the beginning, it leads to
the head that the manifest keeps, or what stands directly before it is debris. All else is listed as lost, by file and
line. Of each log the database or the exported file is read, whichever holds more. See
``docs/decisions/0090-salvaging.md``.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_fairness.errors import StoreError, UsageError
from pytest_fairness.runs import database, files
from pytest_fairness.runs.database import insert_records, log_name, writer_of
from pytest_fairness.runs.export import make_run
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
from pytest_fairness.runs.manifest import LOGS, NAME, Anchor, anchors_of, read_manifest
from pytest_fairness.runs.reader import reading

_FOREIGN = "a copy, or of another log: nothing in this one leads to it"
_ANEW = "the log was made anew: its hash is not the one in manifest.json, so that any of it may be changed"
_UNREAD = "it cannot be read: whether the logs end too early cannot be told"
_GAP = "records before this line are missing; how many cannot be told"
_MENDED = "line ending, or byte order mark, put right"
_TWICE = "this trial is already in another record"
_KEPT = (
    "command", "settings", "versions", "git_commit", "seed", "started", "endpoints", "resumed", "shard", "replay_of",
    "merged_from",
)  # fmt: skip
#: Ids to pass over where a page of the database cannot be read, and no more of them can be counted.
_FURTHEST = 1 << 22
#: Every line that can be read, of a log in one place. ``why`` it is no record, or which hash it follows and which is
#: its own; ``anchored`` where it leads to the manifest's head, ``place`` where it is taken.
_LINES = """CREATE TABLE lines (
    source TEXT, log TEXT, number INTEGER, line BLOB, mended INTEGER, why TEXT, previous TEXT, hash TEXT,
    anchored INTEGER DEFAULT 0, place INTEGER, PRIMARY KEY (source, log, number))"""
_INDEXES = [f"CREATE INDEX by_{column} ON lines (source, log, {column})" for column in ("previous", "hash", "place")]
_LOG = "FROM lines WHERE source = :source AND log = :log"
_LEADS = f"""UPDATE lines SET anchored = 1 WHERE rowid IN (
    WITH RECURSIVE leading(hash) AS (SELECT :anchor UNION SELECT previous FROM lines JOIN leading
    ON lines.hash = leading.hash WHERE source = :source AND log = :log)
    SELECT rowid {_LOG} AND hash IN leading)"""
_NEXT = f"SELECT number, hash, 1 {_LOG} AND previous = :head AND place IS NULL ORDER BY number LIMIT 1"
#: Over a gap: to what debris explains, or the manifest vouches for.
_OVER = f"""SELECT number, hash, debris FROM (SELECT *, EXISTS (SELECT 1 FROM lines AS before WHERE
    before.source = lines.source AND before.log = lines.log AND before.number = lines.number - 1
    AND before.why IS NOT NULL) AS debris {_LOG} AND hash IS NOT NULL AND place IS NULL AND previous <> :first)
    AS line WHERE (debris OR anchored) AND NOT EXISTS (SELECT 1 {_LOG} AND hash = line.hash AND place IS NOT NULL)
    ORDER BY number LIMIT 1"""


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
class Salvage:
    """What came of it: the new run, how many records and finished trials it holds, and what was *lost* or *mended*
    (line endings, a byte order mark) on the way.
    """

    directory: Path = Path()
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
    with contextlib.suppress(StoreError), reading(directory):
        raise UsageError(
            f"{directory} is whole, there is nothing to salvage: resume it (--fairness-resume={directory.name}) or "
            f"judge it (--fairness-replay={directory.name}) as it is"
        )
    done = Salvage()
    with contextlib.closing(sqlite3.connect("", isolation_level=None)) as remains:
        account = _collect(remains, directory)
        done.directory = make_run(root, lambda connection: _fill(connection, remains, directory, account, done))
    return done


def _fill(
    connection: sqlite3.Connection, remains: sqlite3.Connection, directory: Path, account: int, done: Salvage
) -> dict[str, Any]:
    manifest: dict[str, Any] = {}
    anchors: dict[str, Anchor] = {}
    try:
        anchors = anchors_of(directory, manifest := read_manifest(directory))
    except StoreError:
        manifest = {}
        done.lost.append(Lost(NAME, 0, 0, _UNREAD))
    logs = {name for (name,) in remains.execute("SELECT DISTINCT log FROM lines")}
    for name in sorted(logs | anchors.keys()):
        if name not in logs:
            done.lost.append(Lost(name, 1, anchors[name].records, "the file is missing"))
            continue
        surveys = [_Survey(remains, source, name, anchors.get(name)) for source in ("stored", "exported")]
        found = max(surveys, key=lambda survey: (survey.taken, survey.total))
        insert_records(connection, writer_of(name), _anew(connection, found))
        done.mended += found.mended
        done.lost += found.lost
    (done.records,) = connection.execute("SELECT count(*) FROM records").fetchone()
    (done.trials,) = connection.execute(database.QUERIES["count"]).fetchone()
    if not done.records:
        raise UsageError(f"nothing of {directory} verifies: there is nothing to salvage")
    connection.execute("UPDATE account SET settled = ?", (account,))
    done.lost.sort(key=lambda lost: (lost.file, lost.first))
    about = {
        "run": directory.name,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "records": done.records,
        "lost": [str(lost) for lost in done.lost],
        "mended": [str(mended) for mended in done.mended],
    }
    return {**{key: manifest[key] for key in _KEPT if key in manifest}, "salvaged_from": about}


def _anew(connection: sqlite3.Connection, found: _Survey) -> Iterator[str]:
    """The records of *found*, chained to each other, each with the hash that it had."""
    head = FIRST
    known = "SELECT 1 FROM records WHERE key = ? AND type = 'trial' AND status NOT IN ('unknown', 'error')"
    for number, line in found.select("number, line", "place IS NOT NULL ORDER BY place"):
        kind, key, status = columns_of(line)
        if kind == "trial" and status not in ("unknown", "error") and connection.execute(known, (key,)).fetchone():
            found.lost.append(Lost(found.name, number, number, _TWICE))
            continue
        record = decode_line(line)
        del record["prev"]
        record["salvaged"] = record.pop("hash")
        text, head = encode_line(encode_record(record), head)
        yield text


# ---------------------------------------------------------------- what is left of the damaged run


def _collect(remains: sqlite3.Connection, directory: Path) -> int:
    """Every line that can be read of the run, of its database (a copy) and its exported files, as it stands, into
    *remains*; what was spent and reserved, in nano-dollars, as far as the database still says it.
    """
    account = 0
    for statement in (_LINES, *_INDEXES, "BEGIN"):
        remains.execute(statement)
    for path in sorted(directory.glob(LOGS)):
        with os.fdopen(files.open_regular(path, os.O_RDONLY), "rb") as stream:
            _keep(remains, (_line("exported", path.name, number, data) for number, data in enumerate(stream, 1)))
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / database.NAME
        for path in directory.glob(f"{database.NAME}*"):
            shutil.copy(path, copied.with_name(path.name), follow_symlinks=False)
        if copied.exists():
            with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(copied)) as connection:
                connection.text_factory = bytes
                with contextlib.suppress(sqlite3.Error):
                    account = sum(connection.execute("SELECT settled, reserved FROM account").fetchone())
                _keep(remains, _stored(connection))
    # Where numbers are missing, there were records that cannot be read.
    remains.execute(
        "INSERT OR IGNORE INTO lines (source, log, number, why) SELECT source, log, number - 1, 'cannot be read' "
        "FROM lines WHERE source = 'stored' AND number > 1"
    )
    return account


def _keep(remains: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> None:
    remains.executemany(
        "INSERT OR IGNORE INTO lines (source, log, number, line, mended, why, previous, hash) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )


def _line(source: str, log: str, number: int, data: bytes) -> tuple[Any, ...]:
    # What editors and git do to a whole file is undone: a byte order mark, another line ending, none at the end.
    line = (data.removeprefix(b"\xef\xbb\xbf") if number == 1 else data).rstrip(b"\r\n")
    try:
        digest = check_line(line, None)
        decode_line(line)
    except BadLineError as error:
        return source, log, number, None, False, str(error) if data.endswith(b"\n") else "cut short", None, None
    return source, log, number, line.decode("ascii"), line + b"\n" != data, None, previous_of(line), digest


def _stored(connection: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    last, step, furthest = 0, 1, _FURTHEST
    with contextlib.suppress(sqlite3.Error):
        (furthest,) = connection.execute("SELECT ifnull(max(id), 0) FROM records").fetchone()
    query = "SELECT id, writer, number, record FROM records WHERE id > ? ORDER BY id"
    while last <= furthest:
        try:
            for at, writer, number, record in connection.execute(query, (last,)):
                last, step = at, 1
                yield _line("stored", log_name(bytes(writer).decode("ascii", "replace")), number, bytes(record) + b"\n")
        except sqlite3.DatabaseError:  # a page that cannot be read: what stands on it is passed over, and missed
            last, step = last + step, 2 * step
        else:
            return


# ---------------------------------------------------------------- which lines can be taken


class _Survey:
    """The lines of the log *name* in one place, of which the manifest knows *anchor*: how many of them are records,
    how many can be taken, in the order in which they were written, and what was lost or mended.
    """

    def __init__(self, remains: sqlite3.Connection, source: str, name: str, anchor: Anchor | None) -> None:
        self.name = name
        self.taken = 0
        self._remains, self._log = remains, {"source": source, "log": name, "first": FIRST}
        ((self.total,),) = self.select("count(hash)")
        self.lost = [
            Lost(name, number, number, why)
            for number, why in self.select("number, why", "why IS NOT NULL ORDER BY number")
        ]
        self.mended = self._ranges("mended", _MENDED)
        anchored = anchor is not None and self._run(_LEADS, anchor=anchor.head).rowcount > 0
        if anchor is not None and not anchored and not self.lost and self.total >= anchor.records:
            self.lost = [Lost(name, 1, self.total, _ANEW)]
            return
        self._take()
        self.lost += self._ranges("hash IS NOT NULL AND place IS NULL", _FOREIGN)
        if anchor is not None and self.total < anchor.records and not anchored:
            why = f"the log had {anchor.records} records when the run was closed: the end is missing"
            self.lost.append(Lost(name, self.total + len(self.lost) + 1, anchor.records, why))

    def select(self, columns: str, which: str = "1") -> Iterator[tuple[Any, ...]]:
        """*columns* of the lines *which* …"""
        return self._run(f"SELECT {columns} {_LOG} AND {which}")

    def _run(self, statement: str, **values: Any) -> sqlite3.Cursor:
        return self._remains.execute(statement, {**self._log, **values})

    def _take(self) -> None:
        """Give those lines a place that have one, in order."""
        head = FIRST
        while following := self._run(_NEXT, head=head).fetchone() or self._run(_OVER).fetchone():
            number, head, debris = following
            if not debris:
                self.lost.append(Lost(self.name, number, number, _GAP))
            self.taken += 1
            place = f"UPDATE lines SET place = :place WHERE rowid = (SELECT rowid {_LOG} AND number = :number)"
            self._run(place, place=self.taken, number=number)

    def _ranges(self, which: str, why: str) -> list[Lost]:
        numbers = [number for (number,) in self.select("number", f"{which} ORDER BY number")]
        neighbours = itertools.groupby(enumerate(numbers), key=lambda at: at[1] - at[0])
        found = [[number for _, number in some] for _, some in neighbours]
        return [Lost(self.name, some[0], some[-1], why) for some in found]
