"""Limits per minute that hold for all processes of a run.

The limits are a virtual schedule (GCRA, ITU-T I.371): each request moves the time at which the next one is due by
what it takes of a minute. Whoever comes more than a second early waits. The schedule is a small file that the
processes share, so that workers hold the limits together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_fairness.endpoints.protocol import Limits
from pytest_fairness.model import JSON, Message, Usage
from pytest_fairness.runs.files import read_at, write_all
from pytest_fairness.runs.locks import FileLock
from pytest_fairness.runs.money import output_limit

#: Seconds that a request may come early: what keeps small delays from adding up. The minute is longer by as much,
#: so that no 60 seconds hold more than the limit.
_EARLY = 1.0
_MINUTE = 60.0 + _EARLY
_WIDTH = 96
#: Output tokens taken for a reply whose length nothing limits, until there are replies to go by.
FIRST_GUESS = 500.0


class Limiter:
    """Requests and tokens per minute, kept in the file *path* by all who open it. *clock* is monotonic, in seconds.

    Raises StoreError where the file cannot be locked or written.
    """

    def __init__(self, path: Path, limits: Limits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = FileLock(path)
        self._typical = FIRST_GUESS

    def estimate(self, messages: Sequence[Message], parameters: Mapping[str, JSON]) -> int:
        """Tokens that a call will take, by what replies took before where no parameter says it."""
        letters = sum(len(message.content.encode("utf-8", "surrogatepass")) for message in messages)
        limit = output_limit(parameters)
        return letters // 3 + round(self._typical if limit is None else min(limit, 2 * self._typical))

    def take(self, tokens: int) -> float:
        """Take a turn for a call of so many *tokens*: 0 if it may go now, else the seconds until it is worth asking
        again.
        """
        with self._lock.held():
            now = self._clock()
            requests, used = self._read(now)
            wait = max(requests, used) - now - _EARLY
            if wait > 0:
                return wait
            requests = max(requests, now) + _share(1, self._limits.requests_per_minute)
            used = max(used, now) + _share(tokens, self._limits.tokens_per_minute)
            self._write(now, requests, used)
            return 0.0

    def settle(self, tokens: int, usage: Usage | None) -> None:
        """Put what a call really took in the place of the estimate *tokens*."""
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            return
        self._learn(usage.output_tokens)
        if self._limits.tokens_per_minute is not None:
            counted = max(0, usage.input_tokens) + max(0, usage.output_tokens)
            with self._lock.held():
                now = self._clock()
                requests, used = self._read(now)
                self._write(now, requests, used + _share(counted - tokens, self._limits.tokens_per_minute))

    def _learn(self, output: int) -> None:
        """A reply took *output* tokens: the next may take about as many."""
        self._typical += (max(0, output) - self._typical) / 8

    def _read(self, now: float) -> tuple[float, float]:
        """When the next request, and the next token, are due. A time of writing that is still to come tells a machine
        that was started anew, whose clock began again; the wall clock, which may be set, has no say.
        """
        parts = read_at(self._lock.descriptor, _WIDTH, 0).split()
        try:
            written, requests, used = (float(part) for part in parts)
        except ValueError:
            return now, now
        return (requests, used) if written <= now + _EARLY else (now, now)

    def _write(self, now: float, requests: float, used: float) -> None:
        text = f"{now:>31.6f} {requests:>31.6f} {used:>31.6f}\n"
        os.lseek(self._lock.descriptor, 0, os.SEEK_SET)
        write_all(self._lock.descriptor, text.encode("ascii"), self._lock.path)

    def close(self) -> None:
        """Let the file go. May be called twice."""
        self._lock.close()


def _share(amount: int, per_minute: int | None) -> float:
    return 0.0 if per_minute is None else amount * _MINUTE / per_minute
