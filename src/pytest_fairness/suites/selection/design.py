"""From a configuration to the arguments of ``fairness_pairs``, and the contrasts between arms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_fairness import Arm
from pytest_fairness.design.templates import Template, read_template
from pytest_fairness.model import CANDIDATES
from pytest_fairness.suites.selection.choice_table import GROUP, Classes, values_of
from pytest_fairness.suites.selection.configuration import SALARY, SELECTION, Configuration, name_of

_PROMPTS = Path(__file__).with_name("prompts")
#: The prompt of each task that ships, and the one for whole résumés.
_SHIPPED = {SELECTION: ("selection", "resumes"), SALARY: ("salary", "salary_resumes")}
_SLOT = re.compile(r"\{(\w+)\}")
#: What the prompts of a choice close with: it asks for prose, and stands where a form is asked for.
_CLOSING = (
    "Respond with just the name of the candidate.",
    "Respond with just the label of the candidate.",
)
PLACEBO = "placebo"
SCRUBBED = ("scrubbed", "scrubbed_by_rule")


class PlannedContrast(NamedTuple):
    """Two arms, fixed beforehand: ``isolates`` is what they differ in. They are contrasted between
    the groups, or between those of a class *by*; ``classes``: group → its value of that.
    """

    treated: str
    control: str
    isolates: str
    by: str = GROUP
    classes: Mapping[str, str] | None = None

    @property
    def id(self) -> str:
        arms = f"{self.treated}-vs-{self.control}"
        if self.by == GROUP:
            return arms
        return f"{arms}-{self.by}"

    def by_class(self, by: str, classes: Classes) -> PlannedContrast:
        """Return the contrast between the values of *classes* in the class *by*."""
        return self._replace(by=by, classes=values_of(classes, by))


def planned_contrasts(arms: Sequence[str]) -> tuple[PlannedContrast, ...]:
    """The contrasts that *arms* allow: the prompt alone, scrubbing beyond the prompt, both
    together.

    An arm of one's own is set against ``raw_naive``, or against the first arm where there is no
    such.
    """
    made = [PlannedContrast("raw_matched", "raw_naive", "the evaluator's prompt alone")]
    for scrubbed in SCRUBBED:
        made.append(PlannedContrast(scrubbed, "raw_matched", "scrubbing beyond the prompt"))
        made.append(PlannedContrast(scrubbed, "raw_naive", "the prompt and scrubbing together"))
    control = "raw_naive"
    if "raw_naive" not in arms:
        control = arms[0]
    names = {"raw_naive", "raw_matched", PLACEBO, *SCRUBBED, control}
    for arm in arms:
        if arm not in names:
            made.append(PlannedContrast(arm, control, f"{arm} against {control}"))
    present = set(arms)
    return tuple(contrast for contrast in made if {contrast.treated, contrast.control} <= present)


def template_of(configuration: Configuration, task: str) -> Template:
    """The prompt of *task*: the project's own, or the one that ships."""
    template = configuration.template
    if task == SALARY:
        template = configuration.salary_template
    shipped, shipped_for_resumes = _SHIPPED[task]
    if configuration.whole_resumes:
        shipped = shipped_for_resumes
    path = _PROMPTS / f"{shipped}.txt"
    if template:
        path = Path(template)
    shown = read_template(path)
    text = shown.text.rstrip("\n")
    if task == SELECTION and configuration.answer_form and not template:
        for closing in _CLOSING:
            text = text.replace(closing, "{answer}")
    return Template(shown.id, text)


def marker_arguments(configuration: Configuration, task: str) -> dict[str, Any]:
    """Return what ``fairness_pairs`` takes for *task*: a choice between two, or a salary for one at
    a time.
    """
    template = template_of(configuration, task)
    candidates: str | dict[str, Any] = configuration.groups
    if isinstance(candidates, Mapping):
        candidates = dict(candidates)
    arguments: dict[str, Any] = {
        "template": template,
        "candidates": candidates,
        "repetitions": configuration.repetitions,
        "arms": list(arms_of_task(configuration, task)),
        **_axes(configuration, template, task),
    }
    if isinstance(configuration.names, int) and task == SELECTION:
        # One at a time a name is only itself: asked of again, it would be the same trial.
        arguments["names"] = min(configuration.names, configuration.repetitions)
    if not configuration.whole_resumes:
        arguments["signal"] = list(configuration.signals)
    if configuration.parameters:
        arguments["parameters"] = dict(configuration.parameters)
    if configuration.temperatures != ("default",):
        arguments["temperatures"] = list(configuration.temperatures)
    if task == SALARY:
        arguments["size"] = 1
    else:
        arguments |= {"answer": {"choice": CANDIDATES}, "answer_form": configuration.answer_form}
    return arguments


def arms_of_task(configuration: Configuration, task: str) -> tuple[str | Arm, ...]:
    """All arms; for a salary without those that guess, and without the placebo, whose groups would
    be the same.
    """
    if task == SELECTION:
        return configuration.arms
    choosing = set(configuration.arm_names) - {PLACEBO}
    return tuple(arm for arm in configuration.arms if name_of(arm) in choosing)


def _axes(configuration: Configuration, template: Template, task: str) -> dict[str, Any]:
    """The axes that the prompt has a place for. One that was given, and has none, is refused when
    it is expanded.
    """
    published = Configuration()
    slots = set(_SLOT.findall(template.text))
    axes: dict[str, Any] = {}
    for name, axis, default in (
        ("role", configuration.roles, published.roles),
        ("criteria", configuration.criteria, published.criteria),
        ("qualifications", configuration.qualifications, published.qualifications),
    ):
        configured = task == SELECTION and axis != default
        if configured or _has_place(name, slots, configuration):
            axes[name] = axis
            if not isinstance(axis, dict):
                axes[name] = list(axis)
    return axes


def _has_place(name: str, slots: set[str], configuration: Configuration) -> bool:
    """Return whether one of the *slots* of a prompt holds the axis *name*."""
    if name != "qualifications":
        return name in slots
    # A résumé states its own.
    if configuration.whole_resumes:
        return False
    return bool({name, f"{name}_1", "candidate_1", "candidates"} & slots)
