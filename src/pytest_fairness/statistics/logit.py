"""Logistic likelihoods by Newton's method: grouped binomial, and one choice among several.

Both are concave, so Newton with step halving finds the maximum where there is one. Where there is none
(separation: some direction only ever helps) a linear programme says so beforehand (Konis 2007, *Linear
programming algorithms for detecting separated data in binary logistic regression models*), and a ridge fit
takes its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, expit, log_expit, logsumexp

from pytest_fairness.statistics.arrays import Bools, Floats, Ints

RIDGE = 1.0
"""Penalty ½·β² on each coefficient where the likelihood has no maximum: a standard normal prior on log
odds.
"""


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted logit: coefficients, their covariance, the log likelihood (no constants) and the model's rank.

    ``proper`` is False where the maximum does not exist or is not unique; the coefficients are then those
    of the ridge fit, and their covariance says nothing about error.
    """

    beta: Floats
    covariance: Floats
    log_likelihood: float
    rank: int
    proper: bool

    @property
    def errors(self) -> Floats:
        """Standard errors of the coefficients."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


@dataclass(frozen=True, slots=True)
class LikelihoodRatio:
    """A likelihood-ratio test of nested fits; ``p`` is None where one of them has no maximum."""

    statistic: float
    df: int
    p: float | None


def likelihood_ratio(smaller: Fit, larger: Fit) -> LikelihoodRatio:
    """Twice the gain in log likelihood, χ² with the difference of the ranks."""
    df = larger.rank - smaller.rank
    statistic = max(0.0, 2 * (larger.log_likelihood - smaller.log_likelihood))
    usable = smaller.proper and larger.proper and df > 0
    return LikelihoodRatio(statistic, df, float(chdtrc(df, statistic)) if usable else None)


def fit_binomial(design: Floats, wins: Floats, trials: Floats) -> Fit:
    """logit P = design·β, where *wins* of *trials* (length n) were observed at each row of *design* (n ×
    p).
    """
    losses = trials - wins

    def parts(beta: Floats) -> tuple[float, Floats, Floats]:
        eta = design @ beta
        p = expit(eta)
        # log P and log(1 − P) without cancellation; a row that was never lost must not meet 0 · −∞
        value = float(np.sum(wins * log_expit(eta) + losses * log_expit(-eta)))
        return value, design.T @ (wins - trials * p), design.T @ (design * (trials * p * (1 - p))[:, None])

    signed = np.concatenate([design[wins > 0], -design[losses > 0]])
    return _fit(parts, signed, design.shape[1])


def fit_choice(design: Floats, chosen: Ints, offered: Bools | None = None) -> Fit:
    """Conditional logit (McFadden 1974): one of k alternatives is chosen in each trial.

    *design* is trials × alternatives × p, *chosen* the index of the winner of each trial, *offered* (trials ×
    alternatives) which alternatives there were; by default all.
    """
    at = np.arange(chosen.size)
    there = np.ones(design.shape[:2], dtype=np.bool_) if offered is None else offered
    won = design[at, chosen]

    def parts(beta: Floats) -> tuple[float, Floats, Floats]:
        eta = np.where(there, design @ beta, -np.inf)
        total = logsumexp(eta, axis=1)
        p = np.exp(eta - total[:, None])
        mean = np.einsum("tk,tkp->tp", p, design)
        second = np.einsum("tk,tkp,tkq->pq", p, design, design)
        gradient = (won - mean).sum(axis=0)
        return float(np.sum(eta[at, chosen] - total)), gradient, second - mean.T @ mean

    against = won[:, None, :] - design
    return _fit(parts, against[there], design.shape[2])


def _fit(parts: Callable[[Floats], tuple[float, Floats, Floats]], signed: Floats, size: int) -> Fit:
    """*signed* are rows of which a larger product with β only ever helps: the test of separation."""
    rank = int(np.linalg.matrix_rank(signed)) if signed.size else 0
    if size == 0:
        return Fit(np.zeros(0), np.zeros((0, 0)), parts(np.zeros(0))[0], 0, True)
    proper = rank == size and not separated(signed)
    penalty = 0.0 if proper else RIDGE
    beta = np.zeros(size)
    value, gradient, information = parts(beta)
    for _ in range(200):
        score = gradient - penalty * beta
        step = np.linalg.lstsq(information + penalty * np.eye(size), score, rcond=None)[0]
        best = value - penalty * float(beta @ beta) / 2
        while True:
            trial = beta + step
            value, gradient, information = parts(trial)
            if value - penalty * float(trial @ trial) / 2 >= best - 1e-12 * abs(best) or not np.any(step):
                break
            step = step / 2
        beta = trial
        if float(np.max(np.abs(step))) < 1e-11 * (1 + float(np.max(np.abs(beta)))):
            break
    covariance = np.asarray(np.linalg.pinv(information + penalty * np.eye(size), hermitian=True), dtype=np.float64)
    return Fit(beta, covariance, value, rank, proper)


def separated(signed: Floats) -> bool:
    """Whether some β has *signed*·β ≥ 0 in every row and > 0 in one: the likelihood then has no maximum."""
    from scipy.optimize import linprog  # a third of a second, for choices only

    rows = np.unique(np.round(signed, 12), axis=0)
    rows = rows[np.any(rows != 0, axis=1)]
    if not rows.size:
        return False
    # A row that stands in the table with both signs is fixed at 0 by the constraints, as it should be.
    solved = linprog(-rows.sum(axis=0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1), method="highs")
    return solved.fun is None or -float(solved.fun) > 1e-7
