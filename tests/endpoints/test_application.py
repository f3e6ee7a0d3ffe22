"""Type ``http``: any application that takes JSON and answers with JSON, asked over a real wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from pytest_fairness import testing
from pytest_fairness.endpoints import (
    AttemptError,
    Evidence,
    Reply,
    Request,
    application,
    create_endpoint,
    load_endpoints,
)
from pytest_fairness.endpoints.application import ApplicationEndpoint
from pytest_fairness.endpoints.protocol import Price
from pytest_fairness.model import Message, Status, Usage
from tests.support.servers import Fault, ModelServer

KEY = "letters-canary-7f3a91"
LETTER: dict[str, Any] = {"letter": {"about": "{prompt}"}}
TURNS = (Message("user", "u"), Message("assistant", "a"), Message("user", "v"))


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def server(running: ModelServer) -> ModelServer:
    running.requests.clear()
    return running


def endpoint(server: ModelServer, **more: Any) -> ApplicationEndpoint:
    entry = {
        "name": "letters",
        "type": "http",
        "url": f"{server.url}/letters/write",
        "request": LETTER,
    }
    made = create_endpoint({**entry, "reply": "$.letter.text", **more})
    assert isinstance(made, ApplicationEndpoint)
    return made


def ask(system: ApplicationEndpoint, prompt: str = "Write a letter for Ann.", **more: Any) -> Reply:
    return testing.ask(system, prompt, **more)


def failure(system: ApplicationEndpoint, **more: Any) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        ask(system, **more)
    return caught.value


# ------------------------------------------------------------ what is sent


def test_the_request_is_the_template_with_its_slots_filled(server: ModelServer) -> None:
    """Values go into parsed data: whole, or inside a text; what has no value is left out."""
    plain = {"a": [1, True, None], "json": '{"b": {}}'}
    request = {
        "letter": {"about": "{prompt}", "tone": "kindly: {system}."},
        "system": "{system}",
        "number": "{repetition}",
        "heat": ["{temperature}", "{seed}"],
        "messages": "{messages}",
        "plain": plain,
    }
    system = endpoint(server, request=request, default_parameters={"temperature": 0.5})
    reply = ask(
        system, messages=(Message("system", "Be kind."), Message("user", "Hi")), repetition=3
    )
    assert reply.status is Status.ANSWERED
    assert server.requests[0].json == {
        "letter": {"about": "Hi", "tone": "kindly: Be kind.."},
        "system": "Be kind.",
        "number": 3,
        "heat": [0.5],
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
        "plain": plain,
    }
    ask(system, repetition=1)
    sent = server.requests[1].json
    assert "system" not in sent
    assert sent["letter"]["tone"] == "kindly: ."


def test_a_prompt_is_never_read_for_slots_or_as_json(server: ModelServer) -> None:
    """Whatever it holds, the application gets it as one string."""
    system = endpoint(server, request={"letter": {"about": "{prompt}"}, "s": "<{prompt}>"})
    texts = (
        "{system} {prompt} {repetition}",
        '"}], {"x": "',
        "{{7*7}} %(x)s \\u0000 {0.__class__}",
        "\ud800 é\n",
    )
    for prompt in texts:
        ask(system, prompt)
        assert server.requests[-1].json == {"letter": {"about": prompt}, "s": f"<{prompt}>"}


def test_a_get_sends_a_query(server: ModelServer) -> None:
    """Escaped, without a body, and in the log in the place of the body."""
    system = endpoint(server, request={"letter": "{prompt}", "n": 2}, method="GET")
    reply = ask(system, "Ann & Bob? 100% ü")
    assert reply.status is Status.ANSWERED
    (request,) = server.requests
    assert (parse_qs(request.query), request.body) == (
        {"letter": ["Ann & Bob? 100% ü"], "n": ["2"]},
        b"",
    )
    assert reply.wire is not None
    assert reply.wire.request_body == "letter=Ann%20%26%20Bob%3F%20100%25%20%C3%BC&n=2"
    assert "?" not in reply.wire.url


def test_headers_from_the_environment_never_reach_the_log(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read when the call needs them, sent, and kept out of wire and identity; an echoed key is cut
    out. One that is missing stops before anything is sent."""
    headers = {"Authorization": {"env": "LETTERS_TOKEN", "prefix": "Token "}, "X-Tenant": "demo"}
    system = endpoint(server, headers=headers)
    error = failure(system)
    assert error.evidence is Evidence.AUTH
    assert "LETTERS_TOKEN is not set" in str(error)
    assert "headers: Authorization" in str(error)
    assert not server.requests
    monkeypatch.setenv("LETTERS_TOKEN", KEY)
    server.then(Fault(body={"letter": {"text": f"You sent {KEY}."}}))
    reply = ask(system)
    sent = server.requests[0].headers
    assert (sent["authorization"], sent["x-tenant"]) == (f"Token {KEY}", "demo")
    assert reply.wire is not None
    assert KEY not in repr(reply.wire) + json.dumps(system.identity())
    assert system.identity()["headers"] == {"Authorization": None, "X-Tenant": "demo"}


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"parameters": {"temperature": 0.0}}, 'the parameter temperature: put "{temperature}"'),
        ({"parameters": {"temprature": 0.0}}, "did you mean 'temperature'"),
        (
            {"messages": (Message("system", "s"), Message("user", "u"))},
            'a system prompt: put "{system}"',
        ),
        ({"messages": TURNS}, 'the turns before the last: put "{messages}"'),
    ],
)
def test_what_has_no_place_is_not_dropped(
    server: ModelServer, more: dict[str, Any], what: str
) -> None:
    """A system prompt, a turn or a parameter that the template cannot carry is an error, and
    nothing is sent.
    """
    error = failure(endpoint(server), **more)
    assert error.evidence is Evidence.AUTH
    assert what in str(error)
    assert not server.requests


def test_what_it_can_carry_is_known_beforehand(server: ModelServer) -> None:
    plain, whole = endpoint(server), endpoint(server, request={"messages": "{messages}"})
    assert (plain.supports_system_prompt, plain.supports_conversation) == (False, False)
    assert (whole.supports_system_prompt, whole.supports_conversation) == (True, True)
    assert endpoint(server, request={"letter": "{prompt}{system}"}).supports_system_prompt
    assert ask(whole, messages=TURNS).status is Status.ANSWERED
    assert [m["content"] for m in server.requests[0].json["messages"]] == ["u", "a", "v"]


# ------------------------------------------------------------ what comes back


def test_the_answer_is_read_by_its_paths(server: ModelServer) -> None:
    """Text, model, finish reason, tokens and cost, each from its own place; of several texts each
    is a part of one, in order, with nothing between them."""
    places = {
        "text": "$.letter.parts[*].text", "model": "$.meta.model", "finish_reason": "$.meta.stop",
        "input_tokens": "$.meta.in", "output_tokens": "$.meta['out']", "cost": "$.meta.dollars",
    }  # fmt: skip
    reply = ask(endpoint(server, reply=places))
    assert (reply.model, reply.finish_reason, reply.cost) == ("deployment", "done", 0.002)
    assert reply.usage is not None
    assert (reply.usage.output_tokens or 0) > 0
    assert reply.wire is not None
    letter = json.loads(reply.wire.response_body)["letter"]
    assert len(letter["parts"]) == 2
    assert reply.text == letter["text"]


BODIES: dict[str, tuple[Any, Status, str | None, str | None]] = {
    "number": ({"letter": {"text": 7.5}}, Status.ANSWERED, "7.5", None),
    "true": ({"letter": {"text": True}}, Status.ANSWERED, "true", None),
    "markup": ({"letter": {"text": "{prompt} <b>"}}, Status.ANSWERED, "{prompt} <b>", None),
    "blank": ({"letter": {"text": " "}}, Status.EMPTY, None, "no text"),
    "null": ({"letter": {"text": None}}, Status.EMPTY, None, "no text"),
    "list": ({"letter": {"text": ["a"]}}, Status.MALFORMED, None, "a list"),
    "nothing there": ({"letter": {}}, Status.MALFORMED, None, "nothing at $.letter.text"),
    "no object": ([1, 2], Status.MALFORMED, None, "nothing at"),
    "HTML": ("<html>", Status.MALFORMED, None, "not JSON"),
    "empty": (b"", Status.MALFORMED, None, "empty"),
    "no text": (b"\xff\xfe{", Status.MALFORMED, None, "not JSON"),
    "deep": ("[" * 100_000, Status.MALFORMED, None, "not JSON"),
    "digits": ('{"letter": {"text": ' + "9" * 5000 + "}}", Status.MALFORMED, None, "not JSON"),
}


@pytest.mark.parametrize(("body", "status", "text", "why"), BODIES.values(), ids=BODIES)
def test_every_body_has_a_class(
    server: ModelServer, body: Any, status: Status, text: str | None, why: str | None
) -> None:
    """A number, true and false are the text that JSON writes; whatever else is no text was paid for
    and is none.
    """
    server.then(Fault(body=body))
    reply = ask(endpoint(server))
    assert (reply.status, reply.text) == (status, text)
    assert why is None or why in (reply.error or "")
    assert reply.wire is not None


def test_a_body_nested_too_deeply_to_look_through(server: ModelServer) -> None:
    """A path that descends gives up at a depth, and says that it found nothing."""
    server.then(Fault(body='{"a":' * 400 + "1" + "}" * 400))
    reply = ask(endpoint(server, reply="$..text"))
    assert reply.status is Status.MALFORMED


@pytest.mark.parametrize("path", ["$.parts[*]", "$.parts[0:]", "$.parts[?@]"])
def test_a_path_looks_at_so_many_values_and_no_more(
    server: ModelServer, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is one of them, and each of its texts is."""
    monkeypatch.setattr(application, "MOST_VALUES", 20)
    server.then(Fault(body={"parts": ["x"] * 19}), Fault(body={"parts": ["x"] * 20}))
    system = endpoint(server, reply=path)
    assert [ask(system).status for _ in range(2)] == [Status.ANSWERED, Status.MALFORMED]


def test_what_is_no_count_and_no_cost_is_none(server: ModelServer) -> None:
    """A reply that was cut short keeps its reason."""
    places = {
        "text": "$.t",
        "cost": "$.c",
        "input_tokens": "$.in",
        "output_tokens": "$.out",
        "finish_reason": "$.why",
    }
    for cost in (-1, "0.2", True, 1e12, None, [1]):
        server.then(Fault(body={"t": "x", "c": cost, "in": -3, "out": "4"}))
        reply = ask(endpoint(server, reply=places))
        assert (reply.text, reply.cost, reply.usage) == ("x", None, None)
    server.then(Fault(body={"t": "Dear", "why": "length", "out": 3}))
    reply = ask(endpoint(server, reply=places))
    assert (reply.text, reply.finish_reason, reply.usage) == (
        "Dear",
        "length",
        Usage(output_tokens=3),
    )


# ------------------------------------------------------------ refusals and failures

NO = {"status": 422}


@pytest.mark.parametrize(
    ("rule", "status", "body", "is_refusal"),
    [
        (NO, 422, {"detail": "no"}, True),
        (NO, 422, "", True),
        (NO, 422, "<html>", True),
        ({"status": [409, 451]}, 451, {}, True),
        ({"status": 204}, 204, "", True),
        ({"path": "$.blocked"}, 200, {"blocked": True, "letter": {"text": "x"}}, True),
        ({"path": "$.blocked"}, 200, {"blocked": {"why": "policy"}}, True),
        ({"path": "$.blocked"}, 200, {"blocked": False, "letter": {"text": "x"}}, False),
        ({"path": "$.blocked"}, 200, {"blocked": [], "letter": {"text": "x"}}, False),
        ({"path": "$.state", "equals": ["no", "never"]}, 200, {"state": "never"}, True),
        ({"path": "$.state", "equals": 1}, 200, {"state": True, "letter": {"text": "x"}}, False),
        (
            {"path": "$.list[*].state", "equals": "no"},
            200,
            {"list": [{"state": "yes"}, {"state": "no"}]},
            True,
        ),
        ({"contains": "CANNOT help"}, 200, {"letter": {"text": "I cannot help you."}}, True),
        ({"contains": ["x", "y"]}, 200, {"letter": {"text": "abc"}}, False),
        (
            {"path": "$.note", "contains": "policy"},
            200,
            {"note": "By policy.", "letter": {"text": "x"}},
            True,
        ),
        ({"status": 400, "path": "$.code", "equals": "policy"}, 400, {"code": "policy"}, True),
    ],
)
def test_what_counts_as_a_refusal(
    server: ModelServer, rule: dict[str, Any], status: int, body: Any, is_refusal: bool
) -> None:
    """A status, a place in the body, or words: the entry says by what the application says no. Its
    text is kept.
    """
    server.then(Fault(status=status, body=body))
    reply = ask(endpoint(server, refusal=[rule]))
    assert reply.status is (Status.REFUSED if is_refusal else Status.ANSWERED)
    assert reply.text == (
        body["letter"]["text"] if isinstance(body, dict) and "letter" in body else None
    )
    assert reply.wire is not None
    assert not is_refusal or reply.finish_reason
    assert not is_refusal or rule != {"path": "$.blocked"} or reply.finish_reason == "$.blocked"


def test_failures_are_classed_as_everywhere(server: ModelServer) -> None:
    """The same evidence as of a model behind an API, whatever rules there are: what was cut is not
    read.
    """
    system = endpoint(
        server, refusal=[{"status": 422}, {"status": 400, "path": "$.code", "equals": "policy"}]
    )
    for number, (fault, evidence) in enumerate(
        [
            (Fault(status=400, body={"code": "other"}), Evidence.REJECTED),
            (Fault(status=422, cut=3, body={"detail": "no no no"}), Evidence.REJECTED),
            (Fault(status=429, headers={"Retry-After": "2"}), Evidence.THROTTLED),
            (Fault(status=404), Evidence.AUTH),
            (Fault(cut=10), Evidence.PARTIAL),
        ]
    ):
        server.then(fault)
        error = failure(system)
        assert (error.evidence, len(server.requests)) == (evidence, number + 1)
        assert error.retry_after == (2.0 if "Retry-After" in fault.headers else None)


def test_a_get_is_not_sent_again_on_a_new_connection(server: ModelServer) -> None:
    """An HTTP client may do that on its own where it had a connection that is closed: it may have
    been paid for.
    """
    server.then(None, Fault(reset=True), None)
    system = endpoint(server, method="GET", request={"letter": "{prompt}"})

    async def thrice() -> list[Reply | BaseException]:
        request = Request(messages=(Message("user", "Write a letter for Ann."),))
        try:
            return [
                (await asyncio.gather(system.ask(request), return_exceptions=True))[0]
                for _ in range(3)
            ]
        finally:
            await system.aclose()

    first, second, third = asyncio.run(thrice())
    assert isinstance(first, Reply)
    assert isinstance(second, AttemptError)
    assert second.evidence is Evidence.NO_RESPONSE
    assert isinstance(third, Reply)
    assert len(server.requests) == 3


# ------------------------------------------------------------ the entry


def test_identity_is_address_template_and_reading(server: ModelServer) -> None:
    """What changes the answers, or what is read of them, makes another system; a price does not."""
    base = endpoint(server).identity()
    assert base["request"] == LETTER
    changes: list[dict[str, Any]] = [
        {"url": f"{server.url}/other"},
        {"request": {"letter": {"about": "Please: {prompt}"}}},
        {"reply": "$.letter"},
        {"refusal": NO},
        {"method": "PUT"},
        {"headers": {"X-Tenant": "demo"}},
    ]
    identities = {
        json.dumps(endpoint(server, **change).identity(), sort_keys=True) for change in changes
    }
    assert len({*identities, json.dumps(base, sort_keys=True)}) == 7
    assert endpoint(server, price={"per_call": 1}).identity() == base


def test_an_entry_is_an_endpoint(tmp_path: Path) -> None:
    path = tmp_path / "endpoints.yaml"
    more = 'price: {per_call: 0.01}, method: "PUT", refusal: {status: 403}, requests_per_minute: 60'
    entry = 'name: "letters", type: "http", url: "http://localhost:8080/write", request: {a: "{prompt}"}, reply: "$.b"'
    path.write_text(f"endpoints: [{{{entry}, {more}}}]", encoding="utf-8")
    made = create_endpoint(load_endpoints(path)["letters"])
    assert isinstance(made, ApplicationEndpoint)
    assert made.price == Price(input_per_million=0, output_per_million=0, per_call=0.01)
    assert made.identity()["url"] == "http://localhost:8080/write"
