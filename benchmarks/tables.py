"""How fast a table of decisions is judged, beside the bare GROUP BY of the engine that reads it.

Run: python benchmarks/tables.py [--rows 10000000] [--most 100000000] [--names 1000000]

Each in a process of its own: seconds and seconds of CPU beyond imports, and peak memory. A table of a
hundred rows is read first, so that nothing is imported later. On a machine that others use, too,
compare seconds of CPU, and the ratios of one run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import duckdb

TABLE = """COPY (SELECT {columns} FROM (SELECT ['white', 'black', 'hispanic', 'asian'][1 + (hash(i) % 4)::INT] AS race,
    hash(i * 7 + 1) % 1000 < 400 AS hired,
    'name ' || (4 * (hash(i * 3 + 2) % {names} // 4) + hash(i) % 4) AS name,
    sqrt(-2 * ln((hash(i * 5 + 3) % 1000003 + 1) / 1000004))
        * cos(2 * pi() * (hash(i * 11 + 4) % 1000003) / 1000003) AS score,
    exp(3 * score) AS income
    FROM range({rows}) AS t(i))) TO '{path}'"""
GROUPED = """import duckdb
duckdb.sql("SELECT {columns} FROM '{path}' GROUP BY ALL").fetchnumpy()"""
REDUCED = """from pytest_fairness import counts_of
counts_of('{path}', 'hired', 'race', cluster='name')"""
JUDGED = """from pytest_fairness import analyze_disparity
analyze_disparity('{path}', '{outcome}', 'race', cluster={cluster!r}, block=None)"""
BY_PANDAS = """import pandas as pd
from pytest_fairness import analyze_disparity
analyze_disparity(pd.read_parquet('{path}'), 'hired', 'race', cluster=None, block=None)"""
SPILLING = """import duckdb
def small(connect=duckdb.connect):
    engine = connect()
    engine.sql("SET memory_limit = '200MB'")
    return engine
duckdb.connect = small
"""
COUNTS = "race, hired, COUNT(*)"
BINS = "race, floor(score * 200), COUNT(*), SUM(score), SUM(score * score), MIN(score), MAX(score)"


class Cost(NamedTuple):
    """Of a program: seconds and those of CPU beyond imports, and megabytes."""

    seconds: float
    cpu: float
    megabytes: float

    def __str__(self) -> str:
        return f"{self.seconds:6.2f} s, {self.cpu:6.2f} s CPU, {self.megabytes:5.0f} MB"


def measured(program: str, path: Path) -> Cost:
    """Return what *program* costs, which reads *path*; once before for a hundred rows of the same."""
    watched = (
        "import resource, time\n"
        "def cpu():\n"
        "    used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "    return used.ru_utime + used.ru_stime\n"
        f"{program.replace(str(path), str(small_beside(path)))}\n"
        "begun, spent = time.perf_counter(), cpu()\n"
        f"{program}\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(time.perf_counter() - begun, cpu() - spent, peak)"
    )
    result = subprocess.run(
        [sys.executable, "-c", watched], check=True, capture_output=True, text=True
    )
    seconds, cpu, kilobytes = map(float, result.stdout.split()[-3:])
    return Cost(seconds, cpu, kilobytes / 1024)


def small_beside(path: Path) -> Path:
    """Return where the first rows of the table at *path* stand."""
    return path.with_name("small.parquet")


def shown(title: str, path: Path, programs: dict[str, str]) -> None:
    """Print what each of *programs*, which read *path*, costs, and beside it the first."""
    print(title)
    duckdb.sql(f"COPY (FROM '{path}' LIMIT 100) TO '{small_beside(path)}'")
    first = None
    for name, program in programs.items():
        cost = measured(program, path)
        first = first or cost
        ratios = f"{cost.seconds / first.seconds:5.2f} ×, {cost.cpu / first.cpu:5.2f} × CPU"
        print(f"  {name:34s} {cost}, {ratios}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--most", type=int, default=100_000_000, help="rows of the largest table")
    parser.add_argument("--names", type=int, default=1_000_000)
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decisions.parquet"

        def table(rows: int, columns: str = "*") -> None:
            duckdb.sql(TABLE.format(rows=rows, columns=columns, names=given.names, path=path))

        def bare(columns: str) -> str:
            return GROUPED.format(columns=columns, path=path)

        def judged(outcome: str, cluster: str | None = None) -> str:
            return JUDGED.format(path=path, outcome=outcome, cluster=cluster)

        table(given.rows)
        shown(
            f"{given.rows:,} yes/no rows",
            path,
            {"bare GROUP BY": bare(COUNTS), "judged": judged("hired")},
        )
        shown(
            f"{given.rows:,} numbers",
            path,
            {
                "bare GROUP BY of as many bins": bare(BINS),
                "judged": judged("score"),
                "judged, heavy tails": judged("income"),
            },
        )
        shown(
            f"{given.rows:,} yes/no rows of {given.names:,} names",
            path,
            {
                "bare GROUP BY": bare(f"name, {COUNTS}"),
                "reduced": REDUCED.format(path=path),
                "reduced, spilling over 200 MB": SPILLING + REDUCED.format(path=path),
                "judged": judged("hired", "name"),
            },
        )
        table(given.most, "race, hired")
        shown(
            f"{given.most:,} yes/no rows",
            path,
            {"bare GROUP BY": bare(COUNTS), "judged": judged("hired")},
        )
        table(10_000)
        shown(
            "10,000 yes/no rows",
            path,
            {"pandas": BY_PANDAS.format(path=path), "judged": judged("hired")},
        )


if __name__ == "__main__":
    main()
