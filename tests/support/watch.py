"""A watch on what hangs, in processor time, which other work on the machine does not add to."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

#: Characters over which a quadratic reader takes from two seconds on, as ``.*b`` does, and a
#: linear one some hundredths of a second.
LONG = 62_500


@contextlib.contextmanager
def watched(seconds: float = 1.25) -> Iterator[None]:
    """Fail what takes *seconds* of processor time in here; where there is no such alarm, the watch
    on the whole session is left.

    It tells the quadratic from the linear over :data:`LONG` characters.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"it takes more than {seconds:g} s of processor time")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
