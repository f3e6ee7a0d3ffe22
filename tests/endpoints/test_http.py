"""What a response says: the evidence, the message, how long to wait, and how much of it is kept."""

from __future__ import annotations

import gzip
import json

import pytest

from pytest_fairness.endpoints import http
from pytest_fairness.endpoints.protocol import Price


def test_each_status_is_evidence_of_something() -> None:
    """The table of who is at fault and whether it was paid for."""
    expected = {429: "throttled", 503: "throttled", 529: "throttled", 500: "server", 408: "server", 401: "auth",
                404: "auth", 307: "auth", 400: "rejected", 413: "rejected"}  # fmt: skip
    assert {status: http.evidence_of(status, "slow down") for status in expected} == expected
    assert http.evidence_of(429, '{"error": {"code": "insufficient_quota"}}') == "auth"


def test_a_policy_refusal_is_known_by_its_code() -> None:
    """A 400 by which the provider's policy declines is an answer; any other 400 is not."""
    assert http.policy_refusal(400, '{"error": {"code": "content_filter"}}') == "content_filter"
    assert (
        http.policy_refusal(400, '{"error": {"code": "content_policy_violation"}}')
        == "content_policy_violation"
    )
    assert http.policy_refusal(400, '{"error": {"code": "context_length_exceeded"}}') is None
    assert http.policy_refusal(500, "content_filter") is None


def test_retry_after_is_read_in_all_its_forms() -> None:
    """Seconds, milliseconds or a date; what makes no sense is ignored. Capping it is the engine's
    affair.
    """
    forms = {"2": 2.0, "0.5": 0.5, "3600": 3600.0, "Thu, 01 Jan 1970 00:01:40 GMT": 90.0,
             "Thu, 01 Jan 1970 00:00:01 GMT": 0.0, "-1": None, "nan": None, "inf": None, "soon": None}  # fmt: skip
    assert {form: http.retry_after({"Retry-After": form}, now=10.0) for form in forms} == forms
    assert http.retry_after({"Retry-After-Ms": "1500", "retry-after": "9"}) == 1.5
    assert http.retry_after({}) is None


def test_a_message_is_one_redacted_line() -> None:
    """The provider's own words, without keys, control characters or length."""
    body = json.dumps({"error": {"message": "bad key sk-abcdefghij1234\n\x1b[31mred" + "x" * 500}})
    message = http.message_of(body)
    assert not any(part in message for part in ("sk-abc", "\x1b", "\n"))
    assert len(message) <= 300
    bodies = {
        '{"detail": "no"}': "no",
        '{"error": "plain"}': "plain",
        "<html>x</html>": "<html>x</html>",
    }
    assert {body: http.message_of(body) for body in bodies} == bodies


def test_the_wire_gives_the_bytes_back() -> None:
    """Bodies that are no UTF-8 survive the record."""
    data = bytes(range(256))
    wire = http.make_wire(
        url="http://h/x", request_body=b"{}", request_headers={}, response_body=data
    )
    assert wire.response_body.encode("utf-8", "surrogateescape") == data
    assert http.encode_json({"a": "\ud800é"}) == b'{"a": "\\ud800\\u00e9"}'
    assert http.encode_json({"a": "é"}) == '{"a": "é"}'.encode()


def test_a_body_is_kept_up_to_its_limit() -> None:
    """And not a byte more, however it was packed; what cannot be unpacked is kept as it came."""
    assert http.unpacked(b"1234567890ab", None, 10) == (b"1234567890", True, True)
    assert http.unpacked(b"1234567890", "Identity", 10) == (b"1234567890", False, True)
    assert http.unpacked(gzip.compress(b"0" * 5_000_000), "gzip", 1000) == (b"0" * 1000, True, True)
    assert http.unpacked(gzip.compress(b"hello"), "x-gzip") == (b"hello", False, True)
    assert http.unpacked(b"hello", "br") == (b"hello", False, False)
    assert http.unpacked(b"no gzip at all", "gzip") == (b"no gzip at all", False, False)


def test_a_price_is_per_million_tokens_and_per_call() -> None:
    """Dollars."""
    price = Price(input_per_million=2.0, output_per_million=10.0, per_call=0.01)
    assert price.cost(input_tokens=500_000, output_tokens=100_000) == pytest.approx(2.01)
