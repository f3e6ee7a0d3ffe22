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
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
import yaml

from pytest_fairness.errors import UsageError, did_you_mean, refuse_twice, unknown
from pytest_fairness.words import listed

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
Place: TypeAlias = "tuple[str | int, ...]"
T = TypeVar("T")
Entry = TypeVar("Entry", bound=msgspec.Struct)
Text = Annotated[str, msgspec.Meta(pattern=r"\S")]
"""Text that is not empty. Not for use in a union with a mapping of it: msgspec 0.22 then crashes as Python exits."""

MAX_BYTES = 5_000_000
MAX_DEPTH = 40
MAX_NODES = 500_000
_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,18}(?:[eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, Plain] = {"": None, "null": None, "true": True, "false": False}
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|(\[\.\.\.\])")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_ENUM = re.compile(r"Invalid enum value '(.*)'")

# libyaml is some ten times faster; both parsers give the same events.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Misplaced(UsageError, ValueError):
    """What a struct says of itself where it makes no sense: *why*, at ``place``, counted from the
    struct.
    """

    def __init__(self, why: str, *place: str | int) -> None:
        super().__init__(why)
        self.place = place


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
        entries_ = {}
        for name, body in self.convert(dict[str, dict[str, Any]]).items():
            if key in body:
                raise self.wrong(
                    f"{name}: unknown key {key!r}: it is the name of the entry", name, key
                )
            if "source" in kind.__struct_fields__ and not str(body.get("source") or "").strip():
                raise self.wrong(f"{name}: source is missing: say where it comes from", name)
            entries_[name] = self._as(kind, {**body, key: name}, (name,), f"{name}: ")
        return entries_

    def _as(
        self, kind: type[T], value: Any, place: Place = (), about: str = "", *, strict: bool = True
    ) -> T:
        try:
            return msgspec.convert(value, kind, strict=strict)
        except msgspec.ValidationError as error:
            why, _, path = str(error).partition(" - at `$")
            steps = (
                name or (int(index) if index else None)
                for name, index, _ in _STEP.findall(path.rstrip("`"))
            )
            inside = tuple(steps)
            kinds = (
                *place,
                *(
                    step
                    for step in takewhile(lambda step: step is not None, inside)
                    if step is not None
                ),
            )
            if isinstance(error.__cause__, Misplaced):
                raise self.wrong(about + why, *kinds, *error.__cause__.place) from None
            types = _types_at(kind, inside)
            if stray := _UNKNOWN.fullmatch(why):
                fields = [
                    inner.encode_name
                    for expected in types
                    for inner in getattr(expected, "fields", ())
                ]
                raise self.wrong(
                    about + unknown("key", stray[1], fields), *kinds, stray[1]
                ) from None
            if enum := _ENUM.fullmatch(why):
                values = [
                    value
                    for expected in types
                    for value in getattr(expected, "values", ())
                    if value
                ]
                why = (
                    f"unknown value {enum[1]!r} (known: "
                    f"{listed(values)}){did_you_mean(enum[1], values)}"
                )
            named = [f"{step}: " for step in kinds[len(place) :] if isinstance(step, str)]
            raise self.wrong("".join((about, *named[-1:], _plainly(why))), *kinds) from None


_PLAIN = {"object": "a mapping", "array": "a list", "str": "text", "int": "a whole number", "float": "a number",
          "bool": "true or false", "null": "nothing"}  # fmt: skip


def _plainly(why: str) -> str:
    """A complaint of msgspec in the words of YAML."""

    def kinds(match: re.Match[str]) -> str:
        names = match[1].split(" | ")
        return " or ".join(
            _PLAIN.get(name, match[0]) for name in names if name != "null" or len(names) == 1
        )

    why = why.replace(r"`str` matching regex '\\S'", "text that is not empty")
    why = re.sub(r"`([a-z]+(?: \| [a-z]+)*)`", kinds, why)
    return why.replace("Object missing required field", "missing key").replace(
        "Expected ", "expected "
    )


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
    """The document in *path*, read as UTF-8. Raises UsageError if it cannot be read or is refused."""
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
        return Document(source, _built(yaml.parse(text, Loader=_LOADER), source, lines), lines)
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


def _built(events: Iterator[yaml.Event], source: str, lines: dict[Place, int]) -> Plain:
    """The data of *events*, each refused before anything is built of it; *lines* takes where each
    part begins.
    """
    root: Plain = None
    around: list[tuple[Any, Place]] = []  # the collections that are open, and their places
    keys: list[str | None] = []  # of each the key whose value comes next
    nodes = documents = 0
    for event in events:
        documents += isinstance(event, yaml.DocumentStartEvent)
        nodes += isinstance(event, yaml.NodeEvent)
        if isinstance(event, yaml.CollectionEndEvent):
            around.pop()
            keys.pop()
        inside, place = around[-1] if around else (None, ())
        is_key = isinstance(inside, dict) and keys[-1] is None
        line = 1
        if event.start_mark:
            line = event.start_mark.line + 1
        if why := _refusal(event, inside if is_key else None, len(around), nodes, documents):
            raise UsageError(f"{source}:{line}: {why}")
        if not isinstance(event, yaml.NodeEvent):
            continue
        if is_key and isinstance(event, yaml.ScalarEvent):
            keys[-1] = event.value
            lines[(*place, event.value)] = line
            continue
        value: Any = {}
        if isinstance(event, yaml.SequenceStartEvent):
            value = []
        if isinstance(event, yaml.ScalarEvent):
            # The pure parser gives an unquoted scalar the style None, libyaml "".
            if event.style:
                value = str(event.value)
            else:
                value = _scalar(event.value)
        if isinstance(inside, list):
            place = (*place, len(inside))
            inside.append(value)
        elif isinstance(inside, dict):
            key, keys[-1] = str(keys[-1]), None
            place = (*place, key)
            inside[key] = value
        else:
            root = value
        lines.setdefault(place, line)
        if isinstance(event, yaml.CollectionStartEvent):
            around.append((value, place))
            keys.append(None)
    return root


def _refusal(
    event: yaml.Event, mapping: dict[str, Plain] | None, depth: int, nodes: int, documents: int
) -> str:
    """Why *event* could grow, or mean two things; it is a key where there is a *mapping*. Empty
    where it is fine.
    """
    if documents > 1:
        return "a second document; keep one a file"
    if isinstance(event, yaml.AliasEvent):
        return f"the alias *{event.anchor} is not read; write the value out"
    if not isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
        return ""
    if event.anchor is not None:
        return f"the anchor &{event.anchor} is not read; write the value out"
    if event.tag is not None:
        return f"the tag {event.tag!r} is not read; write plain data"
    if depth + isinstance(event, yaml.CollectionStartEvent) > MAX_DEPTH:
        return _TOO_DEEP
    if nodes > MAX_NODES:
        return f"more than {MAX_NODES:,} values; split the file"
    if mapping is None:
        return ""
    if isinstance(event, yaml.CollectionStartEvent):
        return "a key must be plain text, not a list or a mapping"
    if event.value == "<<":
        return "merge keys (<<) are not read; write the entries out"
    if event.value in mapping:
        return f"the key {event.value!r} stands here twice; keep one"
    return ""


def _scalar(text: str) -> Plain:
    """Return what an unquoted scalar means."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return text


# ---------------------------------------------------------------- source data: what ships, and a project's own

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
    """The own ``personas/`` folder of the project in *root*, if it has one: it extends what ships."""
    folder = root / "personas"
    # In a checkout of this package the two are one and the same.
    if folder.is_dir() and folder.resolve() != shipped_folder():
        return folder
    return None


def refuse_foreign(folder: Path) -> None:
    """Raise UsageError where *folder* holds no file by which it extends or replaces what ships."""
    shipped = shipped_folder()
    names = [
        path.relative_to(shipped)
        for kind in ("yaml", "csv")
        for path in sorted(shipped.rglob(f"*.{kind}"))
    ]
    places = (
        folder / each.with_name(name)
        for each in names
        for name in (each.name, f"{each.stem}.only{each.suffix}")
    )
    if folder.is_dir() and not any(map(Path.is_file, places)):
        raise UsageError(
            f"{folder} holds nothing that is read: its files are called as those that ship, "
            f"{names[0]} …"
        )


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
    only = path.with_name(f"{path.stem}.only{path.suffix}")
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
    relative: str, folder: Path | None, kind: type[Entry], key: str = "name"
) -> dict[str, Entry]:
    """The entries of the YAML file *relative* in all its layers, by name. Raises UsageError with
    file and line.
    """
    entries_: dict[str, Entry] = {}
    for path in layers(relative, folder):
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
            f"{where}: give a list of names ({listed(entries)}) or of {kind.__name__}(...), or leave "
            "it out"
        )
    chosen_: list[Any] = [entries.get(item) if isinstance(item, str) else item for item in items]
    for item, entry in zip(items, chosen_, strict=True):
        if not isinstance(entry, kind):
            what = kind.__name__.lower()
            hint = did_you_mean(str(item), entries)
            raise UsageError(
                f"{where}: there is no {what} {item!r} (there are: {listed(entries)}){hint}"
            )
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
        header = [cell.strip() for cell in next(reader, [])]
        if missing := sorted(needed - set(header)):
            raise UsageError(f"{path}:1: the column {missing[0]!r} is missing")
        if unknown := [column for column in header if column not in columns]:
            raise UsageError(
                f"{path}:1: unknown column {unknown[0]!r}{did_you_mean(unknown[0], columns)}"
            )
        refuse_twice(f"{path}:1: the column", header)
        for cells in reader:
            where = f"{path}:{reader.line_num}"
            filled = {
                column: cell.strip()
                for column, cell in zip(header, cells, strict=False)
                if cell.strip()
            }
            if cells and len(cells) != len(header):
                raise UsageError(
                    f"{where}: {len(cells)} cells under {len(header)} columns; quote a cell with "
                    "commas"
                )
            if empty := sorted(needed - filled.keys()) if filled else ():
                raise UsageError(f"{where}: the column {empty[0]!r} is empty")
            if filled:
                yield Document(str(path), dict(filled), {(): reader.line_num})
    except csv.Error as error:
        raise UsageError(f"{path}:{reader.line_num}: not valid CSV: {error}") from error
