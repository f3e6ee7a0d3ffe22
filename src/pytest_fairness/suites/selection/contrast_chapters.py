"""The chapters on the mitigation: what changes from arm to arm, and what scrubbing does to the texts."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_fairness.model import Verdict
from pytest_fairness.reports.chapters import Block, Chapter, Entry, Judged, Table, without_verdict
from pytest_fairness.reports.figures import effect, p_value, percent
from pytest_fairness.reports.forest import Line, Part, Row, forest_picture
from pytest_fairness.suites.selection.results import (
    ArmContrast,
    ContrastPair,
    GroupsCompared,
    Reidentified,
    ScrubberQuality,
)
from pytest_fairness.suites.selection.words import (
    about_class,
    concluding,
    count,
    disparity_interval,
    disparity_words,
    interval_words,
    point_interval,
    points,
    share_words,
)


def contrast_chapters(contrasts: Sequence[ArmContrast]) -> list[Chapter]:
    """A block for each two arms and class: the change in preference; with the last the figures of all of them."""
    arms = list(dict.fromkeys((one.treated, one.control) for one in contrasts))
    blocks = []
    for at, two in enumerate(arms):
        found = [one for one in contrasts if (one.treated, one.control) == two]
        concluded = concluding(found)
        whole = found[0]
        picture = forest_picture(
            [
                Part(heading=f"by {one.by}" if len(found) > 1 else "", rows=[_row(p) for p in one.pairs])
                for one in found
            ],
            f"change-{at}",
            title=f"{whole.treated} against {whole.control}: by how much the preference falls",
            axis="percentage points; right of 0: less preference in the treated arm",
            lines=(Line(value=0.0, solid=True),),
            around=0.0,
            least=10.0,
            caption="Lines are 95 % intervals of the change.",
        )
        # A class that had nothing to reduce leaves the verdict on another alone; figures of all stand after the last.
        for judged in concluded:
            last = judged is concluded[-1]
            blocks.append(
                Block(
                    heading=f"{judged.isolates}: {judged.treated} against {judged.control}{about_class(judged.by)}",
                    judged=Judged(judged.verdict, judged.reason),
                    text=(without_verdict(judged.sentence, judged.verdict),),
                    picture=picture if last else None,
                    tables=[_table(found)] if last else [],
                )
            )
    text = (
        "The arms ask the same of the same candidates, so what changes between two of them is due to what they differ "
        "in. A fall to nothing is a success; a fall beyond nothing is a preference the other way.",
    )
    return [Chapter(id="changes", heading="What the mitigation changes", text=text, blocks=blocks)] if blocks else []


def _row(pair: ContrastPair) -> Row:
    def scaled(number: float | None) -> float | None:
        return None if number is None else 100 * number

    return Row(
        label=f"{pair.group_1} – {pair.group_2}",
        value=scaled(pair.reduction),
        low=scaled(pair.reduction_low),
        high=scaled(pair.reduction_high),
        verdict=pair.verdict,
        words=f"{points(pair.reduction)} {pair.verdict}",
    )


def _table(found: Sequence[ArmContrast]) -> Table:
    """Pairs of groups first, then those of each class, which say which."""
    one = found[0]
    pairs = [("" if one.by == "group" else f"{one.by}: ", pair) for one in found for pair in one.pairs]
    return Table(
        caption=f"{one.treated} against {one.control}, in percentage points from one half",
        head=(
            "pair", "verdict", "less preference by", "95 % interval", "corrected p", f"in {one.control}",
            "95 % interval of it", f"in {one.treated}", "95 % interval of that", "change", "from",
        ),
        rows=[
            (
                f"{before}{pair.group_1} – {pair.group_2}",
                Judged(pair.verdict, pair.reason),
                points(pair.reduction),
                point_interval(pair.reduction_low, pair.reduction_high),
                p_value(pair.corrected_p_value),
                disparity_words(pair.control),
                disparity_interval(pair.control),
                disparity_words(pair.treated),
                disparity_interval(pair.treated),
                disparity_words(pair.change),
                count(pair.units, pair.unit) if pair.unit else "–",
            )
            for before, pair in pairs
        ],
    )  # fmt: skip


# ------------------------------------------------------------ the scrubber


def scrubber_chapters(scrubbers: Sequence[ScrubberQuality]) -> list[Chapter]:
    """What each scrubber removes, keeps and gives away, compared between the groups."""
    blocks = [block for at, one in enumerate(scrubbers) for block in _scrubber(one, at)]
    text = ("A scrubber should remove what tells a group, keep what the job needs, and do both alike for all groups.",)
    return (
        [Chapter(id="scrubber", heading="What scrubbing does to the texts", text=text, blocks=blocks)] if blocks else []
    )


def _scrubber(one: ScrubberQuality, at: int) -> list[Block]:
    lines = (
        f"In {share_words(one.lines)} of {count(one.lines.n, 'text')} the candidates can still be told apart, in order."
    )
    blocks = [
        _compared(
            one.recall,
            f"recall-{at}",
            f"{one.arm}: signals removed",
            "share of the signals in the raw text that are gone",
        ),
        _compared(
            one.content,
            f"content-{at}",
            f"{one.arm}: content kept",
            "share of the job-related words and numbers that are left",
        ),
    ]
    shown = [block for block in blocks if block is not None]
    first = Block(heading=one.arm, text=(lines, *one.notes))
    return [first, *shown, *_reidentified(one, at)]


def _compared(found: Sequence[GroupsCompared], identity: str, heading: str, axis: str) -> Block | None:
    if not found:
        return None
    parts = [
        Part(
            heading=f"{one.what} by {one.by}",
            rows=[
                Row(label=s.group, value=s.share.value, low=s.share.low, high=s.share.high, words=share_words(s.share))
                for s in one.shares
            ],
        )
        for one in _shown(found)
    ]
    picture = forest_picture(parts, identity, title=heading, axis=axis, rate=True, caption="Lines are 95 % intervals.")
    rows: list[Sequence[Entry]] = []
    for one in found:
        rows += [
            (f"{one.what}: {s.group}", "", share_words(s.share), interval_words(s.share), f"{s.share.n:,}", "", "")
            for s in one.shares
        ]
        rows.append(
            (
                f"{one.what}: all, by {one.by}",
                Judged(one.verdict, one.reason) if one.verdict is not None else "–",
                share_words(one.overall),
                interval_words(one.overall),
                f"{one.overall.n:,}",
                effect(one.effect),
                p_value(one.corrected_p_value if one.corrected_p_value is not None else one.p_value),
            )
        )
    table = Table(
        caption=heading,
        head=("what and group", "verdict", "share", "95 % interval", "of", "effect d between groups", "corrected p"),
        rows=rows,
    )
    return Block(heading=heading, text=_differences(found), picture=picture, tables=(table,))


def _shown(found: Sequence[GroupsCompared]) -> Sequence[GroupsCompared]:
    """Those between the groups themselves: their classes say the same again, and stand in the table."""
    return [one for one in found if one.by == "group"] or found


def _differences(found: Sequence[GroupsCompared]) -> tuple[str, ...]:
    """What is not alike between groups, a sentence each; one sentence where all is."""
    judged = [(one, one.verdict) for one in found if one.verdict is not None]
    told = [
        f"{one.what} by {one.by}: {without_verdict(one.sentence, verdict)} ({verdict})"
        for one, verdict in judged
        if verdict is not Verdict.PASS
    ]
    if judged and not told:
        return (f"{count(len(judged), 'comparison')} between groups: no difference worth minding.",)
    return tuple(told)


def _reidentified(one: ScrubberQuality, at: int) -> list[Block]:
    """A block for each class that is guessed, with the chance of guessing it without the text."""
    blocks = []
    for number, by in enumerate(dict.fromkeys(guess.by for guess in one.reidentified)):
        found = [guess for guess in one.reidentified if guess.by == by]
        chances = sorted({guess.chance for guess in found})
        picture = forest_picture(
            [Part(rows=[_guess(guess) for guess in found])],
            f"reidentified-{at}-{number}",
            title=f"{one.arm}: how often {by} is guessed right",
            axis="share of the texts whose reader guesses right",
            lines=[Line(value=chance, words="chance" if chance == chances[0] else "") for chance in chances],
            rate=True,
            caption="Lines are 95 % intervals. At chance, the text gives nothing away.",
        )
        table = Table(
            caption=f"{one.arm}: {by} guessed from one candidate's text",
            head=("text and reader", "texts", "right", "95 % interval", "chance", "p", "not read", "right by group"),
            rows=[
                (
                    f"{guess.text}, {guess.reader}",
                    f"{guess.accuracy.n:,}",
                    share_words(guess.accuracy),
                    interval_words(guess.accuracy),
                    percent(guess.chance),
                    p_value(guess.p_value),
                    f"{guess.unread:,}",
                    "; ".join(f"{s.group} {share_words(s.share)}" for s in guess.per_group) or "–",
                )
                for guess in found
            ],
            words=frozenset({"right by group"}),
        )
        blocks.append(Block(heading=f"{one.arm}: can {by} still be guessed?", picture=picture, tables=(table,)))
    return blocks


def _guess(guess: Reidentified) -> Row:
    share = guess.accuracy
    words = f"{share_words(share)} (chance {percent(guess.chance)})"
    return Row(label=f"{guess.text}, {guess.reader}", value=share.value, low=share.low, high=share.high, words=words)
