"""Laws and standards that a run can be evidence for, from ``frameworks.toml``: each clause in our
own words, with the artefact that answers it, its source, and the day on which that was read.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from pytest_fairness.analysis.controls import Strength
from pytest_fairness.errors import StoreError, UsageError, did_you_mean

#: Who reads a line that nobody has checked for longer is told so.
YEAR = datetime.timedelta(days=365)
Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
Address: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^https://[^\s]+$")]
Artefact: TypeAlias = Literal[
    "verdicts",
    "thresholds",
    "groups",
    "ratios",
    "mitigations",
    "log",
    "signature",
    "repeats",
    "alternatives",
    "retention",
]
"""A part of a run that may answer a clause."""


class Clause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One clause: the artefact of a run that answers it, and how strong that evidence is.

    ``years``: for how many it wants records kept.
    """

    clause: Text
    title: Text
    artefact: Artefact
    strength: Strength
    source: Address
    checked_on: datetime.date
    years: Annotated[int, msgspec.Meta(ge=1)] | None = None


class Framework(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A law or a standard; ``applies`` says since when, which ``source`` says."""

    rule: Text
    applies: Text
    source: Address
    checked_on: datetime.date
    lines: Annotated[tuple[Clause, ...], msgspec.Meta(min_length=1)]


def parse_frameworks(text: str, where: str) -> Mapping[str, Framework]:
    """*text* as name → framework. Raises StoreError, which names *where*, for another shape."""
    try:
        return msgspec.toml.decode(text, type=dict[str, Framework])
    except msgspec.MsgspecError as error:
        raise StoreError(f"{where}: {error}; reinstall pytest-fairness") from error


@cache
def frameworks() -> Mapping[str, Framework]:
    """All of them, by the name that the command line takes."""
    path = Path(__file__).with_suffix(".toml")
    return parse_frameworks(path.read_text(encoding="utf-8"), path.name)


def framework_called(name: str) -> Framework:
    """The framework *name*. Raises UsageError, which lists them all, where there is none."""
    every = frameworks()
    if name not in every:
        raise UsageError(
            f"--framework: unknown framework {name!r}{did_you_mean(name, every)}; there are "
            f"{', '.join(sorted(every))}"
        )
    return every[name]


def is_old(checked_on: datetime.date, today: datetime.date) -> bool:
    """Return whether what was read on *checked_on* is older than a year *today*."""
    return today - checked_on > YEAR
