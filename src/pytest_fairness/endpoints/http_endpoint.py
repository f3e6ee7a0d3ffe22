"""Any application that takes JSON and answers with JSON: the request from a template, the reply by its JSON path."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any
from urllib.parse import quote, urlencode

from pytest_fairness.endpoints.chat_reply import Parsed, judge, read_json, text_or_none, token_count
from pytest_fairness.endpoints.config import EndpointConfig
from pytest_fairness.endpoints.daemon_threads import DaemonThreads
from pytest_fairness.endpoints.evidence import what_was_said
from pytest_fairness.endpoints.exchange import Exchange, Sender
from pytest_fairness.endpoints.http_options import FromEnvironment, read_http
from pytest_fairness.endpoints.http_refusals import refusing
from pytest_fairness.endpoints.http_template import MESSAGES, PROMPT, REPETITION, SYSTEM
from pytest_fairness.endpoints.json_paths import JSONPath, TooManyValuesError, counted
from pytest_fairness.endpoints.keys import read_key
from pytest_fairness.endpoints.parameters import merged_parameters
from pytest_fairness.endpoints.protocol import AttemptError, CutOff, Evidence, Reply, Request
from pytest_fairness.endpoints.redaction import safe_url
from pytest_fairness.endpoints.wire import MAX_RESPONSE_BYTES, encode_json
from pytest_fairness.model import JSON, Status, Usage

_CONCURRENCY = 16
_HINT = "is url right, and the method?"


class HttpEndpoint:
    """An application at ``config.base_url``; what its entry says is in ``config.options``.

    Raises UsageError for options that make no sense.
    """

    type = "http"
    simulated = False
    announces_leaving = True

    def __init__(self, config: EndpointConfig, *, max_response_bytes: int = MAX_RESPONSE_BYTES) -> None:
        self._options = read_http(config.options)
        self._given = dict(config.options)
        self._url = config.base_url or ""
        self._key = config.api_key_env
        self.name = config.name
        self.supports_system_prompt = config.supports_system_prompt and self._options.takes_system
        self.supports_conversation = MESSAGES in self._options.request.slots
        self.default_parameters: Mapping[str, JSON] = dict(config.default_parameters)
        self.price = config.price
        self._concurrency = config.concurrency or _CONCURRENCY
        self._sender = Sender(concurrency=self._concurrency, max_response_bytes=max_response_bytes)
        self._readers: DaemonThreads | None = None

    def identity(self) -> dict[str, JSON]:
        """Address, template, and how the answer is read. Of a header from the environment the name alone: another key
        is no other system.
        """
        given, headers = self._given, self._options.headers
        return {
            "type": self.type,
            "url": safe_url(self._url),
            "method": self._options.method,
            "headers": {name: None if isinstance(value, FromEnvironment) else value for name, value in headers.items()},
            "request": given["request"],
            "reply": given["reply"],
            "refusal": given.get("refusal"),
            "parameters": dict(self.default_parameters),
        }

    async def ask(self, request: Request) -> Reply:
        sent = self._options.request.fill(self._values(request))
        if self._options.method == "GET":
            exchange = Exchange(
                self._url, self._headers(), b"", query=_query(sent), leaving=request.leaving, hint=_HINT
            )
        else:
            exchange = Exchange(self._url, self._headers(), encode_json(sent), leaving=request.leaving, hint=_HINT)
        await self._sender.send(exchange, method=self._options.method)
        # In a thread: what a wildcard finds in megabytes takes seconds, and other attempts have deadlines to keep.
        self._readers = self._readers or DaemonThreads(self._concurrency, name="fairness-reading")
        try:
            return await asyncio.wrap_future(self._readers.submit(lambda: self._read(exchange)))
        except asyncio.CancelledError:
            raise CutOff(evidence=exchange.evidence, wire=exchange.wire()) from None

    async def prepare(self) -> None:
        await self._sender.prepare()

    async def aclose(self) -> None:
        await self._sender.aclose()
        if self._readers is not None:
            self._readers.close()
            self._readers = None

    # ------------------------------------------------------------ asking

    def _values(self, request: Request) -> dict[str, JSON]:
        """What the slots stand for in *request*. Raises AttemptError where it cannot be sent as it is."""
        parameters = merged_parameters(self, request.parameters)
        lost = sorted(parameters.keys() - self._options.request.parameters)
        if lost:
            raise self._unsendable(f'the parameter {lost[0]}: put "{{{lost[0]}}}" where it belongs')
        system = [message.content for message in request.messages if message.role == "system"]
        if system and not self._options.takes_system:
            raise self._unsendable('a system prompt: put "{system}" or "{messages}" where it belongs')
        if len(request.messages) - len(system) > 1 and not self.supports_conversation:
            raise self._unsendable('the turns before the last: put "{messages}" where the conversation belongs')
        messages: list[JSON] = [{"role": one.role, "content": one.content} for one in request.messages]
        values: dict[str, JSON] = {**parameters, PROMPT: request.messages[-1].content, MESSAGES: messages}
        values[REPETITION] = request.repetition
        return {**values, SYSTEM: "\n\n".join(system)} if system else values

    def _unsendable(self, what: str) -> AttemptError:
        return AttemptError(
            f"endpoint {self.name!r}: its request has no place for {what} in its entry", evidence=Evidence.AUTH
        )

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": f"pytest-fairness/{version('pytest-fairness')}",
        }
        key = read_key(self._key, self.name)
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        for name, value in self._options.headers.items():
            headers = {known: kept for known, kept in headers.items() if known.lower() != name.lower()}
            if isinstance(value, FromEnvironment):
                headers[name] = f"{value.prefix}{read_key(value.variable, self.name, f'headers: {name}') or ''}"
            else:
                headers[name] = value
        headers["Accept-Encoding"] = "identity"
        return headers

    # ------------------------------------------------------------ reading

    def _read(self, exchange: Exchange) -> Reply:
        """What the exchange comes to. Raises AttemptError where no answer came."""
        status = exchange.status
        if status is None or not exchange.whole:
            return exchange.failure(self.name) or Reply(text=None, status=Status.MALFORMED, wire=exchange.wire())
        data = read_json(exchange.received.data)
        try:
            return self._read_json(exchange, status, data)
        except TooManyValuesError as error:
            failure = exchange.failure(self.name)
            return failure or Reply(text=None, status=Status.MALFORMED, error=str(error), wire=exchange.wire())

    def _read_json(self, exchange: Exchange, status: int, data: Any) -> Reply:
        body = None if isinstance(data, Parsed) else counted(data)
        text = self._text(body)
        rule = refusing(self._options.refusal, status, body, text[1])
        if rule is not None:
            said = None if exchange.succeeded else what_was_said(status, exchange.wire().response_body)
            return self._reply(exchange, body, (Status.REFUSED, text[1], said), reason=str(rule))
        failure = exchange.failure(self.name)
        if failure is not None:
            return failure
        if isinstance(data, Parsed):
            return data.reply(exchange.wire())
        return self._reply(exchange, body, text)

    def _reply(
        self, exchange: Exchange, data: Any, read: tuple[Status, str | None, str | None], reason: str | None = None
    ) -> Reply:
        status, text, error = read
        return Reply(
            text=text,
            status=status,
            finish_reason=text_or_none(self._at("finish_reason", data)) or reason,
            model=text_or_none(self._at("model", data)),
            usage=self._usage(data),
            cost=_dollars(self._at("cost", data)),
            wire=exchange.wire(),
            error=error,
        )

    def _at(self, place: str, data: Any) -> Any:
        path: JSONPath | None = getattr(self._options.reply, place)
        return None if path is None else path.first(data)

    def _text(self, data: Any) -> tuple[Status, str | None, str | None]:
        """The text at its path: one string, or the parts of one; a number, true or false as JSON writes it."""
        path = self._options.reply.text
        found = path.all(data)
        if not found:
            return Status.MALFORMED, None, f"the body holds nothing at {path}"
        if len(found) > 1:
            odd = next((one for one in found if not isinstance(one, str)), None)
            return judge("".join(found) if odd is None else odd, None, None)
        (one,) = found
        if isinstance(one, bool):
            one = "true" if one else "false"
        elif isinstance(one, int) or (isinstance(one, float) and math.isfinite(one)):  # no float holds 400 digits
            one = str(one)
        return judge(one, None, text_or_none(self._at("finish_reason", data)))

    def _usage(self, data: Any) -> Usage | None:
        tokens = [token_count(self._at(place, data)) for place in ("input_tokens", "output_tokens")]
        return None if tokens == [None, None] else Usage(input_tokens=tokens[0], output_tokens=tokens[1])


def _dollars(value: Any) -> float | None:
    plausible = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e6
    return float(value) if plausible else None


def _query(sent: Any) -> str:
    values = {key: value if isinstance(value, str) else encode_json(value).decode() for key, value in sent.items()}
    return urlencode(values, quote_via=quote, encoding="utf-8", errors="surrogatepass")
