"""Read YAML, JSON and CSV that people write: guarded, then typed. A complaint names file, line, and
what was meant.

YAML 1.1 turns the surname ``No`` into ``False`` and ``1:30`` into 90, a second ``name:`` silently
replaces the first, and ten lines of aliases fill the memory. Here only these plain scalars are not
text: ``null`` (or nothing at all), ``true``, ``false``, whole numbers such as ``-12``, and decimals
such as ``0.75`` or ``1.5e-3``. Keys are always text. Anchors, aliases, merge keys, tags and keys
that stand twice are refused; size, depth and number of values are bounded.

The data that ships lies in ``personas/``, in the wheel or at the root of a source checkout; a
project's own folder of that name extends it.

The schema is a ``msgspec.Struct``, or any type msgspec knows; Structs that people write say
``forbid_unknown_fields=True``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeGuard, TypeVar

import msgspec
import yaml

from pytest_fairness.errors import UsageError, did_you_mean, refuse_twice, unknown
from pytest_fairness.words import listed

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
Place: TypeAlias = "tuple[str | int, ...]"
T = TypeVar("T")
Entry = TypeVar("Entry", bound=msgspec.Struct)
Text = Annotated[str, msgspec.Meta(pattern=r"\S")]
"""Text that is not empty. Not for use in a union with a mapping of it: msgspec 0.22 then crashes as
Python exits.
"""

MAX_BYTES = 5_000_000
MAX_DEPTH = 40
MAX_NODES = 500_000
_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,18}(?:[eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, Plain] = {"": None, "null": None, "true": True, "false": False}
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|(\[\.\.\.\])")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_KINDS = re.compile(r"`([a-z]+(?: \| [a-z]+)*)`")
_ENUM = re.compile(r"Invalid enum value '(.*)'")

# libyaml is some ten times faster; both parsers give the same events.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Misplaced(UsageError, ValueError):
    """A struct makes no sense: *why*, and at which ``place``, counted from the struct."""

    def __init__(self, why: str, *place: str | int) -> None:
        super().__init__(why)
        self.place = place


def is_number(value: object) -> TypeGuard[float]:
    """Return whether *value* of plain data is a number, which true and false are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_number(value: object) -> float | None:
    """Return *value* of plain data as a float; None where it is no number."""
    if is_number(value):
        return float(value)
    return None


@dataclass(frozen=True)
class Document:
    """Plain data, and the line on which each part of it begins, by its path from the root."""

    source: str
    data: Plain
    lines: dict[Place, int] = field(repr=False, default_factory=dict)

    def where(self, *place: str | int) -> str:
        """``source:line`` of *place*, or of the nearest thing around it that is there."""
        while place and place not in self.lines:
            place = place[:-1]
        if self.lines or self.data is None:
            return f"{self.source}:{self.lines.get(place, 1)}"
        return self.source

    def wrong(self, why: str, *place: str | int) -> UsageError:
        """The error that says *why*, with the line of *place*."""
        return UsageError(f"{self.where(*place)}: {why}")

    def convert(self, kind: type[T], *place: str | int, strict: bool = True) -> T:
        """Return what stands at *place* as a *kind*; not *strict*: numbers may be written as text,
        as in CSV.

        Raises UsageError with the line of what does not fit.
        """
        value: Any = self.data
        for step in place:
            value = value[step]
        return self._as(kind, value, place, strict=strict)

    def entries(self, kind: type[Entry], key: str) -> dict[str, Entry]:
        """The document as a mapping from names to entries, each a *kind* that has its name as the
        field *key*.

        A *kind* with a field ``source`` must say where an entry comes from. Raises UsageError as
        :meth:`convert`.
        """
        needs_source = "source" in kind.__struct_fields__
        entries_ = {}
        for name, body in self.convert(dict[str, dict[str, Any]]).items():
            if key in body:
                raise self.wrong(
                    f"{name}: unknown key {key!r}: it is the name of the entry", name, key
                )
            if needs_source and not str(body.get("source") or "").strip():
                raise self.wrong(f"{name}: source is missing: say where it comes from", name)
            entries_[name] = self._as(kind, {**body, key: name}, (name,), f"{name}: ")
        return entries_

    def _as(
        self, kind: type[T], value: Any, place: Place = (), about: str = "", *, strict: bool = True
    ) -> T:
        """Return *value*, which stands at *place*, as a *kind*; complaints begin with *about*."""
        try:
            return msgspec.convert(value, kind, strict=strict)
        except msgspec.ValidationError as error:
            why, _, path = str(error).partition(" - at `$")
            inside = _steps(path.rstrip("`"))
            there = (*place, *takewhile(_is_step, inside))
            if isinstance(error.__cause__, Misplaced):
                raise self.wrong(about + why, *there, *error.__cause__.place) from None
            types = _types_at(kind, inside)
            stray = _UNKNOWN.fullmatch(why)
            if stray:
                why = unknown("key", stray[1], _fields_of(types))
                raise self.wrong(about + why, *there, stray[1]) from None
            fields = [f"{step}: " for step in there[len(place) :] if isinstance(step, str)]
            raise self.wrong(
                "".join((about, *fields[-1:], _in_words(why, types))), *there
            ) from None


def _steps(path: str) -> Place:
    """Return the keys and places of msgspec's *path*, ``.sub[2][...]``; "" for whatever key."""
    steps: list[str | int] = []
    for name, index, _ in _STEP.findall(path):
        if index:
            steps.append(int(index))
        else:
            steps.append(name)
    return tuple(steps)


def _is_step(step: str | int) -> bool:
    """Return whether *step* says which key, or which place of a list."""
    return step != ""


_PLAIN = {
    "object": "a mapping",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
}


def _in_words(why: str, types: Sequence[Any]) -> str:
    """A complaint of msgspec, which expected *types*, in the words of YAML."""
    enum = _ENUM.fullmatch(why)
    if enum:
        values = _values_of(types)
        hint = did_you_mean(enum[1], values)
        return f"unknown value {enum[1]!r} (known: {listed(values)}){hint}"
    why = why.replace(r"`str` matching regex '\\S'", "text that is not empty")
    why = _KINDS.sub(_kinds_in_words, why)
    why = why.replace("Object missing required field", "missing key")
    return why.replace("Expected ", "expected ")


def _kinds_in_words(match: re.Match[str]) -> str:
    """Return the kinds that msgspec lists, as people call them, "nothing" if alone."""
    names = match[1].split(" | ")
    if len(names) > 1:
        names = [name for name in names if name != "null"]
    return " or ".join(_PLAIN.get(name, match[0]) for name in names)


def _fields_of(types: Iterable[Any]) -> list[str]:
    """Return the names of the fields of *types*."""
    names: list[str] = []
    for kind in types:
        for field_ in getattr(kind, "fields", ()):
            names.append(field_.encode_name)
    return names


def _values_of(types: Iterable[Any]) -> list[Any]:
    """Return the values that *types* list, but for empty ones."""
    values: list[Any] = []
    for kind in types:
        values += filter(None, getattr(kind, "values", ()))
    return values


def _types_at(kind: Any, place: tuple[Any, ...]) -> list[Any]:
    """Return the types that msgspec expects at *place* of *kind*: several for a union."""
    expected = _members([msgspec.inspect.type_info(kind)])
    for step in place:
        inner: list[Any] = []
        for parent in expected:
            inner += _inside(parent, step)
        expected = _members(inner)
    return expected


def _members(types: Sequence[Any]) -> list[Any]:
    """Return *types* with the members of each union in its place."""
    members: list[Any] = []
    for union in types:
        members += getattr(union, "types", (union,))
    return members


def _inside(parent: Any, step: Any) -> list[Any]:
    """Return the types that *parent* holds at *step*: a field, or the items of a collection."""
    if hasattr(parent, "fields"):
        return [field.type for field in parent.fields if field.encode_name == step]
    items = getattr(parent, "item_type", None), getattr(parent, "value_type", None)
    return [item for item in items if item is not None]


def open_document(path: Path, *, max_bytes: int = MAX_BYTES) -> Document:
    """The document in *path*, read as UTF-8. Raises UsageError if that cannot be done."""
    return parse(read_text(path, max_bytes=max_bytes), str(path), max_bytes=max_bytes)


def read_text(path: Path, *, max_bytes: int = MAX_BYTES, encoding: str = "utf-8-sig") -> str:
    """The text in *path*, newlines kept. Raises UsageError if it cannot be read, is too large, or
    is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error})") from error
    return _decoded(data, str(path), max_bytes, encoding)


def _decoded(data: bytes, source: str, max_bytes: int, encoding: str = "utf-8-sig") -> str:
    if len(data) > max_bytes:
        raise UsageError(f"{source}: larger than {max_bytes:,} bytes; split the file")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(f"{source}:{line}: not UTF-8; save the file as UTF-8") from error


def parse(text: str | bytes, source: str, *, max_bytes: int = MAX_BYTES) -> Document:
    """The one document in *text*; *source* names it in errors.

    Raises UsageError, with ``source:line``, for: a syntax error, text that is not UTF-8, more than
    one document, a key that stands twice, an anchor, an alias, a merge key, a tag, a key that is
    not plain text, and for a document over *max_bytes*, nested deeper than MAX_DEPTH or of more
    than MAX_NODES values.
    """
    if isinstance(text, bytes):
        text = _decoded(text, source, max_bytes)
    if len(text) > max_bytes:
        raise UsageError(f"{source}: larger than {max_bytes:,} characters; split the file")
    lines: dict[Place, int] = {}
    try:
        data = _Builder(source, lines).build(yaml.parse(text, Loader=_LOADER))
        return Document(source, data, lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = source
        if mark:
            where = f"{source}:{mark.line + 1}"
        why = f"not valid YAML: {error.problem or error.context}"
        # libyaml 0.2.6 stops at a depth of its own, 1,000, before the first event.
        if "nesting depth" in why:
            why = _TOO_DEEP
        raise UsageError(f"{where}: {why}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{source}: not valid YAML: {' '.join(str(error).split())}") from error
    except UnicodeEncodeError as error:
        line = text[: error.start].count("\n") + 1
        raise UsageError(
            f"{source}:{line}: holds half a surrogate pair, which is no text"
        ) from error


@dataclass(slots=True)
class _Open:
    """A list or mapping that has not ended; ``key`` is the one whose value is next."""

    data: Any
    place: Place
    is_mapping: bool
    key: str | None = None

    def add(self, value: Any) -> Place:
        """Take in *value*; return the place where it stands."""
        if not self.is_mapping:
            self.data.append(value)
            return (*self.place, len(self.data) - 1)
        key = str(self.key)
        self.key = None
        self.data[key] = value
        return (*self.place, key)


class _Builder:
    """Data from events, each refused before anything is built of it. *lines* takes where each part
    begins.
    """

    def __init__(self, source: str, lines: dict[Place, int]) -> None:
        self._source = source
        self._lines = lines
        self._root: Plain = None
        self._open: list[_Open] = []
        self._nodes = 0
        self._documents = 0

    def build(self, events: Iterable[yaml.Event]) -> Plain:
        """Return the data of *events*. Raises UsageError for what is refused."""
        takers: dict[type, Callable[[Any], None]] = {
            yaml.DocumentStartEvent: self._take_document,
            yaml.AliasEvent: self._take_alias,
            yaml.ScalarEvent: self._take_scalar,
            yaml.SequenceStartEvent: self._take_list,
            yaml.MappingStartEvent: self._take_mapping,
            yaml.SequenceEndEvent: self._take_end,
            yaml.MappingEndEvent: self._take_end,
        }
        for event in events:
            take = takers.get(type(event))
            if take is not None:
                take(event)
        return self._root

    def _wrong(self, event: Any, why: str) -> UsageError:
        return UsageError(f"{self._source}:{_line_of(event)}: {why}")

    def _take_document(self, event: yaml.DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            raise self._wrong(event, "a second document; keep one a file")

    def _take_alias(self, event: yaml.AliasEvent) -> None:
        why = f"the alias *{event.anchor} is not read; write the value out"
        raise self._wrong(event, why)

    def _take_scalar(self, event: yaml.ScalarEvent) -> None:
        self._check(event)
        if self._open:
            around = self._open[-1]
            if around.is_mapping and around.key is None:
                self._take_key(event, around)
                return
        # The pure parser gives an unquoted scalar the style None, libyaml "".
        if event.style:
            self._add(event, event.value)
        else:
            self._add(event, _scalar(event.value))

    def _take_key(self, event: yaml.ScalarEvent, mapping: _Open) -> None:
        key = event.value
        if key == "<<":
            raise self._wrong(event, "merge keys (<<) are not read; write the entries out")
        if key in mapping.data:
            raise self._wrong(event, f"the key {key!r} stands here twice; keep one")
        mapping.key = key
        self._lines[(*mapping.place, key)] = _line_of(event)

    def _take_list(self, event: yaml.SequenceStartEvent) -> None:
        self._check_start(event)
        data: list[Any] = []
        self._open.append(_Open(data, self._add(event, data), is_mapping=False))

    def _take_mapping(self, event: yaml.MappingStartEvent) -> None:
        self._check_start(event)
        data: dict[str, Any] = {}
        self._open.append(_Open(data, self._add(event, data), is_mapping=True))

    def _take_end(self, _event: yaml.CollectionEndEvent) -> None:
        self._open.pop()

    def _check(self, event: Any) -> None:
        """Raise UsageError for a value with an anchor or a tag, and for one too many."""
        if event.anchor is not None:
            why = f"the anchor &{event.anchor} is not read; write the value out"
            raise self._wrong(event, why)
        if event.tag is not None:
            raise self._wrong(event, f"the tag {event.tag!r} is not read; write plain data")
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._wrong(event, f"more than {MAX_NODES:,} values; split the file")

    def _check_start(self, event: Any) -> None:
        """Raise UsageError for a list or mapping that stands too deep, or in the place of a key."""
        self._check(event)
        if len(self._open) == MAX_DEPTH:
            raise self._wrong(event, _TOO_DEEP)
        if self._open:
            around = self._open[-1]
            if around.is_mapping and around.key is None:
                raise self._wrong(event, "a key must be plain text, not a list or a mapping")

    def _add(self, event: yaml.NodeEvent, value: Any) -> Place:
        """Put *value* where it belongs; return its place."""
        place: Place = ()
        if self._open:
            place = self._open[-1].add(value)
        else:
            self._root = value
        self._lines.setdefault(place, _line_of(event))
        return place


def _line_of(event: Any) -> int:
    """Return the line on which *event* begins, from 1."""
    if event.start_mark:
        return int(event.start_mark.line) + 1
    return 1


def _scalar(text: str) -> Plain:
    """Return what an unquoted scalar means."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return text


# ---------------------------------------------------------------- what ships, and a project's own

# A user's ``personas/`` folder has the layout of ours. A file of the same name **extends** what
# ships: an entry with the same key takes the place of ours, anything else is added.
# ``<stem>.only.<ext>`` **replaces** the shipped file.


def shipped_folder() -> Path:
    """The ``personas`` folder that came with the package. Raises UsageError if the installation
    lost it.
    """
    here = Path(__file__).resolve()
    package = here.parent / "personas"
    checkout = here.parents[2] / "personas"
    for folder in (package, checkout):
        if (folder / "names" / "first_names.csv").is_file():
            return folder
    raise UsageError(
        f"the shipped personas are missing (looked in {package} and {checkout}); reinstall the "
        "package"
    )


def project_folder(root: Path) -> Path | None:
    """The own ``personas/`` folder of the project in *root*, if any: it extends what ships."""
    folder = root / "personas"
    # In a checkout of this package the two are one and the same.
    if folder.is_dir() and folder.resolve() != shipped_folder():
        return folder
    return None


def refuse_foreign(folder: Path) -> None:
    """Raise UsageError where *folder* holds no file by which it extends or replaces what ships."""
    shipped = shipped_folder()
    files = [*sorted(shipped.rglob("*.yaml")), *sorted(shipped.rglob("*.csv"))]
    names = [path.relative_to(shipped) for path in files]
    if not folder.is_dir():
        return
    for name in names:
        path = folder / name
        if path.is_file() or _replacing(path).is_file():
            return
    raise UsageError(
        f"{folder} holds nothing that is read: its files are called as those that ship, "
        f"{names[0]} …"
    )


def _replacing(path: Path) -> Path:
    """Return the file that replaces the shipped one, in place of *path*, which extends it."""
    return path.with_name(f"{path.stem}.only{path.suffix}")


def layers(relative: str, folder: Path | None = None) -> tuple[Path, ...]:
    """The files to read for *relative* (``names/surnames.csv``), later ones overriding those before
    by key.

    *folder* is the user's own. Raises UsageError if it is not there, or holds both ``x.csv`` and
    ``x.only.csv``.
    """
    shipped = shipped_folder() / relative
    if folder is None:
        return (shipped,)
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is not a folder; personas are read from a folder laid out like the shipped "
            "one"
        )
    path = folder / relative
    only = _replacing(path)
    if path.is_file() and only.is_file():
        raise UsageError(
            f"{path} extends and {only.name} replaces the shipped file; keep one of the two"
        )
    if only.is_file():
        return (only,)
    if path.is_file():
        return (shipped, path)
    return (shipped,)


def entries(
    relative: str,
    folder: Path | None,
    kind: type[Entry],
    key: str = "name",
    *,
    locale: str | None = None,
) -> dict[str, Entry]:
    """The entries of the YAML file *relative* in all its layers, by name; those of a *locale*, which
    may have none, instead of the English ones. Raises UsageError with file and line.
    """
    paths: Iterable[Path] = layers(relative, folder)
    if locale is not None:
        paths = filter(Path.is_file, layers(f"{locale}/{relative}", folder))
    entries_: dict[str, Entry] = {}
    for path in paths:
        entries_ |= open_document(path).entries(kind, key)
    return entries_


def chosen(where: str, given: object, entries: dict[str, T], kind: type[T]) -> tuple[Any, ...]:
    """The entries that *given* names, or holds: one, or a list of names and of *kind*.

    Raises UsageError for none, for what is neither, and for two of one name.
    """
    items = given
    if isinstance(given, (str, kind)):
        items = [given]
    if not isinstance(items, Sequence) or not items:
        raise UsageError(
            f"{where}: give a list of names ({listed(entries)}) or of {kind.__name__}(...), or "
            "leave it out"
        )
    chosen_: list[Any] = []
    for item in items:
        entry = item
        if isinstance(item, str):
            entry = entries.get(item)
        if not isinstance(entry, kind):
            what = kind.__name__.lower()
            hint = did_you_mean(str(item), entries)
            raise UsageError(
                f"{where}: there is no {what} {item!r} (there are: {listed(entries)}){hint}"
            )
        chosen_.append(entry)
    refuse_twice(f"{where}:", (entry.name for entry in chosen_))
    return tuple(chosen_)


def rows(path: Path, needed: Set[str], columns: Collection[str]) -> Iterator[Document]:
    """The lines of the CSV file *path* that are not blank, a document each: its cells by column,
    without empty ones.

    Raises UsageError for a file that cannot be read, columns that are not as *needed* and
    *columns*, and ragged rows.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        header = list(map(str.strip, next(reader, [])))
        _check_header(path, header, needed, columns)
        for cells in reader:
            row = _row(f"{path}:{reader.line_num}", header, cells, needed)
            if row:
                yield Document(str(path), row, {(): reader.line_num})
    except csv.Error as error:
        raise UsageError(f"{path}:{reader.line_num}: not valid CSV: {error}") from error


def _check_header(
    path: Path, header: Sequence[str], needed: Set[str], columns: Collection[str]
) -> None:
    """Raise UsageError where a column is missing, unknown, or there twice."""
    missing = sorted(needed - set(header))
    if missing:
        raise UsageError(f"{path}:1: the column {missing[0]!r} is missing")
    for column in header:
        if column not in columns:
            raise UsageError(f"{path}:1: unknown column {column!r}{did_you_mean(column, columns)}")
    refuse_twice(f"{path}:1: the column", header)


def _row(
    where: str, header: Sequence[str], cells: Sequence[str], needed: Set[str]
) -> dict[str, Plain]:
    """Return the *cells* that are not empty, by column. Raises UsageError."""
    if cells and len(cells) != len(header):
        raise UsageError(
            f"{where}: {len(cells)} cells under {len(header)} columns; quote a cell with commas"
        )
    row: dict[str, Plain] = {}
    for column, cell in zip(header, cells, strict=False):
        if cell.strip():
            row[column] = cell.strip()
    empty = sorted(needed - row.keys())
    if row and empty:
        raise UsageError(f"{where}: the column {empty[0]!r} is empty")
    return row
