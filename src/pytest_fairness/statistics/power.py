"""Power of a design: how often it finds a difference, and passes where there is none, before
anything is paid for.

Pairs of groups are drawn with a fixed seed and compared as the run compares them. Only what decides
is drawn: of scores the means of the clusters with their spread, which are nearly normal; of yes/no
answers the count of each cluster, for rare answers are far from normal; of labels the shares of
each cluster.

``TTestIndPower`` of statsmodels answers another question, how often one t test rejects: a pair is
found where the tests on rows, names and δ all reject and the estimate is .2 or more, and passes by
its intervals. Where the names decide alone, the figures are within .05 of each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, chdtrc, expit, fdtrc, gammaln, logit, ndtr, ndtri

from pytest_fairness.statistics.arrays import Bools, Floats
from pytest_fairness.statistics.categories import balanced_v, chi_square, clustering, d_of_v
from pytest_fairness.statistics.clusters import CONFIDENCE, two_sided_t
from pytest_fairness.statistics.effects import LOGIT_TO_D, Effect, d_of_delta
from pytest_fairness.statistics.pair_table import EffectIntervals, combine, intervals
from pytest_fairness.statistics.proportions import (
    FEW,
    ClusteredRates,
    log_odds_ratio,
    nearly_equal,
    woolf_variance,
)

SEED = 20261123
DRAWS = 4000
"""Pairs that are drawn: a share of .8 has a standard error of .006."""
MOST_COUNTED = 100
"""Clusters whose counts are drawn one by one; of more, several count as a larger one that spreads
as they do.
"""
PART, RESAMPLES = 50, 200
"""Pairs with labels are drawn in parts, each with resamples of its own, so that chance in these
averages out.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Two groups of *clusters* with *rows* each; *icc* is the share of the outcome's variance
    between clusters.

    With *labels* a group has one name: each row is a cluster, and the test on rows alone decides.
    *blocks* are the templates that the rows of a group spread over.
    """

    clusters: int
    rows: int
    icc: float
    labels: bool = False
    blocks: int = 1

    @property
    def size(self) -> int:
        """Rows of each group."""
        return self.clusters * self.rows

    @property
    def df(self) -> Floats:
        """Return where the rows are the clusters, each stands in one block, and the means of the
        blocks cost theirs.
        """
        lost = 0
        if self.labels:
            lost = min(self.blocks, self.clusters) - 1
        return np.array(max(2.0 * self.clusters - 2 - lost, 1.0))

    @property
    def in_a_block(self) -> float:
        """Rows of both groups that are compared with each other."""
        return max(2 * self.size / self.blocks, 2.0)

    @property
    def jackknifed(self) -> float:
        """By how much leaving a row out of a small block overstates the error of an odds ratio."""
        return math.sqrt(self.in_a_block / (self.in_a_block - 1))

    def spread(self, icc: float) -> float:
        """Variance of a cluster's mean in units of that of a row, where clusters hold the share
        *icc* of it.
        """
        return icc + (1 - icc) / self.rows

    def counted(self) -> Sample:
        """The same in clusters few enough to be drawn one by one; the means of the groups spread as
        before.
        """
        several = math.ceil(self.clusters / MOST_COUNTED)
        if several == 1:
            return self
        rows = self.rows * several
        icc = (self.spread(self.icc) / several - 1 / rows) / (1 - 1 / rows)
        return replace(self, clusters=self.clusters // several, rows=rows, icc=max(icc, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Compared pairs (R): p, and the effects with their 90 % intervals (R × E). ``near``: two rates
    are practically equal; ``constant``: neither group varies."""

    p_value: Floats
    effects: EffectIntervals
    near: Bools | None = None
    constant: Bools | None = None

    @classmethod
    def of(cls, p_value: Floats, effects: Sequence[Effect], df: Floats, **rates: Bools) -> Drawn:
        of_effects = intervals(effects, np.full(p_value.size, df), CONFIDENCE)
        return cls(p_value=p_value, effects=of_effects, **rates)


class _Ranks(NamedTuple):
    """Mean ranks over N: their difference between the groups, the variance within a group and that
    of all rows, and the share of the former that lies between clusters."""

    gap: float
    within: float
    overall: float
    icc: float


def draw_scores(sample: Sample, effect: float, draws: int = DRAWS) -> Drawn:
    """Pairs of normal scores, *effect* standard deviations apart: Hedges g, and d of Cliff's δ with
    the test of ranks.

    The cluster means of a score and of its rank are normal in two dimensions, their squares Wishart
    (Bartlett 1933). Ranks within small blocks know less, by (N + 1)/N, and the jackknife counts
    that twice.
    """
    ranks = _normal_ranks(effect, sample.icc)
    k = sample.clusters
    df = float(sample.df)
    small = 1 / sample.in_a_block
    of_score = sample.spread(sample.icc)
    of_rank = ranks.within * sample.spread(ranks.icc) * (1 + small)
    # Stein's lemma: a normal score and its rank covary by the mean slope of the latter.
    slope = (1 + math.exp(-(effect**2) / 4)) / (4 * math.sqrt(math.pi))
    r = min(slope * math.sqrt(of_score / of_rank), 1.0)
    rest = math.sqrt(1 - r * r)
    rng = np.random.default_rng(SEED)
    first = _normal(draws)
    other = rng.standard_normal(draws)
    cross = rng.standard_normal(draws)
    square = rng.chisquare(df, draws)
    beside = rng.chisquare(df - 1, draws)
    gap = ranks.gap + math.sqrt(2 * of_rank / k) * first
    error = np.sqrt(2 * of_rank / k * square / df)
    difference = effect + math.sqrt(2 * of_score / k) * (r * first + rest * other)
    g_error = np.sqrt(
        2 * of_score / k / df * ((r * np.sqrt(square) + rest * cross) ** 2 + rest**2 * beside)
    )
    d = d_of_delta(2 * gap, np.full(draws, float(sample.size) ** 2))
    if sample.labels:
        again = 1 + 2 * small
    else:
        again = (1 + 2 * small) / (1 + small)
    d_error = error * 2 * np.sqrt(np.pi * again) * np.exp(d * d / 4)
    # Leaving a row out of a small block also moves the middle of the block.
    rows = sample.in_a_block / 2
    moved = 2.0
    if rows > 1.5:
        moved = (1 - 1 / rows) * (1 + 1 / (2 * (rows - 1))) ** 2 + 1 / (2 * rows)
    effects = (
        Effect(
            name="Hedges g",
            value=difference,
            error=g_error * (math.sqrt(moved) if sample.labels else 1.0),
        ),
        Effect(name="d from Cliff's δ", value=d, error=d_error),
    )
    return Drawn.of(_p_of_ranks(gap, error, ranks, sample, small), effects, sample.df)


def draw_ratings(sample: Sample, effect: float, levels: int, draws: int = DRAWS) -> Drawn:
    """Pairs of ratings: *levels* equally likely in one group, their cumulative odds moved by
    *effect* in the other.

    The log odds ratio is all but proportional to the difference of mean ranks, and so is its error.
    """
    ranks = _rating_ranks(effect, levels, sample.icc)
    least = _rating_ranks(1e-3, levels, sample.icc)
    if effect:
        scale = effect / ranks.gap
    else:
        scale = 1e-3 / least.gap
    of_rank = ranks.within * sample.spread(ranks.icc)
    k = sample.clusters
    df = float(sample.df)
    gap = ranks.gap + math.sqrt(2 * of_rank / k) * _normal(draws)
    rng = np.random.default_rng(SEED)
    error = np.sqrt(2 * of_rank / k * rng.chisquare(df, draws) / df)
    planned_effect = Effect(
        name="d from odds ratio", value=scale * gap, error=scale * error * sample.jackknifed
    )
    # Ranks within small blocks know less than the odds ratio over all; with ties about half as much
    # less as without.
    lost = 1 / (2 * sample.in_a_block)
    of_block = gap + math.sqrt(2 * of_rank * lost / k) * rng.standard_normal(draws)
    return Drawn.of(_p_of_ranks(of_block, error, ranks, sample, lost), [planned_effect], sample.df)


def _normal(draws: int) -> Floats:
    """Normal numbers in even steps, which leave less to chance than random ones."""
    return np.asarray(ndtri((np.arange(draws) + 0.5) / draws))


def _p_of_ranks(gap: Floats, error: Floats, ranks: _Ranks, sample: Sample, lost: float) -> Floats:
    """p of the test on rows and that on names; small blocks add *lost* to the variance."""
    rows = ranks.overall * (1 + lost)
    p_row = 2 * ndtr(-np.abs(gap) * math.sqrt(sample.size / (2 * rows)))
    return np.asarray(
        p_row if sample.labels else combine(p_row, two_sided_t(gap, error, sample.df))
    )


@lru_cache(maxsize=1)
def _nodes() -> tuple[Floats, Floats]:
    """Points and weights of the mean over a standard normal number."""
    x, weight = np.polynomial.hermite_e.hermegauss(60)
    return x, weight / weight.sum()


def _normal_ranks(effect: float, icc: float) -> _Ranks:
    x, weight = _nodes()

    def variance(shift: float, scale: float) -> float:
        rank = (ndtr(x * scale) + ndtr(x * scale - shift)) / 2
        return float(weight @ rank**2 - (weight @ rank) ** 2)

    within = variance(effect, 1.0)
    inner = math.sqrt(2 - icc)
    between = variance(effect / inner, math.sqrt(icc) / inner)
    return _Ranks(float(ndtr(effect / math.sqrt(2))) - 0.5, within, 1 / 12, between / within)


def _rating_ranks(effect: float, levels: int, icc: float) -> _Ranks:
    below = np.arange(1, levels) / levels
    shares = [
        np.diff(at, prepend=0.0, append=1.0)
        for at in (below, expit(logit(below) - effect / LOGIT_TO_D))
    ]
    both = (shares[0] + shares[1]) / 2
    rank = np.cumsum(both) - both / 2
    means = [share @ rank for share in shares]
    within = (
        sum(float(share @ (rank - mean) ** 2) for share, mean in zip(shares, means, strict=True))
        / 2
    )
    return _Ranks(float(means[1] - means[0]), within, float(both @ (rank - 0.5) ** 2), icc)


def draw_rates(
    sample: Sample, effect: float, rate: float, *, favourable: bool, draws: int = DRAWS
) -> Drawn:
    """Pairs of yes/no outcomes: counts of clusters whose rates follow a beta distribution about
    those of the groups.

    One group has *rate*, that of the favourable answer or of the other, the second is *effect*
    further from one half. A name moves the log odds alike in both, so that the intraclass
    correlation shrinks, about as √(p(1−p)).
    """
    sample = sample.counted()
    other = float(expit(logit(rate) + math.copysign(effect / LOGIT_TO_D, rate - 0.5)))
    k = sample.clusters
    m = float(sample.rows)
    n = float(sample.size)
    draws = max(min(draws, 200_000 // k), 1)
    rng = np.random.default_rng(SEED)
    icc = sample.icc, sample.icc * math.sqrt(other * (1 - other) / (rate * (1 - rate)))
    x = np.stack(
        [_counts(rng, sample, *share, draws) for share in zip((rate, other), icc, strict=True)]
    )
    yes = x.sum(axis=2)
    both = yes.sum(axis=0)
    variance = both * (2 * n - both) / (4 * (2 * n - 1))
    p_row = np.where(
        variance > 0,
        2 * ndtr(-np.abs(yes[0] - yes[1]) / 2 / np.sqrt(np.maximum(variance, 1e-300))),
        1.0,
    )
    error = np.sqrt(np.var(x / m, axis=2, ddof=1).sum(axis=0) / k)
    plain = np.sum(yes * (n - yes), axis=0) / (n * n * (n - 1))
    if not sample.labels:
        inflation = np.maximum(error**2 / np.where(plain > 0, plain, 1.0), 1.0)
    else:
        inflation = np.ones(draws)
    if favourable:
        shares = yes / n
    else:
        shares = 1 - yes / n
    rows = np.full(draws, n)
    df = np.full(draws, float(sample.df))
    near, _ = nearly_equal(ClusteredRates(shares[0], rows, shares[1], rows, inflation, df))

    def log_odds_of(x1: Floats, n1: float, x2: Floats, n2: float) -> Floats:
        """0 where all say the same."""
        mixed = (x1 + x2 > 0.5) & (x1 + x2 < n1 + n2 - 0.5)
        return np.where(mixed, log_odds_ratio(x1, n1, x2, n2), 0.0)

    first, two = yes[:, :, None]
    without = log_odds_of(first - x[0], n - m, two, n), log_odds_of(first, n, two - x[1], n - m)
    square = sum(np.var(letter, axis=1) for letter in without) * (k - 1) * sample.jackknifed**2
    woolf, least = woolf_variance(np.concatenate([yes, n - yes]))
    log_error = np.sqrt(np.maximum(square, np.where(least < FEW, woolf, 0.0)))
    log_odds = log_odds_of(yes[0], n, yes[1], n)
    p_cluster = two_sided_t((yes[0] - yes[1]) / n, error, sample.df)
    return Drawn.of(
        p_row if sample.labels else combine(p_row, p_cluster),
        [
            Effect(
                name="d from odds ratio", value=log_odds * LOGIT_TO_D, error=log_error * LOGIT_TO_D
            )
        ],
        sample.df,
        near=near,
        constant=(both == 0) | (both == 2 * n),
    )


def _counts(
    rng: np.random.Generator, sample: Sample, rate: float, icc: float, draws: int
) -> Floats:
    """Beta-binomial counts (draws × clusters), whose intraclass correlation is 1/(a + b + 1)."""
    m = sample.rows
    yes = np.arange(m + 1)
    chosen = gammaln(m + 1) - gammaln(yes + 1) - gammaln(m - yes + 1)
    if icc > 0:
        a, b = (share * (1 - icc) / icc for share in (rate, 1 - rate))
        log = chosen + betaln(yes + a, m - yes + b) - betaln(a, b)
    else:
        log = chosen + yes * math.log(rate) + (m - yes) * math.log1p(-rate)
    steps = 1 << 16  # a table of quantiles is several times faster than drawing one by one
    table = np.searchsorted(np.cumsum(np.exp(log)), (np.arange(steps) + 0.5) / steps).astype(
        np.float64
    )
    return np.asarray(np.minimum(table, m)[rng.integers(steps, size=(draws, sample.clusters))])


def draw_labels(
    sample: Sample, effect: float, labels: int, draws: int = DRAWS // 2, *, intervals: bool = True
) -> Drawn:
    """Pairs of labels: equally likely in both groups together, half of them rarer in the one and
    half in the other.

    The counts of a cluster are Dirichlet-multinomial about the shares of its group. For *intervals*
    the clusters are drawn again, as the run does; without, they are endless. The lower ends, which
    are never below 0, are left out.
    """
    rng = np.random.default_rng(SEED)
    shares = label_shares(effect, labels)
    if sample.labels:
        tables, p_value, high = _labels_of_rows(rng, sample, shares, draws, intervals)
    else:
        tables, p_value, high = _labels_of_names(rng, sample.counted(), shares, draws, intervals)
    value = d_of_v(balanced_v(tables))[:, None]
    top = np.full(value.shape, np.inf)
    if intervals:
        top = np.maximum(high[:, None], value)
    return Drawn(p_value=p_value, effects=EffectIntervals(value, np.zeros(value.shape), top))


def _labels_of_rows(
    rng: np.random.Generator, sample: Sample, shares: Floats, draws: int, intervals: bool
) -> tuple[Floats, Floats, Floats]:
    """The tables of pairs whose rows stand for themselves, their p, and the upper ends of V; those
    are none without *intervals*."""
    n = sample.size
    tables = rng.multinomial(n, shares, size=(draws, 2)).astype(np.float64)
    chi2, used = chi_square(tables)
    p_value = np.asarray(chdtrc(np.maximum(used - 1, 1.0), chi2), dtype=np.float64)
    if not intervals:
        return tables, p_value, np.zeros(0)
    again = rng.multinomial(n, tables / n, size=(RESAMPLES, draws, 2)) / n
    return tables, p_value, _upper_end(np.moveaxis(again, 0, 2))


def _labels_of_names(
    rng: np.random.Generator, sample: Sample, shares: Floats, draws: int, intervals: bool
) -> tuple[Floats, Floats, Floats]:
    """The same of pairs whose rows stand in clusters."""
    k = sample.clusters
    m = sample.rows
    labels = shares.shape[1]
    parts = []
    for _ in range(draws // PART):
        of_names = np.broadcast_to(shares[:, None], (PART, 2, k, labels))
        if sample.icc > 0:
            # Dirichlet about the shares of the group, whose intraclass correlation is 1/(Σα + 1).
            weight = rng.standard_gamma(of_names * (1 - sample.icc) / sample.icc)
            of_names = weight / np.maximum(weight.sum(axis=3, keepdims=True), 1e-300)
        parts.append(rng.multinomial(m, of_names) / m)
    ends = [np.zeros(0)]
    if intervals:
        for part in parts:
            weights = rng.multinomial(k, np.full(k, 1 / k), size=(2, RESAMPLES)) / k
            again = np.stack([weights[side] @ part[:, side] for side in (0, 1)], axis=1)
            ends.append(_upper_end(again))
    drawn = np.concatenate(parts)
    tables = drawn.sum(axis=2) * m
    chi2, used = chi_square(tables)
    first = np.arange(0, 2 * len(drawn), 2)
    owner = np.repeat(np.arange(2 * len(drawn)), k)
    flat = (drawn * m).reshape(-1, labels), owner, tables.reshape(-1, labels)
    inflation = clustering(*flat, first, first + 1, used)
    df = labels - 1.0
    p_cluster = np.asarray(
        fdtrc(df, df * float(sample.df), chi2 / (inflation * df)), dtype=np.float64
    )
    p_value = combine(np.asarray(chdtrc(df, chi2), dtype=np.float64), p_cluster)
    return tables, p_value, np.concatenate(ends)


def label_shares(effect: float, labels: int) -> Floats:
    """The shares of both groups (2 × labels) whose V is that of *effect*; below 0 where no table
    has it.
    """
    half = labels // 2
    v = effect / math.sqrt(4 + effect**2)
    # V² = Σ δ²/p̄ with p̄ = 1/C and δ = ±step in 2·half of the C labels.
    step = v / math.sqrt(labels * 2 * half)
    moved = np.concatenate([np.full(half, step), np.zeros(labels - 2 * half), np.full(half, -step)])
    return 1 / labels + np.stack([moved, -moved])


def _upper_end(again: Floats) -> Floats:
    """The 95 % percentile of the effect over resamples (draws × 2 × resamples × labels)."""
    first = again[:, 0]
    other = again[:, 1]
    # The square of the balanced V of two groups, and d grows with it.
    square = np.sum((first - other) ** 2 / np.maximum(2 * (first + other), 1e-12), axis=2)
    at = math.ceil(0.95 * RESAMPLES) - 1
    return d_of_v(np.sqrt(np.minimum(np.partition(square, at, axis=1)[:, at], 1.0)))
