"""One HTTP exchange, watched: what is sent, what comes back, where it breaks, and what that is
evidence of.

A :class:`Sender` has one session for its life and as many connections as there may be requests in
flight. It follows no redirects (a key and a prompt must not follow one), reads no proxy or
credentials from the environment, keeps no cookies, retries nothing and keeps no more of a response
than a limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import json
import math
import re
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_fairness.documents import is_number
from pytest_fairness.endpoints.protocol import AttemptError, CutOff, Evidence, Reply, Wire
from pytest_fairness.endpoints.redaction import (
    REQUEST_HEADERS,
    RESPONSE_HEADERS,
    redact,
    redact_values,
    safe_headers,
    safe_url,
)
from pytest_fairness.model import JSON, Status

if TYPE_CHECKING:
    import aiohttp

#: Bytes of a response that are read and kept. A chat reply is thousands; a megabyte is already an
#: attack or a fault.
MAX_RESPONSE_BYTES = 8_000_000
CONCURRENCY = 16
#: Servers often close idle connections after five seconds; a request sent on one that is closing
#: looks like a request that was never answered, so ours are dropped first.
_KEEP_ALIVE_SECONDS = 4.0
# Of TCP and TLS together. A server of plain HTTP may take the connection, and say nothing.
_CONNECT_SECONDS = 10.0
_LONGEST_MESSAGE = 300


def plain_headers() -> dict[str, str]:
    """The headers of every request."""
    return {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"pytest-fairness/{version('pytest-fairness')}",
    }


def encode_json(payload: JSON | Mapping[str, JSON]) -> bytes:
    """*payload* as the bytes of a JSON body. Text stays readable, unless half a surrogate pair
    forbids UTF-8.
    """
    try:
        return json.dumps(payload, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(payload, ensure_ascii=True).encode("ascii")


def make_wire(
    url: str,
    request_body: bytes,
    request_headers: Mapping[str, str],
    status_code: int | None = None,
    response_headers: Mapping[str, str] = MappingProxyType({}),
    response_body: bytes = b"",
    *,
    truncated: bool = False,
) -> Wire:
    """The record of one exchange, as far as it got, without secrets."""
    return Wire(
        url=safe_url(url),
        request_body=_recorded(request_body),
        request_headers=safe_headers(request_headers, REQUEST_HEADERS),
        status_code=status_code,
        response_headers=safe_headers(response_headers, RESPONSE_HEADERS),
        response_body=_recorded(response_body),
        truncated=truncated,
    )


def _recorded(body: bytes) -> str:
    """Return *body* as the log has it."""
    return redact_values(body.decode("utf-8", "surrogateescape"))


# --------------------------------------------------- what a response without success is evidence of

#: Of a status; a wrong key, an unknown model or address will not mend itself, and what a timeout
#: cost is not known.
_EVIDENCE = {
    **dict.fromkeys((*range(300, 400), 401, 402, 403, 404, 405), Evidence.AUTH),
    **dict.fromkeys((429, 503, 529), Evidence.THROTTLED),
    **dict.fromkeys((408, 409, 425), Evidence.SERVER),
}
# A 429 that no waiting mends.
_QUOTA = re.compile(
    r"insufficient_quota|billing_hard_limit|exceeded your current quota|billing_not_active",
    re.IGNORECASE,
)
# A 400 by which a provider's content policy refuses to answer: an answer of the system under test.
_POLICY = re.compile(
    r"content_policy_violation|content_filter|ResponsibleAIPolicyViolation"
    r"|content management policy|safety system",
    re.IGNORECASE,
)


def evidence_of(status: int, body: str) -> Evidence:
    """The evidence of a complete response with *status* (not a 2xx) and *body*."""
    if status == 429 and _QUOTA.search(body):
        return Evidence.AUTH
    if status in _EVIDENCE:
        return _EVIDENCE[status]
    if status >= 500:
        return Evidence.SERVER
    return Evidence.REJECTED


def policy_refusal(status: int, body: str) -> str | None:
    """The provider's own word if a content policy refused the request, else ``None``."""
    if status not in (400, 422):
        return None
    match = _POLICY.search(body)
    if match is None:
        return None
    return match[0]


def failure_line(status: int, body: str) -> str:
    """One redacted line on a failed response: the provider's message if it gave one."""
    if body.strip():
        return f"HTTP {status}: {message_of(body)}"
    return f"HTTP {status} without a body"


def message_of(body: str) -> str:
    """The message in an error body, or the start of the body, on one line, redacted."""
    line = " ".join(redact(_message_in(body) or body).split())
    if not line.isprintable():
        # Model output and server output are hostile input: nothing that a terminal would obey.
        line = "".join(character if character.isprintable() else "�" for character in line)
    if len(line) <= _LONGEST_MESSAGE:
        return line
    return line[: _LONGEST_MESSAGE - 1] + "…"


def _message_in(body: str) -> str:
    """Return what the JSON object in *body* has where servers put a message; empty without one."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(data, dict):
        return ""
    message = data.get("error", data.get("message", data.get("detail")))
    if isinstance(message, dict):
        message = message.get("message", message.get("type"))
    if isinstance(message, str) and message.strip():
        return message
    return ""


def token_count(value: Any) -> int | None:
    """*value* if it can be a number of tokens."""
    if is_number(value) and 0 <= value < math.inf and int(value) == value:
        return int(value)
    return None


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds to wait as the server asked, in any of its forms; ``None`` for none, or one that
    makes no sense.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        with contextlib.suppress(KeyError, ValueError):
            seconds = float(lowered[name]) / unit
            if 0 <= seconds < math.inf:
                return seconds
    try:
        until = email.utils.parsedate_to_datetime(lowered["retry-after"]).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    if now is None:
        now = time.time()
    return max(0.0, until - now)


# ---------------------------------------------------------------- one exchange

_ENCODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


def unpacked(
    packed: bytes, encoding: str | None, limit: int = MAX_RESPONSE_BYTES
) -> tuple[bytes, bool, bool]:
    """Return what a server *packed*, unasked; whether it is longer than *limit*, where it is cut;
    whether it can be read.

    A few kilobytes of gzip can unpack to gigabytes, so unpacking goes no further than what may be
    kept.
    """
    encoding = (encoding or "identity").strip().lower()
    data = packed
    readable = encoding == "identity"
    if encoding in _ENCODINGS:
        with contextlib.suppress(zlib.error):
            data = zlib.decompressobj(_ENCODINGS[encoding]).decompress(packed, limit + 1)
            readable = True
    return data[:limit], max(len(packed), len(data)) > limit, readable


@dataclass(slots=True)
class HttpExchange:
    """A request, and as far as it got: ``status`` is ``None`` until a response begins, ``error``
    says how it broke off.

    ``query`` is what a GET sends behind the question mark; the log holds it in the place of the
    body. ``hint`` is what to look at where there is nothing at the address. ``leaving`` is awaited
    before the first byte leaves; what it raises keeps the request from leaving, and is ``refused``.
    ``sent``: there was a connection, so that bytes may have left. ``received`` is ``full`` where it
    was cut at the limit, ``readable`` unless it is packed as nobody knows.
    """

    url: str
    headers: Mapping[str, str]
    body: bytes
    query: str = ""
    hint: str = ""
    leaving: Callable[[], Awaitable[None]] | None = None
    sent: bool = False
    refused: Exception | None = None
    unreachable: str = ""
    status: int | None = None
    response_headers: Mapping[str, str] = field(default_factory=dict)
    received: bytes = b""
    full: bool = False
    readable: bool = True
    error: str | None = None

    def wire(self) -> Wire:
        """The record of it, without secrets."""
        body = self.body or self.query.encode()
        truncated = self.full or (self.error is not None and self.status is not None)
        response = (self.status, self.response_headers, self.received)
        return make_wire(self.url, body, self.headers, *response, truncated=truncated)

    @property
    def whole(self) -> bool:
        """Return whether a response came and can be read to its end, whatever its status."""
        answered = self.status is not None and self.error is None
        return all((answered, self.readable, not self.full))

    @property
    def succeeded(self) -> bool:
        """Return whether a response came that says so by its status."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def evidence(self) -> Evidence:
        """Return what is known of an exchange that broke off."""
        if self.status is None:
            if self.sent:
                return Evidence.NO_RESPONSE
            return Evidence.NOT_SENT
        if self.succeeded:
            return Evidence.PARTIAL
        return evidence_of(self.status, self.received.decode("utf-8", "replace"))

    def failure(self, name: str) -> Reply | None:
        """Return what this comes to if it is no whole success; ``None`` if it is, and the body can
        be read.

        Raises AttemptError with the evidence; returns a Reply where the failure is an answer of its
        own.
        """
        if self.succeeded and self.whole:
            return None
        status = self.status
        wire = self.wire()
        if status is None or self.error is not None:
            raise self._attempt_error(name, f"{self._broken_off} ({self.error})", wire)
        if self.succeeded:
            return Reply(text=None, status=Status.MALFORMED, error=self._unreadable, wire=wire)
        line = failure_line(status, wire.response_body)
        policy = policy_refusal(status, wire.response_body)
        if policy is not None:
            return Reply(
                text=None, status=Status.REFUSED, finish_reason=policy, wire=wire, error=line
            )
        if 300 <= status < 400:
            line = (
                f"HTTP {status}: a redirect, which is not followed; set base_url to where the "
                "server really is"
            )
        elif status in (404, 405):
            hint = ""
            if self.hint:
                hint = f"; {self.hint}"
            line = f"HTTP {status} at {wire.url}{line.removeprefix(f'HTTP {status}')}{hint}"
        raise self._attempt_error(name, line, wire)

    def _attempt_error(self, name: str, line: str, wire: Wire) -> AttemptError:
        """The error of an attempt without an answer, which *line* describes."""
        return AttemptError(
            f"endpoint {name!r}: {line}",
            evidence=self.evidence,
            retry_after=retry_after(self.response_headers),
            wire=wire,
        )

    @property
    def _broken_off(self) -> str:
        """Return how far it got that broke off."""
        if self.status is not None:
            return f"HTTP {self.status}, and the response broke off"
        if self.sent:
            return "sent, and no response came"
        return self.unreachable or "no connection"

    @property
    def _unreadable(self) -> str:
        """Return why the body of a success cannot be read."""
        if self.full:
            return f"the body is longer than {len(self.received):,} bytes"
        return "the body is packed and cannot be unpacked"


class Sender:
    """Sends requests one at a time or many at once, each exactly once."""

    def __init__(
        self, *, concurrency: int = CONCURRENCY, max_response_bytes: int = MAX_RESPONSE_BYTES
    ) -> None:
        self._concurrency = concurrency
        self._max_response_bytes = max_response_bytes
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(self, exchange: HttpExchange, *, method: str = "POST") -> None:
        """Carry *exchange* out and note in it how it went. Raises nothing but CutOff, where it is
        cancelled.
        """
        import aiohttp
        from yarl import URL

        session = await self._open()
        try:
            url: str | URL = exchange.url
            if exchange.query:
                url = URL(f"{exchange.url}?{exchange.query}", encoded=True)
            async with session.request(
                method,
                url,
                data=exchange.body or None,
                headers=exchange.headers,
                allow_redirects=False,
                trace_request_ctx=exchange,
            ) as response:
                exchange.response_headers = dict(response.headers)
                exchange.status = response.status
                packed = bytearray()
                limit = self._max_response_bytes
                try:
                    async for chunk in response.content.iter_any():
                        packed += chunk
                        if len(packed) > limit:
                            response.close()  # the rest of an endless body is not waited for
                            break
                finally:
                    body = unpacked(bytes(packed), response.headers.get("Content-Encoding"), limit)
                    exchange.received, exchange.full, exchange.readable = body
        except asyncio.CancelledError:
            exchange.error = "cut off"
            raise CutOff(evidence=exchange.evidence, wire=exchange.wire()) from None
        # A ValueError comes from an address or a header that cannot be sent.
        except (aiohttp.ClientError, OSError, ValueError) as error:
            unsent = (
                aiohttp.ClientConnectorError,
                aiohttp.ConnectionTimeoutError,
                aiohttp.InvalidURL,
                ValueError,
            )
            exchange.sent = exchange.sent and not isinstance(error, unsent)
            exchange.error = redact(f"{type(error).__name__}: {error}")
            if exchange.sent:
                exchange.unreachable = ""
            else:
                exchange.unreachable = _why_unreachable(exchange.url, error)

    async def aclose(self) -> None:
        """Close the connections."""
        session = self._session
        self._session = None
        if session is not None:
            await session.close()

    async def _open(self) -> aiohttp.ClientSession:
        """Return the session of the running event loop, made where there is none."""
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            if self._session is not None:
                self._session.detach()  # it belongs to another loop, which alone could close it
            trace = aiohttp.TraceConfig()
            trace.on_connection_create_start.append(_begin)
            trace.on_connection_create_end.append(_leave)
            trace.on_connection_reuseconn.append(_leave)
            trace.on_request_headers_sent.append(_check)  # which are not sent yet
            self._loop = loop
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._concurrency, keepalive_timeout=_KEEP_ALIVE_SECONDS
                ),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                trace_configs=[trace],
            )
        return self._session


# An exchange is noted as sent when there is a connection for it, a new one or one that is used
# again; one that may not leave is stopped before its headers do. By itself aiohttp asks a second
# time, where it takes a request to be harmless.
_SECOND = "a second request of one attempt"


async def _begin(_session: object, context: SimpleNamespace, _parameters: object) -> None:
    """Refuse a second request of one attempt, before there is a connection for it."""
    if context.trace_request_ctx.sent:
        raise ConnectionAbortedError(_SECOND)


async def _leave(_session: object, context: SimpleNamespace, _parameters: object) -> None:
    """Await the leaving of an exchange that has its connection, and note that it is sent."""
    exchange: HttpExchange = context.trace_request_ctx
    if exchange.sent:
        exchange.refused = ConnectionAbortedError(_SECOND)
        return
    try:
        if exchange.leaving is not None:
            await exchange.leaving()
        exchange.sent = True
    except Exception as error:  # noqa: BLE001 - raised where the connection is closed because of it
        exchange.refused = error


async def _check(_session: object, context: SimpleNamespace, _parameters: object) -> None:
    """Break an exchange off that was refused, before its headers leave."""
    if context.trace_request_ctx.refused is not None:
        raise context.trace_request_ctx.refused


_INSECURE = (
    "no secure connection to {}: is it http:// there, or a certificate that is not trusted here?"
)
#: Class of an exception, or of what it came from → why there is no connection to an address, and
#: what to look at.
_UNREACHABLE = {
    "ConnectionRefusedError": "{} refuses connections: is the server running?",
    "ClientConnectorDNSError": (
        "the host of {} is not known: is base_url right, and is there a network?"
    ),
    "ClientConnectorCertificateError": _INSECURE,
    "ClientConnectorSSLError": _INSECURE,
    "ConnectionTimeoutError": (
        f"{{}} answers no connection within {_CONNECT_SECONDS:g} s: is base_url right (http or "
        "https?), and reachable?"
    ),
    "ClientConnectorError": "no connection to {}: is base_url right, and reachable?",
}


def _why_unreachable(url: str, error: Exception) -> str:
    """Return why there is no connection to *url*, as far as *error* tells; else nothing."""
    kinds = type(error).__mro__ + type(getattr(error, "os_error", None)).__mro__
    names = {kind.__name__ for kind in kinds}
    parts = urlsplit(safe_url(url))
    for name, why in _UNREACHABLE.items():
        if name in names:
            return why.format(f"{parts.scheme}://{parts.netloc}")
    return ""
