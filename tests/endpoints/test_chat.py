"""Answers of the providers that are spoken to directly are read off the bytes, whatever the bytes are."""

from __future__ import annotations

import json

import pytest

from pytest_fairness.endpoints import Reply, create_endpoint
from pytest_fairness.endpoints.chat import ChatEndpoint
from pytest_fairness.model import Status, Usage


def read(kind: str, body: bytes) -> Reply:
    endpoint = create_endpoint({"name": "x", "type": kind, "model": "m", "base_url": "http://127.0.0.1:9"})
    assert isinstance(endpoint, ChatEndpoint)
    return endpoint.read(body)


def choice(message: object, reason: object = "stop", **more: object) -> bytes:
    return json.dumps({"model": "m-1", "choices": [{"message": message, "finish_reason": reason}], **more}).encode()


@pytest.mark.parametrize(
    ("body", "status", "text", "reason"),
    [
        (choice({"content": "Hi"}), Status.ANSWERED, "Hi", "stop"),
        (choice({"content": "Hi"}, "length"), Status.ANSWERED, "Hi", "length"),
        (choice({"content": "Hi"}, "invented_reason"), Status.ANSWERED, "Hi", "invented_reason"),
        (choice({"content": "Hi"}, None), Status.ANSWERED, "Hi", None),
        (choice({"content": "<think>x</think>Hi"}), Status.ANSWERED, "<think>x</think>Hi", "stop"),
        (choice({"content": None, "refusal": "I won't."}), Status.REFUSED, "I won't.", "stop"),
        (choice({"content": "Hi", "refusal": ""}), Status.ANSWERED, "Hi", "stop"),
        (choice({"content": None}, "content_filter"), Status.REFUSED, None, "content_filter"),
        (choice({"content": "part"}, "content_filter"), Status.REFUSED, "part", "content_filter"),
        (choice({"content": None}, "tool_calls"), Status.EMPTY, None, "tool_calls"),
        (choice({"content": ""}, "length"), Status.EMPTY, None, "length"),
        (choice({"content": " \n"}), Status.EMPTY, None, "stop"),
        (choice({}), Status.EMPTY, None, "stop"),
        (choice({"content": 7}), Status.MALFORMED, None, "stop"),
        (choice({"content": ["a"]}), Status.MALFORMED, None, "stop"),
        (choice("Hi"), Status.MALFORMED, None, None),
        (b'{"choices": []}', Status.EMPTY, None, None),
        (b'{"choices": null}', Status.MALFORMED, None, None),
        (b"{}", Status.MALFORMED, None, None),
        (b'{"choices": [3]}', Status.MALFORMED, None, None),
        (b'{"error": {"message": "overloaded", "code": "overloaded"}}', Status.ERROR, None, None),
        (b"null", Status.MALFORMED, None, None),
        (b"[]", Status.MALFORMED, None, None),
        (b"", Status.MALFORMED, None, None),
        (b"<html>", Status.MALFORMED, None, None),
        (b'data: {"choices": []}\n\n', Status.MALFORMED, None, None),
        (b"\xff\xfe\xfd", Status.MALFORMED, None, None),
        (b"[" * 100_000, Status.MALFORMED, None, None),
        (b'{"choices": ' + b"9" * 5000 + b"}", Status.MALFORMED, None, None),
        (b"\xef\xbb\xbf" + choice({"content": "Hi"}), Status.ANSWERED, "Hi", "stop"),
    ],
)
def test_any_body_is_read_for_what_it_is(body: bytes, status: Status, text: str | None, reason: str | None) -> None:
    """Total on any bytes: an answer only where there is one, the finish reason as the provider gave it."""
    reply = read("openai", body)
    assert (reply.status, reply.text, reply.finish_reason) == (status, text, reason)
    assert (reply.error is None) == (status in (Status.ANSWERED, Status.REFUSED))


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4}, Usage(input_tokens=3, output_tokens=4)),
        ({"prompt_tokens": 3}, Usage(input_tokens=3, output_tokens=None)),
        ({"prompt_tokens": -3, "completion_tokens": "4"}, None),
        ({"prompt_tokens": 1e12, "completion_tokens": 0}, Usage(input_tokens=10**12, output_tokens=0)),
        ({"prompt_tokens": True, "completion_tokens": 1.5}, None),
        (None, None),
        ("many", None),
    ],
)
def test_usage_that_is_no_count_is_unknown_not_free(usage: object, expected: Usage | None) -> None:
    """Missing, negative or textual counts are None, so that they are charged at their worst case."""
    assert read("openai", choice({"content": "Hi"}, usage=usage)).usage == expected


def anthropic(content: object, reason: str = "end_turn") -> bytes:
    usage = {"input_tokens": 1, "output_tokens": 2}
    return json.dumps(
        {"type": "message", "model": "c", "content": content, "stop_reason": reason, "usage": usage}
    ).encode()


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (anthropic([{"type": "text", "text": "Hi "}, {"type": "text", "text": "there"}]), Status.ANSWERED, "Hi there"),
        (anthropic([{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "Hi"}]), Status.ANSWERED, "Hi"),
        (anthropic([{"type": "text", "text": "No."}], "refusal"), Status.REFUSED, "No."),
        (anthropic([]), Status.EMPTY, None),
        (anthropic("Hi"), Status.MALFORMED, None),
        (anthropic([{"type": "text", "text": 3}]), Status.MALFORMED, None),
        (b"nothing", Status.MALFORMED, None),
    ],
)
def test_answers_of_anthropic_are_read_off_the_bytes(body: bytes, status: Status, text: str | None) -> None:
    """Text blocks joined, thinking left out, a refusal is one."""
    reply = read("anthropic", body)
    assert (reply.status, reply.text) == (status, text)


def test_answers_of_ollama_are_read() -> None:
    """The message's content, the counts, the reason."""
    body = {"model": "q", "message": {"content": "Hi"}, "done_reason": "stop", "prompt_eval_count": 2, "eval_count": 3}
    reply = read("ollama", json.dumps(body).encode())
    assert (reply.text, reply.usage, reply.model) == ("Hi", Usage(input_tokens=2, output_tokens=3), "q")
    assert read("ollama", b'{"model": "q"}').status is Status.MALFORMED
    assert read("ollama", b'{"error": "model not found"}').status is Status.ERROR


def test_cached_input_of_anthropic_is_input() -> None:
    """The API counts what its cache holds apart from the rest: all of it was sent, and is paid for."""
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 2}
    body = {"model": "c", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn", "usage": usage}
    assert read("anthropic", json.dumps(body).encode()).usage == Usage(input_tokens=125, output_tokens=2)
