"""The few questions that are asked in every pytest session, and cost next to nothing.

Everything else of the package is imported only once one of them has found a fairness test: the plugin
is a guest in every session of everyone who installed it.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import warnings
    from collections.abc import Sequence
    from typing import Any

    from pytest_fairness.pytest_layer.session import FairnessSession

GRID = "fairness_grid"
PAIRS = "fairness_pairs"
DESIGNS = (GRID, PAIRS)
PULLS = frozenset({"trials", "cell"})
#: The attribute of a test report that carries its findings to the controller.
FINDINGS = "fairness_findings"
#: The module of our own fixtures, by which those of a project are known.
FIXTURES = "pytest_fairness.pytest_layer.fixtures"

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


def is_fairness_item(item: pytest.Item) -> bool:
    return item.get_closest_marker("fairness") is not None


def imply_fairness(item: pytest.Item) -> None:
    """``fairness_grid`` and ``fairness_pairs`` imply ``fairness``, so that ``-m fairness`` selects them."""
    if has_design(item) and not is_fairness_item(item):
        item.add_marker(pytest.mark.fairness)


def has_design(node: pytest.Item) -> bool:
    """Whether a test, or its definition, is marked with a grid."""
    return any(node.get_closest_marker(name) is not None for name in DESIGNS)


def fixtures_of(item: pytest.Item, name: str) -> Sequence[Any]:
    """The definitions of the fixture *name* that *item* sees, the one that it gets last.

    pytest has no public way to ask before the fixture is made; a test holds this one against the newest pytest.
    """
    fixtures = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return fixtures.get(name) or ()


def concerns(item: pytest.Item) -> bool:
    """A fairness test; or any test, once somebody has imported an assertion."""
    return is_fairness_item(item) or "pytest_fairness.asserts" in sys.modules


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


def register(config: pytest.Config) -> None:
    """Register what needs the configuration at hand, and the bridges to other plugins where they are present."""
    manager = config.pluginmanager
    manager.register(Recorder(config), "fairness-recorder")
    if manager.hasplugin("dsession"):
        from pytest_fairness.pytest_layer.xdist import XdistBridge

        manager.register(XdistBridge(config), "fairness-xdist")
    manager.register(WarningBridge(config), "fairness-warnings")
    if manager.hasplugin("html") and config.getoption("htmlpath", None):
        from pytest_fairness.pytest_layer.html_plugin import HtmlBridge

        manager.register(HtmlBridge(config), "fairness-html")
