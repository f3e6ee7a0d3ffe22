"""The run's store: its folder, its trials whoever asked them, and the right to ask those that are missing."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import platform
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Self

from pytest_fairness.endpoints.protocol import Limits
from pytest_fairness.errors import StoreError
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.database import Database, Flush, Key, Operation, log_name
from pytest_fairness.runs.designs import RecordedDesign
from pytest_fairness.runs.export import export_records
from pytest_fairness.runs.folder import reserve_run
from pytest_fairness.runs.lines import decode_line, encode_record
from pytest_fairness.runs.manifest import encode_manifest, read_manifest, write_manifest
from pytest_fairness.runs.money import Budget
from pytest_fairness.runs.rate_limits import Limiter
from pytest_fairness.runs.reader import AT_ONCE, FIND_TRIALS, Heads, count_trials, is_stored
from pytest_fairness.runs.records import SCHEMA, trial_of, utc_now
from pytest_fairness.runs.shared_progress import WorkerProgress

MAIN = "main"
#: Characters after which an answer ends that holds records.
LONGEST_ANSWER = 8 * 2**20
_WRITER = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")


@dataclass(frozen=True, slots=True)
class Claimed:
    """What became of a claim: *mine* to ask now, each with the records of earlier attempts at it, and *busy*
    ones that another living process is asking. Those in neither are finished.
    """

    mine: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    busy: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Which trials of earlier sessions are asked again though they are finished: *unknown* ones, and *errors* that
    cost nothing.
    """

    unknown: bool = False
    errors: bool = False

    def wants(self, record: Mapping[str, Any]) -> bool:
        """Whether the trial of *record* is one of them."""
        if record["status"] == Status.ERROR:
            return self.errors and record["cost"] == 0
        return self.unknown and record["status"] == Status.UNKNOWN


NEVER = Retry()


# ---------------------------------------------------------------- operations


class Claim(Operation):
    """Claim those of *keys* that are neither finished nor claimed by a living process; of trials that may be asked
    again, those logged before record *before*.
    """

    keys: list[Key]
    unknown: bool
    errors: bool
    before: int

    def run(self, database: Database) -> dict[str, Any]:
        wanted = json.dumps(self.keys)
        holders = {
            key: (writer, life)
            for key, writer, life in database.connection.execute(
                "SELECT key, writer, life FROM claims WHERE key IN (SELECT value FROM json_each(?))", (wanted,)
            )
        }
        living = database.living(list(holders.values()))
        finished, tried = self._logged(database, wanted)
        busy = [key for key in self.keys if key not in finished and holders.get(key) in living]
        mine = {key: tried.get(key, []) for key in self.keys if key not in finished and holders.get(key) not in living}
        database.connection.executemany(
            "INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", ((key, database.writer, database.life) for key in mine)
        )
        return {"mine": mine, "busy": busy}

    def _logged(self, database: Database, wanted: str) -> tuple[set[str], dict[str, list[str]]]:
        """What is finished for good, and the records of what is not: of earlier attempts, and of a trial that is asked
        again.
        """
        retry = Retry(unknown=self.unknown, errors=self.errors)
        finished: set[str] = set()
        again: dict[str, tuple[int, str]] = {}
        query = (
            "SELECT key, id, CASE WHEN status IN ('unknown', 'error') THEN record END FROM records "
            "WHERE key IN (SELECT value FROM json_each(?)) AND type = 'trial'"
        )
        for key, number, record in database.connection.execute(query, (wanted,)):
            if record is None or number > self.before or not retry.wants(decode_line(record)):
                finished.add(key)
            else:
                again[key] = number, record
        tried = {key: [record] for key, (_, record) in again.items()}
        query = (
            "SELECT key, id, record FROM records "
            "WHERE key IN (SELECT value FROM json_each(?)) AND type IN ('sent', 'attempt') ORDER BY id"
        )
        left = json.dumps([key for key in self.keys if key not in finished])
        for key, number, record in database.connection.execute(query, (left,)):
            if key not in again or number > again[key][0]:  # all that was logged before a trial is in it
                tried.setdefault(key, []).append(record)
        return finished, tried


class Release(Operation):
    """Give up claimed keys that were not asked to the end."""

    keys: list[Key]

    def run(self, database: Database) -> None:
        database.connection.executemany(
            "DELETE FROM claims WHERE key = ? AND life = ?", ((key, database.life) for key in self.keys)
        )


class Find(Operation):
    """The records of the first of *keys*, as lines, None for a trial that is not finished: as many as fit into an
    answer, one at least.
    """

    writes = False
    keys: list[Key]

    def run(self, database: Database) -> list[str | None]:
        found = dict(database.connection.execute(FIND_TRIALS, (json.dumps(self.keys),)))
        lines: list[str | None] = []
        size = 0
        for key in self.keys:
            lines.append(found.get(key))
            size += len(lines[-1] or "")
            if size > LONGEST_ANSWER:
                break
        return lines


class FindType(Operation):
    """All records of a type that belongs to no trial, as lines."""

    writes = False
    kind: str

    def run(self, database: Database) -> list[str]:
        query = "SELECT record FROM records WHERE key IS NULL AND type = ? ORDER BY id"
        return [line for (line,) in database.connection.execute(query, (self.kind,))]


class Look(Operation):
    """What changes whenever another connection has written, and the last record."""

    writes = False

    def run(self, database: Database) -> list[int]:
        execute = database.connection.execute
        (version,) = execute("PRAGMA data_version").fetchone()
        (last,) = execute("SELECT ifnull(max(id), 0) FROM records").fetchone()
        return [version, last]


class Count(Operation):
    """How many trials are finished."""

    writes = False

    def run(self, database: Database) -> int:
        return count_trials(database.connection)


class ReplaceManifest(Operation):
    """Put the manifest *after* (JSON) in the place of *before*, if that is what it still is; whether it was. The heads
    of logs stay as they are.
    """

    before: str
    after: str

    def run(self, database: Database) -> bool:
        current = read_manifest(database.directory)
        after = json.loads(self.after)
        if current != json.loads(self.before):
            return False
        if not isinstance(after, dict) or after.get("logs") != current.get("logs"):
            raise StoreError("the heads of the logs are written by the store alone")
        write_manifest(database.directory, after)
        return True


class ReadManifest(Operation):
    """The manifest as it stands, as JSON."""

    writes = False

    def run(self, database: Database) -> str:
        return encode_manifest(read_manifest(database.directory)).decode("ascii")


class _Seal(Operation):
    """Write how far this writer's records reach into the manifest, and give up what it has claimed."""

    def run(self, database: Database) -> None:
        database.connection.execute("DELETE FROM claims WHERE life = ?", (database.life,))
        if database.number:
            manifest = read_manifest(database.directory)
            head = {"records": database.number, "head": database.head}
            logs = manifest.setdefault("logs", {})
            if any(logs.get(log_name(database.writer), {}).get(name) != value for name, value in head.items()):
                logs[log_name(database.writer)] = head
                write_manifest(database.directory, manifest)


class _Finish(Operation):
    """Export all records, and write how far they reach into the manifest, with *fields* (JSON)."""

    fields: str

    def run(self, database: Database) -> None:
        heads = export_records(database.connection, database.directory)
        manifest = read_manifest(database.directory)
        write_manifest(database.directory, {**manifest, **json.loads(self.fields), "logs": heads})


# ---------------------------------------------------------------- the store


def open_run(
    root: Path,
    token: str,
    *,
    writer: str | None = None,
    today: datetime.date | None = None,
    adopt: str | None = None,
) -> RunStore:
    """The store of the session *token* under *root*, written as *writer* (an xdist worker's id; None: the
    plain session, or xdist's controller). The folder is made on first use, or is that of the earlier run *adopt*;
    see :func:`~.folder.reserve_run`.

    Raises StoreError where the folder cannot be written safely, before anything is paid for.
    """
    return RunStore.open(reserve_run(root, token, today=today, adopt=adopt), writer=writer)


class RunStore:
    """One process's hold on a run. Use :meth:`open`; thread safe; close it at the end.

    ``directory`` is the run's folder, ``writer`` this process's name in it, ``notes`` what was found and mended.
    """

    directory: Path
    writer: str
    notes: list[str]

    def __init__(self, directory: Path, writer: str) -> None:
        if not _WRITER.fullmatch(writer):
            raise StoreError(f"{writer!r} cannot name a writer: up to 40 of a-z 0-9 _ . -")
        if directory.is_symlink() or not directory.is_dir():
            raise StoreError(f"{directory} is not the folder of a run (links are refused): give the real folder")
        self.directory = directory
        self.writer = writer
        self._begin()
        self._database = Database(directory, writer)
        try:
            self.notes = _checked(self._database)
            self._database.start()
        except BaseException:
            self._database.close()
            raise
        self._look()

    def _begin(self) -> None:
        self._mutex = threading.Lock()
        self._introduced = False
        self._version = self._before = 0

    def _look(self) -> None:
        """See what was there before this session: of that alone what came to nothing is asked again."""
        self._version, self._before = self.ask(Look())

    @classmethod
    def open(cls, directory: Path, *, writer: str | None = None) -> Self:
        """The store in *directory*, which must exist. Raises StoreError if it is unsafe, damaged, or *writer*
        is alive in another process.
        """
        return cls(directory, MAIN if writer is None else writer)

    # ------------------------------------------------------------ operations

    def submit(self, operation: Operation) -> Future[Any]:
        """Have *operation* done after all that came before. Raises StoreError."""
        return self._database.submit(operation)

    def ask(self, operation: Operation) -> Any:
        """Have *operation* done, and wait for its result. Raises what it raises, and StoreError."""
        return self.submit(operation).result()

    def done(self, operation: Operation) -> asyncio.Future[Any]:
        """The same on the running event loop."""
        return self._database.done(operation)

    def _append(self, body: str) -> None:
        self._database.append(body)

    async def written(self) -> None:
        """Return once the disk holds everything appended so far. Raises StoreError if it does not."""
        await self.done(Flush())

    def flush(self) -> None:
        """:meth:`written`, for who is on no event loop."""
        self.ask(Flush())

    # ------------------------------------------------------------ reading

    def record(self, key: str) -> dict[str, Any] | None:
        """The record of the finished trial *key*, whoever asked it, or None."""
        return next(self.records([key]))

    def records(self, keys: Iterable[str]) -> Iterator[dict[str, Any] | None]:
        """:meth:`record` of each of *keys*, in their order."""
        wanted, at = list(keys), 0
        while at < len(wanted):
            lines = self.ask(Find(keys=wanted[at : at + AT_ONCE]))
            for key, line in zip(wanted[at:], lines, strict=False):
                # The caller's own string as the key: many trials are held at once.
                yield None if line is None else {**decode_line(line), "key": key}
            at += len(lines)

    def trial(self, key: str) -> Trial | None:
        """The finished trial *key*, whoever asked it, or None."""
        record = self.record(key)
        return None if record is None else trial_of(record)

    def changed(self) -> bool:
        """Whether other processes have written anything since the last look."""
        version, _ = self.ask(Look())
        changed, self._version = version != self._version, version
        return bool(changed)

    def __len__(self) -> int:
        """The number of finished trials."""
        return int(self.ask(Count()))

    def designs(self) -> list[RecordedDesign]:
        """What the tests of this run have asked, of every session and process."""
        return [RecordedDesign.from_record(record) for record in self._of_type("design")]

    def batch_records(self) -> list[dict[str, Any]]:
        """What this run's records say of batches at a provider, of every session and process."""
        return self._of_type("batch")

    def _of_type(self, kind: str) -> list[dict[str, Any]]:
        return [decode_line(line) for line in self.ask(FindType(kind=kind))]

    # ------------------------------------------------------------ asking

    def claim(self, keys: Sequence[str], *, retry: Retry = NEVER) -> Claimed:
        """Claim those of *keys* that are neither finished nor claimed by a living process.

        *retry* claims also those that it wants, if they came to nothing before this session. Raises StoreError.
        """
        claim = Claim(keys=list(keys), unknown=retry.unknown, errors=retry.errors, before=self._before)
        found = self.ask(claim)
        return Claimed({key: list(map(decode_line, lines)) for key, lines in found["mine"].items()}, found["busy"])

    def release(self, keys: Iterable[str]) -> None:
        """Give up claimed keys that were not asked to the end. Raises StoreError."""
        self.ask(Release(keys=list(keys)))

    def append(self, record: dict[str, Any]) -> None:
        """Chain *record* to those of this writer: on the disk when :meth:`written` or :meth:`flush` returns, or any
        later question is answered. Raises StoreError; ValueError or TypeError for what is not JSON.
        """
        body = encode_record(record)
        with self._mutex:
            if not self._introduced:
                self._append(encode_record(self._introduction()))
                self._introduced = True
        self._append(body)

    def _introduction(self) -> dict[str, Any]:
        return {
            "type": "log",
            "schema": SCHEMA,
            "run": self.directory.name,
            "writer": self.writer,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "time": utc_now(),
            "versions": {
                "pytest-fairness": metadata.version("pytest-fairness"),
                "python": platform.python_version(),
            },
            "notes": self.notes,
        }

    # ------------------------------------------------------------ what else the processes of a run share

    def budget(self, cap: float | None) -> Budget:
        """The account of the run, under *cap* US dollars. Raises BudgetError for a cap that is no amount."""
        return Budget(self, cap)

    def limiter(self, identity: str, limits: Limits) -> Limiter:
        """The limits per minute of the system with the hash *identity*."""
        return Limiter(self, identity, limits)

    def progress(self) -> WorkerProgress:
        """Where this writer reports how far it is."""
        return WorkerProgress(self)

    # ------------------------------------------------------------ the manifest

    def manifest(self) -> dict[str, Any]:
        """The manifest as it stands. Raises StoreError if it cannot be read."""
        manifest: dict[str, Any] = json.loads(self.ask(ReadManifest()))
        return manifest

    def update_manifest(self, **fields: Any) -> None:
        """Set top-level *fields* of manifest.json, keeping what other processes wrote there. Raises StoreError."""
        self.amend_manifest(lambda manifest: manifest.update(fields))

    def amend_manifest(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Let *change* edit the manifest; again, where another process has written meanwhile. Raises StoreError."""
        replaced = False
        while not replaced:
            manifest = self.manifest()
            before = json.dumps(manifest)
            change(manifest)
            after = encode_manifest(manifest).decode("ascii")
            replaced = self.ask(ReplaceManifest(before=before, after=after))

    def write_planned(self, tests: Iterable[str], *, announced: Sequence[str] = ()) -> None:
        """Note in the manifest which tests this session is to run, and how it was announced."""
        self.update_manifest(planned=sorted(tests), announced=list(announced))

    def finish(self, **fields: Any) -> None:
        """Export the records of all writers, and set *fields* of the manifest, the heads of all logs with them: nobody
        writes to the run any more. Raises StoreError.
        """
        self.flush()
        self.ask(_Finish(fields=encode_manifest(fields).decode("ascii")))

    def close(self) -> None:
        """Write what is waiting, and how far it reaches into the manifest; let others have this writer's name.

        Raises StoreError where it cannot be written. May be called twice.
        """
        try:
            if not self._database.closed:
                self.flush()  # before the manifest says so
                self.ask(_Seal())
        finally:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _checked(database: Database) -> list[str]:
    """Check all records of the run, which are read from its exported files where those are all there is."""
    heads = Heads(database.directory)
    connection = database.connection
    if is_stored(connection, database.directory):
        heads.check(connection, database.path)
        heads.check_exports()
    else:
        heads.load(connection)
    return heads.notes
