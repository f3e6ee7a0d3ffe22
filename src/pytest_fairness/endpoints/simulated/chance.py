"""Chance that is the same everywhere: numbers drawn from a hash of what they are for, never from a clock or a state.

``random`` would do for one machine; a hash needs no seeding in order, so that trials asked in any order, by
any number of processes, on any Python, get the same answers.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from statistics import NormalDist
from typing import TypeVar

_T = TypeVar("_T")
_WORDS = struct.Struct("<8Q")
_STANDARD = NormalDist()
_STEP = 2.0**-53


class Draws:
    """An endless row of independent draws for one purpose, named by *parts*."""

    __slots__ = ("_block", "_key", "_pool")

    def __init__(self, *parts: str | int) -> None:
        digest = hashlib.blake2b(digest_size=64)
        for part in parts:
            data = str(part).encode("utf-8", "surrogatepass")
            # The length keeps ("ab", "c") and ("a", "bc") apart.
            digest.update(b"%d:" % len(data))
            digest.update(data)
        self._key = digest.digest()
        self._block = 0
        self._pool = list(_WORDS.unpack(self._key))

    def uniform(self) -> float:
        """Between 0 and 1, both excluded, in steps of 2⁻⁵³."""
        if not self._pool:
            self._block += 1
            data = hashlib.blake2b(self._block.to_bytes(8, "little"), key=self._key).digest()
            self._pool = list(_WORDS.unpack(data))
        # The last half step would round up to 1.
        bits: int = self._pool.pop() >> 11
        return min((bits + 0.5) * _STEP, 1.0 - _STEP)

    def normal(self) -> float:
        """Standard normal."""
        return _STANDARD.inv_cdf(self.uniform())

    def logistic(self) -> float:
        """Standard logistic: the noise under which a utility is a logit."""
        chance = self.uniform()
        return math.log(chance / (1.0 - chance))

    def gumbel(self) -> float:
        """Standard Gumbel: the noise under which the largest of several utilities follows a multinomial logit."""
        return -math.log(-math.log(self.uniform()))

    def index(self, count: int) -> int:
        """A whole number from 0 to *count* − 1."""
        return int(self.uniform() * count)

    def pick(self, options: Sequence[_T]) -> _T:
        """One of *options*, each as likely."""
        return options[int(self.uniform() * len(options))]

    def shuffled(self, options: Sequence[_T]) -> list[_T]:
        """*options* in an order of chance (Fisher–Yates)."""
        mixed = list(options)
        for last in range(len(mixed) - 1, 0, -1):
            other = int(self.uniform() * (last + 1))
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed
