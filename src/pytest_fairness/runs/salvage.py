"""Salvaging: what still verifies of a damaged run, in a new run; the damaged one is read, and never
written.

A record is taken where its digest hash fits and its place in the log can be told: it follows the
beginning, it leads to the head that the manifest keeps, or what stands directly before it is
debris. All else is listed as lost, by file and line. Of each log the database or the exported file
is read, whichever holds more. See ``docs/decisions/0090-salvaging.md``.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pytest_fairness.errors import StoreError, UsageError
from pytest_fairness.runs import files
from pytest_fairness.runs.database import (
    NAME,
    QUERIES,
    check_version,
    insert_records,
    log_name,
    writer_of,
)
from pytest_fairness.runs.export import make_run
from pytest_fairness.runs.lines import (
    FIRST,
    BadLineError,
    as_line,
    chained_digest,
    check_line,
    columns_of,
    decode_line,
    encode_record,
)
from pytest_fairness.runs.manifest import LOGS, Anchor, anchors_of, read_manifest
from pytest_fairness.runs.packing import COLUMNS, Row, Unpacker, legible
from pytest_fairness.runs.reader import reading

_FOREIGN = "a copy, or of another log: nothing in this one leads to it"
_ANEW = (
    "the log was made anew: its hash is not the one in manifest.json, so that any of it may be "
    "changed"
)
_UNREAD = "it cannot be read: whether the logs end too early cannot be told"
_GAP = "records before this line are missing; how many cannot be told"
_TWICE = "this trial is already in another record"
_KEPT = (
    "session", "sessions", "command", "settings", "versions", "git_commit", "run_by", "seed", "started", "endpoints",
    "resumed", "shard",
    "replay_of", "merged_from",
)  # fmt: skip
#: Ids to pass over at once, at the most, where pages of the database cannot be read.
_FURTHEST = 1 << 22


class Lost(NamedTuple):
    """Lines of a log, from 1, and what is the matter with them. A ``first`` of 0 means the file as
    a whole.
    """

    file: str
    first: int
    last: int
    why: str

    def __str__(self) -> str:
        lines = f", lines {self.first}-{self.last}"
        if not self.first:
            lines = ""
        elif self.first == self.last:
            lines = f", line {self.first}"
        return f"{self.file}{lines}: {self.why}"


@dataclass(slots=True)
class Salvage:
    """The result of a salvage: the new run, how many records and finished trials it holds, and what
    was lost.
    """

    directory: Path = Path()
    records: int = 0
    trials: int = 0
    lost: list[Lost] = field(default_factory=list)


def salvage(directory: Path, root: Path) -> Salvage:
    """A new run under *root* with every record of the run in *directory* that verifies.

    Raises UsageError where the run is whole, so that there is nothing to salvage, or where nothing
    of it verifies; StoreError where it cannot be read or the new one cannot be written.
    """
    if not directory.is_dir():
        raise UsageError(
            f"{directory} is not the folder of a run: give one of those under .fairness/runs"
        )
    with contextlib.suppress(StoreError), reading(directory):
        raise UsageError(
            f"{directory} is whole, there is nothing to salvage: resume it "
            f"(--fairness-resume={directory.name}) or "
            f"judge it (--fairness-replay={directory.name}) as it is"
        )
    done = Salvage()
    done.directory = make_run(root, lambda connection: _fill(connection, directory, done))
    return done


def _fill(connection: sqlite3.Connection, directory: Path, done: Salvage) -> dict[str, Any]:
    """Write what verifies of *directory* by *connection*, note in *done* what is lost; return the
    manifest. Raises UsageError where nothing verifies.
    """
    manifest: dict[str, Any] = {}
    try:
        manifest = read_manifest(directory)
    except StoreError:
        done.lost.append(Lost("manifest.json", 0, 0, _UNREAD))
    anchors = anchors_of(manifest)
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(sqlite3.connect("")) as texts:
        texts.execute("CREATE TABLE texts (line TEXT)")
        logs: dict[tuple[bool, str], _Log] = {}
        for name, number, data in _exported(directory):
            logs.setdefault((False, name), _Log(name, texts)).read(number, data)
        for name, number, data, why in _stored(directory, folder):
            logs.setdefault((True, name), _Log(name, texts)).read(number, data, why)
        for name in sorted({name for _, name in logs} | anchors.keys()):
            candidates = _copies(logs.values(), name, anchors.get(name))
            if not candidates:
                done.lost.append(Lost(name, 1, anchors[name].records, "the file is missing"))
                continue
            taken, log = max(
                candidates, key=lambda candidate: (len(candidate[0]), len(candidate[1].records))
            )
            insert_records(connection, writer_of(name), _anew(connection, log, taken))
            done.lost += sorted(log.lost)
        connection.execute("UPDATE account SET settled = ?", (_spent(folder),))
    (done.records,) = connection.execute("SELECT count(*) FROM records").fetchone()
    (done.trials,) = connection.execute(QUERIES["count"]).fetchone()
    if not done.records:
        raise UsageError(f"nothing of {directory} verifies: there is nothing to salvage")
    about = {
        "run": directory.name,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "records": done.records,
        "lost": list(map(str, done.lost)),
    }
    return {**{key: manifest[key] for key in _KEPT if key in manifest}, "salvaged_from": about}


def _copies(logs: Iterable[_Log], name: str, anchor: Anchor | None) -> list[tuple[list[str], _Log]]:
    """Return the copies of the log *name*, in the database and as a file, each with what can be
    taken of it.
    """
    copies = []
    for log in logs:
        if log.name == name:
            copies.append((log.take(anchor), log))
    return copies


def _anew(connection: sqlite3.Connection, log: _Log, taken: Iterable[str]) -> Iterator[str]:
    """The records *taken* of *log*, without hashes, each with the hash that it had."""
    log_text = (
        "SELECT 1 FROM records WHERE key = ? AND type = 'trial' AND status NOT IN ('unknown', "
        "'error')"
    )
    for digest in taken:
        text = log.text(digest)
        record, (kind, key, status) = decode_line(text), columns_of(text)
        answered = kind == "trial" and status not in ("unknown", "error")
        if answered and connection.execute(log_text, (key,)).fetchone():
            log.lose(log.records[digest].number, _TWICE)
            continue
        del record["prev"]
        record["salvaged"] = record.pop("hash")
        yield encode_record(record)


# ---------------------------------------------------------------- what is left of the damaged run


def _exported(directory: Path) -> Iterator[tuple[str, int, bytes]]:
    """Yield each line of the exported files, with file and number."""
    for path in sorted(directory.glob(LOGS)):
        with os.fdopen(files.open_regular(path, os.O_RDONLY), "rb") as stream:
            yield from ((path.name, number, data) for number, data in enumerate(stream, 1))


def _stored(directory: Path, folder: str) -> Iterator[tuple[str, int, bytes, str]]:
    """The records of the database, of which a copy is made in *folder*: each as its line, or why
    there is none.
    """
    for path in directory.glob(f"{NAME}*"):
        shutil.copy(path, folder, follow_symlinks=False)
    last = 0
    step = 1
    with contextlib.closing(sqlite3.connect(Path(folder, NAME))) as copy:
        query = f"SELECT id, {COLUMNS} FROM records WHERE id > ? ORDER BY id"
        texts = Unpacker(copy)
        heads: dict[str, Anchor] = {}
        copy.text_factory = legible
        with contextlib.suppress(sqlite3.DatabaseError):
            check_version(copy, directory / NAME)
        while step < _FURTHEST:
            try:
                for number, *row in copy.execute(query, (last,)):
                    last = number
                    step = 1
                    record = Row(*row)
                    previous = heads.get(record.writer, Anchor(0, FIRST))
                    heads[record.writer] = Anchor(record.number, record.hash.hex())
                    data, why = _line_of(record, previous, texts)
                    yield log_name(record.writer), record.number, data, why
            except (
                sqlite3.DatabaseError
            ):  # a page that cannot be read: what stands on it is passed over, and missed
                last = last + step
                step = 2 * step
            else:
                return


def _line_of(row: Row, previous: Anchor, texts: Unpacker) -> tuple[bytes, str]:
    """The line of a record that follows *previous*, with its end; or why there is none."""
    if previous.records + 1 != row.number:  # its hash is made of that of the record before
        return b"", "the record before it is missing, so that nothing shows whether it is whole"
    try:
        text = texts.text(row)
    except BadLineError as error:
        return b"", str(error)
    if chained_digest(text, previous.head) != row.hash:
        return b"", "the record was changed: its hash does not fit"
    return f"{as_line(text, previous.head, row.hash.hex())}\n".encode("ascii"), ""


def _spent(folder: str) -> int:
    """Return what was spent and reserved, in nano-dollars, as far as the copied database still says
    it.
    """
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(Path(folder, NAME))) as copy,
    ):
        return sum(copy.execute("SELECT settled, reserved FROM account").fetchone() or ())
    return 0


class _Record(NamedTuple):
    """A record that verifies: its line, the hash that it follows, whether debris stands before it,
    its text's place.
    """

    number: int
    previous: str
    debris: bool
    place: int | None


class _Log:
    """The log *name* in one place: its records by their hashes, in the order in which they stand,
    and what is lost.

    *texts* holds the text of each.
    """

    def __init__(self, name: str, texts: sqlite3.Connection) -> None:
        self.name = name
        self.records: dict[str, _Record] = {}
        self.lost: list[Lost] = []
        self._texts = texts
        self._end = 0
        self._debris = False

    def lose(self, first: int, why: str, last: int = 0) -> None:
        """Note that the records *first* to *last* are lost; runs of one reason are one entry."""
        last = last or first
        if self.lost and (self.lost[-1].last, self.lost[-1].why) == (first - 1, why):
            first = self.lost.pop().first
        self.lost.append(Lost(self.name, first, last, why))

    def read(self, number: int, data: bytes, why: str = "") -> None:
        """Line *number*, which follows those before it; *why* it cannot be read."""
        if number > self._end + 1:  # records of the database that cannot be read
            self.lose(self._end + 1, "cannot be read", number - 1)
            self._debris = True
        self._end = number
        # What editors and git do to a whole file is undone: a byte order mark, another line ending,
        # none at the end.
        line = data.rstrip(b"\r\n")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        try:
            if why:
                raise BadLineError(why)
            previous, digest = check_line(line)
            decode_line(line)
        except BadLineError as error:
            fault = str(error)
            if not why and not data.endswith(b"\n"):
                fault = "cut short"
            self.lose(number, fault)
            self._debris = True
            return
        if digest in self.records:
            self.lose(number, _FOREIGN)
            return
        place = self._texts.execute(
            "INSERT INTO texts VALUES (?)", (line.decode("ascii"),)
        ).lastrowid
        self.records[digest] = _Record(number, previous, self._debris, place)
        self._debris = False

    def text(self, digest: str) -> str:
        """The record with the hash *digest*."""
        query = "SELECT line FROM texts WHERE rowid = ?"
        return str(self._texts.execute(query, (self.records[digest].place,)).fetchone()[0])

    def take(self, anchor: Anchor | None) -> list[str]:
        """The hashes of the records that can be taken, in the order in which they were written; the
        manifest knows
        *anchor*.
        """
        if anchor is None:
            return self._taken(frozenset())
        leading = self._leading(anchor)
        short = len(self.records) < anchor.records
        if not leading and not short and not self.lost:
            self.lose(1, _ANEW, len(self.records))
            return []
        taken = self._taken(leading)
        if short and not leading:
            end = 1 + len(self.records) + sum(lost.last - lost.first + 1 for lost in self.lost)
            why = (
                f"the log had {anchor.records} records when the run was closed: the end is missing"
            )
            self.lose(end, why, anchor.records)
        return taken

    def _taken(self, leading: Container[str]) -> list[str]:
        """The hashes of the records that follow each other; the others are lost."""
        taken = self._chained(leading)
        for digest, record in self.records.items():
            if digest not in taken:
                self.lose(record.number, _FOREIGN)
        return list(taken)

    def _leading(self, anchor: Anchor) -> set[str]:
        """The hashes of the records that lead to the one that *anchor* names."""
        leading = set[str]()
        digest = anchor.head
        while digest in self.records:
            leading.add(digest)
            digest = self.records[digest].previous
        return leading

    def _chained(self, leading: Container[str]) -> dict[str, None]:
        """The hashes of the records as they follow each other, from the first on; after a gap it
        goes on with what is *leading* to the end, or begins where a crash has left debris.
        """
        after = {self.records[digest].previous: digest for digest in reversed(self.records)}
        beyond = iter(self._after_gaps(leading))
        taken: dict[str, None] = {}
        head = FIRST
        while True:
            following = after.get(head)
            if following is None or following in taken:
                following = next((digest for digest in beyond if digest not in taken), None)
                if following is None:
                    return taken
                if not self.records[following].debris:
                    self.lose(self.records[following].number, _GAP)
            taken[following] = None
            head = following

    def _after_gaps(self, leading: Container[str]) -> list[str]:
        """The hashes of the records that need no other before them: debris, and what is *leading*
        to the end.
        """
        after_gaps = []
        for digest, record in self.records.items():
            if record.previous != FIRST and (record.debris or digest in leading):
                after_gaps.append(digest)
        return after_gaps
