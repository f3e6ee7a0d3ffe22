"""Our side of pytest-html, whose cells, rows and summaries are raw HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_fairness.pytest_layer.session import FairnessSession


class HtmlBridge:
    """Puts each finding's sentence and table into the rows of tests; all is escaped."""

    def __init__(self, session: Callable[[], FairnessSession | None]) -> None:
        self._session = session

    @pytest.hookimpl(tryfirst=True)
    def pytest_html_results_table_row(self, report: pytest.TestReport, cells: list[str]) -> None:
        """Escape the id, which pytest-html shows as it is (pytest-html#1024)."""
        if self._session() is None:
            return
        from pytest_fairness.reports.escaping import html

        cells[:] = [cell.replace(report.nodeid, html(report.nodeid)) for cell in cells]

    @pytest.hookimpl
    def pytest_html_results_table_html(self, report: pytest.TestReport, data: list[str]) -> None:
        """Put the findings of a test above what pytest-html shows of it, the worst first."""
        session = self._session()
        if session is None or report.when != "call" or report.nodeid not in session.ledger.items:
            return
        from pytest_fairness.reports.escaping import html
        from pytest_fairness.reports.plain_text import finding_text

        findings = sorted(
            session.ledger.items[report.nodeid].findings,
            key=lambda finding: -finding.verdict.severity,
        )
        data[:0] = [
            f'<pre class="fairness">{html(finding_text(finding))}</pre>' for finding in findings
        ]

    @pytest.hookimpl
    def pytest_html_results_summary(self, postfix: list[str]) -> None:
        """Put the summary of the session below that of pytest-html."""
        session = self._session()
        if session is None:
            return
        from pytest_fairness.reports.escaping import html

        postfix.append(f'<pre class="fairness">{html(chr(10).join(session.summary()))}</pre>')
