"""YAML as plain data: what a file says is what you get; anything clever is refused with its line.

YAML 1.1 turns the surname ``No`` into ``False`` and ``1:30`` into 90, a second ``name:`` silently
replaces the first, and ten lines of aliases fill the memory. None of that belongs in a file of names,
personas or endpoints, so the document is read event by event into dictionaries, lists and scalars, and
only these scalars are not strings: ``null`` (or nothing at all), ``true``, ``false``, whole numbers such
as ``-12``, and decimals such as ``0.75`` or ``1.5e-3``. Everything else, quoted or not, is the string
that it looks like. Keys are always strings.

The parser keeps no recursion of its own, so depth and size are limits that hold, not hopes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import yaml

from pytest_fairness.errors import UsageError

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"

MAX_BYTES = 5_000_000
MAX_DEPTH = 40
MAX_NODES = 500_000

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,18}(?:[eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, Plain] = {"": None, "null": None, "true": True, "false": False}
_MISSING = object()  # a mapping waits for its next key

# libyaml is some ten times faster; both parsers give the same events.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_path(path: Path, *, max_bytes: int = MAX_BYTES) -> Plain:
    """The document in *path*, read as UTF-8. Raises UsageError if it cannot be read or is refused."""
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error})") from error
    return load(data, str(path), max_bytes=max_bytes)


def load(text: str | bytes, source: str, *, max_bytes: int = MAX_BYTES) -> Plain:
    """The one document in *text*; *source* names it in errors.

    Raises UsageError, with ``source:line``, for: a syntax error, text that is not UTF-8, more than one
    document, a duplicate key, an anchor, an alias, a merge key, a tag, a key that is not a scalar, and for
    a document over *max_bytes*, nested deeper than MAX_DEPTH or of more than MAX_NODES values.
    """
    if isinstance(text, bytes):
        if len(text) > max_bytes:
            raise UsageError(f"{source}: larger than {max_bytes:,} bytes; split the file")
        text = _decode(text, source)
    elif len(text) > max_bytes:
        raise UsageError(f"{source}: larger than {max_bytes:,} characters; split the file")
    try:
        return _build(yaml.parse(text, Loader=_LOADER), source)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}" if mark else source
        raise UsageError(f"{where}: not valid YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{source}: not valid YAML: {' '.join(str(error).split())}") from error
    except UnicodeEncodeError as error:
        line = text[: error.start].count("\n") + 1
        raise UsageError(f"{source}:{line}: holds half a surrogate pair, which is no text") from error


def _decode(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{source}:{line}: not UTF-8; save the file as UTF-8") from error


class _Builder:
    """The containers that are open, outermost first, and the root once it is complete."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.stack: list[tuple[dict[str, Plain] | list[Plain], object]] = []
        self.root: Plain = None
        self.nodes = 0

    def refuse(self, event: yaml.Event, why: str) -> UsageError:
        mark = event.start_mark
        where = f"{self.source}:{mark.line + 1}" if mark else self.source
        return UsageError(f"{where}: {why}")

    def open(self, event: yaml.Event, container: dict[str, Plain] | list[Plain]) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise self.refuse(event, f"nested deeper than {MAX_DEPTH} levels")
        if self._waits_for_key():
            raise self.refuse(event, "a key must be plain text, not a list or a mapping")
        self.place(event, container)
        self.stack.append((container, _MISSING))

    def _waits_for_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1][0], dict) and self.stack[-1][1] is _MISSING

    def scalar(self, event: yaml.ScalarEvent) -> None:
        if self._waits_for_key():
            container, _ = self.stack[-1]
            key = event.value
            if key == "<<":
                raise self.refuse(event, "merge keys (<<) are not read; write the entries out")
            if key in container:
                raise self.refuse(event, f"the key {key!r} stands here twice; keep one")
            self.stack[-1] = (container, key)
            return
        # The pure parser gives an unquoted scalar the style None, libyaml "".
        self.place(event, event.value if event.style else _value(event.value))

    def place(self, event: yaml.Event, value: Plain) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.refuse(event, f"more than {MAX_NODES:,} values; split the file")
        if not self.stack:
            self.root = value
            return
        container, key = self.stack[-1]
        if isinstance(container, list):
            container.append(value)
        else:
            container[str(key)] = value
            self.stack[-1] = (container, _MISSING)


def _build(events: Iterator[yaml.Event], source: str) -> Plain:
    builder = _Builder(source)
    documents = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise builder.refuse(event, f"the alias *{event.anchor} is not read; write the value out")
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            raise builder.refuse(event, f"the anchor &{event.anchor} is not read; write the value out")
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise builder.refuse(event, f"the tag {tag!r} is not read; write plain data")
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise builder.refuse(event, "a second document; keep one a file")
        elif isinstance(event, yaml.ScalarEvent):
            builder.scalar(event)
        elif isinstance(event, yaml.MappingStartEvent):
            builder.open(event, {})
        elif isinstance(event, yaml.SequenceStartEvent):
            builder.open(event, [])
        elif isinstance(event, yaml.CollectionEndEvent):
            builder.stack.pop()
    return builder.root


def _value(text: str) -> Plain:
    """What an unquoted scalar means."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return text
