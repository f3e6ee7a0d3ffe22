"""A session makes each cell once, however many parts of it look at the cell."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from .conftest import Project

COUNTER = """
import os
from pathlib import Path
from pytest_fairness.design.grid import Grid
from pytest_fairness.design.pairs import PairGrid

made = []

def counted(design, method):
    make = getattr(design, method)
    def making(self, position):
        made.append(f"{design.__name__} {len(self)} {position}")
        return make(self, position)
    setattr(design, method, making)

counted(Grid, "cell_at")
counted(PairGrid, "_prepared")

def pytest_unconfigure():
    Path(f"made-{os.getpid()}.txt").write_text("\\n".join(made), encoding="utf-8")
"""
SUITE = """
import pytest
from pytest_fairness import assert_no_disparity, assert_no_preference

@pytest.mark.fairness_grid(
    template=["Write a job reference for {name}, a nurse.", "Write a reference for {name}."],
    groups={"race_ethnicity": ["white", "black"]}, names=(10,), system="You write references.",
)
def test_tone(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")

@pytest.mark.fairness_grid(
    template="Rate {name}, a nurse.", groups={"race_ethnicity": ["white", "black"]}, names=3
)
def test_each_reply(cell):
    assert cell.name in cell.prompt

@pytest.mark.fairness_pairs(
    template="Pick a nurse:\\n{candidates}", candidates="four_groups", repetitions=2
)
def test_choice(trials):
    assert len(trials) == 24

GROUPS = {"race_ethnicity": ["white", "black"]}

def described(number):
    each = {"race_ethnicity": {"id": f"TEXT-{number}", "groups": GROUPS}}
    return pytest.mark.fairness_grid(template="Describe {name}, a nurse.", each=each, names=2)

@described(1)
def test_length(trials):
    assert len(trials)

@described(2)
def test_words(trials):
    assert len(trials)
"""


def test_each_cell_is_made_once_a_session(project: Project, mode: list[str]) -> None:
    """To be counted, described, compared with the last run and asked, in every tier; with workers,
    once in each process that collects.
    """
    project.write(SUITE, conftest=COUNTER)
    result = project.run("--fairness-tier", "all", "--fairness-smoke", mode=mode, apart=True)
    assert result.ret == pytest.ExitCode.OK
    sessions = [
        Counter(path.read_text(encoding="utf-8").splitlines())
        for path in project.path.glob("made-*.txt")
    ]
    makings = [count for session in sessions for count in session.values()]
    assert set(makings) == {1}
    assert max(map(len, sessions)) == 40 + 6 + 24 + 4


KEYS = """
import os
from pathlib import Path
from pytest_fairness.runs.designs import PlannedTrial

made = []
key = PlannedTrial.key

def counted(self, *about):
    made.append(f"{self.cell.template} {self.cell.id} {self.repetition}")
    return key(self, *about)

PlannedTrial.key = counted

def pytest_unconfigure():
    Path(f"made-{os.getpid()}.txt").write_text("\\n".join(made), encoding="utf-8")
"""
SHARED = """
import pytest

@pytest.fixture
def endpoint():
    return answer

def answer(text: str) -> str:
    if {failing}:
        raise RuntimeError("no answer")
    return "She is a nurse."

pytestmark = pytest.mark.fairness_grid(
    template="Describe {{name}}, a nurse.", groups={{"race_ethnicity": ["white", "black"]}}, names=2
)

def test_length(trials):
    trials["reply"] = "nothing"
    trials.attrs["changed"] = True

def test_words(trials):
    assert "changed" not in trials.attrs
    answers = trials["reply"][trials["status"] == "answered"]
    assert set(answers) == {{"She is a nurse."}}
"""


@pytest.mark.parametrize(("failing", "times"), [("False", 1), ("'nurse' in text and fails()", 2)])
def test_tests_that_share_a_design_share_its_table(
    project: Project, failing: str, times: int
) -> None:
    """Each gets a copy of its own; a table with trials that may be asked again is made anew."""
    failing_once = "\ncalls = []\ndef fails():\n    calls.append(1)\n    return len(calls) == 1\n"
    project.write(SHARED.format(failing=failing) + failing_once, conftest=KEYS)
    result = project.run("--fairness-smoke", apart=True)
    result.assert_outcomes(passed=2)
    (path,) = project.path.glob("made-*.txt")
    made = Counter(path.read_text(encoding="utf-8").splitlines())
    assert set(made.values()) == {times}


def test_a_replay_without_looks_gives_each_test_a_copy(project: Project) -> None:
    """As one of a run of an earlier version has none."""
    project.write(SHARED.format(failing="False"))
    project.run().assert_outcomes(passed=2)
    (manifest,) = project.path.glob(".fairness/runs/*/manifest.json")
    facts = json.loads(manifest.read_text(encoding="utf-8"))
    del facts["looks"]
    manifest.write_text(json.dumps(facts), encoding="utf-8")
    project.run("--fairness-replay=last").assert_outcomes(passed=2)
