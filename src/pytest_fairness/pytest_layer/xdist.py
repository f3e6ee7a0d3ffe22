"""Our side of pytest-xdist: what workers are given, and the run that they have begun. Findings come
back on test reports, see ``to_controller``.

Every session with workers loads this module: what only a fairness session needs is imported where
it is used.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.errors import StoreError
from pytest_fairness.pytest_layer.options import arguments_of, settings_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_fairness.engine.progress import Watching

#: What ``workerinput`` has of ours.
SETTINGS, ARGUMENTS, TOKEN, STARTED = (
    "fairness_settings",
    "fairness_arguments",
    "fairness_token",
    "fairness_started",
)
REFUSAL, PROCESS = "fairness_refusal", "fairness_controller"
#: What ``workeroutput`` has of ours: why a worker could not write all that it had asked.
TROUBLE = "fairness_trouble"
#: Exit statuses of sessions that came to their end.
_WHOLE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


class Controller:
    """Hooks of pytest-xdist in its controller: it gives workers what was resolved here and the
    token of their run.
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
        #: Why a worker could not write all that it had asked; None where each could.
        self.trouble: str | None = None
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
        """Give a worker what was resolved here, and the token by which it finds the run."""
        node.workerinput |= {
            SETTINGS: self.settings.to_dict(),
            ARGUMENTS: arguments_of(self._config),
            TOKEN: self.token,
            PROCESS: os.getpid(),
            STARTED: self.started,
            REFUSAL: refusal(node.gateway.spec),
        }

    @pytest.hookimpl
    def pytest_xdist_node_collection_finished(self) -> None:
        """Once workers have begun a run: show how far they all are, in one line."""
        if not self.begun or self._announced:
            return
        from pytest_fairness.engine.progress import Progress, Watching
        from pytest_fairness.pytest_layer.reporting import PastCapture, first_announced, progress

        shown = progress(self._config, self.settings.progress)
        if isinstance(shown, Progress):
            with contextlib.suppress(StoreError):  # of a damaged run each worker's tests say why
                store = self._session().context.store
                self._watching = self._watching or Watching(store, shown)
                terminal = PastCapture(self._config)
                # The worker that chose the run announces it, and may not be the first to have
                # collected.
                announced = store.manifest().get("announced", [])
                for line in first_announced(announced, self._config):
                    terminal.write(f"{line}\n")
                    self._announced = True

    @pytest.hookimpl
    def pytest_testnodedown(self, node: Any) -> None:
        """Keep why a worker could not write all that it had asked."""
        # A worker that died has no output: its tests are missing then.
        output = getattr(node, "workeroutput", None) or {}
        self.trouble = self.trouble or output.get(TROUBLE)

    def pytest_keyboard_interrupt(self) -> None:
        self.end()  # before anything else is done about it: workers go on asking until they are halted

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Halt the workers where the session ends early."""
        if exitstatus not in _WHOLE:
            self.end()

    def end(self) -> None:
        """Have no worker send anything more."""
        from pytest_fairness.runs.folder import end_session

        self.ended = True
        with contextlib.suppress(StoreError):  # they see the controller's own end too, if later
            end_session(self.settings.run_dir, self.token)

    def close(self) -> None:
        """End the line of progress."""
        if self._watching is not None:
            self._watching.stop()


def refusal(spec: Any) -> str | None:
    """Why the worker of the execnet *spec* cannot ask; None for one that is sure to have the disk
    and the clock of this process.

    What ``python=`` starts may be in a container, and what ``via=`` starts on another machine.
    """
    if spec.popen and not (spec.python or spec.via):
        return None
    return (
        f"a worker of --tx {spec} may be on another machine, or in a container, and the folder of "
        "the run is on this one: use -n for workers on this machine, or ask a shard on each "
        "machine (--fairness-shard 1/2, 2/2), and put them together with pytest-fairness merge"
    )
