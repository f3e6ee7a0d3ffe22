"""What reports show of looks: the way of the deciding pair with its picture, the levels of
intervals, the mark of an early stop, and the line about the session.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_fairness.analysis.looks import EARLY, Looking, LookPlan, looks_of, stopped_early
from pytest_fairness.model import Finding, PairResult, Verdict
from pytest_fairness.reports import formatting
from pytest_fairness.reports.changes import changes_between
from pytest_fairness.reports.charts import standalone
from pytest_fairness.reports.finding_sections import (
    finding_section,
    looks_chart,
    looks_section,
    pair_table,
)
from pytest_fairness.reports.html import render
from pytest_fairness.reports.plain_text import lines_of
from pytest_fairness.reports.sections import Page, Table
from pytest_fairness.reports.trend import TrendPoint
from tests.support.findings_schema import conforming

from .factories import HOSTILE, disparity, pair, passing, results

PLAN = LookPlan(names=(10, 20, 40), red=0.015)


def looked(*steps: Finding, plan: LookPlan = PLAN, stopped: str = "", trials: int = 10) -> Finding:
    """The last of *steps* as the finding of as many looks, with so many *trials* a name."""
    looking = Looking(plan)
    for finding in steps:
        look = looking.next_look()
        looking.take(look, finding, trials * look.names)
    return looking.conclusion(stopped)


def of_pair(verdict: Verdict, effect: float, **changes: Any) -> Finding:
    """A finding on one pair, with the interval of a look."""
    judged = pair("white", "black", verdict, effect, confidence=0.964, **changes)
    return disparity(verdict=verdict, reason=judged.reason, pairs=(judged,))


def two_looks(**changes: Any) -> Finding:
    """An alarm at the second look of three."""
    return looked(
        of_pair(Verdict.INCONCLUSIVE, 0.58, corrected_p_value=0.0165),
        of_pair(Verdict.FAIL, 0.67, corrected_p_value=0.0004),
        **changes,
    )


def text_of(finding: Finding) -> str:
    section = looks_section(finding)
    assert section is not None
    return "\n".join(lines_of(section, 100))


def test_the_way_of_the_deciding_pair_stands_beside_its_levels() -> None:
    """A row a look: size, effect, interval with its level, p beside the level for red."""
    section = looks_section(two_looks())
    assert section is not None
    (shown,) = (part for part in section.parts if isinstance(part, Table))
    assert shown.head == (
        "look", "names", "effect d", "interval", "at", "corrected p", "red below", "verdict",
    )  # fmt: skip
    rows = [[str(getattr(cell, "verdict", None) or cell) for cell in row] for row in shown.rows]
    assert rows == [
        ["1 of 3", "10", "+0.58", "+0.28 to +0.88", "96.4 %", ".0165", ".0054", "INCONCLUSIVE"],
        ["2 of 3", "20", "+0.67", "+0.37 to +0.97", "96.2 %", ".0004", ".005", "FAIL"],
    ]
    text = text_of(two_looks())
    assert "Looks planned: 10, 20, 40 names a group" in text
    assert "Looks made: 2 of 3" in text
    assert "Trials: 200 of at most 400" in text
    assert f"Stopped early: {EARLY.partition(': ')[2]}" in text
    assert "Smallest chance at which it would have been red: .0013" in text


def test_the_picture_says_in_words_what_it_shows() -> None:
    """Its title, a row a look with p and level, the margin as dashed lines; no colour alone."""
    chart = looks_chart(two_looks())
    assert chart is not None
    assert [line.value for line in chart.lines] == [0, -0.5, 0.5]
    drawn = standalone(chart) or ""
    assert "<title>white – black at each look</title>" in drawn
    assert (
        "<desc>look 1: 10 names a group +0.58, p .0165 (red below .0054); look 2: 20 names a group "
        "+0.67, p .0004 (red below .005)</desc>"
    ) in drawn
    assert 'class="ring inconclusive"' in drawn
    assert "prefers-color-scheme: dark" in drawn


def test_who_looks_once_has_no_way() -> None:
    """Neither a table, nor a design with a single look."""
    once = LookPlan(names=(20,), red=0.015)
    assert looks_section(disparity()) is None
    assert looks_section(looked(of_pair(Verdict.FAIL, 0.7), plan=once)) is None
    assert looks_chart(disparity()) is None


def test_ratios_and_margins_are_held_against_their_own_lines() -> None:
    """Four fifths shows the ratio, equivalence the difference, with the p of a difference."""
    ratio = {
        "impact_ratio": 0.5,
        "clustered_impact_ratio_low": 0.252,
        "clustered_impact_ratio_high": 0.991,
    }
    chart = looks_chart(looked(of_pair(Verdict.FAIL, -0.8, statistics=ratio)))
    assert chart is not None
    assert chart.axis == "impact ratio, white – black"
    assert [round(line.value, 3) for line in chart.lines] == [0.8, 0.667]
    assert chart.rows[0].words.startswith("0.500, p ")
    margin = {
        "margin": 2.0,
        "interval_low": -2.25,
        "interval_high": -0.868,
        "difference_corrected_p_value": 0.0001,
    }
    unlike = of_pair(
        Verdict.FLAG, -1.1, difference=-1.56, statistics=margin, corrected_p_value=0.083
    )
    finding = looked(unlike)
    chart = looks_chart(finding)
    assert chart is not None
    assert [line.value for line in chart.lines] == [0, -2, 2]
    assert "−1.56 " in text_of(finding)
    assert "−2.25 to −0.868" in text_of(finding)
    looks = looks_of(finding) or {}
    assert looks["way"][0]["corrected_p_value"] == 0.0001
    assert looks["smallest_budget"] < 0.001  # by the difference, not by the p that says alike


def test_what_is_infinite_or_absent_is_no_mark() -> None:
    """A pair without an interval, an endless effect, and a look that did not have the pair."""
    endless = of_pair(Verdict.FAIL, float("inf"), effect_low=None, effect_high=None)
    other = replace(
        of_pair(Verdict.INCONCLUSIVE, 0.3),
        pairs=(pair("white", "asian", Verdict.INCONCLUSIVE, 0.3),),
    )
    text = text_of(looked(other, endless))
    assert "1 of 3" in text
    assert "+∞" in text
    chart = looks_chart(looked(other, endless))
    assert chart is not None
    assert [row.value for row in chart.rows] == [None]


def test_a_hostile_group_stays_text() -> None:
    """In the picture, in the table and in the title."""
    judged = pair(HOSTILE, "black", Verdict.FAIL, 0.7)
    finding = looked(disparity(pairs=(judged,)))
    card = finding_section(finding, "f-0123456789")
    page = render(
        Page(name="report", title="t", lead="", sections=(card,)), {"id": "x", "versions": {}}
    )
    assert "The looks" in page
    assert "<script>alert" not in page
    assert "onerror=alert(2)>" not in page.replace("&gt;", "")


# ---------------------------------------------------------------- levels of intervals


def test_the_head_has_the_level_where_it_is_one() -> None:
    """The pairs of a table have 90 %, those of a look its own; where they differ each says it."""
    assert "90 % interval" in pair_table(disparity(), disparity().pairs).head
    finding = two_looks()
    assert "96.4 % interval" in pair_table(finding, finding.pairs).head
    assert formatting.effect_words(finding) == "d −0.67 (−0.97 to −0.37)"
    levels = formatting.deciding_levels([finding, passing()])
    assert levels == [0.964, 0.9]
    assert formatting.effect_words(finding, levels) == "d −0.67 (−0.97 to −0.37, 96.4 %)"


# ---------------------------------------------------------------- over time


def point_of(finding: Finding, followed: PairResult | None = None) -> TrendPoint:
    return TrendPoint("run", "model", finding, followed or finding.pairs[0])


def test_trends_read_the_base_design() -> None:
    """The figure at 20 names, where the looks went on; that of the last look, where they did not."""
    went_on = looked(
        of_pair(Verdict.INCONCLUSIVE, 0.5),
        of_pair(Verdict.INCONCLUSIVE, 0.4, corrected_p_value=0.02),
        of_pair(Verdict.FLAG, 0.3, corrected_p_value=0.002),
    )
    assert point_of(went_on).value() == pytest.approx((0.4, 0.1, 0.7))
    assert not point_of(went_on).stopped_early
    assert point_of(two_looks()).value() == pytest.approx((0.67, 0.37, 0.97))
    assert point_of(two_looks()).stopped_early
    assert point_of(disparity()).value() == pytest.approx((0.81, 0.51, 1.11))
    unlike = {"margin": 2.0, "interval_low": -2.0, "interval_high": -1.0}
    by_margin = looked(
        of_pair(Verdict.INCONCLUSIVE, -0.5, difference=-1.5, statistics=unlike),
        of_pair(Verdict.INCONCLUSIVE, -0.4, difference=-1.4, statistics=unlike),
        of_pair(Verdict.PASS, -0.3, difference=-1.3, statistics=unlike),
    )
    assert point_of(by_margin).value()[0] == -0.4  # the effect, as of any finding


def test_an_early_stop_beyond_the_base_design_is_none_of_its_figures() -> None:
    """The prefix of 20 names was not what ended the looks."""
    plan = LookPlan(names=(10, 20, 40, 80), red=0.015)
    late = looked(
        of_pair(Verdict.INCONCLUSIVE, 0.5),
        of_pair(Verdict.INCONCLUSIVE, 0.4),
        of_pair(Verdict.FLAG, 0.3, corrected_p_value=0.002),
        plan=plan,
    )
    assert "stopped early" in formatting.marks(late)
    assert not stopped_early(looks_of(late))
    assert stopped_early(looks_of(two_looks()))
    assert not stopped_early(None)


def test_a_larger_alarm_that_stopped_early_says_so() -> None:
    """Beside what has changed since another run."""
    (change,) = changes_between(
        results(of_pair(Verdict.FAIL, 0.9, effect_low=0.8, effect_high=1.0)),
        results(
            looked(of_pair(Verdict.FAIL, 1.9, effect_low=1.8, effect_high=2.0)),
        ),
    )
    assert change.why == f"larger between white and black ({EARLY})"


def test_what_is_said_of_looks_is_as_the_schema_says() -> None:
    """Of looks that went on, that were stopped, and that an alarm ended."""
    cut = looked(of_pair(Verdict.INCONCLUSIVE, 0.5), stopped="stopped by the cost cap: $1")
    went_on = looked(*[of_pair(Verdict.INCONCLUSIVE, 0.4)] * 3)
    for finding in (two_looks(), cut, went_on):
        conforming(json.loads(json.dumps(results(finding).to_dict())))
    assert "Not asked to the end: stopped by the cost cap" in text_of(cut)


# ---------------------------------------------------------------- the session

GRIDS = (
    "Alarms of its grid tests turn a session of a fair system red with a chance of at most 4.2 %"
)


def session(looks: int = 0, tables: int = 0, false_alarm: float | None = 0.042) -> dict[str, Any]:
    return {
        "looks": looks,
        "judged_once": tables,
        "false_alarm_of_looks": 0.042,
        "false_alarm": false_alarm,
    }


@pytest.mark.parametrize(
    ("facts", "always", "line"),
    [
        (session(3), False, ""),
        (session(3), True, f"{GRIDS}."),
        (session(3, 2, 0.13), False, f"{GRIDS}; with those of tables, baselines and other logs that "
         "are judged as they are (2), about 13 %: where that is too often, give these a smaller "
         "alpha=."),
        (session(0, 3, 0.13), False, "Alarms of tables, baselines and other logs that are judged as "
         "they are (3) turn a session of a fair system red with a chance of about 13 %: where that "
         "is too often, give these a smaller alpha=."),
        (session(0, 1, None), True, ""),
        ({}, True, ""),
    ],
)  # fmt: skip
def test_the_line_about_the_session(facts: dict[str, Any], always: bool, line: str) -> None:
    """The bound of what looks; with what cannot look the sum; nothing below 5 % without -v."""
    assert formatting.false_alarm_line(facts, always=always) == line
