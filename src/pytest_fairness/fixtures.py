"""What a test can ask for. Override ``endpoint`` with any callable to make that the system under test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.session import session_of

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.design.name_banks import NameBanks
    from pytest_fairness.design.personas import PersonaMatrix
    from pytest_fairness.frame import Asked


@pytest.fixture(scope="session")
def endpoint(pytestconfig: pytest.Config) -> Any:
    """The system under test: the one that ``--fairness-endpoint`` names, by default the simulated one.

    Override it with a fixture that returns any callable, sync or async, from the prompt (or, if its parameter is
    called ``messages``, from the conversation) to the reply.
    """
    return session_of(pytestconfig).configured_endpoint()


@pytest.fixture(scope="session")
def persona_matrix(pytestconfig: pytest.Config) -> PersonaMatrix:
    """The matrix of 100 synthetic personas, or the project's own from its ``personas/`` folder."""
    from pytest_fairness.design.personas import PersonaMatrix

    return PersonaMatrix.load()


@pytest.fixture(scope="session")
def name_banks(pytestconfig: pytest.Config) -> NameBanks:
    """Names for each group, with source, year and strength of signal."""
    from pytest_fairness.design.name_banks import NameBanks

    return NameBanks.load()


@pytest.fixture
def tier(request: pytest.FixtureRequest) -> int:
    """1: the system prompt is ours; 2: conversation only."""
    return int(getattr(request, "param", 2))


@pytest.fixture
def trials(request: pytest.FixtureRequest, endpoint: Any, tier: int) -> pd.DataFrame:
    """Every trial of the test's grid, asked or found in the run: one row each (:mod:`pytest_fairness.frame`)."""
    return session_of(request.config).trials_of(request.node, endpoint, tier)


@pytest.fixture
def cell(request: pytest.FixtureRequest, endpoint: Any, tier: int) -> Asked:
    """One cell of the test's grid with its replies; makes one item a cell."""
    return session_of(request.config).cell_of(request.node, endpoint, tier, request.param)
