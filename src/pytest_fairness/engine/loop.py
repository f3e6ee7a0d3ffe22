"""An event loop in a thread of its own, so that asking neither needs nor disturbs whatever loop the tests
run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """One event loop, started at once and running until :meth:`close`. A daemon: it cannot keep a process
    alive."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, name="pytest-fairness-asking", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            leftover = asyncio.all_tasks(self._loop)
            for task in leftover:
                task.cancel()
            if leftover:
                # A task that will not be cancelled must not hold up the end of the session.
                self._loop.run_until_complete(asyncio.wait(leftover, timeout=1.0))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start *coroutine* on the loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def call(self, function: Any, *arguments: Any) -> None:
        """Have the loop call *function* soon."""
        self._loop.call_soon_threadsafe(function, *arguments)

    def close(self) -> None:
        """Cancel what is still running, and end the thread. May be called twice."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=5.0)
