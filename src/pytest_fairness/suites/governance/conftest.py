"""Gives the suite's modules what ``governance.yaml`` asks for, a key a module."""

from __future__ import annotations

import msgspec
import pytest

from pytest_fairness.documents import open_document
from pytest_fairness.errors import UsageError
from pytest_fairness.suites.governance.monitoring import MonitoringOptions
from pytest_fairness.suites.governance.oversight import OversightOptions
from pytest_fairness.suites.governance.representativeness import DataOptions, PersonDataset, dataset_of
from pytest_fairness.suites.governance.third_party import ThirdPartyOptions
from pytest_fairness.suites.governance.transparency import TransparencyOptions

FILE = "governance.yaml"
_OPTIONS = pytest.StashKey["GovernanceOptions"]()


class GovernanceOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``governance.yaml`` may say, by module of the programme."""

    data: DataOptions = DataOptions()
    transparency: TransparencyOptions = TransparencyOptions()
    oversight: OversightOptions = OversightOptions()
    monitoring: MonitoringOptions = MonitoringOptions()
    third_party: ThirdPartyOptions = ThirdPartyOptions()


def options_of(config: pytest.Config) -> GovernanceOptions:
    """The options of this session, read once. Raises CollectError with what is wrong with the file."""
    if _OPTIONS not in config.stash:
        path = config.rootpath / FILE
        try:
            config.stash[_OPTIONS] = (
                open_document(path).convert(GovernanceOptions) if path.exists() else GovernanceOptions()
            )
        except UsageError as error:
            raise pytest.Collector.CollectError(str(error)) from None
    return config.stash[_OPTIONS]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """An item a class whose shares are declared, and one a class that the dataset speaks of."""
    options = options_of(metafunc.config).data
    of = {"declared_class": list(options.population), "known_class": list({**options.population, **options.columns})}
    for name, classes in of.items():
        if name in metafunc.fixturenames:
            what = (
                "DATA-MISS"
                if name == "known_class"
                else "DATA-REPR"
                if "dataset" in metafunc.fixturenames
                else "DATA-PERS"
            )
            marks = [
                pytest.mark.fairness(id=f"{what}-{at:03}", module="iso42001-data") for at in range(1, len(classes) + 1)
            ]
            items = [pytest.param(one, id=one, marks=mark) for one, mark in zip(classes, marks, strict=True)]
            why = pytest.mark.skip(reason=f"{FILE} declares no population, so there is nothing to compare with")
            metafunc.parametrize(name, items or [pytest.param("", id="none", marks=[why, pytest.mark.fairness])])


@pytest.fixture
def governance(pytestconfig: pytest.Config) -> GovernanceOptions:
    """What ``governance.yaml`` says."""
    return options_of(pytestconfig)


@pytest.fixture(scope="session")
def dataset(pytestconfig: pytest.Config) -> PersonDataset:
    """The dataset that ``governance.yaml`` names, read once."""
    from pytest_fairness.pytest_layer.fixtures import plainly

    options = options_of(pytestconfig).data
    if not options.dataset:
        pytest.skip(f"{FILE} names no dataset: data: {{dataset: FILE.csv}}")
    with plainly():
        return dataset_of(options, pytestconfig.rootpath)
