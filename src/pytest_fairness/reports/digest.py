"""A run in short, as pages of parts: for a pull request, for a channel, for people who sign, and for
the end of a session.

Each is a selection of what the report holds, and says which; a sink lays it out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pytest_fairness import words
from pytest_fairness.analysis.controls import EVIDENCE_IS
from pytest_fairness.baselines import mitigations
from pytest_fairness.model import ALARMS, Finding, Verdict
from pytest_fairness.reports import formatting
from pytest_fairness.reports.audit_sections import (
    justifications_section,
    mitigations_section,
)
from pytest_fairness.reports.changes import REGRESSIONS, Change, FindingChange, counted
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.findings_json import BREAKDOWN, NONE, RunResults, sources_of
from pytest_fairness.reports.heat_maps import MANY, verdict_words_by_class, verdicts_by_class
from pytest_fairness.reports.overview import (
    by_verdict,
    counted_findings,
    failures_without_finding,
    verdict_on_session,
)
from pytest_fairness.reports.run_sections import (
    chosen_facts,
    method_section,
    records_section,
    sign_off_section,
)
from pytest_fairness.reports.sections import (
    Banner,
    Columns,
    Counts,
    Entry,
    Facts,
    Notes,
    Page,
    Part,
    Printed,
    Section,
    Statements,
    Table,
    facts,
    of_columns,
    table,
)
from pytest_fairness.reports.unjudged import nothing_judged, skip_reasons, unjudged_tests

T = TypeVar("T")
#: So many findings, tests or entries stand in a page; the others are counted.
MOST_OF_A_PULL_REQUEST, MOST_OF_A_CHANNEL, MOST_SIGNED = 30, 20, 20
#: Tests that never finished and that concluded nothing, at the end of a session.
MOST_MISSING = 10
#: Of findings that fail no test, each verdict.
MOST_QUIET = 20
#: Findings of each verdict at the end of a session that shows its verdicts by class and test.
_MOST_BESIDE = {Verdict.FAIL: 10, Verdict.FLAG: 5, Verdict.INCONCLUSIVE: 3, Verdict.PASS: 3}
#: Characters of a sentence or a message, and of the name of a test.
_SENTENCE, _NAME = 500, 200
#: Scopes of a baseline that are named, and what the gate calls the one of all personas.
_MOST_SCOPES, _OVERALL = 5, "overall"
_ELSEWHERE = "in report.html and findings.json"


def fitting(make: Callable[[int], T], most: int, fits: Callable[[T], bool]) -> T:
    """Return what *make* makes of as many rows as fit, at most *most*."""
    made = make(most)
    while most and not fits(made):
        most = most * 3 // 4
        made = make(most)
    return made


# ---------------------------------------------------------------- parts


def statement(results: RunResults, at: int, *marks: str) -> Section:
    """Return the finding at that place as a statement: verdict, *marks*, sentence, the scopes of a
    baseline that have fallen, and the test.
    """
    finding = results.findings[at]
    fallen = [shortened(line, _NAME) for line in formatting.regressions(finding)[:_MOST_SCOPES]]
    parts: tuple[Part, ...] = ()
    if fallen:
        parts = (Notes(items=tuple(fallen)),)
    return Section(
        heading="",
        id=results.ids[at],
        about=shortened(results.label_of(at), _NAME),
        verdict=finding.verdict,
        reason=finding.reason,
        sentence=shortened(
            formatting.without_verdict(finding.sentence, finding.verdict), _SENTENCE
        ),
        marks=marks,
        parts=parts,
    )


def _worst_findings(results: RunResults, most: int) -> Statements:
    """The findings, the worst first, at most so many; the others are counted."""
    shown = [
        statement(
            results, at, *formatting.marks(results.findings[at], results.maker_of(at).outcome)
        )
        for at in results.order[:most]
    ]
    rest = [results.findings[at].verdict for at in results.order[most:]]
    more = ""
    if rest:
        counts = {verdict: rest.count(verdict) for verdict in results.counts}
        more = f"… and {words.count(len(rest), 'more finding')}: {by_verdict(counts)}."
    return Statements(items=tuple(shown), more=more)


def _first_rows(
    caption: str, items: Sequence[Any], columns: Columns, most: int, where: str = ""
) -> Table:
    """The first *most* of *items* as a table, and how many others there are, and *where*."""
    shown = table(caption, items[:most], columns, words=tuple(columns), kind="findings")
    more = words.beyond(len(items), most)
    if more:
        return msgspec.structs.replace(shown, more=f"{more}{where}")
    return shown


def _failure_sections(results: RunResults, most: int, where: str = "") -> Iterator[Section]:
    """Tests that failed without a finding, and those that concluded nothing; where nothing was
    judged, why tests were skipped, too.
    """
    columns: Columns = {
        "Why": lambda failure: shortened(failure.why, _NAME),
        "Test": lambda failure: shortened(failure.nodeid, _NAME),
        "Message": lambda failure: shortened(_first_line(failure.message), _SENTENCE),
    }
    if failures := failures_without_finding(results):
        shown = _first_rows("", failures, columns, most, where)
        yield Section(heading="Tests that failed without a finding", parts=(shown,))
    columns = {
        "Test": lambda row: shortened(row[0].nodeid, _NAME),
        "What": lambda row: shortened(row[1], _NAME),
    }
    if unjudged := unjudged_tests(results):
        shown = _first_rows("", unjudged, columns, most, where)
        yield Section(heading="Tests that concluded nothing", parts=(shown,))
    columns = {
        "Why": lambda row: shortened(row[0], _SENTENCE),
        "How many": lambda row: words.count(row[1], "test"),
    }
    reasons = skip_reasons(results)
    if reasons and nothing_judged(results):
        shown = _first_rows("", reasons, columns, most, where)
        yield Section(heading="Why tests were skipped", parts=(shown,))


def _first_line(text: str) -> str:
    return next(iter(text.splitlines()), "")


def _chips(results: RunResults) -> tuple[str, ...]:
    """Return the run, its trials, whom it asked, and what that cost, each in a few words."""
    chips = [
        f"run {results.run.get('id')}",
        words.count(results.trials, "trial"),
        words.led("endpoint ", ", ".join(results.endpoints)),
        formatting.cost_line(results.run),
    ]
    return tuple(shortened(chip, _SENTENCE) for chip in chips if chip)


# ---------------------------------------------------------------- for a pull request


def pull_request_page(
    results: RunResults,
    changes: Sequence[FindingChange] | None,
    since: str,
    printed: Sequence[str] = (),
    most: int = MOST_OF_A_PULL_REQUEST,
) -> Page:
    """The page for a pull request: whether the run failed, its *changes* *since* another run, the
    worst findings, what else went wrong, and the lines that suites have *printed*: at most *most*
    of each.
    """
    sections = []
    if changes is not None:
        sections.append(_changes_section(changes, since, most))
    by_class = verdicts_by_class(results)
    if by_class is not None:
        sections.append(Section(heading="", parts=(by_class,)))
    if results.findings:
        sections.append(Section(heading="", parts=(_worst_findings(results, most),)))
    sections += _failure_sections(results, most)
    if printed:
        sections.append(Section(heading="", parts=(_printed(printed, 4 * most),)))
    sections.append(Section(heading="", chips=_chips(results)))
    return Page(
        name="pull request",
        title=f"Fairness: {_outcome(results)}",
        lead=counted_findings(results),
        sections=tuple(sections),
        simulated=results.simulated,
        replayed=results.replayed,
        banners=tuple(_remarks(results, most)),
    )


def _outcome(results: RunResults) -> str:
    """Return whether tests failed, and how many, or what a session without a failure came to."""
    reasons = []
    if failed := len(results.failed):
        reasons.append(f"{words.count(failed, 'test')} of {len(results.items):,} failed")
    if results.missing:
        reasons.append(f"{words.count(len(results.missing), 'test')} never finished")
    undecided = results.counts[Verdict.INCONCLUSIVE]
    if reasons and undecided:
        reasons.append(f"{undecided:,} of {len(results.findings):,} undecided")
    return ", ".join(reasons) or _not_failed(results)


def _not_failed(results: RunResults) -> str:
    if not results.items:
        return "no test ran"
    if nothing := nothing_judged(results):
        return nothing
    undecided = results.counts[Verdict.INCONCLUSIVE]
    if undecided:
        return f"no test failed, {undecided:,} of {len(results.findings):,} undecided"
    return "no test failed"


def _remarks(results: RunResults, most: int) -> Iterator[Banner]:
    """Yield the notes on the run, and the tests that never finished."""
    for note in results.notes[: most + 1]:
        yield Banner(kind="note", about="", words=shortened(str(note), _SENTENCE))
    if results.missing:
        names = [shortened(nodeid, _NAME) for nodeid in results.missing[:most]]
        if more := len(results.missing) - len(names):
            names.append(f"{more:,} more")
        yield Banner(kind="missing", about="Never finished:", words=f"{', '.join(names)}.")


def _changes_section(changes: Sequence[FindingChange], since: str, most: int) -> Section:
    columns: Columns = {
        "Change": lambda change: str(change.change),
        "Verdict": lambda change: change.verdicts,
        "Finding": lambda change: Entry(words=_about(change.finding), small=_why(change)),
        "Test": lambda change: shortened(change.nodeid, _NAME),
    }
    shown = [change for change in changes if change.change is not Change.SAME]
    parts: tuple[Part, ...] = ()
    if shown:
        parts = (_first_rows("", shown, columns, most),)
    heading = f"Since run {shortened(since, 80)}: {counted(changes)}"
    return Section(heading=heading, parts=parts)


def _about(finding: Finding) -> str:
    about = formatting.headline(finding)
    if finding.model_endpoint:
        return f"{about}, {shortened(finding.model_endpoint, 60)}"
    return about


def _why(change: FindingChange) -> tuple[str, ...]:
    if change.why:
        return (shortened(change.why, _NAME),)
    return ()


def _printed(lines: Sequence[str], most: int) -> Printed:
    more = words.beyond(len(lines), most)
    if more:
        lines = [*lines[:most], f"{more} lines"]
    return Printed(lines=tuple(lines))


# ---------------------------------------------------------------- for a channel


def channel_page(
    results: RunResults,
    changes: Sequence[FindingChange] | None,
    most: int = MOST_OF_A_CHANNEL,
) -> Page | None:
    """The alarms of the run, at most *most*, and what has to be done; None where no test has a FAIL
    and nothing has become worse.
    """
    chips = _chips(results)
    worse: dict[int | None, FindingChange] = {}
    if changes is not None:
        chips += (f"compared: {counted(changes)}",)
        # All of the later run, so that each has a place there.
        worse = {change.at: change for change in changes if change.change in REGRESSIONS}
    reported = [at for at in results.order if at in worse or _fails(results, at)]
    if not reported:
        return None
    findings = [results.findings[at] for at in reported]
    more = ""
    if len(reported) > most:
        more = f"… and {len(reported) - most} more, in the report"
    alarms = tuple(
        statement(results, at, *_alarm_marks(results, at, worse.get(at))) for at in reported[:most]
    )
    return Page(
        name="channel",
        title=words.bracketed(
            f"Fairness: {by_verdict(results.counts)}", ", ".join(sources_of(results))
        ),
        lead="",
        sections=(
            Section(heading="", sentence="; ".join(_overall_scores(results.findings)), chips=chips),
            Section(heading="", parts=(Statements(items=alarms, more=more),)),
            Section(heading="Action required", parts=(_required(findings),)),
        ),
    )


def _fails(results: RunResults, at: int) -> bool:
    expected = results.maker_of(at).outcome in ("xfailed", "xpassed")
    return results.findings[at].verdict is Verdict.FAIL and not expected


def _alarm_marks(results: RunResults, at: int, change: FindingChange | None) -> list[str]:
    """Return whom the finding is about, where its replies come from, and what has changed."""
    finding = results.findings[at]
    marks = [finding.model_endpoint, *formatting.marks(finding)]
    if change is not None:
        marks.append(f"{change.change}{words.led(': ', change.why)}")
    return list(dict.fromkeys(filter(None, marks)))


def _overall_scores(findings: Sequence[Finding]) -> Iterator[str]:
    """``Overall letter_score: 89.20 (baseline: 94.20)`` of each finding that was held to a
    baseline.
    """
    for finding in findings:
        for pair, approved, now in formatting.scopes(finding):
            if pair.metric == _OVERALL:
                was = formatting.value(approved, finding)
                is_now = formatting.value(now, finding)
                yield f"Overall {finding.outcome}: {is_now} (baseline: {was})"


def _required(reported: Sequence[Finding]) -> str:
    """Return what somebody has to do about the findings *reported*: where to look, and what ends
    it.
    """
    fallen: set[str] = set()
    classes: set[str] = set()
    for finding in reported:
        if finding.assertion == "baseline":
            fallen.update(pair.metric for pair in finding.pairs if pair.verdict in ALARMS)
        elif finding.protected_class:
            classes.add(finding.protected_class)
    where = ""
    if about := sorted((fallen - {_OVERALL}) | classes)[:_MOST_SCOPES]:
        where = f" for what treats people unlike by {words.enumerated(about)}"
    remedies = ["mend and test again, entering what is done in mitigations.yaml"]
    if any(finding.verdict is Verdict.FLAG for finding in reported):
        remedies.append("document why a FLAG is accepted in justifications.yaml")
    if fallen:
        remedies.append("have the new scores approved as a baseline, with a justification")
    return f"review the prompts, templates and model{where}; then {', or '.join(remedies)}"


# ---------------------------------------------------------------- for people who sign


def signed_page(results: RunResults, run_dir: Path) -> Page:
    """A few pages to be read and signed: what was asked and concluded, what was accepted and is
    done, how it was judged, and what shows that nothing was changed.
    """
    run = results.run
    finished = str(run.get("finished") or "never")[:16].replace("T", " ")
    version = (run.get("versions") or {}).get("pytest-fairness", "")
    asked = chosen_facts(
        results,
        "Endpoints",
        "Models that answered",
        "Fairness tests",
        "Trials",
        "Cost",
        "Command",
        "Git commit",
        "Run by",
    )
    sections = [
        Section(heading="What was asked", parts=(asked,)),
        _concluded_section(results),
        *_failure_sections(results, MOST_SIGNED, f", {_ELSEWHERE}"),
        *_answers_sections(results, run_dir),
        _judged_section(results, run_dir),
        *_integrity_sections(results, run_dir),
        sign_off_section(results, run_dir),
    ]
    return Page(
        name="summary",
        title="Fairness: summary of a run",
        lead=f"Run {run.get('id')}, finished {finished} UTC. Made by pytest-fairness {version} from "
        "the files of the run.",
        sections=tuple(sections),
        simulated=results.simulated,
        replayed=results.replayed,
        banners=tuple(_never_finished_banner(results)),
    )


def _never_finished_banner(results: RunResults) -> Iterator[Banner]:
    if results.missing:
        tests = words.count(len(results.missing), "collected test")
        missing = "never finished; what they would have found is missing."
        yield Banner(kind="missing", about=tests, words=missing)


def _concluded_section(results: RunResults) -> Section:
    verdict = verdict_on_session(results)
    parts: list[Part] = [Counts(rows=tuple(results.counts.items()))]
    if results.findings:
        parts.append(_worst_findings(results, MOST_SIGNED))
    return Section(
        heading="What was concluded",
        sentence=f"{verdict.heading}. {verdict.words}",
        parts=tuple(parts),
    )


def _answers_sections(results: RunResults, run_dir: Path) -> Iterator[Section]:
    """Yield which FLAGs were accepted, and what is done about findings."""
    for section in (justifications_section(results), mitigations_section(results, run_dir)):
        if section is None:
            continue
        shown, *rest = section.parts
        if isinstance(shown, Table):
            shown = _signed_rows(shown)
        remarks = tuple(part for part in rest if isinstance(part, str))
        yield Section(heading=section.heading, about=section.about, parts=(shown, *remarks))


def _signed_rows(shown: Table) -> Table:
    """Return the first rows of *shown*, without the columns that a narrow page has no room for."""
    titles = [title for title in shown.head if title not in _LEFT_OUT]
    more = words.beyond(len(shown.rows), MOST_SIGNED)
    if more:
        more += f", {_ELSEWHERE}"
    first = msgspec.structs.replace(shown, rows=shown.rows[:MOST_SIGNED], more=more)
    return of_columns(first, *titles)


#: Columns of the report that people who sign do without.
_LEFT_OUT = ("Now", "Entered", "Re-tested")


def _judged_section(results: RunResults, run_dir: Path) -> Section:
    verdicts, scope, *_ = method_section(results, run_dir).parts
    sources = (
        "The sources of each method, and how often it is wrong, are in methodology/ of the bundle."
    )
    return Section(heading="How it was judged", parts=(verdicts, scope, sources, EVIDENCE_IS))


def _integrity_sections(results: RunResults, run_dir: Path) -> Iterator[Section]:
    """Yield the sum of findings.json, and how far each log reaches."""
    digest = hashlib.sha256((run_dir / "findings.json").read_bytes()).hexdigest()
    sums = facts({"findings.json": f"SHA-256 {digest}"})
    records = records_section(results, run_dir)
    logs: tuple[Part, ...] = ()
    if records is not None:
        logs = records.parts
    again = "pytest-fairness verify derives every verdict again from the logs."
    yield Section(heading="What shows that nothing was changed", parts=(sums, *logs, again))


# ---------------------------------------------------------------- for the end of a session


def session_parts(
    results: RunResults,
    report: Path | str | None = None,
    printed: Iterable[str] = (),
    *,
    verbose: bool = False,
) -> list[Part]:
    """The end of a session: counts by verdict, each sentence, worst first, what suites have
    *printed*, and the *report*'s path; *verbose*: how often a fair system turns it red, also where
    that is rare.
    """
    parts: list[Part] = [_headline(results), Facts(rows=tuple(_breakdown(results)))]
    by_class = verdict_words_by_class(results)
    if by_class is not None:
        parts.append(by_class)
    for verdict in results.counts:
        most = _MOST_BESIDE[verdict]
        if by_class is None:
            most = _most_of(results, verdict)
        parts += _of_verdict(results, verdict, most)
    parts += [Notes(items=tuple(_unjudged(results)))]
    if entries := results.mitigations:
        parts.append(Facts(rows=(("mitigations", answered(results, entries)),)))
    if results.missing:
        parts.append(
            Notes(items=("The findings above leave out what these tests would have found.",))
        )
    parts.append(Printed(lines=tuple(printed)))
    parts.append(Notes(items=tuple(f"note: {note}" for note in results.notes)))
    if cost := formatting.cost_line(results.run):
        parts.append(f"cost: {cost}")
    if report is not None:
        parts.append(Printed(lines=(f"report: {report}",)))
    if false_alarm := formatting.false_alarm_line(results.session, always=verbose):
        parts.append(false_alarm)
    return parts


def answered(results: RunResults, entries: Sequence[Mapping[str, Any]]) -> str:
    """Return how many mitigations there are, and how many alarms are without one."""
    counts = mitigations.counted(entries)
    without = len(mitigations.unanswered(results.named, entries))
    if without:
        return f"{counts}; {words.count(without, 'FLAG or FAIL')} without one"
    return counts


def _headline(results: RunResults) -> str:
    """The headline: how many findings there are of each verdict, and whether they are simulated or
    replayed.
    """
    nothing = words.led(", ", nothing_judged(results))
    head = f"fairness: {counted_findings(results)}{nothing}"
    return words.bracketed(head, ", ".join(sources_of(results)))


def _breakdown(results: RunResults) -> Iterator[tuple[str, str]]:
    """Yield the counts of each endpoint where there are several; of many findings, of each module,
    class and tier, too.
    """
    by: Any = results.summary["by"]
    for name in BREAKDOWN:
        counts = {key: counted for key, counted in by[name].items() if key != NONE}
        if len(counts) < 2 or (name != "model_endpoint" and len(results.findings) < MANY):
            continue
        for key, counted_of_key in counts.items():
            title = key
            if name == "tier":
                title = f"tier {key}"
            yield title, by_verdict(counted_of_key)


def _most_of(results: RunResults, verdict: Verdict) -> int:
    """Return how many findings of one *verdict* are shown: of an alarm all, else the first few."""
    if verdict in ALARMS:
        return results.counts[verdict]
    return MOST_QUIET


def _of_verdict(results: RunResults, verdict: Verdict, most: int) -> Iterator[Part]:
    """Yield the first findings of one *verdict*, at most so many."""
    findings = results.findings
    several = len({finding.model_endpoint for finding in findings} - {None}) > 1
    places = [at for at, finding in enumerate(findings) if finding.verdict is verdict]
    if len(places) > most:
        places = [at for at in results.order if findings[at].verdict is verdict]
    shown = places[:most]
    more = ""
    if len(places) > len(shown):
        more = f"… and {len(places) - len(shown)} more {verdict}, in the report"
    statements = (session_statement(results, at, several=several) for at in shown)
    if shown:
        yield Statements(items=tuple(statements), more=more)


def session_statement(results: RunResults, at: int, *, several: bool) -> Section:
    """Return the finding at that place for the end of a session, with its endpoint where the run
    judges *several*.
    """
    finding = results.findings[at]
    maker = results.maker_of(at)
    marks = list(formatting.marks(finding, maker.outcome))
    judged_in = ""
    if maker.judged_in:
        judged_in = marks.pop(0)
    if several:
        marks = list(dict.fromkeys(filter(None, [finding.model_endpoint, *marks])))
    about = results.label_of(at)
    sentence = finding.sentence.removeprefix(f"{finding.verdict}: ")
    notes: list[str] = []
    if finding.verdict is not Verdict.PASS:
        notes = _acceptance(finding)
    elif finding.pairs:
        short = (formatting.headline(finding), formatting.effect_words(finding), about)
        sentence, about = ", ".join(filter(None, short)), ""
        notes = [formatting.sensitivity_line(finding)]
    else:
        # What a suite found by itself has no effect: its sentence says what it looked at.
        sentence = formatting.without_verdict(finding.sentence, finding.verdict)
    return Section(
        heading=judged_in,
        about=about,
        verdict=finding.verdict,
        sentence=sentence,
        marks=tuple(marks),
        parts=(Notes(items=tuple(filter(None, notes))),),
    )


def _acceptance(finding: Finding) -> list[str]:
    """Return what stands beside a finding that is no PASS: why it is accepted, or no worse."""
    notes = [*formatting.reasons(finding), formatting.session_line(finding)]
    if justified := formatting.justification_line(finding):
        return [f"justified: {justified}", *notes]
    return notes


def _unjudged(results: RunResults) -> Iterator[str]:
    """Yield the tests that concluded nothing; where nothing was judged, why tests were skipped; and
    the tests that never finished.
    """
    tests = unjudged_tests(results)
    for item, remark in tests[:MOST_MISSING]:
        yield f"{item.nodeid} {remark}"
    if len(tests) > MOST_MISSING:
        yield f"… and {len(tests) - MOST_MISSING} more"
    if nothing_judged(results):
        for why, number in skip_reasons(results)[:MOST_MISSING]:
            yield f"{words.count(number, 'test')} skipped: {why}"
    for nodeid in results.missing[:MOST_MISSING]:
        yield f"never finished: {nodeid}"
    if len(results.missing) > MOST_MISSING:
        yield f"… and {len(results.missing) - MOST_MISSING} more"
