"""Units: everything in a cell that is neither template nor context: groups with their names,
personas and words.

A grid is templates × context × units. Units are few (groups times names) and are made when the grid
is made, which is when everything that can be wrong with names, words and groups is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

from pytest_fairness.design.names import BY_SURNAME, GENDER, RACE, Name, NameBanks
from pytest_fairness.design.personas import SCORES, Persona
from pytest_fairness.design.signals import CONTROL, LABEL, PRONOUN, Condition, Signals
from pytest_fairness.design.slugs import slug, slugs
from pytest_fairness.design.templates import (
    BY_GENDER,
    SLOTS,
    Template,
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
    by class; ``conveys`` says which slots carry which groups; ``swapped`` are the groups that the
    grid compares. ``cluster`` is the unit of evidence, ``parts`` its share of the cell's id.
    """

    parts: tuple[str, ...]
    groups: Mapping[str, str]
    swapped: Mapping[str, str]
    values: Mapping[str, str]
    labels: Mapping[str, str]
    conveys: Mapping[str, Mapping[str, str]]
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
        named = {name_slot, *NAME_SLOTS, LABEL_SLOT, *SLOTS}
        slots = frozenset().union(*(template.plain_slots for template in asked))
        told = [
            self.values[slot]
            for slot in sorted(slots - named)
            if self.conveys.get(slot) and slot in self.values
        ]
        return "; ".join(dict.fromkeys([*self.labels.values(), *told]))

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
        loose = self.loose(template)
        bracket = ""
        values = {**self.values, **context}
        filled = {**values, **self.labels}
        if loose and LABEL_SLOT in template.plain_slots:
            filled[LABEL_SLOT] = " ".join(loose.values())
        elif loose and needs_labels:
            bracket = f"({', '.join(loose.values())})"
        first = {}
        if bracket and name_slot in filled:
            first = {name_slot: f"{filled[name_slot]} {bracket}"}
        text, spans = template.fill(filled, first)
        surfaces: dict[str, Mapping[str, str]] = {}
        for slot, start, end in spans:
            base = base_slot(slot)
            groups = self.conveys.get(base)
            if groups and start < end:
                is_name = base in (name_slot, *NAME_SLOTS)
                surfaces.setdefault(
                    values[base] if is_name else _with_surroundings(text, start, end), groups
                )
        if bracket and bracket in text:
            surfaces[bracket] = {name: self.groups[name] for name in loose}
        return text, surfaces


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
    for value in (
        value for value in values if not isinstance(value, kinds) or not str(value).strip()
    ):
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
                    f"{where}: {text[:60]!r} is in the groups {owner[text]!r} and {group!r}; a value that stands for "
                    "two groups signals neither"
                )


def refuse_uneven(what: str, sizes: Mapping[str, int]) -> None:
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
    if isinstance(value, Mapping):
        values = {
            str(group): given_values(f"{where}[{group!r}]", items, (str, Name), "name or phrase")
            for group, items in value.items()
        }
        refuse_shared(where, values)
    elif not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        kind = type(value).__name__
        raise UsageError(
            f"{where}: give a list of groups, or a mapping from groups to names, not {kind}"
        )
    groups = tuple(values or value)
    if not all(isinstance(group, str) and group for group in groups):
        raise UsageError(f"{where}: groups are names such as 'black'; found {list(groups)!r}")
    if not groups:
        raise UsageError(f"{where} has no groups; name at least two to compare")
    refuse_twice(f"{where}: the group", groups)
    return GroupAxis(name, groups, values)


# ---------------------------------------------------------------- names, personas and words together


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Where names and words come from, and how many names. ``slots`` are all that the templates
    have, ``after_who`` those that go on with a sentence: "who {religion}".
    """

    banks: NameBanks
    signals: Signals
    axes: Sequence[GroupAxis]
    personas: Sequence[Persona]
    slots: frozenset[str]
    after_who: frozenset[str]
    name_slot: str
    names: int | None
    seed: int

    def units(self, conditions: Sequence[Condition]) -> tuple[list[Unit], int]:
        """Every combination of groups, under every signal condition, with its names (and personas);
        without axes each persona as it is. Also how many units each combination has, one after the
        other, which is the same for all.

        Raises UsageError where a combination has too few names, and where the numbers of names
        differ.
        """
        units: list[Unit] = []
        sizes: dict[str, int] = {}
        group_slugs = {axis.name: slugs(axis.groups) for axis in self.axes}
        for condition in conditions:
            lead = (slug(condition.name),) if len(conditions) > 1 else ()
            for combination in product(*(axis.groups for axis in self.axes)):
                groups = dict(zip((axis.name for axis in self.axes), combination, strict=True))
                parts = (*lead, *(group_slugs[name][group] for name, group in groups.items()))
                made = self._combination(groups, condition, parts)
                sizes[" ".join(["/".join(combination), *lead])] = len(made)
                units += made
        refuse_uneven("the groups have different numbers of names or values", sizes)
        return units, len(made)

    def _combination(
        self, groups: Mapping[str, str], condition: Condition, parts: tuple[str, ...]
    ) -> list[Unit]:
        """Return the units of one combination of groups under one condition."""
        phrases = self._phrases_of(groups, condition)
        named = [axis for axis in self.axes if self._named(axis, condition)]
        people = self._people(groups, named)
        if not people:
            # No name and no persona: the words themselves are what varies within a group.
            people = [(None, None)] * max(map(len, phrases.values()), default=1)
        agreed = _agreed_pronouns(groups, required=condition.kind == PRONOUN)
        gender = {}
        if agreed and groups[GENDER] != CONTROL:
            gender = {GENDER: groups[GENDER]}
        wholes = [_called(name, persona) for name, persona in people]
        who = slugs(wholes)
        signal = _signal(condition, named=bool(named), worded=bool(phrases))
        units = []
        for position, ((swapped_in, persona), whole) in enumerate(zip(people, wholes, strict=True)):
            labels = {key: phrase[position % len(phrase)] for key, phrase in phrases.items()}
            words = "; ".join(labels.values())
            name = swapped_in or _name_of(persona)
            given = {**_groups_of(persona), **_groups_of(name), **groups}
            conveys = self._conveyed_by_person(name, persona)
            conveys |= dict.fromkeys(agreed, gender)
            conveys[LABEL_SLOT] = {key: given[key] for key in labels}
            conveys |= {key: {key: given[key]} for key in labels}
            id_parts = []
            if persona and swapped_in:
                id_parts.append(slug(persona.id))
            if whole:
                id_parts.append(who[whole])
            elif words:
                id_parts.append(slug(words))
            cluster: str | None = whole or words or None
            if persona and not named:
                cluster = persona.id
            units.append(
                Unit(
                    parts=(*parts, *id_parts),
                    groups=given,
                    swapped=groups,
                    values={**self._values(name, persona), **agreed},
                    labels=labels,
                    conveys=conveys,
                    cluster=cluster,
                    persona=_id_of(persona),
                    attributes=_attributes(name, persona),
                    signal=signal,
                )
            )
        return units

    def _phrases_of(
        self, groups: Mapping[str, str], condition: Condition
    ) -> dict[str, Sequence[str]]:
        """Return the phrases of each class that words convey."""
        phrases: dict[str, Sequence[str]] = {}
        for axis in self.axes:
            phrases_of_axis = self._phrases(axis, groups, condition)
            if phrases_of_axis:
                phrases[axis.name] = phrases_of_axis
        return phrases

    def _values(self, name: Name | None, persona: Persona | None) -> dict[str, str]:
        """Return the texts of the slots that stand for a person."""
        values: dict[str, str] = {}
        if persona:
            values |= self._persona_slots(persona)
        if name:
            values.pop("last_name", None)
            values |= {self.name_slot: name.full, "first_name": name.first}
            values |= pronouns_of(name.gender)
            if name.last:
                values["last_name"] = name.last
        return values

    def _conveyed_by_person(
        self, name: Name | None, persona: Persona | None
    ) -> dict[str, Mapping[str, str]]:
        """Return the groups that each slot of a person conveys."""
        conveys: dict[str, Mapping[str, str]] = {}
        for key, group in _groups_of(persona).items():
            for slot in (key, DETAILS.get(key, key)):
                conveys[slot] = {key: group}
        if name:
            conveys |= dict.fromkeys((self.name_slot, *NAME_SLOTS), name.groups)
        return conveys

    def _named(self, axis: GroupAxis, condition: Condition) -> bool:
        """Return whether the name conveys this class."""
        if axis.values:
            by_name = axis.name not in self.slots
        else:
            by_name = axis.name in self.banks.protected_classes
            # Where names convey some of the groups and not the others, words convey all of them.
            if by_name and axis.name in BY_SURNAME:
                by_name = {*axis.groups} <= {*self.banks.groups(axis.name), CONTROL}
        return condition.by_name and by_name

    def _phrases(
        self, axis: GroupAxis, groups: Mapping[str, str], condition: Condition
    ) -> tuple[str, ...]:
        """The words that convey the axis's own of *groups*; none where the name, or the pronoun,
        does it alone: of several axes the name conveys those that have no words of the condition's
        kind.
        """
        name = axis.name
        named = self._named(axis, condition)
        kind = condition.kind
        if axis.values:
            if named:
                return ()
            return tuple(map(str, axis.values[groups[name]]))
        if (kind is None and named and name not in self.slots) or (
            kind == PRONOUN and name == GENDER
        ):
            return ()
        if kind is None and named:
            raise UsageError(
                f"{name} is conveyed twice: by the name, and by the slot {{{name}}}; "
                "if both are meant say signal='name+label', for the words alone say signal='label'"
            )
        if kind is None and name not in self.slots:
            classes = self.banks.protected_classes
            raise UsageError(
                f"no name signals {name!r} (names signal: {listed(classes)}){did_you_mean(name, classes)}; put "
                f"{{{name}}} where the words belong in the template, say signal='label', or give names of your own"
            )
        if kind is None or kind == PRONOUN:
            kind = LABEL
        with_words = [
            other.name for other in self.axes if kind in self.signals.kinds_of(other.name)
        ]
        if named and with_words and name not in with_words:
            return ()
        phrases = self.signals.phrases(name, groups[name], kind, groups.get(GENDER))
        if kind == LABEL and name in self.after_who:
            raise UsageError(
                f"the label of {name} names the group ({phrases[0]!r}), so it does not go on after 'who': write "
                f"({{{name}}}), or take a kind of signal that does, as docs/grids.md lists them"
            )
        return phrases

    def _people(
        self, groups: Mapping[str, str], named: Sequence[GroupAxis]
    ) -> list[tuple[Name | None, Persona | None]]:
        """Names and personas together: each persona gets a name in turn, of its own gender where
        there is one.
        """
        personas = self.personas
        if personas and not named and not {RACE, GENDER} & groups.keys():
            return [(None, persona) for persona in personas]
        names = self._names(groups, named)
        if not personas or not names:
            return [(name, None) for name in names] or [(None, persona) for persona in personas]
        pairs: list[tuple[Name | None, Persona | None]] = []
        turns: Counter[str] = Counter()
        for persona in personas:
            fitting = [name for name in names if name.gender == persona.gender]
            sex = "any"
            if fitting:
                sex = persona.gender
            name = (fitting or names)[turns[sex] % len(fitting or names)]
            turns[sex] += 1
            if GENDER not in groups and name.gender not in (None, persona.gender):
                # The swapped name brings its group; the persona's gender stays what it is.
                name = replace(
                    name, groups={key: group for key, group in name.groups.items() if key != GENDER}
                )
            pairs.append((name, persona))
        return pairs

    def _names(self, groups: Mapping[str, str], named: Sequence[GroupAxis]) -> tuple[Name, ...]:
        """The names for one combination of groups, by the axes that are *named*; none where no
        template has a place.
        """
        naming = next((axis for axis in named if axis.values), None)
        if naming is None:
            wanted = _NAMES
            if self.names is not None:
                wanted = self.names
            # In a control group nothing is conveyed, so its names are the neutral ones.
            if not named or any(groups[axis.name] == CONTROL for axis in named):
                has_place = self.slots & {self.name_slot, "first_name", "last_name"}
                if has_place:
                    return self.banks.neutral(wanted, seed=self.seed)
                return ()
            return self.banks.signalling(
                {axis.name: groups[axis.name] for axis in named}, wanted, seed=self.seed
            )
        other = next((axis.name for axis in named if axis is not naming), None)
        if other is not None:
            raise UsageError(
                f"names of your own signal {naming.name}, so they cannot be drawn for {other} as well; give names for "
                f"the crossed groups, or convey {other} by words: put {{{other}}} into the template"
            )
        group = groups[naming.name]
        values = naming.values[group]
        if self.names is not None and len(values) < self.names:
            raise UsageError(
                f"groups[{naming.name!r}][{group!r}] has {len(values)} names, and names={self.names}"
            )
        names = (Name.given(value) for value in values[: self.names])
        return tuple(replace(name, groups={**name.groups, naming.name: group}) for name in names)

    def _persona_slots(self, persona: Persona) -> dict[str, str]:
        """Every attribute as a slot, with words for the groups, and the pronouns of the gender."""
        return {
            **persona.slots,
            **{
                name: self.signals.phrases(name, persona.groups[name])[0] for name in (GENDER, RACE)
            },
            **{name: getattr(persona, detail) for name, detail in DETAILS.items()},
            "career_transition": persona.career_transition.replace("_", " "),
            **pronouns_of(persona.gender),
        }


def _called(name: Name | None, persona: Persona | None) -> str:
    """Return what a person is told by: the name, or the persona; empty for neither."""
    if name:
        return name.full
    return _id_of(persona) or ""


def _id_of(persona: Persona | None) -> str | None:
    if persona is None:
        return None
    return persona.id


def _name_of(persona: Persona | None) -> Name | None:
    """Return the name of *persona*, with the groups that it conveys."""
    if persona is None:
        return None
    by_name = {key: persona.groups[key] for key in (RACE, GENDER)}
    return Name(first=persona.first_name, last=persona.last_name, groups=by_name)


def _groups_of(person: Name | Persona | None) -> dict[str, str]:
    if person is None:
        return {}
    return dict(person.groups)


def _attributes(name: Name | None, persona: Persona | None) -> dict[str, JSON]:
    """Return what the table of trials says of a person beside the groups."""
    attributes: dict[str, JSON] = {}
    if name and name.first and name.last:
        attributes |= {"first_name": name.first, "last_name": name.last}
    if persona:
        attributes |= {key: getattr(persona, key) for key in ("experience_years", *SCORES)}
    return attributes


def _signal(condition: Condition, *, named: bool, worded: bool) -> str:
    """Return what conveys the groups; ``name`` is ``label`` for a class that only words convey."""
    ways = []
    if condition.kind is None and named:
        ways.append("name")
    if condition.kind is None and worded:
        ways.append("label")
    return "+".join(ways) or condition.name


def _agreed_pronouns(groups: Mapping[str, str], *, required: bool) -> Mapping[str, str]:
    """The pronoun slots of a gender group, *they* for the control; none for a group without known
    pronouns.
    """
    gender = groups.get(GENDER)
    if gender == CONTROL:
        agreed = pronouns("they")
    else:
        agreed = pronouns_of(gender)
    if agreed or gender is None or not required:
        return agreed
    raise UsageError(
        f"signal='pronoun': no pronouns are known for the gender group {gender!r} (known: "
        f"{', '.join(BY_GENDER)}); vary them with an axis instead: pronouns=['she/her', 'ze/hir']"
    )
