"""Sections on who is chosen over whom, how often each group is, and what the mitigation changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from pytest_fairness.analysis.choice_effects import GroupShare
from pytest_fairness.analysis.selection_ratios import SelectionRatio
from pytest_fairness.reports import Entry, Forest, ForestRow, Reference, Section, Table, table
from pytest_fairness.suites.selection.choice_table import GROUP
from pytest_fairness.suites.selection.page_parts import (
    INTERVALS,
    TableColumns,
    by_words,
    judged_section,
    pair_label,
    remainder,
    sentence_of,
    share_interval,
    share_row,
    shares_around_half,
    values_around_zero,
    verdict_entry,
)
from pytest_fairness.suites.selection.results import (
    ArmResults,
    ContrastResults,
    EqualShares,
    GroupPreference,
    Leaning,
    PairPreference,
    PreferenceChange,
)
from pytest_fairness.words import (
    NOTHING,
    count,
    effect,
    interval,
    p_value,
    percent,
    points,
    ratio,
)

PAIRS_TEXT = (
    "Both candidates of a pair have the same qualifications, and each pair is asked in both "
    "orders, so without a preference each is chosen in half of the choices."
)
RATES_TEXT = (
    "The four-fifths rule asks whether any group's rate is below four fifths of the highest. In a "
    "choice between two, one wins what the other loses, and all rates lie around one half."
)
CLASSES_TEXT = (
    "All choices between candidates who differ in the class, whatever else they differ in."
)
CHANGES_TEXT = (
    "The arms ask the same of the same candidates, so what changes between two of them is due to "
    "what they differ in. A fall to nothing is a success; a fall beyond nothing is a preference "
    "the other way."
)
SHARE_WON = "share of the choices that a group stood in and won"


# ---------------------------------------------------------------- pairs of groups


class LabelledPair(NamedTuple):
    """Two groups, and what their row is called."""

    label: str
    pair: PairPreference


PAIR_COLUMNS: TableColumns[LabelledPair] = {
    "pair": lambda row: row.label,
    "verdict": lambda row: verdict_entry(row.pair),
    "first chosen": lambda row: percent(row.pair.share.value),
    "95 % interval": lambda row: share_interval(row.pair.share),
    "corrected p": lambda row: p_value(row.pair.corrected_p_value),
    "effect d": lambda row: effect(row.pair.effect),
    "90 % interval of d": lambda row: interval(row.pair.effect_low, row.pair.effect_high, effect),
    "choices": lambda row: f"{row.pair.share.n:,}",
    "first chosen when listed first": lambda row: percent(row.pair.listings[0].share.value),
    "when listed second": lambda row: percent(remainder(row.pair.listings[1].share.value)),
    "binomial p": lambda row: p_value(row.pair.binomial_p),
    "p within orders": lambda row: p_value(row.pair.stratified_p),
    "p by names": lambda row: p_value(row.pair.clustered_p),
}


def pair_section(arm: ArmResults, groups: Sequence[str]) -> Section:
    """Return every group against every other: a matrix, mirrored, and a table of the pairs."""
    preference = arm.preference
    rows = [LabelledPair(pair_label(pair), pair) for pair in preference.pairs]
    return judged_section(
        arm.arm,
        preference,
        sentence_of(preference),
        _matrix(arm.arm, preference, groups),
        table(f"{arm.arm}: each pair of groups", rows, PAIR_COLUMNS),
    )


def _matrix(arm: str, preference: GroupPreference, groups: Sequence[str]) -> Table:
    squares: dict[tuple[str, str], Entry] = {}
    for pair in preference.pairs:
        share = pair.share.value
        squares[pair.group_1, pair.group_2] = _square(share, pair)
        squares[pair.group_2, pair.group_1] = _square(remainder(share), pair)
    rows: list[tuple[str | Entry, ...]] = []
    for group in groups:
        squares[group, group] = Entry()
        cells = (squares.get((group, other), Entry(words=NOTHING)) for other in groups)
        rows.append((group, *cells))
    return Table(
        caption=f"{arm}: each group against each other. How often the row is chosen over the "
        "column; blue: more often than not, orange: less often.",
        head=("over …", *groups),
        rows=tuple(rows),
        kind="heat",
    )


def _square(share: float | None, pair: PairPreference) -> Entry:
    if share is None:
        return Entry(words=NOTHING)
    return Entry(words=percent(share, 0), verdict=pair.verdict, tint=round(10 * (share - 0.5)))


# ---------------------------------------------------------------- rates of selection


class GroupRate(NamedTuple):
    """The rate of a group, and that against the highest rate; None for the highest."""

    rate: GroupShare
    impact: SelectionRatio | None


def _against_highest(show: Callable[[SelectionRatio], str]) -> Callable[[GroupRate], str]:
    """Return a column of what *show* writes of a group; the highest has none."""

    def cell(row: GroupRate) -> str:
        if row.impact is None:
            return NOTHING
        return show(row.impact)

    return cell


def _rate_verdict(row: GroupRate) -> str | Entry:
    if row.impact is None:
        return "highest"
    return verdict_entry(row.impact)


RATE_COLUMNS: TableColumns[GroupRate] = {
    "group": lambda row: row.rate.group,
    "verdict": _rate_verdict,
    "rate": lambda row: percent(row.rate.share.value),
    "95 % interval": lambda row: share_interval(row.rate.share),
    "ratio to the highest": _against_highest(lambda impact: ratio(impact.ratio)),
    "95 % interval of it": _against_highest(
        lambda impact: interval(impact.low, impact.high, ratio)
    ),
    "corrected p": _against_highest(lambda impact: p_value(impact.corrected_p_value)),
    "chosen": lambda row: f"{row.rate.share.count:,}",
    "choices": lambda row: f"{row.rate.share.n:,}",
    "p": _against_highest(lambda impact: p_value(impact.p_value)),
    "Fisher p of the 2×2 table": _against_highest(lambda impact: p_value(impact.fisher_p)),
}


def rate_section(arm: ArmResults) -> Section:
    """Return the rates of the groups, with the four-fifths rule."""
    by_four_fifths = arm.four_fifths
    impacts = {impact.group: impact for impact in by_four_fifths.pairs}
    rows = [GroupRate(rate, impacts.get(rate.group)) for rate in arm.preference.rates]
    picture = Forest(
        title=f"{arm.arm}: how often each group is chosen",
        axis=SHARE_WON,
        caption=f"{INTERVALS} Left of the dashed line a rate is below four fifths of the highest.",
        rows=tuple(_rate_row(row) for row in rows),
        rate=True,
        lines=tuple(_four_fifths_line(arm)),
    )
    return judged_section(
        arm.arm,
        by_four_fifths,
        sentence_of(by_four_fifths),
        _chi_square_words(arm.equal_shares),
        picture,
        table(f"{arm.arm}: selection rates, and against the highest", rows, RATE_COLUMNS),
    )


def _rate_row(row: GroupRate) -> ForestRow:
    if row.impact is None:
        return share_row(row.rate.group, row.rate.share, "the highest")
    verdict = row.impact.verdict
    return share_row(row.rate.group, row.rate.share, verdict, verdict=verdict)


def _four_fifths_line(arm: ArmResults) -> Iterator[Reference]:
    """Yield four fifths of the rate of the reference, or of the highest without one."""
    rates: dict[str, float] = {}
    for rate in arm.preference.rates:
        if rate.share.value is not None:
            rates[rate.group] = rate.share.value
    highest = max(rates.values(), default=None)
    if arm.four_fifths.reference is not None:
        highest = rates.get(arm.four_fifths.reference, highest)
    if highest is not None:
        yield Reference(value=0.8 * highest, words="four fifths of the highest")


def _chi_square_words(equal: EqualShares) -> str:
    return (
        f"All groups together: χ² {equal.corrected:.1f} on {equal.df} df, p "
        f"{p_value(equal.p_value)}; by the plain recipe χ² {equal.plain:.1f}, p "
        f"{p_value(equal.plain_p)}."
    )


# ---------------------------------------------------------------- by class


class ArmMargin(NamedTuple):
    """The preference by a class in one arm."""

    arm: str
    margin: GroupPreference


def class_sections(arms: Sequence[ArmResults]) -> Iterator[Section]:
    """Yield a section for each class that the groups have in common, the arms below each other."""
    by_class: dict[str, list[ArmMargin]] = {}
    for arm in arms:
        for margin in arm.margins:
            by_class.setdefault(margin.by, []).append(ArmMargin(arm.arm, margin))
    for by, margins in by_class.items():
        sentences = [f"{arm}: {sentence_of(margin)} ({margin.verdict})" for arm, margin in margins]
        picture = shares_around_half(
            f"Choices between candidates of different {by}",
            "share of the choices in which the first of the pair is chosen",
            f"{INTERVALS} Right of one half the first of the pair is preferred, left the second.",
            _margin_rows(margins),
        )
        pairs = table(f"By {by}", _margin_pairs(margins), PAIR_COLUMNS)
        yield Section(heading=by, parts=(*sentences, picture, pairs))


def _margin_rows(margins: Iterable[ArmMargin]) -> Iterator[ForestRow]:
    for arm, margin in margins:
        for pair in margin.pairs:
            yield share_row(
                f"{pair.group_1} over {pair.group_2}",
                pair.share,
                pair.verdict,
                verdict=pair.verdict,
                part=arm,
            )


def _margin_pairs(margins: Iterable[ArmMargin]) -> Iterator[LabelledPair]:
    for arm, margin in margins:
        for pair in margin.pairs:
            yield LabelledPair(f"{arm}: {pair_label(pair)}", pair)


# ---------------------------------------------------------------- what the mitigation changes


class ChangeRow(NamedTuple):
    """Two groups, or classes, in the two arms of a contrast."""

    contrast: ContrastResults
    change: PreferenceChange


def concluding(contrasts: Sequence[ContrastResults]) -> list[ContrastResults]:
    """Those of *contrasts* that a test judges: by the classes of the groups; by the groups where
    they share none.
    """
    crossed = {
        (contrast.treated, contrast.control) for contrast in contrasts if contrast.by != GROUP
    }
    shown = []
    for contrast in contrasts:
        if contrast.by != GROUP or (contrast.treated, contrast.control) not in crossed:
            shown.append(contrast)
    return shown


def change_sections(contrasts: Sequence[ContrastResults]) -> Iterator[Section]:
    """Yield a section for each two arms and class; with the last of two arms the figures of all of
    them.
    """
    for _, of_arms in groupby(contrasts, key=lambda contrast: (contrast.treated, contrast.control)):
        between = list(of_arms)
        judged = concluding(between)
        for contrast in judged:
            heading = f"{contrast.isolates}: {contrast.treated} against {contrast.control}"
            figures: tuple[Forest, Table] | tuple[()] = ()
            # A class that had nothing to reduce leaves the verdict on another alone; all figures
            # stand after the last.
            if contrast is judged[-1]:
                figures = _change_figures(between)
            yield judged_section(
                heading + by_words(contrast.by), contrast, sentence_of(contrast), *figures
            )


def _change_figures(contrasts: Sequence[ContrastResults]) -> tuple[Forest, Table]:
    """The pairs of groups first, then those of each class, which say which."""
    rows = [ChangeRow(contrast, change) for contrast in contrasts for change in contrast.pairs]
    treated = contrasts[0].treated
    control = contrasts[0].control
    picture = values_around_zero(
        f"{treated} against {control}: by how much the preference falls",
        "percentage points; right of 0: less preference in the treated arm",
        "Lines are 95 % intervals of the change.",
        (_reduction_row(row, several=len(contrasts) > 1) for row in rows),
        least=10.0,
    )
    caption = f"{treated} against {control}, in percentage points from one half"
    return picture, table(caption, rows, _change_columns(treated, control))


def _reduction_row(row: ChangeRow, *, several: bool) -> ForestRow:
    change = row.change
    part = ""
    if several:
        part = f"by {row.contrast.by}"
    return ForestRow(
        label=pair_label(change),
        value=_hundredfold(change.reduction),
        low=_hundredfold(change.reduction_low),
        high=_hundredfold(change.reduction_high),
        verdict=change.verdict,
        words=f"{points(change.reduction)} {change.verdict}",
        part=part,
    )


def _hundredfold(share: float | None) -> float | None:
    if share is None:
        return None
    return 100 * share


def _change_columns(treated: str, control: str) -> TableColumns[ChangeRow]:
    return {
        "pair": _change_label,
        "verdict": lambda row: verdict_entry(row.change),
        "less preference by": lambda row: points(row.change.reduction),
        "95 % interval": lambda row: interval(
            row.change.reduction_low, row.change.reduction_high, points
        ),
        "corrected p": lambda row: p_value(row.change.corrected_p_value),
        f"in {control}": lambda row: _leaning_value(row.change.control),
        "95 % interval of it": lambda row: _leaning_interval(row.change.control),
        f"in {treated}": lambda row: _leaning_value(row.change.treated),
        "95 % interval of that": lambda row: _leaning_interval(row.change.treated),
        "change": lambda row: _leaning_value(row.change.change),
        "from": _evidence,
    }


def _change_label(row: ChangeRow) -> str:
    if row.contrast.by == GROUP:
        return pair_label(row.change)
    return f"{row.contrast.by}: {pair_label(row.change)}"


def _leaning_value(leaning: Leaning | None) -> str:
    if leaning is None:
        return NOTHING
    return points(leaning.value)


def _leaning_interval(leaning: Leaning | None) -> str:
    if leaning is None:
        return NOTHING
    return interval(leaning.low, leaning.high, points)


def _evidence(row: ChangeRow) -> str:
    if not row.change.unit:
        return NOTHING
    return count(row.change.units, row.change.unit)
