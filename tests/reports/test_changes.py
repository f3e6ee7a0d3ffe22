"""Two runs compared: what a finding has become, and when an alarm counts as larger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fairness.model import Finding, Verdict
from pytest_fairness.reports.changes import Change, changes_between, counted

from .factories import disparity, pair, results

PASS, FLAG, FAIL, OPEN = Verdict.PASS, Verdict.FLAG, Verdict.FAIL, Verdict.INCONCLUSIVE


def alarm(
    low: float, high: float, verdict: Verdict = FAIL, *, groups: tuple[str, str] = ("a", "b")
) -> Finding:
    """A finding with one pair, whose effect has this interval."""
    one = pair(*groups, verdict, (low + high) / 2, effect_low=low, effect_high=high)
    return disparity(verdict=verdict, pairs=(one,))


JUSTIFIED = {"reason": "a bona fide need", "approver": "Jo"}
BECOMES: list[tuple[str, Finding | None, Finding | None, Change, str]] = [
    ("first alarm", None, alarm(0.5, 0.9), Change.NEW, ""),
    ("first pass", None, alarm(0.0, 0.1, PASS), Change.ADDED, ""),
    ("pass to alarm", alarm(0.0, 0.1, PASS), alarm(0.3, 0.5, FLAG), Change.NEW, ""),
    ("undecided to alarm", alarm(0.0, 0.9, OPEN), alarm(0.3, 0.5, FLAG), Change.NEW, ""),
    ("more severe", alarm(0.3, 0.5, FLAG), alarm(0.4, 0.6, FAIL), Change.WORSE, ""),
    ("larger", alarm(0.2, 0.5), alarm(0.6, 0.9), Change.WORSE, "larger between a and b"),
    ("larger below zero", alarm(-0.5, -0.2), alarm(-0.9, -0.6), Change.WORSE, "larger between a and b"),
    ("larger, pair turned", alarm(0.2, 0.5), alarm(-0.9, -0.6, groups=("b", "a")), Change.WORSE,
     "larger between b and a"),
    ("the other way round", alarm(0.6, 0.9), alarm(-0.9, -0.6), Change.WORSE, "larger between a and b"),
    ("overlapping", alarm(0.2, 0.6), alarm(0.5, 0.9), Change.SAME, ""),
    ("smaller", alarm(0.6, 0.9), alarm(0.2, 0.5), Change.SAME, ""),
    ("no interval", alarm(0.2, 0.5), alarm(0.6, float("inf")), Change.SAME, ""),
    ("no such pair", alarm(0.2, 0.5), alarm(0.6, 0.9, groups=("a", "c")), Change.SAME, ""),
    ("justified no longer", replace(alarm(0.3, 0.5, FLAG), justification=JUSTIFIED), alarm(0.3, 0.5, FLAG),
     Change.WORSE, "justified no longer"),
    ("no longer decided", alarm(0.3, 0.5, FLAG), alarm(0.0, 0.9, OPEN), Change.UNDECIDED, ""),
    ("pass, undecided", alarm(0.0, 0.1, PASS), alarm(0.0, 0.9, OPEN), Change.UNDECIDED, ""),
    ("less severe", alarm(0.6, 0.9), alarm(0.3, 0.5, FLAG), Change.BETTER, ""),
    ("decided at last", alarm(0.0, 0.9, OPEN), alarm(0.0, 0.1, PASS), Change.BETTER, ""),
    ("fixed", alarm(0.6, 0.9), alarm(0.0, 0.1, PASS), Change.FIXED, ""),
    ("not made", alarm(0.6, 0.9), None, Change.GONE, ""),
    ("pass", alarm(0.0, 0.1, PASS), alarm(0.2, 0.3, PASS), Change.SAME, ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("about", "before", "after", "change", "why"), BECOMES, ids=[row[0] for row in BECOMES]
)
def test_what_a_finding_has_become(
    about: str, before: Finding | None, after: Finding | None, change: Change, why: str
) -> None:
    """Verdicts first; an alarm that stays is worse where its interval lies wholly beyond the
    earlier one.
    """
    runs = [results(*(one for one in [finding] if one is not None)) for finding in (before, after)]
    (found,) = changes_between(*runs)
    assert (found.change, found.why) == (change, why)
    assert found.nodeid == disparity().test_id
    assert found.id == (runs[0] if after is None else runs[1]).ids[0]


def test_they_stand_worst_first_and_are_counted() -> None:
    """Findings are matched by what they compare, whatever their order in the file."""
    other, third = ({"outcome": name} for name in ("word_count", "salary"))
    before = results(alarm(0.6, 0.9), replace(alarm(0.0, 0.1, PASS), **other))
    after = results(
        replace(alarm(0.6, 0.9), **third), replace(alarm(0.6, 0.9), **other), alarm(0.0, 0.1, PASS)
    )
    found = changes_between(before, after)
    assert [(one.change, one.finding.outcome, one.at, one.verdicts) for one in found] == [
        (Change.NEW, "salary", 0, "FAIL"),
        (Change.NEW, "word_count", 1, "PASS → FAIL"),
        (Change.FIXED, "sentiment", 2, "FAIL → PASS"),
    ]
    assert counted(found) == "2 new, 1 fixed"
    assert counted(()) == "nothing to compare"
