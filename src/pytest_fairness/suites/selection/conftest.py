"""Gives the suite's modules the design that ``selection.yaml`` asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness import Arm, OutcomeKind
from pytest_fairness.design.candidates import candidate_groups
from pytest_fairness.pytest_layer import collection
from pytest_fairness.suites.authoring import (
    level_of_tests,
    marked_item,
    marked_module,
    once_a_session,
    project_folder,
    slug,
    slugs,
)
from pytest_fairness.suites.selection.choice_table import crossed_classes
from pytest_fairness.suites.selection.configuration import (
    SALARY,
    SELECTION,
    Configuration,
    load_configuration,
    name_of,
)
from pytest_fairness.suites.selection.design import (
    SCRUBBED,
    PlannedContrast,
    arms_of_task,
    marker_arguments,
    planned_contrasts,
)

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness import RunContext
    from pytest_fairness.scorers import Scorer
    from pytest_fairness.suites.selection.results import SelectionResults

_TASKS = {"test_selection_benchmark.py": SELECTION, "test_salary_benchmark.py": SALARY}
_RESULTS = pytest.StashKey["dict[tuple[float | None, int], SelectionResults]"]()


@once_a_session
def configuration_of(config: pytest.Config) -> Configuration:
    """Return the configuration of this session."""
    return load_configuration(config.rootpath, project_folder(config.rootpath))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what ``task`` does not ask for."""
    task = _TASKS.get(collection_path.name)
    if task is not None and task not in configuration_of(config).tasks:
        return True
    return None


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """The module with its design on it, which all its tests share; their replies are asked once."""
    task = _TASKS.get(module_path.name)
    if task is None:
        return None
    design = marker_arguments(configuration_of(parent.config), task)
    return marked_module(module_path, parent, pytest.mark.fairness_pairs(**design))


def pytest_fairness_max_cost(config: pytest.Config) -> float | None:
    """The cap that the design declares."""
    cap = configuration_of(config).max_cost
    if cap == "none":
        return None
    return cap


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """An item an arm, and one a contrast between arms and protected class."""
    task = _TASKS.get(Path(metafunc.definition.path).name)
    if task is None:
        return
    configuration = configuration_of(metafunc.config)
    planned = list(map(name_of, arms_of_task(configuration, task)))
    arms = [arm for arm in planned if arm in configuration.arm_names]
    if "arm" in metafunc.fixturenames:
        _parametrize(metafunc, "arm", {arm: (arm,) for arm in arms}, configuration.measured_only)
    if "contrast" in metafunc.fixturenames:
        _parametrize(metafunc, "contrast", _contrasts(metafunc.config, arms))
    if "scrubber" in metafunc.fixturenames:
        scrubbing = _scrubbing(configuration)
        _parametrize(metafunc, "scrubber", {arm: (arm,) for arm in arms if arm in scrubbing})
    if "signal" in metafunc.fixturenames:
        _parametrize_signals(metafunc, configuration.signals)


def _scrubbing(configuration: Configuration) -> set[str]:
    """Return the names of the arms that change the texts: ready-made ones, and those with steps."""
    scrubbing = set(SCRUBBED)
    for arm in configuration.arms:
        if isinstance(arm, Arm) and arm.steps:
            scrubbing.add(arm.name)
    return scrubbing


def _contrasts(config: pytest.Config, arms: Sequence[str]) -> dict[str, tuple[PlannedContrast]]:
    """Return each contrast between *arms* by each protected class, or between the groups where none
    is crossed with another, by the id of its item.
    """
    classes = _classes(config)
    crossed = crossed_classes(classes)
    contrasts = list(planned_contrasts(arms))
    if crossed:
        contrasts = [contrast.by_class(by, classes) for contrast in contrasts for by in crossed]
    return {contrast.id: (contrast,) for contrast in contrasts}


def _parametrize(
    metafunc: pytest.Metafunc,
    names: str,
    values: Mapping[str, tuple[object, ...]],
    measured_only: Sequence[str] = (),
) -> None:
    """Make an item of each of the *values*, by its id; those that are *measured_only* may fail."""
    measured = pytest.mark.xfail(
        strict=False, reason="a control arm: its preference is measured, not forbidden"
    )
    parameters = []
    for label, value in values.items():
        marks = [marked_item(metafunc, "selection", label)]
        if label in measured_only:
            marks.append(measured)
        parameters.append(pytest.param(*value, id=label, marks=marks))
    metafunc.parametrize(names, parameters)


def _parametrize_signals(metafunc: pytest.Metafunc, signals: Sequence[str]) -> None:
    """Make an item of each signal; a single one is no part of the ids."""
    ids: list[Any] = list(signals)
    if len(ids) == 1:
        ids = [pytest.HIDDEN_PARAM]
    metafunc.parametrize("signal", signals, ids=ids)


def _classes(config: pytest.Config) -> dict[str, dict[str, str]]:
    """The classes of each group; none where the groups do not all say the same of them, as résumés
    do not.
    """
    groups = configuration_of(config).groups
    if not isinstance(groups, str):
        groups = dict(groups)
    classes: dict[str, dict[str, str]] = {}
    for group in candidate_groups(groups, project_folder(config.rootpath)):
        classes[group.label] = dict(group.classes)
    stated = {frozenset(values) for values in classes.values()}
    if len(stated) == 1 and all(stated):
        return classes
    return {}


@pytest.fixture(scope="session")
def suite(pytestconfig: pytest.Config) -> Configuration:
    """The configuration of the benchmark."""
    return configuration_of(pytestconfig)


@pytest.fixture
def results(
    trials: pd.DataFrame,
    fairness_temperature: float | None,
    fairness_run: RunContext,
    pytestconfig: pytest.Config,
) -> SelectionResults:
    """All numbers of the benchmark, judged at the level of its tests; made once a process."""
    from pytest_fairness.suites.selection.metrics import ALPHA, selection_results

    made = pytestconfig.stash.setdefault(_RESULTS, {})
    key = fairness_temperature, hash(tuple(zip(trials["key"], trials["status"], strict=True)))
    if key not in made:
        made[key] = selection_results(
            trials,
            _classes(pytestconfig),
            alpha=level_of_tests(fairness_run, ALPHA),
            seed=fairness_run.settings.seed,
        )
    return made[key]


@pytest.fixture
def pay(suite: Configuration) -> Scorer:
    """Return what reads a salary off a reply, in dollars a year."""
    from pytest_fairness.scorers import Scorer
    from pytest_fairness.scorers.salary import read_salary

    def amount(text: str) -> float | None:
        return read_salary(text, suite.hours_per_year).amount

    return Scorer(name="salary", score=amount, kind=OutcomeKind.NUMERIC, unit="dollars a year")


@pytest.fixture
def write_records(
    suite: Configuration,
    fairness_temperature: float | None,
    fairness_run: RunContext,
    request: pytest.FixtureRequest,
) -> Callable[[str, pd.DataFrame], Path]:
    """Writes the line of every trial into the run's folder; files of a second temperature have its
    number in their names, those of each of several endpoints its name. Raises StoreError.
    """
    from pytest_fairness.suites.selection.trial_lines import write_lines

    temperature: float | str = "default"
    if fairness_temperature is not None:
        temperature = fairness_temperature
    suffix = ""
    if temperature != suite.temperatures[0]:
        suffix = f"-t-{temperature}".removesuffix(".0")
    asked = collection.selection_of(request.node).endpoint
    if asked is not None:
        suffix = f"-{slugs(fairness_run.settings.endpoints).get(asked, slug(asked))}{suffix}"
    folder = fairness_run.store.directory

    def write(name: str, trials: pd.DataFrame) -> Path:
        path = folder / f"{name}{suffix}.jsonl"
        write_lines(path, trials, fairness_run.settings.replay or folder)
        return path

    return write
