"""The way by which an endpoint is asked, as other processes find it out."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.pytest_layer.trials import TrialSource
from pytest_fairness.runs.reader import RunRecords


class FillingRun(RunRecords):
    """A run in which another process writes its first trial while this one looks."""

    def __init__(self) -> None:
        self._size = -1

    def __len__(self) -> int:
        self._size += 1
        return self._size

    def of_type(self, *_kinds: str) -> Iterator[dict[str, Any]]:
        return iter(())


def test_a_run_that_fills_meanwhile_has_found_nothing_out() -> None:
    """It was empty when it was looked at, and not when what was found was: the run was returned."""
    source: Any = SimpleNamespace(
        _context=SimpleNamespace(recording=None, merged=None, store=FillingRun())
    )
    grid = SimpleNamespace(answer="a form", asks_for_form=True)
    planned: Any = SimpleNamespace(grid=grid, ladder=None)
    selection: Any = SimpleNamespace(tier=1)
    known = TrialSource._known_elicitation(source, planned, simulated_endpoint(), selection)
    assert known is None
