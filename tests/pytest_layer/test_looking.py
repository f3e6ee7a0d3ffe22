"""A grid is asked stage by stage, and each assertion is judged at each of its looks."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.analysis.looks import EARLY, RED_OF_BUDGET
from pytest_fairness.reports.verification import verify_run
from pytest_fairness.statistics.spending import nominal_levels
from tests.support.runs import archived, relogged
from tests.support.servers import Fault, ModelServer

from .conftest import GRID, Project, shown

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
        verb, name = prompt.replace(".", " ").split()[:2]
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
#: Templates × repetitions: how often a system is asked about a name.
CALLS = 4
#: Means and spreads of both groups are the same at 10, 20, 40 and 80 names.
FAIR = "4 + place % 5"
BIASED = f"{FAIR} - 3 * (group == 'b')"
UNDECIDED = f"{FAIR} - (place % 5 in (0, 2, 4)) * (group == 'b')"
#: The grid of the other modules, which looks.
LOOKS = GRID.replace("names=(20,), ", "")
#: Biased where it rates, fair where it grades: what each of the modes comes to.
EVERY_MODE = (
    HEAD.replace("SCORE", f"{FAIR} - 3 * (group == 'b') * (template == 'Rate')")
    .replace("GROUPS", "'AB'")
    .replace("DIES", "pass")
    .replace("calls.txt", "looking.txt")
    + """
rated = graded(template="Rate {name}.")
both = graded(template=["Rate {name}.", "Score {name}."])

@rated
def test_biased(trials):
    assert_no_disparity(trials, outcome="rating", by="team")

@graded(template=["Grade {name}.", "Score {name}."])
def test_fair(trials):
    assert_no_disparity(trials, outcome="rating", by="team")

@rated
def test_picked_by_reply(trials):
    assert_no_disparity(trials[trials.reply != "9/10"], outcome="rating", by="team")

@both
def test_two_assertions(trials):
    assert_no_disparity(trials[trials.template == "t2"], outcome="rating", by="team")
    assert_no_disparity(trials[trials.template == "t1"], outcome="rating", by="team")
"""
)


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


def audit_of(run: Path) -> list[str]:
    """What an audit of *run* finds."""
    return [str(problem) for problem in verify_run(run, lambda *_: None).problems]


def problems(project: Project) -> list[str]:
    """What an audit of the newest run finds."""
    return audit_of(project.last)


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
    assert set(names_asked(project).values()) == {CALLS}
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
    """Nor is it looked at further: a list may have the looks that rates have by default, and so one
    more for scores, which is refused too.
    """
    project.write(suite(UNDECIDED))
    result = project.run()
    result.assert_outcomes(passed=1)
    (finding,) = project.findings
    assert (finding["verdict"], finding["reason"]) == ("INCONCLUSIVE", "PRECISION")
    assert made(finding) == [10, 20, 40]
    assert finding["sentence"].endswith("; open at look 3 of 3 (40 names a group).")
    way = finding["details"]["looks"]["way"]
    assert [step["names"] for step in way] == [10, 20, 40]
    widths = [step["high"] - step["low"] for step in way]
    assert widths == sorted(widths, reverse=True)
    assert problems(project) == []
    project.write(suite(UNDECIDED, looks="names=(10, 20, 40, 80)"))
    result = project.run("--fairness-resume=last")
    result.assert_outcomes(errors=1)
    assert "the looks were 10, 20 and 40, are 10, 20, 40 and 80" in shown(result)
    assert names_of(project) == {"a": 40, "b": 40}


TWO = """
@graded()
def test_rated(trials):
    rates, grades = (trials[trials.template == template] for template in ("t1", "t2"))
    try:
        assert_no_disparity(rates, outcome="rating", by="team")
    finally:
        assert_no_disparity(grades, outcome="rating", by="team")
"""


@pytest.mark.parametrize(("biased", "looks"), [("Rate", ([10], 40)), ("Grade", ([10, 20, 40], 10))])
def test_each_assertion_of_a_test_has_looks_of_its_own(
    project: Project, biased: str, looks: tuple[list[int], int]
) -> None:
    """What the other asked, before or after, is not read: the cells of its own names alone."""
    project.write(suite(f"{FAIR} - 3 * (group == 'b') * (template == '{biased}')", TWO))
    project.run().assert_outcomes(failed=1)
    first, second = project.findings
    assert (made(first), made(second)[-1]) == looks
    for finding in (first, second):
        expected = 2 * made(finding)[-1]
        assert finding["n_per_group"] == {"a": expected, "b": expected}
    biased_finding, fair_finding = first, second
    if biased == "Grade":
        fair_finding, biased_finding = first, second
    assert fair_finding["verdict"] == "PASS"
    assert biased_finding["verdict"] in ("FAIL", "FLAG")
    assert names_of(project) == {"a": 40, "b": 40}
    places = [record["place"] for record in project.records("look")]
    assert places == [0] * len(made(first)) + [1] * len(made(second))
    assert set(names_asked(project).values()) == {CALLS}
    assert problems(project) == []


def test_tests_with_the_same_cells_and_other_looks_share_their_replies(project: Project) -> None:
    """Each is judged at its own looks, and no cell is asked twice."""
    single = RATED.replace("test_rated", "test_single").replace("LOOKS", "names=(20,)")
    project.write(suite(tests=RATED + single))
    project.run().assert_outcomes(passed=2)
    looked, once = project.findings
    assert (made(looked), made(once)) == ([10, 20, 40], [20])
    assert once["n_per_group"] == {"a": 80, "b": 80}
    assert "decided at look" not in once["sentence"]
    assert set(names_asked(project).values()) == {CALLS}
    assert len(names_asked(project)) == 80


def test_a_group_whose_pairs_are_all_settled_is_asked_no_more(project: Project) -> None:
    """The pair of c and d is open at look 2, where all pairs of a and b are green; these keep
    counting in the family.
    """
    score = (
        "4 + (place + 2 * (template == 'Grade')) % 5"
        " - (group == 'c') * (place % 10 == 4) + (group == 'd') * (place % 5 == 0)"
    )
    project.write(suite(score, groups="ABCD"))
    project.run().assert_outcomes(passed=1)
    (finding,) = project.findings
    assert (finding["verdict"], made(finding)) == ("PASS", [10, 20, 40])
    assert names_of(project) == {"a": 20, "b": 20, "c": 40, "d": 40}
    assert finding["family"]["size"] == len(finding["pairs"]) == 6
    assert problems(project) == []


# ---------------------------------------------------------------- which looks

DECLARED = {
    "by_default": ("", [10, 20, 40]),
    "listed": ("names=(10, 30)", [10, 30]),
    "a_number": ("names=15", [15, 30]),
    "a_small_number": ("names=6", [6]),
    "once": ("names=(20,)", [20]),
    "all_small": ("names=(4, 8)", [8]),
    "before_the_minimum": ("repetitions=1", [20, 40]),
}
OF_THE_KIND = """
@graded()
def test_a_rate(trials):
    assert_four_fifths(trials, outcome=lambda reply: reply[0] in "78", by="team")

@graded()
def test_equivalent(trials):
    assert_equivalent(trials, outcome="rating", by="team", margin=1.5)

@graded(names=(20,), template="Rate {name}.")
def test_of_a_project(trials):
    assert_no_disparity(trials, outcome="rating", by="team")
"""


def test_the_marker_says_the_looks_or_the_kind_of_outcome(project: Project) -> None:
    tests = "".join(
        RATED.replace("test_rated", f"test_{name}").replace("LOOKS", arguments)
        for name, (arguments, _) in DECLARED.items()
    )
    project.write(suite(tests=tests + OF_THE_KIND))
    project.run()
    planned = {
        finding["nodeid"].partition("::test_")[2]: finding["details"]["looks"]["planned"]
        for finding in project.findings
    }
    expected = {name: looks for name, (_, looks) in DECLARED.items()}
    assert planned == {
        **expected,
        "a_rate": [20, 40, 80],
        "equivalent": [10, 20, 40],
        "of_a_project": [20],
    }
    fixed = project.manifest["looks"]
    looks = fixed.pop("planned")
    assert fixed == {"session_alpha": 0.05, "tests": 10, "declared": ""}
    assert len(looks) == 10
    assert looks["test_suite.py::test_a_rate"] == {
        "scores": [10, 20, 40],
        "rates": [10, 20, 40, 80],
    }
    assert problems(project) == []


def test_a_project_says_its_looks_and_a_marker_others(project: Project) -> None:
    single = RATED.replace("test_rated", "test_single").replace("LOOKS", "names=(20,)")
    project.write(suite(tests=RATED + single))
    project.run("-o", "fairness_looks=12, 24").assert_outcomes(passed=2)
    planned = [finding["details"]["looks"]["planned"] for finding in project.findings]
    assert planned == [[12, 24], [20]]
    assert project.manifest["looks"]["declared"] == "12,24"


@pytest.mark.parametrize("looks", ["20,10", "0,10", "10,10", "ten"])
def test_looks_of_a_project_that_make_no_sense_end_the_session(
    project: Project, looks: str
) -> None:
    project.write(suite())
    result = project.run("-o", f"fairness_looks={looks}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*fairness_looks='{looks}'*"])
    assert not project.path.joinpath("calls.txt").exists()


def test_looks_of_a_marker_that_make_no_sense_are_an_error_of_collection(project: Project) -> None:
    refused = {
        "(20, 10)": "give a whole number from 1, or the looks in rising order, as (10, 20, 40)",
        "()": "in rising order",
        "(0, 10)": "in rising order",
        "'ten'": "in rising order",
        "(10, 100)": "has 80 names, and names=100",
    }
    modules = [suite(looks=f"names={looks}") for looks in refused]
    project.write("", **{f"test_{number}": module for number, module in enumerate(modules)})
    result = project.run()
    result.assert_outcomes(errors=len(refused))
    _, *errors = result.stdout.str().split("ERROR collecting test_")
    for error, why in zip(errors, refused.values(), strict=True):
        assert why in " ".join(error.split())
    assert not project.path.joinpath("calls.txt").exists()


# ---------------------------------------------------------------- tables that a test made

#: What a test may make of its trials before it asserts, and the outcome that it asserts on.
MADE = {
    "picked": ('trials[trials.reply != "7/10"]', "rating", "team"),
    "added": ("trials.assign(points=points(trials))", "points", "team"),
    "centred": (
        "trials.assign(points=(points(trials) - points(trials).mean()).round(3))",
        "points",
        "team",
    ),
    "renamed": ('trials.replace({"team": {"a": "A", "b": "B"}})', "rating", "team"),
    "merged": (
        'trials.merge(pd.DataFrame({"team": ["a", "b"], "side": ["left", "right"]}))',
        "rating",
        "side",
    ),
    "a_reply_mended": ('trials.assign(reply=trials.reply + " points")', "rating", "team"),
    "by_name": (
        'trials.assign(points=points(trials)).groupby(["team", "name", "template"], '
        "as_index=False).points.mean()",
        "points",
        "team",
    ),
}
POINTS = """
def points(trials):
    return trials.reply.str.partition("/")[0].astype(float)
"""


def made_in(table: str, outcome: str, by: str, name: str) -> str:
    """The test that asserts on the *table* which it makes."""
    return f"""
@graded()
def test_{name}(trials):
    picked = {table}
    assert_no_disparity(picked, outcome="{outcome}", by="{by}")
"""


def test_a_table_that_the_test_made_is_made_again_for_each_look(project: Project) -> None:
    """By running the test's function on more trials: it is biased among the names of the second
    look, which the first does not see. Who derives the looks from the log comes to the same, and a
    replay does.
    """
    score = f"2 + {FAIR} - (group == 'b') * (1 + 4 * (place > 10))"
    tests = "".join(made_in(*how, name) for name, how in MADE.items())
    project.write(suite(score, POINTS + tests))
    project.run("-o", "fairness_session_tests=1").assert_outcomes(failed=len(MADE))
    for finding in project.findings:
        assert finding["verdict"] in ("FAIL", "FLAG"), finding["nodeid"]
        assert made(finding) == [10, 20], finding["nodeid"]
    assert names_of(project) == {"a": 20, "b": 20}
    assert problems(project) == []
    findings = project.findings
    project.run("--fairness-replay", "last").assert_outcomes(failed=len(MADE))
    looks = [finding["details"]["looks"] for finding in findings]
    assert [finding["details"]["looks"] for finding in project.findings] == looks


def test_a_test_is_run_again_up_to_the_assertion_that_looks(project: Project) -> None:
    tests = """
@graded()
def test_rated(trials):
    with open("runs.txt", "a") as file:
        file.write(f"{len(trials)} ")
    assert_no_disparity(trials, outcome="word_count", by="team")
    scored = trials.assign(points=trials.reply.str.partition("/")[0].astype(float))
    assert_no_disparity(scored, outcome="points", by="team")
"""
    project.write(suite(tests=tests))
    project.run().assert_outcomes(passed=1)
    counts, points = project.findings
    assert (counts["verdict"], made(counts)) == ("PASS", [10, 20])
    assert (points["verdict"], made(points)) == ("PASS", [10, 20, 40])
    runs = project.path.joinpath("runs.txt").read_text(encoding="utf-8")
    assert runs == "80 160 320 ", "the first assertion looks at the trials as they were handed out"


#: What a test does with other trials than the first, and of how many names that is.
FAILS = {
    "raises": "if MANY: raise ValueError('too many')",
    "returns": "if MANY: return",
    "skips": "if MANY: pytest.skip('too many')",
    "makes_nothing": "picked = picked[:0] if MANY else picked",
    "leaves_a_column_out": "picked = picked.drop(columns=['points']) if MANY else picked",
}


def test_what_cannot_be_made_of_a_larger_stage_is_judged_at_the_base_design(
    project: Project,
) -> None:
    """With the names that were read: at 20 a group, where the test takes no 40."""
    tests = POINTS
    for name, line in FAILS.items():
        made_table = made_in(*MADE["added"], name)
        many = line.replace("MANY", "trials.name.nunique() > 40")
        tests += made_table.replace("    assert_no", f"    {many}\n    assert_no")
    project.write(suite(tests=tests))
    project.run().assert_outcomes(passed=len(FAILS))
    for finding in project.findings:
        assert made(finding) == [10, 20], finding["nodeid"]
        assert finding["n_per_group"] == {"a": 80, "b": 80}
        assert "could not be made of more names" in " ".join(finding["notes"])
        assert "(20 names a group)" in finding["sentence"]
    assert problems(project) == []


def test_what_is_made_of_no_other_trials_is_never_judged_at_ten_names(project: Project) -> None:
    """The function fails whenever it is run again: the test fails and says what to do; of a table
    of the first names alone nothing is said.
    """
    tests = POINTS + "KEPT = []\n"
    for name, line in {**FAILS, "keeps_its_own": "KEPT.append(picked); picked = KEPT[0]"}.items():
        again = line.replace("MANY", "trials.name.nunique() > 20")
        table = made_in(*MADE["added"], name)
        tests += table.replace("    assert_no", f"    {again}\n    assert_no")
    project.write(suite(tests=tests))
    result = project.run()
    result.assert_outcomes(failed=len(FAILS) + 1)
    assert project.findings == []
    for why in ("it raised ValueError: too many", "it did not come to this assertion"):
        assert why in shown(result)


OF_FIXTURES = """
@pytest.fixture
def picked(trials):
    return trials.assign(points=points(trials))

@graded()
def test_alone(picked):
    assert_no_disparity(picked, outcome="points", by="team")

@graded(template="Grade {name}.")
def test_beside(trials, picked):
    assert_no_disparity(picked, outcome="points", by="team")

@graded(template="Judge {name}.")
def test_by_request(trials, request):
    made = request.getfixturevalue("picked")
    assert_no_disparity(made, outcome="points", by="team")
"""


def test_a_fixture_over_the_trials_is_given_the_base_design(project: Project) -> None:
    """It cannot be made again: one look, at 20 names."""
    project.write(suite(tests=POINTS + OF_FIXTURES))
    project.run()
    for finding in project.findings:
        assert made(finding) == [20], finding["nodeid"]
        assert finding["n_per_group"]["a"] in (40, 80)
    planned = [finding["details"]["looks"]["planned"] for finding in project.findings]
    assert sorted(planned) == [[20], [20], [20, 40]], "one that is requested is not known before"
    assert problems(project) == []


def test_a_coroutine_is_given_the_base_design(project: Project) -> None:
    tests = """
import asyncio, functools

def awaited(function):
    @functools.wraps(function)
    def run(**given):
        return asyncio.run(function(**given))
    return run

@graded()
async def test_waits(trials):
    assert_no_disparity(trials, outcome="rating", by="team")
"""
    project.write(
        suite(tests=tests),
        conftest="""
import asyncio, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**given))
    return True
""",
    )
    project.run().assert_outcomes(passed=1)
    (finding,) = project.findings
    assert finding["details"]["looks"]["planned"] == [20]
    assert names_of(project) == {"a": 20, "b": 20}


# ---------------------------------------------------------------- choices, arms, baselines

PAIRS = """
from pytest_fairness import assert_arm_reduces_disparity, assert_no_preference

PEOPLE = {group: [f"{group}{place:02}" for place in range(1, 25)] for group in ("Ana", "Bea")}

@pytest.fixture
def endpoint():
    def choose(prompt):
        names = prompt.splitlines()[1:3]
        place = int(names[0][-2:])
        if "Pick" in prompt:
            return next(name for name in names if name.startswith("Bea"))
        return names[place % 2]
    return choose

def pairs(repetitions, template="Pick:\\n{name_1}\\n{name_2}", **arguments):
    return pytest.mark.fairness_pairs(
        template=template, candidates=PEOPLE, repetitions=repetitions,
        role=["nurse", "cook", "clerk"], **arguments
    )

@pairs(12, template="Pick for {role}:\\n{name_1}\\n{name_2}")
def test_preferred(trials):
    assert_no_preference(trials, by="group")

@pairs(12, template="Choose for {role}:\\n{name_1}\\n{name_2}")
def test_even(trials):
    assert_no_preference(trials, by="group")

@pairs(8, template="Choose for {role}:\\n{name_1}\\n{name_2}")
def test_few(trials):
    assert_no_preference(trials, by="group")

@pairs(12, template="Pick for {role}:\\n{name_1}\\n{name_2}", arms=["raw_naive", "scrubbed"])
def test_scrubbed(trials):
    assert_arm_reduces_disparity(trials, treated="scrubbed", control="raw_naive", by="group")
"""


def test_choices_are_looked_at_by_sets_of_candidates(project: Project) -> None:
    """n sets and 2n: a preference stops at the first, and an arm that takes it away passes there."""
    project.write(suite(tests=PAIRS))
    result = project.run()
    looks = {
        finding["nodeid"].partition("::test_")[2]: (
            finding["verdict"],
            finding["details"]["looks"]["planned"],
            made(finding),
        )
        for finding in project.findings
    }
    assert looks["preferred"] == ("FAIL", [12, 24], [12])
    assert looks["even"][:2] == ("PASS", [12, 24])
    assert looks["few"][1:] == ([8], [8])
    assert looks["scrubbed"][1] == [12, 24]
    assert "decided at look 1 of 2 (12 sets of candidates)" in shown(result)
    assert problems(project) == []


def test_a_baseline_reads_the_base_design_whatever_the_looks_did(project: Project) -> None:
    """Red at the first look, which asks 10 names: the baseline has 20."""
    tests = """
@graded()
def test_rated(trials):
    try:
        assert_no_disparity(trials, outcome="rating", by="team")
    except AssertionError:
        pass
    assert_baseline(trials, score=lambda reply: float(reply.partition("/")[0]))

@graded(template="Grade {name}.")
def test_first(trials):
    assert_baseline(trials, score=lambda reply: float(reply.partition("/")[0]))
    assert len(trials) == 40
"""
    project.write(suite(BIASED, tests))
    project.run("--fairness-approve", "--fairness-justification", "the first")
    scored = [finding for finding in project.findings if "looks" not in finding["details"]]
    assert [finding["n_per_group"] for finding in scored] == [{"now": 160}, {"now": 80}]
    assert names_of(project) == {"a": 20, "b": 20}
    project.run()
    verdicts = [finding["verdict"] for finding in project.findings]
    assert sorted(verdicts) == ["FAIL", "PASS", "PASS"]


# ---------------------------------------------------------------- what stops the asking

PAID = (
    "endpoints:\n  - {name: paid, type: openai, model: gpt-test, price: {per_call: 0.01},\n"
    "     base_url: '%s', default_parameters: {max_tokens: 200}}\n"
)


def test_the_cap_stops_the_asking_between_looks(project: Project) -> None:
    """Money for the first look and not for the second: the verdict is that of the first, and
    nothing of the second is asked.
    """
    with ModelServer() as server:
        project.write(LOOKS, PAID % server.openai_url)
        result = project.run("--fairness-endpoint", "paid", "--fairness-max-cost", "1.2")
        asked = len(server.requests)
    assert asked == 80
    (finding,) = project.findings
    assert finding["n_per_group"] == {"white": 40, "black": 40}
    assert finding["verdict"] == "INCONCLUSIVE"
    assert "stopped by the cost cap at look 1 of 3 (10 names a group)" in finding["sentence"]
    assert made(finding) == [10]
    assert "stopped by the cost cap at look 1 of 3" in shown(result)
    assert problems(project) == []


def test_an_endpoint_that_fails_later_leaves_the_look_before(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer() as server:
        project.write(LOOKS, PAID % server.openai_url)
        server.then(*[None] * 80, *[Fault(status=401)] * 200)
        project.run("--fairness-endpoint", "paid", "-o", "fairness_concurrency=1")
    (finding,) = project.findings
    assert (finding["verdict"], made(finding)) == ("INCONCLUSIVE", [10])
    assert "stopped at look 1 of 3 (10 names a group)" in finding["sentence"]
    assert finding["n_per_group"] == {"white": 40, "black": 40}
    assert "401" in finding["details"]["looks"]["stopped"]
    assert problems(project) == []


CLOCK = """
import time, types
import pytest

passed = 0.0

@pytest.fixture(autouse=True)
def clock(monkeypatch):
    late = types.SimpleNamespace(monotonic=lambda: time.monotonic() + passed)
    monkeypatch.setattr("pytest_fairness.engine.lane.time", late)
"""


def test_the_deadline_stops_the_asking_between_looks(project: Project) -> None:
    """It passes while the second stage is asked: what was answered of it is kept, and not judged."""
    late = "if int(name[1:]) == 11:\n            import conftest; conftest.passed = 1e6"
    project.write(suite(dies=late), conftest=CLOCK)
    project.run("--fairness-deadline", "1000", "-o", "fairness_concurrency=1")
    (finding,) = project.findings
    assert made(finding) == [10]
    assert "stopped by the deadline at look 1 of 3 (10 names a group)" in finding["sentence"]
    assert finding["n_per_group"] == {"a": 40, "b": 40}
    assert problems(project) == []


# ---------------------------------------------------------------- resume, replay, audit


@pytest.mark.parametrize("place", [11, 7], ids=["between looks", "inside a look"])
def test_a_killed_run_makes_the_same_looks(project: Project, place: int) -> None:
    """The process dies between two looks, or inside the first: resumed, the run asks what is
    missing, and makes the looks that it would have made.
    """
    dies = f"if int(name[1:]) == {place} and not os.path.exists('died'):\n            "
    dies += "open('died', 'w').close(); os._exit(9)"
    project.write(suite(dies=dies))
    assert project.run("-o", "fairness_concurrency=1", apart=True).ret == 9
    assert [record["names"] for record in project.records("look")] == [10] * (place > 10)
    project.run("--fairness-resume=last", "--fairness-retry-unknown").assert_outcomes(passed=1)
    (finding,) = project.findings
    assert (finding["verdict"], made(finding)) == ("PASS", [10, 20, 40])
    asked = names_asked(project)
    assert sum(asked.values()) == 80 * CALLS + 1, "the one that was under way is asked again"
    records = project.records("look")
    figures = {record["number"]: [record["cells"], record["pairs"]] for record in records}
    assert all(
        figures[record["number"]] == [record["cells"], record["pairs"]] for record in records
    )
    assert list(figures) == [1, 2, 3]
    assert problems(project) == []


@pytest.mark.parametrize("said_by", ["marker", "project"])
def test_other_looks_at_a_run_that_was_asked_are_refused(project: Project, said_by: str) -> None:
    """Its looks were fixed before the first call. It is not looked at further where it ended
    undecided, nor once with all of the budget where it was seen twice; as they were, the looks are
    judged.
    """

    def run(looks: str, *options: str) -> pytest.RunResult:
        if said_by == "marker":
            project.write(suite(looks=f"names=({looks},)"))
            return project.run(*options)
        project.write(suite())
        return project.run("-o", f"fairness_looks={looks}", *options)

    first = run("10,20").ret
    before = project.findings
    assert [finding["verdict"] for finding in before] == ["INCONCLUSIVE"]
    asked = names_asked(project)
    for session in ("--fairness-resume=last", "--fairness-replay=last"):
        for looks, words in (("10,20,40", "10, 20 and 40"), ("20", "20")):
            result = run(looks, session)
            result.assert_outcomes(errors=1)
            assert f"the looks were 10 and 20, are {words}" in shown(result)
        assert run("10,20", session).ret == first
        assert [finding["sentence"] for finding in project.findings] == [before[0]["sentence"]]
        assert names_asked(project) == asked


def test_the_looks_of_a_test_that_a_resumed_run_adds_are_fixed_before_it_asks(
    project: Project,
) -> None:
    """The run knows them from then on, as it knows those of its first tests, and the level stays."""
    project.write(suite())
    project.run().assert_outcomes(passed=1)
    fixed = project.manifest["looks"]
    added = RATED.replace("test_rated", "test_added").replace("LOOKS", "names=(10, 20)")
    project.write(suite() + added.replace("{name} from", "{name} again from"))
    project.run("--fairness-resume=last").assert_outcomes(passed=2)
    planned = dict(project.manifest["looks"]["planned"])
    (new,) = planned.keys() - fixed["planned"].keys()
    assert new.endswith("test_added")
    assert planned.pop(new) == {"scores": [10, 20], "rates": [10, 20]}
    assert {**project.manifest["looks"], "planned": planned} == fixed
    assert problems(project) == []
    project.write(suite() + added.replace("(10, 20)", "(10, 20, 40)"))
    result = project.run("--fairness-resume=last")
    result.assert_outcomes(passed=1, errors=1)
    assert "the looks were 10 and 20, are 10, 20 and 40" in shown(result)


#: What a test calls, and how many names it is given first.
CALLED = {
    "analysis": ("analyze_disparity(trials, 'rating', 'team')", 20),
    "both": (
        "analyze_disparity(trials, 'rating', 'team'); assert_no_disparity(trials, 'rating', 'team')",
        10,
    ),
    "helper": ("judged(trials)", 10),
    "analysis_and_helper": ("analyze_disparity(trials, 'rating', 'team'); judged(trials)", 20),
    "nothing": ("pass", 10),
}


def test_a_test_that_only_analyzes_gets_the_base_design(project: Project) -> None:
    """Nothing of it looks again, so that it would be left with the 10 names of a first look."""
    source = """
from pytest_fairness import analyze_disparity

def judged(trials):
    assert_no_disparity(trials, outcome="rating", by="team")
"""
    for name, (calls, _) in CALLED.items():
        source += f"""
@graded()
def test_{name}(trials):
    with open("{name}.txt", "a") as file:
        print(trials["name"].nunique() // 2, file=file)
    {calls}
"""
    project.write(suite(BIASED, source))
    project.run("-o", "fairness_session_tests=1").assert_outcomes(passed=2, failed=3)
    for name, (_, names) in CALLED.items():
        first, *_ = project.path.joinpath(f"{name}.txt").read_text("utf-8").split()
        assert int(first) == names, name


def without_looks(record: dict[str, Any]) -> None:
    """Make *record* one of the time before looks: its design says none, and nothing is fixed."""
    if record["type"] == "looks":
        record.clear()
    elif record["type"] == "design":
        del record["looks"], record["score_looks"]


def test_a_recording_without_looks_is_judged_by_its_design(project: Project) -> None:
    """As it was asked, once and at the assertion's own alpha: never as the beginning of looks."""
    project.write(suite(looks="names=(20,)"))
    project.run().assert_outcomes(passed=1)
    copy = project.path / "older"
    shutil.copytree(project.last, copy)
    archived(copy)
    relogged(copy, without_looks)
    manifest = json.loads((copy / "manifest.json").read_bytes())
    del manifest["looks"]
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    project.write(suite())
    asked = names_asked(project)
    project.run("--fairness-replay", str(copy)).assert_outcomes(passed=1)
    (finding,) = project.findings
    assert "looks" not in finding["details"]
    assert finding["family"]["alpha"] == 0.05
    assert finding["n_per_group"] == {"a": 80, "b": 80}
    assert names_asked(project) == asked
    assert "looks" not in project.manifest


TURNED = """
@graded(LOOKS)
def test_turned(trials):
    numbers = trials["reply"].str.removesuffix("/10").astype(float)
    turned = numbers if len(trials) < 100 else 10 - numbers
    assert_no_disparity(trials.assign(turned=turned), outcome="turned", by="team")
"""


def test_each_look_at_a_column_of_the_whole_table_is_derived(project: Project) -> None:
    """What a test makes of 40 names is something else than of 10: the log has that look's table."""
    project.write(suite(UNDECIDED, TURNED))
    project.run()
    (finding,) = project.findings
    assert made(finding) == [10, 20, 40]
    assert problems(project) == []
    assert [record["number"] for record in project.records("look_table")] == [1]
    copy = project.path / "copy"
    shutil.copytree(project.last, copy)
    archived(copy)
    relogged(copy, lambda record: record["type"] == "look_table" and record.clear())
    assert any("look 1" in problem for problem in audit_of(copy))


def tampered(record: dict[str, Any]) -> dict[str, Any]:
    """The place of *record* where a judgement keeps what was fixed of its looks."""
    return record["looks"] if record["type"] == "judgement" else {}


def budget_doubled(record: dict[str, Any]) -> None:
    fixed = tampered(record)
    if fixed:
        fixed["red"] *= 2


def looks_left_out(record: dict[str, Any]) -> None:
    fixed = tampered(record)
    if fixed:
        fixed["names"] = [10, 40]


def shared_by_more_tests(record: dict[str, Any]) -> None:
    if record["type"] == "looks":
        record["looks"]["tests"] = 2


def figures_of_a_look(record: dict[str, Any]) -> None:
    if record["type"] == "look" and record["number"] == 2:
        record["pairs"][0][3] = 0.5


def cells_of_a_look(record: dict[str, Any]) -> None:
    if record["type"] == "look" and record["number"] == 1:
        record["cells"] = "0" * 16


def without_a_look(record: dict[str, Any]) -> None:
    if record["type"] == "look" and record["number"] == 2:
        record.clear()


def test_an_audit_derives_each_look_again(project: Project, tmp_path_factory: Any) -> None:
    """Whoever changes what was fixed of the looks, or what a look came to, and makes every hash
    anew, is found all the same.
    """
    project.write(suite())
    project.run().assert_outcomes(passed=1)
    whole = tmp_path_factory.mktemp("whole") / "run"
    shutil.copytree(project.last, whole)
    archived(whole)
    assert audit_of(whole) == []
    changes: dict[Callable[[dict[str, Any]], None], bool] = {}
    for change in (
        budget_doubled,
        looks_left_out,
        shared_by_more_tests,
        figures_of_a_look,
        cells_of_a_look,
        without_a_look,
    ):
        copy = tmp_path_factory.mktemp("copy") / "run"
        shutil.copytree(whole, copy)
        relogged(copy, change)
        changes[change] = bool(audit_of(copy))
    assert all(changes.values()), [change.__name__ for change in changes if not changes[change]]
    copy = tmp_path_factory.mktemp("copy") / "run"
    shutil.copytree(whole, copy)
    manifest = json.loads((copy / "manifest.json").read_bytes())
    manifest["looks"]["session_alpha"] = 0.5
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert any("looks" in problem for problem in audit_of(copy))
