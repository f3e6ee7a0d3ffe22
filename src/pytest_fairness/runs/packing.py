"""Packing of the texts of records: compressed, and what an earlier record of its writer says not
once more.

A record that is like others is packed with one of them as the dictionary; an attempt and a trial
with the attempts before it, whose requests and replies they repeat. The hash of a record is that of
its whole text, so that a base that was changed or removed shows in all that is packed with it. See
``docs/decisions/0165-texts-once.md``.
"""

from __future__ import annotations

import contextlib
import math
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pytest_fairness.runs.lines import FIRST, BadLineError, as_line, chained_digest, columns_of

#: The columns of a row of the table, in their order: the fields of :class:`Row`.
COLUMNS = "writer, number, type, key, status, hash, bases, body"
#: Bytes of a dictionary that the format can use.
_WINDOW = 1 << 15
#: Up to how many bytes of dictionary and text which window and which memory level are enough.
_WINDOWS = {1 << 13: (13, 5), 1 << 14: (14, 5), math.inf: (15, 8)}
#: Records that are packed with one and the same: with it they are lost where the disk is damaged.
_ALIKE = 64
#: Bytes of a record that others are packed with: what is longer is like no other.
_MODEL = 8192
#: Trials under way whose attempts are kept in memory; records that are while others are read.
_TRIALS, _KEPT = 1024, 1024
#: Bytes of a record: a database may be somebody else's.
_LONGEST = 2**30
_LEVEL = 3
_TYPE, _KEY = len('{"type":""'), len(',"key":""') + 64


class Row(NamedTuple):
    """A record as it stands in the table: ``body`` is its text without key and hashes, packed;
    ``bases`` are the records that it is packed with, by how many places they stand before it.
    """

    writer: str
    number: int
    type: str | None
    key: bytes | None
    status: str | None
    hash: bytes
    bases: str | None
    body: bytes


class _Base(NamedTuple):
    number: int
    body: bytes


class Packer:
    """Packs the records of *writer*, one after the other; ``number`` and ``head`` are the end of
    their chain.
    """

    def __init__(self, writer: str, number: int = 0, head: str = FIRST) -> None:
        self.writer = writer
        self.number = number
        self.head = head
        #: Of each type a record, and how many more are packed with it.
        self._models: dict[str | None, tuple[_Base, int]] = {}
        self._attempts: dict[bytes, list[_Base]] = {}

    def pack(self, text: str) -> Row:
        """The row of the next record, whose *text* is JSON without hashes."""
        kind, key, status = columns_of(text)
        digest = chained_digest(text, self.head)
        self.number = self.number + 1
        self.head = digest.hex()
        body = text.encode("ascii")
        if key is not None:  # it stands in a column of its own
            place = _TYPE + len(kind or "")
            body = body[:place] + body[place + _KEY :]
        bases = self._bases_of(kind, key, body)
        distances = " ".join(str(self.number - base.number) for base in bases) or None
        packed = _deflated(body, b"".join(base.body for base in bases)[-_WINDOW:])
        return Row(self.writer, self.number, kind, key, status, digest, distances, packed)

    def _bases_of(self, kind: str | None, key: bytes | None, body: bytes) -> list[_Base]:
        """Return what the next record is packed with; and *body* is kept where others will be
        packed with it.
        """
        this = _Base(self.number, body[-_WINDOW:])
        bases = list[_Base]()
        if key is not None and kind == "trial":
            bases = self._attempts.pop(key, [])
        elif key is not None and kind == "attempt":
            earlier = self._attempts.setdefault(key, [])
            bases = list(earlier)
            earlier.append(this)
            if len(self._attempts) > _TRIALS:
                del self._attempts[next(iter(self._attempts))]
        model, left = self._models.get(kind, (this, 0))
        if left:
            self._models[kind] = model, left - 1
            return [model, *bases]
        if len(body) <= _MODEL:
            self._models[kind] = this, _ALIKE
            return []  # so that of a page of the disk no more is lost than it has to be
        return bases


def _deflated(body: bytes, dictionary: bytes) -> bytes:
    # To prepare a large window takes longer than to look through a small one.
    size = len(dictionary) + len(body)
    window, memory = next(limits for most, limits in _WINDOWS.items() if size <= most)
    packing = zlib.compressobj(
        _LEVEL, zlib.DEFLATED, -window, memory, zlib.Z_DEFAULT_STRATEGY, dictionary
    )
    return packing.compress(body) + packing.flush()


def legible(data: bytes) -> str:
    """A text of a database that may be damaged."""
    return data.decode("utf-8", "replace")


class Unpacker:
    """Gives the texts of the records that a *connection* reads, with the columns of
    :data:`COLUMNS`.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._kept: dict[tuple[str, int], bytes] = {}

    def text(self, row: Sequence[Any]) -> str:
        """The text of the record *row*, JSON without hashes. Raises BadLineError where it cannot be
        unpacked.
        """
        writer, number, kind, key, _, _, bases, packed = row
        try:
            body = self._body(writer, number, bases, packed).decode("ascii")
        except (
            ValueError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
            zlib.error,
        ) as error:
            raise BadLineError(f"the record cannot be unpacked: {error}") from error
        if key is None:
            return body
        place = _TYPE + len(kind)
        return f'{body[:place]},"key":"{key.hex()}"{body[place:]}'

    def prepare(self, rows: Iterable[Sequence[Any]]) -> None:
        """Keep *rows*, for what is packed with them. What is damaged shows when it is read."""
        for writer, number, _, _, _, _, bases, packed in rows:
            with contextlib.suppress(Exception):
                self._body(writer, number, bases, packed)

    def lines(self, writer: str) -> Iterator[str]:
        """The records of *writer*, each as it is exported: a line, without its end. Raises as
        above.
        """
        query = f"SELECT {COLUMNS} FROM records WHERE writer = ? ORDER BY number"
        previous = FIRST
        for row in self._connection.execute(query, (writer,)):
            digest = Row(*row).hash.hex()
            yield as_line(self.text(row), previous, digest)
            previous = digest

    def _body(self, writer: str, number: int, bases: str | None, packed: bytes) -> bytes:
        """Return the body of a record, unpacked with the help of its *bases*. Raises ValueError."""
        dictionary = b""
        for distance in map(int, (bases or "").split()):
            if distance <= 0:
                raise ValueError("its bases are not before it")
            base = self._kept.get((writer, number - distance))
            if base is None:
                base = self._base(writer, number - distance)
            dictionary += base
        unpacking = zlib.decompressobj(-15, dictionary[-_WINDOW:])
        body = unpacking.decompress(packed, _LONGEST)
        if not unpacking.eof or unpacking.unused_data:
            raise ValueError("it is cut short, or too long to be meant")
        self._kept[writer, number] = body[-_WINDOW:]
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        return body

    def _base(self, writer: str, number: int) -> bytes:
        """The end of the body of a record that another is packed with, and that is not kept."""
        query = "SELECT bases, body FROM records WHERE writer = ? AND number = ?"
        row = self._connection.execute(query, (writer, number)).fetchone()
        if row is None:
            raise ValueError(f"record {number}, which it is packed with, is missing")
        return self._body(writer, number, *row)[-_WINDOW:]
