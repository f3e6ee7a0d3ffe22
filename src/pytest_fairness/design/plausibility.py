"""Plausible people: what a reader of a persona would stop at, by ``personas/plausible.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property

import msgspec

from pytest_fairness.design.names import RACE, NameBanks
from pytest_fairness.design.personas import Persona
from pytest_fairness.documents import open_document, shipped_folder

NOT_STATED = "not_stated"
#: Attributes that may leave the tradition of the name, where the persona is marked.
CROSSINGS = ("religion", "accent_language")


class Tradition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The *religions* and *accents* that go with names of a tradition, by a *source*."""

    religions: frozenset[str]
    accents: frozenset[str]
    source: str


class StatedAt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ages, first and last, and the genders at which a *value* of an *attribute* is met."""

    attribute: str
    value: str
    ages: tuple[int, int]
    genders: frozenset[str] = frozenset()

    def admits(self, value: str, age: int, gender: str) -> bool:
        """Return whether the *value* of the attribute is met at this age and gender."""
        if value != self.value:
            return True
        first, last = self.ages
        return first <= age <= last and (not self.genders or gender in self.genders)


class Plausible(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """The table of ``plausible.yaml``."""

    traditions: Mapping[str, Tradition]
    names: Mapping[str, frozenset[str]]
    surnames: Mapping[str, Mapping[str, tuple[str, ...]]]
    ages: tuple[StatedAt, ...]
    apart: tuple[Mapping[str, str], ...]

    @cached_property
    def _religion_of_name(self) -> Mapping[str, str]:
        """Return the religion that a name alone says, by the banks and by the table."""
        religions = {
            entry.name: entry.group
            for entry in NameBanks.load().surnames.values()
            if entry.of == ("religion", "jewish")
        }
        for religion, names in self.names.items():
            religions |= dict.fromkeys(names, religion)
        return religions

    def religions(self, first_name: str, last_name: str, race: str) -> frozenset[str]:
        """Return the religions that go with a name; of a name that no bank has, all."""
        religions = frozenset[str]()
        for tradition in traditions_of(first_name, last_name, race) & self.traditions.keys():
            religions |= self.traditions[tradition].religions
        for name in (first_name, last_name):
            if name in self._religion_of_name:
                religions &= {self._religion_of_name[name], "none"}
        return religions

    def accents(self, first_name: str, last_name: str, race: str) -> frozenset[str]:
        """Return the groups of ``accent_language`` that go with a name."""
        accents = frozenset[str]()
        for tradition in traditions_of(first_name, last_name, race) & self.traditions.keys():
            accents |= self.traditions[tradition].accents
        return accents


@cache
def plausible() -> Plausible:
    """Return the table that ships."""
    return open_document(shipped_folder() / "plausible.yaml").convert(Plausible)


@cache
def _traditions_of_names() -> Mapping[tuple[str, bool], Mapping[str, str]]:
    """Return group → tradition, or the group where there is none, of each name and whether it is
    a surname.
    """
    banks = NameBanks.load()
    traditions: dict[tuple[str, bool], dict[str, str]] = {}
    for is_surname, entries in ((False, banks.first_names), (True, banks.surnames)):
        for entry in entries.values():
            if entry.protected_class == RACE:
                by_group = traditions.setdefault((entry.name, is_surname), {})
                by_group[entry.group] = entry.tradition or entry.group
    return traditions


def traditions_of(first_name: str, last_name: str, race: str) -> frozenset[str]:
    """Return the traditions of a name: of a person of one group that of the first name, or of the
    surname where the bank does not have it; of one of several groups those of both.
    """
    by_part = [
        _traditions_of_names().get((first_name, False), {}),
        _traditions_of_names().get((last_name, True), {}),
    ]
    if race == "mixed_other":
        return frozenset(by_part[0].values()) | frozenset(by_part[1].values())
    for by_group in by_part:
        if race in by_group:
            return frozenset({by_group[race]})
    return frozenset({race})


def oddities(persona: Persona) -> Iterator[tuple[str, str]]:
    """Yield each attribute of *persona* that a reader would stop at, and why."""
    table = plausible()
    name = persona.first_name, persona.last_name, persona.race_ethnicity
    religions = table.religions(*name)
    if religions and persona.religion not in {*religions, NOT_STATED}:
        yield "religion", f"{persona.religion} beside the name {persona.name}"
    accents = table.accents(*name)
    if accents and persona.accent_language not in accents:
        yield "accent_language", f"{persona.accent_language} beside the name {persona.name}"
    for stated in table.ages:
        value = getattr(persona, stated.attribute)
        if not stated.admits(value, persona.age, persona.gender):
            yield stated.attribute, f"{value!r} of a {persona.gender} of {persona.age}"
    for pair in table.apart:
        if all(getattr(persona, attribute) == value for attribute, value in pair.items()):
            yield " and ".join(pair), f"{' and '.join(pair.values())} in one person"
