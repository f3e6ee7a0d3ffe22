"""Levels of a design that looks several times at growing data, fixed before the first look.

The error budget is spent over the looks by Lan & DeMets (1983, Biometrika 70:659) in Pocock's form.
The levels follow by the recursion of Armitage, McPherson & Rowe (1969, J. R. Stat. Soc. A 132:235)
over the statistics of the looks, which are jointly normal with corr(Z_j, Z_k) = √(t_j/t_k). Standard
library only: the controller of a session, which prints the levels, loads no numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from math import cos, e, erfc, exp, isclose, log, log1p, pi, sqrt
from typing import Literal, NamedTuple

from pytest_fairness.errors import UsageError
from pytest_fairness.words import listed

Sides = Literal[1, 2]
#: Points of each integral over a look: twice as many change no level by more than 1e-12.
_POINTS = 96
#: Standard deviations beyond which a statistic is never found.
_FAR = 9.0
_HIGHEST_BOUNDARY = 12.0
_HALVINGS, _SECANTS = 10, 5


class _Point(NamedTuple):
    """A place that the path of the statistic reaches, and the chance of it."""

    place: float
    weight: float


@dataclass(frozen=True)
class _Stage:
    """A look at data that have grown: *step* and *scale* are the standard deviations of the path
    since the look before, and since the start; *before* is where it may stand at the look before.
    """

    before: tuple[_Point, ...]
    step: float
    scale: float
    sides: Sides

    def crossing(self, boundary: float) -> float:
        """Return the chance of crossing *boundary*, in standard deviations, here for the first
        time.
        """
        height = boundary * self.scale
        step = self.step
        up = sum([weight * _tail((height - place) / step) for place, weight in self.before])
        if self.sides == 1:
            return up
        down = sum([weight * _tail((height + place) / step) for place, weight in self.before])
        return up + down

    def boundary(self, due: float) -> float:
        """Return the boundary that is crossed here for the first time with the chance *due*."""
        low = 0.0
        high = _HIGHEST_BOUNDARY
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self.crossing(middle) > due:
                low = middle
            else:
                high = middle
        # The logarithm of the chance is nearly straight there, so that secants find the rest.
        other, gap = low, log(self.crossing(low) / due)
        for _ in range(_SECANTS):
            other_gap, gap = gap, log(self.crossing(high) / due)
            if gap == other_gap:
                break
            other, high = high, high - gap * (high - other) / (gap - other_gap)
        return high

    def continued(self, boundary: float) -> tuple[_Point, ...]:
        """Return where the path may stand that has not crossed *boundary*."""
        top = boundary * self.scale
        bottom = -top
        if self.sides == 1:
            bottom = -_FAR * self.scale
        half = (top - bottom) / 2
        points = []
        for node, share in _legendre(_POINTS):
            place = bottom + half * (1 + node)
            points.append(_Point(place, half * share * self._density(place)))
        return tuple(points)

    def _density(self, place: float) -> float:
        step = self.step
        total = sum(
            [weight * exp(-(((place - start) / step) ** 2) / 2) for start, weight in self.before]
        )
        return total / (step * sqrt(2 * pi))


def spent(budget: float, information: float) -> float:
    """Return how much of *budget* is spent at the share *information* of all data: A·ln(1 +
    (e−1)t).
    """
    return budget * log1p((e - 1) * information)


@cache
def nominal_levels(
    information: tuple[float, ...], budget: float, *, sides: Sides
) -> tuple[float, ...]:
    """Return the level of each look, at which all looks together err with the chance *budget*.

    *information* are the shares of all data at the looks, rising to 1. With two *sides* a level is
    two-sided and either crossing counts; with one it is one-sided. Raises UsageError for shares that
    do not rise to 1, and for a budget outside (0, 1).
    """
    _check(information, budget)
    return tuple(islice(_levels(information, budget, sides), len(information)))


def nominal_level(
    information: tuple[float, ...], budget: float, look: int, *, sides: Sides
) -> float:
    """Return the level of the *look* of this number, from 1: that of :func:`nominal_levels`, without
    the levels after it. Raises UsageError as it does.
    """
    _check(information, budget)
    return tuple(islice(_levels(information, budget, sides), look))[-1]


def _levels(information: tuple[float, ...], budget: float, sides: Sides) -> Iterator[float]:
    """Yield the level of each look; the path goes on to the next look once its level is asked for."""
    path: tuple[_Point, ...] = (_Point(0.0, 1.0),)
    before = 0.0
    for share in information:
        look = _Stage(path, step=sqrt(share - before), scale=sqrt(share), sides=sides)
        boundary = look.boundary(spent(budget, share) - spent(budget, before))
        yield sides * _tail(boundary)
        path = look.continued(boundary)
        before = share


def _check(information: Sequence[float], budget: float) -> None:
    rises = all(earlier < later for earlier, later in pairwise((0.0, *information)))
    if not information or not rises or not isclose(information[-1], 1.0):
        raise UsageError(
            f"looks at {listed(map(str, information))} of the data: the shares of the looks rise from above 0 to 1"
        )
    if not 0 < budget < 1:
        raise UsageError(f"an error budget of {budget}: it lies between 0 and 1")


def _tail(z: float) -> float:
    """Return the chance that a standard normal variable exceeds *z*."""
    return erfc(z / sqrt(2)) / 2


@cache
def _legendre(count: int) -> tuple[tuple[float, float], ...]:
    """Return the *count* nodes and weights of Gauss and Legendre on (−1, 1), by Newton's method."""
    rule = []
    for number in range(1, count + 1):
        node = cos(pi * (number - 0.25) / (count + 0.5))
        step = 1.0
        while abs(step) > 1e-15:
            value, slope = _legendre_polynomial(count, node)
            step = value / slope
            node -= step
        _, slope = _legendre_polynomial(count, node)
        rule.append((node, 2 / ((1 - node**2) * slope**2)))
    return tuple(rule)


def _legendre_polynomial(degree: int, x: float) -> tuple[float, float]:
    """Return the Legendre polynomial of *degree* at *x*, and its slope there."""
    earlier = 1.0
    value = x
    for order in range(2, degree + 1):
        following = ((2 * order - 1) * x * value - (order - 1) * earlier) / order
        earlier = value
        value = following
    return value, degree * (x * value - earlier) / (x**2 - 1)
