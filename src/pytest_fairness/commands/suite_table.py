"""The price of a suite as a text table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.false_alarms import words
from pytest_fairness.analysis.sentences import percent
from pytest_fairness.reports.escaping import line, wrapped

if TYPE_CHECKING:
    from pytest_fairness.analysis.planning import DesignPower
    from pytest_fairness.commands.suite_price import Assumptions, PricedSuite, PricedTest

WIDTH = 110
"""Columns of the terminal that a paragraph takes."""


def suite_table(suite: PricedSuite, assumed: Assumptions) -> str:
    """The suite as text: two lines a test and one a protected class, the total, and what was assumed."""
    heading = ("tier", "items", "cells", "trials", "requests", "tokens in", "tokens out", "cost", "at most", "time")
    body = [_cells(test) for test in suite.tests]
    total = _cells_of_total(suite)
    widths = [max(len(row[at]) for row in (heading, *body, total)) for at in range(len(heading))]

    def row(cells: tuple[str, ...]) -> str:
        return "  " + "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))

    lines = [f"endpoint {line(suite.endpoint)}{' (simulated: costs nothing)' if suite.simulated else ''}", row(heading)]
    for test, cells in zip(suite.tests, body, strict=True):
        heat = "" if test.temperature is None else f" at temperature {test.temperature:g}"
        lines += [f"{line(test.test)}{heat}", row(cells)]
        for name, design in test.classes.items():
            first, *more = _design(*test.shapes[name], design)
            lines += [f"    {line(name)}: {first}", *(f"      {each}" for each in more)]
        if test.asked_before:
            lines.append(f"    {test.asked_before:,} of its trials are asked by tests above, and not priced again")
        if test.choices:
            lines.append("    choices between candidates: the number of repetitions decides what they find")
    lines += ["whole suite", row(total), ""]
    lines += wrapped(_false_alarm(suite), WIDTH)
    lengths = sorted({test.reply_tokens for test in suite.tests})
    lines += wrapped(
        f"Assumed: replies of {' or '.join(map(str, lengths))} tokens, as the scorers ask for; {assumed.latency:g} s a "
        f"request, {suite.concurrency} in flight; {assumed.kind} outcome, ICC {assumed.icc:g}, each class a family by "
        "itself. Tokens are estimated from the length of the texts. At most: a second sample for every test, replies "
        "as long as they may get, every strategy tried.",
        WIDTH,
    )
    if suite.unpriced:
        lines += wrapped(f"Cost unknown: {line(suite.unpriced)}.", WIDTH)
    for problem in suite.problems:
        lines += wrapped(f"PROBLEM {line(problem)}", WIDTH)
    return "\n".join([*lines, ""])


def _false_alarm(suite: PricedSuite) -> str:
    told = f"Chance of a false red at most {words(suite.false_alarm)}, if each test asserts once"
    again = sum(test.again for test in suite.tests)
    if again:
        told += f"; an alarm is first asked about again, with up to {again:,} trials more, which the cost includes"
    cap = "" if suite.max_cost is None else f" The cap of {_dollars(suite.max_cost)} holds for both together."
    return f"{told}.{cap}"


def _cells(test: PricedTest) -> tuple[str, ...]:
    return (
        str(test.tier),
        f"{test.items:,}",
        f"{test.cells:,}",
        f"{test.trials:,}",
        _range(test.requests, test.most_requests),
        f"{test.input_tokens:,}",
        f"{test.output_tokens:,}",
        _dollars(test.cost),
        _dollars(test.most_cost),
        _time(test.seconds),
    )


def _cells_of_total(suite: PricedSuite) -> tuple[str, ...]:
    def whole(name: str) -> Any:
        values = [getattr(test, name) for test in suite.tests]
        return None if None in values else sum(values)

    return (
        "",
        f"{whole('items'):,}",
        f"{whole('cells'):,}",
        f"{whole('trials'):,}",
        _range(whole("requests"), whole("most_requests")),
        f"{whole('input_tokens'):,}",
        f"{whole('output_tokens'):,}",
        _dollars(whole("cost")),
        _dollars(whole("most_cost")),
        _time(whole("seconds")),
    )


def _design(groups: int, names: int, design: DesignPower) -> list[str]:
    people = f"{names} names" if names > 1 else "one name or label"
    found, passed = percent(design.power), percent(design.pass_probability)
    reach = f"finds d = {design.effect:g} in {found} of pairs, passes {passed} of equal pairs"
    limits = []
    if not design.can_pass:
        limits.append("can never PASS")
    if not design.can_fail:
        limits.append("can never FAIL")
    told = f"; {' and '.join(limits)}: {design.why}" if limits else ""
    needs = [f"to pass 80 % of equal pairs: {design.needs}"] if design.needs else []
    return [f"{groups} groups of {people}, {reach}{told}", *needs, *design.notes]


def _range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _dollars(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
