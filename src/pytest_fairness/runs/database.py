"""A run's database: one SQLite file, which one thread of each process writes, committing together
what is waiting.

Every record is chained to the one before it of the same writer, and kept verbatim. A commit is on
the disk when it returns (``synchronous=FULL``), so that what has been waited for survives the loss
of power, too. Operations are messages: what one process asks of the run's database in one
transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import socket
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import msgspec

from pytest_fairness.errors import StoreError
from pytest_fairness.runs import files
from pytest_fairness.runs.manifest import LOGS, Anchor, anchors_of, read_manifest, write_manifest
from pytest_fairness.runs.packing import COLUMNS, Packer, Row, Unpacker

NAME = "run.sqlite3"
SCHEMA_VERSION = 3
#: The statements of ``schema.sql``, as SQLite keeps them.
SCHEMA = [
    re.sub("^--.*\n", "", statement, flags=re.MULTILINE).strip()
    for statement in Path(__file__).with_name("schema.sql").read_text("ascii").split(";\n")[:-1]
]
#: What is read without more ado: the account, the number of finished trials, also by status, what
#: changes whenever another connection has written with the last record, the records of a type that
#: belongs to no trial.
QUERIES = {
    "account": "SELECT settled, reserved FROM account",
    "count": "SELECT count(DISTINCT key) FROM records WHERE key IS NOT NULL AND type = 'trial'",
    "look": "SELECT data_version, (SELECT ifnull(max(id), 0) FROM records) FROM pragma_data_version",
    "statuses": "SELECT status, count(*) FROM records WHERE key IS NOT NULL AND type = 'trial' GROUP BY status",
    "type": f"SELECT {COLUMNS} FROM records WHERE key IS NULL AND type = ? ORDER BY id",
}
_INSERT = f"INSERT INTO records ({COLUMNS}) VALUES "
_ROW = f"({', '.join('?' * len(Row._fields))})"
#: Keys that are looked up at once.
AT_ONCE = 512
#: Rows of one statement, at the most: SQLite lets go of the interpreter once a statement, however
#: many rows it has.
_ROWS = 64
#: Seconds that records wait for others to be committed with, where nobody waits for them.
_LINGER = 0.005
#: Operations of one transaction; records that wait before :meth:`Database.append` waits for them;
#: characters of one that is committed at once.
_MOST, _WAITING, _LONG = 512, 2048, 1 << 20
#: Seconds to wait for other processes, each of whose commits takes milliseconds.
_PATIENCE = 60.0
#: Pages of 4 KiB in the log of changes before they are moved into the file, which holds up a
#: commit.
_CHECKPOINT = 10_000
_connecting = threading.Lock()
_KEY = re.compile("[0-9a-f]{64}")


class Operation(msgspec.Struct):
    """Work for one transaction. It raises FairnessError before it has written anything."""

    writes: ClassVar[bool] = True
    #: Answered before the commit: what it leads to is not done before a later operation is on the
    #: disk.
    early: ClassVar[bool] = False
    #: Whether it looks at the tables: what came before it is in them.
    queries: ClassVar[bool] = True

    def run(self, database: Database) -> Any:
        """Do it; what comes of it."""


class Append(Operation):
    """Chain a record, encoded as JSON, to those of this writer."""

    body: str


class Flush(Operation):
    """Nothing but the wait for what was before it."""

    writes = False
    queries = False


class Read(Operation):
    """The rows of one of the ``QUERIES``, with its *values*."""

    writes = False
    query: Literal["account", "count", "look", "statuses", "type"]
    values: list[str] = []

    def run(self, database: Any) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = database.connection.execute(
            QUERIES[self.query], self.values
        ).fetchall()
        if self.query == "type":
            return [(database.texts.text(row),) for row in rows]
        return rows


_AnyFuture: TypeAlias = Future[Any] | asyncio.Future[Any]


class _Waiting(NamedTuple):
    operation: Operation
    future: _AnyFuture | None


def log_name(writer: str) -> str:
    """The file into which the records of *writer* are exported, by which the manifest knows them,
    too.
    """
    if writer == "main":
        return "trials.jsonl"
    return f"trials-{writer}.jsonl"


def writer_of(name: str) -> str:
    """The inverse of :func:`log_name`."""
    return name.removeprefix("trials").removesuffix(".jsonl").removeprefix("-") or "main"


def insert_records(connection: sqlite3.Connection, writer: str, texts: Iterable[str]) -> None:
    """Insert *texts*, the records of *writer* from the first on, without hashes."""
    packer = Packer(writer)
    connection.executemany(_INSERT + _ROW, map(packer.pack, texts))


def as_stored(key: object) -> bytes:
    """A content key as it stands in the tables; of what is none, which a table may hold, what no
    record has.
    """
    if isinstance(key, str) and _KEY.fullmatch(key):
        return bytes.fromhex(key)
    return b""


def in_keys(keys: Sequence[str]) -> Iterator[tuple[str, list[bytes]]]:
    """``IN (?, …)`` for the content keys *keys*, and its values: as often as that takes."""
    for start in range(0, len(keys), AT_ONCE):
        values = list(map(as_stored, keys[start : start + AT_ONCE]))
        # Of few lengths, so that statements are prepared once.
        values += [values[-1]] * ((1 << (len(values) - 1).bit_length()) - len(values))
        yield f"IN ({', '.join('?' * len(values))})", values


# ---------------------------------------------------------------- files


def _opened(path: Path, timeout: float) -> sqlite3.Connection:
    with (
        _connecting
    ):  # a file that is closed lets go of the locks that SQLite has on it for this process
        if not path.exists() or path.is_symlink():
            os.close(files.open_regular(path, os.O_RDWR | os.O_CREAT))
        files.check_regular(path)
        return sqlite3.connect(
            path,
            timeout=timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )


def connect(path: Path) -> sqlite3.Connection:
    """The database *path*, made where there is none. Raises StoreError where it is unsafe or
    damaged.
    """
    connection = _opened(path, _PATIENCE)
    try:
        if check_version(connection, path) == 0:
            _create(connection, path)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
    except (sqlite3.Error, UnicodeError) as error:
        connection.close()
        raise _explained(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection, path: Path) -> None:
    kind = files.network_file_system(path)
    if kind is not None:
        raise StoreError(
            f"{path.parent} is on a network file system ({kind}), on which processes cannot share "
            "a database safely: "
            "put the runs on a local disk with fairness_run_dir in the ini file"
        )
    until = time.monotonic() + _PATIENCE
    mode = ""
    while not mode:  # SQLite itself does not wait where two processes do this at once
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise StoreError(
            f"{path.parent} is on a file system without shared memory or locks: put the runs on a "
            "local disk with "
            "fairness_run_dir in the ini file"
        )
    connection.execute("BEGIN IMMEDIATE")
    if check_version(connection, path) == 0:
        create_tables(connection)
    connection.execute("COMMIT")


def check_version(connection: sqlite3.Connection, path: Path) -> int:
    """The form of the database *path*: 0 where it has no tables yet. Raises StoreError where it is
    another.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version not in (0, SCHEMA_VERSION):
        copied = ""
        if any(path.parent.glob(LOGS)):
            copied = (
                "; or read a copy of its folder without run.sqlite3, as its exported records are "
                "beside it"
            )
        raise StoreError(
            f"{path} was written by another version of pytest-fairness (form {version}, here "
            f"{SCHEMA_VERSION}): read it with that version{copied}"
        )
    return version


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty run, and its account."""
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT INTO account VALUES (0, 0)")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


#: What failures of SQLite mean for the owner of the disk, by what their names begin with.
_MENDS = {
    ("SQLITE_FULL", "SQLITE_IOERR"): (
        "written ({}): the disk or a quota is full, or the disk is broken; free some space and run "
        "again: what was "
        "written before stands"
    ),
    ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"): (
        "written ({}): make it writable, or choose another folder with fairness_run_dir in the ini "
        "file"
    ),
    ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"): (
        "locked ({}): close the program that has it open, and put the runs on a local disk with "
        "fairness_run_dir in "
        "the ini file"
    ),
}


def _explained(path: Path, error: Exception) -> StoreError:
    """Return *error* in terms of the disk that *path* is on, with the mend."""
    name = getattr(error, "sqlite_errorname", "") or ""
    for names, mend in _MENDS.items():
        if name.startswith(names):
            return StoreError(f"{path} cannot be {mend.format(error)}")
    return damaged(path, str(error))


def damaged(where: object, why: str) -> StoreError:
    """The error of a run whose records cannot be trusted."""
    return StoreError(
        f"{where}: {why}. Results cannot be taken from a damaged run: restore the file from a "
        "copy, salvage what is "
        "left (pytest-fairness salvage), or start a new run"
    )


def _presence(directory: Path, writer: str) -> sqlite3.Connection | None:
    """Show the other processes that *writer* lives, until the connection is closed; None if it does
    in another.

    It is SQLite's own lock on a file without content, the same on every system, which that lets go
    of when the process dies. Raises StoreError where there are no locks.
    """
    path = directory / "state" / f"{writer}.lock"
    files.make_directory(path.parent)
    connection = _opened(path, 0)
    try:
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        connection.close()
        if (error.sqlite_errorname or "").startswith("SQLITE_BUSY"):
            return None
        raise _explained(path, error) from error
    return connection


def is_being_written(directory: Path) -> bool:
    """Return whether a process lives that writes into the run in *directory*. Raises StoreError."""
    for path in sorted((directory / "state").glob("*.lock")):
        presence = _presence(directory, path.stem)
        if presence is None:
            return True
        presence.close()
    return False


# ---------------------------------------------------------------- writing


class _Seal(Operation):
    """Write how far this writer's records reach into the manifest, and give up what it has claimed."""

    def run(self, database: Database) -> None:
        database.connection.execute("DELETE FROM claims WHERE writer = ?", (database.writer,))
        if database.chain.number:
            manifest = read_manifest(database.directory)
            head = {"records": database.chain.number, "head": database.chain.head}
            logs = manifest.setdefault("logs", {})
            if not head.items() <= logs.get(log_name(database.writer), {}).items():
                logs[log_name(database.writer)] = head
                write_manifest(database.directory, manifest)


class _OpenFiles:
    """The files that SQLite has open for the database *path*: writing on into one that was removed,
    replaced or cut would lose everything paid for.
    """

    def __init__(self, path: Path) -> None:
        self._directory = path.parent
        self._log = f"{path}-wal"
        self._known: dict[str, tuple[int, int] | None] = {
            str(path): None,
            self._log: None,
            f"{path}-shm": None,
        }
        self._size = 0

    def check(self) -> None:
        """Raise StoreError where one is no longer what it was."""
        if (error := self.trouble()) is not None:
            raise error

    def trouble(self) -> StoreError | None:
        """Return what became of the files, None where they are as they were."""
        for path, identity in self._known.items():
            try:
                status = os.lstat(path)
            except OSError:
                return self._lost(path, "removed")
            inode = status.st_dev, status.st_ino
            if identity is None:
                self._known[path] = inode
            elif identity != inode:
                return self._lost(path, "replaced")
            if path == self._log:
                # It grows until it is written again from its beginning, and keeps its length then.
                size = self._size
                self._size = status.st_size
                if status.st_size < size:
                    return self._lost(path, "cut")
        return None

    def _lost(self, path: str, how: str) -> StoreError:
        """Return the error of a file that is no longer what it was."""
        if not self._directory.exists():
            return files.removed(self._directory)
        return StoreError(
            f"{path} was {how} while this session wrote to it: what it asked since then may be "
            "lost, and nothing is "
            "judged; run again, or salvage what is left (pytest-fairness salvage)"
        )


class CheckWritten(Operation):
    """Raise StoreError where the database has not all that was written into it."""

    writes = False

    def run(self, database: Database) -> None:
        """Hold the records of each writer against the heads that are known of them."""
        (answer,) = database.connection.execute("PRAGMA quick_check(1)").fetchone()
        if answer != "ok":
            raise damaged(database.path, " ".join(answer.split()))
        anchors = anchors_of(read_manifest(database.directory))
        chain = database.chain
        written = {writer_of(name): anchor for name, anchor in anchors.items()}
        if chain.number:
            written[database.writer] = Anchor(chain.number, chain.head)
        query = "SELECT count(*), ifnull(max(number), 0) FROM records WHERE writer = ?"
        last = "SELECT hash FROM records WHERE writer = ? AND number = ?"
        for writer, anchor in written.items():
            (counted, number) = database.connection.execute(query, (writer,)).fetchone()
            head = database.connection.execute(last, (writer, anchor.records)).fetchone()
            if (
                counted != number
                or number < anchor.records
                or head is None
                or head[0].hex() != anchor.head
            ):
                raise damaged(
                    database.path,
                    f"it has {counted} records of {log_name(writer)}, and {anchor.records} were "
                    "written",
                )


class Database:
    """The database of the run in *directory*, written as *writer*, of which there is one at a time;
    thread safe.

    ``chain`` packs the writer's records and has their end. Once anything could not be written,
    nothing more is: all that follows raises the same StoreError, as nothing must be paid for that
    cannot be recorded.
    """

    def __init__(self, directory: Path, writer: str) -> None:
        self.directory = directory
        self.writer = writer
        self.path = directory / NAME
        self.chain = Packer(writer)
        #: Monotonic, in seconds; for limits per minute.
        self.clock: Callable[[], float] = time.monotonic
        self.closed = False
        self._pid = os.getpid()
        self._rows: list[Row] = []
        self._account: tuple[int, int] | None = None
        self._account_changed = False
        self._queue: deque[_Waiting] = deque()
        self._filled = threading.Event()
        self._urgent = threading.Event()
        self._broken: StoreError | None = None
        presence = _presence(directory, writer)
        if presence is None:
            raise self._another_process()
        self._present = presence
        try:
            self.connection = connect(self.path)
        except BaseException:
            presence.close()
            raise
        self.texts = Unpacker(self.connection)
        self._files = _OpenFiles(self.path)
        self._thread = threading.Thread(
            target=self._work, name="pytest-fairness-database", daemon=True
        )

    def start(self) -> None:
        """Begin to write, where the chain now ends."""
        query = "SELECT number, hash FROM records WHERE writer = ? ORDER BY number DESC LIMIT 1"
        if (last := self.connection.execute(query, (self.writer,)).fetchone()) is not None:
            self.chain = Packer(self.writer, last[0], last[1].hex())
        about = (self.writer, self._pid, socket.gethostname())
        try:
            self.connection.execute("INSERT OR REPLACE INTO writers VALUES (?, ?, ?)", about)
            # A writer of this name that died has claimed them: another may have them.
            self.connection.execute("DELETE FROM claims WHERE writer = ?", (self.writer,))
        except sqlite3.Error as error:
            raise _explained(self.path, error) from error
        self._files.check()
        self._thread.start()

    @property
    def account(self) -> tuple[int, int]:
        """Return what is settled and what is reserved, within an operation."""
        # Read and written once a transaction: SQLite lets go of the interpreter with every
        # statement, and while calls are under way it may be milliseconds until the next.
        if self._account is None:
            self._account = self.connection.execute(QUERIES["account"]).fetchone()
        return self._account

    @account.setter
    def account(self, account: tuple[int, int]) -> None:
        self._account = account
        self._account_changed = True

    def append(self, body: str) -> None:
        """Chain the record *body*. It is on the disk when any later operation is. Raises
        StoreError.
        """
        self._put(_Waiting(Append(body), None), urgent=len(body) > _LONG)
        if len(self._queue) > _WAITING or len(body) > _LONG:
            self.submit(Flush()).result()

    def post(self, operation: Operation) -> None:
        """Have *operation*, of which nobody asks what comes, done with what comes next, or within
        milliseconds. Raises StoreError.
        """
        self._put(_Waiting(operation, None), urgent=False)

    def submit(self, operation: Operation) -> Future[Any]:
        """Have *operation* done after all that came before; its result, or what it raises, when
        that is on the disk. Raises StoreError.
        """
        future: Future[Any] = Future()
        self._put(_Waiting(operation, future), urgent=True)
        return future

    def done(self, operation: Operation) -> asyncio.Future[Any]:
        """The same on the running event loop."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._put(_Waiting(operation, future), urgent=True)
        return future

    def _put(self, waiting: _Waiting, *, urgent: bool) -> None:
        """Queue an operation for the writing thread. Raises StoreError where nothing can be written
        any more.
        """
        if self._broken is not None:
            raise StoreError(str(self._broken))
        if self._pid != os.getpid():
            raise StoreError(
                f"{self.path} is open in the process that this one was forked from: open the run "
                "anew"
            )
        if self.closed:
            raise StoreError(f"run {self.directory.name} is closed")
        self._queue.append(waiting)
        if urgent and not self._urgent.is_set():
            self._urgent.set()
        if not self._filled.is_set():
            self._filled.set()

    def close(self) -> None:
        """Write what is waiting, and let others have this writer's name. Raises StoreError. May be
        called twice.
        """
        if self.closed or self._pid != os.getpid():
            return
        started = self._thread.is_alive()
        try:
            if started:
                self.submit(Flush()).result()  # before the manifest says so
                self.submit(_Seal()).result()
        finally:
            self.closed = True
            self._filled.set()
            self._urgent.set()
            if started:
                self._thread.join()
            with contextlib.suppress(sqlite3.Error):
                self.connection.close()
            self._present.close()

    # ------------------------------------------------------------ who lives

    def _another_process(self) -> StoreError:
        """Return the error that says who writes as this writer."""
        who = None
        with (
            contextlib.suppress(StoreError, sqlite3.Error),
            contextlib.closing(connect(self.path)) as connection,
        ):
            who = connection.execute(
                "SELECT pid, host FROM writers WHERE name = ?", (self.writer,)
            ).fetchone()
        holder = "another process"
        if who is not None:
            holder = f"process {who[0]} on {who[1]}"
        return StoreError(
            f"{self.directory} is being written by {holder} as {self.writer!r}: wait for it to "
            "end, or start a run of "
            "your own"
        )

    def living(self, writers: Iterable[str]) -> set[str]:
        """Those of *writers* whose process lives."""
        living = {self.writer}
        for writer in set(writers) - living:
            presence = _presence(self.directory, writer)
            if presence is None:
                living.add(writer)
            else:
                presence.close()
        return living

    # ------------------------------------------------------------ the thread

    def _work(self) -> None:
        """Commit what is queued, in groups, until the database is closed."""
        while True:
            self._filled.wait()
            if not self._urgent.is_set():
                self._urgent.wait(_LINGER)
            self._filled.clear()
            self._urgent.clear()
            while self._queue:
                self._commit([self._queue.popleft() for _ in range(min(_MOST, len(self._queue)))])
            if self.closed:
                return

    def _commit(self, group: Sequence[_Waiting]) -> None:
        """Do the operations of *group* in one transaction, and hand out what came of them."""
        try:
            if self._broken is not None:
                raise self._broken
            self._account = None
            self._files.check()
            begin = "BEGIN"
            if any(request.operation.writes for request in group):
                begin = "BEGIN IMMEDIATE"
            self.connection.execute(begin)
            results = []
            early = []
            for request in group:
                result = (request.future, self._done(request.operation))
                results.append(result)
                if request.operation.early:
                    early.append(result)
            if early:
                self._settle(early)
            self._save()
            self.connection.execute("COMMIT")
        except (sqlite3.Error, StoreError) as error:
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            if isinstance(error, StoreError):
                self._broken = error
            else:
                self._broken = self._files.trouble() or _explained(self.path, error)
            results = [(request.future, StoreError(str(self._broken))) for request in group]
        self._settle(results)

    def _done(self, operation: Operation) -> Any:
        """Return what comes of *operation*, or the error that belongs to its asker."""
        if type(operation) is Append:
            self._rows.append(self.chain.pack(operation.body))
            return None
        if operation.queries:
            self._save()
        try:
            return operation.run(self)
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 - raised where it was asked for
            return error

    def _save(self) -> None:
        """Write the records and the account that have changed in this transaction."""
        if self._account_changed:
            self.connection.execute("UPDATE account SET settled = ?, reserved = ?", self.account)
            self._account_changed = False
        rows = self._rows
        self._rows = []
        for start in range(0, len(rows), _ROWS):
            some = rows[start : start + _ROWS]
            values = list(itertools.chain.from_iterable(some))
            self.connection.execute(_INSERT + ", ".join([_ROW] * len(some)), values)

    def _settle(self, results: Iterable[tuple[_AnyFuture | None, Any]]) -> None:
        """Hand out what came of operations, in one call for all that wait on one event loop."""
        waiting: dict[asyncio.AbstractEventLoop, list[tuple[_AnyFuture, Any]]] = {}
        for future, result in results:
            if isinstance(future, Future):
                _resolve([(future, result)])
            elif future is not None:
                waiting.setdefault(future.get_loop(), []).append((future, result))
        for loop, settled in waiting.items():
            with contextlib.suppress(
                RuntimeError
            ):  # a loop that has ended: nobody waits there any more
                loop.call_soon_threadsafe(_resolve, settled)


def _resolve(settled: Sequence[tuple[_AnyFuture, Any]]) -> None:
    """Hand each result to who waits for it."""
    for future, result in settled:
        if future.done():  # its asker has given up
            continue
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
