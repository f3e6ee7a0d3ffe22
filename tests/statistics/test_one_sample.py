"""Student's t on one column, and what it says where there is no spread."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from pytest_fairness.statistics.clusters import one_sample_t

R_FILE = Path(__file__).parents[1] / "data" / "r_reference.json"


@pytest.mark.parametrize(
    "case", json.loads(R_FILE.read_text())["paired"], ids=lambda case: case["id"]
)
def test_agrees_with_r(case):
    """The paired t of R, mean difference, SD and interval included, wherever R gives one."""
    differences = np.subtract(case["x"], case["y"])
    ours = one_sample_t(differences)
    theirs = case["t_paired"]
    if not isinstance(theirs.get("statistic"), (int, float)):
        assert ours.sd == 0  # R raises where the data are essentially constant or there is one pair
        return
    assert ours.t == pytest.approx(theirs["statistic"], rel=1e-9)
    assert ours.df == theirs["parameter"]
    assert ours.p == pytest.approx(theirs["p_value"], rel=1e-9)
    assert ours.interval(0.95) == pytest.approx(theirs["conf_int"], rel=1e-9)
    assert ours.sd == pytest.approx(case["sd_diff"], rel=1e-9)


@pytest.mark.parametrize(
    ("values", "alternative", "p"),
    [
        ([-2, -2, -2], "less", 0.0),
        ([2, 2, 2], "less", 1.0),
        ([0, 0, 0], "less", 1.0),
        ([2, 2, 2], "two-sided", 0.0),
        ([0, 0, 0], "two-sided", 1.0),
        ([0.3, 0.1 + 0.2], "two-sided", 0.0),  # equal but for rounding
        ([5], "two-sided", 1.0),
        ([], "less", 1.0),
    ],
)
def test_zero_spread(values, alternative, p):
    """Without spread the sign decides; without two numbers nothing does."""
    assert one_sample_t(values, alternative).p == p
    assert one_sample_t([3.0]).interval() == (-math.inf, math.inf)
