"""Sessions of a user in processes of their own, to be killed, interrupted and waited for; each
comes to a Case.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.sessions import Session

from .conftest import Project
from .oracles import Case

ROOT = Path(__file__).parents[2]


class Background:
    """A session of *project* with *arguments*, begun in a process group of its own, as a terminal
    would begin it.

    A *fresh* one imports by itself; with *children* its workers do, which stop when it does.
    """

    def __init__(
        self,
        project: Project,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        children: bool = False,
        fresh: bool = False,
    ) -> None:
        self.project = project
        self._started = time.monotonic()
        mode = (
            () if any(argument.startswith("-n") for argument in arguments) else ("-p", "no:xdist")
        )
        command = ["-p", "no:cacheprovider", *mode, *arguments]
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            **(env or {}),
        }
        self.process: subprocess.Popen[bytes] | Session
        if not fresh:
            self.process = Session(
                project.path,
                *command,
                environment=environment,
                merged=True,
                leads=True,
                children=children,
            )
            return
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *command],
            cwd=project.path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def until(self, so: Callable[[], bool], what: str) -> None:
        """Wait until it is *so*; a session that ends before, or never gets there, fails the test
        with its output.
        """
        end = time.monotonic() + 60
        while not so():
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill_all()
                pytest.fail(f"never came to be: {what}\n{self.process.communicate()[0].decode()}")
            time.sleep(0.02)

    def until_received(self, count: int) -> None:
        """Wait until the server has received *count* requests."""
        self.until(lambda: len(self.project.server.requests) >= count, f"{count} requests")

    def until_alone(self) -> None:
        """Wait until no process of the group is left."""
        end = time.monotonic() + 20
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < end:
                os.killpg(self.process.pid, 0)
                time.sleep(0.05)
            self.kill_all()
            pytest.fail("the workers of a session that has ended are still there")

    def press(self, number: signal.Signals) -> None:
        """Send the signal to the whole group, as a terminal does."""
        os.killpg(self.process.pid, number)

    def kill_all(self) -> None:
        """Leave no process behind."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()

    def end(self, *, deadline: float = 30.0, **about: Any) -> Case:
        """Wait for the end; what came of it."""
        try:
            output = self.process.communicate(timeout=deadline + 30)[0].decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            self.kill_all()
            pytest.fail(f"it never ended: {self.process.communicate()[0].decode()}")
        seconds = time.monotonic() - self._started
        code = self.process.returncode
        return self.project.case(
            output=output, code=code, seconds=seconds, deadline=deadline, **about
        )
