"""The same cells run in two ways: by how much does the disparity change from one arm to the other?

Both arms share their names and contexts, so what a name or a context does in both drops out of the
change. The contrast is fixed beforehand: treated − control.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pytest_fairness.statistics.arrays import Bools, Floats, Ints, cross, means_of
from pytest_fairness.statistics.clusters import CONFIDENCE, TINY, MeanTest, one_sample_t
from pytest_fairness.statistics.win_rates import mean_over_units


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmContrast:
    """The disparity in each arm, and ``change`` = treated − control, in the outcome's own unit.

    ``total`` = treated + control: a disparity is smaller in size than another of the same sign if
    its change and its total have opposite signs. ``unit`` says what was paired: ``cluster`` or
    ``block``. ``sd`` is the outcome's SD within group and arm, ``lost`` the share of rows in units
    that lack an arm or a group. Intervals that bear on a verdict are of ``confidence``.
    """

    control: MeanTest
    treated: MeanTest
    change: MeanTest
    total: MeanTest
    unit: str
    sd: float
    lost: float
    confidence: float = CONFIDENCE

    def on_sd(self, value: float) -> float:
        """*value* in standard deviations."""
        if self.sd > 0:
            return value / self.sd
        if value == 0:
            return 0.0
        return math.copysign(math.inf, value)

    @property
    def shrinks(self) -> bool:
        """Return whether the disparity moved towards zero and what is left is smaller; the p-value
        of the change stands apart.

        A change beyond chance may also turn a disparity round. Where the treated arm lies beyond
        zero on the other side, that it is smaller in size has to be shown: the total of both arms
        keeps the control's sign.
        """
        side = math.copysign(1.0, self.control.mean)
        if self.change.mean * side >= 0 or abs(self.treated.mean) >= abs(self.control.mean):
            return False
        return (
            self.treated.interval(self.confidence, side)[1] >= 0
            or self.total.interval(self.confidence, side)[0] > 0
        )

    @property
    def grows(self) -> bool:
        """Return whether the disparity grew or turned round as far: not smaller by estimate, and
        where the change led.
        """
        # What names do in both arms is no part of the change's error, but moves both estimates:
        # hence the interval.
        side = math.copysign(1.0, self.change.mean)
        return (
            abs(self.treated.mean) >= abs(self.control.mean)
            and self.treated.interval(self.confidence, side)[0] > 0
        )

    @property
    def possible_growth(self) -> float:
        """By how much the disparity can have grown, on its own side or on the other (in SD)."""
        side = math.copysign(1.0, self.control.mean)
        growth = self.change.interval(self.confidence, side)[1]
        other = self.total.interval(self.confidence, side)[0]
        return max(self.on_sd(growth), self.on_sd(-other))

    def extent(self, arm: MeanTest) -> float:
        """The end of the interval of *arm* that is further from zero (in SD)."""
        return max(abs(self.on_sd(end)) for end in arm.interval(self.confidence))


def contrast_scores(
    y: Floats, *, second: Bools, treated: Bools, cluster: Ints | None, block: Ints
) -> ArmContrast | None:
    """Change of the difference of group means; None where fewer than two units are shared.

    *second* marks rows of the second group, *treated* those of that arm; *cluster* is None where
    rows stand for themselves. Units, in this order: clusters that stand in both groups (paired t on
    their changes of difference); clusters of each group, at least two (t on the changes of each
    cluster, two samples); blocks (paired t over blocks).
    """

    def table(values: Floats, unit: Ints, rows: Bools | slice) -> tuple[Floats, Floats]:
        """Means and counts of each group, arm and unit (2 × 2 × units)."""
        size = int(unit.max(initial=-1)) + 1
        means, counts = means_of(values, (2 * second[rows] + treated[rows]) * size + unit, 4 * size)
        return means.reshape(2, 2, size), counts.reshape(2, 2, size)

    blocks = cross([block], y.size)
    shared = np.all(table(y, blocks, slice(None))[1] > 0, axis=(0, 1))[blocks]
    if not shared.any():
        return None
    lost = 1 - float(shared.mean())
    y = y[shared]
    blocks = cross([block[shared]], int(shared.sum()))
    cells, counts = table(y, blocks, shared)
    rest = y - cells[second[shared].astype(np.intp), treated[shared].astype(np.intp), blocks]
    df = y.size - counts.size
    sd = 0.0
    if df > 0:
        sd = math.sqrt(float(np.sum(rest**2)) / df)
    if cluster is not None:
        scores_table, counts = table(
            y - means_of(y, blocks)[0][blocks], cross([cluster[shared]], y.size), shared
        )
        first, other = np.all(counts > 0, axis=1)
        if np.array_equal(first, other) and first.sum() >= 2:
            return _contrast(
                (scores_table[0] - scores_table[1])[:, first], one_sample_t, "cluster", sd, lost
            )
        size = int(first.sum())
        if min(size, other.sum()) >= 2 and not np.any(first & other):
            arms = np.concatenate([scores_table[0][:, first], scores_table[1][:, other]], axis=1)
            return _contrast(
                arms, lambda each: _two_samples(each[:size], each[size:]), "cluster", sd, lost
            )
    if cells.shape[2] < 2:
        return None
    return _contrast(cells[0] - cells[1], one_sample_t, "block", sd, lost)


def contrast_choices(
    won: Bools, treated: Bools, unit: Ints, kind: str, names: tuple[Ints, Ints] | None = None
) -> ArmContrast | None:
    """Change of a win rate over shared units (clusters or blocks, as *kind* says); None where fewer
    than two are.

    *names*: those of both candidates of each row, where units are pairs of names that meet several
    others.
    """
    codes = cross([unit], unit.size)
    size = int(codes.max(initial=-1)) + 1
    y = won.astype(np.float64)
    before, n_before = means_of(y[~treated], codes[~treated], size)
    after, n_after = means_of(y[treated], codes[treated], size)
    both = (n_before > 0) & (n_after > 0)
    if both.sum() < 2:
        return None
    lost = 1 - float((n_before + n_after)[both].sum()) / max(y.size, 1)
    rate = float(y[both[codes]].mean())
    one_row = np.unique(codes, return_index=True)[1][both]

    def over_names(values: Floats) -> MeanTest:
        if names is None:
            return one_sample_t(values)
        mean, error, df = mean_over_units([side[one_row] for side in names], values)
        return MeanTest(mean, math.inf if df < 1 and not error else error, df, values.size)

    return _contrast(
        np.stack([before, after])[:, both] - 0.5,
        over_names,
        kind,
        math.sqrt(rate * (1 - rate)),
        lost,
    )


def _contrast(
    arms: Floats, gap: Callable[[Floats], MeanTest], unit: str, sd: float, lost: float
) -> ArmContrast:
    control, treated = arms
    return ArmContrast(
        control=gap(control),
        treated=gap(treated),
        change=gap(treated - control),
        total=gap(treated + control),
        unit=unit,
        sd=sd,
        lost=lost,
    )


def _two_samples(first: Floats, second: Floats) -> MeanTest:
    """Difference of means: Student for equal numbers, else Welch if both have five, else df min −
    1.
    """
    k1 = first.size
    k2 = second.size
    a = float(first.var(ddof=1)) / k1
    b = float(second.var(ddof=1)) / k2
    mean = float(first.mean() - second.mean())
    scale = float(max(np.abs(first).max(), np.abs(second).max()))
    if abs(mean) <= TINY * scale:
        mean = 0.0
    square = a + b
    df = float(k1 + k2 - 2)
    if square <= (TINY * scale) ** 2:
        return MeanTest(mean, 0.0, df, k1 + k2)
    if k1 != k2:
        welch = square**2 / (a**2 / (k1 - 1) + b**2 / (k2 - 1))
        if min(k1, k2) >= 5:
            df = welch
        else:
            df = float(min(k1, k2) - 1)
    return MeanTest(mean, math.sqrt(square), df, k1 + k2)
