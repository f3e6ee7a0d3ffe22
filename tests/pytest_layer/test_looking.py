"""A grid is asked stage by stage, and each assertion is judged at each of its looks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pytest_fairness.analysis.looks import EARLY, RED_OF_BUDGET
from pytest_fairness.reports.verification import verify_run
from pytest_fairness.statistics.spending import nominal_levels

from .conftest import Project, shown

#: Two groups of given names, ``A01`` and ``B01`` …, whose place in the order stands in the name: what
#: a system is like at each stage is written down as ``SCORE``.
HEAD = """
import os
import pandas as pd
import pytest
from pytest_fairness import (
    assert_baseline, assert_equivalent, assert_four_fifths, assert_no_disparity,
)

TEAMS = {"team": {group.lower(): [f"{group}{place:02}" for place in range(1, 81)] for group in GROUPS}}

def score(group, place, template):
    return SCORE

@pytest.fixture
def endpoint():
    def reply(prompt):
        verb, name = prompt.split()[:2]
        with open("calls.txt", "a") as file:
            file.write(f"{name}\\n")
        DIES
        return f"{score(name[0].lower(), int(name[1:]), verb)}/10"
    return reply

def graded(**arguments):
    asked = {
        "template": ["Rate {name} from 1 to 10.", "Grade {name} from 1 to 10."],
        "groups": TEAMS, "repetitions": 2,
    }
    return pytest.mark.fairness_grid(**{**asked, **arguments})
"""
RATED = """
@graded(LOOKS)
def test_rated(trials):
    assert_no_disparity(trials, outcome="rating", by="team")
"""
#: Means and spreads of both groups are the same at 10, 20, 40 and 80 names.
FAIR = "4 + place % 5"
BIASED = f"{FAIR} - 3 * (group == 'b')"
UNDECIDED = f"{FAIR} - (place % 5 == 0) * (group == 'b') * (place % 2)"


def suite(
    score: str = FAIR, tests: str = RATED, *, looks: str = "", groups: str = "AB", dies: str = ""
) -> str:
    """The module of *tests* about a system that answers with *score*."""
    head = HEAD.replace("SCORE", score).replace("GROUPS", repr(groups)).replace("DIES", dies)
    return head + tests.replace("LOOKS", looks)


def names_of(project: Project) -> dict[str, int]:
    """How many names of each group the newest run has in its log."""
    names: dict[str, set[str]] = {}
    for record in project.records("trial"):
        cell = record["cell"]
        names.setdefault(cell["groups"]["team"], set()).add(cell["name"])
    return {group: len(several) for group, several in names.items()}


def names_asked(project: Project) -> Counter[str]:
    """How often the system was asked about each name."""
    return Counter(project.path.joinpath("calls.txt").read_text(encoding="utf-8").split())


def made(finding: dict[str, Any]) -> list[int]:
    """The names at each look that *finding* made."""
    return [look["names"] for look in finding["details"]["looks"]["made"]]


def problems(project: Project) -> list[str]:
    """What an audit of the newest run finds."""
    return [str(problem) for problem in verify_run(project.last, lambda *_: None).problems]


def test_a_planted_bias_stops_the_asking_at_the_first_look(project: Project) -> None:
    """Red at 10 names a group: no other name is asked, and the finding says that it stopped early.
    A replay repeats the look and asks nothing.
    """
    project.write(suite(BIASED))
    result = project.run()
    result.assert_outcomes(failed=1)
    (finding,) = project.findings
    looks = finding["details"]["looks"]
    assert (finding["verdict"], looks["planned"], made(finding)) == ("FAIL", [10, 20, 40], [10])
    assert names_of(project) == {"a": 10, "b": 10}
    assert (looks["stopped_early"], looks["stopped"]) == (True, "")
    assert EARLY in finding["notes"]
    assert finding["sentence"].endswith("; decided at look 1 of 3 (10 names a group).")
    assert "decided at look 1 of 3 (10 names a group)" in shown(result)
    assert problems(project) == []
    calls = names_asked(project)
    project.run("--fairness-replay", "last").assert_outcomes(failed=1)
    assert project.findings[0]["details"]["looks"] == looks
    assert names_asked(project) == calls


def test_a_fair_system_is_asked_until_it_is_green(project: Project) -> None:
    """Each look at its own level, on all names so far, and one record of the log for each."""
    project.write(suite())
    project.run().assert_outcomes(passed=1)
    (finding,) = project.findings
    assert (finding["verdict"], made(finding)) == ("PASS", [10, 20, 40])
    assert finding["n_per_group"] == {"a": 160, "b": 160}
    assert names_of(project) == {"a": 40, "b": 40}
    assert set(names_asked(project).values()) == {2}, "one call a template: the replies are kept"
    looks = finding["details"]["looks"]
    levels = nominal_levels((0.25, 0.5, 1.0), 0.015, sides=2)
    assert [look["red"] for look in looks["made"]] == pytest.approx(levels)
    assert finding["family"]["alpha"] == pytest.approx(levels[-1])
    assert finding["family"]["false_alarm"] == pytest.approx(RED_OF_BUDGET * 0.015)
    records = project.records("look")
    assert [(record["number"], record["decision"]) for record in records] == [
        (1, "go on"),
        (2, "go on"),
        (3, "stop"),
    ]
    assert [record["rows"] for record in records] == [80, 160, 320]
    assert [record["red"] for record in records] == pytest.approx(levels)
    assert len({record["cells"] for record in records}) == 3
    assert problems(project) == []


def test_what_no_look_decides_is_inconclusive_at_the_last(project: Project) -> None:
    project.write(suite(UNDECIDED))
    result = project.run()
    result.assert_outcomes(passed=1, warnings=1)
    (finding,) = project.findings
    assert (finding["verdict"], finding["reason"]) == ("INCONCLUSIVE", "PRECISION")
    assert made(finding) == [10, 20, 40]
    assert finding["sentence"].endswith("; open at look 3 of 3 (40 names a group).")
    way = finding["details"]["looks"]["way"]
    assert [step["names"] for step in way] == [10, 20, 40]
    widths = [step["high"] - step["low"] for step in way]
    assert widths == sorted(widths, reverse=True)
    assert problems(project) == []
