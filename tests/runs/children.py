"""Starts processes that ask: several at once, to be killed and interrupted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pytest_fairness.runs.folder import run_folders

PACKAGE = str(__package__)
IMPORTED_FROM = Path(__file__).parents[PACKAGE.count(".") + 1]
#: Nano-dollars of one answer of a child's endpoint.
COST = 60_000


class Runs:
    """Starts children on one root with one ledger."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "runs"
        self.ledger = tmp_path / "ledger"

    def start(self, **options: Any) -> subprocess.Popen[str]:
        places = {"root": str(self.root), "ledger": str(self.ledger)}
        return subprocess.Popen(
            [sys.executable, "-m", f"{PACKAGE}.child", json.dumps({**places, **options})],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(IMPORTED_FROM), *sys.path])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, child: subprocess.Popen[str]) -> dict[str, int]:
        out, err = child.communicate(timeout=30)
        assert child.returncode == 0, err
        return dict(json.loads(out.splitlines()[-1]))

    @property
    def directory(self) -> Path:
        (directory,) = run_folders(self.root)
        return directory
