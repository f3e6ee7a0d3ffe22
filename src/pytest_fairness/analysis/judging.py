"""From compared metrics to judged pairs: one family, one correction, the refusals' bearing on the scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_fairness.model import JSON, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.comparison import Comparison
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.frames import Bools, Floats
from pytest_fairness.statistics.mde import minimum_detectable_effect
from pytest_fairness.statistics.metrics import Metric
from pytest_fairness.statistics.proportions import newcombe
from pytest_fairness.verdict import (
    MAX_REFUSAL_DIFFERENCE,
    MINIMUM_N,
    Decision,
    PairEvidence,
    after_refusals,
    as_spec,
    judge_pair,
    worse,
)


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


def judge_family(members: Sequence[Member], thresholds: Thresholds, cluster_noun: str) -> list[PairResult]:
    """Judge all pairs of all members as one family, in order."""
    family = [member.metric.p_values for member in members]
    size = sum(p.size for p in family)
    corrected = _corrected(family, thresholds)
    evidence = [
        _evidence(member, member.metric, p, q, thresholds, size, cluster_noun)
        for member, p, q in zip(members, family, corrected, strict=True)
    ]
    decisions = [[judge_pair(pair) for pair in pairs] for pairs in evidence]

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
            again = _evidence(members[at], metric, metric.p_values, corrected[at], thresholds, size, cluster_noun)
            worst[at] = [judge_pair(pair) for pair in again]
    results: list[PairResult] = []
    for at, member in enumerate(members):
        flags = touched[at]
        final = []
        for place, decision in enumerate(decisions[at]):
            chosen = decision
            if flags[place]:
                chosen = after_refusals(decision, differential=True)
                if at in worst and decision.reason is not Reason.UNSCORED:
                    chosen = worse(chosen, worst[at][place])
            final.append(chosen)
        extra = _beside_worst_rank(member.metric, second[at], flags) if at in second else None
        results += _results(member, evidence[at], final, family[at], corrected[at], thresholds, size, extra)
    return results


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


def _evidence(
    member: Member,
    metric: Metric,
    p: Floats,
    q: Floats,
    thresholds: Thresholds,
    size: int,
    cluster_noun: str,
) -> list[PairEvidence]:
    groups = all_pairs(len(member.labels))
    comparison = metric.comparison
    count = groups.first.size
    zero, endless = np.zeros(count), np.full(count, np.inf)
    effect, low, high, ragged, labels, constant = zero, -endless, endless, zero, zero, zero
    trivial = inside = zero
    if comparison is not None:
        effect = metric.column(comparison.effect, 0.0)
        low, high = metric.column(comparison.low, -np.inf), metric.column(comparison.high, np.inf)
        ragged = metric.column(comparison.ragged, 0.0)
        labels = metric.column(comparison.labels.astype(np.float64), 0.0)
        constant = metric.column(comparison.constant.astype(np.float64), 0.0)
        raw = _raw(comparison, thresholds) if not member.accompanies else _refusal_margin(comparison)
        trivial, inside = metric.column(raw[0], 0.0), metric.column(raw[1], 0.0)
    noun = "rows" if metric.layout is not None and metric.layout.own_rows else cluster_noun
    minimum = MINIMUM_N[metric.kind]
    n, k, unscored = metric.distinct.tolist(), metric.clusters.tolist(), member.unscored.tolist()
    return [
        PairEvidence(
            effect=e,
            low=lo,
            high=hi,
            p_value=p_at,
            corrected=q_at,
            n=(n[i], n[j]),
            clusters=(k[i], k[j]),
            minimum=minimum,
            scope="labels" if one else "names",
            alpha=thresholds.alpha,
            family_size=size,
            unscored=max(unscored[i], unscored[j]),
            ragged=lost,
            raw_trivial=bool(small),
            raw_inside=bool(within),
            constant=bool(still),
            groups=(member.labels[i], member.labels[j]),
            cluster_noun=noun,
        )
        for i, j, e, lo, hi, p_at, q_at, one, lost, small, within, still in zip(
            groups.first.tolist(),
            groups.second.tolist(),
            effect.tolist(),
            low.tolist(),
            high.tolist(),
            p.tolist(),
            q.tolist(),
            labels.tolist(),
            ragged.tolist(),
            trivial.tolist(),
            inside.tolist(),
            constant.tolist(),
            strict=True,
        )
    ]


def _raw(comparison: Comparison, thresholds: Thresholds) -> tuple[Floats, Floats]:
    """Whether the difference, and its whole 90 % interval, is below what the caller called worth minding."""
    count = comparison.effect.size
    trivial, inside = np.zeros(count), np.zeros(count)
    reach = np.maximum(np.abs(comparison.difference_low), np.abs(comparison.difference_high))
    if thresholds.min_raw_diff is not None:
        trivial = np.maximum(trivial, np.abs(comparison.difference) < thresholds.min_raw_diff)
        inside = np.maximum(inside, reach < thresholds.min_raw_diff)
    if thresholds.min_raw_ratio is not None:
        one, two = (comparison.beside[name] for name in _mean_names(comparison))
        larger, smaller = np.maximum(one, two), np.minimum(one, two)
        positive = (larger > 0) & (smaller >= 0)
        ratio = np.where(positive, smaller / np.where(positive, larger, 1.0), 0.0)
        trivial = np.maximum(trivial, ratio >= thresholds.min_raw_ratio)
        inside = np.maximum(inside, positive & (reach < (1 - thresholds.min_raw_ratio) * larger))
    return trivial.astype(np.float64), inside.astype(np.float64)


def _mean_names(comparison: Comparison) -> tuple[str, str]:
    return ("mean_1", "mean_2") if "mean_1" in comparison.beside else ("rate_1", "rate_2")


def _refusal_margin(comparison: Comparison) -> tuple[Floats, Floats]:
    """Refusals beside a score: rare ones cannot be told apart on the odds scale by any affordable number of
    calls, so they also pass where the 90 % interval of the risk difference lies inside ± five percentage
    points.
    """
    b = comparison.beside
    shrink = np.maximum(b["design_effect"], 1.0)
    n1, n2 = b["n_1"] / shrink, b["n_2"] / shrink
    low, high = newcombe(b["rate_1"] * n1, n1, b["rate_2"] * n2, n2, 0.90)
    inside = np.maximum(np.abs(low), np.abs(high)) < MAX_REFUSAL_DIFFERENCE
    return np.zeros(low.size), inside.astype(np.float64)


def _results(
    member: Member,
    evidence: Sequence[PairEvidence],
    decisions: Sequence[Decision],
    p: Floats,
    q: Floats,
    thresholds: Thresholds,
    size: int,
    extra: Sequence[dict[str, float]] | None,
) -> list[PairResult]:
    metric, comparison = member.metric, member.metric.comparison
    results = []
    columns: dict[str, list[float | None]] = {}
    gaps = False
    mde = difference = p_row = p_cluster = np.full(len(evidence), np.nan)
    if comparison is not None:
        smallest = _mde(comparison, metric, thresholds.alpha, size)
        mde, difference = metric.column(smallest, np.nan), metric.column(comparison.difference, np.nan)
        p_row = metric.column(comparison.p_row, 1.0)
        p_cluster = metric.column(comparison.p_cluster, np.nan)
        known = {
            **comparison.beside,
            "difference_low": comparison.difference_low,
            "difference_high": comparison.difference_high,
            "rows_lost_to_ragged_blocks": comparison.ragged,
        }
        for name, values in known.items():
            column = metric.column(values, np.nan)
            unknown = np.isnan(column)
            if not unknown.all():
                columns[name] = _nullable(column, unknown)
                gaps |= bool(unknown.any())
    names = list(columns)
    rows = list(zip(*columns.values(), strict=True)) if columns else [()] * len(evidence)
    index = metric.index.tolist()
    for at, (e, decision) in enumerate(zip(evidence, decisions, strict=True)):
        statistics: dict[str, JSON] = dict(zip(names, rows[at], strict=True))
        if gaps:
            statistics = {name: value for name, value in statistics.items() if value is not None}
        if "largest_gap_category" in statistics:
            gap = statistics["largest_gap_category"]
            statistics["largest_gap_category"] = member.categories[int(gap)] if isinstance(gap, float) else None
        if extra is not None:
            statistics.update(extra[at])
        statistics["by"] = member.by
        statistics["distinct_n_1"], statistics["distinct_n_2"] = e.n
        statistics["clusters_1"], statistics["clusters_2"] = e.clusters
        apart = float(difference[at])
        results.append(
            PairResult(
                group_1=e.groups[0],
                group_2=e.groups[1],
                metric=member.name,
                verdict=decision.verdict,
                reason=decision.reason,
                spec_verdict=as_spec(decision.verdict),
                p_row=_or(float(p_row[at]), 1.0),
                p_cluster=_or(float(p_cluster[at]), None),
                p_value=float(p[at]),
                corrected_p_value=float(q[at]),
                effect=e.effect,
                effect_name=comparison.effect_name if comparison is not None else "d",
                effect_low=e.low,
                effect_high=e.high,
                difference=_or(apart, None),
                worse_off=_worse_off(e.groups, apart, member, metric.kind),
                test=comparison.test[index[at]] if comparison is not None and index[at] >= 0 else "",
                scope=e.scope,
                mde=_or(float(mde[at]), None),
                needs=decision.needs,
                statistics=statistics,
                notes=decision.notes,
            )
        )
    return results


def _nullable(column: Floats, unknown: Bools) -> list[float | None]:
    values: list[float | None] = column.tolist()
    for at in np.flatnonzero(unknown).tolist():
        values[at] = None
    return values


def _or(value: float, otherwise: float | None) -> Any:
    return otherwise if math.isnan(value) else value


def _worse_off(groups: tuple[str, str], difference: float, member: Member, kind: OutcomeKind) -> str | None:
    if kind is OutcomeKind.CATEGORICAL or math.isnan(difference) or difference == 0:
        return None
    first_lower = difference < 0
    return groups[0] if first_lower == member.lower_is_worse else groups[1]


def _mde(comparison: Comparison, metric: Metric, alpha: float, size: int) -> Floats:
    """On clusters; where a group has one, on its rows, for such a result is about those labels."""
    alone = comparison.labels
    layout = metric.layout
    rows = layout.sizes if layout is not None else np.zeros(0)
    n1, n2 = rows[comparison.pairs.first], rows[comparison.pairs.second]
    return minimum_detectable_effect(
        np.where(alone, n1, comparison.clusters_1),
        np.where(alone, n2, comparison.clusters_2),
        np.where(alone, 1.0, comparison.per_cluster),
        np.where(alone, 0.0, comparison.icc),
        family_size=size,
        alpha=alpha,
    )
