"""A balanced part of a grid that is too large to ask in full: never a prefix, never a group short.

Every drawn template, context and name position is asked for all groups alike, so that groups differ in
nothing but the group. Templates, the values of each axis, and names are dealt like cards: each value is used
about equally often, in combinations left to chance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from math import prod

from pytest_fairness.errors import UsageError


def positions(
    radices: Sequence[int],
    units: int,
    group_size: int,
    cells: int,
    seed: int,
    *,
    alike: str = "combinations of groups",
) -> tuple[int, ...]:
    """Which cells to keep, in order: at most *cells* of them.

    *radices* are the numbers of templates and of values of each axis; *units* come in runs of *group_size*,
    one run a combination of groups. Raises UsageError where *cells* is less than one for each combination; *alike*
    is what it calls them.
    """
    combinations = units // group_size
    blocks = prod(radices)
    draws = min(cells // combinations, blocks * group_size)
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
