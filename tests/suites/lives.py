"""The life of a project, run by run: lived once a session, also by several workers, and looked at by
many tests.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MODES
from tests.support.sessions import run_pytest

from ..pytest_layer.conftest import Project


class LivedProject(Project):
    """A project in a folder that outlives a test; each of its sessions has a process of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.environment = {
            **os.environ,
            "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:anyio",
        }

    def write(self, suite: str = "", endpoints: str = "", **files: str) -> None:
        """Write ``test_suite.py``, ``endpoints.yaml`` and further modules."""
        for name, text in {"test_suite": suite, **files}.items():
            (self.path / f"{name}.py").write_text(text, "utf-8")
        if endpoints:
            (self.path / "endpoints.yaml").write_text(endpoints, "utf-8")

    def run(
        self, *arguments: str, mode: Sequence[str] = MODES["plain"], apart: bool = True
    ) -> pytest.RunResult:
        """A session, which is always *apart*."""
        command = ("-p", "no:cacheprovider", *mode, *arguments)
        result: pytest.RunResult = run_pytest(self.path, *command, environment=self.environment)
        return result


@dataclass(frozen=True)
class Lived:
    """A session as it ended: how many items passed and failed, what it printed, its findings and
    its report.
    """

    outcomes: dict[str, int]
    output: str
    findings: list[dict[str, Any]]
    page: str

    @classmethod
    def of(cls, result: pytest.RunResult, project: Project) -> Lived:
        return cls(
            outcomes=result.parseoutcomes(),
            output=" ".join(result.stdout.str().split()),
            findings=project.findings,
            page=project.page,
        )

    def counts(self, *names: str) -> tuple[int, ...]:
        """How many items had each of these outcomes."""
        return tuple(self.outcomes.get(name, 0) for name in names)

    def assert_nothing_judged(self, *, skipped: int) -> None:
        """Check that so many items are *skipped*, and no others, and that the output says so."""
        assert self.counts("failed", "passed", "skipped") == (0, 0, skipped), self.output
        assert "nothing was judged" in self.output, self.output

    @property
    def by_id(self) -> dict[str, dict[str, Any]]:
        """The findings by the id of their test."""
        return {finding["test_id"]: finding for finding in self.findings}

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict of each finding, by the id of its test."""
        return {name: finding["verdict"] for name, finding in self.by_id.items()}


#: How long a worker waits for the life that another lives.
MOST_SECONDS = 600
#: The sessions of a life that tests look at, by name.
Life = dict[str, Lived]
#: The name of each session that tests look at, with its result, as they come about.
Sessions = Iterator[tuple[str, pytest.RunResult]]


def lived(living: Callable[[LivedProject], Sessions]) -> Callable[..., Life]:
    """Make a fixture of *living*: the life that it lives, once for all workers of a session."""

    @pytest.fixture(scope="session")
    def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
        root = tmp_path_factory.getbasetemp()
        if "PYTEST_XDIST_WORKER" in os.environ:
            root = root.parent
        folder = root / living.__name__
        record = folder.with_suffix(".json")
        try:
            folder.mkdir()
        except FileExistsError:
            return _read(record)
        project = LivedProject(folder)
        try:
            sessions = {name: asdict(Lived.of(result, project)) for name, result in living(project)}
        except BaseException:
            _write(record, None)
            raise
        _write(record, sessions)
        return _read(record)

    return life


def _write(record: Path, sessions: dict[str, Any] | None) -> None:
    part = record.with_suffix(".part")
    part.write_text(json.dumps(sessions), "utf-8")
    part.rename(record)


def _read(record: Path) -> Life:
    """The life in the file *record*, once the worker that lives it has written it."""
    until = time.monotonic() + MOST_SECONDS
    while not record.exists():
        assert time.monotonic() < until, f"nobody has written {record}"
        time.sleep(0.1)
    sessions = json.loads(record.read_text("utf-8"))
    assert sessions is not None, f"the worker that lived {record.stem} failed"
    return {name: Lived(**session) for name, session in sessions.items()}
