"""Units: everything in a cell that is neither template nor context — group, name, persona, words.

A grid is templates × context × units. Units are few (groups times names) and are made when the grid is made,
which is when everything that can be wrong with names, words and groups is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from pytest_fairness.design.conveyance import Condition, GroupAxis, Sources
from pytest_fairness.design.name_banks import GENDER, RACE, Name
from pytest_fairness.design.personas import SCORES, Persona
from pytest_fairness.design.pronouns import BY_GENDER, pronouns
from pytest_fairness.design.signals import CONTROL, LABEL, Signals
from pytest_fairness.design.slugs import slug, slugs
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One combination of groups with one name, one persona, or both.

    ``values`` fills slots; ``labels`` are the words to put where a template has a place for them, by class;
    ``conveys`` says which slots carry which groups; ``swapped`` are the groups that the grid compares,
    empty for personas as they are. ``cluster`` is the unit of evidence, ``parts`` its share of the cell's
    id.
    """

    parts: tuple[str, ...]
    groups: Mapping[str, str]
    swapped: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    conveys: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    cluster: str | None = None
    persona: str | None = None
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    signal: str | None = None


@dataclass(frozen=True, slots=True)
class Filling:
    """What a name or a persona puts into slots, and which groups those slots carry."""

    values: Mapping[str, str]
    conveys: Mapping[str, Mapping[str, str]]

    def __or__(self, other: Filling) -> Filling:
        return Filling({**self.values, **other.values}, {**self.conveys, **other.conveys})


NOTHING = Filling({}, {})


def _of_name(name: Name, name_slot: str) -> Filling:
    """The whole name, its parts, and the pronouns of its gender."""
    values = {name_slot: name.full, "first_name": name.first} | ({"last_name": name.last} if name.last else {})
    carried = dict.fromkeys(values, name.groups)
    if name.gender in BY_GENDER:
        values |= pronouns(BY_GENDER[name.gender]).values()
    return Filling(values, carried)


def _of_persona(persona: Persona, name_slot: str, signals: Signals) -> Filling:
    """Every attribute as a slot, with words for the groups, and the pronouns of the gender."""
    groups = persona.groups
    values = {name: str(value) for name, value in persona.attributes.items() if name != "id"}
    values |= {name: signals.phrases(name, groups[name], LABEL)[0] for name in (GENDER, RACE)}
    values |= {"disability": persona.disability_detail, "accent_language": persona.language}
    values["career_transition"] = persona.career_transition.replace("_", " ")
    values |= pronouns(BY_GENDER[persona.gender]).values()
    values[name_slot] = persona.name
    by_name = {key: groups[key] for key in (RACE, GENDER)}
    aliases = {"disability_detail": "disability", "language": "accent_language"}
    own = {slot: aliases.get(slot, slot) for slot in values}
    conveys = {slot: {key: groups[key]} for slot, key in own.items() if key in groups}
    return Filling(values, conveys | dict.fromkeys((name_slot, "first_name", "last_name"), by_name))


def _attributes(persona: Persona | None, name: Name | None = None) -> dict[str, JSON]:
    """The parts of the name, which several people may share, and what a persona brings to the job."""
    first, last = (name.first, name.last) if name else (persona.first_name, persona.last_name) if persona else ("", "")
    parts: dict[str, JSON] = {"first_name": first, "last_name": last} if first and last else {}
    return parts | ({key: getattr(persona, key) for key in ("experience_years", *SCORES)} if persona else {})


def persona_units(personas: Sequence[Persona], sources: Sources) -> list[Unit]:
    """One unit a persona, as it is: its own name, attributes and groups."""
    parts = slugs(persona.id for persona in personas)
    units = []
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
    phrases = {axis.name: sources.phrases(axis, groups[axis.name], condition) for axis in axes}
    phrases = {name: found for name, found in phrases.items() if found}
    names = sources.people(groups, axes, condition)
    named = any(sources.named(axis, condition) for axis in axes)
    pairs = _pairs(names, personas, keep_own=not named and not {RACE, GENDER} & groups.keys())
    if pairs == [(None, None)]:
        # No name and no persona: the words themselves are what varies within a group.
        most = max((len(found) for found in phrases.values()), default=1)
        pairs = [(None, None)] * most
    name_parts = slugs(str(name) for name, _ in pairs if name)
    units = []
    for position, (drawn, persona) in enumerate(pairs):
        name = _keeping_gender(drawn, persona) if drawn and persona and GENDER not in groups else drawn
        labels = {key: found[position % len(found)] for key, found in phrases.items()}
        filling = _of_persona(persona, sources.name_slot, sources.signals) if persona else NOTHING
        filling |= _of_name(name, sources.name_slot) if name else NOTHING
        values = dict(filling.values)
        conveys = dict(filling.conveys)
        if name and not name.last:
            values.pop("last_name", None)
        if GENDER in groups:
            agreed = _pronouns_of(groups[GENDER], required=condition.pronouns)
            values |= agreed
            conveys |= {slot: {GENDER: groups[GENDER]} for slot in agreed if groups[GENDER] != CONTROL}
        who = [slug(persona.id)] if persona else []
        who += [name_parts[str(name)]] if name else []
        words = "; ".join(labels.values())
        units.append(
            Unit(
                parts=(*parts, *(who or ([slug(words)] if words else []))),
                groups={**(persona.groups if persona else {}), **(name.groups if name else {}), **groups},
                swapped=groups,
                values=values,
                labels=labels,
                conveys=conveys,
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


def _pairs(
    names: Sequence[Name], personas: Sequence[Persona], *, keep_own: bool
) -> list[tuple[Name | None, Persona | None]]:
    """Names and personas together: each persona gets a name in turn, of its own gender where there is one."""
    if not personas:
        return [(name, None) for name in names] or [(None, None)]
    if keep_own or not names:
        return [(None, persona) for persona in personas]
    pairs: list[tuple[Name | None, Persona | None]] = []
    turns: dict[str, int] = {}
    for persona in personas:
        fitting = [name for name in names if name.gender == persona.gender]
        sex = persona.gender if fitting else "any"
        fitting = fitting or list(names)
        turn = turns.get(sex, 0)
        turns[sex] = turn + 1
        pairs.append((fitting[turn % len(fitting)], persona))
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
