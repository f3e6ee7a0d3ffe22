"""Read a run back from its folder alone, every record checked: for reports, replay and audit."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_fairness.errors import StoreError
from pytest_fairness.model import Trial
from pytest_fairness.runs import files
from pytest_fairness.runs.designs import Design
from pytest_fairness.runs.index import FILES, PATTERN, is_provisional
from pytest_fairness.runs.lines import decode_line, kind_and_key
from pytest_fairness.runs.log import read_line
from pytest_fairness.runs.manifest import FINISHED, anchors_of, read_manifest
from pytest_fairness.runs.places import Places
from pytest_fairness.runs.records import TrialRecord, cell_of, trial_of
from pytest_fairness.runs.scan import Anchor, Line, scan


@dataclass(slots=True)
class RunReader:
    """The logs of one run, checked from end to end when made with :meth:`open`. Holds places, not texts: a place is
    one number, of the log and the byte in it.

    ``trials`` has the place of each finished trial by its key, ``uses`` those of the further cells that share
    one, ``engines`` the endpoints asked by the hash of their identity, ``logs`` how far each log reaches,
    ``notes`` what a crash left behind, ``unanswered`` the keys whose last request was sent, without a word of
    what came of it.
    """

    directory: Path
    trials: Places = field(default_factory=Places)
    uses: array[int] = field(default_factory=lambda: array("q"))
    engines: dict[str, dict[str, Any]] = field(default_factory=dict)
    logs: dict[str, Anchor] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unanswered: set[str] = field(default_factory=set)
    _provisional: set[str] = field(default_factory=set)
    _designs: list[int] = field(default_factory=list)
    _paths: list[Path] = field(default_factory=list)

    @classmethod
    def open(cls, directory: Path) -> RunReader:
        """Check every log of the run in *directory*.

        Raises StoreError, naming file and line, for a record that was changed, added or removed, for a log
        that is missing or shorter than when the run was closed, and for a trial that was asked twice.
        """
        if not directory.is_dir():
            raise StoreError(f"{directory} is not the folder of a run: give one of those under .fairness/runs")
        reader = cls(directory)
        anchors = anchors_of(directory)
        finished = FINISHED in read_manifest(directory)
        for path in sorted(directory.glob(PATTERN)):
            anchor = anchors.pop(path.name, None)
            reader._read(path, anchor)
            if finished and anchor is not None and anchor.records != reader.logs[path.name].records:
                raise StoreError(
                    f"{path} holds {reader.logs[path.name].records} records, but had {anchor.records} when the run was "
                    "closed: restore it from a copy"
                )
        if anchors:
            raise StoreError(
                f"{directory / min(anchors)} is missing, but manifest.json lists it: restore it from a copy"
            )
        return reader

    def _read(self, path: Path, anchor: Anchor | None) -> None:
        head = Anchor(0, "")
        self._paths.append(path)
        with os.fdopen(files.open_regular(path, os.O_RDONLY), "rb") as stream:
            for line in scan(stream, path, anchor=anchor):
                if line.torn:
                    note = f"{path}, line {line.number}: the last record was cut short by a crash; not read"
                    self.notes.append(note)
                else:
                    self._note(path, line)
                    head = Anchor(line.number, line.hash)
        self.logs[path.name] = head

    def _note(self, path: Path, line: Line) -> None:
        kind, key = kind_and_key(line.data)
        place = line.offset * FILES + len(self._paths) - 1
        if kind == "trial":
            self._note_trial(key, place, f"{path}, line {line.number}", provisional=is_provisional(line.data))
        elif kind == "use":
            self.uses.append(place)
        elif kind == "engine":
            record = decode_line(line.data)
            self.engines[record["identity"]] = record
        elif kind == "design":
            self._designs.append(place)
        elif kind == "sent":
            self.unanswered.add(key)
        elif kind == "attempt":
            self.unanswered.discard(key)

    def _note_trial(self, key: str, place: int, where: str, *, provisional: bool) -> None:
        known = self.trials.get(key)
        if known is not None and key not in self._provisional:
            if provisional:  # it came to nothing first, and then was asked again on request, by another writer
                return
            raise StoreError(
                f"{where}: this trial is already in {self._told(known)}: the logs are not of one run; restore them "
                "from a copy"
            )
        self.trials[key] = place
        (self._provisional.add if provisional else self._provisional.discard)(key)

    def raw(self, keys: Iterable[str]) -> Iterator[dict[str, Any]]:
        """The records of the finished trials *keys*, as they stand in the log. Raises KeyError for others."""
        with _Files(self._paths) as opened:
            for key in keys:
                yield opened.read(self.trials[key])

    def designs(self) -> list[Design]:
        """What each test asked, in the order of the logs."""
        with _Files(self._paths) as opened:
            return [Design.from_record(opened.read(place)) for place in self._designs]

    def records(self) -> Iterator[TrialRecord]:
        """Every finished trial with its cell, and then once more for each further cell that shares it."""
        with _Files(self._paths) as opened:
            for place in self.trials.numbers():
                yield self._parsed(place, opened.read(place))
            for place in self.uses:
                use = opened.read(place)
                shared = self.trials.get(use["key"])
                if shared is not None:
                    yield replace(self._parsed(shared, opened.read(shared)), cell=cell_of(use["cell"]))

    def finished(self) -> Iterator[Trial]:
        """Every finished trial."""
        with _Files(self._paths) as opened:
            for place in self.trials.numbers():
                yield trial_of(opened.read(place))

    def _parsed(self, place: int, record: dict[str, Any]) -> TrialRecord:
        try:
            return TrialRecord.from_record(record)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"{self._told(place)}: not a trial as this version writes it ({error!r}): "
                "read it with the version in its first line"
            ) from error

    def _told(self, place: int) -> str:
        """File and line of *place*, for an error: lines are counted only then."""
        offset, number = divmod(place, FILES)
        line, left = 1, offset
        with self._paths[number].open("rb") as stream:
            while left and (block := stream.read(min(left, 1 << 20))):
                line, left = line + block.count(b"\n"), left - len(block)
        return f"{self._paths[number].name}, line {line}"


def read_trials(directory: Path) -> dict[str, Trial]:
    """Every finished trial of the run in *directory*, checked, by its content key. Raises StoreError."""
    return {trial.key: trial for trial in RunReader.open(directory).finished()}


class _Files:
    """The logs that are being read, each opened once."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._opened: dict[int, int] = {}

    def read(self, place: int) -> dict[str, Any]:
        offset, number = divmod(place, FILES)
        descriptor = self._opened.get(number)
        if descriptor is None:
            descriptor = self._opened[number] = files.open_regular(self._paths[number], os.O_RDONLY)
        return decode_line(read_line(descriptor, offset))

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._opened.values():
            os.close(descriptor)
