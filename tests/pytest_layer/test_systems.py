"""Any callable is a system under test: overriding the ``endpoint`` fixture is all it takes."""

from __future__ import annotations

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
