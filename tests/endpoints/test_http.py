"""What a response says: the evidence, the message, how long to wait, and how much of it is kept."""

from __future__ import annotations

import gzip
import json

import pytest

from pytest_fairness.endpoints.http import (
    encode_json,
    evidence_of,
    make_wire,
    message_of,
    policy_refusal,
    retry_after,
    unpacked,
)
from pytest_fairness.endpoints.protocol import Evidence, Price


@pytest.mark.parametrize(
    ("status", "body", "evidence"),
    [
        (429, "slow down", Evidence.THROTTLED),
        (429, '{"error": {"code": "insufficient_quota"}}', Evidence.AUTH),
        (503, "", Evidence.THROTTLED),
        (529, "overloaded", Evidence.THROTTLED),
        (500, "", Evidence.SERVER),
        (408, "", Evidence.SERVER),
        (401, "", Evidence.AUTH),
        (404, "no such model", Evidence.AUTH),
        (307, "", Evidence.AUTH),
        (400, "", Evidence.REJECTED),
        (413, "", Evidence.REJECTED),
    ],
)
def test_each_status_is_evidence_of_something(status: int, body: str, evidence: Evidence) -> None:
    """The table of who is at fault and whether it was paid for."""
    assert evidence_of(status, body) is evidence


def test_a_policy_refusal_is_known_by_its_code() -> None:
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
    message = message_of(body)
    assert "sk-abc" not in message
    assert "\x1b" not in message
    assert "\n" not in message
    assert len(message) <= 300
    assert message_of('{"detail": "no"}') == "no"
    assert message_of('{"error": "plain"}') == "plain"
    assert message_of("<html>x</html>") == "<html>x</html>"


def test_the_wire_gives_the_bytes_back() -> None:
    """Bodies that are no UTF-8 survive the record."""
    data = bytes(range(256))
    wire = make_wire(url="http://h/x", request_body=b"{}", request_headers={}, response_body=data)
    assert wire.response_body.encode("utf-8", "surrogateescape") == data
    assert encode_json({"a": "\ud800é"}) == b'{"a": "\\ud800\\u00e9"}'
    assert encode_json({"a": "é"}) == '{"a": "é"}'.encode()


def test_a_body_is_kept_up_to_its_limit() -> None:
    """And not a byte more, however it was packed; what cannot be unpacked is kept as it came."""
    assert unpacked(b"1234567890ab", None, 10) == (b"1234567890", True, True)
    assert unpacked(b"1234567890", "Identity", 10) == (b"1234567890", False, True)
    assert unpacked(gzip.compress(b"0" * 50_000_000), "gzip", 1000) == (b"0" * 1000, True, True)
    assert unpacked(gzip.compress(b"hello"), "x-gzip") == (b"hello", False, True)
    assert unpacked(b"hello", "br") == (b"hello", False, False)
    assert unpacked(b"no gzip at all", "gzip") == (b"no gzip at all", False, False)


def test_a_price_is_per_million_tokens_and_per_call() -> None:
    """Dollars."""
    price = Price(input_per_million=2.0, output_per_million=10.0, per_call=0.01)
    assert price.cost(input_tokens=500_000, output_tokens=100_000) == pytest.approx(2.01)
