"""``batch: true`` in endpoints.yaml: a suite asked in a provider's batches concludes the same, for
half the price.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pytest_fairness.design.grid import expand_grid
from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.engine import progress
from tests.support.batch_server import BatchServer, Fate
from tests.support.entries import openai_entry
from tests.support.sessions import Session

from .conftest import GRID, Project, shown

KEY = "sk-canary-0123456789abcdef"
MODEL = ("--fairness-endpoint", "model")
BATCH = "    batch: {poll_seconds: 0.05}\n"
SMALL = GRID.replace("names=(20,), repetitions=2", "names=3, repetitions=1").replace(
    '    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")',
    '    assert set(trials["status"]) == {"answered"}, dict(trials["status"].value_counts())',
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    grid = expand_grid(
        template="Write a landlord reference for {name}.",
        groups={"race_ethnicity": ["white", "black"]},
        names=(40,),
    )
    # What a model knows of names: those of the grid, each with its group.
    signals = {text: dict(groups) for cell in grid for text, groups in cell.signals.items()}
    with BatchServer(
        simulated_endpoint(bias={"race_ethnicity": {"black": -1.0}}), signals=signals
    ) as running:
        yield running


def write(project: Project, server: BatchServer, suite: str, batch: str = BATCH) -> None:
    """The suite and an entry for the server, with ``batch:`` or without."""
    entry = openai_entry("model", server.openai_url, price=(10, 20), max_tokens=300)
    project.write(suite, f"endpoints:\n{entry}{batch}")


def test_the_findings_are_those_of_one_by_one(project: Project, server: BatchServer) -> None:
    """A suite asked in both ways on one server: the same findings to the last digit, half the cost,
    each request billed once, and the key in no file and no output."""
    write(project, server, GRID, batch="")
    project.run(*MODEL, "-o", "fairness_concurrency=1").assert_outcomes(failed=1)
    singly, cost = statistics(project), total(project)
    assert server.billed == 160

    server.forget()
    write(project, server, GRID)
    result = project.run(*MODEL)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*FAIL: black is worse off than white*"])
    assert statistics(project) == singly
    assert total(project) == pytest.approx(cost / 2, rel=1e-6)
    assert len(server.ledger) == server.billed == 160
    assert sum(len(batch.requests) for batch in server.batches.values()) == 160
    assert len({record["key"] for record in project.records("trial")}) == 160

    for path in project.path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), f"the key reached {path}"
    assert KEY not in result.stdout.str() + result.stderr.str()


def statistics(project: Project) -> list[dict[str, Any]]:
    """What the findings say of the model, without the run that they come from."""
    return [
        {key: one[key] for key in one.keys() - {"details", "notes"}} for one in project.findings
    ]


def total(project: Project) -> float:
    return sum(record["cost"] for record in project.records("trial"))


def test_a_batch_is_left_collected_and_replayed(
    project: Project, server: BatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits any longer while the provider works: the session says which batch goes on, how
    to collect and how to cancel it. The next one collects it, says how far it is, and asks nothing;
    a replay needs no provider."""
    write(project, server, SMALL, batch="    batch: {poll_seconds: 0.05, max_wait_hours: 0.0001}\n")
    server.hold = True
    result = project.run(*MODEL)
    result.assert_outcomes(errors=1)
    output = shown(result)
    assert "fairness: about 12 requests, about $" in output
    assert ", in the provider's batches (hours, most often)" in output
    assert (
        "batch batch_0 of 'model' (12 requests) goes on at the provider and will be billed"
        in output
    )
    assert f"POST {server.openai_url}/batches/batch_0/cancel" in output
    assert not server.ledger

    server.hold = False
    write(project, server, SMALL)
    monkeypatch.setattr(progress, "_MOST", 0.0)
    result = project.run(*MODEL, "--fairness-resume=last")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*model: 0/12 trials*batch batch_0 *0/12*", "*12/12 trials*"])
    assert "goes on at the provider" not in result.stdout.str()
    assert (len(server.batches), len(server.ledger)) == (1, 12)
    assert len(project.records("trial")) == 12

    calls = len(server.calls)
    project.run("--fairness-replay", "last").assert_outcomes(passed=1)
    assert len(server.calls) == calls


def test_ctrl_c_says_what_goes_on(project: Project, server: BatchServer) -> None:
    """An interrupt ends the session with exit code 2, names the batch and how to resume, and
    cancels nothing.
    """
    write(project, server, SMALL)
    server.hold = True
    arguments = ("-p", "no:cacheprovider", "-p", "no:xdist", *MODEL)
    session = Session(project.path, *arguments, merged=True)
    deadline = time.monotonic() + 60
    while not server.called("GET", "/batches/batch_0"):
        assert session.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    session.send_signal(signal.SIGINT)
    printed = " ".join(session.communicate(timeout=60)[0].decode().split())
    assert session.returncode == pytest.ExitCode.INTERRUPTED
    assert "batch batch_0 of 'model' (12 requests) goes on at the provider" in printed
    assert "--fairness-resume" in printed
    assert server.called("POST", "/cancel") == 0


def test_what_expired_is_shown_and_sent_again_on_request(
    project: Project, server: BatchServer
) -> None:
    """Half of a batch expires: those trials are errors; ``--fairness-retry-errors`` asks them in
    another batch.
    """
    write(project, server, SMALL)
    server.then_batch(Fate(status="expired"))
    result = project.run(*MODEL)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*'answered': np.int64(6), 'error': np.int64(6)*"])
    project.run(*MODEL, "--fairness-resume=last", "--fairness-retry-errors").assert_outcomes(
        passed=1
    )
    assert set(server.answered.values()) == {1}
    assert len(server.ledger) == 12


READ_BY_BATCH = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.fixture
def endpoint():
    return lambda prompt: f"Behind door {sum(map(ord, prompt))} somebody is glad."

@pytest.mark.fairness_grid(
    template="Decide about {name}.", groups={"race_ethnicity": ["white", "black"]}, names=(10,))
def test_doors(trials):
    assert_no_disparity(trials, outcome="decision", by="race_ethnicity")
"""


def test_what_a_model_reads_goes_in_batches(
    project: Project, server: BatchServer, mode: Sequence[str]
) -> None:
    """Reading turns are trials like any others: each is asked once, in a batch; a session that
    resumes the run reads the same and asks nothing.
    """
    write(project, server, READ_BY_BATCH)
    (project.path / "pytest.ini").write_text("[pytest]\nfairness_reader = model\n", "utf-8")
    project.run(mode=mode, apart=True)
    sent = sum(len(batch.requests) for batch in server.batches.values())
    readings = [record for record in project.records("trial") if is_reading(record)]
    assert sent == len(readings) == len(server.ledger) > 20
    (finding,) = project.findings
    assert finding["details"]["reader"]["endpoint"] == "model"
    project.run("--fairness-resume=last", mode=mode, apart=True)
    assert sum(len(batch.requests) for batch in server.batches.values()) == sent


def is_reading(record: dict[str, Any]) -> bool:
    return bool(record["cell"]["template"] == "reading")
