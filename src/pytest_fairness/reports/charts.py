"""The pictures of a page, as data and as inline SVG: values with their intervals on one axis, bars,
values over time.

A picture is as wide as what it stands in: places across are per cent, heights and letters are
pixels, so that no text shrinks on a narrow screen; words stand above their row. Colours are
classes, so that the page's style serves light, dark and print. Every text that is not ours is
escaped here; what was cut stands whole in a ``<title>``. Every picture has a description in words,
and none tells a verdict by its colour alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import msgspec
from markupsafe import Markup

from pytest_fairness.model import Verdict
from pytest_fairness.reports.escaping import clipped, columns_of, html, visible
from pytest_fairness.words import count, percent, signed

#: How many columns of text fit on the narrowest screen.
COLUMNS = 40
#: The width of a letter on the safe side of what browsers draw, and of the narrowest picture, in
#: pixels.
LETTER, NARROW = 7.5, 296
#: The ends of an axis, in per cent of the width.
LEFT, RIGHT = 4.0, 96.0
#: A picture by itself, in pixels: its width, and what is free around it.
WIDTH, MARGIN = 640, 20
#: No more series than can be told apart; the table has them all.
MOST_SERIES = 8
#: No more dots a row than can be told apart.
MOST_DOTS = 60
#: Below this a picture shows nothing, and the arithmetic of ticks runs out of digits.
_SMALLEST = 1e-9


class Spec(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Plain data of a page: written to a run's folder as JSON, and read back."""


class ForestRow(Spec, frozen=True):
    """One value with its interval; ``words`` stand beside it, ``verdict`` gives its shape,
    ``before`` is a ring.

    Rows of one ``part`` stand under it as their heading. Those of one part and label that are of
    different ``series`` share a line; the shapes of the series stand in a legend, and their words
    in the description alone. ``dots`` are the values that it is the mean of, by name.
    """

    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    before: float | None = None
    verdict: Verdict | None = None
    words: str = ""
    part: str = ""
    series: str = ""
    dots: tuple[tuple[str, float], ...] = ()


class Reference(Spec, frozen=True):
    """A value to compare with: dashed with its words above it, or solid."""

    value: float
    words: str = ""
    solid: bool = False


class Forest(Spec, tag="forest", frozen=True):
    """Values with their intervals, one a row, on one axis.

    ``rate``: shares, shown in per cent, from 0 on. ``around``: the axis reaches as far left as
    right of this value, at least so far as ``least`` and at most as ``most``; without it, it holds
    the values and the ``lines``. ``band`` shades what is trivial.
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


class OverTime(Spec, tag="over_time", frozen=True):
    """One value over several runs, the first one at the left: the ``rows`` in their order, ``part``
    is who answered.
    """

    title: str
    axis: str
    rows: tuple[ForestRow, ...]
    lines: tuple[Reference, ...] = ()
    band: tuple[float, float] | None = None
    caption: str = ""


class Bars(Spec, tag="bars", frozen=True):
    """Shares of a whole by name, as bars of one length, one a label."""

    title: str
    axis: str
    bars: dict[str, dict[str, float]]
    caption: str = ""


Chart: TypeAlias = Forest | OverTime | Bars
_Drawn: TypeAlias = "tuple[Iterable[str], float, str] | None"


def draw(chart: Chart, identity: str) -> Markup | None:
    """The *chart* as SVG as wide as what it stands in; *identity* tells it from others on the page.
    None where it has nothing to show.
    """
    drawn = _drawn(chart)
    if drawn is None:
        return None
    body, height, description = drawn
    return Markup(  # noqa: S704 - every text in it is escaped here and below
        f'<svg class="picture" width="100%" height="{height:g}" role="img" '
        f'aria-labelledby="{identity}-title {identity}-desc" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{identity}-title">{html(chart.title)}</title>'
        f'<desc id="{identity}-desc">{html(description)}</desc>{"".join(body)}</svg>'
    )


def standalone(chart: Chart) -> str | None:
    """The *chart* as an SVG file with its title and its style, light or dark as the reader prefers;
    None where it has nothing to show.
    """
    drawn = _drawn(chart)
    if drawn is None:
        return None
    body, height, description = drawn
    top = MARGIN
    title = in_lines(chart.title, 72, 3)
    head = _texts(title, "0", 14, "heading", 20)
    shift = 20 * len(title) + 6
    width = WIDTH + 2 * MARGIN
    whole = height + shift + 2 * MARGIN
    return (
        f'<svg class="picture" viewBox="0 0 {width} {whole:g}" width="{width}" height="{whole:g}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{html(chart.title)}</title><desc>{html(description)}</desc>'
        f'<style>{_style()}</style><rect class="behind" width="100%" height="100%"/>'
        f'<svg x="{MARGIN}" y="{top}" width="{WIDTH}" height="{shift}" overflow="visible">{"".join(head)}</svg>'
        f'<svg x="{MARGIN}" y="{top + shift}" width="{WIDTH}" height="{height:g}" overflow="visible">'
        f"{''.join(body)}</svg></svg>\n"
    )


@cache
def _style() -> str:
    """The rules of the style sheet for pictures, with the colours themselves: not every program
    knows variables.
    """
    sheet = (
        files("pytest_fairness.reports").joinpath("templates/style.css").read_text(encoding="utf-8")
    )
    roots = re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)[:2]
    light, dark = (dict(re.findall(r"--([\w-]+): ([^;]+);", root)) for root in roots)
    rules = "".join(re.findall(r"^\.picture .*$", sheet, re.MULTILINE))

    def coloured(colours: Mapping[str, str]) -> str:
        return re.sub(r"var\(--([\w-]+)\)", lambda name: colours[name[1]], rules).replace('"', "'")

    return f"{coloured(light)}@media (prefers-color-scheme: dark){{{coloured(light | dark)}}}"


def _drawn(chart: Chart) -> _Drawn:
    match chart:
        case Forest():
            return _forest(chart)
        case OverTime():
            return _over_time(chart)
        case Bars():
            return _bars(chart)


# ---------------------------------------------------------------- the axis


class AxisScale(NamedTuple):
    """Values from *low* to *high* laid out from *left* to *right*."""

    low: float
    high: float
    left: float = LEFT
    right: float = RIGHT

    def at(self, value: float) -> float:
        """Return where *value* lies, held inside the picture; two decimals are more than a screen
        shows.
        """
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.left + share * (self.right - self.left), 2)

    def holds(self, value: float) -> bool:
        """Return whether *value* lies inside the picture."""
        return self.low <= value <= self.high

    def ticks(self, most: int = 6) -> list[float]:
        """Some *most* round values across the scale: 1, 2 or 5 times a power of ten apart."""
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(
            power * factor for factor in (1, 2, 5, 10) if rough <= power * factor * 1.000001
        )
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def scale(
    values: Iterable[float | None],
    left: float = LEFT,
    right: float = RIGHT,
    *,
    zero: bool = False,
    around: float | None = None,
    least: float = 0.0,
    most: float | None = None,
) -> AxisScale:
    """A scale around the finite *values* with a little air, from 0 on with *zero*; or as far left
    as right of *around*, from ±*least* to at most ±*most*.
    """
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if around is not None:
        reach = max((abs(value - around) for value in finite), default=0.0) * 1.08
        reach = min(max(reach, least), most or 100 * least)
        return AxisScale(around - reach, around + reach, left, right)
    low = min(finite, default=0.0)
    high = max(finite, default=1.0)
    if zero:
        low = min(0.0, low)
    spread = high - low
    if spread <= abs(high) * 1e-9 or spread < _SMALLEST:
        spread = 1.0
        if abs(high) > _SMALLEST:
            spread = abs(high)
    air = spread * 0.08
    start = low - air
    if zero and low == 0.0:
        start = 0.0
    return AxisScale(start, high + air, left, right)


def tick_label(value: float, *, rate: bool = False) -> str:
    """``0.25``, ``−5``, ``20 %``."""
    if rate:
        return signed(f"{100 * value:.6g} %")
    return signed(f"{value:,.6g}")


def _axis(
    places: AxisScale, top: float, bottom: float, title: str, *, rate: bool
) -> tuple[list[str], float]:
    """The axis along the bottom with its title, and a line up from each tick; how far down it
    reaches.
    """
    ticks = places.ticks()
    labels = [tick_label(tick, rate=rate) for tick in ticks]
    room = len(labels) * (1.5 + max(map(columns_of, labels))) * LETTER
    every = math.ceil(room / NARROW)
    drawn = []
    for number, (tick, label) in enumerate(zip(ticks, labels, strict=True)):
        x = places.at(tick)
        drawn.append(_line(x, top, x, bottom, "grid"))
        if number % every == 0:
            drawn.append(_text(label, f"{x:g}%", bottom + 18, "tick"))
    drawn.append(_line(places.left, bottom, places.right, bottom, "axis"))
    titles, end = _axis_title(title, bottom)
    return [*drawn, *titles], end


def _axis_title(title: str, bottom: float) -> tuple[list[str], float]:
    """The *title* of an axis that runs at *bottom*; how far down it reaches."""
    lines = in_lines(title, COLUMNS + 4, 3)
    return _texts(lines, "50%", bottom + 40, "axis-label"), bottom + 34 + 16 * len(lines)


# ---------------------------------------------------------------- marks and words


def _said(row: ForestRow) -> str:
    """Return the words beside *row*, or else that there is nothing to show."""
    return row.words or "nothing to show"


def _interval(row: ForestRow) -> tuple[float, float] | None:
    """Return both ends of the interval of *row*; None where it lacks one."""
    if row.low is None or row.high is None:
        return None
    return row.low, row.high


def _kind_of_line(line: Reference) -> str:
    if line.solid:
        return "zero"
    return "reference"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:g}%" y1="{y1:g}" x2="{x2:g}%" y2="{y2:g}"/>'


def _rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:g}%" y="{y:g}" width="{max(width, 0):.6g}%" height="{height:g}"/>'


def _circle(x: float, y: float, radius: float, kind: str, inside: str = "") -> str:
    circle = f'<circle class="{kind}" cx="{x:g}%" cy="{y:g}" r="{radius:g}"'
    if inside:
        return f"{circle}>{inside}</circle>"
    return f"{circle}/>"


def _title(words: str) -> str:
    """*words* for who points at what they stand in."""
    return f"<title>{html(words)}</title>"


def _path(x: float, y: float, path: str, kind: str) -> str:
    """A *path* around a place: only a picture in the picture can stand at per cent."""
    return f'<svg x="{x:g}%" y="{y:g}" width="1" height="1" overflow="visible"><path class="{kind}" d="{path}"/></svg>'


def _titled(title: str, *parts: str) -> str:
    """*parts* with words for who points at them."""
    return f"<g>{_title(title)}{''.join(parts)}</g>"


def _texts(lines: Sequence[str], x: str, y: float, kind: str, apart: float = 16) -> list[str]:
    """*lines* below each other from *y* on, so many pixels *apart*."""
    return [_text(line, x, y + apart * number, kind) for number, line in enumerate(lines)]


def _text(words: str, x: str, y: float, kind: str, most: int | None = None) -> str:
    """*words* at a place, cut to *most* columns; what was cut is shown when pointed at."""
    shown = visible(words, keep="")
    cut = shown
    if most is not None:
        cut = clipped(shown, most)
    whole = ""
    if cut != shown:
        whole = _title(words)
    return f'<text class="{kind}" x="{x}" y="{y:g}">{html(cut)}{whole}</text>'


def _label(label: str, words: str, kind: str, y: float) -> tuple[str, float]:
    """The name of a row with its *words* behind it, or under it where both do not fit; and how far
    down they reach.
    """
    lines = in_lines(label, COLUMNS)
    texts = _texts(lines, "0", y + 14, "label")
    y += 16 * len(lines)
    if not words:
        return _titled(label, *texts), y
    if columns_of(visible(words)) + columns_of(lines[-1]) + 2 <= COLUMNS:
        behind = f'<tspan class="side {kind}" dx="10">{html(words)}</tspan></text>'
        texts[-1] = texts[-1].removesuffix("</text>") + behind
    else:
        texts.append(_text(words, "0", y + 14, f"side {kind}", COLUMNS))
        y += 16
    return _titled(f"{label}: {words}", *texts), y


def in_lines(words: str, width: int = 34, most: int = 2) -> list[str]:
    """*words* on up to *most* lines of *width* columns, broken behind spaces, hyphens and
    underscores if it can be.
    """
    lines: list[str] = []
    for part in re.findall(r"[^\s_/-]+[\s_/-]*|[\s_/-]+", visible(words, keep="")):
        if lines and columns_of((lines[-1] + part).rstrip()) <= width:
            lines[-1] += part
        else:
            lines.append(part)
    kept = [clipped(line.strip(), width) for line in lines[:most]] or [""]
    if len(lines) > most:
        kept[-1] = clipped(f"{kept[-1]}…", width)
    return kept


def _legend(names: Sequence[str]) -> tuple[list[tuple[int, float, float]], float]:
    """Return where each of *names* stands (number, x in per cent, y), in columns; and how far down
    they reach.
    """
    if not names:
        return [], 0.0
    widest = min(max(columns_of(visible(name)) for name in names), 30) + 4
    a_line = max(1, min(len(names), (COLUMNS + 2) // widest))
    places = []
    for number in range(len(names)):
        line, column = divmod(number, a_line)
        places.append((number, 100 / a_line * column, 14.0 + 22 * line))
    return places, 14.0 + 22 * math.ceil(len(names) / a_line)


#: A path an alarm around 0, 0; the other verdicts are round.
_ALARMS = {Verdict.FAIL: "M-6 -6h12v12h-12z", Verdict.FLAG: "M0 -8l8 8l-8 8l-8 -8z"}


def _mark(verdict: Verdict | None, x: float, y: float) -> str:
    """A shape a verdict, so that none depends on its colour alone."""
    kind = _kind(verdict)
    if verdict in _ALARMS:
        return _path(x, y, _ALARMS[verdict], f"dot {kind}")
    if verdict is Verdict.INCONCLUSIVE:
        return _circle(x, y, 6, f"ring {kind}")
    return _circle(x, y, 6, f"dot {kind}")


#: A path a series around 0, 0: series are told apart by shape as well as by colour.
_SHAPES = (
    "M-5 -5h10v10h-10z", "M0 -7l7 7l-7 7l-7 -7z", "M0 -7l6.5 12h-13z", "M0 7l6.5 -12h-13z",
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z", "M-6.5 -2h4.5v-4.5h4v4.5h4.5v4h-4.5v4.5h-4v-4.5h-4.5z",
    "M-7 -4h14v8h-14z", "M-4 -7h8v14h-8z",
)  # fmt: skip


def _shape(place: int, x: float, y: float) -> str:
    return _path(x, y, _SHAPES[place], f"point s{place}")


def _whisker(places: AxisScale, low: float, high: float, y: float, kind: str) -> Iterator[str]:
    """The interval, ended by a bar, or by an arrow where it reaches beyond the picture."""
    yield _line(places.at(low), y, places.at(high), y, f"whisker {kind}")
    for end, sign in ((low, -1), (high, 1)):
        x = places.at(end)
        if places.holds(end):
            yield _line(x, y - 5, x, y + 5, f"whisker {kind}")
        else:
            yield _path(x, y, f"M0 -5l{sign * 8} 5l{-sign * 8} 5z", f"arrow {kind}")


def _kind(verdict: Verdict | None) -> str:
    if verdict is None:
        return "plain"
    return verdict.value.lower()


def _reference(line: Reference, x: float, top: float, bottom: float) -> list[str]:
    """A line down the picture, with its words above it that stay within."""
    if x < 25:
        kind = "tick start"
    elif x > 75:
        kind = "tick end"
    else:
        kind = "tick"
    shown = [_line(x, top, x, bottom, _kind_of_line(line))]
    if line.words:
        shown.append(_text(line.words, f"{x:g}%", top - 6, kind, 32))
    return shown


# ---------------------------------------------------------------- forest plots

_HEADING = 18


def _forest(chart: Forest) -> _Drawn:
    rows = chart.rows
    series = list(dict.fromkeys(row.series for row in rows if row.series))[:MOST_SERIES]
    if all(row.value is None for row in rows):
        return None
    places = scale(
        _ends(chart), zero=chart.rate, around=chart.around, least=chart.least, most=chart.most
    )
    legend, top = _legend_of_shapes(series)
    if any(line.words for line in chart.lines):
        top += 18
    y = top + 4
    marks = []
    described = []
    for heading, lines in _forest_parts(rows, series).items():
        if heading:
            titles, y = _forest_heading(heading, y)
            marks += titles
        for some in lines:
            drawn, y = _forest_line(some, series, places, y)
            marks += drawn
        described.append(_forest_in_words(heading, lines))
    body = []
    if chart.band is not None:
        start, end = map(places.at, chart.band)
        body.append(_rect(start, top, end - start, y - top, "band"))
    axis, bottom = _axis(places, top, y, chart.axis, rate=chart.rate)
    body += axis
    for line in chart.lines:
        if places.holds(line.value):
            body += _reference(line, places.at(line.value), top, y)
    return [*legend, *body, *marks], bottom, "; ".join(described)


def _ends(chart: Forest | OverTime) -> list[float]:
    """Return all values that the axis has to reach."""
    ends = [line.value for line in chart.lines]
    for row in chart.rows:
        values = (row.value, row.low, row.high, row.before, *(value for _, value in row.dots))
        ends += [value for value in values if value is not None]
    return ends


def _legend_of_shapes(series: Sequence[str]) -> tuple[list[str], float]:
    """Return a shape and a name for each of *series*, and how far down they reach."""
    entries, top = _legend(series)
    legend = []
    for at, x, y in entries:
        legend += [_legend_shape(at, x, y), _legend_words(series[at], x, y)]
    return legend, top


def _forest_parts(
    rows: Sequence[ForestRow], series: Sequence[str]
) -> dict[str, list[list[ForestRow]]]:
    """The rows by the heading that they stand under; rows of several series share a line."""
    parts: dict[str, dict[str | int, list[ForestRow]]] = {}
    for at, row in enumerate(rows):
        lines = parts.setdefault(row.part, {})
        if not row.series:
            lines[at] = [row]
        elif row.series in series:
            lines.setdefault(row.label, []).append(row)
    return {heading: list(lines.values()) for heading, lines in parts.items() if lines}


def _forest_heading(heading: str, y: float) -> tuple[list[str], float]:
    """The *heading* from *y* on, over the lines of reference, so that they do not run through it;
    and how far down it reaches.
    """
    titles = in_lines(heading, COLUMNS, 2)
    behind = _rect(0, y - 4, 100, _HEADING * len(titles) + 10, "behind")
    drawn = _texts(titles, "0", y + 17, "heading", _HEADING)
    return [behind, *drawn], y + _HEADING * len(titles) + 8


def _forest_in_words(heading: str, lines: Iterable[Sequence[ForestRow]]) -> str:
    """The words on one part for a reader who sees no picture."""
    shown = []
    for some in lines:
        for row in some:
            label = row.label
            if row.series:
                label = f"{row.label}, {row.series}"
            shown.append(f"{label} {_said(row)}")
    if heading:
        return f"{heading}: {'; '.join(shown)}"
    return "; ".join(shown)


def _legend_shape(at: int, x: float, y: float) -> str:
    return f'<g transform="translate(8 0)">{_shape(at, x, y - 4)}</g>'


def _legend_words(name: str, x: float, y: float) -> str:
    return f'<g transform="translate(22 0)">{_text(name, f"{x:g}%", y, "hint", 30)}</g>'


def _forest_line(
    some: Sequence[ForestRow], series: Sequence[str], places: AxisScale, y: float
) -> tuple[list[str], float]:
    """The rows that share a line, from *y* on; and how far down they reach."""
    first = some[0]
    if first.series:
        label, y = _label(first.label, "", "", y)
        drawn = [label]
        for row in some:
            place = series.index(row.series)
            drawn += _of_series(row, places, y + 10 + 13 * place, place)
        return drawn, y + 14 + 13 * len(series)
    if first.value is None:
        label, y = _label(first.label, _said(first), _kind(None), y)
        return [label], y + 10
    label, y = _label(first.label, first.words, _kind(first.verdict), y)
    room = 0
    if first.dots:
        room = 30
    marks = _forest_row(first, places.at(first.value), places, y + 10 + room)
    return [label, *marks], y + 24 + room


def _forest_row(row: ForestRow, x: float, places: AxisScale, y: float) -> Iterator[str]:
    """The marks of a *row* that has its value at *x*."""
    kind = _kind(row.verdict)
    for number, (name, value) in enumerate(_spread(row.dots)):
        # Neighbours in value stand at different heights: the golden ratio never comes round.
        above = round(y - 12 - 22 * (number * 0.618034 % 1), 1)
        yield _circle(places.at(value), above, 3.5, "name", _title(f"{name}: {value:.4g}"))
    if row.before is not None:
        yield _line(places.at(row.before), y, x, y, f"whisker {kind}")
        yield _circle(places.at(row.before), y, 6, "ring")
    interval = _interval(row)
    if interval is not None:
        yield from _whisker(places, *interval, y, kind)
    yield _mark(row.verdict, x, y)


def _spread(dots: Sequence[tuple[str, float]]) -> Sequence[tuple[str, float]]:
    """All *dots*, or as many as can be told apart, in equal steps from the lowest up."""
    if len(dots) <= MOST_DOTS:
        return dots
    ordered = sorted(dots, key=lambda dot: dot[1])
    step = (len(ordered) - 1) / (MOST_DOTS - 1)
    return [ordered[round(number * step)] for number in range(MOST_DOTS)]


def _of_series(row: ForestRow, places: AxisScale, y: float, place: int) -> Iterator[str]:
    if row.value is not None:
        stem = ""
        interval = _interval(row)
        if interval is not None:
            start, end = map(places.at, interval)
            stem = _line(start, y, end, y, f"stem s{place}")
        yield _titled(
            f"{row.label}, {row.series}: {row.words}", stem, _shape(place, places.at(row.value), y)
        )


# ---------------------------------------------------------------- over time

_TALL = 180


def _over_time(chart: OverTime) -> _Drawn:
    rows = chart.rows
    if all(row.value is None for row in rows):
        return None
    top = 26.0
    left = 14.0
    up = scale(_ends(chart), top + _TALL, top)
    body = _grid_over_time(chart, up, left)
    across = _across(len(rows), left + 5, RIGHT - 5)
    body += _course(rows, across, up)
    part = None
    for x, row in zip(across, rows, strict=True):
        if row.part != part:
            body += _part_begins(row.part, x, top, first=part is None)
        part = row.part
        if row.value is not None:
            body.append(_run_over_time(row, row.value, x, up))
    bottom = top + _TALL + 8
    body.append(_line(left, bottom, RIGHT, bottom, "axis"))
    body.append(_text(rows[0].label, f"{left:g}%", bottom + 18, "tick start", 18))
    if len(rows) > 1:
        body.append(_text(rows[-1].label, f"{RIGHT:g}%", bottom + 18, "tick end", 18))
    titles, end = _axis_title(chart.axis, bottom)
    described = "; ".join(f"{row.label}: {_said(row)}" for row in rows)
    return [*body, *titles], end, f"{count(len(rows), 'run')}: {described}"


def _course(rows: Sequence[ForestRow], across: Sequence[float], up: AxisScale) -> list[str]:
    """The line from each value to the next."""
    points = [(x, row.value) for x, row in zip(across, rows, strict=True) if row.value is not None]
    return [
        _line(x1, up.at(first), x2, up.at(second), "course")
        for (x1, first), (x2, second) in pairwise(points)
    ]


def _grid_over_time(chart: OverTime, up: AxisScale, left: float) -> list[str]:
    """The background of the course: the band, the grid and the lines of reference."""
    behind = []
    if chart.band is not None:
        end, start = map(up.at, chart.band)
        behind.append(_rect(left, start, RIGHT - left, end - start, "band"))
    for tick in up.ticks(4):
        behind.append(_line(left, up.at(tick), RIGHT, up.at(tick), "grid"))
        behind.append(_text(tick_label(tick), "0", up.at(tick) + 4, "tick start"))
    for line in chart.lines:
        if up.holds(line.value):
            behind.append(
                _line(left, up.at(line.value), RIGHT, up.at(line.value), _kind_of_line(line))
            )
    return behind


def _across(number: int, start: float, end: float) -> list[float]:
    """Return *number* places at equal distances from *start* to *end*; one in the middle."""
    if number == 1:
        return [(start + end) / 2]
    return [start + (end - start) * place / (number - 1) for place in range(number)]


def _part_begins(part: str, x: float, top: float, *, first: bool) -> list[str]:
    """The heading of *part*, and a line before all but the first."""
    drawn = []
    if not first:
        drawn.append(_line(x, top - 8, x, top + _TALL, "reference"))
    kind = "tick start"
    if x > 60:
        kind = "tick end"
    return [*drawn, _text(str(part), f"{x:g}%", top - 12, kind, 22)]


def _run_over_time(row: ForestRow, value: float, x: float, up: AxisScale) -> str:
    """The mark of one run, with its interval."""
    marks = []
    interval = _interval(row)
    if interval is not None:
        low, high = map(up.at, interval)
        marks.append(_line(x, low, x, high, f"whisker {_kind(row.verdict)}"))
    marks.append(_mark(row.verdict, x, up.at(value)))
    return _titled(f"{row.label}: {row.words}", *marks)


# ---------------------------------------------------------------- bars


def _bars(chart: Bars) -> _Drawn:
    names = list(dict.fromkeys(part for parts in chart.bars.values() for part in parts))
    if not names:
        return None
    places = AxisScale(0.0, 1.0, 2.0, RIGHT)
    entries, top = _legend(names)
    legend = []
    for at, x, y in entries:
        square = (
            f'<rect class="share s{min(at, 7)}" x="{x:g}%" y="{y - 11:g}" width="13" height="13"/>'
        )
        legend += [square, _legend_words(names[at], x, y)]
    y = top + 4
    drawn = []
    described = []
    for label, parts in chart.bars.items():
        name, y = _label(label, "", "", y)
        drawn.append(name)
        shares = []
        start = 0.0
        for part, share in parts.items():
            shares.append(f"{part} {percent(share)}")
            x = places.at(start)
            end = places.at(start + share)
            bar = _rect(x, y + 4, end - x, 20, f"share s{min(names.index(part), 7)}")
            drawn.append(_titled(f"{label}: {shares[-1]}", bar))
            words = _fitting(part, share, end - x)
            if words:
                drawn.append(_text(words, f"{(x + end) / 2:g}%", y + 18, "inside"))
            start += share
        y += 30
        described.append(f"{label}: {', '.join(shares)}")
    axis, bottom = _axis(places, top, y, chart.axis, rate=True)
    return [*legend, *axis, *drawn], bottom, "; ".join(described)


def _fitting(part: str, share: float, width: float) -> str:
    """Return what can stand in a bar of that *width*: its name and share, or the share; empty where
    neither can.
    """
    for words in (f"{part} {share:.0%}", f"{share:.0%}"):
        if 8 * columns_of(visible(words)) < width / 100 * NARROW:
            return words
    return ""
