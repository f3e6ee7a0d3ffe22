"""Does a protected group get the favourable decision at less than four fifths of the highest rate?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.assembling import finding_of
from pytest_fairness.analysis.decision_tables import Table, read_decisions, tabulate
from pytest_fairness.analysis.reading import as_columns, cluster_noun, every_grouping
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Finding, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.corrections import METHODS, correct
from pytest_fairness.statistics.four_fifths import (
    SMALLEST_SHARE,
    ImpactRatio,
    deviations,
    impact_ratio,
    lower_first,
)
from pytest_fairness.statistics.frames import read_design, require_frame
from pytest_fairness.verdict import (
    MAX_RAGGED,
    MAX_REFUSAL_DIFFERENCE,
    MAX_UNSCORED,
    MINIMUM_N,
    Decision,
    after_refusals,
    as_spec,
    assertion_verdict,
    deciding_pair,
    worse,
)
from pytest_fairness.wording import four_fifths_sentence

if TYPE_CHECKING:
    import pandas as pd

HIGHEST = "highest"


def analyze_four_fifths(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any],
    by: str | Sequence[str],
    *,
    cluster: str | None = "name",
    block: str | None = "template",
    favourable: object = True,
    reference: str | None = None,
    alpha: float = 0.05,
    correction: str = "bonferroni",
    bare_ratio: bool = False,
    scorers: Mapping[str, Any] | None = None,
) -> Finding:
    """Compare the rate of the favourable decision of each group with that of the reference group.

    Args:
        frame, outcome, by, cluster, block, alpha, correction, scorers: as for ``analyze_disparity``.
        favourable: the value of *outcome* that is the favourable decision, a collection of such values, or a
            function of the value that says so.
        reference: the group that others are compared with, declared beforehand; ``None`` or ``"highest"``
        for the
            group with the highest rate among those of at least 2 % of the data. The data then choose it, so
            all pairs of groups count as the family.
        bare_ratio: judge by the ratio alone (below four fifths FAILs, anything else PASSes), for readers of
        the
            literal rule. With few decisions that is no more than a toss of a coin, and the finding says so.

    Raises:
        FrameError: as for ``analyze_disparity``, and for a reference that is no group of the table.
        UsageError: an argument is out of range, or no row has the favourable value and none could.
    """
    columns = as_columns(by)
    if correction not in METHODS:
        raise UsageError(f"correction={correction!r}: it is one of {', '.join(METHODS)}")
    if not 0 < alpha < 1:
        raise UsageError(f"alpha={alpha!r}: give a level between 0 and 1, as .05")
    name, yes, present = read_decisions(require_frame(frame), outcome, favourable, scorers)
    declared = reference not in (None, HIGHEST)
    if declared and len(columns) > 1:
        raise UsageError("reference=… names one group, but by=… names several classes: analyse them one by one")
    tables = [
        tabulate(
            read_design(frame, chosen, cluster=cluster, block=block),
            yes,
            present,
            by=" × ".join(chosen),
            reference=reference if declared else None,
        )
        for chosen in every_grouping(columns)
    ]
    pairs = _judge(tables, name, alpha=alpha, correction=correction, bare=bare_ratio)
    verdict, reason = assertion_verdict(pairs)
    decider = deciding_pair(pairs)
    design = tables[0].design
    groups = tuple(group for table in tables for group in table.groups)
    sentence = four_fifths_sentence(verdict, reason, decider, by=", ".join(columns), clusters=cluster_noun(design))
    return finding_of(
        frame,
        assertion="four_fifths",
        verdict=verdict,
        reason=reason,
        sentence=sentence,
        by=", ".join(columns),
        groups=groups,
        decider=decider,
        test_statistic="" if decider is None else f"z = {_number(decider.statistics.get('z')):.4f} SD",
        effect_size="" if decider is None else _effect_size(decider),
        notes=_notes(tables, bare_ratio),
        pairs=pairs,
        outcome=name,
        kind=OutcomeKind.BINARY,
        cluster=design.cluster_name,
        block=design.block_name,
        family={"size": sum(len(t.family) for t in tables), "method": correction, "alpha": alpha},
        details=_details(tables, declared, bare_ratio),
    )


def _judge(tables: Sequence[Table], name: str, *, alpha: float, correction: str, bare: bool) -> list[PairResult]:
    families = [table.metric.p_values[table.family] for table in tables]
    corrected = np.split(correct(np.concatenate(families), correction), np.cumsum([f.size for f in families])[:-1])
    results = []
    for table, q in zip(tables, corrected, strict=True):
        by_place = dict(zip(table.family, q.tolist(), strict=True))
        first, second = (
            side.tolist() for side in (all_pairs(len(table.labels)).first, all_pairs(len(table.labels)).second)
        )
        for place in table.reported:
            reference = table.reference
            group = first[place] if second[place] == reference else second[place]
            if reference is not None:
                results.append(_pair(table, name, group, reference, place, by_place[place], alpha=alpha, bare=bare))
    return results


def _pair(
    table: Table, name: str, group: int, reference: int, place: int, q: float, *, alpha: float, bare: bool
) -> PairResult:
    labels = (table.labels[group], table.labels[reference])
    if table.n[group] == 0 or table.n[reference] == 0:
        empty = labels[0] if table.n[group] == 0 else labels[1]
        return PairResult(
            group_1=labels[0],
            group_2=labels[1],
            metric=name,
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.N,
            needs=f"decisions about {empty}, which has none",
            statistics={"by": table.by},
        )
    ratio = impact_ratio(table.x[group], table.n[group], table.x[reference], table.n[reference])
    comparison = table.metric.comparison
    at = int(table.metric.index[place])
    p = float(table.metric.p_values[place])
    decision = decide(ratio, p, q, alpha=alpha, bare=bare)
    gap = _refusal_gap(table, group, reference)
    if abs(gap) > MAX_REFUSAL_DIFFERENCE + 1e-12 and not bare:
        x, n = table.with_refusals
        harsher = decide(impact_ratio(x[group], n[group], x[reference], n[reference]), p, q, alpha=alpha, bare=bare)
        decision = worse(after_refusals(decision, differential=True), harsher)
    decision = _unless_lost(decision, table, group, reference, at)
    sign = 1.0 if comparison is None or group < reference else -1.0
    effect, low, high, p_row, p_cluster, test, scope = 0.0, None, None, 1.0, None, "", "names"
    more: dict[str, JSON] = {}
    if comparison is not None and at >= 0:
        ends = sorted((sign * float(comparison.low[at]), sign * float(comparison.high[at])))
        effect, low, high = sign * float(comparison.effect[at]), ends[0], ends[1]
        p_row, p_cluster = float(comparison.p_row[at]), float(comparison.p_cluster[at])
        test, scope = comparison.test[at], "labels" if comparison.labels[at] else "names"
        more = {
            "design_effect": float(comparison.beside["design_effect"][at]),
            "odds_ratio": float(comparison.beside["odds_ratio"][at]) ** sign,
            "cohens_h": sign * float(comparison.beside["cohens_h"][at]),
        }
    rates = (table.x[group] / table.n[group], table.x[reference] / table.n[reference])
    lower = (
        labels[0] if lower_first(table.x[group], table.n[group], table.x[reference], table.n[reference]) else labels[1]
    )
    return PairResult(
        group_1=labels[0],
        group_2=labels[1],
        metric=name,
        verdict=decision.verdict,
        reason=decision.reason,
        spec_verdict=as_spec(decision.verdict),
        p_row=p_row,
        p_cluster=None if p_cluster is None or np.isnan(p_cluster) else p_cluster,
        p_value=p,
        corrected_p_value=q,
        effect=effect,
        effect_name="d from odds ratio",
        effect_low=low,
        effect_high=high,
        difference=rates[0] - rates[1],
        worse_off=None if rates[0] == rates[1] else lower,
        test=test,
        scope=scope,
        needs=decision.needs,
        statistics={
            "by": table.by,
            "impact_ratio": ratio.ratio,
            "impact_ratio_low": ratio.ratio_low,
            "impact_ratio_high": ratio.ratio_high,
            "favourable_1": table.x[group],
            "n_1": table.n[group],
            "rate_1": rates[0],
            "favourable_2": table.x[reference],
            "n_2": table.n[reference],
            "rate_2": rates[1],
            "z": ratio.z if lower == labels[0] else -ratio.z,
            "standard_deviations": deviations(p),
            "fisher_p_value": ratio.fisher,
            "smallest_expected_count": ratio.smallest_expected,
            "shortfall": ratio.shortfall,
            "flip_flop": ratio.flip_flop,
            "below_four_fifths": ratio.below,
            "refusal_difference": gap,
            **more,
        },
        notes=decision.notes,
    )


def decide(ratio: ImpactRatio, p: float, q: float, *, alpha: float, bare: bool) -> Decision:
    """The rule: the ratio, significance after correction, and whether one decision more would turn it."""
    if ratio.x_high == 0:
        return Decision(verdict=Verdict.PASS, notes=("nobody in either group got the favourable decision",))
    if bare:
        return Decision(verdict=Verdict.FAIL if ratio.below else Verdict.PASS)
    small = min(ratio.n_low, ratio.n_high) < MINIMUM_N[OutcomeKind.BINARY]
    if not ratio.below:
        if q < alpha:
            return Decision(
                verdict=Verdict.FLAG,
                notes=("at least four fifths, but the rates differ by more than chance",),
            )
        note = f"fewer than {MINIMUM_N[OutcomeKind.BINARY]} decisions in a group: the rule holds, and says little"
        return Decision(verdict=Verdict.PASS, notes=(note,) if small else ())
    if q < alpha and not ratio.flip_flop:
        return Decision(verdict=Verdict.FAIL)
    if ratio.smallest_expected >= 5 and deviations(p) >= 2:
        return Decision(
            verdict=Verdict.FLAG,
            notes=("below four fifths and two standard deviations, but not significant in the whole family",),
        )
    why = "one decision more would turn it round" if ratio.flip_flop else "the difference is within chance"
    return Decision(
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.SMALL_NUMBERS,
        needs="more decisions in the smaller group",
        notes=(f"below four fifths, but {why}",),
    )


def _refusal_gap(table: Table, group: int, reference: int) -> float:
    rates = []
    for at in (group, reference):
        total = table.n[at] + table.missing[at] + table.refused[at]
        rates.append(table.refused[at] / total if total else 0.0)
    return float(rates[0] - rates[1])


def _unless_lost(decision: Decision, table: Table, group: int, reference: int, at: int) -> Decision:
    """Too many decisions missing, or asked in other blocks, decide before anything else."""
    unscored = max(table.unscored[group], table.unscored[reference])
    if unscored > MAX_UNSCORED:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.UNSCORED,
            needs=f"read more replies: {unscored:.0%} of a group's have no decision, at most 5 % may",
        )
    comparison = table.metric.comparison
    if comparison is not None and at >= 0 and float(comparison.ragged[at]) > MAX_RAGGED:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.RAGGED,
            needs="ask both groups in every block, or pass block=None if blocks mean nothing here",
        )
    sizes = table.n
    if sizes[reference] < SMALLEST_SHARE * sum(sizes) and decision.verdict is Verdict.PASS:
        return replace(
            decision,
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.N,
            needs="a reference group of at least 2 % of the data",
        )
    return decision


def _effect_size(decider: PairResult) -> str:
    if "impact_ratio" not in decider.statistics:
        return ""
    ratio, low, high = (
        _number(decider.statistics[name]) for name in ("impact_ratio", "impact_ratio_low", "impact_ratio_high")
    )
    return f"impact ratio = {ratio:.3f} (95 % interval {low:.3f} to {high:.3f})"


def _number(value: JSON) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _notes(tables: Sequence[Table], bare: bool) -> tuple[str, ...]:
    notes = []
    if bare:
        notes.append(
            "judged by the bare ratio: with few decisions it falls below four fifths by chance alone (for four "
            "groups of 100 and a rate of one half, in about 40 % of fair audits)"
        )
    for table in tables:
        if table.reference is None:
            continue
        total = sum(table.n)
        tiny = [label for label, n in zip(table.labels, table.n, strict=True) if 0 < n < SMALLEST_SHARE * total]
        if tiny:
            notes.append(f"under 2 % of the data, so never the reference: {', '.join(tiny)}")
        if table.metric.copies_dropped:
            notes.append("repetitions that were all alike count once in the tests, for a group has one cluster")
    return tuple(dict.fromkeys(notes))


def _details(tables: Sequence[Table], declared: bool, bare: bool) -> dict[str, JSON]:
    references: dict[str, JSON] = {
        table.by: None if table.reference is None else table.labels[table.reference] for table in tables
    }
    return {
        "reference": references,
        "reference_declared": declared,
        "mode": "bare ratio" if bare else "ratio with significance and flip-flop",
    }
