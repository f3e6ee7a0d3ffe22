"""The controller's book: which fairness tests were collected, how each ended, and what it found.

Findings arrive as one JSON string on the test report, which survives xdist's transport and a
worker's death better than anything pushed at the end of a session. From the book come
``findings.json`` and the completeness guard: a test that was collected and never reported fails the
session, whatever the exit status would have been.

A report of a fairness test holds text that crosses to xdist's controller and is shown in a
terminal. A model's reply in an assertion message is enough to lose a failing test: execnet cannot
send a lone surrogate, the worker stops reporting, and pytest exits 0 (pytest-xdist#843). Control
codes would cross, and be obeyed by the terminal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.model import JSON, Finding
from pytest_fairness.pytest_layer.marks import FACTS, FINDINGS
from pytest_fairness.reports.escaping import terminal

if TYPE_CHECKING:
    import warnings

_PROPERTY = "fairness "
#: What the message of a failed assertion begins with, and the attribute of a report that keeps it.
_FAILURE = "pytest_fairness.FairnessFailure: "
_MESSAGE = "fairness_message"
#: What findings.json has of an item.
_WRITTEN = ("nodeid", "outcome", "message", "file", "line", "unjudged")
# Colours of captured log records, which pytest itself puts there.
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


def attach(
    report: pytest.TestReport, findings: Iterable[Finding], facts: Mapping[str, JSON]
) -> None:
    """Put *findings* on *report*, and the *facts* of its test, fields of :class:`Item`, each as one
    string of plain ASCII: nothing else is sure to cross to the controller.
    """
    setattr(
        report, FINDINGS, json.dumps([finding.to_dict() for finding in findings], allow_nan=False)
    )
    setattr(report, FACTS, json.dumps(facts, allow_nan=False))


def lead_with_sentence(report: pytest.TestReport, findings: Sequence[Finding]) -> None:
    """Let the sentence of the last of *findings* alone stand for the failure that it raised, in the
    short summary.

    The whole message stands above it, under the test's name; in CI pytest does not cut it in the
    summary, where all its tables would stand again.
    """
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None or not findings or not crash.message.startswith(_FAILURE):
        return
    setattr(report, _MESSAGE, terminal(crash.message))
    crash.message = findings[-1].sentence


def note_properties(item: pytest.Item, findings: Iterable[Finding]) -> None:
    """Let JUnit know each finding: the comparison, its verdict and its sentence. A rerun's replace
    those before.

    They are on the item: JUnit reads them off the report of the teardown, which is still to come.
    """
    others = [entry for entry in item.user_properties if not str(entry[0]).startswith(_PROPERTY)]
    ours = (
        (f"{finding.assertion}: {finding.outcome} by {finding.protected_class}", finding.sentence)
        for finding in findings
    )
    item.user_properties[:] = [
        *others,
        *((_PROPERTY + terminal(name), terminal(text)) for name, text in ours),
    ]


@dataclass
class Item:
    """How one test ended: pytest's word for it, its message, its findings as they crossed, and
    where it is written.

    ``unjudged``: what it asked for, where it concluded nothing. ``skipped_here``: by the plugin or
    a suite of ours.
    """

    nodeid: str
    outcome: str = "passed"
    message: str = ""
    encoded: list[Mapping[str, Any]] = field(default_factory=list)
    file: str = ""
    line: int | None = None
    unjudged: Mapping[str, JSON] | None = None
    skipped_here: bool = False

    @cached_property
    def findings(self) -> list[Finding]:
        return [Finding.from_dict(finding) for finding in self.encoded]


@dataclass(slots=True)
class Ledger:
    """Every item that is a fairness test or has a finding, in the order in which they reported."""

    items: dict[str, Item] = field(default_factory=dict)
    collected: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)

    def record(self, report: pytest.TestReport) -> None:
        """Enter what *report* carries; a rerun replaces what the item had before."""
        outcome = str(report.outcome)
        message = ""
        if hasattr(report, "wasxfail"):
            outcome = "xfailed" if report.skipped else "xpassed"
            message = str(report.wasxfail)
        elif report.skipped and isinstance(report.longrepr, tuple):
            message = str(report.longrepr[2])
        elif report.failed:
            if report.when != "call":
                outcome = "error"
            crash = getattr(report.longrepr, "reprcrash", None)
            message = getattr(report, _MESSAGE, None) or str(getattr(crash, "message", ""))
            message = message or _error(report.longreprtext)
        file, line, _ = report.location
        encoded = json.loads(getattr(report, FINDINGS))
        self.items[report.nodeid] = Item(
            report.nodeid,
            outcome,
            message,
            encoded,
            file.replace("\\", "/"),
            None if line is None else line + 1,
            **json.loads(getattr(report, FACTS, "{}")),
        )

    @property
    def missing(self) -> list[str]:
        """Collected fairness tests that never finished."""
        return sorted(self.collected - self.finished)

    @property
    def skipped_here(self) -> bool:
        """Return whether every fairness test was skipped by the plugin or a suite of ours, before
        it judged anything, and no other test ran.
        """
        tests = [self.items.get(nodeid) for nodeid in self.collected]
        return (
            bool(tests)
            and self.finished == self.collected
            and all(item is not None and item.skipped_here and not item.encoded for item in tests)
        )

    @property
    def findings(self) -> list[Finding]:
        return [finding for item in self.items.values() for finding in item.findings]

    @property
    def outcomes(self) -> list[str]:
        """Return how the test of each of :attr:`findings` ended."""
        return [item.outcome for item in self.items.values() for _ in item.encoded]

    def __bool__(self) -> bool:
        return bool(self.items or self.collected)

    def to_dict(self) -> dict[str, JSON]:
        """``items`` and ``findings`` of findings.json: each item lists the indices of its findings."""
        findings: list[JSON] = []
        items: list[JSON] = []
        for item in self.items.values():
            numbers: list[JSON] = list(range(len(findings), len(findings) + len(item.encoded)))
            findings += [{**finding, "nodeid": item.nodeid} for finding in item.encoded]
            facts = {name: getattr(item, name) for name in _WRITTEN}
            items.append({**facts, "findings": numbers})
        return {"items": items, "findings": findings, "missing": list(self.missing)}


def _error(text: str) -> str:
    """Return what *text*, a traceback as pytest shows it, says of the error; the whole of it where
    nothing is marked so.
    """
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return "\n".join(lines) or text


# ---------------------------------------------------------------- what may cross, and be shown


def make_safe(report: pytest.TestReport) -> None:
    """Write out, in *report*, whatever could not cross or would be obeyed; nothing is cut."""
    if hasattr(report.longrepr, "toterminal") and not is_dataclass(report.longrepr):
        text = str(
            report.longrepr
        )  # pytest's own text for a missing fixture, and whatever an item made of its failure
        if terminal(text) == text:
            report.longrepr = report.longrepr
        else:
            report.longrepr = terminal(text)
    else:
        report.longrepr = _safe(report.longrepr)
    report.sections = [(terminal(title), _coloured(text)) for title, text in report.sections]
    report.user_properties = [
        (terminal(str(name)), _safe(value)) for name, value in report.user_properties
    ]
    if hasattr(report, "wasxfail"):
        report.wasxfail = terminal(str(report.wasxfail))


def make_warning_safe(message: warnings.WarningMessage) -> None:
    """Write out, in a warning's text, whatever could not cross or would be obeyed."""
    warning = message.message
    text = str(message.message)
    if isinstance(warning, Warning) and terminal(text) != text:
        warning.args = tuple(
            terminal(value) if isinstance(value, str) else value for value in warning.args
        )


def _safe(value: Any) -> Any:
    """*value* with every text in it escaped: the parts of pytest's tracebacks in place, containers
    anew.
    """
    if isinstance(value, str):
        return terminal(str(value))
    if type(value) in (bool, int, float, type(None)):
        return value
    if isinstance(value, (list, tuple)):
        if type(value) in (list, tuple):
            return type(value)(_safe(item) for item in value)
        return _safe(list(value))
    if isinstance(value, Mapping):
        return {_safe(key): _safe(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            object.__setattr__(value, part.name, _safe(getattr(value, part.name)))
        return value
    return terminal(str(value))  # a numpy number, a path, an enum: what JUnit would make of it


def _coloured(text: str) -> str:
    return "".join(
        part if _COLOUR.fullmatch(part) else terminal(part) for part in _COLOUR.split(text)
    )
