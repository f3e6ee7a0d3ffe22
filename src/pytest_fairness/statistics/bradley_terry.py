"""How strong is each group when chosen against the others, and what does the position add?

Bradley–Terry (1952) with a first-position term, as a binomial logit: logit P(first-listed is chosen) =
position + strength(first) − strength(second). Davidson & Beaver (1977) for the order term.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_fairness.statistics.arrays import Coded, Floats, Ints
from pytest_fairness.statistics.choices import FIRST, Choices, cross
from pytest_fairness.statistics.logit import Fit, LikelihoodRatio, fit_binomial, likelihood_ratio


@dataclass(frozen=True, slots=True)
class Strengths:
    """Log odds of each compared group against the first of them (itself 0), with errors; none without a
    maximum.

    ``position`` is the log odds of being chosen for being listed first (None where the order is not known).
    ``groups`` and ``order`` are the likelihood ratios of leaving out the strengths, and the position.
    ``proper`` is False where some group always won or lost, or not all were compared with each other: the
    strengths are then those of a ridge fit, for orientation, without errors and p.
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
    """Fit the strengths of all groups that were compared; trials count as independent. None without a
    choice.
    """
    table = _group(choices, np.zeros(choices.first.size, dtype=np.intp))
    if not table.trials.size:
        return None
    wins, trials = table.wins, table.trials
    full = fit_binomial(table.design, wins, trials)
    at = table.positions
    named = dict(zip(table.labels, [0.0, *full.beta[at:].tolist()], strict=True))
    errors = dict(zip(table.labels, [0.0, *full.errors[at:].tolist()], strict=True))
    return Strengths(
        strength=named,
        error=errors if full.proper else None,
        position=float(full.beta[0]) if at else None,
        position_error=float(full.errors[0]) if at and full.proper else None,
        groups=likelihood_ratio(fit_binomial(table.design[:, :at], wins, trials), full),
        order=likelihood_ratio(fit_binomial(table.design[:, 1:], wins, trials), full) if at else None,
        deviance=max(0.0, 2 * (_saturated(wins, trials) - full.log_likelihood)),
        proper=full.proper,
    )


def interaction(choices: Choices, level: Coded) -> LikelihoodRatio:
    """Do the strengths differ between the levels of a block column (criteria, role)? Likelihood ratio.

    Both models have a position term for each level; the larger one has its own strengths for each level too.
    """
    table = _group(choices, level.codes)
    main, products = _terms(table.design, table.positions, table.level)
    return likelihood_ratio(
        fit_binomial(main, table.wins, table.trials),
        fit_binomial(np.concatenate([main, products], axis=1), table.wins, table.trials),
    )


def without_interaction(choices: Choices, level: Coded) -> tuple[Fit, Floats, Floats]:
    """The smaller model of :func:`interaction`; its terms, one row a decided trial; and those that it lacks."""
    table = _group(choices, level.codes)
    fit = fit_binomial(_terms(table.design, table.positions, table.level)[0], table.wins, table.trials)
    done = choices.decided
    _, design = _design(choices.first[done], choices.second[done], len(choices.labels), choices.listed)
    return fit, *_terms(design, int(choices.listed), level.codes[done])


def _terms(design: Floats, positions: int, level: Ints) -> tuple[Floats, Floats]:
    dummies = (level[:, None] == np.unique(level)[None, 1:]).astype(np.float64)
    main = np.concatenate([design, dummies], axis=1) if positions else design
    return main, (design[:, positions:, None] * dummies[:, None, :]).reshape(len(design), -1)


def _design(first: Ints, second: Ints, size: int, listed: bool) -> tuple[Ints, Floats]:
    """The groups that stand anywhere, and a row each trial: position, and +1/−1 for all of them but the first."""
    there = np.unique(np.concatenate([first, second]))
    groups = (np.eye(size)[first] - np.eye(size)[second])[:, there]
    return there, np.concatenate([np.ones((first.size, int(listed))), groups[:, 1:]], axis=1)


@dataclass(frozen=True, slots=True)
class _Table:
    """One row for each ordered pair and level that was decided: design, wins of the first-listed, trials,
    level.

    The first ``positions`` columns (1, or 0 where the order is not known) are the position's, the others
    those of ``labels[1:]``.
    """

    labels: list[str]
    design: Floats
    positions: int
    wins: Floats
    trials: Floats
    level: Ints


def _group(choices: Choices, level: Ints) -> _Table:
    done = choices.decided
    first, second, level = choices.first[done], choices.second[done], level[done]
    key = cross([level, first, second], first.size)
    _, index = np.unique(key, return_index=True)
    won = choices.outcome[done] == FIRST
    there, design = _design(first[index], second[index], len(choices.labels), choices.listed)
    return _Table(
        labels=[choices.labels[at] for at in there],
        design=design,
        positions=int(choices.listed),
        wins=np.bincount(key, won, minlength=index.size).astype(np.float64),
        trials=np.bincount(key, minlength=index.size).astype(np.float64),
        level=level[index],
    )


def _saturated(wins: Floats, trials: Floats) -> float:
    p = wins / trials
    won, lost = np.log(np.where(p > 0, p, 1.0)), np.log(np.where(p < 1, 1 - p, 1.0))
    return float(np.sum(wins * won + (trials - wins) * lost))
