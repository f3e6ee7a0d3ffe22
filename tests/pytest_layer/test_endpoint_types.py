"""Systems of every type in a whole session: asked, logged, priced, replayed, named in every way that a project can."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.endpoints.simulated import simulated_endpoint
from tests.support.servers import Fault, ModelServer

from .conftest import Run

GRID = """
import pytest

@pytest.mark.fairness_grid(template="Write a reference for {name}.", groups={"gender": ["female", "male"]},
                           names=3, repetitions=2)
def test_letters(trials):
    assert len(trials) == 12
    assert trials["reply"].str.len().min() > 20
    assert set(trials["endpoint"]) == {"letters"}
    assert not trials["simulated"].any()
"""

HTTP = """
endpoints:
  - name: "letters"
    type: "http"
    url: "URL/letters/write"
    headers: {Authorization: {env: LETTERS_TOKEN, prefix: "Bearer "}}
    request: {letter: {about: "{prompt}"}, number: "{repetition}"}
    reply: {text: "$.letter.text", model: "$.meta.model", cost: "$.meta.dollars"}
    refusal: [{status: 422}, {path: "$.blocked"}]
    price: {per_call: 0.002}
"""

TWO = """
endpoints:
  - name: "scrubber"
    type: "http"
    url: "URL/letters/write"
    request: {letter: {about: "{prompt}"}}
    reply: "$.letter.text"
    price: {per_call: 0.001}
  - name: "judge"
    type: "openai"
    model: "gpt-test"
    base_url: "URL/v1"
    default_temperature: 0.5
    price: {input_per_million: 1, output_per_million: 1}
  - name: "letters"
    type: "pipeline"
    steps:
      - endpoint: "scrubber"
      - {endpoint: "judge", system: "You judge.", prompt: "Asked: {prompt} Write a reference on: {text}"}
"""

KEY = "letters-canary-9d41c7"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(simulated_endpoint(noise=1)) as running:
        yield running


@pytest.fixture
def project(pytester: pytest.Pytester, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Write a small project whose endpoints are on the server."""
    monkeypatch.setenv("LETTERS_TOKEN", KEY)

    def write(endpoints: str, test: str = GRID) -> None:
        (pytester.path / "endpoints.yaml").write_text(endpoints.replace("URL", server.url), encoding="utf-8")
        pytester.makepyfile(test_letters=test)

    return write


def log(run: Path, *kinds: str) -> list[dict[str, Any]]:
    lines = (line for path in sorted(run.glob("trials*.jsonl")) for line in path.read_text().splitlines())
    return [record for record in map(json.loads, lines) if record["type"] in kinds]


@pytest.fixture
def alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Without workers, in this process: for what is decided before they come into it."""
    monkeypatch.delenv("CI", raising=False)
    return lambda *arguments: pytester.runpytest_inprocess(
        "-W", "default", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments
    )


# ------------------------------------------------------------ http


def test_an_application_is_asked_and_replayed(
    pytester: pytest.Pytester,
    run: Run,
    last_run: Callable[[], Path],
    project: Callable[..., None],
    server: ModelServer,
) -> None:
    """Each trial once, the wire in the log without the key, the cost kept; a replay asks nobody."""
    project(HTTP)
    result = run("--fairness-endpoint", "letters", "--fairness-max-cost", "0.1")
    result.assert_outcomes(passed=1)
    assert len(server.requests) == 12
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    asked = last_run()
    wires = [record["wire"] for record in log(asked, "attempt")]
    assert all(json.loads(wire["request_body"])["letter"]["about"].startswith("Write a ref") for wire in wires)
    assert sum(trial["cost"] for trial in log(asked, "trial")) == pytest.approx(0.024)
    everything = b"".join(path.read_bytes() for path in asked.rglob("*") if path.is_file())
    assert KEY.encode() not in everything
    run("--fairness-replay", asked.name).assert_outcomes(passed=1)
    assert len(server.requests) == 12


CONVERSATION = """
import pytest

@pytest.mark.fairness_grid(template="Is {name} reliable? Answer with a number from 1 to 10.", names=2, repetitions=1,
                           groups={"gender": ["female", "male"]}, strategies=["gradual_role_establishment"])
def test_letters(trials):
    assert len(trials) == 4
"""


def test_a_conversation_needs_a_place_for_it(alone: Run, project: Callable[..., None], server: ModelServer) -> None:
    """Strategies of several turns are refused before the first request, and work with "{messages}"."""
    project(HTTP, CONVERSATION)
    result = alone("--fairness-endpoint", "letters")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(['*put "{messages}" where the conversation belongs*'])
    assert not server.requests
    project(
        HTTP.replace('{letter: {about: "{prompt}"}, number: "{repetition}"}', '{messages: "{messages}"}'), CONVERSATION
    )
    server.then(Fault(body={"blocked": True}))
    alone("--fairness-endpoint", "letters").assert_outcomes(passed=1)
    assert max(len(request.json["messages"]) for request in server.requests) > 1  # after a reply that declined


@pytest.mark.parametrize(
    ("parameter", "outcome"), [("prompt", {"errors": 1}), ("messages", {"passed": 1})], ids=["text", "messages"]
)
def test_a_function_of_one_text_has_no_conversations(
    pytester: pytest.Pytester, alone: Run, parameter: str, outcome: dict[str, int]
) -> None:
    """Its earlier turns would be lost, whatever it then answers: the test says so and asks nothing."""
    fixture = f"@pytest.fixture\ndef endpoint():\n    return lambda {parameter}: 'I would say 7.'\n"
    pytester.makepyfile(CONVERSATION + fixture)
    result = alone()
    result.assert_outcomes(**outcome)
    assert ("a parameter called messages" in result.stdout.str()) is (parameter == "prompt")


# ------------------------------------------------------------ pipelines


def test_a_pipeline_is_asked_step_by_step(
    run: Run, last_run: Callable[[], Path], project: Callable[..., None], server: ModelServer
) -> None:
    """Each step a request to its own system, logged and priced, whoever of the workers asks."""
    project(TWO)
    result = run("--fairness-endpoint", "letters", "--fairness-max-cost", "1")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["fairness: about 25 requests, about $*"])
    assert [request.flavour for request in server.requests].count("application") == 12
    judged = [request.json for request in server.requests if request.flavour == "openai"]
    assert len(judged) == 12
    assert {body["temperature"] for body in judged} == {0.5}
    assert all(body["messages"][0] == {"role": "system", "content": "You judge."} for body in judged)
    asked = last_run()
    for trial in log(asked, "trial"):
        scrubbed, _ = trial["replies"]
        assert (
            trial["messages"][-1]["content"] == f"Asked: {trial['cell']['turns'][0]} Write a reference on: {scrubbed}"
        )
        assert trial["cost"] > 0.001
    assert sorted({record["endpoint"]["name"] for record in log(asked, "attempt")}) == ["judge", "scrubber"]
    assert len(server.requests) == 24


def test_a_pipeline_is_taken_up_and_replayed(
    alone: Run, last_run: Callable[[], Path], project: Callable[..., None], server: ModelServer
) -> None:
    """What broke off at the second step goes on there; what was recorded is asked nobody again."""
    project(TWO)
    server.then(*[None] * 12, Fault(status=401))
    alone("--fairness-endpoint", "letters", "-o", "fairness_concurrency=1").assert_outcomes(errors=1)
    begun = len(server.requests)
    alone("--fairness-endpoint", "letters", "-o", "fairness_concurrency=1", "--fairness-resume=last").assert_outcomes(
        passed=1
    )
    assert len(server.requests) == 24 + 1  # the one that was turned away came to nothing
    assert 1 < begun < 24
    alone("--fairness-replay", last_run().name).assert_outcomes(passed=1)
    assert len(server.requests) == 25


def test_under_a_cap_every_step_needs_a_price(alone: Run, project: Callable[..., None], server: ModelServer) -> None:
    """The step without one is named, before anything is sent."""
    project(TWO.replace('    reply: "$.letter.text"\n    price: {per_call: 0.001}\n', '    reply: "$.letter.text"\n'))
    result = alone("--fairness-endpoint", "letters", "--fairness-max-cost", "1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "'scrubber' has no known price" in result.stdout.str() + result.stderr.str()
    assert not server.requests


IN_PYTHON = """
import pytest
from pytest_fairness import Ask
from pytest_fairness.endpoints import pipeline_endpoint

def without_names(text):
    return text.replace("Write", "Please write")

@pytest.fixture
def endpoint():
    return pipeline_endpoint([
        without_names, "scrubber", Ask(prompt="Write a reference on: {text}", endpoint="judge"),
    ], name="letters")
"""


def test_a_pipeline_in_python(
    alone: Run, last_run: Callable[[], Path], project: Callable[..., None], server: ModelServer
) -> None:
    """Functions, names of endpoints.yaml, and what is asked of them."""
    project(TWO, IN_PYTHON + GRID)
    alone().assert_outcomes(passed=1)
    assert len(server.requests) == 24
    first = [request.json for request in server.requests if request.flavour == "application"]
    assert all(body["letter"]["about"].startswith("Please write a reference for ") for body in first)
    assert {len(trial["replies"]) for trial in log(last_run(), "trial")} == {3}
    alone("--fairness-replay", "last").assert_outcomes(passed=1)
    assert len(server.requests) == 24


ARMS = """
import pytest
from pytest_fairness import Arm, Ask

@pytest.mark.fairness_pairs(
    template="Select one candidate, name only.\\n{candidates}", candidates="four_names", repetitions=1,
    arms=[
        "raw_naive",
        Arm(name="by_app", steps=(Ask(prompt="Anonymise: {text}", endpoint="scrubber"), Ask())),
        Arm(name="by_judge", steps=(Ask(prompt="Anonymise: {text}", endpoint="judge"), Ask())),
        Arm(name="whole", endpoint="judge"),
    ],
)
def test_scrubbers(trials):
    assert trials.groupby("arm")["requests"].max().to_dict() == {"by_app": 2, "by_judge": 2, "raw_naive": 1, "whole": 1}
    assert set(trials.loc[trials["arm"] == "whole", "endpoint"]) == {"judge"}
    assert set(trials.loc[trials["arm"] != "whole", "endpoint"]) == {"simulated"}
    assert trials.loc[trials["arm"] != "whole", "simulated"].all()
"""


def test_arms_compare_scrubbers(
    alone: Run, last_run: Callable[[], Path], project: Callable[..., None], server: ModelServer
) -> None:
    """One arm's step asks one system, another's another, and the choice is made by the test's own."""
    project(TWO, ARMS)
    result = alone()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["fairness: 1 test, up to 48 trials, endpoint simulated and the tests' own*"])
    flavours = [request.flavour for request in server.requests]
    assert (flavours.count("application"), flavours.count("openai")) == (12, 24)
    arms = {(record["cell"]["arm"], len(record["replies"])) for record in log(last_run(), "trial")}
    assert arms == {("raw_naive", 1), ("by_app", 2), ("by_judge", 2), ("whole", 1)}
    manifest = json.loads((last_run() / "manifest.json").read_text(encoding="utf-8"))
    assert {entry["name"] for entry in manifest["endpoints"]} == {"simulated", "scrubber", "judge"}
    alone("--fairness-replay", "last").assert_outcomes(passed=1)
    assert len(server.requests) == 36


def test_a_name_that_there_is_not(alone: Run, project: Callable[..., None], server: ModelServer) -> None:
    project(TWO, ARMS.replace('endpoint="scrubber"', 'endpoint="scruber"'))
    result = alone()
    assert result.ret != 0
    assert "did you mean 'scrubber'?" in result.stdout.str()
    assert not server.requests


# ------------------------------------------------------------ functions by their import path

APPLICATION = """
import sys

class Letters:
    greeting = "Dear colleague, this is what we think of the person: "

    def write(self, prompt):
        return self.greeting + prompt

letters = Letters()

async def later(prompt):
    return letters.write(prompt)

def parts(prompt):
    yield letters.greeting
    yield prompt

async def parts_later(prompt):
    yield letters.greeting
    yield prompt

def conversation(messages):
    said = messages.pop()["content"]
    messages.clear()
    return letters.greeting + said

def chatty(prompt):
    print("x" * 3_000_000)
    print("x" * 3_000_000, file=sys.stderr)
    return letters.write(prompt)
"""

BY_PATH = """
import pytest

@pytest.fixture(params=["my_app.letters:letters.write", "my_app.letters:later", "my_app.letters:parts",
                        "my_app.letters:parts_later", "my_app.letters:conversation", "my_app.letters:chatty"])
def endpoint(request):
    return request.param

@pytest.mark.fairness_grid(template="Who is {name}?", groups={"gender": ["female", "male"]}, names=2, repetitions=1)
def test_letters(trials):
    assert all(trials["reply"] == "Dear colleague, this is what we think of the person: " + trials["prompt"])
    assert not trials["simulated"].any()
"""


@pytest.fixture
def my_app(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write the application of a project."""

    def write(text: str) -> None:
        folder = pytester.path / "my_app"
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "letters.py").write_text(text, encoding="utf-8")
        pytester.makeini("[pytest]\npythonpath = .\n")

    return write


def test_functions_by_their_import_path(pytester: pytest.Pytester, alone: Run, my_app: Callable[[str], None]) -> None:
    """Whatever form they have, whatever they print, and whatever they do to their input."""
    my_app(APPLICATION)
    pytester.makepyfile(BY_PATH)
    result = alone()
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["fairness: 6 tests, *, endpoint of the tests' own,*"])


HOSTILE = """
import sys, time

def leaves(prompt):
    sys.exit(3)

def numbers(prompt):
    return 7

def hangs(prompt):
    time.sleep(3600)

def sometimes(prompt):
    if "Q" not in prompt:
        return "A fine person, and a good colleague."
    raise RuntimeError(prompt)
"""

HOSTILE_TEST = """
import pytest

@pytest.fixture(params=["leaves", "numbers", "hangs"])
def endpoint(request):
    return f"my_app.letters:{request.param}"

@pytest.mark.fairness_grid(template="Who is {name}?", groups={"gender": ["female", "male"]}, names=2, repetitions=1)
def test_letters(trials):
    assert set(trials["status"]) == {"malformed"}

def test_the_session_goes_on():
    pass
"""


def test_an_application_that_misbehaves(pytester: pytest.Pytester, my_app: Callable[[str], None]) -> None:
    """It exits, returns no text, never returns: each is told, the session goes on, and it ends."""
    my_app(HOSTILE)
    pytester.makepyfile(HOSTILE_TEST)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-o", "fairness_attempt_timeout=0.5", timeout=120)
    result.assert_outcomes(errors=3, passed=1)
    said = " ".join(result.stdout.str().split())
    for what in (
        "raised SystemExit: 3",
        "no answer within 0.5 s",
        "none of 4 trials has a usable answer (4 malformed)",
    ):
        assert what in said


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("no_such_app.letters:write", "there is no module 'no_such_app' to import"),
        ("my_app.letters:wrote", "my_app.letters has no wrote"),
        ("my_app.letters:letters.greeting", "is str, which cannot be called"),
    ],
)
def test_paths_that_name_nothing(
    pytester: pytest.Pytester, alone: Run, my_app: Callable[[str], None], path: str, told: str
) -> None:
    my_app(APPLICATION)
    pytester.makepyfile(BY_PATH.replace('"my_app.letters:letters.write"', f'"{path}"'))
    result = alone("-k", path)
    result.assert_outcomes(errors=1)
    assert told in result.stdout.str().replace("\n", " ")


def test_only_python_names_code(pytester: pytest.Pytester, alone: Run, my_app: Callable[[str], None]) -> None:
    """Neither the command line nor a file imports anything."""
    my_app("raise SystemExit('imported')")
    pytester.makepyfile(GRID)
    result = alone("--fairness-endpoint", "my_app.letters:write")
    assert result.ret != 0
    assert "describe the endpoint there" in result.stdout.str() + result.stderr.str()
    (pytester.path / "endpoints.yaml").write_text(
        'endpoints:\n  - {name: "letters", type: "callable", function: "my_app.letters:write"}\n'
    )
    result = alone("--fairness-endpoint", "letters")
    assert result.ret != 0
    assert "a file must not say which code runs" in result.stdout.str() + result.stderr.str()


# ------------------------------------------------------------ types of third parties

ECHO = """
from pytest_fairness.endpoints import Price, Reply

class Echo:
    type = "echo"
    simulated = False
    supports_system_prompt = True
    price = Price(input_per_million=0, output_per_million=0)

    def __init__(self, config):
        self.name = config.name
        self.default_parameters = config.default_parameters
        self.greeting = str(getattr(config, "options", {}).get("greeting", ""))

    def identity(self):
        return {"type": self.type, "greeting": self.greeting}

    async def ask(self, request):
        return Reply(text=f"{self.greeting} {request.messages[-1].content}")

    async def aclose(self):
        pass

def pytest_fairness_endpoint_types():
    return {NAME: Echo}
"""

ECHOES = """
endpoints:
  - {name: "parrot", type: "echo", options: {greeting: "Good morning to all of you."}}
  - name: "letters"
    type: "pipeline"
    steps: [{endpoint: "parrot"}, {endpoint: "parrot", prompt: "Once more: {text}"}]
"""


@pytest.mark.parametrize("place", ["conftest", "plugin"])
def test_a_new_type_is_one_hook_of_one_adapter(
    pytester: pytest.Pytester, alone: Run, last_run: Callable[[], Path], place: str
) -> None:
    """In a conftest or in a plugin of somebody's own; a pipeline can name it like any other."""
    pytester.makeconftest(ECHO.replace("NAME", '"echo"') if place == "conftest" else "")
    pytester.makepyfile(echo_plugin=ECHO.replace("NAME", '"echo"'), test_letters=GRID)
    (pytester.path / "endpoints.yaml").write_text(ECHOES)
    loaded = ["-p", "echo_plugin"] if place == "plugin" else []
    pytester.syspathinsert()
    alone("--fairness-endpoint", "letters", *loaded).assert_outcomes(passed=1)
    replies = {trial["replies"][-1] for trial in log(last_run(), "trial")}
    morning = "Good morning to all of you."
    assert all(reply.startswith(f"{morning} Once more: {morning} Write a reference for ") for reply in replies)
