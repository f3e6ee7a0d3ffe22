"""Our side of pytest-xdist: what workers are given, and the connection to those that do not see the controller's disk.

The connection is one more channel of the execnet gateway that pytest-xdist has opened to the worker: it travels in
``workerinput``. Nothing is sent on it until a fairness test was collected there.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_fairness.errors import FairnessError

if TYPE_CHECKING:
    from pytest_fairness.context import RunContext, Settings
    from pytest_fairness.runs.remote import Line, Service
    from pytest_fairness.runs.store import RunStore

CHANNEL = "fairness_channel"
#: Seconds that workers have, after an interrupt, to log what is under way.
_GRACE = 5.0
#: Settings that name files of the project, which a worker elsewhere has a copy of.
_COPIED = ("endpoints_file", "baseline_dir")


class Reception:
    """The controller's side: a channel for each worker that may need one, and a service for those that do.

    *context* is made when a worker first asks for it, *open_store* opens the run in the name of a worker.
    """

    def __init__(self, context: Callable[[], RunContext], open_store: Callable[[str], RunStore]) -> None:
        self._context, self._open_store = context, open_store
        self._services: list[Service] = []
        # execnet closes a channel that nobody holds.
        self._channels: list[Any] = []

    def offer(self, node: Any) -> None:
        """Give the worker of *node* a channel, where it may have another disk than this process."""
        if shares_our_disk(node.gateway.spec):
            return
        channel = node.gateway.newchannel()
        begun: list[Service] = []

        def received(item: object) -> None:
            if not begun and item is not None:
                begun.append(self._serve(channel, node))
            for service in begun:
                service.take(item)

        node.workerinput[CHANNEL] = channel
        self._channels.append(channel)
        channel.setcallback(received, endmarker=None)

    def _serve(self, channel: Any, node: Any) -> Service:
        from pytest_fairness.runs.remote import Service

        worker = node.workerinput["workerid"]
        service = Service(
            channel,
            worker=worker,
            open_store=lambda: self._open_store(worker),
            greet=lambda: self._greeting(worker, node.gateway.spec),
            cap=self._context().settings.max_cost,
        )
        self._services.append(service)
        return service

    def _greeting(self, worker: str, spec: Any) -> dict[str, Any]:
        from pytest_fairness.runs.folder import leave_sign

        context = self._context()
        return {
            "sign": leave_sign(context.settings.run_dir, context.token),
            "root": str(context.root),
            "elapsed": time.monotonic() - context.started,
            "barred": _bar(worker, spec, context.settings),
        }

    def halt(self) -> None:
        """Have no worker that is served send anything more."""
        for service in self._services:
            service.halt()

    def close(self) -> str | None:
        """End what is still served; what went wrong with it, if anything did."""
        self.halt()  # all of them, before the first one is waited for
        for service in self._services:
            service.stop(_GRACE)
        return next((service.trouble for service in self._services if service.trouble), None)


def shares_our_disk(spec: Any) -> bool:
    """Whether the worker of the execnet *spec* is sure to have the disk of this process."""
    return bool(spec.popen and not (spec.chdir or spec.python or spec.via))


def _bar(worker: str, spec: Any, settings: Settings) -> str | None:
    """Why *worker* cannot do without the controller's disk, if it cannot."""
    unseen = f"worker {worker} does not see the controller's {settings.run_dir}"
    mend = "put the runs on a disk that both have, with fairness_run_dir in the ini file"
    if spec.socket:  # it has no lock: two threads that send at once garble each other's messages
        return f"{unseen}, and its connection (socket=) cannot carry a run: use ssh=, or {mend}"
    if settings.replay is not None:
        return f"{unseen}, where the recorded run is: replay without workers elsewhere, which asks nothing; or {mend}"
    if settings.approve:
        return f"{unseen}, nor the project whose baselines are to be approved: approve without workers elsewhere"
    return None


class Bearings(NamedTuple):
    """Where a worker stands: its settings, when the session began by its own clock, and the line to the controller,
    where its disk is not seen here; or why there can be none, where there has to be one.
    """

    settings: Settings
    started: float
    line: Line | None = None
    barred: str | None = None


def bearings(channel: Any, settings: Settings, started: float, here: Path) -> Bearings:
    """Ask the controller at the other end of *channel*; *here* is the worker's copy of the project."""
    from pytest_fairness.runs.remote import Hello, Line

    line = Line(channel)
    try:
        hello = line.submit(Hello(version=importlib.metadata.version("pytest-fairness"))).result()
    except FairnessError as error:
        return Bearings(settings, started, barred=str(error))
    # Its clock may not be ours: what is left of the session's time must be the same for all.
    started = time.monotonic() - hello["elapsed"]
    if (settings.run_dir / hello["sign"]).is_file():
        return Bearings(settings, started)
    if hello["barred"] is not None:
        return Bearings(settings, started, barred=str(hello["barred"]))
    paths = {field: getattr(settings, field) for field in _COPIED}
    root = hello["root"]
    moved = {field: here / path.relative_to(root) for field, path in paths.items() if path.is_relative_to(root)}
    return Bearings(dataclasses.replace(settings, **moved), started, line)
