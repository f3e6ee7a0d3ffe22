"""One attempt: what it is charged, by which price, who answered, and what remains of one that is
given up half-way.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_fairness.endpoints import Reply, Request
from pytest_fairness.endpoints.protocol import CutOff, Evidence, Limits, Price, Wire
from pytest_fairness.engine.attempt import Tariff, same_model
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.engine.lane import EngineContext
from pytest_fairness.model import Status, Usage
from pytest_fairness.runs.store import RunStore
from tests.support.doubles import Scripted, failing, plan, polite
from tests.support.runs import EngineMaker, records

LISTED = Price(input_per_million=0.15, output_per_million=0.6)
PER_CALL = Price(input_per_million=0.0, output_per_million=0.0, per_call=0.01)
PER_TOKEN = Price(input_per_million=100.0, output_per_million=100.0)
PRICE = Price(input_per_million=1.0, output_per_million=10.0)


class Modelled(Scripted):
    """An endpoint that says which model it asks."""

    def __init__(self, model: str, *, type: str = "openai", **more: Any) -> None:  # noqa: A002 - the protocol's name
        super().__init__(**more)
        self.model, self.type = model, type  # type: ignore[misc]

    def identity(self) -> dict[str, Any]:
        return {"type": self.type, "model": self.model}


def test_a_dated_snapshot_is_the_same_model() -> None:
    """What providers answer with who were asked for the name without a date; nothing else is."""
    same = """gpt-4o-mini=gpt-4o-mini gpt-4o-mini=gpt-4o-mini-2024-07-18 gpt-4=gpt-4-0613 openai/gpt-4o=gpt-4o
        llama3=llama3:latest claude-3-5-sonnet-latest=claude-3-5-sonnet-20241022
        gemini/gemini-1.5-pro=gemini-1.5-pro-002 GPT-4o=gpt-4o"""
    other = """gpt-4o=gpt-4o-mini gpt-4=gpt-4.1 gpt-4=gpt-4-32k gpt-4o-2024-08-06=gpt-4o-2024-11-20
        gpt-4o-2024-08-06=gpt-4o llama-3=llama-3-8"""
    assert [pair for pair in same.split() if not same_model(*pair.split("="))] == []
    assert [pair for pair in other.split() if same_model(*pair.split("="))] == []


def test_the_price_is_the_dearer_and_never_falls() -> None:
    """Another model's listed price counts where it is higher, each way for itself, and stays."""
    tariff = Tariff(Modelled("gpt-4o-mini", price=LISTED))
    assert not tariff.answered_by(None)
    assert not tariff.answered_by("gpt-4o-mini-2024-07-18")
    assert tariff.price == LISTED
    assert tariff.answered_by("gpt-4-0613")
    assert tariff.price == Price(input_per_million=30.0, output_per_million=60.0)
    assert tariff.answered_by("gpt-3.5-turbo")
    assert not tariff.answered_by("gpt-4o-mini")
    assert tariff.price == Price(input_per_million=30.0, output_per_million=60.0)


def test_a_price_agreed_on_holds_for_snapshots() -> None:
    """A discount is not overruled by the list, unless another model answers; the list's own price
    is, by the snapshot's."""
    agreed = Tariff(Modelled("gpt-4o", price=Price(input_per_million=1.0, output_per_million=2.0)))
    assert not agreed.answered_by("gpt-4o-2024-05-13")
    assert agreed.price == Price(input_per_million=1.0, output_per_million=2.0)
    listed = Tariff(Modelled("gpt-4o", price=Price(input_per_million=2.5, output_per_million=10.0)))
    assert not listed.answered_by("gpt-4o-2024-05-13")
    assert listed.price == Price(input_per_million=5.0, output_per_million=15.0)


def test_what_is_free_stays_free() -> None:
    """A model on one's own machine may call itself what it likes; that another answered is noted
    all the same. The name of a deployment on Azure says nothing of the model in it, so no answer
    differs from it."""
    nothing = Price(input_per_million=0, output_per_million=0)
    for given in ({"simulated": True}, {"price": nothing}):
        tariff = Tariff(Modelled("gpt-4o-mini", **given))
        assert tariff.answered_by("gpt-4")
        assert tariff.free
        assert tariff.price == given.get("price")
    assert not Tariff(Modelled("our-deployment", type="azure", price=LISTED)).answered_by("gpt-4")


def test_a_free_endpoint_may_count_as_it_likes(engine_for: EngineMaker) -> None:
    """No money is at stake: the count is flagged, and the run goes on."""
    answer = Reply(text="yes", usage=Usage(input_tokens=1, output_tokens=10**12))
    endpoint = Scripted(lambda _: answer, price=Price(input_per_million=0, output_per_million=0))
    engine = engine_for(endpoint)
    assert [trial.cost for trial in engine.run(plan(3))] == [0.0] * 3
    assert records(engine.store.directory, "trial")[0]["flags"] == ["usage_absurd", "usage_invalid"]


# ---------------------------------------------------------------- a server that fails, asked again on request


def test_a_failing_server_is_asked_again_where_the_endpoint_says_so(
    engine_for: EngineMaker,
) -> None:
    """Each attempt is numbered, reserved and charged at its worst case; then the answer counts.
    What was sent and never answered is not asked again by it: the policy is for servers that said
    that they failed."""
    endpoint = Scripted(failing(Evidence.SERVER, Evidence.SERVER), price=LISTED, max_tokens=100)
    endpoint.limits = Limits(server_error_attempts=3)  # type: ignore[attr-defined]
    engine = engine_for(endpoint, max_cost=1.0)
    trial = engine.run(plan(1))[0]
    assert (trial.status, trial.attempts, trial.error) == (Status.ANSWERED, 3, None)
    costs = [record["cost"] for record in records(engine.store.directory, "attempt")]
    assert costs[0] == costs[1] > 100 * 0.6e-6 > costs[2]
    assert trial.cost == pytest.approx(sum(costs))
    for evidence, ending in (
        (Evidence.SERVER, (Status.ERROR, 2)),
        (Evidence.NO_RESPONSE, (Status.UNKNOWN, 1)),
    ):
        failing_on = Scripted(failing(*[evidence] * 9), name=evidence)
        failing_on.limits = Limits(server_error_attempts=2)  # type: ignore[attr-defined]
        trial = engine_for(failing_on).run(plan(1))[0]
        assert (trial.status, trial.attempts) == ending


# ---------------------------------------------------------------- costs that the system states


USED = Usage(input_tokens=50, output_tokens=50)  # 1 cent at PER_TOKEN
CHARGED = [
    (None, 0.02, None, 0.02),
    (None, None, None, None),
    (PER_CALL, None, None, 0.01),
    (PER_CALL, None, Usage(input_tokens=-1), 0.01),
    (PER_CALL, 0.02, None, 0.02),
    (PER_CALL, 0.001, None, 0.01),
    (PER_TOKEN, 0.02, None, 0.02),
    (PER_TOKEN, 0.02, USED, 0.02),
    (PER_TOKEN, 0.001, USED, 0.01),
]


def test_the_dearer_of_what_was_agreed_and_what_was_stated(engine_for: EngineMaker) -> None:
    """A price per call needs no counts; a cost that the system states counts, but never makes a
    call cheaper.
    """
    for number, (price, stated, usage, charged) in enumerate(CHARGED):
        answer = Reply(text="Dear Ann", cost=stated, usage=usage)
        engine = engine_for(
            Scripted(lambda _, answer=answer: answer, price=price, name=f"system {number}")
        )
        (trial,) = engine.run(plan(1))
        assert trial.cost == (None if charged is None else pytest.approx(charged))
        flags = records(engine.store.directory, "attempt")[number]["flags"]
        assert flags == (["unpriced"] if charged is None else [])


# ---------------------------------------------------------------- given up half-way


class Half(Scripted):
    """Says how far it was when it is given up: the first *times*, and answers after that."""

    def __init__(self, evidence: Evidence, times: int = 1, **more: object) -> None:
        super().__init__(price=PRICE, **more)  # type: ignore[arg-type]
        self.evidence, self.times = evidence, times

    async def ask(self, request: Request) -> Reply:
        self.requests.append(request)
        if len(self.requests) > self.times:
            return polite(request)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise CutOff(evidence=self.evidence, wire=WIRE) from None
        raise AssertionError("nobody waits for a minute")


WIRE = Wire(
    url="http://127.0.0.1/",
    request_body="{}",
    request_headers={},
    status_code=200,
    response_headers={},
    response_body='{"choi',
    truncated=True,
)


def test_what_had_not_left_by_the_deadline_is_free_and_asked_again(engine_for: EngineMaker) -> None:
    """Two attempts that nothing was sent for, and one that answers."""
    endpoint = Half(Evidence.NOT_SENT, times=2)
    engine = engine_for(endpoint, attempt_timeout=0.1)
    trial = engine.run(plan(1))[0]
    assert (trial.status, trial.attempts) == (Status.ANSWERED, 3)
    costs = [attempt["cost"] for attempt in records(engine.store.directory, "attempt")]
    assert costs[:2] == [0.0, 0.0] < costs[2:]


def test_an_interrupt_keeps_what_had_come(store: RunStore) -> None:
    """The same, where somebody else gives the attempt up; before anything has left, it ends no
    trial.
    """

    async def interrupted(evidence: Evidence) -> Conversation:
        conversation = Conversation("k" * 64, plan(1)[0], {"max_tokens": 50})
        endpoint = Half(evidence)
        engine = EngineContext(endpoint, store)
        await engine.budget.reserve(7000)
        task = asyncio.create_task(engine.own_lane.attempt(conversation, 7000))
        while not endpoint.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        ending = await task
        assert "cancelled" in ending.flags
        assert (ending.evidence, ending.wire) == (evidence, WIRE)
        return conversation

    endings = {
        Evidence.PARTIAL: Status.MALFORMED,
        Evidence.NO_RESPONSE: Status.UNKNOWN,
        Evidence.NOT_SENT: None,
    }
    for evidence, status in endings.items():
        conversation = asyncio.run(interrupted(evidence))
        assert conversation.status is status
        assert conversation.to_trial("live").cost == (0 if status is None else 7e-6)
