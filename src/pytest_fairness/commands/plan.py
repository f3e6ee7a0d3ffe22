"""``pytest-fairness plan``: how large a sample an effect takes, or what a suite costs before anything is paid for."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from pytest_fairness.commands import CommandResult

_KINDS = ("numeric", "ordinal", "narrative", "binary", "categorical", "refusal")
_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--kind", {"choices": _KINDS, "default": "numeric", "help": "the kind of outcome (numeric)"}),
    ("--groups", {"type": int, "default": 2, "metavar": "N", "help": "groups compared (2)"}),
    ("--effect", {"type": float, "default": 0.5, "metavar": "D", "help": "d that must not be missed (0.5)"}),
    ("--power", {"type": float, "default": 0.8, "metavar": "P", "help": "how often it is found (0.8)"}),
    ("--icc", {"type": float, "default": 0.04, "help": "share of the variance between names (0.04)"}),
    ("--alpha", {"type": float, "default": 0.05, "help": "level of the family of tests (0.05)"}),
    (
        "--correction",
        {
            "choices": ("bonferroni", "holm", "fdr_bh"),
            "default": "bonferroni",
            "help": "planned for Bonferroni, whatever is chosen: the others never need more",
        },
    ),
    ("--rate", {"type": float, "help": "expected rate of favourable answers, or of refusals (0.5)"}),
    ("--levels", {"type": int, "metavar": "N", "help": "levels of a rating (5), or so many labels (3)"}),
    ("--names", {"type": int, "metavar": "N", "help": "names a group, if they are given"}),
    ("--templates", {"type": int, "default": 5, "metavar": "N", "help": "templates (5)"}),
    ("--repetitions", {"type": int, "default": 2, "metavar": "N", "help": "repetitions (2)"}),
    ("--endpoint", {"metavar": "NAME", "help": "price the suite for this endpoint of endpoints.yaml"}),
    ("--concurrency", {"type": int, "metavar": "N", "help": "requests in flight (the suite's own setting)"}),
    ("--latency", {"type": float, "default": 2.0, "metavar": "S", "help": "seconds a request takes (2)"}),
    (
        "--reply-tokens",
        {"type": int, "metavar": "N", "help": "tokens of a usual reply (what the scorer of each test asks for)"},
    ),
    ("--json", {"action": "store_true", "help": "give it as JSON"}),
    (
        "--suite",
        {
            "nargs": argparse.REMAINDER,
            "metavar": "PYTEST_ARGUMENT",
            "help": "price the suite that pytest would run with these arguments; comes last",
        },
    ),
)


def add(subparsers: Any) -> None:
    """Declare ``plan``."""
    parser = subparsers.add_parser(
        "plan",
        help="the sample that an effect takes; the price of a suite before it runs",
        description=(
            "Plan a sample (names, templates, repetitions, calls) for an effect that must not be missed; or, with "
            "--suite, collect a suite and say what it would ask, what that costs with second samples, what its "
            "designs can find out, what it takes where they cannot, and how likely a fair system turns the suite red. "
            "Nothing is asked of any endpoint. Exit code 1: a test of the suite has a design that can never conclude."
        ),
    )
    for name, declared in _OPTIONS:
        parser.add_argument(name, **declared)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> CommandResult:
    """Plan a sample, or price a suite. Raises UsageError for what cannot be planned or collected."""
    return _sample(arguments) if arguments.suite is None else _suite(arguments)


def _given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in names}


def _sample(arguments: argparse.Namespace) -> CommandResult:
    from pytest_fairness.analysis.planning import plan_sample
    from pytest_fairness.analysis.sentences import percent
    from pytest_fairness.model import to_json

    design = _given(arguments, "groups", "effect", "power", "icc", "alpha", "names", "templates", "repetitions")
    plan = plan_sample(arguments.kind, **design, **_given(arguments, "rate", "levels"))
    notes = list(plan.notes)
    if arguments.correction != "bonferroni":
        notes.append(f"planned for Bonferroni; {arguments.correction} never needs more")
    if arguments.json:
        return CommandResult(json.dumps(to_json({**asdict(plan), "notes": notes}), indent=2) + "\n")
    rows = {
        "names a group": plan.names,
        "templates": plan.templates,
        "repetitions": plan.repetitions,
        "calls": f"{plan.calls:,} ({plan.calls_per_group:,} a group)",
        "finds": f"d = {plan.effect:g} in {percent(plan.power)} of pairs that differ so (FLAG or FAIL)",
        "passes": f"{percent(plan.pass_probability)} of pairs without a difference",
        "assumes": f"{plan.outcome}, {plan.groups} groups, ICC {plan.icc:g}, {plan.family} tests at {plan.alpha:g}",
    }
    lines = [f"{name:<14} {value}" for name, value in rows.items()]
    return CommandResult("\n".join([*lines, *(f"note: {note}" for note in notes), ""]))


def _suite(arguments: argparse.Namespace) -> CommandResult:
    from pytest_fairness.commands.suite_price import Assumptions, collect, price_suite, suite_table
    from pytest_fairness.errors import UsageError
    from pytest_fairness.model import to_json

    for name, value in _given(arguments, "latency", "reply_tokens", "concurrency").items():
        if value is not None and not value > 0:
            raise UsageError(f"--{name.replace('_', '-')}={value!r}: must be above 0")
    statistics = _given(arguments, "kind", "effect", "icc", "alpha", "rate", "levels")
    assumed = Assumptions(**_given(arguments, "reply_tokens", "latency", "concurrency"), **statistics)
    facts = collect(arguments.suite, arguments.endpoint)
    suite = price_suite(facts, assumed, asked_for=arguments.endpoint is not None)
    code = 1 if suite.problems else 0
    if arguments.json:
        whole = {**asdict(suite), "assumed": asdict(assumed), "problems": suite.problems}
        return CommandResult(json.dumps(to_json(whole), indent=2) + "\n", code)
    return CommandResult(suite_table(suite, assumed), code)
