"""Plan a sample: names, templates, repetitions and calls for an effect that must not be missed.

What is said of a design is what the run's own rules make of pairs drawn from it (``statistics/planning.py``): a pair is
found if it is FLAG or FAIL, corrected over the family, and passes by the policy of ``analysis/policy.py``. Left out is
what templates tested alone add to alarms and take from passes, about half a percent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from pytest_fairness.analysis.drawn_designs import ROUGH, Design, Outcome, found, passed
from pytest_fairness.analysis.false_alarms import ALPHA
from pytest_fairness.analysis.policy import MARGIN, MINIMUM_N, RECOMMENDED_CLUSTERS, TRIVIAL
from pytest_fairness.analysis.sentences import percent
from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.planning import (
    DRAWS,
    smallest,
)

AT_MOST = 5000
"""Names a group, or templates, or repetitions beyond which nothing is planned."""
OUT_OF_REACH = 0.05
"""A PASS less likely than this, where nothing differs, is not to be waited for."""
LIKELY = 0.8
"""How likely a PASS is to be, where nothing differs, with what a design is said to need."""


# ---------------------------------------------------------------- a sample to be planned


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan:
    """A design, and what it finds.

    ``names`` a group in each of ``templates``, each asked ``repetitions`` times: ``calls`` in all, ``calls_per_group``
    for each group. ``power`` is how often a pair that differs by ``effect`` is FLAG or FAIL, ``pass_probability`` how
    often a pair without any difference PASSes. ``outcome`` says what was taken for granted, ``notes`` what had to give.
    """

    kind: OutcomeKind
    outcome: str
    groups: int
    effect: float
    icc: float
    alpha: float
    family: int
    names: int
    templates: int
    repetitions: int
    calls_per_group: int
    calls: int
    power: float
    pass_probability: float
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The plan in one sentence."""
        found, passed = percent(self.power), percent(self.pass_probability)
        return (
            f"{_count(self.names, 'name')} × {_count(self.templates, 'template')} × "
            f"{_count(self.repetitions, 'repetition')} in each of {self.groups} groups, {self.calls:,} calls: finds "
            f"d = {self.effect:g} in {found} of pairs that differ so, and passes {passed} of pairs that do not differ "
            f"({self.outcome}, family of {self.family} at {self.alpha:g}, ICC {self.icc:g})."
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


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
    rate: float | None = None,
    levels: int | None = None,
) -> SamplePlan:
    """The smallest balanced design in which a pair of groups *effect* (d scale) apart is FLAG or FAIL with *power*.

    By default the number of names is looked for, with *templates* and *repetitions* as given: names are what buys
    power. With *names* given (a name bank has so many), templates are looked for instead; one name is a label, whose
    FAIL is capped at FLAG. *icc* is the share of the outcome's variance that lies between the names of a group. The
    family is groups·(groups−1)/2 pairs × *metrics*, corrected by Bonferroni. *rate* (.5) is the expected rate of
    favourable answers of a yes/no outcome, or that of refusals; the group that differs is further from one half, where
    more is needed. *levels* of a rating (5), or so many labels (3), are taken to be equally likely; where nine in ten
    ratings are the highest, plan a yes/no outcome with *rate* .9. Scores are taken to be normal. At least the minimum
    sample size of the kind and ten names are planned.

    Raises UsageError for an argument out of range, or where no affordable design finds the effect (the message says
    what limits it).
    """
    outcome = Outcome.of(kind, rate, levels, icc, alpha)
    outcome.check(effect)
    _check(groups, power)
    for what, value in (("metrics", metrics), ("templates", templates), ("repetitions", repetitions)):
        if value < 1:
            raise UsageError(f"{what}={value!r}: at least 1")
    family = groups * (groups - 1) // 2 * metrics
    notes: list[str] = []

    def design(names: int, templates: int) -> Design:
        rows = templates * repetitions
        return Design(names=names, templates=templates, rows=rows, trials=names * rows)

    def enough(one: Design, draws: int = ROUGH) -> bool:
        return found(outcome, one, family, effect, draws) >= power

    if names is None:
        fewest = _smallest(lambda k, draws: enough(design(k, templates), draws), 2)
        if fewest is None:
            if effect <= TRIVIAL:
                raise UsageError(
                    f"effect={effect!r}: an estimate under {TRIVIAL:g} raises no alarm, so no sample finds it often; "
                    "look for a larger effect"
                )
            raise UsageError(f"effect={effect!r}: it takes over {AT_MOST} names a group; look for a larger effect")
        names = max(fewest, math.ceil(MINIMUM_N[outcome.kind] / (templates * repetitions)), RECOMMENDED_CLUSTERS)
        if names > fewest:
            notes.append(
                f"{_count(fewest, 'name')} would find the effect; {names} are planned, so that the minimum sample size "
                f"holds and at least {RECOMMENDED_CLUSTERS} names speak for a group"
            )
    else:
        if names < 1:
            raise UsageError(f"names={names!r}: at least 1 a group")
        people, start = names, math.ceil(MINIMUM_N[outcome.kind] / (names * repetitions))
        fewest = _smallest(lambda t, draws: enough(design(people, t), draws), start)
        if fewest is None:
            most = found(outcome, design(names, AT_MOST), family, effect)
            raise UsageError(
                f"names={names!r}: even {AT_MOST} templates find d = {effect:g} in {percent(most)} of pairs only; "
                "it takes more names"
            )
        templates = fewest
        if names == 1:
            notes.append("one name a group: the result is about that name, and its FAIL is capped at FLAG")
    chosen = design(names, templates)
    passing = passed(outcome, chosen, family)
    if passing < LIKELY:
        notes.append(f"to pass 80 % of equal pairs: {_ways(outcome, chosen, family, repetitions)}")
    return SamplePlan(
        kind=outcome.kind,
        outcome=outcome.words,
        groups=groups,
        effect=effect,
        icc=icc,
        alpha=alpha,
        family=family,
        names=names,
        templates=templates,
        repetitions=repetitions,
        calls_per_group=chosen.trials,
        calls=groups * chosen.trials,
        power=found(outcome, chosen, family, effect),
        pass_probability=passing,
        notes=tuple(notes),
    )


def _smallest(enough: Callable[[int, int], bool], start: int) -> int | None:
    """The smallest number that is *enough*: looked for with few draws, and made sure of with all."""
    found = smallest(lambda number: enough(number, ROUGH), start, AT_MOST)
    while found is not None and not enough(found, DRAWS):
        found = found + math.ceil(found / 100) if found < AT_MOST else None
    return found


def _check(groups: int, power: float) -> None:
    if groups < 2:
        raise UsageError(f"groups={groups!r}: a comparison needs at least 2")
    if not 0 < power < 1:
        raise UsageError(f"power={power!r}: a probability between 0 and 1")


# ---------------------------------------------------------------- a design that stands


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignPower:
    """What a design that stands can find out about one protected class.

    ``power`` and ``pass_probability`` are those of :class:`SamplePlan`. ``can_pass`` and ``can_fail`` say whether these
    verdicts are within reach at all; ``why`` says what keeps them out of reach, empty where both are. ``needs`` says
    what would make a PASS likely (80 %), empty where it is. ``notes`` say what does not help.
    """

    family: int
    effect: float
    power: float
    pass_probability: float
    can_pass: bool
    can_fail: bool
    why: str = ""
    needs: str = ""
    notes: tuple[str, ...] = ()


def assess_design(
    kind: str | OutcomeKind = OutcomeKind.NUMERIC,
    *,
    groups: int,
    names: int,
    trials: int,
    templates: int = 1,
    repetitions: int = 1,
    repeats: bool = False,
    effect: float = MARGIN,
    icc: float = 0.04,
    alpha: float = ALPHA,
    metrics: int = 1,
    rate: float | None = None,
    levels: int | None = None,
) -> DesignPower:
    """What *groups* groups of *names* names and *trials* trials each (the fewest of any group) can find out.

    *trials* are those of all *templates* and *repetitions*. With one name or none a group is a label: its trials are
    the units, and a FAIL is capped at FLAG. With *repeats* every repetition is taken to give the same reply, as at
    temperature 0: repetitions count as trials, and tell nothing more. A PASS that comes in under one audit in twenty
    where nothing differs is out of reach. The other arguments are those of :func:`plan_sample`. Raises UsageError for
    an argument out of range.
    """
    outcome = Outcome.of(kind, rate, levels, icc, alpha)
    outcome.check(effect)
    _check(groups, 0.5)
    for what, value in (("trials", trials), ("templates", templates), ("repetitions", repetitions)):
        if value < 1:
            raise UsageError(f"{what}={value!r}: at least 1 a group")
    family = groups * (groups - 1) // 2 * metrics
    people, minimum = max(names, 1), MINIMUM_N[outcome.kind]
    # Replies a name that tell something. Where one name is all there is, copies of a reply do not count either.
    rows = max(trials // (people * repetitions if repeats else people), 1)
    here = Design(
        names=people,
        templates=templates,
        rows=rows,
        trials=rows if repeats and people < 2 else trials,
    )
    passing = passed(outcome, here, family)
    enough = here.trials >= minimum
    why = []
    if not enough:
        why.append(f"{here.trials} of at least {minimum} trials a group")
    if here.labels:
        why.append("a single name or label a group: FAIL is capped at FLAG")
    if passing < OUT_OF_REACH and enough:
        why.append("too small for a PASS")
    needs = _ways(outcome, here, family, 0 if repeats else repetitions) if passing < LIKELY else ""
    return DesignPower(
        family=family,
        effect=effect,
        power=found(outcome, here, family, effect),
        pass_probability=passing,
        can_pass=enough and passing >= OUT_OF_REACH,
        can_fail=enough and not here.labels,
        why="; ".join(why),
        needs=needs,
        notes=("at temperature 0 repetitions tell nothing more; names and templates do",) if repeats else (),
    )


def _ways(outcome: Outcome, here: Design, family: int, repetitions: int) -> str:
    """The fewest names, templates or repetitions, each by itself, that make a PASS likely, in words; no *repetitions*
    where they tell nothing."""

    def likely(names: int, times: float) -> bool:
        larger = replace(
            here,
            names=names,
            rows=max(int(here.rows * times), 1),
            trials=int(here.trials * times * names / here.names),
        )
        return passed(outcome, larger, family, ROUGH) >= LIKELY

    ways = []
    if not here.labels:
        names = smallest(lambda k: likely(k, 1.0), here.names, AT_MOST)
        if names is not None:
            ways.append(f"{max(names, here.names + 1)} names a group (now {here.names})")
    unit = repetitions or here.templates
    times = smallest(lambda r: likely(here.names, r / unit), unit, AT_MOST)
    if times is not None:
        more = math.ceil(here.templates * times / unit)
        ways.append(f"{max(more, here.templates + 1)} templates (now {here.templates})")
        if repetitions:
            ways.append(f"{max(times, repetitions + 1)} repetitions (now {repetitions})")
    return ", or ".join(ways) or "nothing that could be asked"
