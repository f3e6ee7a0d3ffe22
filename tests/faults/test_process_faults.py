"""F22 to F29 of the catalogue in docs/reliability.md: processes that die, are interrupted, fork and
share.

Each is a session of a user's project, in processes of its own, against a server that keeps the
bill. What happens within the store and the engine has tests of its own in tests/runs (the other
points at which a process is killed) and tests/engine; what crosses between workers and controller
in tests/pytest_layer. ``benchmarks/crashes.py`` kills two hundred times.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_fairness.model import Status
from pytest_fairness.runs.reader import read_trials, reading
from tests.conftest import MODES
from tests.runs.children import Runs
from tests.support.doubles import billed
from tests.support.servers import Fault

from .conftest import SUITE, TRIALS, Project, message, same_as_undisturbed, words
from .oracles import Case, check, every_byte_is_logged, money_is_accounted_for
from .sessions import Background

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals, groups and forks of POSIX")
CONCURRENCY = 8


def check_after_a_death(case: Case, *, among: int = CONCURRENCY) -> None:
    """All oracles. What was on its way to a dying process never reached it: of that alone the log
    has no bytes and no price; it was announced, and is no more than what was under way. Its worst
    case is set aside in the run's account.
    """
    check(case, oracles="24567")
    answered = {
        json.loads(one["wire"]["request_body"])["messages"][-1]["content"]
        for one in case.of("attempt")
    }
    reached = replace(case, ledger=[one for one in case.ledger if one.prompt in answered])
    assert len(case.ledger) - len(reached.ledger) <= among
    every_byte_is_logged(reached)
    money_is_accounted_for(reached)


# ---------------------------------------------------------------- F22: killed


@pytest.mark.parametrize("point", ["mid-append", "mid-rename"])
def test_f22_killed_at_a_named_point(project: Project, point: str) -> None:
    """The same command with --fairness-resume completes the run: nothing that was finished is asked
    again, what was under way is unknown and listed, and is asked again on request only. Then the
    findings are those of a run that nobody killed."""
    project.write()
    at = 1 if point == "mid-rename" else 20
    case = Background(
        project, "-p", "tests.support.killing", env={"KILL_AT": f"{point}:{at}"}
    ).end()
    assert case.code == -signal.SIGKILL, case.output
    check_after_a_death(case)
    before = len(case.ledger)
    assert before == TRIALS if point == "mid-rename" else 12 <= before < TRIALS

    case = project.run("--fairness-resume=last")
    unknown = len({one["key"] for one in case.of("trial") if one["status"] == "unknown"})
    assert (unknown > 0) == (point != "mid-rename")
    assert f"{unknown} of {TRIALS}" in words(case) or not unknown
    assert Counter(one.prompt for one in case.ledger).most_common(1)[0][1] == 1
    check_after_a_death(case)

    if unknown:
        case = project.run("--fairness-resume=last", "--fairness-retry-unknown", repeats=2)
        assert len(case.of("trial")) == TRIALS + unknown
        assert len(case.ledger) <= TRIALS + unknown
    same_as_undisturbed(project, case)


def test_f22_killed_at_random_moments(tmp_path: Path) -> None:
    """However often it is killed: no request twice, no answer lost, no more unknowns than were
    under way.
    """
    runs = Runs(tmp_path)
    generator = random.Random(1)
    kills = 0
    for _ in range(5):
        child = runs.start(count=300, delay=0.004, concurrency=8)
        child.await_line()
        time.sleep(generator.random() * 0.12)
        kills += child.poll() is None
        child.kill()
        child.communicate()
    statuses = runs.finish(runs.start(count=300, concurrency=8))
    assert kills >= 2
    assert sum(statuses.values()) == 300
    assert statuses.get("unknown", 0) <= 8 * kills
    assert set(billed(runs.ledger).values()) == {1}
    trials = read_trials(runs.directory)
    assert len(trials) == 300
    answered = [trial for trial in trials.values() if trial.status is Status.ANSWERED]
    assert all(
        (trial.reply or "").startswith("Answer to: Write about candidate") for trial in answered
    )


# ---------------------------------------------------------------- F23, F55: interrupted

MANY = SUITE.replace("repetitions=1", "repetitions=20")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_f23_a_signal_ends_the_session(project: Project, number: signal.Signals) -> None:
    """Nothing more is sent, what is under way is logged with its answer, the exit status is not 0,
    and the summary says how to go on; going on asks nothing twice."""
    project.write(MANY)
    project.server.latency = 0.1
    session = Background(project)
    session.until_received(16)
    session.press(number)
    pressed = len(project.server.requests)
    case = session.end(deadline=10)
    assert case.code == pytest.ExitCode.INTERRUPTED
    assert case.run is not None
    assert f"--fairness-resume {case.run.name}" in case.output
    assert len(case.ledger) <= pressed + 2 * CONCURRENCY
    assert {record["status"] for record in case.of("trial")} == {"answered"}
    check(case)


PATIENT = """
from pytest_fairness.engine.engine import Engine

made = Engine.__post_init__

def patiently(engine):
    made(engine)
    engine.grace = 86_400.0

Engine.__post_init__ = patiently
"""


def test_f23_interrupted_twice(project: Project) -> None:
    """Who presses Ctrl-C again has no patience for calls that hang: the end does not wait for the
    seconds that they have otherwise, here a day of them; they are unknown."""
    project.write(MANY)
    project.path.joinpath("conftest.py").write_text(PATIENT, encoding="utf-8")
    project.server.then(None)  # the first is asked by itself
    project.server.always = Fault(hang=True)
    session = Background(project)
    session.until_received(1 + CONCURRENCY)
    session.press(signal.SIGINT)
    time.sleep(0.2)
    session.press(signal.SIGINT)
    case = session.end(deadline=60)
    assert case.code == pytest.ExitCode.INTERRUPTED
    assert [record["status"] for record in case.of("trial")] == ["answered"] + [
        "unknown"
    ] * CONCURRENCY
    check(case)


@pytest.mark.parametrize("whom", ["everybody", "the controller"])
def test_f23_f55_workers_are_interrupted(project: Project, whom: str) -> None:
    """Under -n the terminal interrupts all processes. The controller alone has its workers stop at
    once, before it has waited for them: what leaves afterwards is what was about to. What was
    answered is in the log either way."""
    project.write(MANY)
    project.server.latency = 0.05
    if whom == "everybody":
        session = Background(project, "-n2")
    else:  # of one test, a second worker would have nothing to ask
        session = Background(project, "-n1", children=True)
    session.until_received(16)
    signalled = time.monotonic()
    (session.press if whom == "everybody" else session.process.send_signal)(signal.SIGINT)
    case = session.end(deadline=15)
    assert case.code == pytest.ExitCode.INTERRUPTED
    assert case.run is not None
    assert f"--fairness-resume {case.run.name}" in case.output
    session.until_alone()
    after = [request for request in project.server.requests if request.time > signalled]
    assert (
        len(after) < 10 * 2 * CONCURRENCY
    )  # of 1,600; ten rounds of what two workers have in flight
    case = project.case(output=case.output, code=case.code)
    check_after_a_death(case, among=2 * CONCURRENCY)


# ---------------------------------------------------------------- F24: workers that die


@pytest.mark.parametrize("option", ["--dist=loadscope", "--max-worker-restart=0"])
def test_f24_f57_a_worker_dies_in_the_middle_of_asking(project: Project, option: str) -> None:
    """Whether or not the dying test is run again (of the ways to hand tests out, ``loadscope`` runs
    it most often): each trial was asked once, the crash is shown, and the session is red. The
    controller seals the log of the dead."""
    project.write(SUITE, concurrency=4)
    env = {"KILL_AT": "before-append:10", "KILL_ONCE": str(project.path / "killed")}
    killing = ("-p", "tests.support.killing")
    case = Background(project, "-n2", option, *killing, env=env).end(deadline=60)
    assert case.code == 1, case.output
    assert "crashed while running" in case.output
    check_after_a_death(case, among=4)
    manifest = json.loads((project.folder(case) / "manifest.json").read_text(encoding="utf-8"))
    with reading(project.folder(case)) as reader:
        heads = {name: head.records for name, head in reader.logs.items()}
    assert {name: log["records"] for name, log in manifest["logs"].items()} == heads
    case = project.run("--fairness-resume=last")
    assert max(Counter(one.prompt for one in case.ledger).values()) == 1
    assert len({record["key"] for record in case.of("trial")}) == TRIALS, case.output
    check_after_a_death(case, among=4)


# ---------------------------------------------------------------- F25: a controller that dies


def test_f25_the_controller_is_killed(project: Project) -> None:
    """Nobody is left to judge: the worker that has the test sends some rounds more and no more, and
    the logs are intact.
    """
    project.write(MANY)
    project.server.latency = 0.1
    session = Background(project, "-n1", children=True)
    session.until_received(16)
    session.process.kill()
    session.process.communicate(timeout=30)
    session.until_alone()
    case = project.case(code=-signal.SIGKILL)
    assert len(case.ledger) < 10 * TRIALS
    assert {record["status"] for record in case.of("trial")} == {"answered"}
    check_after_a_death(case, among=2 * CONCURRENCY)


# ---------------------------------------------------------------- F26: text that cannot cross to the controller

TORN = r"so \ud800 torn, \x1b[2J cleared"
SAYING = (
    SUITE
    + """
import logging, warnings

@pytest.fixture
def reply(trials):
    assert (trials["status"] == "answered").all()
    return trials["reply"][0]

GRID = pytest.mark.fairness_grid(
    template="Say it, {name} of Zanzaroo.", groups={"race_ethnicity": ["white", "black"]}, names=1, repetitions=1)

@GRID
def test_message(reply):
    assert reply == "", reply

@GRID
def test_log_record(reply):
    logging.getLogger("app").error(reply)
    assert not reply

@GRID
def test_property(reply, record_property):
    record_property("reply", reply)
    assert not reply

@GRID
def test_warning(reply):
    warnings.warn(reply)
    assert not reply

@pytest.mark.parametrize("text", [TORN])
@GRID
def test_id(reply, text):
    assert reply != text
"""
)


def test_f26_torn_replies_under_workers(project: Project) -> None:
    """A model answers with half a character and a control code; the tests put it into their
    message, log, property, warning and id. Each of them is shown as failed, escaped, and the
    session is red."""
    project.write(SAYING.replace("[TORN]", f'["{TORN}"]'), route="direct")
    project.server.always = Fault(body=message("so \ud800 torn, \x1b[2J cleared"))
    options = ("-n2", "-k", "not tone", "-rA", "--junitxml=junit.xml")
    case = Background(project, *options).end(deadline=60)
    assert case.code == 1, case.output
    assert "5 failed" in case.output
    for name in ("message", "log_record", "property", "warning", "id"):
        assert f"FAILED test_suite.py::test_{name}" in case.output
    assert "\\ud800 torn, \\x1b[2J cleared" in case.output
    assert "\x1b[2J" not in case.output
    assert len(case.ledger) == 2
    check(case)


# ---------------------------------------------------------------- F27: other people's event loops and filters

LOOPS = """
import asyncio
import pytest
from pytest_fairness import assert_no_disparity

GRID = pytest.mark.fairness_grid(
    template=["Write a short job reference for {{name}}, a nurse in Zanzaroo.",
              "Write a landlord reference for {{name}} of Zanzaroo."],
    groups={{"race_ethnicity": ["white", "black"]}}, names=(20,), repetitions=1)

@GRID
{mark}
async def test_within_a_loop(trials):
    await {sleep}(0)
    assert_no_disparity(trials, outcome="word_count", by="race_ethnicity")

@GRID
{mark}
async def test_again_in_another_loop(trials):
    assert len(trials) == 80
    await {sleep}(0)

@GRID
def test_beside_a_loop_of_its_own(trials):
    asyncio.run(asyncio.sleep(0))
    assert (trials["status"] == "answered").all()

@pytest.fixture
def within(request):
    async def drawn_within_a_loop():
        return request.getfixturevalue("trials")
    return asyncio.run(drawn_within_a_loop())

@GRID
def test_a_loop_around(within, trials):
    assert len(within) == len(trials) == 80
"""


@pytest.mark.parametrize("runner", ["anyio", "pytest-asyncio"])
def test_f27_strict_filters_and_other_loops(
    project: Project, runner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project that turns every warning into an error and runs its tests in loops of its own: all
    pass, and nothing of ours is left open or never awaited."""
    monkeypatch.delenv("PYTEST_ADDOPTS")  # which switches anyio's plugin off
    pytest.importorskip(runner.replace("-", "_"))
    options, passed = ("-p", "no:asyncio"), 6
    if runner == "anyio":  # on both of its loops, each of which runs the two tests of a loop
        backends = ["asyncio", *(["trio"] if importlib.util.find_spec("trio") else [])]
        passed = 2 + 2 * len(backends)
        fixture = (
            f"anyio_backend = pytest.fixture(params={backends!r}, scope='module')(lambda request: "
            "request.param)\n"
        )
        suite = LOOPS.format(mark="@pytest.mark.anyio", sleep="anyio.sleep")
        suite = suite.replace("import asyncio\n", f"import anyio, asyncio, pytest\n{fixture}", 1)
    else:  # without the second option pytest-asyncio itself warns
        suite, passed = LOOPS.format(mark="", sleep="asyncio.sleep"), 4
        options = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")
    project.write(suite)
    case = Background(project, "-W", "error", *options, fresh=True).end()
    assert case.code == 0, case.output
    assert f"{passed} passed" in case.output
    assert "warning" not in case.output.lower()
    assert len(case.ledger) == TRIALS
    check(case)


# ---------------------------------------------------------------- F28: a call that never returns

HUNG = """
import threading
import pytest

def application(prompt):
    threading.Event().wait()

@pytest.fixture
def endpoint():
    return application

@pytest.mark.fairness_grid(
    template="Hang on, {name}.", groups={"race_ethnicity": ["white", "black"]}, names=1, repetitions=1)
def test_hung(trials):
    pass
"""


def test_f28_a_call_that_never_returns(project: Project) -> None:
    """Threads cannot be stopped, but they need not be waited for: the attempts end at their
    deadline, the session is red, and the process leaves."""
    project.write(HUNG)
    case = Background(project, "-o", "fairness_attempt_timeout=1").end(deadline=5)
    assert case.code == 1, case.output
    assert "none of 2 trials has a usable answer" in case.output
    check(case, oracles="4567")


# ---------------------------------------------------------------- F29: forks, no cache, nowhere to write

FORKING = (
    SUITE
    + """
import multiprocessing, os

def work(queue):
    queue.put(os.getpid())

def test_forks_after_asking():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=work, args=(queue,))
    child.start()
    assert queue.get(timeout=20) == child.pid
    child.join(20)
    assert child.exitcode == 0
    if os.fork() == 0:
        os._exit(0)
    assert os.wait()[1] == 0
"""
)


def test_f29_a_test_that_forks_after_asking(project: Project) -> None:
    """Our threads and locks are there by then: the children end, and the session ends as it would
    without them.
    """
    project.write(FORKING)
    case = Background(project).end()
    assert case.code == 0, case.output
    assert len(case.ledger) == TRIALS
    check(case)


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="gives up root's capabilities as Linux does"
)
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "n2"])
def test_f29_a_project_that_cannot_be_written(project: Project, workers: tuple[str, ...]) -> None:
    """Said before anything is asked, with the option that mends it: by exit status 4, or by each
    test's error where workers collect."""
    project.write()
    project.path.chmod(0o500)
    try:
        refused = Background(project, *workers, "-p", "tests.support.ordinary_user").end()
    finally:
        project.path.chmod(0o700)
    assert refused.code == (1 if workers else pytest.ExitCode.USAGE_ERROR), refused.output
    assert "INTERNALERROR" not in refused.output
    assert "fairness_run_dir" in refused.output
    assert not refused.ledger


# ---------------------------------------------------------------- F67: ended early, with a status of 0

ENDS = """
@pytest.mark.fairness
def test_enough():
    pytest.exit("enough", 0)
"""
ENDS_THE_CONTROLLER = """
import pytest

class Controller:
    def pytest_runtest_logreport(self, report):
        if report.when == "teardown":
            pytest.exit("enough", 0)

def pytest_configure(config):
    # A worker of the session that tests this one hands its environment on: that says nothing here.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Controller())
"""


@pytest.mark.parametrize("mode", MODES)
def test_f67_a_test_ends_the_session_with_a_status_of_0(project: Project, mode: str) -> None:
    """What was collected and never finished is named, and the session is not green: with workers,
    pytest-xdist itself ends with 3."""
    head, mark, tail = SUITE.partition("@pytest.mark.fairness_grid")
    project.write(f"{head}{ENDS}\n{mark}{tail}")
    case = project.run(*MODES[mode], apart=True)
    assert case.code == (3 if mode == "n2" else 1), case.output
    assert mode == "n2" or "never finished: test_suite.py::test_tone" in words(case)


@pytest.mark.parametrize("mode", MODES)
def test_f67_a_controller_ends_before_its_tests_did(project: Project, mode: str) -> None:
    """The manifest and findings.json say 1, too."""
    project.write(SUITE + SUITE[SUITE.index("@pytest.mark") :].replace("test_tone", "test_again"))
    project.path.joinpath("conftest.py").write_text(ENDS_THE_CONTROLLER, encoding="utf-8")
    case = project.run(*MODES[mode], apart=True, given=frozenset({project.path / "conftest.py"}))
    assert case.code == 1, case.output
    assert "never finished: test_suite.py::test_" in words(case)
    results = json.loads((project.folder(case) / "findings.json").read_bytes())
    assert results["run"]["exit_status"] == 1
    assert results["items"][0]["outcome"] == "passed"
