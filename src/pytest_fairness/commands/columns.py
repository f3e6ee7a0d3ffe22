"""Lists that commands print: as a table, as CSV, as JSON; sorted, grouped, in the columns asked
for.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pytest_fairness.commands import add_flag, add_path, complete
from pytest_fairness.errors import UsageError, unknown
from pytest_fairness.words import names_in

Value: TypeAlias = "str | int | float | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: the value of a row, which sorts and is what a CSV file holds, and the words that
    a terminal shows.
    """

    value: Callable[[Any], Value]
    words: Callable[[Any], str] | None = None
    figure: bool = True

    def shown(self, row: Any) -> str:
        if self.words is not None:
            return self.words(row)
        value = self.value(row)
        if value is None:
            return "–"
        return str(value)


def add_options(
    parser: argparse.ArgumentParser,
    columns: Mapping[str, Column],
    shown: Sequence[str],
    groups: Sequence[str] = (),
) -> None:
    """Declare the options. *shown* are the columns shown if not told otherwise, *groups* those that
    rows are grouped by, of which the first is the default.
    """
    titles = ", ".join(columns)
    parser.add_argument(
        "--columns", metavar="A,B", default=",".join(shown), help=f"the columns shown, of {titles}"
    )
    sort = parser.add_argument(
        "--sort",
        metavar="COLUMN",
        help="sort by this column, the smallest first; --sort=-COLUMN the largest first",
    )
    complete(sort, lambda **_: columns)
    if groups:
        parser.add_argument(
            "--group-by",
            choices=(*groups, "none"),
            default=groups[0],
            help=f"a table for each {' or '.join(groups)}, or one for all ({groups[0]})",
        )
    add_path(parser, "--csv", "write all columns as CSV to this file")
    add_flag(parser, "--json", "print everything as JSON")
    parser.set_defaults(of_columns=columns)


def chosen_columns(arguments: argparse.Namespace) -> list[str]:
    """The columns of ``--columns``. Raises UsageError for one that there is not."""
    columns: Mapping[str, Column] = arguments.of_columns
    chosen = names_in(arguments.columns)
    named = list(chosen)
    if arguments.sort:
        named.append(arguments.sort.removeprefix("-"))
    for name in named:
        if name not in columns:
            raise UsageError(unknown("column", name, columns))
    return chosen


def sorted_rows(arguments: argparse.Namespace, rows: Sequence[Any]) -> list[Any]:
    """*rows* in the order of ``--sort``, as they come without; those without a value last."""
    if not arguments.sort:
        return list(rows)
    column: Column = arguments.of_columns[arguments.sort.removeprefix("-")]
    present = []
    absent = []
    for row in rows:
        if column.value(row) is None:
            absent.append(row)
        else:
            present.append(row)
    present.sort(key=lambda row: _order(column.value(row)), reverse=arguments.sort.startswith("-"))
    return [*present, *absent]


def tables(arguments: argparse.Namespace, rows: Sequence[Any]) -> str:
    """*rows* as the options ask for: a table, or one for each group. Writes the CSV file. Raises
    UsageError.
    """
    from pytest_fairness.reports.escaping import line
    from pytest_fairness.reports.plain_text import table_text
    from pytest_fairness.reports.sections import Table

    columns = arguments.of_columns
    names = chosen_columns(arguments)
    rows = sorted_rows(arguments, rows)
    if arguments.csv is not None:
        _write_csv(arguments.csv, columns, rows)
    by = getattr(arguments, "group_by", "none")
    names = [name for name in names if name != by]
    groups = {"": rows}
    if by != "none":
        groups = _grouped(rows, columns[by])
    words = tuple(name for name in names if not columns[name].figure)
    width = max(100, shutil.get_terminal_size((160, 24)).columns)
    parts = []
    for name, members in groups.items():
        cells = tuple(tuple(columns[column].shown(row) for column in names) for row in members)
        table = Table(caption=name, head=tuple(names), rows=cells, words=words)
        text = table_text(table, width)
        if name:
            text = f"{line(name)}\n{text}"
        parts.append(text)
    return "\n\n".join(parts)


def _grouped(rows: Sequence[Any], column: Column) -> dict[str, list[Any]]:
    """Return *rows* by what *column* shows of them, in the order in which that comes."""
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(column.shown(row), []).append(row)
    return groups


def as_json(data: object) -> str:
    """*data*, which is plain JSON, for a terminal or a program: ASCII, so that nothing in it is
    obeyed.
    """
    return json.dumps(data, indent=2) + "\n"


def _order(value: Value) -> tuple[int, float, str]:
    if isinstance(value, str):
        return (1, 0.0, value)
    return (0, float(value or 0), "")


def _write_csv(path: Path, columns: Mapping[str, Column], rows: Sequence[Any]) -> None:
    from pytest_fairness.reports.escaping import csv_cell

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([csv_cell(column.value(row)) for column in columns.values()] for row in rows)
    try:
        path.write_text(text.getvalue(), encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"--csv={path}: {error.strerror}") from None
