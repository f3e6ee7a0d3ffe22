"""The document as plain text for a terminal: a finding, the end of a session, any page; in at most
100 columns, with nothing that a terminal obeys.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, ParamSpec

from pytest_fairness.model import Finding
from pytest_fairness.reports import sections
from pytest_fairness.reports.digest import session_parts
from pytest_fairness.reports.escaping import (
    clipped,
    columns_of,
    commandless,
    line,
    terminal,
    wrapped,
)
from pytest_fairness.reports.finding_sections import finding_digest
from pytest_fairness.reports.overview import by_verdict

if TYPE_CHECKING:
    from pytest_fairness.reports.judged_tables import JudgedTable

P = ParamSpec("P")
WIDTH = 100
#: Lines of a reply that stands beside another.
MOST_LINES = 4
_ALIKE = 80
_NARROWEST = 10


def finding_text(finding: Finding, judged: JudgedTable | None = None) -> str:
    """Sentence, groups, pairs, two matched replies of the *judged*, family and notes."""
    return _joined(finding_digest(finding, judged))


def _in_lines(parts_of: Callable[P, Iterable[sections.Part]]) -> Callable[P, list[str]]:
    """Return a function that gives what *parts_of* does as lines, of which none is blank; its
    paragraphs hang.
    """

    def lines_of_parts(*arguments: P.args, **keywords: P.kwargs) -> list[str]:
        lines: list[str] = []
        for part in parts_of(*arguments, **keywords):
            if isinstance(part, str):
                lines += wrapped(line(part), WIDTH, "", "  ")
            else:
                lines += lines_of(part, WIDTH)
        return list(map(commandless, lines))

    return lines_of_parts


#: The end of a session.
summary_lines = _in_lines(session_parts)


def page_text(page: sections.Page) -> str:
    """Return *page*: its title and lead, its banners, then each section under its heading."""
    parts: list[sections.Part] = [page.title, page.lead]
    parts += [f"{banner.about} {banner.words}" for banner in page.opening]
    for section in page.sections:
        parts += [section.heading, section.sentence, " · ".join(section.chips), *section.parts]
    return _joined(parts) + "\n"


def table_text(table: sections.Table, width: int = WIDTH) -> str:
    """Return the rows of *table* under its head, without its caption."""
    return commandless("\n".join(table_lines(table, table.rows, width)))


def _joined(parts: Iterable[sections.Part]) -> str:
    """Return *parts* with an empty line between them; those without words are left out."""
    texts = ("\n".join(lines_of(part, WIDTH)) for part in parts)
    # Once more as a whole: wrapped lines begin where no text did.
    return commandless("\n\n".join(filter(None, texts)))


# ---------------------------------------------------------------- parts


@singledispatch
def lines_of(_part: sections.Part, _width: int) -> list[str]:
    """Return the lines of a part; none for a picture, whose table stands beside it."""
    return []


@lines_of.register(str)
def _paragraph(part: str, width: int) -> list[str]:
    return _wrapped(part, width)


@lines_of.register(sections.Table)
def _table(part: sections.Table, width: int) -> list[str]:
    caption = _wrapped(part.caption, width)
    return [*caption, *table_lines(part, part.rows, width), *_items([part.more], width)]


@lines_of.register(sections.Facts)
def _facts(part: sections.Facts, width: int) -> list[str]:
    return _items((f"{name}: {value}" for name, value in part.rows), width)


@lines_of.register(sections.Notes)
def _notes(part: sections.Notes, width: int) -> list[str]:
    return _items(part.items, width)


@lines_of.register(sections.Counts)
def _counts(part: sections.Counts, width: int) -> list[str]:
    return _items([by_verdict(dict(part.rows))], width)


@lines_of.register(sections.Link)
def _link(part: sections.Link, width: int) -> list[str]:
    return _items([part.words], width)


@lines_of.register(sections.Printed)
def _printed(part: sections.Printed, _width: int) -> list[str]:
    return list(map(line, part.lines))


@lines_of.register(sections.Statements)
def _statements(part: sections.Statements, width: int) -> list[str]:
    lines: list[str] = []
    for item in part.items:
        lines += _statement(item, width)
    return [*lines, *_items([part.more], width)]


def _statement(item: sections.Section, width: int) -> list[str]:
    """Return ``VERDICT [marks]: sentence``, and below it what stands beside it, and the test."""
    head = str(item.verdict or "")
    if item.heading:
        head = f"{item.heading}: {head}"
    if item.marks:
        head += f" [{', '.join(item.marks)}]"
    lines = _items([f"{head}: {item.sentence}"], width)
    lines += _items(item.notes, width, "    ")
    if item.about:
        lines.append(clipped(f"    {line(item.about)}", width))
    return lines


@lines_of.register(sections.Dialogue)
def _dialogue(part: sections.Dialogue, width: int) -> list[str]:
    lines = _items([part.about], width)
    for who, text in part.turns:
        lines += _indented([*_items([who], width - 4), *_wrapped(text, width - 4, "    ")])
    return lines


@lines_of.register(sections.SideBySide)
def _side_by_side(part: sections.SideBySide, width: int) -> list[str]:
    """Return two replies, a few lines each; words that differ stand in brackets."""
    lines = wrapped(line(f"{part.about} ([words] differ)"), width, "  ", "  ")
    for reply in part.replies:
        lines += wrapped(line(f"{reply.who}, {reply.score}"), width, "    ", "    ")
        runs = (_run_of_words(words, kind) for words, kind in reply.words)
        text = wrapped(terminal("".join(runs)), width, "      ", "      ")
        if len(text) > MOST_LINES:
            text = [*text[:MOST_LINES], "      …"]
        lines += text
    return lines


def _run_of_words(words: str, kind: str) -> str:
    """Return what differs in brackets; of what two replies have in common, where that is long, as
    much as shows where one is.
    """
    if kind == "differs":
        return f"[{words}]"
    if len(words) <= _ALIKE:
        return words
    return f"{words[: _ALIKE // 2]} … {words[-_ALIKE // 2 :]}"


@lines_of.register(sections.Details)
def _details(part: sections.Details, width: int) -> list[str]:
    return _headed(part.summary, part.parts, width)


@lines_of.register(sections.Section)
def _section(part: sections.Section, width: int) -> list[str]:
    heading = part.heading
    if part.verdict is not None:
        heading = f"{part.verdict}: {heading}"
    return _headed(heading, (part.sentence, *part.parts), width)


def _headed(heading: str, parts: Iterable[sections.Part], width: int) -> list[str]:
    lines = _items([heading], width)
    for part in parts:
        lines += _indented(lines_of(part, width - 2))
    return lines


# ---------------------------------------------------------------- lines


def _items(texts: Iterable[str], width: int, first: str = "  ") -> list[str]:
    """Return each of *texts*, with *first* before its first line; nothing of an empty one."""
    lines: list[str] = []
    for text in texts:
        lines += _wrapped(text, width, first, "    ")
    return lines


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {text}" for text in lines]


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    lines: list[str] = []
    if not text:
        return lines
    for paragraph in terminal(text).expandtabs(4).split("\n"):
        lines += wrapped(paragraph, width, first, rest)
    return lines


def table_lines(
    table: sections.Table, rows: Sequence[Sequence[str | sections.Entry]], width: int = WIDTH
) -> list[str]:
    """Return *rows* of a *table* under its titles, two spaces apart, within the *width*; columns of
    words give way first.
    """
    columns = []
    for place in range(len(table.head)):
        columns.append([line(_plain(row[place])) for row in (table.head, *rows)])
    widths = _column_widths(table, columns, width)
    lines = []
    for row in zip(*columns, strict=True):
        shown = ""
        for place, (text, room) in enumerate(zip(row, widths, strict=True)):
            cell = clipped(text, room)
            space = " " * (room - columns_of(cell))
            if table.is_figure(place):
                shown += f"  {space}{cell}"
            else:
                shown += f"  {cell}{space}"
        lines.append(shown.rstrip())
    return lines


def _column_widths(
    table: sections.Table, columns: Sequence[Sequence[str]], width: int
) -> list[int]:
    """Return how wide each column is, so that a row fits into *width*."""
    widths = [max(map(columns_of, column)) for column in columns]
    of_words = {0}
    for place, title in enumerate(table.head):
        if title in table.words:
            of_words.add(place)
    while sum(widths) + 2 * len(widths) > width and max(widths) > _NARROWEST:
        widths[_giving(widths, of_words)] -= 1
    return widths


def _giving(widths: Sequence[int], of_words: Collection[int]) -> int:
    """Return the widest column: of those *of_words* as long as one has room, then of all."""
    giving = [place for place in sorted(of_words) if widths[place] > _NARROWEST]
    return max(giving or range(len(widths)), key=widths.__getitem__)


def _plain(cell: str | sections.Entry) -> str:
    if isinstance(cell, str):
        return cell
    reason = ""
    if cell.reason:
        reason = f"({cell.reason})"
    return " ".join(filter(None, (cell.words, cell.verdict, reason)))
