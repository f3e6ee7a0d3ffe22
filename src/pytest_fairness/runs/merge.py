"""Merging: the records of all shards of a run in one, byte for byte, to be judged by replaying
them.

Shards that were not asked alike are refused: each difference is named. See
``docs/decisions/0033-shards.md``.
"""

from __future__ import annotations

import contextlib
import datetime
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pytest_fairness.errors import UsageError
from pytest_fairness.runs.database import insert_records, writer_of
from pytest_fairness.runs.designs import closest_changes
from pytest_fairness.runs.export import make_run
from pytest_fairness.runs.lines import body_of
from pytest_fairness.runs.manifest import FINISHED, read_manifest
from pytest_fairness.runs.reader import RunReader, reading


@dataclass(frozen=True)
class _Shard:
    """Number *part* (from 1) of *whole* shards, its logs checked from end to end."""

    part: int
    whole: int
    manifest: Mapping[str, Any]
    reader: RunReader

    def __str__(self) -> str:
        return f"shard {self.part}/{self.whole} ({self.reader.directory})"

    def conditions(self) -> dict[str, Any]:
        """Return what shards of one run cannot differ in."""
        settings = self.manifest.get("settings", {})
        version = self.manifest.get("versions", {}).get("pytest-fairness")
        return {
            **{key: settings.get(key) for key in ("endpoint", "tier", "seed")},
            "pytest-fairness": version,
            "looks": self.manifest.get("looks"),
        }


def merge(directories: Sequence[Path], root: Path) -> Path:
    """A new run under *root* with all trials of the shards in *directories*, which must be all
    there are, once each.

    Raises UsageError where they do not belong together, naming what differs; StoreError for a
    damaged log, and for a trial that two shards asked.
    """
    with contextlib.ExitStack() as stack:
        shards = sorted(
            (_opened(directory, stack) for directory in directories), key=lambda shard: shard.part
        )
        _check_complete(shards)
        for shard in shards[1:]:
            _check_alike(shards[0], shard)
        return make_run(root, lambda connection: _fill(connection, shards))


def _opened(directory: Path, stack: contextlib.ExitStack) -> _Shard:
    manifest = read_manifest(directory)
    part, _, whole = str(manifest.get("shard", "")).partition("/")
    if not (part.isdigit() and whole.isdigit()):
        raise UsageError(
            f"{directory} is no shard of a run: merge runs that were asked with --fairness-shard "
            "K/N"
        )
    if FINISHED not in manifest:
        raise UsageError(
            f"{directory}: shard {part}/{whole} did not come to its end: finish it with "
            "--fairness-resume=last"
        )
    return _Shard(int(part), int(whole), manifest, stack.enter_context(reading(directory)))


def _check_complete(shards: Sequence[_Shard]) -> None:
    if not shards:
        raise UsageError("there is nothing to merge: name the folders of all shards")
    whole = shards[0].whole
    counts: Counter[int] = Counter()
    for shard in shards:
        if shard.whole != whole:
            raise UsageError(f"{shards[0]} and {shard} are of different runs")
        counts[shard.part] += 1
    for part in range(1, whole + 1):
        if counts[part] == 0:
            raise UsageError(f"shard {part}/{whole} is missing")
        if counts[part] > 1:
            raise UsageError(f"shard {part}/{whole} is there more than once")


def _check_alike(first: _Shard, other: _Shard) -> None:
    others = other.conditions()
    differences = []
    for field, value in first.conditions().items():
        if value != others[field]:
            differences.append(f"{field} {value!r} and {others[field]!r}")
    if differences:
        raise UsageError(f"{first} and {other} cannot be merged: {'; '.join(differences)}")
    _check_designs(first, other)
    _check_designs(other, first)


def _check_designs(shard: _Shard, other: _Shard) -> None:
    """Raise UsageError where *shard* has asked a test that *other* asked otherwise, or did not."""
    designs = other.reader.designs()
    places = {design.place for design in designs}
    for design in shard.reader.designs():
        differences = ["the test is in one of them alone"]
        if design.place in places:
            differences = closest_changes(designs, design)
        if differences:
            raise UsageError(
                f"{shard} and {other} asked {design.test} differently: {'; '.join(differences)}"
            )


def _fill(connection: sqlite3.Connection, shards: Sequence[_Shard]) -> dict[str, Any]:
    merged = []
    endpoints = list[Any]()
    for shard in shards:
        for name in shard.reader.logs:
            text = ""
            if writer_of(name) != "main":
                text = f"-{writer_of(name)}"
            insert_records(
                connection, f"s{shard.part}{text}", map(body_of, shard.reader.lines(name))
            )
        about = {
            key: shard.manifest.get(key) for key in ("id", "shard", "command", "started", FINISHED)
        }
        merged.append(
            {**about, "logs": msgspec.to_builtins(shard.reader.logs), "notes": shard.reader.notes}
        )
        for entry in shard.manifest.get("endpoints", ()):
            if entry not in endpoints:
                endpoints.append(entry)
    first = shards[0].manifest
    looks = {}
    if "looks" in first:
        looks["looks"] = first["looks"]
    return {
        **{key: first.get(key) for key in ("command", "versions", "git_commit", "seed", "looks")},
        "started": min(str(shard.manifest.get("started")) for shard in shards),
        FINISHED: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "settings": {**first.get("settings", {}), "shard": ""},
        "endpoints": endpoints,
        "merged_from": merged,
        **looks,
    }
