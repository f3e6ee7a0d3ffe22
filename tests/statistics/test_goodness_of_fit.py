"""Counts against declared shares: worked numbers, scipy's, and the level of the sampled test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pytest_fairness.statistics.goodness_of_fit import goodness_of_fit


@pytest.mark.parametrize("counts", [(30, 40, 30), (12, 5, 83), (200, 190, 210)])
def test_against_scipy(counts: tuple[int, ...]) -> None:
    shares = (0.3, 0.3, 0.4)
    found, n = goodness_of_fit(counts, shares), sum(counts)
    statistic, p = stats.chisquare(counts, [share * n for share in shares])
    assert found.statistic == pytest.approx(statistic)
    assert found.p_value == pytest.approx(p)
    assert found.w == pytest.approx(np.sqrt(statistic / n))
    assert found.df == 2
    assert [group.ratio for group in found.groups] == pytest.approx(
        [count / n / share for count, share in zip(counts, shares, strict=True)]
    )


def test_a_textbook_example() -> None:
    """Mendel's peas: 315, 101, 108, 32 against 9 : 3 : 3 : 1 give chi-square .470 with 3 df, p =
    .925.
    """
    found = goodness_of_fit((315, 101, 108, 32), (9 / 16, 3 / 16, 3 / 16, 1 / 16))
    assert found.statistic == pytest.approx(0.470, abs=0.0005)
    assert found.p_value == pytest.approx(0.9254, abs=0.0005)


def test_few_expected_are_sampled() -> None:
    """Of two groups the sampled p is that of the binomial, both tails by their distance."""
    found = goodness_of_fit((17, 3), (0.98, 0.02))
    exact = 1 - stats.binom.cdf(2, 20, 0.02)
    assert found.p_value == pytest.approx(exact, abs=0.002)


def test_all_intervals_together_hold_95_percent() -> None:
    shares, rng = (0.5, 0.3, 0.15, 0.05), np.random.default_rng(2)
    held = 0
    for row in rng.multinomial(300, shares, size=500):
        found = goodness_of_fit(tuple(map(int, row)), shares)
        held += all(group.low <= 1 <= group.high for group in found.groups)
    assert held >= 0.93 * 500
