"""The fairness session of a pytest session, and the hooks that lead to it.

The plugin is a guest in every session of everyone who installed it: nothing else of the package is imported before a
fairness test is found.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_fairness.pytest_layer import marks

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
    """The fairness session, if anything has made one yet."""
    return config.stash.get(_SESSION, None)


class Recorder:
    """Hands every report with findings to the ledger, and notes which tests have finished."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.finished: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self.finished.add(report.nodeid)
        if hasattr(report, marks.FINDINGS):
            session_of(self._config).ledger.record(report)


class WarningBridge:
    """Sees to it that a warning's text is obeyed by nobody, if a fairness test raised it, and that it can cross from a
    worker to the controller, whoever raised it: xdist sends it beside the reports.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, nodeid: str) -> None:
        fairness = session_if_any(self._config)
        ours = fairness is not None and nodeid in fairness.ledger.collected
        if ours or (hasattr(self._config, "workerinput") and _SURROGATE.search(str(warning_message.message))):
            from pytest_fairness.pytest_layer.ledger import make_warning_safe

            make_warning_safe(warning_message)


class XdistBridge:
    """Hooks of pytest-xdist in its controller."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl
    def pytest_configure_node(self, node: object) -> None:
        session_of(self._config).introduce(node)

    def pytest_keyboard_interrupt(self) -> None:
        # Before anything else is done about it: workers go on asking until they are halted.
        session_of(self._config).end_workers()

    @pytest.hookimpl
    def pytest_xdist_node_collection_finished(self) -> None:
        session_of(self._config).show_workers()


def register(config: pytest.Config) -> None:
    """Register what needs the configuration at hand, and the bridges to other plugins where they are present."""
    manager = config.pluginmanager
    manager.register(Recorder(config), "fairness-recorder")
    if manager.hasplugin("dsession"):
        manager.register(XdistBridge(config), "fairness-xdist")
    manager.register(WarningBridge(config), "fairness-warnings")
    if manager.hasplugin("html") and config.getoption("htmlpath", None):
        from pytest_fairness.pytest_layer.html_plugin import HtmlBridge

        manager.register(HtmlBridge(lambda: session_if_any(config)), "fairness-html")
