"""What a failed response says: the evidence, the message, how long to wait."""

from __future__ import annotations

import json

import pytest

from pytest_fairness.endpoints.chat_reply import read_chat_completion
from pytest_fairness.endpoints.evidence import evidence_of, message_of, policy_refusal, retry_after
from pytest_fairness.endpoints.litellm_replies import read_anthropic, read_any
from pytest_fairness.endpoints.ollama import OllamaEndpoint
from pytest_fairness.endpoints.protocol import Evidence, Price
from pytest_fairness.endpoints.wire import BoundedBody, encode_json, make_wire
from pytest_fairness.model import Status, Usage


@pytest.mark.parametrize(
    ("status", "body", "evidence"),
    [
        (429, "slow down", Evidence.THROTTLED),
        (429, '{"error": {"code": "insufficient_quota"}}', Evidence.AUTH),
        (503, "", Evidence.THROTTLED),
        (529, "overloaded", Evidence.THROTTLED),
        (500, "", Evidence.SERVER),
        (502, "", Evidence.SERVER),
        (504, "", Evidence.SERVER),
        (408, "", Evidence.SERVER),
        (401, "", Evidence.AUTH),
        (403, "", Evidence.AUTH),
        (404, "no such model", Evidence.AUTH),
        (307, "", Evidence.AUTH),
        (400, "", Evidence.REJECTED),
        (422, "", Evidence.REJECTED),
        (413, "", Evidence.REJECTED),
    ],
)
def test_each_status_is_evidence_of_something(status: int, body: str, evidence: Evidence) -> None:
    """The table of who is at fault and whether it was paid for."""
    assert evidence_of(status, body) is evidence


def test_a_policy_refusal_is_told_by_its_code() -> None:
    """A 400 by which the provider's policy declines is an answer; any other 400 is not."""
    assert policy_refusal(400, '{"error": {"code": "content_filter"}}') == "content_filter"
    assert policy_refusal(400, '{"error": {"code": "content_policy_violation"}}') == "content_policy_violation"
    assert policy_refusal(400, '{"error": {"code": "context_length_exceeded"}}') is None
    assert policy_refusal(500, "content_filter") is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After-Ms": "1500", "Retry-After": "9"}, 1.5),
        ({"Retry-After": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"Retry-After": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "3600"}, 3600.0),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds or a date; what makes no sense is ignored. Capping it is the engine's affair."""
    assert retry_after(headers, now=10.0) == seconds


def test_a_message_is_one_redacted_line() -> None:
    """The provider's own words, without keys, control characters or length."""
    body = json.dumps({"error": {"message": "bad key sk-abcdefghij1234\n\x1b[31mred" + "x" * 500}})
    said = message_of(body)
    assert "sk-abc" not in said
    assert "\x1b" not in said
    assert "\n" not in said
    assert len(said) <= 300
    assert message_of('{"detail": "no"}') == "no"
    assert message_of('{"error": "plain"}') == "plain"
    assert message_of("<html>x</html>") == "<html>x</html>"


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
    parsed = read_chat_completion(body)
    assert (parsed.status, parsed.text, parsed.finish_reason) == (status, text, reason)
    assert (parsed.error is None) == (status in (Status.ANSWERED, Status.REFUSED))


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
    assert read_chat_completion(choice({"content": "Hi"}, usage=usage)).usage == expected


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
    for read in (read_anthropic, read_any):
        parsed = read(body, None)
        assert (parsed.status, parsed.text) == (status, text)


def test_an_unknown_format_is_read_as_litellm_read_it() -> None:
    """And is malformed where litellm made nothing of it."""
    normalised = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
    assert read_any(b'{"candidates": []}', normalised).text == "Hi"
    assert read_any(b'{"candidates": []}', None).status is Status.MALFORMED
    assert read_any(choice({"content": "Ho"}), normalised).text == "Ho"


def test_answers_of_ollama_are_read() -> None:
    """The message's content, the counts, the reason."""
    read = OllamaEndpoint(name="o", model="q", base_url="http://x").read
    body = {"model": "q", "message": {"content": "Hi"}, "done_reason": "stop", "prompt_eval_count": 2, "eval_count": 3}
    parsed = read(json.dumps(body).encode())
    assert (parsed.text, parsed.usage, parsed.model) == ("Hi", Usage(input_tokens=2, output_tokens=3), "q")
    assert read(b'{"model": "q"}').status is Status.MALFORMED
    assert read(b'{"error": "model not found"}').status is Status.ERROR


def test_the_wire_gives_the_bytes_back() -> None:
    """Bodies that are no UTF-8 survive the record."""
    data = bytes(range(256))
    wire = make_wire(url="http://h/x", request_body=b"{}", request_headers={}, response_body=data)
    assert wire.response_body.encode("utf-8", "surrogateescape") == data
    assert encode_json({"a": "\ud800é"}) == b'{"a": "\\ud800\\u00e9"}'
    assert encode_json({"a": "é"}) == '{"a": "é"}'.encode()


def test_a_body_is_kept_up_to_its_limit() -> None:
    """And not a byte more, however it was packed."""
    import gzip

    plain = BoundedBody(None, limit=10)
    assert plain.feed(b"123456")
    assert not plain.feed(b"7890ab")
    assert (plain.data, plain.full) == (b"1234567890", True)
    bomb = BoundedBody("gzip", limit=1000)
    assert not bomb.feed(gzip.compress(b"0" * 50_000_000))
    assert (len(bomb.data), bomb.full) == (1000, True)
    packed = BoundedBody("gzip")
    assert packed.feed(gzip.compress(b"hello"))
    assert (packed.data, packed.readable) == (b"hello", True)
    assert not BoundedBody("br").readable
    broken = BoundedBody("gzip")
    broken.feed(b"no gzip at all")
    assert not broken.readable


def test_a_price_is_per_million_tokens_and_per_call() -> None:
    """Dollars."""
    price = Price(input_per_million=2.0, output_per_million=10.0, per_call=0.01)
    assert price.cost(input_tokens=500_000, output_tokens=100_000) == pytest.approx(2.01)
