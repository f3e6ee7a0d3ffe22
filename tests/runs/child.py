"""A process that asks, for the tests that stop, kill and race processes.

    python -m tests.runs.child ROOT --ledger FILE [--count N] [--writer W] [--delay S] [--die POINT] …

It prints ``asking`` before the first request, and at the end the statuses of its trials as JSON. ``--die``
names the point at which it kills itself: ``before-send``, ``after-send``, ``before-append``, ``mid-append``,
``after-append``, each at the *--at*-th occasion.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pytest_fairness.endpoints.protocol import Price, Reply, Request
from pytest_fairness.engine.engine import Engine
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.store import open_run
from tests.support.doubles import Scripted, cell, plan, polite
from tests.support.killing import Suicide, ask_and_print


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--token", default="token")
    parser.add_argument("--writer")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--grace", type=float, default=5.0)
    parser.add_argument("--max-cost", type=float)
    parser.add_argument("--die", default="")
    parser.add_argument("--at", type=int, default=1)
    options = parser.parse_args()
    suicide = Suicide(options.die, options.at)
    suicide.install()
    first = True

    def answer(request: Request) -> Reply:
        nonlocal first
        suicide.here("after-send")
        if first:
            print("asking", flush=True)  # noqa: T201
            first = False
        return polite(request)

    turns = tuple(f"turn {number}" for number in range(1, options.turns))
    planned = [
        PlannedTrial(cell=cell(number, turns=(one.cell.prompt, *turns)))
        for number, one in enumerate(plan(options.count))
    ]
    price = Price(input_per_million=1.0, output_per_million=10.0)
    endpoint = Scripted(answer, delay=options.delay, ledger=options.ledger, price=price, max_tokens=20)
    with (
        open_run(options.root, options.token, writer=options.writer) as store,
        Engine(
            endpoint,
            store,
            concurrency=options.concurrency,
            grace=options.grace,
            max_cost=options.max_cost,
        ) as engine,
    ):
        return ask_and_print(engine, planned)


if __name__ == "__main__":
    sys.exit(main())
