"""Replay: the trials of a recorded run in the place of asking. Nothing is sent, and nothing is made up.

Every record of the run is checked before the first one is used. What is not in it is an error that names the trial
and what has changed since, never a gap in the table.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.errors import EndpointError
from pytest_fairness.model import Trial
from pytest_fairness.runs.designs import PlannedTrial, RecordedDesign, closest_changes
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.runs.reader import RunReader
from pytest_fairness.runs.records import SIMULATED, trial_of
from pytest_fairness.runs.store import RunStore

#: Whole records, with their messages, are too much to hold of all trials at once.
_AT_ONCE = 1000


class Recording:
    """A recorded run, checked from end to end on opening. Raises StoreError as :class:`RunReader` does."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.reader = RunReader.open(directory)

    def systems(self) -> dict[str, list[dict[str, Any]]]:
        """The systems that were asked, by name, each as its ``engine`` record spells it out."""
        found: dict[str, list[dict[str, Any]]] = {}
        for record in self.reader.engines.values():
            found.setdefault(record["endpoint"]["name"], []).append(record["endpoint"])
        return found

    def missing(self, planned: PlannedTrial, number: int, total: int, design: RecordedDesign | None) -> EndpointError:
        """The error that names the missing trial *planned*, one of *number* of *total*, and why it is missing."""
        changed = [] if design is None else closest_changes(self.reader.designs(), design)
        why = f"since it was recorded, {'; '.join(changed)}" if changed else "it was never asked there, or otherwise"
        return EndpointError(
            f"run {self.directory.name} holds no trial for cell {planned.cell.id!r}, repetition {planned.repetition} "
            f"({number} of {total} trials are missing): {why}. Nothing was asked in their place: run the tests as they "
            "were recorded, or ask anew without --fairness-replay"
        )


class Replayer:
    """Hands out the trials of *recording* for one system, and logs them into the replaying run's *store*.

    Has the methods of :class:`~.engine.Engine` that the tests' side uses.
    """

    def __init__(self, endpoint: Endpoint, recording: Recording, store: RunStore) -> None:
        self.endpoint = endpoint
        self.store = store
        self._recording = recording
        self._identity = endpoint.identity()
        self._introduced = False
        self._used: set[tuple[str, str]] = set()

    def key_of(self, planned: PlannedTrial) -> str:
        """The content key of *planned*: the one under which it was asked. Raises UsageError."""
        return planned.key(self.endpoint, self._identity)

    def run(self, planned: Sequence[PlannedTrial], design: RecordedDesign | None = None) -> list[Trial]:
        """The recorded trials of *planned*, in its order.

        Raises EndpointError naming the first trial that the recording lacks, StoreError where this run's own log
        cannot be written.
        """
        reader = self._recording.reader
        keys = [self.key_of(one) for one in planned]
        if absent := set(reader.missing(keys)):
            missing = [one for key, one in zip(keys, planned, strict=True) if key in absent]
            raise self._recording.missing(missing[0], len(missing), len(planned), design)
        found: dict[str, Trial] = {}
        cells: dict[str, str] = {}
        wanted = list(dict.fromkeys(keys))
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            claimed = self.store.claim(some).mine
            if claimed and not self._introduced:
                self._introduced = True
                if (engine := reader.engines.get(identity_hash(self._identity))) is not None:
                    self.store.append(self._replayed(engine))
            for key, record in zip(some, reader.raw(some), strict=True):
                # A simulated reply stays one: a replay must not make it look like a model's.
                record["source"] = SIMULATED if record["source"] == SIMULATED else "replay"
                if key in claimed:
                    self.store.append(self._replayed(record))
                found[key], cells[key] = trial_of({**record, "key": key}), sys.intern(record["cell"]["id"])
        for key, one in zip(keys, planned, strict=True):
            use = (key, one.cell.id)
            if one.cell.id != cells[key] and use not in self._used:
                self.store.append({"type": "use", "key": key, "cell": one.cell})
                self._used.add(use)
        self.store.flush()
        return [found[key] for key in keys]

    def _replayed(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """*record* as it goes into the replaying run's log: with when it was asked, and where it comes from."""
        kept = {key: value for key, value in record.items() if key not in ("prev", "hash")}
        return {**kept, "replay_of": self._recording.directory.name}

    def close(self) -> None:
        """Nothing is held open."""
