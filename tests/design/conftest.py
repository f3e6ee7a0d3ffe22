"""What the tests of the design share: the shipped banks and signals, read once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.personas import PersonaMatrix
from pytest_fairness.design.signals import Signals
from pytest_fairness.design.sources import shipped_folder


@pytest.fixture(scope="session")
def banks() -> NameBanks:
    """The shipped name banks."""
    return NameBanks.load()


@pytest.fixture(scope="session")
def signals() -> Signals:
    """The shipped labels and signals."""
    return Signals.load()


@pytest.fixture(scope="session")
def matrix() -> PersonaMatrix:
    """The shipped persona matrix."""
    return PersonaMatrix.load()


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A user's own personas folder, empty."""
    folder = tmp_path / "personas"
    for name in ("names", "signals"):
        (folder / name).mkdir(parents=True)
    return folder


@pytest.fixture(scope="session")
def shipped() -> Path:
    """The folder of the shipped source data."""
    return shipped_folder()
