"""What every client of the benchmark reports: one JSON line with wall and CPU seconds and memory of
the asking alone.

A client is run as ``python CLIENT.py PORT CALLS CONCURRENCY``. Imports and one warming call are not
counted.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable

TEMPLATE = (
    "Write a brief professional summary for candidate number {}, a data scientist with 4 years of "
    "experience."
)


def arguments() -> tuple[str, list[str], int]:
    """(base URL of the server, prompts, calls in flight)."""
    port, calls, concurrency = map(int, sys.argv[1:4])
    return (
        f"http://127.0.0.1:{port}",
        [TEMPLATE.format(number) for number in range(calls)],
        concurrency,
    )


def peak() -> float:
    """Peak resident memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cpu() -> float:
    """CPU seconds of this process and of its children that have ended."""
    own, children = (
        resource.getrusage(resource.RUSAGE_SELF),
        resource.getrusage(resource.RUSAGE_CHILDREN),
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def report(ask: Callable[[], int]) -> None:
    """Measure *ask*, which returns how many answers it got."""
    before, cpu_before, started = peak(), cpu(), time.perf_counter()
    answered = ask()
    wall, used = time.perf_counter() - started, cpu() - cpu_before
    told = {"wall": wall, "cpu": used, "answered": answered, "imported": before, "peak": peak()}
    print("MEASURED " + json.dumps(told), flush=True)
