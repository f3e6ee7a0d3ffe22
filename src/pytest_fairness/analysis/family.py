"""What is judged together: the metrics of one family over their groupings, and what the caller declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pytest_fairness.analysis.false_alarms import TEMPLATE_ALPHA
from pytest_fairness.analysis.policy import (
    LIKELY_REFUSAL_DIFFERENCE,
    MARGIN,
    MAX_REFUSAL_DIFFERENCE,
    MAX_UNSCORED,
    MINIMUM_N,
    Decision,
    PairTable,
    judge,
    milder,
    spec_verdict,
    worse,
)
from pytest_fairness.analysis.sentences import NO_ANSWER, percent
from pytest_fairness.model import ALARMS, JSON, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arrays import Bools, Design, Floats, Ints
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.compare import RATES, Metric, measure
from pytest_fairness.statistics.comparison import Comparison, Estimate
from pytest_fairness.statistics.corrections import correct, minimum_detectable_effect
from pytest_fairness.statistics.proportions import clustered_difference, nearly_equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What the caller set: alpha, the correction, and the smallest difference in the outcome's unit that counts."""

    alpha: float = 0.05
    correction: str = "bonferroni"
    min_raw_diff: float | None = None
    min_raw_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One metric of the family, over one grouping.

    ``unscored`` (length G) counts the trials of each group without an outcome, refusals apart. ``favourable`` is the
    value, 1 or 0, of the favourable answer of a yes/no outcome, None where that is not known. ``refusals`` is the place
    of the refusals beside this metric in the family; ``worst_rank`` measures the metric again with refusals ranked
    worst, and ``imputed(i, j, first_high)`` compares two groups with what is missing set to the extremes: of group *i*
    to the high one and of group *j* to the low one, or the other way round.
    """

    name: str
    by: str
    labels: tuple[str, ...]
    blocks: tuple[str, ...]
    metric: Metric
    unscored: Ints
    lower_is_worse: bool
    favourable: float | None = None
    categories: tuple[str, ...] = ()
    alarm_only: bool = False
    refusals: int | None = None
    worst_rank: Callable[[], Metric] | None = None
    imputed: Callable[[int, int, bool], Metric] | None = None

    @property
    def unscored_share(self) -> Floats:
        """Of each group's trials, refusals apart; 1 for a group without a usable answer (G)."""
        total = self.metric.trials + self.unscored
        return np.where(total > 0, self.unscored / np.maximum(total, 1), 0.0)


def missing_member(design: Design, by: str, missing: Bools) -> Member | None:
    """Missing outcomes as a metric of their own, which raises the alarm where one group has more; None without any."""
    if not bool(missing.any()):
        return None
    everyone = np.ones(design.rows, dtype=np.bool_)
    return Member(
        name=NO_ANSWER,
        by=by,
        labels=design.group.labels,
        blocks=design.block_labels,
        metric=measure(design, missing.astype(np.float64), everyone, OutcomeKind.REFUSAL),
        unscored=np.zeros(len(design.group.labels), dtype=np.intp),
        lower_is_worse=False,
        favourable=0.0,
        alarm_only=True,
    )


# ---------------------------------------------------------------- family


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


# ---------------------------------------------------------------- templates


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEffect:
    """Two groups within one block: rows of both, p, the effect with its 90 % interval (None where it has none), and
    whether that block by itself raises the alarm."""

    by: str
    group_1: str
    group_2: str
    block: str
    n_1: int
    n_2: int
    p_value: float
    effect: float
    effect_low: float | None
    effect_high: float | None
    alarm: bool

    def to_json(self) -> dict[str, JSON]:
        """The fields; all of them are plain."""
        return {name: getattr(self, name) for name in self.__slots__}


def judge_templates(
    member: Member, table: PairTable, thresholds: Thresholds
) -> tuple[list[BlockEffect], dict[int, str], dict[int, str]]:
    """Each block by itself: its effects; the pairs that one raises the alarm about, and those that one leaves open.

    p within the block, Holm over blocks × pairs at a fifth of alpha, and an effect above the margin: alarm. The same
    without the correction over pairs: doubt, which turns a PASS into INCONCLUSIVE(TEMPLATE).
    """
    metric = member.metric
    comparison = metric.comparison
    if comparison is None or comparison.strata is None or metric.layout is None:
        return [], {}, {}
    strata = comparison.strata
    level = thresholds.alpha * TEMPLATE_ALPHA
    places = np.full(comparison.p_value.size, -1)
    known = np.flatnonzero(metric.index >= 0)
    places[metric.index[known]] = known
    pair = places[strata.pair]
    value = strata.effects[0].value.copy()
    low, high = strata.effects[0].low.copy(), strata.effects[0].high.copy()
    for other in strata.effects[1:]:
        larger = np.abs(np.nan_to_num(other.value)) > np.abs(np.nan_to_num(value))
        value, low, high = (
            np.where(larger, new, old) for new, old in ((other.value, value), (other.low, low), (other.high, high))
        )
    # Blocks too small to raise the alarm are tests too: each counts with p = 1.
    count = metric.layout.count
    live = (np.minimum(count[comparison.pairs.first], count[comparison.pairs.second]) > 0).sum(axis=1)
    over_all = correct(strata.p_value, "holm", int(live.sum()))
    within = np.ones(strata.p_value.size)
    for one in np.unique(strata.pair).tolist():
        own = strata.pair == one
        within[own] = correct(strata.p_value[own], "holm", int(live[one]))
    large = (np.abs(np.nan_to_num(value)) > MARGIN) & ~_too_small(strata.means, thresholds)
    alarm, doubt = large & (over_all < level), large & (within < level)
    alarms: dict[int, str] = {}
    doubts: dict[int, str] = {}
    for at in np.argsort(strata.p_value, kind="stable").tolist():
        block = member.blocks[int(strata.block[at])]
        if alarm[at]:
            alarms.setdefault(int(pair[at]), block)
        if doubt[at]:
            doubts.setdefault(int(pair[at]), block)
    labels = member.labels
    effects = [
        BlockEffect(
            by=member.by,
            group_1=labels[int(table.first[place])],
            group_2=labels[int(table.second[place])],
            block=member.blocks[block],
            n_1=int(rows[0]),
            n_2=int(rows[1]),
            p_value=p,
            effect=effect,
            effect_low=lowest,
            effect_high=highest,
            alarm=bool(flag),
        )
        for place, block, rows, p, effect, lowest, highest, flag in zip(
            pair.tolist(),
            strata.block.tolist(),
            strata.rows.tolist(),
            strata.p_value.tolist(),
            value.tolist(),
            *shown(value, low, high),
            alarm.tolist(),
            strict=True,
        )
    ]
    return effects, alarms, doubts


def _too_small(means: Floats, thresholds: Thresholds) -> Bools:
    """Whether two means are less apart than the caller declared (T)."""
    small = np.zeros(len(means), dtype=np.bool_)
    if thresholds.min_raw_diff is not None:
        small |= np.abs(means[:, 0] - means[:, 1]) < thresholds.min_raw_diff
    if thresholds.min_raw_ratio is not None:
        smaller, larger = means.min(axis=1), means.max(axis=1)
        positive = (larger > 0) & (smaller >= 0)
        small |= positive & (smaller >= thresholds.min_raw_ratio * larger)
    return small


def with_templates(decision: Decision, alarm: str | None, doubt: str | None, noun: str) -> Decision:
    if alarm is not None and decision.reason not in (Reason.RAGGED, Reason.UNSCORED):
        note = f"{noun} {alarm!r} by itself raises the alarm: the groups differ there"
        if decision.verdict in ALARMS:
            return replace(decision, notes=(*decision.notes, note))
        return Decision(verdict=Verdict.FLAG, notes=(note,))
    if doubt is not None and decision.verdict is Verdict.PASS:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.TEMPLATE,
            needs=f"more names in {noun} {doubt!r}, where the groups may differ",
        )
    return decision


# ---------------------------------------------------------------- pair results


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
