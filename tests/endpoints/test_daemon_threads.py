"""Threads for functions that may never return: as a pool has them, but no end of a process waits for them."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import wait

import pytest

from pytest_fairness.endpoints.function import DaemonThreads


def test_calls_share_a_limited_number_of_threads() -> None:
    """No more run at once than allowed, idle threads are taken again, and every call gets its own answer."""
    threads = DaemonThreads(4, name="few")
    names, now, most = set(), 0, 0
    mutex = threading.Lock()
    gate = threading.Event()

    def call(number: int) -> int:
        nonlocal now, most
        with mutex:
            now += 1
            most = max(most, now)
            names.add(threading.current_thread().name)
        gate.wait(0.002)
        with mutex:
            now -= 1
        return number

    futures = [threads.submit(lambda number=number: call(number)) for number in range(200)]  # type: ignore[misc]
    assert [future.result(10) for future in futures] == list(range(200))
    assert most == 4
    assert names == {f"few-{number}" for number in range(1, 5)}
    threads.close()


def test_what_is_raised_is_the_futures() -> None:
    """Also what would end a thread: the next call finds it alive."""
    threads = DaemonThreads(1, name="raising")
    with pytest.raises(SystemExit):
        threads.submit(lambda: sys.exit(3)).result(5)
    assert threads.submit(lambda: 1).result(5) == 1
    threads.close()


def test_closing_cancels_what_has_not_begun_and_ends_the_threads() -> None:
    """Calls under way end as they do; those behind them never start."""
    threads = DaemonThreads(1, name="closing")
    begun, gate = threading.Event(), threading.Event()
    first = threads.submit(lambda: begun.set() or gate.wait(10))
    assert begun.wait(5)
    behind = [threads.submit(lambda: 1) for _ in range(3)]
    threads.close()
    gate.set()
    wait([first, *behind], timeout=5)
    assert [first.result(), *(future.cancelled() for future in behind)] == [True] * 4
    for thread in threading.enumerate():
        if thread.name.startswith("closing-"):
            thread.join(5)
            assert not thread.is_alive()


def test_a_call_that_hangs_keeps_no_process_alive() -> None:
    """The interpreter ends although a call never will."""
    code = (
        "import threading\n"
        "from pytest_fairness.endpoints.function import DaemonThreads\n"
        "begun = threading.Event()\n"
        "DaemonThreads(2, name='hung').submit(lambda: begun.set() or threading.Event().wait())\n"
        "begun.wait(5)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)
