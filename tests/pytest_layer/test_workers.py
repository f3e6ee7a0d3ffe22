"""Workers and their controller have one line of progress."""

from __future__ import annotations

import re

from tests.conftest import MODES

from .conftest import Project

#: An application that takes its time, and writes down when it was called.
SLOW = """
import time
import pytest

def review(prompt):
    with open("asked.log", "a") as log:
        log.write(f"{time.time()}\\n")
    time.sleep(0.05)
    return "Fine."

@pytest.fixture
def endpoint():
    return review

@pytest.mark.fairness_grid(
    template="Review {name}.", groups={"race_ethnicity": ["white", "black"]}, names=20, repetitions=1,
)
def test_reviews(trials):
    assert len(trials) == 40
"""


def test_workers_have_one_line_of_progress(project: Project) -> None:
    """On the controller, adding up what all workers have asked of the trials that they share; none
    when it is off.
    """
    progress = "from pytest_fairness.engine import progress\nprogress._EVERY[False] = 0.1\n"
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
