"""From compared pairs to judged ones: one family, one correction, one way to settle what is missing.

The members of a family are corrected together: the outcome over every grouping, and beside it refusals and missing
answers, which join only where there are any, and only to raise the alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pytest_fairness.analysis.policy import (
    LIKELY_REFUSAL_DIFFERENCE,
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
)
from pytest_fairness.analysis.sentences import NO_ANSWER, percent
from pytest_fairness.model import ALARMS, JSON, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arrays import Bools, Floats, Ints, Membership
from pytest_fairness.statistics.compare import RATES, Metric, measure
from pytest_fairness.statistics.corrections import correct, minimum_detectable_effect
from pytest_fairness.statistics.pair_table import EMPTY, PairTable
from pytest_fairness.statistics.proportions import clustered_difference, nearly_equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One metric of the family over one grouping: its pairs, and how they are decided.

    ``unreported`` are the p-values of further pairs that count in the correction. Of the ``total`` trials of each pair
    (P × groups) so many are ``lost``, without an outcome; ``imputed(place, first_high)`` compares again with those of
    the pair at *place* at the extremes, None where that cannot be done. An alarm on a pair with many lost ``stands``
    where it remains at the extreme that speaks against it. The direction of a difference is that of ranks where it is
    ``by_rank``. ``favourable`` is the value, 1 or 0, of the favourable answer of a yes/no outcome, None where that is
    not known; ``lower_is_worse`` is None where no group is worse off.
    """

    name: str
    table: PairTable
    kind: OutcomeKind
    by: str = ""
    metric: Metric | None = None
    decide: Callable[[PairTable, Rule], list[Decision]] = judge
    unreported: Floats = field(default_factory=lambda: EMPTY)
    lost: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.intp))
    total: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.intp))
    imputed: Callable[[int, bool], PairTable | None] | None = None
    stands: bool = True
    noun: str = "outcome"
    by_rank: bool = False
    lower_is_worse: bool | None = False
    favourable: float | None = 0.0
    categories: tuple[str, ...] = ()
    alarm_only: bool = True

    def direction(self, table: PairTable) -> Floats:
        return table.effect[:, -1] if self.by_rank else table.difference


def beside(metric: Metric | None, name: str, by: str) -> list[Member]:
    """Refusals or missing answers as a member of the family; none without any."""
    if metric is None:
        return []
    return [Member(name=name, by=by, table=metric.pairs, metric=metric, kind=metric.kind, by_rank=True)]


def missing_answers(by: str, design: Membership, missing: Bools) -> list[Member]:
    """Missing outcomes as a metric of their own, which raises the alarm where one group has more; none without any."""
    if not bool(missing.any()):
        return []
    everyone = np.ones(missing.size, dtype=np.bool_)
    return beside(measure(design, missing.astype(np.float64), everyone, OutcomeKind.REFUSAL), NO_ANSWER, by)


@dataclass(frozen=True, slots=True)
class Family:
    """The members judged together, by one rule."""

    members: Sequence[Member]
    rule: Rule

    @property
    def size(self) -> int:
        return sum(member.table.first.size + member.unreported.size for member in self.members)

    def corrected(self, changed: int | None = None, p: Floats | None = None) -> list[Floats]:
        """The p-values of all members corrected together, with *p* in place of those of the member *changed*."""
        family = [p if at == changed and p is not None else member.table.p_value
                  for at, member in enumerate(self.members)]  # fmt: skip
        joined = correct(np.concatenate([*family, *(one.unreported for one in self.members)]), self.rule.correction)
        return np.split(joined, np.cumsum([p.size for p in family]))[:-1]

    def rule_of(self, member: Member) -> Rule:
        return replace(self.rule, minimum=MINIMUM_N[member.kind], family_size=self.size)

    def completed(self, member: Member, table: PairTable, corrected: Floats) -> PairTable:
        """What the policy reads about the pairs of *member* as compared in *table*."""
        trivial, inside = _declared(table, self.rule, member)
        near, close = _near(table, member)
        return replace(table, corrected=corrected, trivial=trivial, inside=inside, near=near, close=close)

    def judge(self) -> list[tuple[PairTable, list[Decision]]]:
        """The table of each member with its decisions, after what is missing."""
        judged = []
        for at, (member, q) in enumerate(zip(self.members, self.corrected(), strict=True)):
            table = self.completed(member, member.table, q)
            decisions = member.decide(table, self.rule_of(member))
            for place in np.flatnonzero(member.lost.any(axis=1)).tolist():
                decisions[place] = self._settled(at, place, decisions[place])
            judged.append((table, decisions))
        return judged

    def results_beside(self, judged: Sequence[tuple[PairTable, list[Decision]]], by: str) -> list[PairResult]:
        """The pairs of refusals and missing answers beside the outcome, over the grouping *by*."""
        found = zip(self.members, judged, strict=True)
        return [
            result
            for member, (table, decisions) in found
            if member.alarm_only and member.by == by
            for result in pair_results(member, table, decisions, self.rule_of(member))
        ]

    def _settled(self, at: int, place: int, decision: Decision) -> Decision:
        """What stands where trials of two groups have no outcome: bounds first, UNSCORED where they leave it open.

        A PASS with any lost has to pass with them at both extremes (Horowitz & Manski 2000). With over 5 % lost an
        alarm stands if it remains where they are least favourable to it, by the milder of the two verdicts.
        """
        member, cases, noun = self.members[at], self.rule.case_noun, self.members[at].noun
        if decision.reason is Reason.RAGGED:
            return decision
        lost = member.lost[place]
        many = float(np.max(lost / np.maximum(member.total[place], 1)))
        over, article = many > MAX_UNSCORED, "an" if noun[0] in "aeiou" else "a"
        unsettled = undecided(
            Reason.UNSCORED,
            f"{article} {noun} for more {cases}: {percent(many)} of a group's have none, and what is missing could "
            "turn the verdict",
        )
        if decision.verdict is Verdict.PASS:
            again = [self._imputed(at, place, high) for high in (True, False)]
            if all(one is not None and one[0].verdict is Verdict.PASS for one in again):
                return decision
            if None in again and not over:
                return decision
            needs = f"{article} {noun} for the {int(lost.sum())} {cases} without one: at their worst they would turn "
            return unsettled if over else undecided(Reason.PRECISION, needs + "the PASS")
        if not over:
            return decision
        if decision.verdict in ALARMS:
            # Least favourable to a difference: the higher group's missing outcomes are the lowest, and the other way.
            least = self._imputed(at, place, bool(member.direction(member.table)[place] < 0))
            if least is not None and least[1] and least[0].verdict in ALARMS:
                note = (
                    f"stands although {percent(many)} of a group's {cases} have no {noun}: at their worst for it the "
                )
                return replace(milder(decision, least[0]), notes=(*decision.notes, note + "difference remains"))
        return unsettled

    def _imputed(self, at: int, place: int, high: bool) -> tuple[Decision, bool] | None:
        """The decision on a pair with what is missing at an extreme, and whether its difference remains; None where
        that cannot be compared."""
        member = self.members[at]
        table = None if member.imputed is None else member.imputed(place, high)
        if table is None:
            return None
        p = member.table.p_value.copy()
        p[place] = table.p_value[place]
        table = self.completed(member, replace(table, p_value=p), self.corrected(at, p)[at])
        sign, again = (np.sign(member.direction(one)[place]) for one in (member.table, table))
        stands = member.stands and bool(significant(table, self.rule)[place]) and sign in (again, 0.0)
        return member.decide(table, self.rule_of(member))[place], stands


def unless_refused(answered: Decision) -> Decision:
    """A PASS on the scores of those who got an answer says nothing where one group is refused more often."""
    if answered.verdict is not Verdict.PASS:
        return answered
    return undecided(
        Reason.DIFFERENTIAL_REFUSAL,
        "find out why one group is refused more often; scores of answered trials cannot settle it",
    )


def unequal_refusals(table: PairTable, decisions: Sequence[Decision] = ()) -> Bools:
    """Pairs whose refusals differ: judged FLAG or FAIL, or over five percentage points apart and likely so."""
    gap = np.abs(np.nan_to_num(table.beside.get("risk_difference", np.zeros(table.first.size))))
    likely = table.p_value * gap.size < LIKELY_REFUSAL_DIFFERENCE
    judged = np.array([decision.verdict in ALARMS for decision in decisions] or [False], dtype=np.bool_)
    return np.asarray(judged | ((gap > MAX_REFUSAL_DIFFERENCE + 1e-12) & likely))


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
        positive, ratio, larger = ratio_of_means(table.beside[f"{means}_1"], table.beside[f"{means}_2"])
        trivial |= positive & (ratio >= rule.min_raw_ratio)
        inside |= positive & (reach < (1 - rule.min_raw_ratio) * larger)
    return trivial, inside


def ratio_of_means(one: Floats, two: Floats) -> tuple[Bools, Floats, Floats]:
    """Where two means have a ratio, the smaller over the larger, and the larger."""
    larger, smaller = np.maximum(one, two), np.minimum(one, two)
    positive = (larger > 0) & (smaller >= 0)
    return positive, np.where(positive, smaller / np.where(positive, larger, 1.0), 0.0), larger


def _near(table: PairTable, member: Member) -> tuple[Bools, Bools]:
    """Whether two rates are nearly equal, by their intervals and by their estimates."""
    b, rows = table.beside, table.rows
    if member.kind not in RATES or member.favourable is None or "rate_1" not in b:
        none, neither = np.zeros((2, table.first.size), dtype=np.bool_)
        return none, neither
    rates = [b["rate_1"], b["rate_2"]] if member.favourable == 1 else [1 - b["rate_1"], 1 - b["rate_2"]]
    return nearly_equal(rates[0], rows[:, 0], rates[1], rows[:, 1], b["design_effect"], table.df)


# ---------------------------------------------------------------- results


def pair_results(
    member: Member,
    table: PairTable,
    decisions: Sequence[Decision],
    rule: Rule,
    *,
    statistics: Sequence[dict[str, JSON]] | None = None,
    mde: Floats | None = None,
    extra: Mapping[str, Floats] | None = None,
    spec_tests: int | None = None,
) -> list[PairResult]:
    """One result a pair of groups of *member*; what is unknown (NaN) is None, or left out of ``statistics``.

    Where the *statistics* are not given they are all that the tests report, and *extra*; *spec_tests* is the number of
    tests by the literal specification, by default the pairs.
    """
    labels, count = table.labels, table.first.size
    names, value, low, high = table.largest()
    lows, highs = shown(value, low, high)
    worse_off = _worse_off(member, table, rule).tolist()
    spec_p, spec_size = (
        table.beside.get(name, np.full(count, np.nan)).tolist() for name in ("spec_p_value", "spec_effect")
    )
    if statistics is None:
        statistics, mde = _statistics(member, table, extra or {}), _mde(table, rule)
    columns = (np.full(count, np.nan) if mde is None else mde, table.p_cluster, table.difference)
    mdes, p_cluster, difference = (_nullable(one) for one in columns)
    least, single = table.trials.min(axis=1).tolist(), table.single.tolist()
    return [
        PairResult(
            group_1=labels[table.first[at]],
            group_2=labels[table.second[at]],
            metric=member.name,
            verdict=decision.verdict,
            reason=decision.reason,
            spec_verdict=None if np.isnan(spec_p[at])
            else spec_verdict(spec_p[at], spec_tests or count, spec_size[at], int(least[at]), rule.minimum),
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
            mde=mdes[at],
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
    """The numbers as Python's own, ``None`` for NaN and what has no end."""
    return [None if number != number else number for number in column.tolist()]  # noqa: PLR0124 - NaN is not itself


def _statistics(member: Member, table: PairTable, extra: Mapping[str, Floats]) -> list[dict[str, JSON]]:
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
    if member.kind in RATES and table.beside:
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
    difference, own = table.difference, member.direction(table)
    unknown = member.lower_is_worse is None or (member.kind in RATES and member.favourable is None)
    if member.kind is OutcomeKind.CATEGORICAL or unknown:
        return np.full(difference.size, -1)
    direction = np.where(significant(table, rule) & (own != 0), own, difference)
    first = (direction < 0) == member.lower_is_worse
    apart = ~np.isnan(difference) & (direction != 0)
    return np.where(apart, np.where(first, table.first, table.second), -1)


def _mde(table: PairTable, rule: Rule) -> Floats:
    """On clusters; where a group has one, on its rows, for such a result is about those labels."""
    k1, k2 = np.where(table.alone[:, None], table.rows, table.units).T
    per_cluster = np.where(table.alone, 1.0, table.per_cluster)
    icc = np.where(table.alone, 0.0, table.icc)
    return minimum_detectable_effect(k1, k2, per_cluster, icc, family_size=rule.family_size, alpha=rule.alpha)
