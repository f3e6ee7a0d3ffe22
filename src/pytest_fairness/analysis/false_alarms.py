"""The chance that a system that treats everybody alike turns a test, or a session, red; Holm over a
session's tables.

Standard library only: the controller of a session loads no numpy. Of a table it is the rate that was
measured at alpha .05 (``docs/calibration.md``), at another alpha in proportion: the family of an
assertion at alpha, its templates by themselves at a fifth of alpha. A finding that looks says the
bound of its own budget (``analysis/looks.py``).

Each finding already answers for its own pairs. Holm's step-down over the tables of a session (Holm
1979; valid however they depend on each other) shows which alarms stand for the session as a whole. It
changes no verdict. See ``docs/decisions/0070-across-a-session.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod

from pytest_fairness.model import ALARMS, JSON, Finding, PairResult

ALPHA = 0.05
_MEASURED = 0.046
"""A fair audit of a table is red so often at alpha .05."""
#: A session that is red by chance no more often than this needs no remark.
RARE = 0.05
TEMPLATE_ALPHA = 0.2
"""Share of alpha at which a template by itself raises the alarm: .01 of .05."""

_KEY = "session"


# ---------------------------------------------------------------- the chance of a false alarm


def chance(alpha: float = ALPHA) -> float:
    """Return how often an assertion on a table, at *alpha*, turns red about a fair system."""
    return min(1.0, _MEASURED * alpha / ALPHA)


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
    """*findings*, of which those on tables have ``details["session"]``: the p-value, the adjusted
    one, and over how many findings. The p of a finding that looks is that of a stopped sample.
    """
    tables = [at for at, finding in enumerate(findings) if "looks" not in finding.details]
    p_values = [finding_p_value(findings[at]) for at in tables]
    beside: dict[str, JSON] = {"findings": len(tables), "method": "holm"}
    changed = list(findings)
    for at, p, q in zip(tables, p_values, holm(p_values), strict=True):
        session = {"p_value": p, "corrected_p_value": q, **beside}
        changed[at] = replace(findings[at], details={**findings[at].details, _KEY: session})
    return tuple(changed)


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
