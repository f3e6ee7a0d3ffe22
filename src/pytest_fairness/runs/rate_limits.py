"""Limits per minute that hold for all processes of a run.

The limits are a virtual schedule (GCRA, ITU-T I.371): each request moves the time at which the next
one is due by what it takes of a minute. Whoever comes more than a second early waits. The schedule
is in the run's database, so that workers hold the limits together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.endpoints.protocol import Limits
from pytest_fairness.model import JSON, Message, Usage
from pytest_fairness.runs.database import Database, Operation
from pytest_fairness.runs.money import output_limit

#: Seconds that a request may come early: what keeps small delays from adding up. The minute is
#: longer by as much, so that no 60 seconds hold more than the limit.
_EARLY = 1.0
_MINUTE = 60.0 + _EARLY
#: Output tokens taken for a reply whose length nothing limits, until there are replies to go by.
FIRST_GUESS = 500.0


class Take(Operation):
    """Take a turn for a call of so many *tokens*: 0 if it may go now, else the seconds until
    another try. *taken*: the turn was taken before, and these tokens come on top of it, or off.
    """

    identity: str
    tokens: int
    requests_per_minute: int | None
    tokens_per_minute: int | None
    taken: bool = False

    def run(self, database: Database) -> float:
        now = database.clock()
        execute = database.connection.execute
        query = "SELECT written, request_due, token_due FROM rate_limits WHERE identity = ?"
        written, request_due, token_due = execute(query, (self.identity,)).fetchone() or (
            now,
            now,
            now,
        )
        # A time of writing that is still to come shows a machine that was started anew, whose clock
        # began again; the wall clock, which may be set, has no say.
        if written > now + _EARLY:
            request_due = token_due = now
        if not self.taken:
            wait = max(request_due, token_due) - now - _EARLY
            if wait > 0:
                return float(wait)
            request_due = max(request_due, now) + _share(1, self.requests_per_minute)
            token_due = max(token_due, now)
        token_due += _share(self.tokens, self.tokens_per_minute)
        execute(
            "INSERT OR REPLACE INTO rate_limits VALUES (?, ?, ?, ?)",
            (self.identity, now, request_due, token_due),
        )
        return 0.0


class Limiter:
    """Requests and tokens per minute of the system with the hash *identity*, for all processes of
    the run.
    """

    def __init__(self, database: Database, identity: str, limits: Limits) -> None:
        self._database = database
        self._identity = identity
        self._limits = limits
        self._typical = FIRST_GUESS

    def estimate(self, messages: Sequence[Message], parameters: Mapping[str, JSON]) -> int:
        """Tokens that a call will take, by what replies took before where no parameter says it."""
        letters = sum(len(message.content.encode("utf-8", "surrogatepass")) for message in messages)
        limit = output_limit(parameters)
        reply = self._typical
        if limit is not None:
            reply = min(limit, 2 * self._typical)
        return letters // 3 + round(reply)

    async def take(self, tokens: int) -> float:
        """Take a turn, as :class:`Take` does."""
        limits = self._limits
        take = Take(self._identity, tokens, limits.requests_per_minute, limits.tokens_per_minute)
        return float(await self._database.done(take))

    def settle(self, tokens: int, usage: Usage | None) -> None:
        """Put what a call really took in the place of the estimate *tokens*."""
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            return
        self._typical += (max(0, usage.output_tokens) - self._typical) / 8
        if self._limits.tokens_per_minute is not None:
            more = max(0, usage.input_tokens) + max(0, usage.output_tokens) - tokens
            self._database.submit(
                Take(self._identity, more, None, self._limits.tokens_per_minute, taken=True)
            )


def _share(amount: int, per_minute: int | None) -> float:
    """Return the seconds of a minute that *amount* takes of a limit; 0 without a limit."""
    if per_minute is None:
        return 0.0
    return amount * _MINUTE / per_minute
