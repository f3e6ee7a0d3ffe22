"""Green says that something was judged: tests that conclude nothing are named, sessions that judge
nothing say so.
"""

from __future__ import annotations

import json
import re

import pytest

from pytest_fairness.reports.outputs import write_outputs
from tests.conftest import MODES
from tests.support.servers import ModelServer

from .conftest import BIASED, GRID, Project, shown

ASKED = """
import pytest
from pytest_fairness import analyze_disparity, assert_no_disparity

GRID = {"template": ["Write a short job reference for {name}, a nurse.", "Write a landlord reference for {name}."],
        "groups": {"race_ethnicity": ["white", "black"]}, "names": (20,), "repetitions": 1}

@pytest.mark.fairness_grid(**GRID)
def test_empty(trials):
    pass

@pytest.mark.fairness_grid(**GRID)
def test_dropped(trials):
    analyze_disparity(trials, outcome="sentiment", by="race_ethnicity")

@pytest.mark.fairness_grid(**GRID)
@pytest.mark.fairness(finding=False)
def test_by_its_own_asserts(trials):
    assert trials["reply"].notna().all()

@pytest.mark.fairness_grid(**{**GRID, "names": 1, "repetitions": 1})
def test_cell(cell):
    assert cell.reply
"""
JUDGED = """
@pytest.mark.fairness_grid(**{**GRID, "repetitions": 2})
def test_judged(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")
"""
TRUTH = """
@pytest.mark.fairness_grid(**GRID)
def test_truth(trials):
    assert analyze_disparity(trials, outcome="sentiment", by="race_ethnicity")
"""
NAMED = {
    "test_suite.py::test_empty": "asked 80 trials and concluded nothing",
    "test_suite.py::test_dropped": "asked 80 trials and concluded nothing, though it analysed sentiment by "
    "race_ethnicity",
}


@pytest.mark.parametrize("mode", MODES)
def test_a_test_that_concludes_nothing_is_named(project: Project, mode: str) -> None:
    """In the summary, findings.json and on the page; not those of single cells, nor who says that
    it judges by asserts of its own. The session is not green beside it, nor grey where something
    else was judged.
    """
    project.write(ASKED + JUDGED)
    result = project.run("-q", mode=MODES[mode])
    assert result.ret == pytest.ExitCode.OK
    text, results = shown(result), project.results
    for test, words in NAMED.items():
        assert f"{test} {words}" in text
    assert text.count("concluded nothing") == 2
    unjudged = {item["nodeid"]: item["unjudged"] for item in results["items"] if item["unjudged"]}
    assert set(unjudged) == set(NAMED)
    assert unjudged["test_suite.py::test_dropped"] == {
        "trials": 80,
        "cost": 0.0,
        "unpriced": 0,
        "dropped": ["sentiment by race_ethnicity"],
    }
    tone, heading = first_box(project.page)
    assert (tone, heading) == ("undecided", "1 passed, 2 tests concluded nothing")
    assert all(words in project.page for words in NAMED.values())


def first_box(page: str) -> tuple[str, str]:
    """Tone and heading of what a reader of the *page* sees first."""
    found = re.search(
        r'<section class="chapter (\w+)" id="outcome".*?<h2[^>]*>(.*?)</h2>', page, re.DOTALL
    )
    assert found is not None
    return found[1], found[2].strip()


def test_every_output_names_it(project: Project) -> None:
    """Markdown, annotations, SARIF, code quality, JUnit."""
    project.write(ASKED)
    project.run().assert_outcomes(passed=7)
    project.path.joinpath("pyproject.toml").write_text("", encoding="utf-8")
    outputs = {name: project.path / name for name in ("markdown", "junit", "sarif", "code_quality")}
    write_outputs(project.last, **outputs)
    texts = {name: path.read_text(encoding="utf-8") for name, path in outputs.items()}
    assert "## Fairness: no groups were compared" in texts["markdown"]
    assert "### Tests that concluded nothing" in texts["markdown"]
    for name, text in texts.items():
        assert text.count("asked 80 trials and concluded nothing") == 2, name
    levels = {one["level"] for one in json.loads(texts["sarif"])["runs"][0]["results"]}
    assert levels == {"warning"}


def test_what_it_cost_is_said(project: Project) -> None:
    """In dollars, where trials have a price."""
    with ModelServer() as server:
        project.write(
            ASKED,
            "endpoints:\n  - {name: paid, type: openai, model: gpt-test, price: {per_call: 0.01},\n"
            f"     base_url: '{server.openai_url}', default_parameters: {{max_tokens: 200}}}}\n",
        )
        result = project.run(
            "--fairness-endpoint", "paid", "--fairness-max-cost", "5", "-k", "empty"
        )
    assert "test_suite.py::test_empty asked 80 trials ($0.8000) and concluded nothing" in shown(
        result
    )


@pytest.mark.parametrize("mode", MODES)
def test_strictness_fails_it(project: Project, mode: str) -> None:
    """With the mend; who judges by asserts of its own passes."""
    project.write(ASKED)
    result = project.run("--fairness-require-conclusive", mode=MODES[mode])
    result.assert_outcomes(failed=2, passed=5)
    text = shown(result)
    assert (
        "It asked 80 trials and concluded nothing. Assert on the trials with assert_no_disparity"
        in text
    )
    assert "@pytest.mark.fairness(finding=False)" in text


@pytest.mark.parametrize("value", ["0", "'no'"])
def test_the_mark_is_true_or_false(project: Project, value: str) -> None:
    project.write(ASKED.replace("finding=False", f"finding={value}"))
    result = project.run("-k", "own_asserts")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "say False where it judges by its own asserts" in str(result.stderr)


def test_the_truth_of_a_finding_is_an_error(project: Project) -> None:
    """``assert analyze_disparity(…)`` passed, whatever was found."""
    project.write(ASKED + TRUTH, BIASED)
    result = project.run("-k", "truth", "--fairness-endpoint", "planted")
    result.assert_outcomes(failed=1)
    assert "TypeError: a finding is neither true nor false, and this one is FAIL" in shown(result)
    assert first_box(project.page)[0] == "failed"


UNDECIDED = (
    GRID.replace("names=(20,), repetitions=2", "names=(12,), repetitions=2")
    + """
@pytest.mark.fairness_grid(template="Rate {name} from 1 to 10.", groups={"gender": ["female", "male"]}, names=(40,))
def test_rated(trials):
    assert_no_disparity(trials, outcome="word_count", by="gender")
"""
)


def test_undecided_findings_stand_in_the_headline(project: Project) -> None:
    """Amber, with how many of each; the sentence says that they decide nothing."""
    project.write(UNDECIDED)
    project.run().assert_outcomes(passed=2, warnings=1)
    verdicts = sorted(finding["verdict"] for finding in project.findings)
    assert verdicts == ["INCONCLUSIVE", "PASS"]
    assert first_box(project.page) == ("undecided", "1 passed, 1 undecided")
    assert "1 of 2 findings decide nothing" in project.page


def test_a_session_without_a_finding_says_so(project: Project) -> None:
    """In grey: nothing was judged; where tests passed by asserts of their own, no groups were
    compared.
    """
    project.write(ASKED)
    result = project.run("-k", "empty")
    assert "fairness: 0 findings, nothing was judged (simulated)" in shown(result)
    assert first_box(project.page) == ("nothing", "Nothing was judged")
    result = project.run("-k", "own_asserts or cell")
    assert "fairness: 0 findings, no groups were compared (simulated)" in shown(result)
    assert first_box(project.page) == ("nothing", "No groups were compared")
    project.write(ASKED + JUDGED)
    project.run("-k", "test_judged")
    assert first_box(project.page) == ("passed", "The session passed")


# ---------------------------------------------------------------- all skipped

TIERS = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness_grid(template="Rate {name} from 1 to 10.", groups={"gender": ["female", "male"]}, SYSTEM)
def test_rated(trials):
    assert_no_disparity(trials, outcome="rating", by="gender")
"""
NO_SYSTEM = TIERS.replace(", SYSTEM", "")
DEAF = """
import pytest
from pytest_fairness.endpoints import simulated_endpoint

@pytest.fixture
def endpoint():
    system = simulated_endpoint()
    system.supports_system_prompt = False
    return system
"""
SKIPPED = NO_SYSTEM.replace("@pytest.mark", '@pytest.mark.skip(reason="not now")\n@pytest.mark', 1)
WITHIN = NO_SYSTEM.replace("    assert_no", '    pytest.skip("not now")\n    assert_no')
OTHER = "\ndef test_other():\n    pass\n"
SMALL = NO_SYSTEM.replace('"male"]}', '"male"]}, names=2, repetitions=1')
DEAF_TO_ROLES = TIERS.replace("SYSTEM", 'system="You rate."') + DEAF
#: Suite, options and exit status.
SKIPS = {
    "no tier 1": (NO_SYSTEM, ["--fairness-tier=1"], 5),
    "no system prompt": (DEAF_TO_ROLES, [], 5),
    "another test": (NO_SYSTEM + OTHER, ["--fairness-tier=1"], 0),
    "another test, deselected": (NO_SYSTEM + OTHER, ["--fairness-tier=1", "-k", "rated"], 5),
    "the author's mark": (SKIPPED, [], 0),
    "the author's mark beside ours": (SKIPPED, ["--fairness-tier=1"], 0),
    "the author's skip": (WITHIN, [], 0),
    "smoke": (SMALL, ["--fairness-smoke"], 0),
    "a shard": (NO_SYSTEM, ["--fairness-shard=1/2"], 0),
    "a shard without tier 1": (NO_SYSTEM, ["--fairness-shard=1/2", "--fairness-tier=1"], 0),
}


WITH_WORKERS = ("no system prompt", "another test", "a shard", "the author's skip")


@pytest.mark.parametrize(
    ("about", "mode"),
    [*((about, "plain") for about in SKIPS), *((about, "n2") for about in WITH_WORKERS)],
)
def test_a_session_of_which_everything_was_skipped(project: Project, about: str, mode: str) -> None:
    """It tested nothing, so it ends with 5, as where nothing is selected, and says why; the
    authors' own skips, smoke and shards count as pytest counts them.
    """
    suite, options, status = SKIPS[about]
    project.write(suite)
    result = project.run(*options, mode=MODES[mode])
    assert result.ret == status, about
    assert result.parseoutcomes()["skipped"] == 1
    if status == 5:
        text = shown(result)
        assert "fairness: 0 findings, nothing was judged" in text
        assert "1 test skipped: " in text
        assert first_box(project.page) == ("nothing", "Nothing was judged")
        assert project.results["run"]["exit_status"] == 5
        assert "Why tests were skipped" in project.page
    if about == "smoke":  # its finding says why
        assert project.findings
        assert "test skipped: " not in shown(result)


def test_a_suite_that_skips_everything(project: Project) -> None:
    """By its own skip, and by its own mark: governance without a population, a selection without
    tier 2.
    """
    project.write("")
    for arguments in (
        ["pytest_fairness.suites.selection", "--fairness-tier=2"],
        [
            "pytest_fairness.suites.governance",
            "-k",
            "test_data_are_like_the_population or test_dataset",
        ],
    ):
        result = project.run("--pyargs", *arguments, apart=True)
        assert result.parseoutcomes().keys() <= {"skipped", "deselected"}
        assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED, arguments
