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

def people(direct):
    rng = np.random.default_rng(2)
    black = rng.integers(0, 2, 3_000)
    income = rng.normal(50 - 8 * black, 10)
    granted = rng.random(3_000) < 1 / (1 + np.exp(-((income - 46) / 6 - direct * black)))
    return pd.DataFrame({"race": np.array(["white", "black"])[black], "income": income, "granted": granted})

@pytest.mark.fairness
def test_strata():
    assert_no_disparity(people(0), "granted", "race", cluster=None, within=["income"])

@pytest.mark.fairness
def test_strata_of_unequal():
    assert_no_disparity(people(1.5), "granted", "race", cluster=None, within="income", bins=10)
"""


def test_a_finding_about_many_firms(project: Project) -> None:
    """It is in the report with a row a firm, and derived again from the log."""
    project.write(SUITE)
    result = project.run("-m", "fairness", "-k", "firms")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*FAIL: 2 of 12 firms differ on hired by race (0 and 1)*"])
    fair, biased = sorted(project.findings, key=lambda finding: finding["verdict"])[::-1]
    assert (fair["verdict"], biased["verdict"]) == ("PASS", "FAIL")
    assert len(biased["details"]["each"]["rows"]) == 12
    assert "Each firm: all 12" in project.page
    assert verify_run(project.last, lambda *_: None).problems == []


def test_both_figures_of_a_table_with_strata(project: Project) -> None:
    """Both are reported whatever the first comes to, and derived again from the log; either fails
    the test.
    """
    project.write(SUITE)
    result = project.run("-m", "fairness", "-k", "strata")
    result.assert_outcomes(failed=2)
    verdicts = [(finding["block"], finding["verdict"]) for finding in project.findings]
    assert verdicts == [(None, "FAIL"), ("income", "PASS"), (None, "FAIL"), ("income", "FAIL")]
    sentences = [finding["sentence"] for finding in project.findings]
    assert sentences[1].startswith("Within strata of income: PASS: ")
    assert "explained" not in " ".join(sentences)
    assert "within strata of income it is PASS" in project.findings[0]["notes"]
    assert "without strata it is FAIL" in project.findings[1]["notes"]
    assert [finding["family"]["alpha"] for finding in project.findings] == [0.025] * 4
    assert any("in 10 bins" in note for note in project.findings[3]["notes"])
    assert verify_run(project.last, lambda *_: None).problems == []


def test_the_sensitivity_of_both(project: Project) -> None:
    """What is planted is caught within strata, too."""
    project.write(SUITE)
    project.run(
        "-m", "fairness", "-k", "test_strata and not unequal", "-o", "fairness_sensitivity=true"
    )
    within = project.findings[1]
    assert within["details"]["sensitivity"]["caught"]["0.8"] == 1.0
