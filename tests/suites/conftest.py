"""Running a ready-made suite as a user would: from a folder of their own, by its name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Imported before sessions in this process forget it.
import pytest_fairness.suites.selection.metrics  # noqa: F401
from tests.support.shared_sessions import SharedSessions, shared_folder

from ..pytest_layer.conftest import last_run, project, run

__all__ = ["last_run", "project", "records", "run"]


@pytest.fixture
def records(last_run: Callable[[], Path]) -> Callable[..., list[dict[str, Any]]]:
    """The lines of the newest run's ``selection.jsonl``, or of another file of its folder."""

    def read(name: str = "selection.jsonl") -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for line in (last_run() / name).read_text(encoding="ascii").splitlines()
        ]

    return read


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> SharedSessions:
    """Sessions that are run once, whichever tests look at them."""
    return SharedSessions(shared_folder(tmp_path_factory))
