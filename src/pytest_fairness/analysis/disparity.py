"""Does an outcome differ between the groups of a protected class, by more than chance and more than
a trifle?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness import model
from pytest_fairness.analysis.counts import by_rows, countable, readable
from pytest_fairness.analysis.false_alarms import ALPHA, TEMPLATE_ALPHA
from pytest_fairness.analysis.family import (
    Family,
    Judged,
    LostTrials,
    Member,
    alarm_members,
    keep_green,
    missing_answers,
    p_lost,
    shown,
    too_small,
    unequal_refusals,
)
from pytest_fairness.analysis.looks import Look
from pytest_fairness.analysis.parts import (
    BINS,
    Part,
    Parts,
    check_one_table,
)
from pytest_fairness.analysis.persuasion import first_refusals, with_persuasion
from pytest_fairness.analysis.policy import (
    CONTRARY,
    MARGIN,
    RECOMMENDED_CLUSTERS,
    RECOMMENDED_N,
    UNLIKE,
    Rule,
    conclude_pairs,
    in_doubt,
    judge,
    raised_by_block,
    unless_refused,
    without_room,
    worse,
)
from pytest_fairness.analysis.pooled_signals import PooledSignals, bounded, signals_of
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.readers import Readers, labels_by
from pytest_fairness.analysis.reading import Reading, ScoredRows, as_columns, check_level, read
from pytest_fairness.analysis.sentences import (
    FIRST_ASK,
    FIRST_REFUSAL,
    NO_ANSWER,
    REFUSAL,
    Subject,
    amount,
    effect_with_interval,
    lost_words,
)
from pytest_fairness.analysis.unreadable_rows import naming_rows
from pytest_fairness.errors import UsageError
from pytest_fairness.statistics.arrays import (
    OFFSET,
    ROWS,
    Bools,
    Ints,
    Membership,
    repeated_places,
    row_name,
)
from pytest_fairness.statistics.clusters import Terms
from pytest_fairness.statistics.compare import (
    RATES,
    Metric,
    describe_groups,
    measure,
    still_blocks,
    turning_rows,
    worst_rank,
)
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.pair_table import PairTable, largest
from pytest_fairness.words import enumerated, p_equals

if TYPE_CHECKING:
    import pandas as pd

MOST_BLOCK_EFFECTS = 2_000
"""Effects within blocks that a finding carries; those of the pairs with the smallest p first."""


def analyze_disparity(
    frame: Any,
    outcome: str | Callable[..., Any] | Sequence[str | Callable[..., Any]],
    by: str | Sequence[str],
    *,
    cluster: str | None = "name",
    block: str | None = "template",
    each: str | None = None,
    signals: str | None = None,
    within: str | Sequence[str] | None = None,
    bins: int = BINS,
    kind: str = "auto",
    alpha: float = 0.05,
    correction: str = "bonferroni",
    min_raw_diff: float | None = None,
    min_raw_ratio: float | None = None,
    lower_is_worse: bool | None = None,
    favourable: object = None,
    room: bool = False,
    scorers: Mapping[str, Any] | None = None,
    labels: str | None = None,
    seed: int = 0,
    _look: Look | None = None,
    _parts: Sequence[str] = (),
) -> model.Finding:
    """Compare *outcome* between all pairs of groups of *by*, as one family of tests.

    Args:
        frame: one row a trial; or a table of polars, pyarrow, DuckDB, Dask, Ibis or Spark, the path
            of Parquet or CSV files, or :class:`~pytest_fairness.RowCounts`. ``refused``,
            ``undetermined``, ``repetition``, ``first_name`` and ``last_name`` columns are read if
            present.
        outcome: a column, the name of a scorer, or a callable on the reply. The assertion takes
            several, of which it reports each; here that is ``analyze_outcomes``.
        by: the column of a protected class; or several, which are judged each by itself and
            crossed.
        cluster: the column of the name, persona or résumé that rows share, the unit of evidence;
            ``None`` if every row stands for itself.
        block: the column of the template or context; comparisons are made within it. ``None`` for
            one block.
        each: a column, as that of the firm: the groups are compared within each of its values by
            itself, all as one family. The finding has a pair, and in ``details["each"]`` a row, for
            each; ``correction="fdr_bh"`` bounds the share of false ones among those that differ.
        signals: the column that says by which signal a row conveys its group, where a class has
            several. A pair is compared over the signals that ask about both groups, a text of each
            a block; each signal by itself can raise the alarm, in the same family, and keeps a pair
            from passing where its effect is over .5. ``details["signals"]`` has a row for each.
        within, bins: columns in which people may legitimately differ, in strata of which the
            assertion compares a second time, as ``analyze_within`` does, and reports both; here
            that is ``analyze_within``.
        kind: ``numeric``, ``ordinal``, ``narrative``, ``binary``, ``categorical``, ``refusal``, or
            ``auto``.
        alpha, correction: the level, and ``bonferroni``, ``holm`` or ``fdr_bh`` over all pairs and
            metrics; with *each*, ``fdr_bh`` over its values.
        min_raw_diff: a difference below this, in the outcome's unit, is never FLAG or FAIL.
        min_raw_ratio: nor is one where the smaller mean is at least this share of the larger.
        lower_is_worse: the direction of harm; by default the scorer's, or True.
        favourable: of two answers the favourable one; by default known from words such as yes,
            approved, hired.
        room: the design promises that answers can vary: a yes/no or a label that varies in fewer
            than a third of its templates passes nobody.
        scorers: scorers to look the outcome up in, before the built-in ones.
        labels: the column of a person's readings of a random sample of each group's rows, missing
            for the others: the reader's error is carried into effects, intervals and verdicts.
        seed: for the resampling of categorical outcomes, and of nothing else.

    Raises:
        FrameError: a column or label is missing, trials are duplicated, an outcome has the wrong
            type, or there are fewer than two groups; the message names column and row.
        UsageError: an argument is out of range, or the outcome is unknown.
    """
    again = partial(
        analyze_disparity,
        outcome=outcome,
        by=by,
        cluster=cluster,
        block=block,
        each=each,
        signals=signals,
        kind=kind,
        alpha=alpha,
        correction=correction,
        min_raw_diff=min_raw_diff,
        min_raw_ratio=min_raw_ratio,
        lower_is_worse=lower_is_worse,
        favourable=favourable,
        room=room,
        scorers=scorers,
        labels=labels,
        seed=seed,
        _look=_look,
    )
    columns = as_columns(by)
    check_level(alpha, correction)
    _check_one_question(outcome, each, signals)
    check_one_table(each, (within, bins), _look)
    _check_least_difference(min_raw_diff, min_raw_ratio)
    source = frame
    within_columns = (each, signals)
    with naming_rows(source, outcome):
        frame, reading = _read_table(
            countable(
                frame,
                outcome,
                columns,
                cluster,
                block,
                within=within_columns,
                labels=labels,
                alike=kind != "categorical",
            ),
            outcome,
            labels,
            kind=kind,
            lower_is_worse=lower_is_worse,
            scorers=scorers,
            favourable=favourable,
        )
    values = reading.values
    least = (min_raw_diff, min_raw_ratio)
    if values.kind is model.OutcomeKind.CATEGORICAL and least != (None, None):
        raise UsageError(
            f"{reading.name!r} holds labels: min_raw_diff and min_raw_ratio need numbers"
        )
    rule = Rule.at(_look, alpha, correction)
    terms = Terms(confidence=rule.confidence, seed=seed)
    with naming_rows(source, outcome):
        parts = Parts.of(
            frame,
            reading,
            each,
            outcome=outcome,
            columns=columns,
            cluster=cluster,
            block=block,
            named=_parts,
        )
        pooled = PooledSignals.of(frame, reading, signals, columns, block)
        every = described = _grouped(pooled.of_table(parts), terms)
        if pooled.asked:
            described = _grouped(replace(parts, every=[pooled.whole]), terms)
    rule = replace(
        parts.rule(rule, every[0].rows.design),
        min_raw_diff=min_raw_diff,
        min_raw_ratio=min_raw_ratio,
    )
    family = Family([member for grouping in every for member in grouping.members], rule)
    pairs, blocks = _judge(family, every, room=room)
    _check_intervals(pairs)
    pairs += parts.alone(reading.name)
    conclusion = conclude_pairs(pairs)
    decider = conclusion.decider
    home = _home(every, decider)
    here = [pair for pair in pairs if pair.statistics["by"] == home.rows.by]
    subject = replace(
        home.subject(rule, [pair for pair in here if pair.metric == reading.name]),
        missing=home.part.reasons(home.rows.design, home.rows.missing),
        turning=_turning(home.part.frame, home.rows, decider),
        in_block=_in_block(blocks, decider, reading, rule.block_noun),
        signals=home.part.signals,
        of_class=columns[0],
        alarming=_alarming_signals(pairs, home, reading.name),
    )
    beside = [pair for pair in here if pair.metric != reading.name]
    alarms = sorted(
        (pair for pair in beside if pair.alarm_only and pair.verdict in model.ALARMS),
        key=lambda pair: (-pair.verdict.severity, pair.corrected_p_value),
    )
    sentence = subject.sentence(*conclusion, alarms)
    results = parts.results(pairs, reading.name)
    sentence = results.sentence(conclusion, sentence)
    notes = [
        *_notes(described, reading, rule, subject.missing),
        *_of_pairs(pairs, reading),
        *_of_bins(described[0].rows),
        *Readers.of(home.rows).notes(),
        *results.notes(rule),
    ]
    groups, omnibus = _groups_and_omnibus(described, reading.name)
    finding = finding_of(
        frame,
        assertion="no_disparity",
        conclusion=conclusion,
        sentence=sentence,
        by=", ".join(columns),
        groups=groups,
        tested=lambda pair: (
            _statistic(pair, home),
            effect_with_interval(
                pair.effect_name, pair.effect, pair.effect_low, pair.effect_high, pair.confidence
            ),
        ),
        notes=tuple(dict.fromkeys(notes)),
        pairs=pairs,
        refusal_rates=dict(_refusal_rates(described, reading.name)),
        family=family.facts(pairs),
        **every[0].rows.facts,
        details={
            "kind": values.kind.value,
            "kind_inferred": kind == "auto" and values.why is not None,
            "lower_is_worse": reading.lower_is_worse,
            "favourable": _favourable_answer(reading),
            "min_raw_diff": min_raw_diff,
            "min_raw_ratio": min_raw_ratio,
            "room": room,
            **results.facts(),
            **pooled.facts(pairs, reading.name),
            **labels_by(Readers.of(grouping.rows) for grouping in described),
            "omnibus": omnibus,
            **_rates(described),
            **_by_block(blocks),
        },
    )
    return with_persuasion(finding, frame, again)


def _read_table(
    frame: pd.DataFrame, outcome: Any, labels: str | None, **given: Any
) -> tuple[pd.DataFrame, Reading]:
    """Return the table that is judged and its outcome: of labels that are counted, its rows."""
    frame, outcome = readable(frame, outcome, labels)
    reading = read(frame, outcome, labels=labels, **given)
    if ROWS not in frame.columns or reading.values.kind is not model.OutcomeKind.CATEGORICAL:
        return frame, reading
    if OFFSET in frame.columns:
        raise UsageError(
            f"kind='categorical': {reading.name!r} holds numbers, which stand in bins where there "
            "are so many; make them labels first"
        )
    frame, outcome = by_rows(frame, outcome)
    return frame, read(frame, outcome, labels=labels, **given)


def _grouped(parts: Parts[Reading], terms: Terms) -> list[_Grouping]:
    """Return each grouping of each of *parts*. Raises FrameError where there is none."""
    every = []
    for part, by, design in parts.groupings():
        every.append(_Grouping.of(part, design, by, terms))
    parts.require(every)
    return every


def _home(every: Sequence[_Grouping], decider: model.PairResult | None) -> _Grouping:
    """Return the grouping that *decider* is of, the first without one."""
    for grouping in every:
        if decider is None or not grouping.part.holds(decider):
            continue
        if grouping.rows.by == decider.statistics["by"]:
            return grouping
    return every[0]


def _groups_and_omnibus(
    described: Sequence[_Grouping], outcome: str
) -> tuple[list[model.GroupResult], dict[str, model.JSON]]:
    """Return the results of all groups on *outcome*, and the tests of all of them together."""
    groups: list[model.GroupResult] = []
    omnibus: dict[str, model.JSON] = {}
    for grouping in described:
        groups += grouping.results[outcome]
        if grouping.metric.pairs.omnibus:
            omnibus[grouping.rows.by] = dict(grouping.metric.pairs.omnibus)
    return groups, omnibus


def _alarming_signals(
    pairs: Sequence[model.PairResult], home: _Grouping, outcome: str
) -> tuple[str, ...]:
    """Return the signals that raise the alarm on *outcome* by themselves, but for that of *home*."""
    signals: list[str] = []
    for pair in pairs:
        if pair.alarm_only and pair.verdict in model.ALARMS and pair.metric == outcome:
            signals += signals_of(pair)
    if home.part.alarm_only:
        signals = [label for label in signals if label not in home.part.signals]
    return tuple(dict.fromkeys(signals))


def _by_block(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the outcome does within each block, and how many of these are left out."""
    if not blocks:
        return {}
    surest = blocks
    if len(blocks) > MOST_BLOCK_EFFECTS:
        surest = sorted(blocks, key=lambda block: float(block["p_value"]))[:MOST_BLOCK_EFFECTS]
    return {"by_block": surest, "by_block_left_out": len(blocks) - len(surest)}


def _check_one_question(outcome: object, each: object, signals: object) -> None:
    """Raise UsageError for several outcomes, and for parts of a table that is pooled."""
    if isinstance(outcome, Sequence) and not isinstance(outcome, str):
        raise UsageError(
            f"outcome= is {outcome!r}: give a column, the name of a scorer, or a function of the "
            "reply; analyze_outcomes compares several"
        )
    if each is not None and signals is not None:
        raise UsageError(
            f"each={each!r} and signals={signals!r}: a table is judged in parts, or pooled over "
            "signals"
        )


def _check_least_difference(min_raw_diff: float | None, min_raw_ratio: float | None) -> None:
    """Raise UsageError for a difference or a ratio that nothing can be measured against."""
    if min_raw_diff is not None and not min_raw_diff >= 0:
        raise UsageError(
            f"min_raw_diff={min_raw_diff!r}: give a difference of 0 or more, in the outcome's unit"
        )
    if min_raw_ratio is not None and not 0 < min_raw_ratio <= 1:
        raise UsageError(
            f"min_raw_ratio={min_raw_ratio!r}: give a ratio above 0 and up to 1, as .75"
        )


def _favourable_answer(reading: Reading) -> model.JSON:
    """Return the favourable one of two answers, None for any other outcome."""
    if reading.favourable is None or reading.values.kind is not model.OutcomeKind.BINARY:
        return None
    answers = reading.values.categories or (False, True)
    return answers[int(reading.favourable)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grouping:
    """One way of forming groups (a protected class, or an intersection): the outcome, and beside it
    refusals and missing answers where there are any; ``results`` are those of each group, by
    metric, and ``part`` the part of the table in which they are formed."""

    part: Part[Reading]
    rows: ScoredRows
    metric: Metric
    refusals: Metric | None
    members: tuple[Member, ...]
    results: Mapping[str, tuple[model.GroupResult, ...]]

    @property
    def still(self) -> tuple[int, int]:
        """In how many blocks no answer of any group varies, and how many there are; 0 of 0 for
        graded outcomes, which always have room, and without blocks."""
        graded = self.rows.reading.values.kind not in (*RATES, model.OutcomeKind.CATEGORICAL)
        if graded or self.metric.layout is None or self.rows.design.block_name is None:
            return 0, 0
        return still_blocks(self.metric.layout)

    def subject(self, rule: Rule, of_outcome: Sequence[model.PairResult]) -> Subject:
        """Return what a sentence about these groups says, by the pairs *of_outcome*."""
        reading = self.rows.reading
        answers: tuple[str, ...] = ()
        if reading.values.kind is model.OutcomeKind.BINARY:
            answers = reading.values.categories
        groups = {}
        for name, results in self.results.items():
            groups[name] = {group.group: group for group in results}
        return Subject(
            outcome=reading.name,
            kind=reading.values.kind,
            unit=reading.unit,
            by=self.rows.by,
            pairs=len(of_outcome),
            clusters=rule.cluster_noun,
            cases=rule.case_noun,
            block=rule.block_noun,
            groups=groups,
            answers=answers,
            raised=[pair for pair in of_outcome if pair.verdict in model.ALARMS],
            still=self.still,
        )

    @classmethod
    def of(cls, part: Part[Reading], design: Membership, by: str, terms: Terms) -> _Grouping:
        design = part.named(design)
        reading = part.reading
        rows = ScoredRows.of(design, reading, part.called(by), terms)
        refused_first = first_refusals(part.frame, design, terms.confidence)
        metric = rows.measure()
        refusals = rows.refusals()
        kind = reading.values.kind
        readers = Readers.of(rows)
        metric = readers.corrected(metric)
        table = metric.pairs
        lost, total = rows.unanswered(table)
        without = missing_answers(rows.by, design, rows.missing, terms.confidence)

        def imputed(at: int, high: bool, alike: bool) -> PairTable:
            two = rows.imputed(table, at, high, at_random=alike)
            return Readers.of(two).corrected(two.measure(by_block=False)).pairs

        outcome_member = Member(
            name=reading.name,
            by=rows.by,
            table=table,
            metric=metric,
            kind=kind,
            lost=LostTrials(lost=lost, total=total, p_alike=p_lost(without), imputed=imputed),
            by_rank=True,
            decide=readers.decide(judge, table),
            lower_is_worse=reading.lower_is_worse,
            favourable=reading.favourable,
            categories=reading.values.categories,
            alarm_only=part.alarm_only,
            of_outcome=True,
        )
        of_refusals = REFUSAL
        if reading.name == REFUSAL:
            of_refusals = "refused"
        members = (
            outcome_member,
            *alarm_members(refusals, of_refusals, rows.by),
            *alarm_members(refused_first, FIRST_REFUSAL, rows.by),
            *without,
        )
        members = tuple(
            replace(member, part=part.place, signals=part.signals) for member in members
        )
        refusing = kind is model.OutcomeKind.REFUSAL
        refused = design.refused
        if refusing:
            refused = (np.nan_to_num(reading.values.values) == 1) & rows.used
        results = {
            member.name: describe_groups(
                design,
                member.metric or metric,
                member.kind,
                reading.values.categories,
                refused=refused,
                missing=rows.missing,
                has_refusals=design.has_refusals or refusing,
            )
            for member in members
        }
        return cls(
            part=part,
            rows=rows,
            metric=metric,
            refusals=refusals,
            members=members,
            results=results,
        )


def _judge(
    family: Family, every: Sequence[_Grouping], *, room: bool
) -> tuple[list[model.PairResult], list[dict[str, Any]]]:
    """The pairs of all groupings, in order, and what the outcome does within each block; *room* as
    in :func:`analyze_disparity`."""
    judged = family.judge()
    blocks: list[dict[str, Any]] = []
    outcomes: list[tuple[Part[Reading], Judged]] = []
    pooled = sum(not grouping.part.alarm_only for grouping in every)
    share = 1 / max(family.rule.parts, 1)
    if every[0].part.signals:
        share = 1 / pooled
    place = 0
    for grouping in every:
        if grouping.refusals is not None:
            unlike = unequal_refusals(grouping.refusals.pairs, judged[place + 1].decisions)
            if bool(unlike.any()):
                judged[place] = _with_refusals(family, place, grouping.rows, judged[place], unlike)
        outcomes.append((grouping.part, judged[place]))
        if not grouping.part.alarm_only:
            blocks += _with_templates(grouping, judged[place], family.rule, share)
            if room:
                _leave_room(grouping, judged[place], family.rule)
            keep_green(judged[place], family.rule.look)
        place += len(grouping.members)
    bounded(outcomes)
    return family.results(judged), blocks


def _leave_room(grouping: _Grouping, judged: Judged, rule: Rule) -> None:
    """Let no pair pass where the answers to fewer than a third of the blocks vary."""
    still, live = grouping.still
    if 3 * (live - still) < live:
        for at, decision in enumerate(judged.decisions):
            judged.decisions[at] = without_room(decision, still, live, rule)


def _check_intervals(pairs: Sequence[model.PairResult]) -> None:
    """Raise AssertionError for a FAIL whose interval holds 0: no evidence may contradict itself."""
    for pair in pairs:
        low = pair.effect_low
        high = pair.effect_high
        if pair.verdict is not model.Verdict.FAIL or low is None or high is None:
            continue
        if low <= 0 <= high:
            about = f"{pair.group_1} and {pair.group_2} on {pair.metric}"
            raise AssertionError(
                f"the interval of a FAIL holds 0: {about}, {pair.effect:g} ({low:g} to {high:g})"
            )


def _with_refusals(
    family: Family, at: int, rows: ScoredRows, judged: Judged, unlike: Bools
) -> Judged:
    """Pairs whose refusals differ: the worse of the decision on the answers and that with every
    refusal worse than the worst answer."""
    outcome = rows.reading.values
    refused = rows.design.refused & ~rows.design.undetermined
    if outcome.kind is model.OutcomeKind.BINARY and rows.reading.favourable is None:
        outcome = replace(outcome, kind=model.OutcomeKind.CATEGORICAL)
    ranked_worst = worst_rank(
        outcome,
        scored=rows.used,
        refused=refused,
        lower_is_worse=rows.reading.lower_is_worse,
    )
    terms = replace(rows.terms, by_block=False)
    worst = measure(rows.design, ranked_worst, rows.used | refused, terms).pairs
    answered = judged.member.table.p_value
    ranked = np.where(unlike, np.minimum(answered, worst.p_value), answered)
    again = family.corrected(at, ranked)[at]
    changed = replace(judged.member, kind=ranked_worst.kind)
    harsher = judge(family.completed(changed, worst, again), family.rule_of(changed))
    lower = worst.p_value < answered
    final = list(judged.decisions)
    # The effect that is shown is the one that decided: of the answers, or with the refusals below
    # them.
    ranks = np.zeros(unlike.size, dtype=np.bool_)
    for place in np.flatnonzero(unlike).tolist():
        decision = judged.decisions[place]
        other = harsher[place]
        if decision.reason is not model.Reason.UNSCORED:
            final[place] = worse(unless_refused(decision), other)
        alike = final[place].verdict is other.verdict
        ranks[place] = final[place] is other or (lower[place] and alike)
    p_values = {"complete_case_p_value": answered, "worst_rank_p_value": worst.p_value}
    extra = {name: np.where(unlike, p, np.nan) for name, p in p_values.items()}
    table = replace(
        judged.table, p_value=ranked, corrected=again, figures={**judged.table.figures, **extra}
    )
    return Judged(judged.member, table, final, (worst, ranks))


def _with_templates(
    grouping: _Grouping, judged: Judged, rule: Rule, share: float
) -> list[dict[str, Any]]:
    """Each block by itself; the decisions change where one of several raises the alarm, or keeps a
    pair from passing.

    p within the block, Holm over blocks × pairs at a fifth of alpha, and an effect above the
    margin: alarm; of a table in several parts each has its *share* of that level. The same without
    the correction over pairs: doubt, which turns a PASS into INCONCLUSIVE(TEMPLATE).
    """
    table = judged.table
    layout = grouping.metric.layout
    strata = table.strata
    if strata is None or layout is None:
        return []
    # A doubt turns no test red, so a look need not divide its level: see docs/decisions/0204.
    doubt_level = rule.alpha * TEMPLATE_ALPHA
    level = doubt_level * share
    if rule.look is not None:
        doubt_level = ALPHA * TEMPLATE_ALPHA
    names = grouping.rows.design.block_labels
    # Blocks too small to raise the alarm are tests too: each counts with p = 1.
    count = np.zeros((len(table.labels), layout.blocks))
    count[grouping.metric.present] = layout.count
    live = (np.minimum(count[table.first], count[table.second]) > 0).sum(axis=1)
    over_all = correct(strata.p_value, "holm", int(live.sum()))
    within = np.ones(strata.p_value.size)
    for pair in np.unique(strata.pair).tolist():
        rows_of_pair = strata.pair == pair
        within[rows_of_pair] = correct(strata.p_value[rows_of_pair], "holm", int(live[pair]))
    _, effect, low, high = largest(strata.effect, strata.low, strata.high)
    first, two = strata.means.T
    large = (np.abs(np.nan_to_num(effect)) > MARGIN) & ~too_small(first - two, first, two, rule)
    alarm = large & (over_all < level)
    doubt = large & (within < doubt_level)
    surest = np.argsort(strata.p_value, kind="stable")
    raising = _surest_block(strata.pair[surest], strata.block[surest], alarm[surest])
    doubtful = _surest_block(strata.pair[surest], strata.block[surest], doubt[surest])
    decisions = judged.decisions
    for pair, block in doubtful.items():
        decisions[pair] = in_doubt(decisions[pair], names[block], rule.block_noun)
    for pair, block in raising.items():
        decisions[pair] = raised_by_block(decisions[pair], names[block], rule.block_noun)
    lows, highs = shown(effect, low, high)
    columns = {
        "group_1": [table.labels[at] for at in table.first[strata.pair]],
        "group_2": [table.labels[at] for at in table.second[strata.pair]],
        "block": [names[at] for at in strata.block],
        "n_1": strata.rows[:, 0].astype(int).tolist(),
        "n_2": strata.rows[:, 1].astype(int).tolist(),
        "p_value": strata.p_value.tolist(),
        "effect": effect.tolist(),
        "effect_low": lows,
        "effect_high": highs,
        "alarm": alarm.tolist(),
    }
    rows = zip(*columns.values(), strict=True)
    return [{"by": grouping.rows.by, **dict(zip(columns, row, strict=True))} for row in rows]


def _surest_block(pairs: Ints, blocks: Ints, flags: Bools) -> dict[int, int]:
    """Return the first block that has its flag, of each pair that has one."""
    first: dict[int, int] = {}
    for pair, block in zip(pairs[flags].tolist(), blocks[flags].tolist(), strict=True):
        first.setdefault(pair, block)
    return first


# ---------------------------------------------------------------- beside the verdict


def _in_block(
    blocks: Sequence[Mapping[str, Any]],
    decider: model.PairResult | None,
    reading: Reading,
    noun: str,
) -> str:
    """Return which block raises the alarm about the decider by itself, and how; empty where none
    does.
    """
    if decider is None:
        return ""
    key = decider.statistics["by"], decider.group_1, decider.group_2
    raising = [
        block
        for block in blocks
        if block["alarm"] and (block["by"], block["group_1"], block["group_2"]) == key
    ]
    if not raising:
        return ""
    strongest = min(raising, key=lambda block: float(block["p_value"]))
    first = strongest["group_1"]
    second = strongest["group_2"]
    differ = f"{first} and {second} differ"
    sign = 1.0
    if decider.worse_off is not None:
        differ = f"{first} is worse off than {second}"
        if (strongest["effect"] < 0) != reading.lower_is_worse:
            sign = -1.0
            differ = f"{second} is worse off than {first}"
    ends = [strongest["effect_low"], strongest["effect_high"]]
    ends = [sign * end for end in ends if end is not None]
    sure = effect_with_interval("d", sign * strongest["effect"], *sorted(ends))
    return f"in {noun} {strongest['block']!r} by itself {differ} on {reading.name} ({sure})"


def _turning(frame: pd.DataFrame, rows: ScoredRows, decider: model.PairResult | None) -> str:
    """Return which rows turn the mean of a pair round whose ranks say the opposite; empty where
    none do.
    """
    if decider is None or not any("opposite directions" in note for note in decider.notes):
        return ""
    group = rows.design.group
    values = rows.reading.values.values
    pair = group.labels.index(decider.group_1), group.labels.index(decider.group_2)
    each = np.arange(values.size)
    if rows.design.bins is not None:
        return ""
    if rows.design.weight is not None:
        each = repeated_places(rows.design.weight)
    turning = turning_rows(values[each], group.codes[each], pair, rows.used[each])
    turning = each[turning].tolist()
    if not turning:
        return "no few rows account for it"
    named = ", ".join(f"{row_name(frame, row)}: {values[row]:g}" for row in turning[:3])
    if len(turning) == 1:
        return f"{named} turns the mean"
    if len(turning) > 3:
        return f"{named} … turn the mean"
    return f"{named} turn the mean"


def _statistic(decider: model.PairResult, home: _Grouping) -> str:
    table = next(member.table for member in home.members if member.name == decider.metric)
    first = table.labels.index(decider.group_1)
    second = table.labels.index(decider.group_2)
    value = float(table.value_of_test[(table.first == first) & (table.second == second)][0])
    if np.isnan(value):
        return ""
    return f"{table.statistic} = {value:.4f}"


def _notes(
    every: Sequence[_Grouping], reading: Reading, rule: Rule, missing: Mapping[str, str]
) -> Iterator[str]:
    wanted = RECOMMENDED_N[reading.values.kind]
    if reading.values.why is not None:
        yield (
            f"the kind of {reading.name} is taken to be {reading.values.kind.value}: "
            f"{reading.values.why}"
        )
    together = [grouping.results[reading.name] for grouping in every]
    if rule.parts:  # a note on all of them, not on each
        together = [tuple(chain.from_iterable(together))]
    for results in together:
        yield from _notes_on_size(results, rule, wanted)
        lost = sum(group.undetermined + group.unscored for group in results)
        if lost:
            yield lost_words(lost, rule.case_noun, "outcome", missing)
    for grouping in every:
        yield from _notes_on_repeats(grouping.metric, rule)


def _notes_on_size(results: Sequence[model.GroupResult], rule: Rule, wanted: int) -> Iterator[str]:
    """Yield which groups have few clusters, and fewer trials than *wanted*."""
    noun = rule.cluster_noun
    few = []
    small = []
    for group in results:
        if 0 < group.clusters < RECOMMENDED_CLUSTERS:
            few.append(f"{group.group} ({group.clusters})")
        if group.n < wanted:
            small.append(f"{group.group} ({group.n})")
    if few and noun != "rows":
        yield f"fewer than {RECOMMENDED_CLUSTERS} {noun} a group: {', '.join(few[:6])}"
    if small:
        yield (
            f"fewer than the recommended {wanted} {rule.case_noun} a group: {', '.join(small[:6])}"
        )


def _notes_on_repeats(metric: Metric, rule: Rule) -> Iterator[str]:
    """Yield what recurs in the rows of *metric*: outcomes, texts, and parts of names."""
    if metric.repeats:
        yield (
            "every repetition repeats its outcome: more of them add nothing; names and "
            f"{rule.block_noun}s do"
        )
    if metric.copies_dropped:
        yield "repetitions with the same text count once, for a group has one cluster only"
    parts = metric.pairs.part_clusters
    recur = np.any(parts < metric.pairs.units.min(axis=1) - 1e-9)
    if recur and parts.min() < RECOMMENDED_CLUSTERS:
        yield (
            f"first or last {rule.cluster_noun} recur: a group counts as about "
            f"{parts.min():.1f} of them, {RECOMMENDED_CLUSTERS} or more are better"
        )


def _refusal_rates(every: Sequence[_Grouping], outcome: str) -> Iterator[tuple[str, float]]:
    """The share of each group that is refused in the end, and where a strategy helped, when it was
    first asked.
    """
    for grouping in every:
        for group in grouping.results[outcome]:
            if group.refusal_rate is not None:
                yield group.group, group.refusal_rate
        for group in grouping.results.get(FIRST_REFUSAL, ()):
            if group.value is not None:
                yield FIRST_ASK.format(group.group), group.value


def _of_pairs(pairs: Sequence[model.PairResult], reading: Reading) -> Iterator[str]:
    """Remarks on the pairs of the outcome: rows and names that contradict each other, and spreads
    that are unlike.
    """
    contrary = []
    unlike = []
    for pair in pairs:
        if pair.alarm_only:
            continue
        if CONTRARY in pair.notes and min(pair.p_row, pair.p_cluster or 1.0) < ALPHA:
            contrary.append(f"{pair.group_1} and {pair.group_2}")
        if pair.verdict is model.Verdict.PASS and _spread_p(pair) < UNLIKE:
            unlike.append(pair)
    if contrary:
        yield f"{CONTRARY} ({enumerated(contrary)})"
    for pair in sorted(unlike, key=_spread_p)[:3]:
        more, less = pair.group_1, pair.group_2
        wide, narrow = (float(str(pair.statistics[f"spread_{place}"])) for place in (1, 2))
        if narrow >= wide:
            more, less = less, more
            wide, narrow = narrow, wide
        sizes = (
            f"SD {amount(wide, reading.values.kind)} against {amount(narrow, reading.values.kind)}"
        )
        yield (
            f"{more} spreads more than {less} on {reading.name} ({sizes}, Brown–Forsythe "
            f"{p_equals(_spread_p(pair))}): a way of being treated differently that this verdict "
            "does not judge"
        )


def _of_bins(rows: ScoredRows) -> Iterator[str]:
    """Yield the note on numbers that stand in bins."""
    if rows.design.bins is not None:
        yield (
            f"the numbers of {rows.reading.name} stand in at most 1,000 quantile bins: means and "
            "SDs are exact, ranks and Cliff's δ to the bin"
        )


def _spread_p(pair: model.PairResult) -> float:
    p = pair.statistics.get("spread_p_value")
    if isinstance(p, float):
        return p
    return 1.0


def _rates(every: Sequence[_Grouping]) -> dict[str, model.JSON]:
    """The rates of refusals and of missing answers, where there are any."""
    by_name: dict[str, model.JSON] = {}
    keys = {REFUSAL: "refusals", FIRST_REFUSAL: "first_refusals", NO_ANSWER: "no_answer"}
    for name, key in keys.items():
        rates: dict[str, model.JSON] = {}
        for grouping in every:
            for group in grouping.results.get(name, ()):
                rate = {"rate": group.value, "low": group.low, "high": group.high, "n": group.n}
                rates[group.group] = dict(rate)
        if rates:
            by_name[key] = rates
    return by_name
