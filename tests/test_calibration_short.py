"""The calibration in small: a few dozen audits a target, wide bounds, always the same seeds.

The full table is `docs/calibration.md`, made by `benchmarks/calibration.py`, whose functions run here.
"""

import re
from pathlib import Path

import pytest

from tests.support.benchmarks import benchmark

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def calibration():
    """The benchmark as a module."""
    return benchmark("calibration")


def measured(rows):
    """(id, what) → row."""
    return {(row.id, row.what): row for row in rows}


def test_no_bias(calibration):
    """60 audits without bias: no FAIL, hardly a FLAG, nearly all PASS."""
    fail, alarm, passed = calibration.null_audits(60)
    assert fail.measured == 0
    assert alarm.measured <= 0.10
    assert passed.measured >= 0.80


def test_few_names_and_many_calls(calibration):
    """Few names: few false alarms here, and most audits are false alarms for the plain recipe (the harness sees it)."""
    rows = calibration.few_names(60)
    assert all(row.measured <= 0.12 for row in rows if row.id == "G2")
    assert next(row for row in rows if row.id == "G8").plain > 0.4


def test_identical_copies(calibration):
    """Temperature 0: copies of a reply are not evidence; for the plain recipe they are."""
    rows = calibration.temperature_zero(40)
    assert all(row.measured <= 0.13 for row in rows)
    assert max(row.plain for row in rows) > 0.6


def test_planted_disparities(calibration):
    """d = .5 is seen, d = .8 fails, and neither passes."""
    seen, failed, passed = calibration.planted(40)
    assert seen.measured >= 0.80
    assert failed.measured >= 0.93
    assert passed.measured <= 0.12


def test_baseline_gate(calibration):
    """No flake in 40 runs; a drop of 5 overall, or of 10 in one category of 13, is seen."""
    flake, overall, category, _, _ = calibration.baseline(40)
    assert flake.measured <= 0.05
    assert flake.plain > 0.9
    assert overall.measured == 1
    assert category.measured >= 0.85


def test_decisions(calibration):
    """Yes/no outcomes: few false alarms, and odds of 2.48 are seen."""
    null, seen = calibration.binary(60)
    assert null.measured <= 0.12
    assert seen.measured >= 0.70


def test_choices(calibration):
    """Round-robin χ² keeps its level, and strong position bias hides neither the level nor a preference."""
    [robin] = calibration.round_robin(60)
    size, power = calibration.position_bias(25)
    assert 0.01 <= robin.measured <= 0.09
    assert size.measured <= 0.12
    assert power.measured >= 0.80
    assert power.plain < power.measured


def test_the_table_in_the_docs_is_that_of_the_benchmark(calibration):
    """docs/calibration.md has a line for every target, explains each that is missed, and has the benchmark's text."""
    text = (DOCS / "calibration.md").read_text(encoding="utf-8")
    assert {f"G{n}" for n in range(1, 27)} <= {line.split("|")[1].strip() for line in text.splitlines() if "|" in line}
    missed = {line.split("|")[1].strip() for line in text.splitlines() if "**missed**" in line}
    assert missed <= set(re.findall(r"\*\*Missed: (G\d+)", text))
    assert text.endswith(calibration.AFTER)
    assert text.startswith(calibration.markdown([], 1000, {}).split("Rerun")[0])


def test_a_missed_target_is_shown_as_missed(calibration):
    """The table does not hide a miss."""
    row = calibration.Row("G1", "what", "≤ .01", 0.2, 10, None, False)
    assert "| .100 | **missed** .200 | – |" in calibration.markdown([row], 10, {"G1 what": 0.1})
