"""``pytest-fairness plan``: how large a sample an effect takes, or what a suite costs before
anything is paid for.

A suite is priced where it is collected: in a ``pytest --collect-only`` of its own, which loads this
module as a plugin and asks nothing.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.expected_looks import Expectation, LookedDesign, looks_to_pass
from pytest_fairness.commands import add_flag
from pytest_fairness.design.stages import BASE
from pytest_fairness.errors import FairnessError, UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.words import count, enumerated

if TYPE_CHECKING:
    import pytest

    from pytest_fairness.endpoints.protocol import Endpoint
    from pytest_fairness.pytest_layer.estimate import Shape, TestEstimate
    from pytest_fairness.pytest_layer.session import FairnessSession

#: Assumptions that hold of some kinds of outcome alone.
_OF_KINDS = {
    "rate": (OutcomeKind.BINARY, OutcomeKind.REFUSAL),
    "levels": (OutcomeKind.ORDINAL, OutcomeKind.CATEGORICAL),
}
#: The kind where nothing says which.
_USUAL = OutcomeKind.NUMERIC
_STATISTICS = ("kind", "effect", "icc", "alpha", "rate", "levels")
_COSTS = ("cost", "biased_cost", "cost_of_all_looks", "most_cost")
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
            "--suite, collect a suite and say what it would ask, what that costs where a system is "
            "fair, where it is not and at most, what its "
            "designs can find out, what it takes where they cannot, and how likely a fair system "
            "turns the suite red. "
            "Nothing is asked of any endpoint. Exit code 1: a test of the suite has a design that "
            "can never conclude."
        ),
    )
    _add_assumptions(parser)
    _add_design(parser)
    _add_suite(parser)
    parser.set_defaults(run=_plan)


def _add_assumptions(parser: argparse.ArgumentParser) -> None:
    """Declare what is assumed of the outcome."""
    parser.add_argument(
        "--kind",
        choices=[kind.value for kind in OutcomeKind],
        help="the kind of outcome (numeric; of a suite, that which each test judges)",
    )
    parser.add_argument("--groups", type=int, default=2, metavar="N", help="groups compared (2)")
    parser.add_argument(
        "--effect",
        type=float,
        default=0.5,
        metavar="D",
        help="d that must not be missed (0.5)",
    )
    parser.add_argument(
        "--power", type=float, default=0.8, metavar="P", help="how often it is found (0.8)"
    )
    parser.add_argument(
        "--icc", type=float, default=0.04, help="share of the variance between names (0.04)"
    )
    parser.add_argument(
        "--alpha",
        type=float,
        help="level of the family, by Bonferroni (0.05; of a suite, that of each test)",
    )
    parser.add_argument(
        "--rate", type=float, help="expected rate of favourable answers, or of refusals (0.5)"
    )
    parser.add_argument(
        "--reader",
        type=float,
        metavar="P",
        help="the share that a model reads rightly: say how many labels by a person decide",
    )
    parser.add_argument(
        "--levels", type=int, metavar="N", help="levels of a rating (5), or so many labels (3)"
    )
    parser.add_argument(
        "--pass-in",
        type=float,
        metavar="P",
        help="say the looks that pass a fair system in so large a share of runs, and what they cost",
    )


def _add_design(parser: argparse.ArgumentParser) -> None:
    """Declare the size of a sample."""
    parser.add_argument("--names", type=int, metavar="N", help="names a group, if they are given")
    parser.add_argument("--templates", type=int, default=5, metavar="N", help="templates (5)")
    parser.add_argument("--repetitions", type=int, default=2, metavar="N", help="repetitions (2)")


def _add_suite(parser: argparse.ArgumentParser) -> None:
    """Declare what a suite is priced by."""
    parser.add_argument(
        "--endpoint",
        metavar="NAME",
        help="price the suite for these endpoints of endpoints.yaml: a, or a,b, or all",
    )
    parser.add_argument(
        "--concurrency",
        type=int,
        metavar="N",
        help="requests in flight (the suite's own setting)",
    )
    parser.add_argument(
        "--latency",
        type=float,
        default=2.0,
        metavar="S",
        help="seconds a request takes (2)",
    )
    parser.add_argument(
        "--reply-tokens",
        type=int,
        metavar="N",
        help="tokens of a usual reply (what the scorers ask for)",
    )
    add_flag(parser, "--json", "give it as JSON")
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="each test of a suite by itself, and what it costs at worst; before --suite",
    )
    parser.add_argument(
        "--suite",
        nargs=argparse.REMAINDER,
        metavar="PYTEST_ARGUMENT",
        help="price the suite that pytest would run with these arguments; comes last",
    )


def _plan(arguments: argparse.Namespace) -> tuple[str, int]:
    if arguments.suite is None:
        return _sample(arguments)
    return _suite(arguments)


# ---------------------------------------------------------------- a sample


def _sample(arguments: argparse.Namespace) -> tuple[str, int]:
    from pytest_fairness.analysis.planning import plan_sample
    from pytest_fairness.model import to_json
    from pytest_fairness.words import percent

    design = ("groups", "power", "names", "templates", "repetitions")
    given = {name: getattr(arguments, name) for name in (*_STATISTICS, *design)}
    if arguments.pass_in is not None:
        return _looks_of_sample(arguments), 0
    given["kind"] = kind = _kind_of_rate(arguments.kind, arguments.rate)
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
    if arguments.reader is not None:
        rows["labels"] = _labels_in_words(kind, arguments, plan.calls_per_group)
    lines = [f"{name:<14} {value}" for name, value in rows.items()]
    return "\n".join([*lines, *(f"note: {note}" for note in plan.notes), ""]), 0


def _labels_in_words(kind: OutcomeKind, arguments: argparse.Namespace, trials: int) -> str:
    """Return how many labels decide what a model has read in so many *trials* a group.
    Raises UsageError.
    """
    from pytest_fairness.analysis.readers import labels_needed
    from pytest_fairness.pytest_layer.estimate import AssumedOutcome
    from pytest_fairness.statistics.compare import RATES

    if kind not in RATES or not 0.5 < arguments.reader < 1:
        raise UsageError(
            f"--reader={arguments.reader!r}: a share between .5 and 1, of a yes/no outcome (--rate)"
        )
    rate = arguments.rate or AssumedOutcome().rate
    labels = labels_needed(rate, quality=arguments.reader, rows=trials)
    if labels is None:
        return f"no number decides: {trials:,} trials a group are too few for such a reader"
    return f"about {labels:,} a group by a person, to pass 80 % of fair pairs that such a model has read"


def _looks_of_sample(arguments: argparse.Namespace) -> str:
    """Return the looks that pass a fair system as often as is wanted, and what they ask."""
    from pytest_fairness.analysis.looks import MOST_RED, LookPlan
    from pytest_fairness.pytest_layer.estimate import AssumedOutcome

    _check_outcome(vars(arguments))
    rows = arguments.templates * arguments.repetitions
    if arguments.groups < 2 or rows < 1:
        raise UsageError("give at least 2 --groups, 1 --templates and 1 --repetitions")
    design = LookedDesign(
        plan=LookPlan(names=(BASE,), red=min(MOST_RED, arguments.alpha or MOST_RED)),
        kind=_kind_of_rate(arguments.kind, arguments.rate),
        groups=arguments.groups,
        rows=rows,
        rate=arguments.rate or AssumedOutcome().rate,
        icc=arguments.icc,
    )
    expected = looks_to_pass(design, arguments.pass_in)
    if arguments.json:
        return json.dumps(_looks_as_json(expected), indent=2) + "\n"
    wanted = _wanted(design, arguments.pass_in)
    if expected is None:
        return f"{wanted}: no looks do\n"
    calls = design.groups * rows
    looks = enumerated(list(map(str, expected.design.plan.names)), most=99)
    return (
        f"{wanted}: looks at {looks} names a group, about {expected.fair * calls:,.0f} calls "
        f"({expected.biased * calls:,.0f} where a group is treated worse by d = 0.5), at most "
        f"{expected.most * calls:,}\n"
    )


def _looks_as_json(expected: Expectation | None) -> dict[str, Any]:
    """Return looks that pass a fair system, as JSON has them; null without any."""
    if expected is None:
        return {"looks": None}
    calls = expected.design.groups * expected.design.rows
    return {
        "looks": expected.design.plan.names,
        "passes": expected.passes,
        "calls": {
            "fair": expected.fair * calls,
            "biased": expected.biased * calls,
            "most": expected.most * calls,
        },
    }


def _kind_of_rate(kind: str | None, rate: float | None) -> OutcomeKind:
    """Return the *kind* of outcome; a *rate* alone says that it is yes or no."""
    if kind is not None:
        return OutcomeKind(kind)
    if rate is not None:
        return OutcomeKind.BINARY
    return _USUAL


def _check_outcome(given: Mapping[str, Any]) -> None:
    """Raise UsageError for a share that is none."""
    for name in ("rate", "pass_in"):
        value = given[name]
        if value is not None and not 0 < value < 1:
            option = name.replace("_", "-")
            raise UsageError(f"--{option}={value!r}: a share between 0 and 1")
    if not 0 <= given["icc"] < 1:
        raise UsageError(f"--icc={given['icc']!r}: a share of variance, from 0 to below 1")


def _wanted(design: LookedDesign, share: float) -> str:
    """Return what the looks at *design* are to do."""
    from pytest_fairness.words import percent

    system = "a fair system"
    if design.kind is OutcomeKind.BINARY:
        system = f"a fair system that approves {percent(design.rate, 0)}"
    elif design.kind is OutcomeKind.REFUSAL:
        system = f"a fair system that refuses {percent(design.rate, 0)}"
    return f"to pass {system} in {10 * share:g} of 10 runs"


# ---------------------------------------------------------------- a suite


def _suite(arguments: argparse.Namespace) -> tuple[str, int]:
    """Collect the suite in a process of its own, which prices it. Raises UsageError where pytest
    cannot collect it.
    """
    given = vars(arguments).copy()
    for name in ("run", "suite", "command"):
        given.pop(name, None)
    _check_outcome(given)
    for name in ("latency", "reply_tokens", "concurrency"):
        if given[name] is not None and not given[name] > 0:
            raise UsageError(f"--{name.replace('_', '-')}={given[name]!r}: must be above 0")
    chosen = []
    if arguments.endpoint is not None:
        chosen = [f"--fairness-endpoint={arguments.endpoint}"]
    collect = ["--collect-only", "-qq", "-p", __name__]
    command = [sys.executable, "-m", "pytest", *arguments.suite, *chosen, *collect]
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
        parts = [done.stdout[-3000:].strip(), done.stderr[-1000:].strip()]
        output = "\n".join(filter(None, parts))
        raise UsageError(
            f"the suite could not be collected (pytest's exit status {done.returncode}):\n{output}"
        )
    return result["text"], result["code"]


def pytest_collection() -> None:
    """Look for no garbage: what is collected stays to the end, which is near."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Price what was collected, if nothing failed: this module is the plugin of the process that
    collects.
    """
    given = os.environ.get(_VARIABLE)
    if given is None or hasattr(session.config, "workerinput") or session.testsfailed:
        return
    assumed = json.loads(given)
    path = Path(assumed.pop("file"))
    try:
        suite = _suite_of(session, assumed)
        result = {"text": _table(suite), "code": 0}
        if assumed["json"]:
            result["text"] = json.dumps(suite, indent=2) + "\n"
        if suite["problems"]:
            result["code"] = 1
    except UsageError as error:
        result = {"error": str(error)}
    path.write_text(json.dumps(result), encoding="utf-8", newline="\n")
    gc.freeze()  # pytest looks for garbage as it ends, five times


def _suite_of(session: pytest.Session, assumed: dict[str, Any]) -> dict[str, Any]:
    """Return the suite that *session* collected, priced. Raises UsageError where there is none."""
    from pytest_fairness.pytest_layer.current_session import session_if_any

    fairness = session_if_any(session.config)
    if fairness is not None:
        suite = _priced_suite(fairness, session.items, assumed)
        if suite["tests"]:
            return suite
    raise UsageError(
        f"no test with a grid among {len(session.items)} collected items: nothing to price "
        "(a fairness test has @pytest.mark.fairness_grid or fairness_pairs)"
    )


class _Endpoints:
    """The endpoints that a suite asks, by name, and why a price is missing."""

    def __init__(self, fairness: FairnessSession) -> None:
        self.names = fairness.settings.endpoints
        self.by_name: dict[str, Endpoint] = {}
        self.problems: list[str] = []
        self.unpriced: list[str] = []
        for name in self.names:
            why = "it is not in the price table; give price: in endpoints.yaml"
            try:
                self.by_name[name] = fairness.systems.configured(name)
            except FairnessError as error:
                why = str(error)
                self.problems.append(why)
            if name not in self.by_name or self.by_name[name].price is None:
                self.unpriced.append(f"the price of endpoint {name!r} is unknown: {why}")

    @property
    def simulated(self) -> bool:
        """Return whether all are known, and none costs anything."""
        if len(self.by_name) < len(self.names):
            return False
        return all(endpoint.simulated for endpoint in self.by_name.values())

    def behind(self, row: TestEstimate, *, named: bool) -> Endpoint | None:
        """Return the endpoint whose price holds for the test of *row*: for one with a system of its
        own, only where a single one is *named* for all.
        """
        if row.brought[0].requests and not named:
            return None
        return self.by_name.get(row.endpoint)


class _Reader:
    """The model that reads replies in a suite, if the project names one."""

    def __init__(self, fairness: FairnessSession) -> None:
        from pytest_fairness.pytest_layer.reading_turns import SELF

        self.name = fairness.settings.reader or None
        self._is_asked_itself = self.name == SELF
        self._endpoint: Endpoint | None = None
        if self.name is not None and not self._is_asked_itself:
            self._endpoint = fairness.systems.resolve(self.name)

    def priced(self, row: TestEstimate, asked: Endpoint | None) -> dict[str, Any]:
        """Return the reading turns that are to be expected of the test of *row*, which is *asked*
        of that endpoint, and at most, with their cost; None where that is unknown.
        """
        if self.name is None:
            return {
                "readings": 0,
                "most_readings": 0,
                "reading_cost": 0.0,
                "most_reading_cost": 0.0,
            }
        reader = self._endpoint
        if self._is_asked_itself:
            reader = asked
        usual, _, most = row.readings
        costs: list[float | None] = [None, None]
        if reader is not None and reader.price is not None:
            costs = [row.reading_cost(reader.price, number) for number in (usual, most)]
        return {
            "readings": round(usual),
            "most_readings": round(most),
            "reading_cost": costs[0],
            "most_reading_cost": costs[1],
        }


def _priced_suite(
    fairness: FairnessSession, items: list[pytest.Item], assumed: dict[str, Any]
) -> dict[str, Any]:
    """Return what the suite asks, costs and can find out. An endpoint that is *assumed*, one alone,
    is named for all tests, so that its price also holds for tests that bring a system of their own.
    """
    from pytest_fairness.pytest_layer.estimate import AssumedOutcome, chance_of_red, estimates

    settings = fairness.settings
    endpoints = _Endpoints(fairness)
    rows = list(
        estimates(
            fairness.context,
            items,
            fairness.grids,
            endpoints.by_name,
            asking=fairness.asking,
            reply_tokens=assumed["reply_tokens"],
            outcome=AssumedOutcome(
                kind=assumed["kind"],
                rate=assumed["rate"] or AssumedOutcome().rate,
                icc=assumed["icc"],
            ),
        )
    )
    named = assumed["endpoint"] is not None and len(endpoints.names) == 1
    reader = _Reader(fairness)
    unpriced = list(endpoints.unpriced)
    if not named and any(row.brought[0].requests for row in rows):
        unpriced.append(_unknown_systems(len(endpoints.names)))
    assumed["concurrency"] = assumed["concurrency"] or settings.concurrency
    functions = {row.test.partition("[")[0] for row in rows}
    each = assumed["verbose"] or assumed["json"]
    assumed["folded"] = len(functions) < len(rows) and not each
    tests = []
    for row in rows:
        endpoint = endpoints.behind(row, named=named)
        tests.append(_priced(row, endpoint, assumed) | reader.priced(row, endpoint))
    problems = [*endpoints.problems, *filter(None, map(_problem, tests))]
    return {
        "endpoint": settings.endpoint,
        "simulated": endpoints.simulated,
        "false_alarm": chance_of_red(settings, items, fairness.grids),
        "max_cost": settings.max_cost,
        "reader": reader.name,
        "tests": tests,
        "unpriced": "; ".join(unpriced),
        "problems": list(dict.fromkeys(problems)),
        "assumed": assumed,
    }


def _unknown_systems(endpoints: int) -> str:
    """Return why tests with a system of their own have no price, where so many are named."""
    words = (
        "tests that bring a system of their own have no known price: name the endpoint behind it "
        "with --endpoint"
    )
    if endpoints > 1:
        return f"{words}, by itself"
    return words


def _problem(test: dict[str, Any]) -> str | None:
    """Return why *test* can never conclude; None where a class of it can. Which of its protected
    classes a test judges, only it knows.
    """
    classes = test["classes"]
    if not classes:
        return None
    if any(assessed["can_pass"] and assessed["can_fail"] for assessed in classes.values()):
        return None
    reasons = ", ".join(f"{name}: {assessed['why']}" for name, assessed in classes.items())
    return f"{test['test']}: no protected class can ever both PASS and FAIL ({reasons})"


def _priced(
    row: TestEstimate, endpoint: Endpoint | None, assumed: dict[str, Any]
) -> dict[str, Any]:
    """One test. ``requests``, tokens, ``cost`` and ``seconds`` are to be expected, ``most_…`` is
    the most; the cost is None where the price is unknown. ``classes`` says what each protected
    class can find out.
    """
    from pytest_fairness.pytest_layer.estimate import shapes

    requests = row.requests(replaced=True)
    few = requests.fair
    reply = row.reply_tokens
    costs: dict[str, float | None] = dict.fromkeys(_COSTS)
    form_cost: float | None = None
    if endpoint is not None and endpoint.price is not None:
        usual = (requests.fair, requests.biased, requests.all_looks)
        amounts = [part.usual_cost(endpoint.price, reply) for part in usual]
        amounts.append(requests.most.most_cost(endpoint.price, row.longest_reply))
        costs = dict(zip(_COSTS, amounts, strict=True))
        form_cost = few.form_tokens * endpoint.price.input_per_million / 1_000_000
    name: str | None = row.endpoint
    if row.brought.most.requests:
        name = None
    classes = {}
    for protected, shape in shapes(row.planned.grid, swapped=False).items():
        if shape.groups > 1:
            classes[protected] = _assessed(row, shape, assumed)
    return {
        "test": row.test,
        "tier": row.tier,
        "temperature": row.temperature,
        "items": row.items,
        "cells": row.cells,
        "trials": row.trials,
        "shared": row.shared,
        "endpoint": name,
        "reply_tokens": reply,
        "looks": list(row.asked.looks),
        "fair_trials": round(row.new.fair),
        "biased_trials": round(row.new.biased),
        "most_trials": round(row.new.most),
        "requests": round(few.requests),
        "most_requests": round(requests.most.requests),
        "input_tokens": few.input_tokens(reply),
        "elicitation": row.elicitation.value,
        "form_tokens": few.form_tokens,
        "form_cost": form_cost,
        "output_tokens": round(few.requests * reply),
        **costs,
        "to_pass": _to_pass(row, assumed, costs["cost_of_all_looks"]),
        "seconds": few.requests / assumed["concurrency"] * assumed["latency"],
        "choices": row.planned.tiers_by_arm,
        "classes": classes,
    }


def _to_pass(
    row: TestEstimate, assumed: dict[str, Any], cost: float | None
) -> list[dict[str, Any]]:
    """Return the looks of each class of a test that pass a fair system as often as is wanted;
    *cost* is that of all looks that the test has.
    """
    from pytest_fairness.analysis.looks import MOST_RED
    from pytest_fairness.pytest_layer.estimate import AssumedOutcome, looked_designs

    stages = row.planned.grid.stages
    share = assumed["pass_in"]
    if share is None or stages is None:
        return []
    kinds = row.kinds or (_kind_of_rate(None, assumed["rate"]),)
    if assumed["kind"]:
        kinds = (assumed["kind"],)
    outcome = AssumedOutcome(rate=assumed["rate"] or AssumedOutcome().rate, icc=assumed["icc"])
    longest: dict[str, Expectation | None] = {}
    for kind in map(OutcomeKind, kinds):
        for design in looked_designs(row.planned, stages, kind, MOST_RED, outcome):
            expected = looks_to_pass(design, share)
            wanted = _wanted(design, share)
            longest[wanted] = _longer(expected, longest.get(wanted, expected))
    answers: list[dict[str, Any]] = []
    for wanted, expected in longest.items():
        answer: dict[str, Any] = {"wanted": wanted, "names": None, "trials": None, "cost": None}
        if expected is not None:
            share_of_all = expected.fair / row.asked.most
            answer |= {"names": expected.most, "trials": round(row.trials * share_of_all)}
            if cost:
                answer["cost"] = cost * share_of_all
        answers.append(answer)
    return answers


def _longer(first: Expectation | None, second: Expectation | None) -> Expectation | None:
    """Return the looks that reach further: none do where one class has none."""
    if first is None or second is None:
        return None
    return max(first, second, key=lambda expected: expected.most)


def _assessed(row: TestEstimate, shape: Shape, assumed: dict[str, Any]) -> dict[str, Any]:
    """Return what the class of that *shape* can find out: of several kinds of outcome, by the one
    that it does worst with.
    """
    from pytest_fairness.pytest_layer.estimate import power_of

    statistics = {name: assumed[name] for name in _STATISTICS}
    if statistics["alpha"] is None:
        statistics["alpha"] = row.alpha
    kinds: Sequence[str] = row.kinds or (_USUAL,)
    if assumed["kind"]:
        kinds = (assumed["kind"],)
    designs = {}
    for kind in kinds:
        given = {**statistics, "kind": str(kind)}
        for name, kinds_with_it in _OF_KINDS.items():
            if assumed["kind"] is None and kind not in kinds_with_it:
                given[name] = None
        # Folded, one test among many is not worth the full precision.
        designs[str(kind)] = power_of(
            row.planned.grid, shape, row.temperature, rough=assumed["folded"], **given
        )

    def least(kind: str) -> float:
        return min(designs[kind].power, designs[kind].pass_probability)

    worst = min(designs, key=least)
    return {
        "kind": worst,
        "groups": shape.groups,
        "names": shape.names,
        **asdict(designs[worst]),
    }


# ---------------------------------------------------------------- as text


def _table(suite: dict[str, Any]) -> str:
    """The suite as text: what it comes to, then its tests, folded or each by itself, then what was
    assumed.
    """
    from pytest_fairness.reports.escaping import line, wrapped

    verbose = suite["assumed"].get("verbose", False)
    columns = list(_HEADING)
    if verbose:
        tests = {name: [test] for name, test in _named(suite["tests"])}
    else:
        tests = _folded(suite["tests"])
        columns.remove("at most")
    lines = [_title(suite), *_bill(suite), ""]
    heading, *rows = _aligned([columns, *(_cells(each, columns) for each in tests.values())])
    lines.append(heading)
    for (name, members), row in zip(tests.items(), rows, strict=True):
        facts = [*_looks_in_words(members), *_findable(members)]
        lines += [line(name), row, *_with_shared(facts, members)]
    problems = [f"PROBLEM {line(problem)}" for problem in suite["problems"]]
    if not verbose and len(problems) > _SHOWN:
        problems[_SHOWN:] = [
            f"PROBLEM … and {len(problems) - _SHOWN} more of the kind (-v shows them)"
        ]
    lines.append("")
    for paragraph in (*_assumptions(suite), *problems):
        lines += wrapped(paragraph, _WIDTH)
    return "\n".join([*lines, ""])


def _title(suite: dict[str, Any]) -> str:
    """Return which endpoints the suite is priced for."""
    from pytest_fairness.reports.escaping import line

    noun = "endpoint"
    if "," in suite["endpoint"]:
        noun = "endpoints"
    title = f"{noun} {line(suite['endpoint'].replace(',', ', '))}"
    if suite["simulated"]:
        return f"{title} (simulated: costs nothing)"
    return title


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return each of *rows* as a line, its cells under each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  " + "  ".join(cells))
    return lines


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
    from pytest_fairness.pytest_layer.estimate import duration
    from pytest_fairness.words import dollars

    tests = suite["tests"]
    cells = dict(zip(_HEADING, _cells(tests, _HEADING), strict=True))
    items = count(_sum(tests, "items"), "test")
    trials = f"{items}, {_asked_in_words(tests)}"
    tokens = f"{cells['tokens in']} tokens in, {cells['tokens out']} out"
    time = f"about {duration(_sum(tests, 'seconds'))}"
    lines = [f"  {trials}", f"  {cells['requests']} requests, {tokens}, {time}"]
    if asking := _sum(tests, "form_tokens"):
        lines.append(f"  {asking:,} of the tokens in ask for an answer by form or by line")
    lines += _readings_in_words(suite)
    if suite["simulated"]:
        return lines
    cost = cells["cost"]
    if cost != "unknown":
        cost = f"about {cost}"
    if suite["assumed"].get("verbose"):
        cost += f", at most {cells['at most']}"
    if suite["max_cost"] is not None:
        cost += f" (cap {dollars(suite['max_cost'])})"
    return [*lines, f"  cost {cost}", *_costs_by_endpoint(tests)]


def _readings_in_words(suite: dict[str, Any]) -> Iterator[str]:
    """Yield what it takes to have a model read the replies of the suite, where the project names
    one: of a fair system those that are asked for neither by form nor by line, and at most all.
    """
    from pytest_fairness.reports.escaping import line
    from pytest_fairness.words import dollars

    if suite["reader"] is None:
        return
    parts = []
    for readings, cost in (("readings", "reading_cost"), ("most_readings", "most_reading_cost")):
        price = ""
        if all(test[cost] is not None for test in suite["tests"]):
            price = f" ({dollars(_sum(suite['tests'], cost))})"
        parts.append(f"{_sum(suite['tests'], readings):,}{price}")
    yield (
        f"  {line(suite['reader'])} reads: {parts[0]} requests if rules leave every reply of a fair "
        f"system that is asked in prose, at most {parts[1]}"
    )


def _asked_in_words(tests: Sequence[dict[str, Any]]) -> str:
    """Return the trials of *tests* that no test before asks: where their looks may stop early, of a
    fair system, of one that is not, and at most, with what each costs.
    """
    from pytest_fairness.words import dollars

    parts = ("fair", "biased", "most")
    fair, biased, most = (_sum(tests, f"{part}_trials") for part in parts)
    if fair >= most:
        return f"{_sum(tests, 'trials'):,} trials"
    costs = [""] * len(parts)
    if all(test["cost"] is not None for test in tests) and _sum(tests, "cost_of_all_looks"):
        costs = [f" ({dollars(_sum(tests, name))})" for name in _COSTS[: len(parts)]]
    return (
        f"expected {fair:,} trials{costs[0]} if fair, {biased:,}{costs[1]} for d = 0.5, at most "
        f"{most:,}{costs[2]}"
    )


def _looks_in_words(tests: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line on the looks of *tests*, and one for each answer to what passes; none where
    they are looked at once.
    """

    lines = []
    looks = {tuple(test["looks"]) for test in tests if test["looks"]}
    if any(len(planned) > 1 for planned in looks):
        longest = max(looks, key=lambda planned: planned[-1])
        names = f"looks at {enumerated(list(map(str, longest)), most=99)} names a group"
        if len(looks) > 1:
            names = f"looks to {longest[-1]} names a group at most"
        lines.append(f"    {names}; {_asked_in_words(tests)}")
    answers: dict[str, list[dict[str, Any]]] = {}
    for test in tests:
        for answer in test["to_pass"]:
            answers.setdefault(answer["wanted"], []).append(answer)
    for wanted, members in answers.items():
        lines.append(f"    {wanted}: {_answer_in_words(members)}")
    return lines


def _with_shared(facts: Sequence[str], tests: Sequence[dict[str, Any]]) -> list[str]:
    """Return the lines of *facts* about *tests*; the first also says how many of their trials
    others ask.
    """
    shared = _sum(tests, "shared")
    if not shared:
        return [*facts]
    words = f"{shared:,} of its trials are asked by tests above, and not priced again"
    if not facts:
        return [f"    {words}"]
    return [f"{facts[0]}; {words}", *facts[1:]]


def _answer_in_words(members: Sequence[dict[str, Any]]) -> str:
    """Return the looks that do what is wanted of several tests, and what they cost together."""
    from pytest_fairness.words import dollars

    if any(answer["names"] is None for answer in members):
        return "no looks do"
    price = f"about {_sum(members, 'trials'):,} trials"
    if all(answer["cost"] is not None for answer in members):
        price = f"about {dollars(_sum(members, 'cost'))}"
    most = max(answer["names"] for answer in members)
    return f"looks to {most} names, {price}"


def _costs_by_endpoint(tests: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each of several endpoints; none where there is one."""
    from pytest_fairness.reports.escaping import line

    by_endpoint: dict[str | None, list[dict[str, Any]]] = {}
    for test in tests:
        by_endpoint.setdefault(test["endpoint"], []).append(test)
    if len(by_endpoint) < 2:
        return []
    lines = []
    for name, members in by_endpoint.items():
        whose = "the tests' own systems"
        if name is not None:
            whose = line(name)
        (cost,) = _cells(members, ("cost",))
        lines.append(f"    {whose}: {cost}")
    return lines


def _sum(tests: Sequence[dict[str, Any]], name: str) -> Any:
    """Return the sum of the numbers *name* of *tests*."""
    return sum(test[name] for test in tests)


def _cells(tests: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[str]:
    """The *columns* of some tests together."""
    from pytest_fairness.pytest_layer.estimate import duration
    from pytest_fairness.words import dollars

    requests = _sum(tests, "requests")
    most = _sum(tests, "most_requests")
    asked = f"{requests:,}"
    if requests != most:
        asked += f"–{most:,}"

    def in_dollars(name: str) -> str:
        if any(test[name] is None for test in tests):
            return "unknown"
        return dollars(_sum(tests, name))

    cells = {
        "items": f"{_sum(tests, 'items'):,}",
        "cells": f"{_sum(tests, 'cells'):,}",
        "trials": f"{_sum(tests, 'trials'):,}",
        "requests": asked,
        "tokens in": f"{_sum(tests, 'input_tokens'):,}",
        "tokens out": f"{_sum(tests, 'output_tokens'):,}",
        "cost": in_dollars("cost"),
        "at most": in_dollars("most_cost"),
        "time": duration(_sum(tests, "seconds")),
    }
    return [cells[column] for column in columns]


def _findable(tests: Sequence[dict[str, Any]]) -> list[str]:
    """Return what the classes of *tests* can find out: of one test in full, of several from the
    worst to the best.
    """
    designs = []
    for test in tests:
        designs += test["classes"].items()
    lines = []
    if len(tests) == 1:
        for name, design in designs:
            first, *more = _reach(name, design)
            lines += [f"    {first}", *(f"      {further}" for further in more)]
    elif designs:
        lines.append(f"    {_span(designs)}")
    if any(test["choices"] for test in tests):
        lines.append(
            "    choices between candidates: the number of repetitions decides what they find"
        )
    return lines


def _span(designs: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Return what several designs find and pass, in one line."""
    from pytest_fairness.reports.escaping import line

    assessed = [design for _, design in designs]
    kinds = " or ".join(dict.fromkeys(design["kind"] for design in assessed))
    classes = list(dict.fromkeys(name for name, _ in designs))
    by = f"{len(classes)} classes"
    if len(classes) == 1:
        by = line(classes[0])
    power = _range([design["power"] for design in assessed])
    passed = _range([design["pass_probability"] for design in assessed])
    span = (
        f"{kinds} outcome by {by}, finds d = {assessed[0]['effect']:g} in {power} of pairs, passes "
        f"{passed} of equal pairs"
    )
    conclusive = [design for design in assessed if design["can_pass"] and design["can_fail"]]
    never = len(assessed) - len(conclusive)
    if never:
        span += (
            f"; {never} of {len(assessed)} comparisons can never PASS or never FAIL (-v says which)"
        )
    return span


def _range(shares: Sequence[float]) -> str:
    """Return the lowest and the highest of *shares*, in percent."""
    from pytest_fairness.words import percent

    low = percent(min(shares), 0)
    high = percent(max(shares), 0)
    if low == high:
        return low
    return f"{low.removesuffix(' %')} to {high}"


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
    lengths = " or ".join(map(str, sorted({test["reply_tokens"] for test in tests})))
    kind = assumed["kind"]
    if not kind:
        kinds: dict[str, None] = {}
        for test in tests:
            kinds |= dict.fromkeys(design["kind"] for design in test["classes"].values())
        kind = " or ".join(kinds) or _USUAL
    lines = [
        f"Chance of a false red at most {rounded_percent(suite['false_alarm'])}.",
        f"Assumed: replies of {lengths} tokens, as the scorers ask for; {assumed['latency']:g} s a "
        f"request, {assumed['concurrency']} in flight; {kind} outcome (numeric where a test names "
        f"no scorer), ICC {assumed['icc']:g}, each class a family by itself. Tokens are "
        "estimated from the length of the texts.",
    ]
    if assumed.get("verbose"):
        lines.append(
            "At most: every look of every test, replies as long as they may get, every "
            "strategy tried, a token a byte."
        )
    if suite["unpriced"]:
        lines.append(f"Cost unknown: {line(suite['unpriced'])}.")
    return lines
