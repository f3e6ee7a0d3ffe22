"""Templates are data: only plain slots are filled, once, with words that agree; all else is sent
byte for byte.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.design.templates import (
    SLOTS,
    Template,
    article,
    pronouns,
    read_template,
    templates,
)
from pytest_fairness.errors import UsageError


def test_slots_are_filled_once() -> None:
    """Each slot in order of appearance; a value that looks like a slot, or like any template
    language, is as it is.
    """
    template = Template("t", "Dear {name}, as {role} you, {name}, …")
    assert template.slots == ("name", "role")
    assert template.render({"name": "Ana", "role": "nurse"}) == "Dear Ana, as nurse you, Ana, …"
    hostile = "{role} {0.__class__} {{7*7}} {% x %} $(id) %(x)s \\1 \\g<0>"
    assert (
        Template("t", "[{name}|{role}]").render({"name": hostile, "role": "{name}"})
        == f"[{hostile}|{{name}}]"
    )
    with pytest.raises(UsageError, match=r"template 't': no value for the slot \{role\}"):
        Template("t", "{name} {role}").render({"name": "Ana"})


VERBATIM = (
    '{"name": {"a": [1, {}]}, "b": {}}', "{{7*7}}", "{% for x in y %}{% endfor %}", "$(whoami) `id`", "%(x)s %s %d",
    "{}", "{1, 2}", "{3}", "a { b", "a } b", "{{}}", '{"x":\n {"y": 2}}', "\\frac{1}{2}",
    "tabs\tand\r\nCRLF \u202e\u2028 \x07",
)  # fmt: skip
CLEVER = (
    "{0.__class__.__init__.__globals__}", "{name.__class__}", "{name[0]}", "{x!r:>999999999}", "{x!r}", "{x:>9}",
    "{ name }", "{name }", "{ name}", "{0[a]}", "{:x}", "{{name}}",
)  # fmt: skip


def test_other_braces_are_verbatim() -> None:
    """JSON and other people's template languages pass through untouched, around a slot that is
    filled.
    """
    for text in VERBATIM:
        assert Template("t", f"{text} {{name}}").render({"name": "Ana"}) == f"{text} Ana"


def test_ids_from_every_kind_of_source(tmp_path: Path) -> None:
    """t1, t2 … for texts, the stem for files, the key of a mapping, a template's own."""
    path = tmp_path / "Letter Request (v2).txt"
    path.write_text("File {name}")
    made = templates(["One {name}", path, Template("mine", "Two {name}"), "Three {name}"])
    assert [template.id for template in made] == ["t1", "letter_request_v2", "mine", "t4"]
    assert [t.id for t in templates({"first": "A {name}", "second": path})] == ["first", "second"]
    assert [t.id for t in templates("A {name}")] == ["t1"]
    assert templates(path)[0].text == "File {name}"


def test_files_are_read_byte_for_byte(tmp_path: Path) -> None:
    """Line endings, trailing blanks and a byte-order mark stay as they are; what cannot be read
    names itself.
    """
    path = tmp_path / "letter.txt"
    path.write_bytes("\ufeffA\r\n{name} \n\n".encode())
    assert read_template(path).render({"name": "Zoë"}) == "\ufeffA\r\nZoë \n\n"
    (tmp_path / "latin.txt").write_bytes(b"ok\n\xe9 {name}")
    for name, message in (
        ("absent.txt", r"absent\.txt: cannot be read"),
        ("", "cannot be read"),
        ("latin.txt", "2: not UTF-8"),
    ):
        with pytest.raises(UsageError, match=message):
            read_template(tmp_path / name)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "the list is empty"),
        ({}, "the list is empty"),
        ([3], "template 't1' is int"),
        ({"a": 3}, "template 'a' is int"),
        *(({"t": text}, "template 't'") for text in ("", "  \n", "a\x00b {x}", "half \ud800 {x}")),
        # An id goes into file names and test ids.
        *(
            ({id_: "text"}, "template id")
            for id_ in ("", "A", "../x", ".hidden", "-x", "a b", "ä", "x" * 81, "a:b")
        ),
        # Attributes, indices, conversions and format specifications are not slots.
        *(([f"first\n{field} there"], f"template 't1', line 2: {field!r}") for field in CLEVER),
        # Two ids alike would make one block of two; two texts alike ask the same twice.
        (
            [Template("a", "x {name}"), Template("a", "y {name}")],
            "template: the id 'a' stands twice",
        ),
        (["x {name}", "x {name}"], "template: the same text 'x {name}' stands twice"),
    ],
)
def test_what_is_no_template(source: Any, message: str) -> None:
    """The message says which entry and line, and what it should be."""
    with pytest.raises(UsageError, match=re.escape(message)):
        templates(source)


def test_spans_say_where_each_value_stands() -> None:
    """Reports and signals point at the values themselves."""
    text, spans = Template("t", "{a} and {b}, {a}").fill({"a": "x", "b": "yy"}, {"a": "first"})
    assert [(slot, text[start:end]) for slot, start, end in spans] == [
        ("a", "first"),
        ("b", "yy"),
        ("a", "x"),
    ]


texts = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="{}\x00"), max_size=30
)


@settings(max_examples=40)
@given(
    before=texts,
    value=st.text(st.characters(blacklist_categories=("Cs",)), max_size=40),
    after=texts,
)
def test_only_the_slot_changes(before: str, value: str, after: str) -> None:
    """For any text around the slot and any value in it, the result is their concatenation."""
    assert (
        Template("t", f"{before}{{name}}{after}").render({"name": value})
        == f"{before}{value}{after}"
    )


# ---------------------------------------------------------------- words that follow a value

SENTENCE = Template(
    "t",
    "{They} {are} here and {have} {their} bag, which {were} not {theirs}; ask {them}, {they} "
    "work{s} and teach{es} by "
    "{themself}. {Do} {they}? {Their} call.",
)


@pytest.mark.parametrize(
    ("words", "forms"),
    [
        ("she", "She is has her was hers her she works teaches herself Does she Her"),
        ("he/him", "He is has his was his him he works teaches himself Does he His"),
        (
            "they/them",
            "They are have their were theirs them they work teach themself Do they Their",
        ),
        ("ze/hir", "Ze is has hir was hirs hir ze works teaches hirself Does ze Hir"),
        (
            "ae/aer/aer/aers/aerself",
            "Ae is has aer was aers aer ae works teaches aerself Does ae Aer",
        ),
    ],
)
def test_every_case_and_every_verb(words: str, forms: str) -> None:
    """One sentence holds all five cases and all agreement slots, in lower and upper case."""
    expected = (
        "{} {} here and {} {} bag, which {} not {}; ask {}, {} {} and {} by {}. {} {}? {} call."
    )
    assert SENTENCE.render(pronouns(words)) == expected.format(*forms.split())
    assert all(
        pronouns(known).keys() == SLOTS for known in ("she", "he", "they", "xe", "ze", "ey", "fae")
    )


def test_unknown_pronouns_are_refused() -> None:
    """A typo never becomes a pronoun; the message lists what is known."""
    for words in ("", "it", "she/him", "she/her/hers/x", "a/b", "a/b/c/d/", "//", "she her"):
        with pytest.raises(UsageError, match="unknown pronouns"):
            pronouns(words)


AN = ("IT engineer", "engineer", "hour-long talk", "honest person", "heir", "18-year-old", "8-year-old", "11", "MRI",
      "HR lead", "Asian woman", "unnamed person", "umbrella", "instructor", "ABA therapist", "élève", "“editor”",
      "(unclear)")  # fmt: skip
A = ("nurse", "university lecturer", "European", "one-off", "user", "UX designer", "Black woman", "110-year-old",
     "25-year-old", "house", "Ukrainian", "unit", "NASA engineer", "BBC journalist", "7", "PhD",
     "union member")  # fmt: skip


def test_the_article_follows_the_sound() -> None:
    """Before a vowel sound "an", before a consonant sound "a", however they are spelled; before
    nothing, nothing.
    """
    assert [text for text in AN if article(text) != "an"] == []
    assert [text for text in A if article(text) != "a"] == []
    template = Template("t", "{A_role} and {a_role}; {a_thing}.")
    assert template.render({"role": "editor", "thing": ""}) == "An editor and an editor; ."
