"""Read a run back from its folder alone, every record checked: for reports, replay and audit.

A run is in its database; an archive of it is the exported files alone, which are read into a
database in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias
from urllib.parse import quote

from pytest_fairness.errors import StoreError
from pytest_fairness.model import Trial
from pytest_fairness.runs import database, files
from pytest_fairness.runs.database import (
    AT_ONCE,
    Operation,
    Read,
    as_stored,
    damaged,
    in_keys,
    log_name,
    writer_of,
)
from pytest_fairness.runs.designs import RecordedDesign
from pytest_fairness.runs.lines import (
    FIRST,
    BadLineError,
    body_of,
    chained_digest,
    check_line,
    columns_of,
    decode_line,
)
from pytest_fairness.runs.manifest import FINISHED, LOGS, Anchor, anchors_of, read_manifest
from pytest_fairness.runs.packing import COLUMNS, Row, Unpacker, legible
from pytest_fairness.runs.records import trial_of

#: Characters after which an answer ends that holds records.
LONGEST_ANSWER = 8 * 2**20
_TRIALS = f"SELECT {COLUMNS} FROM trials"
_ATTEMPTS = f"SELECT {COLUMNS} FROM records WHERE type = 'attempt'"


#: What passes the items of long work on, showing how far it is: of a label and a number of them.
Watch: TypeAlias = Callable[[str, int, Iterable[Any]], Iterable[Any]]


def unwatched(label: str, total: int, items: Iterable[Any]) -> Iterable[Any]:  # noqa: ARG001 - as a Watch is called
    """*items* as they are."""
    return items


class Find(Operation):
    """The records of the first of *keys*, as lines, None for a trial that is not finished: as many
    as fit into an answer, one at least.
    """

    writes = False
    keys: list[str]

    def run(self, database: Any) -> list[str | None]:
        """Read the records by portions, until the answer is as long as it may be."""
        answer = list[str | None]()
        size = 0
        for start in range(0, len(self.keys), AT_ONCE):
            some = self.keys[start : start + AT_ONCE]
            ((wanted, values),) = in_keys(some)
            database.texts.prepare(
                database.connection.execute(f"{_ATTEMPTS} AND key {wanted}", values)
            )
            summary = {
                Row(*row).key: row
                for row in database.connection.execute(f"{_TRIALS} WHERE key {wanted}", values)
            }
            for key in some:
                row = summary.get(as_stored(key))
                text = None
                if row is not None:
                    text = database.texts.text(row)
                size += len(text or "")
                if answer and size > LONGEST_ANSWER:
                    return answer
                answer.append(text)
        return answer


class RunRecords:
    """The records of a run, read alike while it is written and when it is over."""

    def ask(self, operation: Operation) -> Any:
        """Return what comes of *operation*. Raises what it raises, and StoreError."""
        raise NotImplementedError

    def __len__(self) -> int:
        """The number of finished trials."""
        ((count,),) = self.ask(Read("count"))
        return int(count)

    def records(self, keys: Iterable[str]) -> Iterator[dict[str, Any] | None]:
        """The record of each finished trial of *keys*, whoever asked it, or None, in their order."""
        wanted = list(keys)
        at = 0
        while at < len(wanted):
            lines = self.ask(Find(keys=wanted[at : at + AT_ONCE]))
            for key, line in zip(wanted[at:], lines, strict=False):
                record = None
                if line is not None:
                    # The caller's own string as the key: many trials are held at once.
                    record = {**decode_line(line), "key": key}
                yield record
            at += len(lines)

    def trial(self, key: str) -> Trial | None:
        """The finished trial *key*, whoever asked it, or None."""
        record = next(self.records([key]))
        if record is None:
            return None
        return trial_of(record)

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """The records of a type that belongs to no trial, of every session and process, in their
        order.
        """
        return [decode_line(line) for (line,) in self.ask(Read("type", [kind]))]

    def designs(self) -> list[RecordedDesign]:
        """Return what the tests of this run have asked, of every session and process."""
        return [RecordedDesign.from_record(record) for record in self.of_type("design")]


class RunReader(RunRecords):
    """One run, checked from end to end when made with :meth:`open`. Holds no texts: they stay on
    the disk.

    ``engines`` has the endpoints asked by the hash of their identity, ``logs`` how far each
    writer's records reach, by the name of the file into which they are exported, ``notes`` what a
    crash left behind.
    """

    def __init__(self, directory: Path, connection: sqlite3.Connection, heads: Heads) -> None:
        self.directory = directory
        self.connection = connection
        self.texts = Unpacker(connection)
        self.logs = dict(sorted(heads.reached.items()))
        self.notes = heads.notes
        self.engines = {record["identity"]: record for record in self.of_type("engine")}

    @classmethod
    def open(cls, directory: Path, *, check: bool = True, watch: Watch = unwatched) -> Self:
        """Check every record of the run in *directory*; without *check* those alone that are read
        from exported files.
        *watch* shows how far that is.

        Raises StoreError, naming record or line, for one that was changed, added or removed, where
        there are fewer than when the run was closed, and for a trial that was asked twice.
        """
        if not directory.is_dir():
            raise StoreError(
                f"{directory} is not the folder of a run: give one of those under .fairness/runs"
            )
        connection = _open(directory)
        try:
            heads = Heads(directory, over=True)
            if check or not _is_stored(connection, directory):
                heads.check(connection, watch)
                _refuse_twice(connection, directory)
            return cls(directory, connection, heads)
        except BaseException:
            connection.close()
            raise

    def ask(self, operation: Any) -> Any:
        return operation.run(self)

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Those of *keys* whose trial is not finished."""
        all_keys = list(keys)
        finished = set[str]()
        for wanted, values in in_keys(all_keys):
            query = f"SELECT key FROM records WHERE type = 'trial' AND key {wanted}"
            finished |= {key.hex() for (key,) in self.connection.execute(query, values)}
        return [key for key in all_keys if key not in finished]

    def all_records(self) -> Iterator[dict[str, Any]]:
        """The record of every finished trial, and then once more with each further cell that shares
        it.
        """
        yield from self.trial_records()
        for use in self.each("use"):
            for record in self._decoded(f"{_TRIALS} WHERE key = ?", as_stored(use["key"])):
                yield {**record, "cell": use["cell"]}

    def each(self, kind: str) -> Iterator[dict[str, Any]]:
        """The records of one type, of trials too, in their order."""
        return self._decoded(f"SELECT {COLUMNS} FROM records WHERE type = ? ORDER BY id", kind)

    def finished(self) -> Iterator[Trial]:
        """Every finished trial."""
        return map(trial_of, self.trial_records())

    def trial_records(self) -> Iterator[dict[str, Any]]:
        """The record of every finished trial."""
        return self._decoded(f"{_TRIALS} ORDER BY id")

    def _decoded(self, query: str, *values: Any) -> Iterator[dict[str, Any]]:
        """Yield the records of a *query*, decoded."""
        return (decode_line(self.texts.text(row)) for row in self.connection.execute(query, values))

    @cached_property
    def shared_cells(self) -> dict[tuple[str, str], Any]:
        """The cells that share a trial with the one that it was asked for, by its key and their
        ids.
        """
        return {(use["key"], use["cell"]["id"]): use["cell"] for use in self.each("use")}

    def lines(self, name: str) -> Iterator[str]:
        """The records of one writer as they are exported to the file *name*, each a line without
        its end.
        """
        return self.texts.lines(writer_of(name))


@contextlib.contextmanager
def reading(
    directory: Path, *, check: bool = True, watch: Watch = unwatched
) -> Iterator[RunReader]:
    """The run in *directory*, until the end of the block; *check* and *watch* as for
    :meth:`RunReader.open`.
    """
    reader = RunReader.open(directory, check=check, watch=watch)
    with contextlib.closing(reader.connection):
        yield reader


def read_trials(directory: Path) -> dict[str, Trial]:
    """Every finished trial of the run in *directory*, checked, by its content key. Raises
    StoreError.
    """
    with reading(directory) as reader:
        return {trial.key: trial for trial in reader.finished()}


def refuse_unreadable(directory: Path) -> None:
    """Raise StoreError where the records of the run in *directory* cannot be read at all; they are
    not verified.
    """
    path = directory / database.NAME
    if path.exists():
        with _naming(path), contextlib.closing(_open(directory)) as connection:
            connection.execute("SELECT body FROM records ORDER BY id DESC LIMIT 1").fetchone()


def record_lines(
    directory: Path, kind: str = "trial", keys: Sequence[str] | None = None
) -> Iterator[bytes | str]:
    """The records of one type of the run in *directory*, of the trials *keys* alone if given;
    unchecked, and in an archive perhaps others; those that cannot be read are passed over.
    """
    if (directory / database.NAME).exists():
        query = f"SELECT {COLUMNS} FROM records WHERE type = ?"
        wanted: Iterable[tuple[str, list[Any]]] = [(query, [])]
        if keys is not None:
            wanted = ((f"{query} AND key {chosen}", values) for chosen, values in in_keys(keys))
        with (
            contextlib.suppress(sqlite3.Error, StoreError),
            contextlib.closing(_open(directory)) as connection,
        ):
            texts = Unpacker(connection)
            for query, values in wanted:
                for row in connection.execute(query, [kind, *values]):
                    with contextlib.suppress(BadLineError):
                        yield texts.text(row)
        return
    for path in sorted(directory.glob(LOGS)):
        with path.open("rb") as file:
            # Most lines are requests and attempts: not worth parsing.
            yield from (line for line in file if f'"{kind}"'.encode() in line)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name *path* in the error where the block cannot read its database."""
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:  # also its message may be damaged
        raise damaged(path, str(error)) from error


def _open(directory: Path) -> sqlite3.Connection:
    """The database of the run, or one for what an archive holds, which SQLite puts on the disk
    where it is too much for memory.
    """
    path = directory / database.NAME
    if path.exists() or path.is_symlink():
        files.check_regular(path)
        if path.with_name(
            f"{database.NAME}-wal"
        ).exists():  # somebody writes to it, or died: SQLite sets it right
            connection = database.connect(path)
        else:
            uri = f"file:{quote(str(path.absolute()))}?immutable=1"
            connection = sqlite3.connect(
                uri, uri=True, isolation_level=None, check_same_thread=False
            )
        with contextlib.ExitStack() as stack:
            stack.callback(connection.close)
            with _naming(path):
                database.check_version(connection, path)
            if _is_stored(connection, directory):
                stack.pop_all()
                return connection
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    database.create_tables(connection)
    return connection


def _is_stored(connection: sqlite3.Connection, directory: Path) -> bool:
    """Return whether the records of the run are in its database, and not in exported files alone."""
    with _naming(directory / database.NAME):
        empty = connection.execute("SELECT 1 FROM records LIMIT 1").fetchone() is None
    return not (empty and any(directory.glob(LOGS)))


def _refuse_twice(connection: sqlite3.Connection, directory: Path) -> None:
    """Raise StoreError for a trial that stands in the logs twice."""
    query = (
        "SELECT key FROM records WHERE key IS NOT NULL AND type = 'trial' AND status NOT IN "
        "('unknown', 'error') "
        "GROUP BY key HAVING count(*) > 1 LIMIT 1"
    )
    for (key,) in connection.execute(query):
        places = "SELECT writer, number FROM records WHERE key = ? AND type = 'trial' ORDER BY id"
        (first, at), *_, (second, again) = connection.execute(places, (key,)).fetchall()
        raise StoreError(
            f"{directory / log_name(second)}, line {again}: this trial is already in "
            f"{log_name(first)}, line {at}: the "
            "records are not of one run; restore them from a copy"
        )


def charge(connection: sqlite3.Connection) -> None:
    """Put what the records say was spent into the account, where it holds less: it counts towards a
    cap, too.
    """
    texts = Unpacker(connection)
    attempts = connection.execute(
        f"SELECT {COLUMNS} FROM records WHERE type = 'attempt' ORDER BY id"
    )
    spent = math.fsum(decode_line(texts.text(row)).get("cost") or 0.0 for row in attempts)
    connection.execute("UPDATE account SET settled = max(settled, ?)", (math.ceil(spent * 1e9),))


_BEGINNING = Anchor(0, FIRST)
_NOT_NEXT = "a record is missing, was added or moved: it does not follow the one before"


class Heads:
    """Checks of the records of each writer, to the last, against what the manifest of *directory*
    says.

    *over*: a run that has come to its end has no more records than it had then. ``reached`` has the
    end of each log, by the name of the file into which it is exported, ``notes`` what a crash left
    behind.
    """

    def __init__(self, directory: Path, *, over: bool = False) -> None:
        self.reached: dict[str, Anchor] = {}
        self.notes: list[str] = []
        self._over = over
        self._directory = directory
        self._manifest = read_manifest(directory)
        self._anchors = anchors_of(self._manifest)

    def check(self, connection: sqlite3.Connection, watch: Watch = unwatched) -> None:
        """Check every record of the run, which are read into *connection* from its exported files
        where those are all there is. Raises StoreError naming record or line.
        """
        where = self._directory / database.NAME
        logs = sorted(self._directory.glob(LOGS))
        if _is_stored(connection, self._directory):
            with _naming(where):
                self._check_stored(connection, where, watch)
            self._check_length(where)
            for path in logs:
                self._check_export(path)
            return
        connection.execute("BEGIN IMMEDIATE")
        for path in logs:
            total = self._anchors.get(path.name, _BEGINNING).records
            lines = watch(f"records of {path.name} read", total, self._exported(path))
            database.insert_records(connection, writer_of(path.name), map(body_of, lines))
        self._check_length(self._directory)
        if not self._over:  # somebody is about to spend
            charge(connection)
        connection.execute("COMMIT")

    def _check_stored(self, connection: sqlite3.Connection, path: Path, watch: Watch) -> None:
        """Check the tables of the database *path*, and each of its records. Raises StoreError."""
        connection.text_factory = legible
        try:
            schema = connection.execute(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
            )
            if [sql for (sql,) in schema] != database.SCHEMA:
                raise damaged(path, "its tables are not those of a run")
            # An index that was damaged would hide records from whoever looks for them.
            (answer,) = connection.execute("PRAGMA integrity_check(records)").fetchone()
            if answer != "ok":
                raise damaged(path, " ".join(answer.split()))
            texts = Unpacker(connection)
            (total,) = connection.execute("SELECT count(*) FROM records").fetchone()
            rows = connection.execute(f"SELECT {COLUMNS} FROM records ORDER BY id")
            for row in watch("records read", total, rows):
                name = log_name(Row(*row).writer)
                where = f"{path}, record {row[1]} of {name}"
                try:
                    self._follow_row(name, Row(*row), texts)
                except BadLineError as error:
                    raise damaged(where, str(error)) from error
        finally:
            connection.text_factory = str

    def _follow_row(self, name: str, row: Row, texts: Unpacker) -> None:
        """Check *row*, the next record of the log *name*. Raises BadLineError."""
        before = self.reached.get(name, _BEGINNING)
        if row.number != before.records + 1:
            raise BadLineError(_NOT_NEXT)
        text = texts.text(row)
        if chained_digest(text, before.head) != row.hash:
            raise BadLineError("the record was changed: its hash does not fit")
        if columns_of(text) != (row.type, row.key, row.status):
            raise BadLineError("its columns are not those of its record")
        self._follow(name, row.hash.hex())

    def _follow(self, name: str, head: str) -> None:
        """The next record of the log *name* has the hash *head*. Raises BadLineError."""
        reached = self.reached[name] = Anchor(self.reached.get(name, _BEGINNING).records + 1, head)
        anchor = self._anchors.get(name)
        if anchor is not None and reached.records == anchor.records and reached != anchor:
            raise BadLineError("the log was made anew: its hash is not the one in manifest.json")

    def _exported(self, path: Path) -> Iterator[str]:
        """Yield the checked lines of an exported file. Raises StoreError naming the line."""
        with os.fdopen(files.open_regular(path, os.O_RDONLY), "rb") as stream:
            for number, data in enumerate(stream, 1):
                if not data.endswith(b"\n"):
                    self.notes.append(
                        f"{path}, line {number}: the last record was cut short; not read"
                    )
                    return
                try:
                    previous, head = check_line(data[:-1])
                    if previous != self.reached.get(path.name, _BEGINNING).head:
                        raise BadLineError(_NOT_NEXT)
                    self._follow(path.name, head)
                except BadLineError as error:
                    raise damaged(f"{path}, line {number}", str(error)) from error
                yield data[:-1].decode("ascii")

    def _check_export(self, path: Path) -> None:
        """Whoever reads a file alone, which was exported beside the database, must not read
        something else.
        """
        written = self._manifest.get("logs", {}).get(path.name, {}).get("sha256")
        with os.fdopen(files.open_regular(path, os.O_RDONLY), "rb") as stream:
            if written is None or hashlib.file_digest(stream, "sha256").hexdigest() == written:
                return
        for _ in Heads(self._directory)._exported(path):
            pass  # names the line, where it is one that was changed
        raise damaged(
            path, "it is not as it was written: its SHA-256 is not the one in manifest.json"
        )

    def _check_length(self, where: Path) -> None:
        """Raise StoreError where a log is shorter than the manifest says, longer after the end of
        the run, or not in the manifest.
        """
        finished = FINISHED in self._manifest
        for name, anchor in sorted(self._anchors.items()):
            if name not in self.reached:
                raise StoreError(
                    f"{self._directory / name} is missing, but manifest.json lists it: restore it "
                    "from a copy"
                )
            records = self.reached[name].records
            if records < anchor.records or (self._over and finished and records > anchor.records):
                raise StoreError(
                    f"{where}: {name} ends after {records} records, but had {anchor.records} when "
                    "the run was "
                    "closed: restore the file from a copy, or start a new run"
                )
        missing = sorted(self.reached.keys() - self._anchors.keys())
        if finished and missing:
            raise StoreError(
                f"{self._directory / 'manifest.json'} is damaged: the run came to its end, and the "
                f"head of {missing[0]}"
                " is not there, so that nothing shows whether that log was changed; restore it "
                "from a copy"
            )
