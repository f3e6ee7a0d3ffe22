"""Salvaging a damaged run: what verifies is kept, what does not is named, and the damaged run stays
as it was.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_fairness.cli import main
from pytest_fairness.engine.engine import Engine
from pytest_fairness.errors import StoreError, UsageError
from pytest_fairness.runs.manifest import read_manifest
from pytest_fairness.runs.reader import RunReader, read_trials
from pytest_fairness.runs.salvage import salvage
from pytest_fairness.runs.store import RunStore, open_store
from tests.support.doubles import Scripted, plan
from tests.support.runs import archived, edit, records, rehashed, rewrite, snapshot

Lines = list[bytes]
#: Records of a run of three trials: log, engine, and sent, attempt and trial of each.
COUNT = 11


def ask_three(engine: Engine) -> None:
    """Ask three trials, each after the record of the one before: else the next request may be
    announced before it.
    """
    for planned in plan(3):
        engine.run([planned])


@pytest.fixture
def run_of_three(root: Path) -> Path:
    """An archived run: its manifest has the head of its log."""
    with open_store(root, "t") as store, Engine(Scripted(), store, concurrency=1) as engine:
        ask_three(engine)
        store.update_manifest(settings={"endpoint": "scripted"}, seed=0)
    return archived(store.directory)


def damage(run: Path, change: Callable[[Lines], Lines]) -> dict[str, bytes]:
    """Change the log's lines; every file of the run as it is then."""
    log = run / "trials.jsonl"
    log.write_bytes(b"".join(change(log.read_bytes().splitlines(keepends=True))))
    return snapshot(run)


def changed(lines: Lines) -> Lines:
    """One letter of one reply is another."""
    return [*lines[:4], lines[4].replace(b"Answer", b"answer"), *lines[5:]]


#: What is done to the lines, how many records are kept, and how the lines that name the rest begin.
DAMAGES: dict[str, tuple[Callable[[Lines], Lines], int, list[str]]] = {
    "changed": (changed, 10, ["line 5: the record was changed: its hash does not fit"]),
    "garbage": (
        lambda lines: [*lines[:4], b"Traceback:\n", *lines[5:]],
        10,
        ["line 5: this is not a record"],
    ),
    "torn and glued": (
        lambda lines: [*lines[:4], lines[4][:50] + lines[5], *lines[6:]],
        9,
        ["line 5: the record was"],
    ),
    "NaN": (
        lambda lines: [*lines[:4], lines[4].replace(b":0", b":NaN"), *lines[5:]],
        10,
        ["line 5: the record was"],
    ),
    "copied": (
        lambda lines: [*lines[:6], lines[4], *lines[6:]],
        11,
        ["line 7: a copy, or of another"],
    ),
    "moved": (lambda lines: [*lines[:3], lines[5], lines[3], lines[4], *lines[6:]], 11, []),
    "removed": (
        lambda lines: [*lines[:4], *lines[5:]],
        10,
        ["line 5: records before this line are missing"],
    ),
    "cut off": (
        lambda lines: lines[:7],
        7,
        ["lines 8-11: the log had 11 records when the run was closed: the end is"],
    ),
    "torn": (
        lambda lines: [*lines[:7], lines[7][:40]],
        7,
        ["line 8: cut short", "lines 9-11: the log had 11 records"],
    ),
    "byte order mark": (lambda lines: [b"\xef\xbb\xbf" + lines[0], *lines[1:]], 11, []),
    "line endings": (lambda lines: [line.replace(b"\n", b"\r\n") for line in lines], 11, []),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_what_verifies_is_kept_and_the_rest_named(
    run_of_three: Path, tmp_path: Path, how: str
) -> None:
    """Each damage costs what it hit, by file and line; the new run verifies, and holds each record
    as it was, with the hash that it had; the old run is as it was."""
    change, kept, why = DAMAGES[how]
    originals = {record["hash"]: record for record in records(run_of_three)}
    before = damage(run_of_three, change)
    done = salvage(run_of_three, tmp_path / "runs")
    assert done.records == kept == len(records(done.directory))
    for record in records(done.directory):
        original = originals.pop(record.pop("salvaged"))
        chain = {"prev": original["prev"], "hash": original["hash"]}
        assert {**record, **chain} == original
    for lost, start in zip(done.lost, why, strict=True):
        assert str(lost).startswith(f"trials.jsonl, {start}")
    assert done.trials == len(read_trials(done.directory))
    assert snapshot(run_of_three) == before
    about = read_manifest(done.directory)["salvaged_from"]
    assert (about["run"], about["lost"]) == (run_of_three.name, [str(lost) for lost in done.lost])


def test_records_of_another_log_are_not_taken(run_of_three: Path, tmp_path: Path) -> None:
    """They verify, but nothing leads to them: whoever put files together must not have them judged
    as one.
    """
    with (
        open_store(tmp_path / "other", "t") as store,
        Engine(Scripted(name="other"), store, concurrency=1) as engine,
    ):
        engine.run(plan(5))
    foreign = (archived(store.directory) / "trials.jsonl").read_bytes().splitlines(keepends=True)
    damage(run_of_three, lambda lines: [*lines, *foreign])
    done = salvage(run_of_three, tmp_path / "runs")
    assert done.records == COUNT
    assert [str(lost) for lost in done.lost] == [
        "trials.jsonl, lines 12-28: a copy, or of another log: nothing in this one leads to it"
    ]


def test_a_missing_file_and_a_trial_in_two_logs(root: Path, tmp_path: Path) -> None:
    """A worker's log that is gone is named; of a trial that stands in two logs the first is taken."""
    with open_store(root, "t", writer="gw0") as one, Engine(Scripted(), one) as engine:
        engine.run(plan(2))
    with open_store(root, "t", writer="gw2") as other, Engine(Scripted(), other) as engine:
        engine.run(plan(4))
    run = archived(one.directory)
    shutil.copy(run / "trials-gw0.jsonl", run / "trials-gw1.jsonl")
    (run / "trials-gw2.jsonl").unlink()
    done = salvage(run, tmp_path / "salvaged")
    assert done.trials == 2
    *twice, missing = done.lost
    assert sum(lost.last - lost.first + 1 for lost in twice) == 2
    assert {(lost.file, lost.why) for lost in twice} == {
        ("trials-gw1.jsonl", "this trial is already in another record")
    }
    assert str(missing).startswith("trials-gw2.jsonl, lines 1-")
    assert str(missing).endswith("the file is missing")


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"logs": 3}'])
def test_a_manifest_that_cannot_be_read_is_one_loss(
    run_of_three: Path, tmp_path: Path, content: bytes
) -> None:
    """The records are all there; that nobody can tell whether the end is missing is told."""
    (run_of_three / "manifest.json").write_bytes(content)
    done = salvage(run_of_three, tmp_path / "runs")
    assert done.records == COUNT
    assert [str(lost) for lost in done.lost] == [
        "manifest.json: it cannot be read: whether the logs end too early cannot be told"
    ]


def test_what_cannot_be_salvaged(run_of_three: Path, tmp_path: Path) -> None:
    """A whole run, a second copy of which would invite paying for it twice; a log that was edited
    and hashed again, sound in itself, of which nothing can be trusted; a folder that is none."""
    with pytest.raises(UsageError, match="is whole, there is nothing to salvage"):
        salvage(run_of_three, tmp_path / "runs")
    damage(run_of_three, lambda lines: rehashed(lines, b"Answer", b"answer"))
    with pytest.raises(UsageError, match=r"nothing of .* verifies"):
        salvage(run_of_three, tmp_path / "runs")
    assert not list((tmp_path / "runs").glob("2*"))
    with pytest.raises(UsageError, match="is not the folder of a run"):
        salvage(tmp_path / "nowhere", tmp_path / "runs")


def test_a_salvaged_run_is_resumed(run_of_three: Path) -> None:
    """What was lost is asked, what was kept is not; what was spent before still counts."""
    damage(run_of_three, lambda lines: [*lines[:8], b"?\n", b"?\n", b"?\n"])
    done = salvage(run_of_three, run_of_three.parent)
    endpoint = Scripted()
    with RunStore.open(done.directory) as store, Engine(endpoint, store) as engine:
        trials = engine.run(plan(3))
    assert [trial.status for trial in trials] == ["answered"] * 3
    assert len(endpoint.requests) == 1
    assert len(RunReader.open(done.directory)) == 3


def test_a_damaged_database_is_salvaged(root: Path, tmp_path: Path) -> None:
    """Records that were changed or cannot be read are lost, the others kept, with what was spent;
    of each log that of database and export is read which holds more; the damaged run stays as it
    is."""
    with open_store(root, "t") as store, Engine(Scripted(), store, concurrency=1) as engine:
        ask_three(engine)
        asyncio.run(store.budget(None).reserve(700))
    run = store.directory
    rewrite(run, 8, "Answer", "answer")
    before = snapshot(run)
    done = salvage(run, tmp_path / "runs")
    assert (done.records, [str(lost) for lost in done.lost]) == (
        COUNT - 1,
        ["trials.jsonl, line 8: the record was changed: its hash does not fit"],
    )
    assert snapshot(run) == before
    with RunStore.open(done.directory) as again:
        assert sum(again.budget(None).account()) == 700

    size = (run / "run.sqlite3").stat().st_size
    with (run / "run.sqlite3").open("r+b") as stream:
        stream.truncate(size // 2)
    with pytest.raises(StoreError):
        RunReader.open(run)
    with pytest.raises(UsageError, match="nothing of"):
        salvage(run, tmp_path / "runs")
    shutil.copy(archived(done.directory) / "trials.jsonl", run / "trials.jsonl")
    (run / "manifest.json").unlink()
    assert salvage(run, tmp_path / "runs").records == COUNT - 1


def test_a_trial_is_lost_with_the_attempt_whose_texts_it_shares(root: Path, tmp_path: Path) -> None:
    """Both are named; so is the record after one that was taken out, whose hash is made of that
    one's.
    """
    with open_store(root, "t") as store, Engine(Scripted(), store, concurrency=1) as engine:
        ask_three(engine)
    run, whole = store.directory, snapshot(store.directory)
    changed = "the record was changed: its hash does not fit"
    for damage, lost in (
        (lambda: rewrite(run, 7, "Answer to", "Reply to: "), [f"lines 7-8: {changed}"]),
        (
            lambda: edit(run, "DELETE FROM records WHERE number = 6"),
            ["line 6: cannot be read", "line 7: the record before it is"],
        ),
    ):
        damage()
        done = salvage(run, tmp_path / "runs")
        assert done.records == COUNT - 2
        rows = zip(done.lost, lost, strict=True)
        assert [str(each).removeprefix("trials.jsonl, ")[: len(why)] for each, why in rows] == lost
        (run / "run.sqlite3").write_bytes(whole[str(run / "run.sqlite3")])


def test_the_command_tells_what_became_of_it(
    run_of_three: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kept and lost, and the two ways on; the new run lies beside the old one unless told
    otherwise.
    """
    damage(run_of_three, changed)
    assert main(["salvage", str(run_of_three)]) == 0
    printed = capsys.readouterr().out
    new = run_of_three.with_name(run_of_three.name[:-1] + "2")
    assert f"salvaged 10 records, 2 trials: {new}" in printed
    assert "lost: trials.jsonl, line 5: the record was changed: its hash does not fit" in printed
    assert f"--fairness-resume {new.name}" in printed
    assert f"--fairness-replay={new}" in printed
    assert main(["salvage", str(run_of_three), "--into", str(tmp_path / "elsewhere")]) == 0
    assert len(list((tmp_path / "elsewhere").glob("2*"))) == 1
    assert main(["salvage", str(new)]) == 2
    assert "is whole" in capsys.readouterr().err
