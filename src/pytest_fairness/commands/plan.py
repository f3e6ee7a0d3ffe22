"""``pytest-fairness plan``: how large a sample an effect takes, or what a suite costs before
anything is paid for.

A suite is priced where it is collected: in a ``pytest --collect-only`` of its own, which loads this
module as a plugin and asks nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import FairnessError, UsageError
from pytest_fairness.words import count

if TYPE_CHECKING:
    import pytest

    from pytest_fairness.endpoints.protocol import Endpoint
    from pytest_fairness.pytest_layer.estimate import Shape, TestEstimate
    from pytest_fairness.pytest_layer.session import FairnessSession

_KINDS = ("numeric", "ordinal", "narrative", "binary", "categorical", "refusal")
#: Assumptions that hold of some kinds of outcome alone.
_OF_KINDS = {"rate": ("binary", "refusal"), "levels": ("ordinal", "categorical")}
_STATISTICS = ("kind", "effect", "icc", "alpha", "rate", "levels")
_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--kind",
        {
            "choices": _KINDS,
            "help": "the kind of outcome (numeric; of a suite, that which each test judges)",
        },
    ),
    ("--groups", {"type": int, "default": 2, "metavar": "N", "help": "groups compared (2)"}),
    (
        "--effect",
        {"type": float, "default": 0.5, "metavar": "D", "help": "d that must not be missed (0.5)"},
    ),
    (
        "--power",
        {"type": float, "default": 0.8, "metavar": "P", "help": "how often it is found (0.8)"},
    ),
    (
        "--icc",
        {"type": float, "default": 0.04, "help": "share of the variance between names (0.04)"},
    ),
    (
        "--alpha",
        {
            "type": float,
            "help": "level of the family, by Bonferroni (0.05; of a suite, that of each test)",
        },
    ),
    (
        "--rate",
        {"type": float, "help": "expected rate of favourable answers, or of refusals (0.5)"},
    ),
    (
        "--levels",
        {"type": int, "metavar": "N", "help": "levels of a rating (5), or so many labels (3)"},
    ),
    ("--names", {"type": int, "metavar": "N", "help": "names a group, if they are given"}),
    ("--templates", {"type": int, "default": 5, "metavar": "N", "help": "templates (5)"}),
    ("--repetitions", {"type": int, "default": 2, "metavar": "N", "help": "repetitions (2)"}),
    (
        "--endpoint",
        {
            "metavar": "NAME",
            "help": "price the suite for these endpoints of endpoints.yaml: a, or a,b, or all",
        },
    ),
    (
        "--concurrency",
        {"type": int, "metavar": "N", "help": "requests in flight (the suite's own setting)"},
    ),
    (
        "--latency",
        {"type": float, "default": 2.0, "metavar": "S", "help": "seconds a request takes (2)"},
    ),
    (
        "--reply-tokens",
        {"type": int, "metavar": "N", "help": "tokens of a usual reply (what the scorers ask for)"},
    ),
    ("--json", {"action": "store_true", "help": "give it as JSON"}),
    (
        "--verbose",
        {
            "action": "store_true",
            "help": "each test of a suite by itself, and what it costs at worst; before --suite",
        },
    ),
    (
        "--suite",
        {
            "nargs": argparse.REMAINDER,
            "metavar": "PYTEST_ARGUMENT",
            "help": "price the suite that pytest would run with these arguments; comes last",
        },
    ),
)
_VARIABLE = "PYTEST_FAIRNESS_PLAN"
_WIDTH = 110  # columns of the terminal that a paragraph takes


def add(subparsers: Any) -> None:
    """Declare ``plan``."""
    parser = subparsers.add_parser(
        "plan",
        help="the sample that an effect takes; the price of a suite before it runs",
        example="pytest-fairness plan --endpoint claude-sonnet --suite -m fairness",
        description=(
            "Plan a sample (names, templates, repetitions, calls) for an effect that must not be "
            "missed; or, with "
            "--suite, collect a suite and say what it would ask, what that costs with second "
            "samples, what its "
            "designs can find out, what it takes where they cannot, and how likely a fair system "
            "turns the suite red. "
            "Nothing is asked of any endpoint. Exit code 1: a test of the suite has a design that "
            "can never conclude."
        ),
    )
    for name, declared in _OPTIONS:
        short = ("-v",) if name == "--verbose" else ()
        parser.add_argument(*short, name, **declared)
    parser.set_defaults(
        run=lambda arguments: _sample(arguments) if arguments.suite is None else _suite(arguments)
    )


# ---------------------------------------------------------------- a sample


def _sample(arguments: argparse.Namespace) -> tuple[str, int]:
    from pytest_fairness.analysis.planning import plan_sample
    from pytest_fairness.model import to_json
    from pytest_fairness.words import percent

    design = ("groups", "power", "names", "templates", "repetitions")
    given = {name: getattr(arguments, name) for name in (*_STATISTICS, *design)}
    # What is not given is as it is there.
    plan = plan_sample(**{name: value for name, value in given.items() if value is not None})
    if arguments.json:
        return json.dumps(to_json(plan), indent=2) + "\n", 0
    rows = {
        "names a group": plan.names,
        "templates": plan.templates,
        "repetitions": plan.repetitions,
        "calls": f"{plan.calls:,} ({plan.calls_per_group:,} a group)",
        "finds": f"d = {plan.effect:g} in {percent(plan.power, 0)} of pairs that differ so (FLAG or FAIL)",
        "passes": f"{percent(plan.pass_probability, 0)} of pairs without a difference",
        "assumes": f"{plan.outcome}, {plan.groups} groups, ICC {plan.icc:g}, {plan.family} tests at {plan.alpha:g}",
    }
    lines = [f"{name:<14} {value}" for name, value in rows.items()]
    return "\n".join([*lines, *(f"note: {note}" for note in plan.notes), ""]), 0


# ---------------------------------------------------------------- a suite


def _suite(arguments: argparse.Namespace) -> tuple[str, int]:
    """Collect the suite in a process of its own, which prices it. Raises UsageError where pytest
    cannot collect it.
    """
    given = {
        key: value
        for key, value in vars(arguments).items()
        if key not in ("run", "suite", "command")
    }
    for name in ("latency", "reply_tokens", "concurrency"):
        if given[name] is not None and not given[name] > 0:
            raise UsageError(f"--{name.replace('_', '-')}={given[name]!r}: must be above 0")
    chosen = []
    if arguments.endpoint is not None:
        chosen = [f"--fairness-endpoint={arguments.endpoint}"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *arguments.suite,
        *chosen,
        "--collect-only",
        "-qq",
        "-p",
        __name__,
    ]
    with tempfile.TemporaryDirectory(prefix="fairness-plan-") as folder:
        path = Path(folder) / "plan.json"
        environment = {**os.environ, _VARIABLE: json.dumps({**given, "file": str(path)})}
        done = subprocess.run(  # noqa: S603 - the arguments are the user's own
            command, env=environment, capture_output=True, text=True, check=False
        )
        result: dict[str, Any] = {}
        if path.is_file():
            result = json.loads(path.read_bytes())
    if "error" in result:
        raise UsageError(result["error"])
    if not result:
        output = "\n".join(
            part.strip() for part in (done.stdout[-3000:], done.stderr[-1000:]) if part.strip()
        )
        raise UsageError(
            f"the suite could not be collected (pytest's exit status {done.returncode}):\n{output}"
        )
    return result["text"], result["code"]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Price what was collected, if nothing failed: this module is the plugin of the process that
    collects.
    """
    from pytest_fairness.pytest_layer.current_session import session_if_any

    given = os.environ.get(_VARIABLE)
    if given is None or hasattr(session.config, "workerinput") or session.testsfailed:
        return
    assumed = json.loads(given)
    path = Path(assumed.pop("file"))
    fairness = session_if_any(session.config)
    try:
        suite = None
        if fairness is not None:
            suite = _priced_suite(fairness, session.items, assumed)
        if suite is None or not suite["tests"]:
            raise UsageError(
                f"no test with a grid among {len(session.items)} collected items: nothing to price "
                "(a fairness test has @pytest.mark.fairness_grid or fairness_pairs)"
            )
        if assumed["json"]:
            text = json.dumps(suite, indent=2) + "\n"
        else:
            text = _table(suite)
        result = {"text": text, "code": 1 if suite["problems"] else 0}
    except UsageError as error:
        result = {"error": str(error)}
    path.write_text(json.dumps(result), encoding="utf-8")


def _priced_suite(
    fairness: FairnessSession, items: list[pytest.Item], assumed: dict[str, Any]
) -> dict[str, Any]:
    """Return what the suite asks, costs and can find out. An endpoint that is *assumed*, one alone,
    is named for all tests, so that its price also holds for tests that bring a system of their own.
    """
    from pytest_fairness.pytest_layer.estimate import chance_of_red, estimates

    settings = fairness.settings
    unknown = []
    endpoints: dict[str, Endpoint] = {}
    problems: list[str] = []
    for name in settings.endpoints:
        why = "it is not in the price table; give price: in endpoints.yaml"
        try:
            endpoints[name] = fairness.systems.configured(name)
        except FairnessError as error:
            why = str(error)
            problems.append(why)
        if name not in endpoints or endpoints[name].price is None:
            unknown.append(f"the price of endpoint {name!r} is unknown: {why}")
    rows = list(
        estimates(
            fairness.context, items, fairness.grids, endpoints, reply_tokens=assumed["reply_tokens"]
        )
    )
    several = len(settings.endpoints) > 1
    silent = several or assumed["endpoint"] is None
    if silent and any(row.own[0].requests for row in rows):
        unknown.append(
            "tests that bring a system of their own have no known price: name the endpoint behind "
            "it with --endpoint" + ", by itself" * several
        )
    assumed["concurrency"] = assumed["concurrency"] or settings.concurrency
    functions = {row.test.partition("[")[0] for row in rows}
    assumed["folded"] = len(functions) < len(rows) and not (assumed["verbose"] or assumed["json"])
    priced = [
        None if silent and row.own[0].requests else endpoints.get(row.endpoint) for row in rows
    ]
    tests = [_priced(row, endpoint, assumed) for row, endpoint in zip(rows, priced, strict=True)]
    for test in tests:
        # Which of its protected classes a test judges, only it knows.
        classes = test["classes"]
        if classes and not any(
            protected["can_pass"] and protected["can_fail"] for protected in classes.values()
        ):
            reasons = ", ".join(
                f"{name}: {protected['why']}" for name, protected in classes.items()
            )
            problems.append(
                f"{test['test']}: no protected class can ever both PASS and FAIL ({reasons})"
            )
    return {
        "endpoint": settings.endpoint,
        "simulated": len(endpoints) == len(settings.endpoints)
        and all(endpoint.simulated for endpoint in endpoints.values()),
        "false_alarm": chance_of_red(settings, items, fairness.grids),
        "max_cost": settings.max_cost,
        "tests": tests,
        "unpriced": "; ".join(unknown),
        "problems": list(dict.fromkeys(problems)),
        "assumed": assumed,
    }


def _priced(
    row: TestEstimate, endpoint: Endpoint | None, assumed: dict[str, Any]
) -> dict[str, Any]:
    """One test. ``requests``, tokens, ``cost`` and ``seconds`` are to be expected, ``most_…`` is
    the most; the cost is None where the price is unknown. ``classes`` says what each protected
    class can find out.
    """
    from pytest_fairness.pytest_layer.estimate import shapes

    few, most = row.requests(replaced=True)
    price = None if endpoint is None else endpoint.price
    grid = row.planned.grid
    reply = row.reply_tokens
    return {
        **{
            name: getattr(row, name)
            for name in ("test", "tier", "temperature", "items", "cells", "trials", "shared")
        },
        "endpoint": None if row.own[0].requests else row.endpoint,
        "again": row.new * row.again,
        "reply_tokens": reply,
        "requests": round(few.requests),
        "most_requests": round(most.requests),
        "input_tokens": few.input_tokens(reply),
        "output_tokens": round(few.requests * reply),
        "cost": None if price is None else few.usual_cost(price, reply),
        "most_cost": None if price is None else most.most_cost(price, row.longest_reply),
        "seconds": few.requests / assumed["concurrency"] * assumed["latency"],
        "choices": row.planned.tiers_by_arm,
        "classes": {
            name: _assessed(row, shape, assumed)
            for name, shape in shapes(grid, swapped=False).items()
            if shape.groups > 1
        },
    }


def _assessed(row: TestEstimate, shape: Shape, assumed: dict[str, Any]) -> dict[str, Any]:
    """Return what the class of that *shape* can find out: of several kinds of outcome, by the one
    that it does worst with.
    """
    from pytest_fairness.pytest_layer.estimate import power_of

    statistics = {name: assumed[name] for name in _STATISTICS}
    if statistics["alpha"] is None:
        alpha = row.alpha
    else:
        alpha = statistics["alpha"]
    designs = {}
    for kind in (assumed["kind"],) if assumed["kind"] else row.kinds or _KINDS[:1]:
        given = {**statistics, "kind": kind, "alpha": alpha}
        for name, kinds in _OF_KINDS.items():
            if assumed["kind"] is None and kind not in kinds:
                given[name] = None
        # Folded, one test among many is not worth the full precision.
        designs[kind] = power_of(
            row.planned.grid, shape, row.temperature, rough=assumed["folded"], **given
        )
    kind, worst = min(
        designs.items(), key=lambda design: min(design[1].power, design[1].pass_probability)
    )
    return {"kind": kind, "groups": shape.groups, "names": shape.names, **asdict(worst)}


# ---------------------------------------------------------------- as text


def _table(suite: dict[str, Any]) -> str:
    """The suite as text: what it comes to, then its tests, folded or each by itself, then what was
    assumed.
    """
    from pytest_fairness.reports.escaping import line, wrapped

    verbose = suite["assumed"].get("verbose", False)
    tests = suite["tests"]
    if verbose:
        folded = {name: [test] for name, test in _named(tests)}
    else:
        folded = _folded(tests)
    several = ""
    if "," in suite["endpoint"]:
        several = "s"
    names = line(suite["endpoint"].replace(",", ", "))
    heading = f"endpoint{several} {names}" + (
        " (simulated: costs nothing)" if suite["simulated"] else ""
    )
    lines = [heading, *_bill(suite), ""]
    columns = _HEADING if verbose else tuple(name for name in _HEADING if name != "at most")
    body = [_cells(members, columns) for members in folded.values()]
    widths = [max(map(len, column)) for column in zip(columns, *body, strict=True)]
    top, *rows = (
        "  " + "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        for cells in (columns, *body)
    )
    lines.append(top)
    for (name, members), cells in zip(folded.items(), rows, strict=True):
        lines += [line(name), cells, *_findable(members)]
    problems = [f"PROBLEM {line(problem)}" for problem in suite["problems"]]
    if not verbose and len(problems) > _SHOWN:
        problems[_SHOWN:] = [
            f"PROBLEM … and {len(problems) - _SHOWN} more of the kind (-v shows them)"
        ]
    paragraphs = [*_assumptions(suite), *problems]
    wrapped_lines = [each for paragraph in paragraphs for each in wrapped(paragraph, _WIDTH)]
    return "\n".join([*lines, "", *wrapped_lines, ""])


_HEADING = (
    "items",
    "cells",
    "trials",
    "requests",
    "tokens in",
    "tokens out",
    "cost",
    "at most",
    "time",
)
_SHOWN = 5  # problems of a suite that is folded


def _named(tests: Sequence[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each of *tests* by what tells it from all others."""
    for test in tests:
        heat = ""
        if test["temperature"] is not None:
            heat = f" at temperature {test['temperature']:g}"
        whom = ""
        if test["endpoint"] is not None:
            whom = f" asks {test['endpoint']}"
        yield f"{test['test']}{heat}, tier {test['tier']}{whom}", test


def _folded(tests: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """*tests* by their function: its classes, temperatures, tiers and endpoints together."""
    folded: dict[str, list[dict[str, Any]]] = {}
    for test in tests:
        folded.setdefault(test["test"].partition("[")[0], []).append(test)
    return folded


def _bill(suite: dict[str, Any]) -> list[str]:
    """Return what all tests come to: how much is asked, for how much and how long; of several
    endpoints, each.
    """
    from pytest_fairness.pytest_layer.estimate import dollars, duration
    from pytest_fairness.reports.escaping import line

    tests = suite["tests"]
    again = sum(test["again"] for test in suite["tests"])
    total = {name: sum(test[name] for test in tests) for name in ("items", "trials", "seconds")}
    cells = dict(zip(_HEADING, _cells(tests, _HEADING), strict=True))
    more = ""
    if again:
        more = f", up to {again:,} more where an alarm is asked about again"
    lines = [
        f"  {count(total['items'], 'test')}, {total['trials']:,} trials{more}",
        f"  {cells['requests']} requests, {cells['tokens in']} tokens in, {cells['tokens out']} "
        "out, "
        f"about {duration(total['seconds'])}",
    ]
    if suite["simulated"]:
        return lines
    cap = ""
    if suite["max_cost"] is not None:
        cap = f" (cap {dollars(suite['max_cost'])})"
    worst = ""
    if suite["assumed"].get("verbose"):
        worst = f", at most {cells['at most']}"
    cost = cells["cost"]
    if cost != "unknown":
        cost = f"about {cost}"
    lines.append(f"  cost {cost}{worst}{cap}")
    endpoints = dict.fromkeys(test["endpoint"] for test in tests)
    for name in endpoints if len(endpoints) > 1 else ():
        cost = _cells([test for test in tests if test["endpoint"] == name], ("cost",))[0]
        whose = "the tests' own systems"
        if name is not None:
            whose = line(name)
        lines.append(f"    {whose}: {cost}")
    return lines


def _cells(tests: Sequence[dict[str, Any]], columns: Sequence[str]) -> tuple[str, ...]:
    """The *columns* of some tests together."""
    from pytest_fairness.pytest_layer.estimate import dollars, duration

    total = {
        name: sum(test[name] for test in tests) for name in ("requests", "most_requests", "seconds")
    }
    counts = {"items": "items", "cells": "cells", "trials": "trials"}
    counts |= {"tokens in": "input_tokens", "tokens out": "output_tokens"}
    cells = {column: f"{sum(test[name] for test in tests):,}" for column, name in counts.items()}
    cells["requests"] = f"{total['requests']:,}"
    if total["requests"] != total["most_requests"]:
        cells["requests"] += f"–{total['most_requests']:,}"
    for column, name in (("cost", "cost"), ("at most", "most_cost")):
        values = [test[name] for test in tests]
        if None in values:
            cells[column] = "unknown"
        else:
            cells[column] = dollars(sum(values))
    return tuple({**cells, "time": duration(total["seconds"])}[column] for column in columns)


def _findable(tests: Sequence[dict[str, Any]]) -> list[str]:
    """Return what the classes of *tests* can find out: of one test in full, of several from the
    worst to the best.
    """
    designs = [(name, design) for test in tests for name, design in test["classes"].items()]
    lines = []
    if len(tests) == 1:
        for name, design in designs:
            first, *more = _reach(name, design)
            lines += [f"    {first}", *(f"      {each}" for each in more)]
    elif designs:
        lines.append(f"    {_span(designs)}")
    if shared := sum(test["shared"] for test in tests):
        lines.append(f"    {shared:,} of its trials are asked by tests above, and not priced again")
    if any(test["choices"] for test in tests):
        lines.append(
            "    choices between candidates: the number of repetitions decides what they find"
        )
    return lines


def _span(designs: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Return what several designs find and pass, in one line."""
    from pytest_fairness.reports.escaping import line
    from pytest_fairness.words import percent

    ends = {}
    for name in ("power", "pass_probability"):
        low, high = (percent(end(design[name] for _, design in designs), 0) for end in (min, max))
        if low == high:
            ends[name] = low
        else:
            ends[name] = f"{low.removesuffix(' %')} to {high}"
    never = sum(not (design["can_pass"] and design["can_fail"]) for _, design in designs)
    kinds = " or ".join(dict.fromkeys(design["kind"] for _, design in designs))
    classes = list(dict.fromkeys(name for name, _ in designs))
    if len(classes) == 1:
        by = line(classes[0])
    else:
        by = f"{len(classes)} classes"
    return (
        f"{kinds} outcome by {by}, finds d = "
        f"{designs[0][1]['effect']:g} in {ends['power']} of pairs, passes "
        f"{ends['pass_probability']} of equal pairs"
        + (
            f"; {never} of {len(designs)} comparisons can never PASS or never FAIL (-v says which)"
            if never
            else ""
        )
    )


def _reach(name: str, design: dict[str, Any]) -> list[str]:
    """Return what a protected class can find out, what it takes where it cannot, and what does not
    help.
    """
    from pytest_fairness.reports.escaping import line
    from pytest_fairness.words import percent

    people = "one name or label"
    if design["names"] > 1:
        people = f"{design['names']} names"
    power = percent(design["power"], 0)
    passed = percent(design["pass_probability"], 0)
    verdicts = [verdict for verdict in ("PASS", "FAIL") if not design[f"can_{verdict.lower()}"]]
    limits = " and ".join(f"can never {verdict}" for verdict in verdicts)
    reach = f"finds d = {design['effect']:g} in {power} of pairs, passes {passed} of equal pairs"
    needs = []
    if design["needs"]:
        needs = [f"to pass 80 % of equal pairs: {design['needs']}"]
    why = ""
    if limits:
        why = f"; {limits}: {design['why']}"
    groups = f"{line(name)} ({design['kind']} outcome): {design['groups']} groups of {people}"
    return [f"{groups}, {reach}{why}", *needs, *design["notes"]]


def _assumptions(suite: dict[str, Any]) -> list[str]:
    """Return how likely a fair system is red, what was assumed, and what is not known."""
    from pytest_fairness.reports.escaping import line
    from pytest_fairness.words import rounded_percent

    assumed = suite["assumed"]
    tests = suite["tests"]
    lengths = sorted({test["reply_tokens"] for test in tests})
    kinds = dict.fromkeys(design["kind"] for test in tests for design in test["classes"].values())
    kind = assumed["kind"] or " or ".join(kinds) or _KINDS[0]
    lines = [
        f"Chance of a false red at most {rounded_percent(suite['false_alarm'])}, if each test asserts once.",
        f"Assumed: replies of {' or '.join(map(str, lengths))} tokens, as the scorers ask for; "
        f"{assumed['latency']:g} "
        f"s a request, {assumed['concurrency']} in flight; {kind} outcome (numeric where a test "
        "names no scorer), ICC "
        f"{assumed['icc']:g}, each class a family by itself; alarms are asked about again as often "
        "as a fair system "
        "raises them. Tokens are estimated from the length of the texts.",
    ]
    if assumed.get("verbose"):
        lines.append(
            "At most: a second sample for every test, replies as long as they may get, every "
            "strategy tried, a token a "
            "byte."
        )
    return [*lines, *([f"Cost unknown: {line(suite['unpriced'])}."] if suite["unpriced"] else [])]
