"""Sessions, and whatever else many tests look at, made once whichever process of the test session
asks first.

The workers of pytest-xdist share a folder: the first that asks for sessions runs them there, behind
a lock, and the others read what came of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pytest

from .findings_schema import conforming
from .runs import records
from .sessions import run_pytest

try:
    import fcntl
except ImportError:  # nothing to share between processes there
    fcntl = None  # type: ignore[assignment]


T = TypeVar("T")


@dataclass(frozen=True)
class PastSession:
    """A session that has ended: its exit status, what it printed, and the folder of its run."""

    code: int
    output: str
    run: str

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        assert self.run, self.output
        return Path(self.run)

    @property
    def outcomes(self) -> dict[str, int]:
        """How many tests ended how."""
        return pytest.RunResult.parse_summary_nouns(self.output.splitlines())

    @property
    def failed(self) -> set[str]:
        """The ids of the tests that failed, without their file."""
        lines = [line for line in self.output.splitlines() if line.startswith("FAILED ")]
        return {line.partition("::")[2].partition(" - ")[0] for line in lines}

    @property
    def words(self) -> str:
        """What was printed, in one line."""
        return " ".join(self.output.split())

    @cached_property
    def results(self) -> dict[str, Any]:
        """``findings.json``, which is as its schema says."""
        return conforming(self.read("findings.json"))

    @property
    def findings(self) -> list[dict[str, Any]]:
        return self.results["findings"]

    @cached_property
    def page(self) -> str:
        return (self.folder / "report.html").read_text(encoding="utf-8")

    def read(self, name: str) -> Any:
        """Return what the JSON file *name* of the run holds."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the records of the run, of these types."""
        return records(self.folder, *kinds)


class SharedProject:
    """A project in which sessions are run, one after the other, each under a name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sessions: dict[str, PastSession] = {}

    def write(self, **files: str) -> None:
        """Write files at the root of the project; ``__`` in a name stands for a dot."""
        for name, text in files.items():
            (self.path / name.replace("__", ".")).write_text(text, encoding="utf-8")

    def run(self, name: str, *arguments: str, **environment: str) -> None:
        """Run a session, which is called *name*."""
        runs = self.path / ".fairness" / "runs"
        before = {*runs.glob("2*")}
        given = {
            **os.environ,
            "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:anyio",
            **environment,
        }
        result = run_pytest(self.path, "-p", "no:cacheprovider", *arguments, environment=given)
        made = [str(run) for run in sorted({*runs.glob("2*")} - before)]
        self.sessions[name] = PastSession(
            int(result.ret), f"{result.stdout}\n{result.stderr}", (made or [""])[-1]
        )


Make = Callable[[SharedProject], None]


class SharedSessions:
    """The sessions of all projects that tests share, in a *folder* that all workers see."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def once(self, name: str, make: Make) -> Mapping[str, PastSession]:
        """Return the sessions that *make* runs, which has run them once under *name*."""
        kept = self._folder / f"{name}.json"
        with _locked(self._folder / f"{name}.lock"):
            if not kept.exists():
                project = SharedProject(Path(tempfile.mkdtemp(prefix=name, dir=self._folder)))
                make(project)
                sessions = {key: asdict(session) for key, session in project.sessions.items()}
                kept.write_text(json.dumps(sessions), encoding="utf-8")
        sessions = json.loads(kept.read_text(encoding="utf-8"))
        return {key: PastSession(**session) for key, session in sessions.items()}


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder that all workers of this session see."""
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return folder


def made_once(folder: Path, name: str, make: Callable[[], T]) -> T:
    """Return what *make* returns, which is called once for all workers that see this *folder*."""
    kept = folder / f"{name}.pickle"
    with _locked(folder / f"{name}.lock"):
        if not kept.exists():
            kept.write_bytes(pickle.dumps(make()))
    made: T = pickle.loads(kept.read_bytes())
    return made


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
