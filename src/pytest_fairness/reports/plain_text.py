"""A finding as text: a sentence, a table of the groups, one of the pairs; and the summary of a
session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness import words
from pytest_fairness.baselines import mitigations
from pytest_fairness.model import ALARMS, Finding, Verdict
from pytest_fairness.reports import formatting
from pytest_fairness.reports.escaping import (
    clipped,
    columns_of,
    commandless,
    line,
    terminal,
    wrapped,
)
from pytest_fairness.reports.finding_sections import group_table, pair_table
from pytest_fairness.reports.findings_json import BREAKDOWN, NONE, ItemResult, RunResults
from pytest_fairness.reports.sections import Entry, Table
from pytest_fairness.reports.unjudged import nothing_judged, skip_reasons, unjudged_tests

if TYPE_CHECKING:
    from pytest_fairness.reports.judged_tables import JudgedTable

WIDTH = 100
MOST_PAIRS = 12
MOST_GROUPS = 24
MOST_MISSING = 10
#: Of findings that fail no test, each verdict; and from how many findings on the summary counts
#: them by class and tier.
MOST_QUIET = 20
MANY = 30
#: Lines of a reply in a failing test's message.
MOST_LINES = 4
_ALIKE = 80
_NARROWEST = 10
_SIMULATED = "simulated: the figures come from a simulated endpoint; no model was asked"
_REPLAYED = "replayed: the replies come from a recorded run; no model was asked now"


def finding_text(finding: Finding, judged: JudgedTable | None = None) -> str:
    """Sentence, groups, pairs, two matched replies of the *judged*, family and notes, in at most
    100 columns, safe for a terminal.
    """
    parts = [_wrapped(finding.sentence)]
    parts.append("\n".join([_SIMULATED] * finding.simulated + [_REPLAYED] * finding.replayed))
    if finding.group_results:
        groups = group_table(finding, most_labels=5)
        parts.append(_table(groups, groups.rows[:MOST_GROUPS], len(finding.group_results), "group"))
    if finding.pairs:
        pairs = pair_table(finding, formatting.widest_pairs(finding.pairs, MOST_PAIRS))
        parts.append(_table(pairs, pairs.rows, len(finding.pairs), "pair"))
    if judged is not None and (lines := _matched(finding, judged)):
        parts.append("\n".join(lines))
    closing = [formatting.family_line(finding), *(f"note: {note}" for note in finding.notes)]
    beside = {formatting.PLAIN_RECIPE: formatting.literal(finding)}
    beside["justified"] = formatting.justification_line(finding)
    closing += [f"{about}: {text}" for about, text in beside.items() if text]
    parts.append("\n".join(_wrapped(text, "  ") for text in closing if text))
    # Once more as a whole: wrapped lines begin where no text did.
    return commandless("\n\n".join(part for part in parts if part))


def _matched(finding: Finding, judged: JudgedTable) -> list[str]:
    """The first two replies that the report shows side by side, a few lines each; none where there
    are none.
    """
    from pytest_fairness.reports.judged_tables import matched_replies

    matched = matched_replies(judged, finding)
    if matched is None:
        return []
    matches, (first, *_) = matched
    called = first.about[:1].lower() + first.about[1:]
    about = f"Of {words.count(len(matches.contrast), 'matched pair')}: {called} ([words] differ)"
    lines = wrapped(line(about), WIDTH, "  ", "  ")
    for matched_reply in first.replies:
        lines += wrapped(line(f"{matched_reply.who}, {matched_reply.score}"), WIDTH, "    ", "    ")
        text = "".join(
            f"[{words}]" if kind == "differs" else _middle_out(words)
            for words, kind in matched_reply.words
        )
        reply = wrapped(terminal(text), WIDTH, "      ", "      ")
        lines += [*reply[:MOST_LINES], "      …"] if len(reply) > MOST_LINES else reply
    return lines


def _middle_out(words: str) -> str:
    """Return what two replies have in common, where that is long only as much as shows where one
    is.
    """
    if len(words) <= _ALIKE:
        return words
    return f"{words[: _ALIKE // 2]} … {words[-_ALIKE // 2 :]}"


def summary_lines(
    run: RunResults, report: Path | str | None = None, printed: Iterable[str] = ()
) -> list[str]:
    """The end of a session: counts by verdict, each sentence, worst first, what suites have
    *printed*, and the report's path.
    """
    lines = [_headline(run), *_breakdown(run)]
    for verdict in run.counts:
        lines += _summaries(run, verdict)
    lines += _unjudged(run)
    lines += _never_finished(run)
    lines += _session_alarms(run)
    if entries := run.mitigations:
        without = len(mitigations.unanswered(run.named, entries))
        answerless = ""
        if without:
            answerless = f"; {words.count(without, 'FLAG or FAIL')} without one"
        lines.append(f"  mitigations: {mitigations.counted(entries)}{answerless}")
    if run.missing:
        lines.append("  The findings above leave out what these tests would have found.")
    lines += [line(text) for text in printed]
    for note in run.run.get("notes") or ():
        lines += wrapped(f"note: {line(str(note))}", WIDTH, "  ", "    ")
    if cost := formatting.cost_line(run.run):
        lines += wrapped(f"cost: {line(cost)}", WIDTH, "", "  ")
    if report is not None:
        lines.append(f"report: {line(str(report))}")
    if false_alarm := formatting.false_alarm_line(run.session):
        lines += wrapped(false_alarm, WIDTH, "", "  ")
    return [commandless(text) for text in lines]


def _headline(run: RunResults) -> str:
    """How many findings there are, of which verdict, and whether they are simulated or replayed."""
    head = f"fairness: {words.count(len(run.findings), 'finding')}"
    if counted := ", ".join(f"{count} {verdict}" for verdict, count in run.counts.items() if count):
        head += f": {counted}"
    if nothing := nothing_judged(run):
        head += f", {nothing}"
    marks = []
    if run.simulated:
        marks.append("simulated")
    if run.replayed:
        marks.append("replayed")
    if marks:
        head += f" ({', '.join(marks)})"
    return head


def _summaries(run: RunResults, verdict: Verdict) -> list[str]:
    """The sentences of one *verdict*: of an alarm all, else the first few."""
    several = len({finding.model_endpoint for finding in run.findings} - {None}) > 1
    having = [index for index, finding in enumerate(run.findings) if finding.verdict is verdict]
    shown = having
    if verdict not in ALARMS:
        shown = having[:MOST_QUIET]
    lines: list[str] = []
    for index in shown:
        lines += _summary_of(run.findings[index], run.maker_of(index), several=several)
    if more := len(having) - len(shown):
        lines.append(f"  … and {more} more {verdict}, in the report")
    return lines


def _never_finished(run: RunResults) -> list[str]:
    lines = [
        clipped(f"  never finished: {line(nodeid)}", WIDTH) for nodeid in run.missing[:MOST_MISSING]
    ]
    if len(run.missing) > MOST_MISSING:
        lines.append(f"  … and {len(run.missing) - MOST_MISSING} more")
    return lines


def _session_alarms(run: RunResults) -> list[str]:
    """The tests that fail by the level of the session alone."""
    places = run.session.get("alarms")
    if not places:
        return []
    tests = "test"
    if len(places) > 1:
        tests = "tests"
    about = f"{words.count(len(places), 'finding')} whose {tests} did not fail"
    why = (
        f"the session fails at fairness_session_alpha {run.session.get('alpha')}: {about}, by Holm "
        "over all findings:"
    )
    lines = wrapped(why, WIDTH, "  ", "    ")
    for place in places:
        if isinstance(place, int):
            lines.append(clipped(f"    {line(run.maker_of(place).nodeid)}", WIDTH))
    return lines


def _unjudged(run: RunResults) -> list[str]:
    """The tests that concluded nothing; where nothing was judged, why tests were skipped, too."""
    lines = []
    tests = unjudged_tests(run)
    for item, remark in tests[:MOST_MISSING]:
        lines += wrapped(line(f"{item.nodeid} {remark}"), WIDTH, "  ", "    ")
    if len(tests) > MOST_MISSING:
        lines.append(f"  … and {len(tests) - MOST_MISSING} more")
    for why, number in skip_reasons(run)[:MOST_MISSING] if nothing_judged(run) else ():
        lines += wrapped(line(f"{words.count(number, 'test')} skipped: {why}"), WIDTH, "  ", "    ")
    return lines


def _breakdown(run: RunResults) -> list[str]:
    """A line for each endpoint where there are several; of many findings, for each module, class
    and tier, too.
    """
    by: Any = run.summary["by"]
    lines = []
    for name in BREAKDOWN:
        of = {key: counts for key, counts in by[name].items() if key != NONE}
        if len(of) < 2 or (name != "model_endpoint" and len(run.findings) < MANY):
            continue
        for key, counts in of.items():
            words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
            lines.append(clipped(f"  {'tier ' * (name == 'tier')}{line(key)}: {words}", WIDTH))
    return lines


def _summary_of(finding: Finding, maker: ItemResult, *, several: bool) -> list[str]:
    """The lines of *finding*, which name the endpoint where the run judges *several*."""
    marks = list(formatting.marks(finding, maker.outcome))
    judged = ""
    if maker.judged_in:
        judged = f"{line(marks.pop(0))}: "
    if several and finding.model_endpoint:
        marks = list(dict.fromkeys([line(finding.model_endpoint), *marks]))
    marked = ""
    if marks:
        marked = f" [{', '.join(marks)}]"
    head = (
        f"{judged}{finding.verdict}{marked}: "
        f"{line(finding.sentence).removeprefix(f'{finding.verdict}: ')}"
    )
    if finding.verdict is Verdict.PASS:
        return _summary_of_pass(finding, maker, f"{judged}{finding.verdict}{marked}")
    justified = formatting.justification_line(finding)
    lines = wrapped(head, WIDTH, "  ", "    ")
    beside = []
    if justified:
        beside = [f"justified: {line(justified)}"]
    beside += filter(None, [*formatting.reasons(finding), formatting.session_line(finding)])
    for text in beside:
        lines += wrapped(line(text), WIDTH, "    ", "    ")
    test = maker.nodeid or finding.test_id
    return [*lines, *([clipped(f"    {line(test)}", WIDTH)] if test else [])]


def _summary_of_pass(finding: Finding, maker: ItemResult, head: str) -> list[str]:
    """Return the line of a PASS after its *head*: outcome by class, the pair that is furthest
    apart, the test.
    """
    test = line(maker.nodeid or finding.test_id)
    if not finding.pairs:
        # What a suite found by itself has no effect: its sentence says what it looked at.
        sentence = line(formatting.without_verdict(finding.sentence, finding.verdict))
        lines = wrapped(f"{head}: {sentence}", WIDTH, "  ", "    ")
        if test:
            return [*lines, f"    {test}"]
        return lines
    parts = [
        f"{head}: {line(formatting.headline(finding))}",
        formatting.effect_words(finding),
        test,
    ]
    lines = wrapped(", ".join(filter(None, parts)), WIDTH, "  ", "    ")
    if tried := formatting.sensitivity_line(finding):
        lines += wrapped(tried, WIDTH, "    ", "    ")
    return lines


def table_text(table: Table, width: int = WIDTH) -> str:
    """*table* without its caption, for a terminal."""
    return commandless("\n".join(table_lines(table, table.rows, width)))


def _table(table: Table, rows: Sequence[Sequence[str | Entry]], total: int, what: str) -> str:
    lines = table_lines(table, rows)
    if len(rows) < total:
        lines.append(f"  … and {words.count(total - len(rows), f'more {what}')}")
    return "\n".join(lines)


def table_lines(
    table: Table, rows: Sequence[Sequence[str | Entry]], width: int = WIDTH
) -> list[str]:
    """*rows* of a *table* under its titles, two spaces apart, within the *width*; columns of words
    give way first.
    """
    texts = [
        [line(_plain(row[at])) for row in (table.head, *rows)] for at in range(len(table.head))
    ]
    widths = [max(map(columns_of, column)) for column in texts]
    of_words = [at for at, title in enumerate(table.head) if at == 0 or title in table.words]
    while sum(widths) + 2 * len(widths) > width and max(widths) > _NARROWEST:
        giving = [at for at in of_words if widths[at] > _NARROWEST]
        widths[max(giving or range(len(widths)), key=lambda at: widths[at])] -= 1
    lines = []
    for row in zip(*texts, strict=True):
        shown = ""
        for at, (text, columns) in enumerate(zip(row, widths, strict=True)):
            cell = clipped(text, columns)
            space = " " * (columns - columns_of(cell))
            shown += "  " + (space + cell if table.is_figure(at) else cell + space)
        lines.append(shown.rstrip())
    return lines


def _plain(cell: str | Entry) -> str:
    if isinstance(cell, str):
        return cell
    return " ".join(
        filter(None, (cell.words, cell.verdict, f"({cell.reason})" if cell.reason else ""))
    )


def _wrapped(text: str, indent: str = "") -> str:
    paragraphs = terminal(text).expandtabs(4).split("\n")
    return "\n".join(
        line
        for paragraph in paragraphs
        for line in wrapped(paragraph, WIDTH, indent, indent + "  " * bool(indent))
    )
