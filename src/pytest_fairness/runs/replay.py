"""Replay: the trials of a recorded run in the place of asking. Nothing is sent, and nothing is made
up.

Every record of the run is checked before the first one is used. What is not in it is an error that
names the trial and what has changed since, never a gap in the table.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.errors import EndpointError, NeverAskedError
from pytest_fairness.model import Trial
from pytest_fairness.runs.designs import PlannedTrial, RecordedDesign, closest_changes
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.runs.manifest import read_manifest
from pytest_fairness.runs.reader import RunReader
from pytest_fairness.runs.records import SIMULATED, trial_of, unchained
from pytest_fairness.runs.store import RunStore

#: Whole records, with their messages, are too much to hold of all trials at once.
_AT_ONCE = 1000


class Replayer:
    """Hands out the trials of *recording* for one system, and logs them into the replaying run's
    *store*.

    Has the methods of :class:`~.engine.Engine` that the tests' side uses.
    """

    def __init__(self, endpoint: Endpoint, recording: RunReader, store: RunStore) -> None:
        self.endpoint = endpoint
        self.store = store
        self.recording = recording
        self._identity = endpoint.identity()
        self._introduced = False

    def key_of(self, planned: PlannedTrial) -> str:
        """The content key of *planned*: the one under which it was asked. Raises UsageError."""
        return planned.key(self.endpoint, self._identity)

    def run(
        self, planned: Sequence[PlannedTrial], design: RecordedDesign | None = None
    ) -> list[Trial]:
        """The recorded trials of *planned*, in its order.

        Raises EndpointError naming the first trial that the recording lacks, StoreError where this
        run's own log cannot be written.
        """
        keys = list(map(self.key_of, planned))
        absent = set(self.recording.missing(keys))
        missing = list(itertools.compress(planned, map(absent.__contains__, keys)))
        if missing:
            raise self._incomplete(missing, len(planned), design)
        finished: dict[str, tuple[Trial, str]] = {}
        wanted = list(dict.fromkeys(keys))
        for start in range(0, len(wanted), _AT_ONCE):
            finished |= self._replayed(wanted[start : start + _AT_ONCE])
        self.store.log_uses(keys, planned, finished)
        self.store.flush()
        return [finished[key][0] for key in keys]

    def _replayed(self, keys: Sequence[str]) -> dict[str, tuple[Trial, str]]:
        """Return the trials of *keys*, each with the identifier of its cell, and log those that
        this run lacks.
        """
        claimed = self.store.claim(keys).mine
        if claimed:
            self._introduce()
        finished = {}
        for key, record in zip(keys, self.recording.records(keys), strict=True):
            if record is None:
                continue
            # A simulated reply stays one: a replay must not make it look like a model's.
            if record["source"] != SIMULATED:
                record["source"] = "replay"
            if key in claimed:
                self._log(record)
            finished[key] = trial_of(record), sys.intern(record["cell"]["id"])
        return finished

    def _introduce(self) -> None:
        """Log once what the recording says of the endpoint."""
        if self._introduced:
            return
        self._introduced = True
        engine = self.recording.engines.get(identity_hash(self._identity))
        if engine is not None:
            self._log(engine)

    def _incomplete(
        self, missing: Sequence[PlannedTrial], total: int, design: RecordedDesign | None
    ) -> EndpointError:
        """Return the error of a replay that the recording has not all trials for: what has changed
        since, or that it was never asked.
        """
        changed = []
        if design is not None:
            changed = closest_changes(self.recording.designs(), design)
        kind: type[EndpointError] = NeverAskedError
        why = "it was never asked there, or otherwise"
        run = self.recording.directory
        mend = "run the tests as they were recorded, or ask anew without --fairness-replay"
        if changed:
            kind = EndpointError
            why = f"since it was recorded, {'; '.join(changed)}"
        elif "merged_from" in read_manifest(run):
            mend = (
                f"{mend}; shards ask the next stage with --fairness-shard=K/N --fairness-resume="
                f"{run.name}, and are merged with this run"
            )
        first = f"cell {missing[0].cell.id!r}, repetition {missing[0].repetition}"
        return kind(
            f"run {run.name} holds no trial for {first} ({len(missing)} of {total} trials are "
            f"missing): {why}. Nothing was asked in their place: {mend}"
        )

    def _log(self, record: Mapping[str, Any]) -> None:
        """Log *record* in this run: with when it was asked, and where it comes from."""
        self.store.append({**unchained(record), "replay_of": self.recording.directory.name})

    def close(self) -> None:
        """Nothing is held open."""
