"""The chance that a system that treats everybody alike turns a test, or a session, red; Holm over a
session's findings.

Standard library only: the controller of a session loads no numpy. The chance is the rate that was
measured at alpha .05 (``docs/calibration.md``); at another alpha it changes as the bound from
normal theory does: the family of an assertion at alpha, its templates by themselves at a fifth of
alpha. An alarm that is judged again has to be raised by the first sample and, at half of alpha, by
both together, whose statistics correlate by √½ (Pocock 1977, Biometrika 64:191).

Each finding already answers for its own pairs. Holm's step-down over the findings (Holm 1979; valid
however they depend on each other) shows which alarms stand for the session as a whole. It changes
no verdict. See ``docs/decisions/0070-across-a-session.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from math import isclose, prod, sqrt
from statistics import NormalDist

from pytest_fairness.model import ALARMS, JSON, Finding, PairResult, Verdict

ALPHA = 0.05
CONFIRMED = 0.5
"""Share of alpha at which both samples together raise the alarm again (Pocock 1977)."""
#: A fair audit turned red so often at alpha .05: a table, and a grid whose alarm is judged again.
_MEASURED, _MEASURED_CONFIRMED = 0.046, 0.0077
#: A session that is red by chance no more often than this needs no remark.
RARE = 0.05
TEMPLATE_ALPHA = 0.2
"""Share of alpha at which a template by itself raises the alarm: .01 of .05."""

_STEP = 0.01
_FAR = 6.0
_KEY = "session"
#: How a test ends, in pytest's words, that does not fail the session by itself.
_GREEN = ("passed", "xfailed")


# ---------------------------------------------------------------- the chance of a false alarm


@cache
def chance(alpha: float = ALPHA, *, confirmed: bool = False) -> float:
    """Return how often an assertion at *alpha* turns red about a fair system; *confirmed*: if an
    alarm is judged again on another sample.
    """
    measured = _MEASURED
    if confirmed:
        measured = _MEASURED_CONFIRMED
    share = _bound(alpha, confirmed=confirmed) / _bound(ALPHA, confirmed=confirmed)
    return min(1.0, measured * share)


def _bound(alpha: float, *, confirmed: bool) -> float:
    """Return the bound of a family of one test: larger ones are less likely to alarm twice."""
    levels = (alpha, TEMPLATE_ALPHA * alpha)
    if not confirmed:
        return sum(levels)
    # The second term: another test than the first sample's.
    return sum(_twice(level) + CONFIRMED * level**2 for level in levels)


def _twice(alpha: float) -> float:
    """The chance that a test is significant in the first sample at *alpha*, and in both samples at
    its share.
    """
    normal = NormalDist()
    first, both = (normal.inv_cdf(1 - share * alpha / 2) for share in (1, CONFIRMED))
    # Given the statistic of both, that of the first is normal around it over √2, with variance one
    # half.
    places = (both + _STEP * (at + 0.5) for at in range(int(_FAR / _STEP)))
    return 2 * sum(
        normal.pdf(z) * normal.cdf((z / sqrt(2) - first) * sqrt(2)) * _STEP for z in places
    )


def of_session(chances: Iterable[float]) -> float:
    """The chance that at least one of several assertions raises the alarm about a fair system."""
    return 1 - prod(1 - chance for chance in chances)


def of_finding(finding: Finding) -> float | None:
    """Return what holds for the assertion of *finding*; None where nothing is known, as of a bare
    ratio.
    """
    share = finding.family.get("alpha" if finding.assertion == "baseline" else "false_alarm")
    if isinstance(share, (int, float)) and not isinstance(share, bool):
        return float(share)
    return None


def is_judged_once(finding: Finding) -> bool:
    """Return whether an alarm of the assertion of *finding* stands without a second sample."""
    share = of_finding(finding)
    alpha = finding.family.get("alpha")
    if finding.assertion == "baseline" or share is None or not isinstance(alpha, float):
        return False
    return isclose(share, chance(alpha), rel_tol=1e-6)


# ---------------------------------------------------------------- across a session


def finding_p_value(finding: Finding) -> float:
    """The p-value of the whole finding, that no pair of it differs: the smallest corrected one; 1
    without any test.

    It is the evidence *for an alarm*: of an equivalence that of a difference, of two arms only that
    of a disparity which does not shrink.
    """

    def p_value(pair: PairResult) -> float:
        if finding.assertion == "equivalent":
            return _number(pair.statistics.get("difference_corrected_p_value"), 1.0)
        before, after = (
            abs(_number(pair.statistics.get(arm), 0.0)) for arm in ("control", "treated")
        )
        if finding.assertion != "arm_reduces_disparity" or after >= before:
            return pair.corrected_p_value
        return 1.0

    return min(map(p_value, finding.pairs), default=1.0)


def _number(value: JSON, default: float) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    return default


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm-adjusted *p_values*, in the given order."""
    count = len(p_values)
    order = sorted(range(count), key=p_values.__getitem__)
    steps = accumulate(
        (min(1.0, p_values[at] * (count - rank)) for rank, at in enumerate(order)), max
    )
    return [q for _, q in sorted(zip(order, steps, strict=True))]


def adjusted(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """*findings*, each with ``details["session"]``: its p-value, the adjusted one, and over how
    many findings.
    """
    p_values = [finding_p_value(finding) for finding in findings]
    beside: dict[str, JSON] = {"findings": len(findings), "method": "holm"}
    return tuple(
        replace(
            finding,
            details={**finding.details, _KEY: {"p_value": p, "corrected_p_value": q, **beside}},
        )
        for finding, p, q in zip(findings, p_values, holm(p_values), strict=True)
    )


def session_p_value(finding: Finding) -> float | None:
    """The adjusted p-value of *finding*, where the session made more than one finding."""
    session = finding.details.get(_KEY)
    if not isinstance(session, Mapping) or _number(session.get("findings"), 0) < 2:
        return None
    return _number(session.get("corrected_p_value"), 1.0)


def only_by_itself(finding: Finding) -> bool:
    """Return whether *finding* is a FLAG or FAIL beyond chance by itself and not across its
    session.
    """
    q = session_p_value(finding)
    if finding.verdict not in ALARMS or q is None:
        return False
    return finding_p_value(finding) < _number(finding.family.get("alpha"), ALPHA) <= q


def alarms(findings: Sequence[Finding], outcomes: Sequence[str], alpha: float) -> list[int]:
    """Places of the *findings* below *alpha* across the session whose tests (ended as *outcomes*
    say) did not fail.

    A PASS is none of them: it has shown that the difference is too small to matter, and in a large
    sample a small difference is significant too.
    """
    corrected = holm([finding_p_value(finding) for finding in findings])
    return [
        at
        for at, (finding, outcome, q) in enumerate(zip(findings, outcomes, corrected, strict=True))
        if outcome in _GREEN and finding.verdict is not Verdict.PASS and q < alpha
    ]
