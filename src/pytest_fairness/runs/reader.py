"""Read a run back from its folder alone, every record checked: for reports, replay and audit.

A run is in its database; an archive of it is the exported files alone, which are read into a database in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from pytest_fairness.errors import StoreError
from pytest_fairness.model import Trial
from pytest_fairness.runs import files
from pytest_fairness.runs.database import COUNTS, NAME, SCHEMA, connect, create_tables, damaged, log_name, writer_of
from pytest_fairness.runs.designs import RecordedDesign
from pytest_fairness.runs.lines import FIRST, BadLineError, check_line, columns_of, decode_line
from pytest_fairness.runs.manifest import FINISHED, LOGS, Anchor, anchors_of, read_manifest
from pytest_fairness.runs.records import TrialRecord, cell_of, trial_of

#: Keys that are looked up at once.
AT_ONCE = 512
FIND_TRIALS = f"SELECT key, record FROM records WHERE key IN (SELECT value FROM json_each(?)) AND {COUNTS}"


class RunReader:
    """One run, checked from end to end when made with :meth:`open`. Holds no texts: they stay on the disk.

    ``engines`` has the endpoints asked by the hash of their identity, ``logs`` how far each writer's records reach,
    ``notes`` what a crash left behind.
    """

    def __init__(self, directory: Path, connection: sqlite3.Connection, heads: Heads) -> None:
        self.directory = directory
        self.connection = connection
        self.logs = heads.anchors()
        self.notes = heads.notes
        self.engines = {record["identity"]: record for record in self._of_type("engine")}

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Check every record of the run in *directory*.

        Raises StoreError, naming record or line, for one that was changed, added or removed, where there are fewer than
        when the run was closed, and for a trial that was asked twice.
        """
        if not directory.is_dir():
            raise StoreError(f"{directory} is not the folder of a run: give one of those under .fairness/runs")
        database = directory / NAME
        connection = _open(database) if database.exists() or database.is_symlink() else _in_memory()
        try:
            heads = Heads(directory)
            stored = is_stored(connection, directory)
            if stored:
                heads.check(connection, database)
                heads.check_exports()
            else:
                connection.close()
                connection = _in_memory()
                heads.load(connection)
            heads.check_end()
            _refuse_twice(connection, directory)
            return cls(directory, connection, heads)
        except (sqlite3.Error, UnicodeError) as error:
            connection.close()
            raise damaged(database, str(error)) from error
        except BaseException:
            connection.close()
            raise

    def __contains__(self, key: object) -> bool:
        """Whether the trial *key* is finished."""
        return isinstance(key, str) and not self.missing([key])

    def __len__(self) -> int:
        """How many trials are finished."""
        return count_trials(self.connection)

    def raw(self, keys: Iterable[str]) -> Iterator[dict[str, Any]]:
        """The records of the finished trials *keys*, as they were logged. Raises KeyError for others."""
        wanted = list(keys)
        for start in range(0, len(wanted), AT_ONCE):
            some = wanted[start : start + AT_ONCE]
            found = dict(self.connection.execute(FIND_TRIALS, (json.dumps(some),)))
            for key in some:
                yield decode_line(found[key])

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Those of *keys* whose trial is not finished."""
        wanted = json.dumps(list(keys))
        query = (
            "SELECT value FROM json_each(?) WHERE NOT EXISTS "
            "(SELECT 1 FROM records WHERE key = value AND type = 'trial')"
        )
        return [key for (key,) in self.connection.execute(query, (wanted,))]

    def designs(self) -> list[RecordedDesign]:
        """What each test asked, in the order of asking."""
        return [RecordedDesign.from_record(record) for record in self._of_type("design")]

    def records(self) -> Iterator[TrialRecord]:
        """Every finished trial with its cell, and then once more for each further cell that shares it."""
        for number, line in self._trials():
            yield self._parsed(number, decode_line(line))
        uses = self.connection.execute("SELECT key, record FROM records WHERE type = 'use' ORDER BY id")
        for key, use in uses:
            for number, line in self.connection.execute(
                f"SELECT id, record FROM records WHERE key = ? AND {COUNTS}", (key,)
            ):
                yield replace(self._parsed(number, decode_line(line)), cell=cell_of(decode_line(use)["cell"]))

    def finished(self) -> Iterator[Trial]:
        """Every finished trial."""
        return (trial_of(decode_line(line)) for _, line in self._trials())

    def lines(self, name: str) -> Iterator[str]:
        """The records of one writer as they are exported to the file *name*, each a line without its end."""
        query = "SELECT record FROM records WHERE writer = ? ORDER BY number"
        return (line for (line,) in self.connection.execute(query, (writer_of(name),)))

    def _trials(self) -> Iterator[tuple[int, str]]:
        yield from self.connection.execute(f"SELECT id, record FROM records WHERE {COUNTS} ORDER BY id")

    def _of_type(self, kind: str) -> list[dict[str, Any]]:
        query = "SELECT record FROM records WHERE key IS NULL AND type = ? ORDER BY id"
        return [decode_line(line) for (line,) in self.connection.execute(query, (kind,))]

    def _parsed(self, number: int, record: dict[str, Any]) -> TrialRecord:
        try:
            return TrialRecord.from_record(record)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"{self.directory}, record {number}: not a trial as this version writes it ({error!r}): read it with "
                "the version in the first record"
            ) from error


def is_stored(connection: sqlite3.Connection, directory: Path) -> bool:
    """Whether the records of the run are in its database, and not in exported files alone."""
    try:
        empty = connection.execute("SELECT 1 FROM records LIMIT 1").fetchone() is None
    except (sqlite3.Error, UnicodeError) as error:  # also its message may be damaged
        raise damaged(directory / NAME, str(error)) from error
    return not (empty and any(directory.glob(LOGS)))


def count_trials(connection: sqlite3.Connection) -> int:
    """How many trials are finished."""
    query = "SELECT count(DISTINCT key) FROM records WHERE key IS NOT NULL AND type = 'trial'"
    return int(connection.execute(query).fetchone()[0])


def read_trials(directory: Path) -> dict[str, Trial]:
    """Every finished trial of the run in *directory*, checked, by its content key. Raises StoreError."""
    return {trial.key: trial for trial in RunReader.open(directory).finished()}


def trial_lines(directory: Path) -> Iterator[bytes | str]:
    """The records of all trials of the run in *directory*, unchecked; those that cannot be read are passed over."""
    database = directory / NAME
    if database.exists():
        with contextlib.suppress(sqlite3.Error, StoreError), contextlib.closing(_open(database)) as connection:
            query = "SELECT record FROM records WHERE type = 'trial' ORDER BY id"
            yield from (line for (line,) in connection.execute(query))
        return
    for path in sorted(directory.glob(LOGS)):
        with path.open("rb") as file:
            # Most lines are requests and attempts: not worth parsing.
            yield from (line for line in file if b'"trial"' in line)


def _open(path: Path) -> sqlite3.Connection:
    files.check_regular(path)
    if path.with_name(f"{path.name}-wal").exists():  # somebody writes to it, or died: SQLite sets it right
        return connect(path)
    uri = f"file:{quote(str(path.absolute()))}?immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def _in_memory() -> sqlite3.Connection:
    """A database of its own, of which SQLite puts on the disk what is too much for memory."""
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    create_tables(connection)
    return connection


def _refuse_twice(connection: sqlite3.Connection, directory: Path) -> None:
    query = (
        "SELECT key FROM records WHERE key IS NOT NULL AND type = 'trial' AND status NOT IN ('unknown', 'error') "
        "GROUP BY key HAVING count(*) > 1 LIMIT 1"
    )
    for (key,) in connection.execute(query):
        places = connection.execute(
            "SELECT writer, number FROM records WHERE key = ? AND type = 'trial' ORDER BY id", (key,)
        ).fetchall()
        (first, at), (second, again) = places[0], places[-1]
        raise StoreError(
            f"{directory / log_name(second)}, line {again}: this trial is already in {log_name(first)}, line {at}: the "
            "records are not of one run; restore them from a copy"
        )


def charge(connection: sqlite3.Connection, *, at_least: int = 0) -> None:
    """Put what the records say was spent into the account, where that is lost: it counts towards a cap, too."""
    query = "SELECT ifnull(sum(json_extract(record, '$.cost')), 0) FROM records WHERE type = 'attempt'"
    (spent,) = connection.execute(query).fetchone()
    connection.execute("UPDATE account SET settled = max(settled, ?, ?)", (math.ceil(spent * 1e9), at_least))


class Heads:
    """How far the records of each writer reach, held against what the manifest of *directory* says of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.notes: list[str] = []
        self._manifest = read_manifest(directory)
        self._anchors = anchors_of(directory, self._manifest)
        self._heads: dict[str, tuple[int, str]] = {}

    def anchors(self) -> dict[str, Anchor]:
        """By the name of the file into which a writer's records are exported."""
        return {log_name(writer): Anchor(*head) for writer, head in sorted(self._heads.items())}

    def check(self, connection: sqlite3.Connection, path: Path) -> None:
        """Check every record of a database. Raises StoreError."""
        try:
            connection.text_factory = bytes
            schema = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
            if [sql.decode("utf-8", "replace") for (sql,) in schema] != SCHEMA:
                raise damaged(path, "its tables are not those of a run")
            # An index that was damaged would hide records from whoever looks for them.
            (found,) = connection.execute("PRAGMA integrity_check(records)").fetchone()
            if found != b"ok":
                raise damaged(path, " ".join(found.decode("utf-8", "replace").split()))
            rows = connection.execute("SELECT writer, number, type, key, status, record FROM records ORDER BY id")
            for writer, number, *columns, line in rows:
                name = writer.decode("utf-8", "replace")
                if self._follow(name, line, f"{path}, record {number} of {log_name(name)}") != number or columns != [
                    None if column is None else column.encode() for column in columns_of(line.decode("ascii"))
                ]:
                    raise damaged(
                        f"{path}, record {number} of {log_name(name)}", "its columns are not those of its record"
                    )
        except (sqlite3.Error, UnicodeError) as error:
            raise damaged(path, str(error)) from error
        finally:
            connection.text_factory = str
        self._check_length(path)

    def _follow(self, writer: str, line: bytes, where: str) -> int:
        """Check the next record of *writer*; its number."""
        number, head = self._heads.get(writer, (0, FIRST))
        try:
            number, head = number + 1, check_line(line, head)
            anchor = self._anchors.get(log_name(writer))
            if anchor is not None and number == anchor.records and head != anchor.head:
                raise BadLineError("the log was made anew: its hash is not the one in manifest.json")
        except BadLineError as error:
            raise damaged(where, str(error)) from error
        self._heads[writer] = number, head
        return number

    def load(self, connection: sqlite3.Connection) -> None:
        """Read the exported files into *connection*, each line checked. Raises StoreError naming file and line."""
        connection.execute("BEGIN IMMEDIATE")
        for path in sorted(self.directory.glob(LOGS)):
            writer = writer_of(path.name)
            connection.executemany(
                "INSERT INTO records (writer, number, type, key, status, record) VALUES (?, ?, ?, ?, ?, ?)",
                ((writer, number, *columns_of(line), line) for number, line in self._lines(path, writer)),
            )
        self._check_length(self.directory)
        charge(connection)
        connection.execute("COMMIT")

    def _lines(self, path: Path, writer: str) -> Iterator[tuple[int, str]]:
        with os.fdopen(files.open_regular(path, os.O_RDONLY), "rb") as stream:
            for number, data in enumerate(stream, 1):
                if not data.endswith(b"\n"):
                    self.notes.append(f"{path}, line {number}: the last record was cut short; not read")
                    return
                self._follow(writer, data[:-1], f"{path}, line {number}")
                yield number, data[:-1].decode("ascii")

    def check_exports(self) -> None:
        """Raise StoreError where an exported file beside the database is not as it was written."""
        logs: Mapping[str, Any] = self._manifest.get("logs", {})
        for path in sorted(self.directory.glob(LOGS)):
            written = logs.get(path.name, {}).get("sha256")
            with os.fdopen(files.open_regular(path, os.O_RDONLY), "rb") as stream:
                if written is None or hashlib.file_digest(stream, "sha256").hexdigest() == written:
                    continue
            alone = Heads(self.directory)
            for _ in alone._lines(path, writer_of(path.name)):
                pass
            alone._check_length(path, only=path.name)
            raise damaged(path, "it is not as it was written: its SHA-256 is not the one in manifest.json")

    def _check_length(self, where: Path, only: str | None = None) -> None:
        there = {log_name(writer): number for writer, (number, _) in self._heads.items()}
        for name, anchor in sorted(self._anchors.items()):
            if only is not None and name != only:
                continue
            if name not in there:
                raise StoreError(
                    f"{self.directory / name} is missing, but manifest.json lists it: restore it from a copy"
                )
            if there[name] < anchor.records:
                raise StoreError(
                    f"{where}: {name} ends after {there[name]} records, but had {anchor.records} when the run was "
                    "closed: restore the file from a copy, or start a new run"
                )
        missing = sorted(there.keys() - self._anchors.keys()) if FINISHED in self._manifest and only is None else []
        if missing:
            raise StoreError(
                f"{self.directory / 'manifest.json'} is damaged: the run came to its end, and the head of {missing[0]} "
                "is not there, so that nothing shows whether that log was changed; restore it from a copy"
            )

    def check_end(self) -> None:
        """Raise StoreError where the run has come to its end, and there are more records than it had."""
        for name, head in self.anchors().items():
            if FINISHED in self._manifest and head.records != self._anchors[name].records:
                raise StoreError(
                    f"{self.directory / name} holds {head.records} records, but had {self._anchors[name].records} when "
                    "the run was closed: restore it from a copy"
                )


@contextlib.contextmanager
def reading(directory: Path) -> Iterator[RunReader]:
    """The run in *directory*, until the end of the block."""
    reader = RunReader.open(directory)
    try:
        yield reader
    finally:
        reader.connection.close()
