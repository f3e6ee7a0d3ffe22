"""What every picture is made of: marks, whiskers, labels, axes and the SVG around them.

Colours are classes, so that the page's style serves light, dark and print. Every text that is not ours is escaped
here, and the whole of a text that was cut stands in its ``<title>``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pytest_fairness.model import Verdict
from pytest_fairness.reports.axes import Scale
from pytest_fairness.reports.columns import clipped, columns_of
from pytest_fairness.reports.escaping import html, visible

WIDTH = 800
LABEL = 30
#: The width of a letter of the pictures' text, on the safe side of what browsers draw.
LETTER = 7.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An SVG with the words that stand for it: ``title`` names it, ``description`` tells what it shows."""

    svg: Markup
    title: str
    description: str
    caption: str = ""


def picture(
    body: Iterable[str], height: float, identity: str, *, title: str, description: str, caption: str = ""
) -> Picture:
    """The parts of *body* as one SVG. Everything in them that was not made here is escaped already."""
    svg = (
        f'<svg class="picture" viewBox="0 0 {WIDTH} {height:g}" role="img" '
        f'aria-labelledby="{identity}-title {identity}-desc" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{identity}-title">{html(title)}</title>'
        f'<desc id="{identity}-desc">{html(description)}</desc>{"".join(body)}</svg>'
    )
    return Picture(svg=Markup(svg), title=title, description=description, caption=caption)  # noqa: S704 - escaped above


def tone(verdict: Verdict | None) -> str:
    """The class of a verdict's colour; ``plain`` where nothing was judged."""
    return "plain" if verdict is None else verdict.value.lower()


def mark(verdict: Verdict | None, x: float, y: float) -> str:
    """A shape a verdict, so that no verdict is told by its colour alone."""
    kind = tone(verdict)
    match verdict:
        case Verdict.FAIL:
            return f'<rect class="dot {kind}" x="{x - 6:g}" y="{y - 6:g}" width="12" height="12"/>'
        case Verdict.FLAG:
            return f'<path class="dot {kind}" d="M{x:g} {y - 8:g}l8 8l-8 8l-8 -8z"/>'
        case Verdict.INCONCLUSIVE:
            return f'<circle class="ring {kind}" cx="{x:g}" cy="{y:g}" r="6"/>'
        case _:
            return f'<circle class="dot {kind}" cx="{x:g}" cy="{y:g}" r="6"/>'


def whisker(scale: Scale, low: float, high: float, y: float, kind: str) -> str:
    """The interval, ended by a bar, or by an arrow where it goes on outside the picture."""
    parts = [line(scale.at(low), y, scale.at(high), y, f"whisker {kind}")]
    for end, sign in ((low, -1), (high, 1)):
        x = scale.at(end)
        if scale.holds(end) and math.isfinite(end):
            parts.append(line(x, y - 5, x, y + 5, f"whisker {kind}"))
        else:
            parts.append(f'<path class="arrow {kind}" d="M{x:g} {y - 5:g}l{sign * 8} 5l{-sign * 8} 5z"/>')
    return "".join(parts)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'


def text(words: str, x: float, y: float, kind: str, most: int | None = None) -> str:
    """*words* at a place, cut to *most* columns; what was cut is told when pointed at."""
    shown = visible(words, keep="")
    cut = shown if most is None else clipped(shown, most)
    whole = f"<title>{html(words)}</title>" if cut != shown else ""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{html(cut)}{whole}</text>'


def label(words: str, y: float, left: float) -> str:
    """The name of a row, before an axis that starts at *left*."""
    shown = html(clipped(visible(words), LABEL))
    return f'<text class="label" x="{left - 14:g}" y="{y + 4:g}">{shown}<title>{html(words)}</title></text>'


def label_in_lines(words: str, x: float, y: float, width: int, most: int) -> str:
    """The name of a row, ending at *x*, on as many lines as it takes, around *y*."""
    lines = in_lines(words, width, most)
    first = y + 4 - 7.5 * (len(lines) - 1)
    shown = "".join(text(one, x, first + 15 * down, "label") for down, one in enumerate(lines))
    return f"<g><title>{html(words)}</title>{shown}</g>"


def left_of(labels: Iterable[str]) -> float:
    """Where the axis starts, so that the labels, cut if they must be, stand before it."""
    return 30 + LETTER * min(max((columns_of(visible(words)) for words in labels), default=0), LABEL)


def in_lines(words: str, width: int, most: int = 3) -> Sequence[str]:
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
