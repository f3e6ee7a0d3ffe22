"""What is written out of agreement and of guesses is what statsmodels and scipy compute."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from statsmodels.stats.inter_rater import cohens_kappa

from pytest_fairness.statistics.agreement import above_chance, kappa


@pytest.mark.parametrize(("ordered", "wt"), [(False, None), (True, "quadratic")])
def test_kappa_is_that_of_statsmodels(ordered: bool, wt: str | None) -> None:
    """Of labels that both readers give, and of one that nobody does between two that somebody does."""
    generator = np.random.default_rng(5)
    for labels in (2, 3, 5):
        for agreeing in (0.0, 0.5, 1.0):
            first = generator.integers(0, labels, 40)
            others = generator.integers(0, labels, 40)
            other = np.where(generator.random(40) < agreeing, first, others)
            first[:2], other[:2] = (0, labels - 1), (0, labels - 1)
            table = np.zeros((labels, labels))
            np.add.at(table, (first, other), 1)
            expected = cohens_kappa(table, wt=wt, return_results=False)
            read = kappa(list(map(str, first)), list(map(str, other)), ordered=ordered)
            assert read == pytest.approx(expected, rel=1e-12, abs=1e-12)
    gap = np.zeros((3, 3))
    gap[0, 0], gap[0, 2], gap[2, 2] = 2, 1, 1
    assert kappa("0002", "0022", ordered=True) == pytest.approx(
        cohens_kappa(gap, wt="quadratic", return_results=False), rel=1e-12
    )


def test_one_label_alone_has_no_kappa() -> None:
    assert kappa(["a", "a"], ["a", "a"]) is None
    with pytest.raises(ValueError, match="zip"):
        kappa(["a", "b"], ["a"])


@pytest.mark.parametrize("guesses", [1, 7, 40])
@pytest.mark.parametrize("chance", [0.5, 1 / 3, 0.1])
def test_guesses_are_tested_exactly(guesses: int, chance: float) -> None:
    for right in range(guesses + 1):
        expected = binomtest(right, guesses, chance, alternative="greater").pvalue
        assert above_chance(right, guesses, chance) == pytest.approx(expected, rel=1e-9)
