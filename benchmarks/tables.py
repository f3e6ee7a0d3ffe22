"""How fast a table of decisions is judged, beside the bare GROUP BY of the engine that reads it.

Run: python benchmarks/tables.py [--rows 10000000]

Each in a process of its own: seconds and peak memory, imports included.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

TABLE = """COPY (SELECT ['white', 'black', 'hispanic', 'asian'][1 + (hash(i) % 4)::INT] AS race,
    hash(i * 7 + 1) % 1000 < 400 AS hired FROM range({rows}) AS t(i)) TO '{path}'"""
BARE = """import duckdb
duckdb.sql("SELECT race, hired, COUNT(*) FROM '{path}' GROUP BY ALL").fetchall()"""
JUDGED = """from pytest_fairness import analyze_disparity
analyze_disparity('{path}', 'hired', 'race', cluster=None, block=None)"""


def measured(program: str) -> tuple[float, float]:
    """Return the seconds and the megabytes that *program* takes."""
    watched = (
        f"{program}\nimport resource\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    begun = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-c", watched], check=True, capture_output=True, text=True
    )
    return time.perf_counter() - begun, int(result.stdout.split()[-1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decisions.parquet"
        duckdb.sql(TABLE.format(rows=rows, path=path))
        for name, program in (("bare GROUP BY", BARE), ("judged", JUDGED)):
            seconds, megabytes = measured(program.format(path=path))
            print(f"{rows:,} rows, {name}: {seconds:.2f} s, {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
