"""Our side of pytest-xdist: what workers are given, and the connection to those that do not see the
controller's disk.

The connection is one more channel of the execnet gateway that pytest-xdist has opened to the
worker: it travels in ``workerinput``. Nothing is sent on it until a fairness test was collected
there. Every session with workers loads this module: what only a fairness session needs is imported
where it is used.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import os
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.context import AUTO, Settings
from pytest_fairness.errors import FairnessError, StoreError
from pytest_fairness.pytest_layer.options import arguments_of, settings_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_fairness.engine.progress import Watching
    from pytest_fairness.runs.remote import Service

#: What ``workerinput`` has of ours.
SETTINGS, ARGUMENTS, TOKEN, STARTED = (
    "fairness_settings",
    "fairness_arguments",
    "fairness_token",
    "fairness_started",
)
CHANNEL, PROCESS = "fairness_channel", "fairness_controller"
#: Exit statuses of sessions that came to their end.
_WHOLE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
#: Seconds that workers have, after an interrupt, to log what is under way.
_GRACE = 5.0
#: Settings that name files of the project, which a worker elsewhere has a copy of.
_COPIED = ("endpoints_file", "baseline_dir")


class Controller:
    """Hooks of pytest-xdist in its controller: it gives workers what was resolved here and the
    token of their run, and keeps that run for those that do not see this disk.
    """

    def __init__(self, config: pytest.Config, session: Callable[[], Any]) -> None:
        self._config = config
        self._session = session
        self.settings = settings_of(config)
        self.token = uuid.uuid4().hex
        self.started = time.monotonic()
        #: The folder of the run that workers have begun, as far as :attr:`begun` has looked.
        self.folder: Path | None = None
        #: Whether the session ends early, and its workers may still write.
        self.ended = False
        self._services: list[Service] = []
        self._channels: list[Any] = []  # execnet closes a channel that nobody holds
        self._watching: Watching | None = None
        self._announced = False

    @property
    def begun(self) -> bool:
        """Return whether a worker has begun a run, though not one report of a fairness test may
        have come from it.
        """
        from pytest_fairness.runs.folder import find_run

        with contextlib.suppress(
            StoreError
        ):  # the folder has gone, which is no reason to forget it
            self.folder = self.folder or find_run(self.settings.run_dir, self.token)
        return self.folder is not None

    @pytest.hookimpl
    def pytest_configure_node(self, node: Any) -> None:
        spec = node.gateway.spec
        node.workerinput |= {
            SETTINGS: self.settings.to_dict(),
            ARGUMENTS: arguments_of(self._config),
            TOKEN: self.token,
            PROCESS: os.getpid(),
            STARTED: self.started if spec.popen else None,  # on another machine it is another clock
        }
        if not shares_our_disk(spec):
            channel = node.workerinput[CHANNEL] = node.gateway.newchannel()
            self._channels.append(channel)
            self._session()  # here, in the one thread that makes it
            begun: list[Service] = []

            def received(item: object) -> None:
                if not begun and item is not None:
                    begun.append(self._serve(channel, node))
                for service in begun:
                    service.take(item)

            channel.setcallback(received, endmarker=None)

    def _serve(self, channel: Any, node: Any) -> Service:
        from pytest_fairness.runs.folder import leave_sign
        from pytest_fairness.runs.remote import Service

        worker = node.workerinput["workerid"]
        session = self._session()
        settings = session.context.settings
        service = Service(
            channel,
            worker=worker,
            open_store=lambda: session.open_store(worker),
            greet=lambda: {
                "sign": leave_sign(settings.run_dir, self.token),
                "root": str(session.context.root),
                "elapsed": time.monotonic() - self.started,
                "barred": _bar(worker, node.gateway.spec, settings),
            },
            cap=settings.max_cost,
        )
        self._services.append(service)
        return service

    @pytest.hookimpl
    def pytest_xdist_node_collection_finished(self) -> None:
        """Once workers have begun a run: show how far they all are, in one line."""
        if not self.begun or self._announced:
            return
        from pytest_fairness.engine.progress import Progress, Watching
        from pytest_fairness.pytest_layer.reporting import Aside, progress

        shown = progress(self._config, self.settings.progress)
        if isinstance(shown, Progress):
            with contextlib.suppress(StoreError):  # of a damaged run each worker's tests say why
                store = self._session().context.store
                self._watching = self._watching or Watching(store, shown)
                aside = Aside(self._config)
                # The worker that chose the run announces it, and may not be the first to have
                # collected.
                for line in store.manifest().get("announced", ()):
                    aside.write(f"{line}\n")
                    self._announced = True

    def pytest_keyboard_interrupt(self) -> None:
        self.end()  # before anything else is done about it: workers go on asking until they are halted

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus not in _WHOLE:
            self.end()

    def end(self) -> None:
        """Have no worker send anything more."""
        from pytest_fairness.runs.folder import end_session

        self.ended = True
        with contextlib.suppress(StoreError):  # they see the controller's own end too, if later
            end_session(self.settings.run_dir, self.token)
        for service in self._services:
            service.halt()

    def close(self) -> str | None:
        """End what is still served; what went wrong with it, if anything did."""
        if self._watching is not None:
            self._watching.stop()
        for service in self._services:  # all of them, before the first one is waited for
            service.halt()
        for service in self._services:
            service.stop(_GRACE)
        return next((service.trouble for service in self._services if service.trouble), None)


def shares_our_disk(spec: Any) -> bool:
    """Return whether the worker of the execnet *spec* is sure to have the disk of this process."""
    return bool(spec.popen and not (spec.chdir or spec.python or spec.via))


def _bar(worker: str, spec: Any, settings: Settings) -> str | None:
    """Why *worker* cannot do without the controller's disk, if it cannot."""
    unseen = f"worker {worker} does not see the controller's {settings.run_dir}"
    mend = "put the runs on a disk that both have, with fairness_run_dir in the ini file"
    if spec.socket:  # it has no lock: two threads that send at once garble each other's messages
        return f"{unseen}, and its connection (socket=) cannot carry a run: use ssh=, or {mend}"
    if settings.replay is not None:
        return (
            f"{unseen}, where the recorded run is: replay without workers elsewhere, which asks "
            f"nothing; or {mend}"
        )
    if settings.resume == AUTO:
        return (
            f"{unseen}, nor the run that may be resumed: name it with --fairness-resume, or {mend}"
        )
    if settings.approve:
        return (
            f"{unseen}, nor the project whose baselines are to be approved: approve without "
            "workers elsewhere"
        )
    return None


def bearings(channel: Any, settings: Settings, started: float, here: Path) -> dict[str, Any]:
    """Those fields of a worker's RunContext that depend on the disk it has, as the controller at
    the other end of
    *channel* says: ``settings``; ``started``, by its own clock; the ``line`` to the controller,
    where its disk is not seen here, or why it is ``barred``. *here* is the worker's copy of the
    project.
    """
    from pytest_fairness.runs.remote import Hello, Line

    line = Line(channel)
    try:
        hello = line.submit(Hello(version=importlib.metadata.version("pytest-fairness"))).result()
    except FairnessError as error:
        return {"settings": settings, "started": started, "barred": str(error)}
    # Its clock may not be ours: what is left of the session's time must be the same for all.
    bearings_ = {"settings": settings, "started": time.monotonic() - hello["elapsed"]}
    if (settings.run_dir / hello["sign"]).is_file():
        return bearings_
    if hello["barred"] is not None:
        return {**bearings_, "barred": str(hello["barred"])}
    paths = {field: getattr(settings, field) for field in _COPIED}
    root = hello["root"]
    moved = {
        field: here / path.relative_to(root)
        for field, path in paths.items()
        if path.is_relative_to(root)
    }
    return {**bearings_, "settings": dataclasses.replace(settings, **moved), "line": line}
