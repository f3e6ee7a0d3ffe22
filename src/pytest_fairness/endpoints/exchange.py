"""One HTTP exchange, watched: what was sent, what came back, where it broke. All network traffic goes through here.

A :class:`Sender` has one session for its life and as many connections as there may be requests in flight. It
follows no redirects (a key and a prompt must not follow one), reads no proxy or credentials from the
environment, keeps no cookies, retries nothing and keeps no more of a response than a limit.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_fairness.endpoints.evidence import evidence_of, policy_refusal, retry_after, what_was_said
from pytest_fairness.endpoints.protocol import AttemptError, CutOff, Evidence, Reply, Wire
from pytest_fairness.endpoints.redaction import redact, safe_url
from pytest_fairness.endpoints.wire import MAX_RESPONSE_BYTES, BoundedBody, make_wire
from pytest_fairness.model import Status

if TYPE_CHECKING:
    import aiohttp

#: Servers often close idle connections after five seconds; a request sent on one that is closing looks like a
#: request that was never answered, so ours are dropped first.
_KEEP_ALIVE_SECONDS = 4.0
_CONNECT_SECONDS = 20.0
_NOTHING_THERE = (404, 405)


@dataclass(slots=True)
class Exchange:
    """As far as it got: ``status`` is ``None`` until a response begins, ``error`` says how it broke off."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    status: int | None = None
    response_headers: Mapping[str, str] = field(default_factory=dict)
    received: BoundedBody = field(default_factory=lambda: BoundedBody(None))
    error: str | None = None
    #: Whether there was a connection for it, so that bytes may have left.
    sent: bool = False
    #: Awaited before the first byte leaves; what it raises keeps the request from leaving.
    leaving: Callable[[], Awaitable[None]] | None = None
    refused: Exception | None = None
    #: Why there was no connection, in words.
    unreachable: str = ""
    #: What to look at where there is nothing at the address.
    hint: str = ""
    #: What a GET sends, behind the question mark; the log holds it in the place of the body.
    query: str = ""

    async def leave(self) -> None:
        """There is a connection, and the request is about to leave on it. ``refused`` says why it may not."""
        if self.sent:
            self.refused = ConnectionAbortedError("a second request of one attempt")
            return
        try:
            if self.leaving is not None:
                await self.leaving()
            self.sent = True
        except Exception as error:  # noqa: BLE001 - raised where the connection is closed because of it
            self.refused = error

    def check(self) -> None:
        """Raise why the request may not leave."""
        if self.refused is not None:
            raise self.refused

    def wire(self) -> Wire:
        """The record of it, without secrets."""
        return make_wire(
            url=self.url,
            request_body=self.body or self.query.encode(),
            request_headers=self.headers,
            status_code=self.status,
            response_headers=self.response_headers,
            response_body=self.received.data,
            truncated=self.received.full or (self.error is not None and self.status is not None),
        )

    @property
    def whole(self) -> bool:
        """Whether a response came and can be read to its end, whatever its status."""
        received = self.received
        return self.status is not None and self.error is None and not received.full and received.readable

    @property
    def succeeded(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    def failure(self, name: str) -> Reply | None:
        """What this comes to if it is no whole success; ``None`` if it is, and the body can be read.

        Raises AttemptError with the evidence; returns a Reply where the failure is an answer of its own.
        """
        if self.error is not None or self.status is None:
            raise self._broken(name, self.wire())
        if not self.succeeded:
            return self._refused(name, self.status, self.wire())
        if self.received.full:
            error = f"the body is longer than {len(self.received.data):,} bytes"
        elif not self.received.readable:
            error = "the body is packed and cannot be unpacked"
        else:
            return None
        return Reply(text=None, status=Status.MALFORMED, error=error, wire=self.wire())

    @property
    def evidence(self) -> Evidence:
        """What is known of an exchange that broke off."""
        if self.status is None:
            return Evidence.NO_RESPONSE if self.sent else Evidence.NOT_SENT
        if self.succeeded:
            return Evidence.PARTIAL
        return evidence_of(self.status, self.received.data.decode("utf-8", "replace"))

    def _broken(self, name: str, wire: Wire) -> AttemptError:
        if self.status is None:
            what = "sent, and no response came" if self.sent else self.unreachable or "no connection"
            return AttemptError(f"endpoint {name!r}: {what} ({self.error})", evidence=self.evidence, wire=wire)
        return AttemptError(
            f"endpoint {name!r}: HTTP {self.status}, and the response broke off ({self.error})",
            evidence=self.evidence,
            retry_after=retry_after(self.response_headers),
            wire=wire,
        )

    def _refused(self, name: str, status: int, wire: Wire) -> Reply:
        said = what_was_said(status, wire.response_body)
        policy = policy_refusal(status, wire.response_body)
        if policy is not None:
            return Reply(text=None, status=Status.REFUSED, finish_reason=policy, wire=wire, error=said)
        if 300 <= status < 400:
            said = f"HTTP {status}: a redirect, which is not followed; set base_url to where the server really is"
        elif status in _NOTHING_THERE:
            hint = f"; {self.hint}" if self.hint else ""
            said = f"HTTP {status} at {wire.url}{said.removeprefix(f'HTTP {status}')}{hint}"
        raise AttemptError(
            f"endpoint {name!r}: {said}",
            evidence=evidence_of(status, wire.response_body),
            retry_after=retry_after(self.response_headers),
            wire=wire,
        )


class Sender:
    """Sends requests one at a time or many at once, each exactly once."""

    def __init__(self, *, concurrency: int, max_response_bytes: int = MAX_RESPONSE_BYTES) -> None:
        self._concurrency = concurrency
        self._max_response_bytes = max_response_bytes
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(self, exchange: Exchange, *, method: str = "POST") -> None:
        """Carry *exchange* out and note in it how it went. Raises nothing but CutOff, where it is cancelled."""
        import aiohttp
        from yarl import URL

        session = await self._open()
        try:
            url = URL(f"{exchange.url}?{exchange.query}", encoded=True) if exchange.query else exchange.url
            async with session.request(
                method,
                url,
                data=exchange.body or None,
                headers=exchange.headers,
                allow_redirects=False,
                trace_request_ctx=exchange,
            ) as response:
                exchange.response_headers = dict(response.headers)
                exchange.received = BoundedBody(response.headers.get("Content-Encoding"), self._max_response_bytes)
                exchange.status = response.status
                async for chunk in response.content.iter_any():
                    if not exchange.received.feed(chunk):
                        response.close()  # the rest of an endless body is not waited for
                        break
        except asyncio.CancelledError:
            exchange.error = "cut off"
            raise CutOff(evidence=exchange.evidence, wire=exchange.wire()) from None
        # A ValueError comes from an address or a header that cannot be sent.
        except (aiohttp.ClientError, OSError, ValueError) as error:
            unsent = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL, ValueError)
            exchange.sent = exchange.sent and not isinstance(error, unsent)
            exchange.error = redact(f"{type(error).__name__}: {error}")
            exchange.unreachable = "" if exchange.sent else why_unreachable(exchange.url, error)

    async def prepare(self) -> None:
        """Import what sending takes, which may be seconds where much is going on."""
        await asyncio.to_thread(importlib.import_module, "aiohttp")

    async def aclose(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None and not session.closed:
            await session.close()

    async def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            if self._session is not None and not self._session.closed:
                self._session.detach()  # it belongs to another loop, which alone could close it
            self._loop = loop
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._concurrency, keepalive_timeout=_KEEP_ALIVE_SECONDS),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                trace_configs=[_telling_when_it_leaves()],
            )
        return self._session


def why_unreachable(url: str, error: Exception) -> str:
    """What keeps a connection to *url* from being made, and what to look at; empty where *error* does not tell."""
    import aiohttp

    parts = urlsplit(safe_url(url))
    address = f"{parts.scheme}://{parts.netloc}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the host of {address} is not known: is base_url right, and is there a network?"
    if isinstance(error, (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError)):
        return f"no secure connection to {address}: is it http:// there, or a certificate that is not trusted here?"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"{address} answers no connection within {_CONNECT_SECONDS:g} s: is base_url right, and reachable?"
    if isinstance(error, aiohttp.ClientConnectorError):
        if isinstance(error.os_error, ConnectionRefusedError):
            return f"{address} refuses connections: is the server running?"
        return f"no connection to {address}: is base_url right, and reachable?"
    return ""


def _telling_when_it_leaves() -> aiohttp.TraceConfig:
    """Has each exchange told when there is a connection for it, a new one or one that is used again; one that may not
    leave is stopped before its headers do.
    """
    import aiohttp

    async def begin(_session: aiohttp.ClientSession, context: SimpleNamespace, _parameters: object) -> None:
        if context.trace_request_ctx.sent:  # by itself aiohttp asks again, where it takes a request to be harmless
            raise ConnectionAbortedError("a second request of one attempt")

    async def leave(_session: aiohttp.ClientSession, context: SimpleNamespace, _parameters: object) -> None:
        await context.trace_request_ctx.leave()

    async def check(_session: aiohttp.ClientSession, context: SimpleNamespace, _parameters: object) -> None:
        context.trace_request_ctx.check()

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_start.append(begin)
    trace.on_connection_create_end.append(leave)
    trace.on_connection_reuseconn.append(leave)
    trace.on_request_headers_sent.append(check)  # which are not sent yet
    return trace
