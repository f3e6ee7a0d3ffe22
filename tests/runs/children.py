"""Starts processes that ask: several at once, to be killed and interrupted."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pytest_fairness.runs.folder import run_folders
from tests.support.sessions import Session

PACKAGE = str(__package__)
IMPORTED_FROM = Path(__file__).parents[PACKAGE.count(".") + 1]
#: Nano-dollars of one answer of a child's endpoint.
COST = 60_000


def start(module: str, options: dict[str, Any]) -> Session:
    """Run *module* with *options* in a process of its own."""
    path = os.pathsep.join([str(IMPORTED_FROM), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    return Session(IMPORTED_FROM, json.dumps(options), environment=environment, module=module)


class Runs:
    """Starts children on one root with one ledger."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "runs"
        self.ledger = tmp_path / "ledger"

    def start(self, **options: Any) -> Session:
        places = {"root": str(self.root), "ledger": str(self.ledger)}
        return start(f"{PACKAGE}.child", {**places, **options})

    def finish(self, child: Session) -> dict[str, int]:
        out, err = child.communicate(timeout=30)
        assert child.returncode == 0, err
        return dict(json.loads(out.splitlines()[-1]))

    @property
    def directory(self) -> Path:
        (directory,) = run_folders(self.root)
        return directory
