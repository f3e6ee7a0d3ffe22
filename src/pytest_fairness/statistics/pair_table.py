"""One table of pairs: two groups are one row, from the comparison of their outcomes to the verdict
on them.
"""
# ruff: noqa: RUF009 - each column is declared with what it holds where nothing is given

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.statistics.arrays import Bools, Floats, Ints
from pytest_fairness.statistics.clusters import (
    Contrast,
    NameParts,
    intraclass,
    ratio,
    reach,
    recurrence,
)
from pytest_fairness.statistics.effects import Effect
from pytest_fairness.statistics.layout import Layout, PairCells, Pairs

LEAST_ROWS = 5
"""Rows of both groups from which a template is tested alone: with fewer, no p under .01 is to be
had.
"""
EMPTY = np.zeros(0)


def _column(missing: object) -> Any:
    """A column that holds *missing* where nothing is given, and of pairs with a group that has no
    outcome.
    """
    return field(default_factory=lambda: EMPTY, metadata={"missing": missing})


class Strata(NamedTuple):
    """Each block by itself, T entries: the place of the ``pair``, the ``block``, rows and means of
    both groups (T × 2), p, and the effects within the block with their 90 % intervals (T × E)."""

    pair: Ints
    block: Ints
    rows: Floats
    means: Floats
    p_value: Floats
    effect: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """P pairs of groups on one outcome: columns of length P, and P × 2 where each group has its own
    number.

    ``first`` and ``second`` are places in ``labels``. ``effect`` (P × E, named ``effect_names``) is
    on the d scale, positive where the first group is higher, with its 90 % interval ``low`` to
    ``high``. ``p_value`` is max(p_row, p_cluster, p of Cliff's δ), 1 where rows and clusters are
    ``contrary``, or p_row where a group is ``alone``, one cluster; ``corrected`` is that of the
    family, ``df`` those of the clusters. ``difference`` with its 90 % interval is in the outcome's
    own unit, ``error`` its standard error on the cluster means with ``difference_df``. ``rows`` and
    ``units`` (clusters) are those tested, ``trials`` and ``clusters`` all that have an outcome.
    ``ragged`` is the share of rows in blocks that lack a group, ``constant`` whether neither group
    varies, ``part_clusters`` G*, the effective number of first or last names, ``one_part`` whether
    all names of a group share one. ``icc`` and ``per_cluster`` feed the minimum detectable effect.

    ``trivial``: the difference is below what the caller declared, ``inside``: its whole 90 %
    interval is. ``near``: the intervals of a difference of rates and of their ratio lie inside ±5
    points and .8 to 1.25, ``close``: the estimates do. ``own_rows``: every row is its own cluster;
    ``only``: of each group the name of its one cluster, or words where it has several, and nothing
    where the cluster is the label of the group itself. ``figures`` are reported and decide nothing,
    ``omnibus`` is true of all groups together, ``statistic`` names the row test's.
    """

    labels: tuple[str, ...] = ()
    first: Ints
    second: Ints
    effect_names: tuple[str, ...] = ("d",)
    own_rows: bool = False
    only: tuple[str, ...] = ()
    statistic: str = ""
    effect: Floats = _column(0.0)
    low: Floats = _column(-np.inf)
    high: Floats = _column(np.inf)
    test: NDArray[np.object_] = _column("")
    value_of_test: Floats = _column(np.nan)
    p_row: Floats = _column(1.0)
    p_cluster: Floats = _column(np.nan)
    p_value: Floats = _column(1.0)
    corrected: Floats = _column(1.0)
    df: Floats = _column(np.nan)
    difference: Floats = _column(np.nan)
    error: Floats = _column(np.nan)
    difference_df: Floats = _column(np.nan)
    difference_low: Floats = _column(np.nan)
    difference_high: Floats = _column(np.nan)
    rows: Floats = _column(0.0)
    trials: Floats = _column(0.0)
    units: Floats = _column(0.0)
    clusters: Floats = _column(0.0)
    ragged: Floats = _column(np.nan)
    alone: Bools = _column(missing=False)
    contrary: Bools = _column(missing=False)
    constant: Bools = _column(missing=False)
    one_part: Bools = _column(missing=False)
    part_clusters: Floats = _column(np.inf)
    icc: Floats = _column(np.nan)
    per_cluster: Floats = _column(np.nan)
    trivial: Bools = _column(missing=False)
    inside: Bools = _column(missing=False)
    near: Bools = _column(missing=False)
    close: Bools = _column(missing=False)
    figures: Mapping[str, Floats] = field(default_factory=dict)
    omnibus: Mapping[str, float] = field(default_factory=dict)
    strata: Strata | None = None

    def __post_init__(self) -> None:
        for column in _COLUMNS:
            if getattr(self, column.name).size == 0:
                width = _WIDTH.get(column.name)
                shape = self.first.size if width is None else (self.first.size, width)
                object.__setattr__(self, column.name, np.full(shape, column.metadata["missing"]))

    @property
    def size(self) -> Floats:
        """The larger of the effects of each pair, without its sign."""
        return np.asarray(np.abs(np.nan_to_num(self.effect)).max(axis=1))

    @property
    def single(self) -> Bools:
        """Pairs whose result is about labels: a group has one cluster, although clusters are known."""
        return self.alone & (not self.own_rows)

    @property
    def named(self) -> Bools:
        """Return which side of which pairs (P × 2) is one name or document, of which the group
        could have others.
        """
        named_ = np.array(list(map(bool, self.only or [""] * len(self.labels))), dtype=np.bool_)
        groups = np.stack([self.first, self.second], axis=1)
        return np.asarray(self.single[:, None] & (self.units == 1) & named_[groups])

    def firm(self, margin: float) -> Bools:
        """Return which effects (P × E) are larger than *margin*, with an interval that leaves 0
        out.
        """
        return np.asarray(
            ((self.low > 0) | (self.high < 0)) & (np.abs(np.nan_to_num(self.effect)) > margin)
        )

    def largest(self, margin: float) -> tuple[list[str], Floats, Floats, Floats]:
        """The name of the larger effect of each pair, the effect, and the ends of its interval; of
        a pair with effects that are :meth:`firm`, the larger of those."""
        firm = self.firm(margin)
        kept = firm | ~firm.any(axis=1, keepdims=True)
        chosen, *_ = largest(np.where(kept, self.effect, 0.0), self.low, self.high)
        at = np.arange(chosen.size)
        effect = self.effect[at, chosen]
        low = self.low[at, chosen]
        high = self.high[at, chosen]
        return [self.effect_names[at] for at in chosen.tolist()], effect, low, high

    def choose(self, other: Self, which: Bools) -> Self:
        """This table with the pairs *which* as they are in the *other*."""

        def either(old: NDArray[Any], new: NDArray[Any], _: object) -> NDArray[Any]:
            return np.where(which.reshape(-1, *[1] * (old.ndim - 1)), new, old)

        strata = None
        if self.strata is not None and other.strata is not None:
            kept = ~which[self.strata.pair]
            new = which[other.strata.pair]
            both = zip(self.strata, other.strata, strict=True)
            strata = Strata(*(np.concatenate([old[kept], fresh[new]]) for old, fresh in both))
        return replace(self._each(other, either), strata=strata)

    def spread(self, pairs: Pairs, index: Ints) -> Self:
        """The table of all *pairs*, with the row *index* of this one each; −1 for a pair that it
        has not.
        """
        if self.first.size == index.size:
            return replace(self, first=pairs.first, second=pairs.second)
        sound = index >= 0

        def padded(values: NDArray[Any], _: NDArray[Any], missing: object) -> NDArray[Any]:
            full = np.full((index.size, *values.shape[1:]), missing, dtype=values.dtype)
            full[sound] = values[index[sound]]
            return full

        places = np.full(self.first.size, -1)
        places[index[sound]] = np.flatnonzero(sound)
        strata = None
        if self.strata is not None:
            strata = self.strata._replace(pair=places[self.strata.pair])
        return self._each(self, padded, first=pairs.first, second=pairs.second, strata=strata)

    def _each(
        self,
        other: Self,
        change: Callable[[NDArray[Any], NDArray[Any], object], NDArray[Any]],
        **fields_: Any,
    ) -> Self:
        """Every column as *change* makes it of this table's, the *other*'s and what stands for
        nothing; *fields_* take the place of others at once, since columns are as long as ``first``.
        """
        columns: dict[str, Any] = {
            name.name: change(
                getattr(self, name.name), getattr(other, name.name), name.metadata["missing"]
            )
            for name in _COLUMNS
        }
        figures = {
            name: change(values, other.figures[name], np.nan)
            for name, values in self.figures.items()
        }
        return replace(self, **columns, figures=figures, **fields_)


_COLUMNS = tuple(field for field in fields(PairTable) if "missing" in field.metadata)
_WIDTH = {"effect": 1, "low": 1, "high": 1, "rows": 2, "trials": 2, "units": 2, "clusters": 2}


def largest(effect: Floats, low: Floats, high: Floats) -> tuple[Ints, Floats, Floats, Floats]:
    """Return which of the effects (P × E) is the larger one, the effect, and the ends of its
    interval (P each).
    """
    chosen = np.argmax(np.abs(np.nan_to_num(effect)), axis=1)
    at = np.arange(chosen.size)
    return chosen, effect[at, chosen], low[at, chosen], high[at, chosen]


class EffectIntervals(NamedTuple):
    """Effects (P × E) with the ends of their intervals."""

    effect: Floats
    low: Floats
    high: Floats


def intervals(effects: Sequence[Effect], df: Floats, confidence: float) -> EffectIntervals:
    """θ and θ ± t·SE of each pair and effect (P × E), the two-sided interval of that *confidence*;
    from −∞ to ∞ where there is no error to be had.
    """
    value = np.stack([effect.value for effect in effects], axis=1)
    half = np.stack([reach(effect.error, df, confidence) for effect in effects], axis=1)
    # An infinite effect (two constants) has nothing on either side of it.
    half = np.where(np.isinf(value), 0.0, half)
    return EffectIntervals(value, value - half, value + half)


def ragged_share(layout: Layout, pairs: Pairs) -> Floats:
    """Share of a pair's rows that stand in blocks which lack one of the two groups."""
    n1 = layout.count[pairs.first]
    n2 = layout.count[pairs.second]
    kept = np.where((n1 > 0) & (n2 > 0), n1 + n2, 0.0).sum(axis=1)
    return np.asarray(1 - kept / np.maximum((n1 + n2).sum(axis=1), 1.0))


def constant_pairs(layout: Layout, pairs: Pairs) -> tuple[Bools, Floats]:
    """Pairs of which neither group varies, and the effect of those: 0, or without bound where they
    differ.
    """
    least = np.minimum.reduceat(layout.values, layout.group_start)
    still = least == np.maximum.reduceat(layout.values, layout.group_start)
    gap = least[pairs.first] - least[pairs.second]
    return still[pairs.first] & still[pairs.second], ratio(gap, np.zeros(gap.size))


def combine(p_row: Floats, p_cluster: Floats) -> Floats:
    """max(p_row, p_cluster); p_row where there is no p_cluster."""
    return np.where(
        np.isnan(p_cluster), p_row, np.maximum(p_row, np.nan_to_num(p_cluster, nan=0.0))
    )


def combine_in_block(p_row: Floats, p_cluster: Floats) -> Floats:
    """As :func:`combine` within one block; 1 where a group has one cluster there: nothing tells
    that name from the block, and its repetitions are no evidence."""
    return np.where(np.isnan(p_cluster), 1.0, combine(p_row, p_cluster))


def opposed(z: Floats, difference: Floats) -> Bools:
    """Pairs whose rows (*z*) and whose clusters (*difference* of their means) say the opposite of
    each other.
    """
    return np.asarray(np.sign(z) * np.sign(np.nan_to_num(difference)) < 0)


class Comparison(NamedTuple):
    """One pass over comparisons, of pairs of groups or of pairs within a block: the row test's z
    and p, the contrast of clusters, the effects, the mean of each stratum and side, and the sums
    over cells of the outcome less what is expected, and of its squares, which the intraclass
    correlation is read from."""

    z: Floats
    p_row: Floats
    contrast: Contrast
    effects: tuple[Effect, ...]
    means: Floats
    aligned: Floats
    aligned_square: Floats


def pair_table(
    cells: PairCells,
    pairs: Pairs,
    parts: NameParts | None,
    comparison: Comparison,
    *,
    row_test: str | NDArray[np.object_],
    cluster_test: str,
    p_row: Floats,
    half: Floats,
    difference: Floats,
    figures: Mapping[str, Floats],
    p_delta: Floats | None = None,
    **columns: Any,
) -> PairTable:
    """The table of *pairs* compared by *p_row* on rows, by the contrast of *comparison* on clusters
    and, where given, by
    *p_delta* on Cliff's δ; the *difference* ± *half*."""
    p_cluster = comparison.contrast.p_value
    alone = np.isnan(p_cluster)
    contrary = opposed(comparison.z, comparison.contrast.difference) & ~alone
    p_value = combine(p_row, p_cluster)
    if p_delta is not None:
        p_value = np.fmax(p_value, np.where(alone, np.nan, p_delta))
    on_clusters = [f", and {kind} on cluster {cluster_test}" for kind in ("t", "paired t")]
    least, one_part = recurrence(cells, parts)
    icc, per_cluster = intraclass(cells, comparison.aligned, comparison.aligned_square)
    return PairTable(
        first=pairs.first,
        second=pairs.second,
        own_rows=cells.layout.own_rows,
        test=np.full(alone.size, row_test, object)
        + np.array(["", *on_clusters], object)[np.where(alone, 0, 1 + cells.paired)],
        p_row=p_row,
        p_cluster=p_cluster,
        p_value=np.where(contrary, 1.0, p_value),
        contrary=contrary,
        effect_names=tuple(effect.name for effect in comparison.effects),
        difference=difference,
        difference_low=difference - half,
        difference_high=difference + half,
        value_of_test=comparison.z,
        rows=cells.side_rows,
        units=cells.units,
        ragged=ragged_share(cells.layout, pairs),
        constant=constant_pairs(cells.layout, pairs)[0],
        alone=alone,
        part_clusters=least,
        one_part=one_part,
        icc=_mean_known(icc),
        per_cluster=per_cluster.mean(axis=1),
        figures={
            "n_1": cells.side_rows[:, 0],
            "n_2": cells.side_rows[:, 1],
            "t": ratio(comparison.contrast.difference, np.nan_to_num(comparison.contrast.error)),
            "z": comparison.z,
            **({} if p_delta is None else {"p_delta": np.where(alone, np.nan, p_delta)}),
            **figures,
            "icc_1": icc[:, 0],
            "icc_2": icc[:, 1],
            "icc": _mean_known(icc),
        },
        **columns,
    )


def each_block(
    cells: PairCells, compare: Callable[[PairCells, Ints], Comparison], confidence: float
) -> Strata | None:
    """Each block by itself, where there are several, with intervals of *confidence*; *compare* takes
    these strata as comparisons, and their places.
    """
    if cells.layout.blocks == 1:
        return None
    inner, kept = cells.each_stratum(LEAST_ROWS)
    if not kept.size:
        return None
    comparison = compare(inner, kept)
    contrary = opposed(comparison.z, comparison.contrast.difference)
    effect, low, high = intervals(comparison.effects, comparison.contrast.df, confidence)
    return Strata(
        pair=cells.stratum_comparison[kept],
        block=cells.stratum_block[kept],
        rows=inner.side_rows,
        means=comparison.means,
        p_value=np.where(
            contrary, 1.0, combine_in_block(comparison.p_row, comparison.contrast.p_value)
        ),
        effect=effect,
        low=low,
        high=high,
    )


def _mean_known(values: Floats) -> Floats:
    """The mean over both sides of what is known; NaN where neither is (P × 2 → P)."""
    present = ~np.isnan(values)
    total = np.where(present, values, 0.0).sum(axis=1)
    return np.where(present.any(axis=1), total / np.maximum(present.sum(axis=1), 1), np.nan)
