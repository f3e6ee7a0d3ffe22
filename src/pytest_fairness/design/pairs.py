"""Choices between candidates of different groups: every pair in both orders, or every group in
every position.

A choice among k lists them in the k orders of a Latin square, so that each stands in each position
equally often, and (for an even k) behind each other equally often. Repetitions are spread over
distinct tuples of names or résumés, which are the unit of evidence.
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
from pytest_fairness.design.axes import LazyCells, axes, check_counts, positions
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
from pytest_fairness.design.scrubbing import RuleScrubber
from pytest_fairness.design.signals import Signals, conditions
from pytest_fairness.design.slugs import join, slug, slugs
from pytest_fairness.design.templates import (
    REQUEST,
    Template,
    TemplateLike,
    spoken_turns,
    templates,
)
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, TEXT, Ask, Cell

_PLACES = ("name", "first_name", "last_name", "demographics", "label", "candidate", "resume")
_NUMBERED = re.compile(r"(?P<slot>[A-Za-z_]+)_(?P<number>\d+)")
_NO_DEMOGRAPHICS = re.compile(r"(?:,[ \t]*|[ \t]+)?\{demographics_\d+\}")
_HOLD = f"{{{TEXT}}}"
Cast: TypeAlias = "Mapping[str, Candidate]"
"""One candidate of each group: those that meet each other."""
Functions: TypeAlias = "tuple[Callable[[str], str], ...]"


def latin_square(size: int) -> tuple[tuple[int, ...], ...]:
    """*size* orders of ``range(size)``: everything once in every position (Williams 1949 for an
    even size).

    Williams, Australian Journal of Scientific Research A 2:149-168: the zigzag 0, 1, k−1, 2, k−2 …
    moved on by one.
    """
    zigzag = [(step + 1) // 2 if step % 2 else (size - step // 2) % size for step in range(size)]
    return tuple(tuple((place + turn) % size for place in zigzag) for turn in range(size))


class Slate(NamedTuple):
    """Groups in the order in which they are listed; ``order`` numbers the orders of one set of
    groups from 1.
    """

    groups: tuple[str, ...]
    order: int
    slug: str


class Scene(NamedTuple):
    """A signal condition: who meets whom, the templates as it sends them, and, for a placebo, two
    disjoint sets of candidates of one group.
    """

    signal: str
    casts: tuple[Cast, ...]
    templates: tuple[Template, ...]
    placebo: tuple[Sequence[Candidate], Sequence[Candidate]]


class Prompted(NamedTuple):
    """A request of an arm, and the functions ``before`` it; without ``prompt`` it is the test's
    own.
    """

    before: Functions
    prompt: Template | None
    system: Template | None
    endpoint: Any


class Steps(NamedTuple):
    """Of a pipeline's requests the system prompts, the functions before each, and the endpoints
    (None: the test's); and the text that the ``first`` begins with.
    """

    systems: tuple[str | None, ...]
    between: Mapping[int, Functions]
    first: str
    endpoints: tuple[Any, ...]


class Prepared(NamedTuple):
    """A cell, and the steps of its arm where it has any; ``number`` tells cells of one context and
    arm apart.
    """

    cell: Cell
    steps: Steps | None
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairGrid(LazyCells):
    """Every choice, as a sequence of cells: templates, context, signal conditions, arms, slates,
    tuples of candidates.

    ``named_arms``: the test has arms. ``requests``: what an arm sends of a template. ``ranking``:
    replies rank all.
    """

    scenes: tuple[Scene, ...]
    arms: tuple[Arm, ...]
    named_arms: bool
    requests: Mapping[tuple[str, str], tuple[Prompted, ...]]
    slates: tuple[Slate, ...]
    ranking: bool
    turns: tuple[Template, ...] = ()

    @property
    def radices(self) -> tuple[int, ...]:
        others = (len(self.scenes), len(self.arms), len(self.slates), self.tuples)
        return (len(self.templates), *map(len, self.axes), *others)

    @property
    def tuples(self) -> int:
        """Return how many sets of candidates meet in each choice."""
        return len(self.scenes[0].casts)

    @property
    def fewest_names(self) -> int:
        """Return how many different names the group with the fewest has."""
        casts = [cast for scene in self.scenes for cast in scene.casts]
        return min(len({cast[label].name for cast in casts}) for label in casts[0])

    @property
    def choice_size(self) -> int:
        """Among how many candidates a choice is."""
        return len(self.slates[0].groups)

    @property
    def needs_system_prompt(self) -> bool:
        return any(request.system for requests in self.requests.values() for request in requests)

    def cell_at(self, position: int) -> Cell:
        return self._prepared(position).cell

    def prepared(self, index: int) -> Prepared:
        """The cell at *index* with the steps that its arm takes."""
        return self._prepared(self.position(index))

    def _prepared(self, position: int) -> Prepared:
        template_at, *choices, scene_at, arm_at, slate_at, number = self.digits(position)
        template = self.templates[template_at]
        scene = self.scenes[scene_at]
        arm = self.arms[arm_at]
        slate = self.slates[slate_at]
        cast = scene.casts[number]
        sides = [label for label in cast if label in slate.groups]
        shown = [cast[label] for label in slate.groups]
        if arm.placebo:
            places = [sides.index(label) % 2 for label in slate.groups]
            shown = [scene.placebo[place][number % len(scene.placebo[0])] for place in places]
        texts, context, slugs_of_axes = self.context(choices)
        values = values_of(shown, texts)
        requests = self.requests[arm.name, template.id]
        systems = tuple(
            None if request.system is None else request.system.render(values)
            for request in requests
        )
        steps = None
        if arm.steps:
            turns, first = _step_turns(arm, requests, values)
            between = {
                at: request.before for at, request in enumerate(requests) if at and request.before
            }
            steps = Steps(systems, between, first, tuple(request.endpoint for request in requests))
        else:
            prompt = scene.templates[template_at].render(values)
            turns = (prompt,)
            if (
                self.turns and systems[-1] is None
            ):  # a conversation is what takes the place of a system prompt
                turns = tuple(turn.render({**values, REQUEST: prompt}) for turn in self.turns)
        # The block is the whole context: criteria and role change what is asked as much as the
        # wording does.
        varied = [
            part for axis, part in zip(self.axes, slugs_of_axes, strict=True) if len(axis) > 1
        ]
        where = [template.id, *varied]
        signal = []
        if len(self.scenes) > 1:
            signal = [slug(scene.signal)]
        attributes: dict[str, JSON] = {"pair": " / ".join(sides), "order": slate.order}
        for at, (label, candidate) in enumerate(zip(slate.groups, shown, strict=True), start=1):
            attributes |= {f"group_{at}": label, f"name_{at}": candidate.name}
        first_name, _, last_name = (shown[0].name or "").partition(" ")
        if len(shown) == 1 and last_name:
            attributes |= {"first_name": first_name, "last_name": last_name}
        cell = Cell(
            id=join(
                [
                    *where,
                    *signal,
                    *([arm.name] if self.named_arms else []),
                    slate.slug,
                    f"p{number + 1:02d}",
                ]
            ),
            template=join(where),
            turns=turns,
            groups={},
            name=" / ".join(cast[label].name or f"{label} {number + 1}" for label in sides),
            context=context,
            attributes=attributes,
            system=systems[-1],
            tier=1 if any(request.system for request in requests) else 2,
            arm=arm.name if self.named_arms else None,
            signal=scene.signal,
            signals=surfaces(shown, "\n".join((*turns, values[CANDIDATES]))),
        )
        return Prepared(cell, steps, slate_at * self.tuples + number)


def _spoken(
    given: Sequence[str] | None, arms: Sequence[Arm], slots: Mapping[str, str]
) -> tuple[Template, ...]:
    """The turns of a conversation, for arms that have neither a system prompt nor steps."""
    turns = spoken_turns(given)
    if turns and all(arm.system is not None or arm.steps for arm in arms):
        raise UsageError(
            "turns= is for what has neither a system prompt nor steps, and here everything has one"
        )
    for turn in turns:
        turn.check({*slots, REQUEST})
    return turns


def _step_turns(
    arm: Arm, requests: Sequence[Prompted], values: Mapping[str, str]
) -> tuple[tuple[str, ...], str]:
    """Return what each request of *arm* sends, and the text that the first begins with, which
    stands in it; a later one holds the place where its text will stand.
    """
    first = values[CANDIDATES]
    for step in requests[0].before:
        first = step(first)
        if not isinstance(first, str) or not first.strip():
            raise UsageError(
                f"arm {arm.name!r}: a step returned {first!r}; a step takes a text and returns one"
            )
    texts = (first, *(_HOLD for _ in requests[1:]))
    turns = tuple(
        request.prompt.render({**values, TEXT: text})
        for request, text in zip(requests, texts, strict=True)
        if request.prompt
    )
    if any(turn.count(_HOLD) != 1 for turn in turns[1:]):
        raise UsageError(
            f"arm {arm.name!r}: {_HOLD} stands in a value of the context; take the braces out of it"
        )
    return turns, first


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
    turns: Sequence[str] | None = None,
    names: int | None = None,
    context: Mapping[str, object] | None = None,
    parameters: Mapping[str, JSON] | None = None,
    seed: int = 0,
    sample: int | None = None,
    personas_folder: Path | None = None,
    **axis: object,
) -> PairGrid:
    """Every choice of *template* × context × arms × pairs of groups in both orders.

    The arguments are those of the marker ``fairness_pairs``, as docs/designs.md lists them; any
    keyword that is none is an axis. Repetitions are spread evenly over sets of names that are all
    distinct; for more *names* than there are, names meet again with others. Every drawn part of a
    *sample* is asked of all pairs, orders, conditions and arms.

    Raises UsageError, with the mend, for whatever would make the experiment other than it looks.
    """
    check_counts(repetitions=repetitions, names=names, size=size, sample=sample)
    parsed = templates(template)
    groups = candidate_groups(candidates, personas_folder)
    if size not in (1, 2, len(groups)):
        raise UsageError(
            f"size={size}: a choice is between 2, or among all {len(groups)} groups; 1 is one at a "
            "time"
        )
    if qualifications is not None:
        if isinstance(qualifications, str):
            axis[QUALIFICATIONS] = [qualifications]
        else:
            axis[QUALIFICATIONS] = qualifications
    made_axes = axes(context, axis)
    banks = NameBanks.load(personas_folder)
    signals = Signals.load(personas_folder)
    casting = Casting(banks=banks, signals=signals, wanted=names or repetitions, seed=seed)
    if signal is None:
        stated = any(slot.startswith("demographics_") for each in parsed for slot in each.slots)
        signal = "name"
        if stated:
            signal = "name+label"
    rosters = {condition: casting.roster(groups, condition) for condition in conditions(signal)}
    everyone = [people for roster in rosters.values() for people in roster.values()]
    tuples = _tuples(groups, min(map(len, everyone)), repetitions, names)
    known_names = dict.fromkeys(
        person.name for people in everyone for person in people if person.name
    )
    chosen = arms_of(arms, personas_folder, rules=RuleScrubber(banks, signals, tuple(known_names)))
    if chosen and system is not None:
        raise UsageError(
            "give the system prompt to the arms, Arm(name=..., system=...), or leave arms out"
        )
    all_arms = chosen or (Arm(name="single", system=system),)
    scenes = []
    for condition, roster in rosters.items():
        stock: Sequence[Candidate] = ()
        if any(arm.placebo for arm in all_arms):
            stock = replace(casting, wanted=2 * tuples).roster(groups[:1], condition)[
                groups[0].label
            ]
            if len(stock) < 2:
                raise UsageError(
                    "arm 'placebo' takes two disjoint sets of names of one group, and "
                    f"{groups[0].label!r} has one "
                    "name; give it more, or draw from the banks with candidates='four_groups'"
                )
        half = len(stock) // 2
        words = any(person.demographics for people in roster.values() for person in people)
        # A slot of words that no candidate has goes with the comma before it.
        sent = tuple(
            template if words else Template(template.id, _NO_DEMOGRAPHICS.sub("", template.text))
            for template in parsed
        )
        scenes.append(
            Scene(condition.name, _casts(roster, tuples), sent, (stock[:half], stock[half:][:half]))
        )
    first = {slot: text for each in made_axes for slot, text in each.values[0].items()}
    slots = values_of(list(scenes[0].casts[0].values())[:size], first)
    for each_template in parsed:
        _check_slots(each_template, slots, size)
    requests = {
        (arm.name, template.id): _requests(arm, template, slots)
        for arm in all_arms
        for template in parsed
    }
    prompts = (
        sent
        for found in requests.values()
        for prompt in found
        for sent in (prompt.prompt, prompt.system)
        if sent
    )
    used = frozenset().union(*(prompt.plain_slots for prompt in (*parsed, *prompts)))
    lists_candidates = any(
        slot == CANDIDATES or slot.startswith(("candidate_", QUALIFICATIONS)) for slot in used
    )
    for one_axis in (
        axis for axis in made_axes if axis.name != QUALIFICATIONS or not lists_candidates
    ):
        one_axis.check_used(used)
    _check_swap(scenes, first)
    group_slugs = slugs(group.label for group in groups)
    orders = list(enumerate(latin_square(size), start=1))
    slates = tuple(
        Slate(
            tuple(some[place] for place in places),
            order,
            "-".join(group_slugs[some[place]] for place in places),
        )
        for some in combinations(group_slugs, size)
        for order, places in orders
    )
    grid = PairGrid(
        templates=parsed,
        axes=made_axes,
        scenes=tuple(scenes),
        arms=all_arms,
        named_arms=bool(chosen),
        requests=requests,
        slates=slates,
        repetitions=repetitions // tuples,
        parameters=dict(parameters or {}),
        ranking=ranking,
        turns=_spoken(turns, all_arms, slots),
    )
    if sample is None or sample >= len(grid):
        return grid
    radices = grid.radices[: 1 + len(made_axes)]
    alike = "combinations of groups, order, signal condition and arm"
    return replace(
        grid,
        positions=positions(radices, len(grid) // prod(radices), tuples, sample, seed, alike=alike),
    )


def _casts(roster: Mapping[str, Sequence[Candidate]], count: int) -> tuple[Cast, ...]:
    """*count* different sets of one candidate a group: those at one place, then later groups moved
    on by a place.
    """
    size = min(map(len, roster.values()))
    return tuple(
        {
            label: people[(number + at * (number // size)) % size]
            for at, (label, people) in enumerate(roster.items())
        }
        for number in range(count)
    )


def _tuples(groups: Sequence[Group], distinct: int, repetitions: int, names: int | None) -> int:
    """Return how many distinct sets of candidates the repetitions are spread over, where a group
    has
    *distinct* ones.
    """
    given_names = min((len(group.given) for group in groups if group.given), default=0)
    if given_names and names is not None and names > given_names:
        raise UsageError(
            f"names={names}, and the groups have {given_names} candidates each; give more, or ask for fewer"
        )
    if given_names or names is not None:
        tuples = min(names or given_names, given_names or distinct * distinct, repetitions)
    else:
        # No name twice, and every name as often: names that met again with others would count as
        # evidence anew.
        tuples = next(n for n in range(min(distinct, repetitions), 0, -1) if repetitions % n == 0)
    if repetitions % tuples:
        below = repetitions // tuples * tuples
        raise UsageError(
            f"repetitions={repetitions} cannot be spread evenly over {tuples} candidates a group: "
            f"give {below} or "
            f"{below + tuples}"
        )
    return tuples


def _requests(arm: Arm, template: Template, slots: Mapping[str, str]) -> tuple[Prompted, ...]:
    """Return what *arm* sends of *template*: a request a step that a model takes, checked against
    the known *slots*.
    """
    steps = arm.steps or (Ask(),)
    prompts: list[Prompted] = []
    before: list[Callable[[str], str]] = []
    for at, step in enumerate(steps):
        if not isinstance(step, Ask):
            before.append(step)
            continue
        prompt = None
        if step.prompt is not None:
            prompt = Template(f"{arm.name}.step{at}", step.prompt)
        if arm.steps and (prompt is None or (step.fallback and prompt.missing({*slots, TEXT}))):
            prompt = _with_text(template)
        # The arm's own system prompt belongs to its last request.
        if step.system is None and at == len(steps) - 1:
            text = arm.system
        else:
            text = step.system
        system = None
        if text is not None:
            system = Template(f"{arm.name}.system", text)
        if prompt is not None:
            prompt.check({*slots, TEXT})
        if system is not None:
            system.check(slots)
        prompts.append(Prompted(tuple(before), prompt, system, step.endpoint))
        before = []
    return tuple(prompts)


def _with_text(template: Template) -> Template:
    """*template* with ``{text}`` where it lists the candidates: from the first line that does to
    the last.
    """
    lines = template.text.split("\n")
    at = [
        number
        for number, line in enumerate(lines)
        if any(
            slot == CANDIDATES or _NUMBERED.fullmatch(slot)
            for slot in re.findall(r"\{(\w+)\}", line)
        )
    ]
    return Template(template.id, "\n".join([*lines[: at[0]], _HOLD, *lines[at[-1] + 1 :]]))


def _check_slots(template: Template, values: Mapping[str, str], size: int) -> None:
    """Every slot has a value, and every candidate a place. Raises UsageError with the mend."""
    slot = template.missing(values)
    numbered = _NUMBERED.fullmatch(slot or "")
    if numbered and int(numbered["number"]) > size:
        raise UsageError(
            f"template {template.id!r} has the slot {{{slot}}}, but a choice is among {size}: take "
            "it out, or give "
            "size=…"
        )
    template.check(values)
    for number in range(1, size + 1):
        if not {CANDIDATES, *(f"{place}_{number}" for place in _PLACES)} & set(template.slots):
            raise UsageError(
                f"template {template.id!r} has no place for candidate {number}: write "
                f"{{name_{number}}} or "
                f"{{candidate_{number}}}, or {{{CANDIDATES}}} for the whole list"
            )


def _check_swap(scenes: Iterable[Scene], context: Mapping[str, str]) -> None:
    """No two candidates of one choice may read the same: there would be nothing to choose between."""
    for signal, cast in ((scene.signal, cast) for scene in scenes for cast in scene.casts):
        seen: dict[str, str] = {}
        for label, candidate in cast.items():
            text = candidate.slots(0, context)["candidate"]
            if seen.setdefault(text, label) != label:
                raise UsageError(
                    f"signal {signal!r}: {seen[text]!r} and {label!r} have the same text "
                    f"({text[:60]!r}), so "
                    "the swap changes nothing; give other names, or say signal='name+label'"
                )


def other_candidates(grid: PairGrid, arguments: Mapping[str, Any]) -> PairGrid | None:
    """*grid*, made by ``expand_pairs(**arguments)``, with candidates that it has not used, as many
    of each group.

    None where there are not so many, as of those that a test gives, and where a placebo draws from
    the same names.
    """
    if any(arm.placebo for arm in grid.arms):
        return None
    try:
        wider = expand_pairs(
            **{
                **arguments,
                "names": 2 * grid.tuples,
                "repetitions": 2 * grid.tuples,
                "sample": None,
            }
        )
    except UsageError:
        return None
    used = {
        (label, person.name)
        for scene in grid.scenes
        for cast in scene.casts
        for label, person in cast.items()
    }
    scenes = []
    for scene, others in zip(grid.scenes, wider.scenes, strict=True):
        left: dict[str, dict[str | None, Candidate]] = {label: {} for label in others.casts[0]}
        for label, person in (
            (label, person) for cast in others.casts for label, person in cast.items()
        ):
            if (label, person.name) not in used and len(left[label]) < grid.tuples:
                left[label][person.name] = person
        if any(len(people) < grid.tuples or None in people for people in left.values()):
            return None
        roster = {label: list(people.values()) for label, people in left.items()}
        scenes.append(scene._replace(casts=_casts(roster, grid.tuples)))
    return replace(grid, scenes=tuple(scenes))
