"""Are the groups treated alike, up to a margin? Absence of a difference is claimed here, so it has to be shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.family import (
    Family,
    Member,
    missing_members,
    pair_results,
    settle_missing,
    unequal_refusals,
    unless_refused,
)
from pytest_fairness.analysis.policy import (
    MAX_RAGGED,
    MAX_UNSCORED,
    MINIMUM_N,
    Decision,
    Rule,
    deciding_pair,
    judge,
    undecided,
    verdict_by,
)
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.reading import (
    Reading,
    as_columns,
    case_noun,
    check_level,
    cluster_noun,
    read,
    reasons_by_group,
    scored_rows,
    unscored_rows,
)
from pytest_fairness.analysis.sentences import amount, effect_words, p_words, percent
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Finding, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arrays import Bools, Floats, Membership, read_design
from pytest_fairness.statistics.compare import Metric, describe_groups, impute, measure, two_one_sided
from pytest_fairness.statistics.corrections import correct
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
    used = scored_rows(design, reading)
    missing = unscored_rows(design, reading, used)
    data = _Data(design, reading, used, missing, margin, unit == "d", alpha)
    metric = measure(design, reading.values.values, used, kind_of)
    table = data.test(metric)
    beside = missing_members(design, " × ".join(columns), missing)
    families = [table.beside["difference_p_value"], *(member.metric.pairs.p_value for member in beside)]
    differ, *lost = np.split(correct(np.concatenate(families), correction), np.cumsum([p.size for p in families])[:-1])
    rule = Rule(
        alpha=alarm_share * alpha,
        correction=correction,
        minimum=MINIMUM_N[kind_of],
        family_size=sum(p.size for p in families),
        cluster_noun=cluster_noun(design),
        case_noun=case_noun(frame),
    )
    pairs = _results(data, metric, table, differ, rule)
    family = Family(beside, rule)
    for member, q in zip(beside, lost, strict=True):
        of_missing = replace(family.rule_of(member), family_size=rule.family_size)
        judged = family.table(member, member.metric, q)
        pairs += pair_results(member, judged, judge(judged, of_missing), of_missing)
    decider = deciding_pair(pairs)
    verdict, reason = verdict_by(decider)
    own = [pair for pair in pairs if not pair.alarm_only]
    if verdict is Verdict.PASS:
        decider = max(own, key=lambda pair: pair.p_value)
    reasons = reasons_by_group(frame, design, missing)
    return finding_of(
        frame,
        assertion="equivalent",
        verdict=verdict,
        reason=reason,
        sentence=_sentence(verdict, decider, reading, margin, unit, len(own), reasons),
        by=", ".join(columns),
        groups=describe_groups(design, metric, kind_of, refused=design.refused, missing=missing),
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
            "size": rule.family_size,
            "method": "none for equivalence (all pairs must show it); " + correction + " for differences",
            "alpha": alpha,
            "metrics": list(dict.fromkeys(pair.metric for pair in pairs)),
        },
        details={"margin": margin, "margin_unit": unit, "kind_inferred": reading.values.why},
    )


@dataclass(frozen=True, slots=True)
class _Data:
    """The rows, which of them are used and which have no outcome, and the margin that they are tested against."""

    design: Membership
    reading: Reading
    used: Bools
    missing: Bools
    margin: float
    on_d: bool
    alpha: float

    def test(self, metric: Metric) -> PairTable:
        return two_one_sided(metric.pairs, self.margin, on_d=self.on_d, alpha=self.alpha)

    def imputed(self, groups: tuple[int, int], place: int, first_high: bool) -> bool:
        """Whether two groups are equivalent with what is missing at one extreme or the other."""
        values, kind, codes = self.reading.values.values, self.reading.values.kind, self.design.group.codes
        ends = self.reading.low, self.reading.high
        filled = impute(
            values, kind, codes, groups, used=self.used, missing=self.missing, first_high=first_high, scale=ends
        )
        metric = measure(self.design, filled, np.isin(codes, groups) & (self.used | self.missing), kind)
        return bool(self.test(metric).p_value[place] < self.alpha)


def _results(data: _Data, metric: Metric, table: PairTable, differ: Floats, rule: Rule) -> list[PairResult]:
    """The pairs by two one-sided tests; *differ* are the corrected p-values of a difference."""
    lost = data.design.count(data.missing)
    refused = np.zeros(table.first.size, dtype=np.bool_)
    if data.reading.values.kind is not OutcomeKind.REFUSAL and bool(np.any(data.design.refused)):
        rows = ~data.design.undetermined
        refused = unequal_refusals(
            measure(data.design, data.design.refused.astype(np.float64), rows, OutcomeKind.REFUSAL)
        )
    decisions: list[Decision] = []
    figures: list[dict[str, JSON]] = []
    for at, (i, j) in enumerate(zip(table.first.tolist(), table.second.tolist(), strict=True)):
        gone, n = lost[[i, j]], metric.trials[[i, j]]
        if np.isnan(table.p_value[at]):
            reason = Reason.UNSCORED if np.max(gone / np.maximum(gone + n, 1)) > MAX_UNSCORED else Reason.N
            needs = f"scored {rule.case_noun} of both groups ({n[0]} and {n[1]} now)"
            decisions.append(undecided(reason, needs))
            figures.append({"n_1": int(n[0]), "n_2": int(n[1])})
            continue
        decision = _decide(table, at, n, float(differ[at]), data, rule)
        if refused[at]:
            decision = unless_refused(decision)
        if gone.any():

            def imputed(high: bool, groups: tuple[int, int] = (i, j), place: int = at) -> tuple[Decision, bool]:
                held = data.imputed(groups, place, high)
                return Decision(verdict=Verdict.PASS if held else Verdict.INCONCLUSIVE), False

            decision = settle_missing(decision, gone, gone + n, rule.case_noun, imputed, least=None)
        decisions.append(decision)
        figures.append(
            {
                "n_1": int(n[0]),
                "n_2": int(n[1]),
                "clusters_1": int(table.clusters[at, 0]),
                "clusters_2": int(table.clusters[at, 1]),
                "margin": float(table.beside["margin"][at]),
                "interval_low": float(table.difference_low[at]),
                "interval_high": float(table.difference_high[at]),
                "interval_confidence": 1 - 2 * data.alpha,
                "standard_error": float(table.error[at]),
                "df": float(table.df[at]),
                "p_lower": float(table.beside["p_lower"][at]),
                "p_upper": float(table.beside["p_upper"][at]),
                "difference_p_value": float(table.beside["difference_p_value"][at]),
                "difference_corrected_p_value": float(differ[at]),
            }
        )
    member = Member(
        name=data.reading.name,
        by="",
        metric=metric,
        lower_is_worse=data.reading.lower_is_worse,
        alarm_only=False,
    )
    on = np.where(table.single, "two one-sided t on rows", "two one-sided t on cluster means").astype(object)
    known = ~np.isnan(table.p_value)
    # The effect beside the margin is that of the means; nothing is worse off here by its ranks alone.
    shown = replace(
        table,
        effect=table.effect[:, :1],
        low=table.low[:, :1],
        high=table.high[:, :1],
        effect_names=table.effect_names[:1],
        test=np.where(known, on, ""),
        p_row=np.where(known, table.p_row, 1.0),
        p_value=np.where(known, table.p_value, 1.0),
        corrected=np.where(known, table.corrected, 1.0),
        trivial=np.ones(table.first.size, dtype=np.bool_),
        beside={},
    )
    return [replace(pair, mde=None) for pair in pair_results(member, shown, decisions, rule, figures=figures)]


def _decide(table: PairTable, at: int, n: Any, differ: float, data: _Data, rule: Rule) -> Decision:
    """First match; see :func:`analyze_equivalence`."""
    single, margin = bool(table.single[at]), float(table.beside["margin"][at])
    fewest = int(table.rows[at].min()) if single else int(n.min())
    if table.ragged[at] > MAX_RAGGED:
        return undecided(
            Reason.RAGGED,
            f"every group in every block: {percent(float(table.ragged[at]))} of the rows stand in blocks that lack a "
            "group",
        )
    significant, beyond = differ < rule.alpha, abs(float(table.difference[at])) > margin
    if fewest < rule.minimum:
        needs = f"at least {rule.minimum} {rule.case_noun} a group (now {fewest})"
        if significant and beyond and fewest >= 2:
            return Decision(verdict=Verdict.FLAG, needs=needs)
        return undecided(Reason.N, needs)
    if table.p_value[at] < data.alpha:
        return Decision(verdict=Verdict.PASS)
    if significant and beyond:
        note = ("a group has a single name: the result is about that one, so FAIL is capped at FLAG",)
        return Decision(verdict=Verdict.FLAG if single else Verdict.FAIL, notes=note if single else ())
    if significant:
        return Decision(verdict=Verdict.FLAG, notes=("the groups differ, perhaps by more than the margin",))
    rows = single or table.own_rows
    units = int(n.min()) if rows else int(table.clusters[at].min())
    half = float(table.difference_high[at] - table.difference_low[at]) / 2
    room = margin - abs(float(table.difference[at]))
    needed = math.inf
    if math.isfinite(half) and room > 0:
        needed = max(math.ceil(units * (half / room) ** 2), units + 1)
    noun = rule.case_noun if rows else rule.cluster_noun
    needs = f"about {needed:,} {noun} a group if the difference stays as it is (now {units:,})"
    return undecided(Reason.PRECISION, needs if needed < 1e7 else None)


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
        worse = pair.worse_off or pair.group_1
        why = f": {missing[worse]}" if worse in missing else ""
        sure = f"corrected {p_words(pair.corrected_p_value)}"
        return f"{verdict}: {worse} is left without an outcome more often than others{why} ({sure})."
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
