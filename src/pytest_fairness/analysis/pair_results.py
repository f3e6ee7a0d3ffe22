"""What is reported of each judged pair, built by columns: one list a figure, then one record a pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pytest_fairness.analysis.evidence import Evidence
from pytest_fairness.analysis.members import Member
from pytest_fairness.model import JSON, OutcomeKind, PairResult
from pytest_fairness.statistics.comparison import Comparison
from pytest_fairness.statistics.frames import Floats, Ints
from pytest_fairness.statistics.mde import minimum_detectable_effect
from pytest_fairness.statistics.metrics import Metric
from pytest_fairness.verdict import Decision, as_spec


def pair_results(
    member: Member,
    evidence: Evidence,
    decisions: Sequence[Decision],
    p: Floats,
    q: Floats,
    extra: Sequence[Mapping[str, float]] | None,
) -> list[PairResult]:
    """One result a pair of groups of *member*, in the order of *evidence*.

    *p* and *q* are the p-values before and after correction; *extra*, if given, has figures to stand beside those
    of each pair. What is unknown (NaN) is ``None``, or left out of ``statistics``.
    """
    metric, comparison = member.metric, member.metric.comparison
    count = len(decisions)
    unknown = np.full(count, np.nan)
    smallest, difference, p_row, p_cluster = unknown, unknown, np.ones(count), unknown
    tests, effect_name = [""] * count, "d"
    if comparison is not None:
        smallest = metric.column(_mde(comparison, metric, evidence), np.nan)
        difference = metric.column(comparison.difference, np.nan)
        p_row = np.nan_to_num(metric.column(comparison.p_row, 1.0), nan=1.0)
        p_cluster = metric.column(comparison.p_cluster, np.nan)
        tests = [comparison.test[at] if at >= 0 else "" for at in metric.index.tolist()]
        effect_name = comparison.effect_name
    statistics = _statistics(member, evidence)
    if extra is not None:
        for figures, more in zip(statistics, extra, strict=True):
            figures.update(more)
    labels, scopes = evidence.labels, ("names", "labels")
    return [
        PairResult(
            group_1=labels[i],
            group_2=labels[j],
            metric=member.name,
            verdict=decision.verdict,
            reason=decision.reason,
            spec_verdict=as_spec(decision.verdict),
            p_row=row,
            p_cluster=cluster,
            p_value=p_at,
            corrected_p_value=q_at,
            effect=effect,
            effect_name=effect_name,
            effect_low=low,
            effect_high=high,
            difference=apart,
            worse_off=labels[worse] if worse >= 0 else None,
            test=test,
            scope=scopes[one],
            mde=mde,
            needs=decision.needs,
            statistics=figures,
            notes=decision.notes,
        )
        for i, j, decision, row, cluster, p_at, q_at, effect, low, high, apart, worse, test, one, mde, figures in zip(
            evidence.first.tolist(),
            evidence.second.tolist(),
            decisions,
            p_row.tolist(),
            _nullable(p_cluster),
            p.tolist(),
            q.tolist(),
            evidence.effect.tolist(),
            evidence.low.tolist(),
            evidence.high.tolist(),
            _nullable(difference),
            _worse_off(difference, member, evidence).tolist(),
            tests,
            evidence.one_cluster.tolist(),
            _nullable(smallest),
            statistics,
            strict=True,
        )
    ]


def _statistics(member: Member, evidence: Evidence) -> list[dict[str, JSON]]:
    """Everything reported beside the verdict, a dictionary a pair, without what is unknown for that pair."""
    metric, comparison = member.metric, member.metric.comparison
    figures: list[dict[str, JSON]] = [{} for _ in evidence.first]
    if comparison is not None:
        columns = {
            **comparison.beside,
            "difference_low": comparison.difference_low,
            "difference_high": comparison.difference_high,
            "rows_lost_to_ragged_blocks": comparison.ragged,
        }
        table = np.array([metric.column(values, np.nan) for values in columns.values()]).T
        unknown = np.isnan(table)
        known = ~unknown.all(axis=0)
        names = [name for name, keep in zip(columns, known.tolist(), strict=True) if keep]
        figures = [dict(zip(names, row)) for row in table[:, known].tolist()]  # noqa: B905 - numpy made them alike
        for at in np.flatnonzero(unknown[:, known].any(axis=1)).tolist():
            figures[at] = {name: value for name, value in figures[at].items() if value == value}  # noqa: PLR0124 - NaN
        if "largest_gap_category" in names:
            _name_categories(figures, member.categories)
    counts = [
        side.tolist() for n in (evidence.n, evidence.clusters) for side in (n[evidence.first], n[evidence.second])
    ]
    for pair, n1, n2, k1, k2 in zip(figures, *counts, strict=True):
        pair["by"] = member.by
        pair["distinct_n_1"], pair["distinct_n_2"] = n1, n2
        pair["clusters_1"], pair["clusters_2"] = k1, k2
    return figures


def _name_categories(figures: Sequence[dict[str, JSON]], categories: Sequence[str]) -> None:
    for pair in figures:
        code = pair.get("largest_gap_category")
        if isinstance(code, float):
            pair["largest_gap_category"] = categories[int(code)]


def _nullable(column: Floats) -> list[float | None]:
    """The numbers as Python's own, ``None`` for NaN."""
    values: list[float | None] = column.tolist()
    for at in np.flatnonzero(np.isnan(column)).tolist():
        values[at] = None
    return values


def _worse_off(difference: Floats, member: Member, evidence: Evidence) -> Ints:
    """The group that each pair finds worse off; −1 for neither, and for labels, which are no better or worse."""
    if member.metric.kind is OutcomeKind.CATEGORICAL:
        return np.full(difference.size, -1)
    lower = np.where(difference < 0, evidence.first, evidence.second)
    higher = np.where(difference < 0, evidence.second, evidence.first)
    apart = ~np.isnan(difference) & (difference != 0)
    return np.where(apart, lower if member.lower_is_worse else higher, -1)


def _mde(comparison: Comparison, metric: Metric, evidence: Evidence) -> Floats:
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
        family_size=evidence.family_size,
        alpha=evidence.alpha,
    )
