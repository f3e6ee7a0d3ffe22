"""Providers that are spoken to directly: the bytes that are sent are ours. One subclass a wire format.

:mod:`~pytest_fairness.endpoints.openai_compatible` and :mod:`~pytest_fairness.endpoints.ollama` say what is
posted where and how the answer is read; the key, the parameters, the exchange and the evidence are the same
for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import ClassVar

from pytest_fairness.endpoints.batch_api import BatchApi, refuse_one_by_one
from pytest_fairness.endpoints.chat_reply import Parsed
from pytest_fairness.endpoints.exchange import Exchange, Sender
from pytest_fairness.endpoints.keys import read_key
from pytest_fairness.endpoints.parameters import merged_parameters
from pytest_fairness.endpoints.protocol import Price, Reply, Request
from pytest_fairness.endpoints.redaction import safe_url
from pytest_fairness.endpoints.wire import MAX_RESPONSE_BYTES, encode_json
from pytest_fairness.model import JSON, Message


class DirectEndpoint:
    """``POST {base_url}{path}`` with a bearer key, if there is one."""

    type: ClassVar[str]
    path: ClassVar[str]
    simulated = False
    announces_leaving = True

    def __init__(
        self,
        *,
        name: str,
        model: str,
        base_url: str,
        api_key_env: str | None = None,
        supports_system_prompt: bool = True,
        default_parameters: Mapping[str, JSON] | None = None,
        price: Price | None = None,
        concurrency: int = 16,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        self.name = name
        self.model = model
        self.base_url = base_url.rstrip("/")
        self.supports_system_prompt = supports_system_prompt
        self.default_parameters: Mapping[str, JSON] = dict(default_parameters or {})
        self.price = price
        self.batches: BatchApi | None = None
        self._api_key_env = api_key_env
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"pytest-fairness/{version('pytest-fairness')}",
        }
        self._sender = Sender(concurrency=concurrency, max_response_bytes=max_response_bytes)

    @property
    def hint(self) -> str:
        """What to look at where the server knows no such address."""
        return ""

    def payload(self, messages: Sequence[Message], parameters: Mapping[str, JSON]) -> dict[str, JSON]:
        """The body of the request."""
        raise NotImplementedError

    def read(self, body: bytes) -> Parsed:
        """What the body of a successful response says; total on any bytes."""
        raise NotImplementedError

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
        headers = dict(self._headers)
        key = read_key(self._api_key_env, self.name)
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        exchange = Exchange(
            self.base_url + self.path, headers, await self.body(request), leaving=request.leaving, hint=self.hint
        )
        await self._sender.send(exchange)
        return exchange.failure(self.name) or self.read(exchange.received.data).reply(exchange.wire())

    async def prepare(self) -> None:
        await self._sender.prepare()

    async def aclose(self) -> None:
        await self._sender.aclose()
        if self.batches is not None:
            await self.batches.aclose()


def plain_messages(messages: Sequence[Message]) -> list[JSON]:
    """Role and content of each, as most formats want them."""
    return [{"role": message.role, "content": message.content} for message in messages]
