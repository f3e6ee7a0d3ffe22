"""What the ``trials`` and ``cell`` fixtures do: pull the replies of a grid from the run, asking for those missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness import collecting, telling
from pytest_fairness.model import Cell, Trial

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.endpoints.protocol import Endpoint
    from pytest_fairness.frame import Asked
    from pytest_fairness.running.engine import Engine
    from pytest_fairness.session import FairnessSession


class Asking:
    """The engines of one process, one for each system under test, and the replies already handed out."""

    def __init__(self, session: FairnessSession) -> None:
        self._session = session
        self._engines: dict[str, tuple[Endpoint, Engine]] = {}
        self._prefetched: dict[tuple[Any, ...], dict[int, Asked]] = {}

    def trials_of(self, item: pytest.Item, system: Any, tier: int) -> pd.DataFrame:
        """The whole grid of *item* as a table, one row a trial."""
        from pytest_fairness.frame import EndpointFacts, trials_frame

        key = collecting.key_of(item, getattr(item, "originalname", item.name))
        grid = self._session.grids[key]
        cells = grid.cells(tier)
        endpoint, trials = self._ask(system, tier, grid, cells)
        pairs = [(cell, trial) for cell in cells for trial in trials[cell.id]]
        facts = EndpointFacts(name=endpoint.name, simulated=endpoint.simulated)
        return trials_frame(pairs, facts, grid.design(endpoint.name, endpoint.identity(), cells))

    def cell_of(self, item: pytest.Item, system: Any, tier: int, index: int) -> Asked:
        """One cell of *item*'s grid. The first one asks for all that are selected: items run one after another."""
        from pytest_fairness.frame import Asked

        key = collecting.key_of(item, getattr(item, "originalname", item.name))
        grid = self._session.grids[key]
        chosen = self._session.selected[key, tier]
        memory = self._prefetched.setdefault((key, tier, id(system)), {})
        if index not in memory:
            cells = grid.cells(tier, chosen)
            _, trials = self._ask(system, tier, grid, cells)
            memory.update(
                {i: Asked(cell, tuple(trials[cell.id])) for i, cell in zip(chosen, cells, strict=True)}
            )
        return memory[index]

    def _ask(
        self, system: Any, tier: int, grid: collecting.PlannedGrid, cells: Sequence[Cell]
    ) -> tuple[Endpoint, dict[str, list[Trial]]]:
        from pytest_fairness.frame import refuse_if_nothing_answered
        from pytest_fairness.running.engine import PlannedTrial

        endpoint, engine = self._engine(system)
        if tier == 1 and not endpoint.supports_system_prompt:
            pytest.skip(f"endpoint {endpoint.name!r} takes no system prompt, so there is no tier 1 to test")
        planned = [
            PlannedTrial(cell=cell, repetition=repetition, parameters=grid.grid.parameters)
            for cell in cells
            for repetition in range(grid.repetitions)
        ]
        trials = engine.run(planned)
        refuse_if_nothing_answered(trials, endpoint.name)
        by_cell: dict[str, list[Trial]] = {cell.id: [] for cell in cells}
        for plan, trial in zip(planned, trials, strict=True):
            by_cell[plan.cell.id].append(trial)
        return endpoint, by_cell

    def _engine(self, system: Any) -> tuple[Endpoint, Engine]:
        from pytest_fairness.endpoints import as_endpoint
        from pytest_fairness.running.engine import Engine
        from pytest_fairness.running.keys import identity_hash
        from pytest_fairness.scorers import is_refusal

        endpoint = as_endpoint(system)
        key = identity_hash(endpoint.identity())
        if key not in self._engines:
            settings = self._session.settings
            telling.note_endpoint(self._session.store, endpoint)
            engine = Engine(
                endpoint,
                self._session.store,
                concurrency=settings.concurrency,
                seed=settings.seed,
                max_cost=settings.max_cost,
                is_refusal=is_refusal,
                progress=telling.progress(self._session.config, settings.progress),
            )
            self._engines[key] = endpoint, engine
        return self._engines[key]

    def close(self) -> None:
        for _, engine in self._engines.values():
            engine.close()
        self._engines.clear()
