"""The document as GitHub's and GitLab's Markdown; and the report of a run for a pull request or a
job's summary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch

from pytest_fairness.reports import sections
from pytest_fairness.reports.changes import changes_between
from pytest_fairness.reports.digest import MOST_OF_A_PULL_REQUEST, fitting, pull_request_page
from pytest_fairness.reports.escaping import clipped, line, markdown, web_address
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.reports.overview import by_verdict

#: The first line, by which a comment that is replaced from run to run is found again.
MARKER = "<!-- pytest-fairness -->"
#: What GitHub takes as one comment; GitLab takes more.
MOST_CHARACTERS = 65_536
_PRINTED = 160


def markdown_report(
    results: RunResults,
    *,
    compared: RunResults | None = None,
    report: str = "report.html",
    job: str = "",
    printed: Sequence[str] = (),
) -> str:
    """The report of *results* in at most 65,536 characters.

    *compared*: the results of an earlier run. *report*: where the page lies. *job*: the address of
    the CI job that keeps it. *printed*: the lines that suites have printed.
    """
    changes = None
    since = ""
    if compared is not None:
        changes = changes_between(compared, results)
        since = str(compared.run.get("id"))

    def text(most: int) -> str:
        page = pull_request_page(results, changes, since, printed, most)
        return f"{MARKER}\n\n{page_markdown(page, report=report, job=job)}"

    return fitting(text, MOST_OF_A_PULL_REQUEST, lambda text: len(text) <= MOST_CHARACTERS)


def page_markdown(page: sections.Page, *, report: str = "", job: str = "") -> str:
    """Return *page*: its title, lead and banners, then each section under its heading, and where
    the whole report lies.
    """
    blocks = [f"## {markdown(page.title)}"]
    if page.lead:
        blocks.append(f"**{markdown(page.lead)}**")
    blocks.append("\n".join(map(_banner, page.opening)))
    for section in page.sections:
        blocks.append(_headed(section, "###"))
    if report:
        where = f"Report: {_code(report)}"
        if address := web_address(job):
            where += f" of [this job]({address})"
        blocks[-1] += f"<br>{where}"
    return _joined(blocks) + "\n"


def _banner(banner: sections.Banner) -> str:
    if banner.about:
        return f"> **{markdown(banner.about)}** {markdown(banner.words)}  "
    return f"> {markdown(banner.words)}  "


def _headed(section: sections.Section, sign: str) -> str:
    """Return *section* under its heading, before which the *sign* stands."""
    blocks = []
    if section.heading:
        blocks.append(f"{sign} {markdown(section.heading)}")
    if section.verdict is not None:
        blocks.append(_verdict(sections.Entry(verdict=section.verdict, reason=section.reason)))
    blocks.append(markdown(section.sentence))
    blocks.append(" · ".join(map(markdown, section.chips)))
    blocks += map(block_of, section.parts)
    return _joined(blocks)


def _joined(blocks: Iterable[str]) -> str:
    return "\n\n".join(filter(None, blocks))


# ---------------------------------------------------------------- parts


@singledispatch
def block_of(_part: sections.Part) -> str:
    """Return a part as a block; an empty one for a picture, whose table stands beside it."""
    return ""


@block_of.register(str)
def _paragraph(part: str) -> str:
    return markdown(part)


@block_of.register(sections.Table)
def _table(part: sections.Table) -> str:
    rules = [_rule(part, place) for place in range(len(part.head))]
    rows = [list(map(_cell, row)) for row in part.rows]
    blocks = [_grid(list(map(markdown, part.head)), rules, rows), markdown(part.more)]
    if part.caption:
        blocks.insert(0, f"**{markdown(part.caption)}**")
    return _joined(blocks)


def _rule(shown: sections.Table, place: int) -> str:
    """Return what aligns a column: figures stand at the right."""
    if shown.is_figure(place):
        return "---:"
    return "---"


def _grid(head: Sequence[str], rules: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(rules)}|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def _cell(cell: str | sections.Entry) -> str:
    if isinstance(cell, str):
        return markdown(cell)
    lines = [" ".join(filter(None, (_verdict(cell), markdown(cell.words))))]
    lines += map(markdown, (", ".join(cell.marks), *cell.small))
    return "<br>".join(filter(None, lines))


def _verdict(entry: sections.Entry) -> str:
    """Return a verdict with its reason, bold but for a PASS."""
    if entry.verdict is None:
        return ""
    shown = str(entry.verdict)
    if shown != "PASS":
        shown = f"**{shown}**"
    if entry.reason:
        shown += f" ({entry.reason})"
    return shown


@block_of.register(sections.Statements)
def _statements(part: sections.Statements) -> str:
    rows = []
    for item in part.items:
        verdict = sections.Entry(verdict=item.verdict, reason=item.reason, marks=item.marks)
        lines = [markdown(item.heading), markdown(item.sentence)]
        lines += [f"• {markdown(note)}" for note in item.notes]
        if item.about:
            lines.append(_code(item.about))
        rows.append([_cell(verdict), "<br>".join(filter(None, lines))])
    shown = _grid(("verdict", "what was found"), ("---", "---"), rows)
    return _joined([shown, markdown(part.more)])


@block_of.register(sections.Facts)
def _facts(part: sections.Facts) -> str:
    return "\n".join(f"- {markdown(name)}: {markdown(value)}" for name, value in part.rows)


@block_of.register(sections.Notes)
def _notes(part: sections.Notes) -> str:
    return "\n".join(f"- {markdown(note)}" for note in part.items)


@block_of.register(sections.Counts)
def _counts(part: sections.Counts) -> str:
    return f"**{by_verdict(dict(part.rows))}**"


@block_of.register(sections.Link)
def _link(part: sections.Link) -> str:
    return markdown(part.words)


@block_of.register(sections.Printed)
def _printed(part: sections.Printed) -> str:
    return _verbatim(part.lines, _PRINTED)


def _verbatim(lines: Iterable[str], most: int) -> str:
    """Return *lines* as they are: indented, none can end the block that it stands in."""
    shown = (f"    {clipped(line(text), most)}".rstrip() for text in lines)
    return "\n".join(shown).strip("\n")


@block_of.register(sections.Dialogue)
def _dialogue(part: sections.Dialogue) -> str:
    blocks = [markdown(part.about)]
    for who, text in part.turns:
        blocks += [f"**{markdown(who)}**", _verbatim(text.splitlines(), len(text))]
    return _joined(blocks)


@block_of.register(sections.SideBySide)
def _side_by_side(part: sections.SideBySide) -> str:
    blocks = [markdown(part.about)]
    for reply in part.replies:
        text = "".join(words for words, _ in reply.words)
        blocks += [f"**{markdown(f'{reply.who} {reply.score}')}**"]
        blocks.append(_verbatim(text.splitlines(), len(text)))
    return _joined(blocks)


@block_of.register(sections.Details)
def _details(part: sections.Details) -> str:
    return _joined([f"**{markdown(part.summary)}**", *map(block_of, part.parts)])


@block_of.register(sections.Section)
def _section(part: sections.Section) -> str:
    return _headed(part, "####")


def _code(text: str) -> str:
    return f"<code>{markdown(text)}</code>"
