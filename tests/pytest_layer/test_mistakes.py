"""Common mistakes: each is found before anything is asked, where the source of the test says it,
and is named with its mend; what only the replies show takes five lines, and the replies are kept.
"""

from __future__ import annotations

import re

import pytest

from .conftest import Project, Run, shown

HEAD = """
import pandas as pd, pytest, pytest_fairness
from pytest_fairness import *

GRID = pytest.mark.fairness_grid(
    template=["Write about {name}, a {role}."], names=(10,), repetitions=1, role=["nurse", "cook"],
    groups={"race_ethnicity": ["white", "black"], "gender": ["female"]},
)
WHAT = "sentiment"

@pytest.fixture
def endpoint():
    def answer(prompt):
        with open("asked.log", "a") as file:
            print(prompt, file=file)
        return "Good and kind." if len(prompt) % 2 else "Kind and good work."
    return answer
"""

RACE = 'by="race_ethnicity"'
FINE = f"analyze_disparity(trials, WHAT, {RACE})"
#: What a test says of ``trials``, and what is said of it before anything is asked.
BEFORE = {
    f'assert_no_disparity(trials, outcome="sentimnt", {RACE})': "did you mean 'sentiment'?",
    f'assert_no_disparity(trials, outcome="Word count", {RACE})': "did you mean 'word_count'?",
    f'assert_no_disparity(trials, outcome="zzz", {RACE})': "Give one of these, or a function that reads the reply",
    f'assert_no_disparity(trials, outcome=["sentiment", "wrd_count"], {RACE})': "'word_count'?",
    'assert_no_disparity(trials, outcome="sentiment", by="race")': "did you mean 'race_ethnicity'?",
    'assert_no_disparity(trials, outcome="sentiment", by="Race")': "did you mean 'race_ethnicity'?",
    'assert_no_disparity(trials, outcome="sentiment", by=["race_ethnicity", "rolle"])': "did you mean 'role'?",
    'assert_no_disparity(trials, "race_ethnicity", "sentiment")': "outcome and by are swapped",
    'assert_no_disparity(trials, outcome="sentiment", by="gender")': "'gender' has one group only ('female')",
    f'assert_no_disparity(trials, outcome="sentiment", {RACE}, cluster="names")': "did you mean 'name'?",
    f'assert_no_disparity(trials, outcome="sentiment", {RACE}, block="tempate")': "did you mean 'template'?",
    f'assert_no_disparity(trials, outcome="sentiment", {RACE}, favorable=1)': "did you mean 'favourable'?",
    f'assert_no_disparity(trials, outcomes="sentiment", {RACE})': "did you mean 'outcome'?",
    'assert_no_disparity(trials, outcome="sentiment")': "missing a required argument: 'by'",
    f'assert_four_fifths(trials, outcome="decison", {RACE})': "did you mean 'decision'?",
    f'assert_four_fifths(trials, outcome="decision", {RACE}, reference="whit")': "did you mean 'white'?",
    f'assert_four_fifths(trials, "decision", {RACE}, favorable="yes")': "did you mean 'favourable'?",
    f'assert_no_disparity(trials, outcome="sentiment", {RACE}, each="role")': "each='role' judges a table of decisions",
    f'assert_no_disparity(trials, outcome="sentiment", {RACE}, within=["role"])': "within=['role'] judges a table",
    f'assert_equivalent(trials, outcome="sentiment", {RACE})': "missing a required argument: 'margin'",
    f'assert_equivalent(trials, outcome="sentiments", {RACE}, margin=1)': "did you mean 'sentiment'?",
    'assert_baseline(trials, score="leter_score")': "did you mean 'letter_score'?",
    'assert_baseline(trials, score="letter_score", categories=["Race"])': "did you mean 'race_ethnicity'?",
    'assert_baseline(trials, score="letter_score", treshold=80)': "did you mean 'threshold'?",
    f'print(len(trials))\n    assert_no_disparity(trials[trials.role == "nurse"], "sentimet", {RACE})': "'sentiment'?",
    f'for what in ("sentiment", "wordcount"):\n        assert_no_disparity(trials, what, {RACE})': "'word_count'?",
    f'finding = analyze_disparity(trials, "sentimnt", {RACE})': "did you mean 'sentiment'?",
    f'return pytest_fairness.assert_no_disparity(trials, "sentimnt", {RACE})': "did you mean 'sentiment'?",
}
#: What is only known when the replies are there, and what is said of it then.
AFTER = {
    f'assert_no_disparity(trials.assign(a=1), "sentimnt", {RACE})': "did you mean 'sentiment'?",
    'assert_no_disparity(trials.copy(), "race_ethnicity", by="sentiment")': "outcome and by are swapped",
    'assert_no_disparity(trials.copy(), WHAT, by="Race")': "did you mean 'race_ethnicity'?",
    f'assert_no_disparity(trials[trials.race_ethnicity == "white"], WHAT, {RACE})': "holds one group only ('white')",
    f'dict(f=assert_four_fifths)["f"](trials, WHAT, {RACE}, favorable=1)': "did you mean 'favourable'?",
    f'assert_four_fifths(trials.copy(), "status", {RACE}, favourable="hired")': "favourable='hired' never occurs",
    f"assert_no_disparity(trials.reply.tolist(), WHAT, {RACE})": "expected a pandas DataFrame",
}
#: What is right, however odd: no session may be refused for it.
RIGHT = [
    FINE,
    f'trials["own"] = 1.0\n    analyze_disparity(trials, "own", {RACE})',
    f'trials.loc[:, "own"] = 1.0\n    analyze_disparity(trials, "own", {RACE})',
    f'trials.insert(0, "own", 1.0)\n    analyze_disparity(trials, "own", {RACE})',
    f'score(trials)\n    analyze_disparity(trials, "own", {RACE})',
    f'trials = trials.assign(own=1.0)\n    analyze_disparity(trials, "own", {RACE})',
    f'with pytest.raises(UsageError):\n        assert_no_disparity(trials, "sentimnt", {RACE})',
    f'if "own" in trials:\n        assert_no_disparity(trials, "own", {RACE})',
    'assert_no_disparity = dict\n    assert_no_disparity(outcome="sentimnt")',
    f'analyze_disparity(trials, "own", {RACE}, scorers={{"own": Scorer(name="own", score=len)}})',
    'analyze_disparity(trials, "char_count", ["race_ethnicity", "role"])',
    f'analyze_disparity(trials, "sentiment", {RACE}, block="role", cluster=None)',
    f'analyze_disparity(trials, "tier", {RACE})',
    "assert True",
]
MARKED = """
@GRID
@pytest.mark.parametrize("what", ["sentiment", "sentimnt"])
def test_param(trials, what):
    assert_no_disparity(trials, what, by="race_ethnicity")

@pytest.mark.parametrize("what", ["sentiment"])
@GRID
def test_right_param(trials, what):
    analyze_disparity(trials, what, by="race_ethnicity")

@GRID
@pytest.mark.skip(reason="later")
def test_later(trials):
    assert_no_disparity(trials, "sentimnt", by="race_ethnicity")

@GRID
@pytest.mark.xfail(raises=UsageError, strict=True)
def test_expected(trials):
    assert_no_disparity(trials, "sentimnt", by="race_ethnicity")
"""
OWN_TABLE = """
def score(frame):
    frame["own"] = 1.0

@pytest.fixture
def scored(trials):
    trials["own"] = 1.0

@GRID
def test_fixture(scored, trials):
    analyze_disparity(trials, "own", by="race_ethnicity")
"""


def suite(*bodies: str) -> str:
    """A test of each of *bodies*, which follow one another in the file."""
    return HEAD + "".join(
        f"\n@GRID\ndef test_{at:02}(trials):\n    {body}\n" for at, body in enumerate(bodies)
    )


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of all of BEFORE together, one line each."""
    from tests.support.sessions import run_pytest

    folder = tmp_path_factory.mktemp("before")
    folder.joinpath("test_suite.py").write_text(suite(*BEFORE) + MARKED, encoding="utf-8")
    done = run_pytest(folder, "-p", "no:cacheprovider", "-W", "default")
    assert done.ret == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert not (folder / "asked.log").exists()
    assert not (folder / ".fairness").exists()
    return f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("body", BEFORE)
def test_what_the_source_says_is_found_before_anything_is_asked(refusals: str, body: str) -> None:
    """With the file and the line of the call."""
    lines = suite(*BEFORE).splitlines()
    last = body.splitlines()[-1]
    line = next(
        at for at, text in enumerate(lines, 1) if text == f"    {body}".splitlines()[-1] and last
    )
    (said,) = [text for text in refusals.splitlines() if f"test_suite.py:{line}: " in text]
    assert BEFORE[body] in said


def test_parameters_are_looked_at_and_what_is_not_run_is_not(refusals: str) -> None:
    assert (
        len(re.findall(r"^(?:ERROR: )?test_suite\.py:\d+: ", refusals, re.MULTILINE))
        == len(BEFORE) + 1
    )
    assert "Traceback" not in refusals


def test_what_is_right_is_never_refused(project: Project) -> None:
    """Columns of the test's own, by whatever way they came into the table, and calls that do not
    run.
    """
    project.write(suite(*RIGHT) + OWN_TABLE)
    result = project.run()
    result.assert_outcomes(
        passed=len(RIGHT) + 1, warnings=result.parseoutcomes().get("warnings", 0)
    )


def test_in_every_mode_nothing_is_asked(project: Project, run_apart: Run) -> None:
    """A worker cannot end its controller's session: there each test says why."""
    project.write(suite(*list(BEFORE)[:1]))
    result = run_apart()
    assert result.ret != pytest.ExitCode.OK
    assert "did you mean 'sentiment'?" in f"{shown(result)} {result.stderr.str()}"
    assert not (project.path / "asked.log").exists()


def test_what_the_replies_show_takes_five_lines(project: Project, run_apart: Run) -> None:
    """The place in the test, the call, the message, and that nothing is asked again; no table,
    nothing of our inside; and nothing is.
    """
    project.write(suite(*AFTER))
    result = run_apart()
    result.assert_outcomes(failed=len(AFTER))
    output = result.stdout.str()
    assert "asserts.py" not in output
    assert "columns]" not in output
    sections = re.findall(
        r"^_+ test_(\d+) _+$\n(.*?)(?=^[_=]{3})", output, re.MULTILINE | re.DOTALL
    )
    assert len(sections) == len(AFTER)
    for number, section in sections:
        body, message = list(AFTER.items())[int(number)]
        lines = [line for line in section.splitlines() if line and not line.startswith("[gw")]
        assert len(lines) <= 5, section
        assert message in section, body
        assert (
            "the replies are kept: mend the test, then run it with --fairness-replay last"
            in lines[-1]
        )
    asked = (project.path / "asked.log").read_text("utf-8")
    project.write(suite(*(FINE for _ in AFTER)))
    mended = run_apart("--fairness-replay", "last")
    assert mended.parseoutcomes().get("passed") == len(AFTER), mended.stdout.str()
    assert (project.path / "asked.log").read_text("utf-8") == asked


def test_a_helper_of_the_project_is_shown(project: Project) -> None:
    """What stands between the test and the assertion is the project's own; ``--tb`` still gets all
    of it.
    """
    helper = f"\ndef check(table):\n    assert_no_disparity(table, 'sentimnt', {RACE})\n"
    project.write(suite("check(trials)") + helper)
    result = project.run()
    result.stdout.fnmatch_lines(
        ["test_suite.py:*: in test_00", "test_suite.py:*: in check", "E *did you mean*"]
    )
    assert "def _scorer_of" not in result.stdout.str()


FILES: dict[str, tuple[str, str, str | None]] = {
    "justifications, a key": (
        "justifications.yaml",
        "- test: a\n  expires: 2030-01-01\n",
        "unknown key 'expires'",
    ),
    "justifications, no list": ("justifications.yaml", "test: a\n", "expected a list"),
    "justifications, no YAML": (
        "justifications.yaml",
        "- [",
        "justifications.yaml:2: not valid YAML",
    ),
    "justifications, empty": ("justifications.yaml", "# none yet\n", None),
    "mitigations, a key": ("mitigations.yaml", "- tets: a\n", "unknown key 'tets'"),
    "mitigations, empty": ("mitigations.yaml", "", None),
}


@pytest.mark.parametrize("case", FILES)
def test_documents_are_read_before_anything_is_asked(project: Project, case: str) -> None:
    name, text, message = FILES[case]
    project.write(suite(FINE))
    (project.path / name).write_text(text, encoding="utf-8")
    result = project.run()
    said = f"{shown(result)} {result.stderr.str()}"
    if message is None:
        result.assert_outcomes(passed=1)
    else:
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert message in said
    assert (project.path / "asked.log").exists() is (message is None)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("justification={'reason': 'x'}", "missing key"),
        ("controls={'A.9.9': 'proof'}", "A.9.9"),
        ("alpha=5", "is no level"),
        ("hazard=['x']", "say it in words"),
        ("review_trigger=' '", "say it in words"),
        ("modul='x'", "has no 'modul'"),
    ],
)
def test_markers_are_read_before_anything_is_asked(
    project: Project, label: str, message: str
) -> None:
    source = suite(FINE)
    project.write(source.replace("@GRID", f"@GRID\n@pytest.mark.fairness({label})"))
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in f"{shown(result)} {result.stderr.str()}"
    assert not (project.path / "asked.log").exists()


def test_a_marker_misspelt_says_so(project: Project) -> None:
    project.write(
        "import pytest\n@pytest.mark.fairness_gird(template='x')\ndef test_it(trials): pass"
    )
    result = project.run()
    result.stdout.fnmatch_lines(["*fairness_gird is a typo; did you mean 'fairness_grid'?*"])
