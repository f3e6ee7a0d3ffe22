"""From a configuration to the arguments of ``fairness_pairs``, and the contrasts between its arms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_fairness.design.arms import Arm
from pytest_fairness.design.templates import Template, read_template
from pytest_fairness.suites.selection.configuration import SALARY, SELECTION, Axis, Configuration

_PROMPTS = Path(__file__).with_name("prompts")
_SLOT = re.compile(r"\{(\w+)\}")
GROUP = "group"
PLACEBO = "placebo"
SCRUBBED = ("scrubbed", "scrubbed_by_rule")


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two arms, fixed beforehand: ``isolates`` is what they differ in."""

    treated: str
    control: str
    isolates: str

    @property
    def id(self) -> str:
        return f"{self.treated}-vs-{self.control}"


def contrasts(arms: Sequence[str]) -> tuple[Contrast, ...]:
    """The contrasts that *arms* allow: the prompt alone, scrubbing beyond the prompt, both together.

    An arm of one's own is set against ``raw_naive``, or against the first arm where there is no such.
    """
    made = [Contrast("raw_matched", "raw_naive", "the evaluator's prompt alone")]
    for scrubbed in SCRUBBED:
        made.append(Contrast(scrubbed, "raw_matched", "scrubbing beyond the prompt"))
        made.append(Contrast(scrubbed, "raw_naive", "the prompt and scrubbing together"))
    known = {"raw_naive", "raw_matched", PLACEBO, *SCRUBBED}
    control = "raw_naive" if "raw_naive" in arms else arms[0]
    own = [Contrast(arm, control, f"{arm} against {control}") for arm in arms if arm not in known and arm != control]
    return tuple(one for one in (*made, *own) if one.treated in arms and one.control in arms)


def margins_of(classes: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """Classes that are crossed with another: those by which the groups can be pooled, and have two values at least."""
    names = list(dict.fromkeys(name for known in classes.values() for name in known))
    values = {name: {known[name] for known in classes.values()} for name in names}
    return tuple(name for name in names if 1 < len(values[name]) < len(classes))


def template_of(configuration: Configuration, task: str) -> Template:
    """The prompt of *task*: the project's own, or the one that ships."""
    own = configuration.template if task == SELECTION else configuration.salary_template
    if own is not None:
        return _read(own)
    kind = {SELECTION: ("selection", "resumes"), SALARY: ("salary", "salary_resumes")}[task]
    return _read(_PROMPTS / f"{kind[configuration.whole_resumes]}.txt")


def _read(path: Path) -> Template:
    found = read_template(path)
    return Template(found.id, found.text.rstrip("\n"))


def marker_arguments(configuration: Configuration, task: str) -> dict[str, Any]:
    """What ``fairness_pairs`` takes for *task*: a choice between two, or a salary for one at a time."""
    template = template_of(configuration, task)
    arguments: dict[str, Any] = {
        "template": template,
        "candidates": dict(configuration.groups) if isinstance(configuration.groups, Mapping) else configuration.groups,
        "repetitions": configuration.repetitions,
        "arms": list(arms_of_task(configuration, task)),
        **_axes(configuration, template, task),
    }
    if configuration.names is not None and task == SELECTION:
        # One at a time a name is only itself: asked of again, it would be the same trial.
        arguments["names"] = min(configuration.names, configuration.repetitions)
    if not configuration.whole_resumes:
        arguments["signal"] = list(configuration.signals)
    if configuration.parameters:
        arguments["parameters"] = dict(configuration.parameters)
    if configuration.temperatures != (None,):
        arguments["temperatures"] = ["default" if value is None else value for value in configuration.temperatures]
    if task == SALARY:
        arguments["size"] = 1
    return arguments


def arms_of_task(configuration: Configuration, task: str) -> tuple[str | Arm, ...]:
    """All arms; for a salary without those that guess, and without the placebo, whose groups would be the same."""
    choosing = configuration.arm_names
    names = ((arm, arm if isinstance(arm, str) else arm.name) for arm in configuration.arms)
    return tuple(arm for arm, name in names if task == SELECTION or (name in choosing and name != PLACEBO))


def _axes(configuration: Configuration, template: Template, task: str) -> dict[str, Any]:
    """The axes that the prompt has a place for. One that was given, and has none, is refused when it is expanded."""
    plain = Configuration()
    used = set(_SLOT.findall(template.text))
    given: dict[str, tuple[Axis, Axis]] = {
        "role": (configuration.roles, plain.roles),
        "criteria": (configuration.criteria, plain.criteria),
        "qualifications": (configuration.qualifications, plain.qualifications),
    }
    found: dict[str, Any] = {}
    for name, (axis, default) in given.items():
        places = {name, f"{name}_1", "candidate_1", "candidates"} if name == "qualifications" else {name}
        asked_for = axis != default and task == SELECTION
        if (places & used and not (name == "qualifications" and configuration.whole_resumes)) or asked_for:
            found[name] = dict(axis) if isinstance(axis, Mapping) else list(axis)
    return found
