"""F22 to F29 of the catalogue in docs/reliability.md: processes that die, are interrupted, fork and share.

Each is a session of a user's project, in processes of its own, against a server that keeps the bill. What happens
within the store and the engine has tests of its own in tests/running; what crosses between workers and controller in
tests/plugin. ``benchmarks/crashes.py`` kills two hundred times.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_fairness.model import Status
from pytest_fairness.running.reading import read_trials
from tests.running.children import Runs
from tests.running.doubles import billed
from tests.support.servers import Fault, ModelServer

from .conftest import SUITE, TRIALS, Project
from .killing import POINTS
from .oracles import Case, check, every_byte_is_logged, money_is_accounted_for, newest_run, same_statistics
from .sessions import Background, Steady, case_after

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals, groups and forks of POSIX")
CONCURRENCY = 8


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Answers the same whenever it is asked, so that a run that was disturbed can be held against one that was not."""
    with ModelServer(Steady()) as running:
        yield running


def unknown_of(case: Case) -> set[str]:
    """The prompts of which nobody knows what came of them."""
    return {record["messages"][-1]["content"] for record in case.of("trial") if record["status"] == "unknown"}


def check_after_a_death(case: Case, *, among: int = CONCURRENCY) -> None:
    """All oracles. What was on its way to a dying process never reached it: of that alone the log has no bytes and no
    price; it was announced, and is no more than what was under way. Its worst case is set aside in the run's account.
    """
    check(case, oracles="24567")
    answered = {json.loads(one["wire"]["request_body"])["messages"][-1]["content"] for one in case.of("attempt")}
    reached = replace(case, ledger=[one for one in case.ledger if one.prompt in answered])
    assert len(case.ledger) - len(reached.ledger) <= among
    every_byte_is_logged(reached)
    money_is_accounted_for(reached)


def check_against_undisturbed(project: Project, disturbed: Path) -> None:
    """O7, second half: a run of the same project that nothing disturbs comes to the same findings."""
    assert project.run().code in (0, 1)
    undisturbed = newest_run(project.path)
    assert undisturbed is not None
    assert undisturbed != disturbed
    same_statistics(disturbed, undisturbed)


# ---------------------------------------------------------------- F22: killed


@pytest.mark.parametrize("point", POINTS)
def test_f22_killed_at_a_named_point(project: Project, point: str) -> None:
    """The same command with --fairness-resume completes the run: nothing that was finished is asked again, what was
    under way is unknown and listed, and is asked again on request only. Then the findings are those of a run that
    nobody killed."""
    project.write()
    at = 1 if point == "mid-rename" else 20
    case = Background(project, "-p", "tests.faults.killing", env={"KILL_AT": f"{point}:{at}"}).end()
    assert case.code == -signal.SIGKILL, case.output
    check_after_a_death(case)
    before = len(case.ledger)
    assert before == TRIALS if point == "mid-rename" else 12 <= before < TRIALS

    case = project.run("--fairness-resume")
    unknown = len(unknown_of(case))
    assert (unknown > 0) == (point not in ("mid-rename", "after-append")) or unknown < CONCURRENCY
    assert f"{unknown} of {TRIALS}" in " ".join(case.output.split()) or not unknown
    assert Counter(one.prompt for one in case.ledger).most_common(1)[0][1] == 1
    check_after_a_death(case)

    if unknown:
        case = project.run("--fairness-resume", "--fairness-retry-unknown", repeats=2)
        assert not unknown_of(case) or len(case.of("trial")) == TRIALS + unknown
        assert len(case.ledger) <= TRIALS + unknown
    assert case.run is not None
    check_against_undisturbed(project, case.run)


def test_f22_killed_at_random_moments(tmp_path: Path) -> None:
    """However often it is killed: no request twice, no answer lost, no more unknowns than were under way."""
    runs = Runs(tmp_path)
    generator = random.Random(1)
    kills = 0
    for _ in range(10):
        child = runs.start(count=600, delay=0.004, concurrency=8)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(generator.random() * 0.12)
        kills += child.poll() is None
        child.kill()
        child.communicate()
    statuses = runs.finish(runs.start(count=600, concurrency=8))
    assert kills >= 5
    assert sum(statuses.values()) == 600
    assert statuses.get("unknown", 0) <= 8 * kills
    assert set(billed(runs.ledger).values()) == {1}
    trials = read_trials(runs.directory)
    assert len(trials) == 600
    answered = [trial for trial in trials.values() if trial.status is Status.ANSWERED]
    assert all((trial.reply or "").startswith("Answer to: Write about candidate") for trial in answered)


# ---------------------------------------------------------------- F23: told to end

MANY = SUITE.replace("repetitions=1", "repetitions=20")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_f23_told_to_end(project: Project, number: signal.Signals) -> None:
    """Nothing more is sent, what is under way is logged with its answer, the exit status is not 0, and the summary says
    how to go on; going on asks nothing twice."""
    project.write(MANY)
    project.server.latency = 0.1
    session = Background(project)
    session.until_asked(16)
    session.press(number)
    pressed = len(project.server.requests)
    case = session.end(deadline=10)
    assert case.code == pytest.ExitCode.INTERRUPTED
    assert case.run is not None
    assert f"--fairness-resume {case.run.name}" in case.output
    assert len(case.ledger) <= pressed + 2 * CONCURRENCY
    assert {record["status"] for record in case.of("trial")} == {"answered"}
    check(case)


def test_f23_interrupted_twice(project: Project) -> None:
    """Who presses Ctrl-C again has no patience for calls that hang: the end comes at once, they are unknown."""
    project.write(MANY)
    project.server.always = Fault(hang=True)
    session = Background(project)
    session.until_asked(CONCURRENCY)
    session.press(signal.SIGINT)
    time.sleep(0.5)
    session.press(signal.SIGINT)
    pressed = time.monotonic()
    case = session.end(deadline=10)
    assert time.monotonic() - pressed < 10
    assert case.code == pytest.ExitCode.INTERRUPTED
    assert [record["status"] for record in case.of("trial")] == ["unknown"] * CONCURRENCY
    check(case)


@pytest.mark.parametrize("whom", ["everybody", "the controller", "the controller, SIGTERM"])
def test_f23_workers_told_to_end(project: Project, whom: str) -> None:
    """Under -n the terminal interrupts all processes, an orchestrator the controller alone: workers stop asking either
    way, and what was answered is in the log."""
    project.write(MANY)
    project.server.latency = 0.1
    session = Background(project, "-n2")
    session.until_asked(16)
    if whom == "everybody":
        session.press(signal.SIGINT)
    else:
        session.process.send_signal(signal.SIGTERM if "SIGTERM" in whom else signal.SIGINT)
    case = session.end(deadline=15)
    assert case.code != 0
    last = len(project.server.requests)
    time.sleep(2.0)
    assert len(project.server.requests) <= last + 2 * CONCURRENCY
    session.kill_all()
    case = case_after(project, output=case.output, code=case.code)
    assert len(case.ledger) < 20 * TRIALS
    check_after_a_death(case, among=2 * CONCURRENCY)


# ---------------------------------------------------------------- F24: workers that die


@pytest.mark.parametrize("how", ["load", "worksteal", "loadscope", "loadgroup", "no restart"])
def test_f24_a_worker_dies_in_the_middle_of_asking(project: Project, how: str) -> None:
    """Whatever hands out the tests, and whether or not the dying test is run again: each trial was asked once, the
    crash is told, and the session is red."""
    project.write(SUITE, concurrency=4)
    mode = ("--max-worker-restart=0",) if how == "no restart" else (f"--dist={how}",)
    env = {"KILL_AT": "before-append:10", "KILL_ONCE": str(project.path / "killed")}
    case = Background(project, "-n2", *mode, "-p", "tests.faults.killing", env=env).end(deadline=60)
    assert case.code == 1, case.output
    assert "crashed while running" in case.output
    check_after_a_death(case, among=4)
    assert max(Counter(one.prompt for one in case.ledger).values()) == 1
    case = project.run("--fairness-resume")
    assert max(Counter(one.prompt for one in case.ledger).values()) == 1
    assert len({record["key"] for record in case.of("trial")}) == TRIALS, case.output
    check_after_a_death(case, among=4)


# ---------------------------------------------------------------- F25: a controller that dies


def test_f25_the_controller_is_killed(project: Project) -> None:
    """Nobody is left to judge: within a second or so no worker asks any more, and the logs are intact."""
    project.write(MANY)
    project.server.latency = 0.1
    session = Background(project, "-n2")
    session.until_asked(16)
    session.process.kill()
    killed = time.monotonic()
    session.process.communicate(timeout=30)
    time.sleep(2.5)
    ledger = project.server.requests
    assert max(request.time for request in ledger) < killed + 1.5
    assert len(ledger) < 20 * TRIALS
    session.kill_all()
    case = case_after(project, code=-signal.SIGKILL)
    assert {record["status"] for record in case.of("trial")} == {"answered"}
    check_after_a_death(case, among=2 * CONCURRENCY)
