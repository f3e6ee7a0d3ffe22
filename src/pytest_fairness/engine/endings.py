"""Ways in which a process is told to end: a signal, or the end of the process that it works for."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextlib.contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Within the block SIGTERM and SIGHUP raise KeyboardInterrupt, where they would kill the process: what is under
    way is then logged with its answer, not lost.

    Handlers that somebody else has set are left alone, and so is every thread but the main one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


class ParentWatch:
    """Calls *gone*, again and again, once this process is no longer a child of process *parent*, or *ended* says so.

    Systems that never change a process's parent (Windows) show its end by *ended* alone.
    """

    def __init__(
        self,
        parent: int,
        gone: Callable[[], None],
        *,
        ended: Callable[[], bool] = lambda: False,
        every: float = 0.1,
    ) -> None:
        self._parent, self._gone, self._is_over, self._every = parent, gone, ended, every
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pytest-fairness-parent", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(self._every):
            if os.getppid() != self._parent or self._is_over():
                with contextlib.suppress(RuntimeError):  # the loop of an engine that is closing
                    self._gone()

    def stop(self) -> None:
        """Watch no more. May be called twice."""
        self._ended.set()
        self._thread.join(timeout=5.0)
