"""The fairness session of a pytest session, and the hooks that lead to it.

The plugin is a guest in every session of everyone who installed it: nothing else of the package is
imported before a fairness test is found.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.pytest_layer.marks import CONTROLLER, FINDINGS, RECORDER

if TYPE_CHECKING:
    import warnings

    from pytest_fairness.pytest_layer.session import FairnessSession

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SESSION: pytest.StashKey[FairnessSession] = pytest.StashKey()


def session_of(config: pytest.Config) -> FairnessSession:
    """The fairness session of this pytest session, made when first asked for."""
    session = config.stash.get(_SESSION, None)
    if session is None:
        from pytest_fairness.pytest_layer.session import FairnessSession

        session = config.stash[_SESSION] = FairnessSession(config)
    return session


def session_if_any(config: pytest.Config) -> FairnessSession | None:
    """The fairness session, if anything has made one yet, or a worker of this process has begun a
    run.
    """
    controller: Any = config.pluginmanager.getplugin(CONTROLLER)
    if controller and controller.begun:
        return session_of(config)
    return config.stash.get(_SESSION, None)


class Recorder:
    """Hands every report with findings to the ledger, and notes which tests have finished."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.finished: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self.finished.add(report.nodeid)
        if hasattr(report, FINDINGS):
            session_of(self._config).ledger.record(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, nodeid: str
    ) -> None:
        """Write out what a terminal would obey in the warning of a fairness test, and in a worker,
        whoever raised it, what could not cross to the controller: xdist sends warnings beside the
        reports.
        """
        fairness = self._config.stash.get(_SESSION, None)
        ours = fairness is not None and nodeid in fairness.ledger.collected
        if ours or (
            hasattr(self._config, "workerinput") and _SURROGATE.search(str(warning_message.message))
        ):
            from pytest_fairness.pytest_layer.ledger import make_warning_safe

            make_warning_safe(warning_message)


class HtmlBridge:
    """Puts each finding's sentence and table into pytest-html's rows; its cells are raw HTML, so
    all is escaped.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_html_results_table_row(self, report: pytest.TestReport, cells: list[str]) -> None:
        if (
            session_if_any(self._config) is not None
        ):  # pytest-html puts the id there as it is (pytest-html#1024)
            from pytest_fairness.reports.escaping import html

            cells[:] = [cell.replace(report.nodeid, html(report.nodeid)) for cell in cells]

    @pytest.hookimpl
    def pytest_html_results_table_html(self, report: pytest.TestReport, data: list[str]) -> None:
        session = session_if_any(self._config)
        if session is not None and report.when == "call" and report.nodeid in session.ledger.items:
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
        session = session_if_any(self._config)
        if session is not None:
            from pytest_fairness.reports.escaping import html

            postfix.append(f'<pre class="fairness">{html(chr(10).join(session.summary()))}</pre>')


def register(config: pytest.Config) -> None:
    """Register what needs the configuration at hand, and the bridges to other plugins where they
    are present.
    """
    manager = config.pluginmanager
    manager.register(Recorder(config), RECORDER)
    if manager.hasplugin("dsession"):
        from pytest_fairness.pytest_layer.xdist import Controller

        manager.register(Controller(config, lambda: session_of(config)), CONTROLLER)
    if manager.hasplugin("html") and config.getoption("htmlpath", None):
        manager.register(HtmlBridge(config), "fairness-html")
