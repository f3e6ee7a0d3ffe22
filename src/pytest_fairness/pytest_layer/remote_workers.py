"""Workers on other machines: whether they see the controller's disk, and the connection that serves in its place.

The connection is one more channel of the execnet gateway that pytest-xdist has opened to the worker: it travels in
``workerinput``. Nothing is said on it until a fairness test was collected there.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import time
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import FairnessError

if TYPE_CHECKING:
    from pytest_fairness.pytest_layer.session import FairnessSession
    from pytest_fairness.runs.remote.line import Line
    from pytest_fairness.runs.remote.service import Service
    from pytest_fairness.runs.store import RunStore

CHANNEL = "fairness_channel"
#: Seconds that workers have, after an interrupt, to log what is under way.
_GRACE = 5.0
#: Settings that name files of the project, which a worker elsewhere has a copy of.
_COPIED = ("endpoints_file", "baseline_dir")


def perhaps(spec: Any) -> bool:
    """Whether the worker of the execnet *spec* may have another disk than this process."""
    return not spec.popen or bool(spec.chdir or spec.python or spec.via)


class Reception:
    """The controller's side: a channel for each worker that may need one, and a service for those that do."""

    def __init__(self, session: FairnessSession) -> None:
        self._session = session
        self._services: list[Service] = []
        # execnet closes a channel that nobody holds.
        self._channels: list[Any] = []

    def offer(self, node: Any) -> None:
        """Give the worker of *node* a channel."""
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
        from pytest_fairness.runs.remote.service import Service

        worker = node.workerinput["workerid"]
        service = Service(
            channel,
            worker=worker,
            open_store=lambda: self._session.open_store(worker),
            greet=lambda: self._greeting(worker, node.gateway.spec),
            cap=self._session.settings.max_cost,
        )
        self._services.append(service)
        return service

    def _greeting(self, worker: str, spec: Any) -> dict[str, Any]:
        from pytest_fairness.runs.folder import leave_sign

        settings = self._session.settings
        return {
            "sign": leave_sign(settings.run_dir, self._session.token),
            "root": str(self._session.config.rootpath),
            "elapsed": time.monotonic() - self._session.started,
            "barred": _bar(worker, spec, settings),
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


def _bar(worker: str, spec: Any, settings: Any) -> str | None:
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


def reach(session: FairnessSession, channel: Any) -> tuple[Line | None, str | None]:
    """The worker's side: the line to the controller, where its disk is not seen here; and why there can be none,
    where there has to be one.
    """
    from pytest_fairness.runs.remote.line import Line

    line = Line(channel)
    try:
        hello = line.ask("hello", version=importlib.metadata.version("pytest-fairness"))
    except FairnessError as error:
        return None, str(error)
    # Its clock may not be ours: what is left of the session's time must be the same for all.
    session.started = time.monotonic() - hello["elapsed"]
    if (session.settings.run_dir / hello["sign"]).is_file():
        return None, None
    if hello["barred"] is not None:
        return None, str(hello["barred"])
    session.settings = _moved(session, hello["root"])
    return line, None


def _moved(session: FairnessSession, root: str) -> Any:
    """The settings with the project's files where this worker has its copy of the project."""
    settings, here = session.settings, session.config.rootpath
    paths = {field: getattr(settings, field) for field in _COPIED}
    moved = {field: here / path.relative_to(root) for field, path in paths.items() if path.is_relative_to(root)}
    return dataclasses.replace(settings, **moved)


def remote_store(line: Line) -> RunStore:
    """The run at the other end of *line*. Raises StoreError."""
    from pytest_fairness.runs.remote.store import RemoteStore

    return RemoteStore(line)
