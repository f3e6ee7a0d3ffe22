"""Sections on what each scrubber removes, keeps and gives away, compared between the groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_fairness import Verdict
from pytest_fairness.reports import (
    Entry,
    Forest,
    ForestRow,
    Reference,
    Section,
    table,
    without_verdict,
)
from pytest_fairness.statistics.selection_rates import Rate
from pytest_fairness.suites.selection.choice_table import GROUP
from pytest_fairness.suites.selection.page_parts import (
    INTERVALS,
    TableColumns,
    share_interval,
    share_row,
)
from pytest_fairness.suites.selection.results import GuessedShare, ScrubberQuality, TextShare
from pytest_fairness.words import NOTHING, count, effect, p_value, percent

SCRUBBER_TEXT = (
    "A scrubber should remove what tells a group, keep what the job needs, and do both alike for "
    "all groups."
)


def scrubber_sections(scrubbers: Sequence[ScrubberQuality]) -> Iterator[Section]:
    """Yield the sections of each scrubber: its texts, what is removed, what is kept, and how well
    the groups can be guessed.
    """
    for scrubber in scrubbers:
        yield Section(heading=scrubber.arm, parts=(_lines_words(scrubber), *scrubber.notes))
        if scrubber.recall:
            yield _text_section(
                f"{scrubber.arm}: signals removed",
                "share of the signals in the raw text that are gone",
                scrubber.recall,
            )
        if scrubber.content:
            yield _text_section(
                f"{scrubber.arm}: content kept",
                "share of the job-related words and numbers that are left",
                scrubber.content,
            )
        for by in dict.fromkeys(guess.by for guess in scrubber.reidentified):
            guesses = [guess for guess in scrubber.reidentified if guess.by == by]
            yield _guess_section(scrubber.arm, by, guesses)


def _lines_words(scrubber: ScrubberQuality) -> str:
    lines = scrubber.lines
    return (
        f"In {percent(lines.value)} of {count(lines.n, 'text')} the candidates can still be told "
        "apart, in order."
    )


# ---------------------------------------------------------------- what is removed, and what is kept


class TextShareRow(NamedTuple):
    """A share of one group, or of all with what compares the groups."""

    label: str
    share: Rate
    compared: TextShare | None = None


def _text_verdict(row: TextShareRow) -> str | Entry:
    if row.compared is None:
        return ""
    if row.compared.verdict is None:
        return NOTHING
    return Entry(verdict=row.compared.verdict, reason=row.compared.reason)


def _text_effect(row: TextShareRow) -> str:
    if row.compared is None:
        return ""
    return effect(row.compared.effect)


def _text_p(row: TextShareRow) -> str:
    if row.compared is None:
        return ""
    return p_value(row.compared.corrected_p_value)


TEXT_SHARE_COLUMNS: TableColumns[TextShareRow] = {
    "what and group": lambda row: row.label,
    "verdict": _text_verdict,
    "share": lambda row: percent(row.share.value),
    "95 % interval": lambda row: share_interval(row.share),
    "of": lambda row: f"{row.share.n:,}",
    "effect d between groups": _text_effect,
    "corrected p": _text_p,
}


def _text_section(title: str, axis: str, shares: Sequence[TextShare]) -> Section:
    picture = Forest(
        title=title, axis=axis, caption=INTERVALS, rows=tuple(_marks(shares)), rate=True
    )
    figures = table(title, _text_rows(shares), TEXT_SHARE_COLUMNS)
    return Section(heading=title, parts=(*_alarms(shares), picture, figures))


def _text_rows(shares: Sequence[TextShare]) -> Iterator[TextShareRow]:
    for compared in shares:
        for group in compared.shares:
            yield TextShareRow(f"{compared.what}: {group.group}", group.share)
        label = f"{compared.what}: all, by {compared.by}"
        yield TextShareRow(label, compared.overall, compared)


def _alarms(shares: Sequence[TextShare]) -> list[str]:
    """Return the sentences that are no PASS; one sentence where all are."""
    judged = 0
    sentences = []
    for compared in shares:
        if compared.verdict is None:
            continue
        judged += 1
        if compared.verdict is not Verdict.PASS:
            sentence = without_verdict(compared.sentence, compared.verdict)
            sentences.append(f"{compared.what} by {compared.by}: {sentence} ({compared.verdict})")
    if judged and not sentences:
        return [f"{count(judged, 'comparison')} between groups: no difference larger than small."]
    return sentences


def _marks(shares: Sequence[TextShare]) -> Iterator[ForestRow]:
    """Yield the shares of the groups themselves: their classes say the same again, and stand in the
    table.
    """
    between_groups = [compared for compared in shares if compared.by == GROUP]
    for compared in between_groups or shares:
        for group in compared.shares:
            part = f"{compared.what} by {compared.by}"
            yield share_row(group.group, group.share, part=part)


# ---------------------------------------------------------------- who can still guess the group


def _guess_label(guess: GuessedShare) -> str:
    return f"{guess.text}, {guess.reader}"


def _right_by_group(guess: GuessedShare) -> str:
    shares = [f"{share.group} {percent(share.share.value)}" for share in guess.per_group]
    return "; ".join(shares) or NOTHING


GUESS_COLUMNS: TableColumns[GuessedShare] = {
    "text and reader": _guess_label,
    "texts": lambda guess: f"{guess.accuracy.n:,}",
    "right": lambda guess: percent(guess.accuracy.value),
    "95 % interval": lambda guess: share_interval(guess.accuracy),
    "chance": lambda guess: percent(guess.chance),
    "p": lambda guess: p_value(guess.p_value),
    "not read": lambda guess: f"{guess.unread:,}",
    "right by group": _right_by_group,
}


def _guess_section(arm: str, by: str, guesses: Sequence[GuessedShare]) -> Section:
    """Return how often a class is guessed right, with the chance of it without the text."""
    rows = (
        share_row(_guess_label(guess), guess.accuracy, f"(chance {percent(guess.chance)})")
        for guess in guesses
    )
    picture = Forest(
        title=f"{arm}: how often {by} is guessed right",
        axis="share of the texts whose reader guesses right",
        caption=f"{INTERVALS} At chance, the text gives nothing away.",
        rows=tuple(rows),
        rate=True,
        lines=tuple(_chance_lines(guesses)),
    )
    figures = table(
        f"{arm}: {by} guessed from one candidate's text",
        guesses,
        GUESS_COLUMNS,
        words=("right by group",),
    )
    return Section(heading=f"{arm}: can {by} still be guessed?", parts=(picture, figures))


def _chance_lines(guesses: Sequence[GuessedShare]) -> Iterator[Reference]:
    lowest, *others = sorted({guess.chance for guess in guesses})
    yield Reference(value=lowest, words="chance")
    for chance in others:
        yield Reference(value=chance)
