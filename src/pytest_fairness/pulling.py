"""Between a test and its trials: what it asks is noted, a shard asks its share alone, a replay asks nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_fairness.running.attempts import sent_parameters
from pytest_fairness.running.designs import Design, design_of
from pytest_fairness.running.replaying import Replayer

if TYPE_CHECKING:
    from pytest_fairness.endpoints.protocol import Endpoint
    from pytest_fairness.model import Trial
    from pytest_fairness.planned import Planned
    from pytest_fairness.running.conversation import PlannedTrial
    from pytest_fairness.running.engine import Engine
    from pytest_fairness.session import FairnessSession


def pull(
    session: FairnessSession,
    endpoint: Endpoint,
    engine: Engine | Replayer,
    planned: Planned,
    plan: Sequence[PlannedTrial],
) -> list[Trial]:
    """The trials of *plan*, which is what *planned* comes to for *endpoint*, in its order.

    Skips the running test where this session asks a shard: others ask the rest. Raises what the engine raises, and
    UsageError where a resumed run asked otherwise before.
    """
    from pytest_fairness.earlier import note_design

    design = _design(session, endpoint, planned, plan)
    if design is not None:
        note_design(session.store, design, resumed=session.settings.resume is not None)
    if isinstance(engine, Replayer):
        return engine.run(plan, design)
    return engine.run(plan)


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
        parameters=sent_parameters(endpoint, plan[0].parameters),
        templates={template.id: template.text for template in planned.templates},
        seed=session.settings.seed,
        session=session.name,
        whole=len(plan) == planned.calls,
    )
