"""``--fairness-replay``: the same verdicts from the record, nothing asked, and nothing made up where it has a gap."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import ModelServer

from .conftest import GRID, MODELS, Run


@pytest.fixture
def run(run_apart: Run) -> Run:
    """Sessions here end processes, or must not share one with ours."""
    return run_apart


#: Ends the process at the first touch of a socket, and says at the end whether litellm was imported.
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


def findings_of(folder: Path) -> list[dict[str, Any]]:
    """The findings, without the one mark in which a replay differs."""
    found = json.loads((folder / "findings.json").read_text())["findings"]
    return [{key: value for key, value in finding.items() if key != "replayed"} for finding in found]


def outcomes_of(folder: Path) -> dict[str, str]:
    items = json.loads((folder / "findings.json").read_text())["items"]
    return {item["nodeid"]: item["outcome"] for item in items}


def test_a_replay_judges_as_the_run_did(
    pytester: pytest.Pytester, run: Run, last_run: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Systems behind HTTP and in Python, whole tables and single cells: the verdicts of the run come back from its
    log alone. No socket is opened, nothing is asked, and no name of an endpoint, file or key is needed."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    pytester.makepyfile(test_app=APPLICATION, test_model=GRID)
    with ModelServer() as server:
        pytester.path.joinpath("endpoints.yaml").write_text(MODELS.format(url=server.openai_url), encoding="utf-8")
        live = pytester.runpytest_inprocess(
            "-W", "default", "-p", "no:xdist", "-p", "no:cacheprovider", "--fairness-endpoint", "direct"
        )
    recorded = last_run()
    assert {"passed", "failed"} <= set(live.parseoutcomes())

    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OFFLINE", "1")
    pytester.path.joinpath("endpoints.yaml").unlink()
    pytester.makeconftest(OFFLINE)
    result = run("--fairness-replay", recorded.name)
    replayed = last_run()
    assert replayed != recorded
    assert outcomes_of(replayed) == outcomes_of(recorded)
    assert len(findings_of(recorded)) == 2
    key = lambda finding: finding["test_id"]  # noqa: E731
    assert sorted(findings_of(replayed), key=key) == sorted(findings_of(recorded), key=key)
    assert result.ret == live.ret == pytest.ExitCode.TESTS_FAILED
    assert "SOCKET" not in result.stderr.str()
    assert "replayed" in result.stdout.str()
    told = json.loads((replayed / "findings.json").read_text())["run"]
    assert told["replayed"] is True
    assert told["trials"]["total"] == 180
    assert "Replayed." in (replayed / "report.html").read_text(encoding="utf-8")


def test_a_replay_fails_closed(pytester: pytest.Pytester, last_run: Callable[[], Path]) -> None:
    """A changed prompt, a record edited by hand, a run that does not exist: each is named, and nothing is asked."""
    pytester.makepyfile(test_model=GRID)

    def replay(name: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess(
            "-W", "default", "-p", "no:xdist", "-p", "no:cacheprovider", "--fairness-replay", name
        )

    pytester.runpytest_inprocess("-W", "default", "-p", "no:xdist", "-p", "no:cacheprovider").assert_outcomes(passed=1)
    recorded = last_run()
    copy = pytester.path / "elsewhere"
    shutil.copytree(recorded, copy)

    pytester.makepyfile(test_model=GRID.replace("a landlord reference", "a long landlord reference"))
    result = replay("last")
    result.assert_outcomes(errors=1)
    told = result.stdout.str()
    assert f"run {recorded.name} holds no trial for cell 't2-white-" in told
    assert "repetition 0 (80 of 160 trials are missing)" in told
    assert "the prompt: the text of template 't2' changed" in told

    log = copy / "trials.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"status":"answered"', b'"status":"refused"', 1))
    result = replay("elsewhere")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*elsewhere/trials.jsonl, line *: the record was changed*"])

    result = replay("2020-01-01-001")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*holds no run '2020-01-01-001'; the newest are: {recorded.name}*"])
