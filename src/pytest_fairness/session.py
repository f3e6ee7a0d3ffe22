"""One process's hold on the run: its settings, its grids, its engines and store, and the test that is running."""

from __future__ import annotations

import contextlib
import dataclasses
import uuid
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness import collecting, ledger
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Cell, Finding, Reason, Trial, Verdict
from pytest_fairness.settings import Settings, resolve

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.current import TestContext
    from pytest_fairness.endpoints.protocol import Endpoint
    from pytest_fairness.frame import Asked
    from pytest_fairness.justifications import Justification
    from pytest_fairness.running.engine import Engine
    from pytest_fairness.running.store import RunStore
    from pytest_fairness.scorers import Scorer

_FINDINGS = pytest.StashKey[list[Finding]]()
_SESSION = pytest.StashKey["FairnessSession"]()


def session_of(config: pytest.Config) -> FairnessSession:
    """The fairness session of this pytest session, made when first asked for."""
    if _SESSION not in config.stash:
        config.stash[_SESSION] = FairnessSession(config)
    return config.stash[_SESSION]


class FairnessSession:
    """Lives as long as the pytest session in one process: plain, xdist's controller, or one of its workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings: Settings = resolve(config)
        workerinput: dict[str, Any] = getattr(config, "workerinput", {})
        #: Controller and workers share the token, and through it the run's folder.
        self.token: str = workerinput.get("fairness_token", uuid.uuid4().hex)
        self.worker: str | None = workerinput.get("workerid")
        self.grids: dict[tuple[str, str], collecting.PlannedGrid] = {}
        self.selected: dict[tuple[tuple[str, str], int], tuple[int, ...]] = {}
        self.ledger = ledger.Ledger()
        self._engines: dict[str, Engine] = {}
        self._asked: dict[tuple[Any, ...], dict[int, Asked]] = {}

    # ------------------------------------------------------------ collecting

    def expand(self, metafunc: pytest.Metafunc) -> None:
        grid = collecting.expand(metafunc, self.settings.tier)
        if grid is not None:
            self.grids[collecting.key_of(metafunc.definition, metafunc.function.__name__)] = grid

    def plan(self, items: Sequence[pytest.Item]) -> None:
        """Note which fairness tests this session is going to run."""
        planned = [item.nodeid for item in items if collecting.is_fairness_item(item)]
        self.selected = collecting.selected_cells(items)
        if planned and not self.config.option.collectonly:
            self.ledger.collected.update(planned)
            self.store.write_planned(planned)

    # ------------------------------------------------------------ asking

    @cached_property
    def store(self) -> RunStore:
        from pytest_fairness.running.store import open_run

        return open_run(self.settings.run_dir, self.token, writer=self.worker)

    @cached_property
    def scorers(self) -> dict[str, Scorer]:
        """Every scorer that a test can name, the built-ins and those of the project."""
        found = self.config.hook.pytest_fairness_scorers()
        # pluggy calls the latest registered first; the first entry of a name must win.
        return {scorer.name: scorer for scorers in reversed(found) for scorer in scorers}

    def configured_endpoint(self) -> Endpoint:
        from pytest_fairness.endpoints import named_endpoint

        types = {k: v for found in self.config.hook.pytest_fairness_endpoint_types() for k, v in found.items()}
        return named_endpoint(
            self.settings.endpoint, self.settings.endpoints_file, types, self.settings.concurrency
        )
