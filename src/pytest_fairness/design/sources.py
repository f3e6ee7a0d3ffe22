"""Where the source data is, and how it is read: in the wheel, at the root of a source checkout, in a user's own folder.

A user's ``personas/`` folder has the layout of ours. A file of the same name **extends** what ships: an entry with the
same key takes the place of ours, anything else is added. ``<stem>.only.<ext>`` **replaces** the shipped file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence, Set
from pathlib import Path
from typing import Any, TypeVar

from pytest_fairness.documents import Document, Entry, open_document, read_text
from pytest_fairness.errors import UsageError, did_you_mean, listed, refuse_twice

T = TypeVar("T")


def shipped_folder() -> Path:
    """The ``personas`` folder that came with the package. Raises UsageError if the installation lost it."""
    here = Path(__file__).resolve()
    package, checkout = here.parents[1] / "personas", here.parents[3] / "personas"
    for folder in (package, checkout):
        if (folder / "names" / "first_names.csv").is_file():
            return folder
    raise UsageError(f"the shipped personas are missing (looked in {package} and {checkout}); reinstall the package")


def project_folder(root: Path) -> Path | None:
    """The own ``personas/`` folder of the project in *root*, if it has one: it extends what ships."""
    folder = root / "personas"
    # In a checkout of this package the two are one and the same.
    return folder if folder.is_dir() and folder.resolve() != shipped_folder() else None


def refuse_foreign(folder: Path) -> None:
    """Raise UsageError where *folder* holds no file by which it extends or replaces what ships."""
    shipped = shipped_folder()
    known = [path.relative_to(shipped) for kind in ("yaml", "csv") for path in sorted(shipped.rglob(f"*.{kind}"))]
    places = (folder / each.with_name(name) for each in known for name in (each.name, f"{each.stem}.only{each.suffix}"))
    if folder.is_dir() and not any(map(Path.is_file, places)):
        raise UsageError(f"{folder} holds nothing that is read: its files are called as those that ship, {known[0]} …")


def layers(relative: str, folder: Path | None = None) -> tuple[Path, ...]:
    """The files to read for *relative* (``names/surnames.csv``), later ones overriding those before by key.

    *folder* is the user's own. Raises UsageError if it is not there, or holds both ``x.csv`` and ``x.only.csv``.
    """
    shipped = shipped_folder() / relative
    if folder is None:
        return (shipped,)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; personas are read from a folder laid out like the shipped one")
    own = folder / relative
    only = own.with_name(f"{own.stem}.only{own.suffix}")
    if own.is_file() and only.is_file():
        raise UsageError(f"{own} extends and {only.name} replaces the shipped file; keep one of the two")
    if only.is_file():
        return (only,)
    return (shipped, own) if own.is_file() else (shipped,)


def entries(relative: str, folder: Path | None, kind: type[Entry], key: str = "name") -> dict[str, Entry]:
    """The entries of the YAML file *relative* in all its layers, by name. Raises UsageError with file and line."""
    found: dict[str, Entry] = {}
    for path in layers(relative, folder):
        found |= open_document(path).entries(kind, key)
    return found


def chosen(where: str, given: object, known: dict[str, T], kind: type[T]) -> tuple[Any, ...]:
    """The entries that *given* names, or holds: one, or a list of names and of *kind*.

    Raises UsageError for none, for what is neither, and for two of one name.
    """
    items = [given] if isinstance(given, (str, kind)) else given
    if not isinstance(items, Sequence) or not items:
        raise UsageError(f"{where}: give a list of names ({listed(known)}) or of {kind.__name__}(...), or leave it out")
    found: list[Any] = [known.get(item) if isinstance(item, str) else item for item in items]
    for item, entry in zip(items, found, strict=True):
        if not isinstance(entry, kind):
            what, hint = kind.__name__.lower(), did_you_mean(str(item), known)
            raise UsageError(f"{where}: there is no {what} {item!r} (there are: {listed(known)}){hint}")
    refuse_twice(f"{where}:", (entry.name for entry in found))
    return tuple(found)


def rows(path: Path, needed: Set[str], known: Collection[str]) -> Iterator[Document]:
    """The lines of the CSV file *path* that are not blank, a document each: its cells by column, without empty ones.

    Raises UsageError for a file that cannot be read, columns that are not as *needed* and *known*, and ragged rows.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        header = [cell.strip() for cell in next(reader, [])]
        if missing := sorted(needed - set(header)):
            raise UsageError(f"{path}:1: the column {missing[0]!r} is missing")
        if unknown := [column for column in header if column not in known]:
            raise UsageError(f"{path}:1: unknown column {unknown[0]!r}{did_you_mean(unknown[0], known)}")
        refuse_twice(f"{path}:1: the column", header)
        for cells in reader:
            where = f"{path}:{reader.line_num}"
            filled = {column: cell.strip() for column, cell in zip(header, cells, strict=False) if cell.strip()}
            if cells and len(cells) != len(header):
                raise UsageError(f"{where}: {len(cells)} cells under {len(header)} columns; quote a cell with commas")
            if empty := sorted(needed - filled.keys()) if filled else ():
                raise UsageError(f"{where}: the column {empty[0]!r} is empty")
            if filled:
                yield Document(str(path), dict(filled), {(): reader.line_num})
    except csv.Error as error:
        raise UsageError(f"{path}:{reader.line_num}: not valid CSV: {error}") from error
