"""Salvaging: what still verifies of a damaged run, in a new run; the damaged one is read, and never written.

A record is taken where its own hash fits and its place in the log can be told: it follows the beginning, it leads to
the head that the manifest keeps, or what stands directly before it is debris. All else is listed as lost, by file and
line. See ``docs/decisions/0090-salvaging.md``.
"""

from __future__ import annotations

import datetime
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_fairness.errors import StoreError, UsageError
from pytest_fairness.runs import files
from pytest_fairness.runs.folder import reserve_run
from pytest_fairness.runs.index import PATTERN, is_provisional
from pytest_fairness.runs.lines import FIRST, decode_line, encode_line, kind_and_key
from pytest_fairness.runs.manifest import NAME, anchors_of, read_manifest, write_manifest
from pytest_fairness.runs.reader import RunReader
from pytest_fairness.runs.scan import Anchor
from pytest_fairness.runs.survey import Lost, Segment, Survey, survey, verified

_BLOCK = 1 << 20
_KEPT = (
    "command", "settings", "versions", "git_commit", "seed", "started", "endpoints", "resumed", "shard", "replay_of",
    "merged_from",
)  # fmt: skip


@dataclass(slots=True)
class Salvage:
    """What came of it: the new run, how many records and finished trials it holds, and what was *lost* or *mended*
    (line endings, a byte order mark) on the way.
    """

    directory: Path
    records: int = 0
    trials: int = 0
    lost: list[Lost] = field(default_factory=list)
    mended: list[Lost] = field(default_factory=list)
    _finished: dict[str, bool] = field(default_factory=dict)

    def taken(self, line: bytes) -> str:
        """Why the record on *line* cannot be taken beside those before it; empty where it can, and is counted."""
        kind, key = kind_and_key(line)
        if kind == "trial":
            provisional = is_provisional(line)
            if not self._finished.get(key, True) and not provisional:
                return "this trial is already in another record"
            self.trials += key not in self._finished
            self._finished[key] = provisional and self._finished.get(key, True)
        self.records += 1
        return ""


def salvage(directory: Path, root: Path) -> Salvage:
    """A new run under *root* with every record of the run in *directory* that verifies.

    Raises UsageError where the run is whole, so that there is nothing to salvage, or where nothing of it verifies;
    StoreError where it cannot be read or the new one cannot be written.
    """
    if not directory.is_dir():
        raise UsageError(f"{directory} is not the folder of a run: give one of those under .fairness/runs")
    _refuse_whole(directory)
    run = reserve_run(root, uuid.uuid4().hex)
    try:
        return _fill(run, directory)
    except BaseException:
        shutil.rmtree(run)
        raise


def _refuse_whole(directory: Path) -> None:
    try:
        RunReader.open(directory)
    except StoreError:
        return
    raise UsageError(
        f"{directory} is whole, there is nothing to salvage: go on with it (--fairness-resume) or judge it "
        "(--fairness-replay) as it is"
    )


def _fill(run: Path, directory: Path) -> Salvage:
    done = Salvage(run)
    manifest, anchors = _manifest_of(directory, done)
    heads: dict[str, Any] = {}
    for path in sorted(directory.glob(PATTERN)):
        surveyed = survey(path, anchors.pop(path.name, None))
        done.mended += surveyed.mended
        heads[path.name] = _write(path, surveyed, run / path.name, done)
        done.lost += surveyed.lost
    done.lost += [Lost(name, 1, anchor.records, "the file is missing") for name, anchor in sorted(anchors.items())]
    if not done.records:
        raise UsageError(f"nothing of {directory} verifies: there is nothing to salvage")
    _keep_account(directory, run)
    done.lost.sort(key=lambda lost: (lost.file, lost.first))
    write_manifest(
        run,
        {
            **{key: manifest[key] for key in _KEPT if key in manifest},
            "id": run.name,
            "logs": heads,
            "salvaged_from": {
                "run": directory.name,
                "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                "records": done.records,
                "lost": [str(lost) for lost in done.lost],
                "mended": [str(mended) for mended in done.mended],
            },
        },
    )
    RunReader.open(run)
    return done


def _manifest_of(directory: Path, done: Salvage) -> tuple[dict[str, Any], dict[str, Anchor]]:
    try:
        return read_manifest(directory), anchors_of(directory)
    except StoreError:
        done.lost.append(Lost(NAME, 0, 0, "it cannot be read: whether the logs end too early cannot be told"))
        return {}, {}


def _keep_account(directory: Path, run: Path) -> None:
    """What was spent counts towards the cap of whoever goes on with the salvaged run, too."""
    account = directory / "state" / "budget"
    files.make_directory(run / "state")
    if account.is_file():
        descriptor = files.open_regular(account, os.O_RDONLY)
        try:
            files.write_atomically(run / "state" / "budget", files.read_at(descriptor, _BLOCK, 0))
        finally:
            os.close(descriptor)


def _write(source: Path, surveyed: Survey, target: Path, done: Salvage) -> dict[str, Any]:
    """Write the records of *surveyed* anew, chained to each other, each with the hash that it had; the log's head."""
    head, size, count = FIRST, 0, 0
    writing = files.open_regular(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        waiting = bytearray()
        for number, line in _lines(source, surveyed.taken):
            if why := done.taken(line):
                surveyed.lost.append(Lost(source.name, number, number, why))
                continue
            record = decode_line(line)
            del record["prev"]
            record["salvaged"] = record.pop("hash")
            data, head = encode_line(record, head)
            waiting += data
            size, count = size + len(data), count + 1
            if len(waiting) > _BLOCK:
                files.write_all(writing, bytes(waiting), target)
                waiting.clear()
        files.write_all(writing, bytes(waiting), target)
        files.flush(writing, target)
    finally:
        os.close(writing)
    return {"records": count, "head": head, "bytes": size}


def _lines(source: Path, segments: Sequence[Segment]) -> Iterator[tuple[int, bytes]]:
    with os.fdopen(files.open_regular(source, os.O_RDONLY), "rb") as stream:
        for segment in segments:
            stream.seek(segment.offset)
            for number in range(segment.first, segment.first + segment.count):
                line = verified(stream.readline(), first=number == 1)
                if line is None:
                    raise StoreError(f"{source}, line {number} changed while it was read: is the run still going on?")
                yield number, line
