"""Every group against every other: a square of shares, row over column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.model import Verdict
from pytest_fairness.reports.columns import columns_of
from pytest_fairness.reports.drawing import LETTER, WIDTH, Picture, in_lines, label_in_lines, mark, picture, text
from pytest_fairness.reports.escaping import html, visible
from pytest_fairness.reports.figures import percent

MOST = 12
_WIDEST, _NARROWEST, _HEIGHT = 118, 46, 50
_NAME = 22
#: The strongest tint that its words can still be read on, in light and dark.
_TINT = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """The share of *n* choices in which the row was chosen over the column, and the verdict on the two."""

    share: float | None
    n: int
    verdict: Verdict


def matrix_picture(
    names: Sequence[str], squares: Mapping[tuple[str, str], Square], identity: str, *, title: str
) -> Picture | None:
    """The *squares* by (row, column); the mirrored ones are filled in. None without any.

    A share's tint says which way it leans from one half and how far, its number how much, a shape its verdict.
    """
    shown = names[:MOST]
    found = {pair: square for pair, square in squares.items() if pair[0] in shown and pair[1] in shown}
    if not found:
        return None
    whole = {(b, a): _turned(square) for (a, b), square in found.items()} | found
    left = 24 + LETTER * min(max(columns_of(visible(name)) for name in shown), _NAME)
    width = max(min((WIDTH - left - 4) / len(shown), _WIDEST), _NARROWEST)
    heads = [in_lines(name, max(int(width / (LETTER + 0.5)), 4), 4) for name in shown]
    top = 16 * max(map(len, heads)) + 36
    body = [text("over …", left, 14, "hint")]
    for at, (name, lines) in enumerate(zip(shown, heads, strict=True)):
        centre = left + width * (at + 0.5)
        first = top - 8 - 16 * (len(lines) - 1)
        spans = [text(one, centre, first + 16 * down, "head") for down, one in enumerate(lines)]
        body.append(f"<g><title>{html(name)}</title>{''.join(spans)}</g>")
    for down, row in enumerate(shown):
        y = top + _HEIGHT * down
        body.append(label_in_lines(row, left - 12, y + _HEIGHT / 2, _NAME, 3))
        for across, column in enumerate(shown):
            body.append(_square(row, column, whole.get((row, column)), left + width * across, y, width))
    body.append(_legend({square.verdict for square in found.values()}, left, top + _HEIGHT * len(shown) + 26))
    told = "; ".join(
        f"{a} over {b} {percent(square.share)} of {square.n}, {square.verdict}" for (a, b), square in found.items()
    )
    caption = "How often the row is chosen over the column. Blue: more often than not; orange: less often."
    if len(shown) < len(names):
        caption += f" The first {MOST} of {len(names)} groups; the table has them all."
    height = top + _HEIGHT * len(shown) + 40
    return picture(body, height, identity, title=title, description=told, caption=caption)


def _turned(square: Square) -> Square:
    share = None if square.share is None else 1.0 - square.share
    return Square(share=share, n=square.n, verdict=square.verdict)


def _square(row: str, column: str, square: Square | None, x: float, y: float, width: float) -> str:
    box = f'x="{x + 1.5:g}" y="{y + 1.5:g}" width="{width - 3:g}" height="{_HEIGHT - 3}" rx="4"'
    if row == column:
        return f'<rect class="none" {box}/>'
    if square is None or square.share is None:
        return f'<rect class="none" {box}/>' + text("–", x + width / 2, y + _HEIGHT / 2 + 4, "number")
    kind = "more" if square.share >= 0.5 else "less"
    tint = min(abs(square.share - 0.5) * 2, 1.0) * _TINT
    words = f"{row} over {column}: {percent(square.share)} of {square.n} choices, {square.verdict}"
    return (
        f"<g><title>{html(words)}</title>"
        f'<rect class="none" {box}/><rect class="{kind}" fill-opacity="{tint:.2f}" {box}/>'
        + text(f"{square.share:.0%}".replace("%", " %"), x + width / 2, y + 22, "number")
        + mark(square.verdict, x + width / 2, y + 36)
        + "</g>"
    )


def _legend(verdicts: set[Verdict], x: float, y: float) -> str:
    parts = []
    for verdict in sorted(verdicts, key=lambda one: -one.severity):
        parts += [mark(verdict, x + 7, y - 4), text(verdict.value, x + 20, y, "hint")]
        x += 44 + 9 * len(verdict.value)
    return "".join(parts)
