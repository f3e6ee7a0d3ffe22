"""OpenAI, and every server that speaks its chat completions, directly over aiohttp: the bytes sent are ours.

One session for the endpoint's life, as many connections as there may be requests in flight, no redirects (a key and
a prompt must not follow one), no proxy or credentials from the environment, no cookies, no retries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING

from pytest_fairness.endpoints.chat_reply import read_chat_completion
from pytest_fairness.endpoints.evidence import evidence_of, policy_refusal, retry_after, what_was_said
from pytest_fairness.endpoints.keys import read_key
from pytest_fairness.endpoints.parameters import check_parameters
from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Price, Reply, Request, Wire
from pytest_fairness.endpoints.redaction import redact, safe_url
from pytest_fairness.endpoints.wire import MAX_RESPONSE_BYTES, BoundedBody, encode_json, make_wire
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Status

if TYPE_CHECKING:
    import aiohttp

#: Servers often close idle connections after five seconds; a request sent on one that is closing looks like a
#: request that was never answered, so ours are dropped first.
_KEEP_ALIVE_SECONDS = 4.0
_CONNECT_SECONDS = 20.0


class OpenAICompatibleEndpoint:
    """``POST {base_url}/chat/completions`` with a bearer key, if there is one."""

    type = "openai"
    simulated = False

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
        self.url = f"{self.base_url}/chat/completions"
        self.supports_system_prompt = supports_system_prompt
        self.default_parameters: Mapping[str, JSON] = dict(default_parameters or {})
        self.price = price
        self._api_key_env = api_key_env
        self._concurrency = concurrency
        self._max_response_bytes = max_response_bytes
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def identity(self) -> dict[str, JSON]:
        return {
            "type": self.type,
            "model": self.model,
            "base_url": safe_url(self.base_url),
            "parameters": dict(self.default_parameters),
        }

    async def ask(self, request: Request) -> Reply:
        import aiohttp

        headers, body = self._headers(), self._body(request)
        session = await self._open()
        received: BoundedBody | None = None
        response: aiohttp.ClientResponse | None = None
        try:
            async with session.post(self.url, data=body, headers=headers, allow_redirects=False) as response:
                received = BoundedBody(response.headers.get("Content-Encoding"), self._max_response_bytes)
                async for chunk in response.content.iter_any():
                    if not received.feed(chunk):
                        response.close()  # the rest of an endless body is not waited for
                        break
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError, ValueError) as error:
            wire = self._wire(headers, body, response, received, truncated=True)
            raise self._broken(error, response, wire) from None
        wire = self._wire(headers, body, response, received, truncated=received.full)
        return self._judge(response.status, response.headers, received, wire)

    async def aclose(self) -> None:
        session, self._session = self._session, None
        if session is not None and not session.closed:
            await session.close()

    # ------------------------------------------------------------ sending

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"pytest-fairness/{version('pytest-fairness')}",
        }
        key = read_key(self._api_key_env, self.name)
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def _body(self, request: Request) -> bytes:
        parameters = {**self.default_parameters, **request.parameters}
        try:
            check_parameters(self.type, parameters, f"endpoint {self.name!r}")
        except UsageError as error:
            raise AttemptError(str(error), evidence=Evidence.AUTH) from None
        messages: list[JSON] = [{"role": m.role, "content": m.content} for m in request.messages]
        return encode_json({"model": self.model, "messages": messages, **parameters})

    async def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            if self._session is not None and not self._session.closed:
                self._session.detach()  # it belongs to another loop, which alone could close it
            self._loop = loop
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._concurrency, keepalive_timeout=_KEEP_ALIVE_SECONDS, use_dns_cache=True
                ),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
            )
        return self._session

    # ------------------------------------------------------------ judging

    def _judge(self, status: int, headers: Mapping[str, str], received: BoundedBody, wire: Wire) -> Reply:
        if 200 <= status < 300:
            if received.full:
                said = f"the body is longer than {self._max_response_bytes:,} bytes"
                return Reply(text=None, status=Status.MALFORMED, error=said, wire=wire)
            if not received.readable:
                return Reply(
                    text=None, status=Status.MALFORMED, error="the body is packed and cannot be unpacked", wire=wire
                )
            parsed = read_chat_completion(received.data)
            return Reply(
                text=parsed.text,
                status=parsed.status,
                finish_reason=parsed.finish_reason,
                model=parsed.model,
                usage=parsed.usage,
                wire=wire,
                error=parsed.error,
            )
        return judge_failure(self.name, status, headers, wire)

    def _broken(self, error: Exception, response: aiohttp.ClientResponse | None, wire: Wire) -> AttemptError:
        import aiohttp

        said = redact(f"{type(error).__name__}: {error}")
        if response is not None:
            return broken_off(self.name, response.status, response.headers, said, wire)
        unsent = isinstance(error, (aiohttp.ClientConnectorError, aiohttp.InvalidURL, aiohttp.ConnectionTimeoutError))
        # A ValueError comes from building the request: a header or an address that cannot be sent.
        evidence = Evidence.NOT_SENT if unsent or isinstance(error, ValueError) else Evidence.NO_RESPONSE
        what = "no connection" if evidence is Evidence.NOT_SENT else "sent, and no response came"
        return AttemptError(f"endpoint {self.name!r}: {what} ({said})", evidence=evidence, wire=wire)

    def _wire(
        self,
        headers: Mapping[str, str],
        body: bytes,
        response: aiohttp.ClientResponse | None,
        received: BoundedBody | None,
        *,
        truncated: bool,
    ) -> Wire:
        return make_wire(
            url=self.url,
            request_body=body,
            request_headers=headers,
            status_code=response.status if response is not None else None,
            response_headers=dict(response.headers) if response is not None else None,
            response_body=received.data if received is not None else b"",
            truncated=truncated and response is not None,
        )


def judge_failure(name: str, status: int, headers: Mapping[str, str], wire: Wire) -> Reply:
    """What a complete response that is no success comes to: REFUSED by policy, or an AttemptError."""
    policy = policy_refusal(status, wire.response_body)
    if policy is not None:
        said = what_was_said(status, wire.response_body)
        return Reply(text=None, status=Status.REFUSED, finish_reason=policy, wire=wire, error=said)
    said = what_was_said(status, wire.response_body)
    if 300 <= status < 400:
        said = f"HTTP {status}: a redirect, which is not followed; set base_url to where the server really is"
    raise AttemptError(
        f"endpoint {name!r}: {said}",
        evidence=evidence_of(status, wire.response_body),
        retry_after=retry_after(headers),
        wire=wire,
    )


def broken_off(name: str, status: int, headers: Mapping[str, str], said: str, wire: Wire) -> AttemptError:
    """A response that began and broke off: paid for if it was a success, else as good as complete."""
    if 200 <= status < 300:
        evidence = Evidence.PARTIAL
    else:
        evidence = evidence_of(status, wire.response_body)
    return AttemptError(
        f"endpoint {name!r}: HTTP {status}, and the response broke off ({said})",
        evidence=evidence,
        retry_after=retry_after(headers),
        wire=wire,
    )
