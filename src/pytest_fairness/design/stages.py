"""Stages of asking: how many names a group (or sets of candidates) each look at a design has.

Names stand in an order that is fixed before the first call, and a stage is a beginning of it; the
templates and repetitions of a stage are those of the whole design. See ``docs/looks.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, NamedTuple, TypeVar, overload

from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, OutcomeKind

BASE = 20
"""Names a group of the base design: what a baseline reads, and the first look at which a pair may
be found alike by saturation or by points."""
SCORES = (10, 20, 40)
"""Names a group at the looks of an outcome with numbers or labels."""
RATES = (10, 20, 40, 80)
"""The same of a yes/no outcome, and of refusals."""
CLOSE = 0.75
"""No look but the last stands beyond this share of it."""
DRAW = "draw"
"""The attribute of a cell that says in which place of the order its name, or set of candidates,
was drawn, from 1."""
_RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)
_FEWEST_TRIALS = 30
G = TypeVar("G")


def ladder_of(kind: OutcomeKind) -> tuple[int, ...]:
    """Return the looks of an outcome of *kind*, in names a group, where nothing else is said."""
    if kind in _RATES:
        return RATES
    return SCORES


def reached(ladder: Sequence[int], most: int, *, fewest: int = 1) -> tuple[int, ...]:
    """Return the looks of *ladder* where a group has at most *most* names, and *fewest* are needed
    before there is any verdict.

    Where the ladder reaches further than the names, the last look has what there is, and none
    stands close to it; a look before *fewest* is joined to the next. A design of fewer than 20
    names is looked at once.
    """
    last = min(max(ladder), most)
    if last < BASE:
        return (last,)
    looks = [names for names in ladder if fewest <= names <= CLOSE * last]
    return (*looks, last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The stages that a design can be asked in.

    ``size`` are the names a group (or the sets of candidates) that are drawn, ``base`` those of the
    base design, ``per_name`` the trials a group that each brings. ``declared`` are the looks that
    the test or its project says; None: those of the kind of outcome.
    """

    size: int
    base: int
    per_name: float
    declared: tuple[int, ...] | None = None

    def looks(self, kind: OutcomeKind, fewest_trials: int = _FEWEST_TRIALS) -> tuple[int, ...]:
        """Return the looks of an assertion on an outcome of *kind*, whose verdict needs
        *fewest_trials* a group.
        """
        fewest = ceil(fewest_trials / max(self.per_name, 1e-9))
        if self.declared is None:
            return reached(ladder_of(kind), self.size, fewest=fewest)
        looks = [names for names in self.declared[:-1] if names >= fewest]
        return (*looks, self.declared[-1])

    def of_texts(self, asked: int, texts: int) -> Stages:
        """Return the stages of a design where *asked* of its *texts* are asked."""
        return replace(self, per_name=self.per_name * asked / texts)

    def to_dict(self) -> dict[str, JSON]:
        """Return what is fixed before the first call: the looks at numbers and labels, and at
        rates, as far as the names reach.
        """
        scores = self.declared or reached(SCORES, self.size)
        rates = self.declared or reached(RATES, self.size)
        return {"scores": list(scores), "rates": list(rates)}

    @property
    def first(self) -> int:
        """Return the names of the first look, whatever the outcome is."""
        return self.looks(OutcomeKind.NUMERIC)[0]

    @property
    def single(self) -> bool:
        """Return whether the design is looked at once, whatever the outcome is."""
        return len(self.looks(OutcomeKind.BINARY)) == 1


def base_of(declared: tuple[int, ...] | None) -> int:
    """Return the names of the base design, where the looks are *declared*: 20, or the look nearest
    below; the first of looks that all have more.
    """
    if declared is None:
        return BASE
    return max((names for names in declared if names <= BASE), default=declared[0])


@overload
def declared_looks(names: None) -> None: ...
@overload
def declared_looks(names: int | Sequence[int]) -> tuple[int, ...]: ...
def declared_looks(names: int | Sequence[int] | None) -> tuple[int, ...] | None:
    """Return the looks that ``names=`` of a marker says: those of a list, n and 2n of a number.
    Raises UsageError.
    """
    if names is None:
        return None
    if isinstance(names, int):
        if 2 * names < BASE:
            return (names,)
        return names, 2 * names
    looks = tuple(names)
    # type(): True is an int, and no number of names.
    if set(map(type, looks)) != {int} or [0, *looks] != sorted({0, *looks}):
        raise UsageError(
            f"names={names!r}: give a whole number from 1, or the looks in rising order, as "
            "(10, 20, 40)"
        )
    return looks


class PlannedLooks(NamedTuple):
    """The looks that a test or its project declares, None for those of the kind of outcome; and the
    names of the base design.
    """

    declared: tuple[int, ...] | None
    base: int

    @classmethod
    def of(cls, names: Any, looks: tuple[int, ...] | None) -> PlannedLooks:
        """Return the looks that ``names=`` of a marker says, else *looks*. Raises UsageError."""
        declared = declared_looks(names) or looks
        base = base_of(declared)
        if isinstance(names, int):
            base = names
        return cls(declared, base)

    @property
    def last(self) -> int:
        """Return the names of the last look."""
        return max(self.declared or RATES)

    def stages(self, size: int, per_name: float) -> Stages:
        """Return the stages of a design of so many names a group, of which each brings so many
        trials.
        """
        declared = self.declared
        if declared is not None:
            declared = reached(declared, size)
        return Stages(size=size, base=min(self.base, size), per_name=per_name, declared=declared)


def largest(draw: Callable[[int], G], fewest: int, most: int) -> G:
    """Return what *draw* makes of the largest number from *fewest* to *most* that it can; fewer
    names are the beginning of more. Raises the UsageError of *fewest*.
    """
    try:
        return draw(most)  # mostly there are enough
    except UsageError:
        drawn = draw(fewest)
    low = fewest
    high = most
    while high - low > 1:
        middle = (low + high) // 2
        try:
            drawn = draw(middle)
        except UsageError:
            high = middle
        else:
            low = middle
    return drawn
