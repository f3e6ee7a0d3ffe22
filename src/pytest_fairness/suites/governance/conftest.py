"""Gives the suite's modules what ``governance.yaml`` asks for, a key a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from pytest_fairness.suites.authoring import (
    SkipReason,
    errors_as_failures,
    once_a_session,
    options_document,
)
from pytest_fairness.suites.governance.monitoring import MonitoringOptions
from pytest_fairness.suites.governance.oversight import OversightOptions
from pytest_fairness.suites.governance.past_results import PAST_RUNS
from pytest_fairness.suites.governance.representativeness import (
    OF_DATASET,
    DataOptions,
    PersonDataset,
    dataset_of,
)
from pytest_fairness.suites.governance.third_party import ThirdPartyOptions
from pytest_fairness.suites.governance.transparency import TransparencyOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_fairness import RunContext
    from pytest_fairness.suites.governance.oversight import OversightRecord
    from pytest_fairness.suites.governance.past_results import PastRuns
    from pytest_fairness.suites.governance.third_party import ServiceInRun

FILE = "governance.yaml"


class GovernanceOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of ``governance.yaml``, by module of the programme."""

    data: DataOptions = DataOptions()
    transparency: TransparencyOptions = TransparencyOptions()
    oversight: OversightOptions = OversightOptions()
    monitoring: MonitoringOptions = MonitoringOptions()
    third_party: ThirdPartyOptions = ThirdPartyOptions()


@once_a_session
def options_of(config: pytest.Config) -> GovernanceOptions:
    """Return the options of this session."""
    return options_document(config, FILE).convert(GovernanceOptions)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """An item a class whose shares are declared, and one a class that the dataset speaks of."""
    options = options_of(metafunc.config).data
    declared = list(options.population)
    columns = list({**options.population, **options.columns})
    why = pytest.mark.skip(
        reason=SkipReason(f"{FILE} declares no population, so there is nothing to compare with")
    )
    repr_or_persons = "DATA-PERS"
    if "dataset" in metafunc.fixturenames:
        repr_or_persons = "DATA-REPR"
    for name, classes, what in (
        ("declared_class", declared, repr_or_persons),
        ("known_class", columns, "DATA-MISS"),
    ):
        if name not in metafunc.fixturenames:
            continue
        items = []
        for number, protected in enumerate(classes, start=1):
            mark = pytest.mark.fairness(
                id=f"{what}-{number:03}", module="iso42001-data", controls=OF_DATASET
            )
            items.append(pytest.param(protected, id=protected, marks=mark))
        metafunc.parametrize(
            name, items or [pytest.param("", id="none", marks=[why, pytest.mark.fairness])]
        )


@pytest.fixture
def governance(pytestconfig: pytest.Config) -> GovernanceOptions:
    """Return what ``governance.yaml`` says."""
    return options_of(pytestconfig)


@pytest.fixture(scope="session")
def dataset(pytestconfig: pytest.Config) -> PersonDataset:
    """The dataset that ``governance.yaml`` names, read once."""
    options = options_of(pytestconfig).data
    if not options.dataset:
        pytest.skip(SkipReason(f"{FILE} names no dataset: data: {{dataset: FILE.csv}}"))
    with errors_as_failures():
        return dataset_of(options, pytestconfig.rootpath)


@pytest.fixture(scope="session")
def past(fairness_run: RunContext) -> PastRuns:
    """The past runs of the project, read once."""
    from pytest_fairness.suites.governance.past_results import past_runs

    with errors_as_failures():
        return past_runs(fairness_run)


@pytest.fixture
def judged_runs(past: PastRuns) -> None:
    """Skip a test that judges the findings of past runs, where there are none."""
    _skip_unless(past.judged, "with findings")


@pytest.fixture
def asked_runs(past: PastRuns) -> None:
    """Skip a test that judges what past runs asked, where none did."""
    _skip_unless(past.asked, "that asked")


def _skip_unless(runs: Sequence[object], of: str) -> None:
    if not runs:
        pytest.skip(
            SkipReason(f"there is no past run {of}: {PAST_RUNS} says from when it is judged")
        )


@pytest.fixture
def decided(
    past: PastRuns, governance: GovernanceOptions, fairness_run: RunContext
) -> OversightRecord:
    """Return what the project's files say was decided of its past runs."""
    from pytest_fairness.suites.governance.oversight import oversight_record

    with errors_as_failures():
        record = oversight_record(fairness_run, past, governance.oversight)
        _ = record.judged  # a run that is named and not there
        return record


@pytest.fixture
def services(
    past: PastRuns, governance: GovernanceOptions, fairness_run: RunContext
) -> dict[str, list[ServiceInRun]]:
    """Each endpoint in the past runs that asked it; none where nobody was asked."""
    from pytest_fairness.suites.governance.third_party import services_of

    with errors_as_failures():
        return services_of(past, governance.third_party, fairness_run.settings.run_dir)
