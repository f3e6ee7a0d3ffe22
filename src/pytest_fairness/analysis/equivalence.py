"""Are the groups treated alike, up to a margin? Absence of a difference is claimed here, so it has to be shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.family import (
    Family,
    Member,
    missing_answers,
    pair_results,
    unequal_refusals,
    unless_refused,
)
from pytest_fairness.analysis.policy import (
    MAX_RAGGED,
    Decision,
    Rule,
    capped,
    deciding_pair,
    few,
    needed,
    ragged,
    undecided,
    units,
    verdict_by,
)
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.reading import Reading, ScoredRows, as_columns, check_level, nouns, read, reasons_by_group
from pytest_fairness.analysis.sentences import amount, effect_words, left_without, p_words
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Finding, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arrays import read_design
from pytest_fairness.statistics.compare import Metric, describe_groups, two_one_sided
from pytest_fairness.statistics.pair_table import PairTable

if TYPE_CHECKING:
    import pandas as pd

UNITS = ("outcome", "d")


def analyze_equivalence(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any],
    by: str | Sequence[str],
    *,
    margin: float,
    unit: str = "outcome",
    cluster: str | None = "name",
    block: str | None = "template",
    kind: str = "auto",
    alpha: float = 0.05,
    correction: str = "bonferroni",
    lower_is_worse: bool | None = None,
    scorers: Mapping[str, Any] | None = None,
    alarm_share: float = 1.0,
) -> Finding:
    """Test that every two groups of *by* differ by less than *margin* on *outcome*.

    ``margin`` is in the outcome's own unit (for yes/no outcomes a difference of rates, .05 for five
    points), or with ``unit="d"`` in standard deviations. The other arguments are those of
    ``analyze_disparity``; several columns in ``by`` are crossed.

    Per pair, first match: PASS where two one-sided tests reject at *alpha*, that is, the 1 − 2α interval of
    the difference lies inside ±margin. FAIL where the groups differ (two-sided, corrected) and the estimate
    is beyond the margin; FLAG where they differ and only the interval reaches beyond it. INCONCLUSIVE
    otherwise. That *all* pairs are equivalent needs every one of them to show it, so these p-values are not
    corrected (intersection–union test, Berger 1982); those of the differences are.

    *alarm_share*: the differences are significant below so large a share of *alpha*, as a second look asks for.

    Raises FrameError for a table of the wrong shape and UsageError for an argument out of range or a
    categorical outcome.
    """
    if not (margin > 0 and math.isfinite(margin)):
        raise UsageError(f"margin={margin!r}: give the difference that would not matter, above 0")
    if unit not in UNITS:
        raise UsageError(f"unit={unit!r}: the margin is in 'outcome' (its own unit) or 'd' (standard deviations)")
    check_level(alpha, correction, below=0.5)
    columns = as_columns(by)
    reading = read(frame, outcome, kind, lower_is_worse, scorers)
    kind_of = reading.values.kind
    if kind_of is OutcomeKind.CATEGORICAL:
        raise UsageError(f"outcome {reading.name!r} is categorical: a margin needs numbers or yes and no")
    design = read_design(frame, columns, cluster=cluster, block=block)
    rows = ScoredRows.of(design, reading)

    def compared(metric: Metric) -> PairTable:
        """Its p-value, which joins the family, is that of a difference."""
        table = two_one_sided(metric.pairs, margin, on_d=unit == "d", alpha=alpha)
        return replace(
            table,
            # The effect beside the margin is that of the means; nothing is worse off here by its ranks alone.
            effect=table.effect[:, :1],
            low=table.low[:, :1],
            high=table.high[:, :1],
            effect_names=table.effect_names[:1],
            p_value=table.beside["difference_p_value"],
            beside={**table.beside, "tost": table.p_value},
        )

    metric = rows.measure()
    refusals, table = rows.refusals(), compared(metric)
    refused = [False] * table.first.size if refusals is None else unequal_refusals(refusals.pairs).tolist()

    def decide(table: PairTable, rule: Rule) -> list[Decision]:
        found = [_decide(table, at, rule, alpha) for at in range(table.first.size)]
        return [unless_refused(one) if unlike else one for one, unlike in zip(found, refused, strict=True)]

    lost, total = rows.unanswered(table, metric.trials)
    own = Member(
        name=reading.name,
        table=table,
        kind=kind_of,
        decide=decide,
        lost=lost,
        total=total,
        imputed=lambda at, high: compared(rows.measure(*rows.filled(table, at, high))),
        stands=False,
        lower_is_worse=reading.lower_is_worse,
        alarm_only=False,
    )
    rule = Rule(alpha=alarm_share * alpha, correction=correction, **nouns(frame, design))
    by_name = " × ".join(columns)
    family = Family([own, *missing_answers(by_name, design, rows.missing)], rule)
    judged = family.judge()
    pairs = [*_results(own, *judged[0], family.rule_of(own), alpha), *family.results_beside(judged, by_name)]
    decider = deciding_pair(pairs)
    verdict, reason = verdict_by(decider)
    shown = [pair for pair in pairs if not pair.alarm_only]
    if verdict is Verdict.PASS:
        decider = max(shown, key=lambda pair: pair.p_value)
    reasons = reasons_by_group(frame, design, rows.missing)
    return finding_of(
        frame,
        assertion="equivalent",
        verdict=verdict,
        reason=reason,
        sentence=_sentence(verdict, decider, reading, margin, unit, len(shown), reasons),
        by=", ".join(columns),
        groups=describe_groups(design, metric, kind_of, refused=design.refused, missing=rows.missing),
        decider=decider,
        test_statistic="" if decider is None else f"TOST p = {decider.p_value:.4g}",
        effect_size="" if decider is None else f"d = {effect_words(decider.effect)}",
        pairs=pairs,
        outcome=reading.name,
        kind=kind_of,
        unit=reading.unit,
        cluster=design.cluster_name,
        block=design.block_name,
        family={
            "size": family.size,
            "method": "none for equivalence (all pairs must show it); " + correction + " for differences",
            "alpha": alpha,
            "metrics": list(dict.fromkeys(pair.metric for pair in pairs)),
        },
        details={"margin": margin, "margin_unit": unit, "kind_inferred": reading.values.why},
    )


def _results(
    member: Member, table: PairTable, decisions: Sequence[Decision], rule: Rule, alpha: float
) -> list[PairResult]:
    b, known = table.beside, ~np.isnan(table.beside["tost"])
    statistics: list[dict[str, JSON]] = [{"n_1": int(n[0]), "n_2": int(n[1])} for n in member.total - member.lost]
    for at in np.flatnonzero(known).tolist():
        statistics[at] |= {
            "clusters_1": int(table.clusters[at, 0]),
            "clusters_2": int(table.clusters[at, 1]),
            "margin": float(b["margin"][at]),
            "interval_low": float(table.difference_low[at]),
            "interval_high": float(table.difference_high[at]),
            "interval_confidence": 1 - 2 * alpha,
            "standard_error": float(table.error[at]),
            "df": float(table.df[at]),
            "p_lower": float(b["p_lower"][at]),
            "p_upper": float(b["p_upper"][at]),
            "difference_p_value": float(b["difference_p_value"][at]),
            "difference_corrected_p_value": float(table.corrected[at]),
        }
    on = np.where(table.single, "two one-sided t on rows", "two one-sided t on cluster means").astype(object)
    tost = np.where(known, b["tost"], 1.0)
    tested = replace(
        table,
        test=np.where(known, on, ""),
        p_row=np.where(known, table.p_row, 1.0),
        p_value=tost,
        corrected=tost,
        beside={},
    )
    return pair_results(member, tested, decisions, rule, statistics=statistics)


def _decide(table: PairTable, at: int, rule: Rule, alpha: float) -> Decision:
    """First match; see :func:`analyze_equivalence`."""
    if table.ragged[at] > MAX_RAGGED:
        return ragged(table, at)
    margin, apart = float(table.beside["margin"][at]), abs(float(table.difference[at]))
    significant, fewest = table.corrected[at] < rule.alpha, table.trials[at].min()
    alarm = significant and apart > margin
    if fewest < rule.minimum:
        return few(table, at, rule, verdict=Verdict.FLAG if alarm and fewest >= 2 else Verdict.INCONCLUSIVE)
    if table.beside["tost"][at] < alpha:
        return Decision(verdict=Verdict.PASS)
    if alarm:
        return capped(table, at, rule) if table.single[at] else Decision(verdict=Verdict.FAIL)
    if significant:
        return Decision(verdict=Verdict.FLAG, notes=("the groups differ, perhaps by more than the margin",))
    half = float(table.difference_high[at] - table.difference_low[at]) / 2
    now, noun = units(table, at, rule)
    ways = [now * (half / (margin - apart)) ** 2] if math.isfinite(half) and margin > apart else []
    return undecided(Reason.PRECISION, needed(ways, now, noun))


def _sentence(
    verdict: Verdict,
    pair: PairResult | None,
    reading: Reading,
    margin: float,
    unit: str,
    pairs: int,
    missing: Mapping[str, str],
) -> str:
    if pair is None:
        return f"{verdict}: there are no two groups to compare."
    if pair.alarm_only:
        return f"{verdict}: {left_without(pair, 'an outcome', 'trials', missing)}."
    kind, own_unit = reading.values.kind, reading.unit
    if "margin" not in pair.statistics or pair.reason in (Reason.RAGGED, Reason.UNSCORED):
        return (
            f"{verdict}: {pair.group_1} and {pair.group_2} cannot be compared on {pair.metric}; it takes {pair.needs}."
        )
    low, high = (float(str(pair.statistics[name])) for name in ("interval_low", "interval_high"))
    allowed = f"{margin:g} d" if unit == "d" else amount(margin, kind, own_unit)
    confidence = f"{100 * float(str(pair.statistics['interval_confidence'])):.0f} %"
    first, second, apart = pair.group_1, pair.group_2, pair.difference or 0.0
    if apart > 0:
        first, second, apart, low, high = second, first, -apart, -high, -low
    gap = f"{first} is {amount(-apart, kind, own_unit)} lower than {second} on {pair.metric}"
    if apart == 0:
        gap = f"{first} and {second} are alike on {pair.metric}"
    ends = f"{amount(low, kind)} to {amount(high, kind)}"
    sure = f"{confidence} interval of the difference {ends}, TOST {p_words(pair.p_value)}"
    if verdict is Verdict.PASS:
        count = "the two groups" if pairs == 1 else f"all {pairs} pairs of groups"
        return f"PASS: {count} are equivalent within ±{allowed}; the widest apart: {gap} ({sure})."
    if verdict is Verdict.INCONCLUSIVE:
        if pair.reason is Reason.DIFFERENTIAL_REFUSAL:
            return f"INCONCLUSIVE: {gap}, within ±{allowed}, but are not refused equally often ({sure})."
        needs = f"; it would take {pair.needs}" if pair.needs else ""
        return f"INCONCLUSIVE: {gap}; equivalence within ±{allowed} is not shown ({sure}){needs}."
    return f"{verdict}: {gap}, where ±{allowed} would not matter ({sure})."
