"""A run of one's own for each test, closed behind it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.engine.engine import Engine
from pytest_fairness.runs.store import RunStore, open_run
from tests.runs.children import Runs

EngineMaker = Callable[..., Engine]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".fairness" / "runs"


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Processes that ask, on a root and a ledger of their own."""
    return Runs(tmp_path)


@pytest.fixture
def store(root: Path) -> Iterator[RunStore]:
    """The store of a new run."""
    with open_run(root, "a session") as opened:
        yield opened


@pytest.fixture
def engine_for(store: RunStore) -> Iterator[EngineMaker]:
    """Makes engines on the run's store."""
    made: list[Engine] = []

    def make(endpoint: Endpoint, **options: Any) -> Engine:
        made.append(Engine(endpoint, store, **options))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


def records(directory: Path, *kinds: str) -> list[dict[str, Any]]:
    """The records of a run's logs, of these types or all, as plain JSON."""
    lines = (line for path in sorted(directory.glob("trials*.jsonl")) for line in path.read_text().splitlines())
    found = [json.loads(line) for line in lines]
    return [record for record in found if not kinds or record["type"] in kinds]
