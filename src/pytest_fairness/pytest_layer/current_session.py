"""The fairness session of a pytest session, made when the first fairness test is found.

The plugin loads in every session of everyone who installed it: nothing else of the package is
imported before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.pytest_layer.item_marks import CONTROLLER, RECORDER
from pytest_fairness.pytest_layer.to_controller import Recorder

if TYPE_CHECKING:
    from pytest_fairness.pytest_layer.session import FairnessSession

_SESSION: pytest.StashKey[FairnessSession] = pytest.StashKey()


def session_of(config: pytest.Config) -> FairnessSession:
    """Return the fairness session of this pytest session, made when first asked for."""
    session = config.stash.get(_SESSION, None)
    if session is None:
        from pytest_fairness.pytest_layer.session import FairnessSession

        session = config.stash[_SESSION] = FairnessSession(config)
    return session


def session_if_any(config: pytest.Config) -> FairnessSession | None:
    """Return the fairness session, if anything has made one yet, or a worker of this process has
    begun a run.
    """
    controller: Any = config.pluginmanager.getplugin(CONTROLLER)
    if controller and controller.begun:
        return session_of(config)
    return config.stash.get(_SESSION, None)


def register(config: pytest.Config) -> None:
    """Register what needs the configuration at hand, and the bridges to other plugins where they
    are present.
    """
    manager = config.pluginmanager

    def record(report: pytest.TestReport) -> None:
        session_of(config).ledger.record(report)

    def is_ours(nodeid: str) -> bool:
        session = config.stash.get(_SESSION, None)
        return session is not None and nodeid in session.ledger.collected

    is_worker = hasattr(config, "workerinput")
    manager.register(Recorder(record, is_ours, is_worker=is_worker), RECORDER)
    if manager.hasplugin("dsession"):
        from pytest_fairness.pytest_layer.xdist import Controller

        manager.register(Controller(config, lambda: session_of(config)), CONTROLLER)
    if manager.hasplugin("html") and config.getoption("htmlpath", None):
        from pytest_fairness.pytest_layer.html_bridge import HtmlBridge

        manager.register(HtmlBridge(lambda: session_if_any(config)), "fairness-html")
