"""One of k candidates is chosen, or all are ranked; every group stands in every trial.

Shares of wins are compared by goodness of fit (the k × (won, not) table inflates χ² by k/(k−1)); where the
listed order is known a conditional logit with position terms decides, because position bias is noise to the
shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import ndtr

from pytest_fairness.errors import FrameError
from pytest_fairness.statistics.arrays import (
    Bools,
    Coded,
    Floats,
    Ints,
    code,
    flags,
    require_column,
    require_frame,
    row_name,
)
from pytest_fairness.statistics.choices import FIRST, NEITHER, REFUSED, SECOND, UNSCORED, Choices, cross
from pytest_fairness.statistics.clusters import all_pairs, two_sided_t
from pytest_fairness.statistics.logit import Fit, LikelihoodRatio, fit_choice, likelihood_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Slates:
    """Trials with all G groups in each, as arrays of trials × groups (``labels`` in the order of the
    columns).

    ``place`` is the listed position from 0 (None where it is not known), ``rank`` the rank given (1 best;
    None for choices), ``won`` the index of the chosen group of each trial, −1 where none was chosen
    (``refused`` or not). ``cluster`` and ``block`` are one code a trial.
    """

    labels: tuple[str, ...]
    won: Ints
    place: Ints | None
    rank: Floats | None
    cluster: Ints | None
    cluster_name: str | None
    block: Ints
    levels: dict[str, Coded]
    refused: Bools

    @property
    def decided(self) -> Bools:
        """Trials with a winner, or a whole ranking."""
        if self.rank is None:
            return self.won >= 0
        return np.asarray(~np.isnan(self.rank).any(axis=1), dtype=np.bool_)


def read_slates(
    frame: pd.DataFrame,
    *,
    by: str,
    trial: str,
    chosen: str | None,
    rank: str | None,
    position: str | None,
    cluster: str | None,
    block: Sequence[str],
) -> Slates:
    """Read the long format: one row a candidate of a trial.

    Raises FrameError, naming column and row, where a trial lacks a group or has it twice, where two
    candidates of a trial are chosen or stand in the same position, or where cluster or block differ within
    a trial.
    """
    frame = require_frame(frame)
    groups, trials = code(frame, by, "group"), code(frame, trial, "trial")
    k, count = len(groups.labels), len(trials.labels)
    if k < 2:
        raise FrameError(f"column {by!r} holds one group only: a choice needs two")
    at = np.lexsort((groups.codes, trials.codes))
    expected = np.repeat(np.arange(count), k) * k + np.tile(np.arange(k), count)
    found = trials.codes[at] * k + groups.codes[at]
    if found.size != expected.size or np.any(found != expected):
        _raise_incomplete(frame, by, trial, groups, trials)
    shape = (count, k)
    levels = {name: _one_a_trial(frame, name, at, shape, "block") for name in block}
    rows = None if cluster is None else _one_a_trial(frame, cluster, at, shape, "cluster")
    refused = _any_of(frame, "refused", at, shape)
    # A trial that was never answered has chosen nobody, whatever its columns hold.
    lost = refused | _any_of(frame, "undetermined", at, shape)
    ranks = None if rank is None else _ranks(frame, rank, at, shape, lost)
    return Slates(
        labels=groups.labels,
        won=_winners(frame, chosen, at, shape, lost) if chosen is not None else np.full(count, -1, dtype=np.intp),
        place=None if position is None else _places(frame, position, at, shape),
        rank=ranks,
        cluster=None if rows is None else rows.codes,
        cluster_name=cluster,
        block=cross([level.codes for level in levels.values()], count),
        levels=levels,
        refused=refused,
    )


def _raise_incomplete(frame: pd.DataFrame, by: str, trial: str, groups: Coded, trials: Coded) -> None:
    table = np.zeros((len(trials.labels), len(groups.labels)), dtype=np.intp)
    np.add.at(table, (trials.codes, groups.codes), 1)
    which, group = np.argwhere(table != 1)[0].tolist()
    where = row_name(frame, int(np.argmax(trials.codes == which)))
    held = "is missing" if table[which, group] == 0 else f"stands {table[which, group]} times"
    raise FrameError(
        f"columns {trial!r} and {by!r}, {where}: in trial {trials.labels[which]!r} the group "
        f"{groups.labels[group]!r} {held}; every group stands once in every trial of a choice among several"
    )


def _one_a_trial(frame: pd.DataFrame, column: str, at: Ints, shape: tuple[int, int], what: str) -> Coded:
    coded = code(frame, column, what)
    codes = coded.codes[at].reshape(shape)
    if np.any(codes != codes[:, :1]):
        where = row_name(frame, int(at.reshape(shape)[np.argwhere(codes != codes[:, :1])[0, 0], 0]))
        raise FrameError(f"column {column!r}, {where}: the {what} differs between the candidates of one trial")
    return Coded(codes[:, 0], coded.labels)


def _any_of(frame: pd.DataFrame, column: str, at: Ints, shape: tuple[int, int]) -> Bools:
    """Trials of which any row is flagged in *column*."""
    return np.asarray(flags(frame, column)[at].reshape(shape).any(axis=1), dtype=np.bool_)


def _winners(frame: pd.DataFrame, chosen: str, at: Ints, shape: tuple[int, int], lost: Bools) -> Ints:
    require_column(frame, chosen, "choice")
    won = flags(frame, chosen)[at].reshape(shape)
    several = won.sum(axis=1) > 1
    if several.any():
        where = row_name(frame, int(at.reshape(shape)[int(np.argmax(several)), 0]))
        raise FrameError(f"column {chosen!r}, {where}: more than one candidate of this trial is chosen")
    return np.where(won.any(axis=1) & ~lost, won.argmax(axis=1), -1)


def _numbers(frame: pd.DataFrame, column: str, what: str, at: Ints, shape: tuple[int, int]) -> Floats:
    series = require_column(frame, column, what)
    numbers = pd.to_numeric(series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    bad = (np.isnan(numbers) & series.notna().to_numpy()) | np.isinf(numbers)
    if bad.any():
        where = int(bad.argmax())
        raise FrameError(f"column {column!r}, {row_name(frame, where)}: {series.iloc[where]!r} is no {what}")
    return numbers[at].reshape(shape)


def _places(frame: pd.DataFrame, position: str, at: Ints, shape: tuple[int, int]) -> Ints:
    numbers = _numbers(frame, position, "position", at, shape)
    missing = np.isnan(numbers).ravel()
    if missing.any():
        where = row_name(frame, int(np.asarray(at).ravel()[int(np.argmax(missing))]))
        raise FrameError(f"column {position!r}, {where}: the position is missing; fill it in or leave position=… out")
    order = np.sort(numbers, axis=1)
    bad = (np.diff(order, axis=1) == 0).any(axis=1)
    if bad.any():
        where = row_name(frame, int(at.reshape(shape)[int(np.argmax(bad)), 0]))
        raise FrameError(f"column {position!r}, {where}: two candidates of this trial stand in the same position")
    return np.asarray(numbers.argsort(axis=1).argsort(axis=1), dtype=np.intp)


def _ranks(frame: pd.DataFrame, rank: str, at: Ints, shape: tuple[int, int], lost: Bools) -> Floats:
    """Midranks within each trial (1 best); a trial with a missing rank, or *lost*, is all NaN."""
    numbers = _numbers(frame, rank, "rank", at, shape)
    lost = np.isnan(numbers).any(axis=1) | lost
    below = (numbers[:, None, :] < numbers[:, :, None]).sum(axis=2)
    ties = (numbers[:, None, :] == numbers[:, :, None]).sum(axis=2)
    return np.where(lost[:, None], np.nan, below + (ties + 1) / 2)


def as_pairs(slates: Slates) -> Choices:
    """Each two groups of a trial as a pairwise choice.

    Of whole rankings the one ranked better was chosen, ties chose neither. Of choices among k the winner
    was chosen over each of the others; between two that both lost, neither.
    """
    pairs = all_pairs(len(slates.labels))
    trials, count = slates.won.size, pairs.first.size
    i, j = np.tile(pairs.first, trials), np.tile(pairs.second, trials)
    at = np.repeat(np.arange(trials), count)
    ahead = np.ones(at.size, dtype=np.bool_)
    if slates.place is not None:
        ahead = slates.place[at, i] < slates.place[at, j]
    first, second = np.where(ahead, i, j), np.where(ahead, j, i)
    if slates.rank is None:
        won = slates.won[at]
        gap = (first == won).astype(np.float64) - (second == won)
    else:
        gap = slates.rank[at, second] - slates.rank[at, first]
    outcome = np.where(gap > 0, FIRST, np.where(gap < 0, SECOND, NEITHER))
    outcome[~slates.decided[at]] = UNSCORED
    outcome[slates.refused[at]] = REFUSED
    return Choices(
        labels=slates.labels,
        first=first,
        second=second,
        outcome=outcome.astype(np.intp),
        listed=slates.place is not None,
        clusters=() if slates.cluster is None else (slates.cluster[at],),
        cluster_name=slates.cluster_name,
        block=slates.block[at],
        levels={name: Coded(level.codes[at], level.labels) for name, level in slates.levels.items()},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Log odds of choosing group i over group j, with errors from rows and, where clustered, clusters."""

    difference: float
    row_error: float
    cluster_error: float | None
    p_row: float
    p_cluster: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Among:
    """The conditional logit of choices among k: strengths against ``labels[0]`` and the pairs' contrasts.

    ``positions`` are the log odds of each position against the first that ever won (−∞ for those that never
    did). ``fit.proper`` is False where a group always or never won: contrasts then carry p 1 and no finite
    error.
    """

    fit: Fit
    strength: Floats
    positions: Floats | None
    contrasts: tuple[Contrast, ...]
    groups: LikelihoodRatio
    order: LikelihoodRatio | None
    clusters: int | None


def choose_among(slates: Slates) -> Among:
    """Conditional logit over the trials with a winner, with position terms where the order is known.

    Errors from clusters are those of the sandwich with the factor K/(K−1), read against Student's t, df K −
    1.
    """
    used = slates.decided
    won, k = slates.won[used], len(slates.labels)
    groups = np.broadcast_to(np.eye(k)[:, 1:], (won.size, k, k - 1))
    design, offered = groups, None
    if slates.place is not None:
        place = slates.place[used]
        chosen = np.bincount(place[np.arange(won.size), won], minlength=k) > 0
        # A position that never wins has a log odds of −∞: what stood there was not on offer, and drops out.
        offered = chosen[place]
        terms = np.eye(k)[:, chosen][:, 1:]
        design = np.concatenate([groups, terms[place]], axis=2)
    fit = fit_choice(design, won, offered)
    cluster = None if slates.cluster is None else slates.cluster[used]
    robust = None if cluster is None or not fit.proper else _sandwich(fit, design, won, cluster, offered)
    count = None if cluster is None else int(np.unique(cluster).size)
    pairs = all_pairs(k)
    contrasts = tuple(
        _contrast(fit, robust, count, int(i), int(j)) for i, j in zip(pairs.first, pairs.second, strict=True)
    )
    order = positions = None
    if slates.place is not None:
        order = likelihood_ratio(fit_choice(groups, won), replace(fit, rank=2 * (k - 1)))
        positions = np.full(k, -np.inf)
        positions[chosen] = [0.0, *fit.beta[k - 1 :]]
    return Among(
        fit=fit,
        strength=np.concatenate([[0.0], fit.beta[: k - 1]]),
        positions=positions,
        contrasts=contrasts,
        groups=likelihood_ratio(fit_choice(design[:, :, k - 1 :], won, offered), fit),
        order=order,
        clusters=count,
    )


def _sandwich(fit: Fit, design: Floats, won: Ints, cluster: Ints, offered: Bools | None) -> Floats | None:
    labels, at = np.unique(cluster, return_inverse=True)
    if labels.size < 2:
        return None
    eta = design @ fit.beta
    if offered is not None:
        eta = np.where(offered, eta, -np.inf)
    p = np.exp(eta - eta.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    scores = design[np.arange(won.size), won] - np.einsum("tk,tkp->tp", p, design)
    sums = np.zeros((labels.size, scores.shape[1]))
    np.add.at(sums, at, scores)
    return np.asarray(fit.covariance @ (sums.T @ sums) @ fit.covariance * labels.size / (labels.size - 1))


def _contrast(fit: Fit, robust: Floats | None, clusters: int | None, i: int, j: int) -> Contrast:
    weights = np.zeros(fit.beta.size)
    if i:
        weights[i - 1] += 1
    if j:
        weights[j - 1] -= 1
    difference = float(weights @ fit.beta)
    if not fit.proper:
        return Contrast(difference=difference, row_error=np.inf, cluster_error=None, p_row=1.0, p_cluster=None)
    row = float(np.sqrt(max(float(weights @ fit.covariance @ weights), 0.0)))
    p_row = float(2 * ndtr(-abs(difference) / row)) if row else 1.0
    if robust is None or clusters is None:
        return Contrast(difference=difference, row_error=row, cluster_error=None, p_row=p_row, p_cluster=None)
    error = float(np.sqrt(max(float(weights @ robust @ weights), 0.0)))
    p = float(two_sided_t(np.array(difference), np.array(error), np.array(float(clusters - 1))))
    return Contrast(difference=difference, row_error=row, cluster_error=error, p_row=p_row, p_cluster=p)
