"""Whatever a model writes, no sink obeys it, and nothing is lost on the way."""

from __future__ import annotations

import csv
import html as stdlib_html
import io
import re
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.reports.escaping import (
    clipped,
    columns_of,
    csv_cell,
    html,
    line,
    shortened,
    terminal,
    visible,
    wrapped,
)

from .factories import FORMULAS, HOSTILE

#: Any text a model may emit, lone surrogates and control codes included.
ANY = st.text(st.characters(), max_size=120) | st.sampled_from(
    [HOSTILE, "\ud800", "\x1b[2J", "\u202e"]
)


def _obeyed(text: str, *, but: str = "") -> list[str]:
    """Characters that a terminal or a parser would act on."""
    return [
        c
        for c in text
        if c not in but and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]


@settings(max_examples=60)
@given(ANY)
def test_a_terminal_obeys_nothing_but_new_lines_and_tabs_and_html_nothing(text):
    """No escape sequence, carriage return, bidi override or lone surrogate; no tag, entity or
    attribute can be opened, and unescaped again it is the visible text.
    """
    shown = terminal(text)
    assert _obeyed(shown, but="\n\t") == []
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert _obeyed(line(text)) == []
    assert stdlib_html.unescape(html(text)) == visible(text)
    assert not set(html(text)) & set("<>\"'")
    assert _obeyed(html(text), but="\n\t") == []


@settings(max_examples=40)
@given(ANY)
def test_a_csv_cell_is_never_a_formula_and_stays_one_cell(text):
    """Read back by a csv reader it is the visible text, an apostrophe before a formula."""
    buffer = io.StringIO()
    csv.writer(buffer).writerow([csv_cell(text), "next"])
    buffer.seek(0)
    rows = list(csv.reader(buffer))
    assert len(rows) == 1
    cell, following = rows[0]
    assert following == "next"
    assert cell in (visible(text, keep="\n"), "'" + visible(text, keep="\n"))
    assert not re.match(r"""[\s"']*[=+\-@\t\r]""", cell) or cell.startswith("'")


def test_openings_of_formulas_get_an_apostrophe_and_numbers_stay_numbers():
    """A figure of ours is none."""
    for text in FORMULAS:
        assert csv_cell(text).startswith("'")
    assert [csv_cell(-0.5), csv_cell(3), csv_cell(None)] == ["-0.5", "3", ""]


def test_what_is_hidden_is_spelt_out():
    """A reader sees what was there."""
    assert terminal("\x1b[31m") == "\\x1b[31m"
    assert terminal("a\rb") == "a\\rb"
    assert terminal("\u202etxt\u200b") == "\\u202etxt\\u200b"
    assert terminal("\ud800\U000e0041") == "\\ud800\\U000e0041"
    assert line("a\nb\tc") == "a\\nb\\tc"
    assert terminal("né 💘 漢\n\t") == "né 💘 漢\n\t"


def test_texts_are_cut_with_a_word_on_what_is_missing():
    """By characters for a page, by columns for a terminal."""
    assert shortened("x" * 10, 10) == "x" * 10
    assert shortened("x" * 2000, 10) == "x" * 10 + " … [1,990 more characters]"
    assert clipped("abcdef", 4) == "abc…"
    assert columns_of(clipped("漢" * 9, 6)) <= 6
    assert columns_of("e\u0301") == 1


@settings(max_examples=40)
@given(ANY, st.integers(8, 60))
def test_wrapping_keeps_every_word_and_the_width(text, width):
    """Nothing is lost and no line is too wide, whatever the script."""
    text = terminal(text)
    lines = wrapped(text, width, "- ", "  ")
    assert all(columns_of(each) <= width for each in lines)
    assert "".join("".join(each[2:].split()) for each in lines) == "".join(text.split())
