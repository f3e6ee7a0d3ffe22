"""The same cells run in two ways: by how much does the disparity change from one arm to the other?

Both arms share their names and contexts, so what a name or a context does in both drops out of the change.
The contrast is fixed beforehand: treated − control.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from pytest_fairness.statistics.arrays import Bools, Floats, Ints
from pytest_fairness.statistics.clusters import DUST, one_sample_t, t_quantile
from pytest_fairness.statistics.win_rates import mean_over_units


@dataclass(frozen=True, slots=True)
class Estimate:
    """A difference with its standard error, df, two-sided p and 95 % interval, from *units* independent
    units.
    """

    mean: float
    error: float
    df: float
    p: float
    low: float
    high: float
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmContrast:
    """The disparity in each arm, and ``change`` = treated − control, in the outcome's own unit.

    ``total`` = treated + control: a disparity is smaller in size than another of the same sign if its change and its
    total have opposite signs. ``unit`` says what was paired: ``cluster`` or ``block``. ``sd`` is the outcome's SD
    within group and arm, ``lost`` the share of rows in units that lack an arm or a group.
    """

    control: Estimate
    treated: Estimate
    change: Estimate
    total: Estimate
    unit: str
    sd: float
    lost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRows:
    """Scored rows of two groups in two arms; ``second`` marks rows of the second group, ``treated`` of that
    arm.

    ``cluster`` and ``block`` are codes, ``cluster`` None where rows stand for themselves.
    """

    y: Floats
    second: Bools
    treated: Bools
    cluster: Ints | None
    block: Ints


def contrast_arms(rows: ArmRows) -> ArmContrast | None:
    """Change of the difference of group means; None where fewer than two units are shared.

    Units, in this order: clusters that stand in both groups (paired t on their changes of difference);
    clusters of each group, at least two (t on the changes of each cluster, two samples); blocks (paired t
    over blocks).
    """
    shared = _complete_blocks(rows)
    lost = 1 - float(shared.mean()) if shared.size else 0.0
    y, second, treated, block = rows.y[shared], rows.second[shared], rows.treated[shared], rows.block[shared]
    if not y.size:
        return None
    aligned = y - _cell_means(y, block)[0][_codes(block)]
    sd = _spread(y, [second.astype(np.intp), treated.astype(np.intp), block])
    if rows.cluster is not None:
        cluster = rows.cluster[shared]
        estimates = _over_clusters(aligned, second, treated, cluster)
        if estimates is not None:
            one, other, change, total = estimates
            return ArmContrast(control=one, treated=other, change=change, total=total, unit="cluster", sd=sd, lost=lost)
    blocks = _codes(block)
    means = [
        [_cell_means(y[at], blocks[at], int(blocks.max()) + 1)[0] for at in (arm & ~second, arm & second)]
        for arm in (~treated, treated)
    ]
    control, after = (first - other for first, other in means)
    return _paired(control, after, "block", sd, lost)


def contrast_choices(
    won: Bools, treated: Bools, unit: Ints, kind: str, names: tuple[Ints, Ints] | None = None
) -> ArmContrast | None:
    """Change of a win rate over shared units (clusters or blocks, as *kind* says).

    *names*: those of both candidates of each row, where units are pairs of names that meet several others.
    """
    codes = _codes(unit)
    size = int(codes.max(initial=-1)) + 1
    y = won.astype(np.float64)
    before, n_before = _cell_means(y[~treated], codes[~treated], size)
    after, n_after = _cell_means(y[treated], codes[treated], size)
    both = (n_before > 0) & (n_after > 0)
    lost = 1 - float((n_before + n_after)[both].sum()) / max(y.size, 1)
    if not both.any():
        return None
    rate = float(y[both[codes]].mean())
    one_row = np.unique(codes, return_index=True)[1][both]
    sides = None if names is None else (names[0][one_row], names[1][one_row])
    return _paired(before[both] - 0.5, after[both] - 0.5, kind, float(np.sqrt(rate * (1 - rate))), lost, sides)


def _paired(
    control: Floats, treated: Floats, unit: str, sd: float, lost: float, sides: tuple[Ints, Ints] | None = None
) -> ArmContrast | None:
    if control.size < 2:
        return None
    before, after, change, total = (
        _one(values, sides) for values in (control, treated, treated - control, treated + control)
    )
    return ArmContrast(control=before, treated=after, change=change, total=total, unit=unit, sd=sd, lost=lost)


def _one(values: Floats, sides: tuple[Ints, Ints] | None = None) -> Estimate:
    if sides is not None:
        return _by_names(values, sides)
    test = one_sample_t(values)
    low, high = test.interval(0.95)
    return Estimate(test.mean, test.se, float(test.df), test.p, low, high, test.n)


def _by_names(values: Floats, sides: tuple[Ints, Ints]) -> Estimate:
    """One value a pair of names, where a name stands in several pairs."""
    mean, error, df = mean_over_units(sides, values)
    if error == 0 or df < 1:
        low, high = (mean, mean) if df >= 1 else (-np.inf, np.inf)
        return Estimate(mean, error, df, float(mean == 0 or df < 1), low, high, values.size)
    reach = float(t_quantile(df, 0.975)) * error
    return Estimate(
        mean, error, df, min(1.0, 2 * float(stdtr(df, -abs(mean) / error))), mean - reach, mean + reach, values.size
    )


def _two(first: Floats, second: Floats) -> Estimate:
    """Difference of means: Student for equal numbers, else Welch if both have five, else df min − 1."""
    k1, k2 = first.size, second.size
    a, b = float(first.var(ddof=1)) / k1, float(second.var(ddof=1)) / k2
    mean = float(first.mean() - second.mean())
    scale = float(max(np.abs(first).max(), np.abs(second).max()))
    mean = 0.0 if abs(mean) <= DUST * scale else mean
    square = a + b
    if square <= (DUST * scale) ** 2:
        return Estimate(mean, 0.0, float(k1 + k2 - 2), float(mean == 0), mean, mean, k1 + k2)
    df = float(k1 + k2 - 2)
    if k1 != k2:
        welch = square**2 / (a**2 / (k1 - 1) + b**2 / (k2 - 1))
        df = welch if min(k1, k2) >= 5 else float(min(k1, k2) - 1)
    error = float(np.sqrt(square))
    reach = float(t_quantile(df, 0.975)) * error
    p = min(1.0, 2 * float(stdtr(df, -abs(mean) / error)))
    return Estimate(mean, error, df, p, mean - reach, mean + reach, k1 + k2)


def _over_clusters(
    aligned: Floats, second: Bools, treated: Bools, cluster: Ints
) -> tuple[Estimate, Estimate, Estimate, Estimate] | None:
    codes = _codes(cluster)
    size = int(codes.max()) + 1
    values, counts = {}, {}
    for group in (False, True):
        for arm in (False, True):
            at = (second == group) & (treated == arm)
            values[group, arm], counts[group, arm] = _cell_means(aligned[at], codes[at], size)
    in_first = (counts[False, False] > 0) & (counts[False, True] > 0)
    in_second = (counts[True, False] > 0) & (counts[True, True] > 0)
    both = in_first & in_second
    if both.sum() >= 2 and not np.any(in_first ^ in_second):
        gap, left = (values[False, arm][both] - values[True, arm][both] for arm in (False, True))
        return _one(gap), _one(left), _one(left - gap), _one(left + gap)
    if min(in_first.sum(), in_second.sum()) < 2 or both.any():
        return None
    of_first, of_second = ([values[group, arm] for arm in (False, True)] for group in (False, True))

    def compared(one: Floats, other: Floats) -> Estimate:
        return _two(one[in_first], other[in_second])

    return (
        compared(of_first[0], of_second[0]),
        compared(of_first[1], of_second[1]),
        compared(of_first[1] - of_first[0], of_second[1] - of_second[0]),
        compared(of_first[1] + of_first[0], of_second[1] + of_second[0]),
    )


def _complete_blocks(rows: ArmRows) -> Bools:
    """Rows in blocks that hold both groups in both arms."""
    codes = _codes(rows.block)
    size = int(codes.max(initial=-1)) + 1
    complete = np.ones(size, dtype=np.bool_)
    for group in (rows.second, ~rows.second):
        for arm in (rows.treated, ~rows.treated):
            complete &= np.bincount(codes[group & arm], minlength=size) > 0
    return np.asarray(complete[codes], dtype=np.bool_)


def _codes(column: Ints) -> Ints:
    return np.unique(column, return_inverse=True)[1].astype(np.intp)


def _cell_means(y: Floats, codes: Ints, size: int | None = None) -> tuple[Floats, Floats]:
    if size is None:
        codes = _codes(codes)
        size = int(codes.max(initial=-1)) + 1
    counts = np.bincount(codes, minlength=size).astype(np.float64)
    return np.bincount(codes, y, size) / np.maximum(counts, 1), counts


def _spread(y: Floats, columns: list[Ints]) -> float:
    key = np.zeros(y.size, dtype=np.intp)
    for column in columns:
        key = _codes(key * (int(column.max(initial=0)) + 1) + column)
    means, counts = _cell_means(y, key)
    df = y.size - counts.size
    return float(np.sqrt(np.sum((y - means[key]) ** 2) / df)) if df > 0 else 0.0
