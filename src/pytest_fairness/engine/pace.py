"""How many requests are in flight: a number that adapts to what the server takes."""

from __future__ import annotations

import asyncio
from collections import deque


class Pace:
    """How many requests may be under way: *most*, halved whenever the server asks to slow down, and one more for
    each round that it does not (additive increase, multiplicative decrease).

    All methods run on the event loop.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._width = float(most)
        self._under_way = 0
        self._begun = 0
        self._last_cut = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def width(self) -> int:
        """How many may be under way now."""
        return int(self._width)

    async def enter(self, stopped: asyncio.Event) -> int | None:
        """Wait until another may go: its number, to be given back to :meth:`leave`; None if *stopped* comes first."""
        while self._under_way >= int(self._width):
            if stopped.is_set():
                return None
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            await place
        self._under_way += 1
        self._begun += 1
        return self._begun

    def leave(self, number: int, *, throttled: bool) -> None:
        """Request *number* has ended. Of many that were throttled together, one halves the width."""
        self._under_way -= 1
        if not throttled:
            self._width = min(float(self._most), self._width + 1 / self._width)
        elif number > self._last_cut:
            self._width = max(1.0, self._width / 2)
            self._last_cut = self._begun
        self.wake(max(0, int(self._width) - self._under_way))

    def wake(self, count: int | None = None) -> None:
        """Let *count* of those that wait look again; all of them without a number."""
        left = len(self._waiting) if count is None else count
        while self._waiting and left > 0:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                left -= 1
