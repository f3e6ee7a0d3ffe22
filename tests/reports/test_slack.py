"""The message to a Slack channel: what is in it, how long it gets, and that hostile text stays
text.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from pytest_fairness.model import Verdict
from pytest_fairness.reports.changes import changes_between
from pytest_fairness.reports.escaping import slack
from pytest_fairness.reports.findings_json import ItemResult
from pytest_fairness.reports.slack import message

from .factories import baseline, four_fifths, passing, results

HOSTILE = (
    "<!channel> <@U1> <https://evil.example|click> *PASS* _x_ `code` ~no~ @here #general "
    "www.evil.example :tada: & "
    "\x1b[31m \u202e"
)


def texts(body: dict[str, Any]) -> list[str]:
    return [block["text"]["text"] for block in body["blocks"] if "text" in block]


def test_nothing_is_sent_where_nothing_fails() -> None:
    assert message(results(passing(), passing(verdict=Verdict.FLAG)), None, {}) is None
    xfailed = replace(
        results(four_fifths()),
        items=(ItemResult(nodeid="t.py::a", outcome="xfailed", findings=(0,)),),
    )
    assert message(xfailed, None, {}) is None


def test_a_regression_is_sent_without_a_fail() -> None:
    """With what has changed, and why."""
    before, after = results(passing()), results(passing(verdict=Verdict.FLAG))
    body = message(after, changes_between(before, after), {"CI_JOB_URL": "https://ci.example/1"})
    assert body is not None
    assert "compared: 1 new" in texts(body)[1]
    assert texts(body)[1].endswith(" · <https://ci.example/1|this job>")
    body = message(
        after, changes_between(before, after), {"CI_JOB_URL": "https://ci.example/1|x> <!here"}
    )
    assert body is not None
    assert "<" not in texts(body)[1]
    assert texts(body)[2].startswith("*FLAG* [gpt-4o, new]: ")
    assert message(before, changes_between(after, before), {}) is None


def test_the_overall_score_stands_beside_its_baseline_and_what_is_to_be_done_at_the_end() -> None:
    """What was asked for: the score, the baseline's, what has fallen, and an action that names
    where to look.
    """
    body = message(results(baseline(), four_fifths()), None, {})
    assert body is not None
    assert texts(body)[1].startswith("*Overall letter_score: 89.20 (baseline: 94.20)* · ")
    assert any("• Age: 88.10 (baseline: 96.50)" in text for text in texts(body))
    action = texts(body)[-1]
    assert action.startswith(
        "*Action required:* review the prompts, templates and model for what treats people unlike"
    )
    assert "by age and race" in action
    assert "gender" not in action  # it has not fallen
    assert "mend and test again, entering what is done in mitigations.yaml" in action
    assert "approved as a baseline, with a justification" in action
    assert "justifications.yaml" not in action  # nothing is flagged
    flagged = message(results(four_fifths(), baseline(verdict=Verdict.FLAG)), None, {})
    assert flagged is None or "justifications.yaml" not in texts(flagged)[-1]


def test_hostile_text_stays_text() -> None:
    """Slack's three characters are escaped by its rules; no mention, link, emoji or markup is left."""
    shown = slack(HOSTILE)
    assert not re.search(
        r"[<>*`~]|[@#]\w|://|:tada:|www\.|[\x00-\x1f\u202e]|\b_|&(?!(amp|lt|gt);)", shown
    ), shown
    assert (
        slack("letter_score by race_ethnicity: 3 < 4 & 5")
        == "letter_score by race_ethnicity: 3 &lt; 4 &amp; 5"
    )
    finding = replace(
        four_fifths(), sentence=HOSTILE * 100, model_endpoint=HOSTILE, test_id=HOSTILE * 100
    )
    body = message(results(finding, run={"id": HOSTILE, "endpoints": [HOSTILE]}), None, {})
    assert body is not None
    for text in texts(body)[1:]:
        assert not re.search(r"[<>`~]|[@#]\w|://|[\x00-\x09\x1b\u202e]", text), text
    assert all(
        block["text"].get("verbatim") for block in body["blocks"] if block["type"] == "section"
    )


def test_a_thousand_findings_fit() -> None:
    """50 blocks, 3,000 characters a text, 13,000 in all, and a word on what is left out."""
    for sentence in ("short", "&" * 5000):
        findings = [replace(four_fifths(), sentence=sentence) for _ in range(1000)]
        body = message(results(*findings), None, {})
        assert body is not None
        assert len(body["blocks"]) <= 50
        assert max(map(len, texts(body))) <= 3000
        assert len(texts(body)[0]) <= 150
        assert len(json.dumps(body["blocks"])) <= 13_000
        shown = len(body["blocks"]) - 5
        assert texts(body)[-2] == f"… and {1000 - shown} more, in the report"
