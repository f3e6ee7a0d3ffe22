"""Sections on what explains the choices beside the pairs of groups: the position, the context, the
strengths of all groups together, and the replies that make no choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from pytest_fairness.analysis.choice_effects import ContextInteraction, GroupShare, OrderEffect
from pytest_fairness.reports import Bars, ForestRow, Part, Section, Table, table
from pytest_fairness.scorers.choice import ChoiceStatus
from pytest_fairness.suites.selection.page_parts import (
    INTERVALS,
    Row,
    TableColumns,
    pair_label,
    share_interval,
    share_row,
    shares_around_half,
    values_around_zero,
)
from pytest_fairness.suites.selection.preference_sections import SHARE_WON
from pytest_fairness.suites.selection.results import ArmResults, FittedStrengths
from pytest_fairness.words import NOTHING, count, effect, interval, p_value, part_of, percent

INTERACTIONS_TEXT = (
    "Does who is preferred depend on what is asked for? Marks of one group that lie apart say so; "
    "the test says how sure."
)
STRENGTHS_TEXT = (
    "One number a group that explains all its choices at once, together with the position: each "
    "step of 0.7 about doubles the odds of being chosen."
)
_POSITION_TEXT = (
    "Models favour a position. Every pair stands in both orders equally often, and groups are "
    "compared within an order, so the position favours no group; it is reported because a system "
    "that decides by position decides badly."
)
_UNREAD_TEXT = "No choice could be read, so there is nothing to say about positions."
#: 95 % of a normal distribution lie within so many standard errors.
_NORMAL = 1.959964


class WithLikelihoodRatio(Protocol):
    """A part of the results that a likelihood ratio tests."""

    @property
    def likelihood_ratio(self) -> float: ...

    @property
    def df(self) -> int: ...


def ratio_columns(tested: Callable[[Row], WithLikelihoodRatio]) -> TableColumns[Row]:
    """Return the columns of what is *tested* in a row."""
    return {
        "χ²": lambda row: f"{tested(row).likelihood_ratio:.1f}",
        "df": lambda row: f"{tested(row).df:,}",
    }


# ---------------------------------------------------------------- the position


class ArmOrder(NamedTuple):
    """The order effect in one arm."""

    arm: str
    order: OrderEffect


ORDER_COLUMNS: TableColumns[ArmOrder] = {
    "arm": lambda row: row.arm,
    "choices": lambda row: f"{row.order.share.n:,}",
    "first-listed chosen": lambda row: percent(row.order.share.value),
    "95 % interval": lambda row: share_interval(row.order.share),
    "log odds of standing first": lambda row: effect(row.order.log_odds),
    **ratio_columns(lambda row: row.order),
    "p": lambda row: p_value(row.order.p_value),
}


def order_parts(arms: Sequence[ArmResults]) -> list[Part]:
    """Return how often the first-listed is chosen in each arm."""
    rows = [ArmOrder(arm.arm, arm.order) for arm in arms if arm.order is not None]
    if not rows:
        return [_UNREAD_TEXT]
    picture = shares_around_half(
        "How often the first-listed candidate is chosen",
        "share of all choices that go to the candidate who is listed first",
        f"{INTERVALS} At one half the position does not matter.",
        (share_row(row.arm, row.order.share) for row in rows),
    )
    return [
        _POSITION_TEXT,
        picture,
        table("First-listed chosen, whoever it is", rows, ORDER_COLUMNS),
    ]


# ---------------------------------------------------------------- the context


class ArmInteraction(NamedTuple):
    """The interaction of one axis of the context with the groups of a class, in one arm."""

    arm: str
    interaction: ContextInteraction


class LevelShare(NamedTuple):
    """The share of the choices that a group won at one level, in one arm."""

    arm: str
    level: str
    group: GroupShare


INTERACTION_COLUMNS: TableColumns[ArmInteraction] = {
    "arm": lambda row: row.arm,
    **ratio_columns(lambda row: row.interaction),
    "p of trials": lambda row: p_value(row.interaction.row_p),
    "p by names": lambda row: p_value(row.interaction.clustered_p),
    "p": lambda row: p_value(row.interaction.p_value),
}


def interaction_sections(arms: Sequence[ArmResults]) -> Iterator[Section]:
    """Yield a section for each axis and class, the arms beside each other."""
    blocks: dict[tuple[str, str], list[ArmInteraction]] = {}
    for arm in arms:
        for interaction in arm.interactions:
            if len(interaction.levels) > 1:
                key = (interaction.axis, interaction.by)
                blocks.setdefault(key, []).append(ArmInteraction(arm.arm, interaction))
    for (axis, by), rows in blocks.items():
        shares = list(_level_shares(rows))
        picture = shares_around_half(
            f"Selection rate by {axis} and {by}",
            SHARE_WON,
            f"{INTERVALS} Dashed: one half. Groups whose marks lie alike: no interaction.",
            (
                share_row(share.group.group, share.group.share, part=share.arm, series=share.level)
                for share in shares
            ),
        )
        rates = _level_table(shares, f"Selection rates by {axis} and {by}, with 95 % intervals")
        tests = table(f"Does the preference by {by} depend on {axis}?", rows, INTERACTION_COLUMNS)
        yield Section(heading=f"{axis} × {by}", parts=(picture, rates, tests))


def _level_shares(rows: Sequence[ArmInteraction]) -> Iterator[LevelShare]:
    for row in rows:
        for level in row.interaction.levels:
            for group in level.shares:
                yield LevelShare(row.arm, level.level, group)


def _level_table(shares: Sequence[LevelShare], caption: str) -> Table:
    """A row for each group of each arm, a column for each level."""
    levels = dict.fromkeys((share.level for share in shares), NOTHING)
    rows: dict[str, dict[str, str]] = {}
    for share in shares:
        row = rows.setdefault(f"{share.arm}: {share.group.group}", dict(levels))
        rate = share.group.share
        row[share.level] = f"{percent(rate.value)} ({share_interval(rate)})"
    return Table(
        caption=caption,
        head=("arm and group", *levels),
        rows=tuple((label, *row.values()) for label, row in rows.items()),
    )


# ---------------------------------------------------------------- the strengths of all groups


class ArmStrengths(NamedTuple):
    """The strengths of the groups in one arm, and what is noted of it."""

    arm: str
    strengths: FittedStrengths
    notes: str


STRENGTH_COLUMNS: TableColumns[ArmStrengths] = {
    "arm": lambda row: row.arm,
    **ratio_columns(lambda row: row.strengths),
    "p": lambda row: p_value(row.strengths.p_value),
    "notes": lambda row: row.notes,
}


def strength_parts(arms: Sequence[ArmResults]) -> list[Part]:
    """Return one number a group for each arm; nothing where no choice could be read."""
    rows = []
    for arm in arms:
        if arm.strengths is not None:
            notes = "; ".join(arm.notes) or NOTHING
            rows.append(ArmStrengths(arm.arm, arm.strengths, notes))
    if not rows:
        return []
    picture = values_around_zero(
        "Bradley–Terry strength of each group",
        "log odds of being chosen, against the first group (0)",
        "Lines are 95 % intervals that take trials as independent; the verdicts above do not.",
        _strength_marks(rows),
        least=0.5,
    )
    figures = Table(
        caption="Strengths (log odds)",
        head=("arm and group", "strength", "95 % interval"),
        rows=tuple(_strength_figures(rows)),
    )
    tests = table("Are all groups equally strong?", rows, STRENGTH_COLUMNS, words=("notes",))
    return [picture, figures, tests]


def _strength_marks(rows: Sequence[ArmStrengths]) -> Iterator[ForestRow]:
    for arm, strengths, _ in rows:
        part = arm
        if strengths.ridge:
            part = f"{arm} (ridge: for orientation)"
        reference, *others = strengths.groups
        yield ForestRow(
            label=reference.group, value=reference.value, words="the reference", part=part
        )
        for group in others:
            low, high = _reach(group.value, group.error)
            yield ForestRow(
                label=group.group,
                value=group.value,
                low=low,
                high=high,
                words=effect(group.value),
                part=part,
            )


def _strength_figures(rows: Sequence[ArmStrengths]) -> Iterator[tuple[str, str, str]]:
    for arm, strengths, _ in rows:
        reference, *others = strengths.groups
        yield (f"{arm}: {reference.group}", effect(reference.value), NOTHING)
        for group in others:
            yield _strength_figure(f"{arm}: {group.group}", group.value, group.error)
        yield _strength_figure(
            f"{arm}: standing first", strengths.position, strengths.position_error
        )


def _strength_figure(label: str, value: float | None, error: float | None) -> tuple[str, str, str]:
    return (label, effect(value), interval(*_reach(value, error), effect))


def _reach(value: float | None, error: float | None) -> tuple[float | None, float | None]:
    """Return the 95 % interval around *value*, None where there is no error."""
    if value is None or error is None:
        return (None, None)
    return (value - _NORMAL * error, value + _NORMAL * error)


# ---------------------------------------------------------------- what the replies came to


def outcome_parts(arms: Sequence[ArmResults]) -> list[Part]:
    """Return how many replies made a choice, and what the others were."""
    together = _totals(arms)
    kinds = [kind.value for kind in ChoiceStatus if together[kind]]
    bars = {}
    rows: list[tuple[str, ...]] = []
    for arm in arms:
        whole = _totals([arm])
        bars[arm.arm] = {kind: whole[kind] / arm.trials for kind in kinds}
        p = p_value(arm.no_choice_p)
        rows.append(_outcome_row(f"{arm.arm}: all pairs", arm.trials, whole, kinds, p))
        for pair in arm.outcomes:
            label = f"{arm.arm}: {pair_label(pair)}"
            rows.append(_outcome_row(label, pair.trials, pair.counts, kinds, ""))
    return [
        *(
            f"{arm.arm}: {arm.decided:,} of {count(arm.trials, 'trial')} name a candidate."
            for arm in arms
        ),
        Bars(
            title="What the replies came to",
            axis="share of all trials",
            bars=bars,
            caption="Only “chosen” is evidence of a preference.",
        ),
        Table(
            caption="What the replies came to; p: does the share without a choice differ between "
            "pairs?",
            head=("arm and pair", "asked", *kinds, "p"),
            rows=tuple(rows),
        ),
    ]


def _totals(arms: Sequence[ArmResults]) -> Counter[str]:
    """Return how many replies of each kind there are, to all pairs of groups of *arms*."""
    totals: Counter[str] = Counter()
    for arm in arms:
        for pair in arm.outcomes:
            totals.update(pair.counts)
    return totals


def _outcome_row(
    label: str, trials: int, counts: Mapping[str, int], kinds: Sequence[str], p: str
) -> tuple[str, ...]:
    return (label, f"{trials:,}", *(part_of(counts[kind], trials) for kind in kinds), p)
