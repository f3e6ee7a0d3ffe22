"""Between a test and its trials: what it asks is noted, a shard asks its share alone, a replay asks nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_fairness.engine.queue import Deal
from pytest_fairness.model import Status, Trial
from pytest_fairness.pytest_layer import collection
from pytest_fairness.runs.designs import Design, PlannedTrial, design_of
from pytest_fairness.runs.replay import Replayer

if TYPE_CHECKING:
    from pytest_fairness.endpoints.protocol import Endpoint
    from pytest_fairness.engine.engine import Engine
    from pytest_fairness.pytest_layer.plans import Entry, Planned
    from pytest_fairness.pytest_layer.session import FairnessSession


def pull(
    session: FairnessSession,
    endpoint: Endpoint,
    engine: Engine | Replayer,
    planned: Planned,
    plan: Sequence[PlannedTrial],
) -> list[Trial]:
    """The trials of *plan*, which is what *planned* comes to for *endpoint*, in its order.

    Where this session asks a shard, the trials of the others come back as NOT_RUN. Raises what the engine raises,
    UsageError where a resumed run asked otherwise before, and EndpointError where no trial has a usable answer.
    """
    from pytest_fairness.pytest_layer.past_runs import note_design
    from pytest_fairness.trials_frame import refuse_if_nothing_answered

    design = _design(session, endpoint, planned, plan)
    if design is not None:
        note_design(session.store, design, resumed=session.settings.resume is not None)
    mine = plan if session.deal is None else [one for one in plan if session.deal.mine(one)]
    trials = engine.run(mine, design) if isinstance(engine, Replayer) else engine.run(mine)
    refuse_if_nothing_answered(trials, endpoint.name)
    if len(mine) == len(plan):
        return trials
    asked = iter(trials)
    own = {id(one) for one in mine}
    return [next(asked) if id(one) in own else _elsewhere(engine, one) for one in plan]


def _elsewhere(engine: Engine | Replayer, planned: PlannedTrial) -> Trial:
    return Trial(
        key=engine.key_of(planned),
        repetition=planned.repetition,
        status=Status.NOT_RUN,
        error="asked by another shard",
    )


def skip_on_a_shard(session: FairnessSession) -> None:
    """Skip the running test where this session asks a shard: its trials are asked, and judged with all the others."""
    if session.deal is not None:
        pytest.skip(f"shard {session.settings.shard}: asked, to be merged (pytest-fairness merge) and judged then")


def deal_of(session: FairnessSession, items: Sequence[pytest.Item]) -> Deal:
    """All trials that *items* want, dealt out to the shards."""
    part, whole = map(int, session.settings.shard.split("/"))
    return Deal(itertools.chain.from_iterable(_planned(session, items)), part, whole)


def _planned(session: FairnessSession, items: Sequence[pytest.Item]) -> Iterator[list[PlannedTrial]]:
    wanted = dict.fromkeys(map(collection.selection_of, items))
    for key, tier, temperature in (one for one in wanted if one[0] in session.grids):
        planned = session.grids[key]
        yield planned_trials(planned, planned.entries(tier, session.usable(planned.scorer)), temperature)


def planned_trials(planned: Planned, entries: Sequence[Entry], temperature: float | None) -> list[PlannedTrial]:
    """Every trial of *entries*, repetition by repetition."""
    parameters = {**planned.parameters, **({} if temperature is None else {"temperature": temperature})}
    return [
        PlannedTrial(cell=entry.cell, repetition=entry.first + number, parameters=parameters, script=entry.script)
        for entry in entries
        for number in range(planned.repetitions)
    ]


def _design(
    session: FairnessSession, endpoint: Endpoint, planned: Planned, plan: Sequence[PlannedTrial]
) -> Design | None:
    """What the log keeps of *plan*; None where it belongs to no collected test (a second look, asked as it comes)."""
    test = next((key for key, known in session.grids.items() if known is planned), None)
    if test is None or not plan:
        return None
    return design_of(
        plan,
        test="::".join(test),
        tier=plan[0].cell.tier,
        endpoint=endpoint.name,
        identity=endpoint.identity(),
        parameters=plan[0].sent_parameters(endpoint),
        templates={template.id: template.text for template in planned.templates},
        seed=session.settings.seed,
        session=session.name,
        whole=len(plan) == planned.calls,
    )
