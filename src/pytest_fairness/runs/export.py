"""The records of a run as files that can be verified without it: one a writer, a line a record."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import uuid
from pathlib import Path
from typing import Any

from pytest_fairness.runs import files
from pytest_fairness.runs.database import log_name

_BLOCK = 1 << 20


def export_records(connection: sqlite3.Connection, directory: Path) -> dict[str, dict[str, Any]]:
    """Write the records of each writer to its file in *directory*; how far each reaches, for the manifest.

    A file appears whole or not at all. Raises StoreError where it cannot be written.
    """
    writers = [writer for (writer,) in connection.execute("SELECT DISTINCT writer FROM records ORDER BY writer")]
    return {log_name(writer): _export(connection, writer, directory / log_name(writer)) for writer in writers}


def _export(connection: sqlite3.Connection, writer: str, path: Path) -> dict[str, Any]:
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.tmp")
    digest, count, line = hashlib.sha256(), 0, ""
    descriptor = files.open_regular(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            waiting = bytearray()
            query = "SELECT record FROM records WHERE writer = ? ORDER BY number"
            for count, (line,) in enumerate(connection.execute(query, (writer,)), 1):  # noqa: B007 - how many there were
                waiting += line.encode("ascii") + b"\n"
                if len(waiting) > _BLOCK:
                    digest.update(waiting)
                    files.write_all(descriptor, bytes(waiting), temporary)
                    waiting.clear()
            digest.update(waiting)
            files.write_all(descriptor, bytes(waiting), temporary)
            files.flush(descriptor, temporary)
        finally:
            os.close(descriptor)
        files.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return {"records": count, "head": line[-66:-2], "sha256": digest.hexdigest()}
