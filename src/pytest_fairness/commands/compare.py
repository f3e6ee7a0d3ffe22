"""``pytest-fairness compare``: which of two runs, or two endpoints, is fairer on what."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.commands import add_flag, add_run
from pytest_fairness.commands.columns import (
    Column,
    Value,
    add_options,
    as_json,
    chosen_columns,
    tables,
)
from pytest_fairness.words import count, names_in

if TYPE_CHECKING:
    from pytest_fairness.analysis.side_by_side import SideChange
    from pytest_fairness.reports.run_comparison import RunComparison


def _field(name: str, *, figure: bool = True) -> Column:
    def value(change: SideChange) -> Value:
        figure: Value = getattr(change, name)
        return figure

    return Column(value=value, figure=figure)


def _amount(name: str, *, change: bool = False) -> Column:
    def words(side_change: SideChange) -> str:
        return side_change.amount(getattr(side_change, name), signed=change)

    return Column(value=_field(name).value, words=words)


def _gap(name: str, place: int) -> Column:
    """The gap on the side in *place*, marked where it is a little too large."""

    def words(change: SideChange) -> str:
        gap = change.amount(getattr(change, name))
        if change.sides[place] in change.early:
            return f"{gap} (stopped early)"
        return gap

    return Column(value=_field(name).value, words=words)


def _p(change: SideChange) -> str:
    from pytest_fairness.words import p_value

    return p_value(change.corrected_p_value)


def _interval(change: SideChange) -> str:
    low, high = change.interval
    if low is None:
        return "–"
    words = f"{change.amount(low, signed=True)} to {change.amount(high, signed=True)}"
    if change.is_by_size:
        return f"size {words}"
    return words


def _mean(name: str) -> Callable[[SideChange], str]:
    def words(change: SideChange) -> str:
        from pytest_fairness.analysis.sentences import amount

        value = getattr(change, name)
        if value is None:
            return "–"
        return amount(value, change.kind)

    return words


COLUMNS = {
    "test": _field("test", figure=False),
    "outcome": Column(
        value=lambda change: change.outcome,
        words=lambda change: change.outcome + (f" ({change.unit})" if change.unit else ""),
        figure=False,
    ),
    "class": _field("by", figure=False),
    "groups": Column(value=lambda change: f"{change.group_1}–{change.group_2}", figure=False),
    "before": _gap("before", 0),
    "after": _gap("after", 1),
    "change": _amount("change", change=True),
    "interval": Column(value=_interval),
    "size change": _amount("size_change", change=True),
    "low": _amount("low", change=True),
    "high": _amount("high", change=True),
    "effect": Column(
        value=lambda change: change.effect,
        words=lambda change: (
            "–" if change.effect is None else f"{change.effect:+.2f}".replace("-", "−")
        ),
    ),
    "corrected p": Column(value=lambda change: change.corrected_p_value, words=_p),
    "n": _field("n"),
    "units": _field("units"),
    "mean before": Column(value=lambda change: change.mean_before, words=_mean("mean_before")),
    "mean after": Column(value=lambda change: change.mean_after, words=_mean("mean_after")),
    "side": Column(value=lambda change: change.sides[1], figure=False),
    "verdict": Column(value=lambda change: change.verdict, figure=False),
    "sentence": Column(value=lambda change: change.sentence, figure=False),
}
_SHOWN = (
    "test",
    "outcome",
    "class",
    "groups",
    "before",
    "after",
    "change",
    "interval",
    "corrected p",
    "verdict",
)


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "compare",
        help="which of two runs, or of two endpoints, is fairer on what, on the trials that they share",
        description="Compares the disparities that two sides show on identical trials, name by name: which is smaller, "
        "with the 90 % interval of the change, all corrected together (Holm). The first run or "
        "endpoint is what the "
        "others are compared with: 'before' is its gap between two groups, 'after' theirs. Without "
        "a run, the last two "
        "are compared. Exit code 1: another side is less fair than the first on something.",
        example="pytest-fairness compare last~1 last\n  pytest-fairness compare last --endpoints claude-sonnet,gpt",
    )
    add_run(
        parser,
        "runs",
        nargs="*",
        several=True,
        help="the runs, or patterns of their ids, as '2026-02-*'",
    )
    parser.add_argument(
        "--endpoints", metavar="A,B", help="compare these endpoints, of one run or several"
    )
    add_flag(parser, "--all", "a sentence for everything, also for what is alike or open")
    add_options(parser, COLUMNS, _SHOWN, ("test", "outcome", "class", "side", "verdict"))
    parser.set_defaults(run=compare)


def compare(arguments: argparse.Namespace) -> tuple[str, int]:
    """Compare; print who is fairer in a sentence each, then the tables."""
    from pytest_fairness.reports.escaping import terminal, wrapped
    from pytest_fairness.reports.run_comparison import compare_runs

    chosen_columns(arguments)
    endpoints = names_in(arguments.endpoints or "")
    comparison = compare_runs(*_runs_to_compare(arguments, endpoints), endpoints=endpoints)
    code = int(comparison.worse)
    if len(comparison.sides) > 2 and arguments.columns == ",".join(_SHOWN):
        arguments.columns = f"side,{arguments.columns}"
    table = tables(arguments, comparison.changes)
    if arguments.json:
        return as_json(comparison.to_dict()), code
    lines = _comparison_head(comparison)
    for change in comparison.changes:
        if change.became not in ("alike", "open") or arguments.all:
            lines += wrapped(change.sentence, 100, "  ", "    ")
    if lines[-1]:
        lines.append("")
    lines.append(table)
    if comparison.left_out:
        lines += ["", "not compared:"]
    for why in comparison.left_out:
        lines += wrapped(why, 100, "  ", "    ")
    return terminal("\n".join([*lines, ""])), code


def _runs_to_compare(arguments: argparse.Namespace, endpoints: Sequence[str]) -> list[Path]:
    """The runs that are named; else the last one, where its *endpoints* are compared, or the last
    two.
    """
    from pytest_fairness.runs.project import chosen_run

    runs: list[Path] = [run for several in arguments.runs for run in several]
    if runs:
        return runs
    if endpoints:
        return [chosen_run("last")]
    return [chosen_run("last~1"), chosen_run("last")]


def _comparison_head(comparison: RunComparison) -> list[str]:
    """The first lines: who is compared, and how many gaps became what."""
    from pytest_fairness.reports.escaping import wrapped

    lines: list[str] = []
    role = "before"
    for side, about in comparison.sides.items():
        lines += wrapped(f"{role}: {side} ({about})", 100, "", "        ")
        role = "after"
    head = f"{count(len(comparison.changes), 'gap')} compared"
    marks = []
    if comparison.simulated:
        marks.append("simulated")
    if comparison.replayed:
        marks.append("replayed")
    if marks:
        head += f" ({', '.join(marks)})"
    counts = ", ".join(f"{count} {verdict}" for verdict, count in comparison.counts.items())
    return [*lines, f"{head}: {counts}", ""]
