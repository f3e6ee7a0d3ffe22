"""Control charts: published run lengths, the same by simulation, scores that are exact without
known parameters.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pytest_fairness.statistics.control_charts import (
    FURTHEST,
    control_chart,
    cusum_arl,
    decision_interval,
    self_starting,
    self_starting_counts,
    shewhart_arl,
    shewhart_limit,
)


@pytest.mark.parametrize(
    ("h", "shift", "published"),
    [
        # Montgomery, Introduction to Statistical Quality Control, 7th ed., table 9.3: two-sided, k
        # = ½
        (4, 0, 168), (4, 0.25, 74.2), (4, 0.5, 26.6), (4, 0.75, 13.3), (4, 1, 8.38), (4, 1.5, 4.75), (4, 2, 3.34),
        (4, 2.5, 2.62), (4, 3, 2.19), (4, 4, 1.71),
        (5, 0, 465), (5, 0.25, 139), (5, 0.5, 38.0), (5, 0.75, 17.0), (5, 1, 10.4), (5, 1.5, 5.75), (5, 2, 4.01),
        (5, 2.5, 3.11), (5, 3, 2.57), (5, 4, 2.01),
    ],
)  # fmt: skip
def test_cusum_run_lengths_are_those_published(h: float, shift: float, published: float) -> None:
    """To the digits of the table."""
    assert cusum_arl(0.5, h, shift) == pytest.approx(published, rel=0.006)


@pytest.mark.parametrize(("shift", "published"), [(0, 370.4), (1, 43.89), (2, 6.30), (3, 2.00)])
def test_shewhart_run_lengths_are_those_published(shift: float, published: float) -> None:
    assert shewhart_arl(3, shift) == pytest.approx(published, rel=0.002)
    assert shewhart_limit(shewhart_arl(3.2, 0)) == pytest.approx(3.2)
    assert shewhart_limit(shewhart_arl(3.2, 0, sides=1), sides=1) == pytest.approx(3.2)


@pytest.mark.parametrize("k", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("h", [3.0, 5.0, 8.0])
@pytest.mark.parametrize("shift", [0.0, 0.5, 1.5])
def test_one_side_is_as_siegmund_approximates_it(k: float, h: float, shift: float) -> None:
    """Siegmund (1985): an independent formula, good to a few per cent."""
    away, reach = shift - k, h + 1.166
    siegmund = (
        reach**2
        if away == 0
        else (math.exp(-2 * away * reach) + 2 * away * reach - 1) / (2 * away**2)
    )
    assert cusum_arl(k, h, shift, sides=1) == pytest.approx(siegmund, rel=0.06)


@pytest.mark.parametrize("arl", [50, 370, 5_000, 500_000])
@pytest.mark.parametrize("sides", [1, 2])
def test_the_decision_interval_has_the_run_length_asked_for(arl: float, sides: int) -> None:
    h = decision_interval(0.5, arl, sides=sides)
    assert cusum_arl(0.5, h, sides=sides) == pytest.approx(arl, rel=1e-3)
    assert decision_interval(0.5, 1.0, sides=sides) == 0.01


def run_length(rng: np.random.Generator, shift: float, **limits: float) -> int:
    """Values until a chart of exact scores raises its alarm."""
    chart = control_chart(rng.normal(shift, 1, 4000), k=0.5, **limits)
    assert chart.alarm is not None
    return chart.alarm + 1


@pytest.mark.parametrize(
    ("shift", "limits", "expected"),
    [
        (0.0, {"h": 4, "limit": 99}, cusum_arl(0.5, 4)),
        (1.0, {"h": 4, "limit": 99}, cusum_arl(0.5, 4, 1.0)),
        (0.0, {"h": 99, "limit": 2.5}, shewhart_arl(2.5)),
        (1.0, {"h": 99, "limit": 2.5}, shewhart_arl(2.5, 1.0)),
        (0.0, {"h": 4, "limit": 99, "sides": 1}, cusum_arl(0.5, 4, sides=1)),
    ],
)
def test_simulated_run_lengths(shift: float, limits: dict[str, float], expected: float) -> None:
    """The chart itself, on normal scores, runs as long as its formula says: within four standard
    errors.
    """
    rng = np.random.default_rng(7)
    lengths = [run_length(rng, shift, **limits) for _ in range(600)]
    assert abs(np.mean(lengths) - expected) < 4 * np.std(lengths) / math.sqrt(len(lengths))


@pytest.mark.parametrize("weighted", [False, True])
def test_self_starting_scores_are_standard_normal_and_independent(weighted: bool) -> None:
    """Whatever the mean and the spread, from the third value on; with weights where samples differ
    in size.
    """
    rng = np.random.default_rng(3)
    variances = rng.uniform(0.5, 4, 12) if weighted else np.ones(12)
    drawn = rng.normal(50, 3 * np.sqrt(variances), (4000, 12))
    scores = np.array([self_starting(row, variances if weighted else None)[2:] for row in drawn])
    for at in range(scores.shape[1]):
        assert stats.kstest(scores[:, at], "norm").pvalue > 1e-4, at
    correlation = np.corrcoef(scores.T)
    assert np.abs(correlation - np.eye(len(correlation))).max() < 0.08


def test_scores_by_hand() -> None:
    """(7 − 2)/(1·√(1 + 1/3)) = 4.330, t with 2 degrees of freedom; NaN until there is a spread."""
    scores = self_starting([1, 2, 3, 7])
    assert np.isnan(scores[:2]).all()
    assert scores[2] == pytest.approx(
        stats.norm.ppf(stats.t.cdf(1.5 / (math.sqrt(0.5) * math.sqrt(1.5)), 1))
    )
    assert scores[3] == pytest.approx(stats.norm.ppf(stats.t.cdf(5 / math.sqrt(4 / 3), 2)))


def test_a_process_that_never_varied() -> None:
    """The same again is no news; rounding is none; anything else is."""
    scores = self_starting([0.1 + 0.2, 0.3, 0.3, 0.3, 0.4])
    assert scores[2:4].tolist() == [0.0, 0.0]
    assert scores[4] == FURTHEST
    assert self_starting([0.3, 0.3, 0.3, 0.2])[-1] == -FURTHEST
    assert self_starting([]).tolist() == []


def test_a_shift_is_found_and_dated() -> None:
    """After thirty runs a shift of 1.5 standard deviations; the chart says since when."""
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(0, 1, 30), rng.normal(1.5, 1, 15)])
    chart = control_chart(self_starting(values), k=0.5, h=5, limit=9)
    assert (chart.by, chart.direction) == ("cusum", 1)
    assert chart.alarm is not None
    assert chart.change is not None
    assert 26 <= chart.change <= 32 <= chart.alarm <= 40
    down = control_chart(self_starting(-values), k=0.5, h=5, limit=9)
    assert (down.direction, down.alarm, down.change) == (-1, chart.alarm, chart.change)
    assert control_chart(self_starting(-values), k=0.5, h=5, limit=9, sides=1).alarm is None
    spike = control_chart([math.nan, math.nan, 0.1, -4.2, 0.0], k=0.5, h=5, limit=3)
    assert (spike.alarm, spike.by, spike.direction, spike.change) == (3, "value", -1, 3)


def test_counts_by_the_exact_tail() -> None:
    """Hypergeometric: 3 of 10 after 1 of 20; and a limit is passed no more often than it says."""
    scores = self_starting_counts([0, 1, 3], [10, 10, 10])
    assert scores[2] == pytest.approx(-stats.norm.ppf(stats.hypergeom.sf(2, 30, 4, 10)))
    assert self_starting_counts([0, 0, 0], [5, 5, 5])[2] == -FURTHEST
    rng = np.random.default_rng(5)
    drawn = [
        self_starting_counts(row.tolist(), [40] * 10)[2:]
        for row in rng.binomial(40, 0.1, (800, 10))
    ]
    for limit in (1.0, 2.0):
        assert np.mean(np.array(drawn) > limit) <= stats.norm.sf(limit) * 1.1
