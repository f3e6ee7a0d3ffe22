"""What is judged together: the metrics of one family over their groupings, and what the caller declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pytest_fairness.analysis.sentences import NO_ANSWER
from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.frames import Bools, Design, Floats, Ints
from pytest_fairness.statistics.metrics import Metric, measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What the caller set: alpha, the correction, and the smallest difference in the outcome's unit that counts."""

    alpha: float = 0.05
    correction: str = "bonferroni"
    min_raw_diff: float | None = None
    min_raw_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One metric of the family, over one grouping.

    ``unscored`` (length G) counts the trials of each group without an outcome, refusals apart. ``favourable`` is the
    value, 1 or 0, of the favourable answer of a yes/no outcome, None where that is not known. ``refusals`` is the place
    of the refusals beside this metric in the family; ``worst_rank`` measures the metric again with refusals ranked
    worst, and ``imputed(i, j, first_high)`` compares two groups with what is missing set to the extremes: of group *i*
    to the high one and of group *j* to the low one, or the other way round.
    """

    name: str
    by: str
    labels: tuple[str, ...]
    blocks: tuple[str, ...]
    metric: Metric
    unscored: Ints
    lower_is_worse: bool
    favourable: float | None = None
    categories: tuple[str, ...] = ()
    alarm_only: bool = False
    refusals: int | None = None
    worst_rank: Callable[[], Metric] | None = None
    imputed: Callable[[int, int, bool], Metric] | None = None

    @property
    def unscored_share(self) -> Floats:
        """Of each group's trials, refusals apart; 1 for a group without a usable answer (G)."""
        total = self.metric.trials + self.unscored
        return np.where(total > 0, self.unscored / np.maximum(total, 1), 0.0)


def missing_member(design: Design, by: str, missing: Bools) -> Member | None:
    """Missing outcomes as a metric of their own, which raises the alarm where one group has more; None without any."""
    if not bool(missing.any()):
        return None
    everyone = np.ones(design.rows, dtype=np.bool_)
    return Member(
        name=NO_ANSWER,
        by=by,
        labels=design.group.labels,
        blocks=design.block_labels,
        metric=measure(design, missing.astype(np.float64), everyone, OutcomeKind.REFUSAL),
        unscored=np.zeros(len(design.group.labels), dtype=np.intp),
        lower_is_worse=False,
        favourable=0.0,
        alarm_only=True,
    )
