"""Control charts: single values and CUSUM over runs, with the average run length (ARL) that each
limit has.

Neither mean nor spread of a process is known after a dozen runs, and limits that are estimated from
so few raise far more false alarms than the tables say. Each value is therefore compared with those
before it alone, and turned into what is exactly standard normal and independent as long as nothing
drifts: the self-starting scores of Hawkins (1987). The run lengths are those of these scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtr

from pytest_fairness.statistics.arrays import Floats

#: Scores further out are not told apart: a process that never varied and then did has no finite
#: one.
FURTHEST = 8.0
#: Values this much apart, relative to their size, are the same number, rounded otherwise.
_SAME = 1e-9
_STATES = 150
_LONGEST = 1e9


def shewhart_arl(limit: float, shift: float = 0.0, *, sides: int = 2) -> float:
    """Return how many values come on average until one is beyond *limit* standard deviations
    (Shewhart 1931), after the mean has moved by *shift* of them; *sides* 1: above it alone.
    """
    beyond = float(ndtr(shift - limit))
    if sides == 2:
        beyond += float(ndtr(-shift - limit))
    if beyond > 0:
        return 1 / beyond
    return math.inf


def shewhart_limit(arl: float, *, sides: int = 2) -> float:
    """The limit that a process without drift passes once in *arl* values."""
    return float(-ndtri(1 / (sides * arl)))


@lru_cache(maxsize=256)
def cusum_arl(k: float, h: float, shift: float = 0.0, *, sides: int = 2) -> float:
    """Return how many values a CUSUM with the allowance *k* takes on average to pass *h*, from 0
    on, after the mean has moved by *shift* standard deviations: by the Markov chain of Brook and
    Evans (1972). With two *sides*, 1/ARL is the sum of those of both (Van Dobben de Bruyn 1968).
    """
    if sides == 2:
        return 1 / (1 / cusum_arl(k, h, shift, sides=1) + 1 / cusum_arl(k, h, -shift, sides=1))
    width = 2 * h / (2 * _STATES - 1)
    step = np.arange(_STATES)
    away = (step[None, :] - step[:, None]) * width + k - shift
    chain = ndtr(away + width / 2) - ndtr(away - width / 2)
    chain[:, 0] = ndtr(width / 2 - step * width + k - shift)
    return float(np.linalg.solve(np.eye(_STATES) - chain, np.ones(_STATES))[0])


@lru_cache(maxsize=256)
def decision_interval(k: float, arl: float, *, sides: int = 2) -> float:
    """The *h* at which a CUSUM of a process without drift raises an alarm once in *arl* values, at
    most 1e9.
    """
    wanted = math.log(min(arl, _LONGEST))
    if wanted <= math.log(cusum_arl(k, 0.01, sides=sides)):
        return 0.01
    return float(
        brentq(
            lambda h: math.log(cusum_arl(k, h, sides=sides)) - wanted,
            0.01,
            15.0 / max(k, 0.1),
            xtol=1e-6,
        )
    )


def self_starting(values: Sequence[float], variances: Sequence[float] | None = None) -> Floats:
    """The score of each of *values* against those before it, NaN for the first two: independent
    standard normal while the values are normal with one mean (Hawkins 1987). *variances*: of each
    value, up to one factor for all; a value from a smaller sample then counts less.
    """
    x = np.asarray(values, dtype=float)
    if variances is None:
        w = np.ones(len(x))
    else:
        w = np.asarray(variances, dtype=float)
    if len(w):
        w = w / w.mean()
    scores = np.full(len(x), np.nan)
    for at in range(2, len(x)):
        before = x[:at]
        weights = 1 / w[:at]
        mean = float(before @ weights / weights.sum())
        spread = math.sqrt(float(np.square(before - mean) @ weights) / (at - 1))
        same = _SAME * max(1e-300, float(np.abs(x[: at + 1]).max()))
        distance = x[at] - mean
        if abs(distance) <= same:
            scores[at] = 0.0
        elif spread <= same:
            scores[at] = math.copysign(FURTHEST, distance)
        else:
            t = abs(distance) / (spread * math.sqrt(w[at] + 1 / weights.sum()))
            scores[at] = math.copysign(min(FURTHEST, -float(ndtri(stdtr(at - 1, -t)))), distance)
    return scores


def self_starting_counts(counts: Sequence[int], sizes: Sequence[int]) -> Floats:
    """The same of *counts* out of *sizes*, upwards: by the exact tail of each count given the sum
    of all up to it, which is hypergeometric whatever the rate (Quesenberry 1991). Counts are
    discrete, so that a limit is passed less often than once in its run length.
    """
    scores = np.full(len(counts), np.nan)
    for at in range(2, len(counts)):
        size = sizes[at]
        before = sum(sizes[:at])
        total = sum(counts[: at + 1])
        tail = sum(
            math.comb(size, x) * math.comb(before, total - x)
            for x in range(counts[at], min(size, total) + 1)
        ) / math.comb(size + before, total)
        scores[at] = min(FURTHEST, max(-FURTHEST, -float(ndtri(min(tail, 1.0)))))
    return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlChart:
    """Scores with the sums of both sides, as far as the first alarm; the sums stop there.

    ``alarm`` is the place of the value that raised it, None without one; ``by`` which chart it was
    (``value``, ``cusum``), ``direction`` 1 or −1; ``change`` the place of the first value after the
    level moved, as the chart dates it: a CUSUM to the last time that its sum was 0 (Page 1954), a
    single value to itself.
    """

    scores: Floats
    upper: Floats
    lower: Floats
    alarm: int | None = None
    by: str = ""
    direction: int = 0
    change: int | None = None


def control_chart(
    scores: Sequence[float] | Floats, *, k: float, h: float, limit: float, sides: int = 2
) -> ControlChart:
    """The chart of *scores*, which are standard normal while nothing drifts; *sides* 1: upwards
    alone.
    """
    z = np.asarray(scores, dtype=float)
    chart = ControlChart(scores=z, upper=np.zeros(len(z)), lower=np.zeros(len(z)))
    both = [_Side(1, chart.upper), _Side(-1, chart.lower)][:sides]
    for at in np.flatnonzero(~np.isnan(z)).tolist():
        for side in both:
            side.add(at, z[at], k)
        for side in both:
            if side.direction * z[at] > limit:
                return replace(chart, alarm=at, by="value", direction=side.direction, change=at)
        for side in both:
            if side.sums[at] > h:
                direction, begun = side.direction, side.since
                return replace(chart, alarm=at, by="cusum", direction=direction, change=begun)
    return chart


@dataclass(slots=True)
class _Side:
    """The sums of one direction, and since which value they are above 0."""

    direction: int
    sums: Floats
    since: int = 0

    def add(self, at: int, score: float, allowance: float) -> None:
        """Add the *score* of the value *at*."""
        last = 0.0
        if at:
            last = self.sums[at - 1]
        if last == 0:
            self.since = at
        self.sums[at] = max(0.0, last + self.direction * score - allowance)
