"""What the tests of the design share: the shipped data, read once, and a user's own folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.personas import PersonaMatrix
from pytest_fairness.design.signals import Signals


@pytest.fixture(scope="session")
def banks() -> NameBanks:
    return NameBanks.load()


@pytest.fixture(scope="session")
def signals() -> Signals:
    return Signals.load()


@pytest.fixture(scope="session")
def matrix() -> PersonaMatrix:
    return PersonaMatrix.load()


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A user's own personas folder, empty."""
    folder = tmp_path / "personas"
    for name in ("names", "signals"):
        (folder / name).mkdir(parents=True)
    return folder
