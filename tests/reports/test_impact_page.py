"""The tables of New York City's rule in each form: the same figures, and hostile names inert."""

from __future__ import annotations

import csv
import io

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from pytest_fairness import ll144_tables
from pytest_fairness.reports.html import render
from pytest_fairness.reports.impact_page import csv_text, impact_page
from pytest_fairness.reports.markdown import page_markdown
from pytest_fairness.reports.plain_text import page_text

from .factories import HOSTILE
from .page_reader import Page


@pytest.fixture(scope="module")
def found():
    """Three categories of sex and two of race/ethnicity, one of them hostile and one excluded."""
    rows = [("m", "=1+1", at < 40) for at in range(60)] + [
        (HOSTILE, "w", at < 15) for at in range(60)
    ]
    rows += [("x", "w", True), (None, "w", True)]
    frame = pd.DataFrame(rows, columns=["sex", "race", "hired"], dtype=object)
    frame = frame.assign(simulated=True, endpoint=pd.Series([HOSTILE] * len(rows), dtype=object))
    return ll144_tables(
        frame, "hired", sex="sex", race="race", exclude={"x": "one applicant | alone"}
    )


def test_every_form_has_the_figures_and_says_what_the_data_are(found):
    """Title, simulated endpoint, the number unknown, the excluded category with its numbers and
    why.
    """
    document = impact_page(found)
    forms = [page_text(document), page_markdown(document), csv_text(found)]
    page = render(document, {"id": "", "versions": None})
    shown = " ".join(Page(page).words)
    for text in (*forms, shown):
        words = " ".join(text.replace("\\", "").split())
        assert "LL144-format tables (synthetic personas; not a bias audit)" in words
        assert "simulated" in words.lower()
        assert "one applicant | alone" in words
        assert "0.375" in words
    for text in (*forms[:2], shown):
        assert "1 of an unknown category" in text.replace("\\", "")
        assert "excluded by sex: x, 0.8 % of the data (§ 5-301(d))" in " ".join(
            text.replace("\\", "").split()
        )
    rows = list(csv.DictReader(io.StringIO(forms[2])))
    assert [(row["category"], row["applicants"], row["impact_ratio"]) for row in rows][2] == (
        "x",
        "1",
        "",
    )
    assert rows[0]["rate"] == repr(40 / 60)


def test_hostile_names_are_inert_in_every_form(found):
    """No control code, no element, no formula, no workflow command; a cell stays one cell."""
    document = impact_page(found)
    text = page_text(document)
    marked = page_markdown(document)
    table = csv_text(found)
    for shown in (text, marked, table):
        assert not {"\x1b", "\x07", "\u202e", "\x00", "\ud800"} & set(shown)
    assert "\n::set-output" not in text
    rendered = MarkdownIt("gfm-like", {"linkify": False}).render(marked)
    assert "<script" not in rendered
    assert "<img" not in rendered
    assert rendered.count("<tr>") == 4 + 3 + 4
    assert all(len(row) == 9 for row in csv.reader(io.StringIO(table)))
    assert "\n'=1+1" in table.replace(",", "\n")
    page = render(document, {"id": "", "versions": None})
    assert "<script" not in page
    Page(page)
