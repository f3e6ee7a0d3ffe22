"""Checks that compare no groups: a share against its limit, and what is counted whole.

Suites read, ask and count; what follows from their counts is decided here, of what had to be done
or declared in :mod:`~pytest_fairness.analysis.checklist`, and of control charts in
:mod:`~pytest_fairness.analysis.drift`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.policy import MAX_UNSCORED
from pytest_fairness.analysis.provenance import with_provenance
from pytest_fairness.model import ALARMS, Finding, Reason, Verdict
from pytest_fairness.statistics.proportions import binomial_tail, clopper_pearson

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.statistics.goodness_of_fit import GoodnessOfFit

__all__ = [
    "JudgedShare",
    "checked",
    "clopper_pearson",
    "judge_counts",
    "judge_representation",
    "judge_share",
    "judge_status",
    "unchecked",
]

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class JudgedShare:
    """A share of units beside its limit.

    ``p_value`` is the exact chance of a share at least as far beyond the limit, were it at the
    limit; ``low`` and ``high`` are the exact 95 % interval of the share (Clopper & Pearson 1934).
    """

    verdict: Verdict
    reason: Reason | None
    p_value: float
    low: float
    high: float
    tests: int = 1

    @property
    def corrected_p_value(self) -> float:
        """Return the p-value times the number of tests that share the level."""
        return min(1.0, self.tests * self.p_value)

    @property
    def family(self) -> dict[str, Any]:
        """Return how many tests share the level, and how, as a finding says it."""
        method = "none"
        if self.tests > 1:
            method = "bonferroni"
        return {"size": self.tests, "method": method, "alpha": ALPHA}


def judge_share(
    count: float,
    units: float,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    tests: int = 1,
    fewest: int = 1,
    missing: float = 0.0,
    flag_up_to: float = 0.0,
) -> JudgedShare:
    """Return whether *count* of *units* independent units are within the limit, *at_most* or
    *at_least* a share of them.

    INCONCLUSIVE where over a twentieth of what was asked is *missing*, a share, or there are
    *fewer* units than it takes. FAIL where a share so far beyond the limit has an exact chance of
    at most .05 divided by *tests* (one-sided, Bonferroni); FLAG in its place where the share
    beyond is itself no larger than *flag_up_to*. PASS where the exact one-sided 95 % bound of the
    share is within the limit. Else INCONCLUSIVE. *count* is no whole number where units are means
    of several replies. Raises ValueError unless one limit is given.
    """
    if (at_most is None) == (at_least is None):
        raise ValueError("give at_most or at_least")
    low, high = clopper_pearson(count, units)
    beyond = count
    limit = at_most
    if limit is None:
        # At least a share with something is at most the rest without it.
        beyond = units - count
        limit = 1 - float(at_least or 0.0)
    p_value = binomial_tail(beyond, units, limit)
    bound = clopper_pearson(beyond, units, 1 - 2 * ALPHA)[1]
    if missing > MAX_UNSCORED:
        return JudgedShare(Verdict.INCONCLUSIVE, Reason.UNSCORED, p_value, low, high, tests)
    if units < fewest:
        return JudgedShare(Verdict.INCONCLUSIVE, Reason.N, p_value, low, high, tests)
    if p_value <= ALPHA / tests:
        verdict = Verdict.FAIL
        if beyond <= flag_up_to * units:
            verdict = Verdict.FLAG
        return JudgedShare(verdict, None, p_value, low, high, tests)
    if bound <= limit:
        return JudgedShare(Verdict.PASS, None, p_value, low, high, tests)
    return JudgedShare(Verdict.INCONCLUSIVE, Reason.PRECISION, p_value, low, high, tests)


def judge_representation(fit: GoodnessOfFit, margin: float) -> tuple[Verdict, Reason | None]:
    """Return whether every group has at least *margin* of its declared share, by the intervals of
    all groups together: FAIL where one is below *margin*, FLAG where one is below its share, PASS
    where all are shown to be at least *margin*.
    """
    least = min(fit.groups, key=lambda group: group.ratio)
    if least.high < margin:
        return Verdict.FAIL, None
    if least.high < 1:
        return Verdict.FLAG, None
    if min(group.low for group in fit.groups) >= margin:
        return Verdict.PASS, None
    return Verdict.INCONCLUSIVE, Reason.PRECISION


def judge_counts(
    counts: Iterable[float],
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    fail_below: float | None = None,
) -> Verdict:
    """Return whether each of *counts*, which are whole and have no chance in them, is within the
    limit: FAIL where one is under *fail_below*, FLAG where one is under *at_least* or over
    *at_most*, else PASS.
    """
    numbers = list(counts)
    if fail_below is not None and any(number < fail_below for number in numbers):
        return Verdict.FAIL
    if at_least is not None and any(number < at_least for number in numbers):
        return Verdict.FLAG
    if at_most is not None and any(number > at_most for number in numbers):
        return Verdict.FLAG
    return Verdict.PASS


def judge_status(baseline: Finding | None, *, fallen: int, unknown: bool = False) -> Verdict:
    """Return the status of units that have a threshold each and a *baseline* together.

    FAIL where one has *fallen* below its threshold, or the comparison with the baseline raises an
    alarm that nobody has justified; INCONCLUSIVE where that comparison is, or what came of it is
    *unknown*; else PASS.
    """
    if fallen:
        return Verdict.FAIL
    if baseline is None:
        if unknown:
            return Verdict.INCONCLUSIVE
        return Verdict.PASS
    if baseline.verdict in ALARMS:
        if baseline.justification:
            return Verdict.PASS
        return Verdict.FAIL
    return baseline.verdict


def checked(
    frame: pd.DataFrame, *, assertion: str, verdict: Verdict, words: str, **fields: Any
) -> Finding:
    """Return the finding of a check about *frame*, in *words* that end without a full stop; other
    *fields* are those of :class:`Finding`.
    """
    finding = Finding(
        assertion=assertion, verdict=verdict, sentence=f"{verdict}: {words}.", **fields
    )
    return with_provenance(finding, frame)


def unchecked(
    frame: pd.DataFrame, *, assertion: str, reason: Reason, words: str, **fields: Any
) -> Finding:
    """Return the finding of a check that could not be made, for a *reason*: INCONCLUSIVE."""
    return checked(
        frame,
        assertion=assertion,
        verdict=Verdict.INCONCLUSIVE,
        words=words,
        reason=reason,
        **fields,
    )
