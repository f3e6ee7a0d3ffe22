"""What a family of tests is made of: its members, one metric over one grouping each, and what the caller set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_fairness.statistics.frames import Floats
from pytest_fairness.statistics.metrics import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One gating metric of the family, over one grouping.

    ``labels`` and ``unscored`` (share of a group's answered trials without outcome) have one entry a group.
    ``accompanies`` marks refusals that stand beside a score; ``refusals`` is the place of that member in the
    family, and ``worst_rank`` measures the score again with refusals ranked worst.
    """

    name: str
    by: str
    labels: tuple[str, ...]
    metric: Metric
    unscored: Floats
    lower_is_worse: bool
    categories: tuple[str, ...] = ()
    accompanies: bool = False
    refusals: int | None = None
    worst_rank: Callable[[], Metric] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What the caller set: alpha, the correction, and the smallest difference in the outcome's unit worth
    minding.
    """

    alpha: float = 0.05
    correction: str = "bonferroni"
    min_raw_diff: float | None = None
    min_raw_ratio: float | None = None
