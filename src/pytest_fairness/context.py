"""Settings and run of a session, as its parts are given them. Made once, frozen, handed down."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pytest_fairness.baselines.approval import ApprovalPolicy
from pytest_fairness.errors import StoreError
from pytest_fairness.running_test import Policy

if TYPE_CHECKING:
    from pytest_fairness.runs.reader import RunReader
    from pytest_fairness.runs.store import RunStore

#: Seconds beyond the deadline in which replies that were asked by then are still read and judged.
_READING_GRACE = 5.0

#: As the run to resume: the last of the same command, if it left something to ask.
AUTO = "auto"
#: As looks: a shard asks every stage at once.
EVERY_STAGE = "all"


@dataclass(frozen=True, kw_only=True)
class Settings(Policy, ApprovalPolicy):
    """The options of this session: command line first, then the ini file, then the default of the
    option. ``merged``: the merged run of which a shard asks the next stage.
    """

    endpoint: str
    endpoints_file: Path
    tier: str
    test: str
    protected_class: str
    run_dir: Path
    baseline_dir: Path
    seed: int
    looks: str
    reader: str
    session_alpha: float
    session_tests: int | None
    max_cost: float | None
    concurrency: int
    deadline: float | None
    attempt_timeout: float
    resume: str | None
    retry_unknown: bool
    retry_errors: bool
    replay: Path | None
    shard: str
    against: Path | None
    markdown: Path | None
    progress: str
    notify: str
    github: str
    retain_years: int | None = None
    data: str = ""
    merged: Path | None = None

    @property
    def run_to_resume(self) -> str | None:
        """The run that is resumed, once that is decided."""
        if self.resume == AUTO:
            return None
        return self.resume

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The names of the systems under test, in the order in which they were given."""
        return tuple(self.endpoint.split(","))

    @property
    def shards(self) -> int:
        """Return how many shards the trials are dealt out to, of which this session asks one."""
        if not self.shard:
            return 1
        return int(self.shard.partition("/")[2])

    @property
    def declared_looks(self) -> tuple[int, ...] | None:
        """Return the looks that the project says, in names a group."""
        if self.looks in ("", EVERY_STAGE):
            return None
        return tuple(map(int, self.looks.split(",")))

    def paths(self) -> dict[str, Path]:
        """Those settings that are paths, by their names."""
        paths_ = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in paths_.items() if isinstance(value, Path)}

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, for the workers."""
        return {
            **dataclasses.asdict(self),
            **{name: str(path) for name, path in self.paths().items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        paths = (
            "endpoints_file",
            "run_dir",
            "baseline_dir",
            "replay",
            "against",
            "markdown",
            "merged",
        )
        return cls(
            **{**data, **{name: Path(data[name]) for name in paths if data[name] is not None}}
        )


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """One process's view of the run: made once, when its fairness tests are collected, and handed
    to every part.

    ``token`` is what controller and workers share. ``started`` is by the monotonic clock, which the
    processes of one machine share: whoever sets the wall clock meanwhile makes no deadline nearer
    or farther. ``refusal`` is why there can be no run.
    """

    settings: Settings
    root: Path
    token: str
    started: float
    scorers: Mapping[str, Any]
    open_store: Callable[[], RunStore]
    command: Sequence[str] = ()
    worker: str | None = None
    refusal: str | None = None

    @cached_property
    def store(self) -> RunStore:
        """The run's folder, made when it is first needed. Raises StoreError."""
        self.raise_refusal()
        return self.open_store()

    @cached_property
    def recording(self) -> RunReader | None:
        """The run that is replayed, every record of it checked; None where trials are asked. Raises
        StoreError.
        """
        from pytest_fairness.runs.reader import RunReader

        if self.settings.replay is None:
            return None
        return RunReader.open(self.settings.replay)

    @cached_property
    def merged(self) -> RunReader | None:
        """The merged run of which this shard asks the next stage, every record of it checked; None
        where it asks the first. Raises StoreError.
        """
        from pytest_fairness.runs.reader import RunReader

        if self.settings.merged is None:
            return None
        return RunReader.open(self.settings.merged)

    def raise_refusal(self) -> None:
        """Raise StoreError where there can be no run."""
        if self.refusal is not None:
            raise StoreError(self.refusal)

    @property
    def begun(self) -> str:
        """The time at which the run began, as its manifest says; empty where it does not. Raises
        StoreError.
        """
        from pytest_fairness.runs.manifest import read_manifest

        return str(read_manifest(self.store.directory).get("started", ""))

    @property
    def session(self) -> str:
        """Return what tells this session from others that wrote into the same run."""
        return hashlib.sha256(self.token.encode()).hexdigest()[:12]

    @property
    def time_left(self) -> float | None:
        """Seconds until the session's deadline, a moment at least; None without one."""
        deadline = self.settings.deadline
        if deadline is None:
            return None
        return max(1e-3, self.started + deadline - time.monotonic())

    @property
    def read_until(self) -> float | None:
        """The time at which the reading of replies ends, by the monotonic clock; None without a
        deadline.
        """
        deadline = self.settings.deadline
        if deadline is None:
            return None
        return self.started + deadline + _READING_GRACE
