"""The chapters on what explains the choices of an arm: position, context, strength, and replies without a choice."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_fairness.reports.bars import stacked_picture
from pytest_fairness.reports.chapters import Block, Chapter, Table
from pytest_fairness.reports.figures import effect, p_value, percent
from pytest_fairness.reports.forest import Line, Part, Row, forest_picture
from pytest_fairness.reports.interaction import Panel, Point, interaction_picture
from pytest_fairness.scorers.choice import Said
from pytest_fairness.suites.selection.results import (
    ArmResult,
    GroupShare,
    Interaction,
    SelectionResults,
    Share,
    Strengths,
)
from pytest_fairness.suites.selection.words import NORMAL, count, effect_interval, interval_words, share_words

HALF = (Line(value=0.5, words="one half"),)


def behaviour_chapters(results: SelectionResults) -> list[Chapter]:
    """Order effect, interactions, Bradley–Terry strengths, and what the replies came to."""
    return [_order(results.arms), *_interactions(results.arms), _strengths(results.arms), _outcomes(results.arms)]


# ------------------------------------------------------------ order


def _order(arms: Sequence[ArmResult]) -> Chapter:
    found = [(arm.arm, arm.order) for arm in arms if arm.order is not None]
    rows = [
        Row(label=arm, value=one.share.value, low=one.share.low, high=one.share.high, words=share_words(one.share))
        for arm, one in found
    ]
    picture = forest_picture(
        [Part(rows=rows)],
        "order",
        title="How often the first-listed candidate is chosen",
        axis="share of all choices that go to the candidate who is listed first",
        lines=HALF,
        rate=True,
        around=0.5,
        least=0.2,
        caption="Lines are 95 % intervals. At one half the position does not matter.",
    )
    table = Table(
        caption="First-listed chosen, whoever it is",
        head=("arm", "choices", "first-listed chosen", "95 % interval", "log odds of standing first", "χ²", "df", "p"),
        rows=[
            (
                arm,
                f"{one.share.n:,}",
                share_words(one.share),
                interval_words(one.share),
                effect(one.log_odds),
                "–" if one.likelihood_ratio is None else f"{one.likelihood_ratio:.1f}",
                str(one.df),
                p_value(one.p_value),
            )
            for arm, one in found
        ],
    )
    text = (
        "Models favour a position. Every pair stands in both orders equally often, and groups are compared within an "
        "order, so the position favours no group; it is reported because a system that decides by position decides "
        "badly."
        if found
        else "No choice could be read, so there is nothing to say about positions.",
    )
    return Chapter(
        id="order", heading="Order effect", text=text, blocks=[Block(picture=picture, tables=(table,))] if found else []
    )


# ------------------------------------------------------------ interactions


def _interactions(arms: Sequence[ArmResult]) -> list[Chapter]:
    """One chapter, a block for each axis and class, the arms beside each other."""
    kinds = list(dict.fromkeys((one.axis, one.by) for arm in arms for one in arm.interactions if len(one.levels) > 1))
    blocks = []
    for at, (axis, by) in enumerate(kinds):
        found = [(arm.arm, one) for arm in arms for one in arm.interactions if (one.axis, one.by) == (axis, by)]
        picture = interaction_picture(
            [Panel(title=arm, levels=[level.level for level in one.levels], lines=_lines(one)) for arm, one in found],
            f"interaction-{at}",
            title=f"Selection rate by {axis} and {by}",
            caption="Lines up and down: 95 % intervals. Dashed: one half. Lines that run alike: no interaction.",
        )
        blocks.append(Block(heading=f"{axis} × {by}", picture=picture, tables=_interaction_tables(axis, by, found)))
    text = (
        "Does who is preferred depend on what is asked for? Lines that cross or part say so; the test says how sure.",
    )
    return [Chapter(id="interactions", heading="Interactions", text=text, blocks=blocks)] if blocks else []


def _lines(one: Interaction) -> list[tuple[str, list[Point]]]:
    groups = list(dict.fromkeys(share.group for level in one.levels for share in level.shares))
    return [(group, [_point(_share_of(group, level.shares)) for level in one.levels]) for group in groups]


def _share_of(group: str, shares: Sequence[GroupShare]) -> Share | None:
    return next((one.share for one in shares if one.group == group), None)


def _point(share: Share | None) -> Point:
    return Point(None) if share is None else Point(share.value, share.low, share.high)


def _interaction_tables(axis: str, by: str, found: Sequence[tuple[str, Interaction]]) -> tuple[Table, ...]:
    levels = list(dict.fromkeys(level.level for _, one in found for level in one.levels))
    rows = []
    for arm, one in found:
        at = {level.level: level.shares for level in one.levels}
        groups = list(dict.fromkeys(share.group for level in one.levels for share in level.shares))
        for group in groups:
            shares = [_share_of(group, at.get(level, ())) for level in levels]
            rows.append(
                (f"{arm}: {group}", *("–" if s is None else f"{share_words(s)} ({interval_words(s)})" for s in shares))
            )
    tests = [
        (
            arm,
            f"{one.likelihood_ratio:.1f}",
            str(one.df),
            p_value(one.row_p),
            p_value(one.clustered_p),
            p_value(one.p_value),
        )
        for arm, one in found
    ]
    return (
        Table(
            caption=f"Selection rates by {axis} and {by}, with 95 % intervals",
            head=("arm and group", *levels),
            rows=rows,
        ),
        Table(
            caption=f"Does the preference by {by} depend on {axis}?",
            head=("arm", "χ²", "df", "p of trials", "p by names", "p"),
            rows=tests,
        ),
    )


# ------------------------------------------------------------ strengths and outcomes


def _strengths(arms: Sequence[ArmResult]) -> Chapter:
    found = [(arm, arm.strengths) for arm in arms if arm.strengths is not None]
    picture = forest_picture(
        [
            Part(heading=arm.arm + (" (ridge: for orientation)" if one.ridge else ""), rows=_strength_rows(one))
            for arm, one in found
        ],
        "strengths",
        title="Bradley–Terry strength of each group",
        axis="log odds of being chosen, against the first group (0)",
        lines=(Line(value=0.0, solid=True),),
        around=0.0,
        least=0.5,
        caption="Lines are 95 % intervals that take trials as independent; the verdicts above do not.",
    )
    rows = []
    for arm, one in found:
        for at, group in enumerate(one.groups):
            low, high = _reach(group.value, group.error) if at else (None, None)
            rows.append(
                (
                    f"{arm.arm}: {group.group}",
                    effect(group.value),
                    effect_interval(low, high),
                )
            )
        rows.append((f"{arm.arm}: standing first", effect(one.position), _odds(one.position, one.position_error)))
    tests = [
        (arm.arm, f"{one.likelihood_ratio:.1f}", str(one.df), p_value(one.p_value), "; ".join(arm.notes) or "–")
        for arm, one in found
    ]
    tables = (
        Table(caption="Strengths (log odds)", head=("arm and group", "strength", "95 % interval"), rows=rows),
        Table(
            caption="Are all groups equally strong?",
            head=("arm", "χ²", "df", "p", "notes"),
            rows=tests,
            words=frozenset({"notes"}),
        ),
    )
    text = (
        "One number a group that explains all its choices at once, together with the position: each step of 0.7 about "
        "doubles the odds of being chosen.",
    )
    blocks = [Block(picture=picture, tables=tables)] if found else []
    return Chapter(id="strengths", heading="Bradley–Terry strengths", text=text, blocks=blocks)


def _reach(value: float, error: float | None) -> tuple[float | None, float | None]:
    return (None, None) if error is None else (value - NORMAL * error, value + NORMAL * error)


def _odds(value: float | None, error: float | None) -> str:
    return "–" if value is None else effect_interval(*_reach(value, error))


def _strength_rows(one: Strengths) -> list[Row]:
    rows = []
    for at, group in enumerate(one.groups):
        low, high = _reach(group.value, group.error) if at else (None, None)
        words = effect(group.value) if at else "the reference"
        rows.append(Row(label=group.group, value=group.value, low=low, high=high, words=words))
    return rows


def _outcomes(arms: Sequence[ArmResult]) -> Chapter:
    seen = {kind for arm in arms for pair in arm.outcomes for kind, number in pair.counts.items() if number}
    kinds = [said.value for said in Said if said.value in seen]
    bars, rows = [], []
    for arm in arms:
        asked = sum(pair.asked for pair in arm.outcomes)
        totals = [(kind, sum(pair.counts.get(kind, 0) for pair in arm.outcomes)) for kind in kinds]
        if asked:
            bars.append((arm.arm, [(kind, number / asked) for kind, number in totals]))
        rows.append(
            (
                f"{arm.arm}: all pairs",
                f"{asked:,}",
                *(_of(number, asked) for _, number in totals),
                p_value(arm.no_choice_p),
            )
        )
        rows += [
            (
                f"{arm.arm}: {pair.group_1} – {pair.group_2}",
                f"{pair.asked:,}",
                *(_of(pair.counts.get(kind, 0), pair.asked) for kind in kinds),
                "",
            )
            for pair in arm.outcomes
        ]
    picture = (
        stacked_picture(
            bars,
            "outcomes",
            title="What the replies came to",
            axis="share of all trials",
            caption="Only “chosen” is evidence of a preference.",
        )
        if bars
        else None
    )
    table = Table(
        caption="What the replies came to; p: does the share without a choice differ between pairs?",
        head=("arm and pair", "asked", *kinds, "p"),
        rows=rows,
    )
    told = [f"{arm.arm}: {arm.decided:,} of {count(arm.trials, 'trial')} name a candidate." for arm in arms]
    return Chapter(
        id="outcomes", heading="What the replies came to", text=told, blocks=[Block(picture=picture, tables=(table,))]
    )


def _of(number: int, whole: int) -> str:
    return f"{number:,} ({percent(number / whole)})" if number and whole else f"{number:,}"
