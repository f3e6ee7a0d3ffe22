"""Threads that cannot keep the process alive: for functions of the user's, which may never return.

The standard library's pool waits for all its threads when the interpreter ends, and one call that hangs would hold
up the end of the session for ever.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any


class DaemonThreads:
    """Calls functions in up to *most* threads, which are started when needed and kept for the next call."""

    def __init__(self, most: int, *, name: str) -> None:
        self._most, self._name = most, name
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._mutex = threading.Lock()
        self._threads = 0
        self._waiting = 0

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Have *call* called; what it returns or raises is the future's. Cancelled before it began, it never is."""
        future: Future[Any] = Future()
        with self._mutex:
            self._waiting += 1
            self._calls.put((future, call))
            if self._waiting > 0 and self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        return future

    def _work(self) -> None:
        while (task := self._next()) is not None:
            future, call = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001 - it is the caller's, whatever it is
                    future.set_exception(error)

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._mutex:
            self._waiting -= 1  # this thread takes one, now or as soon as there is one
        return self._calls.get()

    def close(self) -> None:
        """Cancel calls that have not begun; the threads end as theirs do, and nothing waits for them. Nothing may be
        submitted any more.
        """
        with contextlib.suppress(Empty):
            while (task := self._calls.get_nowait()) is not None:
                task[0].cancel()
        with self._mutex:
            for _ in range(self._threads):
                self._calls.put(None)
