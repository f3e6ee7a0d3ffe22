"""Transport of findings to the controller: one string on the test report.

A report crosses from a pytest-xdist worker as it is, and survives the worker's death; what a worker
hands over at its end does not. :func:`attach` puts the findings on the report where the test ran,
:class:`Recorder` takes them off where all reports arrive: in the controller, or in the same process
where there are no workers. What the texts of a report may hold is in ``report_texts``.

Every session loads this module: it imports pytest and the standard library alone.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import warnings
    from collections.abc import Callable, Iterable, Mapping

    from pytest_fairness.model import JSON, Finding

#: The attribute of a test report that carries its findings.
FINDINGS = "fairness_findings"
#: The attribute that carries what else the ledger knows of a test.
FACTS = "fairness_facts"
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def attach(
    report: pytest.TestReport, findings: Iterable[Finding], facts: Mapping[str, JSON]
) -> None:
    """Put *findings* on *report*, and the *facts* of its test, fields of the ledger's ``Item``, each
    as one string of plain ASCII: nothing else is sure to cross.
    """
    encoded = [finding.to_dict() for finding in findings]
    setattr(report, FINDINGS, json.dumps(encoded, allow_nan=False))
    setattr(report, FACTS, json.dumps(facts, allow_nan=False))


class Recorder:
    """Hands every report with findings to the ledger, and notes which tests have finished."""

    def __init__(
        self,
        record: Callable[[pytest.TestReport], None],
        is_ours: Callable[[str], bool],
        *,
        is_worker: bool,
    ) -> None:
        self._record = record
        self._is_ours = is_ours
        self._is_worker = is_worker
        self.finished: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note that the test of *report* has finished, and hand on its findings."""
        if report.when == "teardown":
            self.finished.add(report.nodeid)
        if hasattr(report, FINDINGS):
            self._record(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, nodeid: str
    ) -> None:
        """Write out what a terminal would obey in the warning of a fairness test, and in a worker,
        whoever raised it, what could not cross to the controller: xdist sends warnings beside the
        reports.
        """
        text = str(warning_message.message)
        cannot_cross = self._is_worker and _SURROGATE.search(text) is not None
        if cannot_cross or self._is_ours(nodeid):
            from pytest_fairness.pytest_layer.report_texts import make_warning_safe

            make_warning_safe(warning_message)
