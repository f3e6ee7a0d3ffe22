"""``pytest-fairness assess``: a verdict on decisions that exist already, without a test file."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.commands import (
    add_cluster_and_block,
    add_column,
    add_flag,
    add_path,
    add_several,
)
from pytest_fairness.errors import FrameError, UsageError, did_you_mean
from pytest_fairness.model import ALARMS, Finding, OutcomeKind, Verdict
from pytest_fairness.words import count, listed

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.reports.sections import Page

_TEST = '''"""The decisions of {file}, judged as `pytest-fairness assess` judges them."""

import pandas as pd
import pytest

from pytest_fairness import {imported}

FILE = {path!r}


@pytest.fixture(scope="module")
def decisions():
    return {reader}


@pytest.mark.fairness
@pytest.mark.parametrize("by", {families!r}, ids=str)
def test_{outcome}(decisions, by):
    {assertion}(decisions, {arguments})
'''

_TEST_OF_ERROR_RATES = """

@pytest.mark.fairness
@pytest.mark.parametrize("by", {families!r}, ids=str)
def test_error_rates_of_{outcome}(decisions, by):
    assert_equal_error_rates(decisions, {arguments})
"""


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "assess",
        help="a verdict on decisions that exist already: a CSV or Parquet file",
        description="Compares an outcome between the groups of a table with one row a decision, "
        "without a test file. Each --by is a family of its own; --by race,gender judges each and "
        "both crossed. Rows are taken as independent unless --cluster names what they share. "
        "Exit code 1: an alarm.",
        example="pytest-fairness assess decisions.csv --outcome hired --by race --by gender",
    )
    parser.add_argument("table", type=Path, metavar="FILE", help="a CSV or Parquet file")
    parser.add_argument("--outcome", required=True, metavar="COLUMN", help="what was decided")
    parser.add_argument(
        "--by",
        required=True,
        action="append",
        metavar="COLUMN[,COLUMN]",
        help="a protected class; again for a family of its own, with a comma to cross",
    )
    parser.add_argument(
        "--kind", choices=["auto", *map(str, OutcomeKind)], default="auto", help="of outcome (auto)"
    )
    parser.add_argument("--favourable", metavar="VALUE", help="the favourable one of two decisions")
    add_flag(parser, "--lower-is-better", "a lower outcome is the better one")
    add_flag(parser, "--four-fifths", "compare ratios of rates with four fifths instead")
    add_several(
        parser,
        "--within",
        "what may differ: compares those who are alike in it, too; again for a further one",
        metavar="COLUMN",
    )
    add_column(
        parser,
        "--each",
        "compares within each of its values by itself, as each firm, all as one family "
        "(Benjamini-Hochberg)",
    )
    add_column(
        parser,
        "--truth",
        "what turned out to be right: compares error rates and predictive values, too",
    )
    add_column(
        parser, "--score", "the score that the outcome rests on: compares its calibration, too"
    )
    parser.add_argument("--positive", metavar="VALUE", help="the outcome that is its yes")
    parser.add_argument("--positive-truth", metavar="VALUE", help="the truth that is its yes")
    add_cluster_and_block(parser)
    parser.add_argument("--alpha", type=float, default=0.05, help="level of a family (0.05)")
    add_flag(parser, "--require-conclusive", "exit code 1 for INCONCLUSIVE, too")
    add_flag(parser, "--json", "print the findings as JSON")
    add_path(parser, "--html", "write the findings as a page, too", metavar="FILE")
    add_path(parser, "--as-test", "write the test file that says the same", metavar="FILE")
    parser.set_defaults(run=assess)


def assess(arguments: argparse.Namespace) -> tuple[str, int]:
    """Judge the table; print each finding. Raises UsageError, and FrameError for a cell that cannot
    be read.
    """
    from pytest_fairness.commands.columns import as_json
    from pytest_fairness.reports.plain_text import finding_text

    _check_truth(arguments)
    columns, tables = _tables(arguments)
    families = [_family(given, columns, arguments.table) for given in arguments.by]
    given = _given(arguments, tables[0], columns)
    judge = _judge(arguments)
    findings: list[Finding] = []
    for by, table in zip(families, tables, strict=True):
        try:
            with _naming_rows(arguments):
                findings.extend(_compared(arguments, judge, table, by, given))
                findings.extend(_error_rates(arguments, table, by, given))
        except FrameError as error:
            raise UsageError(_why(error, arguments, judge, by, given)) from None
    written = []
    if arguments.html is not None:
        written.append(_written(arguments.html, _page_text(arguments.table, findings)))
    if arguments.as_test is not None:
        text = _test_text(arguments, families, given, tables[0])
        written.append(_written(arguments.as_test, text))
    code = int(any(_is_red(finding, arguments) for finding in findings))
    if arguments.json:
        return as_json([finding.to_dict() for finding in findings]), code
    texts = [finding_text(finding) for finding in findings]
    return "\n\n".join([*texts, *written]).rstrip("\n") + "\n", code


def _naming_rows(arguments: argparse.Namespace) -> AbstractContextManager[None]:
    """Return what names the file and the row of an error where a pattern stands for several files:
    a single one is read once more.
    """
    from pytest_fairness.analysis.counts import is_pattern
    from pytest_fairness.analysis.unreadable_rows import naming_rows

    if not is_pattern(str(arguments.table)):
        return nullcontext()
    return naming_rows(arguments.table, arguments.outcome)


def _check_truth(arguments: argparse.Namespace) -> None:
    """Raise UsageError where what goes with --truth is given without it, or the other way round."""
    if arguments.truth is None:
        for option in ("score", "positive", "positive_truth"):
            if getattr(arguments, option) is not None:
                raise UsageError(f"--{option.replace('_', '-')} goes with --truth")
        return
    if arguments.four_fifths:
        raise UsageError("--four-fifths and --truth do not go together")


def _compared(
    arguments: argparse.Namespace,
    judge: Callable[..., Finding],
    table: pd.DataFrame,
    by: str | list[str],
    given: Mapping[str, Any],
) -> tuple[Finding, ...]:
    """Return the finding on *table*, and beside it that within the strata of --within."""
    from pytest_fairness.analysis.strata import analyze_within

    if not arguments.within:
        return (judge(table, by=by, **given),)
    strata: dict[str, Any] = {"within": arguments.within}
    if arguments.four_fifths:
        strata["analysis"] = "four_fifths"
    return analyze_within(table, by=by, **strata, **given)


def _error_rates(
    arguments: argparse.Namespace,
    table: pd.DataFrame,
    by: str | list[str],
    given: Mapping[str, Any],
) -> tuple[Finding, ...]:
    """Return the findings on the error rates of *table*; none without --truth."""
    from pytest_fairness.analysis.error_rates import analyze_error_rates

    if arguments.truth is None:
        return ()
    return analyze_error_rates(table, by=by, **_given_of_error_rates(arguments, table, given))


def _given_of_error_rates(
    arguments: argparse.Namespace, table: pd.DataFrame, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of the assertion of error rates beside the classes, where those of the
    other are *given*.
    """
    names = (
        *("outcome", "alpha", "cluster", "block", "favourable", "lower_is_worse"),
        *("each", "correction"),
    )
    rates = {name: given[name] for name in names if name in given}
    truth = arguments.truth
    for option, column in (("positive", given["outcome"]), ("positive_truth", truth)):
        value = getattr(arguments, option)
        if value is not None:
            called = f"--{option.replace('_', '-')}"
            rates[option] = _cell(table[column], value, arguments.table, called)
    if arguments.score is not None:
        rates["score"] = arguments.score
    if arguments.within:
        rates["within"] = arguments.within
    return {**rates, "truth": truth}


def _is_red(finding: Finding, arguments: argparse.Namespace) -> bool:
    if finding.verdict in ALARMS:
        return True
    return bool(arguments.require_conclusive) and finding.verdict is Verdict.INCONCLUSIVE


def _tables(arguments: argparse.Namespace) -> tuple[list[str], list[pd.DataFrame]]:
    """Return the columns of the file, and for each family its table, as counts where it is reduced.
    Raises UsageError where the file cannot be read.
    """
    from pytest_fairness.analysis.counts import columns_of, countable, is_pattern

    path = arguments.table
    if not is_pattern(str(path)) and not path.exists():
        raise UsageError(f"{path} cannot be read: there is no such file")
    if path.is_file() and not path.stat().st_size:
        raise UsageError(f"{path} cannot be read: it is empty")
    columns = columns_of(str(path))
    outcome = _column(arguments.outcome, "--outcome", columns, path)
    for name in ("cluster", "block", "truth", "score", "each"):
        if getattr(arguments, name) is not None:
            _column(getattr(arguments, name), f"--{name}", columns, path)
    strata = [_column(name, "--within", columns, path) for name in arguments.within]
    tables = []
    for given in arguments.by:
        by = _family(given, columns, path)
        try:
            table = countable(
                str(path),
                outcome,
                by,
                arguments.cluster,
                arguments.block,
                arguments.truth,
                within=(*strata, arguments.each, arguments.score),
                alike=True,
            )
        except FrameError as error:
            raise UsageError(f"{path}: {error}") from None
        if not len(table):
            raise UsageError(f"{path} has no rows")
        tables.append(table)
    return columns, tables


def _why(
    error: FrameError,
    arguments: argparse.Namespace,
    judge: Callable[..., Finding],
    by: Any,
    given: dict[str, Any],
) -> str:
    """Return what is wrong with the table by an *error*, with the file that it is about."""
    from pytest_fairness.analysis.counts import is_pattern

    path = arguments.table
    if not is_pattern(str(path)) and not arguments.within:
        return _unreadable(arguments, judge, by, given)
    if str(path.parent) in str(error):  # of one of several files
        return str(error)
    return f"{path}: {error}"


def _unreadable(
    arguments: argparse.Namespace, judge: Callable[..., Finding], by: Any, given: dict[str, Any]
) -> str:
    """Return why a table cannot be judged, by its rows: counts do not know where a value stands."""
    from pytest_fairness.analysis.counts import read_by_pandas

    frame = read_by_pandas(str(arguments.table))
    odd = _odd_text(frame[given["outcome"]])
    if odd is not None:
        value = frame[given["outcome"]].iloc[odd]
        place = _place(arguments.table, odd)
        return f"{place}: column {given['outcome']!r}: {value!r} is not a number, as others are"
    try:
        judge(frame, by=by, **given)
    except FrameError as error:
        message = str(error)
        named = re.search(r"^column .*?, row (\d+)", message)
        if named is None:
            return f"{arguments.table}: {message}"
        return f"{_place(arguments.table, int(named[1]))}: {message}"
    return f"{arguments.table} cannot be judged by its counts"


def _place(path: Path, row: int) -> str:
    """Return the file with the line of a *row* counted from 0; with the row itself in Parquet."""
    from pytest_fairness.analysis.counts import is_parquet

    if is_parquet(str(path)):
        return f"{path}, row {row}"
    return f"{path}, line {row + 2}"


def _odd_text(column: pd.Series[Any]) -> int | None:
    """Return the first row of a *column* of numbers written as text that is none; None where it
    holds no numbers, or nothing else.
    """
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return None
    held = column.notna().to_numpy()
    odd = pd.to_numeric(column, errors="coerce").isna().to_numpy() & held
    if not odd.any() or 2 * odd.sum() > held.sum():
        return None
    return int(odd.argmax())


def _column(name: str, option: str, columns: Sequence[str], path: Path) -> str:
    """Return *name*. Raises UsageError where it is none of *columns*."""
    if name not in columns:
        mend = did_you_mean(name, columns)
        raise UsageError(
            f"{option}: {path} has no column {name!r}{mend}; the columns are {listed(columns)}"
        )
    return name


def _family(given: str, named: Sequence[str], path: Path) -> str | list[str]:
    """Return the column of *given*, or the columns that it crosses."""
    columns = [_column(name.strip(), "--by", named, path) for name in given.split(",")]
    if len(columns) == 1:
        return columns[0]
    return columns


def _given(
    arguments: argparse.Namespace, frame: pd.DataFrame, columns: Sequence[str]
) -> dict[str, Any]:
    """Return the arguments of the assertion beside the classes."""
    path = arguments.table
    outcome = _column(arguments.outcome, "--outcome", columns, path)
    given: dict[str, Any] = {"outcome": outcome, "alpha": arguments.alpha}
    for name in ("cluster", "block"):
        column = getattr(arguments, name)
        if column is not None:
            column = _column(column, f"--{name}", columns, path)
        given[name] = column
    if arguments.favourable is not None:
        given["favourable"] = _cell(frame[outcome], arguments.favourable, path, "--favourable")
    if not arguments.four_fifths:
        given["kind"] = arguments.kind
        if arguments.lower_is_better:
            given["lower_is_worse"] = False
    if arguments.each is not None:
        given |= {"each": arguments.each, "correction": "fdr_bh"}
    return given


def _cell(column: pd.Series[Any], text: str, path: Path, option: str) -> object:
    """Return the value of *column* that is written *text*. Raises UsageError for none."""
    values = column.dropna().unique().tolist()
    for value in values:
        if str(value) == text:
            return value
    raise UsageError(
        f"{option}: no {column.name} of {path} is {text!r}; there are "
        f"{listed(sorted(map(str, values))[:9])}"
    )


def _judge(arguments: argparse.Namespace) -> Callable[..., Finding]:
    from pytest_fairness.analysis.disparity import analyze_disparity
    from pytest_fairness.analysis.four_fifths import analyze_four_fifths

    if arguments.four_fifths:
        return analyze_four_fifths
    return analyze_disparity


def _written(path: Path, text: str) -> str:
    from pytest_fairness.runs.files import write_atomically

    write_atomically(path, text.encode("utf-8", "backslashreplace"))
    return f"wrote {path}"


def _page_text(path: Path, findings: Sequence[Finding]) -> str:
    from pytest_fairness.reports.html import render

    return render(_page(path, findings), {"id": "", "versions": None})


def _page(path: Path, findings: Sequence[Finding]) -> Page:
    """Return the *findings* as a page, a card each."""
    from pytest_fairness.reports.finding_sections import finding_section
    from pytest_fairness.reports.sections import Page

    sections = []
    for number, finding in enumerate(findings, 1):
        sections.append(finding_section(finding, f"finding-{number}"))
    return Page(
        name="assessment",
        title=f"Assessment of {path.name}",
        lead=f"{count(len(findings), 'finding')} on decisions that were given as a table.",
        sections=tuple(sections),
    )


def _test_text(
    arguments: argparse.Namespace,
    families: Sequence[str | list[str]],
    given: Mapping[str, Any],
    table: pd.DataFrame,
) -> str:
    """Return a test file that asserts what was judged."""
    from pytest_fairness.analysis.counts import is_parquet
    from pytest_fairness.design.slugs import slug

    assertion = "assert_no_disparity"
    if arguments.four_fifths:
        assertion = "assert_four_fifths"
    reader = "pd.read_csv(FILE, low_memory=False)"
    if is_parquet(str(arguments.table)):
        reader = "pd.read_parquet(FILE)"
    compared = dict(given)
    if arguments.within:
        compared["within"] = arguments.within
    words = {
        "file": json.dumps(arguments.table.name)[1:-1].replace('"', "'"),
        "path": str(arguments.table.resolve()),
        "imported": assertion,
        "assertion": assertion,
        "reader": reader,
        "families": list(families),
        "outcome": slug(given["outcome"]).replace("-", "_"),
        "arguments": _arguments_text(compared),
    }
    if arguments.truth is None:
        return _TEST.format_map(words)
    rates = _given_of_error_rates(arguments, table, given)
    words["imported"] = f"assert_equal_error_rates, {assertion}"
    others = {**words, "arguments": _arguments_text(rates)}
    return _TEST.format_map(words) + _TEST_OF_ERROR_RATES.format_map(others)


def _arguments_text(given: Mapping[str, Any]) -> str:
    """Return the arguments of a call after its table, with the classes second."""
    words = [f"{name}={_literal(value)}" for name, value in given.items()]
    words.insert(1, "by=by")
    return ", ".join(words)


def _literal(value: object) -> str:
    """Return *value*, a text, a number, yes or no, or None, as Python has it."""
    if value is not None and hasattr(value, "item"):
        value = value.item()
    return repr(value)
