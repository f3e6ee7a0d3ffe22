"""The plugin's table of contents: each hook in a few lines, the work imported where it is done.

This module loads in every pytest session of everyone who installed it. It imports pytest and the
standard library alone, prints nothing and touches neither network nor disk until a fairness test is
collected.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.pytest_layer import current_session, item_marks, markers
from pytest_fairness.pytest_layer.fixtures import (
    cell,
    endpoint,
    fairness_protected_class,
    fairness_run,
    fairness_temperature,
    name_banks,
    persona_matrix,
    tier,
    trials,
)

if TYPE_CHECKING:
    from pytest_fairness.reports.changes import FindingChange
    from pytest_fairness.reports.findings_json import RunResults
    from pytest_fairness.scorers import Scorer

__all__ = [
    "cell",
    "endpoint",
    "fairness_protected_class",
    "fairness_run",
    "fairness_temperature",
    "name_banks",
    "persona_matrix",
    "tier",
    "trials",
]


# ---------------------------------------------------------------- starting


def pytest_addoption(parser: pytest.Parser) -> None:
    from pytest_fairness.pytest_layer.options import add_options

    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_fairness.pytest_layer import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    from pytest_fairness.pytest_layer.options import refuse_unreadable

    for marker in markers.descriptions():
        config.addinivalue_line("markers", marker)
    refuse_unreadable(config)  # ends the session here, with exit status 4


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    current_session.register(session.config)


# ---------------------------------------------------------------- collecting


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if item_marks.has_design(metafunc.definition) or item_marks.gets_named_endpoint(
        metafunc.definition
    ):
        current_session.session_of(metafunc.config).expand(metafunc)


def pytest_itemcollected(item: pytest.Item) -> None:
    if item_marks.has_design(item) and not item_marks.is_fairness_item(item):
        item.add_marker(pytest.mark.fairness)  # so that ``-m fairness`` selects it


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    if any(item_marks.is_fairness_item(item) for item in items):
        current_session.session_of(config).count_asking(items)  # before any is deselected
    yield
    if any(item_marks.is_fairness_item(item) for item in items):
        current_session.session_of(config).select(items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    if any(item_marks.is_fairness_item(item) for item in session.items):
        current_session.session_of(session.config).plan(session.items)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    fairness = current_session.session_if_any(config)
    if fairness is None:
        return []
    return fairness.headline()


# ---------------------------------------------------------------- running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    if not item_marks.concerns(item):
        return (yield)
    with current_session.session_of(item.config).running(item):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if item_marks.concerns(item):
        current_session.session_of(item.config).attach_findings(item, call, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    result = yield
    fairness = current_session.session_if_any(session.config)
    if fairness is not None:
        session.testsfailed += fairness.failures()
    return result


# ---------------------------------------------------------------- reporting


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    fairness = current_session.session_if_any(session.config)
    if fairness is None:
        return
    session.exitstatus = fairness.exit_status(session.exitstatus)
    fairness.finish(session.exitstatus)
    if fairness.trouble is not None and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    fairness = current_session.session_if_any(config)
    if fairness is not None:
        fairness.write_summary(terminalreporter)


# ---------------------------------------------------------------- built-ins, through our own hooks


def pytest_fairness_scorers() -> Sequence[Scorer]:
    from pytest_fairness.scorers import BUILT_IN

    return tuple(BUILT_IN.values())


def pytest_fairness_endpoint_types() -> Mapping[str, Any]:
    from pytest_fairness.endpoints import BUILT_IN_TYPES

    return BUILT_IN_TYPES


def pytest_fairness_notify(
    config: pytest.Config, results: RunResults, changes: Sequence[FindingChange] | None
) -> None:
    from pytest_fairness.pytest_layer.options import settings_of
    from pytest_fairness.reports.slack import post

    if settings_of(config).notify == "slack":
        post(results, changes, os.environ)
