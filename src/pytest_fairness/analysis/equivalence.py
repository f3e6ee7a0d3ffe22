"""Are the groups treated alike, up to a margin? Absence of a difference is claimed here, so it has
to be shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness import model
from pytest_fairness.analysis.counts import as_rows
from pytest_fairness.analysis.family import (
    Family,
    Judged,
    LostTrials,
    Member,
    keep_green,
    missing_answers,
    p_lost,
    unequal_refusals,
)
from pytest_fairness.analysis.looks import Look
from pytest_fairness.analysis.parts import (
    BINS,
    AlikeWords,
    Part,
    Parts,
    check_one_table,
)
from pytest_fairness.analysis.policy import (
    Conclusion,
    Rule,
    conclude_pairs,
    judge_equivalence,
    unless_refused,
)
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.readers import Bounds, RateScale, Readers, labels_by
from pytest_fairness.analysis.reading import Reading, ScoredRows, as_columns, check_level, read
from pytest_fairness.analysis.sentences import (
    amount,
    effect_with_interval,
    left_without,
    would_take,
)
from pytest_fairness.errors import UsageError
from pytest_fairness.statistics.arrays import Ints, Membership, read_design
from pytest_fairness.statistics.clusters import Terms
from pytest_fairness.statistics.compare import Metric, describe_groups, two_one_sided
from pytest_fairness.statistics.labelled import standardisers
from pytest_fairness.statistics.pair_table import PairTable
from pytest_fairness.words import confidence, p_equals

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
    each: str | None = None,
    within: str | Sequence[str] | None = None,
    bins: int = BINS,
    kind: str = "auto",
    alpha: float = 0.05,
    correction: str = "bonferroni",
    lower_is_worse: bool | None = None,
    scorers: Mapping[str, Any] | None = None,
    labels: str | None = None,
    _look: Look | None = None,
) -> model.Finding:
    """Test that every two groups of *by* differ by less than *margin* on *outcome*.

    ``margin`` is in the outcome's own unit (for yes/no outcomes a difference of rates, .05 for five
    points), or with ``unit="d"`` in standard deviations. The other arguments are those of
    ``analyze_disparity``; several columns in ``by`` are crossed. With *labels* the differences are
    those of the corrected means, and a standard deviation is that of the labels. With *each* the
    groups are compared within each of its values, and every one has to show it; *within* is for the
    assertion, which reports the plain finding and that within strata, as
    ``analyze_within(analysis="equivalence")`` does.

    Per pair, first match: PASS where two one-sided tests reject at *alpha*, that is, the 1 − 2α
    interval of the difference lies inside ±margin. FAIL where the groups differ (two-sided,
    corrected) and the estimate is beyond the margin; FLAG where they differ and only the interval
    reaches beyond it. INCONCLUSIVE otherwise. That *all* pairs are equivalent needs every one of
    them to show it, so these p-values are not corrected (intersection–union test, Berger 1982);
    those of the differences are.

    Raises FrameError for a table of the wrong shape and UsageError for an argument out of range or
    a categorical outcome.
    """
    if not (margin > 0 and math.isfinite(margin)):
        raise UsageError(f"margin={margin!r}: give the difference that would not matter, above 0")
    if unit not in UNITS:
        raise UsageError(
            f"unit={unit!r}: the margin is in 'outcome' (its own unit) or 'd' (standard deviations)"
        )
    check_level(alpha, correction, below=0.5)
    rule = Rule.at(_look, alpha, correction)
    if _look is not None:
        alpha = _look.green
    columns = as_columns(by)
    check_one_table(each, (within, bins), _look, "equivalence")
    frame = as_rows(frame)
    reading = read(frame, outcome, kind, lower_is_worse, scorers, labels=labels)
    if reading.values.kind is model.OutcomeKind.CATEGORICAL:
        raise UsageError(
            f"outcome {reading.name!r} is categorical: a margin needs numbers or yes and no"
        )
    parts = Parts.of(
        frame, reading, each, outcome=outcome, columns=columns, cluster=cluster, block=block
    )
    margins = _Margins(size=margin, on_d=unit == "d", alpha=alpha)
    every, alone = _compared_parts(parts, margins, rule.confidence)
    rule = parts.rule(rule, every[0].rows.design)
    family = Family([member for grouping in every for member in grouping.members], rule)
    pairs = family.results(_judged(family, every, _look, alpha))
    pairs += alone
    conclusion = conclude_pairs(pairs)
    shown = [pair for pair in pairs if not pair.alarm_only]
    if conclusion.verdict is model.Verdict.PASS:
        conclusion = conclusion._replace(decider=max(shown, key=lambda pair: pair.p_value))
    reasons: dict[str, str] = {}
    for grouping in every:
        reasons |= grouping.reasons
    method = f"none for equivalence (all pairs must show it); {correction} for differences"
    results = parts.results(pairs, reading.name, _ALIKE)
    words = _sentence(conclusion, reading, margin, unit, len(shown), reasons)
    notes = chain(*(grouping.readers.notes() for grouping in every), results.notes(rule))
    return finding_of(
        frame,
        assertion="equivalent",
        conclusion=conclusion,
        sentence=results.sentence(conclusion, f"{conclusion.verdict}: {words}."),
        by=", ".join(columns),
        groups=[*chain.from_iterable(grouping.groups for grouping in every)],
        tested=_in_words,
        notes=tuple(dict.fromkeys(notes)),
        pairs=pairs,
        family={**family.facts(pairs), "alpha": alpha, "method": method},
        **every[0].rows.facts,
        details={
            "margin": margin,
            "margin_unit": unit,
            "kind_inferred": reading.values.why,
            **results.facts(),
            **labels_by(grouping.readers for grouping in every),
        },
    )


#: Words on a part whose groups are all shown to be alike.
_ALIKE = AlikeWords("is shown to be equivalent", "are shown to be equivalent")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Margins:
    """A margin of so much ``size``, in standard deviations where it is ``on_d``, and the level at
    which it is tested.
    """

    size: float
    on_d: bool
    alpha: float

    def compared(self, readers: Readers, metric: Metric) -> PairTable:
        """Return the pairs by these margins. Their p-value, which joins the family, is that of a
        difference.
        """
        pairs = readers.corrected(metric).pairs
        if readers.means is not None:
            pairs = replace(pairs, figures=standardisers(pairs, readers.means))
        table = two_one_sided(pairs, self.size, on_d=self.on_d, alpha=self.alpha)
        unusable = readers.unusable(table)
        tost, difference, low, high = (
            np.where(unusable, np.nan, column)
            for column in (
                table.p_value,
                table.difference,
                table.difference_low,
                table.difference_high,
            )
        )
        return replace(
            table,
            # The effect beside the margin is that of the means; nothing is worse off here by its
            # ranks alone.
            effect=table.effect[:, :1],
            low=table.low[:, :1],
            high=table.high[:, :1],
            effect_names=table.effect_names[:1],
            p_value=table.figures["difference_p_value"],
            difference=difference,
            difference_low=low,
            difference_high=high,
            figures={**table.figures, "tost": tost},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _MarginGroups:
    """The groups of a table, or of a part of it: the outcome, beside it who was refused, and
    missing answers; of each pair so many rows have an outcome (``answered``).
    """

    rows: ScoredRows
    readers: Readers
    refusals: Metric | None
    answered: Ints
    members: tuple[Member, ...]
    groups: tuple[model.GroupResult, ...]
    reasons: Mapping[str, str]

    @classmethod
    def of(
        cls,
        part: Part[Reading],
        design: Membership,
        columns: Sequence[str],
        margins: _Margins,
        confidence: float,
    ) -> _MarginGroups:
        """Return what is compared in *part*, where its rows stand as *design* has them."""
        design = part.named(design)
        by = part.called(" × ".join(columns))
        reading = part.reading
        rows = ScoredRows.of(design, reading, by, Terms(confidence=confidence))
        metric = rows.measure()
        readers = Readers.of(rows)
        table = margins.compared(readers, metric)
        lost, total = rows.unanswered(table)
        without = missing_answers(rows.by, design, rows.missing, confidence)

        def imputed(at: int, high: bool, alike: bool) -> PairTable:
            two = rows.imputed(table, at, high, at_random=alike)
            return margins.compared(Readers.of(two), two.measure(by_block=False))

        outcome_member = Member(
            name=reading.name,
            by=rows.by,
            table=table,
            kind=reading.values.kind,
            decide=readers.decide(partial(judge_equivalence, alpha=margins.alpha), table, _POINTS),
            lost=LostTrials(
                lost=lost, total=total, p_alike=p_lost(without), imputed=imputed, stands=False
            ),
            lower_is_worse=reading.lower_is_worse,
            alarm_only=False,
            mde=np.full(table.first.size, np.nan),
        )
        members = tuple(replace(member, part=part.place) for member in (outcome_member, *without))
        return cls(
            rows=rows,
            readers=readers,
            refusals=rows.refusals(),
            answered=total - lost,
            members=members,
            groups=describe_groups(
                design, metric, metric.kind, refused=design.refused, missing=rows.missing
            ),
            reasons=part.reasons(design, rows.missing),
        )


def _compared_parts(
    parts: Parts[Reading], margins: _Margins, confidence: float
) -> tuple[list[_MarginGroups], list[model.PairResult]]:
    """Return what is compared in each of *parts*, and the results of those that have one group.
    Raises FrameError where all have.
    """
    columns = parts.columns
    every = []
    alone = []
    for part in parts.every:
        if part.each and len(part.frame[list(columns)].drop_duplicates()) < 2:
            alone.append(part.one_group(columns, part.reading.name))
            continue
        design = read_design(part.frame, columns, cluster=parts.cluster, block=parts.block)
        every.append(_MarginGroups.of(part, design, columns, margins, confidence))
    parts.require(every)
    return every, alone


def _judged(
    family: Family, every: Sequence[_MarginGroups], look: Look | None, alpha: float
) -> list[Judged]:
    """Return the judged members of all groupings, in order: pairs whose groups are not refused
    equally often are no evidence of equivalence.
    """
    judged = family.judge()
    place = 0
    for grouping in every:
        outcome = judged[place]
        if grouping.refusals is not None:
            unlike = unequal_refusals(grouping.refusals.pairs)
            for at in np.flatnonzero(unlike).tolist():
                outcome.decisions[at] = unless_refused(outcome.decisions[at])
        keep_green(outcome, look)
        judged[place] = outcome._replace(table=_tested(outcome.table, grouping.answered, alpha))
        place += len(grouping.members)
    return judged


def _bounds(table: PairTable, at: int) -> Bounds:
    """Return the bounds of the difference of a pair, in the outcome's own unit."""
    low, high = float(table.difference_low[at]), float(table.difference_high[at])
    return Bounds(float(table.difference[at]), low, high, float(table.figures["margin"][at]))


_POINTS = RateScale(of_rate=lambda rate: rate, slope=lambda _: 1.0, bounds=_bounds)


def _tested(table: PairTable, n: Ints, alpha: float) -> PairTable:
    """The pairs by the tests of equivalence, in place of those of a difference."""
    tost = table.figures["tost"]
    on = "two one-sided t on " + np.where(table.single, "rows", "cluster means").astype(object)
    by_labels = table.test == "PPI++"
    tested = ~np.isnan(tost)
    p_value = np.nan_to_num(tost, nan=1.0)
    n_1, n_2 = n.T.astype(np.float64)
    columns = {
        "interval_low": table.difference_low,
        "interval_high": table.difference_high,
        "interval_confidence": np.full(p_value.size, 1 - 2 * alpha),
        "standard_error": table.error,
        "df": table.df,
        "difference_corrected_p_value": table.corrected,
        **{
            name: table.figures[name]
            for name in ("margin", "p_lower", "p_upper", "difference_p_value")
        },
    }
    return replace(
        table,
        test=np.where(tested, np.where(by_labels, "two one-sided t, PPI++", on), ""),
        p_row=np.where(tested, table.p_row, 1.0),
        p_value=p_value,
        corrected=p_value,
        figures={
            "n_1": n_1,
            "n_2": n_2,
            **{name: np.where(tested, column, np.nan) for name, column in columns.items()},
        },
    )


def _in_words(pair: model.PairResult) -> tuple[str, str]:
    """The t of the nearer margin, which is that of the larger of the two p-values; and the effect.
    Beside the outcome, of refusals or missing answers, the z of their difference.
    """
    statistics: Any = pair.statistics
    effect = effect_with_interval(
        pair.effect_name, pair.effect, pair.effect_low, pair.effect_high, pair.confidence
    )
    if "margin" not in statistics:
        return f"z = {statistics['z']:.4f}" if "z" in statistics else "", effect
    room = statistics["margin"] - abs(pair.difference or 0.0)
    error = statistics["standard_error"]
    if error:
        t = room / error
    else:
        t = math.copysign(math.inf, room)
    return f"TOST t = {t:.4f}, df = {statistics['df']:.4g}", effect


def _sentence(
    conclusion: Conclusion,
    reading: Reading,
    margin: float,
    unit: str,
    pairs: int,
    missing: Mapping[str, str],
) -> str:
    pair = conclusion.decider
    verdict = conclusion.verdict
    if pair is None:
        return "there are no two groups to compare"
    if pair.alarm_only:
        return (
            f"no alarm on {reading.name} itself, but "
            f"{left_without(pair, 'an outcome', 'trials', missing)}"
        )
    if "margin" not in pair.statistics or pair.reason in (
        model.Reason.RAGGED,
        model.Reason.UNSCORED,
    ):
        return (
            f"{pair.group_1} and {pair.group_2} cannot be compared on {pair.metric}; it takes "
            f"{pair.needs}"
        )
    allowed = amount(margin, reading.values.kind, reading.unit)
    if unit == "d":
        allowed = f"{margin:g} d"
    gap, sure = _gap(pair, reading)
    if verdict is model.Verdict.PASS:
        count = "the two groups"
        if pairs != 1:
            count = f"all {pairs} pairs of groups"
        return f"{count} are equivalent within ±{allowed}; the widest apart: {gap} ({sure})"
    if verdict is not model.Verdict.INCONCLUSIVE:
        return f"{gap}, where ±{allowed} would not matter ({sure})"
    if pair.reason is model.Reason.DIFFERENTIAL_REFUSAL:
        return f"{gap}, within ±{allowed}, but are not refused equally often ({sure})"
    if pair.reason is model.Reason.READER:
        return (
            f"{gap}, within ±{allowed}, but a model read the trials and no labels show how well "
            f"({sure}){would_take(pair)}"
        )
    return f"{gap}; equivalence within ±{allowed} is not shown ({sure}){would_take(pair)}"


def _gap(pair: model.PairResult, reading: Reading) -> tuple[str, str]:
    """By how much the lower group of *pair* is lower, and how sure that is."""
    kind = reading.values.kind
    first = pair.group_1
    second = pair.group_2
    apart = pair.difference or 0.0
    low, high = (float(str(pair.statistics[name])) for name in ("interval_low", "interval_high"))
    if apart > 0:
        first, second = second, first
        apart, low, high = -apart, -high, -low
    gap = f"{first} is {amount(-apart, kind, reading.unit)} lower than {second} on {pair.metric}"
    if apart == 0:
        gap = f"{first} and {second} are alike on {pair.metric}"
    sure = f"TOST {p_equals(pair.p_value)}"
    if low < apart < high:
        level = confidence(float(str(pair.statistics["interval_confidence"])))
        ends = f"{amount(low, kind)} to {amount(high, kind)}"
        sure = f"{level} interval of the difference {ends}, {sure}"
    return gap, sure
