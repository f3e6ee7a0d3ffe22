"""What an entry of type ``http`` says beyond what every entry says, read and checked whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_fairness.endpoints.http_refusals import Refusal
from pytest_fairness.endpoints.http_template import Misplaced, Place, RequestTemplate
from pytest_fairness.endpoints.json_paths import JSONPath
from pytest_fairness.endpoints.parameters import unknown
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON

METHODS = ("POST", "PUT", "GET")
#: The keys of an entry that are read here.
HTTP_KEYS = ("method", "headers", "request", "reply", "refusal")
_REPLY_KEYS = ("text", "finish_reason", "model", "input_tokens", "output_tokens", "cost")
_REFUSAL_KEYS = ("status", "path", "equals", "contains")
_MOST = 32

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# They say how the message is framed and carried on, which is not the file's to decide.
_FRAMING = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "accept-encoding", "expect", "te", "trailer",
     "upgrade", "content-encoding")
)  # fmt: skip
_SECRET = re.compile(r"authorization|cookie|token|secret|key|password|passwd|credential|session", re.IGNORECASE)
_LOOKS_LIKE_KEY = re.compile(r"(?:sk|pk|gsk|xai|hf|AIza|AKIA|ghp)[-_]?[A-Za-z0-9_\-]{12,}|[A-Za-z0-9_\-]{40,}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
# Wrong keys, requests that took too long or came too often: no answer of the application's.
_NO_ANSWER = (401, 407, 408, 425, 429)


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """A header's value that is read from the environment variable ``variable`` when a call needs it."""

    variable: str
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where in the body of a response the text of the reply stands, and what else is read there."""

    text: JSONPath
    finish_reason: JSONPath | None = None
    model: JSONPath | None = None
    input_tokens: JSONPath | None = None
    output_tokens: JSONPath | None = None
    cost: JSONPath | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How an application is asked, and how its answers are read."""

    request: RequestTemplate
    reply: Places
    method: str = "POST"
    headers: Mapping[str, str | FromEnvironment] = field(default_factory=dict)
    refusal: tuple[Refusal, ...] = ()

    @property
    def takes_system(self) -> bool:
        """Whether a system prompt can be sent."""
        return bool(self.request.slots & {"system", "messages"})


def read_http(options: Mapping[str, JSON]) -> HttpOptions:
    """The *options* of an entry, checked. Raises :class:`~.http_template.Misplaced` with the place and the mend."""
    for key in ("request", "reply"):
        if options.get(key) is None:
            raise Misplaced((), f"type http needs {key}: {_NEEDS[key]}")
    method = options.get("method", "POST")
    if method not in METHODS:
        raise Misplaced(("method",), f"method must be one of {', '.join(METHODS)}, not {method!r}")
    try:
        request = RequestTemplate(options["request"])
    except Misplaced as error:
        raise Misplaced(("request", *error.place), str(error)) from None
    if not isinstance(request.data, dict) and not (method != "GET" and request.data == "{messages}"):
        raise Misplaced(("request",), 'request must be a mapping, or "{messages}"')
    if method == "GET":
        _check_query(request)
    return HttpOptions(
        request=request,
        reply=_places(options["reply"]),
        method=str(method),
        headers=_headers(options.get("headers") or {}),
        refusal=_rules(options.get("refusal")),
    )


_NEEDS = {
    "request": 'the JSON that is sent, as data, with "{prompt}" in its place',
    "reply": 'the JSON path of the text in the answer, such as "$.reply.text"',
}


def _check_query(request: RequestTemplate) -> None:
    assert isinstance(request.data, dict)  # noqa: S101 - checked before
    for key, value in request.data.items():
        if isinstance(value, (dict, list)) or value is None or value == "{messages}":
            raise Misplaced(("request", key), "with method GET the request is a query: texts, numbers, true and false")


def _headers(given: JSON) -> dict[str, str | FromEnvironment]:
    if not isinstance(given, dict) or len(given) > _MOST:
        raise Misplaced(("headers",), f"headers must map names to values, {_MOST} at the most")
    headers: dict[str, str | FromEnvironment] = {}
    for name, value in given.items():
        place = "headers", name
        if not _HEADER.fullmatch(name) or name.lower() in _FRAMING or name.lower().startswith("proxy-"):
            raise Misplaced(place, f"{name!r} is no header that can be set here")
        if name.lower() in (known.lower() for known in headers):
            raise Misplaced(place, f"the header {name} stands here twice")
        headers[name] = _header(name, value, place)
    return headers


def _header(name: str, value: JSON, place: Place) -> str | FromEnvironment:
    if isinstance(value, dict):
        variable, prefix = value.get("env"), value.get("prefix", "")
        odd = next((key for key in value if key not in ("env", "prefix")), None)
        if odd is not None:
            raise Misplaced((*place, odd), unknown("key", odd, ("env", "prefix")))
        if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable) or _LOOKS_LIKE_KEY.fullmatch(variable):
            raise Misplaced(place, "env must be the name of an environment variable, not the value itself")
        if not isinstance(prefix, str) or not _sendable(prefix) or len(prefix) > 40:
            raise Misplaced(place, 'prefix must be a short text such as "Bearer "')
        return FromEnvironment(variable, prefix)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not _sendable(value) or len(value) > 1000:
        raise Misplaced(place, f"the header {name} must be a text on one line, or {{env: VARIABLE}}")
    # The value is not repeated: it may be the key.
    if _SECRET.search(name) or _LOOKS_LIKE_KEY.search(value):
        raise Misplaced(
            place, f"{name} looks like a key, which must not stand in a file: name the variable that holds it, with "
            '{env: MY_TOKEN, prefix: "Bearer "}'
        )  # fmt: skip
    return value


def _sendable(text: str) -> bool:
    return text.isascii() and (text.isprintable() or not text)


def _places(given: JSON) -> Places:
    if isinstance(given, str):
        return Places(text=_path(given, ("reply",)))
    if not isinstance(given, dict):
        raise Misplaced(("reply",), f"reply must be {_NEEDS['reply']}, or map {', '.join(_REPLY_KEYS)} to such paths")
    for key in given:
        if key not in _REPLY_KEYS:
            raise Misplaced(("reply", key), unknown("key", key, _REPLY_KEYS))
    if "text" not in given:
        raise Misplaced(("reply",), f"reply needs text: {_NEEDS['reply']}")
    paths: dict[str, Any] = {key: _path(path, ("reply", key)) for key, path in given.items()}
    return Places(**paths)


def _path(text: JSON, place: Place) -> JSONPath:
    if not isinstance(text, str):
        raise Misplaced(place, f'a JSON path is a text such as "$.reply.text", not {text!r:.80}')
    try:
        return JSONPath(text)
    except UsageError as error:
        raise Misplaced(place, str(error)) from None


def _rules(given: JSON) -> tuple[Refusal, ...]:
    if given is None:
        return ()
    rules = given if isinstance(given, list) else [given]
    if not rules or len(rules) > _MOST:
        raise Misplaced(("refusal",), f"refusal is a rule or a list of 1 to {_MOST} of them")
    single = not isinstance(given, list)
    return tuple(_rule(rule, ("refusal",) if single else ("refusal", at)) for at, rule in enumerate(rules))


def _rule(rule: JSON, place: Place) -> Refusal:
    if not isinstance(rule, dict) or not rule:
        raise Misplaced(place, f"a rule says {', '.join(_REFUSAL_KEYS)}")
    for key in rule:
        if key not in _REFUSAL_KEYS:
            raise Misplaced((*place, key), unknown("key", key, _REFUSAL_KEYS))
    if "equals" in rule and ("path" not in rule or "contains" in rule):
        raise Misplaced((*place, "equals"), "equals goes with path, and without contains")
    status, words, equals = (_listed(rule.get(key)) for key in ("status", "contains", "equals"))
    for code in status:
        good = type(code) is int and (200 <= code < 300 or 400 <= code < 500) and code not in _NO_ANSWER
        if not good:
            raise Misplaced(
                (*place, "status"), f"{code!r} cannot be a refusal: it is no 2xx or 4xx, or says that nothing was asked"
            )
    if not all(isinstance(word, str) and word.strip() for word in words):
        raise Misplaced((*place, "contains"), "contains is a text, or a list of texts")
    if not all(isinstance(value, (str, int, float, bool)) for value in equals):
        raise Misplaced((*place, "equals"), "equals is a text, a number, true or false, or a list of them")
    path = _path(rule["path"], (*place, "path")) if "path" in rule else None
    return Refusal(status=tuple(status), path=path, equals=tuple(equals), contains=tuple(words))


def _listed(value: JSON) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]
