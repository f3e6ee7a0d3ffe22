"""From measured metrics to judged pairs: one family, one correction; missing answers, refusals and templates.

The members of a family are corrected together: the outcome over every grouping, and beside it refusals and missing
answers, which join only where there are any, and only to raise the alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pytest_fairness.analysis.members import Member, Thresholds
from pytest_fairness.analysis.pair_results import pair_results
from pytest_fairness.analysis.policy import PairTable, judge
from pytest_fairness.analysis.sentences import percent
from pytest_fairness.analysis.templates import BlockEffect, judge_templates, with_templates
from pytest_fairness.analysis.verdicts import (
    LIKELY_REFUSAL_DIFFERENCE,
    MAX_REFUSAL_DIFFERENCE,
    MAX_UNSCORED,
    MINIMUM_N,
    Decision,
    milder,
    worse,
)
from pytest_fairness.model import ALARMS, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.comparison import Comparison, Estimate
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.frames import Bools, Floats
from pytest_fairness.statistics.metrics import RATES, Metric
from pytest_fairness.statistics.proportions import nearly_equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The judged pairs of all members, in order, and what the outcome does within each block."""

    pairs: tuple[PairResult, ...]
    blocks: tuple[BlockEffect, ...]
    size: int


def judge_family(
    members: Sequence[Member], thresholds: Thresholds, *, cluster_noun: str, case_noun: str, block_noun: str
) -> Family:
    """Judge all pairs of all members as one family, in order."""
    context = _Context(members, thresholds, cluster_noun, case_noun)
    family = [member.metric.p_values for member in members]
    corrected = context.corrected(family)
    tables = [
        context.table(member, member.metric, p, q) for member, p, q in zip(members, family, corrected, strict=True)
    ]
    decisions = [judge(table) for table in tables]
    blocks: list[BlockEffect] = []
    results: list[PairResult] = []
    refused = {at: _refused_unequally(member, members, decisions, family) for at, member in enumerate(members)}
    for at, member in enumerate(members):
        final = [_with_missing(context, at, place, decision, family) for place, decision in enumerate(decisions[at])]
        extra: list[dict[str, float]] | None = None
        if member.worst_rank is not None and bool(refused[at].any()):
            metric = member.worst_rank()
            ranked = np.where(refused[at], np.minimum(family[at], metric.p_values), family[at])
            again = context.corrected([*family[:at], ranked, *family[at + 1 :]])[at]
            harsher = judge(context.table(member, metric, metric.p_values, again))
            final = [
                _with_refusals(one, other) if flag else one
                for one, other, flag in zip(final, harsher, refused[at].tolist(), strict=True)
            ]
            extra = _beside_worst_rank(member.metric, metric, refused[at])
            tables[at] = replace(tables[at], p_value=ranked, corrected=again)
        if not member.alarm_only:
            found, alarms, doubts = judge_templates(member, tables[at], thresholds)
            blocks += found
            final = [
                with_templates(one, alarms.get(place), doubts.get(place), block_noun) for place, one in enumerate(final)
            ]
        results += pair_results(member, tables[at], final, extra)
    return Family(pairs=tuple(results), blocks=tuple(blocks), size=sum(p.size for p in family))


def alarm_results(
    member: Member, corrected: Floats, thresholds: Thresholds, *, size: int, cluster_noun: str, case_noun: str
) -> list[PairResult]:
    """The pairs of a *member* that only raises the alarm, beside an assertion with a rule of its own whose family of
    *size* tests it was corrected with."""
    context = _Context([member], thresholds, cluster_noun, case_noun)
    table = replace(context.table(member, member.metric, member.metric.p_values, corrected), family_size=size)
    return pair_results(member, table, judge(table), None)


@dataclass(frozen=True, slots=True)
class _Context:
    members: Sequence[Member]
    thresholds: Thresholds
    cluster_noun: str
    case_noun: str

    def corrected(self, family: Sequence[Floats]) -> list[Floats]:
        """The p-values of all members corrected together."""
        joined = correct(np.concatenate(list(family)) if family else np.zeros(0), self.thresholds.correction)
        return np.split(joined, np.cumsum([p.size for p in family])[:-1]) if family else []

    def table(self, member: Member, metric: Metric, p: Floats, q: Floats) -> PairTable:
        """What the policy reads about the pairs of *member* as measured by *metric*."""
        groups = all_pairs(len(member.labels))
        comparison = metric.comparison
        count = groups.first.size
        no = np.zeros(count, dtype=np.bool_)
        first, second = groups.first, groups.second
        trials = np.stack([metric.trials[first], metric.trials[second]], axis=1).astype(np.float64)
        clusters = np.stack([metric.clusters[first], metric.clusters[second]], axis=1).astype(np.float64)
        unknown = Estimate(name="d", value=np.zeros(count), low=np.full(count, -np.inf), high=np.full(count, np.inf))
        effects: tuple[Estimate, ...] = (unknown,)
        ragged = np.zeros(count)
        constant = single = one_part = trivial = inside = near = close = no
        if comparison is not None:
            effects = tuple(_padded(metric, effect) for effect in comparison.effects)
            ragged = metric.column(comparison.ragged, 0.0)
            constant = _flags(metric, comparison.constant)
            single = _flags(metric, comparison.labels) & ~np.asarray(comparison_own_rows(metric))
            one_part = _flags(metric, comparison.part_constant)
            trivial, inside = (_flags(metric, one) for one in _declared(comparison, self.thresholds, member))
            near, close = (_flags(metric, one) for one in _near(comparison, metric.kind, member.favourable))
            rows = metric.column(comparison.rows, 0.0)
            # Where one cluster is all that a group has, repetitions with the same text count once.
            trials = np.where(single[:, None], rows, trials)
        return PairTable(
            labels=member.labels,
            first=first,
            second=second,
            effects=effects,
            p_value=p,
            corrected=q,
            trials=trials,
            clusters=clusters,
            ragged=ragged,
            trivial=trivial,
            inside=inside,
            near=near,
            close=close,
            constant=constant,
            single=single,
            one_part=one_part,
            own_rows=comparison_own_rows(metric),
            minimum=MINIMUM_N[metric.kind],
            alpha=self.thresholds.alpha,
            family_size=sum(other.metric.p_values.size for other in self.members),
            cluster_noun=self.cluster_noun,
            case_noun=self.case_noun,
        )


def comparison_own_rows(metric: Metric) -> bool:
    """Whether every row of *metric* stands for itself."""
    return metric.layout is not None and metric.layout.own_rows


def _padded(metric: Metric, effect: Estimate) -> Estimate:
    return Estimate(
        name=effect.name,
        value=metric.column(effect.value, 0.0),
        low=metric.column(effect.low, -np.inf),
        high=metric.column(effect.high, np.inf),
    )


def _flags(metric: Metric, values: Bools) -> Bools:
    return np.asarray(metric.column(values.astype(np.float64), 0.0) > 0)


def _declared(comparison: Comparison, thresholds: Thresholds, member: Member) -> tuple[Bools, Bools]:
    """Whether the difference, and its whole 90 % interval, is below what the caller declared."""
    trivial = np.zeros(comparison.p_value.size, dtype=np.bool_)
    inside = trivial.copy()
    if member.alarm_only:
        return trivial, inside
    reach = np.maximum(np.abs(comparison.difference_low), np.abs(comparison.difference_high))
    if thresholds.min_raw_diff is not None:
        trivial |= np.abs(comparison.difference) < thresholds.min_raw_diff
        inside |= reach < thresholds.min_raw_diff
    if thresholds.min_raw_ratio is not None:
        names = ("mean_1", "mean_2") if "mean_1" in comparison.beside else ("rate_1", "rate_2")
        one, two = (comparison.beside[name] for name in names)
        larger, smaller = np.maximum(one, two), np.minimum(one, two)
        positive = (larger > 0) & (smaller >= 0)
        ratio = np.where(positive, smaller / np.where(positive, larger, 1.0), 0.0)
        trivial |= ratio >= thresholds.min_raw_ratio
        inside |= positive & (reach < (1 - thresholds.min_raw_ratio) * larger)
    return trivial, inside


def _near(comparison: Comparison, kind: OutcomeKind, favourable: float | None) -> tuple[Bools, Bools]:
    """Whether two rates are nearly equal, by their intervals and by their estimates."""
    nothing = np.zeros(comparison.p_value.size, dtype=np.bool_)
    if kind not in RATES or favourable is None:
        return nothing, nothing
    b = comparison.beside
    rates = [b["rate_1"], b["rate_2"]] if favourable == 1 else [1 - b["rate_1"], 1 - b["rate_2"]]
    return nearly_equal(
        rates[0], comparison.rows[:, 0], rates[1], comparison.rows[:, 1], b["design_effect"], comparison.df
    )


# ---------------------------------------------------------------- missing answers


def _with_missing(context: _Context, at: int, place: int, decision: Decision, family: Sequence[Floats]) -> Decision:
    """What stands where some trials have no outcome: bounds first, UNSCORED where they leave it open.

    With over 5 % unscored a finding stands if the imputation that is least favourable to it keeps significance and
    sign, by the milder of the two verdicts. A PASS with any unscored has to pass under both imputations.
    """
    member = context.members[at]
    pairs = all_pairs(len(member.labels))
    i, j = int(pairs.first[place]), int(pairs.second[place])
    if member.alarm_only or not (member.unscored[i] or member.unscored[j]):
        return decision
    share = member.unscored_share
    many = float(max(share[i], share[j]))
    lost = Decision(
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.UNSCORED,
        needs=f"an outcome for more {context.case_noun}: {percent(many)} of a group's have none, and what is missing "
        "could turn the verdict",
    )
    over = many > MAX_UNSCORED
    if decision.reason is Reason.RAGGED:
        return decision
    if member.imputed is None or decision.verdict is Verdict.INCONCLUSIVE:
        return lost if over else decision
    if decision.verdict is Verdict.PASS:
        worst = [_imputed(context, at, place, family, high) for high in (True, False)]
        if all(one[0].verdict is Verdict.PASS for one in worst):
            return decision
        if over:
            return lost
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.PRECISION,
            needs=f"an outcome for the {member.unscored[i] + member.unscored[j]} {context.case_noun} without one: at "
            "their worst they would turn the PASS",
        )
    if not over:
        return decision
    value = _sign(member.metric, place)
    # Least favourable to a difference: the higher group's missing outcomes are the lowest, and the other way round.
    least, sign, significant = _imputed(context, at, place, family, value < 0)
    if significant and value in (sign, 0.0) and least.verdict in ALARMS:
        return replace(
            milder(decision, least),
            notes=(
                *decision.notes,
                f"stands although {percent(many)} of a group's {context.case_noun} have no outcome: at their worst for "
                "it the difference remains",
            ),
        )
    return lost


def _imputed(
    context: _Context, at: int, place: int, family: Sequence[Floats], first_high: bool
) -> tuple[Decision, float, bool]:
    """The decision on one pair with its missing outcomes at the extremes, the sign found, and whether it is
    significant."""
    member = context.members[at]
    assert member.imputed is not None  # noqa: S101 - the caller looks
    pairs = all_pairs(len(member.labels))
    metric = member.imputed(int(pairs.first[place]), int(pairs.second[place]), first_high)
    p = family[at].copy()
    p[place] = metric.p_values[place]
    q = context.corrected([*family[:at], p, *family[at + 1 :]])[at]
    table = context.table(member, metric, p, q)
    return judge(table)[place], _sign(metric, place), bool(table.significant[place])


def _sign(metric: Metric, place: int) -> float:
    if metric.comparison is None or metric.index[place] < 0:
        return 0.0
    # Of two effects the rank's: the p-value is of ranks.
    return float(np.sign(metric.comparison.effects[-1].value[metric.index[place]]))


# ---------------------------------------------------------------- refusals


def _refused_unequally(
    member: Member, members: Sequence[Member], decisions: Sequence[Sequence[Decision]], family: Sequence[Floats]
) -> Bools:
    """Pairs whose refusals differ: judged FLAG or FAIL, or over five percentage points apart and likely so."""
    none = np.zeros(member.metric.p_values.size, dtype=np.bool_)
    if member.refusals is None:
        return none
    beside = members[member.refusals].metric
    if beside.comparison is None:
        return none
    gap = np.abs(beside.column(beside.comparison.beside["risk_difference"], 0.0))
    likely = family[member.refusals] * gap.size < LIKELY_REFUSAL_DIFFERENCE
    judged = np.array([decision.verdict in ALARMS for decision in decisions[member.refusals]], dtype=np.bool_)
    return np.asarray(judged | ((gap > MAX_REFUSAL_DIFFERENCE + 1e-12) & likely))


def _with_refusals(answered: Decision, worst_rank: Decision) -> Decision:
    """The decision on a pair whose refusals differ: the worse of that on the answers and that with worst ranks."""
    return worse(unless_refused(answered), worst_rank) if answered.reason is not Reason.UNSCORED else answered


def unless_refused(answered: Decision) -> Decision:
    """A PASS on the scores of those who got an answer says nothing where one group is refused more often."""
    if answered.verdict is not Verdict.PASS:
        return answered
    return Decision(
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.DIFFERENTIAL_REFUSAL,
        needs="find out why one group is refused more often; scores of answered trials cannot settle it",
    )


def _beside_worst_rank(answered: Metric, worst: Metric, flags: Bools) -> list[dict[str, float]]:
    """Both p-values of the pairs whose refusals differ."""
    return [
        {"complete_case_p_value": c, "worst_rank_p_value": w} if flag else {}
        for c, w, flag in zip(answered.p_values.tolist(), worst.p_values.tolist(), flags.tolist(), strict=True)
    ]
