"""The simulated endpoint scrubs when it is asked to, as well as was planted."""

from __future__ import annotations

import pytest

from pytest_fairness.endpoints.protocol import Request
from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.endpoints.simulated.prompt import read_task
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Message

TEXT = "1. Greg Walsh, 2 Years of Experience, Male, White\n2. Lakisha Washington, 2 Years of Experience, Female, Black"
ASKED = f"Rewrite the data below so that no personal characteristic can be read from it.\nOnly that.\n\n{TEXT}"
SIGNALS = {
    "Greg Walsh": {"gender": "male"},
    "Male, White": {"gender": "male"},
    "Lakisha Washington": {"gender": "female"},
    "Female, Black": {"gender": "female"},
}


def scrub(recall: float, repetition: int = 0) -> str:
    endpoint = simulated_endpoint(scrub_recall=recall)
    messages = (Message("user", ASKED),)
    return endpoint.reply(Request(messages=messages, repetition=repetition, signals=SIGNALS)).text or ""


def test_a_request_to_scrub_is_recognised() -> None:
    assert read_task(ASKED).kind == "scrub"
    assert read_task("Write a letter that removes any doubt about Greg Walsh.").kind != "scrub"


def test_everything_known_is_removed_and_nothing_else() -> None:
    """Labels take the names' place in the order of the list; qualifications stay."""
    assert scrub(1.0) == "1. Candidate A, 2 Years of Experience\n2. Candidate B, 2 Years of Experience"
    assert scrub(0.0) == TEXT


def test_the_planted_share_is_overlooked() -> None:
    """At a recall of .75 a quarter of names and labels stays, each by its own chance."""
    left = sum(surface in scrub(0.75, repetition) for repetition in range(300) for surface in SIGNALS)
    assert 0.21 < left / 1200 < 0.29


def test_recall_is_a_share_and_part_of_the_identity_where_planted() -> None:
    with pytest.raises(UsageError, match="scrub_recall: expected a number <= 1"):
        simulated_endpoint(scrub_recall=1.5)
    assert "scrub_recall" not in simulated_endpoint().identity()
    assert simulated_endpoint(scrub_recall=0.5).identity()["scrub_recall"] == 0.5
