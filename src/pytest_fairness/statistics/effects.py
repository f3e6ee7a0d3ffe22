"""How far apart two groups' scores are: Hedges g of cluster means, and d of Cliff's δ; each with its jackknife.

The mean and the rank speak of different things: one outlying reply moves the mean and hardly a rank, a small shift of
many ties moves few ranks. Both are on the d scale, and the verdict reads the larger.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from pytest_fairness.statistics.arrays import Bools, Floats, Ints
from pytest_fairness.statistics.clusters import TINY, Contrast, NameParts, Removals, contrast, jackknife_error
from pytest_fairness.statistics.layout import Layout, PairCells, sums
from pytest_fairness.statistics.proportions import FEW


@dataclass(frozen=True, slots=True)
class Moments:
    """Means and sums of squares of each group × block (G × H) and of each group (G); of each cell, the sum and the
    sum of squares of what its rows deviate from the mean of their group × block, and from that of their group (U).
    """

    mean: Floats
    squares: Floats
    group_mean: Floats
    group_squares: Floats
    deviation: Floats
    deviation_square: Floats
    group_deviation: Floats
    group_deviation_square: Floats


def read_moments(layout: Layout, scale: float) -> Moments:
    """The moments of *layout*'s values; *scale* is the largest of them, against which rounding is measured."""
    groups, blocks = layout.count.shape
    at = layout.row_group
    y = layout.values
    sizes = layout.sizes
    group_mean = np.add.reduceat(y, layout.group_start) / sizes
    rest = y - group_mean[at]
    group_squares = _clean(np.add.reduceat(rest**2, layout.group_start), sizes, scale)
    of_group = layout.by_cell(rest), layout.by_cell(rest**2)
    if blocks == 1:
        return Moments(group_mean[:, None], group_squares[:, None], group_mean, group_squares, *of_group, *of_group)
    both = at * blocks + layout.row_block
    size = groups * blocks
    mean = sums(both, y, size) / np.maximum(layout.count.ravel(), 1.0)
    inner = y - mean[both]
    squares = _clean(sums(both, inner**2, size), layout.count.ravel(), scale)
    shape = groups, blocks
    of_cell = layout.by_cell(inner), layout.by_cell(inner**2)
    return Moments(mean.reshape(shape), squares.reshape(shape), group_mean, group_squares, *of_cell, *of_group)


def _clean(squares: Floats, sizes: Floats, scale: float) -> Floats:
    """Sums of squares that are no more than rounding become 0."""
    return np.where(squares <= sizes * (TINY * scale) ** 2, 0.0, squares)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """An effect on the d scale, positive where side 0 is higher, and its jackknifed standard error (Q each)."""

    name: str
    value: Floats
    error: Floats


# ---------------------------------------------------------------- the mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Standardised:
    """The difference of cluster means with its error, the SD that it is measured in with its df, and Hedges g.

    ``within``: the SD was pooled within group × block; elsewhere (nearly) every group × block holds a single row, there
    is nothing to pool, and the SD within groups takes its place (matched pairs). ``aligned`` are the sums over cells of
    y − mid (E) and ``aligned_square`` those of its squares, ``mid`` the middle of the two groups' means in the block,
    so that neither group's size pulls it.
    """

    difference: Contrast
    error: Floats
    sd: Floats
    df: Floats
    within: Bools
    g: Effect
    aligned: Floats
    aligned_square: Floats


def standardise(
    cells: PairCells, leaving: Removals, moments: Moments, scale: float, parts: NameParts | None
) -> Standardised:
    """Hedges g = J·D/s of each comparison: D the difference of cluster means of y − mid, s pooled within group × block,
    J = 1 − 3/(4df−1) (Hedges 1981), all of it computed again without each cluster."""
    layout = cells.layout
    group, block = layout.cell_group[cells.cell], layout.cell_block[cells.cell]
    deviation, square = cells.one_row(moments.deviation), cells.one_row(moments.deviation_square)
    own, other = moments.mean[group, block], moments.mean[cells.partner, block]
    half = (own - other) / 2
    aligned = deviation + cells.size * half
    aligned_square = np.maximum(square + 2 * half * deviation + cells.size * half**2, 0.0)
    found = contrast(cells, aligned, scale, parts)

    by_stratum = cells.of_strata(moments.squares)
    squares = cells.strata_by_comparison(by_stratum)
    n1, n2 = cells.side_rows[:, 0], cells.side_rows[:, 1]
    strata = cells.strata_by_comparison(cells.live.astype(np.float64))
    df = n1 + n2 - 2 * strata
    within = df * 10 >= n1 + n2 - 2
    group_deviation, group_square = (
        cells.one_row(values) for values in (moments.group_deviation, moments.group_deviation_square)
    )
    plain_squares = _about_mean(cells.by_side(group_square).T, cells.by_side(group_deviation).T, cells.side_rows.T)
    df = np.where(within, df, n1 + n2 - 2)
    sd = _root(np.where(within, squares, plain_squares), df, scale)
    g = _ratio(hedges_correction(df) * found.difference, sd)

    without = _difference_without(cells, leaving, found, aligned, deviation)
    lost = leaving.total(np.where(leaving.gone, 0.0, _within_lost(leaving, deviation, square)))
    here = cells.unit_comparison
    inner = squares[here] - lost - leaving.total(np.where(leaving.gone, by_stratum[leaving.stratum], 0.0))
    kept = leaving.rows_left[0] + leaving.rows_left[1]
    inner_df = kept - 2 * (strata[here] - leaving.total(leaving.gone.astype(np.float64)))
    plain = _about_mean(
        [leaving.kept(side, group_square) for side in (0, 1)],
        [leaving.kept(side, group_deviation) for side in (0, 1)],
        leaving.rows_left,
    )
    chosen = within[here]
    # What rounding leaves of a sum of squares is no spread.
    inner = np.where(inner > TINY * squares[here], inner, 0.0)
    plain = np.where(plain > TINY * plain_squares[here], plain, 0.0)
    df_without = np.where(chosen, inner_df, kept - 2)
    sd_without = _root(np.where(chosen, inner, plain), df_without, scale)
    g_without = _ratio(hedges_correction(df_without) * without, sd_without)
    return Standardised(
        difference=found,
        error=jackknife_error(cells, without, parts),
        sd=sd,
        df=df,
        within=within,
        g=Effect(name="Hedges g", value=g, error=jackknife_error(cells, g_without, parts)),
        aligned=aligned,
        aligned_square=aligned_square,
    )


def hedges_correction(df: Floats) -> Floats:
    """J = 1 − 3/(4df − 1), the small-sample correction of d (Hedges 1981); that of df 2 for less."""
    return np.asarray(1 - 3 / (4 * np.maximum(df, 2.0) - 1))


def _within_lost(leaving: Removals, deviation: Floats, square: Floats) -> Floats:
    """By how much the sum of squares within a group × block shrinks with what leaves (R)."""
    lost = np.zeros(leaving.removal.size)
    for side in (0, 1):
        left = np.maximum(leaving.left[side], 1.0)
        lost += leaving.on(side, square) + leaving.on(side, deviation) ** 2 / left
    return lost


def _about_mean(squares: Iterable[Floats], deviations: Iterable[Floats], rows: Iterable[Floats]) -> Floats:
    """The sum of squares of both sides, each about its own mean, from those about another value and the sums of the
    deviations from that."""
    own = (s - d**2 / np.maximum(n, 1.0) for s, d, n in zip(squares, deviations, rows, strict=True))
    return np.asarray(sum(own))


def _difference_without(
    cells: PairCells, leaving: Removals, found: Contrast, aligned: Floats, deviation: Floats
) -> Floats:
    """The difference of cluster means without each unit (M): the middle of the blocks that it stood in moves too."""
    units, here = cells.units, cells.unit_comparison
    rows = cells.by_unit(cells.size)
    weight = cells.size / rows[cells.unit]
    share = cells.by_stratum_side(weight * cells.multiplicity) / np.maximum(units[cells.stratum_comparison], 1.0)
    moved = np.zeros(leaving.removal.size)
    for side in (0, 1):
        moved -= np.where(leaving.gone, 0.0, leaving.on(side, deviation) / np.maximum(leaving.left[side], 1.0)) / 2
    second = cells.paired[here] & (cells.unit_side == 1)
    means = []
    for side in (0, 1):
        of_side = cells.unit_side == side
        out = of_side | cells.paired[here]  # whether the removal takes a unit from this side
        value = np.where(of_side, found.unit_mean, 0.0)
        if bool(np.any(second)):
            mates = np.flatnonzero(cells.paired[here] & (cells.unit_side == 0))
            value[mates] = found.unit_mean[cells.mate[mates] if side else mates]
        count = units[here, side]
        left = np.maximum(count - out, 1.0)
        own = (count * found.mean[here, side] - np.where(out, value, 0.0)) / left
        at = leaving.removal
        shifted = (count[at] * share[leaving.stratum, side] - leaving.on(side, weight)) / left[at]
        means.append(own - leaving.total(shifted * moved))
    without = means[0] - means[1]
    nobody = (units[here, 0] - ((cells.unit_side == 0) | cells.paired[here]) < 1) | (
        units[here, 1] - ((cells.unit_side == 1) | cells.paired[here]) < 1
    )
    without = np.where(nobody, np.nan, without)
    broken = np.flatnonzero(leaving.total(leaving.gone.astype(np.float64)) > 0)
    broken = broken[~second[broken]]
    if broken.size:
        without[broken] = _one_by_one(cells, leaving, aligned, broken)
    return without


def _one_by_one(cells: PairCells, leaving: Removals, aligned: Floats, broken: Ints) -> Floats:
    """The differences without units that take whole strata with them: each computed anew from what is left."""
    start = np.searchsorted(cells.comparison, np.arange(cells.comparisons + 1))
    found = np.full(broken.size, np.nan)
    order = np.argsort(leaving.removal, kind="stable")
    bounds = np.searchsorted(leaving.removal[order], np.arange(cells.unit_side.size + 1))
    for place, unit in enumerate(broken.tolist()):
        q = int(cells.unit_comparison[unit])
        own = slice(int(start[q]), int(start[q + 1]))
        which = order[bounds[unit] : bounds[unit + 1]]
        lost = leaving.stratum[which][leaving.gone[which]]
        out = cells.unit[own] == unit
        if cells.paired[q]:
            out |= cells.unit[own] == cells.mate[unit]
        out |= np.isin(cells.stratum[own], lost)
        found[place] = _difference(cells, own, ~out, aligned)
    return found


def _difference(cells: PairCells, own: slice, kept: Bools, aligned: Floats) -> float:
    """The difference of cluster means of the *kept* cells of one comparison, aligned anew."""
    if not kept.any():
        return float("nan")
    size, side, value = cells.size[own][kept], cells.side[own][kept], aligned[own][kept]
    many = cells.multiplicity[own][kept]
    stratum = np.unique(cells.stratum[own][kept], return_inverse=True)[1]
    unit = np.unique(cells.unit[own][kept], return_inverse=True)[1]
    place, strata = 2 * stratum + side, int(stratum.max()) + 1
    means = np.bincount(place, value * many, 2 * strata) / np.maximum(
        np.bincount(place, size * many, 2 * strata), 1e-300
    )
    value = value - size * means.reshape(-1, 2).mean(axis=1)[stratum]
    unit_mean = np.bincount(unit, value) / np.bincount(unit, size)
    units = int(unit.max()) + 1
    unit_side, unit_many = np.zeros(units, dtype=np.intp), np.ones(units)
    unit_side[unit], unit_many[unit] = side, many
    count = np.bincount(unit_side, unit_many, 2)
    if count.min() == 0:
        return float("nan")
    mean = np.bincount(unit_side, unit_mean * unit_many, 2) / count
    return float(mean[0] - mean[1])


def _root(squares: Floats, df: Floats, scale: float) -> Floats:
    sd = np.sqrt(np.maximum(squares, 0.0) / np.maximum(df, 1.0))
    return np.where(sd < TINY * scale, 0.0, sd)


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """top/bottom; where bottom is 0: 0 for top 0, else ±∞. NaN stays."""
    safe = np.where(bottom > 0, bottom, 1.0)
    return np.where(bottom > 0, top / safe, np.where(top == 0, 0.0, np.copysign(np.inf, top)))


# ---------------------------------------------------------------- the rank


def rank_effect(
    cells: PairCells, leaving: Removals, below: Floats, tied: Floats | None, parts: NameParts | None
) -> tuple[Floats, Effect]:
    """Cliff's δ of each comparison, weighted over the strata by n₁n₂/(N+1), and its d = √2·Φ⁻¹((δ+1)/2), that of two
    normal groups with that δ (Cliff 1993).

    *below* are the sums over cells of P − n/2, where P counts the rows of the other group in the block below a row
    and half of those equal to it (E); *tied* the same against the rows of the cluster itself on the other side, for
    paired comparisons. Full separation counts as half a pair short of it.
    """
    sign = np.where(cells.side == 0, 1.0, -1.0)
    ahead = cells.by_stratum(np.where(cells.side == 0, below * cells.multiplicity, 0.0))
    n1, n2 = cells.rows[:, 0], cells.rows[:, 1]
    total = n1 + n2 + 1
    top, weight = cells.strata_by_comparison(2 * ahead / total), cells.strata_by_comparison(n1 * n2 / total)
    delta = _delta(top, weight)
    value = d_of_delta(delta, cells.side_rows[:, 0] * cells.side_rows[:, 1])

    at = leaving.stratum
    moved = leaving.on(0, sign * below) + leaving.on(1, sign * below)
    if tied is not None:
        moved = moved - leaving.on(0, tied)
    left = leaving.left[0] + leaving.left[1] + 1
    top_change = 2 * (ahead[at] - moved) / left - 2 * ahead[at] / total[at]
    weight_change = leaving.left[0] * leaving.left[1] / left - (n1 * n2 / total)[at]
    # A stratum that is gone has no rows to compare; what is left of it by rounding is 0.
    top_change = np.where(leaving.gone, -2 * ahead[at] / total[at], top_change)
    here = cells.unit_comparison
    without = _delta(top[here] + leaving.total(top_change), weight[here] + leaving.total(weight_change))
    rows = leaving.rows_left[0] * leaving.rows_left[1]
    without = np.where(rows > 0.5, d_of_delta(without, rows), np.nan)
    return delta, Effect(name="d from Cliff's δ", value=value, error=jackknife_error(cells, without, parts))


def _delta(top: Floats, weight: Floats) -> Floats:
    delta = np.clip(top / np.where(weight > TINY, weight, 1.0), -1.0, 1.0)
    return np.where(np.abs(delta) < TINY, 0.0, delta)


def d_of_delta(delta: Floats, pairs: Floats) -> Floats:
    """√2·Φ⁻¹((δ+1)/2), with δ at most one in *pairs* of rows short of ±1."""
    most = 1 - 1 / np.maximum(pairs, 2.0)
    return np.asarray(np.sqrt(2) * ndtri((np.clip(delta, -most, most) + 1) / 2))


# ---------------------------------------------------------------- cumulative odds

LOGIT_TO_D = float(np.sqrt(3) / np.pi)
"""ln OR · √3/π is the d of two logistic distributions with that odds ratio (Hasselblad & Hedges 1995)."""


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
) -> tuple[Floats, Effect]:
    """The log odds that side 0 of each comparison is the higher, pooled over strata and cuts, and their d.

    *levels* are the codes 0 … *count*−1 of the layout's rows, ascending. Where a sum is 0 the strata are pooled and ½
    is added to the four cells of every cut with someone on each side of it. SE² is the jackknife's, and at least the
    smallest pooled Woolf variance over the cuts where every cut has a cell under 5: so few cannot show their spread.
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
    return log_odds, Effect(name="d from odds ratio", value=log_odds * LOGIT_TO_D, error=error * LOGIT_TO_D)


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
