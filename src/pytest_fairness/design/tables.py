"""CSV of source data, checked cell by cell: a fault names its file and line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_fairness.errors import UsageError

MAX_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: its cells, stripped, and where it stands."""

    cells: Mapping[str, str]
    where: str

    def text(self, column: str) -> str:
        """The cell, ``""`` where the table has no such column."""
        return self.cells.get(column, "")

    def required(self, column: str) -> str:
        value = self.text(column)
        if not value:
            raise UsageError(f"{self.where}: the column {column!r} is empty")
        return value

    def number(self, column: str, low: float = 0.0, high: float = float("inf")) -> float | None:
        """The cell as a number from *low* to *high*, None where it is empty."""
        value = self.text(column)
        if not value:
            return None
        try:
            parsed = float(value)
        except ValueError:
            raise UsageError(f"{self.where}: {column} is {value!r}, not a number") from None
        if not low <= parsed <= high:
            raise UsageError(f"{self.where}: {column} is {value}, outside {low:g} to {high:g}")
        return parsed

    def whole(self, column: str) -> int | None:
        value = self.number(column)
        if value is None:
            return None
        if value != int(value):
            raise UsageError(f"{self.where}: {column} is {value}, not a whole number")
        return int(value)


def rows(path: Path, columns: frozenset[str], optional: frozenset[str]) -> Iterator[Row]:
    """The rows of the CSV file *path*, which must have *columns* and may have *optional* ones.

    Raises UsageError for a file that cannot be read, is over 5 MB or not UTF-8, for a missing, unknown or
    repeated column, and for a row with too many or too few cells. Blank lines are skipped.
    """
    reader = csv.reader(io.StringIO(_read(path), newline=""), strict=True)
    try:
        header = [cell.strip() for cell in next(reader, [])]
        _check_header(path, header, columns, optional)
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            where = f"{path}:{reader.line_num}"
            if len(cells) != len(header):
                raise UsageError(f"{where}: {len(cells)} cells under {len(header)} columns; quote a cell with commas")
            yield Row(dict(zip(header, (cell.strip() for cell in cells), strict=True)), where)
    except csv.Error as error:
        raise UsageError(f"{path}:{reader.line_num}: not valid CSV: {error}") from error


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UsageError(f"{path}: larger than {MAX_BYTES:,} bytes")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8; save the file as UTF-8") from error


def _check_header(path: Path, header: list[str], columns: frozenset[str], optional: frozenset[str]) -> None:
    missing = sorted(columns - set(header))
    if missing:
        raise UsageError(f"{path}:1: the column {missing[0]!r} is missing (needed: {', '.join(sorted(columns))})")
    unknown = sorted(set(header) - columns - optional)
    if unknown:
        raise UsageError(f"{path}:1: unknown column {unknown[0]!r} (known: {', '.join(sorted(columns | optional))})")
    if len(set(header)) != len(header):
        raise UsageError(f"{path}:1: a column stands twice")
