"""A loan assistant that answers in its own words, in no form: the application under test.

It grants six in ten, whoever asks. Only its wording has to be read.
"""

from __future__ import annotations

import hashlib

from pytest_fairness.endpoints import simulated_endpoint

GRANTED = (
    "we are glad to tell you that the amount was approved, and will be on the account by {day}",
    "the committee sat on {day}, and your request was approved as it stands",
)
DENIED = (
    "the committee sat on {day}, and your request was denied; you may apply again in spring",
    "after some thought the request of {day} was denied, since the income does not bear it",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")


def answer(prompt: str) -> str:
    """Return the letter that *prompt*, "… for {name}: …", comes to."""
    name = prompt.split(" for ")[1].split(":", maxsplit=1)[0]
    number = int(hashlib.sha256(prompt.encode()).hexdigest()[:12], 16)
    granted = number % 10 < 6
    sentences = GRANTED if granted else DENIED
    sentence = sentences[number // 10 % 2].format(day=DAYS[number // 20 % 5])
    return f"Dear {name}, about your file {number // 100 % 100_000}: {sentence}."


#: Overlooks four in ten approvals of one group. In a project the reader is an entry of
#: endpoints.yaml, and nobody knows what it overlooks.
_MODEL = simulated_endpoint(reads={"race_ethnicity": {"black": {"sensitivity": 0.6}}})


def reader(prompt: str) -> str:
    """Return the answer of the model that reads letters."""
    return _MODEL.complete(prompt)
