"""Progress of several workers in one line: what each leaves in the run's folder, added up."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_fairness.engine.progress import Progress, Watching
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.shared_progress import WorkerProgress
from pytest_fairness.runs.store import RunStore, open_run
from tests.support.doubles import Scripted, plan
from tests.support.runs import EngineMaker


def trial(status: Status = Status.ANSWERED, cost: float | None = None) -> Trial:
    return Trial(key="k", repetition=0, status=status, cost=cost)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def worker(store: RunStore, planned: int, asked: int, of: str, cost: float | None = None) -> WorkerProgress:
    clock = Clock()
    progress = WorkerProgress(store.database, clock=clock)
    progress.begin(planned, "gpt", of)
    for number in range(asked):
        clock.now += 1
        progress.advance(trial(Status.REFUSED if number == 0 else Status.ANSWERED, cost))
    return progress


@pytest.fixture
def stores(root: Path) -> Iterator[list[RunStore]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(open_run(root, "a session", writer=f"gw{number}")) for number in range(3)]


def test_workers_on_the_same_trials_are_not_counted_twice(stores: list[RunStore]) -> None:
    """Two plan the same hundred, a third another ten: 110 in all, and each trial asked is asked once."""
    worker(stores[0], 100, 30, "grid", cost=0.01)
    late = worker(stores[1], 80, 20, "grid")  # began when twenty were asked
    worker(stores[2], 10, 0, "other")
    for store in stores:
        store.flush()
    standing = stores[0].standing()
    assert (standing.done, standing.planned, standing.refused) == (50, 110, 2)
    assert (
        standing.line(10.0) == "gpt (3 workers): 50/110 trials, 5.0/s, $0.3000 of about $0.6600, 2 refused, 0:12 left"
    )
    late.end()
    assert stores[1].standing().done == 50


def test_batches_add_up(store: RunStore) -> None:
    """A worker's next trials come on top of those that it has asked; half a character in a label harms nobody."""
    progress = worker(store, 5, 5, "one")
    progress.end()
    progress.begin(7, "gpt \ud800", "two")
    assert (store.standing().done, store.standing().planned) == (5, 12)
    store.close()
    progress.begin(3, "gpt", "one")  # reporting is never a reason to fail


def test_a_watch_shows_what_workers_do(store: RunStore, engine_for: EngineMaker) -> None:
    """An engine with a worker's progress, and a watch on its run: a line while it asks, none once it has ended."""
    stream = io.StringIO()
    clock = Clock()
    watch = Watching(store, Progress(stream, clock=clock), every=0.01)
    clock.now += 60
    engine_for(Scripted(delay=0.2), concurrency=2, progress=store.progress()).run(plan(4))
    time.sleep(0.05)
    watch.stop()
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("scripted (1 worker): ")
    assert "/4 trials" in line
    assert store.standing().done == store.standing().planned == 4
