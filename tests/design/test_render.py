"""Pronoun slots in every case, with the verbs that agree, and a or an."""

from __future__ import annotations

import pytest

from pytest_fairness.design.templates import SLOTS, Template, article, pronouns
from pytest_fairness.errors import UsageError

SENTENCE = Template(
    "t",
    "{They} {are} here and {have} {their} bag, which {were} not {theirs}; ask {them}, {they} work{s} and "
    "teach{es} "
    "by {themself}. {Do} {they}? {Their} call. {Are} you?",
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "she",
            "She is here and has her bag, which was not hers; ask her, she works and teaches by herself. "
            "Does she? Her call. Is you?",
        ),
        (
            "he/him",
            "He is here and has his bag, which was not his; ask him, he works and teaches by himself. "
            "Does he? His call. Is you?",
        ),
        (
            "they/them",
            "They are here and have their bag, which were not theirs; ask them, they work and teach by "
            "themself. Do they? Their call. Are you?",
        ),
        (
            "ze/hir",
            "Ze is here and has hir bag, which was not hirs; ask hir, ze works and teaches by hirself. "
            "Does ze? Hir call. Is you?",
        ),
        (
            "ae/aer/aer/aers/aerself",
            "Ae is here and has aer bag, which was not aers; ask aer, ae works and teaches "
            "by aerself. Does ae? Aer call. Is you?",
        ),
    ],
)
def test_every_case_and_every_verb(words: str, expected: str) -> None:
    """One sentence holds all five cases and all agreement slots, in lower and upper case."""
    assert SENTENCE.render(pronouns(words)) == expected
    assert all(pronouns(known).keys() == SLOTS for known in ("she", "he", "they", "xe", "ze", "ey", "fae"))


@pytest.mark.parametrize("words", ["", "it", "she/him", "she/her/hers/x", "a/b", "a/b/c/d/", "//", "she her"])
def test_unknown_pronouns_are_refused(words: str) -> None:
    """A typo never becomes a pronoun; the message lists what is known."""
    with pytest.raises(UsageError, match="unknown pronouns"):
        pronouns(words)


AN = ("IT engineer", "engineer", "hour-long talk", "honest person", "heir", "18-year-old", "8-year-old", "11", "MRI",
      "HR lead", "Asian woman", "unnamed person", "umbrella", "instructor", "ABA therapist", "élève", "“editor”",
      "(unclear)")  # fmt: skip
A = ("nurse", "university lecturer", "European", "one-off", "user", "UX designer", "Black woman", "110-year-old",
     "25-year-old", "house", "Ukrainian", "unit", "NASA engineer", "BBC journalist", "7", "PhD",
     "union member")  # fmt: skip


def test_the_article_follows_the_sound() -> None:
    """Before a vowel sound "an", before a consonant sound "a", however they are spelled; before nothing, nothing."""
    assert [text for text in AN if article(text) != "an"] == []
    assert [text for text in A if article(text) != "a"] == []
    template = Template("t", "{A_role} and {a_role}; {a_thing}.")
    assert template.render({"role": "editor", "thing": ""}) == "An editor and an editor; ."
