"""Limits per minute hold for all processes of a run together; the number in flight follows what the server bears."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from pytest_fairness.endpoints import load_endpoints
from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Limits, Reply, Request
from pytest_fairness.endpoints.registry import create_endpoint
from pytest_fairness.engine.lane import Pace
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Status, to_json
from tests.support.doubles import Scripted, plan, polite
from tests.support.runs import EngineMaker, records


def test_the_engine_holds_the_limit(engine_for: EngineMaker) -> None:
    """Twenty a second, and a second's worth to begin with: thirty take at least half a second, and are all asked."""
    endpoint = Scripted()
    endpoint.limits = Limits(requests_per_minute=1200)  # type: ignore[attr-defined]
    engine = engine_for(endpoint, concurrency=16)
    started = time.monotonic()
    trials = engine.run(plan(30))
    assert time.monotonic() - started >= 0.4
    assert {trial.status for trial in trials} == {Status.ANSWERED}
    (introduced,) = records(engine.store.directory, "engine")
    assert introduced["limits"] == to_json(Limits(requests_per_minute=1200))


def test_an_endpoint_has_a_number_in_flight_of_its_own(engine_for: EngineMaker) -> None:
    """What endpoints.yaml says of one endpoint counts for that one, whatever the session says."""
    endpoint = Scripted(delay=0.01)
    endpoint.limits = Limits(concurrency=2)  # type: ignore[attr-defined]
    engine_for(endpoint, concurrency=16).run(plan(20))
    assert endpoint.most == 2


def test_a_limit_beyond_the_deadline_leaves_trials_unasked(engine_for: EngineMaker) -> None:
    """What the limit lets wait until after the deadline is not run, and the session ends in time."""
    endpoint = Scripted()
    endpoint.limits = Limits(requests_per_minute=60)  # type: ignore[attr-defined]
    trials = engine_for(endpoint, deadline=0.4).run(plan(10))
    assert [trial.status for trial in trials].count(Status.NOT_RUN) == 8


def test_the_number_in_flight_follows_the_server(engine_for: EngineMaker) -> None:
    """A server that bears four at once is soon asked four at once: few are turned away, and all are answered."""
    turned_away = 0

    def answer(request: Request) -> Reply:
        nonlocal turned_away
        if endpoint.under_way > 4:
            turned_away += 1
            raise AttemptError("slow down", evidence=Evidence.THROTTLED, retry_after=0.02)
        return polite(request)

    class Busy(Scripted):
        @property
        def under_way(self) -> int:
            return self._now

    endpoint = Busy(answer, delay=0.005)
    trials = engine_for(endpoint, concurrency=32, max_attempts=20).run(plan(200))
    assert {trial.status for trial in trials} == {Status.ANSWERED}
    assert turned_away < 150


def test_the_pace_halves_once_for_a_round() -> None:
    """Requests that were turned away together count once; each round that goes well allows one more."""

    async def scenario() -> list[int]:
        pace = Pace(8)
        widths = [pace.width]
        for number in [await pace.enter() for _ in range(8)]:
            pace.leave(number, throttled=True)
        widths.append(pace.width)
        for _ in range(5):
            pace.leave(await pace.enter(), throttled=False)
        widths.append(pace.width)
        for _ in range(6):
            pace.leave(await pace.enter(), throttled=True)
        return [*widths, pace.width]

    assert asyncio.run(scenario()) == [8, 4, 5, 1]


def test_limits_are_read_from_the_file(tmp_path: Path) -> None:
    """Two keys of endpoints.yaml; what is no number of requests is refused with its line."""
    path = tmp_path / "endpoints.yaml"
    entry = 'endpoints:\n  - name: "m"\n    type: "openai"\n    model: "m"\n    requests_per_minute: {}\n'
    path.write_text(entry.format("500") + "    tokens_per_minute: 200000\n")
    config = load_endpoints(path)["m"]
    assert config.limits == Limits(requests_per_minute=500, tokens_per_minute=200_000)
    assert create_endpoint(config).limits == config.limits  # type: ignore[attr-defined]
    path.write_text(entry.format("0.5"))
    with pytest.raises(UsageError, match=r"endpoints.yaml:5: requests_per_minute: expected a whole number"):
        load_endpoints(path)


def test_an_endpoint_that_cannot_hold_limits_is_refused(tmp_path: Path) -> None:
    """A limit that nobody would keep is not passed over in silence."""

    class Slotted:
        __slots__ = ("_inner",)

        def __init__(self) -> None:
            self._inner = Scripted()

        name = type = "slotted"
        simulated = supports_system_prompt = False
        default_parameters: dict[str, object] = {}  # noqa: RUF012 - the protocol's shape is what matters here
        price = None
        ask, aclose, identity = Scripted.ask, Scripted.aclose, Scripted.identity

    path = tmp_path / "endpoints.yaml"
    path.write_text('endpoints:\n  - name: "m"\n    type: "slotted"\n    requests_per_minute: 5\n')
    config = load_endpoints(path, types=["slotted"])["m"]
    with pytest.raises(UsageError, match="cannot hold limits per minute"):
        create_endpoint(config, types={"slotted": lambda _config: Slotted()})  # type: ignore[dict-item,return-value]
