"""Choices between candidates of different groups: every pair in both orders, or every group in every position.

A choice among k lists them in the k orders of a Latin square, so that each stands in each position equally often,
and (for an even k) behind each other equally often. Repetitions are spread over distinct tuples of names or
résumés, which are the unit of evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pytest_fairness.design.arms import Arm, arms_of
from pytest_fairness.design.candidates import (
    CANDIDATES,
    QUALIFICATIONS,
    Candidate,
    Casting,
    Group,
    candidate_groups,
    surfaces,
    values_of,
)
from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.render import axes, check_axes_used, with_articles
from pytest_fairness.design.sampling import LazyCells, check_counts, positions
from pytest_fairness.design.scrubbing import RuleScrubber
from pytest_fairness.design.signals import Condition, Signals, conditions
from pytest_fairness.design.slugs import join, slug, slugs
from pytest_fairness.design.templates import Template, TemplateLike, templates
from pytest_fairness.errors import UsageError, did_you_mean, listed
from pytest_fairness.model import JSON, TEXT, Ask, Cell

_PLACES = ("name", "first_name", "last_name", "demographics", "label", "candidate", "resume")
_NUMBERED = re.compile(r"(?P<slot>[A-Za-z_]+)_(?P<number>\d+)")
_NO_DEMOGRAPHICS = re.compile(r"(?:,[ \t]*|[ \t]+)?\{demographics_\d+\}")
_HOLD = f"{{{TEXT}}}"
Cast: TypeAlias = "Mapping[str, Candidate]"
"""One candidate of each group: those that meet each other."""


def latin_square(size: int) -> tuple[tuple[int, ...], ...]:
    """*size* orders of ``range(size)``: everything once in every position (Williams 1949 for an even size).

    Williams, Australian Journal of Scientific Research A 2:149-168: the zigzag 0, 1, k−1, 2, k−2 … moved on by one.
    """
    zigzag = [(step + 1) // 2 if step % 2 else (size - step // 2) % size for step in range(size)]
    return tuple(tuple((place + turn) % size for place in zigzag) for turn in range(size))


class Slate(NamedTuple):
    """Groups in the order in which they are listed; ``order`` numbers the orders of one set of groups from 1."""

    groups: tuple[str, ...]
    order: int


class Steps(NamedTuple):
    """What a pipeline does beyond its cell: system prompts, functions before each request, the text it began with, and
    whom each request asks, if not the test's endpoint.
    """

    systems: tuple[str | None, ...]
    between: Mapping[int, tuple[Callable[[str], str], ...]]
    first: str
    endpoints: tuple[Any, ...]


class Prepared(NamedTuple):
    """A cell, and the steps of its arm where it has any; ``number`` tells cells of one context and arm apart."""

    cell: Cell
    steps: Steps | None
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairGrid(LazyCells):
    """Every choice, as a sequence of cells: templates, context, signal conditions, arms, slates, tuples of candidates.

    ``ranking`` says that replies are whole rankings; ``named_arms``, that the test has arms. ``texts``: each template
    as each signal condition sends it. ``asks``: the prompt of each step of an arm, by arm, step and template.
    ``systems``: system prompts by arm and step, an arm's own behind its last step. ``casts``: who meets whom under each
    condition, and ``placebo`` two disjoint sets of candidates of one group. ``fewest_names`` is how many different
    names the group with the fewest has.
    """

    arms: tuple[Arm, ...]
    named_arms: bool
    slates: tuple[Slate, ...]
    texts: Mapping[tuple[str, str], Template]
    asks: Mapping[tuple[str, int, str], Template]
    systems: Mapping[tuple[str, int], Template]
    casts: Mapping[str, tuple[Cast, ...]]
    placebo: Mapping[str, tuple[tuple[Candidate, ...], tuple[Candidate, ...]]]
    group_slugs: Mapping[str, str]
    fewest_names: int
    ranking: bool

    @property
    def radices(self) -> tuple[int, ...]:
        contexts = [len(axis.texts) for axis in self.axes]
        return (len(self.templates), *contexts, len(self.casts), len(self.arms), len(self.slates), self.tuples)

    @property
    def tuples(self) -> int:
        """How many sets of candidates meet in each choice."""
        return len(next(iter(self.casts.values())))

    @property
    def choice_size(self) -> int:
        """Among how many candidates a choice is."""
        return len(self.slates[0].groups)

    @property
    def needs_system_prompt(self) -> bool:
        return any(arm.needs_system_prompt for arm in self.arms)

    def cell_at(self, position: int) -> Cell:
        return self._prepared(position).cell

    def prepared(self, index: int) -> Prepared:
        """The cell at *index* with the steps that its arm takes."""
        return self._prepared(self.position(index))

    def _prepared(self, position: int) -> Prepared:
        template_at, *choices, condition_at, arm_at, slate_at, number = self.digits(position)
        template, arm, slate = self.templates[template_at], self.arms[arm_at], self.slates[slate_at]
        condition, casts = list(self.casts.items())[condition_at]
        cast = casts[number]
        sides = [label for label in cast if label in slate.groups]
        shown = [cast[label] for label in slate.groups]
        if arm.placebo:
            sets = self.placebo[condition]
            shown = [sets[sides.index(label) % 2][number % len(sets[0])] for label in slate.groups]
        texts, context, slugs_of_axes = self.context(choices)
        values = values_of(shown, texts)
        turns, steps = self._turns(template, arm, condition, values)
        # The block is the whole context: criteria and role change what is asked as much as the wording does.
        varied = [part for axis, part in zip(self.axes, slugs_of_axes, strict=True) if len(axis.slugs) > 1]
        where = [template.id, *varied]
        parts = [*where, *([slug(condition)] if len(self.casts) > 1 else []), *([arm.name] if self.named_arms else [])]
        parts += ["-".join(self.group_slugs[label] for label in slate.groups), f"p{number + 1:02d}"]
        cell = Cell(
            id=join(parts),
            template=join(where),
            turns=turns,
            groups={},
            name=" / ".join(cast[label].name or f"{label} {number + 1}" for label in sides),
            context=context,
            attributes=_attributes(slate, sides, shown),
            system=steps.systems[-1] if steps else self._system(arm, 0, values),
            tier=1 if arm.needs_system_prompt else 2,
            arm=arm.name if self.named_arms else None,
            signal=condition,
            signals=surfaces(shown, "\n".join((*turns, values[CANDIDATES]))),
        )
        return Prepared(cell, steps, slate_at * self.tuples + number)

    def _turns(
        self, template: Template, arm: Arm, condition: str, values: Mapping[str, str]
    ) -> tuple[tuple[str, ...], Steps | None]:
        if not arm.steps:
            return (_render(self.texts[template.id, condition], values),), None
        first = values[CANDIDATES]
        turns: list[str] = []
        between: dict[int, tuple[Callable[[str], str], ...]] = {}
        for at, step in enumerate(arm.steps):
            if isinstance(step, Ask):
                # The first request holds its text as it is sent; a later one the place where its text will stand.
                text = {TEXT: _HOLD if turns else first}
                turns.append(_render(self.asks[arm.name, at, template.id], {**values, **text}))
            elif turns:
                between[len(turns)] = (*between.get(len(turns), ()), step)
            else:
                first = step(first)
                if not isinstance(first, str) or not first.strip():
                    raise UsageError(
                        f"arm {arm.name!r}: a step returned {first!r}; a step takes a text and returns one"
                    )
        if any(turn.count(_HOLD) != 1 for turn in turns[1:]):
            raise UsageError(f"arm {arm.name!r}: {_HOLD} stands in a value of the context; take the braces out of it")
        systems = tuple(self._system(arm, at, values) for at in arm.asks)
        endpoints = tuple(step.endpoint for step in arm.asks.values())
        return tuple(turns), Steps(systems=systems, between=between, first=first, endpoints=endpoints)

    def _system(self, arm: Arm, step: int, values: Mapping[str, str]) -> str | None:
        """The system prompt of the request that *step* makes; the arm's own belongs to its last one."""
        template = self.systems.get((arm.name, step))
        if template is None and step >= len(arm.steps) - 1:
            template = self.systems.get((arm.name, len(arm.steps)))
        return None if template is None else _render(template, values)

    def describe(self) -> str:
        """The size in words, with what deserves a second thought."""
        k = self.choice_size
        contexts = prod(len(axis.texts) for axis in self.axes) * len(self.templates) * len(self.casts)
        configurations = len(self.slates) * contexts
        shown = {1: "groups", 2: "pairs"}.get(k, f"slates of {k}")
        lines = [
            f"{len(self.slates) // k} {shown} × {k} orders × {contexts} contexts = {configurations:,} configurations "
            f"× {len(self.arms)} arm{'s' * (len(self.arms) != 1)}",
            f"× {self.tuples} sets of names × {self.repetitions} repetitions = "
            f"{self.full_size * self.repetitions:,} trials",
        ]
        if self.positions is not None:
            lines.append(f"of which a balanced sample of {self.calls:,} is asked")
        requests = sum(max(1, len(arm.asks)) for arm in self.arms) * self.calls // len(self.arms)
        if requests != self.calls:
            lines.append(f"with the steps of its arms: {requests:,} requests")
        if self.tuples == 1:
            lines.append("one name a group: what is found is about these names as much as about the groups")
        elif self.fewest_names < self.tuples:
            lines.append(
                f"{self.fewest_names} names a group make {self.tuples} pairs by meeting again with others, which are "
                "not independent: compare with cluster=('first_name', 'second_name')"
            )
        return "\n".join(lines)


def _attributes(slate: Slate, sides: Sequence[str], shown: Sequence[Candidate]) -> dict[str, JSON]:
    attributes: dict[str, JSON] = {"pair": " / ".join(sides), "order": slate.order}
    for at, (label, candidate) in enumerate(zip(slate.groups, shown, strict=True), start=1):
        attributes |= {f"group_{at}": label, f"name_{at}": candidate.name}
    first, _, last = (shown[0].name or "").partition(" ")
    return attributes | ({"first_name": first, "last_name": last} if len(shown) == 1 and last else {})


def _render(template: Template, values: Mapping[str, str]) -> str:
    return template.render(with_articles(template, values))


def expand_pairs(
    *,
    template: TemplateLike | Iterable[TemplateLike] | Mapping[str, str | Path],
    candidates: object,
    repetitions: int = 30,
    arms: object = None,
    system: str | None = None,
    signal: str | Sequence[str] | None = None,
    qualifications: object = None,
    size: int = 2,
    ranking: bool = False,
    names: int | None = None,
    context: Mapping[str, object] | None = None,
    parameters: Mapping[str, JSON] | None = None,
    seed: int = 0,
    sample: int | None = None,
    personas_folder: Path | None = None,
    **axis: object,
) -> PairGrid:
    """Every choice of *template* × context × arms × pairs of groups in both orders.

    The arguments are those of the marker ``fairness_pairs``, as docs/designs.md lists them; any keyword that is none is
    an axis. The repetitions of a configuration are spread evenly over sets of names that are all distinct; for more
    *names* than there are, names meet again with others (see :meth:`PairGrid.describe`). Every drawn part of a *sample*
    is asked of all pairs, in all orders, signal conditions and arms (:mod:`pytest_fairness.design.sampling`).

    Raises UsageError, with the mend, for whatever would make the experiment other than it looks.
    """
    check_counts(repetitions=repetitions, names=names, size=size, sample=sample)
    parsed = templates(template)
    groups = candidate_groups(candidates, personas_folder)
    if size not in (1, 2, len(groups)):
        raise UsageError(f"size={size}: a choice is between 2, or among all {len(groups)} groups; 1 is one at a time")
    if qualifications is not None:
        axis[QUALIFICATIONS] = [qualifications] if isinstance(qualifications, str) else qualifications
    made_axes = axes(context, axis)
    banks, signals = NameBanks.load(personas_folder), Signals.load(personas_folder)
    casting = Casting(banks=banks, signals=signals, wanted=names or repetitions, seed=seed)
    if signal is None:
        stated = any(slot.startswith("demographics_") for each in parsed for slot in each.slots)
        signal = "name+label" if stated else "name"
    rosters = {condition: casting.roster(groups, condition) for condition in conditions(signal)}
    fewest = min(len(found) for roster in rosters.values() for found in roster.values())
    tuples = _tuples(groups, fewest, repetitions, names)
    everyone = {one.name: None for roster in rosters.values() for found in roster.values() for one in found if one.name}
    chosen = arms_of(arms, personas_folder, rules=RuleScrubber(banks, signals, tuple(everyone)))
    if chosen and system is not None:
        raise UsageError("give the system prompt to the arms, Arm(name=..., system=...), or leave arms out")
    all_arms = chosen or (Arm(name="single", system=system),)
    casts = {condition.name: _casts(roster, tuples) for condition, roster in rosters.items()}
    first = {slot: text for each in made_axes for slot, text in each.values(0).items()}
    sample_values = values_of(list(next(iter(casts.values()))[0].values())[:size], first)
    for each_template in parsed:
        _check_slots(each_template, sample_values, size)
    asks, systems = _prompts(all_arms, parsed, sample_values)
    used = frozenset(slot for one in (*parsed, *asks.values(), *systems.values()) for slot in one.plain_slots)
    lists_candidates = any(slot == CANDIDATES or slot.startswith(("candidate_", QUALIFICATIONS)) for slot in used)
    check_axes_used([one for one in made_axes if one.name != QUALIFICATIONS or not lists_candidates], used)
    _check_swap(casts, first.get(QUALIFICATIONS, ""))
    slates = (
        Slate(tuple(some[place] for place in places), order)
        for some in combinations([group.label for group in groups], size)
        for order, places in enumerate(latin_square(size), start=1)
    )
    grid = PairGrid(
        templates=parsed,
        axes=made_axes,
        arms=all_arms,
        named_arms=bool(chosen),
        slates=tuple(slates),
        repetitions=repetitions // tuples,
        parameters=dict(parameters or {}),
        texts={(one.id, name): _without_empty(one, found) for name, found in casts.items() for one in parsed},
        asks=asks,
        systems=systems,
        casts=casts,
        placebo=_placebo(groups[0], casting, rosters, tuples) if any(arm.placebo for arm in all_arms) else {},
        group_slugs=slugs(group.label for group in groups),
        fewest_names=fewest,
        ranking=ranking,
    )
    if sample is None or sample >= grid.size:
        return grid
    radices = grid.radices[: 1 + len(made_axes)]
    alike = "combinations of groups, order, signal condition and arm"
    return replace(grid, positions=positions(radices, grid.size // prod(radices), tuples, sample, seed, alike=alike))


def _casts(roster: Mapping[str, Sequence[Candidate]], count: int) -> tuple[Cast, ...]:
    """*count* different sets of one candidate a group.

    Candidates at the same place meet first; once all have met, those of later groups move on by one place.
    """
    size = min(map(len, roster.values()))
    return tuple(
        {label: found[(number + at * (number // size)) % size] for at, (label, found) in enumerate(roster.items())}
        for number in range(count)
    )


def _tuples(groups: Sequence[Group], distinct: int, repetitions: int, names: int | None) -> int:
    """How many distinct sets of candidates the repetitions are spread over, where a group has *distinct* ones."""
    own = min((len(group.given) for group in groups if group.given), default=0)
    if own and names is not None and names > own:
        raise UsageError(f"names={names}, and the groups have {own} candidates each; give more, or ask for fewer")
    if own or names is not None:
        tuples = min(names or own, own or distinct * distinct, repetitions)
    else:
        # No name twice, and every name as often: names that met again with others would count as evidence anew.
        tuples = next(n for n in range(min(distinct, repetitions), 0, -1) if repetitions % n == 0)
    if repetitions % tuples:
        below = repetitions // tuples * tuples
        raise UsageError(
            f"repetitions={repetitions} cannot be spread evenly over {tuples} candidates a group: give {below} or "
            f"{below + tuples}"
        )
    return tuples


def _placebo(
    group: Group, casting: Casting, conditions: Iterable[Condition], tuples: int
) -> dict[str, tuple[tuple[Candidate, ...], tuple[Candidate, ...]]]:
    """For each signal condition two disjoint sets of candidates of *group*."""
    found = {}
    for condition in conditions:
        stock = replace(casting, wanted=2 * tuples).roster([group], condition)[group.label]
        if len(stock) < 2:
            raise UsageError(
                f"arm 'placebo' takes two disjoint sets of names of one group, and {group.label!r} has one name; "
                "give it more, or draw from the banks with candidates='four_groups'"
            )
        half = len(stock) // 2
        found[condition.name] = (stock[:half], stock[half : 2 * half])
    return found


def _prompts(
    arms: Sequence[Arm], templates: Sequence[Template], sample: Mapping[str, str]
) -> tuple[dict[tuple[str, int, str], Template], dict[tuple[str, int], Template]]:
    """The prompts and system prompts of every arm's steps, checked against the slots that there are."""
    asks: dict[tuple[str, int, str], Template] = {}
    systems: dict[tuple[str, int], Template] = {}
    for arm in arms:
        if arm.system is not None:
            systems[arm.name, len(arm.steps)] = Template(f"{arm.name}.system", arm.system)
        for at, step in arm.asks.items():
            if step.system is not None:
                systems[arm.name, at] = Template(f"{arm.name}.system{at}", step.system)
            prompt = None if step.prompt is None else Template(f"{arm.name}.step{at}", step.prompt)
            missing = None if prompt is None else prompt.missing({*sample, TEXT})
            if missing and not step.fallback:
                raise UsageError(
                    f"arm {arm.name!r}: nothing fills the slot {{{missing}}} of a step (slots that are filled: "
                    f"{listed(sorted(slot for slot in sample if slot[-1:].isalpha()))}, text); give an axis "
                    f"{missing}=[...]"
                )
            for template in templates:
                asks[arm.name, at, template.id] = _with_text(template) if prompt is None or missing else prompt
    for (name, _), template in systems.items():
        if lost := template.missing(sample):
            raise UsageError(
                f"arm {name!r}: nothing fills the slot {{{lost}}} of its system prompt; give an axis {lost}=[...]"
            )
    return asks, systems


def _with_text(template: Template) -> Template:
    """*template* with ``{text}`` where it lists the candidates: from the first line that does to the last."""
    lines = template.text.split("\n")
    at = [
        number
        for number, line in enumerate(lines)
        if any(slot == CANDIDATES or _NUMBERED.fullmatch(slot) for slot in re.findall(r"\{(\w+)\}", line))
    ]
    return Template(template.id, "\n".join([*lines[: at[0]], _HOLD, *lines[at[-1] + 1 :]]))


def _without_empty(template: Template, casts: Iterable[Cast]) -> Template:
    """*template* without the slots of words that no candidate has, nor the comma before them."""
    if any(candidate.demographics for cast in casts for candidate in cast.values()):
        return template
    return Template(template.id, _NO_DEMOGRAPHICS.sub("", template.text))


def _check_slots(template: Template, values: Mapping[str, str], size: int) -> None:
    """Every slot has a value, and every candidate a place. Raises UsageError with the mend."""
    slot = template.missing(values)
    numbered = _NUMBERED.fullmatch(slot or "")
    if numbered and int(numbered["number"]) > size:
        raise UsageError(
            f"template {template.id!r} has the slot {{{slot}}}, but a choice is among {size}: take it out, or give "
            "size=…"
        )
    if slot is not None:
        own = {f"{place}_1" for place in (*_PLACES, QUALIFICATIONS)}
        known = sorted({key for key in values if not _NUMBERED.fullmatch(key)} | own)
        raise UsageError(
            f"template {template.id!r}: nothing fills the slot {{{slot}}} (slots that are filled: {listed(known)}, and "
            f"so on for each candidate){did_you_mean(slot, known)}; give an axis {slot}=[...], or take the slot out"
        )
    for number in range(1, size + 1):
        if not {CANDIDATES, *(f"{place}_{number}" for place in _PLACES)} & set(template.slots):
            raise UsageError(
                f"template {template.id!r} has no place for candidate {number}: write {{name_{number}}} or "
                f"{{candidate_{number}}}, or {{{CANDIDATES}}} for the whole list"
            )


def _check_swap(casts: Mapping[str, Sequence[Cast]], qualifications: str) -> None:
    """No two candidates of one choice may read the same: there would be nothing to choose between."""
    for condition, cast in ((condition, cast) for condition, found in casts.items() for cast in found):
        seen: dict[str, str] = {}
        for label, candidate in cast.items():
            text = candidate.line(0, qualifications)
            if seen.setdefault(text, label) != label:
                raise UsageError(
                    f"signal {condition!r}: {seen[text]!r} and {label!r} have the same text ({text[:60]!r}), so "
                    "the swap changes nothing; give other names, or say signal='name+label'"
                )


def other_candidates(grid: PairGrid, arguments: Mapping[str, Any]) -> PairGrid | None:
    """*grid*, made by ``expand_pairs(**arguments)``, with candidates that it has not used, as many of each group.

    None where the candidates were given in the test, or the banks have not as many names again; and where an arm draws
    its stand-ins from the same names.
    """
    if any(arm.placebo for arm in grid.arms):
        return None
    try:
        wider = expand_pairs(**{**arguments, "names": 2 * grid.tuples, "repetitions": 2 * grid.tuples, "sample": None})
    except UsageError:
        return None
    used = {(label, one.name) for casts in grid.casts.values() for cast in casts for label, one in cast.items()}
    others: dict[str, tuple[Cast, ...]] = {}
    for condition, casts in wider.casts.items():
        left: dict[str, dict[str | None, Candidate]] = {label: {} for label in casts[0]}
        for label, one in ((label, one) for cast in casts for label, one in cast.items()):
            if (label, one.name) not in used and len(left[label]) < grid.tuples:
                left[label][one.name] = one
        if any(len(found) < grid.tuples or None in found for found in left.values()):
            return None
        others[condition] = _casts({label: list(found.values()) for label, found in left.items()}, grid.tuples)
    return replace(grid, casts=others, fewest_names=grid.tuples)
