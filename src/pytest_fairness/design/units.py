"""Units: everything in a cell that is neither template nor context: groups with their names,
personas and words.

A grid is templates × context × units. Units are few (groups times names) and are made when the grid
is made, which is when everything that can be wrong with names, words and groups is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product, repeat
from pathlib import Path
from typing import Any, NamedTuple

from pytest_fairness.design.locales import Locale, read_locale
from pytest_fairness.design.names import BY_SURNAME, GENDER, RACE, Name, NameBanks
from pytest_fairness.design.personas import SCORES, Persona
from pytest_fairness.design.signals import CONTROL, LABEL, PRONOUN, Condition, Signals
from pytest_fairness.design.slugs import slug, slugs
from pytest_fairness.design.templates import (
    BY_GENDER,
    SLOTS,
    Template,
    are_texts,
    base_slot,
    pronouns,
    pronouns_of,
)
from pytest_fairness.errors import UsageError, did_you_mean, refuse_twice
from pytest_fairness.model import JSON
from pytest_fairness.words import listed

LABEL_SLOT = "label"
NAME_SLOTS = ("first_name", "last_name")
_AROUND = 20
_NAMES = 20  # a group, where a grid does not say
_KEPT = 256
"""Crossings whose units are kept: more than a suite has."""
DETAILS = {
    "disability": "disability_detail", "accent_language": "language", "religion": "religion_detail",
    "pregnancy_family": "pregnancy_family_detail", "marital_status": "marital_status_detail",
    "appearance": "appearance_detail", "health": "health_detail",
}  # fmt: skip
"""Classes of personas that have a second slot, which says more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One combination of groups with one name, one persona, or both: all of a cell but template and
    context.

    ``values`` fills slots; ``labels`` are the words to put where a template has a place for them,
    by class; ``conveys`` says which slots carry which groups; ``agreeing`` are the slots that agree
    with a name, pronouns among them; ``swapped`` are the groups that the grid compares. ``cluster``
    is the unit of evidence, ``parts`` its share of the cell's id.
    """

    parts: tuple[str, ...]
    groups: Mapping[str, str]
    swapped: Mapping[str, str]
    values: Mapping[str, str]
    labels: Mapping[str, str]
    conveys: Mapping[str, Mapping[str, str]]
    agreeing: frozenset[str] = SLOTS
    cluster: str | None
    persona: str | None
    attributes: Mapping[str, JSON]
    signal: str

    def loose(self, template: Template) -> dict[str, str]:
        """The words that *template* has no slot for."""
        return {
            name: words for name, words in self.labels.items() if name not in template.plain_slots
        }

    def words_in(self, asked: Iterable[Template], name_slot: str) -> str:
        """The words by which the texts *asked* convey a group, beside names and pronouns: ``has
        depression; Black``.
        """
        named = {name_slot, *NAME_SLOTS, LABEL_SLOT, *self.agreeing}
        slots: set[str] = set()
        for template in asked:
            slots |= template.plain_slots
        words = dict.fromkeys(self.labels.values())
        for slot in sorted(self.values.keys() & (slots - named)):
            if self.conveys.get(slot):
                words[self.values[slot]] = None
        return "; ".join(words)

    def render(
        self,
        template: Template,
        context: Mapping[str, str],
        name_slot: str,
        *,
        needs_labels: bool = True,
    ) -> tuple[str, dict[str, Mapping[str, str]]]:
        """The text of *template* in *context*, and its surface strings with the groups that each
        conveys.

        Words without a slot of their own stand in ``{label}``, else in brackets behind the name,
        ``(Black, female)``; with *needs_labels* off (a system prompt) they are left out.
        """
        values = {**self.values, **context}
        filled, first, bracket = self._filling(
            template, values, name_slot, needs_labels=needs_labels
        )
        text, spans = template.fill(filled, first)
        surfaces = self._surfaces(text, spans, values, {name_slot, *NAME_SLOTS})
        if bracket and bracket in text:
            surfaces[bracket] = {name: self.groups[name] for name in self.loose(template)}
        return text, surfaces

    def text(self, template: Template, values: Mapping[str, str], name_slot: str) -> str:
        """Return the text of *template* in a context of these *values*, without the words that it
        has no slot for.
        """
        filled, first, _ = self._filling(
            template, {**self.values, **values}, name_slot, needs_labels=False
        )
        return template.render(filled, first)

    def filling(
        self, template: Template, context: Mapping[str, str], name_slot: str
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return what fills the slots of *template* in *context*, and what fills the first of the
        name: the same for every template that has the same slots.
        """
        values = {**self.values, **context}
        filled, first, _ = self._filling(template, values, name_slot, needs_labels=True)
        used = filled.keys() & template.plain_slots
        return {slot: filled[slot] for slot in used}, first

    def _filling(
        self, template: Template, values: Mapping[str, str], name_slot: str, *, needs_labels: bool
    ) -> tuple[dict[str, str], dict[str, str], str]:
        """Return what fills the slots, what fills the first of the name, and the bracket behind the
        name, if there is one.
        """
        loose = self.loose(template)
        filled = {**values, **self.labels}
        if not loose:
            return filled, {}, ""
        bracket = ""
        if LABEL_SLOT in template.plain_slots:
            filled[LABEL_SLOT] = " ".join(loose.values())
        elif needs_labels:
            bracket = f"({', '.join(loose.values())})"
        first = {}
        if bracket and name_slot in filled:
            first = {name_slot: f"{filled[name_slot]} {bracket}"}
        return filled, first, bracket

    def _surfaces(
        self,
        text: str,
        spans: Iterable[tuple[str, int, int]],
        values: Mapping[str, str],
        names: Container[str],
    ) -> dict[str, Mapping[str, str]]:
        """Return the strings of *text* at *spans* that convey groups, with the groups: those of
        *values* in the slots *names* as they are, others with the words around them.
        """
        surfaces: dict[str, Mapping[str, str]] = {}
        for slot, start, end in spans:
            base = base_slot(slot)
            groups = self.conveys.get(base)
            if groups and start < end:
                if base in names:
                    surface = values[base]
                else:
                    surface = _with_surroundings(text, start, end)
                surfaces.setdefault(surface, groups)
        return surfaces


def _with_surroundings(text: str, start: int, end: int) -> str:
    """The value with the whole words around it on its line: "24" alone would be found anywhere."""
    left = max(0, start - _AROUND)
    right = min(len(text), end + _AROUND)
    while 0 < left < start and text[left - 1].isalnum():
        left += 1
    while end < right < len(text) and text[right].isalnum():
        right -= 1
    before = text[left:start].rpartition("\n")[2]
    after = text[end:right].partition("\n")[0]
    return f"{before}{text[start:end]}{after}".strip()


# ---------------------------------------------------------------- what a test gives


def given_values(where: str, items: object, kinds: tuple[type, ...], what: str) -> tuple[Any, ...]:
    """The values that a test gives for one group: *what* of *kinds*, or a list of those. Raises
    UsageError.
    """
    values = items
    if isinstance(items, kinds):
        values = [items]
    if not isinstance(values, Sequence):
        raise UsageError(f"{where}: give a list, each item a {what}, not {type(items).__name__}")
    if not values:
        raise UsageError(f"{where} is empty; give at least one {what}, or leave the group out")
    for value in values:
        if not isinstance(value, kinds) or not str(value).strip():
            raise UsageError(f"{where}: {value!r} is no {what}")
    return tuple(values)


def refuse_shared(where: str, values: Mapping[str, Iterable[object]]) -> None:
    """Raise UsageError for a value that stands for two of the groups, or twice for one."""
    owner: dict[str, str] = {}
    for group, items in values.items():
        texts = list(map(str, items))
        refuse_twice(f"{where}[{group!r}]:", texts)
        for text in texts:
            if owner.setdefault(text, group) != group:
                raise UsageError(
                    f"{where}: {text[:60]!r} is in the groups {owner[text]!r} and {group!r}; a "
                    "value that stands for two groups signals neither"
                )


def refuse_uneven(what: str, sizes: Mapping[str, int]) -> None:
    """Raise UsageError where groups have unlike *sizes*: the larger would count for more."""
    if len(set(sizes.values())) > 1:
        counts = ", ".join(f"{group}: {size}" for group, size in sizes.items())
        raise UsageError(f"{what} ({counts}); give each the same number")


class GroupAxis(NamedTuple):
    """A protected class with its groups; ``values`` holds the user's own names or phrases, if
    given.
    """

    name: str
    groups: tuple[str, ...]
    values: Mapping[str, tuple[str | Name, ...]]


def group_axis(name: str, value: object) -> GroupAxis:
    """The axis of an entry of ``groups={class: [group, …]}`` or ``{class: {group: [value, …]}}``.

    Raises UsageError for nothing, for what stands twice, and for what is no text or :class:`Name`.
    """
    where = f"groups[{name!r}]"
    if not isinstance(name, str) or not name.isidentifier():
        raise UsageError(
            f"groups: {name!r} is no name for a protected class; use letters, digits and _"
        )
    values: dict[str, tuple[str | Name, ...]] = {}
    groups: tuple[Any, ...]
    if isinstance(value, Mapping):
        for group, items in value.items():
            kinds = (str, Name)
            given = given_values(f"{where}[{group!r}]", items, kinds, "name or phrase")
            values[str(group)] = given
        refuse_shared(where, values)
        groups = tuple(values)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        groups = tuple(value)
    else:
        kind = type(value).__name__
        raise UsageError(
            f"{where}: give a list of groups, or a mapping from groups to names, not {kind}"
        )
    if not are_texts(groups) or "" in groups:
        raise UsageError(f"{where}: groups are names such as 'black'; found {list(groups)!r}")
    if not groups:
        raise UsageError(f"{where} has no groups; name at least two to compare")
    refuse_twice(f"{where}: the group", groups)
    return GroupAxis(name, groups, values)


# ---------------------------------------------------------------- names, personas and words together


@dataclass(frozen=True, eq=False)
class Banks:
    """The banks that names and words are drawn from: the shipped ones, with those of a project's
    ``personas`` *folder*. ``crossed`` are the units of the crossings that were drawn from them.
    """

    folder: Path | None
    names: NameBanks
    signals: Signals
    locale: Locale | None = None
    crossed: dict[Hashable, tuple[tuple[Unit, ...], int]] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def load(cls, folder: Path | None = None, locale: str | None = None) -> Banks:
        """Read the banks; those of a *locale* have names, words and agreement of their own. Raises
        UsageError.
        """
        if folder is None:
            return _shipped_banks(locale)
        return _read_banks(folder, locale)

    @property
    def agreeing(self) -> frozenset[str]:
        """The slots that agree with a name."""
        if self._forms is None:
            return SLOTS
        return self._forms.slots

    def agreement(self, gender: str | None) -> Mapping[str, str]:
        """Return what the agreeing slots hold for a name of that *gender*."""
        if self._forms is None:
            return pronouns_of(gender)
        return self._forms.agreeing(gender)

    @property
    def _forms(self) -> Locale | None:
        """The locale that has agreeing forms; None in English, where these are the pronouns."""
        if self.is_english:
            return None
        return self.locale

    @property
    def is_english(self) -> bool:
        """Return whether texts are in English, of whichever dialect."""
        return self.locale is None or self.locale.english


def _read_banks(folder: Path | None, locale: str | None) -> Banks:
    """Return the banks of *locale*, with those of *folder*. Raises UsageError."""
    language = None
    if locale is not None:
        language = read_locale(locale, folder)
    names = NameBanks.load(folder, locale)
    return Banks(folder, names, Signals.load(folder, locale), language)


@cache
def _shipped_banks(locale: str | None) -> Banks:
    return _read_banks(None, locale)


class Person(NamedTuple):
    """The person in a unit: a name that is swapped in, a persona, both, or nobody."""

    swapped_in: Name | None
    persona: Persona | None

    @property
    def name(self) -> Name | None:
        """The name swapped in, else that of the persona, with the groups that it conveys."""
        persona = self.persona
        if self.swapped_in or persona is None:
            return self.swapped_in
        by_name = {key: persona.groups[key] for key in (RACE, GENDER)}
        return Name(first=persona.first_name, last=persona.last_name, groups=by_name)

    @property
    def persona_id(self) -> str | None:
        """Return the id of the persona; None where there is none."""
        if self.persona is None:
            return None
        return self.persona.id

    @property
    def called(self) -> str:
        """The name or id that tells the person from others: the name swapped in, else the persona's
        id; empty for nobody.
        """
        if self.swapped_in:
            return self.swapped_in.full
        return self.persona_id or ""

    @property
    def groups(self) -> dict[str, str]:
        """The groups of the persona, and those that the name conveys."""
        groups: dict[str, str] = {}
        if self.persona:
            groups |= self.persona.groups
        if self.name:
            groups |= self.name.groups
        return groups

    @property
    def attributes(self) -> dict[str, JSON]:
        """The columns about the person in the table of trials, beside the groups."""
        attributes: dict[str, JSON] = {}
        name = self.name
        if name and name.first and name.last:
            attributes |= {"first_name": name.first, "last_name": name.last}
        if self.persona:
            for key in ("experience_years", *SCORES):
                attributes[key] = getattr(self.persona, key)
        return attributes


_NOBODY = Person(None, None)


class Combination(NamedTuple):
    """One combination of ``groups`` under one signal condition, and what conveys them: the classes
    that names convey (``named``), the ``phrases`` of the others, and ``pronouns``.
    """

    groups: Mapping[str, str]
    parts: tuple[str, ...]
    named: Sequence[GroupAxis]
    phrases: Mapping[str, Sequence[str]]
    pronouns: Mapping[str, str]
    signal: str

    @property
    def conveyed_by_pronouns(self) -> dict[str, str]:
        """The gender, where pronouns are sent and the group is no control."""
        if self.pronouns and self.groups[GENDER] != CONTROL:
            return {GENDER: self.groups[GENDER]}
        return {}

    @property
    def nobodies(self) -> list[Person]:
        """As many as there are phrases: without names and personas, words are what varies within a
        group.
        """
        return [_NOBODY] * max(map(len, self.phrases.values()), default=1)

    def labels(self, position: int) -> dict[str, str]:
        """Return the words of each class for the unit at *position*: phrases are used in turn."""
        return {key: phrases[position % len(phrases)] for key, phrases in self.phrases.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """The crossing of classes and personas: where names and words come from, and how many names.
    ``slots`` are all that the templates have, ``after_who`` those that go on with a sentence: "who
    {religion}".
    """

    banks: Banks
    classes: Sequence[GroupAxis]
    personas: Sequence[Persona]
    slots: frozenset[str]
    after_who: frozenset[str]
    name_slot: str
    names: int | None
    seed: int

    def units(self, conditions: Sequence[Condition]) -> tuple[tuple[Unit, ...], int]:
        """Every combination of groups, under every signal condition, with its names (and personas);
        without classes each persona as it is. Also how many units each combination has, one after
        the other, which is the same for all.

        They are kept, as the designs of a suite cross the same groups. Raises UsageError where a
        combination has too few names, and where the numbers of names differ.
        """
        classes = tuple((name, groups, *values.items()) for name, groups, values in self.classes)
        settings = (self.slots, self.after_who, self.name_slot, self.names, self.seed)
        crossing = (classes, tuple(self.personas), *settings, *conditions)
        kept = self.banks.crossed
        if crossing not in kept:
            units = self._crossed(conditions)
            if len(kept) == _KEPT:
                kept.clear()
            kept[crossing] = units
        return kept[crossing]

    def _crossed(self, conditions: Sequence[Condition]) -> tuple[tuple[Unit, ...], int]:
        """Return what :meth:`units` does, drawn now. Raises UsageError."""
        units: list[Unit] = []
        sizes: dict[str, int] = {}
        group_slugs = {axis.name: slugs(axis.groups) for axis in self.classes}
        for condition in conditions:
            lead: tuple[str, ...] = ()
            if len(conditions) > 1:
                lead = (slug(condition.name),)
            for chosen in product(*(axis.groups for axis in self.classes)):
                groups = dict(zip(group_slugs, chosen, strict=True))
                parts = (*lead, *(group_slugs[name][group] for name, group in groups.items()))
                made = self._units_of(self._combination(groups, condition, parts))
                sizes[" ".join(["/".join(chosen), *lead])] = len(made)
                units += made
        refuse_uneven("the groups have different numbers of names or values", sizes)
        return tuple(units), len(made)

    def _combination(
        self, groups: Mapping[str, str], condition: Condition, parts: tuple[str, ...]
    ) -> Combination:
        """Return what conveys *groups* under *condition*."""
        phrases: dict[str, Sequence[str]] = {}
        for axis in self.classes:
            phrases_of_class = self._phrases(axis, groups, condition)
            if phrases_of_class:
                phrases[axis.name] = phrases_of_class
        named = [axis for axis in self.classes if self._named(axis, condition)]
        return Combination(
            groups=groups,
            parts=parts,
            named=named,
            phrases=phrases,
            pronouns=self._agreed_pronouns(groups, required=condition.kind == PRONOUN),
            signal=_signal(condition, named=bool(named), worded=bool(phrases)),
        )

    def _agreed_pronouns(self, groups: Mapping[str, str], *, required: bool) -> Mapping[str, str]:
        """The agreeing slots of a gender group, those of nobody for the control; none for a group
        without known pronouns.
        """
        gender = groups.get(GENDER)
        if gender is None:
            return {}
        if gender == CONTROL and self.banks.is_english:
            return pronouns("they")
        agreed = self.banks.agreement(gender)
        if required and not agreed:
            raise UsageError(
                f"signal='pronoun': no pronouns are known for the gender group {gender!r} (known: "
                f"{', '.join(BY_GENDER)}); vary them with an axis instead: pronouns=['she/her', "
                "'ze/hir']"
            )
        return agreed

    def _units_of(self, combination: Combination) -> list[Unit]:
        """Return the units of one combination, one a person."""
        people = self._people(combination) or combination.nobodies
        who = slugs([person.called for person in people])
        return [
            self._unit(combination, person, combination.labels(position), who[person.called])
            for position, person in enumerate(people)
        ]

    def _unit(
        self, combination: Combination, person: Person, labels: Mapping[str, str], who: str
    ) -> Unit:
        """Return the unit of *person*, whose slug is *who*, conveyed by *labels* as well."""
        words = "; ".join(labels.values())
        groups = {**person.groups, **combination.groups}
        id_parts = []
        if person.persona and person.swapped_in:
            id_parts.append(slug(person.persona.id))
        if person.called:
            id_parts.append(who)
        elif words:
            id_parts.append(slug(words))
        cluster: str | None = person.called or words or None
        if person.persona and not combination.named:
            cluster = person.persona.id
        return Unit(
            parts=(*combination.parts, *id_parts),
            groups=groups,
            swapped=combination.groups,
            values={**self._values(person), **combination.pronouns},
            labels=labels,
            conveys=self._conveys(combination, person, {key: groups[key] for key in labels}),
            agreeing=self.banks.agreeing,
            cluster=cluster,
            persona=person.persona_id,
            attributes=person.attributes,
            signal=combination.signal,
        )

    def _values(self, person: Person) -> dict[str, str]:
        """Return the texts of the slots that stand for *person*."""
        values: dict[str, str] = {}
        name = person.name
        if person.persona:
            values |= self._persona_slots(person.persona)
        if name:
            values.pop("last_name", None)
            values |= {self.name_slot: name.full, "first_name": name.first}
            values |= self.banks.agreement(name.gender)
            if name.last:
                values["last_name"] = name.last
        return values

    def _conveys(
        self, combination: Combination, person: Person, labelled: Mapping[str, str]
    ) -> dict[str, Mapping[str, str]]:
        """Return the groups that each slot conveys, those that words say (*labelled*) among them."""
        conveys: dict[str, Mapping[str, str]] = {}
        if person.persona:
            for key, group in person.persona.groups.items():
                conveys[key] = {key: group}
                conveys[DETAILS.get(key, key)] = {key: group}
        if person.name:
            conveys |= dict.fromkeys((self.name_slot, *NAME_SLOTS), person.name.groups)
        conveys |= dict.fromkeys(combination.pronouns, combination.conveyed_by_pronouns)
        conveys[LABEL_SLOT] = labelled
        for key, group in labelled.items():
            conveys[key] = {key: group}
        return conveys

    def _named(self, axis: GroupAxis, condition: Condition) -> bool:
        """Return whether the name conveys this class."""
        if not condition.by_name:
            return False
        if axis.values:
            return axis.name not in self.slots
        if axis.name not in self.banks.names.protected_classes:
            return False
        # Where names convey some of the groups and not the others, words convey all of them.
        if axis.name in BY_SURNAME:
            return {*axis.groups} <= {*self.banks.names.groups(axis.name), CONTROL}
        return True

    def _phrases(
        self, axis: GroupAxis, groups: Mapping[str, str], condition: Condition
    ) -> tuple[str, ...]:
        """The words that convey the axis's own of *groups*; none where the name, or the pronoun,
        does it alone: of several axes the name conveys those that have no words of the condition's
        kind.
        """
        name = axis.name
        named = self._named(axis, condition)
        if axis.values and not named:
            return tuple(map(str, axis.values[groups[name]]))
        if axis.values or self._is_wordless(name, condition, named=named):
            return ()
        kind = condition.words
        if self.banks.locale is not None and kind not in self.banks.signals.kinds_of(name):
            raise UsageError(
                f"locale={self.banks.locale.name!r} has no words of the kind {kind} that convey "
                f"{name}; give phrases of your own: groups={{{name!r}: {{{groups[name]!r}: ['…'], "
                "…}}"
            )
        phrases = self.banks.signals.phrases(name, groups[name], kind, groups.get(GENDER))
        if kind == LABEL:
            self._refuse_after_who(name, phrases[0])
        return phrases

    def _is_wordless(self, name: str, condition: Condition, *, named: bool) -> bool:
        """Return whether the name (*named*) or the pronoun alone conveys the class *name*. Raises
        UsageError where the condition has no words for it, and it needs some.
        """
        if condition.kind is None:
            if named and name not in self.slots:
                return True
            self._refuse_no_words(name, named=named)
        if condition.kind == PRONOUN and name == GENDER:
            return True
        return named and self._others_have_words(name, condition.words)

    def _refuse_after_who(self, name: str, label: str) -> None:
        """Raise UsageError where a template has the words of class *name* after "who"."""
        if name in self.after_who:
            raise UsageError(
                f"the label of {name} names the group ({label!r}), so it does not go on after "
                f"'who': write ({{{name}}}), or take a kind of signal that does, as docs/grids.md "
                "lists them"
            )

    def _refuse_no_words(self, name: str, *, named: bool) -> None:
        """Raise UsageError for a class that is to be conveyed by its name, and has a slot as well,
        or neither.
        """
        if named:
            raise UsageError(
                f"{name} is conveyed twice: by the name, and by the slot {{{name}}}; "
                "if both are meant say signal='name+label', for the words alone say signal='label'"
            )
        if name not in self.slots:
            classes = self.banks.names.protected_classes
            raise UsageError(
                f"no name signals {name!r} (names signal: {listed(classes)})"
                f"{did_you_mean(name, classes)}; put {{{name}}} where the words belong in the "
                "template, say signal='label', or give names of your own"
            )

    def _others_have_words(self, name: str, kind: str) -> bool:
        """Return whether there are words of *kind* for another class, and none for that of *name*."""
        with_words = [
            axis.name for axis in self.classes if kind in self.banks.signals.kinds_of(axis.name)
        ]
        return bool(with_words) and name not in with_words

    def _people(self, combination: Combination) -> list[Person]:
        """Names and personas together: each persona gets a name in turn, of its own gender where
        there is one.
        """
        groups = combination.groups
        personas = self.personas
        names: tuple[Name, ...] = ()
        wants_names = (not personas, combination.named, {RACE, GENDER} & groups.keys())
        if any(wants_names):
            names = self._names(combination)
        if not names:
            return list(map(Person, repeat(None), personas))
        if not personas:
            return list(map(Person, names, repeat(None)))
        people: list[Person] = []
        for name, persona in _in_turn(names, personas):
            swapped_in = name
            if GENDER not in groups and name.gender not in (None, persona.gender):
                # The swapped name brings its groups; the persona's gender stays what it is.
                swapped_in = _without_gender(name)
            people.append(Person(swapped_in, persona))
        return people

    def _names(self, combination: Combination) -> tuple[Name, ...]:
        """The names for one combination of groups; none where no template has a place."""
        groups = combination.groups
        named = combination.named
        for axis in named:
            if axis.values:
                return self._given_names(axis, groups[axis.name], named)
        return self._names_of_banks({axis.name: groups[axis.name] for axis in named})

    def _names_of_banks(self, signalled: Mapping[str, str]) -> tuple[Name, ...]:
        """Return names that convey the groups *signalled*; neutral ones where there are none."""
        wanted = _NAMES
        if self.names is not None:
            wanted = self.names
        banks = self.banks.names
        # In a control group nothing is conveyed, so its names are the neutral ones.
        if signalled and CONTROL not in signalled.values():
            return banks.signalling(signalled, wanted, seed=self.seed)
        if self.slots & {self.name_slot, "first_name", "last_name"}:
            return banks.neutral(wanted, seed=self.seed)
        return ()

    def _given_names(
        self, naming: GroupAxis, group: str, named: Sequence[GroupAxis]
    ) -> tuple[Name, ...]:
        """The names that the test itself gives for *group*, which convey the class *naming*."""
        others = [axis.name for axis in named if axis is not naming]
        if others:
            raise UsageError(
                f"names of your own signal {naming.name}, so they cannot be drawn for {others[0]} "
                "as well; give names for the crossed groups, or convey "
                f"{others[0]} by words: put {{{others[0]}}} into the template"
            )
        values = naming.values[group]
        if self.names is not None and len(values) < self.names:
            raise UsageError(
                f"groups[{naming.name!r}][{group!r}] has {len(values)} names, and names={self.names}"
            )
        names = map(Name.given, values[: self.names])
        return tuple(replace(name, groups={**name.groups, naming.name: group}) for name in names)

    def _persona_slots(self, persona: Persona) -> dict[str, str]:
        """Every attribute as a slot, with words for the groups, and the pronouns of the gender."""
        slots = dict(persona.slots)
        for name in (GENDER, RACE):
            slots[name] = self.banks.signals.phrases(name, persona.groups[name])[0]
        for name, detail in DETAILS.items():
            slots[name] = getattr(persona, detail)
        slots["career_transition"] = persona.career_transition.replace("_", " ")
        return slots | pronouns_of(persona.gender)


def _in_turn(names: Sequence[Name], personas: Iterable[Persona]) -> Iterator[tuple[Name, Persona]]:
    """Yield a name for each persona: the next one of its gender, or of all where there is none."""
    turns: Counter[str] = Counter()
    for persona in personas:
        sex = persona.gender
        fitting = [name for name in names if name.gender == sex]
        if not fitting:
            sex = "any"
            fitting = list(names)
        yield fitting[turns[sex] % len(fitting)], persona
        turns[sex] += 1


def _without_gender(name: Name) -> Name:
    """*name* without what it says of gender."""
    groups = dict(name.groups)
    groups.pop(GENDER, None)
    return replace(name, groups=groups)


#: What conveys the groups, by whether a name does and whether words do.
_SIGNALS = {(True, True): "name+label", (True, False): "name", (False, True): "label"}


def _signal(condition: Condition, *, named: bool, worded: bool) -> str:
    """Return what conveys the groups; ``name`` is ``label`` for a class that only words convey."""
    if condition.kind is not None:
        return condition.name
    return _SIGNALS.get((named, worded), condition.name)
