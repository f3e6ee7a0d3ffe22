"""The first things a reader of the report sees: did the session fail and why, what needs a
decision, a line a finding.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from pytest_fairness import words
from pytest_fairness.baselines.justifications import EXPIRED
from pytest_fairness.model import ALARMS, Finding, Reason, Verdict, deciding_pair
from pytest_fairness.reports import formatting
from pytest_fairness.reports.escaping import clipped, shortened
from pytest_fairness.reports.findings_json import ItemResult, RunResults, end_or_start_of
from pytest_fairness.reports.sections import (
    Banner,
    Columns,
    Counts,
    Details,
    Dialogue,
    Entry,
    Part,
    Section,
    table,
)
from pytest_fairness.reports.unjudged import nothing_judged, skip_reasons, unjudged_tests

#: A justification that expires within so many days of the run needs a new decision.
SOON = 30
#: Lines that are shown at once, and on request.
_MOST_LINES, _MOST_HIDDEN = 20, 500
#: So many findings have a card: a page of more is slow to open, and nobody reads it.
MOST_CARDS = 200
NEVER_FINISHED = "never finished"
#: What an error of ours means, by the name of its class, which pytest puts before the message.
_ERRORS = {
    "BudgetError": "cost cap reached",
    "EndpointError": "no usable answer",
    "MissingBaselineError": "no approved baseline",
    "ApprovalRefusedError": "approval refused",
    "UsageError": "mistake in test or configuration",
    "StoreError": "run cannot be read or written",
    "FairnessFailure": "judged, without a finding in the run",
}
_ERROR = re.compile(r"(?:\w+\.)*(\w+)(?:: |$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One reason for which the session failed: ``at`` is the place of the finding, ``message`` the
    test's where there is none.
    """

    why: str
    nodeid: str
    at: int | None = None
    message: str = ""

    @property
    def anchor(self) -> str:
        """Return where the message stands."""
        return f"t-{hashlib.sha256(self.nodeid.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def failures(results: RunResults) -> list[Failure]:
    """Why the session failed, as far as fairness tests are concerned: a reason a test, the findings
    worst first, then tests that failed otherwise, and tests that never finished.
    """
    red = {id(item): item for item in results.failed}
    failed = []
    for at in results.order:
        item = results.maker_of(at)
        if id(item) in red and _fails(results, at):
            failed.append(Failure(why=_why(results.findings[at]), nodeid=item.nodeid, at=at))
            del red[id(item)]
    for item in red.values():
        failed.append(Failure(why=_trouble(item), nodeid=item.nodeid, message=item.message))
    for nodeid in results.missing:
        failed.append(Failure(why=NEVER_FINISHED, nodeid=nodeid))
    return failed


def _fails(results: RunResults, at: int) -> bool:
    """Return whether the finding fails its test."""
    finding = results.findings[at]
    if finding.verdict is Verdict.INCONCLUSIVE:
        strict = results.run.get("parameters", {}).get("require_conclusive")
        return bool(strict) or finding.reason is None or finding.reason.unusable
    return finding.verdict in ALARMS and finding.justification is None


def _why(finding: Finding) -> str:
    if finding.verdict is Verdict.INCONCLUSIVE:
        return _undecided_because(finding.reason)
    if finding.verdict is Verdict.FLAG:
        return "not justified"
    return ""


def _undecided_because(reason: Reason | None) -> str:
    return formatting.reason_words(reason) or "nothing to compare"


def _trouble(item: ItemResult) -> str:
    """Return what went wrong in a test that failed, and not by a finding."""
    name = ""
    if error := _ERROR.match(item.message):
        name = error[1]
    if name in _ERRORS:
        return _ERRORS[name]
    if item.outcome == "error":
        return "error in setup or teardown"
    if name == "AssertionError" or item.message.startswith("assert "):
        return "its own check"
    return name or "failed"


class SessionVerdict(NamedTuple):
    """The verdict on a session: ``tone`` and heading of its first box, and why in a sentence or
    two.
    """

    tone: Literal["failed", "undecided", "nothing", "passed"]
    heading: str
    words: str


def verdict_on_session(results: RunResults) -> SessionVerdict:
    """Return whether the session failed, passed, left findings undecided or judged nothing, and why
    in a few words.
    """
    undecided = results.counts[Verdict.INCONCLUSIVE]
    open_ = []
    if undecided:
        total = words.count(len(results.findings), "finding")
        open_ = [f"{undecided:,} of {total} decide nothing."]
    why = _why_failed(results)
    if why:
        return SessionVerdict("failed", "The session failed", " ".join([why, *open_]))
    total = words.count(len(results.items), "fairness test")
    sentences = [f"None of {total} failed."]
    unjudged = len(unjudged_tests(results))
    if unjudged:
        sentences.append(f"{words.count(unjudged, 'test')} asked for trials and concluded nothing.")
    skipped = sum(item.outcome == "skipped" for item in results.items)
    if skipped and skipped == len(results.items):
        sentences = [f"All fairness tests ({skipped:,}) were skipped."]
    elif skipped:
        sentences.append(
            f"{words.count(skipped, 'test')} {words.agreeing(skipped, 'was', 'were')} skipped."
        )
    if nothing := nothing_judged(results):
        return SessionVerdict("nothing", f"{nothing[0].upper()}{nothing[1:]}", " ".join(sentences))
    sentences[1:1] = open_
    if not undecided and not unjudged:
        return SessionVerdict("passed", "The session passed", " ".join(sentences))
    accepted = results.counts[Verdict.FLAG] + results.counts[Verdict.FAIL]
    parts = [f"{results.counts[Verdict.PASS]:,} passed"]
    if accepted:
        parts += [f"{accepted:,} accepted"]
    if undecided:
        parts += [f"{undecided:,} undecided"]
    if unjudged:
        parts += [f"{words.count(unjudged, 'test')} concluded nothing"]
    return SessionVerdict("undecided", ", ".join(parts), " ".join(sentences))


def _why_failed(results: RunResults) -> str:
    """Why the session failed; empty where it did not."""
    failed = failures(results)
    red = {failure.nodeid for failure in failed if failure.why != NEVER_FINISHED}
    total = words.count(len(results.items) + len(results.missing), "fairness test")
    status = results.run.get("exit_status")
    parts = []
    if red:
        parts.append(f"{len(red):,} of {total} failed")
    if results.missing:
        parts.append(f"{len(results.missing):,} of {total} never finished")
    if parts:
        return f"{'; '.join(parts)}."
    if status == 2:
        return f"It was interrupted; none of {total} failed until then."
    if status not in (None, 0, 5):
        return f"None of {total} failed: something else did (exit status {status})."
    return ""


def counted_findings(results: RunResults) -> str:
    """Return how many findings there are, and of which verdicts: ``3 findings: 1 FAIL, 2 PASS``."""
    made = words.count(len(results.findings), "finding")
    if results.findings:
        return f"{made}: {by_verdict(results.counts)}"
    return made


def by_verdict(counts: Mapping[Verdict, int]) -> str:
    """Write how many there are of each verdict, in the order of *counts*: ``1 FAIL, 2 PASS``."""
    return ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items() if count)


def banners(results: RunResults, *, outcome: bool = True) -> tuple[Banner, ...]:
    """Return what has to be read before anything else. *outcome*: also that the session failed."""
    shown = []
    verdict = verdict_on_session(results)
    if outcome and verdict.tone == "failed":
        shown.append(Banner(kind="missing", about="The session failed.", words=verdict.words))
    if notes := results.run.get("notes"):
        remarks = " ".join(f"{note}." for note in notes)
        shown.append(Banner(kind="note", about="About this run.", words=remarks))
    return tuple(shown)


# ---------------------------------------------------------------- did it fail


def outcome_section(results: RunResults, _: Path) -> Section:
    """Return what the session came to, and why: a line a test that failed or concluded nothing."""
    verdict = verdict_on_session(results)

    def reason(failure: Failure) -> Entry:
        if failure.at is None:
            return Entry(words=failure.why)
        return Entry(words=failure.why, verdict=results.findings[failure.at].verdict)

    def proof(failure: Failure) -> Entry:
        if failure.at is not None:
            finding = results.findings[failure.at]
            sentence = formatting.without_verdict(finding.sentence, finding.verdict)
            return Entry(words=sentence, link=results.ids[failure.at])
        if failure.message:
            first = failure.message.strip().split("\n", 1)[0]
            return Entry(
                words=clipped(_ERROR.sub("", first, count=1) or first, 70), link=failure.anchor
            )
        return Entry(words="no report of it ever came; what it would have found is not below")

    columns: Columns = {"Why": reason, "What": proof, "Test": lambda failure: failure.nodeid}
    failed = failures(results)
    rows = []
    if failed:
        rows = _table("Each test that failed, the worst first", failed, columns)
    if unjudged := unjudged_tests(results):
        columns = {"Test": lambda row: row[0].nodeid, "What": lambda row: row[1]}
        rows += _table("Each test that concluded nothing", unjudged, columns)
    if reasons := skip_reasons(results):
        columns = {
            "Why": lambda row: shortened(row[0], 300),
            "How many": lambda row: words.count(row[1], "test"),
        }
        skipped = _table("Why tests were skipped", reasons, columns)
        if verdict.tone != "nothing":
            skipped = [Details(summary="Skipped tests", parts=tuple(skipped))]
        rows += skipped
    return Section(
        heading=verdict.heading,
        id="outcome",
        sentence=verdict.words,
        tone=verdict.tone,
        parts=tuple(rows),
    )


def failures_without_finding(results: RunResults) -> list[Failure]:
    """Return the tests that failed, and not by a finding."""
    without = []
    for failure in failures(results):
        if failure.at is None and failure.why != NEVER_FINISHED:
            without.append(failure)
    return without


def messages_section(results: RunResults, _: Path) -> Section | None:
    """The messages of tests that failed, and not by a finding."""
    hidden = [failure for failure in failures_without_finding(results) if failure.message]
    if not hidden:
        return None
    shown = []
    for failure in hidden[:_MOST_HIDDEN]:
        turns = (("message", shortened(failure.message, 6_000)),)
        message = Dialogue(about=failure.why, turns=turns)
        shown.append(Section(heading=failure.nodeid, id=failure.anchor, parts=(message,)))
    return Section(heading="Tests that failed without a finding", id="messages", parts=tuple(shown))


# ---------------------------------------------------------------- what needs a decision


def decision_section(results: RunResults, _: Path) -> Section | None:
    """Return what tests leave to people: FLAGs, what is expected to fail, justifications that run
    out, and INCONCLUSIVE.
    """
    open_ = _open_alarms(results)
    parts = list[Part]()
    if open_:
        today = _day(end_or_start_of(results))
        columns: Columns = {
            "Verdict": lambda at: Entry(verdict=results.findings[at].verdict),
            "Finding": lambda at: Entry(
                words=formatting.headline(results.findings[at]), link=results.ids[at]
            ),
            "Accepted because": lambda at: _accepted(results, at),
            "By": lambda at: str(
                formatting.justified(results.findings[at]).get("approver") or words.NOTHING
            ),
            "Until": lambda at: _until(results.findings[at], today),
        }
        parts += _table("Differences that somebody has to answer for", open_, columns)
    if undecided := _undecided_by_reason(results):
        columns = {
            "Why": lambda row: row[0],
            "How many": lambda row: words.count(len(row[1]), "finding"),
            "The first": lambda row: Entry(
                words=formatting.headline(results.findings[row[1][0]]),
                link=results.ids[row[1][0]],
            ),
        }
        caption = (
            "INCONCLUSIVE, by reason; what would decide each stands beside it, among all findings"
        )
        parts += _table(caption, undecided, columns)
    if parts:
        return Section(heading="What needs a decision", id="decisions", parts=tuple(parts))
    return None


def _undecided_by_reason(results: RunResults) -> list[tuple[str, list[int]]]:
    """Return why findings are INCONCLUSIVE, and the places of those that are, the most frequent
    reason first.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for at in results.order:
        finding = results.findings[at]
        if finding.verdict is Verdict.INCONCLUSIVE:
            places[_undecided_because(finding.reason)].append(at)
    return sorted(places.items(), key=lambda row: (-len(row[1]), row[0]))


def _open_alarms(results: RunResults) -> list[int]:
    """FLAGs, and alarms of tests that did not fail: first those that nobody answers for, then those
    that run out.
    """

    def urgency(at: int) -> tuple[bool, str]:
        given = formatting.justified(results.findings[at])
        return bool(given), str(given.get("expiry") or "9")

    alarms = []
    for at in results.order:
        verdict = results.findings[at].verdict
        expected = results.maker_of(at).outcome == "xfailed"
        if verdict is Verdict.FLAG or (verdict is Verdict.FAIL and expected):
            alarms.append(at)
    return sorted(alarms, key=urgency)


def _accepted(results: RunResults, at: int) -> str:
    finding = results.findings[at]
    item = results.maker_of(at)
    if finding.justification:
        return shortened(str(finding.justification.get("reason", "")), 120)
    if item.outcome == "xfailed":
        return shortened(f"expected to fail{words.led(': ', item.message)}", 120)
    for note in finding.notes:
        if note.startswith(EXPIRED):
            return note
    return "nobody has justified it"


def _day(text: object) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(str(text)[:10])
    except ValueError:
        return None


def _until(finding: Finding, today: datetime.date | None) -> Entry:
    """The last day of the justification of *finding*; marked where that is soon after *today*, the
    day of the run.
    """
    given = formatting.justified(finding).get("expiry")
    end = _day(given)
    if end is None or today is None:
        return Entry(words=str(given or words.NOTHING))
    left = (end - today).days
    marks: tuple[str, ...] = ()
    if left < 0:
        marks = ("expired",)
    elif left <= SOON:
        marks = (f"{words.count(left, 'day')} left",)
    return Entry(words=str(end), marks=marks)


def _way_out(finding: Finding) -> tuple[str, ...]:
    """Return what would decide *finding*, where it is INCONCLUSIVE."""
    if finding.verdict is Verdict.INCONCLUSIVE:
        return (shortened(_needs(finding), 200),)
    return ()


def _needs(finding: Finding) -> str:
    pair = deciding_pair(finding.pairs)
    if pair is not None and pair.needs:
        return pair.needs
    return finding.explain().partition("What would change the verdict: ")[2] or words.NOTHING


# ---------------------------------------------------------------- a row a finding


def findings_section(results: RunResults, _: Path) -> Section:
    """The verdicts counted, and a row a finding, worst first."""
    parts: list[Part] = [Counts(rows=tuple(results.counts.items()))]
    if results.findings:
        cards = {at: results.ids[at] for at in results.order[:MOST_CARDS]}
        levels = formatting.deciding_levels(results.findings)
        columns: Columns = {
            "Verdict": lambda at: Entry(
                verdict=results.findings[at].verdict, reason=results.findings[at].reason
            ),
            "Finding": lambda at: Entry(
                words=formatting.headline(results.findings[at]),
                link=cards.get(at, ""),
                small=_way_out(results.findings[at]),
            ),
            "Worse off": lambda at: shortened(
                formatting.worse_off(results.findings[at]) or words.NOTHING, 40
            ),
            f"Effect, {words.of_confidence(levels)}": lambda at: formatting.effect_words(
                results.findings[at], levels
            ),
            "n": lambda at: f"{sum(results.findings[at].n_per_group.values()):,}",
            "Endpoint": lambda at: Entry(
                words=shortened(results.findings[at].model_endpoint or words.NOTHING, 60),
                marks=_marks(results, at),
            ),
            "Test": lambda at: _test(results, at),
        }
        if any(map(formatting.session_line, results.findings)):
            # Else it changes nothing, and takes the room of a word.
            columns["Session p"] = lambda at: formatting.session_p(results.findings[at])
        rows = table("Every finding, the worst first", results.order, columns, kind="findings")
        parts.append(rows)
        if others := results.order[MOST_CARDS:]:
            # Links to a finding without a card lead to its row.
            anchors = [""] * len(cards) + [results.ids[at] for at in others]
            parts[-1] = msgspec.structs.replace(rows, anchors=tuple(anchors))
            parts.append(
                f"The {len(cards)} worst have a card below. All {len(anchors):,} stand in "
                "findings.json with their "
                "groups, pairs and notes, each under the id that this page's address takes behind "
                "its #."
            )
        if false_alarm := formatting.false_alarm_line(results.session, always=True):
            parts.append(false_alarm)
    return Section(heading="Findings", id="findings", parts=tuple(parts))


def _test(results: RunResults, at: int) -> Entry:
    """Return the name of the test that made the finding, under the id that it has of its own."""
    name = shortened(results.test_of(at).partition("::")[2], 60)
    identity = results.item_of(at)
    if identity:
        return Entry(words=identity, small=(name,))
    return Entry(words=name)


def _marks(results: RunResults, at: int) -> tuple[str, ...]:
    """The marks of the finding that its endpoint's name does not say already."""
    finding = results.findings[at]
    marks = []
    for mark in formatting.marks(finding, results.maker_of(at).outcome):
        if mark != finding.model_endpoint:
            marks.append(mark)
    return tuple(marks)


def _table(caption: str, items: list[Any], columns: Columns) -> list[Part]:
    """The first of *items* in a table, more on request, and how many there are beyond."""
    parts: list[Part] = [table(caption, items[:_MOST_LINES], columns, kind="findings")]
    if more := items[_MOST_LINES:_MOST_HIDDEN]:
        rows = table(f"{caption}: the others", more, columns, kind="findings")
        parts.append(Details(summary=f"{len(more):,} more", parts=(rows,)))
    if left_out := words.beyond(len(items), _MOST_HIDDEN):
        parts.append(f"{left_out}, in findings.json.")
    return parts
