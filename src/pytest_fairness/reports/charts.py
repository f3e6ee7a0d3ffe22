"""The pictures that a page is made of, as data, and as inline SVG.

Colours are classes, so that the page's style serves light, dark and print. Every text that is not ours is escaped
here; what was cut stands whole in a ``<title>``. Every picture has a description in words, and none tells a verdict by
its colour alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import msgspec
from markupsafe import Markup

from pytest_fairness.model import Verdict
from pytest_fairness.reports.escaping import clipped, columns_of, html, visible
from pytest_fairness.reports.formatting import percent

WIDTH = 800
#: The width of a letter of the pictures' text, on the safe side of what browsers draw.
LETTER = 7.5
#: Below this a picture shows nothing, and the arithmetic of ticks runs out of digits.
_SMALLEST = 1e-9


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Plain data of a page: written to a run's folder as JSON, and read back."""


class ForestRow(Spec, frozen=True):
    """One value with its interval; ``words`` stand beside it, ``verdict`` gives its shape, ``before`` is a ring.

    Rows of one ``part`` stand under it as their heading; an empty one takes no room.
    """

    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    before: float | None = None
    verdict: Verdict | None = None
    words: str = ""
    part: str = ""


class Reference(Spec, frozen=True):
    """A value to compare with: dashed with its words above it, or solid."""

    value: float
    words: str = ""
    solid: bool = False


class Forest(Spec, tag="forest", frozen=True):
    """Values with their intervals, one a row, on one axis.

    ``rate``: shares, shown in per cent, from 0 on. ``around``: the axis reaches as far left as right of this value, at
    least so far as ``least`` and at most as ``most``; without it, it holds the values and the ``lines``. ``band``
    shades what is trivial.
    """

    title: str
    axis: str
    rows: tuple[ForestRow, ...]
    lines: tuple[Reference, ...] = ()
    band: tuple[float, float] | None = None
    rate: bool = False
    around: float | None = None
    least: float = 1.0
    most: float | None = None
    caption: str = ""


class Bar(Spec, frozen=True):
    """A row of :class:`Bars`: parts of a whole by name, together at most 1."""

    label: str
    parts: tuple[tuple[str, float], ...]


class Bars(Spec, tag="bars", frozen=True):
    """Shares of a whole as bars of one length, one a row."""

    title: str
    axis: str
    bars: tuple[Bar, ...]
    caption: str = ""


class Square(Spec, frozen=True):
    """The share of *n* choices in which ``row`` was chosen over ``column``, and the verdict on the two."""

    row: str
    column: str
    share: float | None
    n: int
    verdict: Verdict


class Matrix(Spec, tag="matrix", frozen=True):
    """Every group against every other: row over column; mirrored squares are filled in."""

    title: str
    names: tuple[str, ...]
    squares: tuple[Square, ...]


class Point(Spec, frozen=True):
    """A share with its interval, of a ``line`` of a ``panel``, at a ``level``; None where there is nothing."""

    panel: str
    line: str
    level: str
    value: float | None = None
    low: float | None = None
    high: float | None = None


class Panels(Spec, tag="panels", frozen=True):
    """Does a share depend on something else, and for some groups more than for others? One scale, half marked."""

    title: str
    points: tuple[Point, ...]
    caption: str = ""


Chart: TypeAlias = Forest | Bars | Matrix | Panels


class Drawing(NamedTuple):
    """A chart as SVG, and what stands under it."""

    svg: Markup
    caption: str


def draw(chart: Chart, identity: str) -> Drawing | None:
    """The *chart* as SVG; *identity* tells it from others on the page. None where it has nothing to show."""
    match chart:
        case Forest():
            found = _forest(chart)
        case Bars():
            found = _bars(chart)
        case Matrix():
            found = _matrix(chart)
        case Panels():
            found = _panels(chart)
    if found is None:
        return None
    body, height, description, caption = found
    svg = (
        f'<svg class="picture" viewBox="0 0 {WIDTH} {height:g}" role="img" '
        f'aria-labelledby="{identity}-title {identity}-desc" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{identity}-title">{html(chart.title)}</title>'
        f'<desc id="{identity}-desc">{html(description)}</desc>{"".join(body)}</svg>'
    )
    return Drawing(Markup(svg), caption)  # noqa: S704 - every text in it is escaped above and below


_Drawn: TypeAlias = "tuple[Iterable[str], float, str, str] | None"

# ---------------------------------------------------------------- axes


class AxisScale(NamedTuple):
    """Values from *low* to *high* laid out from *left* to *right*, in the picture's units."""

    low: float
    high: float
    left: float
    right: float

    def at(self, value: float) -> float:
        """Where *value* lies, held inside the picture; two decimals are more than a screen shows."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.left + share * (self.right - self.left), 2)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def ticks(self, about: int = 6) -> list[float]:
        """Round values across the scale: 1, 2 or 5 times a power of ten apart."""
        rough = (self.high - self.low) / about
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if rough <= power * factor * 1.000001)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def scale(values: Iterable[float | None], left: float, right: float, *, zero: bool = False) -> AxisScale:
    """A scale around the finite *values* with a little air, from 0 on with *zero*."""
    finite = _finite(values)
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if zero:
        low = min(0.0, low)
    spread = high - low
    if spread <= abs(high) * 1e-9 or spread < _SMALLEST:
        spread = abs(high) if abs(high) > _SMALLEST else 1.0
    air = spread * 0.08
    return AxisScale(0.0 if zero and low == 0.0 else low - air, high + air, left, right)


def symmetric(
    values: Iterable[float | None], left: float, right: float, *, least: float, most: float, around: float = 0.0
) -> AxisScale:
    """A scale as far left as right of *around* that holds the *values*, from ±*least* to at most ±*most*."""
    reach = max((abs(value - around) for value in _finite(values)), default=0.0)
    reach = min(max(reach * 1.08, least), most)
    return AxisScale(around - reach, around + reach, left, right)


def _finite(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def tick_label(value: float, *, rate: bool = False) -> str:
    """``0.25``, ``−5``, ``20 %``."""
    text = f"{100 * value:.6g} %" if rate else f"{value:,.6g}"
    return text.replace("-", "−")


# ---------------------------------------------------------------- marks and words


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'


def _rect(x: float, y: float, width: float, height: float, kind: str, more: str = "") -> str:
    size = f'width="{max(width, 0):.6g}" height="{height:g}"'
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" {size}{more}/>'


def _titled(title: str, *parts: str) -> str:
    """*parts* with words for who points at them."""
    return f"<g><title>{html(title)}</title>{''.join(parts)}</g>"


def _text(words: str, x: float, y: float, kind: str, most: int | None = None) -> str:
    """*words* at a place, cut to *most* columns; what was cut is shown when pointed at."""
    shown = visible(words, keep="")
    cut = shown if most is None else clipped(shown, most)
    whole = f"<title>{html(words)}</title>" if cut != shown else ""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{html(cut)}{whole}</text>'


def _label(words: str, x: float, y: float, width: int, most: int = 2) -> str:
    """The name of a row, ending at *x*, on as many lines as it takes, around *y*."""
    lines = in_lines(words, width, most)
    first = y + 4 - 7.5 * (len(lines) - 1)
    return _titled(words, *(_text(one, x, first + 15 * down, "label") for down, one in enumerate(lines)))


def in_lines(words: str, width: int, most: int = 3) -> list[str]:
    """*words* on up to *most* lines of *width* columns, broken behind spaces, hyphens and underscores if it can be."""
    lines: list[str] = []
    for part in re.findall(r"[^\s_/-]+[\s_/-]*|[\s_/-]+", visible(words, keep="")):
        if lines and columns_of((lines[-1] + part).rstrip()) <= width:
            lines[-1] += part
        else:
            lines.append(part)
    kept = [clipped(one.strip(), width) for one in lines[:most]] or [""]
    if len(lines) > most:
        kept[-1] = clipped(kept[-1] + "……", width) if columns_of(kept[-1]) >= width else kept[-1] + "…"
    return kept


def _tone(verdict: Verdict | None) -> str:
    return "plain" if verdict is None else verdict.value.lower()


def _mark(verdict: Verdict | None, x: float, y: float) -> str:
    """A shape a verdict, so that none depends on its colour alone."""
    kind = _tone(verdict)
    match verdict:
        case Verdict.FAIL:
            return _rect(x - 6, y - 6, 12, 12, f"dot {kind}")
        case Verdict.FLAG:
            return f'<path class="dot {kind}" d="M{x:g} {y - 8:g}l8 8l-8 8l-8 -8z"/>'
        case _:
            shape = "ring" if verdict is Verdict.INCONCLUSIVE else "dot"
            return f'<circle class="{shape} {kind}" cx="{x:g}" cy="{y:g}" r="6"/>'


def _whisker(places: AxisScale, low: float, high: float, y: float, kind: str) -> Iterator[str]:
    """The interval, ended by a bar, or by an arrow where it goes on outside the picture."""
    yield _line(places.at(low), y, places.at(high), y, f"whisker {kind}")
    for end, sign in ((low, -1), (high, 1)):
        x = places.at(end)
        if places.holds(end) and math.isfinite(end):
            yield _line(x, y - 5, x, y + 5, f"whisker {kind}")
        else:
            yield f'<path class="arrow {kind}" d="M{x:g} {y - 5:g}l{sign * 8} 5l{-sign * 8} 5z"/>'


def _ticks(places: AxisScale, top: float, bottom: float, *, rate: bool) -> Iterator[str]:
    """The axis along the bottom, with a line up from each tick."""
    for tick in places.ticks():
        x = places.at(tick)
        yield _line(x, top - 6, x, bottom, "grid")
        yield _text(tick_label(tick, rate=rate), x, bottom + 18, "tick")
    yield _line(places.left, bottom, places.right, bottom, "axis")


def _legend(names: Iterable[str], left: float, top: float, step: float) -> Iterator[tuple[int, float, float]]:
    """Where each of *names* stands, on as many lines as it takes: number, x and y."""
    x, y = left, top
    for at, name in enumerate(names):
        room = 44 + LETTER * min(columns_of(visible(name)), _NAME)
        if x > left and x + room > WIDTH:
            x, y = left, y + step
        yield at, x, y
        x += room


_NAME = 40

# ---------------------------------------------------------------- forest plots

_TOP, _RIGHT, _HEADING = 32, 590, 34


def _forest(chart: Forest) -> _Drawn:
    rows = chart.rows
    if not any(row.value is not None for row in rows):
        return None
    parts: dict[str, list[ForestRow]] = {}
    for row in rows:
        parts.setdefault(row.part, []).append(row)
    names = [in_lines(row.label, 34, 2) for row in rows]
    height = 38 if any(len(lines) > 1 for lines in names) else 30
    left = 30 + LETTER * max(columns_of(one) for lines in names for one in lines)
    ends = [end for row in rows for end in (row.value, row.low, row.high, row.before)]
    if chart.around is None:
        places = scale([*ends, *(line.value for line in chart.lines)], left, _RIGHT, zero=chart.rate)
    else:
        most = chart.most or 100 * chart.least
        places = symmetric(ends, left, _RIGHT, least=chart.least, most=most, around=chart.around)
    bottom = _TOP + height * len(rows) + _HEADING * sum(map(bool, parts))
    body = []
    if chart.band is not None:
        start, end = map(places.at, chart.band)
        body.append(_rect(start, _TOP - 6, end - start, bottom - _TOP + 6, "band"))
    body += [*_ticks(places, _TOP, bottom, rate=chart.rate)]
    for line in chart.lines:
        if places.holds(line.value):
            x = places.at(line.value)
            body += [_line(x, _TOP - 6, x, bottom, "zero" if line.solid else "reference")]
            body += [_text(line.words, x, _TOP - 12, "tick", 34)] if line.words else []
    y, described = _TOP, []
    for heading, some in parts.items():
        if heading:
            # Over the lines, so that they do not run through it.
            body += [_rect(0, y + 3, WIDTH, _HEADING - 8, "behind"), _text(heading, 8, y + 21, "heading", 88)]
            y += _HEADING
        for row in some:
            body += _forest_row(row, places, y + height // 2)
            y += height
        words = "; ".join(f"{row.label} {row.words or 'nothing to show'}" for row in some)
        described.append(f"{heading}: {words}" if heading else words)
    body.append(_text(chart.axis, (left + _RIGHT) / 2, bottom + 42, "axis-label", 80))
    return body, bottom + 52, "; ".join(described), chart.caption


def _forest_row(row: ForestRow, places: AxisScale, y: float) -> Iterator[str]:
    yield _label(row.label, places.left - 14, y, 34)
    kind = _tone(row.verdict)
    if row.value is None:
        yield _text(row.words or "nothing to show", _RIGHT + 14, y + 4, "side", 28)
        return
    x = places.at(row.value)
    if row.before is not None:
        yield _line(places.at(row.before), y, x, y, f"whisker {kind}")
        yield f'<circle class="ring" cx="{places.at(row.before):g}" cy="{y:g}" r="6"/>'
    if row.low is not None and row.high is not None:
        yield from _whisker(places, row.low, row.high, y, kind)
    yield _mark(row.verdict, x, y)
    yield _text(row.words, _RIGHT + 14, y + 4, f"side {kind}", 28)


# ---------------------------------------------------------------- bars


def _bars(chart: Bars) -> _Drawn:
    if not any(bar.parts for bar in chart.bars):
        return None
    left = 30 + LETTER * max(columns_of(one) for bar in chart.bars for one in in_lines(bar.label, 30, 2))
    places = AxisScale(0.0, 1.0, left, WIDTH - 20)
    body, top = [], 0.0
    names = [name for name, _ in max(chart.bars, key=lambda bar: len(bar.parts)).parts]
    for at, x, y in _legend(names, left, 14, 22):
        body += [_rect(x, y - 11, 13, 13, f"share s{min(at, 7)}"), _text(names[at], x + 19, y, "hint", 30)]
        top = y + 22
    bottom = top + 34 * len(chart.bars)
    body += _ticks(places, top, bottom, rate=True)
    for at, bar in enumerate(chart.bars):
        body += _bar(bar, places, top + 34 * at + 17)
    body.append(_text(chart.axis, WIDTH // 2, bottom + 42, "axis-label", 80))
    description = "; ".join(
        f"{bar.label}: " + ", ".join(f"{part} {percent(share)}" for part, share in bar.parts) for bar in chart.bars
    )
    return body, bottom + 50, description, chart.caption


def _bar(bar: Bar, places: AxisScale, y: float) -> Iterator[str]:
    """The parts from left to right, named in the bar where there is room, and always to who points at one."""
    yield _label(bar.label, places.left - 14, y, 30)
    start = 0.0
    for at, (part, share) in enumerate(bar.parts):
        x, end = places.at(start), places.at(start + share)
        words = f"{bar.label}: {part} {percent(share)}"
        yield _titled(words, _rect(x, y - 11, end - x, 22, f"share s{min(at, 7)}"))
        fitting = [w for w in (f"{part} {share:.0%}", f"{share:.0%}") if 8 * columns_of(visible(w)) < end - x]
        if fitting:
            yield _text(fitting[0], (x + end) / 2, y + 4, "inside")
        start += share


# ---------------------------------------------------------------- every group against every other

MOST_NAMES = 12
_SQUARE = 50
#: The strongest tint that its words can still be read on, in light and dark.
_TINT = 0.4


def _matrix(chart: Matrix) -> _Drawn:
    names = chart.names[:MOST_NAMES]
    squares = [square for square in chart.squares if square.row in names and square.column in names]
    if not squares:
        return None
    found = {(square.column, square.row): (_turned(square.share), square) for square in squares}
    found |= {(square.row, square.column): (square.share, square) for square in squares}
    left = 24 + LETTER * min(max(columns_of(visible(name)) for name in names), 22)
    width = max(min((WIDTH - left - 4) / len(names), 118), 46)
    heads = [in_lines(name, max(int(width / (LETTER + 0.5)), 4), 4) for name in names]
    top = 16 * max(map(len, heads)) + 36
    body = [_text("over …", left, 14, "hint")]
    for across, (name, lines) in enumerate(zip(names, heads, strict=True)):
        first = top - 8 - 16 * (len(lines) - 1)
        at = left + width * (across + 0.5)
        body.append(_titled(name, *(_text(one, at, first + 16 * down, "head") for down, one in enumerate(lines))))
    for down, row in enumerate(names):
        y = top + _SQUARE * down
        body.append(_label(row, left - 12, y + _SQUARE / 2, 22, 3))
        for across, column in enumerate(names):
            share, square = found.get((row, column), (None, None))
            body.append(_square(row, column, share, square, left + width * across, y, width))
    x, y = left, top + _SQUARE * len(names) + 26
    for verdict in sorted({square.verdict for square in squares}, key=lambda one: -one.severity):
        body += [_mark(verdict, x + 7, y - 4), _text(verdict.value, x + 20, y, "hint")]
        x += 44 + 9 * len(verdict.value)
    description = "; ".join(f"{s.row} over {s.column} {percent(s.share)} of {s.n}, {s.verdict}" for s in squares)
    caption = "How often the row is chosen over the column. Blue: more often than not; orange: less often."
    if len(names) < len(chart.names):
        caption += f" The first {MOST_NAMES} of {len(chart.names)} groups; the table has them all."
    return body, y + 14, description, caption


def _turned(share: float | None) -> float | None:
    return None if share is None else 1.0 - share


def _square(row: str, column: str, share: float | None, square: Square | None, x: float, y: float, width: float) -> str:
    """A tint for which way the share leans from one half and how far, its number, and a shape for the verdict."""
    size = (x + 1.5, y + 1.5, width - 3, _SQUARE - 3)
    empty = _rect(*size, "none", ' rx="4"')
    if row == column:
        return empty
    if square is None or share is None:
        return empty + _text("–", x + width / 2, y + _SQUARE / 2 + 4, "number")
    tint = min(abs(share - 0.5) * 2, 1.0) * _TINT
    return _titled(
        f"{row} over {column}: {percent(share)} of {square.n} choices, {square.verdict}",
        empty,
        _rect(*size, "more" if share >= 0.5 else "less", f' rx="4" fill-opacity="{tint:.2f}"'),
        _text(f"{share:.0%}".replace("%", " %"), x + width / 2, y + 22, "number"),
        _mark(square.verdict, x + width / 2, y + 36),
    )


# ---------------------------------------------------------------- panels of lines

MOST_LINES = MOST_LEVELS = 8
_LEFT, _GAP, _HEIGHT, _ACROSS = 52, 26, 210, 3
#: A path a group around 0, 0: lines are told apart by shape as well as by colour.
_SHAPES = (
    "M-5 -5h10v10h-10z", "M0 -7l7 7l-7 7l-7 -7z", "M0 -7l6.5 12h-13z", "M0 7l6.5 -12h-13z",
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z", "M-6.5 -2h4.5v-4.5h4v4.5h4.5v4h-4.5v4.5h-4v-4.5h-4.5z",
    "M-7 -4h14v8h-14z", "M-4 -7h8v14h-8z",
)  # fmt: skip


def _panels(chart: Panels) -> _Drawn:
    if not any(point.value is not None for point in chart.points):
        return None
    # No more lines and levels than can be told apart; the table has them all.
    lines = list(dict.fromkeys(point.line for point in chart.points))[:MOST_LINES]
    body, top = [], 0.0
    for at, x, y in _legend(lines, 12, 18, 24):
        body += [_line(x - 8, y - 4, x + 14, y - 4, f"trace s{at}"), _shape(at, x + 3, y - 4)]
        body.append(_text(lines[at], x + 22, y, "hint", _NAME))
        top = y + 18
    panels: dict[str, dict[str, list[Point]]] = {}
    for point in chart.points:
        levels = panels.setdefault(point.panel, {})
        if point.line in lines and (point.level in levels or len(levels) < MOST_LEVELS):
            levels.setdefault(point.level, []).append(point)
    ends = (end for point in chart.points for end in (point.value, point.low, point.high))
    values = scale([0.5, *ends], 0, 1)
    across = min(_ACROSS, len(panels))
    width = (WIDTH - _LEFT - 8 - _GAP * (across - 1)) / across
    names = max(len(in_lines(level, _room(levels, width))) for levels in panels.values() for level in levels)
    height, described = 34 + _HEIGHT + 16 * names + 24, []
    for at, (title, levels) in enumerate(panels.items()):
        x, y = _LEFT + (width + _GAP) * (at % across), top + height * (at // across)
        up = AxisScale(values.low, values.high, y + 34 + _HEIGHT, y + 34)
        body += [_text(title, x, y + 20, "heading", int(width / LETTER))]
        body += _panel(levels, lines, up, x, width, scaled=at % across == 0)
        shares = (f"{p.line} {level} {percent(p.value)}" for level, points in levels.items() for p in points)
        described.append(f"{title}: {'; '.join(shares)}")
    rows = (len(panels) - 1) // across + 1
    return body, top + height * rows, "; ".join(described), chart.caption


def _room(levels: Collection[str], width: float) -> int:
    return max(int(width / len(levels) / 6.6), 4)


def _panel(
    levels: Mapping[str, Sequence[Point]], lines: Sequence[str], up: AxisScale, x: float, width: float, *, scaled: bool
) -> Iterator[str]:
    """The points of each level above its name, joined by *lines*."""
    bottom, step = up.left, width / len(levels)
    for tick in up.ticks(5):
        yield _line(x, up.at(tick), x + width, up.at(tick), "grid")
        if scaled:
            yield _text(tick_label(tick, rate=True), x - 8, up.at(tick) + 4, "label scale")
    yield _line(x, up.at(0.5), x + width, up.at(0.5), "reference")
    yield _line(x, bottom, x + width, bottom, "axis")
    for at, level in enumerate(levels):
        for down, words in enumerate(in_lines(level, _room(levels, width))):
            yield _text(words, x + step * (at + 0.5), bottom + 18 + 16 * down, "tick")
    spread = min(9.0, 0.7 * step / len(lines))
    for place, line in enumerate(lines):
        start = x + step / 2 + spread * (place - (len(lines) - 1) / 2)
        known = [
            (start + step * at, point, point.value)
            for at, points in enumerate(levels.values())
            for point in points
            if point.line == line and point.value is not None
        ]
        trace = [_line(x1, up.at(y1), x2, up.at(y2), f"trace s{place}") for (x1, _, y1), (x2, _, y2) in pairwise(known)]
        for x1, point, value in known:
            if point.low is not None and point.high is not None:
                trace.append(_line(x1, up.at(point.low), x1, up.at(point.high), f"stem s{place}"))
            trace.append(_shape(place, x1, up.at(value)))
        yield _titled(line, *trace)


def _shape(place: int, x: float, y: float) -> str:
    return f'<path class="point s{place}" transform="translate({x:g} {y:g})" d="{_SHAPES[place]}"/>'
