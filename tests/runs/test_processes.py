"""Several processes on one run: they share what they ask, and nothing is asked twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_fairness.engine.engine import Engine
from pytest_fairness.runs.reader import read_trials
from pytest_fairness.runs.store import open_run
from tests.support.doubles import Scripted, billed, plan

from .children import COST, Runs


def test_two_processes_share_the_trials(runs: Runs) -> None:
    """Both get every answer, and each trial is billed once, whoever of the two asked it."""
    children = [runs.start(writer=f"gw{number}", count=80, delay=0.02) for number in range(2)]
    assert [runs.finish(child) for child in children] == [{"answered": 80}] * 2
    assert set(billed(runs.ledger).values()) == {1}
    assert len(billed(runs.ledger)) == len(read_trials(runs.directory)) == 80


def test_many_processes_do_not_corrupt_anything(runs: Runs) -> None:
    """Five at once, without a delay between them: every log verifies, every trial is there once."""
    children = [runs.start(writer=f"gw{number}", count=300) for number in range(5)]
    assert [runs.finish(child) for child in children] == [{"answered": 300}] * 5
    assert len(billed(runs.ledger)) == billed(runs.ledger).total() == 300
    assert len(read_trials(runs.directory)) == 300


def test_the_cap_holds_over_processes(runs: Runs) -> None:
    """Two workers under one cap together spend no more than it."""
    children = [runs.start(writer=f"gw{number}", count=60, max_cost=0.0016, delay=0.002) for number in range(2)]
    for child in children:
        out, err = child.communicate(timeout=30)
        assert child.returncode == 1, err
        assert "BudgetError the cost cap of" in out
    assert billed(runs.ledger).total() * COST <= 1_600_000
    assert billed(runs.ledger).total() >= 20
    assert set(billed(runs.ledger).values()) == {1}


def test_a_worker_is_waited_for_and_replaced_when_it_dies(runs: Runs) -> None:
    """While it lives its claims are respected; killed, what it had not sent is asked by the one who
    waited."""
    first = runs.start(writer="gw0", count=12, delay=1.5, concurrency=2)
    assert first.stdout is not None
    while not billed(runs.ledger).total():
        time.sleep(0.01)
    second = runs.start(writer="gw1", count=12, concurrency=4)
    time.sleep(1.0)
    first.kill()
    first.communicate()
    statuses = runs.finish(second)
    assert set(billed(runs.ledger).values()) == {1}
    assert statuses == {"answered": 10, "unknown": 2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_keep_a_dead_writer_alive(root: Path) -> None:
    """A child that outlives its parent shares its open files, but not its claims."""
    script = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from pytest_fairness.runs.store import open_run\n"
        "store = open_run(Path(sys.argv[1]), 't', writer='gw0')\n"
        "store.claim(['0' * 64])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.close(1); time.sleep(30)\n"
        "print(child, flush=True)\n"
        "os._exit(0)\n"
    )
    parent = subprocess.run([sys.executable, "-c", script, root], stdout=subprocess.PIPE, text=True, check=True)
    try:
        with open_run(root, "t", writer="gw1") as other:
            assert list(other.claim(["0" * 64]).mine) == ["0" * 64]
    finally:
        os.kill(int(parent.stdout), signal.SIGKILL)


def test_plans_of_different_processes_overlap_in_part(root: Path, tmp_path: Path) -> None:
    """What one has asked the other finds, and asks the rest."""
    ledger = tmp_path / "ledger"
    with (
        open_run(root, "t", writer="gw0") as one,
        open_run(root, "t", writer="gw1") as other,
        Engine(Scripted(ledger=ledger), one) as first,
        Engine(Scripted(ledger=ledger), other) as second,
    ):
        early = first.run(plan(10))
        assert second.run(plan(15))[:10] == early
    assert billed(ledger).total() == 15
