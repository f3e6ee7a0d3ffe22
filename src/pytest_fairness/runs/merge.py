"""Merging: the records of all shards of a run in one, byte for byte, to be judged by replaying them.

Shards that were not asked alike are refused: each difference is named. See ``docs/decisions/0033-shards.md``.
"""

from __future__ import annotations

import datetime
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pytest_fairness.errors import UsageError
from pytest_fairness.runs.database import NAME, connect
from pytest_fairness.runs.designs import RecordedDesign, closest_changes
from pytest_fairness.runs.export import export_records
from pytest_fairness.runs.folder import reserve_run
from pytest_fairness.runs.lines import columns_of
from pytest_fairness.runs.manifest import read_manifest, write_manifest
from pytest_fairness.runs.reader import RunReader, charge

#: Settings in which shards of one run cannot differ.
_ALIKE = ("endpoint", "tier", "seed")


@dataclass(frozen=True, slots=True)
class _Shard:
    """One shard, its logs checked from end to end."""

    directory: Path
    part: int
    whole: int
    manifest: Mapping[str, Any]
    reader: RunReader

    @classmethod
    def open(cls, directory: Path) -> Self:
        manifest = read_manifest(directory)
        part, _, whole = str(manifest.get("shard", "")).partition("/")
        if not (part.isdigit() and whole.isdigit()):
            raise UsageError(f"{directory} is no shard of a run: merge runs that were asked with --fairness-shard K/N")
        if "finished" not in manifest:
            raise UsageError(
                f"{directory}: shard {part}/{whole} did not come to its end: finish it with --fairness-resume"
            )
        return cls(directory, int(part), int(whole), manifest, RunReader.open(directory))

    def __str__(self) -> str:
        return f"shard {self.part}/{self.whole} ({self.directory})"


def merge(directories: Sequence[Path], root: Path) -> Path:
    """A new run under *root* with all trials of the shards in *directories*, which must be all there are, once each.

    Raises UsageError where they do not belong together, naming what differs; StoreError for a damaged log, and for a
    trial that two shards asked.
    """
    shards = sorted((_Shard.open(directory) for directory in directories), key=lambda shard: shard.part)
    _check_complete(shards)
    for shard in shards[1:]:
        _check_alike(shards[0], shard)
    run = reserve_run(root, uuid.uuid4().hex)
    try:
        _fill(run, shards)
        RunReader.open(run)  # a trial that two shards asked is found here
    except BaseException:
        shutil.rmtree(run)
        raise
    return run


def _check_complete(shards: Sequence[_Shard]) -> None:
    if not shards:
        raise UsageError("there is nothing to merge: name the folders of all shards")
    whole = shards[0].whole
    for shard in shards:
        if shard.whole != whole:
            raise UsageError(f"{shards[0]} and {shard} are of different runs")
    parts = [shard.part for shard in shards]
    for part in range(1, whole + 1):
        if parts.count(part) != 1:
            raise UsageError(
                f"shard {part}/{whole} is missing"
                if part not in parts
                else f"shard {part}/{whole} is there more than once"
            )


def _check_alike(first: _Shard, other: _Shard) -> None:
    mine, its = first.manifest.get("settings", {}), other.manifest.get("settings", {})
    differ = [
        f"{field} {mine.get(field)!r} and {its.get(field)!r}" for field in _ALIKE if mine.get(field) != its.get(field)
    ]
    versions = [shard.manifest.get("versions", {}).get("pytest-fairness") for shard in (first, other)]
    if versions[0] != versions[1]:
        differ.append(f"pytest-fairness {versions[0]} and {versions[1]}")
    if differ:
        raise UsageError(f"{first} and {other} cannot be merged: {'; '.join(differ)}")
    _check_designs(first, other)
    _check_designs(other, first)


def _check_designs(one: _Shard, other: _Shard) -> None:
    designs = other.reader.designs()
    for design in one.reader.designs():
        differ = closest_changes(designs, design) or _unknown(design, designs)
        if differ:
            raise UsageError(f"{one} and {other} asked {design.test} differently: {'; '.join(differ)}")


def _unknown(design: RecordedDesign, others: Sequence[RecordedDesign]) -> list[str]:
    return [] if any(other.place == design.place for other in others) else ["the test is in one of them alone"]


def _fill(run: Path, shards: Sequence[_Shard]) -> None:
    connection = connect(run / NAME)
    try:
        connection.execute("BEGIN IMMEDIATE")
        for shard in shards:
            for name in shard.reader.logs:
                writer = f"s{shard.part}{name.removeprefix('trials').removesuffix('.jsonl')}"
                connection.executemany(
                    "INSERT INTO records (writer, number, type, key, status, record) VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        (writer, number, *columns_of(line), line)
                        for number, line in enumerate(shard.reader.lines(name), 1)
                    ),
                )
        charge(connection)
        connection.execute("COMMIT")
        logs = export_records(connection, run)
    finally:
        connection.close()
    merged = []
    endpoints: list[Any] = []
    for shard in shards:
        about = {key: shard.manifest.get(key) for key in ("id", "shard", "command", "started", "finished")}
        heads = {name: {"records": head.records, "head": head.head} for name, head in shard.reader.logs.items()}
        merged.append({**about, "logs": heads, "notes": list(shard.reader.notes)})
        endpoints += [entry for entry in shard.manifest.get("endpoints", ()) if entry not in endpoints]
    first = shards[0].manifest
    write_manifest(
        run,
        {
            **{key: first.get(key) for key in ("command", "versions", "git_commit", "seed")},
            "id": run.name,
            "started": min(str(shard.manifest.get("started")) for shard in shards),
            "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "settings": {**first.get("settings", {}), "shard": ""},
            "endpoints": endpoints,
            "merged_from": merged,
            "logs": logs,
        },
    )
