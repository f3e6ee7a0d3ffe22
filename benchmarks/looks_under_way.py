"""Tests that look, on a server with latency: wall over the ideal of their calls.

    python benchmarks/looks_under_way.py [--tests N] [--latency S] [--concurrency N] [--rounds N]

Each test asks a yes/no question of four groups at 10, 20 and 40 names, 5 templates and 2
repetitions, until its verdict. *Ideal* is calls x latency / in flight. The wall runs from the first
test's begin to the last one's end: imports and reports are left out, requests and judgements are
in. The server has a core of its own where there are two; quote ratios of one run only.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from running import CLIENT_CORE, Server, pin

PROJECT = """
import hashlib

import pytest
from pytest_fairness import assert_no_disparity


def approved(key):
    return int(hashlib.sha256(key.encode()).hexdigest()[:8], 16) < 0.8 * 2**32


def made(number):
    @pytest.mark.fairness_grid(
        template=[f"Audit {number}, file {file}: assess {{name}}." for file in range(5)],
        groups={"race_ethnicity": ["white", "black", "hispanic", "asian"]},
        names=(10, 20, 40),
        repetitions=2,
    )
    def test(trials):
        trials["approved"] = trials["key"].map(approved)
        assert_no_disparity(trials, outcome="approved", by="race_ethnicity", kind="binary")

    return test


for number in range(TESTS):
    globals()[f"test_{number}"] = made(number)
"""
CONFTEST = """
import time

# What asking and judging import once a process is no part of either.
import aiohttp, pandas, scipy.stats, statsmodels.stats.multitest, statsmodels.stats.proportion

BEGUN = []


def pytest_runtest_logstart(nodeid):
    BEGUN.append((time.monotonic(), time.process_time()))


def pytest_runtest_logfinish(nodeid):
    wall, cpu = BEGUN[0]
    print(f"\\nWALL {time.monotonic() - wall:.4f} {time.process_time() - cpu:.4f}")
"""
ENDPOINTS = """
endpoints:
  - name: server
    type: openai
    model: gpt-4o-mini
    base_url: http://127.0.0.1:{port}/v1
    api_key_env: BENCHMARK_KEY
"""
INI = """
[pytest]
fairness_progress = off
fairness_endpoint = server
fairness_concurrency = {concurrency}
"""


def measure(server: Server, tests: int, concurrency: int) -> tuple[float, float, int]:
    """Return the wall and the processor's time in seconds, and the calls, of one session. Raises
    RuntimeError where it did not judge every test.
    """
    before = server.served()["served"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_looks.py").write_text(f"TESTS = {tests}\n{PROJECT}")
        Path(folder, "conftest.py").write_text(CONFTEST)
        Path(folder, "endpoints.yaml").write_text(ENDPOINTS.format(port=server.port))
        Path(folder, "pytest.ini").write_text(INI.format(concurrency=concurrency))
        command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider"]
        environment = {**os.environ, "BENCHMARK_KEY": "none"}
        with subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            pin(process.pid, CLIENT_CORE)
            out, _ = process.communicate()
    ends = [line.split()[1:] for line in out.splitlines() if line.startswith("WALL ")]
    if len(ends) != tests:
        raise RuntimeError(f"{len(ends)} of {tests} tests ended:\n{out[-2000:]}")
    wall, cpu = map(float, ends[-1])
    return wall, cpu, server.served()["served"] - before


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tests", type=int, default=4)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    ratios = []
    with Server(given.latency) as server:
        for _ in range(given.rounds):
            wall, cpu, calls = measure(server, given.tests, given.concurrency)
            ideal = calls * given.latency / given.concurrency
            ratios.append(wall / ideal)
            print(
                f"{calls} calls: {wall:.2f} s ({cpu:.2f} s of processor), ideal {ideal:.2f} s, "
                f"{wall / ideal:.3f}"
            )
    print(f"wall over ideal, median of {given.rounds}: {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
