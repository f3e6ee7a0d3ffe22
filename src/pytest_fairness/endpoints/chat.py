"""What the chat providers have in common: one POST with a key, and how the text of the answer is judged.

A provider is a subclass that says what is posted where and how the answer is read. Reading is total on any bytes, and
invents nothing: a body that is no such answer is MALFORMED, one without text EMPTY, one by which the model or the
provider declines REFUSED, one that reports an error ERROR. All of them are complete answers that were paid for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pytest_fairness.endpoints.batch_api import BatchApi, refuse_one_by_one
from pytest_fairness.endpoints.config import ModelConfig, merged_parameters
from pytest_fairness.endpoints.http import (
    CONCURRENCY,
    HttpExchange,
    Sender,
    encode_json,
    message_of,
    plain_headers,
    token_count,
)
from pytest_fairness.endpoints.protocol import Reply, Request
from pytest_fairness.endpoints.redaction import read_key, safe_url
from pytest_fairness.model import JSON, Message, Status, Usage


class ChatEndpoint:
    """``POST`` to :attr:`url` with a bearer key, if there is one. The bytes that are sent are ours."""

    simulated = False
    announces_leaving = True
    #: What to look at where the server knows no such address.
    hint = ""
    #: The provider's batch API, if it has one.
    batch_api: ClassVar[type[BatchApi] | None] = None

    def __init__(self, config: ModelConfig) -> None:
        self.name, self.type, self.model = config.name, config.type, config.model
        self.base_url = config.address
        self.supports_system_prompt = config.supports_system_prompt
        self.default_parameters: Mapping[str, JSON] = dict(config.default_parameters)
        self.price = config.known_price
        self.batches: BatchApi | None = None
        self._key_variable = config.key_variable
        self._headers = plain_headers()
        self._sender = Sender(concurrency=config.concurrency or CONCURRENCY)

    @property
    def url(self) -> str:
        """What requests are posted to."""
        raise NotImplementedError

    def payload(self, messages: Sequence[Message], parameters: Mapping[str, JSON]) -> dict[str, JSON]:
        """The body of the request."""
        raise NotImplementedError

    def parse(self, data: Mapping[str, Any]) -> Reply:
        """What the JSON object of a success says."""
        raise NotImplementedError

    def authorisation(self, key: str) -> dict[str, str]:
        """The header that carries *key*."""
        return {"Authorization": f"Bearer {key}"}

    def headers(self) -> dict[str, str]:
        """Of a request. Raises AttemptError where the key is not to be had."""
        key = read_key(self._key_variable, self.name)
        return {**self._headers, **({} if key is None else self.authorisation(key))}

    def read(self, body: bytes) -> Reply:
        """What the *body* of a success says."""
        try:
            return self.parse(read_object(body))
        except Unreadable as problem:
            return problem.reply

    def identity(self) -> dict[str, JSON]:
        return {
            "type": self.type,
            "model": self.model,
            "base_url": safe_url(self.base_url),
            "parameters": dict(self.default_parameters),
        }

    async def body(self, request: Request) -> bytes:
        """The body that :meth:`ask` sends. Raises AttemptError for parameters that are not taken."""
        return encode_json(self.payload(request.messages, merged_parameters(self, request.parameters)))

    async def ask(self, request: Request) -> Reply:
        refuse_one_by_one(self)
        exchange = HttpExchange(
            self.url, self.headers(), await self.body(request), hint=self.hint, leaving=request.leaving
        )
        await self._sender.send(exchange)
        return exchange.failure(self.name) or replace(self.read(exchange.received.data), wire=exchange.wire())

    async def prepare(self) -> None:
        await self._sender.prepare()

    async def aclose(self) -> None:
        await self._sender.aclose()
        if self.batches is not None:
            await self.batches.aclose()


def plain_messages(messages: Sequence[Message]) -> list[JSON]:
    """Role and content of each, as most formats want them."""
    return [{"role": message.role, "content": message.content} for message in messages]


# ---------------------------------------------------------------- reading


class Unreadable(Exception):
    """A body that holds no answer; ``reply`` is what it counts as."""

    def __init__(self, error: str, status: Status = Status.MALFORMED, **known: Any) -> None:
        super().__init__(error)
        self.reply = Reply(text=None, status=status, error=error, **known)


def read_json(body: bytes) -> Any:
    """The JSON in *body*. Raises Unreadable where there is none."""
    if not body.strip():
        raise Unreadable("the body of the response is empty")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        start = body[:200].decode("utf-8", "replace")
        raise Unreadable(f"the body is not JSON: {message_of(start)}") from None


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in *body*. Raises Unreadable where there is none, or one that reports an error."""
    data = read_json(body)
    if not isinstance(data, dict):
        raise Unreadable(f"the body is JSON {kind_of(data)}, not an object")
    if data.get("error"):
        message = message_of(json.dumps({"error": data["error"]}))
        raise Unreadable(f"an error in a 200: {message}", Status.ERROR, model=text_or_none(data.get("model")))
    return data


#: Finish reasons by which a provider says that it, or its model, declined.
_REFUSING = frozenset(("content_filter", "refusal", "safety", "prohibited_content", "guardrail_intervened"))


def judge(content: Any, reason: str | None = None, *, refusal: Any = None, **known: Any) -> Reply:
    """The reply with a message's *content*, the provider's finish *reason*, and what it gave as its *refusal*."""
    status, text, error = Status.ANSWERED, content, None
    blank = content is None or (isinstance(content, str) and not content.strip())
    if isinstance(refusal, str) and refusal.strip():
        status, text = Status.REFUSED, refusal
    elif content is not None and not isinstance(content, str):
        status, text, error = Status.MALFORMED, None, f"the content is {kind_of(content)}, not a text"
    elif reason is not None and reason.lower() in _REFUSING:
        status, text = Status.REFUSED, None if blank else content
    elif blank:
        because = f" (finish reason {reason})" if reason else ""
        status, text, error = Status.EMPTY, None, f"the reply holds no text{because}"
    return Reply(text=text, status=status, error=error, finish_reason=reason, **known)


def read_usage(data: Any, input_key: str, output_key: str) -> Usage | None:
    """Tokens as counted; what is no plausible count becomes ``None``, so that it is charged at its worst case."""
    if not isinstance(data, dict):
        return None
    usage = Usage(input_tokens=token_count(data.get(input_key)), output_tokens=token_count(data.get(output_key)))
    return None if usage.input_tokens is None and usage.output_tokens is None else usage


def text_or_none(value: Any) -> str | None:
    """*value* if it is a text that says something."""
    return value if isinstance(value, str) and value else None


def kind_of(value: Any) -> str:
    """What kind of JSON *value* is, in words."""
    names = {type(None): "null", bool: "true or false", int: "a number", float: "a number", str: "a string"}
    return names.get(type(value), "a list" if isinstance(value, list) else "an object")
