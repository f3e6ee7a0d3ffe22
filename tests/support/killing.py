"""Points at which a process kills itself, as the system would, while it stores what it asks."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_fairness.engine.engine import Engine
from pytest_fairness.errors import FairnessError
from pytest_fairness.runs.database import Database
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.store import RunStore


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
        """Put the points into the store: ``before-intent`` and ``before-send`` around the record that a request leaves,
        ``before-append`` and ``after-append`` around its answer's, ``mid-append`` within the transaction that holds it,
        ``after-trial``, and ``mid-rename`` of the manifest that says *finished*.
        """
        append, insert, replace = RunStore.append, Database._save, Path.replace
        around = {"sent": ("before-intent", "before-send"), "attempt": ("before-append", "after-append")}

        def dying_append(store: RunStore, record: dict[str, Any]) -> None:
            before, after = around.get(record["type"], ("nowhere", f"after-{record['type']}"))
            self.here(before)
            append(store, record)
            if self.passing(after):
                store.flush()
                die()

        def dying_insert(database: Database) -> None:
            attempts = database._rows[2::6].count("attempt")
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


def ask_and_print(engine: Engine, planned: list[PlannedTrial]) -> int:
    """Ask *planned*, and print the statuses of the trials as JSON, or the error; the exit code of the process."""
    try:
        trials = engine.run(planned)
    except FairnessError as error:
        print(type(error).__name__, error, flush=True)  # noqa: T201
        return 1
    print(json.dumps(Counter(trial.status for trial in trials)), flush=True)  # noqa: T201
    return 0
