"""The stratified cumulative odds ratio (Liu & Agresti 1996): one effect for yes/no and for ordered answers.

Each cut between two levels makes a 2×2 table in each stratum; the Mantel–Haenszel sums run over strata and cuts. With
two levels it is the Mantel–Haenszel odds ratio, so a rating and a yes/no of the same replies agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_fairness.statistics.clusters import NameParts
from pytest_fairness.statistics.frames import Bools, Floats, Ints
from pytest_fairness.statistics.jackknife import Removals, jackknife_error
from pytest_fairness.statistics.pair_cells import PairCells
from pytest_fairness.statistics.scores import Effect

LOGIT_TO_D = float(np.sqrt(3) / np.pi)
"""ln OR · √3/π is the d of two logistic distributions with that odds ratio (Hasselblad & Hedges 1995)."""
FEW = 5.0
"""Below this smallest count a normal interval is not trusted (Cochran 1954)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeOdds:
    """Of each comparison (Q): the log odds that side 0 is the higher, pooled over strata and cuts; the effect with its
    error on the d scale."""

    log_odds: Floats
    effect: Effect


@dataclass(slots=True)
class _Sums:
    """Σ over strata and cuts of what speaks for side 0 (``up``) and for side 1; ``half_*`` of the pooled tables + ½."""

    up: Floats
    down: Floats
    half_up: Floats
    half_down: Floats

    @classmethod
    def zeros(cls, size: int) -> _Sums:
        return cls(*np.zeros((4, size)))

    @property
    def log_odds(self) -> Floats:
        poor = np.minimum(self.up, self.down) <= _DUST * (self.up + self.down)
        up, down = np.where(poor, self.half_up, self.up), np.where(poor, self.half_down, self.down)
        known = (up > 0) & (down > 0)
        return np.where(known, np.log(np.where(known, up, 1.0) / np.where(known, down, 1.0)), 0.0)

    def add_pooled(self, cut: Bools, n1: Floats, at_most1: Floats, n2: Floats, at_most2: Floats) -> None:
        """One *cut* of the pooled tables, ½ added to the four cells wherever there is someone on each side of it."""
        low = at_most1 + at_most2
        live = cut & (low > 0.5) & (n1 + n2 - low > 0.5)
        total = n1 + n2 + 2
        self.half_up += np.where(live, (n1 - at_most1 + 0.5) * (at_most2 + 0.5) / total, 0.0)
        self.half_down += np.where(live, (at_most1 + 0.5) * (n2 - at_most2 + 0.5) / total, 0.0)


_DUST = 1e-11
"""A sum this much smaller than the other is rounding: it is a sum of products of counts over totals."""


def cumulative_odds(
    cells: PairCells, leaving: Removals, levels: Ints, count: int, parts: NameParts | None
) -> CumulativeOdds:
    """The odds of every comparison; *levels* are the codes 0 … *count*−1 of the layout's rows, in ascending order.

    Where a sum is 0 the strata are pooled and ½ is added to the four cells of every cut with someone on each side of
    it. SE² is the jackknife's, and at least the smallest pooled Woolf variance over the cuts where every cut has a cell
    under 5: so few cases cannot show their own spread.
    """
    n1, n2 = cells.rows[:, 0], cells.rows[:, 1]
    total = np.maximum(n1 + n2, 1.0)
    at, here = leaving.stratum, cells.unit_comparison
    left1, left2 = leaving.left
    left = np.maximum(left1 + left2, 1.0)
    q_rows = cells.side_rows
    whole, without = _Sums.zeros(cells.comparisons), _Sums.zeros(here.size)
    woolf = np.full(cells.comparisons, np.inf)
    few = np.ones(cells.comparisons, dtype=np.bool_)
    reached = np.zeros(cells.comparisons)
    for level in range(count - 1):
        held = cells.one_row(cells.layout.by_cell((levels <= level).astype(np.float64)))
        low = cells.by_stratum_side(held * cells.multiplicity)
        f1, f2 = low[:, 0], low[:, 1]
        pooled = np.stack([cells.strata_by_comparison(f) for f in (f1, f2)], axis=1)
        # A level that only other groups have makes no cut here: it would count the one below it twice.
        cut = pooled.sum(axis=1) > reached + 0.5
        reached = pooled.sum(axis=1)
        up, down = (n1 - f1) * f2 / total, f1 * (n2 - f2) / total
        up_whole, down_whole = cells.strata_by_comparison(up), cells.strata_by_comparison(down)
        whole.up += np.where(cut, up_whole, 0.0)
        whole.down += np.where(cut, down_whole, 0.0)
        whole.add_pooled(cut, q_rows[:, 0], pooled[:, 0], q_rows[:, 1], pooled[:, 1])
        _woolf(cut, q_rows, pooled, woolf, few)

        g1, g2 = f1[at] - leaving.on(0, held), f2[at] - leaving.on(1, held)
        # A stratum that loses one side adds nothing any more: both products are 0.
        up_change = leaving.total((left1 - g1) * g2 / left - up[at])
        down_change = leaving.total(g1 * (left2 - g2) / left - down[at])
        without.up += np.where(cut[here], up_whole[here] + up_change, 0.0)
        without.down += np.where(cut[here], down_whole[here] + down_change, 0.0)
        stay = [
            pooled[here, side] - leaving.total(leaving.on(side, held) + np.where(leaving.gone, g, 0.0))
            for side, g in ((0, g1), (1, g2))
        ]
        without.add_pooled(cut[here], leaving.rows_left[0], stay[0], leaving.rows_left[1], stay[1])
    log_odds = whole.log_odds
    enough = (leaving.rows_left[0] > 0.5) & (leaving.rows_left[1] > 0.5)
    error = jackknife_error(cells, np.where(enough, without.log_odds, np.nan), parts)
    floor = np.where(few & np.isfinite(woolf), np.sqrt(np.where(np.isfinite(woolf), woolf, 0.0)), 0.0)
    error = np.where(np.isnan(error), error, np.maximum(error, floor))
    return CumulativeOdds(
        log_odds=log_odds,
        effect=Effect(name="d from odds ratio", value=log_odds * LOGIT_TO_D, error=error * LOGIT_TO_D),
    )


def _woolf(cut: Bools, rows: Floats, low: Floats, smallest: Floats, few: Bools) -> None:
    """Woolf's (1955) variance of the pooled table at one cut: keep the smallest, and whether every cut has a cell under
    5. ½ is added to tables with an empty cell; a cut without anyone on one side of it is no cut."""
    n1, n2 = rows[:, 0], rows[:, 1]
    a, b = n1 - low[:, 0], low[:, 0]
    c, d = n2 - low[:, 1], low[:, 1]
    live = cut & (b + d > 0.5) & (a + c > 0.5)
    least = np.minimum.reduce([a, b, c, d])
    add = np.where(least < 0.5, 0.5, 0.0)
    with np.errstate(divide="ignore"):
        variance = sum(1 / (cell + add) for cell in (a, b, c, d))
    np.copyto(smallest, np.where(live, np.minimum(smallest, variance), smallest))
    few &= ~live | (least < FEW)
