"""Are the groups treated alike, up to a margin? Absence of a difference is claimed here, so it has to be
shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.assembling import finding_of
from pytest_fairness.analysis.reading import (
    as_columns,
    cluster_noun,
    count_by_group,
    read,
    scored_rows,
    unscored_share,
)
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Finding, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.corrections import METHODS, correct
from pytest_fairness.statistics.equivalence import Equivalence, two_one_sided
from pytest_fairness.statistics.frames import read_design
from pytest_fairness.statistics.groups import describe_groups
from pytest_fairness.statistics.layout import without_copies
from pytest_fairness.statistics.metrics import Metric, measure
from pytest_fairness.verdict import (
    MAX_RAGGED,
    MAX_REFUSAL_DIFFERENCE,
    MAX_UNSCORED,
    MINIMUM_N,
    Decision,
    PairEvidence,
    after_refusals,
    as_spec,
    assertion_verdict,
    deciding_pair,
    needed_size,
)
from pytest_fairness.wording import amount, effect_words, p_words

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

    Raises FrameError for a table of the wrong shape and UsageError for an argument out of range or a
    categorical outcome.
    """
    _check(margin, unit, alpha, correction)
    columns = as_columns(by)
    reading = read(frame, outcome, kind, lower_is_worse, scorers)
    kind_found = reading.values.kind
    if kind_found is OutcomeKind.CATEGORICAL:
        raise UsageError(f"outcome {reading.name!r} is categorical: a margin needs numbers or yes and no")
    design = read_design(frame, columns, cluster=cluster, block=block)
    used = scored_rows(design, reading)
    metric = measure(design, reading.values.values, used, kind_found)
    tests = _test(metric, margin, unit, alpha)
    labels = design.group.labels
    unscored = unscored_share(design, reading, used)
    noun = cluster_noun(design)
    refusals = count_by_group(design, design.refused) / np.maximum(count_by_group(design, ~design.undetermined), 1)
    corrected = correct(_padded(metric, tests.p_difference if tests else None, 1.0), correction).tolist()
    pairs = []
    every = all_pairs(len(labels))
    for at, (i, j) in enumerate(zip(every.first.tolist(), every.second.tolist(), strict=True)):
        place = int(metric.index[at])
        pairs.append(
            _pair(
                metric,
                tests,
                place,
                names=(labels[i], labels[j]),
                n=(int(metric.distinct[i]), int(metric.distinct[j])),
                clusters=(int(metric.clusters[i]), int(metric.clusters[j])),
                unscored=float(max(unscored[i], unscored[j])),
                refusal_gap=float(abs(refusals[i] - refusals[j])) if kind_found is not OutcomeKind.REFUSAL else 0.0,
                corrected=corrected[at],
                outcome=reading.name,
                lower_is_worse=reading.lower_is_worse,
                alpha=alpha,
                family=len(labels) * (len(labels) - 1) // 2,
                noun=noun,
            )
        )
    verdict, reason = assertion_verdict(pairs)
    decider = deciding_pair(pairs)
    if verdict is Verdict.PASS:
        decider = max(pairs, key=lambda pair: pair.p_value)
    groups = describe_groups(
        labels,
        metric.layout,
        metric.present,
        kind_found,
        (),
        refused=count_by_group(design, design.refused),
        undetermined=count_by_group(design, design.undetermined),
        unscored=count_by_group(design, ~used & ~design.refused & ~design.undetermined),
        has_refusals=design.has_refusals,
    )
    return finding_of(
        frame,
        assertion="equivalent",
        verdict=verdict,
        reason=reason,
        sentence=_sentence(verdict, decider, reading.unit, kind_found, margin, unit, len(pairs)),
        by=", ".join(columns),
        groups=groups,
        decider=decider,
        test_statistic="" if decider is None else f"TOST p = {decider.p_value:.4g}",
        effect_size="" if decider is None else f"d = {effect_words(decider.effect)}",
        pairs=pairs,
        outcome=reading.name,
        kind=kind_found,
        unit=reading.unit,
        cluster=design.cluster_name,
        block=design.block_name,
        family={
            "size": len(pairs),
            "method": "none for equivalence (all pairs must show it); " + correction + " for differences",
            "alpha": alpha,
            "metrics": [reading.name],
        },
        details={"margin": margin, "margin_unit": unit, "kind_inferred": reading.values.why},
    )


def _check(margin: float, unit: str, alpha: float, correction: str) -> None:
    if not (margin > 0 and math.isfinite(margin)):
        raise UsageError(f"margin={margin!r}: give the difference that would not matter, above 0")
    if unit not in UNITS:
        raise UsageError(f"unit={unit!r}: the margin is in 'outcome' (its own unit) or 'd' (standard deviations)")
    if not 0 < alpha < 0.5:
        raise UsageError(f"alpha={alpha!r}: give a level between 0 and .5, as .05")
    if correction not in METHODS:
        raise UsageError(f"correction={correction!r}: it is one of {', '.join(METHODS)}")


def _test(metric: Metric, margin: float, unit: str, alpha: float) -> Equivalence | None:
    layout = metric.layout
    if layout is None or metric.present.size < 2:
        return None
    # Copies of one reply are no evidence; with one cluster a group nothing else would notice.
    compared = (without_copies(layout) if metric.copies_dropped else None) or layout
    return two_one_sided(compared, all_pairs(metric.present.size), margin, on_d=unit == "d", alpha=alpha)


def _padded(metric: Metric, values: np.ndarray[Any, np.dtype[np.float64]] | None, missing: float) -> list[float]:
    if values is None:
        return [missing] * metric.index.size
    padded: list[float] = metric.column(values, missing).tolist()
    return padded


def _pair(
    metric: Metric,
    tests: Equivalence | None,
    place: int,
    *,
    names: tuple[str, str],
    n: tuple[int, int],
    clusters: tuple[int, int],
    unscored: float,
    refusal_gap: float,
    corrected: float,
    outcome: str,
    lower_is_worse: bool,
    alpha: float,
    family: int,
    noun: str,
) -> PairResult:
    comparison = metric.comparison
    if tests is None or comparison is None or place < 0:
        return PairResult(
            group_1=names[0],
            group_2=names[1],
            metric=outcome,
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.UNSCORED if unscored > MAX_UNSCORED else Reason.N,
            needs=f"scored trials of both groups ({n[0]} and {n[1]} now)",
            statistics={"n_1": n[0], "n_2": n[1]},
        )
    difference, margin = float(tests.difference[place]), float(tests.margin[place])
    scope = "labels" if bool(tests.labels[place]) else "names"
    evidence = PairEvidence(
        effect=difference,
        low=float(tests.low[place]),
        high=float(tests.high[place]),
        p_value=float(tests.p_difference[place]),
        corrected=corrected,
        n=n,
        clusters=clusters,
        minimum=MINIMUM_N[metric.kind],
        scope=scope,
        alpha=alpha,
        margin=margin,
        family_size=family,
        unscored=unscored,
        ragged=float(comparison.ragged[place]),
        groups=names,
        cluster_noun=noun,
    )
    p_tost = float(tests.p_tost[place])
    decision = after_refusals(_judge(evidence, p_tost), differential=refusal_gap > MAX_REFUSAL_DIFFERENCE + 1e-12)
    worse_first = (difference < 0) == lower_is_worse
    return PairResult(
        group_1=names[0],
        group_2=names[1],
        metric=outcome,
        verdict=decision.verdict,
        reason=decision.reason,
        spec_verdict=as_spec(decision.verdict),
        p_row=p_tost,
        p_cluster=None if scope == "labels" else p_tost,
        p_value=p_tost,
        corrected_p_value=p_tost,
        effect=float(comparison.effect[place]),
        effect_name=comparison.effect_name,
        effect_low=float(comparison.low[place]),
        effect_high=float(comparison.high[place]),
        difference=difference,
        worse_off=None if difference == 0 else names[0] if worse_first else names[1],
        test="two one-sided t on rows" if scope == "labels" else "two one-sided t on cluster means",
        scope=scope,
        needs=decision.needs,
        statistics={
            "n_1": n[0],
            "n_2": n[1],
            "clusters_1": clusters[0],
            "clusters_2": clusters[1],
            "margin": margin,
            "interval_low": evidence.low,
            "interval_high": evidence.high,
            "interval_confidence": 1 - 2 * alpha,
            "standard_error": float(tests.error[place]),
            "df": float(tests.df[place]),
            "p_lower": float(tests.p_lower[place]),
            "p_upper": float(tests.p_upper[place]),
            "difference_p_value": evidence.p_value,
            "difference_corrected_p_value": corrected,
        },
        notes=decision.notes,
    )


def _judge(e: PairEvidence, p_tost: float) -> Decision:
    """First match; see :func:`analyze_equivalence`."""
    if e.unscored > MAX_UNSCORED:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.UNSCORED,
            needs=f"fewer unscored replies: {e.unscored:.0%} of those of a group have no outcome, at most 5 % may",
        )
    if e.ragged > MAX_RAGGED:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.RAGGED,
            needs=f"every group in every block: {e.ragged:.0%} of the rows stand in blocks that lack a group",
        )
    significant = e.corrected < e.alpha
    beyond = abs(e.effect) > e.margin
    if min(e.n) < e.minimum:
        verdict = Verdict.FLAG if significant and beyond and min(e.n) >= 2 else Verdict.INCONCLUSIVE
        return Decision(
            verdict=verdict,
            reason=Reason.N if verdict is Verdict.INCONCLUSIVE else None,
            needs=f"at least {e.minimum} distinct trials a group (now {min(e.n)})",
        )
    if p_tost < e.alpha:
        return Decision(verdict=Verdict.PASS)
    if significant and beyond:
        capped = e.scope == "labels"
        note = ("a group has a single name: the result is about that one, so FAIL is capped at FLAG",)
        return Decision(verdict=Verdict.FLAG if capped else Verdict.FAIL, notes=note if capped else ())
    if significant:
        return Decision(verdict=Verdict.FLAG, notes=("the groups differ, perhaps by more than the margin",))
    return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.PRECISION, needs=needed_size(e))


def _sentence(
    verdict: Verdict,
    pair: PairResult | None,
    own_unit: str,
    kind: OutcomeKind,
    margin: float,
    unit: str,
    pairs: int,
) -> str:
    if pair is None:
        return f"{verdict}: there are no two groups to compare."
    if "margin" not in pair.statistics or pair.reason in (Reason.RAGGED, Reason.UNSCORED):
        return (
            f"{verdict}: {pair.group_1} and {pair.group_2} cannot be compared on {pair.metric}; it takes {pair.needs}."
        )
    low, high = (float(str(pair.statistics[name])) for name in ("interval_low", "interval_high"))
    allowed = f"{margin:g} d" if unit == "d" else amount(margin, kind, own_unit)
    confidence = f"{100 * float(str(pair.statistics['interval_confidence'])):.0f} %"
    gap = f"{pair.group_1} and {pair.group_2} differ on {pair.metric} by {amount(pair.difference, kind, own_unit)}"
    sure = f"{confidence} interval {amount(low, kind)} to {amount(high, kind)}, TOST {p_words(pair.p_value)}"
    if verdict is Verdict.PASS:
        count = "the two groups" if pairs == 1 else f"all {pairs} pairs of groups"
        return f"PASS: {count} are equivalent within ±{allowed}; the widest apart: {gap} ({sure})."
    if verdict is Verdict.INCONCLUSIVE:
        if pair.reason is Reason.DIFFERENTIAL_REFUSAL:
            return f"INCONCLUSIVE: {gap}, within ±{allowed}, but are not refused equally often ({sure})."
        needs = f"; it would take {pair.needs}" if pair.needs else ""
        return f"INCONCLUSIVE: {gap}; equivalence within ±{allowed} is not shown ({sure}){needs}."
    return f"{verdict}: {gap}, where ±{allowed} would not matter ({sure})."
