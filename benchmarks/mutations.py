"""Does some test fail for every single-point fault of the statistics, the policy and the gate?

Run: python benchmarks/mutations.py [--only text]

Each mutation of ``mutations.toml`` replaces one piece of text in one file of a copy of ``src``; the tests named beside
it run on that copy and stop at the first failure. A mutation that no test notices is listed as alive, and the command
fails. The whole list takes some twenty minutes on one core: Python and the libraries are loaded once, and each run is a
fork of that.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "pytest_fairness"
LONGEST = 240
"""Seconds after which a run counts as failed: the mutation made something endless."""


@dataclass(frozen=True)
class Mutation:
    """*old* in *file* (below ``src/pytest_fairness``) becomes *new*; one of *tests* has to fail. *old* occurs once."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def read_list() -> Iterator[Mutation]:
    """The mutations of ``mutations.toml``."""
    with Path(__file__).with_suffix(".toml").open("rb") as stream:
        groups = tomllib.load(stream)["group"]
    for group in groups:
        tests = tuple(f"tests/{name}.py" for name in group["tests"])
        for old, new in group["mutations"]:
            yield Mutation(group["file"], old, new, tests)


MUTATIONS = tuple(read_list())


# ---------------------------------------------------------------- running


def load() -> None:
    """What every run needs and no mutation touches."""
    import numpy
    import pandas
    import pytest
    import scipy.special
    import scipy.stats
    import statsmodels.stats.contingency_tables
    import statsmodels.stats.multitest
    import statsmodels.stats.proportion

    del numpy, pandas, pytest, scipy, statsmodels


def passes(source: Path, tests: tuple[str, ...], log: Path) -> bool:
    """Whether *tests* pass on the package in *source*, in a fork of this process."""
    child = os.fork()
    if child == 0:
        try:
            _run(source, tests, log)
        except BaseException:  # noqa: BLE001 - told, and then this process ends
            traceback.print_exc()
        finally:
            os._exit(3)  # never back into what the parent has open
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code not in (0, 1, 2):
                raise SystemExit(f"pytest ended with {code}:\n{log.read_text()[-3000:]}")
            return code == 0
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _run(source: Path, tests: tuple[str, ...], log: Path) -> None:
    stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(stream, number)
    sys.path.insert(0, str(source))
    os.environ["PYTHONPATH"] = str(source)
    import pytest

    code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--tb=line", *tests])
    package = sys.modules["pytest_fairness"].__file__
    if not Path(str(package)).is_relative_to(source):
        print(f"another copy of the package was tested: {package}")
        code = 3
    sys.stdout.flush()
    os._exit(int(code))


def forget(module: Path) -> None:
    """Remove what Python compiled of *module*: it is recognised by second and size, which a mutation may keep."""
    for compiled in (module.parent / "__pycache__").glob(f"{module.stem}.*.pyc"):
        compiled.unlink()


def mutate(mutation: Mutation, source: Path, log: Path) -> bool:
    """Whether *mutation* is noticed; the copy in *source* is as before afterwards."""
    module = source / "pytest_fairness" / mutation.file
    text = module.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.file}: {mutation.old!r} occurs {text.count(mutation.old)} times, not once")
    try:
        forget(module)
        module.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        return not passes(source, mutation.tests, log)
    finally:
        module.write_text(text, encoding="utf-8")
        forget(module)


def main() -> int:
    parser = argparse.ArgumentParser(description="every mutation has to be noticed by a test")
    parser.add_argument("--only", default="", help="mutations whose file, old or new text contains this")
    arguments = parser.parse_args()
    chosen = [one for one in MUTATIONS if arguments.only in f"{one.file}\n{one.old}\n{one.new}"]
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.chdir(ROOT)
    load()
    alive: list[Mutation] = []
    with tempfile.TemporaryDirectory() as folder:
        source, log = Path(folder) / "src", Path(folder) / "log"
        shutil.copytree(SOURCE, source / "pytest_fairness", ignore=shutil.ignore_patterns("__pycache__"))
        start = time.monotonic()
        if not passes(source, tuple(sorted({test for one in chosen for test in one.tests})), log):
            raise SystemExit(f"the tests fail without any mutation:\n{log.read_text()[-3000:]}")
        print(f"without a mutation: passed in {time.monotonic() - start:.0f} s", flush=True)
        for number, mutation in enumerate(chosen, 1):
            begun = time.monotonic()
            noticed = mutate(mutation, source, log)
            if not noticed:
                alive.append(mutation)
            took, word = time.monotonic() - begun, "dies" if noticed else "LIVES"
            print(
                f"{number:4} {word:5} {took:5.1f} s  {mutation.file}: {mutation.new.splitlines()[0][:80]}", flush=True
            )
        print(f"{len(chosen)} mutations, {len(alive)} alive, {time.monotonic() - start:.0f} s")
    for one in alive:
        print(f"\nALIVE {one.file}\n- {one.old}\n+ {one.new}")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
