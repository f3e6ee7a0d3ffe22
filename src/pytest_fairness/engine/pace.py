"""The lanes of an engine, one an endpoint: its attempts, how many are in flight, its limits, and its pauses."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.engine.attempt import Asker
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.runs.rate_limits import Limiter


class Pace:
    """How many requests may be in flight: *most*, halved whenever the server asks to slow down, and one more for
    each round that it does not (additive increase, multiplicative decrease).

    All methods run on the event loop.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._width = float(most)
        self._in_flight = 0
        self._begun = 0
        self._last_cut = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def width(self) -> int:
        """How many may be in flight now."""
        return int(self._width)

    async def enter(self, stopped: asyncio.Event) -> int | None:
        """Wait until another may go: its number, to be given back to :meth:`leave`; None if *stopped* comes first."""
        while self._in_flight >= int(self._width):
            if stopped.is_set():
                return None
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            await place
        self._in_flight += 1
        self._begun += 1
        return self._begun

    def leave(self, number: int, *, throttled: bool) -> None:
        """Request *number* has ended. Of many that were throttled together, one halves the width."""
        self._in_flight -= 1
        if not throttled:
            self._width = min(float(self._most), self._width + 1 / self._width)
        elif number > self._last_cut:
            self._width = max(1.0, self._width / 2)
            self._last_cut = self._begun
        self.wake(max(0, int(self._width) - self._in_flight))

    def wake(self, count: int | None = None) -> None:
        """Let *count* of those that wait look again; all of them without a number."""
        left = len(self._waiting) if count is None else count
        while self._waiting and left > 0:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                left -= 1


@dataclass(slots=True)
class Lane:
    """One endpoint. ``paused_until`` is on the monotonic clock, ``unreached`` how many attempts in a row got no
    connection.
    """

    asker: Asker
    pace: Pace
    limiter: Limiter | None = None
    paused_until: float = 0.0
    unreached: int = 0
    _ready: asyncio.Task[None] | None = None

    @property
    def endpoint(self) -> Endpoint:
        return self.asker.endpoint

    def preparing(self) -> asyncio.Task[None] | None:
        """The endpoint's preparation, which is begun once; None where it needs none. Call it on the event loop."""
        prepare = getattr(self.endpoint, "prepare", None)
        if prepare is not None and self._ready is None:
            self._ready = asyncio.get_running_loop().create_task(prepare())
            # Its error is raised to whoever waits; nobody may be waiting any more.
            self._ready.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._ready


class Lanes:
    """The lane *own* of the engine's endpoint, and one for each other system, made by *make* when it is first needed.

    A lane stands for an identity, whatever objects have it.
    """

    def __init__(self, own: Lane, make: Callable[[Endpoint, str], Lane]) -> None:
        self.own = own
        self._make = make
        self._by_identity: dict[str, Lane] = {}
        # With the endpoint itself: what is alive keeps its id.
        self._by_id: dict[int, tuple[Endpoint, Lane]] = {}

    def of(self, endpoint: Endpoint | None) -> Lane:
        """The lane of *endpoint*, which a step names; of None, the engine's own."""
        if endpoint is None:
            return self.own
        if id(endpoint) not in self._by_id:
            digest = identity_hash(endpoint.identity())
            if digest not in self._by_identity:
                self._by_identity[digest] = self._make(endpoint, digest)
            self._by_id[id(endpoint)] = endpoint, self._by_identity[digest]
        return self._by_id[id(endpoint)][1]

    def __iter__(self) -> Iterator[Lane]:
        yield self.own
        yield from self._by_identity.values()
