"""Means of an outcome that a reader got wrong in places, by a person's labels of some of the rows.

Prediction-powered inference, PPI++ (Angelopoulos, Duchi & Zrnic 2023, arXiv:2311.01453): of N rows
that a reader alone has read and n that a person has labelled too, drawn at random within the group,

    θ̂ = mean(label) + λ · (mean(reader, of the N) − mean(reader, of the n))

is free of the reader's error whatever λ is, and λ = cov(label, reader) / ((1 + n/N) · var(reader)),
held within 0 and 1, makes its variance smallest. The variance here is that of the sums of each
cluster, since a name stands in both terms. Rows that nobody has to read, as those of a refused
applicant, who was not selected, join the mean as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from pytest_fairness.statistics.arrays import Bools, Floats, Ints
from pytest_fairness.statistics.clusters import reach, t_quantile, two_sided_t
from pytest_fairness.statistics.effects import LOGIT_TO_D
from pytest_fairness.statistics.pair_table import PairTable
from pytest_fairness.statistics.proportions import ImpactRatio, RatioCounts

FEWEST_LABELS = 2
"""Labels, and clusters that hold some, without which a group's mean has no error."""
#: The share of samples in which so many labels decide.
_DECIDED = 0.8
_TAILS = 3.0
CLOSE_POINTS, CLOSE_RATIO = 0.05, 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledMeans:
    """The mean of each of G groups, its ``variance`` and degrees of freedom, the standard deviation
    of a row, the λ of the group, and how many rows are ``labelled``. ``usable`` is false for a
    group whose labels are all the same, or too few; one of which nobody has to read any row needs
    none.
    """

    mean: Floats
    variance: Floats
    df: Floats
    sd: Floats
    weight: Floats
    labelled: Ints
    usable: Bools

    @property
    def least(self) -> Floats:
        """Return half a label of each group, a share below which none is known; 0 of a group of
        which nobody has to read any row.
        """
        half = 0.5 / np.maximum(self.labelled, 1)
        return np.where(self.usable & (self.labelled == 0), 0.0, half)


def labelled_means(
    reader: Floats,
    labels: Floats,
    group: Ints,
    cluster: Ints,
    *,
    groups: int,
    certain: Bools | None = None,
) -> LabelledMeans:
    """Return the mean of each of so many *groups* by what a *reader* made of each row (finite) and
    the *labels* of some (NaN elsewhere), all of one length; rows of one *cluster* are no
    independent evidence. What the reader made of *certain* rows is so, and has no label.
    """
    if certain is None:
        certain = np.zeros(reader.size, dtype=np.bool_)
    columns = [
        _of_group(reader[rows], labels[rows], cluster[rows], certain[rows])
        for rows in (group == code for code in range(groups))
    ]
    mean, variance, df, sd, weight, labelled, usable = map(np.array, zip(*columns, strict=True))
    return LabelledMeans(
        mean=mean,
        variance=variance,
        df=df,
        sd=sd,
        weight=weight,
        labelled=labelled.astype(np.intp),
        usable=usable.astype(np.bool_),
    )


def _of_group(reader: Floats, labels: Floats, cluster: Ints, certain: Bools) -> tuple[float, ...]:
    """Return the mean of one group, its variance, df, the SD of a row, λ, the number of labels, and
    whether they can be used.
    """
    if certain.size and certain.all():
        return _of_certain(reader, cluster)
    has_label = ~np.isnan(labels) & ~certain
    alone = ~has_label & ~certain
    n = int(has_label.sum())
    rest = int(alone.sum())
    distinct = np.unique(labels[has_label]).size
    clusters = np.unique(cluster[has_label]).size
    if distinct < FEWEST_LABELS or clusters < FEWEST_LABELS:
        return np.nan, np.inf, 1.0, np.nan, 0.0, n, False
    label = labels[has_label]
    read = reader[has_label]
    weight = 0.0
    spread = float(reader[~certain].var(ddof=1))
    if rest and spread > 0:
        covariance = float(np.cov(label, read, ddof=1)[0, 1])
        weight = min(max(covariance / ((1 + n / rest) * spread), 0.0), 1.0)
    residual = label - weight * read
    mean = float(residual.mean())
    influence = np.zeros(reader.size)
    # n − 1 for the mean that is taken off; the error is known by the labelled clusters. λ is fitted
    # to these very labels, so each residual is smaller than that of a new one (HC3; MacKinnon &
    # White 1985, J. Econometrics 29:305).
    influence[has_label] = (residual - mean) / (
        np.sqrt(n * (n - 1)) * (1 - _leverage(read, weight))
    )
    if rest:
        others = reader[alone]
        mean += weight * float(others.mean())
        influence[alone] = weight * (others - others.mean()) / rest
    if certain.any():
        # The mean of all is that of both kinds of rows, and how many there are of each varies.
        of_row = np.where(certain, reader, mean)
        influence = influence * (~certain).mean() + (of_row - of_row.mean()) / reader.size
        mean = float(of_row.mean())
    variance, _ = _of_clusters(influence, cluster)
    return mean, variance, clusters - 1.0, float(label.std(ddof=1)), weight, n, True


def _of_certain(values: Floats, cluster: Ints) -> tuple[float, ...]:
    """Return the same of a group of which nobody has to read any row."""
    mean = float(values.mean())
    variance, clusters = _of_clusters((values - mean) / values.size, cluster)
    usable = clusters >= FEWEST_LABELS
    return mean, variance, max(clusters - 1.0, 1.0), float(values.std()), 0.0, 0, usable


def _of_clusters(influence: Floats, cluster: Ints) -> tuple[float, int]:
    """Return the variance of a mean by the *influence* of each row, and the number of clusters."""
    _, places = np.unique(cluster, return_inverse=True)
    sums = np.bincount(places, influence)
    return sums.size / max(sums.size - 1, 1) * float((sums**2).sum()), sums.size


def _leverage(read: Floats, weight: float) -> Floats:
    """Return how far each labelled row draws the slope to itself: (x − x̄)²/Σ(x − x̄)² of what was
    *read*; nothing with no *weight* on the reader, and never over a half: a single yes among many
    noes would have no error left.
    """
    if weight == 0:
        return np.zeros(read.size)
    away = (read - read.mean()) ** 2
    return np.asarray(np.minimum(away / away.sum(), 0.5))


def compared_by_labels(
    table: PairTable, means: LabelledMeans, *, rates: bool, confidence: float
) -> PairTable:
    """Return *table* with each pair compared by its labelled *means*: p of the difference by t on
    the clusters, and the effect with its interval; of *rates* by log odds, held half a label within
    0 and 1, else in standard deviations of a row.
    """
    sides = np.stack([table.first, table.second])
    mean = means.mean[sides]
    variance = means.variance[sides]
    unusable = ~means.usable[sides].all(axis=0)
    variance = np.where(unusable, 1.0, variance)
    error = np.sqrt(variance.sum(axis=0))
    parts = (variance**2 / means.df[sides]).sum(axis=0)
    df = variance.sum(axis=0) ** 2 / np.where(parts > 0, parts, 1.0)
    difference = np.where(unusable, 0.0, mean[0] - mean[1])
    spread = (means.sd[sides] ** 2).mean(axis=0)
    slope = 1 / np.sqrt(np.where(spread == 0, 1.0, spread))
    effect = difference * slope
    effect_error = error * slope
    if rates:
        least = means.least[sides]
        half = np.where(least > 0, least, 0.5 / np.maximum(table.trials.T, 1))
        held = np.clip(mean, half, 1 - half)
        logits = np.log(held / (1 - held)) * LOGIT_TO_D
        effect = logits[0] - logits[1]
        steps = LOGIT_TO_D / (held * (1 - held))
        effect_error = np.sqrt((variance * steps**2).sum(axis=0))
    width = reach(effect_error, df, confidence)
    span = reach(error, df, confidence)
    p_value = np.where(unusable, 1.0, two_sided_t(difference, error, df))
    t = difference / np.where(error == 0, 1.0, error)
    ratio = mean.min(axis=0) / np.maximum(mean.max(axis=0), 1e-12)
    close = rates & (np.abs(difference) < CLOSE_POINTS) & (ratio >= CLOSE_RATIO)
    never = np.zeros(table.first.size, dtype=np.bool_)
    return replace(
        table,
        effect_names=("d",),
        effect=np.where(unusable, 0.0, effect)[:, None],
        low=np.where(unusable, -np.inf, effect - width)[:, None],
        high=np.where(unusable, np.inf, effect + width)[:, None],
        test=np.full(table.first.size, "PPI++", dtype=object),
        value_of_test=np.where(unusable, np.nan, t),
        p_row=p_value,
        p_cluster=p_value,
        p_value=p_value,
        corrected=p_value,
        df=df,
        difference=difference,
        error=error,
        difference_df=df,
        difference_low=difference - span,
        difference_high=difference + span,
        constant=never,
        contrary=never,
        near=never,
        close=close,
        figures={},
        strata=None,
    )


class LabelledRate(NamedTuple):
    """The rate of a group of so many *rows* by a person's labels, its variance and degrees of
    freedom.
    """

    rate: float
    variance: float
    df: float
    rows: int


def labelled_rate(
    rate: float, variance: float, df: float, *, least: float, rows: float
) -> LabelledRate | None:
    """Return the *rate* of a group of so many *rows* by its labels; None below the *least* that they
    tell, and where they tell none (NaN).
    """
    if not rate >= least:
        return None
    return LabelledRate(float(rate), float(variance), float(df), int(rows))


def ratio_by_labels(first: LabelledRate, second: LabelledRate, confidence: float) -> ImpactRatio:
    """Compare two rates, in either order: counts are what the rates come to among the rows, and z is
    t of the difference; a ratio of 0 has no interval, and one of nothing to nothing is 1.

    The intervals, of .95 and of *confidence*, are exp(ln r ± t·SE) by the delta method, SE² =
    Var(p₁)/p₁² + Var(p₂)/p₂², with Welch & Satterthwaite's degrees of freedom. Rates of two groups
    do not covary: a name belongs to one of them.
    """
    lower, higher = sorted((first, second), key=lambda side: side.rate)
    if lower.rate == 0:
        return _ratio_of_none(lower, higher)
    ratio = lower.rate / higher.rate
    relative = [side.variance / side.rate**2 for side in (lower, higher)]
    error = sum(relative) ** 0.5
    df = sum(relative) ** 2 / (relative[0] ** 2 / lower.df + relative[1] ** 2 / higher.df)
    plain, wanted = (
        float(np.exp(t_quantile(df, (1 + level) / 2) * error)) for level in (0.95, confidence)
    )
    return ImpactRatio(
        counts=_counts(lower, higher),
        ratio=ratio,
        ratio_low=ratio / plain,
        ratio_high=ratio * plain,
        low=ratio / wanted,
        high=ratio * wanted,
        z=(lower.rate - higher.rate) / (lower.variance + higher.variance) ** 0.5,
        fisher=np.nan,
        smallest_expected=np.nan,
    )


def _counts(lower: LabelledRate, higher: LabelledRate) -> RatioCounts:
    """Return what two rates come to among the rows of their groups."""
    return RatioCounts(lower.rate * lower.rows, lower.rows, higher.rate * higher.rows, higher.rows)


def _ratio_of_none(lower: LabelledRate, higher: LabelledRate) -> ImpactRatio:
    """Return the ratio of a group of which it is certain that nobody was favoured."""
    ratio = 0.0
    t = 0.0
    if higher.rate == 0:
        ratio = 1.0
    else:
        t = -higher.rate / max(higher.variance, 1e-300) ** 0.5
    return ImpactRatio(
        counts=_counts(lower, higher),
        ratio=ratio,
        ratio_low=ratio,
        ratio_high=ratio,
        low=ratio,
        high=ratio,
        z=t,
        fisher=np.nan,
        smallest_expected=np.nan,
    )


def standardisers(table: PairTable, means: LabelledMeans) -> dict[str, Floats]:
    """Return the standard deviation of a row of each pair by its labels, and its degrees of
    freedom.
    """
    sides = np.stack([table.first, table.second])
    return {
        "standardiser_sd": np.sqrt((means.sd[sides] ** 2).mean(axis=0)),
        "standardiser_df": means.labelled[sides].sum(axis=0) - 2.0,
    }


def labels_to_decide(
    rate: float,
    effect: float,
    *,
    margin: float,
    correlation: float,
    confidence: float,
    rows: int | None = None,
    slope: float | None = None,
) -> int | None:
    """Return how many labels a group bring the interval of a pair inside ±*margin* in about 80 % of
    samples of so many *rows* a group (None: very many), where the reader's *correlation* with the
    labels is as given; None where no number does. Margin and *effect* are in d, or on a scale that
    has this *slope* at the *rate*.
    """
    room = margin - abs(effect)
    if room <= 0:
        return None
    z = float(ndtri((1 + confidence) / 2) + ndtri((1 + _DECIDED) / 2))
    spread = max(rate * (1 - rate), 1e-6)
    if slope is None:
        slope = LOGIT_TO_D / spread
    # Var(f(π)) = f'(π)²·σ²((1 − ρ²)/n + ρ²/N) for each group.
    of_pair = 2 * slope**2 * spread
    left = (room / z) ** 2
    if rows is not None:
        left -= of_pair * correlation**2 / rows
    if left <= 0:
        return None
    labels = of_pair * (1 - correlation**2) / left
    # A logit of few cases has longer tails than the normal has: so many of the rarer kind more.
    return int(np.ceil(labels + _TAILS / min(rate, 1 - rate)))
