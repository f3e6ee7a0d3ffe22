"""The providers that litellm speaks to: it is imported late and quietly, and what it returns is
read for what it is.

Its import takes seconds, so that one interpreter asks all the questions; each has a mark in its
prompt, by which the server knows what to make of it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_fairness import testing
from pytest_fairness.endpoints import AttemptError, Evidence, create_endpoint
from pytest_fairness.errors import UsageError
from tests.support.servers import Fault, ModelServer, Received
from tests.support.shared_sessions import made_once, shared_folder

if importlib.util.find_spec("litellm") is None:
    pytest.skip("litellm is not installed", allow_module_level=True)

CANARY, OF_THE_ENVIRONMENT = "sk-canary-0123456789abcdefXYZ", "sk-strange-0123456789abcdefXYZ"

#: Asks each case of (entry, prompt, parameters), in an interpreter where warnings are errors.
PROGRAM = """
import asyncio, dataclasses, json, os, sys, dotenv
dotenv.load_dotenv = lambda *_, **__: os.environ.update(LOADED='1')
connected = []
def audit(event, args):
    if event == "socket.connect":
        connected.append(args[1])
    if event == "socket.getaddrinfo":
        connected.append(args[:2])
sys.addaudithook(audit)
from pytest_fairness.endpoints import AttemptError, Request, create_endpoint
from pytest_fairness.model import Message
port, cases = json.load(sys.stdin)
before = "litellm" in sys.modules or "openai" in sys.modules
environment = dict(os.environ)
async def ask(entry, prompt, parameters):
    endpoint = create_endpoint(entry)
    try:
        reply = await endpoint.ask(Request(messages=(Message("user", prompt),), parameters=parameters))
        return dataclasses.asdict(reply)
    except AttemptError as error:
        return {"failure": str(error), "evidence": error.evidence, "wait": error.retry_after, "wire": repr(error.wire)}
    finally:
        await endpoint.aclose()
found = {name: asyncio.run(ask(*case)) for name, case in cases.items()}
asyncio.run(asyncio.sleep(0.3))
ours = ("127.0.0.1", port), ("127.0.0.1", 9)
others = [c for c in connected if not (isinstance(c, tuple) and (c[0], int(c[1])) in ours)]
print(json.dumps({"before": before, "after": "litellm" in sys.modules, "found": found, "others": repr(others),
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


def entry(route: str, url: str, **more: Any) -> dict[str, Any]:
    kind, model, versioned = ROUTES[route]
    base_url = f"{url}/v1" if versioned else url
    via = {} if kind == "litellm" else {"via": "litellm"}
    given = {
        "name": route,
        "type": kind,
        "model": model,
        "base_url": base_url,
        "api_key_env": "THE_KEY",
    }
    return {**given, **via, **more}


def completion(message: dict[str, Any], reason: str = "stop", **more: Any) -> Fault:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    body = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-1",
        "choices": [choice],
        **more,
    }
    return Fault(body=body)


FAILED = {
    "429": (Fault(status=429, headers={"Retry-After": "2"}), "throttled"),
    "503": (Fault(status=503), "throttled"),
    "500": (Fault(status=500), "server"),
    "401": (Fault(status=401, body={"error": {"message": f"No {CANARY}"}}), "auth"),
    "400": (Fault(status=400), "rejected"),
}
BROKEN = {"html": Fault(body="<html>"), "nothing": Fault(body=b""), "cut": Fault(cut=15)}
ENDINGS = {
    "refusal": (completion({"content": None, "refusal": "No."}), "refused", "No."),
    "filter": (completion({"content": None}, "content_filter"), "refused", None),
    "length": (completion({"content": "Hi"}, "length"), "answered", "Hi"),
    "blank": (completion({"content": ""}), "empty", None),
    "policy": (Fault(status=400, body={"error": {"code": "content_filter"}}), "refused", None),
}
USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
FAULTS = {
    **{name: fault for name, (fault, _) in FAILED.items()},
    **BROKEN,
    **{name: fault for name, (fault, _, _) in ENDINGS.items()},
    "uncounted": completion({"content": "Hi"}),
    "counted": completion({"content": "Hi"}, usage=USAGE),
    "reset": Fault(reset=True),
}
KEYLESS = ("openai", "anthropic", "hosted_vllm", "perplexity")


class Session(NamedTuple):
    facts: dict[str, Any]
    seen: dict[str, list[Received]]
    stdout: str

    def of(self, name: str) -> Any:
        return self.facts["found"][name]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """What came of all cases, which are asked once whichever workers look at them."""
    return made_once(shared_folder(tmp_path_factory), "asked_by_litellm", asked)


def asked() -> Session:
    with ModelServer() as server:
        server.meet = lambda body: next(
            (fault for name, fault in FAULTS.items() if f"[{name} " in body), None
        )
        cases: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        for route in ROUTES:
            given = entry(route, server.url)
            cases[f"answered {route}"] = given, {"temperature": 0.5, "max_tokens": 99}
            cases |= {f"{name} {route}": (given, {}) for name in (*FAILED, *BROKEN)}
            cases[f"unreachable {route}"] = (
                entry(route, server.url, base_url="http://127.0.0.1:9"),
                {},
            )
        for route in KEYLESS:
            cases[f"keyless {route}"] = entry(route, server.url, api_key_env=None), {}
        for route in ("openai", "hosted_vllm"):
            cases |= {f"{name} {route}": (entry(route, server.url), {}) for name in ENDINGS}
        for name in ("uncounted", "counted"):
            cases[f"{name} hosted_vllm"] = entry("hosted_vllm", server.url), {}
        by_litellm = {"name": "x", "type": "litellm", "base_url": server.url}
        cases["dropped x"] = (
            {**by_litellm, "model": "anthropic/x", "default_parameters": {"seed": 3}},
            {},
        )
        cases["unknown x"] = {**by_litellm, "model": "nobody/m"}, {}
        cases["misspelt openai"] = entry("openai", server.url), {"temprature": 1.0}
        cases["reset openai"] = entry("openai", server.url), {}
        marked = {
            name: (given, f"Rate Ann Lee. [{name}]", more) for name, (given, more) in cases.items()
        }
        keys = (
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "HOSTED_VLLM_API_KEY",
            "PERPLEXITYAI_API_KEY",
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM],
            input=json.dumps([server.port, marked]),
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[2],
            env={
                **os.environ,
                **dict.fromkeys(keys, OF_THE_ENVIRONMENT),
                "THE_KEY": CANARY,
                "LITELLM_LOG": "DEBUG",
            },
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        seen = {
            name: [one for one in server.requests if f"[{name}]" in one.prompt] for name in cases
        }
        return Session(json.loads(done.stdout.splitlines()[-1]), seen, done.stdout)


def test_it_is_imported_on_the_first_question_and_talks_to_nobody_else(session: Session) -> None:
    """No import before, no other address but the server's, nothing printed, nothing loaded into the
    environment.

    Warnings are errors in there, as in a strict suite, and no ``.env`` file is looked for, as
    litellm would.
    """
    assert (session.facts["before"], session.facts["after"], session.facts["others"]) == (
        False,
        True,
        "[]",
    )
    # Where its own copy of a tokenizer lies is the one thing that litellm writes there, when it
    # gets to it.
    assert set(session.facts["environment"]) <= {"TIKTOKEN_CACHE_DIR"}
    assert len(session.stdout.splitlines()) == 1
    assert "canary" not in session.stdout


@pytest.mark.parametrize("route", ROUTES)
def test_the_record_of_an_answer_is_what_litellm_was_given_and_returned(
    session: Session, route: str
) -> None:
    """The parameters arrive, the key goes to the provider and into no record; text, model and
    tokens are read.
    """
    reply, (seen,) = session.of(f"answered {route}"), session.seen[f"answered {route}"]
    assert seen.json["temperature"] == 0.5
    assert 99 in (seen.json.get("max_tokens"), seen.json.get("max_completion_tokens"))
    assert CANARY in str(seen.headers)
    assert reply["status"] == "answered"
    assert (str(reply["model"]).rpartition("/")[2], reply["finish_reason"]) == ("m-1", "stop")
    assert reply["usage"] is not None
    assert json.loads(reply["wire"]["request_body"])["messages"] == [
        {"role": "user", "content": seen.prompt}
    ]
    assert (
        reply["text"]
        == json.loads(reply["wire"]["response_body"])["choices"][0]["message"]["content"]
    )


@pytest.mark.parametrize("route", KEYLESS)
def test_without_a_key_none_is_looked_for(session: Session, route: str) -> None:
    """A key of the environment goes to its provider only, not to whatever address stands in the
    file.
    """
    (seen,) = session.seen[f"keyless {route}"]
    assert OF_THE_ENVIRONMENT not in repr(seen.headers)


@pytest.mark.parametrize("route", ROUTES)
def test_what_fails_is_evidence_as_everywhere(session: Session, route: str) -> None:
    """By the status that litellm passes on; one request, no retries of its own, the wait that the
    server asks for. A success that litellm cannot read is perhaps paid for, whatever class of
    exception litellm makes of it; a refused connection is free.
    """
    for name, (fault, evidence) in FAILED.items():
        found = session.of(f"{name} {route}")
        assert (found["evidence"], len(session.seen[f"{name} {route}"])) == (evidence, 1), name
        assert found["wait"] == (2.0 if "Retry-After" in fault.headers else None)
    for name in BROKEN:
        assert session.of(f"{name} {route}")["evidence"] in ("no_response", "server"), name
    assert session.of(f"unreachable {route}")["evidence"] == "not_sent"


def test_a_connection_that_is_reset_is_perhaps_paid_for(session: Session) -> None:
    """litellm calls it, as a refused one, an internal error of the server; what they came from
    tells them apart.
    """
    assert session.of("reset openai")["evidence"] == "no_response"


@pytest.mark.parametrize("route", ["openai", "hosted_vllm"])
def test_refusals_and_endings_are_distinct(session: Session, route: str) -> None:
    """A refusal is an answer, by whichever means the provider gives it."""
    for name, (_, status, text) in ENDINGS.items():
        reply = session.of(f"{name} {route}")
        assert (reply["status"], reply["text"]) == (status, text), name


def test_tokens_that_nobody_counted_are_not_zero(session: Session) -> None:
    """Where the provider says nothing litellm writes zeros, which would make the answer free."""
    assert session.of("uncounted hosted_vllm")["usage"] is None
    assert session.of("counted hosted_vllm")["usage"] == {"input_tokens": 7, "output_tokens": 2}


# ---------------------------------------------------------------- what stops before anything is sent


def test_what_litellm_would_drop_or_does_not_know_is_refused(session: Session) -> None:
    """A seed that is not sent would be a seed that is believed to have been; nobody knows a
    provider nobody.
    """
    assert "nothing was sent" in session.of("dropped x")["failure"]
    assert "did you mean 'temperature'" in session.of("misspelt openai")["failure"]
    for name in ("dropped x", "unknown x", "misspelt openai"):
        assert (session.of(name)["evidence"], session.seen[name]) == ("auth", [])


def test_a_broken_installation_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong on import, it is one clear failure of the endpoint, and nothing was sent."""

    def broken() -> None:
        raise ModuleNotFoundError("No module named 'h2'")

    monkeypatch.setenv("THE_KEY", CANARY)
    monkeypatch.setattr("pytest_fairness.endpoints.litellm.load_litellm", broken)
    with pytest.raises(
        AttemptError, match=r"cannot be imported \(ModuleNotFoundError: No module named 'h2'\)"
    ) as caught:
        testing.ask(create_endpoint(entry("openai", "http://127.0.0.1:9")))
    assert caught.value.evidence is Evidence.AUTH


def test_an_address_that_the_environment_would_change_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would stand neither in the run's identity nor in any file."""
    monkeypatch.setenv("GEMINI_API_BASE", "http://other")
    with pytest.raises(UsageError, match="GEMINI_API_BASE is set"):
        create_endpoint({"name": "x", "type": "litellm", "model": "gemini/gemini-2.0-flash"})
