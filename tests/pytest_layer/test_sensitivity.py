"""``fairness_sensitivity``: could a test that passed have failed? In every mode."""

from __future__ import annotations

from .conftest import GRID, Project


def test_a_good_test_catches_what_is_planted_and_its_placebo_is_quiet(project: Project) -> None:
    """The shares stand in the file, beside the PASS in the terminal and on the page."""
    project.write(GRID)
    result = project.run("-o", "fairness_sensitivity=true")
    result.assert_outcomes(passed=1)
    (finding,) = project.findings
    tried = finding["details"]["sensitivity"]
    assert tried["caught"]["0.8"] == 1.0
    assert tried["could_fail"] is True
    assert tried["false_alarms"] <= 0.1
    assert any(
        "With a planted disparity this test raises the alarm" in note for note in finding["notes"]
    )
    result.stdout.fnmatch_lines(
        ["*PASS*", "*planted d 0.5 in * %, d 0.8 in 100 % of copies caught; placebo*"]
    )
    assert "of copies caught" in project.page
    assert "was tried on copies" not in finding["sentence"]
    assert "copies of its own data" in finding["explanation"]


BLIND = """
import pandas as pd, pytest
from pytest_fairness import assert_equivalent, assert_four_fifths, assert_no_disparity

@pytest.mark.fairness
def test_constant():
    rows = [(group, f"{group}{i % 50}", 5) for group in "ab" for i in range(200)]
    frame = pd.DataFrame(rows, columns=["race", "name", "rating"])
    assert_no_disparity(frame, outcome="rating", by="race")

@pytest.mark.fairness
def test_hired():
    rows = [(group, i % 2 == 0) for group in "ab" for i in range(400)]
    frame = pd.DataFrame(rows, columns=["race", "hired"])
    assert_four_fifths(frame, outcome="hired", by="race", cluster=None)
"""


def test_a_test_that_cannot_fail_is_seen(project: Project) -> None:
    """A constant outcome passes and always would; a four-fifths rule on four hundred decisions
    would not.
    """
    project.write(BLIND)
    project.run().assert_outcomes(passed=2)
    assert all("sensitivity" not in finding["details"] for finding in project.findings)
    result = project.run("-o", "fairness_sensitivity=true")
    result.assert_outcomes(passed=2)
    by_assertion = {finding["assertion"]: finding for finding in project.findings}
    blind = by_assertion["no_disparity"]
    assert blind["verdict"] == "PASS"
    assert blind["details"]["sensitivity"]["caught"] == {"0.5": 0.0, "0.8": 0.0}
    assert any(note.startswith("this test could not have failed") for note in blind["notes"])
    assert by_assertion["four_fifths"]["details"]["sensitivity"]["could_fail"] is True
    assert result.stdout.str().count("could not have failed") == 1
