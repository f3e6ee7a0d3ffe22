"""``fairness_sensitivity``: could a test that passed have failed? In every mode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import GRID, Run

Findings = Callable[[], list[dict[str, Any]]]


def test_a_good_test_catches_what_is_planted_and_its_placebo_is_quiet(
    pytester: pytest.Pytester, run_in_mode: Run, findings: Findings, last_run: Callable[[], Path]
) -> None:
    """The shares stand in the file, beside the PASS in the terminal and on the page."""
    pytester.makepyfile(GRID)
    result = run_in_mode("-o", "fairness_sensitivity=true")
    result.assert_outcomes(passed=1)
    (finding,) = findings()
    told = finding["details"]["sensitivity"]
    assert told["caught"]["0.8"] == 1.0
    assert told["could_fail"] is True
    assert told["false_alarms"] <= 0.1
    assert any("With a planted disparity this test raises the alarm" in note for note in finding["notes"])
    result.stdout.fnmatch_lines(["*PASS*", "*planted d 0.5 in * %, d 0.8 in 100 % of copies caught; placebo*"])
    assert "of copies caught" in (last_run() / "report.html").read_text(encoding="utf-8")
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


def test_a_test_that_cannot_fail_is_seen(pytester: pytest.Pytester, run: Run, findings: Findings) -> None:
    """A constant outcome passes and always would; a four-fifths rule on four hundred decisions would not."""
    pytester.makepyfile(BLIND)
    result = run("-o", "fairness_sensitivity=true")
    result.assert_outcomes(passed=2)
    by_assertion = {finding["assertion"]: finding for finding in findings()}
    blind = by_assertion["no_disparity"]
    assert blind["verdict"] == "PASS"
    assert blind["details"]["sensitivity"]["caught"] == {"0.5": 0.0, "0.8": 0.0}
    assert any(note.startswith("this test could not have failed") for note in blind["notes"])
    assert by_assertion["four_fifths"]["details"]["sensitivity"]["could_fail"] is True
    assert result.stdout.str().count("could not have failed") == 1


def test_nothing_is_planted_unless_asked_for(pytester: pytest.Pytester, run: Run, findings: Findings) -> None:
    pytester.makepyfile(BLIND)
    run().assert_outcomes(passed=2)
    assert all("sensitivity" not in finding["details"] for finding in findings())
