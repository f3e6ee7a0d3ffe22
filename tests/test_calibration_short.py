"""The calibration in small: a few dozen audits a target, wide bounds, always the same seeds.

The full table is `docs/calibration.md`, made by `benchmarks/calibration.py`, whose functions run
here.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.benchmarks import benchmark

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def calibration():
    return benchmark("calibration")


def test_no_bias(calibration):
    """20 audits without bias: no FAIL, hardly a FLAG, nearly all PASS."""
    fail, alarm, passed = calibration.null_audits(20)
    assert fail.measured == 0
    assert alarm.measured <= 0.10
    assert passed.measured >= 0.80


def test_few_names_and_copies(calibration):
    """Few names, many calls, or copies of one reply: few alarms here, and most audits are alarms
    for the plain recipe (the harness sees it)."""
    rows = calibration.few_names(30)
    assert all(row.measured <= 0.12 for row in rows if row.id == "G2")
    assert next(row for row in rows if row.id == "G8").plain > 0.4
    copies = calibration.temperature_zero(8)
    assert all(row.measured <= 0.13 for row in copies)
    assert max(row.plain for row in copies) > 0.6


def test_planted_disparities(calibration):
    """d = .5 is seen, d = .8 fails, and neither passes; so are odds of 2.48 of a decision."""
    seen, failed, passed = calibration.planted(8)
    assert seen.measured >= 0.80
    assert failed.measured >= 0.93
    assert passed.measured <= 0.12
    null, decided = calibration.binary(12)
    assert null.measured <= 0.12
    assert decided.measured >= 0.70


def test_baseline_gate(calibration):
    """No flake in 4 runs; a drop of 5 overall, or of 10 in one category of 13, is seen."""
    flake, overall, category, _, _ = calibration.baseline(4)
    assert flake.measured <= 0.05
    assert flake.plain > 0.9
    assert overall.measured == 1
    assert category.measured >= 0.85


def test_choices(calibration):
    """Round-robin χ² keeps its level, and strong position bias hides neither the level nor a
    preference.
    """
    [robin] = calibration.round_robin(10)
    size, power = calibration.position_bias(5)
    assert 0.01 <= robin.measured <= 0.09
    assert size.measured <= 0.12
    assert power.measured >= 0.80
    assert power.plain < power.measured


def test_unlike_spread_and_uneven_rows():
    """Few alarms where groups spread unlike or names have unlike rows; strong differences are
    found; no FAIL that contradicts itself."""
    uneven = benchmark("uneven")
    *alarms, two, three, five = uneven.spread(12)
    assert np.mean([row.measured for row in alarms]) <= 0.10
    assert two.measured == three.measured == five.measured == 1
    rows = uneven.rows_a_name(12)
    assert all(row.measured == 0 for row in rows if "holds 0" in row.what)
    assert np.mean([row.measured for row in rows if "alarms" in row.what]) <= 0.12


def test_answers_missing_at_random():
    """Most fair audits pass with 1.5 % missing, and many with 3 %."""
    rows = benchmark("uneven").unanswered(10)
    assert np.mean([row.measured for row in rows if "alarms" in row.what]) <= 0.10
    assert (
        np.mean([row.measured for row in rows if "passes" in row.what and "3 %" in row.what]) >= 0.6
    )
    assert (
        np.mean([row.measured for row in rows if "passes" in row.what and "6 %" in row.what]) >= 0.4
    )


def test_tails_in_the_gate_and_made_tables():
    """Unchanged scores with heavy tails are neither open nor red; four-fifths flags no trifle."""
    uneven = benchmark("uneven")
    assert all(row.measured <= 0.2 for row in uneven.tails(6))
    assert all(row.measured == 0 for row in uneven.made(40))


def test_the_page_has_every_target_and_explains_each_that_is_missed(calibration):
    """What --write leaves of docs/calibration.md is all but its table; a miss is shown as one."""
    page = (DOCS / "calibration.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines(keepends=True) if re.match(r"\| G\d+ ", line)]
    targets = {f"G{n}" for n in (*range(1, 27), *range(29, 34))}
    assert targets <= {line.split("|")[1].strip() for line in lines}
    missed = {line.split("|")[1].strip() for line in lines if "**missed**" in line}
    assert missed <= set(re.findall(r"\*\*Missed: (G\d+)", page))
    assert calibration.page_with("".join(lines), 400) == page
    row = calibration.Row("G1", "what", "≤ .01", 0.2, 10, False)
    assert "| .100 | **missed** .200 | – |" in calibration.table([row], {"G1 what": 0.1})


def test_names_joined_anew():
    """80 names of 20 first names and 20 surnames with effects of their own: full names alone would
    alarm in three of ten fair audits, their parts in few.
    """
    joined = benchmark("joined_names")
    [(_, size, alarms, greens, _)] = joined.measured(40, ["20 first names, 20 surnames"], [80])
    assert size == 80
    assert alarms <= 0.12
    assert greens >= 0.4
    names = joined.Audit(*joined.designs()["20 first names, 20 surnames"], 80).frame
    uses = names.drop_duplicates(["group", "name"]).groupby(["group", "first_name"]).size()
    assert set(uses) == {4}
