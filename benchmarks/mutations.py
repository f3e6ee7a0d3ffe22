"""Does some test fail for every single-point fault of statistics, policy, gate and sessions?

Run: python benchmarks/mutations.py [--only text …]

Each mutation of ``mutations.toml`` replaces one piece of text in one file below
``src/pytest_fairness``; the tests that stand beside it run until one fails. The tests are collected
once. For each mutation that process is forked, the code of the functions in question is exchanged
in the fork, and the tests run there. What no test noticed then is tried again on a mutated copy of
the package in a process of its own, which is slow and leaves no doubt; what lives there is listed,
and the command fails.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "pytest_fairness"
LONGEST = 240
"""Seconds after which a run counts as failed: the mutation made something endless."""


@dataclass(frozen=True)
class Mutation:
    """*old* in *file* (below ``src/pytest_fairness``) becomes *new*; one of *tests* has to fail.
    *old* occurs once.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def text(self) -> str:
        """The mutated file."""
        text = (SOURCE / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise SystemExit(
                f"{self.file}: {self.old!r} occurs {text.count(self.old)} times, not once"
            )
        return text.replace(self.old, self.new)

    @property
    def module(self) -> str:
        return ".".join(("pytest_fairness", *Path(self.file).with_suffix("").parts))


def read_list() -> Iterator[Mutation]:
    """The mutations of ``mutations.toml``."""
    with Path(__file__).with_suffix(".toml").open("rb") as stream:
        groups = tomllib.load(stream)["group"]
    for group in groups:
        tests = tuple(f"tests/{name}.py" for name in group["tests"])
        files = [group["file"]] if isinstance(group["file"], str) else group["file"]
        texts = {file: (SOURCE / file).read_text(encoding="utf-8") for file in files}
        for old, new in group["mutations"]:
            yield Mutation(
                next((file for file in files if old in texts[file]), files[0]), old, new, tests
            )


MUTATIONS = tuple(read_list())


# ---------------------------------------------------------------- exchanging code in a process


def exchange(module: ModuleType, text: str) -> None:
    """Give the functions, methods and constants of *module* what they are in *text*."""
    fresh: dict[str, object] = {"__name__": module.__name__, "__file__": module.__file__}
    exec(compile(text, str(module.__file__), "exec"), fresh)
    for name, old in list(vars(module).items()):
        new = fresh.get(name)
        if name.startswith("__") or new is None:
            continue
        if isinstance(old, type):
            if old.__module__ == module.__name__:
                for key, held in vars(old).items():
                    _exchange_code(held, vars(new).get(key))
        elif getattr(old, "__module__", module.__name__) == module.__name__ and not _exchange_code(
            old, new
        ):
            # A constant: also where it was imported by its name.
            for other in list(sys.modules.values()):
                if getattr(other, "__dict__", {}).get(name) is old:
                    setattr(other, name, new)


def _exchange_code(old: object, new: object) -> bool:
    one, two = _function(old), _function(new)
    if one is None or two is None:
        return False
    one.__code__, one.__defaults__, one.__kwdefaults__ = (
        two.__code__,
        two.__defaults__,
        two.__kwdefaults__,
    )
    if hasattr(old, "cache_clear"):
        old.cache_clear()
    return True


def _function(held: object) -> FunctionType | None:
    for name in ("__func__", "fget", "func", "__wrapped__"):
        if isinstance(held, (classmethod, staticmethod, property, cached_property)) or hasattr(
            held, "cache_clear"
        ):
            held = getattr(held, name, held)
    return held if isinstance(held, FunctionType) else None


@dataclass
class Runner:
    """A pytest plugin that runs the collected tests once for each mutation, in a fork, until one
    fails.
    """

    mutations: Sequence[Mutation]
    noticed: list[bool] = field(default_factory=list)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            items.setdefault(str(item.path.relative_to(ROOT)), []).append(item)
        every = [item for own in items.values() for item in own]
        modules = sorted({one.module for one in self.mutations})
        unchanged = _in_fork(
            lambda: _run(every, [(name, _source(name)) for name in modules]), 10 * LONGEST
        )
        if unchanged:
            raise pytest.UsageError("a test fails without any mutation")
        for number, mutation in enumerate(self.mutations, 1):
            begun = time.monotonic()
            own = [item for test in mutation.tests for item in items[test]]
            code = _in_fork(
                lambda own=own, one=mutation: _run(own, [(one.module, one.text)]), LONGEST
            )
            self.noticed.append(code != 0)
            line = (
                f"{number:4} {'dies' if code else 'LIVES':5} {time.monotonic() - begun:5.1f} s  "
                f"{mutation.file}"
            )
            new = (mutation.new.strip() or "nothing").splitlines()[0]
            print(f"{line}: {new[:80]}", file=sys.__stderr__, flush=True)
        return True


def _source(module: str) -> str:
    # A module that is imported where it is needed may not be there yet.
    return Path(str(importlib.import_module(module).__file__)).read_text(encoding="utf-8")


def _run(items: Sequence[pytest.Item], texts: Sequence[tuple[str, str]]) -> int:
    for module, text in texts:
        exchange(importlib.import_module(module), text)
    for item, after in zip(items, [*items[1:], None], strict=True):
        if any(report.failed for report in runtestprotocol(item, nextitem=after, log=False)):
            return 1
    return 0


def _in_fork(run: Callable[[], int], longest: float) -> int:
    """The exit code of *run* in a fork of this process; 1 where it does not end."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            code = run()
        except BaseException:  # noqa: BLE001 - printed, and then this process ends
            traceback.print_exc()
        finally:
            os._exit(code)  # never back into what the parent has open
    end = time.monotonic() + longest
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 1


# ---------------------------------------------------------------- a mutated copy, in a process of its own


def noticed_in_a_copy(mutation: Mutation) -> bool:
    """Whether a test fails on a copy of the package with *mutation* in its file."""
    with tempfile.TemporaryDirectory() as folder:
        # As in the checkout, whose personas and pages of docs the package finds beside src.
        copy = Path(folder) / "src" / "pytest_fairness"
        for name in ("docs", "personas"):
            Path(folder, name).symlink_to(ROOT / name)
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / mutation.file).write_text(mutation.text, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            *mutation.tests,
        ]
        environment = {**os.environ, "PYTHONPATH": str(copy.parent)}
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                timeout=LONGEST,
                check=False,
                cwd=ROOT,
            )
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(description="every mutation has to be noticed by a test")
    parser.add_argument(
        "--only", nargs="*", default=[""], help="mutations whose file or texts contain one of these"
    )
    arguments = parser.parse_args()
    chosen = [
        one
        for one in MUTATIONS
        if any(text in f"{one.file}\n{one.old}\n{one.new}" for text in arguments.only)
    ]
    if not chosen:
        parser.error(f"no mutation has {' or '.join(arguments.only)} in its file or texts")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.chdir(ROOT)
    sys.path.insert(0, str(SOURCE.parent))
    os.environ["PYTHONPATH"] = str(SOURCE.parent)
    start = time.monotonic()
    runner = Runner(chosen)
    tests = sorted({test for one in chosen for test in one.tests})
    code = pytest.main(["-q", "-p", "no:cacheprovider", *tests], plugins=[runner])
    if len(runner.noticed) < len(chosen):
        return int(code) or 1
    doubtful = [one for one, noticed in zip(chosen, runner.noticed, strict=True) if not noticed]
    alive = [one for one in doubtful if not noticed_in_a_copy(one)]
    print(f"{len(chosen)} mutations, {len(alive)} alive, {time.monotonic() - start:.0f} s")
    for one in alive:
        print(f"\nALIVE {one.file}\n- {one.old}\n+ {one.new}")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
