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
    for key, item in _items(data):
        if _SLOT.search(str(key)):
            raise Misplaced(f"slots stand in values, not in keys such as {key!r}", *place, key)
        if item is None and key in _OWN and isinstance(data, dict) and len(data) == 1:
            raise Misplaced(
                f'YAML reads {{{key}}} as a mapping: write "{{{key}}}", in quotes', *place
            )
        yield from slots_of(item, *place, key)


def _slots_of_text(text: str, place: tuple[str | int, ...]) -> Iterator[str]:
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

    def text(slot: re.Match[str]) -> str:
        value = values.get(slot[1], "")
        if isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False)

    if isinstance(data, str):
        whole = _SLOT.fullmatch(data)
        if whole:
            return values.get(whole[1], _MISSING)
        return _SLOT.sub(text, data)
    if isinstance(data, list):
        return [item for item in (_filled(item, values) for item in data) if item is not _MISSING]
    if isinstance(data, dict):
        entries = ((key, _filled(item, values)) for key, item in data.items())
        return {key: item for key, item in entries if item is not _MISSING}
    return data


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
    for name in (
        "match",
        "search",
    ):  # regular expressions can take for ever on somebody else's text
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
    ("host", "content-length", "transfer-encoding", "connection", "accept-encoding", "expect", "te", "trailer",
     "upgrade", "content-encoding")
)  # fmt: skip
_SECRET = re.compile(
    r"authorization|cookie|token|secret|key|password|passwd|credential|session", re.IGNORECASE
)
# Wrong keys, requests that took too long or came too often: no answer of the application's.
_NO_ANSWER = (401, 407, 408, 425, 429)

_Scalar = str | int | float | bool


def _sendable(text: str, longest: int) -> bool:
    return text.isascii() and (text.isprintable() or not text) and len(text) <= longest


class FromEnvironment(Struct, frozen=True, forbid_unknown_fields=True):
    """A header's value that is read from the environment variable ``env`` when a call needs it."""

    env: str
    prefix: str = ""

    def __post_init__(self) -> None:
        check_variable(self.env, "env")
        if not _sendable(self.prefix, 40):
            raise Misplaced('prefix must be a short text such as "Bearer "', "prefix")


class ReplyPaths(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where in the body of a response the text of the reply stands, and what else is read there."""

    text: str
    finish_reason: str | None = None
    model: str | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None
    cost: str | None = None

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
            force_setattr(self, key, given if isinstance(given, tuple) else (given,))
        if self.equals and (self.path is None or self.contains):
            raise Misplaced("equals goes with path, and without contains", "equals")
        if not (self.status or self.contains or self.path):
            raise Misplaced("a rule needs status, path or contains")
        for code in self._all("status"):
            if code in _NO_ANSWER or not (200 <= code < 300 or 400 <= code < 500):
                why = (
                    f"{code!r} cannot be a refusal: it is no 2xx or 4xx, or says that nothing was "
                    "asked"
                )
                raise Misplaced(why, "status")
        if not all(word.strip() for word in self._all("contains")):
            raise Misplaced("contains is a text, or a list of texts", "contains")
        if self.path is not None:
            _compiled(self.path, "path")

    def _all(self, key: str) -> tuple[Any, ...]:
        values: tuple[Any, ...] = getattr(self, key)
        return values

    def holds(self, status: int, data: Any, text: str | None) -> bool:
        """Return whether a response with this status, this JSON *data* (None: no JSON) and this
        reply refuses.
        """
        if status not in self._all("status") if self.status else not 200 <= status < 300:
            return False
        places = [text] if self.path is None else values_at(self.path, data)
        if self.contains:
            texts = [value.casefold() for value in places if isinstance(value, str)]
            return any(word.casefold() in text for text in texts for word in self._all("contains"))
        if self.equals:
            # In Python True is 1; in JSON it is not.
            values = [(isinstance(value, bool), value) for value in self._all("equals")]
            return any((isinstance(value, bool), value) in values for value in places)
        return self.path is None or any(
            value not in (None, "", [], {}) and value is not False for value in places
        )

    def __str__(self) -> str:
        parts = []
        if self.status:
            parts = [f"status {', '.join(map(str, self._all('status')))}"]
        if self.path is not None:
            parts += [self.path]
        return "; ".join([*parts, *(f"contains {word!r}" for word in self._all("contains"))])


class ApplicationConfig(RemoteConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of type ``http``."""

    url: str
    request: Any
    reply: str | ReplyPaths
    supports_system_prompt: bool | UnsetType = UNSET  # type: ignore[assignment]  # asked for, or as the request has it
    method: Literal["POST", "PUT", "GET"] = "POST"
    headers: Annotated[dict[str, str | int | float | FromEnvironment], Meta(max_length=_MOST)] = {}  # noqa: RUF012 - copied
    refusal: Refusal | Annotated[tuple[Refusal, ...], Meta(min_length=1, max_length=_MOST)] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_url(self.url, "url", "; with method: GET the request is the query")
        slots = self.slots
        get = self.method == "GET"
        if not slots & {"prompt", "messages"}:
            why = 'nothing of the prompt would be sent: put "{prompt}" or "{messages}" where it belongs'
            raise Misplaced(why, "request")
        if self.supports_system_prompt is True and not slots & _SYSTEM:
            why = 'the request has no place for a system prompt: put "{system}" or "{messages}" into it'
            raise Misplaced(why, "supports_system_prompt")
        takes_system = bool(slots & _SYSTEM) and self.supports_system_prompt is not False
        force_setattr(self, "supports_system_prompt", takes_system)
        for name in self.default_parameters:
            if name not in slots:
                why = f'the request has no place for {name}: put "{{{name}}}" into it'
                raise Misplaced(why, "default_parameters", name)
        if not isinstance(self.request, dict) and (get or self.request != "{messages}"):
            raise Misplaced('request must be a mapping, or "{messages}"', "request")
        for key, value in self.request.items() if get else ():
            if isinstance(value, (dict, list)) or value is None or value == "{messages}":
                why = "with method GET the request is a query: texts, numbers, true and false"
                raise Misplaced(why, "request", key)
        if isinstance(self.reply, str):
            _compiled(self.reply, "reply")
            force_setattr(self, "reply", ReplyPaths(text=self.reply))
        if isinstance(self.refusal, Refusal):
            force_setattr(self, "refusal", (self.refusal,))
        for name, value in self.headers.items():
            self._check_header(name, value)
        if self.api_key_env and any(name.lower() == "authorization" for name in self.headers):
            raise Misplaced(
                "api_key_env is the Authorization header, which stands in headers too",
                "api_key_env",
            )

    @property
    def slots(self) -> frozenset[str]:
        """Those of the request."""
        return frozenset(slots_of(self.request, "request"))

    def _check_header(self, name: str, value: str | float | FromEnvironment) -> None:
        lowered = name.lower()
        why = ""
        plain = ""
        if not isinstance(value, FromEnvironment):
            plain = str(value)
        if not _HEADER.fullmatch(name) or lowered in _FRAMING or lowered.startswith("proxy-"):
            why = f"{name!r} is no header that can be set here"
        elif sum(known.lower() == lowered for known in self.headers) > 1:
            why = f"the header {name} stands here twice"
        elif not _sendable(plain, 1000):
            why = f"the header {name} must be a text on one line, or {{env: VARIABLE}}"
        elif plain and (_SECRET.search(name) or LOOKS_LIKE_KEY.search(plain)):
            # The value is not repeated: it may be the key.
            why = (
                f"{name} looks like a key, which must not stand in a file: name the variable that "
                "holds it, with "
            )
            why += '{env: MY_TOKEN, prefix: "Bearer "}'
        if why:
            raise Misplaced(why, "headers", name)


# ---------------------------------------------------------------- asking


class ApplicationEndpoint(RemoteEndpoint):
    """The application that an entry of type ``http`` describes."""

    def __init__(self, config: ApplicationConfig) -> None:
        super().__init__(config)
        self._config = config
        self._slots = config.slots
        if isinstance(config.reply, ReplyPaths):
            self._paths = config.reply.given
        else:
            self._paths = {}
        self._rules: tuple[Refusal, ...] = config.refusal  # type: ignore[assignment]  # one is a tuple of one
        self.supports_conversation = "messages" in self._slots

    def identity(self) -> dict[str, JSON]:
        """Address, template, and how the answer is read. Of a header from the environment the name
        alone: another key is no other system.
        """
        config = self._config
        headers = self._config.headers.items()
        return {
            "type": self.type,
            "url": safe_url(config.url),
            "method": config.method,
            "headers": {
                name: None if isinstance(value, FromEnvironment) else str(value)
                for name, value in headers
            },
            "request": config.request,
            "reply": dict(self._paths),
            "refusal": [to_builtins(rule) for rule in self._rules],
            "parameters": dict(self.default_parameters),
        }

    async def ask(self, request: Request) -> Reply:
        config = self._config
        filled = _filled(self._config.request, self._values(request))
        query = {}
        if config.method == "GET":
            query = {
                key: value if isinstance(value, str) else encode_json(value).decode()
                for key, value in filled.items()
            }
        exchange = HttpExchange(
            config.url,
            self._headers(),
            b"" if config.method == "GET" else encode_json(filled),
            query=urlencode(query, quote_via=quote, encoding="utf-8", errors="surrogatepass"),
            hint="is url right, and the method?",
            leaving=request.leaving,
        )
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
        lost = ""
        if homeless := sorted(parameters.keys() - self._slots):
            lost = f'the parameter {homeless[0]}: put "{{{homeless[0]}}}" where it belongs'
        elif system and not self._slots & _SYSTEM:
            lost = 'a system prompt: put "{system}" or "{messages}" where it belongs'
        elif len(request.messages) - len(system) > 1 and not self.supports_conversation:
            lost = 'the turns before the last: put "{messages}" where the conversation belongs'
        if lost:
            why = f"endpoint {self.name!r}: its request has no place for {lost} in its entry"
            raise AttemptError(why, evidence=Evidence.AUTH)
        return {
            **parameters,
            "prompt": request.messages[-1].content,
            "messages": plain_messages(request.messages),
            "repetition": request.repetition,
            **({"system": "\n\n".join(system)} if system else {}),
        }

    def _headers(self) -> dict[str, str]:
        headers = plain_headers()
        if (key := read_key(self._config.api_key_env, self.name)) is not None:
            headers["Authorization"] = f"Bearer {key}"
        for name, value in self._config.headers.items():
            headers = {
                header: kept for header, kept in headers.items() if header.lower() != name.lower()
            }
            if isinstance(value, FromEnvironment):
                headers[name] = (
                    f"{value.prefix}{read_key(value.env, self.name, f'headers: {name}') or ''}"
                )
            else:
                headers[name] = str(value)
        return headers

    def _read(self, exchange: HttpExchange) -> Reply:
        """Return what the exchange comes to. Raises AttemptError where no answer came."""
        body = None
        reply = Reply(text=None, status=Status.MALFORMED)
        rule = None
        if exchange.status is not None and exchange.whole:
            _looked_at.set([0])
            try:
                body = _counted(read_json(exchange.received))
                reply = self._reply(body)
            except Unreadable as problem:
                reply = problem.reply
            try:
                rule = next(
                    (r for r in self._rules if r.holds(exchange.status, body, reply.text)), None
                )
            except Unreadable as problem:
                reply = problem.reply
        if rule is None:
            return exchange.failure(self.name) or replace(reply, wire=exchange.wire())
        reason = reply.finish_reason or str(rule)
        wire = exchange.wire()
        line = None
        if not exchange.succeeded:
            line = failure_line(exchange.status or 0, wire.response_body)
        return replace(reply, status=Status.REFUSED, finish_reason=reason, error=line, wire=wire)

    def _reply(self, data: Any) -> Reply:
        """The reply in *data*: one text, or the parts of one; a number, true or false as JSON
        writes it.
        """
        by_place = {place: values_at(path, data) for place, path in self._paths.items()}
        texts = by_place["text"]
        first = {place: values[0] for place, values in by_place.items() if values}
        cost = first.get("cost")
        if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0 <= cost < 1e6:
            cost = None
        facts: dict[str, Any] = {
            "model": text_or_none(first.get("model")),
            "usage": read_usage(first, "input_tokens", "output_tokens"),
            "cost": None if cost is None else float(cost),
        }
        reason = text_or_none(first.get("finish_reason"))
        if not texts:
            raise Unreadable(
                f"the body holds nothing at {self._paths['text']}", finish_reason=reason, **facts
            )
        if len(texts) > 1:
            odd = next((text for text in texts if not isinstance(text, str)), None)
            return replace(
                judge("".join(texts) if odd is None else odd, **facts), finish_reason=reason
            )
        (text,) = texts
        if isinstance(text, (bool, int)) or (isinstance(text, float) and math.isfinite(text)):
            text = json.dumps(text)
        return judge(text, reason, **facts)
