"""What a collected suite would cost in tokens, dollars and time, what its designs can find out, and a table of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_fairness.analysis.false_alarms import chance, words
from pytest_fairness.analysis.planning import DesignPower, assess_design
from pytest_fairness.analysis.sentences import percent
from pytest_fairness.commands.suite_facts import FACTS_FILE
from pytest_fairness.endpoints.protocol import Price
from pytest_fairness.errors import UsageError
from pytest_fairness.pytest_layer.estimate import LATENCY, Requests, input_tokens, most_cost, usual_cost
from pytest_fairness.reports.escaping import line, wrapped
from pytest_fairness.runs.money import UNLIMITED_OUTPUT, output_limit

_WIDTH = 110  # columns of the terminal that a paragraph takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What the plan takes for granted: length of replies (tokens; None: what the scorer of each test asks for), seconds
    a request, requests in flight, and the statistics of the outcome."""

    reply_tokens: int | None = None
    latency: float = LATENCY
    concurrency: int | None = None
    kind: str = "numeric"
    effect: float = 0.5
    icc: float = 0.04
    alpha: float = 0.05
    rate: float | None = None
    levels: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedTest:
    """One test (tier, temperature) of the suite.

    ``asked_before`` of its trials are those of tests before it: a run asks each once, and they are not priced again.
    ``again`` are the trials of a second sample, which an alarm asks for. ``requests``, ``input_tokens`` and
    ``output_tokens`` are what is to be expected, the second sample as often as a fair system raises an alarm;
    ``most_requests`` is the most (a second sample, strategies tried to the end). ``cost`` is expected and ``most_cost``
    the most in US dollars, with replies as long as they may get; None where the price is unknown. ``classes`` says what
    each protected class can find out.
    """

    test: str
    tier: int
    temperature: float | None
    items: int
    cells: int
    trials: int
    asked_before: int
    again: int
    reply_tokens: int
    requests: int
    most_requests: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    most_cost: float | None
    seconds: float
    choices: bool
    classes: Mapping[str, DesignPower]
    shapes: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedSuite:
    """The whole suite. ``false_alarm`` is how likely a fair system turns it red, at most, if each test asserts once;
    ``max_cost`` the cap of its runs. ``unpriced`` says why a price is unknown, empty where it is known."""

    endpoint: str
    simulated: bool
    concurrency: int
    false_alarm: float
    max_cost: float | None
    tests: tuple[PricedTest, ...]
    unpriced: str = ""

    @property
    def problems(self) -> list[str]:
        """Tests none of whose protected classes can ever PASS and FAIL; which of them a test judges, only it knows."""
        return [
            f"{test.test}: no protected class can ever both PASS and FAIL ({_reasons(test.classes)})"
            for test in self.tests
            if test.classes and not any(design.can_pass and design.can_fail for design in test.classes.values())
        ]


def _reasons(classes: Mapping[str, DesignPower]) -> str:
    return ", ".join(f"{protected}: {design.why}" for protected, design in classes.items())


def collect(arguments: Sequence[str], endpoint: str | None) -> dict[str, Any]:
    """Facts of the suite that ``pytest *arguments*`` would run, collected in a process of its own.

    Raises UsageError where pytest cannot collect it, with what pytest said; nothing is asked of any endpoint.
    """
    with tempfile.TemporaryDirectory(prefix="fairness-plan-") as folder:
        path = Path(folder) / "facts.json"
        chosen = [] if endpoint is None else [f"--fairness-endpoint={endpoint}"]
        plugin = "pytest_fairness.commands.suite_facts"
        command = [sys.executable, "-m", "pytest", *arguments, *chosen, "--collect-only", "-qq", "-p", plugin]
        done = subprocess.run(  # noqa: S603 - the arguments are the user's own
            command, env={**os.environ, FACTS_FILE: str(path)}, capture_output=True, text=True, check=False
        )
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"failed": 1}
    if facts["failed"]:
        output = "\n".join(part.strip() for part in (done.stdout[-3000:], done.stderr[-1000:]) if part.strip())
        raise UsageError(f"the suite could not be collected (pytest's exit status {done.returncode}):\n{output}")
    if not facts["tests"]:
        raise UsageError(
            f"no test with a grid among {facts['items']} collected items: nothing to price "
            "(a fairness test has @pytest.mark.fairness_grid or fairness_pairs)"
        )
    return facts


def price_suite(facts: Mapping[str, Any], assumed: Assumptions, *, asked_for: bool) -> PricedSuite:
    """Price the *facts* of :func:`collect`. *asked_for*: the endpoint was named for all tests, so its price also
    holds for tests that bring a system of their own."""
    endpoint = facts["endpoint"]
    price = None if endpoint["price"] is None else Price(**endpoint["price"])
    concurrency = assumed.concurrency or facts["concurrency"]
    default_limit = output_limit(endpoint.get("parameters") or {})
    unknown = []
    if price is None:
        why = endpoint.get("problem") or "it is not in the price table; give price: in endpoints.yaml"
        unknown.append(f"the price of endpoint {endpoint['name']!r} is unknown: {why}")
    if any(test["own_endpoint"] for test in facts["tests"]) and not asked_for:
        unknown.append(
            "tests that bring a system of their own have no known price: name the endpoint behind it with --endpoint"
        )
    return PricedSuite(
        endpoint=endpoint["name"],
        simulated=bool(endpoint.get("simulated")),
        concurrency=concurrency,
        false_alarm=facts["false_alarm"],
        max_cost=facts["max_cost"],
        tests=tuple(
            _priced(
                test, None if test["own_endpoint"] and not asked_for else price, default_limit, concurrency, assumed
            )
            for test in facts["tests"]
        ),
        unpriced="; ".join(unknown),
    )


def _priced(
    test: Mapping[str, Any], price: Price | None, default_limit: int | None, concurrency: int, assumed: Assumptions
) -> PricedTest:
    limit = test["output_limit"] or default_limit
    reply = assumed.reply_tokens or test["reply_tokens"]
    reply = reply if limit is None else min(reply, limit)
    longest = limit or UNLIMITED_OUTPUT
    # An alarm about a fair system is rare; its second sample is as large as the first.
    few = Requests(**test["fewest"]).times(1 + test["again"] * chance())
    most = Requests(**test["most"]).times(1 + test["again"])
    same = ("test", "tier", "temperature", "items", "cells", "trials", "asked_before", "choices")
    return PricedTest(
        **{name: test[name] for name in same},
        again=(test["trials"] - test["asked_before"]) * test["again"],
        reply_tokens=reply,
        requests=round(few.requests),
        most_requests=round(most.requests),
        input_tokens=input_tokens(few, reply),
        output_tokens=round(few.requests * reply),
        cost=None if price is None else usual_cost(price, few, reply),
        most_cost=None if price is None else most_cost(price, most, longest),
        seconds=max(few.requests / concurrency, min(few.requests, test["longest"])) * assumed.latency,
        classes={name: _assess(groups, test, assumed) for name, groups in test["classes"].items() if len(groups) > 1},
        shapes={
            name: (len(groups), min(group["names"] for group in groups.values()))
            for name, groups in test["classes"].items()
        },
    )


def _assess(groups: Mapping[str, Mapping[str, int]], test: Mapping[str, Any], assumed: Assumptions) -> DesignPower:
    fewest = {what: min(group[what] for group in groups.values()) for what in ("names", "trials", "templates")}
    return assess_design(
        assumed.kind,
        groups=len(groups),
        **fewest,
        repetitions=test["repetitions"],
        repeats=test["temperature"] == 0,
        effect=assumed.effect,
        icc=assumed.icc,
        alpha=assumed.alpha,
        rate=assumed.rate,
        levels=assumed.levels,
    )


def suite_table(suite: PricedSuite, assumed: Assumptions) -> str:
    """The suite as text: two lines a test and one a protected class, the total, and what was assumed."""
    body = [_cells([test], str(test.tier)) for test in suite.tests]
    total = _cells(suite.tests, "")
    widths = [max(map(len, column)) for column in zip(_HEADING, *body, total, strict=True)]

    def row(cells: tuple[str, ...]) -> str:
        return "  " + "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))

    lines = [
        f"endpoint {line(suite.endpoint)}{' (simulated: costs nothing)' if suite.simulated else ''}",
        row(_HEADING),
    ]
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
    lines += wrapped(_false_alarm(suite), _WIDTH)
    lengths = sorted({test.reply_tokens for test in suite.tests})
    lines += wrapped(
        f"Assumed: replies of {' or '.join(map(str, lengths))} tokens, as the scorers ask for; {assumed.latency:g} s a "
        f"request, {suite.concurrency} in flight; {assumed.kind} outcome, ICC {assumed.icc:g}, each class a family by "
        "itself. Tokens are estimated from the length of the texts. At most: a second sample for every test, replies "
        "as long as they may get, every strategy tried.",
        _WIDTH,
    )
    if suite.unpriced:
        lines += wrapped(f"Cost unknown: {line(suite.unpriced)}.", _WIDTH)
    for problem in suite.problems:
        lines += wrapped(f"PROBLEM {line(problem)}", _WIDTH)
    return "\n".join([*lines, ""])


def _false_alarm(suite: PricedSuite) -> str:
    text = f"Chance of a false red at most {words(suite.false_alarm)}, if each test asserts once"
    again = sum(test.again for test in suite.tests)
    if again:
        text += f"; an alarm is first asked about again, with up to {again:,} trials more, which the cost includes"
    cap = "" if suite.max_cost is None else f" The cap of {_dollars([suite.max_cost])} holds for both together."
    return f"{text}.{cap}"


_COUNTS = ("items", "cells", "trials", "requests", "most_requests", "input_tokens", "output_tokens")
_HEADING = ("tier", "items", "cells", "trials", "requests", "tokens in", "tokens out", "cost", "at most", "time")


def _cells(tests: Sequence[PricedTest], tier: str) -> tuple[str, ...]:
    """The columns of one test, or of all together."""
    items, cells, trials, requests, most, tokens_in, tokens_out = (
        sum(getattr(test, name) for test in tests) for name in _COUNTS
    )
    costs, at_most = [test.cost for test in tests], [test.most_cost for test in tests]
    return (
        tier,
        f"{items:,}",
        f"{cells:,}",
        f"{trials:,}",
        f"{requests:,}" if requests == most else f"{requests:,}–{most:,}",
        f"{tokens_in:,}",
        f"{tokens_out:,}",
        _dollars(costs),
        _dollars(at_most),
        _time(sum(test.seconds for test in tests)),
    )


def _design(groups: int, names: int, design: DesignPower) -> list[str]:
    people = f"{names} names" if names > 1 else "one name or label"
    found, passed = percent(design.power), percent(design.pass_probability)
    reach = f"finds d = {design.effect:g} in {found} of pairs, passes {passed} of equal pairs"
    out_of_reach = {"can never PASS": not design.can_pass, "can never FAIL": not design.can_fail}
    limits = " and ".join(limit for limit, holds in out_of_reach.items() if holds)
    why = f"; {limits}: {design.why}" if limits else ""
    needs = [f"to pass 80 % of equal pairs: {design.needs}"] if design.needs else []
    return [f"{groups} groups of {people}, {reach}{why}", *needs, *design.notes]


def _dollars(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return "unknown"
    total = sum(known)
    return f"${total:,.2f}" if total >= 1 or total == 0 else f"${total:.4f}"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
