"""Plan a sample: names, templates, repetitions and calls for an effect that must not be missed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.planning import Shape, detectable, pass_probability, smallest
from pytest_fairness.verdict import ALPHA, MARGIN, MINIMUM_N, RECOMMENDED_CLUSTERS
from pytest_fairness.wording import percent

AT_MOST = 5000
"""Names a group, or templates, beyond which nothing is planned."""
OUT_OF_REACH = 0.05
"""A PASS less likely than this, where nothing differs, is not to be waited for."""
_RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL, OutcomeKind.CATEGORICAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan:
    """A design that finds *effect* in every pair with *power*.

    ``names`` a group in each of ``templates``, each asked ``repetitions`` times: ``calls`` in all,
    ``calls_per_group`` for each group. ``mde`` is what the design detects with *power*,
    ``pass_probability`` how often a pair without any difference PASSes. ``notes`` say what had to give.
    """

    kind: OutcomeKind
    groups: int
    effect: float
    power: float
    icc: float
    alpha: float
    family: int
    names: int
    templates: int
    repetitions: int
    calls_per_group: int
    calls: int
    mde: float
    pass_probability: float
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The plan in one sentence."""
        return (
            f"{self.names} names × {self.templates} templates × {self.repetitions} repetitions in each of "
            f"{self.groups} groups, {self.calls:,} calls: finds d = {self.mde:.2f} in {percent(self.power)} of audits "
            f"(family of {self.family} at {self.alpha:g}, ICC {self.icc:g}); a pair without a difference passes in "
            f"{percent(self.pass_probability)}."
        )


def plan_sample(
    kind: str | OutcomeKind = OutcomeKind.NUMERIC,
    *,
    groups: int = 2,
    effect: float = 0.5,
    power: float = 0.8,
    icc: float = 0.04,
    alpha: float = ALPHA,
    metrics: int = 1,
    names: int | None = None,
    templates: int = 5,
    repetitions: int = 2,
    rate: float = 0.5,
) -> SamplePlan:
    """The smallest balanced design that finds a difference of *effect* (d scale) between any two groups.

    By default the number of names is looked for, with *templates* and *repetitions* as given: names are
    what buys power. With *names* given (a name bank has so many), templates and then repetitions are looked
    for instead. *icc* is the share of the outcome's variance that lies between the names of a group. The
    family is groups·(groups−1)/2 pairs × *metrics*, corrected by Bonferroni. *rate* is the expected rate of
    a yes/no outcome: rare ones take more. At least the minimum sample size of the kind is planned.

    Raises UsageError for an argument out of range, or where no affordable design finds the effect (the
    message says what limits it).
    """
    found = _kind(kind)
    _check(groups, effect, power, icc, alpha, rate)
    for what, value in (("metrics", metrics), ("templates", templates), ("repetitions", repetitions)):
        if value < 1:
            raise UsageError(f"{what}={value!r}: at least 1")
    family = groups * (groups - 1) // 2 * metrics
    inflation = _inflation(found, rate)
    notes: list[str] = []

    def reach(shape: Shape) -> float:
        return detectable(shape, icc=icc, inflation=inflation, family=family, alpha=alpha, power=power)

    if names is None:
        fewest = smallest(
            lambda k: reach(Shape(groups=groups, names=k, templates=templates, repetitions=repetitions)) <= effect,
            2,
            AT_MOST,
        )
        if fewest is None:
            raise UsageError(f"effect={effect!r}: it takes over {AT_MOST} names a group; look for a larger effect")
        # A model at temperature 0 repeats itself, so the minimum has to be met by distinct cells.
        names = max(fewest, math.ceil(MINIMUM_N[found] / templates), RECOMMENDED_CLUSTERS)
        if names > fewest:
            notes.append(
                f"{fewest} names would find the effect; {names} are planned, so that the minimum sample size "
                f"holds and at least {RECOMMENDED_CLUSTERS} names speak for a group"
            )
        shape = Shape(groups=groups, names=names, templates=templates, repetitions=repetitions)
    else:
        shape = _with_names(groups, names, repetitions, MINIMUM_N[found], reach, effect)
    return SamplePlan(
        kind=found,
        groups=groups,
        effect=effect,
        power=power,
        icc=icc,
        alpha=alpha,
        family=family,
        names=shape.names,
        templates=shape.templates,
        repetitions=shape.repetitions,
        calls_per_group=shape.calls_per_group,
        calls=shape.calls,
        mde=reach(shape),
        pass_probability=pass_probability(shape, icc=icc, inflation=inflation, margin=MARGIN),
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignPower:
    """What a design that stands can find out about one protected class.

    ``mde`` and ``pass_probability`` are those of :class:`SamplePlan`. ``can_pass`` and ``can_fail`` say whether these
    verdicts are within reach at all; ``why`` says what keeps them out of reach, empty where both are.
    """

    family: int
    mde: float
    pass_probability: float
    can_pass: bool
    can_fail: bool
    why: str = ""


def assess_design(
    kind: str | OutcomeKind = OutcomeKind.NUMERIC,
    *,
    groups: int,
    names: int,
    trials: int,
    distinct: int,
    power: float = 0.8,
    icc: float = 0.04,
    alpha: float = ALPHA,
    rate: float = 0.5,
) -> DesignPower:
    """What *groups* groups of *names* names and *trials* trials each (the fewest of any group) can find out.

    *distinct* trials are left if each cell repeats itself, as at temperature 0. With one name or none a group is a
    label: its trials are the units, and a FAIL is capped at FLAG. A PASS that comes in under one audit in twenty
    where nothing differs is out of reach. Raises UsageError for an argument out of range.
    """
    found = _kind(kind)
    _check(groups, 1.0, power, icc, alpha, rate)
    if trials < 1:
        raise UsageError(f"trials={trials!r}: at least 1 a group")
    labels = names < 2
    shape = (
        Shape(groups=groups, names=trials, templates=1, repetitions=1)
        if labels
        else Shape(groups=groups, names=names, templates=1, repetitions=max(trials // names, 1))
    )
    icc, inflation, family = (0.0 if labels else icc), _inflation(found, rate), groups * (groups - 1) // 2
    passing = pass_probability(shape, icc=icc, inflation=inflation, margin=MARGIN)
    enough = distinct >= MINIMUM_N[found]
    why = []
    if not enough:
        why.append(f"{distinct} distinct trials a group, at least {MINIMUM_N[found]} needed")
    if labels:
        why.append("a single name or label a group: FAIL is capped at FLAG")
    if passing < OUT_OF_REACH:
        why.append("too small for a PASS")
    return DesignPower(
        family=family,
        mde=detectable(shape, icc=icc, inflation=inflation, family=family, alpha=alpha, power=power),
        pass_probability=passing,
        can_pass=enough and passing >= OUT_OF_REACH,
        can_fail=enough and not labels,
        why="; ".join(why),
    )


def _inflation(kind: OutcomeKind, rate: float) -> float:
    """A log odds has variance 1/(n·p(1−p)), and d is that log odds times √3/π."""
    return 3 / (math.pi**2 * rate * (1 - rate)) if kind in _RATES else 1.0


def _kind(kind: str | OutcomeKind) -> OutcomeKind:
    try:
        return OutcomeKind(kind)
    except ValueError:
        known = ", ".join(member.value for member in OutcomeKind)
        raise UsageError(f"unknown outcome kind {kind!r}; it is one of {known}") from None


def _check(groups: int, effect: float, power: float, icc: float, alpha: float, rate: float) -> None:
    if groups < 2:
        raise UsageError(f"groups={groups!r}: a comparison needs at least 2")
    if not (effect > 0 and math.isfinite(effect)):
        raise UsageError(f"effect={effect!r}: give the d that must not be missed, above 0")
    if not 0 <= icc < 1:
        raise UsageError(f"icc={icc!r}: a share of variance, from 0 to below 1")
    for what, value in (("power", power), ("alpha", alpha), ("rate", rate)):
        if not 0 < value < 1:
            raise UsageError(f"{what}={value!r}: a probability between 0 and 1")


def _with_names(
    groups: int,
    names: int,
    repetitions: int,
    minimum: int,
    reach: Callable[[Shape], float],
    effect: float,
) -> Shape:
    """As few templates as will do with so many names; more calls a name cannot beat the spread between
    names.
    """
    if names < 2:
        raise UsageError(f"names={names!r}: at least 2 a group")

    def shape(templates: int) -> Shape:
        return Shape(groups=groups, names=names, templates=templates, repetitions=repetitions)

    templates = smallest(lambda t: reach(shape(t)) <= effect, max(1, math.ceil(minimum / names)), AT_MOST)
    if templates is None:
        raise UsageError(
            f"names={names!r}: no number of templates finds d = {effect:g} with so few names; the least that could "
            f"be found is d = {reach(shape(10**9)):.2f}"
        )
    return shape(templates)
