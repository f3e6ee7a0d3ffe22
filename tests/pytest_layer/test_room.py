"""A design that promises room: the marker of the test, or of its grid, hands it to the assertion."""

from __future__ import annotations

import pytest

from .conftest import Project

SUITE = """
    import pytest
    from pytest_fairness import assert_no_disparity

    GRID = dict(template=["Decide on {name}.", "Decide again on {name}."],
                groups={"race_ethnicity": ["white", "black"]}, names=(20,))

    @pytest.fixture
    def endpoint():
        return lambda prompt: "approve"

    @pytest.mark.fairness_grid(**GRID)
    def test_plain(trials):
        assert_no_disparity(trials, outcome="decision", by="race_ethnicity")

    @pytest.mark.fairness(room=True)
    @pytest.mark.fairness_grid(**GRID)
    def test_marked(trials):
        assert_no_disparity(trials, outcome="decision", by="race_ethnicity")

    @pytest.mark.fairness_grid(**GRID, room=True)
    def test_grid(trials):
        assert_no_disparity(trials, outcome="decision", by="race_ethnicity")
"""


def test_it_warns_in_every_mode(project: Project, mode: list[str]) -> None:
    """No PASS where every answer is the same, and nothing is asked twice for it."""
    project.write(SUITE)
    project.run("-W", "default", mode=mode, apart=True).assert_outcomes(passed=3, warnings=2)
    found = {finding["test_id"].split("::")[1]: finding for finding in project.findings}
    assert {name: (one["verdict"], one["reason"]) for name, one in found.items()} == {
        "test_plain": ("PASS", None),
        "test_marked": ("INCONCLUSIVE", "NO_ROOM"),
        "test_grid": ("INCONCLUSIVE", "NO_ROOM"),
    }
    assert "in 2 of 2 texts no answer varied" in found["test_plain"]["sentence"]
    assert len(project.records("trial")) == 240


@pytest.mark.parametrize("option", ["--fairness-require-conclusive"])
def test_it_fails_where_every_verdict_is_required(project: Project, option: str) -> None:
    project.write(SUITE)
    project.run(option).assert_outcomes(passed=1, failed=2)
