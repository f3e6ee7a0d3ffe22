"""Does a protected group get the favourable decision at less than four fifths of the highest rate?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pytest_fairness import model
from pytest_fairness.analysis.counts import countable, readable
from pytest_fairness.analysis.family import Family, LostTrials, Member, missing_answers, p_lost
from pytest_fairness.analysis.favourable import Decisions, read_decisions
from pytest_fairness.analysis.looks import LEAST_RATIO, Look
from pytest_fairness.analysis.parts import (
    BINS,
    AlikeWords,
    Part,
    Parts,
    check_one_table,
)
from pytest_fairness.analysis.policy import (
    MAX_RAGGED,
    PRACTICAL,
    TOO_LITTLE,
    Conclusion,
    Decision,
    Rule,
    about_names,
    capped,
    conclude_pairs,
    first_match,
    judge_ratio,
    not_yet_green,
    undecided,
)
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.readers import Bounds, RateScale, Readers, labels_by
from pytest_fairness.analysis.reading import Reading, ScoredRows, as_columns, check_level
from pytest_fairness.analysis.sentences import (
    effect_with_interval,
    left_without,
    lost_words,
    would_take,
)
from pytest_fairness.analysis.unreadable_rows import naming_rows
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.statistics.arrays import (
    Bools,
    Coded,
    Floats,
    Ints,
    Membership,
    require_frame,
    sums,
    taken,
)
from pytest_fairness.statistics.clusters import Terms
from pytest_fairness.statistics.compare import Metric, describe_groups
from pytest_fairness.statistics.labelled import (
    LabelledMeans,
    LabelledRate,
    labelled_rate,
    ratio_by_labels,
)
from pytest_fairness.statistics.layout import Pairs
from pytest_fairness.statistics.pair_table import PairTable, combine
from pytest_fairness.statistics.proportions import (
    SMALLEST_SHARE,
    ImpactRatio,
    StandardisedRates,
    chance_of,
    deviations,
    impact_ratio,
    reference_group,
    standardised_ratio,
)
from pytest_fairness.words import confidence, enumerated, p_equals, percent

HIGHEST = "highest"
FOUR_FIFTHS = 0.8


def analyze_four_fifths(
    frame: Any,
    outcome: str | Callable[..., Any],
    by: str | Sequence[str],
    *,
    cluster: str | None = "name",
    block: str | None = "template",
    each: str | None = None,
    within: str | Sequence[str] | None = None,
    bins: int = BINS,
    favourable: object = True,
    reference: str | None = None,
    alpha: float = 0.05,
    correction: str = "bonferroni",
    practical_ratio: float = PRACTICAL,
    bare_ratio: bool = False,
    scorers: Mapping[str, Any] | None = None,
    labels: str | None = None,
    _look: Look | None = None,
    _in_strata: bool = False,
) -> model.Finding:
    """Compare the rate of the favourable decision of each group with that of the reference group.

    Who was refused was not selected. FAIL where the ratio is below four fifths, significantly after
    correction, and one favourable decision more would not turn the order; FLAG where it is at least
    four fifths, and the rates differ significantly and by what matters in practice; PASS where the
    lower end of every ratio's 90 % interval (on clusters) reaches two thirds.

    Args:
        frame, outcome, by, cluster, block, each, alpha, correction, scorers: as for
            ``analyze_disparity``; with *each* the reference is that of each part.
        within, bins: columns in which people may legitimately differ, in strata of which the
            assertion compares a second time, as ``analyze_within(analysis="four_fifths")`` does:
            the ratio there is Mantel and Haenszel's.
        favourable: the value of *outcome* that is the favourable decision, a collection of such
            values, or a function of the value that says so.
        reference: the group that others are compared with, declared beforehand; ``None`` or
            ``"highest"`` for the group with the highest rate among those of at least 2 % of the
            data. The data then choose it, so all pairs of groups count as the family.
        practical_ratio: a ratio from here on does not matter in practice (29 CFR 1607.4(D): "in
            both statistical and practical terms"), unless nearly everybody is favoured, over .9 of
            one group, and the odds ratio has d of .2 or more: .99 against .891 is a ratio of .9 and
            ten times as many rejected.
        labels: as for ``analyze_disparity``; a label is favourable as the outcome is, and the
            ratios are those of the corrected rates.
        bare_ratio: judge by the ratio alone (below four fifths FAILs, anything else PASSes), for
            readers of the literal rule. With few decisions that is no more than a toss of a coin,
            and the finding says so.

    Raises:
        FrameError: as for ``analyze_disparity``, and for a reference that is no group of the table.
        UsageError: an argument is out of range, or no row has the favourable value and none could.
    """
    columns = as_columns(by)
    check_level(alpha, correction)
    check_one_table(each, (within, bins), _look, "four_fifths")
    _check_terms(practical_ratio, in_strata=_in_strata, others=(labels, bare_ratio or None))
    source = frame
    frame = countable(
        frame, outcome, columns, cluster, block, within=(each,), labels=labels, alike=True
    )
    frame, outcome = readable(frame, outcome, labels)
    with naming_rows(source, outcome):
        decisions = read_decisions(require_frame(frame), outcome, favourable, scorers, labels)
    declared = reference
    if reference == HIGHEST:
        declared = None
    if declared is not None and len(columns) > 1:
        raise UsageError(
            "reference=… names one group, but by=… names several classes: analyse them one by one"
        )
    rule = Rule.at(_look, alpha, correction)
    parts = Parts.of(
        frame, decisions, each, outcome=outcome, columns=columns, cluster=cluster, block=block
    )
    asked = _Asked(
        reference=declared,
        practical=practical_ratio,
        bare=bare_ratio,
        in_strata=_in_strata,
        confidence=rule.confidence,
    )
    every, alone = _compared_parts(parts, asked)
    rule = parts.rule(rule, every[0].design)
    members = [compared.member for compared in every]
    for compared in every:
        members += compared.unanswered(rule.confidence)
    family = Family(members, rule)
    pairs = family.results(family.judge())
    pairs += alone
    conclusion = conclude_pairs(pairs)
    called = ", ".join(columns)
    missing: dict[str, str] = {}
    for compared in every:
        missing |= compared.part.reasons(compared.design, compared.rows.missing)
    results = parts.results(pairs, decisions.name, _KEPT)
    sentence = four_fifths_sentence(
        conclusion,
        by=called,
        clusters=rule.cluster_noun,
        outcome=decisions.name,
        cases=rule.case_noun,
        missing=missing,
    )
    notes = [
        *_notes(every, bare_ratio, missing, rule.case_noun),
        *_trifles(pairs),
        *every[0].readers.notes(),
    ]
    if not bare_ratio:
        notes += results.notes(rule)
    return finding_of(
        frame,
        assertion="four_fifths",
        conclusion=conclusion,
        sentence=results.sentence(conclusion, sentence),
        by=called,
        groups=[group for compared in every for group in compared.groups],
        tested=_in_words,
        notes=tuple(dict.fromkeys(notes)),
        pairs=pairs,
        family={**family.facts(pairs), "alpha": None if bare_ratio else rule.alpha},
        **every[0].rows.facts,
        details={
            "reference": {compared.rows.by: compared.reference for compared in every},
            "reference_declared": declared is not None,
            "practical_ratio": practical_ratio,
            "mode": "bare ratio" if bare_ratio else "ratio with significance and flip-flop",
            **results.facts(),
            **labels_by(compared.readers for compared in every),
        },
    )


def _check_terms(practical: float, *, in_strata: bool, others: Sequence[object]) -> None:
    """Raise UsageError for a *practical* ratio that is none, and for *others* that strata do not go
    with.
    """
    if not 0 < practical <= 1:
        raise UsageError(f"practical_ratio={practical!r}: give a ratio above 0 and up to 1, as .9")
    if in_strata and any(other is not None for other in others):
        raise UsageError(
            "within= weighs the rates of strata, which neither labels= corrects nor bare_ratio= "
            "reads: leave one of them out"
        )


#: Words on a part in which every ratio is high enough.
_KEPT = AlikeWords("keeps four fifths", "keep four fifths")


# ---------------------------------------------------------------- pairs with the reference


@dataclass(frozen=True)
class _RatioRule:
    """The rule on one pair with the reference, where the data allow it to be judged.

    ``favourable`` and ``decided`` count the decisions of each group.
    """

    favourable: Sequence[float]
    decided: Sequence[int]
    practical: float
    bare: bool

    def decide(self, table: PairTable, rule: Rule) -> list[Decision]:
        """Decide on all pairs of *table*."""
        decisions = first_match(table, rule, (True, self.judge))
        return about_names(table, rule, not_yet_green(rule, decisions, table.constant))

    def judge(self, table: PairTable, place: int, rule: Rule) -> Decision:
        """Decide on the pair in row *place* of *table*."""
        ratio = _ratio(table, place, rule.confidence)
        if ratio is None and _CORRECTED in table.figures:
            return _without_ratio(table, place)
        if ratio is None and min(_decisions(table, place)[1::2]):
            return undecided(model.Reason.RAGGED, "a stratum that holds both groups")
        if ratio is None:
            fewest = int(np.argmin(table.trials[place]))
            group = int((table.first, table.second)[fewest][place])
            return undecided(
                model.Reason.N, f"decisions about {table.labels[group]}, which has none"
            )
        if table.ragged[place] > MAX_RAGGED:
            return undecided(
                model.Reason.RAGGED,
                "both groups in every block, or block=None if blocks mean nothing here",
            )
        decision = judge_ratio(
            ratio,
            float(table.corrected[place]),
            alpha=rule.alpha,
            practical=self.practical,
            bare=self.bare,
            cases=rule.case_noun,
        )
        if decision.reason is model.Reason.SMALL_NUMBERS:
            cases = rule.case_noun
            if _CORRECTED in table.figures:
                cases = f"{cases} and labels"
            note = self._by_chance(ratio, table, place, cases)
            return replace(decision, notes=(*decision.notes, note))
        small = table.trials[place, 1] < SMALLEST_SHARE * sum(self.decided)
        if small and decision.verdict is model.Verdict.PASS:
            return undecided(
                model.Reason.N, "a reference group of at least 2 % of the data", *decision.notes
            )
        if decision.verdict is model.Verdict.FAIL and table.alone[place]:
            return capped(table, place, rule)
        return decision

    def _by_chance(self, ratio: ImpactRatio, table: PairTable, place: int, cases: str) -> str:
        """Return how often equal treatment brings a ratio as low as this."""
        chance = chance_of(
            ratio.ratio,
            self.favourable,
            self.decided,
            design_effect=float(table.figures["design_effect"][place]),
        )
        share = "under 1 %"
        if chance >= 0.005:
            share = percent(chance, 0)
        return f"equal treatment brings a ratio this low in {share} of audits with as many {cases}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The terms of a comparison: the ``reference``, where it was declared; the ratio that does not
    matter in ``practice``; the ``bare`` ratio alone; ``in_strata``, that of rates brought to the
    same strata.
    """

    reference: str | None
    practical: float
    bare: bool
    in_strata: bool
    confidence: float


def _without_reference(part: Part[Decisions], by: str, reference: str) -> model.PairResult:
    """Return the result of a part that lacks the *reference*."""
    needs = f"the reference group {reference}"
    return part.without_pair(by, part.reading.name, "every group", reference, needs)


class _Decided(NamedTuple):
    """The decisions about the groups of one class or intersection: the pairs with the ``reference``
    (None without any decision), which is the last of the groups of the ``rows`` and so the second
    of its pairs; the ``design`` and the ``readers`` have the groups in their own order."""

    member: Member
    rows: ScoredRows
    readers: Readers
    design: Membership
    reference: str | None
    groups: list[model.GroupResult]
    part: Part[Decisions]

    def unanswered(self, confidence: float) -> list[Member]:
        """Return missing decisions as a member of the family; none without any."""
        missing = missing_answers(self.rows.by, self.design, self.rows.missing, confidence)
        return [replace(member, part=self.member.part) for member in missing]


def _compared_parts(
    parts: Parts[Decisions], asked: _Asked
) -> tuple[list[_Decided], list[model.PairResult]]:
    """Return what is compared in each of *parts*, and the results of those in which there is
    nothing to compare. Raises FrameError where that is so of all.
    """
    every = []
    alone = parts.alone(parts.every[0].reading.name)
    declared = asked.reference
    for part, by, design in parts.groupings():
        if part.each and declared is not None and declared not in design.group.labels:
            alone.append(_without_reference(part, by, declared))
        else:
            every.append(_grouping(part, by, design, asked))
    parts.require(every)
    return every, alone


def _grouping(part: Part[Decisions], by: str, design: Membership, asked: _Asked) -> _Decided:
    """Count and test; who was refused got no favourable decision and counts. Where the data choose
    the reference, all pairs count in the family. Raises FrameError for a reference that is no
    group."""
    decisions = part.reading
    reference = asked.reference
    confidence = asked.confidence
    if reference is not None:
        reference = part.group_called(reference)
    design = part.named(design)
    labels = design.group.labels
    declared = reference is not None
    if declared and reference not in labels:
        raise FrameError(
            f"reference={reference!r} is no group of {by!r}; it has {', '.join(map(repr, labels))}"
        )
    by = part.called(by)
    own_order = _rows(by, design, decisions, confidence)
    used = own_order.used
    x, n = _counts(design, own_order.reading.values.values, used)
    readers = Readers.of(own_order)
    favourable = _favourable(readers, x, n)
    if reference is None:
        highest = reference_group(favourable, n)
        if highest is not None:
            reference = labels[highest]
    ordered = tuple(sorted(labels, key=lambda label: (label == reference, labels.index(label))))
    places = np.array(list(map(ordered.index, labels)), dtype=np.intp)
    last = replace(design, group=Coded(places[design.group.codes], ordered))
    rows = replace(own_order, design=last)
    metric = rows.measure(by_block=False)
    reported = np.zeros(0, dtype=np.intp)
    if reference is not None:
        reported = np.flatnonzero(metric.pairs.second == len(labels) - 1)
    of_last = Readers.of(rows)
    corrected = of_last.corrected(metric)
    table = _compared(of_last, corrected, reported, in_strata=asked.in_strata)
    lost, total = rows.unanswered(table)

    def imputed(at: int, high: bool, alike: bool) -> PairTable:
        two = Readers.of(rows.imputed(table, at, high, at_random=alike))
        of_two = two.corrected(two.rows.measure(by_block=False))
        return _compared(two, of_two, np.zeros(1, dtype=np.intp), in_strata=asked.in_strata)

    ratio_rule = _RatioRule(favourable, n, asked.practical, asked.bare)
    decide: Callable[[PairTable, Rule], list[Decision]] = ratio_rule.decide
    judged_lost = lost
    if asked.bare:
        judged_lost = lost[:0]
    if not asked.bare or readers.means is not None:
        decide = of_last.decide(decide, table, _log_ratio(confidence))
    unreported = np.zeros(0)
    if not declared:
        unreported = np.delete(_selection_p(corrected), reported)
    p_of_lost = np.zeros(0)
    if lost.any():
        p_of_lost = p_lost(missing_answers(by, last, ~used, confidence))[reported]
    member = Member(
        name=decisions.name,
        by=by,
        table=table,
        metric=metric,
        kind=metric.kind,
        decide=decide,
        report=lambda table: [
            {"by": by, **_figures(table, at, confidence)} for at in range(table.first.size)
        ],
        spec_tests=metric.pairs.first.size,
        unreported=unreported,
        lost=LostTrials(lost=judged_lost, total=total, p_alike=p_of_lost, imputed=imputed),
        noun="decision",
        lower_is_worse=True,
        favourable=1.0,
        alarm_only=False,
        part=part.place,
    )
    groups = describe_groups(
        last,
        metric,
        metric.kind,
        refused=_refused(design),
        missing=~used,
        refused_count=True,
    )
    by_name = sorted(groups, key=lambda group: group.group)
    return _Decided(member, rows, readers, design, reference, by_name, part)


def _refused(design: Membership) -> Bools:
    """Return who was refused, and so not selected."""
    return design.refused & ~design.undetermined


def _rows(by: str, design: Membership, decisions: Decisions, confidence: float) -> ScoredRows:
    """Return the decisions on the groups of *design*: a refusal is an unfavourable one, whatever
    anybody reads in it.
    """
    refused = _refused(design)
    used = (decisions.present & ~design.undetermined) | refused
    readers = decisions.readers
    if readers.labels is not None:
        readers = replace(readers, labels=np.where(refused, np.nan, readers.labels))
    yes = np.where(refused, 0.0, decisions.yes)
    reading = Reading.of_decisions(decisions.name, yes, readers, refused)
    return ScoredRows(
        by=by,
        reading=reading,
        design=design,
        used=used,
        missing=~used,
        terms=Terms(confidence=confidence),
    )


def _favourable(readers: Readers, x: Sequence[int], n: Sequence[int]) -> Sequence[float]:
    """Return how many decisions about each group are favourable: as they were read (*x* of *n*), or
    by the labels; none of a group whose labels tell no rate, unless that is so of all.
    """
    rates = list(map(readers.rate_of, range(len(n))))
    if not any(rates):
        return x
    return [rate.rate * rate.rows if rate is not None else 0.0 for rate in rates]


def _counts(design: Membership, values: Floats, used: Bools) -> tuple[list[int], list[int]]:
    """The favourable decisions about each group, and all."""
    return design.count(used & (values == 1)).tolist(), design.count(used).tolist()


def _compared(readers: Readers, metric: Metric, reported: Ints, *, in_strata: bool) -> PairTable:
    """The *reported* pairs, in whose decisions 1 is favourable, of a *metric* that the *readers*'
    labels correct where there are any; with rates brought to the same strata where *in_strata*."""
    rows = readers.rows
    x, n = (
        np.array(some, float)
        for some in _counts(rows.design, rows.reading.values.values, rows.used)
    )
    every = metric.pairs
    table = every.spread(
        Pairs(first=every.first[reported], second=every.second[reported]), reported
    )
    (x1, n1), (x2, n2) = ((x[side], n[side]) for side in (table.first, table.second))
    figures = {"favourable_1": x1, "n_1": n1, "favourable_2": x2, "n_2": n2}
    difference = x1 / np.maximum(n1, 1) - x2 / np.maximum(n2, 1)
    if readers.means is not None:
        difference = table.difference
        figures |= _by_labels(table, readers.means)
    if in_strata:
        standardised = _by_strata(rows, table)
        difference = standardised["rate_1"] - standardised["rate_2"]
        figures |= standardised
    return replace(
        table,
        p_value=_selection_p(metric)[reported],
        difference=difference,
        trials=np.stack([n1, n2], axis=1),
        figures={**table.figures, **figures},
    )


_CORRECTED = "corrected_rate_1"
_STANDARDISED = "standardised_log_variance"


def _by_strata(rows: ScoredRows, table: PairTable) -> dict[str, Floats]:
    """Return the rates of each pair, brought to the strata that hold both groups."""
    design = rows.design
    places = design.group.codes * design.blocks + design.block
    counts = []
    for chosen in (rows.used & (rows.reading.values.values == 1), rows.used):
        weight = taken(design.weight, chosen)
        of_cells = sums(places[chosen], weight, len(design.group.labels) * design.blocks)
        counts.append(of_cells.reshape(-1, design.blocks))
    x, n = counts
    figures = []
    for pair in np.stack([table.first, table.second], axis=1):
        standardised = StandardisedRates(x=x[pair], n=n[pair])
        figures.append([*standardised.rates, standardised.log_variance])
    columns = np.array(figures, dtype=np.float64).reshape(-1, 3).T
    return dict(zip(("rate_1", "rate_2", _STANDARDISED), columns, strict=True))


def _by_labels(table: PairTable, means: LabelledMeans) -> dict[str, Floats]:
    """Return what the labels of each pair come to, and how much wider the rates spread by them than
    those of as many independent decisions."""
    figures = {}
    inflation = []
    for place, side in (("1", table.first), ("2", table.second)):
        rate = means.mean[side]
        figures[f"corrected_rate_{place}"] = rate
        figures[f"variance_{place}"] = means.variance[side]
        figures[f"df_{place}"] = means.df[side]
        figures[f"labels_{place}"] = means.labelled[side].astype(np.float64)
        figures[f"least_{place}"] = means.least[side]
        spread = np.maximum(rate * (1 - rate), 1e-6)
        inflation.append(means.variance[side] * table.trials[:, int(place) - 1] / spread)
    figures["design_effect"] = np.mean(inflation, axis=0)
    return figures


def _selection_p(metric: Metric) -> Floats:
    """The p-value of every pair: of z, the difference in pooled standard deviations, where there is
    one block (Fisher's where few are expected), of Cochran–Mantel–Haenszel over several; and not
    below that of the clusters."""
    table = metric.pairs
    if not table.figures or metric.layout is None or metric.layout.blocks > 1:
        return table.p_value
    exact = np.array([test.startswith("Fisher") for test in table.test], dtype=np.bool_)
    row = np.where(exact | table.alone, table.p_row, table.figures["spec_p_value"])
    return np.nan_to_num(combine(row, table.p_cluster), nan=1.0)


def _ratio(table: PairTable, at: int, confidence: float) -> ImpactRatio | None:
    """None where one of the groups has no decisions, or labels tell no rate of it."""
    if _CORRECTED in table.figures:
        first, second = (_labelled_rate(table, at, place) for place in (1, 2))
        if first is None or second is None:
            return None
        return ratio_by_labels(first, second, confidence)
    x1, n1, x2, n2 = _decisions(table, at)
    if not n1 or not n2:
        return None
    if _STANDARDISED in table.figures:
        return _ratio_in_strata(table, at, (n1, n2), confidence)
    return impact_ratio(
        x1,
        n1,
        x2,
        n2,
        design_effect=float(table.figures["design_effect"][at]),
        df=float(table.df[at]),
        confidence=confidence,
    )


def _ratio_in_strata(
    table: PairTable, at: int, rows: tuple[int, int], confidence: float
) -> ImpactRatio | None:
    """Return the ratio of the standardised rates of a pair; None where no stratum holds both."""
    rates = float(table.figures["rate_1"][at]), float(table.figures["rate_2"][at])
    if np.isnan(rates).any():
        return None
    return standardised_ratio(
        rates,
        rows,
        float(table.figures[_STANDARDISED][at]),
        design_effect=float(table.figures["design_effect"][at]),
        df=float(table.df[at]),
        confidence=confidence,
    )


def _decisions(table: PairTable, at: int) -> tuple[int, int, int, int]:
    """Return the favourable decisions about each group of a pair, and all, as they were read."""
    x1, n1, x2, n2 = (
        int(table.figures[key][at]) for key in ("favourable_1", "n_1", "favourable_2", "n_2")
    )
    return x1, n1, x2, n2


def _labelled_rate(table: PairTable, at: int, place: int) -> LabelledRate | None:
    """Return the rate of the first or second group of a pair by its labels; None where they tell
    none.
    """
    rate, variance, df, least, rows = (
        float(table.figures[f"{name}_{place}"][at])
        for name in ("corrected_rate", "variance", "df", "least", "n")
    )
    return labelled_rate(rate, variance, df, least=least, rows=rows)


def _without_ratio(table: PairTable, at: int) -> Decision:
    """Return that labels tell no ratio of the pair at a place, and why."""
    why = []
    for place, side in ((1, table.first), (2, table.second)):
        if _labelled_rate(table, at, place) is not None:
            continue
        group = table.labels[side[at]]
        rate = float(table.figures[f"corrected_rate_{place}"][at])
        if np.isnan(rate):
            why.append(f"the labels of {group} are too few, or all alike, to correct its rate")
        else:
            why.append(
                f"by its {table.figures[f'labels_{place}'][at]:.0f} labels {group} has a favourable "
                f"rate of {percent(rate, 1)}, less than half a label"
            )
    note = f"{enumerated(why)}: that makes no ratio"
    return undecided(model.Reason.READER, "more labels a group", note)


def _log_ratio(confidence: float) -> RateScale:
    """Return the scale of log rates, on which four fifths and two thirds bound a difference."""

    def bounds(table: PairTable, at: int) -> Bounds | None:
        ratio = _ratio(table, at, confidence)
        if ratio is None or not ratio.low > 0:
            return None
        estimate, low, high = map(math.log, (ratio.ratio, ratio.low, ratio.high))
        if _is_first_higher(table, at):
            estimate, low, high = -estimate, -high, -low
        return Bounds(estimate, low, high, -math.log(LEAST_RATIO), -math.log(FOUR_FIFTHS))

    return RateScale(of_rate=math.log, slope=lambda rate: 1 / rate, bounds=bounds)


def _is_first_higher(table: PairTable, at: int) -> bool:
    """Return whether the first group of a pair has the higher rate."""
    if _STANDARDISED in table.figures:
        return bool(table.figures["rate_1"][at] > table.figures["rate_2"][at])
    x1, n1, x2, n2 = _decisions(table, at)
    return x1 * n2 > x2 * n1


def _figures(table: PairTable, at: int, confidence: float) -> dict[str, model.JSON]:
    """Return what is reported of a pair beside its verdict."""
    ratio = _ratio(table, at, confidence)
    if ratio is None:
        return {}
    intervals: dict[str, model.JSON] = {
        "impact_ratio": ratio.ratio,
        "impact_ratio_low": ratio.ratio_low,
        "impact_ratio_high": ratio.ratio_high,
        "clustered_impact_ratio_low": ratio.low,
        "clustered_impact_ratio_high": ratio.high,
    }
    significance = {"standard_deviations": deviations(float(table.p_value[at]))}
    rule = {
        "shortfall": ratio.shortfall,
        "flip_flop": ratio.flip_flop,
        "below_four_fifths": ratio.below,
        "design_effect": float(table.figures["design_effect"][at]),
    }
    if _CORRECTED in table.figures:
        return intervals | _labelled_figures(table, at, ratio) | significance | rule
    x1, n1, x2, n2 = _decisions(table, at)
    if _STANDARDISED in table.figures:
        rates: dict[str, model.JSON] = {
            "rate_1": float(table.figures["rate_1"][at]),
            "n_1": n1,
            "plain_rate_1": x1 / n1,
            "rate_2": float(table.figures["rate_2"][at]),
            "n_2": n2,
            "plain_rate_2": x2 / n2,
        }
        return {**intervals, **rates, **significance, **rule}
    z = ratio.z
    if _is_first_higher(table, at):
        z = -ratio.z
    return {
        **intervals,
        "favourable_1": x1,
        "n_1": n1,
        "rate_1": x1 / n1,
        "favourable_2": x2,
        "n_2": n2,
        "rate_2": x2 / n2,
        "z": z,
        **significance,
        "fisher_p_value": ratio.fisher,
        "smallest_expected_count": ratio.smallest_expected,
        **rule,
        "odds_ratio": float(table.figures["odds_ratio"][at]),
        "cohens_h": float(table.figures["cohens_h"][at]),
    }


def _labelled_figures(table: PairTable, at: int, ratio: ImpactRatio) -> dict[str, model.JSON]:
    """Return the rates of a pair by its labels, beside those that were read, and t."""
    figures: dict[str, model.JSON] = {}
    for place in (1, 2):
        rows = int(table.figures[f"n_{place}"][at])
        figures[f"rate_{place}"] = float(table.figures[f"corrected_rate_{place}"][at])
        figures[f"n_{place}"] = rows
        figures[f"labels_{place}"] = int(table.figures[f"labels_{place}"][at])
        figures[f"read_rate_{place}"] = float(table.figures[f"favourable_{place}"][at]) / rows
    sign = float(np.sign(table.difference[at]))
    return {**figures, "t": sign * abs(ratio.z)}


# ---------------------------------------------------------------- words


def four_fifths_sentence(
    conclusion: Conclusion,
    *,
    by: str,
    clusters: str,
    outcome: str = "the decision",
    cases: str = "cases",
    missing: Mapping[str, str] | None = None,
) -> str:
    """Return who gets the favourable decision how often, the ratio, and how sure that is."""
    verdict, reason, decider = conclusion
    if decider is not None and decider.alarm_only:
        return (
            f"{verdict}: no alarm on {outcome} itself, but "
            f"{left_without(decider, 'a decision', cases, missing or {})}."
        )
    if decider is not None and reason is model.Reason.READER and _without(decider):
        return f"{verdict}: {'; '.join(decider.notes)}{would_take(decider)}."
    if decider is None or _without(decider):
        needs = would_take(decider, ": it would take ")
        return f"{verdict}: there are no two groups of {by} with decisions to compare{needs}."
    s = _numbers(decider)
    if s["rate_1"] == s["rate_2"] == 0:
        return (
            f"{verdict}: no group of {by} is favoured on {decider.metric} at all, so there is no "
            "ratio."
        )
    text = f"{verdict}: {_rates(decider, s)}, {_side(decider, verdict)} ({_certainty(decider, s)})"
    if verdict is model.Verdict.PASS:
        return f"{text}; no two groups of {by} are further apart."
    if verdict is model.Verdict.INCONCLUSIVE:
        because = [text, *_because(reason, decider, cases)]
        return f"{'; '.join(because)}{would_take(decider)}."
    lack = ""
    if s["shortfall"] >= 0.05:
        worse = decider.worse_off or decider.group_1
        lack = f"; at equal rates {worse} would have {s['shortfall']:.1f} more"
    basis = ""
    if clusters != "rows":
        basis = f"; judged with {clusters} as the unit"
    return f"{text}{lack}{basis}."


def _because(reason: model.Reason | None, decider: model.PairResult, cases: str) -> Iterator[str]:
    """Yield why nothing is decided, where that is to be said."""
    notes = "; ".join(decider.notes).removeprefix("below four fifths, but ")
    if reason is model.Reason.UNSCORED:
        yield f"too many {cases} have no decision"
    elif reason is model.Reason.READER:
        yield f"but a model read the {cases} and no labels show how well"
    elif notes:
        yield notes


def _without(decider: model.PairResult) -> bool:
    """Return whether there is no ratio of a pair."""
    return "impact_ratio" not in decider.statistics


def _rates(pair: model.PairResult, numbers: Mapping[str, float]) -> str:
    """Return both favourable rates, the lower first, and their ratio."""
    worse, better = pair.group_1, pair.group_2
    worse_rate, better_rate = _rate(numbers, 1), _rate(numbers, 2)
    turned = pair.worse_off == pair.group_2
    if "plain_rate_1" in numbers:
        turned = numbers["rate_1"] > numbers["rate_2"]
    if turned:
        worse, better = better, worse
        worse_rate, better_rate = better_rate, worse_rate
    return (
        f"the favourable rate of {worse} on {pair.metric} is {worse_rate}, that of {better} "
        f"{better_rate}: an impact ratio of {numbers['impact_ratio']:.2f}"
    )


def _rate(numbers: Mapping[str, float], place: int) -> str:
    """Return the rate of the first or second group with its counts: ``91.7 % (110 of 120)``, or
    with its labels.
    """
    cases = numbers[f"n_{place}"]
    if f"labels_{place}" in numbers:
        labels = numbers[f"labels_{place}"]
        return (
            f"{percent(numbers[f'rate_{place}'], 1)} (by labels of {labels:,.0f} of {cases:,.0f})"
        )
    if f"plain_rate_{place}" in numbers:
        plain = percent(numbers[f"plain_rate_{place}"], 1)
        return f"{percent(numbers[f'rate_{place}'], 1)} at equal strata ({plain} of {cases:,.0f})"
    favourable = numbers[f"favourable_{place}"]
    return f"{percent(numbers[f'rate_{place}'], 1)} ({favourable:,.0f} of {cases:,.0f})"


def _side(decider: model.PairResult, verdict: model.Verdict) -> str:
    """Return on which side of four fifths the ratio is."""
    if decider.statistics["below_four_fifths"] is True:
        side = "below four fifths"
    elif verdict is model.Verdict.FLAG:
        side = "at least four fifths, but apart by more than chance"
    else:
        side = "at least four fifths"
    if TOO_LITTLE in decider.notes:
        side += f", {TOO_LITTLE}"
    return side


def _certainty(decider: model.PairResult, numbers: Mapping[str, float]) -> str:
    """Return the interval of the ratio, where it holds the ratio, and p."""
    corrected = f"corrected {p_equals(decider.corrected_p_value)}"
    low, high = (numbers[f"clustered_impact_ratio_{end}"] for end in ("low", "high"))
    if low < numbers["impact_ratio"] < high:
        level = confidence(decider.confidence)
        return f"{level} interval {low:.2f} to {high:.2f}, {corrected}"
    return corrected


def _in_words(pair: model.PairResult) -> tuple[str, str]:
    numbers = _numbers(pair)
    effect = effect_with_interval(
        pair.effect_name, pair.effect, pair.effect_low, pair.effect_high, pair.confidence
    )
    if "impact_ratio" in numbers:
        effect = (
            "impact ratio = {impact_ratio:.3f} (95 % interval {impact_ratio_low:.3f} to "
            "{impact_ratio_high:.3f})"
        ).format(**numbers)
    if "t" in numbers:
        return f"t = {numbers['t']:.4f} (PPI++)", effect
    if "z" in numbers:
        return f"z = {numbers['z']:.4f} SD", effect
    return "", effect


def _numbers(pair: model.PairResult) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in pair.statistics.items()
        if isinstance(value, (int, float))
    }


def _notes(
    every: Sequence[_Decided], bare: bool, missing: Mapping[str, str], cases: str
) -> Iterator[str]:
    if bare:
        yield (
            "judged by the bare ratio: with few decisions it falls below four fifths by chance "
            "alone (for four "
            "groups of 100 and a rate of one half, in about 40 % of fair audits)"
        )
    if missing:
        lost = int(every[0].design.count(every[0].rows.missing).sum())
        yield lost_words(lost, cases, "decision", missing)
    for compared in every:
        least = SMALLEST_SHARE * sum(group.n for group in compared.groups)
        tiny = [group.group for group in compared.groups if 0 < group.n < least]
        if tiny and compared.reference is not None:
            yield f"under 2 % of the data, so never the reference: {', '.join(tiny)}"
        if compared.member.metric is not None and compared.member.metric.copies_dropped:
            yield (
                "repetitions with the same text count once in the tests, for a group has one "
                "cluster only"
            )


def _trifles(pairs: Sequence[model.PairResult]) -> Iterator[str]:
    """Yield which pairs differ beyond chance, and too little to matter in practice."""
    trifles = [f"{pair.group_1} and {pair.group_2}" for pair in pairs if TOO_LITTLE in pair.notes]
    if trifles:
        yield f"{TOO_LITTLE}: {enumerated(trifles)}"
