"""``summary.pdf``: a few pages to be read, printed and signed. Needs fpdf2 (the extra ``pdf``).

fpdf2 draws text and nothing else: it knows no markup unless asked, so hostile text stays text. A
character that no font of this machine has is spelt out, never lost. See
``docs/decisions/0129-the-summary-as-pdf.md``.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness import words
from pytest_fairness.analysis.controls import EVIDENCE_IS
from pytest_fairness.baselines.mitigations import counted, unanswered
from pytest_fairness.errors import MissingExtra
from pytest_fairness.model import Finding, Verdict
from pytest_fairness.reports import formatting
from pytest_fairness.reports.escaping import shortened, visible
from pytest_fairness.reports.findings_json import RunResults, read_results
from pytest_fairness.reports.overview import failures, verdict_on_session
from pytest_fairness.reports.run_sections import method_section
from pytest_fairness.reports.unjudged import unjudged_tests
from pytest_fairness.runs.manifest import anchors_of, read_manifest

if TYPE_CHECKING:
    from fpdf import FPDF

NAME = "summary.pdf"
#: Findings that are listed; the others are counted.
MOST = 20
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
_COLOURS = {
    Verdict.FAIL: (176, 32, 32),
    Verdict.FLAG: (150, 90, 0),
    Verdict.INCONCLUSIVE: (85, 85, 85),
    Verdict.PASS: (20, 110, 60),
}
_GREY = (90, 90, 90)


def surroundings() -> str | None:
    """Return what the bytes of a PDF depend on beside the run: the library and the fonts; None
    without the library.
    """
    try:
        fonts = [
            f"{path.name} {path.stat().st_size}"
            for pair in _found()
            for path in pair
            if path is not None
        ]
        return ", ".join([f"fpdf2 {importlib.metadata.version('fpdf2')}", *fonts])
    except importlib.metadata.PackageNotFoundError:
        return None


def write_summary(run_dir: Path, into: Path | None = None) -> Path:
    """Write the summary of the run in *run_dir*, as ``summary.pdf`` there or to *into*. Raises
    MissingExtra.
    """
    into = into or run_dir / NAME
    into.write_bytes(_Summary(read_results(run_dir), run_dir).made())
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


def _bare(finding: Finding) -> str:
    """The sentence without the verdict, which stands beside it."""
    return finding.sentence.removeprefix(f"{finding.verdict}: ")


class _Summary:
    """The pages, being drawn."""

    def __init__(self, results: RunResults, run_dir: Path) -> None:
        try:
            from fpdf import FPDF
        except ImportError as error:
            raise MissingExtra("a summary as PDF", "pdf") from error
        self._results = results
        self._run_dir = run_dir
        self._pdf = FPDF(format="A4")
        finished = str(results.run.get("finished") or "1980-01-01T00:00:00+00:00")
        self._pdf.set_creation_date(datetime.datetime.fromisoformat(finished))
        self._pdf.set_title(f"Fairness: summary of run {results.run.get('id')}")
        self._pdf.set_lang("en")
        self._pdf.set_margins(18, 16)
        self._pdf.set_auto_page_break(auto=True, margin=18)
        self._known = self._use_fonts(self._pdf)
        self._pdf.footer = self._footer  # type: ignore[method-assign]

    def _use_fonts(self, pdf: FPDF) -> set[int] | None:
        """Make the machine's fonts the document's; the characters that they have, None where only
        those of PDF are.
        """
        fonts = _found()
        if not fonts:
            self._family = "helvetica"
            return None
        self._family = "text"
        regular, bold = fonts[0]
        pdf.add_font(self._family, "", regular)
        pdf.add_font(self._family, "B", bold or regular)
        for number, (path, _) in enumerate(fonts[1:]):
            pdf.add_font(f"other{number}", "", path)
        pdf.set_fallback_fonts(
            [f"other{number}" for number in range(len(fonts) - 1)], exact_match=False
        )
        return {code for font in pdf.fonts.values() for code in getattr(font, "cmap", ())}

    # ------------------------------------------------------------ text

    def _text(self, value: object) -> str:
        """*value* with all that cannot be seen or drawn spelt out, so that it is not lost."""

        def spell(match: re.Match[str]) -> str:
            code = ord(match[0])
            if self._known is None:
                drawn = code < 0x100
            else:
                drawn = code in self._known
            if drawn:
                return match[0]
            if code < 0x10000:
                return f"\\u{code:04x}"
            return f"\\U{code:08x}"

        return re.sub(r"[^\x20-\x7e]", spell, visible(str(value), keep=""))

    def _font(
        self, size: float, *, bold: bool = False, colour: tuple[int, int, int] = (0, 0, 0)
    ) -> None:
        self._pdf.set_font(self._family, "B" if bold else "", size)
        self._pdf.set_text_color(*colour)

    def _paragraph(self, text: object, size: float = 9.5, **style: Any) -> None:
        self._font(size, **style)
        self._pdf.multi_cell(
            0, size * 0.5, self._text(text), align="L", new_x="LMARGIN", new_y="NEXT"
        )
        self._pdf.ln(1)

    def _heading(self, text: str) -> None:
        if self._pdf.will_page_break(30):
            self._pdf.add_page()
        self._pdf.ln(2)
        self._paragraph(text, 12, bold=True)

    def _table(
        self,
        rows: Sequence[Sequence[object]],
        widths: Sequence[int],
        head: Sequence[str] = (),
        height: float = 4.4,
    ) -> None:
        """*rows*, the first column bold; a verdict in its colour."""
        from fpdf.enums import VAlign
        from fpdf.fonts import FontFace

        self._font(8.5)
        self._pdf.set_draw_color(190)
        with self._pdf.table(
            col_widths=tuple(widths), text_align="LEFT", borders_layout="HORIZONTAL_LINES", line_height=height,
            padding=0.8, v_align=VAlign.T, first_row_as_headings=bool(head),
            headings_style=FontFace(emphasis="BOLD", color=_GREY),
        ) as table:  # fmt: skip
            for cells in (*([head] if head else []), *rows):
                row = table.row()
                for at, cell in enumerate(cells):
                    colour = None
                    if isinstance(cell, Verdict):
                        colour = _COLOURS.get(cell)
                    style = None
                    if at == 0 and cells is not head:
                        style = FontFace(emphasis="BOLD", color=colour)
                    row.cell(self._text(cell), style=style)
        self._pdf.ln(2)

    # ------------------------------------------------------------ the pages

    def made(self) -> bytes:
        pdf = self._pdf
        results = self._results
        run = self._results.run
        pdf.add_page()
        self._paragraph("Fairness: summary of a run", 17, bold=True)
        self._paragraph(
            f"Run {run.get('id')}, finished "
            f"{str(run.get('finished') or 'never')[:16].replace('T', ' ')} UTC. Made by "
            f"pytest-fairness {(run.get('versions') or {}).get('pytest-fairness', '')} from the "
            "files of the run.",
            colour=_GREY,
        )
        if results.simulated:
            warning = (
                "SIMULATED ENDPOINT: no model was asked, at least in part. The figures say nothing "
                "about any model."
            )
            self._paragraph(warning, bold=True, colour=(176, 32, 32))
        if results.replayed:
            self._paragraph(
                "REPLAYED: the replies come from a recorded run; no model was asked now.", bold=True
            )
        self._heading("What was asked")
        self._table(self._asked(), (40, 134))
        self._heading("What was concluded")
        counts = results.counts
        verdict = verdict_on_session(results)
        self._paragraph(f"{verdict.heading}. {verdict.words}", bold=True)
        self._paragraph(", ".join(f"{n} {verdict}" for verdict, n in counts.items()), bold=True)
        if results.missing:
            several = words.count(len(results.missing), "collected test")
            self._paragraph(
                f"{several} never finished; what they would have found is missing.", bold=True
            )
        named = results.named
        rows = [
            [
                named[at][0].verdict,
                _bare(named[at][0]),
                f"{named[at][2]}  {shortened(named[at][1], 120)}",
            ]
            for at in results.order[:MOST]
        ]
        if rows:
            self._table(rows, (30, 94, 50), head=("Verdict", "Sentence", "Finding and test"))
        if len(named) > MOST:
            self._paragraph(
                f"And {len(named) - MOST:,} more, each no worse than these: in report.html and "
                "findings.json."
            )
        if unjudged := unjudged_tests(results):
            self._paragraph("Tests that concluded nothing", bold=True)
            rows = [
                [shortened(item.nodeid, 120), shortened(words, 200)]
                for item, words in unjudged[:MOST]
            ]
            self._table(rows, (80, 94), head=("Test", "What"))
        if len(unjudged) > MOST:
            self._paragraph(f"And {len(unjudged) - MOST:,} more, in report.html and findings.json.")
        other = [failure for failure in failures(results) if failure.at is None and failure.message]
        if other:
            self._paragraph("Tests that failed without a finding", bold=True)
            self._table(
                [
                    [
                        shortened(failure.why, 60),
                        shortened(failure.nodeid, 120),
                        shortened(failure.message, 200),
                    ]
                    for failure in other[:MOST]
                ],
                (36, 60, 78),
                head=("Why", "Test", "Message"),
            )
        if len(other) > MOST:
            self._paragraph(f"And {len(other) - MOST:,} more, in report.html and findings.json.")
        self._answers()
        self._heading("How it was judged")
        verdicts, scope, *_ = method_section(results, self._run_dir).parts
        self._table(getattr(verdicts, "rows", ()), (30, 144))
        self._paragraph(scope, 8.5)
        self._paragraph(
            "The sources of each method, and how often it is wrong, are in methodology/ of the "
            "bundle.",
            8.5,
        )
        self._paragraph(EVIDENCE_IS, 8.5)
        self._integrity()
        self._sign_off()
        return bytes(pdf.output())

    def _asked(self) -> list[list[object]]:
        run = self._results.run
        results = self._results
        models = sorted({model for entry in run.get("models") or [] for model in entry["answered"]})
        trials = run.get("trials") or {}
        command = run.get("command")
        rows: list[list[object]] = [
            ["Endpoints", ", ".join(map(str, run.get("endpoints") or [])) or "none: tables alone"],
            ["Models that answered", ", ".join(models) or "no answer names its model"],
            [
                "Tests",
                f"{len(results.items)}, with {words.count(len(results.findings), 'finding')}",
            ],
            [
                "Trials",
                ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in trials.items() if n),
            ],
            ["Cost", formatting.cost_line(run)],
            [
                "Command",
                " ".join(map(str, command)) if isinstance(command, list) else command or "",
            ],
            ["Git commit", run.get("git_commit") or ""],
            ["Run by", run.get("run_by") or ""],
        ]
        return [[name, shortened(str(value), 600)] for name, value in rows if value]

    def _answers(self) -> None:
        """Justifications and mitigations, a line each."""
        results = self._results
        justified = [row for row in results.named if row[0].justification is not None]
        if not justified and not results.mitigations:
            return
        self._heading("What was accepted, and what is done")
        rows = [
            [number, f"justified: {shortened(formatting.justification_line(finding), 300)}"]
            for finding, _, number in justified[:MOST]
        ]
        for entry in results.mitigations[:MOST]:
            due = ""
            if entry.get("due"):
                due = f", due {entry['due']}"
            done = ""
            if entry.get("done"):
                done = f", done {entry['done']}"
            who = f"{entry['owner']}, {entry['date']}{due}{done}"
            rows.append(
                [
                    entry["status"],
                    f"{entry.get('finding') or entry['test']}: {shortened(entry['action'], 300)} ({who})",
                ]
            )
        self._table(rows, (30, 144))
        if results.mitigations:
            without = unanswered(results.named, results.mitigations)
            more = ""
            if without:
                more = f"; {words.count(len(without), 'FLAG or FAIL')} without one"
            self._paragraph(
                f"Mitigations: {counted(results.mitigations)}{more}. None changes a verdict.", 8.5
            )

    def _integrity(self) -> None:
        anchors = anchors_of(read_manifest(self._run_dir))
        digest = hashlib.sha256((self._run_dir / "findings.json").read_bytes()).hexdigest()
        self._heading("What shows that nothing was changed")
        rows = [
            [name, f"{anchor.records:,} records, head {anchor.head}"]
            for name, anchor in list(anchors.items())[:8]
        ]
        self._table([["findings.json", f"SHA-256 {digest}"], *rows], (32, 142))
        self._paragraph("pytest-fairness verify derives every verdict again from the logs.", 8.5)

    def _sign_off(self) -> None:
        if self._pdf.will_page_break(62):
            self._pdf.add_page()
        self._heading("Sign-off")
        roles = ("Prepared", "Reviewed", "Approved")
        head = ("", "Name and position", "Date", "Signature")
        self._table([[role, "", "", ""] for role in roles], (30, 64, 28, 52), head=head, height=11)

    def _footer(self) -> None:
        """Where the page belongs, in its lower margin."""
        self._pdf.set_y(-13)
        self._font(7.5, colour=_GREY)
        words = self._text(f"Run {self._results.run.get('id')} · page {self._pdf.page_no()}")
        self._pdf.cell(0, 5, f"{words} of {{nb}}", align="C")
