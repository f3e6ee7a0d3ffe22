"""The first stages of tests to come are asked while those of others end or are judged."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.servers import ModelServer
from tests.support.sessions import Session

from .conftest import Project, shown

ENDPOINT = """
endpoints:
  - name: model
    type: openai
    model: gpt-4o-mini
    base_url: {url}
    price: {{input_per_million: 1, output_per_million: 1}}
    {more}
"""
TESTS = """
import time
import pytest
from pytest_fairness import assert_no_disparity

TEAMS = {"team": {group: [f"{group.upper()}{place:02}" for place in range(1, 21)] for group in "ab"}}

def rated(file, **more):
    return pytest.mark.fairness_grid(
        template=[f"File {file}: rate {{name}} from 1 to 10.", f"File {file}: grade {{name}}."],
        groups=TEAMS, names=(10, 20), repetitions=1, **more,
    )

@rated("one")
def test_one(trials):
    JUDGING
    trials["score"] = trials.reply.str.len() % 7
    assert_no_disparity(trials, outcome="score", by="team")

MARK
@rated("two")
def test_two(trials):
    trials["score"] = trials.reply.str.len() % 5
    assert_no_disparity(trials, outcome="score", by="team")
"""
INI = "[pytest]\nfairness_endpoint = model\nfairness_concurrency = 8\n"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(latency=0.02) as running:
        yield running


def write(
    project: Project, server: ModelServer, *, mark: str = "", judging: str = "pass", more: str = ""
) -> None:
    suite = TESTS.replace("MARK", mark).replace("JUDGING", judging)
    project.write(suite, ENDPOINT.format(url=server.openai_url, more=more))
    project.pytester.makeini(INI)


def files_of(server: ModelServer) -> list[str]:
    """Which file each request is about, in the order in which they came."""
    return [request.prompt.split()[1].rstrip(":") for request in server.requests]


def interleaved(server: ModelServer) -> bool:
    """Whether the second test's trials were asked before the last of the first one's."""
    files = files_of(server)
    return files.index("two") < len(files) - 1 - files[::-1].index("one")


def pairs_by_test(project: Project) -> dict[str, list[dict[str, object]]]:
    """What the newest run says of each pair, by test: workers end in any order."""
    return {finding["nodeid"]: finding["pairs"] for finding in project.findings}


def test_the_next_test_is_asked_while_one_is(
    project: Project, server: ModelServer, mode: list[str]
) -> None:
    """Each trial once, and findings as they are of a session that asks one test after the other,
    which a failure may end."""
    write(project, server)
    project.run(mode=mode).assert_outcomes(passed=2)
    if "-n2" not in mode:
        assert interleaved(server)
    assert set(Counter(request.body for request in server.requests).values()) == {1}
    asked = len(server.requests)
    pairs = pairs_by_test(project)
    server.forget()
    server.requests.clear()
    project.run("-x").assert_outcomes(passed=2)
    assert not interleaved(server)
    assert len(server.requests) == asked
    assert pairs_by_test(project) == pairs


@pytest.mark.parametrize(
    ("arguments", "mark", "files"),
    [
        (["--fairness-max-cost=5"], "", {}),
        ([], "@pytest.mark.skip", {}),
        ([], "@pytest.mark.usefixtures('own')", {"conftest": "import pytest\nown = pytest.fixture(lambda: 1)"}),
        ([], "", {"conftest": "def pytest_runtest_setup(item): pass"}),
        (["--maxfail=2"], "", {}),
    ],
    ids=["a cap", "skipped", "a fixture of the project's", "a hook of the project's", "maxfail"],
)  # fmt: skip
def test_nothing_is_asked_on_a_guess(
    project: Project,
    server: ModelServer,
    arguments: list[str],
    mark: str,
    files: dict[str, str],
) -> None:
    write(project, server, mark=mark)
    for name, text in files.items():
        project.pytester.makepyfile(**{name: text})
    project.run(*arguments)
    assert "two" not in files_of(server) or not interleaved(server)


def test_a_test_that_is_refused_is_not_asked_ahead(project: Project, server: ModelServer) -> None:
    """A resumed run whose second test has changed says so, and asks nothing of it."""
    write(project, server)
    project.run().assert_outcomes(passed=2)
    run = project.last.name
    server.forget()
    server.requests.clear()
    suite = project.path / "test_suite.py"
    text = suite.read_text(encoding="utf-8")
    suite.write_text(
        text.replace("File {file}: grade {{name}}.", "File {file}: judge {{name}}."),
        encoding="utf-8",
    )
    result = project.run("--fairness-resume", run)
    result.assert_outcomes(errors=2)
    assert "cannot be resumed for this test" in shown(result)
    assert not server.requests


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_interrupted_while_a_test_judges(
    project: Project, server: ModelServer, number: signal.Signals
) -> None:
    """What is in flight for the next test ends with its answer, is logged, and is not asked again
    when the run is resumed."""
    write(project, server, judging="time.sleep(60)")
    server.latency = 0.2
    session = Session(project.path, "-p", "no:cacheprovider")
    end = time.monotonic() + 30
    while "two" not in files_of(server) and time.monotonic() < end:
        time.sleep(0.01)
    session.send_signal(number)
    output, _ = session.communicate(timeout=30)
    assert session.returncode == pytest.ExitCode.INTERRUPTED, output.decode()
    written = project.records("trial")
    assert len(written) == len(server.requests)
    assert {record["status"] for record in written} == {"answered"}
    write(project, server)
    server.latency = 0.0
    project.run("--fairness-resume", project.last.name).assert_outcomes(passed=2)
    assert set(Counter(request.body for request in server.requests).values()) == {1}
