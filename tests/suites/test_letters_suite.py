"""The letters suite as a user runs it: printed block, letters.json, baseline with its changelog; what slips is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

LETTERS = ("--pyargs", "pytest_fairness.suites.letters", "-p", "no:cacheprovider")
#: Fewer classes than by default, so that sessions are short.
OPTIONS = "classes: [gender, age]\n"
PLANTED = """
endpoints:
  - {name: fair, type: simulated}
  - {name: slips, type: simulated, slips: {age: {late_career: 0.9}}}
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makefile(".yaml", letters=OPTIONS, endpoints=PLANTED)
    return pytester


def run_of(project: pytest.Pytester, at: int = -1) -> Path:
    return sorted((project.path / ".fairness" / "runs").glob("20*"))[at]


def test_the_first_run(project: pytest.Pytester, mode: list[str]) -> None:
    """Without a baseline that test alone is red, and the block says so."""
    first = project.runpytest_subprocess(*mode, *LETTERS, "--fairness-endpoint=fair")
    first.assert_outcomes(passed=5, failed=1)
    first.stdout.fnmatch_lines(["Fairness Suite Results", "Total Letters: 500, to 100 personas",
                                "Endpoint: fair (simulated: no model was asked)", "Overall Bias Score: 100.0 / 100 ✓",
                                "- Race/Ethnicity: 100.0 / 100 ✓", "✗ FAILURES (0):", "None",
                                "Status: INCONCLUSIVE (no baseline is approved yet)"])  # fmt: skip


def test_from_approval_to_regression(project: pytest.Pytester) -> None:
    """Approved, all is green; an endpoint that slips about ten of a hundred personas is caught by that scope, in
    words, and is not approved.
    """
    justified = ("--fairness-approve", "--fairness-justification", "read 20 letters")
    project.runpytest_subprocess(*LETTERS, "--fairness-endpoint=fair", *justified).assert_outcomes(passed=6)
    held = project.runpytest_subprocess(*LETTERS, "--fairness-endpoint=fair", "--fairness-test=letters.baseline")
    held.assert_outcomes(passed=1, deselected=5)
    held.stdout.fnmatch_lines(["Status: PASS (no regressions vs baseline)"])
    worse = project.runpytest_subprocess(*LETTERS, "--fairness-endpoint=slips")
    worse.stdout.fnmatch_lines(['1. "*" detected (age, *) - Persona #*', "Status: FAIL (regression vs baseline)",
                                "Regressions:", "- *: * (baseline: 100.0) ↓ * points"])  # fmt: skip
    results = json.loads((run_of(project) / "letters.json").read_text(encoding="utf-8"))
    assert results["pass_count"] + results["warning_count"] + results["failure_count"] == 100
    assert results["category_scores"]["age"] < 100 == results["category_scores"]["religion"]
    assert results["group_scores"]["age"]["late_career"] < 90
    assert {one["category"] for one in results["warnings"]} == {"age"}
    assert "Fairness Suite Results\n" in (run_of(project) / "report.html").read_text(encoding="utf-8")
    only = ("--fairness-endpoint=slips", "--fairness-test=letters.baseline")
    refused = project.runpytest_subprocess(*LETTERS, *only, *justified)
    refused.stdout.fnmatch_lines(["*Approval refused: this is a regression*"])
    changelog = (project.path / "baselines" / "CHANGELOG.md").read_text(encoding="utf-8")
    assert changelog.count("## Baseline Update: v1.0.0") == 1
    (baseline,) = (project.path / "baselines").glob("*.json")
    document = json.loads(baseline.read_text(encoding="utf-8"))
    assert (document["version"], document["pass_count"], document["failure_count"]) == ("v1.0.0", 100, 0)
    assert len(document["category_scores"]) == 11


def test_a_variable_approves_nothing(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAIRNESS_APPROVE=true, as another tool has it, is answered with what to type."""
    project.makepyfile("import pytest\n@pytest.mark.fairness\ndef test_it():\n    pass\n")
    for value, ends in (("true", pytest.ExitCode.USAGE_ERROR), ("0", pytest.ExitCode.OK)):
        monkeypatch.setenv("FAIRNESS_APPROVE", value)
        result = project.runpytest_inprocess("-p", "no:cacheprovider")
        assert result.ret == ends
    monkeypatch.setenv("FAIRNESS_APPROVE", "true")
    project.runpytest_inprocess().stderr.fnmatch_lines(["*FAIRNESS_APPROVE='true' is set and approves nothing*"])


def test_what_the_options_cannot_mean_is_refused(project: pytest.Pytester) -> None:
    for text, message in (
        ("classes: [star_sign]\n", "*letters.yaml:1: classes: 'star_sign' is none of age, *"),
        ("template: [nowhere.txt]\n", "*letters.yaml:1: template: there is no file 'nowhere.txt'*"),
        ("lettres: 3\n", "*letters.yaml:1: unknown key 'lettres'*"),
    ):
        (project.path / "letters.yaml").write_text(text, encoding="utf-8")
        result = project.runpytest_subprocess(*LETTERS)
        assert result.ret != 0
        result.stdout.fnmatch_lines([message])
