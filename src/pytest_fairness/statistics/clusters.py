"""The name is the unit of evidence: contrasts of cluster means, their variance, intraclass
correlation.

Repeated calls for one name share whatever the model makes of that name, so they are not
independent; a test on calls finds differences between any two sets of names. Every contrast here
weighs each cluster the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from pytest_fairness.statistics.arrays import Bools, Floats, Ints, sums
from pytest_fairness.statistics.layout import PairCells, Pairs

TINY = 1e-12
"""Relative size under which a spread or a difference is rounding, not data: averages of equal
scores differ by less.
"""

CONFIDENCE = 0.90
"""Of the intervals that a verdict reads: two one-sided tests at 5 % (Schuirmann 1987)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms on which groups are compared: the *confidence* of the intervals and the *seed* of
    what is resampled; *by_block* each block by itself too, and the shift of scores, which no
    verdict on a pair reads.
    """

    confidence: float = CONFIDENCE
    seed: int = 0
    by_block: bool = True


USUAL = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoUnits:
    """A difference tested with the row as the unit, and with the name: None with one name a group.
    ``z`` is that of rows.
    """

    z: float
    p_row: float
    p_cluster: float | None

    @property
    def p_value(self) -> float:
        """Return the larger p."""
        if self.p_cluster is None:
            return self.p_row
        return max(self.p_row, self.p_cluster)


@lru_cache(maxsize=64)
def all_pairs(groups: int) -> Pairs:
    """Every pair of so many groups; read-only, for it is handed out again."""
    sides = [side.astype(np.intp) for side in np.triu_indices(groups, 1)]
    for side in sides:
        side.flags.writeable = False
    return Pairs(first=sides[0], second=sides[1])


def compared_pairs(groups: int, compared: Bools | None) -> Pairs:
    """The pairs of so many groups that are *compared* (groups × groups); every one without."""
    pairs = all_pairs(groups)
    if compared is None:
        return pairs
    kept = compared[pairs.first, pairs.second]
    return Pairs(first=pairs.first[kept], second=pairs.second[kept])


def ratio(top: Floats, bottom: Floats) -> Floats:
    """top/bottom; where bottom is not above 0: 0 for top 0, else ±∞. A NaN on top stays."""
    safe = np.where(bottom > 0, bottom, 1.0)
    return np.where(bottom > 0, top / safe, np.where(top == 0, 0.0, np.copysign(np.inf, top)))


def two_sided_t(difference: Floats | float, error: Floats | float, df: Floats | float) -> Floats:
    """2·P(T > |difference/error|); where the error is 0: 1 for no difference, else 0. NaN errors
    stay NaN.
    """
    zero = np.equal(error, 0)
    t = np.abs(difference) / np.where(zero | np.isnan(error), 1.0, error)
    p = np.minimum(2 * stdtr(np.maximum(np.nan_to_num(df, nan=1.0), 1e-9), -t), 1.0)
    p = np.where(zero, np.where(np.equal(difference, 0), 1.0, 0.0), p)
    return np.where(np.isnan(error), np.nan, p)


def t_quantile(df: Floats | float, q: float) -> Floats:
    """Quantile *q* of Student's t; infinite below one degree of freedom."""
    # Few degrees of freedom differ in a balanced design, and each quantile is a search: each is
    # made once.
    distinct, at = np.unique(df, return_inverse=True)
    quantile = np.where(distinct >= 1, stdtrit(np.maximum(distinct, 1.0), q), np.inf)
    return np.asarray(quantile[at].reshape(np.shape(df)))


def reach(error: Floats, df: Floats, confidence: float = CONFIDENCE) -> Floats:
    """Half the width of the interval: t·SE; infinite without a degree of freedom, 0 where the error
    is 0.
    """
    quantile = t_quantile(df, 0.5 + confidence / 2)
    return np.where(
        error > 0,
        quantile * np.where(error > 0, error, 1.0),
        np.where(np.isnan(error), np.inf, 0.0),
    )


@dataclass(frozen=True, slots=True)
class NameParts:
    """The first and the last name of each cluster of a layout, as codes (length C); ``labels``
    count the codes.
    """

    codes: tuple[Ints, ...]
    labels: tuple[int, ...]

    def by_label(self, cells: PairCells, influence: Floats) -> list[Floats]:
        """Of each part: Σ(sum of *influence* (M) over a label)², the number of labels, and the
        largest label, on each side of each comparison (3 × Q × 2)."""
        size = 2 * cells.comparisons
        variances = []
        for codes, count in zip(self.codes, self.labels, strict=True):
            held, at = np.unique(
                cells.unit_place * count + codes[cells.unit_cluster], return_inverse=True
            )
            place = held // count
            largest = np.full(size, -1.0)
            largest[place] = held % count  # ascending keys: the last one stays
            squares = sums(place, sums(at, influence, held.size) ** 2, size)
            variances.append(
                np.stack([squares, sums(place, None, size), largest]).reshape(3, -1, 2)
            )
        return variances


def recurrence(cells: PairCells, parts: NameParts | None) -> tuple[Floats, Bools]:
    """G* of each comparison, the effective number of labels K²/Σ n_label² of the part and side that
    has the fewest (Kish 1965), K where no part recurs; and whether all names of a side share a part
    that the other side's do not all have: what that part does cannot be told from what the group
    does. One that all share is part of the template.
    """
    units = cells.units
    least = units.min(axis=1)
    constant = np.zeros(cells.comparisons, dtype=np.bool_)
    for squares, labels, only in (
        () if parts is None else parts.by_label(cells, np.ones(cells.unit_side.size))
    ):
        same = (labels[:, 0] == 1) & (labels[:, 1] == 1) & (only[:, 0] == only[:, 1])
        constant |= ((labels == 1) & (units > 1)).any(axis=1) & ~same
        effective = np.where(labels > 1, units**2 / np.maximum(squares, 1.0), np.inf)
        least = np.minimum(least, effective.min(axis=1))
    return least, constant


def variance(cells: PairCells, influence: Floats, parts: NameParts | None = None) -> Floats:
    """Variance of a contrast of the two sides, from what each unit adds to it (length M, mean 0 on
    each side).

    The influence of a unit is K times what the contrast moves when the unit counts a little more;
    for a mean it is the deviation from it, for a jackknifed estimate (K−1)·(mean − estimate without
    the unit). Sides are independent where no cluster stands on both; where the same clusters do,
    their influences are added first; where some do, twice their covariance is added (Derrick, Russ,
    Toher & White 2017, J. Mod. Appl. Stat. Methods 16(1)).

    Where a first or a last name recurs within a side, the variance is first + last − name, and at
    least the largest of the three (Cameron, Gelbach & Miller 2011, J. Bus. Econ. Stat. 29:238). NaN
    where a side has one unit.
    """
    units = cells.units
    merged = influence
    if bool(cells.paired.any()):
        single = (cells.mate >= 0) & cells.paired[cells.unit_comparison]
        merged = influence.copy()
        first = np.flatnonzero(single & (cells.unit_side == 0))
        merged[first] += influence[cells.mate[first]]
        merged[single & (cells.unit_side == 1)] = 0.0
    by_name = cells.units_by_side(merged**2) / np.maximum(units * (units - 1), 1.0)
    names = np.sum(by_name, axis=1)
    whole = names + _covariance(cells, influence, units)
    if parts is not None:
        by_part = []
        for squares, labels, _ in parts.by_label(cells, merged):
            # A side on which the part is constant shows nothing of what it does; there the names
            # themselves count.
            estimate = labels / np.maximum(labels - 1, 1) * squares / np.maximum(units, 1.0) ** 2
            by_part.append(np.where(labels > 1, estimate, by_name).sum(axis=1))
        together = np.sum(by_part, axis=0) - (len(by_part) - 1) * names
        whole = whole - names + np.maximum.reduce([together, names, *by_part])
    return np.where(units.min(axis=1) >= 2, np.maximum(whole, 0.0), np.nan)


def _covariance(cells: PairCells, influence: Floats, units: Floats) -> Floats | float:
    """2·n·r·s₁s₂/(K₁K₂) over the n clusters that stand on both sides, where not all do; 0 under two
    of them.

    r is the correlation of the shared clusters, s₁ and s₂ are the SDs of all: the covariance of the
    shared ones alone can exceed what the sides vary by, and a variance of 0 would make any
    difference certain.
    """
    partly = (cells.shared >= 2) & ~cells.paired
    if not bool(partly.any()):
        return 0.0
    single = np.flatnonzero(
        (cells.mate >= 0) & (cells.unit_side == 0) & partly[cells.unit_comparison]
    )
    q = cells.unit_comparison[single]
    x = influence[single]
    y = influence[cells.mate[single]]
    n = np.maximum(cells.shared, 2.0)
    of_x, of_y, xx, yy, xy = (
        sums(q, values, cells.comparisons) for values in (x, y, x * x, y * y, x * y)
    )
    spread = (xx - of_x**2 / n) * (yy - of_y**2 / n)
    sound = spread > TINY**2 * xx * yy
    correlation = np.where(
        sound, (xy - of_x * of_y / n) / np.sqrt(np.where(sound, spread, 1.0)), 0.0
    )
    sds = np.sqrt(np.prod(cells.units_by_side(influence**2) / np.maximum(units - 1, 1.0), axis=1))
    both = np.clip(correlation, -1.0, 1.0) * sds / np.maximum(units[:, 0] * units[:, 1], 1.0)
    return np.where(partly, 2 * cells.shared * both, 0.0)


class Contrast(NamedTuple):
    """Difference of the two sides' means (Q × 2) of unit means (``unit_mean``, M) for each
    comparison (Q), its standard error, df and two-sided p; error and p are NaN where a side has one
    unit."""

    mean: Floats
    unit_mean: Floats
    difference: Floats
    error: Floats
    df: Floats
    p_value: Floats


def contrast(
    cells: PairCells, values: Floats, scale: float, parts: NameParts | None = None
) -> Contrast:
    """Contrast the unit means of *values* (sums over cells, length E) between the sides of each
    comparison.

    Equal numbers of units: Student's t, df 2K−2. Unequal: SE² = s₁²/K₁ + s₂²/K₂, df of
    Welch–Satterthwaite if the smaller K ≥ 5, else min(K)−1. The same clusters on both sides:
    one-sample t on the differences, df K−1. Partly the same: the partially overlapping samples
    t-test, of which both are limits. Where parts of names recur: see :func:`variance`, and df at
    most 2·G*−2 (G*−1 where paired). Where clusters stand in different blocks, the means of the
    blocks cost degrees of freedom. Differences under *scale* · 1e−12 are rounding and count as 0.
    """
    unit_mean = cells.by_unit(values) / np.maximum(cells.by_unit(cells.size), 1.0)
    units = cells.units
    whole = np.maximum(units.sum(axis=1) - 2, 1.0)
    lost = _lost_to_blocks(cells)
    kept = np.maximum(whole - lost, 1.0) / whole
    mean = cells.units_by_side(unit_mean) / np.maximum(units, 1.0)
    mean[:, 1] = np.where(np.abs(mean[:, 0] - mean[:, 1]) < TINY * scale, mean[:, 0], mean[:, 1])
    deviation = unit_mean - mean.ravel()[cells.unit_place]
    square = variance(cells, np.where(cells.unit_side == 0, deviation, -deviation), parts) / kept
    square = np.where(square < (TINY * scale) ** 2, 0.0, square)  # NaN stays
    spread = cells.units_by_side(deviation**2) / np.maximum(units - 1, 1.0)
    spread = np.where(spread < (TINY * scale) ** 2, 0.0, spread)
    df = _degrees_of_freedom(cells, spread / np.maximum(units, 1.0))
    df = np.maximum(df * kept, np.minimum(df, 1.0))
    if parts is not None:
        least, _ = recurrence(cells, parts)
        df = np.minimum(df, np.where(cells.paired, least - 1, 2 * least - 2))
    difference = mean[:, 0] - mean[:, 1]
    error = np.sqrt(square)
    p = two_sided_t(difference, error, df)
    # Where clusters stand in different blocks, each with few neighbours, that all say the same is
    # no certainty: two names in each of five blocks do so in one fair pair of sixteen.
    p = np.where((lost > 0) & (error == 0) & (p < 1), np.exp2(-df), p)
    return Contrast(mean, unit_mean, difference, error, df, p)


def _lost_to_blocks(cells: PairCells) -> Floats:
    """Degrees of freedom that the means of the blocks take from the clusters of each comparison.

    0 where all clusters stand in the same blocks, H − 1 where each stands in one of H; in between
    the inertia Σ_h Σ_c (s_ch − s̄_h)²/Σ_c s_ch of the clusters' shares of rows in the blocks
    (Greenacre 1984). The same clusters on both sides lose nothing: their differences are free of
    the block.
    """
    share = cells.size / cells.by_unit(cells.size)[cells.unit]
    total, square = (cells.by_stratum_side(part).sum(axis=1) for part in (share, share**2))
    inertia = cells.strata_by_comparison(square / np.maximum(total, TINY)) - 1
    return np.where((inertia < 1e-9) | cells.paired, 0.0, inertia)


def _degrees_of_freedom(cells: PairCells, error: Floats) -> Floats:
    """Of the difference of two sides whose means have the squared errors *error* (Q × 2); see
    :func:`contrast`.
    """
    units = cells.units
    k1, k2 = units.T
    df = k1 + k2 - 2
    unequal = k1 != k2
    overlap = (cells.shared >= 2) & ~cells.paired
    if bool(np.any(unequal | overlap)):
        largest = error.max(axis=1, keepdims=True)
        error = error / np.where(
            largest > 0, largest, 1.0
        )  # squared next: of any unit, neither too large nor too small
        bottom = np.sum(error**2 / np.maximum(units - 1, 1.0), axis=1)
        welch = np.where(bottom > 0, error.sum(axis=1) ** 2 / np.where(bottom > 0, bottom, 1.0), df)
        smaller = np.minimum(k1, k2)
        df = np.where(unequal, np.where(smaller >= 5, welch, smaller - 1), df)
        alone = k1 + k2 - 2 * cells.shared
        partly = (cells.shared - 1) + (welch - cells.shared + 1) / np.maximum(k1 + k2, 1.0) * alone
        df = np.where(overlap, partly, df)
    return np.asarray(np.where(cells.paired, k1 - 1, df))


def intraclass(cells: PairCells, values: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """ANOVA intraclass correlation of each comparison and side, and mean rows a unit (Q × 2 each).

    *values* and *squares* are sums over each cell (E). ICC = (MSB − MSW)/(MSB + (n₀−1)·MSW) with n₀
    = (N − Σn_c²/N)/(K−1) (Donner 1986); NaN where a side has one unit or no unit has two rows.
    """
    rows = cells.by_unit(cells.size)
    total = cells.side_rows
    units = cells.units
    mean = cells.by_unit(values) / np.maximum(rows, 1.0)
    within = cells.units_by_side(cells.by_unit(squares) - rows * mean**2)
    grand = cells.units_by_side(rows * mean) / np.maximum(total, 1.0)
    between = cells.units_by_side(rows * (mean - grand.ravel()[cells.unit_place]) ** 2)
    msb = between / np.maximum(units - 1, 1.0)
    msw = np.maximum(within, 0.0) / np.maximum(total - units, 1.0)
    n0 = (total - cells.units_by_side(rows**2) / np.maximum(total, 1.0)) / np.maximum(
        units - 1, 1.0
    )
    bottom = msb + (n0 - 1) * msw
    sound = (units >= 2) & (total > units) & (bottom > 0)
    return np.where(sound, (msb - msw) / np.where(sound, bottom, 1.0), np.nan), total / np.maximum(
        units, 1.0
    )


# ---------------------------------------------------------------- jackknife


class Removals:
    """Removals of one unit each: R rows, one a unit and stratum that it stands in.

    A removal has the number of its unit; in a paired comparison that of the unit on side 0, and the
    mate leaves with it. ``removal`` and ``stratum`` have length R, ``row`` says to which of them
    each cell belongs (E). ``left`` are the rows of each side that stay in the stratum (2 × R),
    ``broken`` whether one lacks them: then it counts no more. ``rows_left`` are those that stay in
    the comparison, without broken strata (2 × M).
    """

    def __init__(self, cells: PairCells) -> None:
        self.cells = cells
        self.removal = cells.unit
        self.stratum = cells.stratum
        self.row: Ints | None = None
        if bool(cells.paired.any()):
            second = cells.paired[cells.unit_comparison] & (cells.unit_side == 1)
            unit = np.where(second, cells.mate, np.arange(second.size))
            strata = cells.stratum_comparison.size
            key, self.row = np.unique(
                unit[cells.unit] * strata + cells.stratum, return_inverse=True
            )
            self.removal = key // strata
            self.stratum = key % strata
        rows = cells.rows[self.stratum]
        self.left = rows[:, 0] - self.on(0, cells.size), rows[:, 1] - self.on(1, cells.size)
        self.broken: Bools = (self.left[0] == 0) | (self.left[1] == 0)
        self.rows_left = self.kept(cells.size)

    def on(self, side: int, values: Floats) -> Floats:
        """Sums of *values* over the cells (E) of one side that leave (R)."""
        values_of_side = np.where(self.cells.side == side, values, 0.0)
        if self.row is None:
            return values_of_side
        return sums(self.row, values_of_side, self.removal.size)

    def total(self, rows: Floats) -> Floats:
        """Sums over the rows of each removal (M)."""
        if rows.size == self.cells.unit_side.size and self.row is None:
            return rows
        return sums(self.removal, rows, self.cells.unit_side.size)

    def without(self, strata: Floats, left: Floats) -> Floats:
        """The sum of *strata* (S) over each comparison without each unit (M), which leaves *left*
        of them (R).
        """
        return self.less(self.cells.strata_by_comparison(strata), strata, left)

    def less(self, whole: Floats, strata: Floats, left: Floats) -> Floats:
        """Return what :meth:`without` does, given the sums of the *strata* over each comparison (Q)."""
        return whole[self.cells.unit_comparison] + self.total(left - strata[self.stratum])

    def kept(self, values: Floats) -> Floats:
        """Sums of *values* over the cells (E) that stay on each side, without broken strata (2 ×
        M).
        """
        return np.stack([
            self.without(whole, np.where(self.broken, 0.0, whole[self.stratum] - self.on(side, values)))
            for side, whole in enumerate(self.cells.by_stratum_side(values).T)
        ])  # fmt: skip


def jackknife_error(cells: PairCells, without: Floats, parts: NameParts | None = None) -> Floats:
    """Standard error of an estimate of each comparison (Q) from the estimates *without* each unit
    (M).

    Infinite where an estimate without a unit is not to be had; NaN where a side has one unit.
    """
    second = cells.paired[cells.unit_comparison] & (cells.unit_side == 1)
    lost = ~np.isfinite(without) & ~second
    without = np.where(second | lost, 0.0, without)
    units = cells.units
    mean = cells.units_by_side(without) / np.maximum(units, 1.0)
    influence = (units.ravel()[cells.unit_place] - 1) * (mean.ravel()[cells.unit_place] - without)
    influence[lost] = 0.0
    error = np.sqrt(variance(cells, influence, parts))
    broken = np.bincount(cells.unit_comparison, lost, cells.comparisons) > 0
    return np.where(broken & ~np.isnan(error), np.inf, error)


# ---------------------------------------------------------------- one mean

Alternative = Literal["two-sided", "less"]


@dataclass(frozen=True, slots=True)
class MeanTest:
    """A mean, or a difference of two, from independent *units*: its standard ``error``, and the SD
    of one sample.
    """

    mean: float
    error: float
    df: float
    units: int
    sd: float = 0.0
    alternative: Alternative = "two-sided"

    @property
    def t(self) -> float:
        """Infinite where only the error is 0."""
        if self.error:
            return self.mean / self.error
        if self.mean:
            return math.copysign(math.inf, self.mean)
        return 0.0

    @property
    def p(self) -> float:
        """1 without a degree of freedom. Where the error is 0: two-sided 1 for a mean of 0, else 0;
        one-sided 0 for a mean below 0, else 1."""
        if self.df < 1:
            return 1.0
        if self.alternative == "two-sided":
            return float(two_sided_t(self.mean, self.error, self.df))
        if self.error or self.mean:
            return float(stdtr(self.df, self.t))
        return 1.0

    def interval(self, confidence: float = 0.95, side: float = 1.0) -> tuple[float, float]:
        """The two-sided interval, turned so that *side* points up; infinite without a degree of
        freedom.
        """
        half = 0.0
        if self.error:
            half = float(t_quantile(self.df, (1 + confidence) / 2)) * self.error
        low = self.mean - half
        high = self.mean + half
        if side > 0:
            return (low, high)
        return (-high, -low)


def one_sample_t(
    values: Sequence[float] | npt.NDArray[np.float64], alternative: Alternative = "two-sided"
) -> MeanTest:
    """Test that the mean of *values* (finite, one a unit) is 0; the error of fewer than two is
    infinite.
    """
    data = np.asarray(values, dtype=float)
    n = len(data)
    if n < 2:
        return MeanTest(float(data[0]) if n else 0.0, math.inf, 0, n)
    mean = float(data.mean())
    sd = float(data.std(ddof=1))
    dust = TINY * float(np.abs(data).max())
    mean = 0.0 if abs(mean) <= dust else mean
    sd = 0.0 if sd <= dust else sd
    return MeanTest(mean, sd / math.sqrt(n), n - 1, n, sd, alternative)
