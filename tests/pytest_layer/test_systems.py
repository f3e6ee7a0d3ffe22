"""Any callable is a system under test: overriding the ``endpoint`` fixture is all it takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run

SUITE = """
import pytest

{source}

@pytest.mark.fairness_grid(
    template="Rate {{name}}, a nurse.", groups={{"race_ethnicity": ["white", "black"]}}, names=3, repetitions=2,
)
def test_replies(trials):
    assert len(trials) == 12
    assert not trials["simulated"].any()
    assert set(trials["reply"]) == {{"7 out of 10"}}
"""
SYNC = """
@pytest.fixture
def endpoint():
    return lambda prompt: "7 out of 10"
"""
ASYNC = """
import asyncio

async def answer(prompt):
    await asyncio.sleep(0)
    return "7 out of 10"

@pytest.fixture
def endpoint():
    return answer
"""
CONVERSATION = """
def answer(messages):
    assert messages[-1]["role"] == "user"
    return "7 out of 10"

@pytest.fixture
def endpoint():
    return answer
"""


@pytest.mark.parametrize("source", [SYNC, ASYNC, CONVERSATION], ids=["sync", "async", "conversation"])
def test_any_callable(pytester: pytest.Pytester, run: Run, source: str) -> None:
    pytester.makepyfile(SUITE.format(source=source))
    run().assert_outcomes(passed=1)


COUNTED = """
import os, pytest

def answer(prompt):
    with open("asked.log", "a") as log:
        log.write(f"{os.getpid()} {prompt}\\n")
    return "7 out of 10"

@pytest.fixture
def endpoint():
    return answer

grid = pytest.mark.fairness_grid(
    template="Rate {name}, a nurse.", groups={"race_ethnicity": ["white", "black"]}, names=5, repetitions=2,
)

@grid
def test_one(trials): assert len(trials) == 20

@grid
def test_two(trials): assert len(trials) == 20

@grid
def test_each(cell): assert cell.reply
"""


def test_items_and_workers_share_their_trials(
    pytester: pytest.Pytester, run: Run, last_run: Callable[[], Path]
) -> None:
    """Three tests over one grid, in one process or several, ask each trial once."""
    pytester.makepyfile(COUNTED)
    run().assert_outcomes(passed=12)
    asked = pytester.path.joinpath("asked.log").read_text().splitlines()
    assert len(asked) == 20
    logged = [
        json.loads(line)
        for log in last_run().glob("trials*.jsonl")
        for line in log.read_text(encoding="utf-8").splitlines()
    ]
    assert len({record["key"] for record in logged if record.get("record", record.get("type")) == "trial"}) == 20


def test_a_system_that_never_answers_is_an_error_not_a_finding(pytester: pytest.Pytester, run: Run) -> None:
    source = SYNC.replace('lambda prompt: "7 out of 10"', "broken") + (
        "\ndef broken(prompt):\n    raise RuntimeError('no such table: letters')\n"
    )
    pytester.makepyfile(SUITE.format(source=source))
    result = run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*none of 12 trials has a usable answer*"])
    assert "no such table: letters" in result.stdout.str()


def test_an_unknown_endpoint_is_named(pytester: pytest.Pytester, run_in_mode: Run, mode: list[str]) -> None:
    """Before any test runs, with exit status 4; under workers, which can end no session, each test says so."""
    pytester.makepyfile(SUITE.format(source=""))
    pytester.path.joinpath("endpoints.yaml").write_text(
        'endpoints:\n  - name: "claude-sonnet"\n    type: "anthropic"\n    model: "claude-sonnet-4-5-20250929"\n'
    )
    result = run_in_mode("--fairness-endpoint", "claude-sonet")
    if "-n2" in mode:
        result.assert_outcomes(errors=1)
    else:
        assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = result.stdout.str() + result.stderr.str()
    assert "unknown endpoint 'claude-sonet'; did you mean 'claude-sonnet'?" in told
