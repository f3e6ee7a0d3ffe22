"""The systems that the trials of one engine ask: its own endpoint, and those that steps name. Each has a lane: its
attempts, how many may be under way, its limits per minute, and until when it wants to be left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pytest_fairness.endpoints.protocol import Endpoint, preparation_of
from pytest_fairness.engine.attempt import Asker
from pytest_fairness.engine.pace import Pace
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.runs.rate_limits import Limiter


@dataclass(slots=True)
class Lane:
    """One system. ``paused_until`` is on the monotonic clock, ``unreached`` how many attempts in a row got no
    connection.
    """

    endpoint: Endpoint
    asker: Asker
    pace: Pace
    limiter: Limiter | None = None
    paused_until: float = 0.0
    unreached: int = 0
    _ready: asyncio.Task[None] | None = None

    def preparing(self) -> asyncio.Task[None] | None:
        """The endpoint's preparation, which is begun once; None where it needs none. Call it on the event loop."""
        prepare = preparation_of(self.endpoint)
        if prepare is not None and self._ready is None:
            self._ready = asyncio.get_running_loop().create_task(prepare())
            # Its error is raised to whoever waits; nobody may be waiting any more.
            self._ready.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._ready


class Lanes:
    """The lane *own* of the engine's endpoint, and one for each other system, made by *make* when it is first asked."""

    def __init__(self, own: Lane, make: Callable[[Endpoint, str], Lane]) -> None:
        self.own = own
        self._make = make
        self._by_identity: dict[str, Lane] = {}
        # With the endpoint itself: what is alive keeps its id.
        self._seen: dict[int, tuple[Endpoint, Lane]] = {}

    def of(self, endpoint: Endpoint | None) -> Lane:
        """The lane of *endpoint*, which a step names; of None, the engine's own."""
        if endpoint is None:
            return self.own
        if id(endpoint) not in self._seen:
            digest = identity_hash(endpoint.identity())
            if digest not in self._by_identity:
                self._by_identity[digest] = self._make(endpoint, digest)
            self._seen[id(endpoint)] = endpoint, self._by_identity[digest]
        return self._seen[id(endpoint)][1]

    def wake(self) -> None:
        """Let all that wait for room look again."""
        for lane in self:
            lane.pace.wake()

    def __iter__(self) -> Iterator[Lane]:
        yield self.own
        yield from self._by_identity.values()
