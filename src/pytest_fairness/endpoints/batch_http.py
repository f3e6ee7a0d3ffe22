"""What the batch APIs have in common on the wire: a key, exchanges that are watched, and lines of JSON."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pytest_fairness.endpoints.batch_protocol import BatchOptions, Result
from pytest_fairness.endpoints.http import Exchange, Sender, evidence_of, failure_line, policy_refusal
from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Reply, Request, Wire
from pytest_fairness.endpoints.redaction import read_key, redact_values, safe_url
from pytest_fairness.model import Status

#: Bytes of one answer: results of a whole batch come in one.
_MAX_BYTES = 1 << 30
_CONNECTIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """How the endpoint of a batch API makes the body of a request, and reads that of an answer."""

    name: str
    body: Callable[[Request], Awaitable[bytes]]
    read: Callable[[bytes], Reply]


class BatchHttp:
    """Sends with the key of the variable *api_key_env*; *authorise* makes the header of it.

    Redirects are not followed, nothing is repeated, no key is read before it is needed.
    """

    def __init__(
        self,
        asks: Asks,
        *,
        options: BatchOptions,
        api_key_env: str | None,
        authorise: Callable[[str], Mapping[str, str]],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.options = options
        self._asks = asks
        self._api_key_env = api_key_env
        self._authorise = authorise
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"pytest-fairness/{version('pytest-fairness')}",
            **(headers or {}),
        }
        self._sender = Sender(concurrency=_CONNECTIONS, max_response_bytes=_MAX_BYTES)

    async def body(self, request: Request) -> bytes:
        """See :class:`~.batch_protocol.BatchApi`."""
        return await self._asks.body(request)

    async def exchange(
        self, method: str, url: str, body: bytes = b"", content_type: str = "application/json"
    ) -> Exchange:
        """One exchange that succeeded. Raises AttemptError for any other."""
        key = read_key(self._api_key_env, self._asks.name)
        headers = {**self._headers, **(self._authorise(key) if key is not None else {})}
        if body:
            headers["Content-Type"] = content_type
        exchange = Exchange(url, headers, body)
        await self._sender.send(exchange, method=method)
        failed = exchange.failure(self._asks.name)
        if failed is not None:  # a content policy, or a body that was not kept whole: no answer of a model's here
            raise AttemptError(
                f"endpoint {self._asks.name!r}: {failed.error}", evidence=Evidence.REJECTED, wire=failed.wire
            )
        return exchange

    async def call(self, method: str, url: str, body: bytes = b"", content_type: str = "application/json") -> Answer:
        """The JSON object that is answered."""
        exchange = await self.exchange(method, url, body, content_type)
        return Answer(self._object_in(exchange), _wire(exchange, content_type))

    def _object_in(self, exchange: Exchange) -> dict[str, Any]:
        try:
            data = json.loads(exchange.received.data)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise AttemptError(
                f"endpoint {self._asks.name!r}: {safe_url(exchange.url)} answered with what is no JSON object",
                evidence=Evidence.NO_RESPONSE,
                wire=exchange.wire(),
            )
        return data

    def text(self, answer: Answer, key: str) -> str:
        """The text under *key* of an answer. Raises AttemptError where there is none."""
        value = answer.data.get(key)
        if not isinstance(value, str) or not value:
            raise AttemptError(
                f"endpoint {self._asks.name!r}: the batch API answered without {key!r}",
                evidence=Evidence.NO_RESPONSE,
                wire=answer.wire,
            )
        return value

    def answered(self, custom_id: str, line: str, body: object, status: int | None = None) -> Result:
        """The result whose answer is the object *body*, as it would have come alone."""
        reply = self._asks.read(json.dumps(body).encode())
        return Result(custom_id=custom_id, line=line, reply=reply, status_code=status)

    def failed(self, custom_id: str, line: str, status: int, body: object) -> Result:
        """The result of a request that was answered with an HTTP *status* of failure: not billed in a batch."""
        text = body if isinstance(body, str) else json.dumps(body)
        policy, said = policy_refusal(status, text), failure_line(status, text)
        if policy is not None:
            reply = Reply(text=None, status=Status.REFUSED, finish_reason=policy, error=said)
            return Result(custom_id=custom_id, line=line, reply=reply, free=True, status_code=status)
        error = AttemptError(f"endpoint {self._asks.name!r}: {said}", evidence=evidence_of(status, text))
        return Result(custom_id=custom_id, line=line, error=error, free=True, status_code=status)

    def never_asked(self, custom_id: str, line: str, why: str, flag: str) -> Result:
        """The result of a request that the provider did not come to: free, and not repeated by itself."""
        error = AttemptError(f"endpoint {self._asks.name!r}: {why}", evidence=Evidence.REJECTED)
        return Result(custom_id=custom_id, line=line, error=error, free=True, flag=flag)

    def malformed(self, custom_id: str, line: str, why: str) -> Result:
        """A result that says whose it is and nothing that can be used: paid for, as far as anybody knows."""
        reply = Reply(text=None, status=Status.MALFORMED, error=f"the line of results {why}")
        return Result(custom_id=custom_id, line=line, reply=reply)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sender.aclose()


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON object, and the exchange in which it came."""

    data: dict[str, Any]
    wire: Wire


def _wire(exchange: Exchange, content_type: str) -> Wire:
    """The record of an exchange; a file that was sent is in the log already, line by line with its answers."""
    if content_type.startswith("multipart/"):
        return dataclasses.replace(exchange, body=b"").wire()
    return exchange.wire()


def result_lines(data: bytes) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """The lines of a file of results, verbatim but for secrets, each with its JSON object if it is one."""
    for line in data.split(b"\n"):
        if line.strip():
            kept: dict[str, Any] | None = None
            with contextlib.suppress(ValueError, RecursionError):
                found = json.loads(line)
                kept = found if isinstance(found, dict) else None
            yield redact_values(line.decode("utf-8", "surrogateescape")), kept


def id_in(found: Mapping[str, Any] | None) -> str | None:
    """The custom_id of a line of results, if it names one."""
    value = None if found is None else found.get("custom_id")
    return value if isinstance(value, str) and value else None


def multipart(fields: Mapping[str, str], filename: str, content: bytes) -> tuple[bytes, str]:
    """A form with *fields* and one file, and its content type."""
    while (boundary := uuid.uuid4().hex).encode() in content:
        continue
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    body = ("".join(parts) + head).encode("ascii") + content + f"\r\n--{boundary}--\r\n".encode("ascii")
    return body, f"multipart/form-data; boundary={boundary}"


def count(value: object) -> int:
    """A number of requests as a provider tells it; 0 for what is none."""
    return value if type(value) is int and value >= 0 else 0


def unix_time(value: object) -> float | None:
    """A moment as providers write it, in Unix time: seconds, or ISO 8601."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return None
    try:
        return datetime.datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError):
        return None
