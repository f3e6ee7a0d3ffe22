"""From one combination of a pairwise experiment to its cell: the text of each arm, and what it conveys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_fairness.design.arms import TEXT, Arm, Ask, Step
from pytest_fairness.design.axes import Axis
from pytest_fairness.design.candidates import Candidate, Roster
from pytest_fairness.design.pair_text import (
    CANDIDATES,
    QUALIFICATIONS,
    block,
    check_slots,
    render,
    scrubbed_template,
    surfaces,
    values_of,
    without_empty,
)
from pytest_fairness.design.slugs import join, slug, slugs
from pytest_fairness.design.templates import Template
from pytest_fairness.errors import UsageError, listed
from pytest_fairness.model import JSON, Cell

if TYPE_CHECKING:
    from pytest_fairness.design.pairs import Slate

Sets = Mapping[str, tuple[tuple[Candidate, ...], tuple[Candidate, ...]]]
_HOLD = f"{{{TEXT}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What a pipeline does beyond its cell: system prompts, functions before each request, the text it began with, and
    whom each request asks, if not the test's endpoint.
    """

    systems: tuple[str | None, ...]
    between: Mapping[int, tuple[Callable[[str], str], ...]]
    first: str
    endpoints: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A cell, and the steps of its arm where it has any; ``number`` tells cells of one context and arm apart."""

    cell: Cell
    steps: Steps | None = None
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMaker:
    """Makes cells. ``texts`` has each template as each signal condition sends it; ``placebo`` the sets of that arm."""

    texts: Mapping[tuple[str, str], Template]
    casts: Mapping[str, tuple[Mapping[str, Candidate], ...]]
    placebo: Sets
    evaluations: Mapping[tuple[str, str], Template]
    asks: Mapping[tuple[str, int], Template]
    systems: Mapping[tuple[str, int], Template]
    group_slugs: Mapping[str, str]
    named_arms: bool
    refused: Callable[[str], bool] = field(repr=False)

    @staticmethod
    def requests(arm: Arm) -> int:
        """How many requests a trial of *arm* makes."""
        return sum(isinstance(step, Ask) for step in arm.steps)

    def make(
        self,
        template: Template,
        context: Sequence[tuple[Axis, int]],
        roster: Roster,
        arm: Arm,
        slate: Slate,
        number: int,
        *,
        many_rosters: bool,
    ) -> Prepared:
        """The cell of tuple *number* for one template, choice of context, condition, arm and slate."""
        cast = self.casts[roster.condition][number]
        shown = self._shown(cast, roster, arm, slate, number)
        texts: dict[str, str] = {}
        for axis, choice in context:
            texts.update(axis.values(choice))
        values = values_of(shown, texts)
        sides = sorted(slate.groups, key=list(cast).index)
        where = [axis.slugs[choice] for axis, choice in context if len(axis.slugs) > 1]
        parts = [template.id, *where, *([slug(roster.condition)] if many_rosters else [])]
        parts += [arm.name] if self.named_arms else []
        parts += ["-".join(self.group_slugs[label] for label in slate.groups), f"p{number + 1:02d}"]
        turns, steps = self._turns(template, arm, roster, values)
        everything = "\n".join((*turns, values[CANDIDATES]))
        cell = Cell(
            id=join(parts),
            # The block is the whole context: criteria and role change what is asked as much as the wording does.
            template=join([template.id, *where]),
            turns=turns,
            groups={},
            name=" / ".join(_called(cast[label], number) for label in sides),
            context={axis.name: axis.labels[choice] for axis, choice in context},
            attributes=_attributes(slate, sides, shown),
            system=steps.systems[-1] if steps else self._system(arm, len(arm.steps), values),
            tier=1 if arm.needs_system_prompt else 2,
            arm=arm.name if self.named_arms else None,
            signal=roster.condition,
            signals=surfaces(shown, everything),
        )
        return Prepared(cell, steps)

    def _shown(
        self, cast: Mapping[str, Candidate], roster: Roster, arm: Arm, slate: Slate, number: int
    ) -> list[Candidate]:
        """The candidates as they are listed; in the placebo arm, stand-ins of one group from disjoint sets."""
        if not arm.placebo:
            return [cast[label] for label in slate.groups]
        sets = self.placebo[roster.condition]
        order = list(cast)
        sides = sorted(slate.groups, key=order.index)
        return [sets[sides.index(label) % 2][number % len(sets[0])] for label in slate.groups]

    def _system(self, arm: Arm, step: int, values: Mapping[str, str]) -> str | None:
        template = self.systems.get((arm.name, step))
        return None if template is None else render(template, values)

    def _turns(
        self, template: Template, arm: Arm, roster: Roster, values: Mapping[str, str]
    ) -> tuple[tuple[str, ...], Steps | None]:
        if not arm.steps:
            return (render(self.texts[template.id, roster.condition], values),), None
        text = first = values[CANDIDATES]
        turns: list[str] = []
        systems: list[str | None] = []
        endpoints: list[Any] = []
        between: dict[int, tuple[Callable[[str], str], ...]] = {}
        for at, step in enumerate(arm.steps):
            if isinstance(step, Ask):
                asked = self.asks.get((arm.name, at)) or self.evaluations[arm.name, template.id]
                # The first request holds its text as it is sent; a later one the place where its text will stand.
                turns.append(render(asked, {**values, TEXT: _HOLD if turns else text}))
                endpoints.append(step.endpoint)
                last = at == len(arm.steps) - 1
                systems.append(
                    self._system(arm, at, values) or (self._system(arm, len(arm.steps), values) if last else None)
                )
            elif turns:
                between[len(turns)] = (*between.get(len(turns), ()), step)
            else:
                text = first = _stepped(arm, step, text)
        for turn in turns[1:]:
            if turn.count(_HOLD) != 1:
                raise UsageError(
                    f"arm {arm.name!r}: {_HOLD} stands in a value of the context; take the braces out of it"
                )
        return tuple(turns), Steps(systems=tuple(systems), between=between, first=first, endpoints=tuple(endpoints))


def _stepped(arm: Arm, step: Step, text: str) -> str:
    assert not isinstance(step, Ask)  # noqa: S101 - for the type checker
    made = step(text)
    if not isinstance(made, str) or not made.strip():
        raise UsageError(f"arm {arm.name!r}: a step returned {made!r}; a step takes a text and returns one")
    return made


def _called(candidate: Candidate, number: int) -> str:
    return candidate.name or f"{candidate.group} {number + 1}"


def _attributes(slate: Slate, sides: Sequence[str], shown: Sequence[Candidate]) -> dict[str, JSON]:
    attributes: dict[str, JSON] = {"pair": " / ".join(sides), "order": slate.order}
    for at, (label, candidate) in enumerate(zip(slate.groups, shown, strict=True), start=1):
        attributes |= {f"group_{at}": label, f"name_{at}": candidate.name}
    first, _, last = (shown[0].name or "").partition(" ")
    if len(shown) == 1 and last:
        attributes |= {"first_name": first, "last_name": last}
    return attributes


def prepare(
    *,
    templates: Sequence[Template],
    axes: Sequence[Axis],
    rosters: Sequence[Roster],
    arms: Sequence[Arm],
    tuples: int,
    size: int,
    named: bool,
    refused: Callable[[str], bool],
    placebo: Callable[[], Sets],
) -> PairMaker:
    """Check everything once, and make what all cells share. Raises UsageError with the mend."""
    casts = {roster.condition: tuple(cast for _, cast in roster.tuples(tuples)) for roster in rosters}
    context: dict[str, str] = {}
    for axis in axes:
        context.update(axis.values(0))
    sample = values_of(list(casts[rosters[0].condition][0].values())[:size], context)
    for template in templates:
        check_slots(template, sample, size)
    asks, evaluations, systems = _prompts(arms, templates, sample)
    _check_axes(axes, [*templates, *asks.values(), *systems.values()])
    texts = {}
    for roster in rosters:
        everyone = [candidate for found in roster.groups.values() for candidate in found]
        for template in templates:
            texts[template.id, roster.condition] = without_empty(template, everyone)
    _check_swap(casts, context.get(QUALIFICATIONS, ""))
    return PairMaker(
        texts=texts,
        casts=casts,
        placebo=placebo() if any(arm.placebo for arm in arms) else {},
        evaluations=evaluations,
        asks=asks,
        systems=systems,
        group_slugs=slugs(rosters[0].groups),
        named_arms=named,
        refused=refused,
    )


Prompts = tuple[dict[tuple[str, int], Template], dict[tuple[str, str], Template], dict[tuple[str, int], Template]]


def _prompts(arms: Sequence[Arm], templates: Sequence[Template], sample: Mapping[str, str]) -> Prompts:
    """The prompts and system prompts of every arm's steps, checked against the slots that there are."""
    asks: dict[tuple[str, int], Template] = {}
    evaluations: dict[tuple[str, str], Template] = {}
    systems: dict[tuple[str, int], Template] = {}
    for arm in arms:
        if arm.system is not None:
            systems[arm.name, len(arm.steps)] = Template(f"{arm.name}.system", arm.system)
        for at, step in enumerate(arm.steps):
            if not isinstance(step, Ask):
                continue
            if step.system is not None:
                systems[arm.name, at] = Template(f"{arm.name}.system{at}", step.system)
            prompt = None if step.prompt is None else Template(f"{arm.name}.step{at}", step.prompt)
            missing = [] if prompt is None else [slot for slot in prompt.slots if slot not in {*sample, TEXT}]
            if prompt is None or (missing and step.fallback):
                evaluations |= {(arm.name, template.id): scrubbed_template(template) for template in templates}
            elif missing:
                raise UsageError(
                    f"arm {arm.name!r}: nothing fills the slot {{{missing[0]}}} of a step (slots that are filled: "
                    f"{listed(sorted(slot for slot in sample if slot[-1:].isalpha()))}, text); give an axis "
                    f"{missing[0]}=[...]"
                )
            else:
                asks[arm.name, at] = prompt
    for (name, _), template in systems.items():
        lost = next((slot for slot in template.slots if slot not in sample), None)
        if lost is not None:
            raise UsageError(
                f"arm {name!r}: nothing fills the slot {{{lost}}} of its system prompt; give an axis {lost}=[...]"
            )
    return asks, evaluations, systems


def _check_axes(axes: Sequence[Axis], everything: Sequence[Template]) -> None:
    used = frozenset(slot for template in everything for slot in template.plain_slots)
    for axis in axes:
        if axis.name == QUALIFICATIONS and any(
            slot == CANDIDATES or slot.startswith(("candidate_", QUALIFICATIONS)) for slot in used
        ):
            continue
        if not used & axis.slots:
            raise UsageError(
                f"axis {axis.name!r} is given, but no template uses it: write {{{axis.name}}} in a template, or leave "
                "the axis out"
            )


def _check_swap(casts: Mapping[str, Sequence[Mapping[str, Candidate]]], qualifications: str) -> None:
    """No two candidates of one choice may read the same: there would be nothing to choose between."""
    for condition, found in casts.items():
        for cast in found:
            seen: dict[str, str] = {}
            for label, candidate in cast.items():
                text = block([candidate], qualifications)
                if text in seen:
                    raise UsageError(
                        f"signal {condition!r}: {seen[text]!r} and {label!r} have the same text ({text[:60]!r}), so "
                        "the swap changes nothing; give other names, or say signal='name+label'"
                    )
                seen[text] = label
