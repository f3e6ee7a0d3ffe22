"""The run's store: its folder, its trials whoever asked them, and the right to ask those that are missing."""

from __future__ import annotations

import datetime
import os
import platform
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pytest_fairness.endpoints.protocol import Limits
from pytest_fairness.errors import StoreError
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs import files
from pytest_fairness.runs.claims import Claims
from pytest_fairness.runs.designs import Design
from pytest_fairness.runs.folder import reserve_run
from pytest_fairness.runs.index import Index
from pytest_fairness.runs.log import Log
from pytest_fairness.runs.manifest import anchors_of, read_manifest, write_manifest
from pytest_fairness.runs.money import Budget
from pytest_fairness.runs.rate_limits import Limiter
from pytest_fairness.runs.records import SCHEMA, trial_of, utc_now
from pytest_fairness.runs.shared_progress import WorkerProgress

MAIN = "main"
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
    see :func:`~.runs.reserve_run`.

    Raises StoreError where the folder cannot be written safely, before anything is paid for.
    """
    return RunStore.open(reserve_run(root, token, today=today, adopt=adopt), writer=writer)


class RunStore:
    """One process's hold on a run's folder. Use :meth:`open`; thread safe; close it at the end.

    ``directory`` is the folder, ``writer`` this process's name in it, ``notes`` what was found and mended.
    """

    def __init__(self, directory: Path, writer: str) -> None:
        if not _WRITER.fullmatch(writer):
            raise StoreError(f"{writer!r} cannot name a writer: up to 40 of a-z 0-9 _ . -")
        if directory.is_symlink() or not directory.is_dir():
            raise StoreError(f"{directory} is not the folder of a run (links are refused): give the real folder")
        self.directory = directory
        self.writer = writer
        self.state = directory / "state"
        self.notes: list[str] = []
        self.log_path = directory / ("trials.jsonl" if writer == MAIN else f"trials-{writer}.jsonl")
        self._mutex = threading.RLock()
        self._log: Log | None = None
        files.make_directory(self.state)
        self._anchors = anchors_of(directory)
        self._index = Index(directory, self.log_path, self._anchors)
        self._claims = Claims(self.state, writer, self._index.settled)
        try:
            if self.log_path.exists() or self.log_path.is_symlink():
                self._open_log()
            self._index.refresh()
        except BaseException:
            self._claims.close()
            self._index.close()
            raise
        #: Came to nothing before this session, and where that is logged: asked again if that is wished, but once.
        self._nothing_before = {key: self._index.finished[key] for key in self._index.provisional}

    @classmethod
    def open(cls, directory: Path, *, writer: str | None = None) -> Self:
        """The store in *directory*, which must exist. Raises StoreError if it is unsafe, damaged, or *writer*
        is alive in another process.
        """
        return cls(directory, MAIN if writer is None else writer)

    # ------------------------------------------------------------ reading

    def record(self, key: str) -> dict[str, Any] | None:
        """The log record of the finished trial *key*, or None; as of the last look at what others have
        logged."""
        with self._mutex:
            return self._index.trial(key)

    def records(self, keys: Iterable[str]) -> Iterator[dict[str, Any] | None]:
        """:meth:`record` of each of *keys*, in their order."""
        return (self.record(key) for key in keys)

    def trial(self, key: str) -> Trial | None:
        """The finished trial *key*, whoever asked it, or None."""
        self.changed()
        record = self.record(key)
        return None if record is None else trial_of(record)

    def changed(self) -> bool:
        """Whether other writers have logged, claimed or released anything since the last look."""
        with self._mutex:
            logged = self._index.refresh()
            return self._claims.refresh() or logged

    def __len__(self) -> int:
        """The number of finished trials."""
        with self._mutex:
            return len(self._index.finished)

    # ------------------------------------------------------------ asking

    def claim(self, keys: Sequence[str], *, retry: Retry = NEVER) -> Claimed:
        """Claim those of *keys* that are neither finished nor claimed by a living process.

        *retry* claims also those that it wants, if they came to nothing before this session. Raises StoreError.
        """
        claimed = Claimed()
        with self._mutex, self._claims.held():
            holders = {key: holder for key in keys if (holder := self._claims.holder(key))}
            # First who lives, then what is finished: what the dead have written is all there by then.
            living = self._claims.living(holders.values())
            self._index.refresh()
            for key in keys:
                if key in self._index.finished and not self._again(key, retry):
                    continue
                if holders.get(key) in living:
                    claimed.busy.append(key)
                else:
                    claimed.mine[key] = self._earlier(key)
            self._claims.claim(list(claimed.mine))
            for key in claimed.mine:
                self._nothing_before.pop(key, None)
            self._claims.forget(key for key in holders if key in self._index.finished and key not in claimed.mine)
        return claimed

    def _again(self, key: str, retry: Retry) -> bool:
        if self._nothing_before.get(key) != self._index.finished[key]:  # or another process has asked it again
            return False
        record = self._index.trial(key)
        return record is not None and retry.wants(record)

    def _earlier(self, key: str) -> list[dict[str, Any]]:
        record = self._index.trial(key)
        return self._index.begun(key) if record is None else [record, *self._index.begun(key)]

    def release(self, keys: Iterable[str]) -> None:
        """Give up claimed keys that were not asked to the end. Raises StoreError."""
        with self._mutex:
            self._claims.release(list(keys))

    def designs(self) -> list[Design]:
        """What the tests of this run have asked, as far as it is logged, of every session and process."""
        self.changed()
        with self._mutex:
            return [Design.from_record(record) for record in self._index.designs()]

    def batch_records(self) -> list[dict[str, Any]]:
        """What the logs of this run say of batches at a provider, of every session and process."""
        self.changed()
        with self._mutex:
            return self._index.batches()

    def append(self, record: dict[str, Any]) -> None:
        """Write *record* to this writer's log: in the kernel's hands on return. Raises StoreError."""
        log = self._log or self._open_log()
        offset, line = log.append(record)
        with self._mutex:
            self._index.note_own(offset, line)
            if record["type"] == "trial":
                self._claims.forget((record["key"],))

    def _open_log(self) -> Log:
        with self._mutex:
            if self._log is None:
                from importlib import metadata

                log = Log(
                    self.log_path,
                    seen=lambda line: self._index.note_own(line.offset, line.data),
                    anchor=self._anchors.get(self.log_path.name),
                )
                self._index.own_log(log.descriptor)
                self.notes += log.notes
                log.append(
                    {
                        "type": "log",
                        "schema": SCHEMA,
                        "run": self.directory.name,
                        "writer": self.writer,
                        "nonce": self._claims.me.nonce,
                        "pid": os.getpid(),
                        "host": socket.gethostname(),
                        "time": utc_now(),
                        "versions": {
                            "pytest-fairness": metadata.version("pytest-fairness"),
                            "python": platform.python_version(),
                        },
                        "notes": log.notes,
                    }
                )
                log.flush()
                files.flush_directory(self.directory)
                self._log = log
            return self._log

    def flush(self) -> None:
        """Return once the disk holds everything this store has handed out. Raises StoreError."""
        if self._log is not None:
            self._log.flush()
        with self._mutex:
            self._index.flush_others()

    # ------------------------------------------------------------ what else the processes of a run share

    def budget(self, cap: float | None) -> Budget:
        """The account of the run, under *cap* US dollars. Raises BudgetError for a cap that is no amount."""
        return Budget(self.state / "budget", cap)

    def limiter(self, identity: str, limits: Limits) -> Limiter:
        """The limits per minute of the system with the hash *identity*."""
        return Limiter(self.state / f"rate-{identity[:16]}", limits)

    def progress(self) -> WorkerProgress:
        """Where this writer says how far it is."""
        return WorkerProgress(self.state, self.writer)

    # ------------------------------------------------------------ the manifest

    def update_manifest(self, **fields: Any) -> None:
        """Set top-level *fields* of manifest.json, keeping what other processes wrote there. Raises
        StoreError."""
        with self._mutex, self._claims.held():
            write_manifest(self.directory, {**read_manifest(self.directory), **fields})

    def manifest(self) -> dict[str, Any]:
        """The manifest as it stands. Raises StoreError if it cannot be read."""
        return read_manifest(self.directory)

    def amend_manifest(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Let *change* edit the manifest while nobody else does. Raises StoreError."""
        with self._mutex, self._claims.held():
            manifest = read_manifest(self.directory)
            change(manifest)
            write_manifest(self.directory, manifest)

    def write_planned(self, tests: Iterable[str], *, announced: Sequence[str] = ()) -> None:
        """Note in the manifest which tests this session is to run, and how it was announced."""
        self.update_manifest(planned=sorted(tests), announced=list(announced))

    def finish(self, **fields: Any) -> None:
        """Set *fields* of the manifest, the heads of all logs with them: nobody writes to the run any more, and those
        who died writing have left theirs unsealed. Raises StoreError.
        """
        self.flush()
        with self._mutex, self._claims.held():
            self._index.refresh()
            own = {} if self._log is None else {self.log_path.name: self._log.summary()}
            manifest = read_manifest(self.directory)
            heads = {**manifest.get("logs", {}), **self._index.heads(), **own}
            write_manifest(self.directory, {**manifest, **fields, "logs": heads})

    def close(self) -> None:
        """Flush, write the head of the log into the manifest, and let others have this writer's name.

        Raises StoreError where the log could not be written to its end. May be called twice.
        """
        with self._mutex:
            try:
                if self._log is not None:
                    self._log.close()
                    self._seal(self._log)
                    self._log = None
            finally:
                self._claims.close()
                self._index.close()

    def _seal(self, log: Log) -> None:
        with self._claims.held():
            manifest = read_manifest(self.directory)
            heads = {**manifest.get("logs", {}), self.log_path.name: log.summary()}
            write_manifest(self.directory, {**manifest, "logs": heads})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
