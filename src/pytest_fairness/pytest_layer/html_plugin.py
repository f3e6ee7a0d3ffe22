"""Hooks of pytest-html, registered only where a report of it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_fairness.pytest_layer.session import FairnessSession


class HtmlBridge:
    """Puts each finding's sentence and table into pytest-html's rows; its cells are raw HTML, so all is escaped."""

    def __init__(self, session: Callable[[], FairnessSession | None]) -> None:
        self._session = session

    @pytest.hookimpl(tryfirst=True)
    def pytest_html_results_table_row(self, report: pytest.TestReport, cells: list[str]) -> None:
        from pytest_fairness.reports.escaping import html

        if self._session() is not None:  # pytest-html puts the id there as it is (pytest-html#1024)
            cells[:] = [cell.replace(report.nodeid, html(report.nodeid)) for cell in cells]

    @pytest.hookimpl
    def pytest_html_results_table_html(self, report: pytest.TestReport, data: list[str]) -> None:
        from pytest_fairness.reports.escaping import html
        from pytest_fairness.reports.plain_text import finding_text

        session = self._session()
        item = None if session is None else session.ledger.items.get(report.nodeid)
        for finding in () if item is None or report.when != "call" else item.findings:
            data.insert(0, f'<pre class="fairness">{html(finding_text(finding))}</pre>')

    @pytest.hookimpl
    def pytest_html_results_summary(self, postfix: list[str]) -> None:
        from pytest_fairness.reports.escaping import html

        session = self._session()
        if session is not None:
            postfix.append(f'<pre class="fairness">{html(chr(10).join(session.summary()))}</pre>')
