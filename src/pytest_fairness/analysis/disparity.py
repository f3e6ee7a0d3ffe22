"""Does an outcome differ between the groups of a protected class, by more than chance and more than a
trifle?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.assembling import finding_of
from pytest_fairness.analysis.judging import judge_family
from pytest_fairness.analysis.members import Member, Thresholds
from pytest_fairness.analysis.reading import (
    Reading,
    as_columns,
    cluster_noun,
    count_by_group,
    every_grouping,
    read,
    scored_rows,
    unscored_share,
)
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Finding, GroupResult, OutcomeKind, PairResult
from pytest_fairness.statistics.corrections import METHODS
from pytest_fairness.statistics.frames import Bools, Design, Floats, read_design
from pytest_fairness.statistics.groups import describe_groups
from pytest_fairness.statistics.metrics import Metric, measure
from pytest_fairness.statistics.refusals import worst_rank
from pytest_fairness.verdict import (
    RECOMMENDED_CLUSTERS,
    RECOMMENDED_N,
    deciding_pair,
    verdict_by,
)
from pytest_fairness.wording import disparity_sentence, effect_words

if TYPE_CHECKING:
    import pandas as pd

REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class _Grouping:
    """One way of forming groups (a protected class, or an intersection), measured."""

    by: str
    design: Design
    score: Metric
    refusals: Metric | None
    members: tuple[Member, ...]
    results: Mapping[str, tuple[GroupResult, ...]]


def analyze_disparity(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any],
    by: str | Sequence[str],
    *,
    cluster: str | None = "name",
    block: str | None = "template",
    kind: str = "auto",
    alpha: float = 0.05,
    correction: str = "bonferroni",
    min_raw_diff: float | None = None,
    min_raw_ratio: float | None = None,
    lower_is_worse: bool | None = None,
    scorers: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Finding:
    """Compare *outcome* between all pairs of groups of *by*, as one family of tests.

    Args:
        frame: one row a trial. ``refused``, ``undetermined`` and ``repetition`` columns are read if present.
        outcome: a column, the name of a scorer, or a callable on the reply.
        by: the column of a protected class; or several, which are judged each by itself and crossed.
        cluster: the column of the name, persona or résumé that rows share, the unit of evidence; ``None`` if
            every row stands for itself.
        block: the column of the template or context; comparisons are made within it. ``None`` for one block.
        kind: ``numeric``, ``ordinal``, ``narrative``, ``binary``, ``categorical``, ``refusal``, or ``auto``.
        alpha, correction: the level, and ``bonferroni``, ``holm`` or ``fdr_bh`` over all pairs and metrics.
        min_raw_diff: a difference below this, in the outcome's unit, is never FLAG or FAIL.
        min_raw_ratio: nor is one where the smaller mean is at least this share of the larger.
        lower_is_worse: the direction of harm; by default the scorer's, or True.
        scorers: scorers to look the outcome up in, before the built-in ones.
        seed: for the resampling of categorical outcomes, and of nothing else.

    Raises:
        FrameError: a column or label is missing, trials are duplicated, an outcome has the wrong type, or
        there
            are fewer than two groups; the message names column and row.
        UsageError: an argument is out of range, or the outcome is unknown.
    """
    columns = as_columns(by)
    thresholds = _thresholds(alpha, correction, min_raw_diff, min_raw_ratio)
    reading = read(frame, outcome, kind, lower_is_worse, scorers)
    if reading.values.kind is OutcomeKind.CATEGORICAL and (min_raw_diff, min_raw_ratio) != (None, None):
        raise UsageError(f"{reading.name!r} holds labels: min_raw_diff and min_raw_ratio need numbers")
    groupings: list[_Grouping] = []
    offset = 0
    for chosen in every_grouping(columns):
        grouping = _measure(frame, chosen, reading, cluster, block, seed=seed, offset=offset)
        offset += len(grouping.members)
        groupings.append(grouping)
    noun = cluster_noun(groupings[0].design)
    pairs = judge_family([member for g in groupings for member in g.members], thresholds, noun)
    return _conclude(frame, groupings, pairs, reading, thresholds, columns, noun, kind)


def _thresholds(alpha: float, correction: str, min_raw_diff: float | None, min_raw_ratio: float | None) -> Thresholds:
    if not 0 < alpha < 1:
        raise UsageError(f"alpha={alpha!r}: give a level between 0 and 1, as .05")
    if correction not in METHODS:
        raise UsageError(f"correction={correction!r}: it is one of {', '.join(METHODS)}")
    if min_raw_diff is not None and not min_raw_diff >= 0:
        raise UsageError(f"min_raw_diff={min_raw_diff!r}: give a difference of 0 or more, in the outcome's unit")
    if min_raw_ratio is not None and not 0 < min_raw_ratio <= 1:
        raise UsageError(f"min_raw_ratio={min_raw_ratio!r}: give a ratio above 0 and up to 1, as .75")
    return Thresholds(alpha=alpha, correction=correction, min_raw_diff=min_raw_diff, min_raw_ratio=min_raw_ratio)


def _measure(
    frame: pd.DataFrame,
    by: tuple[str, ...],
    reading: Reading,
    cluster: str | None,
    block: str | None,
    *,
    seed: int,
    offset: int,
) -> _Grouping:
    """Measure the outcome, and refusals where there are any; *offset* is where the family stands."""
    design = read_design(frame, by, cluster=cluster, block=block)
    name, kind = " × ".join(by), reading.values.kind
    used = scored_rows(design, reading)
    score = measure(design, reading.values.values, used, kind, categories=len(reading.values.categories), seed=seed)
    share = unscored_share(design, reading, used)
    labels = design.group.labels
    refused, undetermined = (
        count_by_group(design, design.refused),
        count_by_group(design, design.undetermined),
    )
    results: dict[str, tuple[GroupResult, ...]] = {}

    def describe(metric: Metric, of_kind: OutcomeKind, missing: Floats) -> tuple[GroupResult, ...]:
        return describe_groups(
            labels,
            metric.layout,
            metric.present,
            of_kind,
            reading.values.categories,
            refused=refused,
            undetermined=undetermined,
            unscored=missing.astype(np.intp),
            has_refusals=design.has_refusals or kind is OutcomeKind.REFUSAL,
        )

    if kind is OutcomeKind.REFUSAL:
        yes = np.nan_to_num(reading.values.values) == 1
        refused = count_by_group(design, yes & used)
    lost = ~used & ~design.undetermined & (~design.refused if kind is not OutcomeKind.REFUSAL else True)
    results[reading.name] = describe(score, kind, count_by_group(design, lost).astype(np.float64))
    beside = kind is not OutcomeKind.REFUSAL and design.has_refusals and bool(np.any(design.refused))
    member = Member(
        name=reading.name,
        by=name,
        labels=labels,
        metric=score,
        unscored=share,
        lower_is_worse=reading.lower_is_worse,
        categories=reading.values.categories,
        refusals=offset + 1 if beside else None,
        worst_rank=(lambda: _worst_rank(design, reading, used, seed)) if beside else None,
    )
    if not beside:
        return _Grouping(name, design, score, None, (member,), results)
    determined = ~design.undetermined
    refusals = measure(design, design.refused.astype(np.float64), determined, OutcomeKind.REFUSAL)
    metric_name = REFUSAL if reading.name != REFUSAL else "refused"
    results[metric_name] = describe(refusals, OutcomeKind.REFUSAL, np.zeros(len(labels)))
    other = Member(
        name=metric_name,
        by=name,
        labels=labels,
        metric=refusals,
        unscored=np.zeros(len(labels)),
        lower_is_worse=False,
        accompanies=True,
    )
    return _Grouping(name, design, score, refusals, (member, other), results)


def _worst_rank(design: Design, reading: Reading, used: Bools, seed: int) -> Metric:
    """The outcome measured again with every refusal ranked worst."""
    refused = design.refused & ~design.undetermined
    values, kind, categories = worst_rank(
        reading.values.values,
        reading.values.kind,
        scored=used,
        refused=refused,
        lower_is_worse=reading.lower_is_worse,
        categories=len(reading.values.categories),
    )
    return measure(design, values, used | refused, kind, categories=categories, seed=seed)


def _conclude(
    frame: pd.DataFrame,
    groupings: Sequence[_Grouping],
    pairs: Sequence[PairResult],
    reading: Reading,
    thresholds: Thresholds,
    columns: tuple[str, ...],
    noun: str,
    asked_kind: str,
) -> Finding:
    decider = deciding_pair(pairs)
    verdict, reason = verdict_by(decider)
    kind = reading.values.kind
    home = next((g for g in groupings if decider is not None and g.by == decider.statistics["by"]), groupings[0])
    metric = decider.metric if decider is not None else reading.name
    decided_kind = kind if metric == reading.name else OutcomeKind.REFUSAL
    by_label = {group.group: group for group in home.results[metric]}
    groups = tuple(group for g in groupings for group in g.results[reading.name])
    sentence = disparity_sentence(
        verdict,
        reason,
        decider,
        by_label,
        kind=decided_kind,
        unit=reading.unit if decided_kind is kind else "",
        by=home.by,
        pairs=sum(1 for pair in pairs if pair.metric == metric and pair.statistics["by"] == home.by),
        clusters=noun,
    )
    design = groupings[0].design
    return finding_of(
        frame,
        assertion="no_disparity",
        verdict=verdict,
        reason=reason,
        sentence=sentence,
        by=", ".join(columns),
        groups=groups,
        decider=decider,
        test_statistic=_statistic(decider, home, metric),
        effect_size=_effect_size(decider),
        notes=_notes(groupings, reading, kind, noun),
        pairs=pairs,
        outcome=reading.name,
        kind=kind,
        unit=reading.unit,
        cluster=design.cluster_name,
        block=design.block_name,
        family={
            "size": len(pairs),
            "method": thresholds.correction,
            "alpha": thresholds.alpha,
            "metrics": list(dict.fromkeys(pair.metric for pair in pairs)),
        },
        details=_details(groupings, reading, asked_kind, thresholds),
    )


def _statistic(decider: PairResult | None, home: _Grouping, metric: str) -> str:
    if decider is None:
        return ""
    member = next(m for m in home.members if m.name == metric)
    comparison = member.metric.comparison
    if comparison is None:
        return ""
    name, values = comparison.statistic
    labels = member.labels
    first, second = labels.index(decider.group_1), labels.index(decider.group_2)
    place = first * (2 * len(labels) - first - 1) // 2 + second - first - 1
    at = int(member.metric.index[place])
    return f"{name} = {float(values[at]):.4f}" if at >= 0 else ""


def _effect_size(decider: PairResult | None) -> str:
    if decider is None:
        return ""
    low, high = effect_words(decider.effect_low), effect_words(decider.effect_high)
    return f"{decider.effect_name} = {effect_words(decider.effect)} (90 % interval {low} to {high})"


def _notes(groupings: Sequence[_Grouping], reading: Reading, kind: OutcomeKind, noun: str) -> tuple[str, ...]:
    notes: list[str] = []
    if reading.values.why is not None:
        notes.append(f"the kind of {reading.name} was taken to be {kind.value}: {reading.values.why}")
    for grouping in groupings:
        results = grouping.results[reading.name]
        if noun != "rows":
            few = [f"{g.group} ({g.clusters})" for g in results if 0 < g.clusters < RECOMMENDED_CLUSTERS]
            if few:
                notes.append(f"fewer than {RECOMMENDED_CLUSTERS} {noun} a group: {', '.join(few[:6])}")
        wanted = RECOMMENDED_N[kind]
        small = [f"{g.group} ({g.n_distinct})" for g in results if g.n_distinct < wanted]
        if small:
            notes.append(f"fewer than the recommended {wanted} distinct trials a group: {', '.join(small[:6])}")
        unknown = sum(g.undetermined for g in results)
        if unknown:
            notes.append(f"{unknown} trials were neither answered nor refused; they count as unscored")
        if grouping.score.copies_dropped:
            notes.append("repetitions that were all alike count once, for a group has one cluster only")
    return tuple(dict.fromkeys(notes))


def _details(
    groupings: Sequence[_Grouping], reading: Reading, asked_kind: str, thresholds: Thresholds
) -> dict[str, JSON]:
    details: dict[str, JSON] = {
        "kind": reading.values.kind.value,
        "kind_inferred": asked_kind == "auto" and reading.values.why is not None,
        "lower_is_worse": reading.lower_is_worse,
        "min_raw_diff": thresholds.min_raw_diff,
        "min_raw_ratio": thresholds.min_raw_ratio,
    }
    omnibus: dict[str, JSON] = {}
    for grouping in groupings:
        comparison = grouping.score.comparison
        if comparison is not None:
            omnibus[grouping.by] = dict(comparison.omnibus)
    details["omnibus"] = omnibus
    refusals: dict[str, JSON] = {}
    for grouping in groupings:
        for group in grouping.results.get(REFUSAL, ()):
            refusals[group.group] = {"rate": group.value, "low": group.low, "high": group.high, "n": group.n}
    if refusals:
        details["refusals"] = refusals
    return details
