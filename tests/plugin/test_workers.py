"""Workers, controllers and the signals between them: nothing is lost, nobody asks on behalf of the dead."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import GRID

#: An application that takes its time, and writes down when it was asked.
SLOW = """
import time
import pytest

def review(prompt):
    with open("asked.log", "a") as log:
        log.write(f"{time.time()}\\n")
    time.sleep(0.1)
    return "Fine."

@pytest.fixture
def endpoint():
    return review

@pytest.mark.fairness_grid(
    template="Review {name}.", groups={"race_ethnicity": ["white", "black"]}, names=20, repetitions=PLAN,
)
def test_reviews(trials):
    assert len(trials) == 40 * PLAN
"""
OPTIONS = ("-p", "no:cacheprovider", "--fairness-concurrency", "4")


def asked(pytester: pytest.Pytester) -> list[float]:
    log = pytester.path / "asked.log"
    return [float(line) for line in log.read_text().split()] if log.exists() else []


def start(pytester: pytest.Pytester, *arguments: str) -> subprocess.Popen[bytes]:
    """A session in the background that has begun to ask."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *OPTIONS, *arguments],
        cwd=pytester.path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    until = time.monotonic() + 30
    while len(asked(pytester)) < 12 and time.monotonic() < until and process.poll() is None:
        time.sleep(0.05)
    if len(asked(pytester)) < 12:
        process.kill()
        pytest.fail(process.communicate()[0].decode())
    return process


def statuses(folder: Path) -> list[str]:
    lines = [json.loads(line) for log in folder.glob("trials*.jsonl") for line in log.read_text().splitlines()]
    return [record["status"] for record in lines if record["type"] == "trial"]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_terminated_session_loses_nothing(pytester: pytest.Pytester, last_run: Callable[[], Path]) -> None:
    """SIGTERM while it asks: nothing more is sent, what is under way is logged with its answer, the session ends as
    after Ctrl-C and says how to go on."""
    pytester.makepyfile(test_app=SLOW.replace("PLAN", "25"))
    process = start(pytester, "-p", "no:xdist")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert f"--fairness-resume {last_run().name}" in out.decode()
    assert len(asked(pytester)) < 500
    assert statuses(last_run()) == ["answered"] * len(asked(pytester))


@pytest.mark.skipif(os.name != "posix", reason="a process's parent never changes on Windows")
def test_workers_stop_when_their_controller_is_killed(pytester: pytest.Pytester, last_run: Callable[[], Path]) -> None:
    """Nobody is left to judge: within a second no worker asks any more, and the log holds what was answered."""
    pytester.makepyfile(test_app=SLOW.replace("PLAN", "25"))
    process = start(pytester, "-n2")
    process.kill()
    process.communicate(timeout=10)
    killed = time.time()
    time.sleep(2.5)
    assert max(asked(pytester)) < killed + 1.5
    assert len(asked(pytester)) < 500
    assert set(statuses(last_run())) == {"answered"}


def test_workers_have_one_line_of_progress(pytester: pytest.Pytester) -> None:
    """On the controller, adding up what all workers have asked of the trials that they share; none when told so."""
    pytester.makepyfile(test_app=SLOW.replace("PLAN", "1") + SLOW.replace("PLAN", "1").replace("reviews", "again"))
    pytester.makeconftest("from pytest_fairness.running import progress\nprogress._EVERY['log'] = 0.2\n")
    result = pytester.runpytest_subprocess(*OPTIONS, "-n2")
    result.assert_outcomes(passed=2)
    told = re.findall(r"^.*review \(\d workers\): (\d+)/(\d+) trials, .*$", result.stdout.str(), re.MULTILINE)
    assert told
    assert {int(planned) for _, planned in told} <= {40}
    assert len(asked(pytester)) == 40

    pytester.path.joinpath("asked.log").unlink()
    result = pytester.runpytest_subprocess(*OPTIONS, "-n2", "--fairness-progress", "off")
    result.assert_outcomes(passed=2)
    assert "workers):" not in result.stdout.str()


ELSEWHERE = """
import pytest

@pytest.hookimpl(optionalhook=True, trylast=True)
def pytest_configure_node(node):
    if {apart}:  # as a worker on another machine would see it: the same path, and another disk
        node.workerinput["fairness_settings"]["run_dir"] = {runs!r}
"""


@pytest.mark.parametrize("apart", [False, True], ids=["one disk", "two disks"])
def test_workers_in_another_directory(
    pytester: pytest.Pytester, tmp_path: Path, last_run: Callable[[], Path], apart: bool
) -> None:
    """A worker started elsewhere logs into the controller's run, whether it sees the controller's disk or not."""
    pytester.makepyfile(test_model=GRID)
    pytester.makeconftest(ELSEWHERE.format(apart=apart, runs=str(tmp_path / "other" / "runs")))
    pytester.path.joinpath("pytest.ini").write_text("[pytest]\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    result = pytester.runpytest_subprocess(
        *OPTIONS, "--dist=load", f"--tx=popen//chdir={elsewhere}", f"--rsyncdir={pytester.path}", str(pytester.path)
    )
    result.assert_outcomes(passed=1)
    assert statuses(last_run()) == ["answered"] * 160
    assert not (tmp_path / "other").exists()
