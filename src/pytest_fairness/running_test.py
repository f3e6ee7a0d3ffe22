"""The test that is running, as assertions and scorers see it, and until when replies may be read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pytest_fairness.errors import EndpointError, UsageError
from pytest_fairness.model import JSON, Finding


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Rules for what a verdict does to the test.

    ``smoke``: INCONCLUSIVE for want of usable data skips; ``require_conclusive``: any other fails.
    ``sensitivity``: a PASS is tried on copies of its own data with a planted disparity.
    """

    smoke: bool = False
    require_conclusive: bool = False
    sensitivity: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """One assertion of a test: which *analysis* it asks for, with which *arguments*, its table
    among them; and what those *before* it in the same test have found.
    """

    analysis: str
    arguments: Mapping[str, Any]
    before: tuple[Finding, ...] = ()

    def compares_like(self, analysis: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether *analysis* by *arguments* is the same comparison, perhaps of another
        table.

        An outcome that is a function may have been made anew, and is not compared.
        """
        names = ["by", "treated", "control"]
        if isinstance(self.arguments.get("outcome"), str):
            names += ["outcome"]
        return self.analysis == analysis and all(
            self.arguments.get(name) == arguments.get(name) for name in names
        )


class Rehearsal:
    """A test function that is run again on another sample, up to the assertion *wanted*, for the
    table that it makes.

    Nothing is judged in it: the assertions before have found what they found. ``table`` is None
    until it is made.
    """

    def __init__(self, wanted: Assertion) -> None:
        self._wanted = wanted
        self._place = 0
        self.table: Any = None

    def take(self, analysis: str, arguments: Mapping[str, Any]) -> Finding:
        """Return what an assertion before the one wanted has found. Raises RehearsalEnd once that
        one is reached.
        """
        if self._place < len(self._wanted.before):
            self._place += 1
            return self._wanted.before[self._place - 1]
        if self.table is None:
            if not self._wanted.compares_like(analysis, arguments):
                raise UsageError("it came to another assertion")
            self.table = arguments["frame"]
        raise RehearsalEnd


class RehearsalEnd(BaseException):
    """Ends a test function that is run again. No Exception: the test must not take it for one of
    its own.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TestLabels:
    """The labels of a test in reports: its id, module and description. ``controls``: of which
    controls it is evidence, and how strong; ``scenario``: its hazard and review trigger. ``room``:
    the design promises answers that can vary.
    """

    __test__ = False  # not a test class, whatever its name says to pytest

    test_id: str
    test_module: str
    description: str
    controls: Mapping[str, str] = field(default_factory=dict)
    scenario: Mapping[str, str] = field(default_factory=dict)
    room: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TestContext(TestLabels):
    """The running test as the assertions see it; outside pytest there is none.

    ``emit`` takes each finding, judged and justified, before the assertion raises; ``keep``, just
    before, what it was judged from (:class:`~pytest_fairness.runs.judgements.Judgement`).
    ``justification`` looks up the documented reason for a FLAG, ``baseline`` gives the store of
    approved snapshots.
    ``staged``, where the test asks for the trials of a design, asks the stages that its assertions
    look at; ``red`` gives what the assertion in a place may spend on red about a fair system, at
    most its own alpha; ``log_look`` takes the record of each look. ``changed`` gives the columns of
    the trials that the test has changed in a table. ``notes`` gives what a reader of a finding has to know of the
    session; ``scored_by`` takes the names of scorers that were looked up, ``findings`` those of the
    assertions so far, ``analysed`` the comparisons that were made at all. ``rehearsal``: the
    test is run again, and nothing is judged.
    ``reading_turns`` asks a model to read what a scorer's rules leave unread: given the scorer, the
    table, the places of those rows and the scores by rules; it returns None where the project names
    no reader. ``labels`` gives what persons read in rows of a table for a scorer, None where nobody
    labelled any.
    """

    emit: Callable[[Finding], None]
    policy: Policy = field(default_factory=Policy)
    justification: Callable[[Finding], Mapping[str, JSON] | None] = lambda _finding: None
    baseline: Callable[[], Any] | None = None
    staged: Any = None
    red: Callable[[int, float], float] = lambda _place, alpha: alpha
    log_look: Callable[[Mapping[str, JSON]], None] = lambda _record: None
    changed: Callable[[Any], tuple[str, ...]] = lambda _table: ()
    scorers: Mapping[str, Any] = field(default_factory=dict)
    keep: Callable[[Any], None] = lambda _judgement: None
    scored_by: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    analysed: set[str] = field(default_factory=set)
    rehearsal: Rehearsal | None = None
    notes: Callable[[Finding], Sequence[str]] = lambda _finding: ()
    seed: int = 0
    reading_turns: Callable[[Any, Any, Sequence[int], Sequence[Any]], Any] | None = None
    labels: Callable[[Any, Any], Any] | None = None


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
    """Let replies be read until *moment* of the monotonic clock for the duration of the block;
    None: without end.
    """
    token = _read_until.set(moment)
    try:
        yield
    finally:
        _read_until.reset(token)


def check_reading_time(reader: str) -> None:
    """Raises EndpointError where the time to read replies is over: the session's deadline is for
    reading, too.
    """
    moment = _read_until.get()
    if moment is not None and time.monotonic() > moment:
        raise EndpointError(
            f"the run's deadline passed before {reader} had read every reply; give the session "
            "more time "
            "(--fairness-deadline): what was asked is in the run and need not be asked again"
        )
