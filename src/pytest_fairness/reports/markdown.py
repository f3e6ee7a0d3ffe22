"""A run as Markdown for a pull request or a job's summary: whether it failed, what has changed, the
worst findings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_fairness import words
from pytest_fairness.model import Finding, Verdict
from pytest_fairness.reports import formatting
from pytest_fairness.reports.changes import Change, FindingChange, changes_between, counted
from pytest_fairness.reports.escaping import clipped, line, markdown, shortened
from pytest_fairness.reports.findings_json import ItemResult, RunResults
from pytest_fairness.reports.unjudged import nothing_judged, skip_reasons, unjudged_tests

#: The first line, by which a comment that is replaced from run to run is found again.
MARKER = "<!-- pytest-fairness -->"
#: What GitHub takes as one comment; GitLab takes more.
MOST_CHARACTERS = 65_536
MOST_ROWS = 30
_ADDRESS = re.compile(r"https?://[\w.:/~-]+", re.ASCII)
_SENTENCE = 300
#: Scopes of a baseline that are named.
_SCOPES = 5


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
    if compared is not None:
        changes = changes_between(compared, results)
    rows = MOST_ROWS
    while (
        len(text := _report(results, compared, changes, rows, report, job, printed))
        > MOST_CHARACTERS
        and rows
    ):
        rows //= 2
    return text


def _report(
    results: RunResults,
    compared: RunResults | None,
    changes: Sequence[FindingChange] | None,
    rows: int,
    report: str,
    job: str,
    printed: Sequence[str],
) -> str:
    parts = [MARKER, _head(results), *_banners(results, rows)]
    if compared is not None and changes is not None:
        parts += _changes(compared, changes, rows)
    parts += [*_findings(results, rows), *_failures(results, rows), *_unjudged(results, rows)]
    parts.append(_printed(printed, rows))
    parts.append(_foot(results, report, job))
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(results: RunResults) -> str:
    failed = len(results.failed)
    alarms = len(results.session.get("alarms") or ())
    reasons = []
    if failed:
        reasons = [f"{words.count(failed, 'test')} of {len(results.items):,} failed"]
    if results.missing:
        reasons += [f"{words.count(len(results.missing), 'test')} never finished"]
    if alarms:
        reasons += [f"{words.count(alarms, 'finding')} significant across the session"]
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in results.counts.items() if count)
    made = f"{words.count(len(results.findings), 'finding')}{': ' if counts else ''}{counts}"
    return f"## Fairness: {', '.join(reasons) or _not_failed(results)}\n\n**{made}**"


def _not_failed(results: RunResults) -> str:
    """Return what a session without a failure came to."""
    if not results.items:
        return "no test ran"
    if nothing := nothing_judged(results):
        return nothing
    undecided = results.counts[Verdict.INCONCLUSIVE]
    return "no test failed" + (
        f", {undecided:,} of {len(results.findings):,} undecided" if undecided else ""
    )


def _banners(results: RunResults, rows: int) -> list[str]:
    whole = all(finding.simulated for finding in results.findings)
    which = "The replies of findings marked *simulated* come"
    if whole:
        which = "The replies come"
    said = [f"{which} from a **simulated** endpoint: no model was asked."] * results.simulated
    said += ["The replies come from a recorded run: no model was asked now."] * results.replayed
    said += [markdown(shortened(str(note), 500)) for note in results.run.get("notes") or ()][
        : rows + 1
    ]
    if results.missing:
        named = ", ".join(_code(nodeid) for nodeid in results.missing[:rows])
        more = len(results.missing) - rows
        said.append(f"Never finished: {named}{f' and {more:,} more' if more > 0 else ''}.")
    if said:
        return ["\n".join(f"> {line}  " for line in said)]
    return []


def _changes(compared: RunResults, changes: Sequence[FindingChange], rows: int) -> list[str]:
    head = (
        f"### Since run {markdown(shortened(str(compared.run.get('id')), 80))}: {counted(changes)}"
    )
    shown = [change for change in changes if change.change is not Change.SAME]
    lines = []
    for change in shown[:rows]:
        why = ""
        if change.why:
            why = f" ({markdown(shortened(change.why, 160))})"
        lines.append(
            f"- **{change.change}** {change.verdicts}{why} {_about(change.finding)} {_code(change.nodeid)}"
        )
    if len(shown) > rows:
        lines.append(f"- and {len(shown) - rows:,} more")
    return [head, "\n".join(lines)]


def _findings(results: RunResults, rows: int) -> list[str]:
    if not results.findings:
        return []
    order = sorted(
        range(len(results.findings)), key=lambda at: -results.findings[at].verdict.severity
    )
    lines = ["| verdict | what was found |", "|---|---|"]
    for at in order[:rows]:
        finding = results.findings[at]
        maker = results.maker_of(at)
        marks = ", ".join(formatting.marks(finding, maker.outcome))
        if finding.verdict is not Verdict.PASS:
            verdict = f"**{finding.verdict}**"
        else:
            verdict = str(finding.verdict)
        reason = ""
        if finding.reason:
            reason = f" ({finding.reason})"
        about = f"{verdict}{reason}{f'<br>{marks}' if marks else ''}"
        fallen = "".join(
            f"<br>• {markdown(shortened(line, 160))}"
            for line in formatting.regressions(finding)[:_SCOPES]
        )
        lines.append(
            f"| {about} | {_sentence(finding)}{fallen}<br>{_code(maker.nodeid or finding.test_id)} "
            "|"
        )
    left = [results.findings[at].verdict for at in order[rows:]]
    counts = ", ".join(
        f"{left.count(verdict):,} {verdict}" for verdict in results.counts if verdict in left
    )
    return [
        "\n".join(lines),
        f"… and {words.count(len(left), 'more finding')}: {counts}." if left else "",
    ]


def _failures(results: RunResults, rows: int) -> list[str]:
    """The failed tests that no finding explains."""
    unexplained = [item for item in results.failed if not item.findings]
    lines = [f"- {_code(item.nodeid)}: {_message(item)}" for item in unexplained[:rows]]
    if len(unexplained) > rows:
        lines.append(f"- and {len(unexplained) - rows:,} more")
    if unexplained:
        return ["### Tests that failed without a finding", "\n".join(lines)]
    return []


def _unjudged(results: RunResults, rows: int) -> list[str]:
    """The tests that concluded nothing; where nothing was judged, why tests were skipped, too."""
    tests = unjudged_tests(results)
    lines = [
        f"- {_code(item.nodeid)} {markdown(shortened(words, 200))}" for item, words in tests[:rows]
    ]
    if len(tests) > rows:
        lines.append(f"- and {len(tests) - rows:,} more")
    parts = []
    if tests:
        parts = ["### Tests that concluded nothing", "\n".join(lines)]
    reasons = skip_reasons(results)
    if nothing_judged(results) and reasons:
        skipped = [
            f"- {words.count(number, 'test')}: {markdown(shortened(why, 300))}"
            for why, number in reasons[:rows]
        ]
        parts += ["### Why tests were skipped", "\n".join(skipped)]
    return parts


def _printed(lines: Sequence[str], rows: int) -> str:
    """*lines* as they are: indented, no line can end the block that it stands in."""
    shown = [f"    {clipped(line(text), 160)}".rstrip() for text in lines[: 4 * rows]]
    more = []
    if len(lines) > len(shown):
        more = [f"    … and {len(lines) - len(shown):,} more lines"]
    return "\n".join([*shown, *more]).strip("\n")


def _foot(results: RunResults, report: str, job: str) -> str:
    run = results.run
    trials = (run.get("trials") or {}).get("total") or 0
    facts = [
        f"run {markdown(shortened(str(run.get('id')), 80))}",
        words.count(trials, "trial"),
    ]
    facts += [
        markdown(shortened(", ".join(map(str, run.get("endpoints") or ())), 300)),
        markdown(formatting.cost_line(run)),
    ]
    # An address that is none of a forge would be a link of somebody else's making.
    where = ""
    if _ADDRESS.fullmatch(job):
        where = f" of [this job]({job})"
    return f"{' · '.join(filter(None, facts))}<br>Report: {_code(report)}{where}"


def _about(finding: Finding) -> str:
    by = ""
    if finding.protected_class:
        by = f" by {shortened(finding.protected_class, 60)}"
    of = ""
    if finding.model_endpoint:
        of = f", {shortened(finding.model_endpoint, 60)}"
    return markdown(f"on {shortened(finding.outcome, 60)}{by}{of}")


def _sentence(finding: Finding) -> str:
    return markdown(
        shortened(formatting.without_verdict(finding.sentence, finding.verdict), _SENTENCE)
    )


def _message(item: ItemResult) -> str:
    return markdown(shortened(next(iter(item.message.splitlines()), ""), _SENTENCE))


def _code(text: str) -> str:
    return f"<code>{markdown(shortened(text, 200))}</code>"
