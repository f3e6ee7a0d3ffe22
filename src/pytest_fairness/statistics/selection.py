"""How often each group is selected over many pairs: intervals and tests that know whose win is whose loss.

A trial is one piece of evidence about two groups at once, and a name stands in many trials. So a rate, or a
difference of two, is a sum over trials, and its error comes from the sums over *sets of names*: names that never met
anybody outside their set. Where all names have met, the sums over names themselves take their place (Aronow, Samii &
Assenova 2015, Political Analysis 23:564-577).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.special import fdtrc, ndtr, stdtr

from pytest_fairness.statistics.arrays import Bools, Coded, Floats, Ints
from pytest_fairness.statistics.bradley_terry import without_interaction
from pytest_fairness.statistics.choices import FIRST, Choices, cross
from pytest_fairness.statistics.clusters import t_quantile
from pytest_fairness.statistics.proportions import wilson

_Z = 1.959963984540054
EVEN = 0.75
"""How even sets of names must be to be units: their effective number (Kish 1965) as a share of the names a group."""


@dataclass(frozen=True, slots=True)
class Rate:
    """*won* of *n*, with the 95 % interval of the share; ``value`` is None where n is 0."""

    n: int
    won: int
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Two shares of selection compared: p with trials as the unit, and with names (None with one name a group)."""

    z: float
    p_row: float
    p_cluster: float | None

    @property
    def p_value(self) -> float:
        return self.p_row if self.p_cluster is None else max(self.p_row, self.p_cluster)


@dataclass(frozen=True, slots=True)
class Units:
    """What is independent of each other: ``sets`` of names (codes, one a row), or the names of the two candidates.

    ``count`` is their number; under two there is nothing to estimate an error from.
    """

    sets: Ints | None
    names: tuple[Ints, Ints] | None
    count: int

    def take(self, rows: Bools) -> Units:
        """Those of *rows* only."""
        sets = None if self.sets is None else self.sets[rows]
        names = None if self.names is None else (self.names[0][rows], self.names[1][rows])
        return Units(sets, names, self.count)


def units_of(choices: Choices) -> Units:
    """The independent units of *choices*: sets of names that only met each other, else names, else none."""
    if not choices.clusters:
        return Units(None, None, choices.first.size)
    if len(choices.clusters) == 1:
        return Units(choices.clusters[0], None, int(np.unique(choices.clusters[0]).size))
    one, two = choices.clusters
    size = int(max(one.max(initial=0), two.max(initial=0))) + 1
    graph = coo_matrix((np.ones(one.size), (one, two)), shape=(size, size))
    _, label = connected_components(graph, directed=False)
    sets = label[one].astype(np.intp)
    sides = [np.unique(np.concatenate([one[choices.first == g], two[choices.second == g]])).size
             for g in np.unique(np.concatenate([choices.first, choices.second]))]  # fmt: skip
    names = min(sides, default=0)
    trials = np.unique(sets, return_counts=True)[1].astype(np.float64)
    # Sets of very unequal size (one of most names, and a few by themselves) tell the spread of none of them.
    alike = trials.sum() ** 2 / float(np.sum(trials**2)) if trials.size else 0.0
    if trials.size > 1 and alike >= EVEN * min(names, trials.size):
        return Units(sets, None, trials.size)
    return Units(None, (one, two), names)


def selection_rates(choices: Choices, units: Units) -> list[Rate]:
    """How often each group was chosen of the decided trials that it stood in.

    The interval is a t with the larger of the errors of trials (within orders and blocks) and of names; Wilson's
    where no error can be estimated.
    """
    done = choices.decided
    rows, own = choices.take(done), units.take(done)
    listing = cross([rows.first, rows.second], rows.first.size)
    found = []
    for group in range(len(choices.labels)):
        here = (rows.first == group) | (rows.second == group)
        won = np.where(rows.outcome == FIRST, rows.first, rows.second)[here] == group
        found.append(_rate(won, listing[here], rows.block[here], own.take(here)))
    return found


def first_listed_rate(choices: Choices, units: Units) -> Rate:
    """How often the first-listed was chosen, of all decided trials."""
    done = choices.decided
    rows = choices.take(done)
    listing = cross([rows.first, rows.second], rows.first.size)
    return _rate(rows.outcome == FIRST, listing, rows.block, units.take(done))


def _rate(won: Bools, listing: Ints, block: Ints, units: Units) -> Rate:
    n = won.size
    if not n:
        return Rate(0, 0, None, None, None)
    y = won.astype(np.float64)
    value = float(y.mean())
    rows = _stratified_variance(y, cross([listing, block], n))
    names, df = _clustered(_within(y, listing) / n, units)
    variance = max(rows, names)
    if 0 < value < 1 and variance > 0 and df >= 1:
        reach = float(t_quantile(df if names >= rows else max(df, n - 1.0), 0.975)) * float(np.sqrt(variance))
        return Rate(n, int(y.sum()), value, max(0.0, value - reach), min(1.0, value + reach))
    low, high = wilson(np.array([y.sum()]), np.array([float(n)]), _Z)
    return Rate(n, int(y.sum()), value, float(low[0]), float(high[0]))


def clustered_mean(values: Floats, units: Sequence[object]) -> Rate:
    """The mean of shares or of yes/no, one a row, with the 95 % interval in which each of *units* is one observation.

    ``won`` is their sum, to the nearest whole. Wilson's interval over the units where they do not differ.
    """
    n = values.size
    if not n:
        return Rate(0, 0, None, None, None)
    codes = np.unique(np.array(units, dtype=object).astype(str), return_inverse=True)[1].astype(np.intp)
    value, count = float(values.mean()), int(codes.max()) + 1
    square, df = _clustered((values - value) / n, Units(codes, None, count))
    if square > 0:
        reach = float(t_quantile(df, 0.975)) * float(np.sqrt(square))
        return Rate(n, round(float(values.sum())), value, max(0.0, value - reach), min(1.0, value + reach))
    low, high = wilson(np.array([value * count]), np.array([float(count)]), _Z)
    return Rate(n, round(float(values.sum())), value, float(low[0]), float(high[0]))


def _stratified_variance(y: Floats, stratum: Ints) -> float:
    _, at = np.unique(stratum, return_inverse=True)
    n = np.bincount(at).astype(np.float64)
    p = np.bincount(at, y) / n
    # A stratum of one trial shows no spread of its own: it gets that of all.
    spread = np.where(n > 1, n * p * (1 - p) * n / np.maximum(n - 1, 1), float(y.mean() * (1 - y.mean())))
    return float(spread.sum()) / y.size**2


def _within(y: Floats, listing: Ints) -> Floats:
    """*y* less the mean of the two groups in this order: whom somebody met is the design's doing, not a name's."""
    _, at = np.unique(listing, return_inverse=True)
    return np.asarray(y - (np.bincount(at, y) / np.bincount(at))[at])


def _clustered(parts: Floats, units: Units) -> tuple[float, float]:
    """Variance of the sum of *parts*, whose expectation is 0, and its df; 0 where the units are too few."""
    if units.sets is not None:
        sums = np.bincount(np.unique(units.sets, return_inverse=True)[1], parts)
        if sums.size < 2:
            return 0.0, float(max(parts.size - 1, 1))
        return float(np.sum(sums**2)) * sums.size / (sums.size - 1), float(sums.size - 1)
    if units.names is None or units.count < 2:
        return 0.0, float(max(parts.size - 1, 1))
    one, two = units.names
    size = int(max(one.max(initial=0), two.max(initial=0))) + 1
    by_name = np.bincount(one, parts, size) + np.bincount(two, parts, size)
    low, high = np.minimum(one, two), np.maximum(one, two)
    by_pair = np.bincount(cross([low, high], one.size), parts)
    dyads = float(np.sum(by_pair**2))
    total = max(float(np.sum(by_name**2)) - dyads, dyads)
    return total * units.count / (units.count - 1), float(units.count - 1)


def equal_selection(choices: Choices, units: Units, a: int, b: int) -> Difference:
    """Are A and B selected equally often, over all the trials that either stood in?

    The difference of the two rates is a weighted sum of *the first-listed won*; under equal strengths its
    expectation in each block is the position's share, so a position that decides much takes no power away.
    """
    done = choices.decided
    rows, own = choices.take(done), units.take(done)
    weight = np.zeros(len(choices.labels))
    for group, sign in ((a, 1.0), (b, -1.0)):
        shown = int(np.sum((rows.first == group) | (rows.second == group)))
        weight[group] = sign / shown if shown else 0.0
    step = weight[rows.first] - weight[rows.second]
    here = step != 0
    step, y, own = step[here], (rows.outcome == FIRST)[here].astype(np.float64), own.take(here)
    if not step.size:
        return Difference(0.0, 1.0, None)
    _, at = np.unique(rows.block[here], return_inverse=True)
    q = (np.bincount(at, y) / np.bincount(at))[at]
    parts = step * (y - q)
    total, variance = float(parts.sum()), float(np.sum(step**2 * q * (1 - q)))
    z = total / float(np.sqrt(variance)) if variance > 0 else 0.0
    p_row = float(2 * ndtr(-abs(z)))
    p_cluster = None
    if units.count > 1 and (own.sets is not None or own.names is not None):
        listing = cross([rows.first[here], rows.second[here]], y.size)
        square, df = _clustered(step * _within(y, listing), own)
        p_cluster = float(min(1.0, 2 * stdtr(df, -abs(total) / np.sqrt(square)))) if square > 0 else float(total == 0)
    return Difference(z, p_row, p_cluster)


def clustered_interaction(choices: Choices, level: Coded, units: Units) -> float | None:
    """p of the interaction of the strengths with *level*, with the names as the unit; None where they are too few.

    The score of the interaction, made orthogonal to strengths and positions, is summed in each set of names, and
    Hotelling's T² (1931) is taken of the sums; where all names have met, a Wald test with the dyadic variance.
    """
    done = choices.decided
    own = units.take(done)
    if not done.any() or (own.sets is None and own.names is None):
        return None
    fit, main, products = without_interaction(choices, level)
    y = (choices.outcome[done] == FIRST).astype(np.float64)
    terms = products.shape[1]
    if not fit.proper or not terms or units.count <= terms + 1:
        return None
    p = 1 / (1 + np.exp(-main @ fit.beta))
    weight = (p * (1 - p))[:, None]
    other = products - main @ np.linalg.lstsq(main.T @ (weight * main), main.T @ (weight * products), rcond=None)[0]
    scores = other * (y - p)[:, None]
    total, spread, count = scores.sum(axis=0), _spread_of_sum(scores, own), units.count
    if np.linalg.matrix_rank(spread, hermitian=True) < terms:
        return None
    square = float(total @ np.linalg.solve(spread, total))
    return float(fdtrc(terms, count - terms, square * (count - terms) / (terms * (count - 1))))


def _spread_of_sum(scores: Floats, units: Units) -> Floats:
    """The covariance (terms × terms) of the sum of *scores* over all rows."""
    if units.sets is not None:
        sums = _sums(scores, units.sets)
        return np.asarray(len(sums) * np.cov(sums, rowvar=False).reshape(scores.shape[1], -1))
    one, two = units.names if units.names is not None else (np.zeros(0, np.intp), np.zeros(0, np.intp))
    both = np.concatenate([one, two])
    names = _sums(np.concatenate([scores, scores]), both)
    pairs = _sums(scores, cross([np.minimum(one, two), np.maximum(one, two)], one.size))
    dyads = pairs.T @ pairs
    spread = names.T @ names - dyads
    # The difference need not be a covariance; what the pairs by themselves show is the least that it can be.
    least = float(np.linalg.eigvalsh(spread).min())
    return np.asarray(spread if least > 0 else dyads + np.maximum(spread - dyads, 0) * np.eye(len(dyads)))


def _sums(scores: Floats, codes: Ints) -> Floats:
    _, at = np.unique(codes, return_inverse=True)
    table = np.zeros((int(at.max()) + 1, scores.shape[1]))
    np.add.at(table, at, scores)
    return table
