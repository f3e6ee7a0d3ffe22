"""Arms: ways of running the same cells, which differ by system prompt, by the steps before the
choice, or by names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from pytest_fairness.design.answer_forms import ANSWER_PLACE
from pytest_fairness.design.locales import is_english
from pytest_fairness.design.slugs import is_slug
from pytest_fairness.documents import Text, chosen, entries
from pytest_fairness.errors import UsageError
from pytest_fairness.model import TEXT, Ask
from pytest_fairness.words import listed

_RULES = "rules"
Step: TypeAlias = "Ask | Callable[[str], str]"


def _has_one_place(step: Ask) -> bool:
    """Return whether the prompt of *step*, if it has one of its own, has one place for its text."""
    return step.prompt is None or step.prompt.count(f"{{{TEXT}}}") == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way of running the cells.

    ``system``: the system prompt, with the test's slots. ``steps``: what the candidates' text
    passes through, in order; a function from text to text, or an :class:`Ask`; the last one is the
    choice. ``placebo``: all candidates get names (and words) of one group, in disjoint sets.
    ``endpoint``: a system under test of the arm's own, any callable or a name of
    ``endpoints.yaml``. ``chooses``: False where its replies hold no choice, so that none asks for the
    form of one.

    Raises UsageError for a name that is no slug, and for steps that do not end in an :class:`Ask`
    with ``{text}``.
    """

    name: str
    system: str | None = None
    steps: tuple[Step, ...] = ()
    placebo: bool = False
    endpoint: Any = None
    chooses: bool = True

    def __post_init__(self) -> None:
        """Refuse an arm that could not be asked, by its name, its steps and their prompts."""
        object.__setattr__(self, "steps", tuple(self.steps))
        why = None
        if not is_slug(self.name):
            why = "use 1 to 80 of the characters a-z 0-9 _ . - (not . or - first)"
        elif self.steps and not isinstance(self.steps[-1], Ask):
            why = "the last step makes the choice, so it must be Ask(...)"
        for step in self.steps:
            if isinstance(step, Ask):
                if not _has_one_place(step):
                    why = f"a step's prompt holds {{{TEXT}}} exactly once, where its text belongs"
            elif not callable(step):
                raise UsageError(
                    f"arm {self.name!r}: a step is Ask(...) or a function from text to text, not "
                    f"{step!r}"
                )
        if why is not None:
            raise UsageError(f"arm {self.name!r}: {why}")


def arms_of(
    given: object,
    folder: Path | None = None,
    *,
    rules: Callable[[str], str] | None = None,
    by_form: bool = False,
    locale: str | None = None,
) -> tuple[Arm, ...]:
    """The arms of ``arms=``: names of ready-made ones, Arms, or ``{name: system prompt}``; *rules*
    is the rule-based scrubber; *by_form*: the test says in which form it wants the answer; *locale*:
    its language. Raises UsageError for an unknown name and for two arms of one name.
    """
    if given is None:
        return ()
    if isinstance(given, Mapping):
        given = [Arm(name=str(name), system=text) for name, text in given.items()]
    return chosen("arms", given, ready_arms(folder, rules, by_form=by_form, locale=locale), Arm)


class _Prompt(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An entry of ``personas/prompts.yaml``: where it is from, a system prompt, and the prompt of a
    step; ``answer`` is what stands at ``{answer}`` in it where a test does not say in which form it
    wants the answer.
    """

    name: str
    source: Text
    system: Text | None = None
    prompt: Text | None = None
    answer: str = ""


class _ReadyArm(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An entry of ``personas/arms.yaml``: an :class:`Arm` by the names of its prompts."""

    name: str
    system: Text | None = None
    steps: tuple[Text, ...] = ()
    placebo: bool = False
    chooses: bool = True

    @property
    def prompts(self) -> frozenset[str]:
        """Return the names of its prompts, rules among them."""
        return frozenset(filter(None, (self.system, *self.steps)))


def ready_arms(
    folder: Path | None = None,
    rules: Callable[[str], str] | None = None,
    *,
    by_form: bool = False,
    locale: str | None = None,
) -> dict[str, Arm]:
    """The arms of ``personas/arms.yaml`` by name, extended or replaced by the user's *folder*; their
    prompts leave the place of an answer's form open where the test asks *by_form*. Of a *locale*
    those that it has the prompts of: rules know English. Raises UsageError.
    """
    if is_english(locale, folder):
        locale = None
    prompt_entries = entries("prompts.yaml", folder, _Prompt, locale=locale)
    prompts = _Prompts(entries=prompt_entries, by_form=by_form)
    arms = {}
    for name, ready in entries("arms.yaml", folder, _ReadyArm).items():
        if locale is not None and not prompts.entries.keys() >= ready.prompts:
            continue
        steps: list[Step] = []
        for step in ready.steps:
            if step != _RULES:
                steps.append(prompts.step(name, step, fallback=step == ready.steps[-1]))
            elif rules is not None:
                steps.append(rules)
        system = None
        if ready.system is not None:
            system = prompts.text(name, ready.system, "system")
        arms[name] = Arm(
            name=name,
            system=system,
            steps=tuple(steps),
            placebo=ready.placebo,
            chooses=ready.chooses,
        )
    return arms


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompts:
    """The prompts of ready-made arms; *by_form*: the place of an answer's form is left open."""

    entries: Mapping[str, _Prompt]
    by_form: bool

    def text(self, arm: str, name: str, field: str) -> str:
        """Return the *field* of the prompt *name*. Raises UsageError, which names the *arm*."""
        text: str | None = getattr(self.entries.get(name), field, None)
        if text is None:
            raise UsageError(
                f"arm {arm!r}: there is no prompt {name!r} with a {field} (there are: "
                f"{listed(self.entries)})"
            )
        return text

    def step(self, arm: str, name: str, *, fallback: bool) -> Ask:
        """Return the step of *arm* that sends the prompt *name*. Raises UsageError."""
        text = self.text(arm, name, "prompt")
        entry = self.entries[name]
        if not self.by_form:
            text = text.replace(ANSWER_PLACE, entry.answer)
        return Ask(prompt=text, system=entry.system, fallback=fallback)
