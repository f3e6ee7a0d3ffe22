"""Tables that exist, in test functions: each firm by itself, and strata beside the plain figure."""

from __future__ import annotations

from pytest_fairness.reports.verification import verify_run

from .conftest import Project

SUITE = """
import numpy as np, pandas as pd, pytest
from pytest_fairness import assert_no_disparity

def decisions(biased):
    rng = np.random.default_rng(1)
    firm = np.repeat(np.arange(12), 400)
    black = rng.integers(0, 2, firm.size)
    hired = rng.random(firm.size) < 0.5 - 0.25 * black * (firm < biased)
    return pd.DataFrame({"firm": firm, "race": np.array(["white", "black"])[black], "hired": hired})

@pytest.mark.fairness
def test_firms():
    assert_no_disparity(decisions(2), "hired", "race", cluster=None, each="firm", correction="fdr_bh")

@pytest.mark.fairness
def test_fair_firms():
    assert_no_disparity(decisions(0), "hired", "race", cluster=None, each="firm", correction="fdr_bh")
"""


def test_a_finding_about_many_firms(project: Project) -> None:
    """It is in the report with a row a firm, and derived again from the log."""
    project.write(SUITE)
    result = project.run("-m", "fairness")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*FAIL: 2 of 12 firms differ on hired by race (0 and 1)*"])
    fair, biased = sorted(project.findings, key=lambda finding: finding["verdict"])[::-1]
    assert (fair["verdict"], biased["verdict"]) == ("PASS", "FAIL")
    assert len(biased["details"]["each"]["rows"]) == 12
    assert "Each firm: all 12" in project.page
    assert verify_run(project.last, lambda *_: None).problems == []
