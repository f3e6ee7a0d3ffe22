"""Any application that takes JSON and answers with JSON: the request from a template, the reply by its JSON path."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote, urlencode

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins
from msgspec.structs import asdict, force_setattr

from pytest_fairness.documents import Misplaced
from pytest_fairness.endpoints.chat import Unreadable, judge, read_json, text_or_none
from pytest_fairness.endpoints.config import (
    ALLOWED,
    LOOKS_LIKE_KEY,
    VARIABLE,
    RemoteConfig,
    check_url,
    merged_parameters,
)
from pytest_fairness.endpoints.http import (
    CONCURRENCY,
    HttpExchange,
    Sender,
    encode_json,
    failure_line,
    plain_headers,
    token_count,
)
from pytest_fairness.endpoints.protocol import AttemptError, CutOff, Evidence, Reply, Request
from pytest_fairness.endpoints.redaction import read_key, safe_url
from pytest_fairness.errors import UsageError, unknown
from pytest_fairness.model import JSON, Status, Usage

if TYPE_CHECKING:
    from jsonpath import JSONPathEnvironment

_HINT = "is url right, and the method?"
_MOST = 32

# ---------------------------------------------------------------- the request: data with slots

_OWN = frozenset(("prompt", "system", "messages", "repetition"))
_SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
# What str.format or a template language would have understood, and this does not.
_CLEVER = re.compile(r"\{\{[A-Za-z_]\w*\}\}|\{[A-Za-z_]\w*\s*(?:\.[A-Za-z_]|\[|![rsa]\b|:)[^{}\n]*\}")
_MISSING = object()


class RequestTemplate:
    """*data* with slots: ``{prompt}``, ``{system}``, ``{messages}``, ``{repetition}`` and those of parameters.

    A slot is a known name in braces, as a whole string or inside one; every other brace stays as it is. What a slot
    stands for is put into parsed data, never into JSON text, and all are filled in one pass, so that neither a prompt
    nor a reply is ever read for slots. Raises :class:`Misplaced` for a slot that nothing fills, or that stands where
    it cannot.
    """

    def __init__(self, data: JSON) -> None:
        self.data = data
        self.slots = frozenset(slot for place, text in _strings(data, ("request",)) for slot in _slots(text, place))
        if not self.slots & {"prompt", "messages"}:
            raise Misplaced(
                'nothing of the prompt would be sent: put "{prompt}" or "{messages}" where it belongs', "request"
            )

    def fill(self, values: Mapping[str, JSON]) -> Any:
        """The data with *values* in their slots. An entry that is a slot without a value is left out; inside a text it
        is empty.
        """
        return _filled(self.data, values)


def _strings(data: JSON, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(data, str):
        yield place, data
    elif isinstance(data, list):
        for number, item in enumerate(data):
            yield from _strings(item, (*place, number))
    elif isinstance(data, dict):
        for key, item in data.items():
            if _SLOT.search(key):
                raise Misplaced(f"slots stand in values, not in keys such as {key!r}", *place, key)
            if item is None and key in _OWN and len(data) == 1:
                raise Misplaced(f'YAML reads {{{key}}} as a mapping: write "{{{key}}}", in quotes', *place)
            yield from _strings(item, (*place, key))


def _slots(text: str, place: tuple[str | int, ...]) -> list[str]:
    clever = _CLEVER.search(text)
    if clever is not None:
        raise Misplaced(f'{clever[0]!r}: a slot is a plain name in single braces, such as "{{prompt}}"', *place)
    names, known = _SLOT.findall(text), _OWN | ALLOWED["http"]
    for name in names:
        if name not in known:
            raise Misplaced(unknown("slot", name, known), *place)
    if "messages" in names and text != "{messages}":
        raise Misplaced('the list of messages must be the whole of a value: "{messages}"', *place)
    return names


def _filled(data: JSON, values: Mapping[str, JSON]) -> Any:
    if isinstance(data, str):
        whole = _SLOT.fullmatch(data)
        return values.get(whole[1], _MISSING) if whole else _SLOT.sub(lambda slot: _text(values.get(slot[1])), data)
    if isinstance(data, list):
        return [item for item in (_filled(item, values) for item in data) if item is not _MISSING]
    if isinstance(data, dict):
        entries = ((key, _filled(item, values)) for key, item in data.items())
        return {key: item for key, item in entries if item is not _MISSING}
    return data


def _text(value: JSON) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------- the reply: JSON paths

#: Values of one body that its paths look at, all together and counted each time. A reply takes some tens. A wildcard
#: takes some 20 µs for each, a filter looks at them again and again, and a body has room for millions.
MOST_VALUES = 50_000
_LONGEST_PATH = 500


class TooManyValuesError(Exception):
    """The paths lead to more values than a reply has."""


@cache
def _library() -> tuple[JSONPathEnvironment, type[Exception]]:
    """What reads paths, and what it raises. Raises UsageError where it is not installed."""
    try:
        from jsonpath import JSONPathEnvironment, JSONPathError
    except ImportError:
        raise UsageError("JSON paths need a package that is missing: pip install python-jsonpath") from None

    environment = JSONPathEnvironment(strict=True)
    for name in ("match", "search"):  # regular expressions can take for ever on somebody else's text
        environment.function_extensions.pop(name, None)
    return environment, JSONPathError


class JSONPath:
    """A path such as ``$.choices[0].text``, as RFC 9535 has it. Raises UsageError for what is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > _LONGEST_PATH:
            raise UsageError(f"a JSON path has {_LONGEST_PATH} characters at the most")
        environment, self._error = _library()
        try:
            self._path = environment.compile(text)
        except (self._error, ValueError, RecursionError) as error:
            why = str(error).partition("\n")[0]
            raise UsageError(f"{text!r} is no JSON path such as $.reply.text ({why})") from None

    def all(self, data: Any) -> list[Any]:
        """Everything at the path, in order; nothing where *data* is nested too deeply to look.

        Raises TooManyValuesError where *data* is :func:`counted`, and the path leads too far.
        """
        try:
            return [_plain(found) for found in self._path.findall(data)]
        except (self._error, RecursionError, TypeError):
            return []


@dataclass(slots=True)
class _Allowance:
    """How many values may still be looked at."""

    values: int

    def take(self, count: int) -> None:
        self.values -= count
        if self.values < 0:
            raise TooManyValuesError(f"its JSON paths lead to more than {MOST_VALUES:,} values of the body")


class _CountedValue:
    """A list or an object of a body whose values are counted as they are looked at."""

    __slots__ = ("data", "left")

    def __init__(self, data: Any, left: _Allowance) -> None:
        self.data, self.left = data, left

    def __getitem__(self, key: Any) -> Any:
        found = self.data[key]
        if isinstance(key, slice):
            self.left.take(len(found))
            return [_wrapped(value, self.left) for value in found]
        self.left.take(1)
        return _wrapped(found, self.left)

    def __len__(self) -> int:
        return len(self.data)

    def __eq__(self, other: object) -> bool:
        return bool(self.data == _plain(other))

    __hash__ = None  # type: ignore[assignment]  # as of a list or a dict


class _Object(_CountedValue, Mapping[str, Any]):
    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        self.left.take(len(self.data))
        return iter(self.data)

    def items(self) -> Any:
        self.left.take(len(self.data))
        return ((key, _wrapped(value, self.left)) for key, value in self.data.items())


class _Array(_CountedValue, Sequence[Any]):
    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        self.left.take(len(self.data))
        return (_wrapped(value, self.left) for value in self.data)


def counted(data: Any) -> Any:
    """*data* for the paths that are read off one body: they look at :data:`MOST_VALUES` all together."""
    return _wrapped(data, _Allowance(MOST_VALUES))


def _wrapped(data: Any, left: _Allowance) -> Any:
    if isinstance(data, dict):
        return _Object(data, left)
    return _Array(data, left) if isinstance(data, list) else data


def _plain(value: Any) -> Any:
    return value.data if isinstance(value, _CountedValue) else value


# ---------------------------------------------------------------- what an entry says

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# They say how the message is framed and carried on, which is not the file's to decide.
_FRAMING = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "accept-encoding", "expect", "te", "trailer",
     "upgrade", "content-encoding")
)  # fmt: skip
_SECRET = re.compile(r"authorization|cookie|token|secret|key|password|passwd|credential|session", re.IGNORECASE)
# Wrong keys, requests that took too long or came too often: no answer of the application's.
_NO_ANSWER = (401, 407, 408, 425, 429)
_NOTHING: tuple[Any, ...] = (None, False, "", [], {})

Scalar = str | int | float | bool


class FromEnvironment(Struct, frozen=True, forbid_unknown_fields=True):
    """A header's value that is read from the environment variable ``env`` when a call needs it."""

    env: str
    prefix: str = ""

    def __post_init__(self) -> None:
        if not VARIABLE.fullmatch(self.env) or LOOKS_LIKE_KEY.fullmatch(self.env):
            raise Misplaced("env must be the name of an environment variable, not the value itself", "env")
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
        for name, path in self.paths.items():
            _check_path(path, name)

    @property
    def paths(self) -> dict[str, str]:
        """Those that are given."""
        return {name: path for name, path in asdict(self).items() if path is not None}


class Refusal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule by which an application says no; all that it says must hold.

    ``status``: one of these; a success where none is given. ``path``: something stands there that is not null, false or
    empty; with ``equals``, one of those values. ``contains``: one of these texts, in any case, in the reply, or in the
    text at ``path``. No regular expressions.
    """

    status: int | tuple[int, ...] = ()
    path: str | None = None
    equals: Scalar | tuple[Scalar, ...] = ()
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
                why = f"{code!r} cannot be a refusal: it is no 2xx or 4xx, or says that nothing was asked"
                raise Misplaced(why, "status")
        if not all(word.strip() for word in self._all("contains")):
            raise Misplaced("contains is a text, or a list of texts", "contains")
        if self.path is not None:
            _check_path(self.path, "path")

    def _all(self, key: str) -> tuple[Any, ...]:
        values: tuple[Any, ...] = getattr(self, key)
        return values

    def holds(self, status: int, data: Any, text: str | None) -> bool:
        """Whether a response with this status, this JSON *data* (None: no JSON) and this reply refuses."""
        if status not in self._all("status") if self.status else not 200 <= status < 300:
            return False
        found = [] if self.path is None else _path(self.path).all(data)
        if self.contains:
            texts = [one.casefold() for one in ([text] if self.path is None else found) if isinstance(one, str)]
            return any(word.casefold() in one for one in texts for word in self._all("contains"))
        if self.equals:
            return any(_same(one, value) for one in found for value in self._all("equals"))
        return self.path is None or any(all(not _same(one, nothing) for nothing in _NOTHING) for one in found)

    def __str__(self) -> str:
        parts = [f"status {', '.join(map(str, self._all('status')))}"] if self.status else []
        parts += [] if self.path is None else [self.path]
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
        template = self.template
        takes_system = bool(template.slots & {"system", "messages"})
        if self.supports_system_prompt is True and not takes_system:
            why = 'the request has no place for a system prompt: put "{system}" or "{messages}" into it'
            raise Misplaced(why, "supports_system_prompt")
        force_setattr(self, "supports_system_prompt", takes_system and self.supports_system_prompt is not False)
        for name in self.default_parameters:
            if name not in template.slots:
                why = f'the request has no place for {name}: put "{{{name}}}" into it'
                raise Misplaced(why, "default_parameters", name)
        self._check_request()
        if isinstance(self.reply, str):
            _check_path(self.reply, "reply")
        for name, value in self.headers.items():
            self._check_header(name, value)
        if self.api_key_env and any(name.lower() == "authorization" for name in self.headers):
            raise Misplaced("api_key_env is the Authorization header, which stands in headers too", "api_key_env")

    @property
    def template(self) -> RequestTemplate:
        """The request, with its slots."""
        return RequestTemplate(self.request)

    @property
    def paths(self) -> dict[str, str]:
        """What is read of a response, and where."""
        return self.reply.paths if isinstance(self.reply, ReplyPaths) else {"text": self.reply}

    @property
    def rules(self) -> tuple[Refusal, ...]:
        """The rules by which the application says no."""
        return (self.refusal,) if isinstance(self.refusal, Refusal) else self.refusal

    def _check_request(self) -> None:
        get = self.method == "GET"
        if not isinstance(self.request, dict) and (get or self.request != "{messages}"):
            raise Misplaced('request must be a mapping, or "{messages}"', "request")
        for key, value in self.request.items() if get else ():
            if isinstance(value, (dict, list)) or value is None or value == "{messages}":
                why = "with method GET the request is a query: texts, numbers, true and false"
                raise Misplaced(why, "request", key)

    def _check_header(self, name: str, value: str | float | FromEnvironment) -> None:
        lowered, why = name.lower(), ""
        plain = "" if isinstance(value, FromEnvironment) else str(value)
        if not _HEADER.fullmatch(name) or lowered in _FRAMING or lowered.startswith("proxy-"):
            why = f"{name!r} is no header that can be set here"
        elif sum(known.lower() == lowered for known in self.headers) > 1:
            why = f"the header {name} stands here twice"
        elif not _sendable(plain, 1000):
            why = f"the header {name} must be a text on one line, or {{env: VARIABLE}}"
        elif plain and (_SECRET.search(name) or LOOKS_LIKE_KEY.search(plain)):
            # The value is not repeated: it may be the key.
            why = f"{name} looks like a key, which must not stand in a file: name the variable that holds it, with "
            why += '{env: MY_TOKEN, prefix: "Bearer "}'
        if why:
            raise Misplaced(why, "headers", name)


def _sendable(text: str, longest: int) -> bool:
    return text.isascii() and (text.isprintable() or not text) and len(text) <= longest


_path = cache(JSONPath)


def _check_path(text: str, *place: str | int) -> None:
    try:
        _path(text)
    except UsageError as error:
        raise Misplaced(str(error), *place) from None


def _same(one: Any, other: Any) -> bool:
    # In Python True is 1; in JSON it is not.
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


# ---------------------------------------------------------------- asking


class ApplicationEndpoint:
    """The application that an entry of type ``http`` describes."""

    simulated = False
    announces_leaving = True

    def __init__(self, config: ApplicationConfig) -> None:
        self._config, self._template = config, config.template
        self._paths = {name: _path(text) for name, text in config.paths.items()}
        self.name, self.type = config.name, config.type
        self.supports_system_prompt = config.supports_system_prompt is True
        self.supports_conversation = "messages" in self._template.slots
        self.default_parameters: Mapping[str, JSON] = dict(config.default_parameters)
        self.price = config.price
        self._sender = Sender(concurrency=config.concurrency or CONCURRENCY)

    def identity(self) -> dict[str, JSON]:
        """Address, template, and how the answer is read. Of a header from the environment the name alone: another key
        is no other system.
        """
        config = self._config
        return {
            "type": self.type,
            "url": safe_url(config.url),
            "method": config.method,
            "headers": {
                name: None if isinstance(value, FromEnvironment) else str(value)
                for name, value in config.headers.items()
            },
            "request": config.request,
            "reply": {name: path.text for name, path in self._paths.items()},
            "refusal": [to_builtins(rule) for rule in config.rules],
            "parameters": dict(self.default_parameters),
        }

    async def ask(self, request: Request) -> Reply:
        filled = self._template.fill(self._values(request))
        get = self._config.method == "GET"
        exchange = HttpExchange(
            self._config.url,
            self._headers(),
            b"" if get else encode_json(filled),
            query=_query(filled) if get else "",
            hint=_HINT,
            leaving=request.leaving,
        )
        await self._sender.send(exchange, method=self._config.method)
        # In a thread: a wildcard over a large body takes a second, and other attempts have deadlines to keep.
        try:
            return await asyncio.to_thread(self._read, exchange)
        except asyncio.CancelledError:
            raise CutOff(evidence=exchange.evidence, wire=exchange.wire()) from None

    async def prepare(self) -> None:
        await self._sender.prepare()

    async def aclose(self) -> None:
        await self._sender.aclose()

    def _values(self, request: Request) -> dict[str, JSON]:
        """What the slots stand for in *request*. Raises AttemptError where it cannot be sent as it is."""
        parameters = merged_parameters(self, request.parameters)
        system = [message.content for message in request.messages if message.role == "system"]
        lost = ""
        if homeless := sorted(parameters.keys() - self._template.slots):
            lost = f'the parameter {homeless[0]}: put "{{{homeless[0]}}}" where it belongs'
        elif system and not self._template.slots & {"system", "messages"}:
            lost = 'a system prompt: put "{system}" or "{messages}" where it belongs'
        elif len(request.messages) - len(system) > 1 and not self.supports_conversation:
            lost = 'the turns before the last: put "{messages}" where the conversation belongs'
        if lost:
            raise AttemptError(
                f"endpoint {self.name!r}: its request has no place for {lost} in its entry", evidence=Evidence.AUTH
            )
        return {
            **parameters,
            "prompt": request.messages[-1].content,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "repetition": request.repetition,
            **({"system": "\n\n".join(system)} if system else {}),
        }

    def _headers(self) -> dict[str, str]:
        headers = plain_headers()
        key = read_key(self._config.api_key_env, self.name)
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        for name, value in self._config.headers.items():
            headers = {known: kept for known, kept in headers.items() if known.lower() != name.lower()}
            if isinstance(value, FromEnvironment):
                headers[name] = f"{value.prefix}{read_key(value.env, self.name, f'headers: {name}') or ''}"
            else:
                headers[name] = str(value)
        return headers

    # ------------------------------------------------------------ reading

    def _read(self, exchange: HttpExchange) -> Reply:
        """What the exchange comes to. Raises AttemptError where no answer came."""
        if exchange.status is None or not exchange.whole:
            return exchange.failure(self.name) or Reply(text=None, status=Status.MALFORMED, wire=exchange.wire())
        body, problem = None, None
        try:
            body = counted(read_json(exchange.received.data))
        except Unreadable as found:
            problem = found
        try:
            reply = self._reply(body)
            rule = next((r for r in self._config.rules if r.holds(exchange.status, body, reply.text)), None)
        except TooManyValuesError as error:
            failure = exchange.failure(self.name)
            return failure or Reply(text=None, status=Status.MALFORMED, error=str(error), wire=exchange.wire())
        wire = exchange.wire()
        if rule is None:
            failure = exchange.failure(self.name)
            if failure is not None:
                return failure
            return replace(problem.reply if problem else reply, wire=wire)
        line = None if exchange.succeeded else failure_line(exchange.status, wire.response_body)
        reason = reply.finish_reason or str(rule)
        return replace(reply, status=Status.REFUSED, finish_reason=reason, error=line, wire=wire)

    def _at(self, place: str, data: Any) -> Any:
        path = self._paths.get(place)
        return next(iter(path.all(data)), None) if path is not None else None

    def _reply(self, data: Any) -> Reply:
        """The reply in *data*: one text, or the parts of one; a number, true or false as JSON writes it."""
        path = self._paths["text"]
        tokens = [token_count(self._at(place, data)) for place in ("input_tokens", "output_tokens")]
        known: dict[str, Any] = {
            "model": text_or_none(self._at("model", data)),
            "usage": None if tokens == [None, None] else Usage(input_tokens=tokens[0], output_tokens=tokens[1]),
            "cost": _dollars(self._at("cost", data)),
        }
        reason = text_or_none(self._at("finish_reason", data))
        found = path.all(data)
        if not found:
            error = f"the body holds nothing at {path.text}"
            return Reply(text=None, status=Status.MALFORMED, finish_reason=reason, error=error, **known)
        if len(found) > 1:
            odd = next((one for one in found if not isinstance(one, str)), None)
            return replace(judge("".join(found) if odd is None else odd, **known), finish_reason=reason)
        (one,) = found
        if isinstance(one, bool):
            one = "true" if one else "false"
        elif isinstance(one, int) or (isinstance(one, float) and math.isfinite(one)):
            one = str(one)
        return judge(one, reason, **known)


def _dollars(value: Any) -> float | None:
    plausible = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e6
    return float(value) if plausible else None


def _query(filled: Mapping[str, JSON]) -> str:
    values = {key: value if isinstance(value, str) else encode_json(value).decode() for key, value in filled.items()}
    return urlencode(values, quote_via=quote, encoding="utf-8", errors="surrogatepass")
