"""The few questions that are asked in every pytest session, and cost next to nothing.

Everything else of the package is imported only once one of them has said that there is a fairness test: the plugin
is a guest in every session of everyone who installed it.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import warnings

    from pytest_fairness.pytest_layer.session import FairnessSession

GRID = "fairness_grid"
PAIRS = "fairness_pairs"
DESIGNS = (GRID, PAIRS)
PULLS = frozenset({"trials", "cell"})
#: The attribute of a test report that carries its findings to the controller.
FINDINGS = "fairness_findings"
#: Under this a worker, whose own command line is xdist's, is handed that of its controller.
ARGUMENTS = "fairness_arguments"

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


def arguments_of(config: pytest.Config) -> dict[str, list[str]]:
    """The arguments of the command line, ``all`` of them, and those that name ``tests``."""
    tests = config.args if config.args_source is config.ArgsSource.ARGS else []
    return {"all": list(map(str, config.invocation_params.args)), "tests": list(map(str, tests))}


def is_fairness_item(item: pytest.Item) -> bool:
    return item.get_closest_marker("fairness") is not None


def imply_fairness(item: pytest.Item) -> None:
    """``fairness_grid`` and ``fairness_pairs`` imply ``fairness``, so that ``-m fairness`` selects them."""
    if any(item.get_closest_marker(name) is not None for name in DESIGNS) and not is_fairness_item(item):
        item.add_marker(pytest.mark.fairness)


def wants_a_grid(metafunc: pytest.Metafunc) -> bool:
    """Whether a test function has a grid, or asks for what only a grid can give."""
    definition = metafunc.definition
    return any(definition.get_closest_marker(name) is not None for name in DESIGNS) or _pulls_ours(metafunc)


def _pulls_ours(metafunc: pytest.Metafunc) -> bool:
    # A project may have a fixture of its own called ``trials`` or ``cell``: that one is none of our business.
    fixtures = metafunc.definition._fixtureinfo.name2fixturedefs
    return any(
        name in fixtures and fixtures[name][-1].func.__module__ == "pytest_fairness.pytest_layer.fixtures"
        for name in PULLS
    )


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


class XdistBridge:
    """Tells each worker what the controller resolved, and which run it belongs to."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl
    def pytest_configure_node(self, node: object) -> None:
        session_of(self._config).introduce(node)

    def pytest_keyboard_interrupt(self) -> None:
        # Before anything else is done about it: workers go on asking until they are told.
        session_of(self._config).end_workers()

    @pytest.hookimpl
    def pytest_xdist_node_collection_finished(self) -> None:
        session_of(self._config).show_workers()


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
            from pytest_fairness.pytest_layer.report_safety import make_warning_safe

            make_warning_safe(warning_message)


def register(config: pytest.Config) -> None:
    """Register what needs the configuration at hand, and the bridges to other plugins where they are present."""
    manager = config.pluginmanager
    manager.register(Recorder(config), "fairness-recorder")
    if manager.hasplugin("dsession"):
        manager.register(XdistBridge(config), "fairness-xdist")
    manager.register(WarningBridge(config), "fairness-warnings")
    if manager.hasplugin("html") and config.getoption("htmlpath", None):
        from pytest_fairness.pytest_layer.html_plugin import HtmlBridge

        manager.register(HtmlBridge(config), "fairness-html")
