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
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping
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

    started = time.perf_counter()
    if fresh:
        command = [sys.executable, "-m", "pytest", *arguments]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
        code, texts = done.returncode, [done.stdout, done.stderr]
    else:
        session = Session(folder, *arguments, environment=environment)
        texts = [stream.decode("utf-8", "replace") for stream in session.communicate(timeout)]
        code = session.wait()
    return pytest.RunResult(code, *(text.splitlines() for text in texts), time.perf_counter() - started)


class Session:
    """A session that is under way: of a :class:`subprocess.Popen`, what those need who wait for it, or do not.

    *merged*: errors go where the output goes. *leads*: it leads a process group of its own, as in a terminal.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        merged: bool = False,
        leads: bool = False,
    ) -> None:
        streams = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, streams, ignore_errors=True)
        self._out, self._err, self._code = (Path(streams, name) for name in ("out", "err", "code"))
        if merged:
            self._err = self._out
        given = dict(os.environ if environment is None else environment)
        server = _servers.get(os.getpid()) or _servers.setdefault(os.getpid(), _start())
        assert server.stdin is not None
        assert server.stdout is not None
        files = [str(self._out), str(self._err), str(self._code)]
        server.stdin.write(json.dumps([str(folder), list(map(str, arguments)), given, *files, leads]) + "\n")
        server.stdin.flush()
        self.pid = int(server.stdout.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and self._code.exists():
            self.returncode = int(self._code.read_text())
        return self.returncode

    def wait(self, timeout: float = 600) -> int:
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(f"session {self.pid}", timeout)
            time.sleep(0.005)
        return code

    def communicate(self, timeout: float = 600) -> tuple[bytes, bytes]:
        """Its output and its errors, once it has ended. Raises TimeoutExpired."""
        self.wait(timeout)
        return self._out.read_bytes(), b"" if self._err == self._out else self._err.read_bytes()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


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
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if not os.fork():
            _watch(*json.loads(line))


def _watch(
    folder: str, arguments: list[str], environment: dict[str, str], out: str, err: str, code: str, leads: bool
) -> NoReturn:
    """Fork the session, say which process it is, and write down how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if not child:
        if leads:
            os.setsid()
        _become(folder, environment, out, err)
        _session(arguments)
    os.write(1, f"{child}\n".encode())
    _, status = os.waitpid(child, 0)
    Path(f"{code}.part").write_text(str(os.waitstatus_to_exitcode(status)))
    Path(f"{code}.part").rename(code)
    os._exit(0)


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
        ((os.devnull, os.O_RDONLY), *((name, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for name in (out, err)))
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
