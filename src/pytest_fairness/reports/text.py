"""A finding as text: a sentence, a table of the groups, one of the pairs; and the summary of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_fairness.analysis import false_alarms
from pytest_fairness.model import Finding, GroupResult, Verdict
from pytest_fairness.reports import figures
from pytest_fairness.reports.columns import clipped, columns_of, padded, wrapped
from pytest_fairness.reports.escaping import commandless, line, terminal
from pytest_fairness.reports.results import RunResults

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
    provenance = [text for text, said in ((_SIMULATED, finding.simulated), (_REPLAYED, finding.replayed)) if said]
    if provenance:
        parts.append("\n".join(provenance))
    if finding.group_results:
        parts.append(_groups(finding))
    if finding.pairs:
        parts.append(_pairs(finding))
    closing = [figures.family_line(finding), *(f"note: {note}" for note in finding.notes)]
    if literal := figures.literal(finding):
        closing.append(f"by the literal specification: {literal}")
    if finding.justification is not None:
        closing.append(f"justified: {figures.justification_line(finding.justification)}")
    parts.append("\n".join(_wrapped(text, "  ") for text in closing if text))
    # Once more as a whole: wrapped lines begin where no text did.
    return commandless("\n\n".join(part for part in parts if part))


def summary_lines(run: RunResults, report: Path | str | None = None) -> list[str]:
    """The end of a session: counts by verdict, each sentence, worst first, and the report's path."""
    counted = ", ".join(f"{count} {verdict}" for verdict, count in run.counts.items() if count)
    total = len(run.findings)
    told = f"fairness: {total} finding{'s' * (total != 1)}{': ' + counted if counted else ''}"
    marks = [mark for mark, applies in (("simulated", run.simulated), ("replayed", run.replayed)) if applies]
    lines = [told + (f" ({', '.join(marks)})" if marks else "")]
    for verdict in run.counts:
        for index, finding in enumerate(run.findings):
            if finding.verdict is verdict:
                lines += _summary_of(finding, run.nodeid_of(index) or finding.test_id, run.outcome_of(index))
    lines += [clipped(f"  never finished: {line(nodeid)}", WIDTH) for nodeid in run.missing[:MOST_MISSING]]
    if len(run.missing) > MOST_MISSING:
        lines.append(f"  … and {len(run.missing) - MOST_MISSING} more")
    lines += _session_alarms(run)
    lines += _false_alarm(run)
    if run.missing:
        lines.append("  The findings above leave out what these tests would have found.")
    for note in run.run.get("notes") or ():
        lines += wrapped(f"note: {line(str(note))}", WIDTH, "  ", "    ")
    if cost := figures.cost_line(run.run):
        lines += wrapped(f"cost: {cost}", WIDTH, "", "  ")
    if report is not None:
        lines.append(f"report: {line(str(report))}")
    return [commandless(text) for text in lines]


def _false_alarm(run: RunResults) -> list[str]:
    share = run.session.get("false_alarm")
    if not isinstance(share, (int, float)):
        return []
    return [f"  A fair system would have turned this session red with a chance of at most {false_alarms.words(share)}."]


def _session_alarms(run: RunResults) -> list[str]:
    session = run.session
    places = session.get("alarms") or []
    if not places:
        return []
    about = f"{len(places)} finding{'s' * (len(places) != 1)} whose test{'s' * (len(places) != 1)} did not fail"
    head = f"the session fails at fairness_session_alpha {session.get('alpha')}: {about}, by Holm over all findings:"
    named = [run.nodeid_of(at) for at in places if isinstance(at, int)]
    return [*wrapped(head, WIDTH, "  ", "    "), *(clipped(f"    {line(name)}", WIDTH) for name in named)]


def _summary_of(finding: Finding, test: str, outcome: str) -> list[str]:
    marks = figures.marks(finding, outcome)
    if adjusted := figures.session_p(finding):
        marks.append(f"session p {adjusted}")
    sentence = line(finding.sentence).removeprefix(f"{finding.verdict}: ")
    marked = f" [{', '.join(marks)}]" if marks else ""
    head = f"{finding.verdict}{marked}: {sentence}"
    if finding.verdict is Verdict.PASS:
        tried = figures.sensitivity_line(finding)
        return [clipped(f"  {head}", WIDTH), *([clipped(f"    {tried}", WIDTH)] if tried else [])]
    lines = wrapped(head, WIDTH, "  ", "    ")
    if finding.justification is not None:
        lines += wrapped(f"justified: {line(figures.justification_line(finding.justification))}", WIDTH, "    ", "    ")
    if adjusted := figures.session_line(finding):
        lines += wrapped(adjusted, WIDTH, "    ", "    ")
    return [*lines, *([clipped(f"    {line(test)}", WIDTH)] if test else [])]


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
        _Column(finding.protected_class or "group", [group.group for group in shown], True, True),
        _Column("n", [str(group.n) for group in shown]),
    ]
    if finding.cluster is not None:
        columns.append(_Column(figures.plural(finding.cluster), [str(group.clusters) for group in shown]))
    if any(group.value is not None for group in shown):
        columns += [
            _Column(figures.value_title(finding), [figures.value(group.value, finding) for group in shown]),
            _Column("95 % interval", [figures.interval(group.low, group.high, finding) for group in shown]),
        ]
    for label in figures.categories(finding)[:5]:
        columns.append(_Column(label, [figures.percent(group.shares.get(label)) for group in shown], False, True))
    columns.append(_Column("refused", [figures.refused(group) for group in shown]))
    if figures.unanswered(finding):
        columns.append(_Column("no answer", [figures.no_answer(group) for group in shown]))
    return _table(columns) + _more(len(finding.group_results) - len(shown), "group")


def _pairs(finding: Finding) -> str:
    shown = figures.most_telling(finding.pairs, MOST_PAIRS)
    if finding.assertion == "baseline":
        columns = [_Column("scope", [pair.metric for pair in shown], True, True)]
    else:
        columns = [_Column("pair", [f"{pair.group_1} – {pair.group_2}" for pair in shown], True, True)]
        if len({pair.metric for pair in finding.pairs}) > 1:
            columns.append(_Column("on", [pair.metric for pair in shown], True, True))
    columns += [_Column(title, [cell(pair) for pair in shown]) for title, cell in figures.pair_columns(finding)]
    columns.append(_Column("verdict", [figures.verdict_words(pair) for pair in shown], True))
    return _table(columns) + _more(len(finding.pairs) - len(shown), "pair")


def _more(count: int, what: str) -> str:
    return f"\n  … and {count} more {what}{'s' * (count != 1)}" if count > 0 else ""


def _table(columns: Sequence[_Column]) -> str:
    """Rows under their titles, two spaces apart, within the width; columns that may be cut give way first."""
    shown = [[line(text) for text in (column.title, *column.cells)] for column in columns]
    widths = [max(map(columns_of, texts)) for texts in shown]
    while sum(widths) + 2 * len(widths) > WIDTH and max(widths) > _NARROWEST:
        giving = [at for at, column in enumerate(columns) if column.shrinks and widths[at] > _NARROWEST]
        widths[max(giving or range(len(widths)), key=lambda at: widths[at])] -= 1
    rows = []
    for row in zip(*shown, strict=True):
        cells = [
            padded(clipped(text, width), width, left=column.left)
            for text, width, column in zip(row, widths, columns, strict=True)
        ]
        rows.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(rows)


def _wrapped(text: str, indent: str = "") -> str:
    paragraphs = terminal(text).expandtabs(4).split("\n")
    return "\n".join(
        line for paragraph in paragraphs for line in wrapped(paragraph, WIDTH, indent, indent + "  " * bool(indent))
    )
