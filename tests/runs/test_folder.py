"""The run's folder: one a session, for all of its processes, in a place that is safe to write to."""

from __future__ import annotations

import datetime
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.errors import StoreError
from pytest_fairness.runs.folder import end_session, find_run, has_ended, reserve_run, run_folders
from pytest_fairness.runs.store import RunStore

TODAY = datetime.date(2026, 2, 28)
TOMORROW = datetime.date(2026, 3, 1)


def test_runs_are_numbered_by_the_day(root: Path) -> None:
    """The first run of a day is 001, and the next is the next, over a thousand too; whoever gives a
    session's token gets its folder, though midnight has passed. It is its owner's alone, and git
    does not see it."""
    first = reserve_run(root, "a", today=TODAY)
    assert first.name == "2026-02-28-001"
    assert reserve_run(root, "b", today=TODAY).name == "2026-02-28-002"
    assert reserve_run(root, "a", today=TOMORROW) == first
    assert reserve_run(root, "c", today=TOMORROW).name == "2026-03-01-001"
    (root / "2026-02-28-999").mkdir()
    assert reserve_run(root, "d", today=TODAY).name == "2026-02-28-1000"
    assert reserve_run(root, "e", today=TODAY).name == "2026-02-28-1001"
    assert [path.name[-4:] for path in run_folders(root)] == [
        "-001",
        "-002",
        "-999",
        "1000",
        "1001",
        "-001",
    ]
    assert stat.S_IMODE(first.stat().st_mode) == 0o700
    assert (root / ".gitignore").read_text() == "*\n"


def test_processes_that_start_together_get_runs_of_their_own(root: Path) -> None:
    """Sessions started in the same second have folders of their own; two processes of one session
    share theirs.
    """
    script = (
        "import sys; from pathlib import Path; from pytest_fairness.runs.folder import reserve_run;"
        "print(reserve_run(Path(sys.argv[1]), sys.argv[2]).name)"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, root, token], stdout=subprocess.PIPE, text=True
        )
        for token in ("one", "one", "two", "two")
    ]
    names = [process.communicate()[0].strip() for process in started]
    assert len(set(names)) == 2
    assert names[0::2] == names[1::2]


def test_a_token_that_names_no_run_is_refused(root: Path) -> None:
    """The note of a session's folder is no way out of the root, whatever was written into it."""
    reserve_run(root, "token")
    (entry,) = (root / ".sessions").iterdir()
    entry.write_text("../../somewhere")
    with pytest.raises(StoreError, match="names no run"):
        reserve_run(root, "token")


def test_a_network_file_system_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes cannot share a database there: say so before the first call."""
    mounts = (
        f"1 0 0:1 / / rw - ext4 /dev/x rw\n2 1 0:2 / {root.parent.resolve()} rw - nfs4 server:/x "
        "rw\n"
    )
    directory = reserve_run(root, "token")
    monkeypatch.setattr(Path, "read_text", lambda *_: mounts)
    with pytest.raises(
        StoreError, match=r"is on a network file system \(nfs4\).* fairness_run_dir"
    ):
        RunStore.open(directory)


def test_a_file_system_without_locks_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without them nobody could keep two processes from asking the same."""
    directory = reserve_run(root, "token")
    connect = sqlite3.connect

    class Lockless:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._connection = connect(*arguments, **options)
            self.close = self._connection.close

        def execute(self, statement: str) -> Any:
            if statement.startswith("BEGIN"):
                error = sqlite3.OperationalError("locking protocol")
                error.sqlite_errorname = "SQLITE_PROTOCOL"
                raise error
            return self._connection.execute(statement)

    monkeypatch.setattr(sqlite3, "connect", Lockless)
    with pytest.raises(StoreError, match=r"cannot be locked .* local disk"):
        RunStore.open(directory)


def test_a_writer_is_a_plain_word(root: Path) -> None:
    """A writer's name becomes part of file names, on every file system."""
    directory = reserve_run(root, "token")
    for name in ("../x", "gw0/..", "", "GW0", "x" * 60, "a\x00b"):
        with pytest.raises(StoreError, match="cannot name a writer"):
            RunStore.open(directory, writer=name)


def test_a_run_is_found_by_its_token_and_nothing_is_made(root: Path) -> None:
    """A controller looks for the folder of its workers; where there is none, the disk stays as it
    was. Word of the end reaches those who have the token, and nobody else."""
    assert find_run(root, "token") is None
    end_session(root, "token")
    assert not root.exists()
    directory = reserve_run(root, "token")
    reserve_run(root, "another")
    assert find_run(root, "token") == directory
    end_session(root, "token")
    assert has_ended(root, "token")
    assert not has_ended(root, "another")
