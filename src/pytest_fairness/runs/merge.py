"""Merging: the records of all shards of a run in one, byte for byte, to be judged by replaying
them; shards of a next stage together with the merged run that they go on from.

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
from pytest_fairness.runs.designs import RecordedDesign, changed_looks, closest_changes
from pytest_fairness.runs.export import make_run
from pytest_fairness.runs.lines import body_of
from pytest_fairness.runs.manifest import FINISHED, GOES_ON_FROM, read_manifest
from pytest_fairness.runs.reader import RunReader, reading
from pytest_fairness.words import listed


@dataclass(frozen=True)
class _Shard:
    """Number *part* (from 1) of *whole* shards, its logs checked from end to end; 0 of 0 is the
    merged run of the stages before.
    """

    part: int
    whole: int
    manifest: Mapping[str, Any]
    reader: RunReader

    def __str__(self) -> str:
        if not self.part:
            return f"the merged run {self.reader.directory}"
        return f"shard {self.part}/{self.whole} ({self.reader.directory})"

    def conditions(self) -> dict[str, Any]:
        """Return what shards of one run cannot differ in."""
        settings = self.manifest.get("settings", {})
        looks = self.manifest.get("looks") or {}
        version = self.manifest.get("versions", {}).get("pytest-fairness")
        return {
            **{key: settings.get(key) for key in ("endpoint", "tier", "seed")},
            **{key: looks.get(key) for key in ("session_alpha", "tests", "declared")},
            "pytest-fairness": version,
            "looks": self.manifest.get("looks"),
        }


def merge(directories: Sequence[Path], root: Path) -> Path:
    """A new run under *root* with all trials of the shards in *directories*, which must be all
    there are, once each, and of the merged run that they go on from, if they do.

    Raises UsageError where they do not belong together, naming what differs; StoreError for a
    damaged log, and for a trial that two shards asked.
    """
    with contextlib.ExitStack() as stack:
        runs = sorted(
            (_opened(directory, stack) for directory in directories), key=lambda run: run.part
        )
        shards = [run for run in runs if run.part]
        before = runs[: len(runs) - len(shards)]
        _check_complete(shards)
        _check_before(before, shards)
        for run in runs[1:]:
            _check_alike(runs[0], run)
        for shard in shards[1:]:
            _check_tests(shards[0], shard)
            _check_tests(shard, shards[0])
        return make_run(root, lambda connection: _fill(connection, runs))


def _opened(directory: Path, stack: contextlib.ExitStack) -> _Shard:
    """Return the shard, or the merged run, in *directory*, open as long as *stack*. Raises
    UsageError for any other run, and for a shard that did not come to its end.
    """
    manifest = read_manifest(directory)
    if "merged_from" in manifest:
        return _Shard(0, 0, manifest, stack.enter_context(reading(directory)))
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
    """Raise UsageError unless *shards* are all of one run, each once."""
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


def _check_before(before: Sequence[_Shard], shards: Sequence[_Shard]) -> None:
    """Raise UsageError where *shards* do not go on from the one merged run *before* them."""
    names = [run.reader.directory.resolve().name for run in before]
    if len(names) > 1:
        raise UsageError(
            f"{listed(names)} are merged runs: name the one that the shards go on from"
        )
    for shard in shards:
        name = shard.manifest.get(GOES_ON_FROM)
        if name is None:
            if names:
                raise UsageError(
                    f"{shard} does not go on from {before[0]}: ask it with "
                    f"--fairness-resume={names[0]}"
                )
        elif name not in names:
            raise UsageError(f"{shard} goes on from the merged run {name}: name its folder, too")


def _check_alike(first: _Shard, other: _Shard) -> None:
    """Raise UsageError where *other* was asked under other conditions than *first*, or otherwise."""
    others = other.conditions()
    differences = []
    for field, value in first.conditions().items():
        if value != others[field]:
            differences.append(f"{field} {value!r} and {others[field]!r}")
    if differences:
        raise UsageError(f"{first} and {other} cannot be merged: {'; '.join(differences)}")
    designs = first.reader.designs()
    for design in other.reader.designs():
        if differences := closest_changes(designs, design) or changed_looks(designs, design):
            raise _unlike(first, other, design, differences)


def _check_tests(shard: _Shard, other: _Shard) -> None:
    """Raise UsageError where *shard* has asked a test that *other* has not."""
    places = {design.place for design in other.reader.designs()}
    for design in shard.reader.designs():
        if design.place not in places:
            raise _unlike(shard, other, design, ["the test is in one of them alone"])


def _unlike(
    shard: _Shard, other: _Shard, design: RecordedDesign, differences: Sequence[str]
) -> UsageError:
    """Return the error of two shards that asked a test differently."""
    return UsageError(
        f"{shard} and {other} asked {design.test} differently: {'; '.join(differences)}"
    )


def _fill(connection: sqlite3.Connection, runs: Sequence[_Shard]) -> dict[str, Any]:
    """Write the records of all *runs* by *connection*; return the manifest of the merged run."""
    first = runs[0].manifest
    merged = list(first.get("merged_from", ()))
    stage = 1 + max((entry.get("stage", 1) for entry in merged), default=0)
    endpoints = list[Any]()
    for run in runs:
        for name in run.reader.logs:
            writer = _writer(run, writer_of(name), stage)
            insert_records(connection, writer, map(body_of, run.reader.lines(name)))
        if run.part:
            merged.append({**_origin(run), "stage": stage})
        for entry in run.manifest.get("endpoints", ()):
            if entry not in endpoints:
                endpoints.append(entry)
    looks = {}
    if "looks" in first:
        looks["looks"] = first["looks"]
    return {
        **{key: first.get(key) for key in ("command", "versions", "git_commit", "seed")},
        "started": min(str(run.manifest.get("started")) for run in runs),
        FINISHED: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "settings": {**first.get("settings", {}), "shard": ""},
        "endpoints": endpoints,
        "merged_from": merged,
        **looks,
    }


def _origin(shard: _Shard) -> dict[str, Any]:
    """Return what the merged run says of *shard*."""
    keys = ("id", "shard", "command", "started", FINISHED)
    about = {key: shard.manifest.get(key) for key in keys}
    logs = msgspec.to_builtins(shard.reader.logs)
    return {**about, "logs": logs, "notes": shard.reader.notes}


def _writer(run: _Shard, writer: str, number: int) -> str:
    """Return the name of *writer* of *run* among those of the merged run, to which the shards of
    stage *number* are added.
    """
    if not run.part:
        return writer
    name = f"s{run.part}"
    if number > 1:
        name = f"{name}.{number}"
    if writer != "main":
        name = f"{name}-{writer}"
    return name
