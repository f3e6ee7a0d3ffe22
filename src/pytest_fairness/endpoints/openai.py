"""OpenAI's chat completions, which vLLM, LM Studio, llama.cpp, gateways and proxies speak too.

https://platform.openai.com/docs/api-reference/chat. Other providers are subclasses that say what
differs. Reading is total on any bytes, and invents nothing: a body that is no such answer is
MALFORMED, one without text EMPTY, one by which the model or the provider declines REFUSED, one that
reports an error ERROR. All of them are complete answers that were paid for.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pytest_fairness.endpoints.api_keys import read_key
from pytest_fairness.endpoints.config import (
    ModelConfig,
    ProviderConfig,
    RemoteConfig,
    merged_parameters,
)
from pytest_fairness.endpoints.http import (
    CONCURRENCY,
    HttpExchange,
    Sender,
    encode_json,
    message_of,
    plain_headers,
    token_count,
)
from pytest_fairness.endpoints.protocol import (
    AttemptError,
    Evidence,
    Reply,
    Request,
    plain_messages,
)
from pytest_fairness.endpoints.redaction import safe_url
from pytest_fairness.model import JSON, Message, Status, Usage


class OpenAIConfig(ProviderConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of type ``openai``; ``base_url`` ends as the server wants it, often in ``/v1``."""

    default_url: ClassVar[str] = "https://api.openai.com/v1"
    official_host: ClassVar[str] = "openai.com"
    official_key: ClassVar[str | None] = "OPENAI_API_KEY"


class RemoteEndpoint:
    """An endpoint that is asked at an address. The bytes that are sent are ours."""

    simulated = False
    announces_leaving = True

    def __init__(self, config: RemoteConfig) -> None:
        self.name = config.name
        self.type = config.type
        self.supports_system_prompt = config.supports_system_prompt is True
        self.supports_structured_output = config.supports_structured_output
        self.default_parameters: Mapping[str, JSON] = dict(config.default_parameters)
        self.price = config.known_price
        self._sender = Sender(concurrency=config.concurrency or CONCURRENCY)

    async def prepare(self) -> None:
        """Import what sending takes, which may be seconds where much is going on."""
        await asyncio.to_thread(importlib.import_module, "aiohttp")

    async def aclose(self) -> None:
        await self._sender.aclose()


class ChatEndpoint(RemoteEndpoint):
    """``POST`` to :attr:`url` with a key, if there is one."""

    #: The header that carries the key, and what stands before it.
    key_header: ClassVar[tuple[str, str]] = ("Authorization", "Bearer ")
    #: The provider's batch API where the entry says so: then it is asked in batches alone.
    batches: Any = None

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.model = config.model
        self.base_url = config.address
        self._key_variable = config.key_variable
        self._headers = plain_headers()

    @property
    def url(self) -> str:
        """Return what requests are posted to."""
        return f"{self.base_url}/chat/completions"

    @property
    def hint(self) -> str:
        """Return what to look at where the server knows no such address."""
        if self.base_url.endswith("/v1"):
            return "is the model's name right?"
        return "base_url usually ends in /v1; is the model's name right?"

    def payload(
        self, messages: Sequence[Message], parameters: Mapping[str, JSON]
    ) -> dict[str, JSON]:
        """The body of the request."""
        return {"model": self.model, "messages": plain_messages(messages), **parameters}

    @staticmethod
    def usage(data: Mapping[str, Any]) -> Usage | None:
        """The tokens that the JSON object of a success counts."""
        return read_usage(data.get("usage"), "prompt_tokens", "completion_tokens")

    @staticmethod
    def content(data: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """Return what it says: the text, the finish reason, the text of a refusal. Raises
        Unreadable.
        """
        choices = data.get("choices")
        if not isinstance(choices, list):
            raise Unreadable(f"choices is {kind_of(choices)}, not a list")
        if not choices:
            raise Unreadable("choices is empty", Status.EMPTY)
        message = None
        if isinstance(choices[0], dict):
            message = choices[0].get("message")
        if not isinstance(message, dict):
            raise Unreadable("the choice holds no message")
        return message.get("content"), choices[0].get("finish_reason"), message.get("refusal")

    @classmethod
    def interpret(cls, data: Any) -> Reply:
        """The reply in the JSON *data* of a success."""
        if not isinstance(data, dict):
            return Unreadable(f"the body is JSON {kind_of(data)}, not an object").reply
        facts: dict[str, Any] = {"model": text_or_none(data.get("model")), "usage": cls.usage(data)}
        try:
            if data.get("error"):
                message = message_of(json.dumps({"error": data["error"]}))
                raise Unreadable(f"an error in a 200: {message}", Status.ERROR)
            text, reason, refusal = cls.content(data)
        except Unreadable as problem:
            return replace(problem.reply, **facts)
        return judge(text, text_or_none(reason), refusal=refusal, **facts)

    def read(self, body: bytes) -> Reply:
        """Return what the *body* of a success says."""
        try:
            return self.interpret(read_json(body))
        except Unreadable as problem:
            return problem.reply

    def headers(self) -> dict[str, str]:
        """Of a request. Raises AttemptError where the key is not to be had."""
        key = read_key(self._key_variable, self.name)
        if key is None:
            return dict(self._headers)
        header, prefix = self.key_header
        return {**self._headers, header: f"{prefix}{key}"}

    def identity(self) -> dict[str, JSON]:
        return {
            "type": self.type,
            "model": self.model,
            "base_url": safe_url(self.base_url),
            "parameters": dict(self.default_parameters),
        }

    async def body(self, request: Request) -> bytes:
        """The body that :meth:`ask` sends. Raises AttemptError for odd parameters."""
        parameters = merged_parameters(self, request.parameters)
        return encode_json(self.payload(request.messages, parameters))

    async def ask(self, request: Request) -> Reply:
        if self.batches is not None:
            # The price is that of calls in batches: alone, a call costs more.
            why = (
                f"endpoint {self.name!r} is asked in batches alone, and so cannot be a step, or be "
                "asked one by one: give it a second entry without `batch:`"
            )
            raise AttemptError(why, evidence=Evidence.AUTH)
        headers = self.headers()
        body = await self.body(request)
        exchange = HttpExchange(self.url, headers, body, hint=self.hint, leaving=request.leaving)
        await self._sender.send(exchange)
        failure = exchange.failure(self.name)
        if failure is not None:
            return failure
        return replace(self.read(exchange.received), wire=exchange.wire())

    async def aclose(self) -> None:
        await super().aclose()
        if self.batches is not None:
            await self.batches.aclose()


# ---------------------------------------------------------------- reading


class Unreadable(Exception):
    """A body that holds no answer; ``reply`` is what it counts as."""

    def __init__(self, error: str, status: Status = Status.MALFORMED, **facts: Any) -> None:
        super().__init__(error)
        self.reply = Reply(text=None, status=status, error=error, **facts)


def read_json(body: bytes) -> Any:
    """The JSON in *body*. Raises Unreadable where there is none."""
    if not body.strip():
        raise Unreadable("the body of the response is empty")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        start = body[:2000].decode("utf-8", "replace")
        raise Unreadable(f"the body is not JSON: {message_of(start)}") from None


#: Finish reasons by which a provider says that it, or its model, declined.
_REFUSING = frozenset(
    ("content_filter", "refusal", "safety", "prohibited_content", "guardrail_intervened")
)


def judge(content: Any, reason: str | None = None, *, refusal: Any = None, **facts: Any) -> Reply:
    """The reply with a message's *content*, the provider's finish *reason*, and what it gave as its
    *refusal*.
    """
    facts = {"finish_reason": reason, **facts}
    if _says_something(refusal):
        return Reply(text=refusal, status=Status.REFUSED, **facts)
    if content is not None and not isinstance(content, str):
        error = f"the content is {kind_of(content)}, not a text"
        return Reply(text=None, status=Status.MALFORMED, error=error, **facts)
    text = content if _says_something(content) else None
    if reason is not None and reason.lower() in _REFUSING:
        return Reply(text=text, status=Status.REFUSED, **facts)
    if text is not None:
        return Reply(text=text, status=Status.ANSWERED, **facts)
    because = ""
    if reason:
        because = f" (finish reason {reason})"
    error = f"the reply holds no text{because}"
    return Reply(text=None, status=Status.EMPTY, error=error, **facts)


def _says_something(value: Any) -> bool:
    """Return whether *value* is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def read_usage(data: Any, input_key: str, output_key: str) -> Usage | None:
    """Tokens as counted; what is no plausible count becomes ``None``, so that it is charged at its
    worst case.
    """
    if not isinstance(data, dict):
        return None
    usage = Usage(
        input_tokens=token_count(data.get(input_key)),
        output_tokens=token_count(data.get(output_key)),
    )
    if usage == Usage():
        return None
    return usage


def text_or_none(value: Any) -> str | None:
    """*value* if it is a text that says something."""
    if isinstance(value, str) and value:
        return value
    return None


def kind_of(value: Any) -> str:
    """Return what kind of JSON *value* is, in words."""
    if isinstance(value, list):
        return "a list"
    return _KINDS.get(type(value), "an object")


_KINDS: Mapping[type, str] = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
}
