"""Sessions of pytest in a process of their own, without the seconds that each takes to import what all import.

A server, started once by each process that tests, has imported pytest's plugins, this one among them, and what they
lean on. It forks a process for each session, which has its own folder, environment, streams and exit status, and ends
as any. Workers of pytest-xdist are started by pytest-xdist, as ever. A test of what a session imports has a fresh one.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

#: What sessions import; of ours all but the assertions, which make any test one of ours.
PRELOADED = (
    "aiohttp", "jinja2", "msgspec", "numpy", "pandas", "scipy.optimize", "scipy.sparse.csgraph", "scipy.special",
    "scipy.stats", "statsmodels.stats.multitest", "vaderSentiment.vaderSentiment", "yaml",
)  # fmt: skip
NOT_PRELOADED = tuple(f"pytest_fairness.{name}" for name in ("suites", "asserts", "commands"))
_servers: dict[int, subprocess.Popen[str]] = {}


def run_pytest(
    folder: Path,
    *arguments: str,
    environment: dict[str, str] | None = None,
    timeout: float = 600,
    fresh: bool = not hasattr(os, "fork"),
) -> Any:
    """One session in *folder*: a :class:`pytest.RunResult`. *environment* is that of this process, if not given.

    A *fresh* one imports what it needs by itself.
    """
    import pytest

    given = dict(os.environ) if environment is None else environment
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as streams:
        out, err = (Path(streams, name) for name in ("out", "err"))
        if not fresh:
            server = _servers.get(os.getpid()) or _servers.setdefault(os.getpid(), _start())
            assert server.stdin is not None
            assert server.stdout is not None
            request = [str(folder), list(map(str, arguments)), given, str(out), str(err), timeout]
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            code = int(server.stdout.readline())
        else:
            with out.open("wb") as stdout, err.open("wb") as stderr:
                command = [sys.executable, "-m", "pytest", *arguments]
                code = subprocess.run(
                    command, cwd=folder, env=given, stdout=stdout, stderr=stderr, timeout=timeout, check=False
                ).returncode
        lines = [path.read_text(encoding="utf-8", errors="replace").splitlines() for path in (out, err)]
    return pytest.RunResult(code, *lines, time.perf_counter() - started)


def _start() -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    command = [sys.executable, __file__]
    server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)  # the end of its input is its end
    return server


class Preloading:
    """Imports it all in a session, whose hook for imports rewrites the assertions of plugins as it has to be."""

    def pytest_collection(self) -> None:
        import pytest_fairness
        from pytest_fairness.reports import html

        ours = (module.name for module in pkgutil.walk_packages(pytest_fairness.__path__, "pytest_fairness."))
        for name in (*PRELOADED, *(name for name in ours if not name.startswith(NOT_PRELOADED))):
            importlib.import_module(name)
        html._environment().get_template("page.html.j2")


def _serve() -> None:
    """Fork a session for each line of the input; in the server itself, return at its end."""
    import pytest

    with tempfile.TemporaryDirectory() as empty, contextlib.redirect_stdout(sys.stderr):
        pytest.main(["-qqq", f"--rootdir={empty}", "-p", "no:cacheprovider", empty], plugins=[Preloading()])
    gc.freeze()  # else pytest, which collects garbage as it ends, looks through all of this
    for line in sys.stdin:
        folder, arguments, environment, out, err, timeout = json.loads(line)
        child = os.fork()
        if not child:
            _become(folder, environment, out, err)
            _session(arguments)
        until = time.monotonic() + timeout
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > until:
                os.kill(child, 9)
            time.sleep(0.005)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(ended[1])}\n")
        sys.stdout.flush()


def _session(arguments: list[str]) -> NoReturn:
    """Be pytest; end as any process does, but for taking apart what was imported."""
    sys.argv = ["pytest", *arguments]
    code: object = 0
    try:
        runpy.run_module("pytest", run_name="__main__", alter_sys=True)
    except SystemExit as error:
        code = error.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _become(folder: str, environment: dict[str, str], out: str, err: str) -> None:
    """Let this process be as one that was started in *folder* is."""
    for number, (path, flags) in enumerate(
        ((os.devnull, os.O_RDONLY), (out, os.O_WRONLY | os.O_CREAT), (err, os.O_WRONLY | os.O_CREAT))
    ):
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder


if __name__ == "__main__":
    _serve()
