"""Choices between candidates of different groups: every pair in both orders, or every group in
every position.

A choice among k lists them in the k orders of a Latin square, so that each stands in each position
equally often, and (for an even k) behind each other equally often. Repetitions are spread over
distinct tuples of names or résumés, which are the unit of evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, combinations, repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pytest_fairness.design.answer_forms import (
    ENGLISH,
    UNFILLED,
    AnswerForm,
    AnswerSentences,
    ChoiceForm,
    answer_form,
    choice_form,
)
from pytest_fairness.design.arms import Arm, arms_of
from pytest_fairness.design.axes import (
    AskedTexts,
    LazyCells,
    Pair,
    axes,
    check_counts,
)
from pytest_fairness.design.candidates import (
    QUALIFICATIONS,
    Candidate,
    Casting,
    Group,
    called_in,
    candidate_groups,
    labels_of,
    surfaces,
    values_of,
)
from pytest_fairness.design.locales import Locale, read_locale
from pytest_fairness.design.scrubbing import RuleScrubber
from pytest_fairness.design.signals import Condition, conditions
from pytest_fairness.design.slugs import join, slug, slugs
from pytest_fairness.design.stages import BASE, Stages
from pytest_fairness.design.templates import (
    REQUEST,
    Template,
    TemplateLike,
    spoken_turns,
    templates,
)
from pytest_fairness.design.units import Banks
from pytest_fairness.errors import UsageError
from pytest_fairness.model import CANDIDATES, JSON, TEXT, Ask, Cell

_PLACES = ("name", "first_name", "last_name", "demographics", "label", "candidate", "resume")
_NUMBERED = re.compile(r"(?P<slot>[A-Za-z_]+)_(?P<number>\d+)")
_NO_DEMOGRAPHICS = re.compile(r"(?:,[ \t]*|[ \t]+)?\{demographics_\d+\}")
#: Slots by which a prompt lists its candidates.
_OF_CANDIDATES = re.compile(rf"{CANDIDATES}\Z|candidate_|{QUALIFICATIONS}")
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
    zigzag = []
    for step in range(size):
        if step % 2:
            zigzag.append((step + 1) // 2)
        else:
            zigzag.append((size - step // 2) % size)
    return tuple(tuple((place + turn) % size for place in zigzag) for turn in range(size))


class Slate(NamedTuple):
    """Groups in the order in which they are listed; ``order`` numbers the orders of one set of
    groups from 1.
    """

    groups: tuple[str, ...]
    order: int
    slug: str

    def sides(self, cast: Iterable[str]) -> list[str]:
        """Return those groups of *cast* that are set against each other, in its order."""
        return [label for label in cast if label in self.groups]


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

    @property
    def slots(self) -> frozenset[str]:
        """The slots of the prompt and of the system prompt, articles aside."""
        texts = filter(None, (self.prompt, self.system))
        return frozenset().union(*(text.plain_slots for text in texts))


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
    arm apart; ``form`` is that of its answer.
    """

    cell: Cell
    steps: Steps | None
    number: int
    form: AnswerForm | None


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
        names: dict[str, set[str | None]] = {}
        for scene in self.scenes:
            for cast in scene.casts:
                for label, person in cast.items():
                    names.setdefault(label, set()).add(person.name)
        return min(map(len, names.values()))

    @property
    def choice_size(self) -> int:
        """Among how many candidates a choice is."""
        return len(self.slates[0].groups)

    @property
    def needs_system_prompt(self) -> bool:
        """Return whether any request has a system prompt, which tier 2 has no place for."""
        return any(_tier_of(requests) == 1 for requests in self.requests.values())

    def cell_at(self, position: int) -> Cell:
        return self._prepared(position).cell

    def prepared(self, index: int) -> Prepared:
        """The cell at *index* with the steps that its arm takes."""
        return self._prepared(self.position(index))

    def _prepared(self, position: int) -> Prepared:
        """Return what the cell at *position* is made of, the candidates in the order shown."""
        template_at, *choices, scene_at, arm_at, slate_at, number = self.digits(position)
        template = self.templates[template_at]
        scene = self.scenes[scene_at]
        arm = self.arms[arm_at]
        slate = self.slates[slate_at]
        cast = scene.casts[number]
        sides = slate.sides(cast)
        shown = _shown(scene, arm, slate, number)
        texts, context, slugs_of_axes = self.context(choices)
        values = values_of(shown, texts)
        if self.answer is not None:  # filled once it is known by which way an endpoint is asked
            values |= UNFILLED
        requests = self.requests[arm.name, template.id]
        system = _rendered(requests[-1].system, values)
        steps = None
        if arm.steps:
            turns, steps = _steps(arm, requests, values)
        else:
            prompt = scene.templates[template_at].render(values)
            turns = self._turns(prompt, values, spoken=system is None)
        where = self._block(template, slugs_of_axes)
        named_arm = None
        if self.named_arms:
            named_arm = arm.name
        cell = Cell(
            id=join([*where, *self._id_parts(scene, arm), slate.slug, f"p{number + 1:02d}"]),
            template=join(where),
            turns=turns,
            groups={},
            name=" / ".join(cast[label].name or f"{label} {number + 1}" for label in sides),
            context=context,
            attributes={
                "pair": " / ".join(sides),
                "order": slate.order,
                **_people_of(slate, shown),
                **self._draw(position),
            },
            system=system,
            tier=_tier_of(requests),
            arm=named_arm,
            signal=scene.signal,
            signals=surfaces(shown, "\n".join((*turns, values[CANDIDATES]))),
        )
        form = self._form(arm, cell, shown)
        return Prepared(cell, steps, slate_at * self.tuples + number, form)

    def _form(self, arm: Arm, cell: Cell, shown: Sequence[Candidate]) -> AnswerForm | None:
        """Return the form of the answer to *cell*: of a choice, as it calls the candidates *shown*;
        None where nobody asks for one.
        """
        form = self.answer
        if not arm.chooses:
            return None
        if not isinstance(form, ChoiceForm):
            return form
        if len(cell.turns) > 1 and arm.steps:
            # What a model makes of the list is not known yet: by label, as a scrubber names them.
            return form.among(labels_of(shown))
        return form.among(called_in("\n".join(cell.turns), shown))

    def drawn(self, position: int) -> tuple[int, Set[Pair]]:
        return position % self.tuples + 1, frozenset()

    def _block(self, template: Template, slugs_of_axes: Sequence[str]) -> list[str]:
        """Return the parts of a block's id. It is the whole context: criteria and role change what
        is asked as much as the wording does.
        """
        where = [template.id]
        for axis, part in zip(self.axes, slugs_of_axes, strict=True):
            if len(axis) > 1:
                where.append(part)
        return where

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
        return list(map(cast.__getitem__, slate.groups))
    sides = slate.sides(cast)
    shown = []
    for label in slate.groups:
        stock = scene.placebo[sides.index(label) % 2]
        shown.append(stock[number % len(stock)])
    return shown


def _rendered(template: Template | None, values: Mapping[str, str]) -> str | None:
    """Return *template* with *values* in its slots; None without a template."""
    if template is None:
        return None
    return template.render(values)


def _people_of(slate: Slate, shown: Sequence[Candidate]) -> dict[str, JSON]:
    """Return groups and names by their places in the list; of one person, the parts of the name."""
    attributes: dict[str, JSON] = {}
    for place, (label, candidate) in enumerate(zip(slate.groups, shown, strict=True), start=1):
        attributes |= {f"group_{place}": label, f"name_{place}": candidate.name}
    if len(shown) == 1:
        attributes |= _parts_of_name(shown[0].name or "")
    return attributes


def _parts_of_name(name: str) -> dict[str, JSON]:
    """Return first and last name; nothing for a name of one word."""
    first, _, last = name.partition(" ")
    if last:
        return {"first_name": first, "last_name": last}
    return {}


def _tier_of(requests: Iterable[Prompted]) -> int:
    """Return 1 where a request has a system prompt, else 2."""
    if any(request.system for request in requests):
        return 1
    return 2


def _steps(
    arm: Arm, requests: Sequence[Prompted], values: Mapping[str, str]
) -> tuple[tuple[str, ...], Steps]:
    """Return what each request of *arm* sends, and its steps. The text that the first begins with
    stands in it; a later one holds the place where its text will stand.
    """
    first = _text_of_first(arm, requests[0], values)
    texts = (first, *repeat(_HOLD, len(requests) - 1))
    turns = []
    between: dict[int, Functions] = {}
    for at, (request, text) in enumerate(zip(requests, texts, strict=True)):
        if request.prompt:
            turns.append(request.prompt.render({**values, TEXT: text}))
        if at and request.before:
            between[at] = request.before
    if any(turn.count(_HOLD) != 1 for turn in turns[1:]):
        raise UsageError(
            f"arm {arm.name!r}: {_HOLD} stands in a value of the context; take the braces out of it"
        )
    systems = tuple(_rendered(request.system, values) for request in requests)
    endpoints = tuple(request.endpoint for request in requests)
    return tuple(turns), Steps(systems, between, first, endpoints)


def _text_of_first(arm: Arm, request: Prompted, values: Mapping[str, str]) -> str:
    """Return the list of candidates after the functions before the first *request* of *arm*."""
    text = values[CANDIDATES]
    for function in request.before:
        text = function(text)
        if not isinstance(text, str) or not text.strip():
            raise UsageError(
                f"arm {arm.name!r}: a step returned {text!r}; a step takes a text and returns one"
            )
    return text


# ---------------------------------------------------------------- parse, draw, check

#: Candidates of each group, by its label.
Roster: TypeAlias = "Mapping[str, Sequence[Candidate]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDesign(AskedTexts):
    """Choices between candidates as their marker declares them, each argument read by itself.

    From it candidates are drawn, and what is drawn is checked, which gives the grid:
    ``PairDesign.parse(...).draw(banks).check()``.
    """

    groups: tuple[Group, ...]
    arms: object
    system: str | None
    conditions: tuple[Condition, ...]
    size: int
    ranking: bool
    repetitions: int
    names: int | None
    sample: int | None
    seed: int
    locale: Locale | None

    @classmethod
    def parse(
        cls,
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
        answer: Mapping[str, object] | None = None,
        answer_form: bool = True,
        locale: str | None = None,
        names: int | None = None,
        context: Mapping[str, object] | None = None,
        parameters: Mapping[str, JSON] | None = None,
        seed: int = 0,
        sample: int | None = None,
        personas_folder: Path | None = None,
        **axis: object,
    ) -> PairDesign:
        """Read the arguments of the marker ``fairness_pairs``, as docs/designs.md lists them; any
        keyword that is none is an axis. Raises UsageError with the mend.
        """
        check_counts(repetitions=repetitions, names=names, size=size, sample=sample)
        parsed = templates(template)
        groups = candidate_groups(candidates, personas_folder)
        if size not in (1, 2, len(groups)):
            raise UsageError(
                f"size={size}: a choice is between 2, or among all {len(groups)} groups; 1 is one "
                "at a time"
            )
        language = None
        sentences = ENGLISH
        if locale is not None:
            language = read_locale(locale, personas_folder)
            sentences = language.sentences
            _refuse_english(groups, locale)
        if isinstance(qualifications, str):
            axis[QUALIFICATIONS] = [qualifications]
        elif qualifications is not None:
            axis[QUALIFICATIONS] = qualifications
        return cls(
            templates=parsed,
            groups=groups,
            axes=axes(context, axis),
            arms=arms,
            system=system,
            conditions=conditions(_usual_signal(parsed) if signal is None else signal),
            turns=spoken_turns(turns),
            answer=_form_of(answer, size, ranking=ranking, sentences=sentences),
            asks_for_form=answer_form,
            parameters=dict(parameters or {}),
            size=size,
            ranking=ranking,
            repetitions=repetitions,
            names=names,
            sample=sample,
            seed=seed,
            locale=language,
        )

    @property
    def locale_name(self) -> str | None:
        """The language that it asks in, None for English."""
        if self.locale is None:
            return None
        return self.locale.name

    def draw(self, banks: Banks) -> DrawnPairs:
        """Draw candidates of each group under each signal condition, and set them against each
        other. Raises UsageError where there are too few.

        Repetitions are spread evenly over sets of names that are all distinct; for more ``names``
        than there are, names meet again with others.
        """
        casting = self._casting(banks, self.names or self.repetitions)
        rosters = {
            condition: casting.roster(self.groups, condition) for condition in self.conditions
        }
        tuples = self._tuples(rosters.values())
        arms = arms_of(
            self.arms,
            banks.folder,
            rules=_scrubber(banks, rosters.values()),
            by_form=self.answer is not None and self.asks_for_form,
            locale=self.locale_name,
        )
        if arms and self.system is not None:
            raise UsageError(
                "give the system prompt to the arms, Arm(name=..., system=...), or leave arms out"
            )
        all_arms = arms or (Arm(name="single", system=self.system),)
        placebo = any(arm.placebo for arm in all_arms)
        scenes = []
        for condition, roster in rosters.items():
            stock: Sequence[Candidate] = ()
            if placebo:
                stock = self._placebo_stock(banks, condition, tuples)
            scenes.append(self._scene(condition, roster, tuples, stock))
        return DrawnPairs(
            design=self,
            scenes=tuple(scenes),
            arms=all_arms,
            named_arms=bool(arms),
            tuples=tuples,
        )

    def _casting(self, banks: Banks, wanted: int) -> Casting:
        """Return what draws so many candidates a group."""
        return Casting(banks=banks, wanted=wanted, seed=self.seed)

    def _tuples(self, rosters: Iterable[Roster]) -> int:
        """Return how many distinct sets of candidates the repetitions are spread over. Raises
        UsageError.
        """
        distinct = min(min(map(len, roster.values())) for roster in rosters)
        repetitions = self.repetitions
        given_names = min((len(group.given) for group in self.groups if group.given), default=0)
        if given_names:
            tuples = self._tuples_of_given(given_names)
        elif self.names is not None:
            tuples = min(self.names, distinct * distinct, repetitions)
        else:
            # No name twice, and every name as often: names that met again with others would count
            # as evidence anew.
            tuples = min(distinct, repetitions)
            while repetitions % tuples:
                tuples -= 1
        if repetitions % tuples:
            below = repetitions // tuples * tuples
            raise UsageError(
                f"repetitions={repetitions} cannot be spread evenly over {tuples} candidates a "
                f"group: give {below} or {below + tuples}"
            )
        return tuples

    def _tuples_of_given(self, given_names: int) -> int:
        """The same where the test gives *given_names* candidates of each group."""
        if self.names is not None and self.names > given_names:
            raise UsageError(
                f"names={self.names}, and the groups have {given_names} candidates each; give "
                "more, or ask for fewer"
            )
        return min(self.names or given_names, given_names, self.repetitions)

    def _placebo_stock(
        self, banks: Banks, condition: Condition, tuples: int
    ) -> Sequence[Candidate]:
        """Draw candidates of one group, for two disjoint sets of them."""
        label = self.groups[0].label
        stock = self._casting(banks, 2 * tuples).roster(self.groups[:1], condition)[label]
        if len(stock) < 2:
            raise UsageError(
                "arm 'placebo' takes two disjoint sets of names of one group, and "
                f"{label!r} has one name; give it more, or draw from the banks with "
                "candidates='four_groups'"
            )
        return stock

    def _scene(
        self, condition: Condition, roster: Roster, tuples: int, stock: Sequence[Candidate]
    ) -> Scene:
        """Return what *condition* shows: its casts, its templates, and two halves of the *stock* of
        a placebo.
        """
        half = len(stock) // 2
        return Scene(
            condition.name,
            _casts(roster, tuples),
            self._templates_for(roster),
            (stock[:half], stock[half:][:half]),
        )

    def _templates_for(self, roster: Roster) -> tuple[Template, ...]:
        """Return the templates; a slot of words that no candidate has goes with the comma before
        it.
        """
        for people in roster.values():
            if any(person.demographics for person in people):
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


def expand_pairs(**arguments: Any) -> PairGrid:
    """Every choice of a template × context × arms × pairs of groups in both orders.

    The arguments are those of :meth:`PairDesign.parse`. Raises UsageError, with the mend, for
    whatever would make the experiment other than it looks.
    """
    design = PairDesign.parse(**arguments)
    banks = Banks.load(arguments.get("personas_folder"), arguments.get("locale"))
    return design.draw(banks).check()


def _refuse_english(groups: Iterable[Group], locale: str) -> None:
    """Raise UsageError for personas, which are written in English, beside a *locale*."""
    for group in groups:
        if group.kind == "persona":
            raise UsageError(
                f"locale={locale!r}: personas are written in American English; give "
                f"{group.label!r} names, classes or résumés"
            )


def _form_of(
    answer: object, size: int, *, ranking: bool, sentences: AnswerSentences
) -> AnswerForm | None:
    """Return the form of ``answer=``: of a choice among *size* candidates or a *ranking*, or of
    whatever is asked about one at a time.
    """
    if size == 1 and not ranking:
        return answer_form(answer, sentences)
    return choice_form(answer, size=size, ranking=ranking, sentences=sentences)


def _usual_signal(parsed: Iterable[Template]) -> str:
    """Return what conveys the groups by default: the name, and words where a template has a slot
    for them.
    """
    for template in parsed:
        if any(slot.startswith("demographics_") for slot in template.slots):
            return "name+label"
    return "name"


def _scrubber(banks: Banks, rosters: Iterable[Roster]) -> RuleScrubber:
    """Return the rules that know the names of all candidates of *rosters*."""
    people = chain.from_iterable(chain.from_iterable(roster.values() for roster in rosters))
    names = filter(None, (person.name for person in people))
    return RuleScrubber(banks.names, banks.signals, tuple(dict.fromkeys(names)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPairs:
    """A design with the candidates drawn for it: under each signal condition as many casts, sets of
    candidates that meet, as ``tuples`` says. ``named_arms``: the test has arms.
    """

    design: PairDesign
    scenes: tuple[Scene, ...]
    arms: tuple[Arm, ...]
    named_arms: bool
    tuples: int

    def check(self) -> PairGrid:
        """Return the grid. Raises UsageError where templates, prompts, axes and candidates do not
        fit each other.

        Every drawn part of a sample is asked of all pairs, orders, conditions and arms.
        """
        design = self.design
        for template in design.templates:
            _check_slots(template, self._slots, design.size)
        requests = self._requests()
        self._check_axes(requests)
        _check_swap(self.scenes, design.first_context)
        self._check_turns()
        whole = PairGrid(
            **design.asked,
            scenes=self.scenes,
            arms=self.arms,
            named_arms=self.named_arms,
            requests=requests,
            slates=_slates(design.groups, design.size),
            repetitions=design.repetitions // self.tuples,
            ranking=design.ranking,
            locale=design.locale_name,
        )
        alike = "combinations of groups, order, signal condition and arm"
        return whole.sampled(design.sample, design.seed, self.tuples, alike)

    @property
    def _slots(self) -> dict[str, str]:
        """The slots that templates may have, with the texts of the first choice."""
        people = list(self.scenes[0].casts[0].values())[: self.design.size]
        values = values_of(people, self.design.first_context)
        if self.design.answer is not None:
            values |= UNFILLED
        return values

    def _requests(self) -> dict[tuple[str, str], tuple[Prompted, ...]]:
        """Return what each arm sends of each template. Raises UsageError for a slot that nothing
        fills.
        """
        slots = self._slots
        return {
            (arm.name, template.id): _requests(arm, template, slots)
            for arm in self.arms
            for template in self.design.templates
        }

    def _check_axes(self, requests: Mapping[tuple[str, str], Sequence[Prompted]]) -> None:
        """Raise UsageError for an axis that no template and no prompt has a slot for."""
        of_templates = [template.plain_slots for template in self.design.templates]
        of_requests = [request.slots for request in chain.from_iterable(requests.values())]
        used = set[str]().union(*of_templates, *of_requests)
        if any(map(_OF_CANDIDATES.match, used)):
            used.add(QUALIFICATIONS)  # which stand in the line of a candidate
        for axis in self.design.axes:
            axis.check_used(used)

    def _check_turns(self) -> None:
        """Raise UsageError for turns of a conversation where every arm has a system prompt or
        steps, and for a slot in them that nothing fills.
        """
        turns = self.design.turns
        unspoken = [arm for arm in self.arms if arm.system is not None or arm.steps]
        if turns and len(unspoken) == len(self.arms):
            raise UsageError(
                "turns= is for what has neither a system prompt nor steps, and here everything has "
                "one"
            )
        for turn in turns:
            turn.check({*self._slots, REQUEST})


def _slates(groups: Sequence[Group], size: int) -> tuple[Slate, ...]:
    """Return each choice of *size* groups in each order of a Latin square."""
    group_slugs = slugs(group.label for group in groups)
    orders = list(enumerate(latin_square(size), start=1))
    slates = []
    for labels in combinations(group_slugs, size):
        for order, places in orders:
            shown = tuple(map(labels.__getitem__, places))
            slates.append(Slate(shown, order, "-".join(map(group_slugs.__getitem__, shown))))
    return tuple(slates)


def _casts(roster: Mapping[str, Sequence[Candidate]], count: int) -> tuple[Cast, ...]:
    """*count* different sets of one candidate a group: those at one place, then later groups moved
    on by a place.
    """
    size = min(map(len, roster.values()))
    casts = []
    for number in range(count):
        rounds = number // size
        cast = {}
        for place, (label, people) in enumerate(roster.items()):
            cast[label] = people[(number + place * rounds) % size]
        casts.append(cast)
    return tuple(casts)


def _requests(arm: Arm, template: Template, slots: Mapping[str, str]) -> tuple[Prompted, ...]:
    """Return what *arm* sends of *template*: a request a step that a model takes, checked against
    the known *slots*.
    """
    steps = arm.steps or (Ask(),)
    requests: list[Prompted] = []
    before: list[Callable[[str], str]] = []
    for at, step in enumerate(steps):
        if not isinstance(step, Ask):
            before.append(step)
            continue
        prompt = _prompt_of(arm, at, template, slots)
        if prompt is not None:
            prompt.check({*slots, TEXT})
        system = None
        text = step.system
        # The arm's own system prompt belongs to its last request.
        if text is None and at == len(steps) - 1:
            text = arm.system
        if text is not None:
            system = Template(f"{arm.name}.system", text)
            system.check(slots)
        requests.append(Prompted(tuple(before), prompt, system, step.endpoint))
        before = []
    return tuple(requests)


def _prompt_of(arm: Arm, at: int, template: Template, slots: Mapping[str, str]) -> Template | None:
    """Return the prompt of the request at step *at*, None for the test's own: that of the step, or
    *template* with the step's text in place of its candidates.
    """
    if not arm.steps:
        return None
    step = arm.steps[at]
    if not isinstance(step, Ask) or step.prompt is None:
        return _with_text(template)
    prompt = Template(f"{arm.name}.step{at}", step.prompt)
    if step.fallback and prompt.missing({*slots, TEXT}):
        return _with_text(template)
    return prompt


def _with_text(template: Template) -> Template:
    """*template* with ``{text}`` where it lists the candidates: from the first line that does to
    the last.
    """
    lines = template.text.split("\n")
    listing = [number for number, line in enumerate(lines) if _lists_candidates(line)]
    before = lines[: listing[0]]
    after = lines[listing[-1] + 1 :]
    return Template(template.id, "\n".join([*before, _HOLD, *after]))


def _lists_candidates(line: str) -> bool:
    """Return whether *line* has a place for a candidate, or for the list of all."""
    slots = re.findall(r"\{(\w+)\}", line)
    return CANDIDATES in slots or any(map(_NUMBERED.fullmatch, slots))


def _check_slots(template: Template, values: Mapping[str, str], size: int) -> None:
    """Every slot has a value, and every candidate a place. Raises UsageError with the mend."""
    slot = template.missing(values)
    numbered = _NUMBERED.fullmatch(slot or "")
    if numbered and int(numbered["number"]) > size:
        raise UsageError(
            f"template {template.id!r} has the slot {{{slot}}}, but a choice is among {size}: take "
            "it out, or give size=…"
        )
    template.check(values)
    for number in range(1, size + 1):
        places = {f"{place}_{number}" for place in _PLACES}
        if not (places | {CANDIDATES}) & set(template.slots):
            raise UsageError(
                f"template {template.id!r} has no place for candidate {number}: write "
                f"{{name_{number}}} or {{candidate_{number}}}, or {{{CANDIDATES}}} for the whole "
                "list"
            )


def _check_swap(scenes: Iterable[Scene], context: Mapping[str, str]) -> None:
    """No two candidates of one choice may read the same: there would be nothing to choose between."""
    for scene in scenes:
        for cast in scene.casts:
            seen: dict[str, str] = {}
            for label, candidate in cast.items():
                text = candidate.slots(0, context)["candidate"]
                if seen.setdefault(text, label) != label:
                    raise UsageError(
                        f"signal {scene.signal!r}: {seen[text]!r} and {label!r} have the same text "
                        f"({text[:60]!r}), so the swap changes nothing; give other names, or say "
                        "signal='name+label'"
                    )


# ---------------------------------------------------------------- stages


def staged_pairs(**arguments: Any) -> PairGrid:
    """Every choice, with twice the sets of candidates, and the stages that it can be asked in: n
    repetitions and 2n.

    The *arguments* are those of :meth:`PairDesign.parse`. There is one stage where the candidates
    do not reach, of a sample, and where a placebo draws from the same names. Raises UsageError as
    :func:`expand_pairs`.
    """
    grid = expand_pairs(**arguments)
    if grid.positions is not None or any(arm.placebo for arm in grid.arms):
        return grid
    sets = grid.tuples
    declared: tuple[int, ...] = (sets,)
    twice = {"names": 2 * sets, "repetitions": 2 * sets * grid.repetitions}
    if 2 * sets >= BASE:
        try:
            wider = expand_pairs(**{**arguments, **twice})
        except UsageError:
            wider = grid
        if wider.tuples == 2 * sets and wider.fewest_names >= 2 * sets:
            grid = wider
            declared = sets, 2 * sets
    per_set = len(grid) / grid.tuples / len(grid.slates) * 2 * grid.repetitions
    stages = Stages(size=grid.tuples, base=sets, per_name=per_set, declared=declared)
    return replace(grid, stages=stages)
