"""Gives the suite's modules the design that ``selection.yaml`` asks for."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.collecting import own_personas
from pytest_fairness.errors import UsageError
from pytest_fairness.guest import session_of
from pytest_fairness.suites.selection.configuration import SALARY, SELECTION, Configuration
from pytest_fairness.suites.selection.design import arms_of_task, contrasts, marker_arguments
from pytest_fairness.suites.selection.loading import load_configuration

_TASKS = {"test_selection_benchmark.py": SELECTION, "test_salary_benchmark.py": SALARY}
_CONFIGURATION = pytest.StashKey[Configuration]()


def configuration_of(config: pytest.Config) -> Configuration:
    """The configuration of this session, read once. Raises CollectError with what is wrong with the file."""
    if _CONFIGURATION not in config.stash:
        try:
            config.stash[_CONFIGURATION] = load_configuration(config.rootpath, own_personas(config.rootpath))
        except UsageError as error:
            problem = str(error)
        else:
            return config.stash[_CONFIGURATION]
        raise pytest.Collector.CollectError(problem)
    return config.stash[_CONFIGURATION]


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """The module with its design on it, which all its tests share; their replies are asked once."""
    task = _TASKS.get(module_path.name)
    if task is None:
        return None
    configuration = configuration_of(parent.config)
    declare_cap(parent.config, configuration.max_cost)
    module: pytest.Module = pytest.Module.from_parent(parent, path=module_path)
    module.add_marker(pytest.mark.fairness_pairs(**marker_arguments(configuration, task)))
    return module


def declare_cap(config: pytest.Config, dollars: float | None) -> None:
    """Cap the run at *dollars*, unless the session has a cap of its own, which wins, be it lower or higher."""
    session = session_of(config)
    if session.settings.max_cost is None and dollars is not None:
        session.settings = dataclasses.replace(session.settings, max_cost=dollars)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """An item an arm, and one a contrast between arms."""
    task = _TASKS.get(Path(metafunc.definition.path).name)
    if task is None:
        return
    configuration = configuration_of(metafunc.config)
    arms = [arm if isinstance(arm, str) else arm.name for arm in arms_of_task(configuration, task)]
    if "arm" in metafunc.fixturenames:
        _parametrize(metafunc, "arm", [(arm, arm) for arm in arms])
    if "contrast" in metafunc.fixturenames:
        _parametrize(metafunc, "contrast", [(one.id, one) for one in contrasts(arms)])
    if "signal" in metafunc.fixturenames:
        several = len(configuration.signals) > 1
        ids = [one if several else pytest.HIDDEN_PARAM for one in configuration.signals]
        metafunc.parametrize("signal", configuration.signals, ids=ids)


def _parametrize(metafunc: pytest.Metafunc, name: str, values: Sequence[tuple[str, Any]]) -> None:
    what = metafunc.definition.name.removeprefix("test_")
    metafunc.parametrize(
        name,
        [
            pytest.param(value, id=id_, marks=pytest.mark.fairness(id=f"selection.{what}[{id_}]"))
            for id_, value in values
        ],
    )


@pytest.fixture(scope="session")
def suite(pytestconfig: pytest.Config) -> Configuration:
    """The configuration of the benchmark."""
    return configuration_of(pytestconfig)
