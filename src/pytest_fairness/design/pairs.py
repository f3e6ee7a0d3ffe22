"""Choices between candidates of different groups: every pair in both orders, or every group in
every position.

A choice among k lists them in the k orders of a Latin square, so that each stands in each position
equally often, and (for an even k) behind each other equally often. Repetitions are spread over
distinct tuples of names or résumés, which are the unit of evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pytest_fairness.design.arms import Arm, arms_of
from pytest_fairness.design.axes import Axis, LazyCells, axes, check_counts, positions
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
from pytest_fairness.design.signals import Condition, Signals, conditions
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
        shown = _shown(scene, arm, slate, number)
        texts, context, slugs_of_axes = self.context(choices)
        values = values_of(shown, texts)
        requests = self.requests[arm.name, template.id]
        systems = tuple(_rendered(request.system, values) for request in requests)
        steps = None
        if arm.steps:
            turns, first = _step_turns(arm, requests, values)
            between = {
                at: request.before for at, request in enumerate(requests) if at and request.before
            }
            steps = Steps(systems, between, first, tuple(request.endpoint for request in requests))
        else:
            prompt = scene.templates[template_at].render(values)
            turns = self._turns(prompt, values, spoken=systems[-1] is None)
        # The block is the whole context: criteria and role change what is asked as much as the
        # wording does.
        where = [template.id]
        for axis, part in zip(self.axes, slugs_of_axes, strict=True):
            if len(axis) > 1:
                where.append(part)
        attributes: dict[str, JSON] = {"pair": " / ".join(sides), "order": slate.order}
        attributes |= _people_of(slate, shown)
        name_of_arm = None
        if self.named_arms:
            name_of_arm = arm.name
        tier = 2
        if any(request.system for request in requests):
            tier = 1
        cell = Cell(
            id=join([*where, *self._id_parts(scene, arm), slate.slug, f"p{number + 1:02d}"]),
            template=join(where),
            turns=turns,
            groups={},
            name=" / ".join(cast[label].name or f"{label} {number + 1}" for label in sides),
            context=context,
            attributes=attributes,
            system=systems[-1],
            tier=tier,
            arm=name_of_arm,
            signal=scene.signal,
            signals=surfaces(shown, "\n".join((*turns, values[CANDIDATES]))),
        )
        return Prepared(cell, steps, slate_at * self.tuples + number)

    def _turns(self, prompt: str, values: Mapping[str, str], *, spoken: bool) -> tuple[str, ...]:
        """Return what is sent; where it is *spoken*, a conversation takes the place of a system
        prompt.
        """
        if self.turns and spoken:
            return tuple(turn.render({**values, REQUEST: prompt}) for turn in self.turns)
        return (prompt,)

    def _id_parts(self, scene: Scene, arm: Arm) -> list[str]:
        """Return the parts of a cell's id that tell conditions and arms apart."""
        parts = []
        if len(self.scenes) > 1:
            parts.append(slug(scene.signal))
        if self.named_arms:
            parts.append(arm.name)
        return parts


def _shown(scene: Scene, arm: Arm, slate: Slate, number: int) -> list[Candidate]:
    """Return the candidates in the order of *slate*: in an arm that is a placebo, of one group."""
    cast = scene.casts[number]
    if not arm.placebo:
        return [cast[label] for label in slate.groups]
    sides = [label for label in cast if label in slate.groups]
    places = [sides.index(label) % 2 for label in slate.groups]
    return [scene.placebo[place][number % len(scene.placebo[0])] for place in places]


def _rendered(template: Template | None, values: Mapping[str, str]) -> str | None:
    if template is None:
        return None
    return template.render(values)


def _people_of(slate: Slate, shown: Sequence[Candidate]) -> dict[str, JSON]:
    """Return groups and names by their places in the list; of one person, the parts of the name."""
    attributes: dict[str, JSON] = {}
    for at, (label, candidate) in enumerate(zip(slate.groups, shown, strict=True), start=1):
        attributes |= {f"group_{at}": label, f"name_{at}": candidate.name}
    first_name, _, last_name = (shown[0].name or "").partition(" ")
    if len(shown) == 1 and last_name:
        attributes |= {"first_name": first_name, "last_name": last_name}
    return attributes


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
    if isinstance(qualifications, str):
        axis[QUALIFICATIONS] = [qualifications]
    elif qualifications is not None:
        axis[QUALIFICATIONS] = qualifications
    design = PairDesign(
        templates=parsed,
        groups=groups,
        axes=axes(context, axis),
        banks=NameBanks.load(personas_folder),
        signals=Signals.load(personas_folder),
        size=size,
        repetitions=repetitions,
        names=names,
        seed=seed,
    )
    rosters = design.draw(signal)
    distinct = min(len(people) for roster in rosters.values() for people in roster.values())
    tuples = _tuples(groups, distinct, repetitions, names)
    chosen = arms_of(arms, personas_folder, rules=design.scrubber(rosters))
    if chosen and system is not None:
        raise UsageError(
            "give the system prompt to the arms, Arm(name=..., system=...), or leave arms out"
        )
    all_arms = chosen or (Arm(name="single", system=system),)
    scenes = design.scenes(rosters, tuples, placebo=any(arm.placebo for arm in all_arms))
    slots = design.slots(scenes[0])
    grid = PairGrid(
        templates=parsed,
        axes=design.axes,
        scenes=scenes,
        arms=all_arms,
        named_arms=bool(chosen),
        requests=design.check(all_arms, scenes),
        slates=_slates(groups, size),
        repetitions=repetitions // tuples,
        parameters=dict(parameters or {}),
        ranking=ranking,
        turns=_spoken(turns, all_arms, slots),
    )
    if sample is None or sample >= len(grid):
        return grid
    radices = grid.radices[: 1 + len(design.axes)]
    alike = "combinations of groups, order, signal condition and arm"
    return replace(
        grid,
        positions=positions(radices, len(grid) // prod(radices), tuples, sample, seed, alike=alike),
    )


#: Candidates of each group, by its label.
Roster: TypeAlias = "Mapping[str, Sequence[Candidate]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDesign:
    """A design of pairs as it was declared, each argument read by itself; from it names are drawn,
    what is sent is checked, and a grid is made.
    """

    templates: tuple[Template, ...]
    groups: tuple[Group, ...]
    axes: tuple[Axis, ...]
    banks: NameBanks
    signals: Signals
    size: int
    repetitions: int
    names: int | None
    seed: int

    def casting(self, wanted: int) -> Casting:
        """Return what draws so many candidates a group."""
        return Casting(banks=self.banks, signals=self.signals, wanted=wanted, seed=self.seed)

    def draw(self, signal: str | Sequence[str] | None) -> dict[Condition, Roster]:
        """Draw the candidates of each condition of *signal*: by default the name, and words where
        a template has a slot for them.
        """
        if signal is None:
            signal = "name"
            if any(slot.startswith("demographics_") for slot in self._slots_of_templates()):
                signal = "name+label"
        casting = self.casting(self.names or self.repetitions)
        return {
            condition: casting.roster(self.groups, condition) for condition in conditions(signal)
        }

    def _slots_of_templates(self) -> Iterator[str]:
        for template in self.templates:
            yield from template.slots

    def scrubber(self, rosters: Mapping[Condition, Roster]) -> RuleScrubber:
        """Return the rules that know the names of all candidates of *rosters*."""
        names: dict[str, None] = {}
        for roster in rosters.values():
            for people in roster.values():
                names |= dict.fromkeys(person.name for person in people if person.name)
        return RuleScrubber(self.banks, self.signals, tuple(names))

    def scenes(
        self, rosters: Mapping[Condition, Roster], tuples: int, *, placebo: bool
    ) -> tuple[Scene, ...]:
        """Return what each condition shows: its casts, its templates, and where an arm is a
        *placebo* two disjoint sets of names of one group.
        """
        scenes = []
        for condition, roster in rosters.items():
            stock: Sequence[Candidate] = ()
            if placebo:
                stock = self._placebo_stock(condition, tuples)
            half = len(stock) // 2
            scenes.append(
                Scene(
                    condition.name,
                    _casts(roster, tuples),
                    self._templates_for(roster),
                    (stock[:half], stock[half:][:half]),
                )
            )
        return tuple(scenes)

    def _placebo_stock(self, condition: Condition, tuples: int) -> Sequence[Candidate]:
        label = self.groups[0].label
        stock = self.casting(2 * tuples).roster(self.groups[:1], condition)[label]
        if len(stock) < 2:
            raise UsageError(
                "arm 'placebo' takes two disjoint sets of names of one group, and "
                f"{label!r} has one name; give it more, or draw from the banks with "
                "candidates='four_groups'"
            )
        return stock

    def _templates_for(self, roster: Roster) -> tuple[Template, ...]:
        """Return the templates; a slot of words that no candidate has goes with the comma before
        it.
        """
        if any(person.demographics for people in roster.values() for person in people):
            return self.templates
        return tuple(
            Template(template.id, _NO_DEMOGRAPHICS.sub("", template.text))
            for template in self.templates
        )

    @property
    def first_context(self) -> dict[str, str]:
        """The texts of the first value of each axis."""
        texts: dict[str, str] = {}
        for axis in self.axes:
            texts |= axis.values[0]
        return texts

    def slots(self, scene: Scene) -> dict[str, str]:
        """Return the slots that templates may have, with the texts of the first choice."""
        people = list(scene.casts[0].values())[: self.size]
        return values_of(people, self.first_context)

    def check(
        self, arms: Sequence[Arm], scenes: Sequence[Scene]
    ) -> dict[tuple[str, str], tuple[Prompted, ...]]:
        """Check templates, prompts and axes against each other; return what each arm sends of each
        template.
        """
        slots = self.slots(scenes[0])
        for template in self.templates:
            _check_slots(template, slots, self.size)
        requests = {
            (arm.name, template.id): _requests(arm, template, slots)
            for arm in arms
            for template in self.templates
        }
        used: set[str] = set()
        for template in self.templates:
            used |= template.plain_slots
        for sent in requests.values():
            for request in sent:
                for prompt in (request.prompt, request.system):
                    if prompt:
                        used |= prompt.plain_slots
        self._check_axes(frozenset(used))
        _check_swap(scenes, self.first_context)
        return requests

    def _check_axes(self, used: frozenset[str]) -> None:
        """Raise UsageError for an axis that no template and no prompt has a slot for."""
        lists_candidates = any(
            slot == CANDIDATES or slot.startswith(("candidate_", QUALIFICATIONS)) for slot in used
        )
        for axis in self.axes:
            if axis.name != QUALIFICATIONS or not lists_candidates:
                axis.check_used(used)


def _slates(groups: Sequence[Group], size: int) -> tuple[Slate, ...]:
    """Return each choice of *size* groups in each order of a Latin square."""
    group_slugs = slugs(group.label for group in groups)
    orders = list(enumerate(latin_square(size), start=1))
    slates = []
    for labels in combinations(group_slugs, size):
        for order, places in orders:
            shown = tuple(labels[place] for place in places)
            slates.append(Slate(shown, order, "-".join(group_slugs[label] for label in shown)))
    return tuple(slates)


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
    twice = 2 * grid.tuples
    try:
        wider = expand_pairs(**{**arguments, "names": twice, "repetitions": twice, "sample": None})
    except UsageError:
        return None
    used: set[tuple[str, str | None]] = set()
    for scene in grid.scenes:
        for cast in scene.casts:
            used.update((label, person.name) for label, person in cast.items())
    scenes = []
    for scene, others in zip(grid.scenes, wider.scenes, strict=True):
        roster = _unused(others.casts, used, grid.tuples)
        if roster is None:
            return None
        scenes.append(scene._replace(casts=_casts(roster, grid.tuples)))
    return replace(grid, scenes=tuple(scenes))


def _unused(
    casts: Sequence[Mapping[str, Candidate]], used: Set[tuple[str, str | None]], number: int
) -> dict[str, list[Candidate]] | None:
    """*number* candidates of each group in *casts* that are not *used*; None where a group has
    fewer, or one without a name.
    """
    left: dict[str, dict[str | None, Candidate]] = {label: {} for label in casts[0]}
    for cast in casts:
        for label, person in cast.items():
            if (label, person.name) not in used and len(left[label]) < number:
                left[label][person.name] = person
    for people in left.values():
        if len(people) < number or None in people:
            return None
    return {label: list(people.values()) for label, people in left.items()}
