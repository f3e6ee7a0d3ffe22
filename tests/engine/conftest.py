"""Every test of the engine has a run of its own, and waits no longer than it must."""

import pytest

from tests.support.runs import engine_for, root, runs, store

__all__ = ["engine_for", "root", "runs", "store"]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure for which the server asks for no pause is repeated at once."""
    monkeypatch.setattr("pytest_fairness.engine.queue.FIRST_PAUSE", 0.01)
