"""The rule-based scrubber: what the banks and signals know goes, the content stays."""

from __future__ import annotations

import time

import pytest

from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.scrubbing import RuleScrubber
from pytest_fairness.design.signals import CONTROL, Signals


@pytest.fixture(scope="module")
def scrub() -> RuleScrubber:
    return RuleScrubber(NameBanks.load(), Signals.load(), ("Emily Sullivan",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "1. Greg Walsh, 2 Years of Experience, Male, White\n"
            "2. Lakisha Washington, 2 Years of Experience, Female, Black",
            "1. Candidate A, 2 Years of Experience\n2. Candidate B, 2 Years of Experience",
        ),
        ("Emily Sullivan leads. Ms. Sullivan wrote it.", "Candidate A leads. Candidate A wrote it."),
        ("She gave him her notes; I met her.", "They gave them their notes; I met them."),
        ("He did it himself, and it is his.", "They did it themself, and it is theirs."),
        ("She is 27 years old.", "They [removed]."),
        ("A nurse aged 45.", "A nurse [age]."),
        ("Class of 2005, degree in 2009.", "Class of [year], degree in [year]."),
        ("In 2019 the team grew to 45.", "In 2019 the team grew to 45."),
        ("A white paper on short courses.", "A white paper on short courses."),
        ("A. Carter (Black), nurse", "Candidate A, nurse"),
        ("5 years at North Hospital; Python, SQL.", "5 years at North Hospital; Python, SQL."),
        ("", ""),
    ],
)
def test_what_goes_and_what_stays(scrub: RuleScrubber, text: str, expected: str) -> None:
    """Names to labels, pronouns to *they*, ages and years to placeholders; nothing job-related is lost."""
    assert scrub(text) == expected


def test_no_name_of_the_banks_is_left(scrub: RuleScrubber, banks: NameBanks) -> None:
    """Recall on what is known is 1, every name that a grid can draw: no group is scrubbed worse."""
    for names in (names for groups in banks.values() for names in groups.values()):
        for name in names:
            assert scrub(f"1. {name}, 2 Years of Experience") == "1. Candidate A, 2 Years of Experience", name


def test_no_label_is_left_where_lists_have_it(scrub: RuleScrubber, signals: Signals) -> None:
    """Every label of every class, as the third part of a line."""
    for (protected_class, kind), found in signals.kinds.items():
        if kind != "label":
            continue
        for group, phrases in ((group, found.phrases(group)) for group in found.words):
            for phrase in phrases if group != CONTROL else ():
                stated = phrase[:1].upper() + phrase[1:]
                assert stated not in scrub(f"1. Ana Arp, nurse, {stated}"), (protected_class, group)


def test_scrubbing_twice_changes_nothing_more(scrub: RuleScrubber) -> None:
    once = scrub("1. Greg Walsh, Male\n2. Lakisha Washington, Female, aged 30. She led.")
    assert scrub(once) == once


def test_hostile_text_takes_no_time(scrub: RuleScrubber) -> None:
    start = time.thread_time()
    for text in ("Greg " * 20_000, "x " * 50_000, "aged " * 20_000, "A. " * 20_000):
        scrub(text)
    assert time.thread_time() - start < 5
