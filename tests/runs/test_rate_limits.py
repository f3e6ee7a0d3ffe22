"""Limits per minute hold for all processes of a run together, whatever the wall clock says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.endpoints.protocol import Limits
from pytest_fairness.model import Message, Usage
from pytest_fairness.runs.database import Database
from pytest_fairness.runs.rate_limits import Limiter
from pytest_fairness.runs.store import RunStore, open_store

SYSTEM = "a" * 64


class Clock:
    """Time that passes when somebody waits."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now

    def set(self, store: RunStore) -> RunStore:
        """Let *store* go by this clock."""
        assert isinstance(store.database, Database)
        store.database.clock = self
        return store


def take(limiter: Limiter, tokens: int) -> float:
    return asyncio.run(limiter.take(tokens))


def times(limiter: Limiter, clock: Clock, calls: int) -> Iterator[float]:
    """When each call may go, asked for one after the other."""
    for _ in range(calls):
        while (wait := take(limiter, 0)) > 0:
            clock.now += wait
        yield clock.now


@given(limit=st.integers(1, 100), calls=st.integers(1, 100))
@settings(max_examples=5, deadline=None)
def test_no_minute_holds_more_requests_than_allowed(
    tmp_path_factory: pytest.TempPathFactory, limit: int, calls: int
) -> None:
    """Whatever the limit: no 60 seconds hold more, and no more time is lost than that needs."""
    clock = Clock()
    with open_store(tmp_path_factory.mktemp("runs"), "t") as store:
        limiter = clock.set(store).limiter(SYSTEM, Limits(requests_per_minute=limit))
        sent = list(times(limiter, clock, calls))
    for first, beyond in zip(sent, sent[limit:], strict=False):
        assert beyond - first >= 60 - 1e-4
    assert sent[-1] - sent[0] <= calls / limit * 61


def test_tokens_are_counted_as_they_were_used(store: RunStore) -> None:
    """What a call took in the end counts, not what it was taken for: too much waits, too little is
    given back.
    """
    limiter = Clock().set(store).limiter(SYSTEM, Limits(tokens_per_minute=6000))
    assert take(limiter, 1000) == 0
    assert take(limiter, 1000) == pytest.approx(61 / 6 - 1)
    limiter.settle(1000, Usage(input_tokens=50, output_tokens=10))
    assert take(limiter, 1000) == 0
    limiter.settle(1000, Usage(input_tokens=50, output_tokens=2950))
    assert take(limiter, 10) > 20


def test_processes_share_the_limits(root: Path, store: RunStore) -> None:
    """Two writers have one schedule; a machine started anew begins a new one."""
    clock, limits = Clock(), Limits(requests_per_minute=1)
    with open_store(root, "a session", writer="gw0") as other:
        assert take(clock.set(store).limiter(SYSTEM, limits), 0) == 0
        assert take(clock.set(other).limiter(SYSTEM, limits), 0) > 50
        assert take(other.limiter("b" * 64, limits), 0) == 0
        clock.now -= 7200
        assert take(other.limiter(SYSTEM, limits), 0) == 0


def test_an_estimate_learns_from_replies(store: RunStore) -> None:
    """At first a guess; then what replies took; never more than the parameters allow."""
    limiter = store.limiter(SYSTEM, Limits(tokens_per_minute=1))
    messages = (Message("user", "x" * 300),)
    first = limiter.estimate(messages, {})
    for _ in range(50):
        limiter.settle(0, Usage(input_tokens=100, output_tokens=20))
    assert 100 < limiter.estimate(messages, {}) < 130 < first
    assert limiter.estimate(messages, {"max_tokens": 5}) == 105
