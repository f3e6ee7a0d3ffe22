"""What is said beside the verdict on a disparity: statistic, effect, notes and details."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.analysis.family import Family
from pytest_fairness.analysis.members import Member, Thresholds
from pytest_fairness.analysis.reading import (
    Reading,
)
from pytest_fairness.analysis.sentences import NO_ANSWER, REFUSAL, effect_words
from pytest_fairness.analysis.templates import BlockEffect
from pytest_fairness.analysis.verdicts import RECOMMENDED_CLUSTERS, RECOMMENDED_N
from pytest_fairness.model import JSON, GroupResult, OutcomeKind, PairResult
from pytest_fairness.statistics.frames import Bools, Design, row_name
from pytest_fairness.statistics.metrics import Metric
from pytest_fairness.statistics.refusals import turning_rows

if TYPE_CHECKING:
    import pandas as pd

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
