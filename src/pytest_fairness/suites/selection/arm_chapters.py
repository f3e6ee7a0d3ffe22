"""The chapters about each arm by itself: who is chosen over whom, how often, and by position."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_fairness.reports.bars import stacked_picture
from pytest_fairness.reports.chapters import Block, Chapter, Judged, Table, without_verdict
from pytest_fairness.reports.figures import effect, p_value, percent
from pytest_fairness.reports.forest import Line, Part, Row, forest_picture
from pytest_fairness.reports.interaction import Panel, Point, interaction_picture
from pytest_fairness.reports.matrix import Square, matrix_picture
from pytest_fairness.scorers.choice import Said
from pytest_fairness.suites.selection.results import (
    ArmResult,
    GroupShare,
    ImpactPair,
    Interaction,
    Margin,
    Matchup,
    SelectionResults,
    Share,
    Strengths,
)
from pytest_fairness.suites.selection.words import NORMAL, count, effect_interval, interval_words, share_words

HALF = (Line(value=0.5, words="one half"),)


def arm_chapters(results: SelectionResults) -> list[Chapter]:
    """Pair matrix, selection rates, classes, order, interactions, strengths and what the replies came to."""
    return [
        _matrices(results),
        _rates(results.arms),
        *_classes(results.arms),
        _order(results.arms),
        *_interactions(results.arms),
        _strengths(results.arms),
        _outcomes(results.arms),
    ]


def _matrices(results: SelectionResults) -> Chapter:
    blocks = []
    for at, arm in enumerate(results.arms):
        squares = {
            (pair.group_1, pair.group_2): Square(share=pair.share.value, n=pair.share.n, verdict=pair.verdict)
            for pair in arm.pairs
        }
        blocks.append(
            Block(
                heading=arm.arm,
                judged=Judged(arm.verdict, arm.reason),
                text=(without_verdict(arm.sentence, arm.verdict),),
                picture=matrix_picture(
                    results.run.groups, squares, f"matrix-{at}", title=f"{arm.arm}: each group against each other"
                ),
                tables=(_pairs(f"{arm.arm}: each pair of groups", [("", pair) for pair in arm.pairs]),),
            )
        )
    text = (
        "Both candidates of a pair have the same qualifications, and each pair is asked in both orders, so without a "
        "preference each is chosen in half of the choices.",
    )
    return Chapter(id="pairs", heading="Who is chosen over whom", text=text, blocks=blocks)


def _pairs(caption: str, pairs: Sequence[tuple[str, Matchup]]) -> Table:
    """A row a pair; what stands before it tells the arm where there are several."""
    head = (
        "pair", "verdict", "first chosen", "95 % interval", "corrected p", "effect d", "90 % interval of d", "choices",
        "first chosen when listed first", "when listed second", "binomial p", "p within orders", "p by names",
    )  # fmt: skip
    rows = [
        (
            f"{before}{pair.group_1} – {pair.group_2}",
            Judged(pair.verdict, pair.reason),
            share_words(pair.share),
            interval_words(pair.share),
            p_value(pair.corrected_p_value),
            effect(pair.effect),
            effect_interval(pair.effect_low, pair.effect_high),
            f"{pair.share.n:,}",
            *_by_place(pair),
            p_value(pair.binomial_p),
            p_value(pair.stratified_p),
            p_value(pair.clustered_p),
        )
        for before, pair in pairs
    ]
    return Table(caption=caption, head=head, rows=rows)


def _by_place(pair: Matchup) -> tuple[str, str]:
    """How often the pair's first group was chosen when it was listed first, and when second."""
    first = next((one.share.value for one in pair.listings if one.first == pair.group_1), None)
    second = next((one.share.value for one in pair.listings if one.second == pair.group_1), None)
    return percent(first), percent(None if second is None else 1 - second)


# ------------------------------------------------------------ rates


def _rates(arms: Sequence[ArmResult]) -> Chapter:
    blocks = []
    for at, arm in enumerate(arms):
        found, impact = arm.four_fifths, {pair.group: pair for pair in arm.four_fifths.pairs}
        best = max((one.share.value for one in arm.rates if one.share.value is not None), default=None)
        reference = next((one.share.value for one in arm.rates if one.group == found.reference), None)
        limit = (
            None if reference is None and best is None else 0.8 * (reference if reference is not None else best or 0)
        )
        picture = forest_picture(
            [Part(rows=[_rate(one, impact.get(one.group)) for one in arm.rates])],
            f"rates-{at}",
            title=f"{arm.arm}: how often each group is chosen",
            axis="share of the choices that a group stood in and won",
            lines=[] if limit is None else [Line(value=limit, words="four fifths of the highest")],
            rate=True,
            caption="Lines are 95 % intervals. Left of the dashed line a rate is below four fifths of the highest.",
        )
        table = Table(
            caption=f"{arm.arm}: selection rates, and against the highest",
            head=(
                "group", "verdict", "rate", "95 % interval", "ratio to the highest", "95 % interval of it",
                "corrected p", "chosen", "choices", "p", "Fisher p of the 2×2 table",
            ),
            rows=[_rate_row(one, impact.get(one.group)) for one in arm.rates],
        )  # fmt: skip
        equal = arm.equal_shares
        chi = (
            f"All groups together: χ² {equal.corrected:.1f} on {equal.df} df, p {p_value(equal.p_value)}; by the plain "
            f"recipe χ² {equal.plain:.1f}, p {p_value(equal.plain_p)}."
        )
        blocks.append(
            Block(
                heading=arm.arm,
                judged=Judged(found.verdict, found.reason),
                text=(without_verdict(found.sentence, found.verdict), chi),
                picture=picture,
                tables=(table,),
            )
        )
    text = (
        "The four-fifths rule asks whether any group's rate is below four fifths of the highest. In a choice between "
        "two, one wins what the other loses, and all rates lie around one half.",
    )
    return Chapter(id="rates", heading="Selection rates and the four-fifths rule", text=text, blocks=blocks)


def _rate(one: GroupShare, impact: ImpactPair | None) -> Row:
    verdict = None if impact is None else impact.verdict
    words = share_words(one.share) + (f" {verdict}" if verdict else " the highest" if impact is None else "")
    return Row(
        label=one.group, value=one.share.value, low=one.share.low, high=one.share.high, verdict=verdict, words=words
    )


def _rate_row(one: GroupShare, impact: ImpactPair | None) -> tuple[str | Judged, ...]:
    counts = (f"{one.share.count:,}", f"{one.share.n:,}")
    rate = (share_words(one.share), interval_words(one.share))
    if impact is None:
        return (one.group, "highest", *rate, "–", "–", "–", *counts, "–", "–")
    return (
        one.group,
        Judged(impact.verdict, impact.reason),
        *rate,
        f"{impact.ratio:.3f}",
        f"{impact.low:.3f} to {impact.high:.3f}",
        p_value(impact.corrected_p_value),
        *counts,
        p_value(impact.p_value),
        p_value(impact.fisher_p),
    )


def _classes(arms: Sequence[ArmResult]) -> list[Chapter]:
    """One chapter on what the groups have in common, if they are made of classes."""
    classes = list(dict.fromkeys(margin.by for arm in arms for margin in arm.margins))
    blocks = []
    for at, by in enumerate(classes):
        found = [(arm.arm, margin) for arm in arms for margin in arm.margins if margin.by == by]
        picture = forest_picture(
            [Part(heading=arm, rows=[_matchup(pair) for pair in margin.pairs]) for arm, margin in found],
            f"class-{at}",
            title=f"Choices between candidates of different {by}",
            axis="share of the choices in which the first of the pair is chosen",
            lines=HALF,
            rate=True,
            around=0.5,
            least=0.2,
            caption="Lines are 95 % intervals. Right of one half the first of the pair is preferred, left the second.",
        )
        text = tuple(f"{arm}: {_said(margin)}" for arm, margin in found)
        rows = [(f"{arm}: ", pair) for arm, margin in found for pair in margin.pairs]
        blocks.append(Block(heading=by, text=text, picture=picture, tables=(_pairs(f"By {by}", rows),)))
    text = ("All choices between candidates who differ in the class, whatever else they differ in.",)
    return [Chapter(id="classes", heading="By class", text=text, blocks=blocks)] if blocks else []


def _said(margin: Margin) -> str:
    return f"{without_verdict(margin.sentence, margin.verdict)} ({margin.verdict})"


def _matchup(pair: Matchup) -> Row:
    return Row(
        label=f"{pair.group_1} over {pair.group_2}",
        value=pair.share.value,
        low=pair.share.low,
        high=pair.share.high,
        verdict=pair.verdict,
        words=f"{share_words(pair.share)} {pair.verdict}",
    )


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
