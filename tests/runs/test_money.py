"""Money: set aside before it is spent, settled by what was used, and never more than the cap."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Price, Reply, Request
from pytest_fairness.engine.engine import Engine
from pytest_fairness.errors import BudgetError
from pytest_fairness.model import Message, Status, Usage
from pytest_fairness.runs.money import UNLIMITED_OUTPUT, dollars, used, worst_case
from pytest_fairness.runs.store import RunStore, open_store
from tests.support.doubles import Scripted, failing, plan
from tests.support.runs import EngineMaker, records

PRICE = Price(input_per_million=1.0, output_per_million=10.0)


def spent(store: RunStore) -> tuple[int, int]:
    return tuple(store.budget(None).account())


def test_the_worst_case_counts_bytes_and_the_limit() -> None:
    """Input: a token is at least a byte, with 16 for each message's frame; output: the parameter
    that limits it.
    """
    messages = [Message("system", "é\ud800"), Message("user", "abc")]
    assert (
        worst_case(PRICE, messages, {"max_tokens": 100}) == (2 + 3 + 3 + 32) * 1000 + 100 * 10_000
    )
    assert (
        worst_case(PRICE, messages, {"max_completion_tokens": 7, "n": 2}) == 40 * 1000 + 14 * 10_000
    )
    assert worst_case(PRICE, messages, {}) == 40 * 1000 + UNLIMITED_OUTPUT * 10_000
    assert (
        worst_case(PRICE, messages, {"max_tokens": "many", "n": -1})
        == 40 * 1000 + UNLIMITED_OUTPUT * 10_000
    )


def test_amounts_are_rounded_up_but_not_inflated() -> None:
    """A ten-billionth of a dollar is a nano-dollar; an exact amount stays exact."""
    tiny = Price(input_per_million=0.0001, output_per_million=0)
    assert used(tiny, Usage(input_tokens=1, output_tokens=0), replied=False) == 1
    assert used(PRICE, Usage(input_tokens=3, output_tokens=7), replied=True) == 73_000
    per_call = Price(input_per_million=0, output_per_million=0, per_call=0.002)
    assert used(per_call, Usage(input_tokens=1, output_tokens=1), replied=True) == 2_000_000


UNBELIEVABLE: list[tuple[Any, Any]] = [
    (None, None),
    (5, None),
    (-5, 5),
    (True, True),
    ("5", 5),
    (0, 0),
    (5.5, 1),
]


def test_usage_that_cannot_be_believed_settles_at_the_worst_case(engine_for: EngineMaker) -> None:
    """Missing, negative, of the wrong type, or nothing for a reply: never free, never below zero,
    flagged.
    """
    usages = [None, *(Usage(input_tokens=one, output_tokens=other) for one, other in UNBELIEVABLE)]
    assert {used(PRICE, usage, replied=True) for usage in usages} == {None}
    left = list(usages)
    endpoint = Scripted(
        lambda request: Reply(text="yes", usage=left.pop()), price=PRICE, max_tokens=50
    )
    engine = engine_for(endpoint, max_cost=1.0)
    trials = engine.run(plan(len(usages)))
    reserved = worst_case(PRICE, endpoint.requests[0].messages, {"max_tokens": 50})
    assert {trial.cost for trial in trials} == {dollars(reserved)}
    assert spent(engine.store) == (len(usages) * reserved, 0)
    assert {*map(tuple, (one["flags"] for one in records(engine.store.directory, "trial")))} == {
        ("usage_invalid",)
    }


@pytest.mark.parametrize("evidence", [one for one in Evidence if one is not Evidence.AUTH])
def test_a_failure_costs_what_it_may_have_cost(engine_for: EngineMaker, evidence: Evidence) -> None:
    """Where money may have been spent the worst case is charged; where none was, none is."""
    endpoint = Scripted(failing(evidence), price=PRICE, max_tokens=50)
    engine = engine_for(endpoint, max_cost=1.0, max_attempts=1)
    engine.own_lane.tried = (
        True  # as after a first trial, without which no connection would be the end
    )
    trial = engine.run(plan(1))[0]
    charged = evidence in (Evidence.SERVER, Evidence.NO_RESPONSE, Evidence.PARTIAL)
    expected = (
        worst_case(PRICE, endpoint.requests[0].messages, {"max_tokens": 50}) if charged else 0
    )
    assert (trial.cost, spent(engine.store)) == (dollars(expected), (expected, 0))


# ------------------------------------------------------------ the cap


def test_a_cap_is_an_amount(store: RunStore) -> None:
    """A cap of "not a number" would be no cap."""
    for cap in (-1.0, float("nan"), float("inf")):
        with pytest.raises(BudgetError, match="number of US dollars"):
            store.budget(cap)


@settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(cap=st.floats(0.0, 0.03), seed=st.integers(0, 1000), limit=st.integers(1, 200))
def test_the_cap_is_never_exceeded(root: Path, cap: float, seed: int, limit: int) -> None:
    """With 64 under way, and whatever they use of what they may: paid + possible ≤ cap, at every
    moment.
    """
    generator = random.Random(seed)
    paid = 0.0

    class Billing(Scripted):
        async def ask(self, request: Request) -> Reply:
            nonlocal paid
            self.requests.append(request)
            size = sum(len(message.content) for message in request.messages)
            tokens = {
                "input_tokens": generator.randint(1, size),
                "output_tokens": generator.randint(1, limit),
            }
            paid += PRICE.cost(**tokens)  # the provider bills on arrival
            await asyncio.sleep(generator.random() * 0.005)
            if generator.random() < 0.2:
                raise AttemptError(
                    "cut", evidence=generator.choice([Evidence.NO_RESPONSE, Evidence.PARTIAL])
                )
            return Reply(text="x", usage=Usage(**tokens))

    endpoint = Billing(price=PRICE, max_tokens=limit)
    with open_store(root, f"{cap} {seed} {limit}") as store:
        engine = Engine(endpoint, store, concurrency=64, max_cost=cap, seed=seed)
        with engine, contextlib.suppress(BudgetError):
            engine.run(plan(100))
        settled, reserved = spent(store)
        assert reserved == 0
        assert len(store) == len(endpoint.requests)
    assert paid <= dollars(settled) + 1e-9  # what is billed only grows
    assert dollars(settled) <= cap + 1e-9


def test_what_was_paid_for_before_the_cap_is_kept(root: Path) -> None:
    """The error comes after everything under way is logged; with more money the run goes on from
    there, and a later session on the folder, or another endpoint, finds what was spent."""
    endpoint = Scripted(price=PRICE, max_tokens=10, delay=0.005)
    with open_store(root, "t") as store:
        with Engine(endpoint, store, concurrency=4, max_cost=0.001) as engine:
            for _ in range(2):
                with pytest.raises(BudgetError, match=r"cap of \$0\.00 leaves no room"):
                    engine.run(plan(100))
        assert 4 <= len(endpoint.requests) == len(store) < 100
        with Engine(endpoint, store, concurrency=4, max_cost=1.0) as engine:
            assert {trial.status for trial in engine.run(plan(100))} == {Status.ANSWERED}
    assert len(endpoint.requests) == 100
    other = Scripted(price=PRICE, max_tokens=10, name="other")
    with RunStore.open(store.directory) as later, Engine(other, later, max_cost=0.006) as engine:
        with pytest.raises(BudgetError, match="is spent"):
            engine.run(plan(10))
        assert not other.requests


def test_a_process_that_died_leaves_its_reservations_standing(root: Path, store: RunStore) -> None:
    """What it had under way counts as spent; those who wait for room get an error in the end."""
    with open_store(root, "a session", writer="gw0") as other:
        assert asyncio.run(other.budget(1e-6).reserve(700))
    later = store.budget(1e-6)
    assert asyncio.run(later.reserve(300))
    assert not asyncio.run(later.reserve(1))
    assert "$0.0000 is held for calls without an account" in str(later.blocked(1))


def test_a_reservation_that_nobody_waits_for_any_more_is_given_back(store: RunStore) -> None:
    """Whoever is interrupted while the account answers has sent nothing."""

    async def interrupted() -> None:
        waiting = asyncio.ensure_future(store.budget(1.0).reserve(700))
        await asyncio.sleep(0)
        waiting.cancel()
        while sum(spent(store)):
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(interrupted(), 10))
    assert spent(store) == (0, 0)


def test_calls_wait_for_room_instead_of_giving_up(engine_for: EngineMaker) -> None:
    """Where the worst cases do not fit side by side, but what is really used does, all are asked,
    one by one.
    """
    usage = Usage(input_tokens=1, output_tokens=1)
    endpoint = Scripted(
        lambda _: Reply(text="x", usage=usage), price=PRICE, max_tokens=1000, delay=0.002
    )
    engine = engine_for(endpoint, max_cost=0.012, concurrency=8)
    assert {trial.status for trial in engine.run(plan(30))} == {Status.ANSWERED}
    assert endpoint.most == 1
