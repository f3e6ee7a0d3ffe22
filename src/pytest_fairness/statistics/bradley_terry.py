"""Bradley-Terry strengths: of each group when chosen against the others, and of the position.

Between two: Bradley–Terry (1952) with a first-position term (Davidson & Beaver 1977), as a binomial
logit: logit P(first-listed is chosen) = position + strength(first) − strength(second). Among
several: the conditional logit (McFadden 1974) with a term for each position, because position bias
is noise to the shares of wins.

Both likelihoods are concave, so Newton with step halving finds the maximum where there is one.
Where there is none (separation: some direction only ever helps) a linear programme says so
beforehand (Konis 2007, *Linear programming algorithms for detecting separated data in binary
logistic regression models*), and a ridge fit takes its place.

Where there is a maximum, the fits are those of ``GLM(family=Binomial())`` and of
``ConditionalLogit`` of statsmodels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc, logsumexp, ndtr, softmax, xlogy

from pytest_fairness.statistics.arrays import Bools, Coded, Floats, Ints, means_of, sums
from pytest_fairness.statistics.choices import FIRST, Choices, Slates
from pytest_fairness.statistics.clusters import all_pairs, two_sided_t

RIDGE = 1.0
"""Penalty ½·β² on each coefficient where the likelihood has no maximum: a standard normal prior on
log odds.
"""


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted logit: coefficients, their covariance, the log likelihood (no constants) and the
    model's rank.

    ``proper`` is False where the maximum does not exist or is not unique; the coefficients are then
    those of the ridge fit, and their covariance says nothing about error.
    """

    beta: Floats
    covariance: Floats
    log_likelihood: float
    rank: int
    proper: bool

    @property
    def errors(self) -> Floats:
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
    p = None
    if smaller.proper and larger.proper and df > 0:
        p = float(chdtrc(df, statistic))
    return LikelihoodRatio(statistic, df, p)


# ---------------------------------------------------------------- one of two


@dataclass(frozen=True, slots=True)
class Strengths:
    """Log odds of each compared group against the first of them (itself 0), with errors; none
    without a maximum.

    ``position`` is the log odds of being chosen for being listed first (None where the order is not
    known). ``groups`` and ``order`` are the likelihood ratios of leaving out the strengths, and the
    position. ``proper`` is False where some group always won or lost, or not all met: the strengths
    are then those of a ridge fit, for orientation.
    """

    strength: dict[str, float]
    error: dict[str, float] | None
    position: float | None
    position_error: float | None
    groups: LikelihoodRatio
    order: LikelihoodRatio | None
    deviance: float
    proper: bool


def bradley_terry(choices: Choices) -> Strengths | None:
    """Fit the strengths of all groups that were compared; trials count as independent. None without
    a choice.
    """
    there, design, won = _design(choices)
    if not won.size:
        return None
    at = int(choices.listed)
    full = fit_binomial(design, won)
    p, trials = means_of(won, choices.listing[choices.decided])
    p = p[trials > 0]
    trials = trials[trials > 0]
    saturated = float(np.sum(trials * (xlogy(p, p) + xlogy(1 - p, 1 - p))))
    labels = [choices.labels[group] for group in there]
    strengths = Strengths(
        strength=dict(zip(labels, [0.0, *full.beta[at:].tolist()], strict=True)),
        error=None,
        position=None,
        position_error=None,
        groups=likelihood_ratio(fit_binomial(design[:, :at], won), full),
        order=None,
        deviance=max(0.0, 2 * (saturated - full.log_likelihood)),
        proper=full.proper,
    )
    if full.proper:
        errors = dict(zip(labels, [0.0, *full.errors[at:].tolist()], strict=True))
        strengths = replace(strengths, error=errors)
    if choices.listed:
        order = likelihood_ratio(fit_binomial(design[:, 1:], won), full)
        strengths = replace(strengths, position=float(full.beta[0]), order=order)
        if full.proper:
            strengths = replace(strengths, position_error=float(full.errors[0]))
    return strengths


def interaction(choices: Choices, level: Coded) -> LikelihoodRatio:
    """Do the strengths differ between the levels of a block column (criteria, role)? Likelihood
    ratio.

    Both models have a position term for each level; the larger one has its own strengths for each
    level too.
    """
    main, products, won = interaction_terms(choices, level)
    return likelihood_ratio(
        fit_binomial(main, won), fit_binomial(np.concatenate([main, products], axis=1), won)
    )


def interaction_terms(choices: Choices, level: Coded) -> tuple[Floats, Floats, Floats]:
    """The terms of the smaller model of :func:`interaction`, one row a decided trial, those that it
    lacks, and whether the first-listed won."""
    _, design, won = _design(choices)
    here = level.codes[choices.decided]
    dummies = (here[:, None] == np.unique(here)[None, 1:]).astype(np.float64)
    products = design[:, int(choices.listed) :, None] * dummies[:, None, :]
    main = design
    if choices.listed:
        main = np.concatenate([design, dummies], axis=1)
    return main, products.reshape(len(design), -1), won


def _design(choices: Choices) -> tuple[Ints, Floats, Floats]:
    """The groups that stand anywhere; a row each decided trial: position where known, and +1/−1 for
    all groups but the first; and whether the first-listed won."""
    done = choices.decided
    size = len(choices.labels)
    first = choices.first[done]
    second = choices.second[done]
    there = np.unique(np.concatenate([first, second]))
    groups = (np.eye(size)[first] - np.eye(size)[second])[:, there]
    design = np.concatenate([np.ones((first.size, int(choices.listed))), groups[:, 1:]], axis=1)
    return there, design, (choices.outcome[done] == FIRST).astype(np.float64)


# ---------------------------------------------------------------- one of several


@dataclass(frozen=True, slots=True, kw_only=True)
class Among:
    """The conditional logit of choices among k: strengths against ``labels[0]``, and the contrasts
    of all pairs.

    ``positions`` are the log odds of each position against the first that ever won (−∞ for those
    that never did). ``difference`` is the log odds of choosing the first of a pair over the second,
    with its error from rows and, where there are several ``clusters``, from those, and their p; all
    of it void where ``fit`` is improper.
    """

    fit: Fit
    strength: Floats
    positions: Floats | None
    groups: LikelihoodRatio
    order: LikelihoodRatio | None
    clusters: int | None
    difference: Floats
    row_error: Floats
    cluster_error: Floats | None
    p_row: Floats
    p_cluster: Floats | None


def choose_among(slates: Slates) -> Among:
    """Conditional logit over the trials with a winner, with position terms where the order is
    known.

    Errors from clusters are those of the sandwich with the factor K/(K−1), read against Student's
    t, df K − 1.
    """
    used = slates.decided
    won = slates.won[used]
    k = len(slates.labels)
    groups = np.broadcast_to(np.eye(k)[:, 1:], (won.size, k, k - 1))
    design = groups
    offered = np.ones((won.size, k), dtype=np.bool_)
    order = positions = None
    if slates.place is not None:
        place = slates.place[used]
        chosen = np.bincount(place[np.arange(won.size), won], minlength=k) > 0
        # A position that never wins has a log odds of −∞: what stood there was not on offer, and
        # drops out.
        offered = chosen[place]
        design = np.concatenate([groups, np.eye(k)[:, chosen][:, 1:][place]], axis=2)
    fit = fit_choice(design, won, offered)
    if slates.place is not None:
        order = likelihood_ratio(fit_choice(groups, won), replace(fit, rank=2 * (k - 1)))
        positions = np.full(k, -np.inf)
        positions[chosen] = [0.0, *fit.beta[k - 1 :]]
    pairs = all_pairs(k)
    weights = np.zeros((pairs.first.size, fit.beta.size))
    weights[:, : k - 1] = (np.eye(k)[pairs.first] - np.eye(k)[pairs.second])[:, 1:]

    def errors(covariance: Floats) -> Floats:
        return np.asarray(
            np.sqrt(np.maximum(np.einsum("pi,ij,pj->p", weights, covariance, weights), 0.0))
        )

    difference = weights @ fit.beta
    row_error = errors(fit.covariance)
    count = cluster_error = p_cluster = None
    if slates.cluster is not None:
        labels, cluster = np.unique(slates.cluster[used], return_inverse=True)
        count = int(labels.size)
        if fit.proper and count > 1:
            eta = np.where(offered, design @ fit.beta, -np.inf)
            expected = np.einsum("tk,tkp->tp", softmax(eta, axis=1), design)
            scores = np.zeros((count, fit.beta.size))
            np.add.at(scores, cluster, design[np.arange(won.size), won] - expected)
            cluster_error = errors(
                fit.covariance @ (scores.T @ scores) @ fit.covariance * count / (count - 1)
            )
            p_cluster = two_sided_t(
                difference, cluster_error, np.full(difference.size, count - 1.0)
            )
    z = np.divide(difference, row_error, out=np.zeros(difference.size), where=row_error > 0)
    return Among(
        fit=fit,
        strength=np.concatenate([[0.0], fit.beta[: k - 1]]),
        positions=positions,
        groups=likelihood_ratio(fit_choice(design[:, :, k - 1 :], won, offered), fit),
        order=order,
        clusters=count,
        difference=difference,
        row_error=row_error,
        cluster_error=cluster_error,
        p_row=2 * ndtr(-np.abs(z)),
        p_cluster=p_cluster,
    )


def fit_binomial(design: Floats, wins: Floats, trials: Floats | None = None) -> Fit:
    """logit P = design·β, where *wins* of *trials* (length n; by default 1 each) were observed at
    each row of *design* (n × p): the choice between the row and nothing."""
    rows, at = np.unique(design, axis=0, return_inverse=True)
    won = sums(at.ravel(), wins, len(rows))
    lost = sums(at.ravel(), trials, len(rows)) - won
    pairs = np.stack([rows, np.zeros_like(rows)], axis=1)
    chosen = np.repeat([0, 1], [int((won > 0).sum()), int((lost > 0).sum())])
    weight = np.concatenate([won[won > 0], lost[lost > 0]])
    return fit_choice(np.concatenate([pairs[won > 0], pairs[lost > 0]]), chosen, weight=weight)


def fit_choice(
    design: Floats, chosen: Ints, offered: Bools | None = None, weight: Floats | None = None
) -> Fit:
    """Conditional logit: one of k alternatives is chosen in each trial.

    *design* is trials × alternatives × p, *chosen* the index of the winner of each trial, *offered*
    (trials × alternatives) which alternatives there were; by default all. A trial counts *weight*
    times, by default once.
    """
    size = design.shape[2]
    if offered is None:
        offered = np.ones(design.shape[:2], dtype=np.bool_)
    if weight is None:
        weight = np.ones(chosen.size)
    won = design[np.arange(chosen.size), chosen]
    # Rows of which a larger product with β only ever helps.
    signed = (won[:, None, :] - design)[offered]
    rank = 0
    if signed.size:
        rank = int(np.linalg.matrix_rank(signed))
    proper = not size or (rank == size and not separated(signed))
    penalty = RIDGE * np.eye(size)
    if proper:
        penalty = np.zeros((size, size))
    likelihood = _Likelihood(design, chosen, offered, weight, won, penalty)
    beta, value, information = likelihood.highest()
    covariance = np.linalg.pinv(information + penalty, hermitian=True)
    return Fit(beta, np.asarray(covariance, dtype=np.float64), value, rank, proper)


@dataclass(frozen=True, slots=True)
class _Likelihood:
    """The log likelihood of the choices of :func:`fit_choice`, less ½·β′·penalty·β; ``won`` are the
    rows of the design that were chosen."""

    design: Floats
    chosen: Ints
    offered: Bools
    weight: Floats
    won: Floats
    penalty: Floats

    def parts(self, beta: Floats) -> tuple[float, Floats, Floats]:
        """The log likelihood without the penalty, its gradient and its information."""
        eta = np.where(self.offered, self.design @ beta, -np.inf)
        total = logsumexp(eta, axis=1)
        p = np.exp(eta - total[:, None])
        mean = np.einsum("tk,tkp->tp", p, self.design)
        weight = self.weight[:, None]
        second = np.einsum("tk,tkp,tkq->pq", p * weight, self.design, self.design)
        likelihood = self.weight @ (eta[np.arange(self.chosen.size), self.chosen] - total)
        gradient = self.weight @ (self.won - mean)
        return float(likelihood), gradient, second - mean.T @ (mean * weight)

    def highest(self) -> tuple[Floats, float, Floats]:
        """The β of the maximum by Newton's steps, the log likelihood and the information there."""
        beta = np.zeros(self.design.shape[2])
        value, gradient, information = self.parts(beta)
        if not beta.size:
            return beta, value, information
        for _ in range(200):
            slope = gradient - self.penalty @ beta
            solved = np.linalg.lstsq(information + self.penalty, slope, rcond=None)[0]
            step = np.asarray(solved, dtype=np.float64)
            least = value - self._penalised(beta)
            step, (value, gradient, information) = self._uphill(beta, step, least)
            beta = beta + step
            if float(np.max(np.abs(step))) < 1e-11 * (1 + float(np.max(np.abs(beta)))):
                break
        return beta, value, information

    def _uphill(
        self, beta: Floats, step: Floats, least: float
    ) -> tuple[Floats, tuple[float, Floats, Floats]]:
        """*step*, halved until it does not fall below *least*, and the parts where it ends."""
        while True:
            parts = self.parts(beta + step)
            reached = parts[0] - self._penalised(beta + step)
            if reached >= least - 1e-12 * abs(least) or not np.any(step):
                return step, parts
            step = step / 2

    def _penalised(self, beta: Floats) -> float:
        return float(beta @ self.penalty @ beta) / 2


def separated(signed: Floats) -> bool:
    """Return whether some β has *signed*·β ≥ 0 in every row and > 0 in one: the likelihood then has
    no maximum.
    """
    from scipy.optimize import linprog  # a third of a second, for choices only

    rows = np.unique(np.round(signed, 12), axis=0)
    rows = rows[np.any(rows != 0, axis=1)]
    if not rows.size:
        return False
    # A row that stands in the table with both signs is fixed at 0 by the constraints, as it should
    # be.
    solved = linprog(
        -rows.sum(axis=0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1), method="highs"
    )
    return solved.fun is None or -float(solved.fun) > 1e-7
