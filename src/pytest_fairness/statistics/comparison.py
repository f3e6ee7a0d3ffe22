"""What one outcome says about every pair of groups: the shape that all kinds of outcome come in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pytest_fairness.statistics.arrays import Bools, Floats, Ints
from pytest_fairness.statistics.clusters import reach
from pytest_fairness.statistics.layout import Layout, Pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An effect on the d scale, positive where the first group is higher, with its 90 % interval; one entry a pair."""

    name: str
    value: Floats
    low: Floats
    high: Floats


def estimate(name: str, value: Floats, error: Floats, df: Floats) -> Estimate:
    """θ ± t·SE; from −∞ to ∞ where there is no error to be had."""
    half = reach(error, df)
    # An infinite effect (two constants) has nothing on either side of it.
    half = np.where(np.isinf(value), 0.0, half)
    return Estimate(name=name, value=value, low=value - half, high=value + half)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strata:
    """Each block by itself, T entries: the ``pair`` (its place), the ``block``, rows and means of both groups (T × 2),
    p and the effects within it."""

    pair: Ints
    block: Ints
    rows: Floats
    means: Floats
    p_value: Floats
    effects: tuple[Estimate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Arrays of length P, one entry a pair; ``rows`` and ``clusters`` are P × 2.

    ``p_value`` is max(p_row, p_cluster), or p_row alone where ``labels`` (a group has one cluster, p_cluster NaN);
    ``df`` are the degrees of freedom of the clusters. ``effects`` are one or two on the d scale. ``difference`` with
    its 90 % interval is in the outcome's own unit, ``error`` its standard error by t on the cluster means, with
    ``difference_df`` of its own. ``ragged`` is the share of a pair's rows in blocks that lack a group, ``constant``
    whether neither group varies.
    ``part_clusters`` is G*, the effective number of the first or last names, and ``part_constant`` whether a group's
    names all share one. ``icc`` and ``per_cluster`` feed the minimum detectable effect. ``beside`` holds what is
    reported and decides nothing, ``omnibus`` what is true of all groups together; ``statistic`` names and gives the row
    test's statistic.
    """

    pairs: Pairs
    test: tuple[str, ...]
    p_row: Floats
    p_cluster: Floats
    p_value: Floats
    df: Floats
    effects: tuple[Estimate, ...]
    difference: Floats
    error: Floats
    difference_df: Floats
    difference_low: Floats
    difference_high: Floats
    rows: Floats
    clusters: Floats
    labels: Bools
    ragged: Floats
    constant: Bools
    part_clusters: Floats
    part_constant: Bools
    icc: Floats
    per_cluster: Floats
    statistic: tuple[str, Floats]
    beside: Mapping[str, Floats]
    omnibus: Mapping[str, float] = field(default_factory=dict)
    strata: Strata | None = None


def ragged_share(layout: Layout, pairs: Pairs) -> Floats:
    """Share of a pair's rows that stand in blocks which lack one of the two groups."""
    n1, n2 = layout.count[pairs.first], layout.count[pairs.second]
    total = (n1 + n2).sum(axis=1)
    kept = np.where((n1 > 0) & (n2 > 0), n1 + n2, 0.0).sum(axis=1)
    return np.asarray(1 - kept / np.maximum(total, 1.0))


def extremes(layout: Layout) -> tuple[Floats, Floats]:
    """Lowest and highest value of each group (shifted by the layout's reference)."""
    low = np.minimum.reduceat(layout.values, layout.group_start)
    return low, np.maximum.reduceat(layout.values, layout.group_start)


def combine(p_row: Floats, p_cluster: Floats) -> Floats:
    """max(p_row, p_cluster); p_row where there is no p_cluster."""
    return np.where(np.isnan(p_cluster), p_row, np.maximum(p_row, np.nan_to_num(p_cluster, nan=0.0)))


def combine_in_block(p_row: Floats, p_cluster: Floats) -> Floats:
    """As :func:`combine` within one block; 1 where a group has one cluster there: nothing tells that name from the
    block, and its repetitions are no evidence."""
    return np.where(np.isnan(p_cluster), 1.0, combine(p_row, p_cluster))


def with_labels(names: Comparison, rows: Comparison, labels: Bools) -> Comparison:
    """*names*, but for the pairs where a group is one label: there what *rows* has, with each row its own cluster."""

    def take(one: Floats, other: Floats) -> Floats:
        return np.where(labels.reshape(-1, *[1] * (one.ndim - 1)), other, one)

    nothing = np.full(labels.size, np.nan)
    return Comparison(
        pairs=names.pairs,
        test=tuple(
            other if alone else one for one, other, alone in zip(names.test, rows.test, labels.tolist(), strict=True)
        ),
        p_row=take(names.p_row, rows.p_row),
        p_cluster=take(names.p_cluster, nothing),
        p_value=take(names.p_value, rows.p_row),
        df=take(names.df, rows.df),
        effects=tuple(
            Estimate(
                name=one.name,
                value=take(one.value, other.value),
                low=take(one.low, other.low),
                high=take(one.high, other.high),
            )
            for one, other in zip(names.effects, rows.effects, strict=True)
        ),
        difference=take(names.difference, rows.difference),
        error=take(names.error, rows.error),
        difference_df=take(names.difference_df, rows.difference_df),
        difference_low=take(names.difference_low, rows.difference_low),
        difference_high=take(names.difference_high, rows.difference_high),
        rows=take(names.rows, rows.rows),
        clusters=names.clusters,
        labels=labels,
        ragged=names.ragged,
        constant=names.constant,
        part_clusters=names.part_clusters,
        part_constant=names.part_constant,
        icc=names.icc,
        per_cluster=names.per_cluster,
        statistic=(names.statistic[0], take(names.statistic[1], rows.statistic[1])),
        beside={key: take(values, rows.beside[key]) for key, values in names.beside.items()},
        omnibus=names.omnibus,
        strata=None
        if names.strata is None or rows.strata is None
        else _labelled_strata(names.strata, rows.strata, labels),
    )


def _labelled_strata(names: Strata, rows: Strata, labels: Bools) -> Strata:
    """The strata of pairs of labels from *rows*, those of all others from *names*."""
    one, other = ~labels[names.pair], labels[rows.pair]

    def join(first: Floats, second: Floats) -> Floats:
        return np.concatenate([first[one], second[other]])

    return Strata(
        pair=np.concatenate([names.pair[one], rows.pair[other]]),
        block=np.concatenate([names.block[one], rows.block[other]]),
        rows=join(names.rows, rows.rows),
        means=join(names.means, rows.means),
        p_value=join(names.p_value, rows.p_value),
        effects=tuple(
            Estimate(name=a.name, value=join(a.value, b.value), low=join(a.low, b.low), high=join(a.high, b.high))
            for a, b in zip(names.effects, rows.effects, strict=True)
        ),
    )
