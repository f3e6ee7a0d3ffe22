"""Does an outcome differ between the groups of a protected class, by more than chance and more than a trifle?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.assembling import finding_of
from pytest_fairness.analysis.disparity_details import (
    Grouping,
    details,
    effect_size,
    in_block,
    notes,
    statistic,
    turning,
)
from pytest_fairness.analysis.family import Family, judge_family
from pytest_fairness.analysis.members import Member, Thresholds, missing_member
from pytest_fairness.analysis.missing import first_reasons
from pytest_fairness.analysis.reading import (
    Reading,
    as_columns,
    case_noun,
    cluster_noun,
    count_by_group,
    every_grouping,
    read,
    scored_rows,
    unscored_rows,
)
from pytest_fairness.analysis.sentences import REFUSAL, Subject, disparity_sentence
from pytest_fairness.analysis.verdicts import deciding_pair, verdict_by
from pytest_fairness.errors import UsageError
from pytest_fairness.model import ALARMS, Finding, GroupResult, OutcomeKind
from pytest_fairness.statistics.corrections import METHODS
from pytest_fairness.statistics.frames import Bools, Design, read_design
from pytest_fairness.statistics.groups import describe_groups
from pytest_fairness.statistics.metrics import Metric, measure
from pytest_fairness.statistics.refusals import impute, worst_rank

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
