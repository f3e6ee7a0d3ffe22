"""Tables that exist, in test functions: each firm by itself, and strata beside the plain figure."""

from __future__ import annotations

from pytest_fairness.reports.verification import verify_run

from .conftest import Project

SUITE = """
import numpy as np, pandas as pd, pytest
from pytest_fairness import (
    assert_equal_error_rates, assert_equivalent, assert_four_fifths, assert_no_disparity,
)

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

@pytest.mark.fairness
def test_ratios():
    assert_four_fifths(decisions(2), "hired", "race", cluster=None, each="firm", correction="fdr_bh")

@pytest.mark.fairness
def test_ratios_alike():
    assert_four_fifths(people(0), "granted", "race", cluster=None, within="income")

@pytest.mark.fairness
def test_margins():
    assert_equivalent(decisions(0), "hired", "race", cluster=None, each="firm", margin=0.3)

@pytest.mark.fairness
def test_margins_alike():
    assert_equivalent(people(0), "granted", "race", cluster=None, within="income", margin=0.1)

def compas():
    # Larson et al. (ProPublica, 2016): by race and being charged again, people of each decile
    numbers = {
        ("black", 0): (307, 274, 201, 208, 189, 169, 163, 114, 111, 59),
        ("black", 1): (91, 119, 145, 177, 176, 215, 237, 245, 269, 227),
        ("white", 0): (539, 248, 180, 172, 130, 83, 55, 32, 30, 19),
        ("white", 1): (142, 113, 93, 113, 111, 111, 88, 82, 68, 45),
    }
    rows = []
    for (race, charged), of_deciles in numbers.items():
        for decile, number in enumerate(of_deciles, 1):
            rows.append((race, charged, decile, int(decile > 4), number))
    return pd.DataFrame(rows, columns=["race", "charged", "decile", "risk", "number_of_rows"])

@pytest.mark.fairness
def test_rates_of_error():
    assert_equal_error_rates(
        compas(), "risk", "race", truth="charged", score="decile", lower_is_worse=False, cluster=None)

@pytest.mark.fairness
def test_rates_of_a_score():
    assert_equal_error_rates(
        compas(), "decile", "race", truth="charged", lower_is_worse=False, cluster=None)
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


def test_each_rate_of_error_is_a_finding(project: Project) -> None:
    """All are reported, the worst is what the test fails with, and each is derived again; the report
    shows whom a score was right about.
    """
    project.write(SUITE)
    result = project.run("-m", "fairness", "-k", "rates")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["FAILED *test_rates_of_error - FAIL: black is worse off than *"])
    verdicts = [finding["verdict"] for finding in project.findings]
    assert verdicts == ["FLAG", "FAIL", "PASS", "PASS", "PASS", "PASS"]
    assert [finding["family"]["alpha"] for finding in project.findings] == [0.01] * 5 + [0.05]
    notes = " ".join(project.findings[1]["notes"])
    assert "the false-positive rate would be 42.6 % in black and 26.1 % in white" in notes
    assert "Observed and expected at each decile" in project.page
    assert len(project.findings[4]["details"]["calibration"]["rows"]) == 20
    verification = verify_run(project.last, lambda *_: None)
    assert verification.problems == []
    assert [derived.same for derived in verification.derived] == [True] * 6


def test_ratios_and_margins_in_firms_and_strata(project: Project) -> None:
    """Each is reported and derived again as a disparity is."""
    project.write(SUITE)
    result = project.run("-m", "fairness", "-k", "ratios or margins")
    result.assert_outcomes(failed=3, passed=1)
    judged = [(finding["assertion"], finding["verdict"]) for finding in project.findings]
    assert judged == [
        ("four_fifths", "FAIL"),
        ("four_fifths", "FAIL"),
        ("four_fifths", "PASS"),
        ("equivalent", "PASS"),
        ("equivalent", "FAIL"),
        ("equivalent", "PASS"),
    ]
    assert [
        len(finding["details"].get("each", {}).get("rows", ())) for finding in project.findings
    ] == [*(12, 0, 0, 12, 0, 0)]
    verification = verify_run(project.last, lambda *_: None)
    assert verification.problems == []
    assert [derived.same for derived in verification.derived] == [True] * 6


def test_the_sensitivity_of_both(project: Project) -> None:
    """What is planted is caught within strata, too."""
    project.write(SUITE)
    project.run(
        "-m", "fairness", "-k", "test_strata and not unequal", "-o", "fairness_sensitivity=true"
    )
    within = project.findings[1]
    assert within["details"]["sensitivity"]["caught"]["0.8"] == 1.0
    project.run("-m", "fairness", "-k", "test_ratios_alike", "-o", "fairness_sensitivity=true")
    within = project.findings[1]
    assert within["details"]["sensitivity"]["caught"]["0.8"] == 1.0
