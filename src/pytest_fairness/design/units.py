"""Units: everything in a cell that is neither template nor context: groups with their names, personas and words.

A grid is templates × context × units. Units are few (groups times names) and are made when the grid is made,
which is when everything that can be wrong with names, words and groups is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from pytest_fairness.design.names import GENDER, RACE, Name, NameBanks
from pytest_fairness.design.personas import SCORES, Persona
from pytest_fairness.design.render import BY_GENDER, LABEL_SLOT, Unit, pronouns
from pytest_fairness.design.signals import CONTROL, LABEL, PRONOUN, Condition, Signals
from pytest_fairness.design.slugs import slug, slugs
from pytest_fairness.errors import UsageError, did_you_mean, listed, refuse_twice
from pytest_fairness.model import JSON

_NAMES = 20  # a group, where a grid does not say


def given_values(where: str, items: object, kinds: tuple[type, ...], what: str) -> tuple[Any, ...]:
    """The values that a test gives for one group: *what* of *kinds*, or a list of those. Raises UsageError."""
    values = [items] if isinstance(items, kinds) else items
    if not isinstance(values, Sequence):
        raise UsageError(f"{where}: give a list, each item a {what}, not {type(items).__name__}")
    if not values:
        raise UsageError(f"{where} is empty; give at least one {what}, or leave the group out")
    for value in values:
        if not isinstance(value, kinds) or not str(value).strip():
            raise UsageError(f"{where}: {value!r} is no {what}")
    return tuple(values)


def refuse_shared(where: str, values: Mapping[str, Iterable[object]]) -> None:
    """Raise UsageError for a value that stands for two of the groups."""
    owner: dict[str, str] = {}
    for group, items in values.items():
        for item in map(str, items):
            if owner.setdefault(item, group) != group:
                raise UsageError(
                    f"{where}: {item[:60]!r} is in the groups {owner[item]!r} and {group!r}; a value that stands for "
                    "two groups signals neither"
                )


@dataclass(frozen=True, slots=True)
class GroupAxis:
    """A protected class with its groups; ``values`` holds the user's own names or phrases, if given."""

    name: str
    groups: tuple[str, ...]
    values: Mapping[str, tuple[str | Name, ...]] = field(default_factory=dict)


def group_axis(name: str, value: object) -> GroupAxis:
    """The axis of an entry of ``groups={class: [group, …]}`` or ``{class: {group: [value, …]}}``.

    Raises UsageError for an empty class or group, a group or value that stands twice (a name in two groups
    signals neither), and anything that is not text or a :class:`Name`.
    """
    where = f"groups[{name!r}]"
    if not isinstance(name, str) or not name.isidentifier():
        raise UsageError(f"groups: {name!r} is no name for a protected class; use letters, digits and _")
    values: dict[str, tuple[str | Name, ...]] = {}
    if isinstance(value, Mapping):
        for group, items in value.items():
            values[str(group)] = given_values(f"{where}[{group!r}]", items, (str, Name), "name or phrase")
            refuse_twice(f"{where}[{group!r}]:", map(str, values[str(group)]))
        refuse_shared(where, values)
        groups = tuple(values)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        groups = tuple(value)
    else:
        kind = type(value).__name__
        raise UsageError(f"{where}: give a list of groups, or a mapping from groups to names, not {kind}")
    if not all(isinstance(group, str) and group for group in groups):
        raise UsageError(f"{where}: groups are names such as 'black'; found {list(groups)!r}")
    if not groups:
        raise UsageError(f"{where} has no groups; name at least two to compare")
    refuse_twice(f"{where}: the group", groups)
    return GroupAxis(name, groups, values)


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
        by_name = axis.name not in self.slots if axis.values else axis.name in self.banks.protected_classes
        return condition.by_name and by_name

    def phrases(
        self, axis: GroupAxis, groups: Mapping[str, str], condition: Condition, axes: Sequence[GroupAxis]
    ) -> tuple[str, ...]:
        """The words that convey the axis's own of *groups*; none where the name, or the pronoun, does it alone.

        Of several *axes* the name conveys those that have no words of the condition's kind.
        """
        name, named, kind = axis.name, self.named(axis, condition), condition.kind
        if axis.values:
            return () if named else tuple(map(str, axis.values[groups[name]]))
        if (kind is None and named and name not in self.slots) or (kind == PRONOUN and name == GENDER):
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
        with_words = [other.name for other in axes if kind in self.signals.kinds_of(other.name)]
        if named and with_words and name not in with_words:
            return ()
        phrases = self.signals.phrases(name, groups[name], kind, groups.get(GENDER))
        if kind == LABEL and name in self.after_who:
            raise UsageError(
                f"the label of {name} names the group ({phrases[0]!r}), so it does not go on after 'who': write "
                f"({{{name}}}), or take a kind of signal that does, as docs/grids.md lists them"
            )
        return phrases

    def people(self, groups: Mapping[str, str], named: Sequence[GroupAxis]) -> tuple[Name, ...]:
        """The names for one combination of groups, by the axes that are *named*; none where no template has a place."""
        own = next((axis for axis in named if axis.values), None)
        if own is not None:
            return self._own(own, named, groups[own.name])
        wanted = _NAMES if self.names is None else self.names
        # In a control group nothing is conveyed, so its names are the neutral ones.
        if not named or any(groups[axis.name] == CONTROL for axis in named):
            has_place = self.slots & {self.name_slot, "first_name", "last_name"}
            return self.banks.neutral(wanted, seed=self.seed) if has_place else ()
        return self.banks.signalling({axis.name: groups[axis.name] for axis in named}, wanted, seed=self.seed)

    def _own(self, own: GroupAxis, named: Sequence[GroupAxis], group: str) -> tuple[Name, ...]:
        other = next((axis.name for axis in named if axis is not own), None)
        if other is not None:
            raise UsageError(
                f"names of your own signal {own.name}, so they cannot be drawn for {other} as well; give names for "
                f"the crossed groups, or convey {other} by words: put {{{other}}} into the template"
            )
        values = own.values[group]
        if self.names is not None and len(values) < self.names:
            raise UsageError(f"groups[{own.name!r}][{group!r}] has {len(values)} names, and names={self.names}")
        names = (Name.given(value) for value in values[: self.names])
        return tuple(replace(name, groups={**name.groups, own.name: group}) for name in names)


_DETAILS = {"disability": "disability_detail", "accent_language": "language"}
"""Classes of personas that have a second slot, which says more."""


def _persona_slots(persona: Persona, name_slot: str, signals: Signals) -> dict[str, str]:
    """Every attribute as a slot, with words for the groups, and the pronouns of the gender."""
    return {
        **{name: str(value) for name, value in persona.attributes.items() if name != "id"},
        **{name: signals.phrases(name, persona.groups[name])[0] for name in (GENDER, RACE)},
        **{name: getattr(persona, detail) for name, detail in _DETAILS.items()},
        "career_transition": persona.career_transition.replace("_", " "),
        **pronouns(BY_GENDER[persona.gender]),
        name_slot: persona.name,
    }


def _attributes(persona: Persona | None, name: Name | None) -> dict[str, JSON]:
    """The parts of the name, which several people may share, and what a persona brings to the job."""
    first, last = (name.first, name.last) if name else (persona.first_name, persona.last_name) if persona else ("", "")
    parts: dict[str, JSON] = {"first_name": first, "last_name": last} if first and last else {}
    return parts | ({key: getattr(persona, key) for key in ("experience_years", *SCORES)} if persona else {})


def group_units(
    axes: Sequence[GroupAxis], conditions: Sequence[Condition], sources: Sources, personas: Sequence[Persona] = ()
) -> tuple[list[Unit], int]:
    """Every combination of groups, under every signal condition, with its names (and personas); without *axes* each
    persona as it is, with its own name and groups.

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
    phrases = {axis.name: found for axis in axes if (found := sources.phrases(axis, groups, condition, axes))}
    named = [axis for axis in axes if sources.named(axis, condition)]
    people = _people(groups, named, sources, personas)
    if not people:
        # No name and no persona: the words themselves are what varies within a group.
        people = [(None, None)] * max(map(len, phrases.values()), default=1)
    agreed = _agreed_pronouns(groups, required=condition.kind == PRONOUN)
    gender = {GENDER: groups[GENDER]} if agreed and groups[GENDER] != CONTROL else {}
    wholes = [name.full if name else persona.id if persona else "" for name, persona in people]
    who = slugs(wholes)
    # ``name`` is ``label`` for a class that only words convey.
    ways = [way for way, used in (("name", named), ("label", phrases)) if used] if condition.kind is None else []
    units = []
    for position, ((name, persona), whole) in enumerate(zip(people, wholes, strict=True)):
        labels = {key: found[position % len(found)] for key, found in phrases.items()}
        words = "; ".join(labels.values())
        own = dict(persona.groups) if persona else {}
        values = _persona_slots(persona, sources.name_slot, sources.signals) if persona else {}
        conveys = {slot: {key: own[key]} for key in own for slot in (key, _DETAILS.get(key, key))}
        by_name = {key: own[key] for key in (RACE, GENDER)} if persona else {}
        if name:
            values.pop("last_name", None)
            values |= {sources.name_slot: name.full, "first_name": name.first}
            values |= {"last_name": name.last} if name.last else {}
            values |= pronouns(BY_GENDER[name.gender]) if name.gender in BY_GENDER else {}
            by_name = dict(name.groups)
        conveys |= dict.fromkeys((sources.name_slot, "first_name", "last_name"), by_name)
        conveys |= dict.fromkeys(agreed, gender)
        given = {**own, **(name.groups if name else {}), **groups}
        conveys |= {LABEL_SLOT: {key: given[key] for key in labels}, **{key: {key: given[key]} for key in labels}}
        id_parts = [slug(persona.id)] if persona and name else []
        id_parts += [who[whole]] if whole else [slug(words)] if words else []
        units.append(
            Unit(
                parts=(*parts, *id_parts),
                groups=given,
                swapped=groups,
                values={**values, **agreed},
                labels=labels,
                conveys=conveys,
                cluster=persona.id if persona and not named else whole or words or None,
                persona=persona.id if persona else None,
                attributes=_attributes(persona, name),
                signal="+".join(ways) or condition.name,
            )
        )
    return units


def _people(
    groups: Mapping[str, str], named: Sequence[GroupAxis], sources: Sources, personas: Sequence[Persona]
) -> list[tuple[Name | None, Persona | None]]:
    """Names and personas together: each persona gets a name in turn, of its own gender where there is one."""
    if personas and not named and not {RACE, GENDER} & groups.keys():
        return [(None, persona) for persona in personas]
    names = sources.people(groups, named)
    if not personas or not names:
        return [(name, None) for name in names] or [(None, persona) for persona in personas]
    pairs: list[tuple[Name | None, Persona | None]] = []
    turns: Counter[str] = Counter()
    for persona in personas:
        fitting = [name for name in names if name.gender == persona.gender]
        sex = persona.gender if fitting else "any"
        name = (fitting or names)[turns[sex] % len(fitting or names)]
        turns[sex] += 1
        if GENDER not in groups and name.gender not in (None, persona.gender):
            # The swapped name brings its group; the persona's gender stays what it is.
            name = replace(name, groups={key: group for key, group in name.groups.items() if key != GENDER})
        pairs.append((name, persona))
    return pairs


def _agreed_pronouns(groups: Mapping[str, str], *, required: bool) -> Mapping[str, str]:
    """The pronoun slots of a gender group, *they* for the control; none for a group without known pronouns."""
    known, gender = {**BY_GENDER, CONTROL: "they"}, groups.get(GENDER)
    if gender in known:
        return pronouns(known[gender])
    if gender is None or not required:
        return {}
    raise UsageError(
        f"signal='pronoun': no pronouns are known for the gender group {gender!r} (known: "
        f"{', '.join(BY_GENDER)}); vary them with an axis instead: pronouns=['she/her', 'ze/hir']"
    )
