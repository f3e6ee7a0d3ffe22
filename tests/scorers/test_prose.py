"""Rules on 160 replies in free prose whose author did not know the readers. The figures are what the
documentation tells; nothing here was looked at when a pattern was written.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_fairness.scorers.outcome import BUILT_IN
from pytest_fairness.scorers.text import is_foreign

FILE = Path(__file__).parents[1] / "data" / "replies_prose.yaml"
#: Replies that are read rightly, read wrongly (some of which commit themselves to nothing), left
#: unread, and rightly left so. A ratchet for what is wrong: fewer, never more.
READ = {
    "decision": {"right": 15, "wrong": 3, "unread": 24, "none": 8},
    "rating": {"right": 21, "wrong": 1, "unread": 12, "none": 6},
    "triage_esi": {"right": 17, "wrong": 2, "unread": 6, "none": 5},
    "refusal": {"right": 13, "wrong": 5, "unread": 9, "none": 133},
}


@cache
def entries() -> list[dict[str, Any]]:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def outcome(name: str, label: Any, reply: str) -> str:
    """What reading *reply* comes to: for refusals, of which a rule finds some, a yes is what is
    read.
    """
    score = BUILT_IN[name](reply)
    if name == "triage_esi" and label is not None:
        label = 6 - label  # level 1 is the most urgent
    if name == "refusal":
        label, score = label or None, score or None
    if score is None:
        return "none" if label is None else "unread"
    return "right" if score == label else "wrong"


@pytest.mark.parametrize("name", READ)
def test_what_the_rules_read_of_another_authors_prose(name: str) -> None:
    read = Counter(
        outcome(name, entry["labels"][name], entry["reply"])
        for entry in entries()
        if name in entry["labels"]
    )
    assert sum(read.values()) == sum(READ[name].values())
    assert read["wrong"] <= READ[name]["wrong"], read
    assert dict(read) == READ[name]


def test_each_reply_stands_once() -> None:
    replies = [entry["reply"] for entry in entries()]
    assert len(replies) == len(set(replies)) == 160


def test_replies_in_another_language_are_told() -> None:
    """All replies to the ten requests in German and Spanish, and none of the 150 in English."""
    told = [entry["reply"] for entry in entries() if is_foreign(entry["reply"])]
    asked_in_it = [entry["reply"] for entry in entries() if is_foreign(entry["prompt"])]
    assert told == asked_in_it
    assert len(told) == 10
