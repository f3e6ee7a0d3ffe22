"""From compared pairs to judged ones: one family, one correction, one way to settle what is
missing.

The members of a family are corrected together: the outcome over every grouping, and beside it
refusals and missing answers, which join only where there are any, and only to raise the alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from pytest_fairness.analysis.looks import Look
from pytest_fairness.analysis.policy import (
    LIKELY_REFUSAL_DIFFERENCE,
    LOST_ALIKE,
    MARGIN,
    MAX_REFUSAL_DIFFERENCE,
    MINIMUM_N,
    Decision,
    Imputed,
    Loss,
    Rule,
    judge,
    kept_green,
    significant,
    spec_verdict,
)
from pytest_fairness.analysis.sentences import NO_ANSWER, WORST_RANK
from pytest_fairness.model import ALARMS, JSON, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arrays import Bools, Floats, Ints, Membership
from pytest_fairness.statistics.clusters import CONFIDENCE, TINY
from pytest_fairness.statistics.compare import RATES, Metric, measure_share
from pytest_fairness.statistics.corrections import (
    correct,
    correct_parts,
    minimum_detectable_effect,
)
from pytest_fairness.statistics.pair_table import EMPTY, PairTable
from pytest_fairness.statistics.proportions import (
    ClusteredRates,
    clustered_difference,
    nearly_equal,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostTrials:
    """The trials without an outcome: of the ``total`` of each pair (P × groups) so many are
    ``lost``, in which both groups are alike with ``p_alike``.

    ``imputed(place, first_high, at_random)`` is the table of that pair alone with those at the
    extremes, or where they would be at random, None where it cannot be compared. An alarm on a pair
    with many lost ``stands`` where it remains at the extreme that speaks against it.
    """

    lost: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.intp))
    total: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.intp))
    p_alike: Floats = field(default_factory=lambda: EMPTY)
    imputed: Callable[[int, bool, bool], PairTable | None] = lambda _at, _high, _random: None
    stands: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One metric of the family over one grouping: its pairs, and how they are decided.

    ``unreported`` are the p-values of further pairs that count in the correction; ``lost`` are the
    trials without an outcome. The direction of a difference is that of ranks where it is
    ``by_rank``. ``favourable`` is
    the value, 1 or 0, of the favourable answer of a yes/no outcome, None where that is not known;
    ``lower_is_worse`` is None where no group is worse off. ``report`` gives what is reported of
    each pair of a table beside the verdict, by default all that the tests report, and ``mde`` the
    smallest effect that each finds; ``spec_tests`` is the number of tests by the literal
    specification, by default the pairs. ``part`` is the place of the part of the table that is
    compared, where it is compared in parts. ``signals`` are those that convey the groups, where the
    table says so; ``of_outcome``: the outcome asked for, where that is ``alarm_only`` too.
    """

    name: str
    table: PairTable
    kind: OutcomeKind
    by: str = ""
    metric: Metric | None = None
    decide: Callable[[PairTable, Rule], list[Decision]] = judge
    unreported: Floats = field(default_factory=lambda: EMPTY)
    lost: LostTrials = field(default_factory=LostTrials)
    noun: str = "outcome"
    by_rank: bool = False
    lower_is_worse: bool | None = False
    favourable: float | None = 0.0
    categories: tuple[str, ...] = ()
    alarm_only: bool = True
    report: Callable[[PairTable], Sequence[dict[str, JSON]]] | None = None
    mde: Floats | None = None
    spec_tests: int | None = None
    part: int = 0
    signals: tuple[str, ...] = ()
    of_outcome: bool = False

    def direction(self, table: PairTable) -> Floats:
        if self.by_rank:
            return table.effect[:, -1]
        return table.difference


def alarm_members(metric: Metric | None, name: str, by: str) -> list[Member]:
    """Refusals or missing answers as a member of the family; none without any."""
    if metric is None:
        return []
    return [
        Member(name=name, by=by, table=metric.pairs, metric=metric, kind=metric.kind, by_rank=True)
    ]


def missing_answers(
    by: str, design: Membership, missing: Bools, confidence: float = CONFIDENCE
) -> list[Member]:
    """Missing outcomes as a metric of their own, with intervals of *confidence*, which raises the
    alarm where one group has more; none without any.
    """
    if not bool(missing.any()):
        return []
    everyone = np.ones(missing.size, dtype=np.bool_)
    shares = measure_share(design, missing, everyone, confidence)
    return alarm_members(shares, NO_ANSWER, by)


def p_lost(missing: Sequence[Member]) -> Floats:
    """p of equal shares of missing answers, corrected over the pairs, of what
    :func:`missing_answers` gives.
    """
    if missing:
        return correct(missing[0].table.p_value, "bonferroni")
    return EMPTY


class Judged(NamedTuple):
    """A member with its table as it was judged, the decision on each pair, and the table with
    refusals ranked worst, with the pairs whose effect is that of it."""

    member: Member
    table: PairTable
    decisions: list[Decision]
    ranked: tuple[PairTable, Bools] | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """The members judged together, by one rule."""

    members: Sequence[Member]
    rule: Rule

    @property
    def size(self) -> int:
        """Return how many tests are corrected together; a part that has none counts as one."""
        tests = sum(member.table.first.size + member.unreported.size for member in self.members)
        return tests + max(self.rule.parts - len({member.part for member in self.members}), 0)

    def facts(self, pairs: Sequence[PairResult]) -> dict[str, JSON]:
        """Return what a finding says of the family of its *pairs*."""
        metrics: list[JSON] = list(dict.fromkeys(pair.metric for pair in pairs))
        return {
            "size": self.size,
            "method": self.rule.correction,
            "alpha": self.rule.alpha,
            "metrics": metrics,
        }

    def corrected(self, changed: int | None = None, p: Floats = EMPTY) -> list[Floats]:
        """The p-values of all members corrected together, with *p* in place of those of the member
        *changed*.
        """
        family = [member.table.p_value for member in self.members]
        if changed is not None:
            family[changed] = p
        every = np.concatenate([*family, *(member.unreported for member in self.members)])
        if self.rule.parts and self.rule.correction == "fdr_bh":
            sizes = [p.size for p in family] + [member.unreported.size for member in self.members]
            parts = np.repeat(2 * [member.part for member in self.members], sizes)
            joined = correct_parts(every, parts, self.rule.parts)
        else:
            joined = correct(every, self.rule.correction, self.size)
        return np.split(joined, np.cumsum([p.size for p in family]))[:-1]

    def rule_of(self, member: Member) -> Rule:
        return replace(self.rule, minimum=MINIMUM_N[member.kind], family_size=self.size)

    def completed(self, member: Member, table: PairTable, corrected: Floats) -> PairTable:
        """Return what the policy reads about the pairs of *member* as compared in *table*: beside
        the p-values, what is below what the caller declared, and which rates are nearly equal."""
        trivial, inside = _declared(table, self.rule, member)
        near = table.near
        close = table.close
        b = table.figures
        rows = table.rows
        if member.kind in RATES and member.favourable is not None and "rate_1" in b:
            first = b["rate_1"]
            two = b["rate_2"]
            if member.favourable != 1:
                first = 1 - first
                two = 1 - two
            rates = ClusteredRates(first, rows[:, 0], two, rows[:, 1], b["design_effect"], table.df)
            near, close = nearly_equal(rates, self.rule.confidence)
        return replace(
            table, corrected=corrected, trivial=trivial, inside=inside, near=near, close=close
        )

    def judge(self) -> list[Judged]:
        """Each member with its decisions, after what is missing."""
        judged = []
        for at, (member, q) in enumerate(zip(self.members, self.corrected(), strict=True)):
            table = self.completed(member, member.table, q)
            decisions = member.decide(table, self.rule_of(member))
            for place in np.flatnonzero(member.lost.lost.any(axis=1)).tolist():
                decisions[place] = self._settled(at, place, decisions[place])
            judged.append(Judged(member, table, decisions))
        return judged

    def results(self, judged: Sequence[Judged]) -> list[PairResult]:
        return [
            result
            for judgement in judged
            for result in pair_results(judgement, self.rule_of(judgement.member))
        ]

    def _settled(self, at: int, place: int, decision: Decision) -> Decision:
        """Return what stands where trials of two groups have no outcome: bounds first, UNSCORED
        where they leave it open.

        A PASS with any lost has to pass with them at both extremes, or, where both groups lost as
        many and neither over 5 %, at the quartiles. With over 5 % lost an alarm has to remain where
        they are least favourable to it.
        """
        loss = self._loss(self.members[at], place)
        if decision.reason is Reason.RAGGED:
            return decision
        if decision.verdict is Verdict.PASS:
            both = [self._imputed(at, place, high, at_random=loss.alike) for high in (True, False)]
            return loss.settle_pass(decision, both)
        if not loss.many:
            return decision
        if decision.verdict not in ALARMS:
            return loss.unscored
        # Least favourable to a difference: the higher group's missing outcomes are the lowest, and
        # the other way.
        member = self.members[at]
        first_high = bool(member.direction(member.table)[place] < 0)
        return loss.settle_alarm(decision, self._imputed(at, place, first_high))

    def _loss(self, member: Member, place: int) -> Loss:
        """Return what the pair in *place* lacks."""
        of_pairs = member.lost
        lost = of_pairs.lost[place]
        loss = Loss(
            noun=member.noun,
            cases=self.rule.case_noun,
            lost=int(lost.sum()),
            share=float(np.max(lost / np.maximum(of_pairs.total[place], 1))),
            alike=False,
        )
        alike = not loss.many and of_pairs.p_alike.size > 0 and of_pairs.p_alike[place] > LOST_ALIKE
        return replace(loss, alike=bool(alike))

    def _imputed(
        self, at: int, place: int, high: bool, *, at_random: bool = False
    ) -> Imputed | None:
        """The decision on a pair with what is missing imputed, and whether its difference remains;
        None where that cannot be compared."""
        member = self.members[at]
        table = member.lost.imputed(place, high, at_random)
        if table is None:
            return None
        p = member.table.p_value.copy()
        p[place] = table.p_value[0]
        table = self.completed(member, table, self.corrected(at, p)[at][[place]])
        sign = np.sign(member.direction(member.table)[place])
        again = np.sign(member.direction(table)[0])
        again_significant = bool(significant(table, self.rule)[0])
        stands = member.lost.stands and again_significant and sign in (again, 0.0)
        return Imputed(member.decide(table, self.rule_of(member))[0], stands)


def keep_green(judged: Judged, look: Look | None) -> None:
    """Let the pairs of an outcome stay green that an earlier look found so."""
    table = judged.table
    for at, decision in enumerate(judged.decisions):
        groups = table.labels[table.first[at]], table.labels[table.second[at]]
        key = (judged.member.by, judged.member.name, *groups)
        judged.decisions[at] = kept_green(decision, key, look)


def unequal_refusals(table: PairTable, decisions: Sequence[Decision] = ()) -> Bools:
    """Pairs whose refusals differ: judged FLAG or FAIL, or over five percentage points apart and
    likely so.
    """
    gap = np.abs(np.nan_to_num(table.figures.get("risk_difference", np.zeros(table.first.size))))
    likely = table.p_value * gap.size < LIKELY_REFUSAL_DIFFERENCE
    judged = np.array(
        [decision.verdict in ALARMS for decision in decisions] or [False], dtype=np.bool_
    )
    return np.asarray(judged | ((gap > MAX_REFUSAL_DIFFERENCE + 1e-12) & likely))


def _declared(table: PairTable, rule: Rule, member: Member) -> tuple[Bools, Bools]:
    """Return whether the difference, and its whole interval, is below what the caller
    declared.
    """
    if (
        (member.alarm_only and not member.of_outcome)
        or not table.figures
        or (rule.min_raw_diff, rule.min_raw_ratio) == (None, None)
    ):
        return table.trivial, table.inside
    means = "rate"
    if "mean_1" in table.figures:
        means = "mean"
    first = table.figures[f"{means}_1"]
    two = table.figures[f"{means}_2"]
    reach = np.maximum(np.abs(table.difference_low), np.abs(table.difference_high))
    inside = np.zeros(table.first.size, dtype=np.bool_)
    if rule.min_raw_diff is not None:
        inside |= reach < rule.min_raw_diff
    if rule.min_raw_ratio is not None:
        larger = np.maximum(first, two)
        inside |= (
            (larger > 0)
            & (np.minimum(first, two) >= 0)
            & (reach < (1 - rule.min_raw_ratio) * larger)
        )
    return too_small(table.difference, first, two, rule), inside


def too_small(difference: Floats, first: Floats, two: Floats, rule: Rule) -> Bools:
    """Return whether a *difference*, that of the means *first* and *two*, is below what the caller
    declared.
    """
    small = np.zeros(difference.size, dtype=np.bool_)
    if rule.min_raw_diff is not None:
        small |= np.abs(difference) < rule.min_raw_diff
    if rule.min_raw_ratio is not None:
        larger = np.maximum(first, two)
        smaller = np.minimum(first, two)
        ratio = np.divide(smaller, larger, out=np.zeros(larger.size), where=larger > 0)
        small |= (larger > 0) & (smaller >= 0) & (ratio >= rule.min_raw_ratio)
    return small


# ---------------------------------------------------------------- results


def pair_results(judged: Judged, rule: Rule) -> list[PairResult]:
    """One result a pair of groups; what is unknown (NaN) is None, or left out of ``statistics``."""
    member = judged.member
    table = judged.table
    names, value, low, high, worse_off = _effects_shown(judged, rule)
    lows, highs = shown(value, low, high)
    statistics: Sequence[dict[str, JSON]] = []
    if member.report is None:
        statistics = _statistics(member, table, rule.confidence)
    else:
        statistics = member.report(table)
    # No group, place −1, is None.
    labels = np.array([*table.labels, None], dtype=object)
    columns: dict[str, Iterable[Any]] = {
        "group_1": labels[table.first],
        "group_2": labels[table.second],
        "verdict": [decision.verdict for decision in judged.decisions],
        "reason": [decision.reason for decision in judged.decisions],
        "needs": [decision.needs for decision in judged.decisions],
        "notes": [decision.notes for decision in judged.decisions],
        "spec_verdict": _spec_verdicts(member, table, rule),
        "p_row": table.p_row.tolist(),
        "p_cluster": _nullable(table.p_cluster),
        "p_value": table.p_value.tolist(),
        "corrected_p_value": table.corrected.tolist(),
        "effect": value.tolist(),
        "effect_name": names,
        "effect_low": lows,
        "effect_high": highs,
        "difference": _nullable(table.difference),
        "worse_off": labels[worse_off],
        "test": table.test,
        "scope": np.where(table.single, "labels", "names").tolist(),
        "mde": _nullable(_mdes(member, table, rule)),
        "statistics": statistics,
    }
    results = []
    for row in zip(*columns.values(), strict=True):
        fields = dict(zip(columns, row, strict=True))
        results.append(
            PairResult(
                metric=member.name,
                alarm_only=member.alarm_only,
                confidence=rule.confidence,
                **fields,
            )
        )
    return results


def _effects_shown(
    judged: Judged, rule: Rule
) -> tuple[Sequence[str], Floats, Floats, Floats, Ints]:
    """The effect that decided on each pair: its name, value and interval, and who is worse off."""
    member, table, _, ranked = judged
    names, value, low, high = table.largest(MARGIN)
    worse_off = _worse_off(member, table, rule)
    if ranked is None:
        return names, value, low, high, worse_off
    worst, chosen = ranked
    of_worst, worst_value, worst_low, worst_high = worst.largest(MARGIN)
    value = np.where(chosen, worst_value, value)
    low = np.where(chosen, worst_low, low)
    high = np.where(chosen, worst_high, high)
    names = list(names)
    for at in np.flatnonzero(chosen).tolist():
        names[at] = f"{of_worst[at]}{WORST_RANK}"
    below = (value < 0) == member.lower_is_worse
    lower = np.where(below, table.first, table.second)
    # Labels are no better or worse, and what is refused most often is none of them.
    graded = member.kind is not OutcomeKind.CATEGORICAL
    worse_off = np.where(chosen & graded & (value != 0), lower, worse_off)
    return names, value, low, high, worse_off


def _spec_verdicts(member: Member, table: PairTable, rule: Rule) -> list[Verdict | None]:
    """The literal specification's verdict on each pair; None where its test was not made."""
    count = table.first.size
    unknown = np.full(count, np.nan)
    p = table.figures.get("spec_p_value", unknown)
    size = table.figures.get("spec_effect", unknown).tolist()
    least = table.trials.min(axis=1).astype(int).tolist()
    tests = member.spec_tests or count
    verdicts: list[Verdict | None] = [None] * count
    for at in np.flatnonzero(~np.isnan(p)).tolist():
        verdicts[at] = spec_verdict(float(p[at]), tests, size[at], least[at], rule.minimum)
    return verdicts


def _mdes(member: Member, table: PairTable, rule: Rule) -> Floats:
    """The smallest effect that each pair finds; NaN where that is not known."""
    if member.mde is not None:
        return member.mde
    if member.report is not None:
        return np.full(table.first.size, np.nan)
    return _mde(table, rule)


def shown(
    value: Floats, low: Floats, high: Floats
) -> tuple[list[float | None], list[float | None]]:
    """The ends of the intervals; None where an interval is endless or does not hold its estimate
    strictly.
    """
    usable = np.isfinite(low) & np.isfinite(high) & (low < value) & (value < high)
    return _nullable(np.where(usable, low, np.nan)), _nullable(np.where(usable, high, np.nan))


def _nullable(column: Floats) -> list[float | None]:
    """The numbers as Python's own, ``None`` for NaN."""
    numbers: list[float | None] = column.tolist()
    for at in np.flatnonzero(np.isnan(column)).tolist():
        numbers[at] = None
    return numbers


def _statistics(member: Member, table: PairTable, confidence: float) -> list[dict[str, JSON]]:
    """Everything reported beside the verdict, a dictionary a pair, without what is unknown for that
    pair.
    """
    statistics: dict[str, list[Any]] = {}
    complete = True
    for name, values in _reported(member, table, confidence).items():
        unknown = np.isnan(values)
        if not unknown.all():
            statistics[name] = values.tolist()
            complete = complete and not unknown.any()
    gaps = statistics.get("largest_gap_category", [])
    for at, code in enumerate(gaps):
        if code == code:  # noqa: PLR0124 - NaN, which is not itself, is left out below
            gaps[at] = member.categories[int(code)]
    for name, counts in (("trials", table.trials), ("clusters", table.clusters)):
        for column, group in enumerate(("1", "2")):
            statistics[f"{name}_{group}"] = counts[:, column].astype(int).tolist()
    if member.signals:
        statistics = {"signals": [list(member.signals)] * table.first.size, **statistics}
    statistics = {"by": [member.by] * table.first.size, **statistics}
    reports = [
        dict(zip(statistics, pair, strict=True)) for pair in zip(*statistics.values(), strict=True)
    ]
    if complete:
        return reports
    return list(map(_without_nan, reports))


def _without_nan(report: dict[str, JSON]) -> dict[str, JSON]:
    """*report* without what is NaN, which is not itself."""
    return {name: value for name, value in report.items() if value == value}  # noqa: PLR0124


def _reported(member: Member, table: PairTable, confidence: float) -> dict[str, Floats]:
    """The figures of all pairs, a column each; NaN where one is unknown."""
    recurring = table.part_clusters < table.units.min(axis=1) - 1e-9
    columns = {
        **table.figures,
        "difference_low": table.difference_low,
        "difference_high": table.difference_high,
        "rows_lost_to_ragged_blocks": table.ragged,
        "effective_name_parts": np.where(recurring, table.part_clusters, np.nan),
    }
    if member.kind in RATES and "rate_1" in table.figures:
        b = table.figures
        rows = table.rows
        rates = ClusteredRates(
            b["rate_1"], rows[:, 0], b["rate_2"], rows[:, 1], b["design_effect"], table.df
        )
        low, high = clustered_difference(rates, confidence)
        columns |= {
            "clustered_risk_difference_low": low,
            "clustered_risk_difference_high": high,
        }
    if len(table.effect_names) > 1:
        lost = np.isnan(table.ragged)
        for column, key in enumerate(("hedges_g", "d_from_cliffs_delta")):
            columns[f"{key}_low"] = np.where(lost, np.nan, table.low[:, column])
            columns[f"{key}_high"] = np.where(lost, np.nan, table.high[:, column])
    return columns


def _worse_off(member: Member, table: PairTable, rule: Rule) -> Ints:
    """The group that each pair finds worse off; −1 for neither, and for labels, which are no better
    or worse.

    Where the difference is beyond chance it is the ranks that say so, and their direction counts.
    Where the means of the rows, which a reader is shown, and those of the clusters point apart,
    neither group is.
    """
    difference = table.difference
    own_direction = member.direction(table)
    unknown = member.lower_is_worse is None or (member.kind in RATES and member.favourable is None)
    if member.kind is OutcomeKind.CATEGORICAL or unknown:
        return np.full(difference.size, -1)
    direction = np.where(significant(table, rule) & (own_direction != 0), own_direction, difference)
    first = (direction < 0) == member.lower_is_worse
    apart = ~np.isnan(difference) & (direction != 0) & ~(difference * _row_gap(table) < 0)
    return np.where(apart, np.where(first, table.first, table.second), -1)


def _row_gap(table: PairTable) -> Floats:
    """The difference of the means of the rows; 0 where they are not known."""
    means = "rate"
    if "mean_1" in table.figures:
        means = "mean"
    if f"{means}_1" not in table.figures:
        return np.zeros(table.first.size)
    gap = table.figures[f"{means}_1"] - table.figures[f"{means}_2"]
    return np.where(np.abs(gap) > TINY * np.abs(table.figures[f"{means}_1"]), gap, 0.0)


def _mde(table: PairTable, rule: Rule) -> Floats:
    """On clusters; where a group has one, on its rows, for such a result is about those labels."""
    k1, k2 = np.where(table.alone[:, None], table.rows, table.units).T
    per_cluster = np.where(table.alone, 1.0, table.per_cluster)
    icc = np.where(table.alone, 0.0, table.icc)
    return minimum_detectable_effect(
        k1, k2, per_cluster, icc, family_size=rule.family_size, alpha=rule.alpha
    )
