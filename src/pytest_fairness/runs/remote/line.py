"""The worker's end of the connection: questions that wait for their answer, and words that do not."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from pytest_fairness.errors import FairnessError, StoreError
from pytest_fairness.runs.remote.messages import BadMessageError, Channel, decode, encode, raised

_LOST = (
    "the connection to pytest-xdist's controller is lost, and with it the run's log: nothing more is asked here; "
    "what the controller has logged is kept"
)


class Line:
    """Asks the controller over *channel*; thread safe. *patience*: seconds to wait for an answer.

    Once an answer is missing, or anything is refused that nobody waited for, nothing more is sent: every later
    question raises that error, as nothing must be paid for that cannot be recorded.
    """

    def __init__(self, channel: Channel, *, patience: float = 120.0) -> None:
        self._channel = channel
        self._patience = patience
        self._numbers = itertools.count(1)
        self._mutex = threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self._broken: FairnessError | None = None
        self._over: str | None = None
        self._listeners: list[Callable[[str], None]] = []
        channel.setcallback(self._received, endmarker=None)

    def ask(self, do: str, /, **arguments: Any) -> Any:
        """What the controller answers. Raises what it raised, or StoreError where no answer comes."""
        number = next(self._numbers)
        future: Future[Any] = Future()
        with self._mutex:
            if self._broken is not None:
                raise self._again(self._broken)
            self._waiting[number] = future
        try:
            self._send({"id": number, "do": do, "with": arguments})
            return future.result(self._patience)
        except FutureTimeout:
            waited = f"within {self._patience:g} s"
            error = StoreError(f"pytest-xdist's controller did not answer ({do}) {waited}: nothing more is asked here")
            self._break(error)
            raise error from None
        finally:
            self._waiting.pop(number, None)

    def tell(self, do: str, /, **arguments: Any) -> None:
        """Tell the controller, and do not wait. What it says against that is raised by the next call."""
        if self._broken is not None:
            raise self._again(self._broken)
        self._send({"id": None, "do": do, "with": arguments})

    def when_over(self, listener: Callable[[str], None]) -> None:
        """Have *listener* called, with the reason, when nothing more is to be asked: because the controller says so,
        or cannot be reached. It is called at once if that was before.
        """
        with self._mutex:
            self._listeners.append(listener)
            over = self._over
        if over is not None:
            listener(over)

    def close(self) -> None:
        """Nothing more is said. May be called twice."""
        with self._mutex:
            self._listeners.clear()
            self._broken = self._broken or StoreError("the store is closed")
        with contextlib.suppress(OSError):
            self._channel.close()

    # ------------------------------------------------------------ what arrives, in a thread of the connection

    def _received(self, item: object) -> None:
        if item is None:
            self._break(StoreError(_LOST))
            return
        try:
            message = decode(item)
        except BadMessageError as error:
            self._break(StoreError(f"pytest-xdist's controller sent no answer of this version: {error}"))
            return
        if "halt" in message:
            self._end(str(message["halt"]))
            return
        future = self._waiting.pop(message.get("id") or 0, None)
        if "error" not in message:
            if future is not None:
                future.set_result(message.get("value"))
        elif future is not None:
            future.set_exception(raised(message["error"]))
        else:
            self._break(raised(message["error"]))

    def _send(self, message: dict[str, Any]) -> None:
        text = encode(message)
        try:
            self._channel.send(text)
        except OSError:
            self._break(StoreError(_LOST))
            raise StoreError(_LOST) from None

    def _break(self, error: FairnessError) -> None:
        with self._mutex:
            self._broken = self._broken or error
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for future in waiting:
            with contextlib.suppress(Exception):  # its asker has just given up
                future.set_exception(self._again(error))
        self._end(str(error))

    def _end(self, why: str) -> None:
        with self._mutex:
            listeners = [] if self._over is not None else list(self._listeners)
            self._over = self._over or why
        for listener in listeners:
            with contextlib.suppress(RuntimeError):  # the loop of an engine that is closing
                listener(why)

    @staticmethod
    def _again(error: FairnessError) -> FairnessError:
        # Each asker gets one of its own: raised in several threads, one exception would gather all their tracebacks.
        return type(error)(str(error))
