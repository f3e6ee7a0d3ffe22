"""Where each of very many trials stands: a table from content keys to numbers that takes some 55 bytes a trial.

A dictionary from the keys as text would take five times as much, and a million trials must not be a matter of memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

from pytest_fairness.errors import StoreError

_WIDTH = 32
_EMPTY = -1


class Places(Mapping[str, int]):
    """A mapping from content keys (64 hex digits) to numbers below 2⁶³, in the order of entering; nothing is ever
    taken out. Raises StoreError for another kind of key.
    """

    def __init__(self) -> None:
        self._keys = bytearray()
        self._values = array("q")
        self._table = array("i", [_EMPTY]) * 8  # the number of an entry, at the place its hash says or the next free

    def __setitem__(self, key: str, value: int) -> None:
        digest = _digest(key)
        at = self._find(digest)
        entry = self._table[at]
        if entry != _EMPTY:
            self._values[entry] = value
            return
        self._table[at] = len(self._values)
        self._keys += digest
        self._values.append(value)
        if 3 * len(self._values) > 2 * len(self._table):
            self._grow()

    def __getitem__(self, key: str) -> int:
        entry = self._table[self._find(_digest(key))]
        if entry == _EMPTY:
            raise KeyError(key)
        return self._values[entry]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._table[self._find(_digest(key))] != _EMPTY

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self._keys), _WIDTH):
            yield self._keys[start : start + _WIDTH].hex()

    def numbers(self) -> Iterator[int]:
        """The numbers, in the order of entering, without looking anything up."""
        return iter(self._values)

    def _find(self, digest: bytes) -> int:
        """Where in the table *digest* is entered, or would be."""
        mask = len(self._table) - 1
        at = hash(digest) & mask
        while (entry := self._table[at]) != _EMPTY:
            if self._keys[entry * _WIDTH : (entry + 1) * _WIDTH] == digest:
                break
            at = (at + 1) & mask
        return at

    def _grow(self) -> None:
        self._table = array("i", [_EMPTY]) * (2 * len(self._table))
        mask = len(self._table) - 1
        for entry in range(len(self._values)):
            at = hash(bytes(self._keys[entry * _WIDTH : (entry + 1) * _WIDTH])) & mask
            while self._table[at] != _EMPTY:
                at = (at + 1) & mask
            self._table[at] = entry


def _digest(key: str) -> bytes:
    try:
        digest = bytes.fromhex(key)
    except ValueError:
        digest = b""
    if len(digest) != _WIDTH:
        raise StoreError(f"{key[:80]!r} is no content key (64 hex digits): no trial of ours is under it")
    return digest
