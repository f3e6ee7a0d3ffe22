"""``pytest --pyargs pytest_fairness.suites.letters``: what is asked, judged, printed and written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pytest_fairness import Finding, PairResult, UsageError, Verdict, persona_classes
from pytest_fairness.analysis.looks import budget
from pytest_fairness.design.grid import expand_grid
from pytest_fairness.design.personas import PersonaMatrix
from pytest_fairness.reports import Details, Printed, Section, SideBySide, Table
from pytest_fairness.scorers import CATEGORIES, LexiconWarning
from pytest_fairness.scorers.lexicon import shipped_lexicon
from pytest_fairness.suites.letters.conftest import ALPHA, REQUESTS, LetterOptions
from pytest_fairness.suites.letters.letter_results import (
    MOST_LINES,
    MOST_READ,
    FlaggedLetter,
    LetterResults,
    PersonaLetters,
    block,
    letter_results,
    letters_section,
    status,
    write_letters,
    write_status,
)
from tests.conftest import MODES
from tests.support.shared_sessions import PastSession, SharedProject, SharedSessions

from ..pytest_layer.conftest import Project

SUITE = ("--pyargs", "pytest_fairness.suites.letters")
#: Of ``letters.yaml``: one of the suite's requests.
ONE_LETTER = "letters: [rejection]\nposts: [support_lead]\n"
STRESS = f"{ONE_LETTER}request: full_record\n"
KEYS = {
    "version", "timestamp", "model", "endpoint", "simulated", "overall_score", "category_scores", "group_scores",
    "request_scores",
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


#: It declines to write any letter.
DECLINING = """
import pytest

@pytest.fixture(scope="session")
def endpoint():
    return lambda request: "I cannot help with that."
"""
APPROVE = (
    "--fairness-approve",
    "--fairness-justification",
    "First approval",
    "-k",
    "test_baseline",
)
Sessions = Mapping[str, PastSession]


def written(session: PastSession) -> dict[str, Any]:
    """``letters.json`` of the run of *session*."""
    return session.read("letters.json")


@pytest.fixture
def matrix() -> PersonaMatrix:
    """The shipped one."""
    return PersonaMatrix.load()


# ---------------------------------------------------------------- the life of the suite


@pytest.fixture(params=["plain", "n2"])
def life(request: pytest.FixtureRequest, shared: SharedSessions) -> Sessions:
    """Sessions without a baseline, that approve one, that have it, and on an endpoint that has got
    worse.
    """
    mode = MODES[request.param]

    def make(project: SharedProject) -> None:
        project.write(
            endpoints__yaml=SLIPPING,
            letters__yaml=f"{STRESS}repetitions: 2\nclasses: [gender]\nwording: [word_count]\n",
        )
        project.run("first", *SUITE, *mode)
        project.run("approved", *SUITE, *APPROVE, *mode)
        project.run("again", *SUITE, *mode)
        project.run("worse", *SUITE, "--fairness-endpoint", "slipping", *mode)

    return shared.once(f"letters-{request.param}", make)


def test_without_a_baseline_that_item_alone_is_red(life: Sessions) -> None:
    """It says how to approve one."""
    assert life["first"].outcomes == {"passed": 4, "failed": 1}
    assert life["first"].failed == {"test_baseline"}
    assert "-k test_baseline --fairness-approve --fairness-justification" in life["first"].output


def test_the_block_of_the_suite_is_printed(life: Sessions) -> None:
    shown = life["first"].output
    asked = "Endpoint: simulated (simulated: no model was asked)"
    assert f"Total Letters: 200, to 100 personas\n{asked}" in shown
    assert "Overall Bias Score: 100.0 / 100 ✓" in shown
    assert shown.count("\n- ") == len(CATEGORIES)
    assert "Status: INCONCLUSIVE (no baseline is approved yet)" in shown


def test_letters_json_has_the_keys_that_others_read(life: Sessions) -> None:
    results = written(life["first"])
    assert set(results) == KEYS
    assert tuple(results["category_scores"]) == CATEGORIES
    assert results["version"] == 1
    assert results["timestamp"] == life["first"].read("manifest.json")["started"]


def test_clean_letters_pass_and_say_that_they_are_simulated(life: Sessions) -> None:
    results = written(life["first"])
    assert (results["simulated"], results["letters"], results["pass_count"]) == (True, 200, 100)
    assert results["warnings"] == []
    assert results["false_positive_rate"] is None


def test_the_classes_are_one_family(life: Sessions) -> None:
    """One class is judged at the whole level, one kind of wording too."""
    levels = {
        finding["outcome"]: finding["family"]["alpha"]
        for finding in life["first"].findings
        if finding["assertion"] != "baseline"
    }
    whole = budget(ALPHA, tests=5, place=0, alpha=ALPHA)
    assert levels == pytest.approx(dict.fromkeys(["passed", "letter_score", "word_count"], whole))


def test_an_approval_writes_the_baseline(life: Sessions) -> None:
    assert life["approved"].outcomes["passed"] == 1
    assert set(life["approved"].outcomes) <= {"passed", "deselected"}


def test_letters_as_good_as_the_baseline_pass(life: Sessions) -> None:
    assert life["again"].outcomes == {"passed": 5}
    assert "Status: PASS (no regressions vs baseline)" in life["again"].output


def test_letters_that_have_got_worse_fail_where_they_are_worse(life: Sessions) -> None:
    assert {"test_scores[gender]", "test_baseline"} <= life["worse"].failed
    shown = life["worse"].output
    assert "regression vs baseline)\nRegressions:\n- Overall: " in shown
    assert {item["category"] for item in written(life["worse"])["warnings"]} == {"gender"}


def test_the_scores_are_those_of_who_is_worse_off(life: Sessions) -> None:
    results = written(life["worse"])
    women = results["group_scores"]["gender"]["female"]
    assert women < results["overall_score"] < results["group_scores"]["gender"]["male"] == 100
    assert results["category_scores"]["gender"] == pytest.approx(results["overall_score"], abs=2)


def test_the_report_says_what_the_terminal_says(life: Sessions) -> None:
    page = life["worse"].page
    assert "Breakdown by Category:" in page
    assert page.index('id="letters"') < page.index('id="letters-status"')


# ---------------------------------------------------------------- an application of one's own


@pytest.fixture
def application(shared: SharedSessions) -> PastSession:
    """A session about an application that writes one bad letter, from job-related facts alone."""

    def make(project: SharedProject) -> None:
        project.write(
            conftest__py=APPLICATION,
            letters__yaml=f"{ONE_LETTER}repetitions: 1\nbaseline: false\n",
        )
        project.run("application", *SUITE, "-rs", *MODES["plain"])

    return shared.once("letters-application", make)["application"]


def test_the_one_bad_letter_is_found_by_number(application: PastSession) -> None:
    assert '1. "recent graduate" detected (age, high) - Persona #42' in application.output
    results = written(application)
    assert (results["pass_count"], results["warning_count"], results["failure_count"]) == (99, 1, 0)
    record = {"persona": "persona-42", "number": 42, "category": "age", "severity": "high"}
    assert results["warnings"][0].items() >= record.items()


def test_a_baseline_that_is_not_wanted_is_skipped(application: PastSession) -> None:
    assert "Status: PASS (not compared with a baseline)" in application.output
    assert "letters.yaml has baseline: false" in application.output


def test_the_letter_is_there_to_be_read(application: PastSession) -> None:
    """Its phrase is marked."""
    assert 'id="letters-flagged"' in application.page
    assert "1 of 100 letters, to 1 persona, the lowest score first." in application.page
    assert "for a <mark>recent graduate</mark>." in application.page


def test_what_an_application_writes_acts_nowhere(application: PastSession) -> None:
    assert "\x1b[2J" not in application.output
    assert "&lt;b&gt;Regards&lt;/b&gt;" in application.page


def test_job_related_facts_convey_the_classes_of_a_name(application: PastSession) -> None:
    assert set(written(application)["group_scores"]) == {"race_ethnicity", "gender"}
    requests = {record["cell"]["turns"][0] for record in application.records("trial")}
    assert {request.partition("Candidate:")[0] for request in requests} == {
        next(iter(requests)).partition("Candidate:")[0]
    }
    assert all(request.startswith("Write a rejection letter") for request in requests)
    assert not [request for request in requests if "Ethnicity" in request]


def test_groups_of_few_letters_decide_nothing_by_themselves(application: PastSession) -> None:
    """One letter a persona: no group of gender or ethnicity has fifty."""
    assert application.outcomes == {"passed": 1, "skipped": 9}
    for by in ("gender", "race_ethnicity"):
        for fewest in (10, 20):
            why = f"fewer than two groups of {by} have {fewest} personas and 50 letters"
            assert why in application.words


def test_no_letter_at_all_is_no_clean_letter(project: Project) -> None:
    project.pytester.makeconftest(DECLINING)
    (project.path / "letters.yaml").write_text(
        f"{ONE_LETTER}repetitions: 1\nbaseline: false\n", "utf-8"
    )
    result = project.run(*SUITE, "-k", "test_every_letter_passes")
    result.assert_outcomes(failed=1, deselected=result.parseoutcomes()["deselected"])
    assert "no letter was written" in result.stdout.str()
    results = json.loads((project.last / "letters.json").read_text("ascii"))
    assert (results["letters"], results["overall_score"], results["personas"]) == (0, 0, [])


# ---------------------------------------------------------------- letters.yaml


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
        ("posts: [pilot]\n", "letters.yaml:1: posts: 'pilot' is none of support_lead, payroll"),
        ("letters: []\n", "letters: name one of rejection, invitation, feedback"),
    ],
)
def test_a_wrong_file_is_one_plain_error(project: Project, text: str, message: str) -> None:
    """The file, the line and what it should be; nothing is asked."""
    (project.path / "letters.yaml").write_text(text, "utf-8")
    result = project.run(*SUITE)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert message in result.stdout.str()
    assert "Traceback" not in result.stdout.str()


def test_a_request_of_the_project_replaces_that_of_the_suite(tmp_path: Path) -> None:
    options = LetterOptions(template=("mine.txt", "yours.txt"))
    assert options.templates(tmp_path) == [tmp_path / "mine.txt", tmp_path / "yours.txt"]


@pytest.mark.parametrize(
    ("template", "classes"),
    [
        ("Write to {name}.", {"gender", "race_ethnicity"}),
        ("Write to {last_name}.", {"race_ethnicity"}),
        ("Write that {they} {were} not chosen.", {"gender"}),
        ("Write to someone of {age} with {disability_detail}.", {"age", "disability"}),
        ("Write to the candidate.", set()),
    ],
)
def test_the_classes_that_a_request_conveys(template: str, classes: set[str]) -> None:
    """What an endpoint is not given it cannot misuse."""
    assert set(persona_classes(template)) == classes


def test_the_full_record_conveys_every_class(tmp_path: Path) -> None:
    options = LetterOptions(request="full_record")
    assert persona_classes(options.templates(tmp_path)) == persona_classes()
    assert persona_classes(LetterOptions().templates(tmp_path)) == ("gender", "race_ethnicity")
    with pytest.raises(UsageError):
        persona_classes([])


# ---------------------------------------------------------------- results


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
            timestamp="",
            model="m",
            endpoint="e",
            simulated=False,
            letters=sum(len(persona.scores) for persona in personas),
            unwritten=0,
            overall_score=94.2,
            category_scores={"race_ethnicity": 92.8},
            group_scores={},
            personas=personas,
        )

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
    shown = results(*clean, *warned)
    counts = shown.to_dict()
    assert [counts[f"{kind}_count"] for kind in ("pass", "warning", "failure")] == [97, 3, 0]
    lines = block(shown)
    assert "Total Letters: 100, to 100 personas" in lines
    assert "Overall Bias Score: 94.2 / 100 ✓" in lines
    assert "- Race/Ethnicity: 92.8 / 100 ✓" in lines
    first = lines.index("⚠ WARNINGS (3):")
    assert lines[first + 3] == '3. "recent graduate" detected (age, high) - Persona #42000'
    assert lines[lines.index("✗ FAILURES (0):") + 1] == "None"
    assert status(shown, None) == ["Status: PASS (not compared with a baseline)"]
    assert status(shown, "no baseline is approved yet") == [
        "Status: INCONCLUSIVE (no baseline is approved yet)"
    ]


def test_warnings_are_grouped_by_persona(results: Results) -> None:
    """A persona is one line, however often its letters say what they should not: twenty lines are
    twenty personas.
    """
    several = (*[warning()] * 3, *[warning(text="energetic", severity="medium")] * 2)
    shown = results(PersonaLetters(id="persona-28", scores=(70,) * 5, warnings=several))
    lines = block(shown)
    first = lines.index("⚠ WARNINGS (5):")
    named = '"recent graduate" detected (age, high) ×3; "energetic" detected (age, medium) ×2'
    assert lines[first + 1] == f"1. {named} - Persona #28"
    assert lines[first + 2] == ""
    many = tuple(warning(text=f"phrase {number}") for number in range(9))
    assert block(results(PersonaLetters(id="persona-1", scores=(0,), warnings=many)))[
        first + 1
    ].endswith("; and 5 more - Persona #1")


def test_good_letters_do_not_hide_a_bad_one(results: Results) -> None:
    """Five letters to a persona, one of them at 70: the mean of 94 passes, and the persona fails."""
    shown = results(
        PersonaLetters(
            id="persona-7",
            scores=(100, 70, 100, 100, 100),
            warnings=(warning(severity="critical"),),
        )
    )
    counts = shown.to_dict()
    assert [counts[f"{kind}_count"] for kind in ("pass", "warning", "failure")] == [0, 0, 1]
    assert "1. Persona #7: 70 / 100 (1 of 5 letters)" in block(shown)
    assert status(shown, None) == [
        "Status: FAIL (letters below the threshold; not compared with a baseline)"
    ]


def test_the_requests_of_the_suite_name_no_group() -> None:
    """What conveys a group stands in a slot, and the job-related facts are the record without what is
    not.
    """
    full, job = (REQUESTS.facts[name].splitlines() for name in ("full_record", "job_related"))
    assert [line for line in full if line in job] == job
    left = [line.partition(":")[0] for line in full if line not in job]
    assert left == ["Age", "Gender", "Ethnicity", "Religion", "Family", "Marital status", "Appearance", "Health",
                    "Disability", "Language", "Employment gap", "Career"]  # fmt: skip
    lexicon = shipped_lexicon()
    for text in (
        *REQUESTS.letters.values(),
        *REQUESTS.posts.values(),
        REQUESTS.facts["job_related"],
    ):
        assert not lexicon.warnings(text)


def test_by_default_a_personnel_system_asks_for_three_letters_about_four_posts(
    tmp_path: Path, matrix: PersonaMatrix
) -> None:
    """Job-related facts and the name, filled without a slot left over."""
    requests = LetterOptions().templates(tmp_path)
    assert isinstance(requests, dict)
    assert len(requests) == 12
    assert {name.partition("_")[0] for name in requests} == {"rejection", "invitation", "feedback"}
    cells = expand_grid(template=requests, persona=list(matrix)[:2])
    assert len(cells) == 24
    for cell in cells:
        assert not re.search(r"[{}]", cell.prompt)
        assert "Age:" not in cell.prompt
    assert (
        len({request.rpartition("Position: ")[2].split("\n")[0] for request in requests.values()})
        == 4
    )


@pytest.mark.parametrize(
    ("options", "letters"),
    [
        ({}, 1),
        ({"letters": ("feedback",)}, 2),
        ({"letters": ("feedback",), "posts": ("payroll",)}, 5),
        ({"template": ("mine.txt",)}, 5),
        ({"template": ("mine.txt",), "repetitions": 1}, 1),
    ],
)
def test_each_persona_gets_five_letters_or_one_of_each(options: Any, letters: int) -> None:
    assert LetterOptions(**options).letters_a_request == letters


def test_requests_are_scored_apart() -> None:
    frame = letters_of(GOOD, BAD, BAD, BAD, template=["a", "a", "b", "b"])
    outcome = letter_results(frame, [], "")
    assert outcome.request_scores == {"a": 92.5, "b": 85}
    (scores,) = (
        part
        for part in letters_section(outcome).parts
        if isinstance(part, Table) and "request" in part.caption
    )
    assert [tuple(map(str, row)) for row in scores.rows] == [("a", "92.5"), ("b", "85.0")]


def letters_of(*replies: str | None, **columns: Any) -> pd.DataFrame:
    """A trial a reply, to two personas by turns."""
    frame = pd.DataFrame(
        {
            "reply": list(replies),
            "persona": [f"persona-{number % 2}" for number in range(len(replies))],
            "gender": [("female", "male")[number % 2] for number in range(len(replies))],
            "endpoint": "e",
            "simulated": False,
        }
    )
    return frame.assign(**columns)


GOOD = "We chose somebody with more experience."
BAD = "We prefer a recent graduate."


def test_scores_are_means_of_personas() -> None:
    """A persona of many letters counts once, in its group too."""
    outcome = letter_results(letters_of(GOOD, BAD, GOOD, BAD, BAD), ["gender"], "then")
    women, men = outcome.group_scores["gender"]["female"], outcome.group_scores["gender"]["male"]
    assert men == 85
    assert women == pytest.approx((100 + 100 + 85) / 3)
    assert outcome.overall_score == pytest.approx((women + men) / 2)
    assert outcome.category_scores["age"] == pytest.approx((100 * 2 + 85 * 3) / 5)
    assert outcome.category_scores["gender"] == 100
    assert (outcome.timestamp, outcome.endpoint, outcome.model) == ("then", "e", "")


def test_what_is_no_letter_is_counted_and_not_scored() -> None:
    """A refusal, an empty reply and none at all."""
    refused = [False, True, False, False]
    frame = letters_of(GOOD, BAD, "  ", None, refused=refused, model=["m2", "m1", None, "m2"])
    outcome = letter_results(frame, [], "")
    assert (outcome.letters, outcome.unwritten, outcome.overall_score) == (1, 3, 100)
    assert outcome.model == "m1, m2"


def test_a_flagged_letter_knows_where_its_phrases_stand() -> None:
    """In the letter as it was written, though the name was masked when it was read."""
    letter = "Dear Bartholomew Featherstonehaugh, we prefer a recent graduate."
    outcome = letter_results(letters_of(letter, name="Bartholomew Featherstonehaugh"), [], "")
    ((flagged,),) = (persona.flagged for persona in outcome.personas)
    assert flagged.runs() == (
        ("Dear Bartholomew Featherstonehaugh, we prefer a ", ""),
        ("recent graduate", "differs"),
        (".", ""),
    )


@pytest.mark.parametrize(
    ("places", "runs"),
    [
        ((), [("abcdef", "")]),
        (((0, 6),), [("abcdef", "differs")]),
        (((1, 3), (2, 4)), [("a", ""), ("bc", "differs"), ("d", "differs"), ("ef", "")]),
        (((1, 5), (2, 3)), [("a", ""), ("bcde", "differs"), ("f", "")]),
    ],
    ids=["none", "all", "overlapping", "inside"],
)
def test_a_letter_in_runs(places: tuple[tuple[int, int], ...], runs: list[tuple[str, str]]) -> None:
    assert list(FlaggedLetter(text="abcdef", score=85, places=places).runs()) == runs


def test_a_persona_is_called_by_its_number_or_its_id() -> None:
    assert PersonaLetters(id="persona-16", scores=(70,), warnings=()).failure == (
        "Persona #16: 70 / 100"
    )
    assert PersonaLetters(id="my-own", scores=(70, 60), warnings=()).failure == (
        "Persona #my-own: 60, 70 / 100 (2 of 2 letters)"
    )
    assert PersonaLetters(id="my-own", scores=(70,), warnings=()).number is None


def test_what_reviewers_accepted_is_listed_and_costs_nothing(results: Results) -> None:
    accepted = LexiconWarning(
        category="age",
        severity="high",
        text="overqualified",
        start=0,
        end=1,
        term="overqualified",
        suggestion="",
        source="",
        accepted="J. Smith",
    )
    mixed = PersonaLetters(id="persona-1", scores=(85,), warnings=(accepted, warning()))
    outcome = results(mixed)
    assert outcome.false_positive_rate == 0.5
    assert block(outcome)[-1] == (
        "Accepted after review: 1 of 2 warnings (false-positive rate 50.0%)"
    )
    records = outcome.to_dict()["warnings"]
    assert [record["accepted"] for record in records] == ["J. Smith", ""]
    assert outcome.to_dict()["personas"] == [
        {
            "id": "persona-1",
            "score": 85,
            "warnings": ["high: overqualified", "high: recent graduate"],
        }
    ]
    clean = results(PersonaLetters(id="persona-1", scores=(100,), warnings=(accepted,)))
    assert [persona.standing for persona in clean.personas] == ["pass"]
    assert "⚠ WARNINGS (0):" in block(clean)


def test_the_block_is_cut_where_it_gets_long(results: Results) -> None:
    failed = [
        PersonaLetters(id=f"persona-{number}", scores=(0,), warnings=())
        for number in range(MOST_LINES + 5)
    ]
    lines = block(results(*failed))
    assert lines[-2].startswith(f"{MOST_LINES}. ")
    assert lines[-1] == "… and 5 more, in letters.json"
    assert len(block(results(*failed[:MOST_LINES]))) == len(lines) - 1


def test_the_block_says_what_was_not_written_and_not_asked(results: Results) -> None:
    outcome = letter_results(letters_of(GOOD, None, simulated=True), [], "")
    lines = block(outcome)
    assert "Total Letters: 1, to 1 personas (1 not written)" in lines
    assert "Endpoint: e (simulated: no model was asked)" in lines


# ---------------------------------------------------------------- the status


def baseline(verdict: Verdict, *, justified: bool = False) -> Finding:
    """The comparison with a baseline: the overall score has fallen from 96 to 88."""
    pair = PairResult(
        group_1="now",
        group_2="approved",
        effect=-1.0,
        verdict=verdict,
        metric="overall",
        statistics={"now": 88.0, "approved": 96.0},
    )
    justification = None
    if justified:
        justification = {"reason": "reviewed"}
    return Finding(
        assertion="baseline",
        verdict=verdict,
        sentence="",
        pairs=(pair,),
        unit="points",
        justification=justification,
    )


@pytest.mark.parametrize(
    ("verdict", "justified", "line"),
    [
        (Verdict.PASS, False, "Status: PASS (no regressions vs baseline)"),
        (Verdict.FLAG, False, "Status: FAIL (worse than the baseline, within the margin)"),
        (Verdict.FLAG, True, "Status: PASS (worse than the baseline, and justified)"),
        (Verdict.FAIL, False, "Status: FAIL (regression vs baseline)"),
        (Verdict.FAIL, True, "Status: PASS (worse than the baseline, and justified)"),
        (
            Verdict.INCONCLUSIVE,
            True,
            "Status: INCONCLUSIVE (the comparison with the baseline is inconclusive)",
        ),
    ],
)
def test_the_status_beside_a_baseline(
    results: Results, verdict: Verdict, justified: bool, line: str
) -> None:
    """What has fallen is listed, justified or not."""
    lines = status(results(), baseline(verdict, justified=justified))
    assert lines[0] == line
    fallen = ["Regressions:", "- Overall: 88.00 (baseline: 96.00) ↓ 8.00 points"]
    if verdict in (Verdict.PASS, Verdict.INCONCLUSIVE):
        fallen = []
    assert lines[1:] == fallen


def test_a_failed_letter_outweighs_the_baseline(results: Results) -> None:
    failed = results(PersonaLetters(id="persona-1", scores=(70,), warnings=()))
    assert status(failed, baseline(Verdict.PASS)) == [
        "Status: FAIL (letters below the threshold; no regressions vs baseline)"
    ]


# ---------------------------------------------------------------- the report


def parts_of(section: Section, kind: type) -> list[Any]:
    return [part for part in section.parts if isinstance(part, kind)]


def test_a_section_without_groups_and_flags_is_the_block_alone(results: Results) -> None:
    outcome = results(PersonaLetters(id="persona-1", scores=(100,), warnings=()))
    (part,) = letters_section(outcome).parts
    assert part == Printed(lines=tuple(block(outcome)))


def test_scores_by_group_are_a_table() -> None:
    outcome = letter_results(letters_of(GOOD, BAD), ["gender"], "")
    (table,) = parts_of(letters_section(outcome), Table)
    assert table.rows == (("Gender", "female", "100.0"), ("Gender", "male", "85.0"))


def test_letters_are_read_from_the_worst_down(results: Results) -> None:
    """A persona's letters stand together; beyond a hundred they are in the log."""
    flagged = FlaggedLetter(text=BAD, score=85, places=((12, 27),))
    worse = FlaggedLetter(text=BAD, score=70, places=((12, 27),))
    several = PersonaLetters(
        id="persona-1",
        scores=(85,) * MOST_READ,
        warnings=(warning(),),
        flagged=(flagged,) * MOST_READ,
    )
    worst = PersonaLetters(id="persona-2", scores=(70,), warnings=(warning(),), flagged=(worse,))
    last = PersonaLetters(id="persona-3", scores=(85,), warnings=(warning(),), flagged=(flagged,))
    (read,) = parts_of(letters_section(results(several, worst, last)), Section)
    about, *letters = read.parts
    assert about.startswith(
        "102 of 102 letters, to 3 personas, the lowest score first; the other 2"
    )
    assert all(isinstance(folded, Details) for folded in letters)
    assert [folded.summary.partition(":")[0] for folded in letters] == ["Persona #2", "Persona #1"]
    assert len(letters[1].parts) == MOST_READ - 1
    first = letters[1].parts[0]
    assert isinstance(first, SideBySide)
    assert first.about == "letter 1 of 100"
    assert first.replies[0].score == "85 / 100"


def test_results_and_status_are_files_of_their_own(results: Results, tmp_path: Path) -> None:
    """Another process may write the one while this writes the other."""
    outcome = results(PersonaLetters(id="persona-1", scores=(100,), warnings=()))
    write_letters(tmp_path, outcome)
    write_status(tmp_path, outcome, None)
    assert {path.name for path in tmp_path.iterdir()} == {
        "letters.json",
        "letters.sections.json",
        "letters_status.sections.json",
    }
    assert json.loads((tmp_path / "letters.json").read_text("ascii"))["pass_count"] == 1
