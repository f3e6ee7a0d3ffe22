"""Across a session: every finding's p-value adjusted for how many findings the session made. Standard library only.

Each finding already answers for its own pairs. A session of fifty findings at .05 still raises two or three false
alarms; Holm's step-down over the findings (Holm 1979; valid however they depend on each other) says which alarms stand
for the session as a whole. It changes no verdict. See ``docs/decisions/0070-across-a-session.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_fairness.analysis.policy import ALPHA
from pytest_fairness.model import ALARMS, JSON, Finding, PairResult, Verdict

KEY = "session"
#: How a test ends, in pytest's words, that does not fail the session by itself.
GREEN = ("passed", "xfailed")


def finding_p_value(finding: Finding) -> float:
    """The p-value of the whole finding, that no pair of it differs: the smallest corrected one; 1 without any test.

    It is the evidence *for an alarm*: of an equivalence that of a difference, of two arms only that of a disparity
    which does not shrink.
    """
    return min((_alarm_p_value(finding, pair) for pair in finding.pairs), default=1.0)


def _alarm_p_value(finding: Finding, pair: PairResult) -> float:
    if finding.assertion == "equivalent":
        return _number(pair.statistics.get("difference_corrected_p_value"), 1.0)
    if finding.assertion == "arm_reduces_disparity":
        before, after = (abs(_number(pair.statistics.get(arm), 0.0)) for arm in ("control", "treated"))
        return pair.corrected_p_value if after >= before else 1.0
    return pair.corrected_p_value


def _number(value: JSON, otherwise: float) -> float:
    return float(value) if isinstance(value, (int, float)) else otherwise


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm-adjusted *p_values*, in the given order."""
    adjusted, highest, count = [0.0] * len(p_values), 0.0, len(p_values)
    for rank, at in enumerate(sorted(range(count), key=lambda place: p_values[place])):
        highest = max(highest, min(1.0, p_values[at] * (count - rank)))
        adjusted[at] = highest
    return adjusted


def adjusted(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """*findings*, each with ``details["session"]``: its p-value, the adjusted one, and over how many findings."""
    p_values = [finding_p_value(finding) for finding in findings]
    return tuple(
        replace(
            finding,
            details={
                **finding.details,
                KEY: {"p_value": p, "corrected_p_value": q, "findings": len(findings), "method": "holm"},
            },
        )
        for finding, p, q in zip(findings, p_values, holm(p_values), strict=True)
    )


def session_p_value(finding: Finding) -> float | None:
    """The adjusted p-value of *finding*, where the session made more than one finding."""
    told = finding.details.get(KEY)
    if not isinstance(told, Mapping) or _number(told.get("findings"), 0) < 2:
        return None
    return _number(told.get("corrected_p_value"), 1.0)


def only_by_itself(finding: Finding, alpha: float | None = None) -> bool:
    """Whether *finding* is a FLAG or FAIL beyond chance by itself and not across its session."""
    q = session_p_value(finding)
    if finding.verdict not in ALARMS or q is None:
        return False
    own = finding.family.get("alpha")
    level = _number(own, ALPHA)
    return finding_p_value(finding) < level and q >= (level if alpha is None else alpha)


def alarms(findings: Sequence[Finding], outcomes: Sequence[str], alpha: float) -> list[int]:
    """Places of the adjusted *findings* below *alpha* whose tests (ended as *outcomes* say) did not fail.

    A PASS is none of them: it has shown that the difference is too small to matter, and in a large sample a small
    difference is significant too.
    """
    return [
        at
        for at, (finding, outcome) in enumerate(zip(adjusted(findings), outcomes, strict=True))
        if outcome in GREEN
        and finding.verdict is not Verdict.PASS
        and _number(_told(finding).get("corrected_p_value"), 1.0) < alpha
    ]


def _told(finding: Finding) -> Mapping[str, JSON]:
    told = finding.details.get(KEY)
    return told if isinstance(told, Mapping) else {}
