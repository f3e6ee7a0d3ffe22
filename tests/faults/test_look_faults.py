"""F73 of the catalogue in docs/reliability.md: a session that ends between two looks, or inside the
stage of one.

Its verdict is that of the last look made, and whoever resumes it comes to the looks of a run that
nobody disturbed. ``benchmarks/crashes.py`` kills many times over all stages.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Any

import pytest

from pytest_fairness.reports.findings_json import read_results

from .conftest import SUITE, Project, same_as_undisturbed
from .oracles import Case, check
from .sessions import Background
from .test_process_faults import CONCURRENCY, check_after_a_death

LOOKS = SUITE.replace("names=(20,)", "names=(10, 20)").replace(
    "    template=[", '    template=["Praise {name} of " + PLACE, "Describe {name} of " + PLACE, '
)
#: Trials at the two looks: 4 templates × 2 groups × 10 and 20 names.
FIRST, WHOLE = 80, 160


def looks_of(case: Case) -> dict[str, Any]:
    """What the one finding of *case* says of its looks."""
    assert case.run is not None
    (finding,) = read_results(case.run).findings
    looks: dict[str, Any] = finding.details["looks"]
    return {**looks, "sentence": finding.sentence, "verdict": finding.verdict}


def decisions(case: Case) -> list[tuple[int, int, str]]:
    """The looks that the log of *case* has, each as often as it was made."""
    return [(one["number"], one["rows"], one["decision"]) for one in case.of("look")]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("point", "asked"),
    [("before-look:1", FIRST), ("after-look:1", FIRST), ("mid-append:110", 110)],
    ids=["before the first look", "between the looks", "inside the second stage"],
)
def test_f73_killed(project: Project, point: str, asked: int) -> None:
    """Resumed, it comes to the same looks, and what was finished is not asked again."""
    project.write(LOOKS)
    case = Background(project, "-p", "tests.support.killing", env={"KILL_AT": point}).end()
    assert case.code == -signal.SIGKILL, case.output
    assert abs(len(case.ledger) - asked) <= 2 * CONCURRENCY
    check_after_a_death(case)
    case = project.run("--fairness-resume=last", "--fairness-retry-unknown", repeats=2)
    assert {record["status"] for record in case.of("trial")} == {"answered"}
    assert len(case.ledger) <= WHOLE + CONCURRENCY  # what was under way, asked again on request
    assert [look["names"] for look in looks_of(case)["made"]] == [10, 20]
    assert set(decisions(case)) == {(1, FIRST, "go on"), (2, WHOLE, "stop")}
    same_as_undisturbed(project, case)


#: Lets the deadline pass once so many trials of the plan of the second stage are there, of which the
#: first stage has asked every other one.
DEADLINE = """
import time
from pytest_fairness.engine.engine import Engine

run, calls = Engine.run, []

def run_until(engine, planned, **more):
    calls.append(planned)
    if len(calls) == 2:
        run(engine, planned[:PART])
        engine.until = time.monotonic()
    return run(engine, planned, **more)

Engine.run = run_until
"""


@pytest.mark.parametrize(("part", "asked"), [(0, FIRST), (80, 120)], ids=["between", "inside"])
def test_f73_the_deadline(project: Project, part: int, asked: int) -> None:
    """The verdict of the first look, at what it had to spend: INCONCLUSIVE, and the sentence says
    where it stopped. What the second stage asked is kept, and its rest asked on resuming.
    """
    project.write(LOOKS)
    hook = project.path / "conftest.py"
    hook.write_text(DEADLINE.replace("PART", str(part)), encoding="utf-8")
    case = project.run("--fairness-deadline=86400", apart=True)
    check(case)
    assert len(case.ledger) == asked
    looks = looks_of(case)
    assert looks["verdict"] == "INCONCLUSIVE"
    assert "stopped by the deadline at look 1 of 2 (10 names a group)" in looks["sentence"]
    assert f"{WHOLE - asked} trials of the stage were not run" in looks["stopped"]
    assert decisions(case) == [(1, FIRST, "go on")]
    hook.unlink()

    case = project.run("--fairness-resume=last")
    assert set(Counter(one.prompt for one in case.ledger).values()) == {1}
    assert len(case.ledger) == WHOLE
    assert looks_of(case)["stopped"] == ""
    same_as_undisturbed(project, case)


def test_f73_the_cost_cap(project: Project) -> None:
    """The same, and the sentence names the cap; a session with a higher one goes on."""
    project.write(LOOKS)
    cost = read_results(project.run().run or project.path).run["cost"]
    case = project.run(f"--fairness-max-cost={0.75 * cost}")
    check(case)
    assert FIRST <= len(case.ledger) < WHOLE
    looks = looks_of(case)
    assert looks["verdict"] == "INCONCLUSIVE"
    assert "stopped by the cost cap at look 1 of 2 (10 names a group)" in looks["sentence"]
    case = project.run("--fairness-resume=last")
    assert len(case.ledger) == WHOLE
    same_as_undisturbed(project, case)
