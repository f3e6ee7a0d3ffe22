"""How many names, templates and repetitions it takes, before anything is paid for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from pytest_fairness.statistics.mde import minimum_detectable_effect
from pytest_fairness.statistics.one_sample import t_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A balanced design: *names* of each group in every template, each asked *repetitions* times."""

    groups: int
    names: int
    templates: int
    repetitions: int

    @property
    def calls_per_group(self) -> int:
        return self.names * self.templates * self.repetitions

    @property
    def calls(self) -> int:
        return self.groups * self.calls_per_group


def detectable(shape: Shape, *, icc: float, inflation: float, family: int, alpha: float, power: float) -> float:
    """The smallest effect (d) found with *power* in every pair, corrected over *family* tests; ∞ for one
    name.

    *inflation* is the variance of the outcome's effect relative to that of a mean of a numeric outcome.
    """
    k = np.array([float(shape.names)])
    per_name = np.array([float(shape.templates * shape.repetitions)])
    found = minimum_detectable_effect(k, k, per_name, np.array([icc]), family_size=family, alpha=alpha, power=power)
    value = float(found[0])
    return value * math.sqrt(inflation) if math.isfinite(value) else math.inf


def pass_probability(shape: Shape, *, icc: float, inflation: float, margin: float) -> float:
    """How often one pair without any difference gets a 90 % interval inside ±*margin* (normal
    approximation).
    """
    if shape.names < 2:
        return 0.0
    per_name = shape.templates * shape.repetitions
    error = math.sqrt(inflation * 2 * (icc + (1 - icc) / per_name) / shape.names)
    room = margin / error - t_quantile(0.95, 2 * shape.names - 2)
    return max(0.0, 2 * float(ndtr(room)) - 1)


def smallest(enough: Callable[[int], bool], start: int, most: int) -> int | None:
    """The smallest number from *start* to *most* that is *enough*, which larger numbers stay; None without
    one.
    """
    if enough(start):
        return start
    low, high = start, min(2 * start, most)
    while not enough(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
