"""What a score was made of, and naming what changed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pytest_fairness.baselines.document import Fingerprints, fingerprint
from pytest_fairness.model import to_json

from .conftest import LIVE


def test_a_fingerprint_depends_on_content_alone() -> None:
    """Not on the order of keys; on everything else. Nothing has no fingerprint."""
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": (1, 2), "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert fingerprint(["x"]) != fingerprint("x")
    assert fingerprint(None) == ""


def test_an_identity_is_kept_as_a_digest_only() -> None:
    """An address or a parameter of the endpoint does not end up in a committed file."""
    made = Fingerprints.of(
        endpoint="app",
        models=["gpt-4", "gpt-4", ""],
        identity={"base_url": "https://internal.example/v1"},
        template=["Write {name}"],
        design={"repetitions": 2},
    )
    assert made.models == ("gpt-4",)
    assert "internal.example" not in json.dumps(to_json(made))


@pytest.mark.parametrize(
    ("changes", "clauses"),
    [
        ({}, ()),
        ({"models": ("gpt-5",)}, ("the model changed from gpt-4 to gpt-5",)),
        ({"endpoint": "other", "identity": "i2"}, ("the endpoint changed from 'app' to 'other'",)),
        ({"identity": "i2"}, ("the endpoint's parameters or address changed",)),
        ({"template": "t2"}, ("the template changed",)),
        (
            {"scorer": "s2"},
            ("the scorer changed, so that old and new scores come from different instruments",),
        ),
        ({"design": "d2"}, ("the design (groups, names or personas, repetitions, tier) changed",)),
        ({"template": "", "scorer": "", "models": (), "design": ""}, ()),
        (
            {"models": ("a", "b"), "template": "t2"},
            ("the model changed from gpt-4 to a, b", "the template changed"),
        ),
    ],
)
def test_each_change_is_named(changes: dict[str, object], clauses: tuple[str, ...]) -> None:
    """In words, most telling first; what one side does not know is not called a change."""
    assert replace(LIVE, **changes).changes_since(LIVE) == clauses
