"""Effect sizes between two groups' outcomes: Hedges g of cluster means, d of Cliff's δ, cumulative
odds; each with its jackknife.

The mean and the rank speak of different things: one outlying reply moves the mean and hardly a
rank, a small shift of many ties moves few ranks. Both are on the d scale, and the verdict reads the
larger.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from pytest_fairness.statistics.arrays import Floats, Ints, sums
from pytest_fairness.statistics.clusters import (
    TINY,
    Contrast,
    NameParts,
    Removals,
    contrast,
    jackknife_error,
    ratio,
    reach,
    two_sided_t,
)
from pytest_fairness.statistics.layout import Layout, PairCells, Pairs
from pytest_fairness.statistics.proportions import FEW, woolf_variance

LOGIT_TO_D = float(np.sqrt(3) / np.pi)
"""ln OR · √3/π is the d of two logistic distributions with that odds ratio (Hasselblad & Hedges
1995).
"""


class Effect(NamedTuple):
    """An effect on the d scale, positive where side 0 is higher, and its jackknifed standard error
    (Q each).
    """

    name: str
    value: Floats
    error: Floats


class Moments(NamedTuple):
    """Mean and sum of squares of each group × block (G × H), and of each cell the sum, and the sum
    of squares, of what its rows deviate from that mean (U)."""

    mean: Floats
    squares: Floats
    deviation: Floats
    deviation_square: Floats


def moments_of(layout: Layout, scale: float, *, blocked: bool) -> Moments:
    """The moments of *layout*'s values, all rows of a group as one block if not *blocked*; sums of
    squares that are no more than rounding beside *scale*, the largest value, are 0."""
    shape = (layout.groups, layout.blocks if blocked else 1)
    at = layout.row_group * shape[1] + (layout.row_block if blocked else 0)
    count = (layout.count if blocked else layout.sizes[:, None]).ravel()
    size = shape[0] * shape[1]
    mean = sums(at, layout.weighted(layout.numbers), size) / np.maximum(count, 1.0)
    rest = layout.numbers - mean[at]
    squares = sums(at, layout.weighted(rest**2), size)
    if layout.bins is not None:
        squares = squares + sums(at, layout.bins.squares, size)
    squares = np.where(squares <= count * (TINY * scale) ** 2, 0.0, squares)
    return Moments(
        mean.reshape(shape),
        squares.reshape(shape),
        layout.by_cell(rest),
        layout.by_cell(rest**2) + layout.squares_by_cell(),
    )


class Standardised(NamedTuple):
    """The difference of cluster means with its jackknifed error, the SD that it is measured in with
    its df, Hedges g.

    ``aligned`` are the sums over cells of y − mid (E) and ``aligned_square`` those of its squares,
    ``mid`` the middle of the two groups' means in the block, so that neither group's size pulls it.
    """

    difference: Contrast
    error: Floats
    sd: Floats
    df: Floats
    g: Effect
    aligned: Floats
    aligned_square: Floats


def standardise(
    cells: PairCells,
    leaving: Removals,
    moments: Moments,
    plain: Moments,
    scale: float,
    parts: NameParts | None,
) -> Standardised:
    """Hedges g = J·D/s of each comparison: D the difference of cluster means of y − mid, s pooled
    within group × block, J = 1 − 3/(4df−1) (Hedges 1981), all of it computed again without each
    cluster.

    Where (nearly) every group × block holds a single row, there is nothing to pool, and the SD
    within groups takes its place (matched pairs): *plain* are the moments without blocks.
    """
    deviation, square, of_group, group_square = cells.one_unit(
        np.stack(
            [moments.deviation, moments.deviation_square, plain.deviation, plain.deviation_square]
        )
    )
    block = cells.stratum_block[cells.stratum]
    first = moments.mean[cells.layout.cell_group[cells.cell], block]
    other = moments.mean[cells.partner, block]
    half = (first - other) / 2
    aligned = deviation + cells.size * half
    contrast_ = contrast(cells, aligned, scale, parts)
    without = _difference_without(cells, leaving, contrast_, aligned, deviation)

    q = cells.stratum_comparison
    blocks = cells.stratum_block
    stratum_squares = (
        moments.squares[cells.first[q], blocks] + moments.squares[cells.second[q], blocks]
    )
    stratum_squares = np.where(cells.live, stratum_squares, 0.0)
    inner = cells.strata_by_comparison(stratum_squares)
    live = cells.live.astype(np.float64)
    strata = cells.strata_by_comparison(live)
    n1, n2 = cells.side_rows.T
    df = n1 + n2 - 2 * strata
    within = df * 10 >= n1 + n2 - 2
    outer = _about_mean(cells.by_side(group_square).T, cells.by_side(of_group).T, cells.side_rows.T)
    df = np.where(within, df, n1 + n2 - 2)
    sd = _root(np.where(within, inner, outer), df, scale)

    lost = np.zeros(leaving.removal.size)
    for side in (0, 1):
        left = np.maximum(leaving.left[side], 1.0)
        lost += leaving.on(side, square) + leaving.on(side, deviation) ** 2 / left
    here = cells.unit_comparison
    inner_left = leaving.without(
        stratum_squares, np.where(leaving.broken, 0.0, stratum_squares[leaving.stratum] - lost)
    )
    rows = leaving.rows_left
    outer_left = _about_mean(leaving.kept(group_square), leaving.kept(of_group), rows)
    # What rounding leaves of a sum of squares is no spread.
    inner_left = np.where(inner_left > TINY * inner[here], inner_left, 0.0)
    outer_left = np.where(outer_left > TINY * outer[here], outer_left, 0.0)
    strata_left = leaving.without(live, np.where(leaving.broken, 0.0, 1.0))
    df_left = np.where(within[here], rows[0] + rows[1] - 2 * strata_left, rows[0] + rows[1] - 2)
    sd_left = _root(np.where(within[here], inner_left, outer_left), df_left, scale)
    g_left = ratio(hedges_correction(df_left) * without, sd_left)
    g = ratio(hedges_correction(df) * contrast_.difference, sd)
    wider = _within_bins(cells, contrast_.error)
    return Standardised(
        difference=contrast_._replace(error=wider * contrast_.error),
        error=wider * jackknife_error(cells, without, parts),
        sd=sd,
        df=df,
        g=Effect(name="Hedges g", value=g, error=wider * jackknife_error(cells, g_left, parts)),
        aligned=aligned,
        aligned_square=np.maximum(square + 2 * half * deviation + cells.size * half**2, 0.0),
    )


def _within_bins(cells: PairCells, error: Floats) -> Floats:
    """Return by how much the *error* of each difference of means (Q) grows by the squares within
    bins, of which the means of the bins, each counted as a row alike, know nothing; 1 without bins.
    """
    layout = cells.layout
    wider = np.ones(error.size)
    if layout.bins is None or not layout.own_rows:
        return wider
    within = cells.by_side(cells.one_unit(np.asarray(layout.squares_by_cell())))
    rows = cells.side_rows
    lost = (within / np.maximum(rows * (rows - 1), 1.0)).sum(axis=1)
    sound = error > 0
    return np.where(sound, np.sqrt(1 + lost / np.where(sound, error, 1.0) ** 2), wider)


def hedges_correction(df: Floats) -> Floats:
    """J = 1 − 3/(4df − 1), the small-sample correction of d (Hedges 1981); that of df 2 for less."""
    return np.asarray(1 - 3 / (4 * np.maximum(df, 2.0) - 1))


def _about_mean(squares: Floats, deviations: Floats, rows: Floats) -> Floats:
    """The sum of squares of both sides (2 × n), each about its own mean, from those about another
    value and the sums of the deviations from that."""
    return np.asarray((squares - deviations**2 / np.maximum(rows, 1.0)).sum(axis=0))


def _difference_without(
    cells: PairCells, leaving: Removals, contrast: Contrast, aligned: Floats, deviation: Floats
) -> Floats:
    """The difference of cluster means without each unit (M): the middle of the blocks that it stood
    in moves too.
    """
    units = cells.units
    here = cells.unit_comparison
    at = leaving.removal
    paired = cells.paired[here]
    first = paired & (cells.unit_side == 0)
    second = paired & (cells.unit_side == 1)
    weight = cells.size / cells.by_unit(cells.size)[cells.unit]
    share = cells.by_stratum_side(weight) / np.maximum(units[cells.stratum_comparison], 1.0)
    moved = np.zeros(at.size)
    for side in (0, 1):
        moved -= (
            np.where(
                leaving.broken,
                0.0,
                leaving.on(side, deviation) / np.maximum(leaving.left[side], 1.0),
            )
            / 2
        )
    means = []
    nobody = np.zeros(here.size, dtype=np.bool_)
    for side in (0, 1):
        out = (cells.unit_side == side) | paired  # whether the removal takes a unit from this side
        value = np.where(cells.unit_side == side, contrast.unit_mean, 0.0)
        if side:
            value[first] = contrast.unit_mean[cells.mate[first]]
        count = units[here, side]
        left = np.maximum(count - out, 1.0)
        nobody |= count - out < 1
        mean_without = (count * contrast.mean[here, side] - np.where(out, value, 0.0)) / left
        shifted = (count[at] * share[leaving.stratum, side] - leaving.on(side, weight)) / left[at]
        means.append(mean_without - leaving.total(shifted * moved))
    without = np.where(nobody, np.nan, means[0] - means[1])
    broken = np.flatnonzero((leaving.total(leaving.broken.astype(np.float64)) > 0) & ~second)
    if broken.size:
        without[broken] = _anew(cells, leaving, aligned, broken)
    return without


MOST_CELLS = 2_000_000


def _anew(cells: PairCells, leaving: Removals, aligned: Floats, broken: Ints) -> Floats:
    """The differences without units that take whole strata with them: aligned anew from the cells
    that are left.
    """
    start = np.searchsorted(cells.comparison, np.arange(cells.comparisons + 1))
    strata = cells.stratum_comparison.size
    rest = []
    absent = (leaving.removal * strata + leaving.stratum)[leaving.broken]
    for units in np.array_split(
        broken, 1 + np.diff(start)[cells.unit_comparison[broken]].sum() // MOST_CELLS
    ):
        q = cells.unit_comparison[units]
        lengths = np.diff(start)[q]
        owner = np.repeat(np.arange(units.size), lengths)
        at = np.arange(owner.size) + np.repeat(start[q] - np.cumsum(lengths) + lengths, lengths)
        mate = np.where(cells.paired[q], cells.mate[units], -1)
        kept = (cells.unit[at] != units[owner]) & (cells.unit[at] != mate[owner])
        kept &= ~np.isin(units[owner] * strata + cells.stratum[at], absent)
        owner = owner[kept]
        at = at[kept]
        held, stratum = np.unique(owner * strata + cells.stratum[at], return_inverse=True)
        left = PairCells(
            cells.layout,
            Pairs(cells.first[q], cells.second[q]),
            owner,
            cells.side[at],
            stratum.astype(np.intp),
            cells.cell[at],
            held // strata,
            cells.stratum_block[held % strata],
        )
        middle = (left.by_stratum_side(aligned[at]) / left.rows).mean(axis=1)
        value = aligned[at] - left.size * middle[left.stratum]
        total = left.units_by_side(left.by_unit(value) / left.by_unit(left.size))
        mean = total / np.where(left.units > 0, left.units, np.nan)
        rest.append(mean[:, 0] - mean[:, 1])
    return np.concatenate(rest)


def _root(squares: Floats, df: Floats, scale: float) -> Floats:
    sd = np.sqrt(np.maximum(squares, 0.0) / np.maximum(df, 1.0))
    return np.where(sd < TINY * scale, 0.0, sd)


class RankEffect(NamedTuple):
    """Cliff's δ of each comparison (Q) and without each unit (M), and its d."""

    delta: Floats
    without: Floats
    effect: Effect


def rank_effect(
    cells: PairCells, leaving: Removals, below: Floats, tied: Floats | None, parts: NameParts | None
) -> RankEffect:
    """Cliff's δ of each comparison, weighted over the strata by n₁n₂/(N+1), and its d =
    √2·Φ⁻¹((δ+1)/2), that of two normal groups with that δ (Cliff 1993).

    *below* are the sums over cells of P − n/2, where P counts the rows of the other group in the
    block below a row and half of those equal to it (E); *tied* the same against the rows of the
    cluster itself on the other side, for paired comparisons. Full separation counts as half a pair
    short of it.
    """
    ahead = cells.by_stratum_side(below)[:, 0]
    n1, n2 = cells.rows.T
    total = n1 + n2 + 1
    top = 2 * ahead / total
    weight = n1 * n2 / total
    delta = _delta(cells.strata_by_comparison(top), cells.strata_by_comparison(weight))
    value = d_of_delta(delta, cells.side_rows.prod(axis=1))

    moved = leaving.on(0, below) - leaving.on(1, below)
    if tied is not None:
        moved = moved - leaving.on(0, tied)
    left = leaving.left[0] + leaving.left[1] + 1
    # A broken stratum has no rows to compare; what is left of it by rounding is 0.
    top_left = np.where(leaving.broken, 0.0, 2 * (ahead[leaving.stratum] - moved) / left)
    weight_left = leaving.without(weight, leaving.left[0] * leaving.left[1] / left)
    rows = leaving.rows_left[0] * leaving.rows_left[1]
    kept = rows > 0.5
    delta_left = np.where(kept, _delta(leaving.without(top, top_left), weight_left), np.nan)
    error = jackknife_error(cells, np.where(kept, d_of_delta(delta_left, rows), np.nan), parts)
    return RankEffect(delta, delta_left, Effect(name="d from Cliff's δ", value=value, error=error))


def dominance_test(
    cells: PairCells,
    ranked: RankEffect,
    df: Floats,
    parts: NameParts | None,
    confidence: float,
) -> tuple[Floats, tuple[Floats, Floats]]:
    """Two-sided p of Cliff's δ over its jackknifed error (Q), and the ends of its interval of
    *confidence* as d (Q each).

    Aligned ranks take unlike spreads for unlike places; δ over an error of its own does not
    (Brunner & Munzel 2000). On its own scale: near ±1 the error of d of δ is as large as d, and the
    strongest differences would be hidden. p is 0 where the error is, as it is where δ is ±1: then
    it has nothing to say. NaN where a side has one unit.
    """
    delta = ranked.delta
    pairs = cells.side_rows.prod(axis=1)
    error = jackknife_error(cells, ranked.without, parts)
    error = np.where(error < TINY, 0.0, error)  # NaN stays
    half = reach(error, df, confidence)
    return two_sided_t(delta, error, df), (
        d_of_delta(delta - half, pairs),
        d_of_delta(delta + half, pairs),
    )


def _delta(top: Floats, weight: Floats) -> Floats:
    delta = np.clip(top / np.where(weight > TINY, weight, 1.0), -1.0, 1.0)
    return np.where(np.abs(delta) < TINY, 0.0, delta)


def d_of_delta(delta: Floats, pairs: Floats) -> Floats:
    """√2·Φ⁻¹((δ+1)/2), with δ at most one in *pairs* of rows short of ±1."""
    most = 1 - 1 / np.maximum(pairs, 2.0)
    return np.asarray(np.sqrt(2) * ndtri((np.clip(delta, -most, most) + 1) / 2))


def cumulative_odds(
    cells: PairCells, leaving: Removals, levels: Ints, count: int, parts: NameParts | None
) -> tuple[Floats, Effect]:
    """The log odds that side 0 of each comparison is the higher, pooled over strata and cuts, and
    their d.

    *levels* are the codes 0 … *count*−1 of the layout's rows, ascending. Where a sum is 0 the
    strata are pooled and ½ is added to the four cells of every cut with someone on each side of it.
    SE² is the jackknife's, and at least the smallest pooled Woolf variance over the cuts where
    every cut has a cell under 5: so few cannot show their spread.
    """
    n1, n2 = cells.rows.T
    total = np.maximum(n1 + n2, 1.0)
    side_rows = cells.side_rows.T
    at = leaving.stratum
    here = cells.unit_comparison
    rows_left = leaving.rows_left
    left1, left2 = leaving.left
    left = np.maximum(left1 + left2, 1.0)
    whole = np.zeros((4, cells.comparisons))
    without = np.zeros((4, here.size))
    woolf = np.full(cells.comparisons, np.inf)
    few = np.ones(cells.comparisons, dtype=np.bool_)
    reached = np.zeros(cells.comparisons)
    for level in range(count - 1):
        held = cells.one_unit(cells.layout.by_cell((levels <= level).astype(np.float64)))
        f1, f2 = cells.by_stratum_side(held).T
        pooled = np.stack(list(map(cells.strata_by_comparison, (f1, f2))))
        # A level that only other groups have makes no cut here: it would count the one below it
        # twice.
        cut = pooled.sum(axis=0) > reached + 0.5
        reached = pooled.sum(axis=0)
        up = (n1 - f1) * f2 / total
        down = f1 * (n2 - f2) / total
        halves = _with_half(side_rows, pooled)
        of_up = cells.strata_by_comparison(up)
        of_down = cells.strata_by_comparison(down)
        whole += cut * np.stack([of_up, of_down, *halves])
        variance, least = woolf_variance(np.concatenate([pooled, side_rows - pooled]))
        # A cut without anyone on one side of it is no cut.
        real = cut & (reached > 0.5) & (side_rows.sum(axis=0) - reached > 0.5)
        woolf = np.where(real, np.minimum(woolf, variance), woolf)
        few &= ~real | (least < FEW)

        g1 = f1[at] - leaving.on(0, held)
        g2 = f2[at] - leaving.on(1, held)
        stay = np.stack([
            leaving.less(whole_low, low, np.where(leaving.broken, 0.0, low_left))
            for whole_low, low, low_left in zip(pooled, (f1, f2), (g1, g2), strict=True)
        ])  # fmt: skip
        without += cut[here] * np.stack([
            leaving.less(of_up, up, (left1 - g1) * g2 / left),
            leaving.less(of_down, down, g1 * (left2 - g2) / left),
            *_with_half(rows_left, stay),
        ])  # fmt: skip
    log_odds = _log_odds(*whole)
    error = jackknife_error(
        cells, np.where(rows_left.min(axis=0) > 0.5, _log_odds(*without), np.nan), parts
    )
    floor = np.sqrt(np.where(few & np.isfinite(woolf), woolf, 0.0))
    error = np.where(np.isnan(error), error, np.maximum(error, floor))
    return log_odds, Effect(
        name="d from odds ratio", value=log_odds * LOGIT_TO_D, error=error * LOGIT_TO_D
    )


def _log_odds(up: Floats, down: Floats, half_up: Floats, half_down: Floats) -> Floats:
    """ln of what speaks for side 0 over what speaks for side 1; of the pooled tables + ½ where one
    of them is rounding beside the other: they are sums of products of counts over totals."""
    poor = np.minimum(up, down) <= 1e-11 * (up + down)
    up = np.where(poor, half_up, up)
    down = np.where(poor, half_down, down)
    sound = (up > 0) & (down > 0)
    return np.where(sound, np.log(np.where(sound, up, 1.0) / np.where(sound, down, 1.0)), 0.0)


def _with_half(rows: Floats, low: Floats) -> Floats:
    """Return what one cut of the pooled tables adds for side 0 and for side 1 (2 × n), of *rows*
    and those at most at the cut, ½ added to the four cells; 0 without someone on each side of
    it."""
    total = rows.sum(axis=0) + 2
    live = (low.sum(axis=0) > 0.5) & (rows.sum(axis=0) - low.sum(axis=0) > 0.5)
    return np.where(live, (rows - low + 0.5) * (low[::-1] + 0.5) / total, 0.0)
