"""Any application that takes JSON and answers with JSON: the request from a template, the reply by
its JSON path.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from itertools import filterfalse
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins
from msgspec.structs import asdict, force_setattr

from pytest_fairness.documents import Misplaced
from pytest_fairness.endpoints.api_keys import read_key
from pytest_fairness.endpoints.config import (
    ALLOWED,
    LOOKS_LIKE_KEY,
    RemoteConfig,
    check_url,
    check_variable,
    is_amount,
    merged_parameters,
)
from pytest_fairness.endpoints.http import HttpExchange, encode_json, failure_line, plain_headers
from pytest_fairness.endpoints.openai import (
    RemoteEndpoint,
    Unreadable,
    judge,
    read_json,
    read_usage,
    text_or_none,
)
from pytest_fairness.endpoints.protocol import (
    AttemptError,
    CutOff,
    Evidence,
    Reply,
    Request,
    joined,
    plain_messages,
)
from pytest_fairness.endpoints.redaction import safe_url
from pytest_fairness.errors import unknown
from pytest_fairness.model import JSON, Status

# ---------------------------------------------------------------- the request: data with slots

# A slot is a known name in braces, as a whole string or inside one; every other brace stays as it
# is. What it stands for is put into parsed data, never into JSON text, and in one pass, so that no
# prompt is ever read for slots.
_SYSTEM = frozenset(("system", "messages"))
_OWN = _SYSTEM | {"prompt", "repetition"}
_SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
# What str.format or a template language would have understood, and this does not.
_CLEVER = re.compile(
    r"\{\{[A-Za-z_]\w*\}\}|\{[A-Za-z_]\w*\s*(?:\.[A-Za-z_]|\[|![rsa]\b|:)[^{}\n]*\}"
)
_MISSING = object()


def slots_of(data: JSON, *place: str | int) -> Iterator[str]:
    """Yield the slots in *data*. Raises Misplaced for one that nothing fills, or that stands where
    it cannot.
    """
    if isinstance(data, str):
        yield from _slots_of_text(data, place)
        return
    for key, item in _items(data):
        if _SLOT.search(str(key)):
            raise Misplaced(f"slots stand in values, not in keys such as {key!r}", *place, key)
        if data == {key: None} and key in _OWN:
            raise Misplaced(
                f'YAML reads {{{key}}} as a mapping: write "{{{key}}}", in quotes', *place
            )
        yield from slots_of(item, *place, key)


def _slots_of_text(text: str, place: tuple[str | int, ...]) -> Iterator[str]:
    """Yield the slots in *text*, which stands at *place*. Raises Misplaced."""
    clever = _CLEVER.search(text)
    if clever is not None:
        raise Misplaced(
            f'{clever[0]!r}: a slot is a plain name in single braces, such as "{{prompt}}"',
            *place,
        )
    names = _OWN | ALLOWED["http"]
    for name in _SLOT.findall(text):
        if name not in names:
            raise Misplaced(unknown("slot", name, names), *place)
        if name == "messages" and text != "{messages}":
            raise Misplaced(
                'the list of messages must be the whole of a value: "{messages}"', *place
            )
        yield name


def _items(data: JSON) -> Iterable[tuple[str | int, JSON]]:
    """Return keys and values of a mapping, places and items of a list; nothing of anything else."""
    if isinstance(data, dict):
        return data.items()
    if isinstance(data, list):
        return enumerate(data)
    return ()


def _filled(data: JSON, values: Mapping[str, JSON]) -> Any:
    """*data* with *values* in its slots. An entry that is a slot without a value is left out; in a
    text it is empty.
    """

    if isinstance(data, str):
        return _filled_text(data, values)
    if isinstance(data, list):
        return list(filter(_is_there, (_filled(item, values) for item in data)))
    if isinstance(data, dict):
        return _filled_entries(data, values)
    return data


def _filled_entries(data: Mapping[str, JSON], values: Mapping[str, JSON]) -> dict[str, Any]:
    """*data* with *values* in its slots, without the entries that are a slot without a value."""
    filled = {}
    for key, item in data.items():
        value = _filled(item, values)
        if _is_there(value):
            filled[key] = value
    return filled


def _is_there(value: Any) -> bool:
    """Return whether a slot had a value."""
    return value is not _MISSING


def _filled_text(text: str, values: Mapping[str, JSON]) -> Any:
    """*text* with *values* in its slots; the value itself where it is nothing but a slot."""
    whole = _SLOT.fullmatch(text)
    if whole:
        return values.get(whole[1], _MISSING)
    return _SLOT.sub(lambda slot: _as_text(values.get(slot[1], "")), text)


def _as_text(value: JSON) -> str:
    """*value* as it stands in a text: as JSON, unless it is text itself."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------- the reply: JSON paths

#: Values of one body that its paths look at, all together and counted each time. A reply takes some
#: tens. A wildcard takes some 20 µs for each, a filter looks at them again and again, and a body
#: has room for millions.
MOST_VALUES = 50_000
_LONGEST_PATH = 500
_looked_at: ContextVar[list[int]] = ContextVar("pytest_fairness_values_looked_at")


def _counted(data: Any, count: int = 0) -> Any:
    """*data* as its paths see it: what it holds is counted when they come to it. *count* were
    looked at for it.
    """
    looked = _looked_at.get()
    looked[0] += count
    if looked[0] > MOST_VALUES:
        raise Unreadable(f"its JSON paths lead to more than {MOST_VALUES:,} values of the body")
    if isinstance(data, dict):
        return _Object(data)
    if isinstance(data, list):
        return _Array(data)
    return data


class _Array(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        return (_counted(value, 1) for value in super().__iter__())

    def __getitem__(self, key: Any) -> Any:
        item = super().__getitem__(key)
        if isinstance(key, slice):
            return [_counted(value, 1) for value in item]
        return _counted(item, 1)


class _Object(dict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        return _counted(super().__getitem__(key), 1)

    def items(self) -> Any:
        return ((key, _counted(value, 1)) for key, value in super().items())


@cache
def _compiled(path: str, *place: str) -> Any:
    """The JSON path *path*, as RFC 9535 has it. Raises Misplaced, at *place*, for what is none."""
    from jsonpath import JSONPathEnvironment, JSONPathError

    if len(path) > _LONGEST_PATH:
        raise Misplaced(f"a JSON path has {_LONGEST_PATH} characters at the most", *place)
    environment = JSONPathEnvironment(strict=True)
    for name in ("match", "search"):
        # Regular expressions can take for ever on somebody else's text.
        environment.function_extensions.pop(name, None)
    try:
        return environment.compile(path)
    except (JSONPathError, ValueError, RecursionError) as error:
        why = str(error).partition("\n")[0]
        raise Misplaced(f"{path!r} is no JSON path such as $.reply.text ({why})", *place) from None


def values_at(path: str, data: Any) -> list[Any]:
    """Everything at *path*, in order; nothing where *data* is nested too deeply to look.

    Raises Unreadable where the path leads too far.
    """
    from jsonpath import JSONPathError

    try:
        values: list[Any] = _compiled(path).findall(data)
        return values
    except (JSONPathError, RecursionError, TypeError):
        return []


# ---------------------------------------------------------------- what an entry says

_MOST = 32
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# They say how the message is framed and carried on, which is not the file's to decide.
_FRAMING = frozenset(
    (
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "accept-encoding",
        "expect",
        "te",
        "trailer",
        "upgrade",
        "content-encoding",
    )
)
_SECRET = re.compile(
    r"authorization|cookie|token|secret|key|password|passwd|credential|session", re.IGNORECASE
)
# Wrong keys, requests that took too long or came too often: no answer of the application's.
_NO_ANSWER = (401, 407, 408, 425, 429)

_Scalar = str | int | float | bool


def _sendable(text: str, longest: int) -> bool:
    """Return whether a header can carry *text*."""
    return all((text.isascii(), text.isprintable(), len(text) <= longest))


class FromEnvironment(Struct, frozen=True, forbid_unknown_fields=True):
    """A header's value that is read from the environment variable ``env`` when a call needs it."""

    env: str
    prefix: str = ""

    def __post_init__(self) -> None:
        check_variable(self.env, "env")
        if not _sendable(self.prefix, 40):
            raise Misplaced('prefix must be a short text such as "Bearer "', "prefix")


_HeaderValue = str | int | float | FromEnvironment


class UsagePaths(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Paths in the body of a response to what it says of its price: tokens, or US dollars."""

    input_tokens: str | None = None
    output_tokens: str | None = None
    cost: str | None = None


class ReplyPaths(UsagePaths, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Paths in the body of a response to the text of the reply, and to what else is read there."""

    text: str
    finish_reason: str | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        for name, path in self.given.items():
            _compiled(path, name)

    @property
    def given(self) -> dict[str, str]:
        """The paths that are given."""
        return {name: path for name, path in asdict(self).items() if path is not None}


class Refusal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule by which an application says no; all that it says must hold.

    ``status``: one of these; a success where none is given. ``path``: something stands there that
    is not null, false or empty; with ``equals``, one of those values. ``contains``: one of these
    texts, in any case, in the reply, or in the text at ``path``. No regular expressions.
    """

    status: int | tuple[int, ...] = ()
    path: str | None = None
    equals: _Scalar | tuple[_Scalar, ...] = ()
    contains: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in ("status", "equals", "contains"):
            given = getattr(self, key)
            if not isinstance(given, tuple):
                force_setattr(self, key, (given,))
        self._check()
        if self.path is not None:
            _compiled(self.path, "path")

    def _check(self) -> None:
        """Raise Misplaced for a rule that says nothing, or two things at once."""
        if self.equals and (self.path is None or self.contains):
            raise Misplaced("equals goes with path, and without contains", "equals")
        if not any((self.status, self.contains, self.path)):
            raise Misplaced("a rule needs status, path or contains")
        for code in filterfalse(_may_refuse, self._all("status")):
            why = (
                f"{code!r} cannot be a refusal: it is no 2xx or 4xx, or says that nothing was asked"
            )
            raise Misplaced(why, "status")
        if not all(map(str.strip, self._all("contains"))):
            raise Misplaced("contains is a text, or a list of texts", "contains")

    def _all(self, key: str) -> tuple[Any, ...]:
        """Return the values of *key*, of which one by itself has become a tuple."""
        values: tuple[Any, ...] = getattr(self, key)
        return values

    def holds(self, status: int, data: Any, text: str | None) -> bool:
        """Return whether a response with this status, this JSON *data* (None: no JSON) and this
        reply refuses.
        """
        if not self._has_status(status):
            return False
        values = [text]
        if self.path is not None:
            values = values_at(self.path, data)
        if self.contains:
            return any(map(self._is_contained, values))
        if self.equals:
            listed = list(map(_typed, self._all("equals")))
            return any(_typed(value) in listed for value in values)
        return self.path is None or any(map(_is_something, values))

    def _has_status(self, status: int) -> bool:
        """Return whether the response has one of the statuses, a success where none is given."""
        if self.status:
            return status in self._all("status")
        return 200 <= status < 300

    def _is_contained(self, value: Any) -> bool:
        """Return whether *value* is a text that holds one of those of ``contains``."""
        if not isinstance(value, str):
            return False
        text = value.casefold()
        return any(word.casefold() in text for word in self._all("contains"))

    def __str__(self) -> str:
        parts = []
        if self.status:
            parts.append(f"status {', '.join(map(str, self._all('status')))}")
        if self.path is not None:
            parts.append(self.path)
        for word in self._all("contains"):
            parts.append(f"contains {word!r}")
        return "; ".join(parts)


def _may_refuse(code: int) -> bool:
    """Return whether a status can say that a request was answered with no."""
    return code not in _NO_ANSWER and code // 100 in (2, 4)


def _typed(value: Any) -> tuple[bool, Any]:
    """Return *value* so that true is not 1, which in Python it is and in JSON is not."""
    return isinstance(value, bool), value


def _is_something(value: Any) -> bool:
    """Return whether *value* is not null, false or empty."""
    return value not in (None, "", [], {}) and value is not False


class ApplicationConfig(RemoteConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of type ``http``."""

    url: str
    request: Any
    reply: str | ReplyPaths
    #: Asked for, or as the request has it.
    supports_system_prompt: bool | UnsetType = UNSET  # type: ignore[assignment]
    method: Literal["POST", "PUT", "GET"] = "POST"
    headers: Annotated[dict[str, _HeaderValue], Meta(max_length=_MOST)] = {}  # noqa: RUF012
    refusal: Refusal | Annotated[tuple[Refusal, ...], Meta(min_length=1, max_length=_MOST)] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_url(self.url, "url", "; with method: GET the request is the query")
        self._check_slots()
        self._check_request()
        if isinstance(self.reply, str):
            _compiled(self.reply, "reply")
            force_setattr(self, "reply", ReplyPaths(text=self.reply))
        if isinstance(self.refusal, Refusal):
            force_setattr(self, "refusal", (self.refusal,))
        self._check_headers()

    def _check_headers(self) -> None:
        """Raise Misplaced for a header that cannot be sent, or should not stand in a file."""
        for name, value in self.headers.items():
            wrong = self._wrong_with_header(name, value)
            if wrong:
                raise Misplaced(wrong, "headers", name)
        if self.api_key_env and "authorization" in map(str.lower, self.headers):
            raise Misplaced(
                "api_key_env is the Authorization header, which stands in headers too",
                "api_key_env",
            )

    def _check_slots(self) -> None:
        """Settle whether there is a system prompt. Raises Misplaced for a slot that is missing."""
        slots = self.slots
        if not slots & {"prompt", "messages"}:
            raise Misplaced(
                'nothing of the prompt would be sent: put "{prompt}" or "{messages}" where it '
                "belongs",
                "request",
            )
        has_place = not slots.isdisjoint(_SYSTEM)
        if self.supports_system_prompt is True and not has_place:
            raise Misplaced(
                'the request has no place for a system prompt: put "{system}" or "{messages}" '
                "into it",
                "supports_system_prompt",
            )
        takes_system = has_place and self.supports_system_prompt is not False
        force_setattr(self, "supports_system_prompt", takes_system)
        for name in self.default_parameters:
            if name not in slots:
                why = f'the request has no place for {name}: put "{{{name}}}" into it'
                raise Misplaced(why, "default_parameters", name)

    def _check_request(self) -> None:
        """Raise Misplaced for a request of a form that the method cannot send."""
        get = self.method == "GET"
        if not isinstance(self.request, dict):
            if get or self.request != "{messages}":
                raise Misplaced('request must be a mapping, or "{messages}"', "request")
        elif get:
            self._check_query(self.request)

    def _check_query(self, request: Mapping[str, Any]) -> None:
        """Raise Misplaced for what no query can carry."""
        for key, value in request.items():
            if value in (None, "{messages}") or isinstance(value, (dict, list)):
                why = "with method GET the request is a query: texts, numbers, true and false"
                raise Misplaced(why, "request", key)

    @property
    def slots(self) -> frozenset[str]:
        """Those of the request."""
        return frozenset(slots_of(self.request, "request"))

    def _wrong_with_header(self, name: str, value: str | float | FromEnvironment) -> str:
        """Return what is wrong with a header; empty where nothing is."""
        if not _is_settable(name):
            return f"{name!r} is no header that can be set here"
        if list(map(str.lower, self.headers)).count(name.lower()) > 1:
            return f"the header {name} stands here twice"
        if isinstance(value, FromEnvironment):
            return ""
        text = str(value)
        if not _sendable(text, 1000):
            return f"the header {name} must be a text on one line, or {{env: VARIABLE}}"
        if text and (_SECRET.search(name) or LOOKS_LIKE_KEY.search(text)):
            # The value is not repeated: it may be the key.
            return (
                f"{name} looks like a key, which must not stand in a file: name the variable that "
                'holds it, with {env: MY_TOKEN, prefix: "Bearer "}'
            )
        return ""


def _is_settable(header: str) -> bool:
    """Return whether a file may set the *header*."""
    lowered = header.lower()
    if lowered in _FRAMING or lowered.startswith("proxy-"):
        return False
    return _HEADER.fullmatch(header) is not None


# ---------------------------------------------------------------- asking


class ApplicationEndpoint(RemoteEndpoint):
    """The application that an entry of type ``http`` describes."""

    def __init__(self, config: ApplicationConfig) -> None:
        super().__init__(config)
        self._config = config
        self._slots = config.slots
        self._paths: dict[str, str] = {}
        if isinstance(config.reply, ReplyPaths):
            self._paths = config.reply.given
        #: A rule by itself has become a tuple of one.
        self._rules: tuple[Refusal, ...] = config.refusal  # type: ignore[assignment]
        self.supports_conversation = "messages" in self._slots

    def identity(self) -> dict[str, JSON]:
        """Address, template, and how the answer is read. Of a header from the environment the name
        alone: another key is no other system.
        """
        config = self._config
        headers: dict[str, JSON] = {}
        for name, value in config.headers.items():
            headers[name] = None if isinstance(value, FromEnvironment) else str(value)
        return {
            "type": self.type,
            "url": safe_url(config.url),
            "method": config.method,
            "headers": headers,
            "request": config.request,
            "reply": dict(self._paths),
            "refusal": list(map(to_builtins, self._rules)),
            "parameters": dict(self.default_parameters),
        }

    async def ask(self, request: Request) -> Reply:
        config = self._config
        filled = _filled(config.request, self._values(request))
        exchange = HttpExchange(
            config.url,
            self._headers(),
            b"",
            hint="is url right, and the method?",
            leaving=request.leaving,
        )
        if config.method == "GET":
            exchange.query = _query(filled)
        else:
            exchange.body = encode_json(filled)
        await self._sender.send(exchange, method=config.method)
        # In a thread: a wildcard over a large body takes a second, and other attempts have
        # deadlines to keep.
        try:
            return await asyncio.to_thread(self._read, exchange)
        except asyncio.CancelledError:
            raise CutOff(evidence=exchange.evidence, wire=exchange.wire()) from None

    def _values(self, request: Request) -> dict[str, JSON]:
        """Return what the slots stand for in *request*. Raises AttemptError where it cannot be sent
        as it is.
        """
        parameters = merged_parameters(self, request.parameters)
        system = [message.content for message in request.messages if message.role == "system"]
        lost = self._lost(parameters, system, len(request.messages) - len(system))
        if lost:
            why = f"endpoint {self.name!r}: its request has no place for {lost} in its entry"
            raise AttemptError(why, evidence=Evidence.AUTH)
        values: dict[str, JSON] = {
            **parameters,
            "prompt": request.messages[-1].content,
            "messages": plain_messages(request.messages),
            "repetition": request.repetition,
        }
        if system:
            values["system"] = "\n\n".join(system)
        return values

    def _lost(self, parameters: Mapping[str, JSON], system: list[str], turns: int) -> str:
        """Return what the request has no slot for, and which one is missing; empty for nothing."""
        homeless = sorted(parameters.keys() - self._slots)
        if homeless:
            return f'the parameter {homeless[0]}: put "{{{homeless[0]}}}" where it belongs'
        if system and self._slots.isdisjoint(_SYSTEM):
            return 'a system prompt: put "{system}" or "{messages}" where it belongs'
        if turns > 1 and not self.supports_conversation:
            return 'the turns before the last: put "{messages}" where the conversation belongs'
        return ""

    def _headers(self) -> dict[str, str]:
        """Return the headers of a request; those of the entry take the place of ours."""
        headers = plain_headers()
        key = read_key(self._config.api_key_env, self.name)
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        for name, value in self._config.headers.items():
            for ours in list(headers):
                if ours.lower() == name.lower():
                    del headers[ours]
            headers[name] = self._header(name, value)
        return headers

    def _header(self, name: str, value: str | float | FromEnvironment) -> str:
        """Return what the header *name* carries. Raises AttemptError for a variable not set."""
        if not isinstance(value, FromEnvironment):
            return str(value)
        key = read_key(value.env, self.name, f"headers: {name}") or ""
        return value.prefix + key

    def _read(self, exchange: HttpExchange) -> Reply:
        """Return what the exchange comes to. Raises AttemptError where no answer came."""
        reply = Reply(text=None, status=Status.MALFORMED)
        rule = None
        if exchange.status is not None and exchange.whole:
            _looked_at.set([0])
            body, reply = self._body_and_reply(exchange.received)
            try:
                rule = self._rule(exchange.status, body, reply.text)
            except Unreadable as problem:
                reply = problem.reply
        if rule is None:
            return exchange.failure(self.name) or replace(reply, wire=exchange.wire())
        wire = exchange.wire()
        refused = replace(
            reply,
            status=Status.REFUSED,
            finish_reason=reply.finish_reason or str(rule),
            error=None,
            wire=wire,
        )
        if exchange.succeeded:
            return refused
        return replace(refused, error=failure_line(exchange.status or 0, wire.response_body))

    def _body_and_reply(self, received: bytes) -> tuple[Any, Reply]:
        """Return the JSON that was *received*, None where it is none, and the reply in it."""
        body = None
        try:
            body = _counted(read_json(received))
            return body, self._reply(body)
        except Unreadable as problem:
            return body, problem.reply

    def _rule(self, status: int, body: Any, text: str | None) -> Refusal | None:
        """Return the first rule by which a response refuses. Raises Unreadable."""
        for rule in self._rules:
            if rule.holds(status, body, text):
                return rule
        return None

    def _reply(self, data: Any) -> Reply:
        """The reply in *data*: one text, or the parts of one; a number, true or false as JSON
        writes it.
        """
        values = {name: values_at(path, data) for name, path in self._paths.items()}
        texts = values["text"]
        first = {name: values_[0] for name, values_ in values.items() if values_}
        facts: dict[str, Any] = {
            "model": text_or_none(first.get("model")),
            "usage": read_usage(first, "input_tokens", "output_tokens"),
            "cost": _cost(first.get("cost")),
        }
        reason = text_or_none(first.get("finish_reason"))
        if not texts:
            raise Unreadable(
                f"the body holds nothing at {self._paths['text']}", finish_reason=reason, **facts
            )
        if len(texts) > 1:
            # What the provider's reasons mean is said of one message, not of its parts.
            return replace(judge(joined(texts), **facts), finish_reason=reason)
        text = texts[0]
        if isinstance(text, (bool, int)) or (isinstance(text, float) and math.isfinite(text)):
            text = json.dumps(text)
        return judge(text, reason, **facts)


def _query(filled: Mapping[str, Any]) -> str:
    """Return the query that *filled*, a request without lists and mappings, is sent as."""
    query = {}
    for key, value in filled.items():
        query[key] = value if isinstance(value, str) else encode_json(value).decode()
    return urlencode(query, quote_via=quote, encoding="utf-8", errors="surrogatepass")


def _cost(value: Any) -> float | None:
    """Return *value* if it can be what a call cost in dollars."""
    if is_amount(value):
        return float(value)
    return None
