"""File names: readable, portable, and one for each test and score."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.baselines.folder import baseline_name, slug

TEXTS = st.text(st.characters(), max_size=400)


def test_a_name_tells_module_test_and_score() -> None:
    """A reader of the folder finds the baseline without opening it."""
    name = baseline_name("tests/test_letters.py::TestTone::test_kept", "letter_score")
    assert re.fullmatch(r"tests\.test_letters\.testtone\.test_kept\.letter_score-[0-9a-f]{12}\.json", name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("t.py::t[a/b]", "s"), ("t.py::t[a:b]", "s")),
        (("t.py::t[a]", "s"), ("t.py::t[A]", "s")),
        (("a", "b.c"), ("a.b", "c")),
        (("t.py::t[é]", "s"), ("t.py::t[e\u0301]", "s")),
        (("t.py::t[" + "x" * 500 + "1]", "s"), ("t.py::t[" + "x" * 500 + "2]", "s")),
    ],
    ids=["slash-colon", "case", "boundary", "unicode", "long"],
)
def test_ids_that_look_alike_get_two_files(one: tuple[str, str], other: tuple[str, str]) -> None:
    """Even where the readable part is the same, and on a file system that ignores case."""
    assert baseline_name(*one).lower() != baseline_name(*other).lower()


@given(TEXTS, TEXTS)
def test_a_name_is_always_a_plain_portable_file_name(test_id: str, score: str) -> None:
    """Whatever the id: small ASCII, not hidden, no path, short enough, and the same each time."""
    name = baseline_name(test_id, score)
    assert re.fullmatch(r"[a-z0-9_][a-z0-9_.-]*\.json", name)
    assert ".." not in name
    assert len(name) <= 250
    assert name == baseline_name(test_id, score)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("../../etc/passwd", "etc.passwd"), ("a b", "a.b"), ("Ünï", "n"), ("…", ""), ("--opt", "opt")],
)
def test_a_slug_keeps_what_is_portable(text: str, expected: str) -> None:
    """Everything else becomes one dot; nothing leads out of the folder or looks like an option."""
    assert slug(text) == expected


def test_nothing_readable_still_gives_a_name() -> None:
    """An id of foreign characters has a name, and keeps apart from another of the kind."""
    assert baseline_name("…", "…").startswith("baseline-")
    assert baseline_name("…", "…") != baseline_name("¿", "…")
