"""The hazard and the review trigger of a test stand in its findings, in their log and in the
bundle.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pytest_fairness.reports.bundle import unpack, verify, write_bundle
from tests.support.runs import resummed

SUITE = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness(hazard="=cmd() no interview", review_trigger="a new model")
@pytest.mark.fairness_grid(template="Write a reference for {name}, a nurse.", names=(10,), repetitions=1,
                           groups={"gender": ["female", "male"]})
def test_reference(trials):
    assert_no_disparity(trials, outcome="word_count", by="gender", min_raw_diff=1000)

@pytest.mark.fairness_grid(template="Describe {name}, a nurse.", names=(10,), repetitions=1,
                           groups={"gender": ["female", "male"]})
def test_silent(trials):
    assert_no_disparity(trials, outcome="word_count", by="gender", min_raw_diff=1000)
"""
SCENARIO = {"hazard": "=cmd() no interview", "review_trigger": "a new model"}


@pytest.fixture
def run(pytester: pytest.Pytester, mode: list[str], monkeypatch: pytest.MonkeyPatch) -> Path:
    pytester.makepyfile(test_it=SUITE)
    pytester.runpytest_subprocess(*mode)
    monkeypatch.chdir(pytester.path)
    return max((pytester.path / ".fairness" / "runs").glob("2*"))


def test_a_scenario_stands_in_finding_report_and_bundle(run: Path, tmp_path: Path) -> None:
    """Who edits it in findings.json is found out, for the log has it, too."""
    findings = json.loads((run / "findings.json").read_text())["findings"]
    by_test = {finding["nodeid"].partition("::")[2]: finding for finding in findings}
    assert by_test["test_reference"]["scenario"] == SCENARIO
    assert by_test["test_silent"]["scenario"] == {}
    assert "a new model" in (run / "report.html").read_text(encoding="utf-8")
    bundle = write_bundle(run, tmp_path / "evidence.zip")
    folder = unpack(bundle, tmp_path / "unpacked")
    with (folder / "scenarios.csv").open(encoding="utf-8", newline="") as stream:
        rows = {row["test"].partition("::")[2]: row for row in csv.DictReader(stream)}
    row = rows["test_reference"]
    assert (row["class"], row["groups"]) == ("gender", "female, male")
    assert row["hazard"] == "'=cmd() no interview"
    assert row["measurement"] == "no_disparity: word_count"
    assert "alpha" in row["threshold"]
    assert row["review_trigger"] == "a new model"
    data = json.loads((folder / "findings.json").read_bytes())
    for finding in data["findings"]:
        finding["scenario"] = {"hazard": "none at all"}
    (folder / "findings.json").write_text(json.dumps(data, indent=1) + "\n")
    resummed(folder)
    assert any("scenario" in problem for problem in verify(folder).problems)


def test_a_run_from_before_scenarios_verifies(run: Path, tmp_path: Path) -> None:
    """Unless the log says that there was one."""
    path = run / "findings.json"
    data = json.loads(path.read_bytes())
    for finding in data["findings"]:
        if not finding["scenario"]:
            del finding["scenario"]
    path.write_text(json.dumps(data, indent=1) + "\n")
    assert verify(run).problems == []
    for finding in data["findings"]:
        finding.pop("scenario", None)
    path.write_text(json.dumps(data, indent=1) + "\n")
    assert any("scenario.hazard" in problem for problem in verify(run).problems)
