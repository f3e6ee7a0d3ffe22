"""What other plugins and other tools get to see: JUnit properties, pytest-html rows."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tests.conftest import MODES

from .conftest import Project

HOSTILE = """
import pandas as pd, pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness
def test_hired():
    a, b = "<script>alert(1)</script>", "\\x1b[31mb\\ud800"
    rows = [(a, i < 60) for i in range(100)] + [(b, i < 10) for i in range(100)]
    frame = pd.DataFrame(rows, columns=["race", "hired"], dtype=object)  # Arrow's own texts hold no lone surrogate
    assert_no_disparity(frame, outcome="hired", by="race", cluster=None)
"""


@pytest.mark.parametrize("mode", ["plain", "n2"])
def test_they_show_the_finding_and_obey_nothing_in_it(project: Project, mode: str) -> None:
    """JUnit has one property a finding; rows and summary of pytest-html are raw HTML. What comes
    from data, and would break XML, a terminal or a page, is shown.
    """
    project.write(HOSTILE)
    options = ("--junitxml=junit.xml", "--html=report.html", "--self-contained-html")
    project.run(*options, mode=MODES[mode]).assert_outcomes(failed=1)
    (entry,) = ET.parse(project.path / "junit.xml").iter("property")
    assert entry.get("name") == "fairness no_disparity: hired by race"
    assert entry.get("value").startswith("FAIL: ")
    assert "\x1b" not in entry.get("value")
    page = (project.path / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in page or "&amp;lt;script&amp;gt;alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "60.0 %" in page
