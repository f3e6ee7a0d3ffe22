"""litellm at arm's length: imported late, quietly, and kept from doing anything on its own."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_fairness.endpoints import AttemptError, EndpointConfig, Evidence, Reply, Request, create_endpoint
from pytest_fairness.model import Message, Status
from tests.support.servers import Fault, ModelServer

if importlib.util.find_spec("litellm") is None:
    pytest.skip("litellm is not installed", allow_module_level=True)

ROOT = Path(__file__).parents[2]
MESSAGES = (Message("user", "Write a job reference for Ann Lee, a nurse."),)


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
from pytest_fairness.endpoints import AttemptError, EndpointConfig, Request, create_endpoint
from pytest_fairness.model import Message
url, kinds = sys.argv[1], sys.argv[2:]
endpoints = []
for kind in kinds:
    type, path, model, *via = kind.split()
    endpoints.append(create_endpoint(EndpointConfig(name=kind, type=type, model=model, api_key_env="THE_KEY",
                                                    base_url=url + path.strip("-"), via=via[0] if via else None)))
before = "litellm" in sys.modules or "openai" in sys.modules
environment = dict(os.environ)
async def main():
    outcomes = []
    for endpoint in endpoints:
        try:
            reply = await endpoint.ask(Request(messages=(Message("user", "Rate Ann from 1 to 10."),)))
            outcomes.append(reply.status.value)
        except AttemptError as error:
            outcomes.append(error.evidence.value)
    await asyncio.sleep(0.3)
    for endpoint in endpoints:
        await endpoint.aclose()
    return outcomes
outcomes = asyncio.run(main())
port = int(url.rpartition(":")[2])
ours = [("127.0.0.1", port), ("127.0.0.1", 9)]  # 9 is where litellm is rehearsed
others = [c for c in connected if not (isinstance(c, tuple) and (c[0], int(c[1])) in ours)]
print(json.dumps({"before": before, "after": "litellm" in sys.modules, "outcomes": outcomes, "others": repr(others),
                  "environment": {k: v for k, v in os.environ.items() if environment.get(k) != v}}))
"""
KINDS = ("openai /v1 m litellm", "anthropic - claude-x", "azure - m", "litellm /v1 groq/m", "litellm /v1 perplexity/m")


def test_it_is_imported_on_the_first_question_and_talks_to_nobody_else() -> None:
    """No import before, no other address but the server's, nothing printed, nothing loaded into the environment.

    Warnings are errors in there, as in a strict suite, and no ``.env`` file is looked for, as litellm would.
    """
    program = "import dotenv, os\ndotenv.load_dotenv = lambda *_, **__: os.environ.update(LOADED='1')\n" + ASK
    with ModelServer() as server:
        found = run(program, server.url, *KINDS, THE_KEY="sk-canary-0123456789", LITELLM_LOG="DEBUG")
        assert len(server.requests) == len(KINDS)
    assert found["before"] is False
    assert found["after"] is True
    assert found["outcomes"] == ["answered"] * len(KINDS)
    assert found["others"] == "[]"
    # Where its own copy of a tokenizer lies is the one thing that litellm writes there, when it gets to it.
    assert set(found["environment"]) <= {"TIKTOKEN_CACHE_DIR"}  # type: ignore[call-overload]
    assert len(found["lines"]) == 1  # type: ignore[arg-type]
    assert "canary" not in str(found)


def test_the_direct_types_never_import_it() -> None:
    """openai and ollama work where litellm is not installed."""
    with ModelServer() as server:
        found = run(ASK, server.url, "openai /v1 m", "ollama - m", THE_KEY="sk-canary-0123456789")
    assert found["outcomes"] == ["answered"] * 2
    assert found["after"] is False
    assert found["others"] == "[]"


def test_retries_of_others_in_the_process_are_not_inherited() -> None:
    """litellm caches clients: one that somebody made with retries must not be ours."""
    poison = """
import os, sys, warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import litellm
    message = {"role": "user", "content": "poison"}
    try:
        litellm.completion(model="azure/m", messages=[message], api_base=sys.argv[1], api_key=os.environ["THE_KEY"],
                           api_version="2024-10-21")
    except Exception as error:
        assert "500" in str(error), error
"""
    with ModelServer(script=lambda _: Fault(status=500)) as server:
        environment = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION", "THE_KEY": "k" * 20}
        found = run(poison + ASK, server.url, "azure - m", **environment)
        poisoned = sum(b"poison" in request.body for request in server.requests)
        ours = len(server.requests) - poisoned
    assert poisoned > 1, "the poison does not retry, so this test shows nothing"
    assert ours == 1
    assert found["outcomes"] == ["server"]


def ask(config: EndpointConfig, *messages: Message) -> Reply:
    async def once() -> Reply:
        endpoint = create_endpoint(config)
        try:
            return await endpoint.ask(Request(messages=messages or MESSAGES))
        finally:
            await endpoint.aclose()

    return asyncio.run(once())


def test_an_empty_message_to_anthropic_is_refused_not_replaced() -> None:
    """litellm would put a text of its own in its place: a cell without a name must not become another cell."""
    with ModelServer() as server:
        config = EndpointConfig(name="x", type="anthropic", model="claude-x", base_url=server.url)
        with pytest.raises(AttemptError, match="takes no empty message") as refused:
            ask(config, Message("user", " "))
        assert refused.value.evidence is Evidence.REJECTED
        assert server.requests == []


def test_a_provider_that_ignores_our_client_is_refused_before_anything_is_sent() -> None:
    """Of what cannot be watched nothing can be promised: neither one request nor its record."""
    with ModelServer() as server:
        config = EndpointConfig(name="x", type="litellm", model="cohere/m", base_url=server.openai_url)
        with pytest.raises(AttemptError, match="does not send 'cohere/m' through the client") as refused:
            ask(config)
        assert refused.value.evidence is Evidence.AUTH
        assert server.requests == []


def test_a_broken_installation_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong on import, it is one clear failure of the endpoint, and nothing was sent."""

    def broken() -> None:
        raise ModuleNotFoundError("No module named 'h2'")

    monkeypatch.setattr("pytest_fairness.endpoints.litellm_endpoint.load_litellm", broken)
    with pytest.raises(
        AttemptError, match=r"cannot be imported \(ModuleNotFoundError: No module named 'h2'\)"
    ) as refused:
        ask(EndpointConfig(name="x", type="anthropic", model="claude-x", base_url="http://127.0.0.1:9"))
    assert refused.value.evidence is Evidence.AUTH


def test_a_provider_that_litellm_does_not_know_is_told() -> None:
    """Before anything is sent."""
    with pytest.raises(AttemptError) as refused:
        ask(EndpointConfig(name="x", type="litellm", model="nobody/m", base_url="http://127.0.0.1:9"))
    assert refused.value.evidence is Evidence.AUTH


def test_a_parameter_that_the_provider_does_not_take_is_told_not_dropped() -> None:
    """drop_params stays off: a seed that is not sent would be a seed that is believed to have been."""
    with ModelServer() as server:
        config = EndpointConfig(
            name="x", type="anthropic", model="claude-x", base_url=server.url, default_parameters={"top_k": 3}
        )
        assert ask(config).status is Status.ANSWERED
        assert server.requests[0].json["top_k"] == 3
        wrong = EndpointConfig(
            name="x", type="litellm", model="anthropic/x", base_url=server.url, default_parameters={"seed": 3}
        )
        with pytest.raises(AttemptError, match="nothing was sent") as refused:
            ask(wrong)
        assert refused.value.evidence is Evidence.AUTH
        assert len(server.requests) == 1


def test_thoughts_and_messages_are_not_rewritten() -> None:
    """The reply is read off the bytes: litellm strips what stands between think tags."""
    body = {"model": "m", "choices": [{"message": {"content": "<think>hm</think>Hi"}, "finish_reason": "stop"}]}
    with ModelServer(script=[Fault(body=body)]) as server:
        config = EndpointConfig(name="x", type="litellm", model="hosted_vllm/m", base_url=server.openai_url)
        assert ask(config).text == "<think>hm</think>Hi"


def test_many_at_once_are_each_their_own() -> None:
    """Concurrent calls do not get into each other's records."""

    async def many(server: ModelServer) -> list[Reply]:
        config = EndpointConfig(name="x", type="anthropic", model="claude-x", base_url=server.url, concurrency=8)
        endpoint = create_endpoint(config)
        asked = [Request(messages=(Message("user", f"Write a job reference for Ann{n} Lee."),)) for n in range(40)]
        replies = await asyncio.gather(*(endpoint.ask(request) for request in asked))
        await endpoint.aclose()
        return replies

    with ModelServer(latency=0.02) as server:
        replies = asyncio.run(many(server))
        assert len(server.requests) == 40
        assert server.most_in_flight <= 8
    for number, reply in enumerate(replies):
        assert reply.wire is not None
        assert f"Ann{number} Lee" in reply.wire.request_body
        assert f"Ann{number} Lee" in (reply.text or "")
