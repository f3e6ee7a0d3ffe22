"""The demographic grid: templates × context × groups and names, as cells.

A grid is checked when it is made and expanded when it is read: its size is known without making a
cell, and each cell is made when it is asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import starmap
from math import ceil, prod
from pathlib import Path
from typing import Any

from pytest_fairness.design.answer_forms import (
    ANSWER_PLACE,
    ANSWER_SLOT,
    ENGLISH,
    UNFILLED,
    AnswerForm,
    AnswerSentences,
)
from pytest_fairness.design.answer_forms import answer_form as form_of
from pytest_fairness.design.axes import (
    AskedTexts,
    LazyCells,
    Pair,
    axes,
    check_counts,
)
from pytest_fairness.design.locales import ROLE, Locale, read_locale
from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.personas import Persona, PersonaMatrix
from pytest_fairness.design.series import PILOT, series_of, without_groups
from pytest_fairness.design.signals import CONTROL, PRONOUN, Condition, conditions
from pytest_fairness.design.slugs import join
from pytest_fairness.design.stages import (
    CLOSE,
    PlannedLooks,
    declared_looks,
    largest,
)
from pytest_fairness.design.templates import (
    REQUEST,
    Template,
    TemplateLike,
    TextOrSeries,
    base_slot,
    spoken_turns,
    templates,
)
from pytest_fairness.design.units import (
    LABEL_SLOT,
    Banks,
    Crossing,
    GroupAxis,
    Unit,
    group_axis,
)
from pytest_fairness.errors import UsageError, did_you_mean, refuse_twice
from pytest_fairness.model import JSON, Cell
from pytest_fairness.words import count

_FEW_NAMES = 10
_FEWEST_REPETITIONS = 2
_RECOMMENDED_TRIALS = 100  # a group, from which most comparisons can be judged
#: The condition of personas without swapped groups.
_AS_THEY_ARE: tuple[Condition, ...] = (Condition("persona", by_name=False, kind=None),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid(LazyCells):
    """Every combination, as a sequence of cells: templates, then context, then units, which come in
    runs of ``group_size``, one run a combination of groups.
    """

    units: tuple[Unit, ...]
    system: Template | None
    name_slot: str
    role: str = ROLE
    group_size: int = 0

    @property
    def radices(self) -> tuple[int, ...]:
        return (len(self.templates), *map(len, self.axes), len(self.units))

    @property
    def fewest_names(self) -> int:
        """Return how many different names the group with the fewest has."""
        names: dict[tuple[tuple[str, str], ...], set[str | None]] = {}
        for unit in self.units:
            names.setdefault(tuple(sorted(unit.swapped.items())), set()).add(unit.cluster)
        return min(map(len, names.values()), default=0)

    def cell_at(self, position: int) -> Cell:
        template_at, *choices, unit_at = self.digits(position)
        template = self.templates[template_at]
        unit = self.units[unit_at]
        values, context, where = self.context(choices)
        if self.answer is not None:  # filled once it is known by which way an endpoint is asked
            values = {**values, **UNFILLED}
        prompt, signals = unit.render(template, values, self.name_slot)
        system = None
        tier = 2
        if self.system is not None:
            system, in_system = unit.render(self.system, values, self.name_slot, needs_labels=False)
            tier = 1
            signals = {**in_system, **signals}
        return Cell(
            id=join([template.id, *where, *unit.parts]),
            template=template.id,
            turns=(prompt,),
            groups=unit.groups,
            name=unit.cluster,
            persona=unit.persona,
            context=context,
            attributes={
                **unit.attributes,
                **self._signal_words(template, unit),
                **self._draw(position),
            },
            system=system,
            tier=tier,
            signal=unit.signal,
            signals=signals,
        )

    def place(self, index: int) -> tuple[str, int]:
        """Return the signal of the cell at *index* where signals are pooled, ``""`` where not, and
        in which combination of texts and contexts it stands.
        """
        return "", self.position(index) // len(self.units)

    def asked_of(self, unit_at: int) -> float:  # noqa: ARG002 - of a pooled grid it matters
        """Return how many cells ask about the unit in the place *unit_at*, on average."""
        return len(self) / len(self.units)

    def of_first_context(self) -> Iterator[int]:
        """Yield the cells of every group and name in the first context of each template; of a
        sample, its beginning.
        """
        if self.positions is not None:
            yield from range(len(self))
            return
        block = self.full_size // len(self.templates)
        for template in range(len(self.templates)):
            first = template * block
            yield from range(first, first + len(self.units))

    def stage(self, names: int, fewer: Mapping[Pair, int]) -> list[int]:
        units = self.units_of_stage(names, fewer)
        kept = []
        for index in range(len(self)):
            if self.position(index) % len(self.units) in units:
                kept.append(index)
        return kept

    def units_of_stage(self, names: int, fewer: Mapping[Pair, int]) -> set[int]:
        """Return the places of the units whose cells :meth:`stage` keeps."""
        units = set()
        for unit_at in range(len(self.units)):
            if self.is_of_stage(unit_at, names, fewer):
                units.add(unit_at)
        return units

    def drawn(self, position: int) -> tuple[int, Set[Pair]]:
        unit_at = position % len(self.units)
        return unit_at % self.group_size + 1, self.units[unit_at].swapped.items()

    def _signal_words(self, template: Template, unit: Unit) -> dict[str, JSON]:
        """Return the column with the words by which *unit* conveys groups in *template*."""
        words = unit.words_in(filter(None, (template, self.system)), self.name_slot)
        if words:
            return {"signal_words": words}
        return {}

    @property
    def asked_at(self) -> int:
        """The turn of a conversation, from 0, that makes the request."""
        if not self.turns:
            if self.system is None:
                return 0
            return 1
        return [REQUEST in turn.slots for turn in self.turns].index(True)

    def conversation_at(self, position: int, cell: Cell | None = None) -> tuple[str, ...]:
        """The turns by which the cell at *position* is asked without a system prompt: those of the
        test, else the role and then the request, else the request alone. *cell* spares making it
        anew.
        """
        if cell is None:
            cell = self[position]
        if not self.turns:
            if cell.system:
                return (self.role.replace("{system}", cell.system), cell.prompt)
            return (cell.prompt,)
        _, *choices, unit_at = self.digits(self.position(position))
        values, _, _ = self.context(choices)
        filled = {**values, REQUEST: cell.prompt}
        unit = self.units[unit_at]
        return tuple(unit.text(turn, filled, self.name_slot) for turn in self.turns)

    def describe(self) -> str:
        """The size in words, a line each, with what deserves a second thought."""
        parts = [f"{count(len(self.templates), 'template')}"]
        parts += [f"{len(axis)} {axis.name}" for axis in self.axes]
        parts.append(f"{len(self.units)} combinations of group and name")
        lines = [f"{' × '.join(parts)} = {self.full_size:,} cells"]
        if self.positions is not None:
            lines.append(f"of which a balanced sample of {len(self):,} is asked")
        lines.append(f"× {self.repetitions} repetitions = {self.calls:,} calls")
        fewest = self.fewest_names
        if fewest < _FEW_NAMES:
            lines.append(
                f"only {count(fewest, 'name')} a group: with under {_FEW_NAMES}, what "
                "is found may be about "
                "the names; more names do more than more repetitions"
            )
        return "\n".join(lines)


# ---------------------------------------------------------------- parse, draw, check


@dataclass(frozen=True, slots=True, kw_only=True)
class GridDesign(AskedTexts):
    """A grid as its marker declares it, each argument read by itself.

    From it names and units are drawn, and what is drawn is checked, which gives the grid:
    ``GridDesign.parse(...).draw(banks).check()``.
    """

    system: Template | None
    classes: tuple[GroupAxis, ...]
    personas: tuple[Persona, ...]
    conditions: tuple[Condition, ...]
    locale: Locale | None
    name_slot: str
    names: int | None
    repetitions: int | None
    sample: int | None
    seed: int

    @classmethod
    def parse(
        cls,
        *,
        template: TemplateLike | Iterable[TemplateLike] | Mapping[str, TextOrSeries],
        groups: Mapping[str, object] | None = None,
        persona: str | Persona | Iterable[Persona] | None = None,
        names: int | Sequence[int] | None = None,
        context: Mapping[str, object] | None = None,
        signal: str | Sequence[str] = "name",
        repetitions: int | None = None,
        system: str | None = None,
        turns: Sequence[str] | None = None,
        answer: Mapping[str, object] | None = None,
        answer_form: bool = True,
        answer_in_prose: str = "",
        locale: str | None = None,
        parameters: Mapping[str, JSON] | None = None,
        name_slot: str = "name",
        seed: int = 0,
        sample: int | None = None,
        personas_folder: Path | None = None,
        **axis: object,
    ) -> GridDesign:
        """Read the arguments of the marker ``fairness_grid``, as docs/grids.md lists them; any
        keyword that is none is an axis, ``role=["nurse"]``. Raises UsageError with the mend.
        """
        if isinstance(names, Sequence):
            names = declared_looks(names)[-1]
        check_counts(names=names, repetitions=repetitions, sample=sample)
        if not name_slot.isidentifier():
            raise UsageError(
                f"name_slot={name_slot!r}: a slot's name is made of letters, digits and _"
            )
        classes = _classes(groups, personas_folder)
        personas = _personas(persona, personas_folder)
        if groups is None and not personas:
            raise UsageError(
                "the grid has neither groups nor personas: give groups={...} or persona='matrix'"
            )
        asked_under = _AS_THEY_ARE
        if classes:
            asked_under = conditions(signal)
        language = None
        sentences = ENGLISH
        if locale is not None:
            language = _language(locale, personas_folder, has_personas=bool(personas))
            sentences = language.sentences
        asked = templates(template)
        return cls(
            templates=asked,
            system=_system_prompt(system),
            turns=spoken_turns(turns),
            axes=axes(context, axis),
            classes=classes,
            personas=personas,
            conditions=asked_under,
            answer=_form(answer, sentences, answer_in_prose, asked),
            asks_for_form=answer_form,
            locale=language,
            parameters=dict(parameters or {}),
            name_slot=name_slot,
            names=names,
            repetitions=repetitions,
            sample=sample,
            seed=seed,
        )

    @property
    def texts(self) -> tuple[Template, ...]:
        """Every text with slots: the templates, the system prompt, the turns of a conversation."""
        if self.system is None:
            return (*self.templates, *self.turns)
        return (*self.templates, self.system, *self.turns)

    @property
    def slots(self) -> frozenset[str]:
        """The slots of all texts, articles aside."""
        return frozenset().union(*(template.plain_slots for template in self.texts))

    def draw(self, banks: Banks) -> DrawnGrid:
        """Draw names and words for every combination of groups. Raises UsageError where there are
        too few.
        """
        after_who: set[str] = set()
        for template in self.texts:
            after_who.update(re.findall(r"\bwho \{(\w+)\}", template.text))
        crossing = Crossing(
            banks=banks,
            classes=self.classes,
            personas=self.personas,
            slots=self.slots,
            after_who=frozenset(after_who),
            name_slot=self.name_slot,
            names=self.names,
            seed=self.seed,
        )
        units, group_size = crossing.units(self.conditions)
        return DrawnGrid(design=self, units=units, group_size=group_size)


def expand_grid(**arguments: Any) -> Grid:
    """The grid of a template × context × groups and names, or personas.

    The arguments are those of :meth:`GridDesign.parse`. Raises UsageError, naming the template or
    axis and the mend, for anything that would make a grid other than it looks.
    """
    design = GridDesign.parse(**arguments)
    return design.draw(banks_of(arguments)).check()


def banks_of(arguments: Mapping[str, Any]) -> Banks:
    """Return the banks that a grid of *arguments* draws from. Raises UsageError."""
    return Banks.load(arguments.get("personas_folder"), arguments.get("locale"))


def _language(locale: str, folder: Path | None, *, has_personas: bool) -> Locale:
    """Return the words of *locale*. Raises UsageError for an unknown one, and beside personas."""
    if has_personas:
        raise UsageError(
            f"locale={locale!r}: personas are written in American English; give groups={{...}} instead of "
            "persona=..."
        )
    return read_locale(locale, folder)


def _form(
    answer: object, sentences: AnswerSentences, prose: str, asked: Sequence[Template]
) -> AnswerForm | None:
    """Return the form of *answer*, for which *prose* asks where neither form nor line does. Raises
    UsageError where that has no place in a text.
    """
    if not isinstance(prose, str) or ANSWER_PLACE in prose:
        raise UsageError(f"answer_in_prose={prose!r:.60}: give a text, without {ANSWER_PLACE}")
    if prose and answer is None:
        raise UsageError(
            "answer_in_prose= stands where no form is asked for, so it needs answer=, for example "
            "answer={'rating': (1, 10)}"
        )
    for template in asked:
        if prose and ANSWER_SLOT not in template.plain_slots:
            raise UsageError(
                f"template {template.id!r} has no place for answer_in_prose=: write "
                f"{ANSWER_PLACE} where it belongs"
            )
    return form_of(answer, sentences, prose)


def _system_prompt(system: str | None) -> Template | None:
    """Return the system prompt as a template; None without one."""
    if system is None:
        return None
    return Template("system", system)


def _classes(groups: object, folder: Path | None) -> tuple[GroupAxis, ...]:
    """Return the protected classes of ``groups=``, in their order. Raises UsageError."""
    if groups is None:
        return ()
    if not isinstance(groups, Mapping):
        raise UsageError(_without_class(groups, folder))
    if not groups:
        raise UsageError(
            "groups is empty; give at least one protected class, such as {'gender': ['female', "
            "'male']}"
        )
    return tuple(starmap(group_axis, groups.items()))


def _personas(persona: object, folder: Path | None) -> tuple[Persona, ...]:
    """Return the personas of ``persona=``: of the matrix, one, or a list. Raises UsageError."""
    if persona is None:
        return ()
    people: tuple[object, ...] = ()
    if persona == "matrix":
        people = tuple(PersonaMatrix.load(folder))
    elif isinstance(persona, Persona):
        people = (persona,)
    elif isinstance(persona, Iterable):
        people = tuple(persona)
    personas = tuple(person for person in people if isinstance(person, Persona))
    if not personas or len(personas) < len(people):
        raise UsageError(
            f"persona={persona!r:.60}: give 'matrix', a Persona, or a list of at least one Persona"
        )
    return personas


def _without_class(groups: object, folder: Path | None) -> str:
    """Say that *groups* are of no protected class, with the one in whose name bank they stand."""
    banks = NameBanks.load(folder)
    given: list[object] = []
    if isinstance(groups, str):
        given = [groups]
    elif isinstance(groups, Iterable):
        given = list(groups)
    for name in banks.protected_classes:
        if given and set(map(str, given)) <= set(banks.groups(name)):
            return (
                f"groups={groups!r:.80}: say of which protected class, groups={{{name!r}: "
                f"{given!r:.60}}}"
            )
    mend = "give groups by their protected class, such as {'gender': ['female', 'male']}"
    return f"groups is {type(groups).__name__}: {mend}"


#: Whoever writes role= means no locale=.
_ARGUMENTS = set(GridDesign.parse.__kwdefaults__ or ()) - {"locale"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnGrid:
    """A design with the units drawn for it: one run of ``group_size`` units for each combination of
    groups and signal condition.

    The names of a run stand in the order of their bank, so that the beginning of each run is what
    fewer names would have been: a stage of names is a prefix of every run. ``base`` are the names
    that the repetitions are reckoned for; None: all of them.
    """

    design: GridDesign
    units: tuple[Unit, ...]
    group_size: int
    base: int | None = None

    def check(self) -> Grid:
        """Return the grid. Raises UsageError for the first fault, from what is easiest to mend."""
        self._check_axes()
        self._check_slots()
        self._check_places()
        refuse_twice(
            "two groups or names come to one id:", (join(unit.parts) for unit in self.units)
        )
        self._check_swaps()
        whole = self._whole_grid()
        grid = whole.sampled(self.design.sample, self.design.seed, self.group_size)
        if self.design.repetitions is None:
            base = self.group_size
            if self.base is not None:
                base = min(self.base, base)
            grid = replace(grid, repetitions=_enough_repetitions(grid, base))
        return grid

    def _whole_grid(self) -> Grid:
        """Return the grid of all cells, with the repetitions that its design says."""
        design = self.design
        role = ROLE
        locale = None
        if design.locale is not None:
            role = design.locale.role
            locale = design.locale.name
        return Grid(
            **design.asked,
            role=role,
            locale=locale,
            units=self.units,
            system=design.system,
            name_slot=design.name_slot,
            group_size=self.group_size,
            repetitions=design.repetitions or _FEWEST_REPETITIONS,
        )

    def _check_axes(self) -> None:
        """Every axis fills a slot, and one that nothing else fills."""
        used = self.design.slots
        filled: set[str] = set()
        for unit in self.units:
            filled |= unit.values.keys() | unit.labels.keys()
            filled -= unit.agreeing
        for axis in self.design.axes:
            if axis.name in filled:
                raise UsageError(
                    f"axis {axis.name!r}: the slot {{{axis.name}}} is filled by the name, the "
                    "group or the persona already; rename the axis"
                )
            axis.check_used(used, did_you_mean(axis.name, _ARGUMENTS))

    def _check_slots(self) -> None:
        """Every slot has a value."""
        by_context: set[str] = set()
        for axis in self.design.axes:
            by_context |= axis.values[0].keys()
        # Which slots are filled is the same for all units that fill the same ones: the first of
        # each stands for them.
        alike: dict[tuple[frozenset[str], frozenset[str]], Unit] = {}
        for unit in self.units:
            alike.setdefault((frozenset(unit.values), frozenset(unit.labels)), unit)
        for template in self.design.texts:
            for unit in alike.values():
                slots = by_context | unit.values.keys() | unit.labels.keys()
                if template in self.design.turns:
                    slots.add(REQUEST)
                if unit.labels:
                    slots.add(LABEL_SLOT)
                if self.design.answer is not None:
                    slots.add(ANSWER_SLOT)
                _check_filled(template, unit, slots)

    def _check_places(self) -> None:
        """Refuse a template without a place for what conveys a group."""
        name_slot = self.design.name_slot
        # Units whose groups are conveyed alike lack the same places: the first stands for them.
        alike: dict[object, Unit] = {}
        for unit in self.units:
            alike.setdefault(_conveyance(unit), unit)
        for template in self.design.templates:
            for unit in alike.values():
                fault = _fault_of_places(template, unit, name_slot)
                if fault is not None:
                    raise UsageError(f"template {template.id!r} {fault}")

    def _check_swaps(self) -> None:
        """No two units of a comparison may give the same text: the swap between them would change
        nothing.
        """
        context: dict[str, str] = {}
        for axis in self.design.axes:
            context |= axis.values[0]
        context |= UNFILLED
        name_slot = self.design.name_slot
        swapped = [unit for unit in self.units if unit.swapped]
        # Templates that have the same slots are filled alike.
        fillings: dict[Set[str], list[tuple[dict[str, str], dict[str, str]]]] = {}
        for template in self.design.templates:
            slots = template.plain_slots
            if slots not in fillings:
                fillings[slots] = [unit.filling(template, context, name_slot) for unit in swapped]
            texts = [template.render(*filling) for filling in fillings[slots]]
            if len(set(texts)) < len(texts):
                _refuse_same_text(template, swapped, texts)


def _enough_repetitions(grid: Grid, base: int) -> int:
    """Return the repetitions that bring a group of *base* names to the recommended trials."""
    swapped: Counter[tuple[str, str]] = Counter()
    for unit in grid.units:
        swapped.update(unit.swapped.items())
    # Personas without swapped groups differ in everything, and their groups are as large as the
    # matrix makes them.
    if not swapped:
        return _FEWEST_REPETITIONS
    cells = min(swapped.values()) * len(grid) / len(grid.units) * base / grid.group_size
    return max(_FEWEST_REPETITIONS, ceil(_RECOMMENDED_TRIALS / max(cells, 1)))


def _check_filled(template: Template, unit: Unit, slots: Set[str]) -> None:
    """Raise UsageError for a slot of *template* that is not among *slots*."""
    slot = template.missing(slots)
    if slot is not None and base_slot(slot) in unit.agreeing:
        raise UsageError(
            f"template {template.id!r} uses {{{slot}}}, and the gender of {unit.cluster!r} is not "
            "known: add pronouns='they', or an axis pronouns=['she/her', 'he/him', 'they/them']"
        )
    template.check(slots)


def _conveyance(unit: Unit) -> object:
    """Return all of *unit* that :func:`_fault_of_places` looks at."""
    conveyed = tuple((slot, *groups) for slot, groups in unit.conveys.items())
    swapped = tuple(unit.swapped.items())
    return unit.signal, swapped, conveyed, tuple(unit.labels), frozenset(unit.values)


def _fault_of_places(template: Template, unit: Unit, name_slot: str) -> str | None:
    """Return why *template* has no place for what conveys the groups of *unit*, with the mend."""
    slots = template.plain_slots
    loose = unit.loose(template)
    mend = f": write {{{name_slot}}} where the name belongs"
    if loose and not {LABEL_SLOT, name_slot} & slots:
        missing = next(iter(loose))
        return (
            f"has no place for the words that convey {missing}: write {{{missing}}}, "
            f"{{{LABEL_SLOT}}} or {{{name_slot}}} in it"
        )
    lost = _lost_classes(slots, unit)
    if lost and unit.signal == PRONOUN:
        return "has no pronoun, such as {they} or {their}"
    if lost:
        return f"has no slot for the name, so nothing in it conveys {lost[0]}{mend}"
    if not unit.swapped and not slots & (unit.values.keys() - unit.agreeing):
        return f"uses nothing of the personas, so all would be asked the same{mend}"
    return None


def _lost_classes(slots: Set[str], unit: Unit) -> list[str]:
    """Return the classes that neither words nor any of *slots* convey, but for control groups."""
    conveyed = set(unit.labels)
    for slot in unit.conveys.keys() & slots:
        conveyed.update(unit.conveys[slot])
    return [
        name for name, group in unit.swapped.items() if name not in conveyed and group != CONTROL
    ]


def _refuse_same_text(template: Template, units: Iterable[Unit], texts: Iterable[str]) -> None:
    """Raise UsageError where *template* has one of *texts* for two *units* of one signal."""
    seen: dict[tuple[str, str], Unit] = {}
    for unit, text in zip(units, texts, strict=True):
        other = seen.setdefault((unit.signal, text), unit)
        if other is not unit:
            raise UsageError(f"template {template.id!r}: {_same_text(other, unit)}")


def _same_text(other: Unit, unit: Unit) -> str:
    """Return what is wrong with two units of one text, and the mend."""
    if other.swapped != unit.swapped:
        first = f"{'/'.join(other.swapped.values())} ({other.cluster})"
        second = f"{'/'.join(unit.swapped.values())} ({unit.cluster})"
        return (
            f"the swap changes nothing. {first} and {second} give the same text; write the whole "
            "name, or a slot that differs"
        )
    if unit.persona is not None and other.persona != unit.persona:
        return (
            f"the personas {other.persona} and {unit.persona} give the same text, as personas "
            "share the names of a group: add a slot that tells them apart, such as "
            "{experience_years}, or leave groups= out"
        )
    return (
        f"{other.cluster!r} and {unit.cluster!r} give the same text, so the second is no evidence "
        "of its own; write the whole name, or drop one"
    )


# ---------------------------------------------------------------- stages


def staged_grid(looks: tuple[int, ...] | None = None, **arguments: Any) -> Grid:
    """The grid with the names of its last look, and the stages that it can be asked in.

    The *arguments* are those of :meth:`GridDesign.parse`; ``names=`` says the looks, else *looks*
    does, else the kind of outcome. Samples and personas have one stage. Raises UsageError as
    :func:`expand_grid`.
    """
    if arguments.get("sample") is not None or arguments.get("persona") is not None:
        return expand_grid(**arguments)
    names = arguments.get("names")
    planned = PlannedLooks.of(names, looks)
    design = GridDesign.parse(**arguments)
    banks = banks_of(arguments)
    fewest, most = _names_to_draw(names, planned, design)

    def draw(number: int) -> DrawnGrid:
        return replace(design, names=number).draw(banks)

    drawn = largest(draw, fewest, most)
    if isinstance(names, int) and names > CLOSE * drawn.group_size:
        # What there is beyond the names asked for makes no look of its own.
        planned = planned._replace(declared=(names,))
        drawn = draw(names)
    grid = replace(drawn, base=planned.base).check()
    per_name = len(grid) / len(grid.units) * grid.repetitions
    return replace(grid, stages=planned.stages(drawn.group_size, per_name))


def _names_to_draw(names: object, planned: PlannedLooks, design: GridDesign) -> tuple[int, int]:
    """Return the fewest names a group that have to be there, and the most that the last look can
    use: of looks that a test lists all, of a number that it gives that number, else as far as the
    names reach.
    """
    last = planned.last
    if isinstance(names, int):
        return names, max(names, last)
    if names is not None:
        return last, last
    return names_there_are(planned, design)


def names_there_are(planned: PlannedLooks, design: GridDesign) -> tuple[int, int]:
    """Return the names a group of the base design, and of the last look, as far as the *design*
    lists as many values of a class.
    """
    given = [len(values) for axis in design.classes for values in axis.values.values()]
    most = min([planned.last, *given])
    return min(planned.base, most), most


def shortest_groups(arguments: Mapping[str, Any], names: int) -> list[str]:
    """Return the groups of a grid, made of *arguments*, that have no more than so many *names*;
    none where only crossed groups run out.
    """
    short = []
    banks = banks_of(arguments)
    design = GridDesign.parse(**{**arguments, "names": names + 1})
    for axis in design.classes:
        for group in axis.groups:
            alone = axis._replace(groups=(group,))
            try:
                replace(design, classes=(alone,)).draw(banks)
            except UsageError:
                short.append(group)
    return short


def pilot_grid(calls: int, **arguments: Any) -> Grid:
    """The grid of a pilot of so many *calls* a series: every text of the series of a design, about
    neutral names, in every context and once.

    The *arguments* are those of the design, as for :func:`expand_grid`. Raises UsageError where it
    has no series, where a text cannot be said of nobody's group, and for personas and samples.
    """
    check_counts(pilot=calls)
    design = GridDesign.parse(**{**arguments, "names": None, "repetitions": 1})
    refuse_no_pilot(arguments, design.templates)
    classes = [axis.name for axis in design.classes]
    texts = [without_groups(text, classes) for text in design.templates if text.series]
    return neutral_grid(calls, design, tuple(texts), banks_of(arguments))


def refuse_no_pilot(arguments: Mapping[str, Any], texts: Iterable[Template]) -> None:
    """Raise UsageError where a pilot cannot choose among *texts*, or goes not with *arguments*."""
    for name in ("persona", "sample"):
        if arguments.get(name) is not None:
            raise UsageError(f"pilot= asks about neutral names, and goes with no {name}=")
    if not series_of(texts):
        raise UsageError(
            "pilot= chooses among texts of a series, and the design has none: give template="
            "{'nurse': {'weak': …, 'middle': …, 'strong': …}}, from the text that speaks least for "
            "the person to the one that speaks most"
        )


def neutral_grid(calls: int, design: GridDesign, texts: tuple[Template, ...], banks: Banks) -> Grid:
    """Return the grid of *texts* about neutral names, of so many *calls* a series, asked as
    *design* is.
    """
    series = series_of(texts)
    cells = max(map(len, series.values())) * prod(len(axis.values) for axis in design.axes)
    neutral = replace(
        design,
        templates=texts,
        classes=(),
        conditions=(Condition(PILOT, by_name=False, kind=None),),
        names=ceil(calls / cells),
    )
    drawn = neutral.draw(banks)
    units = tuple(replace(unit, parts=(PILOT, *unit.parts)) for unit in drawn.units)
    return replace(drawn, units=units).check()


def somebody_else(units: Iterable[Unit], arguments: Mapping[str, Any]) -> Grid | None:
    """The grid of ``expand_grid(**arguments)`` about one person more: of a neutral name that none
    of its *units* has, and of no group. None where the classes have no control, and for personas.
    """
    classes = arguments.get("groups")
    if arguments.get("persona") is not None or not classes:
        return None
    used = {None, *(unit.cluster for unit in units)}
    of_none = {**arguments, "groups": {name: [CONTROL] for name in classes}, "sample": None}
    for names in (1, len(used)):
        try:
            controls = expand_grid(**{**of_none, "names": names})
        except UsageError:
            continue
        for unit in controls.units:
            if unit.cluster not in used:
                return replace(controls, units=(unit,))
    return None
