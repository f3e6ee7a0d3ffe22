"""One record as one line: ASCII JSON, chained to the line before by a hash, closed by a hash of its
own.

    {"type":…, …,"prev":"<hash of the line before>","hash":"<SHA-256 of this line up to here, plus
    }>"}

The hash makes every changed byte visible on its own, the chain a line removed, added or moved.
Neither shows a tail cut off, or a chain made anew by whoever owns the disk: for that the heads are
in the manifest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

import msgspec

FIRST = "0" * 64
_HASHES = re.compile(rb',"prev":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"}')
#: The length of both hashes with their names, and of the second.
_TAIL, _OWN = 149, 75
_COLUMNS = re.compile(r'\{"type":"([^"]*)"(?:,"key":"([0-9a-f]{64})"(?:,"status":"([^"]*)")?)?')


def fields_of(noun: Any) -> dict[str, Any]:
    """The fields of a dataclass by their names, as they are."""
    return {name: getattr(noun, name) for name in noun.__dataclass_fields__}


def plain(value: object) -> dict[Any, Any]:
    """The mapping or the fields of a noun as a dict, for JSON encoders. Raises TypeError for what
    is not JSON.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return fields_of(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON: {value!r:.200}")


_escaping = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, separators=(",", ":"), check_circular=False, default=plain
).encode
_fast = msgspec.json.Encoder(enc_hook=plain).encode
_decode = msgspec.json.Decoder().decode


def encode_record(record: Mapping[str, Any]) -> str:
    """A record, nouns in it included, as ASCII JSON. Raises ValueError for NaN, TypeError for what
    is not JSON.
    """
    # msgspec takes a fifth of the time, but escapes nothing beyond ASCII, and knows neither half a
    # surrogate nor NaN. What is nested is part of a content key, which refuses NaN, or text.
    for value in record.values():
        if type(value) is float and not math.isfinite(value):
            return _escaping(record)
    with contextlib.suppress(UnicodeEncodeError):
        encoded = _fast(record)
        if encoded.isascii():
            return encoded.decode("ascii")
    return _escaping(record)


class BadLineError(ValueError):
    """A line is not a record, was changed, or does not follow the line before; the message says
    which.
    """


def encode_line(body: str, previous: str) -> tuple[str, str]:
    """The line for the record *body* after the line with hash *previous*, without line end; and its
    own hash.
    """
    digest = chained_digest(body, previous).hex()
    return as_line(body, previous, digest), digest


def as_line(body: str, previous: str, digest: str) -> str:
    """The line for the record *body* between both of its hashes."""
    return f'{body[:-1]},"prev":"{previous}","hash":"{digest}"}}'


def chained_digest(body: str, previous: str) -> bytes:
    """The hash of the line for the record *body* after the line with hash *previous*."""
    return hashlib.sha256(f'{body[:-1]},"prev":"{previous}"}}'.encode("ascii")).digest()


def body_of(line: str) -> str:
    """The record of a line that was checked, without its hashes."""
    return line[:-_TAIL] + "}"


def check_line(line: bytes) -> tuple[str, str]:
    """The hash that *line* follows, and its own, which is checked; without line end. Raises
    BadLineError.
    """
    hashes = _HASHES.fullmatch(line[-_TAIL:])
    if hashes is None or not line.startswith(b'{"type":"'):
        raise BadLineError("this is not a record of this log")
    if hashlib.sha256(line[:-_OWN] + b"}").hexdigest().encode() != hashes[2]:
        raise BadLineError("the record was changed: its hash does not fit")
    return hashes[1].decode(), hashes[2].decode()


def decode_line(line: bytes | str) -> dict[str, Any]:
    """The record of a line that was checked. Raises BadLineError where it is not a JSON object."""
    try:
        record = _decode(line)
    except (msgspec.MsgspecError, RecursionError):  # half a surrogate, a number that is none
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadLineError(f"the record cannot be read: {error}") from error
    if not isinstance(record, dict):
        raise BadLineError("the record is not a JSON object")
    return record


def columns_of(text: str) -> tuple[str | None, bytes | None, str | None]:
    """The type of a record, its content key and a trial's status, by which it is found; without
    parsing the rest.
    """
    match = _COLUMNS.match(text)
    if match is None:
        return None, None, None
    kind, key, status = match.groups()
    if key is not None:
        key = bytes.fromhex(key)
    return kind, key, status
