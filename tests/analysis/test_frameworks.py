"""Laws and standards are dated data: every line has a source and a day, and an odd one is refused.

No test here goes by the calendar.
"""

from __future__ import annotations

import datetime

import pytest
from tools.stale_frameworks import stale

from pytest_fairness.analysis.controls import CONTROLS
from pytest_fairness.analysis.frameworks import (
    framework_called,
    frameworks,
    is_old,
    parse_frameworks,
)
from pytest_fairness.errors import StoreError, UsageError

LINE = (
    'clause = "Art. 1", title = "A test", artefact = "log", strength = "direct", '
    'source = "https://example.org/1", checked_on = 2026-02-28'
)
HEAD = '[a]\nrule = "R"\napplies = "now"\nsource = "https://example.org"\nchecked_on = 2026-02-28\n'


def test_every_line_has_a_source_and_a_day() -> None:
    every = frameworks()
    assert len(every) >= 12
    for name, framework in every.items():
        assert name == name.lower()
        read = [(framework.source, framework.checked_on)]
        read += [(line.source, line.checked_on) for line in framework.lines]
        for source, checked_on in read:
            assert source.startswith("https://")
            assert datetime.date(2026, 1, 1) <= checked_on
        clauses = [line.clause for line in framework.lines]
        assert len(clauses) == len(set(clauses)), name


def test_controls_of_iso_42001_are_those_of_a_finding() -> None:
    assert {line.clause for line in frameworks()["iso-42001"].lines} <= set(CONTROLS)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (LINE.replace("https", "http"), "regex"),
        (LINE.replace(", checked_on = 2026-02-28", ""), "checked_on"),
        (LINE.replace('source = "https://example.org/1", ', ""), "source"),
        (LINE.replace("2026-02-28", '"yesterday"'), "date"),
        (LINE.replace("direct", "proof"), "proof"),
        (LINE.replace('"log"', '"diary"'), "diary"),
        (LINE.replace("A test", ""), "length"),
        (f'{LINE}, more = "x"', "more"),
    ],
)
def test_another_shape_is_refused(text: str, why: str) -> None:
    whole = f"{HEAD}lines = [{{ {LINE} }}]\n"
    assert parse_frameworks(whole, "x.toml")["a"].lines[0].artefact == "log"
    with pytest.raises(StoreError, match=f"x.toml.*{why}"):
        parse_frameworks(f"{HEAD}lines = [{{ {text} }}]\n", "x.toml")
    with pytest.raises(StoreError, match=r"x\.toml"):
        parse_frameworks(f"{HEAD}lines = []\n", "x.toml")


def test_an_unknown_name_lists_those_that_exist() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'eu-ai-act'\?; there are .*nist-ai-rmf"):
        framework_called("eu-act")
    assert framework_called("nyc-ll144").rule.startswith("New York")


def test_what_was_read_more_than_a_year_ago_is_old() -> None:
    read = datetime.date(2026, 2, 28)
    assert not is_old(read, datetime.date(2027, 2, 28))
    assert is_old(read, datetime.date(2027, 3, 1))


def test_the_weekly_workflow_names_rules_and_lines_that_are_old() -> None:
    """A day after the year both are; what was read again is not."""
    fresh = LINE.replace("Art. 1", "Art. 2").replace("checked_on = 2026", "checked_on = 2027")
    every = parse_frameworks(f"{HEAD}lines = [{{ {LINE} }}, {{ {fresh} }}]\n", "x.toml")
    assert stale(every, datetime.date(2027, 2, 28)) == []
    assert stale(every, datetime.date(2027, 3, 1)) == [
        "a, the rule: read on 2026-02-28, read it again: https://example.org",
        "a, Art. 1: read on 2026-02-28, read it again: https://example.org/1",
    ]
