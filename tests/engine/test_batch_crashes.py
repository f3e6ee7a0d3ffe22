"""Killed, interrupted and racing processes that ask in batches: each request is made and billed
once, none is lost.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.engine.batches import still_open
from pytest_fairness.engine.engine import Engine
from pytest_fairness.model import Status
from pytest_fairness.runs.folder import run_folders
from pytest_fairness.runs.reader import RunReader, read_trials
from pytest_fairness.runs.store import RunStore, open_store
from tests.runs import children as processes
from tests.support.batch_server import BatchServer
from tests.support.runs import records, unanswered
from tests.support.sessions import Session

from .batch_child import endpoint_at, planned_of

Start = Callable[..., Session]


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer() as running:
        yield running


@pytest.fixture
def start(server: BatchServer, root: Path) -> Iterator[Start]:
    """Start a child on the run and the server of this test."""
    children: list[Session] = []

    def go(**options: Any) -> Session:
        places = {"root": str(root), "url": server.url}
        child = processes.start(f"{__package__}.batch_child", {**places, **options})
        children.append(child)
        return child

    yield go
    for child in children:
        if child.poll() is None:
            child.kill()
        child.communicate()


def finish(child: Session) -> dict[str, int]:
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, out + err
    return dict(json.loads(out.splitlines()[-1]))


def killed(child: Session) -> None:
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL


def await_waiting(child: Session) -> None:
    assert child.await_line() == "waiting"


def again(
    server: BatchServer,
    root: Path,
    *,
    kind: str = "openai",
    turns: int = 1,
    deadline: float | None = None,
) -> dict[str, int]:
    """What another session of the run comes to, in this process."""
    with (
        open_store(root, "token") as store,
        Engine(endpoint_at(server.url, kind), store, deadline=deadline) as engine,
    ):
        return dict(Counter(str(trial.status) for trial in engine.run(planned_of(turns=turns))))


def folder(root: Path) -> Path:
    (directory,) = run_folders(root)
    return directory


@pytest.mark.parametrize(
    ("point", "at", "turns", "leaves_reserved"),
    # What was set aside stays so for trials that were not noted yet, and for the one whose answer
    # was just noted.
    [
        ("after-intent", 1, 1, True),
        ("before-submitted", 2, 2, False),
        ("mid-append", 4, 1, False),
        ("after-append", 4, 1, True),
        ("before-collected", 1, 1, False),
    ],
)
def test_killed_at_a_named_point_and_taken_up_again(
    server: BatchServer,
    start: Start,
    root: Path,
    point: str,
    at: int,
    turns: int,
    leaves_reserved: bool,
) -> None:
    """The next process finds the batch, whether its name was logged or not, or makes the one that
    was never made: every trial is answered, every request billed once, in a later round too, and
    the account is right or on the safe side."""
    killed(start(die=point, at=at, turns=turns))
    assert again(server, root, turns=turns) == {"answered": 8}
    assert len(server.batches) == turns
    assert sorted(server.answered.values()) == [1] * 8 * turns
    directory = folder(root)
    trials = read_trials(directory).values()
    assert {(trial.status, trial.source) for trial in trials} == {(Status.ANSWERED, "live")}
    with RunStore.open(directory, writer="reader") as store:
        account = store.budget(None).account()
    spent = sum(round((trial.cost or 0) * 1e9) for trial in trials)
    assert (sum(account) > spent) if leaves_reserved else (account == (spent, 0))
    assert unanswered(directory) == set()


def test_killed_while_anthropic_has_the_batch(
    server: BatchServer, start: Start, root: Path
) -> None:
    """A batch without a mark of ours is recognised by its requests, once it has ended: as long as
    one in progress may be the one that was sent, none is made, not even when the time is over."""
    server.hold = True
    killed(start(die="before-submitted", kind="anthropic"))
    assert again(server, root, kind="anthropic", deadline=0.5) == {"not_run": 8}
    server.hold = False
    assert again(server, root, kind="anthropic") == {"answered": 8}
    assert len(server.batches) == 1
    assert sorted(server.answered.values()) == [1] * 8
    (made,) = [
        record for record in records(folder(root), "batch") if record["event"] == "submitted"
    ]
    assert made["batch"] == "msgbatch_0"


def test_an_interrupt_leaves_the_batch_where_it_is(
    server: BatchServer, start: Start, root: Path
) -> None:
    """Ctrl-C ends the waiting at once; the batch goes on, is named, and is collected by the next
    session.
    """
    server.hold = True
    child = start()
    await_waiting(child)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)  # the batch itself is held, and would go on for ever
    assert child.returncode == -signal.SIGINT
    assert b"KeyboardInterrupt" in err
    assert not read_trials(folder(root))
    with RunStore.open(folder(root)) as store:
        (sentence,) = still_open(store.of_type("batch"))
    assert "batch_0" in sentence
    assert server.called("POST", "/cancel") == 0
    server.hold = False
    assert again(server, root) == {"answered": 8}
    assert len(server.batches) == 1


def test_processes_share_one_design_and_survive_each_other(
    server: BatchServer, start: Start, root: Path
) -> None:
    """As xdist's workers do. One is killed while its batch is in progress: the others poll that
    batch, submit none, and have all trials."""
    server.hold = True
    first = start(writer="gw0")
    await_waiting(first)
    others = [start(writer=f"gw{number}") for number in (1, 2)]
    first.kill()
    server.hold = False
    assert [finish(child) for child in others] == [{"answered": 8}] * 2
    assert len(server.batches) == 1
    assert sorted(server.answered.values()) == [1] * 8
    assert "trials-gw0.jsonl" in RunReader.open(folder(root)).logs
