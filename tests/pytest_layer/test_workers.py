"""Workers and their controller: one line of progress, and one run wherever the workers stand."""

from __future__ import annotations

import re

import pytest

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


def test_workers_have_one_line_of_progress(pytester: pytest.Pytester) -> None:
    """On the controller, adding up what all workers have asked of the trials that they share; none when told so."""
    pytester.makepyfile(test_app=SLOW.replace("PLAN", "1") + SLOW.replace("PLAN", "1").replace("reviews", "again"))
    pytester.makeconftest("from pytest_fairness.engine import progress\nprogress._EVERY[False] = 0.2\n")
    result = pytester.runpytest_subprocess(*OPTIONS, "-n2")
    result.assert_outcomes(passed=2)
    told = re.findall(r"^.*review: (\d+)/(\d+) trials, .*$", result.stdout.str(), re.MULTILINE)
    assert told
    assert {int(planned) for _, planned in told} <= {40}
    assert len(asked(pytester)) == 40

    pytester.path.joinpath("asked.log").unlink()
    result = pytester.runpytest_subprocess(*OPTIONS, "-n2", "-o", "fairness_progress=off")
    result.assert_outcomes(passed=2)
    assert "/40 trials" not in result.stdout.str()
