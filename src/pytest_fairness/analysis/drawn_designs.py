"""What becomes of pairs drawn from a planned design, by the rules of the run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pytest_fairness.analysis.policy import MARGIN, MINIMUM_N, RECOMMENDED_CLUSTERS, TRIVIAL
from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.planning import (
    DRAWS,
    Drawn,
    Sample,
    draw_labels,
    draw_rates,
    draw_ratings,
    draw_scores,
    label_shares,
)

ROUGH = 1000
"""Pairs that are drawn to look for a size; what is said of the one found is drawn in full."""


RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)


RATE = 0.5


LEVELS = {OutcomeKind.ORDINAL: (3, 11, 5), OutcomeKind.CATEGORICAL: (3, 50, 3)}
"""Fewest and most levels or labels, and how many if that is not said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is taken for granted of an outcome: *rate* of a yes/no outcome, *levels* of a rating or number of labels."""

    kind: OutcomeKind
    rate: float
    levels: int
    icc: float
    alpha: float

    @classmethod
    def of(cls, kind: str | OutcomeKind, rate: float | None, levels: int | None, icc: float, alpha: float) -> Outcome:
        """Raises UsageError for an argument out of range, or one that the kind has not."""
        try:
            found = OutcomeKind(kind)
        except ValueError:
            known = ", ".join(member.value for member in OutcomeKind)
            raise UsageError(f"unknown outcome kind {kind!r}; it is one of {known}") from None
        if rate is not None and found not in RATES:
            raise UsageError(f"rate={rate!r}: only yes/no outcomes have a rate, and {found} is none")
        if levels is not None and found not in LEVELS:
            raise UsageError(f"levels={levels!r}: only ratings (ordinal) and labels (categorical) have levels")
        least, most, usual = LEVELS.get(found, (0, 0, 0))
        if levels is not None and not least <= levels <= most:
            few = "; two levels are a yes/no outcome: kind='binary'" if levels == 2 else ""
            raise UsageError(f"levels={levels!r}: from {least} to {most}{few}")
        if not 0 <= icc < 1:
            raise UsageError(f"icc={icc!r}: a share of variance, from 0 to below 1")
        for what, value in (("alpha", alpha), ("rate", RATE if rate is None else rate)):
            if not 0 < value < 1:
                raise UsageError(f"{what}={value!r}: a probability between 0 and 1")
        return cls(kind=found, rate=rate or RATE, levels=levels or usual, icc=icc, alpha=alpha)

    @property
    def words(self) -> str:
        """The outcome as planned for."""
        if self.kind in RATES:
            what = "favourable answers" if self.kind is OutcomeKind.BINARY else "refusals"
            return f"{self.kind} outcome, {100 * self.rate:g} % {what}"
        if self.kind in LEVELS:
            what = "levels" if self.kind is OutcomeKind.ORDINAL else "labels"
            return f"{self.kind} outcome, {self.levels} equally likely {what}"
        return f"{self.kind} outcome"

    def check(self, effect: float) -> None:
        """Raises UsageError for an *effect* that cannot be."""
        if not (effect > 0 and math.isfinite(effect)):
            raise UsageError(f"effect={effect!r}: give the d that must not be missed, above 0")
        if self.kind is OutcomeKind.CATEGORICAL and label_shares(effect, self.levels).min() < 0:
            raise UsageError(f"effect={effect!r}: {self.levels} labels cannot differ by so much")


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """What a group is asked: *names* (one or none: a label) in *templates*, *rows* replies a name, *trials* in all."""

    names: int
    templates: int
    rows: int
    trials: int

    @property
    def labels(self) -> bool:
        return self.names < 2

    def sample(self, icc: float) -> Sample:
        """As clusters: the names, or the replies where there is one name."""
        clusters, rows = (self.rows, 1) if self.labels else (self.names, self.rows)
        return Sample(
            clusters=clusters, rows=rows, icc=0.0 if self.labels else icc, labels=self.labels, blocks=self.templates
        )


@lru_cache(maxsize=512)
def found(outcome: Outcome, design: Design, family: int, effect: float, draws: int = DRAWS) -> float:
    """How often a pair that differs by *effect* is FLAG or FAIL."""
    drawn = _draw(outcome, design, effect, draws)
    return 0.0 if drawn is None else float(np.mean(_alarms(outcome, family, drawn)))


@lru_cache(maxsize=512)
def passed(outcome: Outcome, design: Design, family: int, draws: int = DRAWS) -> float:
    """How often a pair without a difference PASSes."""
    drawn = _draw(outcome, design, 0.0, draws)
    if drawn is None or design.trials < MINIMUM_N[outcome.kind]:
        return 0.0
    inside = ((drawn.low > -MARGIN) & (drawn.high < MARGIN)).all(axis=1)
    if drawn.near is not None and drawn.constant is not None:
        saturated = design.labels or design.names >= RECOMMENDED_CLUSTERS
        inside = np.where(drawn.constant, saturated, inside | drawn.near)
    return float(np.mean(inside & ~_alarms(outcome, family, drawn)))


def _draw(outcome: Outcome, design: Design, effect: float, draws: int) -> Drawn | None:
    """Pairs of the design, compared; None where no group has two of what a test needs."""
    sample = design.sample(outcome.icc)
    if sample.clusters < 2:
        return None
    if outcome.kind in RATES:
        return draw_rates(sample, effect, outcome.rate, favourable=outcome.kind is OutcomeKind.BINARY, draws=draws)
    if outcome.kind is OutcomeKind.ORDINAL:
        return draw_ratings(sample, effect, outcome.levels, draws)
    if outcome.kind is OutcomeKind.CATEGORICAL:
        return draw_labels(
            sample, effect, outcome.levels, draws // 2 if draws == DRAWS else draws // 4, intervals=effect == 0
        )
    return draw_scores(sample, effect, draws)


def _alarms(outcome: Outcome, family: int, drawn: Drawn) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    size = np.abs(drawn.effect).max(axis=1)
    return np.asarray((drawn.p_value * family < outcome.alpha) & (size >= TRIVIAL))
