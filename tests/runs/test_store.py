"""The store: finished trials are found whoever asked them; a claim keeps the others from asking the same."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from pytest_fairness.errors import StoreError
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.manifest import read_manifest
from pytest_fairness.runs.reader import RunReader, read_trials
from pytest_fairness.runs.records import TrialRecord, conversation
from pytest_fairness.runs.store import Retry, RunStore, open_run
from tests.support.doubles import cell
from tests.support.runs import records

KEYS = [f"{number:064x}" for number in range(10)]


def finish(store: RunStore, key: str, status: Status = Status.ANSWERED, reply: str = "yes") -> Trial:
    """Log a finished trial, as the engine does."""
    trial = Trial(key=key, repetition=0, status=status, replies=(reply,), attempts=1, seconds=0.1)
    asked = cell()
    record = TrialRecord(
        trial=trial,
        cell=asked,
        endpoint="e",
        identity="0" * 64,
        messages=conversation(asked.system, asked.turns, ()),
    )
    store.append(record.to_record(time.monotonic()))
    return trial


def test_a_trial_is_found_by_every_writer_and_after_closing(root: Path) -> None:
    """A worker sees what another has just logged; so does a later session."""
    with open_run(root, "t", writer="gw0") as one, open_run(root, "t", writer="gw1") as other:
        trial = finish(one, KEYS[0], reply="naïve \ud800 reply")
        assert one.trial(KEYS[0]) == other.trial(KEYS[0]) == trial
        assert other.trial(KEYS[1]) is None
        assert len(other) == 1
        directory = one.directory
    with RunStore.open(directory) as later:
        assert later.trial(KEYS[0]) == trial


def test_logs_are_named_by_their_writer(root: Path) -> None:
    """trials.jsonl for a plain session, trials-gw0.jsonl for a worker; none for who asks nothing."""
    with (
        open_run(root, "t") as plain,
        open_run(root, "t", writer="gw0") as worker,
        open_run(root, "t", writer="gw1"),
    ):
        finish(plain, KEYS[0])
        finish(worker, KEYS[1])
        assert sorted(path.name for path in plain.directory.glob("*.jsonl")) == [
            "trials-gw0.jsonl",
            "trials.jsonl",
        ]


def test_a_claim_keeps_others_off_until_it_is_given_up(root: Path) -> None:
    """What one claimed the other finds busy; released, it may have it; finished, nobody asks it again."""
    with open_run(root, "t", writer="gw0") as one, open_run(root, "t", writer="gw1") as other:
        assert list(one.claim(KEYS[:3]).mine) == KEYS[:3]
        assert other.claim(KEYS[:4]).busy == KEYS[:3]
        finish(one, KEYS[0])
        one.release([KEYS[1]])
        again = other.claim(KEYS[:3])
        assert list(again.mine) == [KEYS[1]]
        assert again.busy == [KEYS[2]]


def test_a_process_does_not_share_a_claim_with_itself(store: RunStore) -> None:
    """Two engines of one process are as careful of each other as two processes are."""
    assert list(store.claim(KEYS[:1]).mine) == KEYS[:1]
    assert store.claim(KEYS[:1]).busy == KEYS[:1]


def test_a_writer_lives_once(root: Path) -> None:
    """Two processes cannot write the same log; the message says who is there."""
    with open_run(root, "t") as store:
        with pytest.raises(StoreError, match=f"process {os.getpid()} on "):
            RunStore.open(store.directory)
        directory = store.directory
    RunStore.open(directory).close()


def test_the_claims_of_the_dead_are_taken_over(root: Path) -> None:
    """A closed (or dead) writer's claims are free, each with what it had logged of the trial."""
    one = open_run(root, "t", writer="gw0")
    one.claim(KEYS[:3])
    one.append({"type": "sent", "key": KEYS[1], "turn": 0, "attempt": 1})
    finish(one, KEYS[2])
    one.close()
    with open_run(root, "t", writer="gw1") as other:
        claimed = other.claim(KEYS[:3])
        assert list(claimed.mine) == KEYS[:2]
        assert claimed.mine[KEYS[0]] == []
        assert [record["type"] for record in claimed.mine[KEYS[1]]] == ["sent"]


def test_a_name_taken_up_again_is_another_life(root: Path) -> None:
    """A worker's replacement under the same name does not make its predecessor's claims living again."""
    first = open_run(root, "t", writer="gw0")
    first.claim(KEYS[:1])
    first.close()
    with open_run(root, "t", writer="gw0"), open_run(root, "t", writer="gw1") as other:
        assert list(other.claim(KEYS[:1]).mine) == KEYS[:1]


def test_a_claim_torn_by_a_crash_harms_nobody(root: Path) -> None:
    """Half a line at the end of the claims is the claim of a process that died before it asked."""
    with open_run(root, "t", writer="gw0") as one, open_run(root, "t", writer="gw1") as other:
        one.claim(KEYS[:1])
        with (one.state / "claims").open("ab") as stream:
            stream.write(b'{"writer":"gw7","nonce":"x","claim":["' + KEYS[1].encode())
        assert list(other.claim(KEYS[:3]).mine) == KEYS[1:3]
        assert one.claim(KEYS[:4]).busy == KEYS[:3]


def test_very_many_claims_are_read_piece_by_piece(root: Path) -> None:
    """More than fit into one look, some of trials that are long finished: the living ones hold, the others are free."""
    many = [f"{number:064x}" for number in range(40_000)]
    with open_run(root, "t", writer="gw0") as one:
        for key in many[:20]:
            finish(one, key)
        for start in range(0, len(many), 1000):
            one.claim(many[start : start + 1000])
        assert (one.state / "claims").stat().st_size > 2 * 2**20
        with open_run(root, "t", writer="gw1") as other:
            assert other.claim(many).busy == many[20:]
            finish(one, many[20])
            assert other.claim(many[:22]).busy == many[21:22]
    with open_run(root, "t", writer="gw1") as other:
        assert list(other.claim(many).mine) == many[21:]


def test_damaged_claims_stop_the_asking(root: Path) -> None:
    """If it cannot be known who asks what, nobody asks."""
    with open_run(root, "t") as store:
        (store.state / "claims").write_bytes(b"[]\n")
        with pytest.raises(StoreError, match="claims is damaged"):
            store.claim(KEYS[:1])


def test_unknown_trials_are_asked_again_only_on_request_and_once(root: Path) -> None:
    """An unknown trial is finished, unless one says otherwise; what became unknown now is not tried for
    ever."""
    with open_run(root, "t") as store:
        finish(store, KEYS[0], Status.UNKNOWN)
        directory = store.directory
        assert not store.claim(KEYS[:1], retry=Retry(unknown=True)).mine
    with RunStore.open(directory) as later:
        assert not later.claim(KEYS[:1]).mine
        claimed = later.claim(KEYS[:1], retry=Retry(unknown=True))
        assert claimed.mine[KEYS[0]][0]["status"] == "unknown"
        finish(later, KEYS[0], Status.UNKNOWN)
        assert not later.claim(KEYS[:1], retry=Retry(unknown=True)).mine
        assert not later.claim(KEYS[:1], retry=Retry(unknown=True)).busy


@pytest.mark.parametrize("first", ["gw0", "gw1"])
def test_an_answer_counts_before_an_unknown(root: Path, first: str) -> None:
    """Asked again by another worker, the answer stands, in whichever order the logs are read."""
    second = {"gw0": "gw1", "gw1": "gw0"}[first]
    with open_run(root, "t", writer=first) as one, open_run(root, "t", writer=second) as other:
        finish(one, KEYS[0], Status.UNKNOWN)
        trial = finish(other, KEYS[0])
        directory = one.directory
    with RunStore.open(directory) as later:
        assert later.trial(KEYS[0]) == trial
    assert read_trials(directory) == {KEYS[0]: trial}


def test_a_damaged_log_of_another_writer_is_noticed(root: Path) -> None:
    """A worker does not take results from a log that was changed, whoever's it is."""
    with open_run(root, "t", writer="gw0") as one:
        finish(one, KEYS[0], reply="hire")
        finish(one, KEYS[1])
        path = one.log_path
    path.write_bytes(path.read_bytes().replace(b"hire", b"fire"))
    with pytest.raises(StoreError, match=r"trials-gw0\.jsonl, line 2"):
        open_run(root, "t", writer="gw1")


# ------------------------------------------------------------ the manifest, and reading back


def test_the_manifest_gathers_what_all_processes_know(root: Path) -> None:
    """Controller and workers add their fields without losing each other's; closing adds the heads of the
    logs."""
    with open_run(root, "t") as one, open_run(root, "t", writer="gw0") as worker:
        one.update_manifest(seed=3, versions={"x": "1"})
        worker.update_manifest(worker="gw0")
        one.write_planned(["b", "a"])
        finish(worker, KEYS[0])
        directory = one.directory
    manifest = read_manifest(directory)
    assert {
        "seed": 3,
        "versions": {"x": "1"},
        "worker": "gw0",
        "planned": ["a", "b"],
    }.items() <= manifest.items()
    assert list(manifest["logs"]) == ["trials-gw0.jsonl"]
    assert manifest["logs"]["trials-gw0.jsonl"]["records"] == 2
    assert not list(directory.glob(".*.tmp"))


@pytest.mark.parametrize("content", ["", "[]", "{", '{"logs": {"trials.jsonl": {}}}', '{"logs": 3}'])
def test_a_manifest_that_cannot_be_read_is_an_error(root: Path, content: str) -> None:
    """Without it nobody can say whether the logs are whole."""
    with open_run(root, "t") as store:
        directory = store.directory
    (directory / "manifest.json").write_text(content)
    with pytest.raises(StoreError, match=r"manifest\.json"):
        RunReader.open(directory)


def test_a_run_closed_and_cut_is_noticed_on_opening_and_reading(root: Path) -> None:
    """The last records of a closed log cannot be taken away, nor can the whole file."""
    with open_run(root, "t") as store:
        for key in KEYS:
            finish(store, key)
        directory, path = store.directory, store.log_path
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    for reading in (RunStore.open, RunReader.open):
        with pytest.raises(StoreError, match="ends after 10 records, but had 11"):
            reading(directory)
    path.unlink()
    with pytest.raises(StoreError, match=r"trials\.jsonl is missing"):
        RunReader.open(directory)


def test_a_store_that_could_not_be_opened_lets_the_name_go(root: Path) -> None:
    """After an error on opening, mending the file is enough."""
    with open_run(root, "t") as store:
        finish(store, KEYS[0])
        directory, path = store.directory, store.log_path
    whole = path.read_bytes()
    path.write_bytes(b"?" + whole)
    with pytest.raises(StoreError, match="line 1"):
        RunStore.open(directory)
    path.write_bytes(whole)
    RunStore.open(directory).close()


def test_a_reopened_log_goes_on_and_tells_of_what_it_mended(root: Path) -> None:
    """The chain runs through; the note of a torn tail is in the log itself."""
    with open_run(root, "t") as store:
        finish(store, KEYS[0])
        directory = store.directory
    with (directory / "trials.jsonl").open("ab") as stream:
        stream.write(b'{"type":"trial","key":"')
    with RunStore.open(directory) as again:
        finish(again, KEYS[1])
        assert "cut short by a crash" in again.notes[0]
    assert len(read_trials(directory)) == 2
    assert records(directory, "log")[1]["notes"] == again.notes


def test_reading_tells_of_a_torn_tail(root: Path) -> None:
    """A run that was killed can be read as it lies there; what is missing is told, not passed over."""
    with open_run(root, "t") as store:
        finish(store, KEYS[0])
        directory = store.directory
    with (directory / "trials.jsonl").open("ab") as stream:
        stream.write(b"torn")
    reader = RunReader.open(directory)
    assert len(list(reader.finished())) == 1
    assert "line 3" in reader.notes[0]


def test_a_trial_in_two_logs_is_an_error(root: Path) -> None:
    """Two answers to one trial cannot be of one run: somebody has put logs together."""
    with open_run(root, "t", writer="gw0") as one, open_run(root, "t", writer="gw1") as other:
        finish(one, KEYS[0])
        finish(other, KEYS[0], reply="no")
        directory = one.directory
    with pytest.raises(StoreError, match=r"trials-gw1\.jsonl, line 2: this trial is already in trials-gw0\.jsonl"):
        RunReader.open(directory)


def test_the_log_says_who_wrote_it(store: RunStore) -> None:
    """Its first record names schema, run, process and versions."""
    finish(store, KEYS[0])
    first = json.loads(store.log_path.read_text().splitlines()[0])
    assert first["type"] == "log"
    assert (first["schema"], first["run"], first["pid"]) == (1, store.directory.name, os.getpid())
    assert set(first["versions"]) == {"pytest-fairness", "python"}
