"""A control chart's signal: what follows from a level or a gap that has moved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_fairness.analysis.policy import MARGIN, TRIVIAL
from pytest_fairness.model import Verdict

if TYPE_CHECKING:
    from pytest_fairness.statistics.control_charts import ControlChart


__all__ = ["JudgedDrift", "judge_drift"]


@dataclass(frozen=True, slots=True)
class JudgedDrift:
    """A verdict on a chart, with the means up to the change and from it on, and their difference
    ``d`` in standard deviations of the outcome; None without an alarm, or without such.
    """

    verdict: Verdict
    before: float | None = None
    after: float | None = None
    d: float | None = None


def judge_drift(
    chart: ControlChart, values: Sequence[float], sd: float | None, *, gap: bool = False
) -> JudgedDrift:
    """Return what follows from *chart*, which is that of *values*.

    PASS without an alarm, or for a change below
    :data:`~pytest_fairness.analysis.policy.TRIVIAL` standard deviations *sd*; FAIL for a *gap* that
    has become wider, and wider than :data:`~pytest_fairness.analysis.policy.MARGIN`; FLAG for any
    other alarm.
    """
    if chart.change is None:
        return JudgedDrift(Verdict.PASS)
    before = fmean(values[: chart.change])
    after = fmean(values[chart.change :])
    d = _in_sd(after - before, sd)
    verdict = Verdict.FLAG
    if d is not None and abs(d) < TRIVIAL:
        verdict = Verdict.PASS
    elif gap and _widened(before, after, sd):
        verdict = Verdict.FAIL
    return JudgedDrift(verdict, before, after, d)


def _widened(before: float, after: float, sd: float | None) -> bool:
    """Return whether a gap is wider than it was, and than the margin."""
    width = _in_sd(after, sd)
    return abs(after) > abs(before) and width is not None and abs(width) > MARGIN


def _in_sd(difference: float, sd: float | None) -> float | None:
    if sd is None:
        return None
    if sd > 0:
        return difference / sd
    if difference:
        return math.copysign(math.inf, difference)
    return 0.0
