"""The records of a run as files that can be verified without it: one a writer, a line a record."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_fairness.errors import StoreError, UsageError
from pytest_fairness.runs import database
from pytest_fairness.runs.database import connect, log_name, writer_of
from pytest_fairness.runs.files import open_regular, replacing
from pytest_fairness.runs.folder import reserve_run
from pytest_fairness.runs.manifest import write_manifest
from pytest_fairness.runs.packing import Unpacker
from pytest_fairness.runs.reader import Heads, RunReader, Watch, charge, reading, unwatched


def export_records(connection: sqlite3.Connection, directory: Path) -> dict[str, dict[str, Any]]:
    """Write the records of each writer to its file in *directory*; how far each reaches, for the
    manifest.

    A file appears whole or not at all. Raises StoreError where it cannot be written.
    """
    heads = heads_of(connection)
    texts = Unpacker(connection)
    for name, head in heads.items():
        digest = hashlib.sha256()
        with replacing(directory / name) as stream:
            for line in texts.lines(writer_of(name)):
                data = line.encode("ascii") + b"\n"
                digest.update(data)
                stream.write(data)
        head["sha256"] = digest.hexdigest()
    return heads


@contextlib.contextmanager
def stored(directory: Path, watch: Watch = unwatched) -> Iterator[None]:
    """Put the exported records in *directory* into a database beside them, until the end of the
    block: what looks many up by their keys would read the files from end to end for each. Raises
    StoreError where a record was changed.
    """
    path = directory / database.NAME
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            database.create_tables(connection)
            Heads(directory, over=True).check(connection, watch)
        yield
    finally:
        path.unlink(missing_ok=True)


def heads_of(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    """Return how far the records of each writer reach, by the name of the file that they are
    exported to.
    """
    query = """SELECT writer, number, hash FROM records
        WHERE (writer, number) IN (SELECT writer, max(number) FROM records GROUP BY writer) ORDER BY writer"""
    rows = connection.execute(query)
    return {
        log_name(writer): {"records": number, "head": digest.hex()}
        for writer, number, digest in rows
    }


#: Where each column of the tables for other tools stands in a record.
_TABLES: dict[str, dict[str, tuple[str | int, ...]]] = {
    "trials": {
        "key": ("key",),
        "status": ("status",),
        "endpoint": ("endpoint", "name"),
        "model": ("model",),
        "cell": ("cell", "id"),
        "template": ("cell", "template"),
        "groups": ("cell", "groups"),
        "name": ("cell", "name"),
        "arm": ("cell", "arm"),
        "repetition": ("repetition",),
        "prompt": ("messages", -1, "content"),
        "reply": ("replies", -1),
        "attempts": ("attempts",),
        "cost": ("cost",),
        "seconds": ("seconds",),
        "error": ("error",),
        "source": ("source",),
        "time": ("time",),
        "record": (),
    },
    "attempts": {
        "key": ("key",),
        "turn": ("turn",),
        "attempt": ("attempt",),
        "status": ("status",),
        "evidence": ("evidence",),
        "cost": ("cost",),
        "seconds": ("seconds",),
        "error": ("error",),
        "status_code": ("wire", "status_code"),
        "request": ("wire", "request_body"),
        "response": ("wire", "response_body"),
        "time": ("time",),
        "record": (),
    },
}


def export_tables(reader: RunReader, path: Path) -> dict[str, int]:
    """Write the tables ``trials`` (of each the record that counts) and ``attempts`` to a new SQLite
    file at *path*; how many rows each has. Raises UsageError where there is a file, StoreError
    where it cannot be written.
    """
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} is there already: remove it, or give another name with --sqlite")
    os.close(open_regular(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    records = {"trials": reader.trial_records(), "attempts": reader.each("attempt")}
    rows: dict[str, int] = {}
    try:
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            for table, places in _TABLES.items():
                connection.execute(f"CREATE TABLE {table} ({', '.join(places)})")
                insert = f"INSERT INTO {table} VALUES ({', '.join('?' * len(places))})"
                values = (
                    [_value(record, place) for place in places.values()]
                    for record in records[table]
                )
                rows[table] = connection.executemany(insert, values).rowcount
    except sqlite3.Error as error:
        raise StoreError(
            f"{path} cannot be written ({error}): give another name with --sqlite"
        ) from error
    return rows


def _value(record: Any, place: Iterable[str | int]) -> Any:
    """Return what stands in *record* at *place*, as SQLite keeps it; None where there is nothing."""
    for step in place:
        try:
            record = record[step]
        except (KeyError, IndexError, TypeError):
            return None
    if isinstance(record, (Mapping, list)):
        return json.dumps(record, separators=(",", ":"))
    if isinstance(record, str):
        return record.encode("utf-8", "backslashreplace").decode()
    return record


def make_run(root: Path, fill: Callable[[sqlite3.Connection], dict[str, Any]]) -> Path:
    """A new run under *root*: of the records that *fill* inserts, and with the manifest that it
    returns. It is checked, and charged with what its records cost; nothing is left of it where
    anything raises.
    """
    run = reserve_run(root, uuid.uuid4().hex)
    try:
        with contextlib.closing(connect(run / database.NAME)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            manifest = fill(connection)
            charge(connection)
            connection.execute("COMMIT")
            write_manifest(run, {**manifest, "id": run.name, "logs": heads_of(connection)})
        with reading(run):
            return run
    except BaseException:
        shutil.rmtree(run)
        raise
