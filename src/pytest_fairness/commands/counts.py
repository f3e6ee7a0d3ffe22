"""``pytest-fairness counts``: the reduction of a table to counts, and the SQL that makes it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_fairness.commands import (
    add_cluster_and_block,
    add_column,
    add_flag,
    add_path,
    add_several,
)
from pytest_fairness.errors import UsageError


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "counts",
        help="reduce a table to counts, or print the SQL that does so in a warehouse",
        description="Counts how often each combination of groups, cluster, block and outcome "
        "occurs. What is written is judged by assess as the table is.",
        example="pytest-fairness counts decisions --outcome hired --by race --sql",
    )
    parser.add_argument("table", metavar="TABLE", help="a CSV or Parquet file; with --sql any name")
    parser.add_argument("--outcome", required=True, metavar="COLUMN", help="what was decided")
    parser.add_argument(
        "--by", required=True, action="append", metavar="COLUMN", help="a protected class"
    )
    add_cluster_and_block(parser)
    add_several(
        parser,
        "--within",
        "a column of strata, or of parts as each firm; again for a further one",
        metavar="COLUMN",
    )
    add_column(parser, "--truth", "what turned out to be right")
    add_flag(parser, "--sql", "print the SQL instead")
    parser.add_argument(
        "--dialect",
        choices=["ansi", "spark"],
        default="ansi",
        help="of the SQL: names in double quotes (ansi), or in backticks, as Spark, BigQuery and "
        "MySQL have them",
    )
    add_path(parser, "--to", "the CSV file to write", metavar="FILE")
    parser.set_defaults(run=counts)


def counts(arguments: argparse.Namespace) -> tuple[str, int]:
    """Print the SQL, or write the counts. Raises UsageError for a table that cannot be read."""
    from pytest_fairness.analysis.counts import counts_of, sql_of

    named = [*arguments.by, arguments.outcome, arguments.cluster, arguments.block]
    named += [*arguments.within, arguments.truth]
    columns = [name for name in dict.fromkeys(named) if name is not None]
    if arguments.sql:
        return f"{sql_of(arguments.table, columns, arguments.dialect)}\n", 0
    if arguments.to is None:
        raise UsageError("--to: name the CSV file to write, or ask for the SQL by --sql")
    reduced = counts_of(
        Path(arguments.table),
        arguments.outcome,
        arguments.by,
        cluster=arguments.cluster,
        block=arguments.block,
        within=arguments.within,
        truth=arguments.truth,
    )
    reduced.table.to_csv(arguments.to, index=False)
    combinations = len(reduced.table)
    return f"wrote {arguments.to}: {reduced.rows:,} rows in {combinations:,} combinations\n", 0
