"""Fixtures that a test can ask for. Override ``endpoint`` with any callable to make that the system
under test.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.pytest_layer.current_session import session_of
from pytest_fairness.pytest_layer.item_marks import DESIGNS, GRID, class_in, has_design

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.context import RunContext
    from pytest_fairness.design.names import NameBanks
    from pytest_fairness.design.personas import PersonaMatrix
    from pytest_fairness.trials_frame import AnsweredCell


@contextlib.contextmanager
def errors_as_failures() -> Iterator[None]:
    """Let an error of ours fail the test with its message, not with a traceback through the plugin."""
    from pytest_fairness.errors import FairnessError

    try:
        yield
    except FairnessError as error:
        message = str(error)
    else:
        return
    from pytest_fairness.reports.escaping import terminal

    # What was caught is not its context: the message would be shown twice.
    raise pytest.fail.Exception(terminal(message), pytrace=False) from None


@pytest.fixture(scope="session")
def endpoint(request: pytest.FixtureRequest) -> Any:
    """The system under test: the one that ``--fairness-endpoint`` names, by default the simulated
    one. Where it names several, each item has its own.

    Override it with a fixture that returns any callable, sync or async, from the prompt (or, if its
    parameter is called ``messages``, from the conversation) to the reply.
    """
    with errors_as_failures():
        return session_of(request.config).systems.configured(getattr(request, "param", None))


@pytest.fixture(scope="session")
def persona_matrix(pytestconfig: pytest.Config) -> PersonaMatrix:
    """The matrix of 100 synthetic personas, or the project's own from its ``personas/`` folder."""
    from pytest_fairness.design.personas import PersonaMatrix
    from pytest_fairness.documents import project_folder

    return PersonaMatrix.load(project_folder(pytestconfig.rootpath))


@pytest.fixture(scope="session")
def name_banks(pytestconfig: pytest.Config) -> NameBanks:
    """Names for each group, with source, year and strength of signal."""
    from pytest_fairness.design.names import NameBanks
    from pytest_fairness.documents import project_folder

    return NameBanks.load(project_folder(pytestconfig.rootpath))


@pytest.fixture(scope="session")
def fairness_run(pytestconfig: pytest.Config) -> RunContext:
    """The run of this session, for suites that leave files of their own in its folder."""
    return session_of(pytestconfig).context


@pytest.fixture
def tier(request: pytest.FixtureRequest) -> int:
    """1: the system prompt is ours; 2: conversation only."""
    return int(getattr(request, "param", 2))


@pytest.fixture
def fairness_temperature(request: pytest.FixtureRequest) -> float | None:
    """The temperature that ``temperatures=`` asks for in this item; None for the deployment's own."""
    value = getattr(request, "param", None)
    if value is None:
        return None
    return float(value)


@pytest.fixture
def fairness_protected_class(request: pytest.FixtureRequest) -> str | None:
    """The protected class of this item, where ``fairness_grid(each=...)`` makes a design for each
    of several.
    """
    label = getattr(request, "param", None)
    if label is None:
        return None
    return class_in(label)


@pytest.fixture
def trials(
    request: pytest.FixtureRequest,
    endpoint: Any,
    tier: int,  # noqa: ARG001 - the item says it, and the next two
    fairness_temperature: float | None,  # noqa: ARG001
    fairness_protected_class: str | None,  # noqa: ARG001
) -> pd.DataFrame:
    """Every trial of the test's grid, asked or found in the run: one row each
    (:mod:`pytest_fairness.trials_frame`).
    """
    with errors_as_failures():
        _refuse_without_design(request)
        return session_of(request.config).trial_source.trials_of(request.node, endpoint)


@pytest.fixture
def cell(
    request: pytest.FixtureRequest,
    endpoint: Any,
    tier: int,  # noqa: ARG001
    fairness_temperature: Any,  # noqa: ARG001
) -> AnsweredCell:
    """One cell of the test's grid with its replies; makes one item a cell."""
    with errors_as_failures():
        _refuse_without_design(request)
        return session_of(request.config).trial_source.cell_of(
            request.node, endpoint, request.param
        )


def _refuse_without_design(request: pytest.FixtureRequest) -> None:
    """Fail a test that asks for trials or a cell and is marked with no design, with the mend."""
    from pytest_fairness.errors import UsageError, did_you_mean

    if not has_design(request.node):
        name = request.fixturename
        typo = ""
        for marker in request.node.iter_markers():
            if hint := did_you_mean(marker.name, DESIGNS):
                typo = f"; @pytest.mark.{marker.name} is a typo{hint}"
        raise UsageError(
            f"{request.node.nodeid} asks for {name!r} but has no @pytest.mark.{GRID}(...){typo}"
        )
