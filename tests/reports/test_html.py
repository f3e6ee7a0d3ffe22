"""The HTML report: self-contained, inert, accessible, and complete."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fairness.errors import FairnessError
from pytest_fairness.model import Verdict
from pytest_fairness.reports.charts import draw
from pytest_fairness.reports.finding_sections import MOST_ROWS, effect_chart, group_chart
from pytest_fairness.reports.html import render, write_html
from pytest_fairness.reports.report_page import report_page

from .factories import (
    HOSTILE,
    categorical,
    disparity,
    four_fifths,
    group,
    of_each_kind,
    pair,
    passing,
    results,
    run_folder,
    trial,
)
from .page_reader import Page


def _page(tmp_path, *findings, trials=(), **changes) -> Page:
    folder = run_folder(tmp_path, results(*findings, **changes), list(trials))
    return Page(write_html(folder).read_text(encoding="utf-8"))


EVERY = of_each_kind(simulated=True)


@pytest.fixture(scope="module")
def every(tmp_path_factory) -> tuple[str, Page]:
    """A page with a finding of each kind: its text, and what a reader of it sees."""
    text = write_html(
        run_folder(tmp_path_factory.mktemp("run"), results(*EVERY), [trial()])
    ).read_text("utf-8")
    return text, Page(text)


def test_the_page_is_made_from_the_files_alone_and_lies_beside_them(tmp_path, every):
    """A finished run's folder is enough, and the same files give the same page. What a suite handed
    in, torn, foreign or nested without end: an error with the file, and no page.
    """
    path = write_html(run_folder(tmp_path, results(*EVERY), [trial()]))
    assert path == tmp_path / "report.html"
    assert path.read_text("utf-8") == every[0]
    with pytest.raises(FairnessError, match=r"holds no findings\.json"):
        write_html(tmp_path / "nowhere")
    for content in ("{", "[]", "{}", '{"name": 1}', "[" * 100_000):
        (tmp_path / "suite.page.json").write_text(content)
        with pytest.raises(FairnessError, match=r"suite\.page\.json cannot be read"):
            write_html(tmp_path)
        assert not (tmp_path / "suite.html").exists()


def test_the_page_runs_nothing_and_loads_nothing(every):
    """No script, no handler, no remote address; a policy that would forbid them."""
    text, page = every
    policy = next(
        meta for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"
    )
    assert (policy["content"] or "").startswith(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    )
    for _tag, attributes in page.elements:
        assert not [
            name
            for name in attributes
            if name.startswith("on") or name in ("src", "action", "style")
        ]
        assert (attributes.get("href") or "#").startswith("#")
    assert set(re.findall(r"https?://[^\s\"<]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in text
    assert "url(" not in text


def test_a_page_of_hostile_text_is_inert(tmp_path):
    """Markup, control codes and overrides in every field and every reply come out as letters."""
    finding = disparity(
        sentence=HOSTILE, protected_class=HOSTILE, outcome=HOSTILE, unit=HOSTILE, notes=(HOSTILE,),
        description=HOSTILE, model_endpoint=HOSTILE, test_statistic=HOSTILE, cluster=HOSTILE, test_id=HOSTILE,
        pairs=(pair(HOSTILE, "b", notes=(HOSTILE,), metric=HOSTILE),),
        group_results=(group(HOSTILE), group("b")),
        justification={"reason": HOSTILE, "approver": HOSTILE},
    )  # fmt: skip
    record = trial(HOSTILE, HOSTILE, messages=[{"role": HOSTILE, "content": HOSTILE}])
    record["endpoint"]["name"] = HOSTILE
    record["cell"]["groups"] = {HOSTILE: HOSTILE}
    folder = run_folder(
        tmp_path,
        results(
            finding,
            categorical(group_results=(group("a", None, shares={HOSTILE: 1.0}),)),
            missing=[HOSTILE],
            items=[
                {"nodeid": HOSTILE, "outcome": "failed", "findings": [0]},
                {"nodeid": f"own {HOSTILE}", "outcome": "failed", "message": HOSTILE},
            ],
            run={key: [HOSTILE] for key in ("command", "endpoints")}
            | {"id": HOSTILE, "versions": {HOSTILE: HOSTILE}},
        ),
        [
            record,
            {
                "type": "engine",
                "identity": "1",
                "endpoint": {"name": HOSTILE, "identity": {"model": HOSTILE}},
            },
            {
                "type": "design",
                "test": HOSTILE,
                "texts": {HOSTILE: HOSTILE},
                "systems": [HOSTILE],
                "parameters": {HOSTILE: HOSTILE},
            },
        ],
    )
    text = write_html(folder).read_bytes().decode("utf-8")
    page = Page(text)  # would raise on a <script> or an <img>
    assert "onerror=alert" in page.text
    assert "Examples: what was asked" in page.text
    for character in "\x1b\x07\r\u202e\u200b\x00\u2028":
        assert character not in text
    assert "\\x1b]0;owned\\x07" in page.text


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.text(st.characters(), min_size=1, max_size=80))
def test_any_text_leaves_the_page_well_formed(tmp_path, text):
    """The page parses into our own elements whatever the model said."""
    finding = disparity(
        sentence=text,
        outcome=text,
        group_results=(group(text), group("b")),
        pairs=(pair(text, "b"),),
    )
    run = results(finding)
    Page(render(report_page(run, tmp_path), run.run))


def test_every_picture_has_a_title_a_description_and_its_table(every):
    """Who cannot see a picture loses nothing: its figures stand in a table with captions and
    headers after it, which one can reach by the keyboard.
    """
    page = every[1]
    names = [tag for tag, _ in page.elements]
    places = [
        at
        for at, (tag, attributes) in enumerate(page.elements)
        if tag == "svg" and "role" in attributes
    ]
    assert (
        len(places) == 11
    )  # three each with refusals, but one for the four fifths and one for the baseline
    for at, following in itertools.pairwise([*places, len(names)]):
        assert names[at + 1 : at + 3] == ["title", "desc"]
        assert "table" in names[at:following]
    assert all(
        svg["role"] == "img" and svg["aria-labelledby"] for svg in page.all("svg") if "role" in svg
    )
    identities = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(identities) == len(set(identities))
    assert all(names[at + 1] == "caption" for at, name in enumerate(names) if name == "table")
    assert all(header.get("scope") in ("col", "row") for header in page.all("th"))
    boxes = [attributes for attributes in page.all("div") if attributes.get("class") == "scroll"]
    assert len(boxes) == names.count("table")
    assert all(box.get("tabindex") == "0" and box.get("aria-label") for box in boxes)
    for table in re.findall(r"<table.*?</table>", every[0], re.DOTALL):
        assert len({len(re.findall(r"<t[hd]", row)) for row in table.split("<tr")[1:]}) == 1


def test_the_page_tells_what_a_reader_needs(every):
    """Run, endpoint, seed, commit and versions; each finding's sentence, family and notes."""
    for words in (
        "2026-02-28-001", "gpt-4o", "20260228", "0123456789abcdef", "3.11.7", "789 answered, 11 refused",
        "$1.2345 for 800 trials", "Black is worse off than white on sentiment", "6 tests in the family",
        "Kruskal–Wallis over all groups", "four fifths", "94.20 → 89.20",
    ):  # fmt: skip
        assert words in every[1].text


def test_what_limits_a_run_is_loud(tmp_path):
    """A banner at the top and a mark at the finding where it is simulated or replayed; tests that
    never finished or failed without a finding are named: a page never looks complete when it is
    not.
    """
    items = [{"nodeid": "t::broken", "outcome": "error", "message": "endpoint is down"}]
    page = _page(tmp_path / "a", disparity(simulated=True), items=items, missing=["t::absent"])
    assert "Simulated endpoint. No model was asked" in page.text
    assert [item for item in page.all("li") if item.get("class") == "mark simulated"]
    assert (
        "The session failed 1 of 2 fairness tests failed; 1 of 2 fairness tests never finished."
        in page.text
    )
    assert "endpoint is down" in page.text
    page = _page(tmp_path / "b")
    assert "This run made no finding." in page.text
    assert "Simulated endpoint" not in page.text
    assert "Replayed." in _page(tmp_path / "c", disparity(replayed=True)).text


def test_examples_stand_side_by_side_by_group(tmp_path):
    """The same prompts for each group in the finding's order, a refusal if any, only its own
    endpoint; cut.
    """
    trials = [
        record
        for name in ("asian", "black", "white")
        for record in (
            trial(name, f"reply to {name}" + " and so on" * 100_000),
            trial(name, "second time", repetition=1),
            trial(name, f"refused {name}", status="refused", repetition=2),
            trial(name, "other model", endpoint={"name": "other", "identity": ""}),
        )
    ]
    first, second = disparity(), disparity(test_id="tests/test_names.py::test_again")
    page = _page(tmp_path, first, second, trials=trials)
    assert (
        page.text.index("reply to white")
        < page.text.index("reply to black")
        < page.text.index("reply to asian")
    )
    assert "refused white" in page.text
    assert "second time" not in page.text
    assert "other model" not in page.text
    assert page.text.count("reply to white") == 1
    assert "more characters]" in page.text
    assert (tmp_path / "report.html").stat().st_size < 150_000
    at = results(first, second).ids[0]
    assert f"Examples of these groups stand under finding {at}." in page.text
    assert [link for link in page.all("a") if link["href"] == f"#{at}"]


def test_pictures_are_well_formed_for_any_figures():
    """Infinite, equal, missing and huge figures still make a picture; many pairs make a readable
    one.
    """
    groups = (
        group("a", 0.0, low=0.0, high=0.0),
        group("b", 0.0, low=None, high=None),
        group("c", 1e9, low=-1e9, high=2e9),
    )
    pairs = tuple(
        pair(f"g{at}", "b", verdict, effect, effect_low=low, effect_high=high)
        for at, (verdict, effect, low, high) in enumerate(
            [(v, e, e - 1, e + 1) for v in Verdict for e in (0.0, 99.0, -0.4)]
            + [
                (Verdict.FAIL, float("inf"), float("-inf"), float("inf")),
                (Verdict.PASS, 0.0, None, None),
            ]
        )
    )
    for finding in (
        disparity(group_results=groups, pairs=pairs),
        disparity(group_results=groups[:2], pairs=pairs[:1]),
        disparity(pairs=pairs * 9),
        four_fifths(group_results=(group("a", 0.0), group("b", 0.0))),
    ):
        for chart in (group_chart(finding), effect_chart(finding)):
            drawing = None if chart is None else draw(chart, "x")
            for element in ET.fromstring(str(drawing)).iter() if drawing else ():
                for name in ("x", "x1", "x2", "cx"):
                    assert 0 <= float(element.get(name, "0").removesuffix("%")) <= 100
    many = effect_chart(disparity(pairs=pairs * 9))
    assert many is not None
    assert f"The {MOST_ROWS} most telling of {len(pairs) * 9} pairs" in many.caption
    assert group_chart(disparity(group_results=(group("a", None),))) is None


def test_groups_are_marked_where_they_are_worse_off_or_below_four_fifths():
    """Colour never carries a verdict alone: the group is named, and its mark has the verdict's
    shape. The four-fifths line stands at four fifths of the named reference group, or of the
    highest rate where none is named.
    """
    chart, other = group_chart(disparity()), group_chart(passing())
    assert chart is not None
    assert other is not None
    marked = {row.label: (row.words, row.verdict) for row in chart.rows}
    assert (marked["black"], marked["white"]) == (
        ("0.560 worse off", Verdict.FAIL),
        ("0.720", None),
    )
    assert {row.verdict for row in other.rows} == {None}
    named: tuple[dict[str, Any], ...] = (
        {},
        {"details": {}},
        {"details": {"reference": {"race": "black"}}},
    )
    declared, highest, other = (group_chart(four_fifths(**details)) for details in named)
    assert declared == highest
    assert "(7.7%)" in declared.caption
    assert "(5.2%)" in other.caption


def test_a_card_acquits_nobody_and_its_tables_fold(tmp_path):
    """The name of a test stands as what it requires; a wide table has its titles at each cell, for
    a phone.
    """
    finding = disparity(description="Applicants of every race and gender are invited alike.")
    page = write_html(run_folder(tmp_path, results(finding))).read_text(encoding="utf-8")
    assert "What the test requires: Applicants of every race and gender are invited alike." in page
    assert '<table class="wide">' in page
    assert 'data-label="verdict"' in page
    assert ".wide td::before { content: attr(data-label)" in page
