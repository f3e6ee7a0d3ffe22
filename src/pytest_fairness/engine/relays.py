"""A pipeline that is the system under test: its steps as the requests of each trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_fairness.endpoints.pipeline import PipelineEndpoint, PipelineStep
from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Cell, Message, Status, Trial
from pytest_fairness.runs.designs import PlannedTrial


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """Each step is a fresh conversation with the endpoint that it names, and is given the reply to the one before.

    A step that declines (*refused*), or is answered with nothing that can be handed on, ends the trial.
    """

    steps: tuple[PipelineStep, ...]
    refused: Callable[[str], bool] = lambda _text: False

    @property
    def endpoints(self) -> tuple[Endpoint | None, ...]:
        return tuple(step.ready for step in self.steps)

    def identity(self) -> JSON:
        """The pipeline's own identity says all of it."""
        return {"relay": len(self.steps)}

    def next(self, cell: Cell, replies: Sequence[str], status: Status) -> tuple[Message, ...] | None:
        number = len(replies)
        if number == len(self.steps) or (number and (status is not Status.ANSWERED or self.refused(replies[-1]))):
            return None
        step = self.steps[number]
        prompt = step.filled(text=replies[-1] if replies else cell.prompt, prompt=cell.prompt)
        return (*([] if step.system is None else [Message("system", step.system)]), Message("user", prompt))

    def columns(self, cell: Cell, trial: Trial) -> Mapping[str, JSON]:  # noqa: ARG002 - as the protocol has it
        return {"requests": len(trial.replies)}


def staged(planned: PlannedTrial, endpoint: Endpoint, is_refusal: Callable[[str], bool] | None = None) -> PlannedTrial:
    """*planned* as it is asked: of a pipeline, step by step.

    Raises UsageError where a pipeline cannot be asked it: a conversation, a system prompt, strategies, parameters.
    """
    if not isinstance(endpoint, PipelineEndpoint):
        return planned
    cell = planned.cell
    cannot = {
        "several turns": len(cell.turns) > 1 and planned.script is None,
        "strategies, or an arm with steps": planned.script is not None,
        "a system prompt": cell.system is not None,
        f"parameters ({', '.join(planned.parameters)})": bool(planned.parameters),
    }
    for what, is_so in cannot.items():
        if is_so:
            raise UsageError(
                f"endpoint {endpoint.name!r} is a pipeline, which is given one text: the test has {what}; say it in "
                "the steps of the pipeline, or in their entries"
            )
    return replace(planned, script=Relay(steps=endpoint.steps, refused=is_refusal or (lambda _text: False)))
