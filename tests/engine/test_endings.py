"""Signals, and the end of the process that one works for: asking stops, and what was asked is logged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pytest_fairness.engine.engine import ParentWatch, ended_as_by_ctrl_c
from pytest_fairness.errors import EndpointError
from tests.support.doubles import Scripted, plan
from tests.support.runs import EngineMaker, records

posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_the_asking(engine_for: EngineMaker, number: signal.Signals) -> None:
    """As Ctrl-C does: calls under way end with their answers, the rest is not asked, and the log is whole."""
    endpoint = Scripted(delay=0.2)
    engine = engine_for(endpoint, concurrency=4)
    # Under nohup our own process ignores hang-ups, and so, rightly, would the engine.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), number)).start()
        with pytest.raises(KeyboardInterrupt, match=number.name):
            engine.run(plan(200))
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert 4 <= len(endpoint.asked) <= 12
    assert len(records(engine.store.directory, "trial")) == len(endpoint.asked)


@posix
def test_handlers_of_others_are_left_alone() -> None:
    """A project that handles SIGTERM itself goes on doing so; other threads cannot set handlers, and need not."""
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: seen.append(number))
    try:
        with ended_as_by_ctrl_c():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]

    def elsewhere() -> None:
        with ended_as_by_ctrl_c():
            seen.append(0)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [signal.SIGTERM, 0]


def test_a_halted_engine_sends_nothing_more(engine_for: EngineMaker) -> None:
    """From another thread, while it asks: what is under way is logged, the caller gets the reason, now and later."""
    endpoint = Scripted(delay=0.1)
    engine = engine_for(endpoint, concurrency=4)
    threading.Timer(0.15, engine.halt, ("nobody is left",)).start()
    with pytest.raises(EndpointError, match="nobody is left"):
        engine.run(plan(200))
    asked = len(endpoint.asked)
    assert asked <= 12
    assert len(records(engine.store.directory, "trial")) == asked
    with pytest.raises(EndpointError, match="nobody is left"):
        engine.run(plan(200))
    assert len(endpoint.asked) == asked


ORPHAN = """
import os, sys, threading
from pytest_fairness.engine.engine import ParentWatch

gone = threading.Event()
watch = ParentWatch(int(sys.argv[1]), gone.set, every=0.02)
print("watching", flush=True)
gone.wait(10)
open(sys.argv[2], "w").write("gone" if gone.is_set() else "there")
"""


@posix
def test_a_child_notices_that_its_parent_has_gone(tmp_path: Path) -> None:
    """Within the interval, although nothing was sent to it; while the parent lives, it is left in peace."""
    told = tmp_path / "told"
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, os, time\n"
            "child = subprocess.Popen([sys.executable, '-c', sys.argv[1], str(os.getpid()), sys.argv[2]],"
            " stdout=subprocess.PIPE)\n"
            "child.stdout.readline()\nprint('ready', flush=True)\ntime.sleep(60)",
            ORPHAN,
            str(told),
        ],
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    parent.stdout.readline()
    time.sleep(0.1)
    assert not told.exists()
    parent.kill()
    parent.communicate()
    until = time.monotonic() + 5
    while not told.exists() and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.05)
    assert told.read_text() == "gone"


def test_a_watch_ends() -> None:
    """When its owner closes, nothing is called any more."""
    calls: list[int] = []
    watch = ParentWatch(-1, lambda: calls.append(1), every=0.01)
    time.sleep(0.05)
    watch.stop()
    watch.stop()
    seen = len(calls)
    assert seen >= 1
    time.sleep(0.05)
    assert len(calls) == seen


def test_a_watch_calls_when_the_session_has_ended() -> None:
    """Though the parent lives."""
    ended, calls = threading.Event(), threading.Event()
    watch = ParentWatch(os.getppid(), calls.set, ended=ended.is_set, every=0.01)
    assert not calls.wait(0.1)
    ended.set()
    assert calls.wait(5)
    watch.stop()
