"""The run's store: its folder, its trials whoever asked them, and the right to ask those that are
missing.
"""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Self

from pytest_fairness.endpoints.protocol import Limits
from pytest_fairness.errors import StoreError
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.database import (
    AT_ONCE,
    CheckWritten,
    Database,
    Flush,
    Operation,
    Read,
    as_stored,
    in_keys,
)
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.export import export_records, heads_of
from pytest_fairness.runs.folder import reserve_run
from pytest_fairness.runs.lines import decode_line, encode_record
from pytest_fairness.runs.manifest import (
    LOGS,
    encode_manifest,
    read_manifest,
    read_manifest_and_text,
    write_manifest,
)
from pytest_fairness.runs.money import Budget
from pytest_fairness.runs.packing import COLUMNS
from pytest_fairness.runs.rate_limits import Limiter
from pytest_fairness.runs.reader import Heads, RunRecords
from pytest_fairness.runs.records import SCHEMA, utc_now

_WRITER = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")


@dataclass(frozen=True, slots=True)
class Claimed:
    """The trials of a claim: *mine* to ask now, each with the records of earlier attempts at it,
    and *busy* ones that another living process is asking. Those in neither are finished.
    """

    mine: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    busy: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The finished trials of earlier sessions that are asked again: *unknown* ones, and *errors*
    that cost nothing.
    """

    unknown: bool = False
    errors: bool = False

    def wants(self, record: Mapping[str, Any]) -> bool:
        """Return whether the trial of *record* is one of them."""
        if record["status"] == Status.ERROR:
            return self.errors and record["cost"] == 0
        return self.unknown and record["status"] == Status.UNKNOWN


NEVER = Retry()


# ---------------------------------------------------------------- operations


_HOLDERS = "SELECT key, writer FROM claims WHERE key"
_FINISHED = "SELECT id, key, status FROM records WHERE type = 'trial' AND key"
_RECORD = f"SELECT {COLUMNS} FROM records WHERE id = ?"
#: How trials end that may be asked again.
_FAILED = (Status.UNKNOWN, Status.ERROR)
_ATTEMPTS = f"SELECT id, key, {COLUMNS} FROM records WHERE type IN ('sent', 'attempt') AND key"


class Claim(Operation):
    """Claim those of *keys* that are neither finished nor claimed by a living process; of trials
    that *retry* wants, those logged before record *before*.
    """

    keys: list[str]
    retry: Retry
    before: int

    def run(self, database: Database) -> dict[str, Any]:
        mine = dict[str, list[str]]()
        busy = list[str]()
        for start in range(0, len(self.keys), AT_ONCE):
            claimed, left = self._some(database, self.keys[start : start + AT_ONCE])
            mine |= claimed
            busy += left
        return {"mine": mine, "busy": busy}

    def _some(
        self, database: Database, keys: Sequence[str]
    ) -> tuple[dict[str, list[str]], list[str]]:
        """Claim some of the keys; return those that are ours now, each with earlier attempts, and
        those that a living process has.
        """
        execute = database.connection.execute
        ((wanted, values),) = in_keys(keys)
        holders = {key.hex(): writer for key, writer in execute(f"{_HOLDERS} {wanted}", values)}
        living = database.living(holders.values())
        finished, again = self._finished(database, keys)
        mine: dict[str, list[str]] = {}
        busy: list[str] = []
        for key in keys:
            if key in finished:
                continue
            if holders.get(key) in living:
                busy.append(key)
            else:
                mine[key] = []
        for key in again.keys() & mine.keys():
            mine[key].append(again[key][1])
        if mine:
            _add_attempts(database, mine, again)
            # One statement for all: between two of them SQLite waits for the interpreter.
            claims: list[Any] = []
            for key in mine:
                claims += (as_stored(key), database.writer)
            rows = ", ".join(["(?, ?)"] * len(mine))
            execute(f"INSERT OR REPLACE INTO claims VALUES {rows}", claims)
        return mine, busy

    def _finished(
        self, database: Database, keys: Sequence[str]
    ) -> tuple[set[str], dict[str, tuple[int, str]]]:
        """Return those of *keys* whose trials are finished, and those that are asked again, with
        number and text of their records.
        """
        ((wanted, values),) = in_keys(keys)
        finished: set[str] = set()
        again: dict[str, tuple[int, str]] = {}
        rows = database.connection.execute(f"{_FINISHED} {wanted}", values).fetchall()
        for number, key, status in rows:
            text = ""
            if status in _FAILED and number <= self.before:
                text = _text(database, number)
            if text and self.retry.wants(decode_line(text)):
                again[key.hex()] = number, text
            else:
                finished.add(key.hex())
        return finished, again


def _add_attempts(
    database: Database, mine: dict[str, list[str]], again: Mapping[str, tuple[int, str]]
) -> None:
    """Add to *mine* what was logged of trials that are not finished; all that was logged before a
    trial of *again* is in its record.
    """
    ((wanted, values),) = in_keys(list(mine))
    rows = database.connection.execute(f"{_ATTEMPTS} {wanted} ORDER BY id", values).fetchall()
    for number, name, *row in rows:
        key = name.hex()
        if key not in again or number > again[key][0]:
            mine[key].append(database.texts.text(row))


def _text(database: Database, number: int) -> str:
    """Return the text of the record in row *number*."""
    return database.texts.text(database.connection.execute(_RECORD, (number,)).fetchone())


class Release(Operation):
    """Give up claimed keys that were not asked to the end."""

    keys: list[str]

    def run(self, database: Database) -> None:
        for wanted, values in in_keys(self.keys):
            database.connection.execute(
                f"DELETE FROM claims WHERE key {wanted} AND writer = ?", [*values, database.writer]
            )


class ExchangeManifest(Operation):
    """Put the manifest *after* in the place of *before*, both as encoded, if that is what it still
    is; the one that is there then. The heads of logs stay as they are.
    """

    before: str = ""
    after: str = ""

    def run(self, database: Database) -> str:
        """Return the manifest that is there after the exchange. Raises StoreError for other heads."""
        manifest, current = read_manifest_and_text(database.directory)
        if self.before != current or self.after == current:
            return current
        after = json.loads(self.after)
        if not isinstance(after, dict) or after.get("logs") != manifest.get("logs"):
            raise StoreError("the heads of the logs are written by the store alone")
        write_manifest(database.directory, after)
        return self.after


class _Finish(Operation):
    """Write how far the records of all writers reach into the manifest, with *fields* (JSON);
    *export* them, too, or where they were before.
    """

    fields: str
    export: bool = False

    def run(self, database: Database) -> None:
        """Export the records where that is wanted, or was done before, and write the heads."""
        connection = database.connection
        directory = database.directory
        export = self.export or any(directory.glob(LOGS))
        if export:
            heads = export_records(connection, directory)
        else:
            heads = heads_of(connection)
        manifest = read_manifest(database.directory)
        write_manifest(database.directory, {**manifest, **json.loads(self.fields), "logs": heads})


# ---------------------------------------------------------------- the store


def open_store(
    root: Path, token: str, *, writer: str | None = None, adopt: str | None = None
) -> RunStore:
    """The store of the session *token* under *root*, written as *writer* (an xdist worker's id;
    None: the plain session, or xdist's controller). The folder is made on first use, or is that of
    the earlier run *adopt*.

    Raises StoreError where the folder cannot be written safely, before anything is paid for.
    """
    return RunStore.open(reserve_run(root, token, adopt=adopt), writer=writer)


class RunStore(RunRecords):
    """One process's hold on a run. Use :meth:`open`; thread safe; close it at the end.

    ``directory`` is the run's folder, ``writer`` this process's name in it, ``notes`` what was
    found and mended. All that it does is an operation of *database*.
    """

    def __init__(self, database: Database, directory: Path, writer: str, notes: list[str]) -> None:
        self.database = database
        self.directory = directory
        self.writer = writer
        self.notes = notes
        self._mutex = threading.Lock()
        self._introduced = False
        self._used: set[tuple[str, str]] = set()
        # Of what was there before this session alone, what failed is asked again.
        ((self._version, self._before),) = self.ask(Read("look"))

    @classmethod
    def open(cls, directory: Path, *, writer: str | None = None) -> Self:
        """The store in *directory*, which must exist. Raises StoreError if it is unsafe, damaged,
        or *writer* is alive in another process.
        """
        if writer is None:
            writer = "main"
        if not _WRITER.fullmatch(writer):
            raise StoreError(f"{writer!r} cannot name a writer: up to 40 of a-z 0-9 _ . -")
        if directory.is_symlink() or not directory.is_dir():
            raise StoreError(
                f"{directory} is not the folder of a run (links are refused): give the real folder"
            )
        database = Database(directory, writer)
        try:
            heads = Heads(directory)
            heads.check(database.connection)
            database.start()
            return cls(database, directory, writer, heads.notes)
        except BaseException:
            database.close()
            raise

    async def written(self) -> None:
        """Return once the disk holds everything appended so far. Raises StoreError if it does not."""
        await self.database.done(Flush())

    def flush(self) -> None:
        """:meth:`written`, for who is on no event loop."""
        self.ask(Flush())

    def close(self) -> None:
        """Write what is waiting, and how far it reaches into the manifest; let others have this
        writer's name.

        Raises StoreError where it cannot be written. May be called twice.
        """
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, operation: Operation) -> Any:
        return self.database.submit(operation).result()

    def changed(self) -> bool:
        """Return whether other processes have written anything since the last look."""
        before, ((self._version, _),) = self._version, self.ask(Read("look"))
        return bool(before != self._version)

    # ------------------------------------------------------------ asking

    def claim(self, keys: Sequence[str], *, retry: Retry = NEVER) -> Claimed:
        """Claim those of *keys* that are neither finished nor claimed by a living process.

        *retry* claims also those that it wants, if they failed before this session. Raises
        StoreError.
        """
        answer = self.ask(Claim(keys=list(keys), retry=retry, before=self._before))
        return Claimed(
            {key: list(map(decode_line, lines)) for key, lines in answer["mine"].items()},
            answer["busy"],
        )

    def release(self, keys: Iterable[str]) -> None:
        """Give up claimed keys that were not asked to the end. Raises StoreError."""
        self.ask(Release(keys=list(keys)))

    def append(self, record: Mapping[str, Any]) -> None:
        """Chain *record* to those of this writer: on the disk when :meth:`written` or :meth:`flush`
        returns, or any later question is answered. Raises StoreError; ValueError or TypeError for
        what is not JSON.
        """
        body = encode_record(record)
        with self._mutex:
            if not self._introduced:
                self.database.append(encode_record(self._introduction()))
                self._introduced = True
        self.database.append(body)

    def log_uses(
        self,
        keys: Sequence[str],
        planned: Sequence[PlannedTrial],
        finished: Mapping[str, tuple[Trial, str]],
    ) -> None:
        """Log which further cells of *planned* share a trial, so that the table of every cell can
        be rebuilt from the log. *finished* has the trials by their *keys*, each with the identifier
        of the cell on its record. Raises StoreError.
        """
        for key, trial in zip(keys, planned, strict=True):
            use = (key, trial.cell.id)
            if trial.cell.id != finished[key][1] and use not in self._used:
                self.append({"type": "use", "key": key, "cell": trial.cell})
                self._used.add(use)

    def _introduction(self) -> dict[str, Any]:
        """Return the first record of this writer: who writes, where, and with what."""
        versions = {
            "pytest-fairness": metadata.version("pytest-fairness"),
            "python": platform.python_version(),
        }
        place = {
            "run": self.directory.name,
            "writer": self.writer,
            "pid": os.getpid(),
            "host": socket.gethostname(),
        }
        return {
            "type": "log",
            "schema": SCHEMA,
            **place,
            "time": utc_now(),
            "versions": versions,
            "notes": self.notes,
        }

    def budget(self, cap: float | None) -> Budget:
        """The account of the run, under *cap* US dollars. Raises BudgetError for a cap that is no
        amount.
        """
        return Budget(self.database, cap)

    def limiter(self, identity: str, limits: Limits) -> Limiter:
        """The limits per minute of the system with the hash *identity*."""
        return Limiter(self.database, identity, limits)

    # ------------------------------------------------------------ the manifest

    def manifest(self) -> dict[str, Any]:
        """The manifest as it stands. Raises StoreError if it cannot be read."""
        manifest: dict[str, Any] = json.loads(self.ask(ExchangeManifest()))
        return manifest

    def update_manifest(self, **fields: Any) -> None:
        """Set top-level *fields* of manifest.json, keeping what other processes wrote there. Raises
        StoreError.
        """
        self.amend_manifest(lambda manifest: manifest.update(fields))

    def amend_manifest(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Let *change* edit the manifest; again, where another process has written meanwhile.
        Raises StoreError.
        """
        before = ""
        current = self.ask(ExchangeManifest())
        while before != current:
            manifest = json.loads(before := current)
            change(manifest)
            after = encode_manifest(manifest).decode("ascii")
            current = self.ask(ExchangeManifest(before=before, after=after))
            if current == after:
                return

    def check_written(self) -> None:
        """Raise StoreError where the database has not all that was written into it."""
        self.ask(CheckWritten())

    def finish(self, **fields: Any) -> None:
        """Set *fields* of the manifest, the heads of all logs with them: nobody writes to the run
        any more. Raises StoreError.
        """
        self.flush()
        self.ask(_Finish(fields=encode_manifest(fields).decode("ascii")))

    def export(self) -> None:
        """Write the records of each writer to a file, as an archive of the run keeps them. Raises
        StoreError.
        """
        self.flush()
        self.ask(_Finish(fields="{}", export=True))
