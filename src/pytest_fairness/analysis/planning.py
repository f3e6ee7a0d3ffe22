"""Plan a sample: names, templates, repetitions and calls for an effect that must not be missed.

The figures of a design are what the run's own rules make of pairs drawn from it
(``statistics/power.py``): a pair is found if it is FLAG or FAIL, corrected over the family, and
passes by the policy of ``analysis/policy.py``. Left out is what templates tested alone add to
alarms and take from passes, about half a percent.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from pytest_fairness.analysis.false_alarms import ALPHA
from pytest_fairness.analysis.policy import MARGIN, MINIMUM_N, RECOMMENDED_CLUSTERS, TRIVIAL
from pytest_fairness.analysis.sentences import RATES
from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.arrays import Bools
from pytest_fairness.statistics.power import (
    DRAWS,
    Drawn,
    Sample,
    draw_labels,
    draw_rates,
    draw_ratings,
    draw_scores,
    label_shares,
)
from pytest_fairness.words import count, percent

AT_MOST = 5000
"""Names a group, or templates, or repetitions beyond which nothing is planned."""
OUT_OF_REACH = 0.05
"""A PASS less likely than this, where nothing differs, is not to be waited for."""
LIKELY = 0.8
"""How likely a PASS is to be, where nothing differs, with what a design is said to need."""
ROUGH = 1000
"""Pairs that are drawn to look for a size; the figures of the one found are drawn in full."""
LEVELS = {OutcomeKind.ORDINAL: (3, 11, 5), OutcomeKind.CATEGORICAL: (3, 50, 3)}
"""Fewest and most levels or labels, and how many by default."""


# ---------------------------------------------------------------- a design, and what becomes of pairs drawn from it


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedOutcome:
    """Assumptions about an outcome: *rate* of a yes/no outcome, *levels* of a rating or number of
    labels, and the share *icc* of its variance that lies between the names of a group.
    """

    kind: OutcomeKind
    rate: float
    levels: int
    icc: float

    @classmethod
    def of(
        cls, kind: str | OutcomeKind, *, rate: float | None, levels: int | None, icc: float
    ) -> ExpectedOutcome:
        """Return the assumptions. Raises UsageError for an argument out of range, or one that the
        kind has not.
        """
        kinds = [member.value for member in OutcomeKind]
        if kind not in kinds:
            raise UsageError(f"unknown outcome kind {kind!r}; it is one of {', '.join(kinds)}")
        chosen = OutcomeKind(kind)
        if rate is not None and chosen not in RATES:
            raise UsageError(
                f"rate={rate!r}: only yes/no outcomes have a rate, and {chosen} is none"
            )
        _check_levels(chosen, levels)
        *_, usual = LEVELS.get(chosen, (0, 0, 0))
        if not 0 <= icc < 1:
            raise UsageError(f"icc={icc!r}: a share of variance, from 0 to below 1")
        if rate is not None:
            _require_probabilities(rate=rate)
        return cls(kind=chosen, rate=rate or 0.5, levels=levels or usual, icc=icc)

    def tests(self, effect: float, groups: int, metrics: int) -> int:
        """Return how many tests find *effect* between every two *groups* on so many *metrics*.
        Raises UsageError for an argument out of range.
        """
        if not (effect > 0 and math.isfinite(effect)):
            raise UsageError(f"effect={effect!r}: give the d that must not be missed, above 0")
        if self.kind is OutcomeKind.CATEGORICAL and label_shares(effect, self.levels).min() < 0:
            raise UsageError(f"effect={effect!r}: {self.levels} labels cannot differ by so much")
        if groups < 2:
            raise UsageError(f"groups={groups!r}: a comparison needs at least 2")
        return groups * (groups - 1) // 2 * metrics

    @property
    def words(self) -> str:
        """The outcome in words."""
        what = {
            OutcomeKind.BINARY: f", {100 * self.rate:g} % favourable answers",
            OutcomeKind.REFUSAL: f", {100 * self.rate:g} % refusals",
            OutcomeKind.ORDINAL: f", {self.levels} equally likely levels",
            OutcomeKind.CATEGORICAL: f", {self.levels} equally likely labels",
        }
        return f"{self.kind} outcome{what.get(self.kind, '')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDesign:
    """The questions to a group about an *outcome*: *names* (one: a label) in *templates*, *rows*
    replies a name, *trials* in all; and how many tests at level *alpha* make up the *family*.
    """

    outcome: ExpectedOutcome
    alpha: float
    family: int
    names: int
    templates: int
    rows: int
    trials: int

    @classmethod
    def of(
        cls,
        outcome: ExpectedOutcome,
        *,
        alpha: float,
        family: int,
        names: int,
        templates: int,
        repetitions: int,
    ) -> PlannedDesign:
        """Return the balanced design in which each name is asked all *templates* so often."""
        rows = templates * repetitions
        return cls(
            outcome=outcome,
            alpha=alpha,
            family=family,
            names=names,
            templates=templates,
            rows=rows,
            trials=names * rows,
        )

    @property
    def labels(self) -> bool:
        return self.names < 2

    @property
    def minimum(self) -> int:
        """Return the fewest trials a group that a verdict takes."""
        return MINIMUM_N[self.outcome.kind]

    @property
    def sample(self) -> Sample:
        """Return what is drawn of two groups: the clusters are the names, or the replies where
        there is one name.
        """
        if self.labels:
            return Sample(clusters=self.rows, rows=1, icc=0.0, labels=True, blocks=self.templates)
        return Sample(
            clusters=self.names, rows=self.rows, icc=self.outcome.icc, blocks=self.templates
        )


@lru_cache(maxsize=512)
def detected(design: PlannedDesign, effect: float, draws: int = DRAWS) -> float:
    """Return how often a pair that differs by *effect* is FLAG or FAIL."""
    drawn = _draw(design, effect, draws)
    if drawn is None:
        return 0.0
    return float(np.mean(_alarms(design, drawn)))


@lru_cache(maxsize=512)
def passed(design: PlannedDesign, draws: int = DRAWS) -> float:
    """Return how often a pair without a difference PASSes."""
    drawn = _draw(design, 0.0, draws)
    if drawn is None or design.trials < design.minimum:
        return 0.0
    effects = drawn.effects
    inside = ((effects.low > -MARGIN) & (effects.high < MARGIN)).all(axis=1)
    if drawn.near is not None and drawn.constant is not None:
        saturated = design.labels or design.names >= RECOMMENDED_CLUSTERS
        inside = np.where(drawn.constant, saturated, inside | drawn.near)
    return float(np.mean(inside & ~_alarms(design, drawn)))


def _draw(design: PlannedDesign, effect: float, draws: int) -> Drawn | None:
    """Pairs of the design, compared; None where no group has two of what a test needs."""
    outcome = design.outcome
    sample = design.sample
    if sample.clusters < 2:
        return None
    if outcome.kind in RATES:
        return draw_rates(
            sample, effect, outcome.rate, favourable=outcome.kind is OutcomeKind.BINARY, draws=draws
        )
    if outcome.kind is OutcomeKind.ORDINAL:
        return draw_ratings(sample, effect, outcome.levels, draws)
    if outcome.kind is OutcomeKind.CATEGORICAL:
        fewer = 4
        if draws == DRAWS:
            fewer = 2
        return draw_labels(sample, effect, outcome.levels, draws // fewer, intervals=effect == 0)
    return draw_scores(sample, effect, draws)


def _alarms(design: PlannedDesign, drawn: Drawn) -> Bools:
    size = np.abs(drawn.effects.effect).max(axis=1)
    return np.asarray((drawn.p_value * design.family < design.alpha) & (size >= TRIVIAL))


# ---------------------------------------------------------------- a sample to be planned


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan:
    """A design, and what it finds.

    ``names`` a group in each of ``templates``, each asked ``repetitions`` times: ``calls`` in all.
    ``power`` is how often a pair that differs by ``effect`` is FLAG or FAIL, ``pass_probability``
    how often an equal pair PASSes. ``outcome`` names the assumptions, ``notes`` what had to give.
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
    """The smallest balanced design in which a pair of groups *effect* (d scale) apart is FLAG or
    FAIL, and a pair without a difference PASSes, each as often as *power* says.

    By default the number of names is looked for, with *templates* and *repetitions* as given: names
    are what buys power. With *names* given (a name bank has so many), templates are looked for
    instead; one name is a label, whose FAIL is capped at FLAG. *icc* is the share of the outcome's
    variance that lies between the names of a group. The family is groups·(groups−1)/2 pairs ×
    *metrics*, corrected by Bonferroni. *rate* (.5) is the expected rate of favourable answers of a
    yes/no outcome, or that of refusals; the group that differs is further from one half, where more
    is needed. *levels* of a rating (5), or so many labels (3), are taken to be equally likely;
    where nine in ten ratings are the highest, plan a yes/no outcome with *rate* .9. Scores are
    taken to be normal. At least the minimum sample size of the kind and ten names are planned.

    Where no affordable design passes equal pairs so often, a note says so. Raises UsageError for an
    argument out of range, or where no affordable design finds the effect (the message says what
    limits it).
    """
    outcome = ExpectedOutcome.of(kind, rate=rate, levels=levels, icc=icc)
    _require_probabilities(alpha=alpha, power=power)
    family = outcome.tests(effect, groups, metrics)
    _require_one("", metrics=metrics, templates=templates, repetitions=repetitions)
    sized = partial(PlannedDesign.of, outcome, alpha=alpha, family=family, repetitions=repetitions)
    minimum = MINIMUM_N[outcome.kind]
    notes = []

    def design(number: int) -> PlannedDesign:
        """With so many names, or so many templates where the names are given."""
        if names is None:
            return sized(names=number, templates=templates)
        return sized(names=names, templates=number)

    def enough(number: int, draws: int) -> bool:
        return detected(design(number), effect, draws) >= power

    def passes(number: int, draws: int) -> bool:
        return passed(design(number), draws) >= power

    if names is None:
        fewest = _smallest(enough, 2)
        if fewest is None:
            raise _no_names(effect)
        least = max(fewest, math.ceil(minimum / (templates * repetitions)), RECOMMENDED_CLUSTERS)
        if least > fewest:
            notes.append(
                f"{count(fewest, 'name')} would find the effect; at least {least} are planned, so "
                f"that the minimum sample size holds and at least {RECOMMENDED_CLUSTERS} names "
                "speak for a group"
            )
    else:
        _require_one(" a group", names=names)
        fewest = _smallest(enough, math.ceil(minimum / (names * repetitions)))
        if fewest is None:
            most = percent(detected(design(AT_MOST), effect), 0)
            raise UsageError(
                f"names={names!r}: even {AT_MOST} templates find d = {effect:g} in {most} of pairs "
                "only; it takes more names"
            )
        least = fewest
        if names == 1:
            notes.append(
                "one name a group: the result is about that name, and its FAIL is capped at FLAG"
            )
    number = _smallest(passes, least) or least
    chosen = design(number)
    passing = passed(chosen)
    if number > least:
        what = "template"
        if names is None:
            what = "name"
        notes.append(
            f"{count(least, what)} would find the effect, and pass "
            f"{percent(passed(design(least)), 0)} of equal pairs; "
            f"{number} are planned, so that as many of them pass"
        )
    if passing < LIKELY:
        notes.append(f"to pass 80 % of equal pairs: {_enlargements(chosen, repetitions)}")
    return SamplePlan(
        kind=outcome.kind,
        outcome=outcome.words,
        groups=groups,
        effect=effect,
        icc=outcome.icc,
        alpha=chosen.alpha,
        family=chosen.family,
        names=chosen.names,
        templates=chosen.templates,
        repetitions=repetitions,
        calls_per_group=chosen.trials,
        calls=groups * chosen.trials,
        power=detected(chosen, effect),
        pass_probability=passing,
        notes=tuple(notes),
    )


def _check_levels(kind: OutcomeKind, levels: int | None) -> None:
    """Raise UsageError for so many *levels* as the kind does not have."""
    if levels is None:
        return
    if kind not in LEVELS:
        raise UsageError(
            f"levels={levels!r}: only ratings (ordinal) and labels (categorical) have levels"
        )
    least, most, _ = LEVELS[kind]
    if not least <= levels <= most:
        few = ""
        if levels == 2:
            few = "; two levels are a yes/no outcome: kind='binary'"
        raise UsageError(f"levels={levels!r}: from {least} to {most}{few}")


def _no_names(effect: float) -> UsageError:
    """Return that no number of names finds *effect*, and why."""
    why = f"it takes over {AT_MOST} names a group; look for a larger effect"
    if effect <= TRIVIAL:
        why = (
            f"an estimate under {TRIVIAL:g} raises no alarm, so no sample finds it often; look for "
            "a larger effect"
        )
    return UsageError(f"effect={effect!r}: {why}")


def _smallest(enough: Callable[[int, int], bool], start: int) -> int | None:
    """The smallest number that is *enough*: found with few draws, and made sure of with all."""
    number_needed = smallest(lambda number: enough(number, ROUGH), start)
    while number_needed is not None and not enough(number_needed, DRAWS):
        if number_needed < AT_MOST:
            number_needed = number_needed + math.ceil(number_needed / 100)
        else:
            number_needed = None
    return number_needed


def smallest(enough: Callable[[int], bool], start: int, most: int = AT_MOST) -> int | None:
    """The smallest number from *start* to *most* that is *enough*, which larger numbers stay; None
    without one.
    """
    if enough(start):
        return start
    low = start
    high = min(2 * start, most)
    while not enough(high):
        if high == most:
            return None
        low = high
        high = min(2 * high, most)
    return low + 1 + bisect_left(range(low + 1, high), True, key=enough)


def _require_one(where: str, **counts: int) -> None:
    for what, value in counts.items():
        if value < 1:
            raise UsageError(f"{what}={value!r}: at least 1{where}")


def _require_probabilities(**given: float) -> None:
    for what, value in given.items():
        if not 0 < value < 1:
            raise UsageError(f"{what}={value!r}: a probability between 0 and 1")


# ---------------------------------------------------------------- a design that stands


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignPower:
    """The power of a design that stands to find out about one protected class.

    ``power`` and ``pass_probability`` are those of :class:`SamplePlan`. ``can_pass`` and
    ``can_fail`` say whether these verdicts are within reach at all; ``why`` says what keeps them
    out of reach, empty where both are. ``needs`` says what would make a PASS likely (80 %), empty
    where it is. ``notes`` say what does not help.
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
    rough: bool = False,
) -> DesignPower:
    """Return what *groups* groups of *names* names and *trials* trials each (the fewest of any
    group) can find out.

    *trials* are those of all *templates* and *repetitions*. With one name or none a group is a
    label: its trials are the units, and a FAIL is capped at FLAG. With *repeats* every repetition
    is taken to give the same reply, as at temperature 0: repetitions count as trials, and tell
    nothing more. A PASS that comes in under one audit in twenty where nothing differs is out of
    reach. *rough*: by fewer draws (a standard error of .013 at .8), and not what it would take. The
    other arguments are those of :func:`plan_sample`. Raises UsageError for an argument out of
    range.
    """
    outcome = ExpectedOutcome.of(kind, rate=rate, levels=levels, icc=icc)
    _require_probabilities(alpha=alpha)
    family = outcome.tests(effect, groups, metrics)
    _require_one(" a group", trials=trials, templates=templates, repetitions=repetitions)
    people = max(names, 1)
    # Replies a name that tell something. Where one name is all there is, copies of a reply do not
    # count either.
    told = repetitions
    copies = 1
    notes: tuple[str, ...] = ()
    if repeats:
        told = 0
        copies = repetitions
        notes = ("at temperature 0 repetitions tell nothing more; names and templates do",)
    rows = max(trials // (people * copies), 1)
    if repeats and people < 2:
        trials = rows
    here = PlannedDesign(
        outcome=outcome,
        alpha=alpha,
        family=family,
        names=people,
        templates=templates,
        rows=rows,
        trials=trials,
    )
    draws = DRAWS
    if rough:
        draws = ROUGH
    passing = passed(here, draws)
    enough = here.trials >= here.minimum
    needs = ""
    if passing < LIKELY and not rough:
        needs = _enlargements(here, told)
    why = {
        f"{here.trials} of at least {here.minimum} trials a group": not enough,
        "a single name or label a group: FAIL is capped at FLAG": here.labels,
        "too small for a PASS": passing < OUT_OF_REACH and enough,
    }
    return DesignPower(
        family=here.family,
        effect=effect,
        power=detected(here, effect, draws),
        pass_probability=passing,
        can_pass=enough and passing >= OUT_OF_REACH,
        can_fail=enough and not here.labels,
        why="; ".join(text for text, holds in why.items() if holds),
        needs=needs,
        notes=notes,
    )


def _enlargements(here: PlannedDesign, repetitions: int) -> str:
    """The fewest names, templates or repetitions, each by itself, that make a PASS likely, in
    words; no *repetitions* where they tell nothing."""

    def likely(names: int, times: float) -> bool:
        rows = max(int(here.rows * times), 1)
        trials = int(here.trials * times * names / here.names)
        return passed(replace(here, names=names, rows=rows, trials=trials), ROUGH) >= LIKELY

    enlargements = []
    names = None
    if not here.labels:
        names = smallest(lambda k: likely(k, 1.0), here.names)
    if names is not None:
        enlargements.append(f"{max(names, here.names + 1)} names a group (now {here.names})")
    unit = repetitions or here.templates
    times = smallest(lambda r: likely(here.names, r / unit), unit)
    if times is not None:
        more = math.ceil(here.templates * times / unit)
        enlargements.append(f"{max(more, here.templates + 1)} templates (now {here.templates})")
        if repetitions:
            enlargements += [f"{max(times, repetitions + 1)} repetitions (now {repetitions})"]
    return ", or ".join(enlargements) or "nothing that could be asked"
