"""Keys do not get out, in whatever form; everything else stays as it was."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.endpoints.redaction import (
    REQUEST_HEADERS,
    RESPONSE_HEADERS,
    redact,
    redact_values,
    remember,
    safe_headers,
    safe_url,
)

SECRET = "canary+/=päss word-9Z"
BYTES = SECRET.encode()
KEY = "canary-Key/9q+tU=aB7"


@pytest.fixture(autouse=True)
def _secret() -> None:
    remember(SECRET)
    remember(KEY)


def test_a_known_secret_is_cut_in_every_form() -> None:
    """By value, also within longer words and encodings, from texts and from verbatim bodies."""
    encoded = [
        base64.b64encode(text)
        for text in (BYTES, b"user:" + BYTES, b"me:" + BYTES + b":you", b"x:" + BYTES)
    ]
    html = "".join(letter if letter.isalnum() else f"&#{ord(letter)};" for letter in SECRET)
    ascii_json = json.dumps(SECRET).strip('"').replace("/", "\\/").replace("+", "\\u002B")
    others = [
        html,
        html.replace("&", "&amp;"),
        ascii_json,
        json.dumps(ascii_json).strip('"'),
        SECRET.upper(),
    ]
    forms = [
        *others,
        SECRET,
        quote(SECRET, safe=""),
        BYTES.hex(),
        base64.urlsafe_b64encode(BYTES).decode(),
    ]
    for form in (*forms, *(one.decode() for one in encoded)):
        for clean in (redact, redact_values):
            left = clean(f"before {form} after")
            assert "[redacted]" in left, form
            assert form not in left
            # Nothing of any length that could be turned back is left: the ends of base64 hold two
            # bytes at most.
            longest = max(
                (part for part in left.split() if part not in ("before", "after")), key=len
            )
            assert len(longest.replace("[redacted]", "")) <= 12


def test_a_secret_in_a_spelling_of_its_own_is_cut_as_what_it_means_too() -> None:
    """Passwords stand in variables as addresses spell them, and in replies as they are."""
    remember("percent%2FHorse%2Bstaple")
    assert redact_values("It is percent/Horse+staple.") == "It is [redacted]."


def test_a_text_that_was_seen_before_a_secret_is_cut_after_it() -> None:
    """Of each of its lines, where it has several."""
    text = "It is late-line-2, of late-line-1."
    assert redact(text) == redact_values(text) == text
    remember("late-line-1\nlate-line-2\n")
    assert redact(text) == redact_values(text) == "It is [redacted], of [redacted]."


def test_a_secret_whose_beginning_reads_as_an_escape_is_cut() -> None:
    """It stands there as it is, and in no further reading."""
    remember("1st-of-secrets")
    assert redact_values("It is %41st-of-secrets.") == "It is %4[redacted]."


def test_a_secret_within_another_leaves_nothing_of_that() -> None:
    """At its beginning, or where it is seen in the second reading alone."""
    for secret in ("first-part", "first-part-and-rest", "twice%2541spelt-tail", "%41spelt"):
        remember(secret)
    for text in ("first-part-and-rest", "twice%2541spelt-tail"):
        assert redact_values(f"It is {text}.") == "It is [redacted]."


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcDEF1234567890",
        "x-api-key: abcdef123456",
        '{"api_key": "abcdef123456"}',
        "Authorization: Bearer abc.def.ghi-123456",
        "bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc",
        "key AIzaSyA1234567890abcdefghijklmnop",
        "AKIAIOSFODNN7EXAMPLE",
        "https://user:passw0rd@example.com/v1",
        "xoxb-123456789012-abcdef",
    ],
)
def test_what_looks_like_a_key_is_cut_unannounced(text: str) -> None:
    """By pattern, for keys that nobody announced."""
    secrets = ("abcDEF", "abcdef123456", "ghi-123456", "eyJ", "AIza", "AKIA", "passw0rd", "xoxb")
    assert not any(secret in redact(text) for secret in secrets)


SPELT = st.sampled_from(
    [str, str.upper, json.dumps, quote, lambda text: text.replace("/", "&#x2f;"), repr]
)


@settings(max_examples=100, deadline=None)
@given(st.text(), st.lists(SPELT, max_size=3), st.text())
def test_what_stands_around_a_secret_stays(
    before: str, spelling: list[Callable[[str], str]], after: str
) -> None:
    """Whatever that is, and however often the secret was wrapped."""
    secret = KEY
    for spell in spelling:
        secret = spell(secret)
    cut = redact_values(f"{before} {secret} {after}")
    assert cut.startswith(f"{before} ")
    assert cut.endswith(f" {after}")
    assert "[redacted]" in cut


def test_a_quarter_of_a_megabyte_of_escapes_is_read_through() -> None:
    """Each of which is looked at, in every layer, in a time that is proportional to their number."""
    for unit in ('\\"', "\\", "&amp;", "%41", "\\u0041", f"{SECRET} "):
        text = unit * (250_000 // len(unit))
        assert (redact_values(text) == text) == (SECRET not in text)


@settings(max_examples=50, deadline=None)
@given(st.text())
def test_redaction_is_total_and_settles(text: str) -> None:
    """Any text can be redacted, and what is clean stays as it is."""
    once = redact(text)
    assert redact(once) == once


def test_ordinary_words_are_left_alone() -> None:
    """Redaction does not rewrite letters about people; a "key" of a letter or two would cut up
    every text.
    """
    for short in ("ab", "", None):
        remember(short)
    plain = (
        "The task-force asked for risk-averse people.",
        "Desk-based skills, bearer of news.",
        "a key: none",
    )
    for text in (*plain, "http://a/b?c", "ab absent"):
        assert redact(text) == text


def test_logged_addresses_have_no_user_and_no_query() -> None:
    """Keys hide in both; the path may name a deployment and stays."""
    assert safe_url("https://u:p@h.example:8443/v1/x?key=abc#frag") == "https://h.example:8443/v1/x"
    assert safe_url("https://u@e.example:p@h.example/v1") == "https://h.example/v1"
    assert safe_url("http://[::1]:80/a") == "http://[::1]:80/a"
    assert safe_url("http://[broken?key=abc") == "http://[broken"


def test_headers_are_logged_by_allow_list() -> None:
    """Everything that is not on the list is dropped, whatever its name, and a key from the rest."""
    headers = {
        "Authorization": "Bearer x",
        "X-Api-Key": "k",
        "X-Custom": "c",
        "Content-Type": "a/b",
        "Cookie": "z",
    }
    assert safe_headers(headers, REQUEST_HEADERS) == {"content-type": "a/b"}
    answer = {
        "Set-Cookie": "a",
        "Retry-After": "2",
        "X-Request-Id": "r",
        "openai-organization": "acme",
    }
    assert safe_headers(answer, RESPONSE_HEADERS) == {"retry-after": "2", "x-request-id": "r"}
    assert safe_headers({"Server": f"of {KEY}"}, RESPONSE_HEADERS) == {"server": "of [redacted]"}
