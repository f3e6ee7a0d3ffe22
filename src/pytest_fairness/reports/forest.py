"""A forest plot: values with their intervals, one a row, against a line, under headings where there are several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_fairness.model import Verdict
from pytest_fairness.reports.axes import Scale, scale, symmetric, tick_label
from pytest_fairness.reports.columns import columns_of
from pytest_fairness.reports.drawing import (
    LETTER,
    WIDTH,
    Picture,
    in_lines,
    label_in_lines,
    line,
    mark,
    picture,
    text,
    tone,
    whisker,
)

ROW = 30
#: A row whose name takes two lines.
TALL = 38
#: How wide a name may get before it is broken, and on how many lines.
NAME, LINES = 34, 2
HEADING = 34
TOP = 32
RIGHT = 590
#: What fits beside a row: a figure and the longest verdict.
SIDE = 28
HEADINGS = 88


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One value with its interval; ``words`` stand beside it, ``verdict`` gives its shape. None: nothing to show."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    verdict: Verdict | None = None
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows under one heading; an empty heading takes no room."""

    rows: Sequence[Row]
    heading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A value to compare with: dashed with its words above it, or solid."""

    value: float
    words: str = ""
    solid: bool = False


def forest_picture(
    parts: Sequence[Part],
    identity: str,
    *,
    title: str,
    axis: str,
    caption: str = "",
    lines: Sequence[Line] = (),
    rate: bool = False,
    around: float | None = None,
    least: float = 1.0,
) -> Picture | None:
    """The rows of all *parts* on one axis; None where no row has a value.

    ``rate``: shares, told in per cent, from 0 on. ``around``: the axis reaches as far left as right of this value, and
    at least so far as *least*; without it, it holds the values and the *lines*.
    """
    rows = [row for part in parts for row in part.rows]
    if not any(row.value is not None for row in rows):
        return None
    names = [in_lines(row.label, NAME, LINES) for row in rows]
    left = 30 + LETTER * max(columns_of(one) for lines_ in names for one in lines_)
    height = TALL if any(len(lines_) > 1 for lines_ in names) else ROW
    ends = [end for row in rows for end in (row.value, row.low, row.high)]
    if around is None:
        places = scale([*ends, *(one.value for one in lines)], left, RIGHT, zero=rate)
    else:
        places = symmetric(ends, left, RIGHT, least=least, most=100 * least, around=around)
    shown = [part for part in parts if part.rows]
    bottom = TOP + height * len(rows) + HEADING * sum(bool(part.heading) for part in shown)
    body = [_axis(places, bottom, rate=rate), *(_reference(one, places, bottom) for one in lines)]
    y = TOP
    for part in shown:
        if part.heading:
            # Over the lines, so that they do not run through it.
            body.append(f'<rect class="behind" x="0" y="{y + 3}" width="{WIDTH}" height="{HEADING - 8}"/>')
            body.append(text(part.heading, 8, y + 21, "heading", HEADINGS))
            y += HEADING
        for row in part.rows:
            body.append(_row(row, places, y + height // 2))
            y += height
    body.append(text(axis, (left + RIGHT) / 2, bottom + 42, "axis-label", 70))
    told = "; ".join(f"{part.heading}: {_told(part)}" if part.heading else _told(part) for part in shown)
    return picture(body, bottom + 52, identity, title=title, description=told, caption=caption)


def _told(part: Part) -> str:
    return "; ".join(f"{row.label} {row.words or 'nothing to show'}" for row in part.rows)


def _row(row: Row, places: Scale, y: int) -> str:
    parts = [label_in_lines(row.label, places.left - 14, y, NAME, LINES)]
    kind = tone(row.verdict)
    if row.value is None:
        return "".join([*parts, text(row.words or "nothing to show", RIGHT + 14, y + 4, "side", SIDE)])
    if row.low is not None and row.high is not None:
        parts.append(whisker(places, row.low, row.high, y, kind))
    parts.append(mark(row.verdict, places.at(row.value), y))
    parts.append(text(row.words, RIGHT + 14, y + 4, f"side {kind}", SIDE))
    return "".join(parts)


def _axis(places: Scale, bottom: int, *, rate: bool) -> str:
    parts = []
    for tick in places.ticks():
        x = places.at(tick)
        parts.append(line(x, TOP - 6, x, bottom, "grid"))
        parts.append(f'<text class="tick" x="{x:g}" y="{bottom + 18}">{tick_label(tick, rate=rate)}</text>')
    parts.append(line(places.left, bottom, places.right, bottom, "axis"))
    return "".join(parts)


def _reference(one: Line, places: Scale, bottom: int) -> str:
    if not places.holds(one.value):
        return ""
    x = places.at(one.value)
    drawn = line(x, TOP - 6, x, bottom, "zero" if one.solid else "reference")
    return drawn + (text(one.words, x, TOP - 12, "tick", 34) if one.words else "")
