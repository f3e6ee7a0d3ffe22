"""Selection rates of groups over many pairs: intervals and tests that know whose win is whose loss.

A trial is one piece of evidence about two groups at once, and a name stands in many trials. So a
rate, or a difference of two, is a sum over trials, and its error comes from the sums over *sets of
names*: names that never met anybody outside their set. Where all names have met, the sums over
names themselves take their place (Aronow, Samii & Assenova 2015, Political Analysis 23:564-577).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.special import fdtrc, ndtr

from pytest_fairness.statistics.arrays import Bools, Coded, Floats, Ints, cross, means_of
from pytest_fairness.statistics.bradley_terry import fit_binomial, interaction_terms
from pytest_fairness.statistics.choices import FIRST, Choices
from pytest_fairness.statistics.clusters import TwoUnits, t_quantile, two_sided_t
from pytest_fairness.statistics.proportions import Z_95, wilson

EVEN = 0.75
"""How even sets of names must be to be units: their effective number (Kish 1965) as a share of the
names a group.
"""


@dataclass(frozen=True, slots=True)
class Rate:
    """*count* of *n*, with the 95 % interval of the share; ``value`` is None where n is 0."""

    n: int
    count: int
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def within(cls, n: int, won: int, value: float, reach: float | None, units: float) -> Rate:
        """With the interval ±*reach*; Wilson's over *units* where that is None."""
        if reach is not None:
            return cls(n, won, value, max(0.0, value - reach), min(1.0, value + reach))
        low, high = wilson(np.array(value * units), np.array(units), Z_95)
        return cls(n, won, value, float(low), float(high))


@dataclass(frozen=True, slots=True)
class Units:
    """The units that are independent of each other, as codes of the rows: sets of names, or the
    names of the two candidates; under a ``count`` of two there is nothing to estimate an error
    from.
    """

    codes: tuple[Ints, ...]
    count: int

    def take(self, rows: Bools) -> Units:
        return Units(tuple(codes[rows] for codes in self.codes), self.count)


def units_of(choices: Choices) -> Units:
    """The independent units of *choices*: sets of names that only met each other, else names, else
    none.
    """
    if len(choices.clusters) < 2:
        if choices.clusters:
            count = np.unique(choices.clusters[0]).size
        else:
            count = choices.first.size
        return Units(choices.clusters, int(count))
    first, two = choices.clusters
    size = int(max(first.max(initial=0), two.max(initial=0))) + 1
    graph = coo_matrix((np.ones(first.size), (first, two)), shape=(size, size))
    sets = connected_components(graph, directed=False)[1][first].astype(np.intp)
    groups = np.unique(np.concatenate([choices.first, choices.second]))
    units = [
        np.concatenate([first[choices.first == group], two[choices.second == group]])
        for group in groups
    ]
    names = min((np.unique(codes).size for codes in units), default=0)
    trials = np.unique(sets, return_counts=True)[1].astype(np.float64)
    # Sets of very unequal size (one of most names, and a few by themselves) tell the spread of none
    # of them.
    alike = 0.0
    if trials.size:
        alike = trials.sum() ** 2 / float(np.sum(trials**2))
    if trials.size > 1 and alike >= EVEN * min(names, trials.size):
        return Units((sets,), trials.size)
    return Units((first, two), names)


def selection_rates(choices: Choices, units: Units) -> list[Rate]:
    """Return how often each group was chosen of the decided trials that it stood in.

    The interval is a t with the larger of the errors of trials (within orders and blocks) and of
    names; Wilson's where no error can be estimated.
    """
    rows = choices.take(choices.decided)
    units_ = units.take(choices.decided)
    return [
        _rate(rows.winner[here] == group, rows.listing[here], rows.block[here], units_.take(here))
        for group, here in ((group, rows.stood(group)) for group in range(len(choices.labels)))
    ]


def first_listed_rate(choices: Choices, units: Units) -> Rate:
    """Return how often the first-listed was chosen, of all decided trials."""
    rows = choices.take(choices.decided)
    return _rate(rows.outcome == FIRST, rows.listing, rows.block, units.take(choices.decided))


def _rate(won: Bools, listing: Ints, block: Ints, units: Units) -> Rate:
    n = won.size
    if not n:
        return Rate(0, 0)
    y = won.astype(np.float64)
    value = float(y.mean())
    p, size = means_of(y, cross([listing, block], n))
    # A stratum of one trial shows no spread of its own: it gets that of all.
    spread = np.where(
        size > 1, size * p * (1 - p) * size / np.maximum(size - 1, 1), value * (1 - value)
    )
    rows = float(spread.sum()) / n**2
    names, df = _clustered(_within(y, listing) / n, units)
    variance = max(rows, names)
    reach = None
    if 0 < value < 1 and variance > 0 and df >= 1:
        reach = float(t_quantile(df if names >= rows else max(df, n - 1.0), 0.975)) * math.sqrt(
            variance
        )
    return Rate.within(n, int(y.sum()), value, reach, float(n))


def clustered_mean(values: Floats, units: Sequence[object]) -> Rate:
    """The mean of shares or of yes/no, one a row, with the 95 % interval in which each of *units*
    is one observation.

    ``count`` is their sum, to the nearest whole. Wilson's interval over the units where they do not
    differ.
    """
    n = values.size
    if not n:
        return Rate(0, 0)
    codes = pd.factorize(np.array(units, dtype=object).astype(str))[0].astype(np.intp)
    value = float(values.mean())
    count = int(codes.max()) + 1
    square, df = _clustered((values - value) / n, Units((codes,), count))
    reach = None
    if square > 0:
        reach = float(t_quantile(df, 0.975)) * math.sqrt(square)
    return Rate.within(n, round(float(values.sum())), value, reach, float(count))


def _within(y: Floats, listing: Ints) -> Floats:
    """*y* less the mean of the two groups in this order: whom somebody met is the design's doing,
    not a name's.
    """
    codes = cross([listing], y.size)
    return y - means_of(y, codes)[0][codes]


def _clustered(parts: Floats, units: Units) -> tuple[float, float]:
    """Variance of the sum of *parts*, whose expectation is 0, and its df; 0 where the units are too
    few.
    """
    if len(units.codes) == 1:
        sums = _sums(parts[:, None], units.codes[0])
        square = float(np.sum(sums**2))
        count = len(sums)
    elif units.codes:
        names, dyads = (float(np.sum(table**2)) for table in _met(parts[:, None], units.codes))
        square = max(names - dyads, dyads)
        count = units.count
    if not units.codes or count < 2:
        return 0.0, float(max(parts.size - 1, 1))
    return square * count / (count - 1), float(count - 1)


def equal_selection(choices: Choices, units: Units, a: int, b: int) -> TwoUnits:
    """Are A and B selected equally often, over all the trials that either stood in?

    The difference of the two rates is a weighted sum of *the first-listed won*; under equal
    strengths its expectation in each block is the position's share, so a position that decides much
    takes no power away.
    """
    rows = choices.take(choices.decided)
    weight = np.zeros(len(choices.labels))
    for group, sign in ((a, 1.0), (b, -1.0)):
        shown = int(rows.stood(group).sum())
        if shown:
            weight[group] = sign / shown
        else:
            weight[group] = 0.0
    step = weight[rows.first] - weight[rows.second]
    here = step != 0
    units_ = units.take(choices.decided).take(here)
    rows = rows.take(here)
    step = step[here]
    if not step.size:
        return TwoUnits(z=0.0, p_row=1.0, p_cluster=None)
    y = (rows.outcome == FIRST).astype(np.float64)
    q = y - _within(y, rows.block)
    parts = step * (y - q)
    total = float(parts.sum())
    variance = float(np.sum(step**2 * q * (1 - q)))
    z = 0.0
    if variance > 0:
        z = total / math.sqrt(variance)
    p_cluster = None
    if units.count > 1 and units_.codes:
        square, df = _clustered(step * _within(y, rows.listing), units_)
        p_cluster = float(two_sided_t(total, math.sqrt(square), df))
    return TwoUnits(z=z, p_row=float(2 * ndtr(-abs(z))), p_cluster=p_cluster)


def clustered_interaction(choices: Choices, level: Coded, units: Units) -> float | None:
    """p of the interaction of the strengths with *level*, with the names as the unit; None where
    they are too few.

    The score of the interaction, made orthogonal to strengths and positions, is summed in each set
    of names, and Hotelling's T² (1931) is taken of the sums; where all names have met, a Wald test
    with the dyadic variance.
    """
    units_ = units.take(choices.decided)
    if not choices.decided.any() or not units_.codes:
        return None
    main, products, y = interaction_terms(choices, level)
    fit = fit_binomial(main, y)
    terms = products.shape[1]
    if not fit.proper or not terms or units.count <= terms + 1:
        return None
    p = 1 / (1 + np.exp(-main @ fit.beta))
    weight = (p * (1 - p))[:, None]
    other = (
        products
        - main
        @ np.linalg.lstsq(main.T @ (weight * main), main.T @ (weight * products), rcond=None)[0]
    )
    scores = other * (y - p)[:, None]
    total = scores.sum(axis=0)
    count = units.count
    if len(units_.codes) == 1:
        sums = _sums(scores, units_.codes[0])
        spread = len(sums) * np.cov(sums, rowvar=False).reshape(terms, -1)
    else:
        names, pairs = _met(scores, units_.codes)
        dyads = pairs.T @ pairs
        spread = names.T @ names - dyads
        # The difference need not be a covariance; what the pairs by themselves show is the least
        # that it can be.
        if float(np.linalg.eigvalsh(spread).min()) <= 0:
            spread = dyads + np.maximum(spread - dyads, 0) * np.eye(terms)
    if np.linalg.matrix_rank(spread, hermitian=True) < terms:
        return None
    square = float(total @ np.linalg.solve(spread, total))
    return float(fdtrc(terms, count - terms, square * (count - terms) / (terms * (count - 1))))


def _met(scores: Floats, names: tuple[Ints, ...]) -> tuple[Floats, Floats]:
    """The sums of *scores* over each name, and over each two names that met."""
    first, two = names
    pairs = cross([np.minimum(first, two), np.maximum(first, two)], first.size)
    return _sums(np.concatenate([scores, scores]), np.concatenate([first, two])), _sums(
        scores, pairs
    )


def _sums(scores: Floats, codes: Ints) -> Floats:
    at = cross([codes], codes.size)
    return np.stack([np.bincount(at, column) for column in scores.T], axis=1)
