"""One document of every part, rendered by every sink: each shows what it can, and obeys nothing."""

from __future__ import annotations

import datetime
import json
from typing import get_args

import pytest

from pytest_fairness.model import Verdict
from pytest_fairness.reports import pdf
from pytest_fairness.reports.charts import Bars, Forest, ForestRow, OverTime
from pytest_fairness.reports.escaping import columns_of
from pytest_fairness.reports.html import render
from pytest_fairness.reports.markdown import page_markdown
from pytest_fairness.reports.plain_text import WIDTH, page_text
from pytest_fairness.reports.sections import (
    Banner,
    Counts,
    Details,
    Dialogue,
    Entry,
    Facts,
    Link,
    Notes,
    Page,
    Part,
    Printed,
    ScoredReply,
    Section,
    SideBySide,
    Statements,
    Table,
)
from pytest_fairness.reports.slack import page_message

from .factories import HOSTILE
from .test_markdown import OURS, Rendered, is_inert
from .test_pdf import drawn

ROW = ForestRow(label="row", value=0.5, words="drawn")
PARTS: tuple[Part, ...] = (
    "a paragraph",
    Table(
        caption="a caption",
        head=("group", "rate", "verdict"),
        rows=(("a row", "12.5 %", Entry(verdict=Verdict.FAIL, small=("small print",))),),
        more="and 3 more rows",
    ),
    Facts(rows=(("a fact", "its value"),)),
    Link(words="a link", to="first"),
    Notes(items=("a note",)),
    Printed(lines=("  a printed line",)),
    Counts(rows=((Verdict.FAIL, 1_200), (Verdict.PASS, 0))),
    Statements(
        items=(
            Section(
                heading="",
                about="t.py::test",
                verdict=Verdict.FLAG,
                sentence="A statement.",
                marks=("simulated",),
                parts=(Notes(items=("beside it",)),),
            ),
        ),
        more="and 2 more statements",
    ),
    Dialogue(about="a dialogue", turns=(("user", "a question"), ("reply", "an answer"))),
    SideBySide(
        about="two replies",
        replies=(ScoredReply(who="Emily", score="0.5", words=(("alike", ""), ("own", "differs"))),),
    ),
    Details(summary="a summary", parts=("inside of it",)),
    Section(heading="an inner heading", sentence="Its sentence.", parts=("an inner part",)),
    Forest(title="a forest", axis="x", rows=(ROW,)),
    OverTime(title="a course", axis="x", rows=(ROW,)),
    Bars(title="some bars", axis="x", bars={"a": {"yes": 1.0}}),
)
#: What a sink that has room for everything shows of the parts above.
WORDS = (
    *("a title", "a lead", "a banner", "a heading", "a chip", "a paragraph", "a caption", "a row"),
    *(
        "12.5 %",
        "FAIL",
        "small print",
        "and 3 more rows",
        "a fact",
        "its value",
        "a link",
        "a note",
    ),
    *("a printed line", "1,200 FAIL", "FLAG", "A statement.", "simulated", "beside it"),
    *("t.py::test", "and 2 more statements", "a dialogue", "a question", "an answer"),
    *("two replies", "Emily", "alike", "a summary", "inside of it"),
    *("an inner heading", "Its sentence.", "an inner part"),
)
#: What a cell of a terminal's table has no room for.
NOT_IN_TEXT = {"small print"}
#: What a statement leaves out on the page, which links to the card that has it.
NOT_IN_HTML = {"1,200 FAIL", "beside it", "t.py::test"}


def page_of(*parts: Part) -> Page:
    section = Section(heading="a heading", id="first", chips=("a chip",), parts=parts)
    return Page(
        name="all",
        title="a title",
        lead="a lead",
        sections=(section,),
        banners=(Banner(kind="note", about="a banner", words="is read first"),),
    )


def test_every_part_stands_in_the_document() -> None:
    """A type of part that is added has to be shown here."""
    assert {type(part) for part in PARTS} == set(get_args(Part))


def missing(shown: str) -> set[str]:
    return {words for words in WORDS if words not in shown}


def test_text_and_markdown_show_every_part() -> None:
    page = page_of(*PARTS)
    assert missing(page_text(page)) == NOT_IN_TEXT
    assert missing(Rendered(page_markdown(page)).all_words) == set()


def test_html_shows_every_part() -> None:
    """Counts as numbers, and pictures, too."""
    shown = render(page_of(*PARTS), {"id": "", "versions": None}).replace("\u00a0", " ")
    assert missing(shown) == NOT_IN_HTML
    assert shown.count("<svg") == 3


def test_the_pdf_shows_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "_found", lambda: ())
    drawing = pdf._Drawing("run", datetime.datetime(2026, 2, 28, tzinfo=datetime.UTC))
    assert missing(" ".join(drawn(drawing.bytes_of(page_of(*PARTS))).split())) == set()


def test_slack_shows_statements_facts_and_notes() -> None:
    """A channel has no room for tables and conversations."""
    page = page_of(*PARTS)
    shown = json.dumps(page_message(page), ensure_ascii=False)
    for words in (
        "a paragraph",
        "a fact: its value",
        "• a note",
        "1,200 FAIL",
        "*FLAG* [simulated]",
    ):
        assert words in shown


def hostile_parts() -> tuple[Part, ...]:
    return (
        HOSTILE,
        Table(caption=HOSTILE, head=(HOSTILE,), rows=((HOSTILE,),), more=HOSTILE),
        Facts(rows=((HOSTILE, HOSTILE),)),
        Notes(items=(HOSTILE,)),
        Statements(
            items=(
                Section(
                    heading=HOSTILE,
                    about=HOSTILE,
                    verdict=Verdict.FAIL,
                    sentence=HOSTILE,
                    marks=(HOSTILE,),
                ),
            ),
            more=HOSTILE,
        ),
        Dialogue(about=HOSTILE, turns=((HOSTILE, HOSTILE),)),
        SideBySide(
            about=HOSTILE,
            replies=(ScoredReply(who=HOSTILE, score=HOSTILE, words=((HOSTILE, "differs"),)),),
        ),
        Details(summary=HOSTILE, parts=(HOSTILE,)),
        Section(heading=HOSTILE, sentence=HOSTILE, chips=(HOSTILE,), parts=(HOSTILE,)),
    )


def test_no_part_is_wider_than_a_terminal() -> None:
    """But for printed lines, which stay as they are."""
    lines = page_text(page_of(*hostile_parts())).splitlines()
    assert max(map(columns_of, lines)) <= WIDTH


def test_hostile_parts_are_inert() -> None:
    """In every sink, wherever they stand."""
    page = page_of(Printed(lines=(HOSTILE,)), *hostile_parts())
    text = page_text(page)
    assert not {"\x1b", "\x07", "\u202e", "\x00", "\ud800"} & set(text)
    marked = Rendered(page_markdown(page))
    assert set(marked.tags) <= OURS | {"h4", "pre"}
    assert marked.comments == 0
    assert is_inert(marked.words)
    shown = render(page, {"id": "", "versions": None})
    assert "<script" not in shown
    body = json.dumps(page_message(page)["blocks"][1:], ensure_ascii=False)
    assert "<script" not in body
    assert "\x1b" not in body
