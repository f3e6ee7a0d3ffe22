"""A process that asks, for the tests that stop, kill and race processes.

    python -m …running.child ROOT --ledger FILE [--count N] [--writer W] [--delay S] [--die POINT] …

It prints ``asking`` before the first request, and at the end the statuses of its trials as JSON. ``--die``
names the point at which it kills itself: ``before-send``, ``after-send``, ``before-append``, ``mid-append``,
``after-append``, each at the *--at*-th occasion.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from pytest_fairness.endpoints.protocol import Price, Reply, Request
from pytest_fairness.engine.engine import Engine
from pytest_fairness.errors import FairnessError
from pytest_fairness.runs import files
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.store import RunStore, open_run
from tests.support.doubles import Scripted, cell, plan, polite


class Suicide:
    """Kills this process, as the system would, at the *at*-th passing of *point*."""

    def __init__(self, point: str, at: int) -> None:
        self._point, self._left = point, at

    def passing(self, point: str) -> bool:
        if point == self._point:
            self._left -= 1
        return self._left == 0 and point == self._point

    def here(self, point: str) -> None:
        if self.passing(point):
            os.kill(os.getpid(), signal.SIGKILL)


def install(suicide: Suicide) -> None:
    """Put the points into the store's appending: before, in the middle of, and after writing an attempt."""
    append, write_all = RunStore.append, files.write_all

    def dying_write(descriptor: int, data: bytes, path: Path) -> None:
        if data.startswith(b'{"type":"attempt"') and suicide.passing("mid-append"):
            os.write(descriptor, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        write_all(descriptor, data, path)

    def dying_append(self: RunStore, record: dict[str, Any]) -> None:
        if record["type"] == "sent":
            suicide.here("before-intent")
        if record["type"] == "attempt":
            suicide.here("before-append")
        append(self, record)
        if record["type"] == "sent":
            suicide.here("before-send")
        if record["type"] == "attempt":
            suicide.here("after-append")
        if record["type"] == "trial":
            suicide.here("after-trial")

    files.write_all = dying_write
    RunStore.append = dying_append  # type: ignore[method-assign]


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
    install(suicide)
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
        try:
            trials = engine.run(planned)
        except FairnessError as error:
            print(type(error).__name__, error, flush=True)  # noqa: T201
            return 1
    print(json.dumps(Counter(trial.status for trial in trials)), flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
