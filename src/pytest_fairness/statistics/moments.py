"""Means and spread of numbers by group and block: what differences are taken from, and what they are measured in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_fairness.statistics.clusters import TINY, Pairs
from pytest_fairness.statistics.frames import Bools, Floats
from pytest_fairness.statistics.layout import Layout


@dataclass(frozen=True, slots=True)
class Moments:
    """Means and sums of squares of each group × block (G × H) and of each group (G)."""

    mean: Floats
    squares: Floats
    group_mean: Floats
    group_squares: Floats


def read_moments(layout: Layout, scale: float) -> Moments:
    """The moments of *layout*'s values; *scale* is the largest of them, against which rounding is told."""
    groups, blocks = layout.count.shape
    at = layout.row_group
    y = layout.values
    sizes = layout.sizes
    group_mean = np.add.reduceat(y, layout.group_start) / sizes
    group_squares = _clean(np.add.reduceat((y - group_mean[at]) ** 2, layout.group_start), sizes, scale)
    if blocks == 1:
        return Moments(group_mean[:, None], group_squares[:, None], group_mean, group_squares)
    both = at * blocks + layout.row_block
    size = groups * blocks
    mean: Floats = np.bincount(both, y, minlength=size).astype(np.float64) / np.maximum(layout.count.ravel(), 1.0)
    squares: Floats = np.bincount(both, (y - mean[both]) ** 2, minlength=size).astype(np.float64)
    squares = _clean(squares, layout.count.ravel(), scale)
    return Moments(mean.reshape(groups, blocks), squares.reshape(groups, blocks), group_mean, group_squares)


def _clean(squares: Floats, sizes: Floats, scale: float) -> Floats:
    """Sums of squares that are no more than rounding become 0."""
    return np.where(squares <= sizes * (TINY * scale) ** 2, 0.0, squares)


def aligned_values(layout: Layout, moments: Moments, sizes: Floats | None) -> tuple[Floats, Floats]:
    """Sums and sums of squares of y − mid over each cell towards each partner (G × U).

    ``mid`` is the middle of the two groups' means in the block, so that neither group's size pulls it.
    """
    at, group = layout.cell_block, layout.cell_group
    total = layout.by_cell(layout.values)
    mid = (moments.mean[group, at] + moments.mean[:, at]) / 2
    n = layout.cell_size if sizes is None else sizes
    here = total if sizes is None else np.where(sizes > 0, total, 0.0)
    cells = here - n * mid
    if layout.own_rows:
        return cells, cells
    squares = layout.by_cell(layout.values**2)
    squares = squares if sizes is None else np.where(sizes > 0, squares, 0.0)
    return cells, np.maximum(squares - 2 * mid * here + n * mid**2, 0.0)


@dataclass(frozen=True, slots=True)
class Spread:
    """The SD of each pair with its df, and the rows of both groups (*n1*, *n2*) in the blocks that hold both.

    ``within`` is where it was pooled within group × block; elsewhere (nearly) every group × block holds a single
    row, there is nothing to pool, and the SD within groups takes its place (matched pairs).
    """

    n1: Floats
    n2: Floats
    sd: Floats
    df: Floats
    within: Bools


def standardiser(layout: Layout, pairs: Pairs, moments: Moments, scale: float) -> Spread:
    """The SD that a difference of means is measured in; no more than rounding counts as 0."""
    i, j = pairs.first, pairs.second
    here = (layout.count > 0).astype(np.float64)
    rows = layout.count @ here.T
    squares = moments.squares @ here.T
    cells = here @ here.T
    n1, n2 = rows[i, j], rows[j, i]
    df = n1 + n2 - 2 * cells[i, j]
    pooled = (squares[i, j] + squares[j, i]) / np.maximum(df, 1.0)
    plain = pooled_variance(layout, pairs, moments)
    within = df * 10 >= n1 + n2 - 2
    s = np.sqrt(np.where(within, pooled, plain))
    sd = np.where(s < TINY * scale, 0.0, s)
    return Spread(n1=n1, n2=n2, sd=sd, df=np.where(within, df, n1 + n2 - 2), within=np.asarray(within))


def pooled_variance(layout: Layout, pairs: Pairs, moments: Moments) -> Floats:
    """The variance within the two groups of each pair, whatever the blocks."""
    i, j = pairs.first, pairs.second
    n = layout.sizes
    return np.asarray((moments.group_squares[i] + moments.group_squares[j]) / np.maximum(n[i] + n[j] - 2, 1.0))
