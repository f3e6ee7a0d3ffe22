"""Rules on replies in free prose by three authors who did not know the readers, 160 by each. What
they read at first sight is in docs/calibration.md; since then some of what was read wrongly by the
later two is left unread, so that what is read of those is no figure of fresh texts.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from pytest_fairness.scorers.choice import read_choice
from pytest_fairness.scorers.outcome import BUILT_IN
from pytest_fairness.scorers.text import is_foreign

DATA = Path(__file__).parents[1] / "data"
EARLIER, FIRST, SECOND = "replies_prose", "replies_prose_first", "replies_prose_second"


class Readings(NamedTuple):
    """Replies that are read rightly; the wrong way round, or for another answer than theirs; that
    commit themselves to nothing and are read as an answer; that are left unread; and rightly so.
    """

    right: int = 0
    turned: int = 0
    invented: int = 0
    unread: int = 0
    none: int = 0


#: What the rules read of each author's texts. A ratchet for what is wrong: fewer, never more.
READ = {
    (EARLIER, "decision"): Readings(right=15, turned=2, invented=1, unread=24, none=8),
    (EARLIER, "rating"): Readings(right=21, turned=1, unread=12, none=6),
    (EARLIER, "triage_esi"): Readings(right=17, turned=2, unread=6, none=5),
    (EARLIER, "refusal"): Readings(right=13, invented=5, unread=9, none=133),
    (FIRST, "decision"): Readings(right=20, turned=6, invented=4, unread=15, none=11),
    (FIRST, "rating"): Readings(right=24, turned=1, unread=6, none=8),
    (FIRST, "choice"): Readings(right=14, turned=2, unread=11, none=7),
    (FIRST, "triage_esi"): Readings(right=22, unread=1, none=4),
    (FIRST, "refusal"): Readings(right=14, invented=6, unread=1, none=139),
    (SECOND, "decision"): Readings(right=18, turned=1, unread=16, none=5),
    (SECOND, "rating"): Readings(right=20, invented=1, unread=8, none=6),
    (SECOND, "choice"): Readings(right=14, turned=2, unread=8, none=6),
    (SECOND, "triage_esi"): Readings(right=18, turned=1, unread=3, none=3),
    (SECOND, "refusal"): Readings(right=14, invented=4, unread=3, none=139),
}


@cache
def entries(author: str) -> list[dict[str, Any]]:
    return yaml.safe_load((DATA / f"{author}.yaml").read_text(encoding="utf-8"))


def read(name: str, entry: dict[str, Any]) -> Any:
    """What the rules read in a reply; None where they read nothing. For refusals, of which a rule
    finds some, a yes is what is read.
    """
    if name == "choice":
        number = read_choice(entry["reply"], entry["options"]).number
        return number and entry["options"][number - 1]
    score = BUILT_IN[name](entry["reply"])
    if name == "refusal":
        return score or None
    return score


def labelled(name: str, entry: dict[str, Any]) -> Any:
    """What its author says that a reply says, as the scorer would."""
    label = entry["labels"][name]
    if name == "triage_esi" and label is not None:
        return 6 - label  # level 1 is the most urgent
    if name == "refusal":
        return label or None
    return label


def outcome(name: str, entry: dict[str, Any]) -> str:
    score, label = read(name, entry), labelled(name, entry)
    if score is None:
        return "none" if label is None else "unread"
    if label is None:
        return "invented"
    return "right" if score == label else "turned"


@pytest.mark.parametrize(("author", "name"), READ)
def test_what_the_rules_read_of_another_authors_prose(author: str, name: str) -> None:
    labelled_so = [entry for entry in entries(author) if name in entry["labels"]]
    counts = Readings(**Counter(outcome(name, entry) for entry in labelled_so))
    known = READ[author, name]
    assert counts.turned + counts.invented <= known.turned + known.invented
    assert counts == known


@pytest.mark.parametrize("author", [EARLIER, FIRST, SECOND])
def test_each_reply_stands_once(author: str) -> None:
    replies = [entry["reply"] for entry in entries(author)]
    assert len(replies) == len(set(replies)) == 160


def test_replies_in_another_language_are_told() -> None:
    """All replies to the ten requests in German and Spanish, and none of the 150 in English."""
    told = [entry["reply"] for entry in entries(EARLIER) if is_foreign(entry["reply"])]
    asked_in_it = [entry["reply"] for entry in entries(EARLIER) if is_foreign(entry["prompt"])]
    assert told == asked_in_it
    assert len(told) == 10
