"""Progress of several workers in one line: what each leaves in the run's database, added up."""

from __future__ import annotations

import contextlib
import io
import itertools
from pathlib import Path

from pytest_fairness.engine.progress import Progress, Watching
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.shared_progress import WorkerProgress
from pytest_fairness.runs.store import RunStore, open_run
from tests.support.doubles import Scripted, plan
from tests.support.runs import EngineMaker


def worker(store: RunStore, planned: int, asked: int, of: str, cost: float | None = None) -> WorkerProgress:
    """A worker that has asked the first, refused, and others of its trials, and reports each."""
    progress = WorkerProgress(store.database, clock=itertools.count().__next__)
    progress.begin(planned, "gpt", of)
    for number in range(asked):
        status = Status.ANSWERED if number else Status.REFUSED
        progress.advance(Trial(key="k", repetition=0, status=status, cost=cost))
    store.flush()
    return progress


def test_workers_on_the_same_trials_are_not_counted_twice(root: Path) -> None:
    """Two plan the same hundred, a third another ten: 110 in all, and each trial asked is asked once."""
    with contextlib.ExitStack() as stack:
        stores = [stack.enter_context(open_run(root, "a session", writer=f"gw{number}")) for number in range(3)]
        worker(stores[0], 100, 30, "grid", cost=0.01)
        late = worker(stores[1], 80, 20, "grid")  # began when twenty were asked
        worker(stores[2], 10, 0, "other")
        whole = stores[0].standing()
        assert (whole.done, whole.planned, whole.refused) == (50, 110, 2)
        line = "gpt (3 workers): 50/110 trials, 5.0/s, $0.3000 of about $0.6600, 2 refused, 0:12 left"
        assert whole.line(10.0) == line
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
    now = iter([0.0])
    watch = Watching(store, Progress(stream, clock=lambda: next(now, 60.0)), every=0.01)
    engine_for(Scripted(delay=0.2), concurrency=2, progress=store.progress()).run(plan(4))
    watch.stop()
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("scripted (1 worker): ")
    assert "/4 trials" in line
    assert store.standing().done == store.standing().planned == 4
