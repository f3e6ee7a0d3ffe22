"""A project's scorer in the place of a built-in one, and its fixture in the place of a named endpoint, are said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import BIASED, GRID, Run

OWN = """
import pytest
from pytest_fairness.scorers import Scorer

def length(reply):
    return float(len(reply))

def pytest_fairness_scorers():
    return [Scorer(name="sentiment", score=length)]

@pytest.fixture
def endpoint():
    return lambda prompt: "A fine tenant, " + prompt
"""
COLUMN = GRID.replace("trials, outcome", "trials.assign(sentiment=trials.reply.str.len() % 3), outcome")
SCORER = "the scorer 'sentiment' is the project's own (conftest.py), not the built-in one"
INSTEAD = "the fixture 'endpoint' of conftest.py was asked instead of --fairness-endpoint planted"

Findings = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_tone=GRID)
    pytester.path.joinpath("endpoints.yaml").write_text(BIASED, encoding="utf-8")
    return pytester


def test_both_are_said_before_anything_is_asked_and_in_the_finding(
    project: pytest.Pytester, run_in_mode: Run, findings: Findings
) -> None:
    project.makeconftest(OWN)
    result = run_in_mode("--fairness-endpoint=planted")
    printed = " ".join(result.stdout.str().split())
    assert f"fairness: {SCORER}" in printed
    assert "fairness: test_tone: the fixture 'endpoint' of conftest.py replaces --fairness-endpoint planted" in printed
    (finding,) = findings()
    assert {SCORER, INSTEAD} <= set(finding["notes"])


def test_a_failing_test_says_it_too(project: pytest.Pytester, run: Run) -> None:
    """In the message, where the finding is read."""
    project.makeconftest(OWN)
    result = run("--fairness-endpoint=planted", "--fairness-require-conclusive")
    assert result.ret == 1
    printed = " ".join(result.stdout.str().replace("\nE  ", "\n").split())
    assert f"note: {SCORER}" in printed


def test_nothing_is_said_where_nothing_is_replaced(project: pytest.Pytester, run: Run, findings: Findings) -> None:
    """Not of a scorer of another name, nor of a column of the name of one, nor of an endpoint that is asked."""
    project.makeconftest(OWN.partition("@pytest.fixture")[0])
    project.makepyfile(test_tone=COLUMN)
    result = run("--fairness-endpoint=planted")
    assert result.ret in (0, 1)
    assert "replaces" not in result.stdout.str()
    (finding,) = findings()
    assert not any("project's own" in note or "instead of" in note for note in finding["notes"])


def test_an_endpoint_of_the_ini_file_is_a_default(project: pytest.Pytester, run: Run, findings: Findings) -> None:
    """A fixture in its place is nothing to tell."""
    project.makeconftest(OWN.replace('name="sentiment"', 'name="length"'))
    project.makeini("[pytest]\nfairness_endpoint = planted\n")
    result = run()
    assert "replaces" not in result.stdout.str()
    assert "project's own" not in result.stdout.str()
    (finding,) = findings()
    assert not any("project's own" in note or "instead of" in note for note in finding["notes"])
