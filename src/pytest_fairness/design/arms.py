"""Arms: ways of running the same cells, told apart by system prompt, by the steps before the choice, or by names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pytest_fairness.design.resources import layers
from pytest_fairness.design.slugs import is_slug
from pytest_fairness.documents import Plain, load_path
from pytest_fairness.errors import UsageError, did_you_mean, listed
from pytest_fairness.model import TEXT, Ask

__all__ = ["RULES", "TEXT", "Arm", "Ask", "Step", "arms_of", "ready_arms"]

RULES = "rules"


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
        return self.system is not None or any(isinstance(step, Ask) and step.system is not None for step in self.steps)


def arms_of(given: object, folder: Path | None = None, *, rules: Callable[[str], str] | None = None) -> tuple[Arm, ...]:
    """The arms of ``arms=``: names of ready-made ones, Arms, or ``{name: system prompt}``.

    *rules* is the rule-based scrubber. Raises UsageError for an unknown name and for two arms of one name.
    """
    if given is None:
        return ()
    if isinstance(given, Mapping):
        items: list[object] = [Arm(name=str(name), system=text) for name, text in given.items()]
    else:
        items = [given] if isinstance(given, (str, Arm)) else list(given) if isinstance(given, Sequence) else [given]
    known = ready_arms(folder, rules) if any(isinstance(item, str) for item in items) else {}
    arms = []
    for item in items:
        if isinstance(item, str) and item not in known:
            raise UsageError(f"arms: there is no ready-made arm {item!r} ({listed(known)}){did_you_mean(item, known)}")
        if not isinstance(item, (str, Arm)):
            raise UsageError(f"arms: {item!r} is neither the name of a ready-made arm nor an Arm")
        arms.append(known[item] if isinstance(item, str) else item)
    names = [arm.name for arm in arms]
    twice = next((name for name in names if names.count(name) > 1), None)
    if not arms or twice is not None:
        raise UsageError(f"arms: {twice!r} stands twice; keep one" if twice else "arms is empty; leave it out")
    return tuple(arms)


def ready_arms(folder: Path | None = None, rules: Callable[[str], str] | None = None) -> dict[str, Arm]:
    """The arms of ``personas/arms.yaml`` by name, extended or replaced by the user's *folder*. Raises UsageError."""
    document: dict[str, Plain] = {}
    arms: dict[str, Plain] = {}
    path = Path("arms.yaml")
    for path in layers("arms.yaml", folder):
        loaded = load_path(path)
        if not isinstance(loaded, dict) or not isinstance(loaded.get("arms", {}), dict):
            raise UsageError(f"{path}: expected prompts by name, and a mapping called 'arms'")
        arms |= _mapping(loaded.get("arms", {}), f"{path}: arms")
        document |= {name: body for name, body in loaded.items() if name != "arms"}
    return {name: _arm(name, _mapping(body, f"{path}: {name}"), document, path, rules) for name, body in arms.items()}


def _arm(
    name: str,
    body: Mapping[str, Plain],
    prompts: Mapping[str, Plain],
    path: Path,
    rules: Callable[[str], str] | None,
) -> Arm:
    where = f"{path}: arm {name!r}"
    unknown = sorted(body.keys() - {"system", "steps", "placebo"})
    if unknown:
        raise UsageError(f"{where}: unknown key {unknown[0]!r} (known: system, steps, placebo)")
    system = None if "system" not in body else _prompt(prompts, body["system"], "system", where)
    listed_steps = body.get("steps", [])
    if not isinstance(listed_steps, list):
        raise UsageError(f"{where}: steps is a list of prompts by name, and 'rules'")
    steps: list[Step] = []
    for number, step in enumerate(listed_steps, start=1):
        if step == RULES:
            if rules is not None:
                steps.append(rules)
            continue
        own = _mapping(prompts.get(str(step)), f"{where}: there is no prompt {step!r}").get("system")
        last = number == len(listed_steps)
        prompt = _prompt(prompts, step, "prompt", where)
        steps.append(Ask(prompt=prompt, system=own if isinstance(own, str) else None, fallback=last))
    return Arm(name=name, system=system, steps=tuple(steps), placebo=body.get("placebo") is True)


def _prompt(prompts: Mapping[str, Plain], name: Plain, field: str, where: str) -> str:
    text = _mapping(prompts.get(str(name)), f"{where}: there is no prompt {name!r}").get(field)
    if not isinstance(text, str):
        raise UsageError(f"{where}: the prompt {name!r} has no {field}")
    return text


def _mapping(value: Plain, where: str) -> Mapping[str, Plain]:
    if not isinstance(value, dict):
        raise UsageError(f"{where}: expected a mapping")
    return value
