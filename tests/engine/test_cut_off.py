"""Attempts that are given up half-way: what had come is kept and charged, what had not left is free."""

from __future__ import annotations

import asyncio
import importlib.util
import time

import pytest

from pytest_fairness.endpoints import Reply, Request, create_endpoint
from pytest_fairness.endpoints.protocol import CutOff, Evidence, Price, Wire
from pytest_fairness.engine.attempt import Asker
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.model import Message, Status
from pytest_fairness.runs.store import RunStore
from tests.support.doubles import Scripted, plan, polite
from tests.support.runs import EngineMaker, records
from tests.support.servers import Fault, ModelServer

PRICE = Price(input_per_million=1.0, output_per_million=10.0)


class Half(Scripted):
    """Says how far it was when it is given up: the first *times*, and answers after that."""

    def __init__(self, evidence: Evidence, times: int = 1, **more: object) -> None:
        super().__init__(price=PRICE, **more)  # type: ignore[arg-type]
        self.evidence, self.times = evidence, times

    async def ask(self, request: Request) -> Reply:
        self.asked.append(request)
        if len(self.asked) > self.times:
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


def test_what_had_come_by_the_deadline_is_kept_and_charged(engine_for: EngineMaker) -> None:
    """As if the connection had broken: malformed, the worst case, and not sent again."""
    endpoint = Half(Evidence.PARTIAL, max_tokens=50)
    engine = engine_for(endpoint, attempt_timeout=0.2)
    trial = engine.run(plan(1))[0]
    assert (trial.status, trial.attempts) == (Status.MALFORMED, 1)
    assert "the answer began, and did not end within 0.2 s" in (trial.error or "")
    (attempt,) = records(engine.store.directory, "attempt")
    assert (attempt["evidence"], attempt["flags"]) == ("partial", ["deadline"])
    assert attempt["wire"]["response_body"] == '{"choi'
    assert attempt["cost"] >= 50 * 10 / 1e6


def test_what_had_not_left_by_the_deadline_is_free_and_asked_again(engine_for: EngineMaker) -> None:
    """Two attempts that nothing was sent for, and one that answers."""
    endpoint = Half(Evidence.NOT_SENT, times=2)
    engine = engine_for(endpoint, attempt_timeout=0.2)
    trial = engine.run(plan(1))[0]
    assert (trial.status, trial.attempts) == (Status.ANSWERED, 3)
    costs = [attempt["cost"] for attempt in records(engine.store.directory, "attempt")]
    assert costs[:2] == [0.0, 0.0] < costs[2:]


@pytest.mark.parametrize(
    ("evidence", "status"), [(Evidence.PARTIAL, Status.MALFORMED), (Evidence.NO_RESPONSE, Status.UNKNOWN)]
)
def test_an_interrupt_keeps_what_had_come(store: RunStore, evidence: Evidence, status: Status) -> None:
    """The same, where somebody else gives the attempt up: it is told apart from the deadline."""
    conversation = Conversation("k" * 64, plan(1)[0], {"max_tokens": 50})

    async def interrupted() -> None:
        asker = Asker(Half(evidence), store, None, 30.0)
        task = asyncio.create_task(asker.attempt(conversation, 0, None))
        await asyncio.sleep(0.05)
        task.cancel()
        ended = await task
        assert "cancelled" in ended.flags
        assert (ended.evidence, ended.wire) == (evidence, WIRE)

    asyncio.run(interrupted())
    assert conversation.status is status


def test_an_interrupt_before_anything_had_left_ends_no_trial(store: RunStore) -> None:
    """It is left as it was, to be taken up another time."""
    conversation = Conversation("k" * 64, plan(1)[0], {})

    async def interrupted() -> None:
        asker = Asker(Half(Evidence.NOT_SENT), store, None, 30.0)
        task = asyncio.create_task(asker.attempt(conversation, 0, None))
        await asyncio.sleep(0.05)
        task.cancel()
        assert "cancelled" in (await task).flags

    asyncio.run(interrupted())
    assert not conversation.over()
    assert conversation.cost == 0


@pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed")
def test_the_time_that_litellm_takes_to_load_is_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off while it is imported, nothing was sent."""
    monkeypatch.setattr("pytest_fairness.endpoints.litellm.load_litellm", lambda: time.sleep(0.5))
    endpoint = create_endpoint({"name": "a", "type": "litellm", "model": "groq/m", "base_url": "http://127.0.0.1:9"})

    async def impatient() -> None:
        task = asyncio.create_task(endpoint.ask(Request(messages=(Message("user", "Hello."),))))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(CutOff) as cut:
            await task
        assert (cut.value.evidence, cut.value.wire) == (Evidence.NOT_SENT, None)

    asyncio.run(impatient())


def test_the_wire_says_how_far_it_was() -> None:
    """Before the status line: sent, no response. Within the body: its beginning, as it came."""
    with ModelServer(script=[Fault(hang=True), Fault(drip=0.02)]) as server:
        config = {"name": "a", "type": "openai", "model": "m", "base_url": server.openai_url}

        async def cut() -> CutOff:
            endpoint = create_endpoint(config)
            task = asyncio.create_task(endpoint.ask(Request(messages=(Message("user", "Hello."),))))
            await asyncio.sleep(1.0)
            task.cancel()
            with pytest.raises(CutOff) as cut:
                await task
            await endpoint.aclose()
            return cut.value

        silent, slow = asyncio.run(cut()), asyncio.run(cut())
        assert silent.evidence is Evidence.NO_RESPONSE
        assert silent.wire is not None
        assert (silent.wire.status_code, silent.wire.response_body) == (None, "")
        assert slow.evidence is Evidence.PARTIAL
        assert slow.wire is not None
        assert slow.wire.truncated
        assert slow.wire.response_body
        assert server.requests[1].answer.decode().startswith(slow.wire.response_body)
