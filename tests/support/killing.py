"""Points at which a process kills itself, as the system would, while it stores what it asks.

As a plugin (``-p tests.support.killing``), ``KILL_AT=point:nth`` names the point; with
``KILL_ONCE=file`` the first process that gets there dies, and the others live.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_fairness.endpoints.protocol import Request
from pytest_fairness.engine.engine import Engine
from pytest_fairness.engine.lane import Lane
from pytest_fairness.errors import FairnessError
from pytest_fairness.runs.database import Database
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.store import RunStore

#: The points of a session.
POINTS = ("before-send", "after-send", "before-append", "mid-append", "after-append", "mid-rename")
_AROUND = {"sent": ("before-intent", "before-send"), "attempt": ("before-append", "after-append")}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Suicide:
    """Passes *point* and dies at the *at*-th time, if nobody *bars* it."""

    def __init__(self, point: str, at: int, bars: Callable[[], bool] = lambda: False) -> None:
        self._point, self._left, self._bars = point, at, bars

    def passing(self, point: str) -> bool:
        if point != self._point:
            return False
        self._left -= 1
        return self._left == 0 and not self._bars()

    def here(self, point: str) -> None:
        if self.passing(point):
            die()

    def install(self) -> None:
        """Put the points into the store: ``before-intent`` and ``before-send`` around the record
        that a request leaves, ``before-append`` and ``after-append`` around its answer's,
        ``before-`` and ``after-`` with the type of any other, or the event of a batch;
        ``mid-append`` within the transaction that holds an answer, and ``mid-rename`` of the
        manifest that says *finished*.
        """
        append, insert, replace = RunStore.append, Database._save, Path.replace

        def dying_append(store: RunStore, record: dict[str, Any]) -> None:
            name = record.get("event", record["type"])
            before, after = _AROUND.get(name, (f"before-{name}", f"after-{name}"))
            self.here(before)
            append(store, record)
            if self.passing(after):
                store.flush()
                die()

        def dying_insert(database: Database) -> None:
            attempts = [row.type for row in database._rows].count("attempt")
            insert(database)
            if any(self.passing("mid-append") for _ in range(attempts)):
                die()

        def dying_replace(path: Path, target: Any) -> Path:
            if Path(target).name == "manifest.json" and b'"finished"' in path.read_bytes():
                self.here("mid-rename")
            return replace(path, target)

        RunStore.append = dying_append  # type: ignore[method-assign]
        Database._save = dying_insert  # type: ignore[method-assign]
        Path.replace = dying_replace  # type: ignore[assignment, method-assign]

    def install_after_send(self) -> None:
        """``after-send``: a request has left an engine."""
        ask = Lane._ask

        async def dying_ask(lane: Lane, request: Request, limit: float) -> Any:
            if self.passing("after-send"):
                await asyncio.wait([asyncio.ensure_future(ask(lane, request, limit))], timeout=0.2)
                die()
            return await ask(lane, request, limit)

        Lane._ask = dying_ask  # type: ignore[method-assign]


def _another_died() -> bool:
    once = os.environ.get("KILL_ONCE")
    try:
        if once is not None:
            Path(once).touch(exist_ok=False)
    except FileExistsError:
        return True
    return False


if "KILL_AT" in os.environ:
    _point, _, _nth = os.environ["KILL_AT"].partition(":")
    _suicide = Suicide(_point, int(_nth), _another_died)
    _suicide.install()
    _suicide.install_after_send()


def ask_and_print(engine: Engine, planned: list[PlannedTrial]) -> int:
    """Ask *planned*, and print the statuses of the trials as JSON, or the error; the exit code of
    the process.
    """
    try:
        trials = engine.run(planned)
    except FairnessError as error:
        print(type(error).__name__, error, flush=True)  # noqa: T201
        return 1
    print(json.dumps(Counter(trial.status for trial in trials)), flush=True)  # noqa: T201
    return 0
