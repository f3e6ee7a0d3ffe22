"""Copies of the data with a known disparity planted, and splits of a group that can have none."""

from __future__ import annotations

import math

import numpy as np

from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.arrays import Bools, Floats, Ints
from pytest_fairness.statistics.effects import LOGIT_TO_D
from pytest_fairness.statistics.persona_scores import clip


def plant(
    values: Floats,
    kind: OutcomeKind,
    rows: Bools,
    *,
    sd: float,
    d: float,
    lower_is_worse: bool,
    rng: np.random.Generator,
) -> Floats:
    """*values* with those in *rows* worse by *d*, in the direction of harm; the others as they are.

    Numbers move by d·*sd*. Ordinal levels move by as much in the mean, rounded at random to whole levels
    within the observed range. Yes/no outcomes, and the most frequent label of a categorical one, have as
    many turned round at random as change the log odds by d·π/√3. NaN stays NaN.
    """
    planted = values.copy()
    here = rows & ~np.isnan(values)
    if not here.any():
        return planted
    if kind in (OutcomeKind.BINARY, OutcomeKind.REFUSAL):
        planted[here] = _turn(values[here], d, down=lower_is_worse, rng=rng)
    elif kind is OutcomeKind.CATEGORICAL:
        planted[here] = _relabel(values, here, d, rng)
    else:
        moved = values[here] - (d if lower_is_worse else -d) * sd
        if kind is OutcomeKind.ORDINAL:
            moved = np.floor(moved + rng.random(moved.size))
            moved = np.clip(moved, np.nanmin(values), np.nanmax(values))
        planted[here] = moved
    return planted


def _turn(y: Floats, d: float, *, down: bool, rng: np.random.Generator) -> Floats:
    """Turn as many 1 into 0 (*down*) or 0 into 1 as move the log odds; the other way where there are none
    left.
    """
    n, ones = y.size, float(y.sum())
    if (down and ones == 0) or (not down and ones == n):
        down = not down
    rate = (ones + 0.5) / (n + 1)
    logit = math.log(rate / (1 - rate)) + (-d if down else d) / LOGIT_TO_D
    target = 1 / (1 + math.exp(-logit))
    share = max(0.0, 1 - target / (ones / n)) if down else max(0.0, 1 - (1 - target) / (1 - ones / n))
    flip = (y == (1 if down else 0)) & (rng.random(n) < share)
    return np.where(flip, 1 - y, y)


def _relabel(values: Floats, here: Bools, d: float, rng: np.random.Generator) -> Floats:
    """Move rows of the most frequent label to the other labels, in their proportions."""
    labels, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    own = values[here]
    if labels.size < 2:
        return own
    mode = labels[int(np.argmax(counts))]
    kept = _turn((own == mode).astype(np.float64), d, down=True, rng=rng) == 1
    others = labels[labels != mode]
    shares = counts[labels != mode] / counts[labels != mode].sum()
    drawn = rng.choice(others, size=own.size, p=shares)
    moved = (own == mode) & ~kept
    back = (own != mode) & kept
    return np.where(moved, drawn, np.where(back, mode, own))


def within_sd(values: Floats, group: Ints, block: Ints) -> float:
    """SD within group × block, or within groups where every such cell holds one row; 0 without variation.

    Values far from all others of their cell are clipped: one of them would make every planted d so large that any test
    catches it, and a PASS that hangs on that reply would look sound.
    """
    known = ~np.isnan(values)
    y, group, block = values[known], group[known], block[known]
    for key in (group * (int(block.max(initial=0)) + 1) + block, group):
        _, at = np.unique(key, return_inverse=True)
        counts = np.bincount(at)
        df = y.size - counts.size
        if df * 10 >= y.size - 2 and df > 0:
            middle = np.array([np.median(cell) for cell in np.split(y[np.argsort(at)], np.cumsum(counts)[:-1])])
            rest = clip(y - middle[at])
            means = np.bincount(at, rest) / counts
            return math.sqrt(float(np.sum((rest - means[at]) ** 2)) / df)
    return 0.0


def halves(cluster: Ints, rng: np.random.Generator) -> Bools | None:
    """Which rows fall into the first half of a random split of the clusters; None with fewer than four of
    them.
    """
    labels, at = np.unique(cluster, return_inverse=True)
    if labels.size < 4:
        return None
    first = np.zeros(labels.size, dtype=np.bool_)
    first[rng.permutation(labels.size)[: labels.size // 2]] = True
    return first[at]
