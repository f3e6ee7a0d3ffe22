"""Are the groups treated alike, up to a margin? Absence of a difference is claimed here, so it has to be
shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.family import Thresholds, alarm_results, missing_member, unless_refused
from pytest_fairness.analysis.policy import (
    LIKELY_REFUSAL_DIFFERENCE,
    MAX_RAGGED,
    MAX_REFUSAL_DIFFERENCE,
    MAX_UNSCORED,
    MINIMUM_N,
    Decision,
    deciding_pair,
    verdict_by,
)
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.reading import (
    Reading,
    as_columns,
    case_noun,
    cluster_noun,
    count_by_group,
    read,
    reasons_by_group,
    scored_rows,
    unscored_rows,
)
from pytest_fairness.analysis.sentences import amount, effect_words, p_words, percent
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Finding, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arrays import Bools, Design, read_design
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.compare import Equivalence, Metric, describe_groups, impute, measure, two_one_sided
from pytest_fairness.statistics.corrections import METHODS, correct

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
    _check(margin, unit, alpha, correction)
    columns = as_columns(by)
    reading = read(frame, outcome, kind, lower_is_worse, scorers)
    if reading.values.kind is OutcomeKind.CATEGORICAL:
        raise UsageError(f"outcome {reading.name!r} is categorical: a margin needs numbers or yes and no")
    design = read_design(frame, columns, cluster=cluster, block=block)
    data = _Data(
        design, reading, scored_rows(design, reading), _Margin(margin, unit == "d", alpha, alarm_share * alpha)
    )
    metric = measure(design, reading.values.values, data.used, reading.values.kind)
    tests = data.test(metric)
    labels = design.group.labels
    noun, cases = cluster_noun(design), case_noun(frame)
    differences = np.ones(metric.index.size) if tests is None else metric.column(tests.p_difference, 1.0)
    missing = missing_member(design, " × ".join(columns), data.missing)
    family = [differences, *([] if missing is None else [missing.metric.p_values])]
    corrected = np.split(correct(np.concatenate(family), correction), [differences.size])
    size = sum(p.size for p in family)
    refused = _refused_unequally(design, reading.values.kind)
    every = all_pairs(len(labels))
    pairs = [
        _pair(data, metric, tests, at, (i, j), q, refused=refused[at], size=size, nouns=(noun, cases))
        for at, (i, j, q) in enumerate(
            zip(every.first.tolist(), every.second.tolist(), corrected[0].tolist(), strict=True)
        )
    ]
    if missing is not None:
        thresholds = Thresholds(alpha=alarm_share * alpha, correction=correction)
        pairs += alarm_results(missing, corrected[1], thresholds, size=size, cluster_noun=noun, case_noun=cases)
    decider = deciding_pair(pairs)
    verdict, reason = verdict_by(decider)
    if verdict is Verdict.PASS:
        decider = max((pair for pair in pairs if not pair.alarm_only), key=lambda pair: pair.p_value)
    groups = describe_groups(
        labels,
        metric.layout,
        metric.present,
        reading.values.kind,
        (),
        refused=count_by_group(design, design.refused),
        undetermined=count_by_group(design, design.undetermined),
        unscored=count_by_group(design, data.missing & ~design.undetermined),
        has_refusals=design.has_refusals,
    )
    own = [pair for pair in pairs if not pair.alarm_only]
    return finding_of(
        frame,
        assertion="equivalent",
        verdict=verdict,
        reason=reason,
        sentence=sentence(
            verdict, decider, reading, margin, unit, len(own), reasons_by_group(frame, design, data.missing)
        ),
        by=", ".join(columns),
        groups=groups,
        decider=decider,
        test_statistic="" if decider is None else f"TOST p = {decider.p_value:.4g}",
        effect_size="" if decider is None else f"d = {effect_words(decider.effect)}",
        pairs=pairs,
        outcome=reading.name,
        kind=reading.values.kind,
        unit=reading.unit,
        cluster=design.cluster_name,
        block=design.block_name,
        family={
            "size": size,
            "method": "none for equivalence (all pairs must show it); " + correction + " for differences",
            "alpha": alpha,
            "metrics": list(dict.fromkeys(pair.metric for pair in pairs)),
        },
        details={"margin": margin, "margin_unit": unit, "kind_inferred": reading.values.why},
    )


@dataclass(frozen=True, slots=True)
class _Margin:
    value: float
    on_d: bool
    alpha: float
    alarm: float


@dataclass(frozen=True, slots=True)
class _Data:
    """The rows, which of them are used, and the margin that they are tested against."""

    design: Design
    reading: Reading
    used: Bools
    margin: _Margin

    @property
    def missing(self) -> Bools:
        return unscored_rows(self.design, self.reading, self.used)

    def test(self, metric: Metric) -> Equivalence | None:
        if metric.comparison is None:
            return None
        return two_one_sided(metric.comparison, self.margin.value, on_d=self.margin.on_d, alpha=self.margin.alpha)

    def passes_at_worst(self, groups: tuple[int, int], place: int) -> bool:
        """Whether two groups are equivalent with what is missing at either extreme."""
        for first_high in (True, False):
            values = impute(
                self.reading.values.values,
                self.reading.values.kind,
                self.design.group.codes,
                groups,
                used=self.used,
                missing=self.missing,
                first_high=first_high,
                scale=(self.reading.low, self.reading.high),
            )
            here = np.isin(self.design.group.codes, groups) & (self.used | self.missing)
            metric = measure(self.design, values, here, self.reading.values.kind)
            tests, at = self.test(metric), int(metric.index[place])
            if tests is None or at < 0 or float(tests.p_tost[at]) >= self.margin.alpha:
                return False
        return True


def _refused_unequally(design: Design, kind: OutcomeKind) -> list[bool]:
    """Pairs whose refusals are over five points apart, and likely so."""
    pairs = all_pairs(len(design.group.labels))
    if kind is OutcomeKind.REFUSAL or not bool(np.any(design.refused)):
        return [False] * pairs.first.size
    metric = measure(design, design.refused.astype(np.float64), ~design.undetermined, OutcomeKind.REFUSAL)
    if metric.comparison is None:
        return [False] * pairs.first.size
    gap = np.abs(metric.column(metric.comparison.beside["risk_difference"], 0.0))
    likely = metric.p_values * pairs.first.size < LIKELY_REFUSAL_DIFFERENCE
    found: list[bool] = ((gap > MAX_REFUSAL_DIFFERENCE + 1e-12) & likely).tolist()
    return found


def _check(margin: float, unit: str, alpha: float, correction: str) -> None:
    if not (margin > 0 and math.isfinite(margin)):
        raise UsageError(f"margin={margin!r}: give the difference that would not matter, above 0")
    if unit not in UNITS:
        raise UsageError(f"unit={unit!r}: the margin is in 'outcome' (its own unit) or 'd' (standard deviations)")
    if not 0 < alpha < 0.5:
        raise UsageError(f"alpha={alpha!r}: give a level between 0 and .5, as .05")
    if correction not in METHODS:
        raise UsageError(f"correction={correction!r}: it is one of {', '.join(METHODS)}")


def _pair(
    data: _Data,
    metric: Metric,
    tests: Equivalence | None,
    at: int,
    groups: tuple[int, int],
    corrected: float,
    *,
    refused: bool,
    size: int,
    nouns: tuple[str, str],
) -> PairResult:
    labels, reading = data.design.group.labels, data.reading
    names = labels[groups[0]], labels[groups[1]]
    n = int(metric.trials[groups[0]]), int(metric.trials[groups[1]])
    clusters = int(metric.clusters[groups[0]]), int(metric.clusters[groups[1]])
    lost = count_by_group(data.design, data.missing)[list(groups)]
    share = float(np.max(lost / np.maximum(lost + np.array(n), 1)))
    comparison, place = metric.comparison, int(metric.index[at])
    if tests is None or comparison is None or place < 0:
        return PairResult(
            group_1=names[0],
            group_2=names[1],
            metric=reading.name,
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.UNSCORED if share > MAX_UNSCORED else Reason.N,
            needs=f"scored {nouns[1]} of both groups ({n[0]} and {n[1]} now)",
            statistics={"n_1": n[0], "n_2": n[1]},
        )
    single = bool(comparison.labels[place]) and data.design.cluster_name is not None
    evidence = Evidence(
        difference=float(comparison.difference[place]),
        low=float(tests.low[place]),
        high=float(tests.high[place]),
        margin=float(tests.margin[place]),
        p_tost=float(tests.p_tost[place]),
        p_value=float(tests.p_difference[place]),
        corrected=corrected,
        alpha=data.margin.alpha,
        alarm=data.margin.alarm,
        n=int(comparison.rows[place].min()) if single else min(n),
        units=min(n) if single or data.design.cluster_name is None else min(clusters),
        minimum=MINIMUM_N[metric.kind],
        single=single,
        ragged=float(comparison.ragged[place]),
        size=size,
        noun=nouns[1] if single or data.design.cluster_name is None else nouns[0],
        cases=nouns[1],
    )
    decision = judge(evidence)
    if refused:
        decision = unless_refused(decision)
    if lost.any() and (share > MAX_UNSCORED or decision.verdict is Verdict.PASS):
        held = decision.verdict is Verdict.PASS and data.passes_at_worst(groups, at)
        if not held:
            decision = Decision(
                verdict=Verdict.INCONCLUSIVE,
                reason=Reason.UNSCORED if share > MAX_UNSCORED else Reason.PRECISION,
                needs=f"an outcome for the {int(lost.sum())} {nouns[1]} without one: what is missing could turn the "
                "verdict",
            )
    worse_first = (evidence.difference < 0) == reading.lower_is_worse
    effect = comparison.effects[0]
    value, low, high = (float(ends[place]) for ends in (effect.value, effect.low, effect.high))
    shown = np.isfinite([low, high]).all() and low < value < high
    return PairResult(
        group_1=names[0],
        group_2=names[1],
        metric=reading.name,
        verdict=decision.verdict,
        reason=decision.reason,
        p_row=evidence.p_tost,
        p_cluster=None if single else evidence.p_tost,
        p_value=evidence.p_tost,
        corrected_p_value=evidence.p_tost,
        effect=value,
        effect_name=effect.name,
        effect_low=low if shown else None,
        effect_high=high if shown else None,
        difference=evidence.difference,
        worse_off=None if evidence.difference == 0 else names[0] if worse_first else names[1],
        test="two one-sided t on rows" if single else "two one-sided t on cluster means",
        scope="labels" if single else "names",
        needs=decision.needs,
        statistics={
            "n_1": n[0],
            "n_2": n[1],
            "clusters_1": clusters[0],
            "clusters_2": clusters[1],
            "margin": evidence.margin,
            "interval_low": evidence.low,
            "interval_high": evidence.high,
            "interval_confidence": 1 - 2 * data.margin.alpha,
            "standard_error": float(tests.error[place]),
            "df": float(tests.df[place]),
            "p_lower": float(tests.p_lower[place]),
            "p_upper": float(tests.p_upper[place]),
            "difference_p_value": evidence.p_value,
            "difference_corrected_p_value": corrected,
        },
        notes=decision.notes,
    )


# ---------------------------------------------------------------- equivalence rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the rule of :func:`analyze_equivalence` reads about two groups, in the outcome's own unit."""

    difference: float
    low: float
    high: float
    margin: float
    p_tost: float
    p_value: float
    corrected: float
    alpha: float
    alarm: float
    n: int
    units: int
    minimum: int
    single: bool
    ragged: float
    size: int
    noun: str
    cases: str


def judge(e: Evidence) -> Decision:
    """First match; see :func:`analyze_equivalence`."""
    if e.ragged > MAX_RAGGED:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.RAGGED,
            needs=f"every group in every block: {percent(e.ragged)} of the rows stand in blocks that lack a group",
        )
    significant = e.corrected < e.alarm
    beyond = abs(e.difference) > e.margin
    if e.n < e.minimum:
        verdict = Verdict.FLAG if significant and beyond and e.n >= 2 else Verdict.INCONCLUSIVE
        return Decision(
            verdict=verdict,
            reason=Reason.N if verdict is Verdict.INCONCLUSIVE else None,
            needs=f"at least {e.minimum} {e.cases} a group (now {e.n})",
        )
    if e.p_tost < e.alpha:
        return Decision(verdict=Verdict.PASS)
    if significant and beyond:
        note = ("a group has a single name: the result is about that one, so FAIL is capped at FLAG",)
        return Decision(verdict=Verdict.FLAG if e.single else Verdict.FAIL, notes=note if e.single else ())
    if significant:
        return Decision(verdict=Verdict.FLAG, notes=("the groups differ, perhaps by more than the margin",))
    return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.PRECISION, needs=_needed(e))


def _needed(e: Evidence) -> str | None:
    """The clusters a group with which the interval would fit, if the difference stays."""
    half, room = (e.high - e.low) / 2, e.margin - abs(e.difference)
    if not (math.isfinite(half) and room > 0):
        return None
    needed = max(math.ceil(e.units * (half / room) ** 2), e.units + 1)
    return (
        f"about {needed:,} {e.noun} a group if the difference stays as it is (now {e.units:,})"
        if needed < 1e7
        else None
    )


def sentence(
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
