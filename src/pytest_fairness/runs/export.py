"""The records of a run as files that can be verified without it: one a writer, a line a record."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_fairness.runs import database
from pytest_fairness.runs.database import connect, log_name
from pytest_fairness.runs.files import replacing
from pytest_fairness.runs.folder import reserve_run
from pytest_fairness.runs.manifest import write_manifest
from pytest_fairness.runs.reader import charge, reading


def export_records(connection: sqlite3.Connection, directory: Path) -> dict[str, dict[str, Any]]:
    """Write the records of each writer to its file in *directory*; how far each reaches, for the manifest.

    A file appears whole or not at all. Raises StoreError where it cannot be written.
    """
    heads = {}
    writers = [writer for (writer,) in connection.execute("SELECT DISTINCT writer FROM records ORDER BY writer")]
    for writer in writers:
        digest, count, line = hashlib.sha256(), 0, ""
        lines = connection.execute("SELECT record FROM records WHERE writer = ? ORDER BY number", (writer,))
        with replacing(directory / log_name(writer)) as stream:
            for count, (line,) in enumerate(lines, 1):  # noqa: B007 - how many there were
                data = line.encode("ascii") + b"\n"
                digest.update(data)
                stream.write(data)
        heads[log_name(writer)] = {"records": count, "head": line[-66:-2], "sha256": digest.hexdigest()}
    return heads


def make_run(root: Path, fill: Callable[[sqlite3.Connection], dict[str, Any]]) -> Path:
    """A new run under *root*: of the records that *fill* inserts, and with the manifest that it returns. It is checked,
    and charged with what its records cost; nothing is left of it where anything raises.
    """
    run = reserve_run(root, uuid.uuid4().hex)
    try:
        with contextlib.closing(connect(run / database.NAME)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            manifest = fill(connection)
            charge(connection)
            connection.execute("COMMIT")
            write_manifest(run, {**manifest, "id": run.name, "logs": export_records(connection, run)})
        with reading(run):
            return run
    except BaseException:
        shutil.rmtree(run)
        raise
