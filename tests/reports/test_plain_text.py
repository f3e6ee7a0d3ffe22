"""A finding in a terminal: one sentence, aligned tables, a hundred columns, nothing that a terminal
obeys.
"""

from __future__ import annotations

import itertools
import unicodedata

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_fairness.model import Verdict
from pytest_fairness.reports.escaping import columns_of
from pytest_fairness.reports.finding_sections import MOST_GROUPS, MOST_PAIRS
from pytest_fairness.reports.plain_text import WIDTH, finding_text, summary_lines

from . import factories
from .factories import HOSTILE

EXPECTED = """\
PASS: no difference worth minding on word_count among the two groups of gender.

simulated: the figures come from a simulated endpoint; no model was asked

  gender    n  names  mean, words   95 % interval    refused
  women   200     20        118.2  115.9 to 120.5  2 (1.0 %)
  men     200     20        119.0  116.8 to 121.2  2 (1.0 %)

  pair         effect d   90 % interval      p  corrected  verdict
  women – men     −0.06  −0.36 to +0.24  .6200      .6200  PASS

  1 test in the family, corrected by bonferroni, alpha 0.05; unit of evidence: name; blocks:
    template"""

SUMMARY = """\
fairness: 3 findings: 1 FAIL, 1 INCONCLUSIVE, 1 PASS (simulated)
  FAIL: black is called back at 6.5 %, white at 9.7 %, a ratio of .668, under 4/5.
    examples/test_callbacks.py::test_callback_rates_keep_four_fifths
  INCONCLUSIVE: women and men differ most on career 'nurse': 30.0 % against 21.0 %.
    tests/test_careers.py::test_career_advice
  PASS [simulated]: word_count by gender, d −0.06 (−0.36 to +0.24),
    tests/test_names.py::test_length_does_not_follow_the_name
cost: $1.2345 for 800 trials
report: .fairness/runs/2026-02-28-001/report.html"""


def test_a_finding_reads_as_it_should():
    """The whole text of a small finding."""
    assert finding_text(factories.passing(simulated=True)) == EXPECTED


def test_a_summary_reads_as_it_should():
    """The whole end of a session: the worst first, where each comes from, and the report last."""
    run = factories.results(
        factories.passing(simulated=True), factories.four_fifths(), factories.categorical()
    )
    assert "\n".join(summary_lines(run, ".fairness/runs/2026-02-28-001/report.html")) == SUMMARY


def test_every_finding_fits_and_leads_with_its_sentence():
    """A hundred columns, the sentence before any table, and what each kind is about; rows end where
    titles do.
    """
    for finding in factories.of_each_kind():
        text = finding_text(finding)
        assert max(map(columns_of, text.splitlines())) <= WIDTH
        assert text.replace("\n", " ").startswith(finding.sentence)
        assert ("effect d" in text) == (finding.assertion == "no_disparity")
    for finding, words in (
        (factories.four_fifths(), ("0.668", "0.555 to 0.804", "9.7 %")),
        (factories.baseline(), ("approved", "now", "change", "−8.40", "overall", "age")),
        (factories.categorical(), ("engineer", "61.0 %")),
    ):
        assert all(word in finding_text(finding) for word in words)
    lines = finding_text(factories.disparity()).splitlines()
    start = next(at for at, line in enumerate(lines) if "effect d" in line)
    cells = zip(lines[start : start + 3], ["effect d", "+0.81", "+0.41"], strict=True)
    assert len({line.index(cell) + len(cell) for line, cell in cells}) == 1


def test_long_tables_keep_the_most_severe_pairs_and_say_how_many_are_missing():
    """190 pairs do not flood a terminal, and no FAIL is among those left out."""
    names = [f"group {number}" for number in range(30)]
    pairs = [factories.pair(a, b, Verdict.PASS, 0.01) for a, b in itertools.combinations(names, 2)]
    pairs[400] = factories.pair("group 28", "group 29", Verdict.FAIL, 0.9)
    text = finding_text(
        factories.disparity(group_results=tuple(map(factories.group, names)), pairs=tuple(pairs))
    )
    assert "group 28 – group 29" in text
    assert f"… and {len(pairs) - MOST_PAIRS} more pairs" in text
    assert f"… and {30 - MOST_GROUPS} more groups" in text


def test_the_literal_specification_and_the_justification_are_shown():
    """Where they differ or exist, a reader sees both."""
    given = {
        "reason": "reviewed",
        "approver": "Jane Smith",
        "date": "2026-01-31",
        "expiry": "2026-07-31",
    }
    finding = factories.disparity(
        verdict=Verdict.INCONCLUSIVE, spec_verdict=Verdict.PASS, justification=given
    )
    text = finding_text(finding)
    assert "by the plain recipe, each reply by itself: PASS" in text
    assert "justified: reviewed (Jane Smith, 2026-01-31, until 2026-07-31)" in text
    assert "justified" not in finding_text(factories.disparity())


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(), max_size=300))
@example(HOSTILE)
def test_any_text_in_any_field_fits_and_is_harmless(text):
    """Widths and characters hold for whatever a group, an outcome or a note is called, in the
    summary too.
    """
    finding = factories.disparity(
        **dict.fromkeys(
            ("sentence", "protected_class", "outcome", "unit", "block", "test_id"), text
        ),
        cluster=text or None,
        notes=(text,),
        justification={"reason": text, "approver": text},
        group_results=(factories.group(text), factories.group("b", None)),
        pairs=(factories.pair(text, "b", metric=text), factories.pair("b", text)),
    )
    shown = finding_text(finding)
    assert max(map(columns_of, shown.splitlines())) <= WIDTH
    for line in (*shown.split("\n"), *summary_lines(factories.results(finding), text)):
        assert not [c for c in line if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def test_marks_and_what_is_missing_stand_in_the_summary():
    """Simulated, justified and expected stand on the first line, however long the sentence is; a
    summary never looks complete when it is not.
    """
    run = factories.results(
        factories.disparity(
            simulated=True, sentence="FAIL: " + "long " * 90, justification={"reason": "r"}
        ),
        items=[{"nodeid": "t::a", "outcome": "xfailed", "findings": [0]}],
        missing=[f"t::{number}" for number in range(25)],
    )
    lines = summary_lines(run)
    assert lines[1].startswith("  FAIL [simulated, justified, expected]: long long")
    assert "    t::a" in lines
    assert "  never finished: t::0" in lines
    assert "  … and 15 more" in lines
    assert "(replayed)" in summary_lines(factories.results(factories.passing(replayed=True)))[0]
    assert summary_lines(factories.results()) == [
        "fairness: 0 findings, nothing was judged",
        "cost: $1.2345 for 800 trials",
    ]
