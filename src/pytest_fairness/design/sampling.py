"""The cells of a design by their number, and a balanced part of a design that is too large to ask in full.

Of a sample, every drawn template, context and name position is asked for all groups alike, so that groups differ in
nothing but the group: never a prefix, never a group short. Templates, the values of each axis, and names are dealt like
cards: each value is used about equally often, in combinations left to chance.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import overload

from pytest_fairness.design.render import Axis
from pytest_fairness.design.templates import Template
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class LazyCells(Sequence[Cell]):
    """The cells of a design by their number, all of them or those at ``positions``, made when they are read.

    ``repetitions`` is how often each cell is asked, ``parameters`` what is sent with it. The engine shuffles the order.
    """

    templates: tuple[Template, ...]
    axes: tuple[Axis, ...]
    repetitions: int
    parameters: Mapping[str, JSON]
    positions: tuple[int, ...] | None = None

    @property
    @abstractmethod
    def radices(self) -> tuple[int, ...]:
        """How many values each axis of the design has; their product is how many cells there are."""

    @abstractmethod
    def cell_at(self, position: int) -> Cell:
        """The cell at *position* of all cells, sampled or not."""

    @property
    def full_size(self) -> int:
        """How many cells there are without sampling."""
        return prod(self.radices)

    @property
    def size(self) -> int:
        return self.full_size if self.positions is None else len(self.positions)

    @property
    def calls(self) -> int:
        """How many trials: cells times repetitions. A trial of a pipeline is more than one request."""
        return self.size * self.repetitions

    def position(self, index: int) -> int:
        """Where the cell at *index* stands among all cells."""
        index = range(self.size)[index]
        return index if self.positions is None else self.positions[index]

    def digits(self, position: int) -> list[int]:
        """*position* as one choice an axis of the design, the last axis varying fastest."""
        choices = []
        for radix in reversed(self.radices):
            position, choice = divmod(position, radix)
            choices.append(choice)
        return choices[::-1]

    def context(self, choices: Sequence[int]) -> tuple[dict[str, str], dict[str, str], list[str]]:
        """What the context axes put into slots at *choices*, their labels by axis, and the parts of an id."""
        chosen = list(zip(self.axes, choices, strict=True))
        values = {slot: text for axis, at in chosen for slot, text in axis.values(at).items()}
        return values, {axis.name: axis.labels[at] for axis, at in chosen}, [axis.slugs[at] for axis, at in chosen]

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Cell]:
        return map(self.__getitem__, range(self.size))

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> list[Cell]: ...
    def __getitem__(self, index: int | slice) -> Cell | list[Cell]:
        if isinstance(index, slice):
            return [self[at] for at in range(self.size)[index]]
        return self.cell_at(self.position(index))


def check_counts(**numbers: int | None) -> None:
    """Raise UsageError for a number that is given and is no whole number from 1."""
    for what, number in numbers.items():
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise UsageError(f"{what}={number!r}: give a whole number from 1")


def positions(
    radices: Sequence[int], units: int, group_size: int, cells: int, seed: int, *, alike: str = "combinations of groups"
) -> tuple[int, ...]:
    """Which cells to keep, in order: at most *cells* of them.

    *radices* are the numbers of templates and of values of each axis; *units* come in runs of *group_size*,
    one run a combination of groups. Raises UsageError where *cells* is less than one for each combination; *alike*
    is what it calls them.
    """
    combinations = units // group_size
    draws = min(cells // combinations, prod(radices) * group_size)
    if draws < 1:
        raise UsageError(
            f"sample={cells}: the grid has {combinations} {alike}, which are asked alike; give at least {combinations}"
        )
    names = _deal(group_size, f"{seed}.name")
    kept = []
    for block, count in _blocks(radices, draws, seed):
        chosen: set[int] = set()
        while len(chosen) < count:
            chosen.add(next(names))
        kept += [block * units + c * group_size + k for c in range(combinations) for k in sorted(chosen)]
    return tuple(kept)


def _blocks(radices: Sequence[int], draws: int, seed: int) -> Iterator[tuple[int, int]]:
    """The combinations of template and context to ask, in order, with how many names each gets."""
    blocks = prod(radices)
    if draws > blocks // 2:
        # So many that nearly all are asked: spread evenly, by differences of a running share.
        shares = ((block + 1) * draws // blocks - block * draws // blocks for block in range(blocks))
        yield from ((block, count) for block, count in enumerate(shares) if count)
        return
    decks = [_deal(radix, f"{seed}.axis{number}") for number, radix in enumerate(radices)]
    chosen: set[int] = set()
    while len(chosen) < draws:
        block = 0
        for radix, deck in zip(radices, decks, strict=True):
            block = block * radix + next(deck)
        chosen.add(block)
    yield from ((block, 1) for block in sorted(chosen))


def _deal(size: int, seed: str) -> Iterator[int]:
    """The numbers below *size* in a random order, and again in another, without end."""
    turn = 0
    while True:
        # A hash rather than Python's generator, whose shuffle may change between versions.
        yield from sorted(range(size), key=lambda k: hashlib.sha256(f"{seed}.{turn}.{k}".encode()).digest())
        turn += 1
