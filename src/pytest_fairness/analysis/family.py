"""From measured outcomes to judged pairs: one family, one correction; missing answers, refusals and templates.

The members of a family are corrected together: the outcome over every grouping, and beside it refusals and missing
answers, which join only where there are any, and only to raise the alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pytest_fairness.analysis.false_alarms import TEMPLATE_ALPHA
from pytest_fairness.analysis.policy import (
    LIKELY_REFUSAL_DIFFERENCE,
    MARGIN,
    MAX_REFUSAL_DIFFERENCE,
    MAX_UNSCORED,
    MINIMUM_N,
    Decision,
    Rule,
    judge,
    milder,
    significant,
    spec_verdict,
    undecided,
    worse,
)
from pytest_fairness.analysis.sentences import NO_ANSWER, percent
from pytest_fairness.model import ALARMS, JSON, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arrays import Bools, Floats, Ints, Membership
from pytest_fairness.statistics.compare import RATES, Metric, measure
from pytest_fairness.statistics.corrections import correct, minimum_detectable_effect
from pytest_fairness.statistics.pair_table import PairTable, largest
from pytest_fairness.statistics.proportions import clustered_difference, nearly_equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One metric of the family, over one grouping.

    ``unscored`` (G) counts the trials of each group without an outcome, refusals apart. ``favourable`` is the value, 1
    or 0, of the favourable answer of a yes/no outcome, None where that is not known. ``refusals`` is the place of the
    refusals beside this metric in the family; ``worst_rank`` measures the metric again with refusals ranked worst, and
    ``imputed(i, j, first_high)`` compares two groups with what is missing set to the extremes: of group *i* to the high
    one and of group *j* to the low one, or the other way round.
    """

    name: str
    by: str
    metric: Metric
    blocks: tuple[str, ...] = ()
    unscored: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    lower_is_worse: bool = False
    favourable: float | None = 0.0
    categories: tuple[str, ...] = ()
    alarm_only: bool = True
    refusals: int | None = None
    worst_rank: Callable[[], Metric] | None = None
    imputed: Callable[[int, int, bool], Metric] | None = None


def missing_members(design: Membership, by: str, missing: Bools) -> list[Member]:
    """Missing outcomes as a metric of their own, which raises the alarm where one group has more; none without any."""
    if not bool(missing.any()):
        return []
    everyone = np.ones(design.rows, dtype=np.bool_)
    metric = measure(design, missing.astype(np.float64), everyone, OutcomeKind.REFUSAL)
    return [Member(name=NO_ANSWER, by=by, metric=metric)]


@dataclass(frozen=True, slots=True)
class Family:
    """The members judged together, by one rule."""

    members: Sequence[Member]
    rule: Rule

    @property
    def size(self) -> int:
        return sum(member.metric.pairs.p_value.size for member in self.members)

    def corrected(self, changed: int | None = None, p: Floats | None = None) -> list[Floats]:
        """The p-values of all members corrected together, with *p* in place of those of the member *changed*."""
        family = [p if at == changed and p is not None else member.metric.pairs.p_value
                  for at, member in enumerate(self.members)]  # fmt: skip
        joined = correct(np.concatenate(family), self.rule.correction)
        return np.split(joined, np.cumsum([p.size for p in family])[:-1])

    def rule_of(self, member: Member) -> Rule:
        return replace(self.rule, minimum=MINIMUM_N[member.metric.kind], family_size=self.size)

    def table(self, member: Member, metric: Metric, corrected: Floats) -> PairTable:
        """What the policy reads about the pairs of *member* as measured by *metric*."""
        trivial, inside = _declared(metric.pairs, self.rule, member)
        near, close = _near(metric, member.favourable)
        return replace(metric.pairs, corrected=corrected, trivial=trivial, inside=inside, near=near, close=close)

    def judge(self) -> tuple[list[PairResult], list[dict[str, Any]]]:
        """The pairs of all members, in order, and what the outcome does within each block."""
        corrected = self.corrected()
        tables = [self.table(one, one.metric, q) for one, q in zip(self.members, corrected, strict=True)]
        decisions = [judge(table, self.rule_of(one)) for one, table in zip(self.members, tables, strict=True)]
        blocks: list[dict[str, Any]] = []
        results: list[PairResult] = []
        for at, member in enumerate(self.members):
            table, final = tables[at], [self._with_missing(at, place, one) for place, one in enumerate(decisions[at])]
            extra: dict[str, Floats] = {}
            if member.worst_rank is not None and member.refusals is not None:
                refused = unequal_refusals(self.members[member.refusals].metric, decisions[member.refusals])
                if bool(refused.any()):
                    table, final, extra = self._with_refusals(at, table, final, refused)
            if not member.alarm_only:
                found, final = _with_templates(member, table, final, self.rule)
                blocks += found
            results += pair_results(member, table, final, self.rule_of(member), extra)
        return results, blocks

    def _with_refusals(
        self, at: int, table: PairTable, decisions: list[Decision], refused: Bools
    ) -> tuple[PairTable, list[Decision], dict[str, Floats]]:
        """Pairs whose refusals differ: the worse of the decision on the answers and that with refusals ranked worst."""
        member = self.members[at]
        assert member.worst_rank is not None  # noqa: S101 - the caller looks
        metric, answered = member.worst_rank(), member.metric.pairs.p_value
        ranked = np.where(refused, np.minimum(answered, metric.pairs.p_value), answered)
        again = self.corrected(at, ranked)[at]
        harsher = judge(self.table(member, metric, again), self.rule_of(replace(member, metric=metric)))
        final = [
            worse(unless_refused(one), other) if flag and one.reason is not Reason.UNSCORED else one
            for one, other, flag in zip(decisions, harsher, refused.tolist(), strict=True)
        ]
        beside = {"complete_case_p_value": answered, "worst_rank_p_value": metric.pairs.p_value}
        extra = {name: np.where(refused, p, np.nan) for name, p in beside.items()}
        return replace(table, p_value=ranked, corrected=again), final, extra

    def _with_missing(self, at: int, place: int, decision: Decision) -> Decision:
        member = self.members[at]
        pairs = member.metric.pairs
        i, j = int(pairs.first[place]), int(pairs.second[place])
        if member.alarm_only or not (member.unscored[i] or member.unscored[j]):
            return decision
        sign = _sign(member.metric, place)

        def imputed(high: bool) -> tuple[Decision, bool]:
            if member.imputed is None:
                return undecided(Reason.UNSCORED, None), False
            metric = member.imputed(i, j, high)
            p = pairs.p_value.copy()
            p[place] = metric.pairs.p_value[place]
            table = replace(self.table(member, metric, self.corrected(at, p)[at]), p_value=p)
            stands = bool(significant(table, self.rule)[place]) and sign in (_sign(metric, place), 0.0)
            return judge(table, self.rule_of(member))[place], stands

        lost, total = member.unscored[[i, j]], (member.unscored + member.metric.trials)[[i, j]]
        # Least favourable to a difference: the higher group's missing outcomes are the lowest, and the other way round.
        return settle_missing(decision, lost, total, self.rule.case_noun, imputed, least=sign < 0)


def settle_missing(
    decision: Decision,
    lost: Ints,
    total: Ints,
    cases: str,
    imputed: Callable[[bool], tuple[Decision, bool]],
    *,
    least: bool | None,
    noun: str = "outcome",
) -> Decision:
    """What stands where *lost* of the *total* trials of two groups have no outcome: bounds first, UNSCORED where they
    leave it open.

    *imputed* decides again with what is missing at one extreme or the other, and says whether the difference remains. A
    PASS with any unscored has to pass under both. With over 5 % unscored an alarm stands if it remains under the
    imputation that is *least* favourable to it (None: there is none), by the milder of the two verdicts.
    """
    many = float(np.max(lost / np.maximum(total, 1)))
    over, article = many > MAX_UNSCORED, "an" if noun[0] in "aeiou" else "a"
    needs = (
        f"{article} {noun} for more {cases}: {percent(many)} of a group's have none, and what is missing could turn "
    )
    unsettled = undecided(Reason.UNSCORED, needs + "the verdict")
    if decision.reason is Reason.RAGGED:
        return decision
    if decision.verdict is Verdict.PASS:
        if all(imputed(high)[0].verdict is Verdict.PASS for high in (True, False)):
            return decision
        needs = (
            f"{article} {noun} for the {int(lost.sum())} {cases} without one: at their worst they would turn the PASS"
        )
        return unsettled if over else undecided(Reason.PRECISION, needs)
    if not over:
        return decision
    if decision.verdict in ALARMS and least is not None:
        again, stands = imputed(least)
        if stands and again.verdict in ALARMS:
            note = f"stands although {percent(many)} of a group's {cases} have no {noun}: at their worst for it the "
            return replace(milder(decision, again), notes=(*decision.notes, note + "difference remains"))
    return unsettled


def unless_refused(answered: Decision) -> Decision:
    """A PASS on the scores of those who got an answer says nothing where one group is refused more often."""
    if answered.verdict is not Verdict.PASS:
        return answered
    return undecided(
        Reason.DIFFERENTIAL_REFUSAL,
        "find out why one group is refused more often; scores of answered trials cannot settle it",
    )


def unequal_refusals(refusals: Metric, decisions: Sequence[Decision] = ()) -> Bools:
    """Pairs whose refusals differ: judged FLAG or FAIL, or over five percentage points apart and likely so."""
    table = refusals.pairs
    gap = np.abs(np.nan_to_num(table.beside.get("risk_difference", np.zeros(table.first.size))))
    likely = table.p_value * gap.size < LIKELY_REFUSAL_DIFFERENCE
    judged = np.array([decision.verdict in ALARMS for decision in decisions] or [False], dtype=np.bool_)
    return np.asarray(judged | ((gap > MAX_REFUSAL_DIFFERENCE + 1e-12) & likely))


def _sign(metric: Metric, place: int) -> float:
    # Of two effects the rank's: the p-value is of ranks.
    return float(np.sign(metric.pairs.effect[place, -1]))


def _declared(table: PairTable, rule: Rule, member: Member) -> tuple[Bools, Bools]:
    """Whether the difference, and its whole 90 % interval, is below what the caller declared."""
    trivial, inside = np.zeros((2, table.first.size), dtype=np.bool_)
    if member.alarm_only or not table.beside:
        return trivial, inside
    reach = np.maximum(np.abs(table.difference_low), np.abs(table.difference_high))
    if rule.min_raw_diff is not None:
        trivial |= np.abs(table.difference) < rule.min_raw_diff
        inside |= reach < rule.min_raw_diff
    if rule.min_raw_ratio is not None:
        means = "mean" if "mean_1" in table.beside else "rate"
        positive, ratio, larger = _ratio(table.beside[f"{means}_1"], table.beside[f"{means}_2"])
        trivial |= positive & (ratio >= rule.min_raw_ratio)
        inside |= positive & (reach < (1 - rule.min_raw_ratio) * larger)
    return trivial, inside


def _ratio(one: Floats, two: Floats) -> tuple[Bools, Floats, Floats]:
    """Where two means have a ratio, the smaller over the larger, and the larger."""
    larger, smaller = np.maximum(one, two), np.minimum(one, two)
    positive = (larger > 0) & (smaller >= 0)
    return positive, np.where(positive, smaller / np.where(positive, larger, 1.0), 0.0), larger


def _near(metric: Metric, favourable: float | None) -> tuple[Bools, Bools]:
    """Whether two rates are nearly equal, by their intervals and by their estimates."""
    b, rows = metric.pairs.beside, metric.pairs.rows
    if metric.kind not in RATES or favourable is None or not b:
        none, neither = np.zeros((2, metric.pairs.first.size), dtype=np.bool_)
        return none, neither
    rates = [b["rate_1"], b["rate_2"]] if favourable == 1 else [1 - b["rate_1"], 1 - b["rate_2"]]
    return nearly_equal(rates[0], rows[:, 0], rates[1], rows[:, 1], b["design_effect"], metric.pairs.df)


# ---------------------------------------------------------------- templates


def _with_templates(
    member: Member, table: PairTable, decisions: Sequence[Decision], rule: Rule
) -> tuple[list[dict[str, Any]], list[Decision]]:
    """Each block by itself, and the decisions where one of several raises the alarm, or keeps a pair from passing.

    p within the block, Holm over blocks × pairs at a fifth of alpha, and an effect above the margin: alarm. The same
    without the correction over pairs: doubt, which turns a PASS into INCONCLUSIVE(TEMPLATE).
    """
    strata, layout = table.strata, member.metric.layout
    if strata is None or layout is None:
        return [], list(decisions)
    level = rule.alpha * TEMPLATE_ALPHA
    # Blocks too small to raise the alarm are tests too: each counts with p = 1.
    count = np.zeros((len(table.labels), layout.blocks))
    count[member.metric.present] = layout.count
    live = (np.minimum(count[table.first], count[table.second]) > 0).sum(axis=1)
    over_all = correct(strata.p_value, "holm", int(live.sum()))
    within = np.ones(strata.p_value.size)
    for pair in np.unique(strata.pair).tolist():
        own = strata.pair == pair
        within[own] = correct(strata.p_value[own], "holm", int(live[pair]))
    _, effect, low, high = largest(strata.effect, strata.low, strata.high)
    large = (np.abs(np.nan_to_num(effect)) > MARGIN) & ~_too_small(strata.means, rule)
    alarm, doubt = large & (over_all < level), large & (within < level)
    final = list(decisions)
    surest = np.argsort(strata.p_value, kind="stable")
    for pair in np.unique(strata.pair[alarm | doubt]).tolist():
        raising, doubtful = (
            next((member.blocks[strata.block[at]] for at in surest if flags[at] and strata.pair[at] == pair), None)
            for flags in (alarm, doubt)
        )
        final[pair] = _with_block(final[pair], raising, doubtful, rule.block_noun)
    return [
        {
            "by": member.by,
            "group_1": table.labels[table.first[pair]],
            "group_2": table.labels[table.second[pair]],
            "block": member.blocks[block],
            "n_1": int(rows[0]),
            "n_2": int(rows[1]),
            "p_value": p,
            "effect": one,
            "effect_low": least,
            "effect_high": most,
            "alarm": flag,
        }
        for pair, block, rows, p, one, least, most, flag in zip(
            strata.pair.tolist(), strata.block.tolist(), strata.rows.tolist(), strata.p_value.tolist(),
            effect.tolist(), *shown(effect, low, high), alarm.tolist(), strict=True,
        )
    ], final  # fmt: skip


def _too_small(means: Floats, rule: Rule) -> Bools:
    """Whether two means are less apart than the caller declared (T)."""
    small = np.zeros(len(means), dtype=np.bool_)
    if rule.min_raw_diff is not None:
        small |= np.abs(means[:, 0] - means[:, 1]) < rule.min_raw_diff
    if rule.min_raw_ratio is not None:
        positive, _, larger = _ratio(means[:, 0], means[:, 1])
        small |= positive & (means.min(axis=1) >= rule.min_raw_ratio * larger)
    return small


def _with_block(decision: Decision, alarm: str | None, doubt: str | None, noun: str) -> Decision:
    if alarm is not None and decision.reason not in (Reason.RAGGED, Reason.UNSCORED):
        note = f"{noun} {alarm!r} by itself raises the alarm: the groups differ there"
        if decision.verdict in ALARMS:
            return replace(decision, notes=(*decision.notes, note))
        return Decision(verdict=Verdict.FLAG, notes=(note,))
    if doubt is not None and decision.verdict is Verdict.PASS:
        return undecided(Reason.TEMPLATE, f"more names in {noun} {doubt!r}, where the groups may differ")
    return decision


# ---------------------------------------------------------------- results


def pair_results(
    member: Member,
    table: PairTable,
    decisions: Sequence[Decision],
    rule: Rule,
    extra: dict[str, Floats] | None = None,
    *,
    figures: Sequence[dict[str, JSON]] | None = None,
) -> list[PairResult]:
    """One result a pair of groups of *member*; what is unknown (NaN) is None, or left out of ``statistics``."""
    labels, count = table.labels, table.first.size
    names, value, low, high = table.largest()
    lows, highs = shown(value, low, high)
    worse_off = _worse_off(member, table, rule).tolist()
    spec_p, spec_size = (
        table.beside.get(name, np.full(count, np.nan)).tolist() for name in ("spec_p_value", "spec_effect")
    )
    mde, p_cluster, difference = (_nullable(one) for one in (_mde(table, rule), table.p_cluster, table.difference))
    statistics = _statistics(member, table, extra or {}) if figures is None else figures
    least, single = table.trials.min(axis=1).tolist(), table.single.tolist()
    return [
        PairResult(
            group_1=labels[table.first[at]],
            group_2=labels[table.second[at]],
            metric=member.name,
            verdict=decision.verdict,
            reason=decision.reason,
            spec_verdict=None if np.isnan(spec_p[at])
            else spec_verdict(spec_p[at], count, spec_size[at], int(least[at]), rule.minimum),
            alarm_only=member.alarm_only,
            p_row=float(table.p_row[at]),
            p_cluster=p_cluster[at],
            p_value=float(table.p_value[at]),
            corrected_p_value=float(table.corrected[at]),
            effect=float(value[at]),
            effect_name=names[at],
            effect_low=lows[at],
            effect_high=highs[at],
            difference=difference[at],
            worse_off=labels[worse_off[at]] if worse_off[at] >= 0 else None,
            test=table.test[at],
            scope="labels" if single[at] else "names",
            mde=mde[at],
            needs=decision.needs,
            statistics=statistics[at],
            notes=decision.notes,
        )
        for at, decision in enumerate(decisions)
    ]  # fmt: skip


def shown(value: Floats, low: Floats, high: Floats) -> tuple[list[float | None], list[float | None]]:
    """The ends of the intervals; None where an interval is endless or does not hold its estimate strictly."""
    usable = np.isfinite(low) & np.isfinite(high) & (low < value) & (value < high)
    return _nullable(np.where(usable, low, np.nan)), _nullable(np.where(usable, high, np.nan))


def _nullable(column: Floats) -> list[float | None]:
    """The numbers as Python's own, ``None`` for NaN."""
    return [None if number != number else number for number in column.tolist()]  # noqa: PLR0124 - NaN is not itself


def _statistics(member: Member, table: PairTable, extra: dict[str, Floats]) -> list[dict[str, JSON]]:
    """Everything reported beside the verdict, a dictionary a pair, without what is unknown for that pair."""
    recurring = table.part_clusters < table.units.min(axis=1) - 1e-9
    columns = {
        **table.beside,
        "difference_low": table.difference_low,
        "difference_high": table.difference_high,
        "rows_lost_to_ragged_blocks": table.ragged,
        "effective_name_parts": np.where(recurring, table.part_clusters, np.nan),
        **extra,
    }
    if member.metric.kind in RATES and table.beside:
        b, rows = table.beside, table.rows
        ends = clustered_difference(b["rate_1"], rows[:, 0], b["rate_2"], rows[:, 1], b["design_effect"], table.df)
        columns |= dict(zip(("risk_difference_90_low", "risk_difference_90_high"), ends, strict=True))
    if len(table.effect_names) > 1:
        for at, key in enumerate(("hedges_g", "d_from_cliffs_delta")):
            for end, values in (("low", table.low), ("high", table.high)):
                columns[f"{key}_{end}"] = np.where(np.isnan(table.ragged), np.nan, values[:, at])
    numbers = np.array(list(columns.values())).T
    missing = np.isnan(numbers)
    known = ~missing.all(axis=0)
    names = [name for name, keep in zip(columns, known.tolist(), strict=True) if keep]
    figures: list[dict[str, JSON]] = [dict(zip(names, row)) for row in numbers[:, known].tolist()]  # noqa: B905 - alike
    for at in np.flatnonzero(missing[:, known].any(axis=1)).tolist():
        figures[at] = {name: value for name, value in figures[at].items() if value == value}  # noqa: PLR0124 - NaN
    for pair, trials, clusters in zip(figures, table.trials.tolist(), table.clusters.tolist(), strict=True):
        if "largest_gap_category" in pair:
            pair["largest_gap_category"] = member.categories[int(float(str(pair["largest_gap_category"])))]
        pair["by"] = member.by
        pair["trials_1"], pair["trials_2"] = int(trials[0]), int(trials[1])
        pair["clusters_1"], pair["clusters_2"] = int(clusters[0]), int(clusters[1])
    return figures


def _worse_off(member: Member, table: PairTable, rule: Rule) -> Ints:
    """The group that each pair finds worse off; −1 for neither, and for labels, which are no better or worse.

    Where the difference is beyond chance it is the ranks that say so, and their direction counts.
    """
    difference, by_rank = table.difference, table.effect[:, -1]
    rates = member.metric.kind in RATES
    if member.metric.kind is OutcomeKind.CATEGORICAL or (rates and member.favourable is None):
        return np.full(difference.size, -1)
    direction = np.where(significant(table, rule) & (by_rank != 0), by_rank, difference)
    first = (direction < 0) == member.lower_is_worse
    apart = ~np.isnan(difference) & (direction != 0)
    return np.where(apart, np.where(first, table.first, table.second), -1)


def _mde(table: PairTable, rule: Rule) -> Floats:
    """On clusters; where a group has one, on its rows, for such a result is about those labels."""
    k1, k2 = np.where(table.alone[:, None], table.rows, table.units).T
    per_cluster = np.where(table.alone, 1.0, table.per_cluster)
    icc = np.where(table.alone, 0.0, table.icc)
    return minimum_detectable_effect(k1, k2, per_cluster, icc, family_size=rule.family_size, alpha=rule.alpha)
