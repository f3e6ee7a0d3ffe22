"""A user's project against a server that fails on demand, and an engine against the same: both come
to a Case.
"""

from __future__ import annotations

import hashlib
import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import tests.pytest_layer.conftest  # noqa: F401 - it imports what in-process sessions cannot import twice
from pytest_fairness.endpoints import Endpoint, Price, create_endpoint
from pytest_fairness.endpoints.protocol import Reply, Request
from pytest_fairness.endpoints.simulated import SimulatedEndpoint
from pytest_fairness.engine.engine import Engine
from pytest_fairness.errors import FairnessError
from pytest_fairness.model import Cell, Trial
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.store import open_store
from tests.support.servers import Fault, ModelServer
from tests.support.shared_sessions import SharedProject, SharedSessions, shared_folder

from .oracles import Case, given_files, newest_run, same_statistics

#: Secrets that must reach the provider and nothing else.
KEY = "sk-canary-0123456789abcdefXYZ"
#: A word of every prompt: where it stands, prompts are.
PLACE = "Zanzaroo"
PRICE = Price(input_per_million=0.15, output_per_million=0.6)
#: The routes of the catalogue: the providers that are spoken to directly.
ROUTES = ("direct", "anthropic", "azure", "ollama")
#: Whose requests are its own affair: the log holds what it was given and what it returned.
LITELLM = "litellm"

# Tracebacks show a test's source, which is not the prompt: the word is put together.
SUITE = f"""
import pytest
from pytest_fairness import assert_no_disparity

PLACE = "{PLACE[:4]}" + "{PLACE[4:]}."

@pytest.mark.fairness_grid(
    template=["Write a short job reference for {{name}}, a nurse in " + PLACE,
              "Write a landlord reference for {{name}} of " + PLACE],
    groups={{"race_ethnicity": ["white", "black"]}}, names=(20,), repetitions=1,
)
def test_tone(trials):
    assert_no_disparity(trials, outcome="word_count", by="race_ethnicity")
"""
#: Trials of SUITE: 2 templates × 2 groups × 20 names.
TRIALS = 80


def entry(route: str, server: ModelServer, **more: Any) -> dict[str, Any]:
    """The entry of ``endpoints.yaml`` by which *route* reaches *server*."""
    kind = {"direct": "openai", "litellm": "openai"}.get(route, route)
    return {
        "name": route,
        "type": kind,
        "model": "gpt-4o-mini",
        "base_url": server.openai_url if kind == "openai" else server.url,
        "api_key_env": "THE_KEY",
        "price": {
            "input_per_million": PRICE.input_per_million,
            "output_per_million": PRICE.output_per_million,
        },
        "default_parameters": {"max_tokens": 400},
        **({"via": "litellm"} if route == "litellm" else {}),
        **more,
    }


def need(route: str) -> None:
    """Skip where *route* goes through litellm and that is not installed."""
    if route == LITELLM and importlib.util.find_spec("litellm") is None:
        pytest.skip("litellm is not installed: pip install 'pytest-fairness[llm]'")


class Steady(SimulatedEndpoint):
    """Answers the same to the same prompt, however often it is asked: a run that was disturbed can
    be held against one that was not.
    """

    def reply(self, request: Request) -> Reply:
        return super().reply(replace(request, repetition=0))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(Steady()) as running:
        yield running


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)


# ---------------------------------------------------------------- a user's session


@dataclass
class Project:
    """A folder with a suite and an ``endpoints.yaml``; :meth:`run` is what its developer types."""

    pytester: pytest.Pytester
    server: ModelServer
    shared: SharedSessions
    started: int = 0

    @property
    def path(self) -> Path:
        return self.pytester.path

    def write(self, suite: str = SUITE, route: str = "direct", **more: Any) -> None:
        """The suite, and the endpoint that it asks."""
        need(route)
        self.pytester.makepyfile(test_suite=suite)
        given = {
            key: value
            for key, value in entry(route, self.server, **more).items()
            if value is not None
        }
        text = yaml.safe_dump({"endpoints": [given]})
        self.path.joinpath("endpoints.yaml").write_text(text, encoding="utf-8")
        self.path.joinpath("pytest.ini").write_text(
            f"[pytest]\nfairness_endpoint = {route}\nfairness_concurrency = 8\n", encoding="utf-8"
        )

    def run(self, *arguments: str, apart: bool = False, **about: Any) -> Case:
        """One session: what came of it. *apart* in a process of its own; the ledger is that of all
        on this run.
        """
        if not any(argument.startswith("--fairness-resume") for argument in arguments):
            self.started = len(self.server.requests)
        run_folder = self.path / ".fairness"
        given = frozenset(
            path for path in given_files(self.path) if not path.is_relative_to(run_folder)
        )
        by_itself = not any(argument.startswith("-n") for argument in arguments)
        command = ("-p", "no:xdist", *arguments) if by_itself else arguments
        if apart or "-n2" in arguments:
            result = self.pytester.runpytest_subprocess("--junitxml=junit.xml", *command)
        else:
            result = self.pytester.runpytest_inprocess(
                "-W", "default", "--junitxml=junit.xml", *command
            )
        output, junit = result.stdout.str() + result.stderr.str(), self.path / "junit.xml"
        found = {
            "output": output,
            "code": int(result.ret),
            "seconds": result.duration,
            "given": given - {junit},
        }
        return self.case(**{**found, "ledger": self.server.requests[self.started :], **about})

    def case(self, **about: Any) -> Case:
        """The Case of whatever has happened so far, by the newest run and the server's whole
        ledger.
        """
        usual = {
            "project": self.path,
            "run": newest_run(self.path),
            "ledger": list(self.server.requests),
            "price": PRICE,
            "secrets": (KEY,),
            "prompts": (PLACE,),
            "given": frozenset({self.path / "test_suite.py"}),
            "deadline": 30.0,
        }
        return Case(**{**usual, **about})

    def folder(self, case: Case) -> Path:
        """The run's folder, which *case* must have."""
        assert case.run is not None, case.output
        return case.run


def words(case: Case) -> str:
    """What was printed, without line breaks."""
    return " ".join(case.output.split())


def same_as_undisturbed(project: Project, case: Case) -> None:
    """O7, second half: the same suite without a fault comes to the findings of *case*. It is run
    once for all tests of it.
    """
    assert case.run is not None
    files = {
        name: (project.path / name).read_text("utf-8").replace(project.server.url, SERVER)
        for name in ("test_suite.py", "endpoints.yaml", "pytest.ini")
    }
    digest = hashlib.sha256(repr(files).encode()).hexdigest()
    shared = project.shared.once(f"undisturbed-{digest}", lambda other: run_quietly(other, files))
    undisturbed = shared["undisturbed"]
    assert undisturbed.code in (0, 1)
    same_statistics(case.run, undisturbed.folder)


#: Stands in ``endpoints.yaml`` for the address of a server.
SERVER = "http://server"


def run_quietly(project: SharedProject, files: Mapping[str, str]) -> None:
    """Run the suite of *files* against a server without faults."""
    with ModelServer(Steady()) as server:
        for name, text in files.items():
            (project.path / name).write_text(text.replace(SERVER, server.url), encoding="utf-8")
        project.run("undisturbed", "-p", "no:xdist")


@pytest.fixture
def project(
    pytester: pytest.Pytester, server: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> Project:
    return Project(pytester, server, SharedSessions(shared_folder(tmp_path_factory)))


# ---------------------------------------------------------------- an engine alone


def cells(count: int, tag: str = "") -> list[PlannedTrial]:
    """*count* planned trials of two groups, each with a text of its own, which *tag* ends."""
    groups = ("white", "black")
    return [
        PlannedTrial(
            cell=Cell(
                id=f"t-{number}",
                template="t",
                turns=(f"Write a reference for candidate {number} of {PLACE}. {tag}".strip(),),
                groups={"race_ethnicity": groups[number % 2]},
                name=f"name {number}",
            )
        )
        for number in range(count)
    ]


def message(content: Any, reason: Any = "stop", **more: Any) -> dict[str, Any]:
    """A chat completion with *content*."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content, **more},
        "finish_reason": reason,
    }
    usage = {"prompt_tokens": 20, "completion_tokens": 5}
    return {
        "id": "1",
        "object": "chat.completion",
        "model": "gpt-4o-mini",
        "choices": [choice],
        "usage": usage,
    }


@dataclass
class Requested:
    """What an engine came to: its trials, or the error that it raised, and the Case."""

    case: Case
    trials: list[Trial] = field(default_factory=list)
    error: FairnessError | None = None

    @property
    def statuses(self) -> list[str]:
        return [trial.status.value for trial in self.trials]


Ask = Callable[..., Requested]


def endpoint_of(route: str, server: ModelServer, **more: Any) -> Endpoint:
    """The endpoint that :func:`entry` describes."""
    need(route)
    return create_endpoint(entry(route, server, **more))


@pytest.fixture
def ask(tmp_path: Path, server: ModelServer) -> Ask:
    """Ask *count* trials over *route* while the server does *faults*, and hand back what happened."""

    def go(
        route: str,
        *faults: Fault | None,
        count: int = 1,
        endpoint: Endpoint | None = None,
        planned: Sequence[PlannedTrial] | None = None,
        case: dict[str, Any] | None = None,
        more: dict[str, Any] | None = None,
        **options: Any,
    ) -> Requested:
        system = endpoint or endpoint_of(route, server, **(more or {}))
        plan = list(planned) if planned is not None else cells(count, route)
        prompts = {one.cell.prompt for one in plan}
        before = len(server.requests)
        server.then(*faults)
        # Of its own: what is searched for secrets are the files of this run.
        home = Path(tempfile.mkdtemp(dir=tmp_path))
        requested = Requested(Case(project=home, run=None))
        started = time.monotonic()
        with (
            open_store(home / ".fairness" / "runs", f"session {time.monotonic_ns()}") as store,
            Engine(system, store, **{"concurrency": 4, **options}) as engine,
        ):
            try:
                requested.trials = engine.run(plan)
            except FairnessError as error:
                requested.error = error
        requested.case = Case(
            project=home,
            run=store.directory,
            # Several may be asking at once, each in words of its own.
            ledger=[request for request in server.requests[before:] if request.prompt in prompts],
            planned=len(plan),
            output=str(requested.error or "")
            + "".join(trial.error or "" for trial in requested.trials),
            seconds=time.monotonic() - started,
            **{"price": PRICE, "secrets": (KEY,), "cap": options.get("max_cost"), **(case or {})},
        )
        return requested

    return go


def everywhere(ask: Ask, routes: Sequence[str] = ROUTES, **options: Any) -> dict[str, Requested]:
    """What trials come to over each of *routes*, asked at the same time."""
    with ThreadPoolExecutor(len(routes)) as pool:
        return dict(zip(routes, pool.map(lambda route: ask(route, **options), routes), strict=True))


def route_of(body: str) -> str:
    """The route over which :func:`everywhere` sent the request *body*."""
    return next(route for route in ROUTES if f"{PLACE}. {route}" in body)
