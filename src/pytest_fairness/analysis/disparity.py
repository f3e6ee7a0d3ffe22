"""Does an outcome differ between the groups of a protected class, by more than chance and more than a trifle?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.family import BlockEffect, Family, Member, Thresholds, judge_family, missing_member
from pytest_fairness.analysis.policy import RECOMMENDED_CLUSTERS, RECOMMENDED_N, deciding_pair, verdict_by
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.reading import (
    Reading,
    as_columns,
    case_noun,
    cluster_noun,
    count_by_group,
    every_grouping,
    first_reasons,
    read,
    scored_rows,
    unscored_rows,
)
from pytest_fairness.analysis.sentences import NO_ANSWER, REFUSAL, Subject, disparity_sentence, effect_words
from pytest_fairness.errors import UsageError
from pytest_fairness.model import ALARMS, JSON, Finding, GroupResult, OutcomeKind, PairResult
from pytest_fairness.statistics.arrays import Bools, Design, read_design, row_name
from pytest_fairness.statistics.compare import Metric, describe_groups, impute, measure, turning_rows, worst_rank
from pytest_fairness.statistics.corrections import METHODS

if TYPE_CHECKING:
    import pandas as pd


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
    favourable: object = None,
    scorers: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Finding:
    """Compare *outcome* between all pairs of groups of *by*, as one family of tests.

    Args:
        frame: one row a trial. ``refused``, ``undetermined``, ``repetition``, ``first_name`` and ``last_name`` columns
            are read if present.
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
        favourable: of two answers the favourable one; by default known from words such as yes, approved, hired.
        scorers: scorers to look the outcome up in, before the built-in ones.
        seed: for the resampling of categorical outcomes, and of nothing else.

    Raises:
        FrameError: a column or label is missing, trials are duplicated, an outcome has the wrong type, or there are
            fewer than two groups; the message names column and row.
        UsageError: an argument is out of range, or the outcome is unknown.
    """
    columns = as_columns(by)
    thresholds = _thresholds(alpha, correction, min_raw_diff, min_raw_ratio)
    reading = read(frame, outcome, kind, lower_is_worse, scorers, favourable)
    if reading.values.kind is OutcomeKind.CATEGORICAL and (min_raw_diff, min_raw_ratio) != (None, None):
        raise UsageError(f"{reading.name!r} holds labels: min_raw_diff and min_raw_ratio need numbers")
    groupings: list[Grouping] = []
    offset = 0
    for chosen in every_grouping(columns):
        grouping = _measure(frame, chosen, reading, cluster, block, seed=seed, offset=offset)
        offset += len(grouping.members)
        groupings.append(grouping)
    design = groupings[0].design
    noun, cases, blocks = cluster_noun(design), case_noun(frame), _block_noun(design)
    family = judge_family(
        [member for g in groupings for member in g.members],
        thresholds,
        cluster_noun=noun,
        case_noun=cases,
        block_noun=blocks,
    )
    return _conclude(frame, groupings, family, reading, thresholds, columns, (noun, cases, blocks), kind)


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


def _block_noun(design: Design) -> str:
    return "block" if design.block_name is None else design.block_name.replace("_", " ")


def _measure(
    frame: pd.DataFrame,
    by: tuple[str, ...],
    reading: Reading,
    cluster: str | None,
    block: str | None,
    *,
    seed: int,
    offset: int,
) -> Grouping:
    """Measure the outcome, and beside it refusals and missing answers where there are any; *offset* is where the
    family stands."""
    design = read_design(frame, by, cluster=cluster, block=block)
    name, kind, values = " × ".join(by), reading.values.kind, reading.values
    used = scored_rows(design, reading)
    missing = unscored_rows(design, reading, used)
    score = measure(design, values.values, used, kind, categories=len(values.categories), seed=seed)
    labels = design.group.labels
    refusing = kind is OutcomeKind.REFUSAL
    refused = np.nan_to_num(values.values) == 1 if refusing else design.refused
    counts = {
        "refused": count_by_group(design, refused & used if refusing else refused),
        "undetermined": count_by_group(design, design.undetermined),
        "unscored": count_by_group(design, missing & ~design.undetermined),
    }

    def describe(metric: Metric, of_kind: OutcomeKind) -> tuple[GroupResult, ...]:
        return describe_groups(
            labels,
            metric.layout,
            metric.present,
            of_kind,
            values.categories,
            refused=counts["refused"],
            undetermined=counts["undetermined"],
            unscored=counts["unscored"],
            has_refusals=design.has_refusals or refusing,
        )

    results = {reading.name: describe(score, kind)}
    beside: list[Member] = []
    if not refusing and bool(np.any(design.refused)):
        beside.append(
            Member(
                name=REFUSAL if reading.name != REFUSAL else "refused",
                by=name,
                labels=labels,
                blocks=design.block_labels,
                metric=measure(design, design.refused.astype(np.float64), ~design.undetermined, OutcomeKind.REFUSAL),
                unscored=np.zeros(len(labels), dtype=np.intp),
                lower_is_worse=False,
                favourable=0.0,
                alarm_only=True,
            )
        )
    with_refusals = bool(beside)
    lost = missing_member(design, name, missing)
    if lost is not None:
        beside.append(lost)
    own = Member(
        name=reading.name,
        by=name,
        labels=labels,
        blocks=design.block_labels,
        metric=score,
        unscored=count_by_group(design, missing),
        lower_is_worse=reading.lower_is_worse,
        favourable=reading.favourable,
        categories=values.categories,
        refusals=offset + 1 if with_refusals else None,
        worst_rank=(lambda: _worst_rank(design, reading, used, seed)) if with_refusals else None,
        imputed=lambda i, j, high: _imputed(design, reading, used, missing, (i, j), high, seed),
    )
    for member in beside:
        results[member.name] = describe(member.metric, OutcomeKind.REFUSAL)
    return Grouping(name, design, used, (own, *beside), results)


def _worst_rank(design: Design, reading: Reading, used: Bools, seed: int) -> Metric:
    """The outcome measured again with every refusal ranked worst."""
    refused = design.refused & ~design.undetermined
    unknown = reading.values.kind is OutcomeKind.BINARY and reading.favourable is None
    values, kind, categories = worst_rank(
        reading.values.values,
        OutcomeKind.CATEGORICAL if unknown else reading.values.kind,
        scored=used,
        refused=refused,
        lower_is_worse=reading.lower_is_worse,
        categories=len(reading.values.categories),
    )
    return measure(design, values, used | refused, kind, categories=categories, seed=seed)


def _imputed(
    design: Design, reading: Reading, used: Bools, missing: Bools, groups: tuple[int, int], first_high: bool, seed: int
) -> Metric:
    """Two groups compared with what is missing at the extremes."""
    values = impute(
        reading.values.values,
        reading.values.kind,
        design.group.codes,
        groups,
        used=used,
        missing=missing,
        first_high=first_high,
        scale=(reading.low, reading.high),
    )
    here = np.isin(design.group.codes, groups) & (used | missing)
    return measure(design, values, here, reading.values.kind, categories=len(reading.values.categories), seed=seed)


def _conclude(
    frame: pd.DataFrame,
    groupings: Sequence[Grouping],
    family: Family,
    reading: Reading,
    thresholds: Thresholds,
    columns: tuple[str, ...],
    nouns: tuple[str, str, str],
    asked_kind: str,
) -> Finding:
    pairs, kind = family.pairs, reading.values.kind
    decider = deciding_pair(pairs)
    verdict, reason = verdict_by(decider)
    home = next((g for g in groupings if decider is not None and g.by == decider.statistics["by"]), groupings[0])
    alarms = sorted(
        (pair for pair in pairs if pair.alarm_only and pair.verdict in ALARMS and pair.statistics["by"] == home.by),
        key=lambda pair: (-pair.verdict.severity, pair.corrected_p_value),
    )
    own = [pair for pair in pairs if pair.metric == reading.name and pair.statistics["by"] == home.by]
    subject = Subject(
        outcome=reading.name,
        kind=kind,
        unit=reading.unit,
        by=home.by,
        pairs=len(own),
        clusters=nouns[0],
        cases=nouns[1],
        block=nouns[2],
        groups={name: {group.group: group for group in results} for name, results in home.results.items()},
        answers=reading.values.categories if kind is OutcomeKind.BINARY else (),
        missing=first_reasons(frame, home.design, reading, home.used),
        raised=[pair for pair in own if pair.verdict in ALARMS],
        turning=turning(frame, home, reading, decider),
        in_block=in_block(family, decider, reading, nouns[2]),
    )
    design = groupings[0].design
    return finding_of(
        frame,
        assertion="no_disparity",
        verdict=verdict,
        reason=reason,
        sentence=disparity_sentence(verdict, reason, decider, alarms, subject),
        by=", ".join(columns),
        groups=tuple(group for g in groupings for group in g.results[reading.name]),
        decider=decider,
        test_statistic=statistic(decider, home),
        effect_size=effect_size(decider),
        notes=notes(groupings, reading, kind, nouns, subject.missing),
        pairs=pairs,
        outcome=reading.name,
        kind=kind,
        unit=reading.unit,
        cluster=design.cluster_name,
        block=design.block_name,
        family={
            "size": family.size,
            "method": thresholds.correction,
            "alpha": thresholds.alpha,
            "metrics": list(dict.fromkeys(pair.metric for pair in pairs)),
        },
        details=details(groupings, reading, asked_kind, thresholds, family.blocks),
    )


# ---------------------------------------------------------------- disparity details

MOST_BLOCK_EFFECTS = 2_000
"""Effects within blocks that a finding carries; those of the pairs with the smallest p first."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """One way of forming groups (a protected class, or an intersection), measured."""

    by: str
    design: Design
    used: Bools
    members: tuple[Member, ...]
    results: Mapping[str, tuple[GroupResult, ...]]


def in_block(family: Family, decider: PairResult | None, reading: Reading, noun: str) -> str:
    """Which block raises the alarm about the decider by itself, and how; empty where none does."""
    found = [
        one
        for one in family.blocks
        if decider is not None
        and one.alarm
        and (one.by, one.group_1, one.group_2) == (decider.statistics["by"], decider.group_1, decider.group_2)
    ]
    if not found or decider is None:
        return ""
    one = min(found, key=lambda block: block.p_value)
    told, sign = f"{one.group_1} and {one.group_2} differ", 1.0
    if decider.worse_off is not None:
        first = (one.effect < 0) == reading.lower_is_worse
        worse, better = (one.group_1, one.group_2) if first else (one.group_2, one.group_1)
        told = f"{worse} is worse off than {better}"
        sign = 1.0 if first else -1.0
    low, high = one.effect_low, one.effect_high
    sure = f"d = {effect_words(sign * one.effect)}"
    if low is not None and high is not None:
        ends = sorted((sign * low, sign * high))
        sure += f", 90 % interval {effect_words(ends[0])} to {effect_words(ends[1])}"
    return f"in {noun} {one.block!r} by itself {told} on {reading.name} ({sure})"


def turning(frame: pd.DataFrame, home: Grouping, reading: Reading, decider: PairResult | None) -> str:
    """Which rows turn the mean of a pair round whose ranks say the opposite; empty where none do."""
    if decider is None or not any("opposite directions" in note for note in decider.notes):
        return ""
    labels = home.design.group.labels
    groups = labels.index(decider.group_1), labels.index(decider.group_2)
    rows = turning_rows(reading.values.values, home.design.group.codes, groups, home.used)
    if not rows:
        return "no few rows account for it"
    named = [f"{row_name(frame, row)}: {reading.values.values[row]:g}" for row in rows[:3]]
    return f"{', '.join(named)}{' …' if len(rows) > 3 else ''} turn{'s' if len(rows) == 1 else ''} the mean"


def statistic(decider: PairResult | None, home: Grouping) -> str:
    if decider is None:
        return ""
    member = next(m for m in home.members if m.name == decider.metric)
    comparison = member.metric.comparison
    if comparison is None:
        return ""
    name, values = comparison.statistic
    labels = member.labels
    first, second = labels.index(decider.group_1), labels.index(decider.group_2)
    place = first * (2 * len(labels) - first - 1) // 2 + second - first - 1
    at = int(member.metric.index[place])
    return f"{name} = {float(values[at]):.4f}" if at >= 0 else ""


def effect_size(decider: PairResult | None) -> str:
    if decider is None:
        return ""
    text = f"{decider.effect_name} = {effect_words(decider.effect)}"
    if decider.effect_low is None or decider.effect_high is None:
        return text
    return f"{text} (90 % interval {effect_words(decider.effect_low)} to {effect_words(decider.effect_high)})"


def notes(
    groupings: Sequence[Grouping],
    reading: Reading,
    kind: OutcomeKind,
    nouns: tuple[str, str, str],
    missing: Mapping[str, str],
) -> tuple[str, ...]:
    noun, cases, block = nouns
    notes: list[str] = []
    if reading.values.why is not None:
        notes.append(f"the kind of {reading.name} is taken to be {kind.value}: {reading.values.why}")
    for grouping in groupings:
        results, metric = grouping.results[reading.name], grouping.members[0].metric
        if noun != "rows":
            few = [f"{g.group} ({g.clusters})" for g in results if 0 < g.clusters < RECOMMENDED_CLUSTERS]
            if few:
                notes.append(f"fewer than {RECOMMENDED_CLUSTERS} {noun} a group: {', '.join(few[:6])}")
        wanted = RECOMMENDED_N[kind]
        small = [f"{g.group} ({g.n})" for g in results if g.n < wanted]
        if small:
            notes.append(f"fewer than the recommended {wanted} {cases} a group: {', '.join(small[:6])}")
        lost = sum(g.undetermined + g.unscored for g in results)
        if lost:
            why = "; ".join(f"{group}: {words}" for group, words in list(missing.items())[:4])
            notes.append(f"{lost} {cases} have no outcome{f' ({why})' if why else ''}")
        if metric.repeats:
            notes.append(f"every repetition repeats its outcome: more of them add nothing; names and {block}s do")
        if metric.copies_dropped:
            notes.append("repetitions with the same text count once, for a group has one cluster only")
        notes += _part_notes(metric, noun)
    return tuple(dict.fromkeys(notes))


def _part_notes(metric: Metric, noun: str) -> list[str]:
    """What first and last names that recur do to the evidence."""
    comparison = metric.comparison
    if comparison is None:
        return []
    least = float(np.min(comparison.part_clusters, initial=np.inf))
    recurs = bool(np.any(comparison.part_clusters < comparison.clusters.min(axis=1) - 1e-9))
    notes = []
    if recurs and least < RECOMMENDED_CLUSTERS:
        notes.append(
            f"first or last {noun} recur: a group counts as about {least:.1f} of them, {RECOMMENDED_CLUSTERS} or more "
            "are better"
        )
    return notes


def details(
    groupings: Sequence[Grouping],
    reading: Reading,
    asked_kind: str,
    thresholds: Thresholds,
    blocks: Sequence[BlockEffect],
) -> dict[str, JSON]:
    details: dict[str, JSON] = {
        "kind": reading.values.kind.value,
        "kind_inferred": asked_kind == "auto" and reading.values.why is not None,
        "lower_is_worse": reading.lower_is_worse,
        "favourable": _favourable(reading),
        "min_raw_diff": thresholds.min_raw_diff,
        "min_raw_ratio": thresholds.min_raw_ratio,
    }
    omnibus: dict[str, JSON] = {}
    for grouping in groupings:
        comparison = grouping.members[0].metric.comparison
        if comparison is not None:
            omnibus[grouping.by] = dict(comparison.omnibus)
    details["omnibus"] = omnibus
    for name, key in ((REFUSAL, "refusals"), (NO_ANSWER, "no_answer")):
        rates: dict[str, JSON] = {}
        for grouping in groupings:
            for group in grouping.results.get(name, ()):
                rates[group.group] = {"rate": group.value, "low": group.low, "high": group.high, "n": group.n}
        if rates:
            details[key] = rates
    if blocks:
        shown = (
            sorted(blocks, key=lambda one: one.p_value)[:MOST_BLOCK_EFFECTS]
            if len(blocks) > MOST_BLOCK_EFFECTS
            else blocks
        )
        details["by_block"] = [one.to_json() for one in shown]
        details["by_block_left_out"] = len(blocks) - len(shown)
    return details


def _favourable(reading: Reading) -> JSON:
    if reading.favourable is None or reading.values.kind is not OutcomeKind.BINARY:
        return None
    return reading.values.categories[int(reading.favourable)] if reading.values.categories else reading.favourable == 1
