"""Does a protected group get the favourable decision at less than four fifths of the highest rate?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.assembling import finding_of
from pytest_fairness.analysis.decision_tables import Table, read_decisions, selection_p, tabulate
from pytest_fairness.analysis.family import alarm_results
from pytest_fairness.analysis.four_fifths_rule import capped, decide, with_chance
from pytest_fairness.analysis.four_fifths_words import details, effect_size, four_fifths_sentence, notes, number
from pytest_fairness.analysis.members import Thresholds, missing_member
from pytest_fairness.analysis.missing import reasons_by_group
from pytest_fairness.analysis.reading import as_columns, case_noun, cluster_noun, every_grouping
from pytest_fairness.analysis.sentences import percent
from pytest_fairness.analysis.verdicts import (
    MAX_RAGGED,
    MAX_UNSCORED,
    MINIMUM_N,
    Decision,
    deciding_pair,
    milder,
    spec_verdict,
    verdict_by,
)
from pytest_fairness.errors import UsageError
from pytest_fairness.model import ALARMS, JSON, Finding, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.comparison import Comparison
from pytest_fairness.statistics.corrections import METHODS, correct
from pytest_fairness.statistics.four_fifths import (
    SMALLEST_SHARE,
    ImpactRatio,
    chance_of,
    deviations,
    impact_ratio,
    lower_first,
)
from pytest_fairness.statistics.frames import Floats, read_design, require_frame
from pytest_fairness.statistics.metrics import measure

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

    Who was refused was not selected. FAIL where the ratio is below four fifths, significantly after correction, and one
    favourable decision more would not turn the order; FLAG where it is at least four fifths and the rates differ
    significantly; PASS where the lower end of every ratio's 90 % interval (on clusters) reaches two thirds.

    Args:
        frame, outcome, by, cluster, block, alpha, correction, scorers: as for ``analyze_disparity``.
        favourable: the value of *outcome* that is the favourable decision, a collection of such values, or a
            function of the value that says so.
        reference: the group that others are compared with, declared beforehand; ``None`` or ``"highest"`` for the
            group with the highest rate among those of at least 2 % of the data. The data then choose it, so all pairs
            of groups count as the family.
        bare_ratio: judge by the ratio alone (below four fifths FAILs, anything else PASSes), for readers of the
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
    design = tables[0].design
    noun, cases = cluster_noun(design), case_noun(frame)
    judged = _judge(tables, name, yes, alpha=alpha, correction=correction, bare=bare_ratio, nouns=(noun, cases))
    decider = deciding_pair(judged.pairs)
    verdict, reason = verdict_by(decider)
    groups = tuple(group for table in tables for group in table.groups)
    missing = reasons_by_group(frame, design, tables[0].missing)
    sentence = four_fifths_sentence(
        verdict, reason, decider, by=", ".join(columns), clusters=noun, cases=cases, missing=missing
    )
    return finding_of(
        frame,
        assertion="four_fifths",
        verdict=verdict,
        reason=reason,
        sentence=sentence,
        by=", ".join(columns),
        groups=groups,
        decider=decider,
        test_statistic="" if decider is None else f"z = {number(decider.statistics.get('z')):.4f} SD",
        effect_size="" if decider is None else effect_size(decider),
        notes=notes(tables, bare_ratio, missing, cases),
        pairs=judged.pairs,
        outcome=name,
        kind=OutcomeKind.BINARY,
        cluster=design.cluster_name,
        block=design.block_name,
        family={"size": judged.size, "method": correction, "alpha": None if bare_ratio else alpha},
        details=details(tables, declared, bare_ratio),
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    pairs: list[PairResult]
    size: int


def _judge(
    tables: Sequence[Table],
    name: str,
    yes: Floats,
    *,
    alpha: float,
    correction: str,
    bare: bool,
    nouns: tuple[str, str],
) -> _Judged:
    """One family: the pairs of all tables, and those of missing decisions where there are any."""
    missing = [missing_member(table.design, table.by, table.missing) for table in tables]
    families = [table.p[table.family] for table in tables]
    families += [member.metric.p_values for member in missing if member is not None]
    joined = np.concatenate(families)
    ends = np.cumsum([p.size for p in families])
    size, corrected = joined.size, np.split(correct(joined, correction), ends[:-1])

    def again(at: int, p: float) -> float:
        """The corrected p-value of one test of the family if it had *p*."""
        changed = joined.copy()
        changed[at] = p
        return float(correct(changed, correction)[at])

    results: list[PairResult] = []
    for table, q, end in zip(tables, corrected, ends.tolist(), strict=False):
        places = {place: order for order, place in enumerate(table.family)}
        pairs = all_pairs(len(table.labels))
        first, second = pairs.first.tolist(), pairs.second.tolist()
        for place in table.reported:
            reference = table.reference
            group = first[place] if second[place] == reference else second[place]
            if reference is not None:
                order = places[place]
                own = partial(again, end - q.size + order)
                pair = _Pair(table, yes, group, reference, place, float(q[order]), own)
                results.append(_result(pair, name, alpha=alpha, bare=bare, cases=nouns[1]))
    beside = corrected[len(tables) :]
    thresholds = Thresholds(alpha=alpha, correction=correction)
    for member, q in zip((one for one in missing if one is not None), beside, strict=True):
        results += alarm_results(member, q, thresholds, size=size, cluster_noun=nouns[0], case_noun=nouns[1])
    return _Judged(results, size)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A group and the reference, at *place* among all pairs; *corrected* is its p-value in the family, *again* gives
    that of another sample of the same pair."""

    table: Table
    yes: Floats
    group: int
    reference: int
    place: int
    corrected: float
    again: Callable[[float], float]

    @property
    def at(self) -> int:
        return int(self.table.metric.index[self.place])

    @property
    def comparison(self) -> Comparison | None:
        return self.table.metric.comparison if self.at >= 0 else None

    def ratio(self) -> ImpactRatio:
        t, comparison = self.table, self.comparison
        inflation, df = 1.0, np.inf
        if comparison is not None:
            inflation, df = float(comparison.beside["design_effect"][self.at]), float(comparison.df[self.at])
        return impact_ratio(
            t.x[self.group], t.n[self.group], t.x[self.reference], t.n[self.reference], design_effect=inflation, df=df
        )

    @property
    def lower(self) -> int:
        """Which of the two groups has the lower rate."""
        t, a, b = self.table, self.group, self.reference
        return a if lower_first(t.x[a], t.n[a], t.x[b], t.n[b]) else b

    def imputed(self, favourable_to: int) -> tuple[ImpactRatio, float, int]:
        """Ratio, corrected p and the lower group with what is missing of one group favourable, and of the other not."""
        t = self.table
        design = t.design
        values = self.yes.copy()
        other = self.reference if favourable_to == self.group else self.group
        codes = design.group.codes
        values[t.missing & (codes == favourable_to)] = 1.0
        values[t.missing & (codes == other)] = 0.0
        values[design.refused & ~design.undetermined] = 0.0
        metric = measure(design, values, np.isin(codes, (favourable_to, other)), OutcomeKind.BINARY)
        at = int(metric.index[self.place])
        x = {one: int(values[codes == one].sum()) for one in (favourable_to, other)}
        n = {one: int((codes == one).sum()) for one in (favourable_to, other)}
        comparison = metric.comparison
        inflation, df = (
            (1.0, np.inf)
            if comparison is None or at < 0
            else (float(comparison.beside["design_effect"][at]), float(comparison.df[at]))
        )
        ratio = impact_ratio(
            x[self.group], n[self.group], x[self.reference], n[self.reference], design_effect=inflation, df=df
        )
        a, b = self.group, self.reference
        lower = a if lower_first(x[a], n[a], x[b], n[b]) else b
        return ratio, self.again(float(selection_p(metric)[self.place])), lower


def _result(pair: _Pair, name: str, *, alpha: float, bare: bool, cases: str) -> PairResult:
    table, group, reference, q = pair.table, pair.group, pair.reference, pair.corrected
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
    ratio, comparison, at = pair.ratio(), pair.comparison, pair.at
    p = float(table.p[pair.place])
    inflation = 1.0 if comparison is None else float(comparison.beside["design_effect"][at])
    decision = decide(ratio, q, alpha=alpha, bare=bare, cases=cases)
    if decision.reason is Reason.SMALL_NUMBERS:
        decision = with_chance(decision, chance_of(ratio.ratio, table.x, table.n, design_effect=inflation), cases)
    decision = _with_missing(pair, decision, alpha=alpha, bare=bare, cases=cases)
    decision = capped(_usable(pair, decision), comparison, at)
    sign = 1.0 if comparison is None or group < reference else -1.0
    effect, low, high, p_row, p_cluster, test, scope = 0.0, None, None, 1.0, None, "", "names"
    more: dict[str, JSON] = {}
    spec = None
    if comparison is not None:
        one = comparison.effects[0]
        effect, ends = sign * float(one.value[at]), sorted((sign * float(one.low[at]), sign * float(one.high[at])))
        if np.isfinite(ends).all() and ends[0] < effect < ends[1]:
            low, high = ends
        p_row, p_cluster = float(comparison.p_row[at]), float(comparison.p_cluster[at])
        test, scope = comparison.test[at], "labels" if comparison.labels[at] else "names"
        more = {
            "design_effect": inflation,
            "odds_ratio": float(comparison.beside["odds_ratio"][at]) ** sign,
            "cohens_h": sign * float(comparison.beside["cohens_h"][at]),
        }
        groups = len(table.labels)
        spec = spec_verdict(
            float(comparison.beside["spec_p_value"][at]),
            groups * (groups - 1) // 2,
            float(comparison.beside["spec_effect"][at]),
            min(table.n[group], table.n[reference]),
            MINIMUM_N[OutcomeKind.BINARY],
        )
    rates = (table.x[group] / table.n[group], table.x[reference] / table.n[reference])
    lower = table.labels[pair.lower]
    return PairResult(
        group_1=labels[0],
        group_2=labels[1],
        metric=name,
        verdict=decision.verdict,
        reason=decision.reason,
        spec_verdict=spec,
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
            "impact_ratio_90_low": ratio.low_90,
            "impact_ratio_90_high": ratio.high_90,
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
            **more,
        },
        notes=decision.notes,
    )


def _with_missing(pair: _Pair, decision: Decision, *, alpha: float, bare: bool, cases: str) -> Decision:
    """What stands where decisions are missing: as for a disparity, bounds first."""
    table = pair.table
    if bare or not (table.unscored[pair.group] or table.unscored[pair.reference]):
        return decision
    many = max(table.unscored_share(pair.group), table.unscored_share(pair.reference))
    over = many > MAX_UNSCORED
    lost = Decision(
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.UNSCORED,
        needs=f"a decision for more {cases}: {percent(many)} of a group's have none, and what is missing could turn "
        "the verdict",
    )
    if decision.verdict is Verdict.INCONCLUSIVE:
        return lost if over else decision
    found = {one: pair.imputed(one) for one in (pair.group, pair.reference)}
    judged = {one: decide(ratio, q, alpha=alpha, bare=False, cases=cases) for one, (ratio, q, _) in found.items()}
    if decision.verdict is Verdict.PASS:
        if all(one.verdict is Verdict.PASS for one in judged.values()):
            return decision
        if over:
            return lost
        count = table.unscored[pair.group] + table.unscored[pair.reference]
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.PRECISION,
            needs=f"a decision for the {count} {cases} without one: at their worst they would turn the PASS",
        )
    if not over:
        return decision
    _, least_q, lower = found[pair.lower]
    least = judged[pair.lower]
    if least_q < alpha and lower == pair.lower and least.verdict in ALARMS:
        return milder(decision, least)
    return lost


def _usable(pair: _Pair, decision: Decision) -> Decision:
    """Decisions asked in other blocks, or a reference of next to nobody, decide before anything else."""
    table, comparison = pair.table, pair.comparison
    if comparison is not None and float(comparison.ragged[pair.at]) > MAX_RAGGED:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.RAGGED,
            needs="both groups in every block, or block=None if blocks mean nothing here",
        )
    if table.n[pair.reference] < SMALLEST_SHARE * sum(table.n) and decision.verdict is Verdict.PASS:
        return replace(
            decision,
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.N,
            needs="a reference group of at least 2 % of the data",
        )
    return decision
