"""The plugin's table of contents: each hook in a few lines, the work imported where it is done.

This module loads in every pytest session of everyone who installed it. It imports pytest and the standard library
alone, prints nothing and touches neither network nor disk until a fairness test is collected.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_fairness.scorers import Scorer

from pytest_fairness.fixtures import cell, endpoint, name_banks, persona_matrix, tier, trials

__all__ = ["cell", "endpoint", "name_banks", "persona_matrix", "tier", "trials"]

_MARKERS = (
    "fairness(id=None, description=None, justification=None): a fairness test; its id and description in reports, "
    "and the documented reason for a FLAG",
    "fairness_grid(template, groups=None, persona=None, names=20, context=None, signal='name', repetitions=2, "
    "system=None, parameters=None): ask every cell of a demographic grid; implies fairness",
)


# ---------------------------------------------------------------- starting


def pytest_addoption(parser: pytest.Parser) -> None:
    from pytest_fairness.settings import add_options

    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_fairness import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    from pytest_fairness import bridges
    from pytest_fairness.session import session_of

    bridges.register(session.config, session_of(session.config))


# ---------------------------------------------------------------- collecting


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    from pytest_fairness.session import session_of

    session_of(metafunc.config).expand(metafunc)


def pytest_itemcollected(item: pytest.Item) -> None:
    from pytest_fairness.collecting import imply_fairness

    imply_fairness(item)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    from pytest_fairness.session import session_of

    session_of(session.config).plan(session.items)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    from pytest_fairness.session import session_of

    return session_of(config).headline()


# ---------------------------------------------------------------- running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    from pytest_fairness.session import session_of

    with session_of(item.config).running(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    from pytest_fairness.session import attach_findings

    return attach_findings(item, (yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    from pytest_fairness.session import session_of

    result = yield
    session.testsfailed += session_of(session.config).unfinished()
    return result


# ---------------------------------------------------------------- telling


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    from pytest_fairness.session import session_of

    fairness = session_of(session.config)
    fairness.finish()
    if fairness.trouble is not None and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    from pytest_fairness.session import session_of

    session_of(config).write_summary(terminalreporter)


# ---------------------------------------------------------------- built-ins, through our own hooks


def pytest_fairness_scorers() -> Sequence[Scorer]:
    from pytest_fairness.scorers import BUILT_IN

    return tuple(BUILT_IN.values())


def pytest_fairness_endpoint_types() -> Mapping[str, Any]:
    from pytest_fairness.endpoints import BUILT_IN_TYPES

    return BUILT_IN_TYPES
