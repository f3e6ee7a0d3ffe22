"""Cells, rows and pictures of shares, which the sections of the selection page have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias, TypeVar

from pytest_fairness import Reason, Verdict
from pytest_fairness.reports import (
    Entry,
    Forest,
    ForestRow,
    Part,
    Reference,
    Section,
    without_verdict,
)
from pytest_fairness.statistics.selection_rates import Rate
from pytest_fairness.suites.selection.choice_table import GROUP
from pytest_fairness.words import interval, percent

Row = TypeVar("Row")
TableColumns: TypeAlias = dict[str, Callable[[Row], str | Entry]]
"""The title of each column of a table, and what makes its cell of a row."""
INTERVALS = "Lines are 95 % intervals."


class WithVerdict(Protocol):
    """A part of the results that was judged."""

    @property
    def verdict(self) -> Verdict: ...

    @property
    def reason(self) -> Reason | None: ...


class WithSentence(WithVerdict, Protocol):
    """A part of the results whose verdict a sentence says."""

    @property
    def sentence(self) -> str: ...


class TwoGroups(Protocol):
    """A part of the results about two groups."""

    @property
    def group_1(self) -> str: ...

    @property
    def group_2(self) -> str: ...


def verdict_entry(judged: WithVerdict) -> Entry:
    """Return the verdict as a badge, with its reason."""
    return Entry(verdict=judged.verdict, reason=judged.reason)


def sentence_of(judged: WithSentence) -> str:
    """Return the sentence without the verdict, beside which it stands."""
    return without_verdict(judged.sentence, judged.verdict)


def judged_section(heading: str, judged: WithVerdict, *parts: Part, sentence: str = "") -> Section:
    """Return *parts* under a heading with the verdict on them."""
    return Section(
        heading=heading,
        verdict=judged.verdict,
        reason=judged.reason,
        sentence=sentence,
        parts=parts,
    )


def pair_label(pair: TwoGroups) -> str:
    """Name two groups: ``white – black``."""
    return f"{pair.group_1} – {pair.group_2}"


def by_words(by: str) -> str:
    """Return what is added to a heading about a class: ``, by gender``; nothing for the groups."""
    if by == GROUP:
        return ""
    return f", by {by.replace('_', ' ')}"


def share_interval(share: Rate) -> str:
    """Write the 95 % interval of a share."""
    return interval(share.low, share.high, percent)


def remainder(share: float | None) -> float | None:
    """Return the share of the other of two."""
    if share is None:
        return None
    return 1 - share


def share_row(
    label: str,
    share: Rate,
    words: str = "",
    *,
    verdict: Verdict | None = None,
    part: str = "",
    series: str = "",
) -> ForestRow:
    """Return the row of a picture for a share, with *words* after its figure."""
    return ForestRow(
        label=label,
        value=share.value,
        low=share.low,
        high=share.high,
        verdict=verdict,
        words=f"{percent(share.value)} {words}".rstrip(),
        part=part,
        series=series,
    )


def shares_around_half(title: str, axis: str, caption: str, rows: Iterable[ForestRow]) -> Forest:
    """Return a picture of shares that are one half where nothing is preferred."""
    return Forest(
        title=title,
        axis=axis,
        caption=caption,
        rows=tuple(rows),
        lines=(Reference(value=0.5, words="one half"),),
        rate=True,
        around=0.5,
        least=0.2,
    )


def values_around_zero(
    title: str, axis: str, caption: str, rows: Iterable[ForestRow], *, least: float
) -> Forest:
    """Return a picture whose axis reaches *least* to either side of zero at least."""
    return Forest(
        title=title,
        axis=axis,
        caption=caption,
        rows=tuple(rows),
        lines=(Reference(value=0.0, solid=True),),
        around=0.0,
        least=least,
    )
