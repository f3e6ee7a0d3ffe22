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
    create_endpoint,
    load_endpoints,
)
from pytest_fairness.endpoints.application import ApplicationEndpoint
from pytest_fairness.endpoints.config import EndpointConfig
from pytest_fairness.endpoints.protocol import Price
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Message, Status, Usage
from tests.support.servers import Fault, ModelServer

KEY = "letters-canary-7f3a91"
LETTER: dict[str, Any] = {"letter": {"about": "{prompt}"}}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture(autouse=True)
def fresh(server: ModelServer) -> None:
    server.requests.clear()


def endpoint(server: ModelServer, **more: Any) -> ApplicationEndpoint:
    entry = {"name": "letters", "type": "http", "url": f"{server.url}/letters/write", "request": LETTER}
    made = create_endpoint({**entry, "reply": "$.letter.text", **more})
    assert isinstance(made, ApplicationEndpoint)
    return made


def ask(system: ApplicationEndpoint, prompt: str = "Write a letter for Ann.", **more: Any) -> Reply:
    return testing.ask(system, prompt, **more)


def refused(system: ApplicationEndpoint, **more: Any) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        ask(system, **more)
    return caught.value


# ------------------------------------------------------------ what is sent


def test_the_request_is_the_template_with_its_slots_filled(server: ModelServer) -> None:
    """Values go into parsed data: whole, or inside a text; what has no value is left out."""
    request = {
        "letter": {"about": "{prompt}", "tone": "as told: {system}."},
        "system": "{system}",
        "number": "{repetition}",
        "heat": ["{temperature}", "{seed}"],
        "messages": "{messages}",
        "plain": {"a": [1, True, None], "json": '{"b": {}}'},
    }
    system = endpoint(server, request=request, default_parameters={"temperature": 0.5})
    messages = (Message("system", "Be kind."), Message("user", "Hi"))
    reply = ask(system, messages=messages, repetition=3)
    assert reply.status is Status.ANSWERED
    assert server.requests[0].json == {
        "letter": {"about": "Hi", "tone": "as told: Be kind.."},
        "system": "Be kind.",
        "number": 3,
        "heat": [0.5],
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
        "plain": {"a": [1, True, None], "json": '{"b": {}}'},
    }
    ask(system, repetition=1)
    sent = server.requests[1].json
    assert "system" not in sent
    assert sent["letter"]["tone"] == "as told: ."


@pytest.mark.parametrize(
    "prompt", ["{system} {prompt} {repetition}", '"}], {"x": "', "{{7*7}} %(x)s \\u0000 {0.__class__}", "\ud800 é\n"]
)
def test_a_prompt_is_never_read_for_slots_or_as_json(server: ModelServer, prompt: str) -> None:
    """Whatever it holds, the application gets it as one string."""
    ask(endpoint(server, request={"letter": {"about": "{prompt}"}, "s": "<{prompt}>"}), prompt)
    assert server.requests[0].json == {"letter": {"about": prompt}, "s": f"<{prompt}>"}


def test_a_get_sends_a_query(server: ModelServer) -> None:
    """Escaped, without a body, and in the log in the place of the body."""
    system = endpoint(server, request={"letter": "{prompt}", "n": 2}, method="GET")
    reply = ask(system, "Ann & Bob? 100% ü")
    assert reply.status is Status.ANSWERED
    (request,) = server.requests
    assert (parse_qs(request.query), request.body) == ({"letter": ["Ann & Bob? 100% ü"], "n": ["2"]}, b"")
    assert reply.wire is not None
    assert reply.wire.request_body == "letter=Ann%20%26%20Bob%3F%20100%25%20%C3%BC&n=2"
    assert "?" not in reply.wire.url


def test_headers_from_the_environment_never_reach_the_log(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read when the call needs them, sent, and kept out of wire and identity; an echoed key is cut out."""
    headers = {"Authorization": {"env": "LETTERS_TOKEN", "prefix": "Token "}, "X-Tenant": "demo"}
    system = endpoint(server, headers=headers)
    monkeypatch.setenv("LETTERS_TOKEN", KEY)
    server.then(Fault(body={"letter": {"text": f"You sent {KEY}."}}))
    reply = ask(system)
    sent = server.requests[0].headers
    assert (sent["authorization"], sent["x-tenant"]) == (f"Token {KEY}", "demo")
    assert reply.wire is not None
    assert KEY not in repr(reply.wire)
    assert KEY not in json.dumps(system.identity())
    assert system.identity()["headers"] == {"Authorization": None, "X-Tenant": "demo"}


def test_a_missing_variable_stops_before_anything_is_sent(server: ModelServer) -> None:
    error = refused(endpoint(server, headers={"X-Api-Key": {"env": "NO_SUCH_TOKEN"}}))
    assert error.evidence is Evidence.AUTH
    assert "NO_SUCH_TOKEN is not set" in str(error)
    assert "headers: X-Api-Key" in str(error)
    assert not server.requests


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"parameters": {"temperature": 0.0}}, 'the parameter temperature: put "{temperature}"'),
        ({"parameters": {"temprature": 0.0}}, "did you mean 'temperature'"),
        ({"messages": (Message("system", "s"), Message("user", "u"))}, 'a system prompt: put "{system}"'),
        (
            {"messages": (Message("user", "u"), Message("assistant", "a"), Message("user", "v"))},
            'the turns before the last: put "{messages}"',
        ),
    ],
)
def test_what_has_no_place_is_not_dropped(server: ModelServer, more: dict[str, Any], what: str) -> None:
    """A system prompt, a turn or a parameter that the template cannot carry is an error, and nothing is sent."""
    error = refused(endpoint(server), **more)
    assert error.evidence is Evidence.AUTH
    assert what in str(error)
    assert not server.requests


def test_what_it_can_carry_is_known_beforehand(server: ModelServer) -> None:
    plain, whole = endpoint(server), endpoint(server, request={"messages": "{messages}"})
    assert (plain.supports_system_prompt, plain.supports_conversation) == (False, False)
    assert (whole.supports_system_prompt, whole.supports_conversation) == (True, True)
    assert endpoint(server, request={"letter": "{prompt}{system}"}).supports_system_prompt
    turns = (Message("user", "u"), Message("assistant", "a"), Message("user", "v"))
    assert ask(whole, messages=turns).status is Status.ANSWERED
    assert [m["content"] for m in server.requests[0].json["messages"]] == ["u", "a", "v"]


# ------------------------------------------------------------ what comes back


def test_the_answer_is_read_by_its_paths(server: ModelServer) -> None:
    """Text, model, finish reason, tokens and cost, each from its own place."""
    places = {
        "text": "$.letter.text", "model": "$.meta.model", "finish_reason": "$.meta.stop", "input_tokens": "$.meta.in",
        "output_tokens": "$.meta['out']", "cost": "$.meta.dollars",
    }  # fmt: skip
    reply = ask(endpoint(server, reply=places))
    assert reply.text
    assert (reply.model, reply.finish_reason, reply.cost) == ("deployment", "done", 0.002)
    assert reply.usage is not None
    assert (reply.usage.output_tokens or 0) > 0
    assert reply.wire is not None
    assert json.loads(reply.wire.response_body)["letter"]["text"] == reply.text


def test_parts_of_a_text_are_joined(server: ModelServer) -> None:
    """A path that finds several strings finds the parts of one text, in order, with nothing between them."""
    reply = ask(endpoint(server, reply="$.letter.parts[*].text"))
    assert reply.wire is not None
    letter = json.loads(reply.wire.response_body)["letter"]
    assert len(letter["parts"]) == 2
    assert reply.text == letter["text"]


@pytest.mark.parametrize(
    ("body", "status", "text", "why"),
    [
        ({"letter": {"text": 7.5}}, Status.ANSWERED, "7.5", None),
        ({"letter": {"text": True}}, Status.ANSWERED, "true", None),
        ({"letter": {"text": "{prompt} <b>"}}, Status.ANSWERED, "{prompt} <b>", None),
        ({"letter": {"text": " "}}, Status.EMPTY, None, "no text"),
        ({"letter": {"text": None}}, Status.EMPTY, None, "no text"),
        ({"letter": {"text": ["a"]}}, Status.MALFORMED, None, "a list"),
        ({"letter": {}}, Status.MALFORMED, None, r"nothing at $.letter.text"),
        ([1, 2], Status.MALFORMED, None, "nothing at"),
        ("<html>", Status.MALFORMED, None, "not JSON"),
        (b"", Status.MALFORMED, None, "empty"),
        (b"\xff\xfe{", Status.MALFORMED, None, "not JSON"),
        ("[" * 100_000, Status.MALFORMED, None, "not JSON"),
        ('{"letter": {"text": ' + "9" * 5000 + "}}", Status.MALFORMED, None, "not JSON"),
    ],
)
def test_every_body_has_a_class(
    server: ModelServer, body: Any, status: Status, text: str | None, why: str | None
) -> None:
    """A number, true and false are the text that JSON writes; whatever else is no text was paid for and is none."""
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


@pytest.mark.parametrize("cost", [-1, "0.2", True, 1e12, None, [1]])
def test_a_cost_that_is_none_is_no_cost(server: ModelServer, cost: Any) -> None:
    server.then(Fault(body={"t": "x", "c": cost, "in": -3, "out": "4"}))
    places = {"text": "$.t", "cost": "$.c", "input_tokens": "$.in", "output_tokens": "$.out"}
    reply = ask(endpoint(server, reply=places))
    assert (reply.text, reply.cost, reply.usage) == ("x", None, None)


def test_a_reply_that_was_cut_short_keeps_its_reason(server: ModelServer) -> None:
    server.then(Fault(body={"t": "Dear", "why": "length", "n": 3}))
    reply = ask(endpoint(server, reply={"text": "$.t", "finish_reason": "$.why", "output_tokens": "$.n"}))
    assert (reply.text, reply.finish_reason, reply.usage) == ("Dear", "length", Usage(output_tokens=3))


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
        ({"path": "$.list[*].state", "equals": "no"}, 200, {"list": [{"state": "yes"}, {"state": "no"}]}, True),
        ({"contains": "CANNOT help"}, 200, {"letter": {"text": "I cannot help you."}}, True),
        ({"contains": ["x", "y"]}, 200, {"letter": {"text": "abc"}}, False),
        ({"path": "$.note", "contains": "policy"}, 200, {"note": "By policy.", "letter": {"text": "x"}}, True),
        ({"status": 400, "path": "$.code", "equals": "policy"}, 400, {"code": "policy"}, True),
    ],
)
def test_what_counts_as_a_refusal(
    server: ModelServer, rule: dict[str, Any], status: int, body: Any, is_refusal: bool
) -> None:
    """A status, a place in the body, or words: the entry says by what the application says no."""
    server.then(Fault(status=status, body=body))
    reply = ask(endpoint(server, refusal=[rule]))
    assert reply.status is (Status.REFUSED if is_refusal else Status.ANSWERED)
    assert reply.wire is not None
    assert not is_refusal or reply.finish_reason


def test_a_refusal_keeps_its_text(server: ModelServer) -> None:
    server.then(Fault(body={"blocked": True, "letter": {"text": "We do not write such letters."}}))
    reply = ask(endpoint(server, refusal={"path": "$.blocked"}))
    assert (reply.status, reply.text) == (Status.REFUSED, "We do not write such letters.")
    assert reply.finish_reason == "$.blocked"


@pytest.mark.parametrize(
    ("fault", "evidence"),
    [
        (Fault(status=400, body={"code": "other"}), Evidence.REJECTED),
        (Fault(status=422, cut=3, body={"detail": "no no no"}), Evidence.REJECTED),
        (Fault(status=429, headers={"Retry-After": "2"}), Evidence.THROTTLED),
        (Fault(status=404), Evidence.AUTH),
        (Fault(cut=10), Evidence.PARTIAL),
    ],
)
def test_failures_are_classed_as_everywhere(server: ModelServer, fault: Fault, evidence: Evidence) -> None:
    """The same evidence as of a model behind an API, whatever rules there are: what was cut is not read."""
    server.then(fault)
    error = refused(endpoint(server, refusal=[{"status": 422}, {"status": 400, "path": "$.code", "equals": "policy"}]))
    assert (error.evidence, len(server.requests)) == (evidence, 1)
    assert error.retry_after == (2.0 if "Retry-After" in fault.headers else None)


def test_a_get_is_not_sent_again_on_a_new_connection(server: ModelServer) -> None:
    """An HTTP client may do that on its own where it had a connection that is closed: it may have been paid for."""
    server.then(None, Fault(reset=True), None)
    system = endpoint(server, method="GET", request={"letter": "{prompt}"})

    async def thrice() -> list[Reply | BaseException]:
        request = Request(messages=(Message("user", "Write a letter for Ann."),))
        try:
            return [(await asyncio.gather(system.ask(request), return_exceptions=True))[0] for _ in range(3)]
        finally:
            await system.aclose()

    first, second, third = asyncio.run(thrice())
    assert isinstance(first, Reply)
    assert isinstance(second, AttemptError)
    assert second.evidence is Evidence.NO_RESPONSE
    assert isinstance(third, Reply)
    assert len(server.requests) == 3


# ------------------------------------------------------------ identity


def test_identity_is_address_template_and_reading(server: ModelServer) -> None:
    """What changes the answers, or what is read of them, makes another system; a price does not."""
    base = endpoint(server).identity()
    assert base["request"] == LETTER
    others = [
        endpoint(server, url=f"{server.url}/other"),
        endpoint(server, request={"letter": {"about": "Please: {prompt}"}}),
        endpoint(server, reply="$.letter"),
        endpoint(server, refusal=NO),
        endpoint(server, method="PUT"),
        endpoint(server, headers={"X-Tenant": "demo"}),
    ]
    identities = [json.dumps(one.identity(), sort_keys=True) for one in others]
    assert len({*identities, json.dumps(base, sort_keys=True)}) == 7
    assert endpoint(server, price={"per_call": 1}).identity() == base


# ------------------------------------------------------------ the entry

ENTRY = """\
endpoints:
  - name: "letters"
    type: "http"
    url: "http://localhost:8080/letters/write"
    request: {letter: {about: "{prompt}"}}
    reply: "$.letter.text"
"""


def load(path: Path, text: str) -> EndpointConfig:
    (path / "endpoints.yaml").write_text(text, encoding="utf-8")
    return load_endpoints(path / "endpoints.yaml")["letters"]


def test_an_entry_is_an_endpoint(tmp_path: Path) -> None:
    more = 'price: {per_call: 0.01}\n    method: "PUT"\n    refusal: {status: 403}\n    requests_per_minute: 60\n'
    made = create_endpoint(load(tmp_path, f"{ENTRY}    {more}"))
    assert isinstance(made, ApplicationEndpoint)
    assert made.price == Price(input_per_million=0, output_per_million=0, per_call=0.01)
    assert made.identity()["url"] == "http://localhost:8080/letters/write"


WRONG = [
    ('url: "http://localhost:8080/letters/write"', "", "missing key `url`"),
    ('url: "http', 'base_url: "http', ":4: unknown key 'base_url'"),
    ("/write", "/write?key=1", ":4: url holds a query; leave off everything from ? or #; with method: GET"),
    ("http://localhost", "http://me:secret@localhost", ":4: url holds a user or password"),
    ('"{prompt}"', '"{promt}"', ":5: unknown slot 'promt'; did you mean 'prompt'?"),
    ('"{prompt}"', "{prompt}", ':5: YAML reads {prompt} as a mapping: write "{prompt}", in quotes'),
    ('"{prompt}"', '"{{prompt}}"', ":5: '{{prompt}}': a slot is a plain name"),
    ('"{prompt}"', '"{prompt.__class__}"', ":5: '{prompt.__class__}': a slot is a plain name"),
    ('"{prompt}"', '"{prompt!r}"', "a slot is a plain name"),
    ('"{prompt}"', '"a prompt"', ":5: nothing of the prompt would be sent"),
    ('"{prompt}"', '"x{messages}"', ":5: the list of messages must be the whole"),
    ("about:", '"{prompt}":', "slots stand in values, not in keys"),
    ('request: {letter: {about: "{prompt}"}}', "", "missing key `request`"),
    ('request: {letter: {about: "{prompt}"}}', 'request: "{prompt}"', ":5: request must be a mapping"),
    ('reply: "$.letter.text"', "", "missing key `reply`"),
    ('"$.letter.text"', '"letter.text"', ":6: 'letter.text' is no JSON path such as $.reply.text"),
    ('"$.letter.text"', "\"$.a[?match(@.b, '(a+)+')]\"", ":6:"),
    ('"$.letter.text"', "{txt: $.a}", ":6: unknown key 'txt'; did you mean 'text'?"),
    ('"$.letter.text"', "{model: $.a}", ":6: reply: missing key `text`"),
    ("reply:", 'method: "DELETE"\n    reply:', ":6: method: unknown value 'DELETE' (known: GET, POST, PUT)"),
    ("reply:", 'method: "GET"\n    reply:', ":5: with method GET the request is a query"),
    ("reply:", "model: x\n    reply:", ":6: unknown key 'model'"),
    ("reply:", "api_key: x\n    reply:", ":6: api_key: a key must not stand in a file"),
    ("reply:", 'headers: {Authorization: "Bearer abc"}\n    reply:', ":6: Authorization looks like a key"),
    ("reply:", 'headers: {X-Auth-Token: "abc"}\n    reply:', ":6: X-Auth-Token looks like a key"),
    ("reply:", 'headers: {X-Id: "sk-123456789012345678"}\n    reply:', ":6: X-Id looks like a key"),
    ("reply:", 'headers: {X-Id: "a\\nb: c"}\n    reply:', ":6: the header X-Id must be a text on one line"),
    ("reply:", 'headers: {Host: "b"}\n    reply:', ":6: 'Host' is no header that can be set"),
    ("reply:", 'headers: {"a b": "c"}\n    reply:', ":6: 'a b' is no header that can be set"),
    ("reply:", 'headers: {X-A: "b", x-a: "c"}\n    reply:', ":6: the header X-A stands here twice"),
    ("reply:", 'headers: {X-A: {env: "sk-123456789012345678"}}\n    reply:', ":6: env must be the name"),
    ("reply:", "headers: {X-A: {var: B}}\n    reply:", ":6: unknown key 'var'"),
    ("reply:", "api_key_env: A\n    headers: {authorization: {env: B}}\n    reply:", ":6: api_key_env is the Auth"),
    ("reply:", "supports_system_prompt: true\n    reply:", ":6: the request has no place for a system prompt"),
    ("reply:", "default_temperature: 0.5\n    reply:", "the request has no place for temperature"),
    ("reply:", "refusal: []\n    reply:", ":6: refusal: expected a list of length >= 1"),
    ("reply:", "refusal: {status: 429}\n    reply:", ":6: 429 cannot be a refusal"),
    ("reply:", "refusal: {status: 503}\n    reply:", ":6: 503 cannot be a refusal"),
    ("reply:", "refusal: {pattern: x}\n    reply:", ":6: unknown key 'pattern'"),
    ("reply:", "refusal: {equals: x}\n    reply:", ":6: equals goes with path"),
    ("reply:", "refusal: [{path: x}]\n    reply:", ":6: 'x' is no JSON path"),
    ('type: "http"', 'type: "callable"', ":3: type callable: a file must not say which code runs"),
    ('type: "http"', 'type: "replay"', ":3: type replay: a recorded run is replayed with --fairness-replay"),
]


@pytest.mark.parametrize(("old", "new", "why"), WRONG, ids=range(len(WRONG)))
def test_an_entry_that_makes_no_sense_is_refused_with_its_line(tmp_path: Path, old: str, new: str, why: str) -> None:
    """Before the first call, with the place and the mend, and without repeating what may be a key."""
    assert old in ENTRY
    with pytest.raises(UsageError) as caught:
        load(tmp_path, ENTRY.replace(old, new, 1))
    assert why in str(caught.value)
    assert "endpoints.yaml:" in str(caught.value)
    for secret in ("sk-123456789012345678", "me:secret"):
        assert secret not in str(caught.value)
