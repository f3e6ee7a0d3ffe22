"""``batch: true`` in endpoints.yaml: a suite asked in a provider's batches concludes the same, for half the price."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.engine import progress
from tests.support.batch_server import BatchServer, Fate

from .conftest import GRID, Run

KEY = "sk-canary-0123456789abcdef"
ENTRY = """\
endpoints:
  - name: "model"
    type: "openai"
    model: "gpt-4o-mini"
    base_url: "{url}"
    api_key_env: "OPENAI_API_KEY"
    price: {{input_per_million: 10, output_per_million: 20}}
    default_parameters: {{max_tokens: 300}}
"""
BATCH = "    batch: {poll_seconds: 0.05}\n"
PLAIN = ("-W", "default", "-p", "no:cacheprovider", "-p", "no:xdist", "--fairness-endpoint", "model")
SMALL = GRID.replace("repetitions=2", "names=3, repetitions=1").replace(
    '    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")',
    '    assert set(trials["status"]) == {"answered"}, dict(trials["status"].value_counts())',
)


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer(simulated_endpoint(bias={"race_ethnicity": {"black": -1.0}}), signals=_signals()) as running:
        yield running


def _signals() -> dict[str, dict[str, str]]:
    """What a model knows of names: those of the grid, each with its group."""
    from pytest_fairness.design.grid import expand_grid

    grid = expand_grid(
        template="Write a landlord reference for {name}.", groups={"race_ethnicity": ["white", "black"]}, names=40
    )
    return {text: dict(groups) for cell in grid for text, groups in cell.signals.items()}


@pytest.fixture
def project(pytester: pytest.Pytester, server: BatchServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Write the suite and an entry for the server, with ``batch:`` or without."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def write(suite: str, batch: str = BATCH) -> None:
        pytester.makepyfile(test_model=suite)
        entry = ENTRY.format(url=server.openai_url) + batch
        pytester.path.joinpath("endpoints.yaml").write_text(entry, encoding="utf-8")

    return write


def total(folder: Path) -> float:
    return sum(record["cost"] for record in logged(folder, "trial"))


def logged(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = [line for log in sorted(folder.glob("trials*.jsonl")) for line in log.read_text("utf-8").splitlines()]
    return [record for line in lines if (record := json.loads(line))["type"] == kind]


def told_of(finding: dict[str, Any]) -> dict[str, Any]:
    """What a finding says of the model, without the run that it comes from."""
    return {key: value for key, value in finding.items() if key not in ("details", "notes")}


def test_the_findings_are_those_of_one_by_one(
    pytester: pytest.Pytester,
    run: Run,
    project: Callable[..., None],
    server: BatchServer,
    last_run: Callable[[], Path],
    findings: Callable[[], list[dict[str, Any]]],
) -> None:
    """A suite asked in both ways on one server: the same findings to the last digit, half the cost, each request
    billed once, and the key in no file and no output."""
    project(GRID, batch="")
    pytester.runpytest_inprocess(*PLAIN, "-o", "fairness_concurrency=1").assert_outcomes(failed=1)
    singly, cost = findings(), total(last_run())
    assert server.billed == 320

    server.forget()
    project(GRID)
    result = run("--fairness-endpoint", "model")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*FAIL: black is worse off than white*"])
    assert [told_of(one) for one in findings()] == [told_of(one) for one in singly]
    assert total(last_run()) == pytest.approx(cost / 2, rel=1e-6)
    assert len(server.ledger) == 320
    assert server.billed == 320
    assert sum(len(batch.requests) for batch in server.batches.values()) == 320
    keys = {record["key"] for record in logged(last_run(), "trial")}
    assert len(keys) == 320

    for path in pytester.path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), f"the key reached {path}"
    assert KEY not in result.stdout.str() + result.stderr.str()


def test_a_batch_is_left_collected_and_replayed(
    pytester: pytest.Pytester,
    project: Callable[..., None],
    server: BatchServer,
    last_run: Callable[[], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody waits any longer while the provider works: the session says which batch goes on, how to collect and how
    to cancel it. The next one collects it, says how far it is, and asks nothing; a replay needs no provider."""
    project(SMALL, batch="    batch: {poll_seconds: 0.05, max_wait_hours: 0.0001}\n")
    server.hold = True
    result = pytester.runpytest_inprocess(*PLAIN)
    result.assert_outcomes(errors=1)
    output = " ".join(result.stdout.str().split())
    assert "fairness: about 13 requests, about $" in output
    assert ", in the provider's batches (hours, most often)" in output
    assert "batch batch_0 of 'model' (12 requests) goes on at the provider and will be billed" in output
    assert f"POST {server.openai_url}/batches/batch_0/cancel" in output
    assert not server.ledger

    server.hold = False
    project(SMALL)
    monkeypatch.setitem(progress._EVERY, False, 0.0)
    result = pytester.runpytest_inprocess(*PLAIN, "--fairness-resume=last")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*model: 0/12 trials*batch batch_0 *0/12*", "*12/12 trials*"])
    assert "goes on at the provider" not in result.stdout.str()
    assert (len(server.batches), len(server.ledger)) == (1, 12)
    assert len(logged(last_run(), "trial")) == 12

    calls = len(server.calls)
    pytester.runpytest_inprocess(*PLAIN[:-2], "--fairness-replay", "last").assert_outcomes(passed=1)
    assert len(server.calls) == calls


def test_ctrl_c_says_what_goes_on(pytester: pytest.Pytester, project: Callable[..., None], server: BatchServer) -> None:
    """An interrupt ends the session with exit code 2, tells of the batch and how to go on, and cancels nothing."""
    project(SMALL)
    server.hold = True
    command = [sys.executable, "-m", "pytest", *PLAIN]
    session = subprocess.Popen(
        command, cwd=pytester.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ)
    )
    deadline = time.monotonic() + 60
    while not server.called("GET", "/batches/batch_0"):
        assert session.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    session.send_signal(signal.SIGINT)
    out, _ = session.communicate(timeout=60)
    assert session.returncode == pytest.ExitCode.INTERRUPTED
    told = " ".join(out.split())
    assert "batch batch_0 of 'model' (12 requests) goes on at the provider" in told
    assert "--fairness-resume" in told
    assert server.called("POST", "/cancel") == 0


def test_what_expired_is_told_and_asked_again_on_request(
    pytester: pytest.Pytester, project: Callable[..., None], server: BatchServer
) -> None:
    """Half of a batch expires: those trials are errors; ``--fairness-retry-errors`` asks them in another batch."""
    project(SMALL)
    server.then_batch(Fate(status="expired"))
    result = pytester.runpytest_inprocess(*PLAIN)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*'answered': np.int64(6), 'error': np.int64(6)*"])
    result = pytester.runpytest_inprocess(*PLAIN, "--fairness-resume=last", "--fairness-retry-errors")
    result.assert_outcomes(passed=1)
    assert set(server.answered.values()) == {1}
    assert len(server.ledger) == 12
