"""A list of outcomes in one assertion: all are judged, reported and recorded, whatever the first
comes to.
"""

from __future__ import annotations

import pytest

from .conftest import Project

SUITE = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness_grid(template="Write a short job reference for {name}.", names=(10,), repetitions=4,
                           groups={"gender": ["female", "male"]})
def test_letters(trials):
    assert_no_disparity(trials, outcome=["sentiment", "word_count"], by="gender")
"""


def test_every_outcome_is_in_the_report(project: Project) -> None:
    """Each is recorded as it was judged, so that it can be derived again."""
    project.write(SUITE)
    project.run("-m", "fairness")
    assert [finding["outcome"] for finding in project.findings] == ["sentiment", "word_count"]
    levels = [finding["family"]["alpha"] for finding in project.findings]
    assert levels == pytest.approx([0.015 / 2, 0.015 / 2])
    judged = [
        (record["place"], record["arguments"]["alpha"]) for record in project.records("judgement")
    ]
    assert judged == [(0, 0.025), (1, 0.025)]
