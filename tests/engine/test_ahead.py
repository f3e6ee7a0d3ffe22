"""Trials that are asked ahead of time: in places that others leave free, once, and no less safely."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Limits, Reply, Request
from pytest_fairness.engine.engine import Engine
from pytest_fairness.engine.lane import Pace
from pytest_fairness.errors import EndpointError
from pytest_fairness.model import Status
from pytest_fairness.runs.designs import PlannedTrial
from tests.support.doubles import Scripted, cell, plan, polite
from tests.support.runs import EngineMaker, records


def later(count: int, first: int = 1000) -> list[PlannedTrial]:
    """Trials that a later run wants."""
    return [PlannedTrial(cell=cell(first + number)) for number in range(count)]


def until(said: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    end = time.monotonic() + 10
    while not said():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_later(request: Request) -> bool:
    return "candidate 1" in request.messages[-1].content and len(
        request.messages[-1].content
    ) > len("Write about candidate 100.")


def test_who_asks_ahead_gets_a_place_after_all_others() -> None:
    """Whoever came first; and a place that was given to one who has gone is not lost."""

    async def scenario() -> list[str]:
        pace = Pace(1)
        order: list[str] = []

        async def ask(name: str, *, ahead: bool) -> None:
            number = await pace.enter(ahead=ahead)
            order.append(name)
            await asyncio.sleep(0)
            pace.leave(number, throttled=False)

        number = await pace.enter()
        names = ["later", "gone", "later still", "now", "soon"]
        tasks = [asyncio.create_task(ask(name, ahead="late" in name)) for name in names]
        await asyncio.sleep(0)
        pace.leave(number, throttled=False)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return order

    assert asyncio.run(scenario()) == ["now", "soon", "later", "later still"]


async def asked_at(pace: Pace, requests: int) -> list[float]:
    """Return when so many *requests*, which all want to leave at once, leave."""

    async def ask() -> float:
        await pace.enter()
        return asyncio.get_running_loop().time()

    return await asyncio.gather(*(ask() for _ in range(requests)))


def test_requests_leave_a_few_at_a_time() -> None:
    """So that their answers do not wait for one another; those of a system that answers at once do
    not wait at all."""

    async def scenario(seconds: float) -> list[float]:
        pace = Pace(64)
        pace.took(seconds)
        return await asked_at(pace, 64)

    left = asyncio.run(scenario(0.2))
    assert left[63] - left[0] >= 0.08
    assert left[31] - left[0] >= 0.03
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "sleep", note)
        asyncio.run(scenario(0.0))
        assert pauses == []
        asyncio.run(scenario(0.02))
        assert max(pauses) < 0.01


def test_a_place_given_up_before_its_turn_is_not_lost() -> None:
    async def scenario() -> int:
        pace = Pace(16)
        pace.took(1.0)
        tasks = [asyncio.create_task(pace.enter()) for _ in range(16)]
        await asyncio.sleep(0)
        tasks[15].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(10):
            return await pace.enter()

    assert asyncio.run(scenario()) == 16


def test_who_fills_free_places_is_called_until_all_are_asked(engine_for: EngineMaker) -> None:
    """Again while a stage is asked, and before it is judged."""
    endpoint = Scripted(delay=0.1)
    engine = engine_for(endpoint, concurrency=1)
    asked: list[int] = []
    engine.run(plan(8), meanwhile=lambda: asked.append(len(endpoint.requests)))
    assert len(set(asked)) > 2
    assert asked[-1] == 8


def test_nothing_is_asked_twice(engine_for: EngineMaker) -> None:
    """Later trials get the places that are left; the run that wants them waits for the rest, and
    asks none again."""
    endpoint = Scripted(delay=0.05)
    engine = engine_for(endpoint, concurrency=4)
    planned = later(40)
    trials = engine.run(plan(19), meanwhile=partial(engine.ask_ahead, planned))
    assert [trial.status for trial in trials] == [Status.ANSWERED] * 19
    assert any(map(is_later, endpoint.requests))
    assert endpoint.most == 4
    assert engine.ahead > 0
    ahead = engine.run(planned)
    assert [trial.reply for trial in ahead] == [
        f"Answer to: {trial.cell.prompt}" for trial in planned
    ]
    assert Counter(request.key for request in endpoint.requests).most_common(1)[0][1] == 1
    assert len(endpoint.requests) == 59
    assert len(records(engine.store.directory, "trial")) == 59
    assert engine.ahead == 0


def test_they_go_on_while_nobody_waits(engine_for: EngineMaker) -> None:
    endpoint = Scripted(delay=0.02)
    engine = engine_for(endpoint, concurrency=4)
    engine.run(plan(4), meanwhile=partial(engine.ask_ahead, later(12)))
    until(lambda: len(endpoint.requests) == 16 and engine.ahead == 0)
    engine.run(later(12))
    assert len(endpoint.requests) == 16


def test_some_of_them_and_others_besides(engine_for: EngineMaker) -> None:
    """A run wants part of what is asked ahead, what nobody has asked, and what is there."""
    endpoint = Scripted(delay=0.02)
    engine = engine_for(endpoint, concurrency=4)
    engine.run(plan(8), meanwhile=partial(engine.ask_ahead, later(20)))
    engine.ask_ahead(later(30))
    mixed = [*plan(4), *later(10, 1015), *later(5, 2000)]
    trials = engine.run(mixed)
    assert [trial.reply for trial in trials] == [
        f"Answer to: {trial.cell.prompt}" for trial in mixed
    ]
    engine.run(later(30))
    assert len(endpoint.requests) == 8 + 30 + 5


def test_the_first_trial_is_asked_alone(engine_for: EngineMaker) -> None:
    """A wrong key ends the run after one request; nothing ahead of time is sent."""

    def refuse(_: Request) -> Reply:
        raise AttemptError("no such key", evidence=Evidence.AUTH)

    endpoint = Scripted(refuse)
    engine = engine_for(endpoint, concurrency=4)
    with pytest.raises(EndpointError, match="no such key"):
        engine.run(plan(10), meanwhile=partial(engine.ask_ahead, later(10)))
    assert len(endpoint.requests) == 1
    engine.ask_ahead(later(10))
    assert engine.ahead == 0


def test_an_error_is_raised_by_the_run_that_wants_them(engine_for: EngineMaker) -> None:
    """An endpoint that refuses us between: the run under way keeps what it has, and the next says
    so."""

    def answer(request: Request) -> Reply:
        if is_later(request):
            raise AttemptError("the key has expired", evidence=Evidence.AUTH)
        return polite(request)

    engine = engine_for(Scripted(answer, delay=0.02), concurrency=4)
    trials = engine.run(plan(9), meanwhile=partial(engine.ask_ahead, later(10)))
    assert {trial.status for trial in trials} == {Status.ANSWERED}
    until(lambda: engine.ahead == 0)
    with pytest.raises(EndpointError, match="the key has expired"):
        engine.run(later(10))


@pytest.mark.parametrize("limits", [Limits(requests_per_minute=6000)], ids=["by the minute"])
def test_a_limit_leaves_no_place_free(engine_for: EngineMaker, limits: Limits) -> None:
    endpoint = Scripted()
    endpoint.limits = limits  # type: ignore[attr-defined]
    engine = engine_for(endpoint, concurrency=4)
    engine.run(plan(4), meanwhile=partial(engine.ask_ahead, later(10)))
    assert engine.ahead == 0
    assert len(endpoint.requests) == 4


# ------------------------------------------------------------ how it ends


def test_closed_with_trials_ahead(engine_for: EngineMaker) -> None:
    """What is in flight ends with its answer and is logged; nothing more is sent."""
    endpoint = Scripted(delay=0.1)
    engine = engine_for(endpoint, concurrency=4)
    engine.run(plan(4), meanwhile=partial(engine.ask_ahead, later(400)))
    until(lambda: len(endpoint.requests) > 6)
    engine.close()
    sent = len(endpoint.requests)
    assert sent < 60
    written = records(engine.store.directory, "trial")
    assert len(written) == sent
    assert {record["status"] for record in written} == {"answered"}


def interrupted(engine: Engine) -> None:
    engine.ask_ahead(later(400))
    raise KeyboardInterrupt


def test_an_interrupt_ends_them_too(engine_for: EngineMaker) -> None:
    endpoint = Scripted(delay=0.05)
    engine = engine_for(endpoint, concurrency=4)
    with contextlib.suppress(KeyboardInterrupt):
        engine.run(plan(40), meanwhile=partial(interrupted, engine))
    sent = len(endpoint.requests)
    time.sleep(0.2)
    assert len(endpoint.requests) == sent < 30
    assert engine.ahead == 0
    # The session goes on all the same: both are asked to their ends.
    engine.run([*plan(40), *later(10)])
    assert Counter(request.key for request in endpoint.requests).most_common(1)[0][1] == 1


def test_halted(engine_for: EngineMaker) -> None:
    endpoint = Scripted(delay=0.05)
    engine = engine_for(endpoint, concurrency=4)
    engine.run(plan(4), meanwhile=partial(engine.ask_ahead, later(400)))
    engine.halt("the session has ended")
    until(lambda: engine.ahead == 0)
    assert len(endpoint.requests) < 60
    with pytest.raises(EndpointError, match="the session has ended"):
        engine.run(later(10))
