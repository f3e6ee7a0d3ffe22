"""What the report says first: did the session fail and why, what needs a decision, a row a finding."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from pytest_fairness import analyze_disparity
from pytest_fairness.model import Finding, Reason, Verdict
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.reports.formatting import effect_words
from pytest_fairness.reports.html import write_html
from pytest_fairness.reports.overview import (
    MOST_CARDS,
    decision_section,
    failures,
    findings_section,
    outcome_section,
    verdict_on_session,
)
from pytest_fairness.reports.sections import Entry, Section, Table

from .factories import disparity, four_fifths, passing, results, run_folder, trial
from .page_reader import Page

UNTIL = {"reason": "one template, rewritten", "approver": "Jane Smith", "date": "2026-01-31"}


def inconclusive(reason: Reason, **changes: object) -> Finding:
    return disparity(verdict=Verdict.INCONCLUSIVE, reason=reason, **changes)


#: How each test ended, its message, and what it found; why the session failed for it, if it did.
TESTS: dict[str, tuple[str, str, tuple[Finding, ...], str | None]] = {
    "t.py::fail": ("failed", "pytest_fairness.FairnessFailure: FAIL", (disparity(),), ""),
    "t.py::flag": ("failed", "…", (disparity(verdict=Verdict.FLAG),), "not justified"),
    "t.py::few": ("failed", "…", (passing(), inconclusive(Reason.N)), "too few trials"),
    "t.py::justified": ("passed", "", (disparity(verdict=Verdict.FLAG, justification=UNTIL),), None),
    "t.py::wide": ("passed", "", (inconclusive(Reason.PRECISION),), None),
    "t.py::expected": ("xfailed", "known", (disparity(),), None),
    "t.py::own": ("failed", "assert 3 == 4", (passing(),), "its own check"),
    "t.py::other": ("failed", "ValueError: no", (inconclusive(Reason.PRECISION),), "ValueError"),
    "t.py::fixture": ("error", "RuntimeError: down", (), "error in setup or teardown"),
    "t.py::cap": ("failed", "pytest_fairness.errors.BudgetError: $5 are spent", (), "cost cap reached"),
    "t.py::new": ("failed", "MissingBaselineError: none", (), "no approved baseline"),
}  # fmt: skip


@pytest.fixture(scope="module")
def session() -> RunResults:
    findings = [finding for _, _, found, _ in TESTS.values() for finding in found]
    items, at = [], 0
    for nodeid, (outcome, message, found, _) in TESTS.items():
        places = list(range(at, at := at + len(found)))
        items.append({"nodeid": nodeid, "outcome": outcome, "message": message, "findings": places})
    return results(*findings, items=items, missing=["t.py::crashed"])


def test_each_reason_for_a_red_session_is_one_line(session):
    """A reason a test, the worst finding first; then what failed without one, and what crashed. A
    finding that does not fail its test is no reason: a PASS, what is justified
    or expected, a warning.
    """
    found = failures(session)
    whys = {nodeid: why for nodeid, (*_, why) in TESTS.items() if why is not None}
    whys["t.py::crashed"] = "never finished"
    assert {one.nodeid: one.why for one in found} == whys
    assert len(found) == len(whys)
    assert [one.nodeid for one in found[:3]] == ["t.py::fail", "t.py::flag", "t.py::few"]
    assert [one.nodeid for one in found if one.at is None] == [
        "t.py::own", "t.py::other", "t.py::fixture", "t.py::cap", "t.py::new", "t.py::crashed"
    ]  # fmt: skip
    strict = replace(session, run={**session.run, "parameters": {"require_conclusive": True}})
    assert "interval too wide" in {one.why for one in failures(strict)}


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (0, ("passed", "None of 1 fairness test failed.")),
        (None, ("passed", "None of 1 fairness test failed.")),
        (1, ("failed", "None of 1 fairness test failed: something else did (exit status 1).")),
        (2, ("failed", "It was interrupted; none of 1 fairness test failed until then.")),
    ],
)
def test_a_session_that_failed_for_something_else_does_not_look_green(status, verdict):
    """The report knows pytest's exit status: a failed test that is none of ours, or an
    interruption.
    """
    found = verdict_on_session(results(passing(), run={"exit_status": status}))
    assert (found.tone, found.words) == verdict


UNDECIDED = replace(passing(), verdict=Verdict.INCONCLUSIVE, reason=Reason.PRECISION)


@pytest.mark.parametrize(
    ("findings", "items", "tone", "heading"),
    [
        ([passing(), passing()], [], "passed", "The session passed"),
        ([passing(), UNDECIDED, UNDECIDED], [], "undecided", "1 passed, 2 undecided"),
        ([UNDECIDED], [], "undecided", "0 passed, 1 undecided"),
        (
            [passing()],
            [{"unjudged": {"trials": 8}}],
            "undecided",
            "1 passed, 1 test concluded nothing",
        ),
        (
            [],
            [{"unjudged": {"trials": 8}}, {"outcome": "skipped"}],
            "nothing",
            "Nothing was judged",
        ),
        ([], [{"outcome": "skipped"}] * 2, "nothing", "Nothing was judged"),
        ([], [{}, {"outcome": "skipped"}], "nothing", "No groups were compared"),
        ([], [{"outcome": "failed"}], "failed", "The session failed"),
        (
            [passing(), UNDECIDED, disparity(justification={"reason": "r"}, verdict=Verdict.FLAG)],
            [],
            "undecided",
            "1 passed, 1 accepted, 1 undecided",
        ),
    ],
)
def test_green_is_for_what_was_judged_and_decided(findings, items, tone, heading):
    """Amber where findings are open or a test concluded nothing, grey where there is no finding."""
    own = [
        {"nodeid": f"t::f{at}", "outcome": "passed", "findings": [at]}
        for at in range(len(findings))
    ]
    others = [{"nodeid": f"t::{at}", "outcome": "passed", **item} for at, item in enumerate(items)]
    found = verdict_on_session(results(*findings, items=[*own, *others]))
    assert (found.tone, found.heading) == (tone, heading)


def test_every_line_leads_to_a_card_or_to_a_message(session, tmp_path):
    """Cards stand in the order of their rows, and no link leads nowhere."""
    text = write_html(run_folder(tmp_path, session, [trial()])).read_text("utf-8")
    page = Page(text)
    anchors = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    links = [(link["href"] or "").removeprefix("#") for link in page.all("a")]
    assert set(links) <= set(anchors)
    assert [one for one in anchors if one.startswith("f-") and "heading" not in one] == [
        session.ids[at] for at in session.order
    ]
    assert "8 of 12 fairness tests failed; 1 of 12 fairness tests never finished." in page.text
    assert (
        page.text.index("The session failed")
        < page.text.index("What needs a decision")
        < page.text.index("Findings")
    )
    for message in ("assert 3 == 4", "RuntimeError: down", "BudgetError: $5 are spent"):
        assert message in page.text


def _rows(section: Section | None) -> list[list[str]]:
    assert section is not None
    rows = [row for part in section.parts if isinstance(part, Table) for row in part.rows]
    return [[cell if isinstance(cell, str) else _words(cell) for cell in row] for row in rows]


def _words(cell: Entry) -> str:
    return " ".join(filter(None, (cell.verdict, cell.words, *cell.marks)))


def test_what_needs_a_decision_is_listed_by_how_soon(tmp_path):
    """FLAGs that nobody answers for first, then those whose justification runs out; INCONCLUSIVE by
    reason.
    """
    expiries = ("2026-12-31", "2026-03-12", "2026-02-01")
    flags = [
        disparity(
            verdict=Verdict.FLAG, outcome=f"until {day}", justification={**UNTIL, "expiry": day}
        )
        for day in expiries
    ]
    lapsed = "its justification expired on 2026-01-01: x (y, z)"
    flags.append(disparity(verdict=Verdict.FLAG, outcome="lapsed", notes=(lapsed,)))
    way = "INCONCLUSIVE.\n\nWhat would change the verdict: more names."
    undecided = [
        inconclusive(one, outcome=one.value, explanation=way)
        for one in (Reason.N, Reason.PRECISION, Reason.N)
    ]
    rows = _rows(decision_section(results(*flags, *undecided, passing()), tmp_path))
    assert rows[:4] == [
        ["FLAG", "lapsed by race_ethnicity", lapsed, "–", "–"],
        [
            "FLAG",
            "until 2026-02-01 by race_ethnicity",
            UNTIL["reason"],
            "Jane Smith",
            "2026-02-01 expired",
        ],
        [
            "FLAG",
            "until 2026-03-12 by race_ethnicity",
            UNTIL["reason"],
            "Jane Smith",
            "2026-03-12 12 days left",
        ],
        ["FLAG", "until 2026-12-31 by race_ethnicity", UNTIL["reason"], "Jane Smith", "2026-12-31"],
    ]
    assert [row[:2] for row in rows[4:]] == [
        ["too few trials", "2 findings"],
        ["interval too wide", "1 finding"],
    ]
    (all_findings,) = (
        part
        for part in findings_section(results(*undecided, passing()), tmp_path).parts
        if isinstance(part, Table)
    )
    assert [row[1].small for row in all_findings.rows] == [("more names.",)] * 3 + [()]
    assert decision_section(results(passing()), tmp_path) is None


def test_ten_times_too_many_findings_keep_a_row_each(tmp_path):
    """The worst have cards; each of the others is a row that links to its id still find, and the
    page says so.
    """
    many = [passing(outcome=f"outcome {at}") for at in range(MOST_CARDS + 5)] + [four_fifths()]
    run = results(*many)
    page = Page(write_html(run_folder(tmp_path, run)).read_text("utf-8"))
    cards = [one["id"] for one in page.all("article")]
    assert cards == [run.ids[at] for at in run.order[:MOST_CARDS]]
    rows = [row["id"] for row in page.all("tr") if row.get("id")]
    assert rows == [run.ids[at] for at in run.order[MOST_CARDS:]]
    assert (
        f"The {MOST_CARDS} worst have a card below. All {len(many)} stand in findings.json"
        in page.text
    )


def test_a_row_says_who_is_worse_off_and_by_how_much(tmp_path):
    """In the unit of the comparison; a verdict that accuses nobody names nobody."""
    rows = _rows(findings_section(results(disparity(), four_fifths(), passing()), tmp_path))
    assert [row[:5] for row in rows] == [
        ["FAIL", "sentiment by race_ethnicity", "black", "d −0.81 (−1.11 to −0.51)", "800"],
        ["FAIL", "called_back by race (four fifths)", "black", "ratio 0.67", "800"],
        ["PASS", "word_count by gender", "–", "d −0.06 (−0.36 to +0.24)", "800"],
    ]


def test_a_verdict_by_refusals_shows_their_effect() -> None:
    """Not that of the answers, by which nobody is worse off."""
    groups, names = ["white", "black"], range(40)
    frame = pd.DataFrame(
        {
            "race": [group for group in groups for _ in names for _ in range(5)],
            "name": [f"{group} {name}" for group in groups for name in names for _ in range(5)],
            "points": [float((name + at) % 9) for _ in groups for name in names for at in range(5)],
            "refused": [
                group == "black" and at < 2 for group in groups for _ in names for at in range(5)
            ],
        }
    )
    finding = analyze_disparity(frame, "points", "race", block=None)
    assert finding.verdict is Verdict.FAIL
    words = effect_words(finding)
    assert words.startswith("refusal d +")
    assert words != effect_words(replace(finding, pairs=finding.pairs[:1]))


def test_the_first_screen_has_the_sentence_of_a_failure(session: RunResults, tmp_path):
    """Not a verdict and two names: who is worse off, by how much, how sure."""
    (shown,) = (
        part for part in outcome_section(session, tmp_path).parts if isinstance(part, Table)
    )
    words = [row[1].words for row in shown.rows if isinstance(row[1], Entry)]
    assert sum(text.startswith("Black is worse off than white on sentiment") for text in words) == 1
