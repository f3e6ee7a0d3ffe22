"""Shares of a whole as bars of one length, one a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pytest_fairness.reports.axes import Scale, tick_label
from pytest_fairness.reports.columns import columns_of
from pytest_fairness.reports.drawing import LABEL, LETTER, WIDTH, Picture, label, left_of, line, picture, text
from pytest_fairness.reports.escaping import html, shortened, visible
from pytest_fairness.reports.figures import percent

ROW = 34

#: A row's name with its parts, each a name and a share; together the shares are at most 1.
Bar: TypeAlias = tuple[str, Sequence[tuple[str, float]]]


def stacked_picture(rows: Sequence[Bar], identity: str, *, title: str, axis: str, caption: str = "") -> Picture:
    """Each row's parts from left to right, told in the bar where there is room and by pointing where not."""
    places = Scale(0.0, 1.0, left_of(name for name, _ in rows), WIDTH - 20)
    body, top = _legend(rows, places.left)
    bottom = top + ROW * len(rows)
    for tick in places.ticks():
        x = places.at(tick)
        body.append(line(x, top - 6, x, bottom, "grid"))
        body.append(f'<text class="tick" x="{x:g}" y="{bottom + 18}">{tick_label(tick, rate=True)}</text>')
    body.append(line(places.left, bottom, places.right, bottom, "axis"))
    for at, (name, parts) in enumerate(rows):
        y, start = top + ROW * at + ROW // 2, 0.0
        body.append(label(name, y, places.left))
        for place, (part, share) in enumerate(parts):
            x, end = places.at(start), places.at(start + share)
            body.append(_part(f"{name}: {part} {percent(share)}", place, x, y, end - x))
            fitting = [words for words in (f"{part} {share:.0%}", f"{share:.0%}") if _width(words) < end - x]
            if fitting:
                body.append(f'<text class="inside" x="{(x + end) / 2:.2f}" y="{y + 4}">{html(fitting[0])}</text>')
            start += share
    words = html(shortened(axis, 80))
    body.append(f'<text class="axis-label" x="{WIDTH // 2}" y="{bottom + 42}">{words}</text>')
    told = "; ".join(
        f"{name}: " + ", ".join(f"{part} {percent(share)}" for part, share in parts) for name, parts in rows
    )
    return picture(body, bottom + 50, identity, title=title, description=told, caption=caption)


def _part(told: str, place: int, x: float, y: float, width: float) -> str:
    return (
        f'<rect class="share s{min(place, 7)}" x="{x:g}" y="{y - 11:g}" width="{max(width, 0):.2f}" height="22">'
        f"<title>{html(told)}</title></rect>"
    )


def _legend(rows: Sequence[Bar], left: float) -> tuple[list[str], int]:
    """The colour of each part of the fullest row, on as many lines as it takes, and where they end."""
    parts, x, y = [], left, 14
    fullest = max(rows, key=lambda row: len(row[1]))[1] if rows else ()
    for place, (name, _) in enumerate(fullest):
        room = 34 + LETTER * min(columns_of(visible(name)), LABEL)
        if x > left and x + room > WIDTH:
            x, y = left, y + 22
        parts.append(f'<rect class="share s{min(place, 7)}" x="{x:g}" y="{y - 11}" width="13" height="13"/>')
        parts.append(text(name, x + 19, y, "hint", LABEL))
        x += room
    return parts, y + 22


def _width(words: str) -> int:
    """The room that *words* take in a bar, with some air."""
    return 8 * columns_of(visible(words))
