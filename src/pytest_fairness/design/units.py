"""Units: everything in a cell that is neither template nor context: groups with their names, personas and words.

A grid is templates × context × units. Units are few (groups times names) and are made when the grid is made,
which is when everything that can be wrong with names, words and groups is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeAlias

from pytest_fairness.design.names import GENDER, RACE, SEXES, Name, NameBanks
from pytest_fairness.design.personas import SCORES, Persona
from pytest_fairness.design.render import BY_GENDER, Unit, pronouns
from pytest_fairness.design.signals import CONTROL, LABEL, PRONOUN, Condition, Signals
from pytest_fairness.design.slugs import slug, slugs
from pytest_fairness.errors import UsageError, did_you_mean, listed
from pytest_fairness.model import JSON

Value: TypeAlias = "str | Name"
_NAMES = 20  # a group, where a grid does not say


@dataclass(frozen=True, slots=True)
class GroupAxis:
    """A protected class with its groups; ``values`` holds the user's own names or phrases, if given."""

    name: str
    groups: tuple[str, ...]
    values: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)


def group_axes(groups: Mapping[str, object]) -> tuple[GroupAxis, ...]:
    """The axes of ``groups={class: [group, …]}`` or ``{class: {group: [value, …]}}``.

    Raises UsageError for an empty class or group, a group or value that stands twice (a name in two groups
    signals neither), and anything that is not text or a :class:`Name`.
    """
    if not groups:
        raise UsageError("groups is empty; give at least one protected class, such as {'gender': ['female', 'male']}")
    return tuple(_group_axis(name, value) for name, value in groups.items())


def _group_axis(name: str, value: object) -> GroupAxis:
    if not isinstance(name, str) or not name.isidentifier():
        raise UsageError(f"groups: {name!r} is no name for a protected class; use letters, digits and _")
    if isinstance(value, Mapping):
        values = {str(group): _values(f"groups[{name!r}][{group!r}]", items) for group, items in value.items()}
        owner: dict[str, str] = {}
        for group, items in values.items():
            for item in map(str, items):
                if owner.setdefault(item, group) != group:
                    raise UsageError(
                        f"groups[{name!r}]: {item!r} is in the groups {owner[item]!r} and {group!r}; "
                        "a value that stands for two groups signals neither"
                    )
        axis = GroupAxis(name, tuple(values), values)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        if not all(isinstance(group, str) and group for group in value):
            raise UsageError(f"groups[{name!r}]: groups are names such as 'black'; found {list(value)!r}")
        axis = GroupAxis(name, tuple(value))
    else:
        raise UsageError(
            f"groups[{name!r}]: give a list of groups, or a mapping from groups to names, not {type(value).__name__}"
        )
    if not axis.groups:
        raise UsageError(f"groups[{name!r}] has no groups; name at least two to compare")
    _once(axis.groups, f"groups[{name!r}]: the group ")
    return axis


def _values(where: str, items: object) -> tuple[Value, ...]:
    given = [items] if isinstance(items, (str, Name)) else items
    if isinstance(given, (set, frozenset)) or not isinstance(given, Sequence):
        raise UsageError(f"{where}: give a list of names or phrases, not {type(items).__name__}")
    values = tuple(given)
    if not values:
        raise UsageError(f"{where} is empty; give at least one name or phrase, or leave the group out")
    for value in values:
        if not isinstance(value, (str, Name)) or not str(value).strip():
            raise UsageError(f"{where}: {value!r} is no name or phrase")
    _once([str(value) for value in values], f"{where}: ")
    return values


def _once(texts: Sequence[str], where: str) -> None:
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        raise UsageError(f"{where}{twice!r} stands twice; keep one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where names and words come from, and how many names. ``slots`` are all that the templates have, ``after_who``
    those that go on with a sentence: "who {religion}".
    """

    banks: NameBanks
    signals: Signals
    slots: frozenset[str]
    after_who: frozenset[str] = frozenset()
    name_slot: str
    names: int | None
    seed: int

    def named(self, axis: GroupAxis, condition: Condition) -> bool:
        """Whether the name conveys this class."""
        if axis.values:
            return condition.by_name and axis.name not in self.slots
        return condition.by_name and axis.name in self.banks.protected_classes

    def phrases(
        self, axis: GroupAxis, groups: Mapping[str, str], condition: Condition, axes: Sequence[GroupAxis] = ()
    ) -> tuple[str, ...]:
        """The words that convey the axis's own of *groups*; none where the name, or the pronoun, does it alone.

        Of several *axes* the name conveys those that have no words of the condition's kind.
        """
        group = groups[axis.name]
        named, has_slot = self.named(axis, condition), axis.name in self.slots
        if axis.values:
            return () if named else tuple(map(str, axis.values[group]))
        if condition.kind is None and named:
            if has_slot:
                raise UsageError(
                    f"{axis.name} is conveyed twice: by the name, and by the slot {{{axis.name}}}; "
                    "if both are meant say signal='name+label', for the words alone say signal='label'"
                )
            return ()
        if condition.kind == PRONOUN and axis.name == GENDER:
            return ()
        if condition.kind is None and not has_slot:
            raise UsageError(
                f"no name signals {axis.name!r} (names signal: {listed(self.banks.protected_classes)})"
                f"{did_you_mean(axis.name, self.banks.protected_classes)}; put {{{axis.name}}} where the words belong "
                "in the template, say signal='label', or give names of your own"
            )
        kind = LABEL if condition.kind in (None, PRONOUN) else str(condition.kind)
        with_words = [other.name for other in axes if kind in self.signals.kinds_of(other.name)]
        if named and with_words and axis.name not in with_words:
            return ()
        phrases = self.signals.phrases(axis.name, group, kind, groups.get(GENDER))
        if kind == LABEL and axis.name in self.after_who:
            raise UsageError(
                f"the label of {axis.name} names the group ({phrases[0]!r}), so it does not go on after 'who': write "
                f"({{{axis.name}}}), or take a kind of signal that does, as docs/grids.md lists them"
            )
        return phrases

    def people(self, groups: Mapping[str, str], axes: Sequence[GroupAxis], condition: Condition) -> tuple[Name, ...]:
        """The names for one combination of groups; none where no template has a place for a name."""
        named = [axis for axis in axes if self.named(axis, condition)]
        own = next((axis for axis in named if axis.values), None)
        if own is not None:
            return self._own(own, named, groups)
        wanted = _NAMES if self.names is None else self.names
        # In a control group nothing is conveyed, so its names are the neutral ones.
        if not named or any(groups[axis.name] == CONTROL for axis in named):
            has_place = self.slots & {self.name_slot, "first_name", "last_name"}
            return self.banks.neutral(wanted, seed=self.seed) if has_place else ()
        base = [axis.name for axis in named if axis.name != GENDER]
        if len(base) > 1:
            raise UsageError(
                f"one name cannot signal both {base[0]} and {base[1]}; convey one of them by words: put "
                f"{{{base[1]}}} into the template, and give its values"
            )
        if not base:
            return self.banks.names(GENDER, groups[GENDER], wanted, seed=self.seed)
        gender = groups[GENDER] if any(axis.name == GENDER for axis in named) else None
        if gender not in (None, *SEXES):
            self.banks.names(GENDER, str(gender), wanted)  # refuses, and lists the groups that names do signal
        return self.banks.names(base[0], groups[base[0]], wanted, gender=gender, seed=self.seed)

    def _own(self, own: GroupAxis, named: Sequence[GroupAxis], groups: Mapping[str, str]) -> tuple[Name, ...]:
        if len(named) > 1:
            other = next(axis.name for axis in named if axis is not own)
            raise UsageError(
                f"names of your own signal {own.name}, so they cannot be drawn for {other} as well; give names for "
                f"the crossed groups, or convey {other} by words: put {{{other}}} into the template"
            )
        values = own.values[groups[own.name]]
        if self.names is not None and len(values) < self.names:
            raise UsageError(
                f"groups[{own.name!r}][{groups[own.name]!r}] has {len(values)} names, and names={self.names}"
            )
        names = (Name.given(value) for value in values[: self.names])
        return tuple(replace(name, groups={**name.groups, own.name: groups[own.name]}) for name in names)


@dataclass(frozen=True, slots=True)
class _Filling:
    """What a name or a persona puts into slots, and which groups those slots carry."""

    values: dict[str, str] = field(default_factory=dict)
    conveys: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def __or__(self, other: _Filling) -> _Filling:
        return _Filling(self.values | other.values, self.conveys | other.conveys)


def _of_name(name: Name, name_slot: str) -> _Filling:
    """The whole name, its parts, and the pronouns of its gender."""
    values = {name_slot: name.full, "first_name": name.first} | ({"last_name": name.last} if name.last else {})
    agreed = pronouns(BY_GENDER[name.gender]).values() if name.gender in BY_GENDER else {}
    return _Filling(values | agreed, dict.fromkeys(values, name.groups))


def _of_persona(persona: Persona, name_slot: str, signals: Signals) -> _Filling:
    """Every attribute as a slot, with words for the groups, and the pronouns of the gender."""
    groups = persona.groups
    values = {name: str(value) for name, value in persona.attributes.items() if name != "id"}
    values |= {name: signals.phrases(name, groups[name])[0] for name in (GENDER, RACE)}
    values |= {"disability": persona.disability_detail, "accent_language": persona.language}
    values["career_transition"] = persona.career_transition.replace("_", " ")
    values |= pronouns(BY_GENDER[persona.gender]).values()
    values[name_slot] = persona.name
    by_name = {key: groups[key] for key in (RACE, GENDER)}
    aliases = {"disability_detail": "disability", "language": "accent_language"}
    own = {slot: aliases.get(slot, slot) for slot in values}
    conveys: dict[str, Mapping[str, str]] = {slot: {key: groups[key]} for slot, key in own.items() if key in groups}
    return _Filling(values, conveys | dict.fromkeys((name_slot, "first_name", "last_name"), by_name))


def _attributes(persona: Persona | None, name: Name | None = None) -> dict[str, JSON]:
    """The parts of the name, which several people may share, and what a persona brings to the job."""
    first, last = (name.first, name.last) if name else (persona.first_name, persona.last_name) if persona else ("", "")
    parts: dict[str, JSON] = {"first_name": first, "last_name": last} if first and last else {}
    return parts | ({key: getattr(persona, key) for key in ("experience_years", *SCORES)} if persona else {})


def persona_units(personas: Sequence[Persona], sources: Sources) -> list[Unit]:
    """One unit a persona, as it is: its own name, attributes and groups."""
    units = []
    parts = slugs(persona.id for persona in personas)
    for persona in personas:
        filling = _of_persona(persona, sources.name_slot, sources.signals)
        units.append(
            Unit(
                parts=(parts[persona.id],),
                groups=persona.groups,
                values=filling.values,
                conveys=filling.conveys,
                cluster=persona.id,
                persona=persona.id,
                attributes=_attributes(persona),
                signal="persona",
            )
        )
    return units


def group_units(
    axes: Sequence[GroupAxis],
    conditions: Sequence[Condition],
    sources: Sources,
    personas: Sequence[Persona] = (),
) -> tuple[list[Unit], int]:
    """Every combination of groups, under every signal condition, with its names (and personas).

    Also returns how many units each combination has: all have the same number, one after the other. Raises
    UsageError where a combination has too few names, and where the numbers of names differ.
    """
    units: list[Unit] = []
    sizes: dict[str, int] = {}
    group_slugs = {axis.name: slugs(axis.groups) for axis in axes}
    for condition in conditions:
        lead = (slug(condition.name),) if len(conditions) > 1 else ()
        for combination in product(*(axis.groups for axis in axes)):
            groups = dict(zip((axis.name for axis in axes), combination, strict=True))
            parts = lead + tuple(group_slugs[name][group] for name, group in groups.items())
            made = _combination(groups, axes, condition, sources, personas, parts=parts)
            sizes[" ".join(["/".join(combination), *lead])] = len(made)
            units += made
    if len(set(sizes.values())) > 1:
        counts = ", ".join(f"{groups}: {size}" for groups, size in sizes.items())
        raise UsageError(f"the groups have different numbers of names or values ({counts}); give each the same number")
    return units, len(made)


def _combination(
    groups: Mapping[str, str],
    axes: Sequence[GroupAxis],
    condition: Condition,
    sources: Sources,
    personas: Sequence[Persona],
    *,
    parts: tuple[str, ...],
) -> list[Unit]:
    """The units of one combination of groups under one condition."""
    phrases = {axis.name: sources.phrases(axis, groups, condition, axes) for axis in axes}
    phrases = {name: found for name, found in phrases.items() if found}
    named = any(sources.named(axis, condition) for axis in axes)
    names = sources.people(groups, axes, condition)
    people = _people(names, personas, keep_own=not named and not {RACE, GENDER} & groups.keys())
    if not people:
        # No name and no persona: the words themselves are what varies within a group.
        people = [(None, None)] * max((len(found) for found in phrases.values()), default=1)
    agreed = _pronouns_of(groups[GENDER], required=condition.kind == PRONOUN) if GENDER in groups else {}
    name_parts = slugs(str(name) for name, _ in people if name)
    units = []
    for position, (drawn, persona) in enumerate(people):
        name = _keeping_gender(drawn, persona) if drawn and persona and GENDER not in groups else drawn
        labels = {key: found[position % len(found)] for key, found in phrases.items()}
        words = "; ".join(labels.values())
        filling = _of_persona(persona, sources.name_slot, sources.signals) if persona else _Filling()
        filling |= _of_name(name, sources.name_slot) if name else _Filling()
        if name and not name.last:
            filling.values.pop("last_name", None)
        if agreed:
            carried = {} if groups[GENDER] == CONTROL else {GENDER: groups[GENDER]}
            filling |= _Filling(dict(agreed), dict.fromkeys(agreed, carried) if carried else {})
        who = ([slug(persona.id)] if persona else []) + ([name_parts[str(name)]] if name else [])
        units.append(
            Unit(
                parts=(*parts, *(who or ([slug(words)] if words else []))),
                groups={**(persona.groups if persona else {}), **(name.groups if name else {}), **groups},
                swapped=groups,
                values=filling.values,
                labels=labels,
                conveys=filling.conveys,
                cluster=persona.id if persona and not named else str(name) if name else words or None,
                persona=persona.id if persona else None,
                attributes=_attributes(persona, name),
                signal=_signal(condition, named=named, words=bool(labels)),
            )
        )
    return units


def _keeping_gender(name: Name, persona: Persona) -> Name:
    """A swapped name brings its group; the persona's gender stays what it is."""
    if name.gender in (None, persona.gender):
        return name
    return replace(name, groups={key: group for key, group in name.groups.items() if key != GENDER})


def _signal(condition: Condition, *, named: bool, words: bool) -> str:
    """What the condition comes to: ``name`` is ``label`` for a class that only words convey."""
    if condition.kind is not None:
        return condition.name
    return "+".join(way for way, used in (("name", named), ("label", words)) if used) or condition.name


def _people(
    names: Sequence[Name], personas: Sequence[Persona], *, keep_own: bool
) -> list[tuple[Name | None, Persona | None]]:
    """Names and personas together: each persona gets a name in turn, of its own gender where there is one."""
    if not personas:
        return [(name, None) for name in names]
    if keep_own or not names:
        return [(None, persona) for persona in personas]
    pairs: list[tuple[Name | None, Persona | None]] = []
    turns: dict[str, int] = {}
    for persona in personas:
        fitting = [name for name in names if name.gender == persona.gender]
        sex = persona.gender if fitting else "any"
        turn = turns.setdefault(sex, 0)
        turns[sex] += 1
        pairs.append(((fitting or names)[turn % len(fitting or names)], persona))
    return pairs


def _pronouns_of(gender: str, *, required: bool) -> Mapping[str, str]:
    """The pronoun slots of a gender group, *they* for the control; none for a group without known pronouns."""
    known = {**BY_GENDER, CONTROL: "they"}
    if gender in known:
        return pronouns(known[gender]).values()
    if not required:
        return {}
    raise UsageError(
        f"signal='pronoun': no pronouns are known for the gender group {gender!r} (known: "
        f"{', '.join(BY_GENDER)}); vary them with an axis instead: pronouns=['she/her', 'ze/hir']"
    )
