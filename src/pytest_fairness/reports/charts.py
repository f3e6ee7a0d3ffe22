"""The pictures of a page, as data and as inline SVG: values with their intervals on one axis, and bars.

Colours are classes, so that the page's style serves light, dark and print. Every text that is not ours is escaped
here; what was cut stands whole in a ``<title>``. Every picture has a description in words, and none tells a verdict by
its colour alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
from markupsafe import Markup

from pytest_fairness.model import Verdict
from pytest_fairness.reports.escaping import clipped, columns_of, html, visible
from pytest_fairness.reports.formatting import percent

WIDTH = 800
#: The width of a letter of the pictures' text, on the safe side of what browsers draw.
LETTER = 7.5
#: No more series than can be told apart; the table has them all.
MOST_SERIES = 8
#: Below this a picture shows nothing, and the arithmetic of ticks runs out of digits.
_SMALLEST = 1e-9


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Plain data of a page: written to a run's folder as JSON, and read back."""


class ForestRow(Spec, frozen=True):
    """One value with its interval; ``words`` stand beside it, ``verdict`` gives its shape, ``before`` is a ring.

    Rows of one ``part`` stand under it as their heading. Those of one part and label that are of different ``series``
    share a line; the shapes of the series stand in a legend, and their words in the description alone.
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


class Bars(Spec, tag="bars", frozen=True):
    """Shares of a whole by name, as bars of one length, one a label."""

    title: str
    axis: str
    bars: dict[str, dict[str, float]]
    caption: str = ""


Chart: TypeAlias = Forest | Bars
_Drawn: TypeAlias = "tuple[Iterable[str], float, str] | None"


def draw(chart: Chart, identity: str) -> Markup | None:
    """The *chart* as SVG; *identity* tells it from others on the page. None where it has nothing to show."""
    found = _forest(chart) if isinstance(chart, Forest) else _bars(chart)
    if found is None:
        return None
    body, height, description = found
    return Markup(  # noqa: S704 - every text in it is escaped here and below
        f'<svg class="picture" viewBox="0 0 {WIDTH} {height:g}" role="img" '
        f'aria-labelledby="{identity}-title {identity}-desc" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{identity}-title">{html(chart.title)}</title>'
        f'<desc id="{identity}-desc">{html(description)}</desc>{"".join(body)}</svg>'
    )


# ---------------------------------------------------------------- the axis


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

    def ticks(self) -> list[float]:
        """Some six round values across the scale: 1, 2 or 5 times a power of ten apart."""
        rough = (self.high - self.low) / 6
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if rough <= power * factor * 1.000001)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def scale(
    values: Iterable[float | None],
    left: float,
    right: float,
    *,
    zero: bool = False,
    around: float | None = None,
    least: float = 0.0,
    most: float | None = None,
) -> AxisScale:
    """A scale around the finite *values* with a little air, from 0 on with *zero*; or as far left as right of *around*,
    from ±*least* to at most ±*most*.
    """
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if around is not None:
        reach = max((abs(value - around) for value in finite), default=0.0) * 1.08
        reach = min(max(reach, least), most or 100 * least)
        return AxisScale(around - reach, around + reach, left, right)
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    low = min(0.0, low) if zero else low
    spread = high - low
    if spread <= abs(high) * 1e-9 or spread < _SMALLEST:
        spread = abs(high) if abs(high) > _SMALLEST else 1.0
    air = spread * 0.08
    return AxisScale(0.0 if zero and low == 0.0 else low - air, high + air, left, right)


def tick_label(value: float, *, rate: bool = False) -> str:
    """``0.25``, ``−5``, ``20 %``."""
    text = f"{100 * value:.6g} %" if rate else f"{value:,.6g}"
    return text.replace("-", "−")


def _axis(places: AxisScale, top: float, bottom: float, title: str, *, rate: bool) -> Iterator[str]:
    """The axis along the bottom with its title, and a line up from each tick."""
    for tick in places.ticks():
        x = places.at(tick)
        yield _line(x, top - 6, x, bottom, "grid")
        yield _text(tick_label(tick, rate=rate), x, bottom + 18, "tick")
    yield _line(places.left, bottom, places.right, bottom, "axis")
    yield _text(title, (places.left + places.right) / 2, bottom + 42, "axis-label", 80)


# ---------------------------------------------------------------- marks and words


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'


def _rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{max(width, 0):.6g}" height="{height:g}"/>'


def _titled(title: str, *parts: str) -> str:
    """*parts* with words for who points at them."""
    return f"<g><title>{html(title)}</title>{''.join(parts)}</g>"


def _text(words: str, x: float, y: float, kind: str, most: int | None = None) -> str:
    """*words* at a place, cut to *most* columns; what was cut is shown when pointed at."""
    shown = visible(words, keep="")
    cut = shown if most is None else clipped(shown, most)
    whole = f"<title>{html(words)}</title>" if cut != shown else ""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{html(cut)}{whole}</text>'


def _label(words: str, x: float, y: float) -> str:
    """The name of a row, ending at *x*, on up to two lines around *y*."""
    lines = in_lines(words)
    first = y + 4 - 7.5 * (len(lines) - 1)
    return _titled(words, *(_text(one, x, first + 15 * down, "label") for down, one in enumerate(lines)))


def in_lines(words: str, width: int = 34, most: int = 2) -> list[str]:
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


def _legend(names: Sequence[str], left: float) -> tuple[list[tuple[int, float, float]], float]:
    """Where each of *names* stands (number, x, y), on as many lines as it takes; and how far down they reach."""
    x, y, places = left, 14.0, []
    for at, name in enumerate(names):
        room = 44 + LETTER * min(columns_of(visible(name)), 30)
        if x > left and x + room > WIDTH:
            x, y = left, y + 22
        places.append((at, x, y))
        x += room
    return places, y + 22 if names else 0.0


def _mark(verdict: Verdict | None, x: float, y: float, kind: str) -> str:
    """A shape a verdict, so that none depends on its colour alone."""
    match verdict:
        case Verdict.FAIL:
            return _rect(x - 6, y - 6, 12, 12, f"dot {kind}")
        case Verdict.FLAG:
            return f'<path class="dot {kind}" d="M{x:g} {y - 8:g}l8 8l-8 8l-8 -8z"/>'
        case _:
            shape = "ring" if verdict is Verdict.INCONCLUSIVE else "dot"
            return f'<circle class="{shape} {kind}" cx="{x:g}" cy="{y:g}" r="6"/>'


#: A path a series around 0, 0: series are told apart by shape as well as by colour.
_SHAPES = (
    "M-5 -5h10v10h-10z", "M0 -7l7 7l-7 7l-7 -7z", "M0 -7l6.5 12h-13z", "M0 7l6.5 -12h-13z",
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z", "M-6.5 -2h4.5v-4.5h4v4.5h4.5v4h-4.5v4.5h-4v-4.5h-4.5z",
    "M-7 -4h14v8h-14z", "M-4 -7h8v14h-8z",
)  # fmt: skip


def _shape(place: int, x: float, y: float) -> str:
    return f'<path class="point s{place}" transform="translate({x:g} {y:g})" d="{_SHAPES[place]}"/>'


def _whisker(places: AxisScale, low: float, high: float, y: float, kind: str) -> Iterator[str]:
    """The interval, ended by a bar, or by an arrow where it reaches beyond the picture."""
    yield _line(places.at(low), y, places.at(high), y, f"whisker {kind}")
    for end, sign in ((low, -1), (high, 1)):
        x = places.at(end)
        if places.low <= end <= places.high:
            yield _line(x, y - 5, x, y + 5, f"whisker {kind}")
        else:
            yield f'<path class="arrow {kind}" d="M{x:g} {y - 5:g}l{sign * 8} 5l{-sign * 8} 5z"/>'


# ---------------------------------------------------------------- forest plots

_RIGHT, _HEADING = 590, 34


def _forest(chart: Forest) -> _Drawn:
    rows, series = chart.rows, list(dict.fromkeys(row.series for row in chart.rows if row.series))[:MOST_SERIES]
    if not any(row.value is not None for row in rows):
        return None
    parts: dict[str, dict[str | int, list[ForestRow]]] = {}
    for at, row in enumerate(rows):
        if not row.series or row.series in series:
            parts.setdefault(row.part, {}).setdefault(row.label if row.series else at, []).append(row)
    names = [in_lines(row.label) for row in rows]
    height = max(38 if any(len(lines) > 1 for lines in names) else 30, 14 + 13 * len(series))
    left = 30 + LETTER * max(columns_of(one) for lines in names for one in lines)
    ends = [end for row in rows for end in (row.value, row.low, row.high, row.before)]
    ends += [line.value for line in chart.lines]
    places = scale(ends, left, _RIGHT, zero=chart.rate, around=chart.around, least=chart.least, most=chart.most)
    entries, reach = _legend(series, left)
    body = [part for at, x, y in entries for part in (_shape(at, x, y - 4), _text(series[at], x + 14, y, "hint", 30))]
    top = reach + 32
    bottom = top + sum(height * len(lines) + _HEADING * bool(heading) for heading, lines in parts.items())
    if chart.band is not None:
        start, end = map(places.at, chart.band)
        body.append(_rect(start, top - 6, end - start, bottom - top + 6, "band"))
    body += _axis(places, top, bottom, chart.axis, rate=chart.rate)
    for line in chart.lines:
        if places.low <= line.value <= places.high:
            x = places.at(line.value)
            body += [_line(x, top - 6, x, bottom, "zero" if line.solid else "reference")]
            body += [_text(line.words, x, top - 12, "tick", 34)] if line.words else []
    y, described = top, []
    for heading, lines in parts.items():
        if heading:
            # Over the lines, so that they do not run through it.
            body += [_rect(0, y + 3, WIDTH, _HEADING - 8, "behind"), _text(heading, 8, y + 21, "heading", 88)]
            y += _HEADING
        for some in lines.values():
            body.append(_label(some[0].label, left - 14, y + height // 2))
            for row in some:
                if row.series:
                    place = series.index(row.series)
                    body += _of_series(row, places, y + height / 2 + 13 * (place - (len(series) - 1) / 2), place)
                else:
                    body += _forest_row(row, places, y + height // 2)
            y += height
        shown = (
            f"{row.label}{f', {row.series}' * bool(row.series)} {row.words or 'nothing to show'}"
            for some in lines.values()
            for row in some
        )
        described.append(f"{heading}: " * bool(heading) + "; ".join(shown))
    return body, bottom + 52, "; ".join(described)


def _forest_row(row: ForestRow, places: AxisScale, y: float) -> Iterator[str]:
    if row.value is None:
        yield _text(row.words or "nothing to show", _RIGHT + 14, y + 4, "side", 28)
        return
    kind = "plain" if row.verdict is None else row.verdict.value.lower()
    x = places.at(row.value)
    if row.before is not None:
        yield _line(places.at(row.before), y, x, y, f"whisker {kind}")
        yield f'<circle class="ring" cx="{places.at(row.before):g}" cy="{y:g}" r="6"/>'
    if row.low is not None and row.high is not None:
        yield from _whisker(places, row.low, row.high, y, kind)
    yield _mark(row.verdict, x, y, kind)
    yield _text(row.words, _RIGHT + 14, y + 4, f"side {kind}", 28)


def _of_series(row: ForestRow, places: AxisScale, y: float, place: int) -> Iterator[str]:
    if row.value is not None:
        stem = ""
        if row.low is not None and row.high is not None:
            stem = _line(places.at(row.low), y, places.at(row.high), y, f"stem s{place}")
        yield _titled(f"{row.label}, {row.series}: {row.words}", stem, _shape(place, places.at(row.value), y))


# ---------------------------------------------------------------- bars


def _bars(chart: Bars) -> _Drawn:
    names = list(dict.fromkeys(part for parts in chart.bars.values() for part in parts))
    if not names:
        return None
    left = 30 + LETTER * max(columns_of(one) for label in chart.bars for one in in_lines(label))
    places = AxisScale(0.0, 1.0, left, WIDTH - 20)
    entries, top = _legend(names, left)
    body = []
    for at, x, y in entries:
        body += [_rect(x, y - 11, 13, 13, f"share s{min(at, 7)}"), _text(names[at], x + 19, y, "hint", 30)]
    bottom = top + 34 * len(chart.bars)
    body += _axis(places, top, bottom, chart.axis, rate=True)
    described = []
    for row, (label, parts) in enumerate(chart.bars.items()):
        y, start = top + 34 * row + 17, 0.0
        body.append(_label(label, left - 14, y))
        for part, share in parts.items():
            x, end = places.at(start), places.at(start + share)
            kind = f"share s{min(names.index(part), 7)}"
            body.append(_titled(f"{label}: {part} {percent(share)}", _rect(x, y - 11, end - x, 22, kind)))
            fitting = [w for w in (f"{part} {share:.0%}", f"{share:.0%}") if 8 * columns_of(visible(w)) < end - x]
            body += [_text(fitting[0], (x + end) / 2, y + 4, "inside")] if fitting else []
            start += share
        described.append(f"{label}: " + ", ".join(f"{part} {percent(share)}" for part, share in parts.items()))
    return body, bottom + 50, "; ".join(described)
