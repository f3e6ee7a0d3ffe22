"""The store: finished trials are found whoever asked them; a claim keeps the others from asking the
same.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from pytest_fairness.cli import main
from pytest_fairness.errors import StoreError
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.manifest import read_manifest
from pytest_fairness.runs.reader import RunReader, read_trials
from pytest_fairness.runs.records import trial_record
from pytest_fairness.runs.store import Retry, RunStore, open_store
from tests.support.doubles import cell
from tests.support.runs import archived, records

KEYS = [f"{number:064x}" for number in range(10)]


def finish(
    store: RunStore, key: str, status: Status = Status.ANSWERED, reply: str = "yes"
) -> Trial:
    """Log a finished trial, as the engine does."""
    trial = Trial(key=key, repetition=0, status=status, replies=(reply,), attempts=1, seconds=0.1)
    store.append(
        trial_record(trial, cell(), endpoint="e", identity="0" * 64, messages=[], parameters={})
    )
    return trial


# ------------------------------------------------------------ trials and claims


def test_a_trial_is_found_by_every_writer_and_after_closing(root: Path) -> None:
    """A worker sees what another has just logged, and a look tells whether there is anything new;
    so does a later session. A log begins with its schema, run, process and versions."""
    with open_store(root, "t", writer="gw0") as one, open_store(root, "t", writer="gw1") as other:
        trial = finish(one, KEYS[0], reply="naïve \ud800 reply")
        assert one.trial(KEYS[0]) == other.trial(KEYS[0]) == trial
        assert other.trial(KEYS[1]) is None
        assert len(other) == 1
        assert other.changed()
        assert not other.changed()
    with RunStore.open(one.directory) as later:
        assert later.trial(KEYS[0]) == trial
    first = records(one.directory)[0]
    assert (first["type"], first["schema"], first["run"], first["pid"]) == (
        "log",
        1,
        one.directory.name,
        os.getpid(),
    )
    assert set(first["versions"]) == {"pytest-fairness", "python"}


def test_a_claim_keeps_others_off_until_it_is_given_up(root: Path) -> None:
    """What one claimed the other, or another engine of its own process, finds busy; released, it
    may have it; finished, nobody asks it again."""
    with open_store(root, "t", writer="gw0") as one, open_store(root, "t", writer="gw1") as other:
        assert list(one.claim(KEYS[:3]).mine) == KEYS[:3]
        assert one.claim(KEYS[:3]).busy == KEYS[:3]
        assert other.claim(KEYS[:4]).busy == KEYS[:3]
        finish(one, KEYS[0])
        one.release([KEYS[1]])
        again = other.claim(KEYS[:3])
        assert list(again.mine) == [KEYS[1]]
        assert again.busy == [KEYS[2]]


def test_the_claims_of_the_dead_are_taken_over(root: Path) -> None:
    """A closed (or dead) writer's claims are free, each with what it had logged of the trial, also
    where a replacement lives under its name."""
    one = open_store(root, "t", writer="gw0")
    one.claim(KEYS[:3])
    one.append({"type": "sent", "key": KEYS[1], "turn": 0, "attempt": 1})
    finish(one, KEYS[2])
    one.close()
    with open_store(root, "t", writer="gw0"), open_store(root, "t", writer="gw1") as other:
        with pytest.raises(StoreError, match=f"process {os.getpid()} on "):  # which lives once
            RunStore.open(one.directory, writer="gw0")
        claimed = other.claim(KEYS[:3])
        assert list(claimed.mine) == KEYS[:2]
        assert claimed.mine[KEYS[0]] == []
        assert [record["type"] for record in claimed.mine[KEYS[1]]] == ["sent"]


def test_unknown_trials_are_asked_again_only_on_request_and_once(root: Path) -> None:
    """An unknown trial is finished, unless one says otherwise; what became unknown now is not tried
    for ever.
    """
    retry = Retry(unknown=True)
    with open_store(root, "t") as store:
        finish(store, KEYS[0], Status.UNKNOWN)
        assert not store.claim(KEYS[:1], retry=retry).mine
    with RunStore.open(store.directory) as later:
        assert not later.claim(KEYS[:1]).mine
        assert later.claim(KEYS[:1], retry=retry).mine[KEYS[0]][0]["status"] == "unknown"
        finish(later, KEYS[0], Status.UNKNOWN)
        again = later.claim(KEYS[:1], retry=retry)
        assert not again.mine
        assert not again.busy


@pytest.mark.parametrize("first", ["gw0", "gw1"])
def test_an_answer_counts_before_an_unknown(root: Path, first: str) -> None:
    """Asked again by another worker, the answer stands, in whichever order the logs are read."""
    second = {"gw0": "gw1", "gw1": "gw0"}[first]
    with open_store(root, "t", writer=first) as one, open_store(root, "t", writer=second) as other:
        finish(one, KEYS[0], Status.UNKNOWN)
        trial = finish(other, KEYS[0])
        other.flush()
        assert one.trial(KEYS[0]) == trial
    assert read_trials(one.directory) == {KEYS[0]: trial}


# ------------------------------------------------------------ the manifest, and reading back


def test_the_manifest_gathers_what_all_processes_know(root: Path) -> None:
    """Controller and workers add their fields without losing each other's, also between reading and
    writing; closing adds the heads of the logs, which nobody else may change."""
    with open_store(root, "t") as one, open_store(root, "t", writer="gw0") as worker:
        one.update_manifest(seed=3, versions={"x": "1"})

        def add(manifest: dict[str, object]) -> None:
            if "between" not in manifest:
                one.update_manifest(between=True)
            manifest["worker"] = "gw0"

        worker.amend_manifest(add)
        finish(worker, KEYS[0])
        with pytest.raises(StoreError, match="heads of the logs"):
            worker.update_manifest(logs={})
    manifest = read_manifest(one.directory)
    assert {
        "seed": 3,
        "versions": {"x": "1"},
        "worker": "gw0",
        "between": True,
    }.items() <= manifest.items()
    assert list(manifest["logs"]) == ["trials-gw0.jsonl"]
    assert manifest["logs"]["trials-gw0.jsonl"]["records"] == 2
    assert not list(one.directory.glob(".*.tmp"))


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"logs": {"trials.jsonl": {}}}', '{"logs": 3}']
)
def test_a_manifest_that_cannot_be_read_is_an_error(root: Path, content: str) -> None:
    """Without it nobody can say whether the logs are whole."""
    with open_store(root, "t") as store:
        pass
    (store.directory / "manifest.json").write_text(content)
    with pytest.raises(StoreError, match=r"manifest\.json"):
        RunReader.open(store.directory)


def test_records_are_exported_by_their_writer(root: Path) -> None:
    """trials.jsonl for a plain session, trials-gw0.jsonl for a worker; none for who asks nothing,
    and none unasked.
    """
    with (
        open_store(root, "t") as plain,
        open_store(root, "t", writer="gw0") as worker,
        open_store(root, "t", writer="gw1"),
    ):
        finish(plain, KEYS[0])
        finish(worker, KEYS[1])
        worker.flush()
        plain.finish(finished="now")
        assert not list(plain.directory.glob("*.jsonl")), (
            "every text stands in the database, and nowhere else"
        )
        plain.export()
    directory = plain.directory
    assert sorted(path.name for path in directory.glob("*.jsonl")) == [
        "trials-gw0.jsonl",
        "trials.jsonl",
    ]
    assert {
        stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir() if path.is_file()
    } == {0o600}
    before = read_trials(directory)
    assert len(before) == 2
    (directory / "run.sqlite3").unlink()
    assert read_trials(directory) == before


def test_what_was_exported_is_exported_anew_at_the_end_of_a_session(root: Path) -> None:
    """Of a run that is resumed, and of one of which there was nothing else: the files alone are the
    whole run.
    """
    with open_store(root, "t") as store:
        finish(store, KEYS[0])
        store.export()
    for number, key in enumerate(KEYS[1:3], 2):
        with RunStore.open(store.directory) as again:
            finish(again, key)
            again.finish(finished="now")
        (store.directory / "run.sqlite3").unlink()
        assert len(read_trials(store.directory)) == number


def test_a_command_exports(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also of a run that was killed: checked, and with the heads of the files in the manifest."""
    with open_store(root, "t") as store:
        finish(store, KEYS[0])
    log = store.directory / "trials.jsonl"
    assert main(["export", str(store.directory)]) == 0
    assert capsys.readouterr().out == f"{log}: 2 records\n"
    (store.directory / "run.sqlite3").unlink()
    assert len(read_trials(store.directory)) == 1
    log.write_bytes(log.read_bytes().replace(b"yes", b"no!"))
    assert main(["export", str(store.directory)]) != 0
    assert "line 2: the record was changed" in capsys.readouterr().err


def test_f31_an_archive_is_resumed_wherever_its_last_record_was_torn(root: Path) -> None:
    """The exported records become a database again; what they say was spent counts, and a torn tail
    is noted, also one within a character. In the database a torn commit is none (test_database)."""
    with open_store(root, "t") as store:
        finish(store, KEYS[0])
        store.append({"type": "attempt", "key": KEYS[0], "cost": 0.25})
    whole = archived(store.directory)
    (whole / "manifest.json").unlink()  # as after a death: no head was noted yet
    tail = '{"type":"trial","key":"Über"'.encode()
    for number, cut in enumerate((1, 24, len(tail))):
        directory = shutil.copytree(whole, root / f"2026-02-28-00{number}")
        with (directory / "trials.jsonl").open("ab") as stream:
            stream.write(tail[:cut])
        reader = RunReader.open(directory)
        assert (len(reader), len(reader.notes)) == (1, 1)
        assert "line 4: the last record was cut short" in reader.notes[0]
        with RunStore.open(directory) as again:
            assert not again.claim(KEYS[:1]).mine
            assert again.budget(None).account() == (250_000_000, 0)
            finish(again, KEYS[1])
        assert len(read_trials(directory)) == 2
        assert records(directory, "log")[1]["notes"] == reader.notes
