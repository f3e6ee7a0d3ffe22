"""What every test of this project can ask for, and nobody else's: suites that are run by name do
not load it.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np  # noqa: F401 - numpy cannot be imported twice in one process, which in-process pytester would do
import pytest
from hypothesis import HealthCheck, settings

from tests.support.sessions import (
    FRESH,
    keep_metadata,
    run_pytest,
    server_folder,
    share_server,
    worker_python,
)

if TYPE_CHECKING:
    from tests.support.source_files import SourceFile

# Containers often forbid bytecode. The hundreds of sessions that are tested would each compile the
# plugin anew, which takes longer than what they test.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A busy machine is no failure: it draws examples slowly.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Thousands of tests live to the end: to look through them for garbage as often as Python does by
# itself is a third of what it takes to collect them. See pytest_collection_finish.
gc.set_threshold(100_000, 20, 10)

# Hundreds of sessions in this process would each read it anew.
keep_metadata()

# What a CI job sets changes what the plugin does: it refuses approvals, and writes summaries and
# annotations. A test of that sets it itself.
for variable in list(os.environ):
    if variable == "CI" or variable.startswith(("CI_", "FAIRNESS_", "GITHUB_", "GITLAB_")):
        del os.environ[variable]

# A job in the background inherits that interrupts and hang-ups are ignored, and hands that on to
# what it starts: the sessions that are tested for how they end would never hear of it.
if threading.current_thread() is threading.main_thread():
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give each worker the one server that forks sessions."""
    if not FRESH:
        node.workerinput["server_of_sessions"] = str(server_folder())


def pytest_configure(config: pytest.Config) -> None:
    given: dict[str, Any] = getattr(config, "workerinput", {})
    if "server_of_sessions" in given:
        share_server(given["server_of_sessions"])


def pytest_collection_finish() -> None:
    gc.set_threshold(
        10_000, 10, 10
    )  # what sessions in this process leave is much, and goes in time
    gc.freeze()  # each of them would look through all that was imported and collected, five times


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Sessions that are tested go without two plugins that load in every session, and take it half
    a second each; those in a process of their own, and their workers, are forked by a server that
    has imported what all import.
    """
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:anyio")
    monkeypatch.setattr(pytester, "runpytest_subprocess", partial(run_pytest, pytester.path))
    monkeypatch.setattr(sys, "executable", worker_python())
    return pytester


Cli = Callable[..., tuple[int, str, str]]
MODES = {"plain": ["-p", "no:xdist"], "n0": ["-n0"], "n2": ["-n2"]}


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> list[str]:
    """Arguments that run pytest plain, with ``-n0`` and with two workers."""
    return MODES[request.param]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command; gives its exit code, output and errors."""
    from pytest_fairness.cli import main

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SourceFile]:
    """The files of the package, read once for all workers."""
    from tests.support.shared_sessions import made_once, shared_folder
    from tests.support.source_files import source_files

    return made_once(shared_folder(tmp_path_factory), "source_files", source_files)
