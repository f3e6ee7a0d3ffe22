"""Rows of files that cannot be judged, named by file and row: counts do not know where a value
stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pytest_fairness.analysis.counts import has_engine, is_parquet, literal, quoted
from pytest_fairness.errors import FrameError

_OF_COUNTS = re.compile(r", row \d+ of the counts: ")
_OF_TEXT = "holds numbers written as text"


@contextmanager
def naming_rows(table: Any, outcome: Any) -> Iterator[None]:
    """Name the file and the row in a FrameError about the counts of *table*, which may be the path
    of files, or about its *outcome*.
    """
    try:
        yield
    except FrameError as error:
        if not isinstance(table, (str, Path)) or not has_engine():
            raise
        raise FrameError(_named(str(table), error, outcome)) from None


def _named(path: str, error: FrameError, outcome: Any) -> str:
    """Return what is wrong with the files at *path* by an *error* about their counts, with the file
    and the row of it; its message where no row is to blame.
    """
    files = _Files(path)
    message = str(error)
    if error.refused is not None:
        column, value = error.refused
        place = files.first(files.has(column, value))
        return f"{place or path}: {_OF_COUNTS.sub(': ', message)}"
    if _OF_TEXT not in message:
        return message
    odd = files.first(f"{files.number(outcome)} IS NULL AND {quoted(outcome)} <> ''")
    if odd is None:
        return message
    value = files.text_in(odd, outcome)
    return f"{odd}: column {outcome!r}: {value!r} is not a number, as others are"


class _RowOfFile(NamedTuple):
    """A row of a file, counted from 0."""

    file: str
    row: int

    def __str__(self) -> str:
        if is_parquet(self.file):
            return f"{self.file}, row {self.row}"
        return f"{self.file}, line {self.row + 2}"  # behind the header, counted from 1


class _Files(NamedTuple):
    """Files of one kind, as DuckDB reads them, row by row."""

    path: str

    def has(self, column: str, value: Any) -> str:
        """Return the condition that a row has the *value* in a *column*."""
        name = quoted(column)
        if value is None or value != value:  # noqa: PLR0124 - NaN
            return f"{name} IS NULL OR {self.number(column)} = 'nan' OR {name}::VARCHAR = ''"
        if isinstance(value, (bool, np.bool_)):
            return f"{name}::VARCHAR = '{str(value).lower()}'"
        if isinstance(value, (int, float, np.number)):
            return f"{self.number(column)} = '{value}'::DOUBLE"
        return f"{name}::VARCHAR = {literal(str(value))}"

    def number(self, column: str) -> str:
        """Return the expression of the number that a *column* holds, NULL where that is none."""
        return f"TRY_CAST({quoted(column)} AS DOUBLE)"

    def first(self, condition: str) -> _RowOfFile | None:
        """Return the first row of which a *condition* is true; None where there is none."""
        first_file = f"SELECT min(filename) FROM rows WHERE {condition}"  # noqa: S608
        file = self._rows(self.path, first_file)
        if file is None:
            return None
        row = self._rows(file, f"SELECT min(row) FROM rows WHERE {condition}")  # noqa: S608
        return _RowOfFile(file, int(row))

    def text_in(self, place: _RowOfFile, column: str) -> str:
        """Return what a *column* holds in a *place*."""
        query = f"SELECT {quoted(column)}::VARCHAR FROM rows WHERE row = {place.row}"  # noqa: S608
        return str(self._rows(place.file, query))

    def _rows(self, path: str, query: str) -> Any:
        """Return what a *query* of the numbered rows of the files at *path* gives."""
        import duckdb

        number = "file_row_number"
        files = f"read_parquet({literal(path)}, filename = true, file_row_number = true)"
        if not is_parquet(path):
            number = "row_number() OVER () - 1"
            options = "header = true, all_varchar = true, filename = true, parallel = false"
            files = f"read_csv({literal(path)}, {options})"
        reader = f"SELECT *, {number} AS row FROM {files}"  # noqa: S608
        (value,) = duckdb.connect().sql(f"WITH rows AS ({reader}) {query}").fetchall()[0]
        return value
