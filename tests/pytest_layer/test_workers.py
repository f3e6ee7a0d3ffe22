"""Workers and their controller: one line of progress, and who is refused."""

from __future__ import annotations

import re
import sys

import execnet
import pytest

from pytest_fairness.pytest_layer import xdist
from tests.conftest import MODES

from .conftest import Project, shown
from .suites import REVIEWS

#: An application that takes its time, and writes down when it was called.
SLOW = (
    """
import time
import pytest

def review(prompt):
    with open("asked.log", "a") as log:
        log.write(f"{time.time()}\\n")
    time.sleep(0.05)
    return "Fine."
"""
    + REVIEWS
)


def test_workers_have_one_line_of_progress(project: Project) -> None:
    """On the controller, adding up what all workers have asked of the trials that they share; none
    when it is off.
    """
    progress = "from pytest_fairness.engine import progress\nprogress._MOST = 0.1\n"
    project.write(SLOW + SLOW.replace("reviews", "again"), conftest=progress)
    options = ("-o", "fairness_concurrency=2")
    result = project.run(*options, mode=MODES["n2"])
    result.assert_outcomes(passed=2)
    lines = re.findall(r"^.*review: (\d+)/(\d+) trials, .*$", result.stdout.str(), re.MULTILINE)
    assert lines
    assert {int(planned) for _, planned in lines} <= {40}
    assert len((project.path / "asked.log").read_text().splitlines()) == 40
    result = project.run(*options, "-o", "fairness_progress=off", apart=True)
    result.assert_outcomes(passed=2)
    assert not re.search(r"review: \d+/\d+ trials", result.stdout.str())


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        ("popen", False),
        ("popen//chdir=there", False),
        ("popen//python=python3.12", True),
        ("popen//via=box", True),
        ("ssh=box", True),
        ("socket=box:1", True),
    ],
)
def test_whoever_may_be_on_another_machine_is_refused(spec: str, refused: bool) -> None:
    """Workers of ``-n`` have the controller's disk by what they are."""
    why = xdist.refusal(execnet.XSpec(spec))
    assert (why is not None) is refused
    assert why is None or (spec in why and "--fairness-shard" in why)


def test_a_refused_worker_asks_nothing_and_says_so(project: Project) -> None:
    """Its fairness tests fail with the sentence, other tests run; nothing is asked, and no folder of
    a run is made on its side.
    """
    project.write(SLOW + "\n\ndef test_other():\n    pass\n")
    spec = f"popen//python={sys.executable}"
    result = project.run("--dist", "load", "--tx", spec, mode=(), apart=True)
    result.assert_outcomes(passed=1, errors=1)
    assert "ask a shard on each machine" in shown(result)
    assert not (project.path / "asked.log").exists()


def test_a_session_without_fairness_tests_is_left_alone(project: Project) -> None:
    """Workers anywhere are no business of ours then."""
    project.write("def test_other():\n    pass\n")
    spec = f"popen//python={sys.executable}"
    result = project.run("--dist", "load", "--tx", spec, mode=(), apart=True)
    result.assert_outcomes(passed=1)
    assert "fairness:" not in shown(result)
    assert not (project.path / ".fairness").exists()
