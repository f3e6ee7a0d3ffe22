"""A process that asks, for the tests that stop, kill and race processes: ``python -m
tests.runs.child OPTIONS``.

The options are JSON. It prints ``asking`` before the first request, and at the end the statuses of
its trials as JSON. ``die`` names the point at which it kills itself: ``before-send``,
``after-send``, ``before-append``, ``mid-append``, ``after-append``, each at the *at*-th occasion.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

from pytest_fairness.endpoints.protocol import Price, Reply, Request
from pytest_fairness.engine.engine import Engine
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.store import open_store
from tests.support.doubles import Scripted, cell, plan, polite
from tests.support.killing import Suicide, ask_and_print

DEFAULTS = {"writer": None, "count": 20, "turns": 1, "delay": 0.0, "die": "", "at": 1}


def main() -> int:
    given = {**DEFAULTS, **json.loads(sys.argv[1])}
    options = SimpleNamespace(**{name: given.pop(name) for name in (*DEFAULTS, "root", "ledger")})
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
    endpoint = Scripted(
        answer, delay=options.delay, ledger=Path(options.ledger), price=price, max_tokens=20
    )
    store = open_store(Path(options.root), "token", writer=options.writer)
    with store, Engine(endpoint, store, **{"concurrency": 4, **given}) as engine:
        return ask_and_print(engine, planned)


if __name__ == "__main__":
    sys.exit(main())
