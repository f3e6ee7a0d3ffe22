"""Arms: ways of running the same cells, which differ by system prompt, by the steps before the choice, or by names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pytest_fairness.design.slugs import is_slug
from pytest_fairness.design.sources import entries
from pytest_fairness.documents import Text
from pytest_fairness.errors import UsageError, did_you_mean, listed, refuse_twice
from pytest_fairness.model import TEXT, Ask

_RULES = "rules"
Step: TypeAlias = "Ask | Callable[[str], str]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way of running the cells.

    ``system``: the system prompt, with the test's slots. ``steps``: what the candidates' text passes through, in
    order; a function from text to text, or an :class:`Ask`; the last one is the choice. ``placebo``: all
    candidates get names (and words) of one group, in disjoint sets, so that there is nothing to prefer.
    ``endpoint``: a system under test of the arm's own, any callable or a name of ``endpoints.yaml``; the test's
    otherwise.

    Raises UsageError for a name that is no slug, and for steps that do not end in an :class:`Ask` with ``{text}``.
    """

    name: str
    system: str | None = None
    steps: tuple[Step, ...] = ()
    placebo: bool = False
    endpoint: Any = None

    def __post_init__(self) -> None:
        if not is_slug(self.name):
            raise UsageError(f"arm {self.name!r}: use 1 to 80 of the characters a-z 0-9 _ . - (not . or - first)")
        object.__setattr__(self, "steps", tuple(self.steps))
        if self.steps and not isinstance(self.steps[-1], Ask):
            raise UsageError(f"arm {self.name!r}: the last step makes the choice, so it must be Ask(...)")
        for step in self.steps:
            if isinstance(step, Ask):
                if step.prompt is not None and step.prompt.count(f"{{{TEXT}}}") != 1:
                    raise UsageError(
                        f"arm {self.name!r}: a step's prompt holds {{{TEXT}}} exactly once, where its text belongs"
                    )
            elif not callable(step):
                raise UsageError(f"arm {self.name!r}: a step is Ask(...) or a function from text to text, not {step!r}")

    @property
    def needs_system_prompt(self) -> bool:
        return self.system is not None or any(step.system is not None for step in self.asks.values())

    @property
    def asks(self) -> dict[int, Ask]:
        """The steps that a model takes, by their place."""
        return {at: step for at, step in enumerate(self.steps) if isinstance(step, Ask)}


def arms_of(given: object, folder: Path | None = None, *, rules: Callable[[str], str] | None = None) -> tuple[Arm, ...]:
    """The arms of ``arms=``: names of ready-made ones, Arms, or ``{name: system prompt}``.

    *rules* is the rule-based scrubber. Raises UsageError for an unknown name and for two arms of one name.
    """
    if given is None:
        return ()
    if isinstance(given, Mapping):
        given = [Arm(name=str(name), system=text) for name, text in given.items()]
    items = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    known = ready_arms(folder, rules) if any(isinstance(item, str) for item in items) else {}
    arms = []
    for item in items:
        if isinstance(item, str) and item not in known:
            raise UsageError(f"arms: there is no ready-made arm {item!r} ({listed(known)}){did_you_mean(item, known)}")
        if not isinstance(item, (str, Arm)):
            raise UsageError(f"arms: {item!r} is neither the name of a ready-made arm nor an Arm")
        arms.append(known[item] if isinstance(item, str) else item)
    if not arms:
        raise UsageError("arms is empty; leave it out")
    refuse_twice("arms:", (arm.name for arm in arms))
    return tuple(arms)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompt:
    """An entry of ``personas/prompts.yaml``: where it is from, a system prompt, and the prompt of a step."""

    name: str
    source: Text
    system: Text | None = None
    prompt: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadyArm:
    """An entry of ``personas/arms.yaml``: an :class:`Arm` by the names of its prompts."""

    name: str
    system: Text | None = None
    steps: tuple[Text, ...] = ()
    placebo: bool = False


def ready_arms(folder: Path | None = None, rules: Callable[[str], str] | None = None) -> dict[str, Arm]:
    """The arms of ``personas/arms.yaml`` by name, extended or replaced by the user's *folder*. Raises UsageError."""
    prompts = entries("prompts.yaml", folder, _Prompt)

    def prompt(arm: str, name: str, field: str) -> str:
        if name not in prompts:
            raise UsageError(f"arm {arm!r}: there is no prompt {name!r} (there are: {listed(prompts)})")
        text: str | None = getattr(prompts[name], field)
        if text is None:
            raise UsageError(f"arm {arm!r}: the prompt {name!r} of prompts.yaml has no {field}")
        return text

    arms = {}
    for name, ready in entries("arms.yaml", folder, _ReadyArm).items():
        steps: list[Step] = []
        for number, step in enumerate(ready.steps, start=1):
            if step == _RULES:
                steps += [] if rules is None else [rules]
            else:
                text = prompt(name, step, "prompt")
                steps.append(Ask(prompt=text, system=prompts[step].system, fallback=number == len(ready.steps)))
        system = None if ready.system is None else prompt(name, ready.system, "system")
        arms[name] = Arm(name=name, system=system, steps=tuple(steps), placebo=ready.placebo)
    return arms
