"""First names and surnames as the sources record them: one entry a row of ``personas/names/*.csv``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pytest_fairness.design.resources import layers
from pytest_fairness.design.tables import Row, rows
from pytest_fairness.errors import UsageError

GENDERS = ("female", "male", "unisex")
BLOCKING = frozenset({"contradicted", "ambiguous", "weak"})
"""Flags of names that a bank keeps on record and never draws."""
FLAGS = BLOCKING | {
    "unmeasured",  # listed by a source that gives no figure
    "rare",  # under 30 bearers counted
    "both_sexes",  # borne by women and men
    "word",  # an English word or title as well
    "religion",  # signals a religion as well
    "one_source",  # supported by one source only
    "other_origin",  # common in other groups, which the source does not count
    "under_half",  # a surname of which the group has less than half of the bearers
}

_NEEDED = frozenset({"protected_class", "group", "name", "source"})
_OPTIONAL = frozenset(
    {"gender", "tradition", "strength", "strength_measure", "perceived", "bearers", "bearers_measure"}
    | {"birth_decade", "year", "licence", "support", "flags"}
)
Key: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NameEntry:
    """A first name or a surname with its evidence.

    ``strength`` and ``perceived`` are shares from 0 to 1: of the bearers who belong to the group (or as
    ``strength_measure`` says), and of the people who read the name as the group's. ``bearers`` is a count.
    ``tradition`` keeps first names and surnames that belong together. ``gender`` is "" for surnames.
    """

    protected_class: str
    group: str
    name: str
    gender: str = ""
    tradition: str = ""
    strength: float | None = None
    strength_measure: str = ""
    perceived: float | None = None
    bearers: int | None = None
    bearers_measure: str = ""
    birth_decade: int | None = None
    source: str
    year: int | None = None
    licence: str = ""
    support: str = ""
    flags: frozenset[str] = frozenset()
    where: str = ""

    @property
    def key(self) -> Key:
        return self.protected_class, self.group, self.gender, self.name

    @property
    def drawn(self) -> bool:
        """Whether a bank may draw this name."""
        return not self.flags & BLOCKING


def read_first_names(folder: Path | None = None) -> dict[Key, NameEntry]:
    """Every first name by key; those of the user's *folder* replace ours. Raises UsageError."""
    return _read("names/first_names.csv", folder, gendered=True)


def read_surnames(folder: Path | None = None) -> dict[Key, NameEntry]:
    """Every surname by key, as :func:`read_first_names`."""
    return _read("names/surnames.csv", folder, gendered=False)


def _read(relative: str, folder: Path | None, *, gendered: bool) -> dict[Key, NameEntry]:
    merged: dict[Key, NameEntry] = {}
    for path in layers(relative, folder):
        own: dict[Key, NameEntry] = {}
        for row in rows(path, _NEEDED | {"gender"} if gendered else _NEEDED, _OPTIONAL):
            entry = _entry(row, gendered=gendered)
            if entry.key in own:
                raise UsageError(f"{row.where}: {entry.name!r} stands already in {own[entry.key].where}; keep one")
            own[entry.key] = entry
        merged.update(own)
    return merged


def _entry(row: Row, *, gendered: bool) -> NameEntry:
    name = row.required("name")
    if not name.isprintable() or any(character in name for character in '{}<>"\\/'):
        raise UsageError(f"{row.where}: {name!r} is not a name that a text can carry")
    gender = row.text("gender")
    if gendered and gender not in GENDERS:
        raise UsageError(f"{row.where}: gender is {gender!r}; use one of {', '.join(GENDERS)}")
    flags = frozenset(row.text("flags").split())
    if flags - FLAGS:
        raise UsageError(f"{row.where}: unknown flag {sorted(flags - FLAGS)[0]!r} (known: {', '.join(sorted(FLAGS))})")
    return NameEntry(
        protected_class=row.required("protected_class"),
        group=row.required("group"),
        name=name,
        gender=gender if gendered else "",
        tradition=row.text("tradition"),
        strength=row.number("strength", 0, 1),
        strength_measure=row.text("strength_measure"),
        perceived=row.number("perceived", 0, 1),
        bearers=row.whole("bearers"),
        bearers_measure=row.text("bearers_measure"),
        birth_decade=row.whole("birth_decade"),
        source=row.required("source"),
        year=row.whole("year"),
        licence=row.text("licence"),
        support=row.text("support"),
        flags=flags,
        where=row.where,
    )
