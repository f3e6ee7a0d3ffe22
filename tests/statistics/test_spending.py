"""Levels over several looks: the published table, another way of integrating, and simulation."""

from __future__ import annotations

from functools import partial
from math import e, log, sqrt, tau
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import norm

from pytest_fairness.errors import UsageError
from pytest_fairness.statistics.spending import nominal_level, nominal_levels, spent

TABLE = {
    (20, 40): ([0.009302, 0.007589], [0.031006, 0.029723]),
    (10, 20, 40): ([0.005361, 0.004990, 0.007149], [0.017869, 0.018914, 0.027861]),
    (10, 20, 40, 60): (
        [0.003777, 0.003725, 0.005706, 0.005609],
        [0.012592, 0.013904, 0.021776, 0.023195],
    ),
    (10, 20, 40, 80): (
        [0.002919, 0.002971, 0.004753, 0.007070],
        [0.009728, 0.010987, 0.017905, 0.027430],
    ),
}
"""R27: names a group at the looks; levels of an alarm at .015, two-sided, and of a pass at .05."""


def shares(names: tuple[int, ...]) -> tuple[float, ...]:
    return tuple(count / names[-1] for count in names)


@pytest.mark.parametrize("names", TABLE)
def test_levels_are_those_of_the_table(names: tuple[int, ...]) -> None:
    alarms, passes = TABLE[names]
    assert nominal_levels(shares(names), 0.015, sides=2) == pytest.approx(alarms, abs=5e-7)
    assert nominal_levels(shares(names), 0.05, sides=1) == pytest.approx(passes, abs=5e-7)


@pytest.mark.parametrize(
    ("names", "budget", "levels"),
    [
        ((10, 20, 40), 0.005, [0.001787, 0.001582, 0.002254]),
        ((10, 20, 40, 80), 0.0005, [0.000097, 0.000090, 0.000143, 0.000209]),
    ],
)
def test_levels_of_smaller_budgets(
    names: tuple[int, ...], budget: float, levels: list[float]
) -> None:
    """Of a session with many tests, R27."""
    assert nominal_levels(shares(names), budget, sides=2) == pytest.approx(levels, abs=5e-7)


@pytest.mark.parametrize("budget", [0.015, 0.0003, 0.05])
@pytest.mark.parametrize("sides", [1, 2])
def test_a_single_look_has_the_whole_budget(budget: float, sides: int) -> None:
    assert nominal_levels((1.0,), budget, sides=sides) == pytest.approx([budget], abs=1e-12)


def _crossing(grid: Any, mass: Any, step: float, scale: float, sides: int, z: float) -> float:
    crossed = 1 - ndtr((z * scale - grid) / step)
    if sides == 2:
        crossed += 1 - ndtr((z * scale + grid) / step)
    return float(mass @ crossed)


def on_a_grid(information: tuple[float, ...], budget: float, sides: int) -> list[float]:
    """The recursion of Armitage, McPherson & Rowe (1969) by trapezia on 8,001 points."""
    levels = []
    grid = np.array([0.0])
    mass = np.array([1.0])
    before = 0.0
    for share in information:
        step = sqrt(share - before)
        due = budget * (log(1 + (e - 1) * share) - log(1 + (e - 1) * before))

        crossing = partial(_crossing, grid, mass, step, sqrt(share), sides)
        z = brentq(lambda z, of=crossing, due=due: of(z) - due, 0, 10, xtol=1e-13)
        levels.append(sides * float(norm.sf(z)))
        if share < 1:
            low = -z * sqrt(share) if sides == 2 else -9 * sqrt(share)
            points = np.linspace(low, z * sqrt(share), 8001)
            density = np.concatenate(
                [
                    np.exp(-(((part[:, None] - grid) / step) ** 2) / 2) @ mass / step / sqrt(tau)
                    for part in np.array_split(points, 40)
                ]
            )
            weights = np.full(8001, points[1] - points[0])
            weights[[0, -1]] /= 2
            grid, mass = points, density * weights
        before = share
    return levels


@pytest.mark.parametrize(
    ("information", "budget", "sides"),
    [((0.27, 0.5, 1.0), 0.015, 2), ((0.27, 0.5, 1.0), 0.05, 1)],
)
def test_levels_by_another_integration(
    information: tuple[float, ...], budget: float, sides: int
) -> None:
    """At shares that are no round numbers, as where a group has fewer names."""
    levels = nominal_levels(information, budget, sides=sides)
    assert levels == pytest.approx(on_a_grid(information, budget, sides), abs=1e-7)


@pytest.mark.parametrize(("budget", "sides"), [(0.05, 2), (0.05, 1)])
def test_the_budget_is_what_chance_spends(budget: float, sides: int) -> None:
    """By simulation: of paths without any drift, the share that crosses by each look."""
    information = (0.125, 0.25, 0.5, 1.0)
    rng = np.random.default_rng(27)
    steps = np.sqrt(np.diff((0.0, *information)))
    paths = np.cumsum(rng.standard_normal((400_000, 4)) * steps, axis=1)
    statistics = paths / np.sqrt(information)
    if sides == 2:
        statistics = np.abs(statistics)
    boundaries = norm.isf(np.array(nominal_levels(information, budget, sides=sides)) / sides)
    crossed = np.logical_or.accumulate(statistics > boundaries, axis=1).mean(axis=0)
    goal = np.array([spent(budget, share) for share in information])
    assert np.abs(crossed - goal).max() < 4 * sqrt(budget * (1 - budget) / 400_000)


@pytest.mark.parametrize("information", [(), (0.5,), (0.5, 0.5, 1.0), (0.0, 1.0), (0.6, 0.4, 1.0)])
def test_shares_rise_to_all_of_the_data(information: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="rise from above 0 to 1"):
        nominal_levels(information, 0.015, sides=2)


@pytest.mark.parametrize("budget", [0.0, 1.0, -0.1])
def test_a_budget_is_a_chance(budget: float) -> None:
    with pytest.raises(UsageError, match="budget"):
        nominal_levels((1.0,), budget, sides=2)


@pytest.mark.parametrize("look", [1, 2, 3])
def test_one_level_is_that_of_all(look: int) -> None:
    information = (0.27, 0.5, 1.0)
    levels = nominal_levels(information, 0.015, sides=2)
    assert nominal_level(information, 0.015, look, sides=2) == levels[look - 1]
