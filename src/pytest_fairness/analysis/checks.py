"""Checks that compare no groups: a share against a limit, and a list of what had to be done.

Suites read, ask and count; what follows from their counts is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.provenance import with_provenance
from pytest_fairness.model import Finding, Reason, Verdict
from pytest_fairness.statistics.proportions import binomial_tail, clopper_pearson

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.statistics.goodness_of_fit import GoodnessOfFit

__all__ = [
    "JudgedShare",
    "checked",
    "clopper_pearson",
    "judge_checklist",
    "judge_representation",
    "judge_share",
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
) -> JudgedShare:
    """Return whether *count* of *units* independent units are within the limit, *at_most* or
    *at_least* a share of them.

    FAIL where a share so far beyond the limit has an exact chance of at most .05 divided by *tests*
    (one-sided, Bonferroni). PASS where the exact one-sided 95 % bound of the share is within the
    limit. Else INCONCLUSIVE, as with *fewer* units than it takes. *count* is no whole number where
    units are means of several replies. Raises ValueError unless one limit is given.
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
    if units < fewest:
        return JudgedShare(Verdict.INCONCLUSIVE, Reason.N, p_value, low, high, tests)
    if p_value <= ALPHA / tests:
        return JudgedShare(Verdict.FAIL, None, p_value, low, high, tests)
    if bound <= limit:
        return JudgedShare(Verdict.PASS, None, p_value, low, high, tests)
    return JudgedShare(Verdict.INCONCLUSIVE, Reason.PRECISION, p_value, low, high, tests)


def judge_representation(fit: GoodnessOfFit, margin: float) -> tuple[Verdict, Reason | None]:
    """Return whether every group has at least *margin* of its declared share, by the intervals of
    all groups together: FAIL where one is below *margin*, FLAG where one is below its share, PASS
    where all are shown to be at least *margin*.
    """
    least = min(range(len(fit.ratios)), key=lambda at: fit.ratios[at])
    if fit.high[least] < margin:
        return Verdict.FAIL, None
    if fit.high[least] < 1:
        return Verdict.FLAG, None
    if min(fit.low) >= margin:
        return Verdict.PASS, None
    return Verdict.INCONCLUSIVE, Reason.PRECISION


def judge_checklist(steps: Iterable[Verdict]) -> Verdict:
    """Return the worst of *steps*, each of which had to be done; PASS where there is none."""
    verdicts = list(steps)
    if not verdicts:
        return Verdict.PASS
    return Verdict.worst(verdicts)


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
