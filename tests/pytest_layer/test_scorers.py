"""Scorers of a project: declared in its conftest, named in its tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Run

EXCLAMATIONS = """
from pytest_fairness import scorer

@scorer(kind="numeric", unit="marks", low=0)
def exclamations(reply):
    return reply.count("!")

def pytest_fairness_scorers():
    return [exclamations]
"""

MARKS = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.fixture
def endpoint():
    return lambda prompt: "Good!" if len(prompt) % 2 else "Good."

@pytest.mark.fairness_grid(template="Rate {name}.", groups={"race_ethnicity": ["white", "black"]})
@pytest.mark.parametrize("outcome", ["exclamations", lambda reply: reply.count("!")], ids=["declared", "bare"])
def test_marks(trials, outcome):
    assert_no_disparity(trials, outcome=outcome, by="race_ethnicity", alpha=1e-9)
"""


def test_a_projects_scorer_declares_its_kind(
    pytester: pytest.Pytester, run: Run, findings: Callable[[], list[dict[str, Any]]]
) -> None:
    """A count that meets 0 and 1 only stays a count where it is declared; a plain function is taken by its values."""
    pytester.makeconftest(EXCLAMATIONS)
    pytester.makepyfile(MARKS)
    run("-m", "fairness")
    kinds = {finding["outcome"]: (finding["kind"], finding["unit"], finding["notes"]) for finding in findings()}
    assert set(kinds) == {"exclamations", "custom score"}
    assert kinds["exclamations"][:2] == ("numeric", "marks")
    assert not any("taken to be" in note for note in kinds["exclamations"][2])
    assert kinds["custom score"][0] == "binary"
    assert any("taken to be binary" in note for note in kinds["custom score"][2])
