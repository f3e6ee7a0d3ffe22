"""A finding as text: a sentence, a table of the groups, one of the pairs; and the summary of a session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_fairness.analysis import false_alarms
from pytest_fairness.model import Finding, Verdict
from pytest_fairness.reports import formatting
from pytest_fairness.reports.escaping import clipped, columns_of, commandless, line, padded, terminal, wrapped
from pytest_fairness.reports.finding_sections import group_table, pair_table
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.reports.sections import Entry, Table

WIDTH = 100
MOST_PAIRS = 12
MOST_GROUPS = 24
MOST_MISSING = 10
_NARROWEST = 10
_SIMULATED = "simulated: the figures come from a simulated endpoint; no model was asked"
_REPLAYED = "replayed: the replies come from a recorded run; no model was asked now"


def finding_text(finding: Finding) -> str:
    """Sentence, groups, pairs, family and notes, in at most 100 columns, safe for a terminal."""
    parts = [_wrapped(finding.sentence)]
    provenance = ((_SIMULATED, finding.simulated), (_REPLAYED, finding.replayed))
    parts.append("\n".join(text for text, applies in provenance if applies))
    if finding.group_results:
        groups = group_table(finding, most_labels=5)
        parts.append(_table(groups, groups.rows[:MOST_GROUPS], len(finding.group_results), "group"))
    if finding.pairs:
        pairs = pair_table(finding, formatting.widest_pairs(finding.pairs, MOST_PAIRS))
        parts.append(_table(pairs, pairs.rows, len(finding.pairs), "pair"))
    closing = [formatting.family_line(finding), *(f"note: {note}" for note in finding.notes)]
    if literal := formatting.literal(finding):
        closing.append(f"by the literal specification: {literal}")
    if finding.justification is not None:
        closing.append(f"justified: {formatting.justification_line(finding.justification)}")
    parts.append("\n".join(_wrapped(text, "  ") for text in closing if text))
    # Once more as a whole: wrapped lines begin where no text did.
    return commandless("\n\n".join(part for part in parts if part))


def summary_lines(run: RunResults, report: Path | str | None = None) -> list[str]:
    """The end of a session: counts by verdict, each sentence, worst first, and the report's path."""
    counted = ", ".join(f"{count} {verdict}" for verdict, count in run.counts.items() if count)
    total = len(run.findings)
    head = f"fairness: {formatting.count(total, 'finding')}{': ' + counted if counted else ''}"
    marks = [mark for mark, applies in (("simulated", run.simulated), ("replayed", run.replayed)) if applies]
    lines = [head + (f" ({', '.join(marks)})" if marks else "")]
    for verdict in run.counts:
        for index, finding in enumerate(run.findings):
            if finding.verdict is verdict:
                lines += _summary_of(
                    finding, run.maker_of(index).nodeid or finding.test_id, run.maker_of(index).outcome
                )
    lines += [clipped(f"  never finished: {line(nodeid)}", WIDTH) for nodeid in run.missing[:MOST_MISSING]]
    if len(run.missing) > MOST_MISSING:
        lines.append(f"  … and {len(run.missing) - MOST_MISSING} more")
    lines += _session_alarms(run)
    if isinstance(share := run.session.get("false_alarm"), (int, float)):
        chance = false_alarms.words(share)
        lines.append(f"  A fair system would have turned this session red with a chance of at most {chance}.")
    if run.missing:
        lines.append("  The findings above leave out what these tests would have found.")
    for note in run.run.get("notes") or ():
        lines += wrapped(f"note: {line(str(note))}", WIDTH, "  ", "    ")
    if cost := formatting.cost_line(run.run):
        lines += wrapped(f"cost: {cost}", WIDTH, "", "  ")
    if report is not None:
        lines.append(f"report: {line(str(report))}")
    return [commandless(text) for text in lines]


def _session_alarms(run: RunResults) -> list[str]:
    session = run.session
    places = session.get("alarms") or []
    if not places:
        return []
    about = f"{len(places)} finding{'s' * (len(places) != 1)} whose test{'s' * (len(places) != 1)} did not fail"
    head = f"the session fails at fairness_session_alpha {session.get('alpha')}: {about}, by Holm over all findings:"
    named = [run.maker_of(at).nodeid for at in places if isinstance(at, int)]
    return [*wrapped(head, WIDTH, "  ", "    "), *(clipped(f"    {line(name)}", WIDTH) for name in named)]


def _summary_of(finding: Finding, test: str, outcome: str) -> list[str]:
    marks = formatting.marks(finding, outcome)
    if adjusted := formatting.session_p(finding):
        marks.append(f"session p {adjusted}")
    sentence = line(finding.sentence).removeprefix(f"{finding.verdict}: ")
    marked = f" [{', '.join(marks)}]" if marks else ""
    head = f"{finding.verdict}{marked}: {sentence}"
    if finding.verdict is Verdict.PASS:
        tried = formatting.sensitivity_line(finding)
        return [clipped(f"  {head}", WIDTH), *([clipped(f"    {tried}", WIDTH)] if tried else [])]
    lines = wrapped(head, WIDTH, "  ", "    ")
    if finding.justification is not None:
        lines += wrapped(
            f"justified: {line(formatting.justification_line(finding.justification))}", WIDTH, "    ", "    "
        )
    if adjusted := formatting.session_line(finding):
        lines += wrapped(adjusted, WIDTH, "    ", "    ")
    return [*lines, *([clipped(f"    {line(test)}", WIDTH)] if test else [])]


def _table(table: Table, rows: Sequence[Sequence[str | Entry]], total: int, what: str) -> str:
    """*rows* of *total* under their titles, two spaces apart, within the width; columns of words give way first."""
    texts = [[line(_plain(row[at])) for row in (table.head, *rows)] for at in range(len(table.head))]
    widths = [max(map(columns_of, column)) for column in texts]
    of_words = [at for at, title in enumerate(table.head) if at == 0 or title in table.words]
    while sum(widths) + 2 * len(widths) > WIDTH and max(widths) > _NARROWEST:
        giving = [at for at in of_words if widths[at] > _NARROWEST]
        widths[max(giving or range(len(widths)), key=lambda at: widths[at])] -= 1
    lines = []
    for row in zip(*texts, strict=True):
        cells = (
            padded(clipped(text, width), width, left=not table.is_figure(at))
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append(("  " + "  ".join(cells)).rstrip())
    if len(rows) < total:
        lines.append(f"  … and {formatting.count(total - len(rows), f'more {what}')}")
    return "\n".join(lines)


def _plain(cell: str | Entry) -> str:
    if isinstance(cell, str):
        return cell
    reason = f"({cell.reason})" if cell.reason else ""
    return " ".join(filter(None, (cell.words, cell.verdict, reason)))


def _wrapped(text: str, indent: str = "") -> str:
    paragraphs = terminal(text).expandtabs(4).split("\n")
    return "\n".join(
        line for paragraph in paragraphs for line in wrapped(paragraph, WIDTH, indent, indent + "  " * bool(indent))
    )
