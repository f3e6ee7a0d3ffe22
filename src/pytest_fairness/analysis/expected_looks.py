"""Names that a test is expected to ask before its looks decide: of a system that treats everybody
alike, of one that treats a group worse by d = .5, and at most; and how often the former passes.

By normal theory, without a draw. The estimates of a pair of groups at its looks are jointly normal;
a pair is green where its interval of 1 − 2b lies inside the margin, and stays so: the chance that
it is still open follows by the recursion of ``statistics/spending.py``. Chances of all pairs follow
from that of one by the distribution of the range of normal means (Tukey's), those of red from the
largest of the differences of the moved group, at the level a over the pairs. A group whose pairs
are all green is asked no more. Yes/no outcomes are compared by log odds and, from 20 names, by
points with Newcombe's interval (1998).

Against simulated audits of 5 templates × 2 repetitions (``docs/looks.md``), in units of 20 names:
fair within .1 (numbers 2 and 4 groups, approvals .5 and .9, .98), approvals .95 .2 too low; d = .5
within .1. Left out are the variance of the error, which smooths these chances, and templates by
themselves. Ratings, labels and narratives are reckoned as numbers.

Standard library only: the controller of a session, which announces the figures, loads no numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from math import comb, copysign, erfc, exp, log, pi, sqrt
from statistics import NormalDist

from pytest_fairness.analysis.looks import LookPlan
from pytest_fairness.design.stages import BASE, RATES, SCORES
from pytest_fairness.model import OutcomeKind

#: The margin of a verdict, and the limit of rates that are practically equal: those of the policy,
#: whose modules load numpy.
MARGIN, NEAR = 0.5, 0.05
FEWEST_TRIALS = dict.fromkeys(OutcomeKind, 30) | {
    OutcomeKind.BINARY: 50,
    OutcomeKind.CATEGORICAL: 50,
}
"""Fewest trials a group that may carry a verdict: those of the policy."""
_RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)
_LOGIT_TO_D = sqrt(3) / pi
_RANKS = pi / 3
"""Variance of d from ranks over that of d from means (Lehmann 1975)."""
_MOST_NAMES = 1280
_STEPS = 32
"""Steps of each integral over a pair that is still open: twice as many change no figure by .005."""
_FAR = 5.0
_STANDARD = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedDesign:
    """A design as its looks see it: the *plan* of an assertion, the *kind* of outcome (*rate* of a
    yes/no outcome), the *groups*, the *rows* (trials) that a name brings and the share *icc* of the
    variance that lies between names. ``drops``: a group whose pairs are all green is asked no more.
    """

    plan: LookPlan
    kind: OutcomeKind
    groups: int
    rows: float
    rate: float = 0.5
    icc: float = 0.04
    names_of_each: float = 1.0
    drops: bool = True

    @property
    def pairs(self) -> int:
        """Return how many pairs the groups make."""
        return comb(self.groups, 2)

    def variance(self, rate: float) -> float:
        """Return the variance of the effect of one name, of a group whose rate is *rate*."""
        if self.kind in _RATES:
            return self.icc + _LOGIT_TO_D**2 / (self.rows * rate * (1 - rate))
        return _RANKS * (self.icc + (1 - self.icc) / self.rows)

    @property
    def moved_rate(self) -> float:
        """Return the rate of a group that is treated worse: nearer to one half."""
        logit = log(self.rate / (1 - self.rate))
        return 1 / (1 + exp(copysign(MARGIN / _LOGIT_TO_D, self.rate - 0.5) - logit))


@dataclass(frozen=True)
class Expectation:
    """Names a group that a *design* asks: ``fair`` and ``biased`` are to be expected of a fair
    system and of one that treats a group worse by d = .5, ``most`` those of the last look.
    """

    design: LookedDesign

    @property
    def most(self) -> int:
        return self.design.plan.names[-1]

    @cached_property
    def fair(self) -> float:
        needed = [1.0]
        for open_pair in self._open_pairs:
            needed.append(1 - _all_inside(_inside(open_pair), self.design))
        return self._asked(needed)

    @cached_property
    def biased(self) -> float:
        return self._asked([1.0, *self._not_red])

    @cached_property
    def passes(self) -> float:
        """Return how often a fair system passes, alarms left out."""
        return _range(_inside(self._open_pairs[-1]), self.design.groups)

    def _asked(self, needed: Sequence[float]) -> float:
        """Return the names asked where each look is needed so often, at least the first."""
        steps = (more - fewer for fewer, more in pairwise((0, *self.design.plan.names)))
        return sum(share * step for share, step in zip(needed, steps, strict=False))

    @cached_property
    def _open_pairs(self) -> list[float]:
        """The chance that an equal pair is not green at any look so far, look by look."""
        design = self.design
        chances = []
        path = [(0.0, 1.0)]
        before = 0
        for number, names in enumerate(design.plan.names, 1):
            lowest = _reach(design, number) * sqrt(names)
            step = sqrt(names - before)
            width = _FAR * sqrt(names) / _STEPS
            places = [lowest + (at + 0.5) * width for at in range(_STEPS)]
            # By symmetry the half above 0 stands for both.
            path = [
                (place, width * (_density(path, place, step) + _density(path, -place, step)))
                for place in places
            ]
            chances.append(min(1.0, sum(weight for _, weight in path)))
            before = names
        return chances

    @property
    def _not_red(self) -> list[float]:
        """The chance that no pair of a group that differs by d = .5 is red, look by look."""
        design = self.design
        moved = design.rate
        if design.kind in _RATES:
            moved = design.moved_rate
        variances = design.variance(design.rate) + design.variance(moved)
        chances = []
        for number, names in enumerate(design.plan.names, 1):
            clusters = names * design.names_of_each
            df = _df(clusters)
            boundary = _t(design.plan.look(number).red / design.pairs / 2, df)
            # Noncentral t, nearly (Johnson & Welch 1940).
            short = boundary * (1 - 1 / (4 * df)) - MARGIN / sqrt(variances / clusters)
            reach = short / sqrt(1 + boundary**2 / (2 * df))
            chances.append(_all_below(reach, design.groups))
        return chances


@lru_cache(maxsize=1024)
def expectation(design: LookedDesign) -> Expectation:
    """Return how many names *design* is expected to ask; of the same design it is reckoned once."""
    return Expectation(design)


def looks_to_pass(design: LookedDesign, share: float) -> Expectation | None:
    """Return the shortest looks by which *design* passes a fair system in so large a *share* of
    runs: 20 names and twice as many, from the ladder of its kind on; None beyond 1,280 names.
    """
    ladder: tuple[int, ...] = SCORES
    if design.kind in _RATES:
        ladder = RATES
    names = BASE
    while names <= _MOST_NAMES:
        looks = tuple(look for look in ladder if look < names)
        while looks and 2 * looks[-1] < names:
            looks = (*looks, 2 * looks[-1])
        plan = replace(design.plan, names=(*looks, names))
        expected = expectation(replace(design, plan=plan))
        if expected.passes >= share:
            return expected
        names *= 2
    return None


def _reach(design: LookedDesign, number: int) -> float:
    """Return how many standard errors from 0 an equal pair is green at look *number*."""
    look = design.plan.look(number)
    clusters = look.names * design.names_of_each
    if look.tiny or clusters < 2:
        return 0.0
    quantile = _t(look.green, _df(clusters))
    error = sqrt(2 * design.variance(design.rate) / clusters)
    reach = MARGIN / error - quantile
    if design.kind in _RATES and not look.early:
        reach = max(reach, _reach_by_points(design, clusters, quantile))
    return max(reach, 0.0)


def _reach_by_points(design: LookedDesign, clusters: float, quantile: float) -> float:
    """Return the same by points: Newcombe's interval of the difference of two equal rates."""
    rate = design.rate
    spread = rate * (1 - rate)
    between = design.icc / _LOGIT_TO_D**2 * spread
    size = clusters * design.rows / (1 + design.rows * between)
    square = quantile**2 / size
    middle = (rate + square / 2) / (1 + square)
    half = sqrt(square * (spread + square / 4)) / (1 + square)
    ends = (rate - middle + half, middle + half - rate)
    error = sqrt(2 * spread / size)
    return (NEAR - sqrt(ends[0] ** 2 + ends[1] ** 2)) / error


# ---------------------------------------------------------------- normal means


def _inside(open_pair: float) -> float:
    """Return the standard errors within which a pair is that is open with the chance
    *open_pair*.
    """
    return _STANDARD.inv_cdf(1 - min(max(open_pair, 1e-12), 1 - 1e-12) / 2)


def _all_inside(reach: float, design: LookedDesign) -> float:
    """Return the chance that a group is asked no more once pairs are green within *reach*."""
    if not design.drops:
        return _range(reach, design.groups)
    around = reach * sqrt(2)
    return sum(
        weight * (_below(place + around) - _below(place - around)) ** (design.groups - 1)
        for place, weight in _PLACES
    )


def _range(reach: float, groups: int) -> float:
    """Return the chance that all pairs of equal *groups* differ by less than *reach* errors."""
    around = reach * sqrt(2)
    share = groups * sum(
        weight * (_below(place + around) - _below(place)) ** (groups - 1)
        for place, weight in _PLACES
    )
    return min(share, 1.0)


def _all_below(reach: float, groups: int) -> float:
    """Return the chance that one group exceeds none of the others by *reach* errors."""
    around = reach * sqrt(2)
    return sum(weight * _below(around - place) ** (groups - 1) for place, weight in _PLACES)


def _density(path: Sequence[tuple[float, float]], place: float, step: float) -> float:
    """Return how likely *path* comes to *place* in a step of that size."""
    return sum(weight * _bell((place - start) / step) for start, weight in path) / step


def _bell(z: float) -> float:
    return exp(-z * z / 2) / sqrt(2 * pi)


def _below(z: float) -> float:
    return erfc(-z / sqrt(2)) / 2


_PLACES = tuple((at / 8, _bell(at / 8) / 8) for at in range(-36, 37))
"""Places of a standard normal mean, with their weights."""


def _df(clusters: float) -> float:
    return max(2 * clusters - 2, 1.0)


def _t(tail: float, df: float) -> float:
    """Return the quantile of Student's t that is exceeded with the chance *tail* (Cornish & Fisher
    1938, three terms).
    """
    z = _STANDARD.inv_cdf(1 - tail)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / df + second / df**2
