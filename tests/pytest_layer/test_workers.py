"""Workers and their controller: one line of progress, and one run wherever the workers stand."""

from __future__ import annotations

import json
import re
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
OPTIONS = ("-p", "no:cacheprovider", "-o", "fairness_concurrency=4")


def asked(pytester: pytest.Pytester) -> list[float]:
    log = pytester.path / "asked.log"
    return [float(line) for line in log.read_text().split()] if log.exists() else []


def statuses(folder: Path) -> list[str]:
    lines = [json.loads(line) for log in folder.glob("trials*.jsonl") for line in log.read_text().splitlines()]
    return [record["status"] for record in lines if record["type"] == "trial"]


def test_workers_have_one_line_of_progress(pytester: pytest.Pytester) -> None:
    """On the controller, adding up what all workers have asked of the trials that they share; none when told so."""
    pytester.makepyfile(test_app=SLOW.replace("PLAN", "1") + SLOW.replace("PLAN", "1").replace("reviews", "again"))
    pytester.makeconftest("from pytest_fairness.engine import progress\nprogress._EVERY['log'] = 0.2\n")
    result = pytester.runpytest_subprocess(*OPTIONS, "-n2")
    result.assert_outcomes(passed=2)
    told = re.findall(r"^.*review \(\d workers\): (\d+)/(\d+) trials, .*$", result.stdout.str(), re.MULTILINE)
    assert told
    assert {int(planned) for _, planned in told} <= {40}
    assert len(asked(pytester)) == 40

    pytester.path.joinpath("asked.log").unlink()
    result = pytester.runpytest_subprocess(*OPTIONS, "-n2", "-o", "fairness_progress=off")
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
