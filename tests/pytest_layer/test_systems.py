"""Any callable is a system under test: overriding the ``endpoint`` fixture is all it takes."""

from __future__ import annotations

import pytest

from tests.conftest import MODES

from .conftest import Project

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


@pytest.mark.parametrize("mode", MODES)
def test_an_unknown_endpoint_is_named(project: Project, mode: str) -> None:
    """Before any test runs, with exit status 4; under workers, which can end no session, each test
    says so.
    """
    entry = 'endpoints:\n  - name: "claude-sonnet"\n    type: "anthropic"\n    model: "claude-sonnet-4-5-20250929"\n'
    project.write(SUITE.format(source=""), entry)
    result = project.run("--fairness-endpoint", "claude-sonet", mode=MODES[mode])
    if mode == "n2":
        result.assert_outcomes(errors=1)
    else:
        assert result.ret == pytest.ExitCode.USAGE_ERROR
    printed = result.stdout.str() + result.stderr.str()
    assert "unknown endpoint 'claude-sonet'; did you mean 'claude-sonnet'?" in printed
