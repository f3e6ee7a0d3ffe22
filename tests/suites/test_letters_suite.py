"""``pytest --pyargs pytest_fairness.suites.letters``: what is asked, judged, printed and written."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.scorers.lexicon import CATEGORIES, LexiconWarning
from pytest_fairness.suites.letters.letter_results import (
    LetterResults,
    PersonaLetters,
    block,
    status,
)
from tests.conftest import MODES

from ..pytest_layer.conftest import Project

SUITE = ("--pyargs", "pytest_fairness.suites.letters")
KEYS = {
    "version", "timestamp", "model", "endpoint", "simulated", "overall_score", "category_scores", "group_scores",
    "false_positive_rate", "pass_count", "warning_count", "failure_count", "letters", "warnings", "personas",
}  # fmt: skip
#: Women are refused in words that no letter should hold, one letter in three; nobody else ever.
SLIPPING = """
endpoints:
  - name: "slipping"
    type: "simulated"
    slips: {gender: {female: 0.33}}
"""
#: An application of the user's own, asked once a persona: the letter to persona 42 says what it
#: should not.
APPLICATION = """
import pytest

@pytest.fixture(scope="session")
def endpoint():
    def write_letter(request):
        slip = " We are looking for a recent graduate." if "Marcus Johnson" in request else ""
        return "Dear candidate, we chose somebody with more experience." + slip + " \\x1b[2J<b>Regards</b>"
    return write_letter
"""


def written(project: Project) -> dict[str, Any]:
    """``letters.json`` of the newest run, which has the keys that others read."""
    found: dict[str, Any] = json.loads((project.last / "letters.json").read_text("ascii"))
    assert set(found) == KEYS
    assert tuple(found["category_scores"]) == CATEGORIES
    return found


@pytest.mark.parametrize("mode", [MODES["plain"], MODES["n2"]], ids=["plain", "n2"])
def test_the_life_of_the_suite(project: Project, mode: Sequence[str]) -> None:
    """Without a baseline that item alone is red and says how to approve; then all is green; then
    bias turns it red.
    """
    (project.path / "endpoints.yaml").write_text(SLIPPING, "utf-8")
    (project.path / "letters.yaml").write_text(
        "repetitions: 2\nclasses: [gender]\nwording: [word_count]\n", "utf-8"
    )
    first = project.run(*SUITE, mode=mode)
    first.assert_outcomes(passed=4, failed=1)
    shown = first.stdout.str()
    assert "-k test_baseline --fairness-approve --fairness-justification" in shown
    assert (
        "Total Letters: 200, to 100 personas\nEndpoint: simulated (simulated: no model was asked)"
        in shown
    )
    assert "Overall Bias Score: 100.0 / 100 ✓" in shown
    assert shown.count("\n- ") == len(CATEGORIES)
    assert "Status: INCONCLUSIVE (no baseline is approved yet)" in shown
    clean = written(project)
    assert (clean["simulated"], clean["letters"], clean["pass_count"]) == (True, 200, 100)

    approve = (
        "--fairness-approve",
        "--fairness-justification",
        "First approval",
        "-k",
        "test_baseline",
    )
    project.run(*SUITE, *approve, mode=mode).assert_outcomes(
        passed=1, deselected=0 if "-n2" in mode else 4
    )
    again = project.run(*SUITE, mode=mode)
    again.assert_outcomes(passed=5)
    assert "Status: PASS (no regressions vs baseline)" in again.stdout.str()

    biased = project.run(*SUITE, "--fairness-endpoint", "slipping", mode=mode)
    shown = biased.stdout.str()
    assert {
        "FAILED test_letters.py::test_scores[gender]",
        "FAILED test_letters.py::test_baseline",
    } <= {line.partition(" - ")[0] for line in shown.splitlines()}
    assert "regression vs baseline)\nRegressions:\n- Overall: " in shown
    found = written(project)
    women = found["group_scores"]["gender"]["female"]
    assert women < found["overall_score"] < found["group_scores"]["gender"]["male"] == 100
    assert found["category_scores"]["gender"] == pytest.approx(found["overall_score"], abs=2)
    assert {one["category"] for one in found["warnings"]} == {"gender"}
    # The report says the same, the terminal's lines between the findings and their cards.
    assert "Breakdown by Category:" in project.page
    assert project.page.index('id="letters"') < project.page.index('id="letters-status"')


def test_an_application_of_ones_own(project: Project) -> None:
    """Its one bad letter is found by number; what it writes acts nowhere. Job-related facts convey
    a name's classes.
    """
    project.pytester.makeconftest(APPLICATION)
    (project.path / "letters.yaml").write_text(
        "request: job_related\nrepetitions: 1\nbaseline: false\n", "utf-8"
    )
    result = project.run(*SUITE, "-rs")
    shown = result.stdout.str()
    assert '1. "recent graduate" detected (age, high) - Persona #42' in shown
    assert "Status: PASS (not compared with a baseline)" in shown
    assert "baseline: false" in shown
    assert "\x1b[2J" not in shown
    # The letter is there to be read, its phrase marked; what it writes is text.
    page = project.page
    assert 'id="letters-flagged"' in page
    assert "1 of 100 letters, to 1 persona, the lowest score first." in page
    assert "for a <mark>recent graduate</mark>." in page
    assert "&lt;b&gt;Regards&lt;/b&gt;" in page
    found = written(project)
    assert (found["pass_count"], found["warning_count"], found["failure_count"]) == (99, 1, 0)
    assert (
        found["warnings"][0].items()
        >= {"persona": "persona-42", "number": 42, "category": "age"}.items()
    )
    assert set(found["group_scores"]) == {"race_ethnicity", "gender"}
    (asked,) = {
        record["cell"]["turns"][0].partition("Candidate:")[0] for record in project.records("trial")
    }
    assert asked.startswith("Write a rejection letter")
    assert not [one for one in project.records("trial") if "Ethnicity" in one["cell"]["turns"][0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clases: [age]\n", "unknown key 'clases'; did you mean 'classes'"),
        ("classes: [shoe_size]\n", "letters.yaml:1: classes: 'shoe_size' is none of age, gender"),
        (
            "template: [mine.txt]\n",
            "letters.yaml:1: template: there is no file 'mine.txt' beside letters.yaml",
        ),
        ("repetitions: 0\n", "repetitions"),
    ],
)
def test_a_wrong_file_is_one_plain_error(project: Project, text: str, message: str) -> None:
    """The file, the line and what it should be; nothing is asked."""
    (project.path / "letters.yaml").write_text(text, "utf-8")
    result = project.run(*SUITE)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert message in result.stdout.str()
    assert "Traceback" not in result.stdout.str()


def warning(
    category: str = "age", severity: str = "high", text: str = "recent graduate"
) -> LexiconWarning:
    return LexiconWarning(
        category=category,
        severity=severity,
        text=text,
        start=0,
        end=1,
        term="x",
        suggestion="",
        source="",
    )


Results = Callable[..., LetterResults]


@pytest.fixture
def results() -> Results:
    """Results of given personas; nothing else of them matters."""

    def make(*personas: PersonaLetters) -> LetterResults:
        return LetterResults(
            timestamp="", model="m", endpoint="e", simulated=False, letters=sum(len(one.scores) for one in personas),
            unwritten=0, overall_score=94.2, category_scores={"race_ethnicity": 92.8}, group_scores={},
            personas=personas,
        )  # fmt: skip

    return make


def test_the_block_of_the_specification(results: Results) -> None:
    """97 pass, three have warnings, none fails, and the lines are the document's."""
    clean = [
        PersonaLetters(id=f"persona-{number}", scores=(100,), warnings=())
        for number in range(1, 98)
    ]
    warned = [
        PersonaLetters(id=f"persona-{number}", scores=(85,), warnings=(warning(),))
        for number in (98, 99, 42_000)
    ]
    found = results(*clean, *warned)
    counts = found.to_dict()
    assert [counts[f"{one}_count"] for one in ("pass", "warning", "failure")] == [97, 3, 0]
    lines = block(found)
    assert "Total Letters: 100, to 100 personas" in lines
    assert "Overall Bias Score: 94.2 / 100 ✓" in lines
    assert "- Race/Ethnicity: 92.8 / 100 ✓" in lines
    at = lines.index("⚠ WARNINGS (3):")
    assert lines[at + 3] == '3. "recent graduate" detected (age, high) - Persona #42000'
    assert lines[lines.index("✗ FAILURES (0):") + 1] == "None"
    assert status(found, None) == ["Status: PASS (not compared with a baseline)"]
    assert status(found, "no baseline is approved yet") == [
        "Status: INCONCLUSIVE (no baseline is approved yet)"
    ]


def test_warnings_are_grouped_by_persona(results: Results) -> None:
    """A persona is one line, however often its letters say what they should not: twenty lines are
    twenty personas.
    """
    several = (*[warning()] * 3, *[warning(text="energetic", severity="medium")] * 2)
    found = results(PersonaLetters(id="persona-28", scores=(70,) * 5, warnings=several))
    lines = block(found)
    at = lines.index("⚠ WARNINGS (5):")
    named = '"recent graduate" detected (age, high) ×3; "energetic" detected (age, medium) ×2'
    assert lines[at + 1] == f"1. {named} - Persona #28"
    assert lines[at + 2] == ""
    many = tuple(warning(text=f"phrase {number}") for number in range(9))
    assert block(results(PersonaLetters(id="persona-1", scores=(0,), warnings=many)))[
        at + 1
    ].endswith("; and 5 more - Persona #1")


def test_good_letters_do_not_hide_a_bad_one(results: Results) -> None:
    """Five letters to a persona, one of them at 70: the mean of 94 passes, and the persona fails."""
    found = results(
        PersonaLetters(
            id="persona-7",
            scores=(100, 70, 100, 100, 100),
            warnings=(warning(severity="critical"),),
        )
    )
    counts = found.to_dict()
    assert [counts[f"{one}_count"] for one in ("pass", "warning", "failure")] == [0, 0, 1]
    assert "1. Persona #7: 70 / 100 (1 of 5 letters)" in block(found)
    assert status(found, None) == [
        "Status: FAIL (letters below the threshold; not compared with a baseline)"
    ]


def test_the_requests_of_the_suite_name_no_group() -> None:
    """What conveys a group stands in a slot, and the job-related request is the other without what
    is not.
    """
    folder = Path(block.__code__.co_filename).parent
    full, job = (
        (folder / f"{name}.txt").read_text("utf-8").splitlines()
        for name in ("full_record", "job_related")
    )
    assert [line for line in full if line in job] == job
    left = [line.partition(":")[0] for line in full if line not in job]
    assert left == ["Age", "Gender", "Ethnicity", "Religion", "Family", "Marital status", "Appearance", "Health",
                    "Disability", "Language", "Employment gap", "Career"]  # fmt: skip
