"""The judged pairs as results: effects, tests and everything that is reported beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_fairness.analysis.members import Member
from pytest_fairness.analysis.policy import PairTable
from pytest_fairness.analysis.verdicts import Decision, spec_verdict
from pytest_fairness.model import JSON, OutcomeKind, PairResult
from pytest_fairness.statistics.comparison import Comparison
from pytest_fairness.statistics.frames import Floats, Ints
from pytest_fairness.statistics.mde import minimum_detectable_effect
from pytest_fairness.statistics.metrics import RATES
from pytest_fairness.statistics.proportions import clustered_difference


def pair_results(
    member: Member,
    table: PairTable,
    decisions: Sequence[Decision],
    extra: Sequence[dict[str, float]] | None,
) -> list[PairResult]:
    """One result a pair of groups of *member*; what is unknown (NaN) is None, or left out of ``statistics``."""
    metric, comparison = member.metric, member.metric.comparison
    count = len(decisions)
    unknown = np.full(count, np.nan)
    smallest, difference, p_row, p_cluster, spec_p, spec_size = (
        unknown,
        unknown,
        np.ones(count),
        unknown,
        unknown,
        unknown,
    )
    tests = [""] * count
    if comparison is not None:
        smallest = metric.column(_mde(comparison, table), np.nan)
        difference = metric.column(comparison.difference, np.nan)
        p_row = np.nan_to_num(metric.column(comparison.p_row, 1.0), nan=1.0)
        p_cluster = metric.column(comparison.p_cluster, np.nan)
        tests = [comparison.test[at] if at >= 0 else "" for at in metric.index.tolist()]
        spec_p, spec_size = (metric.column(comparison.beside[key], np.nan) for key in ("spec_p_value", "spec_effect"))
    statistics = _statistics(member, table)
    if extra is not None:
        for figures, more in zip(statistics, extra, strict=True):
            figures.update(more)
    chosen = np.argmax(np.stack([np.abs(np.nan_to_num(effect.value)) for effect in table.effects]), axis=0)
    value, low, high = (
        np.take_along_axis(np.stack([getattr(effect, key) for effect in table.effects]), chosen[None], axis=0)[0]
        for key in ("value", "low", "high")
    )
    names = [table.effects[at].name for at in chosen.tolist()]
    lows, highs = shown(value, low, high)
    worse_off = _worse_off(difference, member, table)
    labels, scopes = table.labels, ("names", "labels")
    return [
        PairResult(
            group_1=labels[i],
            group_2=labels[j],
            metric=member.name,
            verdict=decision.verdict,
            reason=decision.reason,
            spec_verdict=None if np.isnan(spec_1) else spec_verdict(spec_1, count, spec_2, int(min(n)), table.minimum),
            alarm_only=member.alarm_only,
            p_row=row,
            p_cluster=cluster,
            p_value=p_at,
            corrected_p_value=q_at,
            effect=effect,
            effect_name=name,
            effect_low=lowest,
            effect_high=highest,
            difference=apart,
            worse_off=labels[lower] if lower >= 0 else None,
            test=test,
            scope=scopes[one],
            mde=mde,
            needs=decision.needs,
            statistics=figures,
            notes=decision.notes,
        )
        for (
            i, j, decision, spec_1, spec_2, n, row, cluster, p_at, q_at, effect, name, lowest, highest, apart, lower,
            test, one, mde, figures,
        ) in zip(
            table.first.tolist(), table.second.tolist(), decisions, spec_p.tolist(), spec_size.tolist(),
            table.trials.tolist(), p_row.tolist(), _nullable(p_cluster), table.p_value.tolist(),
            table.corrected.tolist(), value.tolist(), names, lows, highs, _nullable(difference), worse_off.tolist(),
            tests, table.single.tolist(), _nullable(smallest), statistics, strict=True,
        )
    ]  # fmt: skip


def shown(value: Floats, low: Floats, high: Floats) -> tuple[list[float | None], list[float | None]]:
    """The ends of the intervals; None where an interval is endless or does not hold its estimate strictly."""
    usable = np.isfinite(low) & np.isfinite(high) & (low < value) & (value < high)
    return (
        [end if keep else None for end, keep in zip(low.tolist(), usable.tolist(), strict=True)],
        [end if keep else None for end, keep in zip(high.tolist(), usable.tolist(), strict=True)],
    )


def _statistics(member: Member, table: PairTable) -> list[dict[str, JSON]]:
    """Everything reported beside the verdict, a dictionary a pair, without what is unknown for that pair."""
    metric, comparison = member.metric, member.metric.comparison
    figures: list[dict[str, JSON]] = [{} for _ in table.first]
    if comparison is not None:
        columns = {
            **comparison.beside,
            "difference_low": comparison.difference_low,
            "difference_high": comparison.difference_high,
            "rows_lost_to_ragged_blocks": comparison.ragged,
            "effective_name_parts": np.where(
                comparison.part_clusters < comparison.clusters.min(axis=1) - 1e-9, comparison.part_clusters, np.nan
            ),
        }
        if metric.kind in RATES:
            columns |= _rate_interval(comparison)
        if len(comparison.effects) > 1:
            for key, effect in zip(("hedges_g", "d_from_cliffs_delta"), comparison.effects, strict=True):
                columns |= {f"{key}_low": effect.low, f"{key}_high": effect.high}
        padded = np.array([metric.column(values, np.nan) for values in columns.values()]).T
        missing = np.isnan(padded)
        known = ~missing.all(axis=0)
        names = [name for name, keep in zip(columns, known.tolist(), strict=True) if keep]
        figures = [dict(zip(names, row)) for row in padded[:, known].tolist()]  # noqa: B905 - numpy made them alike
        for at in np.flatnonzero(missing[:, known].any(axis=1)).tolist():
            figures[at] = {name: value for name, value in figures[at].items() if value == value}  # noqa: PLR0124 - NaN
        if "largest_gap_category" in names:
            _name_categories(figures, member.categories)
    for pair, trials, clusters in zip(figures, table.trials.tolist(), table.clusters.tolist(), strict=True):
        pair["by"] = member.by
        pair["trials_1"], pair["trials_2"] = int(trials[0]), int(trials[1])
        pair["clusters_1"], pair["clusters_2"] = int(clusters[0]), int(clusters[1])
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


def _worse_off(difference: Floats, member: Member, table: PairTable) -> Ints:
    """The group that each pair finds worse off; −1 for neither, and for labels, which are no better or worse.

    Where the difference is beyond chance it is the ranks that say so, and their direction counts.
    """
    labelled = member.metric.kind is OutcomeKind.CATEGORICAL
    if labelled or (member.metric.kind in RATES and member.favourable is None):
        return np.full(difference.size, -1)
    by_rank = table.effects[-1].value
    direction = np.where(table.significant & (by_rank != 0), by_rank, difference)
    lower = np.where(direction < 0, table.first, table.second)
    higher = np.where(direction < 0, table.second, table.first)
    apart = ~np.isnan(difference) & (direction != 0)
    return np.where(apart, lower if member.lower_is_worse else higher, -1)


def _mde(comparison: Comparison, table: PairTable) -> Floats:
    """On clusters; where a group has one, on its rows, for such a result is about those labels."""
    alone = comparison.labels
    return minimum_detectable_effect(
        np.where(alone, comparison.rows[:, 0], comparison.clusters[:, 0]),
        np.where(alone, comparison.rows[:, 1], comparison.clusters[:, 1]),
        np.where(alone, 1.0, comparison.per_cluster),
        np.where(alone, 0.0, comparison.icc),
        family_size=table.family_size,
        alpha=table.alpha,
    )


def _rate_interval(comparison: Comparison) -> dict[str, Floats]:
    """The 90 % interval of the difference of two rates, with clusters as the unit."""
    b, rows = comparison.beside, comparison.rows
    low, high = clustered_difference(
        b["rate_1"], rows[:, 0], b["rate_2"], rows[:, 1], b["design_effect"], comparison.df
    )
    return {"risk_difference_90_low": low, "risk_difference_90_high": high}
