"""A finding as text: a sentence, a table of the groups, one of the pairs; and the summary of a session."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_fairness.model import Finding, GroupResult, PairResult, Verdict
from pytest_fairness.reports import figures
from pytest_fairness.reports.escaping import line, terminal
from pytest_fairness.reports.results import RunResults

WIDTH = 100
MOST_PAIRS = 12
MOST_GROUPS = 24
_SIMULATED = "simulated: the figures come from a simulated endpoint; no model was asked"
_REPLAYED = "replayed: the replies come from a recorded run; no model was asked now"


def finding_text(finding: Finding) -> str:
    """Sentence, groups, pairs, family and notes, in at most 100 columns, safe for a terminal."""
    parts = [_wrapped(finding.sentence)]
    provenance = [
        text for text, said in ((_SIMULATED, finding.simulated), (_REPLAYED, finding.replayed)) if said
    ]
    if provenance:
        parts.append("\n".join(provenance))
    if finding.group_results:
        parts.append(_groups(finding))
    if finding.pairs:
        parts.append(_pairs(finding))
    closing = [figures.family_line(finding), *(f"note: {note}" for note in finding.notes)]
    if finding.spec_verdict is not finding.verdict:
        closing.append(f"by the literal specification: {finding.spec_verdict}")
    if finding.justification is not None:
        closing.append(f"justified: {figures.justification_line(finding.justification)}")
    parts.append("\n".join(_wrapped(text, "  ") for text in closing if text))
    return "\n\n".join(part for part in parts if part)


def summary_lines(run: RunResults, report: Path | str | None = None) -> list[str]:
    """The end of a session: counts by verdict, each sentence, worst first, and the report's path."""
    counted = ", ".join(f"{count} {verdict}" for verdict, count in run.counts.items() if count)
    total = len(run.findings)
    told = f"fairness: {total} finding{'s' * (total != 1)}{': ' + counted if counted else ''}"
    lines = [told + (" (simulated)" if run.simulated else " (replayed)" if run.replayed else "")]
    for verdict in run.counts:
        for finding in run.findings:
            if finding.verdict is verdict:
                lines += _summary_of(finding)
    lines += [_clipped(f"  never finished: {line(nodeid)}", WIDTH) for nodeid in run.missing]
    if run.missing:
        lines.append("  The findings above leave out what these tests would have found.")
    if report is not None:
        lines.append(f"report: {line(str(report))}")
    return lines


def _summary_of(finding: Finding) -> list[str]:
    sentence = line(finding.sentence)
    prefix = f"{finding.verdict}: "
    head = f"  {sentence if sentence.startswith(prefix) else prefix + sentence}"
    marks = [
        word for word, said in (("simulated", finding.simulated), ("replayed", finding.replayed)) if said
    ]
    if finding.justification is not None:
        marks.append("justified")
    if marks:
        head += f" [{', '.join(marks)}]"
    if finding.verdict is Verdict.PASS:
        return [_clipped(head, WIDTH)]
    lines = textwrap.wrap(head, WIDTH, subsequent_indent="    ", break_long_words=True)
    return [*lines, _clipped(f"    {line(finding.test_id)}", WIDTH)] if finding.test_id else lines


# ---------------------------------------------------------------- tables


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    cells: Sequence[str]
    left: bool = False
    shrinks: bool = False


def _groups(finding: Finding) -> str:
    shown: Sequence[GroupResult] = finding.group_results[:MOST_GROUPS]
    columns = [
        _Column(line(finding.protected_class) or "group", [line(group.group) for group in shown], True, True),
        _Column("n", [str(group.n) for group in shown]),
    ]
    if finding.cluster is not None:
        columns.append(
            _Column(line(figures.plural(finding.cluster)), [str(group.clusters) for group in shown])
        )
    if any(group.value is not None for group in shown):
        columns += [
            _Column(figures.value_title(finding), [figures.value(group.value, finding) for group in shown]),
            _Column("95 % interval", [figures.interval(group.low, group.high, finding) for group in shown]),
        ]
    for label in figures.categories(finding)[:5]:
        columns.append(
            _Column(line(label), [figures.percent(group.shares.get(label)) for group in shown], False, True)
        )
    columns.append(_Column("refused", [figures.refused(group) for group in shown]))
    return _table(columns) + _more(len(finding.group_results) - len(shown), "group")


def _pairs(finding: Finding) -> str:
    shown = figures.most_telling(finding.pairs, MOST_PAIRS)
    metrics = {pair.metric for pair in finding.pairs}
    columns = [_Column("pair", [_pair_name(pair) for pair in shown], True, True)]
    if len(metrics) > 1:
        columns.append(_Column("on", [line(pair.metric) for pair in shown], True, True))
    columns += [
        _Column(title, [cell(pair) for pair in shown]) for title, cell in figures.pair_columns(finding)
    ]
    columns.append(_Column("verdict", [figures.verdict_words(pair) for pair in shown], True))
    return _table(columns) + _more(len(finding.pairs) - len(shown), "pair")


def _pair_name(pair: PairResult) -> str:
    return f"{line(pair.group_1)} – {line(pair.group_2)}"


def _more(count: int, what: str) -> str:
    return f"\n  … and {count} more {what}{'s' * (count != 1)}" if count > 0 else ""


def _table(columns: Sequence[_Column]) -> str:
    """Rows under their titles, two spaces apart, within the width; the columns that may be cut give way."""
    widths = [max(map(columns_of, (column.title, *column.cells))) for column in columns]
    while sum(widths) + 2 * len(widths) > WIDTH:
        widest = max((at for at, column in enumerate(columns) if column.shrinks), key=lambda at: widths[at])
        if widths[widest] <= 6:
            break
        widths[widest] -= 1
    rows = [[column.title for column in columns], *zip(*(column.cells for column in columns), strict=True)]
    lines = []
    for row in rows:
        cells = [
            _padded(_clipped(cell, width), width, column.left)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def columns_of(text: str) -> int:
    """How many columns of a terminal *text* takes: two for wide characters, none for combining ones."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def _clipped(text: str, width: int) -> str:
    if columns_of(text) <= width:
        return text
    kept = text
    while kept and columns_of(kept) > width - 1:
        kept = kept[: min(len(kept) - 1, width - 1)]
    return kept + "…"


def _padded(text: str, width: int, left: bool) -> str:
    space = " " * (width - columns_of(text))
    return text + space if left else space + text


def _wrapped(text: str, indent: str = "") -> str:
    lines: list[str] = []
    for paragraph in terminal(text).expandtabs(4).splitlines() or [""]:
        lines += textwrap.wrap(
            paragraph, WIDTH, initial_indent=indent, subsequent_indent=indent + "  " * bool(indent)
        )
    return "\n".join(lines)
