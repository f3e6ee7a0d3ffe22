"""What the parts of a session are given, and which test is running. Standard library only, below all that uses it."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pytest_fairness.errors import EndpointError, StoreError
from pytest_fairness.model import JSON, Finding

if TYPE_CHECKING:
    from pytest_fairness.runs.remote import Line
    from pytest_fairness.runs.replay import Recording
    from pytest_fairness.runs.store import RunStore

#: Seconds beyond the deadline in which replies that were asked by then are still read and judged.
_READING_GRACE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a verdict does to the test.

    ``smoke``: INCONCLUSIVE for want of usable data skips; ``require_conclusive``: any other fails. ``confirm``: a FLAG
    or FAIL is looked at again, on this sample and a fresh one together, before it may fail the test. ``sensitivity``: a
    PASS is tried on copies of its own data with a planted disparity.
    """

    smoke: bool = False
    require_conclusive: bool = False
    confirm: bool = True
    sensitivity: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Policy):
    """What this session was given: command line first, then the ini file, then the default of the option."""

    endpoint: str
    endpoints_file: Path
    tier: str
    approve: bool
    justification: str
    approve_regression: bool
    approve_in_ci: bool
    run_dir: Path
    baseline_dir: Path
    seed: int
    session_alpha: float | None
    max_cost: float | None
    concurrency: int
    deadline: float | None
    attempt_timeout: float
    resume: str | None
    retry_unknown: bool
    retry_errors: bool
    replay: Path | None
    shard: str
    progress: str

    def paths(self) -> dict[str, Path]:
        """Those settings that are paths, by their names."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in found.items() if isinstance(value, Path)}

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, for the workers."""
        return {**dataclasses.asdict(self), **{name: str(path) for name, path in self.paths().items()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        paths = ("endpoints_file", "run_dir", "baseline_dir", "replay")
        return cls(**{**data, **{name: Path(data[name]) for name in paths if data[name] is not None}})


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """One process's view of the run: made once, when its fairness tests are collected, and handed to every part.

    ``token`` is what controller and workers share. ``started`` is by the monotonic clock, which the processes of one
    machine share: whoever sets the wall clock meanwhile makes no deadline nearer or farther. ``line`` is the way to the
    run in a worker that does not see the controller's disk, ``barred`` why there can be none.
    """

    settings: Settings
    root: Path
    token: str
    started: float
    scorers: Mapping[str, Any]
    open_store: Callable[[], RunStore]
    open_recording: Callable[[], Recording | None]
    command: Sequence[str] = ()
    worker: str | None = None
    line: Line | None = None
    barred: str | None = None

    @cached_property
    def store(self) -> RunStore:
        """The run's folder, made when it is first needed. Raises StoreError."""
        self.refuse_if_barred()
        return self.open_store()

    @cached_property
    def recording(self) -> Recording | None:
        """The run that is replayed, every record of it checked; None where trials are asked. Raises StoreError."""
        return self.open_recording()

    def refuse_if_barred(self) -> None:
        if self.barred is not None:
            raise StoreError(self.barred)

    @property
    def has_store(self) -> bool:
        """Whether anything has needed the run's folder yet."""
        return "store" in self.__dict__

    @property
    def session(self) -> str:
        """What tells this session from others that wrote into the same run."""
        return hashlib.sha256(self.token.encode()).hexdigest()[:12]

    @property
    def time_left(self) -> float | None:
        """Seconds until the session's deadline, a moment at least; None without one."""
        deadline = self.settings.deadline
        return None if deadline is None else max(1e-3, self.started + deadline - time.monotonic())

    @property
    def read_until(self) -> float | None:
        """When the reading of replies ends, by the monotonic clock; None without a deadline."""
        deadline = self.settings.deadline
        return None if deadline is None else self.started + deadline + _READING_GRACE


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshSample:
    """A second, independent sample: its table of trials, and in words what is new about it."""

    frame: Any
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestContext:
    """The running test as the assertions see it; outside pytest there is none.

    ``emit`` takes each finding, judged and justified, before the assertion raises. ``justification`` looks up the
    documented reason for a FLAG. ``baseline`` gives the store of approved snapshots. ``fresh_sample``, where the test
    has one grid, asks it again with other names and gives what corresponds to the table it is handed; it raises
    UsageError, EndpointError or BudgetError where there can be no such sample. ``notes`` gives what a reader of a
    finding has to know of the session; ``scored_by`` takes the names of scorers that were looked up.
    """

    __test__ = False  # not a test class, whatever its name says to pytest

    test_id: str
    test_module: str
    description: str
    emit: Callable[[Finding], None]
    policy: Policy = field(default_factory=Policy)
    justification: Callable[[Finding], Mapping[str, JSON] | None] = lambda _finding: None
    baseline: Callable[[], Any] | None = None
    fresh_sample: Callable[[Any], FreshSample] | None = None
    confirmable: Callable[[], bool] = lambda: False
    scorers: Mapping[str, Any] = field(default_factory=dict)
    scored_by: set[str] = field(default_factory=set)
    notes: Callable[[Finding], Sequence[str]] = lambda _finding: ()
    seed: int = 0


_current: ContextVar[TestContext | None] = ContextVar("pytest_fairness_current", default=None)
_read_until: ContextVar[float | None] = ContextVar("pytest_fairness_read_until", default=None)


def current_test() -> TestContext | None:
    """The context of the running test, or ``None`` outside pytest."""
    return _current.get()


@contextmanager
def running_test(context: TestContext) -> Iterator[None]:
    """Make *context* the running test for the duration of the block."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def reading_until(moment: float | None) -> Iterator[None]:
    """Let replies be read until *moment* of the monotonic clock for the duration of the block; None: without end."""
    token = _read_until.set(moment)
    try:
        yield
    finally:
        _read_until.reset(token)


def check_reading_time(reader: str) -> None:
    """Raises EndpointError where the time to read replies is over: the session's deadline is for reading, too."""
    moment = _read_until.get()
    if moment is not None and time.monotonic() > moment:
        raise EndpointError(
            f"the run's deadline passed before {reader} had read every reply; give the session more time "
            "(--fairness-deadline): what was asked is in the run and need not be asked again"
        )
