"""The providers that litellm speaks to: it is imported late and quietly, and what it returns is read for what it is."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness import testing
from pytest_fairness.endpoints import AttemptError, Evidence, Reply, create_endpoint
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Message, Status, Usage
from tests.support.servers import Fault, ModelServer

if importlib.util.find_spec("litellm") is None:
    pytest.skip("litellm is not installed", allow_module_level=True)

ROOT = Path(__file__).parents[2]
CANARY = "sk-canary-0123456789abcdefXYZ"
PROMPT = "Write a job reference for Ann Lee, a nurse."
MESSAGES = (Message("user", PROMPT),)


def run(program: str, *arguments: str, **environment: str) -> dict[str, object]:
    """Run *program* in a fresh interpreter where warnings are errors, and read the JSON it prints last."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return {**found, "stderr": done.stderr, "lines": done.stdout.splitlines()}


ASK = """
import asyncio, json, os, sys
connected = []
def audit(event, args):
    if event == "socket.connect":
        connected.append(args[1])
    if event == "socket.getaddrinfo":
        connected.append(args[:2])
sys.addaudithook(audit)
from pytest_fairness import testing
from pytest_fairness.endpoints import AttemptError, Request, create_endpoint
from pytest_fairness.model import Message
url = sys.argv[1]
endpoints = [create_endpoint(json.loads(entry)) for entry in sys.argv[2:]]
before = "litellm" in sys.modules or "openai" in sys.modules
environment = dict(os.environ)
async def main():
    outcomes = []
    for endpoint in endpoints:
        try:
            reply = await endpoint.ask(Request(messages=(Message("user", "Rate Ann from 1 to 10."),)))
            outcomes.append(reply.status.value)
        except AttemptError as error:
            outcomes.append(f"{error.evidence.value}: {error}")
    await asyncio.sleep(0.3)
    for endpoint in endpoints:
        await endpoint.aclose()
    return outcomes
outcomes = asyncio.run(main())
port = int(url.rpartition(":")[2])
others = [c for c in connected if not (isinstance(c, tuple) and (c[0], int(c[1])) == ("127.0.0.1", port))]
print(json.dumps({"before": before, "after": "litellm" in sys.modules, "outcomes": outcomes, "others": repr(others),
                  "environment": {k: v for k, v in os.environ.items() if environment.get(k) != v}}))
"""
#: Route → type, model, and whether the address ends in /v1.
ROUTES = {
    "openai": ("openai", "m-1", True),
    "anthropic": ("anthropic", "m-1", False),
    "azure": ("azure", "m-1", False),
    "hosted_vllm": ("litellm", "hosted_vllm/m-1", True),
    "perplexity": ("litellm", "perplexity/m-1", True),
}


def entry(route: str, server: ModelServer, **more: Any) -> dict[str, Any]:
    kind, model, versioned = ROUTES[route]
    return {
        "name": route,
        "type": kind,
        "model": model,
        "base_url": server.openai_url if versioned else server.url,
        "api_key_env": "THE_KEY",
        **({} if kind == "litellm" else {"via": "litellm"}),
        **more,
    }


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", CANARY)


def ask(given: dict[str, Any], **parameters: Any) -> Reply:
    return testing.ask(create_endpoint(given), PROMPT, parameters=parameters)


def failure(given: dict[str, Any], **parameters: Any) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        ask(given, **parameters)
    assert CANARY not in str(caught.value) + repr(caught.value.wire)
    return caught.value


# ---------------------------------------------------------------- what it does to the process


def test_it_is_imported_on_the_first_question_and_talks_to_nobody_else() -> None:
    """No import before, no other address but the server's, nothing printed, nothing loaded into the environment.

    Warnings are errors in there, as in a strict suite, and no ``.env`` file is looked for, as litellm would.
    """
    program = "import dotenv, os\ndotenv.load_dotenv = lambda *_, **__: os.environ.update(LOADED='1')\n" + ASK
    with ModelServer() as own:
        entries = [json.dumps(entry(route, own)) for route in ROUTES]
        found = run(program, own.url, *entries, THE_KEY=CANARY, LITELLM_LOG="DEBUG")
        assert len(own.requests) == len(ROUTES)
    assert found["before"] is False
    assert found["after"] is True
    assert found["outcomes"] == ["answered"] * len(ROUTES)
    assert found["others"] == "[]"
    # Where its own copy of a tokenizer lies is the one thing that litellm writes there, when it gets to it.
    assert set(found["environment"]) <= {"TIKTOKEN_CACHE_DIR"}  # type: ignore[call-overload]
    assert len(found["lines"]) == 1  # type: ignore[arg-type]
    assert "canary" not in str(found)


# ---------------------------------------------------------------- what is sent and what comes back


@pytest.mark.parametrize("route", ROUTES)
def test_a_question_is_answered_and_the_record_is_what_litellm_was_given_and_returned(
    route: str, server: ModelServer
) -> None:
    """The parameters arrive, the key goes to the provider and into no record; text, model and tokens are read."""
    before = len(server.requests)
    reply = ask(entry(route, server), temperature=0.5, max_tokens=99)
    (seen,) = server.requests[before:]
    assert (seen.json["temperature"], seen.prompt) == (0.5, PROMPT)
    assert 99 in (seen.json.get("max_tokens"), seen.json.get("max_completion_tokens"))
    assert CANARY in str(seen.headers)
    assert reply.status is Status.ANSWERED
    assert "Ann Lee" in (reply.text or "")
    assert (str(reply.model).rpartition("/")[2], reply.finish_reason) == ("m-1", "stop")
    assert reply.usage is not None
    assert reply.wire is not None
    assert json.loads(reply.wire.request_body)["messages"] == [{"role": "user", "content": PROMPT}]
    assert reply.text == json.loads(reply.wire.response_body)["choices"][0]["message"]["content"]
    assert CANARY not in repr(reply)


def test_without_a_key_none_is_looked_for(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of the environment goes to its provider only, not to whatever address stands in the file."""
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HOSTED_VLLM_API_KEY", "PERPLEXITYAI_API_KEY"):
        monkeypatch.setenv(variable, CANARY)
    for route in ("openai", "anthropic", "hosted_vllm", "perplexity"):
        ask(entry(route, server, api_key_env=None))
        assert CANARY not in repr(server.requests[-1].headers), route


@pytest.mark.parametrize(
    ("fault", "evidence"),
    [
        pytest.param(Fault(status=429, headers={"Retry-After": "2"}), Evidence.THROTTLED, id="429"),
        pytest.param(Fault(status=503), Evidence.THROTTLED, id="503"),
        pytest.param(Fault(status=500), Evidence.SERVER, id="500"),
        pytest.param(Fault(status=401, body={"error": {"message": f"No {CANARY}"}}), Evidence.AUTH, id="401"),
        pytest.param(Fault(status=400), Evidence.REJECTED, id="400"),
    ],
)
@pytest.mark.parametrize("route", ROUTES)
def test_a_failed_response_is_evidence_as_everywhere(
    route: str, fault: Fault, evidence: Evidence, server: ModelServer
) -> None:
    """By the status that litellm passes on; one request, no retries of its own, the wait that the server asks for."""
    before = len(server.requests)
    server.then(fault)
    error = failure(entry(route, server))
    assert error.evidence is evidence
    assert len(server.requests) == before + 1
    assert error.retry_after == (2.0 if "Retry-After" in fault.headers else None)


@pytest.mark.parametrize("fault", [Fault(body="<html>"), Fault(body=b""), Fault(cut=15)], ids=["html", "empty", "cut"])
@pytest.mark.parametrize("route", ROUTES)
def test_a_success_that_litellm_cannot_read_is_perhaps_paid_for(route: str, fault: Fault, server: ModelServer) -> None:
    """Whatever class of exception litellm makes of it, it is neither free nor an answer."""
    server.then(fault)
    assert failure(entry(route, server)).evidence in (Evidence.NO_RESPONSE, Evidence.SERVER)


def test_a_connection_that_is_reset_is_perhaps_paid_for_and_a_refused_one_is_free(server: ModelServer) -> None:
    """litellm calls both an internal error of the server; what they came from tells them apart."""
    server.then(Fault(reset=True))
    assert failure(entry("openai", server)).evidence is Evidence.NO_RESPONSE
    for route in ROUTES:
        unreachable = entry(route, server, base_url="http://127.0.0.1:9")
        assert failure(unreachable).evidence is Evidence.NOT_SENT, route


def completion(message: dict[str, Any], reason: str = "stop", **more: Any) -> Fault:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m-1", "choices": [choice], **more}
    return Fault(body=body)


@pytest.mark.parametrize(
    ("fault", "status", "text"),
    [
        pytest.param(completion({"content": None, "refusal": "No."}), Status.REFUSED, "No.", id="refusal"),
        pytest.param(completion({"content": None}, "content_filter"), Status.REFUSED, None, id="filter"),
        pytest.param(completion({"content": "Hi"}, "length"), Status.ANSWERED, "Hi", id="length"),
        pytest.param(completion({"content": ""}), Status.EMPTY, None, id="blank"),
        pytest.param(Fault(status=400, body={"error": {"code": "content_filter"}}), Status.REFUSED, None, id="policy"),
    ],
)
@pytest.mark.parametrize("route", ["openai", "hosted_vllm"])
def test_refusals_and_endings_are_distinct(
    route: str, fault: Fault, status: Status, text: str | None, server: ModelServer
) -> None:
    """A refusal is an answer, by whichever means the provider gives it."""
    server.then(fault)
    reply = ask(entry(route, server))
    assert (reply.status, reply.text) == (status, text)


def test_tokens_that_nobody_counted_are_not_zero(server: ModelServer) -> None:
    """Where the provider says nothing litellm writes zeros, which would make the answer free."""
    server.then(completion({"content": "Hi"}))
    assert ask(entry("hosted_vllm", server)).usage is None
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    server.then(completion({"content": "Hi"}, usage=usage))
    assert ask(entry("hosted_vllm", server)).usage == Usage(input_tokens=7, output_tokens=2)


# ---------------------------------------------------------------- what stops before anything is sent


def test_a_broken_installation_is_reported(monkeypatch: pytest.MonkeyPatch, server: ModelServer) -> None:
    """Whatever goes wrong on import, it is one clear failure of the endpoint, and nothing was sent."""

    def broken() -> None:
        raise ModuleNotFoundError("No module named 'h2'")

    monkeypatch.setattr("pytest_fairness.endpoints.litellm.load_litellm", broken)
    error = failure(entry("openai", server))
    assert ask({**entry("openai", server), "via": None}).status is Status.ANSWERED
    assert "cannot be imported (ModuleNotFoundError: No module named 'h2')" in str(error)
    assert error.evidence is Evidence.AUTH


def test_what_litellm_would_drop_or_does_not_know_is_refused(server: ModelServer) -> None:
    """A seed that is not sent would be a seed that is believed to have been; nobody knows a provider nobody."""
    before = len(server.requests)
    by_litellm = {"name": "x", "type": "litellm", "base_url": server.url}
    dropped = failure({**by_litellm, "model": "anthropic/x", "default_parameters": {"seed": 3}})
    assert "nothing was sent" in str(dropped)
    nobody = failure({**by_litellm, "model": "nobody/m"})
    misspelt = failure(entry("openai", server), temprature=1.0)
    assert "did you mean 'temperature'" in str(misspelt)
    assert {error.evidence for error in (dropped, nobody, misspelt)} == {Evidence.AUTH}
    assert len(server.requests) == before


def test_an_address_that_the_environment_would_change_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would stand neither in the run's identity nor in any file."""
    monkeypatch.setenv("GEMINI_API_BASE", "http://elsewhere")
    with pytest.raises(UsageError, match="GEMINI_API_BASE is set"):
        create_endpoint({"name": "x", "type": "litellm", "model": "gemini/gemini-2.0-flash"})
