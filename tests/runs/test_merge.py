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
from pytest_fairness.runs.store import open_store
from tests.support.doubles import Scripted, plan
from tests.support.runs import archived, exported


@given(count=st.integers(1, 120), whole=st.integers(1, 9), repetitions=st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_trials_are_dealt_evenly(count: int, whole: int, repetitions: int) -> None:
    """Each trial to one shard; the shards differ by one at the most, over all and in each group."""
    planned = [
        replace(one, repetition=number) for one in plan(count) for number in range(repetitions)
    ]
    deals = [Deal([planned], part, whole) for part in range(1, whole + 1)]
    mine = [[one for one in planned if deal.mine(one)] for deal in deals]
    assert sum(map(len, mine)) == len(planned)
    assert max(map(len, mine)) - min(map(len, mine)) <= 1
    for group in ("white", "black", "hispanic", "asian"):
        shares = [sum(one.cell.groups["race_ethnicity"] == group for one in some) for some in mine]
        assert max(shares) - min(shares) <= 1


def test_the_deal_knows_no_order() -> None:
    """Another order of tests, and a trial that several of them want: the same shard on every
    machine. One that no test was known to want falls to one shard by what it asks."""
    planned = plan(40)
    shares = [
        {one.cell.id for one in planned if Deal([order], 2, 3).mine(one)}
        for order in (planned, planned[::-1], [*planned, *planned[:9]])
    ]
    assert shares[0] == shares[1] == shares[2]
    beyond = PlannedTrial(cell=planned[2].cell, repetition=7)
    assert sum(Deal([planned[:2]], part, 4).mine(beyond) for part in range(1, 5)) == 1
    with pytest.raises(UsageError, match="no shard 4 of 3"):
        Deal([planned], 4, 3)


def shard(
    root: Path,
    part: int,
    whole: int = 2,
    *,
    keep: bool = True,
    design: dict[str, Any] | None = None,
    **facts: Any,
) -> Path:
    """A finished run that asked its share of 10 trials, unless it is to *keep* all, with these
    facts in its manifest; without those that are None."""
    planned = plan(10)
    deal = Deal([planned], part, whole)
    endpoint = Scripted()
    about: dict[str, Any] = {
        "shard": f"{part}/{whole}",
        "started": "2026-02-28T10:00:00+00:00",
        "finished": "later",
        "settings": {"endpoint": "scripted", "tier": "auto", "seed": 0, "shard": f"{part}/{whole}"},
        "versions": {"pytest-fairness": "1"},
    }
    with open_store(root / str(part), "a session") as store:
        asks = {
            "test": "t.py::test",
            "tier": 2,
            "endpoint": "scripted",
            "identity": endpoint.identity(),
        }
        asks |= {"parameters": {}, "templates": {"t": "text"}, **(design or {})}
        store.append(design_of(planned, **asks).to_record())
        with Engine(endpoint, store) as engine:
            engine.run([one for one in planned if deal.mine(one) or not keep])
        store.finish(
            **{key: value for key, value in {**about, **facts}.items() if value is not None}
        )
    return store.directory


def test_a_merged_run_holds_every_log_as_it_was(tmp_path: Path) -> None:
    """Byte for byte, with its heads in the manifest: what the shards' evidence was, the merged
    run's is.
    """
    shards = [shard(tmp_path, part) for part in (1, 2)]
    merged = exported(merge(shards[::-1], tmp_path / "merged"))
    assert {path.name for path in merged.glob("*.jsonl")} == {"trials-s1.jsonl", "trials-s2.jsonl"}
    for number, directory in enumerate(shards, 1):
        assert (merged / f"trials-s{number}.jsonl").read_bytes() == (
            exported(directory) / "trials.jsonl"
        ).read_bytes()
    assert Counter(trial.status for trial in RunReader.open(merged).finished()) == {"answered": 10}
    manifest = json.loads((merged / "manifest.json").read_text())
    assert [entry["shard"] for entry in manifest["merged_from"]] == ["1/2", "2/2"]
    assert manifest["settings"]["shard"] == ""
    (merged / "run.sqlite3").unlink()
    assert len(RunReader.open(merged)) == 10
    (merged / "trials-s2.jsonl").unlink()
    with pytest.raises(StoreError, match=r"trials-s2.jsonl is missing"):
        RunReader.open(merged)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"shard": "1/2"}, "shard 1/2 is there more than once"),
        ({"shard": "2/3"}, "are of different runs"),
        ({"shard": None}, "is no shard of a run"),
        ({"finished": None}, "did not come to its end: finish it with --fairness-resume=last"),
        ({"versions": {"pytest-fairness": "2"}}, "pytest-fairness '1' and '2'"),
        (
            {"settings": {"endpoint": "scripted", "tier": "auto", "seed": 9}},
            "cannot be merged: seed 0 and 9",
        ),
        (
            {"design": {"templates": {"t": "other"}}},
            "asked t.py::test differently: the prompt: the text of template 't'",
        ),
        ({"design": {"test": "t.py::other"}}, "the test is in one of them alone"),
        ({"keep": False}, r"trials-s2.jsonl, line \d+: this trial is already in trials-s1.jsonl"),
    ],
    ids=[
        "twice",
        "another run",
        "no shard",
        "killed",
        "version",
        "seed",
        "prompt",
        "test",
        "same trial",
    ],
)
def test_what_does_not_belong_together_is_refused(
    tmp_path: Path, other: dict[str, Any], why: str
) -> None:
    """Each difference is named, two answers to one trial are never reconciled, and no run is left
    behind.
    """
    with pytest.raises((UsageError, StoreError), match=why):
        merge([shard(tmp_path, 1), shard(tmp_path, 2, **other)], tmp_path / "merged")
    assert not list((tmp_path / "merged").glob("2*"))


def test_a_missing_or_damaged_shard_is_named(tmp_path: Path) -> None:
    """Each log is checked before it is copied, with file and line."""
    first, second = shard(tmp_path, 1), shard(tmp_path, 2)
    with pytest.raises(UsageError, match="shard 2/2 is missing"):
        merge([first], tmp_path / "merged")
    log = archived(second) / "trials.jsonl"
    log.write_bytes(log.read_bytes().replace(b"Answer to", b"Reply to ", 1))
    with pytest.raises(StoreError, match=r"2/.*/trials.jsonl, line \d+: the record was changed"):
        merge([first, second], tmp_path / "merged")
