"""The HTTP clients that litellm is given: each sends through our own :class:`Sender`, once a call, watched.

It is the only way to exactly one request an attempt (litellm's cached Azure client retries whatever it is
told), to the verbatim bytes, and to a key that no redirect carries off. The SDK of OpenAI has its HTTP
library in two generations, httpx and httpx2, so the transport is made for whichever is there.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pytest_fairness.endpoints.exchange import Exchange, Sender

_HINT = "is base_url right, and the name of the model or deployment?"
_OWN_HEADERS = ("host", "content-length", "transfer-encoding", "connection", "accept-encoding")


@dataclass(slots=True)
class Watch:
    """What one call sent: at most one exchange; a second request is refused before it is sent.

    With *rehearsal* nothing is sent at all: it is only noted that the request came this way. *usable* says of the body
    of a success whether litellm should see it.
    """

    usable: Callable[[bytes], bool]
    exchanges: list[Exchange] = field(default_factory=list)
    rehearsal: bool = False
    leaving: Callable[[], Awaitable[None]] | None = None


#: The call under way in this task and those that it starts.
watch: ContextVar[Watch | None] = ContextVar("pytest_fairness_litellm_watch", default=None)


@functools.cache
def _transport_class(library: Any) -> type[Any]:
    """A transport for *library*, httpx or httpx2."""

    class WatchedTransport(library.AsyncBaseTransport):  # type: ignore[misc]  # the base is known only now
        def __init__(self, sender: Sender) -> None:
            self._sender = sender

        async def handle_async_request(self, request: Any) -> Any:
            watched = watch.get()
            if watched is None or watched.exchanges:
                # Not a ConnectError, upon which litellm would try again with a client of its own.
                raise library.ReadError("refused: not the one request of this attempt", request=request)
            headers = {n: v for n, v in request.headers.items() if n.lower() not in _OWN_HEADERS}
            headers["Accept-Encoding"] = "identity"
            exchange = Exchange(str(request.url), headers, await request.aread(), leaving=watched.leaving, hint=_HINT)
            watched.exchanges.append(exchange)
            if watched.rehearsal:
                raise library.ReadError("rehearsal", request=request)
            await self._sender.send(exchange, method=request.method)
            if exchange.error is not None or exchange.status is None:
                raise library.ReadError(exchange.error or "no response", request=request)
            if not exchange.succeeded or not exchange.whole or not watched.usable(exchange.received.data):
                # What it is, is read off the wire. litellm would look for secrets in its text, for minutes if it is
                # megabytes long, and nothing else could go on meanwhile.
                raise library.ReadError("not to be read by litellm", request=request)
            # The body is unpacked and whole already.
            kept = {
                name: value
                for name, value in exchange.response_headers.items()
                if name.lower() not in ("content-encoding", "content-length", "transfer-encoding")
            }
            return library.Response(exchange.status, headers=kept, content=exchange.received.data, request=request)

    return WatchedTransport


def _http_client(library: Any, sender: Sender) -> Any:
    return library.AsyncClient(
        transport=_transport_class(library)(sender), follow_redirects=False, trust_env=False, timeout=None
    )


def _sdk_library(openai: Any) -> Any:
    """httpx or httpx2: the one whose client the SDK of OpenAI builds on."""
    for base in openai.DefaultAsyncHttpxClient.__mro__:
        if base.__name__ == "AsyncClient":
            return sys.modules[base.__module__.partition(".")[0]]
    raise TypeError("the HTTP client of the openai package is of no known kind")


def openai_client(sender: Sender, *, api_key: str, base_url: str | None) -> Any:
    """A client of the SDK of OpenAI."""
    openai = sys.modules["openai"]
    return openai.AsyncOpenAI(
        api_key=api_key,
        base_url=base_url,
        max_retries=0,
        http_client=_http_client(_sdk_library(openai), sender),
    )


def azure_client(sender: Sender, *, api_key: str, base_url: str, api_version: str) -> Any:
    """A client of the same SDK for Azure."""
    openai = sys.modules["openai"]
    return openai.AsyncAzureOpenAI(
        api_key=api_key,
        azure_endpoint=base_url,
        api_version=api_version,
        max_retries=0,
        http_client=_http_client(_sdk_library(openai), sender),
    )


def http_client(sender: Sender) -> Any:
    """A client of litellm's own for providers that it speaks to itself."""
    handler = sys.modules["litellm.llms.custom_httpx.http_handler"]
    client = handler.AsyncHTTPHandler()
    client.client = _http_client(handler.httpx, sender)
    return client
