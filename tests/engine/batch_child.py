"""A process that asks in batches, for the tests that stop, kill and race processes: its options are
JSON.

It prints ``waiting`` when it first looks at a batch, and at the end the statuses of its trials as
JSON. ``die`` names the point at which it kills itself, at the *at*-th occasion: those of
:meth:`Suicide.install`, of which ``before-submitted`` means that the provider has made the batch,
and its name is not logged.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pytest_fairness.endpoints import Price, create_endpoint
from pytest_fairness.endpoints.batch_api import BatchApi
from pytest_fairness.endpoints.config import BatchOptions
from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.engine.engine import Engine
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.store import open_store
from tests.support.doubles import cell, plan
from tests.support.killing import Suicide, ask_and_print


def endpoint_at(url: str, kind: str = "openai") -> Endpoint:
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


def planned_of(count: int = 8, turns: int = 1) -> list[PlannedTrial]:
    """The trials that a child asks."""
    more = tuple(f"turn {number}" for number in range(1, turns))
    return [
        PlannedTrial(cell=cell(number, turns=(one.cell.prompt, *more)))
        for number, one in enumerate(plan(count))
    ]


def main(
    root: str,
    url: str,
    die: str = "",
    at: int = 1,
    writer: str | None = None,
    grace: float = 5.0,
    **more: Any,
) -> int:
    Suicide(die, at).install()
    state = BatchApi.state

    async def shown_state(self: BatchApi, batch: str) -> Any:
        if BatchApi.state is shown_state:
            print("waiting", flush=True)  # noqa: T201
            BatchApi.state = state  # type: ignore[method-assign]
        return await state(self, batch)

    BatchApi.state = shown_state  # type: ignore[method-assign]
    endpoint = endpoint_at(url, more.pop("kind", "openai"))
    with (
        open_store(Path(root), "token", writer=writer) as store,
        Engine(endpoint, store, attempt_timeout=20.0, grace=grace) as engine,
    ):
        return ask_and_print(engine, planned_of(**more))


if __name__ == "__main__":
    sys.exit(main(**json.loads(sys.argv[1])))
