"""Gives the suite's modules the design that ``selection.yaml`` asks for."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.design.arms import Arm
from pytest_fairness.design.candidates import candidate_groups
from pytest_fairness.errors import UsageError
from pytest_fairness.pytest_layer.collection import own_personas
from pytest_fairness.pytest_layer.guest import session_of
from pytest_fairness.suites.selection.configuration import SALARY, SELECTION, Configuration
from pytest_fairness.suites.selection.design import (
    GROUP,
    SCRUBBED,
    arms_of_task,
    contrasts,
    margins_of,
    marker_arguments,
)
from pytest_fairness.suites.selection.loading import load_configuration

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.scorers import Scorer
    from pytest_fairness.suites.selection.results import SelectionResults

_TASKS = {"test_selection_benchmark.py": SELECTION, "test_salary_benchmark.py": SALARY}
_CONFIGURATION = pytest.StashKey[Configuration]()
ClassOf = Mapping[str, str] | None
"""Which class of an item's protected class each group is of; None where the groups themselves are compared."""
_RESULTS = pytest.StashKey["dict[tuple[float | None, int], SelectionResults]"]()


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


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what ``task`` does not ask for."""
    task = _TASKS.get(collection_path.name)
    return True if task is not None and task not in configuration_of(config).tasks else None


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """The module with its design on it, which all its tests share; their replies are asked once."""
    task = _TASKS.get(module_path.name)
    if task is None:
        return None
    configuration = configuration_of(parent.config)
    session_of(parent.config).declare_cap(configuration.max_cost)
    module: pytest.Module = pytest.Module.from_parent(parent, path=module_path)
    module.add_marker(pytest.mark.fairness_pairs(**marker_arguments(configuration, task)))
    return module


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """An item an arm, and one a contrast between arms and protected class."""
    task = _TASKS.get(Path(metafunc.definition.path).name)
    if task is None:
        return
    configuration = configuration_of(metafunc.config)
    asked = [arm.name if isinstance(arm, Arm) else arm for arm in arms_of_task(configuration, task)]
    arms = [arm for arm in asked if arm in configuration.arm_names]
    if "arm" in metafunc.fixturenames:
        judged = metafunc.definition.name in ("test_preference", "test_salary")
        _parametrize(metafunc, "arm", [(arm, arm) for arm in arms], configuration.controls if judged else ())
    if "contrast" in metafunc.fixturenames:
        margins = margins_of(_classes(configuration, own_personas(metafunc.config.rootpath)) or {})
        each = [(f"{one.id}-{by}", (one, by)) for one in contrasts(arms) for by in margins]
        _parametrize(metafunc, "contrast,by", each or [(one.id, (one, GROUP)) for one in contrasts(arms)])
    if "scrubber" in metafunc.fixturenames:
        own = {arm.name for arm in configuration.arms if isinstance(arm, Arm) and arm.steps}
        _parametrize(metafunc, "scrubber", [(arm, arm) for arm in arms if arm in SCRUBBED or arm in own])
    if "signal" in metafunc.fixturenames:
        several = len(configuration.signals) > 1
        ids = [one if several else pytest.HIDDEN_PARAM for one in configuration.signals]
        metafunc.parametrize("signal", configuration.signals, ids=ids)


def _parametrize(
    metafunc: pytest.Metafunc, names: str, values: Sequence[tuple[str, Any]], controls: Sequence[str] = ()
) -> None:
    what = metafunc.definition.name.removeprefix("test_")
    measured = pytest.mark.xfail(strict=False, reason="a control arm: its preference is measured, not forbidden")
    metafunc.parametrize(
        names,
        [
            pytest.param(
                *(value if "," in names else (value,)),
                id=id_,
                marks=[
                    pytest.mark.fairness(id=f"selection.{what}[{id_}]"),
                    *([measured] if value in controls else []),
                ],
            )
            for id_, value in values
        ],
    )


@pytest.fixture(scope="session")
def suite(pytestconfig: pytest.Config) -> Configuration:
    """The configuration of the benchmark."""
    return configuration_of(pytestconfig)


@pytest.fixture
def results(
    trials: pd.DataFrame, suite: Configuration, fairness_temperature: float | None, request: pytest.FixtureRequest
) -> SelectionResults:
    """All numbers of the benchmark; made once a process."""
    from pytest_fairness.suites.selection.metrics import selection_results

    made = request.config.stash.setdefault(_RESULTS, {})
    key = fairness_temperature, hash(tuple(zip(trials["key"], trials["status"], strict=True)))
    if key not in made:
        arms = suite.arm_names
        made[key] = selection_results(
            trials,
            classes=_classes(suite, own_personas(request.config.rootpath)),
            contrasts=[(one.treated, one.control, one.isolates) for one in contrasts(arms)],
            seed=session_of(request.config).settings.seed,
        )
    return made[key]


def _classes(suite: Configuration, personas: Path | None) -> dict[str, dict[str, str]] | None:
    """The classes of each group; None where a group does not say them, as résumés do not."""
    groups = suite.groups if isinstance(suite.groups, str) else dict(suite.groups)
    found = {group.label: dict(group.classes) for group in candidate_groups(groups, personas)}
    return found if all(found.values()) else None


@pytest.fixture
def classes(by: str, suite: Configuration, request: pytest.FixtureRequest) -> ClassOf:
    """The class of each group in the protected class that the item is about."""
    found = _classes(suite, own_personas(request.config.rootpath))
    return None if by == GROUP or found is None else {group: known[by] for group, known in found.items()}


@pytest.fixture
def pay(suite: Configuration) -> Scorer:
    """What reads a salary off a reply, in dollars a year."""
    from pytest_fairness.suites.selection.pay import pay_scorer

    return pay_scorer(suite.hours_per_year)


@dataclasses.dataclass(frozen=True, slots=True)
class Files:
    """Writes the benchmark's own files into the folder of the run."""

    run: Path
    log: Path
    suffix: str

    def write(self, name: str, trials: pd.DataFrame, results: SelectionResults | None = None) -> None:
        """The records of *trials*, and *results*. Raises StoreError."""
        from pytest_fairness.reports.sections import write_page
        from pytest_fairness.runs.files import write_atomically
        from pytest_fairness.suites.selection.page import selection_page
        from pytest_fairness.suites.selection.records import write_records

        records = self.run / f"{name}{self.suffix}.jsonl"
        write_records(records, trials, self.log)
        if results is not None:
            text = json.dumps(results.to_dict(), ensure_ascii=True, allow_nan=False, indent=1)
            write_atomically(records.with_suffix(".json"), text.encode("ascii"))
            write_page(self.run, records.stem, selection_page(results, records))


@pytest.fixture
def files(suite: Configuration, fairness_temperature: float | None, request: pytest.FixtureRequest) -> Files:
    """Where the benchmark's files go; those of a second temperature have its number in their names."""
    session = session_of(request.config)
    first = fairness_temperature == suite.temperatures[0]
    suffix = "" if first else f"-t-{'default' if fairness_temperature is None else format(fairness_temperature, 'g')}"
    run = session.context.store.directory
    return Files(run, session.settings.replay or run, suffix)
