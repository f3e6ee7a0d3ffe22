"""Every type of endpoint against a real server: what is sent, what is made of each fault, one request a question."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_fairness.endpoints import AttemptError, Endpoint, Evidence, Reply, Request, create_endpoint
from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.model import JSON, Message, Status
from tests.support.servers import Fault, ModelServer, Received

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


def entry(kind: str, server: ModelServer, **more: Any) -> dict[str, Any]:
    return {
        "name": kind,
        "type": kind,
        "model": "m-1",
        "base_url": server.openai_url if kind == "openai" else server.url,
        "api_key_env": "THE_KEY",
        "default_parameters": {"temperature": 0.5},
        **more,
    }


def ask(endpoint: Endpoint, request: Request | None = None) -> Reply:
    async def once() -> Reply:
        try:
            return await endpoint.ask(request or Request(messages=MESSAGES, parameters={"max_tokens": 99}))
        finally:
            await endpoint.aclose()

    return asyncio.run(once())


def exchange(kind: str, server: ModelServer, *faults: Fault) -> tuple[Reply | AttemptError, list[Received]]:
    """What one question came to, and what the server saw of it."""
    before = len(server.requests)
    server.then(*faults)
    try:
        outcome: Reply | AttemptError = ask(create_endpoint(entry(kind, server)))
    except AttemptError as error:
        outcome = error
    return outcome, server.requests[before:]


# ---------------------------------------------------------------- a good answer


@pytest.mark.parametrize("kind", TYPES)
def test_one_question_is_one_request_and_comes_back_verbatim(kind: str, server: ModelServer) -> None:
    """The system prompt, the prompt and the parameters arrive; the wire's record equals the server's."""
    reply, seen = exchange(kind, server)
    assert isinstance(reply, Reply)
    assert len(seen) == 1
    assert reply.status is Status.ANSWERED
    assert "Lakisha Washington" in (reply.text or "")
    assert reply.model == "m-1"
    assert reply.usage is not None
    assert reply.wire is not None
    assert reply.wire.request_body == seen[0].body.decode()
    assert reply.wire.status_code == 200
    assert reply.text in json.dumps(json.loads(reply.wire.response_body), ensure_ascii=False).replace("\\n", "\n")
    body = seen[0].json
    said = json.dumps(body)
    assert seen[0].prompt == PROMPT
    assert "You are an evaluator." in said
    options = body.get("options", body)
    assert options["temperature"] == 0.5
    assert 99 in (options.get("max_tokens"), options.get("num_predict"), options.get("max_completion_tokens"))


@pytest.mark.parametrize(
    ("kind", "path", "header", "value"),
    [
        ("openai", "/v1/chat/completions", "authorization", f"Bearer {CANARY}"),
        ("ollama", "/api/chat", "authorization", f"Bearer {CANARY}"),
        ("anthropic", "/v1/messages", "x-api-key", CANARY),
        ("azure", "/openai/deployments/m-1/chat/completions", "api-key", CANARY),
    ],
)
def test_each_type_uses_its_own_path_and_key_header(
    kind: str, path: str, header: str, value: str, server: ModelServer
) -> None:
    """As the provider's documentation has it; the key goes there and nowhere else."""
    reply, seen = exchange(kind, server)
    assert isinstance(reply, Reply)
    assert seen[0].path == path
    assert seen[0].headers[header] == value
    assert CANARY not in repr(reply)
    assert reply.wire is not None
    assert header not in reply.wire.request_headers


USER: list[JSON] = [{"role": "user", "content": PROMPT}]
BOTH: list[JSON] = [{"role": "system", "content": "You are an evaluator."}, *USER]
SENT: dict[str, dict[str, JSON]] = {
    "openai": {"model": "m-1", "messages": BOTH, "temperature": 0.5, "max_tokens": 99},
    "azure": {"model": "m-1", "messages": BOTH, "temperature": 0.5, "max_tokens": 99},
    "ollama": {
        "model": "m-1",
        "messages": BOTH,
        "stream": False,
        "options": {"temperature": 0.5, "num_predict": 99},
    },
    "anthropic": {
        "model": "m-1",
        "system": "You are an evaluator.",
        "messages": USER,
        "temperature": 0.5,
        "max_tokens": 99,
    },
}


@pytest.mark.parametrize("kind", TYPES)
def test_the_bytes_that_are_sent_are_ours(kind: str, server: ModelServer) -> None:
    """Nothing is added to the request, nothing left out, nothing rewritten: not even a prompt without a text."""
    _, seen = exchange(kind, server)
    assert seen[0].json == SENT[kind]
    before = len(server.requests)
    ask(create_endpoint(entry(kind, server)), Request(messages=(Message("user", " "),)))
    assert server.requests[before].prompt == " "


def test_what_anthropic_and_azure_want_beside_it(server: ModelServer) -> None:
    """A version each; of Anthropic's parameters those that have another name there."""
    _, seen = exchange("anthropic", server)
    assert seen[0].headers["anthropic-version"] == "2023-06-01"
    parameters = {"stop": "END", "reasoning_effort": "low"}
    endpoint = create_endpoint(entry("anthropic", server, base_url=server.openai_url, default_parameters=parameters))
    ask(endpoint, Request(messages=MESSAGES))
    assert server.requests[-1].path == "/v1/messages"
    assert server.requests[-1].json == {
        "model": "m-1",
        "system": "You are an evaluator.",
        "messages": USER,
        "stop_sequences": ["END"],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "max_tokens": 5120,
    }
    with pytest.raises(AttemptError, match="reasoning_effort must be one of"):
        ask(endpoint, Request(messages=MESSAGES, parameters={"reasoning_effort": "vast"}))
    reply, seen = exchange("azure", server)
    assert seen[0].query == "api-version=2024-10-21"
    assert isinstance(reply, Reply)
    assert reply.wire is not None
    assert "?" not in reply.wire.url
    assert create_endpoint(entry("azure", server)).identity()["api_version"] == "2024-10-21"


def test_without_a_key_none_is_looked_for(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of the environment goes to its provider only, not to whatever address stands in the file."""
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, CANARY)
    for kind in ("openai", "anthropic", "ollama"):
        ask(create_endpoint(entry(kind, server, api_key_env=None)))
        assert CANARY not in repr(server.requests[-1].headers), kind


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_key_that_is_not_set_or_cannot_be_sent_is_told_before_anything_is_sent(
    kind: str, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable is named, its value is not."""
    for value, said in (("", "THE_KEY is not set"), ("sk-a b\nc12345678", "holds a space")):
        monkeypatch.setenv("THE_KEY", value)
        error, seen = exchange(kind, server)
        assert isinstance(error, AttemptError)
        assert error.evidence is Evidence.AUTH
        assert said in str(error)
        assert "c12345678" not in str(error)
        assert seen == []


@pytest.mark.parametrize("kind", TYPES)
def test_a_misspelt_parameter_is_refused_before_anything_is_sent(kind: str, server: ModelServer) -> None:
    """Also one that comes with the request."""
    before = len(server.requests)
    with pytest.raises(AttemptError, match="did you mean 'temperature'") as refused:
        ask(create_endpoint(entry(kind, server)), Request(messages=MESSAGES, parameters={"temprature": 1.0}))
    assert refused.value.evidence is Evidence.AUTH
    assert len(server.requests) == before


# ---------------------------------------------------------------- faults


FAULTS = {
    "429": (Fault(status=429, headers={"Retry-After": "2"}), Evidence.THROTTLED),
    "quota": (Fault(status=429, body={"error": {"code": "insufficient_quota", "message": "no"}}), Evidence.AUTH),
    "503": (Fault(status=503), Evidence.THROTTLED),
    "529": (Fault(status=529), Evidence.THROTTLED),
    "500": (Fault(status=500), Evidence.SERVER),
    "502": (Fault(status=502), Evidence.SERVER),
    "401": (Fault(status=401, body={"error": {"message": f"Incorrect key {CANARY}"}}), Evidence.AUTH),
    "404": (Fault(status=404), Evidence.AUTH),
    "400": (Fault(status=400), Evidence.REJECTED),
    "422": (Fault(status=422), Evidence.REJECTED),
    "redirect": (Fault(status=307, headers={"Location": "http://127.0.0.1:9/elsewhere"}), Evidence.AUTH),
    "reset": (Fault(reset=True), Evidence.NO_RESPONSE),
    "cut": (Fault(cut=15), Evidence.PARTIAL),
    "cut-503": (Fault(status=503, cut=5), Evidence.THROTTLED),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", TYPES)
def test_each_fault_is_classified_by_what_went_over_the_wire(kind: str, fault: str, server: ModelServer) -> None:
    """The evidence is right, the request was sent once, and no key is in the error or its record."""
    scripted, evidence = FAULTS[fault]
    error, seen = exchange(kind, server, scripted)
    assert isinstance(error, AttemptError), error
    assert error.evidence is evidence
    assert len(seen) == 1
    assert error.wire is not None
    assert CANARY not in str(error) + repr(error.wire)
    assert error.retry_after == (2.0 if fault == "429" else None)
    if evidence is Evidence.PARTIAL:
        assert error.wire.truncated
        assert len(error.wire.response_body) == 15
    if fault == "redirect":
        assert "not followed" in str(error)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b"", Status.MALFORMED, id="no-body"),
        pytest.param("<html>sorry</html>", Status.MALFORMED, id="html"),
        pytest.param("{broken", Status.MALFORMED, id="bad-json"),
        pytest.param(b"\xff\xfe\x00", Status.MALFORMED, id="bad-utf8"),
        pytest.param("null", Status.MALFORMED, id="null"),
        pytest.param("[" * 50_000, Status.MALFORMED, id="deep"),
        pytest.param('{"n": ' + "9" * 5000 + "}", Status.MALFORMED, id="huge-number"),
        pytest.param({"error": {"message": "overloaded"}}, Status.ERROR, id="error-in-200"),
    ],
)
@pytest.mark.parametrize("kind", TYPES)
def test_an_unusable_success_is_an_outcome_and_not_an_answer(
    kind: str, body: Any, status: Status, server: ModelServer
) -> None:
    """It was paid for: recorded as it came, classed, never asked again, never scored."""
    reply, seen = exchange(kind, server, Fault(body=body))
    assert isinstance(reply, Reply), reply
    assert (reply.status, reply.text) == (status, None)
    assert reply.error
    assert len(seen) == 1
    assert reply.wire is not None
    sent = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    assert reply.wire.response_body.encode("utf-8", "surrogateescape") == sent


def completion(message: dict[str, Any], reason: Any = "stop") -> dict[str, Any]:
    return {"model": "m-1", "choices": [{"message": message, "finish_reason": reason}]}


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        pytest.param(Fault(body=completion({"content": None, "refusal": "No."})), Status.REFUSED, "stop", id="field"),
        pytest.param(
            Fault(body=completion({"content": ""}, "content_filter")), Status.REFUSED, "content_filter", id="filter"
        ),
        pytest.param(Fault(body=completion({"content": "Hi"}, "length")), Status.ANSWERED, "length", id="length"),
        pytest.param(Fault(body=completion({"content": "Hi"}, "ERROR")), Status.ANSWERED, "ERROR", id="unknown"),
        pytest.param(Fault(body=completion({"content": "Hi"}, None)), Status.ANSWERED, None, id="null"),
        pytest.param(Fault(body={"choices": []}), Status.EMPTY, None, id="no-choices"),
        pytest.param(Fault(body=completion({"content": 3})), Status.MALFORMED, "stop", id="number"),
        pytest.param(Fault(body=completion({"content": ["a"]})), Status.MALFORMED, "stop", id="list"),
        pytest.param(
            Fault(status=400, body={"error": {"code": "content_filter", "message": "policy"}}),
            Status.REFUSED,
            "content_filter",
            id="policy-400",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["openai", "azure"])
def test_finish_reasons_and_refusals_are_the_providers_own(
    kind: str, fault: Fault, status: Status, reason: str | None, server: ModelServer
) -> None:
    """Also one that nobody knows."""
    reply, _ = exchange(kind, server, fault)
    assert isinstance(reply, Reply)
    assert (reply.status, reply.finish_reason) == (status, reason)


def test_a_simulated_refusal_arrives_as_one() -> None:
    """What refuses on the server's side is refused here, by the provider's own means."""
    with ModelServer(simulated_endpoint(refusal_rate=1.0)) as server:
        for kind in ("openai", "anthropic", "azure"):
            reply, _ = exchange(kind, server)
            assert isinstance(reply, Reply)
            assert reply.status is Status.REFUSED, kind
            assert reply.text


@pytest.mark.parametrize("kind", TYPES)
def test_a_body_without_end_is_cut_at_the_limit(kind: str, server: ModelServer) -> None:
    """Plain or packed: no more is kept than the limit, and the record says so."""
    bomb = Fault(body=gzip.compress(b"x" * 30_000_000), headers={"Content-Encoding": "gzip"})
    for fault in (Fault(body="x" * 3_000_000), bomb):
        endpoint = create_endpoint(entry(kind, server))
        endpoint._sender._max_response_bytes = 5000  # type: ignore[attr-defined]
        server.then(fault)
        reply = ask(endpoint)
        assert reply.status is Status.MALFORMED
        assert "longer than" in (reply.error or "")
        assert reply.wire is not None
        assert reply.wire.truncated
        assert len(reply.wire.response_body) == 5000


def test_a_packed_body_that_was_not_asked_for_is_read(server: ModelServer) -> None:
    """And recorded unpacked."""
    packed = gzip.compress(json.dumps(completion({"content": "Hi"})).encode())
    reply, _ = exchange("openai", server, Fault(body=packed, headers={"Content-Encoding": "gzip"}))
    assert isinstance(reply, Reply)
    assert reply.text == "Hi"
    reply, _ = exchange("openai", server, Fault(body=b"x", headers={"Content-Encoding": "br"}))
    assert isinstance(reply, Reply)
    assert reply.status is Status.MALFORMED


@pytest.mark.parametrize("kind", ["openai", "ollama", "anthropic", "azure"])
def test_nobody_listening_is_not_sent(kind: str, server: ModelServer) -> None:
    """A refused connection cost nothing and says so."""
    with ModelServer() as closed:
        address = closed.url
    with pytest.raises(AttemptError) as refused:
        ask(create_endpoint(entry(kind, server, base_url=address)))
    assert refused.value.evidence is Evidence.NOT_SENT
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize("kind", ["openai", "anthropic", "azure"])
@pytest.mark.parametrize("fault", [Fault(hang=True), Fault(drip=0.05)], ids=["hangs", "drips"])
def test_a_deadline_cuts_every_attempt_sharp(kind: str, fault: Fault, server: ModelServer) -> None:
    """The engine's deadline holds against a server that never answers, and one that answers a byte at a time."""

    async def once() -> float:
        endpoint = create_endpoint(entry(kind, server))
        await endpoint.ask(Request(messages=MESSAGES))
        server.then(fault)
        start = time.perf_counter()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(endpoint.ask(Request(messages=MESSAGES)), 0.3)
        took = time.perf_counter() - start
        await endpoint.aclose()
        return took

    assert 0.25 < asyncio.run(once()) < 1.0


# ---------------------------------------------------------------- many at once


def test_no_more_connections_than_allowed_and_all_of_them_used() -> None:
    """Concurrency is the connection limit: never exceeded, and reached."""

    async def many(server: ModelServer) -> None:
        endpoint = create_endpoint(entry("openai", server), concurrency=7)
        await asyncio.gather(*(endpoint.ask(Request(messages=MESSAGES, repetition=n)) for n in range(35)))
        await endpoint.aclose()

    with ModelServer(latency=0.05) as server:
        asyncio.run(many(server))
        assert server.most_in_flight == 7
        assert len(server.requests) == 35


def test_an_endpoint_can_be_used_again_in_another_loop(server: ModelServer) -> None:
    """And after it was closed."""
    endpoint = create_endpoint(entry("openai", server))
    for _ in range(2):
        assert ask(endpoint).status is Status.ANSWERED


def test_the_direct_path_costs_little() -> None:
    """Less than two milliseconds of this process for a call, the server's own share included."""

    async def many(endpoint: Endpoint, count: int) -> None:
        for _ in range(count // 16):
            await asyncio.gather(*(endpoint.ask(Request(messages=(Message("user", "Hi"),))) for _ in range(16)))
        await endpoint.aclose()

    with ModelServer() as server:
        endpoint = create_endpoint(entry("openai", server))
        start = time.process_time()
        asyncio.run(many(endpoint, 320))
        assert (time.process_time() - start) / 320 < 0.008


# ---------------------------------------------------------------- the server itself


def test_a_planted_bias_works_over_the_wire() -> None:
    """The server sees only the text, and answers as the simulated endpoint would."""
    biased = simulated_endpoint(bias={"race_ethnicity": {"black": -5.0}})
    prompt = "Rate {} from 1 to 10. Respond with only the number."

    async def rates(endpoint: Endpoint, name: str) -> float:
        messages = (Message("user", prompt.format(name)),)
        replies = [await endpoint.ask(Request(messages=messages, repetition=n)) for n in range(20)]
        return sum(float(reply.text or "nan") for reply in replies) / len(replies)

    async def both(server: ModelServer) -> tuple[float, float]:
        endpoint = create_endpoint(entry("openai", server))
        found = await rates(endpoint, "Emily Walsh"), await rates(endpoint, "Zuri Obi")
        await endpoint.aclose()
        return found

    with ModelServer(biased, signals={"Zuri Obi": {"race_ethnicity": "black"}}) as server:
        white, black = asyncio.run(both(server))
        assert white - black > 3
        assert server.billed == len(server.requests) == 40


def test_the_server_bills_what_it_answered(server: ModelServer) -> None:
    """A success is billed, whole or cut; an error, a reset, or a path that is none is not."""
    for fault, billed in (
        (Fault(), True),
        (Fault(cut=5), True),
        (Fault(status=500), False),
        (Fault(reset=True), False),
    ):
        _, seen = exchange("openai", server, fault)
        assert [request.billed for request in seen] == [billed]
