"""Progress of several workers in one line: what each leaves in the run's folder, added up."""

from __future__ import annotations

import io
import time
from pathlib import Path

from pytest_fairness.engine.progress import Progress, Watching
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.shared_progress import WorkerProgress, together
from tests.support.doubles import Scripted, plan
from tests.support.runs import EngineMaker


def trial(status: Status = Status.ANSWERED, cost: float | None = None) -> Trial:
    return Trial(key="k", repetition=0, status=status, cost=cost)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def worker(state: Path, writer: str, planned: int, asked: int, of: str, cost: float | None = None) -> WorkerProgress:
    clock = Clock()
    progress = WorkerProgress(state, writer, clock=clock)
    progress.begin(planned, "gpt", of)
    for number in range(asked):
        clock.now += 1
        progress.advance(trial(Status.REFUSED if number == 0 else Status.ANSWERED, cost))
    return progress


def test_workers_on_the_same_trials_are_not_counted_twice(tmp_path: Path) -> None:
    """Two plan the same hundred, a third another ten: 110 in all, and each trial asked is asked once."""
    worker(tmp_path, "gw0", 100, 30, "grid", cost=0.01)
    late = worker(tmp_path, "gw1", 80, 20, "grid")  # began when twenty were asked
    worker(tmp_path, "gw2", 10, 0, "other")
    standing = together(tmp_path)
    assert (standing.done, standing.planned, standing.refused) == (50, 110, 2)
    assert (
        standing.line(10.0) == "gpt (3 workers): 50/110 trials, 5.0/s, $0.3000 of about $0.6600, 2 refused, 0:12 left"
    )
    late.end()
    assert together(tmp_path).done == 50


def test_batches_add_up(tmp_path: Path) -> None:
    """A worker's next trials come on top of those that it has asked."""
    progress = worker(tmp_path, "gw0", 5, 5, "one")
    progress.end()
    progress.begin(7, "gpt", "two")
    assert (together(tmp_path).done, together(tmp_path).planned) == (5, 12)


def test_what_cannot_be_read_or_written_is_passed_over(tmp_path: Path) -> None:
    """Telling is never a reason to fail, on either side."""
    worker(tmp_path, "gw0", 5, 1, "one")
    (tmp_path / "progress-gw1.json").write_text("{")
    (tmp_path / "progress-gw2.json").write_text('{"unknown": 1}')
    assert together(tmp_path).done == 1
    missing = tmp_path / "missing"
    WorkerProgress(missing, "gw0").begin(3, "gpt", "one")
    assert together(missing).planned == 0


def test_a_watch_shows_what_workers_do(tmp_path: Path, engine_for: EngineMaker) -> None:
    """An engine with a worker's progress, and a watch on its folder: a line while it asks, none once it has ended."""
    stream = io.StringIO()
    clock = Clock()
    watch = Watching(tmp_path, Progress(stream, "log", clock=clock), every=0.01)
    clock.now += 60
    engine_for(Scripted(delay=0.2), concurrency=2, progress=WorkerProgress(tmp_path, "gw0")).run(plan(4))
    time.sleep(0.05)
    watch.stop()
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("scripted (1 worker): ")
    assert "/4 trials" in line
    assert together(tmp_path).done == together(tmp_path).planned == 4
