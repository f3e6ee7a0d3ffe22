"""A project's scorer in the place of a built-in one, and its fixture in the place of a named
endpoint, are said.
"""

from __future__ import annotations

import pytest

from .conftest import BIASED, GRID, Project, shown

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
COLUMN = GRID.replace(
    "trials, outcome", "trials.assign(sentiment=trials.reply.str.len() % 3), outcome"
)
SCORER = "the scorer 'sentiment' is the project's own (conftest.py), not the built-in one"
INSTEAD = "the fixture 'endpoint' of conftest.py was asked instead of --fairness-endpoint planted"


def test_both_are_shown_before_anything_is_sent_and_in_the_finding(project: Project) -> None:
    """In the message of a failing test too, where the finding is read."""
    project.write(GRID, BIASED, conftest=OWN)
    result = project.run("--fairness-endpoint=planted", "--fairness-require-conclusive")
    assert result.ret == 1
    assert f"fairness: {SCORER}" in shown(result)
    replaces = (
        "fairness: test_tone: the fixture 'endpoint' of conftest.py replaces --fairness-endpoint "
        "planted"
    )
    assert replaces in shown(result)
    assert f"note: {SCORER}" in " ".join(result.stdout.str().replace("\nE  ", "\n").split())
    (finding,) = project.findings
    assert {SCORER, INSTEAD} <= set(finding["notes"])


@pytest.mark.parametrize(
    ("suite", "conftest", "ini"),
    [
        (COLUMN, OWN.partition("@pytest.fixture")[0], ""),
        (GRID, OWN.replace('name="sentiment"', 'name="length"'), "fairness_endpoint = planted\n"),
    ],
    ids=[
        "a column of the name of a scorer",
        "a scorer of another name, an endpoint of the ini file",
    ],
)
def test_nothing_is_shown_where_nothing_is_replaced(
    project: Project, suite: str, conftest: str, ini: str
) -> None:
    """An endpoint in the ini file is a default: a fixture in its place is nothing to say."""
    project.write(suite, BIASED, conftest=conftest)
    project.pytester.makeini(f"[pytest]\n{ini}")
    result = project.run(*([] if ini else ["--fairness-endpoint=planted"]))
    assert result.ret in (0, 1)
    assert "replaces" not in result.stdout.str()
    (finding,) = project.findings
    assert not any("project's own" in note or "instead of" in note for note in finding["notes"])
