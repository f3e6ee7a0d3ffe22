"""Does an outcome differ between the groups of a protected class, by more than chance and more than a trifle?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.family import Family, Member, missing_members
from pytest_fairness.analysis.policy import RECOMMENDED_CLUSTERS, RECOMMENDED_N, Rule, deciding_pair, verdict_by
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.reading import (
    Reading,
    as_columns,
    case_noun,
    check_level,
    cluster_noun,
    every_grouping,
    read,
    reasons_by_group,
    scored_rows,
    unscored_rows,
)
from pytest_fairness.analysis.sentences import NO_ANSWER, REFUSAL, Subject, disparity_sentence, effect_words
from pytest_fairness.errors import UsageError
from pytest_fairness.model import ALARMS, JSON, Finding, GroupResult, OutcomeKind, PairResult
from pytest_fairness.statistics.arrays import Bools, Floats, Membership, read_design, row_name
from pytest_fairness.statistics.compare import Metric, describe_groups, impute, measure, turning_rows, worst_rank

if TYPE_CHECKING:
    import pandas as pd

MOST_BLOCK_EFFECTS = 2_000
"""Effects within blocks that a finding carries; those of the pairs with the smallest p first."""


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
    check_level(alpha, correction)
    if min_raw_diff is not None and not min_raw_diff >= 0:
        raise UsageError(f"min_raw_diff={min_raw_diff!r}: give a difference of 0 or more, in the outcome's unit")
    if min_raw_ratio is not None and not 0 < min_raw_ratio <= 1:
        raise UsageError(f"min_raw_ratio={min_raw_ratio!r}: give a ratio above 0 and up to 1, as .75")
    reading = read(frame, outcome, kind, lower_is_worse, scorers, favourable)
    if reading.values.kind is OutcomeKind.CATEGORICAL and (min_raw_diff, min_raw_ratio) != (None, None):
        raise UsageError(f"{reading.name!r} holds labels: min_raw_diff and min_raw_ratio need numbers")
    groupings: list[_Grouping] = []
    members: list[Member] = []
    for chosen in every_grouping(columns):
        design = read_design(frame, chosen, cluster=cluster, block=block)
        groupings.append(_Measuring(design, reading, seed).grouping(" × ".join(chosen), len(members)))
        members += groupings[-1].members
    design = groupings[0].design
    rule = Rule(
        alpha=alpha,
        correction=correction,
        min_raw_diff=min_raw_diff,
        min_raw_ratio=min_raw_ratio,
        cluster_noun=cluster_noun(design),
        case_noun=case_noun(frame),
        block_noun="block" if design.block_name is None else design.block_name.replace("_", " "),
    )
    family = Family(members, rule)
    pairs, blocks = family.judge()
    decider = deciding_pair(pairs)
    verdict, reason = verdict_by(decider)
    home = next((g for g in groupings if decider is not None and g.by == decider.statistics["by"]), groupings[0])
    own = [pair for pair in pairs if pair.metric == reading.name and pair.statistics["by"] == home.by]
    alarms = sorted(
        (pair for pair in pairs if pair.alarm_only and pair.verdict in ALARMS and pair.statistics["by"] == home.by),
        key=lambda pair: (-pair.verdict.severity, pair.corrected_p_value),
    )
    subject = Subject(
        outcome=reading.name,
        kind=reading.values.kind,
        unit=reading.unit,
        by=home.by,
        pairs=len(own),
        clusters=rule.cluster_noun,
        cases=rule.case_noun,
        block=rule.block_noun,
        groups={name: {group.group: group for group in results} for name, results in home.results.items()},
        answers=reading.values.categories if reading.values.kind is OutcomeKind.BINARY else (),
        missing=reasons_by_group(frame, home.design, home.missing),
        raised=[pair for pair in own if pair.verdict in ALARMS],
        turning=_turning(frame, home, reading, decider),
        in_block=_in_block(blocks, decider, reading, rule.block_noun),
    )
    return finding_of(
        frame,
        assertion="no_disparity",
        verdict=verdict,
        reason=reason,
        decider=decider,
        sentence=disparity_sentence(verdict, reason, decider, alarms, subject),
        by=", ".join(columns),
        groups=[group for g in groupings for group in g.results[reading.name]],
        test_statistic=_statistic(decider, home),
        effect_size=_effect_size(decider),
        notes=_notes(groupings, reading, rule, subject.missing),
        pairs=pairs,
        outcome=reading.name,
        kind=reading.values.kind,
        unit=reading.unit,
        cluster=design.cluster_name,
        block=design.block_name,
        family={
            "size": family.size,
            "method": correction,
            "alpha": alpha,
            "metrics": list(dict.fromkeys(pair.metric for pair in pairs)),
        },
        details={
            "kind": reading.values.kind.value,
            "kind_inferred": kind == "auto" and reading.values.why is not None,
            "lower_is_worse": reading.lower_is_worse,
            "favourable": _favourable(reading),
            "min_raw_diff": min_raw_diff,
            "min_raw_ratio": min_raw_ratio,
            "omnibus": {g.by: dict(g.members[0].metric.pairs.omnibus) for g in groupings if g.comparable},
            **_rates(groupings),
            **_by_block(blocks),
        },
    )


@dataclass(frozen=True, slots=True)
class _Grouping:
    """One way of forming groups (a protected class, or an intersection), measured: the outcome, and beside it refusals
    and missing answers where there are any."""

    by: str
    design: Membership
    used: Bools
    missing: Bools
    members: tuple[Member, ...]
    results: Mapping[str, tuple[GroupResult, ...]]

    @property
    def comparable(self) -> bool:
        return self.members[0].metric.present.size >= 2


@dataclass(frozen=True, slots=True)
class _Measuring:
    """The outcome over one design: as it is, with refusals ranked worst, and with what is missing at the extremes."""

    design: Membership
    reading: Reading
    seed: int

    def measure(self, values: Floats, used: Bools, kind: OutcomeKind | None = None, categories: int = 0) -> Metric:
        own = self.reading.values
        count = categories or len(own.categories)
        return measure(self.design, values, used, kind or own.kind, categories=count, seed=self.seed)

    def grouping(self, by: str, place: int) -> _Grouping:
        """*place* is where its members stand in the family."""
        design, reading = self.design, self.reading
        kind, values = reading.values.kind, reading.values.values
        used = scored_rows(design, reading)
        missing = unscored_rows(design, reading, used)
        refusing = kind is OutcomeKind.REFUSAL
        beside = []
        if not refusing and bool(np.any(design.refused)):
            refused = measure(design, design.refused.astype(np.float64), ~design.undetermined, OutcomeKind.REFUSAL)
            beside.append(Member(name=REFUSAL if reading.name != REFUSAL else "refused", by=by, metric=refused))
        own = Member(
            name=reading.name,
            by=by,
            blocks=design.block_labels,
            metric=self.measure(values, used),
            unscored=design.count(missing),
            lower_is_worse=reading.lower_is_worse,
            favourable=reading.favourable,
            categories=reading.values.categories,
            alarm_only=False,
            refusals=place + 1 if beside else None,
            worst_rank=(lambda: self.worst_rank(used)) if beside else None,
            imputed=lambda i, j, high: self.imputed(used, missing, (i, j), high),
        )
        members = (own, *beside, *missing_members(design, by, missing))
        refused_rows = np.nan_to_num(values) == 1 if refusing else design.refused
        results = {
            member.name: describe_groups(
                design,
                member.metric,
                kind if member is own else OutcomeKind.REFUSAL,
                reading.values.categories,
                refused=refused_rows & used if refusing else refused_rows,
                missing=missing,
                has_refusals=design.has_refusals or refusing,
            )
            for member in members
        }
        return _Grouping(by, design, used, missing, members, results)

    def worst_rank(self, used: Bools) -> Metric:
        own, refused = self.reading.values, self.design.refused & ~self.design.undetermined
        unknown = own.kind is OutcomeKind.BINARY and self.reading.favourable is None
        values, kind, categories = worst_rank(
            own.values,
            OutcomeKind.CATEGORICAL if unknown else own.kind,
            scored=used,
            refused=refused,
            lower_is_worse=self.reading.lower_is_worse,
            categories=len(own.categories),
        )
        return self.measure(values, used | refused, kind, categories)

    def imputed(self, used: Bools, missing: Bools, groups: tuple[int, int], first_high: bool) -> Metric:
        values = impute(
            self.reading.values.values,
            self.reading.values.kind,
            self.design.group.codes,
            groups,
            used=used,
            missing=missing,
            first_high=first_high,
            scale=(self.reading.low, self.reading.high),
        )
        return self.measure(values, np.isin(self.design.group.codes, groups) & (used | missing))


# ---------------------------------------------------------------- beside the verdict


def _in_block(blocks: Sequence[Mapping[str, Any]], decider: PairResult | None, reading: Reading, noun: str) -> str:
    """Which block raises the alarm about the decider by itself, and how; empty where none does."""
    if decider is None:
        return ""
    key = decider.statistics["by"], decider.group_1, decider.group_2
    found = [one for one in blocks if one["alarm"] and (one["by"], one["group_1"], one["group_2"]) == key]
    if not found:
        return ""
    one = min(found, key=lambda block: float(block["p_value"]))
    differ, sign = f"{one['group_1']} and {one['group_2']} differ", 1.0
    if decider.worse_off is not None:
        sign = 1.0 if (one["effect"] < 0) == reading.lower_is_worse else -1.0
        worse, better = (one[f"group_{at}"] for at in ((1, 2) if sign > 0 else (2, 1)))
        differ = f"{worse} is worse off than {better}"
    sure = f"d = {effect_words(sign * one['effect'])}"
    if one["effect_low"] is not None:
        low, high = sorted((sign * one["effect_low"], sign * one["effect_high"]))
        sure += f", 90 % interval {effect_words(low)} to {effect_words(high)}"
    return f"in {noun} {one['block']!r} by itself {differ} on {reading.name} ({sure})"


def _turning(frame: pd.DataFrame, home: _Grouping, reading: Reading, decider: PairResult | None) -> str:
    """Which rows turn the mean of a pair round whose ranks say the opposite; empty where none do."""
    if decider is None or not any("opposite directions" in note for note in decider.notes):
        return ""
    labels, values = home.design.group.labels, reading.values.values
    groups = labels.index(decider.group_1), labels.index(decider.group_2)
    rows = turning_rows(values, home.design.group.codes, groups, home.used)
    if not rows:
        return "no few rows account for it"
    named = [f"{row_name(frame, row)}: {values[row]:g}" for row in rows[:3]]
    return f"{', '.join(named)}{' …' if len(rows) > 3 else ''} turn{'s' if len(rows) == 1 else ''} the mean"


def _statistic(decider: PairResult | None, home: _Grouping) -> str:
    if decider is None:
        return ""
    table = next(m for m in home.members if m.name == decider.metric).metric.pairs
    first, second = table.labels.index(decider.group_1), table.labels.index(decider.group_2)
    value = float(table.value_of_test[(table.first == first) & (table.second == second)][0])
    return "" if np.isnan(value) else f"{table.statistic} = {value:.4f}"


def _effect_size(decider: PairResult | None) -> str:
    if decider is None:
        return ""
    text = f"{decider.effect_name} = {effect_words(decider.effect)}"
    if decider.effect_low is None or decider.effect_high is None:
        return text
    return f"{text} (90 % interval {effect_words(decider.effect_low)} to {effect_words(decider.effect_high)})"


def _notes(groupings: Sequence[_Grouping], reading: Reading, rule: Rule, missing: Mapping[str, str]) -> tuple[str, ...]:
    noun, cases, wanted = rule.cluster_noun, rule.case_noun, RECOMMENDED_N[reading.values.kind]
    notes: list[str] = []
    if reading.values.why is not None:
        notes.append(f"the kind of {reading.name} is taken to be {reading.values.kind.value}: {reading.values.why}")
    for grouping in groupings:
        results, metric = grouping.results[reading.name], grouping.members[0].metric
        few = [f"{g.group} ({g.clusters})" for g in results if 0 < g.clusters < RECOMMENDED_CLUSTERS and noun != "rows"]
        if few:
            notes.append(f"fewer than {RECOMMENDED_CLUSTERS} {noun} a group: {', '.join(few[:6])}")
        small = [f"{g.group} ({g.n})" for g in results if g.n < wanted]
        if small:
            notes.append(f"fewer than the recommended {wanted} {cases} a group: {', '.join(small[:6])}")
        lost = sum(g.undetermined + g.unscored for g in results)
        if lost:
            why = "; ".join(f"{group}: {words}" for group, words in list(missing.items())[:4])
            notes.append(f"{lost} {cases} have no outcome{f' ({why})' if why else ''}")
        if metric.repeats:
            notes.append(
                f"every repetition repeats its outcome: more of them add nothing; names and {rule.block_noun}s do"
            )
        if metric.copies_dropped:
            notes.append("repetitions with the same text count once, for a group has one cluster only")
        least = float(np.min(metric.pairs.part_clusters, initial=np.inf))
        recurs = bool(np.any(metric.pairs.part_clusters < metric.pairs.units.min(axis=1) - 1e-9))
        if recurs and least < RECOMMENDED_CLUSTERS:
            notes.append(
                f"first or last {noun} recur: a group counts as about {least:.1f} of them, {RECOMMENDED_CLUSTERS} or "
                "more are better"
            )
    return tuple(dict.fromkeys(notes))


def _rates(groupings: Sequence[_Grouping]) -> dict[str, JSON]:
    """The rates of refusals and of missing answers, where there are any."""
    found: dict[str, JSON] = {}
    for name, key in ((REFUSAL, "refusals"), (NO_ANSWER, "no_answer")):
        rates: dict[str, JSON] = {
            group.group: {"rate": group.value, "low": group.low, "high": group.high, "n": group.n}
            for grouping in groupings
            for group in grouping.results.get(name, ())
        }
        if rates:
            found[key] = rates
    return found


def _by_block(blocks: list[dict[str, Any]]) -> dict[str, JSON]:
    if not blocks:
        return {}
    shown = blocks
    if len(blocks) > MOST_BLOCK_EFFECTS:
        shown = sorted(blocks, key=lambda one: float(one["p_value"]))[:MOST_BLOCK_EFFECTS]
    return {"by_block": list(shown), "by_block_left_out": len(blocks) - len(shown)}


def _favourable(reading: Reading) -> JSON:
    if reading.favourable is None or reading.values.kind is not OutcomeKind.BINARY:
        return None
    return reading.values.categories[int(reading.favourable)] if reading.values.categories else reading.favourable == 1
