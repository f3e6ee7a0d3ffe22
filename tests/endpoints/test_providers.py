"""Every provider that is spoken to directly, against a real server: what is sent, what is read,
what a fault is.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_fairness import testing
from pytest_fairness.endpoints import AttemptError, Evidence, Reply, Request, create_endpoint
from pytest_fairness.endpoints.openai import ChatEndpoint
from pytest_fairness.model import Message, Status, Usage
from tests.support.servers import Fault, ModelServer

CANARY = "sk-canary-0123456789abcdefXYZ"
PROMPT = "Write a job reference for Lakisha Washington, a nurse."
MESSAGES = (Message("system", "You are an evaluator."), Message("user", PROMPT))
TYPES = ("openai", "ollama", "anthropic", "azure")


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", CANARY)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")


def made(kind: str, server: ModelServer, **more: Any) -> ChatEndpoint:
    url = server.openai_url if kind == "openai" else server.url
    entry = {"name": kind, "type": kind, "model": "m-1", "base_url": url, "api_key_env": "THE_KEY"}
    endpoint = create_endpoint({**entry, "default_parameters": {"temperature": 0.5}, **more})
    assert isinstance(endpoint, ChatEndpoint)
    return endpoint


def ask(endpoint: ChatEndpoint, **request: Any) -> Reply:
    return testing.ask(
        endpoint, **{"messages": MESSAGES, "parameters": {"max_tokens": 99}, **request}
    )


def failure(endpoint: ChatEndpoint, **request: Any) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        ask(endpoint, **request)
    return caught.value


# ---------------------------------------------------------------- what is sent

USER: list[Any] = [{"role": "user", "content": PROMPT}]
OPENAI = {"messages": [{"role": "system", "content": "You are an evaluator."}, *USER]}
ANTHROPIC = {"messages": USER, "system": "You are an evaluator."}
PARAMETERS = {"temperature": 0.5, "max_tokens": 99}
#: Type → path, header of the key, what stands before the key, body.
SENT: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "openai": ("/v1/chat/completions", "authorization", "Bearer ", {**OPENAI, **PARAMETERS}),
    "azure": ("/openai/deployments/m-1/chat/completions", "api-key", "", {**OPENAI, **PARAMETERS}),
    "ollama": (
        "/api/chat",
        "authorization",
        "Bearer ",
        {**OPENAI, "stream": False, "options": {"temperature": 0.5, "num_predict": 99}},
    ),
    "anthropic": ("/v1/messages", "x-api-key", "", {**ANTHROPIC, **PARAMETERS}),
}


@pytest.mark.parametrize("kind", TYPES)
def test_one_question_is_one_request_whose_bytes_are_ours(kind: str, server: ModelServer) -> None:
    """Nothing is added to the request, nothing left out, nothing rewritten; the record equals the
    server's, without the key, which goes into the provider's header and nowhere else."""
    path, header, prefix, body = SENT[kind]
    before = len(server.requests)
    reply = ask(made(kind, server))
    (seen,) = server.requests[before:]
    assert (seen.path, seen.headers[header], seen.json) == (
        path,
        f"{prefix}{CANARY}",
        {"model": "m-1", **body},
    )
    assert (reply.status, reply.model) == (Status.ANSWERED, "m-1")
    assert "Lakisha Washington" in (reply.text or "")
    assert reply.usage is not None
    assert reply.wire is not None
    assert (reply.wire.request_body, reply.wire.status_code) == (seen.body.decode(), 200)
    assert reply.wire.response_body == seen.answer.decode()
    assert CANARY not in repr(reply)
    assert header not in reply.wire.request_headers
    ask(made(kind, server), messages=(Message("user", " "),))
    assert server.requests[-1].prompt == " "


def test_what_anthropic_and_azure_want_beside_it(server: ModelServer) -> None:
    """A version each; of Anthropic's parameters those that have another name there."""
    thinking = {"type": "enabled", "budget_tokens": 1024}
    parameters = {"stop": "END", "thinking": thinking}
    endpoint = made("anthropic", server, base_url=server.openai_url, default_parameters=parameters)
    ask(endpoint, parameters={})
    seen = server.requests[-1]
    assert (seen.path, seen.headers["anthropic-version"]) == ("/v1/messages", "2023-06-01")
    sent = {**ANTHROPIC, "stop_sequences": ["END"], "thinking": thinking, "max_tokens": 5120}
    assert seen.json == {"model": "m-1", **sent}
    reply = ask(made("azure", server))
    assert server.requests[-1].query == "api-version=2024-10-21"
    assert reply.wire is not None
    assert "?" not in reply.wire.url
    assert made("azure", server).identity()["api_version"] == "2024-10-21"


def test_without_a_key_none_is_looked_for(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key of the environment goes to its provider only, not to whatever address stands in the
    file.
    """
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, CANARY)
    for kind in ("openai", "anthropic", "ollama"):
        ask(made(kind, server, api_key_env=None))
        assert CANARY not in repr(server.requests[-1].headers), kind


@pytest.mark.parametrize(
    ("value", "why"), [("", "THE_KEY is not set"), ("sk-a b\nc12345678", "holds a space")]
)
def test_a_key_that_cannot_be_sent_stops_before_anything_is_sent(
    value: str, why: str, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable is named, its value is not; so does a parameter that is misspelt."""
    before = len(server.requests)
    misspelt = failure(made("openai", server), parameters={"temprature": 1.0})
    monkeypatch.setenv("THE_KEY", value)
    error = failure(made("openai", server))
    assert (error.evidence, misspelt.evidence) == (Evidence.AUTH, Evidence.AUTH)
    assert "did you mean 'temperature'" in str(misspelt)
    assert why in str(error)
    assert "c12345678" not in str(error)
    assert len(server.requests) == before


# ---------------------------------------------------------------- what is read


def read(kind: str, body: bytes) -> Reply:
    endpoint = create_endpoint(
        {"name": "x", "type": kind, "model": "m", "base_url": "http://127.0.0.1:9"}
    )
    assert isinstance(endpoint, ChatEndpoint)
    return endpoint.read(body)


def choice(message: object, reason: object = "stop", **more: object) -> bytes:
    return json.dumps(
        {"model": "m-1", "choices": [{"message": message, "finish_reason": reason}], **more}
    ).encode()


@pytest.mark.parametrize(
    ("body", "status", "text", "reason"),
    [
        (choice({"content": "Hi"}), Status.ANSWERED, "Hi", "stop"),
        (choice({"content": "<think>x</think>Hi"}), Status.ANSWERED, "<think>x</think>Hi", "stop"),
        (choice({"content": None, "refusal": "I won't."}), Status.REFUSED, "I won't.", "stop"),
        (choice({"content": "Hi", "refusal": ""}), Status.ANSWERED, "Hi", "stop"),
        (choice({"content": "part"}, "content_filter"), Status.REFUSED, "part", "content_filter"),
        (choice({"content": None}, "tool_calls"), Status.EMPTY, None, "tool_calls"),
        (choice({"content": " \n"}), Status.EMPTY, None, "stop"),
        (choice({}), Status.EMPTY, None, "stop"),
        (choice("Hi"), Status.MALFORMED, None, None),
        (b'{"choices": [3]}', Status.MALFORMED, None, None),
        (b'{"error": {"message": "overloaded", "code": "overloaded"}}', Status.ERROR, None, None),
        (b"null", Status.MALFORMED, None, None),
        (b"[]", Status.MALFORMED, None, None),
        (b'data: {"choices": []}\n\n', Status.MALFORMED, None, None),
        (b"\xff\xfe\xfd", Status.MALFORMED, None, None),
        (b"[" * 100_000, Status.MALFORMED, None, None),
        (b'{"choices": ' + b"9" * 5000 + b"}", Status.MALFORMED, None, None),
        (b"\xef\xbb\xbf" + choice({"content": "Hi"}), Status.ANSWERED, "Hi", "stop"),
    ],
)
def test_any_body_is_read_for_what_it_is(
    body: bytes, status: Status, text: str | None, reason: str | None
) -> None:
    """Total on any bytes: an answer only where there is one, the finish reason as the provider gave
    it.
    """
    reply = read("openai", body)
    assert (reply.status, reply.text, reply.finish_reason) == (status, text, reason)
    assert (reply.error is None) == (status in (Status.ANSWERED, Status.REFUSED))


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4}, Usage(input_tokens=3, output_tokens=4)),
        ({"prompt_tokens": 3}, Usage(input_tokens=3, output_tokens=None)),
        ({"prompt_tokens": -3, "completion_tokens": "4"}, None),
        (
            {"prompt_tokens": 1e12, "completion_tokens": 0},
            Usage(input_tokens=10**12, output_tokens=0),
        ),
        ({"prompt_tokens": True, "completion_tokens": 1.5}, None),
        (None, None),
        ("many", None),
    ],
)
def test_usage_that_is_no_count_is_unknown_not_free(usage: object, expected: Usage | None) -> None:
    """Missing, negative or textual counts are None, so that they are charged at their worst case."""
    assert read("openai", choice({"content": "Hi"}, usage=usage)).usage == expected


def anthropic(content: object, reason: str = "end_turn") -> bytes:
    """Of 125 tokens of input, 120 pass the provider's cache, which the API counts apart."""
    cache = {"cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}
    usage = {"input_tokens": 5, **cache, "output_tokens": 2}
    return json.dumps(
        {"model": "c", "content": content, "stop_reason": reason, "usage": usage}
    ).encode()


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (
            anthropic([{"type": "text", "text": "Hi "}, {"type": "text", "text": "there"}]),
            Status.ANSWERED,
            "Hi there",
        ),
        (
            anthropic([{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "Hi"}]),
            Status.ANSWERED,
            "Hi",
        ),
        (anthropic([{"type": "text", "text": "No."}], "refusal"), Status.REFUSED, "No."),
    ],
)
def test_answers_of_anthropic_are_read_off_the_bytes(
    body: bytes, status: Status, text: str | None
) -> None:
    """Text blocks joined, thinking left out, a refusal is one; what was read from a cache was sent,
    and is paid for.
    """
    reply = read("anthropic", body)
    assert (reply.status, reply.text) == (status, text)
    assert reply.usage == Usage(input_tokens=125, output_tokens=2)


def test_answers_of_ollama_are_read() -> None:
    """The message's content, the counts, the reason."""
    body = {
        "model": "q",
        "message": {"content": "Hi"},
        "done_reason": "stop",
        "prompt_eval_count": 2,
        "eval_count": 3,
    }
    reply = read("ollama", json.dumps(body).encode())
    assert (reply.text, reply.usage, reply.model) == (
        "Hi",
        Usage(input_tokens=2, output_tokens=3),
        "q",
    )
    assert read("ollama", b'{"error": "model not found"}').status is Status.ERROR


def test_a_packed_body_that_was_not_requested_is_read(server: ModelServer) -> None:
    """And recorded unpacked; bytes that are no text are recorded as they came."""
    packed = Fault(
        body=gzip.compress(choice({"content": "Hi"})), headers={"Content-Encoding": "gzip"}
    )
    server.then(packed, Fault(body=b"\xff", headers={"Content-Encoding": "br"}))
    assert ask(made("openai", server)).text == "Hi"
    reply = ask(made("openai", server))
    assert reply.status is Status.MALFORMED
    assert reply.wire is not None
    assert reply.wire.response_body == "\udcff"


@pytest.mark.parametrize("kind", TYPES)
def test_nobody_listening_is_not_sent(kind: str, server: ModelServer) -> None:
    """A refused connection cost nothing and says so."""
    error = failure(made(kind, server, base_url="http://127.0.0.1:9"))
    assert error.evidence is Evidence.NOT_SENT
    assert "refuses connections: is the server running?" in str(error)
    assert CANARY not in str(error)


def test_no_more_connections_than_allowed_and_all_of_them_used() -> None:
    """Concurrency is the connection limit: never exceeded, and reached; also in a second event
    loop.
    """
    with ModelServer(latency=0.05) as server:
        entry = {"name": "m", "type": "openai", "model": "m", "base_url": server.openai_url}
        endpoint = create_endpoint(entry, concurrency=7)

        async def many() -> None:
            await asyncio.gather(
                *(endpoint.ask(Request(messages=MESSAGES, repetition=n)) for n in range(21))
            )
            await endpoint.aclose()

        for _ in range(2):
            asyncio.run(many())
        begun = [request.time for request in server.requests]
        assert max(sum(start <= one < start + 0.05 for one in begun) for start in begun) == 7
        assert len(begun) == 42
