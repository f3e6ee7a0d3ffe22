"""What the ``trials`` and ``cell`` fixtures do: pull the replies of a grid from the run, asking for those missing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.context import reading_until
from pytest_fairness.model import JSON, Status, Trial
from pytest_fairness.pytest_layer import collection, reporting, second_sample

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.endpoints.protocol import Endpoint
    from pytest_fairness.engine.engine import Engine, EventLoop, ParentWatch
    from pytest_fairness.pytest_layer.plans import Entry, Planned
    from pytest_fairness.pytest_layer.session import FairnessSession
    from pytest_fairness.runs.replay import Replayer
    from pytest_fairness.trials_frame import Asked


_ENDED = "the session that this worker belongs to has ended; nothing more is sent"


class Asking:
    """The engines of one process, one for each system under test, and the replies already handed out."""

    def __init__(self, session: FairnessSession) -> None:
        self._session = session
        self._engines: dict[str, tuple[Endpoint, Engine | Replayer]] = {}
        self._parent: ParentWatch | None = None
        self._loop: EventLoop | None = None
        self._prefetched: dict[tuple[Any, ...], dict[int, Asked]] = {}

    def trials_of(self, item: pytest.Item, system: Any, tier: int, temperature: float | None = None) -> pd.DataFrame:
        """The whole design of *item* as a table, one row a trial."""
        planned = self._session.grids[collection.grid_key(item)]

        def ask(planned: Planned) -> pd.DataFrame:
            entries = planned.entries(tier, self._session.usable(planned.scorer))
            table = self._table(planned, system, tier, temperature, entries)
            with reading_until(self._session.read_until):
                return planned.table(table)

        table = ask(planned)
        if self._session.settings.confirm:
            second_sample.offer(item, table, planned, ask)
        return table

    def _table(
        self, planned: Planned, system: Any, tier: int, temperature: float | None, entries: Sequence[Entry]
    ) -> pd.DataFrame:
        import pandas as pd

        from pytest_fairness.pytest_layer.pull import skip_on_a_shard
        from pytest_fairness.trials_frame import EndpointFacts, trials_frame

        frames = []
        for own, some in _by_system(entries):
            endpoint, trials = self._ask(system if own is None else own, tier, planned, some, temperature)
            rows = [(entry, trial) for entry in some for trial in trials[entry.cell.id]]
            replayed = self._session.recording is not None
            facts = EndpointFacts(name=endpoint.name, simulated=endpoint.simulated, replayed=replayed)
            design = planned.design(endpoint.name, endpoint.identity(), [entry.cell for entry in some])
            frame = trials_frame([(entry.cell, trial) for entry, trial in rows], facts, design)
            _add_columns(frame, rows, planned.script_columns)
            if planned.temperatures:
                frame["temperature"] = "default" if temperature is None else f"{temperature:g}"
            frames.append(frame)
        skip_on_a_shard(self._session)
        if len(frames) == 1:
            return frames[0]
        table = pd.concat([frame.astype(object) for frame in frames], ignore_index=True).infer_objects()
        table.attrs = dict(frames[0].attrs)
        return table

    def cell_of(self, item: pytest.Item, system: Any, tier: int, temperature: float | None, index: int) -> Asked:
        """One cell of *item*'s design. The first one asks for all that are selected: items run one after another."""
        from pytest_fairness.pytest_layer.pull import skip_on_a_shard
        from pytest_fairness.trials_frame import Asked

        key = collection.grid_key(item)
        planned = self._session.grids[key]
        chosen = self._session.selected[key, tier, temperature]
        memory = self._prefetched.setdefault((key, tier, temperature, id(system)), {})
        if index not in memory:
            entries = planned.entries(tier, self._session.usable(planned.scorer), chosen)
            places = {entry.cell.id: at for at, entry in zip(chosen, entries, strict=True)}
            for own, some in _by_system(entries):
                _, trials = self._ask(system if own is None else own, tier, planned, some, temperature)
                memory.update({places[e.cell.id]: Asked(e.cell, tuple(trials[e.cell.id])) for e in some})
        skip_on_a_shard(self._session)
        return memory[index]

    def _ask(
        self, system: Any, tier: int, planned: Planned, entries: Sequence[Entry], temperature: float | None
    ) -> tuple[Endpoint, dict[str, list[Trial]]]:
        from pytest_fairness.pytest_layer.capabilities import (
            lacks_system_prompt,
            named_by_steps,
            refuse_what_cannot_be_sent,
        )
        from pytest_fairness.pytest_layer.pull import planned_trials, pull

        endpoint, engine = self._engine(system)
        deaf = lacks_system_prompt(endpoint, entries) if tier == 1 else None
        if deaf is not None:
            pytest.skip(f"endpoint {deaf.name!r} takes no system prompt, so there is no tier 1 to test")
        refuse_what_cannot_be_sent(endpoint, entries)
        for other in named_by_steps(entries):
            reporting.note_endpoint(self._session.store, other)
        plan = planned_trials(planned, entries, temperature)
        trials = pull(self._session, endpoint, engine, planned, plan)
        by_cell: dict[str, list[Trial]] = {entry.cell.id: [] for entry in entries}
        for one, trial in zip(plan, trials, strict=True):
            by_cell[one.cell.id].append(trial)
        return endpoint, by_cell

    def _engine(self, system: Any) -> tuple[Endpoint, Engine | Replayer]:
        from pytest_fairness.engine.engine import Engine
        from pytest_fairness.runs.keys import identity_hash
        from pytest_fairness.runs.replay import Replayer
        from pytest_fairness.runs.store import Retry
        from pytest_fairness.scorers import is_refusal

        endpoint = self._session.systems.resolve(system)
        key = identity_hash(endpoint.identity())
        if key not in self._engines:
            settings = self._session.settings
            store = self._session.store
            reporting.note_endpoint(store, endpoint)
            if self._session.recording is not None:
                self._engines[key] = endpoint, Replayer(endpoint, self._session.recording, store)
                return self._engines[key]
            engine = Engine(
                endpoint,
                store,
                concurrency=settings.concurrency,
                seed=settings.seed,
                max_cost=settings.max_cost,
                attempt_timeout=settings.attempt_timeout,
                deadline=self._session.time_left,
                retry=Retry(unknown=settings.retry_unknown, errors=settings.retry_errors),
                is_refusal=is_refusal,
                progress=reporting.progress(self._session.config, settings.progress, store),
                loop=self._shared_loop(),
            )
            self._watch_controller(engine)
            self._engines[key] = endpoint, engine
        return self._engines[key]

    def _shared_loop(self) -> EventLoop:
        """One loop for all engines: an endpoint that steps of several systems ask holds its connections there."""
        from pytest_fairness.engine.engine import EventLoop

        self._loop = self._loop or EventLoop()
        return self._loop

    def _watch_controller(self, engine: Engine) -> None:
        """In a worker: stop asking when the session of the controller that started it has ended, or the controller
        itself, as nobody is left to judge.
        """
        line = self._session.reach()
        if line is not None:
            line.when_over(engine.halt)
            return
        controller = getattr(self._session.config, "workerinput", {}).get("fairness_controller")
        if controller is None or controller != os.getppid():
            return
        if self._session.has_ended():  # before this engine was there to be halted
            engine.halt(_ENDED)
        if self._parent is None:
            from pytest_fairness.engine.engine import ParentWatch

            self._parent = ParentWatch(controller, self._halt, ended=self._session.has_ended)

    def _halt(self) -> None:
        from pytest_fairness.engine.engine import Engine

        for _, engine in list(self._engines.values()):
            if isinstance(engine, Engine):
                engine.halt(_ENDED)

    def close(self) -> None:
        if self._parent is not None:
            self._parent.stop()
        try:
            for _, engine in self._engines.values():
                engine.close()
        finally:
            self._engines.clear()
            if self._loop is not None:
                self._loop.close()
                self._loop = None


def _by_system(entries: Sequence[Entry]) -> list[tuple[Any, list[Entry]]]:
    """The entries of each system of an arm's own, and those of the test's (None)."""
    found: dict[int, tuple[Any, list[Entry]]] = {}
    for entry in entries:
        found.setdefault(id(entry.system), (entry.system, []))[1].append(entry)
    return list(found.values())


def _add_columns(frame: pd.DataFrame, rows: Sequence[tuple[Entry, Trial]], always: Sequence[str]) -> None:
    """What the scripts say of their trials, in columns of the table; missing where a trial has no script.

    The columns in *always* are there whether a script fills them or not: which those are depends on the test, not on
    the tier in which it runs.
    """
    told = [_told(entry, trial) for entry, trial in rows]
    for column in dict.fromkeys([*always, *(key for row in told for key in row)]):
        before = frame[column].tolist() if column in frame else [None] * len(frame)
        frame[column] = [row.get(column, old) for row, old in zip(told, before, strict=True)]


def _told(entry: Entry, trial: Trial) -> dict[str, JSON]:
    from pytest_fairness.engine.scripts import Escalation, Pipeline

    row: dict[str, JSON] = {"requests": len(trial.replies) or int(trial.status is not Status.NOT_RUN)}
    if entry.script is not None:
        row |= entry.script.columns(entry.cell, trial)
    # A request that failed was sent, and has no reply among those of the trial.
    sent = len(trial.replies) + (trial.status in (Status.ERROR, Status.UNKNOWN, Status.MALFORMED))
    if isinstance(entry.script, Escalation):
        turns = [turn for rung in entry.script.rungs for turn in rung.turns]
        row["prompt"] = turns[max(1, min(sent, len(turns))) - 1]
    elif isinstance(entry.script, Pipeline) and sent < len(entry.cell.turns):
        # It ended before its last step, whose prompt would hold the place of a text that was never made.
        messages = entry.script.next(entry.cell, trial.replies[: max(0, sent - 1)], Status.ANSWERED)
        row["prompt"] = messages[-1].content if messages else entry.cell.turns[0]
    return row
