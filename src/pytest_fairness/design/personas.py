"""Personas: synthetic people with crossed attributes and job scores that depend on none of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeAlias, overload

from pytest_fairness.design.quotas import GROUPS, QUOTAS, age_band, gap_band
from pytest_fairness.design.resources import layers
from pytest_fairness.design.slugs import is_slug
from pytest_fairness.documents import Plain, load_path
from pytest_fairness.errors import UsageError, did_you_mean, listed

Wanted: TypeAlias = "str | int | float | Sequence[str] | Sequence[int] | Sequence[float]"
SCORES = ("technical_skills", "communication", "problem_solving")


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """One synthetic candidate. Ages and experience are in years, gaps in months, scores from 1.0 to 5.0.

    ``employment_gap`` and ``language`` are the words for a prompt; the groups that they fall in are in
    :attr:`groups`. Raises UsageError for an attribute outside its range or groups.
    """

    id: str
    first_name: str
    last_name: str
    age: int
    gender: str
    race_ethnicity: str
    experience_years: int
    employment_gap_months: int
    employment_gap: str
    accent_language: str
    language: str
    disability: str
    disability_detail: str
    career_transition: str
    technical_skills: float
    communication: float
    problem_solving: float

    def __post_init__(self) -> None:
        if not is_slug(self.id):
            raise UsageError(f"persona id {self.id!r}: use the characters a-z 0-9 _ . -")
        for name in ("gender", "race_ethnicity", "accent_language", "disability", "career_transition"):
            if getattr(self, name) not in GROUPS[name]:
                known = GROUPS[name]
                raise UsageError(
                    f"persona {self.id}: {name} is {getattr(self, name)!r} (known: {listed(known)})"
                    f"{did_you_mean(str(getattr(self, name)), known)}"
                )
        if not 18 <= self.age <= 75 or not 0 <= self.experience_years <= self.age - 16:
            raise UsageError(f"persona {self.id}: {self.experience_years} years of experience at age {self.age}")
        if not 0 <= self.employment_gap_months <= 240:
            raise UsageError(f"persona {self.id}: a gap of {self.employment_gap_months} months")
        for name in SCORES:
            if not 1.0 <= getattr(self, name) <= 5.0:
                raise UsageError(f"persona {self.id}: {name} is {getattr(self, name)}, outside 1.0 to 5.0")

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}"

    @property
    def number(self) -> int:
        """The number at the end of the id: 42 for ``persona-42``, 0 where there is none."""
        digits = self.id.rpartition("-")[2]
        return int(digits) if digits.isdigit() else 0

    @property
    def groups(self) -> dict[str, str]:
        """Protected class (and category of the matrix) → group."""
        return {
            "age": age_band(self.age),
            "gender": self.gender,
            "race_ethnicity": self.race_ethnicity,
            "disability": self.disability,
            "accent_language": self.accent_language,
            "employment_gap": gap_band(self.employment_gap_months),
            "career_transition": self.career_transition,
        }

    @property
    def attributes(self) -> dict[str, str | int | float]:
        """Every field by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class PersonaMatrix(Sequence[Persona]):
    """Personas in their order; the shipped one holds 100 and keeps to the quotas."""

    def __init__(self, personas: Iterable[Persona]) -> None:
        self._personas = tuple(personas)
        twice = [id_ for id_, count in Counter(p.id for p in self._personas).items() if count > 1]
        if twice:
            raise UsageError(f"two personas are called {twice[0]!r}; give each its own id")

    @classmethod
    def load(cls, folder: Path | None = None) -> PersonaMatrix:
        """The shipped matrix, extended or replaced by the user's ``personas`` *folder*. Raises UsageError."""
        merged: dict[str, Persona] = {}
        for path in layers("matrix.yaml", folder):
            merged.update({persona.id: persona for persona in read_matrix(path)})
        return cls(merged.values())

    def where(self, **attributes: Wanted) -> PersonaMatrix:
        """The personas that have all *attributes*: a value, or a list of acceptable values.

        An attribute is a field (``age=24``) or a group (``age="senior_career"``,
        ``employment_gap="3_plus"``). Raises UsageError for an unknown attribute, and where nobody is left.
        """
        chosen = [p for p in self if all(_matches(p, name, wanted) for name, wanted in attributes.items())]
        if not chosen:
            raise UsageError("no persona has " + ", ".join(f"{name}={value!r}" for name, value in attributes.items()))
        return PersonaMatrix(chosen)

    def counts(self, category: str) -> dict[str, int]:
        """How many personas each group of *category* has."""
        return dict(Counter(p.groups[category] for p in self))

    def quota_problems(self) -> list[str]:
        """Where the matrix departs from the quotas of the specification; empty when it keeps them all."""
        problems = [] if len(self) == 100 else [f"there are {len(self)} personas, not 100"]
        for category, quota in QUOTAS.items():
            found = self.counts(category)
            problems += [
                f"{category}: {found.get(group, 0)} {group}, not {number}"
                for group, number in quota.items()
                if found.get(group, 0) != number
            ]
        return problems

    @overload
    def __getitem__(self, index: int) -> Persona: ...
    @overload
    def __getitem__(self, index: slice) -> PersonaMatrix: ...
    def __getitem__(self, index: int | slice) -> Persona | PersonaMatrix:
        return PersonaMatrix(self._personas[index]) if isinstance(index, slice) else self._personas[index]

    def __iter__(self) -> Iterator[Persona]:
        return iter(self._personas)

    def __len__(self) -> int:
        return len(self._personas)

    def __repr__(self) -> str:
        return f"<PersonaMatrix of {len(self)}>"


def _matches(persona: Persona, name: str, wanted: Wanted) -> bool:
    known = {**persona.attributes, "name": persona.name, "number": persona.number}
    if name not in known and name not in persona.groups:
        names = dict.fromkeys([*known, *persona.groups])
        raise UsageError(f"personas have no {name!r} (they have: {listed(names)}){did_you_mean(name, names)}")
    accepted = [wanted] if isinstance(wanted, (str, int, float)) else list(wanted)
    return known.get(name) in accepted or persona.groups.get(name) in accepted


def read_matrix(path: Path) -> list[Persona]:
    """The personas in the YAML file *path*. Raises UsageError with the persona that is wrong."""
    document = load_path(path)
    items = document.get("personas") if isinstance(document, dict) else None
    if not isinstance(items, list) or not items:
        raise UsageError(f"{path}: expected a list of personas under the key 'personas'")
    return [_persona(item, f"{path}: persona number {number}") for number, item in enumerate(items, start=1)]


def _persona(item: Plain, where: str) -> Persona:
    if not isinstance(item, dict):
        raise UsageError(f"{where}: expected a mapping")
    kinds = {field.name: str(field.type) for field in fields(Persona)}
    missing, unknown = sorted(kinds.keys() - item.keys()), sorted(item.keys() - kinds.keys())
    if missing or unknown:
        what = f"{missing[0]!r} is missing" if missing else f"unknown key {unknown[0]!r}"
        raise UsageError(f"{where}: {what} (keys: {', '.join(kinds)})")
    values: dict[str, object] = {}
    for name, value in item.items():
        if not _fits(value, kinds[name]):
            raise UsageError(f"{where}: {name} is {value!r}, which is no {_ENGLISH[kinds[name]]}")
        values[name] = float(value) if kinds[name] == "float" and isinstance(value, int) else value
    try:
        return Persona(**values)  # type: ignore[arg-type]  # every value was checked against its field above
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


_ENGLISH = {"str": "text (put it in quotes)", "int": "whole number", "float": "number"}


def _fits(value: Plain, kind: str) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    if kind == "str":
        return isinstance(value, str) and bool(value.strip())
    return isinstance(value, int) or (kind == "float" and isinstance(value, float))
