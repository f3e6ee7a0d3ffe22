"""Shards: dealt out evenly and always the same; merged only where they belong together."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.engine.engine import Engine
from pytest_fairness.engine.queue import Deal
from pytest_fairness.errors import StoreError, UsageError
from pytest_fairness.runs.designs import PlannedTrial, design_of
from pytest_fairness.runs.merge import merge
from pytest_fairness.runs.reader import RunReader
from pytest_fairness.runs.store import open_run
from tests.support.doubles import Scripted, plan


@given(count=st.integers(1, 120), whole=st.integers(1, 9), repetitions=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_trials_are_dealt_evenly(count: int, whole: int, repetitions: int) -> None:
    """Each trial to one shard; the shards differ by one at the most, over all and in each group."""
    planned = [replace(one, repetition=number) for one in plan(count) for number in range(repetitions)]
    deals = [Deal(planned, part, whole) for part in range(1, whole + 1)]
    mine = [[one for one in planned if deal.mine(one)] for deal in deals]
    assert sum(map(len, mine)) == len(planned)
    assert [len(deal) for deal in deals] == [len(some) for some in mine]
    assert max(map(len, mine)) - min(map(len, mine)) <= 1
    for group in ("white", "black", "hispanic", "asian"):
        shares = [sum(one.cell.groups["race_ethnicity"] == group for one in some) for some in mine]
        assert max(shares) - min(shares) <= 1


def test_the_deal_knows_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another order of tests, and a trial that several of them want: the same shard on every machine."""
    planned = plan(40)
    shares = [
        {one.cell.id for one in planned if Deal(order, 2, 3).mine(one)}
        for order in (planned, planned[::-1], [*planned, *planned[:9]])
    ]
    assert shares[0] == shares[1] == shares[2]
    with pytest.raises(UsageError, match="no shard 4 of 3"):
        Deal(planned, 4, 3)


def shard(
    root: Path, part: int, whole: int, *, keep: bool = True, design: dict[str, Any] | None = None, **manifest: Any
) -> Path:
    """A finished run that asked its share of 10 trials."""
    planned = plan(10)
    deal = Deal(planned, part, whole)
    endpoint = Scripted()
    with open_run(root / str(part), "a session") as store:
        given = {"test": "t.py::test", "tier": 2, "endpoint": "scripted", "identity": endpoint.identity()}
        noted = design_of(planned, **{**given, "parameters": {}, "templates": {"t": "text"}, **(design or {})})
        store.append(noted.to_record())
        with Engine(endpoint, store) as engine:
            engine.run([one for one in planned if deal.mine(one) or not keep])
        facts = {"shard": f"{part}/{whole}", "started": "2026-02-28T10:00:00+00:00", "finished": "later"}
        settings_of = {"endpoint": "scripted", "tier": "auto", "seed": 0, "shard": f"{part}/{whole}"}
        store.finish(**{**facts, "settings": settings_of, "versions": {"pytest-fairness": "1"}, **manifest})
    return store.directory


def test_a_merged_run_holds_every_log_as_it_was(tmp_path: Path) -> None:
    """Byte for byte, with its heads in the manifest: what the shards' evidence was, the merged run's is."""
    shards = [shard(tmp_path, part, 2) for part in (1, 2)]
    merged = merge([shards[1], shards[0]], tmp_path / "merged")
    assert {path.name for path in merged.glob("*.jsonl")} == {"trials-s1.jsonl", "trials-s2.jsonl"}
    for number, directory in enumerate(shards, 1):
        assert (merged / f"trials-s{number}.jsonl").read_bytes() == (directory / "trials.jsonl").read_bytes()
    reader = RunReader.open(merged)
    assert Counter(trial.status for trial in reader.finished()) == {"answered": 10}
    manifest = json.loads((merged / "manifest.json").read_text())
    assert [entry["shard"] for entry in manifest["merged_from"]] == ["1/2", "2/2"]
    assert manifest["settings"]["shard"] == ""
    (merged / "run.sqlite3").unlink()
    assert len(RunReader.open(merged)) == 10
    (merged / "trials-s2.jsonl").unlink()
    with pytest.raises(StoreError, match=r"trials-s2.jsonl is missing"):
        RunReader.open(merged)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"shard": "1/2"}, "shard 1/2 is there more than once"),
        ({"shard": "2/3"}, "are of different runs"),
        ({"shard": None}, "is no shard of a run"),
        ({"finished_not": True}, "did not come to its end: finish it with --fairness-resume"),
        ({"versions": {"pytest-fairness": "2"}}, "pytest-fairness 1 and 2"),
        ({"settings": {"endpoint": "scripted", "tier": "auto", "seed": 9}}, "cannot be merged: seed 0 and 9"),
        (
            {"design": {"templates": {"t": "other"}}},
            "asked t.py::test differently: the prompt: the text of template 't'",
        ),
        ({"design": {"test": "t.py::other"}}, "the test is in one of them alone"),
    ],
    ids=["twice", "another run", "no shard", "killed", "version", "seed", "prompt", "test"],
)
def test_what_does_not_belong_together_is_refused(tmp_path: Path, other: dict[str, Any], told: str) -> None:
    """Each difference is named, and no run is left behind."""
    first, second = shard(tmp_path, 1, 2), shard(tmp_path, 2, 2, design=other.pop("design", None))
    path = second / "manifest.json"
    manifest = {**json.loads(path.read_text()), **other}
    if manifest.pop("finished_not", False):
        del manifest["finished"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(UsageError, match=told):
        merge([first, second], tmp_path / "merged")
    assert not list((tmp_path / "merged").glob("2*"))


def test_a_missing_shard_and_a_trial_asked_twice(tmp_path: Path) -> None:
    """A missing shard is named; two answers to one trial are never reconciled."""
    first = shard(tmp_path, 1, 2)
    with pytest.raises(UsageError, match="shard 2/2 is missing"):
        merge([first], tmp_path / "merged")
    second = shard(tmp_path, 2, 2, keep=False)
    with pytest.raises(StoreError, match=r"trials-s2.jsonl, line \d+: this trial is already in trials-s1.jsonl"):
        merge([first, second], tmp_path / "merged")
    assert not list((tmp_path / "merged").glob("2*"))


def test_a_damaged_log_is_not_merged(tmp_path: Path) -> None:
    """The log is checked before it is copied; file and line are named."""
    first, second = shard(tmp_path, 1, 2), shard(tmp_path, 2, 2)
    log = second / "trials.jsonl"
    log.write_bytes(log.read_bytes().replace(b"Answer to", b"Reply to ", 1))
    with pytest.raises(StoreError, match=r"2/.*/trials.jsonl, line \d+: the record was changed"):
        merge([first, second], tmp_path / "merged")


def test_a_trial_that_was_not_dealt_has_a_shard_too() -> None:
    """One that no test was known to want: it falls to one shard by what it asks."""
    beyond = PlannedTrial(cell=plan(3)[2].cell, repetition=7)
    assert sum(Deal(plan(2), part, 4).mine(beyond) for part in range(1, 5)) == 1
