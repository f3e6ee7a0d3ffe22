"""Processes on one run, killed and interrupted: nothing asked twice, nothing paid for lost, the
rest unknown.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_fairness.model import Status
from pytest_fairness.runs.reader import read_trials
from pytest_fairness.runs.store import RunStore, open_store
from tests.support.doubles import billed
from tests.support.runs import records

from .children import COST, Runs

# ------------------------------------------------------------ killed

ALL, ALL_BUT_ONE = {"answered": 20}, {"answered": 19, "unknown": 1}
#: What a run is that was killed at each point, one request in flight, and then finished. Where the
#: next request is about to leave, the answer before it may be on the disk or on its way there.
POINTS = {
    "before-intent": (ALL, ALL_BUT_ONE),
    "before-send": (ALL_BUT_ONE,),
    "after-send": (ALL_BUT_ONE,),
    "before-append": (ALL_BUT_ONE,),
    "mid-append": (ALL_BUT_ONE,),
    "after-append": (ALL,),
    "after-trial": (ALL, ALL_BUT_ONE),
}


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_named_point_and_taken_up_again(runs: Runs, point: str) -> None:
    """The next process asks what was never sent, goes on with what was answered, and leaves unknown
    what was not: never more than were in flight."""
    victim = runs.start(die=point, at=5, concurrency=1, turns=2)
    victim.communicate(timeout=30)
    assert victim.returncode == -signal.SIGKILL
    assert runs.finish(runs.start(concurrency=4, turns=2)) in POINTS[point]
    assert set(billed(runs.ledger).values()) == {1}
    answered = [
        trial for trial in read_trials(runs.directory).values() if trial.status is Status.ANSWERED
    ]
    assert {len(trial.replies) for trial in answered} == {2}
    with RunStore.open(runs.directory, writer="reader") as store:
        assert sum(store.budget(None).account()) >= billed(runs.ledger).total() * COST


# ------------------------------------------------------------ interrupted


def test_what_does_not_end_in_time_after_an_interrupt_is_unknown(runs: Runs) -> None:
    """A call that hangs cannot hold up the end; it is on record as sent and interrupted. The first
    goes alone.
    """
    child = runs.start(count=50, delay=60, concurrency=3, grace=0.2)
    while billed(runs.ledger).total() < 1:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=50)  # the calls would take sixty seconds
    trials = read_trials(runs.directory)
    assert [trial.status for trial in trials.values()] == [Status.UNKNOWN]
    assert {flag for record in records(runs.directory, "trial") for flag in record["flags"]} == {
        "cancelled"
    }


# ------------------------------------------------------------ several at once


def test_two_processes_share_the_trials(runs: Runs) -> None:
    """Both get every answer, and each trial is billed once, whoever of the two asked it."""
    children = [runs.start(writer=f"gw{number}", count=80, delay=0.02) for number in range(2)]
    assert [runs.finish(child) for child in children] == [{"answered": 80}] * 2
    assert set(billed(runs.ledger).values()) == {1}
    assert len(billed(runs.ledger)) == len(read_trials(runs.directory)) == 80


def test_the_cap_holds_over_processes(runs: Runs) -> None:
    """Two workers under one cap together spend no more than it."""
    children = [
        runs.start(writer=f"gw{number}", count=60, max_cost=0.0016, delay=0.002)
        for number in range(2)
    ]
    for child in children:
        out, err = child.communicate(timeout=30)
        assert child.returncode == 1, err
        assert b"BudgetError the cost cap of" in out
    assert billed(runs.ledger).total() * COST <= 1_600_000
    assert billed(runs.ledger).total() >= 20
    assert set(billed(runs.ledger).values()) == {1}


def test_a_worker_is_waited_for_and_replaced_when_it_dies(runs: Runs) -> None:
    """While it lives its claims are respected; killed, what it had not sent is asked by the one who
    waited. It had sent its first, which is asked by itself.
    """
    first = runs.start(writer="gw0", count=12, delay=1.5, concurrency=2)
    while not billed(runs.ledger).total():
        time.sleep(0.01)
    second = runs.start(writer="gw1", count=12, concurrency=4)
    time.sleep(1.0)
    first.kill()
    first.communicate()
    statuses = runs.finish(second)
    assert set(billed(runs.ledger).values()) == {1}
    assert statuses == {"answered": 11, "unknown": 1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_keep_a_dead_writer_alive(root: Path) -> None:
    """A child that outlives its parent shares its open files, but not its claims."""
    script = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from pytest_fairness.runs.store import open_store\n"
        "store = open_store(Path(sys.argv[1]), 't', writer='gw0')\n"
        "store.claim(['0' * 64])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.close(1); time.sleep(30)\n"
        "print(child, flush=True)\n"
        "os._exit(0)\n"
    )
    parent = subprocess.run(
        [sys.executable, "-c", script, root], stdout=subprocess.PIPE, text=True, check=True
    )
    try:
        with open_store(root, "t", writer="gw1") as other:
            assert list(other.claim(["0" * 64]).mine) == ["0" * 64]
    finally:
        os.kill(int(parent.stdout), signal.SIGKILL)
