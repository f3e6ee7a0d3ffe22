"""Personas: synthetic people with crossed attributes and job scores that depend on none of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeAlias

import msgspec

from pytest_fairness.design.slugs import is_slug
from pytest_fairness.documents import Text, entries
from pytest_fairness.errors import InvalidEntry, UsageError, did_you_mean, refuse_twice
from pytest_fairness.words import listed

Wanted: TypeAlias = "str | int | float | Sequence[str] | Sequence[int] | Sequence[float]"
SCORES = ("technical_skills", "communication", "problem_solving")
AGE_BANDS: Mapping[str, tuple[int, int]] = {
    "early_career": (22, 28), "mid_career": (29, 40), "senior_career": (41, 55), "late_career": (56, 65),
}  # fmt: skip
QUOTAS: Mapping[str, Mapping[str, int]] = {
    "age": {"early_career": 20, "mid_career": 40, "senior_career": 30, "late_career": 10},
    "gender": {"male": 45, "female": 45, "non_binary": 10},
    "race_ethnicity": {"white": 40, "black": 20, "hispanic": 15, "asian": 15, "middle_eastern": 5, "mixed_other": 5},
    "employment_gap": {"none": 70, "1_2_years": 20, "3_plus": 10},
    "accent_language": {"native": 70, "non_native": 30},
    "disability": {"none": 90, "physical": 5, "neurodivergent": 5},
    "career_transition": {"same_industry": 70, "career_change": 30},
    "religion": {
        "not_stated": 60, "none": 5, "christian": 10, "jewish": 5, "muslim": 5, "hindu": 5, "buddhist": 5, "sikh": 5,
    },
    "pregnancy_family": {"not_stated": 75, "none": 5, "parent": 15, "pregnant": 5},
    "marital_status": {"not_stated": 70, "single": 10, "married": 10, "divorced": 5, "widowed": 5},
    "appearance": {"not_stated": 75, "average": 5, "heavier": 10, "shorter": 5, "taller": 5},
    "health": {"not_stated": 75, "none": 5, "chronic": 10, "recovered": 10},
}  # fmt: skip
"""Category → group → how many of the 100: as the specification has it, from ``religion`` on as
decision 138 has it.
"""
_OWN_WORDS = tuple(category for category in QUOTAS if category not in ("age", "employment_gap"))


def age_band(age: int) -> str:
    """The career stage of an age in years; ages beyond the bands fall into the nearest."""
    for band, (_, last) in AGE_BANDS.items():
        if age <= last:
            return band
    return "late_career"


def gap_band(months: int) -> str:
    """The category of an employment gap: under a year it counts as none, as the specification's
    persona 42 shows.
    """
    if months < 12:
        return "none"
    if months < 36:
        return "1_2_years"
    return "3_plus"


class Persona(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One synthetic candidate. Ages and experience are in years, gaps in months, scores from 1.0 to
    5.0.

    ``employment_gap``, ``language`` and what ends in ``_detail`` are the words for a prompt; the
    groups that they fall in are in :attr:`groups`. ``crossing``: the attribute that leaves the
    tradition of the name on purpose, ``religion`` or ``accent_language``; no slot. Raises
    UsageError for an attribute outside its range or groups.
    """

    id: str
    first_name: Text
    last_name: Text
    age: int
    gender: Text
    race_ethnicity: Text
    experience_years: int
    employment_gap_months: int
    employment_gap: Text
    accent_language: Text
    language: Text
    disability: Text
    disability_detail: Text
    career_transition: Text
    technical_skills: float
    communication: float
    problem_solving: float
    religion: Text = "not_stated"
    religion_detail: Text = "not stated"
    pregnancy_family: Text = "not_stated"
    pregnancy_family_detail: Text = "not stated"
    marital_status: Text = "not_stated"
    marital_status_detail: Text = "not stated"
    appearance: Text = "not_stated"
    appearance_detail: Text = "not stated"
    health: Text = "not_stated"
    health_detail: Text = "not stated"
    crossing: str = ""

    def __post_init__(self) -> None:
        """Refuse a persona whom no report could name, or who could not exist."""
        if not is_slug(self.id):
            raise InvalidEntry(f"persona id {self.id!r}: use the characters a-z 0-9 _ . -")
        self._check_groups()
        self._check_numbers()

    def _check_groups(self) -> None:
        """Raise InvalidEntry for a group that the matrix does not know."""
        for name in _OWN_WORDS:
            group = getattr(self, name)
            quota = QUOTAS[name]
            if group not in quota:
                hint = did_you_mean(str(group), quota)
                raise InvalidEntry(
                    f"persona {self.id}: {name} is {group!r} (known: {listed(quota)}){hint}"
                )

    def _check_numbers(self) -> None:
        """Raise InvalidEntry for an age, a career or a score that nobody has."""
        is_working_age = 18 <= self.age <= 75
        if not is_working_age or not 0 <= self.experience_years <= self.age - 16:
            raise InvalidEntry(
                f"persona {self.id}: {self.experience_years} years of experience at age {self.age}"
            )
        if not 0 <= self.employment_gap_months <= 240:
            raise InvalidEntry(f"persona {self.id}: a gap of {self.employment_gap_months} months")
        for name in SCORES:
            score = getattr(self, name)
            if not 1.0 <= score <= 5.0:
                raise InvalidEntry(f"persona {self.id}: {name} is {score}, outside 1.0 to 5.0")

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}"

    @property
    def groups(self) -> dict[str, str]:
        """Protected class (and category of the matrix) → group."""
        groups = dict.fromkeys(QUOTAS, "")
        for name in _OWN_WORDS:
            groups[name] = getattr(self, name)
        groups["age"] = age_band(self.age)
        groups["employment_gap"] = gap_band(self.employment_gap_months)
        return groups

    @property
    def slots(self) -> dict[str, str]:
        """Every attribute but the id and the mark of a crossing, as text for its slot."""
        slots = {name: str(getattr(self, name)) for name in self.__struct_fields__}
        del slots["id"], slots["crossing"]
        return slots

    def has(self, name: str, accepted: Collection[object]) -> bool:
        """Return whether the attribute *name*, or the group of that name, is one of *accepted*."""
        return getattr(self, name) in accepted or self.groups.get(name) in accepted


class PersonaMatrix(tuple[Persona, ...]):
    """Personas in their order; the shipped one holds 100 and keeps to the quotas."""

    __slots__ = ()

    def __new__(cls, personas: Iterable[Persona]) -> Self:
        made = super().__new__(cls, personas)
        refuse_twice("persona:", (persona.id for persona in made))
        return made

    @classmethod
    def load(cls, folder: Path | None = None) -> Self:
        """The shipped matrix, extended or replaced by the user's ``personas`` *folder*. Raises
        UsageError.
        """
        return cls(entries("matrix.yaml", folder, Persona, "id").values())

    def where(self, **attributes: Wanted) -> PersonaMatrix:
        """The personas that have all *attributes*: a value, or a list of acceptable values.

        An attribute is a field (``age=24``) or a group (``age="senior_career"``,
        ``employment_gap="3_plus"``). Raises UsageError for an unknown attribute, and where nobody
        is left.
        """
        fields = (*Persona.__struct_fields__, "name")
        left = list(self)
        for name, wanted in attributes.items():
            if name not in fields:
                raise UsageError(
                    f"personas have no {name!r} (they have: "
                    f"{listed(fields)}){did_you_mean(name, fields)}"
                )
            accepted: Collection[object] = [wanted]
            if not isinstance(wanted, (str, int, float)):
                accepted = wanted
            left = [persona for persona in left if persona.has(name, accepted)]
        if not left:
            wishes = (f"{name}={value!r}" for name, value in attributes.items())
            raise UsageError(f"no persona has {', '.join(wishes)}")
        return PersonaMatrix(left)

    def counts(self, category: str) -> dict[str, int]:
        """Return how many personas each group of *category* has."""
        return dict(Counter(persona.groups[category] for persona in self))
