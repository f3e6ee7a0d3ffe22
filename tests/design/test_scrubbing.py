"""The rule-based scrubber: what the banks and signals know goes, the content stays."""

from __future__ import annotations

import pytest

from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.scrubbing import RuleScrubber
from pytest_fairness.design.signals import CONTROL, Signals

from ..support.watch import LONG, watched


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
        (
            "Emily Sullivan leads. Ms. Sullivan wrote it.",
            "Candidate A leads. Candidate A wrote it.",
        ),
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
    """Names to labels, pronouns to *they*, ages and years to placeholders; nothing job-related is
    lost. Scrubbing twice changes nothing more.
    """
    assert scrub(text) == scrub(scrub(text)) == expected


def test_what_is_known_is_never_left(
    scrub: RuleScrubber, banks: NameBanks, signals: Signals
) -> None:
    """Recall is 1 on every name that a grid can draw, and on every label as the third part of a
    line: no group is scrubbed worse.
    """
    for name in (name for groups in banks.values() for names in groups.values() for name in names):
        assert (
            scrub(f"1. {name}, 2 Years of Experience") == "1. Candidate A, 2 Years of Experience"
        ), name
    labels = [found for (_, kind), found in signals.kinds.items() if kind == "label"]
    for phrase in (
        p
        for found in labels
        for group in found.words
        if group != CONTROL
        for p in found.phrases(group)
    ):
        stated = phrase[:1].upper() + phrase[1:]
        assert stated not in scrub(f"1. Ana Arp, nurse, {stated}"), stated


def test_a_long_text_of_anything_is_scrubbed(scrub: RuleScrubber) -> None:
    """What is quadratic in it trips the watch."""
    for unit in ("Greg ", "x ", "aged ", "A. "):
        with watched():
            scrub(unit * (LONG // len(unit)))
