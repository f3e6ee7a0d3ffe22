"""Annotations, SARIF, code quality and JUnit: read by others' parsers, each finding at its test's
line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml, Properties

from pytest_fairness.model import Verdict
from pytest_fairness.reports.ci_formats import (
    code_quality,
    junit,
    remarks,
    sarif,
    workflow_commands,
)
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.reports.outputs import MOST_SUMMARY, append_summary, repository_folder

from .factories import HOSTILE, categorical, disparity, passing, results

TEXT = f"{HOSTILE}\n::set-output name=a::b\r\n%0A::error::x,y [x](http://evil) {{0}} ##[error]z"


def run(*, texts: str = "FAIL: black is worse off.", folder: str = "") -> RunResults:
    """Two failed tests, one of them without a finding, a justified FLAG, a warning, a PASS, a test
    that was lost.
    """
    flag = {"verdict": Verdict.FLAG, "outcome": "salary", "justification": {"reason": "a need"}}
    outcome = texts if texts == TEXT else "sentiment"
    made = results(
        disparity(sentence=texts, outcome=outcome),
        disparity(**flag),
        categorical(),
        passing(),
        missing=["lost.py::test_l"],
    )
    data: Any = made.to_dict()
    for at, outcome in enumerate(("failed", "passed", "passed", "passed")):
        data["items"][at] |= {"outcome": outcome, "file": f"tests/test_{at}.py", "line": 10 + at}
    data["items"].append(
        {"nodeid": "a b.py::test_e", "outcome": "error", "message": texts, "findings": []}
    )
    return RunResults.from_dict(data)


def test_each_stands_at_its_test_the_worst_first() -> None:
    """Errors are what fails the session; a finding of a test that passed is a warning, a justified
    one a note.
    """
    found = [
        (one.level, one.rule, str(one.verdict), one.file, one.line) for one in remarks(run(), "app")
    ]
    assert found == [
        ("error", "no_disparity", "FAIL", "app/tests/test_0.py", 10),
        ("error", "test", "None", "app/a b.py", 1),
        ("error", "test", "None", "app/lost.py", 1),
        ("warning", "no_disparity", "INCONCLUSIVE", "app/tests/test_2.py", 12),
        ("note", "no_disparity", "FLAG", "app/tests/test_1.py", 11),
    ]


def test_annotations() -> None:
    """One line each; a place and a title that end where they should; at most ten of a level."""
    first, *_, last = workflow_commands(run())
    assert first == (
        "::error file=tests/test_0.py,line=10,title=FAIL%3A sentiment by race_ethnicity::FAIL: "
        "black is worse off. "
        "(tests/test_names.py::test_tone_does_not_follow_the_name)"
    )
    assert last.startswith(
        "::notice file=tests/test_1.py,line=11,title=FLAG%3A salary by race_ethnicity (justified)::"
    )
    for command in workflow_commands(run(texts=TEXT)):
        assert re.fullmatch(
            r"::(error|warning|notice) file=[^:,]*,line=\d+,title=[^:,]*::[^\r\n]*", command
        )
        assert command.isprintable()
        assert not re.search(r"##\[|%(?!25|3A|2C)", command)
    many = results(*[disparity(test_id=f"t.py::test_{at}") for at in range(30)])
    assert len(workflow_commands(many)) == 10


@pytest.mark.parametrize("texts", ["FAIL: black is worse off.", TEXT])
def test_sarif(texts: str) -> None:
    """The shape that GitHub reads; rules by index, fingerprints that stay, places as URIs, texts
    without links or placeholders. The OASIS schema, which no package carries, takes it: see
    docs/decisions/0120.
    """
    (made,) = json.loads(sarif(run(texts=texts)))["runs"]
    rules = [rule["id"] for rule in made["tool"]["driver"]["rules"]]
    assert rules == ["no_disparity", "test"]
    assert made["invocations"] == [{"executionSuccessful": False}]
    for result in made["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert not re.search(r"(?<!\\)[\[\]]|\{\d", result["message"]["text"])
    first, second, *_ = made["results"]
    assert first["partialFingerprints"] == {"pytestFairnessFinding/v1": run(texts=texts).ids[0]}
    assert second["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b.py"}, "region": {"startLine": 1},
    }  # fmt: skip


def test_code_quality() -> None:
    """What GitLab requires of each entry, and one fingerprint an entry."""
    made = json.loads(code_quality(run(texts=TEXT)))
    assert [one["severity"] for one in made] == ["critical", "major", "major", "minor", "info"]
    assert made[0]["location"] == {"path": "tests/test_0.py", "lines": {"begin": 10}}
    assert len({one["fingerprint"] for one in made}) == len(made)
    assert all(one["description"].isprintable() and one["check_name"] for one in made)


@pytest.mark.parametrize("texts", ["FAIL: black is worse off.", TEXT + "\ufffe\uffff"])
def test_junit(tmp_path: Path, texts: str) -> None:
    """junitparser counts what there is and finds each finding; what never finished is an error."""
    path = tmp_path / "junit.xml"
    path.write_text(junit(run(texts=texts)), encoding="utf-8")
    (suite,) = JUnitXml.fromfile(str(path))
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (6, 1, 2, 0)
    first, *_, last = list(suite)
    (entry,) = first.child(Properties)
    assert entry.name == "fairness no_disparity: sentiment by race_ethnicity"
    assert entry.value.startswith("FAIL: ") or "script" in entry.value
    assert (first.classname, last.classname, last.name) == ("tests.test_names", "lost", "test_l")
    assert last.result[0].message == "The test was collected and never finished."


def test_where_the_project_lies_in_the_repository(tmp_path: Path) -> None:
    """A path in an annotation starts at the checkout, wherever pytest's root directory is."""
    app = tmp_path / "services" / "app"
    app.mkdir(parents=True)
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        assert repository_folder(app, {name: str(tmp_path)}) == "services/app"
        assert repository_folder(tmp_path, {name: str(tmp_path)}) == ""
        assert repository_folder(app, {name: str(tmp_path / "other")}) == ""
    assert repository_folder(app, {}) == ""


def test_a_summary_that_is_full_stays_as_it_is(tmp_path: Path) -> None:
    """GitHub shows none of a step's summary that is longer than 1 MiB: what is there goes first."""
    path = tmp_path / "summary.md"
    assert append_summary(path, "é\n")
    path.write_text("x" * (MOST_SUMMARY - 3))
    assert append_summary(path, "é\n")
    assert not append_summary(path, "x")
    assert path.stat().st_size == MOST_SUMMARY
