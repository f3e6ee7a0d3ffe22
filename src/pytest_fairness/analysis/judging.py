"""From compared metrics to judged pairs: one family, one correction, the refusals' bearing on the scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_fairness.analysis.evidence import gather, judge
from pytest_fairness.analysis.members import Member, Thresholds
from pytest_fairness.analysis.pair_results import pair_results
from pytest_fairness.model import PairResult, Reason, Verdict
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.frames import Floats
from pytest_fairness.statistics.metrics import Metric
from pytest_fairness.verdict import (
    MAX_REFUSAL_DIFFERENCE,
    Decision,
    after_refusals,
    worse,
)


def judge_family(members: Sequence[Member], thresholds: Thresholds, cluster_noun: str) -> list[PairResult]:
    """Judge all pairs of all members as one family, in order."""
    family = [member.metric.p_values for member in members]
    size = sum(p.size for p in family)
    corrected = _corrected(family, thresholds)
    evidence = [
        gather(member, member.metric, p, q, thresholds, size, cluster_noun)
        for member, p, q in zip(members, family, corrected, strict=True)
    ]
    decisions = [judge(pairs) for pairs in evidence]

    touched = {at: _differential(members, decisions, at) for at in range(len(members))}
    second: dict[int, Metric] = {}
    for at, which in touched.items():
        again_ranked = members[at].worst_rank
        if again_ranked is not None and any(which):
            second[at] = again_ranked()
    worst: dict[int, list[Decision]] = {}
    for at, metric in second.items():
        family[at] = np.where(touched[at], np.minimum(family[at], metric.p_values), family[at])
    if second:
        corrected = _corrected(family, thresholds)
        for at, metric in second.items():
            again = gather(members[at], metric, metric.p_values, corrected[at], thresholds, size, cluster_noun)
            worst[at] = judge(again)
    results: list[PairResult] = []
    for at, member in enumerate(members):
        flags = touched[at]
        final = decisions[at]
        if any(flags):
            final = [
                _after_refusals(decision, worst[at][place] if at in worst else None) if flags[place] else decision
                for place, decision in enumerate(final)
            ]
        extra = _beside_worst_rank(member.metric, second[at], flags) if at in second else None
        results += pair_results(member, evidence[at], final, family[at], corrected[at], extra)
    return results


def _after_refusals(answered: Decision, worst: Decision | None) -> Decision:
    """The decision on a pair whose refusals differ: the worse of that on the answers and that with worst ranks."""
    chosen = after_refusals(answered, differential=True)
    return chosen if worst is None or answered.reason is Reason.UNSCORED else worse(chosen, worst)


def _beside_worst_rank(answered: Metric, worst: Metric, flags: Sequence[bool]) -> list[dict[str, float]]:
    """Both p-values of the pairs whose refusals differ, and the plain recipe's with refusals ranked worst."""
    spec = np.ones(len(flags))
    if worst.comparison is not None:
        spec = worst.column(worst.comparison.beside["spec_p_value"], 1.0)
    return [
        {"complete_case_p_value": c, "worst_rank_p_value": w, "worst_rank_spec_p_value": plain} if flag else {}
        for c, w, plain, flag in zip(
            answered.p_values.tolist(), worst.p_values.tolist(), spec.tolist(), flags, strict=True
        )
    ]


def _corrected(family: Sequence[Floats], thresholds: Thresholds) -> list[Floats]:
    joined = correct(np.concatenate(list(family)) if family else np.zeros(0), thresholds.correction)
    return np.split(joined, np.cumsum([p.size for p in family])[:-1]) if family else []


def _differential(members: Sequence[Member], decisions: Sequence[Sequence[Decision]], at: int) -> list[bool]:
    """Pairs of a score whose refusals differ: judged FLAG or FAIL, or over five percentage points apart."""
    pairs = len(decisions[at])
    beside = members[at].refusals
    if beside is None:
        return [False] * pairs
    comparison = members[beside].metric.comparison
    gap = np.zeros(pairs)
    if comparison is not None:
        gap = np.abs(members[beside].metric.column(comparison.beside["risk_difference"], 0.0))
    return [
        decision.verdict in (Verdict.FLAG, Verdict.FAIL) or distance > MAX_REFUSAL_DIFFERENCE + 1e-12
        for decision, distance in zip(decisions[beside], gap.tolist(), strict=True)
    ]
