"""What each verdict does to a test."""

from __future__ import annotations

import pytest

from tests.support.justifications import EXPIRES, IN_FORCE

from .conftest import GRID, Project

TABLE = """
import pandas as pd, pytest
from pytest_fairness import assert_no_disparity

def table(share_a, share_b, n=400):
    rows = [("a", i < share_a * n) for i in range(n)] + [("b", i < share_b * n) for i in range(n)]
    return pd.DataFrame(rows, columns=["race", "hired"])

MARK
def test_hired():
    assert_no_disparity(table(.60, .48), outcome="hired", by="race", cluster=None)
"""


def test_a_small_sample_fails_unless_it_is_a_smoke_test(project: Project) -> None:
    """INCONCLUSIVE(N) fails; ``--fairness-smoke`` skips it with the reason."""
    project.write(GRID.replace("names=(20,), repetitions=2", "names=4, repetitions=1"))
    project.run().assert_outcomes(failed=1)
    smoke = project.run("--fairness-smoke", "-rs")
    smoke.assert_outcomes(skipped=1)
    smoke.stdout.fnmatch_lines(["*smoke:*"])


@pytest.mark.parametrize(
    ("expiry", "outcome"), [(str(EXPIRES), "passed"), ("2020-06-30", "failed")]
)
def test_a_justified_flag_passes_and_is_listed(project: Project, expiry: str, outcome: str) -> None:
    """Until its justification expires; then the test and the report say that it has."""
    reason = (
        IN_FORCE if outcome == "passed" else {**IN_FORCE, "date": "2020-01-01", "expiry": expiry}
    )
    project.write(TABLE.replace("MARK", f"@pytest.mark.fairness(justification={reason})"))
    result = project.run()
    result.assert_outcomes(**{outcome: 1})
    assert (project.findings[0]["justification"] is not None) is (outcome == "passed")
    printed, _, summed_up = result.stdout.str().partition("= fairness =")
    assert ("one site" in summed_up) is (outcome == "passed")
    for text in (printed, project.page):
        assert ("its justification expired on 2020-06-30: one site (Jane, 2020-01-01)" in text) is (
            outcome == "failed"
        )
    assert f"The session {outcome}" in project.page


def test_a_test_that_cannot_run_says_why_in_the_report(project: Project) -> None:
    """What pytest says of the error, without what it says around it; and how the session ended."""
    suite = "import pytest\n\n@pytest.mark.fairness\ndef test_absent(no_such_fixture):\n    pass\n"
    project.write(suite)
    assert (
        project.run().ret
        == project.results["run"]["exit_status"]
        == project.manifest["exit_status"]
        == 1
    )
    (item,) = project.results["items"]
    assert (item["outcome"], item["message"].split("\n")[0]) == (
        "error",
        "fixture 'no_such_fixture' not found",
    )
    assert "1 of 1 fairness test failed." in project.page
    assert "error in setup or teardown" in project.page


def test_an_unclear_result_warns_and_fails_when_requested(project: Project) -> None:
    """INCONCLUSIVE(PRECISION) warns; ``--fairness-require-conclusive`` makes it fail."""
    project.write(
        TABLE.replace("MARK", "@pytest.mark.fairness").replace(".60, .48", ".60, .50, 60")
    )
    project.run().assert_outcomes(passed=1, warnings=1)
    project.run("--fairness-require-conclusive").assert_outcomes(failed=1)


CI_SUITE = """
import pytest
from pytest_fairness import assert_no_disparity
from pytest_fairness.endpoints import simulated_endpoint

@pytest.fixture
def endpoint():
    return simulated_endpoint(bias={"race_ethnicity": {"black": -1.2}})

@pytest.mark.fairness_grid(template=["Write a short job reference for {name}, a nurse."],
                           groups={"race_ethnicity": ["white", "black"]}, names=(15,))
def test_tone(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")

@pytest.mark.xfail(strict=True)
@pytest.mark.fairness_grid(template=["Write a short job reference for {name}, a nurse."],
                           groups={"race_ethnicity": ["white", "black"]}, names=(15,))
def test_expected(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")
"""


def test_in_ci_a_failure_is_its_sentence_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, mode: list[str]
) -> None:
    """The short summary, which pytest does not cut in CI, has the sentence and no table; the whole
    message stands once, above. A test that is expected to fail turns no session red by chance.
    """
    pytester.makepyfile(CI_SUITE)
    monkeypatch.setenv("CI", "true")
    result = pytester.runpytest_subprocess(*mode)
    result.assert_outcomes(failed=1, xfailed=1)
    short = "\n".join(result.outlines).partition("short test summary info")[2]
    (line,) = (line for line in short.splitlines() if line.startswith("FAILED"))
    assert " - FAIL: black is worse off than white on sentiment" in line
    assert "corrected p" in line
    assert len(short.splitlines()) < 8
    assert "\n".join(result.outlines).count("effect d   90 % interval") == 1, "one table"
    assert "red with a chance" not in "\n".join(result.outlines)
