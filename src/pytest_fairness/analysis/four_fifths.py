"""Does a protected group get the favourable decision at less than four fifths of the highest rate?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.analysis.family import Thresholds, alarm_results, missing_member
from pytest_fairness.analysis.policy import (
    MAX_RAGGED,
    MAX_UNSCORED,
    MINIMUM_N,
    Decision,
    deciding_pair,
    milder,
    spec_verdict,
    verdict_by,
)
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.reading import (
    as_columns,
    case_noun,
    cluster_noun,
    count_by_group,
    every_grouping,
    reasons_by_group,
)
from pytest_fairness.analysis.sentences import amount, interval_words, p_words, percent
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import ALARMS, JSON, Finding, GroupResult, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arrays import Bools, Design, Floats, read_design, require_frame, row_name
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.compare import Metric, describe_groups, measure
from pytest_fairness.statistics.comparison import Comparison, combine
from pytest_fairness.statistics.corrections import METHODS, correct
from pytest_fairness.statistics.proportions import (
    SMALLEST_SHARE,
    ImpactRatio,
    chance_of,
    deviations,
    impact_ratio,
    lower_first,
    reference_group,
)

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


# ---------------------------------------------------------------- decision tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One grouping: who got the favourable decision, and the tests of every pair.

    ``x`` of ``n`` decisions were favourable; who was refused got none and counts. ``unscored`` counts those without a
    decision, ``missing`` marks their rows. ``p`` is the p-value of every pair of groups, ``family`` the pairs corrected
    together and ``reported`` those with the reference, as places in the list of all pairs.
    """

    by: str
    design: Design
    metric: Metric
    labels: tuple[str, ...]
    x: list[int]
    n: list[int]
    p: Floats
    unscored: list[int]
    missing: Bools
    reference: int | None
    family: list[int]
    reported: list[int]
    groups: tuple[GroupResult, ...]

    def unscored_share(self, group: int) -> float:
        total = self.n[group] + self.unscored[group]
        return self.unscored[group] / total if total else 0.0


def read_decisions(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any],
    favourable: object,
    scorers: Mapping[str, Any] | None,
) -> tuple[str, Floats, Bools]:
    """The outcome's name, 1 where it is favourable, and where there is an outcome.

    Raises UsageError if *favourable* never occurs and the outcome is not yes or no, and FrameError for a value
    among yes and no that is neither: it would silently count as unfavourable.
    """
    from pytest_fairness.scorers import outcome_of

    found = outcome_of(frame, outcome, scorers)
    series = found.values
    present = ~series.isna().to_numpy()
    if callable(favourable):
        chosen = np.zeros(present.size)
        kept = series[present]
        chosen[present] = [float(bool(favourable(value))) for value in kept]
        return found.name, chosen, present
    many = isinstance(favourable, Collection) and not isinstance(favourable, str)
    wanted = list(favourable) if many and isinstance(favourable, Collection) else [favourable]
    yes = series.isin(wanted).to_numpy(dtype=np.bool_, na_value=False) & present
    if favourable is True and yes.any():
        _require_yes_or_no(frame, found.name, series.to_numpy(dtype=object), present)
    if not yes.any() and present.any():
        values = series[present].drop_duplicates().tolist()
        if any(value not in (0, 1) for value in values):
            seen = ", ".join(repr(value) for value in values[:8])
            raise UsageError(
                f"favourable={favourable!r} never occurs in {found.name!r}, which holds {seen}: name the value "
                "that is the favourable decision"
            )
    return found.name, yes.astype(np.float64), present


def _require_yes_or_no(frame: pd.DataFrame, name: str, values: NDArray[np.object_], present: Bools) -> None:
    for at in np.flatnonzero(present).tolist():
        if not isinstance(values[at], (bool, np.bool_, int, float, np.number)) or values[at] not in (0, 1):
            raise FrameError(
                f"column {name!r}, {row_name(frame, at)}: {values[at]!r} is neither True nor False; mend it, make it a "
                "missing value, or name the favourable decision with favourable=…"
            )


def tabulate(design: Design, yes: Floats, present: Bools, *, by: str, reference: str | None) -> Table:
    """Count and test; a refused applicant is not selected. Raises FrameError for a *reference* that is no group."""
    labels = design.group.labels
    refused = design.refused & ~design.undetermined
    used = (present & ~design.undetermined) | refused
    yes = np.where(refused, 0.0, yes)
    metric = measure(design, yes, used, OutcomeKind.BINARY)
    n = count_by_group(design, used).tolist()
    x = count_by_group(design, used & (yes == 1)).tolist()
    undetermined = count_by_group(design, design.undetermined)
    unscored = count_by_group(design, ~used)
    if reference is None:
        at = reference_group(x, n)
    elif reference in labels:
        at = labels.index(reference)
    else:
        raise FrameError(f"reference={reference!r} is no group of {by!r}; it has {', '.join(map(repr, labels))}")
    pairs = all_pairs(len(labels))
    both = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    reported = [place for place, pair in enumerate(both) if at is not None and at in pair]
    return Table(
        by=by,
        design=design,
        metric=metric,
        labels=labels,
        x=x,
        n=n,
        p=selection_p(metric),
        unscored=unscored.tolist(),
        missing=~used,
        reference=at,
        family=reported if reference is not None else list(range(len(both))),
        reported=reported,
        groups=describe_groups(
            labels,
            metric.layout,
            metric.present,
            OutcomeKind.BINARY,
            refused=count_by_group(design, refused),
            undetermined=undetermined,
            unscored=unscored - undetermined,
            has_refusals=design.has_refusals,
            refused_count=True,
        ),
    )


def selection_p(metric: Metric) -> Floats:
    """The p-value of every pair: of z, the difference in pooled standard deviations, where there is one block (Fisher's
    where few are expected), of Cochran–Mantel–Haenszel over several; and not below that of the clusters."""
    comparison = metric.comparison
    if comparison is None or metric.layout is None or metric.layout.blocks > 1:
        return metric.p_values
    exact = np.array([test.startswith("Fisher") for test in comparison.test], dtype=np.bool_)
    row = np.where(exact | comparison.labels, comparison.p_row, comparison.beside["spec_p_value"])
    return metric.column(combine(row, comparison.p_cluster), 1.0)


# ---------------------------------------------------------------- four fifths rule

LEAST_RATIO = 2 / 3
"""A PASS needs the lower end of the ratio's 90 % interval to reach this: four fifths of four fifths is .64."""


def decide(ratio: ImpactRatio, q: float, *, alpha: float, bare: bool, cases: str = "cases") -> Decision:
    """The rule: the ratio, significance after correction, and whether one decision more would turn it."""
    if bare:
        return Decision(verdict=Verdict.FAIL if ratio.below else Verdict.PASS)
    if ratio.x_high == 0:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.PRECISION,
            needs="favourable decisions in some group: without any there is no ratio",
        )
    if ratio.below:
        if q < alpha and not ratio.flip_flop:
            return Decision(verdict=Verdict.FAIL)
        why = "one decision more would turn it round" if ratio.flip_flop else "the difference is within chance"
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.SMALL_NUMBERS,
            needs=f"more {cases} in the smaller group",
            notes=(f"below four fifths, but {why}",),
        )
    if q < alpha:
        return Decision(verdict=Verdict.FLAG, notes=("at least four fifths, but the rates differ by more than chance",))
    fewest = min(ratio.n_low, ratio.n_high)
    if fewest < MINIMUM_N[OutcomeKind.BINARY]:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.PRECISION,
            needs=f"at least {MINIMUM_N[OutcomeKind.BINARY]} {cases} a group (now {fewest})",
        )
    if ratio.low_90 >= LEAST_RATIO:
        return Decision(verdict=Verdict.PASS)
    return Decision(
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.PRECISION,
        needs=f"more {cases}, until the interval of the ratio stays above two thirds",
        notes=("the interval reaches below two thirds",),
    )


def with_chance(decision: Decision, chance: float, cases: str) -> Decision:
    share = f"{100 * chance:.0f} %" if chance >= 0.005 else "under 1 %"
    note = f"equal treatment brings a ratio this low in {share} of audits with as many {cases}"
    return replace(decision, notes=(*decision.notes, note))


def capped(decision: Decision, comparison: Comparison | None, at: int) -> Decision:
    if decision.verdict is Verdict.FAIL and comparison is not None and comparison.labels[at]:
        note = "a group has a single name: the result is about that one, so FAIL is capped at FLAG"
        return replace(decision, verdict=Verdict.FLAG, notes=(*decision.notes, note))
    return decision


# ---------------------------------------------------------------- four fifths words


def four_fifths_sentence(
    verdict: Verdict,
    reason: Reason | None,
    decider: PairResult | None,
    *,
    by: str,
    clusters: str,
    cases: str = "cases",
    missing: Mapping[str, str] | None = None,
) -> str:
    """Who gets the favourable decision how often, the ratio, and how sure that is."""
    if decider is not None and decider.alarm_only:
        worse = decider.worse_off or decider.group_1
        share = decider.statistics.get("rate_1" if worse == decider.group_1 else "rate_2")
        rate = amount(float(share), OutcomeKind.BINARY) if isinstance(share, (int, float)) else "many"
        why = (missing or {}).get(worse, "")
        sure = f"{interval_words(decider, of=worse)}, corrected {p_words(decider.corrected_p_value)}"
        return (
            f"{verdict}: {worse} is left without a decision in {rate} of {cases}{f': {why}' if why else ''} ({sure})."
        )
    if decider is None or "impact_ratio" not in decider.statistics:
        needs = f": it would take {decider.needs}" if decider is not None and decider.needs else ""
        return f"{verdict}: there are no two groups of {by} with decisions to compare{needs}."
    s = {name: float(value) if isinstance(value, (int, float)) else 0.0 for name, value in decider.statistics.items()}
    first = decider.worse_off != decider.group_2
    worse, better = (decider.group_1, decider.group_2) if first else (decider.group_2, decider.group_1)
    low, high = ("1", "2") if first else ("2", "1")
    if s["rate_1"] == s["rate_2"] == 0:
        return f"{verdict}: no group of {by} is favoured on {decider.metric} at all, so there is no ratio."
    told = [
        f"{100 * s[f'rate_{at}']:.1f} % ({s[f'favourable_{at}']:,.0f} of {s[f'n_{at}']:,.0f})" for at in (low, high)
    ]
    rates = (
        f"the favourable rate of {worse} on {decider.metric} is {told[0]}, that of {better} {told[1]}: an impact "
        f"ratio of {s['impact_ratio']:.2f}"
    )
    sure = f"corrected {p_words(decider.corrected_p_value)}"
    if s["impact_ratio_90_low"] < s["impact_ratio"] < s["impact_ratio_90_high"]:
        sure = f"90 % interval {s['impact_ratio_90_low']:.2f} to {s['impact_ratio_90_high']:.2f}, {sure}"
    side = "below four fifths" if decider.statistics["below_four_fifths"] is True else "at least four fifths"
    if verdict is Verdict.FLAG and side.startswith("at least"):
        side += ", but apart by more than chance"
    text = f"{verdict}: {rates}, {side} ({sure})"
    if verdict is Verdict.PASS:
        return f"{text}; no two groups of {by} are further apart."
    if verdict is Verdict.INCONCLUSIVE:
        because = {
            Reason.SMALL_NUMBERS: "; ".join(decider.notes).removeprefix("below four fifths, but ")
            or "the numbers are too small to tell",
            Reason.PRECISION: "; ".join(decider.notes),
            Reason.UNSCORED: f"too many {cases} have no decision",
        }.get(reason or Reason.N, "")
        needs = f"it would take {decider.needs}" if decider.needs else ""
        return f"{text}; " + "; ".join(part for part in (because, needs) if part) + "."
    lack = f"; at equal rates {worse} would have {s['shortfall']:.1f} more" if s["shortfall"] >= 0.05 else ""
    basis = "" if clusters == "rows" else f"; judged with {clusters} as the unit"
    return f"{text}{lack}{basis}."


def effect_size(decider: PairResult) -> str:
    if "impact_ratio" not in decider.statistics:
        return ""
    ratio, low, high = (
        number(decider.statistics[name]) for name in ("impact_ratio", "impact_ratio_low", "impact_ratio_high")
    )
    return f"impact ratio = {ratio:.3f} (95 % interval {low:.3f} to {high:.3f})"


def number(value: JSON) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def notes(tables: Sequence[Table], bare: bool, missing: Mapping[str, str], cases: str) -> tuple[str, ...]:
    notes = []
    if bare:
        notes.append(
            "judged by the bare ratio: with few decisions it falls below four fifths by chance alone (for four "
            "groups of 100 and a rate of one half, in about 40 % of fair audits)"
        )
    if missing:
        lost = sum(tables[0].unscored)
        why = "; ".join(f"{group}: {words}" for group, words in list(missing.items())[:4])
        notes.append(f"{lost} {cases} have no decision ({why})")
    for table in tables:
        if table.reference is None:
            continue
        total = sum(table.n)
        tiny = [label for label, n in zip(table.labels, table.n, strict=True) if 0 < n < SMALLEST_SHARE * total]
        if tiny:
            notes.append(f"under 2 % of the data, so never the reference: {', '.join(tiny)}")
        if table.metric.copies_dropped:
            notes.append("repetitions with the same text count once in the tests, for a group has one cluster only")
    return tuple(dict.fromkeys(notes))


def details(tables: Sequence[Table], declared: bool, bare: bool) -> dict[str, JSON]:
    references: dict[str, JSON] = {
        table.by: None if table.reference is None else table.labels[table.reference] for table in tables
    }
    return {
        "reference": references,
        "reference_declared": declared,
        "mode": "bare ratio" if bare else "ratio with significance and flip-flop",
    }
