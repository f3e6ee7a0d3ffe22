"""Does a share depend on something else, and for some groups more than for others? A line a group, a panel an arm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_fairness.reports.axes import Scale, scale, tick_label
from pytest_fairness.reports.columns import columns_of
from pytest_fairness.reports.drawing import LETTER, WIDTH, Picture, in_lines, line, picture, text
from pytest_fairness.reports.escaping import html, visible
from pytest_fairness.reports.figures import percent

MOST_LINES = 8
MOST_LEVELS = 8
_LEFT, _GAP, _HEIGHT, _NAME = 52, 26, 210, 40
_ACROSS = 3
#: A path a group around 0, 0: lines are told apart by shape as well as by colour.
_SHAPES = (
    "M-5 -5h10v10h-10z", "M0 -7l7 7l-7 7l-7 -7z", "M0 -7l6.5 12h-13z", "M0 7l6.5 -12h-13z",
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z", "M-6.5 -2h4.5v-4.5h4v4.5h4.5v4h-4.5v4.5h-4v-4.5h-4.5z",
    "M-7 -4h14v8h-14z", "M-4 -7h8v14h-8z",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Point:
    """A share with its interval; None where there is nothing."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One small picture: for each group its points, one a level."""

    title: str
    levels: Sequence[str]
    lines: Sequence[tuple[str, Sequence[Point]]]


def interaction_picture(panels: Sequence[Panel], identity: str, *, title: str, caption: str = "") -> Picture | None:
    """The *panels* beside each other on one scale, one half marked; None where no point has a value."""
    panels = [_cut(panel) for panel in panels if panel.levels and panel.lines]
    points = [point for panel in panels for _, line_ in panel.lines for point in line_]
    if not any(point.value is not None for point in points):
        return None
    groups = list(dict.fromkeys(group for panel in panels for group, _ in panel.lines))[:MOST_LINES]
    body, top = _legend(groups)
    values = scale([0.5, *(end for point in points for end in (point.value, point.low, point.high))], 0, 1)
    across = min(_ACROSS, len(panels))
    width = (WIDTH - _LEFT - 8 - _GAP * (across - 1)) / across
    names = max(len(in_lines(level, _room(panel, width))) for panel in panels for level in panel.levels)
    height = 34 + _HEIGHT + 16 * names + 24
    for at, panel in enumerate(panels):
        x = _LEFT + (width + _GAP) * (at % across)
        body.append(_panel(panel, groups, values, x, top + height * (at // across), width, first=at % across == 0))
    told = "; ".join(_told(panel) for panel in panels)
    rows = (len(panels) - 1) // across + 1
    return picture(body, top + height * rows, identity, title=title, description=told, caption=caption)


def _cut(panel: Panel) -> Panel:
    """No more than can be told apart; the table has them all."""
    lines = [(group, points[:MOST_LEVELS]) for group, points in panel.lines[:MOST_LINES]]
    return Panel(title=panel.title, levels=panel.levels[:MOST_LEVELS], lines=lines)


def _told(panel: Panel) -> str:
    shown = (
        f"{group} " + ", ".join(f"{level} {percent(p.value)}" for level, p in zip(panel.levels, points, strict=False))
        for group, points in panel.lines
    )
    return f"{panel.title}: " + "; ".join(shown)


def _room(panel: Panel, width: float) -> int:
    return max(int(width / len(panel.levels) / 6.6), 4)


def _legend(groups: Iterable[str]) -> tuple[list[str], int]:
    """Mark and name of each group on as many lines as it takes, and where they end."""
    parts, x, y = [], 12.0, 18
    for at, group in enumerate(groups):
        room = 44 + LETTER * min(columns_of(visible(group)), _NAME)
        if x > 12 and x + room > WIDTH:
            x, y = 12.0, y + 24
        parts += [line(x - 8, y - 4, x + 14, y - 4, f"trace s{at}"), _mark(at, x + 3, y - 4)]
        parts.append(text(group, x + 22, y, "hint", _NAME))
        x += room
    return parts, y + 18


def _panel(panel: Panel, groups: Sequence[str], values: Scale, x: float, y: float, width: float, *, first: bool) -> str:
    top, bottom = y + 34, y + 34 + _HEIGHT
    up = Scale(values.low, values.high, bottom, top)
    parts = [text(panel.title, x, y + 20, "heading", int(width / LETTER))]
    for tick in up.ticks(5):
        parts.append(line(x, up.at(tick), x + width, up.at(tick), "grid"))
        if first:
            parts.append(
                f'<text class="label scale" x="{x - 8:g}" y="{up.at(tick) + 4:g}">{tick_label(tick, rate=True)}</text>'
            )
    parts.append(line(x, up.at(0.5), x + width, up.at(0.5), "reference"))
    parts.append(line(x, bottom, x + width, bottom, "axis"))
    step = width / len(panel.levels)
    for at, level in enumerate(panel.levels):
        for down, words in enumerate(in_lines(level, _room(panel, width))):
            parts.append(text(words, x + step * (at + 0.5), bottom + 18 + 16 * down, "tick"))
    spread = min(9.0, 0.7 * step / max(len(groups), 1))
    for group, points in panel.lines:
        if group in groups:
            place = groups.index(group)
            shift = spread * (place - (len(groups) - 1) / 2)
            across = [x + step * (at + 0.5) + shift for at in range(len(points))]
            parts.append(_trace(points, across, up, place, group))
    return "".join(parts)


def _trace(points: Sequence[Point], across: Sequence[float], up: Scale, place: int, group: str) -> str:
    known = [(x, point, point.value) for x, point in zip(across, points, strict=True) if point.value is not None]
    parts = [f"<g><title>{html(group)}</title>"]
    for (x1, _, before), (x2, _, after) in pairwise(known):
        parts.append(line(x1, up.at(before), x2, up.at(after), f"trace s{place}"))
    for x, point, value in known:
        if point.low is not None and point.high is not None:
            parts.append(line(x, up.at(point.low), x, up.at(point.high), f"stem s{place}"))
        parts.append(_mark(place, x, up.at(value)))
    return "".join([*parts, "</g>"])


def _mark(place: int, x: float, y: float) -> str:
    return f'<path class="point s{place}" transform="translate({x:g} {y:g})" d="{_SHAPES[place]}"/>'
