"""Limits per minute hold for all processes of a run together; the number in flight follows what the server bears."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.endpoints import load_endpoints
from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Limits, Reply, Request
from pytest_fairness.endpoints.registry import create_endpoint
from pytest_fairness.engine.pace import Pace
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Message, Status, Usage, to_json
from pytest_fairness.runs.rate_limits import Limiter
from tests.support.doubles import Scripted, plan, polite
from tests.support.runs import EngineMaker, records


class Clock:
    """Time that passes when somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def times(limiter: Limiter, clock: Clock, tokens: list[int]) -> Iterator[float]:
    """When each call of so many tokens may go, asked for one after the other."""
    for amount in tokens:
        while (wait := limiter.take(amount)) > 0:
            clock.now += wait
        yield clock.now


@given(limit=st.integers(1, 200), calls=st.integers(1, 150))
@settings(max_examples=30, deadline=None)
def test_no_minute_holds_more_requests_than_allowed(
    tmp_path_factory: pytest.TempPathFactory, limit: int, calls: int
) -> None:
    """Whatever the limit: no 60 seconds hold more, and no more time is lost than that needs."""
    clock = Clock()
    limiter = Limiter(tmp_path_factory.mktemp("rate") / "rate", Limits(requests_per_minute=limit), clock=clock)
    sent = list(times(limiter, clock, [0] * calls))
    limiter.close()
    for first, beyond in zip(sent, sent[limit:], strict=False):
        assert beyond - first >= 60 - 1e-4
    assert sent[-1] - sent[0] <= calls / limit * 61


def test_tokens_are_counted_as_they_were_used(tmp_path: Path, clock: Clock) -> None:
    """What a call took in the end counts, not what it was taken for: too much waits, too little is given back."""
    limiter = Limiter(tmp_path / "rate", Limits(tokens_per_minute=6000), clock=clock)
    assert limiter.take(1000) == 0
    assert limiter.take(1000) == pytest.approx(61 / 6 - 1)
    limiter.settle(1000, Usage(input_tokens=50, output_tokens=10))
    assert limiter.take(1000) == 0
    limiter.settle(1000, Usage(input_tokens=50, output_tokens=2950))
    assert limiter.take(10) > 20
    limiter.close()


def test_processes_share_the_limits(tmp_path: Path, clock: Clock) -> None:
    """Two openers of the file have one schedule; a machine started anew begins a new one."""
    one, two = (Limiter(tmp_path / "rate", Limits(requests_per_minute=1), clock=clock) for _ in range(2))
    assert one.take(0) == 0
    assert two.take(0) > 50
    clock.now -= 7200
    assert two.take(0) == 0
    one.close()
    two.close()


def test_an_estimate_learns_from_replies(tmp_path: Path, clock: Clock) -> None:
    """At first a guess; then what replies took; never more than the parameters allow."""
    limiter = Limiter(tmp_path / "rate", Limits(tokens_per_minute=1), clock=clock)
    messages = (Message("user", "x" * 300),)
    first = limiter.estimate(messages, {})
    for _ in range(50):
        limiter.settle(0, Usage(input_tokens=100, output_tokens=20))
    assert 100 < limiter.estimate(messages, {}) < 130 < first
    assert limiter.estimate(messages, {"max_tokens": 5}) == 105
    limiter.close()


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
        pace, stopped = Pace(8), asyncio.Event()
        widths = [pace.width]
        numbers = [number for _ in range(8) if (number := await pace.enter(stopped)) is not None]
        for number in numbers:
            pace.leave(number, throttled=True)
        widths.append(pace.width)
        for _ in range(5):
            number = await pace.enter(stopped)
            assert number is not None
            pace.leave(number, throttled=False)
        widths.append(pace.width)
        for _ in range(6):
            number = await pace.enter(stopped)
            assert number is not None
            pace.leave(number, throttled=True)
        widths.append(pace.width)
        number = await pace.enter(stopped)
        stopped.set()
        assert await pace.enter(stopped) is None
        return widths

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
