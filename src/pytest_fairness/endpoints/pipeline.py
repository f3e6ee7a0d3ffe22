"""A pipeline as one system: steps that hand a text on, each of them asked as the endpoint that it
names.

The pipeline itself is never asked. It says which steps there are, and each becomes a request of the
trial: logged, paid for, repeated by its own evidence, and not asked again when a run is resumed
(decision 81).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import starmap
from typing import Annotated, Any, Self

from msgspec import Meta, Struct
from msgspec.structs import replace

from pytest_fairness.documents import Misplaced
from pytest_fairness.endpoints import protocol
from pytest_fairness.endpoints.config import EndpointConfig
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, PROMPT, TEXT, Ask

_AS_IT_IS = f"{{{TEXT}}}"
_SLOTS_THERE_ARE = (
    f"there are {{{TEXT}}}, for the text of the step before, and {{{PROMPT}}}, for what the test "
    "asks"
)
_SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class PipelineStep(Struct, frozen=True, forbid_unknown_fields=True):
    """One request: ``prompt`` with what the step before replied for ``{text}`` and what the test
    asked for ``{prompt}``.

    ``endpoint`` is an Endpoint, or what one is made of: the name or the content of an entry, a
    function.
    """

    endpoint: Any
    prompt: str = _AS_IT_IS
    system: str | None = None

    def __post_init__(self) -> None:
        slots = _SLOT.findall(self.prompt)
        if not slots:
            raise Misplaced(f"the prompt has no slot: {_SLOTS_THERE_ARE}", "prompt")
        for slot in slots:
            if slot not in (TEXT, PROMPT):
                why = f"nothing fills the slot {{{slot}}}: {_SLOTS_THERE_ARE}"
                raise Misplaced(why, "prompt")

    def filled(self, *, text: str, prompt: str) -> str:
        """The prompt with both in their slots; what fills them is not read for slots."""
        values = {TEXT: text, PROMPT: prompt}
        return _SLOT.sub(lambda match: values[match[1]], self.prompt)

    @property
    def ready(self) -> protocol.Endpoint:
        """The endpoint. Raises UsageError where it is a name still."""
        if not isinstance(self.endpoint, protocol.Endpoint):
            raise UsageError(
                f"the step {self.endpoint!r} of a pipeline is asked by a fairness test, which "
                "knows it"
            )
        return self.endpoint

    def check_system(self, where: str) -> None:
        """Raise UsageError, which begins with *where*, for an endpoint that cannot be a step."""
        system = self.endpoint
        if isinstance(system, PipelineEndpoint):
            raise UsageError(f"{where} is a pipeline itself: write its steps here")
        if self.system is None or not isinstance(system, protocol.Endpoint):
            return
        if not system.supports_system_prompt:
            raise UsageError(
                f"{where} has a system prompt, which endpoint {system.name!r} does not take"
            )


class PipelineConfig(EndpointConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of type ``pipeline``; ``endpoint`` of a step is the name of another entry."""

    steps: Annotated[tuple[PipelineStep, ...], Meta(min_length=1, max_length=32)]


class PipelineEndpoint:
    """*steps* in their order; the first is given the prompt, and the reply to the last is the
    trial's.

    Raises UsageError for no steps, for a step that is a pipeline, and for a prompt without a place
    for the text.
    """

    type = "pipeline"
    supports_system_prompt = False
    supports_conversation = False

    def __init__(self, steps: Sequence[PipelineStep], *, name: str = "pipeline") -> None:
        self.steps = tuple(steps)
        self.name = name
        self.default_parameters: Mapping[str, JSON] = {}
        if not self.steps:
            raise UsageError(f"endpoint {name!r}: a pipeline needs at least one step")
        for number, step in enumerate(self.steps, start=1):
            step.check_system(f"endpoint {name!r}, step {number}")

    @property
    def _systems(self) -> list[protocol.Endpoint]:
        """The endpoints of the steps, but for those that are a name or a function still."""
        return [
            step.endpoint for step in self.steps if isinstance(step.endpoint, protocol.Endpoint)
        ]

    @property
    def _is_resolved(self) -> bool:
        """Return whether every step has its endpoint."""
        return len(self._systems) == len(self.steps)

    @property
    def simulated(self) -> bool:
        """Return whether all of its steps are; a trial in which one is says so by itself."""
        return self._is_resolved and all(system.simulated for system in self._systems)

    @property
    def price(self) -> protocol.Price | None:
        """About what a trial costs: the prices of its steps together; None if one is unknown."""
        parts: Counter[str] = Counter()
        for system in self._systems:
            if system.price is None:
                return None
            parts.update(asdict(system.price))
        if not self._is_resolved:
            return None
        return protocol.Price(**parts)

    def resolved(self, resolve: Callable[[Any], protocol.Endpoint]) -> Self:
        """The same with every name and function as the endpoint that *resolve* makes of it."""
        if self._is_resolved:
            return self
        steps = [replace(step, endpoint=resolve(step.endpoint)) for step in self.steps]
        return type(self)(steps, name=self.name)

    def identity(self) -> dict[str, JSON]:
        """Return who the steps are, with their parameters, and what each is sent."""
        steps: list[JSON] = []
        for step in self.steps:
            identity_ = {
                "endpoint": step.ready.identity(),
                "parameters": dict(step.ready.default_parameters),
            }
            steps.append({**identity_, "prompt": step.prompt, "system": step.system})
        return {"type": self.type, "steps": steps}

    async def ask(self, request: protocol.Request) -> protocol.Reply:  # noqa: ARG002 - as the protocol has it
        """Raises AttemptError: whoever asks, asks the steps."""
        raise protocol.AttemptError(
            f"endpoint {self.name!r} is a pipeline: its steps are asked",
            evidence=protocol.Evidence.NOT_SENT,
        )

    async def aclose(self) -> None:
        """Close what the steps hold open."""
        for step in self.steps:
            await step.ready.aclose()


def pipeline_endpoint(steps: Sequence[Any], *, name: str = "pipeline") -> PipelineEndpoint:
    """*steps* as one system under test.

    A step is a function from text to text, sync or async; an endpoint or its name in
    ``endpoints.yaml``, which is sent the text as it is; or ``Ask(prompt=…, system=…, endpoint=…)``,
    whose prompt holds ``{text}`` and perhaps ``{prompt}``. Raises UsageError for anything else.
    """
    if isinstance(steps, str) or not isinstance(steps, Sequence):
        raise UsageError("pipeline_endpoint() takes a list of steps")
    made = list(starmap(_step, enumerate(steps, start=1)))
    return PipelineEndpoint(made, name=name)


def _step(number: int, given: Any) -> PipelineStep:
    """Return the step that *given* stands for. Raises UsageError."""
    if isinstance(given, Ask):
        if given.endpoint is None:
            raise UsageError(f"step {number} of the pipeline asks nobody: say Ask(endpoint=...)")
        prompt = _AS_IT_IS
        if given.prompt is not None:
            prompt = given.prompt
        return PipelineStep(given.endpoint, prompt, given.system)
    if isinstance(given, (str, protocol.Endpoint)) or callable(given):
        return PipelineStep(given)
    why = "give a function, an endpoint, its name, or Ask(...)"
    raise UsageError(f"step {number} of the pipeline is {given!r}: {why}")
