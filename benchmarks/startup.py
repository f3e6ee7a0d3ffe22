"""What the plugin adds to a session that has no fairness test: CPU time and wall time in pairs,
peak memory.

Run: python benchmarks/startup.py [pairs]

Each pair runs the same one-test session with the plugin blocked (``-p no:fairness``) and with it
loaded, in alternating order. Wall time is noisy, CPU time less so; the median of the paired ratios
is what to quote.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def measure(folder: str, *arguments: str) -> tuple[float, float]:
    """(CPU seconds, wall seconds) of one pytest session in *folder*."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def peak_memory(folder: str, *arguments: str) -> float:
    """Peak resident memory of one session, MiB."""
    code = "import resource, pytest, sys; pytest.main(sys.argv[1:]); "
    code += "print('PEAK', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    command = [sys.executable, "-c", code, "-q", "-p", "no:cacheprovider", *arguments]
    output = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    return int(output.rpartition("PEAK ")[2]) / 1024


def main(pairs: int) -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_one.py").write_text("def test_one(): pass\n", encoding="utf-8")
        without, loaded = ("-p", "no:fairness"), ()
        measure(folder, *without), measure(folder, *loaded)  # warm the byte code
        rows = []
        for index in range(pairs):
            order = (without, loaded) if index % 2 else (loaded, without)
            times = {arguments: measure(folder, *arguments) for arguments in order}
            rows.append((times[without], times[loaded]))
        for label, column in (("CPU", 0), ("wall", 1)):
            ratio = statistics.median(b[column] / a[column] for a, b in rows)
            added = statistics.median(b[column] - a[column] for a, b in rows) * 1000
            alone = statistics.median(a[column] for a, _ in rows) * 1000
            print(f"{label:5} alone {alone:6.0f} ms   added {added:+6.1f} ms   ratio {ratio:.3f}")
        added = statistics.median(
            peak_memory(folder, *loaded) - peak_memory(folder, *without)
            for _ in range(min(pairs, 5))
        )
        print(f"peak  added {added:+.2f} MiB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
