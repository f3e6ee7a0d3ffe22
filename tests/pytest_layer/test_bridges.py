"""What other plugins and other tools get to see: JUnit properties, pytest-html rows."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from .conftest import Run

HOSTILE = """
import pandas as pd, pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness
def test_hired():
    a, b = "<script>alert(1)</script>", "\\x1b[31mb\\ud800"
    rows = [(a, i < 60) for i in range(100)] + [(b, i < 10) for i in range(100)]
    assert_no_disparity(pd.DataFrame(rows, columns=["race", "hired"]), outcome="hired", by="race", cluster=None)
"""


def test_junit_carries_each_sentence(pytester: pytest.Pytester, run_in_mode: Run) -> None:
    """One property a finding; group names that would break XML or a terminal are shown, not obeyed."""
    pytester.makepyfile(HOSTILE)
    run_in_mode("--junitxml=junit.xml").assert_outcomes(failed=1)
    (entry,) = ET.parse(pytester.path / "junit.xml").iter("property")
    assert entry.get("name") == "fairness no_disparity: hired by race"
    assert entry.get("value").startswith("FAIL: ")
    assert "\x1b" not in entry.get("value")


def test_pytest_html_shows_the_finding_and_obeys_nothing_in_it(pytester: pytest.Pytester, run_in_mode: Run) -> None:
    """Rows and summary are raw HTML there: whatever comes from data is escaped."""
    pytester.makepyfile(HOSTILE)
    run_in_mode("--html=report.html", "--self-contained-html").assert_outcomes(failed=1)
    page = (pytester.path / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in page or "&amp;lt;script&amp;gt;alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "60.0 %" in page
