"""The controller's book: which fairness tests were collected, how each ended, and what it found.

Findings arrive as one JSON string on the test report, which survives xdist's transport and a worker's death
better than anything pushed at the end of a session. From the book come ``findings.json`` and the completeness
guard: a test that was collected and never reported fails the session, whatever the exit status would have been.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_fairness.model import JSON, Finding
from pytest_fairness.pytest_layer.guest import FINDINGS

_PROPERTY = "fairness "


def attach(report: pytest.TestReport, findings: Iterable[Finding]) -> None:
    """Put *findings* on *report* as one string of plain ASCII: nothing else is sure to cross to the controller."""
    setattr(report, FINDINGS, json.dumps([finding.to_dict() for finding in findings], allow_nan=False))


def findings_on(report: pytest.TestReport) -> list[Finding]:
    """The findings that *report* carries."""
    return [Finding.from_dict(finding) for finding in json.loads(getattr(report, FINDINGS, "[]"))]


def properties(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """What JUnit is told of each finding: the comparison, its verdict and its sentence."""
    from pytest_fairness.reports.escaping import terminal

    told = []
    for finding in findings:
        about = terminal(f"{finding.assertion}: {finding.outcome} by {finding.protected_class}")
        told.append((_PROPERTY + about, terminal(finding.sentence)))
    return told


def is_ours(entry: tuple[str, object]) -> bool:
    """Whether a property of an item is one of :func:`properties`."""
    return str(entry[0]).startswith(_PROPERTY)


@dataclass(slots=True)
class Item:
    """How one test ended: pytest's word for it, its message, and its findings as JSON."""

    nodeid: str
    outcome: str = "passed"
    message: str = ""
    findings: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Ledger:
    """Every item that is a fairness test or has a finding, in the order in which they reported."""

    items: dict[str, Item] = field(default_factory=dict)
    collected: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)

    def record(self, report: pytest.TestReport) -> None:
        """Enter what *report* carries; a rerun replaces what the item said before."""
        item = self.items.setdefault(report.nodeid, Item(report.nodeid))
        item.findings = json.loads(getattr(report, FINDINGS))
        item.outcome = _word(report)
        item.message = _message(report)

    @property
    def missing(self) -> list[str]:
        """Collected fairness tests that never finished."""
        return sorted(self.collected - self.finished)

    @property
    def findings(self) -> list[Finding]:
        return [Finding.from_dict(finding) for item in self.items.values() for finding in item.findings]

    @property
    def outcomes(self) -> list[str]:
        """How the test of each of :attr:`findings` ended."""
        return [item.outcome for item in self.items.values() for _ in item.findings]

    def __bool__(self) -> bool:
        return bool(self.items or self.collected)

    def to_dict(self) -> dict[str, JSON]:
        """``items`` and ``findings`` of findings.json: each item lists the indices of its findings."""
        findings: list[JSON] = []
        items: list[JSON] = []
        for item in self.items.values():
            first = len(findings)
            findings += [{**finding, "nodeid": item.nodeid} for finding in item.findings]
            items.append(
                {
                    "nodeid": item.nodeid,
                    "outcome": item.outcome,
                    "message": item.message,
                    "findings": list(range(first, len(findings))),
                }
            )
        return {"items": items, "findings": findings, "missing": list(self.missing)}


def _word(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    if report.failed and report.when != "call":
        return "error"
    return str(report.outcome)


def _message(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail)
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message) if crash is not None else ""
