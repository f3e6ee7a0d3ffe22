"""Hooks that need a session at hand, and those of other plugins, registered only where that plugin is present."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.ledger import Recorder

if TYPE_CHECKING:
    from pytest_fairness.session import FairnessSession


class XdistBridge:
    """Tells each worker what the controller resolved, and which run it belongs to."""

    def __init__(self, session: FairnessSession) -> None:
        self._session = session

    @pytest.hookimpl
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["fairness_settings"] = self._session.settings.to_dict()
        node.workerinput["fairness_token"] = self._session.token


class HtmlBridge:
    """Puts each finding's sentence and table into pytest-html's rows; its cells are raw HTML, so all is escaped."""

    def __init__(self, session: FairnessSession) -> None:
        self._session = session

    @pytest.hookimpl
    def pytest_html_results_table_html(self, report: pytest.TestReport, data: list[str]) -> None:
        from pytest_fairness.ledger import findings_on
        from pytest_fairness.reports.escaping import html
        from pytest_fairness.reports.text import finding_text

        for finding in findings_on(report):
            data.insert(0, f'<pre class="fairness">{html(finding_text(finding))}</pre>')

    @pytest.hookimpl
    def pytest_html_results_summary(self, prefix: list[str], summary: list[str], postfix: list[str]) -> None:
        from pytest_fairness.reports.escaping import html

        for line in self._session.summary():
            postfix.append(f"<p>{html(line)}</p>")


def register(config: pytest.Config, session: FairnessSession) -> None:
    """Register the bridges to the plugins that this pytest session has."""
    manager = config.pluginmanager
    manager.register(Recorder(session.ledger), "fairness-recorder")
    if manager.hasplugin("dsession"):
        manager.register(XdistBridge(session), "fairness-xdist")
    if manager.hasplugin("html"):
        manager.register(HtmlBridge(session), "fairness-html")
