"""``--fairness-replay``: the same verdicts from the record, nothing asked, and nothing made up
where it has a gap.
"""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.conftest import MODES
from tests.support.runs import exported
from tests.support.servers import ModelServer

from .conftest import GRID, MODELS, Project

#: Ends the process at the first touch of a socket, and says at the end whether litellm was
#: imported.
OFFLINE = """
import os, sys

def refuse(event, arguments):
    if event.startswith("socket.") and event != "socket.gethostname":
        os.write(2, f"SOCKET: {event} {arguments}\\n".encode())
        os._exit(99)

sys.addaudithook(refuse)

def pytest_sessionfinish():
    assert not {"litellm", "openai", "httpx"} & set(sys.modules)
"""
APPLICATION = """
import os
import pytest
from pytest_fairness import assert_no_disparity

def review(prompt):
    if os.environ.get("OFFLINE"):
        raise AssertionError("asked in a replay")
    return "Bad, poor, hopeless work." if len(prompt) % 3 == 0 else "Great, excellent work."

@pytest.fixture
def endpoint():
    return review

grid = pytest.mark.fairness_grid(
    template="Review {name}.", groups={"race_ethnicity": ["white", "black"]}, names=5, repetitions=2,
)

@grid
def test_reviews(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")

@grid
def test_each_review(cell):
    assert "hopeless" not in cell.reply
"""


def judged(project: Project) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The findings of the newest run, without the one mark in which a replay differs, and how its
    tests ended.
    """
    findings = [
        {key: value for key, value in one.items() if key != "replayed"} for one in project.findings
    ]
    outcomes = {item["nodeid"]: item["outcome"] for item in project.results["items"]}
    return sorted(findings, key=lambda finding: str(finding["test_id"])), outcomes


@pytest.mark.parametrize("mode", ["plain", "n2"])
def test_a_replay_judges_as_the_run_did(
    project: Project, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Systems behind HTTP and in Python, whole tables and single cells: the verdicts of the run
    come back from its log alone. No socket is opened, nothing is asked, and no name of an endpoint,
    file or key is needed."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    with ModelServer() as server:
        project.write(GRID, MODELS.format(url=server.openai_url), test_app=APPLICATION)
        live = project.run("--fairness-endpoint", "direct")
    recorded, before = project.last, judged(project)
    assert {"passed", "failed"} <= set(live.parseoutcomes())
    assert len(before[0]) == 2

    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OFFLINE", "1")
    (project.path / "endpoints.yaml").unlink()
    project.pytester.makeconftest(OFFLINE)
    result = project.run("--fairness-replay", recorded.name, mode=MODES[mode], apart=True)
    assert project.last != recorded
    assert judged(project) == before
    assert result.ret == live.ret == pytest.ExitCode.TESTS_FAILED
    assert "SOCKET" not in result.stderr.str()
    assert "replayed" in result.stdout.str()
    run = project.results["run"]
    assert run["replayed"] is True
    assert run["trials"]["total"] == 180
    assert "Replayed." in project.page


def test_a_replay_fails_closed(project: Project) -> None:
    """A changed prompt, a record edited by hand, a run that does not exist: each is named, and
    nothing is asked.
    """
    project.write(GRID)
    project.run().assert_outcomes(passed=1)
    recorded, copy = project.last, project.path / "elsewhere"
    shutil.copytree(recorded, copy)

    project.write(GRID.replace("a landlord reference", "a long landlord reference"))
    result = project.run("--fairness-replay", "last")
    result.assert_outcomes(errors=1)
    printed = result.stdout.str()
    assert f"run {recorded.name} holds no trial for cell 't2-white-" in printed
    assert "repetition 0 (80 of 160 trials are missing)" in printed
    assert "the prompt: the text of template 't2' changed" in printed

    log = exported(copy) / "trials.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"status":"answered"', b'"status":"refused"', 1))
    for name, why in (
        ("elsewhere", "*elsewhere/trials.jsonl, line *: the record was changed*"),
        ("2020-01-01-001", f"*holds no run '2020-01-01-001'; the newest are: *{recorded.name}*"),
    ):
        result = project.run("--fairness-replay", name)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([why])
