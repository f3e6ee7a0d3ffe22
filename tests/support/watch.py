"""A watch on what hangs, in processor time, which other work on the machine does not add to."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

#: Characters over which a quadratic reader takes from two seconds on, as ``.*b`` does, and a
#: linear one some hundredths of a second.
LONG = 62_500
LIMIT = 1.25  # seconds


def read_in_time(read: Callable[[str], object], text_of: Callable[[int], str], length: int) -> None:
    """Fail where *read* takes more than the limit for the text that *text_of* makes of *length*.

    An eighth of it is read first, then a quarter, a half and the whole. Where a part takes less
    than the limit times the square of the part, a time that grows with the square of the length
    stays within the limit, and no more need be read.
    """
    for part in (1 / 8, 1 / 4, 1 / 2, 1):
        text = text_of(round(length * part))
        before = time.process_time()
        with watched():
            read(text)
        if time.process_time() - before < LIMIT * part**2:
            return


@contextlib.contextmanager
def watched(seconds: float = LIMIT) -> Iterator[None]:
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
