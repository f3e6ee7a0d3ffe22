"""A run of one's own for each test, closed behind it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.engine.engine import Engine
from pytest_fairness.runs.lines import FIRST, encode_line, encode_record
from pytest_fairness.runs.packing import COLUMNS, Packer, Unpacker
from pytest_fairness.runs.store import RunStore, open_store
from tests.runs.children import Runs

EngineMaker = Callable[..., Engine]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".fairness" / "runs"


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Processes that ask, on a root and a ledger of their own."""
    return Runs(tmp_path)


@pytest.fixture
def store(root: Path) -> Iterator[RunStore]:
    """The store of a new run."""
    with open_store(root, "a session") as opened:
        yield opened


@pytest.fixture
def engine_for(store: RunStore) -> Iterator[EngineMaker]:
    """Makes engines on the run's store."""
    made: list[Engine] = []

    def make(endpoint: Endpoint, **options: Any) -> Engine:
        made.append(Engine(endpoint, store, **options))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


def records(directory: Path, *kinds: str) -> list[dict[str, Any]]:
    """The records of a run, of these types or all, as plain JSON: of its database, or of exported
    files alone.
    """
    found = [json.loads(line) for line in lines(directory)]
    return [record for record in found if not kinds or record["type"] in kinds]


def lines(directory: Path) -> list[str]:
    """The records of a run as they are exported, writer by writer."""
    database = directory / "run.sqlite3"
    if not database.exists():
        return [
            line
            for path in sorted(directory.glob("trials*.jsonl"))
            for line in path.read_text().splitlines()
        ]
    with contextlib.closing(sqlite3.connect(database)) as connection:
        writers = [
            name
            for (name,) in connection.execute("SELECT DISTINCT writer FROM records ORDER BY writer")
        ]
        return [line for writer in writers for line in Unpacker(connection).lines(writer)]


def unanswered(directory: Path) -> set[str]:
    """The keys of requests that were sent, without a record of what came of them."""
    ended = {(record["key"], record["attempt"]) for record in records(directory, "attempt")}
    return {
        one["key"]
        for one in records(directory, "sent")
        if (one["key"], one["attempt"]) not in ended
    }


def edit(directory: Path, statement: str, *values: Any) -> None:
    """Change the database of a closed run, as somebody might."""
    with contextlib.closing(sqlite3.connect(directory / "run.sqlite3")) as connection, connection:
        connection.execute(statement, values)


def rewrite(directory: Path, number: int, old: str, new: str, *, writer: str = "main") -> None:
    """Write *new* for *old* in the text of a record, as somebody might who leaves its hash as it
    was.
    """
    with contextlib.closing(sqlite3.connect(directory / "run.sqlite3")) as connection, connection:
        query = f"SELECT {COLUMNS} FROM records WHERE writer = ? AND number = ?"
        text = Unpacker(connection).text(connection.execute(query, (writer, number)).fetchone())
        assert old in text
        row = Packer(writer).pack(text.replace(old, new))
        connection.execute(
            "UPDATE records SET bases = ?, body = ? WHERE writer = ? AND number = ?",
            (row.bases, row.body, writer, number),
        )


def exported(directory: Path) -> Path:
    """The run with its records exported beside its database."""
    with RunStore.open(directory, writer="archivist") as store:
        store.export()
    return directory


def archived(directory: Path) -> Path:
    """The run as an archive keeps it: the manifest and the exported records, without a database."""
    exported(directory)
    (directory / "run.sqlite3").unlink()
    shutil.rmtree(directory / "state")
    return directory


def rehashed(lines: list[bytes], old: bytes, new: bytes) -> list[bytes]:
    """The lines of a log with *old* made *new* wherever it stands, and every hash made anew."""
    made, head = [], FIRST
    for line in lines:
        record = json.loads(line.replace(old, new))
        body = encode_record({key: record[key] for key in record if key not in ("prev", "hash")})
        text, head = encode_line(body, head)
        made.append(f"{text}\n".encode())
    return made


def snapshot(run: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


def resummed(folder: Path) -> None:
    """The sums made anew, as whoever tampers would."""
    names = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    sums = (
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names
    )
    (folder / "SHA256SUMS").write_text("".join(line for line in sums if "SHA256SUMS" not in line))


def relogged(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Every record of the log changed by *change*, the chain, the manifest and the sums made anew."""
    log, manifest = folder / "trials.jsonl", json.loads((folder / "manifest.json").read_bytes())
    lines = []
    for line in log.read_bytes().splitlines():
        record = json.loads(line)
        change(record)
        if record:
            lines.append(json.dumps(record).encode())
    made = rehashed(lines, b"\0", b"\0")
    log.write_bytes(b"".join(made))
    digest = hashlib.sha256(log.read_bytes()).hexdigest()
    manifest["logs"]["trials.jsonl"] = {
        "records": len(made),
        "head": json.loads(made[-1])["hash"],
        "sha256": digest,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    resummed(folder)
