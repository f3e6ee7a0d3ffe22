"""The document as a PDF to be read, printed and signed. Needs fpdf2 (the extra ``pdf``).

fpdf2 draws text and nothing else: it knows no markup unless asked, so hostile text stays text. A
character that no font of this machine has is spelt out, never lost. See
``docs/decisions/0129-the-summary-as-pdf.md``.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import re
from collections.abc import Container, Iterable, Sequence
from functools import cache, singledispatchmethod
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness.errors import MissingExtra
from pytest_fairness.model import Verdict
from pytest_fairness.reports import sections
from pytest_fairness.reports.digest import signed_page
from pytest_fairness.reports.escaping import visible
from pytest_fairness.reports.findings_json import read_results
from pytest_fairness.reports.overview import by_verdict

if TYPE_CHECKING:
    from fpdf import FPDF

NAME = "summary.pdf"
#: Fonts that systems have, the first of which is the text's; the others fill in what it lacks. With
#: each its bold.
_FONTS = (
    ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"), ("NotoSans-Regular.ttf", "NotoSans-Bold.ttf"),
    ("Arial.ttf", "Arial Bold.ttf"), ("arial.ttf", "arialbd.ttf"),
    ("LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf"), ("NotoSansCJK-Regular.ttc", ""),
    ("NotoSansSC-Regular.otf", ""), ("wqy-microhei.ttc", ""), ("Arial Unicode.ttf", ""), ("msyh.ttc", ""),
    ("malgun.ttf", ""), ("NotoSansArabic-Regular.ttf", ""), ("NotoSansHebrew-Regular.ttf", ""),
    ("NotoSansDevanagari-Regular.ttf", ""), ("NotoSansThai-Regular.ttf", ""), ("Nirmala.ttf", ""), ("unifont.ttf", ""),
)  # fmt: skip
_PLACES = (
    "/usr/share/fonts", "/usr/local/share/fonts", "~/.local/share/fonts", "~/.fonts", "/Library/Fonts",
    "/System/Library/Fonts", "~/Library/Fonts", "C:/Windows/Fonts",
)  # fmt: skip
_BLACK, _GREY, _RED = (0, 0, 0), (90, 90, 90), (176, 32, 32)
#: Of a page, in millimetres: its width between the margins; of a column that is not wide, in
#: letters, the least and the most that count.
_WIDTH = 174
_NARROW, _WIDE = 12, 60
_SMALL = 8.5
_COLOURS = {
    Verdict.FAIL: _RED,
    Verdict.FLAG: (150, 90, 0),
    Verdict.INCONCLUSIVE: (85, 85, 85),
    Verdict.PASS: (20, 110, 60),
}


def surroundings() -> str | None:
    """Return what the bytes of a PDF depend on beside the run: the library and the fonts; None
    without the library.
    """
    try:
        parts = [f"fpdf2 {importlib.metadata.version('fpdf2')}"]
        for pair in _found():
            parts += [f"{path.name} {path.stat().st_size}" for path in pair if path is not None]
        return ", ".join(parts)
    except importlib.metadata.PackageNotFoundError:
        return None


def write_summary(run_dir: Path, into: Path | None = None) -> Path:
    """Write the page to be signed of the run in *run_dir*, as ``summary.pdf`` there or to *into*.
    Raises MissingExtra.
    """
    if into is None:
        into = run_dir / NAME
    results = read_results(run_dir)
    finished = str(results.run.get("finished") or "1980-01-01T00:00:00+00:00")
    drawing = _Drawing(str(results.run.get("id")), datetime.datetime.fromisoformat(finished))
    into.write_bytes(drawing.bytes_of(signed_page(results, run_dir)))
    return into


@cache
def _found() -> tuple[tuple[Path, Path | None], ...]:
    """The fonts of this machine that are looked for, each with its bold, in the order of _FONTS."""
    here: dict[str, Path] = {}
    wanted = {name for pair in _FONTS for name in pair}
    for place in map(Path, _PLACES):
        folder = place.expanduser()
        for path in sorted(folder.rglob("*.[to]t[fc]")) if folder.is_dir() else ():
            if path.name in wanted:
                here.setdefault(path.name, path)
    return tuple((here[name], here.get(bold)) for name, bold in _FONTS if name in here)


class _Drawing:
    """A document being drawn, of the run of that id, as of *when*."""

    def __init__(self, run: str, when: datetime.datetime) -> None:
        try:
            from fpdf import FPDF
        except ImportError as error:
            raise MissingExtra("a summary as PDF", "pdf") from error
        self._run = run
        self._pdf = FPDF(format="A4")
        self._pdf.set_creation_date(when)
        self._pdf.set_title(f"Fairness: summary of run {run}")
        self._pdf.set_lang("en")
        self._pdf.set_margins(18, 16)
        self._pdf.set_auto_page_break(auto=True, margin=18)
        self._characters = self._use_fonts(self._pdf)
        self._pdf.footer = self._footer  # type: ignore[method-assign]

    def bytes_of(self, page: sections.Page) -> bytes:
        """Draw *page*: its title, lead and banners, then each section under its heading."""
        self._pdf.add_page()
        self._text(page.title, 17, bold=True)
        self._text(page.lead, colour=_GREY)
        for banner in page.opening:
            self._banner(banner)
        self._draw_all(page.sections)
        return bytes(self._pdf.output())

    # ------------------------------------------------------------ parts

    def _draw_all(self, parts: Iterable[sections.Part]) -> None:
        for part in parts:
            self._draw(part)

    @singledispatchmethod
    def _draw(self, part: sections.Part) -> None:
        """Draw a part; nothing of a picture, whose table stands beside it."""

    @_draw.register(str)
    def _paragraph(self, part: str) -> None:
        self._text(part, _SMALL)

    @_draw.register(sections.Section)
    def _section(self, part: sections.Section) -> None:
        """Draw the heading, with the parts; lines to sign on stay on the page of their heading."""
        room = 30
        if any(isinstance(inner, sections.Table) and inner.kind == "sign" for inner in part.parts):
            room = 62
        if self._pdf.will_page_break(room):
            self._pdf.add_page()
        self._pdf.ln(2)
        self._text(part.heading, 12, bold=True)
        self._text(part.about, _SMALL, colour=_GREY)
        self._text(part.sentence, bold=True)
        self._text(" · ".join(part.chips), _SMALL)
        self._draw_all(part.parts)

    @_draw.register(sections.Table)
    def _table(self, part: sections.Table) -> None:
        height = 4.4
        if part.kind == "sign":
            height = 11
        self._text(part.caption, _SMALL, colour=_GREY)
        self._grid(part.rows, _widths(part.head, part.rows), part.head, height)
        self._text(part.more)

    @_draw.register(sections.Facts)
    def _facts(self, part: sections.Facts) -> None:
        self._grid(part.rows, (40, _WIDTH - 40))

    @_draw.register(sections.Notes)
    def _notes(self, part: sections.Notes) -> None:
        for note in part.items:
            self._text(f"– {note}", _SMALL)

    @_draw.register(sections.Counts)
    def _counts(self, part: sections.Counts) -> None:
        self._text(by_verdict(dict(part.rows)), bold=True)

    @_draw.register(sections.Statements)
    def _statements(self, part: sections.Statements) -> None:
        head = ("Verdict", "Sentence", "Finding and test")
        rows = []
        for item in part.items:
            notes = tuple(f"• {note}" for note in item.notes)
            verdict = sections.Entry(verdict=item.verdict, marks=item.marks)
            sentence = sections.Entry(words=item.sentence, small=notes)
            rows.append((verdict, sentence, f"{item.id}  {item.about}"))
        self._grid(rows, (30, 94, 50), head)
        self._text(part.more)

    @_draw.register(sections.Link)
    def _link(self, part: sections.Link) -> None:
        self._text(part.words, _SMALL)

    @_draw.register(sections.Printed)
    def _printed(self, part: sections.Printed) -> None:
        for line in part.lines:
            self._text(line, _SMALL)

    @_draw.register(sections.Details)
    def _details(self, part: sections.Details) -> None:
        self._text(part.summary, bold=True)
        self._draw_all(part.parts)

    @_draw.register(sections.Dialogue)
    def _dialogue(self, part: sections.Dialogue) -> None:
        self._text(part.about, _SMALL, colour=_GREY)
        self._grid(part.turns, (30, _WIDTH - 30))

    @_draw.register(sections.SideBySide)
    def _side_by_side(self, part: sections.SideBySide) -> None:
        self._text(part.about, _SMALL, colour=_GREY)
        rows = []
        for reply in part.replies:
            text = "".join(words for words, _ in reply.words)
            rows.append((f"{reply.who} {reply.score}", text))
        self._grid(rows, (30, _WIDTH - 30))

    def _banner(self, banner: sections.Banner) -> None:
        colour = _BLACK
        if banner.kind == "simulated":
            colour = _RED
        self._text(f"{banner.about} {banner.words}".strip(), bold=True, colour=colour)

    # ------------------------------------------------------------ text

    def _text(
        self,
        text: str,
        size: float = 9.5,
        *,
        bold: bool = False,
        colour: tuple[int, int, int] = _BLACK,
    ) -> None:
        if not text:
            return
        self._font(size, bold=bold, colour=colour)
        self._pdf.multi_cell(
            0, size * 0.5, self._spelt(text), align="L", new_x="LMARGIN", new_y="NEXT"
        )
        self._pdf.ln(1)

    def _font(
        self, size: float, *, bold: bool = False, colour: tuple[int, int, int] = _BLACK
    ) -> None:
        style = ""
        if bold:
            style = "B"
        self._pdf.set_font(self._family, style, size)
        self._pdf.set_text_color(*colour)

    def _grid(
        self,
        rows: Iterable[Sequence[str | sections.Entry]],
        widths: Sequence[float],
        head: Sequence[str] = (),
        height: float = 4.4,
    ) -> None:
        """Draw *rows* under their *head*, the first column bold, a verdict in its colour."""
        from fpdf.enums import VAlign
        from fpdf.fonts import FontFace

        self._font(_SMALL)
        self._pdf.set_draw_color(190)
        with self._pdf.table(
            col_widths=tuple(widths), text_align="LEFT", borders_layout="HORIZONTAL_LINES", line_height=height,
            padding=0.8, v_align=VAlign.T, first_row_as_headings=bool(head),
            headings_style=FontFace(emphasis="BOLD", color=_GREY),
        ) as table:  # fmt: skip
            if head:
                table.row(list(map(self._spelt, head)))
            for first, *others in rows:
                row = table.row()
                row.cell(self._cell(first), style=FontFace(emphasis="BOLD", color=_colour(first)))
                for cell in others:
                    row.cell(self._cell(cell))
        self._pdf.ln(2)

    def _cell(self, cell: str | sections.Entry) -> str:
        return "\n".join(map(self._spelt, _lines(cell)))

    def _spelt(self, text: str) -> str:
        """Return *text* on one line, with all that cannot be seen or drawn spelt out, so that it is
        not lost.
        """
        return re.sub(r"[^\x20-\x7e]", self._spell, visible(text, keep=""))

    def _spell(self, match: re.Match[str]) -> str:
        code = ord(match[0])
        if code in self._characters:
            return match[0]
        if code < 0x10000:
            return f"\\u{code:04x}"
        return f"\\U{code:08x}"

    def _use_fonts(self, pdf: FPDF) -> Container[int]:
        """Make the machine's fonts the document's, or else that of PDF itself; the characters that
        they have.
        """
        fonts = _found()
        if not fonts:
            self._family = "helvetica"
            return range(0x100)
        self._family = "text"
        regular, bold = fonts[0]
        pdf.add_font(self._family, "", regular)
        pdf.add_font(self._family, "B", bold or regular)
        others = [f"other{number}" for number in range(len(fonts) - 1)]
        for name, (path, _) in zip(others, fonts[1:], strict=True):
            pdf.add_font(name, "", path)
        pdf.set_fallback_fonts(others, exact_match=False)
        characters: set[int] = set()
        for font in pdf.fonts.values():
            characters.update(getattr(font, "cmap", ()))
        return characters

    def _footer(self) -> None:
        """Write in the lower margin where the page belongs."""
        self._pdf.set_y(-13)
        self._font(7.5, colour=_GREY)
        words = self._spelt(f"Run {self._run} · page {self._pdf.page_no()}")
        self._pdf.cell(0, 5, f"{words} of {{nb}}", align="C")


def _lines(cell: str | sections.Entry) -> list[str]:
    """Return the lines of a cell: a verdict and words, marks, small print."""
    if isinstance(cell, str):
        return [cell]
    words = " ".join(filter(None, (cell.verdict, cell.words)))
    return list(filter(None, (words, ", ".join(cell.marks), *cell.small)))


def _colour(cell: str | sections.Entry) -> tuple[int, int, int] | None:
    if isinstance(cell, str) or cell.verdict is None:
        return None
    return _COLOURS[cell.verdict]


def _widths(head: Sequence[str], rows: Sequence[Sequence[str | sections.Entry]]) -> list[float]:
    """Return how wide each column is: by its longest line, within bounds."""
    letters = []
    for column in zip(head, *rows, strict=True):
        longest = _NARROW
        for cell in column:
            longest = max([longest, *map(len, _lines(cell))])
        letters.append(min(longest, _WIDE))
    return [_WIDTH * length / sum(letters) for length in letters]
