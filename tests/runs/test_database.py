"""The database: what was waited for is there, word for word; what was damaged is named, and nothing
is skipped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import sqlite3
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fairness.cli import main
from pytest_fairness.errors import StoreError
from pytest_fairness.runs import database, packing
from pytest_fairness.runs.folder import run_folders
from pytest_fairness.runs.lines import BadLineError, encode_record
from pytest_fairness.runs.packing import COLUMNS, Packer, Unpacker
from pytest_fairness.runs.reader import RunReader
from pytest_fairness.runs.salvage import salvage
from pytest_fairness.runs.store import RunStore, open_store
from tests.support.runs import archived, edit, records

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
KEY = "a" * 64


def note(store: RunStore, *texts: str) -> None:
    for text in texts:
        store.append({"type": "note", "text": text})
    store.flush()


def written(root: Path, *texts: str, token: str = "a session") -> Path:
    """A closed run with a note of each text."""
    with open_store(root, token) as store:
        note(store, *texts)
    return store.directory


def texts_of(directory: Path) -> list[str]:
    RunReader.open(directory).connection.close()
    return [record["text"] for record in records(directory, "note")]


# ------------------------------------------------------------ word for word


@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(st.lists(ANY_TEXT, min_size=1, max_size=5))
def test_any_text_comes_back_exactly(root: Path, texts: list[str]) -> None:
    """Lone surrogates, NUL, line separators: a record is ASCII in the database and one line in its
    export, and the text in it is the text that was."""
    directory = written(root, *texts, token=repr(texts))
    assert texts_of(directory)[-len(texts) :] == texts
    data = (archived(directory) / "trials.jsonl").read_bytes()
    assert data.isascii()
    assert data.count(b"\n") == len(data.decode().splitlines()) == len(records(directory))


def test_a_run_is_its_owners_alone_and_only_grows(store: RunStore) -> None:
    """Also the files that SQLite puts beside the database while it is open. What cannot be written
    is refused before a byte of it is."""
    note(store, "one")
    files = [path for path in store.directory.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"run.sqlite3", "run.sqlite3-wal", "run.sqlite3-shm"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    before = records(store.directory)
    with pytest.raises(ValueError, match="JSON compliant"):
        store.append({"type": "note", "value": float("nan")})
    note(store, "two")
    assert records(store.directory)[: len(before)] == before
    assert texts_of(store.directory) == ["one", "two"]


def test_records_are_committed_in_groups_and_unbidden(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When records come fast one commit serves many; whoever flushes has all that was before; and
    the last are on the disk within a moment although nobody waits."""
    commits: list[int] = []
    settle = store.database._settle  # type: ignore[attr-defined]
    monkeypatch.setattr(
        store.database,
        "_settle",
        lambda group, *rest: commits.append(len(group)) or settle(group, *rest),
    )
    note(store, *map(str, range(3000)))
    assert len(records(store.directory, "note")) == 3000
    assert len(commits) < 300
    noticed = threading.Event()
    monkeypatch.setattr(store.database, "_settle", lambda *_: noticed.set())
    store.append({"type": "note", "text": "last"})
    assert noticed.wait(5)
    assert len(records(store.directory, "note")) == 3001


def test_ordinary_tools_read_what_is_exported_for_them(root: Path, tmp_path: Path) -> None:
    """By columns, of each trial the record that counts, in a file of its owner's alone; another is
    left as it is.
    """
    with open_store(root, "t") as store:
        for status, replies in (("unknown", []), ("answered", ["first", "last \ud800"])):
            cell = {"id": "c", "template": "t", "groups": {"gender": "female"}, "name": "Ada"}
            store.append(
                {
                    "type": "trial",
                    "key": KEY,
                    "status": status,
                    "cell": cell,
                    "replies": replies,
                    "cost": 0.5,
                }
            )
        store.append(
            {"type": "attempt", "key": KEY, "status": "answered", "wire": {"status_code": 200}}
        )
    path = tmp_path / "tables.sqlite3"
    command = ["export", str(store.directory), "--sqlite", str(path)]
    assert main(command) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute(
            "SELECT status, template, groups, name, cost FROM trials"
        ).fetchall() == [("answered", "t", '{"gender":"female"}', "Ada", 0.5)]
        assert connection.execute("SELECT status, status_code FROM attempts").fetchall() == [
            ("answered", 200)
        ]
        ((reply, record),) = connection.execute("SELECT reply, record FROM trials").fetchall()
        assert (reply, json.loads(record)["replies"]) == ("last \\ud800", ["first", "last \ud800"])
    assert main(command) == 2


# ------------------------------------------------------------ disks that fail


@pytest.mark.parametrize(
    ("deed", "suffix"),
    [
        ("removed", ""),
        ("replaced", ""),
        ("removed", "-wal"),
        ("replaced", "-wal"),
        ("cut", "-wal"),
        ("removed", "-shm"),
        ("held by another program", ""),
    ],
)
def test_a_database_that_cannot_be_written_any_more_is_noticed(
    root: Path, monkeypatch: pytest.MonkeyPatch, deed: str, suffix: str
) -> None:
    """Writing on into a file that has no name any more, or into a log of changes that was cut,
    would lose everything paid for; a lock is waited for."""
    monkeypatch.setattr(database, "_PATIENCE", 0.2)
    store = open_store(root, "t")
    path = store.directory / "run.sqlite3"
    with contextlib.ExitStack() as stack:
        if deed == "held by another program":
            other = stack.enter_context(
                contextlib.closing(sqlite3.connect(path, isolation_level=None))
            )
            other.execute("BEGIN IMMEDIATE")
            error = r"cannot be locked .* close the program that has it open"
        else:
            error = rf"run\.sqlite3{suffix} was {deed} while this session wrote to it"
            path = path.with_name(f"{path.name}{suffix}")
            if deed == "cut":
                note(store, "written")
                os.truncate(path, path.stat().st_size // 2)
            else:
                path.unlink()
        if deed == "replaced":
            path.touch()
        with pytest.raises(StoreError, match=error):
            note(store, "lost")
    for write in (lambda: note(store, "lost"), store.close):
        with pytest.raises(StoreError, match=error):
            write()


@pytest.mark.parametrize("writer", ["gw0", "gw1"])
@pytest.mark.parametrize("number", [2, 3])
def test_a_record_that_is_no_longer_there_is_noticed_before_the_end(
    root: Path, writer: str, number: int
) -> None:
    """The last, or one before it: of a writer that is done, and of the one that looks."""
    with open_store(root, "t", writer="gw0") as done:
        note(done, "first", "second")
    store = open_store(root, "t", writer="gw1")
    note(store, "first", "second")
    store.check_written()
    with contextlib.closing(sqlite3.connect(store.directory / "run.sqlite3")) as other, other:
        other.execute("DELETE FROM records WHERE writer = ? AND number = ?", (writer, number))
    with pytest.raises(StoreError, match=rf"it has 2 records of .*{writer}.*, and 3 were written"):
        store.check_written()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_writes_nothing(store: RunStore) -> None:
    """Its parent's connection is none of its own: the error says to open the run anew, and nothing
    hangs.
    """
    child = os.fork()
    if child == 0:
        try:
            note(store, "")
        except StoreError as error:
            os._exit(7 if "forked" in str(error) else 1)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    note(store, "")


# ------------------------------------------------------------ of another version


def test_a_run_of_another_form_is_refused_in_one_message(root: Path) -> None:
    """By whoever reads, continues or salvages it; with what can be read all the same, where it was
    exported.
    """
    directory = written(root, "one")
    edit(directory, "PRAGMA user_version = 2")
    for way_on in (
        "$",
        "; or read a copy of its folder without run.sqlite3, as its exported records are beside "
        "it$",
    ):
        for opened in (RunReader.open, RunStore.open, lambda run: salvage(run, root)):
            with pytest.raises(
                StoreError,
                match=rf"another version .*form 2, here 3\): read it with that version{way_on}",
            ):
                opened(directory)
        (directory / "trials.jsonl").touch()


# ------------------------------------------------------------ each text once

WORDS = (
    "the candidate brings solid experience, works carefully, and is recommended without reserve to "
    "whoever asks"
)


def test_a_trial_of_a_hundred_words_takes_two_kilobytes(root: Path) -> None:
    """Of its own words, with the headers of a provider, its request, and all that the run keeps
    beside it.
    """
    chosen = random.Random(0)
    headers = {f"x-header-{number}": "value " * 8 for number in range(12)}
    with open_store(root, "t") as store:
        for number in range(200):
            reply = " ".join(chosen.choices(WORDS.split(), k=100)) + f" {number}"
            key = hashlib.sha256(b"%d" % number).hexdigest()
            prompt = f"Write a reference for candidate {number}. " + WORDS
            wire = {"request_body": json.dumps({"messages": [{"role": "user", "content": prompt}]})}
            wire |= {"response_body": json.dumps({"id": f"chatcmpl-{key[:24]}", "text": reply})}
            wire |= {"response_headers": headers | {"x-request-id": key[24:48]}}
            store.claim([key])
            store.append({"type": "sent", "key": key})
            store.append({"type": "attempt", "key": key, "text": reply, "wire": wire})
            cell = {"id": f"c{number}", "turns": [prompt], "groups": {"gender": "female"}}
            store.append(
                {
                    "type": "trial",
                    "key": key,
                    "status": "answered",
                    "cell": cell,
                    "replies": [reply],
                }
            )
    assert (store.directory / "run.sqlite3").stat().st_size <= 200 * 2000
    with RunStore.open(store.directory) as again:
        assert len(again) == 200
        assert len(str(again.records([key]).__next__()["replies"])) > 600


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["sent", "attempt", "trial"]), st.integers(0, 3), ANY_TEXT),
        max_size=30,
    )
)
def test_what_is_packed_is_unpacked(rows: list[tuple[str, int, str]]) -> None:
    """Whatever was before it, of whichever type and trial, also far longer than what the format can
    look back to.
    """
    texts = [
        encode_record({"type": kind, "key": f"{key:064x}", "text": text * (1 + 4000 * (key == 3))})
        for kind, key, text in rows
    ]
    with contextlib.closing(sqlite3.connect("", isolation_level=None)) as connection:
        database.create_tables(connection)
        database.insert_records(connection, "main", texts)
        rows_of = f"SELECT {COLUMNS} FROM records ORDER BY number DESC"
        unpacker = Unpacker(connection)
        assert [unpacker.text(row) for row in connection.execute(rows_of)] == texts[::-1]


def test_a_record_that_unpacks_to_more_than_can_be_meant_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packing, "_LONGEST", 1000)
    with contextlib.closing(sqlite3.connect("")) as connection:
        row = Packer("main").pack(encode_record({"type": "note", "text": "a" * 2000}))
        with pytest.raises(BadLineError, match="too long to be meant"):
            Unpacker(connection).text(row)


# ------------------------------------------------------------ damaged

DAMAGES = {
    "another key": (f"UPDATE records SET key = x'{KEY}' WHERE number = 3", "its hash does not fit"),
    "another base": (
        "UPDATE records SET bases = '2' WHERE number = 3",
        "its hash does not fit|cannot be unpacked",
    ),
    "a base after it": ("UPDATE records SET bases = '-1' WHERE number = 3", "cannot be unpacked"),
    "another text": (
        "UPDATE records SET body = (SELECT body FROM records WHERE number = 4) WHERE number = 3",
        "hash",
    ),
    "a text cut short": (
        "UPDATE records SET body = substr(body, 1, length(body) - 1) WHERE number = 3",
        "cannot be unpacked",
    ),
    "removed": ("DELETE FROM records WHERE number = 3", "does not follow the one before"),
    "moved": ("UPDATE records SET id = id + 10 WHERE number = 3", "does not follow the one before"),
    "renumbered": (
        "UPDATE records SET number = 30 WHERE number = 3",
        "does not follow the one before",
    ),
    "doubled": (
        "INSERT INTO records SELECT 99, writer, 5, type, key, status, hash, bases, body FROM "
        "records WHERE number = 3",
        "its hash does not fit",
    ),
    "foreign": (
        "INSERT INTO records VALUES (99, 'main', 5, 'x', NULL, NULL, x'00', NULL, x'0300')",
        "does not fit",
    ),
    "another type": ("UPDATE records SET type = 'trial' WHERE number = 3", "columns are not those"),
    "a trigger": (
        "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END",
        "tables are not those",
    ),
    "another view": ("DROP VIEW trials", "tables are not those"),
    "cut off": ("DELETE FROM records WHERE number = 4", "ends after 3 records, but had 4"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named(root: Path, damage: str) -> None:
    """Whatever was done to a record, reading and continuing stop there and say where; mended, all
    is as it was. That the end is missing the chain alone cannot show: the manifest does."""
    directory = written(root, "one", "two", "three")
    statement, why = DAMAGES[damage]
    whole = (directory / "run.sqlite3").read_bytes()
    edit(directory, statement)
    for opened in (RunReader.open, RunStore.open):
        with pytest.raises(StoreError, match=rf"run\.sqlite3.*{why}.*(salvage|from a copy)"):
            opened(directory)
    (directory / "run.sqlite3").write_bytes(whole)
    assert texts_of(directory) == ["one", "two", "three"]
    RunStore.open(directory).close()


@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(st.data())
def test_no_changed_byte_goes_unnoticed(root: Path, data: st.DataObject) -> None:
    """Any byte of the database turned into any other: an error, or nothing that is read has
    changed.
    """
    directory = next(iter(run_folders(root)), None) or written(root, "one", "two")
    path = directory / "run.sqlite3"
    whole, before = path.read_bytes(), records(directory)
    content = bytearray(whole)
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        with contextlib.suppress(StoreError):
            reader = RunReader.open(directory)
            assert [json.loads(line) for line in reader.lines("trials.jsonl")] == before
            reader.connection.close()
    finally:
        path.write_bytes(whole)


def test_a_crash_in_the_middle_of_a_commit_loses_that_commit_alone(root: Path) -> None:
    """Cut at any byte of what was written last, the run is what was committed before, and is
    resumed from there.
    """
    with open_store(root, "t") as store:
        note(store, "first")
        wal = store.directory / "run.sqlite3-wal"
        before = wal.stat().st_size
        note(store, "second")
        files = {
            name: (store.directory / name).read_bytes()
            for name in ("run.sqlite3", "run.sqlite3-wal")
        }
    for cut in range(before, len(files["run.sqlite3-wal"]), 397):
        directory = root / "2026-02-28-001"
        directory.mkdir()
        (directory / "run.sqlite3").write_bytes(files["run.sqlite3"])
        (directory / "run.sqlite3-wal").write_bytes(files["run.sqlite3-wal"][:cut])
        with RunStore.open(directory) as again:
            note(again, "after")
        assert texts_of(directory) == ["first", "after"]
        shutil.rmtree(directory)


def test_an_export_that_was_changed_is_noticed_beside_the_database(root: Path) -> None:
    """Whoever reads the file alone must not read something else."""
    with open_store(root, "t") as store:
        note(store, "hire", "her")
        store.finish(finished="now")
        store.export()
    path = store.directory / "trials.jsonl"
    whole = path.read_bytes()
    for changed, why in (
        (whole.replace(b"hire", b"fire"), ", line 2: the record was changed"),
        (whole[:-1], ": it is not"),
    ):
        path.write_bytes(changed)
        with pytest.raises(StoreError, match=rf"trials\.jsonl{why}"):
            RunReader.open(store.directory)
