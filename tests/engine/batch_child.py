"""A process that asks in batches, for the tests that stop, kill and race processes.

    python -m tests.engine.batch_child ROOT --url URL [--count N] [--writer W] [--die POINT] …

It prints ``waiting`` when it first looks at a batch, and at the end the statuses of its trials as JSON. ``--die`` names
the point at which it kills itself, at the *--at*-th occasion: ``after-intent``, ``before-upload``, ``after-upload``,
``before-submitted`` (the provider has made the batch, and its name is not logged), ``after-submitted``, ``polling``,
``before-append``, ``mid-append``, ``after-append`` (of an attempt's record), ``after-trial``, ``before-collected``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from pytest_fairness.endpoints import Price, create_endpoint
from pytest_fairness.endpoints.batch_api import BatchApi
from pytest_fairness.endpoints.config import BatchOptions
from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.engine.engine import Engine
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.store import open_run
from tests.support.doubles import cell, plan
from tests.support.killing import Suicide, ask_and_print


def install(suicide: Suicide) -> None:
    """Put the points of batches where they are passed, beside those of the store."""
    suicide.install()
    upload = BatchApi.upload
    waiting = False

    async def dying_upload(self: BatchApi, *arguments: Any) -> str:
        suicide.here("before-upload")
        name = await upload(self, *arguments)
        suicide.here("after-upload")
        return name

    def looking(api: Any) -> Any:
        state = api.state

        async def dying_state(self: Any, batch: str) -> Any:
            nonlocal waiting
            if not waiting:
                print("waiting", flush=True)  # noqa: T201
                waiting = True
            suicide.here("polling")
            return await state(self, batch)

        return dying_state

    BatchApi.upload = dying_upload  # type: ignore[method-assign]
    BatchApi.state = looking(BatchApi)  # type: ignore[method-assign]


def endpoint_at(url: str, kind: str) -> Endpoint:
    """A model that is asked in OpenAI's batches, or in Anthropic's."""
    return create_endpoint(
        {
            "name": "model",
            "type": kind,
            "model": "m",
            "base_url": url if kind == "anthropic" else f"{url}/v1",
            "price": Price(input_per_million=1.0, output_per_million=10.0),
            "default_parameters": {"max_tokens": 300},
            "batch": BatchOptions(poll_seconds=0.05),
        }
    )


def planned_of(count: int, *, turns: int) -> list[PlannedTrial]:
    """The trials that a child asks."""
    more = tuple(f"turn {number}" for number in range(1, turns))
    return [PlannedTrial(cell=cell(number, turns=(one.cell.prompt, *more))) for number, one in enumerate(plan(count))]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--url", required=True)
    parser.add_argument("--kind", default="openai")
    parser.add_argument("--token", default="token")
    parser.add_argument("--writer")
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--grace", type=float, default=5.0)
    parser.add_argument("--die", default="")
    parser.add_argument("--at", type=int, default=1)
    options = parser.parse_args()
    install(Suicide(options.die, options.at))
    with (
        open_run(options.root, options.token, writer=options.writer) as store,
        Engine(endpoint_at(options.url, options.kind), store, attempt_timeout=20.0, grace=options.grace) as engine,
    ):
        return ask_and_print(engine, planned_of(options.count, turns=options.turns))


if __name__ == "__main__":
    sys.exit(main())
