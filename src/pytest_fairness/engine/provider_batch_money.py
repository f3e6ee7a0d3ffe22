"""Which trials go into the next batch: as many as may, in their order, and as the money goes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

from pytest_fairness.endpoints.batch_protocol import BatchApi
from pytest_fairness.endpoints.protocol import AttemptError
from pytest_fairness.engine.attempt import Asker
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.errors import BudgetError
from pytest_fairness.runs.money import Budget

#: Bodies that are made side by side: litellm waits for threads of its own at each.
_AT_ONCE = 32

#: A conversation, the body of its next request, and what is reserved for it (nano-dollars).
Lot = list[tuple[Conversation, bytes, int]]


async def take_lot(
    ready: deque[Conversation],
    *,
    api: BatchApi,
    asker: Asker,
    budget: Budget,
    most: int,
    reject: Callable[[Conversation, AttemptError], None],
    wait: Callable[[], Awaitable[bool]] | None,
    patience: Callable[[], float],
) -> Lot:
    """Take from the front of *ready* what goes into one batch, its worst case reserved. The order is kept, so that
    every part of a design that is cut has all its groups.

    What cannot be sent goes to *reject*. Where the cap leaves no room now: nothing, if *wait* is None (batches of
    this process are under way, and will cost less than was set aside); else *wait* is called until there is room, or
    it says that all is stopped. Raises BudgetError where there cannot be room, or none has come for *patience* seconds.
    """
    lot = await _bodies(ready, api=api, asker=asker, most=most, reject=reject)
    since = time.monotonic()
    while lot:
        # Looked at first: whatever was given back by then is there for the taking below.
        too_long = time.monotonic() - since > patience()
        kept = _within(lot, budget.room())
        # Where not even the first fits, reserving it says whether it ever can.
        chosen = lot[: max(kept, 1)]
        amount = sum(reserved for _, _, reserved in chosen)
        if kept or wait is not None:
            try:
                if amount == 0 or await budget.reserve(amount):
                    ready.extendleft(conversation for conversation, _, _ in reversed(lot[len(chosen) :]))
                    return chosen
            except BudgetError:
                if len(chosen) == 1:
                    raise
                continue  # another process was faster: less fits now
        if wait is None:
            break
        if too_long:
            raise budget.blocked(lot[0][2])  # held by processes that never settle
        if not await wait():
            break
    ready.extendleft(conversation for conversation, _, _ in reversed(lot))
    return []


async def _bodies(
    ready: deque[Conversation],
    *,
    api: BatchApi,
    asker: Asker,
    most: int,
    reject: Callable[[Conversation, AttemptError], None],
) -> Lot:
    """What *ready* holds at its front, up to *most* requests and as many bytes as a batch may have."""
    lot: Lot = []
    room = api.options.max_bytes
    while ready and len(lot) < most:
        some = [ready.popleft() for _ in range(min(_AT_ONCE, most - len(lot), len(ready)))]
        bodies = await asyncio.gather(
            *(api.body(asker.request(conversation)) for conversation in some), return_exceptions=True
        )
        for number, (conversation, body) in enumerate(zip(some, bodies, strict=True)):
            if isinstance(body, AttemptError):
                reject(conversation, body)
            elif isinstance(body, BaseException):
                raise body
            elif lot and len(body) > room:
                ready.extendleft(reversed(some[number:]))
                return lot
            else:
                room -= len(body)
                lot.append((conversation, body, asker.reservation(conversation)))
        await asyncio.sleep(0)  # a stop must be heard meanwhile
    return lot


def _within(lot: Lot, room: int | None) -> int:
    """How many of *lot*, from its front, fit into *room*."""
    if room is None:
        return len(lot)
    total = 0
    for number, (_, _, reserved) in enumerate(lot):
        total += reserved
        if total > room:
            return number
    return len(lot)
