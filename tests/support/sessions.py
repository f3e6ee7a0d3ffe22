"""Sessions of pytest, and other modules that are run, in a process of their own, without the
seconds that each takes to import what all import.

A server has imported pytest's plugins, this one among them, and what they lean on. It forks a
process for each session, which has its own folder, environment, streams and exit status, and ends
as any. All workers of a test session share one, which its controller starts, which imports once it
is asked for a session, and which ends with the process that started it. It forks the workers that
pytest-xdist starts as well, by an executable that stands for ``sys.executable``: that is in the process group of its
session, and the worker hears the signals that it gets. A test of what a session imports has a fresh
one, and a test of workers that watch their parent has workers that are its children. See
``docs/decisions/0111-tested-sessions-are-forked.md``.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import inspect
import json
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

PYTHON = sys.executable
#: Whether each session is a process that imports what it needs by itself: ``tox -e fresh``, or
#: where nothing can fork.
FRESH = "FRESH_SESSIONS" in os.environ or not hasattr(os, "fork") or not hasattr(socket, "send_fds")
#: What sessions import; of ours all but the assertions, which make any test one of ours.
PRELOADED = (
    "aiohttp", "jinja2", "msgspec", "numpy", "pandas", "scipy.optimize", "scipy.sparse.csgraph", "scipy.special",
    "scipy.stats", "statsmodels.stats.multitest", "vaderSentiment.vaderSentiment", "yaml", "pyarrow.pandas_compat",
    "xdist.dsession", "xdist.remote", "xdist.workermanage",
)  # fmt: skip
#: What every reader reads, so that what it looks for is compiled.
REPLY = (
    "I'm sorry, I can't say: a 7 of 10, perhaps. ANSWER: approved. ESI level 3, at $52,000 a year!"
)
NOT_PRELOADED = tuple(
    f"pytest_fairness.{name}" for name in ("suites", "asserts", "commands", "cli")
)
#: The module of the command ``pytest-fairness``.
COMMAND = "pytest_fairness.cli"
#: Stands for Python where pytest-xdist starts a worker: the process dies with it, and gives it its
#: exit status.
WORKER = """\
#!{python} -IS
import json, os, signal, socket, sys

arguments = sys.argv[1:]
server = socket.socket(socket.AF_UNIX)
try:
    if arguments[:2] != ["-u", "-c"]:
        raise OSError
    server.connect({address!r})
except OSError:
    os.execv({python!r}, [{python!r}, *arguments])
request = json.dumps([os.getcwd(), dict(os.environ), arguments[2:]]).encode()
socket.send_fds(server, [b"%9d" % len(request)], [0, 1, 2])
server.sendall(request)
pid = int(server.recv(9))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _frame: os.kill(pid, number))
os._exit(int(server.recv(9)) % 256)
"""
#: Seconds that the server waits for the rest of a request.
PATIENCE = 10
#: Of the folder of the server.
SOCKET, EXECUTABLE = "socket", "python"


def run_pytest(
    folder: Path,
    *arguments: str,
    environment: dict[str, str] | None = None,
    timeout: float = 600,
    fresh: bool = FRESH,
    module: str = "pytest",
) -> Any:
    """One session in *folder*, or what another *module* does as a program: a
    :class:`pytest.RunResult`. *environment* is that of this process, if not given.

    A *fresh* one imports what it needs by itself.
    """
    import pytest

    started = time.perf_counter()
    if fresh:
        command = [PYTHON, "-m", module, *arguments]
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        code, texts = done.returncode, [done.stdout, done.stderr]
    else:
        session = Session(folder, *arguments, environment=environment, module=module)
        texts = [stream.decode("utf-8", "replace") for stream in session.communicate(timeout)]
        code = session.wait()
    return pytest.RunResult(
        code, *(text.splitlines() for text in texts), time.perf_counter() - started
    )


def findings_of_test(folder: Path, file: str) -> list[dict[str, Any]]:
    """The findings of the first session in *folder*: of the test in *file*, which fails."""
    result = run_pytest(folder, "-p", "no:cacheprovider", file)
    assert result.ret == 1, result.stdout.str()
    (run,) = (folder / ".fairness" / "runs").glob("2*")
    return json.loads((run / "findings.json").read_text("utf-8"))["findings"]


def forked(
    command: list[str],
    *,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    capture_output: bool = False,
    **_: object,
) -> types.SimpleNamespace:
    """Run the session that *command* is: stands for :func:`subprocess.run` where a command of ours
    starts one.
    """
    assert command[:3] == [sys.executable, "-m", "pytest"]
    done = run_pytest(cwd or Path.cwd(), *command[3:], environment=env)
    if not capture_output:
        os.write(1, f"{done.stdout}\n".encode())
    return types.SimpleNamespace(
        returncode=done.ret, stdout=str(done.stdout), stderr=str(done.stderr)
    )


class Session:
    """A session that is under way: of a :class:`subprocess.Popen`, what those need who wait for it,
    or do not.

    *merged*: errors go where the output goes. *leads*: it leads a process group of its own, as in a
    terminal. *children*: its workers are such, and import by themselves. *module*: what is run as
    ``__main__``.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        merged: bool = False,
        leads: bool = False,
        children: bool = False,
        module: str = "pytest",
    ) -> None:
        streams = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, streams, ignore_errors=True)
        self._out, self._err, self._code = (Path(streams, name) for name in ("out", "err", "code"))
        if merged:
            self._err = self._out
        given = dict(os.environ if environment is None else environment)
        self.returncode: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        if FRESH:
            self._process = _fresh_process(
                folder, module, arguments, given, self._out, self._err, leads=leads
            )
            self.pid = self._process.pid
            return
        files = [str(self._out), str(self._err), str(self._code)]
        about = [str(folder), module, list(map(str, arguments)), given, *files, leads, children]
        self.pid = _requested(about)

    def poll(self) -> int | None:
        if self._process is not None:
            self.returncode = self._process.poll()
        elif self.returncode is None and self._code.exists():
            self.returncode = int(self._code.read_text())
        return self.returncode

    def wait(self, timeout: float = 600) -> int:
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(f"session {self.pid}", timeout)
            time.sleep(0.005)
        return code

    def await_line(self, timeout: float = 60) -> str:
        """Return the first line of its output, once it has one. Raises TimeoutExpired."""
        until = time.monotonic() + timeout
        while not (self._out.exists() and b"\n" in self._out.read_bytes()):
            if self.poll() is not None or time.monotonic() > until:
                raise subprocess.TimeoutExpired(f"the first line of {self.pid}", timeout)
            time.sleep(0.005)
        return self._out.read_text().splitlines()[0]

    def communicate(self, timeout: float = 600) -> tuple[bytes, bytes]:
        """Its output and its errors, once it has ended. Raises TimeoutExpired."""
        self.wait(timeout)
        return self._out.read_bytes(), b"" if self._err == self._out else self._err.read_bytes()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _fresh_process(
    folder: Path,
    module: str,
    arguments: tuple[str, ...],
    environment: Mapping[str, str],
    out: Path,
    err: Path,
    *,
    leads: bool,
) -> subprocess.Popen[bytes]:
    """Start a session as a process of its own, whose output goes to the files *out* and *err*."""
    with out.open("ab") as output, err.open("ab") as errors:
        return subprocess.Popen(
            [PYTHON, "-m", module, *map(str, arguments)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=leads,
        )


def _requested(about: list[Any]) -> int:
    """Have the server fork a session, and return the id of its process. Raises OSError, if the
    server is no more.
    """
    request = json.dumps(about).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(server_folder() / SOCKET))
        connection.sendall(b"%9d" % len(request) + request)
        answer = connection.recv(9)
    if not answer:
        raise ConnectionError("the server that forks sessions has died")
    return int(answer)


def worker_python() -> str:
    """Return what stands for ``sys.executable`` where pytest-xdist starts workers; Python itself
    where sessions are fresh.
    """
    if FRESH:
        return sys.executable
    return str(server_folder() / EXECUTABLE)


_shared: list[Path] = []


def share_server(folder: str) -> None:
    """Use the server in *folder*, which the controller of this worker has started."""
    _shared.append(Path(folder))


def server_folder() -> Path:
    """Return where the server is, which is started if there is none."""
    if not _shared:
        _shared.append(_started_server())
    return _shared[0]


def _started_server() -> Path:
    """Start a server, which ends with this process: its input ends then, however that is."""
    folder = Path(tempfile.mkdtemp(prefix="sessions-"))
    executable, address = folder / EXECUTABLE, str(folder / SOCKET)
    executable.write_text(WORKER.format(python=PYTHON, address=address), encoding="utf-8")
    executable.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    command = [PYTHON, __file__, address, str(executable)]
    server = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    server.stdout.readline()  # it listens
    atexit.register(shutil.rmtree, folder)
    atexit.register(server.communicate)  # the end of its input is its end
    return folder


class Preloading:
    """Imports it all in a session, whose hook for imports rewrites the assertions of plugins as it
    has to be; and reads what ships with it, and what is known of installed packages and of imported
    modules, which each session would read again.
    """

    def pytest_collection(self) -> None:
        import pytest_fairness
        from pytest_fairness.design.signals import Signals
        from pytest_fairness.reports import html
        from pytest_fairness.scorers import BUILT_IN

        keep_metadata()
        _read_metadata()

        ours = (
            module.name
            for module in pkgutil.walk_packages(pytest_fairness.__path__, "pytest_fairness.")
        )
        for name in (*PRELOADED, *(name for name in ours if not name.startswith(NOT_PRELOADED))):
            _read_what_ships(importlib.import_module(name))
        html.environment().get_template("page.html.j2")
        Signals.load()
        for scorer in BUILT_IN.values():
            scorer(REPLY)
        _keep_files_of_modules()


def _read_what_ships(module: types.ModuleType) -> None:
    """Call the cached functions of *module* that take nothing: what they return is what ships, the
    same in every session.
    """
    for function in vars(module).values():
        cached = isinstance(function, functools._lru_cache_wrapper)
        if not cached or function.__module__ != module.__name__:
            continue
        if not inspect.signature(function).parameters:
            function()


def _keep_files_of_modules() -> None:
    """Have ``inspect`` note the file of each module: it does so where the first test of a session
    fails, which is a third of what such a session costs.
    """
    inspect.getmodule(compile("", "no file of a module", "exec"))


def keep_metadata() -> None:
    """Let what is known of an installed package be read once: pytest and its plugins ask for it in
    every session, which is a third of what one with a trivial test costs.
    """
    modules = [metadata]
    with contextlib.suppress(ImportError):
        # litellm imports it, and from then on it finds the packages.
        modules.append(importlib.import_module("importlib_metadata"))
    for module in modules:
        installed = module.PathDistribution
        for name in ("entry_points", "files", "metadata"):
            setattr(installed, name, property(_kept(getattr(installed, name).fget)))


def _read_metadata() -> None:
    """Read what sessions will ask for."""
    for distribution in metadata.distributions():
        _ = distribution.metadata
        if distribution.entry_points.select(group="pytest11"):
            _ = distribution.files  # pytest rewrites the assertions of those that are plugins


def _kept(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return *read*, which is called once for each folder of a distribution."""
    kept: dict[str, Any] = {}

    def reading(distribution: Any) -> Any:
        folder = str(distribution._path)
        if folder not in kept:
            kept[folder] = read(distribution)
        return kept[folder]

    return reading


def _serve(address: str, executable: str) -> None:
    """Fork a process for each connection, which asks for a session or a worker; return at the end
    of the input.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        os.write(1, b"ready\n")
        ready, _, _ = select.select([0, listener], [], [])
        if 0 not in ready:
            _preload()
            Server(listener, executable).serve()


def _preload() -> None:
    """Import what sessions import."""
    import pytest

    with tempfile.TemporaryDirectory() as empty, contextlib.redirect_stdout(sys.stderr):
        pytest.main(
            ["-qqq", f"--rootdir={empty}", "-p", "no:cacheprovider", empty], plugins=[Preloading()]
        )
    gc.freeze()  # else pytest, which collects garbage as it ends, looks through all of this


class Server:
    """Forks what is asked for, says which process it is, and notes how it ended.

    ``sessions`` are the files that the exit statuses of sessions are written to, ``workers`` the
    connections to the executables that stand for workers, each by the process.
    """

    def __init__(self, listener: socket.socket, executable: str) -> None:
        self.sessions: dict[int, str] = {}
        self.workers: dict[int, socket.socket] = {}
        self._listener = listener
        self._executable = executable
        self._ended, self._note_end = os.pipe()

    def serve(self) -> None:
        """Do what is asked until the input ends."""
        os.set_blocking(self._note_end, False)
        signal.set_wakeup_fd(self._note_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        while True:
            awaited = [0, self._listener, self._ended, *self.workers.values()]
            ready, _, _ = select.select(awaited, [], [])
            if 0 in ready:
                return
            if self._ended in ready:
                os.read(self._ended, 4096)
                self._reap()
            for child, connection in self.workers.copy().items():
                if connection in ready:  # the executable has died
                    os.kill(child, signal.SIGKILL)
                    self.workers.pop(child).close()
            if self._listener in ready:
                self._answer(*self._listener.accept())

    def _reap(self) -> None:
        """Note how each process ended that has."""
        while True:
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not child:
                return
            code = os.waitstatus_to_exitcode(status)
            if child in self.sessions:
                file = self.sessions.pop(child)
                with contextlib.suppress(OSError):  # nobody waits for it any more
                    Path(f"{file}.part").write_text(str(code))
                    Path(f"{file}.part").rename(file)
            elif child in self.workers:
                with self.workers.pop(child) as connection, contextlib.suppress(OSError):
                    connection.sendall(b"%9d" % code)

    def _answer(self, connection: socket.socket, _address: object) -> None:
        """Do what is asked: by the executable, which sends its streams, for a worker."""
        connection.settimeout(PATIENCE)
        try:
            request, streams = _request(connection)
        except (OSError, ValueError):  # who asked has gone, or is stopped
            connection.close()
            return
        connection.settimeout(None)
        child = os.fork()
        if not child:
            self._close()
            connection.close()
            if streams:
                _be_worker(streams, *request)
            _be_session(self._executable, *request)
        with contextlib.suppress(OSError):
            connection.sendall(b"%9d" % child)
        if not streams:
            self.sessions[child] = request[6]
            connection.close()
            return
        self.workers[child] = connection
        for stream in streams:
            os.close(stream)

    def _close(self) -> None:
        """Let go of what is the server's alone, in a process that it forked."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for connection in self.workers.values():
            connection.close()
        self._listener.close()  # who connects after the server's end is told so
        os.close(self._ended)
        os.close(self._note_end)


def _request(connection: socket.socket) -> tuple[list[Any], list[int]]:
    """Return what is asked for, and the streams that come with it. Raises OSError or ValueError."""
    size, streams, _, _ = socket.recv_fds(connection, 9, 3)
    try:
        with connection.makefile("rb") as reader:
            return json.loads(reader.read(int(size))), streams
    except (OSError, ValueError):
        for stream in streams:
            os.close(stream)
        raise


def _be_session(
    executable: str,
    folder: str,
    module: str,
    arguments: list[str],
    environment: dict[str, str],
    out: str,
    err: str,
    _code: str,
    leads: bool,
    children: bool,
) -> NoReturn:
    """Be the session that is asked for."""
    if leads:
        os.setsid()
    if not children:
        sys.executable = executable
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    _become(
        folder,
        environment,
        [os.open(os.devnull, os.O_RDONLY), os.open(out, append), os.open(err, append)],
    )
    sys.argv = [module, *arguments]
    _end(partial(runpy.run_module, module, run_name="__main__", alter_sys=True))


def _be_worker(
    streams: list[int], folder: str, environment: dict[str, str], command: list[str]
) -> NoReturn:
    """Be the worker that an executable stands for."""
    code, *arguments = command
    _become(folder, environment, streams)
    sys.path.insert(0, "")
    sys.argv = ["-c", *arguments]
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    _end(partial(exec, compile(code, "<string>", "exec"), module.__dict__))


def _end(run: Callable[[], object]) -> NoReturn:
    """Run it all, and end as any process does, but for taking apart what was imported."""
    code: object = 0
    try:
        run()
    except SystemExit as error:
        code = error.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _become(folder: str, environment: dict[str, str], streams: list[int]) -> None:
    """Let this process be as one that was started in *folder* is."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder
    given = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [entry for entry in given if entry and entry not in sys.path]
    # A copy made as xdist was imported, which workers begin with.
    sys.modules["xdist.plugin"]._sys_path[:] = sys.path


if __name__ == "__main__":
    _serve(*sys.argv[1:])
