"""The chapters on who is preferred: pair by pair, by rates against the four-fifths rule, and by class."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_fairness.reports.chapters import Block, Chapter, Judged, Table, without_verdict
from pytest_fairness.reports.figures import effect, p_value, percent
from pytest_fairness.reports.forest import Line, Part, Row, forest_picture
from pytest_fairness.reports.matrix import Square, matrix_picture
from pytest_fairness.suites.selection.results import (
    ArmResult,
    GroupShare,
    ImpactPair,
    Margin,
    Matchup,
    SelectionResults,
)
from pytest_fairness.suites.selection.words import effect_interval, interval_words, share_words

HALF = (Line(value=0.5, words="one half"),)


def preference_chapters(results: SelectionResults) -> list[Chapter]:
    """Pair matrix, selection rates, and choices between candidates of different classes."""
    return [_matrices(results), _rates(results.arms), *_classes(results.arms)]


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
