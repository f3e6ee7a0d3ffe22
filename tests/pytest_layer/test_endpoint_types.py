"""Systems of every type in a whole session: asked, logged, priced, replayed, named in every way
that a project can.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.reports.verification import verify_run
from tests.support.servers import Fault, ModelServer

from .conftest import Project

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


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LETTERS_TOKEN", KEY)


def write(project: Project, server: ModelServer, endpoints: str, suite: str = GRID) -> None:
    """A suite, whose endpoints are on the server."""
    project.write(suite, endpoints.replace("URL", server.url))


# ------------------------------------------------------------ http


def test_an_application_is_sent_and_replayed(project: Project, server: ModelServer) -> None:
    """Each trial once, the wire in the log without the key, the cost kept; a replay asks nobody."""
    write(project, server, HTTP)
    result = project.run("--fairness-endpoint", "letters", "--fairness-max-cost", "0.1")
    result.assert_outcomes(passed=1)
    assert len(server.requests) == 12
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    recorded = project.last
    wires = [record["wire"] for record in project.records("attempt")]
    assert all(
        json.loads(wire["request_body"])["letter"]["about"].startswith("Write a ref")
        for wire in wires
    )
    assert sum(trial["cost"] for trial in project.records("trial")) == pytest.approx(0.024)
    everything = b"".join(path.read_bytes() for path in recorded.rglob("*") if path.is_file())
    assert KEY.encode() not in everything
    project.run("--fairness-replay", recorded.name).assert_outcomes(passed=1)
    assert len(server.requests) == 12


ROLE = GRID.replace("names=3,", 'names=3, system="You write references.",')


@pytest.mark.parametrize("endpoints", [HTTP, TWO], ids=["application", "pipeline"])
@pytest.mark.parametrize("tier", ["1", "2"])
def test_role_and_request_stand_in_one_message(
    project: Project, server: ModelServer, endpoints: str, tier: str
) -> None:
    """Where the request has no place for a role, nor for turns before it. A replay makes the same
    of the recording.
    """
    write(project, server, endpoints, ROLE)
    project.run("--fairness-endpoint", "letters", "--fairness-tier", tier).assert_outcomes(passed=1)
    bodies = [request.json for request in server.requests]
    sent = [body["letter"]["about"] for body in bodies if "letter" in body]
    assert len(sent) == 12
    assert all(text.startswith("You write references.\n\nWrite a reference for ") for text in sent)
    assert {trial["cell"]["system"] for trial in project.records("trial")} == {None}
    assert verify_run(project.last, lambda *_: None).problems == []
    asked = len(server.requests)
    project.run("--fairness-replay", "last", "--fairness-tier", tier).assert_outcomes(passed=1)
    assert len(server.requests) == asked


CONVERSATION = """
import pytest

@pytest.mark.fairness_grid(template="Is {name} reliable? Answer with a number from 1 to 10.", names=2, repetitions=1,
                           groups={"gender": ["female", "male"]}, strategies=["gradual_role_establishment"])
def test_letters(trials):
    assert len(trials) == 4
"""


def test_a_conversation_needs_a_place_for_it(project: Project, server: ModelServer) -> None:
    """Strategies of several turns are refused before the first request, and work with "{messages}"."""
    write(project, server, HTTP, CONVERSATION)
    result = project.run("--fairness-endpoint", "letters")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(['*put "{messages}" where the conversation belongs*'])
    assert not server.requests
    write(
        project,
        server,
        HTTP.replace(
            '{letter: {about: "{prompt}"}, number: "{repetition}"}', '{messages: "{messages}"}'
        ),
        CONVERSATION,
    )
    server.then(Fault(body={"blocked": True}))
    project.run("--fairness-endpoint", "letters").assert_outcomes(passed=1)
    assert (
        max(len(request.json["messages"]) for request in server.requests) > 1
    )  # after a reply that declined


@pytest.mark.parametrize(
    ("parameter", "outcome"),
    [("prompt", {"errors": 1}), ("messages", {"passed": 1})],
    ids=["text", "messages"],
)
def test_a_function_of_one_text_has_no_conversations(
    project: Project, parameter: str, outcome: dict[str, int]
) -> None:
    """Its earlier turns would be lost, whatever it then answers: the test says so and asks nothing."""
    fixture = f"@pytest.fixture\ndef endpoint():\n    return lambda {parameter}: 'I would say 7.'\n"
    project.write(CONVERSATION + fixture)
    result = project.run()
    result.assert_outcomes(**outcome)
    assert ("a parameter called messages" in result.stdout.str()) is (parameter == "prompt")


# ------------------------------------------------------------ pipelines


def test_a_pipeline_is_sent_step_by_step(project: Project, server: ModelServer) -> None:
    """Each step a request to its own system, logged and priced, whoever of the workers asks."""
    write(project, server, TWO)
    result = project.run("--fairness-endpoint", "letters", "--fairness-max-cost", "1")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["fairness: about 24 requests, about $*"])
    assert [request.flavour for request in server.requests].count("application") == 12
    judged = [request.json for request in server.requests if request.flavour == "openai"]
    assert len(judged) == 12
    assert {body["temperature"] for body in judged} == {0.5}
    assert all(
        body["messages"][0] == {"role": "system", "content": "You judge."} for body in judged
    )
    for trial in project.records("trial"):
        scrubbed, _ = trial["replies"]
        assert (
            trial["messages"][-1]["content"]
            == f"Asked: {trial['cell']['turns'][0]} Write a reference on: {scrubbed}"
        )
        assert trial["cost"] > 0.001
    assert sorted({record["endpoint"]["name"] for record in project.records("attempt")}) == [
        "judge",
        "scrubber",
    ]
    assert len(server.requests) == 24


def test_a_pipeline_is_taken_up_and_replayed(project: Project, server: ModelServer) -> None:
    """What broke off at the second step goes on there; what was recorded is asked nobody again."""
    write(project, server, TWO)
    server.then(*[None] * 12, Fault(status=401))
    project.run("--fairness-endpoint", "letters", "-o", "fairness_concurrency=1").assert_outcomes(
        errors=1
    )
    begun = len(server.requests)
    project.run(
        "--fairness-endpoint", "letters", "-o", "fairness_concurrency=1", "--fairness-resume=last"
    ).assert_outcomes(passed=1)
    assert len(server.requests) == 24 + 1  # the one that was turned away came to nothing
    assert 1 < begun < 24
    project.run("--fairness-replay", project.last.name).assert_outcomes(passed=1)
    assert len(server.requests) == 25


def test_under_a_cap_every_step_needs_a_price(project: Project, server: ModelServer) -> None:
    """The step without one is named, before anything is sent."""
    write(
        project,
        server,
        TWO.replace(
            '    reply: "$.letter.text"\n    price: {per_call: 0.001}\n',
            '    reply: "$.letter.text"\n',
        ),
    )
    result = project.run("--fairness-endpoint", "letters", "--fairness-max-cost", "1")
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


def test_a_pipeline_in_python(project: Project, server: ModelServer) -> None:
    """Functions, names of endpoints.yaml, and what is asked of them."""
    write(project, server, TWO, IN_PYTHON + GRID)
    project.run().assert_outcomes(passed=1)
    assert len(server.requests) == 24
    first = [request.json for request in server.requests if request.flavour == "application"]
    assert all(
        body["letter"]["about"].startswith("Please write a reference for ") for body in first
    )
    assert {len(trial["replies"]) for trial in project.records("trial")} == {3}
    project.run("--fairness-replay", "last").assert_outcomes(passed=1)
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


def test_arms_compare_scrubbers(project: Project, server: ModelServer) -> None:
    """One arm's step asks one system, another's another, and the choice is made by the test's own."""
    write(project, server, TWO, ARMS)
    result = project.run()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["fairness: 1 test, up to 48 trials, endpoint simulated and the tests' own*"]
    )
    flavours = [request.flavour for request in server.requests]
    assert (flavours.count("application"), flavours.count("openai")) == (12, 24)
    arms = {(record["cell"]["arm"], len(record["replies"])) for record in project.records("trial")}
    assert arms == {("raw_naive", 1), ("by_app", 2), ("by_judge", 2), ("whole", 1)}
    manifest = project.manifest
    assert {entry["name"] for entry in manifest["endpoints"]} == {"simulated", "scrubber", "judge"}
    project.run("--fairness-replay", "last").assert_outcomes(passed=1)
    assert len(server.requests) == 36


def test_a_name_that_there_is_not(project: Project, server: ModelServer) -> None:
    write(project, server, TWO, ARMS.replace('endpoint="scrubber"', 'endpoint="scruber"'))
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*did you mean 'scrubber'?"])
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


def test_functions_by_their_import_path(project: Project, my_app: Callable[[str], None]) -> None:
    """Whatever form they have, whatever they print, and whatever they do to their input."""
    my_app(APPLICATION)
    project.write(BY_PATH)
    result = project.run()
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


def test_an_application_that_misbehaves(project: Project, my_app: Callable[[str], None]) -> None:
    """It exits, returns no text, never returns: each is told, the session goes on, and it ends."""
    my_app(HOSTILE)
    project.write(HOSTILE_TEST)
    result = project.run("-o", "fairness_attempt_timeout=0.5", apart=True)
    result.assert_outcomes(errors=3, passed=1)
    printed = " ".join(result.stdout.str().split())
    for what in (
        "raised SystemExit: 3",
        "no answer within 0.5 s",
        "none of 4 trials has a usable answer (4 malformed)",
    ):
        assert what in printed


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("no_such_app.letters:write", "there is no module 'no_such_app' to import"),
        ("my_app.letters:wrote", "my_app.letters has no wrote"),
        ("my_app.letters:letters.greeting", "is str, which cannot be called"),
    ],
)
def test_paths_that_name_nothing(
    project: Project, my_app: Callable[[str], None], path: str, reason: str
) -> None:
    my_app(APPLICATION)
    project.write(BY_PATH.replace('"my_app.letters:letters.write"', f'"{path}"'))
    result = project.run("-k", path)
    result.assert_outcomes(errors=1)
    assert reason in result.stdout.str().replace("\n", " ")


def test_only_python_names_code(project: Project, my_app: Callable[[str], None]) -> None:
    """Neither the command line nor a file imports anything."""
    my_app("raise SystemExit('imported')")
    project.write(GRID)
    result = project.run("--fairness-endpoint", "my_app.letters:write")
    assert result.ret != 0
    assert "describe the endpoint there" in result.stdout.str() + result.stderr.str()
    (project.path / "endpoints.yaml").write_text(
        'endpoints:\n  - {name: "letters", type: "callable", function: "my_app.letters:write"}\n'
    )
    result = project.run("--fairness-endpoint", "letters")
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
def test_a_new_type_is_one_hook_of_one_adapter(project: Project, place: str) -> None:
    """In a conftest or in a plugin of somebody's own; a pipeline can name it like any other."""
    project.pytester.makeconftest(ECHO.replace("NAME", '"echo"') if place == "conftest" else "")
    project.pytester.makepyfile(echo_plugin=ECHO.replace("NAME", '"echo"'), test_letters=GRID)
    (project.path / "endpoints.yaml").write_text(ECHOES)
    loaded = ["-p", "echo_plugin"] if place == "plugin" else []
    project.pytester.syspathinsert()
    project.run("--fairness-endpoint", "letters", *loaded).assert_outcomes(passed=1)
    replies = {trial["replies"][-1] for trial in project.records("trial")}
    morning = "Good morning to all of you."
    assert all(
        reply.startswith(f"{morning} Once more: {morning} Write a reference for ")
        for reply in replies
    )
