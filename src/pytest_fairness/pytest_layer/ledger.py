"""The controller's ledger: which fairness tests were collected, how each ended, and its findings.

Findings arrive on test reports (``to_controller``). From the ledger come ``findings.json`` and the
completeness guard: a test that was collected and never reported fails the session, whatever the
exit status would have been.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pytest

from pytest_fairness.model import JSON, Finding
from pytest_fairness.pytest_layer.report_texts import MESSAGE
from pytest_fairness.pytest_layer.to_controller import FACTS, FINDINGS

#: What findings.json has of an item.
_WRITTEN = ("nodeid", "outcome", "message", "file", "line", "unjudged")


@dataclass
class Item:
    """The end of one test: pytest's word for it, its message, its findings as they crossed, and
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
        return list(map(Finding.from_dict, self.encoded))


@dataclass(slots=True)
class Ledger:
    """Every item that is a fairness test or has a finding, in the order in which they reported."""

    items: dict[str, Item] = field(default_factory=dict)
    collected: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)

    def record(self, report: pytest.TestReport) -> None:
        """Enter what *report* carries; a rerun replaces what the item had before."""
        outcome, message = _ending(report)
        file, line, _ = report.location
        if line is not None:
            line += 1
        self.items[report.nodeid] = Item(
            report.nodeid,
            outcome,
            message,
            encoded=json.loads(getattr(report, FINDINGS)),
            file=file.replace("\\", "/"),
            line=line,
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
        if not self.collected or self.finished != self.collected:
            return False
        for nodeid in self.collected:
            item = self.items.get(nodeid)
            if item is None or item.encoded or not item.skipped_here:
                return False
        return True

    @property
    def findings(self) -> list[Finding]:
        """Return all findings, in the order in which their tests reported."""
        findings = []
        for item in self.items.values():
            findings += item.findings
        return findings

    @property
    def outcomes(self) -> list[str]:
        """Return how the test of each of :attr:`findings` ended."""
        outcomes = []
        for item in self.items.values():
            outcomes += [item.outcome] * len(item.encoded)
        return outcomes

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


def _ending(report: pytest.TestReport) -> tuple[str, str]:
    """Return pytest's word for how the test of *report* ended, and its message."""
    if hasattr(report, "wasxfail"):
        if report.skipped:
            return "xfailed", str(report.wasxfail)
        return "xpassed", str(report.wasxfail)
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.outcome, str(report.longrepr[2])
    if not report.failed:
        return report.outcome, ""
    outcome: str = report.outcome
    if report.when != "call":
        outcome = "error"
    crash = getattr(report.longrepr, "reprcrash", None)
    message = getattr(report, MESSAGE, None) or str(getattr(crash, "message", ""))
    return outcome, message or _error(report.longreprtext)


def _error(text: str) -> str:
    """Return what *text*, a traceback as pytest shows it, says of the error; the whole of it where
    nothing is marked so.
    """
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return "\n".join(lines) or text
