"""What an entry of type ``pipeline`` says: its steps, each of which names another entry of the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_fairness.design.steps import check_prompt
from pytest_fairness.endpoints.http_template import Misplaced
from pytest_fairness.endpoints.parameters import unknown
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON

if TYPE_CHECKING:
    from pytest_fairness.endpoints.config import EndpointConfig

_KEYS = ("endpoint", "prompt", "system")
_MOST = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class StepConfig:
    """One step: the endpoint by its name, and what it is sent. ``of`` is that endpoint's entry, once all are read, and
    the endpoint itself, once it is made.
    """

    endpoint: str
    prompt: str = "{text}"
    system: str | None = None
    of: Any = None


def read_steps(given: JSON) -> tuple[StepConfig, ...]:
    """The ``steps`` of an entry. Raises :class:`~.http_template.Misplaced` with the place and the mend."""
    if not isinstance(given, list) or not 1 <= len(given) <= _MOST:
        raise Misplaced(("steps",), f"type pipeline needs steps: a list of 1 to {_MOST}, each with endpoint and prompt")
    return tuple(_step(step, number) for number, step in enumerate(given))


def _step(given: JSON, number: int) -> StepConfig:
    place = "steps", number
    if not isinstance(given, dict):
        raise Misplaced(place, "a step holds endpoint, prompt and perhaps system")
    for key, value in given.items():
        if key not in _KEYS:
            raise Misplaced((*place, key), unknown("key", key, _KEYS))
        if not isinstance(value, str) or not value.strip():
            hint = ', in quotes: "{text}"' if key == "prompt" else ""
            raise Misplaced((*place, key), f"{key} must be a text{hint}")
    if "endpoint" not in given:
        raise Misplaced(place, "a step needs endpoint: the name of another entry")
    step = StepConfig(**given)  # type: ignore[arg-type]  # all of them are texts
    try:
        check_prompt(step.prompt)
    except UsageError as error:
        raise Misplaced((*place, "prompt"), str(error)) from None
    return step


def linked(configs: Mapping[str, EndpointConfig]) -> dict[str, EndpointConfig]:
    """*configs* with the entries that steps name. Raises UsageError for a name that there is not, or a pipeline."""
    return {name: replace(config, steps=_links(config, configs)) for name, config in configs.items()}


def _links(config: EndpointConfig, configs: Mapping[str, EndpointConfig]) -> tuple[StepConfig, ...]:
    steps = []
    for number, step in enumerate(config.steps, start=1):
        where = f"{config.source}: endpoint {config.name!r}, step {number}"
        if step.endpoint not in configs:
            raise UsageError(f"{where}: {unknown('endpoint', step.endpoint, configs)}")
        named = configs[step.endpoint]
        if named.type == config.type:
            raise UsageError(f"{where} is a pipeline itself: write its steps here")
        steps.append(replace(step, of=named))
    return tuple(steps)
